/* What PyTorch's exporter notes of nodes: which of them are one operation, which constants are weights, and
 * whose; and what a user tells of what no export shows. */
#include "eager/trainer.h"
#include "support/test.h"

enum { H = 4 * 8 * 4, MAX_STEPS = 8 };

#define LINEAR "torch.nn.modules.linear.Linear"

typedef struct step {
    const char *op, *inputs, *output, *attributes;
    const char *module, *call, *class, *aten; /* call NULL: not noted */
} step;

static void add(model *m, const step *s)
{
    if (s->call != NULL) {
        model_source(m, s->module, s->call);
        model_class(m, s->class, s->aten);
    }
    model_node(m, s->op, s->output, s->inputs, s->output, s->attributes);
}

/* h [4, 8] is a product of the input; two, w8 [8] and a mask [4, 8] are there; the result is y. */
static model *build(const step *steps)
{
    model *m =
        model_read(17, "in x f32[4,8]", "weight w f32[8,8]", "weight w8 f32[8]", "role w PARAMETER",
                   "role w8 PARAMETER", "two = Constant() c value_float=2.0");
    add(m, &(step){"MatMul", "x w", "h", "", "in", "linear", LINEAR, "aten.linear.default"});
    for (size_t i = 0; i < MAX_STEPS && steps[i].op != NULL; i++) add(m, &steps[i]);
    model_output(m, "y", "f32");
    return m;
}

static void expect_kept(const step *steps, uint64_t bytes)
{
    uint64_t kept = trainer_kept(build(steps), &(onv_lower_options){.loss = ONV_LOSS_NONE}) - H;
    if (kept != bytes)
        fail_msg("%s (%s): keeps %llu bytes, not %llu", steps[0].op, steps[0].aten,
                 (unsigned long long)kept, (unsigned long long)bytes);
}

#define SILU               "act", "silu", "torch.nn.modules.activation.SiLU", "aten.silu.default"
#define SOFTPLUS           "act", "softplus", "torch.nn.modules.activation.Softplus", "aten.softplus.default"
#define SHRINK(call, aten) "act", call, "torch.nn.modules.activation.Hardshrink", aten
#define RMS(call, aten)    "norm", call, "zoo.RMS", aten
#define RMS_NORM(add)                                                                              \
    {"Pow", "h two", "a", "", RMS("pow_1", "aten.pow.Tensor_Scalar")},                             \
        {"ReduceMean", "a", "b", "axes=[-1]", RMS("mean", "aten.mean.dim")},                       \
        {"Add", "b two", "c", "", RMS("add", add)},                                                \
        {"Sqrt", "c", "d", "", RMS("rsqrt", "aten.rsqrt.default")},                                \
        {"Reciprocal", "d", "e", "", RMS("rsqrt", "aten.rsqrt.default")},                          \
        {"Mul", "h e", "f", "", RMS("mul", "aten.mul.Tensor")},                                    \
    {                                                                                              \
        "Mul", "f w8", "y", "", RMS("mul_1", "aten.mul.Tensor")                                    \
    }

TEST(calls_are_one_operation)
{
    const uint64_t rows = 4 * sizeof(float);
    expect_kept((step[MAX_STEPS]){{"Sigmoid", "h", "a", "", SILU}, {"Mul", "h a", "y", "", SILU}},
                H);
    /* Written by hand: what is multiplied and the sigmoid. */
    expect_kept((step[MAX_STEPS]){{"Sigmoid", "h", "a", "", "m", "sigmoid", "Swish",
                                   "aten.sigmoid.default"},
                                  {"Mul", "h a", "y", "", "m", "mul", "Swish", "aten.mul.Tensor"}},
                2 * H);
    expect_kept((step[MAX_STEPS]){{"Softplus", "h", "a", "", SOFTPLUS},
                                  {"Greater", "h two", "b", "", SOFTPLUS},
                                  {"Where", "b h a", "y", "", SOFTPLUS}},
                H);
    expect_kept(
        (step[MAX_STEPS]){{"Abs", "h", "a", "", SHRINK("abs_1", "aten.abs.default")},
                          {"LessOrEqual", "a two", "b", "", SHRINK("le", "aten.le.Scalar")},
                          {"Where", "b two h", "y", "", SHRINK("where", "aten.where.self")}},
        H);
    expect_kept((step[MAX_STEPS]){RMS_NORM("aten.add.Scalar")}, H + rows);
    /* By hand: the input, its product with the root, the root. */
    expect_kept((step[MAX_STEPS]){RMS_NORM("aten.add.Tensor")}, 2 * H + rows);
    expect_kept((step[MAX_STEPS]){{"ReduceMax", "h", "y", "axes=[-1]", "m", "max_1", "Net",
                                   "aten.max.dim"}},
                4 * sizeof(int64_t));
    expect_kept((step[MAX_STEPS]){{"ReduceMax", "h", "y", "axes=[-1]", "m", "amax", "Net",
                                   "aten.amax.default"}},
                H + rows);
}

