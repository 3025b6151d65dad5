/* Calls that the exporter merged because they are equal: the same operation of the same tensors, as `x - mean` written twice, or a
 * table that each layer computes of what all are given. PyTorch runs each of them, and may keep each result; the file has one,
 * which is counted once, and a diagnostic has the most that the others keep.
 *
 * Names tell: PyTorch numbers the calls of an operation, "sub", "sub_1", "sub_2", so that a number that is missing was a call, of
 * the largest result of its kind at most. Only operations that are not computed from constants are looked at, as those are folded,
 * which leaves gaps too. Of other operations the arguments of a call name those that its node does not read. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "lower/lowering.h"

static const char *const kinds[] = {
    "avg_pool2d", "dropout",        "gelu", "group_norm", "hardswish", "layer_norm", "max_pool2d",
    "mish",       "native_dropout", "relu", "rms_norm",   "sigmoid",   "silu",       "softmax",
    "sub",        "tanh",
};

enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

/* Calls of one kind. */
typedef struct numbered {
    uint32_t found, end; /* different ones in the file; behind the largest number */
    uint64_t most_bytes;
} numbered;

typedef struct search {
    numbered of[N_KINDS];
    uint64_t *kept;   /* by node: what its operations keep for backward */
    onv_ptr_map seen; /* names, which are interned */
    bool failed;
} search;

/* "sub_5" of a call: its kind and its number. */
typedef struct call_name {
    const char *name;
    size_t length; /* without the number */
    uint32_t number;
} call_name;

static call_name split(const char *name)
{
    call_name n = {name, strlen(name), 0};
    size_t length = n.length;
    while (length > 0 && name[length - 1] >= '0' && name[length - 1] <= '9') length--;
    if (length < 2 || length == n.length || name[length - 1] != '_') return n;
    for (const char *at = name + length; *at != '\0' && n.number < UINT32_MAX / 16; at++)
        n.number = 10 * n.number + (uint32_t)(*at - '0');
    n.length = length - 1;
    return n;
}

static bool is_like(const call_name *a, const call_name *b)
{
    return a->length == b->length && memcmp(a->name, b->name, a->length) == 0;
}

static numbered *kind_of(search *s, const char *name, uint32_t *number)
{
    call_name call = split(name);
    *number = call.number;
    for (uint32_t k = 0; k < N_KINDS; k++)
        if (strlen(kinds[k]) == call.length && memcmp(kinds[k], name, call.length) == 0)
            return &s->of[k];
    return NULL;
}

static bool is_new(search *s, const char *name)
{
    if (onv_ptr_map_get(&s->seen, name, NULL)) return false;
    if (!onv_ptr_map_set(&s->seen, name, 1)) s->failed = true;
    return true;
}

static void count_call(const onv_lowering *l, search *s, const onv_node *node)
{
    uint32_t number;
    numbered *kind = kind_of(s, onv_noted(node)->source_op, &number);
    if (kind == NULL || node->n_outputs == 0 || !onv_is_value(node->outputs[0])) return;
    uint32_t fusion = l->fusions->of_node[node - l->emit.model->nodes.at];
    onv_value_id out = fusion != 0 ? l->fusions->at[fusion - 1].out : node->outputs[0];
    uint64_t bytes = onv_tensor_at(&l->emit, l->values[out.index].tensor).bytes;
    if (bytes > kind->most_bytes) kind->most_bytes = bytes;
    if (number >= kind->end) kind->end = number + 1;
    kind->found += is_new(s, onv_noted(node)->source_op);
}

/* Views have no memory, and a loop mostly computes them once. */
static bool is_view(const onv_emitter *e, onv_node_id id)
{
    return onv_is_node(id) &&
           ONV_IS_ANY(onv_model_node(e->model, id), ONV_OP_Reshape, ONV_OP_Unsqueeze,
                      ONV_OP_Squeeze, ONV_OP_Transpose, ONV_OP_Expand);
}

/* An argument of the node's call that is no input of the node. */
static void count_named(onv_lowering *l, search *s, const onv_node *node)
{
    uint32_t number;
    const char *name = onv_noted(node)->merged_call;
    numbered *kind = name != NULL ? kind_of(s, name, &number) : NULL;
    if (kind != NULL && number >= kind->end) kind->end = number + 1;
    if (name == NULL || kind != NULL) return;
    call_name wanted = split(name);
    uint64_t most = 0; /* the note does not say which input it would be, if several are like it */
    bool is_one = false;
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        if (!onv_is_value(node->inputs[k])) continue;
        const onv_value *value = onv_model_value(l->emit.model, node->inputs[k]);
        call_name read = split(value->name);
        if (!is_like(&wanted, &read) || wanted.number <= read.number ||
            is_view(&l->emit, value->producer))
            continue;
        uint32_t tensor = l->values[node->inputs[k].index].tensor;
        uint64_t kept = onv_is_node(value->producer) ? s->kept[value->producer.index] : 0;
        uint64_t bytes = onv_u64_plus(onv_tensor_at(&l->emit, tensor).bytes, kept);
        if (bytes > most) most = bytes;
        is_one = true;
    }
    if (is_one && is_new(s, name)) onv_say(&l->emit, ONV_SAID_merged, NULL, most, NULL);
}

/* Activations that operations of each node keep. */
static uint64_t *kept_by_node(onv_lowering *l)
{
    const onv_eager *eager = l->emit.eager;
    size_t n = l->emit.model->nodes.count;
    uint64_t *kept = ONV_EMIT_ARRAY(&l->emit, uint64_t, n);
    for (size_t i = 0; kept != NULL && i < eager->ops.count; i++) {
        const onv_eager_op *op = &eager->ops.at[i];
        for (uint32_t k = 0; op->node.index < n && k < op->n_saved; k++)
            if (eager->storages.at[op->saved[k]].kind == ONV_STORAGE_ACTIVATION)
                kept[op->node.index] =
                    onv_u64_plus(kept[op->node.index], eager->storages.at[op->saved[k]].bytes);
    }
    return kept;
}

void onv_merged_calls(onv_lowering *l)
{
    search s = {.seen = {0}, .kept = kept_by_node(l)};
    s.failed = s.kept == NULL;
    for (uint32_t i = 0; i < l->emit.model->nodes.count && !s.failed; i++) {
        const onv_node *node = &l->emit.model->nodes.at[i];
        if (node->graph.index != 0) continue;
        count_call(l, &s, node);
        count_named(l, &s, node);
    }
    onv_tally *merged = &l->emit.said[ONV_SAID_merged].of;
    for (uint32_t k = 0; k < N_KINDS; k++) {
        uint32_t missing = s.of[k].found > 0 ? s.of[k].end - s.of[k].found : 0;
        merged->count += missing;
        merged->bytes = onv_u64_plus(merged->bytes, onv_u64_times(missing, s.of[k].most_bytes));
    }
    onv_ptr_map_cleanup(&s.seen);
    if (s.failed) onv_emit_fail_memory(&l->emit);
}
