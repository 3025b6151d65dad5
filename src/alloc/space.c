#include "alloc/alloc.h"

#include "base/checked.h"
#include "base/fail.h"

void onv_space_empty(onv_space *space)
{
    space->blocks.count = space->segments.count = 0;
    space->spare_block = space->spare_segment = ONV_NO_BLOCK;
    space->first_segment = space->last_segment = ONV_NO_BLOCK;
    space->next_address = ONV_SPACE_BASE;
}

void onv_space_cleanup(onv_space *space)
{
    onv_vec_cleanup(&space->blocks);
    onv_vec_cleanup(&space->segments);
}

static onv_status new_block(onv_space *space, onv_block value, uint32_t *block, onv_error *err)
{
    if (space->spare_block != ONV_NO_BLOCK) {
        *block = space->spare_block;
        space->spare_block = space->blocks.at[*block].next;
        space->blocks.at[*block] = value;
        return ONV_OK;
    }
    /* The last two indices mean "none" and "of no size" in the tables of owners. */
    if (space->blocks.count >= ONV_NO_BLOCK - 1)
        return onv_fail(err, ONV_ERR_LIMIT, "more than %u blocks of memory", ONV_NO_BLOCK - 1);
    *block = (uint32_t)space->blocks.count;
    if (!onv_vec_push(&space->blocks, value)) return onv_fail_memory(err);
    return ONV_OK;
}

void onv_space_drop_block(onv_space *space, uint32_t block)
{
    space->blocks.at[block].next = space->spare_block;
    space->spare_block = block;
}

static onv_status new_segment(onv_space *space, onv_segment value, uint32_t *segment,
                              onv_error *err)
{
    if (space->spare_segment != ONV_NO_BLOCK) {
        *segment = space->spare_segment;
        space->spare_segment = space->segments.at[*segment].next;
        space->segments.at[*segment] = value;
        return ONV_OK;
    }
    /* There are never more segments than blocks, so the index fits. */
    *segment = (uint32_t)space->segments.count;
    if (!onv_vec_push(&space->segments, value)) return onv_fail_memory(err);
    return ONV_OK;
}

/* At the next addresses, the last one of a segment. */
static onv_status add_block(onv_space *space, uint64_t bytes, onv_block_state state,
                            uint32_t segment, uint32_t prev, uint32_t *block, onv_error *err)
{
    uint64_t end;
    if (!onv_u64_add(space->next_address, bytes, &end) || end > INT64_MAX)
        return onv_fail(err, ONV_ERR_OVERFLOW, "the memory asked for passes 63 bits of address");
    onv_block b = {.address = space->next_address,
                   .bytes = bytes,
                   .segment = segment,
                   .prev = prev,
                   .next = ONV_NO_BLOCK,
                   .state = (uint8_t)state};
    space->next_address = end;
    return new_block(space, b, block, err);
}

onv_status onv_space_add_segment(onv_space *space, uint64_t bytes, onv_block_state state,
                                 uint32_t *block, onv_error *err)
{
    ONV_TRY(add_block(space, bytes, state, 0, ONV_NO_BLOCK, block, err));
    onv_segment s = {.address = space->blocks.at[*block].address,
                     .bytes = bytes,
                     .first = *block,
                     .last = *block,
                     .prev = space->last_segment,
                     .next = ONV_NO_BLOCK};
    uint32_t segment;
    onv_status status = new_segment(space, s, &segment, err);
    if (status != ONV_OK) {
        onv_space_drop_block(space, *block);
        return status;
    }
    space->blocks.at[*block].segment = segment;
    if (space->last_segment == ONV_NO_BLOCK)
        space->first_segment = segment;
    else
        space->segments.at[space->last_segment].next = segment;
    space->last_segment = segment;
    return ONV_OK;
}

onv_status onv_space_extend(onv_space *space, uint32_t segment, uint64_t bytes,
                            onv_block_state state, uint32_t *block, onv_error *err)
{
    uint32_t last = space->segments.at[segment].last;
    ONV_TRY(add_block(space, bytes, state, segment, last, block, err));
    space->blocks.at[last].next = *block;
    space->segments.at[segment].last = *block;
    space->segments.at[segment].bytes += bytes;
    return ONV_OK;
}

void onv_space_remove_segment(onv_space *space, uint32_t block)
{
    uint32_t segment = space->blocks.at[block].segment;
    onv_segment *s = &space->segments.at[segment];
    if (s->prev == ONV_NO_BLOCK)
        space->first_segment = s->next;
    else
        space->segments.at[s->prev].next = s->next;
    if (s->next == ONV_NO_BLOCK)
        space->last_segment = s->prev;
    else
        space->segments.at[s->next].prev = s->prev;
    s->next = space->spare_segment;
    space->spare_segment = segment;
    onv_space_drop_block(space, block);
}

onv_status onv_space_add_loose(onv_space *space, uint64_t bytes, uint32_t *block, onv_error *err)
{
    onv_block b = {.bytes = bytes,
                   .segment = ONV_NO_BLOCK,
                   .prev = ONV_NO_BLOCK,
                   .next = ONV_NO_BLOCK,
                   .state = ONV_BLOCK_USED};
    return new_block(space, b, block, err);
}

onv_status onv_space_split(onv_space *space, uint32_t block, uint64_t bytes, onv_error *err)
{
    if (space->spare_block == ONV_NO_BLOCK)
        ONV_TRY(new_block(space, (onv_block){.next = ONV_NO_BLOCK}, &space->spare_block, err));
    uint32_t rest = space->spare_block;
    onv_block *low = &space->blocks.at[block], *high = &space->blocks.at[rest];
    space->spare_block = high->next;
    high->address = low->address + bytes;
    high->bytes = low->bytes - bytes;
    high->age = 0;
    high->segment = low->segment;
    high->prev = block;
    high->next = low->next;
    high->state = low->state;
    high->stream = low->stream;
    if (low->next != ONV_NO_BLOCK)
        space->blocks.at[low->next].prev = rest;
    else
        space->segments.at[low->segment].last = rest;
    low->next = rest;
    low->bytes = bytes;
    return ONV_OK;
}

void onv_space_merge(onv_space *space, uint32_t low)
{
    onv_block *b = &space->blocks.at[low];
    uint32_t high = b->next;
    b->bytes += space->blocks.at[high].bytes;
    b->next = space->blocks.at[high].next;
    if (b->next != ONV_NO_BLOCK)
        space->blocks.at[b->next].prev = low;
    else
        space->segments.at[b->segment].last = low;
    onv_space_drop_block(space, high);
}
