/* Branches and loops.
 *
 *   one branch runs   it stands in the place of the node, in training too
 *   If                its branches are ALTERNATIVES; the storage that a branch hands out becomes that
 *                     of the If's output
 *   Loop, Scan        a LOOP of one iteration. Its first operation makes what is stacked, and what the
 *                     state comes in as, unless that is the initial value itself, which nobody else
 *                     reads; slices of the input are views. The state's last storage becomes the
 *                     node's output.
 *
 * What is read from outside stays until the node's own operation, which comes after its regions.
 * Recursion is as deep as graphs nest, which the loader bounds.
 */
#include <string.h>

#include "base/fail.h"
#include "graph/steps.h"
#include "lower/lowering.h"

/* A region, and what was around it. */
typedef struct inside {
    uint32_t region, first_op, first_storage, outer_storage;
} inside;

bool onv_node_has_graphs(const onv_node *node)
{
    for (uint32_t i = 0; i < node->n_attrs; i++)
        if (node->attrs[i].kind == ONV_ATTR_GRAPH || node->attrs[i].kind == ONV_ATTR_GRAPHS)
            return true;
    return false;
}

/* --- Regions ----------------------------------------------------------------------------------- */

static inside enter(onv_lowering *l, onv_region_kind kind, const char *label)
{
    inside in = {.region = onv_emit_enter(&l->emit, kind, label),
                 .first_op = (uint32_t)l->emit.eager->ops.count,
                 .first_storage = (uint32_t)l->emit.eager->storages.count,
                 .outer_storage = l->region.first_storage};
    l->region.first_storage = in.first_storage;
    return in;
}

static void leave(onv_lowering *l, const inside *in)
{
    onv_emit_leave(&l->emit, in->region);
    l->region.first_storage = in->outer_storage;
}

static void lower_body(onv_lowering *l, onv_graph_id id)
{
    const onv_graph *graph = onv_model_graph(l->emit.model, id);
    onv_lower_nodes(l, graph->nodes, graph->n_nodes);
}

/* --- What goes in and out ---------------------------------------------------------------------- */

/* True the first time since the current mark was begun. */
static bool mark_storage(onv_lowering *l, uint32_t storage)
{
    while (l->region.mark.count <= storage)
        if (!onv_vec_push(&l->region.mark, 0)) {
            l->emit.status = onv_fail_memory(l->emit.err);
            return false;
        }
    bool is_new = l->region.mark.at[storage] != l->region.n_marks;
    l->region.mark.at[storage] = l->region.n_marks;
    return is_new;
}

/* The operation being built reads what operations since `first_op` read from before, except storages
 * that have the current mark. */
static void read_outside(onv_lowering *l, const inside *in)
{
    uint32_t end = (uint32_t)l->emit.eager->ops.count;
    for (uint32_t i = in->first_op; i < end && l->emit.status == ONV_OK; i++) {
        const onv_eager_op *op = &l->emit.eager->ops.at[i];
        for (uint32_t k = 0; k < op->n_in; k++) {
            uint32_t storage = onv_tensor_at(&l->emit, op->in[k].tensor).storage;
            if (storage < in->first_storage && mark_storage(l, storage))
                onv_emit_in(&l->emit, op->in[k].tensor, ONV_GRAD_NONE);
        }
    }
}

/* --- If ---------------------------------------------------------------------------------------- */

static void refuse(onv_emitter *e, const char *what, const char *remedy)
{
    if (e->status == ONV_OK)
        e->status =
            onv_fail(e->err, ONV_ERR_USAGE, "training through %s is not sized: %s", what, remedy);
}

static void lower_alternative(onv_lowering *l, const onv_node *node, onv_graph_id id,
                              uint32_t *given)
{
    const onv_graph *graph = onv_model_graph(l->emit.model, id);
    inside in = enter(l, ONV_REGION_SEQUENCE, graph->owner_attr);
    lower_body(l, id);
    for (uint32_t k = 0; k < node->n_outputs && l->emit.status == ONV_OK; k++) {
        given[k] = k < graph->n_outputs ? onv_value_tensor(l, graph->outputs[k]) : ONV_NO_TENSOR;
        onv_emit_keep_to_end(&l->emit, given[k], in.first_storage);
    }
    leave(l, &in);
}

