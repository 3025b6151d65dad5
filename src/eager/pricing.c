#include "eager/pricing.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/heap.h"
#include "eager/simulation.h"

/* What an iteration finds, or leaves: how many hold each row, and rows by who holds them. */
typedef struct held_rows {
    ONV_VEC(uint32_t) refs, by_place;
} held_rows;

struct onv_pricing {
    onv_simulation sim;
    onv_train_options options;
    onv_train_program program;
    onv_meter meter;
    bool is_shared; /* each plan begins where these are */
    held_rows start;
    uint64_t there[2], all; /* of the meter */
};

static onv_status fail_overflow(onv_error *err)
{
    return onv_fail(err, ONV_ERR_OVERFLOW, "the bytes that training allocates do not fit 64 bits");
}

static onv_status verdict(const onv_pricing *p, onv_error *err)
{
    if (p->meter.overflows) return fail_overflow(err);
    return p->sim.failed && !p->meter.is_stopped ? onv_fail_memory(err) : ONV_OK;
}

/* --- Rows between iterations --------------------------------------------------------------------- */

static bool note_held(const onv_simulation *s, held_rows *h)
{
    size_t n = s->eager->storages.count, n_lingering = s->lingering.count;
    if (!onv_vec_reserve(&h->by_place, 2 * n + n_lingering + 3) ||
        !onv_vec_reserve(&h->refs, s->refs.count))
        return false;
    uint32_t *at = h->by_place.at;
    memcpy(at, s->output_row, n * sizeof *at);
    memcpy(at + n, s->grad_row, n * sizeof *at);
    for (size_t i = 0; i < n_lingering; i++) at[2 * n + i] = s->lingering.at[i];
    h->by_place.count = 2 * n + n_lingering;
    at[h->by_place.count++] = s->handle_row[0];
    at[h->by_place.count++] = s->handle_row[1];
    at[h->by_place.count++] = s->state_row;
    memcpy(h->refs.at, s->refs.at, s->refs.count * sizeof *s->refs.at);
    h->refs.count = s->refs.count;
    return true;
}

static void cleanup(held_rows *h)
{
    onv_vec_cleanup(&h->refs);
    onv_vec_cleanup(&h->by_place);
}

static void put_held(onv_simulation *s, const held_rows *h)
{
    size_t n = s->eager->storages.count, n_lingering = h->by_place.count - 2 * n - 3;
    const uint32_t *at = h->by_place.at, *last = at + 2 * n + n_lingering;
    memcpy(s->output_row, at, n * sizeof *at);
    memcpy(s->grad_row, at + n, n * sizeof *at);
    for (size_t i = 0; i < n_lingering; i++) s->lingering.at[i] = at[2 * n + i];
    s->lingering.count = n_lingering;
    s->handle_row[0] = last[0];
    s->handle_row[1] = last[1];
    s->state_row = last[2];
    memcpy(s->refs.at, h->refs.at, h->refs.count * sizeof *s->refs.at);
    s->refs.count = h->refs.count;
}

/* --- Where plans begin ------------------------------------------------------------------------- */

static void renumber(uint32_t *rows, size_t n, const uint32_t *number)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i] < ONV_HOST_ROW) rows[i] = number[rows[i]];
}

/* Of the rows so far those stay that somebody holds: few, where the tape is long. */
static onv_status keep_start(onv_pricing *p, onv_error *err)
{
    onv_simulation *s = &p->sim;
    size_t kept = 0;
    uint32_t *number = onv_heap_alloc((s->refs.count + 1) * sizeof *number);
    if (number == NULL) return onv_fail_memory(err);
    for (size_t i = 0; i < s->refs.count; i++) {
        number[i] = s->refs.at[i] > 0 ? (uint32_t)kept : ONV_NO_ROW;
        if (s->refs.at[i] == 0) continue;
        p->meter.rows.at[kept] = p->meter.rows.at[i];
        s->refs.at[kept++] = s->refs.at[i];
    }
    p->meter.rows.count = s->refs.count = kept;
    renumber(s->row_of, s->eager->storages.count, number);
    bool is_noted = note_held(s, &p->start);
    renumber(p->start.by_place.at, p->start.by_place.count, number);
    onv_heap_free(number);
    if (!is_noted) return onv_fail_memory(err);
    put_held(s, &p->start);
    onv_vec_fit(&p->meter.rows);
    onv_vec_fit(&s->refs);
    memcpy(p->there, p->meter.there, sizeof p->there);
    p->all = p->meter.all;
    return ONV_OK;
}

