/* Operators of each element as the calls of ATen that they are, and those that overwrite what they read. */
#include <stdlib.h>
#include <string.h>

#include "lower/lowering.h"

enum { MOST_OPERANDS = 3 };

/* --- What is overwritten ------------------------------------------------------------------------- */

static bool is_number(onv_emitter *e, const onv_node *node, uint32_t k, double wanted)
{
    double number;
    return onv_node_scalar(e, node, k, &number) && number == wanted;
}

static bool is_relu6(onv_emitter *e, const onv_node *node)
{
    return node->code == ONV_OP_Clip && is_number(e, node, 1, 0) && is_number(e, node, 2, 6);
}

/* Functions of modules that have `inplace`, but for those that keep their result when they use it. */
static bool is_activation(const onv_node *node)
{
    return ONV_IS_ANY(node, ONV_OP_Clip, ONV_OP_HardSwish, ONV_OP_HardSigmoid, ONV_OP_Mish,
                      ONV_OP_ThresholdedRelu);
}

/* Those that keep their result where they overwrite, their input otherwise. */
static bool is_leaky(const onv_node *node)
{
    return ONV_IS_ANY(node, ONV_OP_LeakyRelu, ONV_OP_Elu, ONV_OP_Celu, ONV_OP_Selu);
}

/* Of its size and dtype. */
static bool has_result_of(onv_lowering *l, const onv_node *node, uint32_t k)
{
    uint32_t x = onv_node_in(l, node, k);
    uint8_t dtype = onv_promoted(l, node);
    onv_shape shape;
    return onv_value_shape(l, node->outputs[0], &shape) &&
           onv_tensor_has_dims(&l->emit, x, shape.rank, shape.dims) &&
           onv_tensor_at(&l->emit, x).dtype ==
               (dtype != ONV_UNDEFINED ? dtype : onv_value_dtype(&l->emit, node->outputs[0]));
}

/* Autograd copies what is overwritten where backward reads it. */
static bool is_copied(onv_lowering *l, const onv_node *node)
{
    if (node->code == ONV_OP_Mul || node->code == ONV_OP_Div)
        return onv_tensor_needs_grad(&l->emit, onv_node_in(l, node, 1));
    return node->code != ONV_OP_Add && node->code != ONV_OP_Sub;
}

/* Libraries that build theirs in place. */
static bool is_of_library(const onv_node *node)
{
    static const char *const names[] = {"'torchvision.", "'timm.", "'segmentation_models_pytorch."};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strstr(onv_noted(node)->call_classes, names[i]) != NULL) return true;
    return false;
}

/* Where nothing tells, it does. */
static bool relu_overwrites(onv_lowering *l, const onv_node *node)
{
    bool is_untold = onv_noted(node)->in_place == ONV_IN_PLACE_UNTOLD;
    bool makes_new = is_untold ? onv_node_is_geometric(node) || l->emit.options->relu_makes_new
                               : onv_noted(node)->in_place == ONV_IN_PLACE_NO;
    if (l->emit.options->no_inplace || makes_new || !onv_may_overwrite(l, node, 0)) return false;
    if (is_untold && onv_node_is_noted(node) && !is_of_library(node)) l->emit.eager->untold_relus++;
    return true;
}

static void note_untold(onv_lowering *l, const onv_node *node, uint32_t result)
{
    onv_inplace_relu relu = {result, node->outputs[0]};
    bool is_untold = node->code == ONV_OP_Relu && onv_noted(node)->in_place == ONV_IN_PLACE_UNTOLD;
    if (is_untold && result != ONV_NO_TENSOR && l->emit.options->inference &&
        !onv_vec_push(&l->emit.eager->inplace_relus, relu))
        onv_emit_fail_memory(&l->emit);
}

