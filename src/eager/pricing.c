#include "eager/pricing.h"

#include <limits.h>
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
    onv_train_options plain_options, options; /* without a plan; of the one at hand */
    onv_train_program program;
    onv_meter meter;
    bool is_shared;      /* each plan begins where these are */
    bool has_noted;      /* `plain` is known, or will not be */
    bool is_plain;       /* it is */
    bool has_plain_rows; /* the meter has those of `plain` */
    onv_plain_iteration plain;
    onv_train_program plain_program;
    held_rows start, left, left_plain; /* the plain iteration */
    uint64_t there[2], all;            /* of the meter */
    onv_train_program begun;
    onv_requests before; /* what is asked for before the first iteration */
    uint32_t n_before;   /* rows that stay of it: the first ones of the start */
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
    h->by_place.count = h->refs.count = 0;
    if (!onv_vec_reserve(&h->by_place, 2 * n + n_lingering + ONV_N_LASTING) ||
        !onv_vec_reserve(&h->refs, s->refs.count))
        return false;
    uint32_t *at = h->by_place.at;
    memcpy(at, s->output_row, n * sizeof *at);
    memcpy(at + n, s->grad_row, n * sizeof *at);
    for (size_t i = 0; i < n_lingering; i++) at[2 * n + i] = s->lingering.at[i];
    memcpy(at + 2 * n + n_lingering, s->lasting_row, sizeof s->lasting_row);
    h->by_place.count = 2 * n + n_lingering + ONV_N_LASTING;
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
    size_t n = s->eager->storages.count, n_lingering = h->by_place.count - 2 * n - ONV_N_LASTING;
    const uint32_t *at = h->by_place.at;
    memcpy(s->output_row, at, n * sizeof *at);
    memcpy(s->grad_row, at + n, n * sizeof *at);
    for (size_t i = 0; i < n_lingering; i++) s->lingering.at[i] = at[2 * n + i];
    s->lingering.count = n_lingering;
    memcpy(s->lasting_row, at + 2 * n + n_lingering, sizeof s->lasting_row);
    memcpy(s->refs.at, h->refs.at, h->refs.count * sizeof *s->refs.at);
    s->refs.count = h->refs.count;
}

/* --- Where plans begin ------------------------------------------------------------------------- */

static void renumber(uint32_t *rows, size_t n, const uint32_t *number)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i] < ONV_HOST_ROW) rows[i] = number[rows[i]];
}

static uint32_t count_kept(const uint32_t *number, uint32_t n)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) kept += number[i] != ONV_NO_ROW;
    return kept;
}

/* What is gone before the first iteration has the numbers of rows that it makes. */
static void number_before(onv_pricing *p, const uint32_t *number, uint32_t n_kept)
{
    onv_requests *before = &p->before;
    p->n_before = count_kept(number, before->n_ids);
    for (int k = 0; k < 2; k++) p->sim.states[k] = count_kept(number, p->sim.states[k]);
    for (size_t i = 0; i < before->at.count; i++) {
        uint32_t *id = &before->at.at[i].id;
        *id = number[*id] != ONV_NO_ROW ? number[*id] : n_kept + *id;
    }
    before->n_ids += n_kept;
}

/* Of the rows so far those stay that somebody holds: few, where the tape is long. */
static onv_status keep_start(onv_pricing *p, onv_error *err)
{
    onv_simulation *s = &p->sim;
    size_t kept = 0;
    uint32_t *number = ONV_ARENA_ARRAY(&s->plan_arena, uint32_t, s->refs.count);
    if (number == NULL) return onv_fail_memory(err);
    for (uint32_t i = 0; i < s->refs.count; i++) {
        number[i] = s->refs.at[i] > 0 ? (uint32_t)kept : ONV_NO_ROW;
        if (s->refs.at[i] == 0) continue;
        p->meter.rows.at[kept] = p->meter.rows.at[i];
        s->refs.at[kept++] = s->refs.at[i];
    }
    number_before(p, number, (uint32_t)kept);
    p->meter.rows.count = s->refs.count = kept;
    renumber(s->row_of, s->eager->storages.count, number);
    if (!note_held(s, &p->start)) return onv_fail_memory(err);
    renumber(p->start.by_place.at, p->start.by_place.count, number);
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
    return ONV_OK;
}

