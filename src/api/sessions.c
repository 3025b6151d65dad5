#include "api/sessions.h"

#include <string.h>

#include "api/requests_csv.h"
#include "base/heap.h"

enum { MOST_SHAPES = 1024 };

static onv_runtime_options options_of(onv_analysis *analysis, const onv_ort_settings *settings)
{
    return (onv_runtime_options){
        .ort = settings, .rewritten = &analysis->rewritten, .lower.cuda = analysis->cuda};
}

static bool is_there(const onv_analysis *analysis)
{
    return analysis->live.unknown == 0 && analysis->rewritten.model.nodes.count > 0;
}

onv_status onv_session_execute(onv_analysis *analysis, const onv_ort_settings *settings,
                               onv_runtime_result *result, onv_execution *made, onv_error *err)
{
    onv_runtime_options how = options_of(analysis, settings);
    return onv_runtime_execute(onv_runtime_find("ort"), &analysis->rewritten.model,
                               &analysis->rewritten_live, &how, result, made, err);
}

/* --- Requests ---------------------------------------------------------------------------------- */

typedef struct tracing {
    const onv_request *from;
    onv_options options;
    onv_analysis *analysis; /* where the results go */
    onv_request_table table;
    onv_ort_shape *shapes;
    uint32_t *sequence, *first_of; /* by request: its shape; by shape: its first request */
    uint32_t n_shapes;
    onv_timeline weights; /* of the first shape */
    uint32_t n_weights;
} tracing;

static const int64_t *sizes_of(const tracing *t, uint32_t request)
{
    return t->table.sizes + (size_t)request * t->table.n_names;
}

static onv_status find_shapes(tracing *t, onv_error *err)
{
    for (uint32_t i = 0; i < t->table.n_requests; i++) {
        uint32_t shape = 0;
        while (shape < t->n_shapes && memcmp(sizes_of(t, t->first_of[shape]), sizes_of(t, i),
                                             t->table.n_names * sizeof(int64_t)) != 0)
            shape++;
        if (shape == MOST_SHAPES)
            return onv_fail(err, ONV_ERR_LIMIT, "more than %d different requests", MOST_SHAPES);
        t->sequence[i] = shape;
        if (shape == t->n_shapes) t->first_of[t->n_shapes++] = i;
    }
    return ONV_OK;
}

static uint32_t count_weights(const onv_timeline *t)
{
    uint32_t n = 0;
    while (n < t->buffers.count && t->buffers.at[n].kind == ONV_BUFFER_WEIGHT) n++;
    return n;
}

static onv_status take_runs(tracing *t, uint32_t shape, onv_execution *made, onv_error *err)
{
    uint32_t n_weights = count_weights(&made->timeline);
    onv_ort_shape *to = &t->shapes[shape];
    ONV_TRY(onv_ort_list_requests(&made->timeline, n_weights, 0, &to->first, err));
    ONV_TRY(onv_ort_list_requests(&made->timeline, n_weights, 1, &to->later, err));
    if (shape > 0) return ONV_OK;
    t->n_weights = n_weights;
    t->weights = made->timeline;
    made->timeline = (onv_timeline){0};
    return ONV_OK;
}

static onv_status run_shape(tracing *t, uint32_t shape, onv_error *err)
{
    const onv_options *given = &t->options;
    uint32_t n_names = t->table.n_names;
    onv_dim_binding *dims = onv_heap_calloc(given->n_dims + n_names, sizeof *dims);
    if (dims == NULL) return onv_fail_memory(err);
    size_t n = 0;
    for (uint32_t i = 0; i < n_names; i++)
        dims[n++] = (onv_dim_binding){t->table.names[i], sizes_of(t, t->first_of[shape])[i]};
    for (size_t k = 0; k < given->n_dims; k++) {
        bool is_replaced = false;
        for (uint32_t i = 0; i < n_names; i++)
            is_replaced |= strcmp(given->dims[k].name, t->table.names[i]) == 0;
        if (!is_replaced) dims[n++] = given->dims[k];
    }
    onv_options options = *given;
    options.dims = dims;
    options.n_dims = n;
    onv_analysis *analysis = NULL;
    onv_execution made = {0};
    onv_runtime_result result;
    onv_status status = onv_analysis_create(t->from, &options, &analysis, err);
    if (status == ONV_OK && !is_there(analysis))
        status = onv_fail(err, ONV_ERR_USAGE,
                          "line %u of the requests leaves %llu tensors without a size",
                          t->first_of[shape] + 2, (unsigned long long)analysis->live.unknown);
    if (status == ONV_OK)
        status = onv_session_execute(analysis, &analysis->ort, &result, &made, err);
    if (status == ONV_OK) {
        status = take_runs(t, shape, &made, err);
        onv_execution_cleanup(&made);
    }
    onv_analysis_destroy(analysis);
    onv_heap_free(dims);
    return status;
}

