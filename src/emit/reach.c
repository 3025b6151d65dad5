/* Which operations backward comes to: those from which gradients lead to the loss.
 *
 * Autograd's nodes live as long as a tensor that they gave does, or a node that reads it. What leads to no
 * loss, because a rounding to integers or detach() is between, goes with the forward pass: its
 * variables hold it until its functions return. What leads to an output of the network without a loss stays
 * with that output. Parameters that only such operations read get no gradient and no state. */
#include "emit/emit.h"

#include "base/fail.h"

static bool is_held(const onv_eager *eager, uint32_t tensor)
{
    return eager->storages.at[eager->tensors.at[tensor].storage].is_output;
}

/* `life`: of each tensor, as of the operation that made it. */
static void look_back(onv_eager *eager, uint8_t *life)
{
    for (uint32_t i = (uint32_t)eager->ops.count; i-- > 0;) {
        onv_eager_op *op = &eager->ops.at[i];
        op->life = i >= eager->first_loss_op ? ONV_LIFE_BACKWARD : ONV_LIFE_FORWARD;
        for (uint32_t k = 0; k < op->n_out; k++) {
            uint8_t out = life[op->out[k]];
            if (out == ONV_LIFE_FORWARD && is_held(eager, op->out[k])) out = ONV_LIFE_OUTPUT;
            if (out > op->life) op->life = out;
        }
        for (uint32_t k = 0; k < op->n_in && op->has_backward; k++) {
            uint8_t *in = &life[op->in[k].tensor];
            if (op->in[k].grad != ONV_GRAD_NONE && op->life > *in) *in = op->life;
        }
    }
}

void onv_reach_find(onv_emitter *e)
{
    onv_eager *eager = e->eager;
    uint8_t *life = ONV_EMIT_ARRAY(e, uint8_t, eager->tensors.count);
    if (life == NULL) return;
    for (size_t i = 0; i < eager->outputs.count && eager->loss == ONV_NO_TENSOR; i++)
        life[eager->outputs.at[i]] = ONV_LIFE_BACKWARD;
    look_back(eager, life);
    for (uint32_t i = 0; i < eager->tensors.count; i++) {
        onv_eager_storage *storage = &eager->storages.at[eager->tensors.at[i].storage];
        if (!eager->tensors.at[i].is_leaf) continue;
        storage->gets_grad |= life[i] == ONV_LIFE_BACKWARD;
    }
    for (uint32_t i = 0; i < eager->storages.count; i++) {
        onv_eager_storage *storage = &eager->storages.at[i];
        if (storage->kind != ONV_STORAGE_PARAMETER || !storage->trained || storage->gets_grad)
            continue;
        storage->trained = false;
        onv_say(e, e->model->program != NULL ? ONV_SAID_unreached_of_program : ONV_SAID_unreached,
                storage->label, storage->bytes, NULL);
    }
}
