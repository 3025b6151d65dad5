/* `greedy`: nodes are taken one by one, each time the ready one with the smallest growth of memory,
 * or depth first unless something shrinks memory. Forward from the inputs, and backward from the
 * outputs, where a node is ready once everything that reads its results has been taken, and taking
 * it drops its results and makes what it reads live. Graphs that fan out like one direction, graphs
 * that fan in the other. The best of them and of the file's order is the result. */

#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/quota.h"
#include "base/vec.h"
#include "order/order_dag.h"

/* What is preferred among ready nodes. */
typedef enum taste {
    NEWEST_OF_SMALLEST, /* the smallest growth, ties: what became ready last */
    OLDEST_OF_SMALLEST, /* ties: what became ready first */
    NEWEST_BUT_SHRINKS, /* what does not grow memory, else what became ready last */
} taste;

/* Graphs beyond this many nodes get the first taste only, in both directions. */
enum {
    ALL_TASTES_MAX_NODES = 100000,
    ORDER_WORK = 4
}; /* units for each node and each read of one order */

typedef struct entry {
    int64_t growth, age;
    uint32_t node, stamp;
} entry;

typedef struct greedy {
    const onv_dag *dag;
    taste taste;
    uint32_t *left;    /* by value: readers not taken */
    uint32_t *waits;   /* by node: forward, written values it still waits for; backward, its results
                          that somebody still has to read */
    bool *open;        /* by value, backward: live already */
    int64_t *growth;   /* by node: of taking it now */
    int64_t *ready_at; /* by node: -1, not ready; -2, taken */
    uint32_t *stamp;   /* by node: of its latest entry */
    ONV_VEC(entry) heap;
    int64_t clock;
    bool failed;
} greedy;

/* --- The queue: stale entries stay until they come up ------------------------------------------ */

static bool comes_first(const entry *a, const entry *b)
{
    if (a->growth != b->growth) return a->growth < b->growth;
    return a->age < b->age;
}

static void push(greedy *g, uint32_t node)
{
    entry e = {g->growth[node], g->ready_at[node], node, ++g->stamp[node]};
    if (g->taste != OLDEST_OF_SMALLEST) e.age = -e.age;
    if (g->taste == NEWEST_BUT_SHRINKS) e.growth = e.growth > 0;
    if (!onv_vec_push(&g->heap, e)) {
        g->failed = true;
        return;
    }
    size_t at = g->heap.count - 1;
    for (; at > 0 && comes_first(&e, &g->heap.at[(at - 1) / 2]); at = (at - 1) / 2)
        g->heap.at[at] = g->heap.at[(at - 1) / 2];
    g->heap.at[at] = e;
}

static entry pop(greedy *g)
{
    entry *heap = g->heap.at, top = heap[0], last = heap[--g->heap.count];
    size_t at = 0, n = g->heap.count;
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && comes_first(&heap[child + 1], &heap[child])) child++;
        if (!comes_first(&heap[child], &last)) break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return top;
}

static void make_ready(greedy *g, uint32_t node)
{
    g->ready_at[node] = g->clock++;
    push(g, node);
}

static void shrink_growth(greedy *g, uint32_t node, uint64_t bytes)
{
    if (bytes == 0) return;
    g->growth[node] -= (int64_t)bytes;
    if (g->ready_at[node] >= 0) push(g, node);
}

/* --- Forward ----------------------------------------------------------------------------------- */

static void start_forward(greedy *g)
{
    const onv_dag *dag = g->dag;
    for (uint32_t v = 0; v < dag->n_values; v++) {
        const onv_dag_value *value = &dag->values[v];
        uint32_t from = dag->reader_start[v], to = dag->reader_start[v + 1];
        g->left[v] = to - from;
        if (to - from == 1 && !value->is_output)
            g->growth[dag->readers[from]] -= (int64_t)value->bytes;
        for (uint32_t i = from; value->writer != ONV_DAG_NONE && i < to; i++)
            g->waits[dag->readers[i]]++;
    }
    for (uint32_t n = 0; n < dag->n_nodes; n++) g->growth[n] += (int64_t)dag->kept[n];
    for (uint32_t n = dag->n_nodes; n-- > 0;)
        if (g->waits[n] == 0) make_ready(g, n);
}

static void take_forward(greedy *g, uint32_t node)
{
    const onv_dag *dag = g->dag;
    for (uint32_t i = dag->read_start[node]; i < dag->read_start[node + 1]; i++) {
        uint32_t v = dag->reads[i];
        if (--g->left[v] != 1 || dag->values[v].is_output) continue;
        uint32_t r = dag->reader_start[v]; /* the one reader that is left frees it */
        while (g->ready_at[dag->readers[r]] == -2) r++;
        shrink_growth(g, dag->readers[r], dag->values[v].bytes);
    }
    for (uint32_t i = dag->write_start[node]; i < dag->write_start[node + 1]; i++) {
        uint32_t v = dag->writes[i];
        for (uint32_t r = dag->reader_start[v]; r < dag->reader_start[v + 1]; r++)
            if (--g->waits[dag->readers[r]] == 0) make_ready(g, dag->readers[r]);
    }
}

/* --- Backward ---------------------------------------------------------------------------------- */

