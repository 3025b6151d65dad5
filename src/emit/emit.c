#include "emit/emit.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "eager/pytorch.h"

void onv_emit_fail_memory(onv_emitter *e)
{
    if (e->status == ONV_OK) e->status = onv_fail_memory(e->err);
}

void *onv_emit_checked(onv_emitter *e, void *array)
{
    if (array == NULL) onv_emit_fail_memory(e);
    return array;
}

static void fail_overflow(onv_emitter *e)
{
    if (e->status == ONV_OK)
        e->status = onv_fail(e->err, ONV_ERR_OVERFLOW, "the size of a tensor does not fit 64 bits");
}

void onv_emitter_cleanup(onv_emitter *e)
{
    onv_vec_cleanup(&e->in);
    onv_vec_cleanup(&e->out);
    onv_vec_cleanup(&e->keep);
    onv_vec_cleanup(&e->extra);
    onv_vec_cleanup(&e->saved);
    onv_vec_cleanup(&e->low_precision);
    onv_vec_cleanup(&e->cast_parameters);
}

/* --- Tensors ----------------------------------------------------------------------------------- */

bool onv_tensor_has_dims(const onv_emitter *e, uint32_t tensor, uint32_t rank, const int64_t *dims)
{
    onv_eager_tensor t = onv_tensor_at(e, tensor);
    bool same = tensor != ONV_NO_TENSOR && t.rank == rank;
    for (uint32_t i = 0; same && i < rank; i++) same = t.dims[i] == dims[i];
    return same;
}

onv_eager_tensor onv_tensor_at(const onv_emitter *e, uint32_t tensor)
{
    if (tensor == ONV_NO_TENSOR) return (onv_eager_tensor){.storage = UINT32_MAX};
    return e->eager->tensors.at[tensor];
}

bool onv_tensor_needs_grad(const onv_emitter *e, uint32_t tensor)
{
    return tensor != ONV_NO_TENSOR && e->eager->tensors.at[tensor].needs_grad;
}

bool onv_tensor_is_float(const onv_emitter *e, uint32_t tensor)
{
    return tensor != ONV_NO_TENSOR &&
           onv_dtype_is_float((onv_dtype)e->eager->tensors.at[tensor].dtype);
}

uint32_t onv_storage_new(onv_emitter *e, uint64_t bytes, onv_storage_kind kind, const char *label)
{
    if (e->status != ONV_OK) return UINT32_MAX;
    onv_eager_storage storage = {.bytes = bytes,
                                 .kind = (uint8_t)kind,
                                 .label = label,
                                 .becomes = UINT32_MAX,
                                 .value = ONV_NO_VALUE};
    if (!onv_vec_push(&e->eager->storages, storage) || !onv_vec_push(&e->saved, false) ||
        !onv_vec_push(&e->low_precision, ONV_NO_TENSOR)) {
        onv_emit_fail_memory(e);
        return UINT32_MAX;
    }
    return (uint32_t)e->eager->storages.count - 1;
}

/* In training, products of any of the dims must fit, those that a dim of 0 hides too. */
static bool count_elems(onv_emitter *e, uint8_t dtype, uint32_t rank, const int64_t *dims,
                        uint64_t *elems, uint64_t *bytes)
{
    uint64_t product = 1;
    bool fits = true, empty = false;
    for (uint32_t i = 0; i < rank; i++) {
        empty |= dims[i] == 0;
        if (dims[i] > 0) fits &= onv_u64_mul(product, (uint64_t)dims[i], &product);
    }
    if (empty && e->options->inference) {
        product = 0;
        fits = true;
    }
    *elems = empty ? 0 : product;
    if (fits && product <= INT64_MAX && onv_dtype_bytes((onv_dtype)dtype, *elems, bytes))
        return true;
    fail_overflow(e);
    return false;
}

/* The stride of dim i, where those behind it have `step` elements. */
static int64_t stride_at(const int64_t *strides, uint32_t i, int64_t step)
{
    return strides != NULL ? strides[i] : step;
}

/* The product of all dims was checked. */
static int64_t next_step(const onv_eager_tensor *t, int64_t step, int64_t dim)
{
    return t->elems > 0 ? step * dim : step;
}

static bool is_laid_out(const onv_eager_tensor *t, const onv_eager_tensor *as, const int64_t *dims,
                        const int64_t *strides)
{
    int64_t step = 1;
    if (as->rank != t->rank) return false;
    for (uint32_t i = t->rank; i-- > 0;) {
        if (as->dims[i] != dims[i] || as->strides[i] != stride_at(strides, i, step)) return false;
        step = next_step(t, step, dims[i]);
    }
    return true;
}

