/* What a finished analysis answers: nothing of what was not asked for, and figures that agree with
 * each other where it was. */
#include "api/analysis.h"
#include "support/capture.h"
#include "support/onnx_writer.h"
#include "support/test.h"

enum { WIDTH = 256, LAYERS = 12 };

/* x [n, 256], then products and activations in turn. */
static model *make_network(void)
{
    model *m = model_new(17);
    char name[16], inputs[32], middle[16], output[16];
    model_input(m, "h0", "f32[n,256]");
    for (int i = 0; i < LAYERS; i++) {
        snprintf(name, sizeof name, "w%d", i);
        snprintf(inputs, sizeof inputs, "h%d w%d", i, i);
        snprintf(middle, sizeof middle, "m%d", i);
        snprintf(output, sizeof output, "h%d", i + 1);
        model_weight(m, name, "f32[256,256]");
        model_node(m, "MatMul", name, inputs, middle, "");
        model_node(m, "Sigmoid", output, middle, output, "");
    }
    model_output(m, output, "f32");
    return m;
}

static onv_analysis *analyse(const onv_options *options)
{
    model *m = make_network();
    onv_analysis *analysis = model_analyse(m, options);
    model_free(m);
    return analysis;
}

TEST(what_was_not_asked_for_is_not_there)
{
    onv_options options = onv_options_default();
    options.batch = 4;
    options.runtimes = "ideal";
    OWNED_ANALYSIS a = analyse(&options);
    onv_tensor_info tensor;
    onv_diagnostic diagnostic;
    onv_figure figure;
    onv_growth_info growth;
    onv_answer_info answer;
    assert_null(a->training.optimizer);
    assert_null(a->training.compiled);
    assert_null(a->replays.kind);
    assert_int_equal(a->fit.budget_bytes + a->training.n_plans, 0);
    assert_false(onv_analysis_tensor(a, onv_analysis_tensor_count(a), &tensor));
    assert_false(onv_analysis_diagnostic(a, 0, &diagnostic));
    assert_false(onv_analysis_growth(a, 0, &growth));
    onv_analysis_answer(a, &answer);
    assert_false(answer.has_verdict || answer.is_contradicted || answer.out_of_memory);
    static const char *const figures[] = {"weights", "peak", "total", "ideal"};
    for (size_t i = 0; i < 4; i++) {
        assert_true(onv_analysis_figure(a, i, &figure));
        assert_string_equal(figure.what, figures[i]);
    }
    assert_int_equal(figure.bytes, a->live.weight_bytes + a->live.peak_bytes);
    assert_false(onv_analysis_figure(a, 4, &figure));
    onv_analysis_destroy(NULL);
}

/* The parts of each total add up to it, and the answer and its devices have the total of the largest runtime. */
TEST(answers_add_up)
{
    const onv_budget budgets[] = {{"T4", UINT64_C(15) << 30, 75}, {NULL, 1000000, 0}};
    onv_options options = onv_options_default();
    options.batch = 4;
    options.budgets = budgets;
    options.n_budgets = 2;
    OWNED_ANALYSIS a = analyse(&options);
    onv_answer_info answer;
    onv_answer_runtime_info r;
    onv_answer_device_info d;
    uint64_t most = 0;
    assert_true(onv_analysis_answer(a, &answer));
    assert_true(answer.runtimes == 2 && answer.devices == 2);
    for (size_t i = 0; onv_analysis_answer_runtime(a, i, &r); i++) {
        assert_int_equal(r.low_bytes, r.reserved_low + r.library_bytes + r.context_low);
        assert_int_equal(r.high_bytes, r.reserved_high + r.library_bytes + r.context_high);
        if (r.high_bytes > most) most = r.high_bytes;
    }
    assert_int_equal(answer.high_bytes, most);
    for (size_t i = 0; i < 2; i++) {
        assert_true(onv_analysis_answer_device(a, i, &d));
        assert_int_equal(d.fit.usable, budgets[i].bytes);
        assert_int_equal(d.fit.fits, d.high_bytes <= d.fit.usable);
        assert_true(d.fit.fits == (i == 0));
    }
    assert_true(answer.has_verdict && answer.fits && answer.fits_some);
    assert_false(onv_analysis_answer_device(a, 2, &d));
}