static void start_backward(greedy *g)
{
    const onv_dag *dag = g->dag;
    for (uint32_t n = 0; n < dag->n_nodes; n++) g->growth[n] = -(int64_t)dag->kept[n];
    for (uint32_t v = 0; v < dag->n_values; v++) {
        const onv_dag_value *value = &dag->values[v];
        uint32_t from = dag->reader_start[v], to = dag->reader_start[v + 1];
        g->left[v] = to - from;
        g->open[v] = value->is_output;
        if (value->writer != ONV_DAG_NONE && to > from) g->waits[value->writer]++;
        for (uint32_t r = from; !value->is_output && r < to; r++)
            g->growth[dag->readers[r]] += (int64_t)value->bytes;
    }
    for (uint32_t n = 0; n < dag->n_nodes; n++)
        if (g->waits[n] == 0) make_ready(g, n);
}

static void take_backward(greedy *g, uint32_t node)
{
    const onv_dag *dag = g->dag;
    for (uint32_t i = dag->read_start[node]; i < dag->read_start[node + 1]; i++) {
        uint32_t v = dag->reads[i], writer = dag->values[v].writer;
        for (uint32_t r = dag->reader_start[v]; !g->open[v] && r < dag->reader_start[v + 1]; r++)
            if (dag->readers[r] != node) shrink_growth(g, dag->readers[r], dag->values[v].bytes);
        g->open[v] = true;
        if (--g->left[v] == 0 && writer != ONV_DAG_NONE && --g->waits[writer] == 0)
            make_ready(g, writer);
    }
}

/* --- Orders ------------------------------------------------------------------------------------ */

static bool prepare(greedy *g)
{
    const onv_dag *dag = g->dag;
    g->left = onv_heap_alloc(dag->n_values * sizeof *g->left);
    g->open = onv_heap_alloc(dag->n_values * sizeof *g->open);
    g->waits = onv_heap_alloc(dag->n_nodes * sizeof *g->waits);
    g->growth = onv_heap_alloc(dag->n_nodes * sizeof *g->growth);
    g->ready_at = onv_heap_alloc(dag->n_nodes * sizeof *g->ready_at);
    g->stamp = onv_heap_alloc(dag->n_nodes * sizeof *g->stamp);
    return g->left != NULL && g->open != NULL && g->waits != NULL && g->growth != NULL &&
           g->ready_at != NULL && g->stamp != NULL;
}

static void fill_order(greedy *g, bool backward, uint32_t *order)
{
    uint32_t n = g->dag->n_nodes, taken = 0;
    memset(g->waits, 0, n * sizeof *g->waits);
    memset(g->growth, 0, n * sizeof *g->growth);
    memset(g->stamp, 0, n * sizeof *g->stamp);
    memset(g->ready_at, 0xff, n * sizeof *g->ready_at);
    g->clock = 0;
    g->heap.count = 0;
    (backward ? start_backward : start_forward)(g);
    while (!g->failed && g->heap.count > 0) {
        entry e = pop(g);
        if (g->ready_at[e.node] == -2 || e.stamp != g->stamp[e.node]) continue;
        g->ready_at[e.node] = -2;
        order[backward ? n - 1 - taken : taken] = e.node;
        taken++;
        (backward ? take_backward : take_forward)(g, e.node);
    }
}

static onv_status try_all(greedy *g, uint32_t *order, uint64_t *peak, uint32_t *spare,
                          onv_error *err)
{
    bool all = g->dag->n_nodes <= ALL_TASTES_MAX_NODES;
    *peak = UINT64_MAX;
    for (int t = NEWEST_OF_SMALLEST; t <= (all ? NEWEST_BUT_SHRINKS : NEWEST_OF_SMALLEST); t++) {
        for (int backward = 0; backward < 2; backward++) {
            uint64_t bytes;
            ONV_WORK(ORDER_WORK *
                     ((uint64_t)g->dag->n_nodes + g->dag->read_start[g->dag->n_nodes]));
            g->taste = (taste)t;
            fill_order(g, backward, spare);
            if (g->failed) return onv_fail_memory(err);
            ONV_TRY(onv_dag_peak(g->dag, spare, &bytes, err));
            if (bytes >= *peak) continue;
            *peak = bytes;
            memcpy(order, spare, g->dag->n_nodes * sizeof *order);
        }
    }
    return ONV_OK;
}

onv_status onv_dag_greedy(const onv_dag *dag, uint32_t *order, uint64_t *peak, onv_error *err)
{
    greedy g = {.dag = dag};
    uint32_t *spare = onv_heap_alloc(dag->n_nodes * sizeof *spare);
    onv_status status =
        prepare(&g) && spare != NULL ? try_all(&g, order, peak, spare, err) : onv_fail_memory(err);
    onv_heap_free(spare);
    onv_heap_free(g.left);
    onv_heap_free(g.open);
    onv_heap_free(g.waits);
    onv_heap_free(g.growth);
    onv_heap_free(g.ready_at);
    onv_heap_free(g.stamp);
    onv_vec_cleanup(&g.heap);
    return status;
}

onv_status onv_dag_improve(const onv_dag *dag, uint32_t *order, uint64_t *peak, onv_error *err)
{
    uint64_t bytes;
    uint32_t *quick = onv_heap_alloc(dag->n_nodes * sizeof *quick);
    onv_status status = quick != NULL ? onv_dag_peak(dag, order, peak, err) : onv_fail_memory(err);
    if (status == ONV_OK) status = onv_dag_greedy(dag, quick, &bytes, err);
    if (status == ONV_OK && bytes < *peak) {
        memcpy(order, quick, dag->n_nodes * sizeof *order);
        *peak = bytes;
    }
    onv_heap_free(quick);
    return status;
}

onv_status onv_dag_order_greedy(const onv_dag *dag, const onv_order_options *options,
                                onv_dag_order *order, onv_error *err)
{
    (void)options;
    return onv_dag_improve(dag, order->nodes, &order->peak_bytes, err);
}
