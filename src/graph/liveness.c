#include "graph/liveness.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

/* Working state of one computation. */
typedef struct builder {
    onv_model *model;
    onv_live *live;
    const onv_node_id *order; /* of the main graph; NULL: the file's */
    uint32_t *step_of;        /* by node */
    uint32_t *graph_first;    /* by graph: the first step of its nodes */
    onv_buffer *rows;         /* in order of definition */
    uint32_t n_rows;
    onv_error *err;
} builder;

/* --- Steps ------------------------------------------------------------------------------------- */

static void emit_graph(builder *b, onv_graph_id id);

/* Subgraphs run before their owner's step: the owner only hands their results on. Recursion is as
 * deep as graphs nest, which the loader bounds. */
static void emit_subgraphs(builder *b, const onv_node *node)
{
    for (uint32_t i = 0; i < node->n_attrs; i++) {
        const onv_attr *attr = &node->attrs[i];
        if (attr->kind == ONV_ATTR_GRAPH) emit_graph(b, attr->graph);
        if (attr->kind != ONV_ATTR_GRAPHS) continue;
        for (uint32_t k = 0; k < attr->count; k++) emit_graph(b, attr->graphs[k]);
    }
}

static void emit_graph(builder *b, onv_graph_id id)
{
    const onv_graph *graph = onv_model_graph(b->model, id);
    const onv_node_id *nodes = id.index == 0 && b->order != NULL ? b->order : graph->nodes;
    b->graph_first[id.index] = b->live->n_steps;
    for (uint32_t i = 0; i < graph->n_nodes; i++) {
        emit_subgraphs(b, onv_model_node(b->model, nodes[i]));
        b->step_of[nodes[i].index] = b->live->n_steps;
        b->live->steps[b->live->n_steps++] = nodes[i];
    }
}

/* --- Sizes ------------------------------------------------------------------------------------- */

static bool tensor_bytes(onv_dims *dims, const onv_type *type, uint64_t *bytes, bool *overflow)
{
    onv_dim elems = onv_dim_substitute_bounds(dims, onv_type_elems(dims, type));
    if (!onv_dim_is_const(elems) || type->dtype == ONV_UNDEFINED) return false;
    *overflow = !onv_dtype_bytes((onv_dtype)type->dtype, (uint64_t)elems.raw, bytes);
    return !*overflow;
}

/* Bytes of a value of any type; false where they are not known. */
static bool type_bytes(onv_dims *dims, const onv_type *type, uint64_t *bytes, bool *overflow)
{
    uint64_t one, sum = 0;
    if (onv_type_is_on_host(type)) {
        *bytes = 0;
        return true;
    }
    switch ((onv_type_kind)type->kind) {
    case ONV_TYPE_TENSOR:
    case ONV_TYPE_SPARSE_TENSOR: return tensor_bytes(dims, type, bytes, overflow);
    case ONV_TYPE_OPTIONAL:
        return type->elem != NULL && type_bytes(dims, type->elem, bytes, overflow);
    case ONV_TYPE_SEQUENCE: {
        onv_dim length = onv_dim_substitute_bounds(dims, type->length);
        if (!onv_dim_is_const(length)) return false;
        for (int64_t i = 0; type->items != NULL && i < length.raw; i++) {
            if (!type_bytes(dims, &type->items[i], &one, overflow)) return false;
            if (!onv_u64_add(sum, one, &sum)) *overflow = true;
        }
        *bytes = sum;
        if (type->items != NULL || length.raw == 0) return !*overflow;
        if (type->elem == NULL || !type_bytes(dims, type->elem, &one, overflow)) return false;
        *overflow = !onv_u64_mul(one, (uint64_t)length.raw, bytes);
        return !*overflow;
    }
    case ONV_TYPE_MAP:
    case ONV_TYPE_UNKNOWN: break;
    }
    return false;
}

/* --- Rows -------------------------------------------------------------------------------------- */

