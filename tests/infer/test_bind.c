/* Bindings: what --batch, --dim, --shape and --input-value do to a model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "support/onnx_writer.h"

static void expect_failure(model *m, const onv_options *options, onv_status status,
                           const char *part)
{
    onv_analysis *a;
    onv_error error;
    assert_int_equal(model_try(m, options, &a, &error), status);
    assert_null(a);
    if (strstr(error.message, part) == NULL)
        fail_msg("'%s' does not say '%s'", error.message, part);
    model_free(m);
}

static void expect_shape(model *m, const onv_options *options, const char *name, const char *shape)
{
    onv_analysis *a = model_analyse(m, options);
    assert_string_equal(model_shape(a, name), shape);
    onv_analysis_destroy(a);
    model_free(m);
}

/* x[batch, 8, 16] -> transpose -> y, with a second input of its own length. */
static model *symbolic(void)
{
    model *m = model_new(17);
    model_input(m, "x", "f32[batch,8,seq]");
    model_input(m, "mask", "f32[seq]");
    model_node(m, "Add", "add", "x mask", "sum", "");
    model_node(m, "Transpose", "t", "sum", "y", "perm=[0,2,1]");
    model_output(m, "y", "f32");
    return m;
}

static void free_dims_stay_symbols(void **state)
{
    (void)state;
    expect_shape(symbolic(), NULL, "y", "[batch, seq, 8]");
}

static void batch_binds_the_batch_alone(void **state)
{
    (void)state;
    onv_options options = onv_options_default();
    options.batch = 4;
    expect_shape(symbolic(), &options, "y", "[4, seq, 8]");
}

static void dims_bind_by_name(void **state)
{
    (void)state;
    onv_dim_binding dims[] = {{"seq", 33}, {"batch", 2}};
    onv_options options = onv_options_default();
    options.dims = dims;
    options.n_dims = 2;
    expect_shape(symbolic(), &options, "y", "[2, 33, 8]");
}

/* As PyTorch's dynamo exporter names the length of a mask. */
static model *derived(void)
{
    model *m = model_new(17);
    model_input(m, "x", "f32[batch,seq]");
    model_input(m, "cache", "f32[batch,past]");
    model_input(m, "mask", "f32[batch,past + seq]");
    model_node(m, "Concat", "cat", "cache x", "both", "axis=1");
    model_node(m, "Add", "add", "both mask", "y", "");
    model_output(m, "y", "f32");
    return m;
}

static void a_name_that_is_an_expression_is_read_as_one(void **state)
{
    (void)state;
    expect_shape(derived(), NULL, "y", "[batch, seq + past]");
    onv_dim_binding dims[] = {{"seq", 3}, {"past", 4}};
    onv_options options = onv_options_default();
    options.dims = dims;
    options.n_dims = 2;
    expect_shape(derived(), &options, "mask", "[batch, 7]");
    onv_dim_binding wrong[] = {{"seq", 3}, {"past", 4}, {"past + seq", 9}};
    options.dims = wrong;
    options.n_dims = 3;
    expect_failure(derived(), &options, ONV_ERR_USAGE, "is bound to 9, but is 7");
}

static void an_unknown_dim_is_named_with_the_choices(void **state)
{
    (void)state;
    onv_dim_binding dims[] = {{"sequence", 33}};
    onv_options options = onv_options_default();
    options.dims = dims;
    options.n_dims = 1;
    expect_failure(symbolic(), &options, ONV_ERR_USAGE, "batch, seq");
}

static void shapes_bind_the_symbols_they_meet(void **state)
{
    (void)state;
    int64_t shape[] = {3, 8, 5};
    onv_shape_binding shapes[] = {{"x", shape, 3}};
    onv_options options = onv_options_default();
    options.shapes = shapes;
    options.n_shapes = 1;
    expect_shape(symbolic(), &options, "mask", "[5]");
}

/* Exporters of Paddle call every free axis "?": the name says nothing, and each axis is its own. */
static model *nameless(void)
{
    model *m = model_new(17);
    model_input(m, "x", "f32[-1,3,??,??]");
    model_input(m, "z", "f32[None,4]");
    model_node(m, "Relu", "r", "x", "y", "");
    model_node(m, "Relu", "q", "z", "w", "");
    model_output(m, "y", "f32");
    model_output(m, "w", "f32");
    return m;
}

