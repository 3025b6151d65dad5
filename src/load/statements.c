#include "load/statements.h"

#include <string.h>

#include "base/fail.h"

/* --- A trace ----------------------------------------------------------------------------------- */

typedef struct text {
    const char *at;
    size_t length;
} text;

typedef struct frame {
    text line; /* its number */
    text code; /* of the line; empty where the trace lacks it */
} frame;

static text rest_of_line(const char *at)
{
    return (text){at, strcspn(at, "\n")};
}

static text trim(text t)
{
    while (t.length > 0 && (t.at[0] == ' ' || t.at[0] == '\t')) t.at++, t.length--;
    while (t.length > 0 && strchr(" \t\r", t.at[t.length - 1]) != NULL) t.length--;
    return t;
}

static bool begins(text t, const char *with)
{
    size_t length = strlen(with);
    return t.length >= length && memcmp(t.at, with, length) == 0;
}

/* What `if x is None: y = f(z)` does in its own line; the line, where it goes on in others. */
static text without_condition(text code)
{
    static const char *const begins_with[] = {"if ", "elif ", "else:", "for ", "while ", "with "};
    bool has_block = false;
    int depth = 0;
    for (size_t i = 0; i < sizeof begins_with / sizeof begins_with[0]; i++)
        has_block |= begins(code, begins_with[i]);
    for (size_t i = 0; has_block && i < code.length; i++) {
        depth += code.at[i] != '\0' && strchr("([{", code.at[i]) != NULL;
        depth -= code.at[i] != '\0' && strchr(")]}", code.at[i]) != NULL;
        if (code.at[i] != ':' || depth != 0) continue;
        text rest = trim((text){code.at + i + 1, code.length - i - 1});
        return rest.length > 0 && rest.at[0] != '#' ? rest : code;
    }
    return code;
}

/* `File "PATH", line 213, in forward`, and the code below it. Frames of other functions are passed over. */
static bool next_frame(const char **at, frame *f)
{
    static const char line[] = "\", line ", in[] = ", in ";
    while (**at != '\0') {
        text head = rest_of_line(*at);
        *at += head.length + (head.at[head.length] == '\n');
        head = trim(head);
        if (!begins(head, "File \"")) continue;
        const char *number = memmem(head.at, head.length, line, sizeof line - 1);
        if (number == NULL) continue;
        number += sizeof line - 1;
        size_t digits = strspn(number, "0123456789");
        text name = {number + digits, head.length - (size_t)(number + digits - head.at)};
        if (digits == 0 || !begins(name, in)) continue;
        text code = without_condition(trim(rest_of_line(*at)));
        f->line = (text){number, digits};
        f->code = code;
        if (begins(code, "File \"")) f->code.length = 0;
        name.at += sizeof in - 1;
        name.length -= sizeof in - 1;
        if (name.length == strlen("forward") && begins(name, "forward")) return true;
    }
    return false;
}

/* --- A line of code ---------------------------------------------------------------------------- */

/* The next element of a list that Python wrote. */
static bool next_element(const char **at, text *element)
{
    const char *begin = *at + strcspn(*at, "'\"");
    const char *end = *begin != '\0' ? strchr(begin + 1, *begin) : NULL;
    if (end == NULL) return false;
    *element = (text){begin + 1, (size_t)(end - begin - 1)};
    *at = end + 1;
    return true;
}

static bool has(text t, const char *part)
{
    return memmem(t.at, t.length, part, strlen(part)) != NULL;
}

static uint32_t count_frames(const char *trace)
{
    uint32_t n = 0;
    for (frame f; next_frame(&trace, &f);) n++;
    return n;
}

