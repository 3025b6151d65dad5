#include "eager/calls.h"

#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/quota.h"
#include "eager/names.h"
#include "load/statements.h"

/* --- What tells -------------------------------------------------------------------------------- */

typedef struct chain {
    const char *path;
    uint32_t ends[ONV_MAX_CALLS];     /* of the calls, outer first */
    onv_words classes[ONV_MAX_CALLS]; /* where `has_classes`; "": not told */
    uint32_t n;
    bool has_classes;
    onv_statement_line lines[ONV_MAX_CALLS];
    uint32_t n_lines; /* of the first calls; 0: none is told */
} chain;

/* A class whose name begins so, and the rest of it. */
static bool begins(onv_words class, const char *text, onv_words *rest)
{
    size_t n = strlen(text);
    if (class.length < n || memcmp(class.at, text, n) != 0) return false;
    *rest = (onv_words){class.at + n, class.length - n};
    return true;
}

/* A class of torch.nn, but for those that take or give several tensors. */
static bool is_layer(onv_words class)
{
    static const char *const others[] = {"container.", "rnn.", "transformer.", "adaptive.",
                                         "activation.MultiheadAttention"};
    onv_words own, rest;
    if (!begins(class, "torch.nn.modules.", &own)) return false;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (begins(own, others[i], &rest)) return false;
    return true;
}

static bool is_sequential(onv_words class)
{
    onv_words rest;
    return begins(class, "torch.nn.modules.container.Sequential", &rest) && rest.length == 0;
}

static void find_noted(const onv_node *node, chain *c)
{
    const char *at = onv_noted(node)->calls, *classes = onv_noted(node)->call_classes;
    onv_words call;
    c->path = at;
    c->has_classes = classes != NULL && classes[0] != '\0';
    for (; c->n < ONV_MAX_CALLS && onv_words_next_quoted(&at, &call); c->n++) {
        onv_words *class = &c->classes[c->n];
        if (!c->has_classes || !onv_words_next_quoted(&classes, class)) *class = (onv_words){"", 0};
        c->ends[c->n] = (uint32_t)(at - c->path);
    }
}

static void find_named(const onv_node *node, chain *c)
{
    const char *at = node->name;
    c->path = node->name;
    while (c->n < ONV_MAX_CALLS && (at = strchr(at, '/')) != NULL)
        c->ends[c->n++] = (uint32_t)(at++ - c->path);
}

/* A convolution with the batch norm that the exporter folded into it is a node, and two modules: notes
 * name the norm, names the convolution. Of the other one only what is around it is known. */
static bool is_other_module(const onv_eager *eager, uint32_t index, bool is_noted)
{
    const onv_eager_op *op = &eager->ops.at[index];
    if (op->part != NULL) return !is_noted;
    for (uint32_t i = index + 1; is_noted && i < eager->ops.count; i++) {
        if (eager->ops.at[i].node.index != op->node.index) return false;
        if (eager->ops.at[i].part != NULL) return true;
    }
    return false;
}

/* True where the innermost call was left out. */
static bool find_chain(const onv_model *model, const onv_eager *eager, uint32_t index, chain *c)
{
    const onv_eager_op *op = &eager->ops.at[index];
    c->n = c->n_lines = 0; /* the lists are large, and there are many operations */
    c->has_classes = false;
    c->path = NULL;
    if (!onv_is_node(op->node)) return false;
    const onv_node *node = onv_model_node(model, op->node);
    bool is_noted = onv_noted(node)->calls[0] != '\0';
    if (is_noted)
        find_noted(node, c);
    else if (node->name[0] == '/')
        find_named(node, c);
    c->n_lines = is_noted ? onv_statements_lines(node, c->lines, ONV_MAX_CALLS) : 0;
    if (c->n_lines > 0 && c->n_lines < c->n) c->n = c->n_lines;
    bool is_other = c->n > 0 && is_other_module(eager, index, is_noted);
    c->n -= is_other;
    return is_other;
}

