/* Where workspaces of libraries stand in the eager timeline. */
#include "eager/inference.h"
#include "eager/pass.h"
#include "eager/pytorch.h"
#include "eager/trainer.h"
#include "lower/lower.h"
#include "support/test.h"

#define LARGE UINT64_C(33554432)

static onv_train_options with(uint32_t pytorch)
{
    onv_train_options options = {.optimizer = onv_optimizer_find("sgd")};
    options.lower.loss = ONV_LOSS_MSE;
    options.lower.cuda = onv_cuda_library_defaults();
    options.lower.cuda.pytorch = pytorch;
    return options;
}

/* x [16, 256] times two squares. */
static model *products(void)
{
    model *m =
        model_read(17, "in x f32[16,256]", "weight w1 f32[256,256]", "weight w2 f32[256,256]",
                   "a = MatMul(x w1) first", "y = MatMul(a w2) second", "out y f32");
    return m;
}

typedef struct built {
    model *m;
    trainer t;
    onv_eager eager;
    onv_train_program program;
} built;

/* The model goes with what was built of it, at the end of the block. */
static void end_built(built *b)
{
    onv_train_program_cleanup(&b->program);
    onv_eager_cleanup(&b->eager);
    trainer_close(&b->t);
    model_free(b->m);
}
#define OWNED_BUILT __attribute__((cleanup(end_built))) built

static void build_with(built *b, model *m, const onv_train_options *options)
{
    onv_error err = {0};
    b->m = m;
    trainer_open_model(&b->t, m);
    trainer_lower(&b->t, &options->lower, &b->eager);
    assert_int_equal(onv_train_program_build(&b->t.model, &b->eager, options, &b->program, &err),
                     ONV_OK);
    assert_int_equal(onv_train_program_check(&b->program, &err), ONV_OK);
}

static void build(built *b, model *m, uint32_t pytorch)
{
    const onv_train_options options = with(pytorch);
    build_with(b, m, &options);
}

/* The kinds and bytes of what is allocated in the last step of that phase and name. */
static uint32_t allocated(const onv_timeline *t, onv_phase phase, const char *name,
                          onv_buffer found[8])
{
    uint32_t step = UINT32_MAX, n = 0;
    for (uint32_t i = 0; i < t->steps.count; i++)
        if (t->steps.at[i].phase == phase && strcmp(t->steps.at[i].label, name) == 0) step = i;
    for (size_t i = 0; i < t->buffers.count && n < 8; i++)
        if (t->buffers.at[i].first == step) found[n++] = t->buffers.at[i];
    return n;
}

TEST(each_gradient_has_a_workspace_of_its_own)
{
    model *m = products();
    OWNED_BUILT b;
    onv_buffer of[8];
    build(&b, m, 2015);
    const onv_timeline *t = &b.program.timeline;
    assert_int_equal(allocated(t, ONV_PHASE_FORWARD, "mm", of), 2);
    assert_int_equal(of[0].kind, ONV_BUFFER_ACTIVATION);
    assert_int_equal(of[1].kind, ONV_BUFFER_WORKSPACE);
    assert_int_equal(of[1].bytes, LARGE);
    assert_true(of[1].is_transient);
    /* The last one to run is that of the first product: x needs no gradient. */
    assert_int_equal(allocated(t, ONV_PHASE_BACKWARD, "mm", of), 2);
    assert_int_equal(of[0].kind, ONV_BUFFER_GRADIENT);
    assert_int_equal(of[1].bytes, LARGE);
    /* Where both are made, the two workspaces do not add up. */
    onv_peak all, tensors;
    assert_int_equal(onv_timeline_peak(t, &all, NULL, NULL), ONV_OK);
    assert_int_equal(onv_timeline_peak_without(t, ONV_BUFFERS_BESIDE_TENSORS, &tensors, NULL, NULL),
                     ONV_OK);
    assert_int_equal(all.bytes, tensors.bytes + LARGE);
    assert_true(b.eager.uses_cublas && !b.eager.uses_cudnn);
}

