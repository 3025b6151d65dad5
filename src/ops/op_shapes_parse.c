/* The lines of an --op-shapes file. Grammar (terms: op_shapes_terms.c):
 *
 *     line    = ["!"] [domain "::"] name ["@" version] "(" [input {"," input}] ")" [where] ":" out {"," out} [";" sum]
 *     input   = name [form {"or" form}]
 *     form    = "[" [axis {"," axis}] "]"
 *     axis    = "..." | [size "*"] size
 *     size    = "_" | number | "attr" "." name ["." number] | dim
 *     where   = "where" dim "=" sum {"," dim "=" sum}
 *     out     = "?" | "like" input [dtype] | list {"or" list} [dtype]
 *     list    = "[" [item {"," item}] "]"
 *     dtype   = type | "attr" "." name "or" type
 *     type    = "f16", "int64" ... | "like" input ["or" input]
 *     item    = input "." [integer] ":" [integer] | sum ["?"]
 */
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "ops/op_shapes.h"

/* --- Outputs ----------------------------------------------------------------------------------- */

/* x.1:-1, where it is one; otherwise the parser stays where it was. */
static onv_status slice(onv_shape_parser *p, onv_shape_item *item, bool *found)
{
    onv_shape_skip_space(p);
    const char *from = p->at, *name = onv_shape_word(p, "");
    *item = (onv_shape_item){.end = INT64_MAX};
    item->input = name != NULL ? onv_shape_find(p->inputs, p->n_inputs, name) : -1;
    *found = false;
    if (item->input >= 0 && onv_shape_take(p, '.') && !onv_shape_take_word(p, "rank") &&
        !onv_shape_take_word(p, "elems")) {
        if (!onv_shape_is_at(p, ':')) ONV_TRY(onv_shape_integer(p, &item->first));
        *found = onv_shape_take(p, ':');
    }
    if (!*found) {
        p->at = from;
        return ONV_OK;
    }
    if (onv_shape_is_at(p, ',') || onv_shape_is_at(p, ']')) return ONV_OK;
    return onv_shape_integer(p, &item->end);
}

static onv_status parse_item(onv_shape_parser *p, onv_shape_item *item)
{
    bool found;
    ONV_TRY(slice(p, item, &found));
    if (found) return ONV_OK;
    ONV_TRY(onv_shape_term(p, item));
    item->optional = onv_shape_take(p, '?');
    return ONV_OK;
}

/* "float16", or short "f16". */
static onv_dtype dtype_of(const char *name)
{
    static const struct {
        const char *brief, *full;
    } prefixes[] = {{"f", "float"}, {"bf", "bfloat"}, {"i", "int"}, {"u", "uint"}};
    char full[64];
    snprintf(full, sizeof full, "%s", name);
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        size_t length = strlen(prefixes[i].brief);
        if (strncmp(name, prefixes[i].brief, length) == 0 && name[length] >= '0' &&
            name[length] <= '9')
            snprintf(full, sizeof full, "%s%s", prefixes[i].full, name + length);
    }
    for (int t = ONV_UNDEFINED + 1; t < ONV_DTYPE_COUNT; t++)
        if (strcmp(onv_dtype_name((onv_dtype)t), full) == 0) return (onv_dtype)t;
    return ONV_UNDEFINED;
}

/* like x, like x or y (after "like") */
static onv_status parse_dtype_like(onv_shape_parser *p, onv_shape_out *out)
{
    ONV_TRY(onv_shape_input(p, &out->dtype_like));
    out->dtype_else = out->dtype_like;
    return onv_shape_take_word(p, "or") ? onv_shape_input(p, &out->dtype_else) : ONV_OK;
}

static onv_status parse_dtype(onv_shape_parser *p, onv_shape_out *out)
{
    onv_shape_code attr;
    if (onv_shape_take_word(p, "like")) return parse_dtype_like(p, out);
    if (onv_shape_take_word(p, "attr")) {
        ONV_TRY(onv_shape_attribute(p, &attr));
        out->dtype_attr = attr.name;
        if (!onv_shape_take_word(p, "or"))
            return onv_shape_refuse(p, "'or' and an element type are expected");
        if (onv_shape_take_word(p, "like")) return parse_dtype_like(p, out);
    }
    onv_shape_skip_space(p);
    const char *from = p->at, *name = onv_shape_word(p, "");
    if (name == NULL) return ONV_OK;
    out->dtype = (uint8_t)dtype_of(name);
    if (out->dtype != ONV_UNDEFINED) return ONV_OK;
    p->at = from;
    return onv_shape_refuse(p, "'%.32s' is not an element type", name);
}

