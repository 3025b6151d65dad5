/* Offset planning as a whole: by hand, against exhaustive search, and by properties that hold for
 * every plan of seeded random instances. */
#include "base/heap.h"
#include "plan/brute.h"
#include "plan/instances.h"
#include "plan/part.h"
#include "plan/plan.h"
#include "support/held.h"
#include "support/test.h"

static onv_plan plan_with(const onv_plan_buffer *buffers, size_t count,
                          const onv_plan_options *options)
{
    onv_plan plan;
    onv_error err = {0};
    if (onv_plan_compute(buffers, count, options, &plan, &err) != ONV_OK)
        fail_msg("%s", err.message);
    if (onv_plan_check(buffers, count, options, &plan, &err) != ONV_OK) fail_msg("%s", err.message);
    return plan;
}

/* --- By hand ----------------------------------------------------------------------------------- */

TEST(nothing_needs_nothing)
{
    onv_plan plan = plan_with(NULL, 0, NULL);
    assert_int_equal(plan.height, 0);
    assert_true(plan.optimal && plan.fits);
    onv_plan_cleanup(&plan);
    const onv_plan_buffer empty[] = {{0, 5, 0}, {3, 4, 0}};
    plan = plan_with(empty, 2, NULL);
    assert_int_equal(plan.height, 0);
    assert_int_equal(plan.offsets[1], 0);
    onv_plan_cleanup(&plan);
}

TEST(half_open_lifetimes_share_a_place)
{
    const onv_plan_buffer row[] = {{0, 3, 7}, {3, 6, 5}, {6, 7, 6}};
    onv_plan plan = plan_with(row, 3, NULL);
    assert_int_equal(plan.height, 7);
    for (int i = 0; i < 3; i++) assert_int_equal(plan.offsets[i], 0);
    onv_plan_cleanup(&plan);
}

TEST(a_gap_that_only_a_search_avoids)
{
    /* Largest first puts the 4 at 0 and the 3 on it; the load of 8 needs the 2 beneath both. */
    const onv_plan_buffer five[] = {{0, 2, 4}, {1, 3, 3}, {2, 4, 4}, {0, 1, 4}, {3, 4, 4}};
    onv_plan plan = plan_with(five, 5, NULL);
    assert_int_equal(plan.height, brute_height(five, 5));
    assert_true(plan.optimal);
    onv_plan_cleanup(&plan);
}

TEST(the_bound_can_be_out_of_reach)
{
    /* Every step is exactly full, and no plan has no gap. Eight buffers are the least of such. */
    static const onv_plan_buffer eight[] = {{1, 7, 1}, {0, 1, 2}, {7, 8, 4}, {4, 8, 2},
                                            {3, 7, 3}, {0, 3, 4}, {1, 4, 1}, {3, 4, 1}};
    static const onv_plan_buffer nine[] = {{1, 4, 4}, {4, 5, 5}, {0, 2, 3}, {1, 3, 1}, {2, 3, 1},
                                           {0, 1, 5}, {2, 5, 1}, {3, 5, 2}, {2, 4, 1}};
    static const onv_plan_buffer ten[] = {{0, 2, 2}, {2, 4, 1}, {4, 6, 1}, {3, 9, 5}, {0, 1, 6},
                                          {6, 9, 3}, {1, 5, 2}, {1, 3, 4}, {5, 6, 2}, {2, 3, 1}};
    static const struct {
        const onv_plan_buffer *buffers;
        size_t count;
        uint64_t load;
    } cases[] = {{eight, 8, 6}, {nine, 9, 8}, {ten, 10, 8}};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(brute_height(cases[i].buffers, cases[i].count), cases[i].load + 1);
        onv_plan plan = plan_with(cases[i].buffers, cases[i].count, NULL);
        assert_int_equal(plan.max_load, cases[i].load);
        assert_int_equal(plan.height, cases[i].load + 1);
        assert_int_equal(plan.lower_bound, cases[i].load + 1);
        assert_true(plan.optimal);
        onv_plan_cleanup(&plan);
    }
}

