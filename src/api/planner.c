/* The planner, the allocators and the search for an order, for programs that link them: input in memory, bounded
 * work. And what is in files that are no models: intervals, traces and snapshots. */
#include <inttypes.h>
#include <string.h>

#include "alloc/trace_csv.h"
#include "api/names.h"
#include "api/sized.h"
#include "api/watch.h"
#include "base/fail.h"
#include "base/heap.h"
#include "load/limits.h"
#include "order/order_dag.h"
#include "plan/plan.h"
#include "snapshot/snapshot.h"

/* --- What the calls share ---------------------------------------------------------------------- */

void onv_planner_options_init(onv_planner_options *options, size_t size)
{
    onv_start(options, size);
}

/* The options, and what bounds a call. */
typedef struct scope {
    onv_planner_options options;
    onv_limits limits;
    onv_options watched;
    onv_watch watch;
} scope;

static void enter(scope *s, const onv_planner_options *given, onv_error *err)
{
    if (err != NULL) *err = (onv_error){0};
    memset(s, 0, sizeof *s);
    s->options = onv_planner_options_default();
    s->limits = onv_limits_default();
    if (given != NULL) onv_take(&s->options, sizeof s->options, given, given->struct_size);
    const onv_limits *limits = s->options.limits;
    if (limits != NULL) onv_take(&s->limits, sizeof s->limits, limits, limits->struct_size);
    s->limits = onv_limits_resolve(&s->limits);
    s->watched = onv_options_default();
    s->watched.limits = &s->limits;
    s->watched.cancelled = s->options.cancelled;
    s->watched.cancel_context = s->options.cancel_context;
    onv_watch_start(&s->watch, &s->watched);
}

/* Options that would change nothing are refused, as those of analyses are. */
static onv_status refuse(bool is_given, const char *option, const char *what, onv_error *err)
{
    if (!is_given) return ONV_OK;
    return onv_fail(err, ONV_ERR_USAGE, "%s has no effect on %s: leave it out", option, what);
}

static onv_status check_alignment(uint64_t alignment, onv_error *err)
{
    if ((alignment & (alignment - 1)) == 0) return ONV_OK;
    return onv_fail(err, ONV_ERR_USAGE,
                    "the alignment is a power of two, as in 256, not %" PRIu64 "", alignment);
}

/* --- Intervals --------------------------------------------------------------------------------- */

static onv_status read_intervals(const onv_interval *intervals, size_t count,
                                 onv_plan_buffer *buffers, onv_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const onv_interval *in = &intervals[i];
        if (in->lower >= in->upper)
            return onv_fail(err, ONV_ERR_USAGE,
                            "an interval ends behind its begin, but number %zu is [%" PRIu64
                            ", %" PRIu64 "): give its last step + 1 as upper",
                            i, in->lower, in->upper);
        if (in->upper > INT64_MAX || in->size > INT64_MAX)
            return onv_fail(err, ONV_ERR_OVERFLOW,
                            "steps and sizes fit 63 bits, but interval number %zu has %" PRIu64
                            ": check its units",
                            i, in->upper > INT64_MAX ? in->upper : in->size);
        buffers[i] = (onv_plan_buffer){in->lower, in->upper, in->size};
    }
    return ONV_OK;
}

static onv_plan_info info_of(const onv_plan *plan)
{
    return (onv_plan_info){.height = plan->height,
                           .lower_bound = plan->lower_bound,
                           .optimal = plan->optimal,
                           .fits = plan->fits,
                           .nodes = plan->nodes,
                           .strategy = plan->strategy};
}

static onv_status compute_plan(scope *s, const onv_plan_buffer *buffers, size_t count,
                               uint64_t *offsets, onv_plan_info *info, onv_error *err)
{
    onv_plan_options options = {.capacity = s->options.capacity,
                                .effort = s->options.effort,
                                .alignment = s->options.alignment,
                                .cancelled = onv_watch_over,
                                .cancel_context = &s->watch};
    onv_plan plan;
    ONV_TRY(onv_plan_compute(buffers, count, &options, &plan, err));
    onv_status status = plan.stopped ? onv_watch_why(&s->watch, err)
                                     : onv_plan_check(buffers, count, &options, &plan, err);
    if (status == ONV_OK && count > 0) memcpy(offsets, plan.offsets, count * sizeof *offsets);
    *info = info_of(&plan);
    onv_plan_cleanup(&plan);
    return status;
}

