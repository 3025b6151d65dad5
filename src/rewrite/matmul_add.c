/* A product with a matrix and the addition of a bias are a Gemm. Of an operand of more than two dims, a
 * Reshape before it and one after it make a matrix. */
#include "rewrite/fuse.h"

/* Attention is fused as a whole later: projections of a normalised value that three products read, of
 * which the sum with that value comes next, are left to that. */
static bool is_attended(const onv_edit *e, onv_node_id norm)
{
    uint32_t adds = 0, products = 0, shapes = 0;
    onv_node_id add = ONV_NO_NODE;
    if (!onv_edit_is(e, norm, ONV_OP_LayerNormalization)) return false;
    onv_value_id out = onv_edit_out(e, norm, 0);
    uint32_t n = onv_edit_n_uses(e, out);
    if (n > ONV_MOST_READERS) return false;
    ONV_EACH_USE(e, out, u)
    {
        uint16_t op = onv_edit_node_at(e, u->node)->code;
        if (op == ONV_OP_Add) add = u->node;
        adds += op == ONV_OP_Add;
        products += op == ONV_OP_MatMul;
        shapes += op == ONV_OP_Shape;
    }
    return adds == 1 && products == 3 && shapes + 4 == n &&
           onv_edit_is(e, onv_edit_producer(e, onv_fuse_other_input(e, add, out)), ONV_OP_Add);
}

/* The projection behind such an attention: the sum that goes into the sum with the normalised value. */
static bool is_after_attention(const onv_edit *e, onv_value_id sum)
{
    onv_node_id next = onv_edit_only_user(e, sum);
    return onv_edit_is(e, next, ONV_OP_Add) &&
           is_attended(e, onv_edit_producer(e, onv_fuse_other_input(e, next, sum)));
}

static onv_value_id add_reshape(onv_edit *e, onv_node_id at, onv_value_id in, const char *name,
                                const int64_t *shape, int rank, const onv_value_id *out)
{
    return ONV_MAKE(e, at, "Reshape", .name = name,
                    ONV_INPUTS(in, onv_edit_add_ints(e, at, name, shape, (uint32_t)rank)),
                    .outputs = out);
}

/* Of a matrix the bias is (N), (1, N), (M, 1) or (M, N), else (N), and sizes are numbers. Before providers are known, attention is left
 * as it is. */
bool onv_rule_matmul_add(onv_edit *e, onv_node_id node)
{
    onv_form_match m;
    if (!onv_fuse_form(e, node, "Add(MatMul(ab)c)", &m) &&
        !onv_fuse_form(e, node, "Add(cMatMul(ab))", &m))
        return false;
    onv_node_id add = m.nodes[0];
    onv_value_id a = onv_form_value(&m, 'a'), b = onv_form_value(&m, 'b'),
                 c = onv_form_value(&m, 'c'), out = onv_edit_out(e, add, 0);
    const onv_type *x = onv_edit_seen(e, a), *w = onv_edit_seen(e, b), *bias = onv_edit_seen(e, c);
    if (!onv_type_has_rank(x) || !onv_type_has_rank(w) || x->rank < 1 || w->rank != 2 ||
        x->dtype != bias->dtype || x->dtype == ONV_DOUBLE ||
        !onv_fuse_is_gemm_bias(bias, x->dims[0], w->dims[1]))
        return false;
    bool is_matrix = x->rank == 2;
    int64_t matrix[] = {1, w->dims[0].raw}, shape[ONV_MAX_RANK];
    if (!is_matrix && (bias->rank != 1 || !onv_type_is_static(x) || !onv_type_is_static(w) ||
                       (e->level == 1 &&
                        (is_attended(e, onv_edit_producer(e, a)) || is_after_attention(e, out)))))
        return false;
    for (int i = 0; !is_matrix && i < x->rank - 1; i++) {
        shape[i] = x->dims[i].raw;
        if (__builtin_mul_overflow(matrix[0], shape[i], &matrix[0])) return false;
    }
    int rank = x->rank;
    shape[rank - 1] = w->dims[1].raw;
    if (!is_matrix) a = add_reshape(e, add, a, "gemm_input_reshape", matrix, 2, NULL);
    onv_value_id made = ONV_MAKE(e, add, "Gemm", .name = onv_edit_node_at(e, node)->name,
                                 ONV_INPUTS(a, b, c), .outputs = is_matrix ? &out : NULL);
    if (!is_matrix) add_reshape(e, add, made, "gemm_output_reshape", shape, rank, &out);
    onv_edit_remove(e, add);
    onv_edit_remove(e, node);
    return true;
}
