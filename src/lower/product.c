/* Nodes and groups that are products of matrices. */
#include <string.h>

#include "emit/product.h"
#include "lower/lowering.h"

/* torch.bmm makes no views, so that gradients of its operands are tensors of their own. */
static bool is_plain_bmm(const onv_emitter *e, const onv_node *node, const uint32_t in[2])
{
    onv_eager_tensor a = onv_tensor_at(e, in[0]), b = onv_tensor_at(e, in[1]);
    return onv_node_is_aten(node, "bmm") && a.rank == 3 && b.rank == 3 && a.dims[0] == b.dims[0];
}

/* Of attention that runs as one operation after the other. */
static uint32_t attention_product(onv_lowering *l, const onv_node *node)
{
    uint32_t in[2];
    for (uint32_t k = 0; k < 2; k++) in[k] = onv_amp_attention(l, node, k);
    if (onv_node_attention(l, node) != ONV_ATTENTION_LAST)
        return onv_emit_matmul(&l->emit, in[0], in[1]);
    const onv_attention_mark *place = &l->fusions->attention[node - l->emit.model->nodes.at];
    onv_dtype amp = l->emit.options->amp;
    uint8_t dtype = amp != ONV_UNDEFINED ? (uint8_t)amp
                                         : onv_tensor_at(&l->emit, onv_node_in(l, node, 1)).dtype;
    return onv_emit_attended(&l->emit, dtype, onv_value_tensor(l, place->scaled_query), in[0],
                             in[1]);
}

uint32_t onv_lower_matmul(onv_lowering *l, const onv_node *node)
{
    if (onv_node_attention(l, node) != ONV_ATTENTION_NONE) return attention_product(l, node);
    const uint32_t in[2] = {onv_node_in(l, node, 0), onv_node_in(l, node, 1)};
    onv_eager_tensor w = onv_tensor_at(&l->emit, in[1]);
    uint32_t bias = w.rank == 2 ? onv_dropped_bias(l, node, w.dims[1]) : ONV_NO_TENSOR;
    onv_aten_id call = is_plain_bmm(&l->emit, node, in) ? ONV_ATEN_bmm : ONV_ATEN_matmul;
    return bias != ONV_NO_TENSOR ? onv_emit_linear(&l->emit, in[0], in[1], bias)
                                 : onv_recover_binary(l, call, in[0], in[1], node->outputs[0]);
}

/* alpha and beta of a Gemm. */
static bool is_factor(const onv_node *node, const char *name)
{
    const onv_attr *attr = onv_node_attr(node, name);
    return attr != NULL && attr->kind == ONV_ATTR_FLOAT && attr->f != 1;
}

uint32_t onv_lower_gemm(onv_lowering *l, const onv_node *node)
{
    enum { A, B, C };
    uint32_t in[] = {onv_node_in(l, node, A), onv_node_in(l, node, B), onv_node_in(l, node, C)};
    uint32_t norm_bias;
    bool feeds_cell = onv_feeds_cell(l, node);
    bool unfolds = onv_node_unfolds(&l->emit, node, &in[C], &norm_bias);
    onv_eager_tensor w = onv_tensor_at(&l->emit, in[B]);
    if (feeds_cell)
        in[C] = ONV_NO_TENSOR;
    else if (in[C] == ONV_NO_TENSOR && w.rank == 2)
        in[C] = onv_dropped_bias(l, node, w.dims[onv_node_int(node, "transB", 0) == 0]);
    onv_amp_low_all(&l->emit, in, sizeof in / sizeof in[0]);
    if (onv_node_int(node, "transA", 0) != 0) in[A] = onv_emit_swapped(&l->emit, in[A]);
    if (onv_node_int(node, "transB", 0) != 0) in[B] = onv_emit_swapped(&l->emit, in[B]);
    onv_added sum = {.bias = in[C],
                     .scales_product = is_factor(node, "alpha"),
                     .scales_bias = is_factor(node, "beta")};
    l->emit.adds_bias = feeds_cell;
    uint32_t out = onv_emit_mm(&l->emit, feeds_cell ? "mm" : "addmm", in[A], in[B], sum);
    l->emit.adds_bias = false;
    return unfolds ? onv_emit_unfolded_norm(&l->emit, node, out, norm_bias) : out;
}

uint32_t onv_lower_einsum(onv_lowering *l, const onv_node *node)
{
    const onv_attr *equation = onv_node_attr(node, "equation");
    onv_recover_list(l, "tensors");
    for (uint32_t k = 0; k < node->n_inputs; k++)
        onv_recover_tensor(l, "", onv_node_in(l, node, k));
    if (equation != NULL && equation->kind == ONV_ATTR_STRING)
        onv_recover_text(l, "equation", equation->s);
    return onv_recover_call(l, ONV_ATEN_einsum, node->outputs[0]);
}
