/* Calls that the exporter merged because they are equal: the same operation of the same tensors, as `x - mean`
 * written twice. Eager PyTorch runs both, and keeps both results.
 *
 * The names tell: PyTorch numbers the calls of an operation, "sub", "sub_1", "sub_2", so a number that is
 * missing was a call. It is taken for one of the nearest call before it whose result is still read after
 * the call with the number before; these readers get a result of their own. Only operations that are not computed from
 * constants count, as those are folded, which leaves gaps too.
 *
 * Of "relu", what arguments of others name is found by these names (below), and is no gap; layers that ran without a reader
 * leave gaps, too. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "base/rules.h"
#include "ir/path.h"
#include "lower/lowering.h"
#include "lower/weight_place.h"
#include "ops/op.h"

static const char *const kinds[] = {
    "avg_pool2d", "dropout",        "gelu", "group_norm", "hardswish", "layer_norm", "max_pool2d",
    "mish",       "native_dropout", "relu", "rms_norm",   "sigmoid",   "silu",       "softmax",
    "sub",        "tanh",
};

#define NO_VALUE UINT32_MAX /* a call that was merged */

enum { N_KINDS = sizeof kinds / sizeof kinds[0], LOOK_BACK = 64 };

typedef struct numbered {
    uint32_t kind, number, value;
} numbered;

typedef ONV_VEC(numbered) calls;

/* "sub_2": the third call of "sub". */
static bool read_name(const char *name, numbered *call)
{
    for (uint32_t k = 0; k < N_KINDS; k++) {
        size_t length = strlen(kinds[k]);
        if (strncmp(name, kinds[k], length) != 0) continue;
        const char *at = name + length;
        uint32_t number = 0;
        if (*at == '_' && at[1] != '\0') at++;
        for (; *at >= '0' && *at <= '9' && number < UINT32_MAX / 16; at++)
            number = 10 * number + (uint32_t)(*at - '0');
        if (*at != '\0') continue;
        *call = (numbered){.kind = k, .number = number};
        return true;
    }
    return false;
}

static bool is_relu(const char *name)
{
    return onv_is_call_of(name, "relu");
}

static int by_number(const void *left, const void *right)
{
    const numbered *a = left, *b = right;
    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    if (a->number != b->number) return a->number < b->number ? -1 : 1;
    return a->value < b->value ? -1 : a->value > b->value;
}

/* What reads at once: a node, or all nodes of a fusion. */
static uint32_t reader(const onv_lowering *l, uint32_t node)
{
    uint32_t fusion = l->fusions.of_node[node];
    return fusion != 0 ? fusion : (uint32_t)l->fusions.at.count + 1 + node;
}

static bool reads_anew(onv_lowering *l, uint32_t value, uint32_t node)
{
    uint32_t now = reader(l, node);
    if (l->values[value].last_reader == now) return false;
    l->values[value].last_reader = now;
    return true;
}

/* Those of the main graph whose result has a reader, the last node of each. */
static bool list_calls(onv_lowering *l, calls *found)
{
    const onv_model *model = l->emit.model;
    for (uint32_t i = 0; i < model->nodes.count; i++) {
        const onv_node *node = &model->nodes.at[i];
        numbered call;
        if (node->graph.index != 0 || node->source_op == NULL || node->n_outputs == 0) continue;
        if (!onv_is_value(node->outputs[0]) || !read_name(node->source_op, &call)) continue;
        call.value = node->outputs[0].index;
        uint32_t fusion = l->fusions.of_node[i];
        if (fusion != 0) call.value = l->fusions.at.at[fusion - 1].out.index;
        if (!onv_vec_push(found, call)) return false;
    }
    if (found->count > 0) qsort(found->at, found->count, sizeof *found->at, by_number);
    return true;
}

/* The node names another call than the one that it reads. */
static bool is_told(const onv_lowering *l, onv_value_id id, const onv_node *node)
{
    const char *name = onv_model_value(l->emit.model, id)->name;
    return onv_noted(node)->merged_call != NULL && is_relu(name) &&
           is_relu(onv_noted(node)->merged_call) && strcmp(name, onv_noted(node)->merged_call) != 0;
}

