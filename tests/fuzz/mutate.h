/* Changes to ONNX files that keep most of them readable.
 *
 * A file is seen through a small schema (which field of which message holds what), so that a change
 * is one of a field: a number becomes an interesting one, a name another name of the file, an
 * operator another operator; fields and messages are removed, repeated, swapped, copied from
 * elsewhere or from a second file; nodes of any operator are added to graphs. The lengths around a
 * change are corrected. Some changes are made to the plain bytes instead.
 *
 * Everything follows from the file and the random state: a mutation can be made again.
 */
#ifndef ONV_TESTS_FUZZ_MUTATE_H
#define ONV_TESTS_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

typedef struct fuzz_random {
    uint64_t state;
} fuzz_random;

uint64_t fuzz_next(fuzz_random *random);
/* Below `bound`; 0 for a bound of 0. */
size_t fuzz_below(fuzz_random *random, size_t bound);

/* Changes `data` in place and returns the new size, at most `capacity`. `donor`, a second file, may be the file
 * itself or NULL. */
typedef size_t fuzz_mutator(uint8_t *data, size_t size, size_t capacity, const uint8_t *donor,
                            size_t donor_size, fuzz_random *random);

fuzz_mutator fuzz_mutate_model;
/* Programs of PyTorch in JSON: kinds of arguments, names, sizes, lifetimes; calls of the donor are spliced in, with
 * tensors that the program has. */
fuzz_mutator fuzz_mutate_program;
/* Files without a structure: bits, ranges, of the donor too, truncation, numbers in decimal. */
fuzz_mutator fuzz_mutate_bytes;

#endif
