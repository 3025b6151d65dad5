/* Bodies that run again and again: types that hold in every iteration.
 *
 * The body first runs with the initial types. A dim of a state that comes out different is replaced
 * by a symbol, and the body runs again to see how it depends on what went in:
 *
 *     n -> n + d          it grows by d: after t iterations it is initial + t * d
 *     n -> m, m <= bound  it is the initial size or at most that bound
 *     anything else       it is unknown
 *
 * Contents and whatever else a type holds are merged: what differs is forgotten. Each round forgets
 * something, and a limit on the rounds ends what would go on for long. */
#include "base/fail.h"
#include "ops/controlflow.h"

enum { MAX_ROUNDS = 8 };

typedef enum carried_kind {
    CARRIED_FIXED,   /* as it was at the start */
    CARRIED_PROBED,  /* `now` is a symbol that shows how it changes */
    CARRIED_GROWS,   /* each iteration adds `by` */
    CARRIED_BOUNDED, /* `now` is a symbol with a bound that holds for every iteration */
    CARRIED_OPEN,    /* unknown */
} carried_kind;

typedef struct carried_dim {
    carried_kind kind;
    bool deferred; /* it was probed twice */
    onv_dim initial, now, by;
} carried_dim;

/* A state: its dims (of a tensor), or its length (of a sequence). */
typedef struct onv_carried {
    int n_dims;
    carried_dim *dims;
} onv_carried;

static bool carry(onv_op_ctx *c, onv_carried *state, const onv_type *type)
{
    bool sequence = type->kind == ONV_TYPE_SEQUENCE;
    state->n_dims = sequence ? 1 : onv_type_has_rank(type) ? type->rank : 0;
    state->dims = ONV_ARENA_ARRAY(c->arena, carried_dim, (size_t)state->n_dims);
    for (int i = 0; state->dims != NULL && i < state->n_dims; i++) {
        onv_dim initial = sequence ? onv_type_elements(type).length : type->dims[i];
        carried_kind kind = onv_dim_is_known(initial) ? CARRIED_FIXED : CARRIED_OPEN;
        state->dims[i] = (carried_dim){kind, false, initial, initial, ONV_DIM_UNKNOWN};
    }
    return state->dims != NULL;
}

bool onv_loop_init(onv_op_ctx *c, onv_loop *loop)
{
    loop->first_symbol = c->dims->n_symbols;
    loop->in = ONV_ARENA_ARRAY(c->arena, onv_op_value, loop->n_in);
    loop->out = ONV_ARENA_ARRAY(c->arena, onv_op_value, loop->n_out);
    loop->carried = ONV_ARENA_ARRAY(c->arena, onv_carried, loop->n_states);
    loop->initial = ONV_ARENA_ARRAY(c->arena, onv_op_value, loop->n_states);
    return loop->in != NULL && loop->out != NULL && loop->carried != NULL && loop->initial != NULL;
}

/* --- One dim ----------------------------------------------------------------------------------- */

static void open_dim(carried_dim *d)
{
    d->kind = CARRIED_OPEN;
    d->now = ONV_DIM_UNKNOWN;
}

/* Whether an expression is the same in every iteration: it holds no symbol made since the loop was
 * begun, neither for a state nor by the body. */
static bool steady(onv_op_ctx *c, const onv_loop *loop, onv_dim d)
{
    if (!onv_dim_has_bound(c->dims, d)) return onv_dim_is_known(d);
    for (uint32_t i = loop->first_symbol; i < c->dims->n_symbols; i++)
        if (onv_dim_contains(c->dims, d, onv_dim_symbol_at(c->dims, i))) return false;
    return true;
}

static void probe_dim(onv_op_ctx *c, carried_dim *d)
{
    d->kind = CARRIED_PROBED;
    d->now = onv_dim_fresh_varying(c->dims, "carried", ONV_DIM_UNKNOWN);
}

static void bound_dim(onv_op_ctx *c, carried_dim *d, onv_dim given)
{
    onv_dim most = onv_dim_max(c->dims, onv_dim_substitute_bounds(c->dims, d->initial),
                               onv_dim_substitute_bounds(c->dims, given));
    open_dim(d);
    if (!onv_dim_is_known(most)) return;
    d->kind = CARRIED_BOUNDED;
    d->now = onv_dim_fresh_varying(c->dims, "carried", most);
}

