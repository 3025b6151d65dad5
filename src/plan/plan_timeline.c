/* Planning of a timeline's buffers, some of which are one memory: what a branch hands out becomes the
 * output of its If, and what is within a container lies where its producer put it. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/heap.h"
#include "plan/plan.h"

/* The buffer whose place each has: its container, or the end of the chain that it becomes. */
static void find_owners(const onv_timeline *t, uint32_t *owner)
{
    for (uint32_t i = 0; i < t->buffers.count; i++) {
        const onv_buffer *b = &t->buffers.at[i];
        owner[i] = b->within != ONV_NO_BUFFER ? b->within : b->becomes;
        if (owner[i] == ONV_NO_BUFFER) owner[i] = i;
    }
    for (uint32_t i = 0; i < t->buffers.count; i++) {
        uint32_t end = i;
        while (owner[end] != end) end = owner[end];
        for (uint32_t at = i, next; at != end; at = next) { /* so that no part is walked twice */
            next = owner[at];
            owner[at] = end;
        }
    }
}

typedef struct planning {
    const onv_timeline *t;
    uint32_t *owner; /* by buffer */
    uint32_t *row;   /* by buffer that is an owner: of `rows` */
    onv_plan_buffer *rows;
    uint64_t *below; /* by buffer that is fixed: its offset */
    size_t n_rows;
    uint64_t fixed_bytes;
} planning;

static onv_status lay_out(planning *p, uint64_t alignment, onv_error *err)
{
    const onv_timeline *t = p->t;
    for (uint32_t i = 0; i < t->buffers.count; i++) {
        const onv_buffer *b = &t->buffers.at[i];
        if (p->owner[i] != i) continue;
        if (!onv_buffer_is_fixed(t, b)) {
            p->row[i] = (uint32_t)p->n_rows;
            p->rows[p->n_rows++] = (onv_plan_buffer){b->first, b->last + (uint64_t)1, b->bytes};
            continue;
        }
        p->below[i] = p->fixed_bytes;
        uint64_t bytes;
        if (!onv_u64_round_up(b->bytes, alignment, &bytes) ||
            !onv_u64_add(p->fixed_bytes, bytes, &p->fixed_bytes))
            return onv_fail(err, ONV_ERR_OVERFLOW, "the bytes of all weights do not fit 64 bits");
    }
    for (uint32_t i = 0; i < t->buffers.count; i++) {
        const onv_buffer *b = &t->buffers.at[i];
        if (p->owner[i] == i || b->within != ONV_NO_BUFFER) continue;
        onv_plan_buffer *row = &p->rows[p->row[p->owner[i]]];
        if (b->first < row->lower) row->lower = b->first;
        if (b->bytes > row->size) row->size = b->bytes;
    }
    return ONV_OK;
}

static void take_places(const planning *p, const onv_plan *plan, onv_placement *placement)
{
    const onv_timeline *t = p->t;
    for (uint32_t i = 0; i < t->buffers.count; i++) {
        const onv_buffer *b = &t->buffers.at[i];
        uint32_t owner = p->owner[i];
        uint64_t offset = onv_buffer_is_fixed(t, &t->buffers.at[owner])
                              ? p->below[owner]
                              : p->fixed_bytes + plan->offsets[p->row[owner]];
        if (b->within != ONV_NO_BUFFER) offset += b->offset;
        placement->places.at[i] = (onv_place){.offset = offset, .counted = b->bytes};
    }
}

/* One segment, which is there from the first event on. */
static onv_status take_segment(const planning *p, uint64_t height, onv_placement *to,
                               onv_error *err)
{
    onv_peak peak;
    onv_taken_segment s = {.returned = to->events.count};
    if (!onv_u64_add(p->fixed_bytes, height, &s.bytes))
        return onv_fail(err, ONV_ERR_OVERFLOW, "the arena does not fit 64 bits");
    s.counted = s.bytes;
    if (s.bytes > 0 && !onv_vec_push(&to->segments, s)) return onv_fail_memory(err);
    ONV_TRY(onv_timeline_peak(p->t, &peak, to->allocated_at, err));
    uint64_t most = 0;
    for (uint32_t step = 0; step < to->n_steps; step++) {
        to->reserved_at[step] = s.bytes;
        if (to->allocated_at[step] > most) most = to->allocated_at[step];
    }
    uint64_t end = to->n_steps > 0 ? to->allocated_at[to->n_steps - 1] : 0;
    to->figures = (onv_held_figures){.allocated_peak = most,
                                     .requested_peak = most,
                                     .reserved_peak = s.bytes,
                                     .allocated_end = end,
                                     .reserved_end = s.bytes,
                                     .segments = s.bytes > 0,
                                     .segments_peak = s.bytes > 0};
    return ONV_OK;
}

static onv_status plan_rows(planning *p, const onv_plan_options *options, onv_plan *plan,
                            onv_placement *placement, onv_error *err)
{
    find_owners(p->t, p->owner);
    ONV_TRY(lay_out(p, options != NULL && options->alignment != 0 ? options->alignment : 1, err));
    ONV_TRY(onv_plan_compute(p->rows, p->n_rows, options, plan, err));
    plan->below = p->fixed_bytes;
    onv_status status = onv_placement_init(placement, p->t, err);
    if (status == ONV_OK) {
        take_places(p, plan, placement);
        status = take_segment(p, plan->height, placement, err);
    }
    if (status != ONV_OK) {
        onv_placement_cleanup(placement);
        onv_plan_cleanup(plan);
    }
    return status;
}

onv_status onv_plan_timeline(const onv_timeline *t, const onv_plan_options *options, onv_plan *plan,
                             onv_placement *placement, onv_error *err)
{
    size_t n = t->buffers.count;
    *plan = (onv_plan){.strategy = ""};
    *placement = (onv_placement){0};
    planning p = {.t = t,
                  .owner = onv_heap_alloc(n * sizeof *p.owner),
                  .row = onv_heap_calloc(n, sizeof *p.row),
                  .rows = onv_heap_calloc(n, sizeof *p.rows),
                  .below = onv_heap_calloc(n, sizeof *p.below)};
    onv_status status;
    if (p.owner != NULL && p.row != NULL && p.rows != NULL && p.below != NULL)
        status = plan_rows(&p, options, plan, placement, err);
    else
        status = onv_fail_memory(err);
    onv_heap_free(p.owner);
    onv_heap_free(p.row);
    onv_heap_free(p.rows);
    onv_heap_free(p.below);
    return status;
}
