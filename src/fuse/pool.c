/* Adaptive pooling to sizes that do not divide the image: the exporter looks up the places of all windows, and sums them one
 * after the other, as many nodes as the largest window has places. */
#include <string.h>

#include "fuse/find.h"
#include "ir/notes.h"

enum { MAX_PARTS = 4096 };

typedef struct parts {
    ONV_VEC(onv_node_id) at;
    uint32_t mark;     /* of_node of those that were found */
    uint64_t n_inside; /* reads of one by another */
    bool has_sum;
    const onv_node *look_up;
} parts;

static bool is_of_module(const onv_node *node)
{
    static const char class[] = "torch.nn.modules.pooling.AdaptiveAvgPool";
    return strncmp(onv_noted(node)->module_class, class, sizeof class - 1) == 0;
}

/* Without a module of its own: sums of places by the size of their window. */
static bool is_of_function(const onv_node *node)
{
    return onv_node_is_aten(node, "index masked_fill select add div");
}

static bool is_part(const onv_node *node, const onv_node *last)
{
    bool is_mean = node == last && node != NULL && onv_node_is_aten(node, "mean");
    return node != NULL && onv_noted(node)->scope == onv_noted(last)->scope &&
           node->graph.index == last->graph.index &&
           (is_of_module(last) ? is_of_module(node) : is_mean || is_of_function(node));
}

static bool add(onv_finder *s, parts *p, const onv_node *node)
{
    onv_node_id id = onv_find_id(s, node);
    uint32_t *of = &s->f->of_node[id.index];
    if (*of == p->mark) return true;
    if (*of != 0 || p->at.count == MAX_PARTS) return false;
    if (!onv_vec_push(&p->at, id)) {
        s->failed = true;
        return false;
    }
    *of = p->mark;
    return true;
}

/* What a part reads that is no constant, back to the look-up, of which there is one. */
static bool follow(onv_finder *s, parts *p, const onv_node *node, const onv_node *last)
{
    if (node->code == ONV_OP_GatherND) {
        bool is_first = p->look_up == NULL;
        p->look_up = node;
        return is_first;
    }
    p->has_sum |= node->code == ONV_OP_Add;
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        if (!onv_is_value(node->inputs[k])) continue;
        const onv_value *value = onv_model_value(s->model, node->inputs[k]);
        if (onv_value_is_weight(value) || !onv_dtype_is_float((onv_dtype)value->type.dtype))
            continue;
        const onv_node *from = onv_find_node(s, value->producer);
        if (!is_part(from, last) || !add(s, p, from)) return false;
        p->n_inside++;
    }
    return true;
}

/* Nothing outside reads what is inside. */
static bool is_closed(const onv_finder *s, const parts *p, const onv_node *last)
{
    uint64_t uses = 0;
    for (size_t i = 0; i < p->at.count; i++)
        if (onv_find_node(s, p->at.at[i]) != last) uses += onv_find_n_reads(s, p->at.at[i]);
    return uses == p->n_inside;
}

static bool gather(onv_finder *s, parts *p, const onv_node *last)
{
    if (!add(s, p, last)) return false;
    for (size_t i = 0; i < p->at.count; i++)
        if (!follow(s, p, onv_find_node(s, p->at.at[i]), last)) return false;
    return p->look_up != NULL && p->look_up->n_inputs > 1 && (p->has_sum || is_of_module(last)) &&
           is_closed(s, p, last);
}

/* The places of an image are indexed with its channels moved last, once for all poolings of it. */
static onv_value_id pooled(const onv_finder *s, const onv_node *look_up)
{
    const onv_node *moved = onv_find_producer(s, look_up->inputs[0], ONV_OP_Transpose);
    return moved != NULL ? moved->inputs[0] : look_up->inputs[0];
}

void onv_find_adaptive_pool(onv_finder *s, const onv_node *last)
{
    parts p = {.mark = (uint32_t)s->at.count + 1};
    if (!is_part(last, last)) return;
    bool found = gather(s, &p, last);
    if (found) {
        onv_value_id x = pooled(s, p.look_up);
        onv_group none = {0};
        onv_find_publish(s, &none, onv_find_unary(s, ONV_FUSION_ADAPTIVE_POOL, x, last));
    }
    for (size_t i = 0; i < p.at.count && (!found || s->failed); i++)
        s->f->of_node[p.at.at[i].index] = 0;
    onv_vec_cleanup(&p.at);
}
