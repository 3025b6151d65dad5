/* Measured: ONNX Runtime 1.31, the CUDA provider over a substitute for the CUDA driver. */
#include "ort/scratch.h"

#include <string.h>

typedef struct kernel {
    const onv_model *model;
    const onv_node *node;
    const onv_ort_settings *settings;
    onv_ort_scratch *scratch;
} kernel;

static const onv_type *input_type(const kernel *k, uint32_t i)
{
    return &onv_model_value(k->model, k->node->inputs[i])->type;
}

static void add(kernel *k, uint64_t bytes)
{
    if (k->scratch->count < ONV_ORT_MOST_SCRATCH)
        k->scratch->rows[k->scratch->count++] = (onv_ort_scratch_row){.bytes = bytes};
}

/* --- Concat ------------------------------------------------------------------------------------ */

/* Up to 32 inputs are arguments of the kernel; more are handed over in arrays: the sizes on the axis,
 * their sums, which input each slice comes from, and the addresses. */
static void concat_scratch(kernel *k)
{
    enum { MOST_ARGUMENTS = 32, POINTER_BYTES = 8 };
    const onv_node *node = k->node;
    if (node->n_inputs <= MOST_ARGUMENTS) return;
    const onv_type *out = &onv_model_value(k->model, node->outputs[0])->type;
    const onv_attr *attr = onv_node_attr(node, "axis");
    int64_t axis = attr != NULL ? attr->i : 0;
    if (axis < 0) axis += out->rank;
    if (axis < 0 || axis >= out->rank) return;
    bool equal = true;
    for (uint32_t i = 1; i < node->n_inputs; i++)
        equal &= onv_dim_same(input_type(k, i)->dims[axis], input_type(k, 0)->dims[axis]);
    uint64_t array = (uint64_t)node->n_inputs * POINTER_BYTES;
    if (!equal) {
        add(k, array);
        add(k, array);
        add(k, (uint64_t)out->dims[axis].raw * POINTER_BYTES);
    }
    add(k, array);
}

/* --- All --------------------------------------------------------------------------------------- */

static const struct kernel_row {
    const char *op, *domain;
    void (*find)(kernel *k);
} kernels[] = {
    {"Concat", "", concat_scratch},
};

void onv_ort_find_scratch(const onv_model *model, const onv_node *node, const bool *is_host,
                          const onv_ort_settings *settings, onv_ort_scratch *scratch)
{
    kernel k = {model, node, settings, scratch};
    if (node->n_outputs == 0 || !onv_is_value(node->outputs[0]) || is_host[node->outputs[0].index])
        return;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (strcmp(kernels[i].op, node->op_type) == 0 &&
            strcmp(kernels[i].domain, node->domain) == 0)
            kernels[i].find(&k);
}
