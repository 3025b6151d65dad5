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
    bool is_uncertain;  /* it may be less or more: between these */
    uint64_t least_bytes, most_bytes;
} onv_ort_scratch_row;

/* In the order of the requests. */
typedef struct onv_ort_scratch {
    onv_ort_scratch_row rows[ONV_ORT_MOST_SCRATCH];
    uint32_t count;
} onv_ort_scratch;

/* Of the session's provider, the CPU's for one thread. Nothing for what runs on the other side. Requires sizes. */
void onv_ort_find_scratch(const onv_model *model, const onv_node *node, const bool *is_host,
                          const onv_ort_session *session, onv_ort_scratch *scratch);

/* --- For its rules ----------------------------------------------------------------------------- */

typedef struct onv_ort_kernel {
    const onv_model *model;
    const onv_node *node;
    const onv_ort_session *session;
    onv_ort_scratch *scratch;
} onv_ort_kernel;

/* A request of so many numbers, none of 0; NULL: what does not fit 64 bits fits no memory, as its tensors say, too. */
onv_ort_scratch_row *onv_ort_add(onv_ort_kernel *k, uint64_t n, uint64_t each);

/* The same, asked for before the outputs are made. */
onv_ort_scratch_row *onv_ort_add_early(onv_ort_kernel *k, uint64_t n, uint64_t each);

/* Of an input the kernel must have. */
const onv_type *onv_ort_input(const onv_ort_kernel *k, uint32_t i);

/* Along the first axes, but for `n` at the end; 0: not known. */
uint64_t onv_ort_elements(const onv_type *type, int n);
/* The same of an input; 0 where there is none. */
uint64_t onv_ort_input_elements(const onv_ort_kernel *k, uint32_t i, int n);

/* Bytes that the kernel of the CPU provider keeps in the arena in place of a weight, its input `*input`; 0: none. */
uint64_t onv_ort_cpu_kept(const onv_model *model, const onv_node *node, uint32_t *input);

/* Kernels of the CPU provider (cpu_scratch.c). */
void onv_ort_cpu_conv(onv_ort_kernel *k);
void onv_ort_cpu_transposed(onv_ort_kernel *k);
void onv_ort_cpu_integer_conv(onv_ort_kernel *k);
void onv_ort_cpu_integer_pool(onv_ort_kernel *k);
void onv_ort_cpu_integer_sums(onv_ort_kernel *k);
void onv_ort_cpu_gelu(onv_ort_kernel *k);
void onv_ort_cpu_where(onv_ort_kernel *k);
void onv_ort_cpu_recurrent(onv_ort_kernel *k);

/* Of an Einsum of one operand or two, without diagonals (einsum.c). */
void onv_ort_einsum(onv_ort_kernel *k);

/* What is sorted (sorting.c). */
void onv_ort_top_k(onv_ort_kernel *k);
void onv_ort_suppression(onv_ort_kernel *k);

/* Of com.microsoft (attention.c). */
void onv_ort_grouped_attention(onv_ort_kernel *k);
void onv_ort_attention(onv_ort_kernel *k);

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

/* What a convolution computes whose weights are that input, or a pool that has none (UINT32_MAX), with channels last or behind
 * the batch; false where that is not known. */
bool onv_ort_describe_conv(const onv_ort_kernel *k, uint32_t weights, bool is_last,
                           onv_conv_problem *p);

enum { ONV_ORT_MOST_KEPT = 2 };

/* What the kernel takes when the session is created, and keeps. How many requests that is. */
uint32_t onv_ort_find_kept(const onv_model *model, const onv_node *node,
                           const onv_ort_session *session, uint64_t rows[ONV_ORT_MOST_KEPT]);

#endif
