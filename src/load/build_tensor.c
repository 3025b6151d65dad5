#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "load/build.h"
#include "load/wire.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "payloads are little-endian");

static const char *shown(const char *name)
{
    return name[0] != '\0' ? name : "(no name)";
}

/* --- Dims -------------------------------------------------------------------------------------- */

static onv_status build_dims(onv_builder *b, const int64_t *dims, size_t rank, onv_tensor *tensor)
{
    if (rank > ONV_MAX_RANK)
        return onv_fail(b->err, ONV_ERR_LIMIT,
                        "tensor '%s' has rank %zu; the limit is %d, which no option raises",
                        shown(tensor->name), rank, ONV_MAX_RANK);
    onv_dim made[ONV_MAX_RANK];
    uint64_t elems = 1;
    bool empty = false, fits = true;
    for (size_t i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return onv_fail(b->err, ONV_ERR_MODEL, "dim %zu of tensor '%s' is %" PRId64, i,
                            shown(tensor->name), dims[i]);
        if (dims[i] >= ONV_DIM_INFINITY_RAW) fits = false;
        if (dims[i] == 0) empty = true;
        if (dims[i] > 0) fits = fits && onv_u64_mul(elems, (uint64_t)dims[i], &elems);
        made[i] = onv_dim_const(dims[i]);
    }
    if (!fits)
        return onv_fail(b->err, ONV_ERR_OVERFLOW,
                        "the number of elements of tensor '%s' does not fit 64 bits",
                        shown(tensor->name));
    tensor->elems = empty ? 0 : elems;
    tensor->type.dims = onv_arena_copy(&b->model->arena, made, rank * sizeof *made);
    tensor->type.rank = (int16_t)rank;
    return tensor->type.dims != NULL ? ONV_OK : onv_fail_memory(b->err);
}

static onv_status set_bytes(onv_builder *b, onv_tensor *tensor)
{
    if (onv_dtype_bytes(tensor->type.dtype, tensor->elems, &tensor->bytes)) return ONV_OK;
    return onv_fail(b->err, ONV_ERR_OVERFLOW, "the size of tensor '%s' does not fit 64 bits",
                    shown(tensor->name));
}

/* --- Payloads in the file ---------------------------------------------------------------------- */

/* The typed field that holds elements of this type; 0: none that is read. */
static uint8_t typed_field(onv_dtype dtype)
{
    switch (dtype) {
    case ONV_FLOAT:
    case ONV_COMPLEX64: return ONV_FIELD_FLOAT_DATA;
    case ONV_DOUBLE:
    case ONV_COMPLEX128: return ONV_FIELD_DOUBLE_DATA;
    case ONV_INT64: return ONV_FIELD_INT64_DATA;
    case ONV_UINT32:
    case ONV_UINT64: return ONV_FIELD_UINT64_DATA;
    case ONV_STRING:
    case ONV_UNDEFINED: return 0;
    default: return ONV_FIELD_INT32_DATA;
    }
}

/* Steps over one element of a typed field; false where the chunk ends in the middle of one. */
static bool skip_element(uint8_t field, const unsigned char **at, const unsigned char *end)
{
    uint64_t ignored;
    size_t bytes = field == ONV_FIELD_FLOAT_DATA ? 4 : field == ONV_FIELD_DOUBLE_DATA ? 8 : 0;
    if (bytes == 0) return onv_varint_read(at, end, &ignored);
    if ((size_t)(end - *at) < bytes) return false;
    *at += bytes;
    return true;
}

/* Copies elements out of a chunk where each stands behind its tag; *used grows up to `room`. */
static onv_status untag(onv_builder *b, const onv_chunk *chunk, unsigned char *to, size_t room,
                        size_t *used)
{
    enum { MOST = 2 * ONV_VARINT_MOST_BYTES };
    uint64_t left = chunk->bytes, tag;
    while (left > 0) {
        const unsigned char *first, *at, *end, *element;
        uint64_t bytes = left < MOST ? left : MOST;
        ONV_TRY(onv_source_view(b->scan->source, chunk->offset + (chunk->bytes - left), bytes,
                                &first, b->err));
        at = first;
        end = first + bytes;
        if (!onv_varint_read(&at, end, &tag)) break;
        element = at;
        if (!skip_element(chunk->field, &at, end) || (size_t)(at - element) > room - *used) break;
        memcpy(to + *used, element, (size_t)(at - element));
        *used += (size_t)(at - element);
        left -= (uint64_t)(at - first);
    }
    return ONV_OK;
}

