/* The order of ids is the one that qsort() makes, whatever stood there before. */
#include "base/sort.h"
#include "support/test.h"

static int by_key(const void *a, const void *b, void *context)
{
    const uint32_t *keys = context, x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (keys[x] != keys[y]) return keys[x] < keys[y] ? -1 : 1;
    return (x > y) - (x < y);
}

static const uint32_t *keys_of_test;

static int by_key_of_test(const void *a, const void *b)
{
    return by_key(a, b, (void *)(uintptr_t)keys_of_test);
}

TEST(ids_are_sorted)
{
    enum { MOST = 300 };
    uint32_t keys[MOST], ids[MOST], expected[MOST], random = 1;
    for (uint32_t n = 0; n <= MOST; n += 1 + n / 8) {
        for (uint32_t kinds = 1; kinds <= 1000; kinds *= 10) {
            for (uint32_t i = 0; i < n; i++) {
                random = random * 1664525 + 1013904223;
                keys[i] = (random >> 8) % kinds;
                ids[i] = expected[i] = (i * 7 + 3) % n;
            }
            keys_of_test = keys;
            qsort(expected, n, sizeof *expected, by_key_of_test);
            onv_sort_ids(ids, n, by_key, keys);
            if (n > 0) assert_memory_equal(ids, expected, n * sizeof *ids);
        }
    }
}

TEST(the_smallest_number_comes_first)
{
    enum { MOST = 300 };
    uint32_t heap[MOST], waiting[MOST] = {0}, count = 0, random = 1;
    for (uint32_t i = 0; i < 3 * MOST; i++) {
        random = random * 1664525 + 1013904223;
        if (count < MOST && (i < MOST / 2 || (random >> 16) % 2 == 0)) {
            uint32_t number = (random >> 8) % (MOST / 2);
            onv_smallest_push(heap, &count, number);
            waiting[number]++;
        } else if (count > 0) {
            uint32_t smallest = 0;
            while (waiting[smallest] == 0) smallest++;
            assert_int_equal(onv_smallest_pop(heap, &count), smallest);
            waiting[smallest]--;
        }
    }
}
