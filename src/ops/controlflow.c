/* If, Loop, Scan. */
#include "ops/controlflow.h"

#include "base/fail.h"
#include "ops/rules.h"

/* --- If ---------------------------------------------------------------------------------------- */

static onv_status run_branch(onv_op_ctx *c, const char *name, onv_op_value *out)
{
    onv_graph_id body;
    uint32_t n_in, n_out;
    ONV_TRY(onv_op_body(c, name, &body, &n_in, &n_out));
    if (n_in != 0) return onv_op_fail(c, "%s has inputs of its own", name);
    if (n_out != c->n_out)
        return onv_op_fail(c, "%s gives %u values for %u outputs", name, n_out, c->n_out);
    return c->run_subgraph(c, body, NULL, 0, out, n_out);
}

static void set_runs(onv_op_ctx *c, const char *name, bool runs)
{
    onv_graph_id body;
    uint32_t n_in, n_out;
    if (onv_op_body(c, name, &body, &n_in, &n_out) == ONV_OK)
        onv_model_graph(c->model, body)->never_runs = !runs;
}

/* A branch that contradicts the shapes cannot be taken: *why says how, NULL where it fits. */
static onv_status try_branch(onv_op_ctx *c, const char *name, onv_op_value *out, const char **why)
{
    onv_graph_id body;
    uint32_t n_in, n_out;
    *why = NULL;
    ONV_TRY(onv_op_body(c, name, &body, &n_in, &n_out));
    /* An If that is malformed itself is not a branch that does not fit. */
    if (c->branches_must_fit || n_in != 0 || n_out != c->n_out) return run_branch(c, name, out);
    return onv_op_try_body(c, body, NULL, 0, out, n_out, why);
}

static void warn_impossible(onv_op_ctx *c, const char *name, const char *why)
{
    const char *deciders = c->deciders != NULL ? c->deciders(c, 0) : NULL;
    onv_op_warn(c, "impossible-branch",
                "%s cannot run with these shapes (%s); only the other branch is counted%s%s", name,
                why, deciders != NULL ? "; " : "", deciders != NULL ? deciders : "");
}

/* Runs both branches; where one of them is impossible, both arrays are those of the other. */
static onv_status run_alternatives(onv_op_ctx *c, onv_op_value **then, onv_op_value **otherwise)
{
    const char *then_why, *else_why;
    ONV_TRY(try_branch(c, "then_branch", *then, &then_why));
    ONV_TRY(try_branch(c, "else_branch", *otherwise, &else_why));
    if (then_why != NULL && else_why != NULL)
        return onv_op_fail(c,
                           "both branches contradict the shapes; then_branch: %s; else_branch: %s",
                           then_why, else_why);
    set_runs(c, "then_branch", then_why == NULL);
    set_runs(c, "else_branch", else_why == NULL);
    if (then_why != NULL) {
        warn_impossible(c, "then_branch", then_why);
        *then = *otherwise;
    } else if (else_why != NULL) {
        warn_impossible(c, "else_branch", else_why);
        *otherwise = *then;
    }
    return ONV_OK;
}

static onv_status infer_if(onv_op_ctx *c)
{
    onv_dim condition = onv_op_in_scalar(c, 0);
    onv_op_value *then = ONV_ARENA_ARRAY(c->arena, onv_op_value, c->n_out);
    onv_op_value *otherwise = ONV_ARENA_ARRAY(c->arena, onv_op_value, c->n_out);
    if (then == NULL || otherwise == NULL) return onv_fail_memory(c->err);
    if (onv_dim_is_const(condition)) {
        bool holds = condition.raw != 0;
        ONV_TRY(run_branch(c, holds ? "then_branch" : "else_branch", then));
        set_runs(c, "then_branch", holds);
        set_runs(c, "else_branch", !holds);
        otherwise = then;
    } else {
        ONV_TRY(run_alternatives(c, &then, &otherwise));
    }
    for (uint32_t k = 0; k < c->n_out; k++) {
        if (!onv_op_has_out(c, k)) continue;
        ONV_TRY(onv_type_merge(c, &then[k].type, &otherwise[k].type, &c->out[k].type));
        c->out[k].known = onv_known_merge(c, then[k].known, otherwise[k].known);
        c->out[k].bound = then[k].bound || otherwise[k].bound;
    }
    return ONV_OK;
}

