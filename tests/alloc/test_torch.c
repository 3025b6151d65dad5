/* The model of PyTorch's allocator against the compiled allocator of PyTorch 2.15, and rules that its traces do not meet. */
#include <math.h>

#include "alloc/alloc.h"
#include "alloc/traces.h"
#include "support/held.h"
#include "support/test.h"

#define MIB (UINT64_C(1) << 20)

static void start(onv_allocator *a, const onv_alloc_options *options)
{
    onv_error err = {0};
    if (onv_allocator_init(a, onv_alloc_model_find("torch"), options, &err) != ONV_OK)
        fail_msg("%s", err.message);
}

static void take(onv_allocator *a, uint32_t id, uint64_t bytes)
{
    onv_error err = {0};
    if (onv_allocator_alloc(a, id, bytes, &err) != ONV_OK) fail_msg("%s", err.message);
}

static void drop(onv_allocator *a, uint32_t id)
{
    onv_error err = {0};
    if (onv_allocator_free(a, id, &err) != ONV_OK) fail_msg("%s", err.message);
}

static void end(onv_allocator *a)
{
    onv_error err = {0};
    if (allocator_check(a, &err) != ONV_OK) fail_msg("%s", err.message);
    onv_allocator_cleanup(a);
}

static uint64_t now(const onv_allocator *a, onv_alloc_metric metric)
{
    return a->stats.of[metric][ONV_POOL_ALL].current;
}

static uint64_t offset_of(const onv_allocator *a, uint32_t id)
{
    const onv_block *b = allocator_block(a, id);
    assert_non_null(b);
    return b->address - onv_space_segment_of(&a->space, a->owned.at[id])->address;
}

/* --- Streams ----------------------------------------------------------------------------------- */

static void on_stream(onv_allocator *a, uint8_t stream, uint32_t id, uint64_t bytes)
{
    a->stream = stream;
    take(a, id, bytes);
}

/* What is freed is found on its own stream alone; all streams give back what is cached. */
TEST(streams_have_segments_of_their_own)
{
    onv_allocator a;
    start(&a, &(onv_alloc_options){.capacity_bytes = 60 * MIB});
    on_stream(&a, 0, 0, 4 * MIB);
    drop(&a, 0);
    on_stream(&a, 1, 1, 4 * MIB);
    assert_int_equal(now(&a, ONV_STAT_RESERVED_BYTES), 40 * MIB);
    on_stream(&a, 0, 2, 4 * MIB);
    assert_int_equal(now(&a, ONV_STAT_RESERVED_BYTES), 40 * MIB);
    drop(&a, 1);
    on_stream(&a, 1, 3, 8 * MIB);
    assert_int_equal(now(&a, ONV_STAT_RESERVED_BYTES), 40 * MIB);
    drop(&a, 3);
    on_stream(&a, 2, 4, 30 * MIB); /* the device has no room but for what stream 1 has cached */
    assert_false(a.out_of_memory);
    assert_int_equal(a.stats.retries, 1);
    assert_int_equal(now(&a, ONV_STAT_RESERVED_BYTES), 50 * MIB);
    end(&a);
}

/* --- Rules ------------------------------------------------------------------------------------- */

TEST(zero_bytes)
{
    onv_allocator a;
    start(&a, NULL);
    take(&a, 0, 0);
    assert_null(allocator_block(&a, 0));
    assert_int_equal(now(&a, ONV_STAT_ALLOCATIONS), 0);
    assert_int_equal(onv_allocator_alloc(&a, 0, 5, NULL), ONV_ERR_USAGE);
    drop(&a, 0);
    take(&a, 0, 5);
    end(&a);
}

TEST(bad_options)
{
    onv_alloc_options cases[8] = {{0}};
    cases[0].torch.roundup_power2_divisions[3] = 3;
    cases[1].torch.garbage_collection_threshold = 1.5;
    cases[2].torch.memory_fraction = 0.5; /* of what? */
    cases[3].torch.max_split_bytes = 19 * MIB;
    cases[4].torch.max_split_bytes = 21 * MIB + 1;
    cases[5].torch.large_segment_bytes = 10 * MIB;
    cases[6].capacity_bytes = UINT64_MAX;
    cases[7].torch.garbage_collection_threshold = (double)NAN;
    for (size_t i = 0; i < 8; i++) {
        onv_allocator a;
        onv_error err = {0};
        assert_int_equal(onv_allocator_init(&a, onv_alloc_model_find("torch"), &cases[i], &err),
                         ONV_ERR_USAGE);
        assert_string_not_equal(err.message, "");
    }
}

