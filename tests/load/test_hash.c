/* Hashes are keyed: names that would all collide without the key do not. */
#include "base/strings.h"
#include "support/test.h"

enum { COUNT = 4096, BITS = 16 };

/* What onv_hash_u64() makes x of. */
static uint64_t inverse_of_mix(uint64_t x)
{
    uint64_t inverse = 1;
    for (int i = 0; i < 6; i++) inverse *= 2 - 0xd6e8feb86659fd93u * inverse;
    x = (x ^ x >> 32) * inverse;
    x = (x ^ x >> 32) * inverse;
    return x ^ x >> 32;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* How many of the hashes share their low bits with another one, at most. */
static size_t largest_group(uint64_t *hashes)
{
    for (size_t i = 0; i < COUNT; i++) hashes[i] &= ((uint64_t)1 << BITS) - 1;
    qsort(hashes, COUNT, sizeof *hashes, compare);
    size_t most = 0, run = 0;
    for (size_t i = 0; i < COUNT; i++) {
        run = i > 0 && hashes[i] == hashes[i - 1] ? run + 1 : 1;
        if (run > most) most = run;
    }
    return most;
}

TEST(forged_names_do_not_collide)
{
    uint64_t plain[COUNT], bytes[COUNT], words[COUNT];
    for (uint64_t i = 0; i < COUNT; i++) {
        uint64_t x = inverse_of_mix(i << BITS | 0x5a5a);
        plain[i] = onv_hash_u64(x);
        words[i] = onv_hash_word(x);
        /* Twice mixed, with the length before it: names of eight bytes, as they were hashed once. */
        uint64_t name = inverse_of_mix(x) ^ 3 ^ 8 * 0x9e3779b97f4a7c15u;
        bytes[i] = onv_hash_bytes(&name, sizeof name, 3);
    }
    assert_int_equal(largest_group(plain), COUNT); /* they are well forged */
    assert_true(largest_group(words) < 8);
    assert_true(largest_group(bytes) < 8);
}

TEST(every_byte_counts)
{
    char text[40] = {0};
    uint64_t seen[COUNT] = {0};
    size_t n = 0;
    for (size_t length = 0; length < sizeof text; length++)
        for (size_t i = 0; i < length; i++) {
            text[i] = 'a';
            seen[n++] = onv_hash_bytes(text, length, 0);
            text[i] = 0;
        }
    for (size_t length = 0; length < sizeof text; length++)
        seen[n++] = onv_hash_bytes(text, length, 0);
    for (uint64_t seed = 1; seed < 40; seed++) seen[n++] = onv_hash_bytes(text, 8, seed);
    qsort(seen, n, sizeof *seen, compare);
    for (size_t i = 1; i < n; i++) assert_true(seen[i] != seen[i - 1]);
    assert_true(onv_hash_bytes("abc", 3, 7) == onv_hash_bytes("abc", 3, 7));
}