static void names_that_say_nothing_are_free_axes(void **state)
{
    (void)state;
    expect_shape(nameless(), NULL, "y", "[x.0, 3, x.2, x.3]");
    onv_options options = onv_options_default();
    options.shapes = &(onv_shape_binding){"x", (int64_t[]){1, 3, 48, 192}, 4};
    options.n_shapes = 1;
    expect_shape(nameless(), &options, "y", "[1, 3, 48, 192]");
    expect_shape(nameless(), &options, "w", "[z.0, 4]");
    options = onv_options_default();
    options.batch = 5;
    expect_shape(nameless(), &options, "y", "[5, 3, x.2, x.3]");
    expect_shape(nameless(), &options, "w", "[5, 4]");
    options.batch = 0;
    options.dims = &(onv_dim_binding){"??", 3};
    options.n_dims = 1;
    expect_failure(nameless(), &options, ONV_ERR_USAGE, "--shape INPUT=AxBxC");
}

/* --shape and --batch together: what --dim gives, or a refusal; never another figure. */
static void shapes_of_all_inputs_leave_the_batch_its_place(void **state)
{
    (void)state;
    const onv_shape_binding one[] = {{"x", (int64_t[]){1, 8, 9}, 3}, {"mask", (int64_t[]){9}, 1}};
    const onv_shape_binding same[] = {{"x", (int64_t[]){4, 8, 9}, 3}, {"mask", (int64_t[]){9}, 1}};
    onv_options options = onv_options_default();
    options.batch = 4;
    options.n_shapes = 2;
    options.shapes = one;
    expect_failure(symbolic(), &options, ONV_ERR_USAGE, "bound to both 1 and 4");
    options.shapes = same;
    expect_shape(symbolic(), &options, "y", "[4, 9, 8]");
    options.budget = (uint64_t)1 << 30;
    options.max_batch = true;
    options.batch = 0;
    expect_failure(symbolic(), &options, ONV_ERR_USAGE, "--max-batch is to choose it");
}

/* Where the export fixed the batch, --shape may change the rest. */
static void a_shape_of_the_fixed_batch_goes_with_another_batch(void **state)
{
    (void)state;
    static const char *const expected[] = {"[4, 8]", "[4, 8]", NULL};
    for (int64_t rows = 1; rows < 4; rows++) {
        model *m = model_new(17);
        model_input(m, "x", "f32[1,8]");
        model_node(m, "Relu", "r", "x", "y", "");
        model_output(m, "y", "f32");
        onv_options options = onv_options_default();
        options.batch = 4;
        int64_t dims[] = {rows == 2 ? 4 : rows, 8};
        options.shapes = &(onv_shape_binding){"x", dims, 2};
        options.n_shapes = 1;
        if (expected[rows - 1] != NULL)
            expect_shape(m, &options, "y", expected[rows - 1]);
        else
            expect_failure(m, &options, ONV_ERR_USAGE, "batch of 3");
    }
}

static void conflicting_bindings_are_one_clear_line(void **state)
{
    (void)state;
    int64_t shape[] = {3, 8, 5};
    onv_shape_binding shapes[] = {{"x", shape, 3}};
    onv_dim_binding dims[] = {{"seq", 6}};
    onv_options options = onv_options_default();
    options.shapes = shapes;
    options.n_shapes = 1;
    options.dims = dims;
    options.n_dims = 1;
    expect_failure(symbolic(), &options, ONV_ERR_USAGE, "'seq' is bound to both 6 and 5");
}

static void a_bound_batch_leaves_nothing_to_search(void **state)
{
    (void)state;
    onv_dim_binding dims[] = {{"batch", 6}};
    onv_options options = onv_options_default();
    options.dims = dims;
    options.n_dims = 1;
    options.max_batch = true;
    options.budget = 1 << 20;
    expect_failure(symbolic(), &options, ONV_ERR_USAGE, "'batch' is bound to 6, but --max-batch");
}

