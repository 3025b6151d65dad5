/* What PyTorch's exporter noted of a node. */
#include "load/notes.h"
#include "load/statements.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/quota.h"

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

/* Whether the call of a linear layer has a third argument, its bias. */
static bool has_bias(onv_text call)
{
    onv_text args = onv_text_until(onv_text_behind(call, "aten.linear.default" ONV_NOTE_ARGS), ")");
    onv_text part;
    uint32_t n = 0;
    for (onv_text rest = args; onv_next_part(&rest, ',', &part);) n++;
    return n >= 3 && !onv_text_ends(args, "None");
}

/* The probability of dropout in attention: its fifth argument, or that of the name; none where it has neither. */
static void read_dropout(onv_text call, onv_notes *notes)
{
    onv_text at = onv_text_behind(call, "aten.scaled_dot_product_attention.default" ONV_NOTE_ARGS);
    onv_text named = onv_text_behind(at, "dropout_p: ");
    if (at.length == 0) return;
    for (uint32_t n = 0; n < 4; n++) {
        at = onv_text_skip(at, onv_text_until(at, ",)").length);
        at = onv_text_skip(at, onv_text_first(at) == ',' ? 1 : at.length);
    }
    float dropout = number(named.length > 0 ? named : at);
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

static onv_status read_call(onv_builder *b, const onv_scan_node *record, onv_text text,
                            onv_notes *notes)
{
    onv_noted_call call = {.text = text};
    ONV_TRY(list_tensors(b, &call));
    notes->has_bias = has_bias(text);
    notes->asks_for_float32 =
        onv_text_has(text, "softmax.int" ONV_NOTE_ARGS) && onv_text_has(text, "torch.float32");
    read_dropout(text, notes);
    onv_text args = onv_text_behind(text, "aten.layer_norm.default" ONV_NOTE_ARGS);
    notes->lacks_scale = onv_text_begins(argument(args, 2), "None");
    args = onv_text_behind(text, "aten.cross_entropy_loss.default" ONV_NOTE_ARGS);
    notes->smooths_labels = number(argument(args, 5)) > 0;
    notes->clones = left_out(b, record, &call, "clone");
    notes->detached = left_out(b, record, &call, "detach");
    ONV_TRY(onv_build_parameters(b, &call, notes));
    ONV_TRY(read_padding(b, &call, notes));
    return onv_build_merged(b, record, &call, notes);
}

/* --- All notes --------------------------------------------------------------------------------- */

onv_status onv_build_note(onv_builder *b, onv_record first, onv_note kind, onv_text *text)
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

onv_status onv_build_notes(onv_builder *b, const onv_scan_node *record, onv_node *node)
{
    onv_text text;
    if (record->notes == 0) return ONV_OK;
    onv_notes *notes = onv_arena_copy(&b->model->arena, &onv_no_notes, sizeof onv_no_notes);
    if (notes == NULL) return onv_fail_memory(b->err);
    node->notes = notes;
    ONV_TRY(onv_build_note(b, record->notes, ONV_NOTED_SCOPES, &text));
    ONV_TRY(without_slices(b, &text));
    ONV_TRY(read_list(b, text, &notes->scope, &notes->source_op, &notes->calls));
    ONV_TRY(onv_build_note(b, record->notes, ONV_NOTED_CLASSES, &text));
    ONV_TRY(read_list(b, text, &notes->module_class, &notes->aten_op, &notes->call_classes));
    ONV_TRY(onv_build_note(b, record->notes, ONV_NOTED_TRACE, &text));
    if (text.at != NULL) ONV_TRY(read_trace(b, record, text, notes));
    ONV_TRY(onv_build_note(b, record->notes, ONV_NOTED_CALL, &text));
    if (text.at != NULL) ONV_TRY(read_call(b, record, text, notes));
    ONV_TRY(onv_build_note(b, record->notes, ONV_NOTED_RULES, &text));
    notes->has_pad = text.at != NULL; /* kept for it */
    return ONV_OK;
}
