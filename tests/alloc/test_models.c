/* The small models, and what all models promise. */
#include "alloc/csv_text.h"
#include "alloc/traces.h"
#include "support/capture.h"
#include "support/held.h"
#include "support/test.h"

#define MIB (UINT64_C(1) << 20)

/* Sizes to allocate; a negative number frees the allocation of that position, counted from -1. */
static test_trace make_trace(const int64_t *steps, size_t count)
{
    static onv_trace_event events[64];
    uint32_t next = 0;
    assert_true(count <= 64);
    for (size_t i = 0; i < count; i++) {
        events[i].is_free = steps[i] < 0;
        events[i].id = steps[i] < 0 ? (uint32_t)(-steps[i] - 1) : next++;
        events[i].bytes = steps[i] < 0 ? 0 : (uint64_t)steps[i];
    }
    return (test_trace){.events = events, .count = count, .n_ids = next};
}

static onv_held_figures run(const char *model, const onv_alloc_options *options,
                            const int64_t *steps, size_t count)
{
    test_trace made = make_trace(steps, count);
    onv_held_figures result;
    onv_error err = {0};
    if (trace_serve(&made, onv_alloc_model_find(model), options, &result, &err) != ONV_OK)
        fail_msg("%s: %s", model, err.message);
    return result;
}

