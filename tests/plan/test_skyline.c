/* The skyline against a search for gaps that knows no blocks. */
#include "base/heap.h"
#include "plan/instances.h"
#include "plan/part.h"
#include "support/test.h"

typedef struct row {
    uint32_t lo, hi;
    uint64_t offset, end;
} row;

static bool shares(const row *r, uint32_t lo, uint32_t hi)
{
    return r->lo < r->hi && r->lo < hi && r->hi > lo;
}

/* The candidates for an offset are 0 and the ends of rows; the gap above one reaches up to the next
 * row that shares a section. */
static uint64_t naive_place(const row *rows, size_t count, uint32_t lo, uint32_t hi, uint64_t size,
                            onv_fit fit)
{
    uint64_t best = UINT64_MAX, best_gap = UINT64_MAX, top = 0;
    for (size_t i = 0; i <= count; i++) {
        if (i < count && !shares(&rows[i], lo, hi)) continue;
        uint64_t base = i < count ? rows[i].end : 0, gap = UINT64_MAX;
        if (base > top) top = base;
        for (size_t k = 0; k < count; k++) {
            if (!shares(&rows[k], lo, hi)) continue;
            if (rows[k].offset <= base && rows[k].end > base) gap = 0;
            if (rows[k].offset >= base && rows[k].offset - base < gap) gap = rows[k].offset - base;
        }
        if (gap < size || gap == UINT64_MAX) continue;
        bool better = fit == ONV_FIT_BEST && gap != best_gap ? gap < best_gap : base < best;
        if (!better) continue;
        best = base;
        best_gap = gap;
    }
    return best == UINT64_MAX ? top : best;
}

static void compare(uint64_t seed, uint32_t n, uint32_t expected, uint32_t sections, onv_fit fit)
{
    onv_skyline skyline;
    assert_true(onv_skyline_init(&skyline, expected, sections));
    row *rows = onv_heap_calloc(n, sizeof *rows);
    uint64_t random = seed;
    for (int round = 0; round < 2; round++) { /* the second on a skyline that was used before */
        onv_skyline_clear(&skyline);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t lo = (uint32_t)(next_random(&random) % sections);
            uint32_t widest = next_random(&random) % 4 == 0 ? sections : 9;
            uint32_t hi = lo + 1 + (uint32_t)(next_random(&random) % widest);
            uint64_t size = 1 + next_random(&random) % 20, offset;
            if (hi > sections) hi = sections;
            assert_true(onv_skyline_place(&skyline, lo, hi, size, fit, &offset));
            assert_int_equal(offset, naive_place(rows, i, lo, hi, size, fit));
            rows[i] = (row){lo, hi, offset, offset + size};
            if (next_random(&random) % 3 > 0) continue;
            /* One goes; for the plain search it is where nothing is. */
            row *gone = &rows[next_random(&random) % (i + 1)];
            if (gone->lo == gone->hi) continue;
            onv_skyline_remove(&skyline, gone->lo, gone->hi, gone->offset);
            gone->hi = gone->lo;
        }
    }
    onv_heap_free(rows);
    onv_skyline_cleanup(&skyline);
}

TEST(first_and_best_fit_find_the_same_as_a_plain_search)
{
    for (uint64_t seed = 0; seed < 8; seed++) {
        compare(seed, 300, 300, 40, ONV_FIT_FIRST);
        compare(seed, 300, 300, 40, ONV_FIT_BEST);
    }
}

TEST(stretches_change_nothing)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        compare(seed, 300, 50000, 100, ONV_FIT_FIRST);
        compare(seed, 300, 50000, 7, ONV_FIT_BEST);
        compare(seed, 300, 1000000, 64, ONV_FIT_FIRST);
    }
}
