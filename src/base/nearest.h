/* The name that somebody may have meant. */
#ifndef ONV_BASE_NEAREST_H
#define ONV_BASE_NEAREST_H

#include <stddef.h>

#include "base/status.h"

/* Name `index` of a list; NULL behind the last one. */
typedef const char *(*onv_name_fn)(size_t index);

/* The name that a word (of `length` bytes) differs from by few letters: left out, added, changed, or two
 * swapped. NULL where there is none so near. */
const char *onv_nearest(const char *word, size_t length, onv_name_fn name);

/* Fails with ONV_ERR_USAGE: "there is no KIND 'WORD', did you mean 'NAME'? There are A, B, C". */
onv_status onv_fail_choice(onv_error *err, const char *kind, const char *word, size_t length,
                           onv_name_fn name);

#endif
