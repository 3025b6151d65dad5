/* Products of matrices: mm, addmm, bmm, and what matmul() and linear() make of operands of other ranks. */
#include <string.h>

#include "base/checked.h"
#include "kernels/cublas.h"
#include "lower/lowering.h"

static onv_eager_workspace of_cublas(onv_lowering *l, onv_cublas_workspace w)
{
    l->eager->uses_cublas |= l->options->cuda.compute_capability > 0;
    return (onv_eager_workspace){
        .library = w.is_lt ? "cuBLASLt" : "cuBLAS", .bytes = w.bytes, .kept_bytes = w.kept_bytes};
}

/* Whether the layer has a bias of zeros that the exporter dropped. */
static bool drops_bias(const onv_lowering *l)
{
    if (l->has_bias) return true;
    return !l->adds_bias && onv_is_node(l->node) && onv_model_node(l->model, l->node)->has_bias;
}

/* Of the product that is being built, and of those that make its gradients. What is empty is not computed. */
static void emit_workspaces(onv_lowering *l, uint32_t a, uint32_t b, uint32_t bias)
{
    const onv_cuda_library_settings *cuda = &l->options->cuda;
    onv_eager_tensor x = onv_tensor_at(l, a), y = onv_tensor_at(l, b), c = onv_tensor_at(l, bias);
    if (x.elems == 0 || y.elems == 0) return;
    bool is_dropped = bias == ONV_NO_TENSOR && drops_bias(l);
    bool is_vector = x.rank == 2 && (is_dropped || (bias != ONV_NO_TENSOR && c.rank == 1));
    onv_eager_workspace product = of_cublas(l, onv_cublas_product(cuda));
    if (x.rank < 2 ||
        y.rank < 2) { /* the gradient of a matrix is an outer product, which is no call of cuBLAS */
        if (x.rank > 1) onv_emit_workspace(l, product);
        if (x.rank < 2) onv_emit_grad_workspace(l, a, product);
        onv_emit_grad_workspace(l, b, product);
        return;
    }
    onv_emit_workspace(l, of_cublas(l, onv_cublas_linear(y.dims[y.rank - 2], y.dims[y.rank - 1],
                                                         is_vector, cuda)));
    onv_emit_grad_workspace(l, a, product);
    onv_emit_grad_workspace(l, b, product);
}

/* F.linear: it takes the weight as a view with its dims swapped. */
static bool is_linear(const onv_lowering *l)
{
    return onv_is_node(l->node) && onv_node_is_aten(onv_model_node(l->model, l->node), "linear");
}

/* What is added to a product: `beta * bias + alpha * (a @ b)`. */
typedef struct added {
    uint32_t bias; /* ONV_NO_TENSOR: nothing */
    bool scales_product, scales_bias;
} added;

/* As large as the result, and not multiplied: its gradient is that of the result. */
static bool hands_on(onv_lowering *l, const added *c, uint32_t out)
{
    onv_eager_tensor x = onv_tensor_at(l, c->bias), y = onv_tensor_at(l, out);
    bool same = c->bias != ONV_NO_TENSOR && !c->scales_bias && x.rank == y.rank;
    for (uint32_t i = 0; same && i < x.rank; i++) same = x.dims[i] == y.dims[i];
    return same;
}

static void grow(uint64_t *sum, uint64_t bytes)
{
    if (!onv_u64_add(*sum, bytes, sum)) *sum = UINT64_MAX;
}

/* mm_mat1_backward, mm_mat2_backward and maybe_multiply: each product of the gradient is multiplied by alpha, into a new
 * tensor; what is added has a gradient as large as the result, times beta, before that is summed. Gradients are made in the
 * order of their names: mat1, mat2, self; mat, self, vec of addmv; self, vec1, vec2 of addr. */
static uint64_t factor_temps(onv_lowering *l, uint32_t a, uint32_t b, const added *c, uint32_t out)
{
    uint64_t made = 0, most = 0;
    uint32_t order[] = {a, b, c->bias}, n_vectors = 0;
    n_vectors += onv_tensor_at(l, a).rank < 2;
    n_vectors += onv_tensor_at(l, b).rank < 2;
    for (uint32_t i = 2; i > 2 - n_vectors; i--) {
        order[i] = order[i - 1];
        order[i - 1] = c->bias;
    }
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t bytes = onv_tensor_at(l, order[i]).bytes, now = made;
        bool is_added = order[i] == c->bias;
        if (!onv_tensor_needs_grad(l, order[i]) || (is_added && hands_on(l, c, out))) continue;
        grow(&made, bytes);
        if (is_added) {
            uint64_t whole = onv_tensor_at(l, out).bytes;
            grow(&now, c->scales_bias ? whole : bytes);
            if (c->scales_bias && bytes != whole) grow(&now, bytes);
        } else {
            grow(&now, bytes);
            grow(&now, c->scales_product ? bytes : 0);
        }
        most = now > most ? now : most;
    }
    return most > made ? most - made : 0;
}

