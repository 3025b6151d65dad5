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
    bool backward;
    uint32_t words;
    onv_arena arena;
    /* The set that is looked at now */
    uint64_t *bits;
    uint64_t live;
    const uint64_t *bytes;    /* by value: what its last reader frees, 0 for outputs */
    uint32_t *left;           /* by value: readers that did not run */
    uint32_t *waits;          /* by node: written values that it waits for */
    uint32_t *ready, n_ready; /* nodes that wait for nothing and did not run */
    uint32_t *ready_at;       /* by node: its place in `ready` */
    uint32_t *path, n_path;   /* nodes run since the set was loaded */
    uint64_t *live_before;    /* each of them */
    uint32_t n_done;
    uint32_t *left_at_start, *waits_at_start;
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

static void add_ready(search *s, uint32_t node)
{
    s->ready_at[node] = s->n_ready;
    s->ready[s->n_ready++] = node;
}

static void remove_ready(search *s, uint32_t node)
{
    uint32_t last = s->ready[--s->n_ready];
    s->ready[s->ready_at[node]] = last;
    s->ready_at[last] = s->ready_at[node];
}

static void release(search *s, uint32_t node)
{
    if (--s->waits[node] == 0) add_ready(s, node);
}

static void withhold(search *s, uint32_t node)
{
    if (s->waits[node]++ == 0) remove_ready(s, node);
}

static uint32_t n_readers(const onv_dag *dag, uint32_t v)
{
    return dag->reader_start[v + 1] - dag->reader_start[v];
}

/* Bytes live behind `node` in the direction of the search, without running it. */
static uint64_t live_after(const search *s, uint32_t node)
{
    const onv_dag *dag = s->dag;
    uint32_t from = dag->read_start[node], end = dag->read_start[node + 1];
    uint64_t live = s->live;
    if (s->backward) {
        live -= dag->kept[node];
        for (uint32_t i = from; i < end; i++)
            if (s->left[dag->reads[i]] == n_readers(dag, dag->reads[i]))
                live += s->bytes[dag->reads[i]];
        return live;
    }
    live += dag->kept[node];
    for (uint32_t i = from; i < end; i++)
        if (s->left[dag->reads[i]] == 1) live -= s->bytes[dag->reads[i]];
    return live;
}

/* Bytes of the step of `node`: what is live before it in the order, and its need. */
static uint64_t step_bytes(const search *s, uint32_t node)
{
    return (s->backward ? live_after(s, node) : s->live) + s->dag->need[node];
}

static void run_node(search *s, uint32_t node)
{
    const onv_dag *dag = s->dag;
    s->live_before[s->n_path] = s->live;
    s->live = live_after(s, node);
    s->steps += 8;
    remove_ready(s, node);
    s->bits[node / 64] |= UINT64_C(1) << node % 64;
    s->n_done++;
    for (uint32_t i = dag->read_start[node]; i < dag->read_start[node + 1]; i++) {
        uint32_t v = dag->reads[i], writer = dag->values[v].writer;
        if (--s->left[v] == 0 && s->backward && writer != ONV_DAG_NONE) release(s, writer);
    }
    for (uint32_t i = dag->write_start[node]; !s->backward && i < dag->write_start[node + 1]; i++) {
        uint32_t v = dag->writes[i];
        for (uint32_t r = dag->reader_start[v]; r < dag->reader_start[v + 1]; r++)
            release(s, dag->readers[r]);
    }
    s->path[s->n_path++] = node;
}

