/* Attention: as one operation after the other, which autocast sees as one; or in a kernel of its own,
 * which never writes the scores down. */
#include "base/checked.h"
#include "eager/lower.h"
#include "eager/pytorch.h"

/* --- One after the other ----------------------------------------------------------------------- */

onv_attention_part onv_node_attention(const onv_lowering *l, const onv_node *node)
{
    return (onv_attention_part)l->fusions.attention[node - l->model->nodes.at];
}

uint32_t onv_amp_attention(onv_lowering *l, const onv_node *node, uint32_t k)
{
    uint32_t x = onv_node_in(l, node, k);
    if (onv_node_attention(l, node) == ONV_ATTENTION_NONE || x == ONV_NO_TENSOR) return x;
    onv_node_id from = onv_model_value(l->model, node->inputs[k])->producer;
    bool is_own = onv_is_node(from) && l->fusions.attention[from.index] == ONV_ATTENTION_INSIDE;
    return is_own ? x : onv_amp_fp32(l, onv_amp_low(l, x));
}

uint64_t onv_safe_softmax_bytes(const onv_lowering *l, uint32_t scores)
{
    onv_eager_tensor t = onv_tensor_at(l, scores);
    if (scores == ONV_NO_TENSOR || t.rank == 0 || t.dims[t.rank - 1] <= 0) return 0;
    if (onv_before_pytorch(l->options, ONV_PYTORCH_RELEASE(2, 5))) return 0;
    return t.elems + t.elems / (uint64_t)t.dims[t.rank - 1] + sizeof(float);
}

/* --- A kernel of its own ----------------------------------------------------------------------- */

typedef struct rows {
    uint64_t groups; /* batch times heads */
    uint64_t count;  /* in each of them */
    uint64_t head;   /* values of a row */
} rows;

static rows rows_of(const onv_eager_tensor *query)
{
    rows r = {.groups = 1,
              .count = (uint64_t)query->dims[query->rank - 2],
              .head = (uint64_t)query->dims[query->rank - 1]};
    for (uint32_t i = 0; i + 2 < query->rank; i++) r.groups *= (uint64_t)query->dims[i];
    return r;
}

/* Floats, `each` for every row, rows of a group rounded up to `step`. What does not fit is caught
 * where it is counted. */
static uint64_t float_bytes(rows r, uint64_t step, uint64_t each)
{
    uint64_t bytes, count = (r.count + step - 1) / step * step;
    bool fits = onv_u64_mul(r.groups, count, &bytes) && onv_u64_mul(bytes, each, &bytes) &&
                onv_u64_mul(bytes, sizeof(float), &bytes);
    return fits ? bytes : UINT64_MAX;
}

/* FlashAttention lays its result out like the query, the other one with the heads before the values. */
static uint32_t emit_result(onv_lowering *l, const onv_eager_tensor *query, const onv_shape *shape,
                            bool flash)
{
    int64_t dims[4], strides[ONV_MAX_RANK];
    bool alike = query->rank == shape->rank;
    for (uint32_t i = 0; alike && i < shape->rank; i++) alike = query->dims[i] == shape->dims[i];
    if (flash && alike) {
        onv_strides_like(query, strides);
        return onv_emit_out(l, onv_tensor_new(l, query->dtype, shape->rank, shape->dims, strides));
    }
    if (shape->rank != 4)
        return onv_emit_out(l, onv_tensor_new(l, query->dtype, shape->rank, shape->dims, NULL));
    static const uint32_t order[] = {0, 2, 1, 3};
    for (uint32_t i = 0; i < 4; i++) dims[i] = shape->dims[order[i]];
    uint32_t out = onv_tensor_new(l, query->dtype, 4, dims, NULL);
    if (out == ONV_NO_TENSOR) return out;
    onv_eager_tensor t = onv_tensor_at(l, out);
    for (uint32_t i = 0; i < 4; i++) strides[i] = t.strides[order[i]];
    return onv_emit_out(l, onv_tensor_on(l, t.storage, t.dtype, 4, shape->dims, strides));
}

/* What is kept: the operands, the result, the logarithms of the rows' sums, a state of the random
 * numbers. Backward has sums in float32 of its own: FlashAttention for the gradient of the query, the
 * other one where that has 16 bits. */
void onv_lower_attention(onv_lowering *l, const onv_fusion *f)
{
    uint32_t query = onv_amp_low(l, onv_value_tensor(l, f->x));
    uint32_t key = onv_amp_low(l, onv_value_tensor(l, f->key));
    uint32_t value = onv_amp_low(l, onv_value_tensor(l, f->value));
    uint32_t mask = onv_amp_low(l, onv_value_tensor(l, f->mask));
    onv_shape shape;
    if (!onv_value_shape(l, f->out, &shape) || query == ONV_NO_TENSOR) return;
    onv_eager_tensor q = onv_tensor_at(l, query);
    rows r = rows_of(&q);
    bool low = onv_dtype_bits((onv_dtype)q.dtype) == 16;
    bool flash = l->options->attention != ONV_ATTENTION_EFFICIENT && low && mask == ONV_NO_TENSOR &&
                 r.head <= 256;
    onv_emit_begin(l, flash ? "flash_attention" : "efficient_attention");
    onv_emit_in(l, query, ONV_GRAD_NEW);
    onv_emit_in(l, key, ONV_GRAD_NEW);
    onv_emit_in(l, value, ONV_GRAD_NEW);
    onv_emit_in(l, mask, ONV_GRAD_NEW);
    onv_emit_save(l, query);
    onv_emit_save(l, key);
    onv_emit_save(l, value);
    onv_emit_save(l, mask);
    uint32_t out = emit_result(l, &q, &shape, flash);
    onv_emit_save(l, out);
    onv_emit_extra(l, float_bytes(r, flash ? 1 : 32, 1), 1, "logsumexp");
    onv_emit_extra(l, flash ? 2 : 1, sizeof(uint64_t), "seed");
    onv_emit_extra(l, 1, sizeof(uint64_t), "offset");
    uint64_t sums = flash ? float_bytes(r, 128, (r.head + 31) / 32 * 32 + 1)
                          : float_bytes(r, 1, low ? r.head + 1 : 1);
    onv_emit_temps(l, 0, sums);
    onv_emit_end(l);
    onv_value_set(l, f->out, out);
}
