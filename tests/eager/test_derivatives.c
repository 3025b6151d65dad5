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
    model *m = model_new(20);
    model_input(m, "x", "f32[3,512,8]");
    model_input(m, "mask", "bool[3,512,4]");
    model_weight(m, "wa", "f32[8,4]");
    model_weight(m, "wb", "f32[8,4]");
    model_weight(m, "wr", "f32[8,1]");
    model_weight(m, "slope", "f32[4]");
    model_ints(m, "last", 1, &last);
    model_int(m, "one", 1);
    model_int(m, "three", 3);
    model_node(m, "Constant", "low", "", "low", "value_float=-0.5");
    model_node(m, "Constant", "high", "", "high", "value_float=1.5");
    model_node(m, "Constant", "zero", "", "zero", "value_float=0.0");
    model_node(m, "Constant", "six", "", "six", "value_float=6.0");
    model_node(m, "Constant", "two", "", "two", "value_float=2.0");
    model_node(m, "MatMul", "pa", "x wa", "a", "");
    model_node(m, "MatMul", "pb", "x wb", "b", "");
    model_node(m, "MatMul", "pr", "x wr", "r", "");
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
    uint64_t made = op->backward_temp_bytes;
    onv_eager_cleanup(&eager);
    if (kept == saved && made == temps) return true;
    print_error("%s of %s, %s: keeps %llu, makes %llu; PyTorch keeps %llu, makes %llu\n", r->op,
                r->inputs, amp == ONV_UNDEFINED ? "float32" : "float16", (unsigned long long)kept,
                (unsigned long long)made, (unsigned long long)saved, (unsigned long long)temps);
    return false;
}

static void backward_makes_what_formulas_make(void **state)
{
    bool all = true;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        model *m = build(&rows[i]);
        trainer t;
        trainer_open_model(&t, m);
        all &= agrees(&t, &rows[i], ONV_UNDEFINED, rows[i].saved, rows[i].temps);
        if (rows[i].low_saved + rows[i].low_temps > 0)
            all &= agrees(&t, &rows[i], ONV_FLOAT16, rows[i].low_saved, rows[i].low_temps);
        trainer_close(&t);
        model_free(m);
    }
    assert_true(all);
}

/* A determinant keeps its matrix, the factors and the pivots; backward solves with copies. */
static void determinants_keep_their_factors(void **state)
{
    enum { MATRIX = 2 * 8 * 8 * 4, PIVOTS = 2 * 8 * 4, NUMBERS = 2 * 4 };
    trainer t;
    onv_error err = {0};
    onv_eager eager;
    onv_lower_options options = {.loss = ONV_LOSS_NONE};
    model *m = model_new(20);
    model_input(m, "x", "f32[2,8,4]");
    model_weight(m, "w", "f32[4,8]");
    model_node(m, "MatMul", "product", "x w", "a", "");
    model_node(m, "Det", "det", "a", "y", "");
    model_output(m, "y", "f32");
    trainer_open_model(&t, m);
    assert_int_equal(onv_eager_lower(&t.model, &t.live, t.is_host, &options, &eager, &err), ONV_OK);
    const onv_eager_op *op = &eager.ops.at[eager.ops.count - 1];
    assert_int_equal(op->backward_temp_bytes, 3 * MATRIX + 2 * PIVOTS);
    onv_eager_cleanup(&eager);
    assert_int_equal(trainer_saved(&t, &options), 2 * 8 * 4 * 4 + 2 * MATRIX + PIVOTS + NUMBERS);
    trainer_close(&t);
    model_free(m);
}

/* An exponent that is a tensor keeps the base, itself and the result, of whatever size it is, trained or not. */
static void exponents_keep_all(void **state)
{
    for (int is_trained = 0; is_trained < 2; is_trained++) {
        trainer t;
        const float three = 3;
        model *m = model_new(20);
        model_input(m, "x", "f32[8,4]");
        model_weight(m, "w", "f32[4,8]");
        model_role(m, "w", "PARAMETER");
        model_weight_data(m, "net.p", "f32[1]", &three, sizeof three);
        model_role(m, "net.p", is_trained ? "PARAMETER" : "BUFFER");
        model_parameters(m, is_trained ? "w net.p" : "w ~net.p");
        model_source(m, "net", "linear");
        model_class(m, "Net", "aten.linear.default");
        model_node(m, "MatMul", "product", "x w", "a", "");
        model_source(m, "net", "pow_1");
        model_class(m, "Net", "aten.pow.Tensor_Tensor");
        model_node(m, "Pow", "pow", "a net.p", "y", "");
        model_output(m, "y", "f32");
        trainer_open_model(&t, m);
        onv_lower_options options = {.loss = ONV_LOSS_NONE};
        uint64_t saved = trainer_saved(&t, &options);
        assert_int_equal(saved, 8 * 4 * 4 + 2 * 8 * 8 * 4);
        trainer_close(&t);
        model_free(m);
    }
}

