/* Operators of each element as the calls of ATen that they are, and those that overwrite what they read. */
#include <stdlib.h>
#include <string.h>

#include "base/rules.h"
#include "lower/lowering.h"

enum { MOST_OPERANDS = 3 };

/* Inputs are arguments in their order. */
typedef struct pointwise {
    const char *op_type;
    uint16_t aten,
        in_place; /* onv_aten_id; the latter of what overwrites, where that has a row of its own */
} pointwise;

/* Sorted. */
static const pointwise table[] = {
    {"Abs", ONV_ATEN_abs, ONV_ATEN_NONE},
    {"Acos", ONV_ATEN_acos, ONV_ATEN_NONE},
    {"Acosh", ONV_ATEN_acosh, ONV_ATEN_NONE},
    {"Add", ONV_ATEN_add, ONV_ATEN_NONE},
    {"And", ONV_ATEN_logical_and, ONV_ATEN_NONE},
    {"Asin", ONV_ATEN_asin, ONV_ATEN_NONE},
    {"Asinh", ONV_ATEN_asinh, ONV_ATEN_NONE},
    {"Atan", ONV_ATEN_atan, ONV_ATEN_NONE},
    {"Atanh", ONV_ATEN_atanh, ONV_ATEN_NONE},
    {"BitShift", ONV_ATEN_bitwise_left_shift, ONV_ATEN_NONE},
    {"BitwiseAnd", ONV_ATEN_bitwise_and, ONV_ATEN_NONE},
    {"BitwiseNot", ONV_ATEN_bitwise_not, ONV_ATEN_NONE},
    {"BitwiseOr", ONV_ATEN_bitwise_or, ONV_ATEN_NONE},
    {"BitwiseXor", ONV_ATEN_bitwise_xor, ONV_ATEN_NONE},
    {"Ceil", ONV_ATEN_ceil, ONV_ATEN_NONE},
    {"Celu", ONV_ATEN_celu, ONV_ATEN_celu_},
    {"Clip", ONV_ATEN_clamp, ONV_ATEN_NONE},
    {"Cos", ONV_ATEN_cos, ONV_ATEN_NONE},
    {"Cosh", ONV_ATEN_cosh, ONV_ATEN_NONE},
    {"Div", ONV_ATEN_div, ONV_ATEN_NONE},
    {"Elu", ONV_ATEN_elu, ONV_ATEN_elu_},
    {"Equal", ONV_ATEN_eq, ONV_ATEN_NONE},
    {"Erf", ONV_ATEN_erf, ONV_ATEN_NONE},
    {"Exp", ONV_ATEN_exp, ONV_ATEN_NONE},
    {"Floor", ONV_ATEN_floor, ONV_ATEN_NONE},
    {"Gelu", ONV_ATEN_gelu, ONV_ATEN_NONE},
    {"Greater", ONV_ATEN_gt, ONV_ATEN_NONE},
    {"GreaterOrEqual", ONV_ATEN_ge, ONV_ATEN_NONE},
    {"HardSigmoid", ONV_ATEN_hardsigmoid, ONV_ATEN_NONE},
    {"HardSwish", ONV_ATEN_hardswish, ONV_ATEN_NONE},
    {"IsInf", ONV_ATEN_isinf, ONV_ATEN_NONE},
    {"IsNaN", ONV_ATEN_isnan, ONV_ATEN_NONE},
    {"LeakyRelu", ONV_ATEN_leaky_relu, ONV_ATEN_leaky_relu_},
    {"Less", ONV_ATEN_lt, ONV_ATEN_NONE},
    {"LessOrEqual", ONV_ATEN_le, ONV_ATEN_NONE},
    {"Log", ONV_ATEN_log, ONV_ATEN_NONE},
    {"Max", ONV_ATEN_maximum, ONV_ATEN_NONE},
    {"Mean", ONV_ATEN_add, ONV_ATEN_NONE},
    {"Min", ONV_ATEN_minimum, ONV_ATEN_NONE},
    {"Mish", ONV_ATEN_mish, ONV_ATEN_NONE},
    {"Mod", ONV_ATEN_remainder, ONV_ATEN_NONE},
    {"Mul", ONV_ATEN_mul, ONV_ATEN_NONE},
    {"Neg", ONV_ATEN_neg, ONV_ATEN_NONE},
    {"Not", ONV_ATEN_logical_not, ONV_ATEN_NONE},
    {"Or", ONV_ATEN_logical_or, ONV_ATEN_NONE},
    {"PRelu", ONV_ATEN_prelu, ONV_ATEN_NONE},
    {"Pow", ONV_ATEN_pow__Tensor_Tensor, ONV_ATEN_pow___Tensor},
    {"Reciprocal", ONV_ATEN_reciprocal, ONV_ATEN_NONE},
    {"Relu", ONV_ATEN_relu, ONV_ATEN_NONE},
    {"Round", ONV_ATEN_round, ONV_ATEN_NONE},
    {"Selu", ONV_ATEN_selu, ONV_ATEN_selu_},
    {"Shrink", ONV_ATEN_softshrink, ONV_ATEN_NONE},
    {"Sigmoid", ONV_ATEN_sigmoid, ONV_ATEN_NONE},
    {"Sign", ONV_ATEN_sign, ONV_ATEN_NONE},
    {"Sin", ONV_ATEN_sin, ONV_ATEN_NONE},
    {"Sinh", ONV_ATEN_sinh, ONV_ATEN_NONE},
    {"Softplus", ONV_ATEN_softplus, ONV_ATEN_NONE},
    {"Softsign", ONV_ATEN_div, ONV_ATEN_NONE},
    {"Sqrt", ONV_ATEN_sqrt, ONV_ATEN_NONE},
    {"Sub", ONV_ATEN_sub, ONV_ATEN_NONE},
    {"Sum", ONV_ATEN_add, ONV_ATEN_NONE},
    {"SwiGLU", ONV_ATEN_mul, ONV_ATEN_NONE},
    {"Swish", ONV_ATEN_silu, ONV_ATEN_NONE},
    {"Tan", ONV_ATEN_tan, ONV_ATEN_NONE},
    {"Tanh", ONV_ATEN_tanh, ONV_ATEN_NONE},
    {"ThresholdedRelu", ONV_ATEN_threshold, ONV_ATEN_NONE},
    {"Where", ONV_ATEN_where__self, ONV_ATEN_masked_fill},
    {"Xor", ONV_ATEN_logical_xor, ONV_ATEN_NONE},
};

