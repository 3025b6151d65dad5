/* What kernels take from the arena for themselves while they run. */
#ifndef ONV_ORT_SCRATCH_H
#define ONV_ORT_SCRATCH_H

#include "ort/ort.h"

enum { ONV_ORT_MOST_SCRATCH = 8 }; /* requests of one kernel */

typedef struct onv_ort_scratch_row {
    uint64_t bytes;
    bool is_early;      /* asked for before the outputs are made */
    bool is_transient;  /* given back before the next request */
    bool has_no_stream; /* asked for without one: what a stream freed in this run is not for it */
} onv_ort_scratch_row;

/* In the order of the requests. */
typedef struct onv_ort_scratch {
    onv_ort_scratch_row rows[ONV_ORT_MOST_SCRATCH];
    uint32_t count;
    bool is_uncertain; /* another workspace may be chosen for the one row: between these */
    uint64_t least_bytes, most_bytes;
} onv_ort_scratch;

/* Nothing for what runs on the host. Requires sizes. */
void onv_ort_find_scratch(const onv_model *model, const onv_node *node, const bool *is_host,
                          const onv_ort_session *session, onv_ort_scratch *scratch);

/* The same of the CPU provider's, for one thread. */
void onv_ort_find_cpu_scratch(const onv_model *model, const onv_node *node,
                              const onv_ort_settings *settings, onv_ort_scratch *scratch);

/* A reduction as a matrix of what stays and what goes, as far as it is one. */
typedef struct onv_ort_reduction {
    uint64_t rows, columns, elems; /* elements of the result, of each sum, of the input */
    bool is_matrix;                /* the axes that go are the first or the last ones, or all */
    bool is_first;
} onv_ort_reduction;

/* False: more elements than 64 bits hold. Requires sizes. */
bool onv_ort_find_reduction(const onv_dim *dims, int rank, const bool *goes, onv_ort_reduction *r);

/* The workspace of a sum in numbers of so many bytes. */
uint64_t onv_ort_sum_bytes(const onv_ort_reduction *r, uint64_t number);

/* Of an Einsum of one operand or two, without diagonals. */
void onv_ort_find_einsum(const onv_model *model, const onv_node *node, onv_ort_scratch *scratch);

/* What a convolution computes; false where that is not known. */
bool onv_ort_describe_conv(const onv_model *model, const onv_node *node, onv_conv_problem *p);

enum { ONV_ORT_MOST_KEPT = 2 };

/* What the kernel takes when the session is created, and keeps. How many requests that is. */
uint32_t onv_ort_find_kept(const onv_model *model, const onv_node *node,
                           const onv_ort_session *session, uint64_t rows[ONV_ORT_MOST_KEPT]);

#endif