TEST(a_capacity_ends_the_work_early)
{
    instance made = {0};
    make_jigsaw(&made, 7, 60, 40, 500);
    onv_plan_options options = {.capacity = 2000};
    onv_plan plan = plan_with(made.at, made.count, &options);
    assert_true(plan.fits);
    assert_int_equal(plan.nodes, 0);
    onv_plan_cleanup(&plan);
    options.capacity = 500;
    plan = plan_with(made.at, made.count, &options);
    assert_true(plan.fits && plan.optimal);
    onv_plan_cleanup(&plan);
    options.capacity = 499; /* below the load */
    plan = plan_with(made.at, made.count, &options);
    assert_false(plan.fits);
    assert_int_equal(plan.height, 500);
    onv_plan_cleanup(&plan);
    onv_vec_cleanup(&made);
}

TEST(alignment_rounds_sizes_and_offsets)
{
    const onv_plan_buffer rows[] = {{0, 2, 1}, {0, 2, 257}, {1, 3, 256}, {0, 3, 0}};
    onv_plan_options options = {.alignment = 256};
    onv_plan plan = plan_with(rows, 4, &options);
    assert_int_equal(plan.height, 1024);
    for (int i = 0; i < 4; i++) assert_int_equal(plan.offsets[i] % 256, 0);
    onv_plan_cleanup(&plan);
}

TEST(wrong_input_is_an_error)
{
    onv_plan plan;
    onv_error err = {0};
    const onv_plan_buffer backward[] = {{0, 2, 1}, {5, 5, 1}};
    assert_int_equal(onv_plan_compute(backward, 2, NULL, &plan, &err), ONV_ERR_USAGE);
    assert_non_null(strstr(err.message, "buffer 1"));
    assert_null(plan.offsets);
    const onv_plan_buffer huge[] = {{0, 2, INT64_MAX}, {5, 6, 1}};
    err = (onv_error){0};
    assert_int_equal(onv_plan_compute(huge, 2, NULL, &plan, &err), ONV_ERR_OVERFLOW);
    const onv_plan_buffer large[] = {{0, 2, UINT64_MAX - 5}};
    onv_plan_options aligned = {.alignment = 4096};
    err = (onv_error){0};
    assert_int_equal(onv_plan_compute(large, 1, &aligned, &plan, &err), ONV_ERR_OVERFLOW);
    onv_plan_options unknown = {.strategy = "magic"};
    err = (onv_error){0};
    assert_int_equal(onv_plan_compute(huge, 1, &unknown, &plan, &err), ONV_ERR_USAGE);
    assert_non_null(strstr(err.message, "magic"));
    err = (onv_error){0};
    assert_int_equal(onv_plan_compute(huge, (size_t)ONV_PLAN_MAX_BUFFERS + 1, NULL, &plan, &err),
                     ONV_ERR_LIMIT);
    assert_int_equal(onv_plan_compute(backward, 2, NULL, &plan, NULL), ONV_ERR_USAGE);
}

/* A buffer may be as large as sizes go. */
TEST(sizes_up_to_63_bits)
{
    const onv_plan_buffer rows[] = {
        {0, UINT64_MAX, (uint64_t)1 << 61}, {7, 9, (uint64_t)1 << 61}, {8, 12, 3}};
    onv_plan plan = plan_with(rows, 3, NULL);
    assert_true(plan.optimal);
    assert_int_equal(plan.height, ((uint64_t)1 << 62) + 3);
    onv_plan_cleanup(&plan);
}

/* --- Properties -------------------------------------------------------------------------------- */

enum { KINDS = 5 };

static void make_any(instance *out, uint64_t seed, uint32_t n)
{
    out->count = 0;
    switch (seed % KINDS) {
    case 0: make_uniform(out, seed, n, n, n / 4 + 1, 50); break;
    case 1: make_uniform(out, seed, n, 12, 12, 5); break;
    case 2: make_jigsaw(out, seed, n, n, 100); break;
    case 3: make_full(out, seed, n / 3 + 1, 30); break;
    case 4: make_training(out, seed, n, 1 + (uint32_t)(seed % 3), seed % 2 == 0); break;
    }
}

TEST(small_plans_are_optimal)
{
    instance made = {0};
    for (uint64_t seed = 0; seed < 600; seed++) {
        made.count = 0;
        uint32_t n = 1 + (uint32_t)(seed % 8);
        make_uniform(&made, seed, n, 2 + (uint32_t)(seed % 7), 4, 1 + (uint32_t)(seed % 9));
        onv_plan plan = plan_with(made.at, made.count, NULL);
        assert_int_equal(plan.max_load, brute_load(made.at, made.count));
        assert_int_equal(plan.height, brute_height(made.at, made.count));
        assert_true(plan.optimal);
        onv_plan_cleanup(&plan);
    }
    onv_vec_cleanup(&made);
}

