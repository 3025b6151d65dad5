/* Measured: ONNX Runtime 1.31, the CUDA provider over a substitute for the CUDA driver. */
#include "ort/scratch.h"

#include <string.h>

#include "base/checked.h"
#include "kernels/cudnn.h"

typedef onv_ort_kernel kernel;

const onv_type *onv_ort_input(const kernel *k, uint32_t i)
{
    return &onv_model_value(k->model, k->node->inputs[i])->type;
}

onv_ort_scratch_row *onv_ort_add(kernel *k, uint64_t n, uint64_t each)
{
    uint64_t bytes;
    if (n == 0 || k->scratch->count == ONV_ORT_MOST_SCRATCH || !onv_u64_mul(n, each, &bytes))
        return NULL;
    onv_ort_scratch_row *row = &k->scratch->rows[k->scratch->count++];
    *row = (onv_ort_scratch_row){.bytes = bytes};
    return row;
}

onv_ort_scratch_row *onv_ort_add_early(kernel *k, uint64_t n, uint64_t each)
{
    onv_ort_scratch_row *row = onv_ort_add(k, n, each);
    if (row != NULL) row->is_early = true;
    return row;
}

/* --- Concat and Split -------------------------------------------------------------------------- */

enum { MOST_ARGUMENTS = 32, POINTER_BYTES = 8 };

static bool is_sized(const onv_type *type)
{
    if (type->kind != ONV_TYPE_TENSOR || !onv_type_has_rank(type)) return false;
    for (int i = 0; i < type->rank; i++)
        if (!onv_dim_is_const(type->dims[i]) || type->dims[i].raw <= 0) return false;
    return true;
}

/* The axis of `whole`, and whether all parts are as long as the first one; NULL: no axis. */
static const onv_dim *find_parts(const kernel *k, const onv_type *whole, const onv_value_id *parts,
                                 uint32_t n, bool *equal)
{
    int64_t axis = onv_node_axis(k->node, 0, whole->rank);
    if (axis < 0) return NULL;
    *equal = true;
    const onv_dim *first = &onv_model_value(k->model, parts[0])->type.dims[axis];
    for (uint32_t i = 1; i < n; i++)
        *equal &= onv_dim_same(onv_model_value(k->model, parts[i])->type.dims[axis], *first);
    return &whole->dims[axis];
}

/* Up to 32 inputs are arguments of the kernel; more are handed over in arrays: the sizes on the axis,
 * their sums, which input each slice comes from, and the addresses. */
static void concat_scratch(kernel *k)
{
    const onv_node *node = k->node;
    const onv_type *out = &onv_model_value(k->model, node->outputs[0])->type;
    bool equal;
    if (node->n_inputs <= MOST_ARGUMENTS) return;
    const onv_dim *axis = find_parts(k, out, node->inputs, node->n_inputs, &equal);
    if (axis == NULL) return;
    uint64_t array = (uint64_t)node->n_inputs * POINTER_BYTES;
    for (int i = 0; i < 2 && !equal; i++) onv_ort_add(k, array, 1);
    if (!equal) onv_ort_add(k, (uint64_t)axis->raw * POINTER_BYTES, 1);
    onv_ort_add(k, array, 1);
}

/* Parts of one size are arguments, too; of several sizes there are always arrays. */
static void split_scratch(kernel *k)
{
    const onv_node *node = k->node;
    bool equal;
    for (uint32_t i = 0; i < node->n_outputs; i++)
        if (!onv_is_value(node->outputs[i])) return;
    const onv_dim *axis =
        find_parts(k, onv_ort_input(k, 0), node->outputs, node->n_outputs, &equal);
    if (axis == NULL || (equal && node->n_outputs <= MOST_ARGUMENTS)) return;
    for (int i = 0; i < (equal ? 1 : 3); i++)
        onv_ort_add(k, (uint64_t)node->n_outputs * POINTER_BYTES, 1);
    if (!equal) onv_ort_add(k, (uint64_t)axis->raw * POINTER_BYTES, 1);
}

/* --- Softmax ----------------------------------------------------------------------------------- */

