#include "snapshot/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/quota.h"
#include "snapshot/space.h"

/* PyTorch's caching allocator: sizes are multiples of 512 bytes; a block of up to 1 MiB gives every rest back, a larger
 * one a rest of more than 1 MiB. */
enum { UNIT = 512, SMALL = 1 << 20 };

/* What no device has; sums of so many fit 63 bits. */
#define MOST_BYTES     (UINT64_C(1) << 39)
#define MOST_ADDRESSES (UINT32_C(1) << 24)

enum { MOST_DEVICES = 64 };

#define NO_EVENT UINT32_MAX

typedef enum action {
    ALLOC,
    FREE_REQUESTED,
    FREE_COMPLETED,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    SEGMENT_MAP,
    SEGMENT_UNMAP,
    N_ACTIONS
} action;

static const char *const actions[N_ACTIONS] = {"alloc",         "free_requested", "free_completed",
                                               "segment_alloc", "segment_free",   "segment_map",
                                               "segment_unmap"};

typedef struct event {
    uint64_t address, bytes;
    const onv_pickled *frames;
    uint32_t at, end; /* of the addresses: its own, and that of a segment's end */
    uint8_t action;
} event;

/* A segment of the snapshot. */
typedef struct segment {
    uint64_t address, bytes;
    bool grows;
} segment;

/* A block of the snapshot that is used. */
typedef struct block {
    uint64_t address, bytes, counted;
    const onv_pickled *frames;
    bool is_used, is_allocated;
} block;

/* What lies at an address. */
typedef struct place {
    uint64_t bytes, counted;
    const onv_pickled *frames;
    uint32_t request;
    uint16_t ends;   /* segments that end here */
    uint8_t toggles; /* odd: memory that is mapped piece by piece begins or ends here */
    bool is_allocated;
    bool is_known; /* the snapshot says how long the block is */
} place;

/* One device. */
typedef struct world {
    onv_arena *arena; /* scratch */
    event *events;
    segment *segments;
    block *blocks;
    uint32_t n_events, n_segments, n_blocks;
    uint64_t *addresses;
    uint32_t n_addresses;
    place *places;
    onv_address_set used, edges;
    uint64_t requested, allocated, reserved; /* now */
    uint32_t n_requests;                     /* so far */
    uint32_t peak_event; /* after which the most is allocated; NO_EVENT: before the first */
    uint64_t
        n_seen; /* events, segments and blocks so far, those that stand in several places again */
    uint64_t requested_peak, allocated_peak, reserved_peak;
    onv_error *err;
} world;

/* --- Events ------------------------------------------------------------------------------------ */

static onv_status read_event(world *w, const onv_pickled *from)
{
    event e = {.action = N_ACTIONS};
    const onv_pickled *what = onv_pickled_get(from, "action");
    if (what == NULL)
        return onv_fail(w->err, ONV_ERR_FORMAT, "an event of the snapshot has no action");
    for (unsigned i = 0; i < N_ACTIONS; i++)
        if (onv_pickled_is_text(what, actions[i])) e.action = (uint8_t)i;
    if (e.action == N_ACTIONS) return ONV_OK; /* "snapshot", "oom": nothing changes */
    bool good = onv_pickled_u64(onv_pickled_get(from, "addr"), &e.address) &&
                onv_pickled_u64(onv_pickled_get(from, "size"), &e.bytes) && e.bytes <= MOST_BYTES;
    if (!good)
        return onv_fail(w->err, ONV_ERR_FORMAT,
                        "an event of the snapshot lacks its address or its size");
    e.frames = onv_pickled_get(from, "frames");
    w->events[w->n_events++] = e;
    return ONV_OK;
}

static onv_status too_many(const world *w)
{
    return onv_fail(w->err, ONV_ERR_LIMIT,
                    "a snapshot of more than %u events or blocks: record less with max_entries=N",
                    MOST_ADDRESSES / 4);
}

static onv_status see(world *w, uint64_t n)
{
    ONV_WORK(n);
    w->n_seen += n;
    return w->n_seen <= MOST_ADDRESSES ? ONV_OK : too_many(w);
}

static onv_status read_events(world *w, const onv_pickled *traces, uint32_t device)
{
    const onv_pickled *trace =
        device < onv_pickled_count(traces) ? &traces->items->at[device] : NULL;
    uint32_t n = onv_pickled_count(trace);
    if (n > MOST_ADDRESSES / 4) return too_many(w);
    ONV_TRY(see(w, n));
    w->events = ONV_ARENA_ARRAY(w->arena, event, n);
    if (w->events == NULL) return onv_fail_memory(w->err);
    for (uint32_t i = 0; trace != NULL && i < n; i++) ONV_TRY(read_event(w, &trace->items->at[i]));
    return ONV_OK;
}

