/* Running the rules: one node at a time. */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/quota.h"
#include "infer/driver.h"
#include "load/limits.h"
#include "load/load.h"

/* Float constants are small when they decide a shape (scales, limits of a range). */
enum { MAX_FLOAT_CONTENTS = 256 };

onv_status onv_driver_constant(onv_driver *driver, onv_value *value, const onv_known **known)
{
    if (!value->known_tried && value->known == NULL && value->tensor != NULL) {
        value->known_tried = true;
        uint64_t limit = onv_dtype_is_float((onv_dtype)value->tensor->type.dtype)
                             ? MAX_FLOAT_CONTENTS
                             : driver->model->most_known;
        if (value->tensor->type.kind == ONV_TYPE_TENSOR && value->tensor->elems <= limit)
            ONV_TRY(onv_load_known(driver->model, value->tensor, &value->known, driver->err));
    }
    *known = value->known;
    return ONV_OK;
}

static void load_known(onv_op_ctx *c, uint32_t k)
{
    onv_driver *driver = c->driver;
    onv_value *value = onv_model_value(driver->model, c->node->inputs[k]);
    if (!onv_value_is_weight(value) || driver->load_status != ONV_OK) return;
    driver->load_status = onv_driver_constant(driver, value, &c->in[k].known);
}

static const onv_known *read_tensor(onv_op_ctx *c, const onv_tensor *tensor)
{
    onv_driver *driver = c->driver;
    const onv_known *known = NULL;
    if (driver->load_status == ONV_OK)
        driver->load_status = onv_load_known(driver->model, tensor, &known, driver->err);
    return known;
}

/* A node while its rule runs. */
typedef struct node_run {
    onv_op_ctx c;              /* first: a rule gives it back */
    onv_graph_id last;         /* the subgraph that ran last */
    onv_diag_mark before_last; /* the diagnostics before it did */
} node_run;

/* --- Subgraphs --------------------------------------------------------------------------------- */

onv_diag_mark onv_driver_mark(const onv_driver *driver)
{
    const onv_model *model = driver->model;
    return (onv_diag_mark){model->diags.count, model->dropped_diags, driver->unknown_ops.count};
}

void onv_driver_rewind(onv_driver *driver, onv_diag_mark mark)
{
    driver->model->diags.count = mark.n_diags;
    driver->model->dropped_diags = mark.n_dropped;
    driver->unknown_ops.count = mark.n_unknown_ops;
}

/* Failures and repeated runs leave no diagnostics, and no symbols count as the owner's. */
static onv_status infer_subgraph(onv_op_ctx *c, onv_graph_id id)
{
    onv_driver *driver = c->driver;
    node_run *run = (node_run *)c;
    onv_node_id failed = driver->failed_node;
    onv_dim_scope scope = c->dims->scope;
    if (run->last.index == id.index) onv_driver_rewind(driver, run->before_last);
    run->last = id;
    run->before_last = onv_driver_mark(driver);
    onv_status status = onv_driver_run_graph(driver, id);
    c->dims->scope = scope;
    if (status == ONV_OK) return ONV_OK;
    onv_driver_rewind(driver, run->before_last);
    if (!c->branches_must_fit && status == ONV_ERR_MODEL) driver->failed_node = failed;
    return status;
}

static onv_status run_subgraph(onv_op_ctx *c, onv_graph_id id, const onv_op_value *in,
                               uint32_t n_in, onv_op_value *out, uint32_t n_out)
{
    onv_driver *driver = c->driver;
    onv_graph *graph = onv_model_graph(driver->model, id);
    if (n_in != graph->n_inputs)
        return onv_op_fail(c, "its subgraph '%s' takes %u inputs, not %u", graph->owner_attr,
                           graph->n_inputs, n_in);
    if (n_out > graph->n_outputs)
        return onv_op_fail(c, "its subgraph '%s' gives %u outputs, not %u", graph->owner_attr,
                           graph->n_outputs, n_out);
    graph->is_unrolled |= driver->unroll.depth > 0;
    for (uint32_t i = 0; i < n_in; i++) {
        onv_value *value = onv_model_value(driver->model, graph->inputs[i]);
        if (in[i].type.kind != ONV_TYPE_UNKNOWN)
            value->type = in[i].type;
        else /* it stays as the file declares it */
            ONV_TRY(onv_bind_type(driver, &value->type));
        value->known = in[i].known;
        value->bound_used = in[i].bound;
    }
    ONV_TRY(infer_subgraph(c, id));
    for (uint32_t i = 0; i < n_out; i++) {
        onv_value *value = onv_model_value(driver->model, graph->outputs[i]);
        const onv_known *known = value->known;
        if (onv_value_is_weight(value)) ONV_TRY(onv_driver_constant(driver, value, &known));
        out[i] = (onv_op_value){value->type, known, value->bound_used};
    }
    return ONV_OK;
}

