#include "ckpt/names.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/strings.h"

static const char *node_name(const onv_model *model, const onv_node *node)
{
    if (node->name[0] != '\0') return node->name;
    for (uint32_t k = 0; k < node->n_outputs; k++)
        if (onv_is_value(node->outputs[k])) return onv_model_value(model, node->outputs[k])->name;
    return node->op_type;
}

/* NULL: no memory. */
static const char *op_name(onv_model *model, const onv_eager_op *op)
{
    if (!onv_is_node(op->node)) return op->name;
    const char *node = node_name(model, onv_model_node(model, op->node));
    if (op->part == NULL) return node;
    size_t size = strlen(node) + 1 + strlen(op->part) + 1;
    char *name = onv_arena_alloc(&model->arena, size);
    if (name != NULL) snprintf(name, size, "%s:%s", node, op->part);
    return name;
}

/* A list is not called, so that the only member of one stands for itself. */
static bool is_only_member(const onv_module_span *span, const onv_module_span *list)
{
    return span != NULL && span->around == list && span->last_op == list->last_op &&
           strspn(span->path + list->length + 1, "0123456789") == span->length - list->length - 1;
}

/* The outermost module that begins with operation `at` and ends inside the segment. */
static const onv_module_span *whole_module(const onv_scopes *scopes, uint32_t at, uint32_t last_op)
{
    const onv_module_span *whole = NULL, *span = scopes->module_of[at];
    for (; span != NULL && span->first_op == at; span = span->around)
        if (span->last_op <= last_op && span->is_one_call && !is_only_member(whole, span))
            whole = span;
    return whole;
}

/* --- Chains ------------------------------------------------------------------------------------ */

/* What modules hand to each other, within one segment. */
typedef struct chain {
    onv_namer *namer;
    uint32_t first_mark;          /* of the first module */
    uint32_t first_op;            /* of the segment */
    onv_tape_segment before, now; /* modules */
    const char *path;             /* of the present one, `length` bytes */
    size_t length;
    uint32_t n_beside; /* what the first module takes beside the result of another one */
    bool is_first, is_broken;
} chain;

/* A buffer of a program that is none of the module's: forward is given it. */
static bool is_given(const chain *c, const onv_eager_storage *storage)
{
    return c->namer->model->program != NULL && storage->kind == ONV_STORAGE_BUFFER &&
           storage->label != NULL && strncmp(storage->label, c->path, c->length) != 0;
}

/* A tensor that the module reads. */
static void read(chain *c, uint32_t tensor, uint32_t *handed, uint32_t *n_outside)
{
    const onv_eager *eager = c->namer->eager;
    const onv_eager_storage *storage = &eager->storages.at[eager->tensors.at[tensor].storage];
    uint32_t made = c->namer->made_by[tensor], *entered = &c->namer->entered[tensor];
    bool is_fixed = storage->kind != ONV_STORAGE_INPUT && storage->kind <= ONV_STORAGE_CONSTANT;
    if ((is_fixed && !is_given(c, storage)) || storage->is_cached || storage->on_host) return;
    if (made != UINT32_MAX && made >= c->now.first_op) return;
    if (made != UINT32_MAX && made >= c->first_op) {
        c->is_broken |=
            made < c->before.first_op || (*handed != ONV_NO_TENSOR && *handed != tensor);
        *handed = tensor;
        return;
    }
    if (*entered == c->namer->n_marks) return; /* by this module */
    c->is_broken |= !c->is_first && *entered < c->first_mark;
    *entered = c->namer->n_marks;
    (*n_outside)++;
}

/* The next module of the segment. */
static void add_module(chain *c, const onv_module_span *span, uint32_t first_op)
{
    const onv_tape_segment module = {first_op, span->last_op};
    const onv_eager *eager = c->namer->eager;
    uint32_t handed = ONV_NO_TENSOR, n_outside = 0;
    c->is_first = module.first_op == c->first_op;
    c->before = c->now;
    c->now = module;
    c->path = c->namer->scopes->path_of[first_op];
    c->length = span->length;
    c->namer->n_marks++;
    if (c->is_first) c->first_mark = c->namer->n_marks;
    for (uint32_t i = module.first_op; i <= module.last_op; i++)
        for (uint32_t k = 0; k < eager->ops.at[i].n_in; k++)
            read(c, eager->ops.at[i].in[k].tensor, &handed, &n_outside);
    if (c->is_first) {
        c->n_beside = n_outside > 0 ? n_outside - 1 : 0;
        return;
    }
    c->is_broken |= handed == ONV_NO_TENSOR || n_outside != c->n_beside;
    for (uint32_t i = c->before.first_op; i <= c->before.last_op; i++) {
        for (uint32_t k = 0; k < eager->ops.at[i].n_out; k++) {
            uint32_t out = eager->ops.at[i].out[k], last = c->namer->last_read[out];
            c->is_broken |= last != UINT32_MAX && last > module.last_op;
        }
    }
}

