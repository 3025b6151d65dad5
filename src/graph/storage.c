#include "graph/storage.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "ops/op.h"

/* What is computed from shapes stays small; a larger integer tensor is data. */
enum { MAX_HOST_ELEMS = 64 };

typedef struct sharing {
    const onv_model *model;
    const onv_live *live;
    const onv_storage_rules *rules;
    onv_storages *out;
} sharing;

/* --- The host ---------------------------------------------------------------------------------- */

/* Shape arithmetic runs on the host: what Shape and Size give, and what is computed from nothing
 * else than that and constants. */
static bool runs_on_host(const onv_model *model, const onv_node *node, const bool *is_host)
{
    if (node->op == NULL) return false;
    if ((node->op->flags & ONV_OP_HOST) != 0) return true;
    bool any = false;
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        if (!onv_is_value(node->inputs[k])) continue;
        if (is_host[node->inputs[k].index])
            any = true;
        else if (!onv_value_is_weight(onv_model_value(model, node->inputs[k])))
            return false;
    }
    return any;
}

static bool is_small(onv_model *model, const onv_value *value)
{
    onv_dim elems = onv_type_elems(&model->dims, &value->type);
    return onv_dim_is_const(elems) && elems.raw <= MAX_HOST_ELEMS;
}

onv_status onv_mark_host_values(onv_model *model, const onv_live *live, bool **is_host,
                                onv_error *err)
{
    *is_host = ONV_ARENA_ARRAY(&model->arena, bool, model->values.count);
    if (*is_host == NULL) return onv_fail_memory(err);
    if (model->has_providers) {
        for (size_t i = 0; i < model->values.count; i++)
            (*is_host)[i] = model->values.at[i].is_on_host;
        return ONV_OK;
    }
    for (uint32_t s = 0; s < live->timeline.steps.count; s++) {
        const onv_node *node = onv_model_node(model, live->timeline.steps.at[s].node);
        if (!runs_on_host(model, node, *is_host)) continue;
        for (uint32_t k = 0; k < node->n_outputs; k++) {
            if (!onv_is_value(node->outputs[k])) continue;
            const onv_value *value = onv_model_value(model, node->outputs[k]);
            (*is_host)[node->outputs[k].index] = is_small(model, value) && !value->is_output;
        }
    }
    return ONV_OK;
}

/* --- Views ------------------------------------------------------------------------------------- */

static bool applies(const sharing *s, const onv_node *node)
{
    const onv_storage_rules *rules = s->rules;
    return (rules->only == NULL || rules->only == node) &&
           (rules->only_op == NULL || strcmp(rules->only_op, node->op_type) == 0);
}

/* The input whose memory an output of a node is a view of; -1: none. */
static int view_source(const sharing *s, const onv_node *node)
{
    uint32_t k = node->traits.view_of - 1u;
    if (node->op == NULL || !s->rules->views || node->traits.view_of == 0 || !applies(s, node))
        return -1;
    return k < node->n_inputs && onv_is_value(node->inputs[k]) ? (int)k : -1;
}

/* --- In place ---------------------------------------------------------------------------------- */

/* The storage that an elementwise node may overwrite: an input of as many bytes whose last use is
 * this step, and that is neither the caller's nor a result. */
static uint32_t overwritten(const sharing *s, const onv_node *node, const onv_buffer *row)
{
    if (!s->rules->inplace || node->op == NULL || !applies(s, node)) return ONV_NO_STORAGE;
    for (uint32_t k = 0; k < node->n_inputs && k < 32; k++) {
        if ((node->traits.inplace & ONV_BIT(k)) == 0 || !onv_is_value(node->inputs[k])) continue;
        uint32_t source = s->live->of_value[node->inputs[k].index];
        if (source == UINT32_MAX || s->out->of_row[source] == ONV_NO_STORAGE) continue;
        const onv_buffer *storage = &s->out->timeline.buffers.at[s->out->of_row[source]];
        bool is_temporary = storage->kind == ONV_BUFFER_ACTIVATION;
        if (is_temporary && storage->last == row->first && storage->bytes == row->bytes)
            return s->out->of_row[source];
    }
    return ONV_NO_STORAGE;
}

/* --- Storages ---------------------------------------------------------------------------------- */

static void join(sharing *s, uint32_t row_index, uint32_t storage)
{
    const onv_buffer *row = &s->live->timeline.buffers.at[row_index];
    onv_buffer *to = &s->out->timeline.buffers.at[storage];
    s->out->of_row[row_index] = storage;
    if (row->last > to->last) to->last = row->last;
    if (row->kind == ONV_BUFFER_OUTPUT) to->kind = ONV_BUFFER_OUTPUT;
}

static void add_storage(sharing *s, uint32_t row_index)
{
    onv_buffer storage = s->live->timeline.buffers.at[row_index];
    storage.becomes = ONV_NO_BUFFER; /* the rules say what shares memory */
    onv_timeline *t = &s->out->timeline;
    s->out->of_row[row_index] = (uint32_t)t->buffers.count;
    t->buffers.at[t->buffers.count++] = storage;
}

static void place(sharing *s, uint32_t row_index)
{
    const onv_buffer *row = &s->live->timeline.buffers.at[row_index];
    const onv_value *value = onv_model_value(s->model, row->value);
    s->out->of_row[row_index] = ONV_NO_STORAGE;
    if (!onv_is_node(value->producer)) {
        add_storage(s, row_index);
        return;
    }
    const onv_node *node = onv_model_node(s->model, value->producer);
    int view = view_source(s, node);
    if (view >= 0) {
        uint32_t source = s->live->of_value[node->inputs[view].index];
        if (source == UINT32_MAX) return; /* a view of a weight */
        if (s->out->of_row[source] != ONV_NO_STORAGE) {
            join(s, row_index, s->out->of_row[source]);
            return;
        }
    }
    uint32_t target = value->output_index == 0 ? overwritten(s, node, row) : ONV_NO_STORAGE;
    if (target != ONV_NO_STORAGE)
        join(s, row_index, target);
    else
        add_storage(s, row_index);
}

onv_status onv_storages_compute(onv_arena *arena, const onv_model *model, const onv_live *live,
                                const onv_storage_rules *rules, onv_storages *storages,
                                onv_error *err)
{
    sharing s = {.model = model, .live = live, .rules = rules, .out = storages};
    onv_timeline *t = &storages->timeline;
    if (t->buffers.at == NULL)
        t->buffers.at = ONV_ARENA_ARRAY(arena, onv_buffer, live->timeline.buffers.count);
    if (storages->of_row == NULL)
        storages->of_row = ONV_ARENA_ARRAY(arena, uint32_t, live->timeline.buffers.count);
    if (t->buffers.at == NULL || storages->of_row == NULL) return onv_fail_memory(err);
    t->steps = live->timeline.steps;
    t->regions = live->timeline.regions;
    t->buffers.count = 0;
    for (uint32_t i = 0; i < live->timeline.buffers.count; i++) place(&s, i);
    return onv_timeline_peak(&storages->timeline, &storages->peak, NULL, err);
}
