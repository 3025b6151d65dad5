#include "ckpt/beside.h"

#include "base/fail.h"

static uint32_t first_of_phase(const onv_timeline *t, uint32_t end, onv_phase phase)
{
    while (end > 0 && t->steps.at[end - 1].phase == phase) end--;
    return end;
}

/* Nor are workspaces of libraries counted anywhere. */
#define NOT_BESIDE (UINT32_C(1) << ONV_BUFFER_ACTIVATION | ONV_BUFFERS_BESIDE_TENSORS)

/* During each step, and of that what was there before it. */
static onv_status sum_beside(const onv_timeline *t, uint64_t *during, uint64_t *before,
                             onv_error *err)
{
    onv_peak peak;
    for (size_t i = 0; i < t->buffers.count; i++) {
        const onv_buffer *row = &t->buffers.at[i];
        if ((UINT32_C(1) << row->kind & NOT_BESIDE) != 0) continue;
        before[row->first + 1] += row->bytes; /* differences wrap, their sums do not */
        before[row->last + 1] -= row->bytes;
    }
    for (size_t i = 1; i < t->steps.count; i++) before[i] += before[i - 1];
    return onv_timeline_peak_without(t, NOT_BESIDE, &peak, during, err);
}

static bool is_of(const onv_step *step, const onv_eager_op *op)
{
    return step->node.index == op->node.index && step->label == op->name;
}

/* The steps of the last backward follow the tape from its end. Those that autograd adds have no node; they, and further
 * steps of one backward, belong to the operation before them. */
static void assign(const onv_eager *eager, onv_tape_beside *b, const onv_timeline *t,
                   const uint64_t *during, const uint64_t *before)
{
    uint32_t n_steps = (uint32_t)t->steps.count;
    uint32_t end = first_of_phase(t, n_steps, ONV_PHASE_OPTIMIZER), last = UINT32_MAX;
    uint32_t at = first_of_phase(t, end, ONV_PHASE_BACKWARD);
    b->turn = at < n_steps ? before[at] : 0;
    for (uint32_t i = (uint32_t)eager->ops.count; i-- > 0;) {
        const onv_eager_op *op = &eager->ops.at[i];
        const onv_step *steps = t->steps.at;
        uint32_t own = at;
        while (own < end && !is_of(&steps[own], op) &&
               (steps[own].node.index == ONV_NO_NODE.index ||
                (last != UINT32_MAX && is_of(&steps[own], &eager->ops.at[last]))))
            own++;
        if (own == end || !is_of(&steps[own], op)) continue; /* no gradient comes here */
        for (; last != UINT32_MAX && at < own; at++)
            if (during[at] > b->backward[last]) b->backward[last] = during[at];
        b->backward[i] = during[own];
        b->carried[i] = before[own];
        b->goes_back[i] = true;
        at = own + 1;
        last = i;
    }
}

onv_status onv_tape_beside_find(const onv_ckpt_problem *problem, onv_arena *arena,
                                onv_tape_beside *beside, onv_error *err)
{
    size_t n_ops = problem->eager->ops.count;
    onv_train_options options = *problem->options;
    onv_train_program program;
    options.segments = NULL;
    options.n_segments = 0;
    options.iterations = 2;
    onv_peak peak;
    *beside = (onv_tape_beside){.backward = ONV_ARENA_ARRAY(arena, uint64_t, n_ops),
                                .carried = ONV_ARENA_ARRAY(arena, uint64_t, n_ops),
                                .goes_back = ONV_ARENA_ARRAY(arena, bool, n_ops)};
    if (arena->failed) return onv_fail_memory(err);
    ONV_TRY(onv_train_program_build(problem->model, problem->eager, &options, &program, err));
    onv_status status =
        onv_timeline_peak_without(&program.timeline, ONV_BUFFERS_BESIDE_TENSORS, &peak, NULL, err);
    size_t n = program.timeline.steps.count;
    uint64_t *during = ONV_ARENA_ARRAY(arena, uint64_t, n + 1);
    uint64_t *before = ONV_ARENA_ARRAY(arena, uint64_t, n + 2);
    if (status == ONV_OK && (during == NULL || before == NULL)) status = onv_fail_memory(err);
    if (status == ONV_OK) status = sum_beside(&program.timeline, during, before, err);
    if (status == ONV_OK) {
        assign(problem->eager, beside, &program.timeline, during, before);
        beside->optimizer = peak.of_phase[ONV_PHASE_OPTIMIZER];
    }
    onv_train_program_cleanup(&program);
    return status;
}