/* Output k of an If, of what its branches give for it: an older tensor where all give the same. */
static uint32_t join(onv_lowering *l, const inside *in, onv_value_id id, const uint32_t given[2])
{
    bool is_same =
        onv_tensor_at(&l->emit, given[0]).storage == onv_tensor_at(&l->emit, given[1]).storage;
    if (is_same && !onv_emit_is_made_inside(&l->emit, given[0], in->first_storage)) return given[0];
    return onv_emit_join(&l->emit, onv_value_new(l, id, ONV_UNDEFINED), given, in->first_storage);
}

static void lower_alternatives(onv_lowering *l, const onv_node *node,
                               const onv_graph_id branches[2])
{
    uint32_t *given = ONV_EMIT_ARRAY(&l->emit, uint32_t, 2 * (size_t)node->n_outputs);
    if (given == NULL) return;
    inside in = enter(l, ONV_REGION_ALTERNATIVES, NULL);
    for (int b = 0; b < 2; b++)
        lower_alternative(l, node, branches[b], given + (size_t)b * node->n_outputs);
    leave(l, &in);
    onv_emit_begin(&l->emit, node->op_type);
    onv_emit_in(&l->emit, onv_node_in(l, node, 0), ONV_GRAD_NONE);
    l->region.n_marks++;
    read_outside(l, &in);
    for (uint32_t k = 0; k < node->n_outputs && l->emit.status == ONV_OK; k++) {
        if (!onv_is_value(node->outputs[k]) || l->is_host[node->outputs[k].index]) continue;
        const uint32_t both[2] = {given[k], given[node->n_outputs + k]};
        onv_node_set(l, node, k, join(l, &in, node->outputs[k], both));
    }
    onv_emit_end(&l->emit);
}

static void lower_if(onv_lowering *l, const onv_node *node)
{
    static const char *const names[] = {"then_branch", "else_branch"};
    onv_graph_id branches[2];
    uint32_t n = 0;
    for (int i = 0; i < 2; i++) {
        onv_graph_id id = onv_graph_body(l->emit.model, node, names[i]);
        if (id.index != ONV_NO_GRAPH.index) branches[n++] = id;
    }
    bool on_host = true;
    for (uint32_t k = 0; k < node->n_outputs; k++)
        on_host &= !onv_is_value(node->outputs[k]) || l->is_host[node->outputs[k].index];
    if (on_host) return;
    if (n == 2 && !l->emit.options->inference)
        refuse(&l->emit, "an If where both branches may run",
               "set the input that decides it, or export the model with the branch that training "
               "takes");
    if (n == 2 && l->emit.options->inference) lower_alternatives(l, node, branches);
    if (n != 1) return;
    const onv_graph *graph = onv_model_graph(l->emit.model, branches[0]);
    lower_body(l, branches[0]);
    for (uint32_t k = 0; k < node->n_outputs && k < graph->n_outputs && l->emit.status == ONV_OK;
         k++)
        onv_node_set(l, node, k, onv_value_tensor(l, graph->outputs[k]));
}

/* --- Loops ------------------------------------------------------------------------------------- */

/* A body that does not run hands the state on as it came. */
static void skip_loop(onv_lowering *l, const onv_node *node)
{
    bool scan = node->code == ONV_OP_Scan;
    uint32_t first = scan ? node->version < 9 : 2;
    for (uint32_t k = 0; k < node->n_outputs && first + k < node->n_inputs; k++) {
        uint32_t x = onv_node_in(l, node, first + k);
        if (!onv_is_value(node->outputs[k]) || x == ONV_NO_TENSOR) continue;
        onv_shape shape;
        if (!onv_value_shape(l, node->outputs[k], &shape)) return;
        if (onv_tensor_has_dims(&l->emit, x, shape.rank, shape.dims)) onv_node_set(l, node, k, x);
    }
}

/* What the body's input of a state is: the initial value itself where only the loop reads it. */
static uint32_t state_in(onv_lowering *l, const onv_node *node, uint32_t k, onv_value_id id,
                         bool once)
{
    uint32_t x = onv_node_in(l, node, k);
    onv_shape shape;
    if (l->is_host[id.index] || !onv_value_shape(l, id, &shape)) return ONV_NO_TENSOR;
    if (x != ONV_NO_TENSOR) {
        bool same = onv_tensor_has_dims(&l->emit, x, shape.rank, shape.dims);
        if (same && (once || onv_may_overwrite(l, node, k))) return x;
    } else if (onv_is_value(node->inputs[k]) && shape.rank == 0) {
        return x; /* a number of the host */
    }
    return onv_emit_out(&l->emit, onv_value_new(l, id, ONV_UNDEFINED));
}