/* Numbers of "relu" that arguments name, sorted, each once. */
static bool list_told(const onv_lowering *l, calls *told)
{
    for (uint32_t i = 0; i < l->emit.model->nodes.count; i++) {
        const char *name = onv_noted(&l->emit.model->nodes.at[i])->merged_call;
        numbered call;
        if (name == NULL || !is_relu(name) || !read_name(name, &call)) continue;
        if (!onv_vec_push(told, call)) return false;
    }
    if (told->count > 0) qsort(told->at, told->count, sizeof *told->at, by_number);
    size_t n = 0;
    for (size_t i = 0; i < told->count; i++)
        if (n == 0 || by_number(&told->at[n - 1], &told->at[i]) != 0) told->at[n++] = told->at[i];
    told->count = n;
    return true;
}

/* Those of them between both calls. */
static uint32_t count_told(const calls *told, const numbered *after, const numbered *before)
{
    size_t low = 0, high = told->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (told->at[middle].number > after->number)
            high = middle;
        else
            low = middle + 1;
    }
    uint32_t n = 0;
    for (; low < told->count && told->at[low].number < before->number; low++) n++;
    return n;
}

/* Results of dropout are "getitem_4", and others have such names, too: calls that readers of dropout name by another one than
 * theirs, each once. */
static bool count_dropouts(const onv_lowering *l, uint32_t *count)
{
    onv_ptr_map seen = {0};
    bool fits = true;
    for (uint32_t i = 0; i < l->emit.model->nodes.count && fits; i++) {
        const onv_node *node = &l->emit.model->nodes.at[i];
        if (onv_noted(node)->merged_call == NULL ||
            !onv_is_call_of(onv_noted(node)->merged_call, "getitem"))
            continue;
        bool reads = false;
        for (uint32_t k = 0; k < node->n_inputs; k++) {
            onv_node_id from = onv_is_value(node->inputs[k])
                                   ? onv_model_value(l->emit.model, node->inputs[k])->producer
                                   : ONV_NO_NODE;
            reads |= onv_is_node(from) &&
                     strcmp(onv_model_node(l->emit.model, from)->op_type, "Dropout") == 0;
        }
        if (!reads || onv_ptr_map_get(&seen, onv_noted(node)->merged_call, NULL)) continue;
        fits = onv_ptr_map_set(&seen, onv_noted(node)->merged_call, 1);
        ++*count;
    }
    onv_ptr_map_cleanup(&seen);
    return fits;
}

/* Dropouts that were merged behind the last one that is left: those that readers name, but the gaps before it. */
static bool end_dropouts(const onv_lowering *l, calls *found)
{
    uint32_t named = 0, gaps = 0, next = 0, last = UINT32_MAX;
    if (!count_dropouts(l, &named)) return false;
    for (size_t i = 0; i < found->count; i++) {
        if (strcmp(kinds[found->at[i].kind], "native_dropout") != 0) continue;
        if (found->at[i].number > next) gaps += found->at[i].number - next;
        next = found->at[i].number + 1;
        last = (uint32_t)i;
    }
    if (last == UINT32_MAX || named <= gaps) return true;
    numbered end = {found->at[last].kind, next - 1 + named - gaps, NO_VALUE};
    return onv_vec_push(found, end);
}

