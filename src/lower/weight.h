/* Parameters and buffers of the network, of which the file has tensors, constants that were made of them, or nothing: what
 * every read of an initializer stands for. */
#ifndef ONV_LOWER_WEIGHT_H
#define ONV_LOWER_WEIGHT_H

#include "base/ptr_map.h"
#include "emit/emit.h"
#include "emit/patterns.h"
#include "ir/model.h"

typedef struct onv_lowering onv_lowering;

typedef enum onv_weight_place {
    ONV_PLACE_UNKNOWN,
    ONV_PLACE_WEIGHT, /* where the operation takes what its module trains */
    ONV_PLACE_MADE,   /* where the operation takes what it made itself: masks, zeros */
} onv_weight_place;

/* A place where a node of the main graph reads an initializer; see weight.c. */
typedef struct onv_weight_read {
    uint32_t value, node, k;
    onv_weight_place place;
    const char *scope;     /* the module that reads, "" */
    const char *slot;      /* what the module calls it: "weight" */
    const char *parameter; /* its name in the network, where the export tells */
    uint32_t tensor;       /* of the owner, at its first read; ONV_NO_TENSOR: none yet */
} onv_weight_read;

typedef enum onv_weight_use {
    ONV_WEIGHT_TRAINED,
    ONV_WEIGHT_BUFFER,
    ONV_WEIGHT_CONSTANT,
    ONV_WEIGHT_MADE,              /* by the forward pass, each time */
    ONV_WEIGHT_EXPANDED,          /* a view of a parameter, repeated along the batch */
    ONV_WEIGHT_LOOKED_UP,         /* rows of a trained table */
    ONV_WEIGHT_LOOKED_UP_FOR_ALL, /* the same, a view of them for each sample */
    ONV_WEIGHT_BIASES,  /* rows of a trained table of biases between positions, by their distance */
    ONV_WEIGHT_DERIVED, /* computed from a parameter of the same size */
} onv_weight_use;

/* Of each value, where it is an initializer. */
typedef struct onv_weight_state {
    uint32_t first_read; /* 1 + the first of `reads`; 0: none */
    uint8_t sharing;     /* whether it has several owners, where known */
    bool is_statistic;   /* running statistics */
} onv_weight_state;

/* What is known of all initializers. */
typedef struct onv_weights {
    onv_weight_state *values;       /* by value */
    bool has_notes;                 /* the export notes parameters, modules and operations */
    ONV_VEC(onv_weight_read) reads; /* sorted by value and owner */
    onv_ptr_map layers;             /* by name of what a layer trains, interned: its tensor */
    bool *inplace_used;             /* by pattern of `inplace` */
} onv_weights;

/* --- weight.c ---------------------------------------------------------------------------- */

/* Takes the graph and its notes. Gives all reads, their names and owners; what they stand for is asked later, read by read. */
onv_status onv_weights_prepare(onv_lowering *l);
/* What an initializer without a note of its own is taken for. */
typedef struct onv_weight_verdict {
    onv_weight_use use;
    bool is_sure;
    const onv_weight_read *read; /* what told, or the first one */
} onv_weight_verdict;

onv_weight_verdict onv_weight_judge(onv_lowering *l, uint32_t index);
bool onv_has_made_up_name(const char *name);
bool onv_weight_is_unit(const onv_lowering *l, onv_value_id id);
onv_weight_use onv_weight_use_of(onv_lowering *l, onv_value_id id);
/* One copy in the file of what is several parameters. */
bool onv_weight_is_shared(onv_lowering *l, onv_value_id id);
/* The owner that operand k of the node stands for, k UINT32_MAX: any of its module; NULL where no node
 * reads the value. */
onv_weight_read *onv_weight_owner(onv_lowering *l, onv_value_id id, const onv_node *node,
                                  uint32_t k);
onv_weight_read *onv_weight_next_owner(const onv_lowering *l, const onv_weight_read *read);
const char *onv_weight_layer(onv_emitter *e, onv_value_id id, const onv_weight_read *read);
const char *onv_weight_name(onv_lowering *l, onv_value_id id, const onv_weight_read *read);
const char *onv_parameter_name(onv_emitter *e, const char *module, const char *name);
void onv_check_patterns(onv_lowering *l);
/* Does --inplace name the module of the node? `all`: by its form without a pattern too. */
bool onv_is_inplace(onv_lowering *l, const onv_node *node, bool all);

typedef enum onv_weight_role {
    ONV_WEIGHT_IS_OTHER,
    ONV_WEIGHT_IS_TAKEN,  /* its operation takes a weight there */
    ONV_WEIGHT_IS_ROWS,   /* of a table, that were looked up */
    ONV_WEIGHT_IS_SPREAD, /* one that was expanded: a class token */
    ONV_WEIGHT_IS_UNSURE, /* computed by the export, from a parameter or not */
    ONV_WEIGHT_IS_NUMBER, /* the same, of one element */
} onv_weight_role;

/* Of what has no name in the network. */
onv_weight_role onv_weight_role_of(const onv_lowering *l, const onv_weight_read *read);
bool onv_weight_same_owner(const onv_weight_read *a, const onv_weight_read *b);

/* --- weight_place.c: what an input of a node says of the weight that it reads, by PyTorch's operation --- */

onv_weight_place onv_weight_place_of(const onv_node *node, uint32_t k);
/* What a module calls the parameter that a node takes there. */
const char *onv_weight_slot_name(const onv_node *node, uint32_t k);
/* The name of a call that gives a view, or a part. */
bool onv_weight_is_view(const char *name);
/* Of a constant that is no float: the forward pass computes it of shapes. */
bool onv_weight_is_computed(const char *name);

/* --- weight_report.c ---------------------------------------------------------------------------- */

void onv_weights_report(onv_lowering *l); /* diagnostics of what stays unsure */

/* --- weight_contents.c -------------------------------------------------------------------------- */

enum { ONV_MOST_HEAD = 64 << 10 };
/* The first `bytes` bytes of a constant, until the next one's; *buffer is to be freed. NULL where they are not at hand. */
const unsigned char *onv_weight_head(onv_emitter *e, const onv_tensor *tensor, size_t bytes,
                                     unsigned char **buffer);
/* Are all elements the same? True where they cannot be read, or are more bytes in another file than that. */
bool onv_weight_may_be_uniform(onv_emitter *e, const onv_tensor *tensor, size_t most_elsewhere);

/* --- weight_shape.c ----------------------------------------------------------------------------- */

/* The shape of the parameter that the file's tensor `whole` was computed from; false where it cannot be told. */
bool onv_weight_shape(onv_lowering *l, onv_weight_use use, const onv_weight_read *read,
                      const onv_shape *whole, onv_shape *shape);
/* Rows of the table `named`, expanded to all samples: `embed_positions(positions).expand_as(x)`. */
bool onv_weight_is_for_all(const onv_value *value, const onv_weight_read *named);

/* --- folded_report.c ---------------------------------------------------------------------------- */

void onv_folded_report(onv_lowering *l);
/* `lacks`: parameters are listed that have neither a tensor in the file nor a size. */
void onv_folded_report_constants(onv_lowering *l, bool lacks);
/* Of a parameter and of something else: it may be smaller than the constant. */
bool onv_folded_is_of_several(const onv_lowering *l, const onv_value *value);

#endif
