/* Intervals: one row per buffer, the currency between liveness, planning and reports.
 *
 * A buffer is `bytes` bytes of device memory that must exist from step `first` through step `last`,
 * both included. (The CSV of `onnxvram plan` writes the half-open [first, last + 1).) Rows of 0
 * bytes are kept: they are values that need no memory, and reports list them.
 */
#ifndef ONV_TIMELINE_INTERVAL_H
#define ONV_TIMELINE_INTERVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir/model.h"

typedef enum onv_buffer_kind {
    ONV_BUFFER_INPUT,
    ONV_BUFFER_OUTPUT,
    ONV_BUFFER_ACTIVATION,
    ONV_BUFFER_WEIGHT,
    ONV_BUFFER_GRADIENT,
    ONV_BUFFER_STATE,     /* of an optimizer */
    ONV_BUFFER_WORKSPACE, /* scratch of one step */
} onv_buffer_kind;

#define ONV_NO_ALIAS UINT32_MAX

typedef struct onv_interval {
    uint64_t bytes;
    uint32_t first, last;
    uint32_t alias_of;  /* row whose buffer this one shares, ONV_NO_ALIAS: its own */
    uint8_t kind;       /* onv_buffer_kind */
    bool sized;         /* false: the size is unknown and `bytes` is 0 */
    bool bound;         /* `bytes` is an upper bound */
    onv_value_id value; /* ONV_NO_VALUE where it is no value of the graph */
    const char *label;  /* the value's name, or what the buffer is for */
} onv_interval;

#endif
