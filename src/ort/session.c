/* Runs of a session: the plan's buffers, run after run, with a memory pattern for every graph. */
#include "base/fail.h"
#include "base/heap.h"
#include "ort/ort.h"

#define NONE UINT32_MAX

typedef struct session {
    const onv_ort_plan *plan;
    bool has_pattern;
    onv_timeline path;  /* one run, of every If one branch */
    uint32_t *of_plan;  /* by buffer of the plan: that of the path */
    uint32_t *graph_of; /* by buffer of the path: whose pattern holds it, or NONE */
    uint8_t *stream_of; /* by buffer of the path: of the kernels of its graph */
    uint64_t *offsets;  /* by buffer of the path, in its pattern */
    uint64_t *bytes;    /* by graph: of its pattern */
    uint32_t *block;    /* by graph: of the run that is added; NONE: not yet */
    uint32_t *members;  /* buffers of the path, by graph */
    uint32_t *start;    /* by graph: of its members */
} session;

onv_timeline onv_ort_plan_timeline(const onv_ort_plan *plan)
{
    onv_timeline t = plan->live->timeline;
    t.buffers.at = plan->buffers;
    t.buffers.count = plan->count;
    return t;
}

/* --- The memory pattern ------------------------------------------------------------------------ */

static bool is_temporary(const onv_ort_plan *plan, uint32_t i)
{
    return plan->buffers[i].kind == ONV_BUFFER_ACTIVATION && !plan->is_fetched[i];
}

/* What a run allocates is the stream's of its kernels; blocks of patterns, and what stays, are of none (0). Graphs that
 * stand deeper than there are streams share the last one. */
static uint8_t stream_of(const onv_ort_plan *plan, uint32_t graph)
{
    uint8_t stream = plan->graphs[graph].stream;
    return stream < ONV_N_STREAMS ? stream : ONV_N_STREAMS - 1;
}

/* Behind a run of a graph; the outermost one where several end. */
static void end_streams(const session *s, uint32_t first, onv_timeline *t)
{
    for (uint32_t g = 0; g < s->plan->n_graphs; g++) {
        const onv_ort_graph *graph = &s->plan->graphs[g];
        if (graph->first == graph->end || graph->stream >= ONV_N_STREAMS || graph->is_scan)
            continue;
        onv_step *step = &t->steps.at[first + graph->end - 1];
        if (step->ends == 0 || graph->stream < step->ends) step->ends = graph->stream;
    }
}

static void find_streams(session *s)
{
    const onv_ort_plan *plan = s->plan;
    for (uint32_t i = 0; i < plan->count; i++) {
        uint32_t last = i;
        while (plan->buffers[last].becomes != ONV_NO_BUFFER) last = plan->buffers[last].becomes;
        if (s->of_plan[i] != ONV_NO_BUFFER && plan->buffers[i].stream != ONV_ORT_NO_STREAM)
            s->stream_of[s->of_plan[i]] = stream_of(plan, plan->graph_of[last].index);
    }
}

/* What a branch makes is part of the graph that it is handed to. */
static void find_members(session *s)
{
    const onv_ort_plan *plan = s->plan;
    find_streams(s);
    for (uint32_t i = 0; i < s->path.buffers.count; i++) s->graph_of[i] = NONE;
    for (uint32_t i = 0; i < plan->count; i++)
        if (s->of_plan[i] != ONV_NO_BUFFER && is_temporary(plan, i))
            s->graph_of[s->of_plan[i]] = plan->graph_of[i].index;
    for (uint32_t i = 0; i < s->path.buffers.count; i++)
        if (s->graph_of[i] != NONE) s->start[s->graph_of[i] + 1]++;
    for (uint32_t g = 0; g < plan->n_graphs; g++) s->start[g + 1] += s->start[g];
    for (uint32_t i = 0; i < s->path.buffers.count; i++)
        if (s->graph_of[i] != NONE) s->members[s->start[s->graph_of[i]]++] = i;
    for (uint32_t g = plan->n_graphs; g > 0; g--) s->start[g] = s->start[g - 1];
    s->start[0] = 0;
}

