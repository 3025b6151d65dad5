/* The scan: one walk over the wire format of a file, of which only what is kept is read.
 *
 * What stands in great numbers becomes records at once: graphs, nodes, values, functions and tensors, with their
 * names interned; the payloads of tensors, whose pages are not touched, are stretches of the source. What is small and
 * structured goes to a skeleton: the same messages without what the analysis never looks at (documentation, metadata).
 * protobuf-c unpacks the skeleton, one attribute or type at a time.
 *
 *     source    ... NodeProto{input, output, op_type, attribute = AttributeProto{name, ints, t = ...}} ...
 *     records   node{names, "Conv", attribute} ── attribute{"pads", span of the skeleton, tensors}
 *     skeleton  ... AttributeProto{ints} ...
 *
 *     source    ... TensorProto{dims, data_type, raw_data = 400 MB} ...
 *     records   tensor{name, dims, data type, chunks}
 *     chunks    [field 9, offset in the source, 400 MB]
 *
 * Before it allocates, the scan has bounded the nesting, the number of nodes and values and the length
 * of names, and has made sure of what protobuf-c takes on trust: that strings are UTF-8 without NUL
 * bytes, that repeated numbers end where their field ends, and that no submessage stands twice where
 * one belongs. What protobuf-c unpacks holds no graphs, so it recurses as deep as types do.
 *
 * What classical models have learnt stands in attributes: trees of millions of nodes, text for each of
 * them. No rule reads so long a list, so that it is counted and only its first elements are kept; what is built of it
 * is its length.
 *
 * Attributes and types recur from node to node and from value to value. A message whose bytes were walked
 * lately is not walked again: its owner gets the number or the span of what was kept then.
 *
 * Lengths are 64 bits, so files beyond protobuf's own 2 GiB work as long as their skeleton stays below it.
 * Cost: linear in what is kept, plus one step per field skipped.
 */
#ifndef ONV_LOAD_SCAN_H
#define ONV_LOAD_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/strings.h"
#include "base/vec.h"
#include "load/source.h"
#include "load/wire.h"
#include "onnxvram/options.h"

/* The payload fields, by their numbers in TensorProto. */
typedef enum onv_payload_field {
    ONV_FIELD_FLOAT_DATA = 4,
    ONV_FIELD_INT32_DATA = 5,
    ONV_FIELD_INT64_DATA = 7,
    ONV_FIELD_RAW_DATA = 9,
    ONV_FIELD_DOUBLE_DATA = 10,
    ONV_FIELD_UINT64_DATA = 11,
} onv_payload_field;

/* A stretch of payload in the source. `tagged`: elements one by one, each behind its tag (writers
 * that do not pack); otherwise the elements alone. */
typedef struct onv_chunk {
    uint64_t offset, bytes;
    uint8_t field;
    bool tagged;
} onv_chunk;

/* --- Records ----------------------------------------------------------------------------------- */

/* Where a record stands among those of its kind: from 1 on; 0 is none. */
typedef uint32_t onv_record;
#define ONV_RECORDS_MOST UINT32_MAX

#define ONV_RECORD(records, number) ((number) != 0 ? &(records).at[(number)-1] : NULL)

/* Records of one owner, in the order of the file; each knows the next one, since those of inner graphs
 * stand between. */
typedef struct onv_record_list {
    onv_record first, last;
    uint32_t count;
} onv_record_list;

#define ONV_EACH_RECORD(record, records, list)                                                     \
    for (const __typeof__(*(records).at) *record = ONV_RECORD(records, (list).first);              \
         record != NULL; record = ONV_RECORD(records, record->next))

/* A message of the skeleton. */
typedef struct onv_span {
    uint32_t at, bytes;
} onv_span;

/* A stretch of a vector. */
typedef struct onv_range {
    uint32_t first, count;
} onv_range;

/* Owners share an attribute without payloads and graphs. Its names are interned; "" where the file has none. */
typedef struct onv_scan_attr {
    const char *name;
    const char *reference; /* to an attribute of the function around */
    onv_span value;        /* AttributeProto without names, graphs and tensors */
    uint32_t lists[3]; /* elements of floats, ints and strings in the file: the value has fewer */
    onv_record_list graph;   /* of the field g: at most one */
    onv_record_list graphs;  /* of the field graphs */
    onv_record_list tensors; /* of all fields that have some */
} onv_scan_attr;

