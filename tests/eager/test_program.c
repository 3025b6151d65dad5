/* Training programs: identities of sizes, lifetimes counted by hand. */
#include "base/heap.h"
#include "eager/trainer.h"
#include "lower/lower.h"
#include "support/test.h"

static onv_train_options with(const char *optimizer)
{
    onv_train_options options = {.optimizer = onv_optimizer_find(optimizer)};
    assert_non_null(options.optimizer);
    return options;
}

/* --- Sizes ------------------------------------------------------------------------------------- */

TEST(optimizers_multiply_the_parameters)
{
    static const struct {
        const char *name;
        uint64_t factor; /* parameters, gradients and state, of the parameters */
    } cases[] = {{"sgd", 2},  {"momentum", 3}, {"nesterov", 3}, {"adam", 4}, {"adamw", 4},
                 {"lamb", 4}, {"rmsprop", 3},  {"adagrad", 3},  {"lion", 3}};
    OWNED_TRAINER t;
    trainer_open_sample(&t, "resnet18-train", 2);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        onv_train_options options = with(cases[i].name);
        onv_training r = trainer_run(&t, &options);
        assert_int_equal(r.figures.trained_elems, 11689512);
        assert_int_equal(r.figures.parameter_bytes, 4 * 11689512);
        assert_int_equal(r.figures.parameter_bytes + r.figures.gradient_bytes +
                             r.figures.optimizer_bytes,
                         cases[i].factor * r.figures.parameter_bytes);
        assert_true(r.figures.peak_bytes > cases[i].factor * r.figures.parameter_bytes);
        assert_true(r.figures.allocated_peak_bytes >= r.figures.peak_bytes);
        assert_true(r.figures.reserved_peak_bytes >= r.figures.allocated_peak_bytes);
    }
}

TEST(compact_optimizers_count_blocks_and_factors)
{
    const int64_t dims[] = {64, 128};
    uint64_t bytes[ONV_MAX_STATES];
    onv_parameter large = {8192, 32768, dims, 2}, small = {100, 400, dims, 1};
    const onv_optimizer *eight = onv_optimizer_find("adam8bit");
    assert_int_equal(eight->states(&large, bytes), 4);
    assert_int_equal(bytes[0] + bytes[1] + bytes[2] + bytes[3], 2 * 8192 + 2 * 32 * 4);
    assert_int_equal(eight->states(&small, bytes), 2);
    assert_int_equal(bytes[0] + bytes[1], 800);
    const onv_optimizer *factor = onv_optimizer_find("adafactor");
    assert_int_equal(factor->states(&large, bytes), 2);
    assert_int_equal(bytes[0] + bytes[1], (64 + 128) * 4);
    assert_int_equal(factor->states(&small, bytes), 1);
    assert_null(onv_optimizer_find("adamax"));
}

/* Three convolutions on 682 x 700: intermediates and their gradients, ReLUs in place. */
TEST(a_chain_holds_its_intermediates_twice)
{
    OWNED_MODEL m = model_read(17, "in x f32[1,3,682,700]", "weight w1 f32[64,3,3,3]",
                               "weight w2 f32[64,64,3,3]", "weight w3 f32[128,64,3,3]",
                               "a = Conv(x w1) conv1 pads=[1,1,1,1]", "b = Relu(a) relu1",
                               "c = Conv(b w2) conv2 pads=[1,1,1,1]", "d = Relu(c) relu2",
                               "e = MaxPool(d) pool kernel_shape=[2,2] strides=[2,2]",
                               "y = Conv(e w3) conv3 pads=[1,1,1,1]", "out y f32");
    OWNED_TRAINER t;
    trainer_open_model(&t, m);
    OWNED_EAGER eager;
    onv_lower_options options = {.loss = ONV_LOSS_NONE};
    trainer_lower(&t, &options, &eager);
    uint64_t intermediates = 0;
    for (size_t i = 0; i < eager.storages.count; i++)
        if (eager.storages.at[i].kind == ONV_STORAGE_ACTIVATION)
            intermediates += eager.storages.at[i].bytes;
    assert_int_equal(2 * intermediates, 672179200);
}

