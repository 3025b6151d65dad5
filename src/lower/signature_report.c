/* What is said of parameters that the exporter lists, and that no tensor of the file explains. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/quota.h"
#include "lower/lowering.h"
#include "lower/weight_place.h"

/* The length of the name of the module that a parameter belongs to; one of the network itself stands for itself. */
static size_t module_length(const char *parameter)
{
    const char *dot = strrchr(parameter, '.');
    return dot != NULL ? (size_t)(dot - parameter) : strlen(parameter);
}

/* Modules whose parameters nothing explains, as text: some by name, and how many more. */
static uint64_t list_missing(const onv_lowering *l, char *text, size_t size)
{
    enum { MAX_NAMED = 3 };
    const char *last = NULL;
    uint64_t n = 0, modules = 0;
    size_t used = 0;
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
    return n;
}

/* Adds rows of that many elements; false: these are no whole rows, or too many. */
static bool grow(onv_lowering *l, uint32_t tensor, uint64_t elems)
{
    onv_eager_tensor *t = &l->emit.eager->tensors.at[tensor];
    onv_eager_storage *storage = &l->emit.eager->storages.at[t->storage];
    int64_t width = t->dims[t->rank - 1], rows;
    uint64_t bytes;
    if (width <= 0 || storage->elems == 0 || elems % (uint64_t)width != 0 ||
        elems / (uint64_t)width > INT64_MAX ||
        !onv_i64_add(t->dims[t->rank - 2], (int64_t)(elems / (uint64_t)width), &rows) ||
        !onv_u64_mul(elems, storage->bytes / storage->elems, &bytes) ||
        !onv_u64_add(storage->bytes, bytes, &bytes))
        return false;
    int64_t *dims = ONV_ARENA_ARRAY(&l->emit.model->arena, int64_t, t->rank);
    if (dims == NULL) {
        l->emit.status = onv_fail_memory(l->emit.err);
        return true;
    }
    memcpy(dims, t->dims, t->rank * sizeof *dims);
    dims[t->rank - 2] = rows;
    t->dims = storage->dims = dims;
    t->bytes = storage->bytes = bytes;
    t->elems = storage->elems = storage->elems + elems;
    l->signature.grown_rows = elems / (uint64_t)width;
    l->signature.grown = storage->label;
    return true;
}

/* Where every listed parameter has a tensor, elements that are still missing are rows that nothing looked up, of a table that
 * has a gradient. Of which one makes no difference. */
static bool complete_table(onv_lowering *l, uint64_t elems)
{
    for (size_t i = 0; i < l->signature.count; i++)
        if (!l->signature.explained[i]) return false;
    for (size_t i = 0; i < l->signature.looked_up.count; i++)
        if (grow(l, l->signature.looked_up.at[i], elems)) return true;
    return false;
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
    if (wanted < elems) l->signature.counted_elems = elems;
    if (wanted <= elems || complete_table(l, wanted - elems)) return;
    uint64_t bytes;
    if (!onv_u64_mul(wanted - elems, each, &bytes)) {
        l->emit.status =
            onv_fail(l->emit.err, ONV_ERR_OVERFLOW, "the bytes of --parameters do not fit 64 bits");
        return;
    }
    uint32_t storage =
        onv_storage_new(&l->emit, bytes, ONV_STORAGE_PARAMETER, "parameters that the file lacks");
    if (storage == UINT32_MAX) return;
    l->emit.eager->storages.at[storage].elems = wanted - elems;
    l->signature.lacking_bytes = bytes;
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
static bool list_readers(const onv_lowering *l, onv_ptr_map *readers)
{
    const onv_model *model = l->emit.model;
    for (size_t i = 0; i < model->nodes.count; i++) {
        const onv_node *node = &model->nodes.at[i];
        bool reads = false;
        for (uint32_t k = 0; k < node->n_inputs && node->scope != NULL && !reads; k++) {
            if (!onv_is_value(node->inputs[k])) continue;
            const onv_value *value = onv_model_value(model, node->inputs[k]);
            uint32_t sides = 0;
            for (int32_t d = 0; value->tensor != NULL && d < value->type.rank; d++)
                sides += !onv_dim_is(value->type.dims[d], 1);
            reads = sides > 1 && value->role == ONV_ROLE_NOT_NOTED &&
                    !onv_has_made_up_name(value->name);
        }
        if (reads && !onv_ptr_map_set(readers, node->scope, 1)) return false;
    }
    return true;
}

/* Buffers that are listed, and no tensor of the file has the name of. The exporter computes with them, and a mask that was cut from a
 * larger one is all that the file may have. */
static void report_buffers(onv_lowering *l)
{
    onv_ptr_map readers = {0};
    const char *first = NULL, *large = NULL;
    uint64_t n = 0;
    if (l->signature.n_lacking > 0 && !list_readers(l, &readers))
        l->emit.status = onv_fail_memory(l->emit.err);
    for (size_t i = 0; i < l->signature.n_lacking && l->emit.status == ONV_OK; i++) {
        const char *name = l->signature.lacking[i], *dot = strrchr(name, '.');
        const char *module =
            onv_intern_n(&l->emit.model->strings, name, dot != NULL ? (size_t)(dot - name) : 0);
        if (module == NULL) l->emit.status = onv_fail_memory(l->emit.err);
        n++;
        if (first == NULL) first = name;
        bool is_read = module != NULL && onv_ptr_map_get(&readers, module, NULL);
        if (large == NULL && is_read) large = name;
    }
    onv_ptr_map_cleanup(&readers);
    if (n == 0 || l->emit.status != ONV_OK) return;
    onv_model_diag(
        l->emit.model, large != NULL ? ONV_WARNING : ONV_NOTE, "missing-buffers", NULL,
        "%llu buffers that the export lists, '%s' first, have no tensor in the file, which has "
        "what the exporter computed of them (of tables, the rows that it looked up), and their "
        "sizes are not noted: torch.onnx.export(..., dump_exported_program=True) writes the "
        "program that has them; --buffers BYTES counts them, where BYTES is the sum of b.nbytes "
        "for b in model.buffers()",
        (unsigned long long)n, large != NULL ? large : first);
}

/* Products with constants that the exporter computed: had a parameter led to one of them, as an embedding that is joined to a
 * table of rotations, autograd would keep what is multiplied. */
static void report_factors(onv_lowering *l)
{
    const onv_value *first = NULL;
    uint64_t bytes = 0;
    bool *seen = ONV_ARENA_ARRAY(&l->emit.model->arena, bool, l->emit.eager->storages.count);
    for (size_t i = 0; seen != NULL && i < l->emit.model->nodes.count; i++) {
        const onv_node *node = &l->emit.model->nodes.at[i];
        if (node->graph.index != 0 || strcmp(node->op_type, "Mul") != 0 || node->n_inputs != 2)
            continue;
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
            if (first == NULL) first = value;
            if (!onv_u64_add(bytes, l->emit.eager->storages.at[storage].bytes, &bytes))
                bytes = UINT64_MAX;
        }
    }
    if (bytes > 0)
        onv_model_diag(
            l->emit.model, ONV_WARNING, "computed-factors", NULL,
            "tensors are multiplied by constants that the exporter computed ('%s' first): "
            "if a parameter without a tensor in the file leads to them, training keeps "
            "what is multiplied, up to %llu bytes more",
            first->name, (unsigned long long)bytes);
}