static void a_shape_of_the_wrong_rank_is_refused(void **state)
{
    (void)state;
    int64_t shape[] = {3, 8};
    onv_shape_binding shapes[] = {{"x", shape, 2}};
    onv_options options = onv_options_default();
    options.shapes = shapes;
    options.n_shapes = 1;
    expect_failure(symbolic(), &options, ONV_ERR_USAGE, "rank 3");
}

static void input_values_decide_shapes(void **state)
{
    (void)state;
    model *m = model_new(17);
    model_input(m, "x", "f32[2,12]");
    model_input(m, "target", "i64[n]");
    model_node(m, "Reshape", "r", "x target", "y", "");
    model_output(m, "y", "f32");
    double numbers[] = {4, -1, 3};
    onv_input_value values[] = {{.name = "target", .numbers = numbers, .count = 3}};
    onv_options options = onv_options_default();
    options.input_values = values;
    options.n_input_values = 1;
    expect_shape(m, &options, "y", "[4, 2, 3]");
}

static void a_sequence_of_bounded_parts_is_bounded(void **state)
{
    (void)state;
    model *m = model_new(17);
    model_input(m, "x", "f32[6,2]");
    model_input(m, "sizes", "i64[3]");
    model_node(m, "SplitToSequence", "s", "x sizes", "y", "");
    model_output(m, "y", "f32");
    onv_analysis *a = model_analyse(m, NULL);
    onv_tensor_info info = {0};
    for (size_t i = 0; i < onv_analysis_tensor_count(a); i++) {
        assert_true(onv_analysis_tensor(a, i, &info));
        if (strcmp(info.name, "y") == 0) break;
    }
    assert_string_equal(info.name, "y");
    assert_int_equal(info.bytes, 3 * 6 * 2 * 4);
    assert_true(info.bound);
    onv_analysis_destroy(a);
    model_free(m);
}

/* --- A batch that the export fixed ------------------------------------------------------------- */

static onv_options batch_of(int64_t batch)
{
    onv_options options = onv_options_default();
    options.batch = batch;
    return options;
}

static void a_reshape_target_carries_the_old_batch(void **state)
{
    (void)state;
    model *m = model_new(17);
    model_input(m, "x", "f32[1,2048,1,1]");
    model_ints(m, "target", 2, (int64_t[]){1, 2048});
    model_ints(m, "open", 2, (int64_t[]){1, -1});
    model_node(m, "Reshape", "view", "x target", "a", "");
    model_node(m, "Reshape", "flat", "x open", "b", "");
    model_node(m, "Add", "add", "a b", "y", "");
    model_output(m, "y", "f32[1,2048]");
    onv_options options = batch_of(8);
    expect_shape(m, &options, "y", "[8, 2048]");
}

static void windows_and_heads_carry_a_multiple(void **state)
{
    (void)state;
    /* [4 windows of batch 1] as in Swin, then heads: 4*3 for batch 1. */
    model *m = model_new(17);
    model_input(m, "x", "f32[2,4,9,6]");
    model_ints(m, "windows", 3, (int64_t[]){8, 9, 6});
    model_ints(m, "heads", 3, (int64_t[]){9, 24, 2});
    model_node(m, "Reshape", "window", "x windows", "w", "");
    model_node(m, "Transpose", "t", "w", "t", "perm=[1,0,2]");
    model_node(m, "Reshape", "head", "t heads", "y", "");
    model_output(m, "y", "f32");
    onv_options options = batch_of(6);
    expect_shape(m, &options, "y", "[9, 72, 2]");
}

static void an_expand_upstream_is_found_from_the_mismatch(void **state)
{
    (void)state;
    model *m = model_new(17);
    model_input(m, "x", "f32[1,196,768]");
    model_weight(m, "class_token", "f32[1,1,768]");
    model_ints(m, "shape", 3, (int64_t[]){1, 1, 768});
    model_node(m, "Expand", "expand", "class_token shape", "token", "");
    model_node(m, "Concat", "cat", "token x", "y", "axis=1");
    model_output(m, "y", "f32");
    onv_options options = batch_of(16);
    expect_shape(m, &options, "y", "[16, 197, 768]");
}