/* Neighbours that are alike have dims and strides together. */
static bool lay_out(onv_emitter *e, onv_eager_tensor *t, const int64_t *dims,
                    const int64_t *strides)
{
    enum { LOOKS_BACK = 4 };
    size_t n = e->eager->tensors.count;
    int64_t step = 1;
    for (size_t i = 0; i < LOOKS_BACK && i < n; i++) {
        const onv_eager_tensor *as = &e->eager->tensors.at[n - 1 - i];
        if (!is_laid_out(t, as, dims, strides)) continue;
        t->dims = as->dims;
        t->strides = as->strides;
        return true;
    }
    int64_t *copy = onv_arena_alloc(&e->eager->arena, 2 * (size_t)t->rank * sizeof *copy);
    if (copy == NULL) return false;
    for (uint32_t i = t->rank; i-- > 0;) {
        copy[i] = dims[i];
        copy[t->rank + i] = stride_at(strides, i, step);
        step = next_step(t, step, dims[i]);
    }
    t->dims = copy;
    t->strides = copy + t->rank;
    return true;
}

uint32_t onv_tensor_on(onv_emitter *e, uint32_t storage, uint8_t dtype, uint32_t rank,
                       const int64_t *dims, const int64_t *strides)
{
    if (e->status != ONV_OK) return ONV_NO_TENSOR;
    onv_eager_tensor t = {.storage = storage, .dtype = dtype, .rank = rank};
    if (!count_elems(e, dtype, rank, dims, &t.elems, &t.bytes)) return ONV_NO_TENSOR;
    if (!lay_out(e, &t, dims, strides)) {
        onv_emit_fail_memory(e);
        return ONV_NO_TENSOR;
    }
    if (!onv_vec_push(&e->eager->tensors, t)) {
        onv_emit_fail_memory(e);
        return ONV_NO_TENSOR;
    }
    return (uint32_t)e->eager->tensors.count - 1;
}

uint32_t onv_tensor_new(onv_emitter *e, uint8_t dtype, uint32_t rank, const int64_t *dims,
                        const int64_t *strides)
{
    uint32_t tensor = onv_tensor_on(e, UINT32_MAX, dtype, rank, dims, strides);
    if (tensor == ONV_NO_TENSOR) return tensor;
    const char *label = onv_is_node(e->node) ? onv_model_node(e->model, e->node)->name : "loss";
    uint32_t storage =
        onv_storage_new(e, e->eager->tensors.at[tensor].bytes, ONV_STORAGE_ACTIVATION, label);
    e->eager->tensors.at[tensor].storage = storage;
    return storage == UINT32_MAX ? ONV_NO_TENSOR : tensor;
}

bool onv_tensor_is_contiguous(const onv_eager_tensor *t)
{
    int64_t step = 1;
    if (t->elems == 0) return true;
    for (uint32_t i = t->rank; i-- > 0;) {
        if (t->dims[i] == 1) continue;
        if (t->strides[i] != step) return false;
        step *= t->dims[i];
    }
    return true;
}

bool onv_tensor_is_channels_last(const onv_eager_tensor *t)
{
    static const uint8_t order[2][5] = {{1, 3, 2, 0}, {1, 4, 3, 2, 0}};
    int64_t least = 0;
    if (t->rank != 4 && t->rank != 5) return false;
    for (uint32_t i = 0; i < t->rank; i++) {
        uint32_t d = order[t->rank - 4][i];
        if (t->strides[d] < least || (d == 0 && least == t->strides[1])) return false;
        least = t->strides[d] * (t->dims[d] > 1 ? t->dims[d] : 1);
    }
    return t->strides[1] != 0;
}

/* Above 0: dim `a`, which is so far inside of `b`, goes outside of it. 0: strides of 0 do not decide. */
static int compare_dims(const int64_t *dims, const int64_t *strides, uint32_t a, uint32_t b)
{
    int64_t x = strides[a], y = strides[b];
    if (x == 0 || y == 0) return 0;
    return x != y ? (x > y) - (x < y) : dims[a] > dims[b];
}

/* PyTorch's iterator gives a pointwise result the memory order of its operands (TensorIteratorBase::reorder_dimensions). So do copies
 * of what is not dense (infer_dense_strides, ExpandUtils.cpp). */
