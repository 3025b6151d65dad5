#include "support/held.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/heap.h"

/* --- Blocks ------------------------------------------------------------------------------------ */

const onv_block *allocator_block(const onv_allocator *a, uint32_t id)
{
    if (id >= a->owned.count || a->owned.at[id] >= ONV_OWNS_ZERO_BYTES) return NULL;
    return onv_space_block(&a->space, a->owned.at[id]);
}

const onv_segment *allocator_next_segment(const onv_allocator *a, const onv_segment *after)
{
    uint32_t next = after == NULL ? a->space.first_segment : after->next;
    return next == ONV_NO_BLOCK ? NULL : &a->space.segments.at[next];
}

const onv_block *allocator_next_block(const onv_allocator *a, const onv_segment *segment,
                                      const onv_block *after)
{
    uint32_t next = after == NULL ? segment->first : after->next;
    return next == ONV_NO_BLOCK ? NULL : onv_space_block(&a->space, next);
}

/* Tiling, links, order. */
static onv_status broken(onv_error *err, uint32_t segment, const char *what)
{
    return onv_fail(err, ONV_ERR_MODEL, "segment %u: %s", segment, what);
}

static onv_status check_segment(const onv_space *space, uint32_t segment, onv_error *err)
{
    const onv_segment *s = &space->segments.at[segment];
    uint64_t address = s->address;
    uint32_t prev = ONV_NO_BLOCK;
    size_t n = 0;
    for (uint32_t i = s->first; i != ONV_NO_BLOCK; i = space->blocks.at[i].next) {
        const onv_block *b = &space->blocks.at[i];
        if (n++ >= space->blocks.count) return broken(err, segment, "its blocks form a ring");
        if (b->segment != segment) return broken(err, segment, "a block belongs elsewhere");
        if (b->prev != prev) return broken(err, segment, "its links disagree");
        if (b->address != address) return broken(err, segment, "its blocks do not tile it");
        if (b->bytes == 0) return broken(err, segment, "a block is empty");
        if (b->state > ONV_BLOCK_UNMAPPED) return broken(err, segment, "a block has no state");
        if (b->state == ONV_BLOCK_UNMAPPED && !s->expandable)
            return broken(err, segment, "a block is unmapped where nothing is mapped");
        address += b->bytes;
        prev = i;
    }
    if (address != s->address + s->bytes) return broken(err, segment, "its blocks do not fill it");
    if (s->last != prev) return broken(err, segment, "its last block is another");
    return ONV_OK;
}

static onv_status space_check(const onv_space *space, onv_error *err)
{
    uint64_t end = 0;
    uint32_t prev = ONV_NO_BLOCK;
    size_t n = 0;
    for (uint32_t i = space->first_segment; i != ONV_NO_BLOCK; i = space->segments.at[i].next) {
        const onv_segment *s = &space->segments.at[i];
        if (n++ >= space->segments.count || s->prev != prev)
            return broken(err, i, "the list of segments is not whole");
        if (s->address < end) return broken(err, i, "it overlaps the one before");
        end = s->address + s->bytes;
        ONV_TRY(check_segment(space, i, err));
        prev = i;
    }
    if (prev != space->last_segment) return broken(err, prev, "the list of segments is not whole");
    return ONV_OK;
}
/* --- Allocators -------------------------------------------------------------------------------- */

typedef struct sums {
    uint64_t mapped, used, requested, n_used, inactive, n_inactive;
} sums;

static void sum_block(const onv_allocator *a, const onv_segment *s, uint32_t index, sums *sum)
{
    const onv_block *b = onv_space_block(&a->space, index);
    if (b->state != ONV_BLOCK_UNMAPPED) sum->mapped += b->bytes;
    if (b->state == ONV_BLOCK_USED) {
        sum->used += (a->model->counts_requested ? b->requested : b->bytes);
        sum->requested += b->requested;
        sum->n_used++;
    } else if (b->state == ONV_BLOCK_FREE && !s->expandable &&
               !onv_space_is_whole(&a->space, index)) {
        sum->inactive += b->bytes;
        sum->n_inactive++;
    }
}