static void undo_node(search *s)
{
    const onv_dag *dag = s->dag;
    uint32_t node = s->path[--s->n_path];
    for (uint32_t i = dag->write_start[node]; !s->backward && i < dag->write_start[node + 1]; i++) {
        uint32_t v = dag->writes[i];
        for (uint32_t r = dag->reader_start[v]; r < dag->reader_start[v + 1]; r++)
            withhold(s, dag->readers[r]);
    }
    for (uint32_t i = dag->read_start[node]; i < dag->read_start[node + 1]; i++) {
        uint32_t v = dag->reads[i], writer = dag->values[v].writer;
        if (s->left[v]++ == 0 && s->backward && writer != ONV_DAG_NONE) withhold(s, writer);
    }
    s->n_done--;
    s->bits[node / 64] &= ~(UINT64_C(1) << node % 64);
    add_ready(s, node);
    s->live = s->live_before[s->n_path];
}

static void load(search *s, uint32_t index)
{
    const onv_dag *dag = s->dag;
    const uint64_t *bits = s->sets.at + (size_t)index * s->words;
    memcpy(s->left, s->left_at_start, dag->n_values * sizeof *s->left);
    memcpy(s->waits, s->waits_at_start, dag->n_nodes * sizeof *s->waits);
    memcpy(s->bits, bits, s->words * sizeof *bits);
    s->live = s->states.at[index].live;
    s->n_done = s->n_ready = s->n_path = 0;
    for (uint32_t w = 0; w < s->words; w++) {
        for (uint64_t rest = bits[w]; rest != 0; rest &= rest - 1) {
            uint32_t node = w * 64 + (uint32_t)__builtin_ctzll(rest);
            s->n_done++;
            for (uint32_t i = dag->read_start[node]; i < dag->read_start[node + 1]; i++) {
                uint32_t v = dag->reads[i], writer = dag->values[v].writer;
                if (--s->left[v] == 0 && s->backward && writer != ONV_DAG_NONE) s->waits[writer]--;
            }
            if (s->backward) continue;
            for (uint32_t i = dag->write_start[node]; i < dag->write_start[node + 1]; i++) {
                uint32_t v = dag->writes[i];
                for (uint32_t r = dag->reader_start[v]; r < dag->reader_start[v + 1]; r++)
                    s->waits[dag->readers[r]]--;
            }
        }
    }
    for (uint32_t n = 0; n < dag->n_nodes; n++)
        if (s->waits[n] == 0 && !(bits[n / 64] >> n % 64 & 1)) add_ready(s, n);
}

/* --- Moves that need no choice ------------------------------------------------------------------- */

/* Whether running `node` makes another one ready. */
static bool opens_up(const search *s, uint32_t node)
{
    const onv_dag *dag = s->dag;
    for (uint32_t i = dag->read_start[node]; s->backward && i < dag->read_start[node + 1]; i++) {
        uint32_t v = dag->reads[i], writer = dag->values[v].writer;
        if (s->left[v] == 1 && writer != ONV_DAG_NONE && s->waits[writer] == 1) return true;
    }
    for (uint32_t i = dag->write_start[node]; !s->backward && i < dag->write_start[node + 1]; i++) {
        uint32_t v = dag->writes[i];
        for (uint32_t r = dag->reader_start[v]; r < dag->reader_start[v + 1]; r++)
            if (s->waits[dag->readers[r]] == 1) return true;
    }
    return false;
}

/* Runs `node` and then, while more is live than before, the best of what each has made ready. */
static bool run_ahead(search *s, uint32_t node)
{
    uint64_t before = s->live;
    uint32_t n = 0;
    for (;;) {
        if (step_bytes(s, node) > s->limit) break;
        uint32_t others = s->n_ready - 1;
        run_node(s, node);
        n++;
        if (s->live <= before) return true;
        if (n == MAX_RUN || s->n_ready == others) break;
        node = s->ready[others];
        for (uint32_t i = others + 1; i < s->n_ready; i++)
            if (live_after(s, s->ready[i]) < live_after(s, node)) node = s->ready[i];
    }
    while (n-- > 0) undo_node(s);
    return false;
}

