/* Recurrent layers, as PyTorch runs them with cuDNN: one operation for all layers of a module, or, of graphs, for a layer in all its
 * directions, which the next layer of the module joins.
 *
 *     layer.out = onv_emit_rnn_output(e, &layer.problem);
 *     reserve = onv_emit_rnn_begin(e, &layer);
 *     ... onv_emit_out() of the last states ...
 *     onv_emit_rnn_end(e, reserve);
 */
#ifndef ONV_EMIT_RNN_H
#define ONV_EMIT_RNN_H

#include "emit/emit.h"

/* A layer while it is emitted, or `problem.layers` of them in one operation: without `begins` it follows another one. */
typedef struct onv_rnn_layer {
    const uint32_t *weights;
    size_t n_weights;
    uint32_t x, h, c, lengths, out;
    onv_rnn_problem problem; /* `input` of the first layer; layers 0: one */
    int64_t width; /* of its cell, which an LSTM may project to a smaller state; 0: it does not */
    bool begins;   /* a module */
    bool drops;    /* between layers of this operation */
    bool lacks_bias;
} onv_rnn_layer;

/* What autocast makes of what cuDNN reads: half, whatever its own type is, and of the weights of a module one tensor, of which they are
 * parts and which is not there for the next call (aten/src/ATen/cudnn/AutocastRNN.cpp). Weights come before the rest. */
uint32_t onv_amp_rnn(onv_emitter *e, uint32_t x);
void onv_amp_rnn_weights(onv_emitter *e, uint32_t *weights, size_t count);
/* What the layer computes: [seq, batch, directions, hidden], contiguous, whatever the module's layout. */
uint32_t onv_emit_rnn_output(onv_emitter *e, const onv_rnn_problem *p);
/* The output with the directions before the batch, or the batch before all. */
uint32_t onv_emit_rnn_result(onv_emitter *e, uint32_t out, bool batch_first);
/* Up to the results; gives the bytes of the reserve. */
uint64_t onv_emit_rnn_begin(onv_emitter *e, const onv_rnn_layer *layer);
void onv_emit_rnn_end(onv_emitter *e, uint64_t reserve);

/* _thnn_fused_gru_cell and _thnn_fused_lstm_cell. */
typedef struct onv_cell {
    bool is_lstm;
    uint32_t input,
        own; /* the products with input and state; `own` ONV_NO_TENSOR: those of a constant state */
    uint32_t before;    /* the state, of an LSTM that of its cell */
    uint32_t biases[2]; /* of input and state, which the kernel adds; ONV_NO_TENSOR: none */
} onv_cell;

/* The result has the shape; `after`: the new state of an LSTM's cell. */
uint32_t onv_emit_cell(onv_emitter *e, const onv_cell *cell, const onv_shape *shape,
                       uint32_t *after);

/* [steps, batch, directions x hidden] of what a layer gives. */
uint32_t onv_emit_rnn_sequence(onv_emitter *e, uint32_t out);

#endif
