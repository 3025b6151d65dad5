/* Which nodes the CPU runs: those that CUDA has no kernel for, and what is computed from values in the host's
 * memory alone (read in source: onnxruntime/core/framework/fallback_cpu_capability.cc). */
#include <string.h>

#include "rewrite/kernels.h"
#include "rewrite/rules.h"

enum { SMALL_INITIALIZER = 100 }; /* elements */

typedef struct partition {
    onv_edit *e;
    bool *is_host;      /* by value: some node makes it in the host's memory */
    bool *is_candidate; /* by node */
} partition;

static bool is_small_float(const onv_type *type)
{
    uint32_t bits = onv_dtype_bits((onv_dtype)type->dtype);
    return onv_dtype_is_float((onv_dtype)type->dtype) && bits <= 16;
}

/* A weight that may as well be in the host's memory, or an input of this graph. */
static bool is_on_either(const partition *p, onv_value_id id, onv_graph_id graph)
{
    const onv_value *value = onv_edit_value_at(p->e, id);
    if (onv_value_is_weight(value))
        return value->tensor != NULL && value->tensor->elems <= SMALL_INITIALIZER;
    return value->kind == ONV_VALUE_INPUT && value->graph.index == graph.index;
}

static void mark_outputs(partition *p, onv_node_id id, const onv_kernel *kernel)
{
    onv_edit *e = p->e;
    const onv_node *node = onv_edit_node_at(e, id);
    for (uint32_t k = 0; k < node->n_outputs; k++) {
        onv_value_id out = node->outputs[k];
        if (!onv_is_value(out) || (kernel != NULL && !onv_kernel_gives_host(kernel, k))) continue;
        p->is_host[out.index] = true;
        ONV_EACH_USE(e, out, u)
        p->is_candidate[u->node.index] |=
            onv_edit_node_at(e, u->node)->graph.index == node->graph.index;
    }
}

/* All its inputs are in the host's memory, and CUDA would not want them there. */
static bool is_for_host(const partition *p, onv_node_id id, const onv_kernel *kernel)
{
    const onv_node *node = onv_edit_node_at(p->e, id);
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        if (!onv_is_value(node->inputs[k])) continue;
        if (is_small_float(&onv_edit_value_at(p->e, node->inputs[k])->type)) return false;
        if (is_on_either(p, node->inputs[k], node->graph)) continue;
        bool is_here = onv_edit_value_at(p->e, node->inputs[k])->graph.index == node->graph.index;
        if (!is_here || !p->is_host[node->inputs[k].index] || onv_kernel_takes_host(kernel, k))
            return false;
    }
    return true;
}

/* In order, so that what makes an input was looked at before. */
static void assign(partition *p, onv_node_id id)
{
    onv_node *node = onv_edit_node_at(p->e, id);
    const onv_kernel *kernel = onv_kernel_find(p->e, id);
    if (kernel != NULL && !(p->is_candidate[id.index] && is_for_host(p, id, kernel))) {
        node->provider = ONV_PROVIDER_CUDA;
        mark_outputs(p, id, kernel);
        return;
    }
    node->provider = ONV_PROVIDER_CPU;
    node->lacks_kernel = kernel == NULL;
    if (p->is_candidate[id.index]) mark_outputs(p, id, NULL);
}

void onv_rewrite_assign(onv_edit *e, onv_provider provider)
{
    partition p = {.e = e};
    if (e->status != ONV_OK) return;
    for (uint32_t i = 0; i < e->nodes.count && provider == ONV_PROVIDER_CPU; i++)
        onv_edit_node_at(e, (onv_node_id){i})->provider = ONV_PROVIDER_CPU;
    if (provider == ONV_PROVIDER_CPU) return;
    p.is_host = ONV_ARENA_ARRAY(&e->driver.scratch, bool, e->values.count);
    p.is_candidate = ONV_ARENA_ARRAY(&e->driver.scratch, bool, e->nodes.count);
    if (p.is_host == NULL || p.is_candidate == NULL) {
        onv_edit_fail(e, ONV_ERR_MEMORY);
        return;
    }
    for (uint32_t g = 0; g < e->graphs.count; g++)
        for (onv_node_id id = onv_edit_first(e, (onv_graph_id){g}); onv_is_node(id);
             id = onv_edit_next(e, id))
            assign(&p, id);
    onv_arena_reset(&e->driver.scratch);
}
