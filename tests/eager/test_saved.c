/* What stays allocated between forward and backward: against what PyTorch's autograd reported of
 * whole networks, and operator by operator against sums by hand. */
#include <jansson.h>

#include "eager/trainer.h"
#include "lower/lower.h"
#include "support/test.h"

/* --- Whole networks ---------------------------------------------------------------------------- */

/* A figure of tests/truth/NAME.measured.json, by keys. */
static uint64_t measured(json_t *at, const char *batch, const char *kind, const char *key)
{
    json_t *found = json_object_get(json_object_get(at, batch), kind);
    if (key != NULL) found = json_object_get(found, key);
    assert_true(json_is_integer(found));
    return (uint64_t)json_integer_value(found);
}

/* What is kept is the same to the byte, and peaks of tensors are within 0.2 %. */
static void compare(const char *name, json_t *truth, const char *batch)
{
    static const char *const optimizers[] = {"momentum", "adamw"};
    OWNED_TRAINER t;
    trainer_open_sample(&t, name, strtoll(batch, NULL, 10));
    const onv_lower_options how = {.attention = ONV_ATTENTION_AUTO};
    uint64_t kept = trainer_saved(&t, &how), wanted = measured(truth, batch, "kept", NULL);
    if (kept != wanted)
        fail_msg("%s, batch %s: %llu, measured %llu", name, batch, (unsigned long long)kept,
                 (unsigned long long)wanted);
    for (size_t i = 0; i < sizeof optimizers / sizeof optimizers[0]; i++) {
        onv_train_options options = {.optimizer = onv_optimizer_find(optimizers[i]), .lower = how};
        double peak = (double)trainer_run(&t, &options).figures.peak_bytes;
        double tensors = (double)measured(truth, batch, optimizers[i], "tensors");
        if (peak < tensors * 0.998 || peak > tensors * 1.002)
            fail_msg("%s, batch %s, %s: %.0f, measured %.0f", name, batch, optimizers[i], peak,
                     tensors);
    }
}

TEST(networks_keep_and_take_what_pytorch_did)
{
    static const char *const names[] = {"resnet18-train", "mobilenet_v2-train", "vit-small-train",
                                        "unet-train", "vit_b_16"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[1024];
        json_error_t error;
        snprintf(path, sizeof path, ONV_SOURCE_DIR "/tests/truth/%s.measured.json", names[i]);
        json_t *truth = json_load_file(path, 0, &error);
        if (truth == NULL) fail_msg("%s: %s", path, error.text);
        compare(names[i], truth, "2");
        compare(names[i], truth, "5");
        json_decref(truth);
    }
}

/* Under torch.autocast, as PyTorch 2.15 kept it of fake CUDA tensors, batch 4. In the transformer
 * attention takes low precision, computes in float32 and gives low precision. */
TEST(networks_keep_what_autograd_kept_under_autocast)
{
    static const struct {
        const char *name;
        uint64_t bytes;
        onv_attention_kernel attention;
    } cases[] = {{"resnet18-train", 70991204, ONV_ATTENTION_MATH},
                 {"mobilenet_v2-train", 163513956, ONV_ATTENTION_MATH},
                 {"vit-small-train", 15268996, ONV_ATTENTION_MATH},
                 {"vit-small-train", 14018788, ONV_ATTENTION_FLASH},
                 {"vit-small-train", 14328772, ONV_ATTENTION_EFFICIENT}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[1024];
        snprintf(path, sizeof path, ONV_SOURCE_DIR "/samples/%s.onnx", cases[i].name);
        onv_options options = onv_options_default();
        options.batch = 4;
        OWNED_TRAINER t;
        trainer_open(&t, path, &options);
        const onv_lower_options how = {.amp = ONV_FLOAT16, .attention = cases[i].attention};
        assert_int_equal(trainer_saved(&t, &how), cases[i].bytes);
    }
}

/* --- Operators --------------------------------------------------------------------------------- */

enum { ROW = 32 }; /* bytes of a row of x and y */

/* x is [4, 8] float32; y = f(x w), so that gradients flow. Without a loss, w being a parameter, x
 * (128 bytes) is kept by the product; `extra` is what is kept beside it. */
