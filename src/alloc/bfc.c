/* ONNX Runtime's BFC arena (best fit with coalescing).
 *
 * A chunk belongs to no stream, or to the one that used it in this run: stream 0 stands for none. What is allocated on a
 * stream takes chunks of that stream and of none, and they are its own from then on; what is allocated on none takes
 * those of none alone. When a chunk is split before it is used, the rest stays with the stream that it had, and free
 * chunks of different streams are not joined: what a run frees next to memory that no run of it used stays apart until
 * the run ends. Then chunks lose their streams, and are joined (StreamAwareArena::ReleaseStreamBuffers). Each run of a
 * subgraph has streams of its own, which end with it.
 *
 * Regions come from the device and go back only where the arena is shrunk. Free chunks are taken
 * in order of size, then address: the bins of the original are ranges of that order, so one ordered
 * set stands for all of them.
 *
 * Read in source: onnxruntime/core/framework/bfc_arena.{h,cc}; the cap on growth,
 * max_power_of_two_extend_bytes, in a newer copy for plug-in execution providers. Measured: the
 * arena of ONNX Runtime 1.31's CPU provider placed each of 47,000 random requests in the same region
 * at the same offset, and logs these defaults.
 */
#include "alloc/bfc.h"

#include <string.h>

#include "alloc/alloc_model.h"
#include "base/fail.h"
#include "base/quota.h"
#include "timeline/timeline.h"

#define QUANTUM_BYTES       UINT64_C(256)   /* kMinAllocationSize */
#define INITIAL_CHUNK_BYTES ONV_MIB         /* DEFAULT_INITIAL_CHUNK_SIZE_BYTES */
#define GROWTH_CHUNK_BYTES  (2 * ONV_MIB)   /* DEFAULT_INITIAL_GROWTH_CHUNK_SIZE_BYTES */
#define MAX_DEAD_BYTES      (128 * ONV_MIB) /* DEFAULT_MAX_DEAD_BYTES_PER_CHUNK */
#define MAX_EXTEND_BYTES    ONV_GIB         /* DEFAULT_MAX_POWER_OF_TWO_EXTEND_BYTES */
#define MIN_BACKPEDAL_BYTES (8 * ONV_KIB)   /* Extend gives up below */
#define BACKPEDAL_FACTOR    0.9f            /* kBackpedalFactor */

typedef struct bfc_state {
    onv_block_set free[ONV_N_STREAMS];
    uint64_t region_bytes;         /* curr_region_allocation_bytes_: how much to ask for next */
    uint64_t ended[ONV_N_STREAMS]; /* how often; the age of a chunk in use is that of its stream */
} bfc_state;

static onv_status bfc_init(onv_allocator *a, onv_error *err)
{
    bfc_state *s = a->state;
    onv_bfc_options *o = &a->options.bfc;
    if (o->limit_bytes == 0) o->limit_bytes = UINT64_MAX;
    if (o->initial_chunk_bytes == 0) o->initial_chunk_bytes = INITIAL_CHUNK_BYTES;
    if (o->max_dead_bytes == 0) o->max_dead_bytes = MAX_DEAD_BYTES;
    if (o->max_power_of_two_extend_bytes == 0) o->max_power_of_two_extend_bytes = MAX_EXTEND_BYTES;
    if (o->initial_chunk_bytes > ONV_ALLOC_MAX_BYTES ||
        o->max_power_of_two_extend_bytes > ONV_ALLOC_MAX_BYTES)
        return onv_fail(err, ONV_ERR_USAGE, "bfc: a chunk size is more than any device");
    uint64_t initial = o->initial_chunk_bytes;
    s->region_bytes =
        onv_round_up(initial < o->limit_bytes ? initial : o->limit_bytes, QUANTUM_BYTES);
    for (int i = 0; i < ONV_N_STREAMS; i++) {
        onv_block_set_init(&s->free[i], false);
        s->ended[i] = 0;
    }
    return ONV_OK;
}

