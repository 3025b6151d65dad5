/* The public view of the table of GPUs. */
#include "api/sized.h"
#include "api/watch.h"
#include "onnxvram/onnxvram.h"
#include "speed/gpu.h"

enum { MAX_CANDIDATES = 64 };

static onv_gpu_info info_of(const onv_gpu *gpu)
{
    return (onv_gpu_info){.name = gpu->name,
                          .nominal_bytes = gpu->nominal_bytes,
                          .usable_bytes = gpu->usable_bytes,
                          .cc_major = gpu->cc_major,
                          .cc_minor = gpu->cc_minor,
                          .source = gpu->source};
}

bool onv_gpu_at_get(size_t index, onv_gpu_info *info, size_t size)
{
    if (index >= onv_n_gpus) return false;
    onv_gpu_info full = info_of(&onv_gpus[index]);
    return onv_give(info, size, &full, sizeof full);
}

size_t onv_gpu_by_name_get(const char *name, onv_gpu_info *found, size_t capacity, size_t size)
{
    onv_locale locale = onv_locale_enter();
    const onv_gpu *rows[MAX_CANDIDATES] = {onv_gpu_find(name)};
    size_t count = rows[0] != NULL ? 1 : onv_gpu_candidates(name, rows, MAX_CANDIDATES);
    onv_locale_leave(locale);
    for (size_t i = 0; i < count && i < capacity && i < MAX_CANDIDATES; i++) {
        onv_gpu_info full = info_of(rows[i]);
        onv_give((char *)found + i * size, size, &full, sizeof full);
    }
    return count;
}
