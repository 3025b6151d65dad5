/* Operators whose backward makes more on its way than their rows say. */
#include <string.h>

#include "base/checked.h"
#include "emit/product.h"
#include "kernels/cub.h"
#include "kernels/reduction.h"
#include "tape/state.h"

/* Of a matrix, one element for each row. */
static uint64_t column_bytes(const onv_eager_tensor *t)
{
    uint64_t row = t->rank > 0 ? (uint64_t)t->dims[t->rank - 1] : 0;
    return row == 0 ? 0 : t->bytes / row;
}

static void add_temps(onv_eager_op *op, uint64_t forward, uint64_t backward)
{
    op->forward_temp_bytes = onv_u64_plus(op->forward_temp_bytes, forward);
    if (op->has_backward) op->backward_temp_bytes = onv_u64_plus(op->backward_temp_bytes, backward);
}

/* --- Distances --------------------------------------------------------------------------------- */

/* Beyond as many rows cdist takes a product of matrices. */
enum { MAX_ROWS_APART = 25 };

/* _euclidean_dist_backward: grad / result, and 0 where that is; for each side a product of matrices, sums, and a product with
 * these, all to the end of one expression. */
static void add_euclidean_backward(onv_tape *t, onv_eager_op *op, uint64_t ratio,
                                   const onv_eager_tensor sides[2], uint64_t workspace)
{
    enum { MASK_GONE = 2, OF_SIDE = 5, N = MASK_GONE + 2 * OF_SIDE };
    onv_backward_temp temps[N] = {{ratio, N, 0}, {ratio / sizeof(float), MASK_GONE, 0}};
    for (uint32_t k = 0, at = MASK_GONE; k < 2; k++) {
        uint64_t bytes = sides[k].bytes;
        temps[at++] = (onv_backward_temp){bytes, N, 0};
        temps[at] = (onv_backward_temp){workspace, at + 1, 0};
        at++;
        temps[at++] = (onv_backward_temp){column_bytes(&sides[k]), N, 0};
        temps[at++] = (onv_backward_temp){bytes, N, 0};
        temps[at++] = (onv_backward_temp){bytes, N, op->in[k].grad == ONV_GRAD_NEW ? 1 + k : 0};
    }
    onv_emit_backward_temps(&t->emit, op, temps, N);
}

/* _euclidean_dist: each side with its squared norms and ones behind it. _cdist_backward: every difference of two elements, then
 * their sums; for the second side of copies of gradient and result with their dims swapped. */
static void add_distances(onv_tape *t, const onv_program_call *c, onv_eager_op *op)
{
    onv_eager_tensor x = onv_tensor_at(&t->emit, op->in[0].tensor),
                     y = onv_tensor_at(&t->emit, op->in[1].tensor),
                     out = onv_tensor_at(&t->emit, op->out[0]);
    if (x.rank < 2 || y.rank != x.rank) return;
    onv_aten_id id = onv_aten_id_of(t->row);
    bool is_small = x.dims[x.rank - 2] <= MAX_ROWS_APART && y.dims[y.rank - 2] <= MAX_ROWS_APART;
    bool is_product = onv_call_real(c, "p", 2) == 2 && !is_small;
    if (id == ONV_ATEN__cdist_forward || (id == ONV_ATEN_cdist && !is_product)) {
        uint64_t swapped = onv_tensor_needs_grad(&t->emit, op->in[1].tensor) ? 2 : 0;
        add_temps(op, 0,
                  onv_u64_plus(onv_u64_times((uint64_t)x.dims[x.rank - 1], out.bytes),
                               onv_u64_times(swapped, out.bytes)));
        return;
    }
    uint64_t columns = onv_u64_plus(column_bytes(&x), column_bytes(&y));
    add_temps(op, onv_u64_plus(onv_u64_plus(x.bytes, y.bytes), onv_u64_times(2, columns)), 0);
    op->workspace = onv_emit_cublas_product(&t->emit);
    op->workspace.stands_within = true;
    if (op->has_backward)
        add_euclidean_backward(t, op, out.bytes, (const onv_eager_tensor[2]){x, y},
                               op->workspace.bytes);
}