/* Along any axis but the last one the input is transposed, and so is the result,
 * in tensors that are asked for without a stream. Before opset 13 all axes from that one on are one. */
static void softmax_scratch(kernel *k)
{
    const onv_type *in = onv_ort_input(k, 0);
    int64_t axis = onv_node_int(k->node, "axis", -1);
    uint64_t elems, bytes;
    if (k->node->version < 13 || axis == -1 || axis == in->rank - 1 ||
        (elems = onv_ort_elements(in, 0)) == 0 ||
        !onv_dtype_bytes((onv_dtype)in->dtype, elems, &bytes))
        return;
    for (int i = 0; i < 2; i++) {
        onv_ort_scratch_row *row = onv_ort_add(k, bytes, 1);
        if (row != NULL) row->has_no_stream = true;
    }
}

/* --- Reductions -------------------------------------------------------------------------------- */

/* Which axes go. False: not known. */
static bool find_axes(const kernel *k, const onv_type *in, bool goes[ONV_MAX_RANK])
{
    const onv_node *node = k->node;
    const onv_attr *attr = onv_node_attr(node, "axes");
    const onv_known *known = NULL;
    bool is_input = node->n_inputs > 1 && onv_is_value(node->inputs[1]);
    if (is_input) known = onv_model_value(k->model, node->inputs[1])->known;
    uint32_t n = known != NULL ? known->count : attr != NULL ? attr->count : 0;
    if ((is_input && known == NULL) || (attr != NULL && attr->kind != ONV_ATTR_INTS)) return false;
    if (n == 0 && onv_node_int(node, "noop_with_empty_axes", 0) != 0) return false;
    for (int i = 0; i < in->rank; i++) goes[i] = n == 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t axis = known != NULL ? known->elems[i].i.raw : attr->ints[i];
        if (axis < 0) axis += in->rank;
        if (axis < 0 || axis >= in->rank) return false;
        goes[axis] = true;
    }
    return true;
}

bool onv_ort_find_reduction(const onv_dim *dims, int rank, const bool *goes, onv_ort_reduction *r)
{
    /* From axes that stay to axes that go, and back. Axes with one element are either. */
    int n_turns = 0;
    bool is_last = false;
    *r = (onv_ort_reduction){.rows = 1, .columns = 1};
    for (int i = 0; i < rank; i++) {
        if (dims[i].raw == 1) continue;
        bool is_only = r->rows * r->columns == 1;
        n_turns += !is_only && goes[i] != is_last;
        if (is_only) r->is_first = goes[i];
        is_last = goes[i];
        uint64_t *to = goes[i] ? &r->columns : &r->rows;
        if (!onv_u64_mul(*to, (uint64_t)dims[i].raw, to)) return false;
    }
    r->is_matrix = n_turns <= 1;
    return onv_u64_mul(r->rows, r->columns, &r->elems);
}

/* Sums over the first axes, or over all, take nothing. Over the last ones: what the kernel keeps of each block, in the type
 * that it adds in, a counter for each row and the room to align them (reduction_functions.cu). All else is cuDNN's, whose
 * workspace is the input in float32 (that of float64: as it is). */
uint64_t onv_ort_sum_bytes(const onv_ort_reduction *r, uint64_t number)
{
    enum { OF_A_BLOCK = 1024, MOST_BLOCKS = 256, COUNTER = 4, ALIGNMENT = 15 };
    uint64_t blocks = r->columns / OF_A_BLOCK, bytes;
    if (!r->is_matrix) return onv_u64_mul(r->elems, number, &bytes) ? bytes : 0;
    if (r->is_first) return 0;
    blocks = blocks < 1 ? 1 : blocks > MOST_BLOCKS ? MOST_BLOCKS : blocks;
    return onv_u64_mul(r->rows, blocks * number + COUNTER, &bytes) ? bytes + ALIGNMENT : 0;
}

/* Integers are reduced as float64, but for sums, whose kernel takes nothing; bfloat16 as float32 where cuDNN does it. Squares and exponentials are tensors of their own,
 * behind the workspace of cuDNN. */