/* --- Calls ------------------------------------------------------------------------------------- */

static bool is_inside(const onv_call *call, const chain *c, uint32_t depth)
{
    return call->length == c->ends[depth] && memcmp(call->path, c->path, call->length) == 0;
}

static bool is_first_line(const onv_call *call, const chain *c, uint32_t depth)
{
    return call->first_line.at != NULL && depth < c->n_lines &&
           onv_words_same(call->first_line, c->lines[depth].number);
}

/* How many of the `same` calls are still the same: one that comes to its first line again, and makes the same
 * call there, is another one, if its caller calls it as a member of a list; so are those around it that are
 * at their first lines, too. */
static uint32_t find_again(const onv_calls *calls, const chain *c, const uint32_t *open,
                           uint32_t same)
{
    if (same < 2 || same >= c->n) return same;
    const onv_call *inner = &calls->at.at[open[same - 1]];
    uint32_t length = c->ends[same], first = same - 1;
    if (!inner->has_passed || inner->inner_length != length ||
        memcmp(inner->path, c->path, length) != 0 || !is_first_line(inner, c, first))
        return same;
    while (first > 1 && is_first_line(&calls->at.at[open[first - 1]], c, first - 1)) first--;
    return c->lines[first - 1].kind == ONV_STATEMENT_LOOPS ? first : same;
}

static void note_lines(onv_calls *calls, const chain *c, const uint32_t *open)
{
    for (uint32_t i = 0; i < c->n && i < c->n_lines; i++) {
        onv_call *call = &calls->at.at[open[i]];
        call->has_passed |= call->first_line.at != NULL && !is_first_line(call, c, i);
        if (call->first_line.at != NULL) continue;
        call->first_line = c->lines[i].number;
        call->inner_length = i + 1 < c->n ? c->ends[i + 1] : 0;
    }
}

/* `open`: the calls around the last operation of which anything is known. */
static bool enter(onv_calls *calls, const chain *c, uint32_t *open, uint32_t *n_open, uint32_t op)
{
    uint32_t same = 0;
    while (same < c->n && same < *n_open && is_inside(&calls->at.at[open[same]], c, same)) same++;
    same = find_again(calls, c, open, same);
    for (uint32_t i = 0; i < same; i++) calls->at.at[open[i]].last_op = op;
    for (*n_open = same; *n_open < c->n; (*n_open)++) {
        onv_call call = {.first_op = op,
                         .last_op = op,
                         .parent = *n_open > 0 ? open[*n_open - 1] : ONV_NO_CALL,
                         .is_known = c->has_classes,
                         .is_chain = !c->has_classes || is_sequential(c->classes[*n_open]),
                         .is_layer = c->has_classes && is_layer(c->classes[*n_open]),
                         .path = c->path,
                         .length = c->ends[*n_open]};
        if (!onv_vec_push(&calls->at, call)) return false;
        open[*n_open] = (uint32_t)calls->at.count - 1;
    }
    if (*n_open == 0) return true;
    note_lines(calls, c, open);
    onv_call *inner = &calls->at.at[open[*n_open - 1]];
    inner->is_chain &= inner->is_known; /* it computes something itself */
    calls->of_op[op] = open[*n_open - 1];
    return true;
}

static onv_status find_all(const onv_model *model, const onv_eager *eager, onv_calls *calls,
                           onv_error *err)
{
    uint32_t open[ONV_MAX_CALLS], n_open = 0;
    for (uint32_t i = 0; i < eager->ops.count; i++) {
        chain c;
        calls->of_op[i] = ONV_NO_CALL;
        calls->is_other[i] = find_chain(model, eager, i, &c);
        if (c.n > 0 && !enter(calls, &c, open, &n_open, i)) return onv_fail_memory(err);
    }
    return ONV_OK;
}