/* An iteration that was stopped leaves rows behind, where a whole one lets all go. */
static void forget_rows(onv_simulation *s)
{
    for (size_t i = 0; i < s->eager->ops.count; i++)
        for (uint32_t k = 0; k < s->eager->ops.at[i].n_saved; k++)
            s->saved_row[s->first_saved[i] + k] = ONV_NO_ROW;
    for (size_t i = 0; i < s->eager->storages.count && s->held.until != NULL; i++)
        s->held.row[i] = ONV_NO_ROW;
    s->in_hand.count = 0;
    s->loop_row = ONV_NO_ROW;
    s->failed = s->in_backward = false;
}

static void return_to_start(onv_pricing *p)
{
    put_held(&p->sim, &p->start);
    p->meter.rows.count = p->start.refs.count;
    memcpy(p->meter.there, p->there, sizeof p->there);
    p->meter.going[0] = p->meter.going[1] = 0;
    p->meter.all = p->all;
    p->sim.n_steps = 1;
}

static onv_status begin(onv_pricing *p, onv_error *err)
{
    onv_simulation *s = &p->sim;
    ONV_TRY(onv_sim_open(s, s->model, s->eager, &p->options, &p->program, err));
    s->meter = &p->meter;
    p->meter.rows.count = 0;
    p->meter.all = 0;
    for (int k = 0; k < 2; k++) p->meter.there[k] = p->meter.going[k] = 0;
    p->meter.counts = false;
    return onv_sim_prepare(s, err);
}

static onv_status open(onv_pricing *p, onv_error *err)
{
    onv_simulation *s = &p->sim;
    ONV_TRY(begin(p, err));
    p->is_shared = p->options.parallel == ONV_PARALLEL_NONE;
    if (!p->is_shared) return ONV_OK;
    ONV_TRY(onv_sim_prepare_plan(s, err));
    ONV_TRY(onv_sim_begin(s, err));
    onv_sim_iterate(s);
    onv_sim_end_step(s);
    ONV_TRY(verdict(p, err));
    return keep_start(p, err);
}

onv_status onv_pricing_open(onv_model *model, const onv_eager *eager,
                            const onv_train_options *options, onv_pricing **pricing, onv_error *err)
{
    onv_pricing *p = onv_heap_calloc(1, sizeof *p);
    if (p == NULL) return onv_fail_memory(err);
    p->options = *options;
    p->sim.model = model;
    p->sim.eager = eager;
    onv_status status = open(p, err);
    if (status == ONV_OK)
        *pricing = p;
    else
        onv_pricing_close(p);
    return status;
}

void onv_pricing_close(onv_pricing *p)
{
    if (p == NULL) return;
    onv_sim_close(&p->sim);
    onv_vec_cleanup(&p->meter.rows);
    cleanup(&p->start);
    onv_heap_free(p);
}

/* --- Prices ------------------------------------------------------------------------------------ */

static void iterate(onv_pricing *p)
{
    onv_simulation *s = &p->sim;
    p->meter.most[0] = p->meter.most[1] = 0;
    p->meter.counts = false; /* the step before */
    onv_sim_iterate(s);
    onv_sim_end_step(s);
}

