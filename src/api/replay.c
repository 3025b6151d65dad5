#include "api/replay.h"

#include <inttypes.h>
#include <string.h>

#include "api/names.h"

onv_status onv_replay_choose(onv_replays *replays, const char *name, onv_error *err)
{
    if (name == NULL) return ONV_OK;
    replays->kind = onv_device_kind_find(name);
    if (replays->kind != NULL) return ONV_OK;
    return onv_fail(err, ONV_ERR_USAGE,
                    "there is no device '%s' to replay on: it is cuda (a GPU) or host", name);
}

onv_status onv_replay_take_rows(void *context, const onv_training_rows *rows, onv_error *err)
{
    const onv_replay_training *t = context;
    for (size_t i = 0; i < onv_n_replay_modes; i++) {
        const onv_replay_mode *mode = onv_replay_modes[i];
        onv_script script;
        if (!onv_is_listed(t->runtimes != NULL ? t->runtimes : "torch", mode->runtime)) continue;
        ONV_TRY(onv_script_of_rows(
            &script, mode, rows->timeline->buffers.at, (uint32_t)rows->timeline->buffers.count,
            (uint32_t)rows->timeline->steps.count, t->alloc, t->plan_effort, err));
        script.runtime = "train";
        script.plan = rows->plan;
        if (strcmp(mode->name, "torch") == 0) script.figure = rows->reserved_peak_bytes;
        ONV_TRY(onv_replays_add(t->replays, &script, err));
    }
    return ONV_OK;
}

/* A host that is too small is no device for this: what a GPU would answer with "out of memory" must
 * not drive the machine into the ground. */
static onv_status check_host(const onv_replays *replays, const onv_device *device, onv_error *err)
{
    if (strcmp(device->kind->name, "host") != 0) return ONV_OK;
    for (size_t i = 0; i < replays->scripts.count; i++) {
        const onv_script *script = &replays->scripts.at[i];
        if (onv_script_needs(script) > device->info.free_bytes)
            return onv_fail(err, ONV_ERR_DEVICE,
                            "the replay of %s (%s) needs %" PRIu64 " MiB, host memory has %" PRIu64
                            " MiB to spare: a smaller batch may do",
                            script->runtime, script->mode, onv_script_needs(script) >> 20,
                            device->info.free_bytes >> 20);
    }
    return ONV_OK;
}

onv_status onv_replay_all(onv_replays *replays, const onv_options *options, onv_replays_at at,
                          void *context, onv_error *err)
{
    onv_device device;
    onv_device_options where = {0};
    onv_replay_options how = {.cancelled = options->replay_cancelled,
                              .cancel_context = options->replay_context};
    if (at != NULL) where.limit_bytes = options->budget;
    ONV_TRY(onv_device_open(&device, replays->kind, &where, err));
    onv_status status = at == NULL ? check_host(replays, &device, err) : ONV_OK;
    if (status == ONV_OK) status = onv_replays_run(replays, &device, &how, err);
    if (status == ONV_OK && at != NULL)
        status = onv_replays_find_walls(replays, &device, at, context, &how, err);
    onv_device_close(&device);
    return status;
}