/* --- Common to Loop and Scan ------------------------------------------------------------------- */

static onv_status set_results(onv_op_ctx *c, const onv_loop *loop, onv_dim trips)
{
    uint32_t stacked = loop->n_out - loop->out_first - loop->n_states;
    if (c->n_out > loop->n_states + stacked)
        return onv_op_fail(c, "the body gives %u values for %u outputs", loop->n_states + stacked,
                           c->n_out);
    for (uint32_t k = 0; k < loop->n_states && k < c->n_out; k++)
        if (onv_op_has_out(c, k)) c->out[k] = onv_loop_result(c, loop, k, trips);
    return ONV_OK;
}

/* Output k: `element`, once per iteration along a new axis. */
static onv_status stack(onv_op_ctx *c, uint32_t k, const onv_op_value *element, onv_dim trips,
                        int64_t axis)
{
    onv_dim dims[ONV_MAX_RANK];
    const onv_type *type = &element->type;
    int rank = onv_type_has_rank(type) ? type->rank : -1, at;
    if (rank >= 0) {
        ONV_TRY(onv_tensor_check_rank(c, rank + 1));
        ONV_TRY(onv_op_axis(c, axis, rank + 1, &at));
        for (int i = 0, from = 0; i <= rank; i++) dims[i] = i == at ? trips : type->dims[from++];
        rank++;
    }
    onv_op_set_out(c, k, (onv_dtype)type->dtype, dims, rank);
    if (onv_op_has_out(c, k)) c->out[k].bound = element->bound;
    return ONV_OK;
}

static const onv_known *one_element(onv_op_ctx *c, onv_dtype dtype, int rank, onv_dim value)
{
    onv_dim ones[ONV_MAX_RANK];
    for (int i = 0; i < rank; i++) ones[i] = onv_dim_const(1);
    onv_type type = {.dtype = (uint8_t)dtype, .rank = (int16_t)rank, .dims = ones};
    onv_known *known = onv_known_new(c->arena, &type);
    if (known != NULL) known->elems[0] = onv_scalar_int(value);
    return known;
}

const onv_known *onv_loop_number(onv_op_ctx *c, onv_dim iteration)
{
    return one_element(c, ONV_INT64, 0, iteration);
}

/* --- Loop -------------------------------------------------------------------------------------- */

/* M, unknown where it is no limit. */
static onv_dim limit_of(onv_op_ctx *c)
{
    onv_dim m = onv_op_has_in(c, 0) ? onv_op_in_scalar(c, 0) : ONV_DIM_UNKNOWN;
    return onv_dim_is_infinite(m) ? ONV_DIM_UNKNOWN : m;
}

/* The most iterations that M, or who names them, allows; unknown where there is no limit. */
static onv_dim most_trips(onv_op_ctx *c)
{
    onv_dim m = limit_of(c), given = onv_dim_given_size(c->dims, "trips");
    if (!onv_dim_is_known(m)) return given;
    m = onv_dim_max(c->dims, onv_dim_const(0), m);
    return onv_dim_is_known(given) ? onv_dim_min(c->dims, m, given) : m;
}

/* The iteration number and the condition, as the body gets them: in an iteration that runs, the
 * condition is true. */
static void set_loop_inputs(onv_op_ctx *c, onv_loop *loop)
{
    if (loop->n_in > 0) {
        onv_op_value *number = &loop->in[0];
        number->type = onv_type_tensor(c, ONV_INT64, NULL, 0);
        onv_dim last = onv_dim_add(c->dims, loop->most_trips, onv_dim_const(-1));
        onv_dim most = onv_dim_substitute_bounds(c->dims, last);
        if (onv_dim_is(last, 0))
            number->known = onv_loop_number(c, last);
        else if (onv_dim_is_known(most) && !onv_dim_is(most, -1))
            number->known = onv_loop_number(c, onv_dim_fresh_varying(c->dims, "iteration", most));
    }
    if (loop->n_in > 1) {
        onv_op_value *condition = &loop->in[1];
        bool given = onv_op_has_in(c, 1) && onv_type_has_rank(&c->in[1].type);
        condition->type = given ? c->in[1].type : onv_type_tensor(c, ONV_BOOL, NULL, 0);
        if (onv_dim_is(onv_type_elems(c->dims, &condition->type), 1))
            condition->known = one_element(c, ONV_BOOL, condition->type.rank, onv_dim_const(1));
    }
}