/* cuBLAS takes rows or columns that stand behind each other; of others PyTorch makes a copy. */
static uint64_t copied_bytes(onv_lowering *l, uint32_t x)
{
    onv_eager_tensor t = onv_tensor_at(l, x);
    if (x == ONV_NO_TENSOR || t.rank < 2) return 0;
    const int64_t *strides = t.strides + t.rank - 2, *dims = t.dims + t.rank - 2;
    if (dims[0] == 1 || dims[1] == 1) return 0; /* whose stride could be any number */
    bool by_columns = strides[0] == 1 && strides[1] >= dims[0];
    bool by_rows = strides[1] == 1 && strides[0] >= dims[1];
    return by_columns || by_rows ? 0 : t.bytes;
}

/* Of a product: copies of its operands, and again of each for the gradient of the other. */
static void emit_copies(onv_lowering *l, uint32_t a, uint32_t b, uint64_t backward)
{
    uint64_t of_a = copied_bytes(l, a), of_b = copied_bytes(l, b), forward = of_a;
    grow(&forward, of_b);
    if (!onv_tensor_needs_grad(l, b)) of_a = 0;
    if (!onv_tensor_needs_grad(l, a)) of_b = 0;
    grow(&backward, of_a > of_b ? of_a : of_b);
    if (forward > 0 || backward > 0) onv_emit_temps(l, forward, backward);
}

/* Each side is kept for the gradient of the other. */
static uint32_t emit_product(onv_lowering *l, const char *name, uint32_t a, uint32_t b, added c,
                             uint32_t out)
{
    onv_emit_begin(l, name);
    onv_emit_in(l, a, ONV_GRAD_NEW);
    onv_emit_in(l, b, ONV_GRAD_NEW);
    if (b != ONV_NO_TENSOR && onv_tensor_at(l, a).rank == 2 && is_linear(l))
        l->emit.in.at[l->emit.in.count - 1].is_turned = true;
    /* The sum of the gradient comes after the products. */
    onv_emit_in(l, c.bias, hands_on(l, &c, out) ? ONV_GRAD_ALIAS : ONV_GRAD_NEW);
    /* Gradients in the order of their names: mat2 and self of mm; mat1, mat2 and self of addmm. */
    l->emit.op.swaps_grads = c.bias == ONV_NO_TENSOR && !drops_bias(l);
    emit_workspaces(l, a, b, c.bias);
    onv_emit_sum_workspace(l, c.bias, out);
    bool scales = c.scales_product || c.scales_bias;
    emit_copies(l, a, b, scales ? factor_temps(l, a, b, &c, out) : 0);
    if (onv_tensor_needs_grad(l, b)) onv_emit_save(l, a);
    if (onv_tensor_needs_grad(l, a)) onv_emit_save(l, b);
    onv_emit_out(l, out);
    onv_emit_end(l);
    return out;
}

static uint32_t emit_mm_added(onv_lowering *l, const char *name, uint32_t a, uint32_t b, added c)
{
    onv_eager_tensor x = onv_tensor_at(l, a), y = onv_tensor_at(l, b);
    if (l->status != ONV_OK || x.rank < 2 || y.rank != x.rank) return ONV_NO_TENSOR;
    int64_t dims[3];
    for (uint32_t i = 0; i < x.rank; i++) dims[i] = x.dims[i];
    dims[x.rank - 1] = y.dims[y.rank - 1];
    uint32_t out = onv_tensor_new(l, x.dtype, x.rank, dims, NULL);
    return emit_product(l, name, a, b, c, out);
}

static uint32_t emit_mm(onv_lowering *l, const char *name, uint32_t a, uint32_t b, uint32_t bias)
{
    return emit_mm_added(l, name, a, b, (added){.bias = bias});
}

uint32_t onv_emit_bmm(onv_lowering *l, uint32_t a, uint32_t b)
{
    return emit_mm(l, "bmm", a, b, ONV_NO_TENSOR);
}