static uint64_t reserved_bytes(const onv_allocator *a)
{
    return a->stats.of[ONV_STAT_RESERVED_BYTES][ONV_POOL_ALL].current;
}

/* How much Extend first asks the device for. */
static uint64_t extension(onv_allocator *a, uint64_t rounded, uint64_t available)
{
    bfc_state *s = a->state;
    if (a->options.bfc.extend == ONV_BFC_SAME_AS_REQUESTED) return rounded;
    bool increased = false;
    while (rounded > s->region_bytes) { /* ends: rounded is at most ONV_ALLOC_MAX_BYTES */
        s->region_bytes *= 2;
        increased = true;
    }
    uint64_t bytes = s->region_bytes < available ? s->region_bytes : available;
    if (!increased) {
        uint64_t cap = a->options.bfc.max_power_of_two_extend_bytes;
        s->region_bytes = s->region_bytes * 2 < cap ? s->region_bytes * 2 : cap;
    }
    return bytes;
}

/* Extend: a new region, smaller than wanted if the device has no more; *block stays ONV_NO_BLOCK if
 * it has not even what was asked for. */
static onv_status extend(onv_allocator *a, uint64_t rounded, uint32_t *block, onv_error *err)
{
    /* Reserved memory counts against the limit and can pass it; the original then wraps around. */
    uint64_t limit = a->options.bfc.limit_bytes, reserved = reserved_bytes(a);
    uint64_t available = limit > reserved ? limit - reserved : 0;
    available = available / QUANTUM_BYTES * QUANTUM_BYTES;
    if (rounded > available) return ONV_OK;
    uint64_t bytes = extension(a, rounded, available);
    while (!onv_device_has(a, bytes)) {
        bytes = onv_round_up((uint64_t)((float)bytes * BACKPEDAL_FACTOR), QUANTUM_BYTES);
        if (bytes < rounded || bytes < MIN_BACKPEDAL_BYTES) return ONV_OK;
    }
    return onv_device_alloc(a, bytes, ONV_POOL_ALL, block, err);
}

/* The set that a free block is in. */
static onv_block_set *set_of(onv_allocator *a, uint32_t block)
{
    bfc_state *s = a->state;
    return &s->free[onv_space_block(&a->space, block)->stream];
}

static bool is_before(const onv_space *space, uint32_t block, uint32_t other)
{
    if (block == ONV_NO_BLOCK || other == ONV_NO_BLOCK) return block != ONV_NO_BLOCK;
    const onv_block *a = onv_space_block(space, block), *b = onv_space_block(space, other);
    return a->bytes != b->bytes ? a->bytes < b->bytes : a->address < b->address;
}

/* The smallest that the stream may use; *other: the smallest of those that belong to another one, its own or none. */
static uint32_t find_free(const onv_allocator *a, uint64_t bytes, uint32_t *other)
{
    const bfc_state *s = a->state;
    uint32_t of_none = onv_block_set_lower_bound(&s->free[0], &a->space, bytes, 0);
    *other = ONV_NO_BLOCK;
    if (a->stream == 0) return of_none;
    uint32_t own = onv_block_set_lower_bound(&s->free[a->stream], &a->space, bytes, 0);
    bool is_own = is_before(&a->space, own, of_none);
    *other = is_own ? of_none : own;
    return is_own ? own : of_none;
}

/* Chunks of at least so many bytes are split. */
static uint64_t split_bytes(const onv_allocator *a, uint64_t rounded)
{
    uint64_t dead = a->options.bfc.max_dead_bytes;
    return rounded + (dead < rounded ? dead : rounded);
}

