/* The search over sets of nodes that have run. What an order needs from now on depends on the set
 * alone, so a set is looked at once, however it was reached; sets are kept as bits in a hash table.
 *
 * Under a limit, depth first: the sets that a next node leads to, the one with the fewest live bytes
 * first. A node whose step passes the limit is not run. When nothing is left, no order keeps to the
 * limit, nor to anything below the least of the steps that passed it.
 *
 * The same backward, from the end: a node is ready once all readers of its results have been taken;
 * taking it drops its results and makes what it reads live. A graph may be far easier in one
 * direction, as the sets that the limit allows are other ones.
 *
 * Wherever a ready node, or a run of nodes each made ready by the one before, fits under the limit
 * and leads back to no more bytes than were live before, it is run without looking at the choices. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/strings.h"
#include "base/vec.h"
#include "order/order_dag.h"

enum { MAX_RUN = 64, CANCEL_EVERY = 1024, BYTES_PER_UNIT = 128, STEPS_PER_UNIT = 512 };

typedef struct state {
    uint64_t live;
    uint32_t parent;               /* itself for the first */
    uint32_t sequence, n_sequence; /* nodes run since the parent */
} state;

typedef struct move {
    uint64_t live;
    uint32_t state;
} move;

typedef struct search {
    const onv_dag *dag;
    onv_dag_search *job;
    uint64_t limit;
    uint64_t least; /* of the steps that passed it */
    uint32_t words;
    onv_arena arena;
    /* The set that is looked at now */
    onv_front front;
    onv_front_events events;
    uint64_t *bits;
    uint32_t *ready, n_ready; /* nodes that wait for nothing and did not run */
    uint32_t *ready_at;       /* by node: its place in `ready` */
    uint32_t *path, n_path;   /* nodes run since the set was loaded */
    uint64_t *live_before;    /* each of them */
    uint32_t n_done;
    /* All sets */
    ONV_VEC(state) states;
    ONV_VEC(uint64_t) sets; /* `words` each */
    ONV_VEC(uint32_t) sequences;
    uint32_t *table; /* 1 + state, 0: free */
    size_t capacity;
    ONV_VEC(uint32_t) stack;
    ONV_VEC(move) moves;
    uint32_t *choices;
    uint32_t found; /* the state where all have run, or UINT32_MAX */
    uint64_t steps; /* of work that is not charged yet */
    bool failed, exhausted, cancelled;
} search;

static void charge(search *s, uint64_t units)
{
    if (units > s->job->budget) s->exhausted = true;
    s->job->budget -= s->exhausted ? s->job->budget : units;
}

static void charge_steps(search *s)
{
    charge(s, s->steps / STEPS_PER_UNIT);
    s->steps %= STEPS_PER_UNIT;
}

/* --- The current set ---------------------------------------------------------------------------- */

static void add_ready(void *context, uint32_t node)
{
    search *s = context;
    s->ready_at[node] = s->n_ready;
    s->ready[s->n_ready++] = node;
}

static void remove_ready(void *context, uint32_t node)
{
    search *s = context;
    uint32_t last = s->ready[--s->n_ready];
    s->ready[s->ready_at[node]] = last;
    s->ready_at[last] = s->ready_at[node];
}

/* `after` is live behind it. */
static void run_node(search *s, uint32_t node, uint64_t after)
{
    s->live_before[s->n_path] = s->front.live;
    s->front.live = after;
    s->steps += 8;
    remove_ready(s, node);
    s->bits[node / 64] |= UINT64_C(1) << node % 64;
    s->n_done++;
    onv_front_take(&s->front, node, &s->events);
    s->path[s->n_path++] = node;
}

static void undo_node(search *s)
{
    uint32_t node = s->path[--s->n_path];
    onv_front_undo(&s->front, node, &s->events);
    s->n_done--;
    s->bits[node / 64] &= ~(UINT64_C(1) << node % 64);
    add_ready(s, node);
    s->front.live = s->live_before[s->n_path];
}

/* From the set before to another one; nodes are taken and given back in any order, as their counts allow. */
static void load(search *s, uint32_t index)
{
    static const onv_front_events none = {0};
    const uint64_t *bits = s->sets.at + (size_t)index * s->words;
    for (uint32_t w = 0; w < s->words; w++) {
        for (uint64_t rest = bits[w] ^ s->bits[w]; rest != 0; rest &= rest - 1) {
            uint32_t bit = (uint32_t)__builtin_ctzll(rest);
            bool is_in = (bits[w] >> bit & 1) != 0;
            (is_in ? onv_front_take : onv_front_undo)(&s->front, w * 64 + bit, &none);
            if (is_in)
                s->n_done++;
            else
                s->n_done--;
        }
        s->bits[w] = bits[w];
    }
    s->front.live = s->states.at[index].live;
    s->n_ready = s->n_path = 0;
    for (uint32_t n = 0; n < s->dag->n_nodes; n++)
        if (s->front.waits[n] == 0 && !(bits[n / 64] >> n % 64 & 1)) add_ready(s, n);
}