static uint32_t count_calls(const char *list)
{
    uint32_t n = 0;
    for (text module; next_element(&list, &module);) n++;
    return n;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The `=` of a statement; *sign is the operator before it, or 0. An argument `name=value` is none: it
 * ends with a comma, or with a bracket too many, or others follow. */
static const char *find_equals(text code, char *sign)
{
    int depth = 0;
    const char *found = NULL;
    bool listed = false, again = false;
    for (size_t i = 0; i < code.length; i++) {
        char c = code.at[i], before = (char)(i > 0 ? code.at[i - 1] : ' ');
        char after = (char)(i + 1 < code.length ? code.at[i + 1] : ' ');
        depth += strchr("([{", c) != NULL;
        depth -= strchr(")]}", c) != NULL;
        if (depth < 0) return NULL;
        again |= c == '=' && depth == 0 && found != NULL && listed;
        listed |= c == ',' && depth == 0 && found != NULL;
        if (c != '=' || depth > 0 || found != NULL) continue;
        if (after == '=' || strchr("=!<>:", before) != NULL) return NULL;
        *sign = (char)(strchr("+-*/@%&|^", before) != NULL ? before : '\0');
        found = code.at + i;
    }
    bool is_spaced = found != NULL && found > code.at && (found[-1] == ' ' || *sign != '\0');
    bool is_argument = code.length > 0 && (code.at[code.length - 1] == ',' || again);
    return is_spaced || (depth == 0 && !is_argument) ? found : NULL;
}

/* A member of a dictionary, `x["key"]`: nothing takes its place. */
static bool is_member(text behind)
{
    return begins(behind, "[\"") || begins(behind, "['") || begins(behind, "[f\"") ||
           begins(behind, "[f'");
}

/* One name that is bound: `x`, `(x`, `self.x`, `x: Tensor`. Empty: it is none. */
static text target(text t)
{
    t = trim(t);
    while (t.length > 0 && strchr("([*", t.at[0]) != NULL) t.at++, t.length--;
    size_t n = 0;
    while (n < t.length && (is_word(t.at[n]) || t.at[n] == '.')) n++;
    text behind = {t.at + n, t.length - n};
    behind = trim(behind);
    if (n > 0 && is_member(behind)) return (text){ONV_STATEMENT_MEMBER, 1};
    bool ends = behind.length == 0 || strchr(":)]", behind.at[0]) != NULL;
    t.length = ends ? n : 0;
    return t;
}

static uint32_t count(text code, char c)
{
    uint32_t n = 0;
    for (size_t i = 0; i < code.length; i++) n += code.at[i] == c;
    return n;
}

/* Operators of tensors: those between brackets are of places in a list. */
static uint32_t count_outside(text code, char sign)
{
    uint32_t n = 0, depth = 0;
    for (size_t i = 0; i < code.length; i++) {
        depth += code.at[i] == '[';
        depth -= code.at[i] == ']' && depth > 0;
        n += code.at[i] == sign && depth == 0;
    }
    return n;
}

static bool is_number(text t)
{
    size_t i = 0;
    while (i < t.length && t.at[i] >= '0' && t.at[i] <= '9') i++;
    return i == t.length;
}

/* `cat(features)`: of a list that has a name, which holds what is in it. */
static bool takes_list(text code, text callee)
{
    for (size_t i = 0; i + callee.length + 1 < code.length; i++)
        if (memcmp(code.at + i, callee.at, callee.length) == 0 &&
            code.at[i + callee.length] == '(' && is_word(code.at[i + callee.length + 1]))
            return true;
    return false;
}

static bool is_joining(text operation)
{
    return (operation.length == 3 && memcmp(operation.at, "cat", 3) == 0) ||
           (operation.length == 5 && memcmp(operation.at, "stack", 5) == 0);
}

static bool calls(text code, text callee)
{
    for (size_t i = 0; i + callee.length < code.length; i++)
        if (memcmp(code.at + i, callee.at, callee.length) == 0 &&
            code.at[i + callee.length] == '(' && (i == 0 || !is_word(code.at[i - 1])))
            return true;
    return false;
}

/* selu and celu are written as elu. */
static bool calls_activation(text code, text callee)
{
    bool is_elu = callee.length == 3 && memcmp(callee.at, "elu", 3) == 0;
    return calls(code, callee) ||
           (is_elu && (calls(code, (text){"selu", 4}) || calls(code, (text){"celu", 4})));
}

/* `x.relu_()`, once; selu_ and celu_ likewise. */
static bool calls_in_place(text code, text callee)
{
    uint32_t n = 0;
    bool is_elu = callee.length == 3 && memcmp(callee.at, "elu", 3) == 0;
    if (is_elu && (calls(code, (text){"selu_", 5}) || calls(code, (text){"celu_", 5}))) return true;
    for (size_t i = 0; i + callee.length + 1 < code.length; i++)
        n += memcmp(code.at + i, callee.at, callee.length) == 0 &&
             code.at[i + callee.length] == '_' && code.at[i + callee.length + 1] == '(' &&
             (i == 0 || !is_word(code.at[i - 1]));
    return n == 1 && callee.length > 0;
}

/* `y[:, i] = v`, and the calls that the exporter writes as index_put: index_add_ and index_copy_. */
static bool puts_in_place(text code, text operation)
{
    static const char put[] = "index_put";
    if (operation.length != sizeof put - 1 || memcmp(operation.at, put, sizeof put - 1) != 0)
        return false;
    if (has(code, "index_add_(") || has(code, "index_copy_(")) return true;
    char sign = '\0';
    const char *equals = find_equals(code, &sign);
    if (equals == NULL || sign != '\0') return false;
    text target = trim((text){code.at, (size_t)(equals - code.at)});
    return target.length > 0 && target.at[target.length - 1] == ']';
}

/* `getattr(self, f"layer{i}")(x)`, `self._modules["layer_%d" % i](x)`: by a name that ends with a number. */
static bool is_looked_up(text code, text callee)
{
    char last = (char)(callee.length > 0 ? callee.at[callee.length - 1] : ' ');
    return last >= '0' && last <= '9' && (has(code, "getattr(") || has(code, "_modules["));
}

/* Of what the code calls: attributes alone, `self.query(x.relu())`, one of them the module's own. A member of a list is called by
 * a name, `layer(x)`, or by its place, `self.layers[i](x)`. */
static bool calls_methods(text code)
{
    bool is_own = false;
    for (size_t i = 1; i < code.length; i++) {
        if (code.at[i] != '(') continue;
        size_t name = i, root;
        while (name > 0 && is_word(code.at[name - 1])) name--;
        if (name == i && strchr(")]", code.at[i - 1]) == NULL) continue; /* it groups */
        if (name == i || name == 0 || code.at[name - 1] != '.') return false;
        root = name;
        while (root > 0 && (is_word(code.at[root - 1]) || code.at[root - 1] == '.')) root--;
        is_own |= begins((text){code.at + root, code.length - root}, "self.");
    }
    return is_own;
}

/* How the code calls what is called so. A member of a list has a number, and another name there. */
static char kind_of(text code, text callee)
{
    if (callee.length > 0 && is_number(callee) && !calls_methods(code)) return ONV_STATEMENT_LOOPS;
    if (is_looked_up(code, callee)) return ONV_STATEMENT_LOOPS;
    if (has(code, ".propagate(")) return ONV_STATEMENT_SENDS;
    if (has(code, ".edge_updater(")) return ONV_STATEMENT_EDGES;
    uint32_t n_calls = count(code, '(');
    if (n_calls == 0) return ONV_STATEMENT_SHOWS;
    if (!calls(code, callee)) return ONV_STATEMENT_HIDES;
    return n_calls == 1 ? ONV_STATEMENT_CALLS : ONV_STATEMENT_SHOWS;
}

/* `x += y` is a sum: not what y computes. */
static bool is_of_sign(text operation, char sign)
{
    static const struct {
        const char *name;
        char sign;
    } signs[] = {{"add", '+'}, {"sub", '-'}, {"mul", '*'}, {"div", '/'}};
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (signs[i].sign == sign)
            return operation.length == 3 && memcmp(operation.at, signs[i].name, 3) == 0;
    return false;
}

/* --- All frames -------------------------------------------------------------------------------- */

enum { MAX_BYTES = 6000 };

typedef struct writer {
    char bytes[MAX_BYTES];
    size_t length;
    bool full;
} writer;

static void put(writer *w, const char *at, size_t length)
{
    w->full |= length > MAX_BYTES - w->length;
    if (w->full) return;
    memcpy(w->bytes + w->length, at, length);
    w->length += length;
}

static bool adds_to_list(text method)
{
    return begins(method, ".append(") || begins(method, ".extend(") || begins(method, ".insert(");
}

/* `y.permute(...)` and `.reshape(...)` in lines of their own, and `y.append(...)`. */
static void put_untold(writer *w, text code)
{
    size_t n = 0;
    while (n < code.length && is_word(code.at[n])) n++;
    if (n >= code.length || code.at[n] != '.') return;
    bool adds = n > 0 && adds_to_list((text){code.at + n, code.length - n});
    put(w, (char[]){(char)(adds ? ONV_STATEMENT_ADDS : ONV_STATEMENT_UNTOLD)}, 1);
    put(w, code.at, n);
}

static void put_targets(writer *w, text code, char *sign)
{
    const char *equals = find_equals(code, sign), *at = code.at;
    if (equals == NULL) put_untold(w, code);
    if (equals == NULL) return;
    const char *end = equals - (*sign != '\0');
    size_t before = w->length;
    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma != NULL ? comma : end;
        text name = target((text){at, (size_t)(stop - at)});
        if (name.length == 0) { /* no statement that binds names */
            w->length = before;
            return;
        }
        if (w->length > before) put(w, ",", 1);
        put(w, name.at, name.length);
        at = stop + 1;
    }
}

