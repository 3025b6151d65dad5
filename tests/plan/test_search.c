/* Below the planner. Splitting: what goes to the bottom, what is left, and that nothing is lost. The exact search: every style gives
 * the right answer at every capacity. */
#include "base/heap.h"
#include "plan/brute.h"
#include "plan/instances.h"
#include "plan/part.h"
#include "plan/search.h"
#include "support/test.h"

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

TEST(all_styles_agree_with_exhaustive_search)
{
    instance made = {0};
    for (uint64_t seed = 0; seed < 400; seed++) {
        made.count = 0;
        uint32_t sections = 3 + (uint32_t)(seed % 4);
        if (seed % 2 == 0)
            make_full(&made, seed, sections, 6 + (uint32_t)(seed % 5));
        else
            make_uniform(&made, seed, 8, sections, 3, 9);
        for (size_t i = 0; i < made.count; i++)
            if (made.at[i].upper > sections) made.at[i].upper = sections;
        if (made.count > 8) continue;
        whole w;
        make_whole(&w, &made, sections);
        uint64_t best = brute_height(w.buffers, w.part.n);
        for (uint64_t capacity = best > 1 ? best - 1 : best; capacity <= best + 1; capacity++)
            try_styles(&w, best, capacity, capacity == best);
    }
    onv_vec_cleanup(&made);
}

/* --- Parts ------------------------------------------------------------------------------------ */

typedef struct splitting {
    onv_arena arena;
    onv_parts parts;
    uint64_t *sizes, *offsets;
} splitting;

static void split(splitting *s, const onv_plan_buffer *buffers, size_t count)
{
    onv_error err = {0};
    onv_arena_init(&s->arena, SIZE_MAX);
    s->sizes = onv_heap_calloc(count, sizeof *s->sizes);
    s->offsets = onv_heap_calloc(count, sizeof *s->offsets);
    for (size_t i = 0; i < count; i++) s->sizes[i] = buffers[i].size;
    if (onv_parts_split(buffers, s->sizes, count, s->offsets, &s->arena, &s->parts, &err) != ONV_OK)
        fail_msg("%s", err.message);
}

static void cleanup(splitting *s)
{
    onv_vec_cleanup(&s->parts.list);
    onv_arena_cleanup(&s->arena);
    onv_heap_free(s->sizes);
    onv_heap_free(s->offsets);
}

TEST(nested_lifetimes_are_a_stack)
{
    const onv_plan_buffer rows[] = {{3, 4, 5}, {0, 9, 1}, {1, 8, 2}, {2, 6, 3}, {7, 8, 100}};
    splitting s;
    split(&s, rows, 5);
    assert_int_equal(s.parts.list.count, 0);
    assert_int_equal(s.parts.height, 103);
    assert_int_equal(s.offsets[1], 0);
    assert_int_equal(s.offsets[2], 1);
    assert_int_equal(s.offsets[3], 3);
    assert_int_equal(s.offsets[0], 6);
    assert_int_equal(s.offsets[4], 3);
    cleanup(&s);
}

TEST(times_apart_are_parts)
{
    /* Two chains of four that hang together, above a buffer that lives throughout. */
    const onv_plan_buffer rows[] = {{0, 100, 12}, {1, 3, 4},    {2, 5, 6},
                                    {4, 7, 4},    {6, 8, 2},    {50, 53, 20},
                                    {52, 56, 40}, {55, 59, 60}, {58, 61, 20}};
    splitting s;
    split(&s, rows, 9);
    assert_int_equal(s.offsets[0], 0);
    assert_int_equal(s.parts.height, 12);
    assert_int_equal(s.parts.list.count, 2);
    const onv_part *a = &s.parts.list.at[0], *b = &s.parts.list.at[1];
    if (a->origin[0] > b->origin[0]) {
        const onv_part *swap = a;
        a = b;
        b = swap;
    }
    assert_int_equal(a->n, 4);
    assert_int_equal(a->sections, 3);
    assert_int_equal(a->base, 12);
    assert_int_equal(a->unit, 2);
    assert_int_equal(a->load, 5);
    assert_int_equal(b->n, 4);
    assert_int_equal(b->base, 12);
    assert_int_equal(b->unit, 20);
    assert_int_equal(b->size[2], 3);
    assert_int_equal(b->load, 5);
    assert_int_equal(s.parts.max_load, 112);
    cleanup(&s);
}