/* Of batched products, those that sum along a dim of 1 take no workspace from PyTorch 2.13 on: here the gradient of w. */
TEST(outer_products_have_a_kernel_of_their_own)
{
    static const uint32_t releases[] = {ONV_PYTORCH_RELEASE(2, 12), ONV_PYTORCH_RELEASE(2, 13)};
    for (int is_new = 0; is_new < 2; is_new++) {
        onv_train_options options = with(releases[is_new]);
        options.lower.pytorch_version = releases[is_new];
        OWNED_BUILT b;
        model *m = model_read(17, "in x f32[8,1,64]", "weight w f32[8,64,64]", "role w PARAMETER",
                              "y = MatMul(x w) product", "out y f32");
        model_source(m, "layer", "bmm");
        build_with(&b, m, &options);
        const onv_eager_op *op = &b.eager.ops.at[0];
        while (strcmp(op->name, "bmm") != 0) op++;
        assert_int_equal(op->workspace.bytes + op->workspace.kept_bytes, LARGE);
        const onv_eager_workspace *of_grad = &op->in[1].workspace;
        assert_int_equal(of_grad->bytes + of_grad->kept_bytes, is_new ? 0 : LARGE);
    }
}

TEST(older_releases_keep_one_for_each_thread)
{
    model *m = products();
    OWNED_BUILT b;
    build(&b, m, 2006);
    const onv_timeline *t = &b.program.timeline;
    uint32_t kept = 0, last = (uint32_t)t->steps.count - 1;
    for (size_t i = 0; i < t->buffers.count; i++) {
        const onv_buffer *w = &t->buffers.at[i];
        if (w->kind != ONV_BUFFER_WORKSPACE) continue;
        assert_int_equal(w->bytes, LARGE);
        assert_int_equal(w->last, last);
        assert_int_equal(t->steps.at[w->first].phase,
                         kept == 0 ? ONV_PHASE_FORWARD : ONV_PHASE_BACKWARD);
        kept++;
    }
    assert_int_equal(kept, 2);
}

/* The gradient of the bias is summed when both products are done. */
TEST(a_bias_comes_last)
{
    model *m = model_read(17, "in x f32[16,256]", "weight w0 f32[256,256]", "weight w f32[256,128]",
                          "weight b f32[128]", "a = MatMul(x w0) first", "y = Gemm(a w b) gemm",
                          "out y f32");
    OWNED_BUILT b;
    onv_buffer of[8];
    build(&b, m, 2015);
    assert_int_equal(allocated(&b.program.timeline, ONV_PHASE_FORWARD, "addmm", of), 2);
    assert_int_equal(of[1].bytes, 1 << 20);
    assert_string_equal(of[1].label, "cuBLASLt");
    assert_int_equal(allocated(&b.program.timeline, ONV_PHASE_BACKWARD, "addmm", of), 5);
    const uint64_t bytes[] = {16 * 256 * 4, LARGE, 256 * 128 * 4, LARGE, 128 * 4};
    for (uint32_t i = 0; i < 5; i++) assert_int_equal(of[i].bytes, bytes[i]);
}

/* Of so many rows that blocks of threads share a sum: of a bias, of one that is added on its own, and of a factor. Counters of
 * blocks stand in another one. */
TEST(a_sum_over_many_rows_has_two_buffers)
{
    model *m = model_read(17, "in x f32[25088,96]", "weight w f32[96,384]", "weight b f32[384]",
                          "weight c f32[1,384]", "weight d f32[384]", "a = Gemm(x w b) gemm",
                          "e = Add(a c) add", "y = Mul(e d) mul", "out y f32");
    OWNED_BUILT b;
    onv_buffer of[8];
    build(&b, m, 2015);
    static const char *const names[] = {"addmm", "add", "mul"};
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t n = allocated(&b.program.timeline, ONV_PHASE_BACKWARD, names[i], of), found = 0;
        for (uint32_t k = 0; k + 1 < n; k++)
            found += of[k].bytes == 77070336 && of[k + 1].bytes == 12;
        assert_int_equal(found, 1);
    }
}

