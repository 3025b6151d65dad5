#include "plan/search.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/strings.h"

#define NONE UINT32_MAX

/* A piece that has to be solved: the unplaced rows of sections [a, b). */
typedef struct piece {
    uint32_t a, b;
    uint32_t parent; /* the frame whose choice made it; NONE: the start */
    uint32_t next;   /* what has to be solved after it, an index of pieces */
} piece;

typedef struct memo_entry {
    uint64_t key[2];
} memo_entry;

/* A choice: which member of `section` comes next, or none. If a piece fails, the choice that made
 * it is the last one that matters; those in between belong to pieces that were solved already. */
typedef struct frame {
    uint32_t a, b;
    uint32_t parent;
    uint32_t rest;   /* pieces to solve after this one */
    uint32_t pieces; /* how many there were when it opened */
    uint32_t section;
    uint32_t cursor; /* in members; the section's end: none; beyond: all tried */
    int32_t steps;   /* of the rows being tried: how many steps they add to the floor */
    size_t trail;
    memo_entry entry; /* of what it solves; 0: not computed, as none had failed yet */
} frame;

struct onv_search {
    onv_search_state state;
    onv_arena arena;
    onv_search_style style;
    uint32_t *rows; /* in the order of the style */
    uint64_t *salt; /* by row: random, for the memo's keys */
    memo_entry *memo;
    size_t memo_mask;
    bool any_failed; /* the memo is not empty */
    ONV_VEC(frame) frames;
    ONV_VEC(piece) pieces;
    uint32_t agenda; /* the next piece; NONE: all are solved */
};

bool onv_search_takes(const onv_part *part)
{
    uint64_t members = 0;
    for (uint32_t a = 0; a < part->n; a++) members += part->hi[a] - part->lo[a];
    return part->n <= ONV_SEARCH_MAX_ROWS && members <= ONV_PART_MAX_PAIRS &&
           onv_part_pairs(part) <= ONV_PART_MAX_PAIRS;
}

onv_status onv_search_new(const onv_part *part, onv_search **search, onv_error *err)
{
    enum { MIN_MEMO = 1 << 10, MAX_MEMO = 1 << 17, MEMO_PER_ROW = 512, ARENA_LIMIT = 512 << 20 };
    onv_search *made = onv_heap_calloc(1, sizeof *made);
    *search = made;
    if (made == NULL) return onv_fail_memory(err);
    onv_arena_init(&made->arena, ARENA_LIMIT);
    size_t entries = MIN_MEMO;
    while (entries < (size_t)part->n * MEMO_PER_ROW && entries < MAX_MEMO) entries *= 2;
    made->memo_mask = entries - 1;
    made->memo = onv_heap_calloc(entries, sizeof *made->memo);
    made->rows = ONV_ARENA_ARRAY(&made->arena, uint32_t, part->n);
    made->salt = ONV_ARENA_ARRAY(&made->arena, uint64_t, part->n);
    for (uint32_t row = 0; made->salt != NULL && row < part->n; row++)
        made->salt[row] = onv_hash_u64(row + 1);
    onv_status status = made->memo == NULL || made->rows == NULL || made->salt == NULL
                            ? onv_fail_memory(err)
                            : onv_state_init(&made->state, part, &made->arena, err);
    if (status == ONV_OK) return ONV_OK;
    onv_search_destroy(made);
    *search = NULL;
    return status;
}

void onv_search_destroy(onv_search *search)
{
    if (search == NULL) return;
    onv_state_cleanup(&search->state);
    onv_vec_cleanup(&search->frames);
    onv_vec_cleanup(&search->pieces);
    onv_heap_free(search->memo);
    onv_arena_cleanup(&search->arena);
    onv_heap_free(search);
}

/* --- Pieces ------------------------------------------------------------------------------------ */

/* Another unplaced row that could come to lie beside this one, or NONE. The floors mostly tell at
 * once: their supports are rows that lie low. */