/* --- Lookups ----------------------------------------------------------------------------------- */

enum { PLACE = sizeof(int64_t) };

/* Of keys, each with an int64. Tiles: compute capability 8.0 and 8.6, of keys of int64, and 9.0. */
static uint64_t pairs_bytes(const onv_tape *t, uint64_t n, uint64_t key, uint64_t passes)
{
    enum { SINGLE = 2304 };
    onv_cub_sort sort = {n, key, PLACE, PLACE, passes, 3840, SINGLE};
    if (t->emit.options->cuda.compute_capability >= 90)
        sort.tile = key == 1 ? 3456 : key == 2 ? 5632 : key == 4 ? 5376 : 4608;
    return onv_cub_sort_bytes(&sort);
}

/* Of places up to the largest one. */
static uint64_t sort_bytes(const onv_tape *t, uint64_t n, uint64_t largest)
{
    enum { BITS = 8 };
    uint64_t passes = 1;
    while (passes < PLACE && largest >> (BITS * passes) > 0) passes++;
    return pairs_bytes(t, n, PLACE, passes);
}

/* Of a sort in segments of n: places of one; beyond 4,096 the sorts of cub, of each segment on its own, of all of them by place and
 * segment, or of many at once, for which what does not follow itself in memory is copied, as are its results. */
static uint64_t segments_bytes(const onv_tape *t, const onv_eager_tensor *x, uint64_t n,
                               bool is_spread)
{
    enum { FEW = 4096, MANY = 1000000, SEGMENTS = 128 };
    uint64_t all = x->elems, key = x->bytes / all, pair = key + PLACE, bytes;
    uint64_t passes = x->dtype == ONV_BOOL ? 1 : key;
    if (n <= FEW) return PLACE * n;
    if (n == all || n >= MANY)
        bytes = onv_u64_plus(onv_u64_times(n, PLACE), pairs_bytes(t, n, key, passes));
    else if (all / n < SEGMENTS)
        bytes = onv_u64_plus(onv_u64_times(all, pair + PLACE), pairs_bytes(t, all, key, passes));
    else
        bytes = onv_u64_times(all, pair + PLACE);
    return is_spread ? onv_u64_plus(bytes, onv_u64_times(all, key + pair)) : bytes;
}

static void add_sort(onv_tape *t, const onv_program_call *c, onv_eager_op *op)
{
    onv_eager_tensor x = onv_tensor_at(&t->emit, op->in[0].tensor);
    bool is_flat = onv_aten_as(t->row) == ONV_ATEN_median;
    int64_t dim = onv_call_int(t, c, "dim", -1), at = dim < 0 ? dim + x.rank : dim;
    if (x.elems == 0 || (!is_flat && (at < 0 || at >= x.rank))) return;
    uint64_t n = is_flat ? x.elems : (uint64_t)x.dims[at], key = x.bytes / x.elems;
    bool gives_places = onv_aten_id_of(t->row) == ONV_ATEN_argsort;
    uint64_t dropped = is_flat ? key + PLACE : gives_places ? key : 0;
    uint64_t bytes = segments_bytes(t, &x, n, !is_flat && x.strides[at] != 1);
    add_temps(op, onv_u64_plus(bytes, onv_u64_times(x.elems, dropped)), 0);
}

/* Whether topk gives a slice to several blocks of threads (should_use_multiblock, TensorTopK.cu). */
static bool has_many_blocks(uint64_t slices, uint64_t n)
{
    static const struct {
        uint64_t slices, least; /* up to so many slices, of so many elements */
    } from[] = {{20, 20000}, {40, 10000}, {80, 8000},       {199, 5000},
                {799, 3000}, {4000, 800}, {UINT32_MAX, 400}};
    for (size_t i = 0; i < sizeof from / sizeof *from; i++)
        if (slices <= from[i].slices) return n >= from[i].least;
    return false;
}

