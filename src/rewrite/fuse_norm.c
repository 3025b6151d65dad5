/* Layer normalization: its parts, and the additions before it. */
#include "rewrite/fuse.h"
#include "rewrite/transpose.h"

static bool reduces_last_axis(onv_edit *e, onv_node_id mean)
{
    onv_axes axes;
    int rank = onv_fuse_rank(e, onv_edit_in(e, mean, 0));
    return onv_push_read_axes(e, mean, 1, &axes) && axes.count == 1 &&
           (axes.at[0] == -1 || (axes.at[0] > 0 && axes.at[0] == rank - 1));
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
    bool is_there = onv_edit_is_constant(e, in) && onv_edit_dtype(e, in) == ONV_FLOAT &&
                    onv_edit_scalar(e, in, &epsilon);
    return is_there ? epsilon : 1e-5;
}

/* --- LayerNormFusion --------------------------------------------------------------------------- */

/* With one Sub or two, and with Casts before and behind them, at the Pow and behind the Div. */
#define CENTRED "*Sub(xm=ReduceMean(x))"
#define NORM(deviation, power)                                                                     \
    "*Add(w=*Mul([Cast(_)]Div(" deviation "Sqrt(e=*Add(v=ReduceMean(Pow(" power "?))?)))?)?)"

static const char *const norms[] = {NORM(CENTRED, "*Sub(xm)"), NORM("c=Cast(" CENTRED ")", "c"),
                                    NORM(CENTRED, "Cast(*Sub(xm))")};

/* `inputs`: x, scale, and bias where there is one. */
static bool replace_norm(onv_edit *e, const onv_form_match *m, const char *op_type, int32_t version,
                         const onv_value_id *inputs, uint32_t n_inputs)
{
    if (!reduces_last_axis(e, onv_fuse_form_node(e, m, 'v'))) return false;
    for (uint32_t k = 1; k < n_inputs; k++)
        if (!onv_is_value(inputs[k])) return false;
    if (onv_edit_node_at(e, m->nodes[0])->provider == ONV_PROVIDER_CPU &&
        onv_edit_dtype(e, inputs[0]) == ONV_FLOAT16)
        return false;
    return ONV_FORM_BY(
        e, m, op_type, .version = version, .inputs = inputs, .n_inputs = n_inputs,
        ONV_ATTRS(onv_fuse_float(e, "epsilon", epsilon_of(e, onv_fuse_form_node(e, m, 'e'))),
                  onv_fuse_int(e, "axis", -1)));
}

/* ai.onnx has the operator since 17: then it is made at level 1. */
bool onv_fuse_layer_norm(onv_edit *e, onv_node_id mean)
{
    onv_form_match m;
    bool found = false;
    if ((onv_edit_node_at(e, mean)->version >= 17) != (e->level == 1)) return false;
    for (size_t i = 0; i < sizeof norms / sizeof norms[0] && !found; i++)
        found = onv_fuse_form(e, mean, norms[i], &m);
    if (!found || !reduces_last_axis(e, onv_fuse_form_node(e, &m, 'm'))) return false;
    onv_fuse_form_cast(e, &m, 'x');
    onv_value_id inputs[3] = {onv_form_value(&m, 'x'),
                              vector_input(e, onv_fuse_form_node(e, &m, 'w')),
                              vector_input(e, m.nodes[0])};
    return onv_dim_same(onv_fuse_dim(e, inputs[1], 0), onv_fuse_dim(e, inputs[2], 0)) &&
           replace_norm(e, &m, "LayerNormalization", 17, inputs, 3);
}

/* --- SimplifiedLayerNormFusion ----------------------------------------------------------------- */

/* Casts around it are a part of it on CUDA. */
#define SIMPLIFIED "Div(xSqrt(e=*Add(v=ReduceMean(Pow(x?))?)))"

bool onv_fuse_simplified_layer_norm(onv_edit *e, onv_node_id pow)
{
    onv_form_match m;
    bool is_cuda = onv_edit_node_at(e, pow)->provider == ONV_PROVIDER_CUDA;
    if (!onv_fuse_form(e, pow, is_cuda ? "*Mul([Cast(_)]" SIMPLIFIED "?)" : "*Mul(" SIMPLIFIED "?)",
                       &m))
        return false;
    if (is_cuda) onv_fuse_form_cast(e, &m, 'x');
    const onv_value_id inputs[2] = {onv_form_value(&m, 'x'), vector_input(e, m.nodes[0])};
    return replace_norm(e, &m, "SimplifiedLayerNormalization", 1, inputs, 2);
}

/* --- SkipLayerNormFusion ----------------------------------------------------------------------- */

static bool is_half_or_float(const onv_edit *e, onv_node_id node)
{
    for (uint32_t k = 0; k < onv_edit_node_at(e, node)->n_inputs; k++) {
        onv_value_id in = onv_edit_in(e, node, k);
        if (!onv_fuse_is_float(e, in) || onv_edit_dtype(e, in) == ONV_DOUBLE) return false;
    }
    return true;
}

