/* What PyTorch's exporter notes of nodes and of the main graph. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "ir/notes.h"
#include "load/build.h"
#include "load/scan.h"
#include "load/statements.h"

/* A call as it is noted: `%mul : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%sub_5, %rsqrt), kwargs = {})`. */
typedef struct onv_noted_call {
    onv_text text;
    const onv_text *tensors;     /* its arguments that are tensors, without "%", in their order */
    uint32_t n_tensors, n_plain; /* the first ones have no keyword */
} onv_noted_call;

/* The note of a kind, of those from `first` on, as it lies in the source, until something else is looked at there; at NULL: there is none. */
static onv_status read_note(onv_builder *b, onv_record first, onv_note kind, onv_text *text)
{
    enum { PER_WORK = 4 }; /* bytes, which are read a number of times */
    *text = (onv_text){NULL, 0};
    ONV_EACH_RECORD(note, b->scan->notes, (onv_record_list){.first = first})
    {
        const unsigned char *at;
        if (note->note != kind) continue;
        ONV_WORK(1 + note->bytes / PER_WORK);
        ONV_TRY(onv_source_view(b->scan->source, note->offset, note->bytes, &at, b->err));
        *text = (onv_text){(const char *)at, note->bytes};
    }
    return ONV_OK;
}

/* --- The signature ------------------------------------------------------------------------------ */

/* The parameters of the network that was exported: PyTorch's exporter lists them in a note of the graph, those
 * too that no node reads, one line each:
 *
 *     p_layer1_weight: PARAMETER target='layer1.weight'
 *
 * The notes of calls name them so: "args = (%x, %p_layer1_weight)". */

/* In the order in which their names are kept. */
typedef enum kind { PARAMETER, BUFFER, ATTRIBUTE, UPDATED, N_KINDS } kind;

/* One line of the list. */
typedef struct entry {
    kind kind;
    onv_text called, name;
} entry;

static bool next_entry(onv_text *rest, entry *e)
{
    static const char *const kinds[N_KINDS] = {
        "PARAMETER target='", "BUFFER target='", /* that is registered */
        "CONSTANT_TENSOR target='",              /* that the network merely has an attribute for */
        "BUFFER_MUTATION target='", /* that the pass writes, by a result of the export */
    };
    for (onv_text line; onv_next_part(rest, '\n', &line);) {
        onv_text is = onv_text_behind(line, ": ");
        for (kind k = 0; k < N_KINDS; k++) {
            if (!onv_text_begins(is, kinds[k])) continue;
            onv_text before = {line.at, (size_t)(is.at - line.at) - strlen(": ")};
            *e = (entry){k, onv_text_last_word(before),
                         onv_text_until(onv_text_skip(is, strlen(kinds[k])), "'")};
            return true;
        }
    }
    return false;
}

onv_status onv_build_signature(onv_builder *b, const onv_scan_graph *record)
{
    onv_model *model = b->model;
    onv_text text;
    entry e;
    size_t ends[N_KINDS + 1] = {0}, at[N_KINDS] = {0};
    ONV_TRY(read_note(b, record->notes, ONV_NOTED_SIGNATURE, &text));
    for (onv_text rest = text; next_entry(&rest, &e);) ends[e.kind + 1]++;
    for (kind k = 0; k < N_KINDS; k++) ends[k + 1] += at[k] = ends[k];
    const char **names = ONV_ARENA_ARRAY(&model->arena, const char *, ends[N_KINDS]), *called;
    if (names == NULL) return onv_fail_memory(b->err);
    for (onv_text rest = text; next_entry(&rest, &e);) {
        ONV_TRY(onv_build_text(b, e.name, &names[at[e.kind]++]));
        if (e.kind != PARAMETER) continue;
        ONV_TRY(onv_build_text(b, e.called, &called));
        if (!onv_ptr_map_set(&b->signature, called, (uint32_t)at[PARAMETER] - 1))
            return onv_fail_memory(b->err);
    }
    model->listed = (onv_listed){
        .parameters = names,
        .n_parameters = ends[BUFFER],
        .buffers = names + ends[BUFFER],
        .n_buffers = ends[UPDATED] - ends[BUFFER],
        .n_registered = ends[ATTRIBUTE] - ends[BUFFER],
        .updated = names + ends[UPDATED],
        .n_updated = ends[N_KINDS] - ends[UPDATED],
    };
    return ONV_OK;
}

