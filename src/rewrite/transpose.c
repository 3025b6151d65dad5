#include "rewrite/transpose.h"

#include <string.h>

#include "base/quota.h"
#include "rewrite/fuse.h"

/* --- Small edits ------------------------------------------------------------------------------- */

bool onv_push_is_inner(const onv_edit *e, onv_value_id value)
{
    return !onv_edit_is_result(e, value) && !onv_edit_is_read_inside(e, value);
}

/* The first n axes. */
static onv_axes first_axes(uint32_t n)
{
    onv_axes axes = {.count = n};
    for (uint32_t i = 0; i < n; i++) axes.at[i] = i;
    return axes;
}

bool onv_push_read_axes(onv_edit *e, onv_node_id node, uint32_t k, onv_axes *axes)
{
    const onv_attr *attr = onv_node_attr(onv_edit_node_at(e, node), "axes");
    const onv_scalar *list = NULL;
    bool is_attr = attr != NULL && attr->kind == ONV_ATTR_INTS;
    if (is_attr)
        axes->count = attr->count;
    else if (!onv_edit_ints(e, onv_edit_in(e, node, k), &list, &axes->count))
        return false;
    if (axes->count > ONV_MAX_RANK) return false;
    for (uint32_t i = 0; i < axes->count; i++)
        axes->at[i] = is_attr ? attr->ints[i] : list[i].i.raw;
    return true;
}

void onv_push_set_numbers(onv_edit *e, onv_node_id node, uint32_t k, onv_dtype dtype,
                          const int64_t *numbers, uint32_t count)
{
    const onv_node *at = onv_edit_node_at(e, node);
    int64_t dim = count;
    onv_value_id weight =
        onv_edit_add_weight(e, at->graph, "transposed_numbers", dtype, &dim, 1, numbers);
    if (e->status != ONV_OK) return;
    onv_edit_set_input(e, node, k, weight);
}

/* A Transpose of a value, before `at`. */
static onv_value_id add_transpose(onv_edit *e, onv_value_id in, const onv_perm *perm,
                                  onv_node_id at)
{
    onv_value_id out =
        ONV_MAKE(e, at, "Transpose", ONV_INPUTS(in),
                 ONV_ATTRS(onv_fuse_ints(e, "perm", perm->at, (uint32_t)perm->rank)));
    return onv_is_value(out) ? out : in;
}

void onv_push_permute_numbers(onv_edit *e, onv_node_id node, uint32_t k, const int64_t *order,
                              uint32_t count)
{
    onv_value_id in = onv_edit_in(e, node, k);
    const onv_scalar *list;
    uint32_t n;
    int64_t numbers[2 * ONV_MAX_RANK];
    if (onv_edit_is_constant(e, in) && onv_edit_ints(e, in, &list, &n) && n == count) {
        for (uint32_t i = 0; i < n; i++) numbers[i] = list[order[i]].i.raw;
        onv_push_set_numbers(e, node, k, onv_edit_dtype(e, in), numbers, n);
        return;
    }
    onv_value_id order_in = onv_edit_add_ints(e, node, "perm", order, count);
    onv_value_id gathered = ONV_MAKE(e, node, "Gather", ONV_INPUTS(in, order_in),
                                     ONV_ATTRS(onv_fuse_int(e, "axis", 0)));
    if (e->status == ONV_OK) onv_edit_set_input(e, node, k, gathered);
}

/* --- Constants with other dims ----------------------------------------------------------------- */

/* A constant of the node's own graph whose other readers are known. */
static bool is_own_constant(const onv_edit *e, onv_value_id value, onv_node_id node)
{
    return onv_edit_is_constant(e, value) && onv_push_is_inner(e, value) &&
           onv_edit_value_at(e, value)->graph.index == onv_edit_node_at(e, node)->graph.index &&
           onv_type_is_static(&onv_edit_value_at(e, value)->type);
}

