/* Faults planted in scripts, and in the device: each is found, and called by its name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "device/replay.h"
#include "runtime/runtime.h"
#include "support/flow.h"

static onv_device device;

/* A chain with a branch: sizes are such that offsets and segments differ. */
static void open_model(flow *f)
{
    model *m = model_new(17);
    model_input(m, "x", "f32[4,64,32,32]");
    model_weight(m, "w", "f32[64,64,3,3]");
    model_node(m, "Conv", "conv1", "x w", "a", "pads=[1,1,1,1]");
    model_node(m, "Sigmoid", "gate1", "a", "b", "");
    model_node(m, "Conv", "conv2", "b w", "c", "pads=[1,1,1,1]");
    model_node(m, "Tanh", "gate", "c", "d", "");
    model_node(m, "Mul", "mul", "c d", "e", "");
    model_node(m, "MaxPool", "pool", "e", "y", "kernel_shape=[2,2] strides=[2,2]");
    model_output(m, "y", "f32");
    flow_open_model(f, m, NULL);
    model_free(m);
}

static void make_script(flow *f, const char *runtime, onv_script *script)
{
    onv_error err = {0};
    onv_runtime_result result = flow_run(f, runtime, NULL);
    if (onv_runtime_script(&result, &f->model, &f->live, NULL, script, &err) != ONV_OK)
        fail_msg("%s", err.message);
}

/* --- Looking into a script --------------------------------------------------------------------- */

static uint32_t buffer_of(const onv_script *script, const char *label)
{
    for (uint32_t i = 0; i < script->buffers.count; i++)
        if (strcmp(script->buffers.at[i].label, label) == 0) return i;
    fail_msg("no buffer '%s'", label);
    return 0;
}

static size_t event_of(const onv_script *script, onv_script_act act, uint32_t index)
{
    for (size_t i = 0; i < script->events.count; i++)
        if (script->events.at[i].act == act && script->events.at[i].index == index) return i;
    fail_msg("no event");
    return 0;
}

static void drop(onv_script *script, size_t event)
{
    onv_script_event *at = script->events.at;
    memmove(at + event, at + event + 1, (script->events.count - event - 1) * sizeof *at);
    script->events.count--;
}

/* The event comes before the one at `place`, in its step. */
static void insert(onv_script *script, size_t place, onv_script_event event)
{
    assert_true(onv_vec_reserve(&script->events, 1));
    onv_script_event *at = script->events.at;
    event.step = at[place].step;
    memmove(at + place + 1, at + place, (script->events.count - place) * sizeof *at);
    at[place] = event;
    script->events.count++;
}

static onv_script_event birth_of(uint32_t buffer)
{
    return (onv_script_event){.index = buffer, .act = ONV_SCRIPT_BIRTH};
}

/* --- Faults ------------------------------------------------------------------------------------ */

/* "c" lives while "d" is made of it. */
static void two_on_the_same_bytes(onv_script *s)
{
    s->buffers.at[buffer_of(s, "d")].offset = s->buffers.at[buffer_of(s, "c")].offset;
}

static void an_offset_a_little_off(onv_script *s)
{
    s->buffers.at[buffer_of(s, "d")].offset = s->buffers.at[buffer_of(s, "c")].offset + 4096;
}

static void an_offset_beyond_the_end(onv_script *s)
{
    const onv_script_buffer *d = &s->buffers.at[buffer_of(s, "d")];
    s->buffers.at[buffer_of(s, "d")].offset = s->segments.at[d->segment].bytes - 64;
}

/* Its memory is given to a later one, which its reader then sees. */
static void a_lifetime_cut_short(onv_script *s)
{
    uint32_t c = buffer_of(s, "c"), d = buffer_of(s, "d");
    size_t death = event_of(s, ONV_SCRIPT_DEATH, c), read = event_of(s, ONV_SCRIPT_READ, c);
    drop(s, death > read ? death : read);
    insert(s, event_of(s, ONV_SCRIPT_BIRTH, d),
           (onv_script_event){.index = c, .act = ONV_SCRIPT_DEATH});
}