/* --- Modules ----------------------------------------------------------------------------------- */

/* A part of a sequence has the path of the sequence, and its modules theirs: 'features.slice(4, 10, None).conv1'. */
static onv_status without_slices(onv_builder *b, onv_text *scopes)
{
    onv_text rest = *scopes;
    b->text.count = 0;
    if (!onv_vec_reserve(&b->text, rest.length)) return onv_fail_memory(b->err);
    while (rest.length > 0) {
        onv_text slice = onv_text_from(rest, ".slice("), behind = onv_text_behind(slice, ")");
        if (behind.length == 0) slice = behind = onv_text_skip(rest, rest.length);
        memcpy(b->text.at + b->text.count, rest.at, (size_t)(slice.at - rest.at));
        b->text.count += (size_t)(slice.at - rest.at);
        rest = behind;
    }
    *scopes = (onv_text){b->text.at, b->text.count};
    return ONV_OK;
}

/* The text is of no use where the exporter says that it does not know. */
static onv_status intern_part(onv_builder *b, onv_text text, const char **part)
{
    *part = onv_no_notes.scope;
    if (text.length == 0 || onv_text_begins(text, "_empty_nn_module_stack")) return ONV_OK;
    return onv_build_text(b, text, part);
}

/* The last two elements of a list that Python wrote, ['', 'layer1', 'layer1.0', 'conv2d']: from the
 * model itself down to the operation; and all before the last one, up to a quotation mark. */
static onv_status read_list(onv_builder *b, onv_text list, const char **parent, const char **self,
                            const char **around)
{
    onv_text rest = list, parts[2] = {{list.at, 0}, {list.at, 0}};
    size_t before = 0;
    for (onv_text next; onv_next_quoted(&rest, &next); parts[1] = next) {
        if (parts[1].at > list.at) before = (size_t)(parts[1].at - list.at) + parts[1].length + 1;
        parts[0] = parts[1];
    }
    ONV_TRY(intern_part(b, parts[0], parent));
    ONV_TRY(intern_part(b, parts[1], self));
    bool is_known = parts[0].length == 0 || (*parent)[0] != '\0';
    return intern_part(b, (onv_text){list.at, is_known ? before : 0}, around);
}

/* --- Python ------------------------------------------------------------------------------------ */

/* The code of a graph of its own, of torch.no_grad() or torch.autocast(), whose modules have no notes. */
static const char inner_path[] = "<eval_with_key>";

/* How often the code calls `name`, or `name_`, which overwrites. */
static uint32_t count_calls(onv_text code, const char *name)
{
    onv_text callee = onv_text_of(name);
    return onv_text_count_calls(code, callee, "") + onv_text_count_calls(code, callee, "_");
}

/* `.apply(1 - x)` as the innermost line: the difference is what the function is given, not a part of it. */
static bool is_argument(onv_text call)
{
    uint32_t depth = 0;
    for (char c; (c = onv_text_first(call)) != '\0' && (depth != 1 || c != ')');
         call = onv_text_skip(call, 1)) {
        bool is_operator = c == ' ' && call.length > 2 && call.at[2] == ' ';
        if (depth > 0 && (c == '(' || is_operator)) return true;
        depth += c == '(';
    }
    return false;
}

/* The innermost `Name.apply(` of the lines of Python that called the operation. Classes begin with a
 * capital; nn.Module.apply, a method, does not run in forward passes. */
static onv_text find_function(onv_text trace, const char *last_frame)
{
    static const char apply[] = ".apply(";
    onv_text line, found = {trace.at, 0};
    while (onv_next_part(&trace, '\n', &line)) {
        onv_text call = onv_text_from(line, apply);
        for (; call.length > 0; call = onv_text_from(onv_text_skip(call, 1), apply)) {
            onv_text name = onv_text_last_word((onv_text){line.at, (size_t)(call.at - line.at)});
            bool is_class = onv_text_first(name) >= 'A' && onv_text_first(name) <= 'Z';
            if (is_class && (line.at < last_frame || !is_argument(call))) found = name;
        }
    }
    return found;
}

/* Of a list of modules or of classes, those that are not PyTorch's. */
static uint32_t count_own(const char *list)
{
    uint32_t n = 0;
    onv_text rest = onv_text_of(list);
    for (onv_text element; onv_next_quoted(&rest, &element);)
        n += !onv_text_begins(element, "torch.");
    return n;
}

