#include "alloc/release.h"

static bool may_suffice(uint64_t limit_bytes, const onv_held_figures *unlimited)
{
    /* What was requested is allocated at once: no allocator has less. */
    return limit_bytes > 0 && unlimited->reserved_peak > limit_bytes &&
           unlimited->requested_peak <= limit_bytes && limit_bytes <= ONV_ALLOC_MAX_BYTES;
}

static onv_release of_figures(const onv_held_figures *limited)
{
    if (limited->out_of_memory) return (onv_release){0};
    return (onv_release){true, limited->reserved_peak, limited->returned_bytes};
}

onv_status onv_release_find(const onv_timeline *t, const onv_alloc_options *options,
                            uint64_t limit_bytes, const onv_held_figures *unlimited,
                            onv_release *release, onv_error *err)
{
    onv_placement placement;
    onv_alloc_options limited = *options;
    *release = (onv_release){0};
    if (!may_suffice(limit_bytes, unlimited)) return ONV_OK;
    limited.capacity_bytes = limit_bytes;
    ONV_TRY(onv_alloc_run(t, onv_alloc_model_find("torch"), &limited, &placement, err));
    *release = of_figures(&placement.figures);
    onv_placement_cleanup(&placement);
    return ONV_OK;
}

onv_status onv_release_of(const onv_requests *requests, unsigned which,
                          const onv_alloc_options *options, uint64_t limit_bytes,
                          const onv_held_figures *unlimited, onv_release *release, onv_error *err)
{
    onv_held_figures held;
    onv_alloc_options limited = *options;
    *release = (onv_release){0};
    if (!may_suffice(limit_bytes, unlimited)) return ONV_OK;
    limited.capacity_bytes = limit_bytes;
    ONV_TRY(onv_requests_serve(requests, &which, 1, onv_alloc_model_find("torch"), &limited, &held,
                               err));
    *release = of_figures(&held);
    return ONV_OK;
}
