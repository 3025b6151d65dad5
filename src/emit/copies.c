/* Copies of gradients that are not in the order of memory that a backward wants.
 *
 * Gradients have strides. They follow from what backward makes: views of the result's gradient are views, products and norms give
 * rows, convolutions the order of their input, and what works element by element the order of what it reads. From the loss on
 * backward, this finds the strides of the gradient of each tensor, where they are known. Then kernels copy the gradients that
 * they want in another order (`grad.contiguous()`), so does a reshape that cannot be a view, products of matrices
 * those that have neither dense rows nor dense columns, and AccumulateGrad those that are not laid out as their parameter is. */
#include "emit/emit.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/quota.h"
#include "ops/op.h"

/* Of all tensors. */
typedef struct gradients {
    onv_emitter *e;
    const int64_t **strides; /* of its gradient; NULL: not known */
    bool *has_come;
} gradients;

static bool is_reflected(const onv_emitter *e, const onv_eager_op *op)
{
    if (!onv_is_node(op->node)) return false;
    const onv_attr *mode = onv_node_attr(onv_model_node(e->model, op->node), "mode");
    return mode != NULL && mode->kind == ONV_ATTR_STRING && strcmp(mode->s, "reflect") == 0;
}

static onv_aten_order order_of(const onv_emitter *e, const onv_eager_op *op)
{
    const onv_aten_op *row = &onv_aten_ops[op->aten];
    if (op->aten == ONV_ATEN_pad && is_reflected(e, op)) return ONV_ORDER_ROWS;
    if (op->aten == ONV_ATEN_pad && op->n_saved > 0) return ONV_ORDER_DENSE;
    return row->form == ONV_ATEN_POINTWISE ? ONV_ORDER_SAME : (onv_aten_order)row->order;
}

/* --- Strides ----------------------------------------------------------------------------------- */

static void dense_strides(const onv_eager_tensor *t, int64_t *strides)
{
    int64_t step = 1;
    for (uint32_t i = t->rank; i-- > 0; step *= t->dims[i]) strides[i] = step;
}

static void channels_last_strides(const onv_eager_tensor *t, int64_t *strides)
{
    dense_strides(t, strides);
    for (uint32_t i = 2; i < t->rank; i++) strides[i] *= t->dims[1];
    strides[1] = 1;
}

/* Dims of 1 have any stride. */
static bool has_strides(const onv_eager_tensor *t, const int64_t *strides)
{
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dims[i] > 1 && t->strides[i] != strides[i]) return false;
    return true;
}

static bool has_same_dims(const onv_eager_tensor *a, const onv_eager_tensor *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

static bool repeats(const onv_eager_tensor *t)
{
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dims[i] > 1 && t->strides[i] == 0) return true;
    return false;
}

/* The strides of x's gradient, of which y is a view of all: those of y's gradient seen through it. False: it cannot be seen so. */
static bool through_view(const onv_eager_tensor *x, const onv_eager_tensor *y, const int64_t *of_y,
                         int64_t *strides)
{
    for (uint32_t i = 0; i < x->rank; i++) {
        int64_t own = x->strides[i];
        strides[i] = 0;
        for (uint32_t j = 0; j < y->rank && x->dims[i] > 1; j++)
            if (y->dims[j] > 1 && y->strides[j] <= own && own < y->strides[j] * y->dims[j])
                strides[i] = of_y[j] * (own / y->strides[j]);
        for (uint32_t j = 0; j < y->rank && x->dims[i] > 1; j++)
            if (y->dims[j] > 1 && y->strides[j] > own && y->strides[j] < own * x->dims[i] &&
                of_y[j] != strides[i] * (y->strides[j] / own))
                return false;
    }
    return true;
}

/* Dense, in the order of `like`, whose last dims are those of x, or are summed to 1. */
static void strides_as(const onv_eager_tensor *x, const onv_eager_tensor *like, int64_t *strides)
{
    onv_eager_tensor t = *x;
    t.strides = like->strides + like->rank - x->rank;
    onv_strides_like(&t, strides);
}

/* The strides of the part of its gradient that an operation hands to an operand as it is: of what was summed, with strides
 * of 0 along the dims that are gone, or of what was joined. */
static bool part_strides(const onv_eager_op *op, const onv_eager_tensor *x,
                         const onv_eager_tensor *grad, int64_t *strides)
{
    if (op->aten == ONV_ATEN_cat && x->rank == grad->rank) {
        memcpy(strides, grad->strides, grad->rank * sizeof *strides);
        return true;
    }
    /* Dims of the result, those that are kept as 1 too, are the operand's from the end on; which are gone is told where all
     * dims differ. */
    if (op->aten != ONV_ATEN_sum && op->aten != ONV_ATEN_mean) return false;
    uint32_t at = grad->rank;
    for (uint32_t i = x->rank; i-- > 0;) {
        bool stays = at > 0 && grad->dims[at - 1] == x->dims[i];
        bool is_kept = !stays && at > 0 && grad->rank == x->rank;
        strides[i] = stays ? grad->strides[at - 1] : 0;
        at -= stays || is_kept;
    }
    return at == 0;
}