/* --- Addresses --------------------------------------------------------------------------------- */

static int compare_addresses(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static bool is_of(const onv_pickled *from, uint32_t device)
{
    uint64_t of;
    return onv_pickled_u64(onv_pickled_get(from, "device"), &of) && of == device;
}

static void add_address(world *w, uint64_t address)
{
    w->addresses[w->n_addresses++] = address;
}

static uint32_t find_address(const world *w, uint64_t address)
{
    uint32_t low = 0, high = w->n_addresses;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (w->addresses[middle] < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static onv_status read_segment(const world *w, const onv_pickled *from, segment *s)
{
    const onv_pickled *grows = onv_pickled_get(from, "is_expandable");
    bool good = onv_pickled_u64(onv_pickled_get(from, "address"), &s->address) &&
                onv_pickled_u64(onv_pickled_get(from, "total_size"), &s->bytes) &&
                s->bytes <= MOST_BYTES;
    s->grows = grows != NULL && grows->type == ONV_PICKLED_BOOL && grows->integer != 0;
    if (good) return ONV_OK;
    return onv_fail(w->err, ONV_ERR_FORMAT,
                    "a segment of the snapshot lacks its address or its size");
}

static onv_status read_block(const world *w, const onv_pickled *from, uint64_t *next, block *b)
{
    const onv_pickled *state = onv_pickled_get(from, "state");
    b->is_allocated = onv_pickled_is_text(state, "active_allocated");
    b->is_used = b->is_allocated || onv_pickled_is_text(state, "active_pending_free") ||
                 onv_pickled_is_text(state, "active_awaiting_free");
    if (!onv_pickled_u64(onv_pickled_get(from, "size"), &b->counted) || b->counted > MOST_BYTES)
        return onv_fail(w->err, ONV_ERR_FORMAT, "a block of the snapshot lacks its size");
    /* Older releases write blocks without addresses: they follow each other. */
    if (!onv_pickled_u64(onv_pickled_get(from, "address"), &b->address)) b->address = *next;
    if (!onv_pickled_u64(onv_pickled_get(from, "requested_size"), &b->bytes) ||
        b->bytes > b->counted)
        b->bytes = b->counted;
    b->frames = onv_pickled_get(from, "frames");
    *next = b->address + b->counted;
    return ONV_OK;
}

/* What the snapshot has of the device. */
static onv_status read_segments(world *w, const onv_pickled *segments, uint32_t device)
{
    uint64_t most = 0;
    const uint32_t n = onv_pickled_count(segments);
    for (uint32_t i = 0; i < n; i++)
        if (is_of(&segments->items->at[i], device))
            most += 2 + onv_pickled_count(onv_pickled_get(&segments->items->at[i], "blocks"));
    if (most > MOST_ADDRESSES / 4) return too_many(w);
    ONV_TRY(see(w, n + most));
    w->segments = ONV_ARENA_ARRAY(w->arena, segment, n);
    w->blocks = ONV_ARENA_ARRAY(w->arena, block, (size_t)most);
    if (w->segments == NULL || w->blocks == NULL) return onv_fail_memory(w->err);
    for (uint32_t i = 0; i < n; i++) {
        const onv_pickled *from = &segments->items->at[i];
        if (!is_of(from, device)) continue;
        segment *s = &w->segments[w->n_segments++];
        ONV_TRY(read_segment(w, from, s));
        const onv_pickled *blocks = onv_pickled_get(from, "blocks");
        uint64_t next = s->address;
        for (uint32_t k = 0; k < onv_pickled_count(blocks); k++) {
            block *b = &w->blocks[w->n_blocks];
            ONV_TRY(read_block(w, &blocks->items->at[k], &next, b));
            w->n_blocks += b->is_used;
        }
    }
    return ONV_OK;
}

static onv_status list_addresses(world *w)
{
    w->addresses = ONV_ARENA_ARRAY(w->arena, uint64_t,
                                   2 * ((size_t)w->n_segments + w->n_events) + w->n_blocks + 1);
    if (w->addresses == NULL) return onv_fail_memory(w->err);
    for (uint32_t i = 0; i < w->n_segments; i++) {
        add_address(w, w->segments[i].address);
        add_address(w, w->segments[i].address + w->segments[i].bytes);
    }
    for (uint32_t i = 0; i < w->n_blocks; i++) add_address(w, w->blocks[i].address);
    for (uint32_t i = 0; i < w->n_events; i++) {
        add_address(w, w->events[i].address);
        if (w->events[i].action >= SEGMENT_ALLOC)
            add_address(w, w->events[i].address + w->events[i].bytes);
    }
    uint32_t n = 0;
    if (w->n_addresses > 1)
        qsort(w->addresses, w->n_addresses, sizeof *w->addresses, compare_addresses);
    for (uint32_t i = 0; i < w->n_addresses; i++)
        if (n == 0 || w->addresses[n - 1] != w->addresses[i]) w->addresses[n++] = w->addresses[i];
    w->n_addresses = n;
    for (uint32_t i = 0; i < w->n_events; i++) {
        event *e = &w->events[i];
        e->at = find_address(w, e->address);
        if (e->action >= SEGMENT_ALLOC) e->end = find_address(w, e->address + e->bytes);
    }
    return ONV_OK;
}

/* --- Segments and blocks come and go ----------------------------------------------------------- */

static void set_edge(world *w, uint32_t at)
{
    const place *p = &w->places[at];
    onv_address_set_put(&w->edges, at, p->ends > 0 || p->toggles % 2 != 0);
}

/* `grows`: memory that is mapped piece by piece. */
static void change_segment(world *w, uint32_t at, uint32_t end, uint64_t bytes, bool grows,
                           bool comes)
{
    uint16_t *ends = &w->places[end].ends;
    if (comes)
        w->reserved += bytes;
    else
        w->reserved -= bytes <= w->reserved ? bytes : w->reserved;
    w->places[at].toggles ^= grows;
    w->places[end].toggles ^= grows;
    if (!grows && comes && *ends < UINT16_MAX) ++*ends;
    if (!grows && !comes && *ends > 0) --*ends;
    set_edge(w, at);
    set_edge(w, end);
}

/* What an event does, or undoes. */
static void move_segment(world *w, const event *e, bool is_undone)
{
    bool grows = e->action == SEGMENT_MAP || e->action == SEGMENT_UNMAP;
    bool comes = e->action == SEGMENT_ALLOC || e->action == SEGMENT_MAP;
    change_segment(w, e->at, e->end, e->bytes, grows, comes != is_undone);
}

/* What a block takes, by what stands behind it. */
static uint64_t counted_at(const world *w, uint32_t at)
{
    uint64_t most = SMALL, units = w->places[at].bytes / UNIT + (w->places[at].bytes % UNIT != 0);
    uint64_t rounded = (units > 0 ? units : 1) * UNIT;
    uint32_t used = onv_address_set_next(&w->used, at), edge = onv_address_set_next(&w->edges, at);
    uint32_t next = used < edge ? used : edge;
    if (next == w->n_addresses) return rounded;
    uint64_t room = w->addresses[next] - w->addresses[at];
    bool grows = edge < w->n_addresses && w->places[edge].toggles % 2 != 0;
    if (rounded <= SMALL || grows) most = UNIT - 1;
    return room > rounded && room - rounded <= most ? room : rounded;
}

static void release_block(world *w, uint32_t at)
{
    place *p = &w->places[at];
    if (!p->is_allocated) return;
    p->is_allocated = false;
    w->requested -= p->bytes;
    w->allocated -= p->counted;
}

static void begin_block(world *w, uint32_t at, uint64_t bytes, const onv_pickled *frames)
{
    place *p = &w->places[at];
    release_block(w, at);
    *p = (place){.bytes = bytes,
                 .frames = frames,
                 .request = w->n_requests++,
                 .ends = p->ends,
                 .toggles = p->toggles,
                 .is_allocated = true};
    onv_address_set_put(&w->used, at, true);
    p->counted = counted_at(w, at);
    w->requested += p->bytes;
    w->allocated += p->counted;
}

/* --- Backwards --------------------------------------------------------------------------------- */

static void keep_block(world *w, const block *b)
{
    uint32_t at = find_address(w, b->address);
    place *p = &w->places[at];
    *p = (place){.bytes = b->bytes,
                 .counted = b->counted,
                 .frames = b->frames,
                 .request = ONV_NO_REQUEST,
                 .ends = p->ends,
                 .toggles = p->toggles,
                 .is_allocated = b->is_allocated,
                 .is_known = true};
    onv_address_set_put(&w->used, at, true);
}

static void undo(world *w, const event *e)
{
    place *p = &w->places[e->at];
    switch (e->action) {
    case ALLOC:
        onv_address_set_put(&w->used, e->at, false);
        p->is_allocated = p->is_known = false;
        break;
    case FREE_REQUESTED: p->is_allocated = onv_address_set_has(&w->used, e->at); break;
    case FREE_COMPLETED:
        onv_address_set_put(&w->used, e->at, true);
        p->bytes = e->bytes;
        p->frames = NULL;
        p->request = ONV_NO_REQUEST;
        p->is_allocated = p->is_known = false;
        break;
    default: move_segment(w, e, true); break;
    }
}

/* From the moment of the snapshot to the beginning of the history; then what is there is counted. */
static onv_status go_back(world *w)
{
    w->places = ONV_ARENA_ARRAY(w->arena, place, w->n_addresses);
    if (w->places == NULL || !onv_address_set_init(&w->used, w->n_addresses, w->arena) ||
        !onv_address_set_init(&w->edges, w->n_addresses, w->arena))
        return onv_fail_memory(w->err);
    for (uint32_t i = 0; i < w->n_segments; i++) {
        const segment *s = &w->segments[i];
        change_segment(w, find_address(w, s->address), find_address(w, s->address + s->bytes),
                       s->bytes, s->grows, true);
    }
    for (uint32_t i = 0; i < w->n_blocks; i++) keep_block(w, &w->blocks[i]);
    for (uint32_t i = w->n_events; i-- > 0;) undo(w, &w->events[i]);
    for (uint32_t at = 0; at < w->n_addresses; at++) {
        place *p = &w->places[at];
        if (!onv_address_set_has(&w->used, at)) continue;
        if (!p->is_known) p->counted = counted_at(w, at);
        if (!p->is_allocated) continue;
        w->requested += p->bytes;
        w->allocated += p->counted;
    }
    return ONV_OK;
}

/* --- Forwards ---------------------------------------------------------------------------------- */

static void apply(world *w, const event *e)
{
    switch (e->action) {
    case ALLOC: begin_block(w, e->at, e->bytes, e->frames); break;
    case FREE_REQUESTED: release_block(w, e->at); break;
    case FREE_COMPLETED:
        release_block(w, e->at);
        onv_address_set_put(&w->used, e->at, false);
        break;
    default: move_segment(w, e, false); break;
    }
}

static void note_peaks(world *w, uint32_t index)
{
    if (w->requested > w->requested_peak) w->requested_peak = w->requested;
    if (w->reserved > w->reserved_peak) w->reserved_peak = w->reserved;
    if (w->allocated <= w->allocated_peak) return;
    w->allocated_peak = w->allocated;
    w->peak_event = index;
}

/* --- The whole --------------------------------------------------------------------------------- */

static onv_status read_world(world *w, const onv_pickled *root, uint32_t device)
{
    ONV_TRY(read_events(w, onv_pickled_get(root, "device_traces"), device));
    ONV_TRY(read_segments(w, onv_pickled_get(root, "segments"), device));
    return list_addresses(w);
}

static int compare_blocks(const void *a, const void *b)
{
    const onv_snapshot_block *x = a, *y = b;
    /* What was there before the history comes first; ONV_NO_REQUEST + 1 is 0. */
    uint32_t m = x->request + 1, n = y->request + 1;
    return m < n ? -1 : m > n;
}

static onv_status list_live(const world *w, onv_snapshot *s)
{
    for (uint32_t at = 0; at < w->n_addresses; at++) {
        const place *p = &w->places[at];
        if (!onv_address_set_has(&w->used, at) || !p->is_allocated) continue;
        onv_snapshot_block row = {p->bytes, p->counted, p->request, p->frames};
        if (!onv_vec_push(&s->live, row)) return onv_fail_memory(w->err);
    }
    return ONV_OK;
}

/* From the beginning of the history on: lists what happens, and counts. */
static onv_status go_forward(world *w, onv_snapshot *s)
{
    ONV_WORK(w->n_events);
    ONV_TRY(go_back(w));
    w->peak_event = NO_EVENT;
    note_peaks(w, NO_EVENT);
    for (uint32_t i = 0; i < w->n_events; i++) {
        const event *e = &w->events[i];
        uint32_t request = w->places[e->at].request; /* whose end it may be */
        apply(w, e);
        note_peaks(w, i);
        if (s == NULL) continue;
        onv_snapshot_request row = {e->bytes, ONV_NO_REQUEST, e->frames};
        if (e->action == ALLOC && !onv_vec_push(&s->requests, row)) return onv_fail_memory(w->err);
        if (e->action == FREE_REQUESTED && request < s->requests.count)
            s->requests.at[request].freed = w->n_requests;
    }
    return ONV_OK;
}

/* The device is looked at twice: for its peak, and for what is there then. */
static onv_status read_device(onv_snapshot *s, const onv_pickled *root, onv_arena *scratch,
                              onv_error *err)
{
    world w = {.arena = scratch, .err = err};
    ONV_TRY(read_world(&w, root, s->device));
    world again = w;
    ONV_TRY(go_forward(&w, s));
    s->has_history = w.n_events > 0;
    s->requested_peak = w.requested_peak;
    s->allocated_peak = w.allocated_peak;
    s->reserved_peak = w.reserved_peak;
    ONV_TRY(go_back(&again));
    for (uint32_t i = 0; w.peak_event != NO_EVENT && i <= w.peak_event; i++)
        apply(&again, &again.events[i]);
    s->peak_requests = again.n_requests;
    ONV_TRY(list_live(&again, s));
    if (s->live.count > 1) qsort(s->live.at, s->live.count, sizeof *s->live.at, compare_blocks);
    return ONV_OK;
}

static uint32_t count_devices(const onv_pickled *root)
{
    const onv_pickled *segments = onv_pickled_get(root, "segments");
    uint64_t device, n = onv_pickled_count(onv_pickled_get(root, "device_traces"));
    for (uint32_t i = 0; i < onv_pickled_count(segments); i++)
        if (onv_pickled_u64(onv_pickled_get(&segments->items->at[i], "device"), &device) &&
            device >= n && device < MOST_DEVICES)
            n = device + 1;
    return n < MOST_DEVICES ? (uint32_t)n : MOST_DEVICES;
}

/* The device with the most. */
static onv_status choose_device(onv_snapshot *s, const onv_pickled *root, onv_arena *scratch,
                                onv_error *err)
{
    uint64_t most = 0, n_seen = 0;
    s->n_devices = count_devices(root);
    for (uint32_t device = 0; s->n_devices > 1 && device < s->n_devices; device++) {
        world w = {.arena = scratch, .n_seen = n_seen, .err = err};
        ONV_TRY(read_world(&w, root, device));
        ONV_TRY(go_forward(&w, NULL));
        if (w.allocated_peak > most) s->device = device;
        if (w.allocated_peak > most) most = w.allocated_peak;
        n_seen = w.n_seen;
        onv_arena_reset(scratch);
    }
    return ONV_OK;
}

static onv_status check(const onv_snapshot *s, onv_error *err)
{
    if (s->allocated_peak > 0) return ONV_OK;
    return onv_fail(err, ONV_ERR_FORMAT,
                    "the snapshot is empty: call torch.cuda.memory._record_memory_history() "
                    "before the model runs, and _dump_snapshot() behind it");
}

onv_status onv_snapshot_parse(onv_snapshot *snapshot, const char *data, size_t bytes,
                              onv_error *err)
{
    onv_pickled root;
    onv_arena scratch;
    onv_arena_init(&snapshot->arena, SIZE_MAX);
    onv_arena_init(&scratch, SIZE_MAX);
    onv_status status = onv_pickled_read(data, bytes, &snapshot->arena, &root, err);
    if (status == ONV_OK && onv_pickled_get(&root, "segments") == NULL)
        status = onv_fail(err, ONV_ERR_FORMAT,
                          "a pickle without segments: a snapshot of "
                          "torch.cuda.memory._dump_snapshot() has them");
    if (status == ONV_OK) status = choose_device(snapshot, &root, &scratch, err);
    if (status == ONV_OK) status = read_device(snapshot, &root, &scratch, err);
    onv_arena_cleanup(&scratch);
    return status == ONV_OK ? check(snapshot, err) : status;
}

onv_status onv_snapshot_read(onv_snapshot *snapshot, const char *path, size_t most, onv_error *err)
{
    onv_error local = {0};
    *snapshot = (onv_snapshot){0};
    ONV_TRY(onv_file_read(path, most, &snapshot->file, err));
    onv_status status =
        onv_snapshot_parse(snapshot, snapshot->file.at, snapshot->file.count, &local);
    return status == ONV_OK ? ONV_OK : onv_fail(err, status, "%s: %s", path, local.message);
}

void onv_snapshot_cleanup(onv_snapshot *snapshot)
{
    onv_vec_cleanup(&snapshot->live);
    onv_vec_cleanup(&snapshot->requests);
    onv_vec_cleanup(&snapshot->file);
    onv_arena_cleanup(&snapshot->arena);
}

bool onv_snapshot_frame_at(const onv_pickled *frames, uint32_t index, onv_snapshot_frame *frame)
{
    if (index >= onv_pickled_count(frames)) return false;
    const onv_pickled *from = &frames->items->at[index];
    *frame =
        (onv_snapshot_frame){onv_pickled_get(from, "name"), onv_pickled_get(from, "filename"), 0};
    onv_pickled_u64(onv_pickled_get(from, "line"), &frame->line);
    return true;
}