static uint32_t flatten(onv_lowering *l, uint32_t x)
{
    onv_eager_tensor t = onv_tensor_at(l, x);
    if (t.rank < 2) return x;
    int64_t last = t.dims[t.rank - 1];
    int64_t rows = t.elems > 0; /* at most the elements of a tensor, which were counted */
    for (uint32_t i = 0; i + 1 < t.rank && rows > 0; i++) rows *= t.dims[i];
    return onv_emit_reshape(l, x, 2, (const int64_t[]){rows, last});
}

/* Back from [rows, n] to the leading dims of `like`. */
static uint32_t unflatten(onv_lowering *l, uint32_t y, uint32_t like)
{
    onv_eager_tensor t = onv_tensor_at(l, like), out = onv_tensor_at(l, y);
    if (y == ONV_NO_TENSOR || t.rank == 2) return y;
    int64_t dims[ONV_MAX_RANK];
    for (uint32_t i = 0; i < t.rank; i++) dims[i] = t.dims[i];
    dims[t.rank - 1] = out.dims[1];
    return onv_emit_reshape(l, y, t.rank, dims);
}

/* Batched: operands are expanded and made three-dimensional, which copies what is permuted. */
static uint32_t emit_batched(onv_lowering *l, uint32_t a, uint32_t b)
{
    onv_eager_tensor t[2] = {onv_tensor_at(l, a), onv_tensor_at(l, b)};
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
        in[k] = onv_emit_expand(l, in[k], rank, dims);
        in[k] =
            onv_emit_reshape(l, in[k], 3, (const int64_t[]){batch, dims[rank - 2], dims[rank - 1]});
    }
    uint32_t out = emit_mm(l, "bmm", in[0], in[1], ONV_NO_TENSOR);
    dims[rank - 2] = t[0].dims[t[0].rank - 2];
    dims[rank - 1] = t[1].dims[t[1].rank - 1];
    return onv_emit_reshape(l, out, rank, dims);
}

/* Whether a product with a matrix folds the leading dims of the larger operand into one. */
static bool should_fold(onv_lowering *l, uint32_t large, uint32_t matrix)
{
    if (onv_tensor_needs_grad(l, matrix)) return true;
    onv_eager_tensor t = onv_tensor_at(l, large);
    for (uint32_t i = 0; i + 2 < t.rank; i++)
        if (t.strides[i] != t.strides[i + 1] * t.dims[i + 1]) return false;
    return true;
}

/* A view with the last two dims swapped. */
static uint32_t swapped(onv_lowering *l, uint32_t x)
{
    onv_eager_tensor t = onv_tensor_at(l, x);
    int64_t dims[ONV_MAX_RANK], strides[ONV_MAX_RANK];
    if (l->status != ONV_OK || t.rank < 2) return x;
    for (uint32_t i = 0; i < t.rank; i++) {
        uint32_t from = i + 2 < t.rank ? i : 2 * t.rank - 3 - i;
        dims[i] = t.dims[from];
        strides[i] = t.strides[from];
    }
    return onv_emit_view(l, "t", x, t.rank, dims, strides, ONV_GRAD_ALIAS);
}

/* A trained matrix times a batch: the batch turned, times the matrix turned, and the result is turned back, by a copy. */
static uint32_t emit_turned(onv_lowering *l, uint32_t matrix, uint32_t batch)
{
    uint32_t turned = swapped(l, batch);
    uint32_t product = emit_mm(l, "mm", flatten(l, turned), swapped(l, matrix), ONV_NO_TENSOR);
    return onv_emit_contiguous(l, swapped(l, unflatten(l, product, turned)));
}

/* Of two batches, one of a single matrix that has a gradient is taken for that matrix. */
static uint32_t squeeze_single(onv_lowering *l, uint32_t single, uint32_t batch)
{
    onv_eager_tensor t = onv_tensor_at(l, single), other = onv_tensor_at(l, batch);
    if (t.rank != 3 || other.rank != 3 || t.dims[0] != 1 || other.dims[0] == 1 ||
        !onv_tensor_needs_grad(l, single))
        return single;
    return onv_emit_view(l, "squeeze", single, 2, t.dims + 1, t.strides + 1, ONV_GRAD_ALIAS);
}

uint32_t onv_emit_matmul(onv_lowering *l, uint32_t a, uint32_t b)
{
    a = squeeze_single(l, a, b);
    b = squeeze_single(l, b, a);
    onv_eager_tensor x = onv_tensor_at(l, a), y = onv_tensor_at(l, b);
    if (l->status != ONV_OK || x.rank < 2 || y.rank < 2) return ONV_NO_TENSOR;
    if (x.rank == 2 && y.rank == 2) return emit_mm(l, "mm", a, b, ONV_NO_TENSOR);
    if (x.rank == 2 && onv_tensor_needs_grad(l, a)) return emit_turned(l, a, b);
    l->adds_bias = !onv_tensor_is_contiguous(&x);
    uint32_t out = y.rank == 2 && should_fold(l, a, b)
                       ? unflatten(l, emit_mm(l, "mm", flatten(l, a), b, ONV_NO_TENSOR), a)
                       : emit_batched(l, a, b);
    l->adds_bias = false;
    return out;
}