static void expect_kept(const char *op, const char *inputs, const char *attributes, uint64_t extra)
{
    model *m = model_read(17, "in x f32[4,8]", "in mask bool[4,8]", "weight w f32[8,8]",
                          "weight p f32[4,8]", "h = MatMul(x w) product");
    model_node(m, op, "tested", inputs, "y", attributes);
    model_output(m, "y", "f32");
    uint64_t kept = trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE});
    if (kept != 4 * ROW + extra)
        fail_msg("%s keeps %llu bytes, not %llu", op, (unsigned long long)(kept - 4 * ROW),
                 (unsigned long long)extra);
}

TEST(operators_keep_what_their_backward_reads)
{
    const uint64_t one = 4 * ROW;
    expect_kept("Neg", "h", "", 0);
    expect_kept("Add", "h p", "", 0);
    expect_kept("Mul", "h p", "", one); /* h for p; p is a parameter */
    expect_kept("Mul", "h x", "", 0);   /* x needs no gradient: only x, which is kept already */
    expect_kept("Mul", "h h", "", one);
    expect_kept("Div", "h x", "", 0);
    expect_kept("Relu", "h", "", one);
    expect_kept("Sigmoid", "h", "", one);
    expect_kept("Exp", "h", "", one);
    expect_kept("Softmax", "h", "axis=-1", one);
    expect_kept("Clip", "h", "", one);
    expect_kept("HardSwish", "h", "", one);
    expect_kept("Where", "mask h x", "", 4 * 8); /* one byte an element */
    expect_kept("Transpose", "h", "perm=[1,0]", 0);
    expect_kept("Concat", "h x", "axis=0", 0);
    expect_kept("ReduceMean", "h", "axes=[1]", 0);
    expect_kept("ReduceMax", "h", "axes=[1] keepdims=1", one + 4 * 4);
}

TEST(statistics_masks_and_indices_are_kept)
{
    model *m = model_read(17, "in x f32[2,3,8,8]", "weight w f32[4,3,1,1]", "weight scale f32[4]",
                          "weight shift f32[4]", "weight mean f32[4]", "weight var f32[4]",
                          "a = Conv(x w) conv",
                          "b - - = BatchNormalization(a scale shift mean var) norm training_mode=1",
                          "c = MaxPool(b) pool kernel_shape=[2,2] strides=[2,2]", "out c f32");
    uint64_t kept = trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE});
    uint64_t x = 2 * 3 * 64 * 4, a = 2 * 4 * 64 * 4, b = a, statistics = 2 * 4 * 4;
    assert_int_equal(kept, x + a + b + statistics + 2 * 4 * 16 * 8);
}

/* x is [2, 8, 3, 5]: four groups in each sample, or rows of 5 values, or planes of 15. */
TEST(norms_keep_statistics)
{
    static const struct {
        const char *op, *inputs, *attributes;
        uint64_t statistics;
    } cases[] = {{"GroupNormalization", "x channel channel", "num_groups=4", 2 * 2 * 4},
                 {"LayerNormalization", "x row row", "axis=-1", 2 * 2 * 8 * 3},
                 {"RMSNormalization", "x plane", "axis=2", 2 * 8}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        model *m = model_read(23, "in x f32[2,8,3,5]", "weight channel f32[8]", "weight row f32[5]",
                              "weight plane f32[3,5]");
        model_node(m, cases[i].op, "norm", cases[i].inputs, "y", cases[i].attributes);
        model_output(m, "y", "f32");
        uint64_t kept = trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE});
        if (kept != 4 * (2 * 8 * 3 * 5 + cases[i].statistics))
            fail_msg("%s keeps %llu bytes", cases[i].op, (unsigned long long)kept);
    }
}

/* gelu(h) as exported: five nodes that stand for one operation, which keeps h alone. */
TEST(patterns_are_one_operation)
{
    OWNED_MODEL m = model_read(
        17, "in x f32[4,8]", "weight w f32[8,8]", "root2 = Constant() c0 value_float=1.4142135",
        "one = Constant() c1 value_float=1.0", "half = Constant() c2 value_float=0.5",
        "h = MatMul(x w) product", "a = Div(h root2) div", "b = Erf(a) erf", "c = Add(b one) add",
        "d = Mul(h c) mul", "y = Mul(d half) half", "out y f32");
    OWNED_TRAINER t;
    trainer_open_model(&t, m);
    uint64_t fused = trainer_saved(&t, &(onv_lower_options){.loss = ONV_LOSS_NONE});
    uint64_t plain =
        trainer_saved(&t, &(onv_lower_options){.loss = ONV_LOSS_NONE, .as_exported = true});
    assert_int_equal(fused, 2 * 4 * ROW); /* x and h */
    assert_int_equal(plain, 4 * 4 * ROW); /* x, h, a for Erf, c for the product */
}

