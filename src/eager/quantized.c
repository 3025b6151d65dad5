#include "eager/quantized.h"

#include <string.h>

#include "base/fail.h"

/* LLM.int8() with its threshold. What looks for outliers is gone before the product in int32 is there, and what that is
 * in float16, where the activations are of another type. A backward makes the matrix in the type of the activations. */
onv_weight_input onv_weight_input_of(const onv_weight_format *format, const onv_eager_op *op,
                                     const onv_eager *eager)
{
    const onv_eager_tensor *in = &eager->tensors.at[op->in[ONV_PRODUCT_INPUT].tensor];
    if (format->block > 0) return (onv_weight_input){0};
    uint64_t width =
        in->rank > 0 && in->dims[in->rank - 1] > 0 ? (uint64_t)in->dims[in->rank - 1] : 1;
    return (onv_weight_input){.half = in->dtype == ONV_FLOAT16 ? 0 : 2 * in->elems,
                              .scales = in->elems / width * sizeof(float),
                              .bytes = in->elems,
                              .magnitudes = 2 * in->elems,
                              .mask = in->elems};
}

/* The fallback of bitsandbytes' 4-bit product multiplies the matrix in the type of the activations: it is taken above 1536
 * rows, and for most shapes below. The scales in float32 stand twice then, as they come and with the offset. A backward
 * makes the gradient after they are gone. */
uint32_t onv_weight_made(const onv_weight_format *format, const onv_eager_op *op,
                         const onv_eager *eager, uint64_t elems, bool backward,
                         uint64_t bytes[ONV_MAX_WEIGHT_MADE])
{
    const onv_eager_tensor *out = &eager->tensors.at[op->out[0]];
    uint64_t elem_bytes = out->elems > 0 ? out->bytes / out->elems : sizeof(float);
    uint32_t n = 0;
    if (format->block == 0 && !backward) {
        bool is_half = eager->tensors.at[op->in[ONV_PRODUCT_INPUT].tensor].dtype == ONV_FLOAT16;
        bytes[n++] = 4 * out->elems;
        if (!is_half) bytes[n++] = 2 * out->elems;
        return n;
    }
    if (format->second_block > 0 && !backward)
        for (uint32_t k = 0; k < 2; k++)
            bytes[n++] = sizeof(float) * onv_weight_scales(format, elems, 0);
    bytes[n++] = elems * elem_bytes;
    return n;
}

uint64_t onv_weight_temps(const onv_weight_format *format, const onv_eager_op *op,
                          const onv_eager *eager, uint64_t elems, bool backward)
{
    uint64_t made[ONV_MAX_WEIGHT_MADE], product = 0, result = eager->tensors.at[op->out[0]].bytes;
    uint32_t n = onv_weight_made(format, op, eager, elems, backward, made);
    for (uint32_t k = 0; k < n; k++) product += made[k];
    if (format->block > 0 || backward) return product;
    onv_weight_input in = onv_weight_input_of(format, op, eager);
    uint64_t outliers = in.half + in.magnitudes + in.mask;
    uint64_t before = outliers > result ? outliers - result : 0;
    return in.bytes + in.scales + (before > product ? before : product);
}

/* --- Which ones -------------------------------------------------------------------------------- */

static bool is_product(const onv_eager_op *op)
{
    return op->aten == ONV_ATEN_mm || op->aten == ONV_ATEN_addmm || op->aten == ONV_ATEN_linear;
}

/* The head: the last product, if the loss has not taken it in. */
static uint32_t last_product(const onv_eager *eager)
{
    for (uint32_t i = eager->first_loss_op; i < eager->ops.count; i++)
        for (uint32_t k = 0; k < eager->ops.at[i].n_in; k++) {
            uint32_t storage = eager->tensors.at[eager->ops.at[i].in[k].tensor].storage;
            if (eager->storages.at[storage].kind == ONV_STORAGE_PARAMETER) return UINT32_MAX;
        }
    for (uint32_t i = eager->first_loss_op; i-- > 0;)
        if (is_product(&eager->ops.at[i])) return i;
    return UINT32_MAX;
}

onv_status onv_weight_find(const onv_eager *eager, onv_arena *arena, uint64_t **rows,
                           onv_error *err)
{
    bool *other = ONV_ARENA_ARRAY(arena, bool, eager->storages.count);
    *rows = ONV_ARENA_ARRAY(arena, uint64_t, eager->storages.count);
    if (*rows == NULL || other == NULL) return onv_fail_memory(err);
    uint32_t head = last_product(eager);
    for (uint32_t i = 0; i < eager->ops.count; i++) {
        const onv_eager_op *op = &eager->ops.at[i];
        for (uint32_t k = 0; k < op->n_in; k++) {
            uint32_t storage = eager->tensors.at[op->in[k].tensor].storage;
            const onv_eager_storage *at = &eager->storages.at[storage];
            if (at->kind != ONV_STORAGE_PARAMETER || at->trained) continue;
            const onv_eager_tensor *out = op->n_out == 1 ? &eager->tensors.at[op->out[0]] : NULL;
            if (out != NULL && out->storage == storage) continue; /* a view of it */
            if (i != head && out != NULL && is_product(op) && k == ONV_PRODUCT_WEIGHT &&
                at->rank == 2 && out->rank > 0)
                (*rows)[storage] = (uint64_t)out->dims[out->rank - 1];
            else
                other[storage] = true; /* biases, too, are none */
        }
    }
    for (uint32_t i = 0; i < eager->storages.count; i++)
        if (other[i]) (*rows)[i] = 0;
    return ONV_OK;
}
