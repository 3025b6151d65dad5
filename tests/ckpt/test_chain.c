/* The chain solver against every plan there is, and against numbers that are known. */
#include "ckpt/plans.h"
#include "support/test.h"

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * UINT64_C(0x2545F4914F6CDD1D) >> 33;
}

static uint64_t below(uint64_t *state, uint64_t n)
{
    return next_random(state) % n;
}

/* --- Against brute force ----------------------------------------------------------------------- */

static onv_chain_solution solve(const onv_chain *chain, onv_arena *arena)
{
    onv_chain_solution solution;
    onv_error err = {0};
    if (onv_chain_solve(chain, arena, &solution, &err) != ONV_OK) fail_msg("%s", err.message);
    return solution;
}

typedef outcome (*judge)(const void *context, const onv_chain_range *ranges, uint32_t count);

static outcome in_chain(const void *context, const onv_chain_range *ranges, uint32_t count)
{
    return plan_in_chain(context, ranges, count);
}

static outcome on_layers(const void *context, const onv_chain_range *ranges, uint32_t count)
{
    return plan_on_layers(context, ranges, count);
}

/* The front's points are plans that do what they promise, no plan betters one, and every plan is
 * matched or bettered by one. */
static void compare(const onv_chain *chain, judge of, const void *context)
{
    onv_arena arena;
    onv_chain_ranges ranges = {0};
    plan_list plans;
    onv_arena_init(&arena, (size_t)1 << 28);
    onv_chain_solution solution = solve(chain, &arena);
    const onv_chain_front *front = &solution.front;
    for (uint32_t i = 0; i < front->count; i++) {
        assert_int_equal(onv_chain_plan(&solution, i, &ranges, NULL), ONV_OK);
        outcome got = of(context, ranges.at, (uint32_t)ranges.count);
        assert_false(got.is_refused);
        assert_int_equal(got.peak_bytes, front->at[i].peak_bytes);
        assert_int_equal(got.cost, front->at[i].cost);
    }
    plans_all(chain->n_units, &plans);
    uint64_t once = 0;
    for (uint32_t i = 0; i < chain->n_units; i++) once += chain->units[i].cost;
    for (size_t p = 0; p < plans.count; p++) {
        outcome got = of(context, plans.at[p].at, plans.at[p].count);
        if (got.is_refused || got.cost > once + chain->max_extra_cost) continue;
        bool matched = false;
        for (uint32_t i = 0; i < front->count; i++)
            matched |= front->at[i].peak_bytes <= got.peak_bytes && front->at[i].cost <= got.cost;
        assert_true(matched);
    }
    onv_vec_cleanup(&plans);
    onv_vec_cleanup(&ranges);
    onv_arena_cleanup(&arena);
}

/* Mostly few: the number of plans grows eightfold with each. */
static uint32_t some_units(uint64_t *seed, int round)
{
    uint32_t most = MAX_PLAN_UNITS;
    return round % 25 == 0 ? most - (uint32_t)below(seed, 2) : 2 + (uint32_t)below(seed, 5);
}

/* A unit that reads one to three tensors, some of units far before. Every other chain repeats its first units, with three
 * bytes more at each turn. */
TEST(random_chains)
{
    uint64_t seed = 20190703;
    for (int round = 0; round < 150; round++) {
        const uint32_t period = round % 2 == 0 ? MAX_PLAN_UNITS : 1 + (uint32_t)below(&seed, 3);
        onv_chain_unit units[MAX_PLAN_UNITS] = {0};
        onv_chain_tensor tensors[MAX_PLAN_UNITS] = {0};
        onv_chain_reader readers[MAX_PLAN_UNITS][MAX_PLAN_UNITS];
        uint64_t turn[MAX_PLAN_UNITS + 1];
        uint32_t n = some_units(&seed, round);
        for (uint32_t i = 0; i < n; i++) {
            uint64_t cost = below(&seed, 10);
            units[i] = (onv_chain_unit){.cost = cost,
                                        .last_cost = below(&seed, cost + 1),
                                        .forward_bytes = below(&seed, 40),
                                        .last_bytes = below(&seed, 40),
                                        .passing_bytes = below(&seed, 40),
                                        .own_bytes = below(&seed, 20),
                                        .backward_bytes = below(&seed, 60),
                                        .no_start = below(&seed, 5) == 0};
            tensors[i] = (onv_chain_tensor){.bytes = below(&seed, 20),
                                            .maker = i,
                                            .saved_by_maker = below(&seed, 2) == 0,
                                            .readers = readers[i]};
            for (uint32_t r = i + 1; r < n; r++)
                if (r == i + 1 || below(&seed, 4) == 0)
                    readers[i][tensors[i].n_readers++] =
                        (onv_chain_reader){r, below(&seed, 3) != 0};
            turn[i] = below(&seed, 10);
            if (i < period) continue;
            units[i] = units[i - period];
            units[i].backward_bytes += 3;
            tensors[i] = tensors[i - period];
            tensors[i].maker = i;
            tensors[i].readers = readers[i];
            tensors[i].n_readers = 0;
            for (uint32_t k = 0; k < tensors[i - period].n_readers; k++) {
                onv_chain_reader r = readers[i - period][k];
                r.unit += period;
                if (r.unit < n) readers[i][tensors[i].n_readers++] = r;
            }
            turn[i] = turn[i - period] + 3;
        }
        turn[n] = 0;
        onv_chain chain = {.units = units,
                           .n_units = n,
                           .tensors = tensors,
                           .n_tensors = n,
                           .turn_bytes = turn,
                           .max_extra_cost = round % 3 == 0 ? 12 : 1000};
        compare(&chain, in_chain, &chain);
    }
}

