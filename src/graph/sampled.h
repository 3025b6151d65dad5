/* Figures as functions of free dims, found from their values at points, where no producer works with expressions.
 *
 * Near a point a figure is a polynomial, whose differences tell its coefficients; the figure is the largest of the polynomials that
 * points ask for. It is one only if it gives the value at every point, and says at which points that was seen.
 *
 * Sizes are multiples of a unit within a range. Cost: a value for each point, and 20 or so for each polynomial.
 */
#ifndef ONV_GRAPH_SAMPLED_H
#define ONV_GRAPH_SAMPLED_H

#include "base/arena.h"
#include "base/fail.h"
#include "ir/dim.h"

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
