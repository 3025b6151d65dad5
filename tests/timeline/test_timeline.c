/* The timeline: its check, its sweep, the order of its events, and the path of one run. */
#include "support/test.h"
#include "timeline/timeline.h"

static void steps(onv_timeline *t, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        assert_true(onv_vec_push(&t->steps, (onv_step){.node = ONV_NO_NODE}));
}

static uint32_t buffer(onv_timeline *t, uint64_t bytes, uint32_t first, uint32_t last)
{
    assert_true(
        onv_vec_push(&t->buffers, onv_buffer_new(ONV_BUFFER_ACTIVATION, bytes, first, last, "b")));
    return (uint32_t)t->buffers.count - 1;
}

static void region(onv_timeline *t, onv_region_kind kind, uint32_t first, uint32_t end,
                   uint32_t parent)
{
    onv_region r = {.first = first,
                    .end = end,
                    .parent = parent,
                    .kind = (uint8_t)kind,
                    .trips = 1,
                    .node = ONV_NO_NODE};
    assert_true(onv_vec_push(&t->regions, r));
}

/* x; then: two steps, else: one; the If at step 4, its output read at step 5. */
static onv_timeline an_if(void)
{
    onv_timeline t = {0};
    steps(&t, 6);
    region(&t, ONV_REGION_ALTERNATIVES, 1, 4, ONV_NO_REGION);
    region(&t, ONV_REGION_SEQUENCE, 1, 3, 0);
    region(&t, ONV_REGION_SEQUENCE, 3, 4, 0);
    buffer(&t, 10, 0, 4);
    buffer(&t, 30, 1, 2); /* a temporary of the first branch */
    buffer(&t, 7, 2, 2);  /* what it hands out */
    buffer(&t, 7, 3, 3);  /* what the other one hands out */
    buffer(&t, 9, 4, 5);  /* the output of the If, where another branch would give more */
    t.buffers.at[2].becomes = t.buffers.at[3].becomes = 4;
    return t;
}

TEST(branches_do_not_add_up)
{
    onv_timeline t = an_if();
    uint64_t live[6];
    onv_peak peak;
    assert_int_equal(onv_timeline_check(&t, NULL), ONV_OK);
    assert_int_equal(onv_timeline_peak(&t, &peak, live, NULL), ONV_OK);
    const uint64_t expected[] = {10, 40, 47, 17, 19, 9};
    for (int s = 0; s < 6; s++) assert_int_equal(live[s], expected[s]);
    assert_int_equal(peak.bytes, 47);
    assert_int_equal(peak.step, 2);
    onv_timeline_cleanup(&t);
}

TEST(a_path_takes_the_larger_branch)
{
    onv_timeline t = an_if(), path = {0};
    uint32_t of[5];
    assert_int_equal(onv_timeline_path(&t, &path, of, NULL), ONV_OK);
    assert_int_equal(onv_timeline_check(&path, NULL), ONV_OK);
    assert_int_equal(path.buffers.count, 3);
    assert_int_equal(of[3], ONV_NO_BUFFER);
    assert_int_equal(of[2], of[4]);
    const onv_buffer *out = &path.buffers.at[of[2]];
    assert_int_equal(out->first, 2);
    assert_int_equal(out->last, 5);
    assert_int_equal(out->bytes, 7);
    assert_int_equal(out->becomes, ONV_NO_BUFFER);
    onv_timeline_cleanup(&t);
    onv_timeline_cleanup(&path);
}

TEST(containers_count_and_their_contents_do_not)
{
    onv_timeline t = {0}, path = {0};
    onv_peak peak;
    steps(&t, 3);
    uint32_t block = buffer(&t, 64, 0, 2), inside = buffer(&t, 24, 1, 2);
    t.buffers.at[block].kind = ONV_BUFFER_POOL;
    t.buffers.at[inside].within = block;
    t.buffers.at[inside].offset = 40;
    assert_int_equal(onv_timeline_check(&t, NULL), ONV_OK);
    assert_int_equal(onv_timeline_peak(&t, &peak, NULL, NULL), ONV_OK);
    assert_int_equal(peak.bytes, 64);
    onv_timeline_events events = {0};
    assert_int_equal(onv_timeline_list_events(&t, &events, NULL), ONV_OK);
    const onv_timeline_event expected[] = {
        {block, 0, false}, {inside, 1, false}, {inside, 2, true}, {block, 2, true}};
    assert_int_equal(events.count, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(events.at[i].buffer, expected[i].buffer);
        assert_int_equal(events.at[i].step, expected[i].step);
        assert_int_equal(events.at[i].is_free, expected[i].is_free);
    }
    onv_vec_cleanup(&events);
    assert_int_equal(onv_timeline_path(&t, &path, NULL, NULL), ONV_OK);
    assert_int_equal(path.buffers.at[inside].within, block);
    onv_timeline_cleanup(&path);
    t.buffers.at[inside].offset = 41;
    assert_int_equal(onv_timeline_check(&t, NULL), ONV_ERR_MODEL);
    onv_timeline_cleanup(&t);
}

