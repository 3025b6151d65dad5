/* Places: where segments may begin and end, so that a running PyTorch program can apply them.
 *
 * An export that tells which calls of modules its nodes come from makes most places between operations
 * describable (borders.h); where it tells nothing, segments are a matter of hands and may stand
 * anywhere. Nowhere does a segment begin between a tensor and an operation that overwrites it, or may:
 * an activation or a sum is written in place by some code and not by other, and a graph does not
 * say which. It may be where nobody else reads the tensor or keeps it.
 */
#ifndef ONV_CKPT_PLACES_H
#define ONV_CKPT_PLACES_H

#include "ckpt/borders.h"
#include "ckpt/names.h"
#include "ckpt/scopes.h"

typedef struct onv_places {
    onv_scopes scopes;
    onv_borders borders;
    onv_namer namer;
    bool is_told;   /* the export tells of calls */
    bool *is_known; /* by operation before the loss, and one more: the place before it can be named,
                       be it by one beside it with views between; without is_told: all */
    bool *is_open;  /* likewise: a segment may begin there */
    bool *is_bare;  /* likewise, where only what surely overwrites counts: second runs by noted
                       operations (recompute.py) copy what is overwritten all the same */
} onv_places;

/* Lives in `arena`, what was given must outlive it. Clean up in either case. */
onv_status onv_places_find(onv_model *model, const onv_eager *eager, onv_arena *arena,
                           onv_places *places, onv_error *err);
void onv_places_cleanup(onv_places *places);

/* The operation whose results are to be kept where those of operation `op` are: the last one to
 * overwrite them, and what names it. UINT32_MAX: no name is known. */
uint32_t onv_places_keeper(const onv_places *places, const onv_eager *eager, uint32_t op);

static inline bool onv_op_saves(const onv_eager_op *op, uint32_t storage)
{
    for (uint32_t k = 0; k < op->n_saved; k++)
        if (op->saved[k] == storage) return true;
    return false;
}

/* By where they begin, outer ones before those inside. */
void onv_segments_sort(onv_tape_segment *at, size_t n);
/* Ascending. */
void onv_ops_sort(uint32_t *at, size_t n);

#endif