static uint32_t find_blocker(onv_search_state *state, uint32_t row)
{
    uint64_t top = state->least[row] + state->part->size[row];
    uint32_t lo = state->part->lo[row], hi = state->part->hi[row];
    for (uint32_t s = lo; s < hi; s++) {
        uint32_t other = state->support[s];
        if (other != row && state->least[other] < top) return other;
    }
    state->work += hi - lo;
    for (uint32_t s = lo; s < hi; s++) {
        if (state->floor[s] >= top) continue;
        for (uint32_t i = state->member_from[s]; i < state->member_from[s + 1]; i++) {
            uint32_t other = state->members[i];
            if (other != row && state->least[other] < top) return other;
        }
        state->work += state->member_from[s + 1] - state->member_from[s];
    }
    return NONE;
}

/* Places what nothing can come to lie beside: whoever shares a section with it stays above it
 * anyway. That costs nothing, so there is no choice. False if the state is dead. */
static bool place_free(onv_search_state *state)
{
    if (!onv_state_settle(state)) return false;
    while (state->n_loose > 0) {
        uint32_t row = state->loose[--state->n_loose];
        state->work += 4;
        bool placed = state->least[row] == ONV_PLACED;
        uint32_t blocker = placed ? NONE : find_blocker(state, row);
        if (blocker == NONE)
            state->at_rest[row] = true;
        else
            onv_state_block(state, row, blocker);
        if (placed || blocker != NONE) continue;
        onv_state_place(state, row);
        if (!onv_state_settle(state)) return false;
    }
    return true;
}

static bool push_piece(onv_search *search, uint32_t a, uint32_t b, uint32_t parent, uint32_t next)
{
    piece made = {a, b, parent, next};
    if (!onv_vec_push(&search->pieces, made)) {
        search->state.out_of_memory = true;
        return false;
    }
    search->agenda = (uint32_t)search->pieces.count - 1;
    return true;
}

/* Cuts [a, b) where no unplaced row crosses. If one stretch is left it is narrowed to it and
 * `whole` is set; else the stretches go on the agenda, the narrowest first: it fails fastest. */
static bool cut_piece(onv_search *search, piece *p, bool *whole)
{
    const onv_search_state *state = &search->state;
    uint32_t head = p->next, pieces = 0, last = NONE;
    for (uint32_t a = p->a; a < p->b;) {
        uint32_t b = a + 1;
        while (b < p->b && state->through[b - 1] > 0) b++;
        if (state->rest[a] > 0 || b > a + 1) {
            if (!push_piece(search, a, b, p->parent, NONE)) return false;
            /* Insert by width into the list of stretches, which ends at p->next. */
            last = search->agenda;
            uint32_t *link = &head;
            piece *at = search->pieces.at;
            while (*link != p->next && at[*link].b - at[*link].a <= b - a) link = &at[*link].next;
            at[last].next = *link;
            *link = last;
            pieces++;
        }
        a = b;
    }
    search->agenda = head;
    *whole = pieces == 1;
    if (!*whole) return true;
    p->a = search->pieces.at[last].a;
    p->b = search->pieces.at[last].b;
    return true;
}

/* The state of a piece: what is unplaced in it and where each may go, under this capacity. A sum of
 * products with fixed random numbers, so that it takes no branch; ONV_PLACED is a value like others. */
static memo_entry entry_of(onv_search *search, uint32_t a, uint32_t b)
{
    onv_search_state *state = &search->state;
    const uint64_t *least = state->least, *salt = search->salt;
    uint32_t from = state->row_from[a], end = state->row_from[b];
    uint64_t first = 0, second = onv_hash_u64(state->capacity);
    for (uint32_t row = from; row < end; row++) {
        first += least[row] * salt[row];
        second += (least[row] >> 1) * (salt[row] >> 32 | 1);
    }
    state->work += (end - from) / 4;
    /* Each row's place in the sum depends on the row alone, so the range has to be told. */
    return (memo_entry){.key = {(first ^ onv_hash_u64((uint64_t)a << 32 | b)) | 1, second}};
}

