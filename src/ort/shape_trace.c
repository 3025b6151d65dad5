#include "ort/shape_trace.h"

#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/sort.h"

const onv_ort_policy onv_ort_policies[ONV_ORT_MOST_POLICIES] = {
    {ONV_BFC_NEXT_POWER_OF_TWO, false, "kNextPowerOfTwo"},
    {ONV_BFC_SAME_AS_REQUESTED, false, "kSameAsRequested"},
    {ONV_BFC_NEXT_POWER_OF_TWO, true, "kNextPowerOfTwo, shrunk after each run"},
    {ONV_BFC_SAME_AS_REQUESTED, true, "kSameAsRequested, shrunk after each run"},
};

/* Other orders: as many as these requests to the arena allow. */
enum { WORK = 1 << 22, LEAST_ORDERS = 4, MOST_ORDERS = 100 };

typedef struct trial {
    const onv_ort_shape_trace *trace;
    onv_alloc_options options;
    onv_ort_policy policy;
    uint32_t *sequence;
    bool *is_seen; /* by shape */
    uint64_t random;
} trial;

/* In use at most while these are served, from what is in use before on. */
static uint64_t peak_of(const onv_ort_requests *run, uint64_t before)
{
    uint64_t now = before, most = before;
    for (size_t i = 0; i < run->count; i++) {
        now = run->at[i].is_free ? now - run->at[i].bytes : now + run->at[i].bytes;
        if (now > most) most = now;
    }
    return most;
}

typedef struct outcome {
    uint64_t created, most, end;
    bool out_of_memory;
} outcome;

static onv_status serve(trial *w, onv_ort_service *s, onv_ort_shape_figures *figures,
                        uint32_t policy, outcome *o, onv_error *err)
{
    const onv_ort_shape_trace *trace = w->trace;
    ONV_TRY(onv_ort_service_load(s, trace->weights, NULL, trace->n_weights, err));
    memset(w->is_seen, 0, trace->n_shapes * sizeof *w->is_seen);
    o->created = onv_ort_service_reserved(s);
    for (uint32_t i = 0; i < trace->n_requests && !s->arena.out_of_memory; i++) {
        uint32_t shape = w->sequence[i];
        const onv_ort_shape *at = &trace->shapes[shape];
        uint64_t before = s->arena.stats.of[ONV_STAT_REQUESTED_BYTES][ONV_POOL_ALL].current;
        ONV_TRY(onv_ort_service_run(s, at->runs, w->is_seen[shape], err));
        const onv_ort_requests *run = &at->runs[w->is_seen[shape]];
        w->is_seen[shape] = true;
        if (w->policy.shrinks) ONV_TRY(onv_allocator_release_cached(&s->arena, err));
        if (figures == NULL) continue;
        figures[i].reserved[policy] = onv_ort_service_reserved(s);
        if (policy == 0) figures[i].peak = peak_of(run, before);
    }
    o->end = onv_ort_service_reserved(s);
    o->most = s->arena.stats.of[ONV_STAT_RESERVED_BYTES][ONV_POOL_ALL].peak;
    o->out_of_memory = s->arena.out_of_memory;
    return ONV_OK;
}

static onv_status try_order(trial *w, onv_ort_shape_figures *figures, uint32_t policy, outcome *o,
                            onv_error *err)
{
    onv_ort_service s;
    *o = (outcome){0};
    w->options.bfc.extend = w->policy.extend;
    ONV_TRY(onv_ort_service_init(&s, &w->options, err));
    onv_status status = serve(w, &s, figures, policy, o, err);
    onv_ort_service_cleanup(&s);
    return status;
}

/* --- Orders ------------------------------------------------------------------------------------ */

static void shuffle(trial *w)
{
    for (uint32_t i = w->trace->n_requests; i > 1; i--) {
        w->random = w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint32_t k = (uint32_t)((w->random >> 33) % i), other = w->sequence[k];
        w->sequence[k] = w->sequence[i - 1];
        w->sequence[i - 1] = other;
    }
}

static void reverse(trial *w)
{
    uint32_t n = w->trace->n_requests;
    for (uint32_t i = 0; i < n / 2; i++) {
        uint32_t other = w->sequence[i];
        w->sequence[i] = w->sequence[n - 1 - i];
        w->sequence[n - 1 - i] = other;
    }
}

static int compare_peaks(const void *a, const void *b, void *context)
{
    const onv_ort_shape *shapes = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    uint64_t of_x = peak_of(&shapes[x].runs[0], 0), of_y = peak_of(&shapes[y].runs[0], 0);
    if (of_x != of_y) return of_x < of_y ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void note(onv_ort_shape_result *r, uint32_t policy, const outcome *o)
{
    if (o->out_of_memory) return;
    if (o->most > r->worst[policy]) r->worst[policy] = o->most;
    if (o->most < r->best[policy]) r->best[policy] = o->most;
}

/* Growing, shrinking, and at random. */
static onv_status try_orders(trial *w, uint32_t policy, uint32_t n_orders, onv_ort_shape_result *r,
                             onv_error *err)
{
    outcome o;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the way to shed a const */
    void *shapes = (void *)(uintptr_t)w->trace->shapes;
    onv_sort_ids(w->sequence, w->trace->n_requests, compare_peaks, shapes);
    w->random = 1;
    for (uint32_t i = 0; i < n_orders; i++) {
        if (i == 1) reverse(w);
        if (i > 1) shuffle(w);
        ONV_TRY(try_order(w, NULL, policy, &o, err));
        note(r, policy, &o);
    }
    return ONV_OK;
}

static uint32_t count_orders(const onv_ort_shape_trace *trace)
{
    uint64_t work = trace->n_weights + (uint64_t)1;
    for (uint32_t i = 0; i < trace->n_requests; i++)
        work += trace->shapes[trace->sequence[i]].runs[0].count;
    uint64_t n = WORK / ONV_ORT_MOST_POLICIES / work;
    return n < LEAST_ORDERS ? LEAST_ORDERS : n > MOST_ORDERS ? MOST_ORDERS : (uint32_t)n;
}

static onv_status run_policy(trial *w, uint32_t policy, onv_ort_shape_result *r, onv_error *err)
{
    const onv_ort_shape_trace *trace = w->trace;
    outcome o;
    w->policy = onv_ort_policies[policy];
    memcpy(w->sequence, trace->sequence, trace->n_requests * sizeof *w->sequence);
    ONV_TRY(try_order(w, r->requests, policy, &o, err));
    r->created[policy] = o.created;
    r->most[policy] = r->worst[policy] = r->best[policy] = o.most;
    r->out_of_memory[policy] = o.out_of_memory;
    return try_orders(w, policy, r->n_orders, r, err);
}

onv_status onv_ort_shape_trace_run(const onv_ort_shape_trace *trace,
                                   const onv_alloc_options *options, onv_ort_shape_result *result,
                                   onv_error *err)
{
    trial w = {.trace = trace, .options = *options};
    w.sequence = onv_heap_alloc((trace->n_requests + (size_t)1) * sizeof *w.sequence);
    w.is_seen = onv_heap_alloc((trace->n_shapes + (size_t)1) * sizeof *w.is_seen);
    onv_status status = w.sequence != NULL && w.is_seen != NULL ? ONV_OK : onv_fail_memory(err);
    result->n_orders = count_orders(trace);
    for (uint32_t i = 0; i < ONV_ORT_MOST_POLICIES && status == ONV_OK; i++)
        status = run_policy(&w, i, result, err);
    onv_heap_free(w.sequence);
    onv_heap_free(w.is_seen);
    return status;
}
