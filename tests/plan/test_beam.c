/* Parts that are full: perfect packings are found, whatever the effort what is found is a plan, and more
 * effort never finds a higher one. */
#include "base/heap.h"
#include "plan/instances.h"
#include "plan/plan.h"
#include "support/test.h"

static uint64_t height_with(const instance *made, uint64_t effort, uint64_t *work)
{
    onv_plan plan;
    onv_error err = {0};
    onv_plan_options options = {.effort = effort};
    if (onv_plan_compute(made->at, made->count, &options, &plan, &err) != ONV_OK ||
        onv_plan_check(made->at, made->count, &options, &plan, &err) != ONV_OK)
        fail_msg("%s", err.message);
    uint64_t height = plan.height;
    if (work != NULL) *work = plan.work;
    onv_plan_cleanup(&plan);
    return height;
}

/* The exact search alone ends 5 to 17 % above these. */
TEST(perfect_packings_are_found)
{
    static const struct {
        uint32_t seed, n;
        bool pinwheels;
    } rows[] = {{1001, 300, true}, {1001, 700, true}, {1002, 500, false}, {1002, 500, true}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        instance made = {0};
        if (rows[i].pinwheels)
            make_pinwheels(&made, rows[i].seed, rows[i].n, rows[i].n, 1000);
        else
            make_jigsaw(&made, rows[i].seed, rows[i].n, rows[i].n, 1000);
        assert_int_equal(height_with(&made, 0, NULL), 1000);
        onv_vec_cleanup(&made);
    }
}

/* The last ones are two parts, one after another in time, which share the effort. */
TEST(more_effort_is_never_worse)
{
    for (int kind = 0; kind < 4; kind++) {
        instance made = {0};
        if (kind == 0) make_pinwheels(&made, 7, 200, 200, 1000);
        if (kind == 1) make_uniform(&made, 100, 300, 1000, 40, 1000);
        if (kind == 2) make_training(&made, 1, 3000, 20, false);
        for (uint32_t part = 0; kind == 3 && part < 2; part++) {
            size_t first = made.count;
            make_full(&made, 3 + part, 40, 500);
            for (size_t i = first; i < made.count; i++) made.at[i].lower += 100 * part;
            for (size_t i = first; i < made.count; i++) made.at[i].upper += 100 * part;
        }
        uint64_t last = UINT64_MAX;
        for (uint64_t effort = 1000; effort <= 64000000; effort *= 4) {
            uint64_t height = height_with(&made, effort, NULL);
            assert_true(height <= last);
            last = height;
        }
        onv_vec_cleanup(&made);
    }
}

/* All orders but that of time would take the square of their number. */
TEST(many_that_overlap_take_bounded_work)
{
    instance made = {0};
    uint64_t work;
    make_uniform(&made, 5, 31000, 31000, 31000, 1000);
    height_with(&made, 0, &work);
    assert_true(work < 150000000);
    onv_vec_cleanup(&made);
}

TEST(every_allocation_may_fail)
{
#ifdef ONV_FAULT_INJECTION
    instance made = {0};
    make_pinwheels(&made, 3, 60, 60, 1000);
    onv_status status = ONV_ERR_MEMORY;
    for (long n = 0; status != ONV_OK && n < 5000; n++) {
        onv_plan plan;
        onv_error err = {0};
        onv_plan_options options = {.strategy = "exact"};
        onv_heap_fail_after(n);
        status = onv_plan_compute(made.at, made.count, &options, &plan, &err);
        onv_heap_fail_after(-1);
        assert_true(status == ONV_OK || status == ONV_ERR_MEMORY);
        assert_int_equal(err.code, status);
        onv_plan_cleanup(&plan);
    }
    assert_int_equal(status, ONV_OK);
    onv_vec_cleanup(&made);
#else
    skip();
#endif
}