static onv_status run_all(tracing *t, onv_error *err)
{
    onv_shape_requests *to = &t->analysis->requests;
    onv_alloc_options alloc = {0};
    for (uint32_t i = 0; i < t->n_shapes; i++) {
        ONV_TRY(onv_watch_check(t->from->watch, err));
        ONV_TRY(run_shape(t, i, err));
    }
    onv_ort_settings_arena(&t->analysis->ort, &alloc.bfc);
    onv_ort_shape_trace trace = {.shapes = t->shapes,
                                 .sequence = t->sequence,
                                 .n_shapes = t->n_shapes,
                                 .n_requests = t->table.n_requests,
                                 .weights = &t->weights,
                                 .n_weights = t->n_weights};
    ONV_TRY(onv_ort_shape_trace_run(&trace, &alloc, &to->result, err));
    to->names = t->table.names;
    to->sizes = t->table.sizes;
    to->n_names = t->table.n_names;
    to->n_requests = t->table.n_requests;
    to->n_shapes = t->n_shapes;
    return ONV_OK;
}

static onv_status trace_shapes(const onv_request *from, const onv_options *options,
                               onv_analysis *analysis, onv_error *err)
{
    onv_arena *arena = &analysis->model.arena;
    tracing t = {.from = from, .options = *options, .analysis = analysis};
    t.options.runtimes = "ort";
    t.options.train = t.options.checkpoint = t.options.replay = NULL;
    ONV_TRY(onv_requests_csv_read(options->shape_trace, arena, &t.table, err));
    t.shapes = ONV_ARENA_ARRAY(arena, onv_ort_shape, MOST_SHAPES);
    t.sequence = ONV_ARENA_ARRAY(arena, uint32_t, t.table.n_requests);
    t.first_of = ONV_ARENA_ARRAY(arena, uint32_t, MOST_SHAPES);
    analysis->requests.result.requests =
        ONV_ARENA_ARRAY(arena, onv_ort_shape_figures, t.table.n_requests);
    if (arena->failed) return onv_fail_memory(err);
    ONV_TRY(find_shapes(&t, err));
    onv_status status = run_all(&t, err);
    for (uint32_t i = 0; i < t.n_shapes; i++) {
        onv_vec_cleanup(&t.shapes[i].first);
        onv_vec_cleanup(&t.shapes[i].later);
    }
    onv_timeline_cleanup(&t.weights);
    return status;
}

/* --- All of them ------------------------------------------------------------------------------- */

onv_status onv_session_extras(const onv_request *from, const onv_options *options,
                              onv_analysis *analysis, onv_error *err)
{
    bool asks = options->ort_advise || options->ort_partition;
    if (asks && !is_there(analysis))
        return onv_fail(err, ONV_ERR_USAGE,
                        analysis->live.unknown > 0
                            ? "tensors have no size, so a session of ONNX Runtime cannot be sized: "
                              "bind all dimensions"
                            : "the runtime ort is not among those asked for");
    onv_runtime_options how = options_of(analysis, &analysis->ort);
    onv_ort_session session = onv_ort_session_of(&how);
    if (options->ort_partition)
        ONV_TRY(onv_ort_node_stats_compute(&analysis->rewritten.model, &analysis->rewritten_live,
                                           &session, &analysis->node_stats, err));
    if (options->ort_advise)
        ONV_TRY(onv_ort_advise(&analysis->rewritten.model, &analysis->rewritten_live, &how,
                               &analysis->advice, err));
    if (options->shape_trace == NULL) return ONV_OK;
    return trace_shapes(from, options, analysis, err);
}