/* Whether a kernel of PyTorch 2.15 finds the k largest of each slice at once: measured on compute capability 9.0. */
static bool finds_at_once(const onv_eager_tensor *x, uint64_t n, uint64_t k, uint64_t processors)
{
    enum { WIDE = 2048, AT_A_TIME = 8, LONG = 16384, LEAST = 64, MOST = 512 };
    if (x->dtype == ONV_FLOAT && k == 16 && (n == 512 || n == 1024)) return true;
    return (x->dtype == ONV_FLOAT || x->dtype == ONV_BFLOAT16) && n >= WIDE && n % AT_A_TIME == 0 &&
           (n <= LONG || x->elems / n >= processors) && k >= LEAST && k <= MOST &&
           (k & (k - 1)) == 0;
}

/* topk copies what is not contiguous. By many blocks of threads: for each slice the value that is found, twice what is looked for and the digits that it has, and how
 * often each digit occurs; for each block how often each digit occurs in it, and two counts. */
static void add_topk(onv_tape *t, const onv_program_call *c, onv_eager_op *op)
{
    enum { THREADS = 256, BLOCKS = 6, LEAST = 4, MOST = 64, DIGITS = 256, COUNT = 4, SHORT = 2 };
    onv_eager_tensor x = onv_tensor_at(&t->emit, op->in[0].tensor);
    int64_t dim = onv_call_int(t, c, "dim", -1), at = dim < 0 ? dim + x.rank : dim;
    if (x.elems == 0 || at < 0 || at >= x.rank) return;
    uint64_t n = (uint64_t)x.dims[at], slices = x.elems / n, key = x.bytes / x.elems;
    uint64_t processors = onv_processors(t->emit.options->cuda.compute_capability);
    bool is_usual = onv_call_flag(c, "largest", true) && onv_call_flag(c, "sorted", true);
    if (is_usual && at + 1 == x.rank && onv_tensor_is_contiguous(&x) &&
        finds_at_once(&x, n, (uint64_t)onv_call_int(t, c, "k", 0), processors))
        return;
    if (!onv_tensor_is_contiguous(&x)) add_temps(op, x.bytes, 0);
    if (!has_many_blocks(slices, n)) return;
    uint64_t at_once = processors * BLOCKS * THREADS, items = (x.elems + at_once - 1) / at_once;
    items = items < LEAST ? LEAST : items > MOST ? MOST : items;
    uint64_t blocks = onv_u64_times(slices, (n + items * THREADS - 1) / (items * THREADS));
    uint64_t digits = key < COUNT ? COUNT : key;
    uint64_t of_slice = key + (uint64_t)2 * COUNT + 2 * digits + (uint64_t)DIGITS * COUNT;
    uint64_t of_block = (uint64_t)DIGITS * SHORT + (uint64_t)2 * COUNT;
    add_temps(op, onv_u64_plus(onv_u64_times(slices, of_slice), onv_u64_times(blocks, of_block)),
              0);
}

enum { FEW_LOOKUPS = 3072 }; /* which embedding_dense_backward does not sort */

/* embedding_dense_backward, and that of bags: of more than `few` places it sorts them, and adds up rows of the same
 * place by tens before it adds up those sums. */
