/* A trace of intervals holds, at every step, the bytes that are live. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "support/flow.h"
#include "timeline/trace.h"

enum { ROWS = 40, STEPS = 12 };

static void expect_event(const onv_event *e, bool is_free, uint32_t id, uint64_t bytes,
                         uint32_t step)
{
    assert_int_equal(e->is_free, is_free);
    assert_int_equal(e->id, id);
    assert_int_equal(e->bytes, bytes);
    assert_int_equal(e->step, step);
}

static void allocations_come_first_within_a_step(void **state)
{
    (void)state;
    static const onv_buffer rows[] = {{.bytes = 5, .first = 1, .last = 1, .label = "late"},
                                      {.bytes = 7, .first = 0, .last = 1},
                                      {.bytes = 9, .first = 1, .last = 2}};
    onv_trace trace = {0};
    assert_true(onv_trace_add_intervals(&trace, rows, 3, 3, 10));
    assert_int_equal(trace.count, 6);
    assert_int_equal(trace.n_ids, 13);
    expect_event(&trace.events[0], false, 11, 7, 0);
    expect_event(&trace.events[1], false, 10, 5, 1);
    expect_event(&trace.events[2], false, 12, 9, 1);
    expect_event(&trace.events[3], true, 10, 0, 1);
    expect_event(&trace.events[4], true, 11, 0, 1);
    expect_event(&trace.events[5], true, 12, 0, 2);
    assert_string_equal(trace.events[1].label, "late");
    assert_null(trace.events[0].label);
    onv_trace_cleanup(&trace);
    assert_int_equal(trace.count, 0);
}

static void traces_are_appended_to(void **state)
{
    (void)state;
    static const onv_buffer row = {.bytes = 3};
    onv_trace trace = {0};
    assert_true(onv_trace_alloc(&trace, 0, 100, 0, "weight"));
    assert_true(onv_trace_add_intervals(&trace, &row, 1, 1, 1));
    assert_true(onv_trace_add_intervals(&trace, NULL, 0, 1, 2));
    assert_true(onv_trace_free(&trace, 0, 0));
    assert_int_equal(trace.count, 4);
    assert_int_equal(trace.n_ids, 2);
    expect_event(&trace.events[0], false, 0, 100, 0);
    expect_event(&trace.events[3], true, 0, 0, 0);
    onv_trace_cleanup(&trace);
}

/* The most that is held while each step runs, by adding up; every id is freed once, after it was
 * allocated. */
static void add_up(const onv_trace *trace, uint32_t n_steps, uint64_t *most)
{
    uint64_t bytes[ROWS + 1] = {0}, now = 0;
    bool held[ROWS + 1] = {false};
    memset(most, 0, n_steps * sizeof *most);
    for (size_t i = 0; i < trace->count; i++) {
        const onv_event *e = &trace->events[i];
        assert_true(e->id <= ROWS && e->step < n_steps);
        assert_true(held[e->id] == e->is_free);
        assert_true(i == 0 || e->step >= trace->events[i - 1].step);
        held[e->id] = !e->is_free;
        if (e->is_free) {
            now -= bytes[e->id];
        } else {
            bytes[e->id] = e->bytes;
            now += e->bytes;
        }
        if (now > most[e->step]) most[e->step] = now;
    }
    assert_int_equal(now, 0);
}

static void the_running_sum_is_what_is_live(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int round = 0; round < 100; round++) {
        onv_buffer rows[ROWS];
        uint64_t live[STEPS] = {0}, most[STEPS];
        for (uint32_t i = 0; i < ROWS; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            uint32_t first = (uint32_t)(seed >> 40) % STEPS;
            uint32_t last = first + (uint32_t)(seed >> 50) % (STEPS - first);
            rows[i] = onv_buffer_new(ONV_BUFFER_ACTIVATION, seed >> 44, first, last, "");
            for (uint32_t s = first; s <= last; s++) live[s] += rows[i].bytes;
        }
        onv_trace trace = {0};
        assert_true(onv_trace_add_intervals(&trace, rows, ROWS, STEPS, 1));
        add_up(&trace, STEPS, most);
        for (uint32_t s = 0; s < STEPS; s++) {
            /* A step in which nothing begins or ends leaves no mark. */
            bool has_birth = false;
            for (uint32_t i = 0; i < ROWS; i++) has_birth |= rows[i].first == s;
            if (has_birth) assert_int_equal(most[s], live[s]);
        }
        onv_trace_cleanup(&trace);
    }
}

static void a_model_s_trace_has_its_live_bytes(void **state)
{
    (void)state;
    flow f;
    model *m = model_new(17);
    model_input(m, "x", "f32[10]");
    model_input(m, "late", "f32[20]");
    model_node(m, "Relu", "0", "x", "a", "");
    model_node(m, "Concat", "1", "a late", "b", "axis=0");
    model_node(m, "Neg", "2", "a", "unused", "");
    model_node(m, "Neg", "3", "b", "y", "");
    model_output(m, "y", "f32");
    flow_open_model(&f, m, NULL);
    onv_trace trace = {0};
    uint64_t most[4];
    assert_int_equal(f.live.n_steps, 4);
    assert_true(onv_trace_add_intervals(&trace, f.live.intervals, f.live.n_intervals, 4, 0));
    add_up(&trace, 4, most);
    static const uint64_t expected[] = {160, 240, 200, 240};
    for (uint32_t s = 0; s < 4; s++) {
        assert_int_equal(f.live.live_bytes[s], expected[s]);
        assert_int_equal(most[s], expected[s]);
    }
    onv_trace_cleanup(&trace);
    flow_close(&f);
    model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_come_first_within_a_step),
        cmocka_unit_test(traces_are_appended_to),
        cmocka_unit_test(the_running_sum_is_what_is_live),
        cmocka_unit_test(a_model_s_trace_has_its_live_bytes),
    };
    return cmocka_run_group_tests_name("timeline.trace", tests, NULL, NULL);
}
