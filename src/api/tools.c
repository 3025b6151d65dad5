/* The public functions on files that are no models: intervals, traces and snapshots. */
#include <string.h>

#include "alloc/trace_csv.h"
#include "api/names.h"
#include "api/sized.h"
#include "api/tools.h"
#include "api/watch.h"
#include "base/fail.h"
#include "plan/plan.h"
#include "snapshot/snapshot.h"

onv_status onv_plan_file_get(const char *path, uint64_t capacity, uint64_t effort,
                             uint64_t alignment, onv_write_fn write, void *context,
                             onv_plan_info *info, size_t size, onv_error *error)
{
    if (error != NULL) *error = (onv_error){0};
    onv_plan_options options = {.capacity = capacity, .effort = effort, .alignment = alignment};
    onv_plan plan = {0};
    ONV_TRY(onv_plan_csv_run(path, &options, write, context, &plan, error));
    onv_plan_info full = {.height = plan.height,
                          .lower_bound = plan.lower_bound,
                          .optimal = plan.optimal,
                          .fits = plan.fits,
                          .nodes = plan.nodes,
                          .strategy = plan.strategy};
    if (info != NULL) onv_give(info, size, &full, sizeof full);
    return ONV_OK;
}

/* --- The arena: a trace planned as a whole ----------------------------------------------------- */

onv_status onv_simulate_arena(onv_timeline *t, const onv_plan_options *options, uint64_t capacity,
                              onv_held_figures *figures, onv_error *err)
{
    onv_plan plan;
    onv_placement placement;
    onv_status status = onv_plan_timeline(t, options, &plan, &placement, err);
    onv_timeline_cleanup(t);
    ONV_TRY(status);
    if (plan.stopped)
        status = onv_fail(err, ONV_ERR_CANCELLED, "the search for a plan was cancelled");
    *figures = placement.figures;
    if (capacity > 0 && figures->reserved_peak > capacity) {
        figures->out_of_memory = true;
        figures->oom_bytes = figures->reserved_peak;
    }
    onv_placement_cleanup(&placement);
    onv_plan_cleanup(&plan);
    return status;
}

/* --- Simulation -------------------------------------------------------------------------------- */

static onv_status simulate_one(const char *path, const char *name,
                               const onv_simulate_options *options, onv_write_fn write,
                               void *context, onv_error *err)
{
    onv_held_figures result;
    if (strcmp(name, "arena") == 0) {
        if (options->summary)
            return onv_fail(err, ONV_ERR_USAGE, "an arena has no allocator to summarise");
        onv_timeline t;
        ONV_TRY(onv_trace_csv_read_file(path, &t, err));
        ONV_TRY(onv_simulate_arena(&t, NULL, options->capacity, &result, err));
    } else {
        const onv_alloc_model *model = onv_alloc_model_find(name);
        if (model == NULL)
            return onv_fail_choice(err, "--runtime", name, strlen(name), onv_allocator_choice,
                                   NULL);
        onv_alloc_options how = {.capacity_bytes = options->capacity};
        how.torch.expandable_segments = options->expandable_segments;
        ONV_TRY(onv_alloc_simulate_file(path, model, &how, &result, options->summary ? write : NULL,
                                        context, err));
    }
    /* By the name that was asked for: models have two. */
    if (!options->summary && !onv_alloc_write_csv(name, &result, write, context))
        return onv_fail(err, ONV_ERR_IO, "the result could not be written");
    if (result.out_of_memory)
        return onv_fail(err, ONV_ERR_DEVICE,
                        "%s: no room for event %zu, which asks for %llu bytes, in a device of %llu",
                        name, result.oom_event, (unsigned long long)result.oom_bytes,
                        (unsigned long long)options->capacity);
    return ONV_OK;
}

onv_status onv_simulate_file(const char *path, const char *runtimes,
                             const onv_simulate_options *given, onv_write_fn write, void *context,
                             onv_error *error)
{
    onv_simulate_options options = {.struct_size = sizeof options};
    if (error != NULL) *error = (onv_error){0};
    if (given != NULL) onv_take(&options, sizeof options, given, given->struct_size);
    if (options.header && !options.summary &&
        (!write(context, onv_alloc_csv_header, strlen(onv_alloc_csv_header)) ||
         (strchr(onv_alloc_csv_header, '\n') == NULL && !write(context, "\n", 1))))
        return onv_fail(error, ONV_ERR_IO, "the result could not be written");
    onv_status status = ONV_OK;
    for (const char *at = runtimes; at != NULL;) {
        char name[64];
        size_t length = strcspn(at, ",");
        if (length >= sizeof name)
            return onv_fail(error, ONV_ERR_USAGE, "there is no such runtime");
        memcpy(name, at, length);
        name[length] = '\0';
        onv_error local = {0};
        onv_status one = simulate_one(path, name, &options, write, context, &local);
        if (one != ONV_OK && (status == ONV_OK || one != ONV_ERR_DEVICE)) {
            status = one;
            if (error != NULL) *error = local;
        }
        if (one != ONV_OK && one != ONV_ERR_DEVICE) break;
        at = at[length] == ',' ? at + length + 1 : NULL;
    }
    return status;
}

/* --- Snapshots --------------------------------------------------------------------------------- */

onv_status onv_snapshot_get(const char *path, const onv_limits *limits, onv_snapshot_info *info,
                            size_t size, onv_error *error)
{
    if (error != NULL) *error = (onv_error){0};
    onv_options options = onv_options_default();
    onv_watch watch;
    onv_snapshot s;
    options.limits = limits;
    onv_watch_start(&watch, &options);
    onv_status status = onv_snapshot_read(&s, path, SIZE_MAX, error);
    onv_snapshot_info full = {.requested_peak_bytes = s.requested_peak,
                              .allocated_peak_bytes = s.allocated_peak,
                              .reserved_peak_bytes = s.reserved_peak,
                              .device = s.device,
                              .devices = s.n_devices,
                              .has_history = s.has_history};
    onv_snapshot_cleanup(&s);
    status = onv_watch_leave(&watch, status, error);
    if (status == ONV_OK) onv_give(info, size, &full, sizeof full);
    return status;
}
