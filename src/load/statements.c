#include "load/statements.h"

#include <string.h>

#include "base/fail.h"

/* --- A line of code ---------------------------------------------------------------------------- */

static bool opens(char c)
{
    return c == '(' || c == '[' || c == '{';
}

static bool closes(char c)
{
    return c == ')' || c == ']' || c == '}';
}

static bool is_one_of(char c, const char *bytes)
{
    return c != '\0' && strchr(bytes, c) != NULL;
}

/* A statement of one line. */
typedef struct statement {
    onv_text code;
    bool binds;
    onv_text targets,
        value; /* at both sides of its `=`; the value is all of it where it binds nothing */
    char sign; /* of `+=`; or 0 */
} statement;

/* An argument `name=value` is no statement: it ends with a comma, or with a bracket too many, or others follow. */
static statement read_statement(onv_text code)
{
    statement none = {.code = code, .targets = {code.at, 0}, .value = code}, s = none;
    int depth = 0;
    bool listed = false, again = false;
    for (size_t i = 0; i < code.length; i++) {
        char c = code.at[i], before = (char)(i > 0 ? code.at[i - 1] : ' ');
        depth += opens(c) - closes(c);
        if (depth < 0) return none;
        again |= c == '=' && depth == 0 && s.binds && listed;
        listed |= c == ',' && depth == 0 && s.binds;
        if (c != '=' || depth > 0 || s.binds) continue;
        s.binds = true;
        s.value = onv_text_skip(code, i + 1);
        if (onv_text_first(s.value) == '=' || is_one_of(before, "=!<>:")) return none;
        s.sign = (char)(is_one_of(before, "+-*/@%&|^") ? before : '\0');
        s.targets.length = i - (s.sign != '\0');
    }
    if (!s.binds) return none;
    bool is_spaced = s.sign != '\0' || onv_text_ends(s.targets, " ");
    bool is_argument = onv_text_ends(code, ",") || again;
    return is_spaced || (depth == 0 && !is_argument) ? s : none;
}

static bool is_member_of_dictionary(onv_text behind)
{
    return onv_text_begins(behind, "[\"") || onv_text_begins(behind, "['") ||
           onv_text_begins(behind, "[f\"") || onv_text_begins(behind, "[f'");
}

/* Of a name and its members: `self.x`. */
static size_t path_length(onv_text t)
{
    size_t n = 0;
    while (n < t.length && (onv_is_word(t.at[n]) || t.at[n] == '.')) n++;
    return n;
}

/* One name that is bound: `x`, `(x`, `self.x`, `x: Tensor`. Empty: it is none. A member of a dictionary, `x["key"]`:
 * nothing takes its place. */
static onv_text target(onv_text t)
{
    t = onv_text_trim(t);
    while (is_one_of(onv_text_first(t), "([*")) t = onv_text_skip(t, 1);
    size_t n = path_length(t);
    onv_text behind = onv_text_trim(onv_text_skip(t, n));
    if (n > 0 && is_member_of_dictionary(behind)) return onv_text_of(ONV_STATEMENT_MEMBER);
    bool ends = behind.length == 0 || is_one_of(behind.at[0], ":)]");
    return (onv_text){t.at, ends ? n : 0};
}

static uint32_t count(onv_text code, char c)
{
    uint32_t n = 0;
    for (size_t i = 0; i < code.length; i++) n += code.at[i] == c;
    return n;
}

static bool calls(onv_text code, onv_text callee)
{
    return onv_text_count_calls(code, callee, "") > 0;
}

/* `x.relu_()`, once. */
static bool calls_in_place(onv_text code, onv_text callee)
{
    return callee.length > 0 && onv_text_count_calls(code, callee, "_") == 1;
}

