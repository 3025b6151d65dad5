/* `x[:, t] = y`: PyTorch copies y into a view of x. Exports have no writes: the exporter turns each into a call that
 * gives x anew, select_scatter or slice_scatter, one for each of the views that lead to the part that is written. */
#include <string.h>

#include "fuse/find.h"

enum { MAX_VIEWS = 8 }; /* between what is written into and the part */

static bool is_write(const onv_node *node)
{
    return node != NULL &&
           (onv_node_is_aten(node, "select_scatter") || onv_node_is_aten(node, "slice_scatter"));
}

static bool is_same_write(const onv_node *a, const onv_node *b)
{
    return is_write(b) && a->source_op == b->source_op && a->scope == b->scope;
}

/* One call: what it is given, and its last node. */
typedef struct write {
    onv_value_id base, part, result;
    const onv_node *last, *reader; /* that gives the result; that takes the base */
} write;

/* What the nodes that the call begins with, which move dims, were given; takes them. */
static onv_value_id take_moves(onv_finder *s, onv_group *g, const onv_node *scatter,
                               onv_value_id value, const onv_node **reader)
{
    *reader = scatter;
    const onv_node *from = onv_model_maker(s->model, value);
    for (uint32_t k = 0; k < MAX_VIEWS && from != NULL && is_same_write(scatter, from); k++) {
        bool moves = from->code == ONV_OP_Transpose || from->code == ONV_OP_Unsqueeze ||
                     from->code == ONV_OP_Expand;
        if (!moves || s->f->n_uses[value.index] != 1 || !onv_find_take(s, g, from)) break;
        *reader = from;
        value = from->inputs[0];
        from = onv_model_maker(s->model, value);
    }
    return value;
}

/* The call whose scatter that is. */
static bool take_write(onv_finder *s, onv_group *g, const onv_node *scatter, write *w)
{
    if (!onv_node_scatters(scatter) || scatter->n_inputs < 3 || !onv_find_take(s, g, scatter))
        return false;
    const onv_node *of_part;
    w->base = take_moves(s, g, scatter, scatter->inputs[0], &w->reader);
    w->part = take_moves(s, g, scatter, scatter->inputs[2], &of_part);
    w->last = scatter;
    const onv_node *back = onv_find_reader(s, scatter->outputs[0], ONV_OP_Transpose);
    if (back != NULL && is_same_write(scatter, back) && onv_find_take(s, g, back)) w->last = back;
    w->result = w->last->outputs[0];
    return true;
}

static bool is_view_of(const onv_finder *s, onv_value_id view, onv_value_id base)
{
    static const uint16_t views[] = {ONV_OP_Gather, ONV_OP_Slice, ONV_OP_Unsqueeze, ONV_OP_Squeeze,
                                     ONV_OP_Reshape};
    for (uint32_t k = 0; k < MAX_VIEWS; k++) {
        const onv_node *from = NULL;
        for (size_t i = 0; i < sizeof views / sizeof views[0] && from == NULL; i++)
            from = onv_find_producer(s, view, views[i]);
        if (from == NULL) return false;
        view = from->inputs[0];
        if (onv_find_same(view, base)) return true;
    }
    return false;
}

/* The scatter of the call that takes the value for its part, and nothing else does. */
static const onv_node *next_scatter(const onv_finder *s, onv_value_id part)
{
    for (uint32_t k = 0; k < MAX_VIEWS && s->f->n_uses[part.index] == 1; k++) {
        const onv_node *reader = onv_find_node(s, s->f->user[part.index]);
        if (!is_write(reader)) return NULL;
        if (onv_node_scatters(reader))
            return reader->n_inputs > 2 && onv_find_same(reader->inputs[2], part) ? reader : NULL;
        part = reader->outputs[0];
        if (!onv_is_value(part)) return NULL;
    }
    return NULL;
}

/* From the first scatter on. */
void onv_find_write(onv_finder *s, const onv_node *scatter)
{
    onv_group g = {0};
    write w, outer;
    if (!is_write(scatter) || !take_write(s, &g, scatter, &w)) return;
    onv_value_id part = w.part;
    for (uint32_t k = 0; k < MAX_VIEWS; k++) {
        const onv_node *next = next_scatter(s, w.result);
        onv_group before = g;
        if (next == NULL || !take_write(s, &g, next, &outer)) break;
        if (!onv_find_same(outer.part, w.result) || !is_view_of(s, w.base, outer.base)) {
            g = before;
            break;
        }
        w = outer;
    }
    onv_fusion fusion = onv_find_unary(s, ONV_FUSION_WRITE, w.base, w.last);
    fusion.key = part;
    fusion.first = onv_find_id(s, w.reader);
    onv_find_publish(s, &g, fusion);
}
