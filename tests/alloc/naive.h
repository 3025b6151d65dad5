/* Slow allocators to compare the fast ones with: one list of blocks in address order, searched from
 * end to end, written from the published rules and not from the code under test. */
#ifndef ONV_TESTS_ALLOC_NAIVE_H
#define ONV_TESTS_ALLOC_NAIVE_H

#include "base/vec.h"

#include <stdint.h>

typedef struct naive_block {
    uint64_t address, bytes, requested;
    uint32_t segment; /* blocks of one segment may join */
    uint32_t id;
    uint8_t stream;
    bool small, used;
} naive_block;

typedef struct naive {
    ONV_VEC(naive_block) blocks;
    uint64_t next_address;
    uint32_t next_segment;
    uint64_t capacity;  /* of the device; UINT64_MAX: no limit */
    uint64_t max_split; /* torch */
    uint8_t stream;     /* torch: of the next allocation */
    uint64_t region;    /* bfc: what it asks for next */
    bool same;          /* bfc: asks for what is needed */
    uint64_t end;       /* pattern: the size of the buffer */
} naive;

void naive_init(naive *n);
void naive_cleanup(naive *n);

/* The address, or UINT64_MAX: out of memory. */
uint64_t naive_torch_alloc(naive *n, uint32_t id, uint64_t bytes);
uint64_t naive_bfc_alloc(naive *n, uint32_t id, uint64_t bytes);
uint64_t naive_pattern_alloc(naive *n, uint32_t id, uint64_t bytes);

void naive_free(naive *n, uint32_t id);         /* joins neighbours */
void naive_pattern_free(naive *n, uint32_t id); /* the list holds live blocks only */

typedef struct naive_sums {
    uint64_t used, requested, reserved, inactive, segments;
} naive_sums;

naive_sums naive_sum(const naive *n);

#endif
