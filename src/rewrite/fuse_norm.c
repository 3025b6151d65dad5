/* Layer normalization: its parts, and the additions before it. */
#include "rewrite/fuse.h"

#include <string.h>

/* --- Axes -------------------------------------------------------------------------------------- */

/* The single axis that a ReduceMean reduces, where that is the last one; of the sign that the new attribute
 * gets. */
static bool reduces_last_axis(onv_edit *e, onv_node_id mean, int64_t *axis)
{
    const onv_attr *attr = onv_node_attr(onv_edit_node_at(e, mean), "axes");
    onv_value_id in = onv_edit_in(e, mean, 1);
    const onv_scalar *list;
    uint32_t count;
    if (attr != NULL && attr->kind == ONV_ATTR_INTS) {
        if (attr->count != 1) return false;
        *axis = attr->ints[0];
    } else if (onv_is_value(in) && onv_edit_is_constant(e, in) &&
               onv_edit_ints(e, in, &list, &count) && count == 1 && onv_dim_is_const(list[0].i)) {
        *axis = list[0].i.raw;
    } else {
        return false;
    }
    if (*axis == -1) return true;
    int rank = onv_fuse_rank(e, onv_edit_in(e, mean, 0));
    if (*axis <= 0 || rank < 0 || *axis != rank - 1) return false;
    *axis = -1;
    return true;
}

/* The input of rank 1, the second one if both are. */
static onv_value_id vector_input(const onv_edit *e, onv_node_id node)
{
    for (uint32_t k = 2; k-- > 0;)
        if (onv_fuse_rank(e, onv_edit_in(e, node, k)) == 1) return onv_edit_in(e, node, k);
    return ONV_NO_VALUE;
}

static double epsilon_of(onv_edit *e, onv_node_id add)
{
    double epsilon;
    onv_value_id in = onv_edit_in(e, add, 1);
    bool is_there = onv_edit_is_constant(e, in) &&
                    onv_edit_value_at(e, in)->type.dtype == ONV_FLOAT &&
                    onv_edit_scalar(e, in, &epsilon);
    return is_there ? epsilon : 1e-5;
}

/* --- LayerNormFusion --------------------------------------------------------------------------- */

/*   x -> ReduceMean -> Sub(x, .) -> Pow(2) -> ReduceMean -> Add(epsilon) -> Sqrt -> Div -> Mul -> Add
 *
 * with one Sub or two; with Casts before, behind the Sub, at the Pow and behind the Div. */

enum { MAX_NORM = 16 };

typedef struct norm_match {
    onv_value_id x;
    onv_node_id mean, nodes[MAX_NORM];
    onv_node_id sub, sub2; /* the second one where there is */
    onv_node_id cast;      /* behind the Sub */
    onv_node_id add;       /* of epsilon */
    onv_node_id mean2, mul, last;
    uint32_t n_nodes;
} norm_match;

static bool join(norm_match *n, onv_node_id node)
{
    if (n->n_nodes == MAX_NORM) return false;
    n->nodes[n->n_nodes++] = node;
    return true;
}

static bool is_part(const onv_edit *e, const norm_match *n, onv_node_id node, const char *op_type)
{
    return onv_fuse_is_float_op(e, node, op_type, n->mean, strcmp(op_type, "ReduceMean") == 0);
}

static bool is_inner_part(const onv_edit *e, const norm_match *n, onv_node_id node,
                          const char *op_type)
{
    return is_part(e, n, node, op_type) && onv_fuse_has_uses(e, node, 1);
}

/* All that reads the mean is a Sub from x, or two. */
static bool match_subs(const onv_edit *e, norm_match *n)
{
    onv_value_id mean = onv_edit_out(e, n->mean, 0);
    n->sub = n->sub2 = ONV_NO_NODE;
    for (const onv_use *use = onv_edit_first_use(e, mean); use != NULL;
         use = onv_edit_next_use(e, use)) {
        if (!onv_fuse_is(e, use->node, "Sub") || onv_is_node(n->sub2)) return false;
        if (!onv_fuse_same_value(onv_fuse_other_input(e, use->node, mean), n->x)) return false;
        *(onv_is_node(n->sub) ? &n->sub2 : &n->sub) = use->node;
    }
    if (!onv_is_node(n->sub) || !is_part(e, n, n->sub, "Sub")) return false;
    if (!join(n, n->sub)) return false;
    return !onv_is_node(n->sub2) || is_part(e, n, n->sub2, "Sub");
}

