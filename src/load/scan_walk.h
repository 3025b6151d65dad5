/* The scan at work: what its parts share. scan.c walks from field to field and writes what is
 * kept of each; scan_records.c opens and closes messages and makes the records of them. */
#ifndef ONV_LOAD_SCAN_WALK_H
#define ONV_LOAD_SCAN_WALK_H

#include "load/scan.h"
#include "load/wire.h"

/* A message that is being walked. */
typedef struct onv_frame {
    uint64_t begin, end; /* in the source, as all places here */
    onv_bytes *out;      /* where what is kept of it goes; NULL for what becomes a record */
    size_t start; /* of it in there; behind a length, unless it is the first message of its kind */
    bool has_length;
    uint8_t message;
    uint32_t seen;   /* ONV_USE_ONE fields that occurred, by number */
    uint32_t record; /* its index among those of its kind */
    size_t first;    /* of a tensor: its chunks; of an attribute: its graphs among those put off */
    size_t graph;    /* of an attribute: the next of them */
    size_t n_inputs, n_outputs, n_attrs; /* of a node or function: what was gathered before it */
    size_t n_chunks;                     /* of an attribute: found before it */
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
    uint64_t tag; /* where it starts */
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
onv_status onv_walk_put_field(onv_walk *w, onv_bytes *out, uint32_t number, const void *data,
                              size_t bytes);

/* --- scan_records.c ---------------------------------------------------------------------------- */

/* A name of a record. */
onv_status onv_walk_name(onv_walk *w, const onv_item *it, const char *name);
onv_status onv_walk_add_note(onv_walk *w, onv_note note, uint64_t offset, const unsigned char *text,
                             uint64_t bytes);

/* Steps into the submessage at w->at, or puts it off. */
onv_status onv_walk_enter(onv_walk *w, const onv_item *it, uint64_t bytes);
/* The end of the message on top. */
onv_status onv_walk_leave(onv_walk *w);

#endif
