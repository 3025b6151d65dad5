#include "eager/inference.h"

#include <string.h>

#include "base/fail.h"
#include "eager/calls.h"
#include "eager/simulation.h"

/* What a branch or a body gives ends with it, not with its last use. */
static void keep_results(onv_simulation *s)
{
    for (uint32_t i = 0; i < s->eager->storages.count; i++)
        if (s->eager->storages.at[i].stays_until > 0) s->last_use[i] = ONV_NO_OP;
}

/* By operation: how many branches and bodies are around it. What stands in one is not looked at: it ends
 * with the region. */
static onv_status count_regions(onv_simulation *s, uint32_t **around, onv_error *err)
{
    *around = ONV_ARENA_ARRAY(&s->arena, uint32_t, s->eager->ops.count + 1);
    if (*around == NULL) return onv_fail_memory(err);
    for (uint32_t i = 0; i < s->eager->regions.count; i++) {
        (*around)[s->eager->regions.at[i].first]++;
        (*around)[s->eager->regions.at[i].end]--;
    }
    for (uint32_t i = 1; i <= s->eager->ops.count; i++) (*around)[i] += (*around)[i - 1];
    return ONV_OK;
}

/* Arguments of calls, and names; or what was recorded of them. */
static onv_status find_holders(onv_simulation *s, const onv_lower_options *how, uint32_t **held,
                               onv_error *err)
{
    uint32_t *around;
    /* Graphs do not tell all calls: two that follow each other may be one there. */
    bool is_least = how->least && s->model->program == NULL;
    onv_held_end end = how->least ? ONV_HELD_LEAST : how->locals ? ONV_HELD_MOST : ONV_HELD_TOLD;
    if ((how->graph_module || is_least) && !s->eager->was_recorded) {
        *held = ONV_ARENA_ARRAY(&s->arena, uint32_t, s->eager->storages.count);
        return *held != NULL ? ONV_OK : onv_fail_memory(err);
    }
    ONV_TRY(onv_sim_find_holds(s, end, held, err));
    if (s->eager->was_recorded) return ONV_OK;
    ONV_TRY(count_regions(s, &around, err));
    uint32_t *made_by = s->again_use; /* nothing runs again */
    for (uint32_t i = 0; i < s->eager->ops.count; i++)
        for (uint32_t k = 0; k < s->eager->ops.at[i].n_out; k++)
            made_by[onv_sim_storage(s, s->eager->ops.at[i].out[k])] = i;
    for (uint32_t i = 0; i < s->eager->storages.count; i++)
        if (around[(*held)[i]] > 0 || (s->eager->ops.count > 0 && around[made_by[i]] > 0))
            (*held)[i] = 0;
    return ONV_OK;
}

/* `shift`: steps before the first operation. */
static void finish_storage(onv_simulation *s, uint32_t index, uint32_t held, uint32_t shift)
{
    const onv_eager_storage *storage = &s->eager->storages.at[index];
    uint32_t row = s->made_row[index];
    if (row == ONV_NO_ROW) return;
    onv_buffer *buffer = &s->timeline->buffers.at[row];
    buffer->bound = storage->is_bound;
    buffer->value = storage->value;
    if (onv_is_value(storage->value) && !onv_sim_is_permanent(s, index))
        buffer->label = onv_model_value(s->model, storage->value)->name;
    if (storage->is_output && buffer->kind == ONV_BUFFER_ACTIVATION)
        buffer->kind = ONV_BUFFER_OUTPUT;
    if (held > 0 && held + shift > buffer->last) buffer->last = held + shift;
    if (storage->stays_until > 0) buffer->last = storage->stays_until - 1 + shift;
    if (storage->becomes != UINT32_MAX) buffer->becomes = s->made_row[storage->becomes];
}

/* The older exporter turns weights of linear layers, which then have names of its own: one that looks like a turned table may be that
 * table, as in networks whose last layer shares it with the first. */
static bool is_turned(const onv_eager_storage *weight, const onv_eager_storage *table)
{
    return weight->kind == ONV_STORAGE_PARAMETER && weight->rank == 2 && weight->label != NULL &&
           strncmp(weight->label, "onnx::", strlen("onnx::")) == 0 &&
           weight->dims[0] == table->dims[1] && weight->dims[1] == table->dims[0];
}