static onv_status plan(scope *s, const onv_interval *intervals, size_t count, uint64_t *offsets,
                       onv_plan_info *info, onv_error *err)
{
    static const char what[] = "a plan of intervals";
    ONV_TRY(refuse(s->options.expandable_segments, "expandable_segments", what, err));
    ONV_TRY(refuse(s->options.order != NULL, "order", what, err));
    ONV_TRY(check_alignment(s->options.alignment, err));
    if (count > ONV_PLAN_MAX_BUFFERS)
        return onv_fail(err, ONV_ERR_LIMIT, "at most %d intervals are planned, not %zu: merge some",
                        ONV_PLAN_MAX_BUFFERS, count);
    if (count > 0 && (intervals == NULL || offsets == NULL))
        return onv_fail(err, ONV_ERR_USAGE,
                        "%zu intervals need an array of them and one for their offsets, but %s is "
                        "NULL: pass both",
                        count, intervals == NULL ? "intervals" : "offsets");
    onv_plan_buffer *buffers = onv_heap_calloc(count, sizeof *buffers);
    if (buffers == NULL) return onv_fail_memory(err);
    onv_status status = read_intervals(intervals, count, buffers, err);
    if (status == ONV_OK) status = compute_plan(s, buffers, count, offsets, info, err);
    onv_heap_free(buffers);
    return status;
}

onv_status onv_plan_get(const onv_interval *intervals, size_t count,
                        const onv_planner_options *options, uint64_t *offsets, onv_plan_info *info,
                        size_t size, onv_error *error)
{
    scope s;
    onv_plan_info full = {0};
    enter(&s, options, error);
    onv_status status = plan(&s, intervals, count, offsets, &full, error);
    status = onv_watch_leave(&s.watch, status, error);
    if (status == ONV_OK && info != NULL) onv_give(info, size, &full, sizeof full);
    return status;
}

onv_status onv_plan_file_get(const char *path, uint64_t capacity, uint64_t effort,
                             uint64_t alignment, onv_write_fn write, void *context,
                             onv_plan_info *info, size_t size, onv_error *error)
{
    if (error != NULL) *error = (onv_error){0};
    onv_plan_options options = {.capacity = capacity, .effort = effort, .alignment = alignment};
    onv_plan plan = {0};
    ONV_TRY(onv_plan_csv_run(path, &options, write, context, &plan, error));
    onv_plan_info full = info_of(&plan);
    if (info != NULL) onv_give(info, size, &full, sizeof full);
    return ONV_OK;
}

/* --- Events ------------------------------------------------------------------------------------ */

typedef struct events {
    const onv_event *at;
    size_t count;
    bool *is_live; /* by event */
    onv_watch *watch;
} events;

static onv_status check_event(const events *e, size_t i, onv_error *err)
{
    const onv_event *event = &e->at[i];
    if (event->frees == ONV_NO_INDEX) {
        if (event->stream >= ONV_N_STREAMS)
            return onv_fail(err, ONV_ERR_USAGE,
                            "streams are 0 to %d, but event %zu has %" PRIu32
                            ": number those in use from 0",
                            ONV_N_STREAMS - 1, i, event->stream);
        if (event->bytes > ONV_ALLOC_MAX_BYTES)
            return onv_fail(err, ONV_ERR_LIMIT,
                            "an allocation is of at most %" PRIu64 " bytes, but event %zu asks for "
                            "%" PRIu64 ": check its units",
                            ONV_ALLOC_MAX_BYTES, i, event->bytes);
        return ONV_OK;
    }
    if (event->frees < i && e->is_live[event->frees]) return ONV_OK;
    return onv_fail(err, ONV_ERR_USAGE,
                    "event %zu frees what event %zu allocated, but that %s: an allocation comes "
                    "before its one free",
                    i, event->frees,
                    event->frees >= i                           ? "comes later"
                    : e->at[event->frees].frees != ONV_NO_INDEX ? "is a free"
                                                                : "was freed");
}

