/* Loops that are run iteration by iteration.
 *
 * Where a state changes its shape by a factor (a Concat with itself), or where contents decide when
 * the loop ends (a counter), no type holds for every iteration and says enough. As long as all that
 * decides is known, running the few iterations gives the exact result. Where it is not known when
 * they end, but there are never more than a few, it gives the largest sizes that there can be. The
 * body then runs once more with sizes that hold for all iterations, so that its values are sized too.
 *
 * The work is bounded: few iterations, few such loops inside such loops, and a number of nodes for the
 * whole model (onv_op_unroll). */
#include "base/fail.h"
#include "ops/controlflow.h"

enum {
    MAX_ITERATIONS = 64,
    MAX_SURE = 4096, /* where contents say of each that it runs: a counter of tf2onnx */
    MAX_DEPTH = 4,   /* of such loops in such loops */
};

typedef struct unrolled {
    onv_loop *loop;
    onv_op_value *in, *out; /* of the iteration */
    onv_op_value *all;      /* n_states: a type that holds at the start of each iteration so far */
    uint32_t *varies;       /* n_states: bit i where dim i is not the same in all of them */
    onv_op_value *stacked;  /* n_out: the same for what the body gives */
    onv_dim most;           /* iterations, unknown where there is no limit */
    int64_t iterations;
    bool fixed; /* `most` iterations run, whatever the conditions say */
    bool exact; /* each iteration so far surely runs */
} unrolled;

static bool is_open(const onv_type *type)
{
    if (type->kind == ONV_TYPE_SEQUENCE) return !onv_dim_is_known(onv_type_elements(type).length);
    if (type->kind != ONV_TYPE_TENSOR) return false;
    for (int i = 0; i < type->rank; i++)
        if (!onv_dim_is_known(type->dims[i])) return true;
    return type->rank < 0;
}

static bool has_open_state(onv_op_ctx *c, const onv_loop *loop, onv_dim trips)
{
    for (uint32_t k = 0; k < loop->n_states; k++) {
        onv_op_value result = onv_loop_result(c, loop, k, trips);
        if (is_open(&result.type) && !is_open(&loop->initial[k].type)) return true;
    }
    return false;
}

/* Whether there is something to find out, and an end. */
static bool is_worthwhile(onv_op_ctx *c, const onv_loop *loop, onv_dim trips)
{
    if (c->unroll == NULL || c->unroll->depth >= MAX_DEPTH || c->unroll->nodes_left == 0)
        return false;
    onv_dim most = loop->most_trips;
    /* A limit that is there but not known may end the loop at any time. */
    bool limited = onv_op_has_in(c, 0) && !onv_dim_is_infinite(onv_op_in_scalar(c, 0));
    if (limited && !onv_dim_is_known(most)) return false;
    if (onv_dim_is_known(most) && (!onv_dim_is_const(most) || most.raw > MAX_ITERATIONS))
        return false;
    bool starts = onv_op_has_in(c, 1) && onv_dim_is(onv_op_in_scalar(c, 1), 1);
    if (starts && !onv_dim_is_const(trips)) return true;
    return onv_dim_is_known(most) && has_open_state(c, loop, trips);
}

static bool start(onv_op_ctx *c, unrolled *u)
{
    const onv_loop *loop = u->loop;
    u->in = onv_arena_copy(c->arena, loop->in, loop->n_in * sizeof *u->in);
    u->out = ONV_ARENA_ARRAY(c->arena, onv_op_value, loop->n_out);
    u->all = ONV_ARENA_ARRAY(c->arena, onv_op_value, loop->n_states);
    u->stacked = ONV_ARENA_ARRAY(c->arena, onv_op_value, loop->n_out);
    u->varies = ONV_ARENA_ARRAY(c->arena, uint32_t, loop->n_states);
    if (u->varies == NULL || u->in == NULL || u->out == NULL || u->all == NULL ||
        u->stacked == NULL)
        return false;
    for (uint32_t k = 0; k < loop->n_states; k++)
        u->in[loop->in_first + k] = u->all[k] = loop->initial[k];
    return true;
}

static bool are_alike(const onv_type *a, const onv_type *b)
{
    return a->kind == ONV_TYPE_TENSOR && b->kind == ONV_TYPE_TENSOR && a->dtype == b->dtype &&
           a->rank >= 0 && a->rank == b->rank;
}

/* Takes in a state at the start of an iteration. The dims of `all` are the largest so far. */
static onv_status widen_state(onv_op_ctx *c, onv_op_value *all, uint32_t *varies,
                              const onv_op_value *now)
{
    onv_dim dims[ONV_MAX_RANK];
    onv_type *type = &all->type;
    all->known = onv_known_merge(c, all->known, now->known);
    all->bound |= now->bound;
    if (type->kind == ONV_TYPE_SEQUENCE && onv_dim_is(onv_type_elements(type).length, 0) &&
        now->type.kind == ONV_TYPE_SEQUENCE) {
        *type = now->type;
        return ONV_OK;
    }
    if (!are_alike(type, &now->type)) return onv_type_merge(c, type, &now->type, type);
    for (int i = 0; i < type->rank; i++) {
        dims[i] = type->dims[i];
        if (onv_dim_same(dims[i], now->type.dims[i])) continue;
        *varies |= ONV_BIT(i);
        dims[i] = onv_dim_max(c->dims, onv_dim_substitute_bounds(c->dims, dims[i]),
                              onv_dim_substitute_bounds(c->dims, now->type.dims[i]));
    }
    *type = onv_type_tensor(c, (onv_dtype)type->dtype, dims, type->rank);
    return ONV_OK;
}

