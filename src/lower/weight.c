/* Which weights of the file are parameters of the network, and whose.
 *
 * The newer exporter notes parameters and buffers by name. What it folded itself has no note: a
 * transposed weight, a view of one, a mask, zeros. The nodes that read it tell: their notes name the
 * module, its class and PyTorch's operation. It also keeps one copy of small tensors that are equal, as
 * are the zeros and ones of a network that was never trained; each module that reads one has its own.
 *
 * Takes the graph and its notes. Gives all reads of initializers, sorted by value and owner, and, when asked, what a read stands
 * for. Keeps the reads: what is found later of one, its tensor, is written into it.
 */
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/rules.h"
#include "base/sort.h"
#include "ir/origin.h"
#include "lower/lowering.h"

/* The exporter keeps one copy of equal tensors up to this many elements. */
enum { MAX_SHARED_ELEMS = 1024 };

/* --- The reads --------------------------------------------------------------------------------- */

static int by_owner(const void *left, const void *right)
{
    const onv_weight_read *a = left, *b = right;
    if (a->value != b->value) return a->value < b->value ? -1 : 1;
    int scopes = strcmp(a->scope, b->scope);
    return scopes != 0 ? scopes : strcmp(a->slot, b->slot);
}

bool onv_weight_same_owner(const onv_weight_read *a, const onv_weight_read *b)
{
    return by_owner(a, b) == 0;
}

static onv_status list_reads(onv_lowering *l)
{
    const onv_model *model = l->emit.model;
    for (uint32_t i = 0; i < model->nodes.count; i++) {
        const onv_node *node = &model->nodes.at[i];
        if (node->graph.index != 0) continue;
        for (uint32_t k = 0; k < node->n_inputs; k++) {
            if (!onv_is_value(node->inputs[k])) continue;
            const onv_value *value = &model->values.at[node->inputs[k].index];
            if (!onv_value_may_train(model, value)) continue;
            onv_weight_read read = {.value = node->inputs[k].index,
                                    .node = i,
                                    .k = k,
                                    .place = onv_weight_place_of(node, k),
                                    .scope = onv_noted(node)->scope,
                                    .slot = onv_weight_slot_name(node, k),
                                    .tensor = ONV_NO_TENSOR};
            if (!onv_vec_push(&l->weights.reads, read)) return onv_fail_memory(l->emit.err);
        }
    }
    onv_sort(l->weights.reads.at, l->weights.reads.count, sizeof *l->weights.reads.at, by_owner);
    for (uint32_t i = (uint32_t)l->weights.reads.count; i-- > 0;)
        l->weights.values[l->weights.reads.at[i].value].first_read = i + 1;
    return ONV_OK;
}

static const onv_weight_read *end_of_reads(const onv_lowering *l)
{
    return l->weights.reads.at + l->weights.reads.count;
}

static onv_weight_read *reads_of(const onv_lowering *l, uint32_t value)
{
    uint32_t first = l->weights.values[value].first_read;
    return first > 0 ? &l->weights.reads.at[first - 1] : NULL;
}

/* --- What a weight is -------------------------------------------------------------------------- */

/* "val_84": what PyTorch's exporter computed itself has no name in the network. */
bool onv_has_made_up_name(const char *name)
{
    size_t digits = strncmp(name, "val_", 4) == 0 ? strspn(name + 4, "0123456789") : 0;
    return digits > 0 && name[4 + digits] == '\0';
}

/* What the forward pass makes anew each time; a condition that is a factor, too (convert_element_type). */
static bool is_made_in_forward(const char *name)
{
    static const char makers[] = "zeros zeros_like ones ones_like full full_like empty empty_like "
                                 "new_zeros new_ones new_full new_empty arange eye linspace tril "
                                 "triu masked_fill where convert_element_type_default";
    return onv_is_call_of(name, makers);
}

