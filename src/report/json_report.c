/* The JSON report: one function per part, all of it streamed. */
#include <string.h>

#include "base/fail.h"
#include "ir/notes.h"
#include "report/sections.h"

static void write_dims(onv_json *json, const onv_view *view, onv_value_id id)
{
    const onv_type *type = &onv_model_value(&view->model, id)->type;
    if (!onv_type_has_rank(type)) {
        onv_json_null(json);
        return;
    }
    onv_json_open(json, '[', ONV_JSON_INLINE);
    for (int i = 0; i < type->rank; i++) {
        onv_dim d = onv_view_value_dim(view, id, i);
        if (onv_dim_is_known(d))
            onv_json_dim(json, &view->model.dims, d);
        else
            onv_json_string(json, "?");
    }
    onv_json_close(json);
}

static void write_names(onv_json *json, const onv_view *view, const char *key,
                        const onv_value_id *ids, uint32_t n)
{
    ONV_JSON_LIST(json, key, INLINE)
        for (uint32_t i = 0; i < n; i++)
            onv_json_string(json, onv_is_value(ids[i]) ? onv_model_value(&view->model, ids[i])->name
                                                       : "");
}

/* --- The model --------------------------------------------------------------------------------- */

/* Keys must differ. A dim and an input may share a name: the dim is listed, the input's shape stands
 * at its tensor. */
static void list_first(const onv_infer_info *infer, bool dims, onv_strings *names, bool *is_listed)
{
    for (size_t i = 0; i < infer->bounds.count; i++) {
        size_t before = names->count;
        if ((infer->bounds.at[i].size >= 0) != dims) continue;
        is_listed[i] = onv_intern(names, infer->bounds.at[i].name) != NULL && names->count > before;
    }
}

void onv_json_write_bindings(onv_json *json, const onv_view *view)
{
    const onv_infer_info *infer = &view->infer;
    onv_strings names;
    onv_strings_init(&names, json->scratch);
    bool *is_listed = ONV_ARENA_ARRAY(json->scratch, bool, infer->bounds.count);
    onv_json_put_open(json, "bindings", '{', ONV_JSON_INLINE);
    if (is_listed != NULL) list_first(infer, true, &names, is_listed);
    if (is_listed != NULL) list_first(infer, false, &names, is_listed);
    for (size_t b = 0; b < infer->bounds.count && !json->scratch->failed; b++) {
        const onv_bound *bound = &infer->bounds.at[b];
        if (!is_listed[b]) continue;
        onv_value_id input = onv_view_bound_input(view, bound);
        onv_json_key(json, bound->name);
        if (bound->size >= 0)
            onv_json_i64(json, bound->size);
        else if (onv_is_value(input))
            write_dims(json, view, input); /* a whole shape was given */
        else
            onv_json_null(json);
    }
    onv_json_close(json);
    onv_strings_cleanup(&names);
    onv_end_element(json->scratch);
}

static void write_model(onv_json *json, const onv_view *view)
{
    const onv_model *model = &view->model;
    const onv_live *live = &view->live;
    onv_json_put_string(json, "path", model->path != NULL ? model->path : "");
    onv_json_key(json, "ir_version");
    onv_json_i64(json, model->ir_version);
    onv_json_put_string(json, "producer", model->producer);
    onv_json_put_open(json, "opset_import", '{', ONV_JSON_INLINE);
    for (size_t i = 0; i < model->opsets.count; i++) {
        onv_json_key(json, model->opsets.at[i].domain);
        onv_json_i64(json, model->opsets.at[i].version);
    }
    onv_json_close(json);
    onv_json_write_bindings(json, view);
    if (view->in_force != NULL) {
        onv_json_key(json, "options");
        onv_json_value(json, view->in_force);
    }
    ONV_JSON_PART(json, "parameters", INLINE) {
        onv_json_put_u64(json, "count", live->weight_elems);
        onv_json_put_u64(json, "bytes", live->weight_bytes);
    }
    onv_json_put_known(json, "macs", live->macs_known, live->macs);
}

/* --- Tensors and nodes ------------------------------------------------------------------------- */