/* The events one by one, as a trace in a file comes. */
static onv_status each_event(void *context, onv_trace_take take, void *taker, onv_error *err)
{
    enum { ASK_EVERY = 1 << 14 };
    events *e = context;
    for (size_t i = 0; i < e->count; i++) {
        if (i % ASK_EVERY == ASK_EVERY - 1) ONV_TRY(onv_watch_check(e->watch, err));
        ONV_TRY(check_event(e, i, err));
        bool is_free = e->at[i].frees != ONV_NO_INDEX;
        size_t id = is_free ? e->at[i].frees : i;
        e->is_live[id] = !is_free;
        onv_trace_event event = {.bytes = is_free ? 0 : e->at[i].bytes,
                                 .id = (uint32_t)id,
                                 .stream = (uint8_t)e->at[i].stream,
                                 .is_free = is_free};
        ONV_TRY(take(taker, &event, err));
    }
    return ONV_OK;
}

/* A trace at planned offsets in one block: what `arena` is among the allocators. The block is asked for as a whole: beyond a
 * capacity (0: none) it finds no memory. Cleans the timeline up. */
static onv_status simulate_arena(onv_timeline *t, const onv_plan_options *options,
                                 uint64_t capacity, onv_held_figures *figures, onv_error *err)
{
    onv_plan plan;
    onv_placement placement;
    onv_status status = onv_plan_timeline(t, options, &plan, &placement, err);
    onv_timeline_cleanup(t);
    ONV_TRY(status);
    if (plan.stopped)
        status = onv_fail(err, ONV_ERR_CANCELLED, "the search for a plan was cancelled");
    *figures = placement.figures;
    if (capacity > 0 && figures->reserved_peak > capacity) {
        figures->out_of_memory = true;
        figures->oom_bytes = figures->reserved_peak;
    }
    onv_placement_cleanup(&placement);
    onv_plan_cleanup(&plan);
    return status;
}

static onv_status plan_events(scope *s, events *e, onv_held_figures *figures, onv_error *err)
{
    onv_plan_options options = {
        .effort = s->options.effort, .cancelled = onv_watch_over, .cancel_context = &s->watch};
    onv_timeline t;
    ONV_TRY(onv_trace_read(each_event, e, &t, err));
    return simulate_arena(&t, &options, s->options.capacity, figures, err);
}

static onv_status serve_events(scope *s, events *e, const char *name, onv_held_figures *figures,
                               onv_error *err)
{
    const onv_alloc_model *model = onv_alloc_model_find(name);
    onv_alloc_options options = {.capacity_bytes = s->options.capacity};
    options.torch.expandable_segments = s->options.expandable_segments;
    if (model == NULL)
        return onv_fail_choice(err, "allocator", name, strlen(name), onv_allocator_choice, NULL);
    ONV_TRY(refuse(s->options.effort != 0, "effort", "an allocator, which searches nothing", err));
    return onv_alloc_simulate(each_event, e, model, &options, figures, NULL, NULL, err);
}

static onv_status simulate(scope *s, events *e, const char *name, onv_held_figures *figures,
                           onv_error *err)
{
    static const char what[] = "a simulation of events";
    if (name == NULL)
        return onv_fail(
            err, ONV_ERR_USAGE,
            "a simulation needs an allocator, but none is named: name one, as in torch");
    bool is_arena = strcmp(name, "arena") == 0;
    ONV_TRY(refuse(s->options.alignment != 0, "alignment", what, err));
    ONV_TRY(refuse(s->options.order != NULL, "order", what, err));
    ONV_TRY(refuse(s->options.expandable_segments && strncmp(name, "torch", 5) != 0,
                   "expandable_segments", "allocators other than PyTorch's", err));
    if (e->count > ONV_TRACE_MAX_EVENTS)
        return onv_fail(err, ONV_ERR_LIMIT, "at most %" PRIu64 " events are served, not %zu",
                        ONV_TRACE_MAX_EVENTS, e->count);
    if (e->count > 0 && e->at == NULL)
        return onv_fail(err, ONV_ERR_USAGE, "%zu events need an array, but it is NULL", e->count);
    e->watch = &s->watch;
    e->is_live = onv_heap_calloc(e->count, sizeof *e->is_live);
    if (e->is_live == NULL) return onv_fail_memory(err);
    onv_status status =
        is_arena ? plan_events(s, e, figures, err) : serve_events(s, e, name, figures, err);
    onv_heap_free(e->is_live);
    return status;
}