/* [batch, rows, heads, values] in memory. */
static void strides_by_rows(const onv_eager_tensor *t, int64_t *strides)
{
    strides[3] = 1;
    strides[1] = t->dims[3];
    strides[2] = t->dims[3] * t->dims[1];
    strides[0] = strides[2] * t->dims[2];
}

/* Whether cuBLAS takes it as it is. */
static bool is_matrix(const onv_eager_tensor *t)
{
    if (t->rank < 2) return true;
    const int64_t *dims = t->dims + t->rank - 2, *strides = t->strides + t->rank - 2;
    return dims[0] < 2 || dims[1] < 2 || strides[0] == 1 || strides[1] == 1;
}

/* --- What backward makes ------------------------------------------------------------------------ */

/* Those of what the gradient is computed with, at the dims of the result: the other factor, or the result. */
static void strides_beside(const onv_emitter *e, const onv_eager_op *op, uint32_t k,
                           const onv_eager_tensor *y, int64_t *strides)
{
    onv_eager_tensor other = *y;
    if (op->aten == ONV_ATEN_mul && op->n_in == 2) other = onv_tensor_at(e, op->in[1 - k].tensor);
    for (uint32_t i = 0; i < y->rank; i++) {
        uint32_t at = i + other.rank - y->rank;
        bool is_whole = at < other.rank && other.dims[at] == y->dims[i];
        strides[i] = is_whole ? other.strides[at] : 0;
    }
}

/* The strides of the gradient of operand k, by that of the result. False: not known. */
static bool made_strides(const onv_emitter *e, const onv_eager_op *op, uint32_t k,
                         onv_aten_order wanted, const onv_eager_tensor *grad, int64_t *strides)
{
    onv_eager_tensor x = onv_tensor_at(e, op->in[k].tensor), y = onv_tensor_at(e, op->out[0]);
    onv_eager_tensor first = onv_tensor_at(e, op->in[0].tensor), like = *grad;
    int64_t beside[ONV_MAX_RANK], of_both[ONV_MAX_RANK];
    dense_strides(&x, strides);
    switch (wanted) {
    case ONV_ORDER_ROWS:
    case ONV_ORDER_DENSE: return true;
    case ONV_ORDER_IMAGES:
        if (k < 2 && x.rank == first.rank && onv_tensor_is_channels_last(&first))
            channels_last_strides(&x, strides);
        return true;
    case ONV_ORDER_SAME:
        if (op->aten == ONV_ATEN_mean) {
            if (!part_strides(op, &x, grad, strides)) return false;
            like = x;
            like.strides = strides;
        }
        if (x.elems < like.elems && op->aten != ONV_ATEN_pad) return true; /* at::sum gives rows */
        if (like.rank < x.rank) return false;
        if (has_same_dims(&like, &y)) {
            strides_beside(e, op, k, &y, beside);
            onv_strides_of_two(&like, beside, of_both);
            like.strides = of_both;
        }
        if (op->aten != ONV_ATEN_dropout || onv_tensor_is_channels_last(&like)) {
            int64_t of_like[ONV_MAX_RANK];
            strides_as(&x, &like, of_like);
            memcpy(strides, of_like, sizeof of_like);
        }
        return true;
    case ONV_ORDER_FACTORS:
        if (x.rank == 2 && x.strides[0] == 1 && x.strides[1] == x.dims[0])
            memcpy(strides, x.strides, 2 * sizeof *strides);
        return true;
    case ONV_ORDER_ATTENTION:
        if (x.rank != 4 || k > 2) return false;
        strides_by_rows(&x, strides);
        return true;
    default: return false;
    }
}

/* Those of a gradient that an operation hands on. A reshape that has no view of it copies it. */
static bool handed_strides(const onv_emitter *e, const onv_eager_op *op, onv_eager_arg *in,
                           const onv_eager_tensor *grad, int64_t *strides)
{
    onv_eager_tensor x = onv_tensor_at(e, in->tensor), y = onv_tensor_at(e, op->out[0]);
    if (has_same_dims(&x, &y) && (x.storage != y.storage || has_strides(&x, y.strides))) {
        memcpy(strides, grad->strides, x.rank * sizeof *strides);
        return true;
    }
    if (x.elems != y.elems || x.elems == 0 || repeats(&x)) return false;
    bool is_view = x.storage == y.storage ? through_view(&x, &y, grad->strides, strides)
                                          : onv_view_strides(grad, x.rank, x.dims, strides);
    if (is_view) return true;
    in->grad = ONV_GRAD_NEW;
    dense_strides(&x, strides);
    return true;
}

static void send(gradients *g, uint32_t tensor, const int64_t *strides)
{
    onv_eager_tensor t = onv_tensor_at(g->e, tensor), before = t;
    before.strides = g->strides[tensor];
    /* The first one is added to, but where it repeats elements: the sum has the order of the next one. */
    if (g->has_come[tensor] && (before.strides == NULL || !repeats(&before))) return;
    g->has_come[tensor] = true;
    if (strides == NULL) return;
    g->strides[tensor] = has_strides(&t, strides) ? t.strides
                                                  : onv_arena_copy(&g->e->model->arena, strides,
                                                                   t.rank * sizeof *strides);
    if (g->strides[tensor] == NULL && t.rank > 0) onv_emit_fail_memory(g->e);
}

