/* Status codes and errors.
 *
 * Every fallible function returns an onv_status and takes a trailing `onv_error *` (NULL allowed).
 * The error is filled once, where the failure happens (fail.h); callers on the way up only pass the status
 * on with ONV_TRY, or add the node with onv_error_at. The types are public: see onnxvram/status.h.
 */
#ifndef ONV_BASE_STATUS_H
#define ONV_BASE_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "onnxvram/status.h"

/* Passes a failure on to the caller. */
#define ONV_TRY(expr)                                                                              \
    do {                                                                                           \
        onv_status onv_try_status_ = (expr);                                                       \
        if (onv_try_status_ != ONV_OK) return onv_try_status_;                                     \
    } while (0)

#endif