onv_status onv_simulate_get(const onv_event *given, size_t count, const char *allocator,
                            const onv_planner_options *options, onv_simulated_info *info,
                            size_t size, onv_error *error)
{
    scope s;
    events e = {.at = given, .count = count};
    onv_held_figures f = {0};
    enter(&s, options, error);
    onv_status status = simulate(&s, &e, allocator, &f, error);
    status = onv_watch_leave(&s.watch, status, error);
    onv_simulated_info full = {.allocated_peak = f.allocated_peak,
                               .reserved_peak = f.reserved_peak,
                               .requested_peak = f.requested_peak,
                               .allocated_end = f.allocated_end,
                               .reserved_end = f.reserved_end,
                               .segments = f.segments,
                               .out_of_memory = f.out_of_memory,
                               .oom_event = f.out_of_memory ? f.oom_event : 0,
                               .oom_bytes = f.out_of_memory ? f.oom_bytes : 0};
    if (status == ONV_OK && info != NULL) onv_give(info, size, &full, sizeof full);
    return status;
}

/* --- Traces in files --------------------------------------------------------------------------- */

static onv_status simulate_one(const char *path, const char *name,
                               const onv_simulate_options *options, onv_write_fn write,
                               void *context, onv_error *err)
{
    onv_held_figures result;
    if (strcmp(name, "arena") == 0) {
        if (options->summary)
            return onv_fail(err, ONV_ERR_USAGE, "an arena has no allocator to summarise");
        onv_timeline t;
        ONV_TRY(onv_trace_csv_read_file(path, &t, err));
        ONV_TRY(simulate_arena(&t, NULL, options->capacity, &result, err));
    } else {
        const onv_alloc_model *model = onv_alloc_model_find(name);
        if (model == NULL)
            return onv_fail_choice(err, "--runtime", name, strlen(name), onv_allocator_choice,
                                   NULL);
        onv_alloc_options how = {.capacity_bytes = options->capacity};
        how.torch.expandable_segments = options->expandable_segments;
        ONV_TRY(onv_alloc_simulate_file(path, model, &how, &result, options->summary ? write : NULL,
                                        context, err));
    }
    /* By the name that was asked for: models have two. */
    if (!options->summary && !onv_alloc_write_csv(name, &result, write, context))
        return onv_fail(err, ONV_ERR_IO, "the result could not be written");
    if (result.out_of_memory)
        return onv_fail(err, ONV_ERR_DEVICE,
                        "%s: no room for event %zu, which asks for %llu bytes, in a device of %llu",
                        name, result.oom_event, (unsigned long long)result.oom_bytes,
                        (unsigned long long)options->capacity);
    return ONV_OK;
}

onv_status onv_simulate_file(const char *path, const char *runtimes,
                             const onv_simulate_options *given, onv_write_fn write, void *context,
                             onv_error *error)
{
    onv_simulate_options options = {.struct_size = sizeof options};
    if (error != NULL) *error = (onv_error){0};
    if (given != NULL) onv_take(&options, sizeof options, given, given->struct_size);
    if (options.header && !options.summary &&
        (!write(context, onv_alloc_csv_header, strlen(onv_alloc_csv_header)) ||
         (strchr(onv_alloc_csv_header, '\n') == NULL && !write(context, "\n", 1))))
        return onv_fail(error, ONV_ERR_IO, "the result could not be written");
    onv_status status = ONV_OK;
    for (const char *at = runtimes; at != NULL;) {
        char name[64];
        size_t length = strcspn(at, ",");
        if (length >= sizeof name)
            return onv_fail(error, ONV_ERR_USAGE, "there is no such runtime");
        memcpy(name, at, length);
        name[length] = '\0';
        onv_error local = {0};
        onv_status one = simulate_one(path, name, &options, write, context, &local);
        if (one != ONV_OK && (status == ONV_OK || one != ONV_ERR_DEVICE)) {
            status = one;
            if (error != NULL) *error = local;
        }
        if (one != ONV_OK && one != ONV_ERR_DEVICE) break;
        at = at[length] == ',' ? at + length + 1 : NULL;
    }
    return status;
}

/* --- Graphs ------------------------------------------------------------------------------------ */

typedef struct ordering {
    scope *scope;
    onv_size_graph graph;
    onv_dag_value *values;
    onv_dag_read *reads;
    uint32_t *nodes; /* the order */
} ordering;

static onv_status check_index(size_t index, size_t count, const char *what, size_t row,
                              const char *of, onv_error *err)
{
    if (index < count) return ONV_OK;
    return onv_fail(err, ONV_ERR_USAGE,
                    "%s number %zu of the graph refers to %s %zu, but there are "
                    "%zu: count from 0",
                    what, row, of, index, count);
}

