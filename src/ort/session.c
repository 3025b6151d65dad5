/* Runs of a session: the plan's buffers, run after run, iteration after iteration, with a memory pattern for
 * every graph. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/quota.h"
#include "ort/ort.h"

#define NONE UINT32_MAX

/* A body of Loop or Scan, or the run itself. */
typedef struct loop {
    uint32_t up;     /* the loop around it; NONE: the run has none */
    uint32_t inner;  /* the first of the loops directly in it; NONE */
    uint32_t next;   /* the next one in the same loop; NONE */
    uint32_t start;  /* of its first iteration, in steps within one of the loop around it */
    uint32_t length; /* of an iteration, in steps */
    uint32_t count;  /* iterations that are made one by one */
    uint32_t base;   /* the step of the timeline that the current iteration begins with */
    uint32_t number; /* of the current iteration; NONE: it does not run now */
} loop;

typedef struct session {
    onv_arena arena;
    const onv_ort_plan *plan;
    bool has_pattern;
    onv_timeline path;  /* one run, of every If one branch */
    uint32_t *of_plan;  /* by buffer of the plan: that of the path */
    uint32_t *graph_of; /* by buffer of the path: whose pattern holds it, or NONE */
    uint8_t *stream_of; /* by buffer of the path: of the kernels of its graph */
    uint8_t *life;      /* by buffer of the path */
    uint32_t *owner;    /* by buffer of the path: the loop that its graph runs in */
    uint64_t *offsets;  /* by buffer of the path, in its pattern */
    uint64_t *bytes;    /* by graph: of its pattern */
    uint32_t *block;    /* by graph: its pattern in the execution `made` */
    uint64_t *made;     /* by graph */
    uint64_t *began;    /* by graph: the first execution; 0: none yet */
    uint32_t *members;  /* buffers of the path, by graph */
    uint32_t *start;    /* by graph: of its members */
    loop *loops;        /* by region, then the run */
    bool *stacks;       /* by region: a loop that keeps slices */
    uint32_t *owned;    /* buffers of the path, by the loop that makes them in each iteration */
    uint32_t *first;    /* by region, then the run: of `owned` */
    uint32_t *loop_of;  /* by step: the innermost loop */
    uint32_t *place;    /* by step: within an iteration of it */
    uint8_t *ends;      /* by step: streams that end behind it */
    uint32_t run;       /* the last of the loops */
    uint32_t n_more;    /* steps that iterations may still add to a run */
    uint64_t execution; /* counts runs and iterations, from 1 on */
} session;

onv_timeline onv_ort_plan_timeline(const onv_ort_plan *plan)
{
    onv_timeline t = plan->live->timeline;
    t.buffers.at = plan->buffers;
    t.buffers.count = plan->count;
    return t;
}

/* --- Iterations -------------------------------------------------------------------------------- */

/* More iterations than these are not made one by one: of slices that they keep there is one request; where nothing is
 * kept, they ask for what those before asked for. */
enum { MOST_ITERATIONS = 256, WITHOUT_SLICES = 4, MOST_STEPS = 1 << 14 };

static uint32_t loop_around(const session *s, uint32_t region)
{
    while (region != ONV_NO_REGION && s->path.regions.at[region].kind != ONV_REGION_LOOP)
        region = s->path.regions.at[region].parent;
    return region != ONV_NO_REGION ? region : s->run;
}

static onv_status find_loops(session *s)
{
    const loop none = {NONE, NONE, NONE, .count = 1, .number = NONE};
    s->run = (uint32_t)s->path.regions.count;
    s->loops[s->run] = none;
    for (uint32_t i = 0; i < s->path.steps.count; i++) s->loop_of[i] = s->run;
    for (uint32_t r = 0; r < s->run; r++) {
        const onv_region *region = &s->path.regions.at[r];
        if (region->kind != ONV_REGION_LOOP || region->first == region->end) continue;
        s->loops[r] = none;
        s->loops[r].up = loop_around(s, region->parent);
        loop *up = &s->loops[s->loops[r].up];
        s->loops[r].next = up->inner;
        up->inner = r;
        ONV_WORK(region->end - region->first);
        for (uint32_t i = region->first; i < region->end; i++) s->loop_of[i] = r;
    }
    return ONV_OK;
}

