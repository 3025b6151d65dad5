/* RNN, GRU and LSTM. They differ in the number of gates and of states.
 *
 * layout 0: X [seq, batch, input], Y [seq, directions, batch, hidden], Y_h [directions, batch, hidden]
 * layout 1: X [batch, seq, input], Y [batch, seq, directions, hidden], Y_h [batch, directions, hidden]
 */
#include "ops/op.h"

enum { X, W, R, B, SEQUENCE_LENS, INITIAL_H, INITIAL_C };

/* "forward", "reverse" and "bidirectional"; the default of GRU 1 is written "foward". Per step, direction and sample every gate
 * is a product with the input and one with the state. */
#define LAST                                                                                       \
    "[if(attr.layout or 0, batch, directions), if(attr.layout or 0, directions, batch), hidden]"
#define RECURRENT(gates)                                                                           \
    "(x[_, _, input], w[directions, " gates " * hidden, input], "                                  \
    "r[directions, " gates " * hidden, hidden], b, sequence_lens[batch], initial_h[_, _, _], "     \
    "initial_c[_, _, _]) where hidden = attr.hidden_size or hidden, "                              \
    "directions = 1 + attr.direction in (forward, foward, reverse, bidirectional) / 3, "           \
    "steps = if(attr.layout or 0, x.1, x.0), batch = if(attr.layout or 0, x.0, x.1), "             \
    "batch = if(attr.layout or 0, initial_h.0, initial_h.1), "                                     \
    "batch = if(attr.layout or 0, initial_c.0, initial_c.1): "                                     \
    "[if(attr.layout or 0, batch, steps), if(attr.layout or 0, steps, directions), "               \
    "if(attr.layout or 0, directions, batch), hidden], " LAST ", " LAST                            \
    "; steps * batch * directions * " gates " * hidden * (input + hidden)"

/* Input, weights, initial states and the output; the reserve of cuDNN, which is no value of the graph,
 * is added where training is sized. */
#define SAVES_RNN                                                                                  \
    .alike = ONV_BITS(4),                                                                          \
    .traits = {.save_in = ONV_BIT(X) | ONV_BIT(W) | ONV_BIT(R) | ONV_BIT(B) | ONV_BIT(INITIAL_H) | \
                          ONV_BIT(INITIAL_C),                                                      \
               .save_out = ONV_BIT(0)}

static const onv_op rows[] = {
    ONV_SAYS("RNN", 1, 3, 6, 0, 2, RECURRENT("1"), SAVES_RNN),
    ONV_SAYS("GRU", 1, 3, 6, 0, 2, RECURRENT("3"), SAVES_RNN),
    ONV_SAYS("LSTM", 1, 3, 8, 0, 3, RECURRENT("4"), SAVES_RNN),
};

const onv_op_family onv_ops_rnn = {"", rows, sizeof rows / sizeof rows[0]};
