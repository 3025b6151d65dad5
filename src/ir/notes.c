#include "ir/notes.h"

#include <string.h>

/* One text, as readers compare places. */
static const char nothing[] = "";

const onv_notes onv_no_notes = {.scope = nothing,
                                .source_op = nothing,
                                .module_class = nothing,
                                .aten_op = nothing,
                                .calls = nothing,
                                .call_classes = nothing,
                                .statements = nothing,
                                .function = nothing};

bool onv_node_is_noted(const onv_node *node)
{
    return onv_noted(node)->aten_op[0] != '\0';
}

bool onv_node_is_aten(const onv_node *node, const char *name)
{
    static const char prefix[] = "aten.";
    size_t length = strlen(name);
    const char *op = onv_noted(node)->aten_op;
    if (strncmp(op, prefix, sizeof prefix - 1) != 0) return false;
    op += sizeof prefix - 1;
    return strncmp(op, name, length) == 0 && (op[length] == '.' || op[length] == '\0');
}

bool onv_node_is_any_aten(const onv_node *node, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (onv_node_is_aten(node, names[i])) return true;
    return false;
}

bool onv_node_tells_truth(const onv_node *node)
{
    static const char *const names[] = {"any", "all"};
    return onv_node_is_any_aten(node, names, sizeof names / sizeof names[0]);
}

bool onv_node_is_recurrent(const onv_node *node)
{
    return ONV_IS_ANY(node, ONV_OP_LSTM, ONV_OP_GRU, ONV_OP_RNN);
}

bool onv_is_call_of(const char *name, const char *operation)
{
    size_t length = strlen(operation);
    if (strncmp(name, operation, length) != 0) return false;
    name += length;
    if (*name == '\0') return true;
    return *name == '_' && name[1] != '\0' && name[1 + strspn(name + 1, "0123456789")] == '\0';
}

bool onv_is_call_of_any(const char *name, const char *const *operations, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (onv_is_call_of(name, operations[i])) return true;
    return false;
}