void onv_strides_of_two(const onv_eager_tensor *in, const int64_t *second, int64_t *strides)
{
    uint32_t order[ONV_MAX_RANK] = {0}; /* the innermost first */
    for (uint32_t i = 0; i < in->rank; i++) {
        uint32_t at = i;
        order[i] = in->rank - 1 - i;
        for (uint32_t k = i; k-- > 0;) {
            int side = compare_dims(in->dims, in->strides, order[k], order[at]);
            if (side == 0 && second != NULL)
                side = compare_dims(in->dims, second, order[k], order[at]);
            if (side < 0) break;
            if (side == 0) continue;
            uint32_t dim = order[k];
            order[k] = order[at];
            order[at] = dim;
            at = k;
        }
    }
    int64_t step = 1;
    for (uint32_t i = 0; i < in->rank; i++) {
        strides[order[i]] = step;
        step *= in->elems > 0 ? in->dims[order[i]] : 1;
    }
}

void onv_strides_like(const onv_eager_tensor *in, int64_t *strides)
{
    onv_strides_of_two(in, NULL, strides);
}

const int64_t *onv_image_strides(const onv_eager_tensor *like, uint32_t rank, const int64_t *dims,
                                 int64_t *room)
{
    onv_eager_tensor image = *like;
    if (rank != like->rank || !onv_tensor_is_channels_last(like)) return NULL;
    image.dims = dims;
    image.elems = 1; /* strides of an empty tensor would say nothing */
    onv_strides_like(&image, room);
    return room;
}

/* --- Operations -------------------------------------------------------------------------------- */

static void begin(onv_emitter *e, const char *name, uint16_t aten)
{
    e->op = (onv_eager_op){.name = name, .aten = aten, .node = e->node, .part = e->part};
    e->is_building = true;
    e->in.count = e->out.count = e->keep.count = e->extra.count = 0;
}

void onv_emit_begin_op(onv_emitter *e, onv_aten_id op)
{
    begin(e, onv_aten_ops[op].name, (uint16_t)op);
}

/* Names are literals, or those of nodes: the same ones come again. */
void onv_emit_begin(onv_emitter *e, const char *name)
{
    uintptr_t address = (uintptr_t)name;
    onv_named_op *known = &e->known[(address ^ address >> 7) & (ONV_KNOWN_OPS - 1)];
    if (known->name != name)
        *known = (onv_named_op){.name = name, .aten = (uint16_t)onv_aten_named(name)};
    begin(e, name, known->aten);
}

void onv_emit_in(onv_emitter *e, uint32_t tensor, onv_grad grad)
{
    if (tensor == ONV_NO_TENSOR) return;
    bool wants =
        e->eager->tensors.at[tensor].needs_grad && grad != ONV_GRAD_NONE && !e->has_no_grad;
    onv_eager_arg arg = {.tensor = tensor, .grad = (uint8_t)(wants ? grad : ONV_GRAD_NONE)};
    if (!onv_vec_push(&e->in, arg)) onv_emit_fail_memory(e);
    if (wants) e->op.has_backward = true;
}

void onv_emit_save(onv_emitter *e, uint32_t tensor)
{
    if (tensor == ONV_NO_TENSOR) return;
    if (!onv_vec_push(&e->keep, e->eager->tensors.at[tensor].storage)) onv_emit_fail_memory(e);
}

void onv_emit_in_saved(onv_emitter *e, uint32_t tensor, onv_grad grad)
{
    onv_emit_in(e, tensor, grad);
    onv_emit_save(e, tensor);
}

void onv_emit_extra(onv_emitter *e, uint64_t count, uint64_t bytes_each, const char *label)
{
    onv_extra extra = {.bytes = onv_u64_times(count, bytes_each), .label = label};
    if (extra.bytes == UINT64_MAX) fail_overflow(e);
    if (!onv_vec_push(&e->extra, extra)) onv_emit_fail_memory(e);
}

void onv_emit_extras_come_first(onv_emitter *e)
{
    e->op.extras_first = (uint8_t)e->extra.count;
}

void onv_emit_backward_temps(onv_emitter *e, onv_eager_op *op, const onv_backward_temp *temps,
                             uint32_t n)
{
    op->first_temp = (uint32_t)e->eager->temps.count;
    op->n_temps = n;
    if (onv_backward_temps_most(temps, n) == UINT64_MAX) fail_overflow(e);
    for (uint32_t i = 0; i < n; i++)
        if (!onv_vec_push(&e->eager->temps, temps[i])) onv_emit_fail_memory(e);
}

