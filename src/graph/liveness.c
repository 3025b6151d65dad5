#include "graph/liveness.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/quota.h"
#include "graph/steps.h"
#include "ops/op.h"

/* Working state of one computation. */
typedef struct builder {
    onv_model *model;
    onv_arena *arena;  /* of what stays */
    onv_arena scratch; /* of what does not */
    onv_live *live;
    onv_graph_steps steps;
    onv_buffer *rows; /* in order of definition */
    uint32_t n_rows;
    onv_error *err;
} builder;

/* --- Sizes ------------------------------------------------------------------------------------- */

/* False where the bytes of a value are not known, or do not fit. 64 bits hold more bytes than a dim. */
static bool type_bytes(onv_dims *dims, const onv_type *type, uint64_t *bytes, bool *overflow)
{
    uint64_t overflows = dims->overflows;
    bool is_plain =
        onv_type_has_rank(type) && type->dtype != ONV_UNDEFINED && !onv_type_is_on_host(type);
    onv_dim known = is_plain ? onv_dim_substitute_bounds(dims, onv_type_elems(dims, type))
                             : onv_type_bytes(dims, type);
    *overflow = dims->overflows != overflows || onv_dim_is_infinite(known);
    if (!onv_dim_is_const(known)) return false;
    *bytes = (uint64_t)known.raw;
    *overflow |= is_plain && !onv_dtype_bytes((onv_dtype)type->dtype, *bytes, bytes);
    return !*overflow;
}

/* --- Buffers ----------------------------------------------------------------------------------- */

/* A result that a loop stacks exists from the first iteration on. */
static uint32_t first_step(const builder *b, const onv_node *node, uint32_t output, uint32_t step)
{
    onv_loop_form form;
    if (!onv_loop_form_of(b->model, node, &form) || output < form.n_states) return step;
    return b->steps.graph_first[form.body.index];
}

static onv_status too_large(builder *b, const onv_value *value)
{
    onv_status status =
        onv_fail(b->err, ONV_ERR_OVERFLOW,
                 "the bytes of '%s' do not fit 64 bits; give it smaller dimensions, "
                 "by --batch, --dim or --shape",
                 value->name);
    if (!onv_is_node(value->producer)) return status;
    const onv_node *node = onv_model_node(b->model, value->producer);
    onv_error_at(b->err, node->name, node->op_type);
    return status;
}

static onv_status add_row(builder *b, onv_value_id id, uint32_t first, uint32_t last)
{
    const onv_value *value = onv_model_value(b->model, id);
    if (onv_value_is_weight(value)) return ONV_OK;
    bool top = value->graph.index == 0, overflow = false;
    onv_buffer row = onv_buffer_new(ONV_BUFFER_ACTIVATION, 0, first, last, value->name);
    row.value = id;
    row.bound = value->bound_used;
    if (top && value->is_output)
        row.kind = ONV_BUFFER_OUTPUT;
    else if (top && value->kind == ONV_VALUE_INPUT)
        row.kind = ONV_BUFFER_INPUT;
    row.sized = value->is_packed || /* products read the weight itself */
                type_bytes(&b->model->dims, &value->type, &row.bytes, &overflow);
    if (overflow) return too_large(b, value);
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
        uint32_t first = b->steps.graph_first[g];
        if (g > 0 && (b->steps.graph_region[g] == ONV_NO_REGION || graph->n_nodes == 0)) continue;
        for (uint32_t i = 0; i < graph->n_inputs; i++)
            ONV_TRY(add_row(b, graph->inputs[i], first, first));
    }
    for (uint32_t s = 0; s < b->live->timeline.steps.count; s++) {
        const onv_node *node = onv_model_node(model, b->live->timeline.steps.at[s].node);
        for (uint32_t k = 0; k < node->n_outputs; k++)
            if (onv_is_value(node->outputs[k]))
                ONV_TRY(add_row(b, node->outputs[k], first_step(b, node, k, s), s));
    }
    return ONV_OK;
}

/* --- Uses -------------------------------------------------------------------------------------- */

/* A use of a value in graph `graph` at `step`; a use from an inner graph lasts through the step of
 * the owner that is in the value's own graph. */
