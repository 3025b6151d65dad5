/* Operators that the table's traits describe. */
#include <stdlib.h>
#include <string.h>

#include "lower/lowering.h"
#include "ops/op.h"

typedef struct onnx_row {
    const char *op_type;
    uint16_t aten; /* onv_aten_id */
} onnx_row;

static int compare(const void *op_type, const void *row)
{
    return strcmp(op_type, ((const onnx_row *)row)->op_type);
}

/* ONV_ATEN_NONE: it is none, or several may be. */
static onv_aten_id aten_of(const onv_node *node)
{
    static const onnx_row rows[] = {
        {"ArgMax", ONV_ATEN_argmax},
        {"AveragePool", ONV_ATEN_avg_pool},
        {"Bernoulli", ONV_ATEN_bernoulli},
        {"Cast", ONV_ATEN_to},
        {"ConstantOfShape", ONV_ATEN_full},
        {"CumSum", ONV_ATEN_cumsum},
        {"DepthToSpace", ONV_ATEN_pixel_shuffle},
        {"Gather", ONV_ATEN_index_select},
        {"GatherElements", ONV_ATEN_gather},
        {"GatherND", ONV_ATEN_index},
        {"LogSoftmax", ONV_ATEN_log_softmax},
        {"Pad", ONV_ATEN_pad},
        {"QuantizeLinear", ONV_ATEN_fake_quantize_per_tensor_affine},
        {"RandomNormal", ONV_ATEN_normal_},
        {"RandomNormalLike", ONV_ATEN_normal_},
        {"RandomUniform", ONV_ATEN_uniform_},
        {"RandomUniformLike", ONV_ATEN_uniform_},
        {"Range", ONV_ATEN_arange},
        {"ReduceL1", ONV_ATEN_vector_norm_1},
        {"ReduceL2", ONV_ATEN_vector_norm_2},
        {"ReduceLogSumExp", ONV_ATEN_logsumexp},
        {"ReduceProd", ONV_ATEN_prod__dim_int},
        {"Resize", ONV_ATEN_upsample},
        {"ScatterElements", ONV_ATEN_scatter},
        {"ScatterND", ONV_ATEN_index_put},
        {"Slice", ONV_ATEN_flip},
        {"Softmax", ONV_ATEN_softmax},
        {"SpaceToDepth", ONV_ATEN_pixel_unshuffle},
        {"Tile", ONV_ATEN_repeat},
        {"Trilu", ONV_ATEN_tril},
    };
    const onnx_row *row =
        bsearch(node->op_type, rows, sizeof rows / sizeof rows[0], sizeof rows[0], compare);
    bool has_axes = (node->n_inputs > 1 && onv_is_value(node->inputs[1])) ||
                    onv_node_attr(node, "axes") != NULL;
    if (row == NULL) return ONV_ATEN_NONE;
    return row->aten == ONV_ATEN_prod__dim_int && !has_axes ? ONV_ATEN_prod
                                                            : (onv_aten_id)row->aten;
}

/* `x.scatter_(0, index, 0)`: the result takes the place of the first operand. */
static bool overwrites_first(onv_lowering *l, const onv_node *node, uint8_t dtype)
{
    const onv_lower_options *o = l->emit.options;
    if (node->in_place != ONV_IN_PLACE_YES || o->no_inplace || o->graph_module || o->checkpoints ||
        (node->traits.inplace & ONV_BIT(0)) == 0 || !onv_may_overwrite(l, node, 0))
        return false;
    onv_eager_tensor t = onv_tensor_at(&l->emit, onv_node_in(l, node, 0));
    onv_shape shape;
    bool same =
        onv_value_shape(l, node->outputs[0], &shape) && shape.rank == t.rank && t.dtype == dtype;
    for (uint32_t i = 0; same && i < t.rank; i++) same = shape.dims[i] == t.dims[i];
    return same;
}

enum { MAX_CAST = 32 };

