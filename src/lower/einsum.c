/* Einsum as PyTorch runs it: operands are permuted to the same order of labels, and two at a time are
 * multiplied: permuted, reshaped to three dims (which copies what is permuted) and given to bmm. */
#include <ctype.h>
#include <string.h>

#include "lower/lowering.h"

enum { MAX_OPERANDS = 8, MAX_EQUATION = (MAX_OPERANDS + 1) * (ONV_MAX_RANK + 2) };

typedef struct einsum {
    char terms[MAX_OPERANDS][ONV_MAX_RANK + 1], out[ONV_MAX_RANK + 1];
    char labels[ONV_MAX_RANK +
                1]; /* those of the result first, then others in the order of letters */
    uint32_t n_operands, n_labels, n_out;
} einsum;

/* --- The equation ------------------------------------------------------------------------------ */

static const char *read_term(const char *at, char *term)
{
    uint32_t n = 0;
    for (; *at != '\0' && *at != ',' && *at != '-'; at++) {
        if (*at == ' ') continue;
        if (!isalpha((unsigned char)*at) || n == ONV_MAX_RANK) return NULL;
        if (n > 0 && memchr(term, *at, n) != NULL) return NULL; /* a diagonal */
        term[n++] = *at;
    }
    term[n] = '\0';
    return at;
}

static bool add_labels(einsum *e, const char *term)
{
    for (; *term != '\0'; term++) {
        if (memchr(e->labels, *term, e->n_labels) != NULL) continue;
        if (e->n_labels == ONV_MAX_RANK) return false;
        e->labels[e->n_labels++] = *term;
    }
    return true;
}

/* With its result and ellipses spelt out, without diagonals. */
static bool parse(const char *equation, einsum *e)
{
    *e = (einsum){0};
    const char *at = equation;
    for (;;) {
        if (e->n_operands == MAX_OPERANDS) return false;
        at = read_term(at, e->terms[e->n_operands++]);
        if (at == NULL) return false;
        if (*at != ',') break;
        at++;
    }
    if (at[0] != '-' || at[1] != '>') return false;
    at = read_term(at + 2, e->out);
    if (at == NULL || *at != '\0' || !add_labels(e, e->out)) return false;
    e->n_out = e->n_labels;
    for (int c = 'A'; c <= 'z'; c++)
        for (uint32_t i = 0; i < e->n_operands && isalpha(c); i++)
            if (strchr(e->terms[i], c) != NULL && !add_labels(e, (const char[]){(char)c, '\0'}))
                return false;
    return true;
}

/* Labels that the equation does not use, `count` of them. */
static bool free_labels(const char *equation, uint32_t count, char *labels)
{
    for (char c = 'A'; c <= 'z' && count > 0; c++)
        if (isalpha((unsigned char)c) && strchr(equation, c) == NULL) labels[--count] = c;
    return count == 0;
}

/* The equation with labels for the dims that an ellipsis stands for: the last ones of those of the widest. */
static bool spell_out(onv_lowering *l, const onv_node *node, const char *equation, char *text)
{
    uint32_t hidden[MAX_OPERANDS] = {0}, most = 0, operand = 0, n = 0;
    char labels[ONV_MAX_RANK];
    const char *at = equation;
    for (uint32_t k = 0; k < node->n_inputs && k < MAX_OPERANDS; k++, at += *at == ',') {
        uint32_t named = 0;
        for (; *at != '\0' && *at != ',' && *at != '-'; at++)
            named += isalpha((unsigned char)*at) != 0;
        uint32_t rank = onv_tensor_at(&l->emit, onv_node_in(l, node, k)).rank;
        hidden[k] = rank > named ? rank - named : 0;
        if (hidden[k] > most) most = hidden[k];
    }
    if (most > ONV_MAX_RANK || !free_labels(equation, most, labels)) return false;
    for (at = equation; *at != '\0'; at++) {
        operand += *at == ',';
        if (*at == '>') operand = MAX_OPERANDS;
        bool dots = strncmp(at, "...", 3) == 0;
        uint32_t count = !dots ? 1 : operand < MAX_OPERANDS ? hidden[operand] : most;
        if (n + count >= MAX_EQUATION || operand > MAX_OPERANDS) return false;
        memcpy(text + n, dots ? labels + most - count : at, count);
        n += count;
        at += dots ? 2 : 0;
    }
    text[n] = '\0';
    return true;
}

