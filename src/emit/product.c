/* Products of matrices: mm, addmm, bmm, and what matmul() and linear() make of operands of other ranks. */
#include "emit/product.h"

#include "base/checked.h"
#include "eager/pytorch.h"
#include "kernels/cublas.h"

static onv_eager_workspace of_cublas(onv_emitter *e, onv_cublas_workspace w)
{
    e->eager->uses_cublas |= e->options->cuda.compute_capability > 0;
    return (onv_eager_workspace){
        .library = w.is_lt ? "cuBLASLt" : "cuBLAS", .bytes = w.bytes, .kept_bytes = w.kept_bytes};
}

onv_eager_workspace onv_emit_cublas_product(onv_emitter *e)
{
    return of_cublas(e, onv_cublas_product(&e->options->cuda));
}

/* Whether the layer has a bias of zeros that the exporter dropped. */
static bool drops_bias(const onv_emitter *e)
{
    return e->has_bias || (e->drops_bias && !e->adds_bias);
}

/* From PyTorch 2.13 on bmm has a kernel of its own, in Triton, where the dim that is summed along is 1 (torch/_native/ops). */
static bool is_outer(const onv_emitter *e, int64_t summed)
{
    return summed == 1 && e->op.aten == ONV_ATEN_bmm &&
           !onv_before_pytorch(e->options, ONV_PYTORCH_RELEASE(2, 13));
}

/* Of the product that is being built, and of those that make its gradients. What is empty is not computed. */
static void emit_workspaces(onv_emitter *e, uint32_t a, uint32_t b, uint32_t bias)
{
    const onv_cuda_library_settings *cuda = &e->options->cuda;
    onv_eager_tensor x = onv_tensor_at(e, a), y = onv_tensor_at(e, b), c = onv_tensor_at(e, bias);
    if (x.elems == 0 || y.elems == 0) return;
    bool is_dropped = bias == ONV_NO_TENSOR && drops_bias(e);
    bool is_vector = x.rank == 2 && (is_dropped || (bias != ONV_NO_TENSOR && c.rank == 1));
    onv_eager_workspace product = onv_emit_cublas_product(e);
    if (x.rank < 2 ||
        y.rank < 2) { /* the gradient of a matrix is an outer product, which is no call of cuBLAS */
        if (x.rank > 1) onv_emit_workspace(e, product);
        if (x.rank < 2) onv_emit_grad_workspace(e, a, product);
        onv_emit_grad_workspace(e, b, product);
        return;
    }
    int64_t rows = x.dims[x.rank - 2], summed = y.dims[y.rank - 2], columns = y.dims[y.rank - 1];
    if (!is_outer(e, summed))
        onv_emit_workspace(e, of_cublas(e, onv_cublas_linear(summed, columns, is_vector, cuda)));
    if (!is_outer(e, columns)) onv_emit_grad_workspace(e, a, product);
    if (!is_outer(e, rows)) onv_emit_grad_workspace(e, b, product);
}

/* As large as the result, and not multiplied: its gradient is that of the result. */
static bool hands_on(onv_emitter *e, const onv_added *c, uint32_t out)
{
    onv_eager_tensor y = onv_tensor_at(e, out);
    return !c->scales_bias && onv_tensor_has_dims(e, c->bias, y.rank, y.dims);
}

/* mm_mat1_backward, mm_mat2_backward and maybe_multiply: each product of the gradient is multiplied by alpha, into a new
 * tensor; what is added has a gradient as large as the result, times beta, before that is summed. Gradients are made in the
 * order of their names: mat1, mat2, self; mat, self, vec of addmv; self, vec1, vec2 of addr. */
