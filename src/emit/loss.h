/* The losses that training starts its backward at: one for each output that is the end of a branch, and their
 * sum. */
#ifndef ONV_EMIT_LOSS_H
#define ONV_EMIT_LOSS_H

#include "emit/emit.h"

typedef struct onv_loss_output {
    const char *name;
    uint32_t tensor; /* ONV_NO_TENSOR: on the host, or of none */
    uint32_t n_uses; /* by operations, and by the caller */
} onv_loss_output;

/* Operations so far are the network; those from now on its losses, as the options ask for them. */
void onv_emit_loss(onv_emitter *e, const onv_loss_output *outputs, uint32_t n_outputs);

#endif
