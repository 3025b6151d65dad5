#include "load/scan.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/quota.h"
#include "load/limits.h"
#include "load/scan_walk.h"

const char *onv_walk_field_name(const onv_item *it)
{
    return it->field->name != NULL ? it->field->name : "an unknown field";
}

onv_status onv_walk_damaged(onv_walk *w, const onv_item *it, const char *what)
{
    return onv_fail(w->err, ONV_ERR_FORMAT, "damaged at byte %" PRIu64 ": %s.%s %s", it->tag,
                    onv_message_name(onv_walk_top(w)->message), onv_walk_field_name(it), what);
}

/* --- Fields ------------------------------------------------------------------------------------ */

/* A value of wire type BYTES, from w->at on. */
static onv_status take_bytes(onv_walk *w, const onv_item *it, uint64_t bytes)
{
    switch ((onv_field_use)it->field->use) {
    case ONV_USE_DROP: break;
    case ONV_USE_NAME:
    case ONV_USE_STRING: ONV_TRY(onv_walk_string(w, it, bytes)); break;
    case ONV_USE_BYTES:
        /* Attributes may carry whole compiled engines as a string. Nothing reads more of one than
         * its head. */
        if (bytes > w->limits->name_bytes) bytes = w->limits->name_bytes;
        if (onv_walk_count_list(w, it, 1) == 0) return ONV_OK;
        return onv_walk_put_field_from(w, onv_walk_top(w)->out, it->number, w->at, bytes);
    case ONV_USE_VARINTS: ONV_TRY(onv_walk_varints(w, it, bytes)); break;
    case ONV_USE_FLOATS: ONV_TRY(onv_walk_floats(w, it, bytes)); break;
    case ONV_USE_NOTES: return onv_walk_note(w, bytes);
    case ONV_USE_ONE:
    case ONV_USE_MANY:
    case ONV_USE_ONE_OF: return onv_walk_enter(w, it, bytes);
    case ONV_USE_RAW:
    case ONV_USE_PAYLOAD32:
    case ONV_USE_PAYLOAD64:
    case ONV_USE_PAYLOAD: ONV_TRY(onv_walk_chunk(w, it, w->at, bytes, false)); break;
    case ONV_USE_VARINT:
    case ONV_USE_FLOAT: return onv_walk_damaged(w, it, "has the wrong wire type");
    }
    return ONV_OK;
}

static onv_wire_type single_of(onv_field_use use)
{
    switch (use) {
    case ONV_USE_VARINT:
    case ONV_USE_VARINTS:
    case ONV_USE_PAYLOAD: return ONV_WIRE_VARINT;
    case ONV_USE_FLOAT:
    case ONV_USE_FLOATS:
    case ONV_USE_PAYLOAD32: return ONV_WIRE_FIXED32;
    case ONV_USE_PAYLOAD64: return ONV_WIRE_FIXED64;
    default: return ONV_WIRE_BYTES;
    }
}

/* A value of another wire type, which ends at w->at. */
static onv_status take_number(onv_walk *w, const onv_item *it)
{
    const onv_field_use use = it->field->use;
    if (use == ONV_USE_DROP) return ONV_OK;
    if (single_of(use) != it->type) return onv_walk_damaged(w, it, "has the wrong wire type");
    uint64_t bytes = w->at - it->tag;
    if (use >= ONV_USE_RAW) return onv_walk_chunk(w, it, it->tag, bytes, true);
    return onv_walk_count_list(w, it, 1) == 0
               ? ONV_OK
               : onv_walk_put_stretch(w, onv_walk_top(w)->out, it->tag, bytes);
}

/* Where a field that does not fit its message was cut: a file that simply ends too early is told
 * from one that contradicts itself. */
static onv_status overrun(onv_walk *w, const onv_item *it, uint64_t bytes)
{
    uint64_t left = w->source->bytes - w->at;
    if (bytes > left)
        return onv_fail(w->err, ONV_ERR_FORMAT,
                        "truncated: %s.%s at byte %" PRIu64 " has %" PRIu64
                        " bytes, but only %" PRIu64 " follow",
                        onv_message_name(onv_walk_top(w)->message), onv_walk_field_name(it),
                        it->tag, bytes, left);
    return onv_walk_damaged(w, it, "is longer than the message it stands in");
}

static onv_status read_tag(onv_walk *w, const unsigned char **at, const unsigned char *end,
                           onv_item *it)
{
    const onv_frame *top = onv_walk_top(w);
    uint64_t tag;
    it->tag = w->at;
    if (!onv_varint_read(at, end, &tag) || tag >> 3 == 0 || tag >> 3 > ONV_FIELD_NUMBER_MOST ||
        (tag & 7) > ONV_WIRE_FIXED32)
        return onv_fail(w->err, ONV_ERR_FORMAT, "damaged at byte %" PRIu64 ": no field of %s",
                        it->tag, onv_message_name(top->message));
    it->number = (uint32_t)(tag >> 3);
    it->type = (onv_wire_type)(tag & 7);
    it->field = onv_message_field(top->message, it->number);
    return ONV_OK;
}