static onv_status open(onv_pricing *p, onv_error *err)
{
    onv_simulation *s = &p->sim;
    p->is_shared = p->options.parallel == ONV_PARALLEL_NONE;
    if (!p->is_shared) return ONV_OK;
    ONV_TRY(begin(p, err));
    ONV_TRY(onv_sim_prepare(s, err));
    ONV_TRY(onv_sim_prepare_plan(s, err));
    s->requests = &p->before;
    ONV_TRY(onv_sim_begin(s, err));
    onv_sim_end_step(s);
    p->before.n_ids = (uint32_t)s->refs.count;
    s->requests = NULL;
    s->counted = UINT32_MAX; /* no iteration of this one */
    onv_sim_iterate(s);
    onv_sim_end_step(s);
    p->begun = p->program;
    ONV_TRY(verdict(p, err));
    return keep_start(p, err);
}

static void clean(onv_pricing *p)
{
    onv_sim_close(&p->sim);
    onv_vec_cleanup(&p->meter.rows);
    onv_vec_cleanup(&p->meter.ending);
    onv_requests_cleanup(&p->before);
    cleanup(&p->start);
    cleanup(&p->left);
    cleanup(&p->left_plain);
    onv_requests_cleanup(&p->plain.requests);
}

onv_status onv_pricing_open(onv_model *model, const onv_eager *eager,
                            const onv_train_options *options, onv_pricing **pricing, onv_error *err)
{
    onv_pricing *p = onv_heap_calloc(1, sizeof *p);
    if (p == NULL) return onv_fail_memory(err);
    p->options = p->plain_options = *options;
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
    clean(p);
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
            if (onv_ckpt_runs(region, i)) fits &= onv_u64_add(macs, op->macs, &macs);
            is_asked |= op->n_saved > 0 && op->has_backward && op->life == ONV_LIFE_BACKWARD;
        }
        if (is_asked && (!fits || !onv_u64_add(sum, macs, &sum))) return 0;
    }
    return sum;
}

/* The iteration of a plan comes next. */
static onv_status start_plan(onv_pricing *p, onv_error *err)
{
    onv_simulation *s = &p->sim;
    p->program = p->begun;
    return_to_start(p);
    if (p->meter.is_stopped) forget_rows(s);
    p->meter.is_stopped = false;
    onv_arena_reset(&s->plan_arena);
    s->is_kept = s->is_direct = NULL;
    s->kept_row = NULL;
    s->iteration = s->counted = 1;
    return onv_sim_prepare_plan(s, err);
}

/* Whether forward makes the same and backward's gradients are the same whatever is kept. */
static bool may_be_plain(const onv_pricing *p)
{
    const onv_eager *eager = p->sim.eager;
    bool may = onv_train_passes(&p->plain_options) == 1 && p->sim.quantized_rows == NULL;
    for (size_t i = 0; i < eager->ops.count && may; i++) {
        const onv_eager_op *op = &eager->ops.at[i];
        may = !op->in_place || op->extras_first == 0;
        for (uint32_t k = 0; k < op->n_in; k++) may &= op->in[k].grad != ONV_GRAD_KEPT;
    }
    return may;
}

static bool make_plain(onv_pricing *p)
{
    onv_simulation *s = &p->sim;
    onv_plain_iteration *plain = &p->plain;
    size_t n_storages = s->eager->storages.count, n = s->eager->ops.count;
    plain->row_of = ONV_ARENA_ARRAY(&s->arena, uint32_t, n_storages);
    plain->row_after = ONV_ARENA_ARRAY(&s->arena, uint32_t, n_storages);
    plain->forward = ONV_ARENA_ARRAY(&s->arena, size_t, n);
    plain->turn = ONV_ARENA_ARRAY(&s->arena, size_t, n);
    plain->backward = ONV_ARENA_ARRAY(&s->arena, size_t, n);
    return !s->arena.failed;
}

/* Behind the iteration. */
static bool take_plain(onv_pricing *p)
{
    onv_simulation *s = &p->sim;
    onv_plain_iteration *plain = &p->plain;
    plain->n_rows = (uint32_t)s->refs.count;
    plain->refs = ONV_ARENA_ARRAY(&s->arena, uint32_t, plain->n_rows);
    plain->rows = onv_arena_copy(&s->arena, p->meter.rows.at, plain->n_rows * sizeof *plain->rows);
    if (s->arena.failed || !note_held(s, &p->left_plain)) return false;
    for (size_t i = 0; i < plain->n_rows; i++)
        plain->refs[i] = i >= p->start.refs.count || p->start.refs.at[i] > 0;
    for (uint32_t i = 0; i < s->eager->storages.count; i++) {
        plain->row_after[i] = s->row_of[i];
        plain->row_of[i] = onv_sim_is_permanent(s, i) ? s->row_of[i] : s->made_row[i];
    }
    plain->all = p->meter.all - p->all;
    p->plain_program = p->program;
    p->plain_program.lost = 0;
    return true;
}

