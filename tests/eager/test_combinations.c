/* Options of training together, with checkpoints: what must hold whatever else is set. */
#include "eager/trainer.h"
#include "support/test.h"

static onv_training run(trainer *t, const onv_train_options *train, const char *plans)
{
    onv_error err = {0};
    onv_training result;
    onv_training_options options = {.train = *train, .checkpoint = plans};
    if (onv_training_compute(&t->model, &t->live, &options, &result, &err) != ONV_OK)
        fail_msg("%s (%s)", err.message, err.node);
    return result;
}

static void expect_same(const onv_training_figures *a, const onv_training_figures *b)
{
    assert_int_equal(a->peak_bytes, b->peak_bytes);
    assert_int_equal(a->peak_phase, b->peak_phase);
    assert_int_equal(a->peak_node.index, b->peak_node.index);
    assert_int_equal(a->allocated_peak_bytes, b->allocated_peak_bytes);
    assert_int_equal(a->reserved_peak_bytes, b->reserved_peak_bytes);
    assert_int_equal(a->saved_activation_bytes, b->saved_activation_bytes);
    assert_int_equal(a->buffer_bytes, b->buffer_bytes);
    assert_int_equal(a->input_bytes, b->input_bytes);
    assert_int_equal(a->forward_macs, b->forward_macs);
    for (int phase = 0; phase < ONV_N_PHASES; phase++)
        assert_int_equal(a->phase_peak_bytes[phase], b->phase_peak_bytes[phase]);
}

/* What a plan cannot change. */
static void expect_same_training(const onv_training_figures *a, const onv_training_figures *b)
{
    assert_int_equal(a->parameter_bytes, b->parameter_bytes);
    assert_int_equal(a->gradient_bytes, b->gradient_bytes);
    assert_int_equal(a->optimizer_bytes, b->optimizer_bytes);
    assert_int_equal(a->trained_elems, b->trained_elems);
    assert_int_equal(a->buffer_bytes, b->buffer_bytes);
    assert_int_equal(a->input_bytes, b->input_bytes);
    assert_int_equal(a->forward_macs, b->forward_macs);
}

/* Of plans that are measured in sums phases are not known: they have a peak, and what is always there. */
static void expect_plan_bounds(const onv_training_figures *r)
{
    uint64_t always = r->parameter_bytes + r->optimizer_bytes + r->buffer_bytes + r->input_bytes;
    assert_true(r->peak_bytes >= always + r->gradient_bytes);
    assert_true(r->allocated_peak_bytes >= r->peak_bytes);
    assert_true(r->reserved_peak_bytes >= r->allocated_peak_bytes);
}

/* In every phase that has steps there are parameters, states, statistics and the batch; in the optimizer's, all
 * gradients too. */
static void expect_lower_bounds(const onv_training_figures *r)
{
    uint64_t always = r->parameter_bytes + r->optimizer_bytes + r->buffer_bytes + r->input_bytes;
    for (int phase = 0; phase < ONV_N_PHASES; phase++) {
        bool has_steps =
            r->trained_elems > 0 || (phase != ONV_PHASE_BACKWARD && phase != ONV_PHASE_LOSS);
        if (has_steps)
            assert_true(r->phase_peak_bytes[phase] >= always);
        else
            assert_int_equal(r->phase_peak_bytes[phase], 0);
    }
    assert_true(r->phase_peak_bytes[ONV_PHASE_OPTIMIZER] >= always + r->gradient_bytes);
    assert_true(r->allocated_peak_bytes >= r->peak_bytes);
    assert_true(r->reserved_peak_bytes >= r->allocated_peak_bytes);
    assert_int_equal(r->phase_peak_bytes[r->peak_phase], r->peak_bytes);
}

