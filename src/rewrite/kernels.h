/* Which nodes the CUDA provider of ONNX Runtime has a kernel for, and which operands of it lie in the
 * host's memory. From the documentation of version 1.31's kernels (docs/OperatorKernels.md) and from their
 * source. */
#ifndef ONV_REWRITE_KERNELS_H
#define ONV_REWRITE_KERNELS_H

#include "rewrite/edit.h"

typedef struct onv_kernel {
    uint32_t types;   /* bit d: input 0 may be of dtype d; 0: no kernel */
    uint8_t since;    /* of the domain's opset; until that of the next one; 0: none */
    uint8_t host_out; /* bit k: output k is in the host's memory */
    uint16_t host_in; /* likewise, input k */
} onv_kernel;

/* Of the first of several words, behind which *words is then; that is NULL where there is none. */
onv_op_name onv_kernels_next(const char **words);

/* Before the first kernel is looked for. */
void onv_kernels_list(onv_edit *e);

/* The kernel that would run the node on CUDA; NULL if there is none. */
const onv_kernel *onv_kernel_find(const onv_edit *e, onv_node_id id);

static inline bool onv_kernel_takes_host(const onv_kernel *kernel, uint32_t input)
{
    return input < 32 && (kernel->host_in >> input & 1) != 0;
}

static inline bool onv_kernel_gives_host(const onv_kernel *kernel, uint32_t output)
{
    return output < 32 && (kernel->host_out >> output & 1) != 0;
}

#endif