TEST(transient_buffers_make_room_for_each_other)
{
    onv_timeline t = {0};
    steps(&t, 1);
    buffer(&t, 1, 0, 0);
    t.buffers.at[buffer(&t, 2, 0, 0)].is_transient = true;
    buffer(&t, 3, 0, 0);
    onv_timeline_events events = {0};
    assert_int_equal(onv_timeline_list_events(&t, &events, NULL), ONV_OK);
    const uint32_t order[] = {0, 1, 1, 2, 0, 2};
    assert_int_equal(events.count, 6);
    for (int i = 0; i < 6; i++) assert_int_equal(events.at[i].buffer, order[i]);
    onv_vec_cleanup(&events);
    onv_timeline_cleanup(&t);
}

/* Transient ones stand beside what was allocated before them in their step, never beside each other. */
TEST(the_peak_counts_one_transient_buffer_at_a_time)
{
    onv_timeline t = {0};
    onv_peak peak;
    uint64_t live[3];
    steps(&t, 3);
    buffer(&t, 1000, 0, 2);
    buffer(&t, 1, 1, 1);
    uint32_t first = buffer(&t, 20, 1, 1), second = buffer(&t, 30, 1, 1);
    t.buffers.at[first].is_transient = t.buffers.at[second].is_transient = true;
    t.buffers.at[second].kind = ONV_BUFFER_WORKSPACE;
    buffer(&t, 5, 1, 2);
    assert_int_equal(onv_timeline_peak(&t, &peak, live, NULL), ONV_OK);
    assert_int_equal(peak.bytes, 1031);
    assert_int_equal(peak.step, 1);
    assert_int_equal(live[0], 1000);
    assert_int_equal(live[1], 1031);
    assert_int_equal(live[2], 1005);
    assert_int_equal(onv_timeline_peak_without(&t, ONV_BUFFERS_BESIDE_TENSORS, &peak, NULL, NULL),
                     ONV_OK);
    assert_int_equal(peak.bytes, 1021);
    buffer(&t, 500, 1, 1); /* more than any of them */
    assert_int_equal(onv_timeline_peak(&t, &peak, live, NULL), ONV_OK);
    assert_int_equal(peak.bytes, 1506);
    onv_timeline_cleanup(&t);
}

TEST(measured_steps_alone_count)
{
    onv_timeline t = {.measured_from = 1};
    onv_peak peak;
    steps(&t, 3);
    t.steps.at[2].phase = ONV_PHASE_OPTIMIZER;
    buffer(&t, 100, 0, 0);
    buffer(&t, 3, 0, 2);
    buffer(&t, 4, 2, 2);
    assert_int_equal(onv_timeline_peak(&t, &peak, NULL, NULL), ONV_OK);
    assert_int_equal(peak.bytes, 7);
    assert_int_equal(peak.step, 2);
    assert_int_equal(peak.of_phase[ONV_PHASE_FORWARD], 3);
    assert_int_equal(peak.of_phase[ONV_PHASE_OPTIMIZER], 7);
    buffer(&t, UINT64_MAX, 1, 1);
    assert_int_equal(onv_timeline_peak(&t, &peak, NULL, NULL), ONV_ERR_OVERFLOW);
    onv_timeline_cleanup(&t);
}

/* Each mistake alone must be found in a timeline that was right. */
TEST(the_check_finds_what_is_wrong)
{
    for (int mistake = 0; mistake < 9; mistake++) {
        onv_timeline t = an_if();
        assert_int_equal(onv_timeline_check(&t, NULL), ONV_OK);
        switch (mistake) {
        case 0: t.buffers.at[0].last = 6; break;
        case 1: t.buffers.at[4].first = 6; break;
        case 2: t.buffers.at[2].last = 3; break; /* outlives its branch */
        case 3: t.buffers.at[3].becomes = 1; break;
        case 4: t.buffers.at[3].becomes = 9; break;
        case 5: t.buffers.at[1].is_transient = true; break;
        case 6: t.buffers.at[1].within = 3; break;
        case 7: t.regions.at[1].end = 5; break;
        case 8: t.regions.at[0].parent = 1; break;
        }
        assert_int_equal(onv_timeline_check(&t, NULL), ONV_ERR_MODEL);
        onv_timeline_cleanup(&t);
    }
}
