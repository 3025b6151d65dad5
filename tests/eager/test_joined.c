/* Operations that PyTorch's exporter joins or writes otherwise than PyTorch runs them. */
#include "eager/trainer.h"
#include "lower/lower.h"
#include "support/test.h"

/* Two convolutions of one padded tensor, into each of which the exporter joined the padding: their first argument
 * tells that it is one. */
TEST(a_padding_that_two_read_is_one)
{
    enum { PADDED = 2 * 4 * 12 * 4 };
    static const struct {
        const char *first, *second;
        uint64_t bytes;
    } cases[] = {{"%pad, %p_w", "%pad, %p_v", PADDED},
                 {"%pad, %p_w", "%pad_1, %p_v", 2 * PADDED},
                 {"%x, %p_w", "%x, %p_v", 2 * PADDED}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        model *m = model_read(17, "in x f32[2,4,10]", "weight w f32[4,4,3]", "weight v f32[4,4,3]",
                              "rules FuseConvPad");
        model_call(m, "aten.conv1d.default", cases[i].first);
        model_add(m, "a = Conv(x w) first pads=[2,0]", "rules FuseConvPad");
        model_call(m, "aten.conv1d.default", cases[i].second);
        model_add(m, "b = Conv(x v) second pads=[2,0]", "y = Add(a b) sum", "out y f32");
        assert_int_equal(trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE}),
                         cases[i].bytes);
    }
}

/* What a convolution pads itself is in no copy. */
TEST(what_a_convolution_pads_itself_is_in_no_copy)
{
    static const struct {
        const char *attributes, *aten, *arguments;
        int64_t length;
    } cases[] = {
        {"pads=[2,3]", "aten.convolution.default", "%constant_pad_nd, %p_w, None, [1], [2], [1]",
         11},
        {"pads=[2,3]", "aten.conv1d.default", "%pad, %p_w, None, [1], [1]", 13},
        {"pads=[2,3]", "aten.conv1d.default", "%pad, %p_w, None, [1]", 15},
        {"pads=[2,3]", "aten.conv1d.default", "%pad, %p_w", 15},
        {"pads=[2,3]", "aten.conv1d.default", "%pad, %p_w, None, [1], [9]", 15},
        {"pads=[3,2]", "aten._native_batch_norm_legit_functional.default", "%conv1d_1, %p_v", 15},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        model *m = model_read(17, "in x f32[2,4,10]", "weight w f32[4,4,6]", "rules FuseConvPad");
        model_call(m, cases[i].aten, cases[i].arguments);
        model_node(m, "Conv", "conv", "x w", "y", cases[i].attributes);
        model_output(m, "y", "f32");
        uint64_t kept = trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE});
        if (kept != (uint64_t)(2 * 4 * cases[i].length * 4))
            fail_msg("%s %s: %llu bytes", cases[i].aten, cases[i].arguments,
                     (unsigned long long)kept);
    }
}

enum { ROWS = 4 * 8, SUMS = 3 * 8 };

typedef struct scatter {
    const char *reduction;
    bool resets;
    uint64_t bytes; /* beside the input */
} scatter;

static void note(model *m, const scatter *s)
{
    bool adds = strcmp(s->reduction, "add") == 0;
    model_source(m, "", adds ? "scatter_add" : "scatter_reduce");
    model_class(m, "zoo.Net", adds ? "aten.scatter_add.default" : "aten.scatter_reduce.two");
}

/* A scatter to the least or the most keeps all that it reads, and its result; include_self=False is another scatter,
 * of the worst values, in the export alone. */
