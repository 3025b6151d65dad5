/* A CUDA driver over host memory, for tests: a shared library that is loaded in place of the real one
 * (ONNXVRAM_CUDA_DRIVER). It gives itself away by the symbol onnxvram_fake_driver and by its
 * device's name. It has memory and copies, pools and NVML's figure; kernels are those of the
 * replay, run on the processor.
 *
 * It is strict: an address that it did not hand out, a copy beyond an allocation, a call without a
 * context fail. When it is unloaded with something not given back, it says so and aborts.
 *
 * The environment, read when the library is loaded:
 *   ONNXVRAM_FAKE_BYTES        memory of the device, context included (16 GiB)
 *   ONNXVRAM_FAKE_GRANULARITY  what plain allocations are rounded up to (1)
 *   ONNXVRAM_FAKE_DEVICES      how many devices there are (1)
 *   ONNXVRAM_FAKE_FAIL         the call of this number (from 1 on) fails
 *   ONNXVRAM_FAKE_ERROR        with this error (999, CUDA_ERROR_UNKNOWN)
 *   ONNXVRAM_FAKE_LOSE         the copy to the device of this number is reported done, but is not
 *   ONNXVRAM_FAKE_FOREIGN      from the third copy to the device on, somebody else holds so many bytes
 *   ONNXVRAM_FAKE_KEEP         the free of this number is reported done, the memory stays taken
 *   ONNXVRAM_FAKE_POOLS        0: the device has no pools
 *   ONNXVRAM_FAKE_KERNELS      0: it takes no kernels; 1: it runs them; 2: they do nothing (0)
 *   ONNXVRAM_FAKE_CALLS        a file that gets the number of calls when the library is unloaded
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda_driver.h"
#include "fake_cuda/kernels_on_cpu.h"

#define EXPORT                    __attribute__((visibility("default")))
#define DECLARE(name, parameters) EXPORT onv_cu_result name parameters;
ONV_CUDA_FUNCTIONS(DECLARE, DECLARE)
ONV_NVML_FUNCTIONS(DECLARE)

EXPORT extern const int onnxvram_fake_driver;
const int onnxvram_fake_driver = 1;

#define CONTEXT_BYTES (UINT64_C(300) << 20)
#define POOL_UNIT     UINT64_C(512)
#define POOL_STEP     (UINT64_C(32) << 20)

enum { INVALID_VALUE = 1, NO_CONTEXT = 201, NOT_SUPPORTED = 801, UNKNOWN = 999 };

typedef struct allocation {
    unsigned char *memory;
    uint64_t bytes;
    bool pooled;
} allocation;

static struct state {
    uint64_t capacity, granularity, devices, fail, error, lose, foreign, keep, pools, kernels;
    uint64_t calls, copies, frees;
    uint64_t plain_held, kept;
    uint64_t used, used_high, reserved, reserved_high;
    int contexts, streams, pools_open, modules, nvml;
    bool is_current;
    allocation *list;
    size_t count, room;
} s;

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL && text[0] != '\0' ? strtoull(text, NULL, 10) : otherwise;
}

__attribute__((constructor)) static void load(void)
{
    s.capacity = number("ONNXVRAM_FAKE_BYTES", UINT64_C(16) << 30);
    s.granularity = number("ONNXVRAM_FAKE_GRANULARITY", 1);
    s.devices = number("ONNXVRAM_FAKE_DEVICES", 1);
    s.fail = number("ONNXVRAM_FAKE_FAIL", 0);
    s.error = number("ONNXVRAM_FAKE_ERROR", UNKNOWN);
    s.lose = number("ONNXVRAM_FAKE_LOSE", 0);
    s.foreign = number("ONNXVRAM_FAKE_FOREIGN", 0);
    s.keep = number("ONNXVRAM_FAKE_KEEP", 0);
    s.pools = number("ONNXVRAM_FAKE_POOLS", 1);
    s.kernels = number("ONNXVRAM_FAKE_KERNELS", 0);
}

__attribute__((destructor)) static void unload(void)
{
    const char *file = getenv("ONNXVRAM_FAKE_CALLS");
    FILE *to = file != NULL ? fopen(file, "w") : NULL;
    if (to != NULL) {
        fprintf(to, "%llu\n", (unsigned long long)s.calls);
        fclose(to);
    }
    if (s.count > 0 || s.contexts != 0 || s.streams != 0 || s.pools_open != 0 || s.modules != 0 ||
        s.nvml != 0) {
        fprintf(stderr,
                "fake driver: not given back: %zu allocations, %d contexts, %d streams, %d pools, "
                "%d modules, NVML %d times\n",
                s.count, s.contexts, s.streams, s.pools_open, s.modules, s.nvml);
        abort();
    }
    free(s.list);
}

/* Every call counts, and one may fail. What releases does its work even then: a caller has no
 * second chance. */