static uint64_t factor_temps(onv_emitter *e, uint32_t a, uint32_t b, const onv_added *c,
                             uint32_t out)
{
    uint64_t made = 0, most = 0;
    uint32_t order[] = {a, b, c->bias}, n_vectors = 0;
    n_vectors += onv_tensor_at(e, a).rank < 2;
    n_vectors += onv_tensor_at(e, b).rank < 2;
    for (uint32_t i = 2; i > 2 - n_vectors; i--) {
        order[i] = order[i - 1];
        order[i - 1] = c->bias;
    }
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t bytes = onv_tensor_at(e, order[i]).bytes, now = made;
        bool is_added = order[i] == c->bias;
        if (!onv_tensor_needs_grad(e, order[i]) || (is_added && hands_on(e, c, out))) continue;
        made = onv_u64_plus(made, bytes);
        if (is_added) {
            uint64_t whole = onv_tensor_at(e, out).bytes;
            now = onv_u64_plus(now, c->scales_bias ? whole : bytes);
            if (c->scales_bias && bytes != whole) now = onv_u64_plus(now, bytes);
        } else {
            now = onv_u64_plus(now, bytes);
            now = onv_u64_plus(now, c->scales_product ? bytes : 0);
        }
        most = now > most ? now : most;
    }
    return most > made ? most - made : 0;
}

/* cuBLAS takes rows or columns that stand behind each other; of others PyTorch makes a copy. */
static uint64_t copied_bytes(onv_emitter *e, uint32_t x)
{
    onv_eager_tensor t = onv_tensor_at(e, x);
    if (x == ONV_NO_TENSOR || t.rank < 2) return 0;
    const int64_t *strides = t.strides + t.rank - 2, *dims = t.dims + t.rank - 2;
    if (dims[0] == 1 || dims[1] == 1) return 0; /* whose stride could be any number */
    bool by_columns = strides[0] == 1 && strides[1] >= dims[0];
    bool by_rows = strides[1] == 1 && strides[0] >= dims[1];
    return by_columns || by_rows ? 0 : t.bytes;
}

/* Of a product: copies of its operands, and again of each for the gradient of the other. */
static void emit_copies(onv_emitter *e, uint32_t a, uint32_t b, uint64_t backward)
{
    uint64_t of_a = copied_bytes(e, a), of_b = copied_bytes(e, b), forward = of_a;
    forward = onv_u64_plus(forward, of_b);
    if (!onv_tensor_needs_grad(e, b)) of_a = 0;
    if (!onv_tensor_needs_grad(e, a)) of_b = 0;
    backward = onv_u64_plus(backward, of_a > of_b ? of_a : of_b);
    if (forward > 0 || backward > 0) onv_emit_temps(e, forward, backward);
}

/* Each side is kept for the gradient of the other. */
uint32_t onv_emit_product(onv_emitter *e, const char *name, uint32_t a, uint32_t b, onv_added c,
                          uint32_t out)
{
    onv_emit_begin(e, name);
    onv_emit_in(e, a, ONV_GRAD_NEW);
    onv_emit_in(e, b, ONV_GRAD_NEW);
    if (b != ONV_NO_TENSOR && onv_tensor_at(e, a).rank == 2 && e->is_linear)
        e->in.at[e->in.count - 1].is_turned = true;
    /* The sum of the gradient comes after the products. */
    onv_emit_in(e, c.bias, hands_on(e, &c, out) ? ONV_GRAD_ALIAS : ONV_GRAD_NEW);
    /* Gradients in the order of their names: mat2 and self of mm; mat1, mat2 and self of addmm. */
    e->op.swaps_grads = c.bias == ONV_NO_TENSOR && !drops_bias(e);
    emit_workspaces(e, a, b, c.bias);
    onv_emit_sum_workspace(e, c.bias, out);
    bool scales = c.scales_product || c.scales_bias;
    emit_copies(e, a, b, scales ? factor_temps(e, a, b, &c, out) : 0);
    if (onv_tensor_needs_grad(e, b)) onv_emit_save(e, a);
    if (onv_tensor_needs_grad(e, a)) onv_emit_save(e, b);
    onv_emit_out(e, out);
    onv_emit_end(e);
    return out;
}

uint32_t onv_emit_mm(onv_emitter *e, const char *name, uint32_t a, uint32_t b, onv_added c)
{
    onv_eager_tensor x = onv_tensor_at(e, a), y = onv_tensor_at(e, b);
    if (e->status != ONV_OK || x.rank < 2 || y.rank != x.rank) return ONV_NO_TENSOR;
    int64_t dims[3];
    for (uint32_t i = 0; i < x.rank; i++) dims[i] = x.dims[i];
    dims[x.rank - 1] = y.dims[y.rank - 1];
    uint32_t out = onv_tensor_new(e, x.dtype, x.rank, dims, NULL);
    return onv_emit_product(e, name, a, b, c, out);
}