static void check(trainer *t, const onv_train_options *options)
{
    onv_training base = run(t, options, NULL);
    bool trains =
        base.figures.trained_elems > 0; /* without there is nothing to cut into segments */
    onv_training r = run(
        t, options, trains ? "none,sqrt,every=2,blocks,segments=3" : "none,sqrt,every=2,blocks");
    assert_int_equal(r.n_plans, trains ? 5 : 4);
    assert_int_equal(r.chosen, ONV_NO_PLAN);
    expect_same(&r.figures, &base.figures);
    expect_lower_bounds(&r.figures);
    expect_same(&r.plans[0].figures, &base.figures);
    assert_int_equal(r.plans[0].does.recomputed_macs, 0);
    for (uint32_t i = 0; i < r.n_plans; i++) {
        const onv_training_plan *plan = &r.plans[i];
        expect_same_training(&plan->figures, &base.figures);
        expect_plan_bounds(&plan->figures);
        /* Plans without nesting run nothing more than once again. */
        assert_true(plan->does.recomputed_macs <= base.figures.forward_macs);
        if (!trains) assert_int_equal(plan->does.recomputed_macs, 0);
    }
}

/* All values of the options meet in pairs, most in larger groups too. */
TEST(plans_hold_with_all_options)
{
    static const char *const samples[] = {"resnet18-train", "vit-small-train", "unet-train"};
    static const char *const optimizers[] = {"sgd", "adamw", "adafactor"};
    static const char *const all[] = {"*"};
    static const char *const some[3][3] = {{"*.0.*", "conv1*", "*bias"},
                                           {"*.0.*", "*encoder_layer_1*", "*bias"},
                                           {"*.0.*", "*weight", "*bias"}};
    for (uint32_t s = 0; s < 3; s++) {
        OWNED_TRAINER t;
        trainer_open_sample(&t, samples[s], 2);
        for (uint32_t i = 0; i < 24; i++) {
            onv_train_options options = {.optimizer = onv_optimizer_find(optimizers[(i + s) % 3]),
                                         .zero_stage = i % 4,
                                         .world = i % 4 > 0 ? 1 + i % 3 * 3 : 0,
                                         .accumulate = i / 4 % 2 * 2 + 1,
                                         .zero_grad_late = i % 5 == 0,
                                         .keep_grads = i % 5 == 1};
            options.lower.amp = (i + i / 4) % 2 == 0 ? ONV_UNDEFINED : ONV_BFLOAT16;
            options.lower.freeze = i % 7 == 6 ? all : some[s];
            options.lower.n_freeze = i % 7 == 6 ? 1 : i % 3 == 0 ? 3 : 0;
            check(&t, &options);
        }
    }
}

/* Shared among one device nothing is shared; more passes before a step change nothing from the
 * second on; where nothing is trained, plans have nothing to do. */
TEST(options_that_change_nothing)
{
    OWNED_TRAINER t;
    trainer_open_sample(&t, "vit-small-train", 2);
    const onv_train_options plain = {.optimizer = onv_optimizer_find("adamw")};
    onv_train_options options = plain;
    onv_training base = run(&t, &plain, "blocks"), other;

    options.zero_stage = 1;
    options.world = 1;
    other = run(&t, &options, "blocks");
    expect_same(&other.figures, &base.figures);
    expect_same_training(&other.figures, &base.figures);

    options = plain;
    options.accumulate = 2;
    base = run(&t, &options, "blocks");
    options.accumulate = 5;
    other = run(&t, &options, "blocks");
    expect_same(&other.figures, &base.figures);
}

/* Each stage of ZeRO shares out one thing more, with checkpoints too: sizes by hand. */
TEST(shards_by_hand)
{
    OWNED_TRAINER t;
    trainer_open_sample(&t, "resnet18-train", 2);
    onv_train_options options = {.optimizer = onv_optimizer_find("adamw")};
    onv_training base = run(&t, &options, "blocks");
    for (uint32_t stage = 1; stage <= 3; stage++) {
        options.zero_stage = stage;
        options.world = 4;
        onv_training r = run(&t, &options, "blocks");
        /* Every tensor of ResNet-18 has a number of bytes that 4 divides. */
        assert_int_equal(r.figures.optimizer_bytes, base.figures.optimizer_bytes / 4);
        assert_int_equal(r.figures.gradient_bytes,
                         base.figures.gradient_bytes / (stage >= 2 ? 4 : 1));
        assert_int_equal(r.figures.parameter_bytes,
                         base.figures.parameter_bytes / (stage >= 3 ? 4 : 1));
        assert_int_equal(r.figures.saved_activation_bytes, base.figures.saved_activation_bytes);
    }
}
