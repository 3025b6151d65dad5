/* A batch that the export fixed, changed: what carries it is found, or the model is refused. */
#include "support/capture.h"
#include "support/onnx_writer.h"
#include "support/test.h"

static void expect_shape(model *m, const onv_options *options, const char *name, const char *shape)
{
    OWNED_ANALYSIS a = model_analyse(m, options);
    assert_string_equal(model_shape(a, name), shape);
    model_free(m);
}

/* --- A batch that the export fixed ------------------------------------------------------------- */

static onv_options batch_of(int64_t batch)
{
    onv_options options = onv_options_default();
    options.batch = batch;
    return options;
}

TEST(a_reshape_target_carries_the_old_batch)
{
    model *m = model_read(17, "in x f32[1,2048,1,1]");
    model_ints(m, "target", 2, (int64_t[]){1, 2048});
    model_ints(m, "open", 2, (int64_t[]){1, -1});
    model_add(m, "a = Reshape(x target) view", "b = Reshape(x open) flat", "y = Add(a b) add",
              "out y f32[1,2048]");
    onv_options options = batch_of(8);
    expect_shape(m, &options, "y", "[8, 2048]");
}

TEST(windows_and_heads_carry_a_multiple)
{
    /* [4 windows of batch 1] as in Swin, then heads: 4*3 for batch 1. */
    model *m = model_read(17, "in x f32[2,4,9,6]");
    model_ints(m, "windows", 3, (int64_t[]){8, 9, 6});
    model_ints(m, "heads", 3, (int64_t[]){9, 24, 2});
    model_add(m, "w = Reshape(x windows) window", "t = Transpose(w) t perm=[1,0,2]",
              "y = Reshape(t heads) head", "out y f32");
    onv_options options = batch_of(6);
    expect_shape(m, &options, "y", "[9, 72, 2]");
}

TEST(an_expand_upstream_is_found_from_the_mismatch)
{
    model *m = model_read(17, "in x f32[1,196,768]", "weight class_token f32[1,1,768]");
    model_ints(m, "shape", 3, (int64_t[]){1, 1, 768});
    model_add(m, "token = Expand(class_token shape) expand", "y = Concat(token x) cat axis=1",
              "out y f32");
    onv_options options = batch_of(16);
    expect_shape(m, &options, "y", "[16, 197, 768]");
}

TEST(sizes_of_a_resize_follow_the_batch)
{
    model *m = model_read(17, "in x f32[4,3,8,8]");
    model_ints(m, "sizes", 4, (int64_t[]){4, 3, 16, 16});
    model_add(m, "y = Resize(x - - sizes) up mode='nearest'", "out y f32");
    onv_options options = batch_of(64);
    expect_shape(m, &options, "y", "[64, 3, 16, 16]");
}

/* What cuts the batch off is no failure of inference; nothing upstream can be changed. */
TEST(a_batch_that_stops_growing_is_refused)
{
    OWNED_MODEL m = model_new(17);
    onv_error err = {0};
    onv_analysis *analysis;
    model_input(m, "x", "f32[4,8]");
    model_ints(m, "zero", 1, (int64_t[]){0});
    model_ints(m, "four", 1, (int64_t[]){4});
    model_add(m, "y = Slice(x zero four zero) part", "out y f32");
    onv_options options = batch_of(64);
    assert_int_equal(model_try(m, &options, &analysis, &err), ONV_ERR_USAGE);
    assert_string_equal(err.node, "part");
    assert_non_null(strstr(err.message, "dynamic_axes={\"x\": {0: \"batch\"}}"));
}

static void expect_refusal(model *m, const char *node, const char *why)
{
    onv_error err = {0};
    onv_analysis *analysis;
    onv_options options = batch_of(8);
    assert_int_equal(model_try(m, &options, &analysis, &err), ONV_ERR_USAGE);
    assert_string_equal(err.node, node);
    if (strstr(err.message, why) == NULL) fail_msg("'%s' does not say '%s'", err.message, why);
    assert_non_null(strstr(err.message, "dynamic_axes={\"x\": {0: \"batch\"}}"));
    model_free(m);
}