/* The sizes of the tail that was found with which it would be found again. */
static onv_bfc_hole bound_found(onv_allocator *a, uint64_t rounded, uint32_t found, uint32_t other)
{
    const onv_block *tail = onv_space_block(&a->space, found);
    uint64_t split = split_bytes(a, rounded);
    bool is_split = tail->bytes >= split;
    onv_bfc_hole sizes = {.least = is_split ? split : rounded,
                          .most = is_split ? UINT64_MAX : split - 1};
    uint32_t next = onv_block_set_next(set_of(a, found), &a->space, found);
    if (is_before(&a->space, other, next)) next = other;
    if (next == ONV_NO_BLOCK) return sizes;
    const onv_block *larger = onv_space_block(&a->space, next);
    uint64_t most = larger->bytes - (larger->address < tail->address);
    if (most < sizes.most) sizes.most = most;
    return sizes;
}

/* The last chunk of a hole is as large as the hole leaves it, all others have sizes of requests: bounds each such chunk by
 * whether it was found, lies behind what was, or is too small. */
static bool bound_holes(onv_allocator *a, onv_bfc_image *image, uint64_t rounded, uint32_t found,
                        uint32_t other)
{
    bool bounds = false;
    const onv_block *taken = found != ONV_NO_BLOCK ? onv_space_block(&a->space, found) : NULL;
    for (uint32_t i = 0; i < image->holes.count; i++) {
        const onv_block *tail = onv_space_block(&a->space, a->space.segments.at[i].last);
        if (tail->state != ONV_BLOCK_FREE || (tail->stream != 0 && tail->stream != a->stream))
            continue;
        onv_bfc_hole *hole = &image->holes.at[i], sizes = {.most = UINT64_MAX};
        if (tail == taken)
            sizes = bound_found(a, rounded, found, other);
        else if (tail->bytes < rounded || taken == NULL)
            sizes.most = rounded - 1;
        else /* what is taken may be a hole's, too, and then grow up to this one */
            sizes.least = taken->next == ONV_NO_BLOCK && taken->segment < image->holes.count
                              ? tail->bytes
                              : taken->bytes + (tail->address < taken->address);
        uint64_t before = hole->bytes - tail->bytes;
        bool is_more = sizes.least + before > hole->least;
        bool is_less = sizes.most < UINT64_MAX - before && sizes.most + before < hole->most;
        if (is_more) hole->least = sizes.least + before;
        if (is_less) hole->most = sizes.most + before;
        bounds |= is_more || is_less;
    }
    return bounds;
}

onv_status onv_bfc_take(onv_allocator *a, uint64_t bytes, uint32_t found, uint32_t *block,
                        onv_error *err)
{
    const bfc_state *s = a->state;
    uint64_t rounded = onv_round_up(bytes, QUANTUM_BYTES);
    *block = found;
    if (found != ONV_NO_BLOCK)
        onv_block_set_remove(set_of(a, found), &a->space, found);
    else
        ONV_TRY(extend(a, rounded, block, err));
    if (*block == ONV_NO_BLOCK) return ONV_OK;
    if (onv_space_block(&a->space, *block)->bytes >= split_bytes(a, rounded)) {
        ONV_TRY(onv_space_split(&a->space, *block, rounded, err));
        uint32_t rest = onv_space_block(&a->space, *block)->next;
        onv_block_set_insert(set_of(a, rest), &a->space, rest);
    }
    onv_block *taken = onv_space_block(&a->space, *block);
    taken->state = ONV_BLOCK_USED;
    if (a->stream == 0) return ONV_OK;
    taken->stream = a->stream;
    taken->age = s->ended[a->stream];
    return ONV_OK;
}

static onv_status bfc_alloc(onv_allocator *a, uint64_t bytes, uint32_t *block, onv_error *err)
{
    uint32_t other, found = find_free(a, onv_round_up(bytes, QUANTUM_BYTES), &other);
    return onv_bfc_take(a, bytes, found, block, err);
}

/* Reserve: straight from the device, outside of the bins. The limit is not looked at. */
static onv_status bfc_reserve(onv_allocator *a, uint64_t bytes, uint32_t *block, onv_error *err)
{
    ONV_TRY(onv_device_alloc(a, bytes, ONV_POOL_ALL, block, err));
    if (*block != ONV_NO_BLOCK) onv_space_segment_of(&a->space, *block)->direct = true;
    return ONV_OK;
}

