/* What a MatMul takes over: Transposes before it, scales around it. */
#include "rewrite/fuse.h"
#include "rewrite/transpose.h"

/* --- FusedMatMul ------------------------------------------------------------------------------- */

typedef struct matmul {
    int64_t trans[2], trans_batch[2];
    double alpha;
} matmul;

static bool is_fused(const onv_edit *e, onv_node_id node)
{
    return onv_edit_is_of(e, node, ONV_MS_DOMAIN, ONV_OP_FusedMatMul);
}

static matmul read_matmul(const onv_edit *e, onv_node_id node)
{
    if (!is_fused(e, node)) return (matmul){.alpha = 1};
    return (matmul){
        .trans = {onv_edit_int(e, node, "transA", 0), onv_edit_int(e, node, "transB", 0)},
        .trans_batch = {onv_edit_int(e, node, "transBatchA", 0),
                        onv_edit_int(e, node, "transBatchB", 0)},
        .alpha = onv_edit_float(e, node, "alpha", 1)};
}

static bool add_fused(onv_edit *e, const matmul *m, const onv_value_id inputs[2], onv_node_id last,
                      const onv_node_id *nodes, uint32_t n_nodes)
{
    return onv_fuse_replace(
        e, last, nodes, n_nodes,
        ONV_NEW_NODE(.op_type = "FusedMatMul", .domain = ONV_MS_DOMAIN,
                     ONV_INPUTS(inputs[0], inputs[1]),
                     ONV_ATTRS(onv_fuse_int(e, "transA", m->trans[0]),
                               onv_fuse_int(e, "transB", m->trans[1]),
                               onv_fuse_int(e, "transBatchA", m->trans_batch[0]),
                               onv_fuse_int(e, "transBatchB", m->trans_batch[1]),
                               onv_fuse_float(e, "alpha", m->alpha))));
}

/* --- MatmulTransposeFusion --------------------------------------------------------------------- */

/* Whether it leaves the last axis among the last two and the batch axes next to each other:
 * [b, m, k] -> [b, k, m] (`trans`), [m, b, k] -> [b, m, k] (`batch`), or both. */
static bool is_taken_transpose(const onv_edit *e, onv_node_id node, bool *trans, bool *batch)
{
    onv_perm p;
    if (!onv_edit_is(e, node, ONV_OP_Transpose) || onv_edit_makes_result(e, node) ||
        !onv_perm_of(e, node, &p) || p.rank < 2)
        return false;
    bool is_last = p.at[p.rank - 1] == p.rank - 1;
    if (!is_last && p.at[p.rank - 2] != p.rank - 1) return false;
    if (p.rank >= 3 && p.at[0] > 1) return false;
    for (int i = 0; i < p.rank - 3; i++)
        if (p.at[i] + 1 != p.at[i + 1]) return false;
    *trans = !is_last;
    *batch = p.rank >= 3 && p.at[0] == 1;
    return true;
}

/* Transpose -> Cast becomes Cast -> Transpose; the new Transpose. */
static onv_node_id swap_cast(onv_edit *e, onv_node_id cast, onv_node_id transpose)
{
    const onv_node at = *onv_edit_node_at(e, cast), before = *onv_edit_node_at(e, transpose);
    onv_value_id in = ONV_MAKE(e, cast, "Cast", ONV_INPUTS(onv_edit_in(e, transpose, 0)),
                               .attrs = at.attrs, .n_attrs = at.n_attrs);
    onv_value_id out =
        ONV_MAKE(e, cast, "Transpose", ONV_INPUTS(in), ONV_OUTPUTS(onv_edit_out(e, cast, 0)),
                 .attrs = before.attrs, .n_attrs = before.n_attrs);
    if (e->status != ONV_OK) return ONV_NO_NODE;
    onv_edit_remove(e, cast);
    onv_edit_remove_unread(e, transpose);
    return onv_edit_producer(e, out);
}

static onv_node_id transpose_before(onv_edit *e, onv_node_id node, uint32_t k, bool *trans,
                                    bool *batch)
{
    onv_node_id before = onv_edit_in_node(e, node, k);
    if (is_taken_transpose(e, before, trans, batch)) return before;
    if (!onv_edit_is(e, before, ONV_OP_Cast) || onv_edit_makes_result(e, before))
        return ONV_NO_NODE;
    onv_node_id transpose = onv_edit_in_node(e, before, 0);
    if (!is_taken_transpose(e, transpose, trans, batch)) return ONV_NO_NODE;
    return swap_cast(e, before, transpose);
}

