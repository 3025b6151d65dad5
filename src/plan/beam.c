#include "plan/part.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/strings.h"

#define NONE   UINT32_MAX
#define CLOSED UINT32_MAX /* the height of a section where all is placed: nothing rests on it */

/* One end of a dip: what can lie there begins (or ends, at the right) with the section. */
typedef struct dip {
    uint32_t a, b; /* its sections */
    bool right;
    uint32_t floor;
    uint32_t options; /* buffers that can lie at this end */
    uint32_t raised;  /* the floor where nothing does; CLOSED: that is no option */
} dip;

typedef struct state {
    uint32_t *top;    /* by section */
    uint32_t *rest;   /* by section: units not placed yet */
    uint64_t *placed; /* bits by row */
    uint64_t hash;    /* of what is placed and left empty; equal buffers count as the same */
    uint64_t area;    /* placed */
    uint32_t steps;   /* walls between open sections */
    uint32_t history; /* the last placement */
    dip next;         /* what is to be decided */
} state;

typedef struct placement {
    uint32_t before; /* the placement before it */
    uint32_t row, offset;
} placement;

typedef struct candidate {
    int64_t cost; /* the least go on */
    uint64_t hash;
    uint32_t parent, row;
} candidate;

struct onv_beam {
    const onv_part *part;
    uint32_t words;       /* of a state's bits */
    uint32_t *start_from; /* by section, and one more: the first row that starts there or later */
    uint32_t
        *end_from; /* by section, and one more: where in `ends` the rows that end there begin */
    uint32_t *ends;
    uint64_t *salt; /* by row, equal for equal buffers */
    uint64_t total; /* area of all */
    uint32_t capacity;
    uint32_t width;
    state *now,
        *next; /* 2 * width + 1 each: a level, and what its states become by leaving a gap */
    uint32_t n_now;
    uint32_t made; /* the width for which there are states */
    uint64_t *seen;
    ONV_VEC(placement) history;
    ONV_VEC(candidate) candidates;
    uint64_t work;
    onv_arena arena;  /* by part */
    onv_arena states; /* by width */
};

bool onv_beam_takes(const onv_part *part)
{
    enum { FREE_SHIFT = 6 };
    if (part->n > ONV_BEAM_MAX_ROWS || part->load >= UINT32_MAX / 2) return false;
    uint64_t all = part->load * part->sections, area = 0; /* below 2^31 * 2^13 */
    for (uint32_t row = 0; row < part->n; row++)
        area += part->size[row] * (part->hi[row] - part->lo[row]);
    return all - area <= all >> FREE_SHIFT;
}

static bool index_rows(onv_beam *beam)
{
    const onv_part *part = beam->part;
    uint32_t m = part->sections;
    beam->start_from = ONV_ARENA_ARRAY(&beam->arena, uint32_t, m + (size_t)2);
    beam->end_from = ONV_ARENA_ARRAY(&beam->arena, uint32_t, m + (size_t)3);
    beam->ends = ONV_ARENA_ARRAY(&beam->arena, uint32_t, part->n);
    beam->salt = ONV_ARENA_ARRAY(&beam->arena, uint64_t, part->n);
    if (beam->arena.failed) return false;
    for (uint32_t row = 0; row < part->n; row++) {
        uint32_t lo = part->lo[row], hi = part->hi[row];
        beam->start_from[lo + 1]++;
        beam->end_from[hi + 2]++;
        beam->salt[row] = onv_hash_u64(onv_hash_u64((uint64_t)lo << 32 | hi) ^ part->size[row]);
        beam->total += part->size[row] * (hi - lo);
    }
    for (uint32_t s = 0; s < m; s++) beam->start_from[s + 1] += beam->start_from[s];
    for (uint32_t s = 0; s <= m + 1; s++) beam->end_from[s + 1] += beam->end_from[s];
    for (uint32_t row = 0; row < part->n; row++)
        beam->ends[beam->end_from[part->hi[row] + 1]++] = row;
    return true;
}

onv_status onv_beam_new(const onv_part *part, onv_beam **beam, onv_error *err)
{
    onv_beam *made = onv_heap_calloc(1, sizeof *made);
    *beam = made;
    if (made == NULL) return onv_fail_memory(err);
    made->part = part;
    made->words = (part->n + 63) / 64;
    onv_arena_init(&made->arena, SIZE_MAX);
    onv_arena_init(&made->states, SIZE_MAX);
    if (index_rows(made)) return ONV_OK;
    onv_beam_destroy(made);
    *beam = NULL;
    return onv_fail_memory(err);
}

