/* Regions of the tape: branches, of which one runs, and bodies of loops. */
#include "emit/emit.h"

uint32_t onv_emit_enter(onv_emitter *e, onv_region_kind kind, const char *label)
{
    uint32_t first = (uint32_t)e->eager->ops.count;
    onv_region region = {.first = first,
                         .end = first,
                         .parent = e->region,
                         .kind = (uint8_t)kind,
                         .trips = 1,
                         .node = e->node,
                         .label = label};
    if (e->status == ONV_OK && !onv_vec_push(&e->eager->regions, region)) onv_emit_fail_memory(e);
    return e->region = (uint32_t)e->eager->regions.count - 1;
}

void onv_emit_leave(onv_emitter *e, uint32_t region)
{
    if (e->status != ONV_OK) return;
    e->eager->regions.at[region].end = (uint32_t)e->eager->ops.count;
    e->region = e->eager->regions.at[region].parent;
}

bool onv_emit_is_made_inside(const onv_emitter *e, uint32_t tensor, uint32_t first_storage)
{
    return tensor != ONV_NO_TENSOR && e->eager->tensors.at[tensor].storage >= first_storage &&
           onv_storage_of(e, tensor)->kind == ONV_STORAGE_ACTIVATION;
}

void onv_emit_keep_to_end(onv_emitter *e, uint32_t tensor, uint32_t first_storage)
{
    if (onv_emit_is_made_inside(e, tensor, first_storage))
        onv_storage_of(e, tensor)->stays_until = (uint32_t)e->eager->ops.count;
}

uint32_t onv_emit_join(onv_emitter *e, uint32_t out, const uint32_t given[2],
                       uint32_t first_storage)
{
    if (out == ONV_NO_TENSOR) return out;
    onv_eager_storage *into = onv_storage_of(e, out);
    onv_emit_out(e, out);
    for (int b = 0; b < 2; b++) {
        if (!onv_emit_is_made_inside(e, given[b], first_storage)) {
            onv_emit_in(e, given[b], ONV_GRAD_NONE);
            continue;
        }
        onv_eager_storage *from = onv_storage_of(e, given[b]);
        if (into->bytes < from->bytes) into->bytes = from->bytes;
        if (from->becomes == UINT32_MAX) from->becomes = e->eager->tensors.at[out].storage;
    }
    return out;
}
