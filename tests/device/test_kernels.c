/* The kernels against pattern.c: the same bytes, and the same first wrong one, at any address, stretch
 * and number of threads. */
#include "device/pattern.h"
#include "fake_cuda/kernels_on_cpu.h"
#include "support/test.h"

enum { ROOM = 4096, EDGE = 64 };

static _Alignas(64) unsigned char room[ROOM + 2 * EDGE], expected[ROOM];

typedef struct launch {
    unsigned char *at;
    u64 seed, first, bytes;
} launch;

static const struct {
    unsigned blocks, threads;
} grids[] = {{1, 1}, {1, 32}, {3, 7}, {4, 256}};

/* Stretches with and without whole words, at even and odd addresses, from even and odd positions. */
static void for_each(void (*use)(launch *how, unsigned blocks, unsigned threads))
{
    static const u64 sizes[] = {1, 7, 8, 9, 63, 64, 65, 1000, 2051},
                     firsts[] = {0, 8, 5, 1ull << 33};
    for (size_t g = 0; g < sizeof grids / sizeof grids[0]; g++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            for (size_t f = 0; f < sizeof firsts / sizeof firsts[0]; f++)
                for (size_t shift = 0; shift < 10; shift += 3) {
                    launch how = {room + EDGE + shift, onv_pattern_seed(s + f), firsts[f],
                                  sizes[s]};
                    use(&how, grids[g].blocks, grids[g].threads);
                }
}

static void fill(launch *how, unsigned blocks, unsigned threads)
{
    void *parameters[] = {&how->at, &how->seed, &how->first, &how->bytes};
    memset(room, 0xa5, sizeof room);
    run_on_cpu("onv_fill", blocks, threads, parameters);
}

static void expect_the_pattern(launch *how, unsigned blocks, unsigned threads)
{
    fill(how, blocks, threads);
    onv_pattern_fill(expected, how->seed, how->first, how->bytes);
    assert_memory_equal(how->at, expected, how->bytes);
    assert_int_equal(how->at[-1], 0xa5);
    assert_int_equal(how->at[how->bytes], 0xa5);
}

static u64 check(launch *how, unsigned blocks, unsigned threads)
{
    u64 wrong = how->bytes, *to = &wrong;
    void *parameters[] = {&how->at, &how->seed, &how->first, &how->bytes, &to};
    run_on_cpu("onv_check", blocks, threads, parameters);
    return wrong;
}

static void expect_the_first_wrong_byte(launch *how, unsigned blocks, unsigned threads)
{
    fill(how, blocks, threads);
    assert_int_equal(check(how, blocks, threads), how->bytes);
    how->at[how->bytes - 1] ^= 0x80;
    assert_int_equal(check(how, blocks, threads), how->bytes - 1);
    how->at[how->bytes / 2] ^= 1;
    assert_int_equal(check(how, blocks, threads), how->bytes / 2);
    assert_int_equal(onv_pattern_check(how->at, how->seed, how->first, how->bytes), how->bytes / 2);
}

TEST(they_write_the_pattern_and_nothing_else)
{
    for_each(expect_the_pattern);
}

TEST(they_find_the_first_wrong_byte)
{
    for_each(expect_the_first_wrong_byte);
}