static void bfc_free(onv_allocator *a, uint32_t block)
{
    if (onv_space_segment_of(&a->space, block)->direct) {
        onv_device_free(a, block);
        return;
    }
    const bfc_state *s = a->state;
    onv_block *freed = onv_space_block(&a->space, block);
    if (freed->age != s->ended[freed->stream]) freed->stream = 0;
    block = onv_coalesce(a, set_of(a, block), block);
    onv_block_set_insert(set_of(a, block), &a->space, block);
}

/* ResetChunkOnTargetStream. Chunks in use lose their stream when they are freed. */
static onv_status bfc_end_streams(onv_allocator *a, uint8_t from)
{
    bfc_state *s = a->state;
    for (int stream = from; stream < ONV_N_STREAMS; stream++) {
        uint32_t block;
        s->ended[stream]++;
        while ((block = onv_block_set_first(&s->free[stream], &a->space)) != ONV_NO_BLOCK) {
            ONV_WORK(4);
            onv_block_set_remove(&s->free[stream], &a->space, block);
            onv_space_block(&a->space, block)->stream = 0;
            block = onv_coalesce(a, &s->free[0], block);
            onv_block_set_insert(&s->free[0], &a->space, block);
        }
    }
    return ONV_OK;
}

/* Shrink: regions that nothing lies in go back to the device, but the first one stays where regions
 * grow by powers of two. From then on the arena grows as it did after its first region. */
static onv_status bfc_release(onv_allocator *a, onv_error *err)
{
    bfc_state *s = a->state;
    bool keeps = a->options.bfc.extend == ONV_BFC_NEXT_POWER_OF_TWO;
    (void)err;
    for (uint32_t i = a->space.first_segment, next; i != ONV_NO_BLOCK; i = next) {
        const onv_segment *segment = &a->space.segments.at[i];
        next = segment->next;
        if (segment->direct) continue;
        uint32_t block = segment->first;
        bool is_free = onv_space_is_whole(&a->space, block) &&
                       onv_space_block(&a->space, block)->state == ONV_BLOCK_FREE;
        if (is_free && !keeps) {
            onv_block_set_remove(set_of(a, block), &a->space, block);
            onv_device_free(a, block);
        }
        keeps = false;
    }
    s->region_bytes = GROWTH_CHUNK_BYTES;
    return ONV_OK;
}

/* --- Orders of what stays ---------------------------------------------------------------------- */

/* Free chunks while what stays is taken, in order of size, then address. What stays is never given back, so that a chunk
 * has no free neighbours, and is what is left of a region; a block of the space has its size when all is taken. */
typedef struct free_chunk {
    uint64_t bytes;
    uint32_t block; /* which counts up with the address */
} free_chunk;

typedef ONV_VEC(free_chunk) free_list;

/* The first that is not before (bytes, 0). */
static size_t find_chunk(const free_list *list, uint64_t bytes)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list->at[middle].bytes < bytes)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Takes the low end of the chunk at that place, or all of it. */
static onv_status cut_chunk(const onv_allocator *a, free_list *list, size_t at, uint64_t rounded)
{
    free_chunk chunk = list->at[at];
    if (chunk.bytes < split_bytes(a, rounded)) {
        memmove(&list->at[at], &list->at[at + 1], (--list->count - at) * sizeof *list->at);
        return ONV_OK;
    }
    size_t to = at;
    chunk.bytes -= rounded;
    for (; to > 0; to--) {
        const free_chunk *smaller = &list->at[to - 1];
        if (smaller->bytes < chunk.bytes ||
            (smaller->bytes == chunk.bytes && smaller->block < chunk.block))
            break;
        list->at[to] = *smaller;
    }
    list->at[to] = chunk;
    if (at - to >= 16) ONV_WORK((at - to) / 16);
    return ONV_OK;
}

