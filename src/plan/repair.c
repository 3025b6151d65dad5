#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/sort.h"
#include "base/strings.h"
#include "plan/part.h"

#define WAITS UINT64_MAX

enum { RUN = 32 };

/* An end of a placed row. */
typedef struct spot {
    uint64_t at;
    uint32_t row, weight;
} spot;

struct onv_repair {
    const onv_part *part;
    onv_arena arena;
    /* Of each run of RUN rows: the rows before it that share a section with its first. */
    uint32_t *crossing_from, *crossing;
    uint32_t *until;   /* by row: the first row that begins after it has ended */
    uint32_t *meets;   /* by row: how many rows share a section with it, itself included */
    uint32_t *weight;  /* by row: `meets`, and as much for each time that it found no place */
    uint32_t *rank;    /* by row: its place in the order by size */
    uint64_t *offset;  /* by row; WAITS */
    uint32_t *waiting; /* the last comes next */
    uint32_t n_waiting, fewest; /* since the ceiling was set */
    uint64_t ceiling;
    unsigned shift; /* of the next step down; 0: at first */
    spot *starts, *ends, *spare;
    uint32_t n_spots, *bucket; /* of placed rows near the one in question */
    uint32_t *order, n_placed; /* placed rows by offset */
    uint32_t *place;           /* by row: where in the order */
    int32_t *fits;        /* by place: waiting rows that fit above all before it, as differences */
    uint64_t *low, *high; /* by row: where it lies with all beneath sunk, all above risen */
    uint64_t *most, *all; /* trees over the sections, see lay() */
    uint64_t moved_at, move_work; /* when room was last made (a value of work), and what it took */
    uint64_t random;
    uint64_t work, patience; /* of a try, without getting any further */
};

/* Lists what crosses into each run; *too_many: more than are listed. */
static bool list_crossing(onv_repair *r, bool *too_many)
{
    const onv_part *part = r->part;
    uint64_t count = 0;
    for (uint32_t row = 0; row < part->n; row++) count += (r->until[row] - 1) / RUN - row / RUN;
    *too_many = count > ONV_PART_MAX_PAIRS;
    if (*too_many) return true;
    uint32_t runs = (part->n - 1) / RUN + 1;
    r->crossing_from = ONV_ARENA_ARRAY(&r->arena, uint32_t, runs + (size_t)1);
    r->crossing = ONV_ARENA_ARRAY(&r->arena, uint32_t, (size_t)count);
    if (r->arena.failed) return false;
    uint32_t *live = r->waiting, n_live = 0, sum = 0;
    for (uint32_t row = 0; row < part->n; live[n_live++] = row++) {
        if (row % RUN != 0) continue;
        uint32_t kept = 0;
        for (uint32_t i = 0; i < n_live; i++)
            if (part->hi[live[i]] > part->lo[row]) live[kept++] = live[i];
        n_live = kept;
        for (uint32_t i = 0; i < n_live; i++) r->crossing[sum++] = live[i];
        r->crossing_from[row / RUN + 1] = sum;
    }
    return true;
}

static bool index_rows(onv_repair *r, bool *too_many)
{
    const onv_part *part = r->part;
    uint32_t n = part->n, m = part->sections;
    uint32_t *begun = ONV_ARENA_ARRAY(&r->arena, uint32_t, m + (size_t)1); /* before a section */
    uint32_t *ended = ONV_ARENA_ARRAY(&r->arena, uint32_t, m + (size_t)1);
    r->until = ONV_ARENA_ARRAY(&r->arena, uint32_t, n);
    r->meets = ONV_ARENA_ARRAY(&r->arena, uint32_t, n);
    if (r->arena.failed) return false;
    for (uint32_t row = 0; row < n; row++) {
        begun[part->lo[row] + 1]++;
        ended[part->hi[row]]++;
    }
    for (uint32_t s = 0; s < m; s++) {
        begun[s + 1] += begun[s];
        ended[s + 1] += ended[s];
    }
    for (uint32_t row = 0; row < n; row++) {
        r->until[row] = begun[part->hi[row]];
        r->meets[row] = r->until[row] - ended[part->lo[row]];
    }
    return list_crossing(r, too_many);
}