/* --- Declared types ---------------------------------------------------------------------------- */

static bool is_tensor_like(const onv_type *type)
{
    return type->kind == ONV_TYPE_TENSOR || type->kind == ONV_TYPE_SPARSE_TENSOR;
}

static void note_conflict(onv_driver *driver, const onv_value *value, int axis, onv_dim inferred,
                          onv_dim declared)
{
    const char *node =
        onv_is_node(value->producer) ? onv_model_node(driver->model, value->producer)->name : NULL;
    onv_model_diag(driver->model, ONV_WARNING, "declared-shape", node,
                   "the file declares dimension %d of '%s' as %lld, it is %lld", axis, value->name,
                   (long long)declared.raw, (long long)inferred.raw);
}

/* Fills what a rule left unknown from the model's own value_info. */
static onv_status merge_declared(onv_driver *driver, onv_value *value)
{
    if (value->declared == NULL) return ONV_OK;
    onv_type declared = *value->declared;
    onv_type *type = &value->type;
    if (declared.kind == ONV_TYPE_UNKNOWN) return ONV_OK;
    if (driver->distrust_declared && is_tensor_like(&declared)) {
        declared.rank = -1;
        declared.dims = NULL;
    }
    if (type->kind == ONV_TYPE_UNKNOWN) {
        ONV_TRY(onv_bind_type(driver, &declared));
        *type = declared;
        return ONV_OK;
    }
    if (type->kind != declared.kind || !is_tensor_like(type)) return ONV_OK;
    if (type->dtype == ONV_UNDEFINED) type->dtype = declared.dtype;
    if (declared.rank < 0 || (type->rank >= 0 && type->rank != declared.rank)) return ONV_OK;
    bool missing = type->rank < 0;
    for (int i = 0; i < declared.rank && !missing; i++)
        missing = !onv_dim_is_known(type->dims[i]) && onv_dim_is_known(declared.dims[i]);
    if (missing) {
        ONV_TRY(onv_bind_type(driver, &declared));
        onv_dim *dims = ONV_ARENA_ARRAY(&driver->model->arena, onv_dim, (size_t)declared.rank);
        if (dims == NULL) return onv_fail_memory(driver->err);
        for (int i = 0; i < declared.rank; i++) {
            bool inferred = type->rank >= 0 && onv_dim_is_known(type->dims[i]);
            dims[i] = inferred ? type->dims[i] : declared.dims[i];
        }
        type->dims = dims;
        type->rank = declared.rank;
    }
    for (int i = 0; i < declared.rank; i++)
        if (onv_dim_is_const(type->dims[i]) && onv_dim_is_const(declared.dims[i]) &&
            !onv_dim_same(type->dims[i], declared.dims[i]) && !driver->rebatch.active)
            note_conflict(driver, value, i, type->dims[i], declared.dims[i]);
    return ONV_OK;
}

static bool type_has_bound(const onv_dims *dims, const onv_type *type)
{
    const onv_elements of = onv_type_elements(type);
    if (type->kind == ONV_TYPE_SEQUENCE && onv_dim_has_bound(dims, of.length)) return true;
    if (of.items != NULL) {
        for (int64_t i = 0; onv_dim_is_const(of.length) && i < of.length.raw; i++)
            if (type_has_bound(dims, &of.items->at[i])) return true;
        return false;
    }
    if (of.type != NULL) return type_has_bound(dims, of.type);
    if (!onv_type_has_rank(type)) return false;
    for (int i = 0; i < type->rank; i++)
        if (onv_dim_has_bound(dims, type->dims[i])) return true;
    return false;
}

/* --- One node ---------------------------------------------------------------------------------- */

static onv_status check_arity(const onv_op *op, const onv_node *node, onv_error *err)
{
    if (node->n_inputs < (uint32_t)op->in.min || node->n_inputs > (uint32_t)op->in.max)
        return onv_fail(err, ONV_ERR_MODEL, "%s of opset %d takes %d to %d inputs, the node has %u",
                        op->name, op->since, op->in.min, op->in.max, node->n_inputs);
    if (node->n_outputs < (uint32_t)op->out.min || node->n_outputs > (uint32_t)op->out.max)
        return onv_fail(err, ONV_ERR_MODEL,
                        "%s of opset %d gives %d to %d outputs, the node has %u", op->name,
                        op->since, op->out.min, op->out.max, node->n_outputs);
    return ONV_OK;
}

