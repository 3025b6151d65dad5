#include "alloc/requests.h"

onv_status onv_release_find(const onv_timeline *t, const onv_requests *requests, unsigned which,
                            const onv_alloc_options *options, uint64_t limit_bytes,
                            const onv_held_figures *unlimited, onv_release *release, onv_error *err)
{
    const onv_alloc_model *torch = onv_alloc_model_find("torch");
    onv_held_figures held;
    onv_alloc_options limited = *options;
    *release = (onv_release){0};
    limited.capacity_bytes = limit_bytes;
    /* What was requested is allocated at once: no allocator has less. */
    if (limit_bytes == 0 || unlimited->reserved_peak <= limit_bytes ||
        unlimited->requested_peak > limit_bytes || limit_bytes > ONV_ALLOC_MAX_BYTES)
        return ONV_OK;
    if (t != NULL) {
        onv_placement placement;
        ONV_TRY(onv_alloc_run(t, torch, &limited, &placement, err));
        held = placement.figures;
        onv_placement_cleanup(&placement);
    } else {
        ONV_TRY(onv_requests_serve(requests, &which, 1, torch, &limited, &held, err));
    }
    if (!held.out_of_memory)
        *release = (onv_release){true, held.reserved_peak, held.returned_bytes};
    return ONV_OK;
}
