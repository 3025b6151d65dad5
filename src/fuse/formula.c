/* Functions that the older exporter writes down as a formula, and that have a derivative, a view or other
 * operations of their own in PyTorch. */
#include <math.h>

#include "fuse/find.h"
#include "load/load.h"

static onv_fusion of_two(onv_finder *s, onv_fusion_kind kind, onv_value_id a, onv_value_id b,
                         const onv_node *last)
{
    onv_fusion fusion = onv_find_unary(s, kind, a, last);
    fusion.key = b;
    return fusion;
}

static bool take_all(onv_finder *s, onv_group *g, const onv_node *const *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!onv_find_take(s, g, nodes[i])) return false;
    return onv_find_same_call(s, g);
}

/* The only element of a constant. */
static bool find_number(onv_finder *s, onv_value_id id, double *number)
{
    if (!onv_is_value(id)) return false;
    const onv_value *value = onv_model_value(s->model, id);
    const onv_known *known = value->known;
    onv_error unused = {0};
    if (known == NULL && value->tensor != NULL && value->tensor->elems == 1 &&
        onv_load_known(s->model, value->tensor, &known, &unused) != ONV_OK)
        return false;
    if (known == NULL || known->count != 1 || !onv_dim_is_const(known->elems[0].i)) return false;
    bool is_float = onv_dtype_is_float((onv_dtype)known->dtype);
    *number = (double)known->elems[0].i.raw * (is_float ? known->elems[0].f : 1.0);
    return *number == *number;
}

/* --- Grids ------------------------------------------------------------------------------------- */

/* The places of a grid, [n, 3, 1] or [n, 4, 1], times transposed matrices, summed: a function that makes the places anew when
 * its gradient is wanted. */
void onv_find_affine_grid(onv_finder *s, const onv_node *sum)
{
    onv_group g = {0};
    const onv_node *product = onv_find_sole(s, sum->inputs[0], "Mul");
    if (product == NULL || product->n_inputs != 2 || !onv_is_value(product->inputs[0])) return;
    const onv_node *matrices = onv_find_sole(s, product->inputs[1], "Unsqueeze");
    const onv_value *places = onv_model_value(s->model, product->inputs[0]);
    const onv_type *type = &places->type, *out = &onv_model_value(s->model, sum->outputs[0])->type;
    if (matrices == NULL || !onv_value_is_weight(places) || type->rank != 3 || out->rank != 3 ||
        !onv_dim_is(type->dims[2], 1))
        return;
    bool is_plane = onv_dim_is(type->dims[1], 3) && onv_dim_is(out->dims[2], 2);
    bool is_space = onv_dim_is(type->dims[1], 4) && onv_dim_is(out->dims[2], 3);
    const onv_node *const nodes[] = {matrices, product, sum};
    if (!is_plane && !is_space) return;
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++)
        if (!onv_find_take(s, &g, nodes[i])) return;
    onv_fusion fusion = onv_find_unary(s, ONV_FUSION_POINTWISE, matrices->inputs[0], sum);
    fusion.name = "affine_grid_generator";
    onv_find_publish(s, &g, fusion);
}

/* --- Pointwise --------------------------------------------------------------------------------- */

/* What a product multiplies by a number, which the graph may compute. */
static const onv_node *find_difference(const onv_finder *s, const onv_node *product)
{
    for (uint32_t k = 0; product != NULL && product->n_inputs == 2 && k < 2; k++) {
        const onv_node *sub = onv_find_producer(s, product->inputs[k], "Sub");
        onv_value_id factor = product->inputs[1 - k];
        if (sub != NULL && sub->n_inputs == 2 && onv_is_value(factor) &&
            onv_model_value(s->model, factor)->type.rank == 0)
            return sub;
    }
    return NULL;
}

