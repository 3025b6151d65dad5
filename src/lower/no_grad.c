/* Operations under torch.no_grad(), which keep nothing and give no gradient.
 *
 * The exporter puts them into a graph of their own and joins it with the network's again. The traces of its nodes name
 * that graph, and their notes know no module inside. torch.autocast() makes such graphs, too, mostly of some products
 * in one module: with parameters of several modules it is a part of the network that is not trained, or not yet. */
#include <string.h>

#include "base/fail.h"
#include "lower/lowering.h"

/* The length of the name of the module, inside the one of the node, that has the parameter; 0: none is. */
static size_t inner_module(const char *parameter, const char *scope)
{
    size_t length = scope != NULL ? strlen(scope) : 0;
    if (length > 0 && (strncmp(parameter, scope, length) != 0 || parameter[length] != '.'))
        return 0;
    const char *inside = parameter + length + (length > 0), *dot = strrchr(inside, '.');
    return dot != NULL ? (size_t)(dot - parameter) : 0;
}

onv_status onv_no_grad_find(onv_lowering *l)
{
    const onv_model *model = l->emit.model;
    onv_ptr_map first = {0}; /* by graph: 1 + the node that reads a parameter of a module inside */
    bool fits = true;
    for (uint32_t i = 0; i < model->nodes.count && fits && !l->emit.options->as_exported; i++) {
        const onv_node *node = &model->nodes.at[i];
        uint32_t before;
        if (node->inner_graph == NULL || node->n_parameters == 0) continue;
        size_t length = inner_module(node->parameters[0], node->scope);
        if (length == 0) continue;
        if (!onv_ptr_map_get(&first, node->inner_graph, &before)) {
            fits = onv_ptr_map_set(&first, node->inner_graph, i);
            continue;
        }
        const char *other = model->nodes.at[before].parameters[0];
        bool is_same = strncmp(other, node->parameters[0], length) == 0 && other[length] == '.' &&
                       strchr(other + length + 1, '.') == NULL;
        if (!is_same) fits = onv_ptr_map_set(&l->no_grad, node->inner_graph, 1);
    }
    onv_ptr_map_cleanup(&first);
    return fits ? ONV_OK : onv_fail_memory(l->emit.err);
}

bool onv_is_under_no_grad(const onv_lowering *l, const onv_node *node)
{
    return node->inner_graph != NULL && onv_ptr_map_get(&l->no_grad, node->inner_graph, NULL);
}

void onv_no_grad_report(onv_lowering *l)
{
    uint32_t n = 0;
    const onv_node *first = NULL;
    for (uint32_t i = 0; i < l->emit.model->nodes.count; i++) {
        const onv_node *node = &l->emit.model->nodes.at[i];
        if (!onv_is_under_no_grad(l, node)) continue;
        if (n++ == 0) first = node;
    }
    if (n > 0)
        onv_model_diag(
            l->emit.model, ONV_WARNING, "no-grad", first->name,
            "%u nodes, this one first, came from graphs inside the network's, as torch.no_grad() "
            "makes them: they are counted without gradient, and keep nothing; what leads to them "
            "alone is counted until the forward pass ends, Python may free it earlier",
            n);
}
