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
    onv_values_in given = onv_values_of(c);
    uint32_t n = 0;
    while (given.at < c->n_arguments && c->arguments[given.at].kind != ONV_ARGUMENT_GRAPH)
        given.at++;
    for (uint32_t value; n < graph->n_inputs && onv_next_value(&given, &value);)
        t->values[graph->inputs[n++]].object = t->values[value].object;
}

static void take_results(onv_tape *t, const onv_program_call *c, const onv_program_graph *graph)
{
    for (uint32_t k = 0; k < c->n_results && k < graph->n_outputs; k++)
        if (c->results[k] != ONV_NO_PROGRAM_VALUE)
            t->values[c->results[k]].object = t->values[graph->outputs[k]].object;
}

/* A region of torch.autocast(device, dtype, enabled). Without a GPU PyTorch turns those of "cuda" off when they are entered, so that off
 * says nothing of them. */
static void enter_autocast(onv_tape *t, const onv_program_call *c)
{
    enum { DEVICE, DTYPE, ENABLED, N };
    if (strstr(c->op_name, "autocast") == NULL || c->n_arguments < N ||
        c->arguments[DEVICE].kind != ONV_ARGUMENT_STRING ||
        c->arguments[DTYPE].kind != ONV_ARGUMENT_DTYPE ||
        c->arguments[ENABLED].kind != ONV_ARGUMENT_BOOL)
        return;
    bool is_on = c->arguments[ENABLED].flag;
    t->emit.amp = is_on ? (onv_dtype)c->arguments[DTYPE].dtype : ONV_UNDEFINED;
    if (!is_on && strcmp(c->arguments[DEVICE].text, "cuda") == 0)
        onv_say(&t->emit, ONV_SAID_autocast_off, c->name, 0, NULL);
}

/* The graph in the place of the call, with gradients or without, and under autocast or not. */
static void run_inside(onv_tape *t, const onv_program_call *c, const onv_program_graph *graph)
{
    bool before = t->emit.has_no_grad;
    onv_dtype amp = t->emit.amp;
    enter_autocast(t, c);
    if (strstr(c->op_name, "set_grad_enabled") != NULL && c->n_arguments > 0 &&
        c->arguments[0].kind == ONV_ARGUMENT_BOOL)
        t->emit.has_no_grad = !c->arguments[0].flag;
    give_inputs(t, c, graph);
    onv_tape_calls(t, graph);
    take_results(t, c, graph);
    t->emit.has_no_grad = before;
    if (amp == ONV_UNDEFINED && t->emit.amp != amp) onv_amp_end(&t->emit);
    t->emit.amp = amp;
}

/* --- Branches ---------------------------------------------------------------------------------- */

/* One of two graphs runs: their steps are alternatives, of which none counts with the other. */
static void run_branches(onv_tape *t, const onv_program_call *c)
{
    const onv_program_graph *graphs[2] = {graph_of(t, c, 0), graph_of(t, c, 1)};
    uint32_t first_storage = (uint32_t)t->emit.eager->storages.count;
    if (graphs[0] == NULL || graphs[1] == NULL) return;
    uint32_t all = onv_emit_enter(&t->emit, ONV_REGION_ALTERNATIVES, NULL);
    for (uint32_t b = 0; b < 2; b++) {
        uint32_t branch = onv_emit_enter(&t->emit, ONV_REGION_SEQUENCE, graphs[b]->name);
        run_inside(t, c, graphs[b]);
        for (uint32_t k = 0; k < graphs[b]->n_outputs; k++)
            onv_emit_keep_to_end(&t->emit, onv_tape_tensor(t, graphs[b]->outputs[k]),
                                 first_storage);
        onv_emit_leave(&t->emit, branch);
    }
    onv_emit_leave(&t->emit, all);
    onv_emit_begin(&t->emit, "cond");
    for (uint32_t k = 0; k < c->n_results && t->emit.status == ONV_OK; k++) {
        uint32_t value = c->results[k], given[2];
        if (value == ONV_NO_PROGRAM_VALUE) continue;
        for (uint32_t b = 0; b < 2; b++)
            given[b] = k < graphs[b]->n_outputs ? onv_tape_tensor(t, graphs[b]->outputs[k])
                                                : ONV_NO_TENSOR;
        t->values[value].object = value;
        uint32_t out = onv_tape_new(t, value, ONV_UNDEFINED);
        onv_tape_set(t, value, onv_emit_join(&t->emit, out, given, first_storage));
    }
    onv_emit_end(&t->emit);
}

