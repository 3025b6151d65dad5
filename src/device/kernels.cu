/* Patterns on the device: the same bytes as pattern.c makes, which see. Whole words where the
 * addresses allow it, else single bytes.
 *
 * Tests run this text on the processor, thread by thread, with a KERNEL and what CUDA names of their
 * own (tests/fake_cuda/kernels_on_cpu.h). */

#ifndef KERNEL
#define KERNEL extern "C" __global__
#endif

#define STEP 0x9e3779b97f4a7c15ull

typedef unsigned long long u64;

static __device__ unsigned char byte_of(u64 seed, u64 position)
{
    return (unsigned char)((seed + position / 8 * STEP) >> (position % 8 * 8));
}

KERNEL void onv_fill(unsigned char *to, u64 seed, u64 first, u64 bytes)
{
    u64 me = blockIdx.x * (u64)blockDim.x + threadIdx.x, all = gridDim.x * (u64)blockDim.x;
    u64 from = me;
    if ((u64)to % 8 == 0 && first % 8 == 0) {
        u64 words = bytes / 8, word = first / 8;
        for (u64 i = me; i < words; i += all) ((u64 *)to)[i] = seed + (word + i) * STEP;
        from = words * 8 + me; /* what is behind the last whole word */
    }
    for (u64 i = from; i < bytes; i += all) to[i] = byte_of(seed, first + i);
}

/* *wrong holds `bytes` before, and after it the first position that is not as it should be. */
KERNEL void onv_check(const unsigned char *at, u64 seed, u64 first, u64 bytes, u64 *wrong)
{
    u64 me = blockIdx.x * (u64)blockDim.x + threadIdx.x, all = gridDim.x * (u64)blockDim.x;
    u64 from = me;
    if ((u64)at % 8 == 0 && first % 8 == 0) {
        u64 words = bytes / 8, word = first / 8;
        for (u64 i = me; i < words; i += all) {
            u64 differs = ((const u64 *)at)[i] ^ (seed + (word + i) * STEP);
            if (differs != 0) {
                atomicMin(wrong, i * 8 + (__ffsll((long long)differs) - 1) / 8);
                break;
            }
        }
        from = words * 8 + me;
    }
    for (u64 i = from; i < bytes; i += all) {
        if (at[i] != byte_of(seed, first + i)) {
            atomicMin(wrong, i);
            break;
        }
    }
}
