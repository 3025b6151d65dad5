/* Arithmetic on sizes that cannot wrap. The result is written only when it fits. */
#ifndef ONV_BASE_CHECKED_H
#define ONV_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

static inline bool onv_u64_add(uint64_t a, uint64_t b, uint64_t *sum)
{
    uint64_t value;
    if (__builtin_add_overflow(a, b, &value)) return false;
    *sum = value;
    return true;
}

/* The largest number where it does not fit: for what is compared, or refused later. */
static inline uint64_t onv_u64_plus(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline bool onv_u64_mul(uint64_t a, uint64_t b, uint64_t *product)
{
    uint64_t value;
    if (__builtin_mul_overflow(a, b, &value)) return false;
    *product = value;
    return true;
}

static inline bool onv_i64_add(int64_t a, int64_t b, int64_t *sum)
{
    int64_t value;
    if (__builtin_add_overflow(a, b, &value)) return false;
    *sum = value;
    return true;
}

static inline bool onv_i64_mul(int64_t a, int64_t b, int64_t *product)
{
    int64_t value;
    if (__builtin_mul_overflow(a, b, &value)) return false;
    *product = value;
    return true;
}

/* The largest number where it does not fit. */
static inline uint64_t onv_u64_times(uint64_t a, uint64_t b)
{
    uint64_t product = UINT64_MAX;
    onv_u64_mul(a, b, &product);
    return product;
}

/* `bytes` rounded up to a multiple of `quantum` (> 0); false if that does not fit. */
static inline bool onv_u64_round_up(uint64_t bytes, uint64_t quantum, uint64_t *rounded)
{
    uint64_t up;
    if (!onv_u64_add(bytes, quantum - 1, &up)) return false;
    *rounded = up / quantum * quantum;
    return true;
}

/* The same where the caller knows that it fits. */
static inline uint64_t onv_round_up(uint64_t count, uint64_t quantum)
{
    return (count + quantum - 1) / quantum * quantum;
}

#endif
