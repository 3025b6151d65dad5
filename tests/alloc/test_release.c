/* What PyTorch's allocator does on a device that is full: cached segments go back, and the run ends within a limit. */
#include "alloc/requests.h"
#include "support/test.h"

#define MIB (UINT64_C(1) << 20)

static void add(onv_timeline *t, uint64_t bytes, uint32_t first, uint32_t last)
{
    onv_buffer b = onv_buffer_new(ONV_BUFFER_ACTIVATION, bytes, first, last, "x");
    assert_true(onv_vec_push(&t->buffers, b));
}

/* One of 100 MiB after another of 60, which lie in a segment each: 160 reserved, 100 allocated at once. */
static onv_timeline one_after_the_other(void)
{
    onv_timeline t = {0};
    for (int i = 0; i < 3; i++)
        assert_true(onv_vec_push(&t.steps, (onv_step){.node = ONV_NO_NODE}));
    add(&t, 60 * MIB, 0, 0);
    add(&t, 100 * MIB, 1, 1);
    return t;
}

static onv_release release_of(const onv_timeline *t, const onv_alloc_options *options,
                              uint64_t limit, uint64_t *reserved)
{
    onv_error err = {0};
    onv_placement placement;
    onv_release release;
    if (onv_alloc_run(t, onv_alloc_model_find("torch"), options, &placement, &err) != ONV_OK ||
        onv_release_find(t, NULL, 0, options, limit, &placement.figures, &release, &err) != ONV_OK)
        fail_msg("%s", err.message);
    *reserved = placement.figures.reserved_peak;
    onv_placement_cleanup(&placement);
    return release;
}

static void expect_none(const onv_timeline *t, const onv_alloc_options *options, uint64_t limit)
{
    uint64_t reserved;
    onv_release r = release_of(t, options, limit, &reserved);
    assert_false(r.suffices);
    assert_int_equal(r.reserved_bytes, 0);
    assert_int_equal(r.returned_bytes, 0);
}

TEST(cached_segments_go_back)
{
    const onv_alloc_options options = {0};
    onv_timeline t = one_after_the_other();
    uint64_t reserved;
    onv_release r = release_of(&t, &options, 100 * MIB, &reserved);
    assert_int_equal(reserved, 160 * MIB);
    assert_true(r.suffices);
    assert_int_equal(r.reserved_bytes, 100 * MIB);
    assert_int_equal(r.returned_bytes, 60 * MIB);
    expect_none(&t, &options, 160 * MIB);     /* it is within the limit without */
    expect_none(&t, &options, 100 * MIB - 1); /* as much is in use at once */
    expect_none(&t, &options, 0);             /* no limit */
    expect_none(&t, &options, UINT64_MAX);
    onv_timeline_cleanup(&t);
}

/* Pages in place of segments: those of 60 MiB go back before 40 small buffers need some of their own. */
TEST(pages_go_back)
{
    const onv_alloc_options options = {.torch.expandable_segments = true};
    onv_timeline t = {0};
    uint64_t reserved;
    for (int i = 0; i < 2; i++)
        assert_true(onv_vec_push(&t.steps, (onv_step){.node = ONV_NO_NODE}));
    add(&t, 60 * MIB, 0, 0);
    for (int i = 0; i < 40; i++) add(&t, MIB, 1, 1);
    onv_release r = release_of(&t, &options, 80 * MIB, &reserved);
    assert_int_equal(reserved, 100 * MIB);
    assert_true(r.suffices);
    assert_true(r.reserved_bytes <= 80 * MIB);
    assert_int_equal(r.returned_bytes, 60 * MIB);
    onv_timeline_cleanup(&t);
}
