#include "ort/orders.h"

#include <inttypes.h>
#include <string.h>

#include "alloc/alloc_model.h"
#include "alloc/bfc.h"
#include "base/fail.h"
#include "base/heap.h"
#include "ort/service.h"

#define NONE UINT32_MAX

/* Orders tried: as many as these requests allow, and no more or less than that. Of sessions of 50,000 requests and more
 * fewer. */
enum { REQUESTS = 1 << 16, LEAST_ORDERS = 40, MOST_REQUESTS = 1 << 21, FEWEST_ORDERS = 4 };

struct onv_ort_loaded {
    onv_bfc_image image;   /* of the last run */
    onv_bfc_extent loaded; /* without any */
    uint64_t bytes;        /* that the session reached; UINT64_MAX: a request found no memory */
};

/* --- Orders ------------------------------------------------------------------------------------ */

static uint64_t next_random(onv_ort_orders *o)
{
    o->random += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = o->random;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void shuffle(uint32_t *list, uint32_t n, onv_ort_orders *o)
{
    for (uint32_t i = n; i > 1; i--) {
        uint32_t k = (uint32_t)(next_random(o) % i), other = list[k];
        list[k] = list[i - 1];
        list[i - 1] = other;
    }
}

/* Where a table whose size is a power of two looks for a number first: absl's hash of an integer (absl/hash/internal/hash.h,
 * of 2025-08-14), the high and the low half of a product. */
static uint32_t slot_of(uint64_t seed, uint32_t number)
{
    const uint64_t by = UINT64_C(0x79d5f9e0de1e8cf5);
    unsigned __int128 product = (unsigned __int128)(seed ^ number) * by;
    return (uint32_t)(product >> 64 ^ product);
}

/* A graph's table: its initializers are put in one after the other, as another table had them, each into the next slot that is
 * free, and read by slot. The last slot is none. */
static void draw_graph(onv_ort_orders *o, const onv_ort_table *t, uint64_t seed)
{
    uint32_t *list = o->order + t->first, *slots = o->slots, n = 0;
    const uint32_t mask = t->mask;
    memcpy(list, o->listed + t->first, t->count * sizeof *list); /* whatever was drawn before */
    shuffle(list, t->count, o);
    memset(slots, 0xff, mask * sizeof *slots);
    slots[mask] = 0; /* taken */
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t at = slot_of(seed, o->number[list[i]]) & mask;
        while (slots[at] != NONE) at = (at + 1) & mask;
        slots[at] = list[i];
    }
    for (uint32_t i = 0; i < mask; i++)
        if (slots[i] != NONE) list[n++] = slots[i];
}

void onv_ort_orders_draw(onv_ort_orders *o, uint16_t seed)
{
    const uint64_t first_bit = 0x8000; /* which is set, and extends it */
    for (size_t i = 0; i < o->tables.count; i++)
        draw_graph(o, &o->tables.at[i], seed | ~(first_bit - 1));
}

static void draw_next(onv_ort_orders *o)
{
    o->n_drawn++;
    onv_ort_orders_draw(o, (uint16_t)next_random(o));
}

/* --- Tables ------------------------------------------------------------------------------------ */

/* As the session numbers values: inputs of the graph, then what its nodes read and make, as the nodes were made
 * (onnxruntime/core/framework/session_state.cc). By value. */
static void number_values(const onv_model *model, uint32_t *number, uint32_t *next)
{
    for (size_t g = 0; g < model->graphs.count; g++)
        for (uint32_t k = 0; k < model->graphs.at[g].n_inputs; k++)
            number[model->graphs.at[g].inputs[k].index] = next[g]++;
    for (size_t i = 0; i < model->nodes.count; i++) {
        const onv_node *node = &model->nodes.at[i];
        for (uint32_t k = 0; k < node->n_inputs + node->n_outputs; k++) {
            onv_value_id id =
                k < node->n_inputs ? node->inputs[k] : node->outputs[k - node->n_inputs];
            if (onv_is_value(id) && number[id.index] == NONE)
                number[id.index] = next[node->graph.index]++;
        }
    }
}

