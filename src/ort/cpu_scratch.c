/* What kernels of the CPU provider take for themselves, on one thread. Read in source (onnxruntime/core/mlas,
 * core/providers/cpu, contrib_ops/cpu) and measured, ONNX Runtime 1.31. */
#include <string.h>

#include "base/checked.h"
#include "ort/scratch.h"

enum { FLOAT_BYTES = 4, UNIT = 256 /* that the arena rounds requests to */ };

typedef onv_ort_kernel kernel;

static void add_product(kernel *k, uint64_t a, uint64_t b, uint64_t each)
{
    uint64_t n;
    if (onv_u64_mul(a, b, &n)) onv_ort_add(k, n, each);
}

/* --- Convolutions ------------------------------------------------------------------------------ */

/* Numbers of all axes together, times what is there already. */
static bool multiply(const onv_conv_problem *p, const int64_t *dims, uint64_t *product)
{
    for (uint32_t i = 0; i < p->spatial_rank; i++)
        if (!onv_u64_mul(*product, (uint64_t)dims[i], product)) return false;
    return true;
}

static bool is_pointwise(const onv_conv_problem *p)
{
    bool is = true;
    for (uint32_t i = 0; i < p->spatial_rank; i++)
        is &= p->kernel[i] == 1 && p->stride[i] == 1 && p->pad_begin[i] + p->pad_end[i] == 0;
    return is;
}

/* MlasConvPrepare: the windows side by side, as a matrix, or a piece of it. */
void onv_ort_cpu_conv(kernel *k)
{
    enum { PIECE = 128 * 128 };
    onv_conv_problem p;
    if (!onv_ort_describe_conv(k, 1, false, &p) || p.dtype != ONV_FLOAT || is_pointwise(&p)) return;
    uint64_t rows = (uint64_t)(p.in_channels / p.groups), columns = 1;
    if (!multiply(&p, p.kernel, &rows) || !multiply(&p, p.out, &columns)) return;
    bool is_whole = (uint64_t)(p.out_channels / p.groups) > columns;
    add_product(k, is_whole ? rows : PIECE, is_whole ? columns : 1, FLOAT_BYTES);
}

/* A column of the kernel's size for each element of the input. */
void onv_ort_cpu_transposed(kernel *k)
{
    onv_conv_problem p;
    if (!onv_ort_describe_conv(k, 1, false, &p)) return;
    uint64_t rows = (uint64_t)(p.out_channels / p.groups), columns = 1;
    if (multiply(&p, p.kernel, &rows) && multiply(&p, p.in, &columns))
        add_product(k, rows, columns, FLOAT_BYTES);
}

/* --- Integers ---------------------------------------------------------------------------------- */

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
    enum { WEIGHT = 3, MATRIX = 2 };
    onv_conv_problem p;
    uint64_t in_image = 1, out_image = 1;
    bool is_last = onv_node_int(k->node, "channels_last", 0) != 0;
    if (!onv_ort_describe_conv(k, WEIGHT, is_last, &p) || !multiply(&p, p.in, &in_image) ||
        !multiply(&p, p.out, &out_image))
        return;
    uint64_t all_in = (uint64_t)p.in_channels, in = (uint64_t)(p.in_channels / p.groups);
    uint64_t all_out = (uint64_t)p.out_channels, windows = out_image;
    bool is_depthwise = in == 1 && p.out_channels == p.groups;
    bool is_packed = is_packed_conv(k->node, onv_ort_input(k, WEIGHT));
    if (!is_packed) add_product(k, all_out, out_image, sizeof(int32_t));
    if (!is_last) add_product(k, all_in, in_image, 1);
    if (!is_last) add_product(k, all_out, out_image, 1);
    if (!multiply(&p, p.kernel, &windows)) return;
    if (is_depthwise || (is_packed && !is_pointwise(&p)))
        add_product(k, windows, is_packed && is_last ? (uint64_t)p.batch : 1, sizeof(void *));
    else if (!is_pointwise(&p))
        add_product(k, windows, p.spatial_rank > MATRIX ? all_in : in, 1);
}

/* The addresses of the windows of so many elements. */
void onv_ort_cpu_integer_pool(kernel *k)
{
    enum { AT_ONCE = 512 };
    onv_conv_problem p;
    uint64_t window = 1, image = 1;
    if (!onv_ort_describe_conv(k, UINT32_MAX, true, &p) || !multiply(&p, p.kernel, &window) ||
        !multiply(&p, p.out, &image))
        return;
    add_product(k, window, image < AT_ONCE ? image : AT_ONCE, sizeof(void *));
}

/* Sums of 32 bits before they are quantized. */
void onv_ort_cpu_integer_sums(kernel *k)
{
    const onv_type *out = &onv_model_value(k->model, k->node->outputs[0])->type;
    if (onv_dtype_bits((onv_dtype)out->dtype) == 8)
        onv_ort_add(k, onv_ort_elements(out, 0), FLOAT_BYTES);
}

/* --- Others ------------------------------------------------------------------------------------ */

/* What the error function is taken of. */
void onv_ort_cpu_gelu(kernel *k)
{
    onv_ort_add(k, onv_ort_elements(onv_ort_input(k, 0), 0), FLOAT_BYTES);
}

/* Both values, each where it is chosen. */
void onv_ort_cpu_where(kernel *k)
{
    uint64_t n = onv_ort_elements(&onv_model_value(k->model, k->node->outputs[0])->type, 0);
    uint32_t bits = onv_dtype_bits((onv_dtype)onv_ort_input(k, 1)->dtype);
    for (int i = 0; i < 2; i++) onv_ort_add_early(k, n, (uint64_t)((bits + 31) / 32) * FLOAT_BYTES);
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
    add_product(k, (2 + gates) * hidden + 3 * state + UNIT / FLOAT_BYTES, directions, FLOAT_BYTES);
    for (uint64_t i = 0; i < directions && i < 2; i++) onv_ort_add(k, products, FLOAT_BYTES);
    if (directions < 2) return;
    onv_ort_add(k, onv_ort_elements(x, 0), FLOAT_BYTES);
    onv_ort_add(k, made, FLOAT_BYTES);
}