uint32_t onv_emit_out(onv_emitter *e, uint32_t tensor)
{
    if (tensor != ONV_NO_TENSOR && !onv_vec_push(&e->out, tensor)) onv_emit_fail_memory(e);
    return tensor;
}

void onv_emit_temps(onv_emitter *e, uint64_t forward_bytes, uint64_t backward_bytes)
{
    e->op.forward_temp_bytes = forward_bytes;
    e->op.backward_temp_bytes = backward_bytes;
}

void onv_emit_workspace(onv_emitter *e, onv_eager_workspace workspace)
{
    if (workspace.bytes == UINT64_MAX) fail_overflow(e);
    e->op.workspace = workspace;
}

void onv_emit_grad_workspace(onv_emitter *e, uint32_t in, onv_eager_workspace workspace)
{
    if (workspace.bytes == UINT64_MAX) fail_overflow(e);
    for (size_t i = 0; i < e->in.count; i++)
        if (e->in.at[i].tensor == in && e->in.at[i].grad == ONV_GRAD_NEW)
            e->in.at[i].workspace = workspace;
}

static bool copy_lists(onv_emitter *e)
{
    onv_eager_op *op = &e->op;
    onv_arena *arena = &e->eager->arena;
    op->n_in = (uint32_t)e->in.count;
    op->swaps_grads = op->swaps_grads && op->n_in > 1; /* numbers are no inputs */
    op->n_out = (uint32_t)e->out.count;
    op->n_saved = op->has_backward ? (uint32_t)e->keep.count : 0;
    op->in = onv_arena_copy(arena, e->in.at, e->in.count * sizeof *op->in);
    op->out = onv_arena_copy(arena, e->out.at, e->out.count * sizeof *op->out);
    op->saved = onv_arena_copy(arena, e->keep.at, op->n_saved * sizeof *op->saved);
    return op->in != NULL && op->out != NULL && op->saved != NULL;
}

/* Autograd takes what overwrites a view for an operation on all that it is a view of (CopySlices): backward copies the
 * incoming gradient as a whole, clones the view of the copy, and copies the gradient that the operation makes of it back. */
static void copy_slices(onv_emitter *e)
{
    if (!e->op.in_place || !e->op.has_backward || e->in.count == 0 || e->out.count == 0) return;
    onv_eager_arg *first = &e->in.at[0];
    if (first->grad == ONV_GRAD_NONE || e->is_written_view == NULL ||
        e->op.aten == ONV_ATEN_copy_slices || !e->is_written_view(e, first->tensor))
        return;
    uint64_t bytes = onv_tensor_at(e, first->tensor).bytes;
    onv_emit_temps(e, 0, onv_u64_times(bytes, first->grad == ONV_GRAD_NEW ? 2 : 1));
    first->grad = ONV_GRAD_NEW;
}

/* Of a product; rules of other operations count their own. */
static uint64_t product_macs(const onv_emitter *e)
{
    uint64_t macs;
    if (e->in.count < 2 || e->out.count == 0) return 0;
    onv_eager_tensor a = onv_tensor_at(e, e->in.at[0].tensor);
    bool is_known =
        a.rank > 0 && a.dims[a.rank - 1] >= 0 &&
        onv_u64_mul(onv_tensor_at(e, e->out.at[0]).elems, (uint64_t)a.dims[a.rank - 1], &macs);
    return is_known ? macs : 0;
}

void onv_emit_end(onv_emitter *e)
{
    e->is_building = false;
    if (e->status != ONV_OK) return;
    copy_slices(e);
    if (onv_aten_ops[e->op.aten].multiplies) e->op.macs = product_macs(e);
    if (e->in.count > 0 && onv_pytorch_keeps_input(e->options, &e->op))
        onv_emit_save(e, e->in.at[0].tensor);
    onv_emit_hidden_result(e);
    /* What only backward reads is made only where there is one. */
    for (size_t i = 0; e->op.has_backward && i < e->extra.count; i++) {
        uint32_t storage =
            onv_storage_new(e, e->extra.at[i].bytes, ONV_STORAGE_EXTRA, e->extra.at[i].label);
        if (!onv_vec_push(&e->keep, storage)) onv_emit_fail_memory(e);
    }
    if (e->status != ONV_OK) return;
    onv_emit_derivative(e);
    if (!onv_u64_add(e->op.forward_temp_bytes, onv_forward_temps(e), &e->op.forward_temp_bytes))
        fail_overflow(e);
    if (!copy_lists(e) || !onv_vec_push(&e->eager->ops, e->op)) {
        onv_emit_fail_memory(e);
        return;
    }
    for (uint32_t i = 0; i < e->op.n_saved; i++) e->saved.at[e->op.saved[i]] = true;
    for (uint32_t i = 0; i < e->op.n_out; i++) {
        onv_eager_tensor *out = &e->eager->tensors.at[e->op.out[i]];
        out->needs_grad = e->op.has_backward && onv_dtype_is_differentiable((onv_dtype)out->dtype);
    }
    if (e->ended != NULL) e->ended(e);
}

