/* Calls of higher order: graphs among their arguments. */
#include <string.h>

#include "base/fail.h"
#include "tape/state.h"

static const onv_program_graph *graph_of(const onv_tape *t, const onv_program_call *c, uint32_t nth)
{
    for (uint32_t k = 0; k < c->n_arguments; k++)
        if (c->arguments[k].kind == ONV_ARGUMENT_GRAPH && nth-- == 0)
            return &t->program->graphs.at[c->arguments[k].graph];
    return NULL;
}

/* What the graph is called with, behind it: tensors, alone or in a list. */
static void give_inputs(onv_tape *t, const onv_program_call *c, const onv_program_graph *graph)
{
    uint32_t n = 0;
    bool is_behind = false;
    for (uint32_t k = 0; k < c->n_arguments; k++) {
        const onv_argument *a = &c->arguments[k];
        if (a->kind == ONV_ARGUMENT_GRAPH) is_behind = true;
        if (!is_behind) continue;
        uint32_t count = a->kind == ONV_ARGUMENT_TENSOR    ? 1
                         : a->kind == ONV_ARGUMENT_TENSORS ? a->count
                                                           : 0;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t value = a->kind == ONV_ARGUMENT_TENSOR ? a->value : a->values[i];
            if (value == ONV_NO_PROGRAM_VALUE || n >= graph->n_inputs) continue;
            t->values[graph->inputs[n++]].object = t->values[value].object;
        }
    }
}

static void take_results(onv_tape *t, const onv_program_call *c, const onv_program_graph *graph)
{
    for (uint32_t k = 0; k < c->n_results && k < graph->n_outputs; k++)
        if (c->results[k] != ONV_NO_PROGRAM_VALUE)
            t->values[c->results[k]].object = t->values[graph->outputs[k]].object;
}

/* The graph in the place of the call, with gradients or without. */
static void run_inside(onv_tape *t, const onv_program_call *c, const onv_program_graph *graph)
{
    bool before = t->emit.has_no_grad;
    if (strstr(c->op_name, "set_grad_enabled") != NULL && c->n_arguments > 0 &&
        c->arguments[0].kind == ONV_ARGUMENT_BOOL)
        t->emit.has_no_grad = !c->arguments[0].flag;
    give_inputs(t, c, graph);
    onv_tape_calls(t, graph);
    take_results(t, c, graph);
    t->emit.has_no_grad = before;
}

void onv_tape_graphs(onv_tape *t, const onv_program_call *c, const onv_aten_op *op, bool in_place)
{
    const onv_program_graph *graph = graph_of(t, c, 0);
    bool branches = strstr(c->op_name, ".cond") != NULL;
    bool loops = strstr(c->op_name, ".while_loop") != NULL;
    (void)op, (void)in_place;
    if (graph == NULL) return;
    if ((branches || loops) && !t->emit.options->inference) {
        t->emit.status =
            onv_fail(t->emit.err, ONV_ERR_USAGE,
                     "training through torch.%s is not sized: export the network with the "
                     "branch that training takes",
                     branches ? "cond" : "while_loop");
        return;
    }
    if (loops) graph = graph_of(t, c, 1);
    if (graph != NULL) run_inside(t, c, graph);
}