/* The last slot of a table with room for so many, of which it leaves an eighth. */
static uint32_t mask_for(uint32_t n)
{
    uint32_t slots = 2;
    while (n > slots - (slots >= 8 ? slots / 8 : 1)) slots *= 2;
    return slots - 1;
}

/* Graph by graph, as sessions of subgraphs follow that of the graph around them. `scratch` has a number for each value and two
 * for each graph. */
static onv_status list_tables(onv_ort_orders *o, const onv_model *model, const onv_timeline *t,
                              uint32_t *scratch, onv_error *err)
{
    size_t n_values = model->values.count, n_graphs = model->graphs.count;
    uint32_t *number = scratch, *all = scratch + n_values, *here = all + n_graphs, first = 0;
    memset(number, 0xff, n_values * sizeof *number);
    memset(all, 0, 2 * n_graphs * sizeof *all);
    number_values(model, number, all);
    memset(all, 0, n_graphs * sizeof *all);
    for (size_t i = 0; i < n_values; i++)
        all[model->values.at[i].graph.index] += onv_value_is_weight(&model->values.at[i]);
    for (uint32_t i = 0; i < o->n_weights; i++)
        here[onv_model_value(model, t->buffers.at[i].value)->graph.index]++;
    for (size_t g = 0; g < n_graphs; g++) {
        onv_ort_table table = {.first = first, .count = here[g], .mask = mask_for(all[g])};
        here[g] = first;
        first += table.count;
        if (table.mask > o->n_slots) o->n_slots = table.mask;
        if (table.count > 0 && !onv_vec_push(&o->tables, table)) return onv_fail_memory(err);
    }
    for (uint32_t i = 0; i < o->n_weights; i++) {
        onv_value_id id = t->buffers.at[i].value;
        o->number[i] = number[id.index];
        o->listed[here[onv_model_value(model, id)->graph.index]++] = i;
    }
    return ONV_OK;
}

/* --- What they leave --------------------------------------------------------------------------- */

static onv_status load_next(onv_ort_orders *o, onv_error *err)
{
    uint32_t place = (uint32_t)o->loaded.count;
    if (!onv_vec_push(&o->loaded, (onv_ort_loaded){0})) return onv_fail_memory(err);
    onv_ort_loaded *loaded = &o->loaded.at[place];
    draw_next(o);
    ONV_TRY(onv_bfc_load(&o->arena, o->bytes, o->order, o->n_weights, &loaded->image, err));
    loaded->loaded = loaded->image.now;
    return ONV_OK;
}

static onv_status check_size(uint64_t bytes, onv_error *err)
{
    if (bytes <= ONV_ALLOC_MAX_BYTES) return ONV_OK;
    return onv_fail(err, ONV_ERR_LIMIT, "%" PRIu64 " bytes are more than any device", bytes);
}

onv_status onv_ort_orders_init(onv_ort_orders *o, const onv_model *model, const onv_timeline *t,
                               uint32_t n_weights, const onv_alloc_options *options, onv_error *err)
{
    size_t n_scratch = model->values.count + 2 * model->graphs.count;
    *o = (onv_ort_orders){.n_weights = n_weights, .are_equal = true};
    onv_arena_init(&o->memory, SIZE_MAX);
    ONV_TRY(onv_allocator_init(&o->arena, onv_alloc_model_find("bfc"), options, err));
    o->bytes = ONV_ARENA_ARRAY(&o->memory, uint64_t, n_weights);
    o->order = ONV_ARENA_ARRAY(&o->memory, uint32_t, n_weights);
    o->number = ONV_ARENA_ARRAY(&o->memory, uint32_t, n_weights);
    o->listed = ONV_ARENA_ARRAY(&o->memory, uint32_t, n_weights);
    uint32_t *scratch = ONV_ARENA_ARRAY(&o->memory, uint32_t, n_scratch);
    if (o->memory.failed) return onv_fail_memory(err);
    ONV_TRY(list_tables(o, model, t, scratch, err));
    o->slots = ONV_ARENA_ARRAY(&o->memory, uint32_t, o->n_slots + (size_t)1);
    if (o->slots == NULL) return onv_fail_memory(err);
    for (uint32_t i = 0; i < n_weights; i++) {
        o->bytes[i] = t->buffers.at[i].bytes;
        o->are_equal &= o->bytes[i] == o->bytes[0];
        ONV_TRY(check_size(o->bytes[i], err));
    }
    return ONV_OK;
}

