#include "program/match.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/ptr_map.h"
#include "base/quota.h"
#include "program/program.h"

typedef struct matcher {
    onv_model *view;
    const onv_model *model;
    onv_dim *sizes;    /* by symbol of the view */
    onv_ptr_map names; /* of the model's values, interned in the view: their places */
    onv_error *err;
} matcher;

static const onv_value *input_of(const onv_model *model, uint32_t i)
{
    return &model->values.at[model->graphs.at[0].inputs[i].index];
}

/* --- Sizes --------------------------------------------------------------------------------------- */

typedef struct symbols {
    onv_dim only;
    uint32_t n;
} symbols;

static void count_symbol(void *context, onv_dim symbol)
{
    symbols *s = context;
    if (s->n == 0 || !onv_dim_same(s->only, symbol)) s->n++;
    s->only = symbol;
}

/* The value of the one symbol for which a * symbol + b, which `d` has to be, is `size`; unknown where there is none. */
static onv_dim solve(matcher *m, onv_dim d, onv_dim symbol, int64_t size)
{
    onv_dims *pool = &m->view->dims;
    onv_dim at[3];
    for (int64_t i = 0; i < 3; i++) at[i] = onv_dim_substitute(pool, d, symbol, onv_dim_const(i));
    if (!onv_dim_is_const(at[0]) || !onv_dim_is_const(at[1]) || !onv_dim_is_const(at[2]))
        return ONV_DIM_UNKNOWN;
    int64_t step = at[1].raw - at[0].raw;
    if (step <= 0 || at[2].raw - at[1].raw != step || (size - at[0].raw) % step != 0)
        return ONV_DIM_UNKNOWN;
    return onv_dim_const((size - at[0].raw) / step);
}

static onv_status differs(const matcher *m, const onv_value *input, int axis, onv_dim theirs,
                          onv_dim ours)
{
    return onv_fail(m->err, ONV_ERR_USAGE,
                    "dimension %d of input '%.100s' is %" PRId64 " in the model and %" PRId64
                    " in the program%s",
                    axis, input->name, ours.raw, theirs.raw,
                    axis == 0 ? ": if the batch is to change, export the program with "
                                "dynamic_shapes"
                              : "");
}

/* A symbol of the program has the size of the dim that is in its place. */
static onv_status match_dim(matcher *m, const onv_value *input, int axis, onv_dim theirs,
                            onv_dim ours)
{
    onv_dims *pool = &m->view->dims;
    if (!onv_dim_is_expr(theirs)) {
        if (onv_dim_is_const(ours) && onv_dim_is_const(theirs) && !onv_dim_same(ours, theirs))
            return differs(m, input, axis, theirs, ours);
        return ONV_OK;
    }
    onv_dim now = onv_dim_eval(pool, theirs, m->sizes);
    if (onv_dim_is_const(now) && onv_dim_is_const(ours)) {
        if (!onv_dim_same(now, ours)) return differs(m, input, axis, now, ours);
        return ONV_OK;
    }
    symbols found = {.n = 0};
    if (!onv_dim_is_expr(now)) return ONV_OK;
    onv_dim_each_symbol(pool, now, count_symbol, &found);
    if (found.n != 1) return ONV_OK;
    uint32_t number = onv_dim_symbol_index(pool, found.only);
    if (number >= m->view->program->symbols.count) return ONV_OK; /* it has the model's name */
    onv_dim *size = &m->sizes[number];
    if (onv_dim_is_const(ours)) {
        onv_dim value = solve(m, now, found.only, ours.raw);
        if (onv_dim_is_known(value)) *size = value;
    } else if (onv_dim_is_symbol(&m->model->dims, ours) && onv_dim_same(now, found.only)) {
        const char *name =
            onv_intern(&m->view->strings, onv_dim_symbol_name(&m->model->dims, ours));
        if (name == NULL) return onv_fail_memory(m->err);
        *size = onv_dim_symbol(pool, name);
    }
    return ONV_OK;
}

/* --- Inputs -------------------------------------------------------------------------------------- */

static const char *dtype_text(uint8_t dtype)
{
    return onv_dtype_name((onv_dtype)dtype);
}

/* As the file declares the input: options may have cast it. */
static onv_status match_input(matcher *m, const onv_value *theirs, const onv_value *ours)
{
    const onv_type *type = &ours->type;
    uint8_t dtype = ours->declared != NULL ? ours->declared->dtype : type->dtype;
    if (!onv_type_has_rank(type))
        return onv_fail(m->err, ONV_ERR_USAGE, "input '%.100s' of the model has no shape",
                        ours->name);
    if (dtype != theirs->type.dtype)
        return onv_fail(m->err, ONV_ERR_USAGE,
                        "input '%.100s' is %s in the model and %s in the program", ours->name,
                        dtype_text(dtype), dtype_text(theirs->type.dtype));
    if (type->rank != theirs->type.rank)
        return onv_fail(m->err, ONV_ERR_USAGE,
                        "input '%.100s' has rank %d in the model and %d in the program", ours->name,
                        type->rank, theirs->type.rank);
    for (int i = 0; i < type->rank; i++)
        ONV_TRY(match_dim(m, ours, i, theirs->type.dims[i], type->dims[i]));
    return ONV_OK;
}