void onv_beam_destroy(onv_beam *beam)
{
    if (beam == NULL) return;
    onv_vec_cleanup(&beam->history);
    onv_vec_cleanup(&beam->candidates);
    onv_arena_cleanup(&beam->states);
    onv_arena_cleanup(&beam->arena);
    onv_heap_free(beam);
}

/* --- States ------------------------------------------------------------------------------------ */

static state *make_states(onv_beam *beam, uint32_t count)
{
    uint32_t m = beam->part->sections;
    state *states = ONV_ARENA_ARRAY(&beam->states, state, count);
    uint32_t *heights = ONV_ARENA_ARRAY(&beam->states, uint32_t, 2 * (size_t)m * count);
    uint64_t *bits = ONV_ARENA_ARRAY(&beam->states, uint64_t, (size_t)beam->words * count);
    if (states == NULL || heights == NULL || bits == NULL) return NULL;
    for (uint32_t i = 0; i < count; i++) {
        states[i].top = heights + 2 * (size_t)m * i;
        states[i].rest = states[i].top + m;
        states[i].placed = bits + (size_t)beam->words * i;
    }
    return states;
}

static uint32_t table_size(uint32_t width)
{
    uint32_t size = 64;
    while (size < 4 * width) size *= 2;
    return size;
}

/* Room for `width` states. */
static bool set_width(onv_beam *beam, uint32_t width)
{
    beam->width = width;
    if (beam->made == width) return true;
    beam->made = 0;
    onv_arena_cleanup(&beam->states);
    onv_arena_init(&beam->states, SIZE_MAX);
    beam->now = make_states(beam, 2 * width + 1);
    beam->next = make_states(beam, 2 * width + 1);
    beam->seen = ONV_ARENA_ARRAY(&beam->states, uint64_t, table_size(width));
    if (beam->states.failed) return false;
    beam->made = width;
    return true;
}

static void copy_state(onv_beam *beam, state *to, const state *from)
{
    state copy = *from;
    copy.top = to->top;
    copy.rest = to->rest;
    copy.placed = to->placed;
    memcpy(copy.top, from->top, 2 * (size_t)beam->part->sections * sizeof *copy.top);
    memcpy(copy.placed, from->placed, beam->words * sizeof *copy.placed);
    *to = copy;
    beam->work += beam->part->sections / 4;
}

static bool is_placed(const state *s, uint32_t row)
{
    return (s->placed[row / 64] >> (row % 64) & 1) != 0;
}

/* There is a wall between this section and the one before it. */
static bool is_wall(uint32_t left, uint32_t right)
{
    return left != right && left != CLOSED && right != CLOSED;
}

/* Walls that come less walls that go when sections [lo, hi) of a dip at `floor` end at `top`. */
static int32_t steps_added(const onv_beam *beam, const state *s, uint32_t lo, uint32_t hi,
                           uint32_t floor, uint32_t top)
{
    int32_t steps = 0;
    if (lo > 0) steps += is_wall(s->top[lo - 1], top) - is_wall(s->top[lo - 1], floor);
    if (hi < beam->part->sections) steps += is_wall(top, s->top[hi]) - is_wall(floor, s->top[hi]);
    return steps;
}

/* --- The next decision ------------------------------------------------------------------------- */

/* The rows that can lie at an end of [a, b), one after the other; NONE: no more. `at` starts at 0. */
static uint32_t next_row(onv_beam *beam, const state *s, const dip *d, uint32_t *at)
{
    const onv_part *part = beam->part;
    uint32_t from = d->right ? beam->end_from[d->b] : beam->start_from[d->a];
    uint32_t end = d->right ? beam->end_from[d->b + 1] : beam->start_from[d->a + 1];
    for (uint32_t i = from + *at; i < end; i++) {
        uint32_t row = d->right ? beam->ends[i] : i;
        if (is_placed(s, row) || part->lo[row] < d->a || part->hi[row] > d->b) continue;
        *at = i - from + 1;
        return row;
    }
    beam->work += end - from;
    return NONE;
}

/* Where the end's section is left empty, what comes next in it rests on a wall or on another buffer of the
 * dip. CLOSED: the capacity does not allow that. */
