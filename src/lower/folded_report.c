/* What is said of constants that the exporter computed of parameters: sizes that are assumed, and calls that are not counted. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/quota.h"
#include "lower/lowering.h"

void onv_folded_report(onv_lowering *l)
{
    for (size_t i = 0; i < l->emit.eager->storages.count; i++) {
        const onv_eager_storage *storage = &l->emit.eager->storages.at[i];
        if (storage->is_assumed)
            onv_say(&l->emit, ONV_SAID_assumed_sizes, storage->label, storage->bytes, NULL);
    }
}

/* --- Constants of several calls ------------------------------------------------------------------- */

enum { MOST_NAME = 256 };

typedef struct note {
    uint32_t parameters, others; /* that are listed; buffers, and what calls make of nothing */
    uint32_t results;            /* of calls that give no view */
    bool has_layer;
} note;

static bool is_layer(const char *call)
{
    static const char layers[] =
        "linear layer_norm rms_norm conv1d conv2d group_norm bilinear batch_norm "
        "multi_head_attention_forward matmul mm bmm addmm baddbmm einsum softmax";
    return onv_is_call_of(call, layers);
}

static void add_call(note *of, const char *call)
{
    static const char views[] =
        "t numpy_T flatten detach alias chunk split getitem unbind _to_copy clone index embedding";
    static const char made[] = "arange linspace eye zeros ones full";
    bool is_made = onv_is_call_of(call, made);
    of->others += is_made;
    of->has_layer |= is_layer(call);
    bool is_view = onv_weight_is_view(call) || onv_is_call_of(call, views);
    of->results += !is_view && !is_made && strncmp(call, "scalar_tensor", 13) != 0;
}

static note read_note(const onv_lowering *l, const onv_value *value)
{
    enum { PER_WORK = 16 };
    note of = {0};
    const char *at = value->tensor != NULL ? value->tensor->folded_from : NULL;
    if (!onv_has_made_up_name(value->name)) add_call(&of, value->name);
    if (at == NULL || !onv_work(1 + strlen(at) / PER_WORK)) return of;
    for (onv_words name; onv_words_next_quoted(&at, &name);) { /* "['rope.freqs', 'select']" */
        char copy[MOST_NAME];
        if (name.length >= sizeof copy) continue;
        memcpy(copy, name.at, name.length);
        copy[name.length] = '\0';
        if (onv_listed_find(l, copy) != SIZE_MAX)
            of.parameters++;
        else if (strchr(copy, '.') != NULL || onv_is_listed_buffer(l, copy, NULL))
            of.others++;
        else if (!onv_has_made_up_name(copy))
            add_call(&of, copy);
    }
    return of;
}

bool onv_folded_is_of_several(const onv_lowering *l, const onv_value *value)
{
    note of = read_note(l, value);
    return of.parameters > 0 && of.parameters + of.others > 1;
}

/* A layer's weight that has the name of a call, and no note: code made it, or computed it of what the file lacks. */
static bool is_weight_of_unknown(const onv_lowering *l, uint32_t value)
{
    const onv_value *v = &l->emit.model->values.at[value];
    const onv_weight_read *read = &l->weights.reads.at[l->weights.values[value].first_read - 1];
    return v->tensor->folded_from == NULL && v->tensor->elems > 1 && onv_weight_is_view(v->name) &&
           read->place == ONV_PLACE_WEIGHT;
}

/* Is more computed of parameters than is counted? */
static bool is_open(onv_lowering *l, uint32_t value, const note *of, bool lacks)
{
    const onv_value *v = &l->emit.model->values.at[value];
    if (v->tensor == NULL || v->role != ONV_ROLE_NOT_NOTED ||
        !onv_dtype_is_float((onv_dtype)v->tensor->type.dtype)) /* a shape */
        return false;
    bool is_noted = v->tensor->folded_from != NULL && of->parameters == 0; /* of buffers alone */
    if (v->tensor->elems > 1 && is_layer(v->name) && !is_noted) return true;
    if (of->has_layer && of->parameters > 0 && v->tensor->elems > 1) return true;
    if (l->weights.values[value].first_read == 0) return false;
    onv_weight_use use = onv_weight_use_of(l, (onv_value_id){value});
    bool is_counted_whole = use == ONV_WEIGHT_MADE || use == ONV_WEIGHT_TRAINED;
    if (is_counted_whole && lacks && is_weight_of_unknown(l, value)) return true;
    return of->parameters > 0 && of->results > 0 &&
           (use == ONV_WEIGHT_MADE || use == ONV_WEIGHT_CONSTANT);
}

/* What readers multiply by it, and would keep if it had a gradient. */
static uint64_t multiplied_bytes(const onv_lowering *l, uint32_t value)
{
    uint64_t bytes = 0;
    for (uint32_t i = l->weights.values[value].first_read; i > 0 && i <= l->weights.reads.count;
         i++) {
        const onv_weight_read *read = &l->weights.reads.at[i - 1];
        if (read->value != value || !onv_work(1)) break;
        const onv_node *node = &l->emit.model->nodes.at[read->node];
        for (uint32_t k = 0; k < node->n_inputs; k++) {
            onv_value_id other = node->inputs[k];
            if (!onv_is_value(other) || other.index == value || !l->values[other.index].is_known ||
                l->values[other.index].tensor == ONV_NO_TENSOR || node->code == ONV_OP_Add ||
                node->code == ONV_OP_Sub)
                continue;
            uint32_t storage = onv_tensor_at(&l->emit, l->values[other.index].tensor).storage;
            if (!l->emit.saved.at[storage])
                bytes = onv_u64_plus(bytes, l->emit.eager->storages.at[storage].bytes);
        }
    }
    return bytes;
}

/* Exporters compute with small tensors: results are no larger, but the constant itself. */
static uint64_t most_results(const onv_value *value, const note *of)
{
    enum { MOST_FOLDED = 8192 }; /* elements */
    uint64_t each = value->tensor->elems > 0 ? value->tensor->bytes / value->tensor->elems : 0;
    uint64_t most = each * MOST_FOLDED;
    if (value->tensor->bytes > most) most = value->tensor->bytes;
    return onv_u64_times(most, of->results + of->parameters);
}

void onv_folded_report_constants(onv_lowering *l, bool lacks)
{
    onv_saying *said = &l->emit.said[ONV_SAID_folded_layers];
    for (uint32_t i = 0; i < l->emit.model->values.count && l->emit.status == ONV_OK; i++) {
        const onv_value *value = &l->emit.model->values.at[i];
        if (value->tensor == NULL || value->role != ONV_ROLE_NOT_NOTED) continue;
        note of = read_note(l, value);
        if (!is_open(l, i, &of, lacks)) continue;
        onv_say(&l->emit, ONV_SAID_folded_layers, value->name, value->tensor->bytes, NULL);
        said->more = onv_u64_plus(said->more, most_results(value, &of));
        said->rest = onv_u64_plus(said->rest, multiplied_bytes(l, i));
    }
}
