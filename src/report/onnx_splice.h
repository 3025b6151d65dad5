/* What the writer of models (onnx_file.c) and its entries for values (onnx_info.c) share. */
#ifndef ONV_REPORT_ONNX_SPLICE_H
#define ONV_REPORT_ONNX_SPLICE_H

#include "load/wire.h"
#include "report/format.h"
#include "report/wire_made.h"

#define ONV_SPLICE_PREFIX "onnxvram."

typedef struct onv_span {
    const unsigned char *at, *end;
} onv_span;

typedef struct onv_splice {
    const onv_report_job *job;
    const onv_view *view;
    const onv_model *types;
    onv_arena scratch; /* of one entry */
    bool has_metadata; /* of value_info, by the IR version */
    bool is_counting;
    uint64_t bytes;            /* counted */
    ONV_VEC(uint64_t) lengths; /* of messages around others, in the order of their beginnings */
    size_t next_length;        /* that is written */
    onv_span file, graph;
    onv_span *nodes; /* of the main graph, as in the file */
    size_t n_nodes;
    uint32_t *order; /* places of nodes; NULL: as in the file */
    uint32_t *slots; /* values by graph and name: index + 1, 0 where empty */
    size_t n_slots;
    bool *has_info; /* by value: an entry of the file's */
    bool *at_peak;  /* by buffer */
} onv_splice;

/* Counts bytes of the file, or writes them; a tag with the length of what follows; a message that was made, which is emptied. */
void onv_splice_span(onv_splice *s, onv_span r);
void onv_splice_tag(onv_splice *s, uint32_t field, uint64_t length);
void onv_splice_made(onv_splice *s, uint32_t field, onv_made *t);

const char *onv_splice_number(onv_splice *s, uint64_t number);

/* The part of a message that is in field `number`; false where there is none. */
bool onv_splice_part(onv_span message, uint32_t number, onv_span *part);

/* Whether a StringStringEntryProto has a key that is written here. */
bool onv_splice_is_ours(onv_span pair);

/* False without memory. */
bool onv_splice_list_values(onv_splice *s);

/* The value of a graph by its name in the file; NULL: none. */
const onv_value *onv_splice_find(onv_splice *s, onv_graph_id graph, onv_span name, uint32_t *index);

/* The value that an entry is about; UINT32_MAX: none. */
uint32_t onv_splice_value_of(onv_splice *s, onv_graph_id graph, onv_span info);

/* An entry of the file with what is added; an entry that is new. */
void onv_splice_info(onv_splice *s, onv_graph_id graph, const onv_wire_field *field);
void onv_splice_new_info(onv_splice *s, onv_span name, uint32_t value);

#endif