static uint32_t emit_mm(onv_emitter *e, const char *name, uint32_t a, uint32_t b, uint32_t bias)
{
    return onv_emit_mm(e, name, a, b, (onv_added){.bias = bias});
}

uint32_t onv_emit_bmm(onv_emitter *e, uint32_t a, uint32_t b)
{
    return emit_mm(e, "bmm", a, b, ONV_NO_TENSOR);
}

static uint32_t flatten(onv_emitter *e, uint32_t x)
{
    onv_eager_tensor t = onv_tensor_at(e, x);
    if (t.rank < 2) return x;
    int64_t last = t.dims[t.rank - 1];
    int64_t rows = t.elems > 0; /* at most the elements of a tensor, which were counted */
    for (uint32_t i = 0; i + 1 < t.rank && rows > 0; i++) rows *= t.dims[i];
    return onv_emit_reshape(e, x, 2, (const int64_t[]){rows, last});
}

/* Back from [rows, n] to the leading dims of `like`. */
static uint32_t unflatten(onv_emitter *e, uint32_t y, uint32_t like)
{
    onv_eager_tensor t = onv_tensor_at(e, like), out = onv_tensor_at(e, y);
    if (y == ONV_NO_TENSOR || t.rank == 2) return y;
    int64_t dims[ONV_MAX_RANK];
    for (uint32_t i = 0; i < t.rank; i++) dims[i] = t.dims[i];
    dims[t.rank - 1] = out.dims[1];
    return onv_emit_reshape(e, y, t.rank, dims);
}

/* Batched: operands are expanded and made three-dimensional, which copies what is permuted. */
static uint32_t emit_batched(onv_emitter *e, uint32_t a, uint32_t b)
{
    onv_eager_tensor t[2] = {onv_tensor_at(e, a), onv_tensor_at(e, b)};
    uint32_t rank = t[0].rank > t[1].rank ? t[0].rank : t[1].rank, in[2] = {a, b};
    int64_t dims[ONV_MAX_RANK], batch = 1;
    for (uint32_t i = 0; i + 2 < rank; i++) {
        dims[i] = 1;
        for (uint32_t k = 0; k < 2; k++)
            if (i + t[k].rank >= rank && t[k].dims[i + t[k].rank - rank] != 1)
                dims[i] = t[k].dims[i + t[k].rank - rank];
        batch *= dims[i];
    }
    for (uint32_t k = 0; k < 2; k++) {
        dims[rank - 2] = t[k].dims[t[k].rank - 2];
        dims[rank - 1] = t[k].dims[t[k].rank - 1];
        in[k] = onv_emit_expand(e, in[k], rank, dims);
        in[k] =
            onv_emit_reshape(e, in[k], 3, (const int64_t[]){batch, dims[rank - 2], dims[rank - 1]});
    }
    uint32_t out = emit_mm(e, "bmm", in[0], in[1], ONV_NO_TENSOR);
    dims[rank - 2] = t[0].dims[t[0].rank - 2];
    dims[rank - 1] = t[1].dims[t[1].rank - 1];
    return onv_emit_reshape(e, out, rank, dims);
}

/* Whether a product with a matrix folds the leading dims of the larger operand into one: where the matrix requires a gradient,
 * which views of parameters do under no_grad, too, or where that copies nothing. */
static bool should_fold(onv_emitter *e, uint32_t large, uint32_t matrix)
{
    uint32_t storage = onv_tensor_at(e, matrix).storage;
    bool is_parameter = e->eager->storages.at[storage].kind == ONV_STORAGE_PARAMETER;
    if (onv_tensor_needs_grad(e, matrix) || (e->options->inference && is_parameter)) return true;
    onv_eager_tensor t = onv_tensor_at(e, large);
    for (uint32_t i = 0; i + 2 < t.rank; i++)
        if (t.strides[i] != t.strides[i + 1] * t.dims[i + 1]) return false;
    return true;
}

