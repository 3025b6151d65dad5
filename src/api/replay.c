#include "api/replay.h"

#include <inttypes.h>
#include <string.h>

#include "api/names.h"
#include "base/fail.h"

onv_status onv_replay_choose(onv_replays *replays, const char *name, onv_error *err)
{
    if (name == NULL) return ONV_OK;
    replays->kind = onv_device_kind_find(name);
    if (replays->kind != NULL) return ONV_OK;
    return onv_fail_choice(err, "--replay", name, strlen(name), onv_choice,
                           ONV_CHOICE(REPLAY_DEVICES));
}

onv_status onv_replay_take(onv_replays *replays, const onv_runtime *mode, const char *runtime,
                           const char *plan, uint64_t figure, onv_execution *made, onv_error *err)
{
    /* What later runs and iterations reserve beyond these is in the figure, and is not replayed. */
    if (strcmp(mode->name, "torch") == 0 && figure > made->placement.figures.reserved_peak)
        figure = 0;
    onv_replay replay = {.mode = mode->mode,
                         .runtime = runtime,
                         .plan = plan,
                         .timeline = made->timeline,
                         .placement = made->placement,
                         .figure = figure};
    made->timeline = (onv_timeline){0};
    made->placement = (onv_placement){0};
    onv_execution_cleanup(made);
    return onv_replays_add(replays, &replay, err);
}

onv_status onv_replay_take_training(void *context, const onv_timeline *t,
                                    const onv_placement *placement, const char *plan,
                                    onv_error *err)
{
    const onv_replay_training *training = context;
    const char *list = training->runtimes != NULL ? training->runtimes : "torch";
    for (size_t i = 0; i < onv_n_runtimes; i++) {
        const onv_runtime *mode = onv_runtimes[i];
        if (!onv_is_listed(list, mode->name)) continue;
        onv_execution made = {0};
        onv_status status = onv_timeline_path(t, &made.timeline, NULL, err);
        if (status == ONV_OK) status = onv_runtime_place(mode, &training->options, &made, err);
        if (status != ONV_OK) {
            onv_execution_cleanup(&made);
            return status;
        }
        uint64_t figure = strcmp(mode->name, "torch") == 0 ? placement->figures.reserved_peak : 0;
        ONV_TRY(onv_replay_take(training->replays, mode, "train", plan, figure, &made, err));
    }
    return ONV_OK;
}

/* A host that is too small is no device for this: what a GPU would answer with "out of memory" must
 * not drive the machine into the ground. */
static onv_status check_host(const onv_replays *replays, const onv_device *device, onv_error *err)
{
    if (strcmp(device->kind->name, "host") != 0) return ONV_OK;
    for (size_t i = 0; i < replays->list.count; i++) {
        const onv_replay *replay = &replays->list.at[i];
        if (onv_replay_needs(replay) > device->info.free_bytes)
            return onv_fail(err, ONV_ERR_DEVICE,
                            "the replay of %s (%s) needs %" PRIu64 " MiB, host memory has %" PRIu64
                            " MiB to spare: a smaller batch may do",
                            replay->runtime, replay->mode, onv_replay_needs(replay) >> 20,
                            device->info.free_bytes >> 20);
    }
    return ONV_OK;
}

onv_status onv_replay_all(onv_replays *replays, const onv_options *options, onv_replays_at at,
                          void *context, onv_error *err)
{
    onv_device device;
    onv_replay_options how = {.cancelled = options->cancelled,
                              .cancel_context = options->cancel_context};
    ONV_TRY(onv_device_open(&device, replays->kind, at != NULL ? options->budget : 0, err));
    onv_status status = at == NULL ? check_host(replays, &device, err) : ONV_OK;
    if (status == ONV_OK) status = onv_replays_run(replays, &device, &how, err);
    if (status == ONV_OK && at != NULL)
        status = onv_replays_find_max_batches(replays, &device, at, context, &how, err);
    onv_device_close(&device);
    return status;
}
