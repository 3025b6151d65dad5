#include "alloc/release.h"

/* Segments that grow are ranges of addresses: their memory comes and goes by mappings. */
static uint64_t sum_returned(const onv_placement *p)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < p->segments.count; i++) {
        const onv_taken_segment *s = &p->segments.at[i];
        if (!s->grows && s->returned < p->events.count) bytes += s->bytes;
    }
    for (size_t i = 0; i < p->mappings.count; i++)
        if (p->mappings.at[i].goes_back) bytes += p->mappings.at[i].bytes;
    return bytes;
}

onv_status onv_release_find(const onv_timeline *t, const onv_alloc_options *options,
                            uint64_t limit_bytes, const onv_held_figures *unlimited,
                            onv_release *release, onv_error *err)
{
    onv_placement placement;
    onv_alloc_options limited = *options;
    *release = (onv_release){0};
    /* What was requested is allocated at once: no allocator has less. */
    if (limit_bytes == 0 || unlimited->reserved_peak <= limit_bytes ||
        unlimited->requested_peak > limit_bytes || limit_bytes > ONV_ALLOC_MAX_BYTES)
        return ONV_OK;
    limited.capacity_bytes = limit_bytes;
    ONV_TRY(onv_alloc_run(t, onv_alloc_model_find("torch"), &limited, &placement, err));
    release->suffices = !placement.figures.out_of_memory;
    if (release->suffices) {
        release->reserved_bytes = placement.figures.reserved_peak;
        release->returned_bytes = sum_returned(&placement);
    }
    onv_placement_cleanup(&placement);
    return ONV_OK;
}