/* The loop directly within `around` that a step is in; NONE: the step is its own. */
static uint32_t inner_loop(const session *s, uint32_t step, uint32_t around)
{
    uint32_t r = s->loop_of[step];
    if (r == around) return NONE;
    while (s->loops[r].up != around) r = s->loops[r].up;
    return r;
}

static uint32_t count_iterations(session *s, uint32_t r)
{
    uint64_t n = s->path.regions.at[r].trips, length = s->loops[r].length + (uint64_t)1;
    uint64_t most = s->stacks[r] ? MOST_ITERATIONS : WITHOUT_SLICES, fit = 1 + s->n_more / length;
    n = n > most ? most : n;
    n = n > fit ? fit : n < 1 ? 1 : n;
    s->n_more -= (uint32_t)((n - 1) * s->loops[r].length);
    return (uint32_t)n;
}

/* Places of steps, and how long iterations are, of inner loops first. */
static onv_status lay_out(session *s, uint32_t r, uint32_t first, uint32_t end)
{
    uint32_t at = 0;
    ONV_WORK(end - first);
    for (uint32_t i = first; i < end;) {
        uint32_t inner = inner_loop(s, i, r);
        if (inner == NONE) {
            s->place[i++] = at++;
            continue;
        }
        const onv_region *region = &s->path.regions.at[inner];
        ONV_TRY(lay_out(s, inner, region->first, region->end));
        s->loops[inner].start = at;
        s->loops[inner].count = count_iterations(s, inner);
        at += s->loops[inner].count * s->loops[inner].length;
        i = region->end;
    }
    s->loops[r].length = at;
    return ONV_OK;
}

/* The first or the last time that a step runs in the iterations that run now. */
static uint32_t step_at(const session *s, uint32_t step, bool is_last)
{
    uint32_t r = s->loop_of[step], at = s->place[step];
    for (; s->loops[r].number == NONE; r = s->loops[r].up) {
        const loop *l = &s->loops[r];
        at += l->start + (is_last ? (l->count - 1) * l->length : 0);
    }
    return s->loops[r].base + at;
}

static onv_status add_steps(const session *s, uint32_t r, uint32_t first, uint32_t end,
                            uint32_t run, bool is_again, onv_timeline *t)
{
    ONV_WORK(end - first);
    for (uint32_t i = first; i < end;) {
        uint32_t inner = inner_loop(s, i, r);
        if (inner == NONE) {
            onv_step step = s->path.steps.at[i];
            step.iteration = run;
            if (is_again) step.macs = 0; /* the first one has those of all */
            step.ends = s->ends[i++];
            t->steps.at[t->steps.count++] = step;
            continue;
        }
        const onv_region *region = &s->path.regions.at[inner];
        for (uint32_t n = 0; n < s->loops[inner].count; n++)
            ONV_TRY(add_steps(s, inner, region->first, region->end, run, is_again || n > 0, t));
        i = region->end;
    }
    return ONV_OK;
}

/* --- The memory pattern ------------------------------------------------------------------------ */

static bool is_temporary(const onv_ort_plan *plan, uint32_t i)
{
    return plan->buffers[i].kind == ONV_BUFFER_ACTIVATION && plan->life[i] == ONV_ORT_PLANNED;
}

/* What a run allocates is the stream's of its kernels; blocks of patterns, and what stays, are of none (0). Graphs that
 * stand deeper than there are streams share the last one. */
static uint8_t stream_of(const onv_ort_plan *plan, uint32_t graph)
{
    uint8_t stream = plan->graphs[graph].stream;
    return stream < ONV_N_STREAMS ? stream : ONV_N_STREAMS - 1;
}

/* Behind a run of a graph; the outermost one where several end. */
static void find_ends(const session *s)
{
    for (uint32_t g = 0; g < s->plan->n_graphs; g++) {
        const onv_ort_graph *graph = &s->plan->graphs[g];
        if (graph->first == graph->end || graph->stream >= ONV_N_STREAMS || graph->is_body)
            continue;
        uint8_t *ends = &s->ends[graph->end - 1];
        if (*ends == 0 || graph->stream < *ends) *ends = graph->stream;
    }
}

