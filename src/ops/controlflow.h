/* What control flow and sequences share: values that may be one of several, and bodies that run
 * again and again.
 *
 * A value that comes from one branch or another, or from one iteration or the next, has the merged
 * type: dims that are equal stay, others become a fresh symbol whose bound is the larger of the two.
 */
#ifndef ONV_OPS_CONTROLFLOW_H
#define ONV_OPS_CONTROLFLOW_H

#include "ops/op.h"

/* The type that holds for a value of type `a` or `b`. Fails where they cannot be one value: a tensor
 * and a sequence, two element types. */
onv_status onv_type_merge(onv_op_ctx *c, const onv_type *a, const onv_type *b, onv_type *out);

/* The same for contents (NULL: nothing is known). */
const onv_known *onv_known_merge(onv_op_ctx *c, const onv_known *a, const onv_known *b);

/* The type that the elements of a sequence share; all unknown where nothing is known of them. */
onv_status onv_sequence_elem(onv_op_ctx *c, const onv_type *sequence, onv_type *elem);

/* Longer lists of items that differ are shared, but not copied. */
enum { ONV_ITEMS_COPIED = 128 };

/* Room for the types of so many items; NULL where memory is short. */
onv_items *onv_sequence_items(onv_op_ctx *c, uint32_t n);
/* Of a sequence of a known number of items; NULL: nothing is known of it. */
const onv_type *onv_sequence_item(const onv_type *sequence, int64_t i);

/* The same type as far as both are known, dim by dim. */
bool onv_type_same(const onv_type *a, const onv_type *b);

/* Types of each kind; where nothing is known of the elements their type is NULL. */
onv_type onv_type_unknown(void);
onv_type onv_type_tensor(onv_op_ctx *c, onv_dtype dtype, const onv_dim *dims, int rank);
onv_type onv_type_sequence(onv_op_ctx *c, const onv_type *elem, onv_items *items, onv_dim length);

/* The subgraph in attribute `name`, and the numbers it takes and gives. */
onv_status onv_op_body(onv_op_ctx *c, const char *name, onv_graph_id *body, uint32_t *n_in,
                       uint32_t *n_out);

/* Runs a subgraph that may not fit the shapes: then *why says how, the status is ONV_OK and `out` is
 * not set. Other failures (memory, limits, sizes that do not fit 61 bits) stay failures. */
onv_status onv_op_try_body(onv_op_ctx *c, onv_graph_id body, const onv_op_value *in, uint32_t n_in,
                           onv_op_value *out, uint32_t n_out, const char **why);

/* A value of the node with its contents, as a subgraph gets it. */
onv_op_value onv_op_in_value(onv_op_ctx *c, uint32_t k);

/* A body that runs `trips` times and hands `n_states` values on from one iteration to the next. */
typedef struct onv_loop {
    onv_graph_id body;
    uint32_t n_in, n_out;         /* of the body */
    uint32_t n_states;            /* values carried */
    uint32_t in_first, out_first; /* where they stand among the body's inputs and outputs */
    onv_op_value *in;             /* n_in, the states with their initial values */
    onv_op_value *initial;        /* n_states: these, kept by onv_loop_settle */
    onv_op_value *out;            /* n_out: what the body gives once nothing changes any more */
    onv_dim most_trips; /* no iteration is later than this; unknown where there is no limit */
    struct onv_carried *carried;
    const onv_op_value *final; /* n_states: what they are at the end, where iterations were run one
                                  by one; else NULL */
    uint32_t first_symbol;     /* symbols from here on were made inside the loop */
} onv_loop;

/* Allocates the arrays of a loop. False when memory is short. */
bool onv_loop_init(onv_op_ctx *c, onv_loop *loop);

/* What decides whether a Loop goes on: the condition it is given (true where it has none), and what the body
 * makes of it. Unknown where it cannot be told. */
onv_dim onv_loop_condition(onv_op_ctx *c);
onv_dim onv_loop_next(onv_op_ctx *c, const onv_op_value *out);

/* Runs the body until the types of the states cover every iteration. */
onv_status onv_loop_settle(onv_op_ctx *c, onv_loop *loop);

/* The contents of an iteration number. */
const onv_known *onv_loop_number(onv_op_ctx *c, onv_dim iteration);

/* Where sizes or the number of iterations are still open after onv_loop_settle: runs the iterations
 * of a Loop one by one, if what is known allows it and they are few. */
onv_status onv_loop_unroll(onv_op_ctx *c, onv_loop *loop, onv_dim *trips);

/* State k after `trips` iterations. */
onv_op_value onv_loop_result(onv_op_ctx *c, const onv_loop *loop, uint32_t k, onv_dim trips);

#endif