static int compare(const void *op_type, const void *row)
{
    return strcmp(op_type, ((const pointwise *)row)->op_type);
}

static const pointwise *find(const onv_node *node)
{
    return bsearch(node->op_type, table, sizeof table / sizeof table[0], sizeof table[0], compare);
}

/* --- What is overwritten ------------------------------------------------------------------------- */

static bool is_op(const onv_node *node, const char *op_type)
{
    return strcmp(node->op_type, op_type) == 0;
}

static bool is_number(onv_lowering *l, const onv_node *node, uint32_t k, double wanted)
{
    double number;
    return onv_node_scalar(l, node, k, &number) && number == wanted;
}

static bool is_relu6(onv_lowering *l, const onv_node *node)
{
    return is_op(node, "Clip") && is_number(l, node, 1, 0) && is_number(l, node, 2, 6);
}

static bool is_among(const onv_node *node, const char *const *names, size_t n_names)
{
    for (size_t i = 0; i < n_names; i++)
        if (is_op(node, names[i])) return true;
    return false;
}

/* Functions of modules that have `inplace`, but for those that keep their result when they use it. */
static bool is_activation(const onv_node *node)
{
    static const char *const names[] = {"Clip", "HardSwish", "HardSigmoid", "Mish",
                                        "ThresholdedRelu"};
    return is_among(node, names, sizeof names / sizeof names[0]);
}

/* Those that keep their result where they overwrite, their input otherwise. */
static bool is_leaky(const onv_node *node)
{
    static const char *const names[] = {"LeakyRelu", "Elu", "Celu", "Selu"};
    return is_among(node, names, sizeof names / sizeof names[0]);
}

/* Of its size and dtype. */
static bool has_result_of(onv_lowering *l, const onv_node *node, uint32_t k)
{
    onv_eager_tensor t = onv_tensor_at(&l->emit, onv_node_in(l, node, k));
    uint8_t dtype = onv_promoted(l, node);
    onv_shape shape;
    bool same = onv_value_shape(l, node->outputs[0], &shape) && shape.rank == t.rank;
    for (uint32_t i = 0; same && i < t.rank; i++) same = shape.dims[i] == t.dims[i];
    return same &&
           t.dtype == (dtype != ONV_UNDEFINED ? dtype : onv_value_dtype(l, node->outputs[0]));
}

