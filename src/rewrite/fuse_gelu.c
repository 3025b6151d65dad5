/* GELU and its approximations. */
#include "rewrite/fuse.h"

#include <string.h>

/* --- GeluFusion -------------------------------------------------------------------------------- */

/*              +------- Mul(0.5) ---------+              or Mul -> Mul(0.5) at the end
 *   x -> Div(sqrt 2) -> Erf -> Add(1) -> Mul  */

typedef struct match {
    onv_value_id x;
    onv_node_id nodes[5], last;
} match;

static bool is_half(onv_edit *e, onv_node_id mul, onv_value_id x)
{
    onv_value_id other = onv_fuse_other_input(e, mul, x);
    return onv_is_value(other) && onv_fuse_is_number(e, other, 0.5);
}

static bool match_gelu_end(onv_edit *e, match *g, onv_node_id mul)
{
    onv_node_id half = onv_fuse_parent(e, mul, "Mul");
    if (onv_is_node(half)) {
        g->last = mul;
        g->nodes[4] = half;
        return onv_fuse_is_float_op(e, half, "Mul", g->nodes[0], 0) &&
               onv_fuse_has_uses(e, half, 1) && is_half(e, half, g->x);
    }
    if (!onv_fuse_has_uses(e, mul, 1) || !onv_is_value(onv_fuse_other_input(e, mul, g->x)))
        return false;
    half = onv_fuse_reader(e, mul);
    g->last = g->nodes[4] = half;
    return onv_fuse_is_float_op(e, half, "Mul", g->nodes[0], 0) &&
           is_half(e, half, onv_edit_out(e, mul, 0));
}

static bool match_gelu(onv_edit *e, onv_node_id div, match *g)
{
    if (!onv_fuse_is_float_op(e, div, "Div", div, 0) || !onv_fuse_has_uses(e, div, 1)) return false;
    onv_value_id root = onv_edit_in(e, div, 1);
    if (!onv_fuse_is_number(e, root, 1.4142099618911743) &&
        !onv_fuse_is_number(e, root, 1.4142135623730951))
        return false;
    onv_node_id erf = onv_fuse_reader(e, div);
    if (!onv_fuse_is_float_op(e, erf, "Erf", div, 0) || !onv_fuse_has_uses(e, erf, 1)) return false;
    onv_node_id add = onv_fuse_reader(e, erf);
    if (!onv_fuse_is_float_op(e, add, "Add", div, 0) || !onv_fuse_has_uses(e, add, 1)) return false;
    if (!onv_fuse_is_number(e, onv_fuse_other_input(e, add, onv_edit_out(e, erf, 0)), 1))
        return false;
    onv_node_id mul = onv_fuse_reader(e, add);
    if (!onv_fuse_is_float_op(e, mul, "Mul", div, 0)) return false;
    *g = (match){.x = onv_edit_in(e, div, 0), .nodes = {div, erf, add, mul}};
    return match_gelu_end(e, g, mul);
}

static bool fuse_gelu(onv_edit *e, onv_node_id div, const char *domain)
{
    match g;
    if (!match_gelu(e, div, &g)) return false;
    return onv_fuse_replace(e, &ONV_FUSED(.op_type = "Gelu", .domain = domain, .inputs = &g.x,
                                          .n_inputs = 1, .last = g.last, .nodes = g.nodes,
                                          .n_nodes = 5));
}

/* ai.onnx has the operator since 20: then it is made at level 1. */
bool onv_fuse_gelu_level1(onv_edit *e, onv_node_id div)
{
    return onv_edit_node_at(e, div)->version >= 20 && fuse_gelu(e, div, NULL);
}

bool onv_fuse_gelu_level2(onv_edit *e, onv_node_id div)
{
    return onv_edit_node_at(e, div)->version < 20 && fuse_gelu(e, div, ONV_MS_DOMAIN);
}

/* --- BiasGeluFusion ---------------------------------------------------------------------------- */

bool onv_fuse_bias_gelu(onv_edit *e, onv_node_id add)
{
    if (!onv_fuse_is(e, add, "Add") || !onv_fuse_has_uses(e, add, 1)) return false;
    onv_value_id in[2] = {onv_edit_in(e, add, 0), onv_edit_in(e, add, 1)};
    int rank[2] = {onv_fuse_rank(e, in[0]), onv_fuse_rank(e, in[1])};
    if (rank[0] < 1 || rank[1] < 1) return false;
    if (!onv_dim_same(onv_fuse_dim(e, in[0], -1), onv_fuse_dim(e, in[1], -1))) return false;
    if (rank[0] != 1 && rank[1] != 1) return false;
    onv_value_id inputs[2] = {in[rank[0] == 1], in[rank[0] != 1]};
    onv_node_id gelu = onv_fuse_reader(e, add);
    bool is_fast = onv_edit_is_of(e, gelu, ONV_MS_DOMAIN, "FastGelu");
    bool is_gelu = onv_fuse_is(e, gelu, "Gelu") || onv_edit_is_of(e, gelu, ONV_MS_DOMAIN, "Gelu");
    if (!is_fast && !is_gelu) return false;
    if (!onv_fuse_same_provider(e, gelu, add)) return false;
    if (is_fast && onv_is_value(onv_edit_in(e, gelu, 1))) return false;
    return onv_fuse_replace(e, &ONV_FUSED(.op_type = is_fast ? "FastGelu" : "BiasGelu",
                                          .domain = ONV_MS_DOMAIN, .inputs = inputs, .n_inputs = 2,
                                          .last = gelu, .nodes = (onv_node_id[]){add, gelu},
                                          .n_nodes = 2));
}

