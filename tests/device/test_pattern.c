/* Patterns: every stretch is the same however it is cut, and any changed byte is found. */
#include "device/pattern.h"
#include "support/test.h"

enum { SIZE = 700 };

TEST(parts_make_the_whole)
{
    unsigned char whole[SIZE], part[SIZE + 16];
    uint64_t seed = onv_pattern_seed(7);
    onv_pattern_fill(whole, seed, 0, SIZE);
    for (unsigned shift = 0; shift < 9; shift++) {
        for (uint64_t first = 0; first < 90; first++) {
            uint64_t bytes = SIZE - first - shift;
            memset(part, 0, sizeof part);
            onv_pattern_fill(part + shift, seed, first, bytes);
            assert_memory_equal(part + shift, whole + first, bytes);
            assert_int_equal(part[shift + bytes], 0);
            assert_int_equal(onv_pattern_check(part + shift, seed, first, bytes), bytes);
        }
    }
}

TEST(its_words_are_as_documented)
{
    uint64_t words[SIZE / 8], seed = onv_pattern_seed(3);
    onv_pattern_fill(words, seed, 0, sizeof words);
    for (uint64_t i = 0; i < SIZE / 8; i++) assert_true(words[i] == seed + i * ONV_PATTERN_STEP);
}

TEST(every_changed_byte_is_found)
{
    unsigned char bytes[SIZE];
    uint64_t seed = onv_pattern_seed(1);
    onv_pattern_fill(bytes, seed, 5, SIZE);
    for (uint64_t i = 0; i < SIZE; i++) {
        bytes[i] ^= 1;
        assert_int_equal(onv_pattern_check(bytes, seed, 5, SIZE), i);
        assert_int_equal(onv_pattern_check(bytes, seed, 5, i), i);
        bytes[i] ^= 1;
    }
    assert_int_equal(onv_pattern_check(bytes, seed, 5, SIZE), SIZE);
}

/* No buffer's pattern passes for another's, wherever the two lie. */
TEST(patterns_differ)
{
    unsigned char bytes[256];
    for (uint64_t a = 0; a < 200; a++) {
        onv_pattern_fill(bytes, onv_pattern_seed(a), 0, sizeof bytes);
        for (uint64_t b = 0; b < 200; b++)
            for (uint64_t first = 0; first < 64; first += 8)
                if (a != b)
                    assert_true(onv_pattern_check(bytes, onv_pattern_seed(b), first, 16) < 16);
    }
}
