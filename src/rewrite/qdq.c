/* QDQSelectorActionTransformer and what prepares it: an operator between DequantizeLinear and QuantizeLinear becomes one that
 * computes with integers, or goes without them where it only moves elements.
 *
 * Read in source (core/optimizer/qdq_transformer), for x64: activations of int8 become uint8 first, and products
 * take no others. Split, Where and ArgMax keep their pairs. */
#include <math.h>
#include <stdio.h>

#include "base/quota.h"
#include "rewrite/fuse.h"
#include "rewrite/rules.h"

onv_node_id onv_fuse_dequantize(const onv_edit *e, onv_node_id node, uint32_t k)
{
    onv_node_id dq = onv_edit_in_node(e, node, k);
    return onv_edit_is(e, dq, ONV_OP_DequantizeLinear) ? dq : ONV_NO_NODE;
}

/* An operator with what is around it. */
typedef struct group {
    onv_edit *e;
    onv_node_id node, q; /* q: ONV_NO_NODE: nothing quantizes the output */
    uint32_t n_dq;       /* inputs that a DequantizeLinear makes for this node alone */
    bool is_all;         /* every input */
    bool is_mixed;       /* some of what reads the output quantizes it, and some does not */
} group;

static onv_node_id dq_of(const group *g, uint32_t k)
{
    return onv_edit_in_node(g->e, g->node, k);
}

/* What the integers of input k / of the output are. */
static onv_dtype dtype_in(const group *g, uint32_t k)
{
    onv_node_id dq = dq_of(g, k);
    return onv_is_node(dq) ? onv_edit_dtype(g->e, onv_edit_in(g->e, dq, 0)) : ONV_UNDEFINED;
}

static onv_dtype dtype_out(const group *g)
{
    return onv_edit_dtype(g->e, onv_edit_out(g->e, g->q, 0));
}

static bool is_8_bit(onv_dtype dtype)
{
    return dtype == ONV_INT8 || dtype == ONV_UINT8;
}

static bool find_group(onv_edit *e, onv_node_id node, group *g)
{
    const onv_node *at = onv_edit_node_at(e, node);
    onv_value_id out = onv_edit_out(e, node, 0);
    *g = (group){.e = e, .node = node, .q = ONV_NO_NODE, .is_all = true};
    if (at->n_outputs != 1 || !onv_is_value(out)) return false;
    for (uint32_t k = 0; k < at->n_inputs; k++) {
        if (!onv_is_value(at->inputs[k])) continue;
        bool is_dq = onv_is_node(onv_fuse_dequantize(e, node, k));
        if (is_dq && onv_edit_only_user(e, at->inputs[k]).index != node.index) return false;
        g->n_dq += is_dq;
        g->is_all &= is_dq;
    }
    onv_node_id user = onv_edit_only_user(e, out);
    if (onv_edit_is(e, user, ONV_OP_QuantizeLinear)) g->q = user;
    for (const onv_use *use = onv_edit_first_use(e, out); use != NULL && !onv_is_node(g->q);
         use = onv_edit_next_use(e, use))
        g->is_mixed |= onv_edit_is(e, use->node, ONV_OP_QuantizeLinear);
    return g->n_dq > 0;
}

/* --- Integers in place of floats --------------------------------------------------------------- */

/* Scale and zero point. */
static void add_params(const onv_edit *e, onv_node_id pair, onv_value_id *inputs, uint32_t *n)
{
    inputs[(*n)++] = onv_edit_in(e, pair, 1);
    inputs[(*n)++] = onv_edit_in(e, pair, 2);
}

/* An input of integers with both. */
static void add_input(const group *g, uint32_t k, onv_value_id *inputs, uint32_t *n)
{
    inputs[(*n)++] = onv_edit_in(g->e, dq_of(g, k), 0);
    add_params(g->e, dq_of(g, k), inputs, n);
}

