/* Offset planning: every plan is valid, none is below its bound, small ones are as good as brute
 * force, results are the same every time, and full rectangles are packed without a gap. */
#include "plan/instances.h"
#include "support/test.h"

static onv_plan plan_of(const instance *in, const onv_plan_options *options)
{
    onv_plan plan;
    onv_error error = {0};
    if (onv_plan_compute(in->at, in->count, options, &plan, &error) != ONV_OK)
        fail_msg("%s", error.message);
    if (onv_plan_check(in->at, in->count, options, &plan, &error) != ONV_OK)
        fail_msg("%s", error.message);
    assert_true(plan.height >= plan.lower_bound);
    assert_true(plan.lower_bound >= plan.max_load);
    assert_int_equal(plan.optimal, plan.height == plan.lower_bound);
    return plan;
}

TEST(random_plans_are_valid_and_repeatable)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        instance in = {0};
        make_uniform(&in, seed, 2 + (uint32_t)(seed * 7 % 120), 40, 12, 1000);
        onv_plan_options options = {.effort = 20000, .alignment = seed % 3 == 0 ? 64 : 0};
        onv_plan a = plan_of(&in, &options), b = plan_of(&in, &options);
        assert_int_equal(a.height, b.height);
        assert_memory_equal(a.offsets, b.offsets, a.count * sizeof *a.offsets);
        onv_plan_cleanup(&a);
        onv_plan_cleanup(&b);
        onv_vec_cleanup(&in);
    }
}

/* --- Brute force -------------------------------------------------------------------------------- */

static bool overlap(const onv_plan_buffer *a, const onv_plan_buffer *b)
{
    return a->lower < b->upper && b->lower < a->upper;
}

/* Some optimal plan places the buffers one by one, each as low as those before it allow: trying
 * every sequence finds it. */
static void place_rest(const instance *in, uint64_t *offsets, bool *placed, size_t count,
                       uint64_t height, uint64_t *best)
{
    if (height >= *best) return;
    if (count == in->count) {
        *best = height;
        return;
    }
    for (size_t i = 0; i < in->count; i++) {
        if (placed[i]) continue;
        uint64_t at = 0;
        bool moved = true;
        while (moved) {
            moved = false;
            for (size_t k = 0; k < in->count; k++) {
                if (!placed[k] || !overlap(&in->at[i], &in->at[k])) continue;
                uint64_t end = offsets[k] + in->at[k].size;
                if (at < end && offsets[k] < at + in->at[i].size) {
                    at = end;
                    moved = true;
                }
            }
        }
        placed[i] = true;
        offsets[i] = at;
        uint64_t top = at + in->at[i].size;
        place_rest(in, offsets, placed, count + 1, top > height ? top : height, best);
        placed[i] = false;
    }
}

TEST(small_plans_equal_brute_force)
{
    for (uint64_t seed = 100; seed < 300; seed++) {
        instance in = {0};
        uint64_t offsets[8] = {0}, best = UINT64_MAX;
        bool placed[8] = {false};
        make_uniform(&in, seed, 2 + (uint32_t)(seed % 6), 8, 5, 20);
        onv_plan plan = plan_of(&in, NULL);
        place_rest(&in, offsets, placed, 0, 0, &best);
        assert_int_equal(plan.height, best);
        assert_true(plan.optimal);
        onv_plan_cleanup(&plan);
        onv_vec_cleanup(&in);
    }
}

TEST(full_rectangles_have_no_gap)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        instance in = {0};
        make_jigsaw(&in, seed, 40, 30, 1000);
        onv_plan_options options = {.capacity = 1000};
        onv_plan plan = plan_of(&in, &options);
        assert_true(plan.fits);
        assert_int_equal(plan.height, 1000);
        onv_plan_cleanup(&plan);
        onv_vec_cleanup(&in);
    }
}

TEST(perfect_packings_are_found)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        for (uint32_t n = 50; n <= 300; n += 50) {
            instance in = {0};
            if (seed % 2 == 0)
                make_jigsaw(&in, seed, n, 100 * n, 1 << 20);
            else
                make_pinwheels(&in, seed, n, 100 * n, 1 << 20);
            onv_plan plan = plan_of(&in, NULL);
            assert_int_equal(plan.height, 1 << 20);
            assert_true(plan.optimal);
            onv_plan_cleanup(&plan);
            onv_vec_cleanup(&in);
        }
    }
}

/* One after another in time, so that two parts share the effort. */
static void append_later(instance *in, const instance *other, uint64_t by)
{
    for (size_t i = 0; i < other->count; i++) {
        onv_plan_buffer moved = other->at[i];
        moved.lower += by;
        moved.upper += by;
        assert_true(onv_vec_push(in, moved));
    }
}

TEST(more_effort_is_never_worse)
{
    int improved = 0;
    for (uint64_t seed = 1; seed <= 16; seed++) {
        instance in = {0}, other = {0};
        uint32_t n = 60 + 10 * (uint32_t)seed;
        if (seed % 4 == 0) make_uniform(&in, seed, n, 40, 12, 1000);
        if (seed % 4 == 1) make_pinwheels(&in, seed, n, n, 1000);
        if (seed % 4 == 2) make_jigsaw(&in, seed, n, n, 1000);
        if (seed % 4 == 3) make_full(&in, seed, 40, 500);
        make_pinwheels(&other, seed + 100, n, n, 1000);
        if (seed % 3 == 0) append_later(&in, &other, 1000);
        uint64_t last = UINT64_MAX, first = 0;
        for (uint64_t effort = 1; effort <= 10000000; effort = effort * 7 + 1000) {
            onv_plan plan = plan_of(&in, &(onv_plan_options){.effort = effort});
            assert_true(plan.height <= last);
            last = plan.height;
            if (effort == 1) first = last;
            onv_plan_cleanup(&plan);
        }
        improved += last < first;
        onv_vec_cleanup(&other);
        onv_vec_cleanup(&in);
    }
    assert_true(improved > 8); /* else the comparison says nothing */
}

TEST(a_capacity_below_the_load_cannot_be_met)
{
    instance in = {0};
    make_full(&in, 3, 20, 500);
    onv_plan_options options = {.capacity = 499};
    onv_plan plan = plan_of(&in, &options);
    assert_false(plan.fits);
    onv_plan_cleanup(&plan);
    onv_vec_cleanup(&in);
}

TEST(large_training_graphs_come_close_to_the_bound)
{
    instance in = {0};
    make_training(&in, 7, 20000, 1, false);
    onv_plan plan = plan_of(&in, NULL);
    /* Three thousandths. */
    assert_true(plan.height - plan.lower_bound <= plan.lower_bound / 1000 * 3);
    onv_plan_cleanup(&plan);
    onv_vec_cleanup(&in);
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
