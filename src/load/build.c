#include "load/build.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/quota.h"

/* The newest IR version whose format proto/onnx.proto describes. */
enum { NEWEST_IR = 14 };

/* --- Names ------------------------------------------------------------------------------------- */

onv_status onv_build_intern(onv_builder *b, const char *text, const char **name)
{
    *name = onv_intern(&b->model->strings, text != NULL ? text : "");
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

/* "ai.onnx" is "". */
static onv_status build_domain(onv_builder *b, const char *text, const char **domain)
{
    if (text != NULL && strcmp(text, "ai.onnx") == 0) text = "";
    return onv_build_intern(b, text, domain);
}

/* --- Opset versions ---------------------------------------------------------------------------- */

onv_status onv_build_import(onv_builder *b, const Onnx__OperatorSetIdProto *pb,
                            onv_ptr_map *versions)
{
    const char *domain;
    uint32_t known;
    ONV_TRY(build_domain(b, pb->domain, &domain));
    if (pb->version < 0 || pb->version > INT32_MAX)
        return onv_fail(b->err, ONV_ERR_MODEL, "opset %" PRId64 " of domain '%s' cannot be",
                        pb->version, domain);
    uint32_t version = (uint32_t)pb->version;
    if (onv_ptr_map_get(versions, domain, &known) && known >= version) return ONV_OK;
    return onv_ptr_map_set(versions, domain, version) ? ONV_OK : onv_fail_memory(b->err);
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
static onv_status model_opset(onv_builder *b, const Onnx__OperatorSetIdProto *pb)
{
    onv_opset opset = {0};
    ONV_TRY(build_domain(b, pb->domain, &opset.domain));
    bool is_listed = onv_ptr_map_get(&b->versions, opset.domain, NULL);
    ONV_TRY(onv_build_import(b, pb, &b->versions));
    return is_listed || onv_vec_push(&b->model->opsets, opset) ? ONV_OK : onv_fail_memory(b->err);
}

static onv_status model_opsets(onv_builder *b, const Onnx__ModelProto *pb)
{
    /* Before IR 3 there was one opset, and no field for it. */
    const Onnx__OperatorSetIdProto first = {.version = 1};
    bool is_old = b->model->ir_version == 1 || b->model->ir_version == 2;
    if (is_old && pb->n_opset_import == 0) ONV_TRY(model_opset(b, &first));
    for (size_t i = 0; i < pb->n_opset_import; i++) ONV_TRY(model_opset(b, pb->opset_import[i]));
    for (size_t i = 0; i < b->model->opsets.count; i++) {
        uint32_t version = 0;
        onv_ptr_map_get(&b->versions, b->model->opsets.at[i].domain, &version);
        b->model->opsets.at[i].version = (int32_t)version;
    }
    return ONV_OK;
}

/* --- The model --------------------------------------------------------------------------------- */

static onv_status model_facts(onv_builder *b, const Onnx__ModelProto *pb)
{
    onv_model *model = b->model;
    const char *name = pb->producer_name != NULL ? pb->producer_name : "";
    const char *version = pb->producer_version != NULL ? pb->producer_version : "";
    model->ir_version = pb->ir_version;
    model->producer = onv_arena_printf(&model->arena, "%s%s%s", name,
                                       name[0] != '\0' && version[0] != '\0' ? " " : "", version);
    if (model->producer == NULL) return onv_fail_memory(b->err);
    if (!pb->has_ir_version)
        onv_model_diag(model, ONV_NOTE, "no-ir-version", NULL, "the file has no IR version");
    if (pb->ir_version > NEWEST_IR)
        onv_model_diag(model, ONV_WARNING, "newer-ir", NULL,
                       "IR version %" PRId64 " is newer than %d, the newest one known here",
                       pb->ir_version, NEWEST_IR);
    return model_opsets(b, pb);
}

/* --- protobuf-c, over messages that the scan has checked, with an arena in the place of malloc ---- */

static void *take(void *arena, size_t bytes)
{
    return onv_arena_alloc(arena, bytes);
}

static void leave(void *arena, void *pointer)
{
    (void)arena; /* everything goes at once */
    (void)pointer;
}

static onv_status unpack(onv_builder *b, const unsigned char *data, size_t bytes,
                         const ProtobufCMessageDescriptor *type, const ProtobufCMessage **message)
{
    ProtobufCAllocator allocator = {.alloc = take, .free = leave, .allocator_data = &b->unpacked};
    *message = protobuf_c_message_unpack(type, &allocator, bytes, data);
    if (*message != NULL) return ONV_OK;
    if (b->unpacked.failed) return onv_fail_memory(b->err);
    return onv_fail(b->err, ONV_ERR_FORMAT, "damaged: protobuf-c cannot read it");
}

onv_status onv_build_model(onv_builder *b)
{
    const onv_scan *scan = b->scan;
    const ProtobufCMessage *header;
    onv_graph_id main_graph;
    if (!onv_vec_reserve(&b->model->nodes, scan->nodes.count) ||
        !onv_vec_reserve(&b->model->values, (size_t)scan->n_values))
        return onv_fail_memory(b->err);
    ONV_TRY(onv_build_intern(b, "", &b->empty));
    ONV_TRY(
        unpack(b, scan->header.at, scan->header.count, &onnx__model_proto__descriptor, &header));
    ONV_TRY(model_facts(b, (const Onnx__ModelProto *)header));
    ONV_TRY(onv_build_functions(b));
    const onv_scan_graph *graph = ONV_RECORD(scan->graphs, scan->main_graph);
    ONV_TRY(onv_build_signature(b, graph));
    ONV_TRY(onv_build_graph(b, graph, NULL, NULL, ONV_NO_NODE, NULL, b->empty, &main_graph));
    if (b->model->arena.failed || b->model->dims.failed) return onv_fail_memory(b->err);
    return ONV_OK;
}

onv_status onv_build_unpack(onv_builder *b, onv_span span, const ProtobufCMessageDescriptor *type,
                            const ProtobufCMessage **message)
{
    enum { PER_WORK = 16 }; /* bytes */
    static const unsigned char nothing[1];
    ONV_WORK(1 + span.bytes / PER_WORK);
    onv_arena_reset(&b->unpacked);
    return unpack(b, span.bytes > 0 ? b->scan->skeleton.at + span.at : nothing, span.bytes, type,
                  message);
}

void onv_builder_init(onv_builder *b, onv_model *model, const onv_scan *scan,
                      const onv_limits *limits, onv_error *err)
{
    *b = (onv_builder){.model = model, .limits = limits, .scan = scan, .err = err};
    onv_arena_init(&b->unpacked, (size_t)limits->arena_bytes);
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
    onv_arena_cleanup(&b->unpacked);
}