/* --- Views and copies -------------------------------------------------------------------------- */

uint32_t onv_emit_one(onv_emitter *e, const char *name, uint32_t x, onv_grad grad, uint32_t out)
{
    onv_emit_begin(e, name);
    onv_emit_in(e, x, grad);
    onv_emit_out(e, out);
    onv_emit_end(e);
    return out;
}

uint32_t onv_emit_of(onv_emitter *e, const char *name, uint32_t x, onv_grad grad, uint32_t rank,
                     const int64_t *dims, const int64_t *strides)
{
    if (x == ONV_NO_TENSOR) return x;
    uint8_t dtype = onv_tensor_at(e, x).dtype;
    return onv_emit_one(e, name, x, grad, onv_tensor_new(e, dtype, rank, dims, strides));
}

uint32_t onv_emit_step(onv_emitter *e, onv_aten_id id, uint32_t a, uint32_t b, unsigned saves,
                       const onv_shape *shape)
{
    bool is_whole = onv_tensor_has_dims(e, b, shape->rank, shape->dims);
    onv_grad grad = id == ONV_ATEN_sub || id == ONV_ATEN_add ? ONV_GRAD_ALIAS
                    : id == ONV_ATEN_sum                     ? ONV_GRAD_PART
                                                             : ONV_GRAD_NEW;
    onv_eager_tensor x = onv_tensor_at(e, a);
    if (a == ONV_NO_TENSOR || e->status != ONV_OK) return ONV_NO_TENSOR;
    onv_emit_begin_op(e, id);
    onv_emit_in(e, a, grad);
    onv_emit_in(e, b, id == ONV_ATEN_add && is_whole ? ONV_GRAD_ALIAS : ONV_GRAD_NEW);
    uint32_t out = onv_tensor_new(e, x.dtype, shape->rank, shape->dims, NULL);
    if ((saves & ONV_SAVE_A) != 0) onv_emit_save(e, a);
    if ((saves & ONV_SAVE_B) != 0) onv_emit_save(e, b);
    if ((saves & ONV_SAVE_OUT) != 0) onv_emit_save(e, out);
    onv_emit_out(e, out);
    onv_emit_end(e);
    return out;
}

uint32_t onv_emit_view_as(onv_emitter *e, const char *name, uint32_t x, uint8_t dtype,
                          uint32_t rank, const int64_t *dims, const int64_t *strides, onv_grad grad)
{
    if (x == ONV_NO_TENSOR) return x;
    onv_eager_tensor t = onv_tensor_at(e, x);
    uint32_t view = onv_tensor_on(e, t.storage, dtype, rank, dims, strides);
    return onv_emit_one(e, name, x, grad, view);
}

uint32_t onv_emit_view(onv_emitter *e, const char *name, uint32_t x, uint32_t rank,
                       const int64_t *dims, const int64_t *strides, onv_grad grad)
{
    uint8_t dtype = onv_tensor_at(e, x).dtype;
    return onv_emit_view_as(e, name, x, dtype, rank, dims, strides, grad);
}

uint32_t onv_emit_permuted(onv_emitter *e, const char *name, uint32_t x, const uint32_t *order)
{
    int64_t dims[ONV_MAX_RANK], strides[ONV_MAX_RANK];
    onv_eager_tensor t = onv_tensor_at(e, x);
    for (uint32_t i = 0; i < t.rank; i++) {
        dims[i] = t.dims[order[i]];
        strides[i] = t.strides[order[i]];
    }
    return onv_emit_view(e, name, x, t.rank, dims, strides, ONV_GRAD_ALIAS);
}

void onv_emit_release(onv_emitter *e, uint32_t x)
{
    if (x == ONV_NO_TENSOR) return;
    onv_emit_begin(e, "release");
    onv_emit_in(e, x, ONV_GRAD_NONE);
    onv_emit_end(e);
}

