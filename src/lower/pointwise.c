/* Operators of each element as the calls of ATen that they are, and those that overwrite what they read. */
#include <stdlib.h>
#include <string.h>

#include "lower/lowering.h"

enum { MOST_OPERANDS = 3 };

/* Inputs are arguments in their order. */
typedef struct pointwise {
    const char *op_type;
    const char *aten, *in_place;
    const char *in[MOST_OPERANDS];
} pointwise;

#define UNARY(op, aten)  {op, "aten." aten, "aten." aten "_", {"self"}}
#define BINARY(op, aten) {op, "aten." aten, "aten." aten "_", {"self", "other"}}

/* Sorted. */
static const pointwise table[] = {
    UNARY("Abs", "abs"),
    UNARY("Acos", "acos"),
    UNARY("Acosh", "acosh"),
    BINARY("Add", "add"),
    BINARY("And", "logical_and"),
    UNARY("Asin", "asin"),
    UNARY("Asinh", "asinh"),
    UNARY("Atan", "atan"),
    UNARY("Atanh", "atanh"),
    BINARY("BitwiseAnd", "bitwise_and"),
    UNARY("BitwiseNot", "bitwise_not"),
    BINARY("BitwiseOr", "bitwise_or"),
    BINARY("BitwiseXor", "bitwise_xor"),
    UNARY("Ceil", "ceil"),
    UNARY("Celu", "celu"),
    {"Clip", "aten.clamp", "aten.clamp_", {"self", "min", "max"}},
    UNARY("Cos", "cos"),
    UNARY("Cosh", "cosh"),
    BINARY("Div", "div"),
    UNARY("Elu", "elu"),
    BINARY("Equal", "eq"),
    UNARY("Erf", "erf"),
    UNARY("Exp", "exp"),
    UNARY("Floor", "floor"),
    UNARY("Gelu", "gelu"),
    BINARY("Greater", "gt"),
    BINARY("GreaterOrEqual", "ge"),
    UNARY("HardSigmoid", "hardsigmoid"),
    UNARY("HardSwish", "hardswish"),
    UNARY("IsInf", "isinf"),
    UNARY("IsNaN", "isnan"),
    UNARY("LeakyRelu", "leaky_relu"),
    BINARY("Less", "lt"),
    BINARY("LessOrEqual", "le"),
    UNARY("Log", "log"),
    BINARY("Max", "maximum"),
    BINARY("Min", "minimum"),
    UNARY("Mish", "mish"),
    BINARY("Mul", "mul"),
    UNARY("Neg", "neg"),
    UNARY("Not", "logical_not"),
    BINARY("Or", "logical_or"),
    {"PRelu", "aten.prelu", "aten.prelu", {"self", "weight"}},
    {"Pow", "aten.pow.Tensor_Tensor", "aten.pow_.Tensor", {"self", "exponent"}},
    UNARY("Reciprocal", "reciprocal"),
    UNARY("Relu", "relu"),
    UNARY("Round", "round"),
    UNARY("Selu", "selu"),
    UNARY("Sigmoid", "sigmoid"),
    UNARY("Sign", "sign"),
    UNARY("Sin", "sin"),
    UNARY("Sinh", "sinh"),
    UNARY("Softplus", "softplus"),
    UNARY("Sqrt", "sqrt"),
    BINARY("Sub", "sub"),
    UNARY("Swish", "silu"),
    UNARY("Tan", "tan"),
    UNARY("Tanh", "tanh"),
    UNARY("ThresholdedRelu", "threshold"),
    {"Where", "aten.where.self", "aten.masked_fill_", {"condition", "self", "other"}},
    BINARY("Xor", "logical_xor"),
};

static int compare(const void *op_type, const void *row)
{
    return strcmp(op_type, ((const pointwise *)row)->op_type);
}

/* NULL: it is no call of a row, or has more operands. */
static const pointwise *find(const onv_node *node)
{
    const pointwise *row =
        bsearch(node->op_type, table, sizeof table / sizeof table[0], sizeof table[0], compare);
    if (row == NULL || node->n_inputs > MOST_OPERANDS) return NULL;
    return node->n_inputs == MOST_OPERANDS && row->in[2] == NULL ? NULL : row;
}

/* --- What is overwritten ------------------------------------------------------------------------- */

static bool is_number(onv_lowering *l, const onv_node *node, uint32_t k, double wanted)
{
    double number;
    return onv_node_scalar(l, node, k, &number) && number == wanted;
}

static bool is_relu6(onv_lowering *l, const onv_node *node)
{
    return strcmp(node->op_type, "Clip") == 0 && is_number(l, node, 1, 0) &&
           is_number(l, node, 2, 6);
}

/* Modules of which have `inplace`, but for those that keep their result when they use it. */
static bool is_activation(const char *op_type)
{
    static const char *const names[] = {"Clip", "HardSwish", "HardSigmoid", "Mish",
                                        "ThresholdedRelu"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], op_type) == 0) return true;
    return false;
}

