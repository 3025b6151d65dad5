/* Faults planted in timelines and placements: each is found, and called by its name. */
#include "device/make_replay.h"
#include "support/held.h"
#include "support/test.h"

static onv_device device;

/* A chain with a branch: sizes are such that offsets and segments differ. */
static void open_model(flow *f)
{
    OWNED_MODEL m = model_read(
        17, "in x f32[4,64,32,32]", "weight w f32[64,64,3,3]", "a = Conv(x w) conv1 pads=[1,1,1,1]",
        "b = Sigmoid(a) gate1", "c = Conv(b w) conv2 pads=[1,1,1,1]", "d = Tanh(c) gate",
        "e = Mul(c d) mul", "y = MaxPool(e) pool kernel_shape=[2,2] strides=[2,2]", "out y f32");
    flow_open_model(f, m, NULL);
}

static void make(flow *f, const char *runtime, onv_replay *replay)
{
    onv_error err = {0};
    if (make_replay(f, runtime, replay, &err) != ONV_OK) fail_msg("%s", err.message);
}

/* --- Looking into a replay --------------------------------------------------------------------- */

static uint32_t buffer_of(const onv_replay *replay, const char *label)
{
    for (uint32_t i = 0; i < replay->timeline.buffers.count; i++)
        if (strcmp(replay->timeline.buffers.at[i].label, label) == 0) return i;
    fail_msg("no buffer '%s'", label);
    return 0;
}

static onv_place *place_of(const onv_replay *replay, const char *label)
{
    return &replay->placement.places.at[buffer_of(replay, label)];
}

static onv_taken_segment *segment_of(const onv_replay *replay, const char *label)
{
    return &replay->placement.segments.at[place_of(replay, label)->segment];
}

static size_t event_of(const onv_replay *replay, const char *label, bool is_free)
{
    uint32_t buffer = buffer_of(replay, label);
    const onv_timeline_events *events = &replay->placement.events;
    for (size_t i = 0; i < events->count; i++)
        if (events->at[i].buffer == buffer && events->at[i].is_free == is_free) return i;
    fail_msg("no event");
    return 0;
}

/* Segments change where they did, though an event more or less stands before. */
static void move_segments(onv_replay *replay, size_t from, bool up)
{
    for (size_t i = 0; i < replay->placement.segments.count; i++) {
        onv_taken_segment *s = &replay->placement.segments.at[i];
        if (s->taken >= from) s->taken = up ? s->taken + 1 : s->taken - 1;
        if (s->returned >= from) s->returned = up ? s->returned + 1 : s->returned - 1;
    }
}

static void drop(onv_replay *replay, size_t event)
{
    onv_timeline_events *events = &replay->placement.events;
    memmove(events->at + event, events->at + event + 1,
            (events->count - event - 1) * sizeof *events->at);
    events->count--;
    move_segments(replay, event + 1, false);
}

/* The event comes before the one at `at`, in its step. */
static void insert(onv_replay *replay, size_t at, const char *label, bool is_free)
{
    onv_timeline_events *events = &replay->placement.events;
    assert_true(onv_vec_reserve(events, 1));
    onv_timeline_event event = {buffer_of(replay, label), events->at[at].step, is_free};
    memmove(events->at + at + 1, events->at + at, (events->count - at) * sizeof *events->at);
    events->at[at] = event;
    events->count++;
    move_segments(replay, at, true);
}

/* --- Faults ------------------------------------------------------------------------------------ */

/* "c" lives while "d" is made of it. */
static void two_on_the_same_bytes(onv_replay *r)
{
    place_of(r, "d")->offset = place_of(r, "c")->offset;
}

static void an_offset_a_little_off(onv_replay *r)
{
    place_of(r, "d")->offset = place_of(r, "c")->offset + 4096;
}

static void an_offset_beyond_the_end(onv_replay *r)
{
    place_of(r, "d")->offset = segment_of(r, "d")->bytes - 64;
}

static void a_weight_beyond_its_block(onv_replay *r)
{
    place_of(r, "w")->offset = segment_of(r, "w")->bytes - 64;
}

static void a_lifetime_cut_short(onv_replay *r)
{
    drop(r, event_of(r, "c", true));
    insert(r, event_of(r, "d", false), "c", true);
}

static void a_size_too_large(onv_replay *r)
{
    r->timeline.buffers.at[buffer_of(r, "w")].bytes =
        segment_of(r, "w")->bytes - place_of(r, "w")->offset;
}

