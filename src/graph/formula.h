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

#include "base/arena.h"
#include "base/fail.h"
#include "graph/liveness.h"
#include "ir/dim.h"

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

/* The largest single buffer of a model: some APIs bind no more than a limit at once, whatever the device holds. */

/* What WebGPU promises of a storage buffer (maxStorageBufferBindingSize), unless more is asked for, and the
 * elements that a tensor of TensorRT may have. */
#define ONV_WEBGPU_BINDING_BYTES ((uint64_t)128 << 20)
#define ONV_TENSORRT_ELEMS       (((uint64_t)1 << 31) - 1)

typedef struct onv_largest_row {
    onv_value_id value; /* ONV_NO_VALUE: the model has none of known size */
    uint64_t bytes, elems;
} onv_largest_row;

/* Values and weights that a run holds, known sizes alone. */
typedef struct onv_largest {
    onv_largest_row by_bytes, by_elems;
    uint64_t n_over_binding, n_over_elems; /* how many are beyond the two limits */
} onv_largest;

onv_largest onv_largest_find(onv_model *model, const onv_live *live);

/* Notes where one of the limits is passed: largest-binding, largest-volume. */
void onv_largest_note(onv_model *model, const onv_largest *most);

/* Figures as functions of free dims, found from their values at points, where no producer works with expressions.
 *
 * Near a point a figure is a polynomial, whose differences tell its coefficients; the figure is the largest of the polynomials that
 * points ask for. It is one only if it gives the value at every point, and says at which points that was seen.
 *
 * Sizes are multiples of a unit within a range. Cost: a value for each point, and 20 or so for each polynomial.
 */

enum {
    ONV_SAMPLED_DIMS = 3,
    ONV_SAMPLED_POINTS = 100,
    ONV_SAMPLED_PIECES = 12,
    ONV_SAMPLED_FIGURES = 16
};

/* A free dim: sizes are `unit` times `low` to `high`. */
typedef struct onv_sampled_dim {
    const char *name;
    int64_t unit, low, high;
} onv_sampled_dim;

typedef struct onv_sampled_figure {
    const char *name; /* of a runtime */
    bool is_upper;    /* the upper end of its range */
    onv_dim pieces[ONV_SAMPLED_PIECES];
    uint32_t n_pieces;   /* 0: there is no formula; `why_not` says the reason */
    const char *why_not; /* in the arena */
} onv_sampled_figure;

typedef struct onv_sampled {
    onv_sampled_dim dims[ONV_SAMPLED_DIMS];
    uint32_t n_dims;
    onv_sampled_figure figures[ONV_SAMPLED_FIGURES];
    uint32_t n_figures;
    uint32_t n_points;   /* with values, at which each formula was compared */
    const char *why_not; /* none of the figures has one; NULL: see there */
} onv_sampled;

/* The values of all figures at these sizes, one for each dim. `has` false: the model does not take the sizes. */
typedef onv_status (*onv_sampled_value)(void *context, const int64_t *sizes, uint64_t *values,
                                        bool *has, onv_error *err);

/* Of figures whose names are set. Pieces are in `pool`, texts in `arena`. */
onv_status onv_sampled_find(onv_sampled *sampled, onv_dims *pool, onv_arena *arena,
                            onv_sampled_value value, void *context, onv_error *err);

#endif