/* The same elements under other dims. The others that read it read it as before: by a Transpose of `inverse`, or without the first axes. */
static void change_constant(onv_edit *e, onv_node_id node, uint32_t k, const int64_t *dims,
                            int rank, const onv_perm *inverse, const onv_axes *squeezed)
{
    onv_value_id old = onv_edit_in(e, node, k);
    const onv_value *value = onv_edit_value_at(e, old);
    onv_value_id fresh = onv_edit_add_weight(e, value->graph, value->name,
                                             (onv_dtype)value->type.dtype, dims, rank, NULL);
    if (e->status != ONV_OK) return;
    onv_edit_set_input(e, node, k, fresh);
    if (onv_edit_n_uses(e, old) == 0) return;
    onv_node_id at = onv_edit_first(e, onv_edit_node_at(e, node)->graph);
    onv_value_id back = inverse != NULL ? add_transpose(e, fresh, inverse, at)
                                        : onv_fuse_squeeze(e, at, "Squeeze", fresh, squeezed->at,
                                                           squeezed->count, ONV_NO_VALUE);
    if (e->status == ONV_OK) onv_edit_replace(e, old, back);
}

static void transpose_constant(onv_edit *e, onv_node_id node, uint32_t k, const onv_perm *perm)
{
    onv_value_id in = onv_edit_in(e, node, k);
    const onv_type *type = &onv_edit_value_at(e, in)->type;
    const onv_tensor *tensor = onv_edit_value_at(e, in)->tensor;
    if (tensor != NULL && tensor->elems == 1) return;
    if (type->rank == 1 && onv_dim_is(type->dims[0], perm->rank)) {
        onv_push_permute_numbers(e, node, k, perm->at, (uint32_t)perm->rank);
        return;
    }
    if (type->rank != perm->rank) return;
    int64_t dims[ONV_MAX_RANK];
    for (int i = 0; i < perm->rank; i++) dims[i] = type->dims[perm->at[i]].raw;
    onv_perm inverse = onv_perm_inverse(perm);
    change_constant(e, node, k, dims, perm->rank, &inverse, NULL);
}

/* --- Inputs ------------------------------------------------------------------------------------ */

/* A Transpose by the same perm that is there already moves to where it can be read. */
static bool share_transpose(onv_edit *e, onv_node_id node, uint32_t k, const onv_perm *perm)
{
    onv_value_id in = onv_edit_in(e, node, k);
    ONV_EACH_USE(e, in, use)
    {
        onv_perm own;
        onv_node_id other = use->node;
        if (!onv_work(1)) onv_edit_fail(e, ONV_ERR_CANCELLED);
        if (e->status != ONV_OK) return true;
        if (!onv_edit_is(e, other, ONV_OP_Transpose) || !onv_perm_of(e, other, &own) ||
            !onv_perm_same(&own, perm) || !onv_edit_is_beside(e, other, node))
            continue;
        onv_edit_move(e, other, node);
        onv_edit_set_input(e, node, k, onv_edit_out(e, other, 0));
        return true;
    }
    return false;
}

void onv_push_input(onv_edit *e, onv_node_id node, uint32_t k, const onv_perm *perm)
{
    onv_value_id in = onv_edit_in(e, node, k);
    if (e->status != ONV_OK || !onv_is_value(in)) return;
    if (is_own_constant(e, in, node)) {
        transpose_constant(e, node, k, perm);
        return;
    }
    onv_node_id before = onv_edit_producer(e, in);
    onv_perm own, inverse = onv_perm_inverse(perm);
    if (onv_edit_is(e, before, ONV_OP_Transpose) && onv_perm_of(e, before, &own) &&
        own.rank == perm->rank) {
        onv_value_id source = onv_edit_in(e, before, 0);
        if (!onv_perm_same(&own, &inverse)) {
            onv_perm both = onv_perm_compose(&own, perm);
            source = add_transpose(e, source, &both, node);
        }
        onv_edit_set_input(e, node, k, source);
        onv_edit_remove_unread(e, before);
        return;
    }
    if (share_transpose(e, node, k, perm)) return;
    onv_edit_set_input(e, node, k, add_transpose(e, in, perm, node));
}

