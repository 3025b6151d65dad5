/* The model of ONNX Runtime's arena against sequences measured with ONNX Runtime. */
#include "alloc/alloc_model.h"
#include "alloc/bfc.h"
#include "alloc/traces.h"
#include "base/strings.h"
#include "support/held.h"
#include "support/test.h"

#define MIB (UINT64_C(1) << 20)

/* What the arena takes from the device, and in which order. */
typedef struct regions {
    onv_placement noted;
} regions;

static void start(onv_allocator *a, const char *model, onv_alloc_options options, regions *noted)
{
    enum { MAX_IDS = 20000 };
    *noted = (regions){0};
    onv_error err = {0};
    if (onv_allocator_init(a, onv_alloc_model_find(model), &options, &err) != ONV_OK)
        fail_msg("%s", err.message);
    assert_true(onv_vec_reserve(&noted->noted.places, MAX_IDS));
    a->record = &noted->noted;
}

static void take(onv_allocator *a, uint32_t id, uint64_t bytes)
{
    onv_error err = {0};
    if (onv_allocator_alloc(a, id, bytes, &err) != ONV_OK) fail_msg("%s", err.message);
}

static void end(onv_allocator *a)
{
    onv_error err = {0};
    if (allocator_check(a, &err) != ONV_OK) fail_msg("%s", err.message);
    onv_placement_cleanup(a->record);
    onv_allocator_cleanup(a);
}

