/* Failing: where an error is filled. */
#ifndef ONV_BASE_FAIL_H
#define ONV_BASE_FAIL_H

#include "base/status.h"

/* Fills `err` (unless NULL or already filled) and returns `code`, so that a failure is one line:
 *     return onv_fail(err, ONV_ERR_MODEL, "value '%s' is defined twice", name); */
onv_status onv_fail(onv_error *err, onv_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The failure every allocation shares. */
onv_status onv_fail_memory(onv_error *err);

/* The same with the status in plain sight. Compilers and analysers don't look into other files;
 * this way they know that ONV_TRY returns here, and don't warn of values that were not set. */
static inline __attribute__((always_inline)) onv_status onv_failed(onv_status code, onv_status same)
{
    (void)same;
    return code;
}
#define onv_fail(err, code, ...) onv_failed((code), onv_fail((err), (code), __VA_ARGS__))
#define onv_fail_memory(err)     onv_failed(ONV_ERR_MEMORY, onv_fail_memory(err))

/* Adds the node (and operator) an error belongs to, if it names none yet. */
void onv_error_at(onv_error *err, const char *node_name, const char *op_type);

#endif