/* --- Moves that need no choice ------------------------------------------------------------------- */

/* Runs `node` and then, while more is live than before, the best of what each has made ready. */
static bool run_ahead(search *s, uint32_t node, uint64_t after)
{
    onv_front *f = &s->front;
    uint64_t before = f->live;
    uint32_t n = 0;
    for (;;) {
        if (onv_front_step(f, node, after) > s->limit) break;
        uint32_t others = s->n_ready - 1;
        run_node(s, node, after);
        n++;
        if (f->live <= before) return true;
        if (n == MAX_RUN || s->n_ready == others) break;
        for (uint32_t i = others; i < s->n_ready; i++) {
            uint64_t bytes = onv_front_after(f, s->ready[i]);
            if (i > others && bytes >= after) continue;
            node = s->ready[i];
            after = bytes;
        }
    }
    while (n-- > 0) undo_node(s);
    return false;
}

static void run_safe_nodes(search *s)
{
    const onv_front *f = &s->front;
    for (bool again = true; again && !s->exhausted;) {
        again = false;
        s->steps += s->n_ready;
        charge_steps(s);
        for (uint32_t i = 0; i < s->n_ready && !again; i++) {
            uint64_t after = onv_front_after(f, s->ready[i]);
            again = after <= f->live && run_ahead(s, s->ready[i], after);
        }
        if (again) continue;
        uint32_t n = s->n_ready; /* undoing moves nodes about, so go by a copy */
        memcpy(s->choices, s->ready, n * sizeof *s->choices);
        for (uint32_t i = 0; i < n && !again; i++)
            again = onv_front_readies(f, s->choices[i]) &&
                    run_ahead(s, s->choices[i], onv_front_after(f, s->choices[i]));
    }
}

/* --- All sets ----------------------------------------------------------------------------------- */

static bool grow_table(search *s)
{
    size_t capacity = s->capacity == 0 ? 1024 : s->capacity * 2;
    uint32_t *table = onv_heap_calloc(capacity, sizeof *table);
    if (table == NULL) return false;
    for (uint32_t i = 0; i < s->states.count; i++) {
        uint64_t hash =
            onv_hash_bytes(s->sets.at + (size_t)i * s->words, s->words * sizeof *s->sets.at, 0);
        size_t at = hash & (capacity - 1);
        while (table[at] != 0) at = (at + 1) & (capacity - 1);
        table[at] = i + 1;
    }
    onv_heap_free(s->table);
    s->table = table;
    s->capacity = capacity;
    return true;
}

/* Adds the current set unless it is known; gives whether it was new. */
static bool add_state(search *s, uint32_t parent)
{
    size_t bytes = s->words * sizeof *s->bits;
    if (s->states.count * 2 >= s->capacity && !grow_table(s)) {
        s->failed = true;
        return false;
    }
    size_t at = onv_hash_bytes(s->bits, bytes, 0) & (s->capacity - 1);
    for (; s->table[at] != 0; at = (at + 1) & (s->capacity - 1))
        if (memcmp(s->sets.at + (size_t)(s->table[at] - 1) * s->words, s->bits, bytes) == 0)
            return false;
    state added = {s->front.live, parent, (uint32_t)s->sequences.count, s->n_path};
    charge(s, (bytes + s->n_path * sizeof(uint32_t)) / BYTES_PER_UNIT);
    s->failed = !onv_vec_reserve(&s->sets, s->words) ||
                !onv_vec_reserve(&s->sequences, s->n_path) || !onv_vec_push(&s->states, added);
    if (s->failed || s->states.count >= UINT32_MAX) return false;
    memcpy(s->sets.at + s->sets.count, s->bits, bytes);
    s->sets.count += s->words;
    if (s->n_path > 0)
        memcpy(s->sequences.at + s->sequences.count, s->path, s->n_path * sizeof *s->path);
    s->sequences.count += s->n_path;
    s->table[at] = (uint32_t)s->states.count;
    if (s->n_done == s->dag->n_nodes) s->found = (uint32_t)s->states.count - 1;
    return true;
}

/* --- Expansion ---------------------------------------------------------------------------------- */

static int compare_moves(const void *a, const void *b)
{
    const move *x = a, *y = b;
    if (x->live != y->live) return x->live > y->live ? -1 : 1;
    return (x->state > y->state) - (x->state < y->state);
}

