#include "device/cuda_driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

/* A pointer to an object becomes one to a function: POSIX allows it, ISO C only by copying. */
static bool find(void *library, const char *name, void *pointer, size_t bytes)
{
    void *symbol = library != NULL ? dlsym(library, name) : NULL;
    memcpy(pointer, &symbol, bytes);
    return symbol != NULL;
}

#define FIND(library, name) find(library, #name, &driver->name, sizeof driver->name)

static const char *find_functions(onv_cuda_driver *driver)
{
    const char *lacking = NULL;
#define REQUIRED(name, parameters)                                                                 \
    if (!FIND(driver->library, name) && lacking == NULL) lacking = #name;
#define OPTIONAL(name, parameters) (void)FIND(driver->library, name);
    ONV_CUDA_FUNCTIONS(REQUIRED, OPTIONAL)
#undef OPTIONAL
#define OPTIONAL(name, parameters) (void)FIND(driver->nvml_library, name);
    ONV_NVML_FUNCTIONS(OPTIONAL)
    return lacking;
}

onv_status onv_cuda_driver_load(onv_cuda_driver *driver, onv_error *err)
{
    const char *other = secure_getenv(ONV_CUDA_VARIABLE);
    bool is_other = other != NULL && other[0] != '\0';
    *driver = (onv_cuda_driver){0};
    snprintf(driver->path, sizeof driver->path, "%s", is_other ? other : "libcuda.so.1");
    driver->library = dlopen(is_other ? other : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver->library == NULL && is_other)
        return onv_fail(err, ONV_ERR_DEVICE, "the CUDA driver of " ONV_CUDA_VARIABLE ": %s",
                        dlerror());
    if (driver->library == NULL)
        return onv_fail(err, ONV_ERR_DEVICE,
                        "there is no CUDA driver here (%s); --replay=host replays on host memory",
                        dlerror());
    driver->is_fake = dlsym(driver->library, ONV_CUDA_FAKE_SYMBOL) != NULL;
    if (is_other)
        driver->nvml_library = dlopen(other, RTLD_NOW | RTLD_LOCAL);
    else
        driver->nvml_library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    const char *lacking = find_functions(driver);
    if (lacking == NULL) return ONV_OK;
    int version = 0;
    if (driver->cuDriverGetVersion != NULL) (void)driver->cuDriverGetVersion(&version);
    return onv_fail(err, ONV_ERR_DEVICE, "the CUDA driver (%s, version %d.%d) is too old: no %s",
                    driver->path, version / 1000, version % 1000 / 10, lacking);
}

void onv_cuda_driver_unload(onv_cuda_driver *driver)
{
    if (driver->nvml_library != NULL) dlclose(driver->nvml_library);
    if (driver->library != NULL) dlclose(driver->library);
    *driver = (onv_cuda_driver){0};
}

#define IS_THERE(name, parameters) &&driver->name != NULL

bool onv_cuda_has_pools(const onv_cuda_driver *driver)
{
    return true ONV_CUDA_POOL_FUNCTIONS(IS_THERE);
}

bool onv_cuda_has_kernels(const onv_cuda_driver *driver)
{
    return true ONV_CUDA_KERNEL_FUNCTIONS(IS_THERE);
}

onv_status onv_cuda_failed(const onv_cuda_driver *driver, const char *function,
                           onv_cu_result result, onv_error *err)
{
    const char *name = NULL;
    if (driver->cuGetErrorName(result, &name) != ONV_CU_SUCCESS || name == NULL) name = "an error";
    return onv_fail(err, ONV_ERR_DEVICE, "%s: %s (%d)", function, name, result);
}

bool onv_cuda_used_bytes(const onv_cuda_driver *driver, const char *pci_id, uint64_t *bytes)
{
    onv_cu_handle device;
    onv_nvml_memory memory;
    const bool is_there = true ONV_NVML_FUNCTIONS(IS_THERE);
    if (!is_there || driver->nvmlInit_v2() != 0) return false;
    bool good = driver->nvmlDeviceGetHandleByPciBusId_v2(pci_id, &device) == 0 &&
                driver->nvmlDeviceGetMemoryInfo(device, &memory) == 0;
    (void)driver->nvmlShutdown();
    if (good) *bytes = memory.used;
    return good;
}
