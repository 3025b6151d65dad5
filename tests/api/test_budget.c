/* One budget for all that an analysis takes: whatever is asked for, it stays below the limit or says
 * which one it is. */
#include "api/analysis.h"
#include "base/arena.h"
#include "base/heap.h"
#include "base/quota.h"
#include "base/vec.h"
#include "onnxvram/onnxvram.h"
#include "support/capture.h"
#include "support/test.h"

#define MODEL ONV_SOURCE_DIR "/samples/resnet18-train.onnx"

TEST(everything_counts_and_goes)
{
    onv_quota budget = {.limit = 1 << 20};
    onv_quota *before = onv_quota_enter(&budget);
    onv_arena arena;
    onv_arena_init(&arena, SIZE_MAX);
    ONV_VEC(uint64_t) list = {0};
    assert_non_null(onv_arena_alloc(&arena, 100000));
    for (uint64_t i = 0; i < 1000; i++) assert_true(onv_vec_push(&list, i));
    void *table = onv_heap_calloc(100, 100);
    assert_non_null(table);
    assert_true(budget.used >= 100000 + 8000 + 10000 && budget.used < 200000);
    assert_null(onv_heap_alloc(1 << 20));
    assert_true(budget.refused);
    assert_null(onv_heap_realloc(table, 1 << 20));
    assert_null(onv_heap_calloc(SIZE_MAX / 2, 4));
    assert_null(onv_arena_alloc(&arena, 1 << 20));
    onv_heap_free(table);
    onv_vec_cleanup(&list);
    onv_arena_cleanup(&arena);
    assert_int_equal(budget.used, 0);
    assert_ptr_equal(onv_quota_enter(before), &budget);
}

static onv_options training(unsigned accumulate, const char *checkpoint)
{
    onv_options options = onv_options_default();
    options.batch = 2;
    options.train = "adam";
    options.accumulate = accumulate;
    options.checkpoint = checkpoint;
    return options;
}

/* At every limit: the error that names it, or everything, reports too. */
TEST(the_limit_binds_every_pass)
{
    size_t refused = 0, done = 0, ignored = 0;
    for (uint64_t limit = 1 << 18; done < 2; limit += limit / 4) {
        onv_options options = training(3, "all");
        onv_limits limits = onv_limits_default();
        options.limits = &limits;
        options.order = "greedy";
        limits.arena_bytes = limit;
        onv_analysis *analysis;
        onv_error error = {0};
        onv_status status = onv_analysis_new(MODEL, &options, &analysis, &error);
        for (int format = 0; status == ONV_OK && format <= ONV_FORMAT_CHECKPOINTS; format++) {
            status = onv_report((const onv_analysis *const *)&analysis, 1, (onv_format)format, NULL,
                                capture_size, &ignored, &error);
            if (status == ONV_ERR_USAGE) status = ONV_OK; /* not of this analysis */
            if (status != ONV_OK) onv_analysis_destroy(analysis);
        }
        if (status == ONV_OK) {
            onv_analysis_destroy(analysis);
            done++;
            continue;
        }
        refused++;
        if (status != ONV_ERR_LIMIT ||
            strstr(error.message, "the limit; --limit memory=N raises it") == NULL)
            fail_msg("%llu bytes: %s", (unsigned long long)limit, error.message);
        assert_true(limit < (uint64_t)1 << 28);
    }
    assert_true(refused > 5);
}

/* An analysis with all plans and all reports. */
static onv_status do_everything(const onv_options *options, uint64_t *work, onv_error *error)
{
    onv_analysis *analysis;
    *error = (onv_error){0};
    size_t ignored = 0;
    onv_status status = onv_analysis_new(MODEL, options, &analysis, error);
    if (status != ONV_OK) return status;
    *work = analysis->making->watch.quota.work;
    for (int format = 0; status == ONV_OK && format <= ONV_FORMAT_CHECKPOINTS; format++) {
        status = onv_report((const onv_analysis *const *)&analysis, 1, (onv_format)format, NULL,
                            capture_size, &ignored, error);
        if (status == ONV_ERR_USAGE) status = ONV_OK; /* not of this analysis */
    }
    onv_analysis_destroy(analysis);
    return status;
}

