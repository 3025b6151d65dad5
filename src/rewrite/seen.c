#include "rewrite/seen.h"

#include <string.h>

#include "base/quota.h"
#include "load/load.h"
#include "rewrite/fuse.h"

/* --- Contents ---------------------------------------------------------------------------------- */

static bool follows_contents(const onv_node *node)
{
    return node->domain[0] == '\0' &&
           ONV_IS_ANY(node, ONV_OP_Shape, ONV_OP_Size, ONV_OP_Gather, ONV_OP_Squeeze,
                      ONV_OP_Unsqueeze, ONV_OP_Add, ONV_OP_Sub, ONV_OP_Mul, ONV_OP_Div);
}

static void load_known(onv_op_ctx *c, uint32_t k)
{
    onv_edit *e = c->driver;
    onv_value *value = onv_edit_value_at(e, c->node->inputs[k]);
    if (!onv_value_is_weight(value) || value->overridable || e->status != ONV_OK) return;
    onv_edit_fail(e, onv_driver_constant(&e->driver, value, &c->in[k].known));
}

static const onv_known *read_tensor(onv_op_ctx *c, const onv_tensor *tensor)
{
    onv_edit *e = c->driver;
    const onv_known *known = NULL;
    if (e->status == ONV_OK) onv_edit_fail(e, onv_load_known(e->model, tensor, &known, e->err));
    return known;
}

/* --- Types ------------------------------------------------------------------------------------- */

static bool is_tensor(const onv_type *type)
{
    return type->kind == ONV_TYPE_TENSOR || type->kind == ONV_TYPE_SPARSE_TENSOR;
}

/* Windows slide over numbers alone: what is as long as before by arithmetic is not known to be. */
static bool slides_windows(const onv_node *node)
{
    return ONV_IS_ANY(node, ONV_OP_Conv, ONV_OP_ConvTranspose, ONV_OP_ConvInteger,
                      ONV_OP_QLinearConv, ONV_OP_MaxPool, ONV_OP_AveragePool, ONV_OP_LpPool,
                      ONV_OP_FusedConv);
}

/* So do factors of axes, in the batch, too. */
static bool multiplies_axes(const onv_node *node)
{
    return ONV_IS_ANY(node, ONV_OP_Resize, ONV_OP_Upsample, ONV_OP_Tile);
}

/* Inputs, and elements of them, that a dim is looked for in. */
enum { MOST_CARRIERS = 64 };

/* Numbers and what an input had as it stands. */
static bool is_carried(const onv_edit *e, const onv_node *node, onv_dim dim, int axis)
{
    if (onv_dim_is_const(dim)) return true;
    if (multiplies_axes(node) || (axis >= 2 && slides_windows(node))) return false;
    for (uint32_t k = 0; k < node->n_inputs && k < MOST_CARRIERS && onv_dim_is_known(dim); k++) {
        if (!onv_is_value(node->inputs[k])) continue;
        const onv_edit_value *in = &e->values.at[node->inputs[k].index];
        for (int i = 0; onv_type_has_rank(&in->seen) && i < in->seen.rank; i++)
            if (onv_dim_same(in->seen.dims[i], dim)) return true;
        const onv_known *known = in->seen_known;
        for (uint32_t i = 0; known != NULL && i < known->count && i < MOST_CARRIERS; i++)
            if (onv_dim_same(known->elems[i].i, dim)) return true;
    }
    return false;
}

/* What the file declares, which ONNX takes where it infers no number; a number that the user replaced as an export of the
 * new one would declare it. */
static onv_dim declared_dim(const onv_value *value, int axis, int rank)
{
    const onv_type *declared = value->declared, *bound = &value->type;
    if (declared == NULL || !is_tensor(declared) || declared->rank != rank) return ONV_DIM_UNKNOWN;
    onv_dim dim = declared->dims[axis];
    bool differs = onv_dim_is_const(dim) && bound->rank == rank && is_tensor(bound) &&
                   onv_dim_is_const(bound->dims[axis]) && !onv_dim_same(bound->dims[axis], dim);
    return differs ? bound->dims[axis] : dim;
}

