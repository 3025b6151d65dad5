/* The exporter merges calls that are equal. Of `mul(%sub_5)` the argument was the result of a sixth `sub`, where the
 * node reads that of an equal one.
 *
 *     %mul : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%sub_5, %rsqrt), kwargs = {}) */
#include <string.h>

#include "base/fail.h"
#include "load/build.h"
#include "load/fields.h"

enum { MAX_ARGUMENTS = 8, MAX_NAME = 60 };

typedef struct text {
    const char *at;
    size_t length;
} text;

/* "clone_3" of "clone". */
static bool is_call_of(text name, const char *operation, size_t length)
{
    if (name.length < length || memcmp(name.at, operation, length) != 0) return false;
    if (name.length == length) return true;
    size_t digits = strspn(name.at + length + 1, "0123456789");
    return name.at[length] == '_' && digits > 0 && length + 1 + digits == name.length;
}

/* The operation's name in a call's: without the number of the call. */
static size_t base_length(text name)
{
    size_t length = name.length;
    while (length > 0 && name.at[length - 1] >= '0' && name.at[length - 1] <= '9') length--;
    return length > 1 && length < name.length && name.at[length - 1] == '_' ? length - 1
                                                                            : name.length;
}

/* The results of other calls, up to the keyword arguments. */
static uint32_t list_arguments(const char *call, text *names)
{
    static const char words[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    const char *at = strstr(call, ONV_NOTE_ARGS), *end = at != NULL ? strstr(at, "kwargs") : NULL;
    uint32_t n = 0;
    while (at != NULL && n < MAX_ARGUMENTS && (at = strchr(at, '%')) != NULL &&
           (end == NULL || at < end)) {
        names[n].at = ++at;
        names[n].length = strspn(at, words);
        at += names[n++].length;
    }
    return n;
}

static bool is_input(const char *input, text name)
{
    return strlen(input) == name.length && memcmp(input, name.at, name.length) == 0;
}

/* The node reads the value more often than the call has it as an argument: for another one, too. */
static bool is_read_for_another(const char *const *inputs, uint32_t n_inputs, uint32_t input,
                                const text *names, uint32_t n)
{
    uint32_t reads = 0, arguments = 0;
    for (uint32_t k = 0; k < n_inputs; k++) reads += strcmp(inputs[k], inputs[input]) == 0;
    for (uint32_t i = 0; i < n; i++) arguments += is_input(inputs[input], names[i]);
    return reads > arguments;
}

/* An argument is a call of the same operation as an input of the node, which no input is: as the one in its place, where there
 * are as many. */
static onv_status find_merged(onv_builder *b, const onv_scan_node *record, const text *names,
                              uint32_t n, const char **name)
{
    static const char number[] = "scalar_tensor"; /* which the host has */
    const char *const *inputs = onv_build_inputs(b, record);
    uint32_t n_inputs = record->n_inputs < MAX_ARGUMENTS ? record->n_inputs : MAX_ARGUMENTS;
    for (uint32_t i = 0; i < n; i++) {
        size_t base = base_length(names[i]);
        if (strncmp(names[i].at, number, sizeof number - 1) == 0) continue;
        bool is_read = false, is_like = false;
        for (uint32_t k = 0; k < n_inputs; k++) {
            text input = {inputs[k], strlen(inputs[k])};
            is_read |= is_input(inputs[k], names[i]);
            is_like |= (n != record->n_inputs || k == i) && is_call_of(input, names[i].at, base) &&
                       is_read_for_another(inputs, n_inputs, k, names, n);
        }
        if (is_read || !is_like || names[i].length > MAX_NAME) continue;
        *name = onv_intern_n(&b->model->strings, names[i].at, names[i].length);
        return *name != NULL ? ONV_OK : onv_fail_memory(b->err);
    }
    return ONV_OK;
}

static bool is_made_up(const char *input)
{
    static const char made_up[] = "val_";
    return strncmp(input, made_up, sizeof made_up - 1) == 0;
}

/* Each argument is an input, but for a convolution's bias of zeros, which the exporter drops; and axes, which it adds. */
static bool has_all_inputs(const onv_builder *b, const onv_scan_node *record, const char *call,
                           const text *names, uint32_t n)
{
    static const char parameter[] = "p_";
    if (n == record->n_inputs) return n < MAX_ARGUMENTS;
    if (n == 1 && record->n_inputs == 2) return is_made_up(onv_build_inputs(b, record)[1]);
    return n == record->n_inputs + 1 && n < MAX_ARGUMENTS && strstr(call, "aten.conv") != NULL &&
           strncmp(names[n - 1].at, parameter, sizeof parameter - 1) == 0;
}

/* `x + 0`, as sum() begins, and `x * 1`: the exporter removes them, so that the node reads x where its call had the result of
 * another operation. */
static uint32_t find_neutral(const onv_builder *b, const onv_scan_node *record,
                             const char *text_of_call, const text *names, uint32_t n,
                             const char **op)
{
    static const char *const neutral[] = {"add", "mul", "sub", "div"};
    const char *const *inputs = onv_build_inputs(b, record);
    uint32_t found = 0;
    if (!has_all_inputs(b, record, text_of_call, names, n)) return 0;
    if (n > record->n_inputs) n = (uint32_t)record->n_inputs;
    for (uint32_t i = 0; i < n; i++) {
        size_t base = base_length(names[i]);
        const char *call = NULL;
        bool is_read = false;
        for (size_t k = 0; k < sizeof neutral / sizeof neutral[0]; k++)
            if (base == strlen(neutral[k]) && memcmp(names[i].at, neutral[k], base) == 0)
                call = neutral[k];
        for (uint32_t k = 0; k < n; k++) is_read |= is_input(inputs[k], names[i]);
        text input = {inputs[i], strlen(inputs[i])};
        bool is_like = is_call_of(input, names[i].at, base);
        if (call == NULL || is_read || is_like || is_made_up(inputs[i])) continue;
        found |= UINT32_C(1) << i;
        *op = call;
    }
    return found;
}

/* Inputs that the call has under their own names. */
static uint32_t find_named(const onv_builder *b, const onv_scan_node *record, const text *names,
                           uint32_t n)
{
    const char *const *inputs = onv_build_inputs(b, record);
    uint32_t found = 0;
    for (uint32_t k = 0; k < record->n_inputs && k < MAX_ARGUMENTS; k++)
        for (uint32_t i = 0; i < n; i++)
            if (is_input(inputs[k], names[i])) found |= UINT32_C(1) << k;
    return found;
}

/* What a linear layer or a batch norm has for a weight, where that is no parameter: "div" of `linear(%x, %div)`. Its node
 * reads what the exporter computed of that and called "val_5". */
static onv_status find_weight(onv_builder *b, const onv_scan_node *record, const char *call,
                              const text *names, uint32_t n, const char **name)
{
    static const char *const inputs[] = {"p_", "b_", "c_"};
    bool has_weight =
        strstr(call, ONV_NOTE_LINEAR) != NULL || strstr(call, ONV_NOTE_BATCH_NORM) != NULL;
    if (n < 2 || record->n_inputs < 2 || !has_weight) return ONV_OK;
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
        if (strncmp(names[1].at, inputs[i], strlen(inputs[i])) == 0) return ONV_OK;
    if (names[1].length > MAX_NAME) return ONV_OK;
    *name = onv_intern_n(&b->model->strings, names[1].at, names[1].length);
    return *name != NULL ? ONV_OK : onv_fail_memory(b->err);
}

onv_status onv_build_merged(onv_builder *b, const onv_scan_node *record, const char *call,
                            onv_node *node)
{
    text names[MAX_ARGUMENTS];
    uint32_t n = list_arguments(call, names);
    node->neutral = find_neutral(b, record, call, names, n, &node->neutral_op);
    node->named = find_named(b, record, names, n);
    ONV_TRY(find_weight(b, record, call, names, n, &node->weight_call));
    return find_merged(b, record, names, n, &node->merged_call);
}
