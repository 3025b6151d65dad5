/* Attention in a kernel of its own, which never writes the scores down. */
#include "emit/attention.h"

#include "base/checked.h"
#include "eager/pytorch.h"
#include "emit/product.h"

uint64_t onv_safe_softmax_bytes(const onv_emitter *e, uint32_t scores)
{
    onv_eager_tensor t = onv_tensor_at(e, scores);
    if (scores == ONV_NO_TENSOR || t.rank == 0 || t.dims[t.rank - 1] <= 0) return 0;
    if (onv_before_pytorch(e->options, ONV_PYTORCH_RELEASE(2, 5))) return 0;
    return t.elems + t.elems / (uint64_t)t.dims[t.rank - 1] + sizeof(float);
}

uint32_t onv_emit_attended(onv_emitter *e, uint8_t dtype, uint32_t query, uint32_t probabilities,
                           uint32_t values)
{
    bool is_wide = onv_tensor_is_float(e, values) && onv_tensor_at(e, values).dtype != dtype;
    uint32_t second = is_wide ? onv_emit_cast(e, probabilities, dtype) : ONV_NO_TENSOR;
    uint32_t out = onv_emit_matmul(e, probabilities, values);
    onv_emit_release(e, query);
    if (!is_wide) return out;
    out = onv_emit_cast(e, out, dtype);
    onv_emit_release(e, second);
    return out;
}

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
    uint64_t all = onv_u64_times(r.groups, onv_round_up(r.count, step));
    return onv_u64_times(onv_u64_times(all, each), sizeof(float));
}

typedef enum kernel { FLASH, CUDNN, EFFICIENT } kernel;

/* Kernels for 16 bits take rows of 16 bytes. */
enum { HEAD_STEP = 8 };

/* Devices before Hopper, longer heads and dropout are not for cuDNN, nor are single rows; backward has
 * heads of up to 128 values and of 256. Releases before 2.14 choose otherwise, and count without it. */
static bool takes_cudnn(const onv_emitter *e, rows r, bool learns_mask)
{
    const onv_lower_options *options = e->options;
    if (options->attention != ONV_ATTENTION_AUTO || options->cuda.compute_capability < 90 ||
        onv_before_pytorch(options, ONV_PYTORCH_RELEASE(2, 14)))
        return false;
    if (r.head % HEAD_STEP != 0) return false;
    if (options->inference) return r.head <= 256 && r.count > 1;
    return e->dropout <= 0 && !learns_mask && r.count > 1 && (r.head <= 128 || r.head == 256);
}

/* What scaled_dot_product_attention's dispatcher takes, or what the user asked for. */
static kernel choose_kernel(const onv_emitter *e, const onv_eager_tensor *query, uint32_t mask)
{
    rows r = rows_of(query);
    bool low = onv_dtype_bits((onv_dtype)query->dtype) == 16;
    if (!low || e->options->attention == ONV_ATTENTION_EFFICIENT) return EFFICIENT;
    bool learns_mask = mask != ONV_NO_TENSOR && onv_tensor_needs_grad(e, mask);
    if (takes_cudnn(e, r, learns_mask)) return CUDNN;
    return mask == ONV_NO_TENSOR && r.head <= 256 ? FLASH : EFFICIENT;
}

bool onv_attention_is_efficient(const onv_emitter *e, uint32_t query, uint32_t mask)
{
    onv_eager_tensor q = onv_tensor_at(e, query);
    return choose_kernel(e, &q, mask) == EFFICIENT;
}

/* Backward gives each of the query's heads a gradient of keys and values, and adds up those of a group. */
static uint64_t spread_bytes(const onv_emitter *e, uint32_t x, const onv_eager_tensor *query)
{
    enum { HEADS = 3 }; /* from the last */
    onv_eager_tensor t = onv_tensor_at(e, x);
    if (t.rank < HEADS || t.rank != query->rank) return 0;
    uint64_t heads = (uint64_t)t.dims[t.rank - HEADS], all = (uint64_t)query->dims[t.rank - HEADS];
    if (heads == all || heads == 0) return 0;
    return onv_u64_times(t.bytes / heads, all);
}

/* Sums of the memory-efficient kernel's backward: the gradient of the query in tiles, with a lock for each; 8.6 and 8.9 have
 * smaller tiles in 32 bits. */