/* `y[:, i] = v`, and the calls that the exporter writes as index_put: index_add_ and index_copy_. */
static bool puts_in_place(const statement *s, onv_text operation)
{
    if (!onv_text_is(operation, "index_put")) return false;
    if (onv_text_has(s->code, "index_add_(") || onv_text_has(s->code, "index_copy_(")) return true;
    return s->binds && s->sign == '\0' && onv_text_ends(onv_text_trim(s->targets), "]");
}

/* The name and those that it is a member of, at the end of the text: `self.layers`. */
static onv_text last_path(onv_text t)
{
    size_t n = 0;
    while (n < t.length && path_length((onv_text){t.at + t.length - n - 1, 1}) == 1) n++;
    return onv_text_skip(t, t.length - n);
}

/* Of what the code calls: attributes alone, `self.query(x.relu())`, one of them the module's own. A member of a list is called by
 * a name, `layer(x)`, or by its place, `self.layers[i](x)`. */
static bool calls_methods(onv_text code)
{
    bool is_own = false;
    for (size_t i = 1; i < code.length; i++) {
        if (code.at[i] != '(') continue;
        onv_text before = {code.at, i}, name = onv_text_last_word(before);
        if (name.length == 0 && !is_one_of(code.at[i - 1], ")]")) continue; /* it groups */
        if (name.length == 0 || name.at == code.at || name.at[-1] != '.') return false;
        is_own |= onv_text_begins(last_path(before), "self.");
    }
    return is_own;
}

/* `[layer(x) for layer in self.layers]` and the like: one run of the line makes all calls. */
static bool makes_several(onv_text code)
{
    return onv_text_has(code, " for ") || onv_text_has(code, "lambda");
}

/* nn.Sequential, whose members may have names instead of numbers. */
static const char of_sequential[] = "input = module(input)";

/* How the code calls what is called so. A member of a list has a number, and another name there. */
static char kind_of(onv_text code, onv_text callee)
{
    bool is_member = callee.length > 0 && onv_text_is_number(callee) && !calls_methods(code);
    if (is_member) return makes_several(code) ? ONV_STATEMENT_SHOWS : ONV_STATEMENT_LOOPS;
    if (onv_text_is(code, of_sequential)) return ONV_STATEMENT_LOOPS;
    if (onv_text_has(code, ".propagate(") || onv_text_has(code, ".edge_updater("))
        return ONV_STATEMENT_HIDES;
    uint32_t n_calls = count(code, '(');
    if (n_calls == 0) return ONV_STATEMENT_SHOWS;
    if (!calls(code, callee)) return ONV_STATEMENT_HIDES;
    return n_calls == 1 ? ONV_STATEMENT_CALLS : ONV_STATEMENT_SHOWS;
}

/* Operators that Python writes by signs, and calls by methods of other names. */
static bool shows_sign(onv_text code, onv_text operation)
{
    static const struct {
        const char *operation, *sign;
    } signs[] = {{"add", "+"},        {"sub", "-"},      {"rsub", "-"},      {"mul", "*"},
                 {"div", "/"},        {"matmul", "@"},   {"pow", "**"},      {"neg", "-"},
                 {"slice", "["},      {"select", "["},   {"index", "["},     {"unsqueeze", "["},
                 {"to", ".float("},   {"to", ".long("},  {"to", ".type("},   {"to", ".half("},
                 {"to", ".double("},  {"to", ".int("},   {"to", ".bool("},   {"floor_divide", "//"},
                 {"reciprocal", "/"}, {"__and__", "&"},  {"__or__", "|"},    {"bitwise_not", "~"},
                 {"lt", "<"},         {"le", "<="},      {"gt", ">"},        {"ge", ">="},
                 {"eq", "=="},        {"ne", "!="},      {"add_", "+="},     {"mul_", "*="},
                 {"sub_", "-="},      {"div_", "/="},    {"remainder", "%"}, {"transpose", ".T"},
                 {"view_as", "view"}, {"permute", ".T"}, {"adjoint", ".mT"}, {"numpy_T", ".T"}};
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (onv_text_is(operation, signs[i].operation) && onv_text_has(code, signs[i].sign))
            return true;
    return false;
}