static onv_status map_values(matcher *m)
{
    for (uint32_t i = 0; i < m->model->values.count; i++) {
        const onv_value *value = &m->model->values.at[i];
        ONV_WORK(1);
        if (value->kind != ONV_VALUE_INPUT && value->kind != ONV_VALUE_INITIALIZER) continue;
        const char *name = onv_interned(&m->view->strings, value->name);
        if (name == NULL || value->graph.index != 0) continue;
        if (!onv_ptr_map_set(&m->names, name, i)) return onv_fail_memory(m->err);
    }
    return ONV_OK;
}

/* By name where the program has one of each name, else by place. */
static onv_status match_inputs(matcher *m)
{
    const onv_graph *theirs = &m->view->graphs.at[0], *ours = &m->model->graphs.at[0];
    uint32_t named = 0, at;
    for (uint32_t i = 0; i < theirs->n_inputs; i++)
        named += onv_ptr_map_get(&m->names, input_of(m->view, i)->name, &at) &&
                 m->model->values.at[at].kind == ONV_VALUE_INPUT;
    if (named < ours->n_inputs && theirs->n_inputs != ours->n_inputs)
        return onv_fail(m->err, ONV_ERR_USAGE,
                        "the model has %" PRIu32 " inputs and the program %" PRIu32, ours->n_inputs,
                        theirs->n_inputs);
    for (uint32_t i = 0; i < theirs->n_inputs; i++) {
        const onv_value *input = input_of(m->view, i);
        ONV_WORK(1);
        if (named < ours->n_inputs)
            ONV_TRY(match_input(m, input, input_of(m->model, i)));
        else if (onv_ptr_map_get(&m->names, input->name, &at))
            ONV_TRY(match_input(m, input, &m->model->values.at[at]));
    }
    return ONV_OK;
}

/* --- Parameters ---------------------------------------------------------------------------------- */

static const char *shape_text(const onv_model *model, onv_arena *arena, const onv_type *type)
{
    const char *text = onv_type_shape_text(&model->dims, arena, type);
    return text != NULL ? text : "?";
}

/* Those of both with the same name. An exporter keeps names, and may leave out, fold or transpose what has none. */
static onv_status match_parameters(matcher *m)
{
    for (size_t i = 0; i < m->view->values.count; i++) {
        const onv_value *theirs = &m->view->values.at[i];
        uint32_t at;
        ONV_WORK(1);
        if (theirs->kind != ONV_VALUE_INITIALIZER || theirs->role != ONV_ROLE_PARAMETER ||
            !onv_ptr_map_get(&m->names, theirs->name, &at))
            continue;
        const onv_value *ours = &m->model->values.at[at];
        if (ours->tensor == NULL) continue;
        const onv_type *type = &ours->tensor->type;
        bool is_same = type->rank == theirs->type.rank;
        for (int k = 0; k < type->rank && is_same; k++)
            is_same = onv_dim_same(type->dims[k], theirs->type.dims[k]);
        if (is_same) continue;
        return onv_fail(m->err, ONV_ERR_USAGE,
                        "the parameter '%.100s' has shape %.100s in the model and %.100s in the "
                        "program",
                        ours->name, shape_text(m->model, &m->view->arena, type),
                        shape_text(m->view, &m->view->arena, &theirs->type));
    }
    return ONV_OK;
}

/* Parameters of the model that the program lacks, where the file says which of its weights are parameters. */
static onv_status match_names(matcher *m)
{
    for (size_t i = 0; i < m->model->values.count; i++) {
        const onv_value *ours = &m->model->values.at[i];
        ONV_WORK(1);
        if (ours->kind != ONV_VALUE_INITIALIZER || ours->role != ONV_ROLE_PARAMETER) continue;
        if (onv_interned(&m->view->strings, ours->name) != NULL) continue;
        return onv_fail(
            m->err, ONV_ERR_USAGE,
            "the model has the parameter '%.200s', and the program has none of that name",
            ours->name);
    }
    return ONV_OK;
}

onv_status onv_program_match(onv_model *view, const onv_model *model, onv_dim *sizes,
                             onv_error *err)
{
    matcher m = {.view = view, .model = model, .sizes = sizes, .err = err};
    for (uint32_t i = 0; i < view->program->symbols.count; i++)
        sizes[i] = onv_dim_symbol_at(&view->dims, i);
    onv_status status = map_values(&m);
    if (status == ONV_OK) status = match_inputs(&m);
    if (status == ONV_OK) status = match_parameters(&m);
    if (status == ONV_OK) status = match_names(&m);
    onv_ptr_map_cleanup(&m.names);
    return status;
}
