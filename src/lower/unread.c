/* What the last of equal layers computes and nothing reads.
 *
 *     for layer in self.layers:
 *         nodes, edges = layer(nodes, edges)
 *     return self.head(nodes)
 *
 * The exporter leaves out what leads to the edges of the last layer alone; PyTorch runs it. It is told by parameters of
 * that layer that are listed and have no tensor, where the layer before has them ("layers.3.norm.weight"). The nodes of both
 * layers are laid side by side: those that the last one lacks run again for it, on its own tensors, each behind the
 * node of its layer that they follow. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "ir/path.h"
#include "lower/lowering.h"

enum { MAX_PATH = 1024, MAX_LAYERS = 64, MAX_BEFORE = 8, MAX_NODES = 1 << 14 };
#define NO_VALUE UINT32_MAX

typedef struct nodes {
    uint32_t *at;
    size_t count;
} nodes;

/* For all pairs of layers, one after another: by value, and by node. */
typedef struct room {
    uint32_t *stands, *values, *lacks, *has;
    bool *is_made, *is_read, *is_read_unread;
} room;

/* Two layers, and what stands for what. */
typedef struct pairing {
    onv_lowering *l;
    const char *of, *like; /* modules: the one that lacks nodes, and the one that has them */
    nodes lacks, has;
    uint32_t *stands; /* by value of `like`: 1 + the value of `of` */
    bool *is_made;    /* by value: by a node of `like` */
    uint32_t *values; /* of which either is set */
    size_t n_values, first_item, first_value;
} pairing;

static bool list_nodes(onv_lowering *l, const char *module, nodes *found)
{
    size_t n = l->emit.model->nodes.count;
    if (!onv_work(n)) return false;
    for (uint32_t i = 0; i < n; i++) {
        const onv_node *node = &l->emit.model->nodes.at[i];
        if (node->graph.index == 0 && onv_path_is_of(node->scope, module))
            found->at[found->count++] = i;
    }
    return true;
}

/* --- Side by side ------------------------------------------------------------------------------- */

