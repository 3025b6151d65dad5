/* What the newer exporter takes apart, by its notes: writes into parts of a tensor, tensors that are filled, resampling,
 * cumulative sums. Each row is what PyTorch's own operation keeps and overwrites. */
#include "eager/trainer.h"
#include "lower/lower.h"
#include "support/capture.h"
#include "support/test.h"

enum { H = 4 * 8 * 4, MAX_STEPS = 8 };

typedef struct step {
    const char *op, *inputs, *output, *attributes, *call, *aten; /* call NULL: not noted */
} step;

typedef struct row {
    const char *what;
    step steps[MAX_STEPS];
    const char *operations; /* of the tape, behind the products; NULL: not asked for */
    uint64_t kept;          /* beside x */
} row;

static void add(model *m, const step *s)
{
    if (s->call != NULL) {
        model_source(m, "net", s->call);
        model_class(m, "Net", s->aten);
    }
    model_node(m, s->op, s->output, s->inputs, s->output, s->attributes);
}

/* h [4, 8] and part [8] are products. */
static model *build(const step *steps)
{
    static const int64_t rows[] = {0, 0, 0, 0, 0, 0, 0, 0}, places[] = {0, 1, 1, 2, 2, 3};
    model *m =
        model_read(18, "in x f32[4,8]", "weight w f32[8,8]", "role w PARAMETER",
                   "weight weights f32[6]", "weight sizes f32[6,1]", "weight mask bool[6,8]");
    model_float(m, "zero", 0);
    model_float(m, "two", 2);
    model_ints(m, "whole", 2, (const int64_t[]){4, 8});
    model_ints(m, "minus", 1, &(int64_t){-1});
    for (int64_t i = 0; i < 3; i++) {
        char name[8];
        snprintf(name, sizeof name, "i%d", (int)i);
        model_ints(m, name, 1, &i);
        snprintf(name, sizeof name, "n%d", (int)i);
        model_int(m, name, i);
    }
    model_ints(m, "flat", 8, rows);
    model_ints(m, "flat6", 6, places);
    model_add(m, "ints row_shape 1 8", "ints column 6 1", "row = Reshape(flat row_shape) r0",
              "places = Reshape(flat6 column) r1", "h = MatMul(x w) product",
              "part = ReduceSum(h i0) sum keepdims=0");
    for (size_t i = 0; i < MAX_STEPS && steps[i].op != NULL; i++) add(m, &steps[i]);
    model_output(m, "y", "f32");
    return m;
}

#define SELECT(n)       "select_scatter" n, "aten.select_scatter.default"
#define WINDOWS         "index", "aten.index.Tensor"
#define PLACE(n)        "select" n, "aten.select.int"
#define PRIMS_VAR       "var", "prims.var.default"
#define REMAINDER(kind) "remainder", "aten.remainder." kind
#define LERP            "lerp", "aten.lerp.Tensor"
#define UNBIND          "unbind", "aten.unbind.int"
#define LOGCUMSUM       "logcumsumexp", "aten.logcumsumexp.default"

