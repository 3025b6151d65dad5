#include "ort/node_stats.h"

#include <string.h>

#include "base/fail.h"
#include "ort/murmur.h"

static const uint64_t ALIGN_BYTES = 256;

typedef struct counter {
    onv_model *model;
    bool *is_new;     /* by value: its node allocates it */
    bool *is_counted; /* by value */
} counter;

static void hash_value(const onv_model *model, onv_value_id id, uint32_t hash[4])
{
    const char *name = onv_is_value(id) ? onv_model_value(model, id)->name : "";
    onv_murmur3_x86_128(name, strlen(name), hash[0], hash);
}

/* The hash in the name of a node. */
static uint64_t hash_of(const onv_model *model, const onv_node *node)
{
    uint32_t hash[4] = {0};
    for (uint32_t k = 0; k < node->n_inputs; k++) hash_value(model, node->inputs[k], hash);
    for (uint32_t k = 0; k < node->n_outputs; k++) hash_value(model, node->outputs[k], hash);
    return hash[0] | (uint64_t)hash[1] << 32;
}

/* What the plan of one side, the device's or the host's, makes a buffer for. */
static onv_status mark_new(counter *c, const onv_live *live, onv_ort_provider side,
                           const onv_ort_session *session, onv_error *err)
{
    onv_ort_plan plan;
    onv_ort_session of_side = *session;
    of_side.provider = side;
    ONV_TRY(onv_ort_plan_compute(c->model, live, &of_side, &plan, err));
    for (uint32_t b = 0; b < plan.count; b++) {
        onv_value_id id = plan.buffers[b].value;
        if (onv_is_value(id)) c->is_new[id.index] = true;
    }
    return ONV_OK;
}

static uint64_t bytes_of(const onv_model *model, const onv_live *live, onv_value_id id)
{
    const onv_value *value = onv_model_value(model, id);
    if (onv_value_is_weight(value)) return value->tensor != NULL ? value->tensor->bytes : 0;
    uint32_t row = live->of_value[id.index];
    return row != UINT32_MAX ? live->timeline.buffers.at[row].bytes : 0;
}

static onv_ort_node_stat count_node(counter *c, const onv_live *live, const onv_node *node)
{
    onv_ort_node_stat row = {.name = node->name[0] != '\0' ? node->name : node->op_type,
                             .hash = hash_of(c->model, node)};
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        onv_value_id id = node->inputs[k];
        if (!onv_is_value(id) || c->is_counted[id.index]) continue;
        c->is_counted[id.index] = true;
        row.input_bytes += bytes_of(c->model, live, id);
    }
    for (uint32_t k = 0; k < node->n_outputs; k++) {
        onv_value_id id = node->outputs[k];
        if (!onv_is_value(id) || !c->is_new[id.index]) continue;
        c->is_counted[id.index] = true;
        uint64_t bytes = bytes_of(c->model, live, id);
        row.dynamic_bytes += (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    }
    return row;
}

onv_status onv_ort_node_stats_compute(onv_model *model, const onv_live *live,
                                      const onv_ort_session *session, onv_ort_node_stats *stats,
                                      onv_error *err)
{
    uint32_t n_steps = (uint32_t)live->timeline.steps.count;
    counter c = {.model = model,
                 .is_new = ONV_ARENA_ARRAY(&model->arena, bool, model->values.count),
                 .is_counted = ONV_ARENA_ARRAY(&model->arena, bool, model->values.count)};
    stats->count = 0;
    stats->rows = ONV_ARENA_ARRAY(&model->arena, onv_ort_node_stat, n_steps);
    if (c.is_new == NULL || c.is_counted == NULL || stats->rows == NULL)
        return onv_fail_memory(err);
    ONV_TRY(mark_new(&c, live, ONV_ORT_CUDA, session, err));
    ONV_TRY(mark_new(&c, live, ONV_ORT_HOST, session, err));
    for (uint32_t i = 0; i < model->values.count; i++)
        if (!onv_is_node(model->values.at[i].producer)) c.is_new[i] = false;
    for (uint32_t s = 0; s < n_steps; s++) {
        const onv_node *node = onv_model_node(model, live->timeline.steps.at[s].node);
        if (node->graph.index == 0 && node->code != ONV_OP_Constant)
            stats->rows[stats->count++] = count_node(&c, live, node);
    }
    return ONV_OK;
}
