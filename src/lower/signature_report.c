/* What is said of parameters that the exporter lists, and that no tensor of the file explains. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/quota.h"
#include "lower/lowering.h"

/* The length of the name of the module that a parameter belongs to; one of the network itself stands for itself. */
static size_t module_length(const char *parameter)
{
    const char *dot = strrchr(parameter, '.');
    return dot != NULL ? (size_t)(dot - parameter) : strlen(parameter);
}

/* Modules whose parameters nothing explains, as text: some by name, and how many more. */
static uint32_t list_missing(onv_lowering *l)
{
    enum { MAX_NAMED = 3 };
    char text[512] = "";
    const char *last = NULL;
    uint64_t modules = 0;
    uint32_t n = 0;
    size_t used = 0, size = sizeof text;
    for (size_t i = 0; i < l->signature.count; i++) {
        if (l->signature.explained[i]) continue;
        const char *name = l->signature.names[i];
        size_t length = module_length(name);
        n++;
        bool is_same =
            last != NULL && module_length(last) == length && memcmp(name, last, length) == 0;
        last = name;
        if (is_same || modules++ >= MAX_NAMED || used >= size) continue;
        used += (size_t)snprintf(text + used, size - used, "%s'%.*s'", modules > 1 ? ", " : "",
                                 (int)length, name);
    }
    if (modules > MAX_NAMED && used < size)
        snprintf(text + used, size - used, " and %llu more",
                 (unsigned long long)(modules - MAX_NAMED));
    if (n > 0 && l->emit.options->parameters == 0)
        l->emit.said[ONV_SAID_missing].of = (onv_tally){
            .count = n, .first = onv_arena_strndup(&l->emit.model->arena, text, strlen(text))};
    return n;
}

/* Nothing reads what others give, so they have no gradient, and no state. */
void onv_parameters_complete(onv_lowering *l)
{
    uint64_t elems = 0, each = sizeof(float), wanted = l->emit.options->parameters;
    if (wanted == 0 || l->emit.options->as_exported) return;
    for (size_t i = 0; i < l->emit.eager->storages.count; i++) {
        const onv_eager_storage *storage = &l->emit.eager->storages.at[i];
        if (storage->kind != ONV_STORAGE_PARAMETER || storage->elems == 0) continue;
        if (elems == 0) each = storage->bytes / storage->elems;
        elems += storage->elems; /* their bytes were counted */
    }
    if (wanted < elems)
        l->emit.said[ONV_SAID_counted] =
            (onv_saying){.of = {.count = 1, .bytes = elems}, .more = wanted};
    if (wanted <= elems) return;
    uint64_t bytes;
    if (!onv_u64_mul(wanted - elems, each, &bytes)) {
        l->emit.status = onv_fail(l->emit.err, ONV_ERR_OVERFLOW,
                                  "the bytes of --missing-parameters do not fit 64 bits");
        return;
    }
    uint32_t storage =
        onv_storage_new(&l->emit, bytes, ONV_STORAGE_PARAMETER, "parameters that the file lacks");
    if (storage == UINT32_MAX) return;
    l->emit.eager->storages.at[storage].elems = wanted - elems;
    onv_say(&l->emit, ONV_SAID_lacking, NULL, bytes, NULL);
}

/* As many bytes as all buffers of the network have. */
void onv_buffers_complete(onv_lowering *l)
{
    uint64_t counted = 0, wanted = l->emit.options->buffers;
    if (wanted == 0 || l->emit.options->as_exported) return;
    for (size_t i = 0; i < l->emit.eager->storages.count; i++) /* their sum was checked */
        if (l->emit.eager->storages.at[i].kind == ONV_STORAGE_BUFFER)
            counted += l->emit.eager->storages.at[i].bytes;
    if (wanted <= counted) return;
    onv_storage_new(&l->emit, wanted - counted, ONV_STORAGE_BUFFER, "buffers that the file lacks");
}

/* Modules that read tables and masks that the exporter computed. */
static bool list_readers(const onv_emitter *e, onv_ptr_map *readers)
{
    const onv_model *model = e->model;
    for (size_t i = 0; i < model->nodes.count; i++) {
        const onv_node *node = &model->nodes.at[i];
        bool reads = false;
        for (uint32_t k = 0; k < node->n_inputs && !reads; k++) {
            if (!onv_is_value(node->inputs[k])) continue;
            const onv_value *value = onv_model_value(model, node->inputs[k]);
            uint32_t sides = 0;
            for (int32_t d = 0; value->tensor != NULL && d < value->type.rank; d++)
                sides += !onv_dim_is(value->type.dims[d], 1);
            reads = sides > 1 && value->role == ONV_ROLE_NOT_NOTED &&
                    !onv_has_made_up_name(value->name);
        }
        if (reads && !onv_ptr_map_set(readers, onv_noted(node)->scope, 1)) return false;
    }
    return true;
}

/* Buffers that are listed, and no tensor of the file has the name of. The exporter computes with them, and a mask that was cut from a
 * larger one is all that the file may have. */