static void a_second_birth(onv_replay *r)
{
    insert(r, event_of(r, "b", true), "b", false);
}

static void a_birth_after_death(onv_replay *r)
{
    insert(r, event_of(r, "b", true) + 1, "b", false);
}

static void a_death_that_is_missing(onv_replay *r)
{
    drop(r, event_of(r, "b", true));
}

static void a_birth_that_is_missing(onv_replay *r)
{
    drop(r, event_of(r, "e", false));
}

static void both_are_missing(onv_replay *r)
{
    drop(r, event_of(r, "e", true));
    drop(r, event_of(r, "e", false));
}

static void a_second_death(onv_replay *r)
{
    insert(r, event_of(r, "b", true) + 1, "b", true);
}

static void a_segment_too_small(onv_replay *r)
{
    segment_of(r, "e")->bytes /= 4;
}

static void a_segment_freed_early(onv_replay *r)
{
    segment_of(r, "c")->returned = event_of(r, "d", false);
}

static void a_segment_freed_before_it_is_there(onv_replay *r)
{
    segment_of(r, "c")->returned = segment_of(r, "c")->taken - 1;
}

static void a_segment_never_freed(onv_replay *r)
{
    segment_of(r, "c")->returned = SIZE_MAX;
}

static void a_segment_never_taken(onv_replay *r)
{
    segment_of(r, "c")->taken = SIZE_MAX;
}

static void a_segment_taken_late(onv_replay *r)
{
    segment_of(r, "c")->taken++;
}

static void a_segment_that_there_is_not(onv_replay *r)
{
    place_of(r, "c")->segment = 1000;
}

static void events_of_two_swapped(onv_replay *r)
{
    uint32_t c = buffer_of(r, "c"), d = buffer_of(r, "d");
    size_t birth = event_of(r, "c", false), death = event_of(r, "d", true);
    r->placement.events.at[birth].buffer = d;
    r->placement.events.at[death].buffer = c;
}

static void places_of_two_swapped(onv_replay *r)
{
    onv_place *c = place_of(r, "c"), *w = place_of(r, "w"), place = *c;
    *c = *w;
    *w = place;
}

static void an_unknown_buffer(onv_replay *r)
{
    r->placement.events.at[event_of(r, "d", true)].buffer = UINT32_MAX;
}

static void an_unknown_step(onv_replay *r)
{
    r->placement.events.at[event_of(r, "d", true)].step = r->placement.n_steps;
}

static void a_step_counted_less(onv_replay *r)
{
    r->placement.reserved_at[2] -= 512;
}

static void a_figure_of_something_else(onv_replay *r)
{
    r->figure += 512;
}

static const struct mutation {
    const char *name, *runtime;
    void (*plant)(onv_replay *replay);
    onv_fault_kind kind;
    const char *buffer; /* that is named */
} mutations[] = {
    {"overlap", "arena", two_on_the_same_bytes, ONV_FAULT_OVERLAP, "c"},
    {"overlap in a cache", "torch", two_on_the_same_bytes, ONV_FAULT_OVERLAP, "c"},
    {"overlap in part", "arena", an_offset_a_little_off, ONV_FAULT_OVERLAP, "c"},
    {"offset", "arena", an_offset_beyond_the_end, ONV_FAULT_OUTSIDE, "d"},
    {"offset in a container", "ort", a_weight_beyond_its_block, ONV_FAULT_OUTSIDE, "w"},
    {"short lifetime", "arena", a_lifetime_cut_short, ONV_FAULT_LIVE_DIFFERS, NULL},
    {"short lifetime, raw", "ideal", a_lifetime_cut_short, ONV_FAULT_LIVE_DIFFERS, NULL},
    {"size", "arena", a_size_too_large, ONV_FAULT_OVERLAP, "w"},
    {"double birth", "arena", a_second_birth, ONV_FAULT_BORN_TWICE, "b"},
    {"rebirth", "arena", a_birth_after_death, ONV_FAULT_BORN_TWICE, "b"},
    {"missing death", "arena", a_death_that_is_missing, ONV_FAULT_NEVER_FREED, "b"},
    {"missing birth", "arena", a_birth_that_is_missing, ONV_FAULT_USE_BEFORE, "e"},
    {"missing buffer", "arena", both_are_missing, ONV_FAULT_LIVE_DIFFERS, NULL},
    {"double death", "arena", a_second_death, ONV_FAULT_FREED_TWICE, "b"},
    {"small segment", "arena", a_segment_too_small, ONV_FAULT_OUTSIDE, NULL},
    {"small segment, raw", "ideal", a_segment_too_small, ONV_FAULT_OUTSIDE, "e"},
    {"segment freed early", "arena", a_segment_freed_early, ONV_FAULT_PULLED_AWAY, NULL},
    {"segment freed early, pool", "async", a_segment_freed_early, ONV_FAULT_PULLED_AWAY, "c"},
    {"segment freed first", "ideal", a_segment_freed_before_it_is_there, ONV_FAULT_FREED_TWICE,
     NULL},
    {"segment kept", "ideal", a_segment_never_freed, ONV_FAULT_NEVER_FREED, NULL},
    {"segment kept, pool", "async", a_segment_never_freed, ONV_FAULT_NEVER_FREED, NULL},
    {"segment missing", "ideal", a_segment_never_taken, ONV_FAULT_NO_SEGMENT, "c"},
    {"segment late", "ideal", a_segment_taken_late, ONV_FAULT_NO_SEGMENT, "c"},
    {"segment unknown", "arena", a_segment_that_there_is_not, ONV_FAULT_NO_SEGMENT, "c"},
    {"swapped events", "arena", events_of_two_swapped, ONV_FAULT_USE_BEFORE, "c"},
    {"swapped places", "arena", places_of_two_swapped, ONV_FAULT_OVERLAP, NULL},
    {"unknown buffer", "arena", an_unknown_buffer, ONV_FAULT_UNKNOWN, NULL},
    {"unknown step", "arena", an_unknown_step, ONV_FAULT_UNKNOWN, NULL},
    {"prediction too low", "ideal", a_step_counted_less, ONV_FAULT_HELD_DIFFERS, NULL},
    {"another figure", "torch", a_figure_of_something_else, ONV_FAULT_FIGURE, NULL},
};

