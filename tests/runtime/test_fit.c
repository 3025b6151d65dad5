/* Does it fit: the verdict, and the largest batch, which fits where one more does not. */
#include "api/analysis.h"
#include "runtime/fit.h"
#include "support/onnx_writer.h"
#include "support/test.h"

TEST(the_margin_is_kept_free)
{
    onv_runtime_result results[2] = {{.total_bytes = {10, 899}, .is_judged = true},
                                     {.total_bytes = {10, 901}, .is_judged = true}};
    onv_fit fit = {.budget_bytes = 1000, .margin_percent = 10};
    onv_fit_judge(&fit, results, 2);
    assert_int_equal(fit.usable_bytes, 900);
    assert_true(fit.of[0].fits);
    assert_false(fit.of[1].fits); /* by the upper end of its range */
    assert_false(fit.all.fits);
    results[1].is_judged = false; /* no part of the verdict */
    onv_fit_judge(&fit, results, 2);
    assert_true(fit.all.fits);
    results[0].out_of_memory = true; /* by a limit of its own */
    onv_fit_judge(&fit, results, 2);
    assert_false(fit.all.fits);
    results[0].out_of_memory = false;
    onv_fit_judge(&fit, results, 1);
    assert_true(fit.all.fits);
    fit = (onv_fit){.budget_bytes = UINT64_MAX, .margin_percent = 1};
    onv_fit_judge(&fit, results, 2);
    assert_int_equal(fit.usable_bytes, UINT64_MAX / 100 * 99 + UINT64_MAX % 100 * 99 / 100);
    onv_fit_judge(&fit, results, 0);
    assert_false(fit.all.fits); /* nothing was computed */
}

/* 8,192 bytes for each of the batch, and 4,096 of weights. */
static model *growing(const char *input)
{
    model *m = model_new(17);
    model_input(m, "x", input);
    model_add(m, "weight w f32[1024]", "y = Add(x w) 0", "out y f32");
    return m;
}

static onv_fit_of fit_of(model *m, const char *runtime, uint64_t budget, unsigned margin,
                         int64_t batch)
{
    onv_options options = onv_options_default();
    options.runtimes = runtime;
    options.budget = budget;
    options.margin_percent = margin;
    options.batch = batch;
    options.max_batch = batch == 0;
    onv_analysis *a = model_analyse(m, &options);
    onv_fit_of info = a->fit.all;
    onv_analysis_destroy(a);
    return info;
}

TEST(the_largest_batch_by_hand)
{
    model *m = growing("f32[batch,1024]");
    assert_int_equal(fit_of(m, "ideal", 1000000, 0, 0).max_batch, 121);
    assert_int_equal(fit_of(m, "ideal", 4096 + 122 * 8192, 0, 0).max_batch, 122);
    assert_int_equal(fit_of(m, "ideal", 4096 + 122 * 8192 - 1, 0, 0).max_batch, 121);
    assert_int_equal(fit_of(m, "ideal", 1000000, 10, 0).max_batch, 109);
    assert_int_equal(fit_of(m, "ideal", 4096 + 8191, 0, 0).max_batch, 0);
    model_free(m);
    m = growing("f32[7,1024]"); /* fixed in the export */
    assert_int_equal(fit_of(m, "ideal", 1000000, 0, 0).max_batch, 121);
    model_free(m);
}

TEST(it_fits_at_n_and_not_at_one_more)
{
    static const char *const runtimes[] = {"ideal", "arena", "torch", "ort", "async"};
    OWNED_MODEL m = growing("f32[batch,1024]");
    for (size_t i = 0; i < sizeof runtimes / sizeof runtimes[0]; i++) {
        /* A budget above every context, whose upper end is 600 MiB. */
        uint64_t budget = UINT64_C(1) << 30;
        int64_t n = fit_of(m, runtimes[i], budget, 0, 0).max_batch;
        assert_true(n > 1000);
        assert_true(fit_of(m, runtimes[i], budget, 0, n).fits);
        assert_false(fit_of(m, runtimes[i], budget, 0, n + 1).fits);
    }
}

TEST(all_runtimes_have_to_fit)
{
    OWNED_MODEL m = growing("f32[batch,1024]");
    onv_fit_of ideal = fit_of(m, "ideal", UINT64_C(1) << 30, 0, 0);
    onv_fit_of torch = fit_of(m, "torch", UINT64_C(1) << 30, 0, 0);
    onv_fit_of both = fit_of(m, "ideal,torch", UINT64_C(1) << 30, 0, 0);
    assert_true(torch.max_batch < ideal.max_batch);
    assert_int_equal(both.max_batch, torch.max_batch);
}

TEST(what_cannot_be_judged_is_an_error)
{
    OWNED_MODEL m = growing("f32[batch,rest]");
    onv_options options = onv_options_default();
    onv_analysis *a;
    onv_error err;
    options.budget = 1 << 20;
    options.margin_percent = 100;
    assert_int_equal(model_try(m, &options, &a, &err), ONV_ERR_USAGE);
    options.margin_percent = 0;
    assert_int_equal(model_try(m, &options, &a, &err), ONV_ERR_USAGE); /* no size */
    options.budget = 0;
    options.max_batch = true;
    assert_int_equal(model_try(m, &options, &a, &err), ONV_ERR_USAGE); /* no budget */
}
