/* Orders found on a dag, and the bridge from there to the strategies of order.h. */
#ifndef ONV_ORDER_ORDER_DAG_H
#define ONV_ORDER_ORDER_DAG_H

#include "order/dag.h"
#include "order/order.h"

typedef struct onv_dag_order {
    uint32_t *nodes; /* the caller's; comes in as any valid order */
    bool has_bound;  /* the next three are set */
    uint64_t peak_bytes, lower_bound_bytes;
    uint64_t searched;
} onv_dag_order;

typedef onv_status (*onv_dag_strategy)(const onv_dag *dag, const onv_order_options *options,
                                       onv_dag_order *order, onv_error *err);

onv_status onv_dag_order_greedy(const onv_dag *dag, const onv_order_options *options,
                                onv_dag_order *order, onv_error *err);
onv_status onv_dag_order_optimal(const onv_dag *dag, const onv_order_options *options,
                                 onv_dag_order *order, onv_error *err);

/* A strategy applied to the main graph, from the order of the file. */
onv_status onv_order_by_dag(onv_dag_strategy strategy, onv_model *model,
                            const onv_order_options *options, onv_order_result *result,
                            onv_error *err);

#endif