onv_weight_role onv_weight_role_of(const onv_lowering *l, const onv_weight_read *read)
{
    const onv_value *value = &l->emit.model->values.at[read->value];
    const char *name = value->name;
    if (value->role != ONV_ROLE_NOT_NOTED || value->tensor == NULL ||
        l->weights.values[read->value].is_statistic ||
        !onv_dtype_is_float((onv_dtype)value->tensor->type.dtype))
        return ONV_WEIGHT_IS_OTHER;
    if (read->place == ONV_PLACE_WEIGHT)
        return onv_noted(&l->emit.model->nodes.at[read->node])->takes_buffer ? ONV_WEIGHT_IS_OTHER
                                                                             : ONV_WEIGHT_IS_TAKEN;
    bool made = true;
    for (const onv_weight_read *at = reads_of(l, read->value);
         at != NULL && at < end_of_reads(l) && at->value == read->value; at++) {
        if (at->place == ONV_PLACE_WEIGHT) return ONV_WEIGHT_IS_OTHER;
        made &= at->place == ONV_PLACE_MADE;
    }
    if (made || is_made_in_forward(name) || strchr(name, '.') != NULL) return ONV_WEIGHT_IS_OTHER;
    if (value->tensor->elems > 1 && onv_is_call_of(name, "embedding")) return ONV_WEIGHT_IS_ROWS;
    if (value->tensor->elems > 1)
        return onv_is_call_of(name, "expand") ? ONV_WEIGHT_IS_SPREAD : ONV_WEIGHT_IS_UNSURE;
    return onv_has_made_up_name(name) || strncmp(name, "scalar_tensor", 13) == 0
               ? ONV_WEIGHT_IS_OTHER
               : ONV_WEIGHT_IS_NUMBER;
}

/* Ones that the exporter alone has, for the scale of layer norms without weights. */
bool onv_weight_is_unit(const onv_lowering *l, onv_value_id id)
{
    const onv_weight_read *at = reads_of(l, id.index);
    if (at == NULL || onv_model_value(l->emit.model, id)->role != ONV_ROLE_NOT_NOTED) return false;
    for (; at < end_of_reads(l) && at->value == id.index; at++) {
        const onv_node *node = &l->emit.model->nodes.at[at->node];
        if (!onv_noted(node)->lacks_scale || at->k != 1 || node->code != ONV_OP_LayerNormalization)
            return false;
    }
    return true;
}

/* A read that is told to be that of a parameter. */
static const onv_weight_read *find_named(const onv_lowering *l, uint32_t index)
{
    for (const onv_weight_read *at = reads_of(l, index); at != NULL && at < end_of_reads(l); at++) {
        if (at->value != index) break;
        if (at->parameter != NULL) return at;
    }
    return NULL;
}

/* What was expanded or repeated of a parameter for all samples. */
static bool is_spread(onv_lowering *l, const onv_weight_read *first, const onv_weight_read *named,
                      onv_weight_verdict *v)
{
    if (!onv_rule_is_on("lower.spread")) return false;
    const onv_value *value = &l->emit.model->values.at[first->value];
    if (!onv_is_call_of(value->name, "expand repeat tile")) return false;
    const onv_node *node = &l->emit.model->nodes.at[first->node];
    bool is_bias = named != NULL && strstr(named->parameter, "bias") != NULL;
    /* A class token; or positions, where no listed parameter is left for it. */
    bool may_be_token = node->code == ONV_OP_Concat && (named != NULL || l->signature.count == 0);
    if (may_be_token || is_bias) {
        *v = (onv_weight_verdict){ONV_WEIGHT_EXPANDED, named != NULL, first};
        return true;
    }
    if (named == NULL || !onv_weight_may_be_uniform(&l->emit, value->tensor, ONV_MOST_HEAD))
        return false;
    *v = (onv_weight_verdict){ONV_WEIGHT_EXPANDED, true, named};
    return true;
}

/* The operation that reads it takes a weight there, or a buffer, or what a layer made. `made`: all take what they made. */
static bool is_told_by_place(const onv_lowering *l, uint32_t index, onv_weight_verdict *v,
                             bool *made)
{
    for (const onv_weight_read *at = v->read; at < end_of_reads(l) && at->value == index; at++) {
        const onv_node *node = &l->emit.model->nodes.at[at->node];
        /* A filter that code made, a wavelet, say: no listed parameter has its name, nor is left for it. */
        bool is_filter = at->place == ONV_PLACE_WEIGHT && !onv_noted(node)->takes_buffer &&
                         l->signature.count > 0 &&
                         onv_weight_is_view(l->emit.model->values.at[index].name) &&
                         find_named(l, index) == NULL;
        if (at->place == ONV_PLACE_WEIGHT) {
            onv_weight_use use = is_filter                       ? ONV_WEIGHT_MADE
                                 : onv_noted(node)->takes_buffer ? ONV_WEIGHT_BUFFER
                                                                 : ONV_WEIGHT_TRAINED;
            *v = (onv_weight_verdict){use, true, at};
            return true;
        }
        *made &= at->place == ONV_PLACE_MADE;
    }
    return false;
}