static void a_size_too_large(onv_script *s)
{
    onv_script_buffer *w = &s->buffers.at[buffer_of(s, "w")];
    w->bytes = s->segments.at[w->segment].bytes - w->offset;
}

static void a_size_too_small(onv_script *s)
{
    s->buffers.at[buffer_of(s, "e")].bytes -= 256;
}

static void a_second_birth(onv_script *s)
{
    uint32_t b = buffer_of(s, "b");
    insert(s, event_of(s, ONV_SCRIPT_READ, b), birth_of(b));
}

static void a_birth_after_death(onv_script *s)
{
    uint32_t b = buffer_of(s, "b");
    insert(s, event_of(s, ONV_SCRIPT_DEATH, b) + 1, birth_of(b));
}

static void a_death_that_is_missing(onv_script *s)
{
    drop(s, event_of(s, ONV_SCRIPT_DEATH, buffer_of(s, "b")));
}

static void a_birth_that_is_missing(onv_script *s)
{
    drop(s, event_of(s, ONV_SCRIPT_BIRTH, buffer_of(s, "e")));
}

static void a_read_that_is_missing(onv_script *s)
{
    drop(s, event_of(s, ONV_SCRIPT_READ, buffer_of(s, "e")));
}

static void a_read_after_the_free(onv_script *s)
{
    uint32_t b = buffer_of(s, "b");
    size_t read = event_of(s, ONV_SCRIPT_READ, b);
    onv_script_event swapped = s->events.at[read];
    s->events.at[read] = s->events.at[read + 1];
    s->events.at[read + 1] = swapped;
}

static void a_second_death(onv_script *s)
{
    uint32_t b = buffer_of(s, "b");
    insert(s, event_of(s, ONV_SCRIPT_DEATH, b) + 1,
           (onv_script_event){.index = b, .act = ONV_SCRIPT_DEATH});
}

static void a_segment_too_small(onv_script *s)
{
    s->segments.at[s->buffers.at[buffer_of(s, "e")].segment].bytes /= 4;
}

static void a_segment_freed_early(onv_script *s)
{
    uint32_t c = buffer_of(s, "c"), segment = s->buffers.at[c].segment;
    insert(s, event_of(s, ONV_SCRIPT_READ, c),
           (onv_script_event){.index = segment, .act = ONV_SCRIPT_SEGMENT_FREE});
}

static void a_segment_freed_twice(onv_script *s)
{
    uint32_t segment = s->buffers.at[buffer_of(s, "c")].segment;
    insert(s, event_of(s, ONV_SCRIPT_SEGMENT_FREE, segment),
           (onv_script_event){.index = segment, .act = ONV_SCRIPT_SEGMENT_FREE});
}

static void a_segment_never_freed(onv_script *s)
{
    uint32_t segment = s->buffers.at[buffer_of(s, "c")].segment;
    drop(s, event_of(s, ONV_SCRIPT_SEGMENT_FREE, segment));
}

static void a_segment_never_taken(onv_script *s)
{
    uint32_t segment = s->buffers.at[buffer_of(s, "c")].segment;
    drop(s, event_of(s, ONV_SCRIPT_SEGMENT_ALLOC, segment));
}

static void a_segment_that_there_is_not(onv_script *s)
{
    s->buffers.at[buffer_of(s, "c")].segment = 1000;
}

static void events_of_two_swapped(onv_script *s)
{
    uint32_t c = buffer_of(s, "c"), d = buffer_of(s, "d");
    onv_script_event *x = &s->events.at[event_of(s, ONV_SCRIPT_BIRTH, c)];
    x->index = d;
    s->events.at[event_of(s, ONV_SCRIPT_READ, d)].index = c;
}

static void places_of_two_swapped(onv_script *s)
{
    onv_script_buffer *c = &s->buffers.at[buffer_of(s, "c")];
    onv_script_buffer *w = &s->buffers.at[buffer_of(s, "w")];
    uint64_t offset = c->offset;
    uint32_t segment = c->segment;
    c->offset = w->offset;
    c->segment = w->segment;
    w->offset = offset;
    w->segment = segment;
}