#define RUN(model, options, ...)                                                                   \
    run(model, options, (const int64_t[]){__VA_ARGS__},                                            \
        sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* --- pattern ----------------------------------------------------------------------------------- */

/* Measured: these sizes make a peak of 128000. */
TEST(pattern_peak)
{
    onv_held_figures r = RUN("pattern", NULL, 38400, 89600, -1, 12800);
    assert_int_equal(r.reserved_peak, 128000);
    assert_int_equal(r.allocated_peak, 128000);
    assert_int_equal(r.allocated_end, 102400);
    assert_int_equal(r.reserved_end, 128000);
    assert_int_equal(r.segments, 1);
}

static uint64_t offset(const onv_allocator *a, uint32_t id)
{
    return allocator_block(a, id)->address;
}

TEST(pattern_gaps)
{
    onv_allocator a;
    onv_error err = {0};
    assert_int_equal(onv_allocator_init(&a, onv_alloc_model_find("pattern"), NULL, &err), ONV_OK);
    static const uint64_t sizes[] = {1024, 256, 512, 256, 512, 256, 1024, 256};
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(onv_allocator_alloc(&a, i, sizes[i], &err), ONV_OK);
    for (uint32_t i = 0; i < 8; i += 2) assert_int_equal(onv_allocator_free(&a, i, &err), ONV_OK);
    assert_int_equal(onv_allocator_alloc(&a, 10, 500, &err), ONV_OK);
    assert_int_equal(offset(&a, 10), 1280); /* the first of the two gaps of 512 */
    assert_int_equal(onv_allocator_alloc(&a, 11, 513, &err), ONV_OK);
    assert_int_equal(offset(&a, 11), 0); /* 768: the first of the two of 1024 */
    assert_int_equal(onv_allocator_alloc(&a, 12, 1025, &err), ONV_OK);
    assert_int_equal(offset(&a, 12), 4096);
    /* The end moves back when the last blocks die, the size of the buffer does not. */
    assert_int_equal(onv_allocator_free(&a, 12, &err), ONV_OK);
    assert_int_equal(onv_allocator_free(&a, 7, &err), ONV_OK);
    assert_int_equal(onv_allocator_alloc(&a, 13, 2048, &err), ONV_OK);
    assert_int_equal(offset(&a, 13), 2816);
    assert_int_equal(a.stats.of[ONV_STAT_RESERVED_BYTES][ONV_POOL_ALL].current, 4096 + 1280);
    assert_int_equal(allocator_check(&a, &err), ONV_OK);
    onv_allocator_cleanup(&a);
}

/* What the last block leaves of the buffer is a gap like others (mem_pattern_planner.h). */
TEST(pattern_takes_the_end_where_it_is_the_smallest_gap)
{
    onv_allocator a;
    onv_error err = {0};
    assert_int_equal(onv_allocator_init(&a, onv_alloc_model_find("pattern"), NULL, &err), ONV_OK);
    static const uint64_t sizes[] = {2048, 256, 1024};
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(onv_allocator_alloc(&a, i, sizes[i], &err), ONV_OK);
    assert_int_equal(onv_allocator_free(&a, 0, &err), ONV_OK);
    assert_int_equal(onv_allocator_free(&a, 2, &err), ONV_OK);
    assert_int_equal(onv_allocator_alloc(&a, 3, 768, &err), ONV_OK);
    assert_int_equal(offset(&a, 3), 2304);
    assert_int_equal(onv_allocator_alloc(&a, 4, 512, &err), ONV_OK);
    assert_int_equal(offset(&a, 4), 0);
    assert_int_equal(allocator_check(&a, &err), ONV_OK);
    onv_allocator_cleanup(&a);
}

/* --- async, raw, ideal ------------------------------------------------------------------------- */

TEST(async_pool)
{
    onv_held_figures r = RUN("async", NULL, 1, 513, 40 * (int64_t)MIB, -3, 20 * (int64_t)MIB);
    assert_int_equal(r.allocated_peak, 512 + 1024 + 40 * MIB);
    assert_int_equal(r.allocated_end, 512 + 1024 + 20 * MIB);
    assert_int_equal(r.reserved_peak, 96 * MIB); /* 32 and 64: whole steps, kept */
    assert_int_equal(r.reserved_end, 96 * MIB);
    onv_alloc_options options = {.async = {.step_bytes = 4096, .align_bytes = 256}};
    r = RUN("async", &options, 1, 4000, 1);
    assert_int_equal(r.allocated_end, 256 + 4096 + 256);
    assert_int_equal(r.reserved_end, 8192);
}

TEST(raw_rounds_to_pages)
{
    onv_held_figures r = RUN("raw", NULL, 1, 2 * (int64_t)MIB, 2 * (int64_t)MIB + 1, -1);
    assert_int_equal(r.allocated_peak, 4 * MIB + 2);
    assert_int_equal(r.reserved_peak, 8 * MIB);
    assert_int_equal(r.reserved_end, 6 * MIB);
    assert_int_equal(r.segments, 2);
    onv_alloc_options options = {.raw_granularity_bytes = 512};
    assert_int_equal(RUN("raw", &options, 1, 513).reserved_end, 1536);
}

TEST(ideal_sums)
{
    onv_held_figures r = RUN("ideal", NULL, 7, 5, -1, 3, 0, -2, -4);
    assert_int_equal(r.allocated_peak, 12);
    assert_int_equal(r.reserved_peak, 12);
    assert_int_equal(r.allocated_end, 3);
    assert_int_equal(r.segments, 0);
}

/* --- All models -------------------------------------------------------------------------------- */

TEST(names)
{
    static const char *const want[] = {"ideal",    "torch", "torch-expandable", "bfc", "ort",
                                       "bfc-same", "async", "pattern",          "raw"};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
        assert_non_null(onv_alloc_model_find(want[i]));
    assert_null(onv_alloc_model_find(""));
    assert_null(onv_alloc_model_find("Torch"));
    for (size_t i = 0; i < onv_n_alloc_models; i++) {
        assert_ptr_equal(onv_alloc_model_find(onv_alloc_models[i]->name), onv_alloc_models[i]);
        assert_string_not_equal(onv_alloc_models[i]->summary, "");
    }
}

TEST(wrong_events)
{
    for (size_t i = 0; i < onv_n_alloc_models; i++) {
        onv_allocator a;
        onv_error err = {0};
        assert_int_equal(onv_allocator_init(&a, onv_alloc_models[i], NULL, &err), ONV_OK);
        assert_int_equal(onv_allocator_free(&a, 3, &err), ONV_ERR_USAGE);
        assert_non_null(strstr(err.message, "id 3"));
        onv_allocator_cleanup(&a);

        assert_int_equal(onv_allocator_init(&a, onv_alloc_models[i], NULL, &err), ONV_OK);
        assert_int_equal(onv_allocator_alloc(&a, 0, 1, NULL), ONV_OK);
        assert_int_equal(onv_allocator_alloc(&a, 0, 1, NULL), ONV_ERR_USAGE);
        onv_allocator_cleanup(&a);

        assert_int_equal(onv_allocator_init(&a, onv_alloc_models[i], NULL, &err), ONV_OK);
        assert_int_equal(onv_allocator_alloc(&a, 0, ONV_ALLOC_MAX_BYTES + 1, NULL), ONV_ERR_LIMIT);
        assert_int_equal(onv_allocator_alloc(&a, 0, UINT64_MAX, NULL), ONV_ERR_LIMIT);
        onv_allocator_cleanup(&a);
    }
}

/* Sizes that add up to more than 64 bits hold are an error, not a small number. */
TEST(overflow)
{
    for (size_t i = 0; i < onv_n_alloc_models; i++) {
        for (int keep = 0; keep < 2; keep++) {
            onv_allocator a;
            onv_error err = {0};
            assert_int_equal(onv_allocator_init(&a, onv_alloc_models[i], NULL, &err), ONV_OK);
            onv_status status = ONV_OK;
            for (uint32_t k = 0; k < 300 && status == ONV_OK && !a.out_of_memory; k++) {
                status = onv_allocator_alloc(&a, k, ONV_ALLOC_MAX_BYTES, &err);
                if (!keep && status == ONV_OK) status = onv_allocator_free(&a, k, &err);
            }
            /* The address space of expandable segments ends before. */
            if (!a.out_of_memory) assert_int_equal(status, ONV_ERR_OVERFLOW);
            onv_allocator_cleanup(&a);
        }
    }
}

TEST(capacity)
{
    onv_alloc_options options = {.capacity_bytes = 64 * MIB};
    for (size_t i = 0; i < onv_n_alloc_models; i++) {
        const char *name = onv_alloc_models[i]->name;
        onv_held_figures r =
            RUN(name, &options, 30 * (int64_t)MIB, 30 * (int64_t)MIB, -1, 100 * (int64_t)MIB, 1);
        assert_true(r.out_of_memory);
        assert_true(r.oom_event == 3 || r.oom_event == 1); /* async and bfc take whole steps */
        assert_true(r.reserved_peak <= 64 * MIB);
    }
}

/* --- Placements and text ----------------------------------------------------------------------------- */

/* What a placement says of the device: the second segment goes back to make room for the third one,
 * and memory runs out at the last allocation. */
TEST(segments_by_event)
{
    static const int64_t steps[] = {100, 2 * (int64_t)MIB, -2, 22 * (int64_t)MIB,
                                    0,   30 * (int64_t)MIB};
    test_trace made = make_trace(steps, sizeof steps / sizeof steps[0]);
    OWNED_TEXT text = trace_text(&made);
    onv_alloc_options options = {.capacity_bytes = 24 * MIB};
    onv_timeline t;
    onv_placement p;
    onv_error err = {0};
    assert_int_equal(csv_text_read(text, strlen(text), &t, &err), ONV_OK);
    assert_int_equal(onv_alloc_run(&t, onv_alloc_model_find("torch"), &options, &p, &err), ONV_OK);
    static const size_t taken[] = {0, 1, 3}, returned[] = {10, 3, 10};
    assert_int_equal(p.events.count, 10);
    assert_int_equal(p.segments.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(p.segments.at[i].taken, taken[i]);
        assert_int_equal(p.segments.at[i].returned, returned[i]);
    }
    assert_int_equal(p.segments.at[2].bytes, 22 * MIB);
    assert_true(p.figures.out_of_memory);
    assert_int_equal(p.figures.oom_event, 5);
    assert_int_equal(p.figures.oom_bytes, 30 * MIB);
    assert_int_equal(p.places.at[2].segment, 2);
    onv_placement_cleanup(&p);
    onv_timeline_cleanup(&t);
}

TEST(csv_row)
{
    onv_held_figures r = RUN("torch", NULL, 100, 3000000, -1);
    OWNED_CAPTURE l = {0};
    assert_true(onv_alloc_write_csv("torch", &r, capture_write, &l));
    assert_string_equal(l.text, "torch,3000832,23068672,3000320,23068672,2\n");
    assert_string_equal(onv_alloc_csv_header, "runtime,allocated_peak,reserved_peak,allocated_end,"
                                              "reserved_end,segments");
}
