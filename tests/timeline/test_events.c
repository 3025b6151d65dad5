/* The events of a timeline hold, at every step, the bytes that are live. */
#include "support/flow.h"
#include "support/test.h"
#include "timeline/timeline.h"

enum { ROWS = 40, STEPS = 12 };

static onv_timeline_events events_of(const onv_timeline *t)
{
    onv_timeline_events events = {0};
    onv_error err = {0};
    if (onv_timeline_list_events(t, &events, &err) != ONV_OK) fail_msg("%s", err.message);
    return events;
}

static onv_timeline_events events_of_rows(onv_buffer *rows, size_t count, size_t n_steps)
{
    static onv_step steps[STEPS];
    onv_timeline t = {.steps = {steps, n_steps, STEPS}, .buffers = {rows, count, count}};
    return events_of(&t);
}

static void expect_events(const onv_timeline_events *events, const onv_timeline_event *want,
                          size_t count)
{
    assert_int_equal(events->count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(events->at[i].buffer, want[i].buffer);
        assert_int_equal(events->at[i].step, want[i].step);
        assert_int_equal(events->at[i].is_free, want[i].is_free);
    }
}

/* Transient ones are freed at once, containers last. */
TEST(allocations_come_first_within_a_step)
{
    onv_buffer rows[] = {onv_buffer_new(ONV_BUFFER_POOL, 5, 1, 1, "late"),
                         onv_buffer_new(ONV_BUFFER_ACTIVATION, 7, 0, 1, NULL),
                         onv_buffer_new(ONV_BUFFER_WORKSPACE, 3, 1, 1, NULL),
                         onv_buffer_new(ONV_BUFFER_ACTIVATION, 9, 1, 2, NULL)};
    rows[2].is_transient = true;
    static const onv_timeline_event want[] = {{1, 0, false}, {0, 1, false}, {2, 1, false},
                                              {2, 1, true},  {3, 1, false}, {1, 1, true},
                                              {0, 1, true},  {3, 2, true}};
    onv_timeline_events events = events_of_rows(rows, 4, 3);
    expect_events(&events, want, 8);
    onv_vec_cleanup(&events);
}

/* The most that is held while each step runs, by adding up; every buffer is freed once, after it was
 * allocated. */
static void add_up(const onv_timeline_events *events, const onv_buffer *rows, uint32_t n_steps,
                   uint64_t *most)
{
    uint64_t now = 0;
    bool held[ROWS] = {false};
    memset(most, 0, n_steps * sizeof *most);
    for (size_t i = 0; i < events->count; i++) {
        const onv_timeline_event *e = &events->at[i];
        assert_true(e->buffer < ROWS && e->step < n_steps);
        assert_true(held[e->buffer] == e->is_free);
        assert_true(i == 0 || e->step >= events->at[i - 1].step);
        held[e->buffer] = !e->is_free;
        now += e->is_free ? -rows[e->buffer].bytes : rows[e->buffer].bytes;
        if (now > most[e->step]) most[e->step] = now;
    }
    assert_int_equal(now, 0);
}

TEST(the_running_sum_is_what_is_live)
{
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
        onv_timeline_events events = events_of_rows(rows, ROWS, STEPS);
        add_up(&events, rows, STEPS, most);
        for (uint32_t s = 0; s < STEPS; s++) {
            /* A step in which nothing begins or ends leaves no mark. */
            bool has_birth = false;
            for (uint32_t i = 0; i < ROWS; i++) has_birth |= rows[i].first == s;
            if (has_birth) assert_int_equal(most[s], live[s]);
        }
        onv_vec_cleanup(&events);
    }
}

TEST(a_model_s_events_have_its_live_bytes)
{
    OWNED_FLOW f;
    model *m =
        model_read(17, "in x f32[10]", "in late f32[20]", "a = Relu(x) 0",
                   "b = Concat(a late) 1 axis=0", "unused = Neg(a) 2", "y = Neg(b) 3", "out y f32");
    flow_open_model(&f, m, NULL);
    uint64_t most[4];
    assert_int_equal(f.live.timeline.steps.count, 4);
    onv_timeline_events events = events_of(&f.live.timeline);
    add_up(&events, f.live.timeline.buffers.at, 4, most);
    static const uint64_t expected[] = {160, 240, 200, 240};
    for (uint32_t s = 0; s < 4; s++) {
        assert_int_equal(f.live.live_bytes[s], expected[s]);
        assert_int_equal(most[s], expected[s]);
    }
    onv_vec_cleanup(&events);
    model_free(m);
}