/* Of each buffer of the path: its stream, how long it stays, the loop that makes it. */
static void find_owners(session *s)
{
    const onv_ort_plan *plan = s->plan;
    for (uint32_t i = 0; i < plan->count; i++) {
        uint32_t last = i, to = s->of_plan[i];
        while (plan->buffers[last].becomes != ONV_NO_BUFFER) last = plan->buffers[last].becomes;
        if (to == ONV_NO_BUFFER) continue;
        uint32_t graph = plan->graph_of[last].index;
        if (plan->buffers[i].stream != ONV_ORT_NO_STREAM) s->stream_of[to] = stream_of(plan, graph);
        if (plan->life[i] > s->life[to]) s->life[to] = plan->life[i];
        s->owner[to] = loop_around(s, plan->graphs[graph].region);
        s->stacks[s->owner[to]] |=
            plan->life[i] == ONV_ORT_SLICES || plan->life[i] == ONV_ORT_GATHERED;
    }
}

/* Of every buffer the group that `of` says, NONE: none; in the order of the groups, each in the order of the path. */
static void group(const session *s, const uint32_t *of, uint32_t n_groups, uint32_t *start,
                  uint32_t *sorted)
{
    for (uint32_t i = 0; i < s->path.buffers.count; i++)
        if (of[i] != NONE) start[of[i] + 1]++;
    for (uint32_t g = 0; g < n_groups; g++) start[g + 1] += start[g];
    for (uint32_t i = 0; i < s->path.buffers.count; i++)
        if (of[i] != NONE) sorted[start[of[i]]++] = i;
    for (uint32_t g = n_groups; g > 0; g--) start[g] = start[g - 1];
    start[0] = 0;
}