static uint64_t current(const onv_allocator *a, onv_alloc_metric metric, onv_alloc_pool pool)
{
    return a->stats.of[metric][pool].current;
}

/* The statistics of one pool against the sums over its blocks. */
static bool agrees(const onv_allocator *a, onv_alloc_pool pool, const sums *sum)
{
    if (a->model->counts_inactive &&
        (sum->inactive != current(a, ONV_STAT_INACTIVE_BYTES, pool) ||
         sum->n_inactive != current(a, ONV_STAT_INACTIVE_BLOCKS, pool)))
        return false;
    return sum->mapped == current(a, ONV_STAT_RESERVED_BYTES, pool) &&
           sum->used == current(a, ONV_STAT_ALLOCATED_BYTES, pool) &&
           sum->requested == current(a, ONV_STAT_REQUESTED_BYTES, pool) &&
           sum->n_used == current(a, ONV_STAT_ALLOCATIONS, pool);
}

onv_status allocator_check(const onv_allocator *a, onv_error *err)
{
    ONV_TRY(space_check(&a->space, err));
    sums pools[ONV_N_POOLS] = {0};
    for (uint32_t i = a->space.first_segment; i != ONV_NO_BLOCK; i = a->space.segments.at[i].next) {
        const onv_segment *s = &a->space.segments.at[i];
        for (uint32_t b = s->first; b != ONV_NO_BLOCK; b = a->space.blocks.at[b].next) {
            sum_block(a, s, b, &pools[ONV_POOL_ALL]);
            if (s->pool != ONV_POOL_ALL) sum_block(a, s, b, &pools[s->pool]);
        }
    }
    uint64_t owners = 0;
    for (uint32_t id = 0; id < a->owned.count; id++) {
        const onv_block *b = allocator_block(a, id);
        if (b == NULL) continue;
        owners++;
        if (b->state != ONV_BLOCK_USED || b->id != id)
            return onv_fail(err, ONV_ERR_MODEL, "id %" PRIu32 " owns a block that is not its", id);
    }
    if (owners != current(a, ONV_STAT_ALLOCATIONS, ONV_POOL_ALL))
        return onv_fail(err, ONV_ERR_MODEL, "the count of allocations is not that of owners");
    if (a->space.first_segment == ONV_NO_BLOCK)
        return ONV_OK; /* nothing, or blocks without place */
    for (unsigned p = 0; p < ONV_N_POOLS; p++) {
        if (!agrees(a, p, &pools[p]))
            return onv_fail(err, ONV_ERR_MODEL, "pool %u: the statistics disagree with the blocks",
                            p);
    }
    return ONV_OK;
}
/* --- Placements -------------------------------------------------------------------------------- */

#define NEVER SIZE_MAX

/* By buffer: the events at which it is allocated and freed. */
typedef struct lives {
    size_t *from, *to;
} lives;

static onv_status check_event(const onv_placement *p, const onv_timeline *t, size_t i, lives *at,
                              onv_error *err)
{
    const onv_timeline_event *e = &p->events.at[i];
    if (e->buffer >= t->buffers.count || e->step >= t->steps.count ||
        (i > 0 && e->step < p->events.at[i - 1].step))
        return onv_fail(err, ONV_ERR_MODEL, "event %zu is about no buffer, or in no step", i);
    const onv_buffer *b = &t->buffers.at[e->buffer];
    size_t *when = e->is_free ? &at->to[e->buffer] : &at->from[e->buffer];
    bool in_turn = *when == NEVER && (e->is_free == (at->from[e->buffer] != NEVER));
    if (!in_turn || e->step != (e->is_free ? b->last : b->first))
        return onv_fail(err, ONV_ERR_MODEL, "buffer %" PRIu32 " ('%s'): events are out of order",
                        e->buffer, b->label != NULL ? b->label : "");
    *when = i;
    return ONV_OK;
}

