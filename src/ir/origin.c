#include "ir/origin.h"

#include <string.h>

#include "ir/notes.h"

/* A name without its last part; no path where it has one part. */
static onv_origin around(const char *name, char separator)
{
    const char *last = strrchr(name, separator);
    if (last == NULL) return (onv_origin){.path = NULL};
    return (onv_origin){name, (size_t)(last - name), separator};
}

static onv_origin of_weights(const onv_model *model, const onv_node *node)
{
    onv_origin origin = {.path = NULL};
    for (uint32_t i = 0; i < node->n_inputs && origin.path == NULL; i++) {
        if (!onv_is_value(node->inputs[i])) continue;
        const onv_value *value = onv_model_value(model, node->inputs[i]);
        if (onv_value_is_weight(value)) origin = around(value->name, '.');
    }
    return origin;
}

/* What stands behind `prefix` of the path and a separator; NULL where it begins otherwise. */
static const char *behind(const onv_origin *origin, const char *prefix, size_t length)
{
    if (length == 0) return origin->path;
    if (origin->length <= length || origin->path[length] != '.') return NULL;
    return memcmp(origin->path, prefix, length) == 0 ? origin->path + length + 1 : NULL;
}

/* Whether the path is that module, lies in it, or beside it. */
static bool is_near(const onv_origin *origin, const char *module)
{
    const char *last = strrchr(module, '.');
    const char *beside = behind(origin, module, last != NULL ? (size_t)(last - module) : 0);
    if (behind(origin, module, strlen(module)) != NULL) return true;
    if (beside == NULL) return false;
    return memchr(beside, '.', origin->length - (size_t)(beside - origin->path)) == NULL;
}

/* A convolution with the note of the norm that the exporter folded into it: its weight is elsewhere, in a Sequential, say, that
 * the norm stands behind. */
static bool is_before_norm(const onv_node *node, const onv_origin *origin)
{
    if (node->code != ONV_OP_Conv) return false;
    const char *last = strrchr(onv_noted(node)->scope, '.');
    size_t parent = last != NULL ? (size_t)(last - onv_noted(node)->scope) : 0;
    return strstr(onv_noted(node)->source_op, "batch_norm") != NULL &&
           behind(origin, onv_noted(node)->scope, parent) != NULL;
}

onv_origin onv_node_origin(const onv_model *model, const onv_node *node)
{
    onv_origin origin = around(node->name, '/');
    if (origin.path != NULL) return origin;
    bool is_noted = onv_noted(node)->scope[0] != '\0';
    origin = of_weights(model, node);
    if (origin.path != NULL &&
        (!is_noted || is_near(&origin, onv_noted(node)->scope) || is_before_norm(node, &origin)))
        return origin;
    if (is_noted) return (onv_origin){onv_noted(node)->scope, strlen(onv_noted(node)->scope), '.'};
    return around(node->name, '.');
}
