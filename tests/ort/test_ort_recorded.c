/* The plan of buffers, the memory pattern and the arena against ONNX Runtime itself: what its CPU
 * provider allocated in runs of the samples (recorded/record.py says how it was recorded).
 *
 * The recording holds the planned buffers and what kernels take for themselves while they run, with
 * no mark to tell the two apart. They agree if the planned buffers, in order and with their sizes
 * (rounded up to 64 bytes), can be found in the recording, each freed between the same two others,
 * and what is left over looks like scratch: it comes and goes with no planned buffer freed in
 * between. */
#include "alloc/trace_csv.h"
#include "ort/ort.h"
#include "support/flow.h"
#include "support/test.h"

enum { ENOUGH = 3, MAX_EVENTS = 4096, MAX_REGIONS = 16, RUNS = 3 };

typedef struct run_events {
    onv_trace_event at[MAX_EVENTS];
    size_t count;
} run_events;

typedef struct recording {
    run_events run;     /* every buffer an allocation */
    run_events pattern; /* the temporaries are the first one */
    uint64_t regions[RUNS][MAX_REGIONS];
    size_t n_regions[RUNS];
} recording;

static void read_event(run_events *to, const char *line)
{
    unsigned id;
    unsigned long long bytes;
    assert_true(to->count < MAX_EVENTS);
    onv_trace_event *e = &to->at[to->count++];
    if (sscanf(line, "alloc,%u,%llu", &id, &bytes) == 2)
        *e = (onv_trace_event){.id = id, .bytes = bytes};
    else if (sscanf(line, "free,%u", &id) == 1)
        *e = (onv_trace_event){.id = id, .is_free = true};
    else
        fail_msg("no event: %s", line);
    assert_true(id < MAX_EVENTS);
}

static void read_line(recording *r, char *section, const char *line)
{
    if (line[0] == '#') return;
    if (line[0] == '[') {
        snprintf(section, 32, "%.31s", line);
    } else if (strncmp(section, "[run]", 5) == 0) {
        read_event(&r->run, line);
    } else if (strncmp(section, "[pattern]", 9) == 0) {
        read_event(&r->pattern, line);
    } else {
        int run = section[strlen("[regions ")] - '1';
        assert_in_range(run, 0, RUNS - 1);
        assert_true(r->n_regions[run] < MAX_REGIONS);
        r->regions[run][r->n_regions[run]++] = strtoull(line, NULL, 10);
    }
}

static recording *read_recording(const char *name)
{
    char path[512], line[256], section[32] = "";
    snprintf(path, sizeof path, "%s/tests/ort/recorded/%s.csv", ONV_SOURCE_DIR, name);
    FILE *file = fopen(path, "r");
    if (file == NULL) fail_msg("%s cannot be read", path);
    recording *r = calloc(1, sizeof *r);
    assert_non_null(r);
    while (fgets(line, sizeof line, file) != NULL) read_line(r, section, line);
    fclose(file);
    assert_true(r->run.count > 0 && r->pattern.count > 0);
    return r;
}

/* --- The plan ---------------------------------------------------------------------------------- */

/* What we say a run asks for. */
typedef struct planned_events {
    onv_trace_event *events;
    size_t count;
    uint32_t n_ids;
} planned_events;

static planned_events events_of(const onv_timeline *t)
{
    onv_timeline_events events = {0};
    onv_error err = {0};
    assert_int_equal(onv_timeline_list_events(t, &events, &err), ONV_OK);
    planned_events to = {.events = calloc(events.count, sizeof *to.events),
                         .count = events.count,
                         .n_ids = (uint32_t)t->buffers.count};
    assert_non_null(to.events);
    for (size_t i = 0; i < events.count; i++) {
        const onv_timeline_event *e = &events.at[i];
        const onv_buffer *b = &t->buffers.at[e->buffer];
        to.events[i] = (onv_trace_event){.id = e->buffer,
                                         .bytes = e->is_free ? 0 : b->bytes,
                                         .is_free = e->is_free,
                                         .label = b->label};
    }
    onv_vec_cleanup(&events);
    return to;
}

static onv_timeline runs_of(const flow *f, const onv_ort_plan *plan, uint32_t n_runs)
{
    onv_timeline t = {0};
    onv_error err = {0};
    assert_int_equal(onv_ort_add_runs(plan, n_runs, NULL, &t, &err), ONV_OK);
    return t;
}

