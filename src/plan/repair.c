#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include "base/heap.h"
#include "base/strings.h"
#include "plan/greedy.h"
#include "plan/part.h"
typedef struct { uint64_t key; uint32_t row; } kr;
static int cmp(const void *a, const void *b) { const kr *x = a, *y = b; return x->key != y->key ? (x->key < y->key ? -1 : 1) : (x->row < y->row ? -1 : x->row > y->row); }
onv_status onv_repair_run(const onv_planner *self, const onv_part *part, onv_layout *layout,
                          onv_effort *effort, onv_error *err)
{
    uint32_t n = part->n;
    int variant = getenv("V") ? atoi(getenv("V")) : 0;
    int order0 = getenv("O") ? atoi(getenv("O")) : 0;
    int fit = getenv("F") ? atoi(getenv("F")) : 0;
    double fac = getenv("FAC") ? atof(getenv("FAC")) : 0.5;
    double eps = getenv("EPS") ? atof(getenv("EPS")) : 0.0;
    uint32_t *rows = onv_heap_calloc(n, 4); kr *k = onv_heap_calloc(n, sizeof *k);
    uint64_t *off = onv_heap_calloc(n, 8);
    onv_shelf shelf = {0};
    onv_order_rows(part, order0, rows, err);
    uint64_t rnd = 1; uint64_t best = UINT64_MAX;
    uint32_t *bestrows = onv_heap_calloc(n, 4);
    for (int it = 0; effort->left > 0; it++) {
        uint64_t h;
        onv_greedy_place(part, rows, fit, &shelf, off, &h, err);
        onv_effort_spend(effort, shelf.work);
        if (h < best) { best = h; memcpy(bestrows, rows, n * 4); if (getenv("VERB")) printf("   it %d height %llu gap %.4f%%\n", it, (unsigned long long)h, 100.0 * (h - part->load) / part->load); }
        onv_layout_offer(layout, off, n, h, self->name);
        if (layout->height <= layout->target) break;
        uint64_t thr = layout->target + (uint64_t)(eps * (double)(h - layout->target));
        if (variant & 2) memcpy(rows, bestrows, 0);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t r = rows[i]; uint64_t key = (uint64_t)(i + 1) << 20;
            bool cul = off[r] + part->size[r] > thr;
            if (cul) {
                rnd += 0x9e3779b97f4a7c15u; double u = (double)(onv_hash_u64(rnd) % 1024) / 1024.0;
                if (variant & 1) key = (uint64_t)((double)key * (fac * 2 * u)); else key = (uint64_t)((double)key * fac);
            }
            k[i] = (kr){key, r};
        }
        qsort(k, n, sizeof *k, cmp);
        for (uint32_t i = 0; i < n; i++) rows[i] = k[i].row;
    }
    onv_shelf_cleanup(&shelf); onv_heap_free(rows); onv_heap_free(k); onv_heap_free(off); onv_heap_free(bestrows);
    return ONV_OK;
}
