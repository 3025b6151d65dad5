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

/* Statistics, exponentials and losses run in float32 under autocast: their operands are cast. */
static bool is_fp32_op(const char *op_type)
{
    static const char *const names[] = {
        "Exp",
        "Log",
        "Pow",
        "Reciprocal",
        "Softplus",
        "Acos",
        "Asin",
        "Cosh",
        "Sinh",
        "Tan",
        "ReduceLogSumExp",
        "LayerNormalization",
        "InstanceNormalization",
        "GroupNormalization",
    };
    return is_among(op_type, names, sizeof names / sizeof names[0]);
}

/* Or they take a dtype, and are asked for float32: operands stay as they are. */
static bool gives_fp32(const char *op_type)
{
    static const char *const names[] = {"Softmax", "LogSoftmax", "ReduceProd",
                                        "CumSum",  "ReduceL1",   "ReduceL2"};
    return is_among(op_type, names, sizeof names / sizeof names[0]);
}

static bool is_number(onv_lowering *l, const onv_node *node, uint32_t k, double wanted)
{
    double number;
    return onv_node_scalar(l, node, k, &number) && number == wanted;
}

/* 1 + x, as exporters write log1p: in code the number usually comes second. */
static bool is_one_more(onv_lowering *l, onv_value_id value)
{
    onv_node_id from =
        onv_is_value(value) ? onv_model_value(l->emit.model, value)->producer : ONV_NO_NODE;
    if (!onv_is_node(from)) return false;
    const onv_node *node = onv_model_node(l->emit.model, from);
    return strcmp(node->op_type, "Add") == 0 && is_number(l, node, 0, 1);
}

/* What PyTorch's derivative depends on is a part of the name. */
static const char *name_of(onv_lowering *l, const onv_node *node)
{
    bool has[3];
    for (uint32_t k = 0; k < 3; k++) has[k] = k < node->n_inputs && onv_is_value(node->inputs[k]);
    if (strcmp(node->op_type, "Pow") == 0 && has[1]) {
        if (onv_node_in(l, node, 0) == ONV_NO_TENSOR) return "pow_scalar";
        return onv_node_in(l, node, 1) == ONV_NO_TENSOR ? "pow" : "pow_tensor";
    }
    if (strcmp(node->op_type, "Clip") == 0) {
        bool is_relu6 = is_number(l, node, 1, 0) && is_number(l, node, 2, 6);
        bool is_hardtanh = node->source_op != NULL && strstr(node->source_op, "hardtanh") != NULL;
        if (is_relu6 || is_hardtanh) return "hardtanh";
        bool below = has[1] || onv_node_attr(node, "min") != NULL;
        bool above = has[2] || onv_node_attr(node, "max") != NULL;
        return below && above ? "clamp" : "clamp_min";
    }
    bool bounds = strcmp(node->op_type, "Max") == 0 || strcmp(node->op_type, "Min") == 0;
    if (bounds && onv_node_is_aten(node, "clamp")) {
        bool both = onv_node_in(l, node, 0) != ONV_NO_TENSOR && has[1] &&
                    onv_node_in(l, node, 1) != ONV_NO_TENSOR;
        return both ? "clamp_tensor" : "clamp_min";
    }
    if (strcmp(node->op_type, "ReduceProd") == 0 && !has[1] && onv_node_attr(node, "axes") == NULL)
        return "prod_all";
    if (strcmp(node->op_type, "Log") == 0 && is_one_more(l, node->inputs[0])) return "log1p";
    return node->op_type;
}

/* Modules of which have `inplace`, but for those that keep their result when they use it. */
static bool is_activation(const char *op_type)
{
    static const char *const names[] = {"Clip", "HardSwish", "HardSigmoid", "Mish",
                                        "ThresholdedRelu"};
    return is_among(op_type, names, sizeof names / sizeof names[0]);
}

/* nn.ReLU6, which networks use in place: its backward needs the input, so autograd keeps a copy, and the result takes
 * the place of the input. */
