#include "plan/part.h"

#include <string.h>

#include "base/heap.h"
#include "base/quota.h"

enum { BLOCK = 64 };

typedef struct block_rows {
    uint32_t lo[BLOCK], hi[BLOCK];
    uint64_t offset[BLOCK], end[BLOCK];
} block_rows;

/* What is known of all buffers of a block. Apart from its rows: a search walks over all blocks of a lane,
 * and enters few. */
typedef struct block {
    uint32_t count;
    uint32_t min_lo, max_hi; /* outside of these none shares a section */
    uint32_t max_lo, min_hi; /* who covers both shares a section with each */
    uint64_t lowest;         /* the offset of the first */
    uint64_t top;            /* the highest end */
    uint64_t gap;            /* the largest gap between them */
    block_rows *rows;        /* by offset */
} block;

struct onv_skyline_lane {
    block *blocks; /* the first `count` are in use, the rest are spare */
    size_t count, made, capacity;
};

bool onv_skyline_init(onv_skyline *skyline, uint32_t rows, uint32_t sections)
{
    enum { ROWS_PER_STRETCH = 4096, MAX_STRETCHES = 64 };
    uint32_t stretches = rows / ROWS_PER_STRETCH;
    if (stretches > MAX_STRETCHES) stretches = MAX_STRETCHES;
    if (stretches > sections || stretches < 2) stretches = 0;
    *skyline = (onv_skyline){.stretches = stretches};
    if (stretches > 0) skyline->stretch = sections / stretches + 1;
    skyline->lanes = onv_heap_calloc(stretches + (size_t)1, sizeof *skyline->lanes);
    return skyline->lanes != NULL;
}

void onv_skyline_cleanup(onv_skyline *skyline)
{
    for (uint32_t i = 0; skyline->lanes != NULL && i <= skyline->stretches; i++) {
        onv_skyline_lane *lane = &skyline->lanes[i];
        for (size_t k = 0; k < lane->made; k++) onv_heap_free(lane->blocks[k].rows);
        onv_heap_free(lane->blocks);
    }
    onv_heap_free(skyline->lanes);
    *skyline = (onv_skyline){0};
}

void onv_skyline_clear(onv_skyline *skyline)
{
    for (uint32_t i = 0; i <= skyline->stretches; i++) skyline->lanes[i].count = 0;
    skyline->work = skyline->counted = 0;
}

/* Makes an empty block at `index` of the lane. */
static block *insert_block(onv_skyline_lane *lane, size_t index)
{
    if (lane->count == lane->made) {
        if (lane->made == lane->capacity) {
            size_t capacity = lane->capacity == 0 ? 16 : lane->capacity * 2;
            void *grown = onv_heap_realloc(lane->blocks, capacity * sizeof *lane->blocks);
            if (grown == NULL) return NULL;
            lane->blocks = grown;
            lane->capacity = capacity;
        }
        block_rows *rows = onv_heap_calloc(1, sizeof *rows);
        if (rows == NULL) return NULL;
        lane->blocks[lane->made++] = (block){.rows = rows};
    }
    block spare = {
        .rows = lane->blocks[lane->count].rows, .min_lo = UINT32_MAX, .min_hi = UINT32_MAX};
    memmove(&lane->blocks[index + 1], &lane->blocks[index],
            (lane->count - index) * sizeof *lane->blocks);
    lane->blocks[index] = spare;
    lane->count++;
    return &lane->blocks[index];
}

static void note_times(block *b, uint32_t row)
{
    const block_rows *r = b->rows;
    if (r->lo[row] < b->min_lo) b->min_lo = r->lo[row];
    if (r->lo[row] > b->max_lo) b->max_lo = r->lo[row];
    if (r->hi[row] < b->min_hi) b->min_hi = r->hi[row];
    if (r->hi[row] > b->max_hi) b->max_hi = r->hi[row];
}

static void note_heights(block *b)
{
    const block_rows *r = b->rows;
    b->gap = 0;
    b->lowest = b->top = r->offset[0];
    for (uint32_t i = 0; i < b->count; i++) {
        if (r->offset[i] > b->top && r->offset[i] - b->top > b->gap) b->gap = r->offset[i] - b->top;
        if (r->end[i] > b->top) b->top = r->end[i];
    }
}

/* Brings up to date what is known of all its buffers. */
static void summarize(block *b)
{
    b->min_lo = b->min_hi = UINT32_MAX;
    b->max_lo = b->max_hi = 0;
    for (uint32_t i = 0; i < b->count; i++) note_times(b, i);
    note_heights(b);
}

/* Takes an empty block out of use. */
static void drop_block(onv_skyline_lane *lane, size_t index)
{
    block dropped = lane->blocks[index];
    lane->count--;
    memmove(&lane->blocks[index], &lane->blocks[index + 1],
            (lane->count - index) * sizeof *lane->blocks);
    lane->blocks[lane->count] = dropped;
}

/* Moves rows of a block from `from` on, which are `count`, to `to`. */
static void move_rows(block_rows *r, uint32_t to, const block_rows *of, uint32_t from,
                      uint32_t count)
{
    memmove(&r->lo[to], &of->lo[from], count * sizeof r->lo[0]);
    memmove(&r->hi[to], &of->hi[from], count * sizeof r->hi[0]);
    memmove(&r->offset[to], &of->offset[from], count * sizeof r->offset[0]);
    memmove(&r->end[to], &of->end[from], count * sizeof r->end[0]);
}