/* A Cast that only the pattern reads may make x. */
static void match_cast_before(const onv_edit *e, norm_match *n, uint32_t readers)
{
    onv_node_id cast = onv_edit_producer(e, n->x);
    if (!onv_is_node(cast) || !onv_fuse_is(e, cast, "Cast") ||
        !onv_fuse_same_provider(e, cast, n->mean) || !onv_fuse_has_uses(e, cast, readers))
        return;
    join(n, cast);
    n->x = onv_edit_in(e, cast, 0);
}

static onv_node_id match_div(const onv_edit *e, norm_match *n)
{
    n->cast = ONV_NO_NODE;
    if (!onv_is_node(n->sub2) && onv_edit_n_output_uses(e, n->sub) == 1) {
        onv_node_id cast = onv_fuse_reader(e, n->sub);
        if (onv_fuse_is(e, cast, "Cast") && onv_fuse_same_provider(e, cast, n->mean) &&
            onv_fuse_has_uses(e, cast, 2)) {
            n->cast = cast;
            join(n, cast);
        }
    }
    bool is_one = onv_is_node(n->sub2) || onv_is_node(n->cast);
    if (!onv_fuse_has_uses(e, n->sub, is_one ? 1 : 2)) return ONV_NO_NODE;
    onv_node_id div = onv_fuse_child(e, onv_is_node(n->cast) ? n->cast : n->sub, "Div");
    if (onv_is_node(n->sub2)) {
        join(n, n->sub2);
        if (!onv_is_node(div)) div = onv_fuse_child(e, n->sub2, "Div");
    }
    return div;
}

/* Back from the Div to the Sub. */
static bool match_deviation(const onv_edit *e, norm_match *n, onv_node_id div)
{
    onv_node_id sqrt = onv_fuse_parent(e, div, "Sqrt");
    if (!is_inner_part(e, n, sqrt, "Sqrt") || !join(n, sqrt)) return false;
    n->add = onv_edit_in_node(e, sqrt, 0);
    if (!is_inner_part(e, n, n->add, "Add") || !join(n, n->add)) return false;
    n->mean2 = onv_fuse_parent(e, n->add, "ReduceMean");
    if (!is_inner_part(e, n, n->mean2, "ReduceMean") || !join(n, n->mean2)) return false;
    onv_node_id pow = onv_edit_in_node(e, n->mean2, 0);
    if (!is_inner_part(e, n, pow, "Pow") || !join(n, pow)) return false;
    onv_node_id cast = onv_fuse_parent(e, pow, "Cast");
    if (onv_is_node(cast))
        return cast.index == n->cast.index || (onv_fuse_same_provider(e, cast, n->mean) &&
                                               onv_fuse_has_uses(e, cast, 1) && join(n, cast));
    onv_node_id sub = onv_fuse_parent(e, pow, "Sub");
    return onv_is_node(sub) && (sub.index == n->sub.index || sub.index == n->sub2.index);
}

static bool match_norm(onv_edit *e, onv_node_id mean, norm_match *n)
{
    *n = (norm_match){.mean = mean, .x = onv_edit_in(e, mean, 0)};
    uint32_t uses = onv_edit_n_output_uses(e, mean);
    if (!is_part(e, n, mean, "ReduceMean") || (uses != 1 && uses != 2) ||
        onv_edit_makes_result(e, mean) || !join(n, mean) || !match_subs(e, n))
        return false;
    match_cast_before(e, n, uses + 1);
    onv_node_id div = match_div(e, n);
    if (!is_inner_part(e, n, div, "Div") || !join(n, div) || !match_deviation(e, n, div))
        return false;
    onv_node_id next = onv_fuse_reader(e, div);
    if (onv_fuse_is(e, next, "Cast") && onv_fuse_has_uses(e, next, 1)) {
        join(n, next);
        next = onv_fuse_reader(e, next);
    }
    n->mul = next;
    if (!is_inner_part(e, n, n->mul, "Mul") || !join(n, n->mul)) return false;
    n->last = onv_fuse_reader(e, n->mul);
    return is_part(e, n, n->last, "Add") && join(n, n->last);
}