void onv_tape_add_lookups(onv_tape *t, onv_eager_op *op, uint64_t few)
{
    enum { SUMMED = 10, UNSORTED = 4, UNIQUE = 7, N = 13 };
    onv_eager_tensor table = onv_tensor_at(&t->emit, op->in[0].tensor),
                     places = onv_tensor_at(&t->emit, op->in[1].tensor);
    uint64_t n = places.elems, rows = table.rank == 2 ? (uint64_t)table.dims[0] : 0;
    if (op->in[0].grad != ONV_GRAD_NEW || n <= few || rows == 0) return;
    uint64_t segments = n < rows ? n : rows, sums = n / SUMMED + segments,
             of_segments = onv_u64_times(segments, PLACE),
             row = onv_u64_times((uint64_t)table.dims[1], sizeof(float));
    const onv_backward_temp temps[N] = {{places.bytes, N, 0},
                                        {places.bytes, N, 0},
                                        {places.bytes, UNSORTED, 0},
                                        {sort_bytes(t, n, rows), UNSORTED, 0},
                                        {table.bytes, N, 1},
                                        {places.bytes, N, 0},
                                        {PLACE, N, 0},
                                        {places.bytes, UNIQUE + 1, 0},
                                        {of_segments, N, 0},
                                        {of_segments, N, 0},
                                        {PLACE, N, 0},
                                        {onv_u64_times(sums, PLACE), N, 0},
                                        {onv_u64_times(sums, row), N, 0}};
    onv_emit_backward_temps(&t->emit, op, temps, N);
}

/* index_put_ that adds up: places within the dim, then within the tensor; those sorted, where each was, and a count of them. */
void onv_tape_index(onv_tape *t, const onv_program_call *c)
{
    enum { LINEAR = 2, N = 7 };
    onv_eager_op *made = onv_tape_op_by_row(t, c);
    if (made == NULL) return;
    uint64_t n = 0;
    bool is_mask = false;
    for (uint32_t k = 1; k < made->n_in; k++) {
        onv_eager_tensor i = onv_tensor_at(&t->emit, made->in[k].tensor);
        is_mask |= i.dtype == ONV_BOOL;
        if (i.elems > n) n = i.elems;
    }
    if (made->n_in == 0 || made->in[0].grad != ONV_GRAD_NEW || is_mask || n == 0) return;
    onv_eager_tensor x = onv_tensor_at(&t->emit, made->in[0].tensor);
    uint64_t slice = onv_tensor_at(&t->emit, made->out[0]).elems / n,
             bytes = onv_u64_times(n, PLACE);
    uint64_t largest = slice > 0 && x.elems > slice ? x.elems / slice - 1 : 0;
    const onv_backward_temp temps[N] = {{x.bytes, N, 1},
                                        {bytes, LINEAR + 1, 0},
                                        {bytes, N, 0},
                                        {bytes, N, 0},
                                        {bytes, N, 0},
                                        {bytes, N, 0},
                                        {sort_bytes(t, n, largest), N, 0}};
    onv_emit_backward_temps(&t->emit, made, temps, N);
}

/* --- Scatters ---------------------------------------------------------------------------------- */

/* scatter_reduce_backward of a least or a most, beside both gradients. Of the result's size: where it was the base, how
 * many share a gradient, and their part; the base's gradient where nothing asked for it. Of the source's size: what was
 * taken, where that was the source; then the part that comes back with a comparison. */
static uint64_t extreme_bytes(const onv_eager_tensor *base, const onv_eager_tensor *source,
                              bool trains_base)
{
    return onv_u64_plus(onv_u64_times(trains_base ? 3 : 4, base->bytes),
                        onv_u64_plus(onv_u64_times(3, source->bytes), source->elems));
}

/* Of a product, without what share zeros have. Of the base's size: that without zeros and what it gives, what the source gives
 * without a single zero, and two products with the gradient. Of the source's: how many zeros, itself without them and without
 * a single one, both products at its places, and a quotient; two masks. And the base's gradient where nothing asked for it. */
static uint64_t product_bytes(const onv_eager_tensor *base, const onv_eager_tensor *source,
                              bool trains_base)
{
    return onv_u64_plus(onv_u64_plus(onv_u64_times(trains_base ? 5 : 6, base->bytes),
                                     onv_u64_times(6, source->bytes)),
                        onv_u64_times(2, source->elems));
}