static void run_safe_nodes(search *s)
{
    for (bool again = true; again && !s->exhausted;) {
        again = false;
        s->steps += s->n_ready;
        charge_steps(s);
        for (uint32_t i = 0; i < s->n_ready && !again; i++)
            if (live_after(s, s->ready[i]) <= s->live) again = run_ahead(s, s->ready[i]);
        if (again) continue;
        uint32_t n = s->n_ready; /* undoing moves nodes about, so go by a copy */
        memcpy(s->choices, s->ready, n * sizeof *s->choices);
        for (uint32_t i = 0; i < n && !again; i++)
            again = opens_up(s, s->choices[i]) && run_ahead(s, s->choices[i]);
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
    state added = {s->live, parent, (uint32_t)s->sequences.count, s->n_path};
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
    s->steps += s->dag->n_nodes + s->dag->read_start[s->dag->n_nodes];
    charge(s, 1);
    uint32_t n = s->n_ready;
    uint32_t *ready = s->choices + s->dag->n_nodes;
    memcpy(ready, s->ready, n * sizeof *ready);
    s->moves.count = 0;
    for (uint32_t i = 0; i < n && !s->failed && !s->exhausted && s->found == UINT32_MAX; i++) {
        uint64_t bytes = step_bytes(s, ready[i]);
        if (bytes > s->limit) {
            if (bytes < s->least) s->least = bytes;
            continue;
        }
        run_node(s, ready[i]);
        run_safe_nodes(s);
        move m = {s->live, (uint32_t)s->states.count};
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
    s->left = ONV_ARENA_ARRAY(&s->arena, uint32_t, dag->n_values);
    s->left_at_start = ONV_ARENA_ARRAY(&s->arena, uint32_t, dag->n_values);
    s->waits = ONV_ARENA_ARRAY(&s->arena, uint32_t, n);
    s->waits_at_start = ONV_ARENA_ARRAY(&s->arena, uint32_t, n);
    s->ready = ONV_ARENA_ARRAY(&s->arena, uint32_t, n);
    s->ready_at = ONV_ARENA_ARRAY(&s->arena, uint32_t, n);
    s->path = ONV_ARENA_ARRAY(&s->arena, uint32_t, n);
    s->live_before = ONV_ARENA_ARRAY(&s->arena, uint64_t, n);
    uint64_t *bytes = ONV_ARENA_ARRAY(&s->arena, uint64_t, dag->n_values);
    s->choices = ONV_ARENA_ARRAY(&s->arena, uint32_t, (size_t)n * 2);
    if (s->arena.failed) return false;
    s->bytes = bytes;
    s->live = s->backward ? 0 : dag->start_bytes;
    for (uint32_t v = 0; v < dag->n_values; v++) {
        const onv_dag_value *value = &dag->values[v];
        bytes[v] = value->is_output ? 0 : value->bytes;
        if (s->backward && value->is_output) s->live += value->bytes;
        s->left_at_start[v] = n_readers(dag, v);
        if (value->writer == ONV_DAG_NONE) continue;
        if (s->backward && s->left_at_start[v] > 0) s->waits_at_start[value->writer]++;
        for (uint32_t r = dag->reader_start[v]; !s->backward && r < dag->reader_start[v + 1]; r++)
            s->waits_at_start[dag->readers[r]]++;
    }
    memcpy(s->left, s->left_at_start, dag->n_values * sizeof *s->left);
    memcpy(s->waits, s->waits_at_start, n * sizeof *s->waits);
    for (uint32_t i = 0; i < n; i++)
        if (s->waits[i] == 0) add_ready(s, i);
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
    for (uint32_t i = 0; s->backward && i < n / 2; i++) {
        uint32_t node = s->job->order[i];
        s->job->order[i] = s->job->order[n - 1 - i];
        s->job->order[n - 1 - i] = node;
    }
}

onv_status onv_dag_search_run(const onv_dag *dag, onv_dag_search *job, uint64_t limit,
                              onv_error *err)
{
    search s = {.dag = dag,
                .job = job,
                .limit = limit,
                .least = job->upper,
                .backward = job->backward,
                .found = UINT32_MAX};
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