onv_status onv_repair_new(const onv_part *part, onv_repair **repair, onv_error *err)
{
    enum { FIRST_PATIENCE = 10000000 };
    onv_repair *r = *repair = onv_heap_calloc(1, sizeof *r);
    if (r == NULL) return onv_fail_memory(err);
    uint32_t n = part->n;
    r->part = part;
    r->patience = FIRST_PATIENCE;
    r->move_work = (uint64_t)n * 256;
    onv_arena_init(&r->arena, SIZE_MAX);
    r->rank = ONV_ARENA_ARRAY(&r->arena, uint32_t, n);
    r->weight = ONV_ARENA_ARRAY(&r->arena, uint32_t, n);
    r->offset = ONV_ARENA_ARRAY(&r->arena, uint64_t, n);
    r->waiting = ONV_ARENA_ARRAY(&r->arena, uint32_t, n);
    r->starts = ONV_ARENA_ARRAY(&r->arena, spot, n);
    r->ends = ONV_ARENA_ARRAY(&r->arena, spot, n);
    r->spare = ONV_ARENA_ARRAY(&r->arena, spot, n);
    r->bucket = ONV_ARENA_ARRAY(&r->arena, uint32_t, 2 * (size_t)n + 2);
    r->order = ONV_ARENA_ARRAY(&r->arena, uint32_t, n);
    r->place = ONV_ARENA_ARRAY(&r->arena, uint32_t, n);
    r->fits = ONV_ARENA_ARRAY(&r->arena, int32_t, n + (size_t)2);
    r->low = ONV_ARENA_ARRAY(&r->arena, uint64_t, n);
    r->high = ONV_ARENA_ARRAY(&r->arena, uint64_t, n);
    r->most = ONV_ARENA_ARRAY(&r->arena, uint64_t, 2 * (size_t)part->sections);
    r->all = ONV_ARENA_ARRAY(&r->arena, uint64_t, 2 * (size_t)part->sections);
    bool too_many;
    if (r->arena.failed || !index_rows(r, &too_many)) return onv_fail_memory(err);
    if (too_many) {
        onv_repair_destroy(r);
        *repair = NULL;
        return ONV_OK;
    }
    ONV_TRY(onv_order_rows(part, ONV_ORDER_SIZE, r->waiting, err));
    for (uint32_t i = 0; i < n; i++) r->rank[r->waiting[i]] = i;
    memcpy(r->weight, r->meets, n * sizeof *r->weight);
    return ONV_OK;
}

void onv_repair_destroy(onv_repair *r)
{
    if (r == NULL) return;
    onv_arena_cleanup(&r->arena);
    onv_heap_free(r);
}

/* --- What waits -------------------------------------------------------------------------------- */

static int by_rank(const void *a, const void *b, void *context)
{
    const uint32_t *rank = context, x = rank[*(const uint32_t *)a], y = rank[*(const uint32_t *)b];
    return x > y ? -1 : x < y;
}

static void let_wait(onv_repair *r, uint32_t row)
{
    r->offset[row] = WAITS;
    r->waiting[r->n_waiting++] = row;
}

static void sort_waiting(onv_repair *r, uint32_t from)
{
    onv_sort_ids(&r->waiting[from], r->n_waiting - from, by_rank, r->rank);
}

static void set_ceiling(onv_repair *r, uint64_t ceiling)
{
    uint32_t from = r->n_waiting;
    for (uint32_t row = 0; row < r->part->n; row++)
        if (r->offset[row] != WAITS && r->offset[row] + r->part->size[row] > ceiling)
            let_wait(r, row);
    sort_waiting(r, from);
    r->ceiling = ceiling;
    r->fewest = r->n_waiting;
    r->work += r->part->n;
}

/* --- A place ----------------------------------------------------------------------------------- */

