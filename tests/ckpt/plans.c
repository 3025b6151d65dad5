#include "ckpt/plans.h"
#include "support/test.h"

/* --- All plans --------------------------------------------------------------------------------- */

static void add(plan_list *to, const one_plan *plan)
{
    assert_true(onv_vec_push(to, *plan));
}

static void join(one_plan *to, const one_plan *from, uint32_t shift)
{
    for (uint32_t i = 0; i < from->count; i++) {
        onv_chain_range range = from->at[i];
        to->at[to->count++] = (onv_chain_range){range.first + shift, range.end + shift};
    }
}

void plans_all(uint32_t n, plan_list *plans)
{
    plan_list of[MAX_PLAN_UNITS + 1] = {0};
    assert_true(n <= MAX_PLAN_UNITS);
    add(&of[1], &(one_plan){.count = 0});
    for (uint32_t size = 2; size <= n; size++) {
        for (size_t i = 0; i < of[size - 1].count; i++) {
            one_plan plan = {.count = 0};
            join(&plan, &of[size - 1].at[i], 1);
            add(&of[size], &plan);
        }
        for (uint32_t q = 1; q < size; q++)
            for (size_t i = 0; i < of[q].count; i++)
                for (size_t k = 0; k < of[size - q].count; k++) {
                    one_plan plan = {.at = {{0, q}}, .count = 1};
                    join(&plan, &of[q].at[i], 0);
                    join(&plan, &of[size - q].at[k], q);
                    add(&of[size], &plan);
                }
    }
    for (uint32_t size = 0; size < n; size++) onv_vec_cleanup(&of[size]);
    *plans = of[n];
}

/* --- In a chain -------------------------------------------------------------------------------- */

typedef struct run {
    const onv_chain *chain;
    const layers *l;
    const onv_chain_range *next, *end;
    uint64_t held;
    outcome of;
    bool present[MAX_LAYERS], grad[MAX_LAYERS], sent[MAX_LAYERS];
} run;

static void reach(run *r, uint64_t bytes)
{
    if (bytes > r->of.peak_bytes) r->of.peak_bytes = bytes;
}

static bool is_saved(const onv_chain_tensor *v)
{
    bool saved = false;
    for (uint32_t k = 0; k < v->n_readers; k++) saved |= v->readers[k].saves;
    return saved;
}

/* Whether a unit of [from, to) reads, or saves, the tensor. */
static bool is_read(const onv_chain_tensor *v, uint32_t from, uint32_t to, bool saved)
{
    for (uint32_t k = 0; k < v->n_readers; k++)
        if (v->readers[k].unit >= from && v->readers[k].unit < to &&
            (v->readers[k].saves || !saved))
            return true;
    return false;
}

static const onv_chain_range *take(run *r, uint32_t s, uint32_t t)
{
    if (r->next == r->end || r->next->first != s || r->next->end >= t) return NULL;
    return r->next++;
}

static void train_chain(run *r, uint32_t s, uint32_t t);

static void checkpoint_chain(run *r, const onv_chain_range *range, uint32_t t)
{
    const onv_chain *chain = r->chain;
    uint64_t before = r->held;
    for (uint32_t i = 0; i < chain->n_tensors; i++) {
        const onv_chain_tensor *v = &chain->tensors[i];
        bool enters = v->maker < range->first && is_read(v, range->first, range->end, false);
        if (enters && !is_saved(v)) r->held += v->bytes;
    }
    uint64_t inside_held = r->held;
    for (uint32_t u = range->first; u < range->end; u++) {
        uint64_t there = chain->turn_bytes[t] + chain->units[u].passing_bytes;
        for (uint32_t i = 0; i < chain->n_tensors; i++) {
            const onv_chain_tensor *v = &chain->tensors[i];
            if (v->maker >= range->first && v->maker < u && is_read(v, u, t, false))
                there += v->bytes;
        }
        reach(r, inside_held + there);
        r->of.cost += chain->units[u].cost;
    }
    for (uint32_t i = 0; i < chain->n_tensors; i++) {
        const onv_chain_tensor *v = &chain->tensors[i];
        bool made = v->maker >= range->first && v->maker < range->end;
        bool stays = made && is_read(v, range->end, t, false);
        if (stays && is_saved(v)) r->held += v->bytes;
    }
    /* The insides stand first in the list, but come last. */
    const onv_chain_range *inside = r->next;
    while (r->next < r->end && r->next->first < range->end) r->next++;
    train_chain(r, range->end, t);
    const onv_chain_range *after = r->next;
    r->held = inside_held;
    r->next = inside;
    train_chain(r, range->first, range->end);
    r->held = before;
    r->next = after;
}

