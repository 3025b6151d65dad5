/* A cross-entropy that the network computes itself, as PyTorch runs it: log_softmax, and nll_loss of that. */
#include <string.h>

#include "lower/lowering.h"

/* One step of a loss that the network itself computes. */
static uint32_t emit_step(onv_lowering *l, const char *name, uint32_t x, onv_grad grad,
                          const onv_shape *shape)
{
    onv_emit_begin(&l->emit, name);
    onv_emit_in(&l->emit, x, grad);
    uint32_t out =
        onv_tensor_new(&l->emit, onv_tensor_at(&l->emit, x).dtype, shape->rank, shape->dims, NULL);
    onv_emit_out(&l->emit, out);
    onv_emit_end(&l->emit);
    return out;
}

/* Labels are smoothed by the negative sum over the classes, 0 where a target is ignored, which has its part in the loss. */
static uint32_t emit_smooth_part(onv_lowering *l, uint32_t log_probs, const onv_shape *rows,
                                 const onv_shape *shape)
{
    uint32_t sum = emit_step(l, "sum", log_probs, ONV_GRAD_PART, rows);
    uint32_t part = emit_step(l, "neg", sum, ONV_GRAD_NEW, rows);
    onv_eager_tensor t = onv_tensor_at(&l->emit, part);
    onv_emit_begin(&l->emit, "masked_fill_");
    l->emit.op.in_place = true;
    onv_emit_in(&l->emit, part, ONV_GRAD_NEW);
    onv_emit_extra(&l->emit, t.elems, 1, "ignored targets");
    part =
        onv_emit_out(&l->emit, onv_tensor_on(&l->emit, t.storage, t.dtype, t.rank, t.dims, NULL));
    onv_emit_end(&l->emit);
    if (shape->rank < rows->rank) part = emit_step(l, "mean", part, ONV_GRAD_NEW, shape);
    return emit_step(l, "mul", part, ONV_GRAD_NEW, shape);
}

/* F.cross_entropy, called by the network. */
void onv_lower_cross_entropy(onv_lowering *l, const onv_node *node)
{
    uint32_t logits = onv_amp_fp32(&l->emit, onv_node_in(l, node, 0));
    uint32_t targets = onv_node_in(l, node, 1), weights = onv_node_in(l, node, 2);
    onv_eager_tensor t = onv_tensor_at(&l->emit, logits);
    onv_shape shape, all = {.rank = t.rank}, rows = {.rank = t.rank - 1};
    if (logits == ONV_NO_TENSOR || t.rank < 2 || !onv_value_shape(l, node->outputs[0], &shape)) {
        onv_lower_by_traits(l, node);
        return;
    }
    for (uint32_t i = 0; i < t.rank; i++) all.dims[i] = t.dims[i];
    for (uint32_t i = 0; i < rows.rank; i++) rows.dims[i] = t.dims[i == 0 ? 0 : i + 1];
    uint32_t log_probs = onv_tensor_new(&l->emit, t.dtype, all.rank, all.dims, NULL);
    onv_emit_begin(&l->emit, "log_softmax");
    onv_emit_in(&l->emit, logits, ONV_GRAD_NEW);
    onv_emit_save(&l->emit, onv_emit_out(&l->emit, log_probs));
    onv_emit_end(&l->emit);
    onv_emit_begin(&l->emit, "nll_loss");
    onv_emit_in(&l->emit, log_probs, ONV_GRAD_NEW);
    onv_emit_in(&l->emit, targets, ONV_GRAD_NONE);
    onv_emit_in(&l->emit, weights, ONV_GRAD_NONE);
    onv_emit_save(&l->emit, log_probs);
    onv_emit_save(&l->emit, targets);
    onv_emit_save(&l->emit, weights);
    onv_emit_extra(&l->emit, 1, sizeof(float), "total weight");
    uint32_t loss =
        onv_emit_out(&l->emit, onv_tensor_new(&l->emit, t.dtype, shape.rank, shape.dims, NULL));
    onv_emit_end(&l->emit);
    if (node->smooths_labels) {
        uint32_t part = emit_smooth_part(l, log_probs, &rows, &shape);
        loss = emit_step(l, "mul", loss, ONV_GRAD_NEW, &shape);
        onv_emit_begin(&l->emit, "add");
        onv_emit_in(&l->emit, loss, ONV_GRAD_ALIAS);
        onv_emit_in(&l->emit, part, ONV_GRAD_ALIAS);
        loss =
            onv_emit_out(&l->emit, onv_tensor_new(&l->emit, t.dtype, shape.rank, shape.dims, NULL));
        onv_emit_end(&l->emit);
    }
    onv_node_set(l, node, 0, loss);
}
