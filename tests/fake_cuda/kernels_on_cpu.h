/* The kernels of src/device/kernels.cu on the processor, one thread after the other. What CUDA names is
 * named here; the text is the same. */
#ifndef ONV_TESTS_KERNELS_ON_CPU_H
#define ONV_TESTS_KERNELS_ON_CPU_H

#include <string.h>

typedef struct cpu_dim {
    unsigned x;
} cpu_dim;

static cpu_dim blockIdx, threadIdx, blockDim, gridDim;

static void atomicMin(unsigned long long *at, unsigned long long value)
{
    if (value < *at) *at = value;
}

#define KERNEL     static
#define __device__ __attribute__((unused))
#define __ffsll    __builtin_ffsll
#include "device/kernels.cu"
#undef __ffsll
#undef __device__
#undef KERNEL

/* `parameters` as cuLaunchKernel takes them: pointers to the arguments. */
static void run_on_cpu(const char *kernel, unsigned blocks, unsigned threads, void **parameters)
{
    void *address, *wrong;
    u64 seed, first, bytes;
    memcpy(&address, parameters[0], sizeof address);
    memcpy(&seed, parameters[1], sizeof seed);
    memcpy(&first, parameters[2], sizeof first);
    memcpy(&bytes, parameters[3], sizeof bytes);
    gridDim.x = blocks;
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
        for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++) {
            if (strcmp(kernel, "onv_fill") == 0) {
                onv_fill(address, seed, first, bytes);
            } else {
                memcpy(&wrong, parameters[4], sizeof wrong);
                onv_check(address, seed, first, bytes, wrong);
            }
        }
    }
}

#endif