/* Runs it; the result's own memory is gone when this returns. */
static onv_replay_result run(const onv_replay *replay)
{
    onv_error err = {0};
    onv_replay_result r;
    if (onv_replay_run(replay, &device, NULL, &r, &err) != ONV_OK) fail_msg("%s", err.message);
    onv_replay_result_cleanup(&r);
    return r;
}

static bool has_fault(const onv_replay_result *r, const onv_replay *replay, onv_fault_kind kind,
                      const char *buffer)
{
    const onv_timeline *t = &replay->timeline;
    for (uint64_t i = 0; i < r->n_faults && i < ONV_REPLAY_MAX_FAULTS; i++) {
        const onv_fault *fault = &r->faults[i];
        if (fault->kind != kind) continue;
        if (buffer == NULL) return true;
        if (fault->buffer < t->buffers.count &&
            strcmp(t->buffers.at[fault->buffer].label, buffer) == 0 &&
            strstr(fault->text, buffer) != NULL)
            return true;
    }
    return false;
}

TEST(every_planted_fault_is_found_and_named)
{
    flow f;
    open_model(&f);
    for (size_t i = 0; i < sizeof mutations / sizeof mutations[0]; i++) {
        const struct mutation *m = &mutations[i];
        onv_replay replay;
        make(&f, m->runtime, &replay);
        onv_replay_result sound = run(&replay);
        if (!sound.agrees) fail_msg("%s before: %s", m->name, sound.faults[0].text);
        m->plant(&replay);
        onv_replay_result r = run(&replay);
        if (r.agrees) fail_msg("%s: nothing was found", m->name);
        if (!has_fault(&r, &replay, m->kind, m->buffer))
            fail_msg("%s: no %s of '%s', but %s: %s", m->name, onv_fault_name(m->kind),
                     m->buffer != NULL ? m->buffer : "any", onv_fault_name(r.faults[0].kind),
                     r.faults[0].text);
        onv_replay_cleanup(&replay);
    }
    flow_close(&f);
}

/* A wrong placement is refused before it is replayed, too, unless only contents can tell. */
TEST(the_check_finds_what_needs_no_device)
{
    flow f;
    open_model(&f);
    for (size_t i = 0; i < sizeof mutations / sizeof mutations[0]; i++) {
        const struct mutation *m = &mutations[i];
        onv_error err = {0};
        onv_replay replay;
        bool visible = m->kind != ONV_FAULT_OVERLAP && m->kind != ONV_FAULT_FIGURE;
        make(&f, m->runtime, &replay);
        if (placement_check(&replay.placement, &replay.timeline, &err) != ONV_OK)
            fail_msg("%s before: %s", m->name, err.message);
        m->plant(&replay);
        if (visible && placement_check(&replay.placement, &replay.timeline, &err) == ONV_OK)
            fail_msg("%s passes", m->name);
        onv_replay_cleanup(&replay);
    }
    flow_close(&f);
}