static void reduce_scratch(kernel *k)
{
    const onv_type *in = onv_ort_input(k, 0);
    const onv_op_name op = (onv_op_name)k->node->code;
    const uint64_t wide = sizeof(double), size = onv_dtype_bits((onv_dtype)in->dtype) / 8;
    bool goes[ONV_MAX_RANK], is_float = in->dtype == ONV_FLOAT || in->dtype == ONV_FLOAT16;
    bool is_exp = op == ONV_OP_ReduceLogSumExp, is_square = op == ONV_OP_ReduceSumSquare;
    bool is_sum = op == ONV_OP_ReduceSum || op == ONV_OP_ReduceMean || op == ONV_OP_ReduceLogSum;
    onv_ort_reduction r;
    if (!is_sized(in) || in->rank < 1 || !find_axes(k, in, goes) ||
        !onv_ort_find_reduction(in->dims, in->rank, goes, &r))
        return;
    r.is_matrix &= is_sum || is_square;
    bool is_brain = in->dtype == ONV_BFLOAT16;
    if ((onv_dtype_is_integer((onv_dtype)in->dtype) && op != ONV_OP_ReduceSum) ||
        (is_brain && !r.is_matrix)) {
        for (int i = 0; i < 3; i++)
            onv_ort_add(k, i < 2 ? r.elems : r.rows, is_brain ? sizeof(float) : wide);
        return;
    }
    is_float |= is_brain;
    if (!is_float && in->dtype != ONV_DOUBLE) return;
    if (is_square && r.is_matrix) onv_ort_add(k, r.elems, size);
    onv_ort_add(k, onv_ort_sum_bytes(&r, is_float ? sizeof(float) : wide), 1);
    if (is_exp || (is_square && !r.is_matrix)) onv_ort_add(k, r.elems, size);
    if (is_exp) onv_ort_add(k, r.rows, size);
}

/* Along the last axis nothing; else cuDNN's, of float32: its workspace has a number and an index for each element. */
static void arg_scratch(kernel *k)
{
    const onv_type *in = onv_ort_input(k, 0);
    bool goes[ONV_MAX_RANK] = {false};
    onv_ort_reduction r;
    int64_t axis = onv_node_axis(k->node, 0, in->rank);
    if (!is_sized(in) || axis < 0) return;
    goes[axis] = true;
    if (!onv_ort_find_reduction(in->dims, in->rank, goes, &r) || (r.is_matrix && !r.is_first))
        return;
    if (in->dtype == ONV_FLOAT16) onv_ort_add(k, r.elems, sizeof(float));
    onv_ort_add(k, r.elems, 2 * sizeof(float));
    for (int i = 0; i < 2; i++) onv_ort_add(k, r.rows, sizeof(float));
}

/* --- Of some bytes for each element or axis ---------------------------------------------------- */

uint64_t onv_ort_elements(const onv_type *type, int n)
{
    uint64_t elems = 1;
    if (!is_sized(type) || type->rank < n) return 0;
    for (int i = 0; i + n < type->rank; i++)
        if (!onv_u64_mul(elems, (uint64_t)type->dims[i].raw, &elems)) return 0;
    return elems;
}

uint64_t onv_ort_input_elements(const kernel *k, uint32_t i, int n)
{
    bool has = i < k->node->n_inputs && onv_is_value(k->node->inputs[i]);
    return has ? onv_ort_elements(onv_ort_input(k, i), n) : 0;
}

/* Before the output, whose size it tells: counts, and what their sum takes (cub). */
static void counts_scratch(kernel *k)
{
    enum { BLOCK = 256, SUM_BYTES = 1023 };
    bool is_compress = k->node->code == ONV_OP_Compress;
    uint64_t n = onv_ort_input_elements(k, is_compress ? 1 : 0, 0);
    if (n == 0) return;
    onv_ort_add_early(k, is_compress ? n : (n + BLOCK - 1) / BLOCK, sizeof(int32_t));
    onv_ort_scratch_row *row = onv_ort_add_early(k, SUM_BYTES, 1);
    if (row != NULL) row->is_transient = true;
}