/* --- Weights ----------------------------------------------------------------------------------- */

static onv_status train(model *m, const onv_lower_options *lower, onv_training *result,
                        onv_error *err)
{
    trainer t;
    trainer_open_model(&t, m);
    onv_training_options how = {.train = {.optimizer = onv_optimizer_find("sgd"), .lower = *lower}};
    how.train.lower.loss = ONV_LOSS_NONE;
    onv_status status = onv_training_compute(&t.model, &t.live, &how, result, err);
    trainer_close(&t);
    return status;
}

/* fc and other are linear; the file has one bias of zeros for both, and weights under made-up names. */
static model *linears(const char *constant, const step *reads)
{
    model *m = model_read(17, "in x f32[4,8]", "weight val_1 f32[8,8]", "weight val_2 f32[8,8]",
                          "weight fc.bias f32[8]", "role fc.bias PARAMETER");
    if (constant != NULL) model_weight(m, constant, "f32[4,8]");
    add(m, &(step){"MatMul", "x val_1", "a", "", "fc", "linear", LINEAR, "aten.linear.default"});
    add(m, &(step){"Add", "a fc.bias", "b", "", "fc", "linear", LINEAR, "aten.linear.default"});
    add(m,
        &(step){"MatMul", "b val_2", "c", "", "other", "linear_1", LINEAR, "aten.linear.default"});
    add(m,
        &(step){"Add", "c fc.bias", "d", "", "other", "linear_1", LINEAR, "aten.linear.default"});
    if (reads != NULL) add(m, reads);
    model_output(m, reads != NULL ? "y" : "d", "f32");
    return m;
}

TEST(weights_belong_to_their_modules)
{
    const uint64_t layer = (8 * 8 + 8) * 4;
    static const struct {
        const char *freeze, *only;
        uint64_t gradients;
    } cases[] = {
        {NULL, NULL, 2 * layer},     {"fc", NULL, layer},    {"other.bias", NULL, 2 * layer - 32},
        {"val_2", NULL, layer + 32}, {NULL, "other", layer}, {NULL, "*.bias", 64},
        {"*.weight", "fc", 32},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        onv_lower_options lower = {.freeze = &cases[i].freeze,
                                   .n_freeze = cases[i].freeze != NULL,
                                   .train_only = &cases[i].only,
                                   .n_train_only = cases[i].only != NULL};
        onv_training result;
        onv_error err = {0};
        OWNED_MODEL m = linears(NULL, NULL);
        assert_int_equal(train(m, &lower, &result, &err), ONV_OK);
        assert_int_equal(result.figures.parameter_bytes, 2 * layer);
        assert_int_equal(result.figures.gradient_bytes, cases[i].gradients);
    }
}