static bool replace_group(const group *g, const char *op_type, const char *domain,
                          const onv_value_id *inputs, uint32_t n)
{
    onv_edit *e = g->e;
    onv_node at = *onv_edit_node_at(e, g->node);
    onv_node_id last = onv_is_node(g->q) ? g->q : g->node;
    if (!onv_fuse_replace(e, last, &g->node, 1,
                          ONV_NEW_NODE(.op_type = op_type, .domain = domain,
                                       .version = domain == NULL ? 10 : 1, .inputs = inputs,
                                       .n_inputs = n, .attrs = at.attrs, .n_attrs = at.n_attrs)))
        return false;
    for (uint32_t k = 0; k < at.n_inputs; k++)
        onv_edit_remove_unread(e, onv_edit_producer(e, at.inputs[k]));
    return true;
}

/* A bias is added to sums of products: its scale is about that of these. What the file does not show is taken to be. */
static bool fits_bias(const group *g)
{
    const double most_off = 0.01001; /* 1 % of the number, which is rounded; tried */
    onv_edit *e = g->e;
    double x;
    const onv_known *w = onv_edit_constant(e, onv_edit_in(e, dq_of(g, 1), 1)),
                    *b = onv_edit_constant(e, onv_edit_in(e, dq_of(g, 2), 1));
    if (w == NULL || b == NULL || w->count == 0 || b->count == 0 ||
        !onv_edit_scalar(e, onv_edit_in(e, dq_of(g, 0), 1), &x))
        return true;
    uint32_t n = w->count > b->count ? w->count : b->count;
    for (uint32_t i = 0; i < n; i++) {
        double is = b->elems[b->count > 1 ? i % b->count : 0].f;
        double expected = x * w->elems[w->count > 1 ? i % w->count : 0].f;
        if (fabs(is - expected) > most_off * fabs(expected)) return false;
    }
    return true;
}

/* Operators and what they become: "QLinear" before them, or `made`. Types of the inputs, the last one of all that follow: `u` uint8, `8` that
 * or int8, `i` int32, `=` as the result, which is a `u` or `8`, or not quantized (0). Inputs of what is made: `0` and `1` with scale and
 * zero point, `*` all of them; `q` both of the result; `b` a bias if there is one, `B` its place; `m` first the integers of two, then all scales. */
typedef struct selection {
    const char *ops, *made, *domain;
    uint8_t least, most; /* inputs */
    const char *types;
    char of_result;
    const char *inputs;
} selection;

static const selection selections[] = {
    {"AveragePool LeakyRelu GlobalAveragePool Sigmoid Softmax", NULL, ONV_MS_DOMAIN, 1, 1, "=", '8',
     "*q"},
    {"Add Mul", NULL, ONV_MS_DOMAIN, 2, 2, "=", '8', "*q"},
    {"Concat", NULL, ONV_MS_DOMAIN, 1, UINT8_MAX, "=", '8', "q*"},
    {"Conv", NULL, NULL, 2, 3, "u8i", 'u', "01qb"},
    {"MatMul", NULL, NULL, 2, 2, "u8", 'u', "01q"},
    {"MatMul", "MatMulIntegerToFloat", ONV_MS_DOMAIN, 2, 2, "u8", 0, "m"},
    {"Gemm", "QGemm", ONV_MS_DOMAIN, 2, 3, "=8i", '8', "01Bq"},
    {"Gemm", "QGemm", ONV_MS_DOMAIN, 2, 3, "88i", 0, "01B"},
};

static bool is_of_type(char type, onv_dtype dtype, onv_dtype result)
{
    if (type == '=') return dtype == result;
    if (type == '8') return is_8_bit(dtype);
    return dtype == (type == 'u' ? ONV_UINT8 : ONV_INT32);
}

