/* The name that a word means, or was likely meant to be. */
#ifndef ONV_BASE_NEAREST_H
#define ONV_BASE_NEAREST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/fail.h"

/* Name `index` of a list; NULL after the last one. `list` is the caller's. */
typedef const char *(*onv_name_fn)(const void *list, size_t index);

/* Of an array of names that ends with NULL. */
const char *onv_name_in(const void *list, size_t index);

/* Whether a word (of `length` bytes) means that name: in any case of letters, or as other programs call it ("pytorch" is
 * "torch", "bfloat16" is "bf16"). */
bool onv_is_name(const char *word, size_t length, const char *name);

/* The name that a word (of `length` bytes) differs from by few letters: left out, added, changed, or two
 * swapped. NULL where there is none so near. */
const char *onv_nearest(const char *word, size_t length, onv_name_fn name, const void *list);

/* Fails with ONV_ERR_USAGE: "OPTION: 'WORD' is unknown, did you mean 'NAME'? Choose from A, B, C". */
onv_status onv_fail_choice(onv_error *err, const char *option, const char *word, size_t length,
                           onv_name_fn name, const void *list);
#define onv_fail_choice(...) onv_failed(ONV_ERR_USAGE, onv_fail_choice(__VA_ARGS__))

#endif