/* `dims` may be the rule's, or NULL where only the rank is known; without a rank (-1) they are not read. */
static void store(onv_edit *e, onv_value_id id, const onv_dim *dims, int rank)
{
    const onv_value *value = onv_edit_value_at(e, id);
    onv_edit_value *to = &e->values.at[id.index];
    const onv_type *declared = value->declared;
    bool has_dims = dims != NULL && rank >= 0;
    if (rank < 0 && declared != NULL && is_tensor(declared)) rank = declared->rank;
    to->seen = (onv_type){.kind = value->type.kind, .dtype = value->type.dtype, .rank = -1};
    if (!is_tensor(&to->seen)) to->seen = value->type; /* sequences and the like: no rule cares */
    if (!is_tensor(&to->seen) || rank < 0) return;
    onv_dim *own = onv_edit_checked(e, ONV_ARENA_ARRAY(&e->model->arena, onv_dim, (size_t)rank));
    if (own == NULL) return;
    for (int i = 0; i < rank; i++) {
        own[i] = has_dims ? dims[i] : ONV_DIM_UNKNOWN;
        onv_dim said = onv_dim_is_const(own[i]) ? own[i] : declared_dim(value, i, rank);
        if (onv_dim_is_known(said)) own[i] = said;
    }
    to->seen.dims = own;
    to->seen.rank = (int16_t)rank;
}

static void see_owner(onv_edit *e, const onv_node *node);

/* --- One node ---------------------------------------------------------------------------------- */

/* The axis that a Split divides where its size is not known: then ONNX knows no size of a part, either,
 * though they are given. -1: none. */
static int unsure_axis(const onv_edit *e, const onv_node *node)
{
    if (node->code != ONV_OP_Split || node->domain[0] != '\0' || node->n_inputs == 0 ||
        !onv_is_value(node->inputs[0]))
        return -1;
    const onv_type *in = &e->values.at[node->inputs[0].index].seen;
    int64_t axis = onv_type_has_rank(in) ? onv_node_axis(node, 0, in->rank) : -1;
    return axis >= 0 && !onv_dim_is_const(in->dims[axis]) ? (int)axis : -1;
}

/* Whether ONNX infers the rank from other things than the ranks of the inputs. */
static bool has_own_rank(const onv_node *node)
{
    return node->domain[0] == '\0' && ONV_IS_ANY(node, ONV_OP_Reshape, ONV_OP_Expand,
                                                 ONV_OP_ConstantOfShape, ONV_OP_Shape, ONV_OP_Size);
}

/* Where an input has no rank, the outputs have none. A shape that is computed leaves old versions of Reshape and Expand
 * without one, too. */
static bool is_unranked(const onv_edit *e, const onv_node *node)
{
    if (has_own_rank(node))
        return ((node->code == ONV_OP_Reshape && node->version < 14) ||
                (node->code == ONV_OP_Expand && node->version < 13)) &&
               node->n_inputs > 1 && !onv_edit_is_constant(e, node->inputs[1]);
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        if (!onv_is_value(node->inputs[k])) continue;
        const onv_type *in = &e->values.at[node->inputs[k].index].seen;
        if (is_tensor(in) && in->rank < 0) return true;
    }
    return false;
}

/* What a Reshape leaves to be worked out is a number or nothing. */
static bool is_left(const onv_op_ctx *c, int axis, onv_dim dim)
{
    if (onv_dim_is_const(dim) || c->n_in < 2 || c->node->code != ONV_OP_Reshape) return false;
    const onv_known *shape = c->in[1].known;
    return shape != NULL && (uint32_t)axis < shape->count && onv_dim_is(shape->elems[axis].i, -1);
}

/* Where the bounds of a Slice are not known, ONNX infers no size, those of other axes neither. */
static bool has_open_bounds(const onv_op_ctx *c)
{
    bool is_open = false;
    for (uint32_t k = 1; k < c->n_in && c->node->code == ONV_OP_Slice; k++)
        is_open |= c->in_present[k] && c->in[k].known == NULL;
    return is_open;
}

/* Contents are followed where all of them are numbers: one size with a name hides the others. */
static const onv_known *numbers_of(const onv_known *known)
{
    for (uint32_t i = 0; known != NULL && i < known->count; i++)
        if (!onv_dim_is_const(known->elems[i].i)) return NULL;
    return known;
}

static void store_outputs(onv_edit *e, onv_op_ctx *c, const onv_node *node, bool is_inferred)
{
    int unsure = unsure_axis(e, node);
    bool is_ranked = is_inferred && !is_unranked(e, node), is_open = has_open_bounds(c);
    for (uint32_t k = 0; k < node->n_outputs; k++) {
        if (!onv_is_value(node->outputs[k])) continue;
        const onv_type *type = &c->out[k].type;
        bool has_rank = is_ranked && onv_type_has_rank(type);
        onv_dim *dims = NULL;
        if (has_rank) {
            dims = ONV_ARENA_ARRAY(&e->driver.scratch, onv_dim, (size_t)type->rank);
            for (int i = 0; dims != NULL && i < type->rank; i++)
                dims[i] = !is_open && i != unsure && is_carried(e, node, type->dims[i], i) &&
                                  !is_left(c, i, type->dims[i])
                              ? type->dims[i]
                              : ONV_DIM_UNKNOWN;
        }
        store(e, node->outputs[k], dims, has_rank ? type->rank : -1);
        e->values.at[node->outputs[k].index].seen_known =
            is_inferred && follows_contents(node) ? numbers_of(c->out[k].known) : NULL;
    }
}