TEST(channels_that_hold_the_batch_are_resized_whole)
{
    OWNED_MODEL m = model_read(17, "in x f32[4,8,16,16]");
    model_ints(m, "folded", 4, (int64_t[]){1, 32, 16, 16});
    model_ints(m, "sizes", 4, (int64_t[]){1, 32, 32, 32});
    model_ints(m, "unfolded", 4, (int64_t[]){4, 8, 32, 32});
    model_add(m, "a = Reshape(x folded) fold", "b = Resize(a - - sizes) up mode='nearest'",
              "y = Reshape(b unfolded) unfold", "out y f32");
    onv_options options = batch_of(8);
    OWNED_ANALYSIS analysis = model_analyse(m, &options);
    assert_string_equal(model_shape(analysis, "b"), "[1, 64, 32, 32]");
    assert_string_equal(model_shape(analysis, "y"), "[8, 8, 32, 32]");
}

/* Sizes that are neither those of the data nor carry the batch. */
TEST(sizes_that_drop_the_batch_are_refused)
{
    model *m = model_read(17, "in x f32[4,8,16]");
    model_ints(m, "sizes", 3, (int64_t[]){12, 8, 16});
    model_add(m, "y = Resize(x - - sizes) up mode='nearest'", "out y f32");
    expect_refusal(m, "up", "grows with the batch");
}

TEST(indices_of_every_sample_are_refused)
{
    model *m = model_read(17, "in x f32[4,16]");
    model_ints(m, "samples", 4, (int64_t[]){3, 2, 1, 0});
    model_add(m, "a = Gather(x samples) flip", "y = ReduceSum(a) sum keepdims=0", "out y f32");
    expect_refusal(m, "flip", "picks the samples");
}

TEST(samples_of_the_old_batch_are_not_appended)
{
    model *m = model_read(17, "in x f32[4,16]", "weight none f32[4,16]",
                          "y = Concat(x none) twice axis=0", "out y f32");
    expect_refusal(m, "twice", "appends");
    m = model_read(17, "in x f32[4,16]");
    model_ints(m, "pads", 4, (int64_t[]){0, 0, 4, 0});
    model_add(m, "y = Pad(x pads) fill", "out y f32");
    expect_refusal(m, "fill", "appends");
}

/* What no input decides: its shape carries the batch, wherever it stands in it. */
TEST(results_beside_the_inputs_have_the_batch)
{
    model *m = model_read(17, "in x f32[4,16]");
    model_ints(m, "shape", 3, (int64_t[]){1, 4, 16});
    model_add(m, "a = ConstantOfShape(shape) zeros", "h = Tanh(a) tanh", "y = Relu(x) relu",
              "out h f32", "out y f32");
    onv_options options = batch_of(8);
    expect_shape(m, &options, "h", "[1, 8, 16]");

    m = model_read(17, "in x f32[4,16]", "weight w f32[4,16]", "h = Tanh(w) tanh",
                   "y = Relu(x) relu", "out h f32", "out y f32");
    expect_refusal(m, "tanh", "keeps the old batch");

    m = model_read(17, "in x f32[4,16]", "weight mask f32[4,1,6]", "y = Relu(x) relu",
                   "out mask f32", "out y f32");
    expect_refusal(m, "", "a constant of that batch");
}

/* As many heads as samples, and heads come first: only the result says which is which. */
TEST(heads_are_told_from_samples)
{
    OWNED_MODEL m = model_read(17, "in x f32[4,6,4,5]");
    model_ints(m, "merged", 3, (int64_t[]){16, 6, 5});
    model_ints(m, "split", 4, (int64_t[]){4, 4, 6, 5});
    model_ints(m, "rows", 3, (int64_t[]){4, 6, 20});
    model_add(m, "a = Transpose(x) heads perm=[2,0,1,3]", "b = Reshape(a merged) merge",
              "c = Reshape(b split) part", "d = Transpose(c) samples perm=[1,2,0,3]",
              "y = Reshape(d rows) join", "out y f32");
    onv_options options = batch_of(8);
    OWNED_ANALYSIS analysis = model_analyse(m, &options);
    assert_string_equal(model_shape(analysis, "c"), "[4, 8, 6, 5]");
    assert_string_equal(model_shape(analysis, "y"), "[8, 6, 20]");
}

