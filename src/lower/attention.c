/* Attention: as one operation after the other, which autocast sees as one; or in a kernel of its own,
 * which never writes the scores down. */
#include <string.h>

#include "base/checked.h"
#include "eager/pytorch.h"
#include "lower/lowering.h"

/* --- One after the other ----------------------------------------------------------------------- */

onv_attention_part onv_node_attention(const onv_lowering *l, const onv_node *node)
{
    return (onv_attention_part)l->fusions.attention[node - l->model->nodes.at];
}

static bool is_low(const onv_lowering *l, uint32_t x)
{
    return onv_tensor_is_float(l, x) && onv_dtype_bits((onv_dtype)onv_tensor_at(l, x).dtype) == 16;
}

/* From 2.5 on unless allow_fp16_bf16_reduction_math_sdp is set. */
static bool widens(const onv_lowering *l, uint32_t x)
{
    if (l->options->amp != ONV_UNDEFINED) return true;
    return is_low(l, x) && !onv_before_pytorch(l->options, ONV_PYTORCH_RELEASE(2, 5));
}

uint32_t onv_amp_attention(onv_lowering *l, const onv_node *node, uint32_t k)
{
    uint32_t x = onv_node_in(l, node, k);
    if (onv_node_attention(l, node) == ONV_ATTENTION_NONE || x == ONV_NO_TENSOR) return x;
    onv_node_id from = onv_model_value(l->model, node->inputs[k])->producer;
    bool is_own = onv_is_node(from) && l->fusions.attention[from.index] == ONV_ATTENTION_INSIDE;
    uint32_t done = l->values[node->inputs[k].index].widened;
    if (done > 0 && k == 1 && onv_node_attention(l, node) == ONV_ATTENTION_LAST) return done - 1;
    if (is_own || !onv_tensor_is_float(l, x) || !widens(l, x)) return x;
    return onv_emit_cast(l, onv_amp_low(l, x), ONV_FLOAT);
}

void onv_widen_attended(onv_lowering *l, const onv_node *node)
{
    onv_value_id value = l->fusions.attended[node - l->model->nodes.at];
    if (!onv_is_value(value) || l->options->as_exported) return;
    uint32_t x = onv_value_tensor(l, value);
    if (x == ONV_NO_TENSOR || !onv_tensor_is_float(l, x) || !widens(l, x)) return;
    uint32_t wide = onv_emit_cast(l, onv_amp_low(l, x), ONV_FLOAT);
    if (l->status == ONV_OK && wide != x) l->values[value.index].widened = wide + 1;
}

/* The result is in low precision again, and so are its probabilities: they are a result too, which
 * nobody takes. */