static onv_status parse_list(onv_shape_parser *p, onv_shape_list *list)
{
    onv_shape_item items[ONV_MAX_RANK];
    *list = (onv_shape_list){.n_items = 0};
    while (!onv_shape_is_at(p, ']')) {
        if (list->n_items > 0) ONV_TRY(onv_shape_need(p, ','));
        if (list->n_items == ONV_MAX_RANK)
            return onv_shape_refuse(p, "more than %d dims", ONV_MAX_RANK);
        ONV_TRY(parse_item(p, &items[list->n_items]));
        list->n_items++;
    }
    list->item = onv_arena_copy(p->arena, items, list->n_items * sizeof *items);
    if (list->item == NULL) return onv_fail_memory(p->err);
    return onv_shape_need(p, ']');
}

/* Lists, one for each form of the first input where there are several. */
static onv_status parse_lists(onv_shape_parser *p, uint32_t n_forms, onv_shape_out *out)
{
    onv_shape_list lists[ONV_SHAPE_MAX_FORMS];
    for (;;) {
        ONV_TRY(parse_list(p, &lists[out->n_lists]));
        out->n_lists++;
        if (!onv_shape_take_word(p, "or")) break;
        if (out->n_lists >= n_forms)
            return onv_shape_refuse(p, "the first input has %u forms", n_forms);
        ONV_TRY(onv_shape_need(p, '['));
    }
    if (out->n_lists > 1 && out->n_lists != n_forms)
        return onv_shape_refuse(p, "the first input has %u forms", n_forms);
    out->list = onv_arena_copy(p->arena, lists, out->n_lists * sizeof *lists);
    return out->list != NULL ? ONV_OK : onv_fail_memory(p->err);
}

static onv_status parse_out(onv_shape_parser *p, const onv_custom_op *t, onv_shape_out *out)
{
    *out = (onv_shape_out){.known = true, .dtype_like = p->n_inputs > 0 ? 0 : -1};
    if (onv_shape_take(p, '?')) {
        out->known = false;
        return ONV_OK;
    }
    if (onv_shape_take_word(p, "like")) {
        ONV_TRY(onv_shape_input(p, &out->like));
        out->dtype_like = out->dtype_else = out->like;
    } else if (onv_shape_take(p, '[')) {
        ONV_TRY(parse_lists(p, t->n_inputs > 0 ? t->ins[0].n_forms : 1, out));
    } else {
        return onv_shape_refuse(p, "an output is expected: [...], like INPUT or ?");
    }
    return parse_dtype(p, out);
}

/* --- Lines ------------------------------------------------------------------------------------- */

static onv_status parse_name(onv_shape_parser *p, onv_custom_op *t)
{
    enum { LONGEST_VERSION = INT32_MAX };
    int64_t version = 1;
    const char *name = onv_shape_word(p, ".-");
    if (name == NULL) return onv_shape_refuse(p, "the name of an operator is expected");
    t->domain = "";
    if (p->end - p->at >= 2 && p->at[0] == ':' && p->at[1] == ':') {
        p->at += 2;
        t->domain = strcmp(name, "ai.onnx") == 0 ? "" : name;
        name = onv_shape_word(p, ".-");
        if (name == NULL) return onv_shape_refuse(p, "the name of an operator is expected");
    }
    t->row.name = name;
    if (onv_shape_take(p, '@')) ONV_TRY(onv_shape_number(p, &version));
    if (version < 1 || version > LONGEST_VERSION)
        return onv_shape_refuse(p, "that is not a version");
    t->row.since = (int32_t)version;
    return ONV_OK;
}

/* The name of an input or a dim. */
static onv_status parse_new_name(onv_shape_parser *p, const char *what, const char **name)
{
    static const char *const reserved[] = {"attr",  "like", "min", "max", "ceil",
                                           "exact", "upto", "if",  "or"};
    *name = onv_shape_word(p, "");
    if (*name == NULL) return onv_shape_refuse(p, "the name of %s is expected", what);
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++)
        if (strcmp(*name, reserved[i]) == 0)
            return onv_shape_refuse(p, "no input and no dim can be called '%s'", *name);
    return ONV_OK;
}

