/* What evaluation may do otherwise than an archive shows that was traced in training mode, as forward may ask self.training: calls that
 * draw random numbers may not be there, and what is computed of parameters alone may be kept by its module from one pass to the next. */
#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "tape/state.h"

/* What a value is computed of. */
enum { OF_INPUTS = 1, OF_TRAINED = 2, OF_RANDOM = 4 };

static bool draws(const char *name)
{
    static const char *const begins[] = {"rand", "bernoulli", "normal", "uniform", "exponential"};
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
        if (strncmp(name, begins[i], strlen(begins[i])) == 0) return true;
    return false;
}

/* Its arguments say no more than sizes. */
static bool is_of_sizes(const char *name)
{
    size_t length = strlen(name);
    return (length > 4 && memcmp(name, "new_", 4) == 0) ||
           (length > 5 && strcmp(name + length - 5, "_like") == 0);
}

static uint8_t source_of(const onv_program_value *v)
{
    if (v->kind == ONV_PROGRAM_PARAMETER) return v->requires_grad ? OF_TRAINED : 0;
    return v->kind == ONV_PROGRAM_INPUT ? OF_INPUTS : 0;
}

static uint8_t sources_of(const onv_program_call *call, const uint8_t *sources)
{
    uint8_t all = 0;
    onv_values_in given = onv_values_of(call);
    for (uint32_t value; onv_next_value(&given, &value);) all |= sources[value];
    return all;
}

static onv_eager_storage *activation_of(const onv_tape *t, uint32_t value)
{
    uint32_t tensor = t->values[t->values[value].object].tensor;
    if (tensor == ONV_NO_TENSOR) return NULL;
    onv_eager_storage *s = onv_storage_of(&t->emit, tensor);
    return s->kind == ONV_STORAGE_ACTIVATION ? s : NULL;
}

/* Calls in place change what views of the same memory are computed of. `written`: by storage. */
static void note_written(const onv_tape *t, uint32_t value, uint8_t *sources, uint8_t *written,
                         uint8_t of)
{
    const onv_eager_storage *s = activation_of(t, value);
    if (s == NULL) return;
    written[s - t->emit.eager->storages.at] |= of;
    sources[value] |= written[s - t->emit.eager->storages.at];
}

/* By value; NULL without memory, or time. */
static uint8_t *find_sources(onv_tape *t)
{
    const onv_program *p = t->program;
    uint8_t *sources = ONV_EMIT_ARRAY(&t->emit, uint8_t, p->values.count);
    uint8_t *written = ONV_EMIT_ARRAY(&t->emit, uint8_t, t->emit.eager->storages.count);
    if (sources == NULL || written == NULL) return NULL;
    for (size_t i = 0; i < p->values.count; i++) sources[i] = source_of(&p->values.at[i]);
    for (size_t i = 0; i < p->calls.count && onv_work(1); i++) {
        const onv_program_call *call = &p->calls.at[i];
        for (uint32_t k = 0; k < call->n_arguments; k++)
            if (call->arguments[k].kind == ONV_ARGUMENT_TENSOR)
                note_written(t, call->arguments[k].value, sources, written, 0);
        const char *name = t->emit.model->nodes.at[i].op_type;
        uint8_t all = is_of_sizes(name) ? 0 : sources_of(call, sources);
        if (draws(name)) all = OF_RANDOM;
        if (t->in_place[i] && call->n_arguments > 0 &&
            call->arguments[0].kind == ONV_ARGUMENT_TENSOR)
            note_written(t, call->arguments[0].value, sources, written, all);
        for (uint32_t k = 0; k < call->n_results; k++)
            if (call->results[k] != ONV_NO_PROGRAM_VALUE) sources[call->results[k]] = all;
    }
    return sources;
}

/* Dropout and batch norms have a flag: all of them are off. */
static bool is_of_evaluation(const onv_program *p)
{
    bool any = false;
    for (size_t i = 0; i < p->calls.count; i++) {
        const onv_argument *flag = onv_call_argument(&p->calls.at[i], "training");
        if (flag == NULL) flag = onv_call_argument(&p->calls.at[i], "train");
        if (flag == NULL || flag->kind != ONV_ARGUMENT_BOOL) continue;
        if (flag->flag) return false;
        any = true;
    }
    return any;
}

