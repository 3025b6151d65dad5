/* Where the exporter has one chain of calls for several equal ones.
 *
 *     for x in series:                     # view_2 of a second call of the encoder,
 *         y = cat([x, encoder(times).view(4, -1)])   # of which the file has the first
 *
 * PyTorch numbers its calls, "linear_4", in their order. Where an argument of a node names a call that the file has under
 * another number, that ran again, and so did those that led to it, as far as numbers of their kinds are missing between
 * the calls before the node and those behind it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "lower/lowering.h"
#include "lower/weight_place.h"

onv_call_name onv_call_name_of(const char *name, uint32_t node)
{
    onv_call_name n = {name, strlen(name), 0, node, 0};
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

static int by_kind(const onv_call_name *a, const onv_call_name *b)
{
    int order = strncmp(a->name, b->name, a->length < b->length ? a->length : b->length);
    if (order != 0) return order;
    return a->length != b->length ? (a->length < b->length ? -1 : 1) : 0;
}

static int by_number(const void *left, const void *right)
{
    const onv_call_name *a = left, *b = right;
    int order = by_kind(a, b);
    if (order != 0) return order;
    if (a->number != b->number) return a->number < b->number ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

/* Batch norms count their batches, by additions that no file has. */
static bool counts_batches(const onv_model *model)
{
    static const char counter[] = "num_batches_tracked";
    for (size_t i = 0; i < model->n_buffers; i++)
        if (strstr(model->buffers[i], counter) != NULL) return true;
    return false;
}

/* A number that no node of the main graph has, before the last one. */
onv_status onv_gaps_find(onv_lowering *l)
{
    l->gaps.has_gaps = ONV_ARENA_ARRAY(&l->emit.model->arena, bool, l->emit.model->nodes.count);
    if (l->gaps.has_gaps == NULL) return onv_fail_memory(l->emit.err);
    if (l->emit.options->inference || l->emit.options->as_exported) return ONV_OK;
    l->gaps.counts_batches = counts_batches(l->emit.model);
    for (uint32_t i = 0; i < l->emit.model->nodes.count; i++) {
        const onv_node *node = &l->emit.model->nodes.at[i];
        if (node->graph.index != 0 || node->source_op == NULL || node->source_op[0] == '\0')
            continue;
        if (!onv_vec_push(&l->gaps.calls, onv_call_name_of(node->source_op, i)))
            return onv_fail_memory(l->emit.err);
    }
    onv_call_name *all = l->gaps.calls.at;
    if (l->gaps.calls.count > 0) qsort(all, l->gaps.calls.count, sizeof *all, by_number);
    for (size_t i = 0, end; i < l->gaps.calls.count; i = end) {
        bool has_gap = all[i].number > 0;
        for (end = i + 1; end < l->gaps.calls.count && onv_call_is_like(&all[i], &all[end]); end++)
            has_gap |= all[end].number > all[end - 1].number + 1;
        for (size_t k = i; k < end && has_gap; k++) l->gaps.has_gaps[all[k].node] = true;
    }
    return ONV_OK;
}

/* --- Around one node ---------------------------------------------------------------------------- */