/* The overlap tells which buffers, in which steps, and where. */
TEST(an_overlap_is_described)
{
    flow f;
    onv_replay replay;
    open_model(&f);
    make(&f, "arena", &replay);
    an_offset_a_little_off(&replay);
    onv_replay_result r = run(&replay);
    assert_true(r.n_faults >= 1);
    assert_int_equal(r.faults[0].kind, ONV_FAULT_OVERLAP);
    assert_int_equal(r.faults[0].offset, 4096);
    assert_string_equal(replay.timeline.buffers.at[r.faults[0].other].label, "d");
    assert_int_equal(r.faults[0].step, 4); /* "mul" reads it last */
    assert_non_null(strstr(r.faults[0].text, "'c', written in step 2"));
    assert_non_null(strstr(r.faults[0].text, "'d' wrote in step 3"));
    onv_replay_cleanup(&replay);
    flow_close(&f);
}

/* The planner was told that "x" dies a step before it does, and gave its place away. */
TEST(a_plan_for_shorter_lives_is_found)
{
    const onv_buffer buffers[] = {onv_buffer_new(ONV_BUFFER_ACTIVATION, 4096, 0, 1, "x"),
                                  onv_buffer_new(ONV_BUFFER_ACTIVATION, 4096, 1, 2, "y"),
                                  onv_buffer_new(ONV_BUFFER_ACTIVATION, 4096, 2, 3, "z")};
    onv_replay replay;
    onv_error err = {0};
    make_planned(buffers, 3, 4, &replay);
    onv_replay_result r = run(&replay);
    assert_true(r.agrees);
    replay.timeline.buffers.at[0].last = 2;
    onv_vec_cleanup(&replay.placement.events);
    assert_int_equal(onv_timeline_list_events(&replay.timeline, &replay.placement.events, &err),
                     ONV_OK);
    r = run(&replay);
    assert_true(has_fault(&r, &replay, ONV_FAULT_OVERLAP, "x"));
    assert_non_null(strstr(r.faults[0].text, "'z' wrote in step 2"));
    onv_replay_cleanup(&replay);
}

/* Of a step with workspaces that come and go, the most is held; they do not add up. */
TEST(transient_buffers_take_turns)
{
    onv_buffer buffers[] = {onv_buffer_new(ONV_BUFFER_WORKSPACE, 3000, 0, 0, "first"),
                            onv_buffer_new(ONV_BUFFER_ACTIVATION, 4096, 0, 1, "x"),
                            onv_buffer_new(ONV_BUFFER_WORKSPACE, 100, 0, 0, "second")};
    buffers[0].is_transient = buffers[2].is_transient = true;
    onv_replay replay;
    make_planned(buffers, 3, 2, &replay);
    onv_replay_result r = run(&replay);
    if (!r.agrees) fail_msg("%s", r.faults[0].text);
    assert_int_equal(r.measured_live_bytes, 4196);
    assert_int_equal(r.checked_buffers, 3);
    onv_replay_cleanup(&replay);
}

/* Large buffers are written and checked in stretches. */
TEST(a_fault_far_inside_is_found)
{
    enum { LARGE = 300 << 20, FAR = 290000001 };
    const onv_buffer buffers[] = {onv_buffer_new(ONV_BUFFER_ACTIVATION, LARGE, 0, 1, "large"),
                                  onv_buffer_new(ONV_BUFFER_ACTIVATION, 77, 1, 1, "small")};
    onv_replay replay;
    make_planned(buffers, 2, 2, &replay);
    onv_replay_result r = run(&replay);
    assert_true(r.agrees);
    place_of(&replay, "small")->offset = place_of(&replay, "large")->offset + FAR;
    r = run(&replay);
    assert_int_equal(r.n_faults, 1);
    assert_int_equal(r.faults[0].kind, ONV_FAULT_OVERLAP);
    assert_int_equal(r.faults[0].offset, FAR);
    onv_replay_cleanup(&replay);
}

static int setup(void **state)
{
    onv_error err = {0};
    return onv_device_open(&device, onv_device_kind_find("host"), 0, &err) != ONV_OK;
}

static int teardown(void **state)
{
    onv_device_close(&device);
    return 0;
}

TEST_GROUP(setup, teardown)