/* Elements that do not lie in one piece are copied as far as anything reads them. */
static onv_status gather(onv_builder *b, const onv_chunk *chunks, size_t n, uint8_t field,
                         onv_payload *payload)
{
    size_t room = 0, most = (size_t)b->model->most_known * ONV_VARINT_MOST_BYTES;
    for (size_t i = 0; i < n && room < most; i++)
        if (chunks[i].field == field)
            room += chunks[i].bytes < most ? (size_t)chunks[i].bytes : most;
    if (room > most) room = most;
    unsigned char *to = onv_arena_alloc(&b->model->arena, room);
    if (to == NULL) return onv_fail_memory(b->err);
    size_t used = 0;
    for (size_t i = 0; i < n && used < room; i++) {
        if (chunks[i].field != field) continue;
        if (chunks[i].tagged) {
            ONV_TRY(untag(b, &chunks[i], to, room, &used));
        } else {
            const unsigned char *data;
            size_t bytes = chunks[i].bytes < room - used ? (size_t)chunks[i].bytes : room - used;
            ONV_TRY(onv_source_view(b->scan->source, chunks[i].offset, bytes, &data, b->err));
            memcpy(to + used, data, bytes);
            used += bytes;
        }
    }
    *payload = (onv_payload){.kind = ONV_PAYLOAD_PACKED, .data = to, .bytes = used};
    return ONV_OK;
}

static onv_status take_at_hand(onv_builder *b, onv_payload *payload)
{
    const unsigned char *data;
    ONV_TRY(onv_source_view(b->scan->source, payload->offset, payload->bytes, &data, b->err));
    payload->data = onv_arena_copy(&b->model->arena, data, (size_t)payload->bytes);
    return payload->data != NULL ? ONV_OK : onv_fail_memory(b->err);
}

/* raw_data wins over typed fields, as for every other reader. Of several, the last one. */
static onv_status inline_payload(onv_builder *b, const onv_scan_tensor *record, onv_tensor *tensor)
{
    const onv_chunk *chunks = b->scan->chunks.at + record->chunks.first, *only = NULL, *raw = NULL;
    uint8_t field = typed_field(tensor->type.dtype);
    size_t n_typed = 0;
    for (uint32_t i = 0; i < record->chunks.count; i++) {
        if (chunks[i].field == ONV_FIELD_RAW_DATA) raw = &chunks[i];
        if (chunks[i].field != field) continue;
        only = &chunks[i];
        n_typed++;
    }
    onv_payload *payload = &tensor->payload;
    if (tensor->type.dtype == ONV_STRING) return ONV_OK;
    if (raw != NULL) {
        *payload =
            (onv_payload){.kind = ONV_PAYLOAD_RAW, .offset = raw->offset, .bytes = raw->bytes};
        if (raw->bytes <= ONV_PAYLOAD_AT_HAND) return take_at_hand(b, payload);
    } else if (n_typed == 1 && !only->tagged) {
        *payload =
            (onv_payload){.kind = ONV_PAYLOAD_PACKED, .offset = only->offset, .bytes = only->bytes};
    } else if (n_typed > 0) {
        return gather(b, chunks, record->chunks.count, field, payload);
    }
    return ONV_OK;
}

/* --- External data ----------------------------------------------------------------------------- */

static onv_status parse_size(onv_builder *b, const onv_tensor *tensor, const char *key,
                             const char *text, uint64_t *size)
{
    uint64_t value = 0;
    bool valid = text[0] != '\0';
    for (const char *c = text; valid && *c != '\0'; c++)
        valid = *c >= '0' && *c <= '9' && onv_u64_mul(value, 10, &value) &&
                onv_u64_add(value, (uint64_t)(*c - '0'), &value);
    if (!valid)
        return onv_fail(b->err, ONV_ERR_MODEL, "external data of tensor '%s': %s is '%s'",
                        shown(tensor->name), key, text);
    *size = value;
    return ONV_OK;
}

/* Whether a path leads, by its text, out of the folder it starts in. */
static bool escapes(const char *path)
{
    if (path[0] == '/') return true;
    for (const char *part = path; *part != '\0';) {
        size_t length = strcspn(part, "/");
        if (length == 2 && memcmp(part, "..", 2) == 0) return true;
        part += length + (part[length] == '/');
    }
    return false;
}