static void an_unknown_buffer(onv_script *s)
{
    s->events.at[event_of(s, ONV_SCRIPT_READ, buffer_of(s, "d"))].index = UINT32_MAX;
}

static void an_unknown_step(onv_script *s)
{
    s->events.at[event_of(s, ONV_SCRIPT_READ, buffer_of(s, "d"))].step = s->n_steps;
}

static void a_segment_counted_less(onv_script *s)
{
    s->held[2] -= 512;
}

static void a_figure_of_something_else(onv_script *s)
{
    s->figure += 512;
}

static const struct mutation {
    const char *name, *runtime;
    void (*plant)(onv_script *script);
    onv_fault_kind kind;
    const char *buffer; /* that is named */
} mutations[] = {
    {"overlap", "arena", two_on_the_same_bytes, ONV_FAULT_OVERLAP, "c"},
    {"overlap in a cache", "torch", two_on_the_same_bytes, ONV_FAULT_OVERLAP, "c"},
    {"overlap in part", "arena", an_offset_a_little_off, ONV_FAULT_OVERLAP, "c"},
    {"offset", "arena", an_offset_beyond_the_end, ONV_FAULT_OUTSIDE, "d"},
    {"short lifetime", "arena", a_lifetime_cut_short, ONV_FAULT_USE_AFTER, "c"},
    {"short lifetime, raw", "ideal", a_lifetime_cut_short, ONV_FAULT_USE_AFTER, "c"},
    {"size", "arena", a_size_too_large, ONV_FAULT_OVERLAP, "w"},
    {"small size", "arena", a_size_too_small, ONV_FAULT_LIVE_DIFFERS, NULL},
    {"double birth", "arena", a_second_birth, ONV_FAULT_BORN_TWICE, "b"},
    {"rebirth", "arena", a_birth_after_death, ONV_FAULT_BORN_TWICE, "b"},
    {"missing death", "arena", a_death_that_is_missing, ONV_FAULT_NEVER_FREED, "b"},
    {"missing birth", "arena", a_birth_that_is_missing, ONV_FAULT_USE_BEFORE, "e"},
    {"missing read", "arena", a_read_that_is_missing, ONV_FAULT_UNREAD, "e"},
    {"read after free", "torch", a_read_after_the_free, ONV_FAULT_USE_AFTER, "b"},
    {"double death", "arena", a_second_death, ONV_FAULT_FREED_TWICE, "b"},
    {"small segment", "arena", a_segment_too_small, ONV_FAULT_OUTSIDE, NULL},
    {"small segment, raw", "ideal", a_segment_too_small, ONV_FAULT_OUTSIDE, "e"},
    {"segment freed early", "arena", a_segment_freed_early, ONV_FAULT_PULLED_AWAY, NULL},
    {"segment freed early, pool", "async", a_segment_freed_early, ONV_FAULT_PULLED_AWAY, "c"},
    {"segment freed twice", "ideal", a_segment_freed_twice, ONV_FAULT_FREED_TWICE, NULL},
    {"segment kept", "ideal", a_segment_never_freed, ONV_FAULT_NEVER_FREED, NULL},
    {"segment kept, pool", "async", a_segment_never_freed, ONV_FAULT_NEVER_FREED, NULL},
    {"segment missing", "ideal", a_segment_never_taken, ONV_FAULT_NO_SEGMENT, "c"},
    {"segment unknown", "arena", a_segment_that_there_is_not, ONV_FAULT_NO_SEGMENT, "c"},
    {"swapped events", "arena", events_of_two_swapped, ONV_FAULT_USE_BEFORE, "c"},
    {"swapped places", "arena", places_of_two_swapped, ONV_FAULT_OVERLAP, NULL},
    {"unknown buffer", "arena", an_unknown_buffer, ONV_FAULT_UNKNOWN, NULL},
    {"unknown step", "arena", an_unknown_step, ONV_FAULT_UNKNOWN, NULL},
    {"prediction too low", "ideal", a_segment_counted_less, ONV_FAULT_HELD_DIFFERS, NULL},
    {"another figure", "torch", a_figure_of_something_else, ONV_FAULT_FIGURE, NULL},
};