static void report_unread(const onv_lowering *l)
{
    if (l->tally.unread_norms.count == 0) return;
    onv_model_diag(
        l->emit.model, ONV_WARNING, "unread-layers", NULL,
        "%u batch norms ran in the forward pass, as it writes their running statistics "
        "('%s' first), but nothing reads what they give, and the export lacks them and the "
        "layers around them. Their results lie in memory until the call around them "
        "returns, in addition to these figures",
        l->tally.unread_norms.count, l->tally.unread_norms.first);
}

static void report_expanded(const onv_lowering *l)
{
    if (l->tally.expanded.count > 0)
        onv_model_diag(
            l->emit.model, ONV_WARNING, "expanded-parameters", NULL,
            "of %u parameters, '%s' first, the file has what they were expanded to, and nothing "
            "tells which dims: they are counted with all but the first, %llu bytes, and may be "
            "smaller; torch.onnx.export(..., dump_exported_program=True) writes the program, which "
            "has their shapes",
            l->tally.expanded.count, l->tally.expanded.first,
            (unsigned long long)l->tally.expanded.bytes);
}

/* After lowering: what no tensor stands for. */
void onv_signature_report(onv_lowering *l)
{
    char modules[512] = "";
    uint64_t n = list_missing(l, modules, sizeof modules);
    if (l->signature.lacking_bytes > 0)
        onv_model_diag(
            l->emit.model, ONV_NOTE, "missing-parameters", NULL,
            "%llu bytes of parameters that the file lacks are counted (--parameters), without "
            "gradients; where the network runs them, their results are not",
            (unsigned long long)l->signature.lacking_bytes);
    if (l->signature.grown_rows > 0)
        onv_model_diag(l->emit.model, ONV_NOTE, "missing-rows", NULL,
                       "%llu rows of '%s'%s that the file lacks, as nothing looks them up, are "
                       "counted (--parameters), with their gradients",
                       (unsigned long long)l->signature.grown_rows, l->signature.grown,
                       l->signature.looked_up.count > 1 ? " or other tables" : "");
    if (l->signature.counted_elems > 0)
        onv_model_diag(
            l->emit.model, ONV_WARNING, "parameter-count", NULL,
            "--parameters %llu, but %llu elements are counted as parameters: constants of the "
            "file were taken for some; give the sum of p.numel() for p in model.parameters()",
            (unsigned long long)l->emit.options->parameters,
            (unsigned long long)l->signature.counted_elems);
    if (l->tally.unused.count > 0)
        onv_model_diag(
            l->emit.model, ONV_NOTE, "unused-parameters", NULL,
            "%u parameters that the export lists, '%s' first, have no tensor in the file, as "
            "nothing reads what they give: they are counted with the sizes of parameters "
            "that are called alike, %llu bytes, without gradient",
            l->tally.unused.count, l->tally.unused.first,
            (unsigned long long)l->tally.unused.bytes);
    onv_folded_report(l);
    report_unread(l);
    if (l->signature.count > 0) onv_folded_report_constants(l, n > 0);
    if (n + l->tally.unused.count > 0 && !l->emit.options->inference) report_factors(l);
    if (l->emit.options->buffers == 0) report_buffers(l);
    report_expanded(l);
    if (n == 0 || l->emit.options->parameters > 0) return;
    onv_model_diag(
        l->emit.model, ONV_WARNING, "missing-parameters", NULL,
        "%llu parameters that the export lists, in %s, have no tensor in the file, and "
        "their sizes are not noted: nothing reads what they give, or the exporter removed "
        "what does (a factor of 1) or merged it with an equal one. A network that has them holds "
        "their bytes, and where it runs them their results, in addition to these figures: "
        "torch.onnx.export(..., dump_exported_program=True) writes the program that has them; "
        "--parameters N counts their bytes, where N is the sum of p.numel() for p in "
        "model.parameters()",
        (unsigned long long)n, modules);
}
