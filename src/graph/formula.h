/* Memory as a function of the free dims.
 *
 * The live bytes of a step are a sum of sizes, and so an expression over the symbols that no binding
 * gave a number. The peak is the maximum over the steps; what another step's expression is never
 * below, for sizes of at least 1, is left out. What remains are the pieces of the formula: each is the
 * peak for some sizes, as far as can be told.
 *
 * Requires: onv_live_compute. Exact where inference with numbers does the same as inference with
 * symbols; a data-dependent size stands as its upper bound. Cost: a sum for each buffer, and
 * comparisons of each distinct sum with each piece.
 */
#ifndef ONV_GRAPH_FORMULA_H
#define ONV_GRAPH_FORMULA_H

#include "graph/liveness.h"

enum { ONV_MAX_PIECES = 64 };

typedef struct onv_piece {
    onv_dim bytes;
    uint32_t step; /* the first one with that many */
    /* Where one dim decides among all pieces: this one is the peak from `from` up to but not including
     * `until` (INT64_MAX: no end), whatever the other dims are. Unknown: not so simple. */
    onv_dim decided_by;
    int64_t from, until;
} onv_piece;

typedef struct onv_formula {
    onv_piece *pieces; /* the peak is the largest of them; in order of steps */
    uint32_t n_pieces; /* 0: no formula; `why_not` says the reason */
    const char *why_not;
    onv_dim input_bytes, output_bytes, activation_bytes;
    onv_dim macs; /* unknown: not known of each node */
} onv_formula;

/* In the model's arena; new expressions are in its pool. */
onv_status onv_formula_compute(onv_model *model, const onv_live *live, onv_formula *formula,
                               onv_error *err);

#endif
