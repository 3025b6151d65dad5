#include "plan/instances.h"

#include <stdlib.h>

uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t below(uint64_t *state, uint64_t limit)
{
    return next_random(state) % limit;
}

static void add(instance *out, uint64_t lower, uint64_t upper, uint64_t size)
{
    onv_plan_buffer buffer = {lower, upper, size};
    if (!onv_vec_push(out, buffer)) abort();
}

static void shuffle(instance *out, uint64_t *random)
{
    for (size_t i = out->count; i > 1; i--) {
        size_t k = (size_t)below(random, i);
        onv_plan_buffer swap = out->at[i - 1];
        out->at[i - 1] = out->at[k];
        out->at[k] = swap;
    }
}

void make_uniform(instance *out, uint64_t seed, uint32_t n, uint32_t steps, uint32_t longest,
                  uint32_t largest)
{
    uint64_t random = seed;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t lower = below(&random, steps);
        uint64_t upper = lower + 1 + below(&random, longest);
        add(out, lower, upper, below(&random, (uint64_t)largest + 1));
    }
}

void make_jigsaw(instance *out, uint64_t seed, uint32_t n, uint32_t steps, uint32_t capacity)
{
    uint64_t random = seed;
    add(out, 0, steps, capacity);
    for (uint32_t tries = 0; out->count < n && tries < 20 * n; tries++) {
        /* The larger of three, cut across or along. */
        size_t best = (size_t)below(&random, out->count);
        for (int i = 0; i < 2; i++) {
            size_t other = (size_t)below(&random, out->count);
            onv_plan_buffer *a = &out->at[other], *b = &out->at[best];
            if ((a->upper - a->lower) * a->size > (b->upper - b->lower) * b->size) best = other;
        }
        onv_plan_buffer cut = out->at[best];
        uint64_t width = cut.upper - cut.lower;
        bool across = below(&random, width * capacity + cut.size * steps) < width * capacity;
        if (across && width > 1) {
            uint64_t at = cut.lower + 1 + below(&random, width - 1);
            out->at[best].upper = at;
            add(out, at, cut.upper, cut.size);
        } else if (!across && cut.size > 1) {
            uint64_t at = 1 + below(&random, cut.size - 1);
            out->at[best].size = at;
            add(out, cut.lower, cut.upper, cut.size - at);
        }
    }
    shuffle(out, &random);
}

void shorten_lives(instance *rows, uint64_t seed, uint32_t part)
{
    for (size_t i = 0; i < rows->count; i++) {
        onv_plan_buffer *b = &rows->at[i];
        uint64_t most = (b->upper - b->lower) / part;
        b->lower += below(&seed, most + 1);
        b->upper -= below(&seed, most + 1);
    }
}

/* Four pieces around a fifth, so that no straight cut goes through all of `whole`; false if it is
 * too small for that. */
static bool cut_pinwheel(instance *out, size_t whole, uint64_t *random)
{
    onv_plan_buffer r = out->at[whole];
    uint64_t width = r.upper - r.lower;
    if (width < 3 || r.size < 3) return false;
    uint64_t x1 = 1 + below(random, width - 2), x2 = x1 + 1 + below(random, width - x1 - 1);
    uint64_t y1 = 1 + below(random, r.size - 2), y2 = y1 + 1 + below(random, r.size - y1 - 1);
    out->at[whole] = (onv_plan_buffer){r.lower + x1, r.lower + x2, y2 - y1};
    if (below(random, 2) == 0) {
        add(out, r.lower, r.lower + x2, y1);
        add(out, r.lower + x2, r.upper, y2);
        add(out, r.lower + x1, r.upper, r.size - y2);
        add(out, r.lower, r.lower + x1, r.size - y1);
    } else {
        add(out, r.lower + x1, r.upper, y1);
        add(out, r.lower + x2, r.upper, r.size - y1);
        add(out, r.lower, r.lower + x2, r.size - y2);
        add(out, r.lower, r.lower + x1, y2);
    }
    return true;
}

