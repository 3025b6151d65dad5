/* What can be asked of memory as it was served: executions that were kept, and replays. */
#include <string.h>

#include "api/ask.h"

/* --- Executions -------------------------------------------------------------------------------- */

size_t onv_analysis_execution_count(const onv_analysis *analysis)
{
    return analysis->executions.list.count;
}

/* Swept for the first question; the sums were checked when the figures were made, so all that can fail is memory. */
static const struct onv_asked_execution *sweep(const onv_analysis *analysis, size_t index)
{
    onv_asked *asked = analysis->asked;
    const onv_timeline *t = &analysis->executions.list.at[index].made.timeline;
    if (asked->executions == NULL)
        asked->executions = ONV_ARENA_ARRAY(&asked->arena, struct onv_asked_execution,
                                            analysis->executions.list.count);
    if (asked->executions == NULL) return NULL;
    struct onv_asked_execution *of = &asked->executions[index];
    if (of->live != NULL) return of;
    uint64_t *live = ONV_ARENA_ARRAY(&asked->arena, uint64_t, t->steps.count + 1);
    if (live == NULL || onv_timeline_peak(t, &of->peak, live, NULL) != ONV_OK) return NULL;
    of->live = live;
    return of;
}

bool onv_analysis_execution_get(const onv_analysis *analysis, size_t index,
                                onv_execution_info *info, size_t size)
{
    if (index >= analysis->executions.list.count) return false;
    const onv_kept_execution *kept = &analysis->executions.list.at[index];
    const struct onv_asked_execution *of = sweep(analysis, index);
    if (of == NULL) return false;
    const onv_placement *p = &kept->made.placement;
    onv_execution_info full = {.runtime = kept->runtime,
                               .plan = kept->plan != ONV_NO_PLAN ? kept->plan : ONV_NO_INDEX,
                               .peak_bytes = of->peak.bytes,
                               .peak_step = of->peak.step,
                               .allocated_peak_bytes = p->figures.allocated_peak,
                               .reserved_peak_bytes = p->figures.reserved_peak,
                               .measured_from = kept->made.timeline.measured_from,
                               .steps = kept->made.timeline.steps.count,
                               .buffers = kept->made.timeline.buffers.count,
                               .segments = p->segments.count};
    return onv_give(info, size, &full, sizeof full);
}

bool onv_analysis_execution_step_get(const onv_analysis *analysis, size_t execution, size_t index,
                                     onv_execution_step_info *info, size_t size)
{
    if (execution >= analysis->executions.list.count) return false;
    const onv_kept_execution *kept = &analysis->executions.list.at[execution];
    if (index >= kept->made.timeline.steps.count) return false;
    const struct onv_asked_execution *of = sweep(analysis, execution);
    if (of == NULL) return false;
    const onv_step *step = &kept->made.timeline.steps.at[index];
    bool is_node = onv_is_node(step->node);
    onv_execution_step_info full = {
        .node = onv_ask_node(kept->model, step->node),
        .label = step->label == NULL && is_node ? onv_model_node(kept->model, step->node)->op_type
                                                : step->label,
        .phase = onv_phase_name((onv_phase)step->phase),
        .iteration = step->iteration,
        .is_recompute = step->is_recompute,
        .live_bytes = of->live[index],
        .allocated_bytes = kept->made.placement.allocated_at[index],
        .reserved_bytes = kept->made.placement.reserved_at[index],
    };
    return onv_give(info, size, &full, sizeof full);
}

bool onv_analysis_execution_buffer_get(const onv_analysis *analysis, size_t execution, size_t index,
                                       onv_execution_buffer_info *info, size_t size)
{
    if (execution >= analysis->executions.list.count) return false;
    const onv_kept_execution *kept = &analysis->executions.list.at[execution];
    if (index >= kept->made.timeline.buffers.count) return false;
    const onv_buffer *b = &kept->made.timeline.buffers.at[index];
    const onv_place *place = &kept->made.placement.places.at[index];
    bool is_own = kept->model == &analysis->model;
    onv_execution_buffer_info full = {
        .name = b->label,
        .tensor = is_own ? onv_ask_value(b->value) : ONV_NO_INDEX,
        .kind = onv_buffer_kind_name((onv_buffer_kind)b->kind),
        .bytes = b->bytes,
        .first_step = b->first,
        .last_step = b->last,
        .within = b->within != ONV_NO_BUFFER ? b->within : ONV_NO_INDEX,
        .is_transient = b->is_transient,
        .segment = place->segment != ONV_NO_SEGMENT ? place->segment : ONV_NO_INDEX,
        .offset = place->offset,
    };
    return onv_give(info, size, &full, sizeof full);
}