/* --- Copies that no formula tells -------------------------------------------------------------- */

static void add_overwritten_norm(model *m)
{
    model_input(m, "x", "f32[2,3,16,16]");
    model_weight(m, "w", "f32[8,3,1,1]");
    model_weight(m, "scale", "f32[8]");
    model_weight(m, "shift", "f32[8]");
    model_node(m, "Conv", "conv", "x w", "a", "");
    model_node(m, "InstanceNormalization", "norm", "a scale shift", "b", "");
    model_node(m, "LeakyRelu", "leaky", "b", "y", "alpha=0.1");
}

static void add_overwritten_product(model *m)
{
    model_input(m, "x", "f32[2,3,16,16]");
    model_weight(m, "w", "f32[8,3,1,1]");
    model_node(m, "Conv", "conv", "x w", "a", "");
    model_node(m, "LeakyRelu", "leaky", "a", "y", "alpha=0.1");
}

static void add_experts(model *m)
{
    model_input(m, "x", "f32[2,6,8]");
    model_weight(m, "w1", "f32[3,8,16]");
    model_weight(m, "w2", "f32[3,16,8]");
    model_weight(m, "wg", "f32[8,3]");
    model_node(m, "MatMul", "gate", "x wg", "g", "");
    model_node(m, "Einsum", "up", "x w1", "h", "equation='btd,edf->btef'");
    model_node(m, "Einsum", "down", "h w2 g", "y", "equation='btef,efd,bte->btd'");
}

/* Experts that see all tokens, mixed by a second einsum: its product reads theirs with the experts last, in which order
 * the gradient comes, too. */
static void add_mixed_experts(model *m)
{
    static const int64_t split[] = {3, 2, 6, 8};
    model_input(m, "x", "f32[3,12,8]");
    model_input(m, "tokens", "f32[2,6,8]");
    model_weight(m, "w", "f32[3,8,8]");
    model_weight(m, "wg", "f32[8,3]");
    model_ints(m, "split", 4, split);
    model_node(m, "MatMul", "gate", "tokens wg", "g", "");
    model_node(m, "Einsum", "experts", "x w", "a", "equation='end,edh->enh'");
    model_node(m, "Reshape", "view", "a split", "b", "");
    model_node(m, "Einsum", "mix", "b g", "y", "equation='ebnd,bne->bnd'");
}

static void add_index(model *m)
{
    model_input(m, "x", "f32[4,8]");
    model_weight(m, "w", "f32[8,8]");
    model_input(m, "indices", "i64[4,1]");
    model_node(m, "MatMul", "mm", "x w", "a", "");
    model_node(m, "GatherND", "index", "a indices", "y", "");
}