/* Of the result's gradient, which is not as the backward wants it. */
static bool copies(const onv_emitter *e, const onv_eager_op *op, onv_aten_order wanted,
                   const onv_eager_tensor *grad)
{
    onv_eager_tensor x = onv_tensor_at(e, op->in[0].tensor);
    int64_t strides[ONV_MAX_RANK];
    if (wanted == ONV_ORDER_ROWS) return !onv_tensor_is_contiguous(grad);
    if (wanted == ONV_ORDER_FACTORS) return !is_matrix(grad) && !e->options->on_cpu;
    if (wanted == ONV_ORDER_ATTENTION && grad->rank == 4)
        strides_by_rows(grad, strides);
    else if (wanted == ONV_ORDER_IMAGES && onv_tensor_is_channels_last(&x) && grad->rank == x.rank)
        channels_last_strides(grad, strides);
    else
        return wanted == ONV_ORDER_IMAGES && !onv_tensor_is_contiguous(grad);
    return !has_strides(grad, strides);
}

/* Gradients of a split's parts are joined, which leaves channels last where all of them have that. */
static bool joins_channels_last(const gradients *g, const onv_eager_op *op)
{
    for (uint32_t i = 0; i < op->n_out; i++) {
        onv_eager_tensor part = onv_tensor_at(g->e, op->out[i]);
        part.strides = g->strides[op->out[i]];
        if (part.strides == NULL || !onv_tensor_is_channels_last(&part)) return false;
    }
    return op->aten == ONV_ATEN_split;
}

static void go_back(gradients *g, onv_eager_op *op)
{
    onv_emitter *e = g->e;
    onv_aten_order wanted = order_of(e, op);
    onv_eager_tensor grad = onv_tensor_at(e, op->out[0]);
    bool is_known = g->strides[op->out[0]] != NULL;
    if (is_known) grad.strides = g->strides[op->out[0]];
    if (op->rnn > 0)
        e->eager->rnns.at[op->rnn - 1].copies_grad = is_known && !onv_tensor_is_contiguous(&grad);
    else if (is_known && copies(e, op, wanted, &grad))
        op->grad_copy_bytes = grad.bytes;
    for (uint32_t k = 0; k < op->n_in; k++) {
        onv_eager_arg *in = &op->in[k];
        int64_t strides[ONV_MAX_RANK];
        onv_eager_tensor x = onv_tensor_at(e, in->tensor);
        bool needs = wanted != ONV_ORDER_ROWS && wanted != ONV_ORDER_DENSE &&
                     wanted != ONV_ORDER_IMAGES && wanted != ONV_ORDER_FACTORS;
        bool told = is_known || !needs;
        if (in->grad == ONV_GRAD_NONE) continue;
        if (in->grad == ONV_GRAD_ALIAS)
            told = is_known && handed_strides(e, op, in, &grad, strides);
        else if (in->grad == ONV_GRAD_PART)
            told = is_known && part_strides(op, &x, &grad, strides);
        else
            told =
                told && in->grad == ONV_GRAD_NEW && made_strides(e, op, k, wanted, &grad, strides);
        if (told && joins_channels_last(g, op)) channels_last_strides(&x, strides);
        send(g, in->tensor, told ? strides : NULL);
    }
}

/* The caller's gradient is dense. */
static void begin_at(gradients *g, uint32_t tensor)
{
    int64_t strides[ONV_MAX_RANK];
    onv_eager_tensor t = onv_tensor_at(g->e, tensor);
    if (tensor == ONV_NO_TENSOR) return;
    dense_strides(&t, strides);
    send(g, tensor, strides);
}

void onv_copies_add(onv_emitter *e)
{
    onv_eager *eager = e->eager;
    gradients g = {.e = e,
                   .strides = ONV_EMIT_ARRAY(e, const int64_t *, eager->tensors.count),
                   .has_come = ONV_EMIT_ARRAY(e, bool, eager->tensors.count)};
    if (e->status != ONV_OK) return;
    begin_at(&g, eager->loss);
    for (size_t i = 0; i < eager->outputs.count && eager->loss == ONV_NO_TENSOR; i++)
        begin_at(&g, eager->outputs.at[i]);
    for (size_t i = eager->ops.count; i-- > 0 && e->status == ONV_OK;) {
        onv_eager_op *op = &eager->ops.at[i];
        if (!onv_work(1 + op->n_in)) e->status = ONV_ERR_CANCELLED;
        if (op->has_backward && op->n_out > 0 && op->n_in > 0) go_back(&g, op);
    }
    for (size_t i = 0; i < eager->tensors.count && e->status == ONV_OK; i++) {
        onv_eager_tensor *t = &eager->tensors.at[i];
        t->copies_grad = t->is_leaf && g.strides[i] != NULL && !has_strides(t, g.strides[i]);
    }
}
