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
    uint32_t made;   /* the first buffer that each of its iterations makes; NONE */
    bool stacks;     /* it keeps slices */
} loop;

/* A step of the path. */
typedef struct place {
    uint32_t loop; /* the innermost one */
    uint32_t at;   /* within an iteration of it */
    uint8_t ends;  /* streams that end behind it */
} place;

/* A buffer of the path. */
typedef struct held {
    uint64_t offset; /* in its pattern */
    uint32_t graph;  /* whose pattern holds it; NONE */
    uint32_t owner;  /* the loop that its graph runs in */
    uint32_t next_member,
        next_made;  /* the next ones of that pattern, of the loop that makes it; NONE */
    uint8_t stream; /* of the kernels of its graph */
    uint8_t life;
} held;

/* The memory pattern of a graph. */
typedef struct pattern {
    uint64_t bytes;
    uint64_t began; /* the graph's first execution; 0: none yet */
    uint64_t made;  /* the execution that it has a block in, */
    uint32_t block; /* which is that buffer */
    uint32_t first; /* of its members; NONE */
} pattern;

typedef struct session {
    onv_arena arena;
    const onv_ort_plan *plan;
    bool has_pattern;
    onv_timeline path;  /* one run, of every If one branch */
    uint32_t *of_plan;  /* by buffer of the plan: that of the path */
    held *held;         /* by buffer of the path */
    place *places;      /* by step of the path */
    pattern *patterns;  /* by graph */
    loop *loops;        /* by region, then the run */
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
    const loop none = {NONE, NONE, NONE, .count = 1, .number = NONE, .made = NONE};
    s->run = (uint32_t)s->path.regions.count;
    s->loops[s->run] = none;
    for (uint32_t i = 0; i < s->path.steps.count; i++) s->places[i].loop = s->run;
    for (uint32_t r = 0; r < s->run; r++) {
        const onv_region *region = &s->path.regions.at[r];
        if (region->kind != ONV_REGION_LOOP || region->first == region->end) continue;
        s->loops[r] = none;
        s->loops[r].up = loop_around(s, region->parent);
        loop *up = &s->loops[s->loops[r].up];
        s->loops[r].next = up->inner;
        up->inner = r;
        ONV_WORK(region->end - region->first);
        for (uint32_t i = region->first; i < region->end; i++) s->places[i].loop = r;
    }
    return ONV_OK;
}

/* The loop directly within `around` that a step is in; NONE: the step is its own. */
static uint32_t inner_loop(const session *s, uint32_t step, uint32_t around)
{
    uint32_t r = s->places[step].loop;
    if (r == around) return NONE;
    while (s->loops[r].up != around) r = s->loops[r].up;
    return r;
}

static uint32_t count_iterations(session *s, uint32_t r)
{
    uint64_t n = s->path.regions.at[r].trips, length = s->loops[r].length + (uint64_t)1;
    uint64_t most = s->loops[r].stacks ? MOST_ITERATIONS : WITHOUT_SLICES,
             fit = 1 + s->n_more / length;
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
            s->places[i++].at = at++;
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
    uint32_t r = s->places[step].loop, at = s->places[step].at;
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
            step.ends = s->places[i++].ends;
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
        uint8_t *ends = &s->places[graph->end - 1].ends;
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
        held *h = &s->held[to];
        if (plan->buffers[i].stream != ONV_ORT_NO_STREAM) h->stream = stream_of(plan, graph);
        if (plan->life[i] > h->life) h->life = plan->life[i];
        h->owner = loop_around(s, plan->graphs[graph].region);
        s->loops[h->owner].stacks |=
            plan->life[i] == ONV_ORT_SLICES || plan->life[i] == ONV_ORT_GATHERED;
    }
}

/* Lists by pattern, where what a branch makes is part of the graph that it is handed to, and by the loop that makes them: what
 * there is once, the one around. */
static void list_buffers(session *s)
{
    const onv_ort_plan *plan = s->plan;
    for (uint32_t i = 0; i < s->path.buffers.count; i++) s->held[i].graph = NONE;
    for (uint32_t i = 0; i < plan->count; i++)
        if (s->of_plan[i] != ONV_NO_BUFFER && is_temporary(plan, i))
            s->held[s->of_plan[i]].graph = plan->graph_of[i].index;
    for (uint32_t g = 0; g < plan->n_graphs; g++) s->patterns[g].first = NONE;
    for (uint32_t i = (uint32_t)s->path.buffers.count; i-- > 0;) {
        held *h = &s->held[i];
        uint32_t maker = h->life < ONV_ORT_ONCE ? h->owner : s->loops[h->owner].up;
        if (maker != NONE) {
            h->next_made = s->loops[maker].made;
            s->loops[maker].made = i;
        }
        if (h->graph == NONE) continue;
        h->next_member = s->patterns[h->graph].first;
        s->patterns[h->graph].first = i;
    }
}

