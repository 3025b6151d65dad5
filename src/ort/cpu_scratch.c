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
        onv_u64_mul(values, times, &n) ? onv_ort_add(k, n, FLOAT_BYTES) : NULL;
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

/* --- Integers ---------------------------------------------------------------------------------- */

/* Of a convolution with channels last or behind the batch. */
typedef struct integers {
    uint64_t batch, in_image, out_image, kernel, in, out, groups;
    bool is_last, is_pointwise;
} integers;

static bool multiply_dims(const onv_type *type, int first, int end, uint64_t *product)
{
    *product = 1;
    for (int i = first; i < end; i++)
        if (!onv_u64_mul(*product, (uint64_t)type->dims[i].raw, product)) return false;
    return true;
}

static bool describe_integers(const kernel *k, const onv_type *w, integers *p)
{
    const onv_type *x = onv_ort_input(k, 0),
                   *y = &onv_model_value(k->model, k->node->outputs[0])->type;
    int rank = x->rank;
    if (onv_ort_elements(x, 0) == 0 || onv_ort_elements(y, 0) == 0 || rank < 3 || y->rank != rank ||
        (w != NULL && w->rank != rank))
        return false;
    p->is_last = onv_node_int(k->node, "channels_last", w == NULL) != 0;
    int first = p->is_last ? 1 : 2, end = p->is_last ? rank - 1 : rank;
    p->batch = (uint64_t)x->dims[0].raw;
    p->in = (uint64_t)x->dims[p->is_last ? rank - 1 : 1].raw;
    p->out = (uint64_t)y->dims[p->is_last ? rank - 1 : 1].raw;
    p->groups = (uint64_t)onv_node_int(k->node, "group", 1);
    p->is_pointwise = true;
    p->kernel = 1;
    for (uint32_t i = 0; i + 2 < (uint32_t)rank; i++) {
        int64_t size =
            w != NULL ? w->dims[2 + i].raw : onv_node_int_at(k->node, "kernel_shape", i, 1);
        p->is_pointwise &= size == 1 && onv_node_int_at(k->node, "strides", i, 1) == 1 &&
                           onv_node_int_at(k->node, "pads", i, 0) == 0 &&
                           onv_node_int_at(k->node, "pads", (uint32_t)rank - 2 + i, 0) == 0;
        if (size < 1 || !onv_u64_mul(p->kernel, (uint64_t)size, &p->kernel)) return false;
    }
    return p->groups > 0 && multiply_dims(x, first, end, &p->in_image) &&
           multiply_dims(y, first, end, &p->out_image);
}

static void add_product(kernel *k, uint64_t a, uint64_t b, uint64_t each)
{
    uint64_t n;
    if (onv_u64_mul(a, b, &n)) onv_ort_add(k, n, each);
}

/* Whether the kernel keeps its weights in an order of its own, in which the sums need no memory. */
static bool is_packed_conv(const onv_node *node, const onv_type *w)
{
    enum { BLOCK = 16, ALIGNED = 4 };
    int64_t groups = onv_node_int(node, "group", 1), out = w->dims[0].raw, in = w->dims[1].raw;
    if (onv_node_int(node, "symmetric", 0) == 0) return false;
    return groups > 1 ? in == 1 && out == groups && groups % BLOCK == 0
                      : in % ALIGNED == 0 && out >= BLOCK;
}

uint64_t onv_ort_cpu_kept(const onv_model *model, const onv_node *node, uint32_t *input)
{
    enum { FILTER = 1, WEIGHT = 3, BLOCK = 16 };
    bool is_integer = node->code == ONV_OP_QLinearConv;
    *input = is_integer ? WEIGHT : FILTER;
    if ((!is_integer && node->code != ONV_OP_ConvTranspose) || node->n_inputs <= *input) return 0;
    const onv_value *value = onv_model_value(model, node->inputs[*input]);
    if (!onv_value_is_held(value) || value->type.rank < 3 ||
        (is_integer && !is_packed_conv(node, &value->type)))
        return 0;
    uint64_t bytes = value->tensor->bytes, out = (uint64_t)value->type.dims[0].raw, more = 0;
    if (is_integer && out % BLOCK != 0 && !onv_u64_mul(bytes / out, BLOCK - out % BLOCK, &more))
        return 0;
    return onv_u64_add(bytes, more, &bytes) ? bytes : 0;
}

/* Sums of 32 bits, the windows side by side or their addresses. */
void onv_ort_cpu_integer_conv(kernel *k)
{
    enum { WEIGHT = 3, MATRIX = 4 };
    integers p;
    if (k->node->n_inputs <= WEIGHT || onv_ort_elements(onv_ort_input(k, WEIGHT), 0) == 0 ||
        !describe_integers(k, onv_ort_input(k, WEIGHT), &p))
        return;
    uint64_t in = p.in / p.groups, out = p.out / p.groups, windows;
    bool is_depthwise = in == 1 && out == 1;
    bool is_packed = is_packed_conv(k->node, onv_ort_input(k, WEIGHT));
    if (!is_packed) add_product(k, p.out, p.out_image, sizeof(int32_t));
    if (!p.is_last) add_product(k, p.in, p.in_image, 1);
    if (!p.is_last) add_product(k, p.out, p.out_image, 1);
    if (!onv_u64_mul(p.kernel, p.out_image, &windows)) return;
    if (is_depthwise || (is_packed && !p.is_pointwise))
        add_product(k, windows, is_packed && p.is_last ? p.batch : 1, sizeof(void *));
    else if (!p.is_pointwise)
        add_product(k, windows, onv_ort_input(k, 0)->rank > MATRIX ? p.in : in, 1);
}

/* The addresses of the windows of so many elements. */
void onv_ort_cpu_integer_pool(kernel *k)
{
    enum { AT_ONCE = 512 };
    integers p;
    if (!describe_integers(k, NULL, &p)) return;
    add_product(k, p.kernel, p.out_image < AT_ONCE ? p.out_image : AT_ONCE, sizeof(void *));
}

/* Sums of 32 bits before they are quantized. */
void onv_ort_cpu_integer_sums(kernel *k)
{
    const onv_type *out = &onv_model_value(k->model, k->node->outputs[0])->type;
    if (onv_dtype_bits((onv_dtype)out->dtype) == 8) add(k, onv_ort_elements(out, 0), 1, false);
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
