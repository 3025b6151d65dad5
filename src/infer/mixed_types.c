/* Inputs that an operator's definition gives one type, and that have several: what folds constants may write float32 into a
 * network of bfloat16. */
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

onv_status onv_note_mixed_types(onv_driver *driver)
{
    onv_model *model = driver->model;
    const onv_node *first = NULL;
    const onv_value *one, *other, *of_first[2] = {NULL, NULL};
    size_t count = 0;
    ONV_WORK(model->nodes.count);
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
