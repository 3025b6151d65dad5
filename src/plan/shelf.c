#include "plan/shelf.h"

#include <string.h>

#include "base/heap.h"
#include "base/quota.h"

enum { BLOCK = 64 };

typedef struct block {
    uint32_t count;
    uint32_t lo[BLOCK], hi[BLOCK];
    uint64_t offset[BLOCK], end[BLOCK];
} block;

/* A block and what has to be known to skip it, side by side with those of the others. */
typedef struct entry {
    block *rows;
    uint32_t min_lo, max_hi; /* what shares no section with these shares one with no buffer */
    uint32_t max_lo, min_hi; /* what shares one with both shares one with every buffer, */
    uint64_t gap, top;       /* and finds no larger gap between them, below their highest end */
    uint64_t offset;         /* the lowest */
} entry;

struct onv_shelf_lane {
    entry *entries; /* the first `count` are in use, the rest are spare */
    size_t count, made, capacity;
};

bool onv_shelf_init(onv_shelf *shelf, uint32_t rows, uint32_t sections)
{
    enum { ROWS_PER_STRETCH = 4096, MAX_STRETCHES = 64 };
    uint32_t stretches = rows / ROWS_PER_STRETCH;
    if (stretches > MAX_STRETCHES) stretches = MAX_STRETCHES;
    if (stretches > sections || stretches < 2) stretches = 0;
    *shelf = (onv_shelf){.stretches = stretches};
    if (stretches > 0) shelf->stretch = sections / stretches + 1;
    shelf->lanes = onv_heap_calloc(stretches + (size_t)1, sizeof *shelf->lanes);
    return shelf->lanes != NULL;
}

void onv_shelf_cleanup(onv_shelf *shelf)
{
    for (uint32_t i = 0; shelf->lanes != NULL && i <= shelf->stretches; i++) {
        onv_shelf_lane *lane = &shelf->lanes[i];
        for (size_t k = 0; k < lane->made; k++) onv_heap_free(lane->entries[k].rows);
        onv_heap_free(lane->entries);
    }
    onv_heap_free(shelf->lanes);
    *shelf = (onv_shelf){0};
}

void onv_shelf_clear(onv_shelf *shelf)
{
    for (uint32_t i = 0; i <= shelf->stretches; i++) shelf->lanes[i].count = 0;
    shelf->work = 0;
}

/* Makes an empty block at `index` of the directory. */
static block *insert_block(onv_shelf_lane *lane, size_t index)
{
    if (lane->count == lane->made) {
        if (lane->made == lane->capacity) {
            size_t capacity = lane->capacity == 0 ? 16 : lane->capacity * 2;
            void *grown = onv_heap_realloc(lane->entries, capacity * sizeof *lane->entries);
            if (grown == NULL) return NULL;
            lane->entries = grown;
            lane->capacity = capacity;
        }
        block *made = onv_heap_calloc(1, sizeof *made);
        if (made == NULL) return NULL;
        lane->entries[lane->made++] = (entry){.rows = made};
    }
    block *b = lane->entries[lane->count].rows;
    memmove(&lane->entries[index + 1], &lane->entries[index],
            (lane->count - index) * sizeof *lane->entries);
    lane->entries[index] = (entry){.rows = b};
    lane->count++;
    b->count = 0;
    return b;
}

static void sum_up(entry *e)
{
    const block *b = e->rows;
    e->min_lo = e->min_hi = UINT32_MAX;
    e->max_lo = e->max_hi = 0;
    e->gap = 0;
    e->offset = e->top = b->offset[0];
    for (uint32_t i = 0; i < b->count; i++) {
        if (b->lo[i] < e->min_lo) e->min_lo = b->lo[i];
        if (b->lo[i] > e->max_lo) e->max_lo = b->lo[i];
        if (b->hi[i] < e->min_hi) e->min_hi = b->hi[i];
        if (b->hi[i] > e->max_hi) e->max_hi = b->hi[i];
        if (b->offset[i] > e->top && b->offset[i] - e->top > e->gap) e->gap = b->offset[i] - e->top;
        if (b->end[i] > e->top) e->top = b->end[i];
    }
}

/* Makes room for a row. */
static void shift_rows(block *b, uint32_t row)
{
    uint32_t rows = b->count - row;
    memmove(&b->lo[row + 1], &b->lo[row], rows * sizeof b->lo[0]);
    memmove(&b->hi[row + 1], &b->hi[row], rows * sizeof b->hi[0]);
    memmove(&b->offset[row + 1], &b->offset[row], rows * sizeof b->offset[0]);
    memmove(&b->end[row + 1], &b->end[row], rows * sizeof b->end[0]);
}

