/* If, Loop and Scan: what is live when, on models small enough to count by hand and on random ones. */
#include "order/order_dag.h"
#include "support/capture.h"
#include "support/flow.h"
#include "support/nested.h"
#include "support/test.h"

#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1) << 20)

/* --- By hand ----------------------------------------------------------------------------------- */

typedef struct expected {
    const char *name, *dim;
    int64_t size; /* of the dim */
    uint64_t peak, step, macs, weights;
    const char *warning; /* the code of a diagnostic; NULL: none at all */
} expected;

static const expected table[] = {
    /* One branch runs: its 4 MiB and the condition. Both may run, so both keep a shape of 16 bytes. */
    {.name = "open-if", .peak = 4 * MIB + 1, .weights = 32, .warning = "open-branch"},
    {.name = "branches-and-more", .peak = 8 * MIB + 1, .warning = "open-branch"},
    /* X, Y, a slice and a temporary; s0 and r beside them, and the state once an iteration made it. */
    {.name = "scan", .peak = 196 * MIB + 12, .step = 1, .weights = 24},
    /* What 64 trips stack, X, one slice; the iteration's number and the condition. */
    {.name = "loop-stacks", .peak = 264 * MIB + 9, .weights = 8},
    /* X is the caller's until the loop is over; the state comes in and goes out. */
    {.name = "loop-multiplies", .peak = 48 * KIB + 9, .macs = 26214400, .weights = 16 * KIB + 8},
    {.name = "no-trips", .peak = 8 * KIB, .weights = 8},
    {.name = "loop-state", .peak = 12 * MIB + 1, .step = 1, .weights = 8},
    /* The body's input is x itself where no second iteration follows. */
    {.name = "loop-once", .peak = 8 * MIB + 1, .step = 1, .weights = 8},
    {.name = "loop-once-made", .peak = 8 * MIB + 1, .step = 2, .weights = 8},
    {.name = "outer", .peak = 2049, .warning = "open-branch"},
    {.name = "weight-out", .peak = 32, .weights = 4096},
    {.name = "input-out", .peak = 8 * MIB},
    {.name = "sequence", .peak = 128 * MIB},
    {.name = "slice", .peak = 8 * MIB, .weights = 16},
    {.name = "split", .peak = 8 * MIB},
    {.name = "zero", .peak = 0, .weights = 80},
    /* x and its copy, and the one number made of it; the other branch would take 390 MiB. */
    {.name = "constant-if", .peak = 8 * KIB + 4, .step = 1, .weights = 9},
    {.name = "decided-if", .dim = "n", .size = 4, .peak = 257, .step = 3, .weights = 16},
    {.name = "decided-if", .dim = "n", .size = 1, .peak = 65, .step = 3, .weights = 16},
    /* x, the condition and the result of the one branch that can be: nobody reads W16. */
    {.name = "impossible-branch",
     .dim = "len",
     .size = 8,
     .peak = 49,
     .step = 1,
     .macs = 32,
     .weights = 8 + 4 * 32,
     .warning = "impossible-branch"},
};

static bool check_row(const expected *row)
{
    onv_options options = onv_options_default();
    onv_dim_binding dim = {row->dim, row->size};
    onv_summary s = {0};
    onv_diagnostic diagnostic;
    if (row->dim != NULL) {
        options.dims = &dim;
        options.n_dims = 1;
    }
    model *m = nested_case_model(row->name);
    onv_analysis *a = model_analyse(m, &options);
    onv_analysis_summary(a, &s);
    bool good = s.sized && !s.bounded && s.peak_bytes == row->peak && s.peak_step == row->step &&
                s.macs == row->macs && s.parameter_bytes == row->weights;
    if (!good)
        print_error("%s: %llu bytes at step %llu, %llu MACs, weights %llu\n", row->name,
                    (unsigned long long)s.peak_bytes, (unsigned long long)s.peak_step,
                    (unsigned long long)s.macs, (unsigned long long)s.parameter_bytes);
    bool warned = false; /* notes tell other things */
    for (size_t i = 0; !warned && onv_analysis_diagnostic(a, i, &diagnostic); i++)
        warned = strcmp(diagnostic.severity, "warning") == 0;
    bool right = !warned;
    if (row->warning != NULL) right = warned && strcmp(diagnostic.code, row->warning) == 0;
    if (!right) print_error("%s: %s\n", row->name, warned ? diagnostic.message : "no warning");
    onv_analysis_destroy(a);
    model_free(m);
    return good && right;
}

TEST(known_models_are_as_counted)
{
    int failures = 0;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) failures += !check_row(&table[i]);
    assert_int_equal(failures, 0);
}

/* The state doubles three times. After the last one 64 bytes went in and 128 came out. */
TEST(a_state_that_grows_is_held_at_its_largest)
{
    onv_summary s = {0};
    OWNED_MODEL m = nested_case_model("loop-grows");
    OWNED_ANALYSIS a = model_analyse(m, NULL);
    onv_analysis_summary(a, &s);
    assert_true(s.sized);
    assert_true(s.peak_bytes >= 16 + 64 + 128);
    assert_true(s.bounded || s.peak_bytes < 16 + 64 + 128 + 32);
}

/* Declared for batch 1, run with 8: the branch for 1 does not count. */
TEST(a_declaration_for_another_batch_gives_way)
{
    onv_options options = onv_options_default();
    onv_summary s = {0};
    OWNED_MODEL m = nested_case_model("squeezed");
    options.batch = 8;
    OWNED_ANALYSIS a = model_analyse(m, &options);
    onv_analysis_summary(a, &s);
    assert_true(s.sized);
    assert_false(s.bounded);
    assert_string_equal(model_shape(a, "y"), "[8, 8]");
    assert_int_equal(s.peak_bytes, 513);
}

