/* What backward allocates beside gradients, operator by operator: each between a product and the output.
 * The figures are sums of what the CUDA build of PyTorch 2.15 asked its allocator for in the backward of
 * that operation, over a substitute for the driver. */
#include "eager/trainer.h"
#include "lower/lower.h"
#include "support/test.h"

/* a and b are [3, 512, 4], r is [3, 512, 1]. F: one of the former in float32; H: in float16. */
enum { ELEMS = 3 * 512 * 4, ROWS = 3 * 512, F = 4 * ELEMS, H = F / 2, MASK = ELEMS };

typedef struct row {
    const char *op, *inputs, *attributes;
    uint64_t saved, temps;         /* float32 */
    uint64_t low_saved, low_temps; /* under autocast to float16; 0, 0: not asked for */
} row;

static const row rows[] = {
    {"Abs", "a", "", F, F, H, H},
    {"Acos", "a", "", F, 5 * F, 0, 0},
    {"Acosh", "a", "", F, 3 * F, 0, 0},
    {"Asin", "a", "", F, 4 * F, 0, 0},
    {"Asinh", "a", "", F, 3 * F, 0, 0},
    {"Atan", "a", "", F, 2 * F, H, 2 * H},
    {"Atanh", "a", "", F, 3 * F, 0, 0},
    {"Cos", "a", "", F, 2 * F, H, 2 * H},
    {"Cosh", "a", "", F, F, 0, 0},
    {"CumSum", "a one", "", 0, 2 * F, 0, 3 * H},
    {"Erf", "a", "", F, 4 * F, H, 4 * H},
    {"Exp", "a", "", F, 0, 0, 0},
    {"Log", "a", "", F, 0, 0, 0},
    {"LogSoftmax", "a", "", F, 0, F, 0},
    {"Neg", "a", "", 0, 0, 0, 0},
    {"Reciprocal", "a", "", F, 2 * F, 0, 0},
    {"Relu", "a", "", F, 0, H, 0},
    {"Sigmoid", "a", "", F, 0, H, 0},
    {"Sin", "a", "", F, F, H, H},
    {"Sinh", "a", "", F, F, 0, 0},
    {"Softmax", "a", "", F, F, F, F},
    {"Sqrt", "a", "", F, F, H, H},
    {"Tan", "a", "", F, 2 * F, 0, 0},
    {"Tanh", "a", "", F, 0, H, 0},
    {"LeakyRelu", "a", "", F, 0, H, 0},
    {"Clip", "a low high", "", F, 2 * MASK + 4, H, 2 * MASK + 2},
    {"Clip", "a low", "", F, MASK + 4, H, MASK + 2},
    {"Clip", "a zero six", "", F, 0, H, 0}, /* relu6 */
    {"Div", "a b", "", 2 * F, 2 * F, 2 * H, 2 * H},
    {"Div", "a r", "", F + F / 4, 4 * F - F - F / 4, 0, 0},
    {"Div", "a two", "", 0, 0, 0, 0},
    {"Max", "a b", "", 2 * F, F + 2 * MASK, 2 * H, H + 2 * MASK},
    {"Max", "a r", "", F + F / 4, 3 * F + 2 * MASK - F - F / 4, 0, 0},
    {"Min", "a b", "", 2 * F, F + 2 * MASK, 2 * H, H + 2 * MASK},
    {"Mul", "a b", "", 2 * F, 0, 2 * H, 0},
    {"Mul", "a r", "", F + F / 4, F, 0, 0},
    {"PRelu", "a slope", "", F, F, 0, 0},
    {"Pow", "a three", "", F, 2 * F, 0, 0},
    {"Pow", "two a", "", 2 * F, F, 0, 0},
    {"Pow", "a b", "", 3 * F, 4 * F + MASK + 4, 0, 0},
    {"ReduceL1", "a last", "", F + F / 4, F, 0, 0},
    {"ReduceL2", "a last", "", F + F / 4, F + ROWS, H + F / 4, 2 * F + ROWS - H},
    {"ReduceLogSumExp", "a last", "", F + F / 4, 2 * F, 0, 0},
    {"ReduceMax", "a last", "", F + F / 4, MASK + 8 * ROWS + F, H + H / 4,
     MASK + 8 * ROWS + 3 * F / 2},
    {"ReduceMin", "a last", "", F + F / 4, MASK + 8 * ROWS + F, H + H / 4,
     MASK + 8 * ROWS + 3 * F / 2},
    {"ReduceMean", "a last", "", 0, 0, 0, 0},
    {"ReduceProd", "a last", "", F + F / 4, MASK + 8 * ROWS + F, H + F / 4,
     F + MASK + 8 * ROWS + 2 * F - H},
    {"ReduceSum", "a last", "", 0, 0, 0, 0},
    {"Sub", "a r", "", 0, F, 0, 0},
    {"Where", "mask a b", "", MASK, 4, MASK, 2},
    {"Where", "mask a r", "", MASK, F, 0, 0},
};

