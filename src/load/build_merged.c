/* The exporter merges calls that are equal. Of `mul(%sub_5)` the argument was the result of a sixth `sub`, where the
 * node reads that of an equal one.
 *
 *     %mul : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%sub_5, %rsqrt), kwargs = {}) */
#include <string.h>

#include "base/fail.h"
#include "load/notes.h"

enum { MAX_ARGUMENTS = 8, MAX_NAME = 60 };

/* What a node reads, and what its call had for arguments. */
typedef struct reads {
    onv_text inputs[MAX_ARGUMENTS], names[MAX_ARGUMENTS];
    uint32_t n_inputs, n; /* of them; those beyond are not looked at */
    uint32_t all_inputs;
} reads;

static reads list(const onv_builder *b, const onv_scan_node *record, const onv_noted_call *call)
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

static uint32_t count(const onv_text *texts, uint32_t n, onv_text wanted)
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
            is_like |=
                (r->n != r->all_inputs || k == i) && is_call_of(r->inputs[k], op) &&
                count(r->inputs, r->n_inputs, r->inputs[k]) > count(r->names, r->n, r->inputs[k]);
        /* A number is what the host has. */
        if (is_like && !onv_text_begins(r->names[i], "scalar_tensor") &&
            count(r->inputs, r->n_inputs, r->names[i]) == 0)
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
        if (count(r->inputs, n, r->names[i]) > 0 || is_call_of(r->inputs[i], base) ||
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

onv_status onv_build_merged(onv_builder *b, const onv_scan_node *record, const onv_noted_call *call,
                            onv_notes *notes)
{
    reads r = list(b, record, call);
    notes->neutral = find_neutral(&r, call->text);
    ONV_TRY(find_weight(b, &r, call->text, &notes->weight_call));
    return find_merged(b, &r, &notes->merged_call);
}