bool onv_fuse_matmul_transpose(onv_edit *e, onv_node_id node)
{
    if (!onv_edit_is(e, node, ONV_OP_MatMul) && !is_fused(e, node)) return false;
    onv_value_id inputs[2] = {onv_edit_in(e, node, 0), onv_edit_in(e, node, 1)};
    if (!onv_fuse_is_float(e, inputs[0]) || !onv_fuse_is_float(e, inputs[1])) return false;
    int ranks[2] = {onv_fuse_rank(e, inputs[0]), onv_fuse_rank(e, inputs[1])};
    matmul m = read_matmul(e, node);
    onv_node_id before[2] = {ONV_NO_NODE, ONV_NO_NODE};
    bool trans[2] = {false, false}, batch[2] = {false, false};
    for (uint32_t k = 0; k < 2 && e->status == ONV_OK; k++)
        if (m.trans_batch[k] == 0) before[k] = transpose_before(e, node, k, &trans[k], &batch[k]);
    if ((batch[0] || batch[1]) && (ranks[0] < 0 || ranks[0] != ranks[1]))
        for (uint32_t k = 0; k < 2; k++)
            if (batch[k]) before[k] = ONV_NO_NODE;
    if (e->status != ONV_OK || (!onv_is_node(before[0]) && !onv_is_node(before[1]))) return false;
    onv_node_id nodes[3] = {node};
    uint32_t n_nodes = 1;
    for (uint32_t k = 0; k < 2; k++) {
        if (!onv_is_node(before[k])) continue;
        inputs[k] = onv_edit_in(e, before[k], 0);
        m.trans[k] ^= trans[k];
        m.trans_batch[k] ^= batch[k];
        nodes[n_nodes++] = before[k];
    }
    return add_fused(e, &m, inputs, node, nodes, n_nodes);
}

/* --- MatMulScaleFusion ------------------------------------------------------------------------- */

/* A constant of one element whose rank is not above that of the other input. */
static bool is_scale(onv_edit *e, onv_value_id scale, onv_value_id other, double *number)
{
    int rank = onv_fuse_rank(e, other), own = onv_fuse_rank(e, scale);
    return onv_is_value(scale) && onv_edit_is_constant(e, scale) && own >= 0 &&
           own <= (rank < 0 ? 0 : rank) && onv_edit_scalar(e, scale, number);
}

/* Division by a number or multiplication with one: the factor, and the input that is scaled. */
static bool read_scale(onv_edit *e, onv_node_id node, double *factor, onv_value_id *scaled)
{
    if (onv_edit_is(e, node, ONV_OP_Div)) {
        *scaled = onv_edit_in(e, node, 0);
        if (!is_scale(e, onv_edit_in(e, node, 1), *scaled, factor)) return false;
        *factor = 1 / *factor;
        return true;
    }
    for (uint32_t k = 0; onv_edit_is(e, node, ONV_OP_Mul) && k < 2; k++) {
        *scaled = onv_edit_in(e, node, 1 - k);
        if (is_scale(e, onv_edit_in(e, node, k), *scaled, factor)) return true;
    }
    return false;
}

static bool is_scalable(const onv_edit *e, onv_node_id node)
{
    if (!onv_edit_is(e, node, ONV_OP_MatMul) && !is_fused(e, node)) return false;
    bool is_cpu = onv_edit_node_at(e, node)->provider == ONV_PROVIDER_CPU;
    for (uint32_t k = 0; k < 2; k++) {
        onv_value_id in = onv_edit_in(e, node, k);
        if (!onv_fuse_is_float(e, in)) return false;
        onv_dtype dtype = onv_edit_dtype(e, in);
        if (is_cpu && dtype != ONV_FLOAT && dtype != ONV_DOUBLE) return false;
    }
    return true;
}

bool onv_fuse_matmul_scale(onv_edit *e, onv_node_id node)
{
    if (!is_scalable(e, node)) return false;
    matmul m = read_matmul(e, node);
    onv_value_id inputs[2] = {onv_edit_in(e, node, 0), onv_edit_in(e, node, 1)}, scaled;
    onv_node_id nodes[4] = {node}, last = node;
    uint32_t n_nodes = 1;
    double factor;
    for (uint32_t k = 0; k < 2; k++) {
        onv_node_id before = onv_edit_in_node(e, node, k);
        if (!onv_is_node(before) || !onv_fuse_same_provider(e, before, node) ||
            !read_scale(e, before, &factor, &scaled) || onv_fuse_rank(e, scaled) <= 0)
            continue;
        inputs[k] = scaled;
        m.alpha *= factor;
        nodes[n_nodes++] = before;
    }
    if (onv_fuse_has_uses(e, node, 1)) {
        onv_node_id behind = onv_fuse_reader(e, node);
        if (onv_is_node(behind) && onv_fuse_same_provider(e, behind, node) &&
            read_scale(e, behind, &factor, &scaled)) {
            m.alpha *= factor;
            nodes[n_nodes++] = last = behind;
        }
    }
    return n_nodes > 1 && add_fused(e, &m, inputs, last, nodes, n_nodes);
}

/* --- MatMulNBitsFusion ------------------------------------------------------------------------- */

/* A bias that is added to the product is one of its inputs; the node stays. */
bool onv_fuse_nbits_bias(onv_edit *e, onv_node_id node)
{
    enum { BIAS = 5 };
    onv_form_match m;
    if (!onv_fuse_form(e, node, "^*Add(MatMulNBits(?)b)", &m)) return false;
    onv_node_id add = m.nodes[0];
    onv_value_id out = onv_edit_out(e, add, 0), bias = onv_form_value(&m, 'b');
    if (onv_is_value(onv_edit_in(e, node, BIAS)) || onv_fuse_rank(e, bias) != 1 ||
        !onv_dim_is(onv_fuse_dim(e, bias, 0), onv_edit_int(e, node, "N", -1)))
        return false;
    onv_edit_delay(e, node, add);
    onv_edit_set_input(e, node, BIAS, bias);
    onv_edit_remove(e, add);
    onv_edit_take_output(e, node, 0, out);
    return e->status == ONV_OK;
}
