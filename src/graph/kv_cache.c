#include "graph/kv_cache.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"

/* Attention operators: where the past comes in, and where the present goes out. */
static const struct operator_pair {
    uint16_t op; /* onv_op_name */
    const char *domain;
    uint8_t past, present;
    bool in_place; /* ONNX Runtime takes one buffer for both (past_present_share_buffer) */
} operators[] = {
    {ONV_OP_GroupQueryAttention, "com.microsoft", 3, 1, true},
    {ONV_OP_GroupQueryAttention, "com.microsoft", 4, 2, true},
    {ONV_OP_PagedAttention, "com.microsoft", 3, 1, true},
    {ONV_OP_PagedAttention, "com.microsoft", 4, 2, true},
    {ONV_OP_Attention, "com.microsoft", 4, 1, true},
    {ONV_OP_MultiHeadAttention, "com.microsoft", 6, 1, false},
    {ONV_OP_MultiHeadAttention, "com.microsoft", 7, 2, false},
    {ONV_OP_DecoderMaskedMultiHeadAttention, "com.microsoft", 5, 1, true},
    {ONV_OP_DecoderMaskedMultiHeadAttention, "com.microsoft", 6, 2, true},
    {ONV_OP_DecoderMaskedSelfAttention, "com.microsoft", 4, 1, true},
    {ONV_OP_SparseAttention, "com.microsoft", 3, 1, true},
    {ONV_OP_SparseAttention, "com.microsoft", 4, 2, true},
    {ONV_OP_Attention, "", 4, 1, false},
    {ONV_OP_Attention, "", 5, 2, false},
    {ONV_OP_ScatterND, "", 0, 0, true},
    {ONV_OP_ScatterElements, "", 0, 0, true},
    {ONV_OP_TensorScatter, "", 0, 0, true},
};

enum { MOST_HOPS = 16 };

typedef struct finder {
    onv_model *model;
    const onv_graph *graph;
    uint32_t *pair_of; /* by value: 1 + the pair of an input or output; 0: none */
    onv_kv_cache *cache;
} finder;

/* --- Pairs ------------------------------------------------------------------------------------- */

static bool is_cache_type(const onv_value *value)
{
    return value->type.kind == ONV_TYPE_TENSOR && value->type.rank >= 3;
}

static bool is_free_input(const finder *f, onv_value_id id)
{
    const onv_value *value = onv_model_value(f->model, id);
    return value->kind == ONV_VALUE_INPUT && value->graph.index == 0 && is_cache_type(value) &&
           f->pair_of[id.index] == 0;
}

static bool is_free_output(const finder *f, onv_value_id id)
{
    const onv_value *value = onv_model_value(f->model, id);
    return value->is_output && value->graph.index == 0 && is_cache_type(value) &&
           f->pair_of[id.index] == 0;
}

/* The one axis on which they differ; -1: none, -2: several, or they are not of a kind. */
static int differing_axis(const onv_type *a, const onv_type *b)
{
    int axis = -1;
    if (a->rank != b->rank || a->dtype != b->dtype) return -2;
    for (int i = 0; i < a->rank; i++) {
        if (onv_dim_same(a->dims[i], b->dims[i])) continue;
        if (axis >= 0) return -2;
        axis = i;
    }
    return axis;
}

/* `axis`: where the two are of one size, the sequence of an operator; -1: as the sizes say. */
static void add_pair(finder *f, onv_value_id past, onv_value_id present, int axis, bool in_place)
{
    onv_kv_cache *cache = f->cache;
    onv_kv_pair pair = {.past = past, .present = present, .axis = -1, .in_place = in_place};
    if (onv_is_value(present)) {
        int differs = differing_axis(&onv_model_value(f->model, past)->type,
                                     &onv_model_value(f->model, present)->type);
        if (differs == -2) return;
        pair.axis = differs >= 0 ? differs : axis;
        f->pair_of[present.index] = cache->n_pairs + 1;
    }
    f->pair_of[past.index] = cache->n_pairs + 1;
    cache->pairs[cache->n_pairs++] = pair;
}

