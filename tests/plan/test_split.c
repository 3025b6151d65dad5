/* Splitting: what goes to the bottom, what is left, and that nothing is lost. */
#include "base/heap.h"
#include "plan/brute.h"
#include "plan/instances.h"
#include "plan/part.h"
#include "support/test.h"

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