#define CALL()                                                                                     \
    do {                                                                                           \
        if (++s.calls == s.fail) return (onv_cu_result)s.error;                                    \
    } while (0)
#define CALL_IN_CONTEXT()                                                                          \
    do {                                                                                           \
        CALL();                                                                                    \
        if (!s.is_current) return NO_CONTEXT;                                                      \
    } while (0)
#define RELEASED() (++s.calls == s.fail ? (onv_cu_result)s.error : ONV_CU_SUCCESS)

/* --- Device and context ------------------------------------------------------------------------ */

onv_cu_result cuInit(unsigned flags)
{
    CALL();
    (void)flags;
    return s.devices > 0 ? ONV_CU_SUCCESS : ONV_CU_NO_DEVICE;
}

onv_cu_result cuDriverGetVersion(int *version)
{
    CALL();
    *version = 12040;
    return ONV_CU_SUCCESS;
}

onv_cu_result cuGetErrorName(onv_cu_result result, const char **name)
{
    *name = NULL;
    if (result == UNKNOWN) *name = "CUDA_ERROR_UNKNOWN";
    if (result == ONV_CU_OUT_OF_MEMORY) *name = "CUDA_ERROR_OUT_OF_MEMORY";
    if (result == INVALID_VALUE) *name = "CUDA_ERROR_INVALID_VALUE";
    if (result == NO_CONTEXT) *name = "CUDA_ERROR_INVALID_CONTEXT";
    return *name != NULL ? ONV_CU_SUCCESS : INVALID_VALUE;
}

onv_cu_result cuDeviceGetCount(int *count)
{
    CALL();
    *count = (int)s.devices;
    return ONV_CU_SUCCESS;
}

onv_cu_result cuDeviceGet(onv_cu_device *device, int ordinal)
{
    CALL();
    *device = ordinal;
    return (uint64_t)ordinal < s.devices ? ONV_CU_SUCCESS : INVALID_VALUE;
}

onv_cu_result cuDeviceGetName(char *name, int length, onv_cu_device device)
{
    CALL();
    (void)device;
    snprintf(name, (size_t)length, "onnxvram fake driver");
    return ONV_CU_SUCCESS;
}

onv_cu_result cuDeviceGetAttribute(int *value, int attribute, onv_cu_device device)
{
    CALL();
    (void)device;
    *value = attribute == ONV_CU_POOLS_SUPPORTED ? s.pools != 0 : 0;
    return ONV_CU_SUCCESS;
}

onv_cu_result cuDeviceGetPCIBusId(char *id, int length, onv_cu_device device)
{
    CALL();
    (void)device;
    snprintf(id, (size_t)length, "0000:00:00.0");
    return ONV_CU_SUCCESS;
}

onv_cu_result cuDevicePrimaryCtxRetain(onv_cu_handle *context, onv_cu_device device)
{
    CALL();
    (void)device;
    s.contexts++;
    *context = &s;
    return ONV_CU_SUCCESS;
}

onv_cu_result cuDevicePrimaryCtxRelease_v2(onv_cu_device device)
{
    (void)device;
    s.contexts--;
    s.is_current = false;
    return RELEASED();
}

onv_cu_result cuCtxSetCurrent(onv_cu_handle context)
{
    CALL();
    s.is_current = context == &s;
    return s.is_current ? ONV_CU_SUCCESS : INVALID_VALUE;
}

onv_cu_result cuCtxSynchronize(void)
{
    CALL_IN_CONTEXT();
    return ONV_CU_SUCCESS;
}

/* --- Memory ------------------------------------------------------------------------------------ */

static uint64_t taken(void)
{
    uint64_t sum = s.plain_held + s.kept + s.reserved + (s.contexts > 0 ? CONTEXT_BYTES : 0);
    return s.copies >= 3 ? sum + s.foreign : sum;
}

static uint64_t left(void)
{
    return taken() < s.capacity ? s.capacity - taken() : 0;
}

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static bool add(uint64_t bytes, bool pooled, onv_cu_address *address)
{
    if (s.count == s.room) {
        s.room = s.room * 2 + 16;
        s.list = realloc(s.list, s.room * sizeof *s.list);
    }
    unsigned char *memory = s.list != NULL ? calloc(1, bytes) : NULL;
    if (memory == NULL) return false;
    s.list[s.count++] = (allocation){memory, bytes, pooled};
    *address = (onv_cu_address)(uintptr_t)memory;
    return true;
}

/* The bytes of an allocation that starts there, 0 if there is none; it is gone then. */
static uint64_t take_out(onv_cu_address address, bool pooled)
{
    for (size_t i = s.count; i-- > 0;) {
        if ((onv_cu_address)(uintptr_t)s.list[i].memory != address || s.list[i].pooled != pooled)
            continue;
        uint64_t bytes = s.list[i].bytes;
        free(s.list[i].memory);
        s.list[i] = s.list[--s.count];
        return bytes;
    }
    return 0;
}

