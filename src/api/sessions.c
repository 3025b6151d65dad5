/* What is asked of ONNX Runtime's sessions beside what one of them holds. */
#include "api/analysis.h"

#include <string.h>

#include "api/requests_csv.h"
#include "api/sized.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/heap.h"

enum { MOST_SHAPES = 1024 };

static onv_runtime_options options_of(onv_analysis *analysis, const onv_ort_settings *settings)
{
    return (onv_runtime_options){
        .ort = settings, .rewritten = &analysis->ort_graph.rewritten, .lower.cuda = analysis->cuda};
}

static bool is_there(const onv_analysis *analysis)
{
    return analysis->live.unknown == 0 && analysis->ort_graph.rewritten.model.nodes.count > 0;
}

/* The session that is analysed once more, with what it was computed from. The caller cleans up after a
 * success. `how` may have other settings. */
static onv_status execute(onv_analysis *analysis, const onv_ort_settings *settings,
                          onv_runtime_result *result, onv_execution *made, onv_error *err)
{
    onv_runtime_options how = options_of(analysis, settings);
    return onv_runtime_execute(onv_runtime_find("ort"), &analysis->ort_graph.rewritten.model,
                               &analysis->ort_graph.live, &how, result, made, err);
}

/* --- Requests ---------------------------------------------------------------------------------- */

typedef struct tracing {
    const onv_request *from;
    onv_options options;
    onv_analysis *analysis; /* where the results go */
    onv_request_table table;
    onv_ort_shape *shapes;
    uint32_t *sequence, *first_of; /* by request: its shape; by shape: its first request */
    onv_dim_binding *dims;         /* of one shape */
    bool *found;                   /* those of them that the model has */
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
    ONV_TRY(onv_ort_list_requests(&made->timeline, n_weights, to->runs, 2, err));
    if (shape > 0) return ONV_OK;
    t->n_weights = n_weights;
    t->weights = made->timeline;
    made->timeline = (onv_timeline){0};
    return ONV_OK;
}

/* The dims of a shape, then those of the options that it does not replace. */
static size_t list_dims(const tracing *t, uint32_t shape)
{
    const onv_options *given = &t->options;
    uint32_t n_names = t->table.n_names;
    size_t n = 0;
    for (uint32_t i = 0; i < n_names; i++)
        t->dims[n++] = (onv_dim_binding){t->table.names[i], sizes_of(t, t->first_of[shape])[i]};
    for (size_t k = 0; k < given->n_dims; k++) {
        bool is_replaced = false;
        for (uint32_t i = 0; i < n_names; i++)
            is_replaced |= strcmp(given->dims[k].name, t->table.names[i]) == 0;
        if (!is_replaced) t->dims[n++] = given->dims[k];
    }
    return n;
}

/* Of several models some may lack a dim of the options, but none of the requests. */
static onv_status check_names(const tracing *t, onv_error *err)
{
    for (uint32_t i = 0; i < t->table.n_names && t->options.dims_found != NULL; i++)
        if (!t->found[i])
            return onv_fail(err, ONV_ERR_USAGE,
                            "the requests have sizes of '%s', which is not a dimension of the "
                            "model; remove that column",
                            t->table.names[i]);
    return ONV_OK;
}