static onv_status note_plain(onv_pricing *p, onv_error *err)
{
    onv_simulation *s = &p->sim;
    uint64_t found[ONV_N_SUMS] = {0};
    p->has_noted = true;
    if (!may_be_plain(p)) return ONV_OK;
    p->options = p->plain_options;
    p->options.prunes = true; /* no segments of the network's own */
    ONV_TRY(start_plan(p, err));
    if (!make_plain(p)) return onv_fail_memory(err);
    for (uint32_t i = 0; i < s->eager->storages.count; i++) s->made_row[i] = ONV_NO_ROW;
    p->meter.limit = 0;
    onv_sim_repeats(s, found);
    s->asked = 0;
    s->requests = &p->plain.requests;
    s->notes = &p->plain;
    iterate(p);
    s->requests = NULL;
    s->asked = UINT_MAX;
    s->notes = NULL;
    p->is_plain = onv_sim_repeats(s, found) && !s->failed;
    return take_plain(p) ? ONV_OK : onv_fail_memory(err);
}

/* Whether a plan is that iteration with activations that live longer, and second runs. */
static bool is_played(const onv_pricing *p, const onv_train_options *plan)
{
    return p->is_plain && !plan->is_reentrant && !plan->saves_on_cpu && plan->offload_until == 0;
}

/* An iteration of the plan at hand. */
static void run_plan(onv_pricing *p, bool plays)
{
    onv_simulation *s = &p->sim;
    const onv_plain_iteration *plain = &p->plain;
    if (plays) {
        s->plain = plain;
        s->played = 0;
        p->program = p->plain_program;
        p->meter.rows.count = s->refs.count = plain->n_rows;
        if (!p->has_plain_rows)
            memcpy(p->meter.rows.at, plain->rows, plain->n_rows * sizeof *plain->rows);
        memcpy(s->refs.at, plain->refs, plain->n_rows * sizeof *plain->refs);
        if (!onv_u64_add(p->meter.all, plain->all, &p->meter.all))
            p->meter.overflows = s->failed = true;
    }
    p->has_plain_rows = plays;
    iterate(p);
    s->plain = NULL;
}

static onv_status run_from_start(onv_pricing *p, const onv_price_rival *rival, bool plays,
                                 onv_error *err)
{
    onv_simulation *s = &p->sim;
    ONV_TRY(start_plan(p, err));
    uint64_t macs = rival != NULL ? macs_again(s) : 0;
    p->meter.limit = rival != NULL ? rival->peak(rival->context, macs) : 0;
    uint64_t found[ONV_N_SUMS] = {0};
    onv_sim_repeats(s, found);
    run_plan(p, plays);
    s->iteration++;
    if (!s->failed && !onv_sim_repeats(s, found)) {
        if (plays) return run_from_start(p, rival, false, err);
        iterate(p);
    }
    if (p->meter.is_stopped) p->program.recomputed_macs = macs;
    return ONV_OK;
}

static onv_status run_alone(onv_pricing *p, onv_error *err)
{
    onv_simulation *s = &p->sim;
    onv_sim_close(s);
    ONV_TRY(begin(p, err));
    ONV_TRY(onv_sim_start(s, err));
    for (s->iteration = 0; s->iteration < 2 && !s->failed; s->iteration++) iterate(p);
    return ONV_OK;
}