/* Runs the script; the result's own memory is gone when this returns. */
static onv_replay_result replay(const onv_script *script)
{
    onv_error err = {0};
    onv_replay_result r;
    if (onv_replay_run(script, &device, NULL, &r, &err) != ONV_OK) fail_msg("%s", err.message);
    onv_replay_cleanup(&r);
    return r;
}

static bool has_fault(const onv_replay_result *r, const onv_script *script, onv_fault_kind kind,
                      const char *buffer)
{
    for (uint64_t i = 0; i < r->n_faults && i < ONV_REPLAY_MAX_FAULTS; i++) {
        const onv_fault *fault = &r->faults[i];
        if (fault->kind != kind) continue;
        if (buffer == NULL) return true;
        if (fault->buffer < script->buffers.count &&
            strcmp(script->buffers.at[fault->buffer].label, buffer) == 0 &&
            strstr(fault->text, buffer) != NULL)
            return true;
    }
    return false;
}

static void every_planted_fault_is_found_and_named(void **state)
{
    (void)state;
    flow f;
    open_model(&f);
    for (size_t i = 0; i < sizeof mutations / sizeof mutations[0]; i++) {
        const struct mutation *m = &mutations[i];
        onv_script script;
        make_script(&f, m->runtime, &script);
        onv_replay_result sound = replay(&script);
        if (!sound.agrees) fail_msg("%s before: %s", m->name, sound.faults[0].text);
        m->plant(&script);
        onv_replay_result r = replay(&script);
        if (r.agrees) fail_msg("%s: nothing was found", m->name);
        if (!has_fault(&r, &script, m->kind, m->buffer))
            fail_msg("%s: no %s of '%s', but %s: %s", m->name, onv_fault_name(m->kind),
                     m->buffer != NULL ? m->buffer : "any", onv_fault_name(r.faults[0].kind),
                     r.faults[0].text);
        onv_script_cleanup(&script);
    }
    flow_close(&f);
}

/* A wrong script is refused before it is replayed, too, unless only contents can tell. */
static void the_check_finds_what_needs_no_device(void **state)
{
    (void)state;
    static const onv_fault_kind unseen[] = {ONV_FAULT_OVERLAP, ONV_FAULT_LIVE_DIFFERS,
                                            ONV_FAULT_HELD_DIFFERS, ONV_FAULT_FIGURE};
    flow f;
    open_model(&f);
    for (size_t i = 0; i < sizeof mutations / sizeof mutations[0]; i++) {
        const struct mutation *m = &mutations[i];
        onv_error err = {0};
        onv_script script;
        bool visible = true;
        for (size_t k = 0; k < sizeof unseen / sizeof unseen[0]; k++)
            visible &= m->kind != unseen[k];
        make_script(&f, m->runtime, &script);
        assert_int_equal(onv_script_check(&script, &err), ONV_OK);
        m->plant(&script);
        if (visible && onv_script_check(&script, &err) == ONV_OK) fail_msg("%s passes", m->name);
        onv_script_cleanup(&script);
    }
    flow_close(&f);
}

/* The overlap tells which buffers, in which steps, and where. */
static void an_overlap_is_described(void **state)
{
    (void)state;
    flow f;
    onv_script script;
    open_model(&f);
    make_script(&f, "arena", &script);
    an_offset_a_little_off(&script);
    onv_replay_result r = replay(&script);
    assert_true(r.n_faults >= 1);
    assert_int_equal(r.faults[0].kind, ONV_FAULT_OVERLAP);
    assert_int_equal(r.faults[0].offset, 4096);
    assert_string_equal(script.buffers.at[r.faults[0].other].label, "d");
    assert_int_equal(r.faults[0].step, 4); /* "mul" reads it last */
    assert_non_null(strstr(r.faults[0].text, "'c', written in step 2"));
    assert_non_null(strstr(r.faults[0].text, "'d' wrote in step 3"));
    onv_script_cleanup(&script);
    flow_close(&f);
}

