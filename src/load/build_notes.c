/* What PyTorch's exporter noted of a node. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "load/build.h"
#include "load/fields.h"
#include "load/statements.h"

/* By their kind; NULL where there is none. Of several of a kind, the last one. */
typedef struct noted {
    const char *text[ONV_NOTED_COUNT];
} noted;

/* A part of a sequence has the path of the sequence, and its modules theirs: 'features.slice(4, 10, None).conv1'. */
static void drop_slices(char *scopes)
{
    static const char begin[] = ".slice(";
    for (char *at = scopes; (at = strstr(at, begin)) != NULL;) {
        const char *end = strchr(at, ')');
        if (end == NULL) return;
        memmove(at, end + 1, strlen(end + 1) + 1);
    }
}

/* Texts of notes stand in the file without an end: copies have one. */
static onv_status read_notes(onv_builder *b, const onv_scan_node *record, noted *found)
{
    size_t bytes = 0;
    ONV_EACH_RECORD(note, b->scan->notes, record->notes) bytes += (size_t)note->bytes + 1;
    b->notes.count = 0;
    if (!onv_vec_reserve(&b->notes, bytes)) return onv_fail_memory(b->err);
    ONV_EACH_RECORD(note, b->scan->notes, record->notes)
    {
        char *to = b->notes.at + b->notes.count;
        const unsigned char *text;
        ONV_TRY(onv_source_view(b->scan->source, note->offset, note->bytes, &text, b->err));
        memcpy(to, text, note->bytes);
        to[note->bytes] = '\0';
        if (note->note == ONV_NOTED_SCOPES) drop_slices(to);
        b->notes.count += (size_t)note->bytes + 1;
        found->text[note->note] = to;
    }
    return ONV_OK;
}

/* --- Modules ----------------------------------------------------------------------------------- */

/* The text is of no use where the exporter says that it does not know. */
static onv_status intern_part(onv_builder *b, const char *at, size_t length, const char **part)
{
    static const char none[] = "_empty_nn_module_stack";
    if (strncmp(at, none, sizeof none - 1) == 0) length = 0;
    *part = onv_intern_n(&b->model->strings, at, length);
    return *part != NULL ? ONV_OK : onv_fail_memory(b->err);
}

/* The last two elements of a list that Python wrote, ['', 'layer1', 'layer1.0', 'conv2d']: from the
 * model itself down to the operation; and all before the last one, up to a quotation mark. */
static onv_status read_list(onv_builder *b, const char *list, const char **parent,
                            const char **self, const char **around)
{
    const char *scope = "", *last = "", *at = list;
    size_t scope_length = 0, last_length = 0, before = 0; /* of the list, up to the last element */
    while (*(at += strcspn(at, "'\"")) != '\0') {
        const char *end = strchr(at + 1, *at);
        if (end == NULL) break;
        scope = last;
        scope_length = last_length;
        before = last_length > 0 || last[0] != '\0' ? (size_t)(last + last_length + 1 - list) : 0;
        last = at + 1;
        last_length = (size_t)(end - last);
        at = end + 1;
    }
    ONV_TRY(intern_part(b, scope, scope_length, parent));
    ONV_TRY(intern_part(b, last, last_length, self));
    bool is_known = scope_length == 0 || (*parent)[0] != '\0';
    return intern_part(b, list, is_known ? before : 0, around);
}

/* --- Python ------------------------------------------------------------------------------------ */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* `Root.apply(1 - x)` as the innermost line: the difference is what the function is given, not a part of it. */
static bool is_argument(const char *call)
{
    size_t length = strcspn(call, "\n");
    const char *rest = call + length, *at = call;
    uint32_t depth = 0;
    if (strstr(rest, "File \"") != NULL) return false;
    for (; at < rest && (depth != 1 || *at != ')'); at++) {
        if (depth > 0 && (*at == '(' || (*at == ' ' && at[1] != '\0' && at[2] == ' '))) return true;
        depth += *at == '(';
    }
    return false;
}