static void expect_regions(const regions *got, const uint64_t *want_mib, size_t count)
{
    assert_int_equal(got->noted.segments.count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(got->noted.segments.at[i].bytes, want_mib[i] * MIB);
}

/* Measured: requests of 100 MB grow the arena like this. */
TEST(growth)
{
    static const uint64_t want[] = {128, 128, 256, 512, 1024, 1024, 1024};
    onv_allocator a;
    regions got;
    start(&a, "bfc", (onv_alloc_options){0}, &got);
    for (uint32_t i = 0; got.noted.segments.count < 7; i++) take(&a, i, 100 * 1000 * 1000);
    expect_regions(&got, want, 7);
    end(&a);
}

/* Measured: one request beyond the cap still gets the next power of two ... */
TEST(huge_request)
{
    static const uint64_t want[] = {2048};
    onv_allocator a;
    regions got;
    start(&a, "ort", (onv_alloc_options){0}, &got);
    take(&a, 0, 1230000000);
    expect_regions(&got, want, 1);
    end(&a);
}

/* ... and the size to ask for next falls back to the cap. */
TEST(cap_after_huge_requests)
{
    static const uint64_t sizes[] = {3000000000, 100,       1500000000, 600000000,
                                     1000,       700000000, 700000000,  700000000,
                                     700000000,  700000000, 700000000};
    static const uint64_t want[] = {4096, 4096, 1024, 1024, 1024};
    onv_allocator a;
    regions got;
    start(&a, "bfc", (onv_alloc_options){0}, &got);
    for (uint32_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) take(&a, i, sizes[i]);
    expect_regions(&got, want, 5);
    end(&a);
}

/* Measured: the offsets of all allocations of this trace in ONNX Runtime 1.31's CPU arena. */
TEST(placement)
{
    trace_shape shape = {20, 20000, 21, 48, 2000000000, 0};
    test_trace trace = random_trace(shape);
    onv_allocator a;
    regions got;
    onv_error err = {0};
    start(&a, "bfc", (onv_alloc_options){0}, &got);
    uint64_t hash = HASH_START, n = 0;
    for (size_t i = 0; i < trace.count; i++) {
        const onv_trace_event *e = &trace.events[i];
        if (trace_feed(&a, e, &err) != ONV_OK) fail_msg("%s", err.message);
        if (e->is_free) continue;
        hash = hash_add(hash, allocator_block(&a, e->id)->address - ONV_SPACE_BASE);
        n++;
    }
    assert_int_equal(got.noted.segments.count, 1);
    assert_int_equal(n, 10325);
    assert_int_equal(hash, 0xc5c99956307004fb);
    end(&a);
    random_trace_free(&trace);
}

TEST(same_as_requested)
{
    onv_allocator a;
    regions got;
    start(&a, "bfc-same", (onv_alloc_options){0}, &got);
    take(&a, 0, 1000);
    take(&a, 1, 5 * MIB + 1);
    assert_int_equal(got.noted.segments.count, 2);
    assert_int_equal(got.noted.segments.at[0].bytes, 1024);
    assert_int_equal(got.noted.segments.at[1].bytes, 5 * MIB + 256);
    end(&a);
}

/* A chunk is split if it is at least twice the request, or 128 MiB would be wasted. */
TEST(splitting)
{
    static const struct {
        uint64_t asked, block;
    } cases[] = {
        {MIB, MIB},
        {MIB / 2, MIB / 2},
        {MIB / 2 + 1, MIB},
        {200 * MIB, 256 * MIB},
        {384 * MIB, 384 * MIB},
        {384 * MIB + 1, 512 * MIB},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        onv_allocator a;
        regions got;
        start(&a, "bfc", (onv_alloc_options){0}, &got);
        take(&a, 0, cases[i].asked);
        assert_int_equal(allocator_block(&a, 0)->bytes, cases[i].block);
        end(&a);
    }
}

TEST(limit)
{
    static const uint64_t want[] = {64, 36};
    onv_allocator a;
    regions got;
    start(&a, "bfc", (onv_alloc_options){.bfc.limit_bytes = 100 * MIB}, &got);
    take(&a, 0, 60 * MIB);
    take(&a, 1, 30 * MIB); /* 64 would pass the limit: what is left */
    expect_regions(&got, want, 2);
    take(&a, 2, 10 * MIB);
    assert_true(a.out_of_memory);
    end(&a);
}

/* A device that cannot give the power of two is asked for nine tenths of it, and again. */
TEST(backpedal)
{
    onv_allocator a;
    regions got;
    start(&a, "bfc", (onv_alloc_options){.capacity_bytes = 100 * MIB}, &got);
    take(&a, 0, 70 * MIB);
    assert_int_equal(got.noted.segments.count, 1);
    /* 128, 115.2, 103.7, 93.3 MiB, each rounded up to 256 bytes */
    assert_in_range(got.noted.segments.at[0].bytes, 93 * MIB, 94 * MIB);
    assert_int_equal(got.noted.segments.at[0].bytes % 256, 0);
    end(&a);
}

TEST(reserve)
{
    onv_allocator a;
    regions got;
    onv_error err = {0};
    start(&a, "bfc", (onv_alloc_options){0}, &got);
    assert_int_equal(onv_allocator_reserve(&a, 0, 1000, &err), ONV_OK);
    take(&a, 1, 256);
    const onv_stat *reserved = &a.stats.of[ONV_STAT_RESERVED_BYTES][ONV_POOL_ALL];
    const onv_stat *allocated = &a.stats.of[ONV_STAT_ALLOCATED_BYTES][ONV_POOL_ALL];
    assert_int_equal(reserved->current, 1000 + MIB);
    assert_int_equal(allocated->current, 1256);
    assert_int_equal(onv_allocator_free(&a, 0, &err), ONV_OK); /* goes back at once */
    assert_int_equal(reserved->current, MIB);
    assert_int_equal(onv_allocator_free(&a, 1, &err), ONV_OK);
    assert_int_equal(reserved->current, MIB);
    assert_int_equal(allocated->current, 0);
    end(&a);
}

/* bfc_arena.cc: what a run used does not join memory that none used, until the run ends; and what is asked for on no
 * stream does not get it. */
TEST(streams_keep_chunks_apart)
{
    static const uint64_t want[] = {1024, 1024, 1024};
    onv_allocator a;
    regions got;
    onv_error err = {0};
    start(&a, "bfc", (onv_alloc_options){0}, &got);
    a.stream = 1;
    take(&a, 0, 540 * MIB); /* of a region of 1,024; the rest is of no stream */
    assert_int_equal(onv_allocator_free(&a, 0, &err), ONV_OK);
    take(&a, 1, 600 * MIB); /* 540 and 484 free, side by side, are not 1,024 */
    assert_int_equal(onv_allocator_free(&a, 1, &err), ONV_OK);
    a.stream = 0;
    take(&a, 2, 484 * MIB); /* the rests are of no stream */
    take(&a, 3, 424 * MIB);
    expect_regions(&got, want, 2);
    take(&a, 4, 400 * MIB); /* 540 and 600 of stream 1 are free */
    expect_regions(&got, want, 3);
    for (uint32_t i = 2; i < 5; i++) assert_int_equal(onv_allocator_free(&a, i, &err), ONV_OK);
    end(&a);
}

/* When a run ends, all that is free is joined. */
TEST(the_end_of_a_run_joins_chunks)
{
    static const uint64_t want[] = {1024};
    onv_allocator a;
    regions got;
    onv_error err = {0};
    start(&a, "bfc", (onv_alloc_options){0}, &got);
    a.stream = 1;
    take(&a, 0, 540 * MIB);
    take(&a, 1, 100 * MIB);
    assert_int_equal(onv_allocator_free(&a, 0, &err), ONV_OK);
    assert_int_equal(onv_allocator_end_streams(&a, 1), ONV_OK);
    assert_int_equal(onv_allocator_free(&a, 1, &err), ONV_OK);
    a.stream = 0;
    take(&a, 2, 1024 * MIB);
    expect_regions(&got, want, 1);
    end(&a);
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void give(onv_allocator *by_id, uint32_t id, onv_allocator *loaded, const uint32_t *blocks)
{
    onv_error err;
    assert_int_equal(onv_allocator_free(by_id, id, &err), ONV_OK);
    onv_allocator_give(loaded, blocks[id]);
}

static void find_and_take(onv_allocator *loaded, onv_bfc_image *image, uint64_t bytes,
                          uint32_t *block)
{
    onv_error err;
    bool bounds;
    uint32_t found = onv_bfc_find(loaded, image, bytes, &bounds);
    assert_int_equal(onv_bfc_take(loaded, bytes, found, block, &err), ONV_OK);
}

/* Gives all back, and goes on from an image of that. */
static void leave(onv_allocator *by_id, onv_allocator *loaded, onv_bfc_image *image,
                  const uint32_t *blocks, uint32_t n)
{
    onv_error err;
    for (uint32_t id = 0; id < n; id++)
        if (allocator_block(by_id, id) != NULL) give(by_id, id, loaded, blocks);
    assert_int_equal(onv_bfc_leave(loaded, image, &err), ONV_OK);
    assert_int_equal(onv_bfc_resume(loaded, image, &err), ONV_OK);
}

/* An image has the holes that blocks by id leave, and serves others from the same ones, run after run. */
TEST(images)
{
    enum { KEPT = 300, OTHERS = 200, RUNS = 3, SEEDS = 20 };
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        onv_allocator by_id, loaded;
        regions noted;
        uint64_t sizes[KEPT];
        uint32_t order[KEPT], blocks[OTHERS], random = seed;
        onv_bfc_image image = {0};
        onv_error err;
        start(&by_id, "bfc", (onv_alloc_options){0}, &noted);
        assert_int_equal(onv_allocator_init(&loaded, onv_alloc_model_find("bfc"), NULL, &err),
                         ONV_OK);
        for (uint32_t i = 0; i < KEPT; i++) {
            order[i] = KEPT - 1 - i;
            sizes[KEPT - 1 - i] = (uint64_t)next_random(&random) << next_random(&random) % 4;
            take(&by_id, OTHERS + i, sizes[KEPT - 1 - i]);
        }
        assert_int_equal(onv_bfc_load(&loaded, sizes, order, KEPT, &image, &err), ONV_OK);
        assert_int_equal(onv_bfc_resume(&loaded, &image, &err), ONV_OK);
        for (uint32_t i = 0; i < RUNS * OTHERS; i++) {
            uint32_t id = i % OTHERS, other = next_random(&random) % (id + 1);
            uint64_t bytes = 1 + (uint64_t)next_random(&random);
            if (i > 0 && id == 0) leave(&by_id, &loaded, &image, blocks, OTHERS);
            take(&by_id, id, bytes);
            find_and_take(&loaded, &image, bytes, &blocks[id]);
            assert_int_equal(onv_space_block(&loaded.space, blocks[id])->bytes,
                             allocator_block(&by_id, id)->bytes);
            assert_int_equal(by_id.stats.of[ONV_STAT_RESERVED_BYTES][ONV_POOL_ALL].peak,
                             loaded.stats.of[ONV_STAT_RESERVED_BYTES][ONV_POOL_ALL].peak);
            if (allocator_block(&by_id, other) != NULL) give(&by_id, other, &loaded, blocks);
        }
        onv_vec_cleanup(&image.holes);
        onv_allocator_cleanup(&loaded);
        end(&by_id);
    }
}

typedef struct served {
    uint64_t added, places;
} served;

enum { REQUESTS = 60 };

/* Takes and gives blocks at random, as often as that. */
typedef struct client {
    uint32_t blocks[REQUESTS], random, count;
    bool is_held[REQUESTS];
    served result; /* what the arena adds, and where it found them */
} client;

static void serve(client *c, onv_allocator *a, onv_bfc_image *image, uint32_t count)
{
    for (; c->count < count; c->count++) {
        uint32_t i = c->count;
        uint64_t bytes = (1 + (uint64_t)next_random(&c->random) % 8)
                         << (10 + next_random(&c->random) % 12);
        a->stream = next_random(&c->random) % 3 != 0;
        find_and_take(a, image, bytes, &c->blocks[i]);
        c->is_held[i] = true;
        const onv_block *b = onv_space_block(&a->space, c->blocks[i]);
        c->result.places = onv_hash_u64(c->result.places ^ b->segment) +
                           (b->address - onv_space_segment_of(&a->space, c->blocks[i])->address);
        for (uint32_t n = next_random(&c->random) % 3; n > 0; n--) {
            uint32_t other = next_random(&c->random) % (i + 1);
            if (c->is_held[other]) onv_allocator_give(a, c->blocks[other]);
            c->is_held[other] = false;
        }
        if (i % 16 == 15) assert_int_equal(onv_allocator_end_streams(a, 1), ONV_OK);
    }
    a->stream = 0;
}

static uint64_t reserved_peak(const onv_allocator *a)
{
    return a->stats.of[ONV_STAT_RESERVED_BYTES][ONV_POOL_ALL].peak;
}

/* From an image on; all is given back where it is left. */
static served serve_image(onv_allocator *a, onv_bfc_image *image, uint32_t seed, bool is_left)
{
    client c = {.random = seed};
    onv_error err;
    assert_int_equal(onv_bfc_resume(a, image, &err), ONV_OK);
    serve(&c, a, image, REQUESTS);
    c.result.added = reserved_peak(a) - image->before.reserved_bytes;
    for (uint32_t i = 0; i < REQUESTS && is_left; i++)
        if (c.is_held[i]) onv_allocator_give(a, c.blocks[i]);
    if (!is_left) return c.result;
    assert_int_equal(onv_allocator_end_streams(a, 1), ONV_OK);
    assert_int_equal(onv_bfc_leave(a, image, &err), ONV_OK);
    return c.result;
}

/* An image that would serve the same requests again finds the same chunks for them, and adds nothing. */
TEST(images_that_serve_again)
{
    enum { KEPT = 12, SEEDS = 400 };
    uint32_t n_again = 0, n_grown = 0;
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        onv_allocator a;
        uint64_t sizes[KEPT];
        uint32_t order[KEPT], random = seed;
        onv_bfc_image image = {0};
        onv_alloc_options options = {0};
        onv_error err;
        if (seed % 4 == 0) options.bfc.extend = ONV_BFC_SAME_AS_REQUESTED;
        assert_int_equal(onv_allocator_init(&a, onv_alloc_model_find("bfc"), &options, &err),
                         ONV_OK);
        for (uint32_t i = 0; i < KEPT; i++) {
            order[i] = i;
            sizes[i] = (1 + (uint64_t)next_random(&random) % 16)
                       << (10 + next_random(&random) % 10);
        }
        assert_int_equal(onv_bfc_load(&a, sizes, order, KEPT, &image, &err), ONV_OK);
        served first = serve_image(&a, &image, seed, true);
        bool serves_again = onv_bfc_serves_again(&image);
        served second = serve_image(&a, &image, seed, true);
        if (serves_again) {
            n_again++;
            n_grown += first.added > 0;
            assert_int_equal(second.added, 0);
            assert_int_equal(second.places, first.places);
        } else {
            assert_true(first.added > 0);
        }
        onv_vec_cleanup(&image.holes);
        onv_allocator_cleanup(&a);
    }
    assert_true(n_again < SEEDS && n_grown > SEEDS / 4);
}

