/* RNN, GRU and LSTM. They differ in the number of gates and of states.
 *
 * layout 0: X [seq, batch, input], Y [seq, directions, batch, hidden], Y_h [directions, batch, hidden]
 * layout 1: X [batch, seq, input], Y [batch, seq, directions, hidden], Y_h [batch, directions, hidden]
 */
#include "ops/op.h"

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

static const onv_op rows[] = {
    ONV_SAYS("RNN", 1, 3, 6, 0, 2, RECURRENT("1"), .alike = ONV_BITS(4)),
    ONV_SAYS("GRU", 1, 3, 6, 0, 2, RECURRENT("3"), .alike = ONV_BITS(4)),
    ONV_SAYS("LSTM", 1, 3, 8, 0, 3, RECURRENT("4"), .alike = ONV_BITS(4)),
};

const onv_op_family onv_ops_rnn = {"", rows, sizeof rows / sizeof rows[0]};