/* Of a list of modules or of classes, those that are not PyTorch's. */
static uint32_t count_modules(const char *list)
{
    static const char library[] = "torch.";
    uint32_t n = 0;
    for (const char *at = list; *(at += strcspn(at, "'\"")) != '\0';) {
        const char *end = strchr(at + 1, *at);
        n += strncmp(at + 1, library, sizeof library - 1) != 0;
        if (end == NULL) break;
        at = end + 1;
    }
    return n;
}

/* The line of code that follows a frame's header, and its length. */
static const char *code_of(const char *header, size_t *length)
{
    const char *code = header + strcspn(header, "\n");
    code += *code != '\0';
    *length = strcspn(code, "\n");
    return code;
}

static bool has_text(const char *line, size_t length, const char *text)
{
    size_t size = strlen(text);
    for (size_t i = 0; i + size <= length; i++)
        if (memcmp(line + i, text, size) == 0) return true;
    return false;
}

/* `y = swish(x)`, where the code has `swish = Swish.apply`: one more forward() runs than modules do, and it has no `self`. Slices of
 * nn.Sequential run as modules that are in no list. Gives the name before the first call of the line. */
static const char *find_alias(const char *trace, const onv_node *node, size_t *length)
{
    static const char library[] = "/torch/";
    const char *caller = NULL, *code = NULL;
    size_t caller_length = 0, code_length = 0;
    uint32_t n = 0, all = count_modules(node->calls);
    uint32_t n_own = 0, own = count_modules(node->call_classes);
    for (const char *at = trace; (at = strstr(at, "File \"")) != NULL; at++) {
        size_t header = strcspn(at, "\n");
        bool runs = at[header] == '\n' && has_text(at, header + 1, ONV_NOTE_FORWARD) &&
                    strncmp(at, ONV_NOTE_INNER, sizeof ONV_NOTE_INNER - 2) != 0;
        bool is_own = runs && !has_text(at, header, library);
        bool by_name = code != NULL && has_text(code, code_length, ".forward(");
        n += runs && !by_name;
        n_own += is_own && !by_name;
        if (is_own) {
            caller = code;
            caller_length = code_length;
        }
        code = code_of(at, &code_length);
        if (!is_own || n <= all || n_own <= own || caller == NULL ||
            has_text(code, code_length, "self."))
            continue;
        const char *end = memchr(caller, '(', caller_length), *begin = end;
        while (begin != NULL && begin > caller && is_word(begin[-1])) begin--;
        *length = end != NULL ? (size_t)(end - begin) : 0;
        return begin;
    }
    return NULL;
}

/* The innermost `Name.apply(` of the lines of Python that called the operation. Classes begin with a
 * capital; nn.Module.apply, a method, does not run in forward passes. */
static onv_status find_function(onv_builder *b, const char *trace, onv_node *node)
{
    const char *found = "";
    size_t length = 0;
    for (const char *at = trace; (at = strstr(at, ONV_NOTE_APPLY)) != NULL; at++) {
        const char *begin = at;
        while (begin > trace && is_word(begin[-1])) begin--;
        if (begin == at || *begin < 'A' || *begin > 'Z' || is_argument(at)) continue;
        found = begin;
        length = (size_t)(at - begin);
    }
    const char *alias =
        length == 0 && node->call_classes[0] != '\0' ? find_alias(trace, node, &length) : NULL;
    node->function = onv_intern_n(&b->model->strings, alias != NULL ? alias : found, length);
    return node->function != NULL ? ONV_OK : onv_fail_memory(b->err);
}

/* The graph inside of the network's, as torch.no_grad() makes one, that the exporter joined with it. */
static onv_status find_inner_graph(onv_builder *b, const char *trace, const char **graph)
{
    const char *at = strstr(trace, ONV_NOTE_INNER);
    if (at == NULL) return ONV_OK;
    at = strchr(at, '<');
    *graph = onv_intern_n(&b->model->strings, at, strcspn(at, "\""));
    return *graph != NULL ? ONV_OK : onv_fail_memory(b->err);
}