TEST(every_strategy_makes_valid_plans)
{
    instance made = {0};
    for (uint64_t seed = 0; seed < 60; seed++) {
        make_any(&made, seed, 20 + (uint32_t)(seed * 7 % 120));
        onv_plan all = plan_with(made.at, made.count, &(onv_plan_options){.effort = 2000000});
        assert_int_equal(all.max_load, brute_load(made.at, made.count));
        assert_true(all.height >= all.max_load);
        for (size_t i = 0; i < onv_n_planners; i++) {
            onv_plan_options one = {.effort = 2000000, .strategy = onv_planners[i].name};
            onv_plan plan = plan_with(made.at, made.count, &one);
            assert_false(brute_overlap(made.at, made.count, plan.offsets));
            /* What one strategy proves holds for the others. */
            assert_true(plan.height >= all.lower_bound && all.height >= plan.lower_bound);
            onv_plan_cleanup(&plan);
        }
        onv_plan_cleanup(&all);
    }
    onv_vec_cleanup(&made);
}

TEST(the_same_input_gives_the_same_plan)
{
    instance made = {0};
    for (uint64_t seed = 0; seed < 25; seed++) {
        make_any(&made, seed, 100);
        onv_plan_options options = {.effort = 5000000, .alignment = seed % 3 == 0 ? 64 : 0};
        onv_plan a = plan_with(made.at, made.count, &options);
        onv_plan b = plan_with(made.at, made.count, &options);
        assert_memory_equal(a.offsets, b.offsets, made.count * sizeof *a.offsets);
        assert_int_equal(a.nodes, b.nodes);
        assert_int_equal(a.work, b.work);
        assert_string_equal(a.strategy, b.strategy);
        onv_plan_cleanup(&a);
        onv_plan_cleanup(&b);
    }
    onv_vec_cleanup(&made);
}

TEST(more_effort_spends_no_more_than_asked)
{
    instance made = {0};
    make_jigsaw(&made, 3, 300, 300, 1000);
    for (uint64_t effort = 1; effort <= 100000000; effort *= 100) {
        onv_plan plan = plan_with(made.at, made.count, &(onv_plan_options){.effort = effort});
        /* One greedy placement is always made, and a run stops soon after its end. */
        assert_true(plan.work < effort + 2000000);
        onv_plan_cleanup(&plan);
    }
    onv_vec_cleanup(&made);
}

TEST(jigsaws_are_solved)
{
    instance made = {0};
    for (uint64_t seed = 0; seed < 20; seed++) {
        made.count = 0;
        make_jigsaw(&made, seed, 50, 40, 1000);
        onv_plan plan = plan_with(made.at, made.count, NULL);
        assert_int_equal(plan.height, 1000);
        onv_plan_cleanup(&plan);
    }
    onv_vec_cleanup(&made);
}

static bool refuse(void *context)
{
    ++*(int *)context;
    return true;
}

TEST(jigsaws_of_shortened_lives_are_solved)
{
    static const uint64_t seeds[] = {1, 5, 6};
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
        enum { N = 1000, STEPS = 1000000, CAPACITY = 1 << 20 };
        const onv_plan_options options = {.effort = 300000000};
        instance made = {0};
        onv_plan plan;
        onv_error err = {0};
        make_jigsaw(&made, seeds[i], N, STEPS, CAPACITY);
        shorten_lives(&made, seeds[i], 50);
        assert_int_equal(onv_plan_compute(made.at, made.count, &options, &plan, &err), ONV_OK);
        assert_int_equal(onv_plan_check(made.at, made.count, &options, &plan, &err), ONV_OK);
        assert_true(plan.height <= CAPACITY + CAPACITY / 32);
        onv_plan_cleanup(&plan);
        onv_vec_cleanup(&made);
    }
}