static const row rows[] = {
    {"by no note: the graph's own scatter",
     {{"Expand", "zero whole", "z", "", "zeros", "aten.zeros.default"},
      {"Unsqueeze", "part i0", "u", "", NULL, NULL},
      {"ScatterElements", "z row u", "y", "axis=0", NULL, NULL}},
     "Expand view scatter",
     0},
    {"adaptive_avg_pool to a size that does not divide: its input",
     {{"GatherND", "h places", "a", "", WINDOWS},
      {"Where", "mask zero a", "b", "", "masked_fill", "aten.masked_fill.Scalar"},
      {"Gather", "b n0", "p", "axis=1", PLACE("")},
      {"Gather", "b n1", "q", "axis=1", PLACE("_1")},
      {"Add", "p q", "r", "", "add", "aten.add.Tensor"},
      {"Div", "r weights", "y", "", "div", "aten.div.Tensor"}},
     "avg_pool",
     H},
    {"x.var(-1), of later releases: its input",
     {{"ReduceMean", "h minus", "a", "", PRIMS_VAR},
      {"Sub", "h a", "b", "", PRIMS_VAR},
      {"Mul", "b b", "c", "", PRIMS_VAR},
      {"ReduceMean", "c minus", "y", "", PRIMS_VAR}},
     "var",
     H},
    {"torch.remainder(x, 2): nothing",
     {{"Div", "h two", "a", "", REMAINDER("Scalar")},
      {"Floor", "a", "b", "", REMAINDER("Scalar")},
      {"Mul", "b two", "c", "", REMAINDER("Scalar")},
      {"Sub", "h c", "y", "", REMAINDER("Scalar")}},
     "remainder.Scalar",
     0},
    {"x * (x > 2): a mask of bytes",
     {{"Greater", "h two", "a", "", "gt", "aten.gt.Scalar"},
      {"Cast", "a", "b", "to=1", "convert", "prims.convert_element_type.default"},
      {"Mul", "h b", "y", "", "mul", "aten.mul.Tensor"}},
     "gt mul",
     H / 4},
    {"x * (x > 2).float()",
     {{"Greater", "h two", "a", "", "gt", "aten.gt.Scalar"},
      {"Cast", "a", "b", "to=1", "_to_copy", "aten._to_copy.default"},
      {"Mul", "h b", "y", "", "mul", "aten.mul.Tensor"}},
     "gt to mul",
     H},
    {"a, b, c, d = x.unbind(0)",
     {{"Slice", "h i0 i1 i0", "a", "", UNBIND},
      {"Squeeze", "a i0", "b", "", UNBIND},
      {"Slice", "h i1 i2 i0", "c", "", UNBIND},
      {"Squeeze", "c i0", "d", "", UNBIND},
      {"Add", "b d", "y", "", "add", "aten.add.Tensor"}},
     "unbind view view add",
     0},
    {"x * torch.rand_like(x): the numbers alone",
     {{"RandomUniformLike", "h", "a", "", "rand_like", "aten.rand_like.default"},
      {"Mul", "h a", "y", "", "mul", "aten.mul.Tensor"}},
     "uniform_ mul",
     H},
    {"torch.lerp(x, y, z): all three",
     {{"Sigmoid", "h", "v", "", "sigmoid", "aten.sigmoid.default"},
      {"Tanh", "h", "z", "", "tanh", "aten.tanh.default"},
      {"Sub", "v h", "a", "", LERP},
      {"Less", "z two", "b", "", LERP},
      {"Mul", "z a", "c", "", LERP},
      {"Add", "h c", "d", "", LERP},
      {"Where", "b d a", "y", "", LERP}},
     "sigmoid tanh lerp",
     3 * H},
    {"x.clamp(min=2): its input",
     {{"Max", "h two", "y", "", "clamp", "aten.clamp.Tensor"}},
     "clamp_min",
     H},
    {"logcumsumexp: input and result",
     {{"ReduceMax", "h minus", "a", "keepdims=1", LOGCUMSUM},
      {"Sub", "h a", "b", "", LOGCUMSUM},
      {"Exp", "b", "c", "", LOGCUMSUM},
      {"CumSum", "c n1", "d", "", LOGCUMSUM},
      {"Log", "d", "e", "", LOGCUMSUM},
      {"Add", "e a", "y", "", LOGCUMSUM}},
     "logcumsumexp",
     2 * H},
};

TEST(calls_are_whole_again)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        OWNED_TRAINER t;
        OWNED_MODEL m = build(rows[i].steps);
        trainer_open_model(&t, m);
        onv_error err = {0};
        onv_eager eager;
        uint64_t kept = 0;
        onv_lower_options options = {.loss = ONV_LOSS_NONE};
        if (onv_eager_lower(&t.model, &t.live, t.is_host, &options, &eager, &err) != ONV_OK ||
            onv_eager_saved(&t.model, &eager, &kept, NULL, &err) != ONV_OK)
            fail_msg("%s: %s", rows[i].what, err.message);
        char names[256] = "";
        size_t length = 0;
        for (size_t k = 2; k < eager.ops.count; k++)
            length += (size_t)snprintf(names + length, sizeof names - length, "%s%s",
                                       k > 2 ? " " : "", eager.ops.at[k].name);
        if (strcmp(names, rows[i].operations) != 0 || kept != H + rows[i].kept)
            fail_msg("%s: %s keeps %llu bytes", rows[i].what, names, (unsigned long long)kept);
        onv_eager_cleanup(&eager);
    }
}

/* Kernels copy gradients that are not dense for themselves: what a product reads in another order than the softmax wrote,
 * what is a part of the gradient of what was joined. */
