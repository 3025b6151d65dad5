#include "rewrite/edit.h"

#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "load/load.h"
#include "rewrite/seen.h"

void onv_edit_fail(onv_edit *e, onv_status status)
{
    if (e->status == ONV_OK) e->status = status;
    if (status == ONV_ERR_MEMORY) onv_fail_memory(e->err);
}

/* --- Lists ------------------------------------------------------------------------------------- */

static void link_use(onv_edit *e, uint32_t at, onv_value_id value)
{
    onv_use *use = &e->uses.at[at];
    use->before = use->next = ONV_NO_USE;
    if (!onv_is_value(value)) return;
    onv_edit_value *read = &e->values.at[value.index];
    use->next = read->first_use;
    if (use->next != ONV_NO_USE) e->uses.at[use->next].before = at;
    read->first_use = at;
    read->n_uses++;
}

static void unlink_use(onv_edit *e, uint32_t at, onv_value_id value)
{
    const onv_use *use = &e->uses.at[at];
    if (!onv_is_value(value)) return;
    onv_edit_value *read = &e->values.at[value.index];
    if (use->before != ONV_NO_USE)
        e->uses.at[use->before].next = use->next;
    else
        read->first_use = use->next;
    if (use->next != ONV_NO_USE) e->uses.at[use->next].before = use->before;
    read->n_uses--;
}

static void link_inputs(onv_edit *e, onv_node_id id)
{
    const onv_node *node = onv_edit_node_at(e, id);
    if (!onv_vec_reserve(&e->uses, node->n_inputs)) {
        onv_edit_fail(e, ONV_ERR_MEMORY);
        return;
    }
    e->nodes.at[id.index].first_use = (uint32_t)e->uses.count;
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        uint32_t at = (uint32_t)e->uses.count++;
        e->uses.at[at] = (onv_use){.node = id, .input = k};
        link_use(e, at, node->inputs[k]);
    }
}

static void unlink_inputs(onv_edit *e, onv_node_id id)
{
    const onv_node *node = onv_edit_node_at(e, id);
    uint32_t first = e->nodes.at[id.index].first_use;
    for (uint32_t k = 0; k < node->n_inputs; k++) unlink_use(e, first + k, node->inputs[k]);
}

/* Before `at`; ONV_NO_NODE: as the last one. */
static void link_node(onv_edit *e, onv_node_id id, onv_node_id at)
{
    onv_edit_graph *graph = &e->graphs.at[onv_edit_node_at(e, id)->graph.index];
    onv_edit_node *node = &e->nodes.at[id.index];
    node->next = at;
    node->before = onv_is_node(at) ? e->nodes.at[at.index].before : graph->last;
    if (onv_is_node(node->before))
        e->nodes.at[node->before.index].next = id;
    else
        graph->first = id;
    if (onv_is_node(at))
        e->nodes.at[at.index].before = id;
    else
        graph->last = id;
    graph->n_nodes++;
}

/* It goes on to lead to the next one. */
static void unlink_node(onv_edit *e, onv_node_id id)
{
    onv_edit_graph *graph = &e->graphs.at[onv_edit_node_at(e, id)->graph.index];
    const onv_edit_node *node = &e->nodes.at[id.index];
    if (onv_is_node(node->before))
        e->nodes.at[node->before.index].next = node->next;
    else
        graph->first = node->next;
    if (onv_is_node(node->next))
        e->nodes.at[node->next.index].before = node->before;
    else
        graph->last = node->before;
    graph->n_nodes--;
}

/* --- Editing ----------------------------------------------------------------------------------- */

static void changed(onv_edit *e)
{
    e->n_edits++;
    e->is_seen = false;
}

static void remove_graphs(onv_edit *e, const onv_node *owner);