/* --- Full devices ------------------------------------------------------------------------------ */

TEST(retry_releases_cached_segments)
{
    onv_alloc_options options = {.capacity_bytes = 100 * MIB};
    onv_allocator a;
    start(&a, &options);
    take(&a, 0, 30 * MIB);
    take(&a, 1, 3 * MIB); /* 20 MiB segment, in use in part */
    take(&a, 2, 30 * MIB);
    drop(&a, 0);
    drop(&a, 2);
    assert_int_equal(now(&a, ONV_STAT_RESERVED_BYTES), 80 * MIB);
    take(&a, 3, 60 * MIB);
    assert_false(a.out_of_memory);
    assert_int_equal(a.stats.retries, 1);
    assert_int_equal(a.stats.device_frees, 2);
    assert_int_equal(now(&a, ONV_STAT_RESERVED_BYTES), 80 * MIB);
    take(&a, 4, 21 * MIB);
    assert_true(a.out_of_memory);
    assert_int_equal(a.oom_event, 6);
    assert_int_equal(a.oom_bytes, 21 * MIB);
    drop(&a, 999); /* ignored after the end */
    onv_held_figures result;
    onv_allocator_figures(&a, &result);
    assert_true(result.out_of_memory);
    assert_int_equal(result.reserved_peak, 80 * MIB);
    end(&a);
}

/* --- Expandable segments ----------------------------------------------------------------------- */

TEST(expandable_grows_in_pages)
{
    onv_alloc_options options = {.torch.expandable_segments = true};
    onv_allocator a;
    start(&a, &options);
    take(&a, 0, 30 * MIB); /* two pages of 20 MiB */
    assert_int_equal(now(&a, ONV_STAT_RESERVED_BYTES), 40 * MIB);
    take(&a, 1, 15 * MIB); /* 10 free at the end, one page more */
    assert_int_equal(now(&a, ONV_STAT_RESERVED_BYTES), 60 * MIB);
    assert_int_equal(offset_of(&a, 1), 30 * MIB);
    take(&a, 2, 4096);
    assert_int_equal(now(&a, ONV_STAT_RESERVED_BYTES), 62 * MIB); /* small pages: 2 MiB */
    assert_int_equal(now(&a, ONV_STAT_SEGMENTS), 0);
    assert_int_equal(now(&a, ONV_STAT_INACTIVE_BYTES), 0);
    drop(&a, 0);
    onv_error err = {0};
    assert_int_equal(onv_allocator_release_cached(&a, &err), ONV_OK);
    assert_int_equal(now(&a, ONV_STAT_RESERVED_BYTES), 42 * MIB); /* one page of [0, 30) is whole */
    take(&a, 3, 25 * MIB); /* mapped again, at the lowest address */
    assert_int_equal(offset_of(&a, 3), 0);
    assert_int_equal(now(&a, ONV_STAT_RESERVED_BYTES), 62 * MIB);
    for (uint32_t i = 1; i < 4; i++) drop(&a, i);
    assert_int_equal(onv_allocator_release_cached(&a, &err), ONV_OK);
    assert_int_equal(now(&a, ONV_STAT_RESERVED_BYTES), 0);
    assert_null(allocator_next_segment(&a, NULL));
    end(&a);
}

/* --- Measured ---------------------------------------------------------------------------------- */

/* What the compiled allocator of PyTorch 2.15 did with the same traces (run over a substitute for the
 * CUDA runtime that gives out increasing addresses). `hash` runs over all addresses; `oom` is the
 * event that found no memory. */
typedef struct measured {
    const char *name;
    trace_shape shape;
    onv_alloc_options options;
    uint64_t allocated_peak, reserved_peak, inactive_peak, reserved, requested, retries;
    int64_t oom;
    uint64_t hash;
} measured;

