/* The parameters that the exporter lists, and where the file has them.
 *
 * Most stand in the file under their names, or are read where a module takes its weight or its bias. What
 * is left over, and a constant that the export computed and a module reads, belong together where the
 * name is that of an attribute of this module, or of a module in it: `-exp(self.A_log)`. A bias without a tensor
 * was one of zeros, which exporters drop. Names that nothing explains are reported.
 *
 * Takes the reads of initializers and the listed names. Gives a name to each read that has one, and which names nothing explains;
 * once all is emitted, adds what --missing-parameters and --missing-buffers say is missing. Keeps the names of reads that have one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/heap.h"
#include "base/rules.h"
#include "lower/lowering.h"

static int by_text(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* The first listed name that is not before `text`. */
static size_t lower_bound(const onv_lowering *l, const char *text)
{
    size_t low = 0, high = l->signature.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(l->signature.names[middle], text) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t onv_listed_find(const onv_lowering *l, const char *name)
{
    size_t at = lower_bound(l, name);
    return at < l->signature.count && strcmp(l->signature.names[at], name) == 0 ? at : SIZE_MAX;
}

/* The name of the module's attribute, where it is listed; SIZE_MAX: it is not. */
static size_t find_attribute(const onv_lowering *l, const char *module, const char *attribute)
{
    char name[1024];
    int length =
        snprintf(name, sizeof name, "%s%s%s", module, module[0] != '\0' ? "." : "", attribute);
    return length < (int)sizeof name ? onv_listed_find(l, name) : SIZE_MAX;
}

static void explain(const onv_lowering *l, size_t i)
{
    if (i != SIZE_MAX) l->signature.explained[i] = true;
}

/* How many modules are between the module and the attribute of that name; UINT32_MAX: it is not inside. */
static uint32_t depth_in(const char *name, const char *module)
{
    size_t length = strlen(module);
    uint32_t depth = 0;
    if (length > 0 && (strncmp(name, module, length) != 0 || name[length] != '.'))
        return UINT32_MAX;
    for (const char *at = name + length + (length > 0); (at = strchr(at, '.')) != NULL; at++)
        depth++;
    return depth;
}

/* Attributes of one module that are looked at. */
enum { MAX_ATTRIBUTES = 4096 };

/* Those of a module, and of all in it: [first, end) without gaps, but for modules whose names go on. */
static void find_inside(const onv_lowering *l, const char *module, size_t *first, size_t *end)
{
    size_t length = strlen(module);
    *first = lower_bound(l, module);
    *end = *first;
    while (*end < l->signature.count && *end - *first < MAX_ATTRIBUTES &&
           strncmp(l->signature.names[*end], module, length) == 0)
        ++*end;
}

static void explain_modules(const onv_lowering *l)
{
    for (size_t i = 0; i < l->emit.model->values.count; i++) {
        const onv_value *value = &l->emit.model->values.at[i];
        size_t at = value->tensor != NULL ? onv_listed_find(l, value->name) : SIZE_MAX;
        explain(l, at);
        if (at != SIZE_MAX) l->signature.stored[at] = value;
    }
    for (size_t i = 0; i < l->emit.model->nodes.count; i++) {
        const onv_node *node = &l->emit.model->nodes.at[i];
        if (onv_noted(node)->scope[0] == '\0') continue;
        if (strstr(onv_noted(node)->source_op, "batch_norm") != NULL) {
            explain(l, find_attribute(l, onv_noted(node)->scope, "weight"));
            explain(l, find_attribute(l, onv_noted(node)->scope, "bias"));
        }
        if (!onv_node_is_recurrent(node)) continue; /* whose weights are joined */
        size_t first, end;
        find_inside(l, onv_noted(node)->scope, &first, &end);
        for (size_t k = first; k < end; k++)
            if (depth_in(l->signature.names[k], onv_noted(node)->scope) != UINT32_MAX)
                l->signature.explained[k] = true;
    }
}

/* Heads of language models have the bias of their decoder as their own, too: "predictions.bias" beside
 * "predictions.decoder.bias", which both are listed. */
static void explain_head(const onv_lowering *l)
{
    static const char bias[] = ".bias";
    for (size_t i = 0; i < l->signature.count; i++) {
        size_t length = strlen(l->signature.names[i]);
        if (l->signature.explained[i] || length < sizeof bias || length > 1000) continue;
        length -= sizeof bias - 1;
        if (strcmp(l->signature.names[i] + length, bias) != 0) continue;
        char decoder[1024];
        snprintf(decoder, sizeof decoder, "%.*s.decoder.bias", (int)length, l->signature.names[i]);
        size_t at = onv_listed_find(l, decoder);
        l->signature.explained[i] = at != SIZE_MAX && l->signature.explained[at];
    }
}

static const char *last_part(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot != NULL ? dot + 1 : name;
}

/* A name that nothing explains: best of the module itself, and one that is called as the module would
 * call what the operation takes there. */
static size_t find_left(const onv_lowering *l, const onv_weight_read *read, onv_weight_role role)
{
    if (!onv_rule_is_on("lower.find_left")) return SIZE_MAX;
    size_t best = SIZE_MAX, first, end;
    uint32_t best_rank = UINT32_MAX;
    bool wants_bias = strcmp(read->slot, "bias") == 0;
    find_inside(l, read->scope, &first, &end);
    for (size_t i = first; i < end; i++) {
        const char *name = last_part(l->signature.names[i]);
        bool is_free = !l->signature.explained[i] && !l->signature.waits[i];
        uint32_t depth = is_free ? depth_in(l->signature.names[i], read->scope) : UINT32_MAX;
        if (depth > 1 || (depth > 0 && read->scope[0] == '\0')) continue;
        bool is_bias = strstr(name, "bias") != NULL;
        if (is_bias && role == ONV_WEIGHT_IS_NUMBER && !wants_bias) continue;
        bool is_called = role == ONV_WEIGHT_IS_ROWS || strcmp(name, read->slot) == 0;
        uint32_t rank = depth + (is_called ? 0 : is_bias == wants_bias ? 2 : 4);
        if (rank >= best_rank) continue;
        best = i;
        best_rank = rank;
    }
    return best;
}

/* The bias beside a weight "conv.weight" is that of an operation without one. */
static void wait_for_bias(const onv_lowering *l, const onv_weight_read *read)
{
    char name[1024];
    size_t length = read->parameter != NULL ? strlen(read->parameter) : 0;
    static const char weight[] = "weight";
    if (length < sizeof weight || length >= sizeof name) return;
    length -= sizeof weight - 1;
    if (strcmp(read->parameter + length, weight) != 0) return;
    snprintf(name, sizeof name, "%.*sbias", (int)length, read->parameter);
    size_t at = onv_listed_find(l, name);
    if (at != SIZE_MAX && !l->signature.explained[at]) l->signature.waits[at] = true;
}

/* The argument of the call that the read stands for: one that is called as the module calls it, or the only one. */
static const char *find_argument(const onv_emitter *e, const onv_weight_read *read)
{
    const onv_node *node = &e->model->nodes.at[read->node];
    const char *found = NULL;
    for (uint32_t i = 0; i < onv_noted(node)->n_parameters; i++) {
        const char *name = onv_noted(node)->parameters[i];
        bool is_taken = false;
        for (uint32_t k = 0; k < node->n_inputs && !is_taken; k++)
            is_taken = k != read->k && onv_is_value(node->inputs[k]) &&
                       onv_model_value(e->model, node->inputs[k])->name == name;
        if (is_taken) continue;
        if (strcmp(last_part(name), read->slot) == 0) return name;
        if (onv_noted(node)->n_parameters == 1) found = name;
    }
    return found;
}

/* The file has that parameter, with another size: a convolution that standardizes its weight calls a batch norm, whose weight
 * it has made of another one. Of sets of vectors for each sample, and of sums of products, no better name is known. */
static bool is_another(const onv_lowering *l, size_t listed, const onv_value *value)
{
    const onv_value *stored = l->signature.stored[listed];
    return stored != NULL && stored->tensor->elems > 0 && value->tensor != NULL &&
           value->tensor->elems != stored->tensor->elems &&
           !onv_is_call_of(value->name, "expand einsum");
}

static void name_exactly(const onv_lowering *l)
{
    for (size_t i = 0; i < l->weights.reads.count; i++) {
        onv_weight_read *read = &l->weights.reads.at[i];
        const onv_value *value = &l->emit.model->values.at[read->value];
        size_t at = find_attribute(l, read->scope, read->slot);
        if (value->role == ONV_ROLE_PARAMETER && read->k == 1) read->parameter = value->name;
        const char *argument = at == SIZE_MAX ? find_argument(&l->emit, read) : NULL;
        if (argument != NULL) at = onv_listed_find(l, argument);
        if (at == SIZE_MAX || is_another(l, at, value)) continue;
        l->signature.explained[at] = true;
        read->parameter = l->signature.names[at];
    }
}

static void name_the_rest(const onv_lowering *l, onv_weight_role role)
{
    for (size_t i = 0; i < l->weights.reads.count; i++) {
        onv_weight_read *read = &l->weights.reads.at[i];
        if (i > 0 && onv_weight_same_owner(read, read - 1)) {
            if (read->parameter == NULL) read->parameter = read[-1].parameter;
            continue;
        }
        if (read->parameter != NULL || onv_weight_role_of(l, read) != role) continue;
        size_t at = find_left(l, read, role);
        if (at == SIZE_MAX) continue;
        l->signature.explained[at] = true;
        read->parameter = l->signature.names[at];
    }
}

/* Buffers of norms: those of each norm are counted. */
static bool is_statistic(const char *buffer)
{
    static const char *const names[] = {"running_mean", "running_var", "num_batches_tracked"};
    const char *name = last_part(buffer);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

/* By name: buffers of the network that the file has no tensor of. */
static onv_status find_lacking(onv_lowering *l)
{
    const onv_model *model = l->emit.model;
    onv_ptr_map has = {0};
    bool fits = true;
    for (size_t i = 0; i < model->values.count && model->listed.n_buffers > 0 && fits; i++)
        if (model->values.at[i].tensor != NULL)
            fits = onv_ptr_map_set(&has, model->values.at[i].name, 1);
    l->signature.lacking =
        ONV_ARENA_ARRAY(&l->emit.model->arena, const char *, model->listed.n_buffers);
    for (size_t i = 0; i < model->listed.n_buffers && l->signature.lacking != NULL; i++) {
        if (onv_ptr_map_get(&has, model->listed.buffers[i], NULL)) continue;
        l->signature.lacks_buffers = true;
        if (i < model->listed.n_registered && !is_statistic(model->listed.buffers[i]))
            l->signature.lacking[l->signature.n_lacking++] = model->listed.buffers[i];
    }
    onv_ptr_map_cleanup(&has);
    return fits && l->signature.lacking != NULL ? ONV_OK : onv_fail_memory(l->emit.err);
}

/* One that two lines list is registered if one of them says so. */
onv_status onv_buffers_list(onv_lowering *l)
{
    const onv_listed *listed = &l->emit.model->listed;
    for (size_t i = listed->n_buffers; i-- > 0;)
        if (!onv_ptr_map_set(&l->signature.buffers, listed->buffers[i], i < listed->n_registered))
            return onv_fail_memory(l->emit.err);
    return ONV_OK;
}

bool onv_is_listed_buffer(const onv_lowering *l, const char *name, bool *registered)
{
    uint32_t value = 0;
    const char *interned = onv_interned(&l->emit.model->strings, name);
    bool found = interned != NULL && onv_ptr_map_get(&l->signature.buffers, interned, &value);
    if (registered != NULL) *registered = value != 0;
    return found;
}

onv_status onv_signature_prepare(onv_lowering *l)
{
    const onv_model *model = l->emit.model;
    l->signature.count = l->emit.options->as_exported ? 0 : model->listed.n_parameters;
    l->signature.lacks_buffers = l->signature.count == 0;
    if (l->signature.count == 0) return ONV_OK;
    ONV_TRY(find_lacking(l));
    l->signature.names =
        onv_emit_checked(&l->emit, onv_arena_copy(&l->emit.model->arena, model->listed.parameters,
                                                  l->signature.count * sizeof *l->signature.names));
    l->signature.explained = ONV_EMIT_ARRAY(&l->emit, bool, l->signature.count);
    l->signature.waits = ONV_EMIT_ARRAY(&l->emit, bool, l->signature.count);
    l->signature.stored = ONV_EMIT_ARRAY(&l->emit, const onv_value *, l->signature.count);
    if (l->emit.status != ONV_OK) return l->emit.status;
    qsort(l->signature.names, l->signature.count, sizeof *l->signature.names, by_text);
    explain_modules(l);
    explain_head(l);
    name_exactly(l);
    name_the_rest(l, ONV_WEIGHT_IS_TAKEN);
    for (size_t i = 0; i < l->weights.reads.count; i++) wait_for_bias(l, &l->weights.reads.at[i]);
    /* Before tables of positions, say, that are none. */
    name_the_rest(l, ONV_WEIGHT_IS_SPREAD);
    name_the_rest(l, ONV_WEIGHT_IS_ROWS);
    name_the_rest(l, ONV_WEIGHT_IS_UNSURE);
    name_the_rest(l, ONV_WEIGHT_IS_NUMBER);
    return l->emit.status;
}

/* The bias of which the node's weight tells. */
static size_t find_dropped(onv_lowering *l, const onv_node *node, char *module, size_t size)
{
    const onv_weight_read *read =
        node->n_inputs > 1 ? onv_weight_owner(l, node->inputs[1], node, 1) : NULL;
    const char *name = read != NULL ? read->parameter : NULL;
    const char *dot = name != NULL ? strrchr(name, '.') : NULL;
    if (dot == NULL || strcmp(dot + 1, "weight") != 0 || (size_t)(dot - name) >= size)
        return SIZE_MAX;
    snprintf(module, size, "%.*s", (int)(dot - name), name);
    size_t at = find_attribute(l, module, "bias");
    return at != SIZE_MAX && l->signature.waits[at] ? at : SIZE_MAX;
}

uint32_t onv_dropped_bias(onv_lowering *l, const onv_node *node, int64_t size)
{
    if (!onv_rule_is_on("lower.dropped_bias")) return ONV_NO_TENSOR;
    char module[1024];
    if (size <= 0 || l->signature.count == 0 || l->emit.status != ONV_OK) return ONV_NO_TENSOR;
    size_t at = find_dropped(l, node, module, sizeof module);
    if (at == SIZE_MAX) return ONV_NO_TENSOR;
    uint32_t again;
    if (l->signature.explained[at] &&
        onv_ptr_map_get(&l->weights.layers, l->signature.names[at], &again))
        return again;
    l->signature.explained[at] = true;
    uint8_t dtype = onv_model_value(l->emit.model, node->inputs[1])->type.dtype;
    uint32_t bias = onv_lost_parameter(&l->emit, dtype, size, module, "bias");
    if (bias != ONV_NO_TENSOR && !onv_ptr_map_set(&l->weights.layers, l->signature.names[at], bias))
        l->emit.status = onv_fail_memory(l->emit.err);
    return bias;
}