/* Calls behind the last one that is left, which arguments of others name. */
static bool list_ends(const onv_lowering *l, calls *found)
{
    uint32_t most[N_KINDS] = {0};
    numbered call;
    for (uint32_t i = 0; i < l->emit.model->nodes.count; i++) {
        const char *name = onv_noted(&l->emit.model->nodes.at[i])->merged_call;
        if (name == NULL || is_relu(name) || !read_name(name, &call)) continue;
        if (call.number > most[call.kind]) most[call.kind] = call.number;
    }
    for (size_t i = 0; i < found->count; i++)
        if (found->at[i].number >= most[found->at[i].kind]) most[found->at[i].kind] = 0;
    for (uint32_t k = 0; k < N_KINDS; k++) {
        call = (numbered){.kind = k, .number = most[k], .value = NO_VALUE};
        if (most[k] > 0 && !onv_vec_push(found, call)) return false;
    }
    if (!end_dropouts(l, found)) return false;
    if (found->count > 0) qsort(found->at, found->count, sizeof *found->at, by_number);
    return true;
}

static uint32_t place_of(const onv_lowering *l, const numbered *call)
{
    return onv_model_value(l->emit.model, (onv_value_id){call->value})->producer.index;
}

/* Readers of the value behind the one place and before the other. */
static uint32_t count_readers(const onv_lowering *l, uint32_t value, uint32_t after,
                              uint32_t before)
{
    uint32_t n = 0, last = UINT32_MAX;
    for (uint32_t i = after + 1; i < before && i <= l->values[value].last_read && onv_work(1);
         i++) {
        const onv_node *node = &l->emit.model->nodes.at[i];
        bool reads = false;
        for (uint32_t k = 0; k < node->n_inputs && !reads; k++)
            reads = node->inputs[k].index == value && !is_told(l, node->inputs[k], node);
        if (!reads || reader(l, i) == last) continue;
        last = reader(l, i);
        n++;
    }
    return n;
}

/* As many of the missing calls as the value has readers for between both places, the first of all excepted, which reads the
 * call that is left. */
static bool give(onv_lowering *l, const numbered *call, uint32_t after, uint32_t before,
                 uint32_t *missing)
{
    uint32_t value = call->value;
    if (*missing == 0 || l->values[value].last_read <= after || l->values[value].n_readers < 2)
        return true;
    uint32_t n = count_readers(l, value, after, before);
    if (n > 0 && count_readers(l, value, place_of(l, call), after + 1) == 0) n--;
    /* Those behind the next call were given away. */
    for (uint32_t i = l->values[value].first_copy; i != 0 && n > 0;
         i = l->merged.copies.at[i - 1].next)
        n -= l->merged.copies.at[i - 1].after < before;
    for (; *missing > 0 && n > 0 && l->values[value].n_readers > 1; n--, (*missing)--) {
        onv_merged_call copy = {.after = after, .next = l->values[value].first_copy};
        if (!onv_vec_push(&l->merged.copies, copy)) return false;
        l->values[value].first_copy = (uint32_t)l->merged.copies.count;
        l->values[value].n_readers--;
    }
    return true;
}

/* Gives the calls that are missing after `last` to it or to one before it: to one that is read before the next call of the
 * kind, else to one that is read behind it. */
static bool assign(onv_lowering *l, const calls *found, size_t last, uint32_t missing)
{
    uint32_t after = place_of(l, &found->at[last]), end = (uint32_t)l->emit.model->nodes.count;
    const numbered *next = &found->at[last + 1];
    uint32_t before = next->value != NO_VALUE ? place_of(l, next) : end;
    for (int pass = 0; pass < 2; pass++) {
        const numbered *at = &found->at[last];
        for (size_t i = 0; i < LOOK_BACK && i <= last && at->kind == found->at[last].kind;
             i++, at--)
            if (!give(l, at, after, pass == 0 ? before : end, &missing)) return false;
    }
    if (missing > 0) l->tally.missing.first = kinds[found->at[last].kind];
    if (missing > UINT32_MAX - l->tally.missing.count)
        missing = UINT32_MAX - l->tally.missing.count;
    l->tally.missing.count += missing;
    return true;
}

