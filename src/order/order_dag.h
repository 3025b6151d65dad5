/* Orders found on a dag, and the bridge from there to the strategies of order.h. */
#ifndef ONV_ORDER_ORDER_DAG_H
#define ONV_ORDER_ORDER_DAG_H

#include "base/arena.h"
#include "base/status.h"
#include "graph/liveness.h"
#include "order/order.h"

/* The ordering problem without ONNX: nodes, the values between them, and bytes.
 *
 *   value   bytes; written by one node, or by none (an input of the graph); read by any number of
 *           nodes; an output of the graph or not
 *   node    reads values, writes values, and needs `need` bytes beyond what was live before it
 *           while it runs: what it writes, and what exists only meanwhile
 *   order   all nodes, each behind the writers of what it reads
 *
 * Lives are those of live.h: an input is live from the first step through its last use (one that
 * nobody reads: in the first step), an output through the last step, a value that nobody reads in
 * its own step. So the bytes live between two steps depend on the set of nodes that have run, not
 * on their order, and a step takes the bytes live before it and its node's need.
 *
 * A value of 0 bytes is an edge. Everything lies in the dag's own arena.
 */

#define ONV_DAG_NONE UINT32_MAX

typedef struct onv_dag_value {
    uint64_t bytes;
    uint32_t writer; /* ONV_DAG_NONE: an input */
    bool is_output;
} onv_dag_value;

typedef struct onv_dag_read {
    uint32_t node, value;
} onv_dag_read;

/* Those of k are at[start[k]] up to at[start[k + 1]]. */
typedef struct onv_list {
    uint32_t *start, *at;
} onv_list;

typedef struct onv_dag {
    uint32_t n_nodes, n_values;
    onv_dag_value *values;
    uint64_t *need;            /* by node */
    uint64_t *kept;            /* by node: bytes of what it writes that outlive its step */
    onv_list reads, writes;    /* by node: values, none twice */
    onv_list readers, writers; /* by value: nodes; at most one writes it */
    uint64_t start_bytes;      /* inputs that are read or outputs: live before the first step */
    uint64_t first_bytes;      /* other inputs: live in the first step only */
    uint64_t *early; /* by node: its need in the first step of its subgraphs, which is its need
                             where it has none; NULL: no node has subgraphs */
    onv_arena arena;
} onv_dag;

static inline uint32_t onv_list_length(const onv_list *list, uint32_t k)
{
    return list->start[k + 1] - list->start[k];
}

/* Whether a value is live behind the step that writes it. */
static inline bool onv_dag_lasts(const onv_dag *dag, uint32_t value)
{
    return dag->values[value].is_output || onv_list_length(&dag->readers, value) > 0;
}

/* What a node needs beyond start_bytes where it is the first of the order: inputs that nobody reads are
 * there in its first step alone. */
static inline uint64_t onv_dag_first_need(const onv_dag *dag, uint32_t node)
{
    uint64_t early = dag->early != NULL ? dag->early[node] : dag->need[node];
    early += dag->first_bytes;
    return early > dag->need[node] ? early : dag->need[node];
}

/* `extra` (by node, NULL: none) are the bytes that exist only while a node runs. A pair of node and
 * value may come twice. Fails where all bytes together do not fit 63 bits. The graph must have no
 * cycles. */
onv_status onv_dag_init(onv_dag *dag, uint32_t n_nodes, const uint64_t *extra,
                        const onv_dag_value *values, uint32_t n_values, const onv_dag_read *reads,
                        size_t n_reads, onv_error *err);
void onv_dag_cleanup(onv_dag *dag);

/* The main graph; node n is the nth of the file. `live` gives the sizes, and with them what the
 * subgraphs of a node hold, which counts as the node's need. Constants are values of 0 bytes. */
onv_status onv_dag_init_model(onv_dag *dag, const onv_model *model, const onv_live *live,
                              onv_error *err);

/* The bytes of every step of an order. Linear. */
onv_status onv_dag_steps(const onv_dag *dag, const uint32_t *order, uint64_t *bytes,
                         onv_error *err);

/* The largest of them. */
onv_status onv_dag_peak(const onv_dag *dag, const uint32_t *order, uint64_t *bytes, onv_error *err);

/* Whether the order holds every node once, behind the writers of what it reads. */
onv_status onv_dag_check_order(const onv_dag *dag, const uint32_t *order, onv_error *err);

typedef struct onv_dag_order {
    uint32_t *nodes; /* the caller's; comes in as any valid order */
    bool has_bound;  /* the next three are set */
    uint64_t peak_bytes, lower_bound_bytes;
    uint64_t searched; /* states looked at */
} onv_dag_order;

onv_status onv_dag_order_greedy(const onv_dag *dag, const onv_order_options *options,
                                onv_dag_order *order, onv_error *err);
onv_status onv_dag_order_optimal(const onv_dag *dag, const onv_order_options *options,
                                 onv_dag_order *order, onv_error *err);

/* ONNX Runtime's, of the main graph. */
onv_status onv_order_compute_ort(onv_model *model, onv_order_result *result, onv_error *err);

/* --- Nodes that were taken ----------------------------------------------------------------------
 *
 * One by one, from the beginning of the order or from its end. Seen from either side a value is live from the first node that
 * opens it through the last one that closes it: forward the writer opens it and readers close it, backward its readers open it
 * and the writer closes it. A node may be taken once all that it closes has been opened by each of its openers. */
