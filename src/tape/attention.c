/* scaled_dot_product_attention: in a kernel of its own, or one operation after the other. */
#include "emit/attention.h"

#include <string.h>

#include "base/checked.h"
#include "eager/pytorch.h"
#include "emit/layers.h"
#include "emit/product.h"
#include "tape/state.h"

/* Kernels read the values of a head one after the other. */
static bool has_rows(const onv_tape *t, uint32_t x)
{
    onv_eager_tensor s = onv_tensor_at(&t->emit, x);
    return s.rank == 0 || s.dims[s.rank - 1] == 1 || s.strides[s.rank - 1] == 1;
}

/* Bytes of a head's row that the memory-efficient kernel takes. */
enum { ROW_STEP = 16 };

/* 2.14 and later: heads of keys and values for groups of queries, and tensors without a batch. */
static bool takes_groups(const onv_tape *t)
{
    return !onv_before_pytorch(t->emit.options, ONV_PYTORCH_RELEASE(2, 14));
}

static bool takes_kernel(const onv_tape *t, const uint32_t in[4], bool is_grouped)
{
    const onv_lower_options *options = t->emit.options;
    bool has_calls = !onv_before_pytorch(options, ONV_PYTORCH_RELEASE(2, 0));
    onv_eager_tensor q = onv_tensor_at(&t->emit, in[0]), k = onv_tensor_at(&t->emit, in[1]);
    if (options->attention == ONV_ATTENTION_MATH || !has_calls || k.rank != q.rank) return false;
    if (q.rank != 4 && (q.rank != 3 || !takes_groups(t))) return false;
    bool low = onv_dtype_bits((onv_dtype)q.dtype) == 16;
    uint64_t row = (uint64_t)q.dims[q.rank - 1] * onv_dtype_bits((onv_dtype)q.dtype) / 8;
    bool is_flash = low && in[3] == ONV_NO_TENSOR && options->attention != ONV_ATTENTION_EFFICIENT;
    if (!is_flash && row % ROW_STEP != 0) return false;
    bool is_alike = q.dims[q.rank - 3] == k.dims[q.rank - 3];
    if (!is_alike && !takes_groups(t) && !(is_grouped && is_flash)) return false;
    return has_rows(t, in[0]) && has_rows(t, in[1]) && has_rows(t, in[2]);
}

/* A view without a first dim of 1, or with one. */
static uint32_t with_rank(onv_tape *t, uint32_t x, uint32_t rank)
{
    onv_eager_tensor s = onv_tensor_at(&t->emit, x);
    int64_t dims[ONV_MAX_RANK] = {1}, strides[ONV_MAX_RANK] = {1};
    if (x == ONV_NO_TENSOR || s.rank == rank) return x;
    bool adds = s.rank < rank;
    for (uint32_t i = 0; i + !adds < s.rank; i++) {
        dims[i + adds] = s.dims[i + !adds];
        strides[i + adds] = s.strides[i + !adds];
    }
    return onv_emit_view(&t->emit, adds ? "unsqueeze" : "squeeze", x, rank, dims, strides,
                         ONV_GRAD_ALIAS);
}

/* A mask of truth becomes one of numbers before the kernel. */
static uint32_t converted_mask(onv_tape *t, uint32_t mask, uint8_t dtype)
{
    onv_eager_tensor m = onv_tensor_at(&t->emit, mask);
    if (mask == ONV_NO_TENSOR || m.dtype != ONV_BOOL) return mask;
    return onv_emit_one(&t->emit, "where", mask, ONV_GRAD_NONE,
                        onv_tensor_new(&t->emit, dtype, m.rank, m.dims, NULL));
}

/* The memory-efficient kernel wants rows of a mask in steps of 16 bytes: others are padded to eight values, and cut back to a
 * view. */