/* A view with the last two dims swapped. */
uint32_t onv_emit_swapped(onv_emitter *e, uint32_t x)
{
    uint32_t rank = onv_tensor_at(e, x).rank, order[ONV_MAX_RANK];
    if (e->status != ONV_OK || rank < 2) return x;
    for (uint32_t i = 0; i < rank; i++) order[i] = i + 2 < rank ? i : 2 * rank - 3 - i;
    return onv_emit_permuted(e, "t", x, order);
}

/* A trained matrix times a batch: the batch turned, times the matrix turned, and the result is turned back, by a copy. */
static uint32_t emit_turned(onv_emitter *e, uint32_t matrix, uint32_t batch)
{
    uint32_t turned = onv_emit_swapped(e, batch);
    uint32_t product =
        emit_mm(e, "mm", flatten(e, turned), onv_emit_swapped(e, matrix), ONV_NO_TENSOR);
    return onv_emit_contiguous(e, onv_emit_swapped(e, unflatten(e, product, turned)));
}

/* Of two batches, one of a single matrix that has a gradient is taken for that matrix. */
static uint32_t squeeze_single(onv_emitter *e, uint32_t single, uint32_t batch)
{
    onv_eager_tensor t = onv_tensor_at(e, single), other = onv_tensor_at(e, batch);
    if (t.rank != 3 || other.rank != 3 || t.dims[0] != 1 || other.dims[0] == 1 ||
        !onv_tensor_needs_grad(e, single))
        return single;
    return onv_emit_view(e, "squeeze", single, 2, t.dims + 1, t.strides + 1, ONV_GRAD_ALIAS);
}

uint32_t onv_emit_matmul(onv_emitter *e, uint32_t a, uint32_t b)
{
    a = squeeze_single(e, a, b);
    b = squeeze_single(e, b, a);
    onv_eager_tensor x = onv_tensor_at(e, a), y = onv_tensor_at(e, b);
    if (e->status != ONV_OK || x.rank < 2 || y.rank < 2) return ONV_NO_TENSOR;
    if (x.rank == 2 && y.rank == 2) return emit_mm(e, "mm", a, b, ONV_NO_TENSOR);
    if (x.rank == 2 && onv_tensor_needs_grad(e, a)) return emit_turned(e, a, b);
    e->adds_bias = !onv_tensor_is_contiguous(&x);
    uint32_t out = y.rank == 2 && should_fold(e, a, b)
                       ? unflatten(e, emit_mm(e, "mm", flatten(e, a), b, ONV_NO_TENSOR), a)
                       : emit_batched(e, a, b);
    e->adds_bias = false;
    return out;
}

/* Beyond two dims, and with a bias, linear flattens what is contiguous; otherwise it multiplies and
 * adds the bias in place. */
uint32_t onv_emit_linear(onv_emitter *e, uint32_t x, uint32_t w, uint32_t bias)
{
    bias = onv_amp_low(e, bias);
    w = onv_amp_low(e, w);
    x = onv_amp_low(e, x);
    onv_eager_tensor t = onv_tensor_at(e, x), matrix = onv_tensor_at(e, w);
    if (t.rank == 1 && matrix.rank == 2) { /* a matrix of one row */
        uint32_t row = onv_emit_reshape(e, x, 2, (const int64_t[]){1, t.dims[0]});
        uint32_t out = emit_mm(e, "mm", row, w, ONV_NO_TENSOR);
        return onv_emit_add_to(e, onv_emit_reshape(e, out, 1, &matrix.dims[1]), bias,
                               ONV_GRAD_ALIAS);
    }
    if (t.rank == 2) return emit_mm(e, "addmm", x, w, bias);
    if (onv_tensor_is_contiguous(&t))
        return unflatten(e, emit_mm(e, "addmm", flatten(e, x), w, bias), x);
    uint32_t product = onv_emit_matmul(e, x, w);
    return onv_emit_add_to(e, product, bias, ONV_GRAD_NEW);
}