TEST(cancelling_keeps_the_best_plan)
{
    instance made = {0};
    make_full(&made, 400, 100, 100);
    int asked = 0;
    onv_plan_options options = {.cancelled = refuse, .cancel_context = &asked};
    onv_plan plan = plan_with(made.at, made.count, &options);
    assert_true(plan.stopped);
    assert_int_equal(asked, 1);
    onv_plan_cleanup(&plan);
    onv_vec_cleanup(&made);
}

TEST(large_graphs_are_near_the_bound)
{
    instance made = {0};
    make_training(&made, 1, 6000, 30, true);
    onv_plan plan = plan_with(made.at, made.count, NULL);
    assert_true(plan.height - plan.max_load <= plan.max_load / 1000 * 3);
    onv_plan_cleanup(&plan);
    onv_vec_cleanup(&made);
}

/* A full rectangle in pieces, three of ten left out: there is space, but no placement in one order uses it. */
TEST(large_parts_with_holes_are_repaired)
{
    instance made = {0};
    make_jigsaw(&made, 1, 8000, 1000000, 1 << 20);
    made.count = made.count / 10 * 7;
    shorten_lives(&made, 1, 50);
    onv_plan plan = plan_with(made.at, made.count, NULL);
    assert_true(plan.height - plan.max_load <= plan.max_load / 64);
    onv_plan_cleanup(&plan);
    onv_vec_cleanup(&made);
}

/* What is free under the ceiling lies in gaps that are too small each. */
TEST(small_gaps_become_one)
{
    instance made = {0};
    make_uniform(&made, 400, 4000, 2000, 40, 1000);
    onv_plan plan = plan_with(made.at, made.count, NULL);
    assert_true(plan.height - plan.max_load <= plan.max_load / 100);
    onv_plan_cleanup(&plan);
    onv_vec_cleanup(&made);
}

/* Greedy placements give up at their work limit; repair does not depend on that. */
TEST(dense_parts_are_repaired)
{
    instance made = {0};
    make_uniform(&made, 5, 100000, 100000, 1000, 1000);
    onv_plan plan = plan_with(made.at, made.count, NULL);
    assert_true(plan.height - plan.max_load <= plan.max_load / 1000 * 35);
    onv_plan_cleanup(&plan);
    onv_vec_cleanup(&made);
}

/* More conflicts than the exact search takes, and than are listed. */
TEST(large_graphs_of_long_lives_are_near_the_bound)
{
    for (int convnet = 0; convnet < 2; convnet++) {
        instance made = {0};
        make_training(&made, 1, 20000, 100, convnet != 0);
        onv_plan plan = plan_with(made.at, made.count, NULL);
        assert_int_equal(plan.nodes, 0);
        assert_true(plan.height - plan.max_load <= plan.max_load / 10000 * (convnet ? 6 : 10));
        assert_true(plan.work < 810000000); /* the effort, and a step of the repair that ends it */
        onv_plan_cleanup(&plan);
        onv_vec_cleanup(&made);
    }
}

/* Beyond the limits of the exact search, and large enough for the stretches of the skyline. */
TEST(larger_graphs_are_planned_without_search)
{
    instance made = {0};
    make_training(&made, 2, 34000, 100, true);
    onv_plan plan = plan_with(made.at, made.count, &(onv_plan_options){.effort = 100000000});
    assert_int_equal(plan.nodes, 0);
    assert_true(plan.height - plan.max_load <= plan.max_load / 1000 * 3);
    onv_plan_cleanup(&plan);
    onv_vec_cleanup(&made);
}

/* --- Intervals --------------------------------------------------------------------------------- */

static onv_buffer interval(uint64_t bytes, uint32_t first, uint32_t last, uint32_t becomes)
{
    onv_buffer buffer = onv_buffer_new(ONV_BUFFER_ACTIVATION, bytes, first, last, "");
    buffer.becomes = becomes;
    return buffer;
}

/* A timeline of these buffers, which stay where they are. */
static onv_timeline timeline_of(onv_buffer *buffers, size_t count, size_t n_steps)
{
    static onv_step steps[8];
    onv_timeline t = {0};
    onv_error err = {0};
    assert_true(n_steps <= 8);
    t.steps.at = steps;
    t.steps.count = n_steps;
    t.buffers.at = buffers;
    t.buffers.count = count;
    if (onv_timeline_check(&t, &err) != ONV_OK) fail_msg("%s", err.message);
    return t;
}

