/* Fusions that the notes of PyTorch's exporter tell, or forbid: all nodes that it wrote for one call bear
 * the call's name. Without notes the shape of the graph decides. */
#include <string.h>

#include "fuse/find.h"

/* --- Calls ------------------------------------------------------------------------------------- */

static bool is_noted(const onv_node *node)
{
    return onv_node_is_noted(node) && onv_noted(node)->source_op[0] != '\0';
}

/* Names are interned. */
bool onv_is_same_call(const onv_node *a, const onv_node *b)
{
    return onv_noted(a)->source_op == onv_noted(b)->source_op &&
           onv_noted(a)->scope == onv_noted(b)->scope &&
           onv_noted(a)->aten_op == onv_noted(b)->aten_op;
}

bool onv_find_same_call(const onv_finder *s, const onv_group *g)
{
    const onv_node *first = NULL;
    for (uint32_t i = 0; i < g->count; i++) {
        const onv_node *node = onv_find_node(s, g->nodes[i]);
        if (!is_noted(node)) continue;
        if (first != NULL && !onv_is_same_call(first, node)) return false;
        first = node;
    }
    return true;
}

typedef struct call {
    onv_aten_id id;  /* of what it is on the tape */
    bool may_be_one; /* node alone */
} call;

static bool call_of(onv_finder *s, const onv_node *node, call *made)
{
    /* "aten.var.default", of later releases "prims.var.default" */
    const char *op = is_noted(node) ? strchr(onv_noted(node)->aten_op, '.') : NULL;
    if (op == NULL) return false;
    if (s->note != onv_noted(node)->aten_op) {
        bool in_place;
        const onv_aten_op *found = onv_aten_find(op + 1, &in_place);
        s->noted = found != NULL && !in_place ? onv_aten_id_of(found) : ONV_ATEN_NONE;
        s->note = onv_noted(node)->aten_op;
    }
    const onv_aten_op *row = &onv_aten_ops[s->noted];
    *made = (call){onv_aten_as(row), s->noted == ONV_ATEN_fmod || s->noted == ONV_ATEN_exp2};
    return row->is_apart;
}

/* A torch.autograd.Function of the network's own. */
static bool is_of_function(const onv_node *node)
{
    return onv_noted(node)->function[0] != '\0';
}

/* What its forward keeps is not in the file: nearly always its inputs, and backward computes the rest
 * again. */
static const call function = {ONV_ATEN_autograd_function, false};

static bool belongs(const onv_node *a, const onv_node *b)
{
    if (is_of_function(a))
        return onv_noted(a)->scope == onv_noted(b)->scope &&
               onv_noted(a)->function == onv_noted(b)->function;
    return onv_is_same_call(a, b);
}

/* All nodes of the call that hang together with the first one. */
static bool gather(onv_finder *s, const onv_node *node, bool may_be_one, onv_group *g)
{
    if (!onv_find_take(s, g, node)) return false;
    for (uint32_t at = 0; at < g->count; at++) {
        const onv_node *from = onv_find_node(s, g->nodes[at]);
        onv_node_id near[ONV_MAX_GROUP];
        uint32_t n = 0;
        for (uint32_t k = 0; k < from->n_inputs && n < ONV_MAX_GROUP; k++)
            if (onv_is_value(from->inputs[k]))
                near[n++] = onv_model_value(s->model, from->inputs[k])->producer;
        for (uint32_t k = 0; k < from->n_outputs && n < ONV_MAX_GROUP; k++)
            if (onv_is_value(from->outputs[k])) near[n++] = s->f->user[from->outputs[k].index];
        for (uint32_t i = 0; i < n; i++) {
            const onv_node *other = onv_find_node(s, near[i]);
            if (other == NULL || !belongs(node, other)) continue;
            if (!is_noted(other) && !is_of_function(other)) continue;
            if (!onv_find_is_inside(g, near[i]) && !onv_find_take(s, g, other)) return false;
        }
    }
    return g->count > 1 || may_be_one;
}

enum { MAX_OPERANDS = 3 };