/* `f(x)`, `self.layer(x)` and `torch.sum(x)`, but no method of a name, `y.view(x)`. `at`: the name before the bracket. */
static bool is_call(text code, const char *at)
{
    static const char *const roots[] = {"self.", "torch.", "F.", "nn."};
    const char *root = at;
    if (at == code.at || at[-1] != '.') return true;
    while (root > code.at && (is_word(root[-1]) || root[-1] == '.')) root--;
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++)
        if (begins((text){root, (size_t)(code.at + code.length - root)}, roots[i])) return true;
    return false;
}

/* `y` and `mask` of `x = f(y, mask=mask)`: neither what is called, nor members, nor names of arguments. */
static void put_reads(writer *w, text code)
{
    char sign = '\0';
    const char *equals = find_equals(code, &sign), *end = code.at + code.length;
    const char *at = equals != NULL ? equals + 1 : code.at;
    int depth = 0;
    bool calls = false;
    put(w, (char[]){ONV_STATEMENT_READS}, 1);
    while (at < end) {
        size_t n = 0;
        while (at + n < end && is_word(at[n])) n++;
        text behind = trim((text){at + n, (size_t)(end - at) - n});
        bool is_named = behind.length > 0 && behind.at[0] == '=' && !begins(behind, "==");
        bool is_other = is_named || begins(behind, "(") || (at > code.at && at[-1] == '.');
        bool is_indexed =
            behind.length > 1 && behind.at[0] == '[' && behind.at[1] >= '0' && behind.at[1] <= '9';
        if (n > 0 && !is_other) {
            put(w, at, n);
            put(w, ",", 1);
        }
        if (n > 0 && !is_other && is_indexed) {
            put(w, at, n);
            put(w, (char[]){ONV_STATEMENT_INDEXED, ','}, 2);
        }
        calls |= n > 0 && begins(behind, "(") && is_call(code, at);
        depth += n == 0 && strchr("([{", *at) != NULL;
        depth -= n == 0 && strchr(")]}", *at) != NULL;
        at += n > 0 ? n : 1;
    }
    if (calls) put(w, ONV_STATEMENT_CALL ",", sizeof ONV_STATEMENT_CALL);
    if (depth > 0) put(w, (char[]){ONV_STATEMENT_GOES_ON}, 1);
}