static void write_tensor(onv_json *json, const onv_view *view, onv_value_id id)
{
    const onv_value *value = onv_model_value(&view->model, id);
    const onv_buffer *interval = onv_view_interval(view, id);
    uint64_t bytes = 0;
    bool sized = onv_view_bytes(view, id, &bytes), live = interval != NULL;
    onv_json_put_string(json, "name", value->name);
    onv_json_put_string(json, "kind", onv_view_kind_name(view, id));
    onv_json_put_string(json, "dtype", onv_view_dtype(json->scratch, &value->type));
    if (value->is_packed && onv_value_is_weight(value))
        onv_json_put_string(json, "format", view->model.weight_format->name);
    onv_json_key(json, "shape");
    write_dims(json, view, id);
    onv_json_put_known(json, "bytes", sized, bytes);
    if (onv_view_is_bound(view, id)) onv_json_put_bool(json, "bound", true);
    /* Weights have no lifetime. */
    onv_json_put_known(json, "first_step", live, live ? interval->first : 0);
    onv_json_put_known(json, "last_step", live, live ? interval->last : 0);
    bool alias = live && interval->becomes != ONV_NO_BUFFER;
    onv_json_put_string(json, "alias_of",
                        alias ? view->live.timeline.buffers.at[interval->becomes].label : NULL);
    onv_end_element(json->scratch);
}

static void write_tensors(onv_json *json, const onv_view *view)
{
    ONV_JSON_LIST(json, "tensors", LINES)
        for (uint32_t i = 0; i < view->model.values.count && !json->out->failed; i++)
            if (onv_view_is_there(view, (onv_value_id){i}))
                ONV_JSON_ROW(json, INLINE) write_tensor(json, view, (onv_value_id){i});
}

/* By step: how many values of unknown size are live. NULL without memory. */
static uint32_t *count_unsized(const onv_view *view, onv_arena *arena)
{
    const onv_timeline *t = &view->live.timeline;
    uint32_t *counts = ONV_ARENA_ARRAY(arena, uint32_t, t->steps.count + 1);
    if (counts == NULL) return NULL;
    for (uint32_t i = 0; i < t->buffers.count; i++) {
        if (t->buffers.at[i].sized) continue;
        counts[t->buffers.at[i].first]++;
        counts[t->buffers.at[i].last + 1]--; /* wraps back in the sums */
    }
    for (uint32_t s = 1; s < t->steps.count; s++) counts[s] += counts[s - 1];
    return counts;
}

static void write_nodes(onv_json *json, const onv_view *view)
{
    const onv_live *live = &view->live;
    const onv_model *model = &view->model;
    onv_arena arena;
    onv_arena_init(&arena, SIZE_MAX);
    const uint32_t *unsized = NULL;
    if (live->unknown > 0) {
        unsized = count_unsized(view, &arena);
        json->scratch->failed |= arena.failed;
    }
    ONV_JSON_ROWS(json, "nodes", s, live->timeline.steps.count, INLINE) {
        const onv_node *node = onv_model_node(model, live->timeline.steps.at[s].node);
        onv_json_put_u64(json, "step", s);
        onv_json_put_string(json, "name", node->name != NULL ? node->name : "");
        ONV_JSON_FIELDS(json, node, op_type, domain);
        if (onv_noted(node)->line != NULL) onv_json_put_string(json, "line", onv_noted(node)->line);
        write_names(json, view, "inputs", node->inputs, node->n_inputs);
        write_names(json, view, "outputs", node->outputs, node->n_outputs);
        onv_json_key(json, "macs");
        onv_json_dim(json, &model->dims, onv_view_dim(view, onv_live_macs(model, live, s)));
        onv_json_put_known(json, "live_bytes", unsized == NULL || unsized[s] == 0,
                           live->live_bytes[s]);
        onv_end_element(json->scratch);
    }
    onv_arena_cleanup(&arena);
}

static const char *region_kind(const onv_region *region)
{
    static const char *const kinds[] = {[ONV_REGION_SEQUENCE] = "branch",
                                        [ONV_REGION_ALTERNATIVES] = "alternatives",
                                        [ONV_REGION_LOOP] = "loop"};
    return kinds[region->kind];
}

/* The name of the node that a region is of; where it has none, the path prefix that the values inside carry. NULL
 * without memory. */
static const char *region_owner(const onv_view *view, const onv_region *region, onv_arena *arena)
{
    const onv_node *node = onv_model_node(&view->model, region->node);
    const char *path = node->name;
    for (uint32_t i = 0; path[0] == '\0' && i < node->n_attrs; i++)
        if (node->attrs[i].kind == ONV_ATTR_GRAPH)
            path = onv_model_graph(&view->model, node->attrs[i].graph)->name;
    const char *end = path != node->name ? strrchr(path, '/') : NULL;
    return end != NULL ? onv_arena_strndup(arena, path, (size_t)(end - path)) : node->name;
}

