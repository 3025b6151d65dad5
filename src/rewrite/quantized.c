/* Quantized models: pairs of QuantizeLinear and DequantizeLinear around operators. */
#include "base/heap.h"
#include "base/sort.h"
#include "rewrite/rules.h"

/* As ONNX Runtime lists what reads an output: by the numbers of nodes, then of their inputs. */
static int compare_uses(const void *a, const void *b, void *context)
{
    const onv_edit *e = context;
    const onv_use *x = &e->uses.at[*(const uint32_t *)a], *y = &e->uses.at[*(const uint32_t *)b];
    if (x->node.index != y->node.index) return x->node.index < y->node.index ? -1 : 1;
    return (x->input > y->input) - (x->input < y->input);
}

/* Each reader of a DequantizeLinear in its graph has one of its own. The first one keeps the one that is there, if nothing else does. */
bool onv_rule_unique_dequantize(onv_edit *e, onv_node_id node)
{
    onv_value_id out = onv_edit_out(e, node, 0);
    onv_graph_id graph = onv_edit_node_at(e, node)->graph;
    bool keeps = onv_edit_is_result(e, out) || onv_edit_is_read_inside(e, out);
    uint32_t n = 0, most = onv_edit_n_uses(e, out), first = keeps ? 0 : 1;
    if (most <= first) return false;
    uint32_t *uses = onv_edit_checked(e, onv_heap_alloc(most * sizeof *uses));
    if (uses == NULL) return false;
    ONV_EACH_USE(e, out, u)
    if (onv_edit_node_at(e, u->node)->graph.index == graph.index)
        uses[n++] = (uint32_t)(u - e->uses.at);
    onv_sort_ids(uses, n, compare_uses, e);
    for (uint32_t i = first; i < n && e->status == ONV_OK; i++) {
        const onv_use use = e->uses.at[uses[i]];
        onv_node copied = *onv_edit_node_at(e, node);
        onv_value_id own =
            ONV_MAKE(e, onv_edit_next(e, node), copied.op_type, .domain = copied.domain,
                     .version = copied.version, .inputs = copied.inputs,
                     .n_inputs = copied.n_inputs, .attrs = copied.attrs, .n_attrs = copied.n_attrs);
        if (e->status != ONV_OK) break;
        onv_edit_node_at(e, onv_edit_producer(e, own))->provider = copied.provider;
        onv_edit_set_input(e, use.node, use.input, own);
    }
    onv_heap_free(uses);
    return n > first;
}