/* All layers of a module in one call: at the last one, beside the reserve that forward makes. */
TEST(a_recurrent_module_has_one_workspace)
{
    model *m =
        model_read(17, "in x f32[64,8,128]", "weight w f32[1,1024,128]", "weight r f32[1,1024,256]",
                   "y = LSTM(x w r) lstm hidden_size=256", "out y f32");
    OWNED_BUILT b;
    onv_buffer of[8];
    build(&b, m, 2015);
    uint32_t n = allocated(&b.program.timeline, ONV_PHASE_FORWARD, "lstm", of);
    assert_true(n >= 3);
    assert_int_equal(of[n - 2].kind, ONV_BUFFER_WORKSPACE);
    assert_int_equal(of[n - 2].bytes, 12927296);
    assert_false(of[n - 2].is_transient);
    assert_string_equal(of[n - 1].label, "cuDNN's reserve");
    assert_true(b.eager.uses_cudnn);
}

/* Backward runs two kernels. Both copy an input whose batch comes first, the first one the gradient of such a result, too; it
 * makes the gradient of an input that needs none. */
TEST(a_recurrent_module_copies_what_the_batch_leads)
{
    model *m =
        model_read(17, "in x f32[8,64,128]", "weight w f32[1,1024,128]", "weight r f32[1,1024,256]",
                   "weight v f32[256,16]", "ints axis 1", "turned = Transpose(x) t perm=[1,0,2]",
                   "all = LSTM(turned w r) lstm hidden_size=256", "h = Squeeze(all axis) squeeze",
                   "back = Transpose(h) u perm=[1,0,2]", "y = MatMul(back v) mm", "out y f32");
    enum { X = 64 * 8 * 128 * 4, Y = 64 * 8 * 256 * 4, WEIGHTS = 1024 * (128 + 256) * 4 };
    OWNED_BUILT b;
    onv_buffer of[8];
    build(&b, m, 2015);
    onv_timeline *t = &b.program.timeline;
    assert_int_equal(allocated(t, ONV_PHASE_BACKWARD, "lstm", of), 3);
    const uint64_t of_weights[] = {X, WEIGHTS, of[2].bytes};
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(of[i].bytes, of_weights[i]);
    assert_true(of[2].is_transient && of[2].kind == ONV_BUFFER_WORKSPACE);
    t->steps.at[of[0].first].label = "weights";
    assert_int_equal(allocated(t, ONV_PHASE_BACKWARD, "lstm", of), 5);
    const uint64_t of_inputs[] = {of[0].bytes, X, Y, X, of_weights[2]};
    for (uint32_t i = 0; i < 5; i++) assert_int_equal(of[i].bytes, of_inputs[i]);
    assert_int_equal(of[1].last, of[1].first);
    assert_int_equal(of[3].last, of[1].first + 1);
}

/* Once a module has moved, its weights are views of one tensor, and what they were is gone. Others stay apart. */
TEST(weights_of_a_recurrent_module_are_flattened)
{
    enum { WEIGHTS = 1024 * (128 + 256) * 4, OWN = 256 * 16 * 4 };
    for (unsigned has_device = 0; has_device < 2; has_device++) {
        model *m = model_read(17, "in x f32[64,8,128]", "weight w f32[1,1024,128]",
                              "weight r f32[1,1024,256]", "weight v f32[256,16]", "ints axis 1",
                              "all = LSTM(x w r) lstm hidden_size=256",
                              "h = Squeeze(all axis) squeeze", "y = MatMul(h v) mm", "out y f32");
        onv_train_options options = with(2015);
        OWNED_BUILT b;
        if (!has_device) options.lower.cuda.compute_capability = 0;
        build_with(&b, m, &options);
        const onv_timeline *t = &b.program.timeline;
        uint32_t last = (uint32_t)t->steps.count - 1, n_staying = 0;
        uint64_t staying = 0, all = 0;
        for (size_t i = 0; i < t->buffers.count; i++) {
            const onv_buffer *w = &t->buffers.at[i];
            if (w->kind != ONV_BUFFER_WEIGHT) continue;
            all += w->bytes;
            staying += w->last == last ? w->bytes : 0;
            n_staying += w->last == last;
        }
        assert_int_equal(staying, WEIGHTS + OWN);
        assert_int_equal(n_staying, has_device ? 2 : 3);
        assert_int_equal(all, WEIGHTS + OWN);
    }
}