static bool overwrites_clone(onv_lowering *l, const onv_node *node, uint8_t dtype)
{
    return !l->emit.options->inference && !l->emit.options->no_inplace &&
           !l->emit.options->checkpoints && strcmp(node->op_type, "Clip") == 0 &&
           is_number(l, node, 1, 0) && is_number(l, node, 2, 6) &&
           onv_tensor_at(&l->emit, onv_node_in(l, node, 0)).dtype == dtype &&
           onv_tensor_needs_grad(&l->emit, onv_node_in(l, node, 0)) &&
           onv_may_overwrite(l, node, 0);
}

enum { NO_OPERAND = -1 };

/* `x.masked_fill_(mask, 0)`, `x.exp_()`: the operand that the result takes the place of. */
static int32_t updated_operand(onv_lowering *l, const onv_node *node, uint8_t dtype)
{
    const onv_lower_options *o = l->emit.options;
    int32_t k = strcmp(node->op_type, "Where") == 0 ? 2 : 0;
    if (node->in_place != ONV_IN_PLACE_YES || o->no_inplace || o->graph_module || o->checkpoints ||
        (node->traits.inplace & ONV_BIT(k)) == 0 || !onv_may_overwrite(l, node, (uint32_t)k))
        return NO_OPERAND;
    onv_eager_tensor t = onv_tensor_at(&l->emit, onv_node_in(l, node, (uint32_t)k));
    onv_shape shape;
    bool same =
        onv_value_shape(l, node->outputs[0], &shape) && shape.rank == t.rank && t.dtype == dtype;
    for (uint32_t i = 0; same && i < t.rank; i++) same = shape.dims[i] == t.dims[i];
    return same ? k : NO_OPERAND;
}

/* What takes the place of an operand that backward needs leaves it a copy. */
static int32_t overwritten_operand(onv_lowering *l, const onv_node *node, uint8_t dtype,
                                   bool *clones)
{
    int32_t k = updated_operand(l, node, dtype);
    bool needs = k != NO_OPERAND && (node->traits.save_in & ONV_BIT(k)) != 0 &&
                 onv_tensor_needs_grad(&l->emit, onv_node_in(l, node, (uint32_t)k));
    *clones = needs;
    if (k != NO_OPERAND || !overwrites_clone(l, node, dtype)) return k;
    *clones = true;
    return 0;
}

enum { MAX_CAST = 32 };

/* What is overwritten comes first; a copy of it stays instead of it. `kept`: bits of those that stay. */
static void emit_operands(onv_lowering *l, const onv_node *node, const uint32_t cast[MAX_CAST],
                          int32_t old, bool clones, uint32_t kept)
{
    /* torch.bernoulli has a gradient, of zeros. */
    bool is_random = node->op != NULL && (node->op->flags & ONV_OP_RANDOM) != 0 &&
                     strcmp(node->op_type, "Bernoulli") != 0;
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        bool swaps = old > 0 && (i == 0 || i == (uint32_t)old);
        uint32_t k = !swaps ? i : i == 0 ? (uint32_t)old : 0;
        uint32_t x = k < MAX_CAST ? cast[k] : onv_node_in(l, node, k);
        bool has_grad = onv_tensor_is_float(&l->emit, x) && !is_random;
        onv_emit_in(&l->emit, x, has_grad ? ONV_GRAD_NEW : ONV_GRAD_NONE);
        bool is_copied = clones && (int32_t)k == old;
        if (k < 32 && (kept & ONV_BIT(k)) != 0 && !is_copied) onv_emit_save(&l->emit, x);
    }
}

