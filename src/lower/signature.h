/* The names that the export lists: of all parameters and buffers of the network, those too that the file has no tensor of. */
#ifndef ONV_LOWER_SIGNATURE_H
#define ONV_LOWER_SIGNATURE_H

#include "lower/weight.h"

typedef struct onv_signature {
    const char **names; /* of all parameters, sorted */
    size_t count;
    bool *explained, *waits;  /* of them: the file has its tensor; a bias that was dropped */
    const onv_value **stored; /* of them, the file's tensor of that name; NULL: there is none */
    onv_ptr_map buffers;      /* by name */
    const char **lacking;     /* buffers that the file has no tensor of, but statistics of norms */
    size_t n_lacking;
    bool lacks_buffers; /* the file has no tensor of some: constants may be parts of them */
} onv_signature;

/* --- signature.c ------------------------------------------------------------------------------- */

/* The buffers that are listed, by name. Requires nothing. */
onv_status onv_buffers_list(onv_lowering *l);
/* Whether the name is one of them, and (NULL allowed) whether it is a registered buffer, not an attribute. */
bool onv_is_listed_buffer(const onv_lowering *l, const char *name, bool *registered);
/* Names of reads. Requires the reads. */
onv_status onv_signature_prepare(onv_lowering *l);
/* The place of the name among those that are listed; SIZE_MAX: it is not. */
size_t onv_listed_find(const onv_lowering *l, const char *name);
/* The bias of zeros that the exporter dropped beside the weight that the node reads, or none. */
uint32_t onv_dropped_bias(onv_lowering *l, const onv_node *node, int64_t size);
/* Adds those that the file lacks, where it is told how many elements all have. */
void onv_parameters_complete(onv_lowering *l);
/* Likewise, where it is told how many bytes all buffers have. */
void onv_buffers_complete(onv_lowering *l);
void onv_signature_report(onv_lowering *l);

#endif
