/* The memory that an allocator model holds: segments, cut into blocks.
 *
 * A segment is one piece of device memory (or of address space, where pages are mapped later). Its
 * blocks tile it: they are linked in address order, the first starts where the segment starts, each
 * starts where the one before ends. Blocks and segments are slots in arrays, named by their index;
 * slots are used again. Segments are linked in address order too: addresses are handed out
 * increasing and never again, because which addresses a driver reuses is not known.
 *
 * Nothing here knows a policy: which block is taken, split or merged is the models' business.
 */
#ifndef ONV_ALLOC_SPACE_H
#define ONV_ALLOC_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/vec.h"

#define ONV_NO_BLOCK UINT32_MAX

/* Where the first segment lies. Any multiple of the largest alignment would do; this one is easy to
 * tell from an offset, and below 2^53, which readers of snapshots want. */
#define ONV_SPACE_BASE (UINT64_C(1) << 44)

typedef enum onv_block_state {
    ONV_BLOCK_FREE,
    ONV_BLOCK_USED,
    ONV_BLOCK_UNMAPPED, /* address space without memory behind it */
} onv_block_state;

typedef struct onv_block {
    uint64_t address, bytes;
    uint64_t requested; /* USED: what was asked for */
    uint64_t age; /* of use to a model (torch: when it became free; bfc: which run of its stream) */
    uint32_t id;  /* USED: the owner, as in the trace */
    uint32_t segment;               /* ONV_NO_BLOCK: outside of any segment */
    uint32_t prev, next;            /* neighbours in the segment */
    uint32_t left, right, priority; /* in an onv_block_set */
    uint8_t state;                  /* onv_block_state */
    uint8_t stream;                 /* of use to one model (bfc: that used it in this run) */
} onv_block;

typedef struct onv_segment {
    uint64_t address, bytes;
    uint32_t first, last; /* blocks */
    uint32_t prev, next;  /* neighbours by address */
    uint32_t recorded;    /* its number in a placement */
    uint8_t pool;         /* onv_alloc_pool */
    uint8_t stream;       /* on which its blocks are made and used again */
    bool expandable;      /* address space whose pages are mapped one by one */
    bool direct;          /* goes back to the device when its block is freed */
} onv_segment;

typedef struct onv_space {
    ONV_VEC(onv_block) blocks;
    ONV_VEC(onv_segment) segments;
    uint32_t spare_block, spare_segment; /* slots to use again, linked by next */
    uint32_t first_segment, last_segment;
    uint64_t next_address;
} onv_space;

/* As it is at first; keeps what it has of the heap. */
void onv_space_empty(onv_space *space);
void onv_space_cleanup(onv_space *space);

static inline onv_block *onv_space_block(const onv_space *space, uint32_t block)
{
    return &space->blocks.at[block];
}

static inline onv_segment *onv_space_segment_of(const onv_space *space, uint32_t block)
{
    return &space->segments.at[space->blocks.at[block].segment];
}

/* Whether a segment consists of this block alone. */
static inline bool onv_space_is_whole(const onv_space *space, uint32_t block)
{
    const onv_block *b = onv_space_block(space, block);
    return b->prev == ONV_NO_BLOCK && b->next == ONV_NO_BLOCK;
}

/* A block of a segment of its own, in that state. Addresses that would not fit 63 bits are
 * ONV_ERR_OVERFLOW. */
onv_status onv_space_add_segment(onv_space *space, uint64_t bytes, onv_block_state state,
                                 uint32_t *block, onv_error *err);

/* Makes the newest segment longer by a block of `bytes` at its end. */
onv_status onv_space_extend(onv_space *space, uint32_t segment, uint64_t bytes,
                            onv_block_state state, uint32_t *block, onv_error *err);

/* Removes the segment of a block that is whole. */
void onv_space_remove_segment(onv_space *space, uint32_t block);

/* A block outside of any segment and address; given back by onv_space_drop_block. */
onv_status onv_space_add_loose(onv_space *space, uint64_t bytes, uint32_t *block, onv_error *err);
void onv_space_drop_block(onv_space *space, uint32_t block);

/* Cuts `block` after `bytes` (less than it has). The block keeps the low part; *rest is the high
 * part, in the same state. */
onv_status onv_space_split(onv_space *space, uint32_t block, uint64_t bytes, uint32_t *rest,
                           onv_error *err);

/* Joins a block with the one that follows it; `low` stays. */
void onv_space_merge(onv_space *space, uint32_t low);

#endif
