/* Gradients that meet, and those that come in another order than their kernel wants. */
#include "eager/noted_network.h"
#include "lower/lower.h"
#include "support/test.h"

static void build(model *m, trainer *t, onv_eager *eager, onv_train_program *program)
{
    onv_error err = {0};
    onv_train_options options = {.optimizer = onv_optimizer_find("sgd")};
    options.lower.loss = ONV_LOSS_MSE;
    trainer_open_model(t, m);
    trainer_lower(t, &options.lower, eager);
    assert_int_equal(onv_train_program_build(&t->model, eager, &options, program, &err), ONV_OK);
    assert_int_equal(onv_train_program_check(program, &err), ONV_OK);
}

/* Gradients of so many bytes in an iteration. */
static uint32_t gradients_of(const onv_train_program *program, uint64_t bytes)
{
    uint32_t count = 0;
    for (size_t i = 0; i < program->timeline.buffers.count; i++) {
        const onv_buffer *b = &program->timeline.buffers.at[i];
        count += b->kind == ONV_BUFFER_GRADIENT && b->bytes == bytes;
    }
    return count / 2;
}

/* Takes the model over. */
static uint64_t backward_peak(model *m)
{
    trainer t;
    uint64_t peak = TRAINED(&t, m, .loss = ONV_LOSS_MSE).phase_peak_bytes[ONV_PHASE_BACKWARD];
    trainer_close(&t);
    model_free(m);
    return peak;
}

/* Gradients of two readers meet: a sum hands the same gradient to both, so the first product adds
 * into it once the second has let go of it. No third tensor is made. */
TEST(gradients_of_readers_add_in_place)
{
    OWNED_MODEL m = model_read(17, "in x f32[16,256]", "weight w1 f32[256,256]",
                               "weight w2 f32[256,256]", "a = MatMul(x w1) first",
                               "b = MatMul(a w2) second", "y = Add(a b) residual", "out y f32");
    OWNED_TRAINER t;
    OWNED_EAGER eager;
    onv_train_program program;
    uint32_t sums = 0;
    build(m, &t, &eager, &program);
    for (size_t i = 0; i < program.timeline.steps.count; i++)
        sums += strcmp(program.timeline.steps.at[i].label, "sum of gradients") == 0;
    /* An iteration: the gradient of y, which is that of b and waits as that of a, and a's own. */
    assert_int_equal(gradients_of(&program, 16384), 3);
    assert_int_equal(gradients_of(&program, 262144), 3);
    assert_int_equal(sums, 0);
    onv_train_program_cleanup(&program);
}

/* A linear layer that runs twice takes its weight as a view, and so its gradients come: the first two make a third
 * tensor. Those of a product with the weight itself add in place. */
TEST(gradients_of_a_shared_layer_make_a_sum)
{
    for (int is_linear = 0; is_linear < 2; is_linear++) {
        model *m = model_read(17, "in x f32[16,256]", "weight w f32[256,256]", "role w PARAMETER");
        for (int k = 0; k < 2; k++) {
            model_source(m, "layer", k == 0 ? "linear" : "linear_1");
            model_class(m, "Layer", is_linear ? "aten.linear.default" : "aten.mm.default");
            model_node(m, "MatMul", k == 0 ? "a" : "b", k == 0 ? "x w" : "h w", k == 0 ? "h" : "y",
                       "");
        }
        model_output(m, "y", "f32");
        uint64_t peak = backward_peak(m);
        enum { W = 256 * 256 * 4, ROW = 16 * 256 * 4 };
        /* The weight, its first gradient, the second, their sum; the batch, the output and targets. */
        assert_int_equal(peak / W, is_linear ? 4 : 3);
        assert_in_range(peak % W, 3 * ROW, 8 * ROW);
    }
}

/* A norm of sequences in a network that has channels last: what comes back is copied for the kernel. */
TEST(norms_copy_swapped_gradients)
{
    uint64_t peak[2];
    for (int is_swapped = 0; is_swapped < 2; is_swapped++) {
        model *m = model_read(17, "in x f32[4,64,64]", "weight w f32[64,64]",
                              "h = MatMul(x w) first", "a = Transpose(h) swap perm=[0,2,1]");
        static const char *const vectors[] = {"scale", "bias", "mean", "var"};
        for (int k = 0; k < 4; k++) model_weight(m, vectors[k], "f32[64]");
        model_node(m, "BatchNormalization", "norm", "a scale bias mean var", "b",
                   "training_mode=1");
        model_node(m, "Transpose", "back", "b", is_swapped ? "y" : "c", "perm=[0,2,1]");
        if (!is_swapped) model_node(m, "Transpose", "again", "c", "y", "perm=[0,2,1]");
        model_output(m, "y", "f32");
        peak[is_swapped] = backward_peak(m);
    }
    assert_int_equal(peak[1] - peak[0], 4 * 64 * 64 * 4);
}

