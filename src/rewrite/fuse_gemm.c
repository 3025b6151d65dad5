/* A product and the addition behind it. */
#include "rewrite/fuse.h"

#include <string.h>

/* --- MatMulAddFusion --------------------------------------------------------------------------- */

/* Of a type that Gemm takes, and by a matrix. */
static bool is_product(const onv_edit *e, onv_node_id matmul, onv_node_id add)
{
    onv_value_id a = onv_edit_in(e, matmul, 0), first = onv_edit_in(e, add, 0);
    if (!onv_fuse_is_float(e, a) || !onv_is_value(first)) return false;
    uint8_t dtype = onv_edit_value_at(e, a)->type.dtype;
    return dtype != ONV_DOUBLE && dtype == onv_edit_value_at(e, first)->type.dtype &&
           onv_fuse_rank(e, a) >= 0 && onv_fuse_rank(e, onv_edit_in(e, matmul, 1)) == 2;
}

/* [N], or for matrices [1, N], [M, 1] and [M, N]. */
static bool is_gemm_bias(const onv_edit *e, onv_node_id matmul, onv_value_id bias, bool is_matrix)
{
    onv_dim m = onv_fuse_dim(e, onv_edit_in(e, matmul, 0), 0);
    onv_dim n = onv_fuse_dim(e, onv_edit_in(e, matmul, 1), 1);
    int rank = onv_fuse_rank(e, bias);
    if (rank == 1) return onv_dim_same(onv_fuse_dim(e, bias, 0), n);
    if (rank != 2 || !is_matrix) return false;
    onv_dim rows = onv_fuse_dim(e, bias, 0), columns = onv_fuse_dim(e, bias, 1);
    return (onv_dim_is(rows, 1) && onv_dim_same(columns, n)) ||
           (onv_dim_same(rows, m) && (onv_dim_is(columns, 1) || onv_dim_same(columns, n)));
}

/* A LayerNormalization that three products and an addition read, whose other input is an addition, too; it
 * comes back. */
static bool is_attention_norm(const onv_edit *e, onv_node_id norm, onv_node_id *sum)
{
    uint32_t adds = 0, products = 0, shapes = 0;
    onv_node_id skip = ONV_NO_NODE;
    if (!onv_is_node(norm) || !onv_fuse_is(e, norm, "LayerNormalization")) return false;
    onv_value_id out = onv_edit_out(e, norm, 0);
    for (const onv_use *use = onv_edit_first_use(e, out); use != NULL;
         use = onv_edit_next_use(e, use)) {
        if (onv_fuse_is(e, use->node, "Add")) {
            adds++;
            skip = use->node;
        }
        products += onv_fuse_is(e, use->node, "MatMul");
        shapes += onv_fuse_is(e, use->node, "Shape");
    }
    if (adds != 1 || products != 3 || shapes + 4 != onv_edit_n_output_uses(e, norm)) return false;
    *sum = onv_edit_producer(e, onv_fuse_other_input(e, skip, out));
    return onv_is_node(*sum) && onv_fuse_is(e, *sum, "Add");
}

/* One of the four products of an attention, which AttentionFusion would take. The last of them is behind the
 * norm, past the Softmax: it is looked for from its addition. */
static bool is_of_attention(const onv_edit *e, onv_node_id matmul, onv_node_id add)
{
    onv_node_id sum;
    if (is_attention_norm(e, onv_edit_in_node(e, matmul, 0), &sum)) return true;
    onv_node_id skip = onv_edit_only_user(e, onv_edit_out(e, add, 0));
    if (!onv_is_node(skip) || !onv_fuse_is(e, skip, "Add")) return false;
    for (uint32_t k = 0; k < 2; k++)
        if (is_attention_norm(e, onv_edit_in_node(e, skip, k), &sum) && sum.index == add.index)
            return true;
    return false;
}