static void use(builder *b, onv_value_id id, onv_graph_id graph, uint32_t step)
{
    if (!onv_is_value(id) || b->live->of_value[id.index] == UINT32_MAX) return;
    const onv_value *value = onv_model_value(b->model, id);
    while (graph.index != value->graph.index && graph.index != 0) {
        onv_node_id owner = onv_model_graph(b->model, graph)->owner;
        step = b->steps.of_node[owner.index];
        graph = onv_model_node(b->model, owner)->graph;
    }
    onv_buffer *row = &b->rows[b->live->of_value[id.index]];
    if (step > row->last) row->last = step;
}

static void add_uses(builder *b)
{
    onv_model *model = b->model;
    for (uint32_t s = 0; s < b->live->timeline.steps.count; s++) {
        const onv_node *node = onv_model_node(model, b->live->timeline.steps.at[s].node);
        for (uint32_t k = 0; k < node->n_inputs; k++) use(b, node->inputs[k], node->graph, s);
    }
    for (uint32_t g = 0; g < model->graphs.count; g++) {
        const onv_graph *graph = &model->graphs.at[g];
        if (g > 0 && b->steps.graph_region[g] == ONV_NO_REGION) continue; /* it never runs */
        /* What a subgraph gives stays to its last step; the owner's output takes over from there. */
        uint32_t last = b->live->timeline.steps.count - 1;
        if (g > 0) last = b->steps.of_node[graph->owner.index];
        if (g > 0) {
            const onv_region *region = &b->live->timeline.regions.at[b->steps.graph_region[g]];
            if (region->end > region->first) last = region->end - 1;
        }
        for (uint32_t i = 0; i < graph->n_outputs; i++)
            use(b, graph->outputs[i], (onv_graph_id){g}, last);
    }
}

/* --- Memory that is handed on ------------------------------------------------------------------ */

/* Output `i` of a subgraph is the memory of output `k` of its owner. Not where the subgraph hands on
 * what it did not make, or the same value twice: then the owner's output is a copy. */
static void hand_on(builder *b, const onv_graph *graph, uint32_t i, const onv_node *owner,
                    uint32_t k)
{
    if (k >= owner->n_outputs || i >= graph->n_outputs || !onv_is_value(owner->outputs[k])) return;
    uint32_t from = b->live->of_value[graph->outputs[i].index];
    uint32_t to = b->live->of_value[owner->outputs[k].index];
    if (from == UINT32_MAX || to == UINT32_MAX) return;
    const onv_value *value = onv_model_value(b->model, graph->outputs[i]);
    bool is_own = onv_is_node(value->producer) &&
                  onv_model_node(b->model, value->producer)->graph.index == value->graph.index &&
                  &b->model->graphs.at[value->graph.index] == graph;
    if (is_own && b->rows[from].becomes == ONV_NO_BUFFER && b->rows[from].last < b->rows[to].first)
        b->rows[from].becomes = to;
}

/* A body that runs once gets the initial values themselves. */
static void pass_initial(builder *b, const onv_node *owner, const onv_loop_form *form, uint32_t k)
{
    const onv_graph *body = onv_model_graph(b->model, form->body);
    uint32_t in = form->node_in + k, at = form->body_in + k;
    if (!onv_dim_is(body->trips, 1) || in >= owner->n_inputs || at >= body->n_inputs ||
        !onv_is_value(owner->inputs[in]))
        return;
    uint32_t from = b->live->of_value[owner->inputs[in].index];
    uint32_t to = b->live->of_value[body->inputs[at].index];
    if (from == UINT32_MAX || to == UINT32_MAX) return;
    if (b->rows[to].bytes <= b->rows[from].bytes && b->rows[to].last <= b->rows[from].last)
        b->rows[to].within = from;
}