/* A note that PyTorch's exporter left, one of its kind of each owner; its text lies in the source. */
typedef struct onv_scan_note {
    uint64_t offset;
    uint32_t bytes;
    uint8_t note; /* onv_note */
    onv_record next;
} onv_scan_note;

/* The number of a name among interned strings; 0: "", as where the file has none. */
typedef uint32_t onv_name;

typedef struct onv_scan_node {
    const char *name; /* not interned */
    onv_name op_type, domain, overload;
    uint32_t names; /* of its inputs, behind them of its outputs, in onv_scan.names */
    uint32_t n_inputs, n_outputs;
    onv_range attrs;  /* in onv_scan.attr_lists */
    onv_record notes; /* the first */
    onv_record next;
} onv_scan_node;

typedef struct onv_scan_value {
    onv_name name;
    uint32_t folded_bytes; /* the note of what it was computed of, in the source; 0: none */
    onv_span type;         /* TypeProto; empty where none is given */
    uint8_t role;          /* onv_value_role that a note gives it */
    onv_record next;
    uint64_t folded_offset;
} onv_scan_value;

/* A StringStringEntryProto; not interned. */
typedef struct onv_scan_pair {
    const char *key, *value;
    onv_record next;
} onv_scan_pair;

/* A TensorProto; or a SparseTensorProto, which has dims and parts alone. */
typedef struct onv_scan_tensor {
    onv_name name;
    uint32_t first_dim, rank; /* in onv_scan.dims, which has no more of it than a tensor may have */
    onv_range chunks;
    onv_record_list parts; /* pairs: where its data is; of a sparse one its values and indices */
    onv_record next;
    int32_t dtype;
    bool is_external;
    uint8_t field; /* of the message around: which tensor of it this is */
} onv_scan_tensor;

/* An OperatorSetIdProto. */
typedef struct onv_scan_part {
    onv_span span;
    onv_record next;
} onv_scan_part;

typedef struct onv_scan_graph {
    onv_record_list nodes;
    onv_record_list initializers, sparse_initializers; /* tensors */
    onv_record_list inputs, outputs, declared;         /* values */
    onv_record notes;                                  /* the first */
    onv_record next;
} onv_scan_graph;

typedef struct onv_scan_function {
    onv_scan_node head; /* as a node that calls it, which has no name */
    onv_record_list nodes;
    onv_record_list opsets;   /* parts */
    onv_record_list declared; /* values */
} onv_scan_function;

typedef ONV_VEC(unsigned char) onv_bytes;
typedef ONV_VEC(onv_name) onv_names;
typedef ONV_VEC(onv_record) onv_records;

typedef struct onv_scan {
    onv_source *source; /* that chunks and notes lie in */
    onv_bytes header;   /* ModelProto without graph and functions */
    onv_bytes skeleton;
    ONV_VEC(onv_chunk) chunks;
    onv_names names;
    ONV_VEC(onv_scan_graph) graphs;
    ONV_VEC(onv_scan_node) nodes;
    ONV_VEC(onv_scan_attr) attrs;
    onv_records attr_lists; /* of nodes and functions */
    ONV_VEC(onv_scan_note) notes;
    ONV_VEC(onv_scan_value) values;
    ONV_VEC(onv_scan_tensor) tensors;
    ONV_VEC(onv_scan_pair) pairs;
    ONV_VEC(int64_t) dims;
    ONV_VEC(onv_scan_part) parts;
    ONV_VEC(onv_scan_function) functions;
    onv_record main_graph; /* 0: the file has none */
    uint64_t n_values;     /* inputs, initializers and node outputs */
} onv_scan;

static inline const onv_scan_attr *onv_scan_attr_of(const onv_scan *scan, onv_range attrs,
                                                    uint32_t k)
{
    return ONV_RECORD(scan->attrs, scan->attr_lists.at[attrs.first + k]);
}