/* Moves the upper half of a full block to a new one behind it. */
static bool split_block(onv_shelf_lane *lane, size_t index)
{
    enum { HALF = BLOCK / 2 };
    block *upper = insert_block(lane, index + 1);
    if (upper == NULL) return false;
    block *b = lane->entries[index].rows;
    memcpy(upper->lo, &b->lo[HALF], HALF * sizeof b->lo[0]);
    memcpy(upper->hi, &b->hi[HALF], HALF * sizeof b->hi[0]);
    memcpy(upper->offset, &b->offset[HALF], HALF * sizeof b->offset[0]);
    memcpy(upper->end, &b->end[HALF], HALF * sizeof b->end[0]);
    upper->count = b->count = HALF;
    sum_up(&lane->entries[index + 1]);
    sum_up(&lane->entries[index]);
    return true;
}

/* The block for a buffer at `offset`: the last one that starts at or below it. */
static size_t block_at(const onv_shelf_lane *lane, uint64_t offset)
{
    size_t low = 0, high = lane->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (lane->entries[middle].offset <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static bool insert_row(onv_shelf_lane *lane, uint32_t lo, uint32_t hi, uint64_t offset,
                       uint64_t end)
{
    if (lane->count == 0 && insert_block(lane, 0) == NULL) return false;
    size_t index = block_at(lane, offset);
    if (lane->entries[index].rows->count == BLOCK) {
        if (!split_block(lane, index)) return false;
        if (lane->entries[index + 1].offset <= offset) index++;
    }
    block *b = lane->entries[index].rows;
    uint32_t row = b->count;
    while (row > 0 && b->offset[row - 1] > offset) row--;
    shift_rows(b, row);
    b->lo[row] = lo;
    b->hi[row] = hi;
    b->offset[row] = offset;
    b->end[row] = end;
    b->count++;
    sum_up(&lane->entries[index]);
    return true;
}

/* The scan for a gap: `top` is the highest end seen, below which everything is examined. */
typedef struct gap_scan {
    uint32_t lo, hi;
    uint64_t size;
    onv_fit fit;
    uint64_t top;
    uint64_t gap, offset; /* the best gap so far; UINT64_MAX: none */
} gap_scan;

/* True when the place is found. */
static bool scan_row(gap_scan *scan, uint64_t offset, uint64_t end)
{
    if (offset > scan->top) {
        uint64_t gap = offset - scan->top;
        if (gap >= scan->size && gap < scan->gap) {
            scan->gap = gap;
            scan->offset = scan->top;
            if (scan->fit == ONV_FIT_FIRST || gap == scan->size) return true;
        }
    }
    if (end > scan->top) scan->top = end;
    return false;
}

static bool scan_block(gap_scan *scan, const block *b)
{
    unsigned char shared[BLOCK];
    for (uint32_t i = 0; i < BLOCK; i++) /* rows beyond count are stale, and not looked at below */
        shared[i] = (b->lo[i] < scan->hi) & (b->hi[i] > scan->lo);
    for (uint32_t base = 0; base < b->count; base += 8) {
        uint64_t mask;
        memcpy(&mask, &shared[base], sizeof mask);
        if (mask == 0) continue;
        for (uint32_t i = base; i < base + 8 && i < b->count; i++)
            if (shared[i] && scan_row(scan, b->offset[i], b->end[i])) return true;
    }
    return false;
}

/* Without a look at each buffer, where all of them are in the way and leave no room between them. */
static bool skip_block(gap_scan *scan, const entry *e)
{
    if (e->max_lo >= scan->hi || e->min_hi <= scan->lo || e->gap >= scan->size) return false;
    if (e->offset > scan->top && e->offset - scan->top >= scan->size) return false;
    if (e->top > scan->top) scan->top = e->top;
    return true;
}

/* False where there is no time left for it. */
static bool find_place(onv_shelf *shelf, const onv_shelf_lane *lane, gap_scan *scan)
{
    uint64_t before = shelf->work;
    for (size_t i = 0; i < lane->count; i++) {
        const entry *e = &lane->entries[i];
        if (e->min_lo >= scan->hi || e->max_hi <= scan->lo || skip_block(scan, e)) continue;
        shelf->work += BLOCK / 2;
        if (scan_block(scan, e->rows)) break;
    }
    shelf->work += lane->count / 2 + 8;
    if (scan->gap == UINT64_MAX) scan->offset = scan->top;
    return onv_work((shelf->work - before) / 16);
}

bool onv_shelf_place(onv_shelf *shelf, uint32_t lo, uint32_t hi, uint64_t size, onv_fit fit,
                     uint64_t *offset)
{
    gap_scan scan = {lo, hi, size, fit, 0, UINT64_MAX, 0};
    uint32_t first = 0, last = 0;
    if (shelf->stretches > 0) {
        first = 1 + lo / shelf->stretch;
        last = 1 + (hi - 1) / shelf->stretch;
    }
    if (!find_place(shelf, &shelf->lanes[first == last ? first : 0], &scan)) return false;
    *offset = scan.offset;
    if (!insert_row(&shelf->lanes[0], lo, hi, scan.offset, scan.offset + size)) return false;
    for (uint32_t i = first; i <= last && shelf->stretches > 0; i++)
        if (!insert_row(&shelf->lanes[i], lo, hi, scan.offset, scan.offset + size)) return false;
    return true;
}