TEST(chains_have_one_place)
{
    /* Row 0 becomes row 1, and that row 2; row 3 comes after row 0 alone. */
    onv_buffer rows[] = {interval(8, 0, 1, 1), interval(8, 2, 3, 2),
                         interval(8, 4, 6, ONV_NO_BUFFER), interval(8, 2, 4, ONV_NO_BUFFER),
                         interval(0, 2, 2, ONV_NO_BUFFER)};
    onv_timeline t = timeline_of(rows, 5, 7);
    onv_plan plan;
    onv_placement p;
    onv_error err = {0};
    assert_int_equal(onv_plan_timeline(&t, NULL, &plan, &p, &err), ONV_OK);
    assert_int_equal(plan.height, 16);
    assert_int_equal(p.places.at[0].offset, p.places.at[1].offset);
    assert_int_equal(p.places.at[0].offset, p.places.at[2].offset);
    assert_int_not_equal(p.places.at[0].offset, p.places.at[3].offset);
    assert_int_equal(placement_check(&p, &t, &err), ONV_OK);
    onv_placement_cleanup(&p);
    onv_plan_cleanup(&plan);
}

TEST(last_steps_are_included)
{
    onv_buffer rows[] = {interval(8, 0, 2, ONV_NO_BUFFER), interval(8, 2, 3, ONV_NO_BUFFER),
                         interval(8, 3, 7, ONV_NO_BUFFER)};
    onv_timeline t = timeline_of(rows, 3, 8);
    onv_plan plan;
    onv_placement p;
    assert_int_equal(onv_plan_timeline(&t, NULL, &plan, &p, NULL), ONV_OK);
    assert_int_equal(plan.height, 16);
    assert_int_equal(p.places.at[0].offset, p.places.at[2].offset);
    onv_placement_cleanup(&p);
    onv_plan_cleanup(&plan);
}

/* Below everything, in their order; the plan is of the rest. */
TEST(weights_lie_at_the_bottom)
{
    onv_buffer rows[] = {interval(8, 0, 1, ONV_NO_BUFFER), interval(5, 0, 3, ONV_NO_BUFFER),
                         interval(7, 2, 3, ONV_NO_BUFFER), interval(3, 0, 3, ONV_NO_BUFFER)};
    rows[1].kind = ONV_BUFFER_WEIGHT;
    rows[3].kind = ONV_BUFFER_STATISTIC;
    onv_timeline t = timeline_of(rows, 4, 4);
    onv_plan plan;
    onv_placement p;
    assert_int_equal(onv_plan_timeline(&t, NULL, &plan, &p, NULL), ONV_OK);
    assert_int_equal(plan.height, 8);
    assert_int_equal(p.segments.count, 1);
    assert_int_equal(p.segments.at[0].bytes, 16);
    assert_int_equal(p.places.at[1].offset, 0);
    assert_int_equal(p.places.at[3].offset, 5);
    assert_int_equal(p.places.at[0].offset, 8);
    assert_int_equal(p.places.at[2].offset, 8);
    assert_int_equal(p.figures.allocated_peak, 16);
    onv_placement_cleanup(&p);
    onv_plan_cleanup(&plan);
}

TEST(what_is_within_a_container_lies_in_it)
{
    onv_step steps[4] = {0};
    onv_buffer rows[] = {onv_buffer_new(ONV_BUFFER_ACTIVATION, 16, 0, 1, "below"),
                         onv_buffer_new(ONV_BUFFER_POOL, 64, 0, 3, "block"),
                         onv_buffer_new(ONV_BUFFER_ACTIVATION, 24, 1, 2, "inside")};
    rows[2].within = 1;
    rows[2].offset = 40;
    onv_timeline t = {.steps = {steps, 4, 4}, .buffers = {rows, 3, 3}};
    onv_plan plan;
    onv_placement p;
    assert_int_equal(onv_plan_timeline(&t, NULL, &plan, &p, NULL), ONV_OK);
    assert_int_equal(plan.height, 80);
    assert_int_equal(p.places.at[2].offset, p.places.at[1].offset + 40);
    onv_placement_cleanup(&p);
    onv_plan_cleanup(&plan);
}

/* --- The check --------------------------------------------------------------------------------- */