/* The member's own name: "norm1" of "features.denselayer1.norm1", "cat" of "aten.cat.default". */
static text last_part(text path)
{
    for (size_t i = path.length; i-- > 0;)
        if (path.at[i] == '.') return (text){path.at + i + 1, path.length - i - 1};
    return path;
}

static text operation(const char *aten_op)
{
    size_t dot = strcspn(aten_op, ".");
    if (aten_op[dot] == '\0') return (text){aten_op, 0};
    return (text){aten_op + dot + 1, strcspn(aten_op + dot + 1, ".")};
}

/* The module of a weight: "conv1" of "layer1.0.conv1.weight". */
static text owner_of(const char *weight)
{
    size_t length = strlen(weight);
    const char *dot = memrchr(weight, '.', length);
    return last_part((text){weight, dot != NULL ? (size_t)(dot - weight) : 0});
}

/* `feat_cache[i]`, `cache_dict["conv"]`, `cache.get("conv")`. */
static bool has_cached_member(text code)
{
    static const char name[] = "cache";
    const char *end = code.at + code.length, *at = code.at;
    while ((at = memmem(at, (size_t)(end - at), name, sizeof name - 1)) != NULL) {
        at += sizeof name - 1;
        while (at < end && is_word(*at)) at++;
        if (begins((text){at, (size_t)(end - at)}, "[") ||
            begins((text){at, (size_t)(end - at)}, ".get("))
            return true;
    }
    return false;
}