TEST(one_constant_may_mean_different_things)
{
    OWNED_MODEL m = model_read(17, "in x f32[2,6]", "weight w f32[12]");
    model_ints(m, "target", 2, (int64_t[]){2, 6});
    model_add(m, "a = Reshape(x target) of_input", "b = Reshape(w target) of_weight",
              "c = ReduceSum(a) sum keepdims=1", "d = ReduceSum(b) sum_b keepdims=1", "out d f32",
              "out c f32");
    onv_options options = batch_of(4);
    OWNED_ANALYSIS analysis = model_analyse(m, &options);
    assert_string_equal(model_shape(analysis, "a"), "[4, 6]");
    assert_string_equal(model_shape(analysis, "b"), "[2, 6]");
}

TEST(what_cannot_be_carried_names_node_and_constant)
{
    static const char *const remedies[] = {
        "input_names=[\"x\"], dynamic_axes={\"x\": {0: \"batch\"}}, or leave --batch out",
        "dynamo=True, dynamic_shapes={\"x\": {0: torch.export.Dim.DYNAMIC}}, or leave --batch out"};
    for (int is_newer = 0; is_newer < 2; is_newer++) {
        OWNED_MODEL m = model_read(17, "in x f32[4,10]", "weight table f32[4,3]");
        if (is_newer) {
            model_add(m, "source net cat", "class Net aten.cat.default");
        }
        model_add(m, "y = Concat(x table) cat axis=1", "out y f32");
        onv_options options = batch_of(8);
        onv_analysis *a;
        onv_error error;
        assert_int_equal(model_try(m, &options, &a, &error), ONV_ERR_USAGE);
        assert_string_equal(error.node, "cat");
        assert_non_null(strstr(error.message, "fixed the batch to 4"));
        assert_non_null(strstr(error.message, "'table'"));
        assert_non_null(strstr(error.message, remedies[is_newer]));
    }
}

TEST(the_fixed_sample_becomes_the_free_one)
{
    onv_options options = batch_of(8);
    onv_analysis *a, *b;
    onv_error error;
    onv_status status =
        onv_analysis_new(ONV_SOURCE_DIR "/samples/resnet50-batch1.onnx", &options, &a, &error);
    if (status != ONV_OK) fail_msg("%s: %s", error.node, error.message);
    status = onv_analysis_new(ONV_SOURCE_DIR "/samples/resnet50.onnx", &options, &b, &error);
    assert_int_equal(status, ONV_OK);
    onv_summary x = {0}, y = {0};
    onv_analysis_summary(a, &x);
    onv_analysis_summary(b, &y);
    assert_int_equal(x.peak_bytes, y.peak_bytes);
    assert_int_equal(x.output_bytes, y.output_bytes);
    onv_analysis_destroy(a);
    onv_analysis_destroy(b);
}

/* --- Reshapes that can be read in several ways ------------------------------------------------- */

/* Heads first, one sample: the batch joins the heads, as sizes would grow with its square otherwise. */
TEST(a_batch_of_one_joins_the_heads)
{
    OWNED_MODEL m = model_read(17, "in x f32[1,6,16]");
    model_ints(m, "parts", 4, (int64_t[]){1, 6, 2, 8});
    model_ints(m, "merged", 3, (int64_t[]){2, 6, 8});
    model_ints(m, "split", 4, (int64_t[]){2, 1, 6, 8});
    model_ints(m, "rows", 3, (int64_t[]){1, 6, 16});
    model_add(m, "a = Reshape(x parts) part", "b = Transpose(a) heads perm=[2,0,1,3]",
              "c = Reshape(b merged) merge", "d = Transpose(c) t perm=[0,2,1]",
              "e = MatMul(c d) near", "f = MatMul(e c) mix", "g = Reshape(f split) divide",
              "h = Transpose(g) samples perm=[1,2,0,3]", "y = Reshape(h rows) join", "out y f32");
    onv_options options = batch_of(8);
    OWNED_ANALYSIS analysis = model_analyse(m, &options);
    assert_string_equal(model_shape(analysis, "e"), "[16, 6, 6]");
    assert_string_equal(model_shape(analysis, "g"), "[2, 8, 6, 8]");
    assert_string_equal(model_shape(analysis, "y"), "[8, 6, 16]");
}