/* A program that was compiled when options ended before `train` leaves what lies behind unset. */
TEST(shorter_options_are_those_of_older_headers)
{
    onv_options options = onv_options_default();
    options.batch = 4;
    options.train = "no such optimizer";
    options.struct_size = offsetof(onv_options, train);
    OWNED_ANALYSIS a = analyse(&options);
    assert_null(a->training.optimizer);
}

TEST(training_and_its_plans_agree)
{
    onv_options options = onv_options_default();
    options.batch = 512;
    options.train = "adam";
    options.loss = "none";
    options.checkpoint = "all";
    options.budget = UINT64_C(8) << 30;
    OWNED_ANALYSIS a = analyse(&options);
    const onv_training *training = &a->training;
    const onv_training_figures *f = &training->figures, *least = NULL;
    const uint64_t weights = LAYERS * WIDTH * WIDTH * sizeof(float);
    assert_int_equal(f->parameter_bytes, weights);
    assert_int_equal(f->gradient_bytes, weights);
    assert_in_range(f->optimizer_bytes, 2 * weights, 2 * weights + 8 * LAYERS);
    assert_string_equal(training->optimizer->name, "adam");
    assert_string_equal(training->loss, "none");
    assert_true(training->n_plans > 4);
    /* It all fits, so that nothing has to be computed again. */
    const onv_training_plan *chosen = &training->plans[training->chosen];
    assert_string_equal(chosen->does.name, "none");
    assert_int_equal(chosen->does.recomputed_macs + chosen->does.n_segments, 0);
    least = &chosen->figures;
    assert_int_equal(f->peak_bytes, least->peak_bytes);
    assert_int_equal(f->saved_activation_bytes, least->saved_activation_bytes);
    for (size_t i = 0; i < training->n_plans; i++) {
        const onv_training_plan *plan = &training->plans[i];
        assert_true(plan->figures.saved_activation_bytes <= least->saved_activation_bytes);
        assert_true(plan->figures.reserved_peak_bytes >= plan->figures.allocated_peak_bytes);
        assert_true(plan->figures.allocated_peak_bytes >= plan->figures.peak_bytes);
        assert_int_equal(plan->does.recomputed_macs > 0, plan->does.n_segments > 0);
        /* A forward is one product a layer, a backward counts as two. */
        assert_int_equal(plan->pass_macs, UINT64_C(3) * LAYERS * 512 * WIDTH * WIDTH);
    }
    assert_true(a->fit.all.fits);
    assert_int_equal(a->fit.usable_bytes, options.budget);
}

/* A price for what is moved: a budget that nothing needs is not met by moving. Tensors of a plan with bytes on
 * the host are not on the device. */
TEST(what_is_moved_has_its_price)
{
    onv_options options = onv_options_default();
    options.batch = 512;
    options.train = "sgd";
    options.loss = "none";
    options.checkpoint = "offload,none";
    options.budget = UINT64_C(8) << 30;
    OWNED_ANALYSIS a = analyse(&options);
    const onv_training_plan *plans = a->training.plans;
    const onv_training_figures *offload = &plans[0].figures, *none = &plans[1].figures;
    const uint64_t weight = WIDTH * WIDTH * sizeof(float), rows = 512 * WIDTH * sizeof(float);
    assert_int_equal(a->training.n_plans, 2);
    /* A sigmoid's result is saved by itself and by the next product. */
    assert_int_equal(offload->offloaded_bytes, 2 * LAYERS * rows + (LAYERS - 1) * weight);
    assert_int_equal(offload->returned_bytes, offload->offloaded_bytes);
    assert_true(offload->pinned_bytes >= offload->offloaded_bytes);
    assert_int_equal(none->offloaded_bytes + none->returned_bytes + none->pinned_bytes, 0);
    assert_int_equal(plans[0].does.recomputed_macs + plans[0].does.n_segments, 0);
    assert_true(offload->saved_activation_bytes < none->saved_activation_bytes);
    assert_int_equal(a->training.chosen, 1);
}

TEST(names_and_statuses_end)
{
    const char *summary, *argument;
    size_t n = 0, n_counted = 0;
    for (; onv_checkpoint_name(n, &summary, &argument) != NULL; n++) {
        assert_true(summary[0] != '\0');
        n_counted += argument != NULL;
    }
    assert_true(n_counted > 0 && n_counted < n);
    for (int list = 0; list <= ONV_NAMES_REPLAY_DEVICES; list++) {
        for (n = 0; onv_name_at((onv_names)list, n, &summary) != NULL; n++)
            assert_true(summary[0] != '\0' || list == ONV_NAMES_PYTORCH);
        assert_true(list == ONV_NAMES_RUNTIMES ? n == 7 : n > 1);
    }
    for (int a = ONV_OK; a <= ONV_ERR_CANCELLED; a++)
        for (int b = ONV_OK; b < a; b++)
            assert_string_not_equal(onv_status_name((onv_status)a), onv_status_name((onv_status)b));
    assert_string_equal(onv_status_name((onv_status)(ONV_ERR_CANCELLED + 1)), "unknown status");
}