static onv_status pack_timeline(session *s, uint32_t g, onv_timeline *t,
                                const onv_alloc_options *options, onv_error *err)
{
    const onv_ort_graph *graph = &s->plan->graphs[g];
    onv_placement packed;
    for (uint32_t i = graph->first; i < graph->end; i++)
        if (!onv_vec_push(&t->steps, (onv_step){.node = ONV_NO_NODE})) return onv_fail_memory(err);
    for (uint32_t i = s->patterns[g].first; i != NONE; i = s->held[i].next_member) {
        onv_buffer b = s->path.buffers.at[i];
        b.first -= graph->first;
        b.last -= graph->first;
        if (!onv_vec_push(&t->buffers, b)) return onv_fail_memory(err);
    }
    ONV_TRY(onv_alloc_run(t, onv_alloc_model_find("pattern"), options, &packed, err));
    s->patterns[g].bytes = packed.figures.reserved_peak;
    const onv_place *next = packed.places.at;
    for (uint32_t i = s->patterns[g].first; i != NONE; i = s->held[i].next_member)
        s->held[i].offset = next++->offset;
    onv_placement_cleanup(&packed);
    return ONV_OK;
}

static onv_status pack(session *s, const onv_alloc_options *options, onv_error *err)
{
    onv_status status = ONV_OK;
    for (uint32_t g = 0; g < s->plan->n_graphs && status == ONV_OK; g++) {
        if (s->patterns[g].first == NONE) continue;
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
    if (g == NONE || !s->has_pattern || s->patterns[g].bytes == 0 ||
        s->plan->graphs[g].has_no_pattern)
        return false;
    if (s->patterns[g].began == 0) s->patterns[g].began = s->execution;
    return s->patterns[g].began < s->execution;
}

static bool add_block(session *s, uint32_t g, onv_timeline *t)
{
    const onv_ort_graph *graph = &s->plan->graphs[g];
    s->patterns[g].made = s->execution;
    s->patterns[g].block = (uint32_t)t->buffers.count;
    return onv_vec_push(&t->buffers, onv_buffer_new(ONV_BUFFER_POOL, s->patterns[g].bytes,
                                                    step_at(s, graph->first, false),
                                                    step_at(s, graph->end - 1, true), "pattern"));
}

/* What iterations hold that are not made one by one. */
static uint64_t bytes_of_others(const session *s, uint32_t i)
{
    const onv_buffer *b = &s->path.buffers.at[i];
    const onv_live *live = s->plan->live;
    uint32_t owner = s->held[i].owner, n = s->loops[owner].count;
    uint64_t bytes = 0;
    if (n == 1) return b->bytes;
    if (s->held[i].life == ONV_ORT_BEFORE) return 0;
    uint64_t each = live->timeline.buffers.at[live->of_value[b->value.index]].bytes;
    return onv_u64_mul(s->path.regions.at[owner].trips - n, each, &bytes) ? bytes : UINT64_MAX;
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
    const held *h = &s->held[i];
    onv_ort_life life = (onv_ort_life)h->life;
    onv_buffer b = s->path.buffers.at[i];
    bool is_of_others = life == ONV_ORT_BEFORE || life == ONV_ORT_SLICES;
    if (is_of_others) b.bytes = bytes_of_others(s, i);
    if ((b.kind == ONV_BUFFER_WORKSPACE || is_of_others) && b.bytes == 0) return true;
    b.stream = h->stream;
    b.last = last_step(s, r, &b, life);
    b.first = step_at(s, b.first, false);
    if (has_block(s, h->graph)) {
        const pattern *of = &s->patterns[h->graph];
        if (of->made != s->execution && !add_block(s, h->graph, t)) return false;
        b.within = of->block;
        b.offset = h->offset;
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
    for (uint32_t i = s->loops[r].made; i != NONE; i = s->held[i].next_made)
        if (s->path.buffers.at[i].kind != ONV_BUFFER_INPUT && !add_buffer(s, r, i, t)) return false;
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

static onv_status find_all(session *s, const onv_alloc_options *options, onv_error *err)
{
    onv_arena *a = &s->arena;
    s->held = ONV_ARENA_ARRAY(a, held, s->path.buffers.count + 1);
    s->places = ONV_ARENA_ARRAY(a, place, s->path.steps.count + (size_t)1);
    s->loops = ONV_ARENA_ARRAY(a, loop, s->path.regions.count + 2);
    s->patterns = ONV_ARENA_ARRAY(a, pattern, s->plan->n_graphs + (size_t)1);
    if (a->failed) return onv_fail_memory(err);
    ONV_TRY(find_loops(s));
    find_ends(s);
    find_owners(s);
    list_buffers(s);
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