/* One call makes the gradients of all layers' weights, as one tensor. */
TEST(a_recurrent_module_makes_all_gradients_at_once)
{
    model *m = model_read(17, "in x f32[64,8,256]");
    static const char *const weights[] = {"w", "r", "v", "s"};
    for (size_t i = 0; i < 4; i++) model_weight(m, weights[i], "f32[1,1024,256]");
    model_add(m, "ints axis 1", "source rnn lstm", "all = LSTM(x w r) first hidden_size=256",
              "h = Squeeze(all axis) squeeze", "source rnn lstm",
              "y = LSTM(h v s) second hidden_size=256", "out y f32");
    OWNED_BUILT b;
    build(&b, m, 2015);
    const onv_timeline *t = &b.program.timeline;
    uint32_t gradients = 0;
    for (size_t i = 0; i < t->buffers.count; i++) {
        const onv_buffer *of = &t->buffers.at[i];
        if (of->kind == ONV_BUFFER_GRADIENT) assert_int_not_equal(of->bytes, 1024 * 256 * 4);
        gradients += of->kind == ONV_BUFFER_GRADIENT && of->bytes == 4 * 1024 * 256 * 4;
    }
    assert_int_equal(gradients, 3); /* of as many iterations */
}

/* As many bytes for every call of a module as for one, where the file tells calls from layers. */
TEST(calls_of_a_recurrent_module_have_a_workspace_each)
{
    uint64_t least[2] = {UINT64_MAX, UINT64_MAX}, most[2] = {0};
    for (unsigned of_one_call = 0; of_one_call < 2; of_one_call++) {
        model *m =
            model_read(17, "in x f32[64,8,256]", "weight w f32[1,1024,256]",
                       "weight r f32[1,1024,256]", "ints axis 1", "source rnn lstm",
                       "all = LSTM(x w r) first hidden_size=256", "h = Squeeze(all axis) squeeze");
        model_source(m, "rnn", of_one_call ? "lstm" : "lstm_1");
        model_add(m, "y = LSTM(h w r) second hidden_size=256", "out y f32");
        OWNED_BUILT b;
        build(&b, m, 2015);
        const onv_timeline *t = &b.program.timeline;
        for (size_t i = 0; i < t->buffers.count; i++) {
            const onv_buffer *of = &t->buffers.at[i];
            const onv_step *step = &t->steps.at[of->first];
            if (of->kind != ONV_BUFFER_WORKSPACE || step->phase != ONV_PHASE_FORWARD ||
                strcmp(step->label, "lstm") != 0)
                continue;
            if (of->bytes < least[of_one_call]) least[of_one_call] = of->bytes;
            if (of->bytes > most[of_one_call]) most[of_one_call] = of->bytes;
        }
    }
    assert_int_equal(least[0], most[0]);
    assert_true(most[0] > 0 && most[0] < most[1]);
}

/* A branch that is the first to multiply: the handle's workspace stays when it ends. */
TEST(a_branch_may_be_the_first_to_multiply)
{
    model *m =
        model_read(17, "in c bool[]", "in x f32[4,4]", "weight w f32[4,4]", "begin then_branch",
                   "t = MatMul(x w) mm", "out t f32", "end", "begin else_branch",
                   "o = Relu(x) relu", "out o f32", "end", "y = If(c) if", "out y f32");
    OWNED_TRAINER t;
    onv_error err = {0};
    OWNED_EAGER eager;
    onv_timeline timeline;
    onv_lower_options options = with(2006).lower;
    options.inference = true;
    trainer_open_model(&t, m);
    trainer_lower(&t, &options, &eager);
    assert_int_equal(onv_inference_build(&t.model, &eager, &options, &timeline, NULL, &err),
                     ONV_OK);
    uint32_t kept = 0;
    for (size_t i = 0; i < timeline.buffers.count; i++)
        if (timeline.buffers.at[i].kind == ONV_BUFFER_WORKSPACE) {
            assert_int_equal(timeline.buffers.at[i].last, timeline.steps.count - 1);
            kept++;
        }
    assert_int_equal(kept, 1);
    onv_timeline_cleanup(&timeline);
    model_free(m);
}