static onv_value_id add_reshape(onv_edit *e, onv_value_id in, const int64_t *dims, int rank,
                                onv_value_id out, onv_node_id at)
{
    int64_t count = rank;
    onv_graph_id graph = onv_edit_node_at(e, at)->graph;
    onv_value_id inputs[2] = {
        in, onv_edit_add_weight(e, graph, "gemm_shape", ONV_INT64, &count, 1, dims)};
    onv_new_node made = {.op_type = "Reshape",
                         .version = onv_edit_opset(e),
                         .inputs = inputs,
                         .n_inputs = 2,
                         .outputs = onv_is_value(out) ? &out : NULL,
                         .n_outputs = 1,
                         .at = at};
    if (e->status != ONV_OK) return in;
    onv_node_id node = onv_edit_add(e, &made);
    return e->status == ONV_OK ? onv_edit_out(e, node, 0) : in;
}

/* Every dim of the first input, and those of the second, are numbers. */
static bool read_dims(const onv_edit *e, onv_node_id matmul, int64_t *dims, int *rank)
{
    const onv_type *a = onv_edit_seen(e, onv_edit_in(e, matmul, 0));
    const onv_type *b = onv_edit_seen(e, onv_edit_in(e, matmul, 1));
    if (!onv_type_is_static(a) || !onv_type_is_static(b) || a->rank < 1) return false;
    for (int i = 0; i < a->rank; i++) dims[i] = a->dims[i].raw;
    *rank = a->rank;
    return true;
}

/* Rows of more than two dims become those of a matrix, and are again behind the Gemm. */
static void add_gemm(onv_edit *e, onv_node_id matmul, onv_node_id add, onv_value_id bias,
                     const int64_t *dims, int rank)
{
    onv_value_id inputs[3] = {onv_edit_in(e, matmul, 0), onv_edit_in(e, matmul, 1), bias};
    onv_value_id out = onv_edit_out(e, add, 0);
    int64_t matrix[2] = {1, 0}, result[ONV_MAX_RANK];
    for (int i = 0; i < rank - 1; i++) matrix[0] *= result[i] = dims[i];
    if (rank > 0) {
        matrix[1] = dims[rank - 1];
        result[rank - 1] = onv_fuse_dim(e, inputs[1], 1).raw;
        inputs[0] = add_reshape(e, inputs[0], matrix, 2, ONV_NO_VALUE, add);
    }
    onv_new_node made = {.op_type = "Gemm",
                         .version = onv_edit_opset(e),
                         .inputs = inputs,
                         .n_inputs = 3,
                         .outputs = rank > 0 ? NULL : &out,
                         .n_outputs = 1,
                         .at = add};
    onv_node_id gemm = onv_edit_add(e, &made);
    if (e->status == ONV_OK && rank > 0)
        add_reshape(e, onv_edit_out(e, gemm, 0), result, rank, out, add);
    onv_edit_remove(e, add);
    onv_edit_remove(e, matmul);
}

static bool fuse_matmul_add(onv_edit *e, onv_node_id matmul, bool keeps_attention)
{
    if (!onv_fuse_is(e, matmul, "MatMul")) return false;
    onv_value_id product = onv_edit_out(e, matmul, 0);
    onv_node_id add = onv_edit_only_user(e, product);
    if (!onv_is_node(add) || !onv_fuse_is(e, add, "Add") ||
        !onv_fuse_same_provider(e, add, matmul) || !is_product(e, matmul, add))
        return false;
    bool is_matrix = onv_fuse_rank(e, onv_edit_in(e, matmul, 0)) == 2;
    int64_t dims[ONV_MAX_RANK];
    int rank = 0;
    if (!is_matrix && ((keeps_attention && is_of_attention(e, matmul, add)) ||
                       !read_dims(e, matmul, dims, &rank)))
        return false;
    onv_value_id bias = onv_fuse_other_input(e, add, product);
    if (!is_gemm_bias(e, matmul, bias, is_matrix)) return false;
    add_gemm(e, matmul, add, bias, dims, rank);
    return true;
}

bool onv_fuse_matmul_add_level1(onv_edit *e, onv_node_id matmul)
{
    return fuse_matmul_add(e, matmul, true);
}

bool onv_fuse_matmul_add_level2(onv_edit *e, onv_node_id matmul)
{
    return fuse_matmul_add(e, matmul, false);
}
