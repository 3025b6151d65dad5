#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "order/order_dag.h"

#define NO_GROUP UINT32_MAX

typedef struct partition {
    const onv_dag *dag;
    onv_arena arena;
    uint64_t bound;
    onv_front front;
    uint32_t *queue;  /* nodes to look at, no node twice at a time */
    bool *queued;     /* by node */
    uint32_t n_queue; /* the queue is a stack: any order is right */
    uint32_t *taken;  /* the prefix, then from the end the suffix */
    uint32_t n_prefix, n_suffix;
    uint32_t *group_of; /* the result */
} partition;

static void enqueue(void *context, uint32_t node)
{
    partition *p = context;
    if (p->queued[node] || p->front.waits[node] > 0 || p->group_of[node] != NO_GROUP) return;
    p->queued[node] = true;
    p->queue[p->n_queue++] = node;
}

static void enqueue_cheaper(void *context, uint32_t node, uint64_t bytes)
{
    (void)bytes;
    enqueue(context, node);
}

/* --- What may run before, or after everything else ---------------------------------------------- */

static void find_end(partition *p, bool backward)
{
    const onv_front_events events = {.context = p, .ready = enqueue, .cheaper = enqueue_cheaper};
    onv_front *f = &p->front;
    const uint32_t n = p->dag->n_nodes;
    onv_front_start(f, backward);
    for (uint32_t i = 0; i < n; i++) enqueue(p, backward ? i : n - 1 - i);
    while (p->n_queue > 0) {
        uint32_t node = p->queue[--p->n_queue];
        p->queued[node] = false;
        uint64_t after = onv_front_after(f, node);
        if (after > f->live || onv_front_step(f, node, after) > p->bound) continue;
        f->live = after;
        p->taken[backward ? n - ++p->n_suffix : p->n_prefix++] = node;
        p->group_of[node] = backward; /* the suffix is 1 for now */
        onv_front_take(f, node, &events);
    }
}

/* --- Cuts between ------------------------------------------------------------------------------- */

/* A node that every other one runs before or behind, in every order, is a group of its own, and so
 * is what lies between two such nodes: nodes up to it all lead to it, when the first use of what
 * each writes stands at or before it; likewise backwards. */
static bool find_cuts(partition *p, const uint32_t *middle, uint32_t n, uint32_t *n_groups)
{
    const onv_dag *dag = p->dag;
    uint32_t *at = ONV_ARENA_ARRAY(&p->arena, uint32_t, dag->n_nodes);
    uint32_t *use = ONV_ARENA_ARRAY(&p->arena, uint32_t, (size_t)n + 1);    /* latest first use */
    uint32_t *source = ONV_ARENA_ARRAY(&p->arena, uint32_t, (size_t)n + 1); /* 1 + earliest last */
    if (p->arena.failed) return false;
    for (uint32_t i = 0; i < n; i++) at[middle[i]] = i;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t node = middle[i], first = UINT32_MAX;
        for (uint32_t k = dag->writes.start[node]; k < dag->writes.start[node + 1]; k++) {
            uint32_t v = dag->writes.at[k];
            for (uint32_t r = dag->readers.start[v]; r < dag->readers.start[v + 1]; r++) {
                uint32_t reader = dag->readers.at[r];
                if (p->group_of[reader] == NO_GROUP && at[reader] < first) first = at[reader];
            }
        }
        use[i + 1] = first > use[i] ? first : use[i];
    }
    source[n] = UINT32_MAX;
    for (uint32_t i = n; i-- > 0;) {
        uint32_t node = middle[i], last = 0;
        for (uint32_t k = dag->reads.start[node]; k < dag->reads.start[node + 1]; k++) {
            uint32_t writer = dag->values[dag->reads.at[k]].writer;
            if (writer == ONV_DAG_NONE || p->group_of[writer] != NO_GROUP) continue;
            if (at[writer] + 1 > last) last = at[writer] + 1;
        }
        source[i] = last < source[i + 1] ? last : source[i + 1];
    }
    uint32_t group = 1;
    for (uint32_t i = 0; i < n; i++) {
        bool cut = use[i] <= i && source[i + 1] >= i + 1;
        at[middle[i]] = group += cut; /* no longer positions behind this one's own */
        group += cut;
    }
    for (uint32_t i = 0; i < n; i++) p->group_of[middle[i]] = at[middle[i]];
    *n_groups = group + 2;
    return true;
}