/* A batched product of permuted operands copies them and keeps the copies. */
TEST(permuted_operands_are_copied)
{
    model *m = model_new(17);
    const int64_t heads[] = {2, 6, 4, 8};
    model_add(m, "in x f32[2,6,32]", "weight w f32[32,32]");
    model_ints(m, "heads", 4, heads);
    model_add(m, "a = MatMul(x w) q", "b = Reshape(a heads) split",
              "c = Transpose(b) permute perm=[0,2,1,3]", "d = Transpose(b) keys perm=[0,2,3,1]",
              "y = MatMul(c d) scores", "out y f32");
    uint64_t kept = trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE});
    uint64_t bytes = 2 * 6 * 32 * 4;
    assert_int_equal(kept, 3 * bytes); /* x and two copies; the projection itself is gone */
}

/* The parts are views, of a list in PyTorch too. */
TEST(parts_of_sequences_are_views)
{
    for (int keep = 0; keep < 2; keep++) {
        OWNED_MODEL m = model_new(17);
        const int64_t halves[] = {4, 4};
        model_add(m, "in x f32[4,8]", "weight w f32[8,8]");
        model_ints(m, "halves", 2, halves);
        model_add(m, "int first 0", "int last -1", "h = MatMul(x w) product");
        if (keep)
            model_node(m, "SplitToSequence", "split", "h halves", "s", "axis=1");
        else
            model_node(m, "SplitToSequence", "unbind", "h", "s", "axis=-1 keepdims=0");
        model_add(m, "a = SequenceAt(s first) a", "b = SequenceAt(s last) b", "y = Mul(a b) times",
                  "out y f32");
        OWNED_TRAINER t;
        trainer_open_model(&t, m);
        assert_int_equal(trainer_saved(&t, &(onv_lower_options){.loss = ONV_LOSS_NONE}),
                         2 * 4 * ROW); /* x and h */
    }
}

/* A step past the end is never taken: it may be any number. */
TEST(steps_may_be_huge)
{
    OWNED_MODEL m = model_read(17, "in x f32[4,8]", "weight w f32[8,8]");
    model_ints(m, "zero", 1, &(int64_t){0});
    model_ints(m, "far", 1, &(int64_t){INT64_MAX});
    model_add(m, "h = MatMul(x w) product", "a = Slice(h zero far zero far) slice",
              "y = Exp(a) exp", "out y f32");
    OWNED_TRAINER t;
    trainer_open_model(&t, m);
    assert_int_equal(trainer_saved(&t, &(onv_lower_options){.loss = ONV_LOSS_NONE}), 5 * ROW);
}

/* A ReLU overwrites what nobody else reads, by whatever view. */
TEST(what_a_view_shows_is_read_by_others)
{
    model *m = model_new(17);
    const int64_t flat[] = {32};
    model_add(m, "in x f32[4,8]", "weight w f32[8,8]", "weight v f32[8,8]");
    model_ints(m, "flat", 1, flat);
    model_add(m, "h = MatMul(x w) first", "g = Reshape(h flat) view", "r = Relu(g) relu",
              "y = MatMul(h v) second", "out r f32", "out y f32");
    uint64_t kept = trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE});
    assert_int_equal(kept, 3 * 4 * ROW); /* x, h, and the result of the ReLU */
}

/* A ReLU of a part, as chunk() gives, has a result of its own: what it is a part of goes. */
TEST(parts_of_a_tensor_are_not_overwritten)
{
    model *m = model_read(17, "in x f32[4,8]", "weight w f32[8,8]", "h = MatMul(x w) first",
                          "a b = Split(h) chunk axis=1", "r = Relu(a) relu", "s = Relu(b) other",
                          "y = Sub(r s) sum", "out y f32");
    uint64_t kept = trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE});
    assert_int_equal(kept, 2 * 4 * ROW); /* x, and both halves */
}