typedef struct matching {
    const run_events *run;
    const planned_events *trace;
    size_t at;                     /* the next event of the recording */
    uint32_t recorded[MAX_EVENTS]; /* by id of the trace */
    bool is_planned[MAX_EVENTS];   /* by id of the recording */
    bool is_due[MAX_EVENTS];       /* by id of the recording: its last use is over */
    uint32_t n_due, n_matched, n_scratch, n_open_scratch;
} matching;

/* How many allocations happen while the one at `from` is held; a few tell a buffer from scratch. */
static size_t held_through(const onv_trace_event *events, size_t count, size_t from)
{
    size_t n = 0;
    for (size_t i = from + 1; i < count && n < ENOUGH; i++) {
        if (events[i].is_free && events[i].id == events[from].id) return n;
        n += !events[i].is_free && events[i].bytes > 0;
    }
    return n;
}

static void pass_recorded(matching *m)
{
    const onv_trace_event *e = &m->run->at[m->at++];
    if (!m->is_planned[e->id]) {
        m->n_scratch += !e->is_free;
        m->n_open_scratch += e->is_free ? -1u : 1u;
        return;
    }
    if (!m->is_due[e->id])
        fail_msg("event %zu: planned buffer %u is freed too early, %u matched", m->at, e->id,
                 m->n_matched);
    if (m->n_open_scratch > 0) fail_msg("event %zu: an allocation outlives its node", m->at);
    m->is_due[e->id] = false;
    m->n_due--;
}

static bool is_this(const matching *m, size_t planned)
{
    const onv_trace_event *want = &m->trace->events[planned], *have = &m->run->at[m->at];
    return !have->is_free && m->n_due == 0 && have->bytes == (want->bytes + 63) / 64 * 64 &&
           held_through(m->run->at, m->run->count, m->at) >=
               held_through(m->trace->events, m->trace->count, planned);
}

static void match_alloc(matching *m, size_t planned)
{
    const onv_trace_event *want = &m->trace->events[planned];
    while (m->at < m->run->count && !is_this(m, planned)) pass_recorded(m);
    if (m->at == m->run->count)
        fail_msg("'%s' of %llu bytes has no buffer in the recording (%u others have)", want->label,
                 (unsigned long long)want->bytes, m->n_matched);
    uint32_t id = m->run->at[m->at++].id;
    m->recorded[want->id] = id;
    m->is_planned[id] = true;
    m->n_matched++;
}

/* Returns how many allocations were scratch. */
static uint32_t expect_same_buffers(const run_events *run, const onv_ort_plan *plan,
                                    const planned_events *trace)
{
    matching *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->run = run;
    m->trace = trace;
    uint32_t n_outputs = 0, n_scratch;
    for (uint32_t i = 0; i < plan->count; i++)
        n_outputs += plan->buffers[i].kind == ONV_BUFFER_OUTPUT && plan->buffers[i].bytes > 0;
    uint64_t *bytes = calloc(trace->n_ids, sizeof *bytes);
    for (size_t i = 0; i < trace->count; i++) {
        const onv_trace_event *e = &trace->events[i];
        if (!e->is_free) {
            bytes[e->id] = e->bytes;
            if (e->bytes > 0) match_alloc(m, i);
        } else if (bytes[e->id] > 0) {
            m->is_due[m->recorded[e->id]] = true;
            m->n_due++;
        }
    }
    while (m->at < run->count) pass_recorded(m);
    assert_int_equal(m->n_open_scratch, 0);
    assert_int_equal(m->n_due, n_outputs); /* the caller has them when the run ends */
    n_scratch = m->n_scratch;
    free(bytes);
    free(m);
    return n_scratch;
}

/* --- The arena --------------------------------------------------------------------------------- */

/* One run; the caller drops the outputs, which are what is left. */
static void feed(onv_allocator *arena, const run_events *run)
{
    onv_error err = {0};
    bool *held = calloc(MAX_EVENTS, sizeof *held);
    assert_non_null(held);
    for (size_t i = 0; i < run->count; i++) {
        assert_int_equal((run->at[i].is_free
                              ? onv_allocator_free(arena, run->at[i].id, &err)
                              : onv_allocator_alloc(arena, run->at[i].id, run->at[i].bytes, &err)),
                         ONV_OK);
        held[run->at[i].id] = !run->at[i].is_free;
    }
    for (uint32_t id = 0; id < MAX_EVENTS; id++)
        if (held[id]) assert_int_equal(onv_allocator_free(arena, id, &err), ONV_OK);
    free(held);
}

