#include "ckpt/tape_builder.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* --- Storages ---------------------------------------------------------------------------------- */

static void find_uses(onv_tape_builder *b)
{
    memset(b->made_by, 0xff, b->n_storages * sizeof *b->made_by);
    for (uint32_t i = 0; i < b->n_ops; i++) {
        const onv_eager_op *op = &b->eager->ops.at[i];
        for (uint32_t k = 0; k < op->n_in; k++)
            b->last_read[onv_tape_storage_of(b, op->in[k].tensor)] = i;
        for (uint32_t k = 0; k < op->n_saved; k++) {
            b->last_read[op->saved[k]] = i;
            b->is_saved[op->saved[k]] = true;
        }
        for (uint32_t k = 0; k < op->n_out; k++) {
            uint32_t storage = onv_tape_storage_of(b, op->out[k]);
            if (b->made_by[storage] == ONV_NO_OP_OF_TAPE) b->made_by[storage] = i;
            b->last_read[storage] = i; /* nobody may read it */
        }
    }
}

/* --- What is overwritten ----------------------------------------------------------------------- */

/* The storage of the copy that the operation keeps of what it overwrites whole; ONV_NO_OP_OF_TAPE: none. */
static uint32_t copied_by(const onv_eager *eager, const onv_eager_op *op)
{
    if (!op->in_place || !op->extras_first || op->n_out != 1) return ONV_NO_OP_OF_TAPE;
    uint64_t bytes = eager->storages.at[eager->tensors.at[op->out[0]].storage].bytes;
    for (uint32_t k = 0; k < op->n_saved; k++) {
        const onv_eager_storage *extra = &eager->storages.at[op->saved[k]];
        if (extra->kind == ONV_STORAGE_EXTRA && extra->bytes == bytes) return op->saved[k];
    }
    return ONV_NO_OP_OF_TAPE;
}

/* The tape where such operations keep what came in, and the copy is their result: as much is there at any time, and a segment
 * that ends before one does not seem to hold what is over by then. Tensors stand in the order in which they were made. NULL: no
 * memory. */
static const onv_eager *overwrite_nothing(const onv_eager *tape, onv_arena *arena)
{
    onv_eager *made = onv_arena_copy(arena, tape, sizeof *tape);
    uint32_t *now = ONV_ARENA_ARRAY(arena, uint32_t, tape->storages.count), tensor = 0;
    if (made == NULL || now == NULL) return NULL;
    made->tensors.at =
        onv_arena_copy(arena, tape->tensors.at, tape->tensors.count * sizeof *made->tensors.at);
    made->storages.at =
        onv_arena_copy(arena, tape->storages.at, tape->storages.count * sizeof *made->storages.at);
    made->ops.at = onv_arena_copy(arena, tape->ops.at, tape->ops.count * sizeof *made->ops.at);
    for (uint32_t s = 0; s < tape->storages.count; s++) now[s] = s;
    for (size_t i = 0; i < tape->ops.count && !arena->failed; i++) {
        onv_eager_op *op = &made->ops.at[i];
        uint32_t extra = copied_by(tape, op);
        uint32_t *saved = onv_arena_copy(arena, op->saved, op->n_saved * sizeof *saved);
        uint32_t in = extra != ONV_NO_OP_OF_TAPE ? tape->tensors.at[op->out[0]].storage : 0;
        for (uint32_t k = 0; k < op->n_saved && saved != NULL; k++)
            saved[k] = now[saved[k] == extra ? in : saved[k]];
        op->saved = saved;
        if (extra == ONV_NO_OP_OF_TAPE) continue;
        for (; tensor < op->out[0]; tensor++)
            made->tensors.at[tensor].storage = now[tape->tensors.at[tensor].storage];
        made->storages.at[extra] = tape->storages.at[in];
        made->storages.at[now[in]].is_output = false;
        now[in] = extra;
    }
    for (; tensor < tape->tensors.count && !arena->failed; tensor++)
        made->tensors.at[tensor].storage = now[tape->tensors.at[tensor].storage];
    return arena->failed ? NULL : made;
}

/* --- Costs ------------------------------------------------------------------------------------- */

enum { MAC_BITS = 40, BYTE_BITS = 20, MAC_UNIT_BITS = 12 };