static uint32_t raise_floor(onv_beam *beam, const state *s, const dip *d)
{
    const onv_part *part = beam->part;
    uint32_t edge = d->right ? d->b - 1 : d->a;
    if (d->floor + 1 + s->rest[edge] > beam->capacity) return CLOSED;
    uint32_t raised = d->a > 0 ? s->top[d->a - 1] : CLOSED;
    if (d->b < part->sections && s->top[d->b] < raised) raised = s->top[d->b];
    uint32_t from = beam->start_from[d->a], end = beam->start_from[d->b];
    for (uint32_t row = from; row < end; row++) {
        if (is_placed(s, row) || part->hi[row] > d->b) continue;
        if (d->right ? part->hi[row] == d->b : part->lo[row] == d->a) continue;
        uint32_t top = d->floor + (uint32_t)part->size[row];
        if (top < raised) raised = top;
    }
    beam->work += end - from;
    bool fits = raised != CLOSED && raised + s->rest[edge] <= beam->capacity;
    return fits ? raised : CLOSED;
}

/* Finds the end of a dip with the fewest options, of equal ones that of the narrowest dip; false if
 * one has none, so that the state is dead. */
static bool find_decision(onv_beam *beam, state *s)
{
    uint32_t m = beam->part->sections, b;
    uint64_t best = UINT64_MAX;
    for (uint32_t a = 0; a < m; a = b) {
        dip d = {.a = a, .floor = s->top[a]};
        for (b = a + 1; b < m && s->top[b] == d.floor; b++) continue;
        d.b = b;
        if (d.floor == CLOSED || (a > 0 && s->top[a - 1] < d.floor) ||
            (b < m && s->top[b] < d.floor))
            continue;
        for (int side = 0; side < 2; side++) {
            uint32_t at = 0;
            d.right = side == 1;
            for (d.options = 0; next_row(beam, s, &d, &at) != NONE;) d.options++;
            d.raised = raise_floor(beam, s, &d);
            uint64_t ways = d.options + (uint64_t)(d.raised != CLOSED);
            if (ways == 0) return false;
            if ((ways << 32 | (b - a)) >= best) continue;
            best = ways << 32 | (b - a);
            s->next = d;
        }
    }
    beam->work += m / 2;
    return best != UINT64_MAX;
}

/* --- Levels ------------------------------------------------------------------------------------ */

static bool place_row(onv_beam *beam, state *s, uint32_t row)
{
    const onv_part *part = beam->part;
    uint32_t lo = part->lo[row], hi = part->hi[row], size = (uint32_t)part->size[row];
    uint32_t floor = s->next.floor;
    for (uint32_t section = lo; section < hi; section++) {
        s->rest[section] -= size;
        s->top[section] = s->rest[section] > 0 ? floor + size : CLOSED;
    }
    beam->work += hi - lo;
    s->placed[row / 64] |= (uint64_t)1 << (row % 64);
    s->area += (uint64_t)size * (hi - lo);
    s->hash += beam->salt[row];
    placement made = {s->history, row, floor};
    s->history = (uint32_t)beam->history.count;
    return onv_vec_push(&beam->history, made);
}

/* What the state can become by one more buffer. */
static bool list_candidates(onv_beam *beam, uint32_t index, uint32_t seed)
{
    enum { STEP = 1024, NOISE = 960, AREA = 16 * STEP };
    const onv_part *part = beam->part;
    const state *s = &beam->now[index];
    uint32_t at = 0, row;
    while ((row = next_row(beam, s, &s->next, &at)) != NONE) {
        uint32_t lo = part->lo[row], hi = part->hi[row],
                 top = s->next.floor + (uint32_t)part->size[row];
        int64_t steps = (int64_t)s->steps + steps_added(beam, s, lo, hi, s->next.floor, top);
        uint64_t hash = s->hash + beam->salt[row];
        int64_t cost = steps * STEP;
        if (seed > 0) cost += (int64_t)(onv_hash_u64(hash + seed) % NOISE);
        if (seed % 2 == 1)
            cost -= (int64_t)((double)(s->area + part->size[row] * (hi - lo)) /
                              (double)beam->total * AREA);
        candidate made = {cost, hash, index, row};
        if (!onv_vec_push(&beam->candidates, made)) return false;
        beam->work += 16;
    }
    return true;
}