/* Makes the moves of a set whose steps keep to the limit. */
static void expand(search *s, uint32_t index)
{
    load(s, index);
    s->job->searched++;
    s->steps += s->dag->n_nodes + s->dag->reads.start[s->dag->n_nodes];
    charge(s, 1);
    uint32_t n = s->n_ready;
    uint32_t *ready = s->choices + s->dag->n_nodes;
    memcpy(ready, s->ready, n * sizeof *ready);
    s->moves.count = 0;
    for (uint32_t i = 0; i < n && !s->failed && !s->exhausted && s->found == UINT32_MAX; i++) {
        uint64_t after = onv_front_after(&s->front, ready[i]);
        uint64_t bytes = onv_front_step(&s->front, ready[i], after);
        if (bytes > s->limit) {
            if (bytes < s->least) s->least = bytes;
            continue;
        }
        run_node(s, ready[i], after);
        run_safe_nodes(s);
        move m = {s->front.live, (uint32_t)s->states.count};
        if (add_state(s, index) && !onv_vec_push(&s->moves, m)) s->failed = true;
        while (s->n_path > 0) undo_node(s);
    }
    if (s->moves.count > 1) qsort(s->moves.at, s->moves.count, sizeof *s->moves.at, compare_moves);
    for (size_t i = 0; i < s->moves.count; i++)
        if (!onv_vec_push(&s->stack, s->moves.at[i].state)) s->failed = true;
}

static bool is_over(search *s)
{
    const onv_order_options *options = s->job->options;
    if (options != NULL && options->cancelled != NULL && s->job->searched % CANCEL_EVERY == 0 &&
        options->cancelled(options->cancel_context))
        s->cancelled = true;
    return s->failed || s->exhausted || s->cancelled || s->found != UINT32_MAX;
}

static void search_all(search *s)
{
    bool over = is_over(s);
    while (!over && s->stack.count > 0) {
        expand(s, s->stack.at[--s->stack.count]);
        over = is_over(s);
    }
    if (!over && s->least > s->job->lower) s->job->lower = s->least;
}

/* --- Setting up, and the result ------------------------------------------------------------------ */

static bool prepare(search *s)
{
    const onv_dag *dag = s->dag;
    uint32_t n = dag->n_nodes;
    s->words = (n + 63) / 64;
    s->bits = ONV_ARENA_ARRAY(&s->arena, uint64_t, s->words);
    s->ready = ONV_ARENA_ARRAY(&s->arena, uint32_t, n);
    s->ready_at = ONV_ARENA_ARRAY(&s->arena, uint32_t, n);
    s->path = ONV_ARENA_ARRAY(&s->arena, uint32_t, n);
    s->live_before = ONV_ARENA_ARRAY(&s->arena, uint64_t, n);
    s->choices = ONV_ARENA_ARRAY(&s->arena, uint32_t, (size_t)n * 2);
    if (!onv_front_init(&s->front, dag, &s->arena)) return false;
    s->events = (onv_front_events){.context = s, .ready = add_ready, .waits_again = remove_ready};
    onv_front_start(&s->front, s->job->backward);
    for (uint32_t i = 0; i < n; i++)
        if (s->front.waits[i] == 0) add_ready(s, i);
    return true;
}

static void take_result(search *s)
{
    uint32_t at = s->dag->n_nodes;
    for (uint32_t i = s->found;; i = s->states.at[i].parent) {
        const state *from = &s->states.at[i];
        at -= from->n_sequence;
        memcpy(s->job->order + at, s->sequences.at + from->sequence,
               from->n_sequence * sizeof *s->job->order);
        if (from->parent == i) break;
    }
    uint32_t n = s->dag->n_nodes;
    for (uint32_t i = 0; s->job->backward && i < n / 2; i++) {
        uint32_t node = s->job->order[i];
        s->job->order[i] = s->job->order[n - 1 - i];
        s->job->order[n - 1 - i] = node;
    }
}

onv_status onv_dag_search_run(const onv_dag *dag, onv_dag_search *job, uint64_t limit,
                              onv_error *err)
{
    search s = {.dag = dag, .job = job, .limit = limit, .least = job->upper, .found = UINT32_MAX};
    onv_arena_init(&s.arena, SIZE_MAX);
    s.failed = !prepare(&s);
    if (!s.failed) {
        run_safe_nodes(&s);
        if (add_state(&s, 0) && !onv_vec_push(&s.stack, 0)) s.failed = true;
        search_all(&s);
    }
    if (s.found != UINT32_MAX) take_result(&s);
    bool found = s.found != UINT32_MAX, cancelled = s.cancelled, failed = s.failed;
    onv_arena_cleanup(&s.arena);
    onv_vec_cleanup(&s.states);
    onv_vec_cleanup(&s.sets);
    onv_vec_cleanup(&s.sequences);
    onv_heap_free(s.table);
    onv_vec_cleanup(&s.stack);
    onv_vec_cleanup(&s.moves);
    if (failed) return onv_fail_memory(err);
    if (cancelled) return onv_fail(err, ONV_ERR_CANCELLED, "the search for an order was cancelled");
    return found ? onv_dag_peak(dag, job->order, &job->upper, err) : ONV_OK;
}