/* Autograd copies what is overwritten where backward reads it. */
static bool is_copied(onv_lowering *l, const onv_node *node)
{
    if (is_op(node, "Mul") || is_op(node, "Div"))
        return onv_tensor_needs_grad(&l->emit, onv_node_in(l, node, 1));
    return !is_op(node, "Add") && !is_op(node, "Sub");
}

/* In an export without notes: whether each sum that a ReLU alone reads adds to the result of a batch norm, as where
 * residual blocks say `out += identity`. Those that say `x + block(x)` add to what is kept, and show that this network
 * makes new tensors. */
static bool has_residual_updates(onv_lowering *l)
{
    if (!onv_rule_is_on("lower.residual_updates")) return false;
    if (l->residual_updates != ONV_UPDATES_UNKNOWN) return l->residual_updates == ONV_UPDATES_YES;
    uint32_t found = 0, others = 0;
    for (uint32_t i = 0; i < l->emit.model->nodes.count; i++) {
        const onv_node *relu = &l->emit.model->nodes.at[i];
        if (relu->graph.index != 0 || !is_op(relu, "Relu")) continue;
        onv_node_id at = onv_is_value(relu->inputs[0])
                             ? onv_model_value(l->emit.model, relu->inputs[0])->producer
                             : ONV_NO_NODE;
        const onv_node *sum = onv_is_node(at) ? onv_model_node(l->emit.model, at) : relu;
        if (!is_op(sum, "Add") || !onv_is_value(sum->inputs[0])) continue;
        onv_node_id from = onv_model_value(l->emit.model, sum->inputs[0])->producer;
        bool fresh = onv_is_node(from) &&
                     is_op(onv_model_node(l->emit.model, from), "BatchNormalization") &&
                     l->fusions.n_uses[sum->inputs[0].index] == 1 &&
                     l->fusions.n_uses[sum->outputs[0].index] == 1;
        *(fresh ? &found : &others) += 1;
    }
    bool updates = found > 0 && others == 0 && !l->weights.has_notes;
    l->residual_updates = updates ? ONV_UPDATES_YES : ONV_UPDATES_NO;
    return updates;
}

static bool is_residual_update(onv_lowering *l, const onv_node *node)
{
    if (!is_op(node, "Add") || !onv_is_value(node->inputs[0])) return false;
    onv_node_id from = onv_model_value(l->emit.model, node->inputs[0])->producer;
    onv_eager_tensor a = onv_tensor_at(&l->emit, onv_node_in(l, node, 0));
    onv_eager_tensor b = onv_tensor_at(&l->emit, onv_node_in(l, node, 1));
    return onv_is_node(from) && is_op(onv_model_node(l->emit.model, from), "BatchNormalization") &&
           l->fusions.n_uses[node->outputs[0].index] == 1 && a.rank == b.rank &&
           a.elems == b.elems && has_residual_updates(l);
}

/* Libraries that build theirs in place. */
static bool is_of_library(const onv_node *node)
{
    static const char *const names[] = {"'torchvision.", "'timm.", "'segmentation_models_pytorch."};
    for (size_t i = 0; i < sizeof names / sizeof names[0] && node->call_classes != NULL; i++)
        if (strstr(node->call_classes, names[i]) != NULL) return true;
    return false;
}

/* Where nothing tells, it does. */
static bool relu_overwrites(onv_lowering *l, const onv_node *node)
{
    bool is_untold = onv_noted(node)->in_place == ONV_IN_PLACE_UNTOLD;
    bool makes_new = is_untold ? onv_node_is_geometric(node) || l->emit.options->relu_makes_new
                               : onv_noted(node)->in_place == ONV_IN_PLACE_NO;
    if (l->emit.options->no_inplace || makes_new || !onv_may_overwrite(l, node, 0)) return false;
    uint64_t bytes = onv_tensor_at(&l->emit, onv_node_in(l, node, 0)).bytes;
    if (is_untold && onv_node_is_noted(node) && !is_of_library(node)) {
        l->emit.eager->untold_relus++;
        if (l->emit.eager->untold_bytes < bytes) l->emit.eager->untold_bytes = bytes;
    }
    return true;
}

