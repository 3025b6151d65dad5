#include "device/device.h"

#include <string.h>

#include "base/fail.h"
#include "base/heap.h"

extern const onv_device_kind onv_device_host, onv_device_cuda;

const onv_device_kind *const onv_device_kinds[] = {
#ifndef __wasm__ /* a page finds no driver */
    &onv_device_cuda,
#endif
    &onv_device_host};
const size_t onv_n_device_kinds = sizeof onv_device_kinds / sizeof onv_device_kinds[0];

const onv_device_kind *onv_device_kind_find(const char *name)
{
    for (size_t i = 0; i < onv_n_device_kinds; i++)
        if (strcmp(onv_device_kinds[i]->name, name) == 0) return onv_device_kinds[i];
    return NULL;
}

onv_status onv_device_open(onv_device *d, const onv_device_kind *kind, uint64_t limit_bytes,
                           onv_error *err)
{
    *d = (onv_device){.kind = kind, .limit_bytes = limit_bytes > 0 ? limit_bytes : UINT64_MAX};
    d->state = onv_heap_calloc(1, kind->state_bytes);
    if (d->state == NULL) return onv_fail_memory(err);
    onv_status status = kind->open(d, err);
    if (status == ONV_OK) status = kind->memory(d, &d->info.free_bytes, &d->info.total_bytes, err);
    if (status != ONV_OK) onv_device_close(d);
    return status;
}

void onv_device_close(onv_device *d)
{
    if (d->state == NULL) return;
    if (d->kind->close != NULL) d->kind->close(d);
    onv_heap_free(d->state);
    d->state = NULL;
}
