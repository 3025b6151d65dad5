/* Inputs that an operator's definition gives one type, and that have several: what folds constants may write float32 into a
 * network of bfloat16. */
#include "base/quota.h"
#include "infer/driver.h"

#define UP_TO(n) ((1U << (n)) - 1)
#define ALL      UINT32_MAX

/* By ONNX's schemas (a type parameter of several inputs): which inputs, as bits. */
static const uint32_t rows[] = {
    [ONV_OP_Add] = UP_TO(2),
    [ONV_OP_Sub] = UP_TO(2),
    [ONV_OP_Mul] = UP_TO(2),
    [ONV_OP_Div] = UP_TO(2),
    [ONV_OP_Mod] = UP_TO(2),
    [ONV_OP_And] = UP_TO(2),
    [ONV_OP_Or] = UP_TO(2),
    [ONV_OP_Xor] = UP_TO(2),
    [ONV_OP_Equal] = UP_TO(2),
    [ONV_OP_Greater] = UP_TO(2),
    [ONV_OP_GreaterOrEqual] = UP_TO(2),
    [ONV_OP_Less] = UP_TO(2),
    [ONV_OP_LessOrEqual] = UP_TO(2),
    [ONV_OP_PRelu] = UP_TO(2),
    [ONV_OP_MatMul] = UP_TO(2),
    [ONV_OP_Gemm] = UP_TO(3),
    [ONV_OP_Conv] = UP_TO(3),
    [ONV_OP_ConvTranspose] = UP_TO(3),
    [ONV_OP_Clip] = UP_TO(3),
    [ONV_OP_Range] = UP_TO(3),
    [ONV_OP_InstanceNormalization] = UP_TO(3),
    [ONV_OP_LayerNormalization] = UP_TO(3),
    [ONV_OP_GRU] = UP_TO(4),
    [ONV_OP_RNN] = UP_TO(4),
    [ONV_OP_LSTM] = UP_TO(4),
    [ONV_OP_Where] = UP_TO(3) & ~UP_TO(1),
    [ONV_OP_Concat] = ALL,
    [ONV_OP_Einsum] = ALL,
    [ONV_OP_Max] = ALL,
    [ONV_OP_Min] = ALL,
    [ONV_OP_Mean] = ALL,
    [ONV_OP_Sum] = ALL,
};

static bool is_of_them(uint32_t inputs, uint32_t i)
{
    return inputs == ALL || (i < 32 && (inputs >> i & 1) != 0);
}

/* Two of these inputs, in *one and *other, that have different types. */
static bool find_mixed(const onv_model *model, const onv_node *node, const onv_value **one,
                       const onv_value **other)
{
    bool is_listed = node->code < sizeof rows / sizeof rows[0] && node->domain[0] == '\0';
    uint32_t inputs = is_listed ? rows[node->code] : 0;
    *one = NULL;
    for (uint32_t i = 0; inputs != 0 && i < node->n_inputs; i++) {
        *other = onv_node_input(model, node, i);
        if (*other == NULL || !is_of_them(inputs, i) || (*other)->type.kind != ONV_TYPE_TENSOR ||
            (*other)->type.dtype == ONV_UNDEFINED)
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
