#include "api/names.h"

#include <string.h>

#include "alloc/alloc.h"
#include "api/sized.h"
#include "api/watch.h"
#include "ckpt/training.h"
#include "device/device.h"
#include "eager/pytorch.h"
#include "order/order.h"
#include "ort/settings.h"
#include "runtime/runtime.h"
#include "speed/gpu.h"

const char *onv_version(void)
{
    return ONV_VERSION;
}

/* Row `i` of a list of pointers to structs, or of structs, with a name and a summary. */
#define ROW(list, n, row)                                                                          \
    case list:                                                                                     \
        if (i < (n)) {                                                                             \
            name = (row)->name;                                                                    \
            about = (row)->summary;                                                                \
        }                                                                                          \
        break

const char *onv_name_at(onv_names list, size_t i, const char **summary)
{
    const char *name = NULL, *about = "";
    switch (list) {
        ROW(ONV_NAMES_RUNTIMES, onv_n_runtimes, onv_runtimes[i]);
        ROW(ONV_NAMES_ORDERS, onv_n_orders, &onv_orders[i]);
        ROW(ONV_NAMES_OPTIMIZERS, onv_n_optimizers, &onv_optimizers[i]);
        ROW(ONV_NAMES_WEIGHT_FORMATS, onv_n_weight_formats, &onv_weight_formats[i]);
        ROW(ONV_NAMES_ALLOCATORS, onv_n_alloc_models, onv_alloc_models[i]);
        ROW(ONV_NAMES_REPLAY_DEVICES, onv_n_device_kinds, onv_device_kinds[i]);
    case ONV_NAMES_PYTORCH: name = onv_pytorch_release(i); break;
    case ONV_NAMES_ORT_SETTINGS: name = onv_ort_setting_name(i, &about); break;
    }
    if (summary != NULL && name != NULL) *summary = about;
    return name;
}

const char *onv_checkpoint_name(size_t index, const char **summary, const char **argument)
{
    if (index >= onv_n_ckpt_plan_kinds) return NULL;
    if (summary != NULL) *summary = onv_ckpt_plan_kinds[index]->summary;
    if (argument != NULL) *argument = onv_ckpt_plan_kinds[index]->argument;
    return onv_ckpt_plan_kinds[index]->name;
}

/* --- The table of GPUs ------------------------------------------------------------------------- */

enum { MAX_CANDIDATES = 64 };

static onv_gpu_info info_of(const onv_gpu *gpu)
{
    return (onv_gpu_info){.name = gpu->name,
                          .nominal_bytes = (uint64_t)gpu->nominal_gib << 30,
                          .usable_bytes = onv_gpu_bytes(gpu),
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

/* --- Lists in options ------------------------------------------------------------------------- */

bool onv_is_listed(const char *list, const char *name)
{
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (onv_is_name(at, strcspn(at, ","), name)) return true;
    }
    return list == NULL;
}

const char *onv_nearest_name(const char *word, const char *const *names)
{
    return onv_nearest(word, strlen(word), onv_name_in, names);
}

bool onv_is_called(const char *word, const char *name)
{
    return onv_is_name(word, strlen(word), name);
}

const char *onv_choice(const void *list, size_t index)
{
    return onv_name_at(*(const onv_names *)list, index, NULL);
}

const char *onv_allocator_choice(const void *unused, size_t index)
{
    (void)unused;
    /* `arena` is simulated by the planner. */
    return index == 0 ? "arena" : onv_name_at(ONV_NAMES_ALLOCATORS, index - 1, NULL);
}

onv_status onv_check_runtimes(const char *list, onv_error *err)
{
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        size_t length = strcspn(at, ",");
        bool found = false;
        for (size_t i = 0; i < onv_n_runtimes; i++)
            found |= onv_is_name(at, length, onv_runtimes[i]->name);
        if (!found)
            return onv_fail_choice(err, "--runtime", at, length, onv_choice, ONV_CHOICE(RUNTIMES));
    }
    return ONV_OK;
}
