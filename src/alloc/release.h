/* PyTorch's caching allocator on a device that is full.
 *
 * Where the device has no memory left for a segment, the allocator returns the cached segments to the device and asks
 * again. A run may so end within a limit that it would pass with its cache. It is slower: the device waits while
 * segments are returned, and they are requested again later.
 */
#ifndef ONV_ALLOC_RELEASE_H
#define ONV_ALLOC_RELEASE_H

#include "alloc/requests.h"

typedef struct onv_release {
    bool suffices;           /* the run ends within the limit, and not without */
    uint64_t reserved_bytes; /* the peak within the limit; 0: it does not suffice */
    uint64_t returned_bytes; /* to the device, over the whole run; 0: likewise */
} onv_release;

/* Serves the timeline, as onv_alloc_run does, or where it is NULL the requests, with one of the sizes that workspaces have,
 * within `limit_bytes` of the device. `unlimited` are the figures without a limit. A limit of 0 is none: nothing is released. */
onv_status onv_release_find(const onv_timeline *t, const onv_requests *requests, unsigned which,
                            const onv_alloc_options *options, uint64_t limit_bytes,
                            const onv_held_figures *unlimited, onv_release *release,
                            onv_error *err);

#endif