static onv_status external_payload(onv_builder *b, const onv_scan_tensor *record,
                                   onv_tensor *tensor)
{
    onv_payload *payload = &tensor->payload;
    *payload = (onv_payload){.kind = ONV_PAYLOAD_EXTERNAL, .bytes = tensor->bytes};
    const char *location = "";
    ONV_EACH_RECORD(pair, b->scan->pairs, record->parts)
    {
        const char *key = pair->key;
        if (strcmp(key, "location") == 0) location = pair->value;
        if (strcmp(key, "offset") == 0)
            ONV_TRY(parse_size(b, tensor, key, pair->value, &payload->offset));
        if (strcmp(key, "length") == 0)
            ONV_TRY(parse_size(b, tensor, key, pair->value, &payload->bytes));
    }
    if (location[0] == '\0')
        return onv_fail(b->err, ONV_ERR_MODEL, "external data of tensor '%s' has no location",
                        shown(tensor->name));
    if (escapes(location))
        return onv_fail(b->err, ONV_ERR_MODEL,
                        "external data of tensor '%s' lies outside the model's folder: '%s'",
                        shown(tensor->name), location);
    uint64_t end;
    if (!onv_u64_add(payload->offset, payload->bytes, &end) || end > INT64_MAX)
        return onv_fail(b->err, ONV_ERR_MODEL,
                        "external data of tensor '%s' ends beyond any file: offset %" PRIu64
                        ", length %" PRIu64,
                        shown(tensor->name), payload->offset, payload->bytes);
    return onv_build_intern(b, location, &payload->location);
}

/* --- Tensors ----------------------------------------------------------------------------------- */

static onv_status build_dtype(onv_builder *b, const onv_scan_tensor *record, onv_tensor *tensor)
{
    tensor->type.dtype = (uint8_t)onv_dtype_from(record->dtype);
    if (tensor->type.dtype != ONV_UNDEFINED) return ONV_OK;
    return onv_fail(b->err, ONV_ERR_MODEL, "tensor '%s' has the unknown data type %" PRId32,
                    shown(tensor->name), record->dtype);
}

static const int64_t *dims_of(const onv_builder *b, const onv_scan_tensor *record)
{
    return b->scan->dims.at + record->first_dim;
}

onv_status onv_build_tensor(onv_builder *b, const onv_scan_tensor *record, onv_tensor *tensor)
{
    enum { WORK = 4 };
    *tensor =
        (onv_tensor){.name = onv_build_name(b, record->name), .type = {.kind = ONV_TYPE_TENSOR}};
    ONV_WORK(WORK);
    ONV_TRY(build_dtype(b, record, tensor));
    ONV_TRY(build_dims(b, dims_of(b, record), record->rank, tensor));
    ONV_TRY(set_bytes(b, tensor));
    return record->is_external ? external_payload(b, record, tensor)
                               : inline_payload(b, record, tensor);
}

onv_status onv_build_sparse(onv_builder *b, const onv_scan_tensor *record, onv_tensor *tensor)
{
    enum { VALUES = 1 }; /* the field; the other one is that of indices */
    onv_tensor values = {0}, indices = {0};
    bool has_values = false;
    *tensor = (onv_tensor){.type = {.kind = ONV_TYPE_SPARSE_TENSOR}};
    ONV_EACH_RECORD(part, b->scan->tensors, record->parts)
    {
        has_values |= part->field == VALUES;
        ONV_TRY(onv_build_tensor(b, part, part->field == VALUES ? &values : &indices));
    }
    if (!has_values) return onv_fail(b->err, ONV_ERR_MODEL, "a sparse tensor has no values");
    tensor->name = values.name;
    tensor->type.dtype = values.type.dtype;
    ONV_TRY(build_dims(b, dims_of(b, record), record->rank, tensor));
    tensor->payload = values.payload;
    tensor->elems = values.elems;
    if (!onv_u64_add(values.bytes, indices.bytes, &tensor->bytes))
        return onv_fail(b->err, ONV_ERR_OVERFLOW, "the size of tensor '%s' does not fit 64 bits",
                        shown(tensor->name));
    return ONV_OK;
}

onv_status onv_build_list_tensor(onv_builder *b, onv_dtype dtype, int rank, const void *data,
                                 uint64_t elems, onv_tensor *tensor)
{
    *tensor = (onv_tensor){
        .name = "",
        .type = {.kind = ONV_TYPE_TENSOR, .dtype = (uint8_t)dtype},
    };
    int64_t dim = (int64_t)elems;
    ONV_TRY(build_dims(b, &dim, (size_t)rank, tensor));
    ONV_TRY(set_bytes(b, tensor));
    if (data != NULL)
        tensor->payload =
            (onv_payload){.kind = ONV_PAYLOAD_RAW, .data = data, .bytes = tensor->bytes};
    return ONV_OK;
}