/* Of other calls than these their derivatives are not in the file. */
bool onv_tape_refuses(onv_tape *t, const onv_program_call *c)
{
    if (t->emit.options->inference || graph_of(t, c, 0) == NULL) return false;
    const char *dot = strchr(c->op_name, '.'), *name = dot != NULL ? dot + 1 : c->op_name;
    t->emit.status =
        onv_fail(t->emit.err, ONV_ERR_USAGE, "training through torch.%.100s is not sized: %s", name,
                 strcmp(name, "cond") == 0
                     ? "export the network with the branch that training takes"
                     : "write it as a loop of Python in forward, which torch.export unrolls");
    return true;
}

void onv_tape_graphs(onv_tape *t, const onv_program_call *c)
{
    const onv_program_graph *graph = graph_of(t, c, 0);
    bool branches = strstr(c->op_name, ".cond") != NULL;
    bool loops = strstr(c->op_name, ".while_loop") != NULL;
    if (graph == NULL) return;
    if ((branches || loops) && onv_tape_refuses(t, c)) return;
    if (branches) {
        run_branches(t, c);
        return;
    }
    /* One iteration stands for all: its condition, then its body. */
    if (loops) run_inside(t, c, graph);
    if (loops) graph = graph_of(t, c, 1);
    if (graph != NULL) run_inside(t, c, graph);
}

/* --- Functions of the network's own ------------------------------------------------------------ */

static uint32_t listed(onv_tape *t, const onv_argument *list, uint32_t i)
{
    if (list == NULL || list->kind != ONV_ARGUMENT_TENSORS || i >= list->count ||
        list->values[i] == ONV_NO_PROGRAM_VALUE)
        return ONV_NO_TENSOR;
    return onv_tape_tensor(t, list->values[i]);
}

/* What forward() of an autograd.Function called has run without gradients. From here on its results are a node's of autograd, which
 * gives gradients to what it was given, and keeps what the recording says. */
void onv_tape_function(onv_tape *t, const onv_program_call *c)
{
    const onv_argument *given = onv_call_argument(c, "given"), *made = onv_call_argument(c, "made"),
                       *kept = onv_call_argument(c, "kept");
    onv_emit_begin(&t->emit, "autograd_function");
    for (uint32_t i = 0; given != NULL && i < given->count; i++)
        onv_emit_in(&t->emit, listed(t, given, i), ONV_GRAD_NEW);
    for (uint32_t i = 0; kept != NULL && i < kept->count; i++) {
        uint32_t tensor = listed(t, kept, i);
        if (tensor == ONV_NO_TENSOR || !t->program->values.at[kept->values[i]].is_kept) continue;
        onv_emit_in_saved(&t->emit, tensor, ONV_GRAD_NONE);
    }
    for (uint32_t i = 0; i < c->n_results; i++) {
        uint32_t inner = listed(t, made, i);
        if (inner == ONV_NO_TENSOR || c->results[i] == ONV_NO_PROGRAM_VALUE) continue;
        onv_eager_tensor x = onv_tensor_at(&t->emit, inner);
        uint32_t out = onv_tensor_on(&t->emit, x.storage, x.dtype, x.rank, x.dims, x.strides);
        onv_tape_set(t, c->results[i], onv_emit_out(&t->emit, out));
    }
    onv_say(&t->emit, ONV_SAID_recorded_functions, c->name, 0, NULL);
    onv_emit_end(&t->emit);
}