/* Back through nodes that hand on what they get. */
static onv_value_id origin(const finder *f, onv_value_id id)
{
    for (int hop = 0; hop < MOST_HOPS && onv_is_value(id); hop++) {
        const onv_value *value = onv_model_value(f->model, id);
        if (!onv_is_node(value->producer)) return id;
        const onv_node *node = onv_model_node(f->model, value->producer);
        if (node->domain[0] != '\0' || node->n_inputs == 0 ||
            (node->code != ONV_OP_Identity && node->code != ONV_OP_Cast))
            return id;
        id = node->inputs[0];
    }
    return id;
}

static void join_by_operator(finder *f, onv_value_id output, const onv_node *node, uint32_t k)
{
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        const struct operator_pair *o = &operators[i];
        if (o->present != k || o->past >= node->n_inputs || o->op != node->code ||
            strcmp(o->domain, node->domain) != 0)
            continue;
        onv_value_id past =
            onv_is_value(node->inputs[o->past]) ? origin(f, node->inputs[o->past]) : ONV_NO_VALUE;
        if (!onv_is_value(past) || !is_free_input(f, past)) continue;
        /* The sequence is the last but one: batch, heads, sequence, width. */
        add_pair(f, past, output, onv_model_value(f->model, past)->type.rank - 2, o->in_place);
        return;
    }
}

static void join_by_concat(finder *f, onv_value_id output, const onv_node *node)
{
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        onv_value_id past = origin(f, node->inputs[k]);
        if (!is_free_input(f, past)) continue;
        int axis = differing_axis(&onv_model_value(f->model, past)->type,
                                  &onv_model_value(f->model, output)->type);
        if (axis < 0) continue;
        add_pair(f, past, output, axis, false);
        return;
    }
}

static void join_by_nodes(finder *f)
{
    for (uint32_t i = 0; i < f->graph->n_outputs; i++) {
        onv_value_id output = f->graph->outputs[i];
        if (!onv_is_value(output) || !is_free_output(f, output)) continue;
        const onv_value *value = onv_model_value(f->model, origin(f, output));
        if (!onv_is_node(value->producer)) continue;
        const onv_node *node = onv_model_node(f->model, value->producer);
        if (node->code == ONV_OP_Concat && node->domain[0] == '\0')
            join_by_concat(f, output, node);
        else
            join_by_operator(f, output, node, value->output_index);
    }
}

/* --- Names ------------------------------------------------------------------------------------- */

static const char *const past_words[] = {"past_key_values", "past_key_value", "past", "cache_in",
                                         "in_cache"};
static const char *const present_words[] = {
    "present_key_values",  "present_key_value", "present",  "updated_past_key_values",
    "new_past_key_values", "cache_out",         "out_cache"};

/* The rest of a name behind the word that it begins with; NULL: with none of them. */
static const char *rest_behind(const char *name, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(words[i]);
        if (strncmp(name, words[i], length) == 0 &&
            (name[length] == '.' || name[length] == '_' || name[length] == '\0'))
            return name + length;
    }
    return NULL;
}

typedef struct named {
    const char *rest;
    onv_value_id id;
} named;

/* Separators are alike. */
static int compare_rests(const char *a, const char *b)
{
    for (;; a++, b++) {
        char x = (char)(*a == '_' || *a == '/' ? '.' : *a);
        char y = (char)(*b == '_' || *b == '/' ? '.' : *b);
        if (x != y) return x < y ? -1 : 1;
        if (x == '\0') return 0;
    }
}

static int compare_named(const void *a, const void *b)
{
    const named *x = a, *y = b;
    int order = compare_rests(x->rest, y->rest);
    return order != 0 ? order : (x->id.index > y->id.index) - (x->id.index < y->id.index);
}

