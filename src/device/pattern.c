#include "device/pattern.h"

#include <string.h>

#include "base/strings.h"

/* Eight words at a time, at any address; the compiler makes of it what the machine has. */
typedef uint64_t words8 __attribute__((vector_size(64), aligned(1), may_alias));

uint64_t onv_pattern_seed(uint64_t n)
{
    return onv_hash_u64(n + 1);
}

static unsigned char byte_of(uint64_t seed, uint64_t position)
{
    uint64_t word = seed + position / 8 * ONV_PATTERN_STEP;
    unsigned char bytes[8];
    memcpy(bytes, &word, sizeof bytes);
    return bytes[position % 8];
}

static inline void first_words(words8 *words, uint64_t seed, uint64_t position)
{
    /* cppcheck-suppress uninitvar ; a vector is set element by element */
    for (unsigned i = 0; i < 8; i++) (*words)[i] = seed + (position / 8 + i) * ONV_PATTERN_STEP;
}

void onv_pattern_fill(void *to, uint64_t seed, uint64_t first, uint64_t bytes)
{
    unsigned char *out = to;
    uint64_t at = 0;
    for (; at < bytes && (first + at) % 8 != 0; at++) out[at] = byte_of(seed, first + at);
    words8 words;
    first_words(&words, seed, first + at);
    for (; bytes - at >= 64; at += 64) {
        *(words8 *)(void *)(out + at) = words;
        words += 8 * ONV_PATTERN_STEP;
    }
    for (; at < bytes; at++) out[at] = byte_of(seed, first + at);
}

uint64_t onv_pattern_check(const void *from, uint64_t seed, uint64_t first, uint64_t bytes)
{
    const unsigned char *in = from;
    uint64_t at = 0;
    for (; at < bytes && (first + at) % 8 != 0; at++)
        if (in[at] != byte_of(seed, first + at)) return at;
    words8 words;
    first_words(&words, seed, first + at);
    for (; bytes - at >= 64; at += 64) {
        words8 wrong = *(const words8 *)(const void *)(in + at) ^ words;
        uint64_t any = 0;
        for (unsigned i = 0; i < 8; i++) any |= wrong[i];
        if (any != 0) break;
        words += 8 * ONV_PATTERN_STEP;
    }
    for (; at < bytes; at++)
        if (in[at] != byte_of(seed, first + at)) return at;
    return bytes;
}
