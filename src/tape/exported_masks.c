/* Masks that exist in the archive alone.
 *
 * transformers (masking_utils.py) leaves out a mask that masks nothing, and has scaled_dot_product_attention() mask causally,
 * but not while torch.compiler.is_exporting() (before, while tracing): then it computes the mask of places, by
 * bidirectional_mask_function(), `q_idx >= 0`, or causal_mask_function(), `kv_idx <= q_idx`. Neither padding nor a window is in
 * such a mask: those add `&`. Eager PyTorch runs none of its calls, but for the few networks that pass
 * allow_is_causal_skip=False, which no archive shows (Falcon).
 */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/quota.h"
#include "tape/state.h"

/* arange(n), shifted by a number, with dims of 1. */
static bool is_of_places(const onv_tape *t, uint32_t value)
{
    enum { MOST_CALLS = 8 };
    for (uint32_t k = 0; k < MOST_CALLS; k++) {
        const onv_program_call *call = onv_tape_maker(t, value);
        if (call == NULL) return false;
        if (onv_tape_is(t, call, ONV_ATEN_arange)) return true;
        const onv_argument *other = onv_call_argument(call, "other");
        bool shifts =
            onv_tape_is(t, call, ONV_ATEN_add) && other != NULL && other->kind == ONV_ARGUMENT_INT;
        if (!shifts && !onv_tape_is(t, call, ONV_ATEN_unsqueeze) &&
            !onv_tape_is(t, call, ONV_ATEN_slice))
            return false;
        value = onv_call_value(call, "self");
    }
    return false;
}

static onv_exported_mask kind_of(const onv_tape *t, const onv_program_call *call)
{
    static const char library[] = "transformers.";
    if (!onv_tape_is(t, call, ONV_ATEN_expand) || call->module >= t->program->modules.count ||
        strncmp(t->program->modules.at[call->module].class_name, library, sizeof library - 1) != 0)
        return ONV_MASK_RUNS;
    const onv_program_call *by = onv_tape_maker(t, onv_call_value(call, "self"));
    if (by == NULL || !is_of_places(t, onv_call_value(by, "self"))) return ONV_MASK_RUNS;
    const onv_argument *other = onv_call_argument(by, "other");
    if (other == NULL) return ONV_MASK_RUNS;
    if (onv_tape_is(t, by, ONV_ATEN_ge) && other->kind == ONV_ARGUMENT_INT &&
        onv_dim_same(other->number, onv_dim_const(0)))
        return ONV_MASK_ALL;
    bool is_causal = onv_tape_is(t, by, ONV_ATEN_le) && other->kind == ONV_ARGUMENT_TENSOR &&
                     is_of_places(t, other->value);
    return is_causal ? ONV_MASK_CAUSAL : ONV_MASK_RUNS;
}

/* A bias of places is the mask where nothing else masks. */
static bool takes(const onv_tape *t, const onv_program_call *call, const onv_argument *a,
                  onv_exported_mask mask)
{
    if (onv_tape_is(t, call, ONV_ATEN_scaled_dot_product_attention))
        return strcmp(a->name, "attn_mask") == 0;
    return mask == ONV_MASK_ALL && onv_tape_is(t, call, ONV_ATEN_where) &&
           strcmp(a->name, "condition") == 0;
}

static void keep_read(onv_tape *t, const onv_program_call *call)
{
    for (uint32_t k = 0; k < call->n_arguments; k++) {
        const onv_argument *a = &call->arguments[k];
        for (uint32_t n = 0; a->kind == ONV_ARGUMENT_TENSORS && n < a->count; n++)
            if (a->values[n] != ONV_NO_PROGRAM_VALUE) t->values[a->values[n]].mask = ONV_MASK_RUNS;
        if (a->kind == ONV_ARGUMENT_TENSOR &&
            !takes(t, call, a, (onv_exported_mask)t->values[a->value].mask))
            t->values[a->value].mask = ONV_MASK_RUNS;
    }
}

