/* Inputs that an operator's definition gives one type, and that have several: what folds constants may write float32 into a
 * network of bfloat16. And inputs whose type it fixes, which conversions to 16 bits change. */
#include "base/quota.h"
#include "infer/driver.h"

/* Two of these inputs, in *one and *other, that have different types. */
static bool find_mixed(const onv_model *model, const onv_node *node, const onv_value **one,
                       const onv_value **other)
{
    uint32_t alike = node->op != NULL && node->domain[0] == '\0' ? node->op->alike : 0;
    *one = NULL;
    for (uint32_t i = 0; alike != 0 && i < node->n_inputs; i++) {
        *other = onv_node_input(model, node, i);
        if (*other == NULL || (alike >> (i < 23 ? i : 23) & 1) == 0 ||
            (*other)->type.kind != ONV_TYPE_TENSOR || (*other)->type.dtype == ONV_UNDEFINED)
            continue;
        if (*one == NULL) *one = *other;
        if ((*one)->type.dtype != (*other)->type.dtype) return true;
    }
    return false;
}

/* What ONNX has alone for an input, in all versions that have it there. Each was tried with another type: version 1.31 refuses it. */
static const struct {
    uint16_t code;
    uint8_t input, dtype;
} fixed_types[] = {
    {ONV_OP_ConstantOfShape, 0, ONV_INT64},
    {ONV_OP_Expand, 1, ONV_INT64},
    {ONV_OP_Pad, 1, ONV_INT64},
    {ONV_OP_ReduceSum, 1, ONV_INT64},
    {ONV_OP_Reshape, 1, ONV_INT64},
    {ONV_OP_Resize, 2, ONV_FLOAT},
    {ONV_OP_Resize, 3, ONV_INT64},
    {ONV_OP_Split, 1, ONV_INT64},
    {ONV_OP_Squeeze, 1, ONV_INT64},
    {ONV_OP_Tile, 1, ONV_INT64},
    {ONV_OP_Unsqueeze, 1, ONV_INT64},
    {ONV_OP_Where, 0, ONV_BOOL},
};

static const onv_value *find_wrong(const onv_model *model, const onv_node *node, onv_dtype *right)
{
    for (size_t i = 0; i < sizeof fixed_types / sizeof fixed_types[0]; i++) {
        if (node->code != fixed_types[i].code || node->domain[0] != '\0') continue;
        const onv_value *value = onv_node_input(model, node, fixed_types[i].input);
        *right = (onv_dtype)fixed_types[i].dtype;
        if (value != NULL && value->type.kind == ONV_TYPE_TENSOR &&
            value->type.dtype != ONV_UNDEFINED && value->type.dtype != *right)
            return value;
    }
    return NULL;
}

static void note_fixed_types(onv_model *model)
{
    const onv_node *first = NULL;
    const onv_value *value = NULL;
    onv_dtype right = ONV_UNDEFINED, of_other;
    size_t count = 0;
    for (size_t i = 0; i < model->nodes.count; i++) {
        const onv_node *node = &model->nodes.at[i];
        const onv_value *wrong = find_wrong(model, node, value == NULL ? &right : &of_other);
        count += wrong != NULL;
        if (wrong == NULL || value != NULL) continue;
        first = node;
        value = wrong;
    }
    if (value == NULL) return;
    onv_model_diag(model, ONV_WARNING, "loads-types", first->name,
                   "ONNX Runtime 1.31 refuses the file: input '%s' of %s is %s, and ONNX has %s "
                   "alone there; write it as that; such nodes: %zu",
                   value->name, first->op_type, onv_dtype_name((onv_dtype)value->type.dtype),
                   onv_dtype_name(right), count);
}

onv_status onv_note_mixed_types(onv_driver *driver)
{
    onv_model *model = driver->model;
    const onv_node *first = NULL;
    const onv_value *one, *other, *of_first[2] = {NULL, NULL};
    size_t count = 0;
    ONV_WORK(model->nodes.count);
    note_fixed_types(model);
    for (size_t i = 0; i < model->nodes.count; i++) {
        if (!find_mixed(model, &model->nodes.at[i], &one, &other)) continue;
        if (count++ > 0) continue;
        first = &model->nodes.at[i];
        of_first[0] = one;
        of_first[1] = other;
    }
    if (count == 0) return ONV_OK;
    onv_model_diag(model, ONV_WARNING, "mixed-types", first->name,
                   "inputs of %s have one type, but '%s' is %s and '%s' %s; such nodes: %zu. ONNX "
                   "Runtime refuses the file, and sizes are as it says; optimize=False of "
                   "torch.onnx.export folds nothing",
                   first->op_type, of_first[0]->name,
                   onv_dtype_name((onv_dtype)of_first[0]->type.dtype), of_first[1]->name,
                   onv_dtype_name((onv_dtype)of_first[1]->type.dtype), count);
    return ONV_OK;
}
