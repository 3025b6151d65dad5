#include "alloc/requests.h"

#include <string.h>

#include "alloc/alloc_model.h"
#include "base/fail.h"
#include "base/quota.h"

/* Segments and blocks in order of address: what two iterations leave is compared. */
typedef ONV_VEC(uint64_t) memory_image;

typedef struct again {
    onv_iteration_mark last;
    uint32_t shift; /* the iteration before has each id `shift` earlier */
} again;

bool onv_requests_mark(onv_requests *r, uint32_t id)
{
    return onv_vec_push(&r->marks, ((onv_iteration_mark){r->at.count, id}));
}

void onv_requests_cleanup(onv_requests *r)
{
    onv_vec_cleanup(&r->at);
    onv_vec_cleanup(&r->passing);
    onv_vec_cleanup(&r->marks);
    onv_vec_cleanup(&r->renames);
}

static bool is_same(const onv_requests *r, const again *g, const onv_alloc_request *earlier,
                    const onv_alloc_request *later)
{
    if (earlier->kind != later->kind || earlier->bytes != later->bytes) return false;
    if (later->kind == ONV_REQUEST_PASS)
        return memcmp(&r->passing.at[earlier->id], &r->passing.at[later->id],
                      sizeof(onv_passing)) == 0;
    uint32_t before = g->last.id - g->shift;
    return later->id >= g->last.id ? earlier->id == later->id - g->shift
                                   : later->id >= before && earlier->id < before;
}

/* From the second iteration of training on all ask for the same; a pass asks for what it frees. */
static bool comes_again(const onv_requests *r, again *g)
{
    size_t n = r->marks.count;
    *g = (again){.last.request = r->begin};
    if (r->is_pass) return true;
    if (n < 3) return false;
    const onv_iteration_mark *before = &r->marks.at[n - 2];
    g->last = r->marks.at[n - 1];
    g->shift = r->n_ids - g->last.id;
    size_t count = r->at.count - g->last.request;
    if (g->shift != g->last.id - before->id || count != g->last.request - before->request)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!is_same(r, g, &r->at.at[before->request + i], &r->at.at[g->last.request + i]))
            return false;
    return true;
}

static onv_status serve(onv_allocator *a, const onv_requests *r, const onv_alloc_request *request,
                        uint32_t id, unsigned which, onv_error *err)
{
    if (r->is_pass && request->kind != ONV_REQUEST_PASS) {
        bool is_there = id < a->owned.count && a->owned.at[id] != ONV_OWNS_NOTHING;
        if (is_there == (request->kind == ONV_REQUEST_ALLOC)) return ONV_OK;
    }
    if (request->kind == ONV_REQUEST_ALLOC) return onv_allocator_alloc(a, id, request->bytes, err);
    if (request->kind == ONV_REQUEST_FREE) return onv_allocator_free(a, id, err);
    uint64_t bytes = r->passing.at[request->id].bytes[which];
    return bytes > 0 ? onv_allocator_pass(a, r->n_ids, bytes, err) : ONV_OK;
}

/* Ids of the last iteration count as those of the one before. */
static bool see(const onv_allocator *a, const again *g, memory_image *image)
{
    image->count = 0;
    if (!onv_vec_reserve(image, 3 * a->space.blocks.count)) return false;
    for (uint32_t s = a->space.first_segment; s != ONV_NO_BLOCK;) {
        const onv_segment *segment = &a->space.segments.at[s];
        image->at[image->count++] = segment->address;
        for (uint32_t k = segment->first; k != ONV_NO_BLOCK; k = a->space.blocks.at[k].next) {
            const onv_block *b = &a->space.blocks.at[k];
            uint64_t id = b->state != ONV_BLOCK_USED ? UINT64_MAX - b->state
                          : b->id >= g->last.id      ? b->id - g->shift
                                                     : b->id;
            image->at[image->count++] = b->bytes;
            image->at[image->count++] = id;
        }
        s = segment->next;
    }
    return true;
}

static bool is_equal(const memory_image *a, const memory_image *b)
{
    return a->count == b->count && a->count > 0 &&
           memcmp(a->at, b->at, a->count * sizeof *a->at) == 0;
}

static onv_status serve_up_to(onv_allocator *a, const onv_requests *r, size_t first, size_t end,
                              unsigned which, onv_error *err)
{
    ONV_WORK(4 * (end - first));
    for (size_t i = first; i < end && !a->out_of_memory; i++)
        ONV_TRY(serve(a, r, &r->at.at[i], r->at.at[i].id, which, err));
    return ONV_OK;
}

static void rename_all(onv_allocator *a, const onv_requests *r)
{
    for (size_t i = 0; i < r->renames.count && !a->out_of_memory; i++) {
        uint32_t from = r->renames.at[i].from, to = r->renames.at[i].to, block = a->owned.at[from];
        a->owned.at[from] = ONV_OWNS_NOTHING;
        a->owned.at[to] = block;
        if (block < ONV_OWNS_ZERO_BYTES) onv_space_block(&a->space, block)->id = to;
    }
}

static onv_status repeat(onv_allocator *a, const onv_requests *r, const again *g, unsigned which,
                         memory_image images[2], uint32_t *served, onv_error *err)
{
    for (; *served < a->options.later_iterations + r->more && !a->out_of_memory; ++*served) {
        if (!see(a, g, &images[*served % 2])) return onv_fail_memory(err);
        if (is_equal(&images[0], &images[1])) break;
        ONV_WORK(4 * (r->at.count - g->last.request));
        for (size_t i = g->last.request; i < r->at.count && !a->out_of_memory; i++) {
            const onv_alloc_request *request = &r->at.at[i];
            uint32_t id = request->id;
            if (*served % 2 == 0) id += id < g->last.id ? g->shift : -g->shift;
            ONV_TRY(serve(a, r, request, id, which, err));
        }
        rename_all(a, r);
    }
    return ONV_OK;
}