static bool run(partition *p, uint32_t *order, uint32_t *n_groups)
{
    const onv_dag *dag = p->dag;
    uint32_t n = dag->n_nodes, n_middle = 0;
    p->queue = ONV_ARENA_ARRAY(&p->arena, uint32_t, n);
    p->queued = ONV_ARENA_ARRAY(&p->arena, bool, n);
    p->taken = ONV_ARENA_ARRAY(&p->arena, uint32_t, n);
    uint32_t *middle = ONV_ARENA_ARRAY(&p->arena, uint32_t, n);
    if (!onv_front_init(&p->front, dag, &p->arena)) return false;
    for (uint32_t i = 0; i < n; i++) p->group_of[i] = NO_GROUP;
    find_end(p, false);
    find_end(p, true);
    for (uint32_t i = 0; i < n; i++)
        if (p->group_of[order[i]] == NO_GROUP) middle[n_middle++] = order[i];
    if (!find_cuts(p, middle, n_middle, n_groups)) return false;
    for (uint32_t i = n - p->n_suffix; i < n; i++) p->group_of[p->taken[i]] = *n_groups - 1;
    memcpy(order, p->taken, n * sizeof *order);
    if (n_middle > 0) memcpy(order + p->n_prefix, middle, n_middle * sizeof *order);
    return true;
}

onv_status onv_dag_partition(const onv_dag *dag, uint64_t bound, uint32_t *order,
                             uint32_t *group_of, uint32_t *n_groups, onv_error *err)
{
    partition p = {.dag = dag, .bound = bound, .group_of = group_of};
    onv_arena_init(&p.arena, SIZE_MAX);
    bool good = run(&p, order, n_groups);
    onv_arena_cleanup(&p.arena);
    return good ? ONV_OK : onv_fail_memory(err);
}

/* --- Parts -------------------------------------------------------------------------------------- */

typedef struct cutter {
    const onv_dag *dag;
    const uint32_t *group_of;
    uint32_t group;
    onv_arena arena;
    uint32_t *local; /* by value: 1 + its number in the part, 0: none */
    onv_dag_value *values;
    uint32_t n_values;
    onv_dag_read *reads;
    uint32_t n_reads;
} cutter;

static uint32_t add_value(cutter *c, uint32_t v, uint32_t writer)
{
    const onv_dag *dag = c->dag;
    onv_dag_value value = dag->values[v];
    value.writer = writer;
    for (uint32_t r = dag->readers.start[v]; r < dag->readers.start[v + 1]; r++)
        value.is_output |= c->group_of[dag->readers.at[r]] > c->group;
    c->values[c->n_values] = value;
    c->local[v] = ++c->n_values;
    return c->n_values - 1;
}

static bool cut_out(cutter *c, const uint32_t *nodes, uint32_t count, uint64_t before)
{
    const onv_dag *dag = c->dag;
    uint32_t n_reads = 0, n_writes = 0;
    for (uint32_t i = 0; i < count; i++) {
        n_reads += dag->reads.start[nodes[i] + 1] - dag->reads.start[nodes[i]];
        n_writes += dag->writes.start[nodes[i] + 1] - dag->writes.start[nodes[i]];
    }
    c->local = ONV_ARENA_ARRAY(&c->arena, uint32_t, dag->n_values);
    c->values = ONV_ARENA_ARRAY(&c->arena, onv_dag_value, (size_t)n_reads + n_writes + 1);
    c->reads = ONV_ARENA_ARRAY(&c->arena, onv_dag_read, n_reads);
    if (c->arena.failed) return false;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = dag->writes.start[nodes[i]]; k < dag->writes.start[nodes[i] + 1]; k++)
            add_value(c, dag->writes.at[k], i);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = dag->reads.start[nodes[i]]; k < dag->reads.start[nodes[i] + 1]; k++) {
            uint32_t v = dag->reads.at[k];
            if (c->local[v] == 0) {
                uint32_t at = add_value(c, v, ONV_DAG_NONE);
                before -= c->values[at].bytes;
            }
            c->reads[c->n_reads++] = (onv_dag_read){i, c->local[v] - 1};
        }
    }
    /* What only passes through. */
    c->values[c->n_values++] = (onv_dag_value){before, ONV_DAG_NONE, true};
    return true;
}

onv_status onv_dag_part(const onv_dag *dag, const uint32_t *group_of, uint32_t group,
                        const uint32_t *nodes, uint32_t count, uint64_t before, onv_dag *part,
                        onv_error *err)
{
    cutter c = {.dag = dag, .group_of = group_of, .group = group};
    *part = (onv_dag){0};
    onv_arena_init(&c.arena, SIZE_MAX);
    onv_status status = ONV_ERR_MEMORY;
    bool good = cut_out(&c, nodes, count, before);
    if (good)
        status = onv_dag_init(part, count, NULL, c.values, c.n_values, c.reads, c.n_reads, err);
    for (uint32_t i = 0; status == ONV_OK && i < count; i++) part->need[i] = dag->need[nodes[i]];
    onv_arena_cleanup(&c.arena);
    return good ? status : onv_fail_memory(err);
}
