/* Splitting: from rows in time to parts in sections.
 *
 *   rows ── sort, rank the times ──▶ one group
 *   group ── cut where nothing is live ──▶ components ── compress time ──▶ sections
 *   component ── buffers that cover all its sections go beneath the rest ──▶ a smaller group
 *
 * until a component has no such buffer: that is a part. Both steps lose nothing: what covers every
 * section can always move to the bottom, and what shares no step cannot meet.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "plan/part.h"

typedef struct item {
    uint32_t lo, hi;
    uint32_t origin;
    uint64_t size; /* bytes */
} item;

/* A run of items with one base; a component once it cannot be cut. */
typedef struct group {
    uint32_t start, count;
    uint64_t base;
} group;

typedef struct splitter {
    item *items;
    uint32_t n;
    uint32_t *lo_map, *hi_map; /* scratch: section by rank of time, shifted by one; 0: unset */
    ONV_VEC(group) todo;
    uint64_t work_left;
    onv_arena *arena;
    onv_parts *parts;
    onv_error *err;
} splitter;

static int compare_u64(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static int compare_items(const void *a, const void *b)
{
    const item *x = a, *y = b;
    if (x->lo != y->lo) return x->lo < y->lo ? -1 : 1;
    if (x->hi != y->hi) return x->hi > y->hi ? -1 : 1;
    return x->origin < y->origin ? -1 : x->origin > y->origin;
}

static uint32_t rank_of(const uint64_t *times, uint32_t count, uint64_t time)
{
    uint32_t low = 0, high = count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (times[middle] <= time)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Fills the items, their times ranked, in order of lo. */
static onv_status take_rows(splitter *s, const onv_plan_buffer *buffers, const uint64_t *sizes,
                            size_t count)
{
    uint64_t *times = ONV_ARENA_ARRAY(s->arena, uint64_t, 2 * count);
    s->items = ONV_ARENA_ARRAY(s->arena, item, count);
    if (times == NULL || s->items == NULL) return onv_fail_memory(s->err);
    uint32_t n_times = 0, unique = 0;
    for (size_t i = 0; i < count; i++) {
        if (sizes[i] == 0) continue;
        times[n_times++] = buffers[i].lower;
        times[n_times++] = buffers[i].upper;
    }
    qsort(times, n_times, sizeof *times, compare_u64);
    for (uint32_t i = 0; i < n_times; i++)
        if (i == 0 || times[i] != times[unique - 1]) times[unique++] = times[i];
    for (size_t i = 0; i < count; i++) {
        if (sizes[i] == 0) continue;
        s->items[s->n++] = (item){rank_of(times, unique, buffers[i].lower),
                                  rank_of(times, unique, buffers[i].upper), (uint32_t)i, sizes[i]};
    }
    qsort(s->items, s->n, sizeof *s->items, compare_items);
    return ONV_OK;
}

/* Rewrites the component's lo and hi as sections: a new section begins with the first start after
 * an end. Returns how many there are. */
static uint32_t compress_time(splitter *s, const group *g)
{
    item *items = &s->items[g->start];
    uint32_t first = items[0].lo, last = 0, sections = 0;
    bool open = false;
    for (uint32_t i = 0; i < g->count; i++) {
        s->lo_map[items[i].lo - first] = 1;
        s->hi_map[items[i].hi - first] = 1;
        if (items[i].hi > last) last = items[i].hi;
    }
    for (uint32_t t = 0; t <= last - first; t++) {
        if (s->hi_map[t] != 0) {
            s->hi_map[t] = sections;
            open = false;
        }
        if (s->lo_map[t] == 0) continue;
        if (!open) sections++;
        open = true;
        s->lo_map[t] = sections;
    }
    for (uint32_t i = 0; i < g->count; i++) {
        items[i].lo = s->lo_map[items[i].lo - first] - 1;
        items[i].hi = s->hi_map[items[i].hi - first];
    }
    for (uint32_t t = 0; t <= last - first; t++) s->lo_map[t] = s->hi_map[t] = 0;
    s->work_left -=
        s->work_left < g->count + (last - first) ? s->work_left : g->count + (last - first);
    return sections;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static onv_status add_part(splitter *s, const group *g, uint32_t sections)
{
    const item *items = &s->items[g->start];
    uint32_t *lo = ONV_ARENA_ARRAY(s->arena, uint32_t, g->count);
    uint32_t *hi = ONV_ARENA_ARRAY(s->arena, uint32_t, g->count);
    uint32_t *origin = ONV_ARENA_ARRAY(s->arena, uint32_t, g->count);
    uint64_t *size = ONV_ARENA_ARRAY(s->arena, uint64_t, g->count);
    uint64_t *change = ONV_ARENA_ARRAY(s->arena, uint64_t, (size_t)sections + 1);
    if (lo == NULL || hi == NULL || origin == NULL || size == NULL || change == NULL)
        return onv_fail_memory(s->err);
    onv_part part = {.n = g->count,
                     .sections = sections,
                     .lo = lo,
                     .hi = hi,
                     .size = size,
                     .origin = origin,
                     .base = g->base};
    for (uint32_t i = 0; i < g->count; i++) part.unit = gcd(items[i].size, part.unit);
    for (uint32_t i = 0; i < g->count; i++) {
        lo[i] = items[i].lo;
        hi[i] = items[i].hi;
        origin[i] = items[i].origin;
        size[i] = items[i].size / part.unit;
        change[lo[i]] += size[i];
        change[hi[i]] -= size[i]; /* wraps, and the sum wraps back */
    }
    uint64_t load = 0;
    for (uint32_t t = 0; t < sections; t++) {
        load += change[t];
        if (load > part.load) part.load = load;
    }
    uint64_t bytes = part.base + part.load * part.unit;
    if (bytes > s->parts->max_load) s->parts->max_load = bytes;
    return onv_vec_push(&s->parts->list, part) ? ONV_OK : onv_fail_memory(s->err);
}

/* Takes what covers all sections off a component; the rest is a part or goes back to be cut. */
static onv_status peel(splitter *s, group g)
{
    uint32_t sections = compress_time(s, &g);
    item *items = &s->items[g.start];
    uint32_t kept = 0;
    uint64_t base = g.base;
    for (uint32_t i = 0; i < g.count; i++) {
        if (items[i].lo > 0 || items[i].hi < sections) {
            items[kept++] = items[i];
            continue;
        }
        s->parts->offsets[items[i].origin] = base;
        base += items[i].size;
    }
    bool peeled = kept < g.count;
    if (base > s->parts->height) s->parts->height = base;
    if (kept == 0) return ONV_OK;
    group rest = {g.start, kept, base};
    if (!peeled || s->work_left == 0) return add_part(s, &rest, sections);
    return onv_vec_push(&s->todo, rest) ? ONV_OK : onv_fail_memory(s->err);
}

static onv_status cut(splitter *s, group g)
{
    const item *items = s->items;
    uint32_t end = g.start + g.count;
    for (uint32_t start = g.start; start < end;) {
        uint32_t i = start + 1, last = items[start].hi;
        for (; i < end && items[i].lo < last; i++)
            if (items[i].hi > last) last = items[i].hi;
        ONV_TRY(peel(s, (group){start, i - start, g.base}));
        start = i;
    }
    return ONV_OK;
}

onv_status onv_parts_split(const onv_plan_buffer *buffers, const uint64_t *sizes, size_t count,
                           uint64_t *offsets, onv_arena *arena, onv_parts *parts, onv_error *err)
{
    *parts = (onv_parts){.offsets = offsets};
    splitter s = {.arena = arena, .parts = parts, .err = err};
    ONV_TRY(take_rows(&s, buffers, sizes, count));
    if (s.n == 0) return ONV_OK;
    s.lo_map = ONV_ARENA_ARRAY(arena, uint32_t, 2 * (size_t)s.n + 1);
    s.hi_map = ONV_ARENA_ARRAY(arena, uint32_t, 2 * (size_t)s.n + 1);
    if (s.lo_map == NULL || s.hi_map == NULL) return onv_fail_memory(err);
    /* Layer after layer may cost the square of the rows; a part may well keep some layers. */
    s.work_left = 256 * (uint64_t)s.n + (1 << 22);
    onv_status status = cut(&s, (group){0, s.n, 0});
    while (status == ONV_OK && s.todo.count > 0) status = cut(&s, s.todo.at[--s.todo.count]);
    onv_vec_cleanup(&s.todo);
    if (parts->height > parts->max_load) parts->max_load = parts->height;
    if (status != ONV_OK) onv_vec_cleanup(&parts->list);
    return status;
}

uint64_t onv_part_pairs(const onv_part *part)
{
    uint64_t pairs = 0;
    for (uint32_t a = 0; a < part->n && pairs <= ONV_PART_MAX_PAIRS; a++)
        for (uint32_t b = a + 1; b < part->n && part->lo[b] < part->hi[a]; b++) pairs += 2;
    return pairs;
}

bool onv_part_conflicts(const onv_part *part, onv_arena *arena, uint32_t **near_from,
                        uint32_t **near)
{
    uint32_t *from = *near_from = ONV_ARENA_ARRAY(arena, uint32_t, part->n + (size_t)1), sum = 0;
    if (from == NULL) return false;
    /* Rows are in order of lo: a row's later conflicts are the next rows that start before it
     * ends. Each pair is counted at both ends, then written at both. */
    for (uint32_t a = 0; a < part->n; a++) {
        for (uint32_t b = a + 1; b < part->n && part->lo[b] < part->hi[a]; b++) {
            from[a]++;
            from[b]++;
        }
    }
    for (uint32_t row = 0; row <= part->n; row++) {
        uint32_t count = row < part->n ? from[row] : 0;
        from[row] = sum;
        sum += count;
    }
    uint32_t *list = *near = ONV_ARENA_ARRAY(arena, uint32_t, sum);
    if (list == NULL) return false;
    for (uint32_t a = 0; a < part->n; a++) {
        for (uint32_t b = a + 1; b < part->n && part->lo[b] < part->hi[a]; b++) {
            list[from[a]++] = b;
            list[from[b]++] = a;
        }
    }
    memmove(from + 1, from, part->n * sizeof *from);
    from[0] = 0;
    return true;
}