/* What all regions run again that hold something for a backward that comes. */
static uint64_t macs_again(const onv_simulation *s)
{
    uint64_t sum = 0;
    for (uint32_t r = 0; r < s->n_regions; r++) {
        const onv_ckpt_region *region = &s->regions[r];
        uint64_t macs = 0;
        bool is_asked = false, fits = true;
        for (uint32_t i = region->first_op; i <= region->last_op; i++) {
            const onv_eager_op *op = &s->eager->ops.at[i];
            bool is_before = i < region->stop || (i == region->stop && region->runs_stop);
            if (region->runs != NULL ? region->runs[i - region->first_op]
                                     : region->stop != ONV_NO_OP && is_before)
                fits &= onv_u64_add(macs, op->macs, &macs);
            is_asked |= op->n_saved > 0 && op->has_backward && op->life == ONV_LIFE_BACKWARD;
        }
        if (is_asked && (!fits || !onv_u64_add(sum, macs, &sum))) return 0;
    }
    return sum;
}

static onv_status run_from_start(onv_pricing *p, const onv_price_rival *rival, onv_error *err)
{
    onv_simulation *s = &p->sim;
    return_to_start(p);
    if (p->meter.is_stopped) forget_rows(s);
    p->meter.is_stopped = false;
    onv_arena_reset(&s->plan_arena);
    s->is_kept = NULL;
    s->kept_row = NULL;
    s->iteration = s->counted = 1;
    ONV_TRY(onv_sim_prepare_plan(s, err));
    uint64_t macs = rival != NULL ? macs_again(s) : 0;
    p->meter.limit = rival != NULL ? rival->peak(rival->context, macs) : 0;
    uint64_t found[ONV_N_SUMS] = {0};
    onv_sim_repeats(s, found);
    iterate(p);
    s->iteration++;
    if (!s->failed && !onv_sim_repeats(s, found)) iterate(p);
    if (p->meter.is_stopped) p->program.recomputed_macs = macs;
    return ONV_OK;
}

static onv_status run_alone(onv_pricing *p, onv_error *err)
{
    onv_simulation *s = &p->sim;
    onv_sim_close(s);
    ONV_TRY(begin(p, err));
    ONV_TRY(onv_sim_prepare_plan(s, err));
    ONV_TRY(onv_sim_begin(s, err));
    for (s->iteration = 0; s->iteration < 2 && !s->failed; s->iteration++) iterate(p);
    return ONV_OK;
}

onv_status onv_pricing_find(onv_pricing *p, const onv_train_options *plan,
                            const onv_price_rival *rival, onv_price *price, onv_error *err)
{
    const onv_train_program *made = &p->program;
    ONV_TRY(onv_sim_ask(plan, err));
    p->options = *plan;
    p->program.recomputed_macs = p->program.forward_macs = 0;
    p->program.offloaded_bytes = p->program.returned_bytes = p->program.pinned_bytes = 0;
    ONV_TRY(p->is_shared ? run_from_start(p, rival, err) : run_alone(p, err));
    ONV_TRY(verdict(p, err));
    *price = (onv_price){.peak_bytes = p->meter.most[ONV_METER_TENSORS],
                         .requested_bytes = p->meter.most[ONV_METER_ALL],
                         .recomputed_macs = made->recomputed_macs};
    if (!onv_u64_add(made->offloaded_bytes, made->returned_bytes, &price->moved_bytes))
        price->moved_bytes = UINT64_MAX;
    return ONV_OK;
}

/* --- For the allocator ------------------------------------------------------------------------- */

/* Whether an iteration leaves what it found, in rows of its own that come in the same order: then the next one does the same.
 * `next`: by row that was found and is held, the one in its place. */
