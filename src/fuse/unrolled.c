/* nn.RNN: the newer exporter writes every step of it, where PyTorch calls cuDNN once for all layers and directions.
 *
 * A layer in one direction is a product of the whole sequence with a weight, a product, two sums and a tanh or relu
 * for each step, and the concatenation of what these give. The nodes of a call stand together. */
#include <string.h>

#include "fuse/find.h"

#define RNN_CLASS "torch.nn.modules.rnn.RNN"

typedef struct unrolled {
    size_t first, last,
        end; /* nodes: the projection of the first layer, what gives the sequence, behind the call */
    onv_recurrence r;
    bool has_step, fits;
} unrolled;

static bool is_of_call(const onv_node *node, const onv_node *first)
{
    return strcmp(onv_noted(node)->module_class, RNN_CLASS) == 0 &&
           strcmp(onv_noted(node)->scope, onv_noted(first)->scope) == 0 &&
           node->graph.index == first->graph.index;
}

static bool has_weight(const onv_finder *s, const onv_node *node, int16_t rank)
{
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        const onv_value *value =
            onv_is_value(node->inputs[k]) ? onv_model_value(s->model, node->inputs[k]) : NULL;
        if (value != NULL && onv_value_is_weight(value) && value->type.rank == rank) return true;
    }
    return false;
}

/* [steps, batch, inputs] times a weight; the state of a step is [1, batch, hidden] or a matrix. */
static bool is_projection(const onv_finder *s, const onv_node *node)
{
    if (!onv_find_is_op(node, ONV_OP_MatMul) || !onv_is_value(node->inputs[0])) return false;
    const onv_type *x = &onv_model_value(s->model, node->inputs[0])->type;
    return x->rank == 3 && onv_dim_is_const(x->dims[0]) && x->dims[0].raw > 1 &&
           has_weight(s, node, 2);
}

/* Weights and biases of the layers, in the order in which they are read. */
static void add_weights(const onv_finder *s, unrolled *u, const onv_node *node)
{
    bool is_sum = onv_find_is_op(node, ONV_OP_Add);
    bool is_weight = onv_find_is_op(node, ONV_OP_MatMul) || onv_find_is_op(node, ONV_OP_Transpose);
    for (uint32_t k = 0; k < node->n_inputs && (is_sum || is_weight); k++) {
        onv_value_id id = node->inputs[k];
        bool is_known = false;
        if (!onv_is_value(id)) continue;
        const onv_value *value = onv_model_value(s->model, id);
        if (!onv_value_is_weight(value) || value->type.rank != (is_sum ? 1 : 2)) continue;
        /* The state that the first step reads is a matrix, too. */
        if (onv_find_is_op(node, ONV_OP_MatMul) && k == 0) continue;
        for (uint32_t i = 0; i < u->r.n_weights; i++) is_known |= u->r.weights[i].index == id.index;
        if (is_known) continue;
        u->fits &= u->r.n_weights < ONV_MAX_RECURRENT_WEIGHTS;
        if (u->fits) u->r.weights[u->r.n_weights++] = id;
    }
}

/* What joins the results of steps; final states are put together of other results. */
static bool joins_steps(const onv_finder *s, const onv_node *node)
{
    bool is_any = false;
    if (!onv_find_is_op(node, ONV_OP_Concat) ||
        onv_model_value(s->model, node->outputs[0])->type.rank != 3)
        return false;
    for (uint32_t k = 0; k < node->n_inputs; k++)
        is_any |= onv_find_producer(s, node->inputs[k], ONV_OP_Unsqueeze) == NULL;
    return is_any;
}

static void add_node(const onv_finder *s, unrolled *u, size_t i)
{
    const onv_node *node = &s->model->nodes.at[i];
    bool is_step = onv_find_is_op(node, ONV_OP_Tanh) || onv_find_is_op(node, ONV_OP_Relu);
    if (is_projection(s, node)) {
        u->r.directions += onv_is_same_value(node->inputs[0], u->r.x);
        u->r.projections++;
    }
    u->has_step |= is_step;
    if (is_step || joins_steps(s, node)) {
        u->last = i;
        u->r.has_sequence = !is_step; /* where only final states are read, nothing joins them */
    }
    add_weights(s, u, node);
}

/* [..., batch, hidden] */
static bool is_state(const onv_finder *s, size_t node)
{
    onv_value_id out = s->model->nodes.at[node].outputs[0];
    return onv_model_value(s->model, out)->type.rank >= 2;
}

/* Inner results that a node outside of the call reads would be missing. */
static bool is_closed(const onv_finder *s, const unrolled *u)
{
    uint64_t uses = 0, reads = 0;
    for (size_t i = u->first; i < u->last; i++) {
        if (s->f->of_node[i] != 0) return false;
        uses += onv_find_n_reads(s, (onv_node_id){(uint32_t)i});
    }
    for (size_t i = u->first; i < u->end; i++) {
        const onv_node *node = &s->model->nodes.at[i];
        for (uint32_t k = 0; k < node->n_inputs; k++) {
            if (!onv_is_value(node->inputs[k])) continue;
            onv_node_id from = onv_model_value(s->model, node->inputs[k])->producer;
            reads += onv_is_node(from) && from.index >= u->first && from.index < u->last;
        }
    }
    return uses == reads;
}

/* What the call reads of a state of all layers is made before it; zeros in most networks. */
void onv_find_unrolled(onv_finder *s, const onv_node *node)
{
    const size_t first = onv_find_id(s, node).index;
    if (!s->kernels.cells || strcmp(onv_noted(node)->module_class, RNN_CLASS) != 0 ||
        !is_projection(s, node) || node->graph.index != 0 || first < s->unrolled_end)
        return;
    unrolled u = {.first = first, .fits = true, .r = {.x = node->inputs[0]}};
    for (u.end = u.first; u.end < s->model->nodes.count; u.end++) {
        if (!is_of_call(&s->model->nodes.at[u.end], node)) break;
        add_node(s, &u, u.end);
    }
    s->unrolled_end = (uint32_t)u.end;
    if (!u.fits || !u.has_step || u.last == 0 || u.r.directions == 0 || u.r.directions > 2 ||
        u.r.projections % u.r.directions != 0 || !is_state(s, u.last) || !is_closed(s, &u))
        return;
    onv_recurrence *recurrence = ONV_ARENA_ARRAY(&s->model->arena, onv_recurrence, 1);
    onv_fusion fusion = onv_find_unary(s, ONV_FUSION_UNROLLED, u.r.x, &s->model->nodes.at[u.last]);
    fusion.recurrence = recurrence;
    if (recurrence == NULL) {
        s->failed = true;
        return;
    }
    uint32_t number = onv_find_add(s, fusion);
    u.r.first = (onv_node_id){(uint32_t)u.first};
    u.r.end = (onv_node_id){(uint32_t)u.end};
    *recurrence = u.r;
    for (size_t i = u.first; i <= u.last; i++) s->f->of_node[i] = number;
}
