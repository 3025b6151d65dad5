#include "eager/inference.h"

#include "eager/simulation.h"

/* What a branch or a body gives ends with it, not with its last use. */
static void keep_results(onv_simulation *s)
{
    for (uint32_t i = 0; i < s->eager->storages.count; i++)
        if (s->eager->storages.at[i].stays_until > 0) s->last_use[i] = ONV_NO_OP;
}

/* `shift`: steps before the first operation. */
static void finish_storage(onv_simulation *s, uint32_t index, uint32_t shift)
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
    if (storage->stays_until > 0) buffer->last = storage->stays_until - 1 + shift;
    if (storage->becomes != UINT32_MAX) buffer->becomes = s->made_row[storage->becomes];
}

static onv_status run(onv_simulation *s, onv_error *err)
{
    onv_timeline *t = s->timeline;
    ONV_TRY(onv_sim_prepare(s, err));
    keep_results(s);
    onv_sim_place_permanent(s, ONV_STORAGE_PARAMETER, ONV_STORAGE_CONSTANT);
    onv_sim_place_permanent(s, ONV_STORAGE_INPUT, ONV_STORAGE_INPUT);
    /* Weights and inputs are there before a branch begins, and if nothing runs at all. */
    size_t n_regions = s->eager->regions.count;
    uint32_t shift =
        s->eager->ops.count == 0 || (n_regions > 0 && s->eager->regions.at[0].first == 0);
    if (shift > 0) onv_sim_step(s, ONV_PHASE_FORWARD, ONV_NO_NODE, "inputs");
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
    for (uint32_t i = 0; i < s->eager->storages.count; i++) finish_storage(s, i, shift);
    return onv_timeline_check(t, err);
}

onv_status onv_inference_build(onv_model *model, const onv_eager *eager, onv_timeline *timeline,
                               onv_error *err)
{
    static const onv_train_options options = {0};
    onv_train_program program = {0};
    onv_simulation s = {.model = model,
                        .eager = eager,
                        .options = &options,
                        .program = &program,
                        .timeline = timeline,
                        .world = 1};
    *timeline = (onv_timeline){0};
    onv_arena_init(&s.arena, SIZE_MAX);
    onv_status status = run(&s, err);
    onv_arena_cleanup(&s.arena);
    onv_vec_cleanup(&s.refs);
    if (status != ONV_OK) onv_timeline_cleanup(timeline);
    return status;
}