void onv_ort_orders_cleanup(onv_ort_orders *o)
{
    for (size_t i = 0; i < o->loaded.count; i++) onv_vec_cleanup(&o->loaded.at[i].image.holes);
    onv_vec_cleanup(&o->loaded);
    onv_arena_cleanup(&o->memory);
    onv_vec_cleanup(&o->tables);
    onv_allocator_cleanup(&o->arena);
}

/* --- Sessions ---------------------------------------------------------------------------------- */

/* Requests of a session, each free with the place of what it frees. */
typedef struct session {
    onv_ort_requests all;
    size_t ends[ONV_ORT_RUNS]; /* by run; one that keeps something continues in the next one */
    size_t n_held;
    size_t n_requests; /* with those that change nothing */
    uint32_t n_runs;
    uint32_t *blocks; /* by place */
} session;

/* Appends a run; `places` is by buffer. */
static onv_status add_run(session *s, const onv_ort_requests *run, uint32_t *places, onv_error *err)
{
    for (size_t i = 0; i < run->count; i++) {
        onv_ort_request r = run->at[i];
        if (r.buffer != ONV_NO_BUFFER) {
            if (r.bytes == 0) continue;
            ONV_TRY(check_size(r.bytes, err));
            if (!r.is_free) places[r.buffer] = (uint32_t)s->all.count;
            r.buffer = places[r.buffer];
            s->n_held += r.is_free ? -1 : 1;
        }
        if (!onv_vec_push(&s->all, r)) return onv_fail_memory(err);
    }
    s->ends[s->n_runs] = s->all.count;
    s->n_runs += s->n_held == 0;
    return ONV_OK;
}

static onv_status open_session(session *s, const onv_ort_orders *o, const onv_timeline *t,
                               onv_error *err)
{
    onv_ort_requests runs[ONV_ORT_RUNS] = {0};
    uint32_t n_runs = t->steps.at[t->steps.count - 1].iteration + 1;
    onv_status status = onv_ort_list_requests(t, o->n_weights, runs, n_runs, err);
    uint32_t *places = onv_heap_alloc((t->buffers.count + 1) * sizeof *places);
    size_t n = 0;
    for (uint32_t i = 0; i < n_runs; i++) n += runs[i].count;
    s->n_requests = n;
    s->blocks = onv_heap_alloc((n + 1) * sizeof *s->blocks);
    if (status == ONV_OK && (places == NULL || s->blocks == NULL)) status = onv_fail_memory(err);
    for (uint32_t i = 0; i < n_runs; i++) {
        if (status == ONV_OK) status = add_run(s, &runs[i], places, err);
        onv_vec_cleanup(&runs[i]);
    }
    if (s->n_held > 0) s->n_runs++;
    onv_heap_free(places);
    return status;
}

/* Orders that are served together, as they find the same chunks: by the image of the first one. */
typedef struct group {
    uint32_t *orders;
    uint32_t count;
} group;