/* Moves the upper half of a full block to a new one behind it. */
static bool split_block(onv_skyline_lane *lane, size_t index)
{
    enum { HALF = BLOCK / 2 };
    block *upper = insert_block(lane, index + 1);
    if (upper == NULL) return false;
    block *b = &lane->blocks[index];
    move_rows(upper->rows, 0, b->rows, HALF, HALF);
    upper->count = b->count = HALF;
    summarize(upper);
    summarize(b);
    return true;
}

/* The block for a buffer at `offset`: the last one that starts at or below it. */
static size_t block_at(const onv_skyline_lane *lane, uint64_t offset)
{
    size_t low = 0, high = lane->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (lane->blocks[middle].lowest <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static bool insert_row(onv_skyline_lane *lane, uint32_t lo, uint32_t hi, uint64_t offset,
                       uint64_t end)
{
    if (lane->count == 0 && insert_block(lane, 0) == NULL) return false;
    size_t index = block_at(lane, offset);
    if (lane->blocks[index].count == BLOCK) {
        if (!split_block(lane, index)) return false;
        if (lane->blocks[index + 1].lowest <= offset) index++;
    }
    block *b = &lane->blocks[index];
    block_rows *r = b->rows;
    uint32_t row = b->count;
    while (row > 0 && r->offset[row - 1] > offset) row--;
    move_rows(r, row + 1, r, row, b->count - row);
    r->lo[row] = lo;
    r->hi[row] = hi;
    r->offset[row] = offset;
    r->end[row] = end;
    b->count++;
    note_times(b, row);
    note_heights(b);
    return true;
}

/* The row at `offset` with that lo and hi. */
static void remove_row(onv_skyline_lane *lane, uint32_t lo, uint32_t hi, uint64_t offset)
{
    if (lane->count == 0) return;
    /* Equal offsets may go on in blocks before the last one that starts there. */
    for (size_t index = block_at(lane, offset) + 1; index-- > 0;) {
        block *b = &lane->blocks[index];
        block_rows *r = b->rows;
        for (uint32_t row = b->count; row-- > 0;) {
            if (r->offset[row] < offset) return;
            if (r->offset[row] != offset || r->lo[row] != lo || r->hi[row] != hi) continue;
            b->count--;
            move_rows(r, row, r, row + 1, b->count - row);
            if (b->count > 0)
                summarize(b);
            else
                drop_block(lane, index);
            return;
        }
    }
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
    const block_rows *r = b->rows;
    unsigned char shared[BLOCK];
    for (uint32_t i = 0; i < BLOCK; i++) /* rows beyond count are stale, and not looked at below */
        shared[i] = (r->lo[i] < scan->hi) & (r->hi[i] > scan->lo);
    for (uint32_t base = 0; base < b->count; base += 8) {
        uint64_t mask;
        memcpy(&mask, &shared[base], sizeof mask);
        if (mask == 0) continue;
        for (uint32_t i = base; i < base + 8 && i < b->count; i++)
            if (shared[i] && scan_row(scan, r->offset[i], r->end[i])) return true;
    }
    return false;
}

/* Each of its buffers shares a section with the one to be placed, and none leaves room for it. */
static bool is_solid(const gap_scan *scan, const block *b)
{
    if (b->max_lo >= scan->hi || b->min_hi <= scan->lo || b->gap >= scan->size) return false;
    return b->lowest <= scan->top || b->lowest - scan->top < scan->size;
}

/* Counts what was not counted yet to the quota; false where there is no time left. */
static bool count_work(onv_skyline *skyline)
{
    uint64_t units = (skyline->work - skyline->counted) / ONV_PLAN_STEPS_OF_WORK;
    skyline->counted += units * ONV_PLAN_STEPS_OF_WORK;
    return onv_work(units);
}

static void find_place(onv_skyline *skyline, const onv_skyline_lane *lane, gap_scan *scan)
{
    for (size_t i = 0; i < lane->count; i++) {
        const block *b = &lane->blocks[i];
        if (b->min_lo >= scan->hi || b->max_hi <= scan->lo) continue;
        if (is_solid(scan, b)) {
            if (b->top > scan->top) scan->top = b->top;
            continue;
        }
        skyline->work += BLOCK / 2;
        if (scan_block(scan, b)) break;
    }
    skyline->work += lane->count / 2 + 8;
    if (scan->gap == UINT64_MAX) scan->offset = scan->top;
}

bool onv_skyline_place(onv_skyline *skyline, uint32_t lo, uint32_t hi, uint64_t size, onv_fit fit,
                       uint64_t *offset)
{
    gap_scan scan = {lo, hi, size, fit, 0, UINT64_MAX, 0};
    uint32_t first = 0, last = 0;
    if (skyline->stretches > 0) {
        first = 1 + lo / skyline->stretch;
        last = 1 + (hi - 1) / skyline->stretch;
    }
    find_place(skyline, &skyline->lanes[first == last ? first : 0], &scan);
    *offset = scan.offset;
    skyline->work += (uint64_t)BLOCK * (last - first + 1);
    if (!count_work(skyline)) return false;
    if (!insert_row(&skyline->lanes[0], lo, hi, scan.offset, scan.offset + size)) return false;
    for (uint32_t i = first; i <= last && skyline->stretches > 0; i++)
        if (!insert_row(&skyline->lanes[i], lo, hi, scan.offset, scan.offset + size)) return false;
    return true;
}

void onv_skyline_remove(onv_skyline *skyline, uint32_t lo, uint32_t hi, uint64_t offset)
{
    remove_row(&skyline->lanes[0], lo, hi, offset);
    if (skyline->stretches == 0) return;
    for (uint32_t i = 1 + lo / skyline->stretch; i <= 1 + (hi - 1) / skyline->stretch; i++)
        remove_row(&skyline->lanes[i], lo, hi, offset);
}