static model *build(const row *r)
{
    const int64_t last = -1;
    model *m = model_read(20, "in x f32[3,512,8]", "in mask bool[3,512,4]", "weight wa f32[8,4]",
                          "weight wb f32[8,4]", "weight wr f32[8,1]", "weight slope f32[4]");
    model_ints(m, "last", 1, &last);
    model_add(m, "int one 1", "int three 3", "low = Constant() low value_float=-0.5",
              "high = Constant() high value_float=1.5", "zero = Constant() zero value_float=0.0",
              "six = Constant() six value_float=6.0", "two = Constant() two value_float=2.0",
              "a = MatMul(x wa) pa", "b = MatMul(x wb) pb", "r = MatMul(x wr) pr");
    model_node(m, r->op, "op", r->inputs, "y", r->attributes);
    model_output(m, "y", "f32");
    return m;
}

static bool agrees(trainer *t, const row *r, onv_dtype amp, uint64_t saved, uint64_t temps)
{
    onv_error err = {0};
    onv_eager eager;
    onv_lower_options options = {.loss = ONV_LOSS_NONE, .amp = amp, .no_inplace = true};
    if (onv_eager_lower(&t->model, &t->live, t->is_host, &options, &eager, &err) != ONV_OK)
        fail_msg("%s: %s (%s)", r->op, err.message, err.node);
    const onv_eager_op *op = &eager.ops.at[eager.ops.count - 1];
    assert_int_equal(op->out[0], eager.outputs.at[0]);
    uint64_t kept = 0;
    for (uint32_t k = 0; k < op->n_saved; k++) {
        const onv_eager_storage *storage = &eager.storages.at[op->saved[k]];
        if (storage->kind != ONV_STORAGE_PARAMETER) kept += storage->bytes;
    }
    uint64_t made = onv_eager_backward_temps(&eager, op);
    onv_eager_cleanup(&eager);
    if (kept == saved && made == temps) return true;
    print_error("%s of %s, %s: keeps %llu, makes %llu; PyTorch keeps %llu, makes %llu\n", r->op,
                r->inputs, amp == ONV_UNDEFINED ? "float32" : "float16", (unsigned long long)kept,
                (unsigned long long)made, (unsigned long long)saved, (unsigned long long)temps);
    return false;
}

/* SoftMax.cpp casts float16 in the kernel, and bfloat16 before it: an operation of its own, whose result goes at once. */
TEST(softmax_casts_float16_alone_in_its_kernel)
{
    static const row r = {.op = "Softmax", .inputs = "a", .attributes = "axis=-1"};
    static const onv_dtype low[] = {ONV_FLOAT16, ONV_BFLOAT16};
    OWNED_MODEL m = build(&r);
    OWNED_TRAINER t;
    trainer_open_model(&t, m);
    for (uint32_t i = 0; i < 2; i++) {
        OWNED_EAGER eager;
        onv_lower_options options = {.loss = ONV_LOSS_NONE, .amp = low[i]};
        trainer_lower(&t, &options, &eager);
        const onv_eager_op *op = &eager.ops.at[eager.ops.count - 1];
        onv_eager_tensor read = eager.tensors.at[op->in[0].tensor];
        assert_int_equal(op->aten, ONV_ATEN_softmax);
        assert_int_equal(read.dtype, i == 0 ? ONV_FLOAT16 : ONV_FLOAT);
        assert_int_equal(eager.tensors.at[op->out[0]].dtype, ONV_FLOAT);
        assert_int_equal(op->n_saved, 1);
        assert_int_equal(op->saved[0], eager.tensors.at[op->out[0]].storage);
    }
}

