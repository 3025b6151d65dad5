#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "load/build.h"
#include "load/decode.h"
#include "load/external.h"
#include "load/limits.h"
#include "load/load.h"
#include "load/source.h"
#include "load/wire.h"

static onv_status too_short(const onv_tensor *tensor, uint64_t bytes, onv_error *err)
{
    return onv_fail(err, ONV_ERR_MODEL,
                    "tensor '%s' of %" PRIu64 " elements (%s) holds only %" PRIu64 " bytes of data",
                    tensor->name, tensor->elems, onv_dtype_name(tensor->type.dtype), bytes);
}

/* Said once: a model may have thousands of such tensors. */
static void tell_unread(onv_model *model, const onv_tensor *tensor, const char *why)
{
    if (model->told_external) return;
    model->told_external = true;
    onv_model_diag(
        model, ONV_WARNING, "external-data", NULL,
        "the contents of tensor '%s' may decide shapes, but its file '%s' is not read: %s",
        tensor->name, tensor->payload.location, why);
}

/* External data goes through a buffer: what is tracked is small. */
static onv_status read_external(onv_model *model, const onv_tensor *tensor, onv_known *known,
                                bool *found, onv_error *err)
{
    if (tensor->payload.bytes < tensor->bytes) return too_short(tensor, tensor->payload.bytes, err);
    unsigned char *buffer = onv_heap_alloc((size_t)tensor->bytes);
    if (buffer == NULL) return onv_fail_memory(err);
    const char *unread;
    onv_status status =
        onv_external_read(model, tensor, buffer, (size_t)tensor->bytes, &unread, err);
    *found = status == ONV_OK && unread == NULL;
    if (*found) onv_decode_raw(known->dtype, buffer, tensor->bytes, known->elems, known->count);
    if (status == ONV_OK && !*found && unread[0] != '\0') tell_unread(model, tensor, unread);
    onv_heap_free(buffer);
    return status;
}

/* As much of a payload as so many elements take; the rest, a hostile file's, is not looked at. */
static onv_status view_payload(onv_source *source, const onv_payload *payload, uint32_t count,
                               const unsigned char **data, uint64_t *bytes, onv_error *err)
{
    uint64_t most = (uint64_t)count * ONV_VARINT_MOST_BYTES;
    *bytes = payload->bytes < most ? payload->bytes : most;
    *data = payload->data;
    if (payload->data != NULL || source == NULL) return ONV_OK;
    return onv_source_view(source, payload->offset, *bytes, data, err);
}

static onv_status read_payload(onv_model *model, onv_source *source, const onv_tensor *tensor,
                               onv_known *known, bool *found, onv_error *err)
{
    const onv_payload *payload = &tensor->payload;
    const unsigned char *data;
    uint64_t bytes;
    bool whole = false;
    *found = true;
    switch ((onv_payload_kind)payload->kind) {
    case ONV_PAYLOAD_NONE: whole = known->count == 0; break;
    case ONV_PAYLOAD_RAW:
        ONV_TRY(view_payload(source, payload, known->count, &data, &bytes, err));
        whole = onv_decode_raw(known->dtype, data, bytes, known->elems, known->count);
        break;
    case ONV_PAYLOAD_PACKED:
        ONV_TRY(view_payload(source, payload, known->count, &data, &bytes, err));
        whole = onv_decode_packed(known->dtype, data, bytes, known->elems, known->count);
        break;
    case ONV_PAYLOAD_EXTERNAL: return read_external(model, tensor, known, found, err);
    }
    return whole ? ONV_OK : too_short(tensor, payload->bytes, err);
}

/* The contents of a tensor of the file `source`. */
static onv_status load_known(onv_model *model, onv_source *source, const onv_tensor *tensor,
                             const onv_known **known, onv_error *err)
{
    *known = NULL;
    if (tensor->type.kind != ONV_TYPE_TENSOR || !onv_decode_knows(tensor->type.dtype) ||
        tensor->elems > model->most_known)
        return ONV_OK;
    onv_known *contents = onv_known_new(&model->arena, &tensor->type);
    if (contents == NULL) return onv_fail_memory(err);
    for (uint32_t i = 0; i < contents->count; i++) contents->elems[i] = (onv_scalar){0};
    bool found;
    ONV_TRY(read_payload(model, source, tensor, contents, &found, err));
    if (found) *known = contents;
    return ONV_OK;
}

