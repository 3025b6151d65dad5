/* Tensor.unfold, of which the older exporter writes each window. */
#include "fuse/find.h"
#include "load/load.h"

/* The only element of a constant. */
bool onv_find_number(onv_finder *s, onv_value_id id, double *number)
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

/* One window of x, [.., 1, .., size]: where it begins. */
static bool find_window(onv_finder *s, onv_value_id value, onv_group *g, onv_value_id *x,
                        int64_t *dim, int64_t *begin)
{
    double start, axis;
    const onv_node *unsqueeze = onv_find_sole(s, value, ONV_OP_Unsqueeze);
    if (unsqueeze == NULL) return false;
    const onv_node *turned = onv_find_sole(s, unsqueeze->inputs[0], ONV_OP_Transpose);
    const onv_node *slice =
        onv_find_sole(s, (turned != NULL ? turned : unsqueeze)->inputs[0], ONV_OP_Slice);
    if (slice == NULL || slice->n_inputs != 4 || !onv_find_number(s, slice->inputs[1], &start) ||
        !onv_find_number(s, slice->inputs[3], &axis) || start < 0)
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