/* How often a loop runs. */
static onv_dim region_trips(const onv_view *view, const onv_region *region)
{
    const onv_node *node = onv_model_node(&view->model, region->node);
    const onv_attr *body = onv_node_attr(node, region->label);
    /* A node of an unknown operator may have several bodies in one attribute: those say nothing. */
    if (body == NULL || body->kind != ONV_ATTR_GRAPH) return ONV_DIM_UNKNOWN;
    return onv_view_dim(view, onv_model_graph(&view->model, body->graph)->trips);
}

/* Branches and bodies; steps are those of `nodes`. Without control flow the part is absent. */
static void write_regions(onv_json *json, const onv_view *view)
{
    const onv_timeline *t = &view->live.timeline;
    if (t->regions.count == 0) return;
    ONV_JSON_ROWS(json, "regions", i, t->regions.count, INLINE) {
        const onv_region *r = &t->regions.at[i];
        bool has_steps = r->end > r->first, has_parent = r->parent != ONV_NO_REGION;
        onv_json_put_string(json, "kind", region_kind(r));
        onv_json_put_string(json, "node", region_owner(view, r, json->scratch));
        onv_json_put_string(json, "attribute", r->label);
        onv_json_put_known(json, "first_step", has_steps, r->first);
        onv_json_put_known(json, "last_step", has_steps, has_steps ? r->end - 1 : 0);
        onv_json_put_known(json, "parent", has_parent, has_parent ? r->parent : 0);
        if (r->kind == ONV_REGION_LOOP) {
            onv_json_key(json, "trips");
            onv_json_dim(json, &view->model.dims, region_trips(view, r));
        }
        onv_end_element(json->scratch);
    }
}

/* --- Results ----------------------------------------------------------------------------------- */

/* Where a size is unknown there is no peak, only what it is at least: the peak of the others. */
void onv_json_write_peak(onv_json *json, const onv_view *view)
{
    const onv_live *live = &view->live;
    const onv_node *node =
        onv_model_node(&view->model, live->timeline.steps.at[live->peak_step].node);
    onv_json_put_known(json, "bytes", live->unknown == 0, live->peak_bytes);
    if (live->unknown > 0) {
        onv_json_put_u64(json, "at_least_bytes", live->peak_bytes);
        onv_json_put_u64(json, "unknown_tensors", live->unknown);
    }
    bool is_bound = false;
    for (uint32_t i = 0; i < live->n_peak_set; i++)
        is_bound |= live->timeline.buffers.at[live->peak_set[i]].bound;
    if (is_bound) onv_json_put_bool(json, "bound", true);
    onv_json_put_u64(json, "step", live->peak_step);
    onv_json_put_string(json, "node", node->name != NULL ? node->name : "");
    ONV_JSON_LIST(json, "tensors", INLINE)
        for (uint32_t i = 0; i < live->n_peak_set; i++)
            onv_json_string(json, live->timeline.buffers.at[live->peak_set[i]].label);
}

/* A plain limit of an API is passed by one buffer alone. */
static void write_largest_buffer(onv_json *json, const onv_view *view)
{
    const onv_largest *most = &view->largest;
    onv_json_put_string(json, "name", onv_model_value(&view->model, most->by_bytes.value)->name);
    onv_json_put_u64(json, "bytes", most->by_bytes.bytes);
    onv_json_put_u64(json, "elements", most->by_bytes.elems);
    onv_json_put_u64(json, "over_webgpu_binding", most->n_over_binding);
    onv_json_put_u64(json, "over_tensorrt_volume", most->n_over_elems);
}

/* Another order than the file's. */
static void write_order(onv_json *json, const onv_view *view)
{
    const onv_order_result *order = &view->order;
    onv_json_put_string(json, "name", order->name);
    if (order->has_bound) ONV_JSON_FIELDS(json, order, lower_bound_bytes, proven);
}

