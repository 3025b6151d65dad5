/* The memory budget of torch.compile: torch._functorch.config.activation_memory_budget.
 *
 * 1 is the default partition, 0 keeps the network's inputs alone. Between them the rules are given up
 * one after another until the partition is small enough; then a knapsack says which of the products,
 * convolutions and reductions may run again: the most estimated work is to stay within the budget. Its sizes
 * are parts of a ten-thousandth of what the default keeps, its sums float32, as PyTorch's are, so that
 * ties fall alike. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "ckpt/min_cut.h"

enum { STEPS = 10000 };

/* Choices of the knapsack: items times steps. */
static const uint64_t max_choices = UINT64_C(2000000000);

typedef struct item {
    uint32_t node;
    uint64_t bytes;
    uint32_t steps;
    float work;
} item;

typedef struct knapsack {
    item *at;
    uint32_t n;
    uint32_t capacity; /* in steps */
    float *best;       /* by steps used: the most work that is kept */
    uint8_t *takes;    /* a bit for each item and number of steps: the item is among the best */
} knapsack;

static double sum_of(const onv_cut_graph *g, const bool *saved)
{
    double sum = 0;
    for (uint32_t i = 0; i < g->n; i++)
        if (saved[i]) sum += (double)g->joint->nodes.at[i].bytes;
    return sum / 1e9;
}

static size_t choice(const knapsack *k, uint32_t i, uint32_t steps)
{
    return (size_t)i * ((size_t)k->capacity + 1) + steps;
}

static void fill(knapsack *k)
{
    for (uint32_t i = 0; i < k->n; i++) {
        uint32_t steps = k->at[i].steps;
        /* From the largest down, what is read is of the items before. */
        for (uint32_t j = k->capacity + 1; j-- > steps;) {
            float with = k->best[j - steps] + k->at[i].work;
            if (!(with > k->best[j])) continue;
            k->best[j] = with;
            k->takes[choice(k, i, j) / 8] |= (uint8_t)(1U << (choice(k, i, j) % 8));
        }
    }
}

/* What is not among the best may run again. */
static void release(const knapsack *k, bool *may_run)
{
    uint32_t left = k->capacity;
    for (uint32_t i = k->n; i-- > 0;) {
        bool taken = (k->takes[choice(k, i, left) / 8] >> (choice(k, i, left) % 8)) & 1;
        if (taken)
            left -= k->at[i].steps;
        else
            may_run[k->at[i].node] = true;
    }
}

static int by_size(const void *a, const void *b)
{
    const item *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->node < y->node ? -1 : 1;
}

static float work_of(const onv_joint_node *node)
{
    float work = (float)(2 * (double)node->macs);
    return work > 1 ? work : 1;
}

static onv_status list_items(const onv_cut_graph *g, const bool *banned, double range, knapsack *k,
                             onv_error *err)
{
    k->at = ONV_ARENA_ARRAY(g->arena, item, g->n);
    if (k->at == NULL) return onv_fail_memory(err);
    for (uint32_t i = 0; i < g->n; i++) {
        const onv_joint_node *node = &g->joint->nodes.at[i];
        if (!banned[i] || g->distance[i] == ONV_JOINT_NONE || node->kind == ONV_JOINT_PRIMAL)
            continue;
        double steps = nearbyint((double)node->bytes / 1e9 / range * STEPS);
        k->at[k->n++] =
            (item){i, node->bytes, steps > STEPS + 1 ? STEPS + 1 : (uint32_t)steps, work_of(node)};
    }
    qsort(k->at, k->n, sizeof *k->at, by_size);
    return ONV_OK;
}

static onv_status solve(const onv_cut_graph *g, knapsack *k, bool *may_run, onv_error *err)
{
    uint64_t choices;
    if (!onv_u64_mul(k->n, (uint64_t)k->capacity + 1, &choices) || choices > max_choices)
        return onv_fail(err, ONV_ERR_LIMIT, "too many operations to choose from for a budget");
    k->best = ONV_ARENA_ARRAY(g->arena, float, (size_t)k->capacity + 1);
    k->takes = ONV_ARENA_ARRAY(g->arena, uint8_t, (size_t)choices / 8 + 1);
    if (g->arena->failed) return onv_fail_memory(err);
    fill(k);
    release(k, may_run);
    return ONV_OK;
}

/* Is it small enough? `range`: from what the inputs take to what the default keeps. */
static bool fits(const onv_cut_graph *g, const bool *saved, double least, double range,
                 double budget)
{
    return (sum_of(g, saved) - least) / range < budget;
}

onv_status onv_cut_budget(const onv_cut_graph *g, const onv_cut_rules *rules, double budget,
                          bool *saved, onv_error *err)
{
    onv_cut_rules fewer = *rules;
    bool *banned = ONV_ARENA_ARRAY(g->arena, bool, g->n);
    bool *inputs = ONV_ARENA_ARRAY(g->arena, bool, g->n);
    bool *may_run = ONV_ARENA_ARRAY(g->arena, bool, g->n);
    if (g->arena->failed) return onv_fail_memory(err);
    for (uint32_t i = 0; i < g->n; i++) inputs[i] = g->joint->nodes.at[i].kind == ONV_JOINT_PRIMAL;
    memcpy(saved, inputs, g->n * sizeof *saved);
    if (budget <= 0) return ONV_OK;
    ONV_TRY(onv_cut_solve(g, rules, saved, banned, err));
    double least = sum_of(g, inputs), range = sum_of(g, saved) - least;
    if (range <= 0) return ONV_OK; /* smaller than the inputs */
    fewer.used_far_apart = fewer.long_chains = fewer.materialized_backward = false;
    ONV_TRY(onv_cut_solve(g, &fewer, saved, banned, err));
    if (fits(g, saved, least, range, budget)) return ONV_OK;
    fewer.not_listed = false;
    ONV_TRY(onv_cut_solve(g, &fewer, saved, banned, err));
    if (fits(g, saved, least, range, budget)) return ONV_OK;
    knapsack k = {.capacity = (uint32_t)nearbyint(budget * STEPS)};
    ONV_TRY(list_items(g, banned, range, &k, err));
    ONV_TRY(solve(g, &k, may_run, err));
    fewer.may_run = may_run;
    return onv_cut_solve(g, &fewer, saved, banned, err);
}