static void remember_failure(onv_search *search, const frame *f)
{
    memo_entry entry = f->entry;
    if (entry.key[0] == 0)
        entry = entry_of(search, f->a, f->b);
    else
        search->state.work +=
            (search->state.row_from[f->b] - search->state.row_from[f->a]) / 4; /* as if it were */
    search->memo[onv_hash_u64(entry.key[0]) & search->memo_mask] = entry;
    search->any_failed = true;
}

static bool failed_before(onv_search *search, frame *f)
{
    if (!search->any_failed) return false;
    memo_entry entry = f->entry = entry_of(search, f->a, f->b);
    const memo_entry *found = &search->memo[onv_hash_u64(entry.key[0]) & search->memo_mask];
    return found->key[0] == entry.key[0] && found->key[1] == entry.key[1];
}

/* --- Choices ----------------------------------------------------------------------------------- */

typedef struct dip {
    uint32_t options;
    bool eligible;
} dip;

/* How many ways there are to go on at a section's floor. Where the floor is not the lowest it is
 * eligible only if everything that can lie there stays in the dip. */
static dip look_at(const onv_search *search, uint32_t section, bool lowest)
{
    const onv_search_state *state = &search->state;
    const onv_part *part = state->part;
    uint64_t floor = state->floor[section], next = ONV_PLACED;
    dip found = {0, true};
    for (uint32_t i = state->member_from[section]; i < state->member_from[section + 1]; i++) {
        uint32_t row = state->members[i];
        uint64_t above = state->least[row];
        if (above == floor) {
            found.options++;
            above += part->size[row];
            for (uint32_t s = part->lo[row]; !lowest && s < part->hi[row]; s++)
                if (state->floor[s] != floor) return (dip){0, false};
        }
        if (above < next) next = above;
    }
    /* Nothing here until `next` at the least: is that much waste affordable? */
    if (next != ONV_PLACED && next + state->rest[section] <= state->capacity) found.options++;
    return found;
}

/* Both neighbours are at the same floor. At the ends of a dip there are fewer options: what crosses
 * the wall cannot lie there. */
static bool within_dip(const onv_search_state *state, uint32_t s, uint32_t a, uint32_t b)
{
    return s > a && s + 1 < b && state->floor[s - 1] == state->floor[s] &&
           state->floor[s + 1] == state->floor[s];
}

/* The section to decide. */
static uint32_t choose_section(onv_search *search, uint32_t a, uint32_t b)
{
    onv_search_state *state = &search->state;
    onv_choice choice = search->style.choice;
    uint64_t lowest = ONV_PLACED;
    for (uint32_t s = a; s < b; s++)
        if (state->floor[s] < lowest) lowest = state->floor[s];
    uint32_t best = NONE;
    uint64_t best_cost = 0, best_weight = 1;
    for (uint32_t s = a; s < b; s++) {
        if (state->floor[s] == ONV_PLACED) continue;
        if (choice != ONV_CHOICE_ANYWHERE && state->floor[s] != lowest) continue;
        if (choice != ONV_CHOICE_TIGHTEST && within_dip(state, s, a, b)) continue;
        uint64_t cost, weight = 1;
        if (choice == ONV_CHOICE_TIGHTEST) {
            cost = state->capacity - lowest - state->rest[s];
        } else {
            dip found = look_at(search, s, state->floor[s] == lowest);
            state->work += state->member_from[s + 1] - state->member_from[s];
            if (!found.eligible) continue;
            cost = found.options;
            weight = state->weight[s];
        }
        /* cost / weight, compared without dividing; of equal ones the first */
        if (best != NONE &&
            (weight == best_weight ? cost >= best_cost : cost * best_weight >= best_cost * weight))
            continue;
        best = s;
        best_cost = cost;
        best_weight = weight;
    }
    state->work += b - a;
    return best;
}

/* Nothing lies at the section's floor: its candidates come to lie on something unplaced. */
static bool waste(onv_search_state *state, uint32_t section, uint64_t floor)
{
    for (uint32_t i = state->member_from[section]; i < state->member_from[section + 1]; i++) {
        uint32_t row = state->members[i];
        if (state->least[row] != floor) continue;
        uint64_t least = ONV_PLACED;
        for (uint32_t k = state->near_from[row]; k < state->near_from[row + 1]; k++) {
            uint32_t other = state->near[k];
            if (state->least[other] == ONV_PLACED) continue;
            uint64_t top = state->least[other] + state->part->size[other];
            if (top < least) least = top;
        }
        state->work += state->near_from[row + 1] - state->near_from[row];
        if (least == ONV_PLACED) return false;
        onv_state_raise(state, row, least);
    }
    return true;
}