static void share(builder *b)
{
    for (uint32_t s = 0; s < b->live->timeline.steps.count; s++) {
        const onv_node *node = onv_model_node(b->model, b->live->timeline.steps.at[s].node);
        onv_loop_form form;
        if (onv_loop_form_of(b->model, node, &form)) {
            const onv_graph *body = onv_model_graph(b->model, form.body);
            for (uint32_t k = 0; k < form.n_states; k++) {
                hand_on(b, body, form.body_out + k, node, k);
                pass_initial(b, node, &form, k);
            }
        }
        if (node->code != ONV_OP_If || node->domain[0] != '\0') continue;
        static const char *const branches[] = {"then_branch", "else_branch"};
        for (int i = 0; i < 2; i++) {
            onv_graph_id branch = onv_graph_body(b->model, node, branches[i]);
            if (branch.index == ONV_NO_GRAPH.index) continue;
            for (uint32_t k = 0; k < node->n_outputs; k++)
                hand_on(b, onv_model_graph(b->model, branch), k, node, k);
        }
    }
}

/* An output that continues an input: that is there to the end, and may have room for the output. */
static void share_inputs(builder *b)
{
    const onv_graph *graph = onv_model_graph(b->model, (onv_graph_id){0});
    for (uint32_t i = 0; i < b->model->n_shared; i++) {
        const onv_shared_output *s = &b->model->shared[i];
        uint32_t in = b->live->of_value[graph->inputs[s->input].index];
        uint32_t out = b->live->of_value[graph->outputs[s->output].index];
        if (in == UINT32_MAX || out == UINT32_MAX || in == out) continue;
        onv_buffer *whole = &b->rows[in], *part = &b->rows[out];
        whole->last = b->live->timeline.steps.count - 1;
        if (s->is_copy) continue;
        if (!part->sized) whole->sized = false;
        if (part->bytes > whole->bytes && !part->bound) whole->bytes = part->bytes;
        if (part->bytes > whole->bytes)
            part->bytes = whole->bytes; /* it may be less, and has to fit */
        if (!whole->sized) whole->bytes = 0;
        part->within = in;
    }
}

static bool has_subgraphs(const builder *b)
{
    return b->model->graphs.count > 1;
}

/* Stable counting sort by `first`. Without subgraphs rows come in that order. */
static onv_status sort_rows(builder *b)
{
    onv_live *live = b->live;
    live->timeline.buffers.at = b->rows;
    live->timeline.buffers.count = b->n_rows;
    if (!has_subgraphs(b)) return ONV_OK;
    uint32_t *start =
        ONV_ARENA_ARRAY(&b->scratch, uint32_t, (size_t)live->timeline.steps.count + 2);
    uint32_t *place = ONV_ARENA_ARRAY(&b->scratch, uint32_t, b->n_rows);
    onv_buffer *sorted = ONV_ARENA_ARRAY(b->arena, onv_buffer, b->n_rows);
    if (start == NULL || place == NULL || sorted == NULL) return onv_fail_memory(b->err);
    for (uint32_t i = 0; i < b->n_rows; i++) start[b->rows[i].first + 1]++;
    for (uint32_t s = 0; s < live->timeline.steps.count; s++) start[s + 1] += start[s];
    for (uint32_t i = 0; i < b->n_rows; i++) place[i] = start[b->rows[i].first]++;
    for (uint32_t i = 0; i < b->n_rows; i++) {
        onv_buffer *row = &sorted[place[i]];
        *row = b->rows[i];
        if (row->becomes != ONV_NO_BUFFER) row->becomes = place[row->becomes];
        while (row->within != ONV_NO_BUFFER && b->rows[row->within].within != ONV_NO_BUFFER)
            row->within = b->rows[row->within].within; /* an outer body may run once, too */
        if (row->within != ONV_NO_BUFFER) row->within = place[row->within];
        live->of_value[row->value.index] = place[i];
    }
    live->timeline.buffers.at = sorted;
    return ONV_OK;
}

/* --- The peak ---------------------------------------------------------------------------------- */