onv_dim onv_loop_condition(onv_op_ctx *c)
{
    return onv_op_has_in(c, 1) ? onv_op_in_scalar(c, 1) : onv_dim_const(1);
}

onv_dim onv_loop_next(onv_op_ctx *c, const onv_op_value *out)
{
    if (!onv_op_has_in(c, 1)) return onv_dim_const(1); /* what the body gives does not count */
    const onv_known *known = out[0].known;
    return known != NULL && known->count == 1 ? known->elems[0].i : ONV_DIM_UNKNOWN;
}

/* How often the body runs, from M, the condition given and what the body makes of it. */
static onv_dim count_trips(onv_op_ctx *c, const onv_loop *loop)
{
    onv_dim first = onv_loop_condition(c), next = onv_loop_next(c, loop->out);
    if (onv_dim_is(first, 0)) return first;
    bool starts = onv_dim_is(first, 1);
    if (starts && onv_dim_is(next, 1) && onv_dim_is_known(limit_of(c))) return loop->most_trips;
    if (onv_dim_is(next, 0)) {
        onv_dim once = onv_dim_const(1);
        onv_dim most = onv_dim_is_known(loop->most_trips)
                           ? onv_dim_min(c->dims, once, loop->most_trips)
                           : once;
        return starts ? most : onv_dim_fresh(c->dims, "trips", most);
    }
    return onv_dim_fresh(c->dims, "trips", onv_dim_substitute_bounds(c->dims, loop->most_trips));
}

static void set_trips(onv_op_ctx *c, const onv_loop *loop, onv_dim trips)
{
    onv_graph *body = onv_model_graph(c->model, loop->body);
    body->trips = trips;
    body->never_runs = onv_dim_is(trips, 0);
}

/* The element of a stacked output without iterations: what the body would give, as far as that can
 * be told; sizes that cannot are 0. */
static void set_no_element(onv_op_ctx *c, onv_op_value *element)
{
    onv_type *type = &element->type;
    onv_dim dims[ONV_MAX_RANK];
    if (!onv_type_has_rank(type)) return;
    for (int i = 0; i < type->rank; i++)
        dims[i] = onv_dim_is_known(type->dims[i]) ? type->dims[i] : onv_dim_const(0);
    *type = onv_type_tensor(c, (onv_dtype)type->dtype, dims, type->rank);
}

/* The body never runs: it is looked at for the element types of stacked outputs alone. */
static onv_status skip_loop(onv_op_ctx *c, onv_loop *loop)
{
    onv_dim none = onv_dim_const(0);
    const char *why = NULL;
    bool stacks = false;
    for (uint32_t k = loop->n_states; k < c->n_out; k++) stacks |= onv_op_has_out(c, k);
    for (uint32_t k = 0; k < loop->n_out; k++) loop->out[k].type = onv_type_unknown();
    if (stacks)
        ONV_TRY(onv_op_try_body(c, loop->body, loop->in, loop->n_in, loop->out, loop->n_out, &why));
    for (uint32_t k = 0; k < loop->n_states && k < c->n_out; k++)
        if (onv_op_has_out(c, k)) c->out[k] = loop->in[loop->in_first + k];
    for (uint32_t k = loop->n_states; k < c->n_out; k++) {
        onv_op_value *element = &loop->out[loop->out_first + k];
        set_no_element(c, element);
        ONV_TRY(stack(c, k, element, none, 0));
    }
    set_trips(c, loop, none);
    return ONV_OK;
}

