/* What inference or training asks of an allocator, recorded once and served as often as needed: with other workspaces, within a
 * limit, and for iterations that come later. */
#ifndef ONV_ALLOC_REQUESTS_H
#define ONV_ALLOC_REQUESTS_H

#include "alloc/alloc.h"

enum { ONV_N_PASSING = 3 };

/* A workspace, which is freed before anything else is allocated: its sizes, of which each run has one. 0: none. */
typedef struct onv_passing {
    uint64_t bytes[ONV_N_PASSING];
} onv_passing;

typedef enum onv_request_kind {
    ONV_REQUEST_ALLOC,
    ONV_REQUEST_FREE,
    ONV_REQUEST_PASS, /* id: the workspace's place in `passing` */
    /* Of eager/pricing.c, while iterations are recorded: what the first one makes; what was freed before it ended with its step. */
    ONV_REQUEST_LASTING,
    ONV_REQUEST_STEP,
} onv_request_kind;

typedef struct onv_alloc_request {
    uint64_t bytes;
    uint32_t id;
    uint8_t kind; /* onv_request_kind */
} onv_alloc_request;

/* Where an iteration begins: its first request and its first id. Ids count up. */
typedef struct onv_iteration_mark {
    size_t request;
    uint32_t id;
} onv_iteration_mark;

/* What an iteration made in place of what it found. */
typedef struct onv_rename {
    uint32_t from, to;
} onv_rename;

typedef struct onv_requests {
    ONV_VEC(onv_alloc_request) at;
    ONV_VEC(onv_passing) passing;
    ONV_VEC(onv_iteration_mark) marks;
    uint32_t n_ids;
    uint32_t more; /* how often the last iteration comes again */
    /* From `begin` on all is one pass, which frees what it allocates but what comes to stay; no marks. What an earlier pass left is
     * not allocated again, and what none made is not freed. */
    bool is_pass;
    size_t begin;
    ONV_VEC(onv_rename) renames; /* behind each pass */
} onv_requests;

/* The next iteration begins with this id. False: no memory. */
bool onv_requests_mark(onv_requests *requests, uint32_t id);
void onv_requests_cleanup(onv_requests *requests);

/* What a pass of inference finds and leaves: weights and inputs. */
bool onv_stays_between_passes(const onv_timeline *t, const onv_buffer *b);

/* Appends what a timeline without branches asks for. Its transient buffers are the passing ones, in their order. */
onv_status onv_requests_list(const onv_timeline *t, onv_requests *requests, onv_error *err);

/* Serves all, as often as iterations come again, with one or two choices of the sizes that workspaces have; up to the first
 * workspace that differs once for both. */
onv_status onv_requests_serve(const onv_requests *requests, const unsigned *which,
                              unsigned n_choices, const onv_alloc_model *model,
                              const onv_alloc_options *options, onv_held_figures *held,
                              onv_error *err);

/* Serves the requests from `first` on, and the last iteration a->options.later_iterations and requests->more times more: in turns under the ids of
 * the one before, which are free by then, and under its own. It ends where an iteration leaves memory as it found it, or where
 * the last two ask for different memory. *served: how often it was. */
onv_status onv_requests_serve_rest(onv_allocator *a, const onv_requests *requests, size_t first,
                                   unsigned which, uint32_t *served, onv_error *err);

/* PyTorch's caching allocator on a device that is full.
 *
 * Where the device has no memory left for a segment, the allocator returns the cached segments to the device and asks
 * again. A run may so end within a limit that it would pass with its cache. It is slower: the device waits while
 * segments are returned, and they are requested again later.
 */

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