/* A group norm copies what is not contiguous for its kernel; autograd keeps what it was given. */
TEST(group_norms_keep_what_they_are_given)
{
    static const int64_t apart[] = {2, 4, 4}, groups[] = {4, 1, 8}, whole[] = {4, 2, 4};
    model *m = model_read(17, "in x f32[4,8]", "weight w f32[8,8]", "weight one f32[1]",
                          "weight zero f32[1]", "weight scale f32[2,1]", "weight shift f32[2,1]");
    model_ints(m, "apart", 3, apart);
    model_ints(m, "groups", 3, groups);
    model_ints(m, "whole", 3, whole);
    model_add(m, "h = MatMul(x w) first", "e = Exp(h) exp", "v = Reshape(e apart) view",
              "t = Transpose(v) turn perm=[1,0,2]", "a = Reshape(t groups) split",
              "b = InstanceNormalization(a one zero) norm", "c = Reshape(b whole) join",
              "d = Mul(c scale) mul", "y = Add(d shift) add", "out y f32");
    uint64_t kept = trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE});
    assert_int_equal(kept, 2 * 4 * ROW + 2 * 4 * 4); /* x, e; mean and 1/std */
}

TEST(frozen_parameters_keep_less)
{
    model *m =
        model_read(17, "in x f32[4,8]", "weight a.weight f32[8,8]", "weight b.weight f32[8,8]",
                   "h = MatMul(x a.weight) a", "y = MatMul(h b.weight) b", "out y f32");
    OWNED_TRAINER t;
    trainer_open_model(&t, m);
    const char *const first[] = {"a.*"};
    onv_lower_options options = {.loss = ONV_LOSS_NONE};
    assert_int_equal(trainer_saved(&t, &options), 2 * 4 * ROW);
    options.freeze = first;
    options.n_freeze = 1;
    assert_int_equal(trainer_saved(&t, &options), 4 * ROW); /* h alone */
    model_free(m);
}

/* A batch norm that the export folded into a node stands in the node's notes: training has it again, with
 * what it trains and keeps. "w_bias" is made up for a node that had no bias. */