/* Both branches: a + w (b - a) and b - (b - a) (1 - w), of which a number chooses one. */
void onv_find_lerp(onv_finder *s, const onv_node *where)
{
    onv_group g = {0};
    if (where->n_inputs != 3 || !onv_is_value(where->inputs[0]) ||
        onv_model_value(s->model, where->inputs[0])->type.rank != 0)
        return;
    const onv_node *add = onv_find_sole(s, where->inputs[1], "Add");
    const onv_node *sub = onv_find_sole(s, where->inputs[2], "Sub");
    if (add == NULL || sub == NULL || add->n_inputs != 2 || sub->n_inputs != 2) return;
    onv_value_id start = add->inputs[0], end = sub->inputs[0];
    const onv_node *up = onv_find_sole(s, add->inputs[1], "Mul");
    const onv_node *down = onv_find_sole(s, sub->inputs[1], "Mul");
    const onv_node *between = find_difference(s, up);
    if (between == NULL || find_difference(s, down) != between ||
        s->f->n_uses[between->outputs[0].index] != 2 || !onv_find_same(between->inputs[0], end) ||
        !onv_find_same(between->inputs[1], start))
        return;
    const onv_node *const parts[] = {between, up, add, down, sub, where};
    if (!take_all(s, &g, parts, sizeof parts / sizeof parts[0])) return;
    onv_fusion fusion = of_two(s, ONV_FUSION_POINTWISE, start, end, where);
    fusion.name = "lerp.Scalar";
    onv_find_publish(s, &g, fusion);
}

/* atan(a / b), half a turn further where b < 0: up where a > 0, down elsewhere. */
void onv_find_atan2(onv_finder *s, const onv_node *atan)
{
    onv_group g = {0};
    onv_value_id angle = atan->outputs[0];
    const onv_node *div = onv_find_sole(s, atan->inputs[0], "Div");
    const onv_node *up = onv_find_node(s, s->f->user[angle.index]);
    if (div == NULL || s->f->n_uses[angle.index] != 3 || !onv_find_is_op(up, "Add") ||
        !onv_find_is_number(s, onv_find_other(up, angle)))
        return;
    const onv_node *either = onv_find_reader(s, up->outputs[0], "Where");
    const onv_node *last = either != NULL ? onv_find_reader(s, either->outputs[0], "Where") : NULL;
    if (last == NULL || either->n_inputs != 3 || last->n_inputs != 3) return;
    const onv_node *down = onv_find_sole(s, either->inputs[2], "Sub");
    const onv_node *above = onv_find_sole(s, either->inputs[0], "Greater");
    const onv_node *left = onv_find_sole(s, last->inputs[0], "Less");
    if (down == NULL || above == NULL || left == NULL || !onv_find_same(down->inputs[0], angle) ||
        !onv_find_same(last->inputs[2], angle) ||
        !onv_find_same(above->inputs[0], div->inputs[0]) ||
        !onv_find_same(left->inputs[0], div->inputs[1]))
        return;
    const onv_node *const parts[] = {div, atan, up, down, above, either, left, last};
    if (!take_all(s, &g, parts, sizeof parts / sizeof parts[0])) return;
    onv_fusion fusion = of_two(s, ONV_FUSION_POINTWISE, div->inputs[0], div->inputs[1], last);
    fusion.name = "atan2";
    onv_find_publish(s, &g, fusion);
}

static bool is_same_call(const onv_node *a, const onv_node *b)
{
    return a->source_op == b->source_op && a->scope == b->scope && a->aten_op == b->aten_op;
}

/* x + a * b * 1: the older exporter, which has no notes, multiplies by the value that addcmul takes. */
static void find_scaled_product(onv_finder *s, const onv_node *add)
{
    onv_group g = {0};
    double value;
    const onv_node *scaled = onv_find_sole(s, add->inputs[1], "Mul");
    if (scaled == NULL || scaled->n_inputs != 2 || !find_number(s, scaled->inputs[1], &value) ||
        value != 1)
        return;
    const onv_node *product = onv_find_sole(s, scaled->inputs[0], "Mul");
    const onv_node *const parts[] = {product, scaled, add};
    if (product == NULL || product->n_inputs != 2 || !take_all(s, &g, parts, 3)) return;
    onv_fusion fusion = of_two(s, ONV_FUSION_ADD_PRODUCT, add->inputs[0], product->inputs[0], add);
    fusion.value = product->inputs[1];
    fusion.reduction = onv_find_id(s, product);
    fusion.name = "addcmul";
    onv_find_publish(s, &g, fusion);
}