static uint64_t tiles_bytes(const onv_emitter *e, rows r, uint64_t n_keys, bool low)
{
    enum { TILE = 64, TILE_LOCK = 16 };
    uint32_t device = e->options->cuda.compute_capability;
    bool is_small = device == 86 || device == 89;
    uint64_t block = r.head <= TILE || (!low && is_small) ? TILE : 2 * TILE;
    uint64_t width = onv_round_up(r.head, r.head <= TILE || r.head > 128 ? TILE : 128);
    uint64_t tiles = onv_round_up(r.count, block) / block;
    if (!low || r.head > 128) tiles *= width / TILE;
    uint64_t locks = onv_u64_times(onv_u64_times(r.groups, tiles), TILE_LOCK);
    uint64_t bytes = onv_u64_plus(float_bytes(r, block, width), locks);
    /* Heads that no block holds whole: tiles of the gradients of keys and values, too. */
    rows keys = {.groups = r.groups, .count = n_keys};
    if (low && r.head > (is_small ? 96 : 128))
        bytes = onv_u64_plus(bytes, float_bytes(keys, 128, 2 * onv_round_up(r.head, 128)));
    return bytes;
}

/* In the order of PyTorch's flash_api.cpp, MHA.cpp and attention_backward.cu: gradients of each head's keys and values, where heads
 * share them; a sum in float32 for each row; the gradient of the query in float32. Before its sums the memory-efficient kernel
 * has, but in 16 bits, products of the result and its gradient, and their sums in another order. */
static void emit_backward_temps(onv_emitter *e, kernel chosen, uint32_t query, uint32_t key,
                                uint32_t value)
{
    enum { PRODUCT = 2, SUMS, DENSE_SUMS, TILES, N, CUDNN_BYTES = 256 };
    onv_eager_tensor q = onv_tensor_at(e, query), v = onv_tensor_at(e, value);
    rows r = rows_of(&q);
    bool low = onv_dtype_bits((onv_dtype)q.dtype) == 16;
    uint64_t n_keys = v.rank >= 2 ? (uint64_t)v.dims[v.rank - 2] : 0, tiles;
    onv_backward_temp temps[N] = {{spread_bytes(e, key, &q), N, 0},
                                  {spread_bytes(e, value, &q), N, 0}};
    if (chosen == CUDNN) {
        tiles = onv_u64_plus(float_bytes(r, 1, r.head + 1), CUDNN_BYTES);
    } else if (chosen == FLASH) {
        temps[DENSE_SUMS] = (onv_backward_temp){float_bytes(r, 128, 1), N, 0};
        tiles = float_bytes(r, 128, onv_round_up(r.head, 32));
    } else {
        temps[PRODUCT] = (onv_backward_temp){low ? 0 : float_bytes(r, 1, r.head), TILES, 0};
        temps[SUMS] = (onv_backward_temp){low ? 0 : float_bytes(r, 1, 1), TILES, 0};
        temps[DENSE_SUMS] = (onv_backward_temp){float_bytes(r, 1, 1), N, 0};
        tiles = tiles_bytes(e, r, n_keys, low);
    }
    temps[TILES] = (onv_backward_temp){tiles, N, 0};
    onv_emit_backward_temps(e, &e->op, temps, N);
}

/* FlashAttention and cuDNN lay their result out like the query, the third kernel with the heads before the values. */
static uint32_t emit_result(onv_emitter *e, const onv_eager_tensor *query, const onv_shape *shape,
                            bool as_query)
{
    int64_t dims[4], strides[ONV_MAX_RANK];
    bool alike = query->rank == shape->rank;
    for (uint32_t i = 0; alike && i < shape->rank; i++) alike = query->dims[i] == shape->dims[i];
    if (as_query && alike) {
        onv_strides_like(query, strides);
        return onv_emit_out(e, onv_tensor_new(e, query->dtype, shape->rank, shape->dims, strides));
    }
    if (shape->rank != 4)
        return onv_emit_out(e, onv_tensor_new(e, query->dtype, shape->rank, shape->dims, NULL));
    static const uint32_t order[] = {0, 2, 1, 3};
    for (uint32_t i = 0; i < 4; i++) dims[i] = shape->dims[order[i]];
    uint32_t out = onv_tensor_new(e, query->dtype, 4, dims, NULL);
    if (out == ONV_NO_TENSOR) return out;
    onv_eager_tensor t = onv_tensor_at(e, out);
    for (uint32_t i = 0; i < 4; i++) strides[i] = t.strides[order[i]];
    return onv_emit_out(e, onv_tensor_on(e, t.storage, t.dtype, 4, shape->dims, strides));
}