typedef enum onv_scan_root {
    ONV_SCAN_MODEL,
    ONV_SCAN_TENSOR, /* which becomes the only record */
} onv_scan_root;

/* `limits` as resolved; names go to `strings`, of which "" is the first. On failure (ONV_ERR_FORMAT, _LIMIT, _MEMORY) the scan holds
 * nothing. */
onv_status onv_scan_run(onv_scan *scan, onv_scan_root root, onv_source *source,
                        const onv_limits *limits, onv_strings *strings, onv_error *err);

void onv_scan_cleanup(onv_scan *scan);

/* What the scan does with each field of each message that can hold something it keeps. */

typedef enum onv_message {
    ONV_MSG_MODEL,
    ONV_MSG_OPSET,
    ONV_MSG_PAIR, /* StringStringEntryProto */
    ONV_MSG_GRAPH,
    ONV_MSG_NODE,
    ONV_MSG_ATTRIBUTE,
    ONV_MSG_VALUE_INFO,
    ONV_MSG_FUNCTION,
    ONV_MSG_TENSOR,
    ONV_MSG_SPARSE_TENSOR,
    ONV_MSG_SHAPE,
    ONV_MSG_DIMENSION,
    ONV_MSG_TYPE,
    ONV_MSG_TYPE_TENSOR,   /* and TypeProto.SparseTensor, which has the same fields */
    ONV_MSG_TYPE_SEQUENCE, /* and TypeProto.Optional */
    ONV_MSG_TYPE_MAP,
    ONV_MSG_TYPE_OPAQUE,
    ONV_MSG_COUNT
} onv_message;

typedef enum onv_field_use {
    ONV_USE_DROP = 0,  /* unknown, or of no use here */
    ONV_USE_VARINT,    /* one number */
    ONV_USE_VARINTS,   /* repeated numbers, packed or one by one */
    ONV_USE_FLOAT,     /* one fixed32 */
    ONV_USE_FLOATS,    /* repeated fixed32, packed or one by one */
    ONV_USE_STRING,    /* a name: UTF-8 of limited length */
    ONV_USE_NAME,      /* the same, for a record of the scan */
    ONV_USE_BYTES,     /* any bytes; cut at the length of the longest name */
    ONV_USE_ONE,       /* a submessage, at most once */
    ONV_USE_MANY,      /* repeated submessages */
    ONV_USE_ONE_OF,    /* a submessage of a oneof: the last one counts */
    ONV_USE_NOTES,     /* repeated key and value: kept under a key that is read, or dropped */
    ONV_USE_RAW,       /* payload, as all that follow: one bytes field */
    ONV_USE_PAYLOAD32, /* payload: repeated fixed32 */
    ONV_USE_PAYLOAD64, /* payload: repeated fixed64 */
    ONV_USE_PAYLOAD,   /* payload: repeated varints */
} onv_field_use;

typedef struct onv_field {
    uint8_t use;     /* onv_field_use */
    uint8_t message; /* onv_message, of submessages */
} onv_field;

const char *onv_message_name(onv_message message);

/* The keys of ONV_USE_NOTES, which PyTorch's exporter writes. */
typedef enum onv_note {
    ONV_NOTED_SCOPES,    /* of a node: the modules around it */
    ONV_NOTED_CLASSES,   /* their classes */
    ONV_NOTED_TRACE,     /* the lines of Python that called it */
    ONV_NOTED_CALL,      /* the call with its arguments */
    ONV_NOTED_RULES,     /* the rules that made it */
    ONV_NOTED_ROLE,      /* of a value: whether an initializer was a parameter or a buffer */
    ONV_NOTED_FOLDED,    /* of a value: of which others the exporter computed it */
    ONV_NOTED_SIGNATURE, /* of a graph: the names of all parameters */
    ONV_NOTED_COUNT
} onv_note;

const char *onv_note_key(onv_note note);
onv_message onv_note_owner(onv_note note); /* the message that it is read of */

/* In a call, before its arguments. Calls without arguments are dropped. */
#define ONV_NOTE_ARGS "](args = ("

/* In the rules that made a node: a Pad became a part of a convolution. Other rules are dropped. */
#define ONV_NOTE_PAD "FuseConvPad"

enum { ONV_FIELD_MOST = 25 };