/* The check must see each of these in a plan that was right. */
TEST(the_check_finds_what_is_wrong)
{
    const onv_plan_buffer rows[] = {{0, 4, 4}, {2, 6, 4}, {5, 8, 8}, {7, 9, 4}};
    onv_plan_options options = {.alignment = 4};
    onv_plan good = plan_with(rows, 4, &options);
    for (int i = 0; i < 9; i++) {
        uint64_t offsets[4];
        memcpy(offsets, good.offsets, sizeof offsets);
        onv_plan bad = good;
        bad.offsets = offsets;
        switch (i) {
        case 0: offsets[0] = offsets[1]; break;
        case 1: offsets[2] = offsets[1]; break;
        case 2: offsets[0] += 1; break;
        case 3: offsets[3] = UINT64_MAX - 3; break;
        case 4: bad.height += 4; break;
        case 5: bad.max_load -= 4; break;
        case 6: bad.lower_bound = bad.height + 4; break;
        case 7: bad.optimal = !bad.optimal; break;
        case 8: bad.fits = false; break;
        }
        onv_error err = {0};
        assert_int_not_equal(onv_plan_check(rows, 4, &options, &bad, &err), ONV_OK);
        assert_true(err.message[0] != '\0');
    }
    assert_int_not_equal(onv_plan_check(rows, 3, &options, &good, NULL), ONV_OK);
    onv_plan_cleanup(&good);
}

/* The sweep agrees with a comparison of all pairs, on plans of which many are wrong. */
TEST(the_check_agrees_with_all_pairs)
{
    instance made = {0};
    uint64_t random = 5;
    int wrong = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        make_any(&made, seed, 40);
        onv_plan plan = plan_with(made.at, made.count, &(onv_plan_options){.effort = 1});
        size_t row = (size_t)(next_random(&random) % made.count);
        if (made.at[row].size > 0)
            plan.offsets[row] = next_random(&random) % (plan.height - made.at[row].size + 1);
        plan.height = 0;
        for (size_t i = 0; i < made.count; i++) {
            uint64_t end = plan.offsets[i] + made.at[i].size;
            if (made.at[i].size > 0 && end > plan.height) plan.height = end;
        }
        /* Lower than the bound means an overlap; the figures are not what is tested here. */
        plan.lower_bound = plan.max_load;
        plan.optimal = plan.height == plan.lower_bound;
        bool overlap = brute_overlap(made.at, made.count, plan.offsets);
        if (overlap) wrong++;
        onv_status status = onv_plan_check(made.at, made.count, NULL, &plan, NULL);
        assert_int_equal(status == ONV_OK, !overlap);
        onv_plan_cleanup(&plan);
    }
    onv_vec_cleanup(&made);
    assert_in_range(wrong, 50, 390);
}

/* --- No memory --------------------------------------------------------------------------------- */

TEST(every_allocation_may_fail)
{
#ifdef ONV_FAULT_INJECTION
    instance made = {0};
    make_full(&made, 9, 12, 20);
    onv_buffer rows[] = {interval(8, 0, 1, 1), interval(8, 2, 3, ONV_NO_BUFFER)};
    onv_timeline t = timeline_of(rows, 2, 4);
    for (int kind = 0; kind < 4; kind++) {
        static const char *const strategies[] = {NULL, "exact", "pressure"};
        onv_plan_options options = {.effort = 300000,
                                    .strategy = kind < 3 ? strategies[kind] : NULL};
        onv_status status = ONV_ERR_MEMORY;
        long n = 0;
        for (; status != ONV_OK && n < 5000; n++) {
            onv_plan plan;
            onv_placement p = {0};
            onv_error err = {0};
            onv_heap_fail_after(n);
            if (kind == 3)
                status = onv_plan_timeline(&t, &options, &plan, &p, &err);
            else
                status = onv_plan_compute(made.at, made.count, &options, &plan, &err);
            if (status == ONV_OK && kind < 3)
                status = onv_plan_check(made.at, made.count, &options, &plan, &err);
            onv_heap_fail_after(-1);
            assert_true(status == ONV_OK || status == ONV_ERR_MEMORY);
            assert_int_equal(err.code, status);
            onv_placement_cleanup(&p);
            onv_plan_cleanup(&plan);
        }
        assert_int_equal(status, ONV_OK);
        assert_true(n > 3);
    }
    onv_vec_cleanup(&made);
#else
    skip();
#endif
}