static onv_status run_shape(tracing *t, uint32_t shape, onv_error *err)
{
    onv_options options = t->options;
    onv_analysis *analysis = NULL;
    onv_execution made = {0};
    onv_runtime_result result;
    options.dims = t->dims;
    options.n_dims = list_dims(t, shape);
    if (options.dims_found != NULL) options.dims_found = t->found;
    onv_status status = onv_analysis_create(t->from, &options, &analysis, err);
    if (status == ONV_OK) status = check_names(t, err);
    if (status == ONV_OK && !is_there(analysis))
        status = onv_fail(err, ONV_ERR_USAGE,
                          "line %u of the requests leaves %llu tensors without a size",
                          t->first_of[shape] + 2, (unsigned long long)analysis->live.unknown);
    if (status == ONV_OK) status = execute(analysis, &analysis->ort, &result, &made, err);
    if (status == ONV_OK) {
        status = take_runs(t, shape, &made, err);
        onv_execution_cleanup(&made);
    }
    onv_analysis_destroy(analysis);
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

/* The batch is one of the requests' dims: they replace it, as they replace dims. */
static bool replaces_batch(const tracing *t)
{
    const onv_infer_info *info = &t->analysis->infer;
    for (uint32_t i = 0; i < t->table.n_names; i++) {
        bool is_given = false;
        for (size_t k = 0; k < t->options.n_dims; k++)
            is_given |= strcmp(t->options.dims[k].name, t->table.names[i]) == 0;
        for (size_t k = 0; !is_given && k < info->bounds.count; k++)
            if (strcmp(info->bounds.at[k].name, t->table.names[i]) == 0) return true;
    }
    return false;
}

static onv_status trace_shapes(const onv_request *from, const onv_options *options,
                               onv_analysis *analysis, onv_error *err)
{
    onv_arena *arena = &analysis->model.arena;
    tracing t = {.from = from, .options = onv_options_again(options), .analysis = analysis};
    t.options.runtimes = "ort";
    t.options.max_dim = NULL; /* bound among the dims by now */
    t.options.train = t.options.checkpoint = NULL;
    ONV_TRY(onv_requests_csv_read(options->shape_trace, arena, &t.table, err));
    if (replaces_batch(&t)) t.options.batch = 0;
    size_t most_dims = options->n_dims + t.table.n_names;
    t.dims = ONV_ARENA_ARRAY(arena, onv_dim_binding, most_dims);
    t.found = ONV_ARENA_ARRAY(arena, bool, most_dims);
    t.shapes = ONV_ARENA_ARRAY(arena, onv_ort_shape, MOST_SHAPES);
    t.sequence = ONV_ARENA_ARRAY(arena, uint32_t, t.table.n_requests);
    t.first_of = ONV_ARENA_ARRAY(arena, uint32_t, MOST_SHAPES);
    analysis->requests.result.requests =
        ONV_ARENA_ARRAY(arena, onv_ort_shape_figures, t.table.n_requests);
    if (arena->failed) return onv_fail_memory(err);
    ONV_TRY(find_shapes(&t, err));
    onv_status status = run_all(&t, err);
    for (uint32_t i = 0; i < t.n_shapes; i++) {
        onv_vec_cleanup(&t.shapes[i].runs[0]);
        onv_vec_cleanup(&t.shapes[i].runs[1]);
    }
    onv_timeline_cleanup(&t.weights);
    return status;
}

/* --- Together ---------------------------------------------------------------------------------- */

enum { MOST_SESSIONS = 1024, ROUNDS = 3 };

/* A session in a process with others. */
typedef struct hosted_session {
    onv_execution made;
    onv_ort_requests runs[2]; /* the first, and every later one */
    uint32_t n_weights;
    onv_ort_orders orders; /* of its initializers */
    onv_ort_service arena; /* of its own */
} hosted_session;

static onv_status open_hosted(onv_analysis *analysis, hosted_session *h, onv_error *err)
{
    onv_runtime_result result;
    ONV_TRY(execute(analysis, &analysis->ort, &result, &h->made, err));
    h->n_weights = count_weights(&h->made.timeline);
    return onv_ort_list_requests(&h->made.timeline, h->n_weights, h->runs, 2, err);
}

static void close_hosted(hosted_session *h)
{
    onv_execution_cleanup(&h->made);
    onv_vec_cleanup(&h->runs[0]);
    onv_vec_cleanup(&h->runs[1]);
    onv_ort_orders_cleanup(&h->orders);
}

static const onv_runtime_result *session_of(const onv_analysis *analysis)
{
    for (size_t i = 0; i < analysis->n_runtimes; i++)
        if (strcmp(analysis->runtimes[i].runtime->name, "ort") == 0) return &analysis->runtimes[i];
    return NULL;
}

static onv_status add_session(const onv_runtime_result *r, unsigned times, onv_together_info *info,
                              onv_error *err)
{
    uint64_t low, high, driver;
    bool fits = onv_u64_mul(r->low_bytes, times, &low) &&
                onv_u64_mul(r->held_bytes, times, &high) &&
                onv_u64_mul(r->driver_bytes, times, &driver) &&
                onv_u64_add(info->arenas_low, low, &info->arenas_low) &&
                onv_u64_add(info->arenas_high, high, &info->arenas_high) &&
                onv_u64_add(info->driver_bytes, driver, &info->driver_bytes);
    if (!fits) return onv_fail(err, ONV_ERR_OVERFLOW, "the sum does not fit 64 bits");
    if (r->total_bytes.low > info->largest_low) info->largest_low = r->total_bytes.low;
    if (r->total_bytes.high > info->largest_high) info->largest_high = r->total_bytes.high;
    info->sessions += times;
    info->context_low = r->context_bytes.low;
    info->context_high = r->context_bytes.high;
    return ONV_OK;
}

static onv_status share_arena(hosted_session *h, const unsigned *instances, size_t count,
                              onv_ort_service *arena, onv_error *err)
{
    for (size_t i = 0; i < count; i++)
        for (unsigned k = 0; k < instances[i]; k++)
            ONV_TRY(onv_ort_service_load(arena, &h[i].made.timeline, NULL, h[i].n_weights, err));
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < count; i++)
            for (unsigned k = 0; k < instances[i]; k++)
                ONV_TRY(onv_ort_service_run(arena, h[i].runs, round > 0, err));
    return ONV_OK;
}