static onv_status add_row(builder *b, onv_value_id id, uint32_t first)
{
    const onv_value *value = onv_model_value(b->model, id);
    if (onv_value_is_weight(value)) return ONV_OK;
    bool top = value->graph.index == 0, overflow = false;
    onv_buffer row = {
        .first = first,
        .last = first,
        .becomes = ONV_NO_BUFFER,
        .within = ONV_NO_BUFFER,
        .kind = ONV_BUFFER_ACTIVATION,
        .value = id,
        .label = value->name,
        .bound = value->bound_used,
    };
    if (top && value->is_output)
        row.kind = ONV_BUFFER_OUTPUT;
    else if (top && value->kind == ONV_VALUE_INPUT)
        row.kind = ONV_BUFFER_INPUT;
    row.sized = type_bytes(&b->model->dims, &value->type, &row.bytes, &overflow);
    if (overflow)
        return onv_fail(b->err, ONV_ERR_OVERFLOW, "the bytes of '%s' do not fit 64 bits",
                        value->name);
    if (!row.sized) row.bytes = 0;
    b->live->of_value[id.index] = b->n_rows;
    b->rows[b->n_rows++] = row;
    return ONV_OK;
}

static onv_status add_rows(builder *b)
{
    onv_model *model = b->model;
    for (size_t g = 0; g < model->graphs.count; g++) {
        const onv_graph *graph = &model->graphs.at[g];
        for (uint32_t i = 0; i < graph->n_inputs; i++)
            ONV_TRY(add_row(b, graph->inputs[i], b->graph_first[g]));
    }
    for (uint32_t s = 0; s < b->live->n_steps; s++) {
        const onv_node *node = onv_model_node(model, b->live->steps[s]);
        for (uint32_t k = 0; k < node->n_outputs; k++)
            if (onv_is_value(node->outputs[k])) ONV_TRY(add_row(b, node->outputs[k], s));
    }
    return ONV_OK;
}

/* A use of a value in graph `graph` at `step`; a use from an inner graph lasts through the step of
 * the owner that stands in the value's own graph. */
static void use(builder *b, onv_value_id id, onv_graph_id graph, uint32_t step)
{
    if (!onv_is_value(id) || b->live->of_value[id.index] == UINT32_MAX) return;
    const onv_value *value = onv_model_value(b->model, id);
    while (graph.index != value->graph.index && graph.index != 0) {
        onv_node_id owner = onv_model_graph(b->model, graph)->owner;
        step = b->step_of[owner.index];
        graph = onv_model_node(b->model, owner)->graph;
    }
    onv_buffer *row = &b->rows[b->live->of_value[id.index]];
    if (step > row->last) row->last = step;
}

static void add_uses(builder *b)
{
    onv_model *model = b->model;
    for (uint32_t s = 0; s < b->live->n_steps; s++) {
        const onv_node *node = onv_model_node(model, b->live->steps[s]);
        for (uint32_t k = 0; k < node->n_inputs; k++) use(b, node->inputs[k], node->graph, s);
    }
    for (uint32_t g = 0; g < model->graphs.count; g++) {
        const onv_graph *graph = &model->graphs.at[g];
        uint32_t last = b->live->n_steps - 1;
        if (g > 0) last = b->step_of[graph->owner.index];
        for (uint32_t i = 0; i < graph->n_outputs; i++)
            use(b, graph->outputs[i], (onv_graph_id){g}, last);
    }
}

/* Stable counting sort by `first`. */
static onv_status sort_rows(builder *b)
{
    onv_live *live = b->live;
    onv_arena *arena = &b->model->arena;
    uint32_t *start = ONV_ARENA_ARRAY(arena, uint32_t, (size_t)live->n_steps + 2);
    live->intervals = ONV_ARENA_ARRAY(arena, onv_buffer, b->n_rows);
    if (start == NULL || live->intervals == NULL) return onv_fail_memory(b->err);
    for (uint32_t i = 0; i < b->n_rows; i++) start[b->rows[i].first + 1]++;
    for (uint32_t s = 0; s < live->n_steps; s++) start[s + 1] += start[s];
    for (uint32_t i = 0; i < b->n_rows; i++) {
        uint32_t at = start[b->rows[i].first]++;
        live->intervals[at] = b->rows[i];
        live->of_value[b->rows[i].value.index] = at;
    }
    live->n_intervals = b->n_rows;
    return ONV_OK;
}

