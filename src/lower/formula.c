/* What PyTorch runs for functions that the exporter writes down as a formula. */
#include <string.h>

#include "base/checked.h"
#include "lower/lowering.h"

static uint64_t sum_of(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return onv_u64_add(a, b, &sum) ? sum : UINT64_MAX;
}

/* --- Reciprocals ---------------------------------------------------------------------------- */

/* Does a product by a number of the file alone read the value? */
static bool is_multiplied(const onv_lowering *l, onv_value_id value)
{
    onv_node_id user = l->fusions.user[value.index];
    if (!onv_is_node(user) || l->fusions.n_uses[value.index] != 1) return false;
    const onv_node *node = onv_model_node(l->emit.model, user);
    if (strcmp(node->op_type, "Mul") != 0 || !onv_node_is_aten(node, "mul")) return false;
    onv_value_id other = node->inputs[node->inputs[0].index == value.index];
    const onv_value *number = onv_is_value(other) ? onv_model_value(l->emit.model, other) : NULL;
    return number != NULL && number->tensor != NULL && number->tensor->elems == 1;
}

/* PyTorch multiplies the reciprocal by the number. */
static uint32_t multiplied(onv_lowering *l, const onv_node *node, uint32_t inverse)
{
    return onv_recover_unary(l, ONV_ATEN_mul, inverse, node->outputs[0]);
}

/* `1 / x`, of which the exporter leaves out the number. */
void onv_lower_reciprocal(onv_lowering *l, const onv_node *node)
{
    uint32_t inverse =
        onv_recover_unary(l, ONV_ATEN_reciprocal, onv_node_in(l, node, 0), node->outputs[0]);
    bool is_whole = is_multiplied(l, node->outputs[0]);
    bool calls = onv_noted(node)->in_place == ONV_IN_PLACE_NO || node->statements == NULL ||
                 node->statements[0] == '\0';
    if (inverse == ONV_NO_TENSOR || is_whole || calls || !onv_node_is_aten(node, "reciprocal")) {
        onv_node_set(l, node, 0, inverse);
        return;
    }
    uint32_t out = multiplied(l, node, inverse);
    onv_node_set(l, node, 0, out);
    if (onv_noted(node)->in_place != ONV_IN_PLACE_UNTOLD || !onv_tensor_needs_grad(&l->emit, out))
        return;
    l->tally.quotients.count++; /* its line is not told */
    l->tally.quotients.bytes = sum_of(l->tally.quotients.bytes, onv_tensor_at(&l->emit, out).bytes);
}

void onv_lower_quotient_of_number(onv_lowering *l, const onv_node *node)
{
    uint32_t inverse =
        onv_recover_unary(l, ONV_ATEN_reciprocal, onv_node_in(l, node, 1), node->outputs[0]);
    onv_node_set(l, node, 0, multiplied(l, node, inverse));
}

/* --- Cosine similarity ------------------------------------------------------------------------- */

void onv_lower_cosine(onv_lowering *l, const onv_fusion *f)
{
    const onv_node *reduction = onv_model_node(l->emit.model, f->reduction);
    uint32_t x = onv_value_tensor(l, f->x), y = onv_value_tensor(l, f->key);
    onv_recover_int(l, "dim", onv_node_operand(l, reduction, 1, 0, -1));
    onv_recover_tensor(l, "x1", x);
    onv_recover_tensor(l, "x2", y);
    onv_value_set(l, f->out, onv_recover_call(l, ONV_ATEN_cosine_similarity, f->out));
}

/* --- Distances --------------------------------------------------------------------------------- */

/* Beyond as many rows cdist takes a product of matrices. */
enum { MAX_ROWS_APART = 25 };

/* _euclidean_dist: each side with its squared norms and ones behind it. */
static uint64_t joined_bytes(const onv_eager_tensor *t)
{
    uint64_t row = (uint64_t)t->dims[t->rank - 1], more = 0;
    return row == 0 || !onv_u64_mul(t->bytes / row, 2, &more) ? t->bytes : sum_of(t->bytes, more);
}

static uint64_t column_bytes(const onv_eager_tensor *t)
{
    uint64_t row = (uint64_t)t->dims[t->rank - 1];
    return row == 0 ? 0 : t->bytes / row;
}

/* _euclidean_dist_backward: grad / result, its sums, and for each side a product of both kinds, all to the end
 * of one expression. */
static uint64_t product_temps(const onv_eager_tensor *x, const onv_eager_tensor *y,
                              const onv_eager_tensor *out)
{
    uint64_t temps = out->bytes;
    for (uint32_t i = 0; i < 2; i++) {
        const onv_eager_tensor *t = i == 0 ? x : y;
        temps = sum_of(temps, sum_of(column_bytes(t), sum_of(t->bytes, t->bytes)));
    }
    return temps;
}

