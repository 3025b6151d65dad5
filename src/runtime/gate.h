/* The growth gate: the figures of an analysis beside those of an earlier report. */
#ifndef ONV_RUNTIME_GATE_H
#define ONV_RUNTIME_GATE_H

#include "runtime/fit.h"

enum { ONV_MAX_GATE_ROWS = ONV_MAX_RUNTIMES + 6 };

typedef struct onv_gate_row {
    const char *what; /* "weights", "peak", "total", a runtime, "train" */
    uint64_t before_bytes, after_bytes;
    bool exceeds; /* it grew by more than what is allowed */
} onv_gate_row;

typedef struct onv_gate {
    const char *baseline; /* the file; NULL: none was given, the rest means nothing */
    bool has_most;
    uint32_t most_basis_points; /* hundredths of a percent that a figure may grow by */
    bool exceeds;               /* some row does */
    const char *lacks;          /* a judged runtime that the earlier report has no figure of */
    bool other_bindings;        /* the earlier report is of other sizes */
    uint32_t n_rows;
    onv_gate_row rows[ONV_MAX_GATE_ROWS];
} onv_gate;

/* Adds a row, and judges it. */
void onv_gate_compare(onv_gate *gate, const char *what, uint64_t before, uint64_t after);

#endif