/* `y = swish(x)`, where the code has `swish = Swish.apply`: one more forward() runs than modules do, and it has no `self`. Slices of
 * nn.Sequential run as modules that are in no list. Gives the name before the first call of the line. */
static onv_text find_alias(onv_text trace, const onv_notes *notes)
{
    onv_text caller = {NULL, 0}, code = {NULL, 0};
    uint32_t n = 0, all = count_own(notes->calls);
    uint32_t n_own = 0, own = count_own(notes->call_classes);
    for (onv_trace_frame f; onv_next_frame(&trace, &f);) {
        bool runs = onv_text_is(f.function, "forward") && !onv_text_begins(f.path, inner_path);
        bool is_own = runs && !onv_text_has(f.path, "/torch/");
        bool by_name = onv_text_has(code, ".forward(");
        n += runs && !by_name;
        n_own += is_own && !by_name;
        if (is_own) caller = code;
        code = f.code;
        if (!is_own || n <= all || n_own <= own || caller.at == NULL || onv_text_has(code, "self."))
            continue;
        onv_text called = onv_text_until(caller, "(");
        if (called.length == caller.length) called.length = 0;
        return onv_text_last_word(called);
    }
    return (onv_text){trace.at, 0};
}

static onv_status read_trace(onv_builder *b, const onv_scan_node *record, onv_text trace,
                             onv_notes *notes)
{
    onv_trace_frame f, last = {.rest = trace}, own = {.path = {NULL, 0}};
    for (onv_text rest = trace; onv_next_frame(&rest, &f); last = f) {
        onv_statements_look_at(&f, &own);
        /* A graph inside of the network's, as torch.no_grad() makes one, that the exporter joined with it. */
        if (notes->inner_graph == NULL && onv_text_begins(f.path, inner_path))
            ONV_TRY(onv_build_text(b, f.path, &notes->inner_graph));
    }
    ONV_TRY(onv_statements_name_line(b->model, &own, &notes->line, b->err));
    onv_text function = find_function(trace, last.rest.at);
    if (function.length == 0 && notes->call_classes[0] != '\0') function = find_alias(trace, notes);
    ONV_TRY(onv_build_text(b, function, &notes->function));
    /* `x.index_copy(...)`, which the exporter writes as `x[index] = y`. */
    notes->copies_by_index = onv_text_begins(onv_text_of(notes->aten_op), "aten.index_put.") &&
                             onv_text_has(last.rest, "index_copy");
    notes->is_checkpointed = count_calls(trace, "checkpoint") > 0;
    /* A graph of its own binds names that PyTorch never had. */
    if (notes->calls[0] == '\0' || notes->inner_graph != NULL) return ONV_OK;
    bool has_norm = record->n_inputs > 1 &&
                    strcmp(onv_build_name(b, record->op_type), "BatchNormalization") != 0 &&
                    strstr(notes->aten_op, "batch_norm") != NULL;
    const char *folded = has_norm ? onv_build_name(b, onv_build_inputs(b, record)[1]) : NULL;
    return onv_statements_read(b->model, trace, folded, notes, b->err);
}

/* --- Merged calls ------------------------------------------------------------------------------- */

/* The exporter merges calls that are equal. Of `mul(%sub_5)` the argument was the result of a sixth `sub`, where the
 * node reads that of an equal one.
 *
 *     %mul : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%sub_5, %rsqrt), kwargs = {}) */

enum { MAX_ARGUMENTS = 8, MAX_NAME = 60 };

/* What a node reads, and what its call had for arguments. */
typedef struct reads {
    onv_text inputs[MAX_ARGUMENTS], names[MAX_ARGUMENTS];
    uint32_t n_inputs, n; /* of them; those beyond are not looked at */
    uint32_t all_inputs;
} reads;

static reads list_reads(const onv_builder *b, const onv_scan_node *record,
                        const onv_noted_call *call)
{
    reads r = {.all_inputs = record->n_inputs};
    const onv_name *inputs = onv_build_inputs(b, record);
    for (; r.n_inputs < record->n_inputs && r.n_inputs < MAX_ARGUMENTS; r.n_inputs++)
        r.inputs[r.n_inputs] = onv_text_of(onv_build_name(b, inputs[r.n_inputs]));
    for (; r.n < call->n_plain && r.n < MAX_ARGUMENTS; r.n++) r.names[r.n] = call->tensors[r.n];
    return r;
}

