/* What kernels of the CPU provider take for themselves, on one thread. Read in source (onnxruntime/core/mlas,
 * core/providers/cpu, contrib_ops/cpu) and measured, ONNX Runtime 1.31. */
#include <string.h>

#include "base/checked.h"
#include "ort/scratch.h"

enum { FLOAT_BYTES = 4, UNIT = 256 /* that the arena rounds requests to */ };

typedef onv_ort_kernel kernel;

static void add(kernel *k, uint64_t values, uint64_t times, bool is_early)
{
    uint64_t n;
    onv_ort_scratch_row *row =
        onv_u64_mul(values, times, &n) ? onv_ort_add_scratch(k, n, FLOAT_BYTES) : NULL;
    if (row != NULL) row->is_early = is_early;
}

/* --- Convolutions ------------------------------------------------------------------------------ */

/* MlasConvPrepare: the windows side by side, as a matrix, or a piece of it. */
void onv_ort_cpu_conv(kernel *k)
{
    enum { PIECE = 128 * 128 };
    onv_conv_problem p;
    if (!onv_ort_describe_conv(k->model, k->node, &p) || p.dtype != ONV_FLOAT) return;
    uint64_t rows = (uint64_t)(p.in_channels / p.groups), columns = 1;
    bool is_direct = true, fits = true;
    for (uint32_t i = 0; i < p.spatial_rank && fits; i++) {
        is_direct &= p.kernel[i] == 1 && p.stride[i] == 1 && p.pad_begin[i] + p.pad_end[i] == 0;
        fits = onv_u64_mul(rows, (uint64_t)p.kernel[i], &rows) &&
               onv_u64_mul(columns, (uint64_t)p.out[i], &columns);
    }
    if (is_direct || !fits) return;
    bool is_whole = (uint64_t)(p.out_channels / p.groups) > columns;
    add(k, is_whole ? rows : PIECE, is_whole ? columns : 1, false);
}

/* A column of the kernel's size for each element of the input. */
void onv_ort_cpu_transposed(kernel *k)
{
    onv_conv_problem p;
    if (!onv_ort_describe_conv(k->model, k->node, &p)) return;
    uint64_t rows = (uint64_t)(p.out_channels / p.groups), columns = 1;
    for (uint32_t i = 0; i < p.spatial_rank; i++)
        if (!onv_u64_mul(rows, (uint64_t)p.kernel[i], &rows) ||
            !onv_u64_mul(columns, (uint64_t)p.in[i], &columns))
            return;
    add(k, rows, columns, false);
}

/* --- Others ------------------------------------------------------------------------------------ */

/* What the error function is taken of. */
void onv_ort_cpu_gelu(kernel *k)
{
    add(k, onv_ort_elements(onv_ort_input(k, 0), 0), 1, false);
}

/* Both values, each where it is chosen. */
void onv_ort_cpu_where(kernel *k)
{
    uint64_t n = onv_ort_elements(&onv_model_value(k->model, k->node->outputs[0])->type, 0);
    uint32_t bits = onv_dtype_bits((onv_dtype)onv_ort_input(k, 1)->dtype);
    for (int i = 0; i < 2; i++) add(k, n, (bits + 31) / 32, true);
}

/* Of each direction: states, the sums of the biases, the products of all steps; and what is read and made backward. */
void onv_ort_cpu_recurrent(kernel *k)
{
    const onv_node *node = k->node;
    if (node->n_inputs < 3) return;
    const onv_type *x = onv_ort_input(k, 0), *r = onv_ort_input(k, 2);
    if (x->rank != 3 || r->rank != 3 || onv_ort_elements(x, 0) == 0 || onv_ort_elements(r, 0) == 0)
        return;
    uint64_t gates = node->code == ONV_OP_LSTM ? 4 : 3;
    uint64_t steps = (uint64_t)x->dims[0].raw, batch = (uint64_t)x->dims[1].raw;
    uint64_t directions = (uint64_t)r->dims[0].raw, hidden = (uint64_t)r->dims[2].raw;
    uint64_t products, made;
    if (!onv_u64_mul(steps, batch, &made) || !onv_u64_mul(made, hidden, &made) ||
        !onv_u64_mul(made, gates, &products))
        return;
    uint64_t state = made / steps;
    add(k, (2 + gates) * hidden + 3 * state + UNIT / FLOAT_BYTES, directions, false);
    for (uint64_t i = 0; i < directions && i < 2; i++) add(k, products, 1, false);
    if (directions < 2) return;
    add(k, onv_ort_elements(x, 0), 1, false);
    add(k, made, 1, false);
}