/* --- The peak ---------------------------------------------------------------------------------- */

static onv_status sum_live_bytes(builder *b)
{
    onv_live *live = b->live;
    uint64_t total = 0;
    uint64_t *freed = ONV_ARENA_ARRAY(&b->model->arena, uint64_t, (size_t)live->n_steps + 1);
    live->live_bytes = ONV_ARENA_ARRAY(&b->model->arena, uint64_t, live->n_steps);
    if (freed == NULL || live->live_bytes == NULL) return onv_fail_memory(b->err);
    for (uint32_t i = 0; i < live->n_intervals; i++) {
        /* If all rows together fit 64 bits, so does every sum below. */
        const onv_buffer *row = &live->intervals[i];
        if (!onv_u64_add(total, row->bytes, &total))
            return onv_fail(b->err, ONV_ERR_OVERFLOW, "the bytes of all values do not fit 64 bits");
        live->live_bytes[row->first] += row->bytes;
        freed[row->last + 1] += row->bytes;
        live->unknown += !row->sized;
        live->bounded += row->sized && row->bound;
    }
    uint64_t now = 0;
    for (uint32_t s = 0; s < live->n_steps; s++) {
        now += live->live_bytes[s] - freed[s];
        live->live_bytes[s] = now;
        if (now <= live->peak_bytes) continue;
        live->peak_bytes = now;
        live->peak_step = s;
    }
    return ONV_OK;
}

typedef struct ranked {
    uint64_t bytes;
    uint32_t row;
} ranked;