/* --- Ranks ------------------------------------------------------------------------------------- */

/* Whether a Squeeze takes off just the first n axes. */
static bool squeezes_first(onv_edit *e, onv_node_id squeeze, uint32_t n)
{
    onv_axes axes;
    if (!onv_push_read_axes(e, squeeze, 1, &axes) || axes.count != n) return false;
    for (uint32_t i = 0; i < n; i++)
        if (axes.at[i] != i) return false;
    return true;
}

static void unsqueeze_constant(onv_edit *e, onv_node_id node, uint32_t k, const onv_axes *axes)
{
    const onv_type *type = &onv_edit_value_at(e, onv_edit_in(e, node, k))->type;
    int64_t dims[ONV_MAX_RANK];
    int n = (int)axes->count, rank = type->rank + n;
    for (int i = 0; i < rank; i++) dims[i] = i < n ? 1 : type->dims[i - n].raw;
    change_constant(e, node, k, dims, rank, NULL, axes);
}

static void unsqueeze_input(onv_edit *e, onv_node_id node, uint32_t k, uint32_t n)
{
    onv_value_id in = onv_edit_in(e, node, k);
    const onv_axes axes = first_axes(n);
    if (is_own_constant(e, in, node)) {
        unsqueeze_constant(e, node, k, &axes);
        return;
    }
    onv_node_id before = onv_edit_producer(e, in);
    if (onv_edit_is(e, before, ONV_OP_Squeeze) && squeezes_first(e, before, n)) {
        onv_edit_set_input(e, node, k, onv_edit_in(e, before, 0));
        onv_edit_remove_unread(e, before);
        return;
    }
    onv_value_id out = onv_fuse_squeeze(e, node, "Unsqueeze", in, axes.at, n, ONV_NO_VALUE);
    if (e->status != ONV_OK) return;
    onv_edit_set_input(e, node, k, out);
    onv_perm perm;
    if (!onv_edit_is(e, before, ONV_OP_Transpose) || !onv_perm_of(e, before, &perm)) return;
    onv_node_id unsqueeze = onv_edit_producer(e, out);
    onv_perm inverse = onv_perm_inverse(&perm), wider = onv_perm_unsqueezed(&perm, &axes);
    onv_push_input(e, unsqueeze, 0, &inverse);
    onv_push_outputs(e, unsqueeze, &wider);
}

bool onv_push_raise_ranks(onv_push *p)
{
    for (uint32_t i = 0; i < p->n_inputs; i++) {
        int rank = onv_fuse_rank(p->e, onv_edit_in(p->e, p->node, p->inputs[i]));
        if (rank < 0 || rank > p->perm.rank) return false;
    }
    for (uint32_t i = 0; i < p->n_inputs && p->e->status == ONV_OK; i++) {
        int rank = onv_fuse_rank(p->e, onv_edit_in(p->e, p->node, p->inputs[i]));
        if (rank < p->perm.rank)
            unsqueeze_input(p->e, p->node, p->inputs[i], (uint32_t)(p->perm.rank - rank));
    }
    return true;
}

/* --- Outputs ----------------------------------------------------------------------------------- */

void onv_push_outputs(onv_edit *e, onv_node_id node, const onv_perm *perm)
{
    bool is_moved = !onv_perm_is_identity(perm);
    onv_node_id added[ONV_MAX_RANK];
    uint32_t n_added = 0, n_outputs = onv_edit_node_at(e, node)->n_outputs;
    for (uint32_t k = 0; is_moved && k < n_outputs && e->status == ONV_OK; k++) {
        onv_value_id out = onv_edit_out(e, node, k);
        if (!onv_is_value(out)) continue;
        onv_graph_id graph = onv_edit_node_at(e, node)->graph;
        onv_value_id fresh = onv_edit_add_value(e, graph, out, "_transposed");
        ONV_MAKE(e, node, "Transpose", ONV_INPUTS(fresh), ONV_OUTPUTS(out), .is_behind = true,
                 ONV_ATTRS(onv_fuse_ints(e, "perm", perm->at, (uint32_t)perm->rank)));
        if (e->status != ONV_OK) return;
        onv_node_id transpose = onv_edit_producer(e, out);
        onv_edit_take_output(e, node, k, fresh);
        if (e->status == ONV_OK && n_added < ONV_MAX_RANK) added[n_added++] = transpose;
    }
    onv_edit_retype(e, node);
    for (uint32_t i = 0; i < n_added; i++) onv_edit_retype(e, added[i]);
}