/* Beyond two dims, and with a bias, linear flattens what is contiguous; otherwise it multiplies and
 * adds the bias in place. */
uint32_t onv_emit_linear(onv_lowering *l, uint32_t x, uint32_t w, uint32_t bias)
{
    x = onv_amp_low(l, x);
    w = onv_amp_low(l, w);
    bias = onv_amp_low(l, bias);
    onv_eager_tensor t = onv_tensor_at(l, x), matrix = onv_tensor_at(l, w);
    if (t.rank == 1 && matrix.rank == 2) { /* a matrix of one row */
        uint32_t row = onv_emit_reshape(l, x, 2, (const int64_t[]){1, t.dims[0]});
        uint32_t out = emit_mm(l, "mm", row, w, ONV_NO_TENSOR);
        return onv_emit_add_to(l, onv_emit_reshape(l, out, 1, &matrix.dims[1]), bias,
                               ONV_GRAD_ALIAS);
    }
    if (t.rank == 2) return emit_mm(l, "addmm", x, w, bias);
    if (onv_tensor_is_contiguous(&t))
        return unflatten(l, emit_mm(l, "addmm", flatten(l, x), w, bias), x);
    uint32_t product = onv_emit_matmul(l, x, w);
    return onv_emit_add_to(l, product, bias, ONV_GRAD_NEW);
}

/* torch.bmm makes no views, so that gradients of its operands are tensors of their own. */
static bool is_plain_bmm(const onv_lowering *l, const onv_node *node, const uint32_t in[2])
{
    onv_eager_tensor a = onv_tensor_at(l, in[0]), b = onv_tensor_at(l, in[1]);
    return onv_node_is_aten(node, "bmm") && a.rank == 3 && b.rank == 3 && a.dims[0] == b.dims[0];
}

/* PyTorch's function has a name for it until it returns. */
static void hold_scaled_query(onv_lowering *l, const onv_node *node)
{
    onv_value_id query = l->fusions.scaled_query[node - l->model->nodes.at];
    uint32_t x = onv_value_tensor(l, query);
    if (x == ONV_NO_TENSOR) return;
    onv_emit_begin(l, "release");
    onv_emit_in(l, x, ONV_GRAD_NONE);
    onv_emit_end(l);
}

/* A vector is a matrix of one row before a product, of one column behind it. Two of them stay as they are. */
static void widen_vectors(onv_lowering *l, uint32_t in[2])
{
    for (uint32_t k = 0; k < 2; k++) {
        onv_eager_tensor t = onv_tensor_at(l, in[k]), other = onv_tensor_at(l, in[1 - k]);
        if (in[k] == ONV_NO_TENSOR || t.rank != 1 || other.rank < 2) continue;
        const int64_t dims[] = {k == 0 ? 1 : t.dims[0], k == 0 ? t.dims[0] : 1};
        in[k] = onv_emit_reshape(l, in[k], 2, dims);
    }
}

void onv_lower_matmul(onv_lowering *l, const onv_node *node)
{
    onv_attention_part part = onv_node_attention(l, node);
    uint32_t in[2];
    for (uint32_t k = 0; k < 2; k++)
        in[k] = part != ONV_ATTENTION_NONE ? onv_amp_attention(l, node, k)
                                           : onv_amp_low(l, onv_node_in(l, node, k));
    widen_vectors(l, in);
    onv_eager_tensor w = onv_tensor_at(l, in[1]);
    uint32_t bias = w.rank == 2 && part == ONV_ATTENTION_NONE ? onv_dropped_bias(l, node, w.dims[1])
                                                              : ONV_NO_TENSOR;
    uint32_t out = bias != ONV_NO_TENSOR       ? onv_emit_linear(l, in[0], in[1], bias)
                   : is_plain_bmm(l, node, in) ? onv_emit_bmm(l, in[0], in[1])
                                               : onv_emit_matmul(l, in[0], in[1]);
    if (part == ONV_ATTENTION_LAST && l->options->inference) hold_scaled_query(l, node);
    if (part == ONV_ATTENTION_LAST)
        out = onv_emit_attention_result(l, onv_tensor_at(l, onv_node_in(l, node, 1)).dtype, in[0],
                                        out);
    onv_shape shape;
    bool is_widened = out != ONV_NO_TENSOR && onv_value_shape(l, node->outputs[0], &shape) &&
                      shape.rank < onv_tensor_at(l, out).rank;
    if (is_widened) out = onv_emit_reshape(l, out, shape.rank, shape.dims);
    if (out == ONV_NO_TENSOR && l->status == ONV_OK)
        onv_lower_by_traits(l, node); /* vectors */
    else
        onv_node_set(l, node, 0, out);
}