/* A later dim of 1 is not the batch where the first dim stays as it is. */
TEST(a_merged_batch_stays_where_the_target_begins_alike)
{
    model *m = model_read(17, "in x f32[1,4,1,96]");
    model_ints(m, "merged", 3, (int64_t[]){4, 1, 96});
    model_ints(m, "heads", 4, (int64_t[]){4, 1, 8, 12});
    model_add(m, "a = Reshape(x merged) merge", "y = Reshape(a heads) part", "out y f32");
    onv_options options = batch_of(8);
    expect_shape(m, &options, "y", "[32, 1, 8, 12]");
}

/* What grows with the square of the batch is taken where nothing else is possible. */
TEST(similarities_of_samples_grow_with_the_square)
{
    model *m = model_read(17, "in x f32[4,16]", "a = Transpose(x) t perm=[1,0]",
                          "y = MatMul(x a) near", "out y f32");
    onv_options options = batch_of(8);
    expect_shape(m, &options, "y", "[8, 8]");
}

/* --- Further constants ------------------------------------------------------------------------- */

/* TorchScript's expand: -1 in the sizes stands for 1. */
TEST(sizes_of_an_expand_are_computed)
{
    for (int64_t old = 1; old <= 4; old += 3) {
        model *m = model_new(17);
        model_input(m, "x", old == 1 ? "f32[1,6,16]" : "f32[4,6,16]");
        model_weight(m, "token", "f32[1,1,16]");
        model_ints(m, "sizes", 3, (int64_t[]){old, 1, 16});
        model_ints(m, "ones", 3, (int64_t[]){1, 1, 1});
        model_ints(m, "minus", 3, (int64_t[]){-1, -1, -1});
        model_add(m, "open = Equal(sizes minus) is_open", "shape = Where(open ones sizes) choose",
                  "tokens = Expand(token shape) expand", "y = Concat(tokens x) cat axis=1",
                  "out y f32");
        onv_options options = batch_of(8);
        expect_shape(m, &options, "y", "[8, 7, 16]");
    }
}

/* An input that begins with the new batch by chance is not the batch, however often it is tried. */
TEST(a_size_that_equals_the_new_batch_is_not_the_batch)
{
    model *m = model_read(17, "in x f32[4,16]", "in words f32[8,16]", "weight token f32[1,16]");
    model_ints(m, "sizes", 2, (int64_t[]){4, 16});
    model_ints(m, "zero", 1, (int64_t[]){0});
    model_ints(m, "eight", 1, (int64_t[]){8});
    model_add(m, "tokens = Expand(token sizes) expand", "y = Concat(tokens x) cat axis=1",
              "z = Slice(words zero eight zero) part", "out y f32", "out z f32");
    onv_options options = batch_of(8);
    expect_shape(m, &options, "y", "[8, 32]");
}

TEST(samples_of_the_old_batch_are_not_written)
{
    model *m = model_read(17, "in x f32[4,6]", "weight indices i64[4,1]", "weight updates f32[4,1]",
                          "y = ScatterElements(x indices updates) set axis=1", "out y f32");
    expect_refusal(m, "set", "writes to the samples");
}

/* as_strided: every element of the flattened data by its number. */
TEST(entries_of_one_sample_are_not_picked)
{
    model *m = model_read(17, "in x f32[1,48]");
    model_ints(m, "flat", 1, (int64_t[]){-1});
    model_add(m, "weight places i64[1,48,1,1]", "a = Reshape(x flat) flatten",
              "y = Gather(a places) as_strided", "out y f32");
    expect_refusal(m, "as_strided", "picks the samples");
}

TEST(a_result_of_one_sample_is_refused)
{
    model *m =
        model_read(17, "in x f32[1,16]", "y = ReduceMax(x) most axes=[0] keepdims=1", "out y f32");
    expect_refusal(m, "most", "keeps the old batch");
}

