/* The search for the largest size, by totals that are made up: it ends, soon, and where the next size does not fit. */
#include "api/size_facts.h"
#include "support/test.h"

enum { MANY = 200 };

typedef bool reaching(int64_t size, int goal);

/* A search as src/api/batch.c makes it, or as plan_sizes.c does. */
static uint32_t search(uint64_t (*total_of)(int64_t size), reaching *reaches, int goal,
                       bool narrows, int64_t *found)
{
    onv_size_facts facts = {.usable_bytes = 1 << 30};
    uint32_t n = 0;
    for (;; n++) {
        if (narrows)
            onv_size_narrow(&facts, goal, 0);
        else
            onv_size_look(&facts, goal);
        int64_t size = facts.wanted[goal];
        if (size == 0 || n == MANY) break;
        onv_size_fact f = {.size = size, .is_known = true};
        for (int k = 0; k < ONV_SIZE_GOALS; k++) {
            f.of[k] = total_of(size);
            f.reaches[k] = reaches(size, k);
        }
        assert_true(onv_size_add(&facts, f));
    }
    *found = facts.found[goal];
    onv_vec_cleanup(&facts.at);
    return n;
}

static uint64_t sixty_four_each(int64_t size)
{
    return 64 * (uint64_t)size + 4096;
}

static bool reaches_by_total(int64_t size, int goal)
{
    (void)goal;
    return sixty_four_each(size) <= 1 << 30;
}

TEST(totals_on_a_line_take_few_sizes)
{
    int64_t found;
    assert_true(search(sixty_four_each, reaches_by_total, ONV_FITS, false, &found) <= 40);
    assert_int_equal(found, ((1 << 30) - 4096) / 64);
}

/* The bytes that are allocated say nothing of where they fit: they are the same from some size on, or jump. */
static uint64_t falling(int64_t size)
{
    return (1 << 29) + (uint64_t)(size * 2654435761u % (1 << 28)) - (uint64_t)size % 4096;
}

static bool reaches_to_a_size(int64_t size, int goal)
{
    (void)goal;
    return size <= 17010233;
}

TEST(a_search_that_goes_astray_ends)
{
    for (int goal = 0; goal < ONV_SIZE_GOALS; goal++) {
        int64_t found;
        assert_true(search(falling, reaches_to_a_size, goal, false, &found) < MANY);
        assert_int_equal(found, 17010233);
    }
}

static uint64_t nearly_flat(int64_t size)
{
    return (1 << 30) - (1 << 20) - (uint64_t)size / 64;
}

TEST(totals_that_fall_end_a_search_too)
{
    int64_t found;
    assert_true(search(nearly_flat, reaches_to_a_size, ONV_BY_RELEASE, false, &found) < MANY);
    assert_int_equal(found, 17010233);
}

/* By lines: the answer fits, and what is a thousandth larger does not. */
TEST(lines_meet_the_budget_in_few_sizes)
{
    int64_t found, last = ((1 << 30) - 4096) / 64;
    assert_true(search(sixty_four_each, reaches_by_total, ONV_FITS, true, &found) <= 12);
    assert_true(found <= last && found + onv_size_grain(found) > last);
    for (int goal = 0; goal < ONV_SIZE_GOALS; goal++) {
        assert_true(search(falling, reaches_to_a_size, goal, true, &found) < MANY);
        assert_true(found <= 17010233 && found + onv_size_grain(found) > 17010233);
        assert_true(search(nearly_flat, reaches_to_a_size, goal, true, &found) < MANY);
        assert_true(found <= 17010233 && found + onv_size_grain(found) > 17010233);
    }
}