/* --- Costs ------------------------------------------------------------------------------------- */

enum { RANK_IF_UNKNOWN = 5 };

static int count_dims(const onv_edit *e, onv_value_id value)
{
    int rank = onv_fuse_rank(e, value), count = 0;
    for (int i = 0; i < rank; i++) count += !onv_dim_is(onv_fuse_dim(e, value, i), 1);
    return rank < 0 ? RANK_IF_UNKNOWN : count;
}

static bool can_likely_go(const onv_edit *e, onv_node_id transpose)
{
    onv_value_id out = onv_edit_out(e, transpose, 0);
    if (!onv_push_is_inner(e, out)) return false;
    ONV_EACH_USE(e, out, use)
    if (onv_pusher_find(e, use->node) == NULL) return false;
    return true;
}

static int cost_of_input(const onv_edit *e, onv_value_id in, const onv_perm *perm)
{
    onv_perm own;
    if (onv_edit_is_constant(e, in)) return 0;
    onv_node_id before = onv_edit_producer(e, in);
    if (onv_edit_is(e, before, ONV_OP_Transpose) && onv_perm_of(e, before, &own))
        return onv_perm_same(&own, perm) && can_likely_go(e, before) ? -count_dims(e, in) : 0;
    return count_dims(e, in);
}

/* --- The walk ---------------------------------------------------------------------------------- */

/* Values that this walk found on the way to a Transpose: what reads them may pass a Transpose on to another one. */
static bool leads(const onv_edit *e, onv_value_id value)
{
    return onv_is_value(value) && e->values.at[value.index].leads == e->n_walks;
}

static void mark(onv_edit *e, onv_value_id value)
{
    if (onv_is_value(value)) e->values.at[value.index].leads = e->n_walks;
}

static bool pushed_inputs(const onv_edit *e, onv_node_id node, const onv_pusher *how, onv_push *p)
{
    const onv_node *at = onv_edit_node_at(e, node);
    p->n_inputs = 0;
    for (uint32_t k = 0; k < at->n_inputs; k++) {
        if (how->inputs == ONV_PUSH_FIRST && k > 0) break;
        if (how->inputs == ONV_PUSH_OPERANDS && k != 0 && k != 3) continue;
        if (how->inputs == ONV_PUSH_PARTS && k % 3 != 2) continue;
        if (how->inputs == ONV_PUSH_NOT_SCALAR && onv_fuse_rank(e, at->inputs[k]) == 0) continue;
        if (p->n_inputs == ONV_MAX_RANK) return false;
        p->inputs[p->n_inputs++] = k;
    }
    return true;
}

/* Whether each node that reads the value passes a Transpose on to another one, or is one. */
static bool leads_everywhere(const onv_edit *e, onv_value_id value)
{
    if (!leads(e, value) || !onv_push_is_inner(e, value)) return false;
    ONV_EACH_USE(e, value, use)
    {
        const onv_node *reader = onv_edit_node_at(e, use->node);
        bool leads_on = onv_edit_is(e, use->node, ONV_OP_Transpose);
        for (uint32_t k = 0; k < reader->n_outputs && !leads_on; k++)
            leads_on = leads(e, reader->outputs[k]);
        if (!leads_on) return false;
    }
    return true;
}

