#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "eager/pytorch.h"
#include "kernels/reduction.h"
#include "lower/lowering.h"
#include "lower/weight_place.h"

static void fail_memory(onv_lowering *l)
{
    if (l->status == ONV_OK) l->status = onv_fail_memory(l->err);
}

static void fail_overflow(onv_lowering *l)
{
    if (l->status == ONV_OK)
        l->status = onv_fail(l->err, ONV_ERR_OVERFLOW, "the size of a tensor does not fit 64 bits");
}

/* --- Tensors ----------------------------------------------------------------------------------- */

onv_eager_tensor onv_tensor_at(const onv_lowering *l, uint32_t tensor)
{
    if (tensor == ONV_NO_TENSOR) return (onv_eager_tensor){.storage = UINT32_MAX};
    return l->eager->tensors.at[tensor];
}

bool onv_tensor_needs_grad(const onv_lowering *l, uint32_t tensor)
{
    return tensor != ONV_NO_TENSOR && l->eager->tensors.at[tensor].needs_grad;
}

bool onv_tensor_is_float(const onv_lowering *l, uint32_t tensor)
{
    return tensor != ONV_NO_TENSOR &&
           onv_dtype_is_float((onv_dtype)l->eager->tensors.at[tensor].dtype);
}

uint32_t onv_storage_new(onv_lowering *l, uint64_t bytes, onv_storage_kind kind, const char *label)
{
    if (l->status != ONV_OK) return UINT32_MAX;
    onv_eager_storage storage = {.bytes = bytes,
                                 .kind = (uint8_t)kind,
                                 .label = label,
                                 .becomes = UINT32_MAX,
                                 .value = ONV_NO_VALUE};
    if (!onv_vec_push(&l->eager->storages, storage) || !onv_vec_push(&l->emit.saved, false) ||
        !onv_vec_push(&l->emit.low_precision, ONV_NO_TENSOR) || !onv_vec_push(&l->region.mark, 0)) {
        fail_memory(l);
        return UINT32_MAX;
    }
    return (uint32_t)l->eager->storages.count - 1;
}

/* In training, products of any of the dims must fit, those that a dim of 0 hides too. */
static bool count_elems(onv_lowering *l, uint8_t dtype, uint32_t rank, const int64_t *dims,
                        uint64_t *elems, uint64_t *bytes)
{
    uint64_t product = 1;
    bool fits = true, empty = false;
    for (uint32_t i = 0; i < rank; i++) {
        empty |= dims[i] == 0;
        if (dims[i] > 0) fits &= onv_u64_mul(product, (uint64_t)dims[i], &product);
    }
    if (empty && l->options->inference) {
        product = 0;
        fits = true;
    }
    *elems = empty ? 0 : product;
    if (fits && product <= INT64_MAX && onv_dtype_bytes((onv_dtype)dtype, *elems, bytes))
        return true;
    fail_overflow(l);
    return false;
}

uint32_t onv_tensor_on(onv_lowering *l, uint32_t storage, uint8_t dtype, uint32_t rank,
                       const int64_t *dims, const int64_t *strides)
{
    if (l->status != ONV_OK) return ONV_NO_TENSOR;
    onv_eager_tensor t = {.storage = storage, .dtype = dtype, .rank = rank};
    if (!count_elems(l, dtype, rank, dims, &t.elems, &t.bytes)) return ONV_NO_TENSOR;
    int64_t *copy = onv_arena_alloc(&l->model->arena, 2 * (size_t)rank * sizeof *copy);
    if (copy == NULL) {
        fail_memory(l);
        return ONV_NO_TENSOR;
    }
    int64_t step = 1;
    for (uint32_t i = rank; i-- > 0;) {
        copy[i] = dims[i];
        copy[rank + i] = strides != NULL ? strides[i] : step;
        step *= t.elems > 0 ? dims[i] : 1; /* the product of all dims was checked */
    }
    t.dims = copy;
    t.strides = copy + rank;
    if (!onv_vec_push(&l->eager->tensors, t)) {
        fail_memory(l);
        return ONV_NO_TENSOR;
    }
    return (uint32_t)l->eager->tensors.count - 1;
}