/* The operation's name in a call's: without the number of the call. */
static onv_text operation(onv_text name)
{
    size_t length = name.length;
    while (length > 0 && onv_is_digit(name.at[length - 1])) length--;
    bool is_numbered = length > 1 && length < name.length && name.at[length - 1] == '_';
    return (onv_text){name.at, is_numbered ? length - 1 : name.length};
}

/* "clone_3" of "clone". */
static bool is_call_of(onv_text name, onv_text op)
{
    return onv_text_same(name, op) || onv_text_same(operation(name), op);
}

static uint32_t count_same(const onv_text *texts, uint32_t n, onv_text wanted)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i++) found += onv_text_same(texts[i], wanted);
    return found;
}

static onv_status intern_short(onv_builder *b, onv_text name, const char **interned)
{
    return name.length <= MAX_NAME ? onv_build_text(b, name, interned) : ONV_OK;
}

/* An argument is a call of the same operation as an input of the node, which no input is: as the one in its place, where there
 * are as many; and the node reads that input more often than the call has it as an argument: for another one, too. */
static onv_status find_merged(onv_builder *b, const reads *r, const char **name)
{
    for (uint32_t i = 0; i < r->n && *name == NULL; i++) {
        onv_text op = operation(r->names[i]);
        bool is_like = false;
        for (uint32_t k = 0; k < r->n_inputs; k++)
            is_like |= (r->n != r->all_inputs || k == i) && is_call_of(r->inputs[k], op) &&
                       count_same(r->inputs, r->n_inputs, r->inputs[k]) >
                           count_same(r->names, r->n, r->inputs[k]);
        /* A number is what the host has. */
        if (is_like && !onv_text_begins(r->names[i], "scalar_tensor") &&
            count_same(r->inputs, r->n_inputs, r->names[i]) == 0)
            ONV_TRY(intern_short(b, r->names[i], name));
    }
    return ONV_OK;
}

static bool is_made_up(onv_text input)
{
    return onv_text_begins(input, "val_");
}

/* Each argument is an input, but for a convolution's bias of zeros, which the exporter drops; and axes, which it adds. */
static bool has_all_inputs(const reads *r, onv_text call)
{
    if (r->n == r->all_inputs) return r->n < MAX_ARGUMENTS;
    if (r->n == 1 && r->all_inputs == 2) return is_made_up(r->inputs[1]);
    return r->n == r->all_inputs + 1 && r->n < MAX_ARGUMENTS && onv_text_has(call, "aten.conv") &&
           onv_text_begins(r->names[r->n - 1], "p_");
}

/* `x + 0`, as sum() begins, and `x * 1`: the exporter removes them, so that the node reads x where its call had the result of
 * another operation. */
static uint32_t find_neutral(const reads *r, onv_text call)
{
    static const char *const neutral[] = {"add", "mul", "sub", "div"};
    uint32_t found = 0, n = r->n < r->all_inputs ? r->n : r->all_inputs;
    if (!has_all_inputs(r, call)) return 0;
    for (uint32_t i = 0; i < n; i++) {
        onv_text base = operation(r->names[i]);
        if (count_same(r->inputs, n, r->names[i]) > 0 || is_call_of(r->inputs[i], base) ||
            is_made_up(r->inputs[i]))
            continue;
        for (size_t k = 0; k < sizeof neutral / sizeof neutral[0]; k++)
            if (onv_text_is(base, neutral[k])) found |= UINT32_C(1) << i;
    }
    return found;
}

/* What a linear layer or a batch norm has for a weight, where that is no parameter: "div" of `linear(%x, %div)`. Its node
 * reads what the exporter computed of that and called "val_5". */
static onv_status find_weight(onv_builder *b, const reads *r, onv_text call, const char **name)
{
    static const char *const inputs[] = {"p_", "b_", "c_"};
    if (r->n < 2 || r->all_inputs < 2 ||
        (!onv_text_has(call, "aten.linear.default" ONV_NOTE_ARGS) &&
         !onv_text_has(call, "aten._native_batch_norm_legit.no_stats" ONV_NOTE_ARGS)))
        return ONV_OK;
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
        if (onv_text_begins(r->names[1], inputs[i])) return ONV_OK;
    return intern_short(b, r->names[1], name);
}

/* What arguments tell of calls that are not in the file: one that the exporter merged with one that the node reads, and those that
 * changed nothing. */