static onv_status find_shared(onv_analysis *const *analyses, const unsigned *instances,
                              size_t count, hosted_session *h, uint64_t *bytes, onv_error *err)
{
    onv_alloc_options alloc = {0};
    onv_ort_settings_arena(&analyses[0]->ort, &alloc.bfc);
    for (size_t i = 0; i < count; i++) ONV_TRY(open_hosted(analyses[i], &h[i], err));
    onv_ort_service arena;
    ONV_TRY(onv_ort_service_init(&arena, &alloc, err));
    onv_status status = share_arena(h, instances, count, &arena, err);
    *bytes = arena.arena.out_of_memory ? UINT64_MAX : onv_ort_service_reserved(&arena);
    onv_ort_service_cleanup(&arena);
    return status;
}

static onv_status add_up(onv_analysis *const *analyses, const unsigned *instances, size_t count,
                         onv_together_info *info, onv_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const onv_runtime_result *r = session_of(analyses[i]);
        if (r == NULL)
            return onv_fail(err, ONV_ERR_USAGE,
                            "there is no figure for a session of '%s': bind all dimensions, and "
                            "name the runtime ort",
                            analyses[i]->model.path != NULL ? analyses[i]->model.path : "");
        ONV_TRY(add_session(r, instances[i], info, err));
    }
    if (count == 0 || info->sessions > MOST_SESSIONS)
        return onv_fail(err, ONV_ERR_USAGE, "from 1 to %d sessions, not %llu", MOST_SESSIONS,
                        (unsigned long long)info->sessions);
    hosted_session *h = onv_heap_calloc(count, sizeof *h);
    if (h == NULL) return onv_fail_memory(err);
    onv_status status = find_shared(analyses, instances, count, h, &info->shared_arena, err);
    for (size_t i = 0; i < count; i++) close_hosted(&h[i]);
    onv_heap_free(h);
    bool fits = onv_u64_add(info->arenas_low, info->driver_bytes, &info->total_low) &&
                onv_u64_add(info->total_low, info->context_low, &info->total_low) &&
                onv_u64_add(info->arenas_high, info->driver_bytes, &info->total_high) &&
                onv_u64_add(info->total_high, info->context_high, &info->total_high);
    if (status == ONV_OK && !fits)
        return onv_fail(err, ONV_ERR_OVERFLOW, "the sum does not fit 64 bits");
    return status;
}

onv_status onv_together_get(onv_analysis *const *analyses, const unsigned *instances, size_t count,
                            onv_together_info *info, size_t size, onv_error *err)
{
    if (err != NULL) *err = (onv_error){0};
    onv_together_info full = {0};
    onv_status status = add_up(analyses, instances, count, &full, err);
    onv_give(info, size, &full, sizeof full);
    return status;
}

/* --- On a device that is too small for what arenas would like ----------------------------------------- */

typedef struct process {
    const onv_session_run *sessions;
    const onv_event *events;
    size_t n_sessions, n_events;
    hosted_session *hosted;
    onv_ort_service beside;
    onv_shared_device device;
} process;

/* Orders of initializers: each is that of a process. */
enum { PROCESSES = 40, REQUESTS_ALIKE = 2 };

static onv_status check_process(const process *p, onv_error *err)
{
    size_t before = 0;
    for (size_t i = 0; i < p->n_sessions; i++) {
        const onv_session_run *s = &p->sessions[i];
        if (s->before < before || s->before > p->n_events || session_of(s->analysis) == NULL)
            return onv_fail(err, ONV_ERR_USAGE,
                            "session %zu needs a figure for the runtime ort, and an event from %zu "
                            "to %zu that it runs before, not %zu",
                            i, before, p->n_events, s->before);
        before = s->before;
    }
    for (size_t i = 0; i < p->n_events; i++)
        if (p->events[i].frees != ONV_NO_INDEX || p->events[i].bytes > ONV_ALLOC_MAX_BYTES)
            return onv_fail(err, ONV_ERR_USAGE,
                            "event %zu is to be an allocation of at most 2^56 bytes", i);
    return ONV_OK;
}

/* All of them run in each request, between what is kept until it is over. */
static onv_status serve_request(process *p, bool is_later, bool *fits, onv_error *err)
{
    size_t next = 0;
    for (size_t i = 0; i <= p->n_events && *fits; i++) {
        for (; next < p->n_sessions && p->sessions[next].before == i && *fits; next++) {
            hosted_session *h = &p->hosted[next];
            ONV_TRY(onv_ort_service_run(&h->arena, h->runs, is_later, err));
            *fits = !h->arena.arena.out_of_memory;
        }
        if (i == p->n_events || !*fits) continue;
        ONV_TRY(onv_allocator_alloc(&p->beside.arena, (uint32_t)i, p->events[i].bytes, err));
        *fits = !p->beside.arena.out_of_memory;
    }
    for (size_t i = 0; i < p->n_events && *fits; i++)
        ONV_TRY(onv_allocator_free(&p->beside.arena, (uint32_t)i, err));
    return ONV_OK;
}