static void sizes_of_a_resize_follow_the_batch(void **state)
{
    (void)state;
    model *m = model_new(17);
    model_input(m, "x", "f32[4,3,8,8]");
    model_ints(m, "sizes", 4, (int64_t[]){4, 3, 16, 16});
    model_node(m, "Resize", "up", "x - - sizes", "y", "mode='nearest'");
    model_output(m, "y", "f32");
    onv_options options = batch_of(64);
    expect_shape(m, &options, "y", "[64, 3, 16, 16]");
}

/* What cuts the batch off is no failure of inference; nothing upstream can be changed. */
static void a_batch_that_stops_growing_is_refused(void **state)
{
    (void)state;
    model *m = model_new(17);
    onv_error err = {0};
    onv_analysis *analysis;
    model_input(m, "x", "f32[4,8]");
    model_ints(m, "zero", 1, (int64_t[]){0});
    model_ints(m, "four", 1, (int64_t[]){4});
    model_node(m, "Slice", "part", "x zero four zero", "y", "");
    model_output(m, "y", "f32");
    onv_options options = batch_of(64);
    assert_int_equal(model_try(m, &options, &analysis, &err), ONV_ERR_USAGE);
    assert_string_equal(err.node, "part");
    assert_non_null(strstr(err.message, "dynamic_shapes"));
    model_free(m);
}

static void expect_refusal(model *m, const char *node, const char *why)
{
    onv_error err = {0};
    onv_analysis *analysis;
    onv_options options = batch_of(8);
    assert_int_equal(model_try(m, &options, &analysis, &err), ONV_ERR_USAGE);
    assert_string_equal(err.node, node);
    if (strstr(err.message, why) == NULL) fail_msg("'%s' does not say '%s'", err.message, why);
    assert_non_null(strstr(err.message, "dynamic_shapes"));
    model_free(m);
}

static void channels_that_hold_the_batch_are_resized_whole(void **state)
{
    (void)state;
    model *m = model_new(17);
    model_input(m, "x", "f32[4,8,16,16]");
    model_ints(m, "folded", 4, (int64_t[]){1, 32, 16, 16});
    model_ints(m, "sizes", 4, (int64_t[]){1, 32, 32, 32});
    model_ints(m, "unfolded", 4, (int64_t[]){4, 8, 32, 32});
    model_node(m, "Reshape", "fold", "x folded", "a", "");
    model_node(m, "Resize", "up", "a - - sizes", "b", "mode='nearest'");
    model_node(m, "Reshape", "unfold", "b unfolded", "y", "");
    model_output(m, "y", "f32");
    onv_options options = batch_of(8);
    onv_analysis *analysis = model_analyse(m, &options);
    assert_string_equal(model_shape(analysis, "b"), "[1, 64, 32, 32]");
    assert_string_equal(model_shape(analysis, "y"), "[8, 8, 32, 32]");
    onv_analysis_destroy(analysis);
    model_free(m);
}

/* Sizes that are neither those of the data nor carry the batch. */
static void sizes_that_drop_the_batch_are_refused(void **state)
{
    (void)state;
    model *m = model_new(17);
    model_input(m, "x", "f32[4,8,16]");
    model_ints(m, "sizes", 3, (int64_t[]){12, 8, 16});
    model_node(m, "Resize", "up", "x - - sizes", "y", "mode='nearest'");
    model_output(m, "y", "f32");
    expect_refusal(m, "up", "grows with the batch");
}

static void indices_of_every_sample_are_refused(void **state)
{
    (void)state;
    model *m = model_new(17);
    model_input(m, "x", "f32[4,16]");
    model_ints(m, "samples", 4, (int64_t[]){3, 2, 1, 0});
    model_node(m, "Gather", "flip", "x samples", "a", "");
    model_node(m, "ReduceSum", "sum", "a", "y", "keepdims=0");
    model_output(m, "y", "f32");
    expect_refusal(m, "flip", "picks the samples");
}