/* What a product with a number other than 1 multiplies; the value itself where there is none. */
static onv_value_id unscaled(onv_lowering *l, onv_value_id value, bool *is_scaled)
{
    onv_node_id from = onv_model_value(l->model, value)->producer;
    const onv_node *mul = onv_is_node(from) ? onv_model_node(l->model, from) : NULL;
    if (mul == NULL || strcmp(mul->op_type, "Mul") != 0 || mul->n_inputs != 2) return value;
    for (uint32_t k = 0; k < 2; k++) {
        double number;
        if (!onv_node_scalar(l, mul, k, &number)) continue;
        *is_scaled = number != 1;
        return mul->inputs[1 - k];
    }
    return value;
}

/* A vector that the exporter reshapes to a matrix for its product. */
static uint32_t factor_of(onv_lowering *l, const onv_fusion *f, onv_value_id value)
{
    onv_node_id from = onv_model_value(l->model, value)->producer;
    bool is_own = onv_is_node(from) && l->fusions.of_node[from.index] != 0 &&
                  &l->fusions.at.at[l->fusions.of_node[from.index] - 1] == f;
    return onv_amp_low(
        l, onv_value_tensor(l, is_own ? onv_model_node(l->model, from)->inputs[0] : value));
}

/* torch.baddbmm, addbmm, addmv and addr: one operation, which the exporter writes as a product, a sum over the batch for addbmm,
 * two products with the factors, and a sum. */
void onv_lower_add_matmul(onv_lowering *l, const onv_fusion *f)
{
    const onv_node *product = onv_model_node(l->model, f->reduction);
    const onv_node *sum = onv_model_node(l->model, f->last);
    uint32_t a = factor_of(l, f, product->inputs[0]);
    uint32_t b = factor_of(l, f, product->inputs[1]);
    added c = {.bias = onv_amp_low(l, onv_value_tensor(l, f->x))};
    onv_shape shape;
    if (a == ONV_NO_TENSOR || b == ONV_NO_TENSOR || !onv_value_shape(l, f->out, &shape)) return;
    for (uint32_t k = 0; k < 2; k++) {
        bool is_scaled = false;
        onv_value_id term = sum->inputs[k];
        bool is_bias = unscaled(l, term, &is_scaled).index == f->x.index;
        *(is_bias ? &c.scales_bias : &c.scales_product) = is_scaled;
    }
    uint32_t out = onv_tensor_new(l, onv_tensor_at(l, a).dtype, shape.rank, shape.dims, NULL);
    onv_value_set(l, f->out, emit_product(l, f->name, a, b, c, out));
}

/* alpha and beta of a Gemm. */
static bool is_factor(const onv_node *node, const char *name)
{
    const onv_attr *attr = onv_node_attr(node, name);
    return attr != NULL && attr->kind == ONV_ATTR_FLOAT && attr->f != 1;
}

void onv_lower_gemm(onv_lowering *l, const onv_node *node)
{
    uint32_t a = onv_amp_low(l, onv_node_in(l, node, 0));
    uint32_t b = onv_amp_low(l, onv_node_in(l, node, 1));
    uint32_t c = onv_node_in(l, node, 2), norm_bias;
    bool unfolds = onv_node_unfolds(l, node, &c, &norm_bias);
    onv_eager_tensor w = onv_tensor_at(l, b);
    if (c == ONV_NO_TENSOR && w.rank == 2)
        c = onv_dropped_bias(l, node, w.dims[onv_node_int(node, "transB", 0) == 0]);
    c = onv_amp_low(l, c);
    if (onv_node_int(node, "transA", 0) != 0) a = swapped(l, a);
    if (onv_node_int(node, "transB", 0) != 0) b = swapped(l, b);
    added sum = {.bias = c,
                 .scales_product = is_factor(node, "alpha"),
                 .scales_bias = is_factor(node, "beta")};
    uint32_t out = emit_mm_added(l, "addmm", a, b, sum);
    onv_node_set(l, node, 0, unfolds ? onv_emit_unfolded_norm(l, node, out, norm_bias) : out);
}
