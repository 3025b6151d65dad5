/* RNN, GRU and LSTM. They differ in the number of gates and of states.
 *
 * layout 0: X [seq, batch, input], Y [seq, directions, batch, hidden], Y_h [directions, batch, hidden]
 * layout 1: X [batch, seq, input], Y [batch, seq, directions, hidden], Y_h [batch, directions, hidden]
 */
#include <string.h>

#include "ops/op.h"
#include "ops/tensor.h"

enum { X, W, R, B, SEQUENCE_LENS, INITIAL_H, INITIAL_C };

typedef struct rnn_sizes {
    bool batch_first;
    onv_dim directions, seq, batch, input, hidden;
} rnn_sizes;

static int64_t count_gates(const onv_op_ctx *c)
{
    return strcmp(c->op->name, "LSTM") == 0 ? 4 : strcmp(c->op->name, "GRU") == 0 ? 3 : 1;
}

/* "forward", "reverse" and "bidirectional"; the default of GRU 1 is written "foward". */
static onv_status read_directions(onv_op_ctx *c, onv_dim *directions)
{
    const char *direction = onv_op_attr_string(c, "direction", "forward");
    bool both = strcmp(direction, "bidirectional") == 0;
    if (!both && strcmp(direction, "forward") != 0 && strcmp(direction, "foward") != 0 &&
        strcmp(direction, "reverse") != 0)
        return onv_op_fail(c, "direction is '%s', not forward, reverse or bidirectional",
                           direction);
    *directions = onv_dim_const(both ? 2 : 1);
    return ONV_OK;
}

/* W is [directions, gates * hidden, input], R is [directions, gates * hidden, hidden]. */
static onv_status check_weights(onv_op_ctx *c, rnn_sizes *s)
{
    onv_dim gates = onv_dim_mul(c->dims, onv_dim_const(count_gates(c)), s->hidden);
    for (uint32_t k = W; k <= R; k++) {
        onv_dim size = s->directions;
        ONV_TRY(onv_tensor_need_rank(c, k, 3, 3));
        ONV_TRY(
            onv_tensor_unify(c, "the directions of the weights", &size, onv_op_in_dim(c, k, 0)));
        ONV_TRY(onv_tensor_unify(c, "the rows of the weights", &gates, onv_op_in_dim(c, k, 1)));
    }
    return onv_tensor_unify(c, "the input size", &s->input, onv_op_in_dim(c, W, 2));
}

static onv_status read_sizes(onv_op_ctx *c, rnn_sizes *s)
{
    int64_t hidden = onv_op_attr_int(c, "hidden_size", 0);
    s->batch_first = onv_op_attr_int(c, "layout", 0) != 0;
    ONV_TRY(onv_tensor_need_rank(c, X, 3, 3));
    ONV_TRY(read_directions(c, &s->directions));
    s->seq = onv_op_in_dim(c, X, s->batch_first ? 1 : 0);
    s->batch = onv_op_in_dim(c, X, s->batch_first ? 0 : 1);
    s->input = onv_op_in_dim(c, X, 2);
    if (hidden < 0) return onv_op_fail(c, "hidden_size is %lld", (long long)hidden);
    s->hidden = onv_op_in_dim(c, R, 2);
    ONV_TRY(onv_tensor_unify(c, "hidden_size and recurrence weights", &s->hidden,
                             hidden > 0 ? onv_dim_const(hidden) : ONV_DIM_UNKNOWN));
    ONV_TRY(check_weights(c, s));
    int batch_axis = s->batch_first ? 0 : 1;
    for (uint32_t k = INITIAL_H; k <= INITIAL_C; k++) {
        ONV_TRY(onv_tensor_need_rank(c, k, 3, 3));
        ONV_TRY(onv_tensor_unify(c, "the batch of input and initial state", &s->batch,
                                 onv_op_in_dim(c, k, batch_axis)));
    }
    return onv_tensor_need_vector(c, SEQUENCE_LENS, "the batch of input and sequence_lens",
                                  &s->batch);
}

static onv_status infer_rnn(onv_op_ctx *c)
{
    rnn_sizes s;
    onv_dtype dtype = onv_op_in_dtype(c, X);
    ONV_TRY(read_sizes(c, &s));
    onv_dim all[2][4] = {{s.seq, s.directions, s.batch, s.hidden},
                         {s.batch, s.seq, s.directions, s.hidden}};
    onv_dim last[2][3] = {{s.directions, s.batch, s.hidden}, {s.batch, s.directions, s.hidden}};
    onv_op_set_out(c, 0, dtype, all[s.batch_first], 4);
    onv_op_set_out(c, 1, dtype, last[s.batch_first], 3); /* Y_h */
    onv_op_set_out(c, 2, dtype, last[s.batch_first], 3); /* Y_c of LSTM */
    return ONV_OK;
}

/* Per step, direction and sample: every gate is a product with the input and one with the state. */
static onv_dim macs_rnn(onv_op_ctx *c)
{
    rnn_sizes s;
    if (read_sizes(c, &s) != ONV_OK) return ONV_DIM_UNKNOWN;
    onv_dim gates = onv_dim_const(count_gates(c)), width = onv_dim_add(c->dims, s.input, s.hidden);
    return ONV_PRODUCT(c, s.seq, s.batch, s.directions, gates, s.hidden, width);
}

/* Input, weights, initial states and the output; the reserve of cuDNN, which is no value of the graph,
 * is added where training is sized. */
#define SAVES_RNN                                                                                  \
    .traits = {.save_in = ONV_BIT(X) | ONV_BIT(W) | ONV_BIT(R) | ONV_BIT(B) | ONV_BIT(INITIAL_H) | \
                          ONV_BIT(INITIAL_C),                                                      \
               .save_out = ONV_BIT(0)}

static const onv_op rows[] = {
    ONV_OP("RNN", 1, 3, 6, 0, 2, infer_rnn, .macs = macs_rnn, SAVES_RNN),
    ONV_OP("GRU", 1, 3, 6, 0, 2, infer_rnn, .macs = macs_rnn, SAVES_RNN),
    ONV_OP("LSTM", 1, 3, 8, 0, 3, infer_rnn, .macs = macs_rnn, SAVES_RNN),
};

const onv_op_family onv_ops_rnn = {"", rows, sizeof rows / sizeof rows[0]};
