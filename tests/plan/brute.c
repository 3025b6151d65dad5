#include "plan/brute.h"

static bool share_a_step(const onv_plan_buffer *a, const onv_plan_buffer *b)
{
    return a->lower < b->upper && b->lower < a->upper;
}

/* In the order of its offsets, every buffer of a plan can drop onto the highest one before it that
 * shares a step; so some order, stacked like this, gives the lowest height. */
static void stack(const onv_plan_buffer *buffers, size_t count, unsigned placed, uint64_t *end,
                  uint64_t height, uint64_t *best)
{
    if (height >= *best) return;
    if (placed == (1u << count) - 1) {
        *best = height;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if ((placed >> i & 1) != 0) continue;
        uint64_t offset = 0;
        for (size_t k = 0; k < count; k++)
            if ((placed >> k & 1) != 0 && buffers[k].size > 0 && end[k] > offset &&
                share_a_step(&buffers[i], &buffers[k]))
                offset = end[k];
        end[i] = buffers[i].size > 0 ? offset + buffers[i].size : 0;
        stack(buffers, count, placed | 1u << i, end, end[i] > height ? end[i] : height, best);
    }
}

uint64_t brute_height(const onv_plan_buffer *buffers, size_t count)
{
    uint64_t end[BRUTE_MAX], best = UINT64_MAX;
    stack(buffers, count, 0, end, 0, &best);
    return best;
}

uint64_t brute_load(const onv_plan_buffer *buffers, size_t count)
{
    uint64_t most = 0;
    for (size_t i = 0; i < count; i++) { /* the load is largest where some buffer starts */
        uint64_t load = 0;
        for (size_t k = 0; k < count; k++)
            if (buffers[k].lower <= buffers[i].lower && buffers[i].lower < buffers[k].upper)
                load += buffers[k].size;
        if (load > most) most = load;
    }
    return most;
}

bool brute_overlap(const onv_plan_buffer *buffers, size_t count, const uint64_t *offsets)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; k < count; k++)
            if (share_a_step(&buffers[i], &buffers[k]) &&
                offsets[i] < offsets[k] + buffers[k].size &&
                offsets[k] < offsets[i] + buffers[i].size && buffers[i].size > 0 &&
                buffers[k].size > 0)
                return true;
    return false;
}
