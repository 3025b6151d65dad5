#include "device/replay.h"

#include "base/fail.h"
#include "base/heap.h"

/* --- One replay -------------------------------------------------------------------------------- */

void onv_replay_cleanup(onv_replay *replay)
{
    onv_timeline_cleanup(&replay->timeline);
    onv_placement_cleanup(&replay->placement);
}

void onv_replay_forget_labels(onv_replay *replay)
{
    onv_timeline *t = &replay->timeline;
    for (size_t i = 0; i < t->steps.count; i++) t->steps.at[i].label = NULL;
    for (size_t i = 0; i < t->regions.count; i++) t->regions.at[i].label = NULL;
    for (size_t i = 0; i < t->buffers.count; i++) t->buffers.at[i].label = NULL;
    replay->plan = NULL;
}

uint64_t onv_replay_needs(const onv_replay *replay)
{
    uint64_t held = onv_placement_held_peak(&replay->placement);
    uint64_t reserved = replay->placement.figures.reserved_peak;
    return reserved > held ? reserved : held;
}

/* --- All of them ------------------------------------------------------------------------------- */

void onv_replays_cleanup(onv_replays *r)
{
    for (size_t i = 0; i < r->list.count; i++) onv_replay_cleanup(&r->list.at[i]);
    for (size_t i = 0; i < r->results.count; i++) onv_replay_result_cleanup(&r->results.at[i]);
    onv_vec_cleanup(&r->list);
    onv_vec_cleanup(&r->results);
    onv_vec_cleanup(&r->max_batches);
}

onv_status onv_replays_add(onv_replays *r, onv_replay *replay, onv_error *err)
{
    if (onv_vec_push(&r->list, *replay)) return ONV_OK;
    onv_replay_cleanup(replay);
    return onv_fail_memory(err);
}

onv_status onv_replays_run(onv_replays *r, onv_device *device, const onv_replay_options *options,
                           onv_error *err)
{
    r->device = device->info;
    r->agrees = true;
    for (size_t i = 0; i < r->list.count; i++) {
        if (!onv_vec_reserve(&r->results, 1)) return onv_fail_memory(err);
        onv_replay_result *result = &r->results.at[r->results.count++];
        ONV_TRY(onv_replay_run(&r->list.at[i], device, options, result, err));
        r->agrees &= result->agrees;
        r->out_of_memory |= result->out_of_memory;
    }
    return ONV_OK;
}

void onv_replays_largest(const onv_replays *r, uint64_t *predicted, uint64_t *measured)
{
    *predicted = *measured = 0;
    for (size_t i = 0; i < r->results.count; i++) {
        const onv_replay_result *result = &r->results.at[i];
        if (result->predicted_bytes <= *predicted) continue;
        *predicted = result->predicted_bytes;
        *measured = result->measured_bytes;
    }
}

/* --- Walls ------------------------------------------------------------------------------------- */

enum { MAX_PROBES = 192 };
#define MAX_BATCH (INT64_C(1) << 30)

typedef struct probe {
    uint64_t needs;
    uint64_t tolerance;
    bool is_tried, fits; /* on the device */
} probe;

typedef struct search {
    onv_device *device;
    onv_replays_at at;
    void *context;
    onv_replay_options options;
    uint64_t capacity;
    size_t n_replays, count;
    int64_t batches[MAX_PROBES];
    probe *probes; /* MAX_PROBES rows of n_replays */
} search;

/* Replays at a batch, once; what is asked of the device is decided by whoever looks. */
static onv_status look(search *s, int64_t batch, size_t which, bool try_it, probe **result,
                       onv_error *err)
{
    size_t i = 0;
    while (i < s->count && s->batches[i] != batch) i++;
    probe *row = &s->probes[i * s->n_replays];
    *result = &row[which];
    if (i < s->count && (!try_it || row[which].is_tried)) return ONV_OK;
    if (i == MAX_PROBES)
        return onv_fail(err, ONV_ERR_LIMIT, "the largest batch was not found in %d trials",
                        MAX_PROBES);
    onv_replays at = {0};
    onv_error local = {0};
    onv_status status = s->at(s->context, batch, &at, &local);
    bool too_large = status == ONV_ERR_OVERFLOW || (status == ONV_ERR_LIMIT && batch > 1);
    if (i == s->count) {
        s->batches[s->count++] = batch;
        for (size_t k = 0; k < s->n_replays; k++) {
            row[k] = (probe){.needs = UINT64_MAX, .is_tried = too_large};
            if (!too_large && k < at.list.count) row[k].needs = onv_replay_needs(&at.list.at[k]);
        }
    }
    if (status == ONV_OK && try_it && which < at.list.count) {
        onv_replay_result run;
        status = onv_replay_run(&at.list.at[which], s->device, &s->options, &run, &local);
        row[which].is_tried = true;
        row[which].fits = !run.out_of_memory;
        row[which].tolerance = run.tolerance_bytes;
        onv_replay_result_cleanup(&run);
    }
    onv_replays_cleanup(&at);
    if (too_large || status == ONV_OK) return ONV_OK;
    if (err != NULL) *err = local;
    return status;
}