/* Nothing of a graph is left. Recursion is as deep as graphs nest, which the loader bounds. */
static void remove_graph(onv_edit *e, onv_graph_id graph)
{
    for (onv_node_id id = onv_edit_first(e, graph); onv_is_node(id); id = onv_edit_next(e, id)) {
        unlink_inputs(e, id);
        e->nodes.at[id.index].is_removed = true;
        remove_graphs(e, onv_edit_node_at(e, id));
    }
    e->graphs.at[graph.index] = (onv_edit_graph){ONV_NO_NODE, ONV_NO_NODE, 0, true};
}

static void remove_graphs(onv_edit *e, const onv_node *owner)
{
    for (uint32_t i = 0; i < owner->n_attrs; i++) {
        const onv_attr *attr = &owner->attrs[i];
        if (attr->kind == ONV_ATTR_GRAPH) remove_graph(e, attr->graph);
        for (uint32_t k = 0; attr->kind == ONV_ATTR_GRAPHS && k < attr->count; k++)
            remove_graph(e, attr->graphs[k]);
    }
}

void onv_edit_remove(onv_edit *e, onv_node_id node)
{
    if (e->status != ONV_OK || !onv_edit_is_there(e, node)) return;
    unlink_inputs(e, node);
    unlink_node(e, node);
    e->nodes.at[node.index].is_removed = true;
    remove_graphs(e, onv_edit_node_at(e, node));
    changed(e);
}

bool onv_edit_remove_unread(onv_edit *e, onv_node_id node)
{
    bool is_unread = onv_edit_is_unread(e, node);
    if (is_unread) onv_edit_remove(e, node);
    return is_unread;
}

/* A list, since chains may be as long as the model. */
void onv_edit_remove_with_inputs(onv_edit *e, onv_node_id node)
{
    ONV_VEC(onv_node_id) waiting = {0};
    if (!onv_vec_push(&waiting, node)) onv_edit_fail(e, ONV_ERR_MEMORY);
    while (waiting.count > 0 && e->status == ONV_OK) {
        onv_node_id id = waiting.at[--waiting.count];
        if (!onv_edit_is_there(e, id)) continue;
        onv_edit_remove(e, id);
        for (uint32_t k = 0; k < onv_edit_node_at(e, id)->n_inputs; k++) {
            onv_node_id made = onv_edit_in_node(e, id, k);
            if (onv_edit_is_unread(e, made) && !onv_vec_push(&waiting, made))
                onv_edit_fail(e, ONV_ERR_MEMORY);
        }
    }
    onv_vec_cleanup(&waiting);
}

/* With new uses, since those of a node stand one after the other. */
static void add_input(onv_edit *e, onv_node_id node, uint32_t k, onv_value_id value)
{
    onv_node *at = onv_edit_node_at(e, node);
    onv_value_id *inputs =
        onv_edit_checked(e, ONV_ARENA_ARRAY(&e->model->arena, onv_value_id, k + 1));
    if (inputs == NULL) return;
    for (uint32_t i = 0; i < k; i++) inputs[i] = onv_edit_in(e, node, i);
    inputs[k] = value;
    unlink_inputs(e, node);
    at->inputs = inputs;
    at->n_inputs = k + 1;
    link_inputs(e, node);
    changed(e);
}

void onv_edit_set_input(onv_edit *e, onv_node_id node, uint32_t k, onv_value_id value)
{
    if (e->status != ONV_OK) return;
    onv_node *at = onv_edit_node_at(e, node);
    if (k >= at->n_inputs) {
        add_input(e, node, k, value);
        return;
    }
    uint32_t use = e->nodes.at[node.index].first_use + k;
    unlink_use(e, use, at->inputs[k]);
    at->inputs[k] = value;
    link_use(e, use, value);
    changed(e);
}

void onv_edit_replace(onv_edit *e, onv_value_id from, onv_value_id to)
{
    while (e->status == ONV_OK && e->values.at[from.index].first_use != ONV_NO_USE) {
        const onv_use *use = &e->uses.at[e->values.at[from.index].first_use];
        onv_edit_set_input(e, use->node, use->input, to);
    }
}

