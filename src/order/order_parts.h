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
#ifndef ONV_ORDER_ORDER_PARTS_H
#define ONV_ORDER_ORDER_PARTS_H

#include "order/dag.h"
#include "order/order.h"

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