TEST(kernels_copy_gradients_that_are_not_dense)
{
    enum { SOFTMAX = 2 * 4 * 4 * 4, IMAGE = 2 * 4 * 6 * 6 * 4 };
#define STEP(op, inputs, output, attributes)                                                       \
    {                                                                                              \
        op, inputs, output, attributes, NULL, NULL                                                 \
    }
#define JOINED        STEP("Concat", "y x", "z", "axis=1"), STEP("Relu", "z", "r", "")
#define SCORES        STEP("MatMul", "s w", "h", ""), STEP("Softmax", "h", "y", "axis=1")
#define SWAPPED(perm) STEP("Transpose", "y", "p", perm), STEP("MatMul", "p h", "z", "")
#define PADS          "pads=[1,1,1,1]"
    static const struct {
        step steps[4];
        const char *kernel;
        uint64_t temps;
    } cases[] = {
        {{SCORES, SWAPPED("perm=[0,2,1]")}, "softmax", 2 * SOFTMAX},
        {{SCORES, SWAPPED("perm=[0,1,2]")}, "softmax", SOFTMAX},
        {{SCORES, STEP("MatMul", "y h", "z", "")}, "softmax", SOFTMAX},
        {{STEP("Conv", "x k", "y", PADS), JOINED}, "conv", IMAGE},
        {{STEP("Conv", "x k", "y", PADS), STEP("Concat", "y x", "z", "axis=0")}, "conv", 0},
        {{STEP("Conv", "x k", "y", PADS), STEP("Relu", "y", "z", "")}, "conv", 0},
        {{STEP("ConvTranspose", "x k", "y", PADS), JOINED}, "conv", IMAGE},
        {{STEP("MaxPool", "x", "y", "kernel_shape=[3,3] " PADS), JOINED}, "max_pool", IMAGE},
        {{STEP("AveragePool", "x", "y", "kernel_shape=[3,3] " PADS), JOINED}, "avg_pool", IMAGE},
        {{STEP("Relu", "x", "y", ""), JOINED}, "relu", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        OWNED_MODEL m = model_new(18);
        OWNED_TRAINER t;
        OWNED_EAGER eager;
        onv_lower_options options = {.loss = ONV_LOSS_NONE};
        model_add(m, "in s f32[2,4,8]", "in i f32[2,4,6,6]", "weight w f32[8,4]",
                  "weight k f32[4,4,3,3]", "weight b f32[4,1,1]", "x = Add(i b) x");
        const char *last = NULL;
        for (int k = 0; k < 4 && cases[i].steps[k].op != NULL; k++) {
            const step *n = &cases[i].steps[k];
            add(m, n);
            last = n->output;
        }
        model_output(m, last, "f32");
        trainer_open_model(&t, m);
        trainer_lower(&t, &options, &eager);
        uint64_t temps = UINT64_MAX;
        for (size_t k = 0; k < eager.ops.count && temps == UINT64_MAX; k++)
            if (strcmp(eager.ops.at[k].name, cases[i].kernel) == 0)
                temps = onv_eager_backward_temps(&eager, &eager.ops.at[k]) +
                        eager.ops.at[k].grad_copy_bytes;
        if (temps != cases[i].temps) fail_msg("case %zu: %llu bytes", i, (unsigned long long)temps);
    }
}

/* A call that stays in parts, whose parts keep what the call does not: F.bilinear as it is exported, say. */
TEST(calls_in_parts_are_told)
{
    static const char *const calls[][2] = {{"erfcx", "aten.special_erfcx.default"},
                                           {"einsum", "aten.einsum.default"}};
    for (int i = 0; i < 2; i++) {
        OWNED_MODEL m = model_new(18);
        OWNED_TRAINER t;
        OWNED_EAGER eager;
        onv_lower_options options = {.loss = ONV_LOSS_NONE, .reports = true};
        model_add(m, "in x f32[4,8]", "weight w f32[8,8]", "role w PARAMETER",
                  "h = MatMul(x w) product");
        for (int k = 0; k < 3; k++) {
            static const char *const nodes[][3] = {
                {"Exp", "h", "a"}, {"Neg", "h", "b"}, {"Mul", "a b", "y"}};
            model_source(m, "net", calls[i][0]);
            model_class(m, "Net", calls[i][1]);
            model_node(m, nodes[k][0], nodes[k][2], nodes[k][1], nodes[k][2], "");
        }
        model_output(m, "y", "f32");
        trainer_open_model(&t, m);
        trainer_lower(&t, &options, &eager);
        const onv_diag *told = diag_of(&t.model, "calls-in-parts");
        assert_int_equal(told != NULL, i == 0);
        if (told != NULL) assert_non_null(strstr(told->message, "2 tensors, 256 bytes"));
    }
}