/* Sorts by place: into as many stretches as there are spots, then each with its neighbours. */
static void sort_spots(onv_repair *r, spot *spots)
{
    enum { FEW = 48 };
    uint32_t n = r->n_spots, buckets = 1;
    unsigned shift = 0;
    while (buckets < n) buckets *= 2;
    while (r->ceiling >> shift >= buckets) shift++;
    if (n > FEW) {
        memset(r->bucket, 0, (buckets + (size_t)1) * sizeof *r->bucket);
        for (uint32_t i = 0; i < n; i++) r->bucket[(spots[i].at >> shift) + 1]++;
        for (uint32_t i = 1; i < buckets; i++) r->bucket[i] += r->bucket[i - 1];
        memcpy(r->spare, spots, n * sizeof *spots);
        for (uint32_t i = 0; i < n; i++) spots[r->bucket[r->spare[i].at >> shift]++] = r->spare[i];
    }
    for (uint32_t i = 1; i < n; i++) {
        spot moved = spots[i];
        uint32_t k = i;
        for (; k > 0 && spots[k - 1].at > moved.at; k--) spots[k] = spots[k - 1];
        spots[k] = moved;
        r->work += i - k;
    }
    r->work += (uint64_t)n * 4;
}

static void list_start(onv_repair *r, uint32_t row)
{
    if (r->offset[row] != WAITS)
        r->starts[r->n_spots++] = (spot){r->offset[row], row, r->weight[row]};
}

static void list_starts(onv_repair *r, uint32_t row)
{
    const onv_part *part = r->part;
    r->n_spots = 0;
    uint32_t run = row / RUN, from = r->crossing_from[run], end = r->crossing_from[run + 1];
    for (uint32_t i = from; i < end; i++)
        if (part->hi[r->crossing[i]] > part->lo[row]) list_start(r, r->crossing[i]);
    for (uint32_t i = run * RUN; i < r->until[row]; i++)
        if (part->hi[i] > part->lo[row]) list_start(r, i);
    r->work += end - from + r->until[row] - run * RUN;
    sort_spots(r, r->starts);
}

/* The lowest gap between the starts and what is below them; WAITS: there is none. */
static uint64_t find_gap(const onv_repair *r, uint64_t size)
{
    uint64_t top = 0;
    for (uint32_t i = 0; i < r->n_spots; i++) {
        const spot *s = &r->starts[i];
        if (s->at >= top + size) return top;
        uint64_t end = s->at + r->part->size[s->row];
        if (end > top) top = end;
    }
    return top + size <= r->ceiling ? top : WAITS;
}

/* The place whose owners weigh least: on the ground or the end of another row, for only there owners leave, or as high as the
 * same owners reach. Of equal ones any, each as likely. */
static uint64_t find_cheapest(onv_repair *r, uint64_t size)
{
    uint64_t least = UINT64_MAX, cheapest = 0, cost = 0, equal = 0;
    for (uint32_t i = 0; i < r->n_spots; i++) {
        spot s = r->starts[i];
        s.at += r->part->size[s.row];
        r->ends[i] = s;
    }
    sort_spots(r, r->ends);
    for (uint32_t ended = 0, begun = 0; ended <= r->n_spots; ended++) {
        uint64_t offset = ended > 0 ? r->ends[ended - 1].at : 0;
        if (offset + size > r->ceiling) break;
        if (ended > 0) cost -= r->ends[ended - 1].weight;
        while (begun < r->n_spots && r->starts[begun].at < offset + size)
            cost += r->starts[begun++].weight;
        if (cost > least) continue;
        uint64_t below = begun < r->n_spots ? r->starts[begun].at : r->ceiling;
        equal = cost < least ? 1 : equal + 1;
        uint64_t random = onv_hash_u64(r->random += 0x9e3779b97f4a7c15u);
        if ((random >> 1) % equal == 0) cheapest = (random & 1) != 0 ? offset : below - size;
        least = cost;
    }
    r->work += (uint64_t)r->n_spots * 4;
    return cheapest;
}

