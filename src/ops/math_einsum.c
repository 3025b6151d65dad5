/* Einsum: the equation parsed, its labels bound to dims.
 *
 * A label is a letter; the dims of an ellipsis together act as one more label. Sets of labels are
 * bit masks. A label's dims broadcast: they are equal, or 1.
 */
#include <string.h>

#include "base/fail.h"
#include "ops/rules.h"

enum { N_LETTERS = 52, ELLIPSIS = 52, N_LABELS = 53 };

typedef struct einsum {
    onv_dim letters[N_LETTERS];
    onv_dim dots[ONV_MAX_RANK]; /* dims of the ellipsis */
    int n_dots;                 /* -1: not known */
    bool more_dots;             /* an operand's ellipsis has dims that are not known */
    uint64_t *terms;            /* labels of each operand */
    uint64_t seen, twice;       /* labels of the left side: at all; more than once */
    uint8_t out[N_LABELS];      /* labels of the result, in order */
    int n_out;
} einsum;

static uint64_t bit(int label)
{
    return (uint64_t)1 << label;
}

/* Upper case letters come first, as in ASCII. */
static int label_of(char letter)
{
    if (letter >= 'A' && letter <= 'Z') return letter - 'A';
    if (letter >= 'a' && letter <= 'z') return letter - 'a' + 26;
    return -1;
}

/* The next label of a term: a letter or the ellipsis; -1 at the term's end. */
static onv_status next_label(onv_op_ctx *c, const char **at, int *label)
{
    while (**at == ' ') ++*at;
    *label = -1;
    if (**at == '\0' || **at == ',' || strncmp(*at, "->", 2) == 0) return ONV_OK;
    if (strncmp(*at, "...", 3) == 0) {
        *at += 3;
        *label = ELLIPSIS;
        return ONV_OK;
    }
    *label = label_of(**at);
    if (*label < 0) return onv_op_fail(c, "unexpected '%c' in the equation", **at);
    ++*at;
    return ONV_OK;
}

/* --- The left side ---------------------------------------------------------------------------- */

/* Labels of one operand in order; the ellipsis at most once. */
static onv_status read_term(onv_op_ctx *c, const char **at, uint8_t *labels, int *count, bool *dots)
{
    int label;
    *count = 0;
    *dots = false;
    for (;;) {
        ONV_TRY(next_label(c, at, &label));
        if (label < 0) return ONV_OK;
        if (label == ELLIPSIS && *dots) return onv_op_fail(c, "two ellipses in a term");
        if (*count == ONV_MAX_RANK) return onv_op_fail(c, "a term has more than %d labels", *count);
        if (label == ELLIPSIS) *dots = true;
        labels[(*count)++] = (uint8_t)label;
    }
}

static onv_status bind_dots(onv_op_ctx *c, einsum *e, uint32_t k, int first, int count)
{
    if (e->n_dots >= 0 && e->n_dots != count)
        return onv_op_fail(c, "the ellipsis stands for %d dims and for %d", e->n_dots, count);
    for (int i = 0; i < count; i++) {
        onv_dim d = onv_op_in_dim(c, k, first + i);
        if (e->n_dots < 0) e->dots[i] = onv_dim_const(1);
        ONV_TRY(onv_rule_broadcast_dim(c, e->dots[i], d, &e->dots[i]));
    }
    e->n_dots = count;
    return ONV_OK;
}

static onv_status bind_term(onv_op_ctx *c, einsum *e, uint32_t k, const uint8_t *labels, int count,
                            bool dots)
{
    int rank = onv_op_in_rank(c, k), axis = 0;
    int letters = dots ? count - 1 : count;
    if (rank >= 0 && (dots ? rank < letters : rank != letters))
        return onv_op_fail(c, "term %u has %d labels for shape %s", k, letters,
                           onv_op_in_text(c, k));
    for (int i = 0; i < count; i++) {
        int label = labels[i];
        if (e->seen & bit(label)) e->twice |= bit(label);
        e->seen |= bit(label);
        e->terms[k] |= bit(label);
        if (label == ELLIPSIS) {
            if (rank < 0) e->more_dots = true;
            if (rank >= 0) ONV_TRY(bind_dots(c, e, k, axis, rank - letters));
            axis += rank - letters;
            continue;
        }
        onv_dim *dim = &e->letters[label];
        onv_dim d = rank >= 0 ? onv_op_in_dim(c, k, axis) : ONV_DIM_UNKNOWN;
        axis++;
        ONV_TRY(onv_rule_broadcast_dim(c, *dim, d, dim));
    }
    return ONV_OK;
}

static onv_status read_operands(onv_op_ctx *c, einsum *e, const char **at)
{
    uint8_t labels[ONV_MAX_RANK];
    for (uint32_t k = 0;; k++) {
        int count;
        bool dots;
        if (k == c->n_in) return onv_op_fail(c, "the equation has more terms than inputs");
        ONV_TRY(read_term(c, at, labels, &count, &dots));
        ONV_TRY(bind_term(c, e, k, labels, count, dots));
        if (**at == ',') {
            ++*at;
        } else if (k + 1 < c->n_in) {
            return onv_op_fail(c, "the equation has %u terms for %u inputs", k + 1, c->n_in);
        } else {
            return ONV_OK;
        }
    }
}

/* --- The right side --------------------------------------------------------------------------- */

