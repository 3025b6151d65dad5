/* What control flow allocates in ONNX Runtime (onnxruntime/core/providers/cpu/controlflow; measured on
 * the CPU, version 1.31).
 *
 *   If    Its outputs are handed to the branch, which writes into them: from the branch's first step
 *         on where the shape is known, else from the step that makes them.
 *   Loop  The caller's value is the state of the first iteration. An iteration gets the states of the
 *         one before, which are kept till its end, and so are the last two till the Loop's. Then the
 *         last states are copied to the outputs, and slices, kept one by one, are concatenated. An
 *         Identity in a body that hands on what was there before the body began does not copy.
 *   Scan  Along the first axis slices of inputs are views, outputs are written into slices of the finished tensors. States
 *         alternate between two temporaries; the first is the caller's, the last is the output. Along other axes
 *         inputs and outputs are transposed into copies.
 */
#include <string.h>

#include "base/checked.h"
#include "graph/steps.h"
#include "ort/planner.h"

static bool is_if(const onv_node *node)
{
    return node->code == ONV_OP_If && node->domain[0] == '\0';
}

static bool is_loop(const onv_node *node)
{
    return node->code == ONV_OP_Loop && node->domain[0] == '\0';
}

static const onv_buffer *row_of(const onv_ort_planner *p, onv_value_id id)
{
    if (!onv_is_value(id) || p->live->of_value[id.index] == UINT32_MAX) return NULL;
    return &p->live->timeline.buffers.at[p->live->of_value[id.index]];
}

/* Of a graph: which step its owner runs at. */
static uint32_t owner_step(const onv_ort_planner *p, const onv_graph *graph)
{
    return p->step_of[graph->owner.index];
}

/* Runs that are fed anything but tensors trace no pattern (onnxruntime/core/framework/execution_frame.cc). What a graph reads of
 * those around it is fed to it, and to those between. */
static void note_feed(onv_ort_planner *p, onv_value_id id, onv_graph_id to)
{
    const onv_value *value = onv_is_value(id) ? onv_model_value(p->model, id) : NULL;
    if (value == NULL || value->type.kind == ONV_TYPE_TENSOR) return;
    for (; to.index != value->graph.index;
         to = onv_model_node(p->model, onv_model_graph(p->model, to)->owner)->graph)
        p->plan->graphs[to.index].has_no_pattern = true;
}

void onv_ort_list_graphs(onv_ort_planner *p)
{
    const onv_model *model = p->model;
    for (uint32_t s = 0; s < p->live->timeline.steps.count; s++)
        p->step_of[p->live->timeline.steps.at[s].node.index] = s;
    p->plan->graphs[0] =
        (onv_ort_graph){.end = p->live->timeline.steps.count, .region = ONV_NO_REGION, .stream = 1};
    for (size_t i = 0; i < p->live->timeline.regions.count; i++) {
        const onv_region *r = &p->live->timeline.regions.at[i];
        if (r->kind == ONV_REGION_ALTERNATIVES) continue;
        const onv_node *owner = onv_model_node(model, r->node);
        onv_graph_id id = onv_graph_body(model, owner, r->label);
        if (id.index == ONV_NO_GRAPH.index) continue;
        const onv_ort_graph *around = &p->plan->graphs[owner->graph.index];
        uint8_t stream = around->stream < UINT8_MAX ? around->stream + 1 : around->stream;
        p->plan->graphs[id.index] = (onv_ort_graph){.first = r->first,
                                                    .end = r->end,
                                                    .region = (uint32_t)i,
                                                    .is_body = r->kind == ONV_REGION_LOOP,
                                                    .stream = stream};
    }
    for (size_t g = 0; g < model->graphs.count; g++) {
        const onv_graph *graph = &model->graphs.at[g];
        for (uint32_t i = graph->n_outputs; i-- > 0;) p->result_of[graph->outputs[i].index] = i;
        for (uint32_t i = 0; i < graph->n_inputs; i++)
            p->plan->graphs[g].has_no_pattern |=
                onv_model_value(model, graph->inputs[i])->type.kind != ONV_TYPE_TENSOR;
    }
    for (size_t i = 0; model->graphs.count > 1 && i < model->nodes.count; i++)
        for (uint32_t k = 0; k < model->nodes.at[i].n_inputs; k++)
            note_feed(p, model->nodes.at[i].inputs[k], model->nodes.at[i].graph);
}