/* Whether both have the same chunks found up to a request; the others then, from there on, as the second image has them. */
static bool turn_and_serve(onv_allocator *a, onv_bfc_image *first, onv_bfc_image *second,
                           uint32_t turn, uint32_t seed, served *result)
{
    client c = {.random = seed};
    onv_error err;
    if (!onv_bfc_begins_alike(a, first, second)) return false;
    assert_int_equal(onv_bfc_resume(a, first, &err), ONV_OK);
    serve(&c, a, first, turn);
    if (!onv_bfc_is_alike(first, second)) return false;
    onv_bfc_turn_to(a, first, second);
    serve(&c, a, second, REQUESTS);
    *result = c.result;
    result->added = reserved_peak(a) - second->before.reserved_bytes;
    return true;
}

/* Images within the bounds of one that was served have the same chunks found, and get as many bytes from the device. */
TEST(images_that_are_alike)
{
    enum { KEPT = 12, ORDERS = 40, SEEDS = 60, TRIES = 3 };
    uint32_t n_alike = 0;
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        onv_allocator a;
        uint64_t sizes[KEPT];
        served all[ORDERS];
        uint32_t order[KEPT], random = seed;
        onv_bfc_image images[ORDERS] = {0};
        onv_error err;
        assert_int_equal(onv_allocator_init(&a, onv_alloc_model_find("bfc"), NULL, &err), ONV_OK);
        for (uint32_t i = 0; i < KEPT; i++) {
            order[i] = i;
            sizes[i] = (1 + (uint64_t)next_random(&random) % 16)
                       << (10 + next_random(&random) % 10);
        }
        for (uint32_t k = 0; k < ORDERS; k++) {
            for (uint32_t i = KEPT - 1; i > 0; i--) {
                uint32_t other = next_random(&random) % (i + 1), kept = order[i];
                order[i] = order[other];
                order[other] = kept;
            }
            assert_int_equal(onv_bfc_load(&a, sizes, order, KEPT, &images[k], &err), ONV_OK);
            all[k] = serve_image(&a, &images[k], seed, false);
            for (uint32_t j = k > TRIES ? k - TRIES : 0; j < k; j++) {
                uint32_t turn = next_random(&random) % (REQUESTS + 1);
                served other;
                if (!turn_and_serve(&a, &images[j], &images[k], turn, seed, &other)) continue;
                n_alike++;
                assert_int_equal(other.added, all[k].added);
                assert_int_equal(other.places, all[k].places);
            }
        }
        for (uint32_t k = 0; k < ORDERS; k++) onv_vec_cleanup(&images[k].holes);
        onv_allocator_cleanup(&a);
    }
    assert_true(n_alike > SEEDS * ORDERS / 4);
}