static uint32_t list_named(const finder *f, bool outputs, named *list)
{
    uint32_t n = outputs ? f->graph->n_outputs : f->graph->n_inputs, count = 0;
    for (uint32_t i = 0; i < n; i++) {
        onv_value_id id = outputs ? f->graph->outputs[i] : f->graph->inputs[i];
        if (!onv_is_value(id) || !(outputs ? is_free_output(f, id) : is_free_input(f, id)))
            continue;
        const char *name = onv_model_value(f->model, id)->name;
        const char *rest =
            outputs ? rest_behind(name, present_words, sizeof present_words / sizeof *present_words)
                    : rest_behind(name, past_words, sizeof past_words / sizeof *past_words);
        if (rest != NULL) list[count++] = (named){rest, id};
    }
    if (count > 0) qsort(list, count, sizeof *list, compare_named);
    return count;
}

static onv_status join_by_names(finder *f, onv_error *err)
{
    onv_arena *arena = &f->model->arena;
    named *pasts = ONV_ARENA_ARRAY(arena, named, f->graph->n_inputs);
    named *presents = ONV_ARENA_ARRAY(arena, named, f->graph->n_outputs);
    if (pasts == NULL || presents == NULL) return onv_fail_memory(err);
    uint32_t n = list_named(f, false, pasts), m = list_named(f, true, presents);
    for (uint32_t i = 0, k = 0; i < n; i++) {
        while (k < m && compare_rests(presents[k].rest, pasts[i].rest) < 0) k++;
        bool has_present = k < m && compare_rests(presents[k].rest, pasts[i].rest) == 0;
        add_pair(f, pasts[i].id, has_present ? presents[k++].id : ONV_NO_VALUE, -1, false);
    }
    return ONV_OK;
}

/* --- Sizes ------------------------------------------------------------------------------------- */

/* What is not bound is not counted. */
static void measure(const finder *f, onv_kv_pair *pair)
{
    onv_dims *dims = &f->model->dims;
    const onv_type *past = &onv_model_value(f->model, pair->past)->type, *present = past;
    if (onv_is_value(pair->present)) present = &onv_model_value(f->model, pair->present)->type;
    onv_dim past_bytes = onv_type_bytes(dims, past), present_bytes = onv_type_bytes(dims, present);
    if (!onv_dim_is_const(past_bytes)) return;
    pair->past_bytes = (uint64_t)past_bytes.raw;
    if (!onv_dim_is_const(present_bytes)) return;
    pair->present_bytes = (uint64_t)present_bytes.raw;
    if (pair->axis < 0) return;
    onv_dim past_tokens = onv_dim_substitute_bounds(dims, past->dims[pair->axis]);
    onv_dim tokens = onv_dim_substitute_bounds(dims, present->dims[pair->axis]);
    if (!onv_dim_is_const(past_tokens) || !onv_dim_is_const(tokens)) return;
    pair->past_tokens = past_tokens.raw;
    pair->present_tokens = tokens.raw;
    /* In a buffer for both the present is what there is room for. */
    if (f->cache->mode == ONV_KV_SHARED && !onv_dim_is_const(present->dims[pair->axis])) {
        pair->present_tokens = pair->past_tokens;
        pair->present_bytes = pair->past_bytes;
    }
    if (pair->present_tokens > 0)
        pair->token_bytes = pair->present_bytes / (uint64_t)pair->present_tokens;
}

/* The symbol that the file gives the past. */
static const char *name_of_past(const finder *f, const onv_kv_pair *pair)
{
    const onv_type *declared = onv_model_value(f->model, pair->past)->declared;
    if (declared == NULL || pair->axis >= declared->rank) return NULL;
    onv_dim d = declared->dims[pair->axis];
    return onv_dim_is_symbol(&f->model->dims, d) ? onv_dim_symbol_name(&f->model->dims, d) : NULL;
}

