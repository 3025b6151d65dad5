#include <stdlib.h>

#include "base/fail.h"
#include "base/heap.h"
#include "order/order_dag.h"

/* --- What a node cannot run without ------------------------------------------------------------ */

typedef struct walk {
    const onv_dag *dag;
    uint32_t *behind, *ahead; /* by node: marked with the run, if it needs / feeds the node */
    uint32_t *seen;           /* by value, likewise */
    uint32_t *queue;
    uint32_t run;
    uint64_t work; /* done so far */
} walk;

static void mark_ahead(walk *w, uint32_t node)
{
    const onv_dag *dag = w->dag;
    uint32_t n = 1;
    w->queue[0] = node;
    w->ahead[node] = w->run;
    while (n > 0) {
        uint32_t at = w->queue[--n];
        for (uint32_t i = dag->writes.start[at]; i < dag->writes.start[at + 1]; i++) {
            uint32_t v = dag->writes.at[i];
            w->work += 1 + dag->readers.start[v + 1] - dag->readers.start[v];
            for (uint32_t r = dag->readers.start[v]; r < dag->readers.start[v + 1]; r++) {
                uint32_t reader = dag->readers.at[r];
                if (w->ahead[reader] == w->run) continue;
                w->ahead[reader] = w->run;
                w->queue[n++] = reader;
            }
        }
    }
}

/* Whether the value, written before the node in every order, is live while it runs. */
static bool must_live(walk *w, uint32_t v)
{
    const onv_dag *dag = w->dag;
    if (w->seen[v] == w->run) return false; /* counted */
    w->seen[v] = w->run;
    w->work += 1 + dag->readers.start[v + 1] - dag->readers.start[v];
    if (dag->values[v].is_output) return true;
    for (uint32_t r = dag->readers.start[v]; r < dag->readers.start[v + 1]; r++)
        if (w->ahead[dag->readers.at[r]] == w->run) return true;
    return false;
}

static uint64_t bytes_behind(walk *w, uint32_t node)
{
    const onv_dag *dag = w->dag;
    uint64_t bytes = 0;
    uint32_t n = 1;
    w->queue[0] = node;
    w->behind[node] = w->run;
    while (n > 0) {
        uint32_t at = w->queue[--n];
        for (uint32_t i = dag->reads.start[at]; i < dag->reads.start[at + 1]; i++) {
            uint32_t writer = dag->values[dag->reads.at[i]].writer;
            w->work++;
            if (writer == ONV_DAG_NONE || w->behind[writer] == w->run) continue;
            w->behind[writer] = w->run;
            w->queue[n++] = writer;
            for (uint32_t k = dag->writes.start[writer]; k < dag->writes.start[writer + 1]; k++)
                if (must_live(w, dag->writes.at[k])) bytes += dag->values[dag->writes.at[k]].bytes;
        }
    }
    return bytes;
}

static uint64_t bound_at(walk *w, uint32_t node, const uint32_t *inputs, uint32_t n_inputs)
{
    uint64_t bytes = w->dag->need[node];
    w->run++;
    mark_ahead(w, node);
    bytes += bytes_behind(w, node);
    for (uint32_t i = 0; i < n_inputs; i++)
        if (must_live(w, inputs[i])) bytes += w->dag->values[inputs[i]].bytes;
    return bytes;
}

/* --- The largest ------------------------------------------------------------------------------- */

typedef struct candidate {
    uint64_t bytes;
    uint32_t node;
} candidate;

static int compare_candidates(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* The first step has all inputs; no step has less than what it writes and outputs to come. */
static uint64_t simple_bound(const onv_dag *dag)
{
    uint64_t first = UINT64_MAX, last = 0;
    for (uint32_t n = 0; n < dag->n_nodes; n++) {
        bool source = true;
        for (uint32_t i = dag->reads.start[n]; i < dag->reads.start[n + 1]; i++)
            source &= dag->values[dag->reads.at[i]].writer == ONV_DAG_NONE;
        uint64_t need = onv_dag_first_need(dag, n);
        if (source && need < first) first = need;
    }
    for (uint32_t v = 0; v < dag->n_values; v++)
        if (dag->values[v].is_output) last += dag->values[v].bytes;
    if (dag->n_nodes > 0) first += dag->start_bytes;
    return dag->n_nodes > 0 && first > last ? first : last;
}

/* A node's bound is at most its bytes in any order, so that few nodes have to be looked at. */
static void find_bound(walk *w, candidate *candidates, const uint32_t *inputs, uint32_t n_inputs,
                       uint64_t work, uint64_t *bound)
{
    for (uint32_t i = 0; i < w->dag->n_nodes; i++) {
        if (candidates[i].bytes <= *bound || w->work > work) return;
        uint64_t bytes = bound_at(w, candidates[i].node, inputs, n_inputs);
        if (bytes > *bound) *bound = bytes;
    }
}

static onv_status prepare_candidates(const onv_dag *dag, const uint32_t *order,
                                     candidate *candidates, onv_error *err)
{
    uint64_t *bytes = onv_heap_alloc(dag->n_nodes * sizeof *bytes);
    if (bytes == NULL) return onv_fail_memory(err);
    onv_status status = onv_dag_steps(dag, order, bytes, err);
    for (uint32_t s = 0; status == ONV_OK && s < dag->n_nodes; s++)
        candidates[s] = (candidate){bytes[s], order[s]};
    qsort(candidates, status == ONV_OK ? dag->n_nodes : 0, sizeof *candidates, compare_candidates);
    onv_heap_free(bytes);
    return status;
}

onv_status onv_dag_bound(const onv_dag *dag, const uint32_t *order, uint64_t work, uint64_t *bound,
                         onv_error *err)
{
    onv_arena arena;
    onv_arena_init(&arena, SIZE_MAX);
    walk w = {.dag = dag};
    w.behind = ONV_ARENA_ARRAY(&arena, uint32_t, dag->n_nodes);
    w.ahead = ONV_ARENA_ARRAY(&arena, uint32_t, dag->n_nodes);
    w.queue = ONV_ARENA_ARRAY(&arena, uint32_t, dag->n_nodes);
    w.seen = ONV_ARENA_ARRAY(&arena, uint32_t, dag->n_values);
    uint32_t *inputs = ONV_ARENA_ARRAY(&arena, uint32_t, dag->n_values), n_inputs = 0;
    candidate *candidates = ONV_ARENA_ARRAY(&arena, candidate, dag->n_nodes);
    onv_status status =
        arena.failed ? onv_fail_memory(err) : prepare_candidates(dag, order, candidates, err);
    if (status == ONV_OK) {
        for (uint32_t v = 0; v < dag->n_values; v++)
            if (dag->values[v].writer == ONV_DAG_NONE) inputs[n_inputs++] = v;
        *bound = simple_bound(dag);
        find_bound(&w, candidates, inputs, n_inputs, work, bound);
    }
    onv_arena_cleanup(&arena);
    return status;
}