static bool run_rule(onv_edit *e, onv_op_ctx *c)
{
    bool fits = c->op->infer(c) == ONV_OK;
    if (fits && c->op->fold != NULL && follows_contents(c->node)) fits = c->op->fold(c) == ONV_OK;
    return fits && e->status == ONV_OK;
}

void onv_seen_node(onv_edit *e, onv_node_id id)
{
    onv_model *model = e->model;
    const onv_node *node = onv_model_node(model, id);
    if (e->status != ONV_OK) return;
    if (node->op == NULL || (node->op->flags & ONV_OP_SUBGRAPH) != 0) {
        see_owner(e, node);
        return;
    }
    onv_op_ctx c = {.model = model,
                    .node = node,
                    .op = node->op,
                    .version = node->version,
                    .dims = &model->dims,
                    .arena = &model->arena,
                    .n_in = node->n_inputs,
                    .n_out = node->n_outputs,
                    .load_known = load_known,
                    .read_tensor = read_tensor,
                    .driver = e,
                    .err = &e->ignored};
    bool *present = ONV_ARENA_ARRAY(&e->driver.scratch, bool, node->n_inputs);
    c.in = ONV_ARENA_ARRAY(&e->driver.scratch, onv_op_value, node->n_inputs);
    c.out = ONV_ARENA_ARRAY(&e->driver.scratch, onv_op_value, node->n_outputs);
    c.in_present = present;
    if (present == NULL || c.in == NULL || c.out == NULL) {
        onv_edit_fail(e, ONV_ERR_MEMORY);
        return;
    }
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        c.in[k].type.rank = -1;
        present[k] = onv_is_value(node->inputs[k]);
        if (!present[k]) continue;
        const onv_edit_value *in = &e->values.at[node->inputs[k].index];
        c.in[k] = (onv_op_value){.type = in->seen, .known = in->seen_known};
    }
    for (uint32_t k = 0; k < node->n_outputs; k++) c.out[k].type.rank = -1;
    onv_dims_enter(&model->dims, id.index);
    size_t n_diags = model->diags.count;
    bool is_inferred = run_rule(e, &c);
    model->diags.count = n_diags;
    store_outputs(e, &c, node, is_inferred);
    onv_arena_reset(&e->driver.scratch);
}

/* --- Subgraphs --------------------------------------------------------------------------------- */

static void see_nodes(onv_edit *e, onv_graph_id graph);

static void store_type(onv_edit *e, onv_value_id id, const onv_type *type)
{
    store(e, id, type->dims, onv_type_has_rank(type) ? type->rank : -1);
}

/* A type without an axis; with `length`, one more there. */
static void store_slice(onv_edit *e, onv_value_id id, const onv_type *of, int64_t axis,
                        const onv_dim *length)
{
    onv_dim dims[ONV_MAX_RANK];
    int rank = of->rank + (length != NULL ? 1 : -1);
    bool fits = onv_type_has_rank(of) && rank >= 0 && rank <= ONV_MAX_RANK;
    if (axis < 0) axis += length != NULL ? rank : of->rank;
    for (int i = 0; fits && i < rank; i++)
        dims[i] = length == NULL ? of->dims[i + (i >= axis)]
                  : i == axis    ? *length
                                 : of->dims[i - (i > axis)];
    store(e, id, dims, fits ? rank : -1);
}

/* Outputs have what the branches have in common. */
static void see_branch(onv_edit *e, const onv_node *node, const onv_graph *branch, bool is_first)
{
    for (uint32_t k = 0; k < node->n_outputs; k++) {
        onv_dim dims[ONV_MAX_RANK];
        if (!onv_is_value(node->outputs[k])) continue;
        const onv_type *made = onv_edit_seen(e, branch->outputs[k]),
                       *before = is_first ? made : onv_edit_seen(e, node->outputs[k]);
        bool is_same = onv_type_has_rank(made) && before->rank == made->rank;
        for (int i = 0; is_same && i < made->rank; i++)
            dims[i] =
                onv_dim_same(before->dims[i], made->dims[i]) ? made->dims[i] : ONV_DIM_UNKNOWN;
        store(e, node->outputs[k], dims, is_same ? made->rank : -1);
    }
}