/* The last iteration starts from initial + (most_trips - 1) * by. */
static void grow_dim(onv_op_ctx *c, const onv_loop *loop, carried_dim *d, onv_dim by)
{
    onv_dim zero = onv_dim_const(0), most = ONV_DIM_UNKNOWN;
    if (onv_dim_always_le(c->dims, by, zero)) {
        most = d->initial;
    } else if (onv_dim_always_le(c->dims, zero, by)) {
        onv_dim steps = onv_dim_add(c->dims, loop->most_trips, onv_dim_const(-1));
        steps = onv_dim_max(c->dims, zero, steps);
        most = onv_dim_add(c->dims, d->initial, onv_dim_mul(c->dims, steps, by));
    }
    d->kind = CARRIED_GROWS;
    d->by = by;
    d->now = onv_dim_fresh_varying(c->dims, "carried", onv_dim_substitute_bounds(c->dims, most));
}

/* What the body made of the dim; true where that is news. */
static bool update_dim(onv_op_ctx *c, const onv_loop *loop, carried_dim *d, onv_dim given)
{
    if (d->kind == CARRIED_OPEN || onv_dim_same(given, d->now)) return false;
    if (!onv_dim_is_known(given)) {
        open_dim(d);
        return true;
    }
    onv_dim most, probe = d->now;
    switch (d->kind) {
    case CARRIED_FIXED:
        open_dim(d);
        if (!steady(c, loop, given)) bound_dim(c, d, given);
        if (d->kind == CARRIED_OPEN) probe_dim(c, d);
        return true;
    case CARRIED_PROBED:
        most = onv_dim_sub(c->dims, given, probe);
        if (steady(c, loop, most)) {
            grow_dim(c, loop, d, most);
            return true;
        }
        bound_dim(c, d, given);
        /* It may depend on another dim that is being probed: that one has a bound next time. */
        if (d->kind == CARRIED_OPEN && !d->deferred) {
            d->kind = CARRIED_PROBED;
            d->now = probe;
            d->deferred = true;
        }
        return true;
    case CARRIED_GROWS:
        if (onv_dim_same(given, onv_dim_add(c->dims, d->now, d->by))) return false;
        break;
    default:
        most = onv_dim_substitute_bounds(c->dims, given);
        if (onv_dim_always_le(c->dims, most, onv_dim_substitute_bounds(c->dims, d->now)))
            return false;
        break;
    }
    open_dim(d);
    return true;
}

/* --- One state --------------------------------------------------------------------------------- */

/* The type with the dims replaced by those of the state. */
static onv_type with_dims(onv_op_ctx *c, const onv_type *type, const onv_dim *dims, int n)
{
    if (type->kind == ONV_TYPE_SEQUENCE) {
        const onv_elements of = onv_type_elements(type);
        return onv_type_sequence(c, of.type, onv_dim_same(dims[0], of.length) ? of.items : NULL,
                                 dims[0]);
    }
    if (!onv_type_has_rank(type) || type->rank != n) return *type;
    onv_type tensor = onv_type_tensor(c, (onv_dtype)type->dtype, dims, n);
    tensor.kind = type->kind;
    return tensor;
}

static onv_dim given_dim(const onv_type *type, int i)
{
    return type->kind == ONV_TYPE_SEQUENCE ? onv_type_elements(type).length : type->dims[i];
}

static bool comparable(const onv_type *a, const onv_type *b)
{
    if (a->kind != b->kind) return false;
    return a->kind == ONV_TYPE_SEQUENCE || (onv_type_has_rank(a) && a->rank == b->rank);
}

static bool has_bounds(onv_op_ctx *c, const onv_carried *state)
{
    for (int i = 0; i < state->n_dims; i++)
        if (onv_dim_has_bound(c->dims, state->dims[i].now)) return true;
    return false;
}

/* Takes in what the body gave for state k; *news where the body has to run again. */
static onv_status update_state(onv_op_ctx *c, onv_loop *loop, uint32_t k, bool *news)
{
    onv_carried *state = &loop->carried[k];
    onv_op_value *now = &loop->in[loop->in_first + k];
    const onv_op_value *given = &loop->out[loop->out_first + k];
    onv_dim dims[ONV_MAX_RANK];
    onv_type merged;
    bool by_dims = comparable(&now->type, &given->type);
    if (!by_dims) state->n_dims = 0;
    for (int i = 0; i < state->n_dims; i++) {
        if (update_dim(c, loop, &state->dims[i], given_dim(&given->type, i))) *news = true;
        dims[i] = state->dims[i].now;
    }
    /* With equal dims on both sides the merge sees to what else a type holds. */
    if (by_dims && state->n_dims > 0) {
        onv_type a = with_dims(c, &now->type, dims, state->n_dims);
        onv_type b = with_dims(c, &given->type, dims, state->n_dims);
        /* An empty sequence at the start says nothing of the elements. */
        if (now->type.kind == ONV_TYPE_SEQUENCE &&
            onv_dim_is(onv_type_elements(&now->type).length, 0))
            a = b;
        ONV_TRY(onv_type_merge(c, &a, &b, &merged));
    } else {
        ONV_TRY(onv_type_merge(c, &now->type, &given->type, &merged));
    }
    const onv_known *known = onv_known_merge(c, now->known, given->known);
    if (known != NULL && !onv_type_is_static(&merged)) known = NULL;
    if (!onv_type_same(&merged, &now->type) || known != now->known) *news = true;
    now->type = merged;
    now->known = known;
    now->bound = loop->initial[k].bound || has_bounds(c, state);
    return ONV_OK;
}

