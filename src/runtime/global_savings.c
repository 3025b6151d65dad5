#include "runtime/global_savings.h"

#include "graph/storage.h"
#include "runtime/savings.h"

static void set(onv_global_saving *saving, const onv_live *live, uint64_t weights, uint64_t peak)
{
    uint64_t before = live->weight_bytes + live->peak_bytes; /* both sums were checked */
    saving->known = true;
    saving->peak_bytes = peak;
    saving->weight_bytes = weights;
    saving->saved_bytes = weights + peak < before ? before - weights - peak : 0;
}

static onv_status share(onv_arena *arena, const onv_model *model, const onv_live *live,
                        const onv_storage_rules *rules, onv_storages *storages,
                        onv_global_saving *saving, onv_error *err)
{
    ONV_TRY(onv_storages_compute(arena, model, live, rules, storages, err));
    set(saving, live, live->weight_bytes, storages->peak.bytes);
    return ONV_OK;
}

/* Float types of more than 16 bits become half as large, or a quarter. */
static uint64_t halved(onv_dtype dtype, uint64_t bytes)
{
    return dtype == ONV_FLOAT ? bytes / 2 : dtype == ONV_DOUBLE ? bytes / 4 : bytes;
}

static onv_status halve(const onv_model *model, const onv_live *live, onv_global_saving *saving,
                        onv_error *err)
{
    uint64_t weights = 0, peak;
    for (size_t i = 0; i < model->values.count; i++) {
        const onv_value *value = &model->values.at[i];
        if (onv_value_is_held(value))
            weights += value->is_packed
                           ? value->tensor->bytes
                           : halved((onv_dtype)value->tensor->type.dtype, value->tensor->bytes);
    }
    ONV_TRY(onv_savings_halve(model, live, ONV_NO_VALUE, NULL, &peak, err));
    set(saving, live, weights, peak);
    return ONV_OK;
}

static onv_status compute(onv_arena *arena, const onv_model *model, const onv_live *live,
                          onv_global_savings *savings, onv_error *err)
{
    static const onv_storage_rules views = {.views = true};
    static const onv_storage_rules inplace = {.views = true, .inplace = true};
    onv_storages storages = {0};
    onv_global_saving *of = savings->of;
    ONV_TRY(share(arena, model, live, &views, &storages, &of[ONV_GLOBAL_SAVING_VIEWS], err));
    ONV_TRY(share(arena, model, live, &inplace, &storages, &of[ONV_GLOBAL_SAVING_INPLACE], err));
    return halve(model, live, &of[ONV_GLOBAL_SAVING_HALF], err);
}

onv_status onv_global_savings_compute(const onv_model *model, const onv_live *live,
                                      uint64_t order_peak, onv_global_savings *savings,
                                      onv_error *err)
{
    onv_arena arena;
    onv_arena_init(&arena, model->arena.limit_bytes);
    *savings = (onv_global_savings){0};
    if (order_peak != UINT64_MAX)
        set(&savings->of[ONV_GLOBAL_SAVING_ORDER], live, live->weight_bytes, order_peak);
    onv_status status = compute(&arena, model, live, savings, err);
    onv_arena_cleanup(&arena);
    return status;
}