/* --- Names of other operators ------------------------------------------------------------------- */

static const char *domain_of(const onv_node *node)
{
    return node->domain[0] != '\0' ? node->domain : "ai.onnx";
}

/* The operator's name as the file has it. */
static const char *plain_op(const onv_node *node)
{
    const char *domain = domain_of(node);
    size_t length = strlen(domain);
    bool is_named = strncmp(node->op_type, domain, length) == 0 &&
                    strncmp(node->op_type + length, "::", 2) == 0;
    return node->op_type + (is_named ? length + 2 : 0);
}

/* `op` is the plain name in the strings of the model, whose addresses tell them apart. */
static const onv_op *find_known(onv_driver *driver, const onv_node *node, const char *op)
{
    enum { PLACES = sizeof driver->found_ops / sizeof driver->found_ops[0] };
    struct onv_found_op *found = &driver->found_ops[node->code % PLACES];
    if (found->name != op || found->domain != node->domain || found->version != node->version)
        *found = (struct onv_found_op){
            .domain = node->domain,
            .name = op,
            .row = onv_op_find(&driver->index, node->domain, op, node->version),
            .version = node->version,
        };
    return found->row;
}

onv_status onv_driver_name_others(onv_driver *driver, bool is_inferred)
{
    onv_model *model = driver->model;
    for (size_t i = 0; i < model->nodes.count; i++) {
        onv_node *node = &model->nodes.at[i];
        const char *plain = plain_op(node);
        const onv_op *row = find_known(driver, node, plain);
        ONV_WORK(1);
        bool contradicts = is_inferred && node->contradicts && node->op == NULL;
        if (plain != node->op_type ||
            (!contradicts && row != NULL && check_arity(row, node, NULL) == ONV_OK))
            continue;
        const char *name = onv_arena_printf(&driver->scratch, "%s::%s", domain_of(node), plain);
        name = name != NULL ? onv_intern(&model->strings, name) : NULL;
        onv_arena_reset(&driver->scratch);
        if (name == NULL) return onv_fail_memory(driver->err);
        onv_node_set_op(node, name);
    }
    return ONV_OK;
}

static onv_status report_unknown_op(onv_driver *driver, const onv_node *node)
{
    /* The table may still know of what was rewound. */
    uint32_t at;
    if (onv_ptr_map_get(&driver->unknown_at, node->op_type, &at) &&
        at < driver->unknown_ops.count && driver->unknown_ops.at[at] == node->op_type)
        return ONV_OK;
    if (!onv_ptr_map_set(&driver->unknown_at, node->op_type, (uint32_t)driver->unknown_ops.count) ||
        !onv_vec_push(&driver->unknown_ops, node->op_type))
        return onv_fail_memory(driver->err);
    onv_model_diag(driver->model, ONV_WARNING, "unknown-op", node->name,
                   "operator '%s' of domain '%s' (opset %d) is not known: its outputs have only "
                   "the shapes that the file declares",
                   plain_op(node), domain_of(node), node->version);
    return ONV_OK;
}

/* Limits and memory that rules leave to their caller. */
static onv_status check_sticky(onv_driver *driver, uint64_t overflows, uint64_t too_large,
                               const onv_node *node)
{
    onv_model *model = driver->model;
    ONV_TRY(driver->load_status);
    if (model->arena.failed || model->dims.failed || driver->scratch.failed)
        return onv_fail_memory(driver->err);
    if (model->dims.overflows != overflows)
        return onv_fail(driver->err, ONV_ERR_OVERFLOW, "a size does not fit 61 bits");
    if (model->dims.too_large != too_large)
        onv_model_diag(
            model, ONV_WARNING, "expression-too-large", node->name,
            "the expression of a size grew too large to follow; bind more dimensions, or "
            "raise it with --limit expression=N");
    return ONV_OK;
}

static onv_status apply_row(onv_driver *driver, onv_op_ctx *c, onv_node *node)
{
    uint64_t overflows = c->dims->overflows, too_large = c->dims->too_large;
    ONV_TRY(check_arity(c->op, node, driver->err));
    ONV_TRY(c->op->infer(c));
    if (c->op->fold != NULL) ONV_TRY(c->op->fold(c));
    node->traits = c->op->traits_fn != NULL ? c->op->traits_fn(c) : c->op->traits;
    if (c->op->macs != NULL) {
        node->macs = c->op->macs(c);
    } else if ((c->op->flags & ONV_OP_HOST) == 0 && node->traits.view_of == 0 && c->n_out > 0) {
        node->element_ops = onv_type_elems(c->dims, &c->out[0].type);
    }
    return check_sticky(driver, overflows, too_large, node);
}