/* Gives up on what still changes: nothing but the element type stays. */
static void forget(onv_op_ctx *c, onv_loop *loop)
{
    for (uint32_t k = 0; k < loop->n_states; k++) {
        onv_op_value *now = &loop->in[loop->in_first + k];
        onv_type *type = &now->type;
        loop->carried[k].n_dims = 0;
        now->known = NULL;
        if (type->kind == ONV_TYPE_SEQUENCE)
            *type = onv_type_sequence(c, NULL, NULL, ONV_DIM_UNKNOWN);
        else if (onv_type_has_rank(type))
            *type = onv_type_tensor(c, (onv_dtype)type->dtype, NULL, -1);
    }
}

/* Of a body that surely runs once, and once only, what was there at first is all there is. */
static bool runs_once(onv_op_ctx *c, const onv_loop *loop)
{
    if (loop->out_first == 0) return false; /* a Scan: its states keep their shapes */
    bool starts = onv_dim_is(onv_loop_condition(c), 1);
    bool ends = onv_dim_is(onv_loop_next(c, loop->out), 0);
    bool may_start = onv_dim_always_lt(c->dims, onv_dim_const(0), loop->most_trips) ||
                     (!onv_op_has_in(c, 0) && !onv_dim_is_known(loop->most_trips));
    return starts && (onv_dim_is(loop->most_trips, 1) || (ends && may_start));
}

onv_status onv_loop_settle(onv_op_ctx *c, onv_loop *loop)
{
    bool news = true;
    for (uint32_t k = 0; k < loop->n_states; k++) {
        loop->initial[k] = loop->in[loop->in_first + k];
        if (!carry(c, &loop->carried[k], &loop->initial[k].type)) return onv_fail_memory(c->err);
    }
    for (int round = 0; news; round++) {
        news = false;
        ONV_TRY(c->run_subgraph(c, loop->body, loop->in, loop->n_in, loop->out, loop->n_out));
        if (round == 0 && runs_once(c, loop)) {
            loop->final = loop->out + loop->out_first;
            return ONV_OK;
        }
        if (round > MAX_ROUNDS) break;
        for (uint32_t k = 0; k < loop->n_states; k++) ONV_TRY(update_state(c, loop, k, &news));
        if (news && round == MAX_ROUNDS) forget(c, loop);
    }
    return ONV_OK;
}

static onv_dim final_dim(onv_op_ctx *c, const carried_dim *d, onv_dim trips)
{
    switch (d->kind) {
    case CARRIED_FIXED: return d->initial;
    case CARRIED_GROWS: return onv_dim_add(c->dims, d->initial, onv_dim_mul(c->dims, trips, d->by));
    case CARRIED_BOUNDED: return d->now;
    default: return ONV_DIM_UNKNOWN;
    }
}

onv_op_value onv_loop_result(onv_op_ctx *c, const onv_loop *loop, uint32_t k, onv_dim trips)
{
    const onv_carried *state = &loop->carried[k];
    const onv_op_value *given = &loop->out[loop->out_first + k];
    onv_op_value result = loop->in[loop->in_first + k];
    onv_dim dims[ONV_MAX_RANK];
    if (loop->final != NULL) return loop->final[k];
    if (onv_dim_is(trips, 0)) return loop->initial[k];
    result.bound = loop->initial[k].bound;
    bool ran = onv_dim_always_lt(c->dims, onv_dim_const(0), trips);
    for (int i = 0; i < state->n_dims; i++) {
        dims[i] = final_dim(c, &state->dims[i], trips);
        /* After at least one iteration a dim that does not grow is what the body gives. */
        if (ran && state->dims[i].kind == CARRIED_BOUNDED && comparable(&result.type, &given->type))
            dims[i] = given_dim(&given->type, i);
    }
    if (state->n_dims > 0) result.type = with_dims(c, &result.type, dims, state->n_dims);
    /* An optional at the start that the body replaces by what it may hold. */
    const onv_type *held = onv_type_elements(&result.type).type;
    if (result.type.kind == ONV_TYPE_OPTIONAL && given->type.kind != ONV_TYPE_OPTIONAL &&
        held != NULL)
        result.type = *held;
    return result;
}