/* The object of a model. */
static void write_model_object(onv_json *json, const onv_view *view)
{
    ONV_JSON_PART(json, "answer", LINES) onv_json_write_answer(json, view);
    write_model(json, view);
    onv_json_write_open(json, view);
    write_tensors(json, view);
    write_nodes(json, view);
    write_regions(json, view);
    ONV_JSON_PART(json, "peak", INLINE) onv_json_write_peak(json, view);
    if (onv_is_value(view->largest.by_bytes.value))
        ONV_JSON_PART(json, "largest_buffer", INLINE) write_largest_buffer(json, view);
    if (view->quantized.format != NULL)
        ONV_JSON_PART(json, "quantization", LINES) onv_json_write_quantized(json, view);
    if (view->cache.mode != ONV_KV_NOT_ASKED)
        ONV_JSON_PART(json, "kv_cache", LINES) onv_json_write_kv_cache(json, view);
    onv_json_write_savings(json, view);
    if (strcmp(view->order.name, "model") != 0)
        ONV_JSON_PART(json, "order", INLINE) write_order(json, view);
    if (view->best_order.name != NULL) { /* what it would reach, where the file's was taken */
        onv_json_key(json, "best_order");
        ONV_JSON_OBJECT(json, &view->best_order, peak_bytes, lower_bound_bytes, proven);
    }
    onv_json_write_runtimes(json, view);
    onv_json_write_fit(json, view);
    if (view->gate.baseline != NULL)
        ONV_JSON_PART(json, "growth", LINES) onv_json_write_gate(json, view);
    onv_json_write_sessions(json, view);
    if (onv_view_trains(view))
        ONV_JSON_PART(json, "training", LINES) onv_json_write_training(json, view);
    if (view->measured.n_figures > 0)
        ONV_JSON_PART(json, "measured", LINES) onv_json_write_measured(json, view);
    if (view->replays.kind != NULL)
        ONV_JSON_PART(json, "replay", LINES) onv_json_write_replays(json, view);
    onv_json_write_timelines(json, view, view);
    onv_json_write_diagnostics(json, view);
}

static void open_document(onv_json *json)
{
    onv_json_open(json, '{', ONV_JSON_LINES);
    onv_json_put_u64(json, "schema_version", 1);
    onv_json_put_string(json, "generator", "onnxvram " ONV_VERSION);
    onv_json_put_open(json, "models", '[', ONV_JSON_LINES);
}

/* The page shows how to ask on. */
static void write_command(const onv_report_options *options, onv_json *json)
{
    if (options->n_command > 0 && json->is_embedded)
        onv_json_put_texts(json, "command", options->command, options->n_command);
}

/* By onv_status. */
static const char *const codes[] = {"",      "memory",   "io",    "format", "model",
                                    "limit", "overflow", "usage", "device", "cancelled"};
enum { N_CODES = sizeof codes / sizeof codes[0] };

static void write_errors(const onv_failed_files *failed, onv_json *json)
{
    if (failed->count == 0) return;
    ONV_JSON_ROWS(json, "errors", i, failed->count, INLINE) {
        const onv_failed_file *f = &failed->at[i];
        onv_json_put_string(json, "file", f->file);
        onv_json_put_string(json, "code", (size_t)f->why.code < N_CODES ? codes[f->why.code] : "");
        if (f->why.node[0] != '\0') onv_json_put_string(json, "node", f->why.node);
        if (f->why.op_type[0] != '\0') onv_json_put_string(json, "op_type", f->why.op_type);
        onv_json_put_string(json, "message", f->why.message);
    }
}

static void close_document(const onv_report_job *job, onv_json *json)
{
    onv_json_close(json);
    if (job->options.failed != NULL) write_errors(job->options.failed, json);
    write_command(&job->options, json);
    if (job->options.together != NULL)
        ONV_JSON_PART(json, "together", LINES) onv_json_write_together(job, json);
    onv_json_close(json);
}

void onv_json_write_document(const onv_report_job *job, onv_json *json)
{
    open_document(json);
    for (size_t i = 0; i < job->count; i++)
        ONV_JSON_ROW(json, LINES) write_model_object(json, job->views[i]);
    close_document(job, json);
}

onv_status onv_format_json_begin(onv_report_job *job)
{
    open_document(&job->json);
    return ONV_OK;
}

onv_status onv_format_json_add(onv_report_job *job)
{
    onv_write_between(job, ",");
    onv_json_separate(&job->json, false);
    ONV_JSON_ROW(&job->json, LINES) write_model_object(&job->json, job->views[0]);
    return ONV_OK;
}

onv_status onv_format_json_end(onv_report_job *job)
{
    onv_json_separate(&job->json, job->written > 0);
    close_document(job, &job->json);
    return ONV_OK;
}