/* The number of a dim that has a name, which may be new. */
static onv_status parse_dim_name(onv_shape_parser *p, int64_t *number)
{
    const char *name;
    ONV_TRY(parse_new_name(p, "a dim", &name));
    *number = -1;
    if (strcmp(name, "_") == 0) return ONV_OK;
    *number = onv_shape_find(p->names, p->n_names, name);
    if (*number >= 0) return ONV_OK;
    if (onv_shape_find(p->inputs, p->n_inputs, name) >= 0)
        return onv_shape_refuse(p, "an input is called '%.32s'", name);
    if (p->n_names == ONV_CUSTOM_OP_MAX_LIST)
        return onv_shape_refuse(p, "more than %d names of dims", ONV_CUSTOM_OP_MAX_LIST);
    *number = p->n_names;
    p->names[p->n_names++] = name;
    return ONV_OK;
}

/* One of x[a, 3, attr.k, _]: what the dim is. */
static onv_status parse_size(onv_shape_parser *p, onv_shape_code *is)
{
    onv_shape_skip_space(p);
    *is = (onv_shape_code){.op = ONV_SHAPE_NUMBER};
    if (p->at < p->end && *p->at >= '0' && *p->at <= '9') return onv_shape_number(p, &is->a);
    if (onv_shape_take_word(p, "attr")) return onv_shape_attribute(p, is);
    is->op = ONV_SHAPE_NAMED;
    return parse_dim_name(p, &is->a);
}

static onv_status parse_axis(onv_shape_parser *p, onv_shape_axis *axis)
{
    *axis = (onv_shape_axis){.is_product = false};
    ONV_TRY(parse_size(p, &axis->is));
    axis->is_product = onv_shape_take(p, '*');
    if (!axis->is_product) return ONV_OK;
    axis->times = axis->is;
    if (axis->times.op == ONV_SHAPE_NAMED && axis->times.a < 0)
        return onv_shape_refuse(p, "'_' is not a factor");
    return parse_size(p, &axis->is);
}

static onv_status parse_form(onv_shape_parser *p, onv_shape_form *form)
{
    onv_shape_axis axes[ONV_MAX_RANK];
    *form = (onv_shape_form){.rest = -1};
    for (bool first = true; !onv_shape_is_at(p, ']'); first = false) {
        if (!first) ONV_TRY(onv_shape_need(p, ','));
        if (onv_shape_take(p, '.')) {
            if (form->rest >= 0) return onv_shape_refuse(p, "'...' stands once");
            ONV_TRY(onv_shape_need(p, '.'));
            ONV_TRY(onv_shape_need(p, '.'));
            form->rest = (int32_t)form->n_axes;
            continue;
        }
        if (form->n_axes == ONV_MAX_RANK)
            return onv_shape_refuse(p, "more than %d dims", ONV_MAX_RANK);
        ONV_TRY(parse_axis(p, &axes[form->n_axes]));
        form->n_axes++;
    }
    p->at++;
    form->axis = onv_arena_copy(p->arena, axes, form->n_axes * sizeof *axes);
    return form->axis != NULL ? ONV_OK : onv_fail_memory(p->err);
}

/* What stands in brackets behind an input; without them its shape may be any. */
static onv_status parse_forms(onv_shape_parser *p, onv_shape_in *in)
{
    onv_shape_form forms[ONV_SHAPE_MAX_FORMS];
    *in = (onv_shape_in){.n_forms = 0};
    if (!onv_shape_take(p, '[')) return ONV_OK;
    for (;;) {
        ONV_TRY(parse_form(p, &forms[in->n_forms]));
        in->n_forms++;
        if (!onv_shape_take_word(p, "or")) break;
        if (in->n_forms == ONV_SHAPE_MAX_FORMS)
            return onv_shape_refuse(p, "more than %d forms", ONV_SHAPE_MAX_FORMS);
        ONV_TRY(onv_shape_need(p, '['));
    }
    in->form = onv_arena_copy(p->arena, forms, in->n_forms * sizeof *forms);
    return in->form != NULL ? ONV_OK : onv_fail_memory(p->err);
}

