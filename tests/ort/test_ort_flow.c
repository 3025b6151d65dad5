/* Branches and loops in ONNX Runtime's plan, against what ONNX Runtime measured of the models in
 * tests/conformance: the most that the second run of a session holds, on the CPU without its arena,
 * with and without the memory pattern. */
#include <jansson.h>

#include "ort/ort.h"
#include "support/capture.h"
#include "support/flow.h"
#include "support/held.h"
#include "support/nested.h"
#include "support/test.h"

#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1) << 20)

/* --- Peaks ------------------------------------------------------------------------------------- */

/* The largest sum in the last of `n_runs` runs, each allocation a multiple of 64 bytes as on the
 * CPU. */
static uint64_t peak_of_runs(const flow *f, const onv_ort_plan *plan, uint32_t n_runs)
{
    onv_timeline t = {0};
    onv_error err = {0};
    onv_peak peak;
    assert_int_equal(onv_ort_add_runs(plan, n_runs, NULL, &t, &err), ONV_OK);
    if (onv_timeline_check(&t, &err) != ONV_OK) fail_msg("%s", err.message);
    for (size_t i = 0; i < t.buffers.count; i++)
        t.buffers.at[i].bytes = (t.buffers.at[i].bytes + 63) / 64 * 64;
    t.measured_from = (n_runs - 1) * (t.steps.count / n_runs);
    assert_int_equal(onv_timeline_peak(&t, &peak, NULL, &err), ONV_OK);
    onv_timeline_cleanup(&t);
    return peak.bytes;
}

static uint64_t peak_of_plan(onv_ort_plan *plan)
{
    onv_error err = {0};
    onv_timeline t = onv_ort_plan_timeline(plan);
    onv_peak peak;
    if (onv_timeline_check(&t, &err) != ONV_OK) fail_msg("%s", err.message);
    for (uint32_t i = 0; i < plan->count; i++)
        plan->buffers[i].bytes = (plan->buffers[i].bytes + 63) / 64 * 64;
    assert_int_equal(onv_timeline_peak(&t, &peak, NULL, &err), ONV_OK);
    return peak.bytes;
}

/* --- Measured ---------------------------------------------------------------------------------- */

typedef struct measured {
    const char *name;
    uint64_t plain, pattern; /* beyond what was measured */
} measured;

static const measured models[] = {
    {"if-decided", 0, 0},
    {"if-in-loop", 0, 0},
    /* It ran the other branch, which takes a slice of 1 MiB less. */
    {"if-in-scan", MIB, MIB},
    {"if-nested", 0, 0},
    {"if-outer", 0, 0},
    {"if-temporaries", 0, 0},
    {"loop-in-if", 0, 0},
    {"loop-in-loop", 0, 0},
    {"loop-none", 0, 0},
    {"loop-once", 0, 0},
    {"loop-stack", 0, 0},
    {"loop-state", 0, 0},
    {"loop-state-and-stack", 0, 0},
    {"scan-in-loop", 0, 0},
    {"scan-two", 0, 0},
};

static uint64_t number(const json_t *truth, const char *key)
{
    const json_t *at = json_object_get(truth, key);
    assert_true(json_is_integer(at));
    return (uint64_t)json_integer_value(at);
}

TEST(peaks_are_those_that_were_measured)
{
    int wrong = 0;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        const measured *m = &models[i];
        char path[512];
        onv_error err = {0};
        OWNED_FLOW f;
        onv_ort_plan plan;
        snprintf(path, sizeof path, ONV_SOURCE_DIR "/tests/conformance/%s.fixed.truth.json",
                 m->name);
        OWNED_JSON truth = json_load_file(path, 0, NULL);
        assert_non_null(truth);
        snprintf(path, sizeof path, ONV_SOURCE_DIR "/tests/conformance/%s.onnx", m->name);
        flow_open(&f, path, "", "ort");
        assert_int_equal(onv_ort_plan_compute(&f.model, &f.live,
                                              &(onv_ort_session){.provider = ONV_ORT_CPU}, &plan,
                                              &err),
                         ONV_OK);
        uint64_t pattern = peak_of_runs(&f, &plan, 2), plain = peak_of_plan(&plan);
        uint64_t plain_truth = number(truth, "ort_peak_bytes") + m->plain;
        uint64_t pattern_truth = number(truth, "ort_pattern_peak_bytes") + m->pattern;
        if (plain != plain_truth || pattern != pattern_truth) {
            wrong++;
            print_message("%s: %llu, with the pattern %llu; ONNX Runtime: %llu, %llu\n", m->name,
                          (unsigned long long)plain, (unsigned long long)pattern,
                          (unsigned long long)plain_truth, (unsigned long long)pattern_truth);
        }
    }
    assert_int_equal(wrong, 0);
}

/* The known ones: measured as above, without the pattern. */
TEST(known_cases_are_as_measured)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } cases[] = {
        {"open-if", 4 * MIB},
        {"branches-and-more", 8 * MIB},
        {"scan", 128 * MIB + 256}, /* its input of 64 MiB is the caller's */
        {"loop-stacks", 512 * MIB + 128},
        {"loop-state", 12 * MIB + 128},
        {"loop-once", 8 * MIB + 128},
        {"loop-once-made", 12 * MIB + 128},
        {"no-trips", 4 * KIB + 128},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        onv_error err = {0};
        OWNED_FLOW f;
        onv_ort_plan plan;
        OWNED_MODEL m = nested_case_model(cases[i].name);
        flow_open_model(&f, m, "ort");
        assert_int_equal(onv_ort_plan_compute(&f.model, &f.live,
                                              &(onv_ort_session){.provider = ONV_ORT_CPU}, &plan,
                                              &err),
                         ONV_OK);
        uint64_t peak = peak_of_plan(&plan);
        if (peak != cases[i].bytes)
            fail_msg("%s: %llu, ONNX Runtime: %llu", cases[i].name, (unsigned long long)peak,
                     (unsigned long long)cases[i].bytes);
    }
}

