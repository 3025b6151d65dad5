/* Traces as CSV: `alloc,ID,BYTES[,STEP,LABEL[,STREAM]]` and `free,ID`, one event a line, no header.
 *
 * Fields follow RFC 4180: a field may stand in double quotes, and must where it holds a comma, a
 * quote (written twice) or a line break. Lines end with LF or CRLF, the last one may lack it. BYTES,
 * STEP and STREAM (of the device; 0 to 3, 0 where it is missing) are decimal digits. IDs are any text but the empty one; two spellings of an id are the
 * same if the text between the quotes is. An id may be used again after it was freed.
 *
 * Strict: an unknown event, a missing or extra field, a second allocation of a live id, a free of
 * one that is not live, a size beyond ONV_ALLOC_MAX_BYTES, an empty line are errors
 * (ONV_ERR_FORMAT, ONV_ERR_LIMIT) that name the line. Ids become dense numbers: a freed id gives
 * its number back, so that memory grows with what is live, not with the length of the trace.
 */
#ifndef ONV_ALLOC_TRACE_CSV_H
#define ONV_ALLOC_TRACE_CSV_H

#include "alloc/alloc.h"

/* Limits on traces held in memory and on text that cannot be mapped (pipes). */
#define ONV_TRACE_MAX_EVENTS     (UINT64_C(1) << 25)
#define ONV_TRACE_MAX_TEXT_BYTES (UINT64_C(1) << 30)

/* A line. */
typedef struct onv_trace_event {
    uint64_t bytes; /* of an alloc: requested */
    uint32_t id;
    uint32_t step;
    uint8_t stream; /* of an alloc */
    bool is_free;
    const char *label; /* of an alloc; may be NULL */
} onv_trace_event;

/* Takes one event; its label lives until the call returns. A failure ends the reading. */
typedef onv_status (*onv_trace_take)(void *context, const onv_trace_event *event, onv_error *err);

/* Reads events one by one. Without a STEP an event has the step of the one before it (0 at first).
 * `n_ids` (may be NULL) is set to the number of ids in use at one time. */
onv_status onv_trace_csv_scan(const char *text, size_t bytes, onv_trace_take take, void *context,
                              uint32_t *n_ids, onv_error *err);

/* Events from anywhere: hands each to `take`. */
typedef onv_status (*onv_trace_source)(void *context, onv_trace_take take, void *taker,
                                       onv_error *err);

/* A trace as a timeline: each allocation is a buffer, up to its free or the end. A new step begins
 * where its order (timeline.h) would not be that of the trace; the steps of the file are not kept. On
 * failure there is nothing to clean up. */
onv_status onv_trace_read(onv_trace_source source, void *context, onv_timeline *t, onv_error *err);
onv_status onv_trace_csv_read_file(const char *path, onv_timeline *t, onv_error *err);

onv_status onv_alloc_simulate(onv_trace_source source, void *context, const onv_alloc_model *model,
                              const onv_alloc_options *options, onv_held_figures *figures,
                              onv_write_fn write, void *write_context, onv_error *err);

/* What `onnxvram simulate` does: serves the events while it reads them, so that the trace may be of
 * any length. With `write`, the summary is written at the end. */
onv_status onv_alloc_simulate_file(const char *path, const onv_alloc_model *model,
                                   const onv_alloc_options *options, onv_held_figures *figures,
                                   onv_write_fn write, void *context, onv_error *err);

#endif