/* To a mean. Forward: ones like the source, how many were added, which are none. Backward: that again, the base's gradient,
 * and for the source the counts and the gradients that it takes, and their quotient; or the scatter that clears the base's. */
static void add_mean(onv_eager_op *op, const onv_eager_tensor *base, const onv_eager_tensor *source,
                     bool trains_base)
{
    uint64_t gathered = onv_u64_plus(onv_u64_times(2, source->bytes),
                                     onv_u64_times(trains_base ? 1 : 2, base->bytes));
    uint64_t cleared = onv_u64_plus(source->bytes, onv_u64_times(trains_base ? 2 : 3, base->bytes));
    add_temps(op, onv_u64_plus(source->bytes, onv_u64_plus(base->bytes, base->elems)),
              gathered > cleared ? gathered : cleared);
}

static void add_reduction(const onv_tape *t, const onv_program_call *c, onv_eager_op *op)
{
    const char *reduce = onv_call_text(c, "reduce");
    onv_eager_tensor base = onv_tensor_at(&t->emit, op->in[0].tensor),
                     source = onv_tensor_at(&t->emit, op->in[op->n_in - 1].tensor);
    bool trains_base = onv_tensor_needs_grad(&t->emit, op->in[0].tensor);
    if (reduce == NULL || op->n_in < 3) return;
    if (strcmp(reduce, "sum") == 0)
        op->in[0].grad = trains_base ? ONV_GRAD_ALIAS : ONV_GRAD_NONE;
    else if (strcmp(reduce, "mean") == 0)
        add_mean(op, &base, &source, trains_base);
    else if (strcmp(reduce, "prod") == 0)
        add_temps(op, 0, product_bytes(&base, &source, trains_base));
    else
        add_temps(op, 0, extreme_bytes(&base, &source, trains_base));
}

/* --- The calls --------------------------------------------------------------------------------- */

void onv_tape_more_temps(onv_tape *t, const onv_program_call *c)
{
    onv_eager_op *made = onv_tape_op_by_row(t, c);
    if (made == NULL) return;
    const uint32_t n = made->n_in;
    switch (onv_aten_as(t->row)) {
    case ONV_ATEN_cdist:
        if (n > 1) add_distances(t, c, made);
        break;
    case ONV_ATEN_embedding:
        if (n > 1) onv_tape_add_lookups(t, made, FEW_LOOKUPS);
        break;
    case ONV_ATEN_scatter_reduce:
        if (n > 0) add_reduction(t, c, made);
        break;
    case ONV_ATEN_median:
    case ONV_ATEN_sort:
        if (n > 0) add_sort(t, c, made);
        break;
    case ONV_ATEN_topk:
        if (n > 0) add_topk(t, c, made);
        break;
    default: break;
    }
}

/* cuBLAS decomposes many small matrices, else cuSOLVER does (geqrf_kernel, BatchLinearAlgebra.cpp). linalg_qr_backward: products of
 * gradients and factors, the upper triangle of that, its sum with its adjoint, and the product of Q with that. */
static void add_qr(onv_tape *t, onv_eager_op *op, const onv_eager_tensor *a,
                   onv_eager_workspace workspace)
{
    enum { MOST = 256, LEAST = 2, ROWS_OF_EACH = 16, N = 4 };
    if (a->rank < 2 || a->elems == 0) return;
    uint64_t rows = (uint64_t)a->dims[a->rank - 2], columns = (uint64_t)a->dims[a->rank - 1];
    uint64_t matrices = a->elems / rows / columns, least = rows / ROWS_OF_EACH;
    bool is_batched = rows <= MOST && matrices >= (least < LEAST ? LEAST : least);
    uint64_t row = a->bytes / rows, column = a->bytes / columns;
    uint64_t square = rows > columns ? row * columns : column * rows;
    op->forward_temp_bytes = rows > columns ? row : column; /* the scalars of the reflectors */
    if (is_batched) op->workspace = workspace;
    const onv_backward_temp temps[N] = {
        {square, N, 0}, {square, N, 0}, {square, N, 0}, {a->bytes, N, 1}};
    onv_emit_backward_temps(&t->emit, op, temps, N);
}

