/* Batch norms that the exporter merged, as those of untrained branches are equal: each has weights of ones and biases of
 * zeros, of which the file has one copy, and reads the same tensor.
 *
 * A listed norm without a tensor ("mixer.norm.identity"), beside what reads the result of a norm of another module: of
 * "mixer.norm" a node, or the weight that it reads, is a part. That norm, and an activation behind it, ran again for
 * this reader, with weights and statistics of its own. */
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "ir/path.h"
#include "lower/lowering.h"

enum { MAX_CHAIN = ONV_MAX_AFTER_NORM, MAX_PATH = 1024 };

static bool is_activation(const onv_node *node)
{
    static const char *const ops[] = {"Relu", "LeakyRelu", "Clip",     "Sigmoid", "HardSwish",
                                      "Elu",  "Gelu",      "Softplus", "Mish"};
    bool is_any = false;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        is_any |= strcmp(node->op_type, ops[i]) == 0;
    return is_any && node->n_inputs >= 1;
}

/* From the value back to the norm's result; 0: it is of none, or of one that has a single reader. */
static uint32_t chain_of(const onv_lowering *l, onv_value_id value, onv_value_id *chain)
{
    bool is_shared = false;
    for (uint32_t n = 0; n < MAX_CHAIN && onv_is_value(value);) {
        onv_node_id producer = onv_model_value(l->emit.model, value)->producer;
        if (!onv_is_node(producer)) return 0;
        const onv_node *node = onv_model_node(l->emit.model, producer);
        is_shared |= l->fusions.n_uses[value.index] > 1;
        chain[n++] = value;
        if (strcmp(node->op_type, "BatchNormalization") == 0)
            return is_shared && node->n_inputs >= 5 && onv_is_value(node->inputs[1]) &&
                           onv_is_value(node->inputs[2]) && node->scope != NULL
                       ? n
                       : 0;
        if (!is_activation(node)) return 0;
        value = node->inputs[0];
    }
    return 0;
}

static const onv_node *maker(const onv_lowering *l, onv_value_id value)
{
    return onv_model_node(l->emit.model, onv_model_value(l->emit.model, value)->producer);
}

/* "a.norm" of a listed "a.norm.weight" that nothing explains, with its bias: the length, 0: it is none. */
static size_t missing_norm(const onv_lowering *l, size_t i, char *module, size_t *bias)
{
    static const char suffix[] = ".weight";
    const char *name = l->signature.names[i];
    size_t length = strlen(name), n = sizeof suffix - 1;
    if (l->signature.explained[i] || length <= n || length + 1 >= MAX_PATH ||
        strcmp(name + length - n, suffix) != 0)
        return 0;
    snprintf(module, MAX_PATH, "%.*s.bias", (int)(length - n), name);
    *bias = onv_listed_find(l, module);
    if (*bias == SIZE_MAX || l->signature.explained[*bias]) return 0;
    module[length - n] = '\0';
    return length - n;
}

/* Does the node belong to the module that the norm is of? */
static bool is_own(const onv_node *node, const onv_node *norm)
{
    const char *dot = strrchr(norm->scope, '.');
    size_t length = dot != NULL ? (size_t)(dot - norm->scope) : 0;
    return length > 0 && onv_path_is_part(node->scope, norm->scope, length);
}

/* Nodes of other modules that read the result of a norm that has other readers, in their order. */
static bool list_readers(onv_lowering *l)
{
    onv_value_id chain[MAX_CHAIN];
    for (uint32_t i = 0; i < l->emit.model->nodes.count; i++) {
        const onv_node *node = &l->emit.model->nodes.at[i];
        for (uint32_t k = 0; k < node->n_inputs && node->graph.index == 0; k++) {
            uint32_t n = chain_of(l, node->inputs[k], chain);
            if (n == 0 || is_activation(node) || is_own(node, maker(l, chain[n - 1]))) continue;
            onv_merged_norm found = {.reader = {i}, .value = node->inputs[k], .listed = SIZE_MAX};
            if (!onv_vec_push(&l->merged.norms, found)) return false;
            break;
        }
    }
    return true;
}

/* A norm that is missing right inside of the module, or of one in it; not in the module in which the other norm is. */
static bool find_in(onv_lowering *l, onv_merged_norm *at, const char *around, size_t length)
{
    enum { MAX_NAMES = 256 };
    onv_value_id chain[MAX_CHAIN];
    char module[MAX_PATH];
    size_t bias;
    uint32_t n = chain_of(l, at->value, chain);
    if (length == 0 || length >= MAX_PATH || n == 0) return false;
    const char *other = maker(l, chain[n - 1])->scope;
    snprintf(module, sizeof module, "%.*s", (int)length, around);
    size_t first = onv_listed_lower_bound(l, module);
    for (size_t i = first; i < l->signature.count && i - first < MAX_NAMES; i++) {
        if (!onv_path_is_part(l->signature.names[i], around, length)) return false;
        if (missing_norm(l, i, module, &bias) == 0) continue;
        const char *inner = strchr(module + length + 1, '.');
        size_t parent = inner != NULL ? (size_t)(inner - module) : length;
        if ((inner != NULL && strchr(inner + 1, '.') != NULL) ||
            onv_path_is_part(other, module, parent))
            continue;
        at->listed = i;
        l->signature.explained[i] = l->signature.explained[bias] = true;
        return true;
    }
    return false;
}