void onv_lower_by_traits(onv_lowering *l, const onv_node *node)
{
    bool pointwise = node->traits.inplace != 0;
    bool fp32 = is_fp32_op(node->op_type);
    uint32_t in[MAX_CAST] = {0};
    uint32_t n_in = node->n_inputs < MAX_CAST ? node->n_inputs : MAX_CAST;
    for (uint32_t k = 0; k < n_in; k++) {
        in[k] = onv_node_in(l, node, k);
        if (fp32) in[k] = onv_amp_fp32(&l->emit, in[k]);
        if (k == 1 && strcmp(node->op_type, "PRelu") == 0 &&
            onv_tensor_at(&l->emit, in[0]).dtype == l->emit.options->amp)
            in[k] = onv_amp_low(&l->emit, in[k]); /* the slope follows */
    }
    bool widens = l->emit.options->amp != ONV_UNDEFINED && (fp32 || gives_fp32(node->op_type));
    uint8_t given = onv_promoted(l, node);
    bool was_asked = node->asks_for_float32 && gives_fp32(node->op_type) && !widens &&
                     (given == ONV_FLOAT16 || given == ONV_BFLOAT16);
    uint8_t dtype = widens || was_asked ? ONV_FLOAT : given;
    if (strcmp(node->op_type, "PRelu") == 0) dtype = onv_tensor_at(&l->emit, in[0]).dtype;
    bool in_place = pointwise && is_activation(node->op_type) && dtype != ONV_UNDEFINED &&
                    onv_overwrites(l, node, node->inputs[0], 1);
    onv_eager_tensor first = onv_tensor_at(&l->emit, n_in > 0 ? in[0] : ONV_NO_TENSOR);
    bool is_image =
        strcmp(node->op_type, "Resize") == 0 || strcmp(node->op_type, "AveragePool") == 0;
    uint32_t out = in_place    ? in[0]
                   : pointwise ? onv_node_new_pointwise(l, node, dtype)
                   : is_image  ? onv_node_new_image(l, node, &first, dtype)
                               : onv_node_new(l, node, 0, dtype);
    bool clones = false;
    int32_t old =
        in_place || !pointwise ? NO_OPERAND : overwritten_operand(l, node, dtype, &clones);
    if (old != NO_OPERAND) {
        onv_eager_tensor t = onv_tensor_at(&l->emit, in[old]);
        out = onv_tensor_on(&l->emit, t.storage, t.dtype, t.rank, t.dims, t.strides);
    }
    const char *name = name_of(l, node);
    /* Of a trained exponent, whatever its size is. */
    bool keeps_all = strcmp(name, "pow_tensor") == 0 && onv_tensor_needs_grad(&l->emit, in[1]);
    onv_emit_begin(&l->emit, name);
    l->emit.op.in_place = in_place || old != NO_OPERAND;
    if (clones) onv_emit_extra(&l->emit, onv_tensor_at(&l->emit, in[old]).bytes, 1, "input");
    l->emit.op.extras_first = clones;
    l->emit.op.swaps_grads = pointwise && n_in == 2 && strcmp(node->op_type, "PRelu") != 0;
    emit_operands(l, node, in, old, clones, keeps_all ? UINT32_MAX : node->traits.save_in);
    for (uint32_t k = 0; k < node->n_outputs; k++) {
        uint32_t result = k == 0 ? out : onv_node_new(l, node, k, dtype);
        onv_node_set(l, node, k, onv_emit_out(&l->emit, result));
        if (k < 32 && (keeps_all || (node->traits.save_out & ONV_BIT(k)) != 0))
            onv_emit_save(&l->emit, result);
    }
    bool is_safe = strcmp(node->op_type, "Softmax") == 0 && l->emit.status == ONV_OK &&
                   onv_node_attention(l, node) != ONV_ATTENTION_NONE &&
                   !l->emit.options->as_exported;
    if (is_safe) onv_emit_temps(&l->emit, onv_safe_softmax_bytes(&l->emit, in[0]), 0);
    onv_emit_end(&l->emit);
    /* The export has what the network casts that to. */
    if (was_asked) onv_node_set(l, node, 0, onv_emit_cast(&l->emit, out, given));
}