static onv_status keep(onv_allocator *a, free_list *list, uint64_t bytes, bool *is_kept,
                       onv_error *err)
{
    uint64_t rounded = onv_round_up(bytes, QUANTUM_BYTES);
    if (bytes == 0) return ONV_OK;
    size_t at = find_chunk(list, rounded);
    if (at == list->count) { /* none is as large, so the new one is the last */
        free_chunk chunk = {.block = ONV_NO_BLOCK};
        ONV_TRY(extend(a, rounded, &chunk.block, err));
        *is_kept = chunk.block != ONV_NO_BLOCK;
        if (!*is_kept) return ONV_OK;
        onv_block *block = onv_space_block(&a->space, chunk.block);
        chunk.bytes = block->bytes;
        block->bytes = 0;
        if (!onv_vec_push(list, chunk)) return onv_fail_memory(err);
    }
    return cut_chunk(a, list, at, rounded);
}

onv_status onv_bfc_leave(const onv_allocator *a, onv_bfc_image *image, onv_error *err)
{
    const bfc_state *s = a->state;
    size_t n_seen = image->holes.count;
    image->now =
        (onv_bfc_extent){.reserved_bytes = reserved_bytes(a), .region_bytes = s->region_bytes};
    for (uint32_t i = a->space.first_segment; i != ONV_NO_BLOCK; i = a->space.segments.at[i].next) {
        uint64_t left = onv_space_block(&a->space, a->space.segments.at[i].first)->bytes;
        if (n_seen > 0)
            n_seen--;
        else if (left > 0 && !onv_vec_push(&image->holes, (onv_bfc_hole){.bytes = left}))
            return onv_fail_memory(err);
    }
    image->now.n_holes = image->holes.count;
    return ONV_OK;
}

onv_status onv_bfc_load(onv_allocator *a, const uint64_t *bytes, const uint32_t *order,
                        uint32_t count, onv_bfc_image *image, onv_error *err)
{
    free_list list = {0};
    bool is_kept = true;
    onv_status status = onv_allocator_restart(a, err);
    for (uint32_t i = 0; i < count && is_kept && status == ONV_OK; i++)
        status = keep(a, &list, bytes[order[i]], &is_kept, err);
    for (size_t i = 0; i < list.count; i++)
        onv_space_block(&a->space, list.at[i].block)->bytes = list.at[i].bytes;
    if (status == ONV_OK) status = onv_bfc_leave(a, image, err);
    if (!is_kept) image->now.reserved_bytes = UINT64_MAX;
    onv_vec_cleanup(&list);
    return status;
}

/* An arena has that image from now on. */
static void begin(onv_bfc_image *image)
{
    image->before = image->now;
    for (size_t i = 0; i < image->holes.count; i++) {
        image->holes.at[i].least = 0;
        image->holes.at[i].most = UINT64_MAX;
    }
}

onv_status onv_bfc_resume(onv_allocator *a, onv_bfc_image *image, onv_error *err)
{
    bfc_state *s = a->state;
    onv_stat *reserved = &a->stats.of[ONV_STAT_RESERVED_BYTES][ONV_POOL_ALL];
    ONV_TRY(onv_allocator_restart(a, err));
    for (size_t i = 0; i < image->holes.count; i++) {
        uint32_t block;
        ONV_TRY(onv_space_add_segment(&a->space, image->holes.at[i].bytes, ONV_BLOCK_FREE, &block,
                                      err));
        onv_block_set_insert(&s->free[0], &a->space, block);
    }
    begin(image);
    s->region_bytes = image->now.region_bytes;
    reserved->current = reserved->peak = image->now.reserved_bytes;
    return ONV_OK;
}

/* The free chunks that holes end with. */
static void move_tails(onv_allocator *a, size_t n_holes,
                       void (*move)(onv_block_set *, onv_space *, uint32_t))
{
    for (size_t i = 0; i < n_holes; i++) {
        uint32_t tail = a->space.segments.at[i].last;
        if (onv_space_block(&a->space, tail)->state == ONV_BLOCK_FREE)
            move(set_of(a, tail), &a->space, tail);
    }
}