static void report_buffers(onv_lowering *l)
{
    onv_ptr_map readers = {0};
    onv_saying *said = &l->emit.said[ONV_SAID_buffers];
    if (l->signature.n_lacking > 0 && !list_readers(&l->emit, &readers))
        l->emit.status = onv_fail_memory(l->emit.err);
    for (size_t i = 0; i < l->signature.n_lacking && l->emit.status == ONV_OK; i++) {
        const char *name = l->signature.lacking[i], *dot = strrchr(name, '.');
        const char *module =
            onv_intern_n(&l->emit.model->strings, name, dot != NULL ? (size_t)(dot - name) : 0);
        if (module == NULL) l->emit.status = onv_fail_memory(l->emit.err);
        onv_say(&l->emit, ONV_SAID_buffers, name, 0, NULL);
        bool is_read = module != NULL && onv_ptr_map_get(&readers, module, NULL);
        if (is_read && !said->warns) said->of.first = name;
        said->warns |= is_read;
    }
    onv_ptr_map_cleanup(&readers);
}

/* Products with constants that the exporter computed: had a parameter led to one of them, as an embedding that is joined to a
 * table of rotations, autograd would keep what is multiplied. */
static void report_factors(onv_lowering *l)
{
    bool *seen = ONV_EMIT_ARRAY(&l->emit, bool, l->emit.eager->storages.count);
    for (size_t i = 0; seen != NULL && i < l->emit.model->nodes.count; i++) {
        const onv_node *node = &l->emit.model->nodes.at[i];
        if (node->graph.index != 0 || node->code != ONV_OP_Mul || node->n_inputs != 2) continue;
        for (uint32_t k = 0; k < 2; k++) {
            onv_value_id factor = node->inputs[k], other = node->inputs[1 - k];
            if (!onv_is_value(factor) || !onv_is_value(other)) continue;
            const onv_value *value = onv_model_value(l->emit.model, factor);
            uint32_t x = l->values[other.index].tensor;
            if (value->tensor == NULL || value->tensor->elems < 2 || x == ONV_NO_TENSOR ||
                !l->values[other.index].is_known || value->role != ONV_ROLE_NOT_NOTED ||
                onv_weight_use_of(l, factor) != ONV_WEIGHT_MADE)
                continue;
            uint32_t storage = onv_tensor_at(&l->emit, x).storage;
            if (l->emit.saved.at[storage] || seen[storage] || !onv_tensor_needs_grad(&l->emit, x))
                continue;
            seen[storage] = true;
            onv_say(&l->emit, ONV_SAID_factors, value->name,
                    l->emit.eager->storages.at[storage].bytes, NULL);
        }
    }
}

/* A constant that has the name of a parameter which the file has, too: two modules share it, and one reads it as the exporter has
 * transposed it. */
static void report_tied(onv_lowering *l)
{
    for (size_t i = 0; i < l->weights.reads.count; i++) {
        const onv_weight_read *read = &l->weights.reads.at[i];
        const onv_value *value = &l->emit.model->values.at[read->value];
        size_t at = read->parameter != NULL ? onv_listed_find(l, read->parameter) : SIZE_MAX;
        const onv_value *stored = at != SIZE_MAX ? l->signature.stored[at] : NULL;
        uint32_t tensor = l->values[read->value].tensor;
        if (stored == NULL || stored == value || value->tensor == NULL ||
            value->role != ONV_ROLE_NOT_NOTED || (i > 0 && read[-1].value == read->value) ||
            tensor == ONV_NO_TENSOR || value->tensor->elems != stored->tensor->elems)
            continue;
        uint32_t storage = onv_tensor_at(&l->emit, tensor).storage;
        if (l->emit.eager->storages.at[storage].kind == ONV_STORAGE_PARAMETER)
            onv_say(&l->emit, ONV_SAID_tied, value->name, value->tensor->bytes, NULL);
    }
}

/* Batch norms that wrote their running statistics, and whose weight nothing in the file reads: the exporter removed what
 * has no reader, of stages that ran all the same. */
static void report_unread(onv_lowering *l)
{
    static const char statistic[] = ".running_mean";
    for (size_t i = 0; i < l->emit.model->listed.n_updated && l->signature.count > 0; i++) {
        char weight[512];
        const char *name = l->emit.model->listed.updated[i];
        size_t length = strlen(name), n = sizeof statistic - 1;
        if (length <= n || length >= sizeof weight || strcmp(name + length - n, statistic) != 0)
            continue;
        snprintf(weight, sizeof weight, "%.*s.weight", (int)(length - n), name);
        size_t at = onv_listed_find(l, weight);
        if (at != SIZE_MAX && !l->signature.explained[at])
            onv_say(&l->emit, ONV_SAID_unread_norms, name, 0, NULL);
    }
}

/* After lowering: what no tensor stands for. */
void onv_signature_report(onv_lowering *l)
{
    report_unread(l);
    uint32_t n = list_missing(l);
    onv_folded_report(l);
    if (l->signature.count > 0 && !l->emit.options->inference) report_tied(l);
    if (l->signature.count > 0) onv_folded_report_constants(l, n > 0);
    if (n > 0 && !l->emit.options->inference) report_factors(l);
    if (l->emit.options->buffers == 0) report_buffers(l);
}