static bool is_selected(const group *g, const selection *s)
{
    const onv_node *at = onv_edit_node_at(g->e, g->node);
    bool has_q = onv_is_node(g->q), has_bias = g->n_dq == 3;
    onv_dtype result = has_q ? dtype_out(g) : ONV_UNDEFINED;
    if (!onv_rewrite_names(s->ops, at->op_type) || !g->is_all || g->is_mixed ||
        g->n_dq < s->least || (g->n_dq > s->most && s->most < UINT8_MAX) ||
        has_q != (s->of_result != 0) || (has_q && !is_of_type(s->of_result, result, result)))
        return false;
    const char *type = s->types;
    for (uint32_t k = 0; k < at->n_inputs; k++) {
        if (onv_is_value(at->inputs[k]) && !is_of_type(*type, dtype_in(g, k), result)) return false;
        if (type[1] != '\0') type++;
    }
    if (at->code == ONV_OP_Conv) return !has_bias || fits_bias(g);
    return at->code != ONV_OP_Gemm ||
           ((dtype_in(g, 0) != ONV_INT8 || dtype_in(g, 1) == ONV_INT8) &&
            (!has_bias || onv_edit_float(g->e, g->node, "beta", 1) == 1));
}

static uint32_t list_inputs(const group *g, const char *how, onv_value_id *inputs)
{
    const onv_edit *e = g->e;
    uint32_t n = 0, n_all = onv_edit_node_at(e, g->node)->n_inputs;
    bool has_bias = g->n_dq == 3;
    for (; *how != '\0'; how++) {
        if (*how == 'q') add_params(e, g->q, inputs, &n);
        if (*how == '0' || *how == '1') add_input(g, (uint32_t)(*how - '0'), inputs, &n);
        for (uint32_t k = 0; *how == '*' && k < n_all; k++) add_input(g, k, inputs, &n);
        for (uint32_t i = 0; *how == 'm' && i < 6; i++)
            inputs[n++] = onv_edit_in(e, dq_of(g, i % 2), i / 2);
        if (has_bias && (*how == 'b' || *how == 'B')) inputs[n++] = onv_edit_in(e, dq_of(g, 2), 0);
        if (!has_bias && *how == 'B') inputs[n++] = ONV_NO_VALUE;
    }
    return n;
}

static bool select_quantized(const group *g)
{
    onv_edit *e = g->e;
    const onv_node *at = onv_edit_node_at(e, g->node);
    const selection *s = NULL;
    for (size_t i = 0; i < sizeof selections / sizeof selections[0] && s == NULL; i++)
        if (is_selected(g, &selections[i])) s = &selections[i];
    if (s == NULL) return false;
    onv_value_id *inputs = onv_edit_checked(
        e, ONV_ARENA_ARRAY(&e->model->arena, onv_value_id, 3 * (size_t)at->n_inputs + 3));
    char name[64];
    snprintf(name, sizeof name, "QLinear%s", at->op_type);
    const char *made = s->made != NULL ? s->made : onv_edit_intern(e, name);
    return inputs != NULL && made != NULL &&
           replace_group(g, made, s->domain, inputs, list_inputs(g, s->inputs, inputs));
}

/* --- Elements that only move ------------------------------------------------------------------- */

static bool is_same_number(onv_edit *e, onv_value_id a, onv_value_id b)
{
    double x, y;
    if (onv_is_same_value(a, b)) return onv_edit_is_constant(e, a);
    if (!onv_is_value(a) || !onv_is_value(b)) return !onv_is_value(a) && !onv_is_value(b);
    return onv_edit_is_constant(e, a) && onv_edit_is_constant(e, b) && onv_edit_scalar(e, a, &x) &&
           onv_edit_scalar(e, b, &y) && x == y;
}

static bool has_same_params(onv_edit *e, onv_node_id a, onv_node_id b)
{
    return is_same_number(e, onv_edit_in(e, a, 1), onv_edit_in(e, b, 1)) &&
           is_same_number(e, onv_edit_in(e, a, 2), onv_edit_in(e, b, 2));
}