/* Between linear layers, channels and time swapped: the gradient is copied twice. */
static void add_over_time(model *m, const char *op, const char *inputs, const char *attributes)
{
    model_input(m, "x", "f32[3,512,8]");
    model_weight(m, "w1", "f32[8,4]");
    model_weight(m, "w3", "f32[4,2]");
    model_weight(m, "k", "f32[6,4,3]");
    model_weight(m, "w6", "f32[6,2]");
    model_ints(m, "ends", 6, (const int64_t[]){0, 0, 3, 0, 0, 3});
    model_ints(m, "sizes", 3, (const int64_t[]){3, 4, 1024});
    model_node(m, "MatMul", "first", "x w1", "a", "");
    model_node(m, "Transpose", "swap", "a", "b", "perm=[0,2,1]");
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

/* As the older exporter writes torch.cdist and Tensor.unfold. */
static void add_distances(model *m)
{
    model_input(m, "x", "f32[3,512,8]");
    model_input(m, "z", "f32[3,8,8]");
    model_weight(m, "w", "f32[8,4]");
    model_weight(m, "v", "f32[8,4]");
    model_ints(m, "last", 1, (const int64_t[]){-1});
    model_ints(m, "i1", 1, (const int64_t[]){1});
    model_ints(m, "i2", 1, (const int64_t[]){2});
    model_node(m, "Constant", "c0", "", "two", "value_float=2.0");
    model_node(m, "Constant", "c1", "", "root", "value_float=0.49999975");
    model_node(m, "MatMul", "left", "x w", "a", "");
    model_node(m, "MatMul", "right", "z v", "b", "");
    model_node(m, "Unsqueeze", "0", "a i2", "c", "");
    model_node(m, "Unsqueeze", "1", "b i1", "d", "");
    model_node(m, "Sub", "2", "c d", "e", "");
    model_node(m, "Pow", "3", "e two", "f", "");
    model_node(m, "ReduceSum", "4", "f last", "g", "keepdims=0");
    model_node(m, "Pow", "5", "g root", "y", "");
}

static void add_windows(model *m)
{
    model_input(m, "x", "f32[2,12,8]");
    model_weight(m, "w", "f32[8,8]");
    model_ints(m, "i0", 1, (const int64_t[]){0});
    model_ints(m, "i1", 1, (const int64_t[]){1});
    model_ints(m, "i4", 1, (const int64_t[]){4});
    model_ints(m, "i8", 1, (const int64_t[]){8});
    model_ints(m, "i12", 1, (const int64_t[]){12});
    model_node(m, "MatMul", "product", "x w", "h", "");
    model_node(m, "Slice", "0", "h i0 i8 i1", "a", "");
    model_node(m, "Slice", "1", "h i4 i12 i1", "b", "");
    model_node(m, "Transpose", "2", "a", "c", "perm=[0,2,1]");
    model_node(m, "Transpose", "3", "b", "d", "perm=[0,2,1]");
    model_node(m, "Unsqueeze", "4", "c i1", "e", "");
    model_node(m, "Unsqueeze", "5", "d i1", "f", "");
    model_node(m, "Concat", "6", "e f", "y", "axis=1");
}

/* Patches of an image, whose places are swapped with the channels. */
static void add_patches(model *m)
{
    static const int64_t parts[] = {2, 8, 4};
    model_input(m, "x", "f32[2,3,8,8]");
    model_weight(m, "w", "f32[8,3,4,4]");
    model_ints(m, "parts", 3, parts);
    model_node(m, "Conv", "0", "x w", "a", "strides=[4,4]");
    model_node(m, "Reshape", "1", "a parts", "b", "");
    model_node(m, "Transpose", "2", "b", "c", "perm=[0,2,1]");
    model_node(m, "Neg", "3", "c", "y", "");
}

/* As the CUDA build of PyTorch 2.15 asked for it over a substitute for the driver. */
static void kernels_copy_gradients(void **state)
{
    const uint64_t image = 2 * 8 * 16 * 16 * 4, product = 3 * 2 * 6 * 8 * 4;
    enum { DISTANT = 3 * 8 * 4 * 4 };
    const struct {
        void (*add)(model *m);
        uint64_t temps;
    } cases[] = {{add_overwritten_norm, 2 * image},
                 {add_overwritten_product, 0},
                 {add_experts, product},
                 {add_mixed_experts, 3 * 12 * 8 * 4},
                 {add_index, 4 * 8 * 4},
                 {add_distances, 2 * F + ROWS * 4 + 2 * DISTANT + 24 * 4 + 8 * ROWS * 4},
                 {add_windows, 12 * 8},
                 {add_resize_over_time, F + 2 * F},
                 {add_reflection_over_time, F + 3 * 518 * 4 * 4},
                 {add_edge_over_time, F},
                 {add_zeros_over_time, 0},
                 {add_patches, 2 * 8 * 4 * 4},
                 /* The convolution's input, too. */
                 {add_conv_over_time, F + 3 * 512 * 6 * 4 + F}};
    const char *const all[] = {"*"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        onv_error err = {0};
        onv_eager eager;
        onv_lower_options options = {.loss = ONV_LOSS_NONE, .inplace = all, .n_inplace = 1};
        model *m = model_new(20);
        cases[i].add(m);
        model_output(m, "y", "f32");
        trainer t;
        trainer_open_model(&t, m);
        if (onv_eager_lower(&t.model, &t.live, t.is_host, &options, &eager, &err) != ONV_OK)
            fail_msg("%s (%s)", err.message, err.node);
        uint64_t temps = 0;
        for (size_t k = 0; k < eager.ops.count; k++) temps += eager.ops.at[k].backward_temp_bytes;
        if (temps != cases[i].temps)
            fail_msg("case %zu: %llu, not %llu bytes", i, (unsigned long long)temps,
                     (unsigned long long)cases[i].temps);
        onv_eager_cleanup(&eager);
        trainer_close(&t);
        model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(determinants_keep_their_factors),
        cmocka_unit_test(exponents_keep_all),
        cmocka_unit_test(backward_makes_what_formulas_make),
        cmocka_unit_test(kernels_copy_gradients),
    };
    return cmocka_run_group_tests_name("eager.derivatives", tests, NULL, NULL);
}