static bool adds_to_list(onv_text code)
{
    return onv_text_has(code, ".append(") || onv_text_has(code, ".extend(") ||
           onv_text_has(code, ".insert(");
}

/* One target, and a value that is neither a list of several nor goes on in the next line. */
static bool binds_one(const statement *s)
{
    onv_text value = onv_text_trim(s->value);
    int depth = 0;
    if (!s->binds || count(s->targets, ',') > 0 || opens(onv_text_first(value))) return false;
    for (size_t i = 0; i < value.length; i++) {
        depth += opens(value.at[i]) - closes(value.at[i]);
        if (depth == 0 && value.at[i] == ',') return false;
    }
    return depth == 0;
}

static char mark_of(const statement *s, char kind)
{
    bool is_member = onv_text_has(s->targets, "."), is_part = onv_text_has(s->targets, "[");
    if (is_member || (!s->binds && adds_to_list(s->code))) return ONV_STATEMENT_LEAVES;
    bool is_hidden = kind == ONV_STATEMENT_HIDES;
    bool is_whole = s->binds || onv_text_begins(s->code, "return ");
    bool is_mixed = is_hidden || makes_several(s->code);
    bool has_more = onv_text_has(s->code, ";") || onv_text_has(s->code, ":=") ||
                    onv_text_has(s->code, "multi_head_attention_forward");
    if (!is_whole || has_more || (is_mixed && !s->binds)) return ONV_STATEMENT_OPEN;
    if (!is_mixed && !is_part) return ':';
    if (binds_one(s)) return ONV_STATEMENT_ONE;
    return is_part ? ONV_STATEMENT_OPEN : ONV_STATEMENT_MIXED;
}

/* `x += y` is a sum: not what y computes. */
static bool is_of_sign(onv_text operation, char sign)
{
    static const char *const signs[] = {"add+", "sub-", "mul*", "div/"};
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (signs[i][3] == sign)
            return operation.length == 3 && memcmp(operation.at, signs[i], 3) == 0;
    return false;
}

/* --- What is written of it --------------------------------------------------------------------- */

enum { MAX_BYTES = 6000 };

typedef struct writer {
    char bytes[MAX_BYTES];
    size_t length;
    bool full;
} writer;

static void put(writer *w, onv_text t)
{
    w->full |= t.length > MAX_BYTES - w->length;
    if (w->full) return;
    if (t.length > 0) memcpy(w->bytes + w->length, t.at, t.length);
    w->length += t.length;
}

static void put_char(writer *w, char c)
{
    put(w, (onv_text){&c, 1});
}

/* `y.append(...)` */
static void put_added(writer *w, onv_text code)
{
    onv_text name = onv_text_word(code), method = onv_text_skip(code, name.length);
    bool adds = onv_text_begins(method, ".append(") || onv_text_begins(method, ".extend(") ||
                onv_text_begins(method, ".insert(");
    if (name.length == 0 || !adds) return;
    put_char(w, ONV_STATEMENT_ADDS);
    put(w, name);
}

static void put_targets(writer *w, const statement *s)
{
    onv_text rest = s->targets, part;
    size_t before = w->length;
    if (!s->binds) put_added(w, s->code);
    while (onv_next_part(&rest, ',', &part)) {
        onv_text name = target(part);
        if (name.length == 0) { /* no statement that binds names */
            w->length = before;
            return;
        }
        if (w->length > before) put_char(w, ',');
        put(w, name);
    }
}