static onv_status start_loop(onv_op_ctx *c, onv_loop *loop)
{
    ONV_TRY(onv_op_body(c, "body", &loop->body, &loop->n_in, &loop->n_out));
    if (loop->n_in != loop->n_states + 2 || loop->n_out < loop->n_states + 1)
        return onv_op_fail(c, "a body of %u inputs and %u outputs for %u carried values",
                           loop->n_in, loop->n_out, loop->n_states);
    if (c->n_out > loop->n_out - 1)
        return onv_op_fail(c, "the body gives %u values for %u outputs", loop->n_out - 1, c->n_out);
    if (!onv_loop_init(c, loop)) return onv_fail_memory(c->err);
    loop->most_trips = most_trips(c);
    set_loop_inputs(c, loop);
    for (uint32_t k = 0; k < loop->n_states; k++) loop->in[2 + k] = onv_op_in_value(c, 2 + k);
    return ONV_OK;
}

static onv_status infer_loop(onv_op_ctx *c)
{
    onv_loop loop = {.n_states = c->n_in > 2 ? c->n_in - 2 : 0, .in_first = 2, .out_first = 1};
    ONV_TRY(start_loop(c, &loop));
    /* That it never runs may be given by name, where nothing else says that it does. */
    bool open = !onv_dim_is_known(onv_loop_condition(c));
    open |= onv_op_has_in(c, 0) && !onv_dim_is_known(onv_op_in_scalar(c, 0));
    if (open && onv_dim_is(onv_dim_given_size(c->dims, "trips"), 0))
        (void)onv_dim_fresh(c->dims, "trips", ONV_DIM_UNKNOWN);
    if (onv_dim_is(onv_loop_condition(c), 0) || onv_dim_is(loop.most_trips, 0))
        return skip_loop(c, &loop);
    ONV_TRY(onv_loop_settle(c, &loop));
    onv_dim trips = count_trips(c, &loop);
    ONV_TRY(onv_loop_unroll(c, &loop, &trips));
    ONV_TRY(set_results(c, &loop, trips));
    for (uint32_t k = loop.n_states; k < c->n_out; k++)
        ONV_TRY(stack(c, k, &loop.out[k + 1], trips, 0));
    set_trips(c, &loop, trips);
    return ONV_OK;
}

/* --- Scan -------------------------------------------------------------------------------------- */

/* The type of a slice along an axis, and how many there are. */
static onv_status drop_axis(onv_op_ctx *c, const onv_type *type, int64_t axis, onv_dim *size,
                            onv_type *out)
{
    onv_dim dims[ONV_MAX_RANK];
    int at, n = 0;
    *size = ONV_DIM_UNKNOWN;
    *out = onv_type_tensor(c, (onv_dtype)type->dtype, NULL, -1);
    if (!onv_type_has_rank(type)) return ONV_OK;
    if (type->rank == 0) return onv_op_fail(c, "a scanned input is a scalar");
    ONV_TRY(onv_op_axis(c, axis, type->rank, &at));
    for (int i = 0; i < type->rank; i++)
        if (i != at) dims[n++] = type->dims[i];
    *size = type->dims[at];
    *out = onv_type_tensor(c, (onv_dtype)type->dtype, dims, n);
    return ONV_OK;
}

/* Axis i of a list attribute, 0 where the list is absent. */
static int64_t axis_of(const onv_op_ctx *c, const char *name, uint32_t i)
{
    uint32_t count;
    const int64_t *axes = onv_op_attr_ints(c, name, &count);
    return i < count ? axes[i] : 0;
}

static onv_status check_axes(onv_op_ctx *c, const char *name, uint32_t expected)
{
    uint32_t count;
    if (onv_op_attr_ints(c, name, &count) != NULL && count != expected)
        return onv_op_fail(c, "%s has %u entries, not %u", name, count, expected);
    return ONV_OK;
}