static void drop_output(onv_edit *e, onv_value_id value)
{
    const onv_value *at = onv_edit_value_at(e, value);
    if (!onv_is_node(at->producer)) return;
    onv_node *node = onv_edit_node_at(e, at->producer);
    if (at->output_index < node->n_outputs && node->outputs[at->output_index].index == value.index)
        node->outputs[at->output_index] = ONV_NO_VALUE;
}

void onv_edit_take_output(onv_edit *e, onv_node_id node, uint32_t k, onv_value_id value)
{
    if (e->status != ONV_OK) return;
    onv_value_id own = onv_edit_out(e, node, k);
    drop_output(e, value);
    onv_value *taken = onv_edit_value_at(e, value);
    taken->producer = node;
    taken->output_index = k;
    taken->kind = ONV_VALUE_ACTIVATION;
    onv_edit_node_at(e, node)->outputs[k] = value;
    if (onv_is_value(own)) {
        e->values.at[value.index].seen = e->values.at[own.index].seen;
        e->values.at[value.index].seen_known = e->values.at[own.index].seen_known;
        onv_edit_value_at(e, own)->producer = ONV_NO_NODE;
        onv_edit_replace(e, own, value);
    }
    changed(e);
}

bool onv_edit_bypass(onv_edit *e, onv_node_id node, uint32_t k)
{
    onv_value_id out = onv_edit_out(e, node, 0), in = onv_edit_in(e, node, k);
    if (!onv_is_value(in) || !onv_is_value(out) || e->status != ONV_OK) return false;
    if (!onv_edit_is_result(e, out)) {
        onv_edit_replace(e, out, in);
        onv_edit_remove(e, node);
        return true;
    }
    onv_node_id maker = onv_edit_producer(e, in);
    if (!onv_is_node(maker) || onv_edit_is_result(e, in) || !onv_edit_is_beside(e, maker, node))
        return false;
    uint32_t index = onv_edit_value_at(e, in)->output_index;
    onv_edit_remove(e, node);
    onv_edit_take_output(e, maker, index, out);
    return true;
}

/* --- Adding ------------------------------------------------------------------------------------ */

const char *onv_edit_intern(onv_edit *e, const char *text)
{
    const char *interned = onv_intern(&e->model->strings, text);
    if (interned == NULL) onv_edit_fail(e, ONV_ERR_MEMORY);
    return interned;
}

static onv_value_id push_value(onv_edit *e, const onv_value *value)
{
    onv_edit_value row = {.first_use = ONV_NO_USE, .seen = value->type};
    if (e->status != ONV_OK) return ONV_NO_VALUE;
    if (!onv_vec_push(&e->model->values, *value) || !onv_vec_push(&e->values, row)) {
        onv_edit_fail(e, ONV_ERR_MEMORY);
        return ONV_NO_VALUE;
    }
    return (onv_value_id){(uint32_t)e->model->values.count - 1};
}

onv_value_id onv_edit_add_value(onv_edit *e, onv_graph_id graph, onv_value_id like,
                                const char *suffix)
{
    const char *stem = onv_is_value(like) ? onv_edit_value_at(e, like)->name : "";
    onv_value value = {.name = onv_arena_printf(&e->model->arena, "%s%s", stem, suffix),
                       .graph = graph,
                       .producer = ONV_NO_NODE,
                       .type = {.rank = -1}};
    if (value.name == NULL) onv_edit_fail(e, ONV_ERR_MEMORY);
    return push_value(e, &value);
}

