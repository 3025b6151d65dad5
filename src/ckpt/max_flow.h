/* Minimum cuts of directed graphs.
 *
 * Edges have capacities; ONV_FLOW_INFINITE is never cut. Of all minimum cuts the one closest to the
 * sink is taken: its side is every vertex from which something could still flow there.
 *
 * Dinic's algorithm: breadth first for levels, then paths along them until none is left. Work is
 * counted in edges looked at, and bounded.
 */
#ifndef ONV_CKPT_MAX_FLOW_H
#define ONV_CKPT_MAX_FLOW_H

#include "base/arena.h"
#include "base/status.h"
#include "base/vec.h"

#define ONV_FLOW_INFINITE UINT64_MAX

/* An edge stands at an even place, what could flow back along it behind it. */
typedef struct onv_flow_edge {
    uint32_t to;
    uint32_t next; /* of the same vertex: 1 + its place, 0: none */
    uint64_t left; /* capacity that is not used; ONV_FLOW_INFINITE: without end */
} onv_flow_edge;

typedef struct onv_flow {
    onv_arena *arena;
    uint32_t n_vertices;
    uint32_t *first; /* by vertex: 1 + its first edge */
    ONV_VEC(onv_flow_edge) edges;
    uint64_t finite; /* the sum of capacities with an end */
    bool failed;     /* memory, or the sum does not fit */
} onv_flow;

/* Tables live in `arena`; clean up in either case. */
onv_status onv_flow_init(onv_flow *flow, uint32_t n_vertices, onv_arena *arena, onv_error *err);
void onv_flow_cleanup(onv_flow *flow);
/* Failures stick: onv_flow_cut tells. */
void onv_flow_connect(onv_flow *flow, uint32_t from, uint32_t to, uint64_t capacity);

/* Sets `at_sink` by vertex, and the cut's capacity. ONV_ERR_LIMIT: more work than the bound;
 * ONV_ERR_MODEL: a path without end leads from source to sink. Once for each graph. */
onv_status onv_flow_cut(onv_flow *flow, uint32_t source, uint32_t sink, bool *at_sink,
                        uint64_t *capacity, onv_error *err);

#endif