static uint64_t count_macs(const onv_emitter *e, uint32_t query, uint32_t key, uint32_t value)
{
    onv_eager_tensor q = onv_tensor_at(e, query), k = onv_tensor_at(e, key);
    onv_eager_tensor v = onv_tensor_at(e, value);
    if (q.rank < 2 || k.rank < 2 || v.rank < 1 || q.dims[q.rank - 1] == 0) return 0;
    uint64_t count = q.elems / (uint64_t)q.dims[q.rank - 1];
    return count * (uint64_t)k.dims[k.rank - 2] *
           (uint64_t)(q.dims[q.rank - 1] + v.dims[v.rank - 1]); /* a figure of reports */
}

/* What is kept: the operands, the result, the logarithms of the rows' sums, a state of the random
 * numbers. */
static uint32_t emit_kernel(onv_emitter *e, kernel chosen, uint32_t query, uint32_t key,
                            uint32_t value, uint32_t mask, const onv_shape *shape)
{
    static const char *const names[] = {"flash_attention", "cudnn_attention",
                                        "efficient_attention"};
    onv_eager_tensor q = onv_tensor_at(e, query);
    rows r = rows_of(&q);
    onv_emit_begin(e, names[chosen]);
    onv_emit_in_saved(e, query, ONV_GRAD_NEW);
    onv_emit_in_saved(e, key, ONV_GRAD_NEW);
    onv_emit_in_saved(e, value, ONV_GRAD_NEW);
    onv_emit_in_saved(e, mask, ONV_GRAD_NEW);
    uint32_t out = emit_result(e, &q, shape, chosen != EFFICIENT);
    onv_emit_save(e, out);
    /* Where it drops, the memory-efficient kernel has the state of random numbers on the host. */
    uint64_t is_there = chosen != EFFICIENT || e->dropout <= 0;
    onv_emit_extra(e, is_there * (chosen == FLASH ? 2 : 1), sizeof(uint64_t), "seed");
    onv_emit_extra(e, is_there, sizeof(uint64_t), "offset");
    if (chosen != FLASH) onv_emit_extras_come_first(e);
    onv_emit_extra(e, float_bytes(r, chosen == EFFICIENT ? 32 : 1, 1), 1, "logsumexp");
    emit_backward_temps(e, chosen, query, key, value);
    e->op.macs = count_macs(e, query, key, value);
    onv_emit_end(e);
    return out;
}

static uint32_t padded(onv_emitter *e, uint32_t x)
{
    onv_eager_tensor t = onv_tensor_at(e, x);
    int64_t dims[ONV_MAX_RANK];
    if (x == ONV_NO_TENSOR || t.rank == 0) return x;
    for (uint32_t i = 0; i < t.rank; i++) dims[i] = t.dims[i];
    dims[t.rank - 1] = (int64_t)onv_round_up((uint64_t)t.dims[t.rank - 1], HEAD_STEP);
    return onv_emit_of(e, "pad", x, ONV_GRAD_NEW, t.rank, dims, NULL);
}

/* FlashAttention has rows padded, and the result cut to a view. */
uint32_t onv_emit_attention(onv_emitter *e, uint32_t query, uint32_t key, uint32_t value,
                            uint32_t mask, const onv_shape *shape)
{
    onv_eager_tensor q = onv_tensor_at(e, query);
    kernel chosen = choose_kernel(e, &q, mask);
    if (chosen != FLASH || rows_of(&q).head % HEAD_STEP == 0 || shape->rank == 0)
        return emit_kernel(e, chosen, query, key, value, mask, shape);
    onv_shape wide = *shape;
    wide.dims[wide.rank - 1] = (int64_t)onv_round_up((uint64_t)wide.dims[wide.rank - 1], HEAD_STEP);
    uint32_t out =
        emit_kernel(e, chosen, padded(e, query), padded(e, key), padded(e, value), mask, &wide);
    if (out == ONV_NO_TENSOR) return out;
    onv_eager_tensor t = onv_tensor_at(e, out);
    return onv_emit_view(e, "slice", out, shape->rank, shape->dims, t.strides, ONV_GRAD_NEW);
}