static onv_status pack_timeline(session *s, uint32_t g, onv_timeline *t,
                                const onv_alloc_options *options, onv_error *err)
{
    const onv_ort_graph *graph = &s->plan->graphs[g];
    uint32_t n = s->start[g + 1] - s->start[g], n_steps = graph->end - graph->first;
    onv_placement packed;
    if (!onv_vec_reserve(&t->steps, n_steps) || !onv_vec_reserve(&t->buffers, n))
        return onv_fail_memory(err);
    for (uint32_t i = 0; i < n_steps; i++)
        t->steps.at[t->steps.count++] = (onv_step){.node = ONV_NO_NODE};
    for (uint32_t i = 0; i < n; i++) {
        onv_buffer b = s->path.buffers.at[s->members[s->start[g] + i]];
        b.first -= graph->first;
        b.last -= graph->first;
        t->buffers.at[t->buffers.count++] = b;
    }
    ONV_TRY(onv_alloc_run(t, onv_alloc_model_find("pattern"), options, &packed, err));
    s->bytes[g] = packed.figures.reserved_peak;
    for (uint32_t i = 0; i < n; i++)
        s->offsets[s->members[s->start[g] + i]] = packed.places.at[i].offset;
    onv_placement_cleanup(&packed);
    return ONV_OK;
}

static onv_status pack(session *s, const onv_alloc_options *options, onv_error *err)
{
    onv_status status = ONV_OK;
    find_members(s);
    for (uint32_t g = 0; g < s->plan->n_graphs && status == ONV_OK; g++) {
        if (s->start[g + 1] == s->start[g]) continue;
        onv_timeline t = {0};
        status = pack_timeline(s, g, &t, options, err);
        onv_timeline_cleanup(&t);
    }
    return status;
}

/* --- Runs -------------------------------------------------------------------------------------- */

static void add_block(session *s, uint32_t g, uint32_t first, onv_timeline *t)
{
    const onv_ort_graph *graph = &s->plan->graphs[g];
    s->block[g] = (uint32_t)t->buffers.count;
    t->buffers.at[t->buffers.count++] = onv_buffer_new(
        ONV_BUFFER_POOL, s->bytes[g], first + graph->first, first + graph->end - 1, "pattern");
}

/* Whether the temporaries of graph `g` lie in one block in this run. */
static bool has_block(const session *s, uint32_t g, uint32_t run)
{
    return g != NONE && s->has_pattern && s->bytes[g] > 0 && run > 0;
}

/* Outputs of the main graph and the copies of the inputs die with the run. */
static void add_buffer(session *s, uint32_t i, uint32_t run, uint32_t n_steps, onv_timeline *t)
{
    uint32_t first = run * n_steps, g = s->graph_of[i];
    onv_buffer b = s->path.buffers.at[i];
    if (b.kind == ONV_BUFFER_WORKSPACE && b.bytes == 0) return; /* not in this choice */
    b.first += first;
    b.stream = s->stream_of[i];
    bool ends = b.kind == ONV_BUFFER_ACTIVATION || b.kind == ONV_BUFFER_WORKSPACE;
    b.last = ends ? b.last + first : first + n_steps - 1;
    if (has_block(s, g, run)) {
        if (s->block[g] == NONE) add_block(s, g, first, t);
        b.within = s->block[g];
        b.offset = s->offsets[i];
    }
    t->buffers.at[t->buffers.count++] = b;
}

/* In the first run: the pattern of later iterations is asked for where the first one is over. */
static void add_later_iterations(session *s, onv_timeline *t)
{
    for (uint32_t g = 1; g < s->plan->n_graphs; g++) {
        const onv_ort_graph *graph = &s->plan->graphs[g];
        if (!graph->repeats || !has_block(s, g, 1)) continue;
        add_block(s, g, 0, t);
        onv_buffer *block = &t->buffers.at[t->buffers.count - 1];
        block->first = block->last = graph->end;
        block->is_transient = true;
    }
}