/* `y` and `mask` of `x = f(y, mask=mask)`: neither what is called, nor members, nor names of arguments. */
static void put_reads(writer *w, onv_text value)
{
    onv_text rest = value, token;
    int depth = 0;
    put_char(w, ONV_STATEMENT_READS);
    while (onv_next_token(&rest, &token)) {
        char c = token.at[0];
        depth += opens(c) - closes(c);
        if (!onv_is_word(c)) continue;
        onv_text before = {value.at, (size_t)(token.at - value.at)}, behind = onv_text_trim(rest);
        bool is_named = onv_text_first(behind) == '=' && !onv_text_begins(behind, "==");
        bool is_called = onv_text_first(behind) == '(';
        if (is_named || is_called || onv_text_ends(before, ".")) continue;
        put(w, token);
        put_char(w, ',');
        if (onv_text_first(behind) != '[' || behind.length < 2 || !onv_is_digit(behind.at[1]))
            continue;
        put(w, token);
        put(w, onv_text_of((char[]){ONV_STATEMENT_INDEXED, ',', '\0'}));
    }
    if (depth > 0) put_char(w, ONV_STATEMENT_GOES_ON);
}

/* --- All frames -------------------------------------------------------------------------------- */

/* The next line of `forward`. Calls of other functions are passed over. */
static bool next_line(onv_text *trace, onv_text *number, statement *s)
{
    for (onv_trace_frame f; onv_next_frame(trace, &f);) {
        if (!onv_text_is(f.function, "forward")) continue;
        *number = f.line;
        *s = read_statement(f.code);
        return true;
    }
    return false;
}

static uint32_t count_lines(onv_text trace)
{
    uint32_t n = 0;
    for (onv_trace_frame f; onv_next_frame(&trace, &f);) n += onv_text_is(f.function, "forward");
    return n;
}

static uint32_t count_modules(onv_text list)
{
    uint32_t n = 0;
    for (onv_text module; onv_next_quoted(&list, &module);) n++;
    return n;
}

/* The member's own name: "norm1" of "features.denselayer1.norm1". */
static onv_text last_part(onv_text path)
{
    const char *dot = path.length > 0 ? memrchr(path.at, '.', path.length) : NULL;
    return dot != NULL ? onv_text_skip(path, (size_t)(dot + 1 - path.at)) : path;
}

/* "cat" of "aten.cat.default". */
static onv_text operation(const char *aten_op)
{
    return onv_text_until(onv_text_behind(onv_text_of(aten_op), "."), ".");
}

/* The module of a weight: "conv1" of "layer1.0.conv1.weight". */
static onv_text owner_of(const char *weight)
{
    onv_text path = onv_text_of(weight), attribute = last_part(path);
    path.length -= attribute.length;
    if (path.length > 0) path.length--;
    return last_part(path);
}

/* `feat_cache[i]`, `cache_dict["conv"]`, `cache.get("conv")`. */
static bool has_cached_member(onv_text code)
{
    for (onv_text word; onv_next_token(&code, &word);)
        if (onv_is_word(word.at[0]) && onv_text_has(word, "cache") &&
            (onv_text_first(code) == '[' || onv_text_begins(code, ".get(")))
            return true;
    return false;
}

/* `self.conv(x, feat_cache[i])`, or `x, new_cache["conv"] = self.conv(`: the name of the list is of no meaning but this one. */
static bool keeps_cached(const statement *s, onv_text callee)
{
    if (!calls(s->value, callee)) return false;
    if (has_cached_member(s->targets)) return true;
    const char *call = memmem(s->value.at, s->value.length, callee.at, callee.length);
    return has_cached_member(onv_text_skip(s->value, (size_t)(call - s->value.at)));
}

/* Whether the line that calls the operation overwrites what it is given, or makes a new tensor. Of several operations of
 * the same kind nothing tells which one it is. */
static onv_in_place in_place(const statement *s, onv_text callee)
{
    bool updates = is_of_sign(callee, s->sign) && count(s->code, s->sign) == 1;
    bool asks = calls(s->code, callee) && onv_text_has(s->code, "inplace=True");
    if (updates || asks || calls_in_place(s->code, callee) || puts_in_place(s, callee))
        return ONV_IN_PLACE_YES;
    bool is_new = calls(s->code, callee) && !onv_text_has(s->code, "inplace");
    return is_new ? ONV_IN_PLACE_NO : ONV_IN_PLACE_UNTOLD;
}