/* n = a / 2, m = ... */
static onv_status parse_wheres(onv_shape_parser *p, onv_custom_op *t)
{
    onv_shape_where wheres[ONV_CUSTOM_OP_MAX_LIST];
    if (!onv_shape_take_word(p, "where")) return ONV_OK;
    do {
        if (t->n_wheres == ONV_CUSTOM_OP_MAX_LIST)
            return onv_shape_refuse(p, "more than %d sizes", ONV_CUSTOM_OP_MAX_LIST);
        onv_shape_where where = {.name = -1};
        ONV_TRY(parse_dim_name(p, &where.name));
        if (where.name < 0) return onv_shape_refuse(p, "the name of a dim is expected");
        ONV_TRY(onv_shape_need(p, '='));
        onv_shape_skip_space(p);
        const char *from = p->at;
        ONV_TRY(onv_shape_term(p, &where.is));
        where.text = onv_arena_strndup(p->arena, from, (size_t)(p->at - from));
        if (where.text == NULL) return onv_fail_memory(p->err);
        wheres[t->n_wheres++] = where;
    } while (onv_shape_take(p, ','));
    t->wheres = onv_arena_copy(p->arena, wheres, t->n_wheres * sizeof *wheres);
    return t->wheres != NULL ? ONV_OK : onv_fail_memory(p->err);
}

static onv_status parse_inputs(onv_shape_parser *p, onv_custom_op *t)
{
    onv_shape_in ins[ONV_CUSTOM_OP_MAX_LIST];
    ONV_TRY(onv_shape_need(p, '('));
    p->n_inputs = p->n_names = 0;
    while (!onv_shape_is_at(p, ')')) {
        const char *name;
        if (p->n_inputs > 0) ONV_TRY(onv_shape_need(p, ','));
        ONV_TRY(parse_new_name(p, "an input", &name));
        if (p->n_inputs == ONV_CUSTOM_OP_MAX_LIST)
            return onv_shape_refuse(p, "more than %d inputs", ONV_CUSTOM_OP_MAX_LIST);
        if (onv_shape_find(p->inputs, p->n_inputs, name) >= 0)
            return onv_shape_refuse(p, "two inputs are called '%.32s'", name);
        if (onv_shape_find(p->names, p->n_names, name) >= 0)
            return onv_shape_refuse(p, "a dim is called '%.32s'", name);
        p->inputs[p->n_inputs] = name;
        ONV_TRY(parse_forms(p, &ins[p->n_inputs++]));
    }
    p->at++;
    ONV_TRY(parse_wheres(p, t));
    t->n_inputs = p->n_inputs;
    t->n_names = p->n_names;
    t->inputs = onv_arena_copy(p->arena, p->inputs, p->n_inputs * sizeof *p->inputs);
    t->names = onv_arena_copy(p->arena, p->names, p->n_names * sizeof *p->names);
    t->ins = onv_arena_copy(p->arena, ins, p->n_inputs * sizeof *ins);
    bool good = t->inputs != NULL && t->names != NULL && t->ins != NULL;
    return good ? ONV_OK : onv_fail_memory(p->err);
}

static onv_status parse_outs(onv_shape_parser *p, onv_custom_op *t)
{
    onv_shape_out outs[ONV_CUSTOM_OP_MAX_LIST];
    ONV_TRY(onv_shape_need(p, ':'));
    do {
        if (t->n_outs == ONV_CUSTOM_OP_MAX_LIST)
            return onv_shape_refuse(p, "more than %d outputs", ONV_CUSTOM_OP_MAX_LIST);
        ONV_TRY(parse_out(p, t, &outs[t->n_outs]));
        t->n_outs++;
    } while (onv_shape_take(p, ','));
    if (onv_shape_take(p, ';')) {
        ONV_TRY(onv_shape_term(p, &t->macs));
        t->row.macs = onv_op_shapes_macs;
    }
    t->outs = onv_arena_copy(p->arena, outs, t->n_outs * sizeof *outs);
    return t->outs != NULL ? ONV_OK : onv_fail_memory(p->err);
}

static onv_status parse_signature(onv_shape_parser *p, onv_custom_op *t)
{
    ONV_TRY(parse_inputs(p, t));
    ONV_TRY(parse_outs(p, t));
    onv_shape_skip_space(p);
    return p->at == p->end ? ONV_OK : onv_shape_refuse(p, "nothing more is expected here");
}