void make_pinwheels(instance *out, uint64_t seed, uint32_t n, uint32_t steps, uint32_t capacity)
{
    uint64_t random = seed;
    add(out, 0, steps, capacity);
    for (uint32_t tries = 0; out->count + 4 <= n && tries < 20 * n; tries++) {
        size_t best = (size_t)below(&random, out->count);
        for (int i = 0; i < 2; i++) {
            size_t other = (size_t)below(&random, out->count);
            onv_plan_buffer *a = &out->at[other], *b = &out->at[best];
            if ((a->upper - a->lower) * a->size > (b->upper - b->lower) * b->size) best = other;
        }
        cut_pinwheel(out, best, &random);
    }
    shuffle(out, &random);
}

void make_full(instance *out, uint64_t seed, uint32_t steps, uint32_t capacity)
{
    uint64_t random = seed;
    uint64_t *slack = calloc(steps, sizeof *slack);
    if (slack == NULL) abort();
    for (uint32_t s = 0; s < steps; s++) slack[s] = capacity;
    for (uint32_t lower = 0; lower < steps;) {
        if (slack[lower] == 0) {
            lower++;
            continue;
        }
        uint64_t most = slack[lower];
        uint32_t upper = lower + 1;
        while (upper < steps && slack[upper] > 0 && below(&random, 10) < 6) {
            if (slack[upper] < most) most = slack[upper];
            upper++;
        }
        uint64_t size = below(&random, 4) == 0 ? most : 1 + below(&random, most);
        for (uint32_t s = lower; s < upper; s++) slack[s] -= size;
        add(out, lower, upper, size);
    }
    free(slack);
    shuffle(out, &random);
}

/* Size of what a layer of a stage puts out. */
static uint64_t layer_bytes(uint64_t *random, uint32_t layer, uint32_t layers, bool convnet)
{
    static const uint64_t parts[] = {1, 1, 1, 2, 4, 4, 3};
    uint64_t base = convnet ? (uint64_t)64 << 20 >> layer * 6 / layers : (uint64_t)12 << 20;
    return base * parts[below(random, sizeof parts / sizeof parts[0])] / 4;
}

/* One forward and backward pass of `layers` layers, from step `start` on; `end` is the run's. */
static void add_pass(instance *out, uint64_t *random, uint32_t layers, uint64_t start, uint64_t end,
                     bool convnet)
{
    uint64_t turn = start + 2 * (uint64_t)layers - 1; /* layer i: step start + i, then turn - i */
    for (uint32_t i = 0; i < layers; i++) {
        uint64_t bytes = layer_bytes(random, i, layers, convnet);
        uint64_t step = start + i, back = turn - i, kind = below(random, 10);
        if (kind < 6) /* kept for this layer's backward step or that of a layer or two before */
            add(out, step, back + 1 + below(random, 3), bytes);
        else /* recomputed or not needed: until a near layer has read it */
            add(out, step, step + 2 + (below(random, 4) == 0 ? below(random, 12) : 0), bytes);
        if (kind < 3) add(out, step, back + 1, bytes / 32 + 256); /* a mask or statistics */
        if (below(random, 2) == 0) add(out, step, step + 1, below(random, bytes) / 512 * 512 + 512);
        /* Backward: the gradient, a workspace, the weight's gradient. */
        add(out, back, back + 2 + (below(random, 5) == 0 ? below(random, 12) : 0), bytes);
        if (below(random, 2) == 0)
            add(out, back, back + 1, below(random, 2 * bytes) / 512 * 512 + 512);
        if (below(random, 3) == 0)
            add(out, back, below(random, 3) == 0 ? end : turn + 1, bytes / 16 + 1024);
    }
}

void make_training(instance *out, uint64_t seed, uint32_t n, uint32_t passes, bool convnet)
{
    uint64_t random = seed;
    uint32_t layers = (uint32_t)((double)n / passes / 4.0) + 1;
    uint64_t end = 2 * (uint64_t)layers * passes;
    for (uint32_t pass = 0; pass < passes; pass++)
        add_pass(out, &random, layers, 2 * (uint64_t)layers * pass, end, convnet);
    for (size_t i = 0; i < out->count; i++)
        if (out->at[i].upper > end) out->at[i].upper = end;
}