/* Does an operand from `first` on have the label? */
static bool is_needed(const einsum *e, uint32_t label, uint32_t first)
{
    if (label < e->n_out) return true;
    for (uint32_t i = first; i < e->n_operands; i++)
        if (strchr(e->terms[i], e->labels[label]) != NULL) return true;
    return false;
}

/* --- Operations -------------------------------------------------------------------------------- */

/* In the order of the labels, dims of 1 for those that it has not. */
static uint32_t arrange(onv_lowering *l, const einsum *e, uint32_t operand, uint32_t x)
{
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    int64_t dims[ONV_MAX_RANK], strides[ONV_MAX_RANK];
    if (x == ONV_NO_TENSOR || t.rank != strlen(e->terms[operand])) return ONV_NO_TENSOR;
    for (uint32_t i = 0; i < e->n_labels; i++) {
        const char *at = strchr(e->terms[operand], e->labels[i]);
        dims[i] = at != NULL ? t.dims[at - e->terms[operand]] : 1;
        strides[i] = at != NULL ? t.strides[at - e->terms[operand]] : 0;
    }
    return onv_emit_view(&l->emit, "permute", x, e->n_labels, dims, strides, ONV_GRAD_ALIAS);
}

static uint32_t emit_sum(onv_lowering *l, uint32_t x, const bool *over)
{
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    int64_t dims[ONV_MAX_RANK];
    bool any = false;
    for (uint32_t i = 0; i < t.rank; i++) {
        dims[i] = over[i] ? 1 : t.dims[i];
        any |= over[i] && t.dims[i] != 1;
    }
    if (!any) return x;
    uint32_t out = onv_tensor_new(&l->emit, t.dtype, t.rank, dims, NULL);
    onv_emit_begin(&l->emit, "sum");
    onv_emit_in(&l->emit, x, ONV_GRAD_PART);
    onv_emit_out(&l->emit, out);
    onv_emit_end(&l->emit);
    return out;
}