static const char *last_frame(const char *trace)
{
    static const char frame[] = "File \"";
    const char *last = trace;
    for (const char *at = trace; (at = strstr(at, frame)) != NULL; at++) last = at;
    return last;
}

/* The last frame has that call, which is written as index_put. */
static bool calls_by_index(const char *trace, const char *aten_op, const char *call)
{
    static const char put[] = "aten.index_put.";
    if (strncmp(aten_op, put, sizeof put - 1) != 0) return false;
    return strstr(last_frame(trace), call) != NULL;
}

/* How often a line calls `name`, or `name_`, which overwrites. */
static uint32_t count_in_line(const char *line, size_t length, const char *name)
{
    size_t size = strlen(name);
    uint32_t n = 0;
    for (size_t i = 0; i + size < length; i++) {
        if (memcmp(line + i, name, size) != 0 || (i > 0 && is_word(line[i - 1]))) continue;
        size_t end = i + size + (line[i + size] == '_');
        n += end < length && line[end] == '(';
    }
    return n;
}

/* Of the code of the innermost frame. */
static uint32_t line_calls(const char *trace)
{
    static const struct {
        const char *name;
        onv_line_call bit;
    } functions[] = {
        {"block_diag", ONV_LINE_CALLS_BLOCK_DIAG},
        {"dist", ONV_LINE_CALLS_DIST},
        {"max_unpool1d", ONV_LINE_CALLS_MAX_UNPOOL},
        {"max_unpool2d", ONV_LINE_CALLS_MAX_UNPOOL},
        {"max_unpool3d", ONV_LINE_CALLS_MAX_UNPOOL},
        {"renorm", ONV_LINE_CALLS_RENORM},
        {"sgn", ONV_LINE_CALLS_SGN},
        {"std_mean", ONV_LINE_CALLS_STD_MEAN},
        {"take", ONV_LINE_CALLS_TAKE},
        {"var_mean", ONV_LINE_CALLS_VAR_MEAN},
    };
    const char *frame = last_frame(trace), *code = frame + strcspn(frame, "\n");
    if (*code == '\0') return 0;
    size_t length = strcspn(++code, "\n");
    uint32_t found = 0;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (count_in_line(code, length, functions[i].name) == 1) found |= functions[i].bit;
    return found;
}

/* AdaptiveMaxPool2d(1). */
static bool pools(const char *trace, const onv_node *node)
{
    static const char module[] = "torch.nn.modules.pooling.AdaptiveMaxPool",
                      maximum[] = "aten.amax.";
    if (strncmp(node->aten_op, maximum, sizeof maximum - 1) != 0) return false;
    return strncmp(node->module_class, module, sizeof module - 1) == 0 ||
           strstr(last_frame(trace), ONV_NOTE_MAX_POOL) != NULL;
}

static onv_status read_trace(onv_builder *b, const onv_scan_node *record, const char *trace,
                             onv_node *node)
{
    bool has_norm = record->n_inputs > 1 && strcmp(record->op_type, "BatchNormalization") != 0 &&
                    strstr(node->aten_op, "batch_norm") != NULL;
    ONV_TRY(find_function(b, trace, node));
    ONV_TRY(find_inner_graph(b, trace, &node->inner_graph));
    node->copies_by_index = calls_by_index(trace, node->aten_op, ONV_NOTE_INDEX_COPY);
    node->puts_by_index = calls_by_index(trace, node->aten_op, ONV_NOTE_INDEX_PUT);
    node->line_calls = line_calls(trace);
    node->pools = pools(trace, node);
    node->is_checkpointed = count_in_line(trace, strlen(trace), ONV_NOTE_CHECKPOINT) > 0;
    node->solves_by_rows = strstr(trace, ONV_NOTE_BY_ROWS) != NULL;
    /* A graph of its own binds names that PyTorch never had. */
    if (node->calls[0] == '\0' || node->inner_graph != NULL) return ONV_OK;
    return onv_build_statements(b, trace, node, has_norm ? onv_build_inputs(b, record)[1] : NULL);
}

/* --- The call ---------------------------------------------------------------------------------- */

