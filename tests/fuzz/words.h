/* What the mutator writes into files: numbers at the edges, names of attributes and operators. */
#ifndef ONV_TESTS_FUZZ_WORDS_H
#define ONV_TESTS_FUZZ_WORDS_H

#include "fuzz/mutate.h"
#include "ops/op.h"

#define COUNT(array)          (sizeof(array) / sizeof *(array))
#define ONE_OF(random, array) ((array)[fuzz_below((random), COUNT(array))])

uint64_t fuzz_interesting(fuzz_random *random);
const char *fuzz_attribute_name(fuzz_random *random);
const char *fuzz_odd_name(fuzz_random *random);

/* A row of the operator table and its domain; NULL for an empty family. */
const onv_op *fuzz_any_operator(fuzz_random *random, const char **domain);

#endif