/* So does a layer norm, whose result a layer reads along the sequence. */
TEST(layer_norms_copy_swapped_gradients)
{
    uint64_t peak[2];
    for (int is_swapped = 0; is_swapped < 2; is_swapped++) {
        model *m = model_read(17, "in x f32[4,64,64]", "weight w f32[64,64]",
                              "weight scale f32[64]", "weight bias f32[64]",
                              "h = MatMul(x w) first", "a = LayerNormalization(h scale bias) norm");
        model_node(m, "Transpose", "swap", "a", is_swapped ? "y" : "b", "perm=[0,2,1]");
        if (!is_swapped) model_node(m, "Transpose", "again", "b", "y", "perm=[0,2,1]");
        model_output(m, "y", "f32");
        peak[is_swapped] = backward_peak(m);
    }
    assert_int_equal(peak[1] - peak[0], 4 * 64 * 64 * 4);
}

/* Formulas make one tensor after the other: grad * (exponent * x^(exponent - 1)) has two of x's size before the gradient, and that of
 * a softmax comes before what its kernel makes. */
TEST(formulas_make_tensors_one_by_one)
{
    static const char *const ops[] = {"pow", "softmax"};
    for (int is_softmax = 0; is_softmax < 2; is_softmax++) {
        OWNED_MODEL m = model_read(17, "in x f32[16,256]", "weight w f32[256,256]",
                                   "three = Constant() c value_float=3.0", "h = MatMul(x w) first");
        model_node(m, is_softmax ? "Softmax" : "Pow", "op", is_softmax ? "h" : "h three", "y", "");
        model_output(m, "y", "f32");
        OWNED_TRAINER t;
        trainer_open_model(&t, m);
        OWNED_EAGER eager;
        onv_lower_options options = {.loss = ONV_LOSS_MSE};
        trainer_lower(&t, &options, &eager);
        for (size_t i = 0; i < eager.ops.count; i++) {
            const onv_eager_op *op = &eager.ops.at[i];
            if (strcmp(op->name, ops[is_softmax]) != 0) continue;
            const onv_backward_temp *temps = &eager.temps.at[op->first_temp];
            assert_int_equal(op->n_temps, is_softmax ? 2 : 3);
            for (uint32_t k = 0; k < op->n_temps; k++) {
                assert_int_equal(temps[k].bytes, 16 * 256 * 4);
                assert_int_equal(temps[k].grad_of, k == (is_softmax ? 0 : 2));
            }
        }
    }
}

/* What was expanded gets a sum, which is in rows, however its gradient comes: the reshape in front of a transpose copies it. */
TEST(gradients_of_expanded_heads_are_rows)
{
    uint32_t count[2];
    for (int is_swapped = 0; is_swapped < 2; is_swapped++) {
        OWNED_MODEL m = model_read(
            17, "in x f32[256,64]", "weight w f32[64,64]", "ints by_head 4 64 2 32", "ints last 2",
            "ints groups 4 2 2 64 32", "h = MatMul(x w) first", "r = Reshape(h by_head) view",
            "t = Transpose(r) swap perm=[0,2,1,3]", "u = Unsqueeze(t last) group",
            "e = Expand(u groups) repeat", "p = Exp(e) exp");
        model_node(m, is_swapped ? "Transpose" : "Identity", "rows", "p", "y",
                   is_swapped ? "perm=[0,3,1,2,4]" : "");
        model_output(m, "y", "f32");
        OWNED_TRAINER t;
        OWNED_EAGER eager;
        onv_train_program program;
        build(m, &t, &eager, &program);
        count[is_swapped] = gradients_of(&program, 256 * 64 * 4);
        onv_train_program_cleanup(&program);
    }
    assert_int_equal(count[0], count[1]);
}

/* matmul() makes views of its operands, whose gradients make a third tensor; bmm() has none, and they add in place. */
TEST(gradients_of_bmm_are_tensors)
{
    enum { MATRICES = 8 * 64 * 64 * 4 };
    uint64_t peak[2];
    for (int is_bmm = 0; is_bmm < 2; is_bmm++) {
        model *m = model_read(17, "in x f32[8,1,64]", "weight w f32[8,64,64]", "role w PARAMETER",
                              "e = Exp(w) exp");
        for (int k = 0; k < 2; k++) {
            model_source(m, "layer", k == 0 ? "bmm" : "bmm_1");
            model_class(m, "Layer", is_bmm ? "aten.bmm.default" : "aten.matmul.default");
            model_node(m, "MatMul", k == 0 ? "a" : "b", k == 0 ? "x e" : "h e", k == 0 ? "h" : "y",
                       "");
        }
        model_output(m, "y", "f32");
        peak[is_bmm] = backward_peak(m);
    }
    assert_in_range(peak[0] - peak[1], MATRICES - 4096, MATRICES);
}

