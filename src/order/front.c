#include <string.h>

#include "order/order_dag.h"

bool onv_front_init(onv_front *f, const onv_dag *dag, onv_arena *arena)
{
    *f = (onv_front){.dag = dag};
    f->bytes = ONV_ARENA_ARRAY(arena, uint64_t, dag->n_values);
    f->passing = ONV_ARENA_ARRAY(arena, uint64_t, dag->n_values);
    f->n_opened = ONV_ARENA_ARRAY(arena, uint32_t, dag->n_values);
    f->to_close = ONV_ARENA_ARRAY(arena, uint32_t, dag->n_values);
    f->waits = ONV_ARENA_ARRAY(arena, uint32_t, dag->n_nodes);
    if (arena->failed) return false;
    for (uint32_t v = 0; v < dag->n_values; v++) {
        f->bytes[v] = onv_dag_lasts(dag, v) ? dag->values[v].bytes : 0;
        if (!dag->values[v].is_output) f->passing[v] = f->bytes[v];
        f->result_bytes += f->bytes[v] - f->passing[v];
    }
    return true;
}

void onv_front_start(onv_front *f, bool backward)
{
    const onv_dag *dag = f->dag;
    f->backward = backward;
    f->opens = backward ? dag->reads : dag->writes;
    f->closes = backward ? dag->writes : dag->reads;
    f->openers = backward ? dag->readers : dag->writers;
    f->closers = backward ? dag->writers : dag->readers;
    f->adds = backward ? f->passing : f->bytes;
    f->frees = backward ? f->bytes : f->passing;
    f->live = backward ? f->result_bytes : dag->start_bytes;
    memset(f->n_opened, 0, dag->n_values * sizeof *f->n_opened);
    memset(f->waits, 0, dag->n_nodes * sizeof *f->waits);
    for (uint32_t v = 0; v < dag->n_values; v++) {
        uint32_t first = f->closers.start[v], end = f->closers.start[v + 1];
        f->to_close[v] = end - first;
        if (onv_list_length(&f->openers, v) == 0) continue;
        for (uint32_t i = first; i < end; i++) f->waits[f->closers.at[i]]++;
    }
}

bool onv_front_readies(const onv_front *f, uint32_t node)
{
    for (uint32_t i = f->opens.start[node]; i < f->opens.start[node + 1]; i++) {
        uint32_t v = f->opens.at[i];
        if (f->n_opened[v] + 1 < onv_list_length(&f->openers, v)) continue;
        for (uint32_t k = f->closers.start[v]; k < f->closers.start[v + 1]; k++)
            if (f->waits[f->closers.at[k]] == 1) return true;
    }
    return false;
}

static void tell_cheaper(const onv_front_events *events, const onv_list *list, uint32_t v,
                         uint32_t node, uint64_t bytes)
{
    for (uint32_t i = list->start[v]; i < list->start[v + 1]; i++)
        if (list->at[i] != node) events->cheaper(events->context, list->at[i], bytes);
}

/* Whether it becomes live, which others would make it, too. A result of the graph is open from the end on. */
static bool opens_for_others(const onv_front *f, uint32_t v)
{
    return f->backward && f->n_opened[v] == 0 && !f->dag->values[v].is_output;
}

void onv_front_take(onv_front *f, uint32_t node, const onv_front_events *events)
{
    const bool tells = events->cheaper != NULL;
    const uint32_t *closes = f->closes.at, *opens = f->opens.at, *closers = f->closers.at;
    uint32_t *const to_close = f->to_close, *const waits = f->waits;
    for (uint32_t i = f->closes.start[node], end = f->closes.start[node + 1]; i < end; i++)
        if (--to_close[closes[i]] == 1 && tells)
            tell_cheaper(events, &f->closers, closes[i], node, f->frees[closes[i]]);
    for (uint32_t i = f->opens.start[node], end = f->opens.start[node + 1]; i < end; i++) {
        uint32_t v = opens[i];
        if (tells && opens_for_others(f, v)) tell_cheaper(events, &f->openers, v, node, f->adds[v]);
        if (++f->n_opened[v] < onv_list_length(&f->openers, v)) continue;
        for (uint32_t k = f->closers.start[v], last = f->closers.start[v + 1]; k < last; k++)
            if (--waits[closers[k]] == 0 && events->ready != NULL)
                events->ready(events->context, closers[k]);
    }
}

void onv_front_undo(onv_front *f, uint32_t node, const onv_front_events *events)
{
    const uint32_t *closes = f->closes.at, *opens = f->opens.at, *closers = f->closers.at;
    uint32_t *const to_close = f->to_close, *const waits = f->waits;
    for (uint32_t i = f->opens.start[node], end = f->opens.start[node + 1]; i < end; i++) {
        uint32_t v = opens[i];
        if (f->n_opened[v]-- < onv_list_length(&f->openers, v)) continue;
        for (uint32_t k = f->closers.start[v], last = f->closers.start[v + 1]; k < last; k++)
            if (waits[closers[k]]++ == 0 && events->waits_again != NULL)
                events->waits_again(events->context, closers[k]);
    }
    for (uint32_t i = f->closes.start[node], end = f->closes.start[node + 1]; i < end; i++)
        to_close[closes[i]]++;
}
