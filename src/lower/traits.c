/* Operators that the table's traits describe. */
#include <string.h>

#include "lower/lowering.h"
#include "ops/op.h"

static bool is_among(const char *op_type, const char *const *names, size_t n_names)
{
    for (size_t i = 0; i < n_names; i++)
        if (strcmp(names[i], op_type) == 0) return true;
    return false;
}

/* Statistics and losses run in float32 under autocast: their operands are cast. */
static bool is_fp32_op(const char *op_type)
{
    static const char *const names[] = {"ReduceLogSumExp", "LayerNormalization",
                                        "InstanceNormalization", "GroupNormalization"};
    return is_among(op_type, names, sizeof names / sizeof names[0]);
}

/* Or they take a dtype, and are asked for float32: operands stay as they are. */
static bool gives_fp32(const char *op_type)
{
    static const char *const names[] = {"Softmax", "LogSoftmax", "ReduceProd",
                                        "CumSum",  "ReduceL1",   "ReduceL2"};
    return is_among(op_type, names, sizeof names / sizeof names[0]);
}

/* What PyTorch's derivative depends on is a part of the name. */
static const char *name_of(const onv_node *node)
{
    bool has_axes = (node->n_inputs > 1 && onv_is_value(node->inputs[1])) ||
                    onv_node_attr(node, "axes") != NULL;
    return strcmp(node->op_type, "ReduceProd") == 0 && !has_axes ? "prod_all" : node->op_type;
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

static uint32_t result(onv_lowering *l, const onv_node *node, uint32_t first, uint8_t dtype)
{
    onv_eager_tensor t = onv_tensor_at(&l->emit, first);
    if (overwrites_first(l, node, dtype))
        return onv_tensor_on(&l->emit, t.storage, t.dtype, t.rank, t.dims, t.strides);
    if (node->traits.inplace != 0) return onv_node_new_pointwise(l, node, dtype);
    bool is_image =
        strcmp(node->op_type, "Resize") == 0 || strcmp(node->op_type, "AveragePool") == 0;
    return is_image ? onv_node_new_image(l, node, &t, dtype) : onv_node_new(l, node, 0, dtype);
}

void onv_lower_by_traits(onv_lowering *l, const onv_node *node)
{
    bool fp32 = is_fp32_op(node->op_type);
    uint32_t in[MAX_CAST] = {ONV_NO_TENSOR};
    uint32_t n_in = node->n_inputs < MAX_CAST ? node->n_inputs : MAX_CAST;
    for (uint32_t k = 0; k < n_in; k++) {
        in[k] = onv_node_in(l, node, k);
        if (fp32) in[k] = onv_amp_fp32(&l->emit, in[k]);
    }
    bool widens = l->emit.options->amp != ONV_UNDEFINED && (fp32 || gives_fp32(node->op_type));
    uint8_t given = onv_promoted(l, node);
    bool was_asked = node->asks_for_float32 && gives_fp32(node->op_type) && !widens &&
                     (given == ONV_FLOAT16 || given == ONV_BFLOAT16);
    uint8_t dtype = widens || was_asked ? ONV_FLOAT : given;
    uint32_t out = result(l, node, in[0], dtype);
    onv_emit_begin(&l->emit, name_of(node));
    l->emit.op.in_place =
        in[0] != ONV_NO_TENSOR && out != ONV_NO_TENSOR &&
        onv_tensor_at(&l->emit, in[0]).storage == onv_tensor_at(&l->emit, out).storage;
    emit_operands(l, node, in);
    for (uint32_t k = 0; k < node->n_outputs; k++) {
        uint32_t made = k == 0 ? out : onv_node_new(l, node, k, dtype);
        onv_node_set(l, node, k, onv_emit_out(&l->emit, made));
        if (k < 32 && (node->traits.save_out & ONV_BIT(k)) != 0) onv_emit_save(&l->emit, made);
    }
    bool is_safe = strcmp(node->op_type, "Softmax") == 0 && l->emit.status == ONV_OK &&
                   onv_node_attention(l, node) != ONV_ATTENTION_NONE &&
                   !l->emit.options->as_exported;
    if (is_safe) onv_emit_temps(&l->emit, onv_safe_softmax_bytes(&l->emit, in[0]), 0);
    onv_emit_end(&l->emit);
    /* The export has what the network casts that to. */
    if (was_asked) onv_node_set(l, node, 0, onv_emit_cast(&l->emit, out, given));
}
