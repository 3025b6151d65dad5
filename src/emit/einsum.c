/* Einsum as PyTorch runs it: operands are permuted to the same order of labels, and two at a time are
 * multiplied: permuted, reshaped to three dims (which copies what is permuted) and given to bmm. */
#include "emit/product.h"

#include <string.h>

#include "ops/equation.h"

typedef struct einsum {
    onv_equation of;
    char labels[ONV_MAX_RANK + 1];
    uint32_t n_operands, n_labels, n_out;
} einsum;

/* --- The equation ------------------------------------------------------------------------------ */

static bool add_labels(einsum *m, const char *term)
{
    for (; *term != '\0'; term++) {
        if (memchr(m->labels, *term, m->n_labels) != NULL) continue;
        if (m->n_labels == ONV_MAX_RANK) return false;
        m->labels[m->n_labels++] = *term;
    }
    return true;
}

/* Those of the result, then the others in the order of characters. */
static bool list_labels(einsum *m)
{
    if (!add_labels(m, m->of.result)) return false;
    m->n_out = m->n_labels;
    for (int c = 1; c <= 'z'; c++)
        for (uint32_t i = 0; i < m->n_operands; i++)
            if (strchr(m->of.terms[i], c) != NULL && !add_labels(m, (const char[]){(char)c, '\0'}))
                return false;
    return true;
}

/* Does an operand from `first` on have the label? */
static bool is_needed(const einsum *m, uint32_t label, uint32_t first)
{
    if (label < m->n_out) return true;
    for (uint32_t i = first; i < m->n_operands; i++)
        if (strchr(m->of.terms[i], m->labels[label]) != NULL) return true;
    return false;
}

/* --- Operations -------------------------------------------------------------------------------- */

/* In the order of the labels, dims of 1 for those that it has not. */
static uint32_t arrange(onv_emitter *e, const einsum *m, uint32_t operand, uint32_t x)
{
    onv_eager_tensor t = onv_tensor_at(e, x);
    int64_t dims[ONV_MAX_RANK], strides[ONV_MAX_RANK];
    if (x == ONV_NO_TENSOR || t.rank != strlen(m->of.terms[operand])) return ONV_NO_TENSOR;
    for (uint32_t i = 0; i < m->n_labels; i++) {
        const char *at = strchr(m->of.terms[operand], m->labels[i]);
        dims[i] = at != NULL ? t.dims[at - m->of.terms[operand]] : 1;
        strides[i] = at != NULL ? t.strides[at - m->of.terms[operand]] : 0;
    }
    return onv_emit_view(e, "permute", x, m->n_labels, dims, strides, ONV_GRAD_ALIAS);
}

static uint32_t emit_sum(onv_emitter *e, uint32_t x, const bool *over)
{
    onv_eager_tensor t = onv_tensor_at(e, x);
    int64_t dims[ONV_MAX_RANK];
    bool any = false;
    for (uint32_t i = 0; i < t.rank; i++) {
        dims[i] = over[i] ? 1 : t.dims[i];
        any |= over[i] && t.dims[i] != 1;
    }
    if (!any) return x;
    return onv_emit_of(e, "sum", x, ONV_GRAD_PART, t.rank, dims, NULL);
}

static uint32_t emit_mul(onv_emitter *e, uint32_t a, uint32_t b)
{
    onv_eager_tensor x = onv_tensor_at(e, a), y = onv_tensor_at(e, b);
    onv_shape shape = {.rank = x.rank};
    for (uint32_t i = 0; i < x.rank; i++) shape.dims[i] = x.dims[i] != 1 ? x.dims[i] : y.dims[i];
    unsigned saves = (onv_tensor_needs_grad(e, b) ? ONV_SAVE_A : 0) |
                     (onv_tensor_needs_grad(e, a) ? ONV_SAVE_B : 0);
    return onv_emit_step(e, ONV_ATEN_mul, a, b, saves, &shape);
}

typedef struct split {
    uint32_t both[ONV_MAX_RANK], left[ONV_MAX_RANK], right[ONV_MAX_RANK], sum[ONV_MAX_RANK];
    uint32_t n_both, n_left, n_right, n_sum;
} split;

static split classify(const onv_eager_tensor *x, const onv_eager_tensor *y, const bool *summed)
{
    split s = {.n_both = 0};
    for (uint32_t i = 0; i < x->rank; i++) {
        bool in_x = x->dims[i] != 1, in_y = y->dims[i] != 1;
        if (summed[i] && in_x && in_y)
            s.sum[s.n_sum++] = i;
        else if (in_x && in_y)
            s.both[s.n_both++] = i;
        else if (in_x)
            s.left[s.n_left++] = i;
        else
            s.right[s.n_right++] = i;
    }
    return s;
}