static onv_tensor *new_tensor(onv_edit *e, const char *name, onv_dtype dtype, const int64_t *dims,
                              int rank)
{
    onv_tensor *tensor = ONV_ARENA_ARRAY(&e->model->arena, onv_tensor, 1);
    onv_dim *own = ONV_ARENA_ARRAY(&e->model->arena, onv_dim, (size_t)rank);
    if (tensor == NULL || own == NULL) {
        onv_edit_fail(e, ONV_ERR_MEMORY);
        return NULL;
    }
    tensor->name = name;
    tensor->type = (onv_type){
        .kind = ONV_TYPE_TENSOR, .dtype = (uint8_t)dtype, .rank = (int16_t)rank, .dims = own};
    tensor->elems = 1;
    bool fits = true;
    for (int i = 0; i < rank; i++) {
        own[i] = onv_dim_const(dims[i]);
        fits &= !__builtin_mul_overflow(tensor->elems, (uint64_t)dims[i], &tensor->elems);
    }
    if (fits && onv_dtype_bytes(dtype, tensor->elems, &tensor->bytes)) return tensor;
    onv_edit_fail(e,
                  onv_fail(e->err, ONV_ERR_OVERFLOW, "the bytes of '%s' do not fit 64 bits", name));
    return NULL;
}

static const onv_known *known_of(onv_edit *e, onv_dtype dtype, const int64_t *dims, int rank,
                                 uint64_t elems, const int64_t *numbers)
{
    onv_known *known = ONV_ARENA_ARRAY(&e->model->arena, onv_known, 1);
    int64_t *own = onv_arena_copy(&e->model->arena, dims, (size_t)rank * sizeof *own);
    onv_scalar *list = ONV_ARENA_ARRAY(&e->model->arena, onv_scalar, (size_t)elems);
    if (known == NULL || own == NULL || list == NULL) {
        onv_edit_fail(e, ONV_ERR_MEMORY);
        return NULL;
    }
    for (uint64_t i = 0; i < elems; i++) list[i] = onv_scalar_int(onv_dim_const(numbers[i]));
    *known = (onv_known){.dtype = (uint8_t)dtype,
                         .rank = (int16_t)rank,
                         .count = (uint32_t)elems,
                         .dims = own,
                         .elems = list};
    return known;
}

onv_value_id onv_edit_add_weight(onv_edit *e, onv_graph_id graph, const char *name, onv_dtype dtype,
                                 const int64_t *dims, int rank, const int64_t *numbers)
{
    if (e->status != ONV_OK) return ONV_NO_VALUE;
    const onv_tensor *tensor = new_tensor(e, name, dtype, dims, rank);
    if (tensor == NULL) return ONV_NO_VALUE;
    onv_value value = {.name = name,
                       .kind = ONV_VALUE_INITIALIZER,
                       .graph = graph,
                       .producer = ONV_NO_NODE,
                       .known_tried = true,
                       .type = tensor->type,
                       .tensor = tensor};
    if (numbers != NULL) value.known = known_of(e, dtype, dims, rank, tensor->elems, numbers);
    return push_value(e, &value);
}

onv_value_id onv_edit_add_ints(onv_edit *e, onv_node_id node, const char *name,
                               const int64_t *numbers, uint32_t count)
{
    const int64_t length = count;
    return onv_edit_add_weight(e, onv_edit_node_at(e, node)->graph, name, ONV_INT64, &length, 1,
                               numbers);
}

/* Outputs of the node that has been pushed: new ones, or those that others made. */
static void set_outputs(onv_edit *e, onv_node_id id, const onv_new_node *n)
{
    onv_value_id *outputs = onv_edit_node_at(e, id)->outputs;
    uint32_t n_outputs = onv_edit_node_at(e, id)->n_outputs;
    for (uint32_t k = 0; k < n_outputs && e->status == ONV_OK; k++) {
        outputs[k] = ONV_NO_VALUE;
        if (n->outputs != NULL) {
            if (onv_is_value(n->outputs[k])) onv_edit_take_output(e, id, k, n->outputs[k]);
            continue;
        }
        onv_graph_id graph = onv_edit_node_at(e, id)->graph;
        onv_value_id like = n->n_inputs > 0 ? n->inputs[0] : ONV_NO_VALUE;
        onv_value_id made = onv_edit_add_value(e, graph, like, "_out");
        if (e->status == ONV_OK) onv_edit_take_output(e, id, k, made);
    }
}

