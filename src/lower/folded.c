/* What the notes of constants tell of the parameters that the exporter computed them of. It lists each value that went into
 * a constant: parameters and buffers by their names, and results by those of PyTorch's calls. */
#include <stdio.h>
#include <string.h>

#include "base/quota.h"
#include "lower/lowering.h"
#include "lower/weight_place.h"

/* Longer names are of no call and of no parameter. */
enum { MOST_NAME = 1024 };

/* "['rope.freqs', 'select']": the next name; NULL: there is none. */
const char *onv_folded_next(const char **at, size_t *length)
{
    const char *name = *at != NULL ? strchr(*at, '\'') : NULL;
    if (name == NULL) return NULL;
    *length = strcspn(++name, "'");
    *at = name[*length] != '\0' ? name + *length + 1 : NULL;
    return name;
}

static bool copy_name(char *copy, const char *name, size_t length)
{
    if (length >= MOST_NAME) return false;
    snprintf(copy, MOST_NAME, "%.*s", (int)length, name);
    return true;
}

/* Whether there is a note, and work is left to read it. */
static bool has_note(const onv_value *value)
{
    enum { PER_WORK = 16 };
    return value->folded_from != NULL && onv_work(1 + strlen(value->folded_from) / PER_WORK);
}

bool onv_folded_has_call(const onv_value *value, const char *operation)
{
    char copy[MOST_NAME];
    if (!has_note(value)) return false;
    const char *at = value->folded_from, *name;
    for (size_t length; (name = onv_folded_next(&at, &length)) != NULL;)
        if (copy_name(copy, name, length) && onv_is_call_of(copy, operation)) return true;
    return false;
}

static bool is_buffer(const onv_lowering *l, const char *name)
{
    bool registered;
    return onv_is_listed_buffer(l, name, &registered) && registered;
}

/* What a call makes of a buffer. */
static void add_call(onv_folded_buffer *found, const char *call)
{
    static const char *const copies[] = {"repeat"};
    static const char *const parts[] = {"getitem", "unbind", "split",   "chunk", "narrow",
                                        "detach",  "alias",  "flatten", "to",    "type_as"};
    if (onv_has_made_up_name(call)) return;
    bool is_view =
        onv_weight_is_view(call) || onv_is_call_of_any(call, parts, sizeof parts / sizeof parts[0]);
    found->is_computed |= !is_view || onv_is_call_of_any(call, copies, 1);
    found->is_spread |= onv_is_call_of(call, "expand");
}

onv_folded_buffer onv_folded_buffer_of(const onv_lowering *l, const onv_value *value)
{
    char copy[MOST_NAME];
    onv_folded_buffer found = {.name = NULL};
    if (value->role != ONV_ROLE_NOT_NOTED || l->emit.model->listed.n_registered == 0 ||
        !has_note(value))
        return found;
    const char *at = value->folded_from, *name;
    uint32_t n = 0;
    for (size_t length; (name = onv_folded_next(&at, &length)) != NULL;) {
        if (!copy_name(copy, name, length)) return (onv_folded_buffer){.name = NULL};
        if (is_buffer(l, copy)) {
            n++;
            found.name = name;
            found.length = length;
        } else {
            add_call(&found, copy);
        }
    }
    add_call(&found, value->name);
    if (n != 1) found.name = NULL;
    return found;
}

size_t onv_folded_part_of(const onv_lowering *l, const onv_value *value)
{
    char copy[MOST_NAME];
    const char *at = value->folded_from, *name;
    size_t found = SIZE_MAX;
    if (value->tensor == NULL || value->role != ONV_ROLE_NOT_NOTED ||
        !onv_weight_is_view(value->name) || !has_note(value))
        return SIZE_MAX;
    for (size_t length; (name = onv_folded_next(&at, &length)) != NULL;) {
        if (!copy_name(copy, name, length)) return SIZE_MAX;
        size_t listed = onv_listed_find(l, copy);
        if (listed != SIZE_MAX ? found != SIZE_MAX
                               : !onv_weight_is_view(copy) && !onv_has_made_up_name(copy))
            return SIZE_MAX;
        if (listed != SIZE_MAX) found = listed;
    }
    return found;
}

