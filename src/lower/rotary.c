/* Rotary embeddings, as exports write them: which constants are their tables of cosines and sines. */
#include <string.h>

#include "lower/lowering.h"

static const onv_node *producer(const onv_lowering *l, onv_value_id id, const char *op_type)
{
    if (!onv_is_value(id)) return NULL;
    onv_node_id from = onv_model_value(l->emit.model, id)->producer;
    const onv_node *node = onv_is_node(from) ? onv_model_node(l->emit.model, from) : NULL;
    return node != NULL && strcmp(node->op_type, op_type) == 0 ? node : NULL;
}

/* Before a view of that kind, if it is one. */
static onv_value_id before(const onv_lowering *l, onv_value_id id, const char *view)
{
    const onv_node *node = producer(l, id, view);
    return node != NULL && node->n_inputs > 0 ? node->inputs[0] : id;
}

/* cat(-x2, x1) times something; or stack(-x2, x1) of pairs that are neighbours, made one dim again. */
static bool is_half_turned(const onv_lowering *l, const onv_node *mul)
{
    for (uint32_t k = 0; k < mul->n_inputs; k++) {
        const onv_node *cat = producer(l, before(l, mul->inputs[k], "Reshape"), "Concat");
        if (cat != NULL && cat->n_inputs == 2 &&
            producer(l, before(l, cat->inputs[0], "Unsqueeze"), "Neg") != NULL)
            return true;
    }
    return false;
}

/* The tensor that this is a part of, or another view. */
static onv_value_id whole_of(const onv_lowering *l, onv_value_id id)
{
    enum { MOST_VIEWS = 12 };
    static const char *const views[] = {"Gather",  "Reshape",   "Slice",    "Split",
                                        "Squeeze", "Transpose", "Unsqueeze"};
    for (uint32_t n = 0; n < MOST_VIEWS; n++) {
        onv_value_id before_it = id;
        for (size_t i = 0; i < sizeof views / sizeof views[0]; i++)
            before_it = before(l, before_it, views[i]);
        if (!onv_is_value(before_it) || before_it.index == id.index) break;
        id = before_it;
    }
    return id;
}

static bool is_constant(const onv_lowering *l, onv_value_id id)
{
    return onv_is_value(id) && onv_value_is_weight(onv_model_value(l->emit.model, id));
}

/* x1 * cos - x2 * sin, where x1 and x2 are parts of one tensor. */
static void mark_pairs(const onv_lowering *l, const onv_node *const mul[2], bool *is_table)
{
    for (uint32_t k = 0; k < 4; k++) {
        onv_value_id x[2], table[2];
        for (uint32_t i = 0; i < 2; i++) {
            uint32_t at = i == 0 ? k / 2 : k % 2;
            x[i] = whole_of(l, mul[i]->inputs[at]);
            table[i] = whole_of(l, mul[i]->inputs[1 - at]);
        }
        if (!onv_is_value(x[0]) || x[0].index != x[1].index || is_constant(l, x[0]) ||
            !is_constant(l, table[0]) || !is_constant(l, table[1]))
            continue;
        is_table[table[0].index] = is_table[table[1].index] = true;
    }
}

void onv_rotary_mark(const onv_lowering *l, bool *is_table)
{
    for (size_t i = 0; i < l->emit.model->nodes.count; i++) {
        const onv_node *add = &l->emit.model->nodes.at[i];
        bool subtracts = strcmp(add->op_type, "Sub") == 0;
        if ((strcmp(add->op_type, "Add") != 0 && !subtracts) || add->n_inputs != 2) continue;
        const onv_node *mul[2] = {producer(l, add->inputs[0], "Mul"),
                                  producer(l, add->inputs[1], "Mul")};
        if (mul[0] == NULL || mul[1] == NULL || mul[0]->n_inputs != 2 || mul[1]->n_inputs != 2)
            continue;
        if (subtracts) mark_pairs(l, mul, is_table);
        if (subtracts || (!is_half_turned(l, mul[0]) && !is_half_turned(l, mul[1]))) continue;
        for (uint32_t k = 0; k < 4; k++) {
            onv_value_id id = mul[k / 2]->inputs[k % 2];
            if (onv_is_value(id)) is_table[id.index] = true;
        }
    }
}