onv_status onv_merged_find(onv_lowering *l)
{
    if (!onv_rule_is_on("lower.merged_find")) return ONV_OK;
    calls found = {0}, told = {0};
    if (l->emit.options->inference || l->emit.options->as_exported) return ONV_OK;
    for (uint32_t i = 0; i < l->emit.model->nodes.count; i++) {
        const onv_node *node = &l->emit.model->nodes.at[i];
        for (uint32_t k = 0; k < node->n_inputs; k++) {
            if (!onv_is_value(node->inputs[k])) continue;
            uint32_t value = node->inputs[k].index;
            if (is_told(l, node->inputs[k], node)) continue;
            l->values[value].n_readers += reads_anew(l, value, i);
            l->values[value].last_read = i;
        }
    }
    for (size_t i = 0; i < l->emit.model->values.count; i++) l->values[i].last_reader = 0;
    bool listed = list_calls(l, &found) && list_ends(l, &found) && list_told(l, &told);
    /* From the last one on: the copies of a result then stand in their order. */
    for (size_t i = found.count; listed && i-- > 1;) {
        const numbered *a = &found.at[i - 1], *b = &found.at[i];
        if (a->kind != b->kind || b->number <= a->number) continue;
        uint32_t missing = b->number - a->number - (b->value != NO_VALUE);
        if (is_relu(kinds[a->kind])) missing -= count_told(&told, a, b);
        if (missing > 0) listed = assign(l, &found, i - 1, missing);
    }
    onv_vec_cleanup(&found);
    onv_vec_cleanup(&told);
    return listed ? ONV_OK : onv_fail_memory(l->emit.err);
}

bool onv_merged_starts(onv_lowering *l, onv_value_id id, uint32_t node)
{
    if (!onv_is_value(id) || l->values[id.index].first_copy == 0) return false;
    if (is_told(l, id, onv_model_node(l->emit.model, (onv_node_id){node}))) return false;
    bool is_first = l->values[id.index].last_reader == 0;
    if (!reads_anew(l, id.index, node) || is_first) return false;
    const onv_merged_call *copy = &l->merged.copies.at[l->values[id.index].first_copy - 1];
    if (node <= copy->after) return false;
    l->values[id.index].first_copy = copy->next;
    l->tally.merged.count++;
    return true;
}

/* --- Calls of one module that another one of its class reads ----------------------------------- */

/* Layers compute the same of what they are all given, as tables of rotations of positions: each in a call of
 * its own, which the exporter merges. Told by a result of a module that only depends on what the module was
 * given, no parameter and no module in it, that the module reads itself, and another module of its
 * class does. */

static bool is_given(const onv_lowering *l, const onv_node *node, onv_value_id id)
{
    if (!onv_is_value(id)) return true;
    const onv_value *value = onv_model_value(l->emit.model, id);
    if (value->role == ONV_ROLE_PARAMETER) return false;
    if (!onv_is_node(value->producer)) return true;
    const onv_node *from = onv_model_node(l->emit.model, value->producer);
    if (from->scope == NULL || from->scope[0] == '\0') return from->aten_op != NULL;
    if (from->scope == node->scope) return l->values[id.index].made_in != NULL;
    return !onv_path_is_inside(from->scope, node->scope);
}

onv_status onv_merged_mark_modules(onv_lowering *l)
{
    if (!onv_rule_is_on("lower.merged_modules")) return ONV_OK;
    const onv_model *model = l->emit.model;
    if (l->emit.options->inference || l->emit.options->as_exported) return ONV_OK;
    for (uint32_t i = 0; i < l->live->timeline.steps.count; i++) {
        const onv_node *node = onv_model_node(model, l->live->timeline.steps.at[i].node);
        bool is_own = node->graph.index == 0 && node->scope != NULL && node->scope[0] != '\0' &&
                      node->module_class != NULL && node->module_class[0] != '\0' &&
                      node->n_outputs > 0;
        for (uint32_t k = 0; k < node->n_inputs; k++) {
            is_own = is_own && is_given(l, node, node->inputs[k]);
            if (onv_is_value(node->inputs[k]) &&
                l->values[node->inputs[k].index].made_in == node->scope)
                l->values[node->inputs[k].index].is_read_inside = true;
        }
        for (uint32_t k = 0; k < node->n_outputs && is_own; k++)
            if (onv_is_value(node->outputs[k]))
                l->values[node->outputs[k].index].made_in = node->scope;
    }
    return ONV_OK;
}