uint32_t onv_tensor_new(onv_lowering *l, uint8_t dtype, uint32_t rank, const int64_t *dims,
                        const int64_t *strides)
{
    uint32_t tensor = onv_tensor_on(l, UINT32_MAX, dtype, rank, dims, strides);
    if (tensor == ONV_NO_TENSOR) return tensor;
    const char *label = onv_is_node(l->node) ? onv_model_node(l->model, l->node)->name : "loss";
    uint32_t storage =
        onv_storage_new(l, l->eager->tensors.at[tensor].bytes, ONV_STORAGE_ACTIVATION, label);
    l->eager->tensors.at[tensor].storage = storage;
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

/* --- Operations -------------------------------------------------------------------------------- */

void onv_emit_begin(onv_lowering *l, const char *name)
{
    l->emit.op =
        (onv_eager_op){.name = name, .node = l->node, .origin = ONV_NO_NODE, .part = l->emit.part};
    l->emit.is_building = true;
    l->emit.in.count = l->emit.out.count = l->emit.keep.count = l->emit.extra.count = 0;
}

void onv_emit_in(onv_lowering *l, uint32_t tensor, onv_grad grad)
{
    if (tensor == ONV_NO_TENSOR) return;
    bool wants = l->eager->tensors.at[tensor].needs_grad && grad != ONV_GRAD_NONE;
    onv_eager_arg arg = {.tensor = tensor, .grad = (uint8_t)(wants ? grad : ONV_GRAD_NONE)};
    if (!onv_vec_push(&l->emit.in, arg)) fail_memory(l);
    if (wants) l->emit.op.has_backward = true;
}

void onv_emit_save(onv_lowering *l, uint32_t tensor)
{
    if (tensor == ONV_NO_TENSOR) return;
    if (!onv_vec_push(&l->emit.keep, l->eager->tensors.at[tensor].storage)) fail_memory(l);
}

void onv_emit_extra(onv_lowering *l, uint64_t count, uint64_t bytes_each, const char *label)
{
    onv_extra extra = {.label = label};
    if (!onv_u64_mul(count, bytes_each, &extra.bytes)) fail_overflow(l);
    if (!onv_vec_push(&l->emit.extra, extra)) fail_memory(l);
}

uint32_t onv_emit_out(onv_lowering *l, uint32_t tensor)
{
    if (tensor != ONV_NO_TENSOR && !onv_vec_push(&l->emit.out, tensor)) fail_memory(l);
    return tensor;
}

void onv_emit_temps(onv_lowering *l, uint64_t forward_bytes, uint64_t backward_bytes)
{
    l->emit.op.forward_temp_bytes = forward_bytes;
    l->emit.op.backward_temp_bytes = backward_bytes;
}

void onv_emit_workspace(onv_lowering *l, onv_eager_workspace workspace)
{
    if (workspace.bytes == UINT64_MAX) fail_overflow(l);
    l->emit.op.workspace = workspace;
}

void onv_emit_grad_workspace(onv_lowering *l, uint32_t in, onv_eager_workspace workspace)
{
    if (workspace.bytes == UINT64_MAX) fail_overflow(l);
    for (size_t i = 0; i < l->emit.in.count; i++)
        if (l->emit.in.at[i].tensor == in && l->emit.in.at[i].grad == ONV_GRAD_NEW)
            l->emit.in.at[i].workspace = workspace;
}

static bool has_channels_last(const onv_lowering *l, const onv_eager_tensor *t)
{
    return t->rank == 4 && (l->options->cuda.channels_last || onv_tensor_is_channels_last(t));
}

/* Whether x is y's channels, of each image or of all, whose pixels were added up or repeated. */
static bool is_of_channels(const onv_eager_tensor *x, const onv_eager_tensor *y)
{
    for (uint32_t i = 0; i < y->rank; i++) {
        uint32_t lead = y->rank - x->rank;
        int64_t dim = i < lead ? 1 : x->dims[i - lead];
        if (dim != y->dims[i] && (i == 1 || dim != 1)) return false;
    }
    return true;
}

/* Whether x is y's last dims, which its leading ones repeat. */
static bool is_repeated(const onv_eager_tensor *x, const onv_eager_tensor *y)
{
    uint32_t lead = 0;
    while (lead < x->rank && x->dims[lead] == 1) lead++;
    if (x->rank - lead > y->rank) return false;
    for (uint32_t i = lead; i < x->rank; i++)
        if (x->dims[i] != y->dims[y->rank - x->rank + i]) return false;
    return true;
}

static onv_eager_workspace sum_workspace(const onv_lowering *l, const onv_eager_tensor *x,
                                         const onv_eager_tensor *y, uint64_t adjacent)
{
    uint32_t elem = (uint32_t)(y->bytes / y->elems);
    onv_column_sum sum =
        onv_column_sum_of(y->elems / x->elems, x->elems, adjacent, elem, &l->options->cuda);
    return (onv_eager_workspace){
        .library = "sum", .bytes = sum.part_bytes, .beside_bytes = sum.counter_bytes};
}

void onv_emit_sum_workspace(onv_lowering *l, uint32_t in, uint32_t out)
{
    if (in == ONV_NO_TENSOR || out == ONV_NO_TENSOR) return;
    onv_eager_tensor x = onv_tensor_at(l, in), y = onv_tensor_at(l, out);
    if (x.elems == 0 || y.elems <= x.elems) return;
    if (x.rank <= y.rank && has_channels_last(l, &y) && is_of_channels(&x, &y))
        onv_emit_grad_workspace(l, in, sum_workspace(l, &x, &y, (uint64_t)y.dims[1]));
    else if (is_repeated(&x, &y))
        onv_emit_grad_workspace(l, in, sum_workspace(l, &x, &y, x.elems));
}

void onv_emit_pixel_sum(onv_lowering *l, uint32_t in, uint32_t out)
{
    if (in == ONV_NO_TENSOR || out == ONV_NO_TENSOR) return;
    onv_eager_tensor x = onv_tensor_at(l, out), y = onv_tensor_at(l, in);
    if (x.elems == 0 || y.elems <= x.elems || !has_channels_last(l, &y)) return;
    if (x.elems == (uint64_t)y.dims[0] * (uint64_t)y.dims[1] && x.rank >= 2 &&
        x.dims[0] == y.dims[0] && x.dims[1] == y.dims[1])
        onv_emit_workspace(l, sum_workspace(l, &x, &y, (uint64_t)y.dims[1]));
}

static bool copy_lists(onv_lowering *l)
{
    onv_eager_op *op = &l->emit.op;
    onv_arena *arena = &l->model->arena;
    op->n_in = (uint32_t)l->emit.in.count;
    op->swaps_grads = op->swaps_grads && op->n_in > 1; /* numbers are no inputs */
    op->n_out = (uint32_t)l->emit.out.count;
    op->n_saved = op->has_backward ? (uint32_t)l->emit.keep.count : 0;
    op->in = onv_arena_copy(arena, l->emit.in.at, l->emit.in.count * sizeof *op->in);
    op->out = onv_arena_copy(arena, l->emit.out.at, l->emit.out.count * sizeof *op->out);
    op->saved = onv_arena_copy(arena, l->emit.keep.at, op->n_saved * sizeof *op->saved);
    return op->in != NULL && op->out != NULL && op->saved != NULL;
}

/* Not what the exporter moves for its own node, and not a linear layer's result of more than two dims, which is none for
 * autograd. */
static bool is_view_of_python(const onv_lowering *l, onv_node_id id)
{
    const onv_node *view = onv_model_node(l->model, id);
    const onv_node *node = onv_model_node(l->model, l->node);
    bool is_own = view->source_op == node->source_op && view->scope == node->scope;
    return !is_own && strcmp(view->op_type, "MatMul") != 0 && !onv_node_is_aten(view, "linear");
}

/* Is the tensor a view of another one, by what made it lately? */
static bool is_view(const onv_lowering *l, uint32_t tensor)
{
    enum { LOOK_BACK = 16 };
    size_t n = l->eager->ops.count;
    for (size_t back = 1; back <= LOOK_BACK && back <= n; back++) {
        const onv_eager_op *op = &l->eager->ops.at[n - back];
        if (op->n_out == 0 || op->out[0] != tensor) continue;
        if (op->in_place && op->n_in > 0) {
            tensor = op->in[0].tensor; /* which it still is after it was overwritten */
            continue;
        }
        bool is_call = onv_is_node(op->node) && is_view_of_python(l, op->node);
        return is_call && op->n_in > 0 && !op->in_place && op->has_backward &&
               onv_tensor_at(l, op->in[0].tensor).storage == onv_tensor_at(l, tensor).storage;
    }
    return false;
}

/* Autograd takes what overwrites a view for an operation on all that it is a view of (CopySlices): backward copies the
 * incoming gradient as a whole, clones the view of the copy, and copies the gradient that the operation makes of it back. */
static void copy_slices(onv_lowering *l)
{
    if (!l->emit.op.in_place || !l->emit.op.has_backward || l->emit.in.count == 0 ||
        l->emit.out.count == 0)
        return;
    onv_eager_arg *first = &l->emit.in.at[0];
    bool is_told =
        onv_is_node(l->node) && onv_model_node(l->model, l->node)->in_place == ONV_IN_PLACE_YES;
    if (!is_told || first->grad == ONV_GRAD_NONE || strcmp(l->emit.op.name, "copy_slices") == 0 ||
        strcmp(l->emit.op.name, "add_") == 0 || !is_view(l, first->tensor))
        return;
    uint64_t bytes = onv_tensor_at(l, first->tensor).bytes, twice;
    if (!onv_u64_mul(bytes, 2, &twice)) twice = UINT64_MAX;
    onv_emit_temps(l, 0, first->grad == ONV_GRAD_NEW ? twice : bytes);
    first->grad = ONV_GRAD_NEW;
}

void onv_emit_end(onv_lowering *l)
{
    l->emit.is_building = false;
    if (l->status != ONV_OK) return;
    copy_slices(l);
    if (l->emit.in.count > 0 && onv_pytorch_keeps_input(l->options, &l->emit.op))
        onv_emit_save(l, l->emit.in.at[0].tensor);
    /* What only backward reads is made only where there is one. */
    for (size_t i = 0; l->emit.op.has_backward && i < l->emit.extra.count; i++) {
        uint32_t storage = onv_storage_new(l, l->emit.extra.at[i].bytes, ONV_STORAGE_EXTRA,
                                           l->emit.extra.at[i].label);
        if (!onv_vec_push(&l->emit.keep, storage)) fail_memory(l);
    }
    if (l->status != ONV_OK) return;
    if (!onv_u64_add(l->emit.op.backward_temp_bytes, onv_derivative_temps(l),
                     &l->emit.op.backward_temp_bytes))
        fail_overflow(l);
    if (!copy_lists(l) || !onv_vec_push(&l->eager->ops, l->emit.op)) {
        fail_memory(l);
        return;
    }
    for (uint32_t i = 0; i < l->emit.op.n_saved; i++) l->emit.saved.at[l->emit.op.saved[i]] = true;
    for (uint32_t i = 0; i < l->emit.op.n_out; i++) {
        onv_eager_tensor *out = &l->eager->tensors.at[l->emit.op.out[i]];
        out->needs_grad = l->emit.op.has_backward && onv_dtype_is_float((onv_dtype)out->dtype);
    }
    onv_clone_results(l);
}

/* --- Views and copies -------------------------------------------------------------------------- */

uint32_t onv_emit_view(onv_lowering *l, const char *name, uint32_t x, uint32_t rank,
                       const int64_t *dims, const int64_t *strides, onv_grad grad)
{
    if (x == ONV_NO_TENSOR) return x;
    onv_eager_tensor t = onv_tensor_at(l, x);
    uint32_t view = onv_tensor_on(l, t.storage, t.dtype, rank, dims, strides);
    onv_emit_begin(l, name);
    onv_emit_in(l, x, grad);
    onv_emit_out(l, view);
    onv_emit_end(l);
    return view;
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

static uint32_t emit_copy(onv_lowering *l, const char *name, uint32_t x, uint32_t rank,
                          const int64_t *dims)
{
    onv_eager_tensor t = onv_tensor_at(l, x);
    uint32_t copy = onv_tensor_new(l, t.dtype, rank, dims, NULL);
    onv_emit_begin(l, name);
    onv_emit_in(l, x, ONV_GRAD_ALIAS);
    onv_emit_out(l, copy);
    onv_emit_end(l);
    return copy;
}

uint32_t onv_emit_reshape(onv_lowering *l, uint32_t x, uint32_t rank, const int64_t *dims)
{
    if (x == ONV_NO_TENSOR || l->status != ONV_OK) return ONV_NO_TENSOR;
    onv_eager_tensor t = onv_tensor_at(l, x);
    int64_t strides[ONV_MAX_RANK];
    if (t.elems == 0 || onv_view_strides(&t, rank, dims, strides))
        return onv_emit_view(l, "view", x, rank, dims, t.elems == 0 ? NULL : strides,
                             ONV_GRAD_ALIAS);
    return emit_copy(l, "reshape", x, rank, dims);
}

uint32_t onv_emit_contiguous(onv_lowering *l, uint32_t x)
{
    onv_eager_tensor t = onv_tensor_at(l, x);
    return onv_tensor_is_contiguous(&t) ? x : onv_emit_clone(l, x);
}

uint32_t onv_emit_clone(onv_lowering *l, uint32_t x)
{
    if (x == ONV_NO_TENSOR || l->status != ONV_OK) return x;
    onv_eager_tensor t = onv_tensor_at(l, x);
    return emit_copy(l, "contiguous", x, t.rank, t.dims);
}

uint32_t onv_emit_expand(onv_lowering *l, uint32_t x, uint32_t rank, const int64_t *dims)
{
    if (x == ONV_NO_TENSOR || l->status != ONV_OK) return ONV_NO_TENSOR;
    onv_eager_tensor t = onv_tensor_at(l, x);
    int64_t strides[ONV_MAX_RANK];
    uint64_t elems = 1;
    for (uint32_t i = 0; i < rank; i++) {
        bool given = i + t.rank >= rank;
        int64_t old = given ? t.dims[i + t.rank - rank] : 1;
        strides[i] = given && old == dims[i] ? t.strides[i + t.rank - rank] : 0;
        elems *= (uint64_t)dims[i]; /* only compared, never used as a size */
    }
    onv_grad grad = elems == t.elems ? ONV_GRAD_ALIAS : ONV_GRAD_NEW;
    return onv_emit_view(l, "expand", x, rank, dims, strides, grad);
}

uint32_t onv_emit_cast(onv_lowering *l, uint32_t x, uint8_t dtype)
{
    if (x == ONV_NO_TENSOR || l->status != ONV_OK) return x;
    onv_eager_tensor t = onv_tensor_at(l, x);
    if (t.dtype == dtype) return x;
    uint32_t out = onv_tensor_new(l, dtype, t.rank, t.dims, t.strides);
    onv_emit_begin(l, "to");
    onv_emit_in(l, x, onv_dtype_is_float((onv_dtype)dtype) ? ONV_GRAD_NEW : ONV_GRAD_NONE);
    onv_emit_out(l, out);
    onv_emit_end(l);
    return out;
}

/* --- Autocast ---------------------------------------------------------------------------------- */

uint32_t onv_amp_low(onv_lowering *l, uint32_t x)
{
    if (l->options->amp == ONV_UNDEFINED || !onv_tensor_is_float(l, x)) return x;
    onv_eager_tensor t = onv_tensor_at(l, x);
    /* What a branch casts is not there for others. */
    bool of_parameter = l->eager->storages.at[t.storage].kind == ONV_STORAGE_PARAMETER &&
                        l->region.current == ONV_NO_REGION;
    if (of_parameter && l->emit.low_precision.at[t.storage] != ONV_NO_TENSOR) {
        uint32_t cached = l->emit.low_precision.at[t.storage];
        onv_eager_tensor c = onv_tensor_at(l, cached);
        bool same = c.rank == t.rank;
        for (uint32_t i = 0; same && i < t.rank; i++) same = c.dims[i] == t.dims[i];
        return same ? cached : onv_emit_reshape(l, cached, t.rank, t.dims);
    }
    uint32_t low = onv_emit_cast(l, x, (uint8_t)l->options->amp);
    if (!of_parameter || l->status != ONV_OK) return low;
    l->emit.low_precision.at[t.storage] = low;
    l->eager->storages.at[onv_tensor_at(l, low).storage].is_cached = true;
    return low;
}

uint32_t onv_amp_fp32(onv_lowering *l, uint32_t x)
{
    if (l->options->amp == ONV_UNDEFINED || !onv_tensor_is_float(l, x)) return x;
    return onv_emit_cast(l, x, ONV_FLOAT);
}

uint32_t onv_emit_add_to(onv_lowering *l, uint32_t x, uint32_t y, onv_grad grad)
{
    if (x == ONV_NO_TENSOR || y == ONV_NO_TENSOR) return x;
    onv_eager_tensor t = onv_tensor_at(l, x);
    uint32_t out = onv_tensor_on(l, t.storage, t.dtype, t.rank, t.dims, t.strides);
    onv_emit_begin(l, "add_");
    l->emit.op.in_place = true;
    onv_emit_in(l, x, ONV_GRAD_ALIAS);
    onv_emit_in(l, y, grad);
    onv_emit_sum_workspace(l, y, out);
    onv_emit_out(l, out);
    onv_emit_end(l);
    return out;
}