/* The product of those dims, which are some of a tensor's, which was counted. */
static int64_t size_of(const onv_eager_tensor *t, const uint32_t *dims, uint32_t n)
{
    int64_t size = 1;
    for (uint32_t i = 0; i < n; i++) size *= t->dims[dims[i]];
    return size;
}

static uint32_t append(uint32_t *order, uint32_t at, const uint32_t *dims, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) order[at++] = dims[i];
    return at;
}

static uint32_t emit_pair(onv_emitter *e, uint32_t a, uint32_t b, const bool *summed)
{
    onv_eager_tensor x = onv_tensor_at(e, a), y = onv_tensor_at(e, b);
    if (e->status != ONV_OK) return ONV_NO_TENSOR;
    split s = classify(&x, &y, summed);
    if (s.n_sum == 0) return emit_mul(e, a, b);
    uint32_t of_a[ONV_MAX_RANK] = {0}, of_b[ONV_MAX_RANK] = {0}, back[ONV_MAX_RANK], n;
    n = append(of_a, 0, s.both, s.n_both);
    const uint32_t first_sum = n = append(of_a, n, s.left, s.n_left);
    const uint32_t first_right = n = append(of_a, n, s.sum, s.n_sum);
    append(of_a, n, s.right, s.n_right);
    n = append(of_b, 0, s.both, s.n_both);
    n = append(of_b, n, s.sum, s.n_sum);
    n = append(of_b, n, s.right, s.n_right);
    append(of_b, n, s.left, s.n_left);
    const int64_t both = size_of(&x, s.both, s.n_both), sum = size_of(&x, s.sum, s.n_sum);
    const int64_t left = size_of(&x, s.left, s.n_left), right = size_of(&y, s.right, s.n_right);
    a = onv_emit_permuted(e, "permute", a, of_a);
    a = onv_emit_reshape(e, a, 3, (const int64_t[]){both, left, sum});
    b = onv_emit_permuted(e, "permute", b, of_b);
    b = onv_emit_reshape(e, b, 3, (const int64_t[]){both, sum, right});
    /* Back: the dims of the product are in the order of a's, then in that of the labels. */
    int64_t dims[ONV_MAX_RANK];
    for (uint32_t i = 0; i < x.rank; i++) {
        dims[i] = i < first_sum ? x.dims[of_a[i]] : i < first_right ? 1 : y.dims[of_a[i]];
        back[of_a[i]] = i;
    }
    uint32_t product = onv_emit_reshape(e, onv_emit_bmm(e, a, b), x.rank, dims);
    return onv_emit_permuted(e, "permute", product, back);
}

uint32_t onv_emit_einsum(onv_emitter *e, const char *equation, const uint32_t *in, uint32_t n_in)
{
    einsum m = {.n_operands = n_in};
    uint32_t operands[ONV_MOST_TERMS] = {0}, ranks[ONV_MOST_TERMS];
    bool summed[ONV_MAX_RANK] = {false};
    for (uint32_t k = 0; k < n_in; k++) {
        if (k == ONV_MOST_TERMS || in[k] == ONV_NO_TENSOR) return ONV_NO_TENSOR;
        ranks[k] = onv_tensor_at(e, in[k]).rank;
    }
    if (n_in == 0 || !onv_equation_read(equation, ranks, n_in, &m.of) || !list_labels(&m))
        return ONV_NO_TENSOR;
    for (uint32_t k = 0; k < m.n_operands; k++)
        operands[k] = arrange(e, &m, k, onv_amp_low(e, in[k]));
    uint32_t result = operands[0];
    for (uint32_t k = 1; k < m.n_operands || k == 1; k++) {
        for (uint32_t i = 0; i < m.n_labels; i++) summed[i] = !is_needed(&m, i, k + 1);
        if (m.n_operands == 1) {
            result = emit_sum(e, result, summed);
            break;
        }
        bool left[ONV_MAX_RANK] = {false}, right[ONV_MAX_RANK] = {false};
        onv_eager_tensor x = onv_tensor_at(e, result), y = onv_tensor_at(e, operands[k]);
        if (e->status != ONV_OK) return ONV_NO_TENSOR;
        for (uint32_t i = 0; i < m.n_labels; i++) {
            left[i] = summed[i] && x.dims[i] != 1 && y.dims[i] == 1;
            right[i] = summed[i] && y.dims[i] != 1 && x.dims[i] == 1;
        }
        result = emit_pair(e, emit_sum(e, result, left), emit_sum(e, operands[k], right), summed);
    }
    onv_eager_tensor t = onv_tensor_at(e, result);
    if (result == ONV_NO_TENSOR || e->status != ONV_OK) return ONV_NO_TENSOR;
    return onv_emit_view(e, "squeeze", result, m.n_out, t.dims, t.strides, ONV_GRAD_ALIAS);
}
