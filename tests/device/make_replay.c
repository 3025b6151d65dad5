#include "device/make_replay.h"

#include "plan/plan.h"
#include "runtime/runtime.h"
#include "support/test.h"

onv_status make_replay(flow *f, const char *runtime, onv_replay *replay, onv_error *err)
{
    const onv_runtime *row = onv_runtime_find(runtime);
    onv_runtime_result result;
    onv_execution made = {0};
    *replay = (onv_replay){0};
    ONV_TRY(onv_runtime_execute(row, &f->model, &f->live, NULL, &result, &made, err));
    *replay = (onv_replay){.mode = row->mode,
                           .runtime = row->name,
                           .timeline = made.timeline,
                           .placement = made.placement,
                           .figure = onv_runtime_figure(&result, &made.placement)};
    onv_plan_cleanup(&made.plan);
    return ONV_OK;
}

void make_planned(const onv_buffer *buffers, size_t count, size_t n_steps, onv_replay *replay)
{
    onv_timeline t = {0};
    onv_plan plan;
    onv_error err = {0};
    *replay = (onv_replay){.mode = "arena", .runtime = "arena"};
    for (size_t i = 0; i < n_steps; i++)
        assert_true(onv_vec_push(&t.steps, ((onv_step){.node = ONV_NO_NODE})));
    for (size_t i = 0; i < count; i++) assert_true(onv_vec_push(&t.buffers, buffers[i]));
    if (onv_plan_timeline(&t, NULL, &plan, &replay->placement, &err) != ONV_OK)
        fail_msg("%s", err.message);
    replay->timeline = t;
    onv_plan_cleanup(&plan);
}
