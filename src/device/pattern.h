/* Patterns: what a buffer is filled with, so that its bytes can be told from those of any other.
 *
 * A buffer with seed s holds the 64-bit words s, s + STEP, s + 2 * STEP ... in the byte order of the
 * machine; its last word may be cut short. Any stretch of it can be made and checked alone. Two
 * seeds agree on a word only where they differ by a small multiple of STEP, which the seeds of one
 * replay, being hashes, do not.
 */
#ifndef ONV_DEVICE_PATTERN_H
#define ONV_DEVICE_PATTERN_H

#include <stdint.h>

#define ONV_PATTERN_STEP UINT64_C(0x9e3779b97f4a7c15)

/* The seed of the nth thing of a replay. */
uint64_t onv_pattern_seed(uint64_t n);

/* Bytes [first, first + bytes) of the pattern. Memory needs no alignment. */
void onv_pattern_fill(void *to, uint64_t seed, uint64_t first, uint64_t bytes);

/* The first of these bytes that is not as it should be, counted from `first`; `bytes` if none. */
uint64_t onv_pattern_check(const void *from, uint64_t seed, uint64_t first, uint64_t bytes);

#endif
