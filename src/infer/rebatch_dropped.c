/* Operations that an exporter dropped, as they change nothing at a batch of one: x[:n // 2], y / n.
 *
 * PyTorch's exporter notes the call that each node was. A slice or a quotient that a call has as an argument, or
 * that a result is named after, and that no node and no value of the graph is, was dropped, or merged with an equal one.
 */
#include <string.h>

#include "base/fail.h"
#include "infer/rebatch.h"
#include "load/fields.h"

enum { IS_VALUE = 1, IS_CALL = 2, ONE_READER = 4, MAX_READERS = 1000000 };

/* The map has bits by name, and above them how many calls have it as an argument. */
static bool add_name(onv_model *model, onv_ptr_map *names, const char *name, uint32_t bit)
{
    uint32_t bits = 0;
    const char *key = onv_intern(&model->strings, name);
    if (key == NULL) return false;
    (void)onv_ptr_map_get(names, key, &bits);
    return onv_ptr_map_set(names, key, bits | bit);
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

static const char *arguments_of(const onv_node *node)
{
    return node->call != NULL ? strstr(node->call, ONV_NOTE_ARGS) : NULL;
}

/* Nodes of one call have it all, one after the other. */
static bool count_readers(onv_model *model, onv_ptr_map *names)
{
    const char *before = NULL;
    for (size_t i = 0; i < model->nodes.count; i++) {
        const onv_node *node = &model->nodes.at[i];
        const char *at = arguments_of(node);
        char name[64];
        if (at == NULL || (before != NULL && node->source_op == before)) continue;
        before = node->source_op;
        while (next_argument(&at, name, sizeof name)) {
            uint32_t found = 0;
            const char *key = onv_intern(&model->strings, name);
            if (key == NULL) return false;
            (void)onv_ptr_map_get(names, key, &found);
            if (found / ONE_READER < MAX_READERS &&
                !onv_ptr_map_set(names, key, found + ONE_READER))
                return false;
        }
    }
    return true;
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

/* "%slice_70 : [num_users=1] = ...": how many calls read it in the network. */
static uint32_t readers_noted(const char *call)
{
    static const char mark[] = "[num_users=";
    const char *at = call != NULL ? strstr(call, mark) : NULL;
    uint32_t n = 0;
    if (at == NULL) return 0;
    for (at += sizeof mark - 1; *at >= '0' && *at <= '9' && n < MAX_READERS; at++)
        n = 10 * n + (uint32_t)(*at - '0');
    return n;
}

/* An equal call stands for the one that is missing: all that read it in the network still name it, so that
 * what reads it beside them reads another call. */
static bool is_merged(const onv_driver *driver, const onv_ptr_map *names, const onv_node *node)
{
    const onv_model *model = driver->model;
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        uint32_t found = 0;
        if (!onv_is_value(node->inputs[k])) continue;
        onv_node_id producer = onv_model_value(model, node->inputs[k])->producer;
        const onv_node *from = onv_is_node(producer) ? onv_model_node(model, producer) : NULL;
        if (from == NULL || from->source_op == NULL || !is_cut_or_quotient(from->source_op))
            continue;
        uint32_t readers = readers_noted(from->call);
        if (readers > 0 && onv_ptr_map_get(names, from->source_op, &found) &&
            found / ONE_READER == readers)
            return true;
    }
    return false;
}

static onv_status find_argument(onv_driver *driver, const onv_ptr_map *names, const onv_node *node,
                                const char **dropped)
{
    char name[64];
    const char *at = arguments_of(node);
    if (node->n_outputs == 0 || !onv_is_value(node->outputs[0]) ||
        !onv_rebatch_carries(driver, &onv_model_value(driver->model, node->outputs[0])->type))
        return ONV_OK;
    if (at == NULL || is_merged(driver, names, node)) return ONV_OK;
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
    if (status == ONV_OK && !count_readers(driver->model, &names))
        status = onv_fail_memory(driver->err);
    if (status == ONV_OK) status = find_dropped(driver, &names, dropped, reader);
    onv_ptr_map_cleanup(&names);
    return status;
}
