/* What torch.autocast casts. Leaves that require a gradient, and no views of them, are cast once in a region; the casts live
 * until it ends (`cached_cast` in aten/src/ATen/autocast_mode.cpp). */
#include "emit/emit.h"

static bool is_cached(const onv_emitter *e, const onv_eager_tensor *t)
{
    const onv_eager_storage *of = &e->eager->storages.at[t->storage];
    if (of->kind != ONV_STORAGE_PARAMETER || e->region != ONV_NO_REGION)
        return false; /* a branch's cast is its own */
    if (e->views == ONV_VIEWS_OF_GRAPH && e->has_no_grad)
        return false; /* the low end: frozen, too */
    if (t->is_leaf || e->options->inference) return true;
    bool is_swapped =
        t->rank == 2 && of->rank == 2 && t->dims[0] == of->dims[1] && t->dims[1] == of->dims[0];
    return of->trained &&
           (e->views == ONV_VIEWS_OF_GRAPH || (e->views == ONV_VIEWS_OF_KERNELS && is_swapped));
}

uint32_t onv_amp_low(onv_emitter *e, uint32_t x)
{
    if (e->amp == ONV_UNDEFINED || !onv_tensor_is_float(e, x)) return x;
    onv_eager_tensor t = onv_tensor_at(e, x);
    bool is_kept = is_cached(e, &t);
    if (is_kept && e->low_precision.at[t.storage] != ONV_NO_TENSOR) {
        uint32_t cached = e->low_precision.at[t.storage];
        return onv_tensor_has_dims(e, cached, t.rank, t.dims)
                   ? cached
                   : onv_emit_reshape(e, cached, t.rank, t.dims);
    }
    bool before = e->has_no_grad;
    e->has_no_grad &= !is_kept; /* later reads of a cast that is kept have gradients */
    uint32_t low = onv_emit_cast(e, x, (uint8_t)e->amp);
    e->has_no_grad = before;
    if (!is_kept || e->status != ONV_OK) return low;
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