/* --- What a body hands on as it is ------------------------------------------------------------- */

/* The value that was there before the body began and is handed out; ONV_NO_VALUE: a new one is. The
 * number of the iteration is written over, so it is copied. */
static onv_value_id passed(const onv_ort_planner *p, onv_graph_id id, onv_value_id result)
{
    const onv_graph *body = onv_model_graph(p->model, id);
    const onv_value *value = onv_model_value(p->model, result);
    if (!onv_is_node(value->producer) || value->graph.index != id.index) return result;
    const onv_node *node = onv_model_node(p->model, value->producer);
    if (node->code != ONV_OP_Identity || node->domain[0] != '\0' || node->n_inputs == 0 ||
        !onv_is_value(node->inputs[0]))
        return ONV_NO_VALUE;
    const onv_value *in = onv_model_value(p->model, node->inputs[0]);
    bool is_counter = body->n_inputs > 0 && body->inputs[0].index == node->inputs[0].index;
    bool is_made_here =
        in->graph.index == id.index && (onv_is_node(in->producer) || onv_value_is_weight(in));
    return is_counter || is_made_here ? ONV_NO_VALUE : node->inputs[0];
}

static void share(onv_ort_planner *p, const onv_buffer *row, onv_value_id with)
{
    if (!onv_is_value(with)) return;
    uint32_t b = p->plan->of_value[with.index];
    if (b != NONE) onv_ort_take(p, row, b);
}

static void keep(onv_ort_planner *p, const onv_buffer *row, uint64_t bytes, onv_graph_id graph,
                 onv_ort_life life, uint32_t first, uint32_t last)
{
    onv_buffer kept = *row;
    kept.bytes = bytes;
    kept.first = first;
    kept.last = last;
    kept.kind = ONV_BUFFER_ACTIVATION;
    onv_ort_add_buffer(p, &kept, graph, life);
}

/* The tensor that a Loop's body adds in each iteration to a sequence, its k-th state; NULL: none. */
static const onv_buffer *added_element(const onv_ort_planner *p, const onv_loop_form *form,
                                       uint32_t k)
{
    const onv_graph *body = onv_model_graph(p->model, form->body);
    const onv_ort_graph *runs = &p->plan->graphs[form->body.index];
    if (k >= form->n_states || k + form->body_out >= body->n_outputs || runs->first == runs->end ||
        p->live->timeline.regions.at[runs->region].trips == 0)
        return NULL;
    const onv_value *value = onv_model_value(p->model, body->outputs[k + form->body_out]);
    if (!onv_is_node(value->producer) || value->graph.index != form->body.index) return NULL;
    const onv_node *node = onv_model_node(p->model, value->producer);
    bool adds =
        node->code == ONV_OP_SequenceInsert && node->domain[0] == '\0' && node->n_inputs > 1;
    return adds && !p->is_host[node->outputs[0].index] ? row_of(p, node->inputs[1]) : NULL;
}

/* --- Results of subgraphs ---------------------------------------------------------------------- */

static void place_in_branch(onv_ort_planner *p, const onv_buffer *row, const onv_graph *graph,
                            onv_graph_id id)
{
    const onv_node *owner = onv_model_node(p->model, graph->owner);
    uint32_t k = p->result_of[row->value.index], target = NONE;
    if (k < owner->n_outputs && onv_is_value(owner->outputs[k])) {
        target = p->plan->of_value[owner->outputs[k].index];
        if (target == NONE) return; /* on the host, or a slice of what a Scan makes */
    }
    if (target != NONE && p->plan->buffers[target].first <= row->last) {
        onv_ort_take(p, row, target); /* the If took over a buffer that is there already */
        return;
    }
    uint32_t b = onv_ort_add_buffer(p, row, id, ONV_ORT_FETCHED);
    p->plan->buffers[b].becomes = target;
    onv_ort_take(p, row, b);
}