/* Made in a line of PyTorch's own modules, which compute weights anew in either mode: weight_norm(), spectral_norm(). */
static bool is_of_library(const onv_tape *t, uint32_t value)
{
    uint32_t call = t->program->values.at[value].call;
    const char *trace = call < t->program->calls.count ? t->program->calls.at[call].trace : NULL;
    const char *last = NULL;
    for (const char *at = trace; at != NULL && (at = strstr(at, "File \"")) != NULL; at++)
        last = at;
    const char *end = last != NULL ? strchr(last, ',') : NULL;
    return end != NULL && memmem(last, (size_t)(end - last), "torch/nn/", 9) != NULL;
}

/* The upper end: what is computed of parameters alone, and a call with other tensors reads, is an attribute of its module. */
static void keep_computed(onv_tape *t, const uint8_t *sources)
{
    for (size_t i = 0; i < t->program->calls.count; i++) {
        const onv_program_call *call = &t->program->calls.at[i];
        if ((sources_of(call, sources) & OF_INPUTS) == 0) continue;
        for (uint32_t k = 0; k < call->n_arguments; k++) {
            const onv_argument *a = &call->arguments[k];
            if (a->kind != ONV_ARGUMENT_TENSOR || sources[a->value] != OF_TRAINED ||
                is_of_library(t, a->value))
                continue;
            onv_eager_storage *s = activation_of(t, a->value);
            if (s != NULL) s->is_attribute = true;
        }
    }
}

static bool ends_with(const onv_tape *t, uint32_t value, const char *end)
{
    const char *name = value != ONV_NO_PROGRAM_VALUE ? t->program->values.at[value].fqn : NULL;
    size_t length = name != NULL ? strlen(name) : 0, n = strlen(end);
    return length > n && strcmp(name + length - n, end) == 0;
}

void onv_tape_of_hooks(onv_tape *t)
{
    for (size_t i = 0; i < t->program->calls.count && onv_work(1); i++) {
        const onv_program_call *c = &t->program->calls.at[i];
        bool scales = onv_tape_is(t, c, ONV_ATEN_div) || onv_tape_is(t, c, ONV_ATEN_mul);
        if (!(scales && ends_with(t, onv_call_value(c, "self"), "_orig")) &&
            !(ends_with(t, onv_call_value(c, "v"), "_v") &&
              ends_with(t, onv_call_value(c, "g"), "_g")))
            continue;
        onv_eager_storage *s = activation_of(t, onv_call_result(c, 0));
        if (s != NULL) s->is_attribute = true;
    }
}

/* What is drawn, and computed of it without inputs, where that is large: weights with noise. */
static void report_drawn(onv_tape *t, const uint8_t *sources)
{
    enum { LEAST_PART = 50 };
    const onv_eager *eager = t->emit.eager;
    uint64_t least = 0, largest = 0, drawn = 0;
    const char *first = NULL;
    for (size_t i = 0; i < eager->storages.count; i++) {
        const onv_eager_storage *s = &eager->storages.at[i];
        if (s->kind != ONV_STORAGE_ACTIVATION)
            least += s->bytes;
        else if (s->bytes > largest)
            largest = s->bytes;
    }
    for (uint32_t i = 0; i < t->program->values.count; i++) {
        const onv_eager_storage *s = activation_of(t, i);
        if ((sources[i] & OF_RANDOM) == 0 || (sources[i] & OF_INPUTS) != 0 || s == NULL) continue;
        if (first == NULL) first = t->program->values.at[i].name;
        if (s->bytes > drawn) drawn = s->bytes;
    }
    if (drawn == 0 || drawn < (least + largest) / LEAST_PART) return;
    onv_say(&t->emit, ONV_SAID_training_calls, first, drawn, NULL);
}

void onv_tape_of_training(onv_tape *t)
{
    if (is_of_evaluation(t->program)) return;
    const uint8_t *sources = find_sources(t);
    if (sources == NULL) return;
    t->emit.eager->differs_most = true;
    if (t->emit.options->locals) keep_computed(t, sources);
    if (t->emit.options->reports) report_drawn(t, sources);
}

void onv_tape_of_evaluation(onv_tape *t)
{
    if (is_of_evaluation(t->program)) onv_say(&t->emit, ONV_SAID_evaluation_calls, NULL, 0, NULL);
}