static int32_t domain_version(const onv_edit *e, const onv_new_node *n)
{
    const onv_node *at = onv_edit_node_at(e, n->at);
    const char *domain = n->domain != NULL ? n->domain : "";
    if (n->version != 0) return n->version;
    if (strcmp(at->domain, domain) == 0) return at->version;
    return domain[0] == '\0' ? onv_edit_opset(e) : 1;
}

void onv_edit_retype(onv_edit *e, onv_node_id node)
{
    if (e->status != ONV_OK) return;
    onv_edit_fail(e, onv_driver_run_node(&e->driver, node));
    onv_arena_reset(&e->driver.scratch);
    onv_seen_node(e, node);
}

onv_node_id onv_edit_add(onv_edit *e, const onv_new_node *n)
{
    if (e->status != ONV_OK) return ONV_NO_NODE;
    onv_arena *arena = &e->model->arena;
    onv_node node = *onv_edit_node_at(e, n->at); /* what modules it belongs to */
    onv_node_set_op(&node, onv_edit_intern(e, n->op_type));
    node.domain = onv_edit_intern(e, n->domain != NULL ? n->domain : "");
    node.name = n->name != NULL ? onv_edit_intern(e, n->name) : node.name;
    node.version = domain_version(e, n);
    node.n_inputs = n->n_inputs;
    node.n_outputs = n->n_outputs > 0 ? n->n_outputs : 1;
    node.n_attrs = n->n_attrs;
    node.inputs = onv_arena_copy(arena, n->inputs, n->n_inputs * sizeof *node.inputs);
    node.outputs = ONV_ARENA_ARRAY(arena, onv_value_id, node.n_outputs);
    node.attrs = onv_arena_copy(arena, n->attrs, n->n_attrs * sizeof *node.attrs);
    onv_edit_node row = {.is_removed = false};
    if (arena->failed || !onv_vec_push(&e->model->nodes, node) || !onv_vec_push(&e->nodes, row)) {
        onv_edit_fail(e, ONV_ERR_MEMORY);
        return ONV_NO_NODE;
    }
    onv_node_id id = {(uint32_t)e->model->nodes.count - 1};
    link_inputs(e, id);
    link_node(e, id, n->is_behind ? e->nodes.at[n->at.index].next : n->at);
    set_outputs(e, id, n);
    onv_edit_retype(e, id);
    changed(e);
    return id;
}

onv_value_id onv_edit_make(onv_edit *e, const onv_new_node *n)
{
    onv_node_id id = onv_edit_add(e, n);
    return e->status == ONV_OK ? onv_edit_out(e, id, 0) : ONV_NO_VALUE;
}

void onv_edit_move(onv_edit *e, onv_node_id node, onv_node_id at)
{
    if (e->status != ONV_OK) return;
    onv_node_id next = onv_edit_next(e, at);
    for (; onv_is_node(next) && next.index != node.index; next = onv_edit_next(e, next))
        if (!onv_work(1)) onv_edit_fail(e, ONV_ERR_CANCELLED);
    if (onv_is_node(next)) onv_edit_delay(e, node, at);
}

void onv_edit_delay(onv_edit *e, onv_node_id node, onv_node_id at)
{
    if (e->status != ONV_OK) return;
    unlink_node(e, node);
    link_node(e, node, at);
    changed(e);
}

void onv_edit_set_attr(onv_edit *e, onv_node_id node, onv_attr attr)
{
    onv_node *at = onv_edit_node_at(e, node);
    onv_attr *attrs =
        onv_edit_checked(e, ONV_ARENA_ARRAY(&e->model->arena, onv_attr, at->n_attrs + 1));
    uint32_t n = 0;
    if (e->status != ONV_OK) return;
    for (uint32_t i = 0; i < at->n_attrs; i++)
        if (strcmp(at->attrs[i].name, attr.name) != 0) attrs[n++] = at->attrs[i];
    attrs[n++] = attr;
    at->attrs = attrs;
    at->n_attrs = n;
    changed(e);
}

