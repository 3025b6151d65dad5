/* GELU and its approximations. */
#include "rewrite/fuse.h"
#include "rewrite/pattern.h"

#include <string.h>

/* --- GeluFusion -------------------------------------------------------------------------------- */

#define ERF "*Add(Erf(Div(x{1.4142135623730951})){1})"

static const char halved_first[] = "*Mul(*Mul(x{0.5})" ERF ")";
static const char halved_last[] = "*Mul(m=*Mul(x" ERF "){0.5})";

/* Behind another product only the first form is looked for. */
static bool match_gelu(onv_edit *e, onv_node_id div, onv_match *m)
{
    if (onv_match_form(e, div, halved_first, m)) return true;
    return onv_match_form(e, div, halved_last, m) &&
           !onv_is_node(onv_fuse_parent(e, onv_edit_producer(e, onv_match_value(m, 'm')), "Mul"));
}

static bool replace(onv_edit *e, const onv_match *m, const char *op_type, const char *domain)
{
    const onv_value_id x = onv_match_value(m, 'x');
    return onv_fuse_replace(e, &ONV_FUSED(.op_type = op_type, .domain = domain, .inputs = &x,
                                          .n_inputs = 1, .last = m->last, .nodes = m->nodes,
                                          .n_nodes = m->n_nodes));
}

static bool fuse_gelu(onv_edit *e, onv_node_id div, const char *domain)
{
    onv_match m;
    return match_gelu(e, div, &m) && replace(e, &m, "Gelu", domain);
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

/*   0.5 x (1 + tanh(0.79788 x (1 + 0.044715 x x))), and with Pow(x, 3); of that x may be cast from z.  */
#define FAST(half, polynomial) "*Mul(" half "*Add(Tanh(" polynomial "){1}))"
#define CUBIC(x)               "*Mul(*Add(" x "*Mul(Pow(x{3}){0.044714998453855515})){0.7978845834732056})"

static const char by_products[] =
    FAST("!*Mul(x{0.5})", "*Mul(*Mul(x{0.7978845834732056})*Add(*Mul(*Mul(x{0.044715})x){1}))");
static const char by_power[] = FAST("!*Mul(x{0.5})", CUBIC("x"));
static const char by_power_cast[] = FAST("Cast(!*Mul(z{0.5}))", CUBIC("x=Cast(z)"));

bool onv_fuse_fast_gelu(onv_edit *e, onv_node_id first)
{
    onv_match m;
    bool found = onv_match_form(e, first, by_products, &m);
    if (!found && onv_match_form(e, first, by_power, &m)) {
        onv_node_id maker = onv_edit_producer(e, onv_match_value(&m, 'x'));
        found = !onv_is_node(maker) || !onv_fuse_is(e, maker, "Cast");
    }
    found = found || onv_match_form(e, first, by_power_cast, &m);
    return found && replace(e, &m, "FastGelu", ONV_MS_DOMAIN);
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
    if (!onv_fuse_is(e, mul, "Mul") ||
        !onv_fuse_same_value(onv_fuse_other_input(e, mul, onv_edit_out(e, sigmoid, 0)), x))
        return false;
    nodes[n_nodes++] = mul;
    onv_attr attr = onv_fuse_float(e, "alpha", alpha);
    return onv_fuse_replace(e, &ONV_FUSED(.op_type = "QuickGelu", .domain = ONV_MS_DOMAIN,
                                          .inputs = &x, .n_inputs = 1, .attrs = &attr, .n_attrs = 1,
                                          .last = mul, .nodes = nodes, .n_nodes = n_nodes));
}