/* Groups of dims that are adjacent in memory are cut anew. */
bool onv_view_strides(const onv_eager_tensor *t, uint32_t rank, const int64_t *dims,
                      int64_t *strides)
{
    int64_t at = (int64_t)rank - 1;
    for (uint32_t i = t->rank; i > 0;) {
        uint32_t last = --i;
        int64_t step = t->strides[last], elems = t->dims[last];
        while (i > 0 && (t->dims[i - 1] == 1 || t->strides[i - 1] == elems * step)) {
            elems *= t->dims[--i];
            /* a dim of 1 has no say in strides, but those before it must still line up */
        }
        int64_t taken = 1;
        while (at >= 0 && (taken < elems || dims[at] == 1)) {
            strides[at] = taken * step;
            taken *= dims[at--];
        }
        if (taken != elems) return false;
    }
    while (at >= 0 && dims[at] == 1) strides[at--] = 1;
    return at < 0;
}

uint32_t onv_emit_reshape(onv_emitter *e, uint32_t x, uint32_t rank, const int64_t *dims)
{
    if (x == ONV_NO_TENSOR || e->status != ONV_OK) return ONV_NO_TENSOR;
    onv_eager_tensor t = onv_tensor_at(e, x);
    int64_t strides[ONV_MAX_RANK];
    if (t.elems == 0 || onv_view_strides(&t, rank, dims, strides))
        return onv_emit_view(e, "view", x, rank, dims, t.elems == 0 ? NULL : strides,
                             ONV_GRAD_ALIAS);
    return onv_emit_of(e, "reshape", x, ONV_GRAD_ALIAS, rank, dims, NULL);
}

uint32_t onv_emit_contiguous(onv_emitter *e, uint32_t x)
{
    onv_eager_tensor t = onv_tensor_at(e, x);
    return onv_tensor_is_contiguous(&t) ? x : onv_emit_clone(e, x);
}

uint32_t onv_emit_clone(onv_emitter *e, uint32_t x)
{
    if (x == ONV_NO_TENSOR || e->status != ONV_OK) return x;
    onv_eager_tensor t = onv_tensor_at(e, x);
    return onv_emit_of(e, "contiguous", x, ONV_GRAD_ALIAS, t.rank, t.dims, NULL);
}

uint32_t onv_emit_expand(onv_emitter *e, uint32_t x, uint32_t rank, const int64_t *dims)
{
    if (x == ONV_NO_TENSOR || e->status != ONV_OK) return ONV_NO_TENSOR;
    onv_eager_tensor t = onv_tensor_at(e, x);
    int64_t strides[ONV_MAX_RANK];
    uint64_t elems = 1;
    for (uint32_t i = 0; i < rank; i++) {
        bool given = i + t.rank >= rank;
        int64_t old = given ? t.dims[i + t.rank - rank] : 1;
        strides[i] = given && old == dims[i] ? t.strides[i + t.rank - rank] : 0;
        elems *= (uint64_t)dims[i]; /* only compared, never used as a size */
    }
    onv_grad grad = elems == t.elems ? ONV_GRAD_ALIAS : ONV_GRAD_NEW;
    return onv_emit_view(e, "expand", x, rank, dims, strides, grad);
}

uint32_t onv_emit_cast(onv_emitter *e, uint32_t x, uint8_t dtype)
{
    if (x == ONV_NO_TENSOR || e->status != ONV_OK) return x;
    onv_eager_tensor t = onv_tensor_at(e, x);
    if (t.dtype == dtype) return x;
    int64_t strides[ONV_MAX_RANK] = {0};
    onv_strides_like(&t, strides);
    uint32_t out = onv_tensor_new(e, dtype, t.rank, t.dims, strides);
    return onv_emit_one(e, "to", x,
                        onv_dtype_is_float((onv_dtype)dtype) ? ONV_GRAD_NEW : ONV_GRAD_NONE, out);
}

uint32_t onv_emit_add_to(onv_emitter *e, uint32_t x, uint32_t y, onv_grad grad)
{
    if (x == ONV_NO_TENSOR || y == ONV_NO_TENSOR) return x;
    onv_eager_tensor t = onv_tensor_at(e, x);
    uint32_t out = onv_tensor_on(e, t.storage, t.dtype, t.rank, t.dims, t.strides);
    onv_emit_begin(e, "add_");
    e->op.in_place = true;
    onv_emit_in(e, x, ONV_GRAD_ALIAS);
    onv_emit_in(e, y, grad);
    onv_emit_sum_workspace(e, y, out);
    onv_emit_out(e, out);
    onv_emit_end(e);
    return out;
}
