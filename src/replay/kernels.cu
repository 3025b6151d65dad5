/* Patterns on the device: the same bytes as pattern.c makes, which see. Whole words where the
 * addresses allow it, else single bytes. */

#define STEP 0x9e3779b97f4a7c15ull

typedef unsigned long long u64;

static __device__ unsigned char byte_of(u64 seed, u64 position)
{
    return (unsigned char)((seed + position / 8 * STEP) >> (position % 8 * 8));
}

extern "C" __global__ void onv_fill(unsigned char *to, u64 seed, u64 first, u64 bytes)
{
    u64 me = blockIdx.x * (u64)blockDim.x + threadIdx.x, all = gridDim.x * (u64)blockDim.x;
    if ((u64)to % 8 == 0 && first % 8 == 0) {
        u64 words = bytes / 8, word = first / 8;
        for (u64 i = me; i < words; i += all) ((u64 *)to)[i] = seed + (word + i) * STEP;
        if (me < bytes % 8) to[words * 8 + me] = byte_of(seed, first + words * 8 + me);
        return;
    }
    for (u64 i = me; i < bytes; i += all) to[i] = byte_of(seed, first + i);
}

/* *wrong holds `bytes` before, and after it the first position that is not as it should be. */
extern "C" __global__ void onv_check(const unsigned char *at, u64 seed, u64 first, u64 bytes,
                                     u64 *wrong)
{
    u64 me = blockIdx.x * (u64)blockDim.x + threadIdx.x, all = gridDim.x * (u64)blockDim.x;
    u64 from = me, to = bytes, step = all;
    if ((u64)at % 8 == 0 && first % 8 == 0) {
        u64 words = bytes / 8, word = first / 8;
        for (u64 i = me; i < words; i += all) {
            u64 differs = ((const u64 *)at)[i] ^ (seed + (word + i) * STEP);
            if (differs != 0) {
                atomicMin(wrong, i * 8 + (__ffsll((long long)differs) - 1) / 8);
                break;
            }
        }
        from = words * 8 + me; /* what is behind the last whole word */
    }
    for (u64 i = from; i < to; i += step) {
        if (at[i] != byte_of(seed, first + i)) {
            atomicMin(wrong, i);
            break;
        }
    }
}