/* A constant vector along the last of three axes. */
static bool is_bias(const onv_edit *e, onv_value_id x, onv_value_id bias)
{
    return onv_edit_is_constant(e, bias) && onv_fuse_rank(e, x) == 3 &&
           onv_fuse_rank(e, bias) == 1 && onv_dim_is_const(onv_fuse_dim(e, bias, 0)) &&
           onv_dim_same(onv_fuse_dim(e, x, 2), onv_fuse_dim(e, bias, 0));
}

/* The sum is of two values of rank 3 with the same dims: numbers, or the same symbols. */
static bool is_skip(const onv_edit *e, const onv_form_match *m)
{
    for (uint32_t i = 0; i < m->n_nodes; i++)
        if (!is_half_or_float(e, m->nodes[i])) return false;
    onv_node_id sum = onv_fuse_form_node(e, m, 's');
    onv_value_id a = onv_edit_in(e, sum, 0), b = onv_edit_in(e, sum, 1);
    if (onv_fuse_rank(e, a) != 3 || onv_fuse_rank(e, b) != 3) return false;
    for (int i = 0; i < 3; i++)
        if (!onv_dim_same(onv_fuse_dim(e, a, i), onv_fuse_dim(e, b, i))) return false;
    return true;
}

/* A value of 16 bits where the result has 32 is cast first. */
static onv_value_id cast_to_float(onv_edit *e, onv_value_id in, onv_node_id norm)
{
    onv_dtype to = onv_edit_dtype(e, onv_edit_out(e, norm, 0));
    if (!onv_is_value(in) || to != ONV_FLOAT || onv_edit_dtype(e, in) == ONV_FLOAT) return in;
    return ONV_MAKE(e, norm, "Cast", ONV_INPUTS(in), ONV_ATTRS(onv_fuse_int(e, "to", ONV_FLOAT)));
}

static bool by_skip_norm(onv_edit *e, const onv_form_match *m, const onv_value_id *inputs,
                         uint32_t n_inputs, double epsilon)
{
    double own = onv_edit_float(e, m->nodes[0], "epsilon", epsilon);
    return ONV_FORM_BY(e, m, "SkipLayerNormalization", .domain = ONV_MS_DOMAIN, .inputs = inputs,
                       .n_inputs = n_inputs, ONV_ATTRS(onv_fuse_float(e, "epsilon", own)));
}

/* One of the two may be a sum with a bias. */
bool onv_fuse_skip_layer_norm(onv_edit *e, onv_node_id norm)
{
    static const char *const forms[] = {"^LayerNormalization(s=Add(Add(xv)y))",
                                        "^LayerNormalization(s=Add(xAdd(yv)))",
                                        "^LayerNormalization(s=Add(xy))"};
    onv_form_match m;
    bool found = false;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0] && !found; i++)
        found =
            onv_fuse_form(e, norm, forms[i], &m) && is_skip(e, &m) &&
            (i == 2 || is_bias(e, onv_form_value(&m, i == 0 ? 'x' : 'y'), onv_form_value(&m, 'v')));
    if (!found) return false;
    onv_value_id inputs[5] = {onv_form_value(&m, 'x'), onv_form_value(&m, 'y'),
                              onv_edit_in(e, norm, 1), onv_edit_in(e, norm, 2),
                              onv_form_value(&m, 'v')};
    uint32_t n_inputs = onv_is_value(inputs[4]) ? 5 : 4;
    for (uint32_t k = 0; k < n_inputs; k++) inputs[k] = cast_to_float(e, inputs[k], norm);
    return by_skip_norm(e, &m, inputs, n_inputs, 1e-5);
}

/* --- BiasSkipLayerNormFusion ------------------------------------------------------------------- */

/* A product, or one that is cast, plus a constant vector. */
#define BIASED "a=*Add([!Cast(_)]!MatMul(?)v)"

bool onv_fuse_bias_skip_layer_norm(onv_edit *e, onv_node_id norm)
{
    static const char *const forms[] = {"^SkipLayerNormalization(" BIASED "y)",
                                        "^SkipLayerNormalization(y" BIASED ")"};
    if (onv_edit_node_at(e, norm)->n_inputs != 4) return false;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        onv_form_match m;
        if (!onv_fuse_form(e, norm, forms[i], &m)) continue;
        onv_value_id bias = onv_form_value(&m, 'v');
        if (!onv_edit_is_constant(e, bias) || onv_fuse_rank(e, bias) != 1) continue;
        const onv_value_id inputs[5] = {
            onv_fuse_other_input(e, onv_fuse_form_node(e, &m, 'a'), bias), onv_form_value(&m, 'y'),
            onv_edit_in(e, norm, 2), onv_edit_in(e, norm, 3), bias};
        return by_skip_norm(e, &m, inputs, 5, 1e-12);
    }
    return false;
}