/* Element i of what a Scan goes through: the same memory without the axis. */
static uint32_t slice_in(onv_lowering *l, uint32_t x, onv_value_id id)
{
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    onv_shape shape;
    if (x == ONV_NO_TENSOR || !onv_value_shape(l, id, &shape)) return ONV_NO_TENSOR;
    onv_emit_in(&l->emit, x, ONV_GRAD_NONE);
    const int64_t *strides = shape.rank < t.rank ? t.strides + (t.rank - shape.rank) : NULL;
    return onv_tensor_on(&l->emit, t.storage, t.dtype, shape.rank, shape.dims, strides);
}

/* The operation before the first iteration. */
static void begin_loop(onv_lowering *l, const onv_node *node, const onv_loop_form *form)
{
    const onv_graph *body = onv_model_graph(l->emit.model, form->body);
    bool once = onv_dim_is_const(body->trips) && body->trips.raw == 1;
    onv_emit_begin(&l->emit, node->op_type);
    for (uint32_t k = 0; k < form->node_in && k < node->n_inputs; k++)
        onv_emit_in(&l->emit, onv_node_in(l, node, k), ONV_GRAD_NONE);
    for (uint32_t k = 0; form->body_in + k < body->n_inputs && l->emit.status == ONV_OK; k++) {
        uint32_t in = form->node_in + k;
        onv_value_id id = body->inputs[form->body_in + k];
        if (in >= node->n_inputs) break;
        uint32_t x = onv_node_in(l, node, in);
        if (k < form->n_states) {
            onv_emit_in(&l->emit, x, ONV_GRAD_NONE);
            x = state_in(l, node, in, id, once);
        } else {
            x = slice_in(l, x, id);
        }
        onv_value_set(l, id, x);
    }
    for (uint32_t k = form->n_states; k < node->n_outputs && l->emit.status == ONV_OK; k++)
        if (onv_is_value(node->outputs[k]))
            onv_node_set(l, node, k,
                         onv_emit_out(&l->emit, onv_value_new(l, node->outputs[k], ONV_UNDEFINED)));
    onv_emit_end(&l->emit);
}

/* Output k of the node, of what the body gives for the state. */
static uint32_t state_out(onv_lowering *l, const inside *in, onv_value_id id, uint32_t given)
{
    if (!onv_emit_is_made_inside(&l->emit, given, in->first_storage)) return given;
    onv_eager_tensor t = onv_tensor_at(&l->emit, given);
    uint32_t becomes = onv_storage_of(&l->emit, given)->becomes;
    if (becomes != UINT32_MAX) /* handed on twice */
        return onv_tensor_on(&l->emit, becomes, t.dtype, t.rank, t.dims, t.strides);
    const uint32_t both[2] = {given, ONV_NO_TENSOR};
    return onv_emit_join(&l->emit, onv_value_new(l, id, ONV_UNDEFINED), both, in->first_storage);
}

static void set_trips(const onv_emitter *e, const inside *in, const onv_graph *body)
{
    if (e->status != ONV_OK) return;
    onv_region *region = &e->eager->regions.at[in->region];
    onv_dim trips = onv_dim_substitute_bounds(&e->model->dims, body->trips);
    region->trips = onv_dim_is_const(trips) && trips.raw > 0 ? (uint64_t)trips.raw : 0;
}