static onv_status serve_process(process *p, bool *fits, onv_error *err)
{
    for (size_t i = 0; i < p->n_sessions && *fits; i++) {
        hosted_session *h = &p->hosted[i];
        ONV_TRY(onv_ort_service_load(&h->arena, &h->made.timeline, &h->orders, h->n_weights, err));
        *fits = !h->arena.arena.out_of_memory;
    }
    for (int i = 0; i < REQUESTS_ALIKE && *fits; i++) ONV_TRY(serve_request(p, i > 0, fits, err));
    return ONV_OK;
}

/* Arenas of no bytes yet, on an empty device. */
static onv_status open_arena(onv_ort_service *arena, const onv_analysis *of, process *p,
                             onv_error *err)
{
    onv_alloc_options alloc = {0};
    if (of != NULL) onv_ort_settings_arena(&of->ort, &alloc.bfc);
    ONV_TRY(onv_ort_service_init(arena, &alloc, err));
    arena->arena.device = &p->device;
    return ONV_OK;
}

static onv_status try_process(process *p, uint16_t seed, bool *fits, onv_error *err)
{
    onv_status status = open_arena(&p->beside, NULL, p, err);
    size_t n = 0;
    for (; n < p->n_sessions && status == ONV_OK; n++) {
        onv_ort_orders_draw(&p->hosted[n].orders, seed);
        status = open_arena(&p->hosted[n].arena, p->sessions[n].analysis, p, err);
    }
    if (status == ONV_OK) status = serve_process(p, fits, err);
    onv_ort_service_cleanup(&p->beside);
    for (size_t i = 0; i < n; i++) onv_ort_service_cleanup(&p->hosted[i].arena);
    return status;
}

static uint32_t count_initializers(const hosted_session *h)
{
    uint32_t n = 0;
    while (n < h->n_weights && onv_is_value(h->made.timeline.buffers.at[n].value)) n++;
    return n;
}

static onv_status try_processes(process *p, uint64_t taken, unsigned *fit, unsigned *tried,
                                onv_error *err)
{
    const onv_alloc_options none = {0};
    ONV_TRY(check_process(p, err));
    for (size_t i = 0; i < p->n_sessions; i++) {
        hosted_session *h = &p->hosted[i];
        ONV_TRY(open_hosted(p->sessions[i].analysis, h, err));
        ONV_TRY(onv_ort_orders_init(&h->orders, &p->sessions[i].analysis->ort_graph.rewritten.model,
                                    &h->made.timeline, count_initializers(h), &none, err));
    }
    for (int i = 0; i < PROCESSES; i++) {
        bool fits = true;
        p->device.left_bytes = (ONV_DEVICE_PAGE - taken % ONV_DEVICE_PAGE) % ONV_DEVICE_PAGE;
        p->device.taken_bytes = taken + p->device.left_bytes;
        ONV_TRY(try_process(p, (uint16_t)i, &fits, err));
        *fit += fits;
        *tried += 1;
    }
    return ONV_OK;
}

onv_status onv_process_fits(const onv_session_run *sessions, size_t n_sessions,
                            const onv_event *events, size_t n_events, uint64_t taken,
                            uint64_t bytes, unsigned *fit, unsigned *tried, onv_error *err)
{
    process p = {.sessions = sessions,
                 .events = events,
                 .n_sessions = n_sessions,
                 .n_events = n_events,
                 .hosted = onv_heap_calloc(n_sessions + 1, sizeof(hosted_session)),
                 .device.bytes = bytes};
    *fit = *tried = 0;
    if (err != NULL) *err = (onv_error){0};
    if (p.hosted == NULL) return onv_fail_memory(err);
    onv_status status = try_processes(&p, taken, fit, tried, err);
    for (size_t i = 0; i < n_sessions; i++) close_hosted(&p.hosted[i]);
    onv_heap_free(p.hosted);
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
        ONV_TRY(onv_ort_node_stats_compute(&analysis->ort_graph.rewritten.model,
                                           &analysis->ort_graph.live, &session,
                                           &analysis->node_stats, err));
    if (options->ort_advise)
        ONV_TRY(onv_ort_advise(&analysis->ort_graph.rewritten.model, &analysis->ort_graph.live,
                               &how, true, &analysis->advice, err));
    if (options->shape_trace == NULL) return ONV_OK;
    return trace_shapes(from, options, analysis, err);
}