/* Whether the value, or the state that it is in the next iteration, is a slice of a result. */
static bool is_kept(const onv_ort_planner *p, const onv_graph *body, const onv_loop_form *form,
                    onv_value_id value)
{
    uint32_t k = p->result_of[value.index] - form->body_out;
    return p->is_stacked[value.index] ||
           (k < form->n_states && p->is_stacked[body->inputs[form->body_in + k].index]);
}

void onv_ort_place_result(onv_ort_planner *p, const onv_buffer *row)
{
    onv_graph_id id = onv_model_value(p->model, row->value)->graph;
    const onv_graph *graph = onv_model_graph(p->model, id);
    const onv_node *owner = onv_model_node(p->model, graph->owner);
    onv_loop_form form;
    if (is_if(owner)) {
        place_in_branch(p, row, graph, id);
        return;
    }
    bool has_form = onv_loop_form_of(p->model, owner, &form);
    if (has_form && !is_loop(owner)) return; /* Scan: in a slice of its output */
    onv_value_id before = has_form ? passed(p, id, row->value) : ONV_NO_VALUE;
    if (onv_is_value(before)) {
        uint32_t b = p->plan->of_value[before.index];
        if (b != NONE && p->plan->life[b] == ONV_ORT_BEFORE) p->plan->life[b] = ONV_ORT_ONCE;
        share(p, row, before);
        return;
    }
    onv_buffer to = *row;
    if (has_form) to.last = owner_step(p, graph);
    onv_ort_life life = ONV_ORT_FETCHED;
    uint32_t k = has_form ? p->result_of[row->value.index] - form.body_out : 0;
    const onv_buffer *element = has_form ? added_element(p, &form, k) : NULL;
    if (has_form) life = is_kept(p, graph, &form, row->value) ? ONV_ORT_STACKED : ONV_ORT_STATE;
    if (element != NULL) {
        const onv_buffer *all = k < owner->n_outputs ? row_of(p, owner->outputs[k]) : NULL;
        to.bytes = element->bytes;
        if (all != NULL && all->last > to.last) to.last = all->last;
        life = ONV_ORT_GATHERED;
    }
    onv_ort_take(p, row, onv_ort_add_buffer(p, &to, id, life));
}

/* --- Entering ---------------------------------------------------------------------------------- */

/* The i-th scanned value has its iterations along another axis than the first: it is copied. */
static bool is_transposed(const onv_node *scan, const char *axes, uint32_t i)
{
    const onv_attr *attr = onv_node_attr(scan, axes);
    return attr != NULL && attr->kind == ONV_ATTR_INTS && i < attr->count && attr->ints[i] != 0;
}

/* When a Scan allocates what its iterations write the k-th output into: before the first of them where the shape is known,
 * else when one makes its slice. */
static uint32_t first_slice(const onv_ort_planner *p, const onv_loop_form *form,
                            const onv_region *r, uint32_t k)
{
    const onv_graph *body = onv_model_graph(p->model, form->body);
    const onv_buffer *made = k < body->n_outputs ? row_of(p, body->outputs[k]) : NULL;
    bool is_late = made != NULL && !onv_ort_is_known(p, made->value) && made->first >= r->first;
    return is_late ? made->first : r->first;
}

