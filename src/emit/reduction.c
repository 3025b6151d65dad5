/* What reductions take beside their results, in forward and for the gradients of operands that were repeated. */
#include "kernels/reduction.h"

#include "emit/emit.h"

static bool has_channels_last(const onv_emitter *e, const onv_eager_tensor *t)
{
    return t->rank == 4 && (e->options->cuda.channels_last || onv_tensor_is_channels_last(t));
}

/* Whether x is y's channels, of each image or of all, whose pixels were added up or repeated. */
static bool is_of_channels(const onv_eager_tensor *x, const onv_eager_tensor *y)
{
    for (uint32_t i = 0; i < y->rank; i++) {
        uint32_t lead = y->rank - x->rank;
        int64_t dim = i < lead ? 1 : x->dims[i - lead];
        if (dim != y->dims[i] && (i == 1 || dim != 1)) return false;
    }
    return true;
}

/* Whether x is y's last dims, which its leading ones repeat. */
static bool is_repeated(const onv_eager_tensor *x, const onv_eager_tensor *y)
{
    uint32_t lead = 0;
    while (lead < x->rank && x->dims[lead] == 1) lead++;
    if (x->rank - lead > y->rank) return false;
    for (uint32_t i = lead; i < x->rank; i++)
        if (x->dims[i] != y->dims[y->rank - x->rank + i]) return false;
    return true;
}

static onv_eager_workspace sum_workspace(const onv_emitter *e, const onv_eager_tensor *x,
                                         const onv_eager_tensor *y, uint64_t adjacent,
                                         uint32_t part_bytes)
{
    uint32_t elem = (uint32_t)(y->bytes / y->elems);
    onv_column_sum sum = onv_column_sum_of(y->elems / x->elems, x->elems, adjacent, elem,
                                           part_bytes, &e->options->cuda);
    return (onv_eager_workspace){
        .library = "sum", .bytes = sum.part_bytes, .beside_bytes = sum.counter_bytes};
}

void onv_emit_sum_workspace(onv_emitter *e, uint32_t in, uint32_t out)
{
    if (in == ONV_NO_TENSOR || out == ONV_NO_TENSOR) return;
    onv_eager_tensor x = onv_tensor_at(e, in), y = onv_tensor_at(e, out);
    const onv_eager_arg *last = e->in.count > 0 ? &e->in.at[e->in.count - 1] : NULL;
    if (last == NULL || last->tensor != in || last->grad != ONV_GRAD_NEW) return;
    if (x.elems == 0 || y.elems <= x.elems) return;
    if (x.rank <= y.rank && has_channels_last(e, &y) && is_of_channels(&x, &y))
        onv_emit_grad_workspace(e, in,
                                sum_workspace(e, &x, &y, (uint64_t)y.dims[1], sizeof(float)));
    else if (is_repeated(&x, &y))
        onv_emit_grad_workspace(e, in, sum_workspace(e, &x, &y, x.elems, sizeof(float)));
}

void onv_emit_bias_workspace(onv_emitter *e, uint32_t bias, uint32_t out)
{
    if (bias == ONV_NO_TENSOR || out == ONV_NO_TENSOR) return;
    onv_eager_tensor x = onv_tensor_at(e, bias), y = onv_tensor_at(e, out);
    if (x.elems == 0 || y.elems <= x.elems || !has_channels_last(e, &y)) return;
    onv_emit_grad_workspace(e, bias, sum_workspace(e, &x, &y, x.elems, sizeof(float)));
}

/* Without names: those of `y` that `x` lacks, or has as 1. */
static uint32_t missing_dims(const onv_eager_tensor *x, const onv_eager_tensor *y)
{
    uint32_t missing = 0, at = 0;
    for (uint32_t i = 0; i < y->rank; i++) {
        bool stays = at < x->rank && x->dims[at] == y->dims[i];
        if (!stays) missing |= UINT32_C(1) << i;
        at += stays || x->rank == y->rank;
    }
    return missing;
}

/* How many results lie side by side in `t`: the product of the innermost dims that stay, in memory. 1: what is innermost is reduced. */
static uint64_t adjacent_of(const onv_emitter *e, const onv_eager_tensor *t, uint32_t reduced)
{
    bool turned = has_channels_last(e, t);
    int64_t adjacent = 1;
    for (uint32_t i = 0; i < t->rank;) {
        int64_t stride = !turned  ? t->strides[i]
                         : i == 1 ? 1
                         : i == 3 ? t->dims[1]
                         : i == 2 ? t->dims[1] * t->dims[3]
                                  : t->dims[1] * t->dims[2] * t->dims[3];
        bool follows = t->dims[i] > 1 && stride == adjacent && (reduced >> i & 1) == 0;
        if (follows) adjacent *= t->dims[i];
        i = follows ? 0 : i + 1;
    }
    return (uint64_t)adjacent;
}

void onv_emit_reduction(onv_emitter *e, uint32_t in, uint32_t out, uint32_t reduced,
                        uint32_t part_bytes)
{
    if (in == ONV_NO_TENSOR || out == ONV_NO_TENSOR) return;
    onv_eager_tensor x = onv_tensor_at(e, out), y = onv_tensor_at(e, in);
    if (x.elems == 0 || y.elems <= x.elems) return;
    uint64_t adjacent = adjacent_of(e, &y, reduced != 0 ? reduced : missing_dims(&x, &y));
    if (adjacent == 1) return;
    if (part_bytes == ONV_PART_LIKE_INPUT) part_bytes = (uint32_t)(y.bytes / y.elems);
    onv_emit_workspace(e, sum_workspace(e, &x, &y, adjacent, part_bytes));
}