/* A float weight without a note, in an export that has them. */
onv_weight_verdict onv_weight_judge(onv_lowering *l, uint32_t index)
{
    const onv_value *value = &l->emit.model->values.at[index];
    const onv_weight_read *first = reads_of(l, index);
    onv_weight_verdict v = {ONV_WEIGHT_CONSTANT, false, first};
    if (first == NULL) {
        v.use = strchr(value->name, '.') != NULL ? ONV_WEIGHT_TRAINED : ONV_WEIGHT_CONSTANT;
        return v;
    }
    bool made = true;
    if (is_told_by_place(l, index, &v, &made)) return v;
    /* "conv1.weight_bias": derived from a parameter's name. */
    if (strchr(value->name, '.') != NULL)
        return (onv_weight_verdict){ONV_WEIGHT_TRAINED, true, first};
    /* A view of a parameter that an operation reads which would not train what it is given: a table that is resized. */
    made &= !onv_weight_is_view(value->name) || find_named(l, index) == NULL;
    if (made || is_made_in_forward(value->name))
        return (onv_weight_verdict){ONV_WEIGHT_MADE, true, first};
    if (onv_is_call_of(value->name, "embedding"))
        return (onv_weight_verdict){ONV_WEIGHT_TRAINED, false, first};
    const onv_node *node = &l->emit.model->nodes.at[first->node];
    if (!onv_node_is_noted(node)) { /* nothing is known of the reader: as an older export */
        v.use = onv_has_made_up_name(value->name) ? ONV_WEIGHT_TRAINED : ONV_WEIGHT_CONSTANT;
        return v;
    }
    const onv_weight_read *named = find_named(l, index);
    if (onv_weight_is_for_all(value, named))
        return (onv_weight_verdict){ONV_WEIGHT_TRAINED, false, named};
    if (is_spread(l, first, named, &v)) return v;
    if (named != NULL) return (onv_weight_verdict){ONV_WEIGHT_TRAINED, true, named};
    if (onv_has_made_up_name(value->name))
        return (onv_weight_verdict){ONV_WEIGHT_MADE, false, first};
    if (!l->signature.lacks_buffers || !onv_is_call_of(value->name, "slice select view reshape"))
        v.use = ONV_WEIGHT_MADE; /* a part of a buffer is one, any other result is computed anew */
    return v;
}

/* A result of operations on a parameter: in a layer that would read the parameter itself any but a view, elsewhere what
 * calculates. */
static bool is_derived(const onv_emitter *e, const onv_value *value, const onv_weight_read *read)
{
    if (!onv_rule_is_on("lower.derived")) return false;
    static const char calculates[] = "add sub mul div neg pow exp log sqrt rsqrt sigmoid softmax "
                                     "softplus matmul mm tanh einsum bmm";
    const onv_node *node = &e->model->nodes.at[read->node];
    const char *name = value->name;
    bool is_layer = onv_node_is_aten(node, "linear conv1d conv2d conv3d convolution");
    /* A gain times a number. */
    if (read->k == 1 && onv_noted(node)->weight_call != NULL &&
        node->code == ONV_OP_BatchNormalization)
        return strchr(name, '.') == NULL;
    if (onv_has_made_up_name(name) && read->k == 1 && onv_noted(node)->weight_call != NULL)
        name = onv_noted(node)->weight_call;
    if (value->type.rank < 2 || onv_has_made_up_name(name) || strchr(name, '.') != NULL)
        return false;
    /* A view is of the parameter itself; standardized weights end with one. */
    if (is_layer && name == value->name)
        return !onv_is_call_of(name, "unsqueeze squeeze transpose permute t");
    return onv_is_call_of(name, calculates);
}

/* "relative_attention_bias", "rel_attn_embed.weight". */
static bool is_relative(const char *parameter)
{
    return strstr(parameter, "relative") != NULL ||
           (strstr(parameter, "rel_") != NULL && strstr(parameter, "embed.weight") != NULL);
}

