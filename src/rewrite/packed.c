/* Weights that are taken to be in fewer bits: the products that read them become the operators that ONNX
 * Runtime's own quantizers write (ir/weight_format.h). That is done to the file, before a session sees it. */
#include <string.h>

#include "ir/weight_format.h"
#include "rewrite/fuse.h"
#include "rewrite/rules.h"

enum { MOST_WEIGHTS = 3 };

typedef struct packed_product {
    onv_node_id node;
    onv_value_id a, bias; /* of a Gemm, or none */
    onv_dtype dtype;
    int64_t k, n;
} packed_product;

static bool read_product(const onv_edit *e, onv_node_id id, packed_product *p)
{
    bool gemm = onv_edit_is(e, id, ONV_OP_Gemm);
    onv_value_id b = onv_edit_in(e, id, 1);
    if ((!gemm && !onv_edit_is(e, id, ONV_OP_MatMul)) || !onv_is_value(b)) return false;
    const onv_value *weight = onv_edit_value_at(e, b);
    if (!weight->is_packed) return false;
    int64_t rows = weight->type.dims[0].raw, columns = weight->type.dims[1].raw;
    bool transposed = gemm && onv_edit_int(e, id, "transB", 0) != 0;
    *p = (packed_product){.node = id,
                          .a = onv_edit_in(e, id, 0),
                          .bias = gemm ? onv_edit_in(e, id, 2) : ONV_NO_VALUE,
                          .dtype = (onv_dtype)weight->type.dtype,
                          .k = transposed ? columns : rows,
                          .n = transposed ? rows : columns};
    return true;
}

static onv_value_id add_weight(onv_edit *e, const packed_product *p, const char *suffix,
                               onv_dtype dtype, const int64_t *dims, int rank)
{
    const char *stem = onv_edit_value_at(e, onv_edit_in(e, p->node, 1))->name;
    const char *name = onv_arena_printf(&e->model->arena, "%s%s", stem, suffix);
    if (name == NULL) onv_edit_fail(e, ONV_ERR_MEMORY);
    if (e->status != ONV_OK) return ONV_NO_VALUE;
    return onv_edit_add_weight(e, onv_edit_node_at(e, p->node)->graph, name, dtype, dims, rank,
                               NULL);
}

/* The blocks, their scales, their zero points. */
static uint32_t add_weights(onv_edit *e, const packed_product *p, onv_value_id inputs[MOST_WEIGHTS])
{
    const onv_weight_format *format = e->model->weight_format;
    int64_t block = format->ort_block, bits = format->bits;
    if (!format->ort_by_row) {
        int64_t elems = p->k * p->n, bytes = (elems + 1) / 2, scales = (elems + block - 1) / block;
        inputs[0] = add_weight(e, p, "_Bnb4", ONV_UINT8, &bytes, 1);
        inputs[1] = add_weight(e, p, "_absmax", p->dtype, &scales, 1);
        return 2;
    }
    int64_t blocks = (p->k + block - 1) / block;
    const int64_t blob[] = {p->n, blocks, block * bits / 8}, scales[] = {p->n, blocks};
    const int64_t zeros[] = {p->n, (blocks * bits + 7) / 8};
    inputs[0] = add_weight(e, p, bits == 4 ? "_Q4" : "_Q8", ONV_UINT8, blob, 3);
    inputs[1] = add_weight(e, p, "_scales", p->dtype, scales, 2);
    inputs[2] = add_weight(e, p, "_zero_points", ONV_UINT8, zeros, 2);
    return MOST_WEIGHTS;
}

static void replace(onv_edit *e, const packed_product *p)
{
    onv_value_id inputs[1 + MOST_WEIGHTS] = {p->a}, out = onv_edit_out(e, p->node, 0);
    uint32_t n = 1 + add_weights(e, p, inputs + 1);
    const onv_weight_format *format = e->model->weight_format;
    bool has_bias = onv_is_value(p->bias);
    onv_value_id made =
        ONV_MAKE(e, p->node, format->ort_op, .domain = ONV_MS_DOMAIN, .inputs = inputs,
                 .n_inputs = n, .outputs = has_bias ? NULL : &out,
                 ONV_ATTRS(onv_fuse_int(e, "K", p->k), onv_fuse_int(e, "N", p->n),
                           onv_fuse_int(e, "block_size", format->ort_block),
                           format->ort_by_row ? onv_fuse_int(e, "bits", format->bits)
                                              : onv_fuse_int(e, "quant_type", 1)));
    if (has_bias) ONV_MAKE(e, p->node, "Add", ONV_INPUTS(made, p->bias), ONV_OUTPUTS(out));
    onv_edit_remove_with_inputs(e, p->node);
}

void onv_rewrite_packed(onv_edit *e)
{
    size_t n_graphs = e->graphs.count, n_nodes = e->nodes.count;
    for (uint32_t g = 0; g < n_graphs; g++)
        for (onv_node_id id = onv_edit_first(e, (onv_graph_id){g});
             onv_is_node(id) && e->status == ONV_OK; id = onv_edit_next(e, id)) {
            packed_product p;
            if (id.index < n_nodes && onv_edit_is_there(e, id) && read_product(e, id, &p))
                replace(e, &p);
        }
}
