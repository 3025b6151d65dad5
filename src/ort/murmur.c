#include "ort/murmur.h"

#include <string.h>

/* Four lanes, each with its own multiplier and rotations (Austin Appleby's MurmurHash3, which he put
 * into the public domain). */
static const uint32_t multiplier[4] = {0x239b961bu, 0xab0e9789u, 0x38b34ae5u, 0xa1e38b93u};
static const uint32_t added[4] = {0x561ccd1bu, 0x0bcaa747u, 0x96cd1c35u, 0x32ac3b17u};
static const unsigned turn_key[4] = {15, 16, 17, 18}, turn_state[4] = {19, 17, 15, 13};

enum { LANES = 4, BLOCK = 16 };

static uint32_t rotate(uint32_t x, unsigned by)
{
    return x << by | x >> (32 - by);
}

static uint32_t mix_key(uint32_t key, int lane)
{
    return rotate(key * multiplier[lane], turn_key[lane]) * multiplier[(lane + 1) % LANES];
}

static uint32_t finish(uint32_t h)
{
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

static uint32_t little_endian(const unsigned char *at, size_t bytes)
{
    uint32_t word = 0;
    for (size_t i = 0; i < bytes; i++) word |= (uint32_t)at[i] << 8 * i;
    return word;
}

static void sum_lanes(uint32_t h[LANES])
{
    for (int i = 1; i < LANES; i++) h[0] += h[i];
    for (int i = 1; i < LANES; i++) h[i] += h[0];
}

void onv_murmur3_x86_128(const void *data, size_t bytes, uint32_t seed, uint32_t out[4])
{
    const unsigned char *at = data;
    size_t left = bytes;
    uint32_t h[LANES] = {seed, seed, seed, seed};
    for (; left >= BLOCK; at += BLOCK, left -= BLOCK)
        for (int i = 0; i < LANES; i++) {
            h[i] ^= mix_key(little_endian(at + (size_t)4 * i, 4), i);
            h[i] = (rotate(h[i], turn_state[i]) + h[(i + 1) % LANES]) * 5 + added[i];
        }
    for (int i = 0; i < LANES && left > 4 * (size_t)i; i++) {
        size_t in_lane = left - 4 * (size_t)i < 4 ? left - 4 * (size_t)i : 4;
        h[i] ^= mix_key(little_endian(at + (size_t)4 * i, in_lane), i);
    }
    for (int i = 0; i < LANES; i++) h[i] ^= (uint32_t)bytes;
    sum_lanes(h);
    for (int i = 0; i < LANES; i++) h[i] = finish(h[i]);
    sum_lanes(h);
    memcpy(out, h, sizeof h);
}