onv_status onv_pricing_find(onv_pricing *p, const onv_train_options *plan,
                            const onv_price_rival *rival, onv_price *price, onv_error *err)
{
    const onv_train_program *made = &p->program;
    ONV_TRY(onv_sim_ask(plan, err));
    if (p->is_shared && !p->has_noted) ONV_TRY(note_plain(p, err));
    p->options = *plan;
    ONV_TRY(p->is_shared ? run_from_start(p, rival, is_played(p, plan), err) : run_alone(p, err));
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

/* Of what is found all that stays was there before the first iteration, or is asked for in it; all else has a new row in its
 * place. */
static bool list_renames(const onv_pricing *p, const uint32_t *next, onv_requests *to)
{
    const onv_simulation *s = &p->sim;
    uint32_t n_lasting = 0, n_asked = 0, n_live = 0;
    for (size_t i = 0; i < p->before.at.count; i++)
        n_live += p->before.at.at[i].kind == ONV_REQUEST_ALLOC ? 1 : -1u;
    for (uint32_t i = 0; i < p->start.refs.count; i++) {
        if (i >= p->n_before) n_lasting += next[i] == i;
        if (next[i] == i) continue;
        if (i < p->n_before || !onv_vec_push(&to->renames, ((onv_rename){next[i], i})))
            return false;
    }
    for (unsigned i = 0; i <= ONV_N_LASTING; i++)
        if ((s->asked >> i & 1) != 0)
            n_asked += i < ONV_N_LASTING ? 1 : s->states[1] - s->states[0];
    return n_lasting == n_asked && n_live == p->n_before && p->before.passing.count == 0;
}

/* What comes before the iteration that is recorded. */
static bool begin_record(const onv_pricing *p, bool plays, uint32_t iterations, onv_requests *to)
{
    const onv_requests *before = &p->before, *plain = &p->plain.requests;
    size_t n = before->at.count, n_passing = plays ? plain->passing.count : 0;
    *to = (onv_requests){.is_pass = true, .begin = n, .more = iterations - 1};
    if (!onv_vec_reserve(&to->at, n + plain->at.count) || !onv_vec_reserve(&to->passing, n_passing))
        return false;
    for (size_t i = 0; i < n; i++) to->at.at[to->at.count++] = before->at.at[i];
    for (size_t i = 0; i < n_passing; i++)
        to->passing.at[to->passing.count++] = plain->passing.at[i];
    return true;
}

/* *is_made: an iteration of the plan leaves what it found, so that the first one is like all others, but for what it does not find
 * and what it makes. */
static onv_status record_shared(onv_pricing *p, uint32_t iterations, onv_train_record *made,
                                bool *is_made, onv_error *err)
{
    onv_simulation *s = &p->sim;
    onv_requests *to = &made->requests;
    bool plays = is_played(p, &p->options);
    uint64_t found[ONV_N_SUMS] = {0};
    ONV_TRY(start_plan(p, err));
    uint32_t *next = ONV_ARENA_ARRAY(&s->plan_arena, uint32_t, s->refs.count);
    if (next == NULL || !begin_record(p, plays, iterations, to)) return onv_fail_memory(err);
    p->meter.limit = 0;
    onv_sim_repeats(s, found);
    s->asked = 0;
    s->requests = to;
    run_plan(p, plays);
    s->requests = NULL;
    to->n_ids =
        (uint32_t)s->refs.count > p->before.n_ids ? (uint32_t)s->refs.count : p->before.n_ids;
    bool fits = !s->failed && (plays || note_held(s, &p->left));
    *is_made =
        fits && (!plays || onv_sim_repeats(s, found)) &&
        leaves_as_found(p->meter.rows.at, &p->start, plays ? &p->left_plain : &p->left, next) &&
        list_renames(p, next, to);
    s->asked = UINT_MAX;
    if (!*is_made) onv_requests_cleanup(to);
    if (p->meter.overflows) return fail_overflow(err);
    return fits ? onv_sim_find_saved(s, err) : onv_fail_memory(err);
}

static void take_sums(const onv_pricing *p, onv_train_record *made)
{
    made->program = p->program;
    made->peak_bytes = p->meter.most[ONV_METER_TENSORS];
    made->requested_bytes = p->meter.most[ONV_METER_ALL];
}

onv_status onv_train_record_make(onv_model *model, const onv_eager *eager,
                                 const onv_train_options *options, onv_train_record *made,
                                 onv_error *err)
{
    onv_pricing own = {.options = *options, .sim = {.model = model, .eager = eager}};
    *made = (onv_train_record){0};
    if (options->runs != NULL) /* those of the attempt to do with less */
        memset(options->runs, 0, eager->ops.count * sizeof *options->runs);
    onv_status status = onv_sim_ask(options, err);
    if (status == ONV_OK) status = begin(&own, err);
    own.sim.requests = &made->requests;
    if (status == ONV_OK) status = onv_sim_start(&own.sim, err);
    if (status == ONV_OK) status = onv_sim_train(&own.sim, onv_train_iterations(options), err);
    made->requests.n_ids = (uint32_t)own.sim.refs.count;
    if (own.meter.overflows) status = fail_overflow(err);
    take_sums(&own, made);
    clean(&own);
    if (status != ONV_OK) onv_requests_cleanup(&made->requests);
    return status;
}

onv_status onv_pricing_record(onv_pricing *p, const onv_train_options *plan, onv_train_record *made,
                              onv_error *err)
{
    bool is_made = false;
    uint32_t iterations = onv_train_iterations(plan);
    *made = (onv_train_record){0};
    ONV_TRY(onv_sim_ask(plan, err));
    if (p->is_shared && !p->has_noted) ONV_TRY(note_plain(p, err));
    p->options = *plan;
    onv_status status = ONV_OK;
    if (p->is_shared && iterations > 2) status = record_shared(p, iterations, made, &is_made, err);
    if (status == ONV_OK && !is_made)
        return onv_train_record_make(p->sim.model, p->sim.eager, plan, made, err);
    take_sums(p, made);
    if (status != ONV_OK) onv_requests_cleanup(&made->requests);
    return status;
}
