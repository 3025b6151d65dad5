/* What is fuzzed: functions that take any bytes and may refuse them, but not crash, hang or break a
 * promise. A broken promise is an abort() behind a line that says which.
 *
 * The same functions run under libFuzzer (libfuzzer.c) and under a plain driver (driver.c). Which
 * options a model is analysed with is drawn from its bytes, so that a file is a whole test.
 */
#ifndef ONV_TESTS_FUZZ_TARGETS_H
#define ONV_TESTS_FUZZ_TARGETS_H

#include "fuzz/mutate.h"

typedef struct fuzz_target {
    const char *name;
    void (*run)(const uint8_t *data, size_t size);
    fuzz_mutator *mutate; /* what keeps most of its inputs readable */
} fuzz_target;

/* Ends with a NULL name. */
extern const fuzz_target fuzz_targets[];

/* NULL if there is none. */
const fuzz_target *fuzz_target_find(const char *name);

#endif