static bool fuse_layer_norm(onv_edit *e, onv_node_id mean)
{
    norm_match n;
    int64_t axis, axis2;
    if (!onv_fuse_is(e, mean, "ReduceMean") || !match_norm(e, mean, &n)) return false;
    if (!reduces_last_axis(e, mean, &axis) || !reduces_last_axis(e, n.mean2, &axis2)) return false;
    onv_value_id inputs[3] = {n.x, vector_input(e, n.mul), vector_input(e, n.last)};
    if (!onv_is_value(inputs[1]) || !onv_is_value(inputs[2]) ||
        !onv_dim_same(onv_fuse_dim(e, inputs[1], 0), onv_fuse_dim(e, inputs[2], 0)))
        return false;
    if (onv_edit_node_at(e, mean)->provider == ONV_PROVIDER_CPU &&
        onv_edit_value_at(e, n.x)->type.dtype == ONV_FLOAT16)
        return false;
    onv_attr attrs[2] = {onv_fuse_float(e, "epsilon", epsilon_of(e, n.add)),
                         onv_fuse_int(e, "axis", axis)};
    return onv_fuse_replace(e, &ONV_FUSED(.op_type = "LayerNormalization", .version = 17,
                                          .inputs = inputs, .n_inputs = 3, .attrs = attrs,
                                          .n_attrs = 2, .last = n.last, .nodes = n.nodes,
                                          .n_nodes = n.n_nodes));
}

/* ai.onnx has the operator since 17: then it is made at level 1. */
bool onv_fuse_layer_norm_level1(onv_edit *e, onv_node_id mean)
{
    return onv_edit_node_at(e, mean)->version >= 17 && fuse_layer_norm(e, mean);
}

bool onv_fuse_layer_norm_level2(onv_edit *e, onv_node_id mean)
{
    return onv_edit_node_at(e, mean)->version < 17 && fuse_layer_norm(e, mean);
}

/* --- SimplifiedLayerNormFusion ----------------------------------------------------------------- */

/*   x -> Pow(2) -> ReduceMean -> Add(epsilon) -> Sqrt -> Div(x, .) -> Mul  */

static bool match_simplified(onv_edit *e, onv_node_id pow, norm_match *n)
{
    *n = (norm_match){.mean = pow, .x = onv_edit_in(e, pow, 0)};
    if (!is_inner_part(e, n, pow, "Pow") || !join(n, pow)) return false;
    n->mean2 = onv_fuse_child(e, pow, "ReduceMean");
    if (!is_inner_part(e, n, n->mean2, "ReduceMean") || !join(n, n->mean2)) return false;
    n->add = onv_fuse_child(e, n->mean2, "Add");
    if (!is_inner_part(e, n, n->add, "Add") || !join(n, n->add)) return false;
    onv_node_id sqrt = onv_fuse_child(e, n->add, "Sqrt");
    if (!is_inner_part(e, n, sqrt, "Sqrt") || !join(n, sqrt)) return false;
    onv_node_id div = onv_fuse_child(e, sqrt, "Div");
    if (!is_inner_part(e, n, div, "Div") || !join(n, div)) return false;
    if (!onv_fuse_same_value(onv_edit_in(e, div, 0), n->x)) return false;
    bool is_cuda = onv_edit_node_at(e, pow)->provider == ONV_PROVIDER_CUDA;
    if (is_cuda) match_cast_before(e, n, 2);
    n->mul = onv_fuse_reader(e, div);
    if (onv_fuse_is(e, n->mul, "Cast") && onv_fuse_has_uses(e, n->mul, 1)) {
        if (!is_cuda || !join(n, n->mul)) return false;
        n->mul = onv_fuse_reader(e, n->mul);
    }
    return is_part(e, n, n->mul, "Mul") && join(n, n->mul);
}