/* All together stays below 2^53, whatever the model: what matters are proportions. */
static void find_costs(onv_tape_builder *b)
{
    uint64_t macs = 0, bytes = 0;
    uint32_t mac_shift = 0, byte_shift = 0;
    for (uint32_t i = 0; i < b->n_ops; i++) {
        const onv_eager_op *op = &b->eager->ops.at[i];
        macs = onv_u64_plus(macs, op->macs);
        for (uint32_t k = 0; k < op->n_out; k++)
            bytes = onv_u64_plus(bytes, b->eager->tensors.at[op->out[k]].bytes);
    }
    while (macs >> mac_shift >= UINT64_C(1) << MAC_BITS) mac_shift++;
    while (bytes >> byte_shift >= UINT64_C(1) << BYTE_BITS) byte_shift++;
    for (uint32_t i = 0; i < b->n_ops; i++) {
        const onv_eager_op *op = &b->eager->ops.at[i];
        b->cost[i] = op->macs >> mac_shift << MAC_UNIT_BITS;
        for (uint32_t k = 0; k < op->n_out; k++)
            b->cost[i] += b->eager->tensors.at[op->out[k]].bytes >> byte_shift;
        b->total_cost += b->cost[i];
    }
}

/* Kept results need no more runs, nor those that they overwrite. */
static void hold(onv_tape_builder *b, const uint32_t *kept_ops, uint32_t n_kept_ops)
{
    for (uint32_t k = 0; k < n_kept_ops; k++) {
        const onv_eager_op *op = &b->eager->ops.at[kept_ops[k]];
        b->cost[kept_ops[k]] = 0;
        for (uint32_t j = 0; j < op->n_out; j++) {
            uint32_t s = onv_tape_storage_of(b, op->out[j]);
            if (!onv_tape_is_activation(b, s) || b->made_by[s] == ONV_NO_OP_OF_TAPE) continue;
            b->is_held[s] = true;
            b->cost[b->made_by[s]] = 0;
        }
        for (uint32_t j = 0; j < op->n_saved; j++)
            if (b->eager->storages.at[op->saved[j]].kind == ONV_STORAGE_EXTRA)
                b->is_held[op->saved[j]] = true;
    }
}

/* --- The chain --------------------------------------------------------------------------------- */

static bool made_in(const onv_tape_builder *b, uint32_t storage, uint32_t unit)
{
    return b->made_by[storage] != ONV_NO_OP_OF_TAPE && b->unit_of[b->made_by[storage]] == unit;
}

/* Whether the operation saves what it makes itself: then it must run for that. */
static bool saves_own(const onv_tape_builder *b, const onv_eager_op *op)
{
    for (uint32_t k = 0; k < op->n_saved; k++)
        if (b->eager->storages.at[op->saved[k]].kind == ONV_STORAGE_EXTRA) return true;
    for (uint32_t k = 0; k < op->n_out; k++)
        if (onv_op_saves(op, onv_tape_storage_of(b, op->out[k]))) return true;
    return false;
}

static void find_unit_costs(const onv_tape_builder *b, uint32_t u, onv_chain_unit *unit)
{
    for (uint32_t i = b->first_op[u]; i < b->first_op[u + 1]; i++) {
        const onv_eager_op *op = &b->eager->ops.at[i];
        if (onv_tape_keeps(b, op))
            unit->last_cost = unit->cost + (saves_own(b, op) ? b->cost[i] : 0);
        unit->cost += b->cost[i];
    }
}

/* What operation i is the first of its unit to keep, in all, and of that what nobody else reads. */
static uint64_t keep_new(onv_tape_builder *b, uint32_t u, uint32_t i, uint64_t *extra,
                         onv_chain_unit *unit)
{
    const onv_eager_op *op = &b->eager->ops.at[i];
    uint64_t kept = 0;
    for (uint32_t k = 0; k < op->n_saved; k++) {
        uint32_t s = op->saved[k];
        uint64_t bytes = b->eager->storages.at[s].bytes;
        bool own = onv_tape_is_own(b, s);
        if (b->is_kept[s] || (!own && !(onv_tape_is_activation(b, s) && made_in(b, s, u))))
            continue;
        b->is_kept[s] = true;
        kept += bytes;
        if (own) *extra += bytes;
        if (own || b->unit_of[b->last_read[s]] == u) unit->own_bytes += bytes;
    }
    return kept;
}

/* What goes after operation i: made in the unit, read no more, and kept by nobody, where any keep. */
static uint64_t drop_dead(onv_tape_builder *b, uint32_t u, uint32_t i, bool keeping)
{
    const onv_eager_op *op = &b->eager->ops.at[i];
    bool *is_gone = keeping ? b->is_gone : b->is_past;
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < op->n_in + op->n_out; k++) {
        uint32_t s =
            onv_tape_storage_of(b, k < op->n_in ? op->in[k].tensor : op->out[k - op->n_in]);
        if (!onv_tape_is_activation(b, s) || !made_in(b, s, u) || b->last_read[s] != i) continue;
        if (is_gone[s] || (keeping && b->is_kept[s])) continue;
        is_gone[s] = true;
        bytes += b->eager->storages.at[s].bytes;
    }
    return bytes;
}

