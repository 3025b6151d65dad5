/* Seconds: what counts of a step, counted by hand, and what is refused. */
#include "ckpt/training.h"
#include "support/flow.h"
#include "support/test.h"

enum { PRODUCT = 16 * 256 * 256, X = 16 * 256 * 4, W = 256 * 256 * 4 };

/* Four products in a row, of float32: x[16,256] by w1 to w4. */
static model *four_products(const char *type)
{
    model *m = model_new(17);
    char text[48], inputs[48], name[16], weight[16];
    snprintf(text, sizeof text, "%s[16,256]", type);
    model_input(m, "y0", text);
    snprintf(text, sizeof text, "%s[256,256]", type);
    for (int i = 1; i <= 4; i++) {
        snprintf(weight, sizeof weight, "w%d", i);
        snprintf(inputs, sizeof inputs, "y%d w%d", i - 1, i);
        snprintf(name, sizeof name, "y%d", i);
        model_weight(m, weight, text);
        model_node(m, "MatMul", name, inputs, name, "");
    }
    model_output(m, "y4", type);
    return m;
}

static model *convolution(void)
{
    model *m = model_read(17, "in x f32[16,256,32,32]", "weight w f32[256,256,3,3]",
                          "y = Conv(x w) conv", "out y f32");
    return m;
}

static onv_speed on(const char *gpu)
{
    onv_speed speed = {.gpu = onv_gpu_find(gpu), .tf32 = true};
    assert_non_null(speed.gpu);
    return speed;
}

static onv_time pass_of(model *m, onv_speed speed)
{
    flow f;
    const onv_runtime_options options = {.speed = speed};
    flow_open_model(&f, m, NULL);
    onv_time time = flow_run(&f, "torch", &options).time;
    flow_close(&f);
    model_free(m);
    return time;
}

/* Of a step with SGD, without a loss; `how` has what is otherwise. */
static onv_training steps_of(flow *f, model *m, onv_training_options how)
{
    onv_error err = {0};
    onv_training result;
    how.train.optimizer = onv_optimizer_find("sgd");
    how.train.lower.loss = ONV_LOSS_NONE;
    flow_open_model(f, m, NULL);
    if (onv_training_compute(&f->model, &f->live, &how, &result, &err) != ONV_OK)
        fail_msg("%s", err.message);
    onv_timeline_cleanup(&result.timeline);
    return result;
}

static onv_time step_of(onv_training_options how)
{
    flow f;
    model *m = four_products("f32");
    onv_time time = steps_of(&f, m, how).figures.time;
    flow_close(&f);
    model_free(m);
    return time;
}

static uint64_t ns(double amount, double tera_or_giga)
{
    return (uint64_t)(amount / tera_or_giga * 1e9 + 0.5);
}

/* 2.1 MFLOP need longer than 0.3 MB on no card of the table: memory decides the low end. */
TEST(a_pass_reads_and_writes_once)
{
    onv_time time = pass_of(four_products("f32"), on("A100 40GB"));
    assert_null(time.refused);
    assert_int_equal(time.macs, 4 * PRODUCT);
    assert_int_equal(time.bytes, 4 * (X + W + X));
    assert_int_equal(time.kernels, 4);
    assert_int_equal(time.all.low, ns(4.0 * (X + W + X), 1555e9));
    assert_int_equal(time.more.high, 0);
    /* The host launches four. */
    assert_int_equal(time.all.high, 4 * 22600);
}

/* A convolution is bound by products: TF32 of the fastest card, a fifth of those of the slowest. */
TEST(products_have_units)
{
    const double flops = 2.0 * 16 * 256 * 256 * 9 * 30 * 30;
    onv_speed speed = on("H100");
    onv_time time = pass_of(convolution(), speed);
    assert_int_equal(time.all.low, ns(flops, 494.7e12));
    assert_int_equal(time.all.high, ns(flops, 378e12 * 0.213));
    speed.tf32 = false;
    time = pass_of(convolution(), speed);
    assert_int_equal(time.all.low, ns(flops, 66.9e12));
    time = pass_of(convolution(), on("T4"));
    assert_int_equal(time.all.low, ns(flops, 8.1e12));
}

