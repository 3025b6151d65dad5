#include "alloc/alloc.h"

#include <inttypes.h>
#include <string.h>

#include "alloc/alloc_model.h"
#include "base/fail.h"
#include "base/heap.h"

const onv_alloc_model *const onv_alloc_models[] = {
    &onv_alloc_ideal, &onv_alloc_torch,    &onv_alloc_torch_expandable,
    &onv_alloc_bfc,   &onv_alloc_bfc_same, &onv_alloc_pattern,
    &onv_alloc_async, &onv_alloc_raw,
};

const size_t onv_n_alloc_models = sizeof onv_alloc_models / sizeof onv_alloc_models[0];

const onv_alloc_model *onv_alloc_model_find(const char *name)
{
    for (size_t i = 0; i < onv_n_alloc_models; i++) {
        const onv_alloc_model *m = onv_alloc_models[i];
        if (strcmp(m->name, name) == 0 || (m->alias != NULL && strcmp(m->alias, name) == 0))
            return m;
    }
    return NULL;
}

/* --- Life -------------------------------------------------------------------------------------- */

onv_status onv_allocator_init(onv_allocator *a, const onv_alloc_model *model,
                              const onv_alloc_options *options, onv_error *err)
{
    *a = (onv_allocator){.model = model};
    if (options != NULL) a->options = *options;
    if (a->options.capacity_bytes > ONV_ALLOC_MAX_BYTES)
        return onv_fail(err, ONV_ERR_USAGE,
                        "a capacity of %" PRIu64 " bytes is more than any device",
                        a->options.capacity_bytes);
    a->state = onv_heap_alloc(model->state_bytes);
    if (a->state == NULL) return onv_fail_memory(err);
    if (model->preset != NULL) model->preset(&a->options);
    onv_status status = onv_allocator_restart(a, err);
    if (status != ONV_OK) onv_allocator_cleanup(a);
    return status;
}

onv_status onv_allocator_restart(onv_allocator *a, onv_error *err)
{
    a->stats = (onv_alloc_stats){0};
    a->owned.count = 0;
    a->n_events = 0;
    a->stream = 0;
    a->out_of_memory = false;
    onv_space_empty(&a->space);
    return a->model->init != NULL ? a->model->init(a, err) : ONV_OK;
}

onv_status onv_allocator_copy(const onv_allocator *a, onv_allocator *copy, onv_error *err)
{
    const onv_space *from = &a->space;
    onv_space *to = &copy->space;
    *copy = *a;
    copy->record = NULL;
    copy->state = onv_heap_copy(a->state, a->model->state_bytes);
    copy->owned.at = onv_heap_copy(a->owned.at, a->owned.count * sizeof *a->owned.at);
    to->blocks.at = onv_heap_copy(from->blocks.at, from->blocks.count * sizeof *from->blocks.at);
    to->segments.at =
        onv_heap_copy(from->segments.at, from->segments.count * sizeof *from->segments.at);
    copy->owned.capacity = a->owned.count;
    to->blocks.capacity = from->blocks.count;
    to->segments.capacity = from->segments.count;
    bool is_whole = copy->state != NULL && copy->owned.at != NULL && to->blocks.at != NULL &&
                    to->segments.at != NULL;
    return is_whole ? ONV_OK : onv_fail_memory(err);
}

void onv_allocator_cleanup(onv_allocator *a)
{
    onv_heap_free(a->state);
    a->state = NULL;
    onv_vec_cleanup(&a->owned);
    onv_space_cleanup(&a->space);
}

/* --- What models share ------------------------------------------------------------------------- */

onv_status onv_record_segment(onv_allocator *a, onv_taken_segment segment, uint32_t *index,
                              onv_error *err)
{
    onv_placement *p = a->record;
    if (p == NULL) return ONV_OK;
    segment.taken = a->n_events - 1;
    segment.returned = p->events.count;
    *index = (uint32_t)p->segments.count; /* there are never more segments than blocks were made */
    return onv_vec_push(&p->segments, segment) ? ONV_OK : onv_fail_memory(err);
}

void onv_record_return(onv_allocator *a, uint32_t index)
{
    if (a->record != NULL) a->record->segments.at[index].returned = a->n_events - 1;
}

