/* Files of ONNX that are written: messages of the protobuf wire format as they are made, and what their writers share.
 *
 * A message is a list of pieces: bytes of the file that is copied, which stay where they are, and made ones in an arena. So its
 * length is known when it goes into another message, and weights are written from where they lie. */
#ifndef ONV_REPORT_ONNX_MADE_H
#define ONV_REPORT_ONNX_MADE_H

#include "load/wire.h"
#include "program/archive.h"
#include "report/format.h"

typedef struct onv_span {
    const unsigned char *at, *end;
} onv_span;

typedef struct onv_made {
    onv_arena *arena; /* whose failure is that of the message, too */
    ONV_VEC(onv_span) pieces;
    uint64_t bytes;
} onv_made;

void onv_made_span(onv_made *to, onv_span piece); /* of the file */
void onv_made_bytes(onv_made *to, const void *data, size_t n);
void onv_made_number(onv_made *to, uint32_t field, uint64_t value);
void onv_made_field(onv_made *to, uint32_t field, const void *data, size_t n);

/* Puts `part` into `to`, and empties it. */
void onv_made_message(onv_made *to, uint32_t field, onv_made *part);

/* A StringStringEntryProto. */
void onv_made_pair(onv_made *to, uint32_t field, const char *key, const char *value);

/* Writes it, and empties it. */
void onv_made_write(onv_made *made, onv_writer *out);

/* A model's own file once more, with an entry of its metadata in place of one with the same key: weights are copied byte for
 * byte. ONV_ERR_IO: it could not be written. */
onv_status onv_onnx_attach(const onv_model *model, const onv_program_text *packed,
                           onv_write_fn write, void *context, onv_error *err);

/* --- The writer of models (onnx_file.c) and its entries for values (onnx_info.c) -------------------- */

#define ONV_SPLICE_PREFIX "onnxvram."

typedef struct onv_splice {
    const onv_report_job *job;
    const onv_view *view;
    const onv_model *types;
    onv_arena scratch; /* of one entry */
    bool has_metadata; /* of value_info, by the IR version */
    bool is_broken;    /* the file changed while it was read */
    onv_span *
        nodes; /* of the main graph, in the order in which they are written; NULL: as in the file */
    size_t n_nodes;
    uint32_t *slots; /* values by graph and name: index + 1, 0 where empty */
    size_t n_slots;
    bool *has_info; /* by value: an entry of the file's */
    bool *at_peak;  /* by buffer */
} onv_splice;

const char *onv_splice_number(onv_splice *s, uint64_t number);

/* The part of a message that is in field `number`; false where there is none. */
bool onv_splice_part(onv_span message, uint32_t number, onv_span *part);

/* Whether a StringStringEntryProto has a key that is written here. */
bool onv_splice_is_ours(onv_span pair);

/* False without memory. */
bool onv_splice_list_values(onv_splice *s);

/* The value of a graph by its name in the file; NULL: none. */
const onv_value *onv_splice_find(onv_splice *s, onv_graph_id graph, onv_span name, uint32_t *index);

/* An entry of the file with what is added; an entry that is new. */
void onv_splice_info(onv_splice *s, onv_made *to, onv_graph_id graph, const onv_wire_field *field);
void onv_splice_new_info(onv_splice *s, onv_made *to, onv_span name, uint32_t value);

#endif
