/* nn.GRUCell and nn.LSTMCell: the newer exporter writes their parts, behind the products that give the gates.
 * On CUDA they are one kernel. */
#include <string.h>

#include "fuse/find.h"

static bool is_of_class(const onv_node *node, const char *class)
{
    return node->module_class != NULL && strcmp(node->module_class, class) == 0;
}

/* Takes the reader of that operator, of which there is one. */
static const onv_node *take_reader(onv_finder *s, onv_group *g, onv_value_id value, onv_op_name op)
{
    const onv_node *node = onv_find_reader(s, value, op);
    return onv_find_take(s, g, node) ? node : NULL;
}

/* What a cell computes of its state alone is constant where the state is. */
static bool is_constant(const onv_finder *s, onv_value_id value)
{
    return onv_is_value(value) && onv_value_is_weight(onv_model_value(s->model, value));
}

/* The sum that only the group reads, and what it adds. */
static bool take_sum(onv_finder *s, onv_group *g, onv_value_id value, onv_value_id parts[2])
{
    const onv_node *sum = onv_find_sole(s, value, ONV_OP_Add);
    if (sum == NULL || sum->n_inputs != 2 || !onv_find_take(s, g, sum)) return false;
    parts[0] = sum->inputs[0];
    parts[1] = sum->inputs[1];
    return true;
}

/* The gate of `part`: its sum with a part of the other one, and the sigmoid of that. */
static const onv_node *take_gate(onv_finder *s, onv_group *g, onv_value_id part)
{
    const onv_node *sum = take_reader(s, g, part, ONV_OP_Add);
    return sum != NULL ? take_reader(s, g, sum->outputs[0], ONV_OP_Sigmoid) : NULL;
}

/* n + z (c - n), with n = tanh(i2 + r g2), from the tanh on. */
static bool match_gru(onv_finder *s, onv_group *g, const onv_node *tanh, onv_fusion *fusion)
{
    onv_value_id parts[2];
    if (!onv_find_take(s, g, tanh) || !take_sum(s, g, tanh->inputs[0], parts)) return false;
    uint32_t k = onv_find_sole(s, parts[1], ONV_OP_Mul) != NULL ? 1 : 0;
    const onv_node *input = onv_find_producer(s, parts[1 - k], ONV_OP_Split),
                   *reset = onv_find_sole(s, parts[k], ONV_OP_Mul);
    if (input == NULL || input->n_outputs != 3 || !onv_find_take(s, g, input) ||
        !onv_find_take(s, g, reset))
        return false;
    const onv_node *r = take_gate(s, g, input->outputs[0]);
    const onv_node *z = take_gate(s, g, input->outputs[1]);
    if (r == NULL || z == NULL) return false;
    onv_value_id own = onv_find_other(reset, r->outputs[0]);
    const onv_node *state = onv_find_producer(s, own, ONV_OP_Split);
    bool is_whole = state != NULL ? onv_find_take(s, g, state) : is_constant(s, own);
    const onv_node *blend = onv_find_reader(s, z->outputs[0], ONV_OP_Mul);
    const onv_node *from =
        blend != NULL ? onv_find_sole(s, onv_find_other(blend, z->outputs[0]), ONV_OP_Sub) : NULL;
    if (!is_whole || from == NULL || !onv_find_same(from->inputs[1], tanh->outputs[0]))
        return false;
    if (!onv_find_take(s, g, blend) || !onv_find_take(s, g, from)) return false;
    const onv_node *last = take_reader(s, g, blend->outputs[0], ONV_OP_Add);
    if (last == NULL || !onv_find_same(onv_find_other(last, blend->outputs[0]), tanh->outputs[0]))
        return false;
    *fusion = onv_find_unary(s, ONV_FUSION_CELL, input->inputs[0], last);
    fusion->key = state != NULL ? state->inputs[0] : ONV_NO_VALUE;
    fusion->value = from->inputs[0];
    return true;
}

/* o tanh(f c + i t), with the parts of one sum for gates, from their split on. */
static bool match_lstm(onv_finder *s, onv_group *g, const onv_node *split, onv_fusion *fusion)
{
    static const uint16_t gates[] = {ONV_OP_Sigmoid, ONV_OP_Sigmoid, ONV_OP_Tanh, ONV_OP_Sigmoid};
    const onv_node *at[4];
    onv_value_id parts[2];
    if (split->n_outputs != 4 || !onv_find_take(s, g, split)) return false;
    if (!take_sum(s, g, split->inputs[0], parts)) return false;
    for (uint32_t k = 0; k < 4; k++) {
        at[k] = take_reader(s, g, split->outputs[k], gates[k]);
        if (at[k] == NULL) return false;
    }
    const onv_node *keeps = take_reader(s, g, at[1]->outputs[0], ONV_OP_Mul);
    const onv_node *takes = take_reader(s, g, at[0]->outputs[0], ONV_OP_Mul);
    const onv_node *next = keeps != NULL ? take_reader(s, g, keeps->outputs[0], ONV_OP_Add) : NULL;
    const onv_node *last = take_reader(s, g, at[3]->outputs[0], ONV_OP_Mul);
    if (takes == NULL || next == NULL || last == NULL) return false;
    if (!onv_find_same(onv_find_other(takes, at[0]->outputs[0]), at[2]->outputs[0]) ||
        !onv_find_same(onv_find_other(next, keeps->outputs[0]), takes->outputs[0]))
        return false;
    const onv_node *bound = onv_find_sole(s, onv_find_other(last, at[3]->outputs[0]), ONV_OP_Tanh);
    if (bound == NULL || !onv_find_same(bound->inputs[0], next->outputs[0]) ||
        !onv_find_take(s, g, bound))
        return false;
    bool is_first = is_constant(s, parts[0]);
    *fusion = onv_find_unary(s, ONV_FUSION_CELL, parts[is_first], last);
    fusion->key = is_constant(s, parts[!is_first]) ? ONV_NO_VALUE : parts[!is_first];
    fusion->value = onv_find_other(keeps, at[1]->outputs[0]);
    fusion->state = next->outputs[0];
    return true;
}

/* From the tanh of the new state on; the split before it has no note. */
void onv_find_cell(onv_finder *s, const onv_node *node)
{
    onv_group g = {0};
    onv_fusion fusion;
    if (!s->kernels.cells) return;
    const onv_node *split = onv_find_producer(s, node->inputs[0], ONV_OP_Split);
    bool is_lstm = split != NULL && is_of_class(node, "torch.nn.modules.rnn.LSTMCell");
    bool is_gru = is_of_class(node, "torch.nn.modules.rnn.GRUCell");
    if (is_gru ? match_gru(s, &g, node, &fusion) : is_lstm && match_lstm(s, &g, split, &fusion))
        onv_find_publish(s, &g, fusion);
}
