/* The first round of a loop over a sequence, whose state began with zeros: what it computes of the state and of parameters alone
 * depends on no input, so the exporter computed it, and the file has a constant in its place.
 *
 *     h = zeros                      relu = Relu(getitem + mul)            mul: a constant
 *     for x in xs:                   mul_1 = own * relu
 *         h = relu(x + own * h)      relu_1 = Relu(getitem_1 + mul_1)
 *
 * The next round tells: the same line of Python, in the same module, reads in the same place what a call of the same
 * operation gives, of a parameter and of one other tensor. Autograd keeps the zeros, as the parameter has a gradient. */
#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "lower/lowering.h"
#include "lower/weight_place.h"

/* Nodes that are looked at for the next round, and for what the round reads beside; and the most of one call. */
enum { LOOK_AHEAD = 2048, LOOK_NEAR = 64, MAX_NODES = 8 };

typedef struct round {
    uint32_t from, to; /* nodes of the call that the next one makes */
    onv_value_id state, result;
} round;

static size_t base_length(const char *name)
{
    size_t length = strlen(name), digits = 0;
    while (digits < length && name[length - digits - 1] >= '0' && name[length - digits - 1] <= '9')
        digits++;
    bool is_number = digits > 0 && digits + 1 < length && name[length - digits - 1] == '_';
    return is_number ? length - digits - 1 : length;
}

static bool is_same_operation(const char *a, const char *b)
{
    size_t length = base_length(a);
    return length == base_length(b) && memcmp(a, b, length) == 0;
}

static bool is_same_line(const onv_node *a, const onv_node *b)
{
    return a->graph.index == b->graph.index && a->scope == b->scope &&
           strcmp(a->op_type, b->op_type) == 0 && a->n_inputs == b->n_inputs &&
           a->statements != NULL && b->statements != NULL &&
           strcmp(a->statements, b->statements) == 0;
}

static bool is_in_call(const onv_node *node, const onv_node *other)
{
    return node->graph.index == other->graph.index && node->source_op == other->source_op &&
           node->scope == other->scope;
}

/* The call whose last node that is; false where it is not one of parameters and one other tensor. */
static bool find_call(const onv_lowering *l, onv_node_id last, round *r)
{
    const onv_node *at = onv_model_node(l->emit.model, last);
    uint32_t n_parameters = 0;
    r->from = r->to = last.index;
    while (r->from > 0 && is_in_call(onv_model_node(l->emit.model, (onv_node_id){r->from - 1}), at))
        r->from--;
    if (r->to - r->from >= MAX_NODES) return false;
    r->state = ONV_NO_VALUE;
    for (uint32_t i = r->from; i <= r->to; i++) {
        const onv_node *node = onv_model_node(l->emit.model, (onv_node_id){i});
        n_parameters += node->n_parameters;
        uint32_t fusion = l->fusions.of_node[i];
        uint32_t end = fusion != 0 ? l->fusions.at.at[fusion - 1].last.index : i;
        if (end < r->from || end > r->to || onv_node_has_graphs(node)) return false;
        for (uint32_t k = 0; k < node->n_inputs; k++) {
            onv_value_id in = node->inputs[k];
            if (!onv_is_value(in) || onv_value_is_weight(onv_model_value(l->emit.model, in)))
                continue;
            onv_node_id producer = onv_model_value(l->emit.model, in)->producer;
            if (onv_is_node(producer) && producer.index >= r->from) continue;
            if (onv_is_value(r->state) && r->state.index != in.index) return false;
            r->state = in;
        }
    }
    return n_parameters > 0 && onv_is_value(r->state);
}

static bool has_same_shape(onv_lowering *l, onv_value_id a, onv_value_id b)
{
    onv_shape first, second;
    return onv_value_shape(l, a, &first) && onv_value_shape(l, b, &second) &&
           first.rank == second.rank &&
           memcmp(first.dims, second.dims, first.rank * sizeof *first.dims) == 0;
}

/* What the next round has in the place of the constant that this node reads as its input `k`. */
static bool find_next(onv_lowering *l, const onv_node *reader, uint32_t k, round *r)
{
    onv_value_id constant = reader->inputs[k];
    const char *name = onv_model_value(l->emit.model, constant)->name;
    uint32_t from = l->emit.node.index + 1, n = (uint32_t)l->emit.model->nodes.count;
    for (uint32_t i = from; i < n && i - from < LOOK_AHEAD; i++) {
        if (!onv_work(1)) l->emit.status = ONV_ERR_CANCELLED;
        if (l->emit.status != ONV_OK) return false;
        const onv_node *node = onv_model_node(l->emit.model, (onv_node_id){i});
        if (!is_same_line(reader, node) || !onv_is_value(node->inputs[k])) continue;
        if (node->inputs[k].index == constant.index) continue;
        onv_node_id made_by = onv_model_value(l->emit.model, node->inputs[k])->producer;
        if (!onv_is_node(made_by) || made_by.index < l->emit.node.index) return false;
        const char *call = onv_model_node(l->emit.model, made_by)->source_op;
        r->result = node->inputs[k];
        return call != NULL && is_same_operation(call, name) && find_call(l, made_by, r) &&
               onv_model_value(l->emit.model, r->state)->producer.index >= l->emit.node.index &&
               has_same_shape(l, constant, r->result);
    }
    return false;
}