TEST(random_layers)
{
    uint64_t seed = 141592653;
    for (int round = 0; round < 150; round++) {
        static layers l;
        l = (layers){.count = (int)some_units(&seed, round)};
        for (int i = 0; i < l.count; i++) {
            layer *a = &l.at[i];
            *a = (layer){.height = 1,
                         .width = 1,
                         .channels = 1 + below(&seed, 9),
                         .cost = below(&seed, 10),
                         .n_in = 1 + (int)below(&seed, 2)};
            a->in[0] = i - 1; /* the image before the first */
            a->in[1] = i > 1 ? (int)below(&seed, (uint64_t)i) : IMAGE;
        }
        onv_chain chain = layers_chain(&l);
        chain.max_extra_cost = 1000;
        compare(&chain, on_layers, &l);
    }
}

/* --- Known numbers ----------------------------------------------------------------------------- */

/* The least number of forward steps that reverse `steps` equal ones where `slots` states can be
 * stored, the first one among them: Griewank's REVOLVE (1992). The run of a step that its backward
 * follows at once does not count. */
static uint64_t revolve(uint64_t steps, uint64_t slots)
{
    uint64_t runs = 0, managed = 1; /* (slots + runs)! / (slots! runs!) steps, each run so often */
    while (managed < steps) {
        runs++;
        managed = managed * (slots + runs) / runs;
    }
    uint64_t spared = runs > 0; /* (slots + runs)! / ((slots + 1)! (runs - 1)!) */
    for (uint64_t k = 1; k < runs; k++) spared = spared * (slots + 1 + k) / k;
    return runs * steps - spared;
}

TEST(equal_steps)
{
    enum { N = 30 };
    onv_chain_unit units[N];
    onv_chain_tensor tensors[N];
    onv_chain_reader readers[N];
    uint64_t turn[N + 1] = {0};
    for (uint32_t i = 0; i < N; i++) {
        units[i] = (onv_chain_unit){.cost = 1, .last_cost = 1, .own_bytes = 1000};
        readers[i] = (onv_chain_reader){i + 1, true};
        tensors[i] = (onv_chain_tensor){
            .bytes = 1, .maker = i, .n_readers = i + 1 < N, .readers = &readers[i]};
    }
    onv_chain chain = {.units = units,
                       .n_units = N,
                       .tensors = tensors,
                       .n_tensors = N,
                       .turn_bytes = turn,
                       .max_extra_cost = 1000};
    onv_arena arena;
    onv_arena_init(&arena, (size_t)1 << 28);
    onv_chain_solution solution = solve(&chain, &arena);
    const onv_chain_front *front = &solution.front;
    /* A byte is a state: here the one that is reached counts, there the input does. Keeping a step
     * costs more than any number of states. */
    assert_true(front->count > N - 1);
    for (uint32_t i = 0; i < N - 1; i++) {
        assert_int_equal(front->at[i].peak_bytes, i + 1);
        assert_int_equal(front->at[i].cost - N, revolve(N, i + 1));
    }
    onv_arena_cleanup(&arena);
}

TEST(limits)
{
    static onv_chain_unit units[ONV_CHAIN_MAX_UNITS + 1];
    static uint64_t turn[ONV_CHAIN_MAX_UNITS + 2];
    onv_chain chain = {.units = units, .turn_bytes = turn};
    onv_chain_solution solution;
    onv_error err = {0};
    onv_arena arena;
    onv_arena_init(&arena, (size_t)1 << 28);
    assert_int_equal(onv_chain_solve(&chain, &arena, &solution, &err), ONV_ERR_LIMIT);
    chain.n_units = ONV_CHAIN_MAX_UNITS + 1;
    assert_int_equal(onv_chain_solve(&chain, &arena, &solution, &err), ONV_ERR_LIMIT);
    chain.n_units = 2;
    units[0].own_bytes = units[1].own_bytes = UINT64_MAX / 2;
    assert_int_equal(onv_chain_solve(&chain, &arena, &solution, &err), ONV_ERR_OVERFLOW);
    units[0].own_bytes = units[1].own_bytes = 0;
    units[0].cost = UINT64_MAX / 2;
    assert_int_equal(onv_chain_solve(&chain, &arena, &solution, &err), ONV_ERR_OVERFLOW);
    units[0].cost = 7;
    assert_int_equal(onv_chain_solve(&chain, &arena, &solution, &err), ONV_OK);
    assert_int_equal(solution.front.count, 1);
    assert_int_equal(solution.front.at[0].cost, 7);
    onv_arena_cleanup(&arena);
}