/* Where each slice begins. */
static void gather_nd_scratch(kernel *k)
{
    onv_ort_add(k, onv_ort_input_elements(k, 1, 1), sizeof(int64_t));
}

/* Addresses of matrices, where those of the left operand are not each multiplied by one of the right's, or all by the same
 * one. A vector on the right is multiplied row by row. */
static void matmul_scratch(kernel *k)
{
    const onv_type *out = &onv_model_value(k->model, k->node->outputs[0])->type;
    uint64_t left = onv_ort_input_elements(k, 0, 2), right = onv_ort_input_elements(k, 1, 2);
    if (k->node->n_inputs < 2) return;
    int rank = onv_ort_input(k, 1)->rank, left_rank = onv_ort_input(k, 0)->rank;
    bool is_vector = rank == 1 && left_rank > 1;
    if (!is_vector && (right <= 1 || left == right)) return;
    uint64_t n = onv_ort_elements(out, is_vector ? 0 : 1 + (left_rank > 1));
    for (int i = 0; i < 3; i++) onv_ort_add(k, n, POINTER_BYTES);
}

/* Against aliasing: bounds and weights of all that an element of an axis is made of, the more where there are fewer. */
static void antialias_scratch(kernel *k, const onv_type *out, bool is_linear)
{
    const onv_type *in = onv_ort_input(k, 0);
    uint64_t n = 0, weights = 0;
    for (int i = out->rank < 2 ? 0 : out->rank - 2; i < out->rank; i++) {
        uint64_t to = (uint64_t)out->dims[i].raw, from = (uint64_t)in->dims[i].raw, each;
        uint64_t support = is_linear ? 1 : 2;
        if (!onv_u64_mul(from > to ? from : to, support, &each)) return;
        each = 2 * ((each + to - 1) / to) + 1;
        if (!onv_u64_mul(to, each, &each) || !onv_u64_add(weights, each, &weights) ||
            !onv_u64_add(n, to, &n))
            return;
    }
    onv_ort_add(k, n, 2 * sizeof(int64_t));
    onv_ort_add(k, n, sizeof(int64_t));
    onv_ort_add(k, weights, sizeof(float));
}

/* Where each row and column of the result comes from. */
static void resize_scratch(kernel *k)
{
    enum { NEAREST = 8, LINEAR = 12, CUBIC = 24 };
    const onv_type *in = onv_ort_input(k, 0),
                   *out = &onv_model_value(k->model, k->node->outputs[0])->type;
    const onv_attr *attr = onv_node_attr(k->node, "mode");
    const char *mode = attr != NULL && attr->kind == ONV_ATTR_STRING ? attr->s : "nearest";
    bool is_nearest = strcmp(mode, "nearest") == 0, is_linear = strcmp(mode, "linear") == 0;
    bool is_same = true;
    int n_axes = is_nearest ? out->rank : is_linear && out->rank % 2 == 1 ? 3 : 2;
    uint64_t n = is_nearest ? (uint64_t)out->rank : 0;
    if (!is_sized(in) || !is_sized(out) || in->rank != out->rank || out->rank < n_axes) return;
    for (int i = 0; i < out->rank; i++) {
        is_same &= onv_dim_same(in->dims[i], out->dims[i]);
        if (i >= out->rank - n_axes && !onv_u64_add(n, (uint64_t)out->dims[i].raw, &n)) return;
    }
    if (is_same) return;
    if (!is_nearest && onv_node_int(k->node, "antialias", 0) != 0)
        antialias_scratch(k, out, is_linear);
    else
        onv_ort_add(k, n, is_nearest ? NEAREST : is_linear ? LINEAR : CUBIC);
}

/* Of each channel its scale and bias in float32, if they are not; of an instance norm of several images, or of a batch norm, mean and
 * variance, too. */