static uint32_t aligned_mask(onv_tape *t, uint32_t mask)
{
    enum { STEP = 8 };
    onv_eager_tensor m = onv_tensor_at(&t->emit, mask);
    int64_t dims[ONV_MAX_RANK];
    if (mask == ONV_NO_TENSOR || m.rank == 0 || m.dims[m.rank - 1] % STEP == 0) return mask;
    for (uint32_t i = 0; i < m.rank; i++) dims[i] = m.dims[i];
    dims[m.rank - 1] += STEP - m.dims[m.rank - 1] % STEP;
    uint32_t wide = onv_emit_of(&t->emit, "pad", mask, ONV_GRAD_NEW, m.rank, dims, NULL);
    onv_eager_tensor w = onv_tensor_at(&t->emit, wide);
    if (wide == ONV_NO_TENSOR) return wide;
    return onv_emit_view(&t->emit, "slice", wide, m.rank, m.dims, w.strides, ONV_GRAD_NEW);
}

/* The kernel reads one value of the mask for each of the scores. */
static uint32_t expanded_mask(onv_tape *t, const uint32_t in[4])
{
    onv_eager_tensor q = onv_tensor_at(&t->emit, in[0]), k = onv_tensor_at(&t->emit, in[1]);
    const int64_t dims[] = {q.dims[0], q.dims[1], q.dims[2], k.dims[2]};
    if (in[3] == ONV_NO_TENSOR || k.rank != 4) return in[3];
    return onv_emit_expand(&t->emit, in[3], 4, dims);
}

/* As _scaled_dot_product_attention_math runs: query and key are each scaled by the root of the factor. */
static uint32_t emit_scaled(onv_tape *t, uint32_t x)
{
    onv_eager_tensor s = onv_tensor_at(&t->emit, x);
    int64_t strides[ONV_MAX_RANK];
    onv_strides_like(&s, strides);
    return onv_emit_of(&t->emit, "mul", x, ONV_GRAD_NEW, s.rank, s.dims, strides);
}

static uint32_t causal_mask(onv_tape *t, uint32_t query, uint32_t key)
{
    onv_eager_tensor q = onv_tensor_at(&t->emit, query), k = onv_tensor_at(&t->emit, key);
    const int64_t dims[] = {q.dims[q.rank - 2], k.dims[k.rank - 2]};
    uint32_t ones = onv_emit_one(&t->emit, "full", ONV_NO_TENSOR, ONV_GRAD_NONE,
                                 onv_tensor_new(&t->emit, ONV_BOOL, 2, dims, NULL));
    return converted_mask(t, ones, q.dtype);
}

/* 16 bits are widened to float32 inside (2.5 on). */
static uint32_t emit_math(onv_tape *t, const uint32_t given[4], bool is_causal, double dropout)
{
    uint32_t in[4] = {given[0], given[1], given[2], given[3]};
    uint8_t dtype = onv_tensor_at(&t->emit, in[0]).dtype;
    bool widens = onv_dtype_bits((onv_dtype)dtype) == 16 &&
                  !onv_before_pytorch(t->emit.options, ONV_PYTORCH_RELEASE(2, 5));
    for (uint32_t k = 0; k < 3 && widens; k++) in[k] = onv_emit_cast(&t->emit, in[k], ONV_FLOAT);
    if (is_causal)
        in[3] = causal_mask(t, in[0], in[1]);
    else
        in[3] = converted_mask(t, in[3], onv_tensor_at(&t->emit, in[0]).dtype);
    uint32_t query = emit_scaled(t, in[0]);
    uint32_t key = emit_scaled(t, onv_emit_swapped(&t->emit, in[1]));
    uint32_t scores = onv_emit_matmul(&t->emit, query, key);
    onv_shape shape = onv_tape_broadcast(t, scores, ONV_NO_TENSOR);
    if (in[3] != ONV_NO_TENSOR)
        scores = onv_emit_step(&t->emit, ONV_ATEN_add, scores, in[3], 0, &shape);
    uint32_t probabilities =
        onv_emit_softmax(&t->emit, ONV_ATEN_softmax, scores, onv_tensor_at(&t->emit, scores).dtype);
    if (t->emit.status == ONV_OK && scores != ONV_NO_TENSOR)
        t->emit.eager->ops.at[t->emit.eager->ops.count - 1].forward_temp_bytes =
            onv_safe_softmax_bytes(&t->emit, scores);
    if (dropout > 0) probabilities = onv_emit_dropout(&t->emit, probabilities);
    uint32_t out = onv_emit_attended(&t->emit, dtype, query, probabilities, in[2]);
    for (uint32_t k = 0; k < 3 && widens; k++) onv_emit_release(&t->emit, in[k]);
    return out;
}

