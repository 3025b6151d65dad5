/* Lifetimes and the peak on graphs small enough to count by hand. */
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

static void lives_run_from_definition_to_last_use(void **state)
{
    model *m = model_new(17);
    model_input(m, "x", "f32[10]");
    model_input(m, "late", "f32[10]");
    model_node(m, "Relu", "0", "x", "a", "");
    model_node(m, "Neg", "1", "a", "b", "");
    model_node(m, "Abs", "2", "a", "unused", "");
    model_node(m, "Add", "3", "b late", "y", "");
    model_node(m, "Neg", "4", "y", "z", "");
    model_output(m, "y", "f32");
    model_output(m, "z", "f32");
    onv_analysis *a = model_analyse(m, NULL);
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
    onv_analysis_destroy(a);
    model_free(m);
}

static void the_first_step_of_a_tie_is_the_peak(void **state)
{
    model *m = model_new(17);
    model_input(m, "x", "f32[4]");
    model_node(m, "Relu", "0", "x", "a", "");
    model_node(m, "Relu", "1", "a", "b", "");
    model_node(m, "Relu", "2", "b", "c", "");
    model_output(m, "c", "f32");
    onv_analysis *a = model_analyse(m, NULL);
    assert_int_equal(summarise(a).peak_step, 0);
    assert_int_equal(summarise(a).peak_bytes, 32);
    onv_analysis_destroy(a);
    model_free(m);
}

static void weights_are_counted_apart(void **state)
{
    model *m = model_new(17);
    model_input(m, "x", "f32[2,8]");
    model_weight(m, "w", "f32[8,16]");
    model_node(m, "MatMul", "mm", "x w", "y", "");
    model_output(m, "y", "f32");
    onv_analysis *a = model_analyse(m, NULL);
    onv_summary s = summarise(a);
    assert_int_equal(s.parameters, 128);
    assert_int_equal(s.parameter_bytes, 512);
    assert_int_equal(s.peak_bytes, 64 + 128);
    assert_int_equal(s.input_bytes, 64);
    assert_int_equal(s.output_bytes, 128);
    assert_int_equal(s.macs, 2 * 8 * 16);
    assert_false(tensor(a, "w").live);
    onv_analysis_destroy(a);
    model_free(m);
}

static void unknown_sizes_are_counted_not_guessed(void **state)
{
    model *m = model_new(17);
    model_input(m, "x", "f32[4]");
    model_node(m, "Mystery", "odd", "x", "y", "");
    model_node(m, "Relu", "next", "y", "z", "");
    model_output(m, "z", "f32");
    onv_analysis *a = model_analyse(m, NULL);
    onv_summary s = summarise(a);
    assert_false(s.sized);
    assert_int_equal(s.unknown_tensors, 2);
    assert_int_equal(tensor(a, "y").bytes, ONV_SIZE_UNKNOWN);
    onv_diagnostic diagnostic;
    assert_true(onv_analysis_diagnostic(a, 0, &diagnostic));
    assert_string_equal(diagnostic.code, "unknown-op");
    onv_analysis_destroy(a);
    model_free(m);
}

static void declared_types_serve_an_unknown_operator(void **state)
{
    model *m = model_new(17);
    model_input(m, "x", "f32[batch,4]");
    model_node(m, "Mystery", "odd", "x", "y", "");
    model_node(m, "Relu", "next", "y", "z", "");
    model_value_info(m, "y", "f32[batch,7]");
    model_output(m, "z", "f32");
    onv_options options = onv_options_default();
    options.batch = 3;
    onv_analysis *a = model_analyse(m, &options);
    assert_string_equal(model_shape(a, "z"), "[3, 7]");
    assert_true(summarise(a).sized);
    onv_analysis_destroy(a);
    model_free(m);
}

static void sizes_that_overflow_are_errors_with_a_name(void **state)
{
    model *m = model_new(17);
    model_input(m, "x", "f32[1099511627776,1]");
    model_input(m, "y", "f32[1,1099511627776]");
    model_node(m, "Add", "add", "x y", "z", "");
    model_output(m, "z", "f32");
    onv_analysis *a;
    onv_error error;
    assert_int_equal(model_try(m, NULL, &a, &error), ONV_ERR_OVERFLOW);
    assert_null(a);
    model_free(m);
}

/* Text and maps stand on the host: they take nothing and leave nothing unknown, whatever their number. */
static void text_and_maps_take_no_device_memory(void **state)
{
    model *m = model_new(17);
    model_import(m, "ai.onnx.ml", 3);
    model_input(m, "x", "f32[4,3]");
    model_input(m, "rows", "f32");
    model_node(m, "ai.onnx.ml::ZipMap", "0", "x", "some", "classlabels_int64s=[0,1,2]");
    model_node(m, "ai.onnx.ml::ZipMap", "1", "rows", "any", "classlabels_int64s=[0,1,2]");
    model_node(m, "Cast", "2", "x", "words", "to=8");
    model_node(m, "Relu", "3", "x", "y", "");
    model_output(m, "any", "f32");
    model_output(m, "y", "f32");
    onv_options options = onv_options_default();
    options.shapes = &(onv_shape_binding){"rows", (int64_t[]){5, 3}, 2};
    options.n_shapes = 1;
    onv_analysis *a = model_analyse(m, &options);
    for (size_t i = 0; i < 3; i++) {
        onv_tensor_info info = tensor(a, ((const char *[]){"some", "any", "words"})[i]);
        assert_int_equal(info.bytes, 0);
    }
    assert_int_equal(summarise(a).unknown_tensors, 0);
    assert_int_equal(summarise(a).output_bytes, 48);
    onv_analysis_destroy(a);
    model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lives_run_from_definition_to_last_use),
        cmocka_unit_test(the_first_step_of_a_tie_is_the_peak),
        cmocka_unit_test(weights_are_counted_apart),
        cmocka_unit_test(unknown_sizes_are_counted_not_guessed),
        cmocka_unit_test(declared_types_serve_an_unknown_operator),
        cmocka_unit_test(text_and_maps_take_no_device_memory),
        cmocka_unit_test(sizes_that_overflow_are_errors_with_a_name),
    };
    return cmocka_run_group_tests_name("live", tests, NULL, NULL);
}
