/* What stands beside activations while a tape is trained: parameters, gradients, optimizer state, as the program
 * without checkpoints has them. */
#ifndef ONV_CKPT_BESIDE_H
#define ONV_CKPT_BESIDE_H

#include "ckpt/ckpt.h"

typedef struct onv_tape_beside {
    /* by operation */
    uint64_t *backward; /* while its backward runs */
    uint64_t *carried;  /* of that what was there before */
    bool *goes_back;    /* its backward runs */
    uint64_t turn;      /* when forward is over */
    uint64_t optimizer; /* the peak of the optimizer: no plan has less */
} onv_tape_beside;

/* In the arena; builds one program. */
onv_status onv_tape_beside_find(const onv_ckpt_problem *problem, onv_arena *arena,
                                onv_tape_beside *beside, onv_error *err);

#endif