static onv_status check_counts(const ordering *o, onv_error *err)
{
    const onv_size_graph *g = &o->graph;
    const onv_limits *limits = &o->scope->limits;
    if (g->n_nodes > limits->nodes || g->n_nodes > ONV_MOST_IDS)
        return onv_fail(err, ONV_ERR_LIMIT,
                        "%zu nodes are more than the limit of %" PRIu64 ONV_RAISE("nodes"),
                        g->n_nodes, limits->nodes);
    if (g->n_values > limits->values || g->n_reads > ONV_MOST_IDS || g->n_values > ONV_MOST_IDS)
        return onv_fail(err, ONV_ERR_LIMIT,
                        "%zu values and %zu reads are more than the limit of "
                        "%" PRIu64 ONV_RAISE("values"),
                        g->n_values, g->n_reads, limits->values);
    if ((g->n_values > 0 && g->values == NULL) || (g->n_reads > 0 && g->reads == NULL))
        return onv_fail(err, ONV_ERR_USAGE,
                        "a graph of %zu values and %zu reads needs an array of "
                        "each, but one is NULL",
                        g->n_values, g->n_reads);
    return ONV_OK;
}

static onv_status read_graph(ordering *o, onv_error *err)
{
    const onv_size_graph *g = &o->graph;
    o->values = onv_heap_calloc(g->n_values, sizeof *o->values);
    o->reads = onv_heap_calloc(g->n_reads, sizeof *o->reads);
    o->nodes = onv_heap_calloc(g->n_nodes, sizeof *o->nodes);
    if (o->values == NULL || o->reads == NULL || o->nodes == NULL) return onv_fail_memory(err);
    for (size_t i = 0; i < g->n_values; i++) {
        const onv_graph_value *in = &g->values[i];
        bool is_made = in->writer != ONV_NO_INDEX;
        if (is_made) ONV_TRY(check_index(in->writer, g->n_nodes, "value", i, "node", err));
        o->values[i] = (onv_dag_value){.bytes = in->bytes,
                                       .writer = is_made ? (uint32_t)in->writer : ONV_DAG_NONE,
                                       .is_output = in->is_output};
    }
    for (size_t i = 0; i < g->n_reads; i++) {
        ONV_TRY(check_index(g->reads[i].node, g->n_nodes, "read", i, "node", err));
        ONV_TRY(check_index(g->reads[i].value, g->n_values, "read", i, "value", err));
        o->reads[i] = (onv_dag_read){(uint32_t)g->reads[i].node, (uint32_t)g->reads[i].value};
    }
    return ONV_OK;
}

/* How many of what a node reads is made by a node. */
static uint32_t count_made(const onv_dag *dag, uint32_t node)
{
    uint32_t n = 0;
    for (uint32_t i = dag->reads.start[node]; i < dag->reads.start[node + 1]; i++)
        n += dag->values[dag->reads.at[i]].writer != ONV_DAG_NONE;
    return n;
}

/* Any order that is one: that of the nodes' numbers where it is, else node by node as they get ready. */
static onv_status find_any(const onv_dag *dag, uint32_t *nodes, onv_error *err)
{
    for (uint32_t i = 0; i < dag->n_nodes; i++) nodes[i] = i;
    if (onv_dag_check_order(dag, nodes, NULL) == ONV_OK) return ONV_OK;
    uint32_t *waits = onv_heap_alloc(dag->n_nodes * sizeof *waits), n = 0;
    if (waits == NULL) return onv_fail_memory(err);
    for (uint32_t i = 0; i < dag->n_nodes; i++)
        if ((waits[i] = count_made(dag, i)) == 0) nodes[n++] = i;
    for (uint32_t at = 0; at < n; at++)
        for (uint32_t w = dag->writes.start[nodes[at]]; w < dag->writes.start[nodes[at] + 1]; w++)
            for (uint32_t r = dag->readers.start[dag->writes.at[w]];
                 r < dag->readers.start[dag->writes.at[w] + 1]; r++)
                if (--waits[dag->readers.at[r]] == 0) nodes[n++] = dag->readers.at[r];
    uint32_t stuck = 0;
    while (stuck < dag->n_nodes && waits[stuck] == 0) stuck++;
    onv_heap_free(waits);
    if (n == dag->n_nodes) return ONV_OK;
    return onv_fail(err, ONV_ERR_USAGE,
                    "a graph without cycles has an order, but node %" PRIu32
                    " waits for itself: take one of its reads out",
                    stuck);
}