static bool is_inside(onv_cu_address address, uint64_t bytes)
{
    for (size_t i = s.count; i-- > 0;) {
        onv_cu_address start = (onv_cu_address)(uintptr_t)s.list[i].memory;
        if (address >= start && address - start <= s.list[i].bytes)
            return bytes <= s.list[i].bytes - (address - start);
    }
    return false;
}

onv_cu_result cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    CALL_IN_CONTEXT();
    *free_bytes = left();
    *total_bytes = s.capacity;
    return ONV_CU_SUCCESS;
}

onv_cu_result cuMemAlloc_v2(onv_cu_address *address, size_t bytes)
{
    CALL_IN_CONTEXT();
    if (bytes == 0) return INVALID_VALUE;
    uint64_t rounded = round_up(bytes, s.granularity);
    if (rounded > left() || !add(bytes, false, address)) return ONV_CU_OUT_OF_MEMORY;
    s.plain_held += rounded;
    return ONV_CU_SUCCESS;
}

onv_cu_result cuMemFree_v2(onv_cu_address address)
{
    uint64_t bytes = take_out(address, false);
    if (bytes == 0) return INVALID_VALUE;
    s.plain_held -= round_up(bytes, s.granularity);
    if (++s.frees == s.keep) s.kept += round_up(bytes, s.granularity);
    return RELEASED();
}

onv_cu_result cuMemcpyHtoD_v2(onv_cu_address to, const void *from, size_t bytes)
{
    CALL_IN_CONTEXT();
    if (!is_inside(to, bytes)) return INVALID_VALUE;
    if (++s.copies != s.lose) memcpy((void *)(uintptr_t)to, from, bytes);
    return ONV_CU_SUCCESS;
}

onv_cu_result cuMemcpyDtoH_v2(void *to, onv_cu_address from, size_t bytes)
{
    CALL_IN_CONTEXT();
    if (!is_inside(from, bytes)) return INVALID_VALUE;
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return ONV_CU_SUCCESS;
}

onv_cu_result cuMemGetAllocationGranularity(size_t *bytes, const onv_cu_memory_props *props,
                                            int which)
{
    CALL_IN_CONTEXT();
    (void)which;
    *bytes = s.granularity;
    return props->location.type == ONV_CU_ON_DEVICE ? ONV_CU_SUCCESS : INVALID_VALUE;
}

/* --- The pool: it grows by steps and keeps what it has until it is trimmed --------------------- */

onv_cu_result cuStreamCreate(onv_cu_handle *stream, unsigned flags)
{
    CALL_IN_CONTEXT();
    (void)flags;
    s.streams++;
    *stream = &s.streams;
    return ONV_CU_SUCCESS;
}

onv_cu_result cuStreamDestroy_v2(onv_cu_handle stream)
{
    s.streams -= stream == &s.streams;
    return RELEASED();
}

onv_cu_result cuStreamSynchronize(onv_cu_handle stream)
{
    CALL_IN_CONTEXT();
    return stream == &s.streams ? ONV_CU_SUCCESS : INVALID_VALUE;
}

onv_cu_result cuMemPoolCreate(onv_cu_handle *pool, const onv_cu_pool_props *props)
{
    CALL_IN_CONTEXT();
    if (props->type != ONV_CU_PINNED || props->location.type != ONV_CU_ON_DEVICE)
        return INVALID_VALUE;
    s.pools_open++;
    *pool = &s.pools_open;
    return ONV_CU_SUCCESS;
}

onv_cu_result cuMemPoolDestroy(onv_cu_handle pool)
{
    s.pools_open -= pool == &s.pools_open;
    return RELEASED();
}

onv_cu_result cuMemPoolTrimTo(onv_cu_handle pool, size_t keep_bytes)
{
    CALL_IN_CONTEXT();
    if (pool != &s.pools_open) return INVALID_VALUE;
    uint64_t least = round_up(s.used, POOL_STEP), keep = round_up(keep_bytes, POOL_STEP);
    s.reserved = keep > least ? keep : least;
    return ONV_CU_SUCCESS;
}

onv_cu_result cuMemPoolSetAttribute(onv_cu_handle pool, int attribute, void *value)
{
    CALL_IN_CONTEXT();
    if (pool != &s.pools_open) return INVALID_VALUE;
    bool is_high = attribute == ONV_CU_RESERVED_HIGH || attribute == ONV_CU_USED_HIGH;
    if (is_high && *(uint64_t *)value != 0) return INVALID_VALUE;
    if (attribute == ONV_CU_RESERVED_HIGH) s.reserved_high = s.reserved;
    if (attribute == ONV_CU_USED_HIGH) s.used_high = s.used;
    return ONV_CU_SUCCESS;
}