static bool is_left_out(const onv_tape *t, const onv_program_call *call)
{
    bool is_part = false;
    for (uint32_t k = 0; k < call->n_results; k++) {
        if (call->results[k] == ONV_NO_PROGRAM_VALUE) continue;
        const onv_tape_value *v = &t->values[call->results[k]];
        bool is_mask = v->mask == ONV_MASK_ALL || v->mask == ONV_MASK_CAUSAL;
        if (v->n_uses > 0 && !is_mask) return false;
        is_part |= v->mask != ONV_MASK_RUNS;
    }
    return is_part;
}

/* A mask, and before it what it alone was computed of. */
static void leave_out(onv_tape *t, uint32_t index)
{
    const onv_program_call *call = &t->program->calls.at[index];
    if (!is_left_out(t, call)) return;
    t->left_out[index] = true;
    for (uint32_t k = 0; k < call->n_arguments; k++) {
        const onv_argument *a = &call->arguments[k];
        if (a->kind != ONV_ARGUMENT_TENSOR) continue;
        t->values[a->value].n_uses--;
        t->values[a->value].mask = ONV_MASK_PART;
    }
}

void onv_tape_find_exported_masks(onv_tape *t)
{
    bool any = false;
    uint32_t n = (uint32_t)t->program->calls.count;
    if (onv_program_is_recorded(t->program)) return;
    for (uint32_t i = 0; i < n && onv_work(1); i++) {
        const onv_program_call *call = &t->program->calls.at[i];
        uint32_t result = onv_call_result(call, 0);
        onv_exported_mask mask = kind_of(t, call);
        if (mask == ONV_MASK_RUNS || result == ONV_NO_PROGRAM_VALUE) continue;
        t->values[result].mask = (uint8_t)mask;
        any = true;
    }
    for (uint32_t i = 0; i < n && any && onv_work(1); i++) keep_read(t, &t->program->calls.at[i]);
    for (size_t g = 0; g < t->program->graphs.count && any; g++)
        for (uint32_t i = 0; i < t->program->graphs.at[g].n_outputs; i++)
            t->values[t->program->graphs.at[g].outputs[i]].mask = ONV_MASK_RUNS;
    for (uint32_t i = n; i > 0 && any && onv_work(1); i--) leave_out(t, i - 1);
}

onv_exported_mask onv_tape_exported_mask(const onv_tape *t, const onv_program_call *call,
                                         const char *name)
{
    uint32_t value = onv_call_value(call, name);
    return value != ONV_NO_PROGRAM_VALUE ? (onv_exported_mask)t->values[value].mask : ONV_MASK_RUNS;
}

void onv_tape_count_mask(onv_tape *t, uint64_t bytes)
{
    bool all_at_once = !t->emit.options->inference;
    if (all_at_once || t->bytes_of_masks < bytes)
        t->bytes_of_masks = onv_u64_plus(bytes, all_at_once ? t->bytes_of_masks : 0);
}

bool onv_tape_matters(onv_tape *t, uint64_t part)
{
    enum { SHARE = 200 }; /* peaks of archives are right within 0.5 % */
    const onv_eager *eager = t->emit.eager;
    uint64_t bytes = 0;
    if (!t->emit.options->inference)
        t->emit.status = onv_eager_saved(t->emit.model, eager, &bytes, NULL, t->emit.err);
    for (size_t i = 0; i < eager->storages.count; i++)
        if (eager->storages.at[i].kind == ONV_STORAGE_PARAMETER)
            bytes = onv_u64_plus(bytes, eager->storages.at[i].bytes);
    return part > bytes / SHARE;
}

void onv_tape_report_masks(onv_tape *t)
{
    onv_saying *said = &t->emit.said[ONV_SAID_exported_masks];
    for (size_t i = 0; i < t->program->calls.count; i++) {
        uint32_t result = onv_call_result(&t->program->calls.at[i], 0);
        if (t->left_out[i] && result != ONV_NO_PROGRAM_VALUE &&
            t->values[result].mask != ONV_MASK_PART)
            onv_tally_add(&said->of, t->program->calls.at[i].name, 0);
    }
    said->of.bytes = t->bytes_of_masks;
    said->warns = said->of.count > 0 && onv_tape_matters(t, t->bytes_of_masks);
}
