/* Layers: normalisation, dropout, softmax. */
#include "emit/layers.h"

#include <string.h>

#include "base/checked.h"

/* A normalisation keeps its input, its weight, and for each of `groups` the deviation and, where it
 * centres, the mean. */
uint32_t onv_emit_norm(onv_emitter *e, const char *name, uint32_t x, uint32_t w, uint32_t b,
                       uint64_t groups, bool centres, uint32_t out)
{
    onv_eager_tensor t = onv_tensor_at(e, x);
    onv_emit_begin(e, name);
    onv_emit_in_saved(e, x, ONV_GRAD_NEW);
    onv_emit_in_saved(e, w, ONV_GRAD_NEW);
    onv_emit_in(e, b, ONV_GRAD_NEW);
    if (centres) onv_emit_extra(e, groups, sizeof(float), "mean");
    onv_emit_extra(e, groups, sizeof(float), "1/std");
    bool copies = x != ONV_NO_TENSOR && !onv_tensor_is_contiguous(&t);
    if (copies && e->op.aten != ONV_ATEN_batch_norm) onv_emit_temps(e, t.bytes, t.bytes);
    e->op.copies_first = true;
    onv_emit_out(e, out);
    onv_emit_end(e);
    return out;
}

uint32_t onv_emit_group_norm(onv_emitter *e, uint32_t x, uint32_t w, uint32_t b, int64_t groups)
{
    x = onv_amp_fp32(e, x);
    onv_eager_tensor t = onv_tensor_at(e, x);
    if (x == ONV_NO_TENSOR || t.rank == 0) return ONV_NO_TENSOR;
    bool last = onv_tensor_is_channels_last(&t); /* a layout that the kernel knows */
    uint32_t out = onv_tensor_new(e, t.dtype, t.rank, t.dims, last ? t.strides : NULL);
    uint64_t all = onv_u64_times((uint64_t)groups, (uint64_t)t.dims[0]); /* UINT64_MAX: refused */
    onv_emit_norm(e, "group_norm", x, w, b, all, true, out);
    if (e->status != ONV_OK || t.rank < 2) return out;
    /* Factors of each channel: two forward; two sums and a factor backward, and two for each group. */
    uint64_t channels = (uint64_t)(t.dims[0] * t.dims[1]) * sizeof(float);
    onv_eager_op *op = &e->eager->ops.at[e->eager->ops.count - 1];
    op->copies_first = false; /* factors, not copies */
    op->forward_temp_bytes = 2 * channels;
    op->backward_temp_bytes = 3 * channels + 2 * all * sizeof(float);
    /* The kernel works on a copy of another layout, which is not what autograd keeps. */
    if (last || onv_tensor_is_contiguous(&t)) return out;
    op->forward_temp_bytes = onv_u64_plus(op->forward_temp_bytes, t.bytes);
    op->backward_temp_bytes = onv_u64_plus(op->backward_temp_bytes, t.bytes);
    return out;
}

/* Centred, or by the root of the mean of squares alone. */
uint32_t onv_emit_layer_norm(onv_emitter *e, uint32_t x, uint32_t w, uint32_t b, int64_t axis,
                             bool centres)
{
    x = onv_amp_fp32(e, x);
    onv_eager_tensor t = onv_tensor_at(e, x);
    if (x == ONV_NO_TENSOR) return x;
    if (axis < 0) axis += t.rank;
    uint64_t rows = 1;
    for (int64_t i = 0; i < axis && i < (int64_t)t.rank; i++) rows *= (uint64_t)t.dims[i];
    uint32_t out = onv_tensor_new(e, t.dtype, t.rank, t.dims, NULL);
    const char *name = centres ? "layer_norm" : "rms_norm";
    return onv_emit_norm(e, name, x, w, b, rows, centres, out);
}

/* CUDA keeps one byte an element; the CPU keeps the factors that it multiplied with. */
uint32_t onv_emit_dropout(onv_emitter *e, uint32_t x)
{
    onv_eager_tensor t = onv_tensor_at(e, x);
    if (x == ONV_NO_TENSOR) return x;
    int64_t strides[ONV_MAX_RANK];
    onv_strides_like(&t, strides);
    uint32_t out = onv_tensor_new(e, t.dtype, t.rank, t.dims, strides);
    onv_emit_begin(e, "dropout");
    onv_emit_in(e, x, ONV_GRAD_NEW);
    uint64_t mask = e->options->on_cpu ? t.bytes : t.elems;
    onv_emit_extra(e, mask, 1, "mask");
    if (!onv_tensor_needs_grad(e, x))
        onv_emit_temps(e, mask, 0); /* made, though nothing keeps it */
    onv_emit_extras_come_first(e);
    onv_emit_out(e, out);
    onv_emit_end(e);
    return out;
}

/* The kernel writes a contiguous result, of a contiguous copy of its input. It casts float16 itself, and nothing else (SoftMax.cpp). */
uint32_t onv_emit_softmax(onv_emitter *e, onv_aten_id op, uint32_t x, uint8_t dtype)
{
    if (x == ONV_NO_TENSOR) return x;
    if (e->amp != ONV_UNDEFINED) dtype = ONV_FLOAT;
    if (onv_tensor_at(e, x).dtype != ONV_FLOAT16) x = onv_emit_cast(e, x, dtype);
    onv_eager_tensor t = onv_tensor_at(e, x);
    uint32_t out = onv_tensor_new(e, dtype, t.rank, t.dims, NULL);
    onv_emit_begin_op(e, op);
    onv_emit_in(e, x, ONV_GRAD_NEW);
    onv_emit_save(e, out);
    onv_emit_out(e, out);
    onv_emit_temps(e, onv_tensor_is_contiguous(&t) ? 0 : t.bytes, 0);
    onv_emit_end(e);
    return out;
}