/* The first of that kind behind the node, and whether there is any; the one before it is of the kind, or not. */
static size_t first_behind(const onv_lowering *l, const onv_call_name *kind, uint32_t node)
{
    size_t low = 0, high = l->gaps.calls.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = by_kind(&l->gaps.calls.at[middle], kind);
        if (order < 0 || (order == 0 && l->gaps.calls.at[middle].node <= node))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

typedef struct gap {
    size_t behind; /* the call behind it */
    uint32_t missing;
    bool is_open; /* there is none behind it: how many are missing is not known */
} gap;

/* Numbers of the kind that are missing right before the reader, which itself may be of it. */
static gap gap_before(const onv_lowering *l, const onv_call_name *kind, uint32_t reader)
{
    const onv_call_name *all = l->gaps.calls.at;
    size_t at = first_behind(l, kind, reader > 0 ? reader - 1 : 0);
    bool has_before = at > 0 && onv_call_is_like(&all[at - 1], kind);
    bool has_behind = at < l->gaps.calls.count && onv_call_is_like(&all[at], kind);
    gap g = {.behind = at, .is_open = !has_behind};
    if (!has_behind) return g;
    uint32_t first = has_before ? all[at - 1].number + 1 : 0;
    uint32_t missing = all[at].number > first ? all[at].number - first : 0;
    g.missing = missing > all[at].claimed ? missing - all[at].claimed : 0;
    return g;
}

typedef struct claims {
    size_t at[ONV_MAX_REPEATED]; /* calls behind the gaps */
    bool is_open[ONV_MAX_REPEATED];
    const char *calls[ONV_MAX_REPEATED];
    uint32_t n;
    onv_call_name wanted; /* what the reader calls the value */
    bool is_told;         /* one of the calls that lead to the value is certainly missing */
} claims;

/* Whether the call of the node ran again before the reader. Behind the last call of a kind nothing tells: what depends on no
 * parameter, which modules mostly compute for themselves, is taken to. */
static bool claim(onv_lowering *l, const onv_node *node, uint32_t reader, bool is_given, claims *c)
{
    bool is_first = c->n == 0;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->calls[i] == node->source_op) return true;
    if (c->n == ONV_MAX_REPEATED) return false;
    onv_call_name kind = onv_call_name_of(node->source_op, 0);
    bool is_add = kind.length == 3 && memcmp(kind.name, "add", 3) == 0;
    if (is_add && l->gaps.counts_batches && !is_first) return false;
    gap g = gap_before(l, &kind, reader);
    bool is_known = !g.is_open;
    uint32_t taken = 0;
    if (g.is_open && g.behind > 0 && onv_call_is_like(&kind, &c->wanted)) {
        uint32_t before = l->gaps.calls.at[g.behind - 1].number;
        is_known = onv_call_is_like(&l->gaps.calls.at[g.behind - 1], &kind);
        g.missing = c->wanted.number > before ? c->wanted.number - before : 0;
    }
    for (uint32_t i = 0; i < c->n; i++) taken += c->at[i] == g.behind;
    bool is_missing = is_known ? g.missing > taken : is_given;
    if (!is_missing && !is_first) return false;
    c->is_told |= is_known && !is_first;
    c->is_open[c->n] = g.is_open;
    c->at[c->n] = g.behind;
    c->calls[c->n++] = node->source_op;
    return true;
}

static uint32_t place_of(const onv_lowering *l, onv_value_id id)
{
    return onv_model_value(l->emit.model, id)->producer.index;
}

static void sort_last_first(const onv_lowering *l, onv_value_id *chain, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = i; k > 0 && place_of(l, chain[k - 1]) < place_of(l, chain[k]); k--) {
            onv_value_id later = chain[k];
            chain[k] = chain[k - 1];
            chain[k - 1] = later;
        }
}

/* Results of a node of several, of which the exporter notes nothing, go with what they are made of. */
static bool ran_again(onv_lowering *l, onv_value_id id, uint32_t reader, claims *c)
{
    onv_node_id producer = onv_model_value(l->emit.model, id)->producer;
    if (!onv_is_node(producer)) return false;
    /* What is inside of a kernel has no tensor. */
    if (!l->values[id.index].is_known && l->fusions.of_node[producer.index] == 0) return false;
    const onv_node *node = onv_model_node(l->emit.model, producer);
    if (node->graph.index != 0) return false;
    if (node->source_op == NULL || node->source_op[0] == '\0')
        return strcmp(node->op_type, "Split") == 0;
    return claim(l, node, reader, l->values[id.index].made_in != NULL, c);
}