/* Without the last `n` parts. */
static size_t length_around(const char *name, uint32_t n)
{
    size_t length = strlen(name);
    while (n-- > 0) {
        const char *dot = memrchr(name, '.', length);
        length = dot != NULL ? (size_t)(dot - name) : 0;
    }
    return length;
}

onv_status onv_merged_norms_find(onv_lowering *l)
{
    if (l->signature.count == 0 || l->emit.options->inference || l->emit.options->as_exported)
        return ONV_OK;
    if (!list_readers(l)) return onv_fail_memory(l->emit.err);
    for (size_t i = 0; i < l->merged.norms.count; i++) {
        onv_merged_norm *at = &l->merged.norms.at[i];
        const onv_node *node = onv_model_node(l->emit.model, at->reader);
        const char *scope = node->scope != NULL ? node->scope : "";
        bool found =
            find_in(l, at, scope, strlen(scope)) || find_in(l, at, scope, length_around(scope, 1));
        for (uint32_t k = 1; k < node->n_inputs && k < 3 && !found; k++) {
            if (!onv_is_value(node->inputs[k])) continue;
            const onv_value *weight = onv_model_value(l->emit.model, node->inputs[k]);
            if (onv_value_is_weight(weight))
                found = find_in(l, at, weight->name, length_around(weight->name, 2));
        }
    }
    return ONV_OK;
}

/* Its weights stand in for those that the file has; statistics are its own, too. */
static void repeat_norm(onv_lowering *l, const onv_merged_norm *at)
{
    onv_value_id chain[MAX_CHAIN];
    uint32_t n = chain_of(l, at->value, chain), before[2];
    const onv_node *norm = maker(l, chain[n - 1]);
    onv_shape shape;
    if (!onv_value_shape(l, norm->inputs[1], &shape) || shape.rank != 1) return;
    const char *name = l->signature.names[at->listed];
    int length = (int)(strlen(name) - strlen(".weight"));
    const char *module = onv_intern_n(&l->emit.model->strings, name, (size_t)length);
    if (module == NULL) {
        l->emit.status = onv_fail_memory(l->emit.err);
        return;
    }
    bool known[2];
    static const char *const slots[] = {"weight", "bias"};
    for (uint32_t k = 0; k < 2; k++) {
        uint32_t id = norm->inputs[1 + k].index;
        before[k] = l->values[id].tensor;
        known[k] = l->values[id].is_known;
        l->values[id].tensor = onv_lost_parameter(l, ONV_FLOAT, shape.dims[0], module, slots[k]);
        l->values[id].is_known = true;
        onv_storage_new(&l->emit, (uint64_t)shape.dims[0] * sizeof(float), ONV_STORAGE_BUFFER,
                        module);
    }
    for (uint32_t i = 0; i < n; i++) l->merged.before_norm[i] = l->values[chain[i].index].tensor;
    l->merged.norm = at;
    while (n-- > 0) onv_repeat_value(l, chain[n]);
    for (uint32_t k = 0; k < 2; k++) {
        uint32_t id = norm->inputs[1 + k].index;
        l->values[id].tensor = before[k];
        l->values[id].is_known = known[k];
    }
    l->tally.repeated_norms.count++;
}

/* For the readers behind this one the norm is the other one. */
static void restore(onv_lowering *l)
{
    onv_value_id chain[MAX_CHAIN];
    uint32_t n = l->merged.norm != NULL ? chain_of(l, l->merged.norm->value, chain) : 0;
    for (uint32_t i = 0; i < n; i++) l->values[chain[i].index].tensor = l->merged.before_norm[i];
    l->merged.norm = NULL;
}

bool onv_merged_norm_gave(const onv_lowering *l, onv_value_id id)
{
    onv_value_id chain[MAX_CHAIN];
    uint32_t n = l->merged.norm != NULL ? chain_of(l, l->merged.norm->value, chain) : 0;
    for (uint32_t i = 0; i < n; i++)
        if (chain[i].index == id.index) return true;
    return false;
}

void onv_merged_norms_repeat(onv_lowering *l)
{
    restore(l);
    for (; l->merged.next_norm < l->merged.norms.count; l->merged.next_norm++) {
        const onv_merged_norm *at = &l->merged.norms.at[l->merged.next_norm];
        if (at->reader.index > l->emit.node.index) return;
        if (at->reader.index == l->emit.node.index && at->listed != SIZE_MAX) repeat_norm(l, at);
    }
}
