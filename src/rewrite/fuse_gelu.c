/* GELU and its approximations. */
#include "rewrite/fuse.h"

static bool by_unary(onv_edit *e, const onv_form_match *m, const char *op_type, const char *domain)
{
    return ONV_FORM_BY(e, m, op_type, .domain = domain, ONV_INPUTS(onv_form_value(m, 'x')));
}

/* --- GeluFusion -------------------------------------------------------------------------------- */

#define ERF "*Add(Erf(Div(x{1.4142135623730951})){1})"

/* ai.onnx has the operator since 20: then it is made at level 1. Behind another product only the first form is looked for. */
bool onv_fuse_gelu(onv_edit *e, onv_node_id div)
{
    onv_form_match m;
    bool is_onnx = onv_edit_node_at(e, div)->version >= 20;
    if (is_onnx != (e->level == 1)) return false;
    bool found = onv_fuse_form(e, div, "*Mul(*Mul(x{0.5})" ERF ")", &m);
    if (!found && onv_fuse_form(e, div, "*Mul(*Mul(x" ERF "){0.5})", &m))
        found = !onv_edit_is(e, onv_fuse_form_node(e, &m, 'x'), ONV_OP_Mul);
    return found && by_unary(e, &m, "Gelu", is_onnx ? NULL : ONV_MS_DOMAIN);
}

/* --- BiasGeluFusion ---------------------------------------------------------------------------- */

bool onv_fuse_bias_gelu(onv_edit *e, onv_node_id add)
{
    onv_form_match m;
    bool is_fast = onv_fuse_form(e, add, "^FastGelu(Add(xy))", &m);
    if (!is_fast && !onv_fuse_form(e, add, "^Gelu(Add(xy))", &m)) return false;
    onv_value_id in[2] = {onv_form_value(&m, 'x'), onv_form_value(&m, 'y')};
    int rank[2] = {onv_fuse_rank(e, in[0]), onv_fuse_rank(e, in[1])};
    if (rank[0] < 1 || rank[1] < 1 || (rank[0] != 1 && rank[1] != 1) ||
        !onv_dim_same(onv_fuse_dim(e, in[0], -1), onv_fuse_dim(e, in[1], -1)) ||
        (is_fast && onv_is_value(onv_edit_in(e, m.nodes[0], 1))))
        return false;
    return ONV_FORM_BY(e, &m, is_fast ? "FastGelu" : "BiasGelu", .domain = ONV_MS_DOMAIN,
                       ONV_INPUTS(in[rank[0] == 1], in[rank[0] != 1]));
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
    onv_form_match m;
    bool found = onv_fuse_form(e, first, by_products, &m);
    if (!found && onv_fuse_form(e, first, by_power, &m)) {
        onv_node_id maker = onv_fuse_form_node(e, &m, 'x');
        found = !onv_edit_is(e, maker, ONV_OP_Cast);
    }
    found = found || onv_fuse_form(e, first, by_power_cast, &m);
    return found && by_unary(e, &m, "FastGelu", ONV_MS_DOMAIN);
}

/* --- QuickGeluFusion --------------------------------------------------------------------------- */

/* x * sigmoid(alpha * x), and without alpha: SiLU. */
bool onv_fuse_quick_gelu(onv_edit *e, onv_node_id first)
{
    onv_form_match m;
    bool is_scaled = onv_fuse_form(e, first, "*Mul(xSigmoid(*Mul(x.)))", &m);
    if (!is_scaled && (!onv_edit_is(e, first, ONV_OP_Sigmoid) ||
                       !onv_fuse_form(e, first, "*Mul(xSigmoid(x))", &m)))
        return false;
    return ONV_FORM_BY(e, &m, "QuickGelu", .domain = ONV_MS_DOMAIN,
                       ONV_INPUTS(onv_form_value(&m, 'x')),
                       ONV_ATTRS(onv_fuse_float(e, "alpha", is_scaled ? m.number : 1)));
}