/* Float tensors from outside; of weights those that an operation of several tensors reads, numbers of its formula are none. */
static bool find_operands(const onv_finder *s, const onv_group *g, bool of_tensors,
                          onv_value_id in[MAX_OPERANDS])
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < MAX_OPERANDS; i++) in[i] = ONV_NO_VALUE;
    for (uint32_t i = 0; i < g->count; i++) {
        const onv_node *node = onv_find_node(s, g->nodes[i]);
        for (uint32_t k = 0; k < node->n_inputs; k++) {
            onv_value_id id = node->inputs[k];
            if (!onv_is_value(id)) continue;
            const onv_value *value = onv_model_value(s->model, id);
            bool inside = onv_is_node(value->producer) && onv_find_is_inside(g, value->producer);
            bool weighs = onv_value_is_weight(value) && (!of_tensors || value->type.rank == 0);
            if (inside || weighs || !onv_dtype_is_float((onv_dtype)value->type.dtype)) continue;
            bool known = false;
            for (uint32_t m = 0; m < n; m++) known |= in[m].index == id.index;
            if (known) continue;
            if (n == MAX_OPERANDS) return false;
            in[n++] = id;
        }
    }
    return n > 0;
}

/* The one result that is read outside, of the node that is the last one. */
static const onv_node *find_result(const onv_finder *s, const onv_group *g)
{
    const onv_node *last = NULL;
    for (uint32_t i = 0; i < g->count; i++) {
        const onv_node *node = onv_find_node(s, g->nodes[i]);
        for (uint32_t k = 0; k < node->n_outputs; k++) {
            if (!onv_find_is_read_outside(s, g, node->outputs[k])) continue;
            if (last != NULL || k > 0) return NULL;
            last = node;
        }
    }
    return last;
}

/* Parameters are read inside: the group is more than an operation of two tensors. */
static bool reads_parameters(const onv_finder *s, const onv_group *g)
{
    for (uint32_t i = 0; i < g->count; i++) {
        const onv_node *node = onv_find_node(s, g->nodes[i]);
        for (uint32_t k = 0; k < node->n_inputs; k++) {
            if (!onv_is_value(node->inputs[k])) continue;
            const onv_value *value = onv_model_value(s->model, node->inputs[k]);
            if (onv_value_may_train(s->model, value) && value->type.rank > 0) return true;
        }
    }
    return false;
}

static bool find_call(onv_finder *s, const onv_node *node, call *made, onv_group *g,
                      onv_value_id in[MAX_OPERANDS], const onv_node **last)
{
    *made = function;
    if (!is_of_function(node) && !call_of(s, node, made)) return false;
    *g = (onv_group){.count = 0};
    /* Parameters may be among several operands. */
    bool of_tensors = strchr(onv_aten_ops[made->id].in, ' ') != NULL;
    if (!gather(s, node, made->may_be_one, g) || !find_operands(s, g, of_tensors, in)) return false;
    if (made->id == ONV_ATEN_autograd_function && reads_parameters(s, g)) return false;
    *last = find_result(s, g);
    return *last != NULL;
}

static uint32_t count_nodes(const onv_finder *s, const onv_group *g, onv_op_name op)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->count; i++) n += onv_find_node(s, g->nodes[i])->code == op;
    return n;
}

void onv_find_noted(onv_finder *s, const onv_node *node)
{
    onv_group g;
    onv_value_id in[MAX_OPERANDS];
    call made;
    const onv_node *last = NULL;
    bool is_function = is_of_function(node);
    if (!find_call(s, node, &made, &g, in, &last)) {
        if (is_function) s->f->n_functions_apart++;
        if (is_function) s->f->function = onv_noted(node)->function;
        return;
    }
    bool is_norm = made.id == ONV_ATEN_linalg_vector_norm;
    bool is_bound = is_norm && count_nodes(s, &g, ONV_OP_ReduceMax) == 1;
    if (is_norm && !is_bound && count_nodes(s, &g, ONV_OP_Pow) != 2)
        return; /* of 1 or 2: one node */
    onv_fusion fusion = onv_find_unary(s, ONV_FUSION_POINTWISE, in[0], last);
    fusion.key = in[1];
    fusion.value = in[2];
    /* xlogy(self, other): the exporter looks at other first; both may be one tensor. */
    if (made.id == ONV_ATEN_xlogy) {
        fusion.x = onv_is_value(in[1]) ? in[1] : in[0];
        fusion.key = in[0];
    }
    if (made.id == ONV_ATEN_roll) fusion.groups = count_nodes(s, &g, ONV_OP_Concat);
    fusion.name = onv_aten_ops[is_bound ? ONV_ATEN_vector_norm_inf : made.id].name;
    s->f->n_functions += is_function;
    if (is_function) s->f->function = onv_noted(node)->function;
    onv_find_publish(s, &g, fusion);
}

bool onv_scatter_reduces(const onv_node *node)
{
    const onv_attr *reduction = onv_node_attr(node, "reduction");
    return node->code == ONV_OP_ScatterElements && reduction != NULL &&
           reduction->kind == ONV_ATTR_STRING && strcmp(reduction->s, "none") != 0 &&
           strcmp(reduction->s, "add") != 0;
}
