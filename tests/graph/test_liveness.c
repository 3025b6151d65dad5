/* Lifetimes and the peak on graphs small enough to count by hand. */
#include "support/capture.h"
#include "support/onnx_writer.h"
#include "support/test.h"

static onv_tensor_info tensor(const onv_analysis *a, const char *name)
{
    onv_tensor_info info;
    for (size_t i = 0; onv_analysis_tensor(a, i, &info); i++)
        if (strcmp(info.name, name) == 0) return info;
    fail_msg("no tensor '%s'", name);
    return info;
}

static onv_summary summarise(const onv_analysis *a)
{
    onv_summary summary = {0};
    onv_analysis_summary(a, &summary);
    return summary;
}

static void expect_life(const onv_analysis *a, const char *name, uint64_t first, uint64_t last)
{
    onv_tensor_info info = tensor(a, name);
    assert_true(info.live);
    assert_int_equal(info.first_step, first);
    assert_int_equal(info.last_step, last);
}

TEST(lives_run_from_definition_to_last_use)
{
    OWNED_MODEL m = model_read(17, "in x f32[10]", "in late f32[10]", "a = Relu(x) 0",
                               "b = Neg(a) 1", "unused = Abs(a) 2", "y = Add(b late) 3",
                               "z = Neg(y) 4", "out y f32", "out z f32");
    OWNED_ANALYSIS a = model_analyse(m, NULL);
    expect_life(a, "x", 0, 0);
    expect_life(a, "late", 0, 3);
    expect_life(a, "a", 0, 2);
    expect_life(a, "b", 1, 3);
    expect_life(a, "unused", 2, 2);
    expect_life(a, "y", 3, 4);
    expect_life(a, "z", 4, 4);
    /* Step 2 holds late, a, b and the unused one; step 0 only three. */
    assert_int_equal(summarise(a).peak_bytes, 160);
    assert_int_equal(summarise(a).peak_step, 2);
}

TEST(the_first_step_of_a_tie_is_the_peak)
{
    OWNED_MODEL m = model_read(17, "in x f32[4]", "a = Relu(x) 0", "b = Relu(a) 1", "c = Relu(b) 2",
                               "out c f32");
    OWNED_ANALYSIS a = model_analyse(m, NULL);
    assert_int_equal(summarise(a).peak_step, 0);
    assert_int_equal(summarise(a).peak_bytes, 32);
}

TEST(weights_are_counted_apart)
{
    model *m =
        model_read(17, "in x f32[2,8]", "weight w f32[8,16]", "y = MatMul(x w) mm", "out y f32");
    OWNED_ANALYSIS a = model_analyse(m, NULL);
    onv_summary s = summarise(a);
    assert_int_equal(s.parameters, 128);
    assert_int_equal(s.parameter_bytes, 512);
    assert_int_equal(s.peak_bytes, 64 + 128);
    assert_int_equal(s.input_bytes, 64);
    assert_int_equal(s.output_bytes, 128);
    assert_int_equal(s.macs, 2 * 8 * 16);
    assert_false(tensor(a, "w").live);
    model_free(m);
}

TEST(unknown_sizes_are_counted_not_guessed)
{
    OWNED_MODEL m =
        model_read(17, "in x f32[4]", "y = Mystery(x) odd", "z = Relu(y) next", "out z f32");
    OWNED_ANALYSIS a = model_analyse(m, NULL);
    onv_summary s = summarise(a);
    assert_false(s.sized);
    assert_int_equal(s.unknown_tensors, 2);
    assert_int_equal(tensor(a, "y").bytes, ONV_SIZE_UNKNOWN);
    onv_diagnostic diagnostic;
    assert_true(onv_analysis_diagnostic(a, 0, &diagnostic));
    assert_string_equal(diagnostic.code, "unknown-op");
}

TEST(declared_types_serve_an_unknown_operator)
{
    OWNED_MODEL m = model_read(17, "in x f32[batch,4]", "y = Mystery(x) odd", "z = Relu(y) next");
    model_value_info(m, "y", "f32[batch,7]");
    model_output(m, "z", "f32");
    onv_options options = onv_options_default();
    options.batch = 3;
    OWNED_ANALYSIS a = model_analyse(m, &options);
    assert_string_equal(model_shape(a, "z"), "[3, 7]");
    assert_true(summarise(a).sized);
}

TEST(sizes_that_overflow_are_errors_with_a_name)
{
    OWNED_MODEL m = model_read(17, "in x f32[1099511627776,1]", "in y f32[1,1099511627776]",
                               "z = Add(x y) add", "out z f32");
    onv_analysis *a;
    onv_error error;
    assert_int_equal(model_try(m, NULL, &a, &error), ONV_ERR_OVERFLOW);
    assert_null(a);
}

/* Text and maps stand on the host: they take nothing and leave nothing unknown, whatever their number. */
TEST(text_and_maps_take_no_device_memory)
{
    OWNED_MODEL m =
        model_read(17, "import ai.onnx.ml 3", "in x f32[4,3]", "in rows f32",
                   "some = ai.onnx.ml::ZipMap(x) 0 classlabels_int64s=[0,1,2]",
                   "any = ai.onnx.ml::ZipMap(rows) 1 classlabels_int64s=[0,1,2]",
                   "words = Cast(x) 2 to=8", "y = Relu(x) 3", "out any f32", "out y f32");
    onv_options options = onv_options_default();
    options.shapes = &(onv_shape_binding){"rows", (int64_t[]){5, 3}, 2};
    options.n_shapes = 1;
    OWNED_ANALYSIS a = model_analyse(m, &options);
    for (size_t i = 0; i < 3; i++) {
        onv_tensor_info info = tensor(a, ((const char *[]){"some", "any", "words"})[i]);
        assert_int_equal(info.bytes, 0);
    }
    assert_int_equal(summarise(a).unknown_tensors, 0);
    assert_int_equal(summarise(a).output_bytes, 48);
}