/* Adds the state of the same level that leaves the place empty, if there is room for it. */
static void leave_empty(onv_beam *beam, uint32_t index)
{
    const state *s = &beam->now[index];
    if (s->next.raised == CLOSED || beam->n_now > 2 * beam->width) return;
    state *raised = &beam->now[beam->n_now];
    copy_state(beam, raised, s);
    dip d = s->next;
    uint32_t edge = d.right ? d.b - 1 : d.a;
    int32_t steps = steps_added(beam, s, edge, edge + 1, d.floor, d.raised);
    raised->steps = (uint32_t)((int32_t)raised->steps + steps);
    raised->top[edge] = d.raised;
    raised->hash += onv_hash_u64((uint64_t)edge << 32 | d.raised);
    if (find_decision(beam, raised)) beam->n_now++;
}

static int compare_candidates(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return x->parent < y->parent ? -1 : x->parent > y->parent;
}

/* Notes the hash; false if it was there. */
static bool is_new(onv_beam *beam, uint64_t hash)
{
    uint32_t mask = table_size(beam->width) - 1;
    uint64_t key = hash | 1;
    uint32_t i = (uint32_t)onv_hash_u64(key) & mask;
    for (; beam->seen[i] != 0; i = (i + 1) & mask)
        if (beam->seen[i] == key) return false;
    beam->seen[i] = key;
    return true;
}

/* Makes the next level of the best candidates that are alive. */
static bool take_best(onv_beam *beam, bool last)
{
    /* Dead ones are in the table too: it is as large as four levels, and no fuller than a half. */
    uint32_t taken = 0, most_seen = 2 * beam->width;
    qsort(beam->candidates.at, beam->candidates.count, sizeof *beam->candidates.at,
          compare_candidates);
    memset(beam->seen, 0, table_size(beam->width) * sizeof *beam->seen);
    for (size_t i = 0; i < beam->candidates.count && taken < beam->width && most_seen > 0; i++) {
        const candidate *c = &beam->candidates.at[i];
        if (!is_new(beam, c->hash)) continue;
        most_seen--;
        const state *parent = &beam->now[c->parent];
        state *s = &beam->next[taken];
        copy_state(beam, s, parent);
        dip d = parent->next;
        uint32_t lo = beam->part->lo[c->row], hi = beam->part->hi[c->row];
        uint32_t top = d.floor + (uint32_t)beam->part->size[c->row];
        s->steps = (uint32_t)((int32_t)s->steps + steps_added(beam, s, lo, hi, d.floor, top));
        if (!place_row(beam, s, c->row)) return false;
        if (last || find_decision(beam, s)) taken++;
    }
    state *swap = beam->now;
    beam->now = beam->next;
    beam->next = swap;
    beam->n_now = taken;
    return true;
}

/* --- A run ------------------------------------------------------------------------------------- */

static void start(onv_beam *beam)
{
    const onv_part *part = beam->part;
    state *s = &beam->now[0];
    beam->history.count = 0;
    memset(s->top, 0, 2 * (size_t)part->sections * sizeof *s->top); /* and rest */
    memset(s->placed, 0, beam->words * sizeof *s->placed);
    s->hash = s->area = s->steps = 0;
    s->history = NONE;
    for (uint32_t row = 0; row < part->n; row++)
        for (uint32_t section = part->lo[row]; section < part->hi[row]; section++)
            s->rest[section] += (uint32_t)part->size[row];
    beam->n_now = find_decision(beam, s) ? 1 : 0;
}

onv_status onv_beam_run(onv_beam *beam, uint64_t capacity, uint32_t width, uint32_t seed,
                        onv_effort *effort, uint64_t *offsets, bool *found, onv_error *err)
{
    uint32_t n = beam->part->n;
    *found = false;
    if (capacity < beam->part->load || capacity >= UINT32_MAX / 2) return ONV_OK;
    if (!set_width(beam, width)) return onv_fail_memory(err);
    beam->capacity = (uint32_t)capacity;
    start(beam);
    for (uint32_t level = 0; level < n && beam->n_now > 0; level++) {
        beam->candidates.count = 0;
        beam->work = 0;
        for (uint32_t i = 0; i < beam->n_now; i++) {
            if (!list_candidates(beam, i, seed)) return onv_fail_memory(err);
            leave_empty(beam, i);
        }
        if (!take_best(beam, level + 1 == n)) return onv_fail_memory(err);
        if (!onv_effort_spend(effort, beam->work)) return ONV_OK;
    }
    if (beam->n_now == 0) return ONV_OK;
    *found = true;
    for (uint32_t i = beam->now[0].history; i != NONE; i = beam->history.at[i].before)
        offsets[beam->history.at[i].row] = beam->history.at[i].offset;
    return ONV_OK;
}