/* Of a view whose parameter alone its own name would tell. */
bool onv_folded_computes(const onv_lowering *l, const onv_value *value)
{
    static const char *const others[] = {"getitem", "unbind", "split",  "chunk",
                                         "narrow",  "detach", "alias",  "to",
                                         "type_as", "t",      "flatten"};
    char copy[MOST_NAME];
    bool computes = false;
    if (!onv_weight_is_view(value->name) || !has_note(value)) return false;
    const char *at = value->folded_from, *name;
    for (size_t length; (name = onv_folded_next(&at, &length)) != NULL;) {
        if (!copy_name(copy, name, length)) return false;
        bool is_call = strchr(copy, '.') == NULL && onv_listed_find(l, copy) == SIZE_MAX &&
                       !is_buffer(l, copy);
        computes |= is_call && !onv_weight_is_view(copy) && !onv_has_made_up_name(copy) &&
                    !onv_is_call_of_any(copy, others, sizeof others / sizeof others[0]);
    }
    return computes;
}

size_t onv_folded_first_listed(const onv_lowering *l, const onv_value *value)
{
    char copy[MOST_NAME];
    size_t listed = SIZE_MAX;
    if (!has_note(value)) return SIZE_MAX;
    const char *at = value->folded_from, *name;
    for (size_t length; listed == SIZE_MAX && (name = onv_folded_next(&at, &length)) != NULL;)
        if (copy_name(copy, name, length)) listed = onv_listed_find(l, copy);
    return listed;
}

size_t onv_folded_only_name(const onv_lowering *l, const onv_value *value)
{
    char copy[MOST_NAME];
    const char *at = value->folded_from, *name;
    size_t found = SIZE_MAX;
    if (!has_note(value)) return SIZE_MAX;
    for (size_t length; (name = onv_folded_next(&at, &length)) != NULL;) {
        if (!copy_name(copy, name, length) || found != SIZE_MAX) return SIZE_MAX;
        found = onv_listed_find(l, copy);
        if (found == SIZE_MAX) return SIZE_MAX;
    }
    return found;
}

void onv_folded_name_parts(onv_lowering *l)
{
    for (size_t i = 0; i < l->weights.reads.count && l->emit.status == ONV_OK; i++) {
        onv_weight_read *read = &l->weights.reads.at[i];
        if (!onv_work(1)) l->emit.status = ONV_ERR_CANCELLED;
        if (read->parameter != NULL) continue;
        size_t listed = onv_folded_part_of(l, &l->emit.model->values.at[read->value]);
        if (listed != SIZE_MAX && !l->signature.explained[listed])
            read->parameter = l->signature.names[listed];
        read->is_part = read->parameter != NULL;
    }
    for (size_t i = 0; i < l->weights.reads.count; i++)
        if (l->weights.reads.at[i].is_part)
            l->signature.explained[onv_listed_find(l, l->weights.reads.at[i].parameter)] = true;
}

static const onv_node *producer_of(const onv_lowering *l, onv_value_id id)
{
    onv_node_id from =
        onv_is_value(id) ? onv_model_value(l->emit.model, id)->producer : ONV_NO_NODE;
    return onv_is_node(from) ? onv_model_node(l->emit.model, from) : NULL;
}

static bool is_one_of(const onv_node *node, const char *const *types, size_t n)
{
    for (size_t i = 0; node != NULL && i < n; i++)
        if (strcmp(node->op_type, types[i]) == 0) return true;
    return false;
}

/* A product of two results, scaled or not. */
static bool is_scores(const onv_lowering *l, onv_value_id id)
{
    static const char *const scales[] = {"Mul", "Div"};
    const onv_node *node = producer_of(l, id);
    if (is_one_of(node, scales, 2) && node->n_inputs == 2) node = producer_of(l, node->inputs[0]);
    return node != NULL && strcmp(node->op_type, "MatMul") == 0 && node->n_inputs == 2 &&
           producer_of(l, node->inputs[0]) != NULL && producer_of(l, node->inputs[1]) != NULL;
}

bool onv_folded_is_biases(const onv_lowering *l, onv_value_id id)
{
    static const char *const views[] = {"Unsqueeze", "Squeeze", "Expand", "Reshape"};
    enum { MOST_VIEWS = 4 };
    const onv_value *value = onv_model_value(l->emit.model, id);
    if (value->type.rank < 3 || !onv_weight_is_view(value->name) ||
        !onv_folded_has_call(value, "embedding"))
        return false;
    for (uint32_t n = 0; n <= MOST_VIEWS; n++) {
        onv_node_id user = l->fusions.user[id.index];
        const onv_node *node = onv_is_node(user) ? onv_model_node(l->emit.model, user) : NULL;
        if (node == NULL || node->n_outputs == 0) return false;
        if (strcmp(node->op_type, "Add") == 0 && node->n_inputs == 2)
            return is_scores(l, node->inputs[node->inputs[0].index == id.index]);
        if (!is_one_of(node, views, sizeof views / sizeof views[0])) return false;
        id = node->outputs[0];
    }
    return false;
}