/* Behind the last calls of all kinds other gaps of theirs tell, of what a module computes of what it was given. */
static uint32_t by_other_gaps(const onv_lowering *l, onv_value_id *chain, uint32_t n)
{
    const char *module = l->values[chain[0].index].made_in;
    uint32_t kept = 1;
    bool is_told = false;
    for (uint32_t i = 1; i < n && module != NULL; i++) {
        if (l->values[chain[i].index].made_in != module) continue;
        is_told |= l->gaps.has_gaps[place_of(l, chain[i])];
        chain[kept++] = chain[i];
    }
    if (!is_told) return 0;
    sort_last_first(l, chain, kept);
    return kept;
}

uint32_t onv_gaps_chain(onv_lowering *l, onv_value_id id, const onv_node *reader,
                        onv_value_id *chain)
{
    uint32_t place = (uint32_t)(reader - l->emit.model->nodes.at), n = 0;
    claims c = {.wanted = onv_call_name_of(reader->merged_call, 0)};
    if (!ran_again(l, id, place, &c)) return 0;
    chain[n++] = id;
    for (uint32_t at = 0; at < n; at++) {
        const onv_node *from =
            onv_model_node(l->emit.model, onv_model_value(l->emit.model, chain[at])->producer);
        for (uint32_t k = 0; k < from->n_inputs; k++) {
            onv_value_id in = from->inputs[k];
            bool is_new = onv_is_value(in) && n < ONV_MAX_REPEATED;
            for (uint32_t i = 0; i < n && is_new; i++) is_new = chain[i].index != in.index;
            if (is_new && ran_again(l, in, place, &c)) chain[n++] = in;
        }
        if (!onv_work(n)) l->emit.status = ONV_ERR_CANCELLED;
    }
    if (!c.is_told) return by_other_gaps(l, chain, n);
    for (uint32_t i = 0; i < c.n; i++) {
        if (!c.is_open[i]) l->gaps.calls.at[c.at[i]].claimed++;
        if (i > 0 && l->tally.missing.count > 0 && onv_merged_counts(c.calls[i]))
            l->tally.missing.count--;
    }
    sort_last_first(l, chain, n);
    return n;
}

/* Names of values, and of calls that were merged with others, once something asks for one. */
static bool list_names(onv_lowering *l)
{
    const onv_model *model = l->emit.model;
    bool fits = onv_work(model->values.count + model->nodes.count);
    l->gaps.has_names = fits;
    if (!fits) l->emit.status = ONV_ERR_CANCELLED;
    for (size_t i = 0; i < model->values.count && fits; i++)
        fits = onv_ptr_map_set(&l->gaps.names, model->values.at[i].name, 1);
    for (size_t i = 0; i < model->nodes.count && fits; i++)
        if (model->nodes.at[i].merged_call != NULL)
            fits = onv_ptr_map_set(&l->gaps.names, model->nodes.at[i].merged_call, 1);
    if (!fits && l->emit.status == ONV_OK) l->emit.status = onv_fail_memory(l->emit.err);
    return fits;
}

bool onv_follows_folded(onv_lowering *l, const char *name)
{
    static const char *const views[] = {"t", "transpose", "permute"};
    onv_call_name call = onv_call_name_of(name, 0);
    char before[64];
    if (call.number == 0 || call.length + 16 > sizeof before ||
        !onv_is_call_of_any(name, views, sizeof views / sizeof views[0]) ||
        l->emit.status != ONV_OK || (!l->gaps.has_names && !list_names(l)))
        return false;
    int length = snprintf(before, sizeof before, "%.*s", (int)call.length, name);
    if (call.number > 1)
        length += snprintf(before + length, sizeof before - (size_t)length, "_%u", call.number - 1);
    const char *interned = onv_intern_n(&l->emit.model->strings, before, (size_t)length);
    if (interned == NULL) l->emit.status = onv_fail_memory(l->emit.err);
    return interned != NULL && !onv_ptr_map_get(&l->gaps.names, interned, NULL);
}