static onv_status find_peak(builder *b)
{
    onv_live *live = b->live;
    onv_peak peak;
    live->live_bytes = ONV_ARENA_ARRAY(b->arena, uint64_t, live->timeline.steps.count);
    if (live->live_bytes == NULL) return onv_fail_memory(b->err);
    ONV_TRY(onv_timeline_peak(&live->timeline, &peak, live->live_bytes, b->err));
    live->peak_bytes = peak.bytes;
    live->peak_step = peak.step;
    for (uint32_t i = 0; i < live->timeline.buffers.count; i++) {
        live->unknown += !live->timeline.buffers.at[i].sized;
        live->bounded += live->timeline.buffers.at[i].sized && live->timeline.buffers.at[i].bound;
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
    for (uint32_t i = 0; i < live->timeline.buffers.count; i++)
        n += onv_buffer_is_live(&live->timeline.buffers.at[i], live->peak_step);
    ranked *set = ONV_ARENA_ARRAY(&b->scratch, ranked, n);
    live->peak_set = ONV_ARENA_ARRAY(b->arena, uint32_t, n);
    if (set == NULL || live->peak_set == NULL) return onv_fail_memory(b->err);
    for (uint32_t i = 0; i < live->timeline.buffers.count; i++) {
        const onv_buffer *row = &live->timeline.buffers.at[i];
        if (onv_buffer_is_live(row, live->peak_step))
            set[live->n_peak_set++] = (ranked){row->bytes, i};
    }
    qsort(set, n, sizeof *set, compare_ranked);
    for (uint32_t i = 0; i < n; i++) live->peak_set[i] = set[i].row;
    return ONV_OK;
}

/* --- Sums --------------------------------------------------------------------------------------- */

/* The mean and variance of a BatchNormalization are buffers, which no optimizer trains. */
static onv_status mark_statistics(onv_model *model, const onv_live *live, bool **result,
                                  onv_error *err)
{
    bool *is_statistic = ONV_ARENA_ARRAY(&model->arena, bool, model->values.count);
    if (is_statistic == NULL) return onv_fail_memory(err);
    for (uint32_t s = 0; s < live->timeline.steps.count; s++) {
        const onv_node *node = onv_model_node(model, live->timeline.steps.at[s].node);
        if (node->code != ONV_OP_BatchNormalization) continue;
        for (uint32_t k = 3; k < 5 && k < node->n_inputs; k++)
            if (onv_is_value(node->inputs[k])) is_statistic[node->inputs[k].index] = true;
    }
    *result = is_statistic;
    return ONV_OK;
}

static onv_status fail_at(const onv_node *node, const char *what, onv_error *err)
{
    onv_status status = onv_fail(err, ONV_ERR_OVERFLOW,
                                 "the %s of all nodes up to this one do not fit 64 bits", what);
    onv_error_at(err, node->name, node->op_type);
    return status;
}

static onv_status sum_weights(onv_model *model, onv_live *live, onv_error *err)
{
    bool *is_statistic;
    ONV_TRY(mark_statistics(model, live, &is_statistic, err));
    for (size_t i = 0; i < model->values.count; i++) {
        const onv_value *value = &model->values.at[i];
        if (!onv_value_is_held(value)) continue;
        const onv_tensor *tensor = value->tensor;
        if (!onv_u64_add(live->weight_bytes, tensor->bytes, &live->weight_bytes) ||
            !onv_u64_add(live->weight_elems, tensor->elems, &live->weight_elems))
            return onv_fail(err, ONV_ERR_OVERFLOW,
                            "the bytes of all weights up to '%s' do not fit 64 bits", value->name);
        if (onv_dtype_is_float((onv_dtype)tensor->type.dtype) && !is_statistic[i])
            live->trainable_elems += tensor->elems; /* a part of what was just checked */
    }
    for (uint32_t s = 0; s < live->timeline.steps.count; s++) { /* trees and support vectors */
        const onv_node *node = onv_model_node(model, live->timeline.steps.at[s].node);
        uint64_t bytes, elems;
        if (!onv_op_attr_weights(node, &bytes, &elems) ||
            !onv_u64_add(live->weight_bytes, bytes, &live->weight_bytes) ||
            !onv_u64_add(live->weight_elems, elems, &live->weight_elems))
            return fail_at(node, "weights", err);
    }
    return ONV_OK;
}

/* What a branch hands out is counted as the output that it becomes. */
static onv_status sum_values(const onv_model *model, onv_live *live, onv_error *err)
{
    for (uint32_t i = 0; i < live->timeline.buffers.count; i++) {
        const onv_buffer *row = &live->timeline.buffers.at[i];
        const onv_value *value = onv_model_value(model, row->value);
        bool top = value->graph.index == 0, is_input = value->kind == ONV_VALUE_INPUT;
        bool fits = true;
        if (is_input && top)
            fits = onv_u64_add(live->input_bytes, row->bytes, &live->input_bytes);
        else if (!is_input && row->becomes == ONV_NO_BUFFER)
            fits = onv_u64_add(live->activation_bytes, row->bytes, &live->activation_bytes);
        if (top && value->is_output)
            fits &= onv_u64_add(live->output_bytes, row->bytes, &live->output_bytes);
        if (!fits)
            return onv_fail(err, ONV_ERR_OVERFLOW,
                            "the bytes of all values up to '%s' do not fit 64 bits", value->name);
    }
    return ONV_OK;
}

static bool add_operations(onv_model *model, onv_dim operations, uint64_t *sum, bool *known)
{
    onv_dim all = onv_dim_substitute_bounds(&model->dims, operations);
    if (onv_dim_is_const(all) && all.raw >= 0) return onv_u64_add(*sum, (uint64_t)all.raw, sum);
    if (known != NULL) *known = false;
    return true;
}

/* Sums that no step decides: weights, operations, inputs and outputs. */
static onv_status sum_all(onv_model *model, onv_live *live, onv_error *err)
{
    ONV_TRY(sum_weights(model, live, err));
    ONV_TRY(sum_values(model, live, err));
    live->macs_known = true;
    for (uint32_t s = 0; s < live->timeline.steps.count; s++) {
        const onv_node *node = onv_model_node(model, live->timeline.steps.at[s].node);
        onv_dim element_ops = onv_graph_all_runs(model, node, node->element_ops);
        if (!add_operations(model, onv_live_macs(model, live, s), &live->macs, &live->macs_known) ||
            !add_operations(model, element_ops, &live->element_ops, NULL))
            return fail_at(node, "operations", err);
    }
    return ONV_OK;
}

/* --- All together ------------------------------------------------------------------------------ */

static onv_status compute(builder *b, const onv_node_id *order)
{
    onv_model *model = b->model;
    size_t most = 0;
    for (size_t i = 0; i < model->values.count; i++)
        most += !onv_value_is_weight(&model->values.at[i]);
    b->live->of_value = ONV_ARENA_ARRAY(b->arena, uint32_t, model->values.count);
    b->rows = ONV_ARENA_ARRAY(has_subgraphs(b) ? &b->scratch : b->arena, onv_buffer, most);
    if (b->live->of_value == NULL || b->rows == NULL) return onv_fail_memory(b->err);
    memset(b->live->of_value, 0xff, model->values.count * sizeof *b->live->of_value);
    ONV_TRY(onv_graph_list_steps(model, order, b->arena, &b->scratch, b->live, &b->steps, b->err));
    ONV_TRY(add_rows(b));
    add_uses(b);
    share(b);
    ONV_WORK(b->live->timeline.steps.count + b->live->timeline.buffers.count);
    share_inputs(b);
    ONV_TRY(sort_rows(b));
#ifndef NDEBUG
    ONV_TRY(onv_timeline_check(&b->live->timeline, b->err));
#endif
    onv_arena_reset(&b->scratch); /* places of steps are not looked for any more */
    ONV_TRY(find_peak(b));
    ONV_TRY(find_peak_set(b));
    return sum_all(model, b->live, b->err);
}

onv_status onv_live_compute_in(onv_arena *arena, onv_model *model, const onv_node_id *order,
                               onv_live *live, onv_error *err)
{
    *live = (onv_live){0};
    builder b = {.model = model, .arena = arena, .live = live, .err = err};
    onv_arena_init(&b.scratch, model->arena.limit_bytes);
    onv_status status = compute(&b, order);
    onv_arena_cleanup(&b.scratch);
    return status;
}

onv_status onv_live_compute(onv_model *model, const onv_node_id *order, onv_live *live,
                            onv_error *err)
{
    return onv_live_compute_in(&model->arena, model, order, live, err);
}