bool onv_fuse_simplified_layer_norm(onv_edit *e, onv_node_id pow)
{
    norm_match n;
    int64_t axis;
    if (!onv_fuse_is(e, pow, "Pow") || !match_simplified(e, pow, &n) ||
        !reduces_last_axis(e, n.mean2, &axis))
        return false;
    onv_value_id inputs[2] = {n.x, vector_input(e, n.mul)};
    if (!onv_is_value(inputs[1])) return false;
    if (onv_edit_node_at(e, pow)->provider == ONV_PROVIDER_CPU &&
        onv_edit_value_at(e, n.x)->type.dtype == ONV_FLOAT16)
        return false;
    onv_attr attrs[2] = {onv_fuse_float(e, "epsilon", epsilon_of(e, n.add)),
                         onv_fuse_int(e, "axis", axis)};
    return onv_fuse_replace(e, &ONV_FUSED(.op_type = "SimplifiedLayerNormalization", .version = 1,
                                          .inputs = inputs, .n_inputs = 2, .attrs = attrs,
                                          .n_attrs = 2, .last = n.mul, .nodes = n.nodes,
                                          .n_nodes = n.n_nodes));
}

/* --- SkipLayerNormFusion ----------------------------------------------------------------------- */

static bool is_half_or_float(const onv_edit *e, onv_node_id node)
{
    for (uint32_t k = 0; k < onv_edit_node_at(e, node)->n_inputs; k++) {
        onv_value_id in = onv_edit_in(e, node, k);
        if (!onv_fuse_is_float(e, in) || onv_edit_value_at(e, in)->type.dtype == ONV_DOUBLE)
            return false;
    }
    return true;
}

/* Of two values of rank 3 with the same dims: numbers, or the same symbols. */
static bool is_skip(const onv_edit *e, onv_node_id add, onv_node_id norm)
{
    if (!onv_fuse_is(e, add, "Add") || !onv_fuse_same_provider(e, add, norm) ||
        !is_half_or_float(e, add) || onv_edit_n_output_uses(e, add) != 1 ||
        onv_edit_makes_result(e, add))
        return false;
    onv_value_id a = onv_edit_in(e, add, 0), b = onv_edit_in(e, add, 1);
    if (onv_fuse_rank(e, a) != 3 || onv_fuse_rank(e, b) != 3) return false;
    for (int i = 0; i < 3; i++)
        if (!onv_dim_same(onv_fuse_dim(e, a, i), onv_fuse_dim(e, b, i))) return false;
    return true;
}

/* Of a value of rank 3 and a constant vector behind it. */
static bool is_bias(const onv_edit *e, onv_node_id add, onv_node_id norm)
{
    if (!onv_fuse_is(e, add, "Add") || !onv_fuse_same_provider(e, add, norm) ||
        !is_half_or_float(e, add) || onv_edit_n_output_uses(e, add) != 1 ||
        onv_edit_makes_result(e, add))
        return false;
    onv_value_id a = onv_edit_in(e, add, 0), b = onv_edit_in(e, add, 1);
    return onv_edit_is_constant(e, b) && onv_fuse_rank(e, a) == 3 && onv_fuse_rank(e, b) == 1 &&
           onv_dim_is_const(onv_fuse_dim(e, b, 0)) &&
           onv_dim_same(onv_fuse_dim(e, a, 2), onv_fuse_dim(e, b, 0));
}

/* A value of 16 bits where the result has 32 is cast first. */
static onv_value_id cast_to_float(onv_edit *e, onv_value_id in, onv_node_id norm)
{
    onv_dtype to = (onv_dtype)onv_edit_value_at(e, onv_edit_out(e, norm, 0))->type.dtype;
    if (!onv_is_value(in) || to != ONV_FLOAT || onv_edit_value_at(e, in)->type.dtype == ONV_FLOAT)
        return in;
    onv_attr attr = onv_fuse_int(e, "to", ONV_FLOAT);
    onv_node_id cast =
        onv_edit_add(e, &ONV_NEW_NODE(.op_type = "Cast", .inputs = &in, .n_inputs = 1,
                                      .n_outputs = 1, .attrs = &attr, .n_attrs = 1, .at = norm));
    return e->status == ONV_OK ? onv_edit_out(e, cast, 0) : in;
}