static bool drop_pair(const group *g)
{
    onv_edit *e = g->e;
    onv_node_id dq = onv_fuse_dequantize(e, g->node, 0);
    const onv_node *at = onv_edit_node_at(e, g->node);
    bool is_old = at->code == ONV_OP_MaxPool && at->version < 12;
    if (g->n_dq != 1 || !onv_is_node(dq) || is_old || !onv_is_node(g->q) ||
        dtype_in(g, 0) != dtype_out(g) || !has_same_params(e, dq, g->q))
        return false;
    onv_value_id out = onv_edit_out(e, g->q, 0);
    onv_edit_set_input(e, g->node, 0, onv_edit_in(e, dq, 0));
    onv_edit_remove(e, g->q);
    onv_edit_take_output(e, g->node, 0, out);
    onv_edit_retype(e, g->node);
    onv_edit_remove_unread(e, dq);
    return true;
}

/* --- All of them ------------------------------------------------------------------------------- */

static bool select_at(onv_edit *e, onv_node_id node)
{
    static const char moves[] = "MaxPool Resize Gather Reshape Transpose Squeeze Unsqueeze";
    const onv_node *at = onv_edit_node_at(e, node);
    group g;
    return onv_edit_is_there(e, node) && at->provider == ONV_PROVIDER_CPU &&
           at->domain[0] == '\0' && onv_work(1 + at->n_inputs) && find_group(e, node, &g) &&
           (onv_rewrite_names(moves, at->op_type) ? drop_pair(&g) : select_quantized(&g));
}

uint32_t onv_select_quantized(onv_edit *e, onv_graph_id graph)
{
    uint32_t n = onv_edit_n_nodes(e, graph), n_done = 0;
    if (!onv_fuse_has_on_cpu(e, graph, "DequantizeLinear")) return 0;
    onv_node_id *nodes = onv_edit_backward_order(e, graph);
    for (uint32_t i = 0; i < n && e->status == ONV_OK; i++) n_done += select_at(e, nodes[i]);
    return n_done;
}

/* QDQS8ToU8Transformer: a pair that nothing else reads has its zero point 128 higher. */
bool onv_rule_quantize_unsigned(onv_edit *e, onv_node_id q)
{
    onv_value_id out = onv_edit_out(e, q, 0);
    onv_node_id dq = onv_edit_only_user(e, out);
    if (onv_edit_node_at(e, q)->provider != ONV_PROVIDER_CPU ||
        onv_edit_dtype(e, out) != ONV_INT8 || !onv_is_node(dq) ||
        !onv_edit_is(e, dq, ONV_OP_DequantizeLinear) || !onv_is_value(onv_edit_in(e, q, 2)) ||
        !has_same_params(e, q, dq))
        return false;
    onv_value_id zero = onv_edit_add_weight(e, onv_edit_node_at(e, q)->graph, "zero_point",
                                            ONV_UINT8, NULL, 0, (const int64_t[]){128});
    if (e->status != ONV_OK) return false;
    onv_edit_set_input(e, q, 2, zero);
    onv_edit_retype(e, q);
    onv_edit_set_input(e, dq, 2, zero);
    onv_edit_retype(e, dq);
    return true;
}

/* --- WeightBiasQuantization -------------------------------------------------------------------- */

static bool is_single(const onv_edit *e, onv_value_id value)
{
    int rank = onv_fuse_rank(e, value);
    return rank == 0 || (rank == 1 && onv_dim_is(onv_fuse_dim(e, value, 0), 1));
}

/* A QuantizeLinear comes next, or behind activations. */
static bool leads_to_quantize(const onv_edit *e, onv_node_id node)
{
    for (;;) {
        node = onv_edit_only_user(e, onv_edit_out(e, node, 0));
        if (onv_edit_is(e, node, ONV_OP_QuantizeLinear)) return true;
        if (!onv_work(1) ||
            (!onv_edit_is(e, node, ONV_OP_Relu) && !onv_edit_is(e, node, ONV_OP_Clip)))
            return false;
    }
}