static bool leaky_overwrites(onv_lowering *l, const onv_node *node)
{
    if (l->emit.options->no_inplace || !onv_may_overwrite(l, node, 0)) return false;
    if (onv_noted(node)->in_place == ONV_IN_PLACE_YES || onv_is_inplace(l, node, true)) return true;
    uint32_t x = onv_node_in(l, node, 0);
    if (!onv_tensor_needs_grad(&l->emit, x)) return false;
    l->emit.eager->open_activations++;
    if (l->emit.options->n_inplace == 0)
        onv_say(&l->emit, ONV_SAID_activations, NULL, onv_tensor_at(&l->emit, x).bytes, NULL);
    return false;
}

/* `x += y`, `x.masked_fill_(mask, 0)`, `x.exp_()` say so in an export with notes; nn.ReLU6 is used in place in training,
 * activations of modules that are asked for in inference. Segments that run again make new tensors where autograd would copy
 * the old one, and torch.fx traces `x -= y` as `x - y`. */
static bool overwrites(onv_lowering *l, const onv_node *node, uint32_t k)
{
    const onv_lower_options *o = l->emit.options;
    if (node->code == ONV_OP_Relu) return relu_overwrites(l, node);
    if (is_leaky(node)) return leaky_overwrites(l, node);
    if (is_activation(node) && onv_overwrites(l, node, node->inputs[0], 1)) return true;
    bool is_told = onv_noted(node)->in_place == ONV_IN_PLACE_YES && !o->graph_module;
    bool is_module = !o->inference && is_relu6(&l->emit, node) &&
                     onv_tensor_needs_grad(&l->emit, onv_node_in(l, node, 0));
    if (!is_told && !is_module) return false;
    bool is_open = !o->inference && is_copied(l, node);
    l->emit.eager->differs_checkpoints |= is_open;
    bool may = !is_open || !o->checkpoints;
    return may && !o->no_inplace && has_result_of(l, node, k) && onv_may_overwrite(l, node, k);
}

/* --- Calls ------------------------------------------------------------------------------------- */

static void bound(onv_lowering *l, const onv_node *node, uint32_t k, const char *name)
{
    bool is_there =
        (k < node->n_inputs && onv_is_value(node->inputs[k])) || onv_node_attr(node, name) != NULL;
    if (is_there && onv_node_in(l, node, k) == ONV_NO_TENSOR) onv_recover_real(l, name, 0);
}

/* Overloads, and what the exporter writes by another operator. */
static onv_aten_id call_of(onv_lowering *l, const onv_node *node, const onv_lower_row *row)
{
    bool has[2];
    for (uint32_t k = 0; k < 2; k++) has[k] = onv_node_in(l, node, k) != ONV_NO_TENSOR;
    if (node->code == ONV_OP_Pow)
        return !has[0]   ? ONV_ATEN_pow__Scalar
               : !has[1] ? ONV_ATEN_pow__Tensor_Scalar
                         : ONV_ATEN_pow__Tensor_Tensor;
    if (node->code == ONV_OP_Clip) {
        bool is_hardtanh = strstr(onv_noted(node)->source_op, "hardtanh") != NULL;
        if (is_relu6(&l->emit, node) || is_hardtanh) return ONV_ATEN_hardtanh;
        return has[1] ? ONV_ATEN_clamp__Tensor : ONV_ATEN_clamp;
    }
    bool bounds = node->code == ONV_OP_Max || node->code == ONV_OP_Min;
    if (node->code == ONV_OP_Mod)
        return onv_node_int(node, "fmod", 0) == 0
                   ? (has[1] ? ONV_ATEN_remainder : ONV_ATEN_remainder__Scalar)
                   : (has[1] ? ONV_ATEN_fmod : ONV_ATEN_fmod__Scalar);
    if (bounds && onv_node_is_aten(node, "clamp"))
        return has[0] && has[1] ? ONV_ATEN_clamp_min__Tensor : ONV_ATEN_clamp_min;
    return (onv_aten_id)row->call;
}

