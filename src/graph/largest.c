#include "graph/formula.h"

#include <inttypes.h>

static bool size_of(onv_model *model, const onv_live *live, uint32_t index, onv_largest_row *row)
{
    const onv_value *value = &model->values.at[index];
    *row = (onv_largest_row){.value = {index}};
    if (onv_value_is_weight(value)) {
        if (!onv_value_is_held(value)) return false;
        row->bytes = value->tensor->bytes;
        row->elems = value->tensor->elems;
        return true;
    }
    uint32_t buffer = live->of_value[index];
    if (buffer == UINT32_MAX || !live->timeline.buffers.at[buffer].sized) return false;
    row->bytes = live->timeline.buffers.at[buffer].bytes;
    onv_dim elems =
        onv_dim_substitute_bounds(&model->dims, onv_type_elems(&model->dims, &value->type));
    row->elems = onv_dim_is_const(elems) && elems.raw > 0 ? (uint64_t)elems.raw : 0;
    return true;
}

onv_largest onv_largest_find(onv_model *model, const onv_live *live)
{
    onv_largest most = {.by_bytes.value = ONV_NO_VALUE, .by_elems.value = ONV_NO_VALUE};
    for (uint32_t i = 0; i < model->values.count; i++) {
        onv_largest_row row;
        if (!size_of(model, live, i, &row)) continue;
        if (!onv_is_value(most.by_bytes.value) || row.bytes > most.by_bytes.bytes)
            most.by_bytes = row;
        if (!onv_is_value(most.by_elems.value) || row.elems > most.by_elems.elems)
            most.by_elems = row;
        most.n_over_binding += row.bytes > ONV_WEBGPU_BINDING_BYTES;
        most.n_over_elems += row.elems > ONV_TENSORRT_ELEMS;
    }
    return most;
}

void onv_largest_note(onv_model *model, const onv_largest *most)
{
    if (most->n_over_binding > 0)
        onv_model_diag(
            model, ONV_NOTE, "largest-binding", NULL,
            "'%s' has %" PRIu64 " bytes, and WebGPU binds %" PRIu64
            " at once unless more is asked for (larger values: %" PRIu64
            "): request the device with a larger maxStorageBufferBindingSize, or split it",
            onv_model_value(model, most->by_bytes.value)->name, most->by_bytes.bytes,
            ONV_WEBGPU_BINDING_BYTES, most->n_over_binding);
    if (most->n_over_elems > 0)
        onv_model_diag(model, ONV_NOTE, "largest-volume", NULL,
                       "'%s' has %" PRIu64 " elements, and a tensor of TensorRT %" PRIu64
                       " at most (larger values: %" PRIu64
                       "): split it, or bind smaller dimensions (--batch, --dim)",
                       onv_model_value(model, most->by_elems.value)->name, most->by_elems.elems,
                       ONV_TENSORRT_ELEMS, most->n_over_elems);
}