static bool is_alike(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static const char *without_first(const char *statements)
{
    const char *end = statements != NULL ? strchr(statements, ';') : NULL;
    return end != NULL ? end + 1 : statements;
}

static bool same_sizes(const onv_lowering *l, onv_value_id a, onv_value_id b)
{
    if (!onv_is_value(a) || !onv_is_value(b)) return onv_is_value(a) == onv_is_value(b);
    const onv_type *x = &onv_model_value(l->emit.model, a)->type,
                   *y = &onv_model_value(l->emit.model, b)->type;
    if (!onv_type_has_rank(x) || !onv_type_has_rank(y) || x->rank != y->rank) return false;
    for (int16_t i = 0; i < x->rank; i++)
        if (x->dims[i].raw != y->dims[i].raw) return false;
    return true;
}

static bool is_constant(const onv_lowering *l, onv_value_id id)
{
    return !onv_is_value(id) || onv_value_is_weight(onv_model_value(l->emit.model, id));
}

/* Could the operand of the one be that of the other? */
static bool may_stand(const pairing *p, onv_value_id like, onv_value_id of)
{
    if (is_constant(p->l, like) || is_constant(p->l, of))
        return is_constant(p->l, like) && is_constant(p->l, of);
    uint32_t known = p->stands[like.index];
    if (known != 0) return known - 1 == of.index;
    return !p->is_made[like.index] || like.index == of.index; /* the exporter merged both */
}

static bool matches(const pairing *p, const onv_node *like, const onv_node *of)
{
    if (strcmp(like->op_type, of->op_type) != 0 || like->n_inputs != of->n_inputs ||
        like->n_outputs != of->n_outputs || !is_alike(like->aten_op, of->aten_op) ||
        strcmp(like->scope + strlen(p->like), of->scope + strlen(p->of)) != 0 ||
        !is_alike(without_first(like->statements), without_first(of->statements)))
        return false;
    for (uint32_t k = 0; k < like->n_inputs; k++)
        if (!may_stand(p, like->inputs[k], of->inputs[k])) return false;
    return true;
}

/* Its operands are as large in the one layer as in the other, so that its results are. */
static bool is_as_large(const pairing *p, const onv_node *like)
{
    for (uint32_t k = 0; k < like->n_inputs; k++) {
        onv_value_id id = like->inputs[k];
        uint32_t stands = onv_is_value(id) ? p->stands[id.index] : 0;
        if (stands != 0 && !same_sizes(p->l, id, (onv_value_id){stands - 1})) return false;
    }
    return true;
}

static void note_value(pairing *p, onv_value_id like, uint32_t stands)
{
    if (p->stands[like.index] == 0 && !p->is_made[like.index])
        p->values[p->n_values++] = like.index;
    if (stands != 0) p->stands[like.index] = stands;
}

static void note_match(pairing *p, const onv_node *like, const onv_node *of)
{
    for (uint32_t k = 0; k < like->n_inputs; k++)
        if (!is_constant(p->l, like->inputs[k]))
            note_value(p, like->inputs[k], of->inputs[k].index + 1);
    for (uint32_t k = 0; k < like->n_outputs; k++)
        if (onv_is_value(like->outputs[k]))
            note_value(p, like->outputs[k], of->outputs[k].index + 1);
}

static bool add_item(pairing *p, uint32_t node, uint32_t after)
{
    uint32_t fusion = p->l->fusions.of_node[after];
    if (fusion != 0) after = p->l->fusions.at.at[fusion - 1].last.index;
    onv_unread item = {.node = {node}, .after = {after}};
    return onv_vec_push(&p->l->unread.runs, item);
}

/* True where all nodes of the one are nodes of the other, in their order, and some are missing. */
static bool lay_side_by_side(pairing *p)
{
    const onv_model *model = p->l->emit.model;
    size_t next = 0;
    for (size_t i = 0; i < p->has.count; i++) {
        const onv_node *like = &model->nodes.at[p->has.at[i]];
        const onv_node *of = next < p->lacks.count ? &model->nodes.at[p->lacks.at[next]] : NULL;
        if (of != NULL && matches(p, like, of)) {
            note_match(p, like, of);
            next++;
        } else {
            /* Those that come first run before its first node. */
            uint32_t after = next > 0 ? p->lacks.at[next - 1] : p->lacks.at[0] - 1;
            if (p->lacks.at[0] == 0) return false;
            if (!add_item(p, p->has.at[i], after)) {
                p->l->emit.status = onv_fail_memory(p->l->emit.err);
                return false;
            }
        }
        for (uint32_t k = 0; k < like->n_outputs; k++) {
            if (!onv_is_value(like->outputs[k])) continue;
            note_value(p, like->outputs[k], 0);
            p->is_made[like->outputs[k].index] = true;
        }
    }
    return next == p->lacks.count && p->l->unread.runs.count > p->first_item;
}

/* Calls that both layers make alike are merged, and in one of them alone: they are no unread ones, nor is what leads to them
 * only. */
static void leave_out_merged(pairing *p, bool *is_read, bool *is_read_unread)
{
    const onv_model *model = p->l->emit.model;
    onv_unread *items = p->l->unread.runs.at;
    size_t last = p->l->unread.runs.count, kept = last;
    for (size_t i = p->has.count; i-- > 0;) {
        const onv_node *node = &model->nodes.at[p->has.at[i]];
        bool is_item = last > p->first_item && items[last - 1].node.index == p->has.at[i];
        bool has_reader = false, is_unread = false;
        for (uint32_t k = 0; k < node->n_outputs; k++) {
            if (!onv_is_value(node->outputs[k])) continue;
            uint32_t value = node->outputs[k].index;
            has_reader |= is_read[value] || p->stands[value] == value + 1;
            is_unread |= is_read_unread[value];
        }
        is_unread = is_item && (is_unread || !has_reader);
        for (uint32_t k = 0; k < node->n_inputs; k++) {
            if (!onv_is_value(node->inputs[k])) continue;
            is_read[node->inputs[k].index] = true;
            is_read_unread[node->inputs[k].index] |= is_unread;
        }
        if (is_item) last--;
        if (is_unread) items[--kept] = items[last];
    }
    size_t n = p->l->unread.runs.count - kept;
    memmove(items + p->first_item, items + kept, n * sizeof *items);
    p->l->unread.runs.count = p->first_item + n;
}

static bool are_as_large(const pairing *p)
{
    for (size_t i = p->first_item; i < p->l->unread.runs.count; i++)
        if (!is_as_large(p, onv_model_node(p->l->emit.model, p->l->unread.runs.at[i].node)))
            return false;
    return true;
}

/* Kernels of which one node is missing are told otherwise. */
static bool has_whole_groups(const pairing *p)
{
    const onv_lowering *l = p->l;
    for (size_t i = p->first_item; i < l->unread.runs.count; i++) {
        uint32_t fusion = l->fusions.of_node[l->unread.runs.at[i].node.index];
        size_t all = 0, missing = 0;
        for (size_t k = 0; k < p->has.count && fusion != 0; k++)
            all += l->fusions.of_node[p->has.at[k]] == fusion;
        for (size_t k = p->first_item; k < l->unread.runs.count && fusion != 0; k++)
            missing += l->fusions.of_node[l->unread.runs.at[k].node.index] == fusion;
        if (all != missing || !onv_work(p->has.count)) return false;
    }
    return true;
}

/* "['', 'layers', 'layers.2'" with the other module's name in the place of this one's. */
static const char *calls_of(pairing *p, const char *calls)
{
    char text[4 * MAX_PATH];
    size_t used = 0, length = strlen(p->like), added = strlen(p->of);
    for (const char *at = calls; *at != '\0';) {
        bool begins = at > calls && (at[-1] == '\'' || at[-1] == '"') &&
                      strncmp(at, p->like, length) == 0 && strchr(".'\"", at[length]) != NULL;
        if (used + added + 2 > sizeof text) return NULL;
        if (begins) {
            memcpy(text + used, p->of, added);
            used += added;
            at += length;
        } else
            text[used++] = *at++;
    }
    return onv_intern_n(&p->l->emit.model->strings, text, used);
}

static bool take_items(pairing *p)
{
    onv_lowering *l = p->l;
    for (size_t i = p->first_item; i < l->unread.runs.count; i++) {
        onv_unread *item = &l->unread.runs.at[i];
        const onv_node *node = onv_model_node(l->emit.model, item->node);
        item->calls = node->calls != NULL ? calls_of(p, node->calls) : NULL;
        if (item->calls == NULL) return false;
        item->first_value = p->first_value;
        item->n_values = p->n_values;
    }
    for (size_t i = 0; i < p->n_values; i++) {
        uint32_t value = p->values[i], stands = p->stands[value];
        onv_unread_value v = {value, stands != 0 ? stands - 1 : NO_VALUE, ONV_NO_TENSOR, 0, false};
        if (onv_vec_push(&l->unread.values, v)) continue;
        l->emit.status = onv_fail_memory(l->emit.err);
        return false;
    }
    return true;
}

/* --- Which layers ------------------------------------------------------------------------------- */

static bool make_room(onv_lowering *l, room *r)
{
    onv_arena *arena = &l->emit.model->arena;
    size_t n = l->emit.model->values.count, n_nodes = l->emit.model->nodes.count;
    if (r->stands == NULL)
        *r = (room){.stands = ONV_ARENA_ARRAY(arena, uint32_t, n),
                    .values = ONV_ARENA_ARRAY(arena, uint32_t, n),
                    .lacks = ONV_ARENA_ARRAY(arena, uint32_t, n_nodes),
                    .has = ONV_ARENA_ARRAY(arena, uint32_t, n_nodes),
                    .is_made = ONV_ARENA_ARRAY(arena, bool, n),
                    .is_read = ONV_ARENA_ARRAY(arena, bool, n),
                    .is_read_unread = ONV_ARENA_ARRAY(arena, bool, n)};
    if (arena->failed) {
        l->emit.status = onv_fail_memory(l->emit.err);
        return false;
    }
    if (!onv_work(n)) return false;
    memset(r->stands, 0, n * sizeof *r->stands);
    memset(r->is_made, 0, n * sizeof *r->is_made);
    memset(r->is_read, 0, n * sizeof *r->is_read);
    memset(r->is_read_unread, 0, n * sizeof *r->is_read_unread);
    return true;
}

static bool pair_layers(onv_lowering *l, room *r, const char *of, const char *like)
{
    if (!make_room(l, r)) return false;
    pairing p = {.l = l,
                 .of = of,
                 .like = like,
                 .lacks = {.at = r->lacks},
                 .has = {.at = r->has},
                 .stands = r->stands,
                 .is_made = r->is_made,
                 .values = r->values,
                 .first_item = l->unread.runs.count,
                 .first_value = l->unread.values.count};
    if (!list_nodes(l, of, &p.lacks) || !list_nodes(l, like, &p.has)) return false;
    bool fits = p.lacks.count > 0 && p.has.count > p.lacks.count && p.has.count <= MAX_NODES &&
                lay_side_by_side(&p);
    if (fits) leave_out_merged(&p, r->is_read, r->is_read_unread);
    fits = fits && l->unread.runs.count > p.first_item && are_as_large(&p) &&
           has_whole_groups(&p) && take_items(&p);
    if (!fits) l->unread.runs.count = p.first_item;
    if (!fits) l->unread.values.count = p.first_value;
    return fits;
}

/* "layers.2", "layers.1", ... of "layers.3.norm.weight" at the end of that number, where they have this parameter. */
static bool find_like(onv_lowering *l, room *r, const char *name, size_t begin, size_t end)
{
    char of[MAX_PATH], like[MAX_PATH], other[MAX_PATH + 16];
    unsigned long number = 0;
    for (size_t i = begin; i < end; i++) number = 10 * number + (unsigned long)(name[i] - '0');
    snprintf(of, sizeof of, "%.*s", (int)end, name);
    for (unsigned long k = 1; k <= number && k <= MAX_BEFORE; k++) {
        snprintf(like, sizeof like, "%.*s%lu", (int)begin, name, number - k);
        snprintf(other, sizeof other, "%s%s", like, name + end);
        size_t at = onv_listed_find(l, other);
        if (at == SIZE_MAX || !l->signature.explained[at]) continue;
        return pair_layers(l, r, of, like);
    }
    return false;
}

static bool was_seen(const char *name, size_t length, const char *const *seen, size_t n_seen)
{
    for (size_t i = 0; i < n_seen; i++)
        if (strlen(seen[i]) == length && strncmp(seen[i], name, length) == 0) return true;
    return false;
}

static int by_place(const void *left, const void *right)
{
    const onv_unread *a = left, *b = right;
    if (a->after.index != b->after.index) return a->after.index < b->after.index ? -1 : 1;
    return (a->node.index > b->node.index) - (a->node.index < b->node.index);
}

/* The first number of the name that is that of a layer decides. */
static void look_at(onv_lowering *l, room *r, const char *name, const char **seen, size_t *n_seen)
{
    enum { MOST_DIGITS = 6 };
    for (size_t i = 0; name[i] != '\0' && strlen(name) < MAX_PATH && l->emit.status == ONV_OK;
         i++) {
        if (!isdigit((unsigned char)name[i])) continue;
        size_t end = i;
        while (isdigit((unsigned char)name[end])) end++;
        bool is_layer = name[end] == '.' && end - i <= MOST_DIGITS && i > 0;
        if (is_layer && was_seen(name, end, seen, *n_seen)) return;
        if (is_layer && *n_seen < MAX_LAYERS) {
            seen[*n_seen] = onv_intern_n(&l->emit.model->strings, name, end);
            if (seen[*n_seen] == NULL) l->emit.status = onv_fail_memory(l->emit.err);
            if (l->emit.status != ONV_OK) return;
            ++*n_seen;
            if (find_like(l, r, name, i, end)) return;
        }
        i = end - 1;
    }
}

onv_status onv_unread_find(onv_lowering *l)
{
    const char *seen[MAX_LAYERS];
    size_t n_seen = 0;
    room r = {0};
    if (l->emit.options->inference || l->emit.options->as_exported) return ONV_OK;
    for (size_t i = 0; i < l->signature.count && l->emit.status == ONV_OK; i++)
        if (!l->signature.explained[i]) look_at(l, &r, l->signature.names[i], seen, &n_seen);
    if (l->emit.status == ONV_OK) onv_unread_lists_find(l);
    if (l->unread.runs.count > 0)
        qsort(l->unread.runs.at, l->unread.runs.count, sizeof *l->unread.runs.at, by_place);
    return l->emit.status;
}

/* --- Running ------------------------------------------------------------------------------------ */

/* The tensors of the layer that lacks the nodes in the place of those of the other one. */
static void swap_in(onv_lowering *l, const onv_unread *item)
{
    for (size_t i = 0; i < item->n_values; i++) {
        onv_unread_value *v = &l->unread.values.at[item->first_value + i];
        bool stands = v->stands != NO_VALUE && l->values[v->stands].is_known;
        uint32_t tensor = stands ? l->values[v->stands].tensor : v->tensor;
        v->before = l->values[v->value].tensor;
        v->was_known = l->values[v->value].is_known;
        if (tensor != ONV_NO_TENSOR) l->values[v->value].tensor = tensor;
    }
}

static void swap_out(onv_lowering *l, const onv_unread *item)
{
    for (size_t i = 0; i < item->n_values; i++) {
        onv_unread_value *v = &l->unread.values.at[item->first_value + i];
        if (v->stands == NO_VALUE && l->values[v->value].tensor != v->before)
            v->tensor = l->values[v->value].tensor;
        l->values[v->value].tensor = v->before;
        l->values[v->value].is_known = v->was_known;
    }
}

static void run(onv_lowering *l, const onv_unread *item)
{
    const onv_node *node = onv_model_node(l->emit.model, item->node);
    uint32_t fusion = l->fusions.of_node[item->node.index];
    if (fusion != 0 && !item->is_join &&
        l->fusions.at.at[fusion - 1].last.index != item->node.index)
        return;
    size_t first_op = l->emit.eager->ops.count;
    if (item->is_join) onv_unread_join(l, item);
    for (uint32_t k = 0; k < node->n_outputs && !item->is_join; k++)
        if (onv_is_value(node->outputs[k]) && l->values[node->outputs[k].index].is_known) {
            onv_repeat_value(l, node->outputs[k]);
            break;
        }
    for (size_t i = first_op; i < l->emit.eager->ops.count; i++) {
        l->emit.eager->ops.at[i].origin = item->node;
        l->emit.eager->ops.at[i].calls = item->calls;
    }
    l->tally.unread_calls.count += l->emit.eager->ops.count > first_op;
}

void onv_unread_run(onv_lowering *l)
{
    while (l->unread.next < l->unread.runs.count && l->emit.status == ONV_OK) {
        const onv_unread *item = &l->unread.runs.at[l->unread.next];
        if (item->after.index != l->emit.node.index) return;
        if (!onv_work(item->n_values)) l->emit.status = ONV_ERR_CANCELLED;
        if (!item->is_join) swap_in(l, item);
        run(l, item);
        if (!item->is_join) swap_out(l, item);
        l->unread.next++;
    }
}
