#include "timeline/timeline.h"

#include "base/fail.h"
#include "base/heap.h"

onv_status onv_placement_init(onv_placement *p, const onv_timeline *t, onv_error *err)
{
    size_t n = t->buffers.count;
    *p = (onv_placement){.n_steps = (uint32_t)t->steps.count};
    p->reserved_at = onv_heap_calloc(t->steps.count, sizeof *p->reserved_at);
    p->allocated_at = onv_heap_calloc(t->steps.count, sizeof *p->allocated_at);
    if (p->reserved_at == NULL || p->allocated_at == NULL || !onv_vec_reserve(&p->places, n))
        return onv_fail_memory(err);
    p->places.count = n;
    for (size_t i = 0; i < n; i++) p->places.at[i] = (onv_place){.segment = ONV_NO_SEGMENT};
    return onv_timeline_list_events(t, &p->events, err);
}

void onv_placement_cleanup(onv_placement *p)
{
    onv_vec_cleanup(&p->events);
    onv_vec_cleanup(&p->segments);
    onv_vec_cleanup(&p->mappings);
    onv_vec_cleanup(&p->places);
    onv_heap_free(p->reserved_at);
    onv_heap_free(p->allocated_at);
    *p = (onv_placement){0};
}