onv_weight_use onv_weight_use_of(onv_lowering *l, onv_value_id id)
{
    const onv_value *value = onv_model_value(l->emit.model, id);
    bool is_float = onv_dtype_is_float((onv_dtype)value->tensor->type.dtype);
    if (l->weights.values[id.index].is_statistic || value->role == ONV_ROLE_BUFFER)
        return ONV_WEIGHT_BUFFER;
    bool noted = l->weights.has_notes && value->role == ONV_ROLE_NOT_NOTED;
    if (!onv_value_may_train(l->emit.model, value)) return ONV_WEIGHT_CONSTANT;
    if (!is_float) {
        bool made =
            noted && (is_made_in_forward(value->name) || onv_weight_is_computed(value->name));
        return made ? ONV_WEIGHT_MADE : ONV_WEIGHT_CONSTANT;
    }
    if (!noted) return ONV_WEIGHT_TRAINED;
    onv_weight_verdict v = onv_weight_judge(l, id.index);
    if (v.use != ONV_WEIGHT_TRAINED || v.read == NULL || l->emit.options->as_exported) return v.use;
    if (onv_is_call_of(value->name, "embedding") && !v.is_sure) return ONV_WEIGHT_LOOKED_UP;
    if (onv_weight_is_for_all(value, v.read)) return ONV_WEIGHT_LOOKED_UP_FOR_ALL;
    bool of_distances = v.read->parameter != NULL && value->type.rank >= 3 &&
                        is_relative(v.read->parameter) && strstr(v.read->parameter, "proj") == NULL;
    if (of_distances && value->role == ONV_ROLE_NOT_NOTED && v.read->place != ONV_PLACE_WEIGHT)
        return ONV_WEIGHT_BIASES;
    return is_derived(&l->emit, value, v.read) ? ONV_WEIGHT_DERIVED : ONV_WEIGHT_TRAINED;
}

/* --- Owners ------------------------------------------------------------------------------------ */

/* Does the call name that parameter? */
static bool is_argument(const onv_node *node, const char *parameter)
{
    for (uint32_t i = 0; i < onv_noted(node)->n_parameters; i++)
        if (onv_noted(node)->parameters[i] == parameter) return true;
    return false;
}

static bool find_sharing(onv_lowering *l, onv_value_id id)
{
    if (!onv_rule_is_on("lower.sharing")) return false;
    const onv_value *value = onv_model_value(l->emit.model, id);
    const onv_weight_read *first = reads_of(l, id.index);
    if (!l->weights.has_notes || l->emit.options->as_exported || first == NULL) return false;
    if (value->tensor->elems > MAX_SHARED_ELEMS) return false;
    bool several = false, all_tell = true;
    const char *told = NULL;
    for (const onv_weight_read *at = first; at < end_of_reads(l) && at->value == id.index; at++) {
        if (told != NULL && at->parameter != NULL && strcmp(told, at->parameter) != 0) return true;
        if (at->parameter != NULL) told = at->parameter;
        all_tell &= is_argument(&l->emit.model->nodes.at[at->node], at->parameter);
    }
    if (all_tell || !onv_weight_may_be_uniform(&l->emit, value->tensor, 0)) return false;
    for (const onv_weight_read *at = first; at < end_of_reads(l) && at->value == id.index; at++) {
        if (!onv_node_is_noted(&l->emit.model->nodes.at[at->node])) return false;
        several |= !onv_weight_same_owner(first, at);
    }
    return several;
}

bool onv_weight_is_shared(onv_lowering *l, onv_value_id id)
{
    enum { UNKNOWN, ONE, SEVERAL };
    uint8_t *sharing = &l->weights.values[id.index].sharing;
    if (*sharing == UNKNOWN) *sharing = find_sharing(l, id) ? SEVERAL : ONE;
    return *sharing == SEVERAL;
}

/* Of "layer1.0", "layer1.0.weight" is, and "layer1.01.weight" is not. */
static bool is_inside(const char *path, const char *module)
{
    size_t length = strlen(module);
    return path != NULL && strncmp(path, module, length) == 0 && path[length] == '.';
}

const char *onv_weight_name(onv_lowering *l, onv_value_id id, const onv_weight_read *read)
{
    const onv_value *value = onv_model_value(l->emit.model, id);
    if (value->role == ONV_ROLE_PARAMETER &&
        (!onv_weight_is_shared(l, id) ||
         (read->scope[0] != '\0' && is_inside(value->name, read->scope))))
        return value->name;
    if (read != NULL && read->parameter != NULL) return read->parameter;
    if (read == NULL || read->scope[0] == '\0' || strchr(value->name, '.') != NULL)
        if (read == NULL || !onv_weight_is_shared(l, id)) return value->name;
    return onv_parameter_name(&l->emit, read->scope, read->slot);
}