bool onv_merged_is_other_module(const onv_lowering *l, onv_value_id id, const onv_node *node)
{
    if (!onv_is_value(id) || l->values[id.index].made_in == NULL ||
        !l->values[id.index].is_read_inside || node->scope == NULL ||
        l->values[id.index].made_in == node->scope ||
        onv_path_is_inside(node->scope, l->values[id.index].made_in) ||
        onv_path_is_inside(l->values[id.index].made_in, node->scope))
        return false;
    onv_node_id producer = onv_model_value(l->emit.model, id)->producer;
    if (!onv_is_node(producer)) return false;
    const onv_node *from = onv_model_node(l->emit.model, producer);
    return node->module_class != NULL && node->module_class == from->module_class &&
           node->scope[0] != '\0';
}

static uint32_t place_in(const onv_lowering *l, onv_value_id id)
{
    return onv_model_value(l->emit.model, id)->producer.index;
}

static uint32_t chain_of(const onv_lowering *l, onv_value_id id, onv_value_id *chain)
{
    const char *module = l->values[id.index].made_in;
    uint32_t n = 1;
    chain[0] = id;
    for (uint32_t at = 0; at < n && module != NULL; at++) {
        onv_node_id producer = onv_model_value(l->emit.model, chain[at])->producer;
        const onv_node *from =
            onv_is_node(producer) ? onv_model_node(l->emit.model, producer) : NULL;
        for (uint32_t k = 0; from != NULL && k < from->n_inputs; k++) {
            onv_value_id in = from->inputs[k];
            bool is_new = onv_is_value(in) && l->values[in.index].made_in == module;
            for (uint32_t i = 0; i < n && is_new; i++) is_new = chain[i].index != in.index;
            if (is_new && n < ONV_MAX_REPEATED) chain[n++] = in;
        }
    }
    /* The last of them first. */
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = i; k > 0 && place_in(l, chain[k - 1]) < place_in(l, chain[k]); k--) {
            onv_value_id later = chain[k];
            chain[k] = chain[k - 1];
            chain[k - 1] = later;
        }
    return n;
}

bool onv_merged_is_own_module(const onv_lowering *l, onv_value_id id, const onv_node *node)
{
    const char *made_in = l->values[id.index].made_in;
    return made_in == NULL || made_in == node->scope || onv_path_is_inside(node->scope, made_in);
}

/* A module that views a tensor again, in a loop, mostly computes it once. */
static bool is_view(const onv_lowering *l, const onv_value *value)
{
    static const char *const views[] = {"Reshape", "Unsqueeze", "Squeeze", "Transpose", "Expand"};
    if (!onv_is_node(value->producer)) return false;
    const onv_node *node = onv_model_node(l->emit.model, value->producer);
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++)
        if (strcmp(views[i], node->op_type) == 0) return true;
    return false;
}

/* One that is not counted by its number (above), of a node of the main graph or of a constant that the forward pass makes. */
static bool is_plain_call(onv_lowering *l, const onv_value *value)
{
    numbered call;
    if (read_name(value->name, &call) && !is_relu(value->name)) return false;
    if (!onv_is_node(value->producer))
        return value->tensor != NULL &&
               onv_weight_use_of(l, (onv_value_id){(uint32_t)(value - l->emit.model->values.at)}) ==
                   ONV_WEIGHT_MADE;
    const onv_node *from = onv_model_node(l->emit.model, value->producer);
    return from->graph.index == 0 && from->source_op != NULL &&
           strcmp(from->source_op, value->name) == 0;
}

