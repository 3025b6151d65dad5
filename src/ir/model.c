#include "ir/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void onv_model_init(onv_model *model, size_t arena_limit_bytes)
{
    *model = (onv_model){.path = "", .producer = "", .most_known = ONV_KNOWN_MAX_ELEMS};
    onv_arena_init(&model->arena, arena_limit_bytes);
    onv_strings_init(&model->strings, &model->arena);
    onv_dims_init(&model->dims, &model->arena);
}

void onv_model_cleanup(onv_model *model)
{
    if (model->source_close != NULL) model->source_close(model->source);
    onv_vec_cleanup(&model->opsets);
    onv_vec_cleanup(&model->values);
    onv_vec_cleanup(&model->nodes);
    onv_vec_cleanup(&model->graphs);
    onv_vec_cleanup(&model->diags);
    onv_dims_cleanup(&model->dims);
    onv_strings_cleanup(&model->strings);
    onv_arena_cleanup(&model->arena);
    model->source = NULL;
    model->source_close = NULL;
}

const onv_attr *onv_node_attr(const onv_node *node, const char *name)
{
    for (uint32_t i = 0; i < node->n_attrs; i++) {
        const char *own = node->attrs[i].name;
        if (own[0] == name[0] && strcmp(own, name) == 0) return &node->attrs[i];
    }
    return NULL;
}

int64_t onv_node_int(const onv_node *node, const char *name, int64_t fallback)
{
    const onv_attr *attr = onv_node_attr(node, name);
    return attr != NULL && attr->kind == ONV_ATTR_INT ? attr->i : fallback;
}

int64_t onv_node_axis(const onv_node *node, int64_t fallback, int64_t rank)
{
    int64_t axis = onv_node_int(node, "axis", fallback);
    if (axis < 0) axis += rank;
    return axis >= 0 && axis < rank ? axis : -1;
}

int64_t onv_node_int_at(const onv_node *node, const char *name, uint32_t i, int64_t fallback)
{
    return onv_attr_int_at(onv_node_attr(node, name), i, fallback);
}

void onv_model_diag(onv_model *model, onv_severity severity, const char *code, const char *node,
                    const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (model->diags.count >= ONV_MAX_DIAGS) {
        model->dropped_diags++;
        return;
    }
    const char *copy = onv_arena_strndup(&model->arena, message, strlen(message));
    onv_diag diag = {.severity = severity, .code = code, .node = node, .message = copy};
    if (copy == NULL || !onv_vec_push(&model->diags, diag)) model->dropped_diags++;
}
