/* What the exporter has once and PyTorch made several times runs again: calls that were merged (merged.c says which), and zeros or
 * ones that several calls begin with. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
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
    l->values[id.index].stands_for = reader->merged_call;
    l->tally.merged.count++;
}

enum { MAX_PARTS = 24 }; /* of a call of attention */

/* The node that made the value, if it is a part of the call of that name. */
static const onv_node *part_of(const onv_lowering *l, onv_value_id id, const char *call)
{
    onv_node_id producer =
        onv_is_value(id) ? onv_model_value(l->emit.model, id)->producer : ONV_NO_NODE;
    const onv_node *node = onv_is_node(producer) ? onv_model_node(l->emit.model, producer) : NULL;
    bool is_part = node != NULL && node->source_op == call && node->n_outputs == 1 &&
                   onv_node_is_aten(node, "scaled_dot_product_attention");
    return is_part ? node : NULL;
}

/* The parts of a call that lead to the value, the later ones first; false: they are too many. */
static bool list_parts(const onv_lowering *l, onv_value_id id, const char *call,
                       onv_value_id *parts, uint32_t *n)
{
    const onv_node *node = part_of(l, id, call);
    if (node == NULL) return true;
    for (uint32_t i = 0; i < *n; i++)
        if (parts[i].index == id.index) return true;
    if (*n == MAX_PARTS) return false;
    parts[(*n)++] = id;
    for (uint32_t k = 0; k < node->n_inputs; k++)
        if (!list_parts(l, node->inputs[k], call, parts, n)) return false;
    return true;
}

static int by_index(const void *left, const void *right)
{
    const onv_value_id *a = left, *b = right;
    return (a->index > b->index) - (a->index < b->index);
}

/* Two calls of attention with the same queries and keys have other values: of both, the exporter has the probabilities once. */
static void repeat_attention(onv_lowering *l, const onv_node *product)
{
    onv_value_id parts[MAX_PARTS];
    uint32_t n = 0;
    if (strcmp(product->op_type, "MatMul") != 0 || product->n_inputs != 2 ||
        !onv_is_value(product->inputs[0]) ||
        !onv_node_is_aten(product, "scaled_dot_product_attention") || l->emit.options->as_exported)
        return;
    onv_node_id from = onv_model_value(l->emit.model, product->inputs[0])->producer;
    const char *call = onv_is_node(from) ? onv_model_node(l->emit.model, from)->source_op : NULL;
    if (call == NULL || call == product->source_op ||
        !list_parts(l, product->inputs[0], call, parts, &n) || n < 2)
        return;
    qsort(parts, n, sizeof *parts, by_index);
    for (uint32_t i = 0; i < n; i++) {
        onv_node_id producer = onv_model_value(l->emit.model, parts[i])->producer;
        uint32_t fusion = l->fusions.of_node[producer.index];
        if (fusion == 0 || l->fusions.at.at[fusion - 1].last.index == producer.index)
            onv_repeat_value(l, parts[i]);
    }
    l->tally.merged.count++;
}

void onv_repeat_merged(onv_lowering *l, const onv_node *node)
{
    if (node->graph.index == 0) repeat_attention(l, node);
    for (uint32_t k = 0; k < node->n_inputs && node->graph.index == 0; k++) {
        onv_merged_select(l, node->inputs[k], node);
        /* By its name it was given to this module. */
        bool is_itself = k < 32 && (node->named & ONV_BIT(k)) != 0;
        if ((!is_itself && onv_merged_is_other_module(l, node->inputs[k], node)) ||
            onv_merged_is_named(l, node->inputs[k], node))
            repeat_in_module(l, node->inputs[k], node);
        else if (onv_merged_starts(l, node->inputs[k], l->emit.node.index))
            onv_repeat_value(l, node->inputs[k]);
    }
}

/* --- Operations that changed nothing ----------------------------------------------------------- */

static bool adds_zero(const onv_lowering *l, uint32_t reader)
{
    const char *op = l->emit.model->nodes.at[reader].neutral_op;
    return strcmp(op, "add") == 0 || strcmp(op, "sub") == 0;
}

/* Where one reader's call had the result and another's is not told, both may have read either; one that names the value
 * itself is told. */
void onv_neutral_mark(onv_lowering *l)
{
    enum { UNTOLD = UINT32_MAX };
    if (l->emit.options->as_exported) return;
    for (uint32_t i = 0; i < l->emit.model->nodes.count; i++) {
        const onv_node *node = &l->emit.model->nodes.at[i];
        for (uint32_t k = 0; k < node->n_inputs; k++) {
            bool is_itself = k < 32 && (node->named & ONV_BIT(k)) != 0;
            if (!onv_is_value(node->inputs[k]) || is_itself) continue;
            bool is_told = k < 32 && (node->neutral & ONV_BIT(k)) != 0 && node->graph.index == 0;
            uint32_t *reader = &l->values[node->inputs[k].index].neutral_for;
            if (!is_told)
                *reader = UNTOLD;
            else if (*reader == 0)
                *reader = i + 1;
        }
    }
    for (size_t i = 0; i < l->emit.model->values.count; i++)
        if (l->values[i].neutral_for == UNTOLD || onv_value_is_weight(&l->emit.model->values.at[i]))
            l->values[i].neutral_for = 0;
}

/* Of one layer something stands for the parameter of that name: then it is no 1 that the exporter removed. */
static bool is_told_of_layers(onv_lowering *l, size_t listed)
{
    for (size_t i = 0; i < l->signature.count && !l->merged.has_told; i++) {
        const char *name =
            l->signature.explained[i] ? onv_name_of_layers(l, l->signature.names[i]) : NULL;
        if (name != NULL && !onv_ptr_map_set(&l->merged.told, name, 1))
            l->emit.status = onv_fail_memory(l->emit.err);
    }
    l->merged.has_told = true;
    const char *name = onv_name_of_layers(l, l->signature.names[listed]);
    return name != NULL && onv_ptr_map_get(&l->merged.told, name, NULL);
}

