/* The exact search below the planner: every style gives the right answer at every capacity. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/heap.h"
#include "plan/brute.h"
#include "plan/instances.h"
#include "plan/part.h"
#include "plan/search.h"

/* All of it as one part, whatever could be split off. */
typedef struct whole {
    onv_part part;
    uint32_t lo[BRUTE_MAX], hi[BRUTE_MAX], origin[BRUTE_MAX];
    uint64_t size[BRUTE_MAX];
    onv_plan_buffer buffers[BRUTE_MAX]; /* in the part's order */
} whole;

static void make_whole(whole *w, const instance *made, uint32_t sections)
{
    uint32_t n = 0;
    for (uint32_t s = 0; s < sections; s++) {
        for (size_t i = 0; i < made->count; i++) {
            if (made->at[i].lower != s || made->at[i].size == 0) continue;
            w->lo[n] = s;
            w->hi[n] = (uint32_t)made->at[i].upper;
            w->size[n] = made->at[i].size;
            w->origin[n] = n;
            w->buffers[n++] = made->at[i];
        }
    }
    w->part = (onv_part){.n = n,
                         .sections = sections,
                         .lo = w->lo,
                         .hi = w->hi,
                         .size = w->size,
                         .origin = w->origin,
                         .unit = 1,
                         .load = brute_load(w->buffers, n)};
}

static onv_search_result run(onv_search *search, uint64_t capacity, const onv_search_style *style,
                             uint64_t *offsets)
{
    onv_effort effort = {.left = 100000000};
    onv_search_result result;
    onv_error err = {0};
    if (onv_search_run(search, capacity, style, 100000000, &effort, offsets, &result, &err) !=
        ONV_OK)
        fail_msg("%s", err.message);
    return result;
}

static void try_styles(const whole *w, uint64_t best, uint64_t capacity, bool keep)
{
    onv_search *search = NULL;
    for (int i = 0; i < 30; i++) {
        onv_search_style style = {.order = (onv_order)(i % 5),
                                  .reversed = i % 2 == 1,
                                  .choice = (onv_choice)(i % 3),
                                  .seed = (uint64_t)(i / 10)};
        uint64_t offsets[BRUTE_MAX];
        /* A search that is kept remembers what failed before, at this and other capacities. */
        if (search == NULL) assert_int_equal(onv_search_new(&w->part, &search, NULL), ONV_OK);
        onv_search_result result = run(search, capacity, &style, offsets);
        assert_int_equal(result, capacity < best ? ONV_SEARCH_NONE : ONV_SEARCH_FOUND);
        if (result == ONV_SEARCH_FOUND) {
            assert_false(brute_overlap(w->buffers, w->part.n, offsets));
            for (uint32_t row = 0; row < w->part.n; row++)
                assert_true(offsets[row] + w->size[row] <= capacity);
        }
        if (keep && i % 4 == 0 && best > 0) run(search, best - 1, &style, offsets);
        if (keep) continue;
        onv_search_destroy(search);
        search = NULL;
    }
    onv_search_destroy(search);
}

static void all_styles_agree_with_exhaustive_search(void **state)
{
    (void)state;
    instance made = {0};
    int beyond = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        made.count = 0;
        uint32_t sections = 3 + (uint32_t)(seed % 4);
        if (seed % 2 == 0)
            make_full(&made, seed, sections, 6 + (uint32_t)(seed % 5));
        else
            make_uniform(&made, seed, BRUTE_MAX, sections, 3, 9);
        for (size_t i = 0; i < made.count; i++)
            if (made.at[i].upper > sections) made.at[i].upper = sections;
        if (made.count > BRUTE_MAX) continue;
        whole w;
        make_whole(&w, &made, sections);
        uint64_t best = brute_height(w.buffers, w.part.n);
        if (best > w.part.load) beyond++;
        for (uint64_t capacity = best > 1 ? best - 1 : best; capacity <= best + 1; capacity++)
            try_styles(&w, best, capacity, capacity == best);
    }
    onv_vec_cleanup(&made);
    assert_true(beyond > 5);
}

/* Middle-sized instances that no exhaustive search reaches: whatever one style proves infeasible, no
 * other style may find. */
static void no_style_finds_what_another_excludes(void **state)
{
    (void)state;
    instance made = {0};
    int proofs = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        made.count = 0;
        make_full(&made, seed, 10, 16);
        uint64_t *sizes = onv_heap_calloc(made.count, sizeof *sizes);
        uint64_t *offsets = onv_heap_calloc(made.count, sizeof *offsets);
        for (size_t i = 0; i < made.count; i++) sizes[i] = made.at[i].size;
        onv_arena arena;
        onv_arena_init(&arena, SIZE_MAX);
        onv_parts parts;
        assert_int_equal(onv_parts_split(made.at, sizes, made.count, offsets, &arena, &parts, NULL),
                         ONV_OK);
        for (size_t p = 0; p < parts.list.count; p++) {
            const onv_part *part = &parts.list.at[p];
            bool none = false, found = false;
            for (int i = 0; i < 15; i++) {
                onv_search_style style = {.order = (onv_order)(i % 5),
                                          .choice = (onv_choice)(i % 3)};
                onv_search *search;
                assert_int_equal(onv_search_new(part, &search, NULL), ONV_OK);
                onv_search_result result = run(search, part->load, &style, offsets);
                none = none || result == ONV_SEARCH_NONE;
                found = found || result == ONV_SEARCH_FOUND;
                onv_search_destroy(search);
            }
            assert_false(none && found);
            proofs += none;
        }
        onv_vec_cleanup(&parts.list);
        onv_arena_cleanup(&arena);
        onv_heap_free(sizes);
        onv_heap_free(offsets);
    }
    onv_vec_cleanup(&made);
    assert_true(proofs > 5);
}

static void work_is_limited(void **state)
{
    (void)state;
    instance made = {0};
    make_jigsaw(&made, 200, 200, 200, 1000);
    uint64_t *sizes = onv_heap_calloc(made.count, sizeof *sizes);
    uint64_t *offsets = onv_heap_calloc(made.count, sizeof *offsets);
    for (size_t i = 0; i < made.count; i++) sizes[i] = made.at[i].size;
    onv_arena arena;
    onv_arena_init(&arena, SIZE_MAX);
    onv_parts parts;
    assert_int_equal(onv_parts_split(made.at, sizes, made.count, offsets, &arena, &parts, NULL),
                     ONV_OK);
    assert_int_equal(parts.list.count, 1);
    onv_search *search;
    assert_int_equal(onv_search_new(&parts.list.at[0], &search, NULL), ONV_OK);
    onv_effort effort = {.left = 1000000};
    onv_search_result result;
    onv_search_style style = {.order = ONV_ORDER_SIZE};
    assert_int_equal(onv_search_run(search, 1000, &style, 200000, &effort, offsets, &result, NULL),
                     ONV_OK);
    assert_int_equal(result, ONV_SEARCH_SPENT);
    assert_in_range(effort.spent, 200000, 400000);
    onv_search_destroy(search);
    onv_vec_cleanup(&parts.list);
    onv_arena_cleanup(&arena);
    onv_heap_free(sizes);
    onv_heap_free(offsets);
    onv_vec_cleanup(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_styles_agree_with_exhaustive_search),
        cmocka_unit_test(no_style_finds_what_another_excludes),
        cmocka_unit_test(work_is_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