/* clang-format off */
static const measured rows[] = {
    {"default", {1, 20000, 26, 48, 0, 0}, {0},
     1673632256, 2204106752, 748907008, 2204106752, 1481315678, 0, -1, 0x5f730b7d04a43ef5},
    {"capacity", {2, 20000, 26, 48, 0, 0}, {.capacity_bytes = 1200000000},
     1025506304, 1168113664, 375017472, 1168113664, 971488770, 3, 6771, 0xd55ed4df4a976f94},
    {"max_split_size", {3, 20000, 26, 49, 0, 0},
     {.capacity_bytes = 1200000000, .torch.max_split_bytes = 20 * MIB},
     1149462528, 1197473792, 67465216, 1151336448, 951628001, 2, 3333, 0xa2a5cf90dad1416e},
    {"expandable, capacity", {4, 20000, 26, 49, 0, 0},
     {.capacity_bytes = 900000000, .torch.expandable_segments = true},
     805733888, 899678208, 0, 859832320, 805684596, 3, 5495, 0x8fbff9ff34546e19},
    {"garbage collection", {5, 20000, 26, 49, 0, 0},
     {.capacity_bytes = 1200000000,
      .torch = {.memory_fraction = 0.9, .garbage_collection_threshold = 0.6}},
     1008692224, 1075838976, 298129408, 1075838976, 926680108, 2, 9693, 0x550561ce7d640ce9},
    {"expandable", {6, 20000, 26, 48, 0, 0}, {.torch.expandable_segments = true},
     3037716992, 3397386240, 0, 3397386240, 2631241965, 0, -1, 0xed1a57e013e0ca6c},
    {"roundup", {7, 20000, 26, 48, 0, 0},
     {.torch.roundup_power2_divisions = {4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}},
     5061687296, 5205131264, 684089344, 5205131264, 4318925422, 0, -1, 0xeb451ea3dcc2f497},
    {"large_segment_size", {8, 20000, 26, 48, 0, 0}, {.torch.large_segment_bytes = 40 * MIB},
     3881852416, 4395630592, 899691008, 4395630592, 3607295817, 0, -1, 0xcfe2b911b0af1fad},
    {"max_non_split_rounding", {9, 20000, 28, 48, 0, 0},
     {.torch = {.max_split_bytes = 32 * MIB, .max_non_split_rounding_bytes = 24 * MIB}},
     17510927872, 22515023872, 305915392, 22515023872, 15656616720, 0, -1, 0xff616ee2a37663c3},
};
/* clang-format on */

TEST(same_as_pytorch)
{
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        const measured *m = &rows[r];
        test_trace trace = random_trace(m->shape);
        onv_allocator a;
        onv_error err = {0};
        start(&a, &m->options);
        uint64_t hash = HASH_START;
        for (size_t i = 0; i < trace.count && !a.out_of_memory; i++) {
            const onv_trace_event *e = &trace.events[i];
            if (trace_feed(&a, e, &err) != ONV_OK) fail_msg("%s", err.message);
            if (!e->is_free && !a.out_of_memory)
                hash = hash_add(hash, allocator_block(&a, e->id)->address - ONV_SPACE_BASE);
        }
        print_message("%s\n", m->name);
        const onv_stat *stats[ONV_N_STATS];
        for (int k = 0; k < ONV_N_STATS; k++) stats[k] = &a.stats.of[k][ONV_POOL_ALL];
        assert_int_equal(a.out_of_memory ? (int64_t)a.oom_event : -1, m->oom);
        assert_int_equal(stats[ONV_STAT_ALLOCATED_BYTES]->peak, m->allocated_peak);
        assert_int_equal(stats[ONV_STAT_RESERVED_BYTES]->peak, m->reserved_peak);
        assert_int_equal(stats[ONV_STAT_INACTIVE_BYTES]->peak, m->inactive_peak);
        if (m->oom < 0) {
            assert_int_equal(stats[ONV_STAT_RESERVED_BYTES]->current, m->reserved);
            assert_int_equal(a.stats.retries, m->retries);
        }
        assert_int_equal(stats[ONV_STAT_REQUESTED_BYTES]->current, m->requested);
        assert_int_equal(hash, m->hash);
        end(&a);
        random_trace_free(&trace);
    }
}
