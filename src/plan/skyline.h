/* A skyline: placed buffers in order of offset, to find gaps among those that share a section.
 *
 * Buffers lie in blocks of up to 64, kept as columns so that the test for shared sections runs over
 * plain arrays; a lane lists its blocks in order. A block is skipped where it is known that none of its buffers shares
 * a section with the one in question, or that all do and leave no gap that is large enough. Large parts have, besides the lane of
 * everything, a lane for each stretch of time with what is live in it, where the short-lived
 * buffers find their gaps.
 * Cost of finding a place: linear in what lies below it in the lane, at about 1 ns a buffer, or a block where blocks are
 * skipped.
 */
#ifndef ONV_PLAN_SKYLINE_H
#define ONV_PLAN_SKYLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Steps of the planner, a nanosecond each, that count as a unit of a quota's work. */
enum { ONV_PLAN_STEPS_OF_WORK = 16 };

typedef enum onv_fit {
    ONV_FIT_FIRST, /* the lowest gap that is large enough */
    ONV_FIT_BEST,  /* the smallest gap that is large enough, the lowest of these */
} onv_fit;

typedef struct onv_skyline_lane onv_skyline_lane;

typedef struct onv_skyline {
    onv_skyline_lane *lanes; /* [0]: everything; then one for each stretch */
    uint32_t stretches;      /* 0, or more than 1 */
    uint32_t stretch;        /* sections of one */
    uint64_t work;           /* units spent since it was started, see onv_effort */
    uint64_t counted;        /* of them, to the quota */
} onv_skyline;

/* Makes an empty skyline for about `rows` buffers; a zeroed one can be cleaned up. */
bool onv_skyline_init(onv_skyline *skyline, uint32_t rows, uint32_t sections);
void onv_skyline_cleanup(onv_skyline *skyline);
/* Takes everything off. */
void onv_skyline_clear(onv_skyline *skyline);

/* Puts a buffer of `size` > 0 on the skyline, in a gap or on top; false when memory is short. */
bool onv_skyline_place(onv_skyline *skyline, uint32_t lo, uint32_t hi, uint64_t size, onv_fit fit,
                       uint64_t *offset);

/* Takes a buffer off that was put there. */
void onv_skyline_remove(onv_skyline *skyline, uint32_t lo, uint32_t hi, uint64_t offset);

#endif