static int compare_ranked(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static onv_status find_peak_set(builder *b)
{
    onv_live *live = b->live;
    uint32_t n = 0;
    for (uint32_t i = 0; i < live->n_intervals; i++)
        n += live->intervals[i].first <= live->peak_step &&
             live->intervals[i].last >= live->peak_step;
    ranked *set = ONV_ARENA_ARRAY(&b->model->arena, ranked, n);
    live->peak_set = ONV_ARENA_ARRAY(&b->model->arena, uint32_t, n);
    if (set == NULL || live->peak_set == NULL) return onv_fail_memory(b->err);
    for (uint32_t i = 0; i < live->n_intervals; i++) {
        const onv_buffer *row = &live->intervals[i];
        if (row->first > live->peak_step || row->last < live->peak_step) continue;
        set[live->n_peak_set++] = (ranked){row->bytes, i};
    }
    qsort(set, n, sizeof *set, compare_ranked);
    for (uint32_t i = 0; i < n; i++) live->peak_set[i] = set[i].row;
    return ONV_OK;
}

/* --- Sums -------------------------------------------------------------------------------------- */

/* The mean and variance of a BatchNormalization are buffers, which no optimizer trains. */
static onv_status mark_statistics(const builder *b, bool **result)
{
    bool *is_statistic = ONV_ARENA_ARRAY(&b->model->arena, bool, b->model->values.count);
    if (is_statistic == NULL) return onv_fail_memory(b->err);
    for (uint32_t s = 0; s < b->live->n_steps; s++) {
        const onv_node *node = onv_model_node(b->model, b->live->steps[s]);
        if (strcmp(node->op_type, "BatchNormalization") != 0) continue;
        for (uint32_t k = 3; k < 5 && k < node->n_inputs; k++)
            if (onv_is_value(node->inputs[k])) is_statistic[node->inputs[k].index] = true;
    }
    *result = is_statistic;
    return ONV_OK;
}

static onv_status sum_weights(builder *b)
{
    onv_live *live = b->live;
    bool *is_statistic, fits = true;
    ONV_TRY(mark_statistics(b, &is_statistic));
    for (size_t i = 0; i < b->model->values.count; i++) {
        const onv_value *value = &b->model->values.at[i];
        const onv_tensor *tensor = value->tensor;
        if (tensor == NULL || !onv_value_is_weight(value)) continue;
        bool constant = value->kind == ONV_VALUE_CONSTANT;
        uint64_t *bytes = constant ? &live->constant_bytes : &live->weight_bytes;
        uint64_t *elems = constant ? &live->constant_elems : &live->weight_elems;
        fits &= onv_u64_add(*bytes, tensor->bytes, bytes);
        fits &= onv_u64_add(*elems, tensor->elems, elems);
        if (!constant && onv_dtype_is_float((onv_dtype)tensor->type.dtype) && !is_statistic[i])
            live->trainable_elems += tensor->elems; /* a part of what was just checked */
    }
    if (fits) return ONV_OK;
    return onv_fail(b->err, ONV_ERR_OVERFLOW, "the bytes of all weights do not fit 64 bits");
}

static onv_status sum_values(builder *b)
{
    onv_live *live = b->live;
    for (uint32_t i = 0; i < live->n_intervals; i++) {
        const onv_buffer *row = &live->intervals[i];
        const onv_value *value = onv_model_value(b->model, row->value);
        bool top = value->graph.index == 0;
        if (value->kind == ONV_VALUE_INPUT) {
            if (top) live->input_bytes += row->bytes;
        } else {
            live->activation_bytes += row->bytes;
        }
        if (top && value->is_output) live->output_bytes += row->bytes;
    }
    bool fits = true;
    live->macs_known = true;
    for (uint32_t s = 0; s < live->n_steps; s++) {
        const onv_node *node = onv_model_node(b->model, live->steps[s]);
        onv_dim macs = onv_dim_substitute_bounds(&b->model->dims, node->macs);
        onv_dim ops = onv_dim_substitute_bounds(&b->model->dims, node->element_ops);
        if (onv_dim_is_const(macs) && macs.raw >= 0)
            fits &= onv_u64_add(live->macs, (uint64_t)macs.raw, &live->macs);
        else
            live->macs_known = false;
        if (onv_dim_is_const(ops) && ops.raw >= 0)
            fits &= onv_u64_add(live->element_ops, (uint64_t)ops.raw, &live->element_ops);
    }
    if (fits) return ONV_OK;
    return onv_fail(b->err, ONV_ERR_OVERFLOW, "the operations of all nodes do not fit 64 bits");
}

static onv_status compute(builder *b)
{
    onv_model *model = b->model;
    onv_arena *arena = &model->arena;
    b->live->steps = ONV_ARENA_ARRAY(arena, onv_node_id, model->nodes.count);
    b->step_of = ONV_ARENA_ARRAY(arena, uint32_t, model->nodes.count);
    b->graph_first = ONV_ARENA_ARRAY(arena, uint32_t, model->graphs.count);
    b->live->of_value = ONV_ARENA_ARRAY(arena, uint32_t, model->values.count);
    b->rows = ONV_ARENA_ARRAY(arena, onv_buffer, model->values.count);
    if (b->live->steps == NULL || b->step_of == NULL || b->graph_first == NULL ||
        b->live->of_value == NULL || b->rows == NULL)
        return onv_fail_memory(b->err);
    memset(b->live->of_value, 0xff, model->values.count * sizeof *b->live->of_value);
    emit_graph(b, (onv_graph_id){0});
    if (b->live->n_steps == 0)
        return onv_fail(b->err, ONV_ERR_MODEL, "the graph is empty: it has no nodes");
    ONV_TRY(add_rows(b));
    add_uses(b);
    ONV_TRY(sort_rows(b));
    ONV_TRY(sum_live_bytes(b));
    ONV_TRY(find_peak_set(b));
    ONV_TRY(sum_weights(b));
    return sum_values(b);
}

onv_status onv_live_compute(onv_model *model, const onv_node_id *order, onv_live *live,
                            onv_error *err)
{
    *live = (onv_live){0};
    builder b = {.model = model, .live = live, .order = order, .err = err};
    return compute(&b);
}
