/* Random traces: properties of all models. */
#include "alloc/alloc.h"
#include "alloc/csv_text.h"
#include "alloc/traces.h"
#include "base/heap.h"
#include "support/capture.h"
#include "support/held.h"
#include "support/test.h"

#define MIB (UINT64_C(1) << 20)

static void open_model(onv_allocator *a, const onv_alloc_model *model,
                       const onv_alloc_options *options)
{
    onv_error err = {0};
    if (onv_allocator_init(a, model, options, &err) != ONV_OK) fail_msg("%s", err.message);
}

static void feed(onv_allocator *a, const onv_trace_event *event)
{
    onv_error err = {0};
    if (trace_feed(a, event, &err) != ONV_OK) fail_msg("%s", err.message);
}

static void check(const onv_allocator *a)
{
    onv_error err = {0};
    if (allocator_check(a, &err) != ONV_OK) fail_msg("%s: %s", a->model->name, err.message);
}

static uint64_t now(const onv_allocator *a, onv_alloc_metric metric)
{
    return a->stats.of[metric][ONV_POOL_ALL].current;
}

/* Requests are inside of blocks, blocks inside of segments that do not overlap (allocator_check
 * holds the tiling), and nothing is smaller than what is live. */
TEST(invariants)
{
    for (size_t m = 0; m < onv_n_alloc_models; m++) {
        onv_allocator a;
        open_model(&a, onv_alloc_models[m], NULL);
        test_trace trace = random_trace((trace_shape){(uint32_t)m + 400, 4000, 25, 48, 0, 0});
        uint64_t live = 0;
        uint64_t *sizes = onv_heap_calloc(trace.n_ids, sizeof *sizes);
        for (size_t i = 0; i < trace.count; i++) {
            const onv_trace_event *e = &trace.events[i];
            feed(&a, e);
            if (e->is_free) {
                live -= sizes[e->id];
            } else {
                sizes[e->id] = e->bytes;
                live += e->bytes;
                const onv_block *b = allocator_block(&a, e->id);
                assert_int_equal(b->requested, e->bytes);
                assert_true(b->bytes >= e->bytes);
            }
            assert_int_equal(now(&a, ONV_STAT_REQUESTED_BYTES), live);
            assert_true(now(&a, ONV_STAT_ALLOCATED_BYTES) >= live);
            assert_true(now(&a, ONV_STAT_RESERVED_BYTES) >= now(&a, ONV_STAT_ALLOCATED_BYTES));
            if (i % 64 == 0) check(&a);
        }
        onv_heap_free(sizes);
        random_trace_free(&trace);
        onv_allocator_cleanup(&a);
    }
}

/* When everything is freed, every segment is one free block again. */
TEST(all_freed)
{
    for (size_t m = 0; m < onv_n_alloc_models; m++) {
        onv_allocator a;
        open_model(&a, onv_alloc_models[m], NULL);
        test_trace trace = random_trace((trace_shape){(uint32_t)m + 500, 3000, 25, 45, 0, 0});
        for (size_t i = 0; i < trace.count; i++) feed(&a, &trace.events[i]);
        for (uint32_t id = 0; id < trace.n_ids; id++) {
            if (allocator_block(&a, id) != NULL)
                feed(&a, &(onv_trace_event){.id = id, .is_free = true});
        }
        check(&a);
        assert_int_equal(now(&a, ONV_STAT_ALLOCATED_BYTES), 0);
        assert_int_equal(now(&a, ONV_STAT_REQUESTED_BYTES), 0);
        assert_int_equal(now(&a, ONV_STAT_INACTIVE_BYTES), 0);
        assert_int_equal(now(&a, ONV_STAT_INACTIVE_BLOCKS), 0);
        const onv_segment *s = NULL;
        while ((s = allocator_next_segment(&a, s)) != NULL) {
            const onv_block *b = allocator_next_block(&a, s, NULL);
            assert_int_equal(b->state, ONV_BLOCK_FREE);
            b = allocator_next_block(&a, s, b);
            if (b == NULL) continue;
            assert_int_equal(b->state, ONV_BLOCK_UNMAPPED); /* the tail of an expandable segment */
            assert_null(allocator_next_block(&a, s, b));
        }
        onv_error err = {0};
        assert_int_equal(onv_allocator_release_cached(&a, &err), ONV_OK);
        /* ONNX Runtime's arena keeps its first region where regions grow. */
        bool keeps_one = strcmp(a.model->name, "bfc") == 0;
        if (a.model->release_cached != NULL && !keeps_one)
            assert_int_equal(now(&a, ONV_STAT_RESERVED_BYTES), 0);
        if (keeps_one) assert_true(now(&a, ONV_STAT_SEGMENTS) <= 1);
        check(&a);
        random_trace_free(&trace);
        onv_allocator_cleanup(&a);
    }
}

/* A placement is one of its timeline, and its figures are those of the events one by one. */
TEST(placements_add_up)
{
    test_trace trace = random_trace((trace_shape){700, 5000, 26, 49, 0, 0});
    OWNED_TEXT text = trace_text(&trace);
    onv_timeline t;
    onv_error err = {0};
    assert_int_equal(csv_text_read(text, strlen(text), &t, &err), ONV_OK);
    assert_int_equal(onv_timeline_check(&t, &err), ONV_OK);
    for (size_t m = 0; m < onv_n_alloc_models; m++) {
        onv_placement p;
        onv_held_figures figures;
        const char *name = onv_alloc_models[m]->name;
        assert_int_equal(onv_alloc_run(&t, onv_alloc_models[m], NULL, &p, &err), ONV_OK);
        assert_int_equal(trace_serve(&trace, onv_alloc_models[m], NULL, &figures, &err), ONV_OK);
        assert_int_equal(p.figures.reserved_peak, figures.reserved_peak);
        assert_int_equal(p.figures.allocated_peak, figures.allocated_peak);
        assert_int_equal(p.figures.segments_peak, figures.segments_peak);
        bool has_places = strcmp(name, "ideal") != 0;
        if (has_places && placement_check(&p, &t, &err) != ONV_OK)
            fail_msg("%s: %s", name, err.message);
        onv_placement_cleanup(&p);
    }
    onv_timeline_cleanup(&t);
    random_trace_free(&trace);
}

#ifdef ONV_FAULT_INJECTION
/* Whichever allocation fails, the status says so and nothing leaks (the sanitizer looks). */
TEST(memory_failures)
{
    test_trace trace = random_trace((trace_shape){800, 600, 25, 48, 0, 0});
    onv_alloc_options options = {.capacity_bytes = 300 * MIB};
    for (size_t m = 0; m < onv_n_alloc_models; m++) {
        for (long n = 0;; n++) {
            onv_held_figures result;
            onv_error err = {0};
            onv_heap_fail_after(n);
            onv_status status = trace_serve(&trace, onv_alloc_models[m], &options, &result, &err);
            onv_heap_fail_after(-1);
            if (status == ONV_OK) break;
            assert_int_equal(status, ONV_ERR_MEMORY);
            assert_int_equal(err.code, ONV_ERR_MEMORY);
            assert_true(n < 1000);
        }
    }
    random_trace_free(&trace);
}
#endif