void onv_bfc_turn_to(onv_allocator *a, const onv_bfc_image *image, onv_bfc_image *other)
{
    onv_stat *reserved = &a->stats.of[ONV_STAT_RESERVED_BYTES][ONV_POOL_ALL];
    size_t n_holes = other->holes.count;
    uint64_t more = other->now.reserved_bytes - image->before.reserved_bytes, shift = 0;
    move_tails(a, n_holes, onv_block_set_remove);
    for (uint32_t i = a->space.first_segment; i != ONV_NO_BLOCK; i = a->space.segments.at[i].next) {
        onv_segment *segment = &a->space.segments.at[i];
        segment->address += shift; /* which is below 0 where it wraps around */
        for (uint32_t k = segment->first; k != ONV_NO_BLOCK; k = a->space.blocks.at[k].next)
            a->space.blocks.at[k].address += shift;
        if (i >= n_holes) continue;
        uint64_t longer = other->holes.at[i].bytes - image->holes.at[i].bytes;
        segment->bytes += longer;
        a->space.blocks.at[segment->last].bytes += longer;
        shift += longer;
    }
    a->space.next_address += shift;
    move_tails(a, n_holes, onv_block_set_insert);
    reserved->current += more;
    reserved->peak += more;
    begin(other);
}

onv_status onv_bfc_grow(onv_bfc_image *image, const onv_bfc_image *served, onv_error *err)
{
    image->before = image->now;
    image->now.reserved_bytes += served->now.reserved_bytes - served->before.reserved_bytes;
    image->now.region_bytes = served->now.region_bytes;
    for (size_t i = served->before.n_holes; i < served->now.n_holes; i++)
        if (!onv_vec_push(&image->holes, served->holes.at[i])) return onv_fail_memory(err);
    image->now.n_holes = image->holes.count;
    return ONV_OK;
}

bool onv_bfc_begins_alike(const onv_allocator *a, const onv_bfc_image *image,
                          const onv_bfc_image *other)
{
    /* What is left on the device differs with what is reserved. */
    bool is_limited = a->options.bfc.limit_bytes < UINT64_MAX || a->options.capacity_bytes > 0;
    return image->now.region_bytes == other->now.region_bytes &&
           image->now.n_holes == other->now.n_holes &&
           (!is_limited || image->now.reserved_bytes == other->now.reserved_bytes);
}

bool onv_bfc_serves_again(const onv_bfc_image *image)
{
    uint64_t largest = 0;
    for (size_t i = 0; i < image->now.n_holes; i++) {
        uint64_t bytes = image->holes.at[i].bytes;
        if (i >= image->before.n_holes && bytes < largest) return false;
        if (bytes > largest) largest = bytes;
    }
    return true;
}

uint32_t onv_bfc_find(onv_allocator *a, onv_bfc_image *image, uint64_t bytes, bool *bounds)
{
    uint64_t rounded = onv_round_up(bytes, QUANTUM_BYTES);
    uint32_t other, found = find_free(a, rounded, &other);
    *bounds = bound_holes(a, image, rounded, found, other);
    return found;
}

/* --- Rows -------------------------------------------------------------------------------------- */

static void preset_same(onv_alloc_options *options)
{
    options->bfc.extend = ONV_BFC_SAME_AS_REQUESTED;
}

#define BFC                                                                                        \
    .state_bytes = sizeof(bfc_state), .init = bfc_init, .alloc = bfc_alloc,                        \
    .reserve = bfc_reserve, .free = bfc_free, .end_streams = bfc_end_streams,                      \
    .release_cached = bfc_release

const onv_alloc_model onv_alloc_bfc = {
    .name = "bfc",
    .alias = "ort",
    .summary = "ONNX Runtime's arena, which grows by powers of two",
    BFC,
};

const onv_alloc_model onv_alloc_bfc_same = {
    .name = "bfc-same",
    .summary = "the same with arena_extend_strategy kSameAsRequested",
    .preset = preset_same,
    BFC,
};