/* A convolution of images whose channels stand last gives the gradient of its weight in that order: AccumulateGrad copies it. */
TEST(gradients_in_another_order_are_copied)
{
    for (int is_last = 0; is_last < 2; is_last++) {
        OWNED_MODEL m = model_read(17, "in x f32[2,8,8,8]", "weight w f32[8,8]",
                                   "weight k f32[16,8,3,3]", "h = MatMul(x w) first");
        if (is_last) model_node(m, "Transpose", "move", "h", "c", "perm=[0,3,1,2]");
        model_node(m, "Conv", "conv", is_last ? "c k" : "h k", "y", "");
        model_output(m, "y", "f32");
        OWNED_TRAINER t;
        OWNED_EAGER eager;
        onv_error err = {0};
        onv_train_program program;
        onv_train_options options = {.optimizer = onv_optimizer_find("sgd")};
        uint32_t copies = 0;
        trainer_open_model(&t, m);
        trainer_lower(&t, &options.lower, &eager);
        assert_int_equal(onv_train_program_build(&t.model, &eager, &options, &program, &err),
                         ONV_OK);
        for (size_t i = 0; i < program.timeline.steps.count; i++)
            copies += strcmp(program.timeline.steps.at[i].label, "AccumulateGrad") == 0;
        assert_int_equal(copies > 0, is_last);
        onv_train_program_cleanup(&program);
    }
}

/* A sum over a dim that was moved, behind a view: its gradient, which repeats that of the sum, is permuted back and copied. */
TEST(gradients_of_permuted_sums_are_copied)
{
    enum { X = 64 * 32 * 16 * 4 };
    static const int64_t shape[] = {64, 32, 16}, axis[] = {1};
    uint64_t peaks[2];
    for (int i = 0; i < 2; i++) {
        model *m = model_read(17, "in x f32[64,4]", "weight w f32[4,512]", "role w PARAMETER");
        model_ints(m, "shape", 3, shape);
        model_ints(m, "axis", 1, axis);
        model_add(m, "h = MatMul(x w) product", "v = Reshape(h shape) view",
                  "t = Transpose(v) move perm=[2,0,1]");
        if (i == 0)
            model_node(m, "ReduceMean", "mean", "t", "y", "axes=[1] keepdims=0");
        else
            model_node(m, "ReduceSum", "sum", "t axis", "y", "keepdims=0");
        model_output(m, "y", "f32");
        peaks[i] = backward_peak(m);
    }
    assert_true(peaks[0] >= X);
    assert_true(peaks[1] >= X);
}

/* How the gradient of `v` comes, a view of a product that is moved and then normalized, or of which a part is taken. */
static uint8_t gradient_of_view(const char *reader, const char *perm)
{
    static const int64_t shape[] = {64, 32, 16}, zero[] = {0}, two[] = {2};
    trainer t;
    onv_eager eager;
    onv_error err = {0};
    OWNED_MODEL m = model_read(17, "in x f32[64,4]", "weight w f32[4,512]", "role w PARAMETER");
    model_ints(m, "shape", 3, shape);
    model_ints(m, "zero", 1, zero);
    model_ints(m, "two", 1, two);
    model_add(m, "h = MatMul(x w) product", "v = Reshape(h shape) view");
    model_node(m, "Transpose", "move", "v", "t", perm);
    model_add(m, reader, "out y f32");
    trainer_open_model(&t, m);
    onv_lower_options options = {.loss = ONV_LOSS_NONE};
    assert_int_equal(onv_eager_lower(&t.model, &t.live, t.is_host, &options, &eager, &err), ONV_OK);
    assert_int_equal(eager.ops.at[1].aten, ONV_ATEN_view);
    uint8_t grad = eager.ops.at[1].in[0].grad;
    onv_eager_cleanup(&eager);
    trainer_close(&t);
    return grad;
}

/* Softmax, and backward of a part, give a gradient that is dense in the order of the moved dims: reshape() copies it. */
TEST(views_of_moved_gradients_copy_them)
{
    static const char *const readers[] = {"y = Softmax(t) softmax", "y = Slice(t zero two) part"};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(gradient_of_view(readers[i], "perm=[2,0,1]"), ONV_GRAD_NEW);
        assert_int_equal(gradient_of_view(readers[i], "perm=[0,1,2]"), ONV_GRAD_ALIAS);
    }
}

/* A trained matrix times a batch is one product of the turned batch: no gradient is as large as a matrix for each sample. */
TEST(matrices_before_a_batch_are_not_expanded)
{
    enum { MATRIX = 64 * 64 * 4, SAMPLES = 32 };
    model *m = model_read(17, "in x f32[32,64,1]", "weight w f32[64,64]", "role w PARAMETER",
                          "y = MatMul(w x) product", "out y f32");
    assert_true(backward_peak(m) < SAMPLES * MATRIX);
}