static void samples_of_the_old_batch_are_not_appended(void **state)
{
    (void)state;
    model *m = model_new(17);
    model_input(m, "x", "f32[4,16]");
    model_weight(m, "none", "f32[4,16]");
    model_node(m, "Concat", "twice", "x none", "y", "axis=0");
    model_output(m, "y", "f32");
    expect_refusal(m, "twice", "appends");
    m = model_new(17);
    model_input(m, "x", "f32[4,16]");
    model_ints(m, "pads", 4, (int64_t[]){0, 0, 4, 0});
    model_node(m, "Pad", "fill", "x pads", "y", "");
    model_output(m, "y", "f32");
    expect_refusal(m, "fill", "appends");
}

/* What no input decides: its shape carries the batch, wherever it stands in it. */
static void results_beside_the_inputs_have_the_batch(void **state)
{
    (void)state;
    model *m = model_new(17);
    model_input(m, "x", "f32[4,16]");
    model_ints(m, "shape", 3, (int64_t[]){1, 4, 16});
    model_node(m, "ConstantOfShape", "zeros", "shape", "a", "");
    model_node(m, "Tanh", "tanh", "a", "h", "");
    model_node(m, "Relu", "relu", "x", "y", "");
    model_output(m, "h", "f32");
    model_output(m, "y", "f32");
    onv_options options = batch_of(8);
    expect_shape(m, &options, "h", "[1, 8, 16]");

    m = model_new(17);
    model_input(m, "x", "f32[4,16]");
    model_weight(m, "w", "f32[4,16]");
    model_node(m, "Tanh", "tanh", "w", "h", "");
    model_node(m, "Relu", "relu", "x", "y", "");
    model_output(m, "h", "f32");
    model_output(m, "y", "f32");
    expect_refusal(m, "tanh", "keeps the old batch");

    m = model_new(17);
    model_input(m, "x", "f32[4,16]");
    model_weight(m, "mask", "f32[4,1,6]");
    model_node(m, "Relu", "relu", "x", "y", "");
    model_output(m, "mask", "f32");
    model_output(m, "y", "f32");
    expect_refusal(m, "", "a constant of that batch");
}

/* As many heads as samples, and heads come first: only the result says which is which. */
static void heads_are_told_from_samples(void **state)
{
    (void)state;
    model *m = model_new(17);
    model_input(m, "x", "f32[4,6,4,5]");
    model_ints(m, "merged", 3, (int64_t[]){16, 6, 5});
    model_ints(m, "split", 4, (int64_t[]){4, 4, 6, 5});
    model_ints(m, "rows", 3, (int64_t[]){4, 6, 20});
    model_node(m, "Transpose", "heads", "x", "a", "perm=[2,0,1,3]");
    model_node(m, "Reshape", "merge", "a merged", "b", "");
    model_node(m, "Reshape", "part", "b split", "c", "");
    model_node(m, "Transpose", "samples", "c", "d", "perm=[1,2,0,3]");
    model_node(m, "Reshape", "join", "d rows", "y", "");
    model_output(m, "y", "f32");
    onv_options options = batch_of(8);
    onv_analysis *analysis = model_analyse(m, &options);
    assert_string_equal(model_shape(analysis, "c"), "[4, 8, 6, 5]");
    assert_string_equal(model_shape(analysis, "y"), "[8, 6, 20]");
    onv_analysis_destroy(analysis);
    model_free(m);
}

static void one_constant_may_mean_different_things(void **state)
{
    (void)state;
    model *m = model_new(17);
    model_input(m, "x", "f32[2,6]");
    model_weight(m, "w", "f32[12]");
    model_ints(m, "target", 2, (int64_t[]){2, 6});
    model_node(m, "Reshape", "of_input", "x target", "a", "");
    model_node(m, "Reshape", "of_weight", "w target", "b", "");
    model_node(m, "ReduceSum", "sum", "a", "c", "keepdims=1");
    model_node(m, "ReduceSum", "sum_b", "b", "d", "keepdims=1");
    model_output(m, "d", "f32");
    model_output(m, "c", "f32");
    onv_options options = batch_of(4);
    onv_analysis *analysis = model_analyse(m, &options);
    assert_string_equal(model_shape(analysis, "a"), "[4, 6]");
    assert_string_equal(model_shape(analysis, "b"), "[2, 6]");
    onv_analysis_destroy(analysis);
    model_free(m);
}