static void share_tables(onv_simulation *s)
{
    enum { MOST_TABLES = 16 };
    const onv_eager *eager = s->eager;
    for (uint32_t i = 0, tables = 0; i < eager->ops.count && tables < MOST_TABLES; i++) {
        const onv_eager_op *op = &eager->ops.at[i];
        if (op->aten != ONV_ATEN_index_select && op->aten != ONV_ATEN_embedding) continue;
        const onv_eager_storage *table = &eager->storages.at[onv_sim_storage(s, op->in[0].tensor)];
        if (table->kind != ONV_STORAGE_PARAMETER || table->rank != 2) continue;
        tables++;
        for (uint32_t k = 0; k < eager->storages.count; k++)
            if (is_turned(&eager->storages.at[k], table) && s->made_row[k] != ONV_NO_ROW)
                s->timeline->buffers.at[s->made_row[k]].bytes = 0;
    }
}

/* Weights that modules have since the pass before, until they get new ones. */
static void place_attributes(onv_simulation *s)
{
    for (uint32_t i = 0; i < s->eager->storages.count && !s->failed; i++) {
        const onv_eager_storage *storage = &s->eager->storages.at[i];
        if (storage->is_attribute)
            s->output_row[i] =
                onv_sim_alloc(s, storage->bytes, ONV_BUFFER_ACTIVATION, storage->label);
    }
}

static onv_status run(onv_simulation *s, const onv_lower_options *how, onv_error *err)
{
    onv_timeline *t = s->timeline;
    uint32_t *held;
    ONV_TRY(onv_sim_prepare(s, err));
    ONV_TRY(onv_sim_prepare_plan(s, err));
    ONV_TRY(find_holders(s, how, &held, err));
    keep_results(s);
    if (s->options->weights != NULL)
        ONV_TRY(onv_weight_find(s->eager, &s->arena, &s->quantized_rows, err));
    size_t n_rows = s->eager->storages.count + s->eager->ops.count; /* mostly */
    if (!onv_vec_reserve(&t->steps, s->eager->ops.count + 1) ||
        !onv_vec_reserve(&t->buffers, n_rows) || !onv_vec_reserve(&s->refs, n_rows))
        return onv_fail_memory(err);
    onv_sim_place_permanent(s);
    if (!how->graph_module) place_attributes(s);
    /* Weights and inputs are there before a branch begins, and if nothing runs at all. */
    size_t n_regions = s->eager->regions.count;
    if (s->eager->ops.count == 0 || (n_regions > 0 && s->eager->regions.at[0].first == 0))
        onv_sim_step(s, ONV_PHASE_FORWARD, ONV_NO_NODE, "inputs");
    uint32_t shift = (uint32_t)t->steps.count;
    /* What a branch is the first to use stays behind it all the same. */
    for (size_t i = 0; n_regions > 0 && i < s->eager->ops.count; i++)
        onv_sim_handle(s, &s->eager->ops.at[i].workspace);
    onv_sim_forward(s);
    if (s->failed || !onv_vec_reserve(&t->regions, n_regions)) return onv_fail_memory(err);
    for (size_t i = 0; i < n_regions; i++) {
        onv_region region = s->eager->regions.at[i];
        region.first += shift;
        region.end += shift;
        t->regions.at[t->regions.count++] = region;
    }
    for (size_t i = 0; i < t->buffers.count; i++)
        if (t->buffers.at[i].last == UINT32_MAX)
            t->buffers.at[i].last = (uint32_t)t->steps.count - 1;
    for (uint32_t i = 0; i < s->eager->storages.count; i++) finish_storage(s, i, held[i], shift);
    if (how->least) share_tables(s);
    return onv_timeline_check(t, err);
}

onv_status onv_inference_build(onv_model *model, const onv_eager *eager,
                               const onv_lower_options *how, onv_timeline *timeline,
                               onv_requests *requests, onv_error *err)
{
    const onv_train_options options = {.weights = how->weights, .lower = {.cuda = how->cuda}};
    onv_train_program program = {0};
    onv_simulation s = {.model = model,
                        .eager = eager,
                        .options = &options,
                        .program = &program,
                        .timeline = timeline,
                        .requests = requests,
                        .world = 1};
    *timeline = (onv_timeline){0};
    onv_arena_init(&s.arena, SIZE_MAX);
    onv_arena_init(&s.plan_arena, SIZE_MAX);
    onv_status status = run(&s, how, err);
    onv_sim_close(&s);
    if (status != ONV_OK) onv_timeline_cleanup(timeline);
    return status;
}