static void norm_scratch(kernel *k)
{
    const onv_type *in = onv_ort_input(k, 0);
    bool is_instance = k->node->code == ONV_OP_InstanceNormalization;
    if (!is_sized(in) || in->rank < 2) return;
    uint64_t images = is_instance ? (uint64_t)in->dims[0].raw : 1, channels;
    bool is_wide = in->dtype != ONV_FLOAT16, is_single = is_instance && images == 1;
    if ((is_wide && (is_single || !is_instance)) ||
        !onv_u64_mul(images, (uint64_t)in->dims[1].raw, &channels))
        return;
    for (int i = 0; i < (is_single ? 2 : 4); i++) onv_ort_add(k, channels, sizeof(float));
}

/* --- Matrices ---------------------------------------------------------------------------------- */

/* Pivots, the factors of the matrices in float32, and the addresses of both; of float16 the result, too. */
static void inverse_scratch(kernel *k)
{
    const onv_type *in = onv_ort_input(k, 0);
    uint64_t elems = onv_ort_input_elements(k, 0, 0), matrices = onv_ort_input_elements(k, 0, 2);
    uint64_t number = in->dtype == ONV_DOUBLE ? sizeof(double) : sizeof(float);
    if (elems == 0 || matrices == 0) return;
    onv_ort_add(k, matrices, sizeof(int32_t));
    onv_ort_add(k, matrices, (uint64_t)in->dims[in->rank - 1].raw * sizeof(int32_t));
    onv_ort_add(k, elems, number);
    for (int i = 0; i < 2; i++) onv_ort_add(k, matrices, POINTER_BYTES);
    if (in->dtype == ONV_FLOAT16) onv_ort_add(k, elems, number);
}

/* --- Convolutions ------------------------------------------------------------------------------ */

bool onv_ort_describe_conv(const kernel *k, uint32_t weights, bool is_last, onv_conv_problem *p)
{
    const onv_node *node = k->node;
    if (node->n_inputs <= (weights != UINT32_MAX ? weights : 0)) return false;
    const onv_type *in = onv_ort_input(k, 0),
                   *w = weights != UINT32_MAX ? onv_ort_input(k, weights) : NULL,
                   *out = &onv_model_value(k->model, node->outputs[0])->type;
    if (!is_sized(in) || !is_sized(out) || in->rank < 3 || in->rank > 5 || out->rank != in->rank ||
        (w != NULL && (!is_sized(w) || w->rank != in->rank)))
        return false;
    int channels = is_last ? in->rank - 1 : 1, first = is_last ? 1 : 2;
    *p = (onv_conv_problem){.dtype = (onv_dtype)in->dtype,
                            .spatial_rank = (uint32_t)in->rank - 2,
                            .batch = in->dims[0].raw,
                            .in_channels = in->dims[channels].raw,
                            .out_channels = out->dims[channels].raw,
                            .groups = onv_node_int(node, "group", 1),
                            .transposed = node->code == ONV_OP_ConvTranspose};
    const onv_attr *strides = onv_node_attr(node, "strides"), *pads = onv_node_attr(node, "pads"),
                   *dilations = onv_node_attr(node, "dilations"),
                   *windows = onv_node_attr(node, "kernel_shape");
    for (uint32_t i = 0; i < p->spatial_rank; i++) {
        int64_t needed;
        p->in[i] = in->dims[first + (int)i].raw;
        p->out[i] = out->dims[first + (int)i].raw;
        p->kernel[i] = w != NULL ? w->dims[2 + i].raw : onv_attr_int_at(windows, i, 1);
        p->stride[i] = onv_attr_int_at(strides, i, 1);
        p->dilation[i] = onv_attr_int_at(dilations, i, 1);
        /* Where pads are not given as numbers (auto_pad): what the sizes need, more of it at the end. */
        if (!onv_conv_needed_pad(p, i, &needed)) return false;
        p->pad_begin[i] = onv_attr_int_at(pads, i, needed / 2);
        p->pad_end[i] = onv_attr_int_at(pads, p->spatial_rank + i, needed - needed / 2);
    }
    return p->groups > 0;
}

static uint64_t known(uint64_t bytes)
{
    return bytes < UINT64_MAX ? bytes : 0;
}