/* Rows conflict in their part exactly as they do in time; each is in one part or at the bottom. */
TEST(sections_keep_the_conflicts)
{
    instance made = {0};
    for (uint64_t seed = 0; seed < 100; seed++) {
        made.count = 0;
        make_uniform(&made, seed, 60, 10 + (uint32_t)seed, 8, 30);
        splitting s;
        split(&s, made.at, made.count);
        assert_int_equal(s.parts.max_load, brute_load(made.at, made.count));
        uint8_t *seen = onv_heap_calloc(made.count, 1);
        for (size_t p = 0; p < s.parts.list.count; p++) {
            const onv_part *part = &s.parts.list.at[p];
            for (uint32_t i = 0; i < part->n; i++) {
                const onv_plan_buffer *x = &made.at[part->origin[i]];
                assert_int_equal(seen[part->origin[i]]++, 0);
                assert_int_equal(part->size[i] * part->unit, x->size);
                assert_true(part->lo[i] < part->hi[i] && part->hi[i] <= part->sections);
                assert_true(i == 0 || part->lo[i - 1] <= part->lo[i]);
                for (uint32_t k = 0; k < i; k++) {
                    const onv_plan_buffer *y = &made.at[part->origin[k]];
                    assert_int_equal(x->lower < y->upper && y->lower < x->upper,
                                     part->lo[i] < part->hi[k] && part->lo[k] < part->hi[i]);
                }
            }
        }
        onv_heap_free(seen);
        cleanup(&s);
    }
    onv_vec_cleanup(&made);
}

/* Middle-sized instances, where trying everything takes too long: what one style proves infeasible no
 * other may find. */
TEST(no_style_finds_what_another_excludes)
{
    instance made = {0};
    int proofs = 0;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        made.count = 0;
        make_full(&made, seed, 4 + (uint32_t)(seed % 7), 3 + (uint32_t)(seed / 7 % 10));
        if (made.count < 10 || made.count > 24) continue;
        splitting s;
        split(&s, made.at, made.count);
        for (size_t p = 0; p < s.parts.list.count; p++) {
            const onv_part *part = &s.parts.list.at[p];
            bool none = false, found = false;
            for (int i = 0; i < 15; i++) {
                onv_search_style style = {.order = (onv_order)(i % 5),
                                          .choice = (onv_choice)(i % 3)};
                onv_search *search;
                assert_int_equal(onv_search_new(part, &search, NULL), ONV_OK);
                onv_search_result result = run(search, part->load, &style, s.offsets);
                none = none || result == ONV_SEARCH_NONE;
                found = found || result == ONV_SEARCH_FOUND;
                onv_search_destroy(search);
            }
            assert_false(none && found);
            proofs += none;
        }
        cleanup(&s);
    }
    onv_vec_cleanup(&made);
    assert_true(proofs > 5);
}

TEST(work_is_limited)
{
    instance made = {0};
    make_jigsaw(&made, 200, 200, 200, 1000);
    splitting s;
    split(&s, made.at, made.count);
    const onv_part *part = &s.parts.list.at[0];
    for (size_t i = 1; i < s.parts.list.count; i++)
        if (s.parts.list.at[i].n > part->n) part = &s.parts.list.at[i];
    onv_search *search;
    assert_int_equal(onv_search_new(part, &search, NULL), ONV_OK);
    onv_effort effort = {.left = 1000000};
    onv_search_result result;
    onv_search_style style = {.order = ONV_ORDER_SIZE};
    assert_int_equal(
        onv_search_run(search, part->load, &style, 200000, &effort, s.offsets, &result, NULL),
        ONV_OK);
    assert_int_equal(result, ONV_SEARCH_SPENT);
    assert_in_range(effort.spent, 200000, 400000);
    effort = (onv_effort){.left = 100000}; /* less than the run may take */
    assert_int_equal(
        onv_search_run(search, part->load, &style, 200000, &effort, s.offsets, &result, NULL),
        ONV_OK);
    assert_int_equal(result, ONV_SEARCH_SPENT);
    assert_in_range(effort.spent, 100000, 150000);
    onv_search_destroy(search);
    cleanup(&s);
    onv_vec_cleanup(&made);
}