void onv_lower_cdist(onv_lowering *l, const onv_fusion *f)
{
    uint32_t in[2];
    onv_eager_tensor t[2];
    onv_shape shape;
    for (uint32_t k = 0; k < 2; k++) {
        in[k] = onv_amp_fp32(&l->emit, onv_value_tensor(l, k == 0 ? f->x : f->key));
        in[k] = onv_emit_contiguous(&l->emit, in[k]);
        if (in[k] == ONV_NO_TENSOR) return;
        t[k] = onv_tensor_at(&l->emit, in[k]);
    }
    if (!onv_value_shape(l, f->out, &shape) || t[0].rank < 2 || t[1].rank != t[0].rank) return;
    uint32_t out = onv_tensor_new(&l->emit, t[0].dtype, shape.rank, shape.dims, NULL);
    onv_eager_tensor y = onv_tensor_at(&l->emit, out);
    int64_t rows[2] = {t[0].dims[t[0].rank - 2], t[1].dims[t[1].rank - 2]};
    uint64_t backward, forward = 0;
    if (rows[0] > MAX_ROWS_APART || rows[1] > MAX_ROWS_APART) {
        forward = sum_of(joined_bytes(&t[0]), joined_bytes(&t[1]));
        backward = product_temps(&t[0], &t[1], &y);
    } else { /* every difference of two elements, then their sums */
        if (!onv_u64_mul(y.bytes, (uint64_t)t[0].dims[t[0].rank - 1], &backward))
            backward = UINT64_MAX;
    }
    onv_emit_begin(&l->emit, "cdist");
    for (uint32_t k = 0; k < 2; k++) {
        onv_emit_in(&l->emit, in[k], ONV_GRAD_NEW);
        onv_emit_save(&l->emit, in[k]);
    }
    onv_emit_save(&l->emit, out);
    onv_emit_temps(&l->emit, forward, backward);
    onv_value_set(l, f->out, onv_emit_out(&l->emit, out));
    onv_emit_end(&l->emit);
}

/* --- Products that are added -------------------------------------------------------------------- */

void onv_lower_add_product(onv_lowering *l, const onv_fusion *f)
{
    const onv_node *product = onv_model_node(l->emit.model, f->reduction), *scaled = product;
    if (product->inputs[0].index != f->key.index)
        scaled = onv_model_node(l->emit.model,
                                onv_model_value(l->emit.model, product->inputs[0])->producer);
    uint32_t in[3] = {onv_node_in(l, onv_model_node(l->emit.model, f->last), 0),
                      onv_node_in(l, scaled, scaled == product ? 0 : 1),
                      onv_node_in(l, product, 1)};
    for (uint32_t k = 0; k < 3; k++) onv_recover_tensor(l, "", in[k]);
    onv_value_set(l, f->out, onv_recover_call(l, onv_aten_named(f->name), f->out));
}

/* --- Windows ----------------------------------------------------------------------------------- */

/* A view. Its backward adds up windows that overlap by a list of the places along the dim. */
void onv_lower_unfold(onv_lowering *l, const onv_fusion *f)
{
    uint32_t x = onv_value_tensor(l, f->x);
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    onv_shape shape;
    int64_t strides[ONV_MAX_RANK];
    if (x == ONV_NO_TENSOR || !onv_value_shape(l, f->out, &shape) || shape.rank != t.rank + 1)
        return;
    for (uint32_t i = 0; i < t.rank; i++)
        strides[i] = t.strides[i] * (i == f->groups ? f->step : 1);
    strides[t.rank] = t.strides[f->groups];
    uint64_t places = 0;
    if (f->step < shape.dims[t.rank] &&
        !onv_u64_mul((uint64_t)t.dims[f->groups], sizeof(int64_t), &places))
        places = UINT64_MAX;
    uint32_t view = onv_tensor_on(&l->emit, t.storage, t.dtype, shape.rank, shape.dims, strides);
    onv_emit_begin(&l->emit, "unfold");
    onv_emit_in(&l->emit, x, ONV_GRAD_NEW);
    onv_emit_temps(&l->emit, 0, places);
    onv_value_set(l, f->out, onv_emit_out(&l->emit, view));
    onv_emit_end(&l->emit);
}

/* Tensor.diagonal is a view, which the exporter writes as a sum over a product with ones; it moves both dims to the end
 * before, where they are others. */
void onv_lower_diagonal(onv_lowering *l, const onv_fusion *f)
{
    enum { MOST_NODES = 8 };
    uint32_t x = onv_value_tensor(l, f->x);
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    onv_shape shape;
    int64_t strides[ONV_MAX_RANK], from[ONV_MAX_RANK];
    if (x == ONV_NO_TENSOR || !onv_value_shape(l, f->out, &shape) || shape.rank + 1 != t.rank)
        return;
    for (uint32_t i = 0; i < t.rank; i++) from[i] = i;
    const onv_node *node = onv_model_node(l->emit.model, f->last);
    for (uint32_t n = 0; n < MOST_NODES && node->inputs[0].index != f->x.index; n++) {
        onv_node_id producer = onv_model_value(l->emit.model, node->inputs[0])->producer;
        if (!onv_is_node(producer)) return;
        node = onv_model_node(l->emit.model, producer);
        const onv_attr *perm = onv_node_attr(node, "perm");
        for (uint32_t i = 0; i < t.rank && perm != NULL && perm->count == t.rank; i++)
            from[i] = perm->ints[i]; /* inference has checked it */
    }
    for (uint32_t i = 0; i < shape.rank; i++) strides[i] = t.strides[from[i]];
    strides[shape.rank - 1] += t.strides[from[t.rank - 1]];
    onv_value_set(
        l, f->out,
        onv_emit_view(&l->emit, "diagonal", x, shape.rank, shape.dims, strides, ONV_GRAD_NEW));
}

/* --- Adaptive pooling -------------------------------------------------------------------------- */

void onv_lower_adaptive_pool(onv_lowering *l, const onv_fusion *f)
{
    onv_value_set(
        l, f->out,
        onv_recover_unary(l, ONV_ATEN_adaptive_avg_pool2d, onv_value_tensor(l, f->x), f->out));
}