/* Whether the call of a linear layer has a third argument, its bias. */
static bool has_bias(const char *call)
{
    const char *at = strstr(call, ONV_NOTE_LINEAR);
    if (at == NULL) return false;
    uint32_t n_args = 1;
    for (at += sizeof ONV_NOTE_LINEAR - 1; *at != '\0' && *at != ')'; at++) n_args += *at == ',';
    size_t last = (size_t)(at - call);
    bool is_none = last >= 4 && memcmp(call + last - 4, "None", 4) == 0;
    return n_args >= 3 && !is_none;
}

static bool has_argument(const char *args, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = args; (at = strchr(at, '%')) != NULL; at++)
        if (strncmp(at + 1, name, length) == 0 && !is_word(at[1 + length])) return true;
    return false;
}

/* Whether the name of tensor `k` of the arguments begins so. */
static bool is_named(const char *args, size_t k, const char *prefix)
{
    const char *at = strchr(args, '%');
    while (at != NULL && k-- > 0) at = strchr(at + 1, '%');
    return at != NULL && strncmp(at, prefix, strlen(prefix)) == 0;
}

static uint32_t count_calls(const char *args, const char *prefix)
{
    uint32_t n = 0;
    for (; (args = strstr(args, prefix)) != NULL; args++) n++;
    return n;
}

/* The exporter leaves clones out, contiguous() among them, and detach(): what a call reads is what was cloned, but its
 * note says "%clone_1". Values that the exporter made up, `val_7`, are no arguments, and merged ones have other
 * names, too: where there are more than clones, places decide. */
static uint32_t left_out(const onv_builder *b, const onv_scan_node *record, const char *args,
                         const char *prefix)
{
    static const char made_up[] = "val_";
    const char *const *inputs = onv_build_inputs(b, record);
    uint32_t found = 0, placed = 0, n = 0;
    if (strstr(args, prefix) == NULL) return 0;
    for (uint32_t k = 0; k < record->n_inputs && k < 32; k++) {
        if (strncmp(inputs[k], made_up, sizeof made_up - 1) == 0 || inputs[k][0] == '\0' ||
            has_argument(args, inputs[k]) ||
            is_named(args, k, ONV_NOTE_DIV)) /* a quotient by 1, which was removed */
            continue;
        found |= UINT32_C(1) << k;
        placed |= (uint32_t)is_named(args, k, prefix) << k;
        n++;
    }
    return n > count_calls(args, prefix) ? placed : found;
}

/* Argument k of the call whose arguments begin there; "" where it has fewer. */
static const char *argument(const char *args, uint32_t k)
{
    uint32_t depth = 0;
    for (; *args != '\0' && *args != ')' && k > 0; args++) {
        depth += *args == '[';
        depth -= *args == ']' && depth > 0;
        k -= *args == ',' && depth == 0;
    }
    return k == 0 ? args + strspn(args, " ") : "";
}

static void read_layers(const char *call, onv_node *node)
{
    static const char none[] = "None";
    const char *at = strstr(call, ONV_NOTE_LAYER_NORM);
    if (at != NULL)
        node->lacks_scale =
            strncmp(argument(at + sizeof ONV_NOTE_LAYER_NORM - 1, 2), none, sizeof none - 1) == 0;
    at = strstr(call, ONV_NOTE_CROSS_ENTROPY);
    if (at != NULL)
        node->smooths_labels =
            strtof(argument(at + sizeof ONV_NOTE_CROSS_ENTROPY - 1, 5), NULL) > 0;
}

/* The probability of dropout in attention: its fifth argument, or that of the name; none where it has neither. */
static void read_dropout(const char *call, onv_node *node)
{
    static const char by_name[] = "dropout_p: ";
    const char *at = strstr(call, ONV_NOTE_ATTENTION);
    if (at == NULL) return;
    const char *named = strstr(at, by_name);
    at += sizeof ONV_NOTE_ATTENTION - 1;
    for (uint32_t n = 0; n < 4 && at != NULL; n++) {
        at += strcspn(at, ",)");
        at = *at == ',' ? at + 1 : NULL;
    }
    if (named != NULL) at = named + sizeof by_name - 1;
    float dropout = at != NULL ? strtof(at, NULL) : 0;
    node->tells_dropout = dropout >= 0 && dropout <= 1;
    node->dropout = node->tells_dropout ? dropout : 0;
}