/* Inputs, the block of the main graph, what else there is. */
static void add_run(session *s, uint32_t run, uint32_t n_steps, onv_timeline *t)
{
    const onv_ort_plan *plan = s->plan;
    for (uint32_t g = 0; g < plan->n_graphs; g++) s->block[g] = NONE;
    for (uint32_t k = 0; k < plan->n_feeds; k++) {
        uint32_t b = plan->of_value[plan->feeds[k].index];
        uint32_t i = b != NONE ? s->of_plan[b] : ONV_NO_BUFFER;
        if (i == ONV_NO_BUFFER || s->path.buffers.at[i].kind != ONV_BUFFER_INPUT) continue;
        add_buffer(s, i, run, n_steps, t);
    }
    if (has_block(s, 0, run)) add_block(s, 0, run * n_steps, t);
    if (run == 0) add_later_iterations(s, t);
    for (uint32_t i = 0; i < s->path.buffers.count; i++)
        if (s->path.buffers.at[i].kind != ONV_BUFFER_INPUT) add_buffer(s, i, run, n_steps, t);
}

static void add_regions(const session *s, uint32_t first, onv_timeline *t)
{
    uint32_t before = (uint32_t)t->regions.count;
    for (size_t i = 0; i < s->path.regions.count; i++) {
        onv_region r = s->path.regions.at[i];
        r.first += first;
        r.end += first;
        if (r.parent != ONV_NO_REGION) r.parent += before;
        t->regions.at[t->regions.count++] = r;
    }
}

static onv_status reserve(session *s, onv_error *err)
{
    size_t n = s->path.buffers.count, n_graphs = s->plan->n_graphs;
    s->graph_of = onv_heap_calloc(n + 1, sizeof *s->graph_of);
    s->stream_of = onv_heap_calloc(n + 1, sizeof *s->stream_of);
    s->offsets = onv_heap_calloc(n + 1, sizeof *s->offsets);
    s->members = onv_heap_calloc(n + 1, sizeof *s->members);
    s->bytes = onv_heap_calloc(n_graphs + 1, sizeof *s->bytes);
    s->block = onv_heap_calloc(n_graphs + 1, sizeof *s->block);
    s->start = onv_heap_calloc(n_graphs + 2, sizeof *s->start);
    bool good = s->graph_of != NULL && s->stream_of != NULL && s->offsets != NULL &&
                s->members != NULL && s->bytes != NULL && s->block != NULL && s->start != NULL;
    return good ? ONV_OK : onv_fail_memory(err);
}

static onv_status add_runs(session *s, uint32_t n_runs, const onv_alloc_options *options,
                           onv_timeline *t, onv_error *err)
{
    onv_timeline one = onv_ort_plan_timeline(s->plan);
    one.takes_least = s->plan->takes_least;
    uint32_t n_steps = s->plan->live->timeline.steps.count;
    s->of_plan = onv_heap_calloc((size_t)s->plan->count + 1, sizeof *s->of_plan);
    if (s->of_plan == NULL) return onv_fail_memory(err);
    ONV_TRY(onv_timeline_path(&one, &s->path, s->of_plan, err));
    ONV_TRY(reserve(s, err));
    size_t each = s->path.buffers.count + 2 * (size_t)s->plan->n_graphs;
    if (!onv_vec_reserve(&t->buffers, each * n_runs) ||
        !onv_vec_reserve(&t->regions, s->path.regions.count * n_runs))
        return onv_fail_memory(err);
    ONV_TRY(pack(s, options, err));
    for (uint32_t run = 0; run < n_runs; run++) {
        add_run(s, run, n_steps, t);
        add_regions(s, run * n_steps, t);
        end_streams(s, run * n_steps, t);
    }
    return ONV_OK;
}

onv_status onv_ort_add_runs(const onv_ort_plan *plan, uint32_t n_runs,
                            const onv_alloc_options *options, onv_timeline *t, onv_error *err)
{
    session s = {.plan = plan, .has_pattern = plan->settings->enable_mem_pattern != 0};
    onv_status status = add_runs(&s, n_runs, options, t, err);
    onv_timeline_cleanup(&s.path);
    onv_heap_free(s.of_plan);
    onv_heap_free(s.graph_of);
    onv_heap_free(s.stream_of);
    onv_heap_free(s.offsets);
    onv_heap_free(s.members);
    onv_heap_free(s.bytes);
    onv_heap_free(s.block);
    onv_heap_free(s.start);
    return status;
}
