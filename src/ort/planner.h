/* The planner's state: plan.c has the rules within a graph, flow.c those between graphs. */
#ifndef ONV_ORT_PLANNER_H
#define ONV_ORT_PLANNER_H

#include "ort/ort.h"

#define NONE UINT32_MAX

typedef struct onv_ort_buffer_state {
    uint32_t users_left; /* reads of the values in it that are still to come */
    onv_value_id shape;  /* the value it was made for; those it holds later don't change it */
    bool is_free, is_read;
} onv_ort_buffer_state;

/* Buffers of a graph that may be used again for one shape and element size. */
typedef struct onv_ort_freed {
    onv_value_id shape; /* of the first of them */
    onv_graph_id graph;
    uint32_t hash;   /* 0: an empty slot */
    uint32_t newest; /* the one freed last; NONE */
} onv_ort_freed;

typedef struct onv_ort_planner {
    onv_arena scratch; /* for what is only needed while it plans */
    onv_model *model;
    const onv_live *live;
    const onv_ort_session *session;
    onv_ort_provider provider;
    onv_ort_plan *plan;
    bool *is_host;       /* by value: on the side that is not planned */
    bool *is_placed;     /* by value */
    bool *is_state;      /* by value: handed to the next iteration */
    bool *is_stacked;    /* by value: its slices are kept */
    uint32_t *uses;      /* by value: reads in all */
    uint32_t *result_of; /* by value: which output of its graph it is; NONE */
    uint32_t *step_of;   /* by node */
    bool *is_entered;    /* by node: its outputs are placed */
    onv_ort_buffer_state *state;
    onv_ort_freed *freed; /* a hash table */
    size_t freed_mask;
    uint32_t *freed_before; /* by buffer: the one of its kind that was freed before it; NONE */
    uint32_t *waiting;      /* no reads left, but an outer node still runs */
    uint32_t n_waiting;
} onv_ort_planner;

/* Whether ONNX Runtime knows the whole shape before it runs. */
bool onv_ort_is_known(const onv_ort_planner *p, onv_value_id id);

/* A new buffer of `graph`. */
uint32_t onv_ort_add_buffer(onv_ort_planner *p, const onv_buffer *row, onv_graph_id graph,
                            onv_ort_life life);

/* The value of a row is in buffer `b` from now on. */
void onv_ort_take(onv_ort_planner *p, const onv_buffer *row, uint32_t b);

/* By the rules 1 to 5, once. */
void onv_ort_place_output(onv_ort_planner *p, const onv_node *node, const onv_buffer *row);

/* An output of a subgraph: what becomes of it is its owner's affair. */
void onv_ort_place_result(onv_ort_planner *p, const onv_buffer *row);

/* The main graph's inputs in the order in which Python feeds them; a failure is one of the arenas. */
void onv_ort_list_feeds(onv_ort_planner *p);

/* The spans of graphs, and where what they hand out stands. */
void onv_ort_list_graphs(onv_ort_planner *p);

/* Before the first step of a region: what its owner allocates before the subgraph runs. */
void onv_ort_enter(onv_ort_planner *p, const onv_region *region);

/* What a Loop without iterations allocates. */
void onv_ort_before_step(onv_ort_planner *p, const onv_node *node, uint32_t step);

#endif
