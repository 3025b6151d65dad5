#include "support/program_check.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/quota.h"

static onv_status fail(onv_error *err, const onv_program_call *call, const char *what)
{
    onv_fail(err, ONV_ERR_MODEL, "%s", what);
    onv_error_at(err, call->name, call->op_name);
    return ONV_ERR_MODEL;
}

static bool is_size(onv_dim d)
{
    return !onv_dim_is_infinite(d) && (!onv_dim_is_const(d) || d.raw >= 0);
}

static onv_status check_value(const onv_program *p, const onv_program_value *value, onv_error *err)
{
    bool is_result = value->kind == ONV_PROGRAM_RESULT;
    bool is_sound =
        value->name != NULL && value->kind <= ONV_PROGRAM_INPUT && value->graph < p->graphs.count &&
        (value->rank == 0 || value->dims != NULL) && is_result == (value->call < p->calls.count) &&
        (value->freed_after == ONV_NO_CALL_INDEX || value->freed_after < p->calls.count) &&
        is_size(value->offset);
    for (uint32_t i = 0; is_sound && i < value->rank; i++) is_sound = is_size(value->dims[i]);
    if (is_sound) return ONV_OK;
    return onv_fail(err, ONV_ERR_MODEL,
                    "the tensor '%.100s' has no place, or no size, of a program",
                    value->name != NULL ? value->name : "");
}

/* It may be read where it was made before, in the same graph. */
static onv_status check_read(const onv_program *p, uint32_t id, uint32_t call, uint32_t graph,
                             onv_error *err)
{
    const onv_program_call *reader = &p->calls.at[call];
    if (id >= p->values.count) return fail(err, reader, "reads a tensor that does not exist");
    const onv_program_value *value = &p->values.at[id];
    bool is_before = value->kind != ONV_PROGRAM_RESULT || value->call < call;
    if (value->graph == graph && is_before) return ONV_OK;
    return fail(err, reader, "reads a tensor before it is made, or one of another graph");
}

static onv_status check_argument(const onv_program *p, const onv_argument *a, uint32_t call,
                                 uint32_t graph, onv_error *err)
{
    onv_values_in given = {.arguments = a, .count = 1};
    for (uint32_t value; onv_next_value(&given, &value);)
        ONV_TRY(check_read(p, value, call, graph, err));
    if (a->kind != ONV_ARGUMENT_GRAPH) return ONV_OK;
    if (a->graph == 0 || a->graph >= p->graphs.count || a->graph <= graph ||
        p->graphs.at[a->graph].call != call)
        return fail(err, &p->calls.at[call], "has a graph that is not its own");
    return ONV_OK;
}

static onv_status check_call(const onv_program *p, uint32_t at, uint32_t graph, onv_error *err)
{
    const onv_program_call *call = &p->calls.at[at];
    ONV_WORK(1 + call->n_arguments + call->n_results);
    if (call->name == NULL || call->op_name == NULL ||
        (call->module != UINT32_MAX && call->module >= p->modules.count))
        return onv_fail(err, ONV_ERR_MODEL, "a call has no name, or no module");
    for (uint32_t i = 0; i < call->n_arguments; i++)
        ONV_TRY(check_argument(p, &call->arguments[i], at, graph, err));
    for (uint32_t i = 0; i < call->n_results; i++) {
        uint32_t id = call->results[i];
        if (id == ONV_NO_PROGRAM_VALUE) continue;
        if (id >= p->values.count || p->values.at[id].call != at || p->values.at[id].graph != graph)
            return fail(err, call, "has a result that is not its own");
    }
    return ONV_OK;
}

static onv_status check_graph(const onv_program *p, uint32_t at, onv_error *err)
{
    const onv_program_graph *graph = &p->graphs.at[at];
    uint32_t before = at > 0 ? p->graphs.at[at - 1].first_call + p->graphs.at[at - 1].n_calls : 0;
    bool is_owned = at == 0 || graph->call < before; /* by a call of a graph before it */
    if (!is_owned || graph->first_call != before || graph->n_calls > p->calls.count - before)
        return onv_fail(err, ONV_ERR_MODEL, "calls of graph '%.100s' are out of range",
                        graph->name);
    for (uint32_t i = 0; i < graph->n_calls; i++)
        ONV_TRY(check_call(p, graph->first_call + i, at, err));
    for (uint32_t i = 0; i < graph->n_inputs + graph->n_outputs; i++) {
        uint32_t id = i < graph->n_inputs ? graph->inputs[i] : graph->outputs[i - graph->n_inputs];
        if (id >= p->values.count || p->values.at[id].graph != at ||
            (i < graph->n_inputs && p->values.at[id].kind != ONV_PROGRAM_INPUT))
            return onv_fail(err, ONV_ERR_MODEL,
                            "graph '%.100s' has an input or output that is not its own",
                            graph->name);
    }
    return ONV_OK;
}

onv_status program_check(const onv_program *program, onv_error *err)
{
    if (program->graphs.count == 0) return onv_fail(err, ONV_ERR_MODEL, "the program has no graph");
    for (size_t i = 0; i < program->values.count; i++) {
        ONV_WORK(1);
        ONV_TRY(check_value(program, &program->values.at[i], err));
    }
    for (size_t i = 0; i < program->modules.count; i++) {
        uint32_t parent = program->modules.at[i].parent;
        if (parent != UINT32_MAX && parent >= i)
            return onv_fail(err, ONV_ERR_MODEL, "module '%.100s' has no parent before it",
                            program->modules.at[i].path);
    }
    for (size_t g = 0; g < program->graphs.count; g++)
        ONV_TRY(check_graph(program, (uint32_t)g, err));
    return ONV_OK;
}