/* Heads of keys and values are repeated for groups of queries. */
static uint32_t repeated(onv_tape *t, uint32_t x, uint32_t query)
{
    onv_eager_tensor s = onv_tensor_at(&t->emit, x), q = onv_tensor_at(&t->emit, query);
    int64_t dims[ONV_MAX_RANK];
    if (s.rank != q.rank || s.rank < 3 || s.dims[s.rank - 3] == q.dims[s.rank - 3]) return x;
    for (uint32_t i = 0; i < s.rank; i++) dims[i] = s.dims[i];
    dims[s.rank - 3] = q.dims[s.rank - 3];
    return onv_emit_of(&t->emit, "repeat", x, ONV_GRAD_NEW, s.rank, dims, NULL);
}

static uint32_t emit_kernel(onv_tape *t, uint32_t in[4], onv_shape shape)
{
    enum { RANK = 4 };
    for (uint32_t k = 0; k < 3; k++) in[k] = with_rank(t, in[k], RANK);
    in[3] = converted_mask(t, in[3], onv_tensor_at(&t->emit, in[0]).dtype);
    if (onv_attention_is_efficient(&t->emit, in[0], in[3])) in[3] = aligned_mask(t, in[3]);
    in[3] = expanded_mask(t, in);
    uint32_t rank = (uint32_t)shape.rank;
    if (rank == RANK - 1) {
        for (uint32_t i = rank; i > 0; i--) shape.dims[i] = shape.dims[i - 1];
        shape.dims[0] = 1;
        shape.rank = RANK;
    }
    return with_rank(t, onv_emit_attention(&t->emit, in[0], in[1], in[2], in[3], &shape), rank);
}

/* A mask of truth, and as numbers of the query's dtype. */
static void count_mask(onv_tape *t, uint32_t mask, uint32_t query)
{
    onv_shape shape;
    if (!onv_tape_shape(t, mask, &shape)) return;
    uint64_t bytes = 1 + onv_dtype_bits((onv_dtype)onv_tensor_at(&t->emit, query).dtype) / 8;
    for (uint32_t i = 0; i < shape.rank; i++) bytes = onv_u64_times(bytes, (uint64_t)shape.dims[i]);
    onv_tape_count_mask(t, bytes);
}

uint32_t onv_tape_attention(onv_tape *t, const onv_program_call *c)
{
    uint32_t *in = t->in;
    onv_shape shape;
    in[3] = onv_tape_low(t, onv_call_value(c, "attn_bias"), in[3]);
    onv_amp_low_all(&t->emit, in, 3);
    if (!onv_tape_shape(t, onv_call_result(c, 0), &shape)) return ONV_NO_TENSOR;
    onv_exported_mask mask = onv_tape_exported_mask(t, c, "attn_mask");
    if (mask != ONV_MASK_RUNS) count_mask(t, onv_call_value(c, "attn_mask"), in[0]);
    bool is_causal = onv_call_flag(c, "is_causal", false) || mask == ONV_MASK_CAUSAL;
    bool is_grouped = onv_call_flag(c, "enable_gqa", false);
    double told = t->emit.options->attention_dropout, p = onv_call_real(c, "dropout_p", 0);
    t->emit.dropout = t->emit.options->inference ? 0 : told >= 0 ? told : p;
    if (t->row->rule == ONV_RULE_ATTENTION_KERNEL) /* what is done before was recorded */
        return onv_emit_attention(&t->emit, in[0], in[1], in[2], in[3], &shape);
    if (takes_kernel(t, in, is_grouped)) return emit_kernel(t, in, shape);
    for (uint32_t k = 1; k < 3 && is_grouped; k++) in[k] = repeated(t, in[k], in[0]);
    return emit_math(t, in, is_causal, t->emit.dropout);
}