/* A Scan hands the types of its states on, those of sequences without their axis; a Loop none, whose states may change. */
static void see_iterations(onv_edit *e, const onv_node *node, onv_graph_id graph)
{
    const onv_graph *body = onv_model_graph(e->model, graph);
    bool scans = node->code == ONV_OP_Scan;
    uint32_t n_others = scans ? (uint32_t)onv_node_int(node, "num_scan_inputs", 0) : 2;
    uint32_t n_states = node->n_inputs - n_others;
    onv_dim length = ONV_DIM_UNKNOWN;
    for (uint32_t k = 0; scans && k < node->n_inputs; k++) {
        const onv_type *in = onv_edit_seen(e, node->inputs[k]);
        if (k < n_states) {
            store_type(e, body->inputs[k], in);
            continue;
        }
        int64_t axis = onv_node_int_at(node, "scan_input_axes", k - n_states, 0);
        store_slice(e, body->inputs[k], in, axis, NULL);
        if (k == n_states) length = onv_fuse_dim(e, node->inputs[k], (int)axis);
    }
    see_nodes(e, graph);
    for (uint32_t k = 0; k < node->n_outputs; k++) {
        if (!onv_is_value(node->outputs[k])) continue;
        if (k >= n_states)
            store_slice(e, node->outputs[k], onv_edit_seen(e, body->outputs[k + !scans]),
                        onv_node_int_at(node, "scan_output_axes", k - n_states, 0), &length);
        else if (scans)
            store_type(e, node->outputs[k], onv_edit_seen(e, node->inputs[k]));
        else
            store(e, node->outputs[k], NULL, -1);
    }
}

/* Subgraphs, and what comes out of them. Of the first Scan, and of other operators: their rank, and what the file says. */
static void see_owner(onv_edit *e, const onv_node *node)
{
    bool is_known = node->op != NULL && node->domain[0] == '\0', is_first = true;
    bool is_if = is_known && node->code == ONV_OP_If;
    bool iterates = is_known && (node->code == ONV_OP_Loop ||
                                 (node->code == ONV_OP_Scan && node->version >= 9));
    for (uint32_t i = 0; i < node->n_attrs; i++) {
        const onv_attr *attr = &node->attrs[i];
        if (attr->kind != ONV_ATTR_GRAPH) continue;
        const onv_graph *graph = onv_model_graph(e->model, attr->graph);
        if (iterates) {
            see_iterations(e, node, attr->graph);
            return;
        }
        see_nodes(e, attr->graph);
        if (!is_if || graph->never_runs) continue;
        see_branch(e, node, graph, is_first);
        is_first = false;
    }
    for (uint32_t k = 0; !is_if && k < node->n_outputs; k++) {
        if (!onv_is_value(node->outputs[k])) continue;
        const onv_type *bound = &onv_edit_value_at(e, node->outputs[k])->type;
        store(e, node->outputs[k], NULL, onv_type_has_rank(bound) ? bound->rank : -1);
    }
}

/* --- All of them ------------------------------------------------------------------------------- */

/* Inputs of the model are as the file declares them, with the numbers that the user put in place of
 * its own; of subgraphs what they declare, and a number or a flag has a rank. */
static void see_input(onv_edit *e, onv_value_id id)
{
    const onv_value *value = onv_edit_value_at(e, id);
    const onv_type *type = &value->type, *declared = value->declared;
    int rank = onv_type_has_rank(type) ? type->rank : -1;
    if (value->graph.index != 0 || rank < 0) {
        store(e, id, NULL, rank == 0 ? 0 : -1);
        return;
    }
    onv_dim *dims = onv_edit_checked(e, ONV_ARENA_ARRAY(&e->driver.scratch, onv_dim, (size_t)rank));
    if (dims == NULL) return;
    for (int i = 0; i < rank; i++) {
        bool is_open =
            declared != NULL && declared->rank == rank && !onv_dim_is_const(declared->dims[i]);
        dims[i] = is_open ? declared->dims[i] : type->dims[i];
    }
    store(e, id, dims, rank);
}

static void see_sources(onv_edit *e)
{
    const onv_model *model = e->model;
    for (uint32_t i = 0; i < model->values.count && e->status == ONV_OK; i++) {
        const onv_value *value = &model->values.at[i];
        if (onv_is_node(value->producer)) continue;
        e->values.at[i].seen_known = NULL;
        if (onv_value_is_weight(value))
            e->values.at[i].seen = value->type;
        else
            see_input(e, (onv_value_id){i});
    }
    onv_arena_reset(&e->driver.scratch);
}

/* Recursion is as deep as graphs nest, which the loader bounds. */
static void see_nodes(onv_edit *e, onv_graph_id graph)
{
    if (!onv_work(1 + onv_edit_n_nodes(e, graph))) onv_edit_fail(e, ONV_ERR_CANCELLED);
    for (onv_node_id id = onv_edit_first(e, graph); onv_is_node(id); id = onv_edit_next(e, id))
        onv_seen_node(e, id);
}

void onv_seen_graph(onv_edit *e)
{
    see_sources(e);
    see_nodes(e, (onv_graph_id){0});
    e->is_seen = true;
}