/* Who lies where the row is to lie has to wait. */
static void clear_place(onv_repair *r, uint32_t row, uint64_t offset)
{
    uint32_t from = r->n_waiting;
    for (uint32_t i = 0; i < r->n_spots && r->starts[i].at < offset + r->part->size[row]; i++) {
        uint32_t other = r->starts[i].row;
        if (r->starts[i].at + r->part->size[other] > offset) let_wait(r, other);
    }
    sort_waiting(r, from);
}

static void place_next(onv_repair *r)
{
    uint32_t row = r->waiting[--r->n_waiting];
    uint64_t size = r->part->size[row];
    list_starts(r, row);
    uint64_t offset = find_gap(r, size);
    if (offset == WAITS) {
        if (r->weight[row] <= UINT32_MAX - r->meets[row]) r->weight[row] += r->meets[row];
        offset = find_cheapest(r, size);
        clear_place(r, row, offset);
    }
    r->offset[row] = offset;
}

/* --- Room -------------------------------------------------------------------------------------- */

/* Lays a row on whatever reaches highest in its sections, and returns where it lies. `most` has the highest end within
 * a node of the tree, `all` an end that all of its sections have reached. */
static uint64_t lay(onv_repair *r, uint32_t row)
{
    uint64_t lo = (uint64_t)r->part->lo[row] + r->part->sections, top = 0;
    uint64_t hi = (uint64_t)r->part->hi[row] + r->part->sections;
    for (uint64_t a = lo, b = hi; a < b; a >>= 1, b >>= 1) {
        if ((a & 1) != 0 && r->most[a++] > top) top = r->most[a - 1];
        if ((b & 1) != 0 && r->most[--b] > top) top = r->most[b];
    }
    for (uint64_t a = lo >> 1, b = (hi - 1) >> 1; b > 0; a >>= 1, b >>= 1) {
        if (r->all[a] > top) top = r->all[a];
        if (r->all[b] > top) top = r->all[b];
    }
    uint64_t end = top + r->part->size[row];
    for (uint64_t a = lo, b = hi; a < b; a >>= 1, b >>= 1) {
        if ((a & 1) != 0) r->most[a] = r->all[a] = end, a++;
        if ((b & 1) != 0) --b, r->most[b] = r->all[b] = end;
    }
    for (uint64_t a = lo >> 1, b = (hi - 1) >> 1; b > 0; a >>= 1, b >>= 1) {
        if (r->most[a] < end) r->most[a] = end;
        if (r->most[b] < end) r->most[b] = end;
    }
    return top;
}

/* How far each placed row can sink and rise if all of them keep their order. */
static void find_ranges(onv_repair *r)
{
    const onv_part *part = r->part;
    r->n_spots = 0;
    for (uint32_t row = 0; row < part->n; row++) list_start(r, row);
    sort_spots(r, r->starts);
    r->n_placed = r->n_spots;
    size_t bytes = 2 * (size_t)part->sections * sizeof *r->most;
    memset(r->most, 0, bytes);
    memset(r->all, 0, bytes);
    for (uint32_t i = 0; i < r->n_placed; i++) {
        uint32_t row = r->order[i] = r->starts[i].row;
        r->place[row] = i;
        r->low[row] = lay(r, row);
    }
    memset(r->most, 0, bytes);
    memset(r->all, 0, bytes);
    for (uint32_t i = r->n_placed; i-- > 0;) {
        uint32_t row = r->order[i];
        r->high[row] = r->ceiling - part->size[row] - lay(r, row);
    }
    r->work += (uint64_t)part->n * 128;
}