/* --- Segments ---------------------------------------------------------------------------------- */

onv_status onv_namer_init(onv_namer *namer, onv_model *model, const onv_eager *eager,
                          const onv_scopes *scopes, const onv_borders *borders, onv_arena *arena,
                          onv_error *err)
{
    size_t n = eager->tensors.count;
    *namer = (onv_namer){.model = model,
                         .eager = eager,
                         .scopes = scopes,
                         .borders = borders,
                         .arena = arena,
                         .made_by = ONV_ARENA_ARRAY(arena, uint32_t, n),
                         .last_read = ONV_ARENA_ARRAY(arena, uint32_t, n),
                         .entered = ONV_ARENA_ARRAY(arena, uint32_t, n)};
    if (namer->made_by == NULL || namer->last_read == NULL || namer->entered == NULL)
        return onv_fail_memory(err);
    for (size_t i = 0; i < n; i++) namer->made_by[i] = namer->last_read[i] = UINT32_MAX;
    for (uint32_t i = 0; i < eager->ops.count; i++) {
        const onv_eager_op *op = &eager->ops.at[i];
        for (uint32_t k = 0; k < op->n_in; k++) namer->last_read[op->in[k].tensor] = i;
        for (uint32_t k = 0; k < op->n_out; k++) namer->made_by[op->out[k]] = i;
    }
    for (size_t i = 0; i < eager->outputs.count; i++)
        namer->last_read[eager->outputs.at[i]] = (uint32_t)eager->ops.count;
    return ONV_OK;
}

/* The modules that the segment consists of, one after the other: `text` gets them where it is not
 * NULL. Returns the length with the separators, 0 where the segment is not of whole modules. */
static size_t list_modules(const onv_scopes *scopes, onv_tape_segment segment, char *text,
                           uint32_t *n_modules)
{
    size_t length = 0;
    *n_modules = 0;
    for (uint32_t i = segment.first_op; i <= segment.last_op; i++) {
        const char *path = scopes->path_of[i];
        if (path == NULL) continue;
        const onv_module_span *span = whole_module(scopes, i, segment.last_op);
        if (span == NULL) return 0;
        if (text != NULL) {
            if (length > 0) text[length - 1] = ' ';
            memcpy(text + length, path, span->length);
        }
        length += span->length + 1;
        (*n_modules)++;
        i = span->last_op;
    }
    return length;
}

/* Of a segment of whole modules: do they follow each other? */
static bool find_chain(onv_namer *namer, onv_tape_segment segment)
{
    chain c = {.namer = namer, .first_op = segment.first_op};
    for (uint32_t i = segment.first_op; i <= segment.last_op && !c.is_broken; i++) {
        const onv_module_span *span = whole_module(namer->scopes, i, segment.last_op);
        if (span == NULL) return false; /* something between modules */
        add_module(&c, span, i);
        i = span->last_op;
    }
    return !c.is_broken;
}

/* --- Borders ----------------------------------------------------------------------------------- */

static bool is_view(const onv_eager *eager, const onv_eager_op *op)
{
    return !op->in_place && op->n_in > 0 && op->n_out > 0 && op->n_saved == 0 &&
           eager->tensors.at[op->in[0].tensor].storage == eager->tensors.at[op->out[0]].storage;
}

/* The place before `op`, for what begins and what ends there: views may as well stand on its other side. */
static uint32_t place_at(const onv_namer *namer, uint32_t op)
{
    const onv_border *before = namer->borders->before;
    const onv_eager_op *ops = namer->eager->ops.at;
    uint32_t at = op;
    while (at < namer->eager->first_loss_op && !onv_border_is_known(&before[at]) &&
           is_view(namer->eager, &ops[at]))
        at++;
    if (onv_border_is_known(&before[at])) return at;
    for (at = op;
         at > 0 && !onv_border_is_known(&before[at]) && is_view(namer->eager, &ops[at - 1]);)
        at--;
    return at;
}