/* The planner was told that "x" dies a step before it does, and gave its place away. */
static void a_plan_for_shorter_lives_is_found(void **state)
{
    (void)state;
    static const onv_buffer rows[] = {{.bytes = 4096,
                                       .last = 1,
                                       .becomes = ONV_NO_BUFFER,
                                       .within = ONV_NO_BUFFER,
                                       .sized = true,
                                       .label = "x"},
                                      {.bytes = 4096,
                                       .first = 1,
                                       .last = 2,
                                       .becomes = ONV_NO_BUFFER,
                                       .within = ONV_NO_BUFFER,
                                       .sized = true,
                                       .label = "y"},
                                      {.bytes = 4096,
                                       .first = 2,
                                       .last = 3,
                                       .becomes = ONV_NO_BUFFER,
                                       .within = ONV_NO_BUFFER,
                                       .sized = true,
                                       .label = "z"}};
    onv_script script;
    onv_error err = {0};
    if (onv_script_of_rows(&script, onv_replay_mode_find("arena"), rows, 3, 4, NULL, 0, &err) !=
        ONV_OK)
        fail_msg("%s", err.message);
    onv_replay_result r = replay(&script);
    assert_true(r.agrees);
    uint32_t x = buffer_of(&script, "x"), y = buffer_of(&script, "y");
    static const onv_script_act ends[] = {ONV_SCRIPT_READ, ONV_SCRIPT_DEATH};
    for (size_t i = 0; i < 2; i++) {
        drop(&script, event_of(&script, ends[i], x));
        insert(&script, event_of(&script, ONV_SCRIPT_READ, y),
               (onv_script_event){.index = x, .act = (uint8_t)ends[i]});
    }
    r = replay(&script);
    assert_true(has_fault(&r, &script, ONV_FAULT_OVERLAP, "x"));
    assert_non_null(strstr(r.faults[0].text, "'z' wrote in step 2"));
    onv_script_cleanup(&script);
}

/* Large buffers are written and checked in stretches. */
static void a_fault_far_inside_is_found(void **state)
{
    (void)state;
    enum { LARGE = 300 << 20, FAR = 290000001 };
    static const onv_buffer rows[] = {{.bytes = LARGE,
                                       .last = 1,
                                       .becomes = ONV_NO_BUFFER,
                                       .within = ONV_NO_BUFFER,
                                       .sized = true,
                                       .label = "large"},
                                      {.bytes = 77,
                                       .first = 1,
                                       .last = 1,
                                       .becomes = ONV_NO_BUFFER,
                                       .within = ONV_NO_BUFFER,
                                       .sized = true,
                                       .label = "small"}};
    onv_script script;
    onv_error err = {0};
    if (onv_script_of_rows(&script, onv_replay_mode_find("arena"), rows, 2, 2, NULL, 0, &err) !=
        ONV_OK)
        fail_msg("%s", err.message);
    onv_replay_result r = replay(&script);
    assert_true(r.agrees);
    script.buffers.at[buffer_of(&script, "small")].offset =
        script.buffers.at[buffer_of(&script, "large")].offset + FAR;
    r = replay(&script);
    assert_int_equal(r.n_faults, 1);
    assert_int_equal(r.faults[0].kind, ONV_FAULT_OVERLAP);
    assert_int_equal(r.faults[0].offset, FAR);
    onv_script_cleanup(&script);
}

static int setup(void **state)
{
    (void)state;
    onv_error err = {0};
    return onv_device_open(&device, onv_device_kind_find("host"), NULL, &err) != ONV_OK;
}

static int teardown(void **state)
{
    (void)state;
    onv_device_close(&device);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_planted_fault_is_found_and_named),
        cmocka_unit_test(the_check_finds_what_needs_no_device),
        cmocka_unit_test(an_overlap_is_described),
        cmocka_unit_test(a_plan_for_shorter_lives_is_found),
        cmocka_unit_test(a_fault_far_inside_is_found),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
