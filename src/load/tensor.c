#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "load/build.h"
#include "load/limits.h"
#include "load/load.h"
#include "load/source.h"
#include "load/wire.h"

/* --- Elements, as numbers ----------------------------------------------------------------------- */

/* The floating-point types of 16 bits: sign, exponent, mantissa. */
static double half_value(uint32_t word, int mantissa_bits)
{
    const int exponent_bits = 15 - mantissa_bits, bias = (1 << (exponent_bits - 1)) - 1;
    const uint32_t most = (1u << exponent_bits) - 1, exponent = word >> mantissa_bits & most;
    const uint32_t mantissa = word & ((1u << mantissa_bits) - 1);
    double value;
    if (exponent == most)
        value = mantissa != 0 ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        value = ldexp(mantissa, 1 - bias - mantissa_bits);
    else
        value = ldexp((1u << mantissa_bits) + mantissa, (int)exponent - bias - mantissa_bits);
    return word >> 15 & 1 ? -value : value;
}

static onv_scalar real(double value)
{
    return (onv_scalar){.i = onv_dim_const(1), .f = value};
}

static onv_scalar integer(int64_t value)
{
    return (onv_scalar){.i = onv_dim_const(value)};
}

/* From a word that holds the element's bits at the bottom. */
static onv_scalar from_bits(onv_dtype dtype, uint64_t word)
{
    uint32_t bits = onv_dtype_bits(dtype);
    if (bits < 64) word &= ((uint64_t)1 << bits) - 1;
    float single;
    double twice;
    uint32_t half = (uint32_t)word;
    switch (dtype) {
    case ONV_FLOAT: memcpy(&single, &half, sizeof single); return real((double)single);
    case ONV_DOUBLE: memcpy(&twice, &word, sizeof twice); return real(twice);
    case ONV_BOOL: return integer(word != 0);
    case ONV_UINT64:
        return integer(word > INT64_MAX ? INT64_MAX : (int64_t)word); /* an infinity to dims */
    case ONV_INT2:
    case ONV_INT4:
    case ONV_INT8:
    case ONV_INT16:
    case ONV_INT32: {
        uint64_t sign = (uint64_t)1 << (bits - 1);
        return integer((int64_t)(word ^ sign) - (int64_t)sign);
    }
    case ONV_FLOAT16: return real(half_value(half, 10));
    case ONV_BFLOAT16: return real(half_value(half, 7));
    default: return integer((int64_t)word);
    }
}

/* Whether contents of this type can be tracked: integers, bool and floating point. */
static bool decode_knows(onv_dtype dtype)
{
    return onv_dtype_is_integer(dtype) || dtype == ONV_BOOL || dtype == ONV_FLOAT ||
           dtype == ONV_DOUBLE || dtype == ONV_FLOAT16 || dtype == ONV_BFLOAT16;
}

/* Fills `count` elements; false where the bytes end before. */
static bool decode_raw(onv_dtype dtype, const unsigned char *data, uint64_t bytes,
                       onv_scalar *elems, uint32_t count)
{
    uint32_t bits = onv_dtype_bits(dtype);
    uint64_t needed;
    if (!onv_dtype_bytes(dtype, count, &needed) || bytes < needed) return false;
    for (uint32_t i = 0; i < count; i++) {
        /* Elements below a byte follow each other from the lowest bit up. */
        uint64_t first = (uint64_t)i * bits;
        size_t start = (size_t)(first / 8), end = (size_t)((first + bits + 7) / 8);
        uint64_t word = 0;
        for (size_t k = start; k < end; k++) word |= (uint64_t)data[k] << (8 * (k - start));
        elems[i] = from_bits(dtype, word >> first % 8);
    }
    return true;
}

static bool decode_packed(onv_dtype dtype, const unsigned char *data, uint64_t bytes,
                          onv_scalar *elems, uint32_t count)
{
    if (dtype == ONV_FLOAT || dtype == ONV_DOUBLE)
        return decode_raw(dtype, data, bytes, elems, count);
    const unsigned char *at = data, *end = data + bytes;
    uint32_t bits = onv_dtype_bits(dtype);
    uint32_t per_entry = bits == 4 ? 2 : bits == 2 ? 4 : 1;
    uint64_t word = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (i % per_entry == 0 && !onv_varint_read(&at, end, &word)) return false;
        elems[i] = from_bits(dtype, word >> (i % per_entry * bits));
    }
    return true;
}

/* --- Contents ---------------------------------------------------------------------------------- */

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
    if (*found) decode_raw(known->dtype, buffer, tensor->bytes, known->elems, known->count);
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
        whole = decode_raw(known->dtype, data, bytes, known->elems, known->count);
        break;
    case ONV_PAYLOAD_PACKED:
        ONV_TRY(view_payload(source, payload, known->count, &data, &bytes, err));
        whole = decode_packed(known->dtype, data, bytes, known->elems, known->count);
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
    if (tensor->type.kind != ONV_TYPE_TENSOR || !decode_knows(tensor->type.dtype) ||
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

/* The bytes that the elements take, where they are raw in the model's file, until it is read again; else *data is NULL. */
static onv_status load_raw(const onv_model *model, const onv_tensor *tensor,
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
    if (tensor->payload.kind != ONV_PAYLOAD_EXTERNAL) return load_raw(model, tensor, data, err);
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
    onv_builder builder;
    ONV_TRY(onv_scan_run(scan, ONV_SCAN_TENSOR, source, limits, &model->strings, err));
    onv_builder_init(&builder, model, scan, limits, err);
    onv_status status = onv_build_tensor(&builder, &scan->tensors.at[0], tensor);
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