/* `self.conv(x, feat_cache[i])`, or `x, new_cache["conv"] = self.conv(`: the name of the list is of no meaning but this one. */
static bool keeps_cached(text code, text callee)
{
    char sign;
    const char *equals = find_equals(code, &sign);
    size_t before = equals != NULL ? (size_t)(equals - code.at) : 0;
    text given = {code.at + before, code.length - before};
    if (callee.length == 0 || !calls(given, callee)) return false;
    if (has_cached_member((text){code.at, before})) return true;
    const char *call = memmem(given.at, given.length, callee.at, callee.length);
    return has_cached_member((text){call, (size_t)(given.at + given.length - call)});
}

/* Modules of a node whose calls keep something in a cache. */
typedef struct cached {
    text call, owner;
    bool is_any;
} cached;

static void note_cached(cached *c, text code, text caller, text called)
{
    if (!keeps_cached(code, last_part(called))) return;
    if (!c->is_any) c->owner = caller;
    c->is_any = true;
    c->call = called;
}

static onv_status put_cached(onv_builder *b, const cached *c, onv_node *node)
{
    if (!c->is_any) return ONV_OK;
    node->cache_call = onv_intern_n(&b->model->strings, c->call.at, c->call.length);
    node->cache_owner = onv_intern_n(&b->model->strings, c->owner.at, c->owner.length);
    bool fits = node->cache_call != NULL && node->cache_owner != NULL;
    return fits ? ONV_OK : onv_fail_memory(b->err);
}

onv_status onv_build_statements(onv_builder *b, const char *trace, onv_node *node,
                                const char *folded)
{
    writer w = {.length = 0};
    frame f;
    text module = {0}, next = {0};
    const char *list = node->calls;
    bool has_next = next_element(&list, &module);
    uint32_t n_frames = count_frames(trace), n_calls = count_calls(node->calls);
    uint32_t without_call = n_frames > n_calls ? n_frames - n_calls : 0;
    bool overwrites = false, makes_new = false;
    cached keeps = {.is_any = false};
    while (has_next && next_frame(&trace, &f)) {
        text caller = module;
        has_next = next_element(&list, &next);
        if (has_next) module = next;
        text callee = has_next ? last_part(next) : operation(node->aten_op);
        char sign = '\0', kind = kind_of(f.code, callee);
        bool joins = !has_next && is_joining(callee) && takes_list(f.code, callee);
        /* What was folded into another module has a statement of its own, where this one does not call it. */
        text other = folded != NULL && has_next ? owner_of(folded) : (text){0};
        if (other.length > 0 && calls(f.code, callee) && !calls(f.code, other))
            kind = ONV_STATEMENT_CALLS;
        if (has_next) note_cached(&keeps, f.code, caller, next);
        put(&w, f.line.at, f.line.length);
        put(&w, (char[]){(char)(joins ? ONV_STATEMENT_LISTS : kind), ':'}, 2);
        put_targets(&w, f.code, &sign);
        put_reads(&w, f.code);
        put(&w, ";", 1);
        /* `super().forward(x)` calls no module: its frame is a part of this one. */
        if (without_call > 0 && has(f.code, ".forward(")) {
            next_frame(&trace, &f);
            without_call--;
            continue;
        }
        /* Of several operations of the same kind nothing tells which one it is. */
        bool updates = is_of_sign(callee, sign) && count_outside(f.code, sign) == 1;
        bool asks = calls_activation(f.code, callee) && has(f.code, "inplace=True");
        overwrites = !has_next && (updates || asks || calls_in_place(f.code, callee) ||
                                   puts_in_place(f.code, callee));
        makes_new = !has_next && calls(f.code, callee) && !has(f.code, "inplace");
    }
    bool fits = !next_frame(&trace, &f) && !w.full;
    node->in_place = ONV_IN_PLACE_UNTOLD;
    if (fits && overwrites) node->in_place = ONV_IN_PLACE_YES;
    if (fits && makes_new && !overwrites) node->in_place = ONV_IN_PLACE_NO;
    if (fits) ONV_TRY(put_cached(b, &keeps, node));
    node->statements = onv_intern_n(&b->model->strings, w.bytes, fits ? w.length : 0);
    return node->statements != NULL ? ONV_OK : onv_fail_memory(b->err);
}
