/* Bindings: what --batch, --dim, --shape and --input-value do to a model. */
#include "support/capture.h"
#include "support/onnx_writer.h"
#include "support/test.h"

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
    OWNED_ANALYSIS a = model_analyse(m, options);
    assert_string_equal(model_shape(a, name), shape);
    model_free(m);
}

/* x[batch, 8, 16] -> transpose -> y, with a second input of its own length. */
static model *symbolic(void)
{
    model *m = model_read(17, "in x f32[batch,8,seq]", "in mask f32[seq]", "sum = Add(x mask) add",
                          "y = Transpose(sum) t perm=[0,2,1]", "out y f32");
    return m;
}

TEST(free_dims_stay_symbols)
{
    expect_shape(symbolic(), NULL, "y", "[batch, seq, 8]");
}

TEST(batch_binds_the_batch_alone)
{
    onv_options options = onv_options_default();
    options.batch = 4;
    expect_shape(symbolic(), &options, "y", "[4, seq, 8]");
}

TEST(dims_bind_by_name)
{
    onv_dim_binding dims[] = {{"seq", 33}, {"batch", 2}};
    onv_options options = onv_options_default();
    options.dims = dims;
    options.n_dims = 2;
    expect_shape(symbolic(), &options, "y", "[2, 33, 8]");
}

/* As PyTorch's dynamo exporter names the length of a mask. */
static model *derived(void)
{
    model *m = model_read(17, "in x f32[batch,seq]", "in cache f32[batch,past]",
                          "in mask f32[batch,past + seq]", "both = Concat(cache x) cat axis=1",
                          "y = Add(both mask) add", "out y f32");
    return m;
}

TEST(a_name_that_is_an_expression_is_read_as_one)
{
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

TEST(an_unknown_dim_is_named_with_the_choices)
{
    onv_dim_binding dims[] = {{"sequence", 33}};
    onv_options options = onv_options_default();
    options.dims = dims;
    options.n_dims = 1;
    expect_failure(symbolic(), &options, ONV_ERR_USAGE, "batch, seq");
}

TEST(shapes_bind_the_symbols_they_meet)
{
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
    model *m = model_read(17, "in x f32[-1,3,??,??]", "in z f32[None,4]", "y = Relu(x) r",
                          "w = Relu(z) q", "out y f32", "out w f32");
    return m;
}

TEST(names_that_say_nothing_are_free_axes)
{
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
TEST(shapes_of_all_inputs_leave_the_batch_its_place)
{
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
TEST(a_shape_of_the_fixed_batch_goes_with_another_batch)
{
    static const char *const expected[] = {"[4, 8]", "[4, 8]", NULL};
    for (int64_t rows = 1; rows < 4; rows++) {
        model *m = model_read(17, "in x f32[1,8]", "y = Relu(x) r", "out y f32");
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

TEST(conflicting_bindings_are_one_clear_line)
{
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

TEST(a_bound_batch_leaves_nothing_to_search)
{
    onv_dim_binding dims[] = {{"batch", 6}};
    onv_options options = onv_options_default();
    options.dims = dims;
    options.n_dims = 1;
    options.max_batch = true;
    options.budget = 1 << 20;
    expect_failure(symbolic(), &options, ONV_ERR_USAGE, "'batch' is bound to 6, but --max-batch");
}

TEST(a_shape_of_the_wrong_rank_is_refused)
{
    int64_t shape[] = {3, 8};
    onv_shape_binding shapes[] = {{"x", shape, 2}};
    onv_options options = onv_options_default();
    options.shapes = shapes;
    options.n_shapes = 1;
    expect_failure(symbolic(), &options, ONV_ERR_USAGE, "rank 3");
}

TEST(input_values_decide_shapes)
{
    model *m = model_read(17, "in x f32[2,12]", "in target i64[n]", "y = Reshape(x target) r",
                          "out y f32");
    double numbers[] = {4, -1, 3};
    onv_input_value values[] = {{.name = "target", .numbers = numbers, .count = 3}};
    onv_options options = onv_options_default();
    options.input_values = values;
    options.n_input_values = 1;
    expect_shape(m, &options, "y", "[4, 2, 3]");
}

TEST(a_sequence_of_bounded_parts_is_bounded)
{
    OWNED_MODEL m = model_read(17, "in x f32[6,2]", "in sizes i64[3]",
                               "y = SplitToSequence(x sizes) s", "out y f32");
    OWNED_ANALYSIS a = model_analyse(m, NULL);
    onv_tensor_info info = {0};
    for (size_t i = 0; i < onv_analysis_tensor_count(a); i++) {
        assert_true(onv_analysis_tensor(a, i, &info));
        if (strcmp(info.name, "y") == 0) break;
    }
    assert_string_equal(info.name, "y");
    assert_int_equal(info.bytes, 3 * 6 * 2 * 4);
    assert_true(info.bound);
}