/* Those that find what the first one found, or begin as it does, up front; how many. */
static uint32_t gather(const onv_ort_orders *o, const group *g, bool begins)
{
    const onv_bfc_image *first = &o->loaded.at[g->orders[0]].image;
    uint32_t n = 1;
    for (uint32_t k = 1; k < g->count; k++) {
        uint32_t order = g->orders[k];
        const onv_bfc_image *other = &o->loaded.at[order].image;
        if (!(begins ? onv_bfc_begins_alike(&o->arena, first, other)
                     : onv_bfc_is_alike(first, other)))
            continue;
        g->orders[k] = g->orders[n];
        g->orders[n++] = order;
    }
    return n;
}

/* `is_short`: a request found no memory. A limit that one order does not keep is not kept. */
static onv_status end_run(onv_ort_orders *o, onv_allocator *arena, const group *g, bool is_short,
                          onv_error *err)
{
    onv_bfc_image *first = &o->loaded.at[g->orders[0]].image;
    uint64_t most = arena->stats.of[ONV_STAT_RESERVED_BYTES][ONV_POOL_ALL].peak;
    uint64_t added = most - first->before.reserved_bytes;
    if (!is_short) ONV_TRY(onv_bfc_leave(arena, first, err));
    for (uint32_t k = 0; k < g->count; k++) {
        onv_ort_loaded *loaded = &o->loaded.at[g->orders[k]];
        if (k > 0 && !is_short) ONV_TRY(onv_bfc_grow(&loaded->image, first, err));
        uint64_t bytes = is_short ? UINT64_MAX : loaded->image.before.reserved_bytes + added;
        if (bytes > loaded->bytes) loaded->bytes = bytes;
    }
    return ONV_OK;
}

/* Requests from `first` up to `end`. */
static onv_status serve(onv_ort_orders *o, onv_allocator *arena, session *s, size_t first,
                        size_t end, group g, onv_error *err);

/* Some of a group find another chunk than its first one, with `image`: they go on in a copy of the arena, from that request
 * on. */
static onv_status serve_others(onv_ort_orders *o, const onv_allocator *arena, const session *s,
                               const onv_bfc_image *image, size_t first, size_t end, group others,
                               onv_error *err)
{
    onv_allocator copy;
    session then = *s;
    then.blocks = onv_heap_copy(s->blocks, s->all.count * sizeof *s->blocks);
    onv_status status = onv_allocator_copy(arena, &copy, err);
    if (status == ONV_OK && then.blocks == NULL) status = onv_fail_memory(err);
    if (status == ONV_OK) {
        onv_bfc_turn_to(&copy, image, &o->loaded.at[others.orders[0]].image);
        status = serve(o, &copy, &then, first, end, others, err);
    }
    onv_allocator_cleanup(&copy);
    onv_heap_free(then.blocks);
    return status;
}

static onv_status serve(onv_ort_orders *o, onv_allocator *arena, session *s, size_t first,
                        size_t end, group g, onv_error *err)
{
    bool bounds, is_short = false;
    onv_bfc_image *image = &o->loaded.at[g.orders[0]].image;
    for (size_t i = first; i < end && !is_short; i++) {
        const onv_ort_request *r = &s->all.at[i];
        if (r->buffer == ONV_NO_BUFFER) {
            ONV_TRY(onv_allocator_end_streams(arena, r->stream));
            continue;
        }
        uint32_t *block = &s->blocks[r->buffer];
        if (r->is_free) {
            onv_allocator_give(arena, *block);
            continue;
        }
        *block = ONV_NO_BLOCK;
        arena->stream = r->stream;
        if (r->bypasses) {
            ONV_TRY(arena->model->reserve(arena, r->bytes, block, err));
        } else {
            uint32_t found = onv_bfc_find(arena, image, r->bytes, &bounds);
            uint32_t n = bounds ? gather(o, &g, false) : g.count;
            group others = {g.orders + n, g.count - n};
            if (n < g.count) ONV_TRY(serve_others(o, arena, s, image, i, end, others, err));
            g.count = n;
            ONV_TRY(onv_bfc_take(arena, r->bytes, found, block, err));
        }
        is_short = *block == ONV_NO_BLOCK;
    }
    return end_run(o, arena, &g, is_short, err);
}

