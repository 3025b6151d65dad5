#include "infer/infer.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"

/* By value: who reads it. */
typedef struct reads {
    uint64_t rows; /* outputs of the linear layer, where products read it; 0: none does */
    bool other;    /* something else does, or a product that no tool quantizes */
    bool lookup, convolution;
    onv_value_id transposed; /* a Transpose reads it, and makes this */
} reads;

typedef struct quantizing {
    onv_model *model;
    reads *of;
} quantizing;

static bool is_one(const onv_node *node, const char *name)
{
    const onv_attr *attr = onv_node_attr(node, name);
    return attr == NULL || attr->kind != ONV_ATTR_FLOAT || attr->f == 1;
}

/* Whether input k of the node is the matrix of a linear layer, and how many outputs that has. */
static bool is_matrix_of_layer(const quantizing *q, const onv_node *node, uint32_t k,
                               uint64_t *rows)
{
    const onv_type *type = &onv_model_value(q->model, node->inputs[k])->type;
    bool gemm = node->code == ONV_OP_Gemm;
    if (node->domain[0] != '\0' || k != 1 || (!gemm && node->code != ONV_OP_MatMul) ||
        type->kind != ONV_TYPE_TENSOR || type->rank != 2 || !onv_type_is_static(type))
        return false;
    if (gemm &&
        (onv_node_int(node, "transA", 0) != 0 || !is_one(node, "alpha") || !is_one(node, "beta")))
        return false;
    *rows = (uint64_t)type->dims[gemm && onv_node_int(node, "transB", 0) != 0 ? 0 : 1].raw;
    return *rows > 0;
}

static bool is_transpose(const onv_node *node)
{
    const onv_attr *perm = onv_node_attr(node, "perm");
    if (node->code != ONV_OP_Transpose || node->domain[0] != '\0') return false;
    return perm == NULL || (perm->kind == ONV_ATTR_INTS && perm->count == 2 && perm->ints[0] == 1);
}

static void note_read(quantizing *q, const onv_node *node, uint32_t k)
{
    reads *r = &q->of[node->inputs[k].index];
    uint64_t rows;
    if (is_matrix_of_layer(q, node, k, &rows)) {
        r->rows = rows;
        return;
    }
    if (is_transpose(node) && k == 0 && !onv_is_value(r->transposed)) {
        r->transposed = node->outputs[0];
        return;
    }
    r->other = true;
    r->lookup |= k == 0 && strstr(node->op_type, "Gather") != NULL;
    r->convolution |= k == 1 && strstr(node->op_type, "Conv") != NULL;
}

static void note_reads(quantizing *q)
{
    const onv_model *model = q->model;
    for (size_t i = 0; i < model->values.count; i++) q->of[i].transposed = ONV_NO_VALUE;
    for (size_t g = 0; g < model->graphs.count; g++) {
        const onv_graph *graph = &model->graphs.at[g];
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
            const onv_node *node = onv_model_node(model, graph->nodes[i]);
            for (uint32_t k = 0; k < node->n_inputs; k++)
                if (onv_is_value(node->inputs[k])) note_read(q, node, k);
        }
        for (uint32_t i = 0; i < graph->n_outputs; i++)
            if (onv_is_value(graph->outputs[i])) q->of[graph->outputs[i].index].other = true;
    }
}

/* The outputs of the layer; 0: it is not quantized. */
static uint64_t rows_of(const quantizing *q, const onv_value *value)
{
    const reads *r = &q->of[value - q->model->values.at];
    onv_dtype dtype = (onv_dtype)value->type.dtype;
    bool is_float = dtype == ONV_FLOAT || dtype == ONV_FLOAT16 || dtype == ONV_BFLOAT16;
    if (value->type.kind != ONV_TYPE_TENSOR || value->type.rank != 2 || !is_float || r->other)
        return 0;
    if (!onv_is_value(r->transposed)) return r->rows;
    const reads *t = &q->of[r->transposed.index];
    if (t->other || onv_is_value(t->transposed) || (r->rows > 0 && r->rows != t->rows)) return 0;
    return t->rows;
}

static onv_status pack(quantizing *q, onv_value *value, uint64_t rows, onv_quantized *result,
                       onv_error *err)
{
    onv_arena *arena = &q->model->arena;
    onv_tensor *tensor = onv_arena_copy(arena, value->tensor, sizeof *tensor);
    uint64_t parts[ONV_MAX_WEIGHT_PARTS];
    onv_value_id transposed = q->of[value - q->model->values.at].transposed;
    if (tensor == NULL) return onv_fail_memory(err);
    uint32_t n = onv_weight_parts(result->format, tensor->elems, rows, parts);
    result->n_matrices++;
    result->bytes_before += tensor->bytes;
    tensor->bytes = 0;
    for (uint32_t i = 0; i < n; i++) tensor->bytes += parts[i];
    result->bytes += tensor->bytes;
    value->tensor = tensor;
    value->is_packed = true;
    value->known_tried = true; /* there are no floats to look at */
    value->known = NULL;
    if (onv_is_value(transposed)) onv_model_value(q->model, transposed)->is_packed = true;
    return ONV_OK;
}

onv_status onv_infer_quantize(onv_model *model, const onv_weight_format *format,
                              onv_quantized *result, onv_error *err)
{
    *result = (onv_quantized){.format = model->weight_format = format};
    quantizing q = {.model = model,
                    .of = ONV_ARENA_ARRAY(&model->arena, reads, model->values.count)};
    if (q.of == NULL) return onv_fail_memory(err);
    note_reads(&q);
    for (size_t i = 0; i < model->values.count; i++) {
        onv_value *value = &model->values.at[i];
        if (!onv_value_is_held(value)) continue;
        uint64_t rows = rows_of(&q, value);
        if (rows > 0) {
            ONV_TRY(pack(&q, value, rows, result, err));
            continue;
        }
        result->bytes_left += value->tensor->bytes;
        if (q.of[i].lookup) result->bytes_tables += value->tensor->bytes;
        if (q.of[i].convolution) result->bytes_convolutions += value->tensor->bytes;
    }
    if (result->n_matrices > 0) return ONV_OK;
    return onv_fail(
        err, ONV_ERR_USAGE,
        "no weight can be quantized to %s: no MatMul or Gemm reads a matrix of floats "
        "that nothing else reads; convolutions, tables that Gather reads and norms stay "
        "as they are",
        format->name);
}