onv_status onv_record_mapping(onv_allocator *a, uint32_t block, uint64_t bytes, bool goes_back,
                              onv_error *err)
{
    if (a->record == NULL) return ONV_OK;
    const onv_segment *segment = onv_space_segment_of(&a->space, block);
    onv_mapping mapping = {.offset = onv_space_block(&a->space, block)->address - segment->address,
                           .bytes = bytes,
                           .event = a->n_events - 1,
                           .segment = segment->recorded,
                           .goes_back = goes_back};
    return onv_vec_push(&a->record->mappings, mapping) ? ONV_OK : onv_fail_memory(err);
}

/* Takes pages for a request. */
static void take_pages(onv_shared_device *device, uint64_t bytes)
{
    uint64_t small = onv_round_up(bytes, 512);
    bool is_small = bytes < ONV_MIB, is_shared = is_small && small <= device->left_bytes;
    if (!is_shared) device->taken_bytes += onv_round_up(bytes, ONV_DEVICE_PAGE);
    if (is_small) device->left_bytes = (is_shared ? device->left_bytes : ONV_DEVICE_PAGE) - small;
}

bool onv_device_has(const onv_allocator *a, uint64_t bytes)
{
    uint64_t reserved = a->stats.of[ONV_STAT_RESERVED_BYTES][ONV_POOL_ALL].current;
    if (a->options.capacity_bytes > 0 &&
        (reserved > a->options.capacity_bytes || bytes > a->options.capacity_bytes - reserved))
        return false;
    if (a->device == NULL) return true;
    onv_shared_device then = *a->device;
    take_pages(&then, bytes);
    return then.taken_bytes <= then.bytes;
}

onv_status onv_device_alloc(onv_allocator *a, uint64_t bytes, unsigned pool, uint32_t *block,
                            onv_error *err)
{
    if (!onv_device_has(a, bytes)) return ONV_OK;
    if (a->device != NULL) take_pages(a->device, bytes);
    ONV_TRY(onv_space_add_segment(&a->space, bytes, ONV_BLOCK_FREE, block, err));
    onv_segment *segment = onv_space_segment_of(&a->space, *block);
    segment->pool = (uint8_t)pool;
    if (!a->model->is_pooled)
        ONV_TRY(onv_record_segment(a, (onv_taken_segment){.bytes = bytes, .counted = bytes},
                                   &segment->recorded, err));
    onv_stats_add(&a->stats, ONV_STAT_SEGMENTS, pool, 1);
    onv_stats_add(&a->stats, ONV_STAT_RESERVED_BYTES, pool, bytes);
    a->stats.device_allocs++;
    return ONV_OK;
}

void onv_device_free(onv_allocator *a, uint32_t block)
{
    const onv_block *b = onv_space_block(&a->space, block);
    const onv_segment *segment = onv_space_segment_of(&a->space, block);
    unsigned pool = segment->pool;
    if (a->device != NULL && b->bytes >= ONV_MIB)
        a->device->taken_bytes -= onv_round_up(b->bytes, ONV_DEVICE_PAGE);
    onv_record_return(a, segment->recorded);
    onv_stats_remove(&a->stats, ONV_STAT_SEGMENTS, pool, 1);
    onv_stats_remove(&a->stats, ONV_STAT_RESERVED_BYTES, pool, b->bytes);
    a->stats.device_frees++;
    onv_space_remove_segment(&a->space, block);
}

static bool is_alike(const onv_space *space, uint32_t block, uint32_t other)
{
    if (other == ONV_NO_BLOCK) return false;
    const onv_block *a = onv_space_block(space, block), *b = onv_space_block(space, other);
    return a->state == b->state && a->stream == b->stream;
}

uint32_t onv_coalesce(onv_allocator *a, onv_block_set *set, uint32_t block)
{
    uint32_t prev = onv_space_block(&a->space, block)->prev;
    uint32_t next = onv_space_block(&a->space, block)->next;
    if (is_alike(&a->space, block, next)) {
        onv_block_set_remove(set, &a->space, next);
        onv_space_merge(&a->space, block);
    }
    if (!is_alike(&a->space, block, prev)) return block;
    onv_block_set_remove(set, &a->space, prev);
    onv_space_merge(&a->space, prev);
    return prev;
}