static onv_status read_merged(onv_builder *b, const onv_scan_node *record,
                              const onv_noted_call *call, onv_notes *notes)
{
    reads r = list_reads(b, record, call);
    notes->neutral = find_neutral(&r, call->text);
    ONV_TRY(find_weight(b, &r, call->text, &notes->weight_call));
    return find_merged(b, &r, &notes->merged_call);
}

/* --- The call ---------------------------------------------------------------------------------- */

/* Argument k of those that begin there; empty where there are fewer. */
static onv_text argument(onv_text args, uint32_t k)
{
    uint32_t depth = 0;
    char c;
    for (; (c = onv_text_first(args)) != '\0' && c != ')' && k > 0; args = onv_text_skip(args, 1)) {
        depth += c == '[';
        depth -= c == ']' && depth > 0;
        k -= c == ',' && depth == 0;
    }
    while (onv_text_first(args) == ' ') args = onv_text_skip(args, 1);
    return k == 0 ? args : (onv_text){args.at, 0};
}

static float number(onv_text text)
{
    char copy[32] = {0};
    memcpy(copy, text.at, text.length < sizeof copy ? text.length : sizeof copy - 1);
    return strtof(copy, NULL);
}

/* The probability of dropout in attention: its fifth argument, or that of the name; none where it has neither. */
static void read_dropout(onv_text call, onv_notes *notes)
{
    onv_text at = onv_text_behind(call, "aten.scaled_dot_product_attention.default" ONV_NOTE_ARGS);
    onv_text named = onv_text_behind(at, "dropout_p: ");
    if (at.length == 0) return;
    float dropout = number(named.length > 0 ? named : argument(at, 4));
    notes->tells_dropout = dropout >= 0 && dropout <= 1;
    notes->dropout = notes->tells_dropout ? dropout : 0;
}

static bool is_named(const onv_noted_call *call, uint32_t k, const char *prefix)
{
    return k < call->n_tensors && onv_text_begins(call->tensors[k], prefix);
}

/* The exporter leaves clones out, contiguous() among them, and detach(): what a call reads is what was cloned, but its
 * note says "%clone_1". Values that the exporter made up, `val_7`, are no arguments, and merged ones have other
 * names, too: where there are more than clones, places decide. */
static uint32_t left_out(const onv_builder *b, const onv_scan_node *record,
                         const onv_noted_call *call, const char *prefix)
{
    const onv_name *inputs = onv_build_inputs(b, record);
    uint32_t found = 0, placed = 0, n = 0, n_left_out = 0;
    for (uint32_t i = 0; i < call->n_tensors; i++) n_left_out += is_named(call, i, prefix);
    for (uint32_t k = 0; n_left_out > 0 && k < record->n_inputs && k < 32; k++) {
        onv_text input = onv_text_of(onv_build_name(b, inputs[k]));
        bool is_named_so = false;
        for (uint32_t i = 0; i < call->n_tensors; i++)
            is_named_so |= onv_text_same(call->tensors[i], input);
        if (onv_text_begins(input, "val_") || input.length == 0 || is_named_so ||
            is_named(call, k, "div")) /* a quotient by 1, which was removed */
            continue;
        found |= UINT32_C(1) << k;
        placed |= (uint32_t)is_named(call, k, prefix) << k;
        n++;
    }
    return n > n_left_out ? placed : found;
}

/* Of a convolution of what was padded before: the name of that, "pad_2", and how much it pads itself, "[1, 1]", the second
 * list of its arguments. Where a batch norm took its place, it was one with padding="same", which the exporter takes apart
 * and calls so. */
static onv_status read_padding(onv_builder *b, const onv_noted_call *call, onv_notes *notes)
{
    onv_text args = onv_text_behind(call->text, ONV_NOTE_ARGS);
    if (!onv_text_begins(args, "%pad") && !onv_text_begins(args, "%constant_pad_nd")) return ONV_OK;
    onv_text list = onv_text_from(onv_text_behind(args, "["), "[");
    ONV_TRY(onv_build_text(b, call->tensors[0], &notes->padded));
    return onv_build_text(b, onv_text_until(list, "]"), &notes->padding);
}