static bool leaky_overwrites(onv_lowering *l, const onv_node *node)
{
    if (l->emit.options->no_inplace || !onv_may_overwrite(l, node, 0)) return false;
    if (onv_noted(node)->in_place == ONV_IN_PLACE_YES || onv_is_inplace(l, node, true)) return true;
    uint32_t x = onv_node_in(l, node, 0);
    if (!onv_tensor_needs_grad(&l->emit, x)) return false;
    l->emit.eager->open_activations++;
    if (l->emit.options->n_inplace == 0)
        onv_say(l, ONV_SAID_activations, NULL, onv_tensor_at(&l->emit, x).bytes, NULL);
    return false;
}

/* `x += y`, `x.masked_fill_(mask, 0)`, `x.exp_()` say so in an export with notes; nn.ReLU6 is used in place in training,
 * activations of modules that are asked for in inference. Segments that run again make new tensors where autograd would copy
 * the old one, and torch.fx traces `x -= y` as `x - y`. */
static bool overwrites(onv_lowering *l, const onv_node *node, uint32_t k)
{
    const onv_lower_options *o = l->emit.options;
    if (is_op(node, "Relu")) return relu_overwrites(l, node);
    if (is_leaky(node)) return leaky_overwrites(l, node);
    if (is_activation(node) && onv_overwrites(l, node, node->inputs[0], 1)) return true;
    bool is_told = onv_noted(node)->in_place == ONV_IN_PLACE_YES && !o->graph_module;
    bool is_module = !o->inference && is_relu6(l, node) &&
                     onv_tensor_needs_grad(&l->emit, onv_node_in(l, node, 0));
    if (!is_told && !is_module && !(is_residual_update(l, node) && !o->graph_module)) return false;
    bool may = o->inference || !o->checkpoints || !is_copied(l, node);
    return may && !o->no_inplace && has_result_of(l, node, k) && onv_may_overwrite(l, node, k);
}

/* --- Calls ------------------------------------------------------------------------------------- */

/* 1 + x, as exporters write log1p: in code the number usually comes second. */
static bool is_one_more(onv_lowering *l, onv_value_id value)
{
    onv_node_id from =
        onv_is_value(value) ? onv_model_value(l->emit.model, value)->producer : ONV_NO_NODE;
    if (!onv_is_node(from)) return false;
    const onv_node *node = onv_model_node(l->emit.model, from);
    return is_op(node, "Add") && is_number(l, node, 0, 1);
}

static void bound(onv_lowering *l, const onv_node *node, uint32_t k, const char *name)
{
    bool is_there =
        (k < node->n_inputs && onv_is_value(node->inputs[k])) || onv_node_attr(node, name) != NULL;
    if (is_there && onv_node_in(l, node, k) == ONV_NO_TENSOR) onv_recover_real(l, name, 0);
}

/* Overloads, and what the exporter writes by another operator. */
static onv_aten_id call_of(onv_lowering *l, const onv_node *node, const pointwise *row)
{
    bool has[2];
    for (uint32_t k = 0; k < 2; k++) has[k] = onv_node_in(l, node, k) != ONV_NO_TENSOR;
    if (is_op(node, "Pow"))
        return !has[0]   ? ONV_ATEN_pow__Scalar
               : !has[1] ? ONV_ATEN_pow__Tensor_Scalar
                         : ONV_ATEN_pow__Tensor_Tensor;
    if (is_op(node, "Clip")) {
        bool is_hardtanh = node->source_op != NULL && strstr(node->source_op, "hardtanh") != NULL;
        if (is_relu6(l, node) || is_hardtanh) return ONV_ATEN_hardtanh;
        return has[1] ? ONV_ATEN_clamp__Tensor : ONV_ATEN_clamp;
    }
    bool bounds = is_op(node, "Max") || is_op(node, "Min");
    if (is_op(node, "Mod"))
        return onv_node_int(node, "fmod", 0) == 0
                   ? (has[1] ? ONV_ATEN_remainder : ONV_ATEN_remainder__Scalar)
                   : (has[1] ? ONV_ATEN_fmod : ONV_ATEN_fmod__Scalar);
    if (bounds && onv_node_is_aten(node, "clamp"))
        return has[0] && has[1] ? ONV_ATEN_clamp_min__Tensor : ONV_ATEN_clamp_min;
    if (is_op(node, "Log") && is_one_more(l, node->inputs[0])) return ONV_ATEN_log1p;
    return (onv_aten_id)row->aten;
}

