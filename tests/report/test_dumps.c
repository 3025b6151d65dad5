/* Intervals, trace, graph and the CSV of tensors: that other programs can rely on them. */
#include <inttypes.h>

#include "api/analysis.h"
#include "support/capture.h"
#include "support/nested.h"
#include "support/onnx_writer.h"
#include "support/test.h"

static model *diamond(const char *type)
{
    model *m = model_new(17);
    model_input(m, "x", type);
    model_add(m, "weight w,1 f32[4,64]", "a = Relu(x) 0", "b = Neg(a) 1", "y = Sum(a b x w,1) 2",
              "=z = Neg(y) 3", "out =z f32");
    return m;
}

TEST(intervals_are_half_open)
{
    OWNED_MODEL m = diamond("f32[4,64]");
    OWNED_ANALYSIS a = model_analyse(m, NULL);
    OWNED_TEXT text = report_text(a, ONV_FORMAT_DUMP_INTERVALS, NULL);
    assert_string_equal(text, "id,lower,upper,size\n"
                              "0,0,3,1024\n"
                              "1,0,3,1024\n"
                              "2,1,3,1024\n"
                              "3,2,4,1024\n"
                              "4,3,4,1024\n");
}

TEST(the_trace_stands_in_step_order)
{
    OWNED_MODEL m = diamond("f32[4,64]");
    OWNED_ANALYSIS a = model_analyse(m, NULL);
    OWNED_TEXT text = report_text(a, ONV_FORMAT_DUMP_TRACE, NULL);
    assert_string_equal(text, "alloc,0,1024,0,x\n"
                              "alloc,1,1024,0,a\n"
                              "alloc,2,1024,1,b\n"
                              "alloc,3,1024,2,y\n"
                              "free,0\n"
                              "free,1\n"
                              "free,2\n"
                              "alloc,4,1024,3,'=z\n"
                              "free,3\n"
                              "free,4\n");
}

/* Replays a trace: the most that is held; fails on an alloc or free that cannot be. */
static uint64_t replay(const char *text, size_t n_ids)
{
    uint64_t *sizes = calloc(n_ids, sizeof *sizes), held = 0, most = 0;
    bool *is_held = calloc(n_ids, sizeof *is_held);
    unsigned long last_step = 0;
    assert_true(sizes != NULL && is_held != NULL);
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
        unsigned long id, step;
        uint64_t bytes;
        if (sscanf(line, "alloc,%lu,%" SCNu64 ",%lu,", &id, &bytes, &step) == 3) {
            assert_true(id < n_ids && !is_held[id] && step >= last_step);
            last_step = step;
            is_held[id] = true;
            sizes[id] = bytes;
            held += bytes;
            if (held > most) most = held;
        } else {
            assert_int_equal(sscanf(line, "free,%lu", &id), 1);
            assert_true(id < n_ids && is_held[id]);
            is_held[id] = false;
            held -= sizes[id];
        }
    }
    assert_int_equal(held, 0);
    free(sizes);
    free(is_held);
    return most;
}

/* On random graphs the trace reaches the very peak of the summary and ends with nothing held. */
TEST(the_trace_reaches_the_peak)
{
    uint32_t seed = 7;
    for (int round = 0; round < 20; round++) {
        OWNED_MODEL m = model_read(17, "in v0 f32[4,64]");
        for (unsigned i = 1; i <= 40; i++) {
            char in[32], out[16];
            seed = seed * 1664525 + 1013904223;
            snprintf(in, sizeof in, "v%u v%u", (seed >> 24) % i, (seed >> 8) % i);
            snprintf(out, sizeof out, "v%u", i);
            /* Sizes double now and then, but not beyond 64 bits. */
            bool doubles = (seed >> 16) % 4 == 0;
            model_node(m, doubles ? "Concat" : "Relu", "", doubles ? in : strchr(in, ' ') + 1, out,
                       doubles ? "axis=0" : "");
        }
        model_output(m, "v40", "f32");
        OWNED_ANALYSIS a = model_analyse(m, NULL);
        onv_summary summary = {0};
        onv_analysis_summary(a, &summary);
        OWNED_TEXT text = report_text(a, ONV_FORMAT_DUMP_TRACE, NULL);
        assert_int_equal(replay(text, onv_analysis_tensor_count(a)), summary.peak_bytes);
    }
}