static void train_chain(run *r, uint32_t s, uint32_t t)
{
    const onv_chain *chain = r->chain;
    const onv_chain_range *range = take(r, s, t);
    if (range != NULL) {
        if (chain->units[s].no_start) r->of.is_refused = true;
        checkpoint_chain(r, range, t);
        return;
    }
    const onv_chain_unit *unit = &chain->units[s];
    bool last = s + 1 == t, stops = last && t < chain->n_units;
    reach(r, r->held + chain->turn_bytes[t] + (stops ? unit->last_bytes : unit->forward_bytes));
    r->of.cost += stops ? unit->last_cost : unit->cost;
    if (!last) {
        uint64_t before = r->held;
        r->held += unit->own_bytes;
        for (uint32_t i = 0; i < chain->n_tensors; i++) {
            const onv_chain_tensor *v = &chain->tensors[i];
            if (v->maker == s && (v->saved_by_maker || is_read(v, s + 1, t, true)))
                r->held += v->bytes;
        }
        train_chain(r, s + 1, t);
        r->held = before;
    }
    reach(r, r->held + unit->backward_bytes);
}

outcome plan_in_chain(const onv_chain *chain, const onv_chain_range *ranges, uint32_t count)
{
    run r = {.chain = chain, .next = ranges, .end = ranges + count};
    train_chain(&r, 0, chain->n_units);
    return r.of;
}

/* --- On layers --------------------------------------------------------------------------------- */

static uint64_t bytes_of(const layers *l, uint32_t i)
{
    return 4 * l->at[i].height * l->at[i].width * l->at[i].channels;
}

static bool layer_reads(const layers *l, uint32_t reader, uint32_t i)
{
    for (int k = 0; k < l->at[reader].n_in; k++)
        if (l->at[reader].in[k] == (int)i) return true;
    return false;
}

static bool read_between(const layers *l, uint32_t i, uint32_t from, uint32_t to)
{
    for (uint32_t r = from; r < to; r++)
        if (layer_reads(l, r, i)) return true;
    return false;
}

static void count(run *r)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < (uint32_t)r->l->count; i++)
        bytes += (r->present[i] + r->grad[i]) * bytes_of(r->l, i);
    reach(r, bytes);
}

static void compute(run *r, uint32_t i)
{
    for (int k = 0; k < r->l->at[i].n_in; k++)
        assert_true(r->l->at[i].in[k] == IMAGE || r->present[r->l->at[i].in[k]]);
    assert_false(r->present[i]);
    r->present[i] = true;
    r->of.cost += r->l->at[i].cost;
    count(r);
}

/* Outputs and gradients that no gradient to come needs go. `from`: layers below it are others'. */
static void sweep(run *r, uint32_t from)
{
    for (uint32_t i = from; i < (uint32_t)r->l->count; i++) {
        bool needed = !r->sent[i];
        for (int k = 0; k < r->l->at[i].n_in; k++)
            needed |= r->l->at[i].in[k] != IMAGE && !r->sent[r->l->at[i].in[k]];
        if (r->grad[i] && !needed) r->grad[i] = false;
        if (r->present[i] && !needed) r->present[i] = false;
    }
}

static void make_grad(run *r, uint32_t i)
{
    assert_true(r->present[i]);
    for (uint32_t k = i + 1; k < (uint32_t)r->l->count; k++)
        if (layer_reads(r->l, k, i)) assert_true(r->present[k] && r->grad[k]);
    r->grad[i] = r->sent[i] = true;
    count(r);
}

/* The gradients of what layer `at` is the first to read. */
static void back(run *r, uint32_t at)
{
    uint32_t n = (uint32_t)r->l->count;
    if (at == n - 1) make_grad(r, at);
    for (uint32_t i = at; i-- > 0;)
        if (layer_reads(r->l, at, i) && !read_between(r->l, i, i + 1, at)) make_grad(r, i);
    sweep(r, at);
}

static void train_layers(run *r, uint32_t s, uint32_t t)
{
    const onv_chain_range *range = take(r, s, t);
    if (range == NULL) {
        compute(r, s);
        if (s + 1 < t) train_layers(r, s + 1, t);
        back(r, s);
        return;
    }
    for (uint32_t i = s; i < range->end; i++) {
        compute(r, i);
        for (uint32_t k = s; k <= i; k++)
            if (!read_between(r->l, k, i + 1, t)) r->present[k] = false;
    }
    const onv_chain_range *inside = r->next;
    while (r->next < r->end && r->next->first < range->end) r->next++;
    train_layers(r, range->end, t);
    const onv_chain_range *after = r->next;
    for (uint32_t i = s; i < range->end; i++) r->present[i] = false;
    r->next = inside;
    train_layers(r, s, range->end);
    r->next = after;
}

outcome plan_on_layers(const layers *l, const onv_chain_range *ranges, uint32_t n_ranges)
{
    run r = {.l = l, .next = ranges, .end = ranges + n_ranges};
    train_layers(&r, 0, (uint32_t)l->count);
    for (int i = 0; i < l->count; i++) assert_true(r.sent[i]);
    return r.of;
}