uint32_t onv_emit_attention_result(onv_lowering *l, uint8_t dtype, uint32_t probabilities,
                                   uint32_t out)
{
    if (l->options->amp != ONV_UNDEFINED) dtype = (uint8_t)l->options->amp;
    if (out == ONV_NO_TENSOR || onv_tensor_at(l, out).dtype == dtype) return out;
    uint64_t bytes = onv_tensor_at(l, probabilities).bytes / 2;
    uint32_t low = onv_emit_cast(l, out, dtype);
    if (l->status == ONV_OK) l->eager->ops.at[l->eager->ops.count - 1].forward_temp_bytes = bytes;
    return low;
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

static uint64_t round_up(uint64_t n, uint64_t step)
{
    return (n + step - 1) / step * step;
}

/* Floats, `each` for every row, rows of a group rounded up to `step`. What does not fit is caught
 * where it is counted. */
static uint64_t float_bytes(rows r, uint64_t step, uint64_t each)
{
    uint64_t bytes, count = round_up(r.count, step);
    bool fits = onv_u64_mul(r.groups, count, &bytes) && onv_u64_mul(bytes, each, &bytes) &&
                onv_u64_mul(bytes, sizeof(float), &bytes);
    return fits ? bytes : UINT64_MAX;
}

double onv_dropout_of_attention(const onv_lowering *l, const onv_node *node)
{
    double told = l->options->attention_dropout;
    return told >= 0 ? told : node->tells_dropout ? (double)node->dropout : told;
}

typedef enum kernel { FLASH, CUDNN, EFFICIENT } kernel;

/* Devices before Hopper, longer heads and dropout are not for cuDNN, nor are single rows; backward has
 * heads of up to 128 values and of 256. Releases before 2.15 were not looked at, and count without it. */
static bool takes_cudnn(const onv_lowering *l, rows r, bool learns_mask)
{
    const onv_lower_options *options = l->options;
    if (options->attention != ONV_ATTENTION_AUTO || options->cuda.compute_capability < 90 ||
        onv_before_pytorch(options, ONV_PYTORCH_RELEASE(2, 15)))
        return false;
    if (options->inference) return r.head <= 256 && r.count > 1;
    double dropout =
        onv_is_node(l->node) ? onv_dropout_of_attention(l, onv_model_node(l->model, l->node)) : 0;
    return dropout <= 0 && !learns_mask && r.count > 1 && (r.head <= 128 || r.head == 256);
}

/* What scaled_dot_product_attention's dispatcher takes, or what the user asked for. */
static kernel choose_kernel(const onv_lowering *l, const onv_eager_tensor *query, uint32_t mask)
{
    rows r = rows_of(query);
    bool low = onv_dtype_bits((onv_dtype)query->dtype) == 16;
    if (!low || l->options->attention == ONV_ATTENTION_EFFICIENT) return EFFICIENT;
    bool learns_mask = mask != ONV_NO_TENSOR && onv_tensor_needs_grad(l, mask);
    if (takes_cudnn(l, r, learns_mask)) return CUDNN;
    return mask == ONV_NO_TENSOR && r.head <= 256 ? FLASH : EFFICIENT;
}

/* Sums of backward in float32: of the gradient of the query, and one for each row. The memory-efficient
 * kernel has tiles of that gradient in 16 bits, and in float32 where it divides the keys among blocks:
 * where there are few groups. */
static uint64_t backward_bytes(const onv_lowering *l, kernel k, rows r, uint64_t n_keys, bool low)
{
    enum { MOST_BLOCKS = 200, TILE_LOCK = 16, CUDNN_BYTES = 256 };
    uint64_t sums = float_bytes(r, 1, 1), bytes;
    if (k == FLASH) return float_bytes(r, 128, round_up(r.head, 32) + 1);
    if (k == CUDNN) {
        bool fits = onv_u64_add(float_bytes(r, 1, r.head + 1), CUDNN_BYTES, &bytes);
        return fits ? bytes : UINT64_MAX;
    }
    uint32_t device = l->options->cuda.compute_capability;
    uint64_t block = r.head <= 64 || (!low && r.head <= 128) ? 64 : 128;
    uint64_t splits = r.groups > 0 ? MOST_BLOCKS / r.groups : 0;
    if (!low && (splits <= 1 || n_keys <= 64)) return sums;
    uint64_t width = round_up(r.head, r.head <= 64 || r.head > 128 ? 64 : 128);
    uint64_t tiles = round_up(r.count, block) / block * (r.head <= 128 ? 1 : width / 64), locks;
    bool fits = onv_u64_mul(r.groups, tiles, &locks) && onv_u64_mul(locks, TILE_LOCK, &locks) &&
                onv_u64_add(float_bytes(r, block, width), sums, &bytes) &&
                onv_u64_add(bytes, locks, &bytes);
    /* Heads that no block holds whole: tiles of the gradients of keys and values, too. */
    rows keys = {.groups = r.groups, .count = n_keys};
    if (fits && low && r.head > (device == 86 || device == 89 ? 96 : 128))
        fits = onv_u64_add(bytes, float_bytes(keys, 128, 2 * round_up(r.head, 128)), &bytes);
    return fits ? bytes : UINT64_MAX;
}

/* FlashAttention and cuDNN lay their result out like the query, the third kernel with the heads before the values. */
static uint32_t emit_result(onv_lowering *l, const onv_eager_tensor *query, const onv_shape *shape,
                            bool as_query)
{
    int64_t dims[4], strides[ONV_MAX_RANK];
    bool alike = query->rank == shape->rank;
    for (uint32_t i = 0; alike && i < shape->rank; i++) alike = query->dims[i] == shape->dims[i];
    if (as_query && alike) {
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
 * numbers. */
uint32_t onv_emit_attention(onv_lowering *l, uint32_t query, uint32_t key, uint32_t value,
                            uint32_t mask, const onv_shape *shape)
{
    static const char *const names[] = {"flash_attention", "cudnn_attention",
                                        "efficient_attention"};
    onv_eager_tensor q = onv_tensor_at(l, query);
    rows r = rows_of(&q);
    bool low = onv_dtype_bits((onv_dtype)q.dtype) == 16;
    kernel chosen = choose_kernel(l, &q, mask);
    onv_emit_begin(l, names[chosen]);
    onv_emit_in(l, query, ONV_GRAD_NEW);
    onv_emit_in(l, key, ONV_GRAD_NEW);
    onv_emit_in(l, value, ONV_GRAD_NEW);
    onv_emit_in(l, mask, ONV_GRAD_NEW);
    onv_emit_save(l, query);
    onv_emit_save(l, key);
    onv_emit_save(l, value);
    onv_emit_save(l, mask);
    uint32_t out = emit_result(l, &q, shape, chosen != EFFICIENT);
    onv_emit_save(l, out);
    onv_emit_extra(l, float_bytes(r, chosen == EFFICIENT ? 32 : 1, 1), 1, "logsumexp");
    onv_emit_extra(l, chosen == FLASH ? 2 : 1, sizeof(uint64_t), "seed");
    onv_emit_extra(l, 1, sizeof(uint64_t), "offset");
    onv_eager_tensor v = onv_tensor_at(l, value);
    uint64_t n_keys = v.rank >= 2 ? (uint64_t)v.dims[v.rank - 2] : 0;
    onv_emit_temps(l, 0, backward_bytes(l, chosen, r, n_keys, low));
    onv_emit_end(l);
    return out;
}

void onv_lower_attention(onv_lowering *l, const onv_fusion *f)
{
    uint32_t query = onv_amp_low(l, onv_value_tensor(l, f->x));
    uint32_t key = onv_amp_low(l, onv_value_tensor(l, f->key));
    uint32_t value = onv_amp_low(l, onv_value_tensor(l, f->value));
    uint32_t mask = onv_amp_low(l, onv_value_tensor(l, f->mask));
    onv_shape shape;
    if (!onv_value_shape(l, f->out, &shape) || query == ONV_NO_TENSOR) return;
    onv_value_set(l, f->out, onv_emit_attention(l, query, key, value, mask, &shape));
}

/* Kernels read the values of a head one after the other. A key may stand for what it is transposed: two axes may be it. */
static bool has_rows(const onv_lowering *l, onv_value_id id, uint32_t axes)
{
    if (!l->values[id.index].is_known || l->values[id.index].tensor == ONV_NO_TENSOR) return true;
    onv_eager_tensor t = onv_tensor_at(l, l->values[id.index].tensor);
    for (uint32_t i = 1; i <= axes && i <= t.rank; i++)
        if (t.dims[t.rank - i] == 1 || t.strides[t.rank - i] == 1) return true;
    return t.rank == 0;
}

/* A softmax whose rows may be masked whole stays one operation. */
static void keep_softmax(onv_lowering *l, onv_fusion *f, const onv_node_id *nodes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const onv_node *node = onv_model_node(l->model, nodes[i]);
        if (strcmp(node->op_type, "IsNaN") != 0) continue;
        onv_node_id softmax = onv_model_value(l->model, node->inputs[0])->producer;
        onv_node_id where = l->fusions.user[node->outputs[0].index];
        uint32_t own = (uint32_t)(f - l->fusions.at.at) + 1;
        l->fusions.of_node[nodes[i].index] = l->fusions.of_node[softmax.index] = own;
        l->fusions.of_node[where.index] = own;
        *f = (onv_fusion){.kind = ONV_FUSION_SOFTMAX,
                          .last = where,
                          .x = onv_model_node(l->model, softmax)->inputs[0],
                          .weight = ONV_NO_VALUE,
                          .bias = ONV_NO_VALUE,
                          .key = ONV_NO_VALUE,
                          .value = ONV_NO_VALUE,
                          .mask = ONV_NO_VALUE,
                          .state = ONV_NO_VALUE,
                          .out = onv_model_node(l->model, where)->outputs[0]};
        return;
    }
}

uint32_t onv_attention_apart(onv_lowering *l, uint32_t fusion, onv_node_id *nodes)
{
    onv_fusion *f = &l->fusions.at.at[fusion - 1];
    uint32_t count = 0, last = f->last.index;
    if (f->kind != ONV_FUSION_ATTENTION || l->options->attention != ONV_ATTENTION_AUTO ||
        (has_rows(l, f->x, 1) && has_rows(l, f->key, 2) && has_rows(l, f->value, 1)))
        return 0;
    for (uint32_t i = f->first.index; i <= last && count < ONV_MAX_ATTENTION; i++) {
        if (l->fusions.of_node[i] != fusion) continue;
        l->fusions.of_node[i] = 0;
        nodes[count++] = (onv_node_id){i};
    }
    l->fused_macs[fusion - 1] = 0;
    keep_softmax(l, f, nodes, count);
    return count;
}

/* nn.TransformerEncoderLayer looks for one of two kernels: otherwise it computes in another way, which is
 * not modelled. */
bool onv_takes_fast_path(const onv_lowering *l)
{
    const onv_lower_options *options = l->options;
    return options->inference && !options->no_fast_path && !options->graph_module &&
           !options->as_exported && options->amp == ONV_UNDEFINED &&
           options->attention != ONV_ATTENTION_MATH &&
           !onv_before_pytorch(options, ONV_PYTORCH_RELEASE(2, 0));
}

void onv_attention_report(const onv_lowering *l)
{
    if (l->fusions.n_grouped > 0)
        onv_model_diag(
            l->model, ONV_NOTE, "grouped-queries", NULL,
            "%u calls of attention take keys and values as they are: the export repeats "
            "them for groups of queries, as transformers does where it is given a mask, and "
            "not without one; --attention math counts the operations of the export",
            l->fusions.n_grouped);
}