static bool has_result_of(onv_lowering *l, const onv_node *node, uint32_t k)
{
    onv_eager_tensor t = onv_tensor_at(&l->emit, onv_node_in(l, node, k));
    onv_shape shape;
    bool same = onv_value_shape(l, node->outputs[0], &shape) && shape.rank == t.rank &&
                onv_dtype_is_float((onv_dtype)t.dtype) ==
                    onv_dtype_is_float((onv_dtype)onv_value_dtype(l, node->outputs[0]));
    for (uint32_t i = 0; same && i < t.rank; i++) same = shape.dims[i] == t.dims[i];
    return same && (t.dtype == onv_promoted(l, node) || onv_promoted(l, node) == ONV_UNDEFINED);
}

/* `x.masked_fill_(mask, 0)`, `x.exp_()`, nn.ReLU6 in training, which networks use in place, and activations of modules that work
 * in place in inference. Segments that run again make new tensors. */
static bool overwrites(onv_lowering *l, const onv_node *node, uint32_t k)
{
    const onv_lower_options *o = l->emit.options;
    if (is_activation(node->op_type) && onv_overwrites(l, node, node->inputs[0], 1)) return true;
    bool is_told = node->in_place == ONV_IN_PLACE_YES && !o->graph_module;
    bool is_module = !o->inference && is_relu6(l, node) &&
                     onv_tensor_needs_grad(&l->emit, onv_node_in(l, node, 0));
    return (is_told || is_module) && !o->no_inplace && !o->checkpoints &&
           has_result_of(l, node, k) && onv_may_overwrite(l, node, k);
}

/* --- Calls ------------------------------------------------------------------------------------- */

/* 1 + x, as exporters write log1p: in code the number usually comes second. */
static bool is_one_more(onv_lowering *l, onv_value_id value)
{
    onv_node_id from =
        onv_is_value(value) ? onv_model_value(l->emit.model, value)->producer : ONV_NO_NODE;
    if (!onv_is_node(from)) return false;
    const onv_node *node = onv_model_node(l->emit.model, from);
    return strcmp(node->op_type, "Add") == 0 && is_number(l, node, 0, 1);
}

static void bound(onv_lowering *l, const onv_node *node, uint32_t k, const char *name)
{
    bool is_there = (k < node->n_inputs && onv_is_value(node->inputs[k])) ||
                    onv_node_attr(node, name) != NULL;
    if (is_there && onv_node_in(l, node, k) == ONV_NO_TENSOR) onv_recover_real(l, name, 0);
}

/* Overloads, and what the exporter writes by another operator. */
static const char *name_of(onv_lowering *l, const onv_node *node, const pointwise *row)
{
    bool has[2];
    for (uint32_t k = 0; k < 2; k++) has[k] = onv_node_in(l, node, k) != ONV_NO_TENSOR;
    if (strcmp(node->op_type, "Pow") == 0)
        return !has[0] ? "aten.pow.Scalar" : !has[1] ? "aten.pow.Tensor_Scalar" : row->aten;
    if (strcmp(node->op_type, "Clip") == 0) {
        bool is_hardtanh = node->source_op != NULL && strstr(node->source_op, "hardtanh") != NULL;
        if (is_relu6(l, node) || is_hardtanh) return "aten.hardtanh";
        return has[1] ? "aten.clamp.Tensor" : row->aten;
    }
    bool bounds = strcmp(node->op_type, "Max") == 0 || strcmp(node->op_type, "Min") == 0;
    if (bounds && onv_node_is_aten(node, "clamp"))
        return has[0] && has[1] ? "aten.clamp_min.Tensor" : "aten.clamp_min";
    if (strcmp(node->op_type, "Log") == 0 && is_one_more(l, node->inputs[0])) return "aten.log1p";
    return row->aten;
}

bool onv_lower_pointwise(onv_lowering *l, const onv_node *node)
{
    const pointwise *row = find(node);
    if (row == NULL) return false;
    bool is_choice = strcmp(node->op_type, "Where") == 0;
    bool writes = row->in_place != NULL && overwrites(l, node, is_choice ? 2 : 0);
    if (is_choice && writes) {
        onv_recover_tensor(l, "self", onv_node_in(l, node, 2));
        onv_recover_tensor(l, "mask", onv_node_in(l, node, 0));
        onv_recover_tensor(l, "value", onv_node_in(l, node, 1));
    }
    for (uint32_t k = 0; k < node->n_inputs && !(is_choice && writes); k++)
        onv_recover_tensor(l, row->in[k], onv_node_in(l, node, k));
    if (strcmp(node->op_type, "Clip") == 0) {
        bound(l, node, 1, "min");
        bound(l, node, 2, "max");
    }
    const char *name = name_of(l, node, row);
    if (writes) name = strcmp(name, "aten.hardtanh") == 0 ? "aten.hardtanh_" : row->in_place;
    onv_node_set(l, node, 0, onv_recover_call(l, name, node->outputs[0]));
    return true;
}
