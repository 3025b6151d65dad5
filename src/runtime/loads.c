#include "runtime/loads.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "load/load.h"
#include "load/source.h"

enum { NEWEST_IR = 13, MOST_NAMED = 6 };

#define REFUSES "ONNX Runtime 1.31 refuses the file: "

/* --- The file ---------------------------------------------------------------------------------- */

static void check_versions(onv_model *model)
{
    static const struct {
        const char *domain;
        int32_t newest;
    } domains[] = {{"", 26}, {"ai.onnx.ml", 5}, {"com.microsoft", 1}};
    uint64_t bytes = model->source != NULL ? model->source->bytes : 0;
    if (bytes > INT32_MAX)
        onv_model_diag(model, ONV_WARNING, ONV_LOADS "protobuf", NULL,
                       REFUSES "a protobuf has at most 2,147,483,647 bytes, this one has %" PRIu64
                               "; store its weights as external data",
                       bytes);
    if (model->ir_version > NEWEST_IR)
        onv_model_diag(model, ONV_WARNING, ONV_LOADS "ir", NULL,
                       REFUSES "it knows IR versions up to %d, this one is %" PRId64, NEWEST_IR,
                       model->ir_version);
    for (size_t i = 0; i < model->opsets.count; i++)
        for (size_t d = 0; d < sizeof domains / sizeof domains[0]; d++) {
            const onv_opset *opset = &model->opsets.at[i];
            if (strcmp(opset->domain, domains[d].domain) != 0 ||
                opset->version <= domains[d].newest)
                continue;
            onv_model_diag(model, ONV_WARNING, ONV_LOADS "opset", NULL,
                           REFUSES "it knows opsets of %s up to %d, this one is %d; export for an "
                                   "older one",
                           opset->domain[0] != '\0' ? opset->domain : "ai.onnx", domains[d].newest,
                           opset->version);
        }
}

/* --- External data ----------------------------------------------------------------------------- */

/* By file, and in it by the end. */
static int compare_ends(const void *a, const void *b)
{
    const onv_tensor *x = *(const onv_tensor *const *)a, *y = *(const onv_tensor *const *)b;
    bool is_one = x->payload.location == y->payload.location; /* mostly, as it is interned */
    int order = is_one ? 0 : strcmp(x->payload.location, y->payload.location);
    if (order != 0) return order;
    uint64_t x_end = x->payload.offset + x->bytes, y_end = y->payload.offset + y->bytes;
    return (x_end > y_end) - (x_end < y_end);
}

/* Reads the last byte of what ends last in a file. */
static void check_end(onv_model *model, const onv_tensor *last)
{
    onv_tensor tail = *last;
    onv_error error = {0};
    const char *unread;
    char byte;
    if (last->bytes == 0) return;
    tail.payload.offset += last->bytes - 1;
    onv_status status = onv_external_read(model, &tail, &byte, 1, &unread, &error);
    if (status == ONV_OK && (unread == NULL || unread[0] != '\0')) return;
    if (status == ONV_OK) /* perhaps it is elsewhere: a model is sized without its weights */
        onv_model_diag(
            model, ONV_NOTE, ONV_LOADS "external", NULL,
            REFUSES "its external data '%s' is not there; weights are not needed to size a model",
            last->payload.location);
    else
        onv_model_diag(model, ONV_WARNING, ONV_LOADS "external", NULL,
                       REFUSES "tensor '%s' ends at byte %" PRIu64
                               " of its external data '%s', which cannot be read that far",
                       last->name, last->payload.offset + last->bytes, last->payload.location);
}

static onv_status check_external(onv_model *model, onv_error *err)
{
    const onv_source *source = model->source;
    bool is_file = source != NULL && (source->is_mapped || source->buffer != NULL);
    if (!is_file || model->no_external_data) return ONV_OK;
    ONV_WORK(model->values.count);
    const onv_tensor **tensors = onv_heap_calloc(model->values.count + 1, sizeof *tensors);
    size_t n = 0;
    if (tensors == NULL) return onv_fail_memory(err);
    for (size_t i = 0; i < model->values.count; i++) {
        const onv_tensor *tensor = model->values.at[i].tensor;
        if (tensor == NULL || tensor->payload.kind != ONV_PAYLOAD_EXTERNAL) continue;
        bool is_same = n > 0 && tensors[n - 1]->payload.location == tensor->payload.location;
        if (!is_same)
            tensors[n++] = tensor;
        else if (compare_ends(&tensors[n - 1], &tensor) <= 0)
            tensors[n - 1] = tensor;
    }
    qsort(tensors, n, sizeof *tensors, compare_ends);
    for (size_t i = 0; i < n; i++)
        if (i + 1 == n ||
            strcmp(tensors[i]->payload.location, tensors[i + 1]->payload.location) != 0)
            check_end(model, tensors[i]);
    onv_heap_free(tensors);
    return ONV_OK;
}

