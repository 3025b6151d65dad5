/* Work on a tape's chain that tape.c and tape_units.c share. */
#ifndef ONV_CKPT_TAPE_BUILDER_H
#define ONV_CKPT_TAPE_BUILDER_H

#include "ckpt/tape.h"

#define ONV_NO_OP_OF_TAPE UINT32_MAX

typedef struct onv_tape_builder {
    const onv_ckpt_problem *problem;
    const onv_eager *eager;
    const onv_tape_beside *beside;
    onv_arena *arena;
    uint32_t n_ops, n_storages;
    /* by storage */
    uint32_t
        *made_by; /* the first operation that makes it; ONV_NO_OP_OF_TAPE: there from the start */
    uint32_t *last_read; /* the last operation that reads or saves it */
    bool *is_saved;      /* by any operation */
    bool *is_held;       /* a result of those that the plan keeps */
    /* by operation */
    uint64_t *cost;
    uint64_t total_cost; /* with that of what is held */
    bool prunes, by_nodes;
    /* by unit */
    uint32_t *first_op; /* n_units + 1 */
    uint32_t n_units, n_fine;
    uint32_t *unit_of; /* by operation */
    onv_chain_unit *units;
    /* by storage */
    bool *is_kept;           /* by an operation of the unit that makes it */
    bool *is_gone, *is_past; /* within it, when it keeps what it can, or nothing */
    bool *is_placed;         /* among the tensors */
    uint64_t outputs;        /* bytes that the caller holds all the time */
} onv_tape_builder;

static inline uint32_t onv_tape_storage_of(const onv_tape_builder *b, uint32_t tensor)
{
    return b->eager->tensors.at[tensor].storage;
}

/* Held or not as checkpoints decide. What autocast keeps of a parameter is made anew for whoever
 * needs it; outputs are the caller's. */
static inline bool onv_tape_is_activation(const onv_tape_builder *b, uint32_t storage)
{
    const onv_eager_storage *s = &b->eager->storages.at[storage];
    return s->kind == ONV_STORAGE_ACTIVATION && !s->on_host && !s->is_output && !s->is_cached &&
           (b->is_held == NULL || !b->is_held[storage]);
}

/* Kept by one operation for itself. */
static inline bool onv_tape_is_own(const onv_tape_builder *b, uint32_t storage)
{
    const onv_eager_storage *s = &b->eager->storages.at[storage];
    return !s->on_host && !s->is_output && (b->is_held == NULL || !b->is_held[storage]) &&
           (s->kind == ONV_STORAGE_EXTRA || (s->kind == ONV_STORAGE_ACTIVATION && s->is_cached));
}

static inline bool onv_tape_keeps(const onv_tape_builder *b, const onv_eager_op *op)
{
    for (uint32_t k = 0; k < op->n_saved; k++)
        if (onv_tape_is_activation(b, op->saved[k]) || onv_tape_is_own(b, op->saved[k]))
            return true;
    return false;
}

/* Whether a checkpoint may begin with the operation. */
static inline bool onv_tape_may_begin(const onv_tape_builder *b, uint32_t op)
{
    const onv_places *places = b->problem->places;
    return op >= b->eager->first_loss_op || (b->prunes ? places->is_bare : places->is_open)[op];
}

/* tape_units.c: where units begin; first_op, unit_of, n_units, n_fine. */
onv_status onv_tape_find_units(onv_tape_builder *b, uint32_t max_units, onv_error *err);

#endif
