/* Quick orders of a dag: always choose what looks best now, in several ways, and keep the best. */
#ifndef ONV_ORDER_ORDER_GREEDY_H
#define ONV_ORDER_ORDER_GREEDY_H

#include "order/dag.h"

/* The best quick order and its peak. n log n. */
onv_status onv_dag_greedy(const onv_dag *dag, uint32_t *order, uint64_t *peak, onv_error *err);

/* The same, or `order` as it comes in, a valid one, if none is better. */
onv_status onv_dag_improve(const onv_dag *dag, uint32_t *order, uint64_t *peak, onv_error *err);

#endif
