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

static uint32_t count_operations(model *m, const char *name)
{
    onv_eager eager;
    onv_lower_options how = {.loss = ONV_LOSS_NONE};
    uint32_t n = 0;
    trainer t;
    trainer_open_model(&t, m);
    trainer_lower(&t, &how, &eager);
    for (size_t i = 0; i < eager.ops.count; i++) n += strcmp(eager.ops.at[i].name, name) == 0;
    onv_eager_cleanup(&eager);
    trainer_close(&t);
    model_free(m);
    return n;
}

/* x[:, :, i, j] is made in the order of x's dims, though the exporter indexes a transpose of it, so that a product behind
 * it reads a view; and not where the indices stand apart, or the tensor is a transpose itself. */
TEST(what_is_indexed_has_the_order_of_its_tensor)
{
    static const struct {
        const char *x, *first, *perm;
        uint32_t copies;
    } cases[] = {{"f32[2,3,4,3,8]", NULL, "perm=[2,3,0,1,4]", 0},
                 {"f32[4,2,3,3,8]", NULL, "perm=[0,2,1,3,4]", 1},
                 {"f32[3,2,4,3,8]", "perm=[1,0,2,3,4]", "perm=[2,3,0,1,4]", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        model *m = model_new(18);
        model_weight(m, "x", cases[i].x);
        model_add(m, "weight v f32[2,3,4,1,8]", "role x PARAMETER", "role v PARAMETER",
                  "in places i64[4,5,2]");
        if (cases[i].first != NULL) model_node(m, "Transpose", "first", "x", "u", cases[i].first);
        model_source(m, "", "index");
        model_class(m, "Net", "aten.index.Tensor");
        model_node(m, "Transpose", "turn", cases[i].first != NULL ? "u" : "x", "t", cases[i].perm);
        model_source(m, "", "index");
        model_add(m, "class Net aten.index.Tensor", "g = GatherND(t places) gather",
                  "h = Transpose(g) back perm=[2,3,0,4,1]", "y = MatMul(v h) product", "out y f32");
        uint32_t n = count_operations(m, "reshape");
        if (n != cases[i].copies) fail_msg("case %zu: %u", i, n);
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

/* Of a convolution that was joined with a norm the note is the norm's: it reads the copy that contiguous() made, as the
 * other reader of the value does, which tells. */
TEST(joined_convolutions_read_the_copy)
{
    static const char *const notes[] = {"aten._native_batch_norm_legit_functional.default",
                                        "aten.conv2d.default"};
    uint64_t kept[2];
    for (int i = 0; i < 2; i++) {
        model *m = model_read(18, "in x f32[2,6,4,8]", "weight w f32[8,8]", "role w PARAMETER",
                              "h = MatMul(x w) product", "t = Transpose(h) swap perm=[0,3,1,2]");
        static const char *const weights[] = {"a.weight", "b.weight"};
        for (int k = 0; k < 2; k++) {
            char inputs[32];
            model_weight(m, weights[k], "f32[4,8,1,1]");
            model_role(m, weights[k], "PARAMETER");
            snprintf(inputs, sizeof inputs, "t %s", weights[k]);
            bool is_joined = k == 1 && i == 0;
            model_source(m, k == 0 ? "a" : "b.norm",
                         is_joined ? "_native_batch_norm_legit_functional"
                         : k == 0  ? "conv2d"
                                   : "conv2d_1");
            model_class(m, "Net", k == 0 ? notes[1] : notes[i]);
            model_call(m, k == 0 ? notes[1] : notes[i],
                       k == 0      ? "%clone, %p_a_weight"
                       : is_joined ? "%conv2d_1, %p_b_norm_weight"
                                   : "%t, %p_b_weight");
            model_node(m, "Conv", k == 0 ? "c" : "d", inputs, k == 0 ? "p" : "q", "");
        }
        model_add(m, "y = Add(p q) sum", "out y f32");
        kept[i] = trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE});
    }
    enum { T = 2 * 6 * 4 * 8 * 4, NORM = 2 * 4 * 6 * 4 * 4 + 2 * 4 * 4 };
    assert_int_equal(kept[0], 2 * T + NORM); /* x, the copy, and what the norm keeps */
    assert_int_equal(kept[1], 3 * T);        /* x, the copy, and what is in the other order */
}

/* The older exporter writes addcmul(x, a, b) as x + a * b * 1, without notes. Backward makes the gradient of one factor at a
 * time, where a product would make that of a * b as well. */
TEST(a_factor_of_one_tells_of_addcmul)
{
    enum { X = 256 * 64 * 4 };
    uint64_t peak[2];
    for (int i = 0; i < 2; i++) {
        static const float values[] = {1, 2};
        OWNED_MODEL m = model_read(17, "in x f32[256,64]", "weight w f32[64,64]",
                                   "weight scale f32[64]", "weight bias f32[64]");
        model_float(m, "value", values[i]);
        model_add(m, "h = MatMul(x w) first", "p = Mul(scale h) product", "s = Mul(p value) scaled",
                  "y = Add(bias s) sum", "out y f32");
        OWNED_TRAINER t;
        trainer_open_model(&t, m);
        onv_train_options options = {.optimizer = onv_optimizer_find("sgd")};
        options.lower.loss = ONV_LOSS_MSE;
        peak[i] = trainer_run(&t, &options).figures.phase_peak_bytes[ONV_PHASE_FORWARD];
    }
    assert_int_equal(peak[1] - peak[0], X); /* the product, while it is multiplied by 2 */
}