/* --- By properties ----------------------------------------------------------------------------- */

static void expect_ok(onv_status status, const onv_error *err, const char *what, uint64_t seed)
{
    if (status != ONV_OK)
        fail_msg("%s, seed %llu: %s", what, (unsigned long long)seed, err->message);
}

/* What holds of any timeline: its own rules; one run with the larger branches has the same peak and no
 * alternatives; the bytes of a step are those of the buffers that live in it. */
static void hold_timeline(const onv_live *live, uint64_t seed)
{
    onv_error err = {0};
    onv_timeline path = {0};
    onv_peak peak;
    expect_ok(onv_timeline_check(&live->timeline, &err), &err, "check", seed);
    expect_ok(onv_timeline_path(&live->timeline, &path, NULL, &err), &err, "path", seed);
    expect_ok(onv_timeline_check(&path, &err), &err, "check of the path", seed);
    expect_ok(onv_timeline_peak(&path, &peak, NULL, &err), &err, "peak", seed);
    if (peak.bytes != live->peak_bytes)
        fail_msg("seed %llu: one run takes %llu, not %llu", (unsigned long long)seed,
                 (unsigned long long)peak.bytes, (unsigned long long)live->peak_bytes);
    onv_timeline_cleanup(&path);
    for (uint32_t s = 0; s < live->timeline.steps.count; s++) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < live->timeline.buffers.count; i++)
            if (onv_buffer_is_live(&live->timeline.buffers.at[i], s))
                sum += live->timeline.buffers.at[i].bytes;
        assert_int_equal(sum, live->live_bytes[s]);
    }
}

/* Every order of the main graph takes in the dag what it takes in the steps. */
static void hold_orders(flow *f, uint64_t seed)
{
    static const char *const names[] = {"model", "ort", "greedy", "optimal"};
    onv_error err = {0};
    onv_dag dag;
    uint64_t peaks[4];
    const onv_graph *graph = onv_model_graph(&f->model, (onv_graph_id){0});
    uint32_t *order = calloc(graph->n_nodes, sizeof *order);
    uint32_t *place = calloc(f->model.nodes.count, sizeof *place);
    for (uint32_t i = 0; i < graph->n_nodes; i++) place[graph->nodes[i].index] = i;
    expect_ok(onv_dag_init_model(&dag, &f->model, &f->live, &err), &err, "dag", seed);
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        onv_order_result result;
        onv_live live;
        uint64_t peak;
        expect_ok(onv_order_compute(onv_order_find(names[k]), &f->model, NULL, &result, &err), &err,
                  names[k], seed);
        for (uint32_t i = 0; i < graph->n_nodes; i++) order[i] = place[result.nodes[i].index];
        expect_ok(onv_dag_check_order(&dag, order, &err), &err, names[k], seed);
        expect_ok(onv_dag_peak(&dag, order, &peak, &err), &err, names[k], seed);
        expect_ok(onv_live_compute(&f->model, result.nodes, &live, &err), &err, names[k], seed);
        hold_timeline(&live, seed);
        if (peak != live.peak_bytes)
            fail_msg("seed %llu, order %s: %llu in the dag, %llu in the steps",
                     (unsigned long long)seed, names[k], (unsigned long long)peak,
                     (unsigned long long)live.peak_bytes);
        assert_true(!result.has_bound || result.lower_bound_bytes <= peak);
        peaks[k] = peak;
    }
    assert_true(peaks[2] <= peaks[0]);
    assert_true(peaks[3] <= peaks[1]);
    assert_true(peaks[3] <= peaks[2]);
    onv_dag_cleanup(&dag);
    free(order);
    free(place);
}

TEST(random_nested_graphs_keep_the_rules)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        OWNED_FLOW f;
        OWNED_MODEL m = nested_random(seed);
        flow_open_model(&f, m, NULL);
        hold_timeline(&f.live, seed);
        hold_orders(&f, seed);
    }
}

/* Runtimes keep what is live, and a plan of it is no larger than all of it. */
static void hold_runtimes(flow *f, uint64_t seed)
{
    static const char *const names[] = {"ideal", "arena", "torch", "ort", "async"};
    onv_runtime_options options = {0};
    uint64_t all = 0;
    for (uint32_t i = 0; i < f->live.timeline.buffers.count; i++)
        all += f->live.timeline.buffers.at[i].bytes;
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        onv_runtime_result result = flow_run(f, names[k], &options);
        if (k < 2 &&
            (result.activation_bytes < f->live.peak_bytes || result.activation_bytes > all))
            fail_msg("seed %llu: %s takes %llu, the peak is %llu", (unsigned long long)seed,
                     names[k], (unsigned long long)result.activation_bytes,
                     (unsigned long long)f->live.peak_bytes);
    }
}

TEST(runtimes_hold_nested_graphs)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        OWNED_FLOW f;
        OWNED_MODEL m = nested_random(seed);
        flow_open_model(&f, m, NULL);
        hold_runtimes(&f, seed);
    }
}

/* What a branch hands out of the graph around it has to be made before the If runs. */
TEST(outer_values_are_made_before_the_if)
{
    static const char *const orders[] = {"ort", "greedy", "optimal"};
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        OWNED_FLOW f;
        OWNED_MODEL m = nested_case_model("outer");
        flow_open_model(&f, m, orders[i]);
        assert_int_equal(f.live.timeline.steps.count, 2);
        assert_string_equal(onv_model_node(&f.model, f.live.timeline.steps.at[0].node)->name,
                            "relu");
    }
}