static onv_status walk_field(onv_walk *w)
{
    onv_item it;
    const unsigned char *start, *p, *stop;
    const uint64_t end = onv_walk_top(w)->end;
    ONV_WORK(1);
    ONV_TRY(onv_walk_head(w, w->at, end, &start, &stop));
    p = start;
    ONV_TRY(read_tag(w, &p, stop, &it));
    if (it.type == ONV_WIRE_GROUP_START || it.type == ONV_WIRE_GROUP_END)
        return onv_walk_damaged(w, &it, "is a group, which ONNX does not have");
    const bool has_bytes = it.type == ONV_WIRE_BYTES, is_varint = it.type == ONV_WIRE_VARINT;
    uint64_t value = it.type == ONV_WIRE_FIXED32 ? 4 : 8;
    if ((has_bytes || is_varint) && !onv_varint_read(&p, stop, &value))
        return onv_walk_damaged(w, &it,
                                has_bytes ? "has a broken length" : "holds a broken number");
    w->at += (uint64_t)(p - start);
    if (is_varint) return take_number(w, &it);
    if (value > end - w->at) return overrun(w, &it, value);
    if (!has_bytes) {
        w->at += value;
        return take_number(w, &it);
    }
    uint32_t depth = w->depth;
    ONV_TRY(take_bytes(w, &it, value));
    if (w->depth == depth) w->at += value; /* else the walk goes on inside it */
    return ONV_OK;
}

static onv_status walk_all(onv_walk *w, onv_scan_root root)
{
    bool is_model = root == ONV_SCAN_MODEL;
    if (w->strings != NULL && onv_intern(w->strings, "") == NULL) return onv_fail_memory(w->err);
    w->stack[w->depth++] = (onv_frame){
        .message = is_model ? ONV_MSG_MODEL : ONV_MSG_TENSOR,
        .end = w->source->bytes,
        .out = is_model ? &w->scan->header : &w->scan->skeleton,
    };
    while (w->depth > 0) {
        if (w->at == onv_walk_top(w)->end) {
            ONV_TRY(onv_walk_leave(w));
        } else {
            ONV_TRY(walk_field(w));
        }
    }
    return ONV_OK;
}

/* What the scan holds stays until the model is built. */
static onv_status fit(onv_scan *scan, onv_error *err)
{
    bool fits =
        onv_vec_fit(&scan->skeleton) && onv_vec_fit(&scan->chunks) && onv_vec_fit(&scan->names) &&
        onv_vec_fit(&scan->nodes) && onv_vec_fit(&scan->attrs) && onv_vec_fit(&scan->attr_lists) &&
        onv_vec_fit(&scan->notes) && onv_vec_fit(&scan->values) && onv_vec_fit(&scan->parts);
    return fits ? ONV_OK : onv_fail_memory(err);
}

onv_status onv_scan_run(onv_scan *scan, onv_scan_root root, onv_source *source,
                        const onv_limits *limits, onv_strings *strings, onv_error *err)
{
    *scan = (onv_scan){.source = source};
    onv_walk w = {
        .scan = scan,
        .limits = limits,
        .strings = strings,
        .source = source,
        .stack = onv_heap_calloc(limits->nesting, sizeof *w.stack),
        .err = err,
    };
    if (w.stack == NULL) return onv_fail_memory(err);
    onv_status status = walk_all(&w, root);
    if (status == ONV_OK) status = fit(scan, err);
    onv_heap_free(w.stack);
    onv_vec_cleanup(&w.inputs);
    onv_vec_cleanup(&w.outputs);
    onv_vec_cleanup(&w.attrs);
    onv_vec_cleanup(&w.put_off);
    onv_heap_free(w.walked);
    if (status != ONV_OK) onv_scan_cleanup(scan);
    return status;
}

void onv_scan_cleanup(onv_scan *scan)
{
    onv_vec_cleanup(&scan->header);
    onv_vec_cleanup(&scan->skeleton);
    onv_vec_cleanup(&scan->chunks);
    onv_vec_cleanup(&scan->names);
    onv_vec_cleanup(&scan->graphs);
    onv_vec_cleanup(&scan->nodes);
    onv_vec_cleanup(&scan->attrs);
    onv_vec_cleanup(&scan->attr_lists);
    onv_vec_cleanup(&scan->notes);
    onv_vec_cleanup(&scan->values);
    onv_vec_cleanup(&scan->parts);
    onv_vec_cleanup(&scan->functions);
}