TEST(backward_makes_what_formulas_make)
{
    bool all = true;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        OWNED_MODEL m = build(&rows[i]);
        OWNED_TRAINER t;
        trainer_open_model(&t, m);
        all &= agrees(&t, &rows[i], ONV_UNDEFINED, rows[i].saved, rows[i].temps);
        if (rows[i].low_saved + rows[i].low_temps > 0)
            all &= agrees(&t, &rows[i], ONV_FLOAT16, rows[i].low_saved, rows[i].low_temps);
    }
    assert_true(all);
}

/* A determinant keeps its matrix, the factors and the pivots; backward solves with copies. */
TEST(determinants_keep_their_factors)
{
    enum { MATRIX = 2 * 8 * 8 * 4, PIVOTS = 2 * 8 * 4, NUMBERS = 2 * 4 };
    OWNED_TRAINER t;
    OWNED_EAGER eager;
    onv_lower_options options = {.loss = ONV_LOSS_NONE};
    OWNED_MODEL m = model_read(20, "in x f32[2,8,4]", "weight w f32[4,8]",
                               "a = MatMul(x w) product", "y = Det(a) det", "out y f32");
    trainer_open_model(&t, m);
    trainer_lower(&t, &options, &eager);
    const onv_eager_op *op = &eager.ops.at[eager.ops.count - 1];
    assert_int_equal(onv_eager_backward_temps(&eager, op), 3 * MATRIX + 2 * PIVOTS);
    assert_int_equal(trainer_saved(&t, &options), 2 * 8 * 4 * 4 + 2 * MATRIX + PIVOTS + NUMBERS);
}

/* An exponent that is a tensor keeps the base, itself and the result, of whatever size it is, trained or not. */
TEST(exponents_keep_all)
{
    for (int is_trained = 0; is_trained < 2; is_trained++) {
        OWNED_TRAINER t;
        const float three = 3;
        OWNED_MODEL m = model_read(20, "in x f32[8,4]", "weight w f32[4,8]", "role w PARAMETER");
        model_weight_data(m, "net.p", "f32[1]", &three, sizeof three);
        model_role(m, "net.p", is_trained ? "PARAMETER" : "BUFFER");
        model_parameters(m, is_trained ? "w net.p" : "w ~net.p");
        model_add(m, "source net linear", "class Net aten.linear.default",
                  "a = MatMul(x w) product", "source net pow_1", "class Net aten.pow.Tensor_Tensor",
                  "y = Pow(a net.p) pow", "out y f32");
        trainer_open_model(&t, m);
        onv_lower_options options = {.loss = ONV_LOSS_NONE};
        uint64_t saved = trainer_saved(&t, &options);
        assert_int_equal(saved, 8 * 4 * 4 + 2 * 8 * 8 * 4);
    }
}

/* --- Copies that no formula tells -------------------------------------------------------------- */

static void add_overwritten_norm(model *m)
{
    model_add(m, "in x f32[2,3,16,16]", "weight w f32[8,3,1,1]", "weight scale f32[8]",
              "weight shift f32[8]", "a = Conv(x w) conv",
              "b = InstanceNormalization(a scale shift) norm", "y = LeakyRelu(b) leaky alpha=0.1");
}

static void add_overwritten_product(model *m)
{
    model_add(m, "in x f32[2,3,16,16]", "weight w f32[8,3,1,1]", "a = Conv(x w) conv",
              "y = LeakyRelu(a) leaky alpha=0.1");
}

static void add_experts(model *m)
{
    model_add(m, "in x f32[2,6,8]", "weight w1 f32[3,8,16]", "weight w2 f32[3,16,8]",
              "weight wg f32[8,3]", "g = MatMul(x wg) gate",
              "h = Einsum(x w1) up equation='btd,edf->btef'",
              "y = Einsum(h w2 g) down equation='btef,efd,bte->btd'");
}

/* Experts that see all tokens, mixed by a second einsum: its product reads theirs with the experts last, in which order
 * the gradient comes, too. */
static void add_mixed_experts(model *m)
{
    static const int64_t split[] = {3, 2, 6, 8};
    model_add(m, "in x f32[3,12,8]", "in tokens f32[2,6,8]", "weight w f32[3,8,8]",
              "weight wg f32[8,3]");
    model_ints(m, "split", 4, split);
    model_add(m, "g = MatMul(tokens wg) gate", "a = Einsum(x w) experts equation='end,edh->enh'",
              "b = Reshape(a split) view", "y = Einsum(b g) mix equation='ebnd,bne->bnd'");
}

