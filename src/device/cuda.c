/* A GPU through the CUDA driver API.
 *
 * Patterns are written and looked for by kernels where they were compiled in, the driver takes them
 * and they pass a trial; else chunks are made here and copied, both ways. The pool is one of our
 * own, with its release threshold at the maximum as PyTorch sets it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "device/cuda_driver.h"
#include "device/device.h"
#include "device/pattern.h"

#define CHUNK_BYTES (UINT64_C(8) << 20)

/* Cited in PyTorch's notes; used where the driver does not say. */
#define GRANULARITY_BYTES (UINT64_C(2) << 20)
#define POOL_BYTES        UINT64_C(512)

enum { BLOCK_THREADS = 256, MAX_BLOCKS = 4096 };

typedef struct cuda_state {
    onv_cuda_driver driver;
    onv_cu_device device;
    bool is_retained, has_pool;
    onv_cu_handle stream, pool;
    onv_cu_handle module, fill, check; /* NULL: copies serve */
    onv_cu_address wrong;              /* where the check kernel writes its result */
    onv_cu_address trial;              /* what the kernels are tried on */
    char *image; /* of the module, which may load a kernel when it is first called */
    void *chunk;
    uint64_t held;
} cuda_state;

#define CALL(c, function, ...)                                                                     \
    do {                                                                                           \
        onv_cu_result result_ = (c)->driver.function(__VA_ARGS__);                                 \
        if (result_ != ONV_CU_SUCCESS)                                                             \
            return onv_cuda_failed(&(c)->driver, #function, result_, err);                         \
    } while (0)

/* --- Opening ----------------------------------------------------------------------------------- */

static onv_status find_device(cuda_state *c, onv_error *err)
{
    int count = 0;
    onv_cu_result result = c->driver.cuInit(0);
    if (result == ONV_CU_SUCCESS) result = c->driver.cuDeviceGetCount(&count);
    if (result == ONV_CU_NO_DEVICE || (result == ONV_CU_SUCCESS && count == 0))
        return onv_fail(err, ONV_ERR_DEVICE,
                        "the CUDA driver sees no GPU; --replay=host replays on host memory");
    if (result != ONV_CU_SUCCESS) return onv_cuda_failed(&c->driver, "cuInit", result, err);
    CALL(c, cuDeviceGet, &c->device, 0);
    return ONV_OK;
}

static onv_status name_device(onv_device *d, cuda_state *c, onv_error *err)
{
    char name[100] = "";
    CALL(c, cuDeviceGetName, name, (int)sizeof name, c->device);
    CALL(c, cuDriverGetVersion, &d->info.driver_version);
    name[sizeof name - 1] = '\0';
    if (c->driver.is_fake)
        snprintf(d->info.name, sizeof d->info.name, "fake driver (no GPU)");
    else
        snprintf(d->info.name, sizeof d->info.name, "%s, CUDA driver %d.%d", name,
                 d->info.driver_version / 1000, d->info.driver_version % 1000 / 10);
    d->info.is_gpu = !c->driver.is_fake;
    return ONV_OK;
}

/* What creating the context takes is seen from outside of it, by NVML. */
static onv_status enter_context(onv_device *d, cuda_state *c, onv_error *err)
{
    char pci_id[32] = "";
    uint64_t before = 0, after = 0;
    onv_cu_handle context;
    bool known =
        c->driver.cuDeviceGetPCIBusId != NULL &&
        c->driver.cuDeviceGetPCIBusId(pci_id, (int)sizeof pci_id, c->device) == ONV_CU_SUCCESS &&
        onv_cuda_used_bytes(&c->driver, pci_id, &before);
    CALL(c, cuDevicePrimaryCtxRetain, &context, c->device);
    c->is_retained = true;
    CALL(c, cuCtxSetCurrent, context);
    if (!known || !onv_cuda_used_bytes(&c->driver, pci_id, &after) || after < before) return ONV_OK;
    d->info.has_context = true;
    d->info.context_bytes = after - before;
    return ONV_OK;
}

static onv_status open_pool(onv_device *d, cuda_state *c, onv_error *err)
{
    int supported = 0;
    if (!onv_cuda_has_pools(&c->driver)) return ONV_OK;
    CALL(c, cuDeviceGetAttribute, &supported, ONV_CU_POOLS_SUPPORTED, c->device);
    if (!supported) return ONV_OK;
    onv_cu_pool_props props = {.type = ONV_CU_PINNED, .location = {ONV_CU_ON_DEVICE, c->device}};
    uint64_t most = UINT64_MAX;
    CALL(c, cuStreamCreate, &c->stream, 0);
    CALL(c, cuMemPoolCreate, &c->pool, &props);
    c->has_pool = true;
    CALL(c, cuMemPoolSetAttribute, c->pool, ONV_CU_RELEASE_THRESHOLD, &most);
    d->info.pool_granularity_bytes = POOL_BYTES;
    return ONV_OK;
}

static bool load_kernels(cuda_state *c)
{
    const onv_cuda_driver *cu = &c->driver;
    if (onv_cuda_kernels.bytes == 0 || !onv_cuda_has_kernels(cu)) return false;
    c->image = onv_embedded_inflate(&onv_cuda_kernels);
    if (c->image == NULL || cu->cuModuleLoadData(&c->module, c->image) != ONV_CU_SUCCESS) {
        c->module = NULL;
        return false;
    }
    return cu->cuModuleGetFunction(&c->fill, c->module, "onv_fill") == ONV_CU_SUCCESS &&
           cu->cuModuleGetFunction(&c->check, c->module, "onv_check") == ONV_CU_SUCCESS;
}

static void find_granularity(onv_device *d, cuda_state *c)
{
    onv_cu_memory_props props = {.type = ONV_CU_PINNED, .location = {ONV_CU_ON_DEVICE, c->device}};
    size_t bytes = 0;
    d->info.granularity_bytes = GRANULARITY_BYTES;
    if (c->driver.cuMemGetAllocationGranularity != NULL &&
        c->driver.cuMemGetAllocationGranularity(&bytes, &props, 0) == ONV_CU_SUCCESS && bytes > 0)
        d->info.granularity_bytes = bytes;
}

static void cuda_close(onv_device *d)
{
    cuda_state *c = d->state;
    const onv_cuda_driver *cu = &c->driver;
    if (c->wrong != 0) (void)cu->cuMemFree_v2(c->wrong);
    if (c->module != NULL) (void)cu->cuModuleUnload(c->module);
    if (c->has_pool) (void)cu->cuMemPoolDestroy(c->pool);
    if (c->stream != NULL) (void)cu->cuStreamDestroy_v2(c->stream);
    if (c->is_retained) (void)cu->cuDevicePrimaryCtxRelease_v2(c->device);
    onv_heap_free(c->chunk);
    onv_heap_free(c->image);
    onv_cuda_driver_unload(&c->driver);
}

/* --- Memory ------------------------------------------------------------------------------------ */

static onv_status cuda_memory(onv_device *d, uint64_t *free_bytes, uint64_t *total_bytes,
                              onv_error *err)
{
    cuda_state *c = d->state;
    size_t free_now, total;
    CALL(c, cuMemGetInfo_v2, &free_now, &total);
    *free_bytes = free_now;
    *total_bytes = total;
    return ONV_OK;
}

static onv_status cuda_alloc(onv_device *d, uint64_t bytes, bool pooled,
                             onv_device_address *address, onv_error *err)
{
    cuda_state *c = d->state;
    onv_cu_result result;
    *address = 0;
    if (bytes > d->limit_bytes || c->held > d->limit_bytes - bytes) return ONV_OK;
    if (pooled)
        result = c->driver.cuMemAllocFromPoolAsync(address, bytes, c->pool, c->stream);
    else
        result = c->driver.cuMemAlloc_v2(address, bytes);
    if (result != ONV_CU_SUCCESS) *address = 0;
    if (result == ONV_CU_OUT_OF_MEMORY) return ONV_OK;
    if (result != ONV_CU_SUCCESS)
        return onv_cuda_failed(&c->driver, pooled ? "cuMemAllocFromPoolAsync" : "cuMemAlloc_v2",
                               result, err);
    c->held += bytes;
    if (pooled) CALL(c, cuStreamSynchronize, c->stream);
    return ONV_OK;
}

static onv_status cuda_free(onv_device *d, onv_device_address address, uint64_t bytes, bool pooled,
                            onv_error *err)
{
    cuda_state *c = d->state;
    c->held -= bytes;
    if (!pooled) {
        CALL(c, cuMemFree_v2, address);
        return ONV_OK;
    }
    CALL(c, cuMemFreeAsync, address, c->stream);
    CALL(c, cuStreamSynchronize, c->stream);
    return ONV_OK;
}

static onv_status cuda_pool_reset(onv_device *d, onv_error *err)
{
    cuda_state *c = d->state;
    uint64_t zero = 0;
    CALL(c, cuStreamSynchronize, c->stream);
    CALL(c, cuMemPoolTrimTo, c->pool, 0);
    CALL(c, cuMemPoolSetAttribute, c->pool, ONV_CU_RESERVED_HIGH, &zero);
    CALL(c, cuMemPoolSetAttribute, c->pool, ONV_CU_USED_HIGH, &zero);
    return ONV_OK;
}

static onv_status cuda_pool(onv_device *d, onv_device_pool *pool, onv_error *err)
{
    cuda_state *c = d->state;
    CALL(c, cuMemPoolGetAttribute, c->pool, ONV_CU_USED_NOW, &pool->used);
    CALL(c, cuMemPoolGetAttribute, c->pool, ONV_CU_RESERVED_NOW, &pool->reserved);
    CALL(c, cuMemPoolGetAttribute, c->pool, ONV_CU_USED_HIGH, &pool->used_peak);
    CALL(c, cuMemPoolGetAttribute, c->pool, ONV_CU_RESERVED_HIGH, &pool->reserved_peak);
    return ONV_OK;
}

/* --- Patterns ---------------------------------------------------------------------------------- */

static onv_status launch(cuda_state *c, onv_cu_handle kernel, void **parameters, uint64_t bytes,
                         onv_error *err)
{
    uint64_t blocks = bytes / 8 / BLOCK_THREADS + 1;
    if (blocks > MAX_BLOCKS) blocks = MAX_BLOCKS; /* each thread takes several words */
    CALL(c, cuLaunchKernel, kernel, (unsigned)blocks, 1, 1, BLOCK_THREADS, 1, 1, 0, NULL,
         parameters, NULL);
    return ONV_OK;
}

static onv_status cuda_fill(onv_device *d, onv_device_address to, uint64_t seed, uint64_t first,
                            uint64_t bytes, onv_error *err)
{
    cuda_state *c = d->state;
    if (c->fill != NULL) {
        void *parameters[] = {&to, &seed, &first, &bytes};
        return launch(c, c->fill, parameters, bytes, err);
    }
    for (uint64_t at = 0, part; at < bytes; at += part) {
        part = bytes - at < CHUNK_BYTES ? bytes - at : CHUNK_BYTES;
        onv_pattern_fill(c->chunk, seed, first + at, part);
        CALL(c, cuMemcpyHtoD_v2, to + at, c->chunk, part);
    }
    return ONV_OK;
}

static onv_status cuda_check(onv_device *d, onv_device_address from, uint64_t seed, uint64_t first,
                             uint64_t bytes, uint64_t *wrong, onv_error *err)
{
    cuda_state *c = d->state;
    *wrong = bytes;
    if (c->check != NULL) {
        void *parameters[] = {&from, &seed, &first, &bytes, &c->wrong};
        CALL(c, cuMemcpyHtoD_v2, c->wrong, wrong, sizeof *wrong);
        ONV_TRY(launch(c, c->check, parameters, bytes, err));
        CALL(c, cuMemcpyDtoH_v2, wrong, c->wrong, sizeof *wrong);
        return ONV_OK;
    }
    for (uint64_t at = 0, part; at < bytes; at += part) {
        part = bytes - at < CHUNK_BYTES ? bytes - at : CHUNK_BYTES;
        CALL(c, cuMemcpyDtoH_v2, c->chunk, from + at, part);
        uint64_t found = onv_pattern_check(c->chunk, seed, first + at, part);
        if (found == part) continue;
        *wrong = at + found;
        break;
    }
    return ONV_OK;
}

/* What the kernels write is read by the processor, and what a copy spoils is found by them. A
 * driver may load kernels late and take memory for them: it has done so after this. */
static onv_status try_kernels(onv_device *d, cuda_state *c, bool *work, onv_error *err)
{
    enum { FIRST = 24, BYTES = 12293, SPOILT = 8195 };
    uint64_t seed = onv_pattern_seed(0), sound, wrong;
    unsigned char *bytes = c->chunk;
    CALL(c, cuMemAlloc_v2, &c->wrong, sizeof(uint64_t));
    CALL(c, cuMemAlloc_v2, &c->trial, BYTES);
    ONV_TRY(cuda_fill(d, c->trial, seed, FIRST, BYTES, err));
    ONV_TRY(cuda_check(d, c->trial, seed, FIRST, BYTES, &sound, err));
    CALL(c, cuMemcpyDtoH_v2, bytes, c->trial, BYTES);
    *work = sound == BYTES && onv_pattern_check(bytes, seed, FIRST, BYTES) == BYTES;
    bytes[SPOILT] ^= 1;
    CALL(c, cuMemcpyHtoD_v2, c->trial + SPOILT, bytes + SPOILT, 1);
    ONV_TRY(cuda_check(d, c->trial, seed, FIRST, BYTES, &wrong, err));
    *work &= wrong == SPOILT;
    return ONV_OK;
}

/* Kernels that cannot be had, or not be trusted, are no reason to give up. */
static void open_kernels(onv_device *d, cuda_state *c)
{
    bool work = false;
    if (load_kernels(c) && try_kernels(d, c, &work, NULL) != ONV_OK) work = false;
    if (c->trial != 0) (void)c->driver.cuMemFree_v2(c->trial);
    if (!work) c->fill = c->check = NULL;
    d->info.filled_by = work ? "kernels" : "copies";
}

static onv_status cuda_open(onv_device *d, onv_error *err)
{
    cuda_state *c = d->state;
    ONV_TRY(onv_cuda_driver_load(&c->driver, err));
    ONV_TRY(find_device(c, err));
    ONV_TRY(name_device(d, c, err));
    ONV_TRY(enter_context(d, c, err));
    find_granularity(d, c);
    ONV_TRY(open_pool(d, c, err));
    c->chunk = onv_heap_alloc(CHUNK_BYTES);
    if (c->chunk == NULL) return onv_fail_memory(err);
    open_kernels(d, c);
    return ONV_OK;
}

static onv_status cuda_sync(onv_device *d, onv_error *err)
{
    cuda_state *c = d->state;
    CALL(c, cuCtxSynchronize);
    return ONV_OK;
}

const onv_device_kind onv_device_cuda = {
    .name = "cuda",
    .summary = "the first GPU that the CUDA driver shows",
    .state_bytes = sizeof(cuda_state),
    .open = cuda_open,
    .close = cuda_close,
    .memory = cuda_memory,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .pool_reset = cuda_pool_reset,
    .pool = cuda_pool,
    .fill = cuda_fill,
    .check = cuda_check,
    .sync = cuda_sync,
};