/* Notes where in the order the row would fit, if all before it sank and all others rose. */
static void note_fits(onv_repair *r, uint32_t row)
{
    const uint64_t *size = r->part->size;
    list_starts(r, row);
    uint64_t top = 0, bottom = r->ceiling;
    for (uint32_t i = 0; i < r->n_spots; i++) {
        uint32_t other = r->starts[i].row;
        if (r->low[other] + size[other] > top) top = r->low[other] + size[other];
        r->ends[i].at = top;
    }
    for (uint32_t i = r->n_spots, to = r->n_placed;; i--) {
        uint32_t from = i > 0 ? r->place[r->starts[i - 1].row] + 1 : 0;
        top = i > 0 ? r->ends[i - 1].at : 0;
        if (from <= to && top + size[row] <= bottom) {
            r->fits[from]++;
            r->fits[to + 1]--;
        }
        if (i == 0) break;
        to = from - 1;
        if (r->high[r->order[to]] < bottom) bottom = r->high[r->order[to]];
    }
    r->work += (uint64_t)r->n_spots * 4;
}

/* Sinks what comes first in the order and lets the rest rise, so that what is free between rows comes together where
 * the most of those that wait fit. */
static void make_room(onv_repair *r)
{
    uint64_t before = r->work;
    find_ranges(r);
    memset(r->fits, 0, (r->n_placed + (size_t)2) * sizeof *r->fits);
    for (uint32_t i = 0; i < r->n_waiting; i++) note_fits(r, r->waiting[i]);
    uint32_t cut = 0;
    int32_t fits = 0, most = 0;
    for (uint32_t i = 0; i <= r->n_placed; i++) {
        fits += r->fits[i];
        if (fits > most) cut = i;
        if (fits > most) most = fits;
    }
    for (uint32_t i = 0; i < r->n_placed; i++)
        r->offset[r->order[i]] = i < cut ? r->low[r->order[i]] : r->high[r->order[i]];
    uint32_t kept = r->n_waiting;
    for (uint32_t i = r->n_waiting; i-- > 0;) {
        uint32_t row = r->waiting[i];
        list_starts(r, row);
        r->offset[row] = find_gap(r, r->part->size[row]);
        if (r->offset[row] == WAITS) r->waiting[--kept] = row;
    }
    r->n_waiting -= kept;
    memmove(r->waiting, &r->waiting[kept], r->n_waiting * sizeof *r->waiting);
    r->moved_at = r->work;
    r->move_work = r->work - before;
}

/* --- Ceilings ---------------------------------------------------------------------------------- */

/* A step down, from the best plan: an eighth of the way to the goal, after each failure half of that, and once that is
 * nearly nothing an eighth again, with more patience. */
static void choose_ceiling(onv_repair *r, uint64_t goal, uint64_t height)
{
    enum { FIRST_SHIFT = 3, LAST_SHIFT = 6, NEARLY_SHIFT = 10 };
    bool nearly = r->shift > LAST_SHIFT || (height - goal) >> r->shift <= height >> NEARLY_SHIFT;
    if (r->shift > FIRST_SHIFT && nearly) {
        r->patience *= 2;
        r->shift = 0;
    }
    if (r->shift == 0) r->shift = FIRST_SHIFT;
    uint64_t step = (height - goal) >> r->shift;
    set_ceiling(r, height - (step > 0 ? step : 1));
}

void onv_repair_run(onv_repair *r, uint64_t goal, onv_layout *layout, onv_effort *effort,
                    const char *name)
{
    enum { MOVE_SHARE = 4 }; /* room is made again after so many times the work that it took */
    memcpy(r->offset, layout->offsets, r->part->n * sizeof *r->offset);
    r->n_waiting = 0;
    uint64_t last = r->work;
    choose_ceiling(r, goal, layout->height);
    r->moved_at = r->work;
    for (uint64_t since = r->work; r->n_waiting > 0 && r->work - since < r->patience;) {
        if (r->work - r->moved_at >= MOVE_SHARE * r->move_work)
            make_room(r);
        else
            place_next(r);
        if (r->n_waiting < r->fewest) {
            r->fewest = r->n_waiting;
            since = r->work;
        }
        if (!onv_effort_spend(effort, r->work - last)) return;
        last = r->work;
    }
    if (r->n_waiting > 0) {
        r->shift++;
        return;
    }
    onv_layout_offer(layout, effort, r->part, r->offset, name);
}