/* --- FastGeluFusion ---------------------------------------------------------------------------- */

/*   0.5 x (1 + tanh(0.79788 x (1 + 0.044715 x x))), and with Pow(x, 3)  */

enum { MAX_FAST_GELU = 10 };

typedef struct fast_gelu {
    onv_value_id x;    /* of the polynomial */
    onv_value_id cast; /* what x was cast from, where it was */
    onv_node_id nodes[MAX_FAST_GELU], last;
    uint32_t n_nodes;
} fast_gelu;

static bool is_link(const onv_edit *e, onv_node_id node, const char *op_type, onv_node_id with)
{
    return onv_fuse_is_float_op(e, node, op_type, with, 0) && !onv_edit_makes_result(e, node);
}

/* The only reader of the node, of that operator; it joins the match. */
static onv_node_id next_link(onv_edit *e, fast_gelu *g, onv_node_id node, const char *op_type)
{
    if (!onv_fuse_has_uses(e, node, 1)) return ONV_NO_NODE;
    onv_node_id next = onv_fuse_reader(e, node);
    if (!is_link(e, next, op_type, node)) return ONV_NO_NODE;
    g->nodes[g->n_nodes++] = next;
    return next;
}

static onv_value_id other_of(const onv_edit *e, onv_node_id node, onv_node_id from)
{
    return onv_fuse_other_input(e, node, onv_edit_out(e, from, 0));
}

/* Which of two inputs is that number; the other one comes back. */
static onv_value_id factor_beside(onv_edit *e, onv_node_id mul, double number)
{
    for (uint32_t k = 0; k < 2; k++)
        if (onv_fuse_is_number(e, onv_edit_in(e, mul, k), number))
            return onv_edit_in(e, mul, 1 - k);
    return ONV_NO_VALUE;
}

/* Mul(0.044715) -> Mul(x) -> Add(1) -> Mul(Mul(x, 0.79788)) */
static onv_node_id match_by_products(onv_edit *e, onv_node_id mul1, fast_gelu *g)
{
    *g = (fast_gelu){.cast = ONV_NO_VALUE, .nodes = {mul1}, .n_nodes = 1};
    if (!onv_fuse_is_float_op(e, mul1, "Mul", mul1, 0)) return ONV_NO_NODE;
    g->x = factor_beside(e, mul1, 0.044715);
    if (!onv_is_value(g->x)) return ONV_NO_NODE;
    onv_node_id mul2 = next_link(e, g, mul1, "Mul");
    if (!onv_is_node(mul2) || !onv_fuse_same_value(other_of(e, mul2, mul1), g->x))
        return ONV_NO_NODE;
    onv_node_id add = next_link(e, g, mul2, "Add");
    if (!onv_is_node(add) || !onv_fuse_is_number(e, other_of(e, add, mul2), 1)) return ONV_NO_NODE;
    onv_node_id mul3 = next_link(e, g, add, "Mul");
    if (!onv_is_node(mul3)) return ONV_NO_NODE;
    onv_value_id scaled = other_of(e, mul3, add);
    onv_node_id mul4 = onv_is_value(scaled) ? onv_edit_producer(e, scaled) : ONV_NO_NODE;
    if (!onv_is_node(mul4) || !is_link(e, mul4, "Mul", mul1) || !onv_fuse_has_uses(e, mul4, 1) ||
        !onv_fuse_same_value(factor_beside(e, mul4, 0.7978845834732056), g->x))
        return ONV_NO_NODE;
    g->nodes[g->n_nodes++] = mul4;
    return mul3;
}

/* What x is cast from, where a Cast that only the polynomial reads makes it. */
static bool match_cast(onv_edit *e, onv_node_id pow, onv_node_id add, fast_gelu *g)
{
    onv_node_id cast = onv_fuse_parent(e, pow, "Cast");
    if (!onv_is_node(cast)) return true;
    g->cast = onv_edit_in(e, cast, 0);
    onv_node_id of_add = onv_fuse_parent(e, add, "Cast");
    return is_link(e, cast, "Cast", pow) && onv_edit_n_output_uses(e, cast) == 2 &&
           onv_is_node(of_add) && of_add.index == cast.index;
}

