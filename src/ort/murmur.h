/* MurmurHash3, the variant of 128 bits for 32-bit machines. */
#ifndef ONV_ORT_MURMUR_H
#define ONV_ORT_MURMUR_H

#include <stddef.h>
#include <stdint.h>

void onv_murmur3_x86_128(const void *data, size_t bytes, uint32_t seed, uint32_t out[4]);

#endif
