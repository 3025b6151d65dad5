/* Optimizers: what state each keeps for a parameter, and what its step allocates on the way.
 *
 * State tensors have the parameter's dtype unless an optimizer says otherwise, and are made in the
 * first step. Temporaries follow PyTorch's default on CUDA, the foreach kernels: whole lists of
 * tensors, one allocation a parameter. The counters of steps are on the host.
 */
#ifndef ONV_TRAIN_OPTIMIZER_H
#define ONV_TRAIN_OPTIMIZER_H

#include <stddef.h>
#include <stdint.h>

typedef struct onv_parameter {
    uint64_t elems, bytes;
    const int64_t *dims;
    uint32_t rank;
} onv_parameter;

enum { ONV_MAX_STATES = 4 };

typedef struct onv_optimizer {
    const char *name; /* as --train takes it */
    const char *summary;
    /* Bytes of the tensors kept for one parameter; returns how many there are. */
    uint32_t (*states)(const onv_parameter *p, uint64_t bytes[ONV_MAX_STATES]);
    uint32_t temp_lists;   /* lists of parameters alive at once during a step */
    uint32_t temp_largest; /* or, one parameter after the other: tensors of the largest one */
} onv_optimizer;

extern const onv_optimizer *const onv_optimizers[];
extern const size_t onv_n_optimizers;

/* By name; NULL if there is none. */
const onv_optimizer *onv_optimizer_find(const char *name);

#endif