/* A factor that is trained, and 1 in the file: the first listed parameter of the reader's own module that no tensor stands for,
 * which no layer of PyTorch's own multiplies by; SIZE_MAX: there is none. */
static size_t factor_of(onv_lowering *l, const onv_node *reader)
{
    const char *scope = reader->scope != NULL ? reader->scope : "", *op = reader->neutral_op;
    size_t length = strlen(scope);
    const char *class = reader->module_class;
    bool is_layer = class != NULL && strncmp(class, "torch.nn.modules.", 17) == 0;
    if (l->signature.count == 0 || (strcmp(op, "mul") != 0 && strcmp(op, "div") != 0) || is_layer)
        return SIZE_MAX;
    for (size_t i = onv_listed_lower_bound(l, scope); i < l->signature.count && onv_work(1); i++) {
        const char *name = l->signature.names[i];
        if (strncmp(name, scope, length) != 0) break;
        const char *attribute = name + length + (length > 0);
        if ((length == 0 || name[length] == '.') && strchr(attribute, '.') == NULL &&
            !l->signature.explained[i] && !is_told_of_layers(l, i))
            return i;
    }
    return SIZE_MAX;
}

static uint32_t emit_factor(onv_lowering *l, const char *op, uint32_t x, uint32_t factor)
{
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    bool wants[2] = {onv_tensor_needs_grad(&l->emit, x), onv_tensor_needs_grad(&l->emit, factor)};
    onv_emit_begin(&l->emit, op);
    l->emit.op.swaps_grads = true;
    onv_emit_in(&l->emit, x, ONV_GRAD_NEW);
    onv_emit_in(&l->emit, factor, ONV_GRAD_NEW);
    if (wants[1]) onv_emit_save(&l->emit, x);
    if (wants[0] || strcmp(op, "div") == 0) onv_emit_save(&l->emit, factor);
    uint32_t out = onv_emit_out(&l->emit, onv_tensor_new(&l->emit, t.dtype, t.rank, t.dims, NULL));
    onv_emit_end(&l->emit);
    return out;
}

/* They run in the line that reads what they give, but where that is in a module that was given it: then in no line of a node,
 * behind the one that made their operand. */
static bool is_in_readers_line(const onv_node *maker, const onv_node *reader)
{
    if (maker->scope == NULL || reader->scope == NULL) return true;
    return onv_path_is_of(maker->scope, reader->scope) ||
           onv_path_is_of(reader->scope, maker->scope);
}

static void make_neutral(onv_lowering *l, uint32_t value)
{
    uint32_t reader = l->values[value].neutral_for - 1, x = l->values[value].tensor;
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    onv_node_id now = l->emit.node, maker = l->emit.model->values.at[value].producer;
    const onv_node *node = &l->emit.model->nodes.at[reader];
    bool is_its_line = is_in_readers_line(onv_model_node(l->emit.model, maker), node);
    onv_lower_at(l, maker);
    if (is_its_line) l->emit.node.index = reader;
    const char *op = node->neutral_op;
    bool adds = adds_zero(l, reader);
    size_t listed = factor_of(l, node);
    if (listed != SIZE_MAX) {
        l->signature.explained[listed] = true;
        uint32_t factor =
            onv_parameter_new(l, t.dtype, &(onv_shape){0}, l->signature.names[listed]);
        l->values[value].neutral = emit_factor(l, op, x, factor) + 1;
        onv_lower_at(l, now);
        return;
    }
    onv_emit_begin(&l->emit, op);
    onv_emit_in(&l->emit, x, adds ? ONV_GRAD_ALIAS : ONV_GRAD_NEW); /* grad * 1 is a tensor, too */
    uint32_t out = onv_emit_out(&l->emit, onv_tensor_new(&l->emit, t.dtype, t.rank, t.dims, NULL));
    onv_emit_end(&l->emit);
    onv_lower_at(l, now);
    l->values[value].neutral = out + 1;
}

/* A module returns before its caller adds 0 to what it gave. */
static bool has_returned(const onv_lowering *l, uint32_t value)
{
    const onv_node *maker = onv_model_node(l->emit.model, l->emit.model->values.at[value].producer);
    uint32_t reader = l->values[value].neutral_for - 1, next = l->emit.node.index + 1;
    const char *call = maker->scope;
    if (call == NULL || call[0] == '\0' || next >= reader ||
        onv_path_is_of(l->emit.model->nodes.at[reader].scope, call))
        return true;
    return !onv_path_is_of(l->emit.model->nodes.at[next].scope, call);
}

void onv_neutral_make(onv_lowering *l, const onv_node *node)
{
    for (uint32_t k = 0; k < node->n_outputs; k++) {
        onv_value_id id = node->outputs[k];
        bool is_made = onv_is_value(id) && l->values[id.index].neutral_for != 0 &&
                       l->values[id.index].is_known && l->values[id.index].tensor != ONV_NO_TENSOR;
        if (!is_made) continue;
        l->values[id.index].neutral_next = l->neutral_first;
        l->neutral_first = id.index + 1;
    }
    for (uint32_t *at = &l->neutral_first; *at != 0 && l->emit.status == ONV_OK;) {
        uint32_t value = *at - 1;
        bool is_due = has_returned(l, value);
        if (!onv_work(1)) l->emit.status = ONV_ERR_CANCELLED;
        if (is_due) make_neutral(l, value);
        if (is_due)
            *at = l->values[value].neutral_next;
        else
            at = &l->values[value].neutral_next;
    }
}