static onv_status check_dims(onv_driver *driver, const onv_value *value)
{
    for (int i = 0; onv_type_has_rank(&value->type) && i < value->type.rank; i++) {
        onv_dim dim = value->type.dims[i];
        if (onv_dim_is_known(dim) && dim.raw < 0)
            return onv_fail(driver->err, ONV_ERR_MODEL, "output '%s' would have the dimension %lld",
                            value->name, (long long)dim.raw);
        if (onv_dim_is_infinite(dim))
            return onv_fail(driver->err, ONV_ERR_OVERFLOW,
                            "dim %d of output '%s' does not fit 61 bits", i, value->name);
    }
    return ONV_OK;
}

static onv_status store_outputs(onv_driver *driver, const onv_op_ctx *c)
{
    for (uint32_t k = 0; k < c->n_out; k++) {
        if (!onv_op_has_out(c, k)) continue;
        onv_value *value = onv_model_value(driver->model, c->node->outputs[k]);
        if (value->kind == ONV_VALUE_CONSTANT) continue; /* the loader knows it better */
        value->type = c->out[k].type;
        value->known = c->out[k].known;
        ONV_TRY(check_dims(driver, value));
        ONV_TRY(merge_declared(driver, value));
        value->bound_used = c->out[k].bound || type_has_bound(c->dims, &value->type);
    }
    return ONV_OK;
}

/* A declared rule is used for an unknown operator, and for a known one where the user asks for it. */
static const onv_op *find_row(onv_driver *driver, const onv_node *node)
{
    const onv_op_shapes *custom = &driver->op_shapes;
    const char *op = plain_op(node);
    const onv_op *row = onv_op_shapes_find(custom, node->domain, op, node->version, true);
    if (row == NULL) row = find_known(driver, node, op);
    if (row == NULL) row = onv_op_shapes_find(custom, node->domain, op, node->version, false);
    return row;
}

static const char *deciders(onv_op_ctx *c, uint32_t k)
{
    return onv_deciders_text(c->driver, c->node->inputs[k]);
}

onv_status onv_driver_run_node(onv_driver *driver, onv_node_id id)
{
    onv_model *model = driver->model;
    onv_node *node = onv_model_node(model, id);
    ONV_WORK(8 + node->n_inputs + node->n_outputs);
    if (driver->unroll.depth > 0 && driver->unroll.nodes_left > 0)
        driver->unroll.nodes_left--;
    else if (++driver->runs > driver->max_runs)
        return onv_fail(driver->err, ONV_ERR_LIMIT,
                        "loops in loops: more than %" PRIu64
                        " nodes to infer, the limit" ONV_RAISE("node-runs"),
                        driver->max_runs);
    /* Nested subgraphs run while this node's arrays are in use, so the scratch arena is not reset
     * here but by the outermost node. */
    node_run run = {.last = ONV_NO_GRAPH};
    onv_op_ctx *c = &run.c;
    *c = (onv_op_ctx){
        .model = model,
        .node = node,
        .version = node->version,
        .dims = &model->dims,
        .arena = &model->arena,
        .n_in = node->n_inputs,
        .n_out = node->n_outputs,
        .run_subgraph = run_subgraph,
        .load_known = load_known,
        .read_tensor = read_tensor,
        .deciders = deciders,
        .unroll = &driver->unroll,
        .branches_must_fit = driver->branches_must_fit,
        .driver = driver,
        .err = driver->err,
    };
    onv_op_value *in = ONV_ARENA_ARRAY(&driver->scratch, onv_op_value, node->n_inputs);
    bool *present = ONV_ARENA_ARRAY(&driver->scratch, bool, node->n_inputs);
    c->out = ONV_ARENA_ARRAY(&driver->scratch, onv_op_value, node->n_outputs);
    if (in == NULL || present == NULL || c->out == NULL) return onv_fail_memory(driver->err);
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        in[k].type.rank = -1;
        present[k] = onv_is_value(node->inputs[k]);
        if (!present[k]) continue;
        const onv_value *value = onv_model_value(model, node->inputs[k]);
        in[k] = (onv_op_value){value->type, value->known, value->bound_used};
    }
    for (uint32_t k = 0; k < node->n_outputs; k++) c->out[k].type.rank = -1;
    c->in = in;
    c->in_present = present;

    node->traits = (onv_traits){0};
    node->macs = node->element_ops = onv_dim_const(0);
    onv_dims_enter(c->dims, id.index);
    node->op = c->op = find_row(driver, node);
    if (c->op == NULL) {
        ONV_TRY(report_unknown_op(driver, node));
    } else {
        ONV_TRY(onv_rebatch_inputs(driver, id, c));
        ONV_TRY(apply_row(driver, c, node));
    }
    return store_outputs(driver, c);
}

