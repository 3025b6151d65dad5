#include "load/build.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/quota.h"

/* The newest IR version that src/load/fields.c follows. */
enum { NEWEST_IR = 14 };

/* --- Names ------------------------------------------------------------------------------------- */

onv_status onv_build_intern(onv_builder *b, const char *text, const char **name)
{
    *name = onv_intern(&b->model->strings, text);
    return *name != NULL ? ONV_OK : onv_fail_memory(b->err);
}

onv_status onv_build_text(onv_builder *b, onv_text text, const char **name)
{
    *name = text.length > 0 ? onv_intern_n(&b->model->strings, text.at, text.length) : b->empty;
    return *name != NULL ? ONV_OK : onv_fail_memory(b->err);
}

onv_status onv_build_join(onv_builder *b, const char *prefix, const char *text, const char **name)
{
    if (prefix[0] == '\0') return onv_build_intern(b, text, name);
    size_t n_prefix = strlen(prefix), n_text = strlen(text);
    b->text.count = 0;
    if (!onv_vec_reserve(&b->text, n_prefix + n_text)) return onv_fail_memory(b->err);
    memcpy(b->text.at, prefix, n_prefix);
    memcpy(b->text.at + n_prefix, text, n_text);
    *name = onv_intern_n(&b->model->strings, b->text.at, n_prefix + n_text);
    return *name != NULL ? ONV_OK : onv_fail_memory(b->err);
}

/* --- Opset versions ---------------------------------------------------------------------------- */

enum { OPSET_DOMAIN = 1, OPSET_VERSION };

onv_status onv_build_opset(onv_builder *b, onv_wire_span message, onv_opset *opset)
{
    onv_text domain = {0};
    int64_t version = 0;
    for (onv_wire_field f; onv_wire_next(&message.at, message.end, &f);) {
        if (f.number == OPSET_DOMAIN) domain = onv_build_text_of(&f);
        if (f.number == OPSET_VERSION) version = (int64_t)onv_wire_number(&f);
    }
    if (onv_text_is(domain, "ai.onnx")) domain.length = 0;
    ONV_TRY(onv_build_text(b, domain, &opset->domain));
    if (version < 0 || version > INT32_MAX)
        return onv_fail(b->err, ONV_ERR_MODEL, "opset %" PRId64 " of domain '%s' cannot be",
                        version, opset->domain);
    opset->version = (int32_t)version;
    return ONV_OK;
}

onv_status onv_build_import(onv_builder *b, const onv_opset *opset, onv_ptr_map *versions)
{
    const uint32_t version = (uint32_t)opset->version;
    uint32_t known;
    if (onv_ptr_map_get(versions, opset->domain, &known) && known >= version) return ONV_OK;
    return onv_ptr_map_set(versions, opset->domain, version) ? ONV_OK : onv_fail_memory(b->err);
}

onv_status onv_build_version(onv_builder *b, const onv_scope *scope, const char *domain,
                             int32_t *version)
{
    uint32_t found = 1;
    if (!onv_ptr_map_get(scope->versions, domain, &found) &&
        !onv_ptr_map_get(&b->versions, domain, &found) &&
        !onv_ptr_map_get(&b->elsewhere, domain, &found)) {
        onv_model_diag(b->model, ONV_WARNING, "domain-not-imported", NULL,
                       "nothing imports the operators of domain '%s'; version 1 is assumed",
                       domain[0] != '\0' ? domain : "ai.onnx");
        if (!onv_ptr_map_set(&b->elsewhere, domain, 1)) return onv_fail_memory(b->err);
    }
    *version = (int32_t)found;
    return ONV_OK;
}

/* Each domain is listed once. */
static onv_status model_opset(onv_builder *b, onv_wire_span message)
{
    onv_opset opset;
    ONV_TRY(onv_build_opset(b, message, &opset));
    bool is_listed = onv_ptr_map_get(&b->versions, opset.domain, NULL);
    ONV_TRY(onv_build_import(b, &opset, &b->versions));
    return is_listed || onv_vec_push(&b->model->opsets, opset) ? ONV_OK : onv_fail_memory(b->err);
}

/* --- The model --------------------------------------------------------------------------------- */

enum { IR_VERSION = 1, PRODUCER_NAME, PRODUCER_VERSION, OPSET_IMPORT = 8 };

