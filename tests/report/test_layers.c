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
    model *m =
        model_read(17, "in x f32[16,32]", "weight shared f32[32,32]", "weight orphan f32[7]",
                   "a = MatMul(x shared) /net/net.0/fc/MatMul", "b = Relu(a) /net/net.0/Relu",
                   "c = MatMul(b shared) /net/net.1/fc/MatMul", "d = Relu(c) /Relu", "out d f32");
    return m;
}

TEST(scopes_make_a_tree)
{
    OWNED_TEXT text = layers_of(blocks(), 0);
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
}

TEST(depth_cuts_the_tree)
{
    OWNED_TEXT text = layers_of(blocks(), 1);
    expect_contains(text, "  net   ");
    expect_lacks(text, "net.0");
    expect_contains(text, "  (outside of modules)  ");
}

/* Names without scopes: weights tell, and what has none stands between its neighbours. */
TEST(weights_tell_the_module)
{
    model *m = model_read(20, "in x f32[16,32]", "weight enc.0.fc1.weight f32[32,32]",
                          "weight enc.0.fc2.weight f32[32,32]", "weight head.weight f32[32,8]",
                          "a = MatMul(x enc.0.fc1.weight) node_1", "b = Relu(a) node_2",
                          "c = MatMul(b enc.0.fc2.weight) node_3", "d = Relu(c) node_4",
                          "e = MatMul(d head.weight) node_5", "out e f32");
    OWNED_TEXT text = layers_of(m, 0);
    /* The first Relu belongs to enc.0, the second to nobody. */
    expect_contains(text, "    enc.0               16x32        2,048  32.77 K      6.0 KiB");
    expect_contains(text, "  (outside of modules)                                   2.0 KiB");
    expect_contains(text, "  head                  16x8 ");
}

/* A list that is never called itself has no scope of its own; both spellings meet in one module. */
TEST(dots_and_slashes_meet)
{
    model *m = model_read(
        17, "in x f32[16,32]", "weight enc.layer.0.fc.bias f32[32]",
        "weight enc.layer.1.2.fc.bias f32[32]", "bias = Identity(enc.layer.0.fc.bias) Identity_0",
        "a = Add(x bias) /enc/layer.0/fc/Add", "b = Add(a enc.layer.1.2.fc.bias) node_2",
        "c = Relu(b) /enc/layer.1/act/Relu", "out c f32");
    OWNED_TEXT text = layers_of(m, 0);
    expect_contains(text, "  enc            16x32           64            6.1 KiB");
    expect_contains(text, "    layer.0      16x32           32            2.1 KiB");
    expect_contains(text, "    layer.1      16x32           32            4.0 KiB");
    expect_contains(text, "      layer.1.2  16x32           32            2.0 KiB");
    expect_contains(text, "        fc       16x32           32            2.0 KiB");
}

TEST(operators_stand_in_for_modules)
{
    model *m = model_read(17, "in x f32[16,32]", "a = Relu(x) Relu_0", "b = Neg(a) Neg_1",
                          "c = Relu(b)", "out c f32");
    OWNED_TEXT text = layers_of(m, 0);
    expect_contains(text, "  Relu    16x32                         4.0 KiB   66.7%\n");
    expect_contains(text, "  Neg     16x32                         2.0 KiB   33.3%\n");
    expect_lacks(text, "outside");
}

TEST(free_dims_count_units)
{
    model *m = model_read(17, "in x f32[batch,32]", "y = Relu(x) /a/Relu", "out y f32");
    OWNED_TEXT text = layers_of(m, 0);
    expect_contains(text, "  activations for every batch; + are fixed\n");
    expect_contains(text, "batch x 32");
    expect_contains(text, "128 B  100.0%\n");
}

/* A name of thousands of scopes is cut to a depth, quickly. */
TEST(depth_is_bounded)
{
    char name[20001];
    for (size_t i = 0; i < sizeof name - 1; i++) name[i] = i % 2 == 0 ? '/' : 's';
    name[sizeof name - 1] = '\0';
    model *m = model_read(17, "in x f32[16,32]");
    for (int i = 0; i < 3; i++) model_node(m, "Relu", name, "x", "abc" + i, "");
    model_output(m, "abc", "f32");
    OWNED_TEXT text = layers_of(m, 0);
    assert_int_equal(count_parts(text, "\n"), 64 + 4);
}

/* Both branches make 4 MiB, one runs, and what it hands out is the result of the If; Relu makes 4 more. */
TEST(what_a_branch_hands_out_counts_once)
{
    OWNED_TEXT text = layers_of(nested_case_model("branches-and-more"), 0);
    expect_contains(text, "8.0 MiB  100.0%\n");
}
