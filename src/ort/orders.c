#include "ort/orders.h"

#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/sort.h"
#include "ort/service.h"

/* Orders tried: as many as these requests allow, and no more or less than that. Of sessions of 50,000 requests and more
 * fewer, down to those that are not drawn at random. */
enum { REQUESTS = 1 << 16, LEAST_ORDERS = 40, MOST_ORDERS = 100, MOST_REQUESTS = 1 << 21 };

typedef struct trial {
    onv_ort_service service;
    uint64_t
        *bytes; /* of the weights, together: orders at random ask for them all over the place */
    uint32_t *order, *best;
    uint32_t n_weights;
    onv_ort_requests rest; /* what is asked for after them */
    uint64_t random;
    onv_ort_spread spread;
} trial;

static onv_status try_order(trial *w, onv_error *err)
{
    onv_allocator *arena = &w->service.arena;
    ONV_TRY(onv_allocator_restart(arena, err));
    for (uint32_t i = 0; i < w->n_weights; i++)
        ONV_TRY(onv_allocator_keep(arena, w->bytes[w->order[i]], err));
    ONV_TRY(onv_ort_service_run(&w->service, &w->rest, err));
    /* What finds no memory counts as the most: a limit that one order does not keep is not kept. */
    uint64_t bytes = arena->out_of_memory
                         ? UINT64_MAX
                         : arena->stats.of[ONV_STAT_RESERVED_BYTES][ONV_POOL_ALL].peak;
    if (w->spread.n_orders++ == 0 || bytes > w->spread.high) {
        w->spread.high = bytes;
        memcpy(w->best, w->order, w->n_weights * sizeof *w->best);
    }
    if (bytes < w->spread.low) w->spread.low = bytes;
    return ONV_OK;
}

/* --- Orders ------------------------------------------------------------------------------------ */

static uint64_t next_random(trial *w)
{
    w->random += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = w->random;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void shuffle(trial *w)
{
    for (uint32_t i = w->n_weights; i > 1; i--) {
        uint32_t k = (uint32_t)(next_random(w) % i), other = w->order[k];
        w->order[k] = w->order[i - 1];
        w->order[i - 1] = other;
    }
}

static void reverse(trial *w)
{
    for (uint32_t i = 0; i < w->n_weights / 2; i++) {
        uint32_t other = w->order[i];
        w->order[i] = w->order[w->n_weights - 1 - i];
        w->order[w->n_weights - 1 - i] = other;
    }
}

static int compare_sizes(const void *a, const void *b, void *context)
{
    const uint64_t *bytes = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (bytes[x] != bytes[y]) return bytes[x] < bytes[y] ? -1 : 1;
    return x < y ? -1 : x > y;
}

static onv_status try_all(trial *w, onv_error *err)
{
    for (uint32_t i = 0; i < w->n_weights; i++) w->order[i] = i;
    ONV_TRY(try_order(w, err));
    if (w->n_weights == 0) return ONV_OK;
    reverse(w);
    ONV_TRY(try_order(w, err));
    onv_sort_ids(w->order, w->n_weights, compare_sizes, w->bytes);
    ONV_TRY(try_order(w, err));
    reverse(w);
    ONV_TRY(try_order(w, err));
    size_t each = w->n_weights + w->rest.count + 1, n = REQUESTS / each;
    n = n < LEAST_ORDERS ? LEAST_ORDERS : n > MOST_ORDERS ? MOST_ORDERS : n;
    if (n > MOST_REQUESTS / each) n = MOST_REQUESTS / each;
    while (w->spread.n_orders < n) {
        shuffle(w);
        ONV_TRY(try_order(w, err));
    }
    return ONV_OK;
}

static onv_status put_in_order(onv_timeline *t, const trial *w, onv_error *err)
{
    onv_buffer *weights = onv_heap_alloc(w->n_weights * sizeof *weights);
    if (weights == NULL) return onv_fail_memory(err);
    for (uint32_t i = 0; i < w->n_weights; i++) weights[i] = t->buffers.at[w->best[i]];
    memcpy(t->buffers.at, weights, w->n_weights * sizeof *weights);
    onv_heap_free(weights);
    return ONV_OK;
}

onv_status onv_ort_spread_weights(onv_timeline *t, uint32_t n_weights,
                                  const onv_alloc_options *options, onv_ort_spread *spread,
                                  onv_error *err)
{
    trial w = {.n_weights = n_weights, .spread.low = UINT64_MAX};
    w.bytes = onv_heap_alloc((n_weights + (size_t)1) * sizeof *w.bytes);
    w.order = onv_heap_alloc((n_weights + (size_t)1) * sizeof *w.order);
    w.best = onv_heap_alloc((n_weights + (size_t)1) * sizeof *w.best);
    bool has_room = w.bytes != NULL && w.order != NULL && w.best != NULL;
    onv_status status =
        has_room ? onv_ort_service_init(&w.service, options, err) : onv_fail_memory(err);
    for (uint32_t i = 0; has_room && i < n_weights; i++) w.bytes[i] = t->buffers.at[i].bytes;
    uint32_t n_runs = t->steps.at[t->steps.count - 1].iteration + 1;
    for (uint32_t run = 0; run < n_runs && status == ONV_OK; run++)
        status = onv_ort_list_requests(t, n_weights, run, &w.rest, err);
    if (status == ONV_OK) status = try_all(&w, err);
    if (status == ONV_OK) status = put_in_order(t, &w, err);
    *spread = w.spread;
    onv_heap_free(w.bytes);
    onv_heap_free(w.order);
    onv_heap_free(w.best);
    onv_vec_cleanup(&w.rest);
    onv_ort_service_cleanup(&w.service);
    return status;
}
