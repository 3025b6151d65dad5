/* The functions that libFuzzer calls; ONV_FUZZ_TARGET names the target of this program. */
#include <stdlib.h>
#include <string.h>

#include "fuzz/mutate.h"
#include "fuzz/targets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t capacity);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t capacity, unsigned seed);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_target_find(ONV_FUZZ_TARGET)->run(data, size);
    return 0;
}

#ifdef ONV_FUZZ_STRUCTURED
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed)
{
    fuzz_random random = {seed};
    if (fuzz_below(&random, 8) == 0) return LLVMFuzzerMutate(data, size, capacity);
    for (size_t n = 1 + fuzz_below(&random, 3); n > 0; n--)
        size = fuzz_target_find(ONV_FUZZ_TARGET)->mutate(data, size, capacity, NULL, 0, &random);
    return size;
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t capacity, unsigned seed)
{
    fuzz_random random = {seed};
    size_t size = a_size < capacity ? a_size : capacity;
    if (size > 0) memcpy(out, a, size);
    for (size_t n = 1 + fuzz_below(&random, 3); n > 0; n--)
        size = fuzz_target_find(ONV_FUZZ_TARGET)->mutate(out, size, capacity, b, b_size, &random);
    return size;
}
#endif