/* --- Events ------------------------------------------------------------------------------------ */

/* Room in the table for this id. */
static onv_status know_id(onv_allocator *a, uint32_t id, onv_error *err)
{
    if (id < a->owned.count) return ONV_OK;
    size_t extra = (size_t)id + 1 - a->owned.count;
    if (extra < a->owned.count) extra = a->owned.count; /* mostly ids come one after the other */
    if (!onv_vec_reserve(&a->owned, extra)) return onv_fail_memory(err);
    memset(a->owned.at + a->owned.count, 0xff, extra * sizeof *a->owned.at);
    a->owned.count += extra;
    return ONV_OK;
}

static uint64_t counted_bytes(const onv_allocator *a, const onv_block *b)
{
    return a->model->counts_requested ? b->requested : b->bytes;
}

static unsigned pool_of(const onv_allocator *a, const onv_block *b)
{
    bool is_total = a->has_totals_alone || b->segment == ONV_NO_BLOCK;
    return is_total ? ONV_POOL_ALL : a->space.segments.at[b->segment].pool;
}

static onv_status record_place(onv_allocator *a, uint32_t id, const onv_block *b, onv_error *err)
{
    if (a->record == NULL || b->segment == ONV_NO_BLOCK) return ONV_OK;
    onv_place *place = &a->record->places.at[id];
    place->counted = counted_bytes(a, b);
    if (a->model->is_pooled)
        return onv_record_segment(a,
                                  (onv_taken_segment){.bytes = b->requested, .counted = b->bytes},
                                  &place->segment, err);
    const onv_segment *s = &a->space.segments.at[b->segment];
    place->offset = b->address - s->address;
    place->segment = s->recorded;
    return ONV_OK;
}

static onv_status grant(onv_allocator *a, uint32_t id, uint64_t bytes, onv_error *err)
{
    onv_block *b = onv_space_block(&a->space, a->owned.at[id]);
    b->state = ONV_BLOCK_USED;
    b->requested = bytes;
    b->id = id;
    unsigned pool = pool_of(a, b);
    onv_stats_add(&a->stats, ONV_STAT_ALLOCATED_BYTES, pool, counted_bytes(a, b));
    onv_stats_add(&a->stats, ONV_STAT_REQUESTED_BYTES, pool, bytes);
    if (!a->has_totals_alone) onv_stats_add(&a->stats, ONV_STAT_ALLOCATIONS, pool, 1);
    return record_place(a, id, b, err);
}

static onv_status allocate(onv_allocator *a, uint32_t id, uint64_t bytes, onv_alloc_fn serve,
                           onv_error *err)
{
    size_t event = a->n_events++;
    if (a->out_of_memory) return ONV_OK;
    if (bytes > ONV_ALLOC_MAX_BYTES)
        return onv_fail(err, ONV_ERR_LIMIT, "event %zu: %" PRIu64 " bytes are more than any device",
                        event, bytes);
    ONV_TRY(know_id(a, id, err));
    if (a->owned.at[id] != ONV_OWNS_NOTHING)
        return onv_fail(err, ONV_ERR_USAGE, "event %zu: id %" PRIu32 " is allocated already", event,
                        id);
    if (bytes == 0) { /* no runtime makes a block for nothing */
        a->owned.at[id] = ONV_OWNS_ZERO_BYTES;
        return ONV_OK;
    }
    ONV_TRY(serve(a, bytes, &a->owned.at[id], err));
    if (a->owned.at[id] == ONV_OWNS_NOTHING) {
        a->out_of_memory = true;
        a->oom_event = event;
        a->oom_bytes = bytes;
        return ONV_OK;
    }
    ONV_TRY(grant(a, id, bytes, err));
    if (a->stats.overflow)
        return onv_fail(err, ONV_ERR_OVERFLOW, "event %zu: the sum of all sizes passes 64 bits",
                        event);
    return ONV_OK;
}

onv_status onv_allocator_alloc(onv_allocator *a, uint32_t id, uint64_t bytes, onv_error *err)
{
    return allocate(a, id, bytes, a->model->alloc, err);
}

