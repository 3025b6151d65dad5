/* Orders of execution: in which sequence the nodes of the main graph run.
 *
 * An order is a strategy, a row of onv_orders. Each gives a topological order of the main graph;
 * subgraphs keep the order of the file. Constant nodes are part of it, they cost nothing.
 */
#ifndef ONV_ORDER_ORDER_H
#define ONV_ORDER_ORDER_H

#include "ir/model.h"

typedef struct onv_order_options {
    uint64_t effort;                  /* units of search, deterministic; 0: the default */
    bool (*cancelled)(void *context); /* polled rarely; may be NULL */
    void *cancel_context;
} onv_order_options;

typedef struct onv_order_result {
    const char *name;   /* of the order */
    onv_node_id *nodes; /* of the main graph, all of them; in the model's arena */
    uint32_t n_nodes;
    bool has_bound;             /* the order was searched for, the next fields are set */
    uint64_t peak_bytes;        /* of this order, by the definitions of live.h */
    uint64_t lower_bound_bytes; /* no order has a lower peak */
    bool proven;                /* the two are equal */
} onv_order_result;

struct onv_dag;
struct onv_dag_order;

typedef struct onv_order {
    const char *name;    /* as --order takes it */
    const char *summary; /* one line */
    onv_status (*compute)(onv_model *model, onv_order_result *result, onv_error *err);
    /* Instead of that: on the dag of the main graph (order_dag.h). */
    onv_status (*on_dag)(const struct onv_dag *dag, const onv_order_options *options,
                         struct onv_dag_order *order, onv_error *err);
} onv_order;

extern const onv_order onv_orders[];
extern const size_t onv_n_orders;

/* By name; NULL if there is none. */
const onv_order *onv_order_find(const char *name);

/* Requires inference. `options` may be NULL. */
onv_status onv_order_compute(const onv_order *order, onv_model *model,
                             const onv_order_options *options, onv_order_result *result,
                             onv_error *err);

#endif