/* ONNX Runtime's rules make reshapes of their own of sizes that they read from the constants. */
TEST(later_stages_read_the_new_constants)
{
    for (int is_computed = 0; is_computed < 2; is_computed++) {
        model *m = model_read(17, "in x f32[4,96]", "weight w f32[24,24]", "weight b f32[24]");
        model_ints(m, "four", 1, (int64_t[]){4});
        model_ints(m, "rest", 2, (int64_t[]){4, 24});
        model_ints(m, "rows", 3, (int64_t[]){4, 4, 24});
        if (is_computed) model_node(m, "Concat", "shape", "four rest", "shape", "axis=0");
        model_node(m, "Reshape", "view", is_computed ? "x shape" : "x rows", "a", "");
        model_add(m, "c = MatMul(a w) product", "y = Add(c b) sum", "out y f32");
        onv_options options = batch_of(8);
        options.runtimes = "ort";
        expect_shape(m, &options, "y", "[8, 4, 24]");
    }
}

/* --- Constants with samples -------------------------------------------------------------------- */

TEST(constants_of_equal_samples_are_resized)
{
    for (int64_t old = 1; old <= 4; old += 3) {
        OWNED_MODEL m = model_new(17);
        model_input(m, "x", old == 1 ? "f32[1,6,16]" : "f32[4,6,16]");
        model_weight_data(m, "onnx::token", old == 1 ? "f32[1,1,16]" : "f32[4,1,16]", NULL,
                          (size_t)old * 64);
        model_add(m, "y = Concat(onnx::token x) cat axis=1", "out y f32");
        onv_options options = batch_of(8);
        OWNED_ANALYSIS analysis = model_analyse(m, &options);
        onv_summary summary = {0};
        onv_analysis_summary(analysis, &summary);
        assert_string_equal(model_shape(analysis, "onnx::token"), "[8, 1, 16]");
        assert_string_equal(model_shape(analysis, "y"), "[8, 7, 16]");
        assert_int_equal(summary.parameter_bytes, 8 * 64);
    }
}

/* As long as the batch is large: only what follows says which axis has the samples. */
TEST(another_axis_may_have_the_samples)
{
    model *m = model_read(17, "in x f32[4,4,16]");
    model_weight_data(m, "onnx::mask", "f32[4,4,16]", NULL, 4 * 4 * 64);
    model_add(m, "a = Transpose(x) t perm=[1,0,2]", "y = Concat(a onnx::mask) cat axis=2",
              "out y f32");
    onv_options options = batch_of(8);
    expect_shape(m, &options, "y", "[4, 8, 32]");
}

TEST(other_constants_keep_their_size)
{
    static const int64_t places[8] = {0, 1, 0, 1, 0, 1, 0, 2};
    model *m = model_new(17); /* samples that differ */
    model_add(m, "in x f32[4,2,16]", "weight table f32[10,16]");
    model_weight_data(m, "onnx::places", "i64[4,2]", places, sizeof places);
    model_add(m, "a = Gather(table onnx::places) look", "y = Add(x a) add", "out y f32");
    expect_refusal(m, "add", "broadcast");

    m = model_new(17); /* a parameter */
    model_input(m, "x", "f32[4,16]");
    model_weight_data(m, "net.table", "f32[4,16]", NULL, 4 * 64);
    model_add(m, "y = Add(x net.table) add", "out y f32");
    expect_refusal(m, "add", "broadcast");

    m = model_new(17); /* the bounds of a cut */
    model_input(m, "x", "f32[1,16]");
    model_ints(m, "onnx::zero", 1, (int64_t[]){0});
    model_ints(m, "onnx::end", 1, (int64_t[]){1});
    model_add(m, "y = Slice(x onnx::zero onnx::end onnx::zero) part", "out y f32");
    expect_refusal(m, "part", "stops growing");
}

TEST(one_sample_is_not_split)
{
    model *m =
        model_read(20, "in x f32[1,16]", "y = Split(x) chunk axis=0 num_outputs=1", "out y f32");
    expect_refusal(m, "chunk", "one sample is one part");
}