static void conv_scratch(kernel *k)
{
    onv_conv_problem problem;
    if (k->session->cuda.compute_capability == 0 || !onv_ort_describe_conv(k, 1, false, &problem))
        return;
    onv_conv_workspace w = onv_ort_conv_workspace(
        &problem, (onv_ort_conv_search)k->session->settings->cudnn_conv_algo_search,
        &k->session->cuda);
    k->scratch->rows[k->scratch->count++] = (onv_ort_scratch_row){.bytes = known(w.bytes),
                                                                  .is_transient = true,
                                                                  .is_uncertain = w.low != w.high,
                                                                  .least_bytes = known(w.low),
                                                                  .most_bytes = known(w.high)};
}

/* --- Recurrent layers -------------------------------------------------------------------------- */

enum { RNN_X, RNN_W, RNN_R };

static bool describe_rnn(const kernel *k, onv_rnn_problem *p)
{
    const onv_node *node = k->node;
    if (node->n_inputs < 3) return false;
    const onv_type *x = onv_ort_input(k, RNN_X), *r = onv_ort_input(k, RNN_R);
    if (!is_sized(x) || !is_sized(r) || x->rank != 3 || r->rank != 3) return false;
    *p = (onv_rnn_problem){.cell = node->code == ONV_OP_LSTM  ? ONV_RNN_LSTM
                                   : node->code == ONV_OP_GRU ? ONV_RNN_GRU
                                                              : ONV_RNN_PLAIN,
                           .dtype = (onv_dtype)x->dtype,
                           .steps = x->dims[0].raw,
                           .batch = x->dims[1].raw,
                           .input = x->dims[2].raw,
                           .hidden = r->dims[2].raw,
                           .layers = 1,
                           .bidirectional = r->dims[0].raw == 2};
    return true;
}

/* Lengths of the sequences, before the outputs; the workspace, some states larger or smaller than that
 * of PyTorch's call; with two directions the output once more, as cuDNN orders it. */
static void rnn_scratch(kernel *k)
{
    onv_rnn_problem p;
    uint64_t state, out;
    if (k->session->cuda.compute_capability == 0 || !describe_rnn(k, &p)) return;
    int64_t directions = p.bidirectional ? 2 : 1, values;
    uint64_t workspace = onv_cudnn_rnn_workspace(&p, false, &k->session->cuda);
    if (!onv_i64_mul(p.batch, p.hidden * directions, &values) ||
        !onv_dtype_bytes(p.dtype, (uint64_t)values, &state) || workspace == UINT64_MAX ||
        !onv_u64_mul(state, (uint64_t)p.steps, &out))
        return;
    onv_ort_add_early(k, (uint64_t)p.batch, sizeof(int32_t));
    workspace += p.bidirectional ? 2 * state : 0;
    onv_ort_add(k, workspace - (p.cell != ONV_RNN_LSTM && workspace > state ? state : 0), 1);
    if (p.bidirectional) onv_ort_add(k, out, 1);
}

/* cuDNN's generators of random numbers for dropout, one for each thread that the device can hold, by
 * compute capability: measured, for the boards that are taken to stand for it. */
static uint64_t dropout_states(uint32_t compute_capability)
{
    if (compute_capability >= 90) return 6488064;        /* H100 */
    if (compute_capability == 89) return 4718592;        /* RTX 4090 */
    return compute_capability == 86 ? 3022848 : 5308416; /* RTX 3090, A100 */
}

