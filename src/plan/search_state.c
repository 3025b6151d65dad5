#include "plan/search.h"

#include <string.h>

#include "base/fail.h"

static bool allocate(onv_search_state *state, onv_arena *arena, uint64_t n_members)
{
    size_t n = state->n, m = state->sections;
    state->member_from = ONV_ARENA_ARRAY(arena, uint32_t, m + 1);
    state->members = ONV_ARENA_ARRAY(arena, uint32_t, (size_t)n_members);
    state->row_from = ONV_ARENA_ARRAY(arena, uint32_t, m + 1);
    state->least = ONV_ARENA_ARRAY(arena, uint64_t, n);
    state->offset = ONV_ARENA_ARRAY(arena, uint64_t, n);
    state->floor = ONV_ARENA_ARRAY(arena, uint64_t, m);
    state->support = ONV_ARENA_ARRAY(arena, uint32_t, m);
    state->supports = ONV_ARENA_ARRAY(arena, uint32_t, n);
    state->cursor = ONV_ARENA_ARRAY(arena, uint32_t, m);
    state->rest = ONV_ARENA_ARRAY(arena, uint64_t, m);
    state->through = ONV_ARENA_ARRAY(arena, uint32_t, m);
    state->weights[0] = ONV_ARENA_ARRAY(arena, uint32_t, m);
    state->weights[1] = ONV_ARENA_ARRAY(arena, uint32_t, m);
    state->blocked = ONV_ARENA_ARRAY(arena, uint32_t, n);
    state->next_blocked = ONV_ARENA_ARRAY(arena, uint32_t, n);
    state->loose = ONV_ARENA_ARRAY(arena, uint32_t, n);
    state->at_rest = ONV_ARENA_ARRAY(arena, bool, n);
    state->stale = ONV_ARENA_ARRAY(arena, uint32_t, m);
    state->is_stale = ONV_ARENA_ARRAY(arena, bool, m);
    return !arena->failed;
}

onv_status onv_state_init(onv_search_state *state, const onv_part *part, onv_arena *arena,
                          onv_error *err)
{
    *state = (onv_search_state){.part = part, .n = part->n, .sections = part->sections};
    uint64_t n_members = 0; /* few enough, as conflicts are: onv_search_takes */
    for (uint32_t a = 0; a < part->n; a++) n_members += part->hi[a] - part->lo[a];
    if (!allocate(state, arena, n_members) ||
        !onv_part_conflicts(part, arena, &state->near_from, &state->near))
        return onv_fail_memory(err);
    for (uint32_t row = part->n; row-- > 0;) state->row_from[part->lo[row]] = row;
    uint32_t next = part->n;
    state->row_from[part->sections] = next;
    for (uint32_t s = part->sections; s-- > 0;) {
        bool starts = state->row_from[s] < part->n && part->lo[state->row_from[s]] == s;
        if (starts) next = state->row_from[s];
        state->row_from[s] = next;
    }
    return ONV_OK;
}

void onv_state_cleanup(onv_search_state *state)
{
    onv_vec_cleanup(&state->trail);
}

void onv_state_start(onv_search_state *state, uint64_t capacity, const uint32_t *rows)
{
    const onv_part *part = state->part;
    uint32_t m = state->sections;
    state->capacity = capacity;
    state->weight = state->weights[state->learnt];
    state->trail.count = 0;
    for (uint32_t i = 0; i < state->n_stale; i++) state->is_stale[state->stale[i]] = false;
    state->n_stale = 0;
    state->dead_at = UINT32_MAX;
    memset(state->least, 0, state->n * sizeof *state->least);
    memset(state->floor, 0, m * sizeof *state->floor);
    memset(state->rest, 0, m * sizeof *state->rest);
    memset(state->through, 0, m * sizeof *state->through);
    memset(state->member_from, 0, (m + (size_t)1) * sizeof *state->member_from);
    state->n_loose = state->n;
    for (uint32_t row = 0; row < state->n; row++) {
        state->loose[row] = state->n - 1 - row; /* taken from the end */
        state->blocked[row] = UINT32_MAX;
        state->at_rest[row] = false;
        if (part->size[row] > capacity) state->dead_at = part->lo[row];
        for (uint32_t s = part->lo[row]; s < part->hi[row]; s++) {
            state->member_from[s + 1]++;
            state->rest[s] += part->size[row];
            if (s + 1 < part->hi[row]) state->through[s]++;
        }
    }
    for (uint32_t s = 0; s < m; s++) {
        if (!state->learnt || state->weight[s] == 0) state->weight[s] = 1;
        if (state->rest[s] > capacity) state->dead_at = s;
        if (state->rest[s] == 0) state->floor[s] = ONV_PLACED;
        state->member_from[s + 1] += state->member_from[s];
    }
    for (uint32_t i = 0; i < state->n; i++)
        for (uint32_t s = part->lo[rows[i]]; s < part->hi[rows[i]]; s++)
            state->members[state->member_from[s]++] = rows[i];
    memmove(state->member_from + 1, state->member_from, m * sizeof *state->member_from);
    state->member_from[0] = 0;
    memcpy(state->cursor, state->member_from, m * sizeof *state->cursor);
    memset(state->supports, 0, state->n * sizeof *state->supports);
    for (uint32_t s = 0; s < m; s++) {
        if (state->rest[s] == 0) continue;
        state->support[s] = state->members[state->cursor[s]];
        state->supports[state->support[s]]++;
    }
    state->work += state->member_from[m] * (uint64_t)2 + state->n;
}