TEST(scatters_to_extremes_keep_their_operands)
{
    enum { ALL = ROWS * (4 + 8) + 2 * SUMS * 4 }; /* h, the indices, the zeros and the result */
    static const scatter cases[] = {
        {"add", false, ROWS * 8}, {"min", false, ALL}, {"max", true, ALL}, {"mul", false, ALL}};
    static const int64_t shape[] = {3, 8}, all[] = {4, 8};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char attributes[64];
        snprintf(attributes, sizeof attributes, "axis=0 reduction='%s'", cases[i].reduction);
        model *m = model_read(18, "in x f32[4,8]", "in at i64[4,8]", "weight w f32[8,8]",
                              "role w PARAMETER");
        model_ints(m, "shape", 2, shape);
        model_ints(m, "all", 2, all);
        model_add(m, "h = MatMul(x w) h", "zeros = ConstantOfShape(shape) zeros");
        if (cases[i].resets) {
            note(m, &cases[i]);
            model_node(m, "ConstantOfShape", "worst", "all", "worst", "");
            note(m, &cases[i]);
            model_node(m, "ScatterElements", "reset", "zeros at worst", "base",
                       "axis=0 reduction='min'");
        }
        note(m, &cases[i]);
        model_node(m, "ScatterElements", "scatter", cases[i].resets ? "base at h" : "zeros at h",
                   "y", attributes);
        model_output(m, "y", "f32");
        uint64_t kept =
            trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE}) - 4 * 8 * sizeof(float);
        if (kept != cases[i].bytes)
            fail_msg("%s: keeps %llu bytes, not %llu", cases[i].reduction, (unsigned long long)kept,
                     (unsigned long long)cases[i].bytes);
    }
}

/* nn.LSTM begins with two states of zeros, of which exporters write one for all layers. */
TEST(recurrent_layers_have_zeros_of_their_own)
{
    enum { X = 5 * 2 * 4 * 4, STATE = 2 * 4 * 4, OUT = 5 * STATE, RESERVE = 5 * OUT + 256 };
    static const int64_t dims[] = {1, 2, 4};
    for (unsigned layers = 1; layers <= 2; layers++) {
        model *m =
            model_read(17, "in x f32[5,2,4]", "weight W f32[1,16,4]", "weight R f32[1,16,4]");
        model_ints(m, "dims", 3, dims);
        model_add(m, "zeros = ConstantOfShape(dims) zeros", "ints axis 1", "source first lstm");
        model_node(m, "LSTM", "first", "x W R - - zeros zeros", layers > 1 ? "all" : "y",
                   "hidden_size=4");
        if (layers > 1) {
            model_add(m, "h = Squeeze(all axis) squeeze", "source second lstm",
                      "y = LSTM(h W R - - zeros zeros) second hidden_size=4");
        }
        model_output(m, "y", "f32");
        assert_int_equal(trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE}),
                         X + layers * (OUT + 2 * STATE + RESERVE));
    }
}

/* PyTorch's einsum takes the labels that the result lacks in the order of letters: reshaped so, both operands of the first
 * equation are copied, none of the second. */
TEST(contracted_labels_are_in_the_order_of_letters)
{
    enum { X = 2 * 4 * 8 * 4, V = 8 * 4 * 5 * 4 };
    static const struct {
        const char *equation, *v;
        uint64_t bytes;
    } cases[] = {{"equation='bkc,kco->bo'", "f32[4,8,5]", 2 * X + V},
                 {"equation='bck,cko->bo'", "f32[4,8,5]", 2 * X},
                 {"equation='bkc,cko->bo'", "f32[8,4,5]", 2 * X}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        model *m = model_read(17, "in x f32[2,4,8]", "weight w f32[8,8]");
        model_weight(m, "v", cases[i].v);
        model_node(m, "MatMul", "product", "x w", "a", "");
        model_node(m, "Einsum", "sum", "a v", "y", cases[i].equation);
        model_output(m, "y", "f32");
        assert_int_equal(trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE}),
                         cases[i].bytes);
    }
}

/* detach() is left out of exports, but the arguments of a call name it: no gradient, so nothing is kept for one. */
TEST(what_was_detached_has_no_gradient)
{
    enum { X = 4 * 8 * 4 };
    static const struct {
        const char *arguments;
        uint64_t
            bytes; /* the input, h for the sine and the product, s; without the gradient of s only s */
    } cases[] = {{"%h", 3 * X}, {"%detach", 2 * X}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        model *m = model_read(18, "in x f32[4,8]", "weight w f32[8,8]", "role w PARAMETER",
                              "h = MatMul(x w) product");
        model_call(m, "aten.sin.default", cases[i].arguments);
        model_add(m, "s = Sin(h) sin", "y = Mul(h s) mul", "out y f32");
        assert_int_equal(trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE}),
                         cases[i].bytes);
    }
}