/* The operand as the call has it: in attention as autocast casts it; what drops whole paths in the type of x. */
static uint32_t operand(onv_lowering *l, const onv_node *node, uint32_t k)
{
    bool may_attend = is_op(node, "Mul") || is_op(node, "Div");
    uint32_t x = may_attend ? onv_amp_attention(l, node, k) : onv_node_in(l, node, k);
    onv_eager_tensor t = onv_tensor_at(&l->emit, x),
                     first = onv_tensor_at(&l->emit, onv_node_in(l, node, 0));
    bool may_lower = l->emit.options->amp != ONV_UNDEFINED && k == 1 && node->n_inputs == 2 &&
                     onv_dtype_is_float((onv_dtype)t.dtype) &&
                     onv_dtype_is_float((onv_dtype)first.dtype);
    if (x == ONV_NO_TENSOR || !may_lower || !onv_is_drawn(l, node->inputs[1])) return x;
    return onv_tensor_on(&l->emit, t.storage, first.dtype, t.rank, t.dims, t.strides);
}

/* Of any number of operands, one after the other; a mean is divided by their number. */
static void lower_many(onv_lowering *l, const onv_node *node, onv_aten_id name)
{
    uint32_t all = onv_node_in(l, node, 0);
    for (uint32_t k = 1; k < node->n_inputs; k++)
        all = onv_recover_binary(l, name, all, onv_node_in(l, node, k), node->outputs[0]);
    if (is_op(node, "Mean"))
        all = onv_recover_binary(l, ONV_ATEN_div, all, ONV_NO_TENSOR, node->outputs[0]);
    onv_node_set(l, node, 0, all);
}

/* Operators that are several calls; false: it is one. */
static bool lower_apart(onv_lowering *l, const onv_node *node, const pointwise *row)
{
    uint32_t x = onv_node_in(l, node, 0);
    bool is_many =
        is_op(node, "Sum") || is_op(node, "Mean") || is_op(node, "Max") || is_op(node, "Min");
    if (is_many && (node->n_inputs != 2 || is_op(node, "Mean"))) {
        lower_many(l, node, (onv_aten_id)row->aten);
    } else if (is_op(node, "Div") && x == ONV_NO_TENSOR) {
        onv_lower_quotient_of_number(l, node);
    } else if (is_op(node, "Softsign")) { /* x / (1 + |x|) */
        uint32_t more = onv_recover_unary(l, ONV_ATEN_abs, x, node->outputs[0]);
        more = onv_recover_binary(l, ONV_ATEN_add__Tensor, more, ONV_NO_TENSOR, node->outputs[0]);
        onv_node_set(l, node, 0,
                     onv_recover_binary(l, (onv_aten_id)row->aten, x, more, node->outputs[0]));
    } else if (is_op(node, "SwiGLU")) {
        uint32_t gate = onv_recover_unary(l, ONV_ATEN_silu, x, node->outputs[0]);
        onv_node_set(l, node, 0,
                     onv_recover_binary(l, (onv_aten_id)row->aten, gate, onv_node_in(l, node, 1),
                                        node->outputs[0]));
    } else {
        return false;
    }
    return true;
}

bool onv_lower_pointwise(onv_lowering *l, const onv_node *node)
{
    const pointwise *row = find(node);
    uint32_t in[MOST_OPERANDS];
    if (row == NULL) return false;
    if (lower_apart(l, node, row)) return true;
    bool is_choice = is_op(node, "Where");
    for (uint32_t k = 0; k < MOST_OPERANDS; k++) in[k] = operand(l, node, k);
    if (is_op(node, "Mul") || is_op(node, "Div")) onv_widen_attended(l, node);
    bool writes = overwrites(l, node, is_choice ? 2 : 0);
    onv_aten_id call = call_of(l, node, row);
    if (writes && row->in_place != ONV_ATEN_NONE) call = (onv_aten_id)row->in_place;
    if (is_choice && writes) { /* self, mask, value */
        uint32_t condition = in[0];
        in[0] = in[2];
        in[2] = in[1];
        in[1] = condition;
    }
    for (uint32_t k = 0; k < node->n_inputs && k < MOST_OPERANDS; k++)
        if (k > 0 || in[0] != ONV_NO_TENSOR || !is_op(node, "Pow"))
            onv_recover_tensor(l, "", in[k]);
    if (is_op(node, "Clip")) {
        bound(l, node, 1, "min");
        bound(l, node, 2, "max");
    }
    l->recovery.in_place = writes;
    onv_node_set(l, node, 0, onv_recover_call(l, call, node->outputs[0]));
    return true;
}