static onv_status take_stacked(onv_op_ctx *c, unrolled *u)
{
    for (uint32_t k = u->loop->out_first + u->loop->n_states; k < u->loop->n_out; k++) {
        if (u->iterations == 0)
            u->stacked[k] = u->out[k];
        else
            ONV_TRY(onv_type_merge(c, &u->stacked[k].type, &u->out[k].type, &u->stacked[k].type));
    }
    return ONV_OK;
}

/* One iteration. */
static onv_status iterate(onv_op_ctx *c, unrolled *u, bool *goes_on)
{
    onv_loop *loop = u->loop;
    u->in[0].known = onv_loop_number(c, onv_dim_const(u->iterations));
    ONV_TRY(c->run_subgraph(c, loop->body, u->in, loop->n_in, u->out, loop->n_out));
    ONV_TRY(take_stacked(c, u));
    u->iterations++;
    onv_dim next = u->fixed ? onv_dim_const(1) : onv_loop_next(c, u->out);
    *goes_on = !onv_dim_is(next, 0) && !onv_dim_is(u->most, u->iterations);
    if (!onv_dim_is_const(next) && *goes_on) u->exact = false;
    for (uint32_t k = 0; k < loop->n_states; k++) {
        onv_op_value *state = &u->in[loop->in_first + k];
        *state = u->out[loop->out_first + k];
        if (*goes_on) ONV_TRY(widen_state(c, &u->all[k], &u->varies[k], state));
    }
    return ONV_OK;
}

/* The value for every iteration: sizes that differ become symbols with the largest as their bound. */
static onv_op_value cover(onv_op_ctx *c, const onv_op_value *all, uint32_t varies)
{
    onv_dim dims[ONV_MAX_RANK];
    onv_op_value value = *all;
    if (varies == 0 || !onv_type_has_rank(&all->type)) return value;
    for (int i = 0; i < all->type.rank; i++) {
        dims[i] = all->type.dims[i];
        if ((varies & ONV_BIT(i)) != 0 && onv_dim_is_known(dims[i]))
            dims[i] = onv_dim_fresh_varying(c->dims, "carried", dims[i]);
    }
    value.type = onv_type_tensor(c, (onv_dtype)all->type.dtype, dims, all->type.rank);
    value.bound = true;
    value.known = NULL;
    return value;
}

/* Iterations until the end: false in *done where none is found. */
static onv_status run_all(onv_op_ctx *c, unrolled *u, bool *done)
{
    const onv_error before = *c->err;
    const uint64_t overflows = c->dims->overflows;
    bool goes_on = true;
    u->exact = u->fixed || onv_dim_is(onv_loop_condition(c), 1);
    while (goes_on && u->iterations < (u->exact ? MAX_SURE : MAX_ITERATIONS) &&
           c->unroll->nodes_left > 0) {
        if (!u->exact && !onv_dim_is_known(u->most)) return ONV_OK;
        onv_status status = iterate(c, u, &goes_on);
        bool may_not_run = status == ONV_ERR_MODEL || status == ONV_ERR_OVERFLOW;
        if (!u->exact && may_not_run) {
            *c->err = before;
            c->dims->overflows = overflows;
            return ONV_OK;
        }
        ONV_TRY(status);
    }
    *done = !goes_on;
    return ONV_OK;
}

/* The states while the body runs, and at the end. */
static onv_status set_states(onv_op_ctx *c, unrolled *u, onv_dim *trips)
{
    onv_loop *loop = u->loop;
    onv_op_value *final = u->in + loop->in_first;
    for (uint32_t k = 0; k < loop->n_states; k++)
        loop->in[loop->in_first + k] = cover(c, &u->all[k], u->varies[k]);
    loop->final = final;
    if (u->exact) {
        *trips = onv_dim_const(u->iterations);
        return ONV_OK;
    }
    for (uint32_t k = 0; k < loop->n_states; k++) {
        ONV_TRY(widen_state(c, &u->all[k], &u->varies[k], &final[k]));
        final[k] = cover(c, &u->all[k], u->varies[k]);
    }
    return ONV_OK;
}

onv_status onv_loop_unroll(onv_op_ctx *c, onv_loop *loop, onv_dim *trips)
{
    unrolled u = {.loop = loop, .most = loop->most_trips};
    u.fixed = onv_dim_is_const(*trips);
    if (u.fixed) u.most = *trips;
    bool done = false;
    if (!is_worthwhile(c, loop, *trips)) return ONV_OK;
    if (!start(c, &u)) return onv_fail_memory(c->err);
    c->unroll->depth++;
    onv_status status = run_all(c, &u, &done);
    c->unroll->depth--;
    ONV_TRY(status);
    if (done) ONV_TRY(set_states(c, &u, trips));
    /* The values of the body are those of all iterations again. */
    ONV_TRY(c->run_subgraph(c, loop->body, loop->in, loop->n_in, loop->out, loop->n_out));
    for (uint32_t k = loop->out_first + loop->n_states; done && k < loop->n_out; k++)
        loop->out[k] = u.stacked[k];
    return ONV_OK;
}
