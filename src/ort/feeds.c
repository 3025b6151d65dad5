/* The order in which Python's feeds are copied to the device.
 *
 * The binding sorts them by name and puts them into a table with room for all, a std::unordered_map of libstdc++ whose
 * order the run follows (onnxruntime/python/onnxruntime_pybind_state.cc; libstdc++'s hashtable.h and hash_bytes.cc). An
 * entry comes first in its bucket, and before all others where its bucket is empty. Measured, ONNX Runtime 1.31: five
 * sets of 4 to 48 names. */
#include <string.h>

#include "base/sort.h"
#include "ort/planner.h"

/* std::hash of a string where pointers have 64 bits. */
static uint64_t hash_of(const char *name)
{
    const uint64_t by = UINT64_C(0xc6a4a7935bd1e995);
    size_t bytes = strlen(name);
    uint64_t hash = UINT64_C(0xc70f6907) ^ bytes * by;
    for (size_t at = 0; at < bytes; at += 8) {
        size_t n = bytes - at < 8 ? bytes - at : 8;
        uint64_t word = 0;
        for (size_t i = n; i > 0; i--) word = word << 8 | (unsigned char)name[at + i - 1];
        if (n == 8) {
            word *= by;
            word = (word ^ word >> 47) * by;
        }
        hash = (hash ^ word) * by;
    }
    hash = (hash ^ hash >> 47) * by;
    return hash ^ hash >> 47;
}

enum { MOST_BUCKETS = 2357 };

/* Of libstdc++'s numbers of buckets the first that is enough. */
static uint32_t buckets_for(uint32_t n)
{
    static const uint16_t primes[] = {
        2,    3,    5,    7,    11,   13,   17,   19,   23,   29,   31,   37,
        41,   43,   47,   53,   59,   61,   67,   71,   73,   79,   83,   89,
        97,   103,  109,  113,  127,  137,  139,  149,  157,  167,  179,  193,
        199,  211,  227,  241,  257,  277,  293,  313,  337,  359,  383,  409,
        439,  467,  503,  541,  577,  619,  661,  709,  761,  823,  887,  953,
        1031, 1109, 1193, 1289, 1381, 1493, 1613, 1741, 1879, 2029, 2179, MOST_BUCKETS};
    size_t i = 0;
    while (primes[i] < n) i++;
    return primes[i];
}

static int compare_names(const void *a, const void *b, void *context)
{
    const onv_model *model = context;
    const onv_value_id *inputs = model->graphs.at[0].inputs;
    return strcmp(onv_model_value(model, inputs[*(const uint32_t *)a])->name,
                  onv_model_value(model, inputs[*(const uint32_t *)b])->name);
}

/* Entries stand in a list; next[n] is the first of it. before[b] stands before the first one of bucket b. */
static void list_by_buckets(const onv_model *model, const uint32_t *sorted, uint32_t n,
                            uint32_t *next, uint32_t *before)
{
    uint32_t n_buckets = buckets_for(n);
    const onv_value_id *inputs = model->graphs.at[0].inputs;
    for (uint32_t b = 0; b < n_buckets; b++) before[b] = NONE;
    next[n] = NONE;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = sorted[k];
        uint32_t bucket = (uint32_t)(hash_of(onv_model_value(model, inputs[i])->name) % n_buckets);
        uint32_t at = before[bucket] == NONE ? n : before[bucket];
        next[i] = next[at];
        next[at] = i;
        if (before[bucket] != NONE) continue;
        before[bucket] = n;
        if (next[i] == NONE) continue;
        /* What stood first stands behind this one. */
        const char *name = onv_model_value(model, inputs[next[i]])->name;
        before[hash_of(name) % n_buckets] = i;
    }
}

void onv_ort_list_feeds(onv_ort_planner *p)
{
    const onv_graph *graph = &p->model->graphs.at[0];
    uint32_t n = graph->n_inputs;
    p->plan->feeds = ONV_ARENA_ARRAY(&p->model->arena, onv_value_id, n);
    uint32_t *sorted = ONV_ARENA_ARRAY(&p->scratch, uint32_t, n);
    uint32_t *next = ONV_ARENA_ARRAY(&p->scratch, uint32_t, (size_t)n + 1);
    uint32_t *before = ONV_ARENA_ARRAY(&p->scratch, uint32_t, MOST_BUCKETS);
    if (p->model->arena.failed || p->scratch.failed) return;
    p->plan->n_feeds = n;
    memcpy(p->plan->feeds, graph->inputs, n * sizeof *graph->inputs);
    if (n == 0 || n > MOST_BUCKETS) return; /* the file's order */
    for (uint32_t i = 0; i < n; i++) sorted[i] = i;
    onv_sort_ids(sorted, n, compare_names, p->model);
    list_by_buckets(p->model, sorted, n, next, before);
    uint32_t k = 0;
    for (uint32_t i = next[n]; i != NONE; i = next[i]) p->plan->feeds[k++] = graph->inputs[i];
}