static uint32_t emit_mul(onv_lowering *l, uint32_t a, uint32_t b)
{
    onv_eager_tensor x = onv_tensor_at(&l->emit, a), y = onv_tensor_at(&l->emit, b);
    int64_t dims[ONV_MAX_RANK];
    for (uint32_t i = 0; i < x.rank; i++) dims[i] = x.dims[i] != 1 ? x.dims[i] : y.dims[i];
    uint32_t out = onv_tensor_new(&l->emit, x.dtype, x.rank, dims, NULL);
    onv_emit_begin(&l->emit, "mul");
    onv_emit_in(&l->emit, a, ONV_GRAD_NEW);
    onv_emit_in(&l->emit, b, ONV_GRAD_NEW);
    if (onv_tensor_needs_grad(&l->emit, b)) onv_emit_save(&l->emit, a);
    if (onv_tensor_needs_grad(&l->emit, a)) onv_emit_save(&l->emit, b);
    onv_emit_out(&l->emit, out);
    onv_emit_end(&l->emit);
    return out;
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

static uint32_t emit_permuted(onv_lowering *l, uint32_t x, const uint32_t *order,
                              const int64_t *shape)
{
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    int64_t dims[ONV_MAX_RANK], strides[ONV_MAX_RANK];
    for (uint32_t i = 0; i < t.rank; i++) {
        dims[i] = t.dims[order[i]];
        strides[i] = t.strides[order[i]];
    }
    x = onv_emit_view(&l->emit, "permute", x, t.rank, dims, strides, ONV_GRAD_ALIAS);
    x = onv_emit_reshape(&l->emit, x, 3, shape);
    bool low = l->emit.options->amp != ONV_UNDEFINED && onv_tensor_is_float(&l->emit, x);
    return low ? onv_emit_cast(&l->emit, x, (uint8_t)l->emit.options->amp) : x;
}

static uint32_t emit_pair(onv_lowering *l, uint32_t a, uint32_t b, const bool *summed)
{
    onv_eager_tensor x = onv_tensor_at(&l->emit, a), y = onv_tensor_at(&l->emit, b);
    if (l->emit.status != ONV_OK) return ONV_NO_TENSOR;
    split s = classify(&x, &y, summed);
    if (s.n_sum == 0) return emit_mul(l, a, b);
    uint32_t order[ONV_MAX_RANK], n;
    n = append(order, 0, s.both, s.n_both);
    n = append(order, n, s.left, s.n_left);
    n = append(order, n, s.sum, s.n_sum);
    append(order, n, s.right, s.n_right);
    const int64_t both = size_of(&x, s.both, s.n_both), sum = size_of(&x, s.sum, s.n_sum);
    const int64_t left = size_of(&x, s.left, s.n_left), right = size_of(&y, s.right, s.n_right);
    a = emit_permuted(l, a, order, (const int64_t[]){both, left, sum});
    n = append(order, 0, s.both, s.n_both);
    n = append(order, n, s.sum, s.n_sum);
    n = append(order, n, s.right, s.n_right);
    append(order, n, s.left, s.n_left);
    b = emit_permuted(l, b, order, (const int64_t[]){both, sum, right});
    uint32_t product = onv_emit_bmm(&l->emit, a, b);
    /* Back: the dims of the product in its order, then in that of the labels. */
    int64_t dims[ONV_MAX_RANK], strides[ONV_MAX_RANK];
    n = append(order, 0, s.both, s.n_both);
    n = append(order, n, s.left, s.n_left);
    n = append(order, n, s.sum, s.n_sum);
    append(order, n, s.right, s.n_right);
    for (uint32_t i = 0; i < x.rank; i++) {
        bool gone = i >= s.n_both + s.n_left && i < s.n_both + s.n_left + s.n_sum;
        const onv_eager_tensor *from = i < s.n_both + s.n_left ? &x : &y;
        dims[i] = gone ? 1 : from->dims[order[i]];
    }
    product = onv_emit_reshape(&l->emit, product, x.rank, dims);
    onv_eager_tensor t = onv_tensor_at(&l->emit, product);
    if (product == ONV_NO_TENSOR) return product;
    for (uint32_t i = 0; i < t.rank; i++) {
        dims[order[i]] = t.dims[i];
        strides[order[i]] = t.strides[i];
    }
    return onv_emit_view(&l->emit, "permute", product, t.rank, dims, strides, ONV_GRAD_ALIAS);
}

void onv_lower_einsum(onv_lowering *l, const onv_node *node)
{
    einsum e;
    uint32_t in[MAX_OPERANDS];
    bool summed[ONV_MAX_RANK];
    char text[MAX_EQUATION];
    const onv_attr *equation = onv_node_attr(node, "equation");
    bool plain = equation != NULL && equation->kind == ONV_ATTR_STRING &&
                 spell_out(l, node, equation->s, text) && parse(text, &e) &&
                 e.n_operands == node->n_inputs;
    for (uint32_t k = 0; plain && k < e.n_operands; k++) {
        onv_eager_tensor t = onv_tensor_at(&l->emit, onv_node_in(l, node, k));
        plain = onv_node_in(l, node, k) != ONV_NO_TENSOR && t.rank == strlen(e.terms[k]);
    }
    if (!plain) {
        onv_lower_by_traits(l, node);
        return;
    }
    for (uint32_t k = 0; k < e.n_operands; k++) in[k] = arrange(l, &e, k, onv_node_in(l, node, k));
    uint32_t result = in[0];
    for (uint32_t k = 1; k < e.n_operands || k == 1; k++) {
        for (uint32_t i = 0; i < e.n_labels; i++) summed[i] = !is_needed(&e, i, k + 1);
        if (e.n_operands == 1) {
            result = emit_sum(l, result, summed);
            break;
        }
        bool left[ONV_MAX_RANK], right[ONV_MAX_RANK];
        onv_eager_tensor x = onv_tensor_at(&l->emit, result), y = onv_tensor_at(&l->emit, in[k]);
        if (l->emit.status != ONV_OK) return;
        for (uint32_t i = 0; i < e.n_labels; i++) {
            left[i] = summed[i] && x.dims[i] != 1 && y.dims[i] == 1;
            right[i] = summed[i] && y.dims[i] != 1 && x.dims[i] == 1;
        }
        result = emit_pair(l, emit_sum(l, result, left), emit_sum(l, in[k], right), summed);
    }
    onv_eager_tensor t = onv_tensor_at(&l->emit, result);
    if (result == ONV_NO_TENSOR || l->emit.status != ONV_OK) return;
    onv_node_set(
        l, node, 0,
        onv_emit_view(&l->emit, "squeeze", result, e.n_out, t.dims, t.strides, ONV_GRAD_ALIAS));
}