/* Body, states and scanned inputs; `first` is the node's input that begins them. */
static onv_status start_scan(onv_op_ctx *c, uint32_t first, onv_loop *loop, uint32_t *n_scanned)
{
    int64_t scanned = onv_op_attr_int(c, "num_scan_inputs", 0);
    ONV_TRY(onv_op_body(c, "body", &loop->body, &loop->n_in, &loop->n_out));
    if (scanned < 1 || scanned > (int64_t)(c->n_in - first))
        return onv_op_fail(c, "num_scan_inputs is %lld of %u inputs", (long long)scanned,
                           c->n_in - first);
    *n_scanned = (uint32_t)scanned;
    loop->n_states = c->n_in - first - *n_scanned;
    if (loop->n_in != c->n_in - first || loop->n_out < loop->n_states)
        return onv_op_fail(c, "a body of %u inputs and %u outputs for %u states and %u inputs",
                           loop->n_in, loop->n_out, loop->n_states, *n_scanned);
    if (!onv_loop_init(c, loop)) return onv_fail_memory(c->err);
    for (uint32_t k = 0; k < loop->n_states; k++) loop->in[k] = onv_op_in_value(c, first + k);
    return ONV_OK;
}

/* Before opset 9 every input has a batch axis that the body does not see, and scanned ones lie along axis 1. */
static onv_status infer_scan(onv_op_ctx *c)
{
    const bool is_batched = c->version < 9;
    const uint32_t first = is_batched ? 1 : 0;
    onv_loop loop = {.in_first = 0};
    uint32_t scanned;
    onv_dim trips = ONV_DIM_UNKNOWN, batch = ONV_DIM_UNKNOWN, size;
    ONV_TRY(start_scan(c, first, &loop, &scanned));
    ONV_TRY(check_axes(c, "scan_input_axes", scanned));
    ONV_TRY(check_axes(c, "scan_output_axes", loop.n_out - loop.n_states));
    for (uint32_t k = 0; k < loop.n_in; k++) {
        onv_type type = *onv_op_in(c, first + k), *now = &loop.in[k].type;
        if (is_batched) {
            ONV_TRY(drop_axis(c, &type, 0, &size, now));
            ONV_TRY(onv_tensor_unify(c, "the batches", &batch, size));
            loop.in[k].known = NULL;
            type = *now;
        }
        if (k < loop.n_states) continue;
        int64_t axis = axis_of(c, "scan_input_axes", k - loop.n_states);
        ONV_TRY(drop_axis(c, &type, axis, &size, now));
        ONV_TRY(onv_tensor_unify(c, "the lengths of scanned inputs", &trips, size));
        loop.in[k].bound = c->in[first + k].bound;
    }
    loop.most_trips = onv_dim_substitute_bounds(c->dims, trips);
    ONV_TRY(onv_loop_settle(c, &loop));
    ONV_TRY(set_results(c, &loop, trips));
    for (uint32_t k = 0; k < c->n_out; k++) {
        uint32_t stacked = k - loop.n_states;
        if (k >= loop.n_states)
            ONV_TRY(stack(c, k, &loop.out[k], trips, axis_of(c, "scan_output_axes", stacked)));
        if (!is_batched || !onv_op_has_out(c, k)) continue;
        onv_op_value element = c->out[k];
        c->out[k].known = NULL;
        ONV_TRY(stack(c, k, &element, batch, 0));
    }
    set_trips(c, &loop, is_batched ? onv_dim_mul(c->dims, batch, trips) : trips);
    return ONV_OK;
}

/* --- Rows -------------------------------------------------------------------------------------- */

#define MANY ONV_OP_MAX_ARITY

static const onv_op rows[] = {
    ONV_OP("If", 1, 1, 1, 1, MANY, infer_if, .flags = ONV_OP_SUBGRAPH),
    ONV_OP("Loop", 1, 3, MANY, 1, MANY, infer_loop, .flags = ONV_OP_SUBGRAPH),
    ONV_OP("Loop", 11, 2, MANY, 1, MANY, infer_loop, .flags = ONV_OP_SUBGRAPH),
    ONV_OP("Scan", 8, 2, MANY, 1, MANY, infer_scan, .flags = ONV_OP_SUBGRAPH),
    ONV_OP("Scan", 9, 1, MANY, 1, MANY, infer_scan, .flags = ONV_OP_SUBGRAPH),
};

const onv_op_family onv_ops_controlflow = {"", rows, sizeof rows / sizeof rows[0]};
