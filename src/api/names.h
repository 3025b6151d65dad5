/* The names that options choose from: of the strategies, as the public functions list them, and in
 * comma-separated lists. */
#ifndef ONV_API_NAMES_H
#define ONV_API_NAMES_H

#include "base/nearest.h"
#include "onnxvram/onnxvram.h"

/* Whether the list (NULL: all) names it. */
bool onv_is_listed(const char *list, const char *name);

/* ONV_ERR_USAGE where the list names a runtime that there is not. */
onv_status onv_check_runtimes(const char *list, onv_error *err);

/* The names of a list alone, for messages; and what simulate takes. */
const char *onv_choice(const void *list, size_t index);
#define ONV_CHOICE(list) (&(const onv_names){ONV_NAMES_##list})
const char *onv_allocator_choice(const void *unused, size_t index);

/* ONV_ERR_USAGE where an option that differs from its default needs what is not there. The struct is complete. */
onv_status onv_check_needs(const onv_options *options, onv_error *err);

#endif