static uint64_t made_bytes(const onv_tape_builder *b, uint32_t i)
{
    const onv_eager_op *op = &b->eager->ops.at[i];
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < op->n_out; k++) {
        uint32_t s = onv_tape_storage_of(b, op->out[k]);
        if (onv_tape_is_activation(b, s) && b->made_by[s] == i)
            bytes += b->eager->storages.at[s].bytes;
    }
    return bytes;
}

/* While the unit runs and keeps nothing: what operations make for their backward goes at once. */
static uint64_t passing_bytes(onv_tape_builder *b, uint32_t u)
{
    uint64_t now = 0, most = 0;
    for (uint32_t i = b->first_op[u]; i < b->first_op[u + 1]; i++) {
        const onv_eager_op *op = &b->eager->ops.at[i];
        uint64_t extra = op->forward_temp_bytes;
        for (uint32_t k = 0; k < op->n_saved; k++)
            if (onv_tape_is_own(b, op->saved[k]))
                extra += b->eager->storages.at[op->saved[k]].bytes;
        now += made_bytes(b, i);
        most = max_u64(most, now + extra);
        now -= drop_dead(b, u, i, false);
    }
    return most;
}

/* What is held while each operation of a unit runs, and what its backward finds: all that was kept
 * up to it. */
static void find_unit_bytes(onv_tape_builder *b, uint32_t u, onv_chain_unit *unit)
{
    uint64_t now = 0, kept = 0;
    unit->passing_bytes = passing_bytes(b, u);
    for (uint32_t i = b->first_op[u]; i < b->first_op[u + 1]; i++) {
        const onv_eager_op *op = &b->eager->ops.at[i];
        if (onv_tape_keeps(b, op)) unit->last_bytes = unit->forward_bytes;
        now += made_bytes(b, i);
        kept += keep_new(b, u, i, &now, unit);
        unit->forward_bytes = max_u64(unit->forward_bytes, now + op->forward_temp_bytes);
        if (saves_own(b, op)) unit->last_bytes = unit->forward_bytes;
        now -= drop_dead(b, u, i, true);
        if (b->beside->goes_back[i])
            unit->backward_bytes =
                max_u64(unit->backward_bytes, b->beside->backward[i] + kept + b->outputs);
    }
}

static void forbid_starts(const onv_tape_builder *b, onv_chain_unit *units)
{
    for (uint32_t u = 0; u < b->n_units; u++)
        units[u].no_start = !onv_tape_may_begin(b, b->first_op[u]);
}

/* Of what the unit makes and the plan keeps. */
static uint64_t held_bytes(const onv_tape_builder *b, uint32_t u)
{
    uint64_t bytes = 0;
    for (uint32_t i = b->first_op[u]; i < b->first_op[u + 1]; i++) {
        const onv_eager_op *op = &b->eager->ops.at[i];
        for (uint32_t k = 0; k < op->n_out; k++) {
            uint32_t s = onv_tape_storage_of(b, op->out[k]);
            if (b->is_held[s] && b->made_by[s] == i) bytes += b->eager->storages.at[s].bytes;
        }
        for (uint32_t k = 0; k < op->n_saved; k++)
            if (b->is_held[op->saved[k]] && b->made_by[op->saved[k]] == ONV_NO_OP_OF_TAPE)
                bytes += b->eager->storages.at[op->saved[k]].bytes;
    }
    return bytes;
}

static onv_status make_units(onv_tape_builder *b, onv_chain *chain, onv_error *err)
{
    onv_chain_unit *units = ONV_ARENA_ARRAY(b->arena, onv_chain_unit, b->n_units);
    uint64_t *turn = ONV_ARENA_ARRAY(b->arena, uint64_t, b->n_units + 1), held = 0;
    if (units == NULL || turn == NULL) return onv_fail_memory(err);
    for (uint32_t u = 0; u < b->n_units; u++) {
        find_unit_costs(b, u, &units[u]);
        find_unit_bytes(b, u, &units[u]);
        uint32_t i = b->first_op[u];
        while (i > 0 && !b->beside->goes_back[i - 1]) i--;
        turn[u] = b->outputs + (i > 0 ? b->beside->carried[i - 1] : 0) + held;
        held += held_bytes(b, u);
        units[u].backward_bytes += held;
    }
    turn[b->n_units] = b->outputs + b->beside->turn + held;
    chain->max_extra_cost = ONV_TAPE_MAX_RERUNS * b->total_cost;
    /* Nothing is held before the first unit: this bounds all plans. */
    if (b->n_units > 0)
        units[0].backward_bytes = max_u64(units[0].backward_bytes, b->beside->optimizer);
    forbid_starts(b, units);
    chain->units = b->units = units;
    chain->n_units = b->n_units;
    chain->turn_bytes = turn;
    return ONV_OK;
}

