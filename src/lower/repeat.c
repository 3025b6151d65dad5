/* What the exporter has once and PyTorch made several times runs again: calls that were merged (merged.c says which), and zeros or
 * ones that several calls begin with. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "base/rules.h"
#include "ir/path.h"
#include "lower/lowering.h"
#include "ops/op.h"

/* Zeros, ones and the like, which exporters make once for all that read equal ones. */
bool onv_value_is_fill(onv_lowering *l, onv_value_id id)
{
    if (!onv_is_value(id) || !l->values[id.index].is_known) return false;
    const onv_value *value = onv_model_value(l->emit.model, id);
    if (onv_value_is_weight(value)) return onv_weight_use_of(l, id) == ONV_WEIGHT_MADE;
    return onv_is_node(value->producer) &&
           onv_node_fills(onv_model_node(l->emit.model, value->producer));
}

/* A weight of the file is made again where it is read. */
static void repeat_fill(onv_lowering *l, onv_value_id id)
{
    onv_node_id producer = onv_model_value(l->emit.model, id)->producer, reader = l->emit.node;
    if (!onv_is_node(producer)) {
        l->values[id.index].is_known = false;
        return;
    }
    size_t first_op = l->emit.eager->ops.count;
    onv_lower_at(l, producer);
    onv_lower_once(l, producer);
    onv_lower_at(l, reader);
    for (size_t i = first_op; i < l->emit.eager->ops.count; i++)
        l->emit.eager->ops.at[i].node = reader;
}

void onv_fill_again(onv_lowering *l, onv_value_id id)
{
    if (onv_value_is_fill(l, id) && !l->emit.options->as_exported) repeat_fill(l, id);
}

/* What is scattered into is a tensor of the call's own, as is the state that a recurrent layer begins with. */
void onv_repeat_base(onv_lowering *l, const onv_node *node)
{
    if (!onv_rule_is_on("lower.repeat_base")) return;
    enum { SCATTERED_INTO = 0, INITIAL_STATE = 5 };
    bool scatters = strncmp(node->op_type, "Scatter", 7) == 0;
    uint32_t base = scatters ? SCATTERED_INTO : INITIAL_STATE;
    if (!scatters && !onv_node_is_recurrent(node)) return;
    if (node->n_inputs <= base || node->graph.index != 0) return;
    onv_value_id id = node->inputs[base];
    if (onv_is_value(id) && l->fusions.user[id.index].index != l->emit.node.index)
        onv_fill_again(l, id);
}

/* For a reader that has a call of its own; what that fills, too. */
void onv_repeat_value(onv_lowering *l, onv_value_id id)
{
    onv_node_id producer = onv_model_value(l->emit.model, id)->producer, reader = l->emit.node;
    if (!onv_is_node(producer) || !l->values[id.index].is_known) return;
    const onv_node *node = onv_model_node(l->emit.model, producer);
    for (uint32_t k = 0; k < node->n_inputs && strncmp(node->op_type, "Scatter", 7) == 0; k++)
        if (onv_value_is_fill(l, node->inputs[k])) repeat_fill(l, node->inputs[k]);
    size_t first_op = l->emit.eager->ops.count;
    onv_lower_at(l, producer);
    onv_lower_once(l, producer);
    onv_lower_at(l, reader);
    /* It runs in the call of the module that reads it. */
    for (size_t i = first_op; i < l->emit.eager->ops.count; i++) {
        l->emit.eager->ops.at[i].node = reader;
        l->emit.eager->ops.at[i].origin = producer;
    }
}

/* A module in the reader's own one was called again, line by line. A fusion is where its last node stands. */
static void repeat_part(onv_lowering *l, onv_value_id id, const onv_node *reader)
{
    onv_node_id producer = onv_model_value(l->emit.model, id)->producer;
    const onv_node *node = onv_model_node(l->emit.model, producer);
    uint32_t fusion = l->fusions.of_node[producer.index];
    if (fusion != 0 && l->fusions.at.at[fusion - 1].last.index != producer.index) return;
    size_t first_op = l->emit.eager->ops.count;
    onv_repeat_value(l, id);
    if (!onv_path_is_inside(node->scope, reader->scope != NULL ? reader->scope : "")) return;
    for (size_t i = first_op; i < l->emit.eager->ops.count; i++)
        l->emit.eager->ops.at[i].calls = node->calls;
}

/* The call that the node's own module makes of what another one computed, or that it makes again: all of it, from
 * what the modules were given. */
static void repeat_in_module(onv_lowering *l, onv_value_id id, const onv_node *reader)
{
    onv_value_id chain[ONV_MAX_REPEATED];
    uint32_t n = onv_merged_again(l, id, reader, chain);
    bool is_other = !onv_merged_is_own_module(l, id, reader);
    if (n == 0) return;
    while (n-- > 0) {
        if (onv_is_node(onv_model_value(l->emit.model, chain[n])->producer))
            repeat_part(l, chain[n], reader);
        else
            l->values[chain[n].index].is_known = false;
        if (is_other) l->values[chain[n].index].made_in = reader->scope;
    }
    l->values[id.index].stands_for = onv_noted(reader)->merged_call;
    l->tally.merged.count++;
}

void onv_repeat_merged(onv_lowering *l, const onv_node *node)
{
    if (!onv_rule_is_on("lower.repeat_merged")) return;
    for (uint32_t k = 0; k < node->n_inputs && node->graph.index == 0; k++) {
        onv_merged_select(l, node->inputs[k], node);
        /* By its name it was given to this module. */
        bool is_itself = k < 32 && (onv_noted(node)->named & ONV_BIT(k)) != 0;
        if ((!is_itself && onv_merged_is_other_module(l, node->inputs[k], node)) ||
            onv_merged_is_named(l, node->inputs[k], node))
            repeat_in_module(l, node->inputs[k], node);
        else if (onv_merged_starts(l, node->inputs[k], l->emit.node.index))
            onv_repeat_value(l, node->inputs[k]);
    }
}
