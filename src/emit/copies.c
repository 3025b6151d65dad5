/* Copies of gradients that are not contiguous: between a linear layer and a convolution over time, an
 * interpolation or a padding, networks swap channels and time. The swap is a view, so the gradient arrives
 * in the other order: kernels copy it, those of batch norms too, and so does the reshape that a linear layer begins with.
 * Products of matrices copy those that have neither dense rows nor dense columns. */
#include "emit/emit.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"

#include "ops/op.h"

enum { MANY = UINT32_MAX };

enum { MAX_VIEWS = 6, MAX_VIEWS_BETWEEN = 16 };

typedef struct readers {
    uint32_t *of;   /* by tensor: 1 + the operation that reads it, 0: none, MANY */
    bool *is_whole; /* by tensor: each of those gives a dense gradient of all of it */
} readers;

static void dense_strides(const onv_eager_tensor *t, int64_t *strides)
{
    int64_t step = 1;
    for (uint32_t i = t->rank; i-- > 0; step *= t->dims[i]) strides[i] = step;
}

static const onv_eager_op *sole_reader(const onv_emitter *e, const readers *r, uint32_t tensor)
{
    uint32_t at = r->of[tensor];
    return at == 0 || at == MANY ? NULL : &e->eager->ops.at[at - 1];
}

/* The view that swaps the last two dims of a tensor of rank 3 alone, through which it is read. */
static const onv_eager_op *swapped_view(const onv_emitter *e, const readers *r, uint32_t tensor)
{
    onv_eager_tensor t = onv_tensor_at(e, tensor);
    const onv_eager_op *view = t.rank == 3 ? sole_reader(e, r, tensor) : NULL;
    if (view == NULL || view->aten != ONV_ATEN_permute || view->n_out != 1) return NULL;
    onv_eager_tensor v = onv_tensor_at(e, view->out[0]);
    if (v.dims[0] != t.dims[0] || v.dims[1] != t.dims[2] || v.strides[1] != t.strides[2] ||
        v.dims[1] < 2 || v.dims[2] < 2)
        return NULL;
    return view;
}

static const onv_eager_op *reader_of_swapped(const onv_emitter *e, const readers *r,
                                             uint32_t tensor)
{
    const onv_eager_op *view = swapped_view(e, r, tensor);
    return view != NULL ? sole_reader(e, r, view->out[0]) : NULL;
}

/* The strides of the part of its gradient that an operation hands to an operand as it is: of what was summed, with strides
 * of 0 along the dims that are gone, or of what was joined. */
static bool part_strides(const onv_emitter *e, const onv_eager_op *op, uint32_t k, int64_t *strides)
{
    onv_eager_tensor x = onv_tensor_at(e, op->in[k].tensor), y = onv_tensor_at(e, op->out[0]);
    int64_t step = 1;
    if (op->aten == ONV_ATEN_cat && x.rank == y.rank) {
        memcpy(strides, y.strides, y.rank * sizeof *strides);
        return true;
    }
    /* Dims of the result, those that are kept as 1 too, are the operand's from the end on; which are gone is told where all
     * dims differ. */
    if (op->aten != ONV_ATEN_sum) return false;
    uint32_t at = y.rank;
    for (uint32_t i = x.rank; i-- > 0;) {
        bool stays = at > 0 && y.dims[at - 1] == x.dims[i];
        bool is_kept = !stays && at > 0 && y.rank == x.rank;
        strides[i] = stays ? step : 0;
        if (stays) step *= x.dims[i];
        at -= stays || is_kept;
    }
    return at == 0;
}

/* Patches: the places of an image in one dim, which is swapped with the channels, or channels moved last. The
 * gradient comes in the order of what reads that, but of another convolution, or one whose order it is. */
static bool is_read_swapped(const onv_emitter *e, const readers *r, const onv_eager_op *op)
{
    uint32_t tensor = op->out[0];
    bool is_swapped = false;
    onv_eager_tensor x = onv_tensor_at(e, op->in[0].tensor);
    if (onv_tensor_is_channels_last(&x)) return false;
    for (uint32_t k = 0; k < MAX_VIEWS; k++) {
        const onv_eager_op *next = sole_reader(e, r, tensor);
        if (next == NULL || next->n_out != 1) return false;
        bool is_view = onv_tensor_at(e, next->out[0]).storage == onv_tensor_at(e, tensor).storage;
        if (!is_view) return is_swapped && next->aten != ONV_ATEN_conv;
        is_swapped |= next->aten == ONV_ATEN_permute;
        tensor = next->out[0];
    }
    return false;
}