static onv_status read_result(onv_op_ctx *c, einsum *e, const char *at)
{
    uint64_t used = 0;
    int label;
    for (;;) {
        ONV_TRY(next_label(c, &at, &label));
        if (label < 0) break;
        if (used & bit(label)) return onv_op_fail(c, "a label stands twice in the result");
        if (!(e->seen & bit(label)) && label != ELLIPSIS)
            return onv_op_fail(c, "label '%c' of the result is in no term", at[-1]);
        used |= bit(label);
        e->out[e->n_out++] = (uint8_t)label;
    }
    if (*at != '\0') return onv_op_fail(c, "the equation goes on behind the result");
    if ((e->seen & bit(ELLIPSIS)) && !(used & bit(ELLIPSIS)) && e->n_dots > 0)
        return onv_op_fail(c, "the result drops the ellipsis");
    return ONV_OK;
}

/* Without "->": the ellipsis, then the labels that stand once, in ASCII order. */
static void imply_result(einsum *e)
{
    if (e->seen & bit(ELLIPSIS)) e->out[e->n_out++] = ELLIPSIS;
    for (int label = 0; label < N_LETTERS; label++)
        if (e->seen & ~e->twice & bit(label)) e->out[e->n_out++] = (uint8_t)label;
}

static onv_status read_equation(onv_op_ctx *c, einsum *e)
{
    const char *at = onv_op_attr_string(c, "equation", NULL);
    *e = (einsum){.n_dots = -1};
    if (at == NULL) return onv_op_fail(c, "attribute 'equation' is missing");
    for (int i = 0; i < N_LETTERS; i++) e->letters[i] = onv_dim_const(1);
    e->terms = ONV_ARENA_ARRAY(c->arena, uint64_t, (size_t)c->n_in + 1);
    if (e->terms == NULL) return onv_fail_memory(c->err);
    ONV_TRY(read_operands(c, e, &at));
    if (!(e->seen & bit(ELLIPSIS))) e->n_dots = 0;
    for (int i = 0; i < e->n_dots; i++) /* a 1 may still broadcast */
        if (e->more_dots && onv_dim_is(e->dots[i], 1)) e->dots[i] = ONV_DIM_UNKNOWN;
    if (strncmp(at, "->", 2) == 0) return read_result(c, e, at + 2);
    imply_result(e);
    return ONV_OK;
}

static onv_status infer_einsum(onv_op_ctx *c)
{
    einsum e;
    onv_dim dims[N_LABELS + ONV_MAX_RANK];
    int rank = 0;
    ONV_TRY(read_equation(c, &e));
    onv_dtype dtype = onv_rule_dtype(c, 0, c->n_in);
    onv_op_set_out(c, 0, dtype, NULL, -1);
    for (int i = 0; i < e.n_out; i++) {
        if (e.out[i] != ELLIPSIS) {
            dims[rank++] = e.letters[e.out[i]];
            continue;
        }
        if (e.n_dots < 0) return ONV_OK;
        for (int k = 0; k < e.n_dots; k++) dims[rank++] = e.dots[k];
    }
    if (rank > ONV_MAX_RANK) return onv_op_fail(c, "the result has %d dims", rank);
    return onv_op_set_out(c, 0, dtype, dims, rank);
}

/* --- Cost ------------------------------------------------------------------------------------- */

static onv_dim label_size(onv_op_ctx *c, const einsum *e, uint64_t labels)
{
    onv_dim size = onv_dim_const(1);
    for (int i = 0; i < N_LETTERS; i++)
        if (labels & bit(i)) size = onv_dim_mul(c->dims, size, e->letters[i]);
    if (!(labels & bit(ELLIPSIS))) return size;
    if (e->n_dots < 0) return ONV_DIM_UNKNOWN;
    for (int i = 0; i < e->n_dots; i++) size = onv_dim_mul(c->dims, size, e->dots[i]);
    return size;
}

/* Operands are contracted two at a time from the left, as the runtimes do. A label that neither the
 * other operand nor anything later needs is summed away first, which multiplies nothing. */
static onv_dim macs_einsum(onv_op_ctx *c)
{
    einsum e;
    if (read_equation(c, &e) != ONV_OK || e.terms == NULL) return ONV_DIM_UNKNOWN;
    uint64_t *later = ONV_ARENA_ARRAY(c->arena, uint64_t, (size_t)c->n_in + 1);
    if (later == NULL) return ONV_DIM_UNKNOWN;
    for (int i = 0; i < e.n_out; i++) later[c->n_in] |= bit(e.out[i]);
    for (uint32_t k = c->n_in; k-- > 0;) later[k] = later[k + 1] | e.terms[k];
    onv_dim macs = onv_dim_const(0);
    uint64_t left = e.terms[0];
    for (uint32_t k = 1; k < c->n_in; k++) {
        uint64_t right = e.terms[k], needed = later[k + 1];
        uint64_t both = (left & (needed | right)) | (right & (needed | left));
        macs = onv_dim_add(c->dims, macs, label_size(c, &e, both));
        left = both & needed;
    }
    return macs;
}

static const onv_op rows[] = {
    ONV_OP("Einsum", 12, 1, ONV_OP_MAX_ARITY, 1, 1, infer_einsum, .macs = macs_einsum,
           ONV_ALL_ALIKE),
};

const onv_op_family onv_ops_math_einsum = {"", rows, sizeof rows / sizeof rows[0]};