/* An equal buffer was tried at this place already. */
static bool has_twin(const onv_search_state *state, const frame *f, uint32_t row)
{
    const onv_part *part = state->part;
    for (uint32_t i = state->member_from[f->section]; i < f->cursor; i++) {
        uint32_t other = state->members[i];
        if (state->least[other] == state->least[row] && part->size[other] == part->size[row] &&
            part->lo[other] == part->lo[row] && part->hi[other] == part->hi[row])
            return true;
    }
    return false;
}

enum { MOST_STEPS = 2 };

/* How many steps a row at its least offset adds to the line of the floors, -2 to 2: walls that it
 * meets level go, walls that it leaves come. */
static int32_t steps_added(const onv_search_state *state, uint32_t row)
{
    const onv_part *part = state->part;
    uint64_t floor = state->least[row], top = floor + part->size[row];
    int32_t steps = 0;
    if (part->lo[row] > 0 && state->floor[part->lo[row] - 1] != ONV_PLACED) {
        uint64_t wall = state->floor[part->lo[row] - 1];
        steps += (wall != top) - (wall != floor);
    }
    if (part->hi[row] < state->sections && state->floor[part->hi[row]] != ONV_PLACED) {
        uint64_t wall = state->floor[part->hi[row]];
        steps += (wall != top) - (wall != floor);
    }
    return steps;
}

/* Applies the frame's next option; false if none is left. */
static bool next_option(onv_search *search, frame *f)
{
    onv_search_state *state = &search->state;
    uint64_t floor = state->floor[f->section];
    uint32_t end = state->member_from[f->section + 1];
    for (; f->cursor <= end; f->cursor++) {
        bool applied = true;
        if (f->cursor == end && f->steps < MOST_STEPS) {
            f->steps++;
            f->cursor = state->member_from[f->section] - 1; /* + 1 */
            continue;
        }
        if (f->cursor == end) {
            applied = waste(state, f->section, floor);
        } else {
            uint32_t row = state->members[f->cursor];
            if (state->least[row] != floor || has_twin(state, f, row)) continue;
            if (search->style.smooth && steps_added(state, row) != f->steps) continue;
            onv_state_place(state, row);
        }
        if (onv_state_settle(state) && applied) {
            f->cursor++;
            return true;
        }
        if (state->out_of_memory) return false;
        onv_state_undo(state, f->trail);
    }
    return false;
}

/* Goes on at the newest frame, or at older ones where that is exhausted; false at the end. */
static bool advance(onv_search *search)
{
    while (search->frames.count > 0) {
        uint32_t top = (uint32_t)search->frames.count - 1;
        frame *f = &search->frames.at[top];
        onv_state_undo(&search->state, f->trail);
        search->pieces.count = f->pieces;
        if (next_option(search, f)) return push_piece(search, f->a, f->b, top, f->rest);
        if (search->state.out_of_memory) return false;
        remember_failure(search, f);
        search->frames.count = f->parent == NONE ? 0 : f->parent + (size_t)1;
    }
    return false;
}

static bool retreat(onv_search *search, uint32_t parent)
{
    search->frames.count = parent == NONE ? 0 : parent + (size_t)1;
    return advance(search);
}

/* Takes the next piece from the agenda as far as it goes without a choice, then chooses. */
static bool step(onv_search *search)
{
    piece p = search->pieces.at[search->agenda];
    bool whole;
    if (!place_free(&search->state)) return retreat(search, p.parent);
    if (!cut_piece(search, &p, &whole)) return false;
    if (!whole) return true;
    frame f = {.a = p.a,
               .b = p.b,
               .parent = p.parent,
               .rest = p.next,
               .steps = search->style.smooth ? -MOST_STEPS : MOST_STEPS};
    if (failed_before(search, &f)) return retreat(search, p.parent);
    f.section = choose_section(search, p.a, p.b);
    f.cursor = search->state.member_from[f.section];
    f.trail = search->state.trail.count;
    f.pieces = (uint32_t)search->pieces.count;
    if (onv_vec_push(&search->frames, f)) return advance(search);
    search->state.out_of_memory = true;
    return false;
}