onv_status onv_check_file(onv_model *model, onv_error *err)
{
    check_versions(model);
    return check_external(model, err);
}

/* --- Kernels ----------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "NAME (COUNT), ..." */
static const char *list_names(onv_model *model, const char **names, size_t n)
{
    const char *list = "";
    size_t named = 0;
    qsort(names, n, sizeof *names, compare_names);
    for (size_t i = 0, end; i < n; i = end, named++) {
        for (end = i + 1; end < n && strcmp(names[end], names[i]) == 0;) end++;
        if (named == MOST_NAMED) return onv_arena_printf(&model->arena, "%s ...", list);
        list = onv_arena_printf(&model->arena, "%s%s%s (%zu)", list, named > 0 ? ", " : "",
                                names[i], end - i);
    }
    return list;
}

/* False where sizes are not known. */
static bool count_elems(const onv_type *type, uint64_t *elems)
{
    *elems = 1;
    if (!onv_type_is_static(type)) return false;
    for (int d = 0; d < type->rank; d++)
        if (__builtin_mul_overflow(*elems, (uint64_t)type->dims[d].raw, elems)) *elems = UINT64_MAX;
    return true;
}

/* Kernels that count elements in 32 bits refuse more of them when they run. Others were tried with 4 G elements and run. */
static void check_elements(onv_model *model, const onv_model *ran, const onv_node *node)
{
    bool counts = node->code == ONV_OP_LayerNormalization || node->code == ONV_OP_MaxPool ||
                  node->code == ONV_OP_Resize;
    if (!counts || node->provider != ONV_PROVIDER_CUDA || node->n_outputs == 0 ||
        node->n_inputs == 0)
        return;
    const onv_value_id ids[] = {node->inputs[0], node->outputs[0]};
    for (size_t i = 0; i < 2; i++) {
        if (!onv_is_value(ids[i])) continue;
        const onv_type *type = &ran->values.at[ids[i].index].type;
        uint64_t elems;
        if (!count_elems(type, &elems)) continue;
        if (elems <= INT32_MAX) continue;
        onv_model_diag(model, ONV_WARNING, ONV_LOADS "32-bit", node->name,
                       "ONNX Runtime 1.31 fails at %s: its kernel of CUDA counts up to "
                       "2,147,483,647 elements, there are %" PRIu64,
                       node->op_type, elems);
        return;
    }
}

/* What the host and the device hand each other in a run, bytes; *is_more: of some values they are not known. */
static uint64_t count_copies(const onv_model *model, uint32_t *count, bool *is_more)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < model->nodes.count; i++) {
        const onv_node *node = &model->nodes.at[i];
        if (node->code != ONV_OP_MemcpyFromHost && node->code != ONV_OP_MemcpyToHost) continue;
        const onv_type *type = &model->values.at[node->inputs[0].index].type;
        (*count)++;
        uint64_t elems, bits = onv_dtype_bits((onv_dtype)type->dtype);
        bool is_known = count_elems(type, &elems);
        *is_more |= !is_known;
        if (is_known) bytes += elems / CHAR_BIT * bits + (elems % CHAR_BIT * bits + 7) / CHAR_BIT;
    }
    return bytes;
}

onv_status onv_check_kernels(onv_model *model, const onv_rewritten *rewritten, onv_error *err)
{
    const onv_model *ran = &rewritten->model;
    const char **names = onv_heap_calloc(ran->nodes.count + 1, sizeof *names);
    size_t n = 0;
    uint32_t copies = 0;
    bool is_more = false;
    if (names == NULL) return onv_fail_memory(err);
    for (size_t i = 0; i < ran->nodes.count; i++)
        if (ran->nodes.at[i].lacks_kernel && ran->nodes.at[i].provider == ONV_PROVIDER_CPU)
            names[n++] = ran->nodes.at[i].op_type;
    for (size_t i = 0; i < ran->nodes.count; i++) check_elements(model, ran, &ran->nodes.at[i]);
    uint64_t bytes = count_copies(ran, &copies, &is_more);
    if (n > 0)
        onv_model_diag(
            model, ONV_NOTE, ONV_LOADS "on-cpu", NULL,
            "CUDA has no kernel for %zu nodes, which the CPU runs: %s; copies in each run: %" PRIu32
            ", of %s%" PRIu64 " bytes",
            n, list_names(model, names, n), copies, is_more ? "at least " : "", bytes);
    onv_heap_free(names);
    return ONV_OK;
}
