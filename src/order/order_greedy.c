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
    onv_front front;
    taste taste;
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

static void make_ready(void *context, uint32_t node)
{
    greedy *g = context;
    g->ready_at[node] = g->clock++;
    push(g, node);
}

static void shrink_growth(void *context, uint32_t node, uint64_t bytes)
{
    greedy *g = context;
    if (bytes == 0 || g->ready_at[node] == -2) return;
    g->growth[node] -= (int64_t)bytes;
    if (g->ready_at[node] >= 0) push(g, node);
}

/* --- Orders ------------------------------------------------------------------------------------ */

static void start(greedy *g, bool backward)
{
    onv_front *f = &g->front;
    const uint32_t n = f->dag->n_nodes;
    memset(g->stamp, 0, n * sizeof *g->stamp);
    memset(g->ready_at, 0xff, n * sizeof *g->ready_at);
    g->clock = 0;
    g->heap.count = 0;
    onv_front_start(f, backward);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t node = backward ? i : n - 1 - i;
        g->growth[node] = (int64_t)(onv_front_after(f, node) - f->live);
        if (f->waits[node] == 0) make_ready(g, node);
    }
}

/* Gives the peak: how a node changes what is live is known when it is taken. */
static uint64_t fill_order(greedy *g, bool backward, uint32_t *order)
{
    const onv_front_events events = {.context = g, .ready = make_ready, .cheaper = shrink_growth};
    const onv_dag *dag = g->front.dag;
    uint64_t peak = 0;
    start(g, backward);
    for (uint32_t taken = 0; !g->failed && g->heap.count > 0;) {
        entry e = pop(g);
        if (g->ready_at[e.node] == -2 || e.stamp != g->stamp[e.node]) continue;
        uint32_t place = backward ? dag->n_nodes - 1 - taken : taken;
        uint64_t live = g->front.live, after = live + (uint64_t)g->growth[e.node];
        uint64_t step = backward ? after : live;
        step += place == 0 ? onv_dag_first_need(dag, e.node) : dag->need[e.node];
        if (step > peak) peak = step;
        g->ready_at[e.node] = -2;
        g->front.live = after;
        order[place] = e.node;
        taken++;
        onv_front_take(&g->front, e.node, &events);
    }
    return peak;
}

static onv_status try_all(greedy *g, uint32_t *order, uint64_t *peak, uint32_t *spare,
                          onv_error *err)
{
    const onv_dag *dag = g->front.dag;
    bool all = dag->n_nodes <= ALL_TASTES_MAX_NODES;
    *peak = UINT64_MAX;
    for (int t = NEWEST_OF_SMALLEST; t <= (all ? NEWEST_BUT_SHRINKS : NEWEST_OF_SMALLEST); t++) {
        for (int backward = 0; backward < 2; backward++) {
            ONV_WORK(ORDER_WORK * ((uint64_t)dag->n_nodes + dag->reads.start[dag->n_nodes]));
            g->taste = (taste)t;
            uint64_t bytes = fill_order(g, backward, spare);
            if (g->failed) return onv_fail_memory(err);
            if (bytes >= *peak) continue;
            *peak = bytes;
            memcpy(order, spare, dag->n_nodes * sizeof *order);
        }
    }
    return ONV_OK;
}

onv_status onv_dag_greedy(const onv_dag *dag, uint32_t *order, uint64_t *peak, onv_error *err)
{
    onv_arena arena;
    greedy g = {.taste = NEWEST_OF_SMALLEST};
    onv_arena_init(&arena, SIZE_MAX);
    g.growth = ONV_ARENA_ARRAY(&arena, int64_t, dag->n_nodes);
    g.ready_at = ONV_ARENA_ARRAY(&arena, int64_t, dag->n_nodes);
    g.stamp = ONV_ARENA_ARRAY(&arena, uint32_t, dag->n_nodes);
    uint32_t *spare = ONV_ARENA_ARRAY(&arena, uint32_t, dag->n_nodes);
    onv_status status = onv_front_init(&g.front, dag, &arena) ? try_all(&g, order, peak, spare, err)
                                                              : onv_fail_memory(err);
    onv_arena_cleanup(&arena);
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