static bool leaves_as_found(const onv_metered *rows, const held_rows *found, const held_rows *left,
                            uint32_t *next)
{
    size_t first = found->refs.count, n = left->refs.count, own = first;
    bool are_alike = found->by_place.count == left->by_place.count;
    for (size_t i = 0; i < first && are_alike; i++) {
        if (found->refs.at[i] == 0) continue;
        bool stays = left->refs.at[i] > 0;
        while (!stays && own < n && left->refs.at[own] == 0) own++;
        if (!stays && own == n) return false;
        uint32_t to = next[i] = (uint32_t)(stays ? i : own++);
        are_alike = left->refs.at[to] == found->refs.at[i] && rows[to].bytes == rows[i].bytes &&
                    rows[to].is_workspace == rows[i].is_workspace;
    }
    for (; own < n && are_alike; own++) are_alike = left->refs.at[own] == 0;
    for (size_t i = 0; i < found->by_place.count && are_alike; i++) {
        uint32_t row = found->by_place.at[i];
        are_alike = left->by_place.at[i] == (row < ONV_HOST_ROW ? next[row] : row);
    }
    return are_alike;
}

static bool repeat_last(onv_requests *r, const uint32_t *next)
{
    const onv_iteration_mark from = r->marks.at[r->marks.count - 1];
    size_t end = r->at.count;
    uint32_t shift = r->n_ids - from.id;
    if (!onv_requests_mark(r, r->n_ids) || !onv_vec_reserve(&r->at, end - from.request))
        return false;
    for (size_t i = from.request; i < end; i++) {
        onv_alloc_request again = r->at.at[i];
        if (again.kind != ONV_REQUEST_PASS)
            again.id = again.id >= from.id ? again.id + shift : next[again.id];
        r->at.at[r->at.count++] = again;
    }
    r->n_ids += shift;
    return true;
}

/* The last iteration is simulated only where it may do other than the one before. */
static onv_status record_iterations(onv_simulation *s, uint32_t iterations, held_rows held[2],
                                    onv_error *err)
{
    onv_requests *r = s->requests;
    for (int i = 0; i < 2; i++) {
        ONV_TRY(onv_sim_train(s, iterations > 2 ? iterations - 2 + (uint32_t)i : iterations, err));
        if (!note_held(s, &held[i])) return onv_fail_memory(err);
    }
    r->n_ids = (uint32_t)s->refs.count;
    uint32_t *next = ONV_ARENA_ARRAY(&s->arena, uint32_t, r->n_ids);
    if (next == NULL) return onv_fail_memory(err);
    if (s->iteration < iterations && s->sharding == NULL &&
        leaves_as_found(s->meter->rows.at, &held[0], &held[1], next))
        return repeat_last(r, next) ? ONV_OK : onv_fail_memory(err);
    ONV_TRY(onv_sim_train(s, iterations, err));
    r->n_ids = (uint32_t)s->refs.count;
    return ONV_OK;
}

static onv_status record(onv_simulation *s, onv_meter *meter, const onv_train_options *options,
                         onv_train_record *made, onv_error *err)
{
    held_rows held[2] = {{{0}, {0}}, {{0}, {0}}};
    ONV_TRY(onv_sim_open(s, s->model, s->eager, options, &made->program, err));
    s->meter = meter;
    s->requests = &made->requests;
    onv_status status = onv_sim_start(s, err);
    if (status == ONV_OK) status = record_iterations(s, onv_train_iterations(options), held, err);
    for (int i = 0; i < 2; i++) cleanup(&held[i]);
    onv_sim_close(s);
    if (meter->overflows) return fail_overflow(err);
    made->peak_bytes = meter->most[ONV_METER_TENSORS];
    made->requested_bytes = meter->most[ONV_METER_ALL];
    return status;
}

onv_status onv_train_record_make(onv_model *model, const onv_eager *eager,
                                 const onv_train_options *options, onv_train_record *made,
                                 onv_error *err)
{
    onv_simulation s = {.model = model, .eager = eager};
    onv_meter meter = {.limit = 0};
    *made = (onv_train_record){0};
    ONV_TRY(onv_sim_ask(options, err));
    onv_status status = record(&s, &meter, options, made, err);
    onv_vec_cleanup(&meter.rows);
    onv_vec_cleanup(&meter.ending);
    if (status != ONV_OK) onv_requests_cleanup(&made->requests);
    return status;
}
