/* Ids of what a model holds: places in its arrays (model.h). */
#ifndef ONV_IR_IDS_H
#define ONV_IR_IDS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct onv_value_id {
    uint32_t index;
} onv_value_id;

typedef struct onv_node_id {
    uint32_t index;
} onv_node_id;

typedef struct onv_graph_id {
    uint32_t index;
} onv_graph_id;

/* An absent optional input or output; no producer. */
#define ONV_NO_VALUE ((onv_value_id){UINT32_MAX})
#define ONV_NO_NODE  ((onv_node_id){UINT32_MAX})
#define ONV_NO_GRAPH ((onv_graph_id){UINT32_MAX})

static inline bool onv_is_value(onv_value_id id)
{
    return id.index != UINT32_MAX;
}

/* The same one, and one. */
static inline bool onv_is_same_value(onv_value_id a, onv_value_id b)
{
    return a.index == b.index && onv_is_value(a);
}

static inline bool onv_is_node(onv_node_id id)
{
    return id.index != UINT32_MAX;
}

#endif
