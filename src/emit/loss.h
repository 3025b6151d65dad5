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

/* log_softmax of logits in their dtype, for which cross_entropy asks under autocast, too. */
uint32_t onv_emit_log_probs(onv_emitter *e, uint32_t logits);

/* nll_loss, whose result is `loss`. `weights` of classes may be ONV_NO_TENSOR. */
void onv_emit_nll(onv_emitter *e, uint32_t log_probs, uint32_t targets, uint32_t weights,
                  uint32_t loss);

/* Operations so far are the network; those from now on its losses, as the options ask for them. Of training, then, how gradients come
 * back: copies of them, and where backward comes to. */
void onv_emit_loss(onv_emitter *e, const onv_loss_output *outputs, uint32_t n_outputs);

#endif