static void what_cannot_be_carried_names_node_and_constant(void **state)
{
    (void)state;
    model *m = model_new(17);
    model_input(m, "x", "f32[4,10]");
    model_weight(m, "table", "f32[4,3]");
    model_node(m, "Concat", "cat", "x table", "y", "axis=1");
    model_output(m, "y", "f32");
    onv_options options = batch_of(8);
    onv_analysis *a;
    onv_error error;
    assert_int_equal(model_try(m, &options, &a, &error), ONV_ERR_USAGE);
    assert_string_equal(error.node, "cat");
    assert_non_null(strstr(error.message, "fixed the batch to 4"));
    assert_non_null(strstr(error.message, "'table'"));
    model_free(m);
}

static void the_fixed_sample_becomes_the_free_one(void **state)
{
    (void)state;
    onv_options options = batch_of(8);
    onv_analysis *a, *b;
    onv_error error;
    onv_status status =
        onv_analysis_new(ONV_SOURCE_DIR "/samples/resnet50-batch1.onnx", &options, &a, &error);
    if (status != ONV_OK) fail_msg("%s: %s", error.node, error.message);
    status = onv_analysis_new(ONV_SOURCE_DIR "/samples/resnet50.onnx", &options, &b, &error);
    assert_int_equal(status, ONV_OK);
    onv_summary x = {.struct_size = sizeof x}, y = {.struct_size = sizeof y};
    onv_analysis_summary(a, &x);
    onv_analysis_summary(b, &y);
    assert_int_equal(x.peak_bytes, y.peak_bytes);
    assert_int_equal(x.output_bytes, y.output_bytes);
    onv_analysis_destroy(a);
    onv_analysis_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_dims_stay_symbols),
        cmocka_unit_test(batch_binds_the_batch_alone),
        cmocka_unit_test(dims_bind_by_name),
        cmocka_unit_test(a_name_that_is_an_expression_is_read_as_one),
        cmocka_unit_test(an_unknown_dim_is_named_with_the_choices),
        cmocka_unit_test(shapes_bind_the_symbols_they_meet),
        cmocka_unit_test(names_that_say_nothing_are_free_axes),
        cmocka_unit_test(shapes_of_all_inputs_leave_the_batch_its_place),
        cmocka_unit_test(a_shape_of_the_fixed_batch_goes_with_another_batch),
        cmocka_unit_test(conflicting_bindings_are_one_clear_line),
        cmocka_unit_test(a_bound_batch_leaves_nothing_to_search),
        cmocka_unit_test(a_shape_of_the_wrong_rank_is_refused),
        cmocka_unit_test(input_values_decide_shapes),
        cmocka_unit_test(a_sequence_of_bounded_parts_is_bounded),
        cmocka_unit_test(a_reshape_target_carries_the_old_batch),
        cmocka_unit_test(windows_and_heads_carry_a_multiple),
        cmocka_unit_test(an_expand_upstream_is_found_from_the_mismatch),
        cmocka_unit_test(sizes_of_a_resize_follow_the_batch),
        cmocka_unit_test(a_batch_that_stops_growing_is_refused),
        cmocka_unit_test(channels_that_hold_the_batch_are_resized_whole),
        cmocka_unit_test(sizes_that_drop_the_batch_are_refused),
        cmocka_unit_test(indices_of_every_sample_are_refused),
        cmocka_unit_test(samples_of_the_old_batch_are_not_appended),
        cmocka_unit_test(results_beside_the_inputs_have_the_batch),
        cmocka_unit_test(heads_are_told_from_samples),
        cmocka_unit_test(one_constant_may_mean_different_things),
        cmocka_unit_test(what_cannot_be_carried_names_node_and_constant),
        cmocka_unit_test(the_fixed_sample_becomes_the_free_one),
    };
    return cmocka_run_group_tests_name("infer.bind", tests, NULL, NULL);
}
