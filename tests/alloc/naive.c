#include "alloc/naive.h"

#include <stdlib.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)

void naive_init(naive *n)
{
    *n = (naive){.next_address = UINT64_C(1) << 44,
                 .capacity = UINT64_MAX,
                 .max_split = UINT64_MAX,
                 .region = MIB};
}

void naive_cleanup(naive *n)
{
    onv_vec_cleanup(&n->blocks);
}

static void insert(naive *n, size_t at, naive_block block)
{
    if (!onv_vec_reserve(&n->blocks, 1)) abort();
    memmove(&n->blocks.at[at + 1], &n->blocks.at[at],
            (n->blocks.count - at) * sizeof n->blocks.at[0]);
    n->blocks.at[at] = block;
    n->blocks.count++;
}

static void erase(naive *n, size_t at)
{
    n->blocks.count--;
    memmove(&n->blocks.at[at], &n->blocks.at[at + 1],
            (n->blocks.count - at) * sizeof n->blocks.at[0]);
}

naive_sums naive_sum(const naive *n)
{
    naive_sums s = {0};
    for (size_t i = 0; i < n->blocks.count; i++) {
        const naive_block *b = &n->blocks.at[i];
        bool starts = i == 0 || b[-1].segment != b->segment;
        bool ends = i + 1 == n->blocks.count || b[1].segment != b->segment;
        s.reserved += b->bytes;
        s.segments += starts;
        if (b->used) {
            s.used += b->bytes;
            s.requested += b->requested;
        } else if (!starts || !ends) {
            s.inactive += b->bytes;
        }
    }
    return s;
}

/* The smallest free block of at least that size, the first of equals; count: none. */
static size_t best_fit(const naive *n, uint64_t bytes, bool small)
{
    size_t best = n->blocks.count;
    for (size_t i = 0; i < n->blocks.count; i++) {
        const naive_block *b = &n->blocks.at[i];
        if (b->used || b->small != small || b->stream != n->stream || b->bytes < bytes) continue;
        if (best == n->blocks.count || b->bytes < n->blocks.at[best].bytes) best = i;
    }
    return best;
}

/* A new segment at the end of the list; false if the device is full. */
static bool add_segment(naive *n, uint64_t bytes, bool small)
{
    uint64_t reserved = naive_sum(n).reserved;
    if (bytes > n->capacity - reserved) return false;
    naive_block b = {.address = n->next_address,
                     .bytes = bytes,
                     .segment = n->next_segment++,
                     .stream = n->stream,
                     .small = small};
    n->next_address += bytes;
    insert(n, n->blocks.count, b);
    return true;
}

static uint64_t use(naive *n, size_t at, uint64_t bytes, bool split, uint32_t id, uint64_t asked)
{
    naive_block *b = &n->blocks.at[at];
    if (split) {
        naive_block rest = *b;
        rest.address += bytes;
        rest.bytes -= bytes;
        b->bytes = bytes;
        insert(n, at + 1, rest);
        b = &n->blocks.at[at];
    }
    b->used = true;
    b->id = id;
    b->requested = asked;
    return b->address;
}

void naive_free(naive *n, uint32_t id)
{
    size_t at = 0;
    while (!n->blocks.at[at].used || n->blocks.at[at].id != id) at++;
    naive_block *b = &n->blocks.at[at];
    b->used = false;
    if (at + 1 < n->blocks.count && !b[1].used && b[1].segment == b->segment) {
        b->bytes += b[1].bytes;
        erase(n, at + 1);
    }
    if (at > 0 && !b[-1].used && b[-1].segment == b->segment) {
        b[-1].bytes += b->bytes;
        erase(n, at);
    }
}

/* --- torch ------------------------------------------------------------------------------------- */

static bool is_whole(const naive *n, size_t at)
{
    const naive_block *b = &n->blocks.at[at];
    return (at == 0 || b[-1].segment != b->segment) &&
           (at + 1 == n->blocks.count || b[1].segment != b->segment);
}

static void release_whole(naive *n)
{
    for (size_t i = n->blocks.count; i-- > 0;) {
        if (!n->blocks.at[i].used && is_whole(n, i)) erase(n, i);
    }
}