typedef enum kernel {
    OTHER,
    COPIES, /* gradients of its result that are not contiguous; that of its input is */
    STRIDES /* the same, but takes any strides */
} kernel;

static kernel kernel_of(const onv_emitter *e, const onv_eager_op *op)
{
    if (!onv_is_node(op->node) || op->n_in == 0 || op->n_out == 0) return OTHER;
    if (op->aten == ONV_ATEN_conv || op->aten == ONV_ATEN_upsample || op->aten == ONV_ATEN_im2col)
        return COPIES;
    const onv_node *node = onv_model_node(e->model, op->node);
    const onv_attr *mode = onv_node_attr(node, "mode");
    if (op->aten != ONV_ATEN_pad || mode == NULL || mode->kind != ONV_ATTR_STRING) return OTHER;
    if (strcmp(mode->s, "reflect") == 0) return COPIES;
    return strcmp(mode->s, "edge") == 0 ? STRIDES : OTHER;
}

static bool has_dims_of(const onv_emitter *e, uint32_t tensor, uint32_t other)
{
    onv_eager_tensor a = onv_tensor_at(e, tensor), b = onv_tensor_at(e, other);
    return a.rank == b.rank && memcmp(a.dims, b.dims, a.rank * sizeof *a.dims) == 0;
}

/* The softmax's kernel wants a contiguous gradient. A product, or the copy that a reshape makes, gives one in the order in
 * which it reads: through a permutation that is not the softmax's, and through dropout, which keeps it. */
static bool is_read_permuted(const onv_emitter *e, const readers *r, const onv_eager_op *op)
{
    if (op->aten != ONV_ATEN_softmax && op->aten != ONV_ATEN_log_softmax) return false;
    uint32_t tensor = op->out[0];
    bool is_permuted = false;
    for (uint32_t k = 0; k < MAX_VIEWS; k++) {
        const onv_eager_op *next = sole_reader(e, r, tensor);
        if (next == NULL || next->n_out != 1) return false;
        bool reads_rows = next->aten == ONV_ATEN_reshape || next->aten == ONV_ATEN_bmm ||
                          next->aten == ONV_ATEN_mm || next->aten == ONV_ATEN_matmul;
        if (is_permuted && reads_rows) return true;
        bool is_permute = next->aten == ONV_ATEN_permute;
        onv_eager_tensor t = onv_tensor_at(e, next->out[0]);
        bool is_same = has_dims_of(e, next->out[0], tensor) &&
                       (next->aten == ONV_ATEN_expand || next->aten == ONV_ATEN_view);
        if (!is_permute && !is_same && next->aten != ONV_ATEN_dropout) return false;
        tensor = next->out[0];
        if (is_permute) is_permuted = !onv_tensor_is_contiguous(&t);
    }
    return false;
}

/* A norm of sequences whose channels stand last: what reads the result does so in that order. */
static bool is_swapped_norm(const onv_emitter *e, const readers *r, const onv_eager_op *op)
{
    const onv_eager_op *view = swapped_view(e, r, op->out[0]);
    const onv_eager_op *next = view != NULL ? sole_reader(e, r, view->out[0]) : NULL;
    return view != NULL && (next == NULL || next->aten != ONV_ATEN_permute);
}

/* The strides of a gradient in front of a permutation, whose result has it in these: dims are told by their own strides. */
static bool strides_before(const onv_eager_tensor *x, const onv_eager_tensor *y,
                           const int64_t *strides, int64_t *before)
{
    uint32_t taken = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        uint32_t k = 0;
        while (k < y->rank && ((taken & ONV_BIT(k)) != 0 || y->dims[k] != x->dims[i] ||
                               (x->dims[i] > 1 && y->strides[k] != x->strides[i])))
            k++;
        if (k == y->rank && x->dims[i] > 1) return false;
        before[i] = k < y->rank ? strides[k] : 0;
        if (k < y->rank) taken |= ONV_BIT(k);
    }
    return true;
}