/* The operand as the call has it: in attention as autocast casts it; what drops whole paths in the type of x. */
static uint32_t operand(onv_lowering *l, const onv_node *node, uint32_t k)
{
    bool may_attend = node->code == ONV_OP_Mul || node->code == ONV_OP_Div;
    bool may_lower = l->emit.options->amp != ONV_UNDEFINED && k == 1 && node->n_inputs == 2;
    uint32_t x = may_attend ? onv_amp_attention(l, node, k) : onv_node_in(l, node, k);
    if (x == ONV_NO_TENSOR || !may_lower || !onv_is_drawn(&l->emit, node->inputs[1])) return x;
    onv_eager_tensor t = onv_tensor_at(&l->emit, x),
                     first = onv_tensor_at(&l->emit, onv_node_in(l, node, 0));
    if (!onv_dtype_is_float((onv_dtype)t.dtype) || !onv_dtype_is_float((onv_dtype)first.dtype))
        return x;
    return onv_tensor_on(&l->emit, t.storage, first.dtype, t.rank, t.dims, t.strides);
}

/* Of any number of operands, one after the other; a mean is divided by their number. */
static uint32_t recover_many(onv_lowering *l, const onv_node *node, onv_aten_id name)
{
    uint32_t all = onv_node_in(l, node, 0);
    for (uint32_t k = 1; k < node->n_inputs; k++)
        all = onv_recover_binary(l, name, all, onv_node_in(l, node, k), node->outputs[0]);
    return node->code == ONV_OP_Mean
               ? onv_recover_binary(l, ONV_ATEN_div, all, ONV_NO_TENSOR, node->outputs[0])
               : all;
}

/* Operators that are several calls; false: it is one. */
static bool recover_apart(onv_lowering *l, const onv_node *node, onv_aten_id call, uint32_t *out)
{
    uint32_t x = onv_node_in(l, node, 0);
    onv_value_id result = node->outputs[0];
    bool is_many = node->code == ONV_OP_Sum || node->code == ONV_OP_Mean ||
                   node->code == ONV_OP_Max || node->code == ONV_OP_Min;
    if (is_many && (node->n_inputs != 2 || node->code == ONV_OP_Mean)) {
        *out = recover_many(l, node, call);
    } else if (node->code == ONV_OP_Div && x == ONV_NO_TENSOR) {
        *out = onv_lower_quotient_of_number(l, node);
    } else if (node->code == ONV_OP_Softsign) { /* x / (1 + |x|) */
        uint32_t more = onv_recover_unary(l, ONV_ATEN_abs, x, result);
        more = onv_recover_binary(l, ONV_ATEN_add__Tensor, more, ONV_NO_TENSOR, result);
        *out = onv_recover_binary(l, call, x, more, result);
    } else if (node->code == ONV_OP_SwiGLU) {
        uint32_t gate = onv_recover_unary(l, ONV_ATEN_silu, x, result);
        *out = onv_recover_binary(l, call, gate, onv_node_in(l, node, 1), result);
    } else {
        return false;
    }
    return true;
}

/* Inputs are arguments in their order. */
uint32_t onv_lower_pointwise(onv_lowering *l, const onv_node *node)
{
    const onv_lower_row *row = onv_lower_row_of(node);
    uint32_t in[MOST_OPERANDS], result;
    if (recover_apart(l, node, (onv_aten_id)row->call, &result)) return result;
    bool is_choice = node->code == ONV_OP_Where;
    for (uint32_t k = 0; k < MOST_OPERANDS; k++) in[k] = operand(l, node, k);
    if (node->code == ONV_OP_Mul || node->code == ONV_OP_Div) onv_widen_attended(l, node);
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
        if (k > 0 || in[0] != ONV_NO_TENSOR || node->code != ONV_OP_Pow)
            onv_recover_tensor(l, "", in[k]);
    if (node->code == ONV_OP_Clip) {
        bound(l, node, 1, "min");
        bound(l, node, 2, "max");
    }
    l->recovery.in_place = writes;
    result = onv_recover_call(l, call, node->outputs[0]);
    if (writes) note_untold(l, node, result);
    return result;
}
