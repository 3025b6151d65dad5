/* What an Einsum takes: operands with their axes in the order of the equation, then as matrices, the product, and the
 * result in its own order. Read in source (core/providers/cpu/math/einsum_utils) and measured, CUDA build without a GPU. */
#include <string.h>

#include "ops/equation.h"
#include "ort/scratch.h"

enum { MOST_LABELS = 24, OPERANDS = 2 };

typedef struct einsum {
    onv_dtype dtype;
    onv_ort_kernel *kernel;
    onv_equation of;
    char labels[MOST_LABELS + 1]; /* as operands first use them */
    int n_labels;
    onv_dim dims[OPERANDS][MOST_LABELS]; /* of an operand, by label; 1 where it has none */
} einsum;

/* Its tensors are asked for without a stream. */
static onv_ort_scratch_row *add(const einsum *e, uint64_t elems)
{
    uint64_t bytes;
    if (!onv_dtype_bytes(e->dtype, elems, &bytes)) return NULL;
    onv_ort_scratch_row *row = onv_ort_add_early(e->kernel, bytes, 1);
    if (row != NULL) row->has_no_stream = true;
    return row;
}

/* --- The equation ------------------------------------------------------------------------------ */

static bool read_equation(einsum *e, const onv_model *model, const onv_node *node)
{
    const onv_attr *attr = onv_node_attr(node, "equation");
    uint32_t ranks[OPERANDS] = {0};
    if (attr == NULL || attr->kind != ONV_ATTR_STRING || node->n_inputs > OPERANDS) return false;
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        if (!onv_type_has_rank(onv_ort_input(e->kernel, k))) return false;
        ranks[k] = (uint32_t)onv_ort_input(e->kernel, k)->rank;
    }
    if (!onv_equation_read(attr->s, ranks, node->n_inputs, &e->of)) return false;
    for (uint32_t k = 0; k < node->n_inputs; k++)
        for (const char *c = e->of.terms[k]; *c != '\0'; c++)
            if (strchr(e->labels, *c) == NULL && e->n_labels < MOST_LABELS)
                e->labels[e->n_labels++] = *c;
    for (uint32_t k = 0; k < OPERANDS; k++)
        for (int i = 0; i < e->n_labels; i++) {
            const char *axis = strchr(e->of.terms[k], e->labels[i]);
            bool has = axis != NULL && k < node->n_inputs;
            e->dims[k][i] = onv_dim_const(1);
            if (!has) continue;
            e->dims[k][i] =
                onv_model_value(model, node->inputs[k])->type.dims[axis - e->of.terms[k]];
            if (!onv_dim_is_const(e->dims[k][i]) || e->dims[k][i].raw < 1) return false;
        }
    return true;
}

/* --- Operands ---------------------------------------------------------------------------------- */

static uint64_t elements(const onv_dim *dims, int n)
{
    uint64_t elems = 1;
    for (int i = 0; i < n; i++) elems *= (uint64_t)dims[i].raw; /* of a tensor, which has a size */
    return elems;
}

/* Labels in the order in which all have them. */
static bool is_ordered(const einsum *e, const char *term)
{
    for (int i = 1; term[0] != '\0' && term[i] != '\0'; i++)
        if (strchr(e->labels, term[i]) < strchr(e->labels, term[i - 1])) return false;
    return true;
}

/* Sums an operand over the labels that go, in a tensor of its own. */
static bool sum(einsum *e, uint32_t operand, const bool *goes)
{
    onv_ort_reduction r;
    if (!onv_ort_find_reduction(e->dims[operand], e->n_labels, goes, &r)) return false;
    if (r.columns == 1) return false;
    add(e, r.rows);
    uint64_t number = e->dtype == ONV_DOUBLE ? sizeof(double) : sizeof(float);
    onv_ort_scratch_row *row = onv_ort_add_early(e->kernel, onv_ort_sum_bytes(&r, number), 1);
    if (row != NULL) row->is_transient = true;
    for (int i = 0; i < e->n_labels; i++)
        if (goes[i]) e->dims[operand][i] = onv_dim_const(1);
    return true;
}