/* Work follows from the input; at every limit of it there is the error that names it, or everything. */
TEST(a_limit_of_work_binds_every_pass)
{
    onv_options options = training(3, "all");
    onv_limits limits = onv_limits_default();
    onv_error error;
    options.limits = &limits;
    options.order = "greedy";
    uint64_t whole, again;
    assert_int_equal(do_everything(&options, &whole, &error), ONV_OK);
    assert_int_equal(do_everything(&options, &again, &error), ONV_OK);
    assert_int_equal(whole, again);
    assert_true(whole > 100000);
    size_t refused = 0;
    onv_status status = ONV_ERR_LIMIT;
    for (limits.work = 1; status != ONV_OK; limits.work += 1 + limits.work / 3) {
        status = do_everything(&options, &again, &error);
        if (status == ONV_OK) break;
        refused++;
        if (status != ONV_ERR_LIMIT ||
            strstr(error.message, "units of work, the limit; --limit work=N raises it") == NULL)
            fail_msg("%llu units: %s", (unsigned long long)limits.work, error.message);
        assert_true(limits.work < 10 * whole);
    }
    assert_true(refused > 20 && limits.work >= whole);
}

typedef struct patience {
    unsigned questions, most;
} patience;

static bool loses_patience(void *context)
{
    patience *p = context;
    return ++p->questions > p->most;
}

/* The caller, and the clock beside it, are asked in all passes. */
TEST(every_pass_can_be_cancelled)
{
    onv_options options = training(3, "all");
    onv_error error;
    uint64_t work;
    patience p = {.most = UINT32_MAX};
    options.order = "greedy";
    options.cancelled = loses_patience;
    options.cancel_context = &p;
    assert_int_equal(do_everything(&options, &work, &error), ONV_OK);
    unsigned all = p.questions;
    assert_true(all > 20);
    for (unsigned most = 0; most < all; most += 1 + all / 40) {
        p = (patience){.most = most};
        assert_int_equal(do_everything(&options, &work, &error), ONV_ERR_CANCELLED);
        assert_non_null(strstr(error.message, "cancelled"));
        assert_int_equal(p.questions, most + 1);
    }
}

static onv_training_figures figures(unsigned accumulate)
{
    onv_options options = training(accumulate, NULL);
    onv_limits limits = onv_limits_default();
    options.limits = &limits;
    limits.arena_bytes = 64 << 20;
    onv_analysis *analysis;
    onv_error error = {0};
    if (onv_analysis_new(MODEL, &options, &analysis, &error) != ONV_OK)
        fail_msg("%u: %s", accumulate, error.message);
    onv_training_figures info = analysis->training.figures;
    onv_analysis_destroy(analysis);
    return info;
}

/* However many passes there are before a step, they take what two take. */
TEST(passes_that_repeat_take_no_memory)
{
    onv_training_figures one = figures(1), two = figures(2);
    static const unsigned many[] = {23, 24, 25, 30000, INT32_MAX, UINT32_MAX};
    for (size_t i = 0; i < sizeof many / sizeof many[0]; i++) {
        onv_training_figures info = figures(many[i]);
        assert_int_equal(info.peak_bytes, two.peak_bytes);
        assert_int_equal(info.saved_activation_bytes, two.saved_activation_bytes);
        assert_int_equal(info.allocated_peak_bytes, two.allocated_peak_bytes);
        assert_int_equal(info.reserved_peak_bytes, two.reserved_peak_bytes);
    }
    assert_true(two.peak_bytes > one.peak_bytes);
}

/* What goes beyond the question is left out where it alone takes too much memory, and that is said. */
TEST(an_answer_needs_no_room_for_more)
{
    static const struct {
        const char *model, *code;
        int64_t batch;
    } rows[] = {
        {ONV_SOURCE_DIR "/samples/gpt2.onnx", "no-example", 0},
        {ONV_SOURCE_DIR "/samples/mobilenet_v2.onnx", "no-parts", 8},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool was_left_out = false;
        uint64_t limit = 64 << 20;
        size_t ignored = 0;
        onv_status status = ONV_OK;
        /* With the example the analysis may lack memory for what comes behind it, which there is without. */
        for (; status == ONV_OK || (!was_left_out && limit > 1 << 20); limit -= limit / 64) {
            onv_options options = onv_options_default();
            onv_limits limits = onv_limits_default();
            onv_analysis *analysis;
            onv_error error;
            limits.arena_bytes = limit;
            options.limits = &limits;
            options.batch = rows[i].batch;
            options.example = options.savings = true;
            options.runtimes = "ideal";
            status = onv_analysis_new(rows[i].model, &options, &analysis, &error);
            if (status != ONV_OK) continue;
            bool is_told = message_of(analysis, rows[i].code) != NULL;
            assert_true(is_told || !was_left_out);
            was_left_out |= is_told;
            onv_status shown = onv_report((const onv_analysis *const *)&analysis, 1,
                                          ONV_FORMAT_TEXT, NULL, capture_size, &ignored, &error);
            /* What was kept may leave the report that shows it too little room. */
            assert_true(shown == ONV_OK || (shown == ONV_ERR_LIMIT && !was_left_out));
            onv_analysis_destroy(analysis);
        }
        assert_int_equal(status, ONV_ERR_LIMIT);
        assert_true(was_left_out);
    }
}
