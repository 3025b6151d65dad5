/* Operations that an exporter dropped, as they change nothing at a batch of one: x[:n // 2], y / n.
 *
 * PyTorch's exporter notes the call that each node was. A slice or a quotient that a call has as an argument, or
 * that a result is named after, and that no node and no value of the graph is, was dropped.
 */
#include <string.h>

#include "infer/rebatch.h"

enum { IS_VALUE = 1, IS_CALL = 2 };

static bool add_name(onv_model *model, onv_ptr_map *names, const char *name, uint32_t bit)
{
    uint32_t bits = 0;
    const char *key = onv_intern(&model->strings, name);
    if (key == NULL) return false;
    (void)onv_ptr_map_get(names, key, &bits);
    return onv_ptr_map_set(names, key, bits | bit);
}

static onv_status collect_names(onv_driver *driver, onv_ptr_map *names)
{
    onv_model *model = driver->model;
    bool fits = true;
    for (size_t i = 0; i < model->values.count && fits; i++)
        fits = add_name(model, names, model->values.at[i].name, IS_VALUE);
    for (size_t i = 0; i < model->nodes.count && fits; i++)
        if (model->nodes.at[i].source_op != NULL)
            fits = add_name(model, names, model->nodes.at[i].source_op, IS_CALL);
    return fits ? ONV_OK : onv_fail_memory(driver->err);
}

static bool is_in(const onv_model *model, const onv_ptr_map *names, const char *name, uint32_t bits)
{
    uint32_t found;
    const char *key = onv_interned(&model->strings, name);
    return key != NULL && onv_ptr_map_get(names, key, &found) && (found & bits) != 0;
}

/* Whether PyTorch numbers calls of slice and div so. */
static bool is_cut_or_quotient(const char *name)
{
    const char *rest = NULL;
    if (strncmp(name, "slice_", 6) == 0) rest = name + 6;
    if (strncmp(name, "div", 3) == 0) rest = name[3] == '_' ? name + 4 : name + 3;
    return rest != NULL && rest[strspn(rest, "0123456789")] == '\0';
}

/* Copies the next argument that is a value, "%name", and moves behind it. */
static bool next_argument(const char **at, char *name, size_t size)
{
    const char *begin = strchr(*at, '%');
    if (begin == NULL) return false;
    size_t length = strcspn(++begin, ",)] ");
    *at = begin + length;
    if (length >= size) length = 0;
    memcpy(name, begin, length);
    name[length] = '\0';
    return true;
}

static onv_status find_argument(onv_driver *driver, const onv_ptr_map *names, const onv_node *node,
                                const char **dropped)
{
    char name[64];
    const char *at = node->call;
    if (node->n_outputs == 0 || !onv_is_value(node->outputs[0]) ||
        !onv_rebatch_carries(driver, &onv_model_value(driver->model, node->outputs[0])->type))
        return ONV_OK;
    while (*dropped == NULL && next_argument(&at, name, sizeof name)) {
        if (!is_cut_or_quotient(name) ||
            is_in(driver->model, names, name, (uint32_t)IS_VALUE | IS_CALL))
            continue;
        *dropped = onv_intern(&driver->model->strings, name);
        if (*dropped == NULL) return onv_fail_memory(driver->err);
    }
    return ONV_OK;
}

static onv_status find_dropped(onv_driver *driver, const onv_ptr_map *names, const char **dropped,
                               const onv_node **reader)
{
    const onv_model *model = driver->model;
    const onv_graph *graph = onv_model_graph(model, (onv_graph_id){0});
    for (uint32_t i = 0; i < graph->n_nodes && *dropped == NULL; i++) {
        *reader = onv_model_node(model, graph->nodes[i]);
        if ((*reader)->call != NULL) ONV_TRY(find_argument(driver, names, *reader, dropped));
    }
    for (uint32_t i = 0; i < graph->n_outputs && *dropped == NULL; i++) {
        const onv_value *value = onv_model_value(model, graph->outputs[i]);
        if (!onv_is_node(value->producer) || !is_cut_or_quotient(value->name) ||
            is_in(model, names, value->name, IS_CALL))
            continue;
        *reader = onv_model_node(model, value->producer);
        *dropped = value->name;
    }
    return ONV_OK;
}

onv_status onv_rebatch_find_dropped(onv_driver *driver, const char **dropped,
                                    const onv_node **reader)
{
    onv_ptr_map names = {0};
    *dropped = NULL;
    *reader = NULL;
    if (!driver->rebatch.has_roles) return ONV_OK;
    onv_status status = collect_names(driver, &names);
    if (status == ONV_OK) status = find_dropped(driver, &names, dropped, reader);
    onv_ptr_map_cleanup(&names);
    return status;
}
