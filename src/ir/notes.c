#include "ir/notes.h"

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

bool onv_words_next_quoted(const char **list, onv_words *element)
{
    const char *begin = *list + strcspn(*list, "'\"");
    const char *end = *begin != '\0' ? strchr(begin + 1, *begin) : NULL;
    if (end == NULL) return false;
    *element = (onv_words){begin + 1, (size_t)(end - begin - 1)};
    *list = end + 1;
    return true;
}

bool onv_node_is_noted(const onv_node *node)
{
    return onv_noted(node)->aten_op[0] != '\0';
}

/* Is it one of the names? */
static bool is_any(const char *name, size_t length, const char *names)
{
    for (size_t n; *names != '\0'; names += n + (names[n] == ' ')) {
        n = strcspn(names, " ");
        if (n == length && memcmp(names, name, n) == 0) return true;
    }
    return false;
}

bool onv_node_is_aten(const onv_node *node, const char *names)
{
    static const char prefix[] = "aten.";
    const char *op = onv_noted(node)->aten_op;
    if (strncmp(op, prefix, sizeof prefix - 1) != 0) return false;
    op += sizeof prefix - 1;
    return is_any(op, strcspn(op, "."), names);
}

bool onv_node_tells_truth(const onv_node *node)
{
    return onv_node_is_aten(node, "any all");
}

bool onv_node_is_recurrent(const onv_node *node)
{
    return ONV_IS_ANY(node, ONV_OP_LSTM, ONV_OP_GRU, ONV_OP_RNN);
}

/* "mul_3" is a call of "mul", as "mul" is. */
bool onv_is_call_of(const char *name, const char *operations)
{
    size_t length = strlen(name), end = length;
    while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9') end--;
    bool is_numbered = end > 0 && end < length && name[end - 1] == '_';
    return is_any(name, length, operations) || (is_numbered && is_any(name, end - 1, operations));
}