typedef struct onv_front {
    const onv_dag *dag;
    bool backward;
    onv_list opens, closes;       /* of the dag, by node */
    onv_list openers, closers;    /* by value */
    uint64_t *bytes, *passing;    /* by value: of all that last, and without results of the graph */
    const uint64_t *adds, *frees; /* one and the other: once it is opened, and once it is closed */
    uint64_t result_bytes;
    uint32_t *n_opened, *to_close; /* by value: openers taken, and closers not taken */
    uint32_t *waits; /* by node: values that it closes and that are not opened by all */
    uint64_t live;   /* what is live behind the nodes taken; the caller's to set */
} onv_front;

/* What taking a node, or giving it back, does to others; any may be NULL. */
typedef struct onv_front_events {
    void *context;
    void (*ready)(void *context, uint32_t node);
    void (*waits_again)(void *context, uint32_t node);
    /* From now on taking it leaves so many bytes less live; it may be one that was taken. */
    void (*cheaper)(void *context, uint32_t node, uint64_t bytes);
} onv_front_events;

/* False when memory is short. */
bool onv_front_init(onv_front *f, const onv_dag *dag, onv_arena *arena);
/* Nothing is taken. */
void onv_front_start(onv_front *f, bool backward);
void onv_front_take(onv_front *f, uint32_t node, const onv_front_events *events);
void onv_front_undo(onv_front *f, uint32_t node, const onv_front_events *events);

/* Bytes live behind the node once it is taken. */
static inline uint64_t onv_front_after(const onv_front *f, uint32_t node)
{
    uint64_t live = f->live;
    for (uint32_t i = f->opens.start[node]; i < f->opens.start[node + 1]; i++)
        if (f->n_opened[f->opens.at[i]] == 0) live += f->adds[f->opens.at[i]];
    for (uint32_t i = f->closes.start[node]; i < f->closes.start[node + 1]; i++)
        if (f->to_close[f->closes.at[i]] == 1) live -= f->frees[f->closes.at[i]];
    return live;
}

/* Bytes of its step, given what is live behind it. */
static inline uint64_t onv_front_step(const onv_front *f, uint32_t node, uint64_t after)
{
    return (f->backward ? after : f->live) + f->dag->need[node];
}

/* Whether taking it makes another one ready. */
bool onv_front_readies(const onv_front *f, uint32_t node);

/* Quick orders of a dag: always choose what looks best now, in several ways, and keep the best. */

/* The best quick order and its peak. n log n. */
onv_status onv_dag_greedy(const onv_dag *dag, uint32_t *order, uint64_t *peak, onv_error *err);

/* The same, or `order` as it comes in, a valid one, if none is better. */
onv_status onv_dag_improve(const onv_dag *dag, uint32_t *order, uint64_t *peak, onv_error *err);

/* The parts of the exact search for an order.
 *
 *     dag ──bound────▶ bytes that every order needs
 *         ──partition▶ groups of nodes that an optimal order may run one after the other
 *         ──reduce───▶ a smaller dag, nodes that belong together being one
 *         ──search───▶ the optimal order of what is left
 *
 * What makes them right: the bytes live after a set of nodes has run are a submodular function of
 * the set. So wherever a set of nodes leads back to at most the bytes that were live before it,
 * with more than that all the way there, running it at once can only help what runs later.
 */

/* --- Bound ------------------------------------------------------------------------------------- */

/* While a node runs, everything is live that was written before it in every order and is read after
 * it in every order. The largest such sum is a lower bound. `order` is any good one and decides
 * which nodes are looked at first; no more than `work` steps are spent. */
onv_status onv_dag_bound(const onv_dag *dag, const uint32_t *order, uint64_t work, uint64_t *bound,
                         onv_error *err);

/* --- Partition --------------------------------------------------------------------------------- */

/* group_of[n]: an order that is optimal among those that run the groups 0, 1, 2 ... in turn is
 * optimal, if no order's peak is below `bound`. `order` comes in valid and goes out sorted by
 * group, without growing its peak beyond `bound`; the first and the last group need no more
 * search. `bound` also lets nodes run at once that shrink memory (and at the end those that, seen
 * backwards, do). */
onv_status onv_dag_partition(const onv_dag *dag, uint64_t bound, uint32_t *order,
                             uint32_t *group_of, uint32_t *n_groups, onv_error *err);

/* Group `group` as a dag of its own. `nodes` are its `count` nodes; node i of the part is nodes[i].
 * `before` are the bytes live before the group. Linear in the whole dag. */
onv_status onv_dag_part(const onv_dag *dag, const uint32_t *group_of, uint32_t group,
                        const uint32_t *nodes, uint32_t count, uint64_t before, onv_dag *part,
                        onv_error *err);

/* --- Reduction --------------------------------------------------------------------------------- */

typedef struct onv_dag_reduced {
    onv_dag dag;
    /* Node i stands for sequence[start[i]] up to sequence[start[i + 1]]; in the dag's arena. */
    uint32_t *start, *sequence;
} onv_dag_reduced;

/* Joins nodes that stand next to each other in some optimal order. Needs first_bytes == 0. */
onv_status onv_dag_reduce(const onv_dag *dag, onv_dag_reduced *reduced, onv_error *err);

/* --- Search ------------------------------------------------------------------------------------ */

typedef struct onv_dag_search {
    uint64_t lower, upper;            /* in and out: no order is below; `order` has `upper` */
    uint32_t *order;                  /* in and out */
    bool backward;                    /* in: from the end of the order to its beginning */
    uint64_t budget;                  /* in: units of work; out: what is left */
    uint64_t searched;                /* states, added to */
    const onv_order_options *options; /* for cancelling */
} onv_dag_search;

/* Looks for an order with a peak of at most `limit`, below `upper`. Where there is none, and the
 * budget suffices to know, `lower` becomes the least that was just out of reach. */
onv_status onv_dag_search_run(const onv_dag *dag, onv_dag_search *job, uint64_t limit,
                              onv_error *err);

#endif
