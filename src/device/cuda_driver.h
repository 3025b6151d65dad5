/* The part of the CUDA driver API that a replay uses, loaded at run time.
 *
 * One list names every function. It expands to the pointers, to the loading, and to the message
 * where a driver lacks one. Types and constants are declared here after the documented ABI, so that
 * nothing of CUDA is needed to build.
 *
 * NVML is asked for one thing, the memory in use before there is a context; without it the size of
 * the context stays unknown.
 */
#ifndef ONV_DEVICE_CUDA_DRIVER_H
#define ONV_DEVICE_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "base/embedded.h"
#include "base/status.h"

typedef int onv_cu_result;
typedef int onv_cu_device;
typedef uint64_t onv_cu_address;
typedef void *onv_cu_handle; /* of a context, stream, pool, module or function */

enum {
    ONV_CU_SUCCESS = 0,
    ONV_CU_OUT_OF_MEMORY = 2,
    ONV_CU_NO_DEVICE = 100,

    ONV_CU_POOLS_SUPPORTED = 115, /* an attribute of a device */

    ONV_CU_RELEASE_THRESHOLD = 4, /* attributes of a pool, 64 bits each */
    ONV_CU_RESERVED_NOW = 5,
    ONV_CU_RESERVED_HIGH = 6,
    ONV_CU_USED_NOW = 7,
    ONV_CU_USED_HIGH = 8,

    ONV_CU_PINNED = 1,    /* an allocation type */
    ONV_CU_ON_DEVICE = 1, /* a location type */
};

typedef struct onv_cu_location {
    int type, id;
} onv_cu_location;

typedef struct onv_cu_pool_props {
    int type, handle_types;
    onv_cu_location location;
    void *security;
    size_t max_bytes;
    unsigned char reserved[56];
} onv_cu_pool_props;

typedef struct onv_cu_memory_props {
    int type, handle_types;
    onv_cu_location location;
    void *meta_data;
    unsigned char flags[8];
} onv_cu_memory_props;

/* What pools take, and what kernels take: all of it is there, or neither is used. */
#define ONV_CUDA_POOL_FUNCTIONS(OPTIONAL)                                                          \
    OPTIONAL(cuStreamCreate, (onv_cu_handle * stream, unsigned flags))                             \
    OPTIONAL(cuStreamDestroy_v2, (onv_cu_handle stream))                                           \
    OPTIONAL(cuStreamSynchronize, (onv_cu_handle stream))                                          \
    OPTIONAL(cuMemPoolCreate, (onv_cu_handle * pool, const onv_cu_pool_props *props))              \
    OPTIONAL(cuMemPoolDestroy, (onv_cu_handle pool))                                               \
    OPTIONAL(cuMemPoolTrimTo, (onv_cu_handle pool, size_t keep_bytes))                             \
    OPTIONAL(cuMemPoolSetAttribute, (onv_cu_handle pool, int attribute, void *value))              \
    OPTIONAL(cuMemPoolGetAttribute, (onv_cu_handle pool, int attribute, void *value))              \
    OPTIONAL(cuMemAllocFromPoolAsync,                                                              \
             (onv_cu_address * address, size_t bytes, onv_cu_handle pool, onv_cu_handle stream))   \
    OPTIONAL(cuMemFreeAsync, (onv_cu_address address, onv_cu_handle stream))                       \
    OPTIONAL(cuMemGetAllocationGranularity,                                                        \
             (size_t * bytes, const onv_cu_memory_props *props, int which))

#define ONV_CUDA_KERNEL_FUNCTIONS(OPTIONAL)                                                        \
    OPTIONAL(cuModuleLoadData, (onv_cu_handle * module, const void *image))                        \
    OPTIONAL(cuModuleUnload, (onv_cu_handle module))                                               \
    OPTIONAL(cuModuleGetFunction,                                                                  \
             (onv_cu_handle * function, onv_cu_handle module, const char *name))                   \
    OPTIONAL(cuLaunchKernel,                                                                       \
             (onv_cu_handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z,           \
              unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,         \
              onv_cu_handle stream, void **parameters, void **extra))

