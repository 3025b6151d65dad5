/* The table of modules: whom names put where, and that the sums are right. */
#include "support/capture.h"
#include "support/nested.h"
#include "support/test.h"

static char *layers_of(model *m, unsigned depth)
{
    onv_analysis *a = model_analyse(m, NULL);
    onv_report_options options = onv_report_options_default();
    options.layer_depth = depth;
    char *text = report_text(a, ONV_FORMAT_LAYERS, &options);
    expect_safe(text, 80);
    onv_analysis_destroy(a);
    model_free(m);
    return text;
}

/* Two blocks that share a weight, an operator outside, a weight that nobody uses. */
static model *blocks(void)
{
    model *m = model_new(17);
    model_input(m, "x", "f32[16,32]");
    model_weight(m, "shared", "f32[32,32]");
    model_weight(m, "orphan", "f32[7]");
    model_node(m, "MatMul", "/net/net.0/fc/MatMul", "x shared", "a", "");
    model_node(m, "Relu", "/net/net.0/Relu", "a", "b", "");
    model_node(m, "MatMul", "/net/net.1/fc/MatMul", "b shared", "c", "");
    model_node(m, "Relu", "/Relu", "c", "d", "");
    model_output(m, "d", "f32");
    return m;
}

static void scopes_make_a_tree(void **state)
{
    char *text = layers_of(blocks(), 0);
    const char *expected =
        "test.onnx\n"
        "  module                output  parameters     MACs  activations   share\n"
        "  net                   16x32        1,024  32.77 K      6.0 KiB   75.0%\n"
        "    net.0               16x32        1,024  16.38 K      4.0 KiB   50.0%\n"
        "      fc                16x32        1,024  16.38 K      2.0 KiB   25.0%\n"
        "    net.1               16x32               16.38 K      2.0 KiB   25.0%\n"
        "      fc                16x32               16.38 K      2.0 KiB   25.0%\n"
        "  (outside of modules)                                   2.0 KiB   25.0%\n"
        "  (weights never used)                   7\n"
        "  ----------------------------------------------------------------------\n"
        "  total                 16x32        1,031  32.77 K      8.0 KiB  100.0%\n";
    assert_string_equal(text, expected);
    free(text);
}

static void depth_cuts_the_tree(void **state)
{
    char *text = layers_of(blocks(), 1);
    expect_contains(text, "  net   ");
    expect_lacks(text, "net.0");
    expect_contains(text, "  (outside of modules)  ");
    free(text);
}

/* Names without scopes: weights tell, and what has none stands between its neighbours. */
static void weights_tell_the_module(void **state)
{
    model *m = model_new(20);
    model_input(m, "x", "f32[16,32]");
    model_weight(m, "enc.0.fc1.weight", "f32[32,32]");
    model_weight(m, "enc.0.fc2.weight", "f32[32,32]");
    model_weight(m, "head.weight", "f32[32,8]");
    model_node(m, "MatMul", "node_1", "x enc.0.fc1.weight", "a", "");
    model_node(m, "Relu", "node_2", "a", "b", "");
    model_node(m, "MatMul", "node_3", "b enc.0.fc2.weight", "c", "");
    model_node(m, "Relu", "node_4", "c", "d", "");
    model_node(m, "MatMul", "node_5", "d head.weight", "e", "");
    model_output(m, "e", "f32");
    char *text = layers_of(m, 0);
    /* The first Relu belongs to enc.0, the second to nobody. */
    expect_contains(text, "    enc.0               16x32        2,048  32.77 K      6.0 KiB");
    expect_contains(text, "  (outside of modules)                                   2.0 KiB");
    expect_contains(text, "  head                  16x8 ");
    free(text);
}

/* A list that is never called itself has no scope of its own; both spellings meet in one module. */
static void dots_and_slashes_meet(void **state)
{
    model *m = model_new(17);
    model_input(m, "x", "f32[16,32]");
    model_weight(m, "enc.layer.0.fc.bias", "f32[32]");
    model_weight(m, "enc.layer.1.2.fc.bias", "f32[32]");
    model_node(m, "Identity", "Identity_0", "enc.layer.0.fc.bias", "bias", "");
    model_node(m, "Add", "/enc/layer.0/fc/Add", "x bias", "a", "");
    model_node(m, "Add", "node_2", "a enc.layer.1.2.fc.bias", "b", "");
    model_node(m, "Relu", "/enc/layer.1/act/Relu", "b", "c", "");
    model_output(m, "c", "f32");
    char *text = layers_of(m, 0);
    expect_contains(text, "  enc            16x32           64            6.1 KiB");
    expect_contains(text, "    layer.0      16x32           32            2.1 KiB");
    expect_contains(text, "    layer.1      16x32           32            4.0 KiB");
    expect_contains(text, "      layer.1.2  16x32           32            2.0 KiB");
    expect_contains(text, "        fc       16x32           32            2.0 KiB");
    free(text);
}

static void operators_stand_in_for_modules(void **state)
{
    model *m = model_new(17);
    model_input(m, "x", "f32[16,32]");
    model_node(m, "Relu", "Relu_0", "x", "a", "");
    model_node(m, "Neg", "Neg_1", "a", "b", "");
    model_node(m, "Relu", "", "b", "c", "");
    model_output(m, "c", "f32");
    char *text = layers_of(m, 0);
    expect_contains(text, "  Relu    16x32                         4.0 KiB   66.7%\n");
    expect_contains(text, "  Neg     16x32                         2.0 KiB   33.3%\n");
    expect_lacks(text, "outside");
    free(text);
}

static void free_dims_count_units(void **state)
{
    model *m = model_new(17);
    model_input(m, "x", "f32[batch,32]");
    model_node(m, "Relu", "/a/Relu", "x", "y", "");
    model_output(m, "y", "f32");
    char *text = layers_of(m, 0);
    expect_contains(text, "  activations for every batch; + are fixed\n");
    expect_contains(text, "batch x 32");
    expect_contains(text, "128 B  100.0%\n");
    free(text);
}

/* A name of thousands of scopes is cut to a depth, quickly. */
static void depth_is_bounded(void **state)
{
    char name[20001];
    for (size_t i = 0; i < sizeof name - 1; i++) name[i] = i % 2 == 0 ? '/' : 's';
    name[sizeof name - 1] = '\0';
    model *m = model_new(17);
    model_input(m, "x", "f32[16,32]");
    for (int i = 0; i < 3; i++) model_node(m, "Relu", name, "x", "abc" + i, "");
    model_output(m, "abc", "f32");
    char *text = layers_of(m, 0);
    assert_int_equal(count_parts(text, "\n"), 64 + 4);
    free(text);
}

/* Both branches make 4 MiB, one runs, and what it hands out is the result of the If; Relu makes 4 more. */
static void what_a_branch_hands_out_counts_once(void **state)
{
    char *text = layers_of(nested_case_model("branches-and-more"), 0);
    expect_contains(text, "8.0 MiB  100.0%\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scopes_make_a_tree),
        cmocka_unit_test(depth_cuts_the_tree),
        cmocka_unit_test(weights_tell_the_module),
        cmocka_unit_test(operators_stand_in_for_modules),
        cmocka_unit_test(free_dims_count_units),
        cmocka_unit_test(dots_and_slashes_meet),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(what_a_branch_hands_out_counts_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