static void emit_operands(onv_lowering *l, const onv_node *node, const uint32_t cast[MAX_CAST])
{
    /* torch.bernoulli has a gradient, of zeros. */
    bool is_random = node->op != NULL && (node->op->flags & ONV_OP_RANDOM) != 0 &&
                     strcmp(node->op_type, "Bernoulli") != 0;
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        uint32_t x = k < MAX_CAST ? cast[k] : onv_node_in(l, node, k);
        bool has_grad = onv_tensor_is_float(&l->emit, x) && !is_random;
        onv_emit_in(&l->emit, x, has_grad ? ONV_GRAD_NEW : ONV_GRAD_NONE);
        if (k < 32 && (node->traits.save_in & ONV_BIT(k)) != 0) onv_emit_save(&l->emit, x);
    }
}

static uint32_t result(onv_lowering *l, const onv_node *node, onv_aten_id aten, uint32_t first,
                       uint8_t dtype)
{
    onv_eager_tensor t = onv_tensor_at(&l->emit, first);
    if (overwrites_first(l, node, dtype))
        return onv_tensor_on(&l->emit, t.storage, t.dtype, t.rank, t.dims, t.strides);
    if (node->traits.inplace != 0) return onv_node_new_pointwise(l, node, dtype);
    bool is_image = aten == ONV_ATEN_upsample || aten == ONV_ATEN_avg_pool;
    return is_image ? onv_node_new_image(l, node, &t, dtype) : onv_node_new(l, node, 0, dtype);
}

void onv_lower_by_traits(onv_lowering *l, const onv_node *node)
{
    onv_aten_id aten = aten_of(node);
    uint8_t cast = onv_aten_ops[aten].cast;
    bool fp32 = cast == ONV_CAST_FLOAT32, gives_fp32 = cast == ONV_CAST_RESULT;
    uint32_t in[MAX_CAST] = {ONV_NO_TENSOR};
    uint32_t n_in = node->n_inputs < MAX_CAST ? node->n_inputs : MAX_CAST;
    for (uint32_t k = 0; k < n_in; k++) {
        in[k] = onv_node_in(l, node, k);
        if (fp32) in[k] = onv_amp_fp32(&l->emit, in[k]);
    }
    bool widens = l->emit.options->amp != ONV_UNDEFINED && (fp32 || gives_fp32);
    uint8_t given = onv_promoted(l, node);
    bool was_asked = node->asks_for_float32 && gives_fp32 && !widens &&
                     (given == ONV_FLOAT16 || given == ONV_BFLOAT16);
    uint8_t dtype = widens || was_asked ? ONV_FLOAT : given;
    uint32_t out = result(l, node, aten, in[0], dtype);
    if (aten != ONV_ATEN_NONE)
        onv_emit_begin_op(&l->emit, aten);
    else
        onv_emit_begin(&l->emit, node->op_type);
    l->emit.op.in_place =
        in[0] != ONV_NO_TENSOR && out != ONV_NO_TENSOR &&
        onv_tensor_at(&l->emit, in[0]).storage == onv_tensor_at(&l->emit, out).storage;
    emit_operands(l, node, in);
    for (uint32_t k = 0; k < node->n_outputs; k++) {
        uint32_t made = k == 0 ? out : onv_node_new(l, node, k, dtype);
        onv_node_set(l, node, k, onv_emit_out(&l->emit, made));
        if (k < 32 && (node->traits.save_out & ONV_BIT(k)) != 0) onv_emit_save(&l->emit, made);
    }
    bool is_safe = aten == ONV_ATEN_softmax && l->emit.status == ONV_OK &&
                   onv_node_attention(l, node) != ONV_ATTENTION_NONE &&
                   !l->emit.options->as_exported;
    if (is_safe) onv_emit_temps(&l->emit, onv_safe_softmax_bytes(&l->emit, in[0]), 0);
    onv_emit_end(&l->emit);
    /* The export has what the network casts that to. */
    if (was_asked) onv_node_set(l, node, 0, onv_emit_cast(&l->emit, out, given));
}