static onv_status serve_run(onv_ort_orders *o, session *s, uint32_t run, uint32_t n, onv_error *err)
{
    group open = {o->open, 0};
    for (uint32_t i = 0; i < n; i++) {
        const onv_ort_loaded *loaded = &o->loaded.at[i];
        /* Runs behind the first one ask for the same. */
        if (loaded->bytes < UINT64_MAX && !(run > 1 && onv_bfc_serves_again(&loaded->image)))
            open.orders[open.count++] = i;
    }
    while (open.count > 0) {
        group g = {open.orders, gather(o, &open, true)};
        ONV_TRY(onv_bfc_resume(&o->arena, &o->loaded.at[g.orders[0]].image, err));
        ONV_TRY(serve(o, &o->arena, s, run > 0 ? s->ends[run - 1] : 0, s->ends[run], g, err));
        open = (group){open.orders + g.count, open.count - g.count};
    }
    return ONV_OK;
}

static uint32_t count_orders(size_t n_weights, size_t n_requests)
{
    size_t each = n_weights + n_requests + 1, n = REQUESTS / each;
    n = n < LEAST_ORDERS ? LEAST_ORDERS : n > ONV_ORT_MOST_ORDERS ? ONV_ORT_MOST_ORDERS : n;
    if (n > MOST_REQUESTS / each) n = MOST_REQUESTS / each;
    return n_weights == 0 ? 1 : n < FEWEST_ORDERS ? FEWEST_ORDERS : (uint32_t)n;
}

static onv_status try_all(onv_ort_orders *o, session *s, onv_ort_spread *spread, onv_error *err)
{
    *spread =
        (onv_ort_spread){.low = UINT64_MAX, .n_orders = count_orders(o->n_weights, s->n_requests)};
    uint32_t n = o->are_equal ? 1 : spread->n_orders;
    while (o->loaded.count < n) ONV_TRY(load_next(o, err));
    for (uint32_t i = 0; i < n; i++) {
        onv_ort_loaded *loaded = &o->loaded.at[i];
        loaded->image.now = loaded->loaded;
        loaded->image.holes.count = loaded->loaded.n_holes;
        loaded->bytes = loaded->loaded.reserved_bytes;
    }
    for (uint32_t run = 0; run < s->n_runs; run++) ONV_TRY(serve_run(o, s, run, n, err));
    for (uint32_t i = 0; i < n; i++) {
        uint64_t bytes = o->loaded.at[i].bytes;
        if (bytes < spread->low) spread->low = bytes;
        if (i > 0 && bytes <= spread->high) continue;
        spread->high = bytes;
        spread->highest = i;
    }
    return ONV_OK;
}

onv_status onv_ort_orders_try(onv_ort_orders *o, const onv_timeline *t, onv_ort_spread *spread,
                              onv_error *err)
{
    session s = {0};
    onv_status status = open_session(&s, o, t, err);
    if (status == ONV_OK) status = try_all(o, &s, spread, err);
    onv_vec_cleanup(&s.all);
    onv_heap_free(s.blocks);
    return status;
}

onv_status onv_ort_orders_apply(onv_ort_orders *o, uint32_t order, onv_timeline *t, onv_error *err)
{
    onv_buffer *weights = ONV_ARENA_ARRAY(&o->memory, onv_buffer, o->n_weights);
    if (weights == NULL) return onv_fail_memory(err);
    o->n_drawn = 0;
    o->random = 0;
    while (o->n_drawn <= order) draw_next(o);
    for (uint32_t i = 0; i < o->n_weights; i++) weights[i] = t->buffers.at[o->order[i]];
    if (o->n_weights > 0) memcpy(t->buffers.at, weights, o->n_weights * sizeof *weights);
    return ONV_OK;
}