static onv_status model_opsets(onv_builder *b, onv_wire_span header)
{
    /* Before IR 3 there was one opset, and no field for it. */
    static const unsigned char first[] = {OPSET_VERSION << 3 | ONV_WIRE_VARINT, 1};
    bool is_old = b->model->ir_version == 1 || b->model->ir_version == 2;
    onv_wire_field f;
    if (is_old && !onv_wire_find(header, OPSET_IMPORT, &f))
        ONV_TRY(model_opset(b, (onv_wire_span){first, first + sizeof first}));
    while (onv_wire_next(&header.at, header.end, &f))
        if (f.number == OPSET_IMPORT) ONV_TRY(model_opset(b, onv_wire_value(&f)));
    for (size_t i = 0; i < b->model->opsets.count; i++) {
        uint32_t version = 0;
        onv_ptr_map_get(&b->versions, b->model->opsets.at[i].domain, &version);
        b->model->opsets.at[i].version = (int32_t)version;
    }
    return ONV_OK;
}

static onv_status model_facts(onv_builder *b, onv_wire_span header)
{
    onv_model *model = b->model;
    onv_wire_field f;
    onv_text name = {0}, version = {0};
    if (onv_wire_find(header, PRODUCER_NAME, &f)) name = onv_build_text_of(&f);
    if (onv_wire_find(header, PRODUCER_VERSION, &f)) version = onv_build_text_of(&f);
    model->producer = onv_arena_printf(&model->arena, "%.*s%s%.*s", (int)name.length, name.at,
                                       name.length > 0 && version.length > 0 ? " " : "",
                                       (int)version.length, version.at);
    if (model->producer == NULL) return onv_fail_memory(b->err);
    if (onv_wire_find(header, IR_VERSION, &f))
        model->ir_version = (int64_t)onv_wire_number(&f);
    else
        onv_model_diag(model, ONV_NOTE, "no-ir-version", NULL, "the file has no IR version");
    if (model->ir_version > NEWEST_IR)
        onv_model_diag(model, ONV_WARNING, "newer-ir", NULL,
                       "IR version %" PRId64 " is newer than %d, the newest one known here",
                       model->ir_version, NEWEST_IR);
    return model_opsets(b, header);
}

onv_status onv_build_model(onv_builder *b)
{
    const onv_scan *scan = b->scan;
    const onv_wire_span header = {scan->header.at, scan->header.at + scan->header.count};
    onv_graph_id main_graph;
    if (!onv_vec_reserve(&b->model->nodes, scan->nodes.count) ||
        !onv_vec_reserve(&b->model->values, (size_t)scan->n_values))
        return onv_fail_memory(b->err);
    ONV_TRY(onv_build_intern(b, "", &b->empty));
    ONV_TRY(model_facts(b, header));
    ONV_TRY(onv_build_functions(b));
    const onv_scan_graph *graph = ONV_RECORD(scan->graphs, scan->main_graph);
    ONV_TRY(onv_build_signature(b, graph));
    ONV_TRY(onv_build_graph(b, graph, NULL, NULL, ONV_NO_NODE, NULL, b->empty, &main_graph));
    if (b->model->arena.failed || b->model->dims.failed) return onv_fail_memory(b->err);
    return ONV_OK;
}

onv_status onv_build_message(onv_builder *b, onv_span span, onv_wire_span *message)
{
    enum { PER_WORK = 16 }; /* bytes */
    *message = (onv_wire_span){0};
    ONV_WORK(1 + span.bytes / PER_WORK);
    if (span.bytes == 0) return ONV_OK;
    message->at = b->scan->skeleton.at + span.at;
    message->end = message->at + span.bytes;
    return ONV_OK;
}

const onv_dim *onv_build_dims(onv_builder *b, const onv_dim *dims, size_t rank)
{
    const size_t bytes = rank * sizeof *dims;
    uint64_t mixed = rank;
    for (size_t i = 0; i < rank; i++) mixed = onv_hash_u64(mixed + (uint64_t)dims[i].raw);
    onv_built_dims *built = &b->built.dims[mixed % ONV_BUILT_LATELY];
    if (built->at == NULL || built->rank != rank || memcmp(built->at, dims, bytes) != 0)
        *built = (onv_built_dims){onv_arena_copy(&b->model->arena, dims, bytes), rank};
    return built->at;
}

void onv_builder_init(onv_builder *b, onv_model *model, const onv_scan *scan,
                      const onv_limits *limits, onv_error *err)
{
    *b = (onv_builder){.model = model, .limits = limits, .scan = scan, .err = err};
}

void onv_builder_cleanup(onv_builder *b)
{
    for (size_t i = 0; i < b->n_functions; i++) onv_ptr_map_cleanup(&b->functions[i].versions);
    onv_heap_free(b->functions);
    onv_ptr_map_cleanup(&b->function_at);
    onv_ptr_map_cleanup(&b->versions);
    onv_ptr_map_cleanup(&b->elsewhere);
    onv_ptr_map_cleanup(&b->signature);
    onv_vec_cleanup(&b->text);
    onv_vec_cleanup(&b->tensors);
}