TEST(a_pattern_that_matches_nothing_is_refused)
{
    const char *pattern = "decoder";
    const onv_lower_options cases[] = {{.freeze = &pattern, .n_freeze = 1},
                                       {.train_only = &pattern, .n_train_only = 1},
                                       {.inplace = &pattern, .n_inplace = 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        onv_training result;
        onv_error err = {0};
        OWNED_MODEL m = linears(NULL, NULL);
        assert_int_equal(train(m, &cases[i], &result, &err), ONV_ERR_USAGE);
        assert_non_null(strstr(err.message, "'decoder'"));
    }
}

/* Masks and zeros are made in the forward pass: no parameters, and nothing that stays. */
TEST(what_the_export_made_is_not_trained)
{
    static const struct {
        const char *name;
        step reads;
        bool trained;
    } cases[] = {
        {"val_9",
         {"Add", "d val_9", "y", "", "at", "sdpa", "Net",
          "aten.scaled_dot_product_attention.default"},
         false},
        {"val_9", {"Add", "d val_9", "y", "", "at", "add", "Net", "aten.add.Tensor"}, false},
        {"zeros_like_1",
         {"Add", "d zeros_like_1", "y", "", "at", "add", "Net", "aten.add.Tensor"},
         false},
        {"view_3",
         {"Gemm", "d view_3", "y", "transB=1", "std", "linear_2", "Std", "aten.linear.default"},
         true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        onv_training result;
        onv_error err = {0};
        OWNED_MODEL m = linears(cases[i].name, &cases[i].reads);
        assert_int_equal(train(m, &(onv_lower_options){0}, &result, &err), ONV_OK);
        assert_int_equal(result.figures.parameter_bytes,
                         2 * (8 * 8 + 8) * 4 + (cases[i].trained ? H : 0));
        assert_int_equal(result.figures.buffer_bytes, 0);
    }
}

/* --- What no export shows ---------------------------------------------------------------------- */

TEST(activations_work_in_place_where_told)
{
    const step steps[MAX_STEPS] = {
        {"LeakyRelu", "h", "a", "", "act", "leaky_relu", "LeakyReLU", "aten.leaky_relu.default"},
        {"MatMul", "a w", "y", "", "out", "linear_1", LINEAR, "aten.linear.default"}};
    static const char *const patterns[] = {"*", "act", "a?t"};
    onv_lower_options options = {.loss = ONV_LOSS_NONE};
    assert_int_equal(trainer_kept(build(steps), &options), 3 * H);
    for (size_t i = 0; i < 3; i++) {
        options.inplace = &patterns[i];
        options.n_inplace = 1;
        assert_int_equal(trainer_kept(build(steps), &options), 2 * H);
    }
}

#define SDPA "at", "sdpa", "Attention", "aten.scaled_dot_product_attention.default"

TEST(dropout_inside_attention_is_added)
{
    const step steps[MAX_STEPS] = {
        {"Mul", "h two", "q", "", SDPA},        {"Transpose", "h", "t", "perm=[1,0]", SDPA},
        {"Mul", "t two", "k", "", SDPA},        {"MatMul", "q k", "s", "", SDPA},
        {"Softmax", "s", "p", "axis=-1", SDPA}, {"MatMul", "p h", "y", "", SDPA}};
    onv_lower_options options = {.loss = ONV_LOSS_NONE, .attention_dropout = -1};
    uint64_t without = trainer_kept(build(steps), &options);
    options.attention_dropout = 0.1;
    uint64_t with = trainer_kept(build(steps), &options);
    assert_int_equal(with - without, 4 * 4 * (1 + sizeof(float))); /* a mask, and what it left */
}

/* softmax(x, dtype=torch.float32).to(x.dtype), of which the exporter leaves neither cast. */
TEST(softmax_keeps_what_it_was_asked_for)
{
    static const struct {
        const char *type, *arguments;
        uint64_t bytes;
    } cases[] = {{"bf16", "%x, -1", 2},
                 {"bf16", "%x, -1, torch.float32", 4},
                 {"f16", "%x, -1, torch.float32", 4},
                 {"f32", "%x, -1, torch.float32", 4}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char wide[32], square[32];
        snprintf(wide, sizeof wide, "%s[4,8]", cases[i].type);
        snprintf(square, sizeof square, "%s[8,8]", cases[i].type);
        model *m = model_new(17);
        model_input(m, "x", wide);
        model_weight(m, "w", square);
        model_node(m, "MatMul", "0", "x w", "h", "");
        model_call(m, "aten.softmax.int", cases[i].arguments);
        model_node(m, "Softmax", "1", "h", "y", "");
        model_output(m, "y", cases[i].type);
        uint64_t input = cases[i].type[0] == 'f' && cases[i].type[1] == '3' ? 4 : 2;
        assert_int_equal(trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE}),
                         4 * 8 * (input + cases[i].bytes));
    }
}

/* Padding that a convolution cannot do was done before it, into a copy, which is kept. */
TEST(uneven_padding_makes_a_copy)
{
    static const struct {
        const char *attributes, *rules;
        uint64_t bytes;
    } cases[] = {{"pads=[1,1]", NULL, 2 * 4 * 10 * 4},
                 {"pads=[2,0]", NULL, 2 * 4 * 12 * 4},
                 {"pads=[1,1]", "RemoveOptionalBiasFromConv", 2 * 4 * 10 * 4},
                 {"pads=[1,1]", "RemoveOptionalBiasFromConv, FuseConvPad", 2 * 4 * 12 * 4}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        model *m = model_read(17, "in x f32[2,4,10]", "weight w f32[4,4,3]");
        model_rules(m, cases[i].rules);
        model_node(m, "Conv", "conv", "x w", "y", cases[i].attributes);
        model_output(m, "y", "f32");
        assert_int_equal(trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE}),
                         cases[i].bytes);
    }
}

/* contiguous(), of which nothing but an argument's name is left, copies what is in another order, and what reads the
 * copy keeps it. A batch norm makes one of its own. */
