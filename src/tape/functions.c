/* An archive goes through autograd.Functions, as through anything else; lines of the network show them. What forward() of one calls
 * runs without gradients; behind it stands a node of autograd. It keeps what the function asks for, which no file but a recording
 * has: what it was given, as nearly all do, or, at the upper end, also what its calls made. */
#include <string.h>

#include "base/checked.h"
#include "base/quota.h"
#include "tape/state.h"

enum { CHARS_BY_WORK = 64 };

static const char frame[] = ", in forward\n";

/* `x = Name.apply(x)` calls it. By another name (`act = Name.apply`) it is one more forward() than there are modules around, none
 * of them called by that name, in a line that knows no self, and not of PyTorch's own layers (archives leave out some lists of
 * modules). Gives the end of the line that calls, or NULL. */
static const char *find_call(const onv_tape *t, const onv_program_call *call)
{
    const char *at = strstr(call->trace, ".apply("), *last = NULL, *inner = NULL;
    uint32_t frames = 0, modules = 0;
    if (at != NULL && strstr(at, frame) != NULL) return at;
    for (const char *f = call->trace; (f = strstr(f, frame)) != NULL; f += sizeof frame - 1) {
        frames++;
        last = inner;
        inner = f;
    }
    for (uint32_t m = call->module; m < t->program->modules.count;
         m = t->program->modules.at[m].parent)
        modules++;
    bool is_one = modules > 0 && frames == modules + 1 && last != NULL &&
                  strstr(call->trace, ".forward(") == NULL && strstr(inner, "self") == NULL;
    const char *layers = is_one ? strstr(last, "torch/nn/") : NULL;
    return is_one && (layers == NULL || layers > inner) ? last + sizeof frame - 1 : NULL;
}

/* Numbers them: calls in a row that come by the same lines of the same module. Two calls of one line in a row are taken for one,
 * which keeps less. */
static bool number(onv_tape *t)
{
    const onv_program_graph *graph = &t->program->graphs.at[0];
    const onv_program_call *calls = t->program->calls.at;
    uint32_t n = 0, module = UINT32_MAX;
    size_t length = 0;
    for (uint32_t i = graph->first_call; i < graph->first_call + graph->n_calls; i++) {
        size_t chars = calls[i].trace != NULL ? strlen(calls[i].trace) : 0, before = length;
        if (!onv_work(1 + chars / CHARS_BY_WORK)) t->emit.status = ONV_ERR_CANCELLED;
        const char *at = chars > 0 ? find_call(t, &calls[i]) : NULL;
        length = 0;
        if (at == NULL) continue;
        const char *end = at + strcspn(at, "\n");
        uint32_t around = onv_tape_module_of(t, &calls[i], end, false);
        length = (size_t)(end - calls[i].trace);
        bool goes_on = length == before && around == module &&
                       memcmp(calls[i].trace, calls[i - 1].trace, length) == 0;
        n += !goes_on;
        module = around;
        t->function_of[i] = n;
    }
    return n > 0;
}

void onv_tape_find_functions(onv_tape *t)
{
    bool is_asked = !onv_program_is_recorded(t->program) && !t->emit.options->inference;
    if (!is_asked || t->emit.status != ONV_OK) return;
    t->function_of = ONV_EMIT_ARRAY(&t->emit, uint32_t, t->program->calls.count);
    t->function_uses = ONV_EMIT_ARRAY(&t->emit, onv_function_use, t->program->values.count);
    if (t->function_of == NULL || t->function_uses == NULL) return;
    if (!number(t)) {
        t->function_of = NULL;
        return;
    }
    t->emit.eager->differs_most = true;
}

bool onv_tape_in_function(const onv_tape *t, uint32_t call)
{
    return t->function_of != NULL && t->function_of[call] != 0;
}

static bool is_made_inside(const onv_tape *t, uint32_t value, uint32_t function)
{
    const onv_program_value *v = &t->program->values.at[value];
    return v->kind == ONV_PROGRAM_RESULT && v->call < t->program->calls.count &&
           t->function_of[v->call] == function;
}

/* What it is given, each once. */
static void add_given(onv_tape *t, uint32_t call)
{
    uint32_t function = t->function_of[call];
    onv_values_in given = onv_values_of(&t->program->calls.at[call]);
    for (uint32_t value; onv_next_value(&given, &value);) {
        onv_function_use *use = &t->function_uses[value];
        if (is_made_inside(t, value, function))
            use->inside++;
        else if (use->function != function)
            onv_emit_in_saved(&t->emit, onv_tape_tensor(t, value), ONV_GRAD_NEW);
        use->function = function;
    }
}

/* What others read of it has gradients from here on. */
static void add_made(onv_tape *t, uint32_t call)
{
    const onv_program_call *c = &t->program->calls.at[call];
    uint64_t *made = &t->emit.said[ONV_SAID_archived_functions].more;
    for (uint32_t k = 0; k < c->n_results; k++) {
        uint32_t value = c->results[k], tensor = onv_tape_tensor(t, value);
        if (tensor == ONV_NO_TENSOR) continue;
        onv_eager_tensor x = onv_tensor_at(&t->emit, tensor);
        *made = onv_u64_plus(*made, x.bytes);
        if (t->emit.options->locals) onv_emit_in_saved(&t->emit, tensor, ONV_GRAD_NONE);
        if (t->values[value].n_uses <= t->function_uses[value].inside) continue;
        uint32_t out = onv_tensor_on(&t->emit, x.storage, x.dtype, x.rank, x.dims, x.strides);
        onv_tape_set(t, t->values[value].object, onv_emit_out(&t->emit, out));
    }
}

void onv_tape_end_function(onv_tape *t, uint32_t call)
{
    uint32_t first = call, function = t->function_of[call];
    bool goes_on = call + 1 < t->program->calls.count && t->function_of[call + 1] == function;
    if (goes_on) return;
    while (first > 0 && t->function_of[first - 1] == function) first--;
    onv_emit_begin(&t->emit, "autograd_function");
    for (uint32_t i = first; i <= call; i++) add_given(t, i);
    for (uint32_t i = first; i <= call; i++) add_made(t, i);
    onv_emit_end(&t->emit);
    const onv_eager_op *op = &t->emit.eager->ops.at[t->emit.eager->ops.count - 1];
    uint64_t kept = 0;
    for (uint32_t k = 0; k < op->n_saved && t->emit.status == ONV_OK; k++)
        kept = onv_u64_plus(kept, t->emit.eager->storages.at[op->saved[k]].bytes);
    onv_say(&t->emit, ONV_SAID_archived_functions, t->program->calls.at[first].name, kept, NULL);
}