/* The memory-efficient attention takes a gradient in which rows of all heads follow each other, [batch, rows, heads, values] in
 * memory; nn.MultiheadAttention reads the result with the rows first. */
static bool is_read_by_steps(const onv_emitter *e, const readers *r, const onv_eager_op *op)
{
    int64_t dense[ONV_MAX_RANK], before[ONV_MAX_RANK], dims[4], strides[4];
    static const uint32_t order[] = {0, 2, 1, 3};
    onv_eager_tensor x = onv_tensor_at(e, op->out[0]);
    if (op->aten != ONV_ATEN_efficient_attention || x.rank != 4) return false;
    const onv_eager_op *view = sole_reader(e, r, op->out[0]);
    if (view == NULL || view->aten != ONV_ATEN_permute) return false;
    onv_eager_tensor y = onv_tensor_at(e, view->out[0]);
    dense_strides(&y, dense);
    if (!strides_before(&x, &y, dense, before)) return false;
    for (uint32_t i = 0; i < 4; i++) {
        dims[i] = x.dims[order[i]];
        strides[i] = before[order[i]];
    }
    x.dims = dims;
    x.strides = strides;
    return !onv_tensor_is_contiguous(&x);
}

static bool copies(const onv_emitter *e, const readers *r, const onv_eager_op *op)
{
    if (!op->has_backward || op->n_in == 0 || op->n_out == 0) return false;
    if (op->aten == ONV_ATEN_batch_norm || op->aten == ONV_ATEN_group_norm ||
        op->aten == ONV_ATEN_layer_norm)
        return is_swapped_norm(e, r, op);
    if (is_read_permuted(e, r, op) || is_read_by_steps(e, r, op)) return true;
    if (op->aten == ONV_ATEN_conv && onv_tensor_at(e, op->out[0]).rank > 3)
        return is_read_swapped(e, r, op);
    const onv_eager_op *next = reader_of_swapped(e, r, op->out[0]);
    if (next == NULL) return false;
    if (kernel_of(e, op) == COPIES) return next->aten == ONV_ATEN_reshape;
    return op->aten == ONV_ATEN_view && onv_tensor_at(e, op->in[0].tensor).rank == 2 &&
           kernel_of(e, next) != OTHER;
}

/* Kernels whose backward begins with `grad.contiguous()`. */
static bool wants_dense(const onv_eager_op *op)
{
    static const uint16_t kernels[] = {
        ONV_ATEN_embedding,  ONV_ATEN_conv,       ONV_ATEN_batch_norm, ONV_ATEN_layer_norm,
        ONV_ATEN_group_norm, ONV_ATEN_max_pool,   ONV_ATEN_avg_pool,   ONV_ATEN_adaptive_max_pool,
        ONV_ATEN_upsample,   ONV_ATEN_log_softmax};
    bool wants = false;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) wants |= op->aten == kernels[i];
    return wants && op->has_backward;
}

/* Their backward gives the gradient of all of the input, or of each of its rows, without gaps in the order of its dims. */
static bool gives_dense(const onv_eager_op *op)
{
    static const uint16_t calls[] = {ONV_ATEN_split, ONV_ATEN_unbind,  ONV_ATEN_select,
                                     ONV_ATEN_slice, ONV_ATEN_softmax, ONV_ATEN_log_softmax};
    bool gives = false;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) gives |= op->aten == calls[i];
    return gives && op->has_backward;
}

static void copy_gradient(onv_emitter *e, onv_eager_op *op)
{
    uint64_t bytes = onv_tensor_at(e, op->out[0]).bytes;
    if (!onv_u64_add(op->backward_temp_bytes, bytes, &op->backward_temp_bytes))
        op->backward_temp_bytes = UINT64_MAX;
}