static onv_status add_up(finder *f, onv_error *err)
{
    onv_kv_cache *cache = f->cache;
    bool fits = true;
    for (uint32_t i = 0; i < cache->n_pairs; i++) {
        onv_kv_pair *pair = &cache->pairs[i];
        measure(f, pair);
        if (pair->axis < 0) {
            fits &= onv_u64_add(cache->fixed_bytes, pair->past_bytes, &cache->fixed_bytes);
            continue;
        }
        cache->n_growing++;
        cache->n_in_place += pair->in_place;
        fits &= onv_u64_add(cache->past_bytes, pair->past_bytes, &cache->past_bytes);
        fits &= onv_u64_add(cache->present_bytes, pair->present_bytes, &cache->present_bytes);
        fits &= onv_u64_add(cache->token_bytes, pair->token_bytes, &cache->token_bytes);
        if (pair->past_tokens > cache->past_tokens) cache->past_tokens = pair->past_tokens;
        if (pair->present_tokens > cache->tokens) cache->tokens = pair->present_tokens;
        pair->past_dim = name_of_past(f, pair);
        if (cache->past_dim == NULL) cache->past_dim = pair->past_dim;
    }
    /* Of five dims one tells keys from values. */
    bool is_joint = cache->n_growing > 0;
    for (uint32_t i = 0; i < cache->n_pairs; i++)
        if (cache->pairs[i].axis >= 0)
            is_joint &= onv_model_value(f->model, cache->pairs[i].past)->type.rank > 4;
    cache->n_layers = is_joint ? cache->n_growing : cache->n_growing / 2 + cache->n_growing % 2;
    if (fits) return ONV_OK;
    return onv_fail(err, ONV_ERR_OVERFLOW, "the key-value cache does not fit 64 bits");
}

onv_status onv_kv_cache_find(onv_model *model, onv_kv_cache *cache, onv_error *err)
{
    uint8_t mode = cache->mode;
    *cache = (onv_kv_cache){.mode = mode, .longest = -1};
    finder f = {.model = model,
                .graph = onv_model_graph(model, (onv_graph_id){0}),
                .pair_of = ONV_ARENA_ARRAY(&model->arena, uint32_t, model->values.count),
                .cache = cache};
    cache->pairs = ONV_ARENA_ARRAY(&model->arena, onv_kv_pair, f.graph->n_inputs);
    if (f.pair_of == NULL || cache->pairs == NULL) return onv_fail_memory(err);
    join_by_nodes(&f);
    ONV_TRY(join_by_names(&f, err));
    ONV_TRY(add_up(&f, err));
    if (cache->n_growing > 0) return ONV_OK;
    return onv_fail(err, ONV_ERR_USAGE,
                    "no key-value cache was found: no input and output like past_key_values.0.key "
                    "and present.0.key, and no input that a Concat or an attention makes an output "
                    "of; export the decoder with its past");
}

onv_status onv_kv_cache_hold(onv_model *model, const onv_kv_cache *cache, onv_error *err)
{
    const onv_graph *graph = onv_model_graph(model, (onv_graph_id){0});
    onv_shared_output *list = ONV_ARENA_ARRAY(&model->arena, onv_shared_output, cache->n_growing);
    uint32_t *place = ONV_ARENA_ARRAY(&model->arena, uint32_t, model->values.count);
    if (list == NULL || place == NULL) return onv_fail_memory(err);
    for (uint32_t i = 0; i < graph->n_inputs; i++) place[graph->inputs[i].index] = i;
    for (uint32_t i = 0; i < graph->n_outputs; i++)
        if (onv_is_value(graph->outputs[i])) place[graph->outputs[i].index] = i;
    for (uint32_t i = 0; i < cache->n_pairs; i++) {
        const onv_kv_pair *pair = &cache->pairs[i];
        if (pair->axis < 0) continue;
        list[model->n_shared++] = (onv_shared_output){.input = place[pair->past.index],
                                                      .output = place[pair->present.index],
                                                      .is_copy = cache->mode == ONV_KV_COPIES};
    }
    model->shared = list;
    return ONV_OK;
}