TEST(folded_norms_are_restored)
{
    static const struct {
        const char *op, *source, *inputs;
        uint64_t parameters, buffers; /* bytes beside those of w */
        bool has_norm;
    } cases[] = {
        {"Conv", "conv2d", "x w b", 32, 0, false},
        {"Conv", "_native_batch_norm_legit_functional", "x w w_bias", 64, 72, true},
        {"Conv", "_native_batch_norm_legit_no_training", "x w b", 96, 72, true},
        {"ConvTranspose", "batch_norm", "x v", 64, 72, true},
        {"Gemm", "batch_norm", "f g g_bias", 64, 72, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const uint64_t x = 2 * 3 * 4 * 4 * 4, y = 2 * 8 * 4 * 4 * 4, w = 8 * 3 * 4;
        bool is_product = strcmp(cases[i].op, "Gemm") == 0;
        OWNED_MODEL m = model_read(17, "in x f32[2,3,4,4]", "in f f32[32,3]");
        model_source(m, "bn1", cases[i].source);
        model_node(m, cases[i].op, "folded", cases[i].inputs, "y", "");
        if (strstr(cases[i].inputs, " w") != NULL) model_weight(m, "w", "f32[8,3,1,1]");
        if (strstr(cases[i].inputs, " v") != NULL) model_weight(m, "v", "f32[3,8,1,1]");
        if (is_product) model_weight(m, "g", "f32[3,8]");
        const char *bias = strchr(strchr(cases[i].inputs, ' ') + 1, ' ');
        if (bias != NULL) model_weight(m, bias + 1, "f32[8]");
        model_output(m, "y", "f32");
        OWNED_TRAINER t;
        trainer_open_model(&t, m);
        onv_train_options how = {.optimizer = onv_optimizer_find("sgd"),
                                 .lower.loss = ONV_LOSS_NONE};
        onv_training result = trainer_run(&t, &how);
        assert_int_equal(result.figures.saved_activation_bytes,
                         cases[i].has_norm ? x + y + 2 * 8 * 4 : x);
        assert_int_equal(result.figures.parameter_bytes, w + cases[i].parameters);
        assert_int_equal(result.figures.buffer_bytes, cases[i].buffers);
        assert_int_equal(result.restored_norms, cases[i].has_norm);
        how.lower.as_exported = true;
        assert_int_equal(trainer_saved(&t, &how.lower), x);
    }
}

/* An export that notes what its initializers were: without a note they are what the exporter made of them,
 * and their names tell of what. */
TEST(notes_tell_parameters)
{
    static const struct {
        const char *name, *role;
        bool trained;
    } cases[] = {
        {"scale", "PARAMETER", true},     {"scale", "BUFFER", false},    {"scale", "OTHER", false},
        {"scale", NULL, false},           {"unsqueeze_14", NULL, false}, {"val_14", NULL, true},
        {"conv.weight_bias", NULL, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char inputs[32];
        OWNED_MODEL m = model_read(17, "in x f32[4,8]", "weight w f32[8,8]");
        model_weight(m, cases[i].name, "f32[8]");
        model_role(m, "w", "PARAMETER");
        if (cases[i].role != NULL) model_role(m, cases[i].name, cases[i].role);
        snprintf(inputs, sizeof inputs, "h %s", cases[i].name);
        model_node(m, "MatMul", "product", "x w", "h", "");
        model_node(m, "Mul", "scaled", inputs, "y", "");
        model_output(m, "y", "f32");
        trainer t;
        trainer_open_model(&t, m);
        onv_train_options how = {.optimizer = onv_optimizer_find("sgd"),
                                 .lower.loss = ONV_LOSS_NONE};
        onv_training result = trainer_run(&t, &how);
        trainer_close(&t);
        assert_int_equal(result.figures.parameter_bytes, (8 * 8 + (cases[i].trained ? 8 : 0)) * 4);
        assert_int_equal(result.figures.buffer_bytes, cases[i].trained ? 0 : 8 * 4);
        assert_int_equal(result.figures.saved_activation_bytes,
                         (cases[i].trained ? 2 : 1) * 4 * ROW);
    }
}

/* A number that the exporter found out is no parameter: nobody trains it. */
TEST(made_up_numbers_are_not_trained)
{
    static const char *const names[] = {"scale", "val_84", "val_8x", "val_"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char inputs[16];
        model *m = model_read(17, "in x f32[4,8]", "weight w f32[8,8]");
        model_weight(m, names[i], "f32[1]");
        snprintf(inputs, sizeof inputs, "h %s", names[i]);
        model_node(m, "MatMul", "product", "x w", "h", "");
        model_node(m, "Mul", "scaled", inputs, "y", "");
        model_output(m, "y", "f32");
        uint64_t kept = trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE});
        assert_int_equal(kept, (strcmp(names[i], "val_84") == 0 ? 1 : 2) * 4 * ROW);
    }
}

TEST(free_dims_are_refused)
{
    OWNED_MODEL m = model_read(17, "in x f32[batch,8]", "y = Relu(x) relu", "out y f32");
    OWNED_TRAINER t;
    trainer_open_model(&t, m);
    onv_error err = {0};
    onv_eager eager;
    assert_int_equal(
        onv_eager_lower(&t.model, &t.live, t.is_host, &(onv_lower_options){0}, &eager, &err),
        ONV_ERR_USAGE);
    assert_non_null(strstr(err.message, "'x'"));
}

/* A product with a vector keeps what it multiplies only where the vector is trained. */
TEST(products_with_vectors_are_products)
{
    enum { X = 4 * 6 * 8 * 4 };
    static const struct {
        const char *role, *inputs, *vector;
        uint64_t kept;
    } cases[] = {{"BUFFER", "h v", "f32[8]", X},
                 {"PARAMETER", "h v", "f32[8]", 2 * X},
                 {"BUFFER", "v h", "f32[6]", X},
                 {"PARAMETER", "v h", "f32[6]", 2 * X}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        model *m = model_read(18, "in x f32[4,6,8]", "weight w f32[8,8]", "role w PARAMETER");
        model_weight(m, "v", cases[i].vector);
        model_role(m, "v", cases[i].role);
        model_node(m, "MatMul", "product", "x w", "h", "");
        model_node(m, "MatMul", "second", cases[i].inputs, "y", "");
        model_output(m, "y", "f32");
        uint64_t kept = trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE});
        assert_int_equal(kept, cases[i].kept);
    }
}