/* --- Nodes that contradict their operators ------------------------------------------------------ */

/* What the error says, which may be of a node inside. */
static void warn_of_contradiction(onv_driver *driver, const onv_node *node)
{
    const onv_error *error = driver->err;
    bool is_inside = error->op_type[0] != '\0' && (strcmp(error->op_type, node->op_type) != 0 ||
                                                   strcmp(error->node, node->name) != 0);
    onv_model_diag(driver->model, ONV_WARNING, "contradiction", node->name,
                   "%s: %s%s%s%s%.200s; its outputs have only the shapes that the file declares%s",
                   plain_op(node), is_inside ? error->op_type : "", is_inside ? " '" : "",
                   is_inside ? error->node : "", is_inside ? "': " : "", error->message,
                   is_inside ? ", and what it runs is not counted" : "");
}

static void drop_graphs(onv_model *model, const onv_node *owner)
{
    for (uint32_t i = 0; i < owner->n_attrs; i++) {
        const onv_attr *attr = &owner->attrs[i];
        if (attr->kind == ONV_ATTR_GRAPH) onv_model_graph(model, attr->graph)->never_runs = true;
        for (uint32_t k = 0; attr->kind == ONV_ATTR_GRAPHS && k < attr->count; k++)
            onv_model_graph(model, attr->graphs[k])->never_runs = true;
    }
}

void onv_driver_clear_value(onv_value *value)
{
    if (onv_value_is_weight(value)) return;
    value->type = (onv_type){.rank = -1};
    value->known = NULL;
    value->bound_used = false;
}

void onv_driver_clear_node(const onv_model *model, onv_node *node)
{
    node->op = NULL;
    node->traits = (onv_traits){0};
    node->macs = node->element_ops = onv_dim_const(0);
    for (uint32_t k = 0; k < node->n_outputs; k++)
        if (onv_is_value(node->outputs[k]))
            onv_driver_clear_value(onv_model_value(model, node->outputs[k]));
}

/* The node is as one of an unknown operator. */
static onv_status leave_open(onv_driver *driver, onv_node_id id, onv_diag_mark before)
{
    onv_model *model = driver->model;
    onv_node *node = onv_model_node(model, id);
    onv_driver_rewind(driver, before);
    warn_of_contradiction(driver, node);
    *driver->err = (onv_error){0};
    driver->failed_node = ONV_NO_NODE;
    node->contradicts = true;
    onv_driver_clear_node(model, node);
    drop_graphs(model, node);
    for (uint32_t k = 0; k < node->n_outputs; k++) {
        if (!onv_is_value(node->outputs[k])) continue;
        onv_value *value = onv_model_value(model, node->outputs[k]);
        if (value->kind == ONV_VALUE_CONSTANT) continue;
        ONV_TRY(merge_declared(driver, value));
        value->bound_used = type_has_bound(&model->dims, &value->type);
    }
    return ONV_OK;
}

/* Sizes that do not fit, and contents that cannot be read, are no matter of the node. */
static bool may_leave_open(const onv_driver *driver, onv_node_id id, uint64_t overflows)
{
    const onv_model *model = driver->model;
    const onv_node *node = onv_model_node(model, id);
    return node->graph.index == 0 && (driver->may_contradict || node->contradicts) &&
           driver->load_status == ONV_OK && model->dims.overflows == overflows &&
           !model->arena.failed && !model->dims.failed && !driver->scratch.failed;
}

onv_status onv_driver_run_graph(onv_driver *driver, onv_graph_id id)
{
    const onv_graph *graph = onv_model_graph(driver->model, id);
    for (uint32_t i = 0; i < graph->n_nodes; i++) {
        const onv_diag_mark before = onv_driver_mark(driver);
        const uint64_t overflows = driver->model->dims.overflows;
        onv_status status = onv_driver_run_node(driver, graph->nodes[i]);
        if (status == ONV_ERR_MODEL && may_leave_open(driver, graph->nodes[i], overflows))
            status = leave_open(driver, graph->nodes[i], before);
        if (status != ONV_OK) {
            const onv_node *node = onv_model_node(driver->model, graph->nodes[i]);
            if (driver->failed_node.index == UINT32_MAX) driver->failed_node = graph->nodes[i];
            onv_error_at(driver->err, node->name, node->op_type);
            return status;
        }
        if (id.index == 0) onv_arena_reset(&driver->scratch);
    }
    return ONV_OK;
}