static onv_status check_place(const onv_placement *p, const onv_timeline *t, size_t i,
                              const lives *at, onv_error *err)
{
    const onv_buffer *b = &t->buffers.at[i];
    const onv_place *place = &p->places.at[i];
    const char *label = b->label != NULL ? b->label : "";
    if (at->to[i] == NEVER)
        return onv_fail(err, ONV_ERR_MODEL, "buffer %zu ('%s') is never freed", i, label);
    if (b->bytes == 0) return ONV_OK;
    const onv_taken_segment *s =
        place->segment < p->segments.count ? &p->segments.at[place->segment] : NULL;
    if (s == NULL || s->taken > at->from[i] || s->returned < at->to[i])
        return onv_fail(err, ONV_ERR_MODEL, "buffer %zu ('%s') is in no segment", i, label);
    uint64_t end;
    if (!onv_u64_add(place->offset, b->bytes, &end) || end > s->bytes)
        return onv_fail(err, ONV_ERR_MODEL, "buffer %zu ('%s') is not inside its segment", i,
                        label);
    return ONV_OK;
}

/* The segments that are there, added up: by step the most. By event, `taken` is what is taken, `back`
 * what goes back; both have room for every event and one more. */
static onv_status check_sums(const onv_placement *p, uint64_t *back, uint64_t *taken,
                             onv_error *err)
{
    uint64_t now = 0;
    const uint64_t *held = onv_placement_held_at(p);
    for (size_t i = 0; i < p->segments.count; i++) {
        const onv_taken_segment *s = &p->segments.at[i];
        if (s->grows) return ONV_OK;
        if (s->taken >= p->events.count || s->returned > p->events.count || s->returned < s->taken)
            return onv_fail(err, ONV_ERR_MODEL, "segment %zu: its events are out of order", i);
        taken[s->taken] += s->counted; /* what does not fit 64 bits was refused by the models */
        back[s->returned] += s->counted;
    }
    size_t i = 0;
    for (uint32_t step = 0; step < p->n_steps; step++) {
        uint64_t most = now;
        for (; i < p->events.count && p->events.at[i].step == step; i++) {
            now += taken[i] - back[i]; /* wraps back */
            if (now > most) most = now;
        }
        if (most != held[step])
            return onv_fail(err, ONV_ERR_MODEL,
                            "step %" PRIu32 ": the segments are %" PRIu64 " bytes, not %" PRIu64,
                            step, most, held[step]);
    }
    return ONV_OK;
}

static onv_status check_all(const onv_placement *p, const onv_timeline *t, lives *at,
                            onv_error *err)
{
    for (size_t i = 0; i < p->events.count; i++) ONV_TRY(check_event(p, t, i, at, err));
    for (size_t i = 0; i < p->places.count; i++) ONV_TRY(check_place(p, t, i, at, err));
    size_t n = p->events.count + 1;
    uint64_t *back = onv_heap_calloc(n, 2 * sizeof *back);
    if (back == NULL) return onv_fail_memory(err);
    onv_status status = check_sums(p, back, back + n, err);
    onv_heap_free(back);
    return status;
}

onv_status placement_check(const onv_placement *p, const onv_timeline *t, onv_error *err)
{
    size_t n = t->buffers.count;
    if (p->places.count != n || p->n_steps != t->steps.count)
        return onv_fail(err, ONV_ERR_MODEL, "the placement is one of another timeline");
    lives at = {.from = onv_heap_alloc(n * sizeof *at.from),
                .to = onv_heap_alloc(n * sizeof *at.to)};
    onv_status status = ONV_OK;
    if (at.from == NULL || at.to == NULL) {
        status = onv_fail_memory(err);
    } else {
        memset(at.from, 0xff, n * sizeof *at.from);
        memset(at.to, 0xff, n * sizeof *at.to);
        status = check_all(p, t, &at, err);
    }
    onv_heap_free(at.from);
    onv_heap_free(at.to);
    return status;
}
