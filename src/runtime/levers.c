#include "runtime/levers.h"

#include "graph/storage.h"

static void set(onv_lever *lever, const onv_live *live, uint64_t weights, uint64_t peak)
{
    uint64_t before = live->weight_bytes + live->peak_bytes; /* both sums were checked */
    lever->known = true;
    lever->peak_bytes = peak;
    lever->weight_bytes = weights;
    lever->saved_bytes = weights + peak < before ? before - weights - peak : 0;
}

static onv_status share(onv_model *model, const onv_live *live, const onv_storage_rules *rules,
                        onv_lever *lever, onv_error *err)
{
    onv_storages storages;
    ONV_TRY(onv_storages_compute(model, live, rules, &storages, err));
    set(lever, live, live->weight_bytes, storages.peak.bytes);
    return ONV_OK;
}

/* Float types of more than 16 bits become half as large, or a quarter. */
static uint64_t halved(onv_dtype dtype, uint64_t bytes)
{
    return dtype == ONV_FLOAT ? bytes / 2 : dtype == ONV_DOUBLE ? bytes / 4 : bytes;
}

static onv_status halve(onv_model *model, const onv_live *live, onv_lever *lever, onv_error *err)
{
    onv_timeline smaller = live->timeline;
    onv_buffer *rows = smaller.buffers.at =
        onv_arena_copy(&model->arena, live->timeline.buffers.at,
                       live->timeline.buffers.count * sizeof *live->timeline.buffers.at);
    uint64_t weights = 0;
    onv_peak peak;
    if (rows == NULL) return onv_fail_memory(err);
    for (uint32_t i = 0; i < live->timeline.buffers.count; i++) {
        const onv_type *type = &onv_model_value(model, rows[i].value)->type;
        if (type->kind == ONV_TYPE_TENSOR)
            rows[i].bytes = halved((onv_dtype)type->dtype, rows[i].bytes);
    }
    for (size_t i = 0; i < model->values.count; i++) {
        const onv_value *value = &model->values.at[i];
        if (onv_value_is_held(value))
            weights += value->packed != NULL
                           ? value->tensor->bytes
                           : halved((onv_dtype)value->tensor->type.dtype, value->tensor->bytes);
    }
    ONV_TRY(onv_timeline_peak(&smaller, &peak, NULL, err));
    set(lever, live, weights, peak.bytes);
    return ONV_OK;
}

onv_status onv_levers_compute(onv_model *model, const onv_live *live, uint64_t order_peak,
                              onv_levers *levers, onv_error *err)
{
    static const onv_storage_rules views = {.views = true};
    static const onv_storage_rules inplace = {.views = true, .inplace = true};
    *levers = (onv_levers){0};
    ONV_TRY(share(model, live, &views, &levers->of[ONV_LEVER_VIEWS], err));
    ONV_TRY(share(model, live, &inplace, &levers->of[ONV_LEVER_INPLACE], err));
    if (order_peak != UINT64_MAX)
        set(&levers->of[ONV_LEVER_ORDER], live, live->weight_bytes, order_peak);
    return halve(model, live, &levers->of[ONV_LEVER_HALF], err);
}
