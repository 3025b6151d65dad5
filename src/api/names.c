#include "api/names.h"

#include <string.h>

#include "alloc/alloc.h"
#include "ckpt/training.h"
#include "device/device.h"
#include "eager/pytorch.h"
#include "order/order.h"
#include "ort/settings.h"
#include "runtime/runtime.h"

const char *onv_version(void)
{
    return ONV_VERSION;
}

const char *onv_runtime_name(size_t index, const char **summary)
{
    if (index >= onv_n_runtimes) return NULL;
    if (summary != NULL) *summary = onv_runtimes[index]->summary;
    return onv_runtimes[index]->name;
}

const char *onv_weight_format_name(size_t index, const char **summary)
{
    if (index >= onv_n_weight_formats) return NULL;
    if (summary != NULL) *summary = onv_weight_formats[index].summary;
    return onv_weight_formats[index].name;
}

const char *onv_optimizer_name(size_t index, const char **summary)
{
    if (index >= onv_n_optimizers) return NULL;
    if (summary != NULL) *summary = onv_optimizers[index]->summary;
    return onv_optimizers[index]->name;
}

const char *onv_pytorch_name(size_t index)
{
    return onv_pytorch_release(index);
}

const char *onv_checkpoint_name(size_t index, const char **summary, bool *takes_count)
{
    if (index >= onv_n_ckpt_plan_kinds) return NULL;
    if (summary != NULL) *summary = onv_ckpt_plan_kinds[index]->summary;
    if (takes_count != NULL) *takes_count = onv_ckpt_plan_kinds[index]->takes_count;
    return onv_ckpt_plan_kinds[index]->name;
}

const char *onv_order_name(size_t index, const char **summary)
{
    if (index >= onv_n_orders) return NULL;
    if (summary != NULL) *summary = onv_orders[index]->summary;
    return onv_orders[index]->name;
}

const char *onv_allocator_name(size_t index, const char **summary)
{
    if (index >= onv_n_alloc_models) return NULL;
    if (summary != NULL) *summary = onv_alloc_models[index]->summary;
    return onv_alloc_models[index]->name;
}

const char *onv_ort_setting_at(size_t index, const char **values)
{
    return onv_ort_setting_name(index, values);
}

const char *onv_replay_device_name(size_t index, const char **summary)
{
    if (index >= onv_n_device_kinds) return NULL;
    if (summary != NULL) *summary = onv_device_kinds[index]->summary;
    return onv_device_kinds[index]->name;
}

/* --- Lists in options ------------------------------------------------------------------------- */

bool onv_is_listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    }
    return list == NULL;
}

const char *onv_nearest_name(const char *word, const char *const *names)
{
    return onv_nearest(word, strlen(word), onv_name_in, names);
}

const char *onv_runtime_choice(const void *unused, size_t index)
{
    (void)unused;
    return onv_runtime_name(index, NULL);
}

const char *onv_optimizer_choice(const void *unused, size_t index)
{
    (void)unused;
    return onv_optimizer_name(index, NULL);
}

const char *onv_order_choice(const void *unused, size_t index)
{
    (void)unused;
    return onv_order_name(index, NULL);
}

const char *onv_weight_choice(const void *unused, size_t index)
{
    (void)unused;
    return onv_weight_format_name(index, NULL);
}

const char *onv_allocator_choice(const void *unused, size_t index)
{
    (void)unused;
    /* `arena` is simulated by the planner. */
    return index == 0 ? "arena" : onv_allocator_name(index - 1, NULL);
}

onv_status onv_check_runtimes(const char *list, onv_error *err)
{
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        size_t length = strcspn(at, ",");
        bool found = false;
        for (size_t i = 0; i < onv_n_runtimes; i++)
            found |= strlen(onv_runtimes[i]->name) == length &&
                     strncmp(onv_runtimes[i]->name, at, length) == 0;
        if (!found) return onv_fail_choice(err, "--runtime", at, length, onv_runtime_choice, NULL);
    }
    return ONV_OK;
}
