/* Passes of inference that come again: as if the timeline had them. */
#include "alloc/requests.h"
#include "support/test.h"

enum { STEPS = 40, PASSES = 4, SEEDS = 60 };

static uint32_t next_below(uint64_t *state, uint32_t limit)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)((*state >> 11) % limit);
}

static void add(onv_timeline *t, onv_buffer_kind kind, uint64_t bytes, uint32_t first,
                uint32_t last)
{
    assert_true(onv_vec_push(&t->buffers, onv_buffer_new(kind, bytes, first, last, "x")));
}

/* A weight, an input, and results of steps; some of the last ones stay to the end, as what a call returns. */
static onv_timeline passes_of(uint32_t seed, uint32_t passes)
{
    onv_timeline t = {0};
    uint32_t end = passes * STEPS - 1;
    for (uint32_t s = 0; s <= end; s++)
        assert_true(onv_vec_push(&t.steps, (onv_step){.node = ONV_NO_NODE}));
    add(&t, ONV_BUFFER_WEIGHT, UINT64_C(3) << 20, 0, end);
    add(&t, ONV_BUFFER_INPUT, UINT64_C(5) << 20, 0, end);
    for (uint32_t pass = 0; pass < passes; pass++) {
        uint64_t r = seed;
        for (uint32_t s = 0; s < STEPS; s++) {
            uint64_t bytes = 512 + next_below(&r, 12 << 20);
            uint32_t last = s + next_below(&r, 6);
            add(&t, ONV_BUFFER_ACTIVATION, bytes, pass * STEPS + s,
                pass * STEPS + (last < STEPS ? last : STEPS - 1));
        }
    }
    return t;
}

static onv_held_figures held(uint32_t seed, uint32_t passes, uint32_t later, uint64_t capacity)
{
    onv_error err = {0};
    onv_placement p;
    onv_alloc_options options = {.later_iterations = later, .capacity_bytes = capacity};
    onv_timeline t = passes_of(seed, passes);
    if (onv_alloc_run(&t, onv_alloc_model_find("torch"), &options, &p, &err) != ONV_OK)
        fail_msg("%s", err.message);
    onv_held_figures figures = p.figures;
    onv_placement_cleanup(&p);
    onv_timeline_cleanup(&t);
    return figures;
}

TEST(passes_come_again)
{
    int larger = 0;
    for (uint32_t seed = 1; seed <= SEEDS; seed++) {
        onv_held_figures once = held(seed, 1, 0, 0), whole = held(seed, PASSES, 0, 0);
        onv_held_figures again = held(seed, 1, PASSES - 1, 0);
        assert_int_equal(again.reserved_peak, whole.reserved_peak);
        assert_int_equal(again.allocated_peak, whole.allocated_peak);
        assert_int_equal(again.requested_peak, once.requested_peak);
        larger += again.reserved_peak > once.reserved_peak;
        uint64_t less = whole.reserved_peak - (UINT64_C(2) << 20);
        assert_int_equal(held(seed, 1, PASSES - 1, less).out_of_memory,
                         held(seed, PASSES, 0, less).out_of_memory);
    }
    assert_true(larger > 0);
}

/* In every third step, before what it makes. */
static void add_workspaces(onv_timeline *t, onv_requests *r, uint32_t seed)
{
    uint64_t random = seed + 1000;
    for (uint32_t s = 1; s < STEPS; s += 3) {
        onv_passing sizes = {.bytes = {0}};
        for (int i = 0; i < ONV_N_PASSING; i++)
            sizes.bytes[i] = (uint64_t)(s > STEPS / 2 ? i : 1) * next_below(&random, 30 << 20);
        assert_true(onv_vec_push(&r->passing, sizes));
        add(t, ONV_BUFFER_WORKSPACE, 0, s, s);
        t->buffers.at[t->buffers.count - 1].is_transient = true;
    }
}

static onv_held_figures held_with(onv_timeline *t, const onv_requests *r, unsigned which,
                                  const onv_alloc_options *options)
{
    onv_error err = {0};
    onv_placement p;
    for (size_t i = 0, n = 0; i < t->buffers.count; i++)
        if (t->buffers.at[i].is_transient) t->buffers.at[i].bytes = r->passing.at[n++].bytes[which];
    if (onv_alloc_run(t, onv_alloc_model_find("torch"), options, &p, &err) != ONV_OK)
        fail_msg("%s", err.message);
    onv_held_figures figures = p.figures;
    onv_placement_cleanup(&p);
    return figures;
}

/* What is served once for both up to where they differ is what two runs take; */
TEST(two_choices_are_served_as_two_runs)
{
    static const unsigned pairs[][2] = {{0, 1}, {0, 2}, {1, 1}, {2, 0}};
    int apart = 0;
    for (uint32_t i = 0; i < SEEDS; i++) {
        const unsigned *which = pairs[i % 4];
        const onv_alloc_options options = {.later_iterations = i % 3};
        onv_error err = {0};
        onv_requests r = {.n_ids = 0};
        onv_held_figures two[2] = {{.reserved_peak = 0}, {.reserved_peak = 0}};
        onv_timeline t = passes_of(i + 1, 1);
        add_workspaces(&t, &r, i);
        if (onv_requests_list(&t, &r, &err) != ONV_OK ||
            onv_requests_serve(&r, which, 2, onv_alloc_model_find("torch"), &options, two, &err) !=
                ONV_OK)
            fail_msg("%s", err.message);
        for (int k = 0; k < 2; k++) {
            const onv_held_figures one = held_with(&t, &r, which[k], &options);
            assert_int_equal(two[k].reserved_peak, one.reserved_peak);
            assert_int_equal(two[k].allocated_peak, one.allocated_peak);
        }
        apart += two[0].reserved_peak != two[1].reserved_peak;
        onv_requests_cleanup(&r);
        onv_timeline_cleanup(&t);
    }
    assert_true(apart > 0);
}
