/* A shelf: placed buffers in order of offset, to find gaps among those that share a section.
 *
 * Buffers lie in blocks of up to 64, kept as columns so that the test for shared sections runs over
 * plain arrays; a directory lists the blocks in order. A block knows the span of its sections, and
 * is skipped when that does not touch the buffer in question.
 * Cost of finding a place: linear in what is placed below it, at about 1 ns a buffer.
 */
#ifndef ONV_PLAN_SHELF_H
#define ONV_PLAN_SHELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum onv_fit {
    ONV_FIT_FIRST, /* the lowest gap that is large enough */
    ONV_FIT_BEST,  /* the smallest gap that is large enough, the lowest of these */
} onv_fit;

typedef struct onv_shelf_block onv_shelf_block;

typedef struct onv_shelf {
    onv_shelf_block **blocks; /* the first `count` are in use, the rest are spare */
    size_t count, made, capacity;
    uint64_t work; /* units spent since the last reset, see onv_effort */
} onv_shelf;

/* A zeroed shelf is empty. */
void onv_shelf_reset(onv_shelf *shelf);
void onv_shelf_cleanup(onv_shelf *shelf);

/* Puts a buffer of `size` > 0 on the shelf, in a gap or on top; false when memory is short. */
bool onv_shelf_place(onv_shelf *shelf, uint32_t lo, uint32_t hi, uint64_t size, onv_fit fit,
                     uint64_t *offset);

/* Takes a buffer off again that was placed with these sections at this offset. */
void onv_shelf_remove(onv_shelf *shelf, uint32_t lo, uint32_t hi, uint64_t offset);

#endif
