/* Joining nodes. Two rules, for a node x and a node y that needs it, with step bytes of both taken
 * relative to what is live before x:
 *
 *   y follows x at once    if y waits for nothing but x, does not grow memory whatever else has run,
 *                          and takes no more than x took
 *   x waits for y's turn   if nothing but y waits for x, x does not shrink memory, and y takes at
 *                          least as much as x: until then it is cheaper not to have run x
 *
 * In any order the two may be brought together without raising its peak. The joined node is a node
 * like others, so the rules apply again: chains shrink to their hills and valleys. */
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "order/order_dag.h"

#define NONE UINT32_MAX

/* Nodes with more neighbours than this are left alone, so that the whole stays near-linear. */
enum { MAX_DEGREE = 256 };

typedef struct edge { /* a read; in the list of its node and in that of its value */
    uint32_t node, value;
    uint32_t next_of_node, next_of_value, prev_of_value;
} edge;

typedef struct group { /* what was joined, under the index of its first node */
    uint32_t first_read, n_reads;
    uint32_t first_write, n_writes;
    uint32_t tail; /* the last node of the sequence */
    uint64_t need, kept;
    bool gone, queued;
} group;

typedef struct variable {
    uint64_t bytes;
    uint32_t writer;
    uint32_t first_reader, n_readers;
    uint32_t next_write; /* of the same writer */
    bool is_output;
} variable;

typedef struct reducer {
    const onv_dag *dag;
    onv_arena arena;
    edge *edges;
    group *groups;
    variable *values;
    uint32_t *next; /* by node: what follows it in its sequence */
    uint32_t *mark; /* by value: the run that marked it */
    uint32_t run;
    uint32_t *queue;
    uint32_t n_queue;
} reducer;

static bool prepare(reducer *r)
{
    const onv_dag *dag = r->dag;
    uint32_t n = dag->n_nodes, n_edges = dag->reads.start[n];
    r->edges = ONV_ARENA_ARRAY(&r->arena, edge, n_edges);
    r->groups = ONV_ARENA_ARRAY(&r->arena, group, n);
    r->values = ONV_ARENA_ARRAY(&r->arena, variable, dag->n_values);
    r->next = ONV_ARENA_ARRAY(&r->arena, uint32_t, n);
    r->mark = ONV_ARENA_ARRAY(&r->arena, uint32_t, dag->n_values);
    r->queue = ONV_ARENA_ARRAY(&r->arena, uint32_t, n);
    if (r->arena.failed) return false;
    for (uint32_t i = 0; i < n; i++) {
        r->groups[i] = (group){.first_read = NONE,
                               .first_write = NONE,
                               .tail = i,
                               .need = dag->need[i],
                               .kept = dag->kept[i]};
        r->next[i] = NONE;
    }
    for (uint32_t v = 0; v < dag->n_values; v++) {
        const onv_dag_value *value = &dag->values[v];
        r->values[v] = (variable){value->bytes, value->writer,
                                  NONE,         dag->readers.start[v + 1] - dag->readers.start[v],
                                  NONE,         value->is_output};
        if (value->writer == ONV_DAG_NONE) continue;
        if (r->values[v].n_readers == 0 && !value->is_output) continue; /* gone with its step */
        group *writer = &r->groups[value->writer];
        r->values[v].next_write = writer->first_write;
        writer->first_write = v;
        writer->n_writes++;
    }
    for (uint32_t i = n; i-- > 0;) {
        for (uint32_t e = dag->reads.start[i]; e < dag->reads.start[i + 1]; e++) {
            variable *value = &r->values[dag->reads.at[e]];
            r->edges[e] =
                (edge){i, dag->reads.at[e], r->groups[i].first_read, value->first_reader, NONE};
            if (value->first_reader != NONE) r->edges[value->first_reader].prev_of_value = e;
            value->first_reader = e;
            r->groups[i].first_read = e;
            r->groups[i].n_reads++;
        }
    }
    return true;
}

static void enqueue(reducer *r, uint32_t x)
{
    if (r->groups[x].queued || r->groups[x].gone) return;
    r->groups[x].queued = true;
    r->queue[r->n_queue++] = x;
}

static void drop_reader(reducer *r, uint32_t e)
{
    edge *read = &r->edges[e];
    variable *value = &r->values[read->value];
    value->n_readers--;
    if (read->next_of_value != NONE)
        r->edges[read->next_of_value].prev_of_value = read->prev_of_value;
    if (read->prev_of_value != NONE)
        r->edges[read->prev_of_value].next_of_value = read->next_of_value;
    else
        value->first_reader = read->next_of_value;
}