/* x + [value *] a * b, x + [value *] a / b. */
void onv_find_add_product(onv_finder *s, const onv_node *add)
{
    onv_group g = {0};
    bool divides = onv_node_is_aten(add, "addcdiv");
    if (add->n_inputs == 2 && (add->aten_op == NULL || add->aten_op[0] == '\0'))
        find_scaled_product(s, add);
    if ((!divides && !onv_node_is_aten(add, "addcmul")) || add->n_inputs != 2) return;
    const onv_node *product = onv_find_sole(s, add->inputs[1], divides ? "Div" : "Mul");
    const onv_node *times = divides ? onv_find_sole(s, add->inputs[1], "Mul") : NULL;
    if (times != NULL && times->n_inputs == 2 && onv_find_is_number(s, times->inputs[1]))
        product = onv_find_sole(s, times->inputs[0], "Div");
    if (product == NULL || product->n_inputs != 2 || !is_same_call(add, product)) return;
    if (times != NULL && (!is_same_call(add, times) || !onv_find_take(s, &g, times))) return;
    onv_value_id factor = product->inputs[0];
    const onv_node *scaled = onv_find_sole(s, factor, "Mul");
    if (!onv_find_take(s, &g, add) || !onv_find_take(s, &g, product)) return;
    if (scaled != NULL && is_same_call(add, scaled) && scaled->n_inputs == 2 &&
        onv_find_is_number(s, scaled->inputs[0]) && onv_find_take(s, &g, scaled))
        factor = scaled->inputs[1];
    onv_fusion fusion = of_two(s, ONV_FUSION_ADD_PRODUCT, add->inputs[0], factor, add);
    fusion.value = product->inputs[1];
    fusion.reduction = onv_find_id(s, product);
    fusion.name = divides ? "addcdiv" : "addcmul";
    onv_find_publish(s, &g, fusion);
}

/* --- Along a dim ------------------------------------------------------------------------------- */

static const onv_node *sum_of_product(const onv_finder *s, onv_value_id value)
{
    const onv_node *sum = onv_find_sole(s, value, "ReduceSum");
    return sum != NULL ? onv_find_sole(s, sum->inputs[0], "Mul") : NULL;
}

static bool is_square(const onv_node *product, onv_value_id of)
{
    return product != NULL && product->n_inputs == 2 && onv_find_same(product->inputs[0], of) &&
           onv_find_same(product->inputs[1], of);
}

/* sum(a b) / max(sqrt(sum(a a) sum(b b)), eps). */
void onv_find_cosine(onv_finder *s, const onv_node *div)
{
    onv_group g = {0};
    const onv_node *dot = sum_of_product(s, div->inputs[0]);
    const onv_node *max =
        onv_find_sole(s, div->n_inputs > 1 ? div->inputs[1] : ONV_NO_VALUE, "Max");
    const onv_node *root = max != NULL ? onv_find_sole(s, max->inputs[0], "Sqrt") : NULL;
    const onv_node *norms = root != NULL ? onv_find_sole(s, root->inputs[0], "Mul") : NULL;
    if (dot == NULL || norms == NULL || dot->n_inputs != 2 || norms->n_inputs != 2) return;
    const onv_node *square[] = {sum_of_product(s, norms->inputs[0]),
                                sum_of_product(s, norms->inputs[1])};
    if (!is_square(square[0], dot->inputs[0]) || !is_square(square[1], dot->inputs[1])) return;
    const onv_node *const parts[] = {dot,       onv_find_producer(s, div->inputs[0], "ReduceSum"),
                                     square[0], onv_find_producer(s, norms->inputs[0], "ReduceSum"),
                                     square[1], onv_find_producer(s, norms->inputs[1], "ReduceSum"),
                                     norms,     root,
                                     max,       div};
    if (!take_all(s, &g, parts, sizeof parts / sizeof parts[0])) return;
    onv_fusion fusion = of_two(s, ONV_FUSION_COSINE, dot->inputs[0], dot->inputs[1], div);
    fusion.reduction = onv_find_id(s, parts[1]);
    onv_find_publish(s, &g, fusion);
}

/* Of [.., rows, 1, n] or [.., 1, rows, n]: what it was before the dim was put in. */
static onv_value_id without_dim(const onv_finder *s, onv_value_id value)
{
    const onv_node *unsqueeze = onv_find_sole(s, value, "Unsqueeze");
    return unsqueeze != NULL ? unsqueeze->inputs[0] : ONV_NO_VALUE;
}

/* The exporter's 1 / (p + 1e-6), which nobody else writes. */
static bool is_root_of_two(onv_finder *s, const onv_node *square, const onv_node *root)
{
    double p, inverse;
    return square->n_inputs == 2 && root->n_inputs == 2 && find_number(s, square->inputs[1], &p) &&
           find_number(s, root->inputs[1], &inverse) && p == 2.0 &&
           fabs(inverse - 1 / (2 + 1e-6)) < 1e-7;
}

