/* What the parts of the model of PyTorch's allocator share. */
#ifndef ONV_ALLOC_TORCH_H
#define ONV_ALLOC_TORCH_H

#include "alloc/alloc_model.h"

/* Read in source: c10/core/AllocatorConfig.h of PyTorch (until 2.8 c10/cuda/
 * CUDACachingAllocator.cpp), under the names given. */
#define ONV_TORCH_QUANTUM_BYTES       UINT64_C(512)  /* kMinBlockSize */
#define ONV_TORCH_SMALL_BYTES         ONV_MIB        /* kSmallSize: the largest small request */
#define ONV_TORCH_SMALL_SEGMENT_BYTES (2 * ONV_MIB)  /* kSmallBuffer */
#define ONV_TORCH_LARGE_SEGMENT_BYTES (20 * ONV_MIB) /* kLargeBuffer, large_segment_size */
#define ONV_TORCH_MIN_LARGE_BYTES     (10 * ONV_MIB) /* kMinLargeAlloc: from here on by itself */
#define ONV_TORCH_ROUND_LARGE_BYTES   (2 * ONV_MIB)  /* kRoundLarge */

typedef struct onv_torch_pool {
    onv_block_set free;     /* by size */
    onv_block_set unmapped; /* by address; expandable segments only */
    onv_alloc_pool which;
    uint8_t stream;
    uint64_t page_bytes; /* of an expandable segment */
} onv_torch_pool;

typedef struct onv_torch_state {
    onv_torch_pool large[ONV_N_STREAMS], small[ONV_N_STREAMS];
    uint64_t searches
        [ONV_N_POOLS];      /* for free blocks so far, on all streams: the clock that ages them */
    uint64_t allowed_bytes; /* memory_fraction of the capacity; UINT64_MAX: not set */
    bool collects_garbage;
} onv_torch_state;

/* Puts a free block into the pool's set. */
void onv_torch_cache(onv_allocator *a, onv_torch_pool *pool, uint32_t block);

/* Maps pages until there is a free block of `bytes`, which it takes out of the set; *block stays
 * ONV_NO_BLOCK where the device has no memory for them. */
onv_status onv_torch_grow(onv_allocator *a, onv_torch_pool *pool, uint64_t bytes, uint32_t *block,
                          onv_error *err);

/* The bytes that a free block of an expandable segment could grow to. */
uint64_t onv_torch_reach(const onv_allocator *a, uint32_t block);

/* Unmaps the pages of a free block that lie in it wholly. */
onv_status onv_torch_unmap(onv_allocator *a, onv_torch_pool *pool, uint32_t block, onv_error *err);

#endif
