/* Batches that fit 16e9 bytes in Checkmate's cost model at a cost of at most one more forward pass. */
#include "ckpt/plans.h"
#include "support/test.h"

#define BUDGET UINT64_C(16000000000)

/* Activations grow with the batch, parameters do not. */
static uint64_t batch(const layers *l, uint64_t image_bytes)
{
    return (BUDGET - 8 * l->parameters) / image_bytes;
}

/* Every plan of the front is possible, and takes what it is said to take. */
static void replay(const layers *l, const onv_chain_solution *solution)
{
    onv_chain_ranges ranges = {0};
    for (uint32_t i = 0; i < solution->front.count; i++) {
        assert_int_equal(onv_chain_plan(solution, i, &ranges, NULL), ONV_OK);
        outcome got = plan_on_layers(l, ranges.at, (uint32_t)ranges.count);
        assert_true(got.peak_bytes <= solution->front.at[i].peak_bytes);
        assert_true(got.cost <= solution->front.at[i].cost);
        assert_true(got.peak_bytes >= layers_bound(l));
        assert_true(got.cost <= 2 * solution->front.at[solution->front.count - 1].cost);
    }
    onv_vec_cleanup(&ranges);
}

static uint64_t largest_batch(void (*net)(layers *), uint64_t parameters)
{
    static layers l;
    onv_arena arena;
    onv_chain_solution solution;
    onv_error err = {0};
    onv_arena_init(&arena, (size_t)1 << 30);
    net(&l);
    onv_chain chain = layers_chain(&l);
    if (onv_chain_solve(&chain, &arena, &solution, &err) != ONV_OK) fail_msg("%s", err.message);
    assert_true(solution.front.count > 0);
    uint64_t least = solution.front.at[0].peak_bytes,
             most = solution.front.at[solution.front.count - 1].peak_bytes;
    replay(&l, &solution);
    print_message("%3d layers, %u plans; batch %ju, keeping all %ju, bound %ju\n", l.count,
                  solution.front.count, (uintmax_t)batch(&l, least), (uintmax_t)batch(&l, most),
                  (uintmax_t)batch(&l, layers_bound(&l)));
    assert_int_equal(l.parameters, parameters);
    onv_arena_cleanup(&arena);
    return batch(&l, least);
}

TEST(vgg19)
{
    assert_int_equal(largest_batch(net_vgg19, 143667240), 289);
}

TEST(mobilenet)
{
    assert_int_equal(largest_batch(net_mobilenet, 4253864), 1231);
}

TEST(resnet50)
{
    assert_true(largest_batch(net_resnet50, 25636712) >= 504);
}

TEST(unet)
{
    assert_true(largest_batch(net_unet, 12327562) >= 57);
}