/* With cuBLAS's workspace, in backward, too, which solves and multiplies. */
void onv_tape_solved(onv_tape *t, const onv_program_call *c)
{
    onv_eager_op *made = onv_tape_op_by_row(t, c);
    if (made == NULL || made->n_in == 0) return;
    onv_eager_workspace workspace = onv_emit_cublas_product(&t->emit);
    for (uint32_t k = 0; k < made->n_in; k++) made->in[k].workspace = workspace;
    workspace.stands_within = true;
    onv_eager_tensor a = onv_tensor_at(&t->emit, made->in[0].tensor);
    if (made->aten == ONV_ATEN_linalg_qr)
        add_qr(t, made, &a, workspace);
    else if (made->aten != ONV_ATEN_addr) /* only backward does */
        made->workspace = workspace;
}

/* Keeps its input, and the LU decomposition of that with pivots of int32, which is cuBLAS's of several small matrices, and of four or
 * more large ones (measured). linalg_det_backward makes a diagonal matrix of the gradient, a sum, and solves with copies of both. */
uint32_t onv_tape_det(onv_tape *t, const onv_program_call *c)
{
    enum { SMALL = 128, MANY = 4 };
    uint32_t x = t->in[0], out = onv_tape_new(t, onv_call_result(c, 0), ONV_UNDEFINED);
    onv_eager_tensor a = onv_tensor_at(&t->emit, x);
    uint64_t n = a.rank > 0 ? (uint64_t)a.dims[a.rank - 1] : 0, rows = n > 0 ? a.elems / n : 0;
    uint64_t matrices = n > 0 ? rows / n : 0;
    onv_eager_workspace workspace = onv_emit_cublas_product(&t->emit);
    onv_emit_begin_op(&t->emit, ONV_ATEN_linalg_det);
    onv_emit_in(&t->emit, x, ONV_GRAD_NEW);
    onv_emit_grad_workspace(&t->emit, x, workspace);
    if (matrices > 1 && (n <= SMALL || matrices >= MANY)) onv_emit_workspace(&t->emit, workspace);
    onv_emit_save(&t->emit, x);
    onv_emit_save(&t->emit, out);
    onv_emit_extra(&t->emit, a.bytes, 1, "LU");
    onv_emit_extra(&t->emit, rows, sizeof(int32_t), "pivots");
    onv_emit_temps(
        &t->emit, 0,
        onv_u64_plus(onv_u64_times(3, a.bytes), onv_u64_times(rows, 2 * sizeof(int32_t))));
    onv_emit_out(&t->emit, out);
    onv_emit_end(&t->emit);
    return out;
}

/* A view. Its backward adds up windows that overlap by a list of the places along the dim. */
void onv_tape_unfold(onv_tape *t, const onv_program_call *c)
{
    size_t before = t->emit.eager->ops.count;
    onv_tape_view(t, c);
    onv_eager_op *made = onv_emit_made_since(&t->emit, before);
    if (made == NULL) return;
    onv_eager_tensor x = onv_tensor_at(&t->emit, made->in[0].tensor),
                     y = onv_tensor_at(&t->emit, made->out[0]);
    int64_t dim = onv_call_int(t, c, "dimension", 0);
    if (dim < 0) dim += x.rank;
    if (made->in[0].grad == ONV_GRAD_ALIAS) made->in[0].grad = ONV_GRAD_NEW;
    if (dim < 0 || dim >= (int64_t)x.rank || y.rank == 0) return;
    if (onv_call_int(t, c, "step", 1) < y.dims[y.rank - 1])
        add_temps(made, 0, onv_u64_times((uint64_t)x.dims[dim], sizeof(int64_t)));
}