/* Of a convolution of what was padded before: the name of that, "pad_2", and how much it pads itself, "[1, 1]", the second
 * list of its arguments. Where a batch norm took its place, it was one with padding="same", which the exporter takes apart
 * and calls so. */
static onv_status read_padding(onv_builder *b, const char *call, const char *args, onv_node *node)
{
    const char *name = args + sizeof ONV_NOTE_ARGS, *list = "";
    size_t length = 0;
    node->pads_same = strstr(call, ONV_NOTE_SAME) != NULL;
    if (strncmp(args, ONV_NOTE_PADDED, sizeof ONV_NOTE_PADDED - 1) != 0 &&
        strncmp(args, ONV_NOTE_PADS, sizeof ONV_NOTE_PADS - 1) != 0)
        return ONV_OK;
    while (is_word(name[length])) length++;
    node->padded = onv_intern_n(&b->model->strings, name, length);
    const char *strides = strchr(name, '['),
               *next = strides != NULL ? strchr(strides + 1, '[') : NULL;
    if (next != NULL) list = next;
    node->padding = onv_intern_n(&b->model->strings, list, strcspn(list, "]"));
    return node->padded != NULL && node->padding != NULL ? ONV_OK : onv_fail_memory(b->err);
}

static onv_status read_call(onv_builder *b, const onv_scan_node *record, const char *call,
                            onv_node *node)
{
    const char *args = strstr(call, ONV_NOTE_ARGS);
    node->has_bias = has_bias(call);
    node->asks_for_float32 =
        strstr(call, ONV_NOTE_SOFTMAX) != NULL && strstr(call, ONV_NOTE_FLOAT32) != NULL;
    read_dropout(call, node);
    read_layers(call, node);
    if (args != NULL) node->clones = left_out(b, record, args, ONV_NOTE_CLONE);
    if (args != NULL) node->detached = left_out(b, record, args, ONV_NOTE_DETACH);
    if (args != NULL) ONV_TRY(onv_build_parameters(b, args, node));
    if (args != NULL) ONV_TRY(read_padding(b, call, args, node));
    /* What a rule asks later: slices and quotients that are left out. */
    if (args != NULL &&
        (strstr(call, ONV_NOTE_SLICE) != NULL || strstr(call, ONV_NOTE_DIV) != NULL)) {
        node->call = onv_intern(&b->model->strings, call);
        if (node->call == NULL) return onv_fail_memory(b->err);
    }
    return onv_build_merged(b, record, call, node);
}

onv_status onv_build_notes(onv_builder *b, const onv_scan_node *record, onv_node *node)
{
    noted found = {{0}};
    const char **text = found.text;
    node->scope = node->source_op = node->calls = b->empty;
    node->module_class = node->aten_op = node->call_classes = node->function = b->empty;
    if (record->notes.count == 0) return ONV_OK;
    ONV_TRY(read_notes(b, record, &found));
    if (text[ONV_NOTED_SCOPES] != NULL)
        ONV_TRY(read_list(b, text[ONV_NOTED_SCOPES], &node->scope, &node->source_op, &node->calls));
    if (text[ONV_NOTED_CLASSES] != NULL)
        ONV_TRY(read_list(b, text[ONV_NOTED_CLASSES], &node->module_class, &node->aten_op,
                          &node->call_classes));
    if (text[ONV_NOTED_TRACE] != NULL) ONV_TRY(read_trace(b, record, text[ONV_NOTED_TRACE], node));
    if (text[ONV_NOTED_CALL] != NULL) ONV_TRY(read_call(b, record, text[ONV_NOTED_CALL], node));
    node->has_pad = text[ONV_NOTED_RULES] != NULL; /* kept for it */
    return ONV_OK;
}