/* Gives back oversize blocks until `wanted` bytes are free. */
static bool release_oversize(naive *n, uint64_t wanted)
{
    if (wanted < n->max_split) wanted = n->max_split;
    size_t one = best_fit(n, wanted, false);
    if (one < n->blocks.count) {
        erase(n, one);
        return true;
    }
    for (uint64_t released = 0; released < wanted;) {
        size_t largest = n->blocks.count;
        for (size_t i = 0; i < n->blocks.count; i++) {
            const naive_block *b = &n->blocks.at[i];
            if (b->used || b->small || b->stream != n->stream || b->bytes < n->max_split) continue;
            if (largest == n->blocks.count || b->bytes >= n->blocks.at[largest].bytes) largest = i;
        }
        if (largest == n->blocks.count) return false;
        released += n->blocks.at[largest].bytes;
        erase(n, largest);
    }
    return true;
}

uint64_t naive_torch_alloc(naive *n, uint32_t id, uint64_t bytes)
{
    uint64_t size = bytes < 512 ? 512 : (bytes + 511) / 512 * 512;
    bool small = size <= MIB;
    bool oversize = size >= n->max_split;
    uint64_t segment = small ? 2 * MIB : 20 * MIB;
    if (size >= 10 * MIB) segment = (size + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);

    size_t at = best_fit(n, size, small);
    if (at < n->blocks.count) {
        uint64_t found = n->blocks.at[at].bytes;
        bool usable = oversize ? found < size + 20 * MIB : found < n->max_split;
        if (!usable) at = n->blocks.count;
    }
    if (at == n->blocks.count) {
        bool got = add_segment(n, segment, small);
        if (!got && n->max_split != UINT64_MAX && !small)
            got = release_oversize(n, size) && add_segment(n, segment, small);
        if (!got) {
            release_whole(n);
            got = add_segment(n, segment, small);
        }
        if (!got) return UINT64_MAX;
        at = n->blocks.count - 1;
    }
    uint64_t rest = n->blocks.at[at].bytes - size;
    bool split = small ? rest >= 512 : rest > MIB && !oversize;
    return use(n, at, size, split, id, bytes);
}

/* --- bfc --------------------------------------------------------------------------------------- */

static uint64_t bfc_region(naive *n, uint64_t size)
{
    if (n->same) return size;
    if (n->region >= size) {
        uint64_t region = n->region;
        n->region = region * 2 < 1024 * MIB ? region * 2 : 1024 * MIB;
        return region;
    }
    while (n->region < size) n->region *= 2;
    return n->region;
}

uint64_t naive_bfc_alloc(naive *n, uint32_t id, uint64_t bytes)
{
    uint64_t size = (bytes + 255) / 256 * 256;
    size_t at = best_fit(n, size, false);
    if (at == n->blocks.count && !add_segment(n, bfc_region(n, size), false)) return UINT64_MAX;
    uint64_t found = n->blocks.at[at].bytes;
    return use(n, at, size, found >= 2 * size || found - size >= 128 * MIB, id, bytes);
}

/* --- pattern ----------------------------------------------------------------------------------- */

uint64_t naive_pattern_alloc(naive *n, uint32_t id, uint64_t bytes)
{
    uint64_t size = (bytes + 255) / 256 * 256, gap_start = 0, least = UINT64_MAX, offset = 0;
    size_t place = n->blocks.count;
    for (size_t i = 0; i < n->blocks.count; i++) {
        const naive_block *b = &n->blocks.at[i];
        uint64_t gap = b->address - gap_start;
        if (gap >= size && gap - size < least) {
            least = gap - size;
            place = i;
            offset = gap_start;
        }
        gap_start = b->address + b->bytes;
    }
    bool at_end = n->end - gap_start >= size && n->end - gap_start - size < least;
    if (at_end) place = n->blocks.count;
    if (place == n->blocks.count) offset = gap_start;
    insert(n, place,
           (naive_block){
               .address = offset, .bytes = size, .requested = bytes, .id = id, .used = true});
    if (offset + size > n->end) n->end = offset + size;
    return offset;
}

void naive_pattern_free(naive *n, uint32_t id)
{
    size_t at = 0;
    while (n->blocks.at[at].id != id) at++;
    erase(n, at);
}