/* --- Its tensors ------------------------------------------------------------------------------- */

static bool skips(const onv_tape_builder *b, uint32_t storage)
{
    return onv_tape_is_activation(b, storage) && b->made_by[storage] != ONV_NO_OP_OF_TAPE &&
           b->unit_of[b->last_read[storage]] > b->unit_of[b->made_by[storage]];
}

typedef struct tensor_maker {
    onv_chain_tensor *tensors;
    onv_chain_reader **readers; /* by tensor */
    uint32_t *tensor_of;        /* by storage, if it skips */
} tensor_maker;

static void read_in(const onv_tape_builder *b, tensor_maker *m, uint32_t storage, uint32_t unit,
                    bool saved)
{
    if (!skips(b, storage)) return;
    onv_chain_tensor *v = &m->tensors[m->tensor_of[storage]];
    onv_chain_reader *readers = m->readers[m->tensor_of[storage]];
    if (v->maker == unit) {
        v->saved_by_maker |= saved;
        return;
    }
    if (v->n_readers == 0 || readers[v->n_readers - 1].unit != unit)
        readers[v->n_readers++] = (onv_chain_reader){.unit = unit};
    readers[v->n_readers - 1].saves |= saved;
}

/* Tensors in the order in which they are made, with room for the readers of each. */
static onv_status place_tensors(onv_tape_builder *b, tensor_maker *m, uint32_t *n_tensors,
                                onv_error *err)
{
    uint32_t *n_uses = ONV_ARENA_ARRAY(b->arena, uint32_t, b->n_storages);
    uint32_t n = 0, n_readers = 0;
    if (n_uses == NULL) return onv_fail_memory(err);
    for (uint32_t i = 0; i < b->n_ops; i++) {
        const onv_eager_op *op = &b->eager->ops.at[i];
        for (uint32_t k = 0; k < op->n_in; k++) n_uses[onv_tape_storage_of(b, op->in[k].tensor)]++;
        for (uint32_t k = 0; k < op->n_saved; k++) n_uses[op->saved[k]]++;
        n_readers += op->n_in + op->n_saved;
    }
    m->tensor_of = ONV_ARENA_ARRAY(b->arena, uint32_t, b->n_storages);
    m->tensors = ONV_ARENA_ARRAY(b->arena, onv_chain_tensor, b->n_storages);
    m->readers = ONV_ARENA_ARRAY(b->arena, onv_chain_reader *, b->n_storages);
    onv_chain_reader *room = ONV_ARENA_ARRAY(b->arena, onv_chain_reader, n_readers);
    if (m->tensor_of == NULL || m->tensors == NULL || m->readers == NULL || room == NULL)
        return onv_fail_memory(err);
    for (uint32_t i = 0; i < b->n_ops; i++) {
        const onv_eager_op *op = &b->eager->ops.at[i];
        for (uint32_t k = 0; k < op->n_out; k++) {
            uint32_t s = onv_tape_storage_of(b, op->out[k]);
            if (b->made_by[s] != i || !skips(b, s) || b->is_placed[s]) continue;
            b->is_placed[s] = true;
            m->tensor_of[s] = n;
            m->tensors[n] = (onv_chain_tensor){
                .bytes = b->eager->storages.at[s].bytes, .maker = b->unit_of[i], .readers = room};
            m->readers[n++] = room;
            room += n_uses[s];
        }
    }
    *n_tensors = n;
    return ONV_OK;
}

/* Where plans are pruned, units run again for readers alone. */
static void find_first_readers(onv_tape_builder *b, const onv_chain *chain)
{
    for (uint32_t u = 0; u < b->n_units; u++) b->units[u].reader_after = b->n_units;
    for (uint32_t i = 0; i < chain->n_tensors; i++) {
        const onv_chain_tensor *v = &chain->tensors[i];
        onv_chain_unit *unit = &b->units[v->maker];
        if (v->n_readers > 0 && v->readers[0].unit - v->maker < unit->reader_after)
            unit->reader_after = v->readers[0].unit - v->maker;
    }
}