/* x.transpose(1, 2).contiguous().transpose(1, 2), of which an export has no call between: in order, or not, so that the layer
 * behind it is cuBLASLt's at one end and cuBLAS's at the other. */
TEST(a_call_of_contiguous_may_stand_between_two_moves)
{
    for (int most = 0; most < 2; most++) {
        model *m =
            model_read(17, "in x f32[2,8,256]", "weight w f32[256,64]", "weight b f32[64]",
                       "t = Transpose(x) move perm=[0,2,1]", "u = Transpose(t) back perm=[0,2,1]",
                       "p = MatMul(u w) product", "y = Add(p b) bias", "out y f32");
        onv_lower_options options = with(9000).lower;
        OWNED_TRAINER t;
        OWNED_EAGER eager;
        uint64_t largest = 0;
        options.inference = true;
        options.locals = most;
        trainer_open_model(&t, m);
        trainer_lower(&t, &options, &eager);
        assert_true(eager.differs_most);
        for (size_t i = 0; i < eager.ops.count; i++)
            if (eager.ops.at[i].workspace.bytes > largest)
                largest = eager.ops.at[i].workspace.bytes;
        assert_int_equal(largest, most ? LARGE : UINT64_C(1048576));
        model_free(m);
    }
}

/* The exporter drops a bias of zeros; its notes say that the call had one, which cuBLASLt adds. */
TEST(a_bias_that_the_exporter_dropped_is_added)
{
    static const struct {
        const char *arguments, *shape, *perm; /* of x, and how it is turned before it is read */
        uint64_t bytes;
    } cases[] = {
        {"%x, %p_w", "f32[16,256]", "", LARGE},
        {"%x, %p_w, %p_b", "f32[16,256]", "", UINT64_C(1048576)},
        {"%x, %p_w, None", "f32[16,256]", "", LARGE},
        {"%x, %p_w, %p_b", "f32[2,8,256]", "", UINT64_C(1048576)},
        {"%x, %p_w, %p_b", "f32[2,256,8]", "perm=[0,2,1]",
         LARGE}, /* added in place after the product */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool turns = cases[i].perm[0] != '\0';
        model *m = model_new(17);
        model_input(m, "x", cases[i].shape);
        model_weight(m, "w", "f32[256,256]");
        if (turns) model_node(m, "Transpose", "turn", "x", "t", cases[i].perm);
        model_call(m, "aten.linear.default", cases[i].arguments);
        model_node(m, "MatMul", "linear", turns ? "t w" : "x w", "y", "");
        model_output(m, "y", "f32");
        OWNED_BUILT b;
        build(&b, m, 2015);
        uint64_t largest = 0;
        for (size_t k = 0; k < b.eager.ops.count; k++)
            if (b.eager.ops.at[k].workspace.bytes > largest)
                largest = b.eager.ops.at[k].workspace.bytes;
        assert_int_equal(largest, cases[i].bytes);
    }
}

/* The gradient of a convolution's bias is a sum over pixels, which takes memory where channels come last: what the CUDA build of
 * PyTorch 2.15 allocated for 8,192 pixels of 64 channels. */
TEST(biases_of_images_are_summed)
{
    for (int is_last = 0; is_last < 2; is_last++) {
        model *m =
            model_read(17, "ints image 2 48 64 64", "weight w f32[64,48,1,1]", "weight b f32[64]");
        model_input(m, "x", is_last ? "f32[2,64,64,48]" : "f32[2,48,64,64]");
        model_add(m, is_last ? "t = Transpose(x) turn perm=[0,3,1,2]" : "t = Reshape(x image) open",
                  "y = Conv(t w b) conv", "out y f32");
        OWNED_BUILT b;
        build(&b, m, 2015);
        uint64_t largest = 0;
        for (size_t k = 0; k < b.eager.ops.count; k++) {
            const onv_eager_op *op = &b.eager.ops.at[k];
            if (op->n_in == 3 && op->in[2].workspace.bytes > largest)
                largest = op->in[2].workspace.bytes;
        }
        assert_int_equal(largest, is_last ? 1048576 : 0);
    }
}