/* --- The rules ---------------------------------------------------------------------------------- */

/* Bytes that x frees whenever it runs: nobody else reads them. */
static uint64_t always_freed(const reducer *r, uint32_t x)
{
    uint64_t bytes = 0;
    for (uint32_t e = r->groups[x].first_read; e != NONE; e = r->edges[e].next_of_node) {
        const variable *value = &r->values[r->edges[e].value];
        if (value->n_readers == 1 && !value->is_output) bytes += value->bytes;
    }
    return bytes;
}

/* The only node that y waits for, or NONE. */
static uint32_t only_source(const reducer *r, uint32_t y)
{
    uint32_t source = NONE;
    for (uint32_t e = r->groups[y].first_read; e != NONE; e = r->edges[e].next_of_node) {
        uint32_t writer = r->values[r->edges[e].value].writer;
        if (writer == ONV_DAG_NONE) continue;
        if (source != NONE && source != writer) return NONE;
        source = writer;
    }
    return source;
}

/* The only node that waits for x, or NONE. */
static uint32_t only_user(const reducer *r, uint32_t x)
{
    uint32_t user = NONE;
    for (uint32_t v = r->groups[x].first_write; v != NONE; v = r->values[v].next_write) {
        for (uint32_t e = r->values[v].first_reader; e != NONE; e = r->edges[e].next_of_value) {
            if (user != NONE && user != r->edges[e].node) return NONE;
            user = r->edges[e].node;
        }
    }
    return user;
}

static bool follows(const reducer *r, uint32_t x, uint32_t y)
{
    const group *gx = &r->groups[x], *gy = &r->groups[y];
    return gy->kept <= always_freed(r, y) && gx->kept + gy->need <= gx->need + always_freed(r, x);
}

/* Gives the need of both together. What x frees must not depend on what else has run. */
static bool waits(reducer *r, uint32_t x, uint32_t y, uint64_t *need)
{
    const group *gx = &r->groups[x], *gy = &r->groups[y];
    uint64_t freed = always_freed(r, x);
    r->run++;
    for (uint32_t e = gy->first_read; e != NONE; e = r->edges[e].next_of_node)
        r->mark[r->edges[e].value] = r->run;
    for (uint32_t e = gx->first_read; e != NONE; e = r->edges[e].next_of_node) {
        const variable *value = &r->values[r->edges[e].value];
        if (value->n_readers > 1 && !value->is_output && value->bytes > 0 &&
            r->mark[r->edges[e].value] != r->run)
            return false;
    }
    *need = gx->kept + gy->need - freed;
    return gx->kept >= freed && gx->need <= *need;
}

/* --- Joining ------------------------------------------------------------------------------------ */

/* Values that only the joined node itself read are no longer seen from outside. */
static void drop_inner(reducer *r, uint32_t x, uint32_t y)
{
    group *gx = &r->groups[x];
    r->run++;
    for (uint32_t e = gx->first_read; e != NONE; e = r->edges[e].next_of_node)
        r->mark[r->edges[e].value] = r->run;
    uint32_t *link = &gx->first_read;
    for (uint32_t e = r->groups[y].first_read, after; e != NONE; e = after) {
        after = r->edges[e].next_of_node;
        uint32_t v = r->edges[e].value;
        if (r->values[v].writer == x || r->mark[v] == r->run) {
            drop_reader(r, e);
            continue;
        }
        r->edges[e].node = x;
        r->edges[e].next_of_node = *link;
        *link = e;
        gx->n_reads++;
    }
    link = &gx->first_write;
    while (*link != NONE) {
        variable *value = &r->values[*link];
        if (value->n_readers > 0 || value->is_output) {
            link = &value->next_write;
            continue;
        }
        gx->kept -= value->bytes;
        gx->n_writes--;
        *link = value->next_write;
    }
}

static void join(reducer *r, uint32_t x, uint32_t y, uint64_t need)
{
    group *gx = &r->groups[x], *gy = &r->groups[y];
    drop_inner(r, x, y);
    for (uint32_t v = gy->first_write, after; v != NONE; v = after) {
        after = r->values[v].next_write;
        r->values[v].writer = x;
        r->values[v].next_write = gx->first_write;
        gx->first_write = v;
    }
    gx->n_writes += gy->n_writes;
    gx->kept += gy->kept;
    gx->need = need;
    r->next[gx->tail] = y;
    gx->tail = gy->tail;
    gy->gone = true;
    enqueue(r, x);
    for (uint32_t e = gx->first_read; e != NONE; e = r->edges[e].next_of_node) {
        const variable *value = &r->values[r->edges[e].value];
        if (value->writer != ONV_DAG_NONE) enqueue(r, value->writer);
        if (value->n_readers == 1) enqueue(r, r->edges[value->first_reader].node);
    }
    for (uint32_t v = gx->first_write; v != NONE; v = r->values[v].next_write)
        for (uint32_t e = r->values[v].first_reader; e != NONE; e = r->edges[e].next_of_value)
            enqueue(r, r->edges[e].node);
}