/* Our arena, asked for what ONNX Runtime's was asked for, takes the same regions from the device:
 * in the first run, and in the two after it, where the pattern is one block. */
static void expect_same_regions(const recording *r)
{
    onv_error err = {0};
    onv_allocator arena;
    onv_placement ours = {0};
    assert_int_equal(onv_allocator_init(&arena, onv_alloc_model_find("bfc"), NULL, &err), ONV_OK);
    assert_true(onv_vec_reserve(&ours.places, MAX_EVENTS));
    arena.record = &ours;
    for (int run = 0; run < RUNS; run++) {
        ours.segments.count = 0;
        feed(&arena, run == 0 ? &r->run : &r->pattern);
        assert_int_equal(ours.segments.count, r->n_regions[run]);
        for (size_t i = 0; i < ours.segments.count; i++)
            assert_int_equal(ours.segments.at[i].bytes, r->regions[run][i]);
    }
    onv_placement_cleanup(&ours);
    onv_allocator_cleanup(&arena);
}

/* --- The samples ------------------------------------------------------------------------------- */

typedef struct sample {
    const char *name, *dims;
    bool fills_arena; /* before the first run: its ConvTransposes keep packed weights there */
} sample;

static void agrees(void **state)
{
    const sample *s = *state;
    OWNED_FLOW f;
    onv_ort_plan plan;
    onv_error err = {0};
    char file[64];
    recording *r = read_recording(s->name);
    snprintf(file, sizeof file, "%s.onnx", s->name);
    onv_rewritten rewritten;
    flow_open(&f, flow_sample(file), s->dims, "ort");
    const onv_graph *graph = &f.model.graphs.at[0];
    for (uint32_t i = 0; i < graph->n_inputs; i++) { /* free dimensions were overridden */
        onv_value *value = &f.model.values.at[graph->inputs[i].index];
        value->declared = &value->type;
    }
    onv_live live = flow_rewrite(&f, ONV_PROVIDER_CPU, ONV_REWRITE_DISABLED, &rewritten);
    const onv_ort_session session = {.provider = ONV_ORT_CPU, .seen = rewritten.seen};
    assert_int_equal(onv_ort_plan_compute(&rewritten.model, &live, &session, &plan, &err), ONV_OK);
    onv_timeline t = runs_of(&f, &plan, 1);
    planned_events trace = events_of(&t);
    uint32_t n_scratch = expect_same_buffers(&r->run, &plan, &trace);
    free(trace.events);
    onv_timeline_cleanup(&t);
    t = runs_of(&f, &plan, 2);
    uint64_t pattern = 0;
    for (size_t i = 0; i < t.buffers.count; i++)
        if (t.buffers.at[i].kind == ONV_BUFFER_POOL) pattern = t.buffers.at[i].bytes;
    onv_timeline_cleanup(&t);
    assert_int_equal(pattern, r->pattern.at[0].bytes);
    if (!s->fills_arena) expect_same_regions(r);
    print_message("%s: %u buffers, %llu values share; %u of scratch\n", s->name, plan.count,
                  (unsigned long long)plan.reused, n_scratch);
    onv_rewritten_cleanup(&rewritten);
    free(r);
}

int main(void)
{
    static sample samples[] = {
        {.name = "resnet18", .dims = "batch=1"},
        {.name = "mobilenet_v2", .dims = "batch=1"},
        {.name = "densenet201", .dims = "batch=1"},
        {.name = "efficientnet_b0", .dims = "batch=1"},
        {.name = "convnext_tiny", .dims = "batch=1"},
        {.name = "mobilenet_v3_small", .dims = "batch=2"},
        {.name = "unet", .dims = "batch=1 height=64 width=96", .fills_arena = true},
        {.name = "vit-small-train", .dims = "batch=1"},
        {.name = "bert", .dims = "batch=1 sequence=16"},
        {.name = "gpt2", .dims = "batch=1 sequence=4 past=3 total=7"},
    };
    struct CMUnitTest tests[sizeof samples / sizeof samples[0]];
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++)
        tests[i] = (struct CMUnitTest){
            .name = samples[i].name, .test_func = agrees, .initial_state = &samples[i]};
    return cmocka_run_group_tests_name("ort.ort_recorded", tests, NULL, NULL);
}