static uint32_t make_zeros(onv_lowering *l, onv_value_id like)
{
    uint32_t zeros = onv_value_new(l, like, ONV_UNDEFINED);
    onv_emit_begin(&l->emit, "full");
    onv_emit_out(&l->emit, zeros);
    onv_emit_end(&l->emit);
    return zeros;
}

static bool is_fill(const char *name)
{
    static const char *const fills[] = {"zeros", "zeros_like", "new_zeros", "full", "full_like"};
    return onv_is_call_of_any(name, fills, sizeof fills / sizeof fills[0]);
}

static uint32_t number_of(const char *name)
{
    uint32_t number = 0;
    for (const char *at = name + base_length(name); *at != '\0' && number < UINT32_MAX / 16; at++)
        if (*at != '_') number = 10 * number + (uint32_t)(*at - '0');
    return number;
}

/* `h = c = zeros`: the module reads the same zeros for another state. They are the state's, too, where no call of zeros is missing
 * between the last one that was read and this one. */
static uint32_t shared_zeros(onv_lowering *l, onv_value_id state, const onv_node *node, uint32_t k)
{
    onv_value_id id = node->inputs[k];
    if (!onv_is_value(id)) return ONV_NO_TENSOR;
    const onv_value *value = onv_model_value(l->emit.model, id);
    if (!onv_value_is_weight(value) || !is_fill(value->name) || !has_same_shape(l, id, state))
        return ONV_NO_TENSOR;
    const char *own = value->name, *last = l->values[id.index].stands_for, *call = own;
    if (node->merged_call != NULL && is_same_operation(node->merged_call, own))
        call = node->merged_call;
    uint32_t next = last != NULL                   ? number_of(last) + 1
                    : l->values[id.index].is_known ? number_of(own) + 1
                                                   : 0;
    if (number_of(call) > next) return ONV_NO_TENSOR;
    if (call != own && last != call) {
        l->values[id.index].is_known = false;
        l->values[id.index].stands_for = call;
    }
    return onv_value_tensor(l, id);
}

/* Calls of one round that read the state share its zeros. */
static uint32_t first_state(onv_lowering *l, onv_value_id state)
{
    uint32_t *made = &l->values[state.index].first_state, zeros = ONV_NO_TENSOR;
    const onv_node *reader = onv_model_node(l->emit.model, l->emit.node);
    uint32_t from = l->emit.node.index, n = (uint32_t)l->emit.model->nodes.count;
    if (*made != 0) return *made - 1;
    for (uint32_t i = from; i < n && i - from < LOOK_NEAR && zeros == ONV_NO_TENSOR; i++) {
        const onv_node *node = onv_model_node(l->emit.model, (onv_node_id){i});
        bool is_near = node->graph.index == 0 && node->scope == reader->scope;
        for (uint32_t k = 0; k < node->n_inputs && is_near && zeros == ONV_NO_TENSOR; k++)
            zeros = shared_zeros(l, state, node, k);
    }
    *made = (zeros != ONV_NO_TENSOR ? zeros : make_zeros(l, state)) + 1;
    return *made - 1;
}

uint32_t onv_first_round(onv_lowering *l, onv_value_id id)
{
    round r = {.from = 0};
    uint32_t k = 0;
    if (l->emit.is_building || !onv_is_node(l->emit.node) || l->emit.options->inference ||
        l->emit.options->as_exported || l->emit.region != ONV_NO_REGION)
        return ONV_NO_TENSOR;
    const onv_node *reader = onv_model_node(l->emit.model, l->emit.node);
    while (k < reader->n_inputs && reader->inputs[k].index != id.index) k++;
    if (k == reader->n_inputs || !find_next(l, reader, k, &r)) return ONV_NO_TENSOR;
    uint32_t zeros = first_state(l, r.state);
    if (l->emit.status != ONV_OK) return ONV_NO_TENSOR;
    onv_node_id outer = l->emit.node;
    size_t first_op = l->emit.eager->ops.count;
    onv_value_set(l, r.state, zeros);
    for (uint32_t i = r.from; i <= r.to && l->emit.status == ONV_OK; i++) {
        uint32_t fusion = l->fusions.of_node[i];
        onv_lower_at(l, (onv_node_id){i});
        if (fusion == 0 || l->fusions.at.at[fusion - 1].last.index == i)
            onv_lower_once(l, l->emit.node);
    }
    onv_lower_at(l, outer);
    uint32_t result =
        l->values[r.result.index].is_known ? l->values[r.result.index].tensor : ONV_NO_TENSOR;
    /* Their own turn comes. */
    l->values[r.state.index].is_known = false;
    for (uint32_t i = r.from; i <= r.to; i++) {
        const onv_node *node = onv_model_node(l->emit.model, (onv_node_id){i});
        for (uint32_t o = 0; o < node->n_outputs; o++)
            if (onv_is_value(node->outputs[o])) l->values[node->outputs[o].index].is_known = false;
    }
    for (size_t i = first_op; i < l->emit.eager->ops.count; i++)
        l->emit.eager->ops.at[i].node = outer;
    return result;
}
