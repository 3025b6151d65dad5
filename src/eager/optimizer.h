/* Optimizers: what state each keeps for a parameter, and what its step allocates on the way.
 *
 * State tensors have the parameter's dtype unless an optimizer says otherwise, and are made in the
 * first step. Temporaries follow PyTorch's default on CUDA, the foreach kernels where there are any:
 * whole lists of tensors, one allocation a parameter. The counters of steps are on the host, those of
 * fused kernels on the device.
 */
#ifndef ONV_EAGER_OPTIMIZER_H
#define ONV_EAGER_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct onv_parameter {
    uint64_t elems, bytes;
    const int64_t *dims;
    uint32_t rank;
} onv_parameter;

enum { ONV_MAX_STATES = 4 };

/* How torch.optim goes over the parameters. */
typedef enum onv_optimizer_impl {
    ONV_IMPL_DEFAULT,
    ONV_IMPL_FOREACH,  /* whole lists of tensors at once */
    ONV_IMPL_FUSED,    /* one kernel, no temporaries; the step counters are on the device */
    ONV_IMPL_FOR_LOOP, /* one parameter after the other */
} onv_optimizer_impl;

typedef struct onv_optimizer {
    const char *name; /* as --train takes it */
    const char *summary;
    /* Bytes of the tensors kept for one parameter; returns how many there are. */
    uint32_t (*states)(const onv_parameter *p, uint64_t bytes[ONV_MAX_STATES]);
    uint32_t
        temp_lists;     /* lists of parameters alive at once during a step; 0: it goes one by one */
    uint32_t loop_each; /* one by one: tensors made for a parameter, all alive at once */
    bool loop_keeps;    /* and one of the parameter before, whose name is bound anew after that */
    bool has_fused;
    bool states_first; /* its constructor makes the states, not the first step */
    bool counts_steps; /* fused: a counter on the device for each parameter */
} onv_optimizer;

/* What a step allocates on the way. */
typedef struct onv_optimizer_temps {
    uint32_t lists; /* of all parameters */
    uint32_t each; /* one parameter after the other: tensors of one, and `keeps`: one of the last */
    bool keeps;
    uint32_t counter_bytes; /* kept on the device for each parameter */
} onv_optimizer_temps;

/* False where PyTorch has no such implementation. `decays`: SGD adds decay to a copy of gradients. */
bool onv_optimizer_temps_of(const onv_optimizer *optimizer, onv_optimizer_impl impl, bool decays,
                            onv_optimizer_temps *temps);

extern const onv_optimizer onv_optimizers[];
extern const size_t onv_n_optimizers;

/* By name; NULL if there is none. */
const onv_optimizer *onv_optimizer_find(const char *name);

#endif
