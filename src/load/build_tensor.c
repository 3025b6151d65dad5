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
    tensor->type.dims = onv_build_dims(b, made, rank);
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
static onv_status inline_payload(onv_builder *b, const Onnx__TensorProto *pb, onv_tensor *tensor)
{
    onv_chunk_mark mark;
    if (!pb->has_raw_data || pb->raw_data.len != sizeof mark) return ONV_OK;
    memcpy(&mark, pb->raw_data.data, sizeof mark);
    const onv_chunk *chunks = b->scan->chunks.at + mark.first, *only = NULL, *raw = NULL;
    uint8_t field = typed_field(tensor->type.dtype);
    size_t n_typed = 0;
    for (uint64_t i = 0; i < mark.count; i++) {
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
        return gather(b, chunks, (size_t)mark.count, field, payload);
    }
    return ONV_OK;
}

/* --- External data ----------------------------------------------------------------------------- */

static onv_status parse_size(onv_builder *b, const onv_tensor *tensor, const char *key,
                             const char *text, uint64_t *size)
{
    uint64_t value = 0;
    bool valid = text != NULL && text[0] != '\0';
    for (const char *c = text; valid && *c != '\0'; c++)
        valid = *c >= '0' && *c <= '9' && onv_u64_mul(value, 10, &value) &&
                onv_u64_add(value, (uint64_t)(*c - '0'), &value);
    if (!valid)
        return onv_fail(b->err, ONV_ERR_MODEL, "external data of tensor '%s': %s is '%s'",
                        shown(tensor->name), key, text != NULL ? text : "");
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

static onv_status external_payload(onv_builder *b, const Onnx__TensorProto *pb, onv_tensor *tensor)
{
    onv_payload *payload = &tensor->payload;
    *payload = (onv_payload){.kind = ONV_PAYLOAD_EXTERNAL, .bytes = tensor->bytes};
    const char *location = NULL;
    for (size_t i = 0; i < pb->n_external_data; i++) {
        const char *key = pb->external_data[i]->key, *value = pb->external_data[i]->value;
        if (key == NULL) continue;
        if (strcmp(key, "location") == 0) location = value;
        if (strcmp(key, "offset") == 0)
            ONV_TRY(parse_size(b, tensor, key, value, &payload->offset));
        if (strcmp(key, "length") == 0) ONV_TRY(parse_size(b, tensor, key, value, &payload->bytes));
    }
    if (location == NULL || location[0] == '\0')
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

/* --- The message ------------------------------------------------------------------------------- */

enum { DIMS = 1, DATA_TYPE = 2, NAME = 8, EXTERNAL_DATA = 13, DATA_LOCATION = 14 };

/* Tags of numbers have one byte. */
static uint64_t number_of(const onv_wire_field *f)
{
    const unsigned char *at = f->start + 1;
    uint64_t number = 0;
    (void)onv_varint_read(&at, f->end, &number);
    return number;
}

static char *text_of(onv_builder *b, const onv_wire_field *f)
{
    return onv_arena_strndup(&b->unpacked, (const char *)f->value, (size_t)(f->end - f->value));
}

/* Of more dims than a tensor may have only the number is kept. */
static void add_dims(Onnx__TensorProto *pb, const onv_wire_field *f)
{
    const unsigned char *at = f->type == ONV_WIRE_VARINT ? f->start + 1 : f->value;
    for (uint64_t dim; onv_varint_read(&at, f->end, &dim); pb->n_dims++)
        if (pb->n_dims < ONV_MAX_RANK) pb->dims[pb->n_dims] = (int64_t)dim;
}

/* `end` is that of the tensor. */
static bool add_external(onv_builder *b, Onnx__TensorProto *pb, const onv_wire_field *f,
                         const unsigned char *end)
{
    enum { LEAST_BYTES = 2 }; /* of a field */
    onv_wire_field next;
    const size_t most = (size_t)(end - f->start) / LEAST_BYTES;
    if (pb->external_data == NULL)
        pb->external_data = onv_arena_alloc(&b->unpacked, most * sizeof *pb->external_data);
    Onnx__StringStringEntryProto *pair = onv_arena_alloc(&b->unpacked, sizeof *pair);
    if (pb->external_data == NULL || pair == NULL) return false;
    pb->external_data[pb->n_external_data++] = pair;
    onnx__string_string_entry_proto__init(pair);
    for (const unsigned char *at = f->value; onv_wire_next(&at, f->end, &next);)
        *(next.number == ONV_PAIR_KEY ? &pair->key : &pair->value) = text_of(b, &next);
    return true;
}

onv_status onv_build_unpack_tensor(onv_builder *b, onv_span span, Onnx__TensorProto *pb)
{
    const unsigned char *at;
    onv_wire_field f;
    bool fits = true;
    ONV_TRY(onv_build_begin(b, span, &at));
    const unsigned char *end = at + span.bytes;
    onnx__tensor_proto__init(pb);
    pb->dims = onv_arena_alloc(&b->unpacked, ONV_MAX_RANK * sizeof *pb->dims);
    while (pb->dims != NULL && fits && onv_wire_next(&at, end, &f)) {
        switch (f.number) {
        case DIMS: add_dims(pb, &f); break;
        case DATA_TYPE: pb->data_type = (int32_t)number_of(&f); break;
        case NAME: pb->name = text_of(b, &f); break;
        case ONV_FIELD_RAW_DATA:
            pb->has_raw_data = true;
            pb->raw_data.len = (size_t)(f.end - f.value);
            pb->raw_data.data = onv_arena_copy(&b->unpacked, f.value, pb->raw_data.len);
            break;
        case EXTERNAL_DATA: fits = add_external(b, pb, &f, end); break;
        default: pb->data_location = (Onnx__TensorProto__DataLocation)number_of(&f);
        }
    }
    return fits && !b->unpacked.failed ? ONV_OK : onv_fail_memory(b->err);
}

/* --- Tensors ----------------------------------------------------------------------------------- */

static onv_status build_dtype(onv_builder *b, const Onnx__TensorProto *pb, onv_tensor *tensor)
{
    tensor->type.dtype = (uint8_t)onv_dtype_from(pb->data_type);
    if (tensor->type.dtype != ONV_UNDEFINED) return ONV_OK;
    return onv_fail(b->err, ONV_ERR_MODEL, "tensor '%s' has the unknown data type %" PRId32,
                    shown(tensor->name), pb->data_type);
}

onv_status onv_build_tensor(onv_builder *b, const Onnx__TensorProto *pb, onv_tensor *tensor)
{
    *tensor = (onv_tensor){.type = {.kind = ONV_TYPE_TENSOR}};
    ONV_TRY(onv_build_intern(b, pb->name, &tensor->name));
    ONV_TRY(build_dtype(b, pb, tensor));
    ONV_TRY(build_dims(b, pb->dims, pb->n_dims, tensor));
    ONV_TRY(set_bytes(b, tensor));
    if (pb->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        return external_payload(b, pb, tensor);
    return inline_payload(b, pb, tensor);
}

onv_status onv_build_sparse(onv_builder *b, const Onnx__SparseTensorProto *pb, onv_tensor *tensor)
{
    *tensor = (onv_tensor){.type = {.kind = ONV_TYPE_SPARSE_TENSOR}};
    onv_tensor values, indices = {0};
    if (pb->values == NULL) return onv_fail(b->err, ONV_ERR_MODEL, "a sparse tensor has no values");
    ONV_TRY(onv_build_tensor(b, pb->values, &values));
    if (pb->indices != NULL) ONV_TRY(onv_build_tensor(b, pb->indices, &indices));
    tensor->name = values.name;
    tensor->type.dtype = values.type.dtype;
    ONV_TRY(build_dims(b, pb->dims, pb->n_dims, tensor));
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