static onv_status keep(onv_model *model, onv_text text, const char **kept, onv_error *err)
{
    *kept = onv_intern_n(&model->strings, text.length > 0 ? text.at : "", text.length);
    return *kept != NULL ? ONV_OK : onv_fail_memory(err);
}

onv_status onv_statements_read(onv_model *model, onv_text trace, const char *folded,
                               onv_notes *notes, onv_error *err)
{
    writer w = {.length = 0};
    statement s;
    onv_text number, module = {0}, next = {0}, list = onv_text_of(notes->calls);
    uint32_t n_lines = count_lines(trace), n_calls = count_modules(list);
    uint32_t without_call = n_lines > n_calls ? n_lines - n_calls : 0;
    bool has_next = onv_next_quoted(&list, &module);
    onv_text cached = {0};
    while (has_next && next_line(&trace, &number, &s)) {
        has_next = onv_next_quoted(&list, &next);
        if (has_next) module = next;
        onv_text callee = has_next ? last_part(next) : operation(notes->aten_op);
        char kind = kind_of(s.code, callee);
        /* What was folded into another module has a statement of its own, where this one does not call it. */
        onv_text other = folded != NULL && has_next ? owner_of(folded) : (onv_text){0};
        if (other.length > 0 && calls(s.code, callee) && !calls(s.code, other))
            kind = ONV_STATEMENT_CALLS;
        if (has_next && keeps_cached(&s, callee)) cached = next;
        put(&w, number);
        bool is_sign = !has_next && kind == ONV_STATEMENT_HIDES && shows_sign(s.code, callee);
        char shown = kind;
        if (is_sign) shown = ONV_STATEMENT_SHOWS;
        char mark = mark_of(&s, shown);
        /* Graphs lack operations of the line, which hold more than the graph shows. */
        if (model->program != NULL) kind = shown;
        put(&w, onv_text_of((char[]){kind, mark, '\0'}));
        put_targets(&w, &s);
        put_reads(&w, s.value);
        put_char(&w, ';');
        /* `super().forward(x)` calls no module: its frame is a part of this one. */
        if (without_call > 0 && onv_text_has(s.code, ".forward(")) {
            next_line(&trace, &number, &s);
            without_call--;
            continue;
        }
        notes->in_place = has_next ? ONV_IN_PLACE_UNTOLD : in_place(&s, callee);
    }
    bool fits = !next_line(&trace, &number, &s) && !w.full;
    if (!fits) notes->in_place = ONV_IN_PLACE_UNTOLD;
    if (fits && cached.length > 0) ONV_TRY(keep(model, cached, &notes->cache_call, err));
    return keep(model, (onv_text){w.bytes, fits ? w.length : 0}, &notes->statements, err);
}

void onv_statements_look_at(const onv_trace_frame *frame, onv_trace_frame *own)
{
    if (own->path.length == 0 || !onv_text_has(frame->path, "-packages/torch/")) *own = *frame;
}

onv_status onv_statements_name_line(onv_model *model, const onv_trace_frame *own, const char **line,
                                    onv_error *err)
{
    writer w = {.length = 0};
    const onv_text path = own->path;
    *line = NULL;
    if (path.length == 0) return ONV_OK;
    /* The folder and the file. */
    const char *slash = memrchr(path.at, '/', path.length);
    if (slash != NULL) slash = memrchr(path.at, '/', (size_t)(slash - path.at));
    put(&w, slash != NULL ? onv_text_skip(path, (size_t)(slash + 1 - path.at)) : path);
    put_char(&w, ':');
    put(&w, own->line);
    return w.full ? ONV_OK : keep(model, (onv_text){w.bytes, w.length}, line, err);
}