static onv_status fits(search *s, int64_t batch, size_t which, bool really, bool *result,
                       onv_error *err)
{
    probe *at;
    ONV_TRY(look(s, batch, which, really, &at, err));
    *result = really ? at->fits : at->needs <= s->capacity;
    return ONV_OK;
}

/* Starts where the other search ended, if it did: mostly that is the answer. */
static onv_status find_largest(search *s, size_t which, bool really, int64_t start,
                               int64_t *largest, onv_error *err)
{
    int64_t good = 0, bad = start > 0 ? start : 1, jump = 1;
    bool fitting;
    for (;;) {
        ONV_TRY(fits(s, bad, which, really, &fitting, err));
        if (!fitting) break;
        good = bad;
        if (good >= MAX_BATCH) break;
        bad = start > 0 ? good + jump : good * 2;
        jump *= 2;
    }
    while (good < MAX_BATCH && bad - good > 1) {
        int64_t middle = good + (bad - good) / 2;
        ONV_TRY(fits(s, middle, which, really, &fitting, err));
        if (fitting)
            good = middle;
        else
            bad = middle;
    }
    *largest = good;
    return ONV_OK;
}

/* Apart they may be where the last batch that fitted, or the first that did not, needs about all that
 * is free. */
static onv_status judge(search *s, size_t which, onv_replay_max_batch *max_batch, onv_error *err)
{
    bool over = max_batch->predicted < max_batch->measured;
    max_batch->agrees =
        max_batch->predicted == max_batch->measured || (over && max_batch->predicted_is_least);
    if (max_batch->agrees) return ONV_OK;
    probe *at;
    ONV_TRY(look(s, max_batch->measured + (over ? 0 : 1), which, true, &at, err));
    uint64_t apart = at->needs > s->capacity ? at->needs - s->capacity : s->capacity - at->needs;
    max_batch->agrees = apart <= at->tolerance;
    return ONV_OK;
}

static onv_status find_max_batches(onv_replays *r, search *s, onv_error *err)
{
    for (size_t i = 0; i < s->n_replays; i++) {
        onv_replay_max_batch max_batch = {.mode = r->list.at[i].mode,
                                          .runtime = r->list.at[i].runtime,
                                          .plan = r->list.at[i].plan,
                                          .predicted_is_least = r->list.at[i].placement.is_pooled};
        ONV_TRY(find_largest(s, i, false, 0, &max_batch.predicted, err));
        ONV_TRY(find_largest(s, i, true, max_batch.predicted, &max_batch.measured, err));
        ONV_TRY(judge(s, i, &max_batch, err));
        r->agrees &= max_batch.agrees;
        if (!onv_vec_push(&r->max_batches, max_batch)) return onv_fail_memory(err);
    }
    return ONV_OK;
}

onv_status onv_replays_find_max_batches(onv_replays *r, onv_device *device, onv_replays_at at,
                                        void *context, const onv_replay_options *options,
                                        onv_error *err)
{
    search *s = onv_heap_calloc(1, sizeof *s);
    if (s == NULL) return onv_fail_memory(err);
    uint64_t total;
    s->device = device;
    s->at = at;
    s->context = context;
    s->options = *options;
    s->options.allocate_only = true;
    s->n_replays = r->list.count;
    s->probes = onv_heap_calloc((size_t)MAX_PROBES * s->n_replays, sizeof *s->probes);
    onv_status status = s->probes != NULL ? ONV_OK : onv_fail_memory(err);
    if (status == ONV_OK) status = device->kind->memory(device, &s->capacity, &total, err);
    if (s->capacity > device->limit_bytes) s->capacity = device->limit_bytes;
    if (status == ONV_OK) status = find_max_batches(r, s, err);
    onv_heap_free(s->probes);
    onv_heap_free(s);
    return status;
}