/* Weights of recurrent layers are kept once more, in cuDNN's order; an attention with a cache keeps zeros. */
uint32_t onv_ort_find_kept(const onv_model *model, const onv_node *node,
                           const onv_ort_session *session, uint64_t rows[ONV_ORT_MOST_KEPT])
{
    enum { FIRST = 1, LAST = 3 };
    bool is_recurrent =
        node->code == ONV_OP_LSTM || node->code == ONV_OP_GRU || node->code == ONV_OP_RNN;
    uint64_t packed = 0;
    if (node->code == ONV_OP_GroupQueryAttention) { /* zeros */
        rows[0] = 1024;
        return 1;
    }
    if (!is_recurrent || node->domain[0] != '\0' || node->provider == ONV_PROVIDER_CPU ||
        session->cuda.compute_capability == 0)
        return 0;
    for (uint32_t i = FIRST; i <= LAST && i < node->n_inputs; i++) {
        if (!onv_is_value(node->inputs[i])) continue;
        const onv_value *value = onv_model_value(model, node->inputs[i]);
        if (!onv_value_is_weight(value) || value->tensor == NULL) return 0;
        if (!onv_u64_add(packed, value->tensor->bytes, &packed)) return 0;
    }
    rows[0] = dropout_states(session->cuda.compute_capability);
    rows[1] = packed;
    return ONV_ORT_MOST_KEPT;
}

/* --- Products with weights of fewer bits ------------------------------------------------------- */

/* Few rows are multiplied as the weight is (measured: 16 with 4 bits, 5 with 8, 1 with MatMulBnb4, float32 and
 * float16; matmul_4bits.cu, matmul_8bits.cu). For more the weight is made in the type of the product, each
 * row filled up to whole blocks; where that is more than 256 MiB, as of a wide lm_head, by so many columns at a time
 * (matmul_nbits.cc). */
static void packed_scratch(kernel *k)
{
    enum { UNIT = 8, ROWS_4 = 16, ROWS_8 = 5, PASS = 256, CODES = 16, COLUMNS = 32768 };
    const uint64_t most = UINT64_C(256) << 20;
    const onv_node *node = k->node;
    int64_t width = onv_node_int(node, "K", 0), n = onv_node_int(node, "N", 0);
    int64_t block = onv_node_int(node, "block_size", 0), bits = onv_node_int(node, "bits", 4),
            padded;
    uint64_t rows = onv_ort_input_elements(k, 0, 1), elems, bytes;
    onv_dtype dtype = (onv_dtype)onv_ort_input(k, 0)->dtype;
    bool is_bnb = node->code == ONV_OP_MatMulBnb4;
    if (width < 1 || n < 1 || block < 1 || rows == 0 || !onv_i64_add(width, block - 1, &padded))
        return;
    padded = is_bnb ? width : padded / block * block;
    bool is_whole = n % UNIT == 0 && width % UNIT == 0;
    if (is_bnb && onv_dtype_bytes(dtype, CODES, &bytes)) onv_ort_add(k, bytes, 1);
    if (is_bnb && is_whole && rows <= 1) return;
    if (!is_bnb && bits == 4 && is_whole && rows <= ROWS_4) return;
    if (!is_bnb && bits == 8 && is_whole && width % block == 0 && PASS % block == 0 &&
        rows <= ROWS_8)
        return;
    if (!onv_u64_mul((uint64_t)padded, (uint64_t)n, &elems) ||
        !onv_dtype_bytes(dtype, elems, &bytes))
        return;
    bool has_groups = node->n_inputs > 4 && onv_is_value(node->inputs[4]);
    if (!is_bnb && !has_groups && bytes > most && n > INT64_C(2) * COLUMNS)
        bytes = bytes / (uint64_t)n * COLUMNS;
    onv_ort_add(k, bytes, 1);
}

/* --- All --------------------------------------------------------------------------------------- */

typedef struct kernel_row {
    const char *domain; /* NULL: any */
    void (*cuda)(kernel *k), (*cpu)(kernel *k);
} kernel_row;

