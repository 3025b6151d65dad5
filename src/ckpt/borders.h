/* Borders: places between operations of the tape, as a running PyTorch program can find them.
 *
 *   enter layer1.0 1      the first call of module layer1.0 begins
 *   leave layer1.0 1      it is over
 *   op layer1.0 add 2     before the second addition of code that stands in layer1.0 itself
 *
 * Modules go by their path, the model itself by ".". Operations are counted by kind (additions,
 * products, ...), those alone that have a tensor with a gradient among their arguments, over all calls
 * of a module. The paths come from what exports tell of calls (eager/calls.h) and, of an operation that
 * one folded with its neighbour, of weights (scopes.h).
 *
 * A border that nothing tells, or that stands before an operation whose kind says too little of what
 * PyTorch runs, has no description.
 */
#ifndef ONV_CKPT_BORDERS_H
#define ONV_CKPT_BORDERS_H

#include "ckpt/scopes.h"

typedef struct onv_border {
    const char *kind; /* "enter", "leave", or that of the operation; NULL: no description */
    const char *path; /* in the arena; letters, digits, underscores, dashes and dots */
    uint32_t count;   /* from 1 */
} onv_border;

typedef struct onv_borders {
    onv_border *before; /* by operation before the loss, and one more for what follows them */
    /* By operation: itself, as "op" names it; without a description: NULL. */
    onv_border *of_op;
} onv_borders;

/* In the arena. Linear in the operations and the length of their names. */
onv_status onv_borders_find(const onv_model *model, const onv_eager *eager,
                            const onv_scopes *scopes, onv_arena *arena, onv_borders *borders,
                            onv_error *err);

/* What its kind is called in a program that counts them. NULL: others run as different operations from case to case
 * (dropout, views, copies), or are not counted alike. */
static inline const char *onv_kind_of(const onv_eager_op *op)
{
    uint16_t kind = onv_aten_ops[op->aten].counted_as;
    return kind != ONV_ATEN_NONE ? onv_aten_ops[kind].name : NULL;
}

static inline bool onv_border_is_known(const onv_border *border)
{
    return border->kind != NULL;
}

/* "enter layer1.0 1"; NULL without memory. */
const char *onv_border_text(const onv_border *border, onv_arena *arena);

#endif