/* Of a split's parts, whose gradients have channels last, the joined gradient has, too: a convolution takes it as it is. */
TEST(gradients_of_parts_keep_their_order)
{
    for (int is_last = 0; is_last < 2; is_last++) {
        model *m = model_read(17, "ints image 2 8 16 16", "weight w f32[8,8,1,1]",
                              "weight v f32[4,4,1,1]");
        model_input(m, "x", is_last ? "f32[2,16,16,8]" : "f32[2,8,16,16]");
        model_add(m, is_last ? "t = Transpose(x) turn perm=[0,3,1,2]" : "t = Reshape(x image) open",
                  "y = Conv(t w) conv");
        model_node(m, "Split", "split", "y", "a b", "axis=1");
        model_add(m, "c = Tanh(a) tanh", "p = Mul(c b) gate", "z = Conv(p v) next", "out z f32");
        OWNED_BUILT b;
        build(&b, m, 2015);
        size_t k = 0;
        while (b.eager.ops.at[k].aten != ONV_ATEN_conv) k++;
        assert_int_equal(b.eager.ops.at[k].grad_copy_bytes, 0);
    }
}

/* Tokens that are images for a convolution have their channels last, and so has what it gives: rows of tokens again are a
 * view of it, and not of other images. */
TEST(images_of_tokens_stay_so)
{
    for (int is_last = 0; is_last < 2; is_last++) {
        OWNED_PASS p;
        model *m = model_read(17, "ints image 2 8 4 4", "ints line 2 8 16", "ints rows 32 8");
        model_input(m, "x", is_last ? "f32[2,16,8]" : "f32[2,8,16]");
        if (is_last) model_node(m, "Transpose", "turn", "x", "t", "perm=[0,2,1]");
        model_node(m, "Reshape", "open", is_last ? "t image" : "x image", "i", "");
        model_add(m, "weight w f32[8,8,1,1]", "c = Conv(i w) conv", "l = Reshape(c line) close",
                  "b = Transpose(l) turn_back perm=[0,2,1]", "r = Reshape(b rows) flatten",
                  "y = Relu(r) relu", "out y f32");
        pass_run(&p, m, NULL);
        assert_int_equal(pass_find(&p, "r") == NULL, is_last);
    }
}

/* Images of all tokens but the first lie apart: cuDNN's convolution copies them, in their order. */
TEST(images_of_a_part_of_the_tokens_are_copied)
{
    for (int is_part = 0; is_part < 2; is_part++) {
        model *m = model_read(17, is_part ? "in x f32[2,17,8]" : "in x f32[2,16,8]", "ints first 1",
                              "ints end 17", "ints axis 1", "ints image 2 8 4 4",
                              "weight w f32[16,8,3,3]");
        if (is_part) model_add(m, "s = Slice(x first end axis) part");
        model_node(m, "Transpose", "turn", is_part ? "s" : "x", "t", "perm=[0,2,1]");
        model_add(m, "i = Reshape(t image) image", "y = Conv(i w) conv pads=[1,1,1,1]",
                  "out y f32");
        onv_lower_options options = with(9000).lower;
        OWNED_TRAINER t;
        OWNED_EAGER eager;
        trainer_open_model(&t, m);
        trainer_lower(&t, &options, &eager);
        uint64_t kernel = 16 * 8 * 9 * sizeof(float), images = 2 * 8 * 16 * sizeof(float);
        for (size_t i = 0; i < eager.ops.count; i++)
            if (strcmp(eager.ops.at[i].name, "conv") == 0)
                assert_int_equal(eager.ops.at[i].forward_temp_bytes,
                                 kernel + (is_part ? images : 0));
        model_free(m);
    }
}