static onv_status make_tensors(onv_tape_builder *b, onv_chain *chain, onv_error *err)
{
    tensor_maker m;
    ONV_TRY(place_tensors(b, &m, &chain->n_tensors, err));
    for (uint32_t i = 0; i < b->n_ops; i++) {
        const onv_eager_op *op = &b->eager->ops.at[i];
        for (uint32_t k = 0; k < op->n_in; k++)
            read_in(b, &m, onv_tape_storage_of(b, op->in[k].tensor), b->unit_of[i], false);
        for (uint32_t k = 0; k < op->n_saved; k++)
            read_in(b, &m, op->saved[k], b->unit_of[i], true);
    }
    chain->tensors = m.tensors;
    if (b->prunes) find_first_readers(b, chain);
    return ONV_OK;
}

/* --- All together ------------------------------------------------------------------------------ */

static onv_status init(onv_tape_builder *b, onv_error *err)
{
    b->n_ops = (uint32_t)b->eager->ops.count;
    b->n_storages = (uint32_t)b->eager->storages.count;
    b->made_by = ONV_ARENA_ARRAY(b->arena, uint32_t, b->n_storages);
    b->last_read = ONV_ARENA_ARRAY(b->arena, uint32_t, b->n_storages);
    b->is_saved = ONV_ARENA_ARRAY(b->arena, bool, b->n_storages);
    b->is_held = ONV_ARENA_ARRAY(b->arena, bool, b->n_storages);
    b->is_kept = ONV_ARENA_ARRAY(b->arena, bool, b->n_storages);
    b->is_gone = ONV_ARENA_ARRAY(b->arena, bool, b->n_storages);
    b->is_past = ONV_ARENA_ARRAY(b->arena, bool, b->n_storages);
    b->is_placed = ONV_ARENA_ARRAY(b->arena, bool, b->n_storages);
    b->cost = ONV_ARENA_ARRAY(b->arena, uint64_t, b->n_ops);
    b->unit_of = ONV_ARENA_ARRAY(b->arena, uint32_t, b->n_ops);
    if (b->arena->failed) return onv_fail_memory(err);
    for (uint32_t s = 0; s < b->n_storages; s++) {
        const onv_eager_storage *storage = &b->eager->storages.at[s];
        if (storage->is_output && !storage->on_host && storage->kind == ONV_STORAGE_ACTIVATION)
            b->outputs += storage->bytes;
    }
    return ONV_OK;
}

bool onv_tape_chain_segment(const onv_ckpt_problem *problem, const onv_tape_chain *tape,
                            onv_chain_range range, onv_tape_segment *segment)
{
    const onv_tape_builder b = {.eager = problem->eager};
    bool prunes = problem->prunes && problem->places->is_told, keeps_any = false;
    uint32_t first = tape->first_op[range.first], end = tape->first_op[range.end];
    while (end > first && !prunes && !onv_tape_keeps(&b, &b.eager->ops.at[end - 1])) end--;
    for (uint32_t i = first; i < end && !keeps_any; i++)
        keeps_any = onv_tape_keeps(&b, &b.eager->ops.at[i]);
    *segment = (onv_tape_segment){first, end - 1};
    return keeps_any;
}

onv_status onv_tape_chain_build(const onv_ckpt_problem *problem, const onv_tape_beside *beside,
                                const onv_tape_chain_options *options, onv_arena *arena,
                                onv_tape_chain *tape, onv_error *err)
{
    onv_tape_builder b = {.problem = problem, .beside = beside, .arena = arena};
    b.eager = overwrite_nothing(problem->eager, arena);
    if (b.eager == NULL) return onv_fail_memory(err);
    b.prunes = problem->prunes && problem->places->is_told;
    b.by_nodes = options->by_nodes;
    *tape = (onv_tape_chain){.chain = {.max_extra_cost = 0}};
    ONV_TRY(init(&b, err));
    find_uses(&b);
    find_costs(&b);
    hold(&b, options->kept_ops, options->n_kept_ops);
    ONV_TRY(onv_tape_find_units(&b, options->max_units, err));
    ONV_TRY(make_units(&b, &tape->chain, err));
    ONV_TRY(make_tensors(&b, &tape->chain, err));
    tape->first_op = b.first_op;
    tape->n_fine = b.n_fine;
    return ONV_OK;
}