/* Such a part comes back through views; the first that cannot be one of it copies it (`grad.reshape()`). */
static void copy_part(onv_emitter *e, const readers *r, const uint32_t *made_by,
                      const onv_eager_op *op, uint32_t k)
{
    int64_t strides[ONV_MAX_RANK], before[ONV_MAX_RANK];
    uint32_t tensor = op->in[k].tensor;
    bool is_whole = k == 0 && r->is_whole[tensor];
    onv_eager_tensor whole = onv_tensor_at(e, tensor);
    if (is_whole)
        dense_strides(&whole, strides);
    else if (op->in[k].grad != ONV_GRAD_PART || !part_strides(e, op, k, strides))
        return;
    r->is_whole[tensor] = false; /* once */
    for (uint32_t n = 0; n < MAX_VIEWS; n++) {
        uint32_t maker = made_by[tensor];
        if ((sole_reader(e, r, tensor) == NULL && n > 0) || maker == 0) return;
        onv_eager_op *view = &e->eager->ops.at[maker - 1];
        onv_eager_tensor part = onv_tensor_at(e, tensor);
        onv_eager_tensor gradient = part;
        gradient.strides = strides;
        if (!is_whole && !onv_tensor_is_contiguous(&gradient) && wants_dense(view))
            copy_gradient(e, view);
        if (view->n_in == 0) return;
        onv_eager_tensor x = onv_tensor_at(e, view->in[0].tensor);
        bool permutes = view->aten == ONV_ATEN_permute;
        if ((!permutes && view->aten != ONV_ATEN_view) || view->in[0].grad != ONV_GRAD_ALIAS ||
            (permutes && !strides_before(&x, &part, strides, before)))
            return;
        if (!permutes && !onv_view_strides(&gradient, x.rank, x.dims, before)) {
            view->in[0].grad = ONV_GRAD_NEW;
            return;
        }
        memcpy(strides, before, sizeof strides);
        tensor = view->in[0].tensor;
    }
}

/* The strides of the gradient of a contiguous tensor, of which it gets that of a view: x, whose own gradient is
 * contiguous. False: the gradient cannot be seen so, or not all of the tensor is read. */
static bool strides_behind(const onv_eager_tensor *base, const onv_eager_tensor *x,
                           int64_t *strides)
{
    int64_t of_x[ONV_MAX_RANK] = {0};
    if (base->elems != x->elems || x->elems == 0) return false;
    dense_strides(x, of_x);
    for (uint32_t i = 0; i < base->rank; i++) strides[i] = 0;
    for (uint32_t i = 0; i < base->rank; i++) {
        int64_t own = base->strides[i];
        for (uint32_t j = 0; j < x->rank && base->dims[i] > 1; j++)
            if (x->dims[j] > 1 && x->strides[j] <= own && own < x->strides[j] * x->dims[j])
                strides[i] = of_x[j] * (own / x->strides[j]);
        for (uint32_t j = 0; j < x->rank && base->dims[i] > 1; j++)
            if (x->dims[j] > 1 && x->strides[j] > own && x->strides[j] < own * base->dims[i] &&
                of_x[j] != strides[i] * (x->strides[j] / own))
                return false;
    }
    return true;
}

/* The view of all of a product whose gradient is contiguous: what another product reads, or has copied for it. What reads
 * the result of an einsum otherwise gives a gradient in the order of that. */
static uint32_t view_with_dense_gradient(const onv_emitter *e, const readers *r,
                                         const onv_eager_op *product)
{
    uint32_t tensor = product->out[0], own = tensor;
    const onv_eager_op *next = sole_reader(e, r, tensor);
    for (uint32_t k = 0; k < MAX_VIEWS_BETWEEN && next != NULL && next->n_out == 1; k++) {
        if (onv_tensor_at(e, next->out[0]).storage != onv_tensor_at(e, tensor).storage) break;
        tensor = next->out[0];
        if (next->node.index == product->node.index) own = tensor;
        next = sole_reader(e, r, tensor);
    }
    bool copies = next != NULL && next->aten == ONV_ATEN_reshape && next->n_out == 1;
    if (copies) next = sole_reader(e, r, next->out[0]);
    if (next != NULL && next->aten == ONV_ATEN_bmm) return tensor;
    bool is_einsum = onv_is_node(product->node) &&
                     onv_model_node(e->model, product->node)->code == ONV_OP_Einsum;
    return is_einsum ? own : ONV_NO_TENSOR;
}