/* Whether a weight with several scales has one for each number of the bias. */
static bool has_scale_of_each(const onv_edit *e, onv_node_id node, onv_node_id dq, onv_dim n_bias)
{
    onv_value_id scale = onv_edit_in(e, dq, 1);
    int rank = onv_fuse_rank(e, onv_edit_in(e, dq, 0));
    int64_t axis = onv_node_axis(onv_edit_node_at(e, dq), 1, rank), expected = 0;
    if (onv_edit_is(e, node, ONV_OP_Gemm)) expected = onv_edit_int(e, node, "transB", 0) == 0;
    return onv_fuse_rank(e, scale) == 1 && onv_dim_same(onv_fuse_dim(e, scale, 0), n_bias) &&
           onv_edit_int(e, dq, "block_size", 0) == 0 && axis == expected;
}

/* The weight as int8 between a pair of its own; the scale. */
static onv_value_id quantize_weight(onv_edit *e, onv_node_id node)
{
    onv_graph_id graph = onv_edit_node_at(e, node)->graph;
    onv_value_id w = onv_edit_in(e, node, 1);
    onv_value_id scale = onv_edit_add_weight(e, graph, "weight_scale", ONV_FLOAT, NULL, 0, NULL);
    onv_value_id zero =
        onv_edit_add_weight(e, graph, "weight_zp", ONV_INT8, NULL, 0, (const int64_t[]){0});
    onv_value_id q = ONV_MAKE(e, node, "QuantizeLinear", ONV_INPUTS(w, scale, zero));
    onv_value_id dq = ONV_MAKE(e, node, "DequantizeLinear", ONV_INPUTS(q, scale, zero));
    onv_edit_set_input(e, node, 1, dq);
    return scale;
}

/* The bias as int32, by the scales of both factors. */
static void quantize_bias(onv_edit *e, onv_node_id node, onv_value_id w_scale, bool has_axis)
{
    onv_value_id x_scale = onv_edit_in(e, onv_edit_in_node(e, node, 0), 1);
    onv_value_id scale = ONV_MAKE(e, node, "Mul", ONV_INPUTS(x_scale, w_scale));
    onv_value_id bias = ONV_MAKE(e, node, "Div", ONV_INPUTS(onv_edit_in(e, node, 2), scale));
    bias = ONV_MAKE(e, node, "Round", ONV_INPUTS(bias));
    bias = ONV_MAKE(e, node, "Cast", ONV_INPUTS(bias), ONV_ATTRS(onv_fuse_int(e, "to", ONV_INT32)));
    const onv_attr axis = onv_fuse_int(e, "axis", 0);
    bias = ONV_MAKE(e, node, "DequantizeLinear", ONV_INPUTS(bias, scale), .attrs = &axis,
                    .n_attrs = has_axis);
    onv_edit_set_input(e, node, 2, bias);
}

/* Of a product between a pair: its weight of float32, and its bias. */
bool onv_rule_quantize_weight(onv_edit *e, onv_node_id node)
{
    onv_node_id x_dq = onv_fuse_dequantize(e, node, 0), w_dq = onv_fuse_dequantize(e, node, 1);
    onv_value_id w = onv_edit_in(e, node, 1), bias = onv_edit_in(e, node, 2);
    bool has_bias = onv_is_value(bias), has_pair = onv_is_node(w_dq);
    bool has_axis = has_pair && !is_single(e, onv_edit_in(e, w_dq, 1));
    if (!onv_is_node(x_dq) || !is_single(e, onv_edit_in(e, x_dq, 1)) ||
        !leads_to_quantize(e, node) || (has_pair && !has_bias) ||
        (!has_pair && (!onv_edit_is_constant(e, w) || onv_edit_dtype(e, w) != ONV_FLOAT)) ||
        (has_bias && (!onv_edit_is_constant(e, bias) || onv_fuse_rank(e, bias) != 1)) ||
        (has_axis && !has_scale_of_each(e, node, w_dq, onv_fuse_dim(e, bias, 0))))
        return false;
    onv_value_id scale = has_pair ? onv_edit_in(e, w_dq, 1) : quantize_weight(e, node);
    if (has_bias) quantize_bias(e, node, scale, has_axis);
    return e->status == ONV_OK;
}