/* The call has the value under its own name, and nothing else that it is. */
static bool reads_itself(const onv_node *node, onv_value_id id)
{
    uint32_t reads = 0, named = 0;
    for (uint32_t k = 0; k < node->n_inputs && k < 32; k++) {
        if (node->inputs[k].index != id.index) continue;
        reads++;
        named += (onv_noted(node)->named & ONV_BIT(k)) != 0;
    }
    return reads == 1 && named == 1;
}

onv_call_name onv_call_name_of(const char *name)
{
    onv_call_name n = {name, strlen(name), 0};
    size_t length = n.length;
    while (length > 0 && name[length - 1] >= '0' && name[length - 1] <= '9') length--;
    if (length < 2 || length == n.length || name[length - 1] != '_') return n;
    for (const char *at = name + length; *at != '\0' && n.number < UINT32_MAX / 16; at++)
        n.number = 10 * n.number + (uint32_t)(*at - '0');
    n.length = length - 1;
    return n;
}

bool onv_call_is_like(const onv_call_name *a, const onv_call_name *b)
{
    return a->length == b->length && memcmp(a->name, b->name, a->length) == 0;
}

const char *onv_merged_name(const onv_lowering *l, onv_value_id id, const onv_node *node)
{
    if (onv_noted(node)->merged_call == NULL || reads_itself(node, id)) return NULL;
    onv_call_name wanted = onv_call_name_of(onv_noted(node)->merged_call);
    onv_call_name found = onv_call_name_of(onv_model_value(l->emit.model, id)->name);
    bool is_later = onv_call_is_like(&wanted, &found) && wanted.number > found.number;
    return is_later ? onv_noted(node)->merged_call : NULL;
}

uint32_t onv_merged_again(onv_lowering *l, onv_value_id id, const onv_node *node,
                          onv_value_id *chain)
{
    bool is_other = onv_merged_is_other_module(l, id, node);
    uint32_t n = chain_of(l, id, chain);
    if (l->values[id.index].made_in == NULL || is_view(l, onv_model_value(l->emit.model, id)))
        return n;
    bool is_alone = onv_merged_name(l, id, node) != NULL && !is_other;
    return is_alone || onv_merged_is_own_module(l, id, node) ? 1 : n;
}

/* Readers that name the one call and readers that name the other take turns. */
void onv_merged_select(onv_lowering *l, onv_value_id id, const onv_node *node)
{
    if (!onv_is_value(id) || !l->values[id.index].is_known ||
        (onv_noted(node)->merged_call == NULL && l->values[id.index].first_named == 0))
        return;
    const char *wanted = onv_merged_name(l, id, node), *now = l->values[id.index].stands_for;
    if (wanted == now || (l->values[id.index].first_named == 0 && wanted == NULL) ||
        !onv_merged_is_own_module(l, id, node))
        return;
    uint32_t found = 0;
    bool has_now = false;
    for (uint32_t i = l->values[id.index].first_named; i != 0; i = l->merged.named.at[i - 1].next) {
        if (l->merged.named.at[i - 1].call == wanted) found = i;
        has_now |= l->merged.named.at[i - 1].call == now;
        if (!onv_work(1)) l->emit.status = ONV_ERR_CANCELLED;
    }
    if (!has_now) {
        onv_named_call call = {now, l->values[id.index].tensor, l->values[id.index].first_named};
        if (!onv_vec_push(&l->merged.named, call)) l->emit.status = onv_fail_memory(l->emit.err);
        l->values[id.index].first_named = (uint32_t)l->merged.named.count;
    }
    if (found == 0) return;
    l->values[id.index].tensor = l->merged.named.at[found - 1].tensor;
    l->values[id.index].stands_for = wanted;
}

bool onv_merged_is_named(onv_lowering *l, onv_value_id id, const onv_node *node)
{
    if (!onv_is_value(id) || onv_merged_name(l, id, node) == NULL) return false;
    const onv_value *value = onv_model_value(l->emit.model, id);
    if (l->values[id.index].stands_for == onv_noted(node)->merged_call) return false;
    if (is_view(l, value)) return !onv_noted(node)->solves_by_rows;
    return is_plain_call(l, value);
}