/* Outputs of the owner, in the graph that it stands in. */
static void place_owner(onv_ort_planner *p, const onv_node *owner, const onv_region *r)
{
    onv_loop_form form;
    bool is_body = onv_loop_form_of(p->model, owner, &form);
    uint32_t step = p->step_of[r->node.index];
    for (uint32_t k = 0; k < owner->n_outputs; k++) {
        const onv_buffer *at = row_of(p, owner->outputs[k]);
        if (at == NULL) continue;
        onv_buffer row = *at;
        row.first = step;
        if (is_body && is_loop(owner) && added_element(p, &form, k) != NULL) {
            p->is_placed[row.value.index] = true; /* it has the elements of the last iteration */
            continue;
        }
        if (is_body && !is_loop(owner) &&
            (k < form.n_states || !is_transposed(owner, "scan_output_axes", k - form.n_states)))
            row.first = first_slice(p, &form, r, k);
        onv_ort_place_output(p, owner, &row);
    }
}

static void enter_branch(onv_ort_planner *p, const onv_graph *branch, onv_graph_id id,
                         const onv_region *r)
{
    for (uint32_t i = 0; i < branch->n_outputs; i++) {
        const onv_value *value = onv_model_value(p->model, branch->outputs[i]);
        const onv_buffer *at = row_of(p, branch->outputs[i]);
        if (at == NULL || !onv_is_node(value->producer) || value->graph.index != id.index ||
            !onv_ort_is_known(p, branch->outputs[i]))
            continue;
        onv_buffer row = *at;
        row.first = r->first;
        onv_ort_place_output(p, onv_model_node(p->model, value->producer), &row);
    }
}

/* All slices but the last one, which has a buffer of its own, of a result that a Loop stacks. */
static void keep_slices(onv_ort_planner *p, onv_graph_id id, const onv_region *r,
                        onv_value_id result, onv_value_id stacked)
{
    const onv_buffer *slice = row_of(p, result), *whole = row_of(p, stacked);
    if (slice == NULL || p->is_host[result.index] || p->is_stacked[result.index]) return;
    p->is_stacked[result.index] = true;
    onv_value_id before = passed(p, id, result);
    uint64_t others = 1, bytes = 0; /* slices that are counted elsewhere */
    if (onv_is_value(before)) {
        const onv_buffer *from = row_of(p, before);
        uint32_t b = p->plan->of_value[before.index];
        bool is_own = from != NULL && b != NONE && p->plan->graph_of[b].index == id.index;
        if (!is_own) return; /* every slice is what was there before the Loop */
        p->is_stacked[before.index] = true;
    }
    if (r->trips > 1 && (onv_is_value(before) || p->is_state[result.index])) others = 2;
    if (r->trips > others) {
        if (!onv_u64_mul(slice->bytes, r->trips - others, &bytes)) bytes = UINT64_MAX;
    } else if (r->trips == 0 && whole != NULL && whole->bytes > slice->bytes) {
        bytes = whole->bytes - slice->bytes;
    }
    if (bytes > 0) keep(p, slice, bytes, id, ONV_ORT_SLICES, r->first, p->step_of[r->node.index]);
}

static void enter_loop(onv_ort_planner *p, const onv_node *owner, const onv_loop_form *form,
                       const onv_region *r)
{
    const onv_graph *body = onv_model_graph(p->model, form->body);
    uint32_t step = p->step_of[r->node.index];
    for (uint32_t i = 0; i < body->n_inputs; i++) {
        const onv_buffer *row = row_of(p, body->inputs[i]);
        if (row == NULL || p->is_host[body->inputs[i].index]) continue;
        /* What no node reads is not copied to the device. */
        if (p->provider == ONV_ORT_CUDA && p->uses[body->inputs[i].index] == 0) continue;
        uint32_t from = i < form->body_in ? UINT32_MAX : form->node_in + i - form->body_in;
        uint32_t out = from == UINT32_MAX ? UINT32_MAX : form->body_out + i - form->body_in;
        onv_value_id next = out < body->n_outputs ? body->outputs[out] : ONV_NO_VALUE;
        if (onv_is_value(next)) p->is_state[next.index] = true;
        if (onv_is_value(next) && added_element(p, form, i - form->body_in) != NULL) continue;
        bool is_callers = from < owner->n_inputs && onv_is_value(next) &&
                          (r->trips == 1 || onv_is_value(passed(p, form->body, next)));
        if (is_callers) {
            share(p, row, owner->inputs[from]);
            continue;
        }
        onv_buffer before = *row;
        before.last = step;
        onv_ort_life life = onv_is_value(next) ? ONV_ORT_BEFORE : ONV_ORT_ONCE;
        onv_ort_take(p, row, onv_ort_add_buffer(p, &before, form->body, life));
    }
    for (uint32_t k = form->n_states; k + form->body_out < body->n_outputs; k++)
        keep_slices(p, form->body, r, body->outputs[k + form->body_out],
                    k < owner->n_outputs ? owner->outputs[k] : ONV_NO_VALUE);
}

