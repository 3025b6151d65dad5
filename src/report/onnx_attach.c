#include "report/onnx_attach.h"

#include "base/fail.h"
#include "load/source.h"
#include "load/wire.h"
#include "program/attached.h"
#include "report/wire_made.h"
#include "report/writer.h"

/* All of the file but entries of that key. Fields of a message may come in any order, so that the new one is at the end. */
static onv_status copy(onv_source *source, onv_writer *out, onv_error *err)
{
    const unsigned char *at, *end;
    onv_wire_field field;
    ONV_TRY(onv_source_view(source, 0, source->bytes, &at, err));
    for (end = at + source->bytes; at < end && !out->failed;) {
        if (!onv_wire_next(&at, end, &field))
            return onv_fail(err, ONV_ERR_IO, "the file changed while it was read");
        if (field.number == ONV_MODEL_METADATA && field.type == ONV_WIRE_BYTES &&
            onv_program_is_entry(field.value, field.end))
            continue;
        onv_write_bytes(out, (const char *)field.start, (size_t)(field.end - field.start));
    }
    return ONV_OK;
}

onv_status onv_onnx_attach(const onv_model *model, const onv_program_text *packed,
                           onv_write_fn write, void *context, onv_error *err)
{
    onv_writer out;
    onv_made entry = {0};
    onv_made_pair(&entry, ONV_MODEL_METADATA, ONV_PROGRAM_KEY, packed->at);
    onv_writer_init(&out, write, context);
    onv_status status = entry.failed ? onv_fail_memory(err) : copy(model->source, &out, err);
    if (status == ONV_OK) onv_write_bytes(&out, (const char *)entry.bytes.at, entry.bytes.count);
    onv_vec_cleanup(&entry.bytes);
    onv_status written = onv_writer_finish(&out, status == ONV_OK ? err : NULL);
    return status != ONV_OK ? status : written;
}
