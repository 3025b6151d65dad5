#include "ckpt/names.h"

#include <ctype.h>
#include <string.h>

static const char *node_name(const onv_model *model, const onv_eager_op *op)
{
    if (!onv_is_node(op->node)) return op->name;
    const onv_node *node = onv_model_node(model, op->node);
    if (node->name[0] != '\0') return node->name;
    for (uint32_t k = 0; k < node->n_outputs; k++)
        if (onv_is_value(node->outputs[k])) return onv_model_value(model, node->outputs[k])->name;
    return node->op_type;
}

/* The outermost module around operation `at` that begins there and ends inside the segment. */
static const onv_module_span *whole_module(const onv_scopes *scopes, uint32_t at, uint32_t last_op)
{
    const char *path = scopes->path_of[at];
    for (uint32_t end = 0; path[end] != '\0'; end += path[end] == '.') {
        end += (uint32_t)strcspn(path + end, ".");
        const onv_module_span *span = onv_scopes_module(scopes, path, end);
        if (span != NULL && span->first_op == at && span->last_op <= last_op) return span;
    }
    return NULL;
}

/* Names of modules end up in code: only such that are names there too. */
static bool is_plain(const char *path, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)path[i]) && path[i] != '_' && path[i] != '.') return false;
    return true;
}

onv_status onv_segment_name(onv_model *model, const onv_eager *eager, const onv_scopes *scopes,
                            onv_tape_segment segment, onv_segment_names *names, onv_error *err)
{
    uint32_t n = 0;
    const char *list = "";
    *names = (onv_segment_names){.first = node_name(model, &eager->ops.at[segment.first_op]),
                                 .last = node_name(model, &eager->ops.at[segment.last_op])};
    for (uint32_t i = segment.first_op; i <= segment.last_op; i++) {
        const char *path = scopes->path_of[i];
        if (path == NULL) continue;
        const onv_module_span *span = whole_module(scopes, i, segment.last_op);
        if (span == NULL || !is_plain(path, span->length)) return ONV_OK;
        list = onv_arena_printf(&model->arena, "%s%s%.*s", list, n > 0 ? " " : "",
                                (int)span->length, path);
        if (list == NULL) return onv_fail_memory(err);
        n++;
        i = span->last_op;
    }
    if (n > 0) names->modules = list;
    names->is_one = n == 1;
    return ONV_OK;
}