/* The tensors among its arguments, and how many of them have no keyword. */
static onv_status list_tensors(onv_builder *b, onv_noted_call *call)
{
    onv_text rest = onv_text_from(call->text, ONV_NOTE_ARGS), name;
    const char *end = onv_text_from(rest, "kwargs").at;
    b->tensors.count = 0;
    while (onv_next_tensor(&rest, &name)) {
        if (!onv_vec_push(&b->tensors, name)) return onv_fail_memory(b->err);
        call->n_plain += name.at <= end;
    }
    call->tensors = b->tensors.at;
    call->n_tensors = (uint32_t)b->tensors.count;
    return ONV_OK;
}

/* Those that the call of a node names. */
static onv_status read_parameters(onv_builder *b, const onv_noted_call *call, onv_notes *notes)
{
    enum { MAX_PARAMETERS = 64 };
    const char *names[MAX_PARAMETERS], *called;
    uint32_t n = 0, place;
    if (b->model->listed.n_parameters == 0) return ONV_OK;
    for (uint32_t i = 0; i < call->n_plain && n < MAX_PARAMETERS; i++) {
        notes->takes_buffer |= onv_text_begins(call->tensors[i], "b_");
        if (!onv_text_begins(call->tensors[i], "p_")) continue;
        ONV_TRY(onv_build_text(b, call->tensors[i], &called));
        if (!onv_ptr_map_get(&b->signature, called, &place)) continue;
        const char *name = onv_listed_parameter(&b->model->listed, place);
        if (name != NULL) names[n++] = name;
    }
    if (n == 0) return ONV_OK;
    notes->takes_buffer = false;
    notes->parameters = onv_arena_copy(&b->model->arena, names, n * sizeof *names);
    notes->n_parameters = n;
    return notes->parameters != NULL ? ONV_OK : onv_fail_memory(b->err);
}

static onv_status read_call(onv_builder *b, const onv_scan_node *record, onv_text text,
                            onv_notes *notes)
{
    onv_noted_call call = {.text = text};
    ONV_TRY(list_tensors(b, &call));
    onv_text args = onv_text_behind(text, "aten.linear.default" ONV_NOTE_ARGS);
    onv_text bias = argument(args, 2);
    notes->has_bias = bias.length > 0 && !onv_text_begins(bias, "None");
    notes->asks_for_float32 =
        onv_text_has(text, "softmax.int" ONV_NOTE_ARGS) && onv_text_has(text, "torch.float32");
    read_dropout(text, notes);
    args = onv_text_behind(text, "aten.layer_norm.default" ONV_NOTE_ARGS);
    notes->lacks_scale = onv_text_begins(argument(args, 2), "None");
    args = onv_text_behind(text, "aten.cross_entropy_loss.default" ONV_NOTE_ARGS);
    notes->smooths_labels = number(argument(args, 5)) > 0;
    notes->clones = left_out(b, record, &call, "clone");
    notes->detached = left_out(b, record, &call, "detach");
    ONV_TRY(read_parameters(b, &call, notes));
    ONV_TRY(read_padding(b, &call, notes));
    return read_merged(b, record, &call, notes);
}

/* --- All notes --------------------------------------------------------------------------------- */

onv_status onv_build_notes(onv_builder *b, const onv_scan_node *record, onv_node *node)
{
    onv_text text;
    if (record->notes == 0) return ONV_OK;
    onv_notes *notes = onv_arena_copy(&b->model->arena, &onv_no_notes, sizeof onv_no_notes);
    if (notes == NULL) return onv_fail_memory(b->err);
    node->notes = notes;
    ONV_TRY(read_note(b, record->notes, ONV_NOTED_SCOPES, &text));
    ONV_TRY(without_slices(b, &text));
    ONV_TRY(read_list(b, text, &notes->scope, &notes->source_op, &notes->calls));
    ONV_TRY(read_note(b, record->notes, ONV_NOTED_CLASSES, &text));
    ONV_TRY(read_list(b, text, &notes->module_class, &notes->aten_op, &notes->call_classes));
    ONV_TRY(read_note(b, record->notes, ONV_NOTED_TRACE, &text));
    if (text.at != NULL) ONV_TRY(read_trace(b, record, text, notes));
    ONV_TRY(read_note(b, record->notes, ONV_NOTED_CALL, &text));
    if (text.at != NULL) ONV_TRY(read_call(b, record, text, notes));
    ONV_TRY(read_note(b, record->notes, ONV_NOTED_RULES, &text));
    notes->has_pad = text.at != NULL; /* kept for it */
    return ONV_OK;
}
