#include "report/json_parts.h"

static void write_faults(onv_json *json, const onv_replay_result *r)
{
    onv_json_put_u64(json, "faults", r->n_faults);
    uint64_t n = r->n_faults < ONV_REPLAY_MAX_FAULTS ? r->n_faults : ONV_REPLAY_MAX_FAULTS;
    ONV_JSON_ROWS(json, "first_faults", i, n, INLINE) {
        onv_json_put_string(json, "kind", onv_fault_name(r->faults[i].kind));
        ONV_JSON_FIELDS(json, &r->faults[i], step, offset);
        onv_json_put_string(json, "message", r->faults[i].text);
    }
}

static void write_memory(onv_json *json, const onv_replay_result *r)
{
    onv_json_key(json, "device_free_bytes");
    ONV_JSON_OBJECT(json, &r->device_free, before, least, after);
    onv_json_put_u64(json, "foreign_bytes", r->foreign_bytes);
    if (r->has_pool) onv_json_key(json, "pool");
    if (r->has_pool)
        ONV_JSON_OBJECT(json, &r->pool, used_peak_bytes, reserved_peak_bytes,
                        predicted_reserved_peak_bytes);
    if (!r->out_of_memory) return;
    onv_json_key(json, "out_of_memory");
    ONV_JSON_OBJECT(json, &r->oom, step, bytes, free_bytes);
}

static void write_result(onv_json *json, const onv_replay_result *r)
{
    ONV_JSON_FIELDS(json, r, mode, runtime);
    if (r->plan != NULL) onv_json_put_string(json, "plan", r->plan);
    ONV_JSON_FIELDS(json, r, predicted_bytes, measured_bytes, tolerance_bytes, granularity_bytes);
    ONV_JSON_FIELDS(json, r, most_allocations, predicted_live_bytes, measured_live_bytes, buffers,
                    checked_buffers, agrees);
    write_memory(json, r);
    write_faults(json, r);
    ONV_JSON_PART(json, "timeline", LINES) {
        onv_json_put_numbers(json, "predicted_bytes", r->predicted_held_at, r->n_steps);
        onv_json_put_numbers(json, "measured_bytes", r->measured_held_at, r->n_steps);
        onv_json_put_numbers(json, "predicted_live_bytes", r->predicted_live_at, r->n_steps);
        onv_json_put_numbers(json, "measured_live_bytes", r->measured_live_at, r->n_steps);
    }
}

static void write_max_batches(onv_json *json, const onv_replays *replays)
{
    if (replays->max_batches.count == 0) return;
    ONV_JSON_ROWS(json, "max_batch", i, replays->max_batches.count, INLINE) {
        const onv_replay_max_batch *max_batch = &replays->max_batches.at[i];
        ONV_JSON_FIELDS(json, max_batch, mode, runtime);
        if (max_batch->plan != NULL) onv_json_put_string(json, "plan", max_batch->plan);
        ONV_JSON_FIELDS(json, max_batch, predicted, measured, predicted_is_least, agrees);
    }
}

void onv_json_write_replays(onv_json *json, const onv_view *view)
{
    const onv_replays *replays = &view->replays;
    uint64_t predicted, measured;
    const onv_device_info *device = &replays->device;
    onv_replays_largest(replays, &predicted, &measured);
    onv_json_put_string(json, "device", device->name);
    onv_json_put_string(json, "backend", replays->kind->name);
    onv_json_put_bool(json, "is_gpu", device->is_gpu);
    onv_json_put_u64(json, "predicted_bytes", predicted);
    onv_json_put_u64(json, "measured_bytes", measured);
    onv_json_put_bool(json, "agrees", replays->agrees);
    onv_json_put_u64(json, "device_total_bytes", device->total_bytes);
    onv_json_put_known(json, "context_bytes", device->has_context, device->context_bytes);
    onv_json_put_known(json, "driver_version", device->driver_version > 0,
                       (uint64_t)device->driver_version);
    onv_json_put_string(json, "filled_by", device->filled_by);
    write_max_batches(json, replays);
    ONV_JSON_ROWS(json, "modes", i, replays->results.count, LINES)
        write_result(json, &replays->results.at[i]);
}