onv_status onv_load_known(onv_model *model, const onv_tensor *tensor, const onv_known **known,
                          onv_error *err)
{
    *known = NULL;
    if (model->program != NULL) return ONV_OK; /* a program has no contents */
    return load_known(model, model->source, tensor, known, err);
}

onv_status onv_load_raw(const onv_model *model, const onv_tensor *tensor,
                        const unsigned char **data, onv_error *err)
{
    const onv_payload *payload = &tensor->payload;
    *data = NULL;
    if (payload->kind != ONV_PAYLOAD_RAW || payload->bytes < tensor->bytes) return ONV_OK;
    *data = payload->data;
    if (payload->data != NULL) return ONV_OK;
    return onv_source_view(model->source, payload->offset, tensor->bytes, data, err);
}

onv_status onv_load_head(const onv_model *model, const onv_tensor *tensor, size_t bytes,
                         const unsigned char **data, unsigned char **buffer, onv_error *err)
{
    *data = *buffer = NULL;
    if (tensor->payload.kind != ONV_PAYLOAD_EXTERNAL) return onv_load_raw(model, tensor, data, err);
    if (tensor->payload.bytes < tensor->bytes) return ONV_OK;
    unsigned char *head = onv_heap_alloc(bytes);
    const char *unread = "";
    if (head == NULL) return onv_fail_memory(err);
    onv_status status = onv_external_read(model, tensor, head, bytes, &unread, err);
    if (unread == NULL)
        *data = *buffer = head;
    else
        onv_heap_free(head);
    return status;
}

/* --- Tensor files ------------------------------------------------------------------------------ */

static onv_status unpack_tensor(onv_model *model, onv_source *source, const onv_limits *limits,
                                onv_scan *scan, onv_tensor *tensor, onv_error *err)
{
    const ProtobufCMessage *pb;
    onv_builder builder;
    ONV_TRY(onv_scan_run(scan, ONV_SCAN_TENSOR, source, limits, NULL, err));
    onv_builder_init(&builder, model, scan, limits, err);
    const onv_span whole = {0, (uint32_t)scan->skeleton.count};
    onv_status status = onv_build_unpack(&builder, whole, &onnx__tensor_proto__descriptor, &pb);
    if (status == ONV_OK)
        status = onv_build_tensor(&builder, (const Onnx__TensorProto *)pb, tensor);
    onv_builder_cleanup(&builder);
    return status;
}

static onv_status load_tensor(onv_model *model, onv_source *source, onv_scan *scan,
                              const onv_known **known, onv_error *err)
{
    onv_limits limits = onv_limits_resolve(&(onv_limits){.known_elems = model->most_known});
    onv_tensor tensor;
    ONV_TRY(unpack_tensor(model, source, &limits, scan, &tensor, err));
    if (tensor.payload.kind == ONV_PAYLOAD_EXTERNAL)
        return onv_fail(err, ONV_ERR_USAGE, "the tensor's data lies in another file");
    ONV_TRY(load_known(model, source, &tensor, known, err));
    if (*known != NULL) return ONV_OK;
    return onv_fail(err, ONV_ERR_USAGE,
                    "a tensor of %" PRIu64
                    " elements (%s) is not a value that decides shapes: at most "
                    "%u numbers are" ONV_RAISE("known-elems"),
                    tensor.elems, onv_dtype_name(tensor.type.dtype), model->most_known);
}

onv_status onv_load_tensor_file(onv_model *model, const char *path, const onv_known **known,
                                onv_error *err)
{
    onv_source source;
    onv_scan scan = {0};
    onv_error cause = {0};
    *known = NULL;
    onv_status status =
        onv_source_open(&source, path, ONV_SOURCE_BEST, ONV_DEFAULT_FILE_BYTES, &cause);
    if (status == ONV_OK) status = load_tensor(model, &source, &scan, known, &cause);
    onv_scan_cleanup(&scan);
    onv_source_close(&source);
    if (status == ONV_OK) return ONV_OK;
    return onv_fail(err, status, "'%s': %s", path, cause.message);
}