void onv_edit_fold(onv_edit *e, onv_value_id id)
{
    onv_value *value = onv_edit_value_at(e, id);
    int64_t dims[ONV_MAX_RANK];
    if (e->status != ONV_OK) return;
    for (int i = 0; i < value->type.rank; i++) dims[i] = value->type.dims[i].raw;
    const onv_tensor *tensor =
        new_tensor(e, value->name, (onv_dtype)value->type.dtype, dims, value->type.rank);
    if (tensor == NULL) return;
    drop_output(e, id);
    value->kind = ONV_VALUE_INITIALIZER;
    value->producer = ONV_NO_NODE;
    value->tensor = tensor;
    value->type = tensor->type;
    value->known_tried = true;
    e->values.at[id.index].seen = tensor->type;
    e->values.at[id.index].seen_known = NULL;
    changed(e);
}

/* --- Beginning --------------------------------------------------------------------------------- */

static bool begin_arrays(onv_edit *e)
{
    const onv_model *model = e->model;
    size_t n_uses = 0;
    for (size_t i = 0; i < model->nodes.count; i++) n_uses += model->nodes.at[i].n_inputs;
    if (!onv_vec_reserve(&e->values, model->values.count + 16) ||
        !onv_vec_reserve(&e->nodes, model->nodes.count + 16) ||
        !onv_vec_reserve(&e->graphs, model->graphs.count) || !onv_vec_reserve(&e->uses, n_uses))
        return false;
    for (size_t i = 0; i < model->values.count; i++)
        e->values.at[e->values.count++] =
            (onv_edit_value){.first_use = ONV_NO_USE, .seen = {.rank = -1}};
    for (size_t i = 0; i < model->nodes.count; i++)
        e->nodes.at[e->nodes.count++] = (onv_edit_node){.next = ONV_NO_NODE, .is_removed = true};
    for (size_t i = 0; i < model->graphs.count; i++)
        e->graphs.at[e->graphs.count++] =
            (onv_edit_graph){.first = ONV_NO_NODE, .last = ONV_NO_NODE};
    return true;
}

/* A Constant whose tensor is known. */
static bool is_constant(const onv_edit *e, const onv_node *node)
{
    if (node->n_outputs != 1 || !onv_is_value(node->outputs[0])) return false;
    const onv_value *value = onv_edit_value_at(e, node->outputs[0]);
    return value->kind == ONV_VALUE_CONSTANT && value->tensor != NULL;
}

static void begin_nodes(onv_edit *e)
{
    const onv_model *model = e->model;
    for (uint32_t g = 0; g < model->graphs.count; g++) {
        const onv_graph *graph = &model->graphs.at[g];
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
            onv_node_id id = graph->nodes[i];
            const onv_node *node = onv_edit_node_at(e, id);
            if (is_constant(e, node)) {
                onv_value *value = onv_edit_value_at(e, node->outputs[0]);
                value->kind = ONV_VALUE_INITIALIZER;
                value->producer = ONV_NO_NODE;
                continue;
            }
            e->nodes.at[id.index].is_removed = false;
            link_node(e, id, ONV_NO_NODE);
            link_inputs(e, id);
        }
    }
}

onv_status onv_edit_begin(onv_edit *e, onv_model *model, onv_error *err)
{
    *e = (onv_edit){.model = model, .err = err};
    ONV_TRY(onv_driver_open(&e->driver, model, err));
    ONV_WORK(model->values.count);
    if (!begin_arrays(e)) return onv_fail_memory(err);
    begin_nodes(e);
    onv_seen_graph(e);
    return e->status;
}

void onv_edit_cleanup(onv_edit *e)
{
    onv_driver_close(&e->driver);
    onv_vec_cleanup(&e->values);
    onv_vec_cleanup(&e->nodes);
    onv_vec_cleanup(&e->graphs);
    onv_vec_cleanup(&e->uses);
}