static onv_status serve_rest(onv_allocator *a, const onv_requests *r, size_t first, unsigned which,
                             memory_image images[2], uint32_t *served, onv_error *err)
{
    again g;
    *served = 0;
    if (a->options.later_iterations + r->more == 0 || !comes_again(r, &g))
        return serve_up_to(a, r, first, r->at.count, which, err);
    if (first <= g.last.request) {
        ONV_TRY(serve_up_to(a, r, first, g.last.request, which, err));
        first = g.last.request;
        if (!see(a, &g, &images[1])) return onv_fail_memory(err);
    }
    ONV_TRY(serve_up_to(a, r, first, r->at.count, which, err));
    rename_all(a, r);
    return repeat(a, r, &g, which, images, served, err);
}

onv_status onv_requests_serve_rest(onv_allocator *a, const onv_requests *r, size_t first,
                                   unsigned which, uint32_t *served, onv_error *err)
{
    memory_image images[2] = {{0}, {0}};
    onv_status status = serve_rest(a, r, first, which, images, served, err);
    for (int i = 0; i < 2; i++) onv_vec_cleanup(&images[i]);
    return status;
}

bool onv_stays_between_passes(const onv_timeline *t, const onv_buffer *b)
{
    return b->first == 0 && b->last + 1 == t->steps.count &&
           (b->kind == ONV_BUFFER_WEIGHT || b->kind == ONV_BUFFER_STATISTIC ||
            b->kind == ONV_BUFFER_INPUT);
}

onv_status onv_requests_list(const onv_timeline *t, onv_requests *r, onv_error *err)
{
    onv_timeline_events events = {0};
    uint32_t n_passing = 0;
    ONV_TRY(onv_timeline_list_events(t, &events, err));
    bool fits = onv_vec_reserve(&r->at, events.count);
    r->n_ids = (uint32_t)t->buffers.count;
    r->is_pass = true;
    for (size_t i = 0; i < events.count && fits; i++) {
        const onv_timeline_event *e = &events.at[i];
        const onv_buffer *b = &t->buffers.at[e->buffer];
        onv_alloc_request request = {.bytes = e->is_free ? 0 : b->bytes,
                                     .id = e->buffer,
                                     .kind = e->is_free ? ONV_REQUEST_FREE : ONV_REQUEST_ALLOC};
        if (b->within != ONV_NO_BUFFER) r->is_pass = false; /* of that what follows is not known */
        if (b->within != ONV_NO_BUFFER ||
            (e->is_free && (b->is_transient || onv_stays_between_passes(t, b))))
            continue;
        if (b->is_transient)
            request = (onv_alloc_request){.id = n_passing++, .kind = ONV_REQUEST_PASS};
        r->at.at[r->at.count++] = request;
    }
    onv_vec_cleanup(&events);
    return fits ? ONV_OK : onv_fail_memory(err);
}

/* The requests before the first workspace for which these choices differ. */
static size_t count_common(const onv_requests *r, const unsigned which[2])
{
    size_t n = 0;
    for (; n < r->at.count; n++) {
        const onv_alloc_request *request = &r->at.at[n];
        if (request->kind != ONV_REQUEST_PASS) continue;
        const uint64_t *bytes = r->passing.at[request->id].bytes;
        if (bytes[which[0]] != bytes[which[1]]) break;
    }
    return n;
}

static onv_status serve_choices(onv_allocator *a, const onv_requests *r, const unsigned *which,
                                unsigned n_choices, onv_held_figures *held, onv_error *err)
{
    uint32_t served;
    size_t common = n_choices > 1 ? count_common(r, which) : 0;
    if (r->at.count > 0) ONV_TRY(onv_allocator_leave_pool(a, err));
    ONV_TRY(serve_up_to(a, r, 0, common, which[0], err));
    if (n_choices > 1 && common < r->at.count) {
        onv_allocator other;
        onv_status status = onv_allocator_copy(a, &other, err);
        if (status == ONV_OK)
            status = onv_requests_serve_rest(&other, r, common, which[1], &served, err);
        onv_allocator_figures(&other, &held[1]);
        onv_allocator_cleanup(&other);
        ONV_TRY(status);
    }
    ONV_TRY(onv_requests_serve_rest(a, r, common, which[0], &served, err));
    onv_allocator_figures(a, &held[0]);
    if (n_choices > 1 && common == r->at.count) held[1] = held[0];
    return ONV_OK;
}

onv_status onv_requests_serve(const onv_requests *r, const unsigned *which, unsigned n_choices,
                              const onv_alloc_model *model, const onv_alloc_options *options,
                              onv_held_figures *held, onv_error *err)
{
    onv_allocator a;
    ONV_TRY(onv_allocator_init(&a, model, options, err));
    a.has_totals_alone = true;
    bool fits = onv_vec_reserve(&a.owned, r->n_ids) && onv_vec_reserve(&a.space.blocks, r->n_ids);
    onv_status status =
        !fits ? onv_fail_memory(err) : serve_choices(&a, r, which, n_choices, held, err);
    onv_allocator_cleanup(&a);
    return status;
}