static void note(onv_search_state *state, uint32_t index, uint32_t support, uint64_t old)
{
    onv_undo undo = {index, support, old};
    if (!onv_vec_push(&state->trail, undo)) state->out_of_memory = true;
}

void onv_state_block(onv_search_state *state, uint32_t row, uint32_t blocker)
{
    state->next_blocked[row] = state->blocked[blocker];
    state->blocked[blocker] = row;
}

static void loosen_blocked(onv_search_state *state, uint32_t blocker)
{
    uint32_t row = state->blocked[blocker];
    state->blocked[blocker] = UINT32_MAX;
    for (; row != UINT32_MAX; row = state->next_blocked[row]) state->loose[state->n_loose++] = row;
}

/* The row was raised or placed: the sections that it supported need a new look at their floor. */
static void mark_changed(onv_search_state *state, uint32_t row)
{
    uint32_t left = state->supports[row], s = state->part->lo[row];
    for (; left > 0; s++) {
        if (state->support[s] != row) continue;
        left--;
        if (state->is_stale[s]) continue;
        state->is_stale[s] = true;
        state->stale[state->n_stale++] = s;
    }
    state->work += (s - state->part->lo[row]) / 4;
    loosen_blocked(state, row);
}

void onv_state_raise(onv_search_state *state, uint32_t row, uint64_t least)
{
    uint64_t old = state->least[row];
    note(state, row, 0, old);
    state->least[row] = least;
    if (least > state->capacity - state->part->size[row]) state->dead_at = state->part->lo[row];
    mark_changed(state, row);
}

void onv_state_place(onv_search_state *state, uint32_t row)
{
    const onv_part *part = state->part;
    uint64_t offset = state->least[row], size = part->size[row];
    note(state, row, 0, offset);
    state->offset[row] = offset;
    state->least[row] = ONV_PLACED;
    for (uint32_t s = part->lo[row]; s < part->hi[row]; s++) state->rest[s] -= size;
    for (uint32_t s = part->lo[row]; s + 1 < part->hi[row]; s++) state->through[s]--;
    mark_changed(state, row);
    uint32_t end = state->near_from[row + 1];
    for (uint32_t i = state->near_from[row]; i < end; i++)
        if (state->least[state->near[i]] < offset + size)
            onv_state_raise(state, state->near[i], offset + size);
    state->work += end - state->near_from[row] + (part->hi[row] - part->lo[row]);
}

static void set_support(onv_search_state *state, uint32_t section, uint32_t row)
{
    state->supports[state->support[section]]--;
    state->supports[row]++;
    state->support[section] = row;
}

/* Finds the floor of a section and a row that supports it. Floors only rise, so a row at the old
 * floor ends the search. A support that was found for the same floor stays one when changes are
 * undone, so only changes of the floor go on the trail. */
static uint64_t find_floor(onv_search_state *state, uint32_t section)
{
    uint32_t from = state->member_from[section], end = state->member_from[section + 1];
    uint32_t start = state->cursor[section], at = start;
    uint64_t floor = ONV_PLACED, old = state->floor[section];
    uint32_t support = state->support[section];
    do {
        uint32_t row = state->members[at];
        uint64_t least = state->least[row];
        if (least < floor) {
            floor = least;
            support = row;
            state->cursor[section] = at;
            if (least == old) break;
        }
        if (++at == end) at = from;
    } while (at != start);
    state->work += at > start ? at - start : end - from - (start - at);
    set_support(state, section, support);
    return floor;
}

bool onv_state_settle(onv_search_state *state)
{
    bool alive = state->dead_at == UINT32_MAX;
    if (!alive) state->weight[state->dead_at]++;
    state->dead_at = UINT32_MAX;
    for (uint32_t i = 0; i < state->n_stale; i++) {
        uint32_t s = state->stale[i];
        state->is_stale[s] = false;
        if (!alive) continue;
        uint32_t support = state->support[s];
        uint64_t floor = find_floor(state, s);
        if (floor == state->floor[s]) continue;
        note(state, state->n + s, support, state->floor[s]);
        state->floor[s] = floor;
        if (floor == ONV_PLACED || floor + state->rest[s] <= state->capacity) continue;
        alive = false;
        state->weight[s]++;
    }
    state->n_stale = 0;
    return alive && !state->out_of_memory;
}

void onv_state_undo(onv_search_state *state, size_t mark)
{
    const onv_part *part = state->part;
    while (state->trail.count > mark) {
        onv_undo undo = state->trail.at[--state->trail.count];
        if (undo.index >= state->n) {
            state->floor[undo.index - state->n] = undo.old;
            set_support(state, undo.index - state->n, undo.support);
            continue;
        }
        uint32_t row = undo.index;
        state->work += (part->hi[row] - part->lo[row]) / 4;
        bool was_placed = state->least[row] == ONV_PLACED;
        state->least[row] = undo.old;
        if (!was_placed) continue;
        if (state->at_rest[row]) state->loose[state->n_loose++] = row;
        state->at_rest[row] = false;
        for (uint32_t s = part->lo[row]; s < part->hi[row]; s++) state->rest[s] += part->size[row];
        for (uint32_t s = part->lo[row]; s + 1 < part->hi[row]; s++) state->through[s]++;
    }
}