TEST(missing_sizes_are_refused)
{
    static const onv_format formats[] = {ONV_FORMAT_DUMP_INTERVALS, ONV_FORMAT_DUMP_TRACE};
    OWNED_MODEL m = diamond("f32[batch,64]");
    OWNED_ANALYSIS a = model_analyse(m, NULL);
    for (int i = 0; i < 2; i++) {
        capture caught = {0};
        onv_error error = {0};
        assert_int_equal(onv_report((const onv_analysis *const *)&a, 1, formats[i], NULL,
                                    capture_write, &caught, &error),
                         ONV_ERR_MODEL);
        expect_contains(error.message, "batch");
        assert_null(caught.text);
    }
}

TEST(the_graph_is_typed)
{
    OWNED_MODEL m = model_read(17, "in x f32[batch,64]", "a = Softmax(x) s axis=1",
                               "y = Clip(a - -) c", "out y f32");
    OWNED_ANALYSIS a = model_analyse(m, NULL);
    OWNED_TEXT text = report_text(a, ONV_FORMAT_DUMP_GRAPH, NULL);
    assert_string_equal(text, "graph (x: float32[batch, 64]) -> (y)\n"
                              "    0  a: float32[batch, 64] = Softmax(x) {axis = 1}\n"
                              "    1  y: float32[batch, 64] = Clip(a, _, _)\n");
}

TEST(tensors_are_rows)
{
    OWNED_MODEL m = diamond("f32[4,64]");
    OWNED_ANALYSIS a = model_analyse(m, NULL);
    OWNED_TEXT text = report_text(a, ONV_FORMAT_CSV, NULL);
    expect_contains(text,
                    "model,name,kind,dtype,shape,bytes,bound,first_step,last_step,alias_of\n");
    expect_contains(text, "\ntest.onnx,\"w,1\",initializer,float32,4x64,1024,0,,,\n");
    expect_contains(text, "\ntest.onnx,x,input,float32,4x64,1024,0,0,2,\n");
    expect_contains(text, "\ntest.onnx,'=z,output,float32,4x64,1024,0,3,3,\n");
}

TEST(an_unknown_format_is_refused)
{
    OWNED_MODEL m = diamond("f32[4,64]");
    OWNED_ANALYSIS a = model_analyse(m, NULL);
    onv_error error = {0};
    capture caught = {0};
    assert_int_equal(onv_report((const onv_analysis *const *)&a, 1, (onv_format)99, NULL,
                                capture_write, &caught, &error),
                     ONV_ERR_USAGE);
}

/* --- Plans ------------------------------------------------------------------------------------- */

/* The end of the highest buffer of the dumped plan, which must be what the report says of the arena. */
static uint64_t dumped_height(const onv_analysis *a)
{
    uint64_t height = 0;
    char *text = report_text(a, ONV_FORMAT_DUMP_PLAN, NULL);
    for (const char *line = strchr(text, '\n') + 1; *line != '\0'; line = strchr(line, '\n') + 1) {
        uint64_t size, offset;
        assert_int_equal(sscanf(line, "%*u,%*u,%*u,%" SCNu64 ",%" SCNu64 "\n", &size, &offset), 2);
        if (size > 0 && offset + size > height) height = offset + size;
    }
    free(text);
    for (size_t i = 0; i < a->n_runtimes; i++)
        if (strcmp(a->runtimes[i].runtime->name, "arena") == 0)
            assert_int_equal(height, a->runtimes[i].activation_bytes);
    return height;
}

static uint64_t height_of(const char *sample, const char *order, uint64_t effort)
{
    onv_error error;
    onv_analysis *a;
    onv_options options = onv_options_default();
    options.batch = 2;
    options.order = order;
    options.effort = effort;
    options.runtimes = "ideal,arena";
    if (onv_analysis_new(sample, &options, &a, &error) != ONV_OK) fail_msg("%s", error.message);
    uint64_t height = dumped_height(a);
    onv_analysis_destroy(a);
    return height;
}

TEST(the_plan_is_the_one_that_was_reported)
{
    const char *convnext = ONV_SOURCE_DIR "/samples/convnext_tiny.onnx";
    const char *densenet = ONV_SOURCE_DIR "/samples/densenet201.onnx";
    assert_true(height_of(convnext, NULL, 1) > height_of(convnext, NULL, 0));
    assert_true(height_of(densenet, NULL, 0) > 0 && height_of(densenet, "greedy", 0) > 0);
}