static onv_status parse_line(onv_shape_parser *p, onv_custom_op *t)
{
    t->overrides = onv_shape_take(p, '!');
    ONV_TRY(parse_name(p, t));
    ONV_TRY(parse_signature(p, t));
    t->file = p->path;
    t->line = p->line;
    t->row.infer = onv_op_shapes_infer;
    t->row.in.min = (int16_t)t->n_inputs;
    t->row.in.max = t->row.out.max = ONV_OP_MAX_ARITY;
    return ONV_OK;
}

static onv_status add_row(onv_shape_parser *p, onv_op_shapes *table, const onv_custom_op ***link,
                          onv_custom_op *t)
{
    for (const onv_custom_op *other = table->first; other != NULL; other = other->next)
        if (other->row.since == t->row.since && strcmp(other->row.name, t->row.name) == 0 &&
            strcmp(other->domain, t->domain) == 0) {
            p->at = p->start;
            return onv_shape_refuse(p, "'%.64s' is already declared in line %u", t->row.name,
                                    other->line);
        }
    if (table->count == ONV_CUSTOM_OP_MAX_ROWS)
        return onv_shape_refuse(p, "more than %d operators", ONV_CUSTOM_OP_MAX_ROWS);
    **link = t;
    *link = &t->next;
    table->count++;
    return ONV_OK;
}

static onv_status parse_text(onv_shape_parser *p, onv_op_shapes *table, const char *text,
                             size_t bytes)
{
    const onv_custom_op **link = &table->first;
    const char *end = text + bytes;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        p->start = p->at = text;
        p->end = newline != NULL ? newline : end;
        p->line++;
        text = newline != NULL ? newline + 1 : end;
        if (p->end - p->start > ONV_CUSTOM_OP_MAX_LINE)
            return onv_shape_refuse(p, "the line is longer than %d bytes", ONV_CUSTOM_OP_MAX_LINE);
        const char *comment = memchr(p->start, '#', (size_t)(p->end - p->start));
        if (comment != NULL) p->end = comment;
        onv_shape_skip_space(p);
        if (p->at == p->end) continue;
        onv_custom_op *t = ONV_ARENA_ARRAY(p->arena, onv_custom_op, 1);
        if (t == NULL) return onv_fail_memory(p->err);
        ONV_TRY(parse_line(p, t));
        ONV_TRY(add_row(p, table, &link, t));
    }
    return p->arena->failed ? onv_fail_memory(p->err) : ONV_OK;
}

/* Room for the code of one term is given for the time of `parse`. */
static bool make_room(onv_shape_parser *p, size_t bytes)
{
    p->most_code = (uint32_t)(bytes < ONV_CUSTOM_OP_MAX_CODE ? bytes : ONV_CUSTOM_OP_MAX_CODE);
    p->code = onv_heap_alloc(((size_t)p->most_code + 1) * sizeof *p->code);
    return p->code != NULL;
}

onv_status onv_op_shapes_parse(onv_op_shapes *table, onv_arena *arena, const char *path,
                               const char *text, size_t bytes, onv_error *err)
{
    *table = (onv_op_shapes){0};
    onv_shape_parser p = {.arena = arena, .err = err};
    p.path = onv_arena_strndup(arena, path, strlen(path));
    onv_status status = p.path == NULL || !make_room(&p, bytes)
                            ? onv_fail_memory(err)
                            : parse_text(&p, table, text, bytes);
    onv_heap_free(p.code);
    return status;
}

onv_status onv_op_shapes_compile(const onv_op *row, onv_arena *arena, const onv_op **compiled,
                                 onv_error *err)
{
    const char *line = row->with;
    size_t bytes = strlen(line);
    onv_custom_op *t = ONV_ARENA_ARRAY(arena, onv_custom_op, 1);
    onv_shape_parser p = {.arena = arena, .err = err, .path = row->name, .line = 1};
    p.start = p.at = line;
    p.end = p.at + bytes;
    if (t == NULL || !make_room(&p, bytes)) return onv_fail_memory(err);
    t->row = *row;
    t->row.says = false;
    onv_status status = parse_signature(&p, t);
    if (status == ONV_OK && arena->failed) status = onv_fail_memory(err);
    onv_heap_free(p.code);
    *compiled = &t->row;
    return status;
}