static kernel_row kernel_of(onv_op_name op)
{
    switch (op) {
    case ONV_OP_Concat: return (kernel_row){"", concat_scratch, NULL};
    case ONV_OP_Split: return (kernel_row){"", split_scratch, NULL};
    case ONV_OP_Softmax:
    case ONV_OP_LogSoftmax: return (kernel_row){"", softmax_scratch, NULL};
    case ONV_OP_ReduceSum:
    case ONV_OP_ReduceMean:
    case ONV_OP_ReduceLogSum:
    case ONV_OP_ReduceLogSumExp:
    case ONV_OP_ReduceSumSquare:
    case ONV_OP_ReduceMax:
    case ONV_OP_ReduceMin:
    case ONV_OP_ReduceProd:
    case ONV_OP_ReduceL1:
    case ONV_OP_ReduceL2: return (kernel_row){"", reduce_scratch, NULL};
    case ONV_OP_ArgMax:
    case ONV_OP_ArgMin: return (kernel_row){"", arg_scratch, NULL};
    case ONV_OP_NonZero:
    case ONV_OP_Compress: return (kernel_row){"", counts_scratch, NULL};
    case ONV_OP_GatherND: return (kernel_row){"", gather_nd_scratch, NULL};
    case ONV_OP_MatMul: return (kernel_row){"", matmul_scratch, NULL};
    case ONV_OP_FusedMatMul: return (kernel_row){"com.microsoft", matmul_scratch, NULL};
    case ONV_OP_Resize: return (kernel_row){"", resize_scratch, NULL};
    case ONV_OP_InstanceNormalization:
    case ONV_OP_BatchNormalization: return (kernel_row){"", norm_scratch, NULL};
    case ONV_OP_Einsum: return (kernel_row){"", onv_ort_einsum, NULL};
    case ONV_OP_Conv: return (kernel_row){"", conv_scratch, onv_ort_cpu_conv};
    case ONV_OP_ConvTranspose: return (kernel_row){"", conv_scratch, onv_ort_cpu_transposed};
    case ONV_OP_FusedConv: return (kernel_row){"com.microsoft", conv_scratch, onv_ort_cpu_conv};
    case ONV_OP_QLinearConv: return (kernel_row){NULL, NULL, onv_ort_cpu_integer_conv};
    case ONV_OP_NhwcMaxPool: return (kernel_row){"com.microsoft", NULL, onv_ort_cpu_integer_pool};
    case ONV_OP_QLinearMatMul: return (kernel_row){"", NULL, onv_ort_cpu_integer_sums};
    case ONV_OP_QGemm: return (kernel_row){"com.microsoft", NULL, onv_ort_cpu_integer_sums};
    case ONV_OP_LSTM:
    case ONV_OP_GRU: return (kernel_row){"", rnn_scratch, onv_ort_cpu_recurrent};
    case ONV_OP_RNN: return (kernel_row){"", rnn_scratch, NULL};
    case ONV_OP_MatMulNBits:
    case ONV_OP_MatMulBnb4: return (kernel_row){"com.microsoft", packed_scratch, NULL};
    case ONV_OP_TopK: return (kernel_row){"", onv_ort_top_k, NULL};
    case ONV_OP_NonMaxSuppression: return (kernel_row){"", onv_ort_suppression, NULL};
    case ONV_OP_Inverse: return (kernel_row){"com.microsoft", inverse_scratch, NULL};
    case ONV_OP_GroupQueryAttention:
        return (kernel_row){"com.microsoft", onv_ort_grouped_attention, NULL};
    case ONV_OP_MultiHeadAttention:
    case ONV_OP_Attention: return (kernel_row){"com.microsoft", onv_ort_attention, NULL};
    case ONV_OP_BiasGelu:
    case ONV_OP_FastGelu: return (kernel_row){"com.microsoft", NULL, onv_ort_cpu_gelu};
    case ONV_OP_Where: return (kernel_row){"", NULL, onv_ort_cpu_where};
    default: return (kernel_row){0};
    }
}

void onv_ort_find_scratch(const onv_model *model, const onv_node *node, const bool *is_host,
                          const onv_ort_session *session, onv_ort_scratch *scratch)
{
    kernel k = {model, node, session, scratch};
    if (node->n_outputs == 0 || !onv_is_value(node->outputs[0]) || is_host[node->outputs[0].index])
        return;
    const kernel_row row = kernel_of((onv_op_name)node->code);
    void (*find)(kernel * k) = session->provider == ONV_ORT_CUDA ? row.cuda : row.cpu;
    bool is_here = row.domain == NULL || strcmp(row.domain, node->domain) == 0;
    if (find != NULL && is_here) find(&k);
}
