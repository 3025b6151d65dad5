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

/* Whether the operation is known to be of the module that the first `length` characters name. */
static bool is_of(const onv_scopes *scopes, uint32_t op, const char *path, size_t length)
{
    const char *other = scopes->path_of[op];
    return other != NULL && strncmp(other, path, length) == 0 &&
           (other[length] == '\0' || other[length] == '.');
}

/* The outermost module around operation `at` that begins there and ends inside the segment: the
 * length of its path, and its last operation. 0: none. */
static size_t whole_module(const onv_eager *eager, const onv_scopes *scopes, uint32_t at,
                           uint32_t last_op, uint32_t *last)
{
    const char *path = scopes->path_of[at];
    for (size_t length = strcspn(path, "."); length > 0;) {
        uint32_t before = at, after = at + 1;
        *last = at;
        for (; after < eager->first_loss_op; after++) {
            if (is_of(scopes, after, path, length))
                *last = after;
            else if (scopes->path_of[after] != NULL)
                break;
        }
        while (before > 0 && scopes->path_of[before - 1] == NULL) before--;
        bool begins = before == 0 || !is_of(scopes, before - 1, path, length);
        if (begins && *last <= last_op) return length;
        if (path[length] == '\0') return 0;
        length += 1 + strcspn(path + length + 1, ".");
    }
    return 0;
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
        uint32_t last = i;
        if (path == NULL) continue;
        size_t length = whole_module(eager, scopes, i, segment.last_op, &last);
        if (length == 0 || !is_plain(path, length)) return ONV_OK;
        list =
            onv_arena_printf(&model->arena, "%s%s%.*s", list, n > 0 ? " " : "", (int)length, path);
        if (list == NULL) return onv_fail_memory(err);
        n++;
        i = last;
    }
    if (n > 0) names->modules = list;
    names->is_one = n == 1;
    return ONV_OK;
}