/* torch/nn/modules/module.py: filters one after the other, the old one gone when the new one is there; then the batch. */
TEST(filters_are_laid_out_anew_with_channels_last)
{
    for (int turns = 0; turns < 2; turns++) {
        onv_lower_options options = {.inference = true, .cuda = onv_cuda_library_defaults()};
        options.cuda.channels_last = turns;
        OWNED_PASS p;
        model *m =
            model_read(17, "in x f32[2,8,16,16]", "weight w1 f32[16,8,3,3]", "weight b1 f32[16]",
                       "weight w2 f32[4,16,1,1]", "a = Conv(x w1 b1) first pads=[1,1,1,1]",
                       "y = Conv(a w2) second", "out y f32");
        pass_run(&p, m, &options);
        uint32_t steps = 0, old = 0;
        while (steps < p.t.steps.count && p.t.steps.at[steps].label != NULL &&
               strcmp(p.t.steps.at[steps].label, "channels_last") == 0)
            steps++;
        for (size_t i = 0; i < p.t.buffers.count; i++) {
            const onv_buffer *b = &p.t.buffers.at[i];
            old += b->first == 0 && b->last < steps;
            if (b->kind == ONV_BUFFER_WEIGHT && b->first > 0)
                assert_int_equal(b->bytes, 4 * 16 * sizeof(float)); /* w2, in the second step */
        }
        assert_int_equal(steps, turns ? 3 : 0); /* two filters and the images, not the bias */
        assert_int_equal(old, turns ? 2 : 0);   /* the third is made in the last of these steps */
    }
}

/* Norms of columns, as ConvNeXt V2 has them of its pixels, are reductions like sums; those of rows need no buffer. */
TEST(norms_of_columns_share_a_buffer)
{
    for (int is_row = 0; is_row < 2; is_row++) {
        model *m =
            model_read(17, "in x f32[8,56,56,384]", "weight w f32[384]", "a = Mul(x w) gate",
                       is_row ? "n = ReduceL2(a) norm axes=[3]" : "n = ReduceL2(a) norm axes=[1,2]",
                       "y = Mul(a n) scaled", "out y f32");
        OWNED_BUILT b;
        onv_buffer of[8];
        build(&b, m, 2015);
        uint32_t n = allocated(&b.program.timeline, ONV_PHASE_FORWARD, "vector_norm_2", of);
        assert_int_equal(n, is_row ? 1 : 3);
        if (!is_row) assert_int_equal(of[1].bytes, 77070336);
        if (!is_row) assert_int_equal(of[2].bytes, 96);
    }
}

/* Where channels come last, the blocks of threads that add up an image's pixels share a sum. */
TEST(pixels_are_added_up_in_a_buffer_with_channels_last)
{
    for (int turns = 0; turns < 2; turns++) {
        model *m =
            model_read(17, "in x f32[8,32,112,112]", "weight w f32[8,32,1,1]", "a = Mul(x w) gate",
                       "y = ReduceMean(a) mean axes=[2,3]", "out y f32");
        onv_train_options options = with(2015);
        options.lower.cuda.channels_last = turns;
        OWNED_BUILT b;
        onv_buffer of[8];
        build_with(&b, m, &options);
        uint32_t forward = allocated(&b.program.timeline, ONV_PHASE_FORWARD, "mean", of);
        assert_int_equal(forward, turns ? 3 : 1);
        if (turns) assert_int_equal(of[1].bytes, 25690112); /* as measured, for these sizes */
        if (turns) assert_int_equal(of[2].bytes, 8);
        uint32_t parts = 0;
        for (size_t i = 0; i < b.program.timeline.buffers.count; i++) {
            const onv_buffer *sum = &b.program.timeline.buffers.at[i];
            parts += sum->bytes == 25690112 && sum->is_transient &&
                     b.program.timeline.steps.at[sum->first].phase == ONV_PHASE_BACKWARD;
        }
        assert_int_equal(parts, turns ? 3 : 0); /* the gate's gradient, in three iterations */
    }
}
