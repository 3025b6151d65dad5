#!/usr/bin/env bash
# What src/device/cuda_driver.h declares by hand is what the CUDA Toolkit's header says. Skipped where
# there is no such header: nothing else needs it.
set -euo pipefail
cd "${ONV_SOURCE_DIR:-$(dirname "$0")/../..}"
cuda=${CUDA_HOME:-/usr/local/cuda}/include
[ -e "$cuda/cuda.h" ] || { echo "skipped: there is no cuda.h here"; exit 77; }

"${CC:-cc}" -std=c17 -fsyntax-only -D_GNU_SOURCE -Isrc -Iinclude -isystem "$cuda" -x c - <<'END'
#include <stdbool.h>

#include <cuda.h>

#include "device/cuda_driver.h"

#define SAME(ours, theirs) _Static_assert((long)(ours) == (long)(theirs), #theirs)
#define SAME_PLACE(ours, a, theirs, b) SAME(offsetof(ours, a), offsetof(theirs, b))

SAME(ONV_CU_SUCCESS, CUDA_SUCCESS);
SAME(ONV_CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(ONV_CU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(ONV_CU_POOLS_SUPPORTED, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
SAME(ONV_CU_RELEASE_THRESHOLD, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
SAME(ONV_CU_RESERVED_NOW, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
SAME(ONV_CU_RESERVED_HIGH, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
SAME(ONV_CU_USED_NOW, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
SAME(ONV_CU_USED_HIGH, CU_MEMPOOL_ATTR_USED_MEM_HIGH);
SAME(ONV_CU_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(ONV_CU_ON_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);

SAME(sizeof(onv_cu_result), sizeof(CUresult));
SAME(sizeof(onv_cu_device), sizeof(CUdevice));
SAME(sizeof(onv_cu_address), sizeof(CUdeviceptr));
SAME(sizeof(onv_cu_handle), sizeof(CUstream));
SAME(sizeof(onv_cu_location), sizeof(CUmemLocation));
SAME_PLACE(onv_cu_location, id, CUmemLocation, id);
SAME(sizeof(onv_cu_pool_props), sizeof(CUmemPoolProps));
SAME_PLACE(onv_cu_pool_props, handle_types, CUmemPoolProps, handleTypes);
SAME_PLACE(onv_cu_pool_props, location, CUmemPoolProps, location);
SAME_PLACE(onv_cu_pool_props, security, CUmemPoolProps, win32SecurityAttributes);
SAME(sizeof(onv_cu_memory_props), sizeof(CUmemAllocationProp));
SAME_PLACE(onv_cu_memory_props, handle_types, CUmemAllocationProp, requestedHandleTypes);
SAME_PLACE(onv_cu_memory_props, location, CUmemAllocationProp, location);
SAME_PLACE(onv_cu_memory_props, meta_data, CUmemAllocationProp, win32HandleMetaData);
SAME_PLACE(onv_cu_memory_props, flags, CUmemAllocationProp, allocFlags);

/* Of the header's newest version; cuda.h renames old names to it. */
#define TEXT_(name) #name
#define TEXT(name)  TEXT_(name)
#define NAMED(name) _Static_assert(__builtin_strcmp(TEXT(name), #name "_v2") == 0, #name)
NAMED(cuDevicePrimaryCtxRelease);
NAMED(cuMemGetInfo);
NAMED(cuMemAlloc);
NAMED(cuMemFree);
NAMED(cuMemcpyHtoD);
NAMED(cuMemcpyDtoH);
NAMED(cuStreamDestroy);
END
echo "the driver's types and constants are those of $cuda/cuda.h"