bool onv_fuse_skip_layer_norm(onv_edit *e, onv_node_id norm)
{
    if (!onv_fuse_is(e, norm, "LayerNormalization") || !is_half_or_float(e, norm)) return false;
    onv_node_id skip = onv_edit_in_node(e, norm, 0);
    if (!onv_is_node(skip) || !is_skip(e, skip, norm)) return false;
    onv_value_id inputs[5] = {onv_edit_in(e, skip, 0), onv_edit_in(e, skip, 1),
                              onv_edit_in(e, norm, 1), onv_edit_in(e, norm, 2)};
    uint32_t n_inputs = 4, n_nodes = 2;
    onv_node_id nodes[3] = {skip, norm};
    for (uint32_t k = 0; k < 2 && n_inputs == 4; k++) {
        onv_node_id bias = onv_edit_in_node(e, skip, k);
        if (!onv_is_node(bias) || !is_bias(e, bias, norm)) continue;
        inputs[k] = onv_edit_in(e, bias, 0);
        inputs[n_inputs++] = onv_edit_in(e, bias, 1);
        nodes[n_nodes++] = bias;
    }
    for (uint32_t k = 0; k < n_inputs; k++) inputs[k] = cast_to_float(e, inputs[k], norm);
    onv_attr epsilon = onv_fuse_float(e, "epsilon", onv_edit_float(e, norm, "epsilon", 1e-5));
    return onv_fuse_replace(e, &ONV_FUSED(.op_type = "SkipLayerNormalization",
                                          .domain = ONV_MS_DOMAIN, .inputs = inputs,
                                          .n_inputs = n_inputs, .attrs = &epsilon, .n_attrs = 1,
                                          .last = norm, .nodes = nodes, .n_nodes = n_nodes));
}

/* --- BiasSkipLayerNormFusion ------------------------------------------------------------------- */

/* A product, or one that is cast, plus a constant vector: which input is the vector. */
static bool match_product_and_bias(const onv_edit *e, onv_node_id add, onv_node_id norm,
                                   uint32_t *bias)
{
    if (!onv_fuse_is(e, add, "Add") || !onv_fuse_same_provider(e, add, norm) ||
        onv_edit_n_output_uses(e, add) != 1 || onv_edit_makes_result(e, add))
        return false;
    for (uint32_t k = 0; k < 2; k++) {
        onv_node_id product = onv_edit_in_node(e, add, k);
        if (onv_is_node(product) && onv_fuse_is(e, product, "Cast"))
            product = onv_edit_in_node(e, product, 0);
        onv_value_id other = onv_edit_in(e, add, 1 - k);
        if (!onv_is_node(product) || !onv_fuse_is(e, product, "MatMul") ||
            !onv_edit_is_constant(e, other) || onv_fuse_rank(e, other) != 1)
            continue;
        *bias = 1 - k;
        return true;
    }
    return false;
}

bool onv_fuse_bias_skip_layer_norm(onv_edit *e, onv_node_id norm)
{
    if (!onv_edit_is_of(e, norm, ONV_MS_DOMAIN, "SkipLayerNormalization") ||
        onv_edit_node_at(e, norm)->n_inputs != 4)
        return false;
    for (uint32_t k = 0; k < 2; k++) {
        uint32_t bias;
        onv_node_id add = onv_edit_in_node(e, norm, k);
        if (!onv_is_node(add) || !match_product_and_bias(e, add, norm, &bias)) continue;
        onv_value_id inputs[5] = {onv_edit_in(e, add, 1 - bias), onv_edit_in(e, norm, 1 - k),
                                  onv_edit_in(e, norm, 2), onv_edit_in(e, norm, 3),
                                  onv_edit_in(e, add, bias)};
        onv_attr epsilon = onv_fuse_float(e, "epsilon", onv_edit_float(e, norm, "epsilon", 1e-12));
        return onv_fuse_replace(
            e, &ONV_FUSED(.op_type = "SkipLayerNormalization", .domain = ONV_MS_DOMAIN,
                          .inputs = inputs, .n_inputs = 5, .attrs = &epsilon, .n_attrs = 1,
                          .last = norm, .nodes = (onv_node_id[]){add, norm}, .n_nodes = 2));
    }
    return false;
}