/* Backward has a product for each gradient: the input of the first one has none. */
TEST(a_step_has_backward)
{
    onv_time time = step_of((onv_training_options){.speed = on("A100 40GB")});
    assert_null(time.refused);
    assert_int_equal(time.macs, (4 + 4 + 3) * PRODUCT);
    /* Each product reads two of X, X, W and writes the third; SGD reads weights and gradients and writes weights. */
    assert_int_equal(time.bytes, 11 * (X + W + X) + 4 * 3 * W);
    assert_int_equal(time.kernels, 11 + 4);
    onv_time four =
        step_of((onv_training_options){.speed = on("A100 40GB"), .train = {.accumulate = 4}});
    assert_int_equal(four.macs, 4 * time.macs);
    assert_int_equal(four.bytes, 4 * 11 * (X + W + X) + 3 * 4 * 3 * W + 4 * 3 * W);
}

TEST(plans_run_again)
{
    flow f;
    OWNED_MODEL m = four_products("f32");
    onv_training t = steps_of(
        &f, m,
        (onv_training_options){.speed = on("A100 40GB"), .checkpoint = "none,segments=2,offload"});
    assert_int_equal(t.n_plans, 3);
    const onv_time *none = &t.plans[0].figures.time, *segments = &t.plans[1].figures.time;
    assert_int_equal(none->more.high, 0);
    assert_int_equal(none->macs, 11 * PRODUCT);
    assert_true(t.plans[1].does.recomputed_macs > 0);
    assert_int_equal(segments->macs, 11 * PRODUCT + t.plans[1].does.recomputed_macs);
    assert_int_equal(segments->all.low - segments->more.low, none->all.low);
    assert_int_equal(segments->all.high - segments->more.high, none->all.high);
    /* Copies: beside the kernels, or between them. */
    const onv_training_figures *moved = &t.plans[2].figures;
    double seconds = (double)(moved->offloaded_bytes + moved->returned_bytes) / 32e9;
    assert_true(moved->time.more.low < ns(seconds, 1));
    assert_int_equal(moved->time.more.high, ns(seconds, 0.6875));
    flow_close(&f);
}

static void refuses(const char *why, onv_time time)
{
    if (time.refused == NULL || strcmp(time.refused, why) != 0)
        fail_msg("not refused with '%s': %s", why,
                 time.refused != NULL ? time.refused : "not at all");
    assert_false(onv_time_is_known(&time));
}

TEST(what_is_not_estimated_is_refused)
{
    const char *units = "no peak is published of its products in the type of an operation";
    onv_training_options how = {.speed = on("A100 40GB")};
    refuses("the table of GPUs has no published speed of it",
            pass_of(four_products("f32"), on("K80")));
    refuses(units, pass_of(four_products("f64"), on("A100 40GB")));
    refuses(units, pass_of(four_products("bf16"), on("V100 16GB")));
    assert_null(pass_of(four_products("bf16"), on("A100 40GB")).refused);
    assert_null(pass_of(four_products("f16"), on("V100 16GB")).refused);
    refuses(units, pass_of(four_products("f16"), on("GTX 1080 Ti")));
    how.train.zero_stage = 1;
    how.train.world = 2;
    refuses("communication between devices is not estimated", step_of(how));
    how = (onv_training_options){.speed = on("A100 40GB"),
                                 .train = {.offload = ONV_OFFLOAD_OPTIMIZER}};
    refuses("what the host computes is not estimated", step_of(how));
    onv_time time = step_of((onv_training_options){.alloc = {0}});
    assert_null(time.refused);
    assert_false(onv_time_is_known(&time));
}