uint32_t onv_namer_place(const onv_namer *namer, uint32_t op)
{
    uint32_t place = place_at(namer, op);
    return onv_border_is_known(&namer->borders->before[place]) ? place : op;
}

bool onv_namer_knows_place(const onv_namer *namer, uint32_t op)
{
    return onv_border_is_known(&namer->borders->before[place_at(namer, op)]);
}

onv_status onv_namer_nodes(onv_namer *namer, const char *const **nodes, onv_error *err)
{
    uint32_t n = namer->eager->first_loss_op;
    *nodes = namer->nodes;
    if (namer->nodes != NULL) return ONV_OK;
    const char **texts = ONV_ARENA_ARRAY(namer->arena, const char *, n);
    uint32_t *counts = ONV_ARENA_ARRAY(namer->arena, uint32_t, n);
    if (texts == NULL || counts == NULL) return onv_fail_memory(err);
    onv_strings names;
    onv_strings_init(&names, namer->arena);
    for (uint32_t i = 0; i < n && !namer->arena->failed; i++) {
        const char *name = op_name(namer->model, &namer->eager->ops.at[i]);
        const char *same = name != NULL ? onv_intern(&names, name) : NULL;
        if (same == NULL) break;
        texts[i] = onv_arena_printf(namer->arena, "node %u %s",
                                    (unsigned)++counts[onv_string_number(same)], name);
    }
    onv_strings_cleanup(&names);
    if (n > 0 && texts[n - 1] == NULL) return onv_fail_memory(err);
    *nodes = namer->nodes = texts;
    return ONV_OK;
}

onv_status onv_place_name(onv_namer *namer, uint32_t op, const char **text, onv_error *err)
{
    const char *const *nodes;
    const onv_border *border = &namer->borders->before[place_at(namer, op)];
    onv_arena *arena = &namer->model->arena;
    if (onv_border_is_known(border)) {
        *text = onv_border_text(border, arena);
    } else {
        ONV_TRY(onv_namer_nodes(namer, &nodes, err));
        *text = onv_arena_strndup(arena, nodes[op], strlen(nodes[op]));
    }
    return *text != NULL ? ONV_OK : onv_fail_memory(err);
}

static bool is_chain(onv_namer *namer, onv_tape_segment segment, onv_tape_segment *whole)
{
    uint32_t n_modules;
    onv_tape_segment found = {UINT32_MAX, 0};
    if (list_modules(namer->scopes, segment, NULL, &n_modules) == 0) return false;
    for (uint32_t i = segment.first_op; i <= segment.last_op; i++) {
        if (namer->scopes->path_of[i] == NULL) continue;
        if (found.first_op == UINT32_MAX) found.first_op = i;
        found.last_op = i;
    }
    *whole = found;
    return n_modules == 1 || find_chain(namer, segment);
}

bool onv_segments_are_chains(onv_namer *namer, const onv_tape_segment *at, uint32_t n,
                             onv_tape_segment *whole)
{
    onv_tape_segment one;
    for (uint32_t i = 0; i < n; i++)
        if (!is_chain(namer, at[i], whole != NULL ? &whole[i] : &one)) return false;
    return true;
}

/* --- All ---------------------------------------------------------------------------------------- */

onv_status onv_segment_name(onv_namer *namer, onv_tape_segment segment, onv_segment_names *names,
                            onv_error *err)
{
    onv_model *model = namer->model;
    *names = (onv_segment_names){.first = op_name(model, &namer->eager->ops.at[segment.first_op]),
                                 .last = op_name(model, &namer->eager->ops.at[segment.last_op])};
    if (names->first == NULL || names->last == NULL) return onv_fail_memory(err);
    ONV_TRY(onv_place_name(namer, segment.first_op, &names->begin, err));
    ONV_TRY(onv_place_name(namer, segment.last_op + 1, &names->end, err));
    names->is_placed = onv_namer_knows_place(namer, segment.first_op) &&
                       onv_namer_knows_place(namer, segment.last_op + 1);
    size_t length = list_modules(namer->scopes, segment, NULL, &names->n_modules);
    if (length == 0) return ONV_OK;
    char *text = onv_arena_alloc(&model->arena, length);
    if (text == NULL) return onv_fail_memory(err);
    list_modules(namer->scopes, segment, text, &names->n_modules);
    text[length - 1] = '\0';
    names->modules = text;
    names->is_chain = names->n_modules == 1 || find_chain(namer, segment);
    return ONV_OK;
}