/* --- Lifetimes --------------------------------------------------------------------------------- */

/* x [16, 256] (16384 bytes), two square products, mean squared error, plain SGD.
 *
 *   always          x and targets 32768, parameters 2 x 262144; loss of the iteration before 16384
 *   forward         a, then y with y of the iteration before
 *   the peak        backward of the second product: its gradient g, a, y and the targets, and the
 *                   two gradients that it makes, one of them a .grad
 *   later           the backward of the first product: both .grad, g and x, no a any more */
TEST(a_small_net_by_hand)
{
    model *m =
        model_read(17, "in x f32[16,256]", "weight w1 f32[256,256]", "weight w2 f32[256,256]",
                   "a = MatMul(x w1) first", "y = MatMul(a w2) second", "out y f32");
    OWNED_TRAINER t;
    trainer_open_model(&t, m);
    onv_train_options options = with("sgd");
    options.lower.loss = ONV_LOSS_MSE;
    onv_training r = trainer_run(&t, &options);
    const uint64_t row = 16384, w = 262144, loss = row;
    uint64_t always = 2 * row + 2 * w;
    /* y is the caller's, the loss too. The first product: gradient of a, y, and both weights'. */
    assert_int_equal(r.figures.phase_peak_bytes[ONV_PHASE_BACKWARD],
                     always + 2 * w + row /* y */ + row /* gradient of a */ + loss);
    assert_string_equal(r.figures.peak_label, "mm");
    assert_int_equal(r.figures.phase_peak_bytes[ONV_PHASE_OPTIMIZER], always + 2 * w + row + loss);
    /* The loss: a, y, the squared differences; the gradients are gone, the old loss is not, in whose
     * storage CUDA leaves squared differences too. */
    assert_int_equal(r.figures.phase_peak_bytes[ONV_PHASE_LOSS], always + 3 * row + 2 * loss);
    assert_int_equal(r.figures.saved_activation_bytes, 4 * row); /* x, a, y, targets */
    options.keep_grads = true;
    r = trainer_run(&t, &options);
    assert_int_equal(r.figures.phase_peak_bytes[ONV_PHASE_LOSS],
                     always + 3 * row + 2 * loss + 2 * w);
    model_free(m);
}

/* Two products of one tensor, and what the second reads: an output that operations read has no loss, the others
 * one each, and the losses are added up. */
/* w1 is in front of a rounding to integers: it gets no gradient and no state, and what its side keeps goes
 * with the forward pass, at whose end the peak is. An output without a loss keeps it. */
TEST(what_leads_to_no_loss_goes_with_the_forward_pass)
{
    enum { W = 64 * 64 * 4, T = 1024 * 64 * 4 };
    for (int is_output = 0; is_output < 2; is_output++) {
        model *m =
            model_read(17, "in x f32[1024,64]", "weight w1 f32[64,64]", "weight w2 f32[64,64]",
                       "a = MatMul(x w1) before", "b = Sigmoid(a) sigmoid", "c = Tanh(b) tanh");
        model_node(m, "Cast", "to integers", "c", "d", "to=7");
        model_add(m, "e = Cast(d) back to=1", "y = MatMul(e w2) after", "out y f32");
        if (is_output) model_output(m, "c", "f32");
        OWNED_TRAINER t;
        trainer_open_model(&t, m);
        onv_train_options options = with("momentum");
        options.lower.losses = is_output ? "y=mse,c=none" : NULL;
        options.lower.loss = ONV_LOSS_MSE;
        onv_training r = trainer_run(&t, &options);
        assert_int_equal(r.figures.parameter_bytes, 2 * W);
        assert_int_equal(r.figures.gradient_bytes, W);
        assert_int_equal(r.figures.optimizer_bytes, W);
        /* e for w2, y and the targets for the loss; the batch, b and c beside c as an output. */
        assert_int_equal(r.figures.saved_activation_bytes, (is_output ? 6 : 3) * T);
        model_free(m);
    }
}