static void lower_loop(onv_lowering *l, const onv_node *node, const onv_loop_form *form)
{
    const onv_graph *body = onv_model_graph(l->emit.model, form->body);
    uint32_t outer_storage = l->region.first_storage;
    inside in = enter(l, ONV_REGION_LOOP, body->owner_attr);
    set_trips(&l->emit, &in, body);
    l->region.first_storage = outer_storage; /* the states come from outside */
    begin_loop(l, node, form);
    l->region.first_storage = in.first_storage;
    lower_body(l, form->body);
    for (uint32_t k = form->body_out; k < body->n_outputs && l->emit.status == ONV_OK; k++) {
        uint32_t given = onv_value_tensor(l, body->outputs[k]);
        onv_emit_keep_to_end(&l->emit, given, in.first_storage);
    }
    leave(l, &in);
    onv_emit_begin(&l->emit, node->op_type);
    l->region.n_marks++;
    for (uint32_t k = 0; k < form->n_states && l->emit.status == ONV_OK; k++) {
        uint32_t state = onv_value_tensor(l, body->inputs[form->body_in + k]);
        if (state != ONV_NO_TENSOR) mark_storage(l, onv_tensor_at(&l->emit, state).storage);
    }
    in.first_op++; /* what the first operation reads ends there, or in the body */
    read_outside(l, &in);
    for (uint32_t k = 0; k < form->n_states && k < node->n_outputs && l->emit.status == ONV_OK;
         k++) {
        uint32_t from = form->body_out + k;
        if (!onv_is_value(node->outputs[k]) || from >= body->n_outputs) continue;
        uint32_t given = onv_value_tensor(l, body->outputs[from]);
        onv_node_set(l, node, k, state_out(l, &in, node->outputs[k], given));
    }
    onv_emit_end(&l->emit);
}

/* --- Anything else ----------------------------------------------------------------------------- */

/* A subgraph of which only that it has one is known: its inputs are tensors of their own. */
static void lower_unknown_body(onv_lowering *l, const onv_node *node, onv_graph_id id)
{
    const onv_graph *graph = onv_model_graph(l->emit.model, id);
    if (graph->never_runs) return;
    inside in = enter(l, ONV_REGION_LOOP, graph->owner_attr);
    set_trips(&l->emit, &in, graph);
    onv_emit_begin(&l->emit, node->op_type);
    for (uint32_t k = 0; k < graph->n_inputs && l->emit.status == ONV_OK; k++)
        if (!l->is_host[graph->inputs[k].index])
            onv_value_set(
                l, graph->inputs[k],
                onv_emit_out(&l->emit, onv_value_new(l, graph->inputs[k], ONV_UNDEFINED)));
    onv_emit_end(&l->emit);
    lower_body(l, id);
    leave(l, &in);
}

static void lower_unknown(onv_lowering *l, const onv_node *node)
{
    inside all = {.first_op = (uint32_t)l->emit.eager->ops.count,
                  .first_storage = (uint32_t)l->emit.eager->storages.count};
    for (uint32_t i = 0; i < node->n_attrs && l->emit.status == ONV_OK; i++) {
        const onv_attr *attr = &node->attrs[i];
        if (attr->kind == ONV_ATTR_GRAPH) lower_unknown_body(l, node, attr->graph);
        for (uint32_t k = 0; attr->kind == ONV_ATTR_GRAPHS && k < attr->count; k++)
            lower_unknown_body(l, node, attr->graphs[k]);
    }
    onv_emit_begin(&l->emit, node->op_type);
    for (uint32_t k = 0; k < node->n_inputs; k++)
        onv_emit_in(&l->emit, onv_node_in(l, node, k), ONV_GRAD_NONE);
    l->region.n_marks++;
    read_outside(l, &all);
    for (uint32_t k = 0; k < node->n_outputs && l->emit.status == ONV_OK; k++)
        if (onv_is_value(node->outputs[k]))
            onv_node_set(l, node, k,
                         onv_emit_out(&l->emit, onv_node_new(l, node, k, ONV_UNDEFINED)));
    onv_emit_end(&l->emit);
}

void onv_lower_flow(onv_lowering *l, const onv_node *node)
{
    onv_loop_form form;
    bool known = node->domain[0] == '\0';
    if (known && node->code == ONV_OP_If) {
        lower_if(l, node);
    } else if (known && (node->code == ONV_OP_Loop || node->code == ONV_OP_Scan)) {
        if (!onv_loop_form_of(l->emit.model, node, &form))
            skip_loop(l, node);
        else if (l->emit.options->inference)
            lower_loop(l, node, &form);
        else
            refuse(&l->emit, "a loop", "export the model with the loop unrolled");
    } else if (l->emit.options->inference) {
        lower_unknown(l, node);
    } else {
        refuse(&l->emit, "an operator that has graphs of its own", "export the model without it");
    }
}