static void enter_scan(onv_ort_planner *p, const onv_node *owner, const onv_loop_form *form,
                       const onv_region *r)
{
    const onv_graph *body = onv_model_graph(p->model, form->body);
    uint32_t step = p->step_of[r->node.index];
    for (uint32_t i = 0; i < body->n_inputs; i++) {
        const onv_buffer *row = row_of(p, body->inputs[i]);
        if (row == NULL || p->is_host[body->inputs[i].index]) continue;
        if (i >= form->n_states) {
            if (form->node_in + i >= owner->n_inputs) continue;
            onv_value_id whole = owner->inputs[form->node_in + i];
            const onv_buffer *from = row_of(p, whole);
            if (from != NULL && is_transposed(owner, "scan_input_axes", i - form->n_states))
                keep(p, from, from->bytes, owner->graph, ONV_ORT_FETCHED, r->first, step);
            share(p, row, whole);
            continue;
        }
        for (uint64_t n = 1; n <= 2; n++)
            if (r->trips == 0 || r->trips > n)
                keep(p, row, row->bytes, form->body, ONV_ORT_ONCE, r->first, step);
    }
    for (uint32_t k = form->n_states; k < owner->n_outputs; k++) {
        const onv_buffer *whole = row_of(p, owner->outputs[k]);
        if (whole != NULL && is_transposed(owner, "scan_output_axes", k - form->n_states))
            keep(p, whole, whole->bytes, owner->graph, ONV_ORT_FETCHED, first_slice(p, form, r, k),
                 step);
    }
}

void onv_ort_enter(onv_ort_planner *p, const onv_region *region)
{
    const onv_node *owner = onv_model_node(p->model, region->node);
    if (!p->is_entered[region->node.index]) place_owner(p, owner, region);
    p->is_entered[region->node.index] = true;
    if (region->kind == ONV_REGION_ALTERNATIVES || region->first == region->end) return;
    onv_loop_form form;
    onv_graph_id id = onv_graph_body(p->model, owner, region->label);
    if (id.index == ONV_NO_GRAPH.index) return;
    if (is_if(owner))
        enter_branch(p, onv_model_graph(p->model, id), id, region);
    else if (onv_loop_form_of(p->model, owner, &form) && is_loop(owner))
        enter_loop(p, owner, &form, region);
    else if (onv_loop_form_of(p->model, owner, &form))
        enter_scan(p, owner, &form, region);
}

void onv_ort_before_step(onv_ort_planner *p, const onv_node *node, uint32_t step)
{
    onv_loop_form form;
    if (!is_loop(node) || p->provider == ONV_ORT_CUDA || onv_loop_form_of(p->model, node, &form))
        return;
    onv_buffer number = onv_buffer_new(ONV_BUFFER_ACTIVATION, 8, step, step, "iteration");
    onv_buffer condition = onv_buffer_new(ONV_BUFFER_ACTIVATION, 1, step, step, "condition");
    onv_ort_add_buffer(p, &number, node->graph, ONV_ORT_FETCHED);
    onv_ort_add_buffer(p, &condition, node->graph, ONV_ORT_FETCHED);
}