TEST(outputs_have_a_loss_each)
{
    const uint64_t x = 16 * 64 * 4, y = 16 * 10 * 4, ids = 16 * 8, weight = 4;
    const uint64_t ce = y + ids + weight, mse = 2 * y; /* log-probabilities; output and targets */
    static const char *const named = "classes=mse", *const other = "box=none,cross-entropy",
                             *const wrong = "boxes=mse";
    const struct {
        onv_loss loss;
        const char *losses, *name; /* NULL: it is refused */
        uint64_t kept;
        bool told;
    } cases[] = {{ONV_LOSS_AUTO, NULL, "cross-entropy", 2 * ce, true},
                 {ONV_LOSS_MSE, "mse", "mse", 2 * mse, true},
                 {ONV_LOSS_NONE, named, "mse", mse, true},
                 {ONV_LOSS_CROSS_ENTROPY, other, "cross-entropy", ce, true},
                 {ONV_LOSS_NONE, wrong, NULL, 0, false},
                 {ONV_LOSS_NONE, "none", "none", 0, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        OWNED_MODEL m =
            model_read(17, "in x f32[16,64]", "weight w f32[64,64]", "weight w1 f32[64,10]",
                       "weight w2 f32[64,10]", "hidden = MatMul(x w) body",
                       "classes = MatMul(hidden w1) first", "box = MatMul(hidden w2) second",
                       "out hidden f32", "out classes f32", "out box f32");
        OWNED_TRAINER t;
        trainer_open_model(&t, m);
        onv_lower_options options = {
            .loss = cases[i].loss, .losses = cases[i].losses, .reports = true};
        onv_error err = {0};
        onv_eager eager;
        onv_status status = onv_eager_lower(&t.model, &t.live, t.is_host, &options, &eager, &err);
        if (cases[i].name == NULL) {
            assert_int_equal(status, ONV_ERR_USAGE);
            assert_non_null(strstr(err.message, "the first one is 'hidden'"));
        } else {
            uint64_t kept;
            assert_int_equal(status, ONV_OK);
            assert_string_equal(eager.loss_name, cases[i].name);
            assert_int_equal(onv_eager_saved(&t.model, &eager, &kept, NULL, &err), ONV_OK);
            assert_int_equal(kept, x + x + cases[i].kept);
            assert_int_equal(t.model.diags.count > 0, cases[i].told);
            onv_eager_cleanup(&eager);
        }
    }
}

/* Every output is in the report, those of integers and constants too. */
TEST(every_output_is_told)
{
    static const struct {
        const char *extra[3]; /* operator, inputs, output */
        onv_severity severity;
        const char *text;
    } cases[] = {
        {{"ArgMax", "y", "ids"},
         ONV_NOTE,
         "2 outputs and their losses: 'y' cross-entropy, 'ids' none (no gradient reaches it);"},
        {{"Identity", "table", "names"},
         ONV_NOTE,
         "2 outputs and their losses: 'y' cross-entropy, 'names' none (no gradient reaches it);"},
        {{"Neg", "x", "mirror"},
         ONV_NOTE,
         "2 outputs and their losses: 'y' cross-entropy, 'mirror' none (no gradient reaches it);"},
        {{NULL, NULL, "h"},
         ONV_WARNING,
         "2 outputs and their losses: 'y' cross-entropy, 'h' none (other operations read it);"},
        {{"ReduceSum", "h one", "sum"},
         ONV_WARNING,
         "2 outputs and their losses: 'sum' none (it is a loss), 'y' none (there is a loss "
         "already);"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int64_t one[] = {0, 1};
        OWNED_MODEL m =
            model_read(17, "in x f32[16,64]", "weight w f32[64,64]", "weight w1 f32[64,10]");
        model_ints(m, "table", 2, one);
        model_ints(m, "one", 2, one);
        model_add(m, "h = MatMul(x w) body", "y = MatMul(h w1) head");
        if (cases[i].extra[0] != NULL)
            model_node(m, cases[i].extra[0], "extra", cases[i].extra[1], cases[i].extra[2],
                       i == 4 ? "keepdims=0" : "");
        model_output(m, cases[i].extra[2], i == 0 || i == 1 ? "i64" : "f32");
        model_output(m, "y", "f32");
        OWNED_TRAINER t;
        trainer_open_model(&t, m);
        onv_lower_options options = {.reports = true};
        OWNED_EAGER eager;
        trainer_lower(&t, &options, &eager);
        const onv_diag *diag = t.model.diags.count > 0 ? &t.model.diags.at[0] : NULL;
        if (diag == NULL || strcmp(diag->code, "losses") != 0 ||
            diag->severity != cases[i].severity || strstr(diag->message, cases[i].text) == NULL)
            fail_msg("case %zu: %s", i, diag != NULL ? diag->message : "nothing");
    }
}

/* Logits of which the network draws what it goes on with have a loss of their own: no gradient comes back through the draw. */
TEST(an_output_that_no_gradient_reaches_has_a_loss)
{
    static const struct {
        const char *second, *text;
    } cases[] = {{"drawn", "2 outputs and their losses: 'y' cross-entropy, 'z' cross-entropy;"},
                 {"mixed", "'z' cross-entropy, 'y' none (other operations read it);"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char operands[32];
        snprintf(operands, sizeof operands, "%s w", cases[i].second);
        OWNED_MODEL m =
            model_read(17, "in x f32[16,64]", "weight w1 f32[64,10]", "weight table f32[10,10]",
                       "weight w f32[10,10]", "y = MatMul(x w1) head",
                       "ids = ArgMax(y) draw axis=1 keepdims=0",
                       "drawn = Gather(table ids) look_up", "mixed = Add(drawn y) mix");
        model_node(m, "MatMul", "second", operands, "z", "");
        model_add(m, "out y f32", "out z f32");
        OWNED_TRAINER t;
        trainer_open_model(&t, m);
        onv_lower_options options = {.reports = true};
        OWNED_EAGER eager;
        trainer_lower(&t, &options, &eager);
        bool is_told = false;
        for (size_t k = 0; k < t.model.diags.count; k++)
            is_told |= strstr(t.model.diags.at[k].message, cases[i].text) != NULL;
        assert_true(is_told);
    }
}

/* What each implementation allocates beside states (as the CUDA build of PyTorch 2.15 asked for it over a
 * substitute for the driver; Lion and LAMB are not of torch.optim), and where gradients go. */
TEST(steps_and_zeroing_are_options)
{
    static const struct {
        const char *name;
        onv_optimizer_impl impl;
        bool exists;
        bool decays;
        uint32_t lists, each;
        bool keeps;
        uint32_t counter_bytes;
    } cases[] = {{"adamw", ONV_IMPL_DEFAULT, true, false, 1, 0, false, 0},
                 {"adamw", ONV_IMPL_FOREACH, true, false, 1, 0, false, 0},
                 {"adamw", ONV_IMPL_FUSED, true, false, 0, 0, false, 4},
                 {"adamw", ONV_IMPL_FOR_LOOP, true, false, 0, 2, true, 0},
                 {"sgd", ONV_IMPL_DEFAULT, true, true, 1, 0, false, 0},
                 {"sgd", ONV_IMPL_FOR_LOOP, true, true, 0, 1, false, 0},
                 {"momentum", ONV_IMPL_FUSED, true, true, 0, 0, false, 0},
                 {"momentum", ONV_IMPL_FOR_LOOP, true, false, 0, 0, false, 0},
                 {"nesterov", ONV_IMPL_DEFAULT, true, false, 0, 0, false, 0},
                 {"nesterov", ONV_IMPL_FOR_LOOP, true, true, 0, 2, false, 0},
                 {"rmsprop", ONV_IMPL_FUSED, false, false, 0, 0, false, 0},
                 {"rmsprop", ONV_IMPL_FOR_LOOP, true, false, 0, 1, true, 0},
                 {"adagrad", ONV_IMPL_DEFAULT, true, false, 2, 0, false, 0},
                 {"adagrad", ONV_IMPL_FOR_LOOP, true, false, 0, 1, true, 0},
                 {"lion", ONV_IMPL_FOREACH, false, false, 0, 1, false, 0},
                 {"lamb", ONV_IMPL_FOR_LOOP, true, false, 0, 2, false, 0},
                 {"adafactor", ONV_IMPL_DEFAULT, true, false, 0, 1, true, 0},
                 {"adafactor", ONV_IMPL_FUSED, false, false, 0, 0, false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        onv_optimizer_temps temps;
        const onv_optimizer *optimizer = onv_optimizer_find(cases[i].name);
        assert_int_equal(onv_optimizer_temps_of(optimizer, cases[i].impl, cases[i].decays, &temps),
                         cases[i].exists);
        if (!cases[i].exists) continue;
        assert_int_equal(temps.lists, cases[i].lists);
        assert_int_equal(temps.each, cases[i].each);
        assert_int_equal(temps.keeps, cases[i].keeps);
        assert_int_equal(temps.counter_bytes, cases[i].counter_bytes);
    }
    OWNED_TRAINER t;
    trainer_open_sample(&t, "vit-small-train", 1);
    onv_train_options options = with("adamw");
    onv_training base = trainer_run(&t, &options);
    options.impl = ONV_IMPL_FUSED;
    onv_training fused = trainer_run(&t, &options);
    uint64_t step = base.figures.phase_peak_bytes[ONV_PHASE_OPTIMIZER];
    /* The list is as large as all gradients. */
    assert_int_equal(step - fused.figures.phase_peak_bytes[ONV_PHASE_OPTIMIZER] +
                         (fused.figures.optimizer_bytes - base.figures.optimizer_bytes),
                     base.figures.gradient_bytes);
    options = with("adamw");
    options.zero_grad_late = true; /* the gradients of the step before stand beside activations */
    onv_training late = trainer_run(&t, &options);
    assert_int_equal(late.figures.phase_peak_bytes[ONV_PHASE_FORWARD],
                     base.figures.phase_peak_bytes[ONV_PHASE_FORWARD] +
                         base.figures.gradient_bytes);
}

TEST(options_move_memory)
{
    OWNED_TRAINER t;
    trainer_open_sample(&t, "resnet18-train", 4);
    onv_train_options plain = with("adamw"), options = plain;
    onv_training base = trainer_run(&t, &plain);

    options.lower.amp = ONV_FLOAT16;
    onv_training amp = trainer_run(&t, &options);
    assert_int_equal(amp.figures.optimizer_bytes,
                     base.figures.optimizer_bytes); /* master weights */
    assert_true(amp.figures.saved_activation_bytes < base.figures.saved_activation_bytes);

    const char *const all[] = {"*"}, *const body[] = {"layer*", "conv1*", "bn1*"};
    options = plain;
    options.lower.freeze = body;
    options.lower.n_freeze = 3;
    onv_training head = trainer_run(&t, &options);
    assert_int_equal(head.figures.trained_elems, 513000); /* fc */
    assert_int_equal(head.figures.parameter_bytes, base.figures.parameter_bytes);
    assert_true(head.figures.saved_activation_bytes < 100000);
    options.lower.freeze = all;
    options.lower.n_freeze = 1;
    assert_int_equal(trainer_run(&t, &options).figures.gradient_bytes, 0);

    options = plain;
    options.accumulate = 4;
    onv_training accumulated = trainer_run(&t, &options);
    assert_true(accumulated.figures.peak_bytes >
                base.figures.peak_bytes - base.figures.gradient_bytes);
    assert_int_equal(accumulated.figures.gradient_bytes, base.figures.gradient_bytes);

    uint64_t last = base.figures.peak_bytes;
    for (uint32_t stage = 1; stage <= 3; stage++) {
        options = plain;
        options.zero_stage = stage;
        options.world = 8;
        onv_training shared = trainer_run(&t, &options);
        assert_true(shared.figures.optimizer_bytes < base.figures.optimizer_bytes / 7);
        assert_true(shared.figures.peak_bytes < last);
        last = shared.figures.peak_bytes;
    }
}

/* The first buffer of a kind whose label ends so; UINT32_MAX: there is none. */
static uint32_t first_of(const onv_timeline *timeline, onv_buffer_kind kind, const char *end)
{
    size_t n = strlen(end);
    for (uint32_t i = 0; i < timeline->buffers.count; i++) {
        const onv_buffer *b = &timeline->buffers.at[i];
        size_t length = b->label != NULL ? strlen(b->label) : 0;
        if (b->kind == kind && length >= n && strcmp(b->label + length - n, end) == 0) return i;
    }
    return UINT32_MAX;
}

/* What the reserved figure depends on: the order in which PyTorch makes tensors. */
TEST(tensors_are_made_in_pytorchs_order)
{
    for (int vit = 0; vit < 2; vit++) {
        OWNED_TRAINER t;
        OWNED_EAGER eager;
        onv_train_program program;
        onv_error err = {0};
        trainer_open_sample(&t, vit ? "vit-small-train" : "resnet18-train", 2);
        onv_train_options options = with("adagrad");
        options.lower.cuda = onv_cuda_library_defaults();
        trainer_lower(&t, &options.lower, &eager);
        assert_int_equal(onv_train_program_build(&t.model, &eager, &options, &program, &err),
                         ONV_OK);
        const onv_timeline *timeline = &program.timeline;
        uint32_t states = first_of(timeline, ONV_BUFFER_STATE, "");
        assert_true(states < first_of(timeline, ONV_BUFFER_ACTIVATION, ""));
        if (vit) { /* a mask before what is dropped */
            uint32_t mask = first_of(timeline, ONV_BUFFER_ACTIVATION, "mask");
            assert_true(mask < first_of(timeline, ONV_BUFFER_ACTIVATION, "/dropout/Dropout"));
        }
        onv_train_program_cleanup(&program);
    }
}

/* From the second iteration on all are equal: a longer run has the same peak. */
TEST(iterations_are_periodic)
{
    OWNED_TRAINER t;
    trainer_open_sample(&t, "vit-small-train", 3);
    onv_train_options options = with("adam");
    onv_training three = trainer_run(&t, &options);
    options.iterations = 5;
    onv_training five = trainer_run(&t, &options);
    assert_int_equal(three.figures.peak_bytes, five.figures.peak_bytes);
    for (int phase = 0; phase < ONV_N_PHASES; phase++)
        assert_int_equal(three.figures.phase_peak_bytes[phase],
                         five.figures.phase_peak_bytes[phase]);
}

/* --- Failing allocations ----------------------------------------------------------------------- */

TEST(every_allocation_may_fail)
{
#ifdef ONV_FAULT_INJECTION
    trainer t;
    trainer_open_sample(&t, "vit-small-train", 2);
    onv_training_options options = {.train = with("adam")};
    options.train.lower.amp = ONV_FLOAT16;
    options.checkpoint = "sqrt,segments=3,blocks";
    onv_status status = ONV_ERR_MEMORY;
    for (long n = 0; status != ONV_OK && n < 10000; n++) {
        onv_error err = {0};
        onv_training result;
        t.model.arena.failed = false; /* it stays so where memory was short before */
        onv_heap_fail_after(n);
        status = onv_training_compute(&t.model, &t.live, &options, &result, &err);
        onv_heap_fail_after(-1);
        assert_true(status == ONV_OK || status == ONV_ERR_MEMORY);
        assert_int_equal(err.code, status);
    }
    assert_int_equal(status, ONV_OK);
    trainer_close(&t);
#else
    skip();
#endif
}