/* Pow(3) -> Mul(0.044715) -> Add(x) -> Mul(0.79788) */
static onv_node_id match_by_power(onv_edit *e, onv_node_id pow, fast_gelu *g)
{
    *g = (fast_gelu){.cast = ONV_NO_VALUE, .nodes = {pow}, .n_nodes = 1};
    if (!onv_fuse_is_float_op(e, pow, "Pow", pow, 0) ||
        !onv_fuse_is_number(e, onv_edit_in(e, pow, 1), 3))
        return ONV_NO_NODE;
    g->x = onv_edit_in(e, pow, 0);
    onv_node_id mul1 = next_link(e, g, pow, "Mul");
    if (!onv_is_node(mul1) || !onv_fuse_is_number(e, other_of(e, mul1, pow), 0.044714998453855515))
        return ONV_NO_NODE;
    onv_node_id add = next_link(e, g, mul1, "Add");
    if (!onv_is_node(add) || !onv_fuse_same_value(other_of(e, add, mul1), g->x)) return ONV_NO_NODE;
    if (!match_cast(e, pow, add, g)) return ONV_NO_NODE;
    onv_node_id mul2 = next_link(e, g, add, "Mul");
    if (!onv_is_node(mul2) || !onv_fuse_is_number(e, other_of(e, mul2, add), 0.7978845834732056))
        return ONV_NO_NODE;
    return mul2;
}

/* -> Tanh -> Add(1) -> Mul(Mul(0.5, x)) */
static bool match_fast_gelu_end(onv_edit *e, onv_node_id before, fast_gelu *g)
{
    onv_node_id tanh = next_link(e, g, before, "Tanh");
    if (!onv_is_node(tanh)) return false;
    onv_node_id add = next_link(e, g, tanh, "Add");
    if (!onv_is_node(add) || !onv_fuse_is_number(e, other_of(e, add, tanh), 1)) return false;
    onv_node_id mul = next_link(e, g, add, "Mul");
    if (!onv_is_node(mul)) return false;
    onv_value_id halved = other_of(e, mul, add);
    onv_node_id half = onv_is_value(halved) ? onv_edit_producer(e, halved) : ONV_NO_NODE;
    if (onv_is_value(g->cast)) {
        onv_node_id cast = onv_fuse_parent(e, mul, "Cast");
        if (!onv_is_node(cast) || !is_link(e, cast, "Cast", mul) || !onv_fuse_has_uses(e, cast, 1))
            return false;
        half = onv_fuse_parent(e, cast, "Mul");
        g->nodes[g->n_nodes++] = cast;
    }
    if (!onv_is_node(half) || !is_link(e, half, "Mul", mul)) return false;
    onv_value_id x = factor_beside(e, half, 0.5);
    if (!onv_fuse_same_value(x, onv_is_value(g->cast) ? g->cast : g->x)) return false;
    g->nodes[g->n_nodes++] = half;
    g->last = mul;
    return true;
}

bool onv_fuse_fast_gelu(onv_edit *e, onv_node_id first)
{
    fast_gelu g;
    onv_node_id end = match_by_products(e, first, &g);
    if (!onv_is_node(end)) end = match_by_power(e, first, &g);
    if (!onv_is_node(end) || !match_fast_gelu_end(e, end, &g)) return false;
    return onv_fuse_replace(e, &ONV_FUSED(.op_type = "FastGelu", .domain = ONV_MS_DOMAIN,
                                          .inputs = &g.x, .n_inputs = 1, .last = g.last,
                                          .nodes = g.nodes, .n_nodes = g.n_nodes));
}

/* --- QuickGeluFusion --------------------------------------------------------------------------- */

/* x * sigmoid(alpha * x), and without alpha: SiLU. */
bool onv_fuse_quick_gelu(onv_edit *e, onv_node_id first)
{
    onv_node_id nodes[3], sigmoid = first;
    uint32_t n_nodes = 0;
    onv_value_id x = ONV_NO_VALUE;
    double alpha = 1;
    if (onv_fuse_is(e, first, "Mul") && onv_edit_n_output_uses(e, first) == 1) {
        for (uint32_t k = 0; k < 2 && !onv_is_value(x); k++) {
            onv_value_id scale = onv_edit_in(e, first, k);
            if (onv_edit_is_constant(e, scale) && onv_fuse_is_float(e, scale) &&
                onv_fuse_rank(e, scale) <= 1 && onv_edit_scalar(e, scale, &alpha))
                x = onv_edit_in(e, first, 1 - k);
        }
        if (!onv_is_value(x)) return false;
        nodes[n_nodes++] = first;
        sigmoid = onv_fuse_reader(e, first);
    }
    if (!onv_fuse_is(e, sigmoid, "Sigmoid") || onv_edit_n_output_uses(e, sigmoid) != 1)
        return false;
    nodes[n_nodes++] = sigmoid;
    if (!onv_is_value(x)) x = onv_edit_in(e, sigmoid, 0);
    onv_node_id mul = onv_fuse_reader(e, sigmoid);
    if (!onv_fuse_is(e, mul, "Mul") || !onv_fuse_same_value(other_of(e, mul, sigmoid), x))
        return false;
    nodes[n_nodes++] = mul;
    onv_attr attr = onv_fuse_float(e, "alpha", alpha);
    return onv_fuse_replace(e, &ONV_FUSED(.op_type = "QuickGelu", .domain = ONV_MS_DOMAIN,
                                          .inputs = &x, .n_inputs = 1, .attrs = &attr, .n_attrs = 1,
                                          .last = mul, .nodes = nodes, .n_nodes = n_nodes));
}
