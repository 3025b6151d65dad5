/* All weights in one block. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "timeline/timeline.h"

/* Buffers move up by one, for a container in front of them. */
static void move_up(onv_timeline *t)
{
    onv_buffer *at = t->buffers.at;
    memmove(at + 1, at, t->buffers.count * sizeof *at);
    t->buffers.count++;
    for (size_t i = 1; i < t->buffers.count; i++) {
        if (at[i].becomes != ONV_NO_BUFFER) at[i].becomes++;
        if (at[i].within != ONV_NO_BUFFER) at[i].within++;
    }
}

onv_status onv_timeline_pack_weights(onv_timeline *t, uint64_t unit, onv_error *err)
{
    onv_buffer block = onv_buffer_new(ONV_BUFFER_POOL, 0, 0, 0, "weights");
    uint64_t rounded;
    bool any = false;
    for (size_t i = 0; i < t->buffers.count; i++) {
        onv_buffer *b = &t->buffers.at[i];
        if (!onv_buffer_is_fixed(t, b)) continue;
        any = true;
        if (!onv_u64_round_up(b->bytes, unit, &rounded) ||
            !onv_u64_add(block.bytes, rounded, &block.bytes))
            return onv_fail(err, ONV_ERR_OVERFLOW, "the bytes of all weights do not fit 64 bits");
    }
    if (!any) return ONV_OK;
    if (!onv_vec_reserve(&t->buffers, 1)) return onv_fail_memory(err);
    move_up(t);
    block.last = (uint32_t)t->steps.count - 1;
    block.bypasses_pool = true;
    t->buffers.at[0] = block;
    uint64_t offset = 0;
    for (size_t i = 1; i < t->buffers.count; i++) {
        onv_buffer *b = &t->buffers.at[i];
        if (!onv_buffer_is_fixed(t, b)) continue;
        b->within = 0;
        b->offset = offset;
        offset += (b->bytes + unit - 1) / unit * unit;
    }
    return ONV_OK;
}