/* REQUIRED(name, parameters), OPTIONAL likewise; all return onv_cu_result. */
#define ONV_CUDA_FUNCTIONS(REQUIRED, OPTIONAL)                                                     \
    REQUIRED(cuInit, (unsigned flags))                                                             \
    REQUIRED(cuDriverGetVersion, (int *version))                                                   \
    REQUIRED(cuGetErrorName, (onv_cu_result result, const char **name))                            \
    REQUIRED(cuDeviceGetCount, (int *count))                                                       \
    REQUIRED(cuDeviceGet, (onv_cu_device * device, int ordinal))                                   \
    REQUIRED(cuDeviceGetName, (char *name, int length, onv_cu_device device))                      \
    REQUIRED(cuDeviceGetAttribute, (int *value, int attribute, onv_cu_device device))              \
    REQUIRED(cuDevicePrimaryCtxRetain, (onv_cu_handle * context, onv_cu_device device))            \
    REQUIRED(cuDevicePrimaryCtxRelease_v2, (onv_cu_device device))                                 \
    REQUIRED(cuCtxSetCurrent, (onv_cu_handle context))                                             \
    REQUIRED(cuCtxSynchronize, (void))                                                             \
    REQUIRED(cuMemGetInfo_v2, (size_t * free_bytes, size_t * total_bytes))                         \
    REQUIRED(cuMemAlloc_v2, (onv_cu_address * address, size_t bytes))                              \
    REQUIRED(cuMemFree_v2, (onv_cu_address address))                                               \
    REQUIRED(cuMemcpyHtoD_v2, (onv_cu_address to, const void *from, size_t bytes))                 \
    REQUIRED(cuMemcpyDtoH_v2, (void *to, onv_cu_address from, size_t bytes))                       \
    OPTIONAL(cuDeviceGetPCIBusId, (char *id, int length, onv_cu_device device))                    \
    ONV_CUDA_POOL_FUNCTIONS(OPTIONAL)                                                              \
    ONV_CUDA_KERNEL_FUNCTIONS(OPTIONAL)

typedef struct onv_nvml_memory {
    unsigned long long total, free, used;
} onv_nvml_memory;

/* All optional; all return int, 0 where they succeed. */
#define ONV_NVML_FUNCTIONS(OPTIONAL)                                                               \
    OPTIONAL(nvmlInit_v2, (void))                                                                  \
    OPTIONAL(nvmlShutdown, (void))                                                                 \
    OPTIONAL(nvmlDeviceGetHandleByPciBusId_v2, (const char *id, onv_cu_handle *device))            \
    OPTIONAL(nvmlDeviceGetMemoryInfo, (onv_cu_handle device, onv_nvml_memory * memory))

#define ONV_CUDA_MEMBER(name, parameters) onv_cu_result(*name) parameters;

typedef struct onv_cuda_driver {
    void *library, *nvml_library;
    char path[256]; /* of the library: as it was asked for */
    bool is_fake;
    ONV_CUDA_FUNCTIONS(ONV_CUDA_MEMBER, ONV_CUDA_MEMBER)
    ONV_NVML_FUNCTIONS(ONV_CUDA_MEMBER)
} onv_cuda_driver;

/* The environment variable that names another library than libcuda.so.1, and the symbol by which
 * the library of the tests gives itself away. NVML's functions are looked for in such a library
 * alone. */
#define ONV_CUDA_VARIABLE    "ONNXVRAM_CUDA_DRIVER"
#define ONV_CUDA_FAKE_SYMBOL "onnxvram_fake_driver"

/* The library and its functions; nothing is called yet. Unload in either case. */
onv_status onv_cuda_driver_load(onv_cuda_driver *driver, onv_error *err);
void onv_cuda_driver_unload(onv_cuda_driver *driver);

bool onv_cuda_has_pools(const onv_cuda_driver *driver);
bool onv_cuda_has_kernels(const onv_cuda_driver *driver);

/* kernels.cu as the driver loads it: a fat binary, or nothing (0 bytes) in builds without the CUDA Toolkit. */
extern const onv_embedded onv_cuda_kernels;

/* Fills the error: "cuMemAlloc_v2: CUDA_ERROR_INVALID_CONTEXT (201)". */
onv_status onv_cuda_failed(const onv_cuda_driver *driver, const char *function,
                           onv_cu_result result, onv_error *err);

/* The bytes in use on the device of that PCI id, by all processes; false where nobody says. */
bool onv_cuda_used_bytes(const onv_cuda_driver *driver, const char *pci_id, uint64_t *bytes);

#endif
