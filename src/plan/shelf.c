#include "plan/shelf.h"

#include <string.h>

#include "base/heap.h"

enum { BLOCK = 64 };

struct onv_shelf_block {
    uint32_t count;
    uint32_t min_lo, max_hi; /* of all buffers; may be wider than needed after a removal */
    uint32_t lo[BLOCK], hi[BLOCK];
    uint64_t offset[BLOCK], end[BLOCK];
};

void onv_shelf_reset(onv_shelf *shelf)
{
    shelf->count = 0;
    shelf->work = 0;
}

void onv_shelf_cleanup(onv_shelf *shelf)
{
    for (size_t i = 0; i < shelf->made; i++) onv_heap_free(shelf->blocks[i]);
    onv_heap_free(shelf->blocks);
    *shelf = (onv_shelf){0};
}

/* Makes an empty block at `index` of the directory. */
static onv_shelf_block *insert_block(onv_shelf *shelf, size_t index)
{
    if (shelf->count == shelf->made) {
        if (shelf->made == shelf->capacity) {
            size_t capacity = shelf->capacity == 0 ? 16 : shelf->capacity * 2;
            void *grown = onv_heap_realloc(shelf->blocks, capacity * sizeof *shelf->blocks);
            if (grown == NULL) return NULL;
            shelf->blocks = grown;
            shelf->capacity = capacity;
        }
        onv_shelf_block *made = onv_heap_calloc(1, sizeof *made);
        if (made == NULL) return NULL;
        shelf->blocks[shelf->made++] = made;
    }
    onv_shelf_block *block = shelf->blocks[shelf->count];
    memmove(&shelf->blocks[index + 1], &shelf->blocks[index],
            (shelf->count - index) * sizeof *shelf->blocks);
    shelf->blocks[index] = block;
    shelf->count++;
    block->count = 0;
    block->min_lo = UINT32_MAX;
    block->max_hi = 0;
    return block;
}

static void find_span(onv_shelf_block *block)
{
    block->min_lo = UINT32_MAX;
    block->max_hi = 0;
    for (uint32_t i = 0; i < block->count; i++) {
        if (block->lo[i] < block->min_lo) block->min_lo = block->lo[i];
        if (block->hi[i] > block->max_hi) block->max_hi = block->hi[i];
    }
}

/* Moves the columns of [from, count) by `shift` places. */
static void shift_rows(onv_shelf_block *block, uint32_t from, int shift)
{
    uint32_t rows = block->count - from, to = (uint32_t)((int)from + shift);
    memmove(&block->lo[to], &block->lo[from], rows * sizeof block->lo[0]);
    memmove(&block->hi[to], &block->hi[from], rows * sizeof block->hi[0]);
    memmove(&block->offset[to], &block->offset[from], rows * sizeof block->offset[0]);
    memmove(&block->end[to], &block->end[from], rows * sizeof block->end[0]);
}

/* Moves the upper half of a full block to a new one behind it. */
static bool split_block(onv_shelf *shelf, size_t index)
{
    enum { HALF = BLOCK / 2 };
    onv_shelf_block *upper = insert_block(shelf, index + 1);
    if (upper == NULL) return false;
    onv_shelf_block *block = shelf->blocks[index];
    memcpy(upper->lo, &block->lo[HALF], HALF * sizeof block->lo[0]);
    memcpy(upper->hi, &block->hi[HALF], HALF * sizeof block->hi[0]);
    memcpy(upper->offset, &block->offset[HALF], HALF * sizeof block->offset[0]);
    memcpy(upper->end, &block->end[HALF], HALF * sizeof block->end[0]);
    upper->count = block->count = HALF;
    find_span(upper);
    find_span(block);
    return true;
}

/* The block for a buffer at `offset`: the last one that starts at or below it. */
static size_t block_at(const onv_shelf *shelf, uint64_t offset)
{
    size_t low = 0, high = shelf->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (shelf->blocks[middle]->offset[0] <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static bool insert_row(onv_shelf *shelf, uint32_t lo, uint32_t hi, uint64_t offset, uint64_t end)
{
    if (shelf->count == 0 && insert_block(shelf, 0) == NULL) return false;
    size_t index = block_at(shelf, offset);
    if (shelf->blocks[index]->count == BLOCK) {
        if (!split_block(shelf, index)) return false;
        if (shelf->blocks[index + 1]->offset[0] <= offset) index++;
    }
    onv_shelf_block *block = shelf->blocks[index];
    uint32_t row = block->count;
    while (row > 0 && block->offset[row - 1] > offset) row--;
    shift_rows(block, row, 1);
    block->lo[row] = lo;
    block->hi[row] = hi;
    block->offset[row] = offset;
    block->end[row] = end;
    block->count++;
    if (lo < block->min_lo) block->min_lo = lo;
    if (hi > block->max_hi) block->max_hi = hi;
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

static bool scan_block(gap_scan *scan, const onv_shelf_block *block)
{
    unsigned char shared[BLOCK];
    for (uint32_t i = 0; i < BLOCK; i++) /* rows beyond count are stale, and not looked at below */
        shared[i] = (block->lo[i] < scan->hi) & (block->hi[i] > scan->lo);
    for (uint32_t base = 0; base < block->count; base += 8) {
        uint64_t mask;
        memcpy(&mask, &shared[base], sizeof mask);
        if (mask == 0) continue;
        for (uint32_t i = base; i < base + 8 && i < block->count; i++)
            if (shared[i] && scan_row(scan, block->offset[i], block->end[i])) return true;
    }
    return false;
}

bool onv_shelf_place(onv_shelf *shelf, uint32_t lo, uint32_t hi, uint64_t size, onv_fit fit,
                     uint64_t *offset)
{
    gap_scan scan = {lo, hi, size, fit, 0, UINT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < shelf->count; i++) {
        const onv_shelf_block *block = shelf->blocks[i];
        if (block->min_lo >= hi || block->max_hi <= lo) continue;
        shelf->work += BLOCK / 4;
        if (scan_block(&scan, block)) break;
    }
    shelf->work += shelf->count / 4 + 4;
    *offset = scan.gap == UINT64_MAX ? scan.top : scan.offset;
    return insert_row(shelf, lo, hi, *offset, *offset + size);
}

void onv_shelf_remove(onv_shelf *shelf, uint32_t lo, uint32_t hi, uint64_t offset)
{
    /* Equal offsets may reach back over several blocks. */
    size_t index = block_at(shelf, offset);
    for (;; index--) {
        onv_shelf_block *block = shelf->blocks[index];
        for (uint32_t i = 0; i < block->count; i++) {
            if (block->offset[i] != offset || block->lo[i] != lo || block->hi[i] != hi) continue;
            shift_rows(block, i + 1, -1);
            if (--block->count > 0) return;
            memmove(&shelf->blocks[index], &shelf->blocks[index + 1],
                    (shelf->count - index - 1) * sizeof(onv_shelf_block *));
            shelf->blocks[--shelf->count] = block;
            return;
        }
        if (index == 0) return;
    }
}