onv_cu_result cuMemPoolGetAttribute(onv_cu_handle pool, int attribute, void *value)
{
    CALL_IN_CONTEXT();
    uint64_t *to = value;
    if (pool != &s.pools_open) return INVALID_VALUE;
    switch (attribute) {
    case ONV_CU_USED_NOW: *to = s.used; break;
    case ONV_CU_USED_HIGH: *to = s.used_high; break;
    case ONV_CU_RESERVED_NOW: *to = s.reserved; break;
    case ONV_CU_RESERVED_HIGH: *to = s.reserved_high; break;
    default: return INVALID_VALUE;
    }
    return ONV_CU_SUCCESS;
}

onv_cu_result cuMemAllocFromPoolAsync(onv_cu_address *address, size_t bytes, onv_cu_handle pool,
                                      onv_cu_handle stream)
{
    CALL_IN_CONTEXT();
    if (bytes == 0 || pool != &s.pools_open || stream != &s.streams) return INVALID_VALUE;
    uint64_t used = s.used + round_up(bytes, POOL_UNIT), reserved = round_up(used, POOL_STEP);
    if (reserved > s.reserved && reserved - s.reserved > left()) return ONV_CU_OUT_OF_MEMORY;
    if (!add(bytes, true, address)) return ONV_CU_OUT_OF_MEMORY;
    s.used = used;
    if (reserved > s.reserved) s.reserved = reserved;
    if (s.used > s.used_high) s.used_high = s.used;
    if (s.reserved > s.reserved_high) s.reserved_high = s.reserved;
    return ONV_CU_SUCCESS;
}

onv_cu_result cuMemFreeAsync(onv_cu_address address, onv_cu_handle stream)
{
    uint64_t bytes = take_out(address, true);
    if (bytes == 0 || stream != &s.streams) return INVALID_VALUE;
    s.used -= round_up(bytes, POOL_UNIT);
    return RELEASED();
}

/* --- Kernels: the image is taken for what it should be ----------------------------------------- */

static const char *const kernels[] = {"onv_fill", "onv_check"};

onv_cu_result cuModuleLoadData(onv_cu_handle *module, const void *image)
{
    CALL_IN_CONTEXT();
    if (s.kernels == 0) return NOT_SUPPORTED;
    s.modules++;
    *module = &s.modules;
    return image != NULL ? ONV_CU_SUCCESS : INVALID_VALUE;
}

onv_cu_result cuModuleUnload(onv_cu_handle module)
{
    s.modules -= module == &s.modules;
    return RELEASED();
}

onv_cu_result cuModuleGetFunction(onv_cu_handle *function, onv_cu_handle module, const char *name)
{
    CALL_IN_CONTEXT();
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        if (module != &s.modules || strcmp(kernels[i], name) != 0) continue;
        *function = (onv_cu_handle)(uintptr_t)&kernels[i];
        return ONV_CU_SUCCESS;
    }
    return INVALID_VALUE;
}

onv_cu_result cuLaunchKernel(onv_cu_handle function, unsigned grid_x, unsigned grid_y,
                             unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                             unsigned shared_bytes, onv_cu_handle stream, void **parameters,
                             void **extra)
{
    CALL_IN_CONTEXT();
    const char *const *kernel = function;
    onv_cu_address address;
    uint64_t bytes;
    memcpy(&address, parameters[0], sizeof address);
    memcpy(&bytes, parameters[3], sizeof bytes);
    if (grid_x == 0 || grid_y != 1 || grid_z != 1 || block_x == 0 || block_x > 1024 ||
        block_y != 1 || block_z != 1 || shared_bytes != 0 || stream != NULL || extra != NULL ||
        !is_inside(address, bytes))
        return INVALID_VALUE;
    if (s.kernels == 1) run_on_cpu(*kernel, grid_x, block_x, parameters);
    return ONV_CU_SUCCESS;
}

/* --- NVML -------------------------------------------------------------------------------------- */

onv_cu_result nvmlInit_v2(void)
{
    CALL();
    s.nvml++;
    return 0;
}

onv_cu_result nvmlShutdown(void)
{
    s.nvml--;
    return RELEASED();
}

onv_cu_result nvmlDeviceGetHandleByPciBusId_v2(const char *id, onv_cu_handle *device)
{
    CALL();
    *device = &s;
    return strcmp(id, "0000:00:00.0") == 0 ? 0 : INVALID_VALUE;
}

onv_cu_result nvmlDeviceGetMemoryInfo(onv_cu_handle device, onv_nvml_memory *memory)
{
    CALL();
    if (device != &s) return INVALID_VALUE;
    *memory = (onv_nvml_memory){.total = s.capacity, .free = left(), .used = taken()};
    return 0;
}
