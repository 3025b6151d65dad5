/* What torch.autocast casts. Parameters are cast once in a region; the casts live until it ends. */
#include "emit/emit.h"

uint32_t onv_amp_low(onv_emitter *e, uint32_t x)
{
    if (e->amp == ONV_UNDEFINED || !onv_tensor_is_float(e, x)) return x;
    onv_eager_tensor t = onv_tensor_at(e, x);
    /* What a branch casts is not there for others. */
    bool of_parameter = e->eager->storages.at[t.storage].kind == ONV_STORAGE_PARAMETER &&
                        e->region == ONV_NO_REGION;
    if (of_parameter && e->low_precision.at[t.storage] != ONV_NO_TENSOR) {
        uint32_t cached = e->low_precision.at[t.storage];
        return onv_tensor_has_dims(e, cached, t.rank, t.dims)
                   ? cached
                   : onv_emit_reshape(e, cached, t.rank, t.dims);
    }
    uint32_t low = onv_emit_cast(e, x, (uint8_t)e->amp);
    if (!of_parameter || e->status != ONV_OK) return low;
    if (!onv_vec_push(&e->cast_parameters, t.storage)) onv_emit_fail_memory(e);
    e->low_precision.at[t.storage] = low;
    onv_storage_of(e, low)->is_cached = true;
    return low;
}

void onv_amp_end(onv_emitter *e)
{
    uint32_t n_ops = (uint32_t)e->eager->ops.count;
    for (size_t i = 0; i < e->cast_parameters.count; i++) {
        uint32_t *low = &e->low_precision.at[e->cast_parameters.at[i]];
        onv_eager_storage *s = onv_storage_of(e, *low);
        s->is_cached = false;
        if (n_ops > 0 && s->held_until < n_ops - 1) s->held_until = n_ops - 1;
        *low = ONV_NO_TENSOR;
    }
    e->cast_parameters.count = 0;
}

void onv_amp_low_all(onv_emitter *e, uint32_t *tensors, size_t count)
{
    while (count-- > 0) tensors[count] = onv_amp_low(e, tensors[count]);
}

uint32_t onv_amp_fp32(onv_emitter *e, uint32_t x)
{
    if (e->amp == ONV_UNDEFINED || !onv_tensor_is_float(e, x)) return x;
    return onv_emit_cast(e, x, ONV_FLOAT);
}