/* The first of the sorted reads that is not before this one. */
static onv_weight_read *lower_bound(const onv_lowering *l, const onv_weight_read *key)
{
    size_t low = 0, high = l->weights.reads.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (by_owner(&l->weights.reads.at[middle], key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < l->weights.reads.count ? &l->weights.reads.at[low] : NULL;
}

onv_weight_read *onv_weight_owner(onv_lowering *l, onv_value_id id, const onv_node *node,
                                  uint32_t k)
{
    onv_weight_read key = {.value = id.index, .slot = ""};
    key.scope = node != NULL ? onv_noted(node)->scope : "";
    if (node != NULL && k != UINT32_MAX) key.slot = onv_weight_slot_name(node, k);
    onv_weight_read *at = lower_bound(l, &key);
    if (at != NULL && onv_weight_same_owner(at, &key)) return at;
    key.slot = "";
    at = lower_bound(l, &key);
    bool in_scope = at != NULL && at->value == id.index && strcmp(at->scope, key.scope) == 0;
    return in_scope ? at : reads_of(l, id.index);
}

onv_weight_read *onv_weight_next_owner(const onv_lowering *l, const onv_weight_read *read)
{
    onv_weight_read *at = &l->weights.reads.at[read - l->weights.reads.at];
    while (at < end_of_reads(l) && onv_weight_same_owner(at, read)) at++;
    return at < end_of_reads(l) && at->value == read->value ? at : NULL;
}

/* A layer that runs several times has its weight folded each time, and so has one that modules share: one parameter.
 * Modules that may have several of one kind are left alone. The name where this can be, else NULL. */
const char *onv_weight_layer(onv_emitter *e, onv_value_id id, const onv_weight_read *read)
{
    if (!onv_rule_is_on("lower.weight_layer")) return NULL;
    static const char linear[] = "torch.nn.modules.linear.Linear",
                      conv[] = "torch.nn.modules.conv.Conv";
    const char *name = onv_model_value(e->model, id)->name;
    if (read == NULL || !onv_has_made_up_name(name)) return NULL;
    if (read->scope[0] == '\0') return NULL;
    const char *class = onv_noted(&e->model->nodes.at[read->node])->module_class;
    bool single =
        class != NULL && (strcmp(class, linear) == 0 || strncmp(class, conv, sizeof conv - 1) == 0);
    return single ? read->parameter : NULL;
}

/* --- Preparation ------------------------------------------------------------------------------- */

/* Running statistics. The exporter keeps one copy of equal vectors: one may be a weight, too. */
static void mark_statistics(const onv_lowering *l)
{
    for (uint32_t k = 4; k > 0; k--)
        for (size_t i = 0; i < l->emit.model->nodes.count; i++) {
            const onv_node *node = &l->emit.model->nodes.at[i];
            if (k < node->n_inputs && onv_is_value(node->inputs[k]) &&
                node->code == ONV_OP_BatchNormalization)
                l->weights.values[node->inputs[k].index].is_statistic = k >= 3;
        }
}

onv_status onv_weights_prepare(onv_lowering *l)
{
    const onv_model *model = l->emit.model;
    onv_arena *arena = &l->emit.model->arena;
    l->weights.values = onv_heap_calloc(model->values.count + 1, sizeof *l->weights.values);
    l->weights.inplace_used = ONV_ARENA_ARRAY(arena, bool, l->emit.options->n_inplace);
    if (l->weights.values == NULL || arena->failed) return onv_fail_memory(l->emit.err);
    mark_statistics(l);
    ONV_TRY(onv_patterns_begin(&l->emit));
    for (size_t i = 0; i < model->nodes.count; i++) {
        const onv_node *node = &model->nodes.at[i];
        l->weights.has_notes |= onv_node_is_noted(node);
    }
    for (size_t i = 0; i < model->values.count; i++)
        l->weights.has_notes |= model->values.at[i].role == ONV_ROLE_PARAMETER;
    ONV_TRY(onv_buffers_list(l));
    ONV_TRY(list_reads(l));
    return onv_signature_prepare(l);
}