TEST(clones_are_copies)
{
    enum { T = 4 * 6 * 8 * 4 };
    static const struct {
        const char *op, *call, *arguments;
        uint64_t kept; /* beside h, which is read twice, and the view of it */
    } cases[] = {
        {"Mul", "aten.mul.Tensor", "%t, %t", 0},
        {"Mul", "aten.mul.Tensor", "%clone, %clone", T},
        {"Mul", "aten.mul.Tensor", "%clone_1, %clone_1", T},
        {"Mul", "aten.mul.Tensor", "%t, %clone_1", 0},
        {"Mul", "aten.view.default", "%clone_1, %clone_1", 0},
        {"Mul", "aten.mul.Tensor", "%div_3, %div_3, %clone_1", 0},
        {"BatchNormalization", "aten.batch_norm.default", "%t, %p", T + 2 * 8 * 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool norms = cases[i].op[0] == 'B';
        model *m = model_read(17, "in x f32[4,6,8]", "weight w f32[8,8]", "weight s f32[8]",
                              "weight b f32[8]", "weight mean f32[8]", "weight var f32[8]",
                              "role w PARAMETER", "role s PARAMETER", "role b PARAMETER",
                              "h = MatMul(x w) product", "a = Mul(h h) square",
                              "t = Transpose(h) swap perm=[0,2,1]", "source net call");
        model_class(m, "Net", cases[i].call);
        model_call(m, cases[i].call, cases[i].arguments);
        model_node(m, cases[i].op, "call", norms ? "t s b mean var" : "t t", "c", "");
        model_add(m, "d = Transpose(c) back perm=[0,2,1]", "y = Add(a d) sum", "out y f32");
        uint64_t kept = trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE});
        if (kept != 2 * T + cases[i].kept) fail_msg("case %zu: %llu", i, (unsigned long long)kept);
    }
}

/* b is permuted: bmm gets a copy of it, and keeps that; a is only seen in another way. */
TEST(einsum_copies_what_it_permutes)
{
    model *m = model_read(17, "in x f32[2,4,8]", "weight w f32[8,8]", "weight b f32[6,4,8]",
                          "a = MatMul(x w) product", "y = Einsum(a b) sum equation='bij,kij->bik'",
                          "out y f32");
    /* x; a as [i, b, j] and b as [i, j, k], neither of which is a view of three dims' memory. */
    uint64_t x = 2 * 4 * 8 * 4, b = 6 * 4 * 8 * 4;
    uint64_t kept = trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE});
    assert_in_range(kept, 2 * x, 2 * x + b);
}

static uint64_t einsum_kept(const char *equation, uint8_t amp)
{
    char attribute[64];
    model *m = model_new(17);
    snprintf(attribute, sizeof attribute, "equation='%s'", equation);
    model_add(m, "in x f32[2,4,8]", "weight w f32[8,8]", "weight v f32[6,8]",
              "a = MatMul(x w) product");
    model_node(m, "Einsum", "sum", "a v", "y", attribute);
    model_output(m, "y", "f32");
    return trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE, .amp = (onv_dtype)amp});
}

/* An ellipsis is the dims that have no label; under autocast its products are of low precision, too. */
TEST(ellipses_are_spelled_out)
{
    static const char *const same[] = {"...i,oi->...o", "b...i,oi->b...o", "bt...i,oi->bt...o"};
    enum { X = 2 * 4 * 8 * 4, V = 6 * 8 * 4 };
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        assert_int_equal(einsum_kept(same[i], ONV_UNDEFINED), 2 * X);
        assert_int_equal(einsum_kept("bti,oi->bto", ONV_UNDEFINED), 2 * X);
        assert_int_equal(einsum_kept(same[i], ONV_BFLOAT16), X + V / 2);
        assert_int_equal(einsum_kept("bti,oi->bto", ONV_BFLOAT16), X + V / 2);
    }
}

/* A mask that the export computed is made in each forward pass; a module's is there all the time. */
TEST(masks_that_were_computed_are_no_buffers)
{
    static const struct {
        const char *name;
        uint64_t buffers;
    } cases[] = {
        {"le", 0}, {"bitwise_and_1", 0}, {"unsqueeze_3", 512}, {"net.mask", 512}, {"val_3", 512}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char inputs[64];
        OWNED_MODEL m = model_new(17);
        OWNED_TRAINER t;
        snprintf(inputs, sizeof inputs, "%s h two", cases[i].name);
        model_add(m, "in x f32[16,32]", "weight w f32[32,32]", "role w PARAMETER");
        model_weight(m, cases[i].name, "bool[16,32]");
        model_node(m, "Constant", "c", "", "two", "value_float=2.0");
        add(m, &(step){"MatMul", "x w", "h", "", "in", "linear", LINEAR, "aten.linear.default"});
        add(m, &(step){"Where", inputs, "y", "", "net", "where", "Net", "aten.where.self"});
        model_output(m, "y", "f32");
        trainer_open_model(&t, m);
        onv_train_options options = {.optimizer = onv_optimizer_find("sgd")};
        options.lower.loss = ONV_LOSS_NONE;
        onv_training r = trainer_run(&t, &options);
        assert_int_equal(r.figures.parameter_bytes, 4096);
        if (r.figures.buffer_bytes != cases[i].buffers) fail_msg("%s", cases[i].name);
    }
}