onv_status onv_allocator_reserve(onv_allocator *a, uint32_t id, uint64_t bytes, onv_error *err)
{
    const onv_alloc_model *m = a->model;
    return allocate(a, id, bytes, m->reserve != NULL ? m->reserve : m->alloc, err);
}

onv_status onv_allocator_free(onv_allocator *a, uint32_t id, onv_error *err)
{
    size_t event = a->n_events++;
    if (a->out_of_memory) return ONV_OK;
    uint32_t block = id < a->owned.count ? a->owned.at[id] : ONV_OWNS_NOTHING;
    if (block == ONV_OWNS_NOTHING)
        return onv_fail(err, ONV_ERR_USAGE, "event %zu: id %" PRIu32 " is freed but not allocated",
                        event, id);
    a->owned.at[id] = ONV_OWNS_NOTHING;
    if (block == ONV_OWNS_ZERO_BYTES) return ONV_OK;
    onv_block *b = onv_space_block(&a->space, block);
    unsigned pool = pool_of(a, b);
    onv_stats_remove(&a->stats, ONV_STAT_ALLOCATED_BYTES, pool, counted_bytes(a, b));
    onv_stats_remove(&a->stats, ONV_STAT_REQUESTED_BYTES, pool, b->requested);
    if (!a->has_totals_alone) onv_stats_remove(&a->stats, ONV_STAT_ALLOCATIONS, pool, 1);
    if (a->record != NULL && a->model->is_pooled)
        onv_record_return(a, a->record->places.at[id].segment);
    onv_allocator_give(a, block);
    return ONV_OK;
}

onv_status onv_allocator_pass(onv_allocator *a, uint32_t id, uint64_t bytes, onv_error *err)
{
    bool may = a->model->pass != NULL && a->has_totals_alone && bytes <= ONV_ALLOC_MAX_BYTES;
    uint64_t counted = may && !a->out_of_memory ? a->model->pass(a, bytes) : 0;
    if (counted == 0) {
        ONV_TRY(onv_allocator_alloc(a, id, bytes, err));
        return a->out_of_memory ? ONV_OK : onv_allocator_free(a, id, err);
    }
    a->n_events += 2;
    onv_stats_add(&a->stats, ONV_STAT_ALLOCATED_BYTES, ONV_POOL_ALL, counted);
    onv_stats_remove(&a->stats, ONV_STAT_ALLOCATED_BYTES, ONV_POOL_ALL, counted);
    onv_stats_add(&a->stats, ONV_STAT_REQUESTED_BYTES, ONV_POOL_ALL, bytes);
    onv_stats_remove(&a->stats, ONV_STAT_REQUESTED_BYTES, ONV_POOL_ALL, bytes);
    return ONV_OK;
}

onv_status onv_allocator_end_streams(onv_allocator *a, uint8_t from)
{
    return a->model->end_streams != NULL ? a->model->end_streams(a, from) : ONV_OK;
}

onv_status onv_allocator_release_cached(onv_allocator *a, onv_error *err)
{
    if (a->out_of_memory || a->model->release_cached == NULL) return ONV_OK;
    return a->model->release_cached(a, err);
}

/* --- Looking ----------------------------------------------------------------------------------- */

void onv_allocator_figures(const onv_allocator *a, onv_held_figures *figures)
{
    const onv_stat *allocated = &a->stats.of[ONV_STAT_ALLOCATED_BYTES][ONV_POOL_ALL];
    const onv_stat *reserved = &a->stats.of[ONV_STAT_RESERVED_BYTES][ONV_POOL_ALL];
    const onv_stat *requested = &a->stats.of[ONV_STAT_REQUESTED_BYTES][ONV_POOL_ALL];
    const onv_stat *segments = &a->stats.of[ONV_STAT_SEGMENTS][ONV_POOL_ALL];
    *figures = (onv_held_figures){.allocated_peak = allocated->peak,
                                  .reserved_peak = reserved->peak,
                                  .requested_peak = requested->peak,
                                  .allocated_end = allocated->current,
                                  .reserved_end = reserved->current,
                                  .segments = segments->current,
                                  .segments_peak = segments->peak,
                                  .returned_bytes = reserved->added - reserved->current,
                                  .out_of_memory = a->out_of_memory,
                                  .oom_event = a->oom_event,
                                  .oom_bytes = a->oom_bytes};
}
