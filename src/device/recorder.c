#include "device/recorder.h"

#include "base/checked.h"

/* --- Segments ---------------------------------------------------------------------------------- */

/* Addresses of the models rise and are never used again, so `starts` is sorted. */
static uint32_t find_segment(const onv_recorder *r, uint64_t address)
{
    size_t low = 0, high = r->starts.count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (r->starts.at[middle] <= address)
            low = middle;
        else
            high = middle;
    }
    return (uint32_t)low;
}

static onv_status take(onv_recorder *r, const onv_alloc_action *action)
{
    uint32_t index;
    switch (action->act) {
    case ONV_ACT_SEGMENT_ALLOC: {
        onv_script_segment segment = {.bytes = action->bytes, .counted = action->bytes};
        if (!onv_vec_push(&r->starts, action->address)) return onv_fail_memory(r->err);
        return onv_script_segment_alloc(r->script, r->step, segment, &index, r->err);
    }
    case ONV_ACT_SEGMENT_FREE:
        return onv_script_segment_free(r->script, r->step, find_segment(r, action->address),
                                       r->err);
    case ONV_ACT_SEGMENT_MAP:
    case ONV_ACT_SEGMENT_UNMAP:
        return onv_fail(r->err, ONV_ERR_USAGE,
                        "segments that grow page by page (expandable segments) are not replayed");
    case ONV_ACT_OUT_OF_MEMORY:
    case ONV_ACT_ALLOC:
    case ONV_ACT_FREE: break;
    }
    return ONV_OK;
}

static void on_action(void *context, const onv_alloc_action *action)
{
    onv_recorder *r = context;
    if (r->status == ONV_OK) r->status = take(r, action);
}

/* --- Life -------------------------------------------------------------------------------------- */

onv_status onv_recorder_init(onv_recorder *r, onv_script *script, const char *model,
                             const onv_alloc_options *options, onv_error *err)
{
    onv_alloc_options how = options != NULL ? *options : (onv_alloc_options){0};
    *r = (onv_recorder){.script = script, .err = err};
    how.hook = on_action;
    how.hook_context = r;
    return onv_allocator_init(&r->allocator, onv_alloc_model_find(model), &how, err);
}

void onv_recorder_cleanup(onv_recorder *r)
{
    onv_allocator_cleanup(&r->allocator);
    onv_vec_cleanup(&r->starts);
    onv_vec_cleanup(&r->buffers);
}

/* --- Requests ---------------------------------------------------------------------------------- */

static onv_status set_buffer(onv_recorder *r, uint32_t id, uint32_t buffer, onv_error *err)
{
    while (r->buffers.count <= id)
        if (!onv_vec_push(&r->buffers, UINT32_MAX)) return onv_fail_memory(err);
    r->buffers.at[id] = buffer;
    return ONV_OK;
}

onv_status onv_recorder_container(onv_recorder *r, uint32_t id, uint64_t bytes, uint32_t step,
                                  bool reserve, onv_recorder_place *place, onv_error *err)
{
    r->step = step;
    r->err = err;
    ONV_TRY(set_buffer(r, id, UINT32_MAX, err));
    if (reserve)
        ONV_TRY(onv_allocator_reserve(&r->allocator, id, bytes, err));
    else
        ONV_TRY(onv_allocator_alloc(&r->allocator, id, bytes, err));
    ONV_TRY(r->status);
    const onv_block *block = onv_allocator_block(&r->allocator, id);
    *place = (onv_recorder_place){0};
    if (block == NULL) return ONV_OK;
    place->segment = find_segment(r, block->address);
    place->offset = block->address - r->starts.at[place->segment];
    return ONV_OK;
}

onv_status onv_recorder_alloc(onv_recorder *r, uint32_t id, const onv_buffer *row, uint32_t step,
                              onv_error *err)
{
    onv_recorder_place place;
    uint32_t index;
    ONV_TRY(onv_recorder_container(r, id, row->bytes, step, false, &place, err));
    if (row->bytes == 0) return ONV_OK;
    onv_script_buffer buffer = {.offset = place.offset,
                                .bytes = row->bytes,
                                .segment = place.segment,
                                .kind = row->kind,
                                .label = row->label};
    ONV_TRY(onv_script_birth(r->script, step, buffer, &index, err));
    return set_buffer(r, id, index, err);
}

onv_status onv_recorder_free(onv_recorder *r, uint32_t id, uint32_t step, onv_error *err)
{
    r->step = step;
    r->err = err;
    uint32_t buffer = id < r->buffers.count ? r->buffers.at[id] : UINT32_MAX;
    if (buffer != UINT32_MAX) ONV_TRY(onv_script_end(r->script, step, buffer, err));
    ONV_TRY(onv_allocator_free(&r->allocator, id, err));
    return r->status;
}

onv_status onv_recorder_close(onv_recorder *r, uint32_t step, onv_error *err)
{
    /* Not every model gives memory back, but every script does: walk the segments. */
    const onv_segment *s = NULL;
    while ((s = onv_allocator_next_segment(&r->allocator, s)) != NULL)
        ONV_TRY(onv_script_segment_free(r->script, step, find_segment(r, s->address), err));
    return ONV_OK;
}