/* CUDA's products copy a matrix that has neither rows nor columns that are dense, once for each gradient that they make,
 * beside it. */
static bool copies_for_product(const onv_emitter *e, const readers *r, const onv_eager_op *op)
{
    int64_t strides[ONV_MAX_RANK];
    if (op->aten != ONV_ATEN_bmm || !op->has_backward || e->options->on_cpu) return false;
    uint32_t view = view_with_dense_gradient(e, r, op);
    if (view == ONV_NO_TENSOR) return false;
    onv_eager_tensor product = onv_tensor_at(e, op->out[0]), x = onv_tensor_at(e, view);
    if (product.rank != 3 || !strides_behind(&product, &x, strides)) return false;
    return product.dims[1] > 1 && product.dims[2] > 1 && strides[1] != 1 && strides[2] != 1;
}

/* An operation of one tensor element by element, summed over a dim: the gradient of the sum, with strides of 0, leaves the order of
 * what backward reads beside it. */
static bool keeps_order_of_sum(const onv_emitter *e, const readers *r, uint32_t tensor)
{
    const onv_eager_op *op = sole_reader(e, r, tensor);
    if (op == NULL || op->n_in != 1 || op->n_out != 1 || op->n_saved == 0 ||
        !has_dims_of(e, op->out[0], tensor))
        return false;
    const onv_eager_op *next = sole_reader(e, r, op->out[0]);
    return next != NULL && (next->aten == ONV_ATEN_sum || next->aten == ONV_ATEN_mean);
}

/* cuDNN wants the gradient of all steps in their order. It comes in that in which the result is read. */
static bool is_read_by_batch(const onv_emitter *e, const readers *r, const onv_eager_op *op)
{
    uint32_t tensor = op->out[0];
    onv_eager_tensor out = onv_tensor_at(e, tensor), read = out;
    for (uint32_t k = 0; k < MAX_VIEWS; k++) {
        const onv_eager_op *view = sole_reader(e, r, tensor);
        if (view == NULL || view->n_out != 1) break;
        onv_eager_tensor next = onv_tensor_at(e, view->out[0]);
        if (next.storage != out.storage || next.elems != out.elems) break;
        tensor = view->out[0];
        read = next;
    }
    int64_t strides[ONV_MAX_RANK];
    if (keeps_order_of_sum(e, r, tensor) || !strides_behind(&out, &read, strides)) return false;
    out.strides = strides;
    return !onv_tensor_is_contiguous(&out);
}

void onv_copies_add(onv_emitter *e)
{
    readers r = {.of = ONV_ARENA_ARRAY(&e->model->arena, uint32_t, e->eager->tensors.count),
                 .is_whole = ONV_ARENA_ARRAY(&e->model->arena, bool, e->eager->tensors.count)};
    uint32_t *made_by = ONV_ARENA_ARRAY(&e->model->arena, uint32_t, e->eager->tensors.count);
    if (r.of == NULL || r.is_whole == NULL || made_by == NULL) {
        e->status = onv_fail_memory(e->err);
        return;
    }
    for (uint32_t i = 0; i < e->eager->ops.count; i++) {
        const onv_eager_op *op = &e->eager->ops.at[i];
        for (uint32_t k = 0; k < op->n_in; k++) {
            uint32_t *reader = &r.of[op->in[k].tensor];
            bool *is_whole = &r.is_whole[op->in[k].tensor];
            *is_whole = gives_dense(op) && (*reader == 0 || *is_whole);
            *reader = *reader == 0 ? i + 1 : MANY;
        }
        for (uint32_t k = 0; k < op->n_out; k++) made_by[op->out[k]] = i + 1;
    }
    for (uint32_t i = 0; i < e->eager->ops.count; i++) {
        onv_eager_op *op = &e->eager->ops.at[i];
        for (uint32_t k = 0; k < op->n_in; k++)
            if (op->n_out == 1 || r.is_whole[op->in[k].tensor]) copy_part(e, &r, made_by, op, k);
        if (op->rnn > 0) e->eager->rnns.at[op->rnn - 1].copies_grad = is_read_by_batch(e, &r, op);
        if (copies(e, &r, op) || copies_for_product(e, &r, op)) copy_gradient(e, op);
    }
}
