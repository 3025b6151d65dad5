/* Units: where a forward pass can be cut.
 *
 *   tape   [ conv  norm  relu | conv  norm  relu  conv  norm  add  relu | ... | pool  linear ] loss
 *                             ^ one tensor crosses                      ^
 *
 * A cut is a place between two operations of the tape that a single tensor crosses: of all tensors
 * that were made before it and are read after it, exactly one needs a gradient. Not counted are
 * tensors that need none (masks, position tables), parameters and views of them, and what autocast
 * keeps of parameters. A place is no cut where no segment may begin (places.h), for a checkpoint must
 * find its input as it was; nor between operations of one node (a cast, the product), for nobody could
 * end a checkpoint there.
 *
 * Units are the stretches between neighbouring cuts, but one that computes no products and saves
 * nothing joins the one before it. They cover the tape up to the loss; a model without cuts is one.
 *
 * Cost: linear in the tape.
 */
#ifndef ONV_CKPT_UNITS_H
#define ONV_CKPT_UNITS_H

#include "ckpt/places.h"
#include "eager/program.h"

typedef struct onv_ckpt_unit {
    uint32_t first_op, last_op; /* of the tape, both included */
    uint32_t in;                /* the tensor that crosses into it; ONV_NO_TENSOR: the first one */
    uint64_t macs;              /* of its forward */
    uint64_t saved_bytes;       /* distinct storages that it is the first to keep for backward */
} onv_ckpt_unit;

typedef struct onv_ckpt_units {
    onv_ckpt_unit *at; /* in the model's arena */
    uint32_t count;
    const bool
        *is_cut; /* by operation: a cut stands before it, though maybe no unit begins there */
} onv_ckpt_units;

onv_status onv_ckpt_units_find(onv_model *model, const onv_eager *eager, const onv_places *places,
                               onv_ckpt_units *units, onv_error *err);
/* The square root of their number, rounded; at least 1. */
uint32_t onv_ckpt_units_root(const onv_ckpt_units *units);

#endif