static bool is_small(const reducer *r, uint32_t x)
{
    const group *g = &r->groups[x];
    if (g->n_reads + g->n_writes > MAX_DEGREE) return false;
    for (uint32_t v = g->first_write; v != NONE; v = r->values[v].next_write)
        if (r->values[v].n_readers > MAX_DEGREE) return false;
    return true;
}

static void examine(reducer *r, uint32_t at)
{
    uint64_t need;
    if (!is_small(r, at)) return;
    uint32_t x = only_source(r, at), y = only_user(r, at);
    if (x != NONE && is_small(r, x) && follows(r, x, at))
        join(r, x, at, r->groups[x].need);
    else if (y != NONE && is_small(r, y) && waits(r, at, y, &need))
        join(r, at, y, need);
}

/* --- The result --------------------------------------------------------------------------------- */

static onv_status emit(reducer *r, onv_dag_reduced *out, onv_error *err)
{
    const onv_dag *dag = r->dag;
    uint32_t n = 0, n_values = 0, n_reads = 0, n_edges = dag->reads.start[dag->n_nodes];
    uint32_t *number = ONV_ARENA_ARRAY(&r->arena, uint32_t, dag->n_nodes);
    onv_dag_value *values = ONV_ARENA_ARRAY(&r->arena, onv_dag_value, dag->n_values);
    onv_dag_read *reads = ONV_ARENA_ARRAY(&r->arena, onv_dag_read, n_edges);
    if (r->arena.failed) return onv_fail_memory(err);
    for (uint32_t i = 0; i < dag->n_nodes; i++)
        if (!r->groups[i].gone) number[i] = n++;
    for (uint32_t v = 0; v < dag->n_values; v++) {
        const variable *value = &r->values[v];
        if (value->n_readers == 0 && !value->is_output) continue;
        bool written = value->writer != ONV_DAG_NONE;
        for (uint32_t e = value->first_reader; e != NONE; e = r->edges[e].next_of_value)
            reads[n_reads++] = (onv_dag_read){number[r->edges[e].node], n_values};
        values[n_values++] = (onv_dag_value){
            value->bytes, written ? number[value->writer] : ONV_DAG_NONE, value->is_output};
    }
    ONV_TRY(onv_dag_init(&out->dag, n, NULL, values, n_values, reads, n_reads, err));
    out->start = ONV_ARENA_ARRAY(&out->dag.arena, uint32_t, (size_t)n + 1);
    out->sequence = ONV_ARENA_ARRAY(&out->dag.arena, uint32_t, dag->n_nodes);
    if (out->dag.arena.failed) {
        onv_dag_cleanup(&out->dag);
        return onv_fail_memory(err);
    }
    uint32_t n_sequence = 0;
    for (uint32_t i = 0; i < dag->n_nodes; i++) {
        if (r->groups[i].gone) continue;
        out->dag.need[number[i]] = r->groups[i].need;
        out->start[number[i]] = n_sequence;
        for (uint32_t k = i; k != NONE; k = r->next[k]) out->sequence[n_sequence++] = k;
    }
    out->start[n] = n_sequence;
    return ONV_OK;
}

onv_status onv_dag_reduce(const onv_dag *dag, onv_dag_reduced *reduced, onv_error *err)
{
    reducer r = {.dag = dag};
    *reduced = (onv_dag_reduced){0};
    onv_arena_init(&r.arena, SIZE_MAX);
    onv_status status = ONV_OK;
    if (prepare(&r)) {
        for (uint32_t i = dag->n_nodes; i-- > 0;) enqueue(&r, i);
        while (r.n_queue > 0) {
            uint32_t x = r.queue[--r.n_queue];
            r.groups[x].queued = false;
            if (!r.groups[x].gone) examine(&r, x);
        }
        status = emit(&r, reduced, err);
    } else {
        status = onv_fail_memory(err);
    }
    onv_arena_cleanup(&r.arena);
    return status;
}