/* Bodies that reduce a temporary of so many rows to a slice, which the loop stacks. Measured, CUDA build without a GPU, without the
 * handles: iterations ask for workspaces beside the pattern, next to the slices of those before. */
TEST(iterations_of_reductions_are_as_measured)
{
    static const struct {
        int64_t trips, rows, columns;
        uint64_t mib;
    } cases[] = {{8, 16, 1 << 20, 272}, {16, 16, 1 << 20, 272}, {12, 40, 1 << 19, 520}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char in[48], trips[48], shape[48], slice[48];
        flow f;
        snprintf(in, sizeof in, "in x f32[%d]", (int)cases[i].columns);
        snprintf(trips, sizeof trips, "int n %d", (int)cases[i].trips);
        snprintf(shape, sizeof shape, "ints bs %d %d", (int)cases[i].rows, (int)cases[i].columns);
        snprintf(slice, sizeof slice, "out sl f32[%d]", (int)cases[i].columns);
        OWNED_MODEL m = model_read(16, in, trips, shape, "x0 = Abs(x) abs");
        model_add(m, "begin body", "in i i64[]", "in c bool[]", "b0 = Expand(x0 bs) a",
                  "b1 = Abs(b0) b", "s0 = ReduceMax(b1) c axes=[0] keepdims=0", "sl = Abs(s0) d",
                  "co = Identity(c) e", "out co bool[]", slice, "end", "y = Loop(n -) loop",
                  "out y f32");
        flow_open_model(&f, m, "ort");
        onv_runtime_result result = flow_run(&f, "ort", NULL);
        assert_int_equal(result.high_bytes, cases[i].mib * MIB);
        flow_close(&f);
    }
}

/* Slices that are gathered in a sequence, each iteration with a copy of all so far; and graphs that are fed anything but tensors have no
 * memory pattern. Measured likewise. */
TEST(sequences_of_iterations_are_as_measured)
{
    static const struct {
        const char *in, *shape;
        uint64_t mib;
    } cases[] = {{"in x f32[1048576]", "ints bs 16 1048576", 272},
                 {"in x f32[262144]", "ints bs 6 262144", 67}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        OWNED_FLOW f;
        OWNED_MODEL m = model_read(16, cases[i].in, "int n 8", cases[i].shape, "x0 = Abs(x) abs",
                                   "q0 = SequenceEmpty() empty");
        model_add(m, "begin body", "in i i64[]", "in c bool[]", "in q seq-f32",
                  "b0 = Expand(x0 bs) a", "b1 = Abs(b0) b", "b2 = Exp(b1) bb",
                  "s0 = ReduceMax(b2) c axes=[0] keepdims=0", "sl = Abs(s0) d",
                  "qo = SequenceInsert(q sl) f", "co = Identity(c) e", "out co bool[]",
                  "out qo seq-f32", "end", "qn = Loop(n - q0) loop",
                  "y = ConcatFromSequence(qn) cat axis=0 new_axis=1", "out y f32");
        flow_open_model(&f, m, "ort");
        assert_int_equal(flow_run(&f, "ort", NULL).high_bytes, cases[i].mib * MIB);
    }
}

/* Plans and runs keep the rules of timelines; packing and the choice of a branch lose nothing. */
TEST(random_nested_graphs_keep_the_rules)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        onv_error err = {0};
        OWNED_FLOW f;
        onv_ort_plan plan;
        OWNED_MODEL m = nested_random(seed);
        flow_open_model(&f, m, "ort");
        for (int provider = ONV_ORT_CUDA; provider <= ONV_ORT_CPU; provider++) {
            assert_int_equal(
                onv_ort_plan_compute(&f.model, &f.live,
                                     &(onv_ort_session){.provider = (onv_ort_provider)provider},
                                     &plan, &err),
                ONV_OK);
            uint64_t peak = peak_of_plan(&plan); /* rounds sizes, by which branches are chosen */
            uint64_t first = peak_of_runs(&f, &plan, 1), third = peak_of_runs(&f, &plan, 3);
            if (provider == ONV_ORT_CPU && (first < peak || third < peak))
                fail_msg("seed %llu: the plan holds %llu, its runs %llu and %llu",
                         (unsigned long long)seed, (unsigned long long)peak,
                         (unsigned long long)first, (unsigned long long)third);
        }
    }
}

/* What a runtime executes is placed, and each allocation of it fits. */
TEST(random_nested_graphs_are_placed)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        OWNED_MODEL m = nested_random(seed);
        for (size_t i = 0; i < onv_n_runtimes; i++) {
            onv_error err = {0};
            onv_runtime_result result;
            onv_execution made = {0};
            OWNED_FLOW f;
            flow_open_model(&f, m, onv_runtimes[i]->order);
            assert_int_equal(
                onv_runtime_execute(onv_runtimes[i], &f.model, &f.live, NULL, &result, &made, &err),
                ONV_OK);
            if (onv_timeline_check(&made.timeline, &err) != ONV_OK ||
                placement_check(&made.placement, &made.timeline, &err) != ONV_OK)
                fail_msg("seed %llu, %s: %s", (unsigned long long)seed, onv_runtimes[i]->name,
                         err.message);
            onv_execution_cleanup(&made);
        }
    }
}