/* Of a chain of products each keeps its input, compiled or not; with less of a budget some are computed again.
 * When backward begins they are there all the same, one after the other, so the peak is what it was: 15,466,500
 * bytes at 1, 0.5 and 0 of the same network under Inductor (momentum, a squared error). */
TEST(compiled_training_is_there)
{
    static const double budgets[] = {1, 0.5, 0};
    const uint64_t measured = 15466500;
    uint64_t saved = UINT64_MAX, macs = 0;
    for (size_t i = 0; i < sizeof budgets / sizeof budgets[0]; i++) {
        onv_options options = onv_options_default();
        options.batch = 512;
        options.train = "momentum";
        options.loss = "mse";
        options.compile = true;
        options.compile_budget = budgets[i];
        OWNED_ANALYSIS a = analyse(&options);
        const onv_compiled *compiled = a->training.compiled;
        assert_true(compiled->budget == budgets[i] && compiled->n_saved > 0);
        assert_int_equal(compiled->pass_macs, UINT64_C(3) * LAYERS * 512 * WIDTH * WIDTH);
        assert_true(compiled->saved_activation_bytes <= a->training.figures.saved_activation_bytes);
        assert_true(compiled->saved_activation_bytes < saved);
        assert_true(i == 0 ? compiled->recomputed_macs == 0 : compiled->recomputed_macs > macs);
        assert_true(compiled->recomputed_macs <= compiled->pass_macs / 3);
        assert_in_range(compiled->peak_bytes, measured - measured / 50, measured + measured / 50);
        saved = compiled->saved_activation_bytes;
        macs = compiled->recomputed_macs;
    }
    onv_options beyond = onv_options_default();
    onv_error error;
    onv_analysis *none;
    beyond.batch = 1;
    beyond.train = "sgd";
    beyond.compile = true;
    beyond.compile_budget = 1.5;
    OWNED_MODEL m = make_network();
    assert_int_equal(model_try(m, &beyond, &none, &error), ONV_ERR_USAGE);
    assert_non_null(strstr(error.message, "from 0 to 1, not 1.5"));
}

/* A model of so many free dims is no network that anyone exported: it gets no example, and a note says so. */
TEST(examples_are_made_for_so_many_dims)
{
    for (unsigned n = 1000; n <= 1001; n++) {
        onv_options options = onv_options_default();
        OWNED_MODEL m = model_new(17);
        char name[16], type[24];
        for (unsigned i = 0; i < n; i++) {
            snprintf(name, sizeof name, "x%u", i);
            snprintf(type, sizeof type, "f32[d%u]", i);
            model_input(m, name, type);
        }
        model_add(m, "y = Relu(x0)", "out y f32");
        options.example = true;
        OWNED_ANALYSIS a = model_analyse(m, &options);
        onv_diagnostic d;
        bool told = false;
        for (size_t i = 0; onv_analysis_diagnostic(a, i, &d); i++)
            told |= strcmp(d.code, "no-example") == 0 && strstr(d.message, "1001 dims") != NULL;
        assert_int_equal(a->example != NULL, n == 1000);
        assert_int_equal(told, n > 1000);
    }
}

/* A table of no models is empty; a picture or a plan of none is refused. */
TEST(reports_of_no_model)
{
    unsigned empty = 0, refused = 0;
    for (int format = ONV_FORMAT_TEXT; format <= ONV_FORMAT_DUMP_PROGRAM; format++) {
        size_t bytes = 0;
        onv_error error;
        onv_status status =
            onv_report(NULL, 0, (onv_format)format, NULL, capture_size, &bytes, &error);
        empty += status == ONV_OK;
        refused += status == ONV_ERR_USAGE && error.message[0] != '\0' && bytes == 0;
    }
    assert_int_equal(empty + refused, ONV_FORMAT_DUMP_PROGRAM + 1);
    assert_true(empty >= 3 && refused >= 10);
}