static bool is_cheaper(const onv_push *p, const onv_pusher *how)
{
    const onv_edit *e = p->e;
    const onv_node *node = onv_edit_node_at(e, p->node);
    int cost = 0, out_cost = 0;
    if (onv_edit_is(e, p->node, ONV_OP_Transpose)) return true;
    if (onv_edit_is(e, p->node, ONV_OP_MaxPool)) return true; /* it has a kernel of its own */
    for (uint32_t i = 0; i < p->n_inputs; i++)
        cost += cost_of_input(e, onv_edit_in(e, p->node, p->inputs[i]), &p->perm);
    if (cost >= 0 || !how->moves_on) return cost < 0;
    for (uint32_t k = 0; k < node->n_outputs; k++) {
        onv_value_id out = node->outputs[k];
        if (!onv_is_value(out)) continue;
        if (leads_everywhere(e, out)) return true;
        int dims = count_dims(e, out);
        if (dims > out_cost) out_cost = dims;
    }
    return cost + out_cost < 0;
}

static bool try_push(onv_edit *e, onv_node_id node, uint32_t k)
{
    onv_push p = {.e = e, .node = node, .transpose = onv_edit_in_node(e, node, k)};
    if (!onv_edit_is(e, p.transpose, ONV_OP_Transpose) ||
        !onv_edit_is_beside(e, p.transpose, node) || !onv_perm_of(e, p.transpose, &p.perm))
        return false;
    const onv_pusher *how = p.how = onv_pusher_find(e, node);
    if (how == NULL || how->move == NULL || !pushed_inputs(e, node, how, &p)) return false;
    bool is_listed = false;
    for (uint32_t i = 0; i < p.n_inputs; i++) is_listed |= p.inputs[i] == k;
    if (!is_listed || !is_cheaper(&p, how)) return false;
    p.inverse = onv_perm_inverse(&p.perm);
    return how->move(&p);
}

static void mark_leads(onv_edit *e, const onv_node_id *nodes, uint32_t n)
{
    onv_push p;
    for (uint32_t i = n; i-- > 0;) {
        const onv_node *node = onv_edit_node_at(e, nodes[i]);
        if (onv_edit_is(e, nodes[i], ONV_OP_Transpose)) {
            mark(e, node->inputs[0]);
            continue;
        }
        bool leads_on = false;
        for (uint32_t k = 0; k < node->n_outputs; k++) leads_on |= leads(e, node->outputs[k]);
        const onv_pusher *how = leads_on ? onv_pusher_find(e, nodes[i]) : NULL;
        if (how == NULL || !how->moves_on || !pushed_inputs(e, nodes[i], how, &p)) continue;
        for (uint32_t k = 0; k < p.n_inputs; k++) mark(e, onv_edit_in(e, nodes[i], p.inputs[k]));
    }
}

/* Before nodes have providers; again where the CPU runs them. */
uint32_t onv_move_transposes(onv_edit *e, onv_graph_id graph)
{
    onv_provider provider = e->level == 1 ? ONV_PROVIDER_NONE : ONV_PROVIDER_CPU;
    uint32_t n = 0, done = 0;
    bool is_there = false;
    onv_node_id *nodes = onv_edit_checked(
        e, ONV_ARENA_ARRAY(&e->model->arena, onv_node_id, onv_edit_n_nodes(e, graph)));
    if (e->status != ONV_OK) return 0;
    for (onv_node_id at = onv_edit_first(e, graph); onv_is_node(at); at = onv_edit_next(e, at)) {
        is_there |= onv_edit_is(e, at, ONV_OP_Transpose);
        nodes[n++] = at;
    }
    if (!is_there) return 0;
    e->n_walks++;
    mark_leads(e, nodes, n);
    for (uint32_t i = 0; i < n && e->status == ONV_OK; i++) {
        if (!onv_edit_is_there(e, nodes[i]) || onv_edit_node_at(e, nodes[i])->provider != provider)
            continue;
        bool is_pushed = false;
        for (uint32_t k = 0; k < onv_edit_node_at(e, nodes[i])->n_inputs && !is_pushed; k++)
            is_pushed = try_push(e, nodes[i], k);
        done += is_pushed;
    }
    return done;
}