/* --- The product ------------------------------------------------------------------------------- */

typedef struct permutation {
    int at[MOST_LABELS], n;
} permutation;

static void append(permutation *to, const permutation *what)
{
    for (int i = 0; i < what->n; i++) to->at[to->n++] = what->at[i];
}

/* The operand with its axes in that order: another tensor, but where a sum made it and no axis of more than one element moves. */
static void permute(const einsum *e, uint32_t operand, bool is_own, const permutation *p)
{
    bool is_same = true, keeps = true;
    for (int i = 0, last = 0; i < p->n; i++) {
        is_same &= p->at[i] == i;
        if (e->dims[operand][p->at[i]].raw == 1) continue;
        keeps &= p->at[i] >= last;
        last = p->at[i];
    }
    if (!is_same && !(is_own && keeps)) add(e, elements(e->dims[operand], e->n_labels));
}

/* The labels of the product, in its order. */
static void multiply(einsum *e, const bool *goes, char *product)
{
    permutation both = {.n = 0}, left = both, right = both, summed = both;
    bool alone[MOST_LABELS] = {false}, is_own[OPERANDS] = {false};
    for (uint32_t k = 0; k < OPERANDS; k++) {
        for (int i = 0; i < e->n_labels; i++) alone[i] = goes[i] && e->dims[1 - k][i].raw == 1;
        is_own[k] = sum(e, k, alone);
    }
    for (int i = 0; i < e->n_labels; i++) {
        bool in_left = e->dims[0][i].raw > 1, in_right = e->dims[1][i].raw > 1;
        permutation *to = goes[i] ? &summed : !in_left ? &right : in_right ? &both : &left;
        to->at[to->n++] = i;
    }
    permutation as_left = both, as_right = both, made = both;
    append(&as_left, &left);
    append(&as_left, &summed);
    append(&as_left, &right);
    append(&as_right, &summed);
    append(&as_right, &right);
    append(&as_right, &left);
    append(&made, &left);
    append(&made, &right);
    permute(e, 0, is_own[0], &as_left);
    permute(e, 1, is_own[1], &as_right);
    uint64_t elems = 1;
    for (int i = 0; i < made.n; i++) {
        const onv_dim *dims = e->dims[i < both.n + left.n ? 0 : 1];
        elems *= (uint64_t)dims[made.at[i]].raw;
        if (strchr(e->of.result, e->labels[made.at[i]]) != NULL) *product++ = e->labels[made.at[i]];
    }
    add(e, elems);
}

void onv_ort_einsum(onv_ort_kernel *k)
{
    const onv_node *node = k->node;
    einsum e = {.kernel = k};
    char made[MOST_LABELS + 1] = "";
    bool goes[MOST_LABELS] = {false}, first[MOST_LABELS] = {false};
    const onv_type *out = &onv_model_value(k->model, node->outputs[0])->type;
    e.dtype = (onv_dtype)out->dtype;
    if (!read_equation(&e, k->model, node)) return;
    for (uint32_t i = 0; i < node->n_inputs; i++)
        if (!is_ordered(&e, e.of.terms[i])) add(&e, elements(e.dims[i], e.n_labels));
    for (int i = 0; i < e.n_labels; i++) {
        goes[i] = strchr(e.of.result, e.labels[i]) == NULL;
        first[i] = goes[i] && strchr(e.of.terms[1], e.labels[i]) == NULL;
        goes[i] &= !first[i];
    }
    sum(&e, 0, first);
    if (node->n_inputs == OPERANDS) multiply(&e, goes, made);
    for (int i = 0, n = 0; node->n_inputs < OPERANDS && i < e.n_labels; i++)
        if (!first[i]) made[n++] = e.labels[i];
    if (strcmp(made, e.of.result) == 0) return;
    onv_ort_scratch_row *last = add(&e, elements(out->dims, out->rank));
    if (last != NULL) last->is_early = false;
}