static onv_status order_dag(ordering *o, const onv_dag *dag, onv_graph_order_info *info,
                            onv_error *err)
{
    scope *s = o->scope;
    onv_order_options options = {
        .effort = s->options.effort, .cancelled = onv_watch_over, .cancel_context = &s->watch};
    bool is_greedy = s->options.order != NULL && strcmp(s->options.order, "greedy") == 0;
    onv_dag_order found = {.nodes = o->nodes};
    ONV_TRY(find_any(dag, o->nodes, err));
    ONV_TRY((is_greedy ? onv_dag_order_greedy : onv_dag_order_optimal)(dag, &options, &found, err));
    ONV_TRY(onv_dag_check_order(dag, o->nodes, err));
    ONV_TRY(onv_dag_peak(dag, o->nodes, &info->peak_bytes, err));
    info->lower_bound_bytes = found.has_bound ? found.lower_bound_bytes : 0;
    info->proven = found.has_bound && info->peak_bytes == found.lower_bound_bytes;
    info->searched = found.searched;
    return ONV_OK;
}

static onv_status order_graph(ordering *o, size_t *order, onv_graph_order_info *info,
                              onv_error *err)
{
    static const char what[] = "the order of a graph";
    const onv_planner_options *options = &o->scope->options;
    ONV_TRY(refuse(options->capacity != 0, "capacity", what, err));
    ONV_TRY(refuse(options->alignment != 0, "alignment", what, err));
    ONV_TRY(refuse(options->expandable_segments, "expandable_segments", what, err));
    const char *name = options->order != NULL ? options->order : "optimal";
    if (strcmp(name, "greedy") != 0 && strcmp(name, "optimal") != 0)
        return onv_fail(err, ONV_ERR_USAGE,
                        "an order of a graph is greedy or optimal, not '%.60s': name one of them",
                        name);
    ONV_TRY(check_counts(o, err));
    if (o->graph.n_nodes > 0 && order == NULL)
        return onv_fail(err, ONV_ERR_USAGE,
                        "%zu nodes need room for their order, but it is NULL: pass an array",
                        o->graph.n_nodes);
    ONV_TRY(read_graph(o, err));
    if (o->graph.n_nodes == 0) return ONV_OK;
    onv_dag dag;
    ONV_TRY(onv_dag_init(&dag, (uint32_t)o->graph.n_nodes, o->graph.extra_bytes, o->values,
                         (uint32_t)o->graph.n_values, o->reads, o->graph.n_reads, err));
    onv_status status = order_dag(o, &dag, info, err);
    for (size_t i = 0; status == ONV_OK && i < o->graph.n_nodes; i++) order[i] = o->nodes[i];
    onv_dag_cleanup(&dag);
    return status;
}

onv_status onv_order_graph_get(const onv_size_graph *graph, const onv_planner_options *options,
                               size_t *order, onv_graph_order_info *info, size_t size,
                               onv_error *error)
{
    scope s;
    onv_graph_order_info full = {0};
    enter(&s, options, error);
    ordering o = {.scope = &s};
    onv_take(&o.graph, sizeof o.graph, graph, graph->struct_size);
    onv_status status = order_graph(&o, order, &full, error);
    onv_heap_free(o.values);
    onv_heap_free(o.reads);
    onv_heap_free(o.nodes);
    status = onv_watch_leave(&s.watch, status, error);
    if (status == ONV_OK && info != NULL) onv_give(info, size, &full, sizeof full);
    return status;
}

/* --- Snapshots --------------------------------------------------------------------------------- */

onv_status onv_snapshot_get(const char *path, const onv_limits *limits, onv_snapshot_info *info,
                            size_t size, onv_error *error)
{
    if (error != NULL) *error = (onv_error){0};
    onv_options options = onv_options_default();
    onv_watch watch;
    onv_snapshot s;
    options.limits = limits;
    onv_watch_start(&watch, &options);
    onv_status status = onv_snapshot_read(&s, path, SIZE_MAX, error);
    onv_snapshot_info full = {.requested_peak_bytes = s.requested_peak,
                              .allocated_peak_bytes = s.allocated_peak,
                              .reserved_peak_bytes = s.reserved_peak,
                              .device = s.device,
                              .devices = s.n_devices,
                              .has_history = s.has_history};
    onv_snapshot_cleanup(&s);
    status = onv_watch_leave(&watch, status, error);
    if (status == ONV_OK) onv_give(info, size, &full, sizeof full);
    return status;
}