bool onv_analysis_execution_segment_get(const onv_analysis *analysis, size_t execution,
                                        size_t index, onv_execution_segment_info *info, size_t size)
{
    if (execution >= analysis->executions.list.count) return false;
    const onv_placement *p = &analysis->executions.list.at[execution].made.placement;
    if (index >= p->segments.count) return false;
    const onv_taken_segment *segment = &p->segments.at[index];
    onv_execution_segment_info full = {segment->bytes, onv_placement_step_of(p, segment->taken),
                                       onv_placement_step_of(p, segment->returned)};
    return onv_give(info, size, &full, sizeof full);
}

/* --- Replays ----------------------------------------------------------------------------------- */

bool onv_analysis_replay_get(const onv_analysis *analysis, onv_replay_info *info, size_t size)
{
    const onv_replays *r = &analysis->replays;
    if (r->kind == NULL) return false;
    onv_replay_info full = {0};
    onv_replays_info(r, &full);
    return onv_give(info, size, &full, sizeof full);
}

size_t onv_analysis_replay_mode_count(const onv_analysis *analysis)
{
    return analysis->replays.results.count;
}

bool onv_analysis_replay_mode_get(const onv_analysis *analysis, size_t index,
                                  onv_replay_mode_info *info, size_t size)
{
    if (index >= analysis->replays.results.count) return false;
    const onv_replay_result *r = &analysis->replays.results.at[index];
    onv_replay_mode_info full = {.mode = r->mode,
                                 .runtime = r->runtime,
                                 .plan = r->plan,
                                 .agrees = r->agrees,
                                 .predicted_bytes = r->predicted_bytes,
                                 .measured_bytes = r->measured_bytes,
                                 .tolerance_bytes = r->tolerance_bytes,
                                 .granularity_bytes = r->granularity_bytes,
                                 .predicted_live_bytes = r->predicted_live,
                                 .measured_live_bytes = r->measured_live,
                                 .most_allocations = r->most_allocations,
                                 .buffers = r->n_buffers,
                                 .checked_buffers = r->n_checked,
                                 .free_before = r->free_before,
                                 .free_least = r->free_least,
                                 .free_after = r->free_after,
                                 .foreign_bytes = r->foreign_bytes,
                                 .has_pool = r->has_pool,
                                 .out_of_memory = r->out_of_memory,
                                 .faults = r->n_faults,
                                 .steps = r->n_steps};
    if (r->has_pool) {
        full.pool_used_peak_bytes = r->pool_used;
        full.pool_reserved_peak_bytes = r->pool_reserved;
        full.pool_predicted_reserved_peak_bytes = r->predicted_pool_reserved;
    }
    if (r->out_of_memory) {
        full.oom_step = r->oom_step;
        full.oom_bytes = r->oom_bytes;
        full.oom_free_bytes = r->oom_free;
    }
    return onv_give(info, size, &full, sizeof full);
}

bool onv_analysis_replay_step_get(const onv_analysis *analysis, size_t mode, size_t index,
                                  onv_replay_step_info *info, size_t size)
{
    if (mode >= analysis->replays.results.count) return false;
    const onv_replay_result *r = &analysis->replays.results.at[mode];
    if (index >= r->n_steps) return false;
    onv_replay_step_info full = {r->predicted_held_at[index], r->measured_held_at[index],
                                 r->predicted_live_at[index], r->measured_live_at[index]};
    return onv_give(info, size, &full, sizeof full);
}

bool onv_analysis_replay_fault_get(const onv_analysis *analysis, size_t mode, size_t index,
                                   onv_fault_info *info, size_t size)
{
    if (mode >= analysis->replays.results.count) return false;
    const onv_replay_result *r = &analysis->replays.results.at[mode];
    if (index >= r->n_faults || index >= ONV_REPLAY_MAX_FAULTS) return false;
    const onv_fault *fault = &r->faults[index];
    onv_fault_info full = {onv_fault_name(fault->kind), fault->step, fault->offset, fault->text};
    return onv_give(info, size, &full, sizeof full);
}

size_t onv_analysis_replay_max_batch_count(const onv_analysis *analysis)
{
    return analysis->replays.max_batches.count;
}

bool onv_analysis_replay_max_batch_get(const onv_analysis *analysis, size_t index,
                                       onv_replay_max_batch_info *info, size_t size)
{
    if (index >= analysis->replays.max_batches.count) return false;
    const onv_replay_max_batch *max_batch = &analysis->replays.max_batches.at[index];
    onv_replay_max_batch_info full = {max_batch->mode,           max_batch->runtime,
                                      max_batch->plan,           max_batch->predicted_batch,
                                      max_batch->measured_batch, max_batch->is_least,
                                      max_batch->agrees};
    return onv_give(info, size, &full, sizeof full);
}