/* --- A run ------------------------------------------------------------------------------------- */

static int compare_keys(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* Sorts the rows by keys below 2^44, which are overwritten. */
static void sort_rows(uint32_t *rows, uint64_t *keys, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) keys[i] = keys[i] << 20 | rows[i];
    qsort(keys, n, sizeof *keys, compare_keys);
    for (uint32_t i = 0; i < n; i++) rows[i] = (uint32_t)(keys[i] & 0xfffff);
}

/* The order of the style's plan, its heights in 2^16 steps, each row moved up by a few at random. */
static void follow_plan(onv_search *search, const onv_search_style *style, uint64_t *keys)
{
    enum { STEPS = 1 << 16, NOISE = 1024 };
    uint32_t n = search->state.n;
    uint64_t top = 1;
    for (uint32_t row = 0; row < n; row++)
        if (style->plan[row] > top) top = style->plan[row];
    for (uint32_t row = 0; row < n; row++) {
        search->rows[row] = row;
        keys[row] = (uint64_t)((double)style->plan[row] / (double)top * STEPS) +
                    onv_hash_u64(style->seed * 0x9e3779b97f4a7c15u + row) % NOISE;
    }
    sort_rows(search->rows, keys, n);
}

/* The style's order of rows: shuffled by giving each row a key near its rank. */
static onv_status order_rows(onv_search *search, const onv_search_style *style, onv_error *err)
{
    uint32_t n = search->state.n, *rows = search->rows;
    uint64_t *keys = onv_heap_calloc(n, sizeof *keys);
    if (keys == NULL) return onv_fail_memory(err);
    if (style->plan != NULL) {
        follow_plan(search, style, keys);
        onv_heap_free(keys);
        return ONV_OK;
    }
    onv_status status = onv_order_rows(search->state.part, style->order, rows, err);
    for (uint32_t i = 0; status == ONV_OK && style->reversed && i < n / 2; i++) {
        uint32_t row = rows[i];
        rows[i] = rows[n - 1 - i];
        rows[n - 1 - i] = row;
    }
    for (uint32_t i = 0; i < n; i++)
        keys[i] =
            (i + (uint64_t)8) * (512 + onv_hash_u64(style->seed * 0x9e3779b97f4a7c15u + i) % 1024);
    if (status == ONV_OK && style->seed != 0) sort_rows(rows, keys, n);
    onv_heap_free(keys);
    return status;
}

onv_status onv_search_run(onv_search *search, uint64_t capacity, const onv_search_style *style,
                          uint64_t work, onv_effort *effort, uint64_t *offsets,
                          onv_search_result *result, onv_error *err)
{
    onv_search_state *state = &search->state;
    search->style = *style;
    ONV_TRY(order_rows(search, style, err));
    state->work = 0;
    state->learnt = style->learnt;
    onv_state_start(state, capacity, search->rows);
    search->frames.count = search->pieces.count = 0;
    bool open = push_piece(search, 0, state->sections, NONE, NONE);
    bool in_effort = onv_effort_spend(effort, state->work);
    uint64_t booked = state->work;
    while (open && search->agenda != NONE && in_effort && state->work < work) {
        open = step(search);
        in_effort = onv_effort_spend(effort, state->work - booked);
        booked = state->work;
        effort->nodes++;
    }
    if (state->out_of_memory) return onv_fail_memory(err);
    *result = !open                    ? ONV_SEARCH_NONE
              : search->agenda == NONE ? ONV_SEARCH_FOUND
                                       : ONV_SEARCH_SPENT;
    if (*result == ONV_SEARCH_FOUND)
        for (uint32_t row = 0; row < state->n; row++) offsets[row] = state->offset[row];
    return ONV_OK;
}