/* What a branch makes is part of the graph that it is handed to. */
static void find_members(session *s)
{
    const onv_ort_plan *plan = s->plan;
    for (uint32_t i = 0; i < s->path.buffers.count; i++) s->graph_of[i] = NONE;
    for (uint32_t i = 0; i < plan->count; i++)
        if (s->of_plan[i] != ONV_NO_BUFFER && is_temporary(plan, i))
            s->graph_of[s->of_plan[i]] = plan->graph_of[i].index;
    group(s, s->graph_of, plan->n_graphs, s->start, s->members);
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

/* Whether a graph runs once more in this session: then its temporaries lie in one block. */
static bool has_block(session *s, uint32_t g)
{
    if (g == NONE || !s->has_pattern || s->bytes[g] == 0 || s->plan->graphs[g].has_no_pattern)
        return false;
    if (s->began[g] == 0) s->began[g] = s->execution;
    return s->began[g] < s->execution;
}

static bool add_block(session *s, uint32_t g, onv_timeline *t)
{
    const onv_ort_graph *graph = &s->plan->graphs[g];
    s->made[g] = s->execution;
    s->block[g] = (uint32_t)t->buffers.count;
    return onv_vec_push(&t->buffers, onv_buffer_new(ONV_BUFFER_POOL, s->bytes[g],
                                                    step_at(s, graph->first, false),
                                                    step_at(s, graph->end - 1, true), "pattern"));
}

/* What iterations hold that are not made one by one. */
static uint64_t bytes_of_others(const session *s, uint32_t i)
{
    const onv_buffer *b = &s->path.buffers.at[i];
    const onv_live *live = s->plan->live;
    uint32_t n = s->loops[s->owner[i]].count;
    uint64_t bytes = 0;
    if (n == 1) return b->bytes;
    if (s->life[i] == ONV_ORT_BEFORE) return 0;
    uint64_t each = live->timeline.buffers.at[live->of_value[b->value.index]].bytes;
    return onv_u64_mul(s->path.regions.at[s->owner[i]].trips - n, each, &bytes) ? bytes
                                                                                : UINT64_MAX;
}

/* Outputs of the main graph and the copies of the inputs die with the run; a state with the next iteration, the last two
 * with their Loop. */
static uint32_t last_step(const session *s, uint32_t r, const onv_buffer *b, onv_ort_life life)
{
    const loop *l = &s->loops[r], *run = &s->loops[s->run];
    if (b->kind != ONV_BUFFER_ACTIVATION && b->kind != ONV_BUFFER_WORKSPACE)
        return run->base + run->length - 1;
    if ((life == ONV_ORT_STATE && l->number + 2 < l->count) ||
        (life == ONV_ORT_GATHERED && l->number + 1 < l->count))
        return l->base + 2 * l->length - 1;
    return step_at(s, b->last, true);
}

/* The elements of a sequence but the last one; iterations that are made one by one are the last ones. */
static bool add_elements(const session *s, uint32_t r, onv_buffer b, onv_timeline *t)
{
    enum { MOST = 64 }; /* in requests of their own */
    const loop *l = &s->loops[r];
    uint64_t trips = s->path.regions.at[r].trips, more = l->number;
    if (trips > l->count) more += trips - l->count;
    for (; more > 0 && more <= MOST; more--)
        if (!onv_vec_push(&t->buffers, b)) return false;
    if (more > 0 && !onv_u64_mul(b.bytes, more, &b.bytes)) b.bytes = UINT64_MAX;
    return more == 0 || onv_vec_push(&t->buffers, b);
}

static bool add_buffer(session *s, uint32_t r, uint32_t i, onv_timeline *t)
{
    uint32_t g = s->graph_of[i];
    onv_ort_life life = (onv_ort_life)s->life[i];
    onv_buffer b = s->path.buffers.at[i];
    bool is_of_others = life == ONV_ORT_BEFORE || life == ONV_ORT_SLICES;
    if (is_of_others) b.bytes = bytes_of_others(s, i);
    if ((b.kind == ONV_BUFFER_WORKSPACE || is_of_others) && b.bytes == 0) return true;
    b.stream = s->stream_of[i];
    b.last = last_step(s, r, &b, life);
    b.first = step_at(s, b.first, false);
    if (has_block(s, g)) {
        if (s->made[g] != s->execution && !add_block(s, g, t)) return false;
        b.within = s->block[g];
        b.offset = s->offsets[i];
    }
    if (life == ONV_ORT_GATHERED && !add_elements(s, r, b, t)) return false;
    return onv_vec_push(&t->buffers, b);
}

/* An iteration, or a run; and the loops in it. What is asked for in a step of an inner loop by an outer one comes first. */
static bool add_iteration(session *s, uint32_t r, onv_timeline *t)
{
    const onv_ort_plan *plan = s->plan;
    s->execution++;
    for (uint32_t k = 0; r == s->run && k < plan->n_feeds; k++) {
        uint32_t b = plan->of_value[plan->feeds[k].index];
        uint32_t i = b != NONE ? s->of_plan[b] : ONV_NO_BUFFER;
        if (i == ONV_NO_BUFFER || s->path.buffers.at[i].kind != ONV_BUFFER_INPUT) continue;
        if (!add_buffer(s, r, i, t)) return false;
    }
    if (r == s->run && has_block(s, 0) && !add_block(s, 0, t)) return false;
    for (uint32_t k = s->first[r]; k < s->first[r + 1]; k++)
        if (s->path.buffers.at[s->owned[k]].kind != ONV_BUFFER_INPUT &&
            !add_buffer(s, r, s->owned[k], t))
            return false;
    return true;
}

static bool add_loop(session *s, uint32_t r, onv_timeline *t)
{
    loop *l = &s->loops[r];
    bool good = true;
    l->base = l->up == NONE ? l->start : s->loops[l->up].base + l->start;
    for (l->number = 0; good && l->number < l->count; l->number++) {
        good = add_iteration(s, r, t);
        for (uint32_t i = l->inner; good && i != NONE; i = s->loops[i].next)
            good = add_loop(s, i, t);
        l->base += l->length;
    }
    l->number = NONE;
    return good;
}

static bool reserve(session *s)
{
    size_t n = s->path.buffers.count + 1, n_graphs = s->plan->n_graphs + (size_t)2;
    size_t n_loops = s->path.regions.count + 2, n_steps = s->path.steps.count + (size_t)1;
    onv_arena *a = &s->arena;
    s->graph_of = ONV_ARENA_ARRAY(a, uint32_t, n);
    s->stream_of = ONV_ARENA_ARRAY(a, uint8_t, n);
    s->life = ONV_ARENA_ARRAY(a, uint8_t, n);
    s->owner = ONV_ARENA_ARRAY(a, uint32_t, n);
    s->owned = ONV_ARENA_ARRAY(a, uint32_t, n);
    s->members = ONV_ARENA_ARRAY(a, uint32_t, n);
    s->offsets = ONV_ARENA_ARRAY(a, uint64_t, n);
    s->bytes = ONV_ARENA_ARRAY(a, uint64_t, n_graphs);
    s->made = ONV_ARENA_ARRAY(a, uint64_t, n_graphs);
    s->began = ONV_ARENA_ARRAY(a, uint64_t, n_graphs);
    s->block = ONV_ARENA_ARRAY(a, uint32_t, n_graphs);
    s->start = ONV_ARENA_ARRAY(a, uint32_t, n_graphs);
    s->loops = ONV_ARENA_ARRAY(a, loop, n_loops);
    s->stacks = ONV_ARENA_ARRAY(a, bool, n_loops);
    s->first = ONV_ARENA_ARRAY(a, uint32_t, n_loops);
    s->loop_of = ONV_ARENA_ARRAY(a, uint32_t, n_steps);
    s->place = ONV_ARENA_ARRAY(a, uint32_t, n_steps);
    s->ends = ONV_ARENA_ARRAY(a, uint8_t, n_steps);
    return !a->failed;
}

static onv_status find_all(session *s, const onv_alloc_options *options, onv_error *err)
{
    ONV_TRY(find_loops(s));
    find_ends(s);
    find_owners(s);
    /* What there is once is made by the loop around. */
    uint32_t *makers = ONV_ARENA_ARRAY(&s->arena, uint32_t, s->path.buffers.count + 1);
    if (makers == NULL) return onv_fail_memory(err);
    for (uint32_t i = 0; i < s->path.buffers.count; i++)
        makers[i] = s->life[i] < ONV_ORT_ONCE ? s->owner[i] : s->loops[s->owner[i]].up;
    group(s, makers, s->run + 1, s->first, s->owned);
    s->n_more = MOST_STEPS;
    ONV_TRY(lay_out(s, s->run, 0, s->path.steps.count));
    return pack(s, options, err);
}

static onv_status add_runs(session *s, uint32_t n_runs, const onv_alloc_options *options,
                           onv_timeline *t, onv_error *err)
{
    onv_timeline one = onv_ort_plan_timeline(s->plan);
    one.takes_least = s->plan->takes_least;
    s->of_plan = ONV_ARENA_ARRAY(&s->arena, uint32_t, s->plan->count + (size_t)1);
    if (s->of_plan == NULL) return onv_fail_memory(err);
    ONV_TRY(onv_timeline_path(&one, &s->path, s->of_plan, err));
    if (!reserve(s)) return onv_fail_memory(err);
    ONV_TRY(find_all(s, options, err));
    loop *run = &s->loops[s->run];
    if (run->length > UINT32_MAX / 2 / n_runs)
        return onv_fail(err, ONV_ERR_LIMIT, "the runtime would take too many steps");
    if (!onv_vec_reserve(&t->steps, (size_t)n_runs * run->length)) return onv_fail_memory(err);
    for (size_t i = 0; i < t->buffers.count; i++)
        t->buffers.at[i].last = n_runs * run->length - 1; /* weights */
    for (uint32_t i = 0; i < n_runs; i++) {
        ONV_TRY(add_steps(s, s->run, 0, s->path.steps.count, i, false, t));
        run->start = i * run->length;
        if (!add_loop(s, s->run, t)) return onv_fail_memory(err);
    }
    return ONV_OK;
}

onv_status onv_ort_add_runs(const onv_ort_plan *plan, uint32_t n_runs,
                            const onv_alloc_options *options, onv_timeline *t, onv_error *err)
{
    session s = {.plan = plan, .has_pattern = plan->settings->enable_mem_pattern != 0};
    onv_arena_init(&s.arena, SIZE_MAX);
    onv_status status = add_runs(&s, n_runs, options, t, err);
    onv_timeline_cleanup(&s.path);
    onv_arena_cleanup(&s.arena);
    return status;
}