extern const onv_field onv_fields[ONV_MSG_COUNT][ONV_FIELD_MOST + 1];

/* Never NULL: unknown numbers are dropped fields. */
static inline const onv_field *onv_message_field(onv_message message, uint32_t number)
{
    return &onv_fields[message][number <= ONV_FIELD_MOST ? number : 0];
}

/* The scan at work: what its parts share. scan.c walks from field to field and writes what is
 * kept of each; scan_records.c opens and closes messages and makes the records of them. */

/* A message that is being walked. */
typedef struct onv_frame {
    uint64_t begin, end; /* in the source, as all places here */
    onv_bytes *out;      /* where what is kept of it goes; NULL for what becomes a record */
    size_t start; /* of it in there; behind a length, unless it is the first message of its kind */
    bool has_length;
    uint8_t message;
    uint32_t seen;                       /* ONV_USE_ONE fields that occurred, by number */
    uint32_t record;                     /* its index among those of its kind */
    size_t first;                        /* of an attribute: its graphs among those put off */
    size_t graph;                        /* of an attribute: the next of them */
    size_t n_inputs, n_outputs, n_attrs; /* of a node or function: what was gathered before it */
    size_t n_chunks;                     /* of a tensor or an attribute: found before it */
} onv_frame;

/* A graph of an attribute is walked when the attribute's other fields are done. */
typedef struct onv_put_off {
    uint64_t offset, bytes;
    uint32_t number; /* of its field */
} onv_put_off;

/* A message that was walked lately, and what was kept of it. */
enum { ONV_WALKED_LATELY = 256, ONV_WALKED_BYTES = 160 };

typedef struct onv_walked {
    unsigned char bytes[ONV_WALKED_BYTES];
    uint8_t message; /* ONV_MSG_ATTRIBUTE: `attr`; ONV_MSG_TYPE: `type` */
    union {
        onv_record attr;
        onv_span type;
    };
} onv_walked;

typedef struct onv_walk {
    onv_scan *scan;
    const onv_limits *limits;
    onv_strings *strings;
    onv_source *source;
    uint64_t at;
    uint64_t n_fields; /* so far */
    onv_frame *stack;
    uint32_t depth;
    onv_names inputs, outputs; /* of the nodes and functions around, inner ones last */
    onv_records attrs;
    onv_walked *walked;                      /* by a mix of the bytes */
    uint8_t n_walked[ONV_WALKED_LATELY];     /* of its bytes; 0: none is there */
    onv_range attr_lists[ONV_WALKED_LATELY]; /* of nodes, by a mix of their numbers */
    ONV_VEC(onv_put_off) put_off;
    onv_error *err;
} onv_walk;

/* One field as its tag announces it. */
typedef struct onv_item {
    const onv_field *field;
    uint64_t tag;   /* where it starts */
    uint64_t value; /* behind its tag: its length, or itself */
    uint32_t number;
    onv_wire_type type;
} onv_item;

static inline onv_frame *onv_walk_top(onv_walk *w)
{
    return &w->stack[w->depth - 1];
}

/* --- scan.c ------------------------------------------------------------------------------------ */

/* "damaged at byte 17: NodeProto.input is not UTF-8 text". */
onv_status onv_walk_damaged(onv_walk *w, const onv_item *it, const char *what);
const char *onv_walk_field_name(const onv_item *it);

onv_status onv_walk_put(onv_walk *w, onv_bytes *out, const void *data, size_t bytes);

/* --- scan_records.c ---------------------------------------------------------------------------- */

/* A name of a record; a number of a tensor's. */
onv_status onv_walk_name(onv_walk *w, const onv_item *it, const char *name);
onv_status onv_walk_number(onv_walk *w, const onv_item *it, uint64_t number);
onv_status onv_walk_add_note(onv_walk *w, onv_note note, uint64_t offset, const unsigned char *text,
                             uint64_t bytes);

/* Steps into the submessage at w->at, or puts it off. */
onv_status onv_walk_enter(onv_walk *w, const onv_item *it, uint64_t bytes);
/* The end of the message on top. */
onv_status onv_walk_leave(onv_walk *w);

#endif