onv_status onv_calls_find(const onv_model *model, const onv_eager *eager, onv_arena *arena,
                          const onv_calls **calls, onv_error *err)
{
    size_t n = eager->ops.count;
    onv_calls *made = ONV_ARENA_ARRAY(arena, onv_calls, 1);
    uint32_t *of_op = ONV_ARENA_ARRAY(arena, uint32_t, n);
    bool *is_other = ONV_ARENA_ARRAY(arena, bool, n);
    if (made == NULL || of_op == NULL || is_other == NULL) return onv_fail_memory(err);
    *made = (onv_calls){.of_op = of_op, .is_other = is_other};
    onv_status status = find_all(model, eager, made, err);
    onv_call *found = made->at.at;
    made->at.at = onv_arena_copy(arena, found, made->at.count * sizeof *found);
    onv_heap_free(found);
    *calls = made;
    return status == ONV_OK && arena->failed ? onv_fail_memory(err) : status;
}

/* --- What they hold ---------------------------------------------------------------------------- */

static void hold(onv_holding *h, uint32_t storage, uint32_t op)
{
    if (h->held[storage] < op) h->held[storage] = op;
}

/* By an operation: `made_by` is 0 of others, too. */
static bool is_made(const onv_holding *h, uint32_t storage)
{
    const onv_eager_op *first = &h->eager->ops.at[0];
    if (h->made_by[storage] > 0) return true;
    for (uint32_t k = 0; k < first->n_out; k++)
        if (h->eager->tensors.at[first->out[k]].storage == storage) return true;
    return false;
}

/* The outermost call that the storage came into from outside. */
static void hold_argument(onv_holding *h, uint32_t storage, uint32_t op)
{
    const onv_call *all = h->calls->at.at;
    uint32_t made_by = h->made_by[storage];
    if (!is_made(h, storage)) return;
    if (h->calls->of_op[made_by] == ONV_NO_CALL) return; /* nothing tells where it was made */
    if (h->eager->ops.at[made_by].n_in == 0) return; /* zeros, which exporters make once for all */
    for (uint32_t c = h->calls->of_op[op]; c != ONV_NO_CALL && all[c].first_op > made_by;
         c = all[c].parent)
        hold(h, storage, all[c].last_op);
}

/* The innermost call that has all uses of the storage is the one that has a name for it. */
static void hold_name(onv_holding *h, uint32_t storage)
{
    const onv_call *all = h->calls->at.at;
    uint32_t c = h->calls->of_op[h->made_by[storage]];
    while (c != ONV_NO_CALL && all[c].last_op < h->last_use[storage]) c = all[c].parent;
    if (c != ONV_NO_CALL && !all[c].is_chain) hold(h, storage, all[c].last_op);
}

onv_status onv_calls_hold(onv_holding *h, onv_held_end end, onv_arena *arena, onv_error *err)
{
    const onv_eager *eager = h->eager;
    bool is_most = end == ONV_HELD_MOST;
    bool *told = ONV_ARENA_ARRAY(arena, bool, eager->ops.count);
    if (told == NULL) return onv_fail_memory(err);
    ONV_WORK(eager->tensors.count + eager->storages.count);
    for (uint32_t i = 0; i < eager->ops.count; i++) {
        ONV_WORK(2 * (uint64_t)eager->ops.at[i].n_in);
        for (uint32_t k = 0; k < eager->ops.at[i].n_in; k++)
            hold_argument(h, eager->tensors.at[eager->ops.at[i].in[k].tensor].storage, i);
    }
    if (end == ONV_HELD_LEAST) return ONV_OK;
    ONV_TRY(onv_names_hold(h, is_most, arena, told, err));
    for (uint32_t i = 0; i < eager->storages.count && eager->ops.count > 0; i++) {
        bool has_name = eager->storages.at[i].is_given || (is_most && !told[h->made_by[i]]);
        if (has_name && is_made(h, i)) hold_name(h, i);
    }
    return ONV_OK;
}