/* sum((a[.., :, None, :] - b[.., None, :, :])^2)^(1 / 2). */
void onv_find_cdist(onv_finder *s, const onv_node *root)
{
    onv_group g = {0};
    const onv_node *sum = onv_find_sole(s, root->inputs[0], "ReduceSum");
    const onv_node *square = sum != NULL ? onv_find_sole(s, sum->inputs[0], "Pow") : NULL;
    const onv_node *sub = square != NULL ? onv_find_sole(s, square->inputs[0], "Sub") : NULL;
    if (sub == NULL || sub->n_inputs != 2 || !is_root_of_two(s, square, root)) return;
    onv_value_id a = without_dim(s, sub->inputs[0]), b = without_dim(s, sub->inputs[1]);
    if (!onv_is_value(a) || !onv_is_value(b)) return;
    const onv_type *x = &onv_model_value(s->model, a)->type,
                   *y = &onv_model_value(s->model, b)->type;
    const onv_type *out = &onv_model_value(s->model, root->outputs[0])->type;
    int rank = x->rank;
    if (rank < 2 || y->rank != rank || out->rank != rank ||
        !onv_dim_same(out->dims[rank - 2], x->dims[rank - 2]) ||
        !onv_dim_same(out->dims[rank - 1], y->dims[rank - 2]))
        return;
    for (int i = 0; i + 2 < rank; i++)
        if (!onv_dim_same(x->dims[i], y->dims[i])) return; /* it would be expanded */
    const onv_node *const parts[] = {onv_find_producer(s, sub->inputs[0], "Unsqueeze"),
                                     onv_find_producer(s, sub->inputs[1], "Unsqueeze"),
                                     sub,
                                     square,
                                     sum,
                                     root};
    if (!take_all(s, &g, parts, sizeof parts / sizeof parts[0])) return;
    onv_find_publish(s, &g, of_two(s, ONV_FUSION_CDIST, a, b, root));
}

/* One window of x, [.., 1, .., size]: where it begins. */
static bool find_window(onv_finder *s, onv_value_id value, onv_group *g, onv_value_id *x,
                        int64_t *dim, int64_t *begin)
{
    double start, axis;
    const onv_node *unsqueeze = onv_find_sole(s, value, "Unsqueeze");
    if (unsqueeze == NULL) return false;
    const onv_node *turned = onv_find_sole(s, unsqueeze->inputs[0], "Transpose");
    const onv_node *slice =
        onv_find_sole(s, (turned != NULL ? turned : unsqueeze)->inputs[0], "Slice");
    if (slice == NULL || slice->n_inputs != 4 || !find_number(s, slice->inputs[1], &start) ||
        !find_number(s, slice->inputs[3], &axis) || start < 0)
        return false;
    *x = slice->inputs[0];
    *dim = (int64_t)axis;
    *begin = (int64_t)start;
    g->count = 0;
    return onv_find_take(s, g, slice) && (turned == NULL || onv_find_take(s, g, turned)) &&
           onv_find_take(s, g, unsqueeze);
}

void onv_find_unfold(onv_finder *s, const onv_node *concat)
{
    onv_group g;
    onv_value_id x = ONV_NO_VALUE, of;
    int64_t dim = 0, step = 0, axis, begin;
    for (uint32_t k = 0; k < concat->n_inputs; k++) {
        if (!find_window(s, concat->inputs[k], &g, &of, &axis, &begin)) return;
        if (k == 0) {
            x = of;
            dim = axis;
        }
        if (k == 1) step = begin;
        if (!onv_find_same(of, x) || axis != dim || begin != k * step) return;
    }
    if (concat->n_inputs < 2 || step <= 0) return;
    const onv_type *in = &onv_model_value(s->model, x)->type;
    const onv_type *out = &onv_model_value(s->model, concat->outputs[0])->type;
    if (dim < 0 || dim >= in->rank || out->rank != in->rank + 1 || s->failed) return;
    onv_fusion fusion = onv_find_unary(s, ONV_FUSION_UNFOLD, x, concat);
    fusion.groups = dim;
    fusion.step = step;
    g.count = 0;
    if (!onv_find_take(s, &g, concat)) return;
    onv_find_publish(s, &g, fusion);
    for (uint32_t k = 0; k < concat->n_inputs && !s->failed; k++) {
        find_window(s, concat->inputs[k], &g, &of, &axis, &begin);
        for (uint32_t i = 0; i < g.count; i++)
            s->f->of_node[g.nodes[i].index] = (uint32_t)s->f->at.count;
    }
}