static void add_index(model *m)
{
    model_add(m, "in x f32[4,8]", "weight w f32[8,8]", "in indices i64[4,1]", "a = MatMul(x w) mm",
              "y = GatherND(a indices) index");
}

/* Between linear layers, channels and time swapped: the gradient is copied twice. */
static void add_over_time(model *m, const char *op, const char *inputs, const char *attributes)
{
    model_add(m, "in x f32[3,512,8]", "weight w1 f32[8,4]", "weight w3 f32[4,2]",
              "weight k f32[6,4,3]", "weight w6 f32[6,2]", "ints ends 0 0 3 0 0 3",
              "ints sizes 3 4 1024", "a = MatMul(x w1) first",
              "b = Transpose(a) swap perm=[0,2,1]");
    model_node(m, op, "op", inputs, "c", attributes);
    model_node(m, "Transpose", "back", "c", "d", "perm=[0,2,1]");
    model_node(m, "MatMul", "last", strcmp(op, "Conv") == 0 ? "d w6" : "d w3", "y", "");
}

static void add_resize_over_time(model *m)
{
    add_over_time(m, "Resize", "b - - sizes", "mode='nearest'");
}

static void add_reflection_over_time(model *m)
{
    add_over_time(m, "Pad", "b ends", "mode='reflect'");
}

static void add_edge_over_time(model *m)
{
    add_over_time(m, "Pad", "b ends", "mode='edge'");
}

static void add_zeros_over_time(model *m)
{
    add_over_time(m, "Pad", "b ends", "mode='constant'");
}

static void add_conv_over_time(model *m)
{
    add_over_time(m, "Conv", "b k", "pads=[1,1]");
}

/* Patches of an image, whose places are swapped with the channels. */
static void add_patches(model *m)
{
    static const int64_t parts[] = {2, 8, 4};
    model_add(m, "in x f32[2,3,8,8]", "weight w f32[8,3,4,4]");
    model_ints(m, "parts", 3, parts);
    model_add(m, "a = Conv(x w) 0 strides=[4,4]", "b = Reshape(a parts) 1",
              "c = Transpose(b) 2 perm=[0,2,1]", "y = Neg(c) 3");
}

/* As the CUDA build of PyTorch 2.15 asked for it over a substitute for the driver. */
TEST(kernels_copy_gradients)
{
    const uint64_t image = 2 * 8 * 16 * 16 * 4, product = 3 * 2 * 6 * 8 * 4,
                   hidden = 2 * 6 * 3 * 16 * 4;
    const struct {
        void (*add)(model *m);
        uint64_t temps;
    } cases[] = {{add_overwritten_norm, 2 * image},
                 {add_overwritten_product, 0},
                 {add_experts, product + hidden}, /* a view's gradient */
                 {add_mixed_experts, 3 * 12 * 8 * 4},
                 {add_index, 4 * 8 * 4},
                 {add_resize_over_time, F + 2 * F},
                 {add_reflection_over_time, F + 3 * 518 * 4 * 4},
                 {add_edge_over_time, F},
                 {add_zeros_over_time, 0},
                 {add_patches, 2 * 8 * 4 * 4},
                 /* The convolution's input, too. */
                 {add_conv_over_time, F + 3 * 512 * 6 * 4 + F}};
    const char *const all[] = {"*"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        onv_eager eager;
        onv_lower_options options = {.loss = ONV_LOSS_NONE, .inplace = all, .n_inplace = 1};
        OWNED_MODEL m = model_new(20);
        cases[i].add(m);
        model_output(m, "y", "f32");
        OWNED_TRAINER t;
        trainer_open_model(&t, m);
        trainer_lower(&t, &options, &eager);
        uint64_t temps = 0;
        for (size_t k = 0; k < eager.ops.count; k++) {
            const onv_eager_op *op = &eager.ops.at[k];
            temps += onv_eager_backward_temps(&eager, op) + op->grad_copy_bytes;
            if (op->aten == ONV_ATEN_view && op->in[0].grad == ONV_GRAD_NEW)
                temps += eager.tensors.at[op->out[0]].bytes;
        }
        if (temps != cases[i].temps)
            fail_msg("case %zu: %llu, not %llu bytes", i, (unsigned long long)temps,
                     (unsigned long long)cases[i].temps);
        onv_eager_cleanup(&eager);
    }
}