TEST(plans_of_branches_and_bodies)
{
    for (size_t i = 0; nested_cases[i].name != NULL; i++) {
        OWNED_MODEL m = nested_case_build(&nested_cases[i]);
        OWNED_ANALYSIS a = model_analyse(m, NULL);
        onv_summary sums = {0};
        onv_analysis_summary(a, &sums);
        if (sums.sized) dumped_height(a);
    }
}

TEST(without_an_arena_there_is_no_plan)
{
    OWNED_MODEL m = diamond("f32[4,64]");
    onv_options options = onv_options_default();
    options.runtimes = "ideal";
    OWNED_ANALYSIS a = model_analyse(m, &options);
    const onv_analysis *const all[] = {a};
    OWNED_CAPTURE caught = {0};
    onv_error error;
    assert_int_equal(onv_report(all, 1, ONV_FORMAT_DUMP_PLAN, NULL, capture_write, &caught, &error),
                     ONV_ERR_USAGE);
    assert_non_null(strstr(error.message, "add arena to --runtime"));
}

/* Names are text of the model's: in the header they end no comment and make no macro of another value's. */
TEST(the_header_has_a_name_for_each)
{
    OWNED_MODEL m =
        model_read(17, "in a-b f32[3]", "a_b = Relu(a-b) 0", "a*/\n#error\\ = Relu(a_b) 1",
                   "a_b_1 = Relu(a*/\n#error\\) 2", "out a_b_1 f32");
    onv_options options = onv_options_default();
    options.align = 16;
    OWNED_ANALYSIS a = model_analyse(m, &options);
    OWNED_TEXT text = report_text(a, ONV_FORMAT_DUMP_HEADER, NULL);
    expect_contains(text, "#define ONV_ARENA_ALIGNMENT UINT64_C(16)\n");
    expect_contains(text, "#define ONV_ARENA_BYTES UINT64_C(32)\n");
    expect_contains(text, "#define ONV_BYTES_a_b UINT64_C(12)\n");
    expect_contains(text, "#define ONV_BYTES_a_b_1 UINT64_C(12)\n");
    expect_contains(text, "#define ONV_BYTES_a_b_1_3 UINT64_C(12)\n");
    expect_contains(text, "#define ONV_BYTES_a____error_ UINT64_C(12)\n");
    expect_contains(text, ": a./.#error. */\n");
    assert_int_equal(count_parts(text, "\nONV_ARENA_CHECK("), 4);
}

/* Sizes and the bound are those of what is rounded up. */
TEST(the_plan_is_aligned)
{
    for (uint64_t align = 1; align <= 4096; align *= 64) {
        OWNED_MODEL m = diamond("f32[4,64]");
        onv_options options = onv_options_default();
        options.align = align;
        options.runtimes = "arena";
        OWNED_ANALYSIS a = model_analyse(m, &options);
        const onv_runtime_result *arena = &a->runtimes[0];
        assert_int_equal(arena->weight_bytes, 1024);
        /* The weight below and four values at once. */
        uint64_t each = align > 1024 ? align : 1024;
        assert_int_equal(arena->held_bytes, 5 * each);
        OWNED_TEXT text = report_text(a, ONV_FORMAT_DUMP_PLAN, NULL);
        for (const char *at = text; (at = strchr(at, '\n')) != NULL && at[1] != '\0';) {
            const char *end = strchr(++at, '\n'), *offset = end;
            while (offset[-1] != ',') offset--;
            assert_int_equal(strtoull(offset, NULL, 10) % align, 0);
        }
    }
    onv_options wrong = onv_options_default();
    OWNED_MODEL m = diamond("f32[4,64]");
    size_t size;
    const unsigned char *bytes = model_bytes(m, &size);
    onv_analysis *a;
    onv_error error;
    wrong.align = 24;
    assert_int_equal(onv_analysis_new_from_memory(bytes, size, NULL, &wrong, &a, &error),
                     ONV_ERR_USAGE);
    wrong.align = 16;
    wrong.runtimes = "ideal";
    assert_int_equal(onv_analysis_new_from_memory(bytes, size, NULL, &wrong, &a, &error),
                     ONV_ERR_USAGE);
}
