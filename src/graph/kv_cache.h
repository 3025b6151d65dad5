/* Key-value caches: inputs that hold the past of a decoder, and outputs that hold the same and one step more.
 *
 * Pairs are found by what joins them, and by their names:
 *   - an attention operator that takes the past and gives the present;
 *   - Concat on the sequence, or a write into the past (ScatterND, ScatterElements, TensorScatter), whose
 *     result is an output of the graph, perhaps through Identity;
 *   - past_key_values.0.key and present.0.key (transformers, optimum), past_key_0 and present_key_0 (ONNX
 *     Runtime), and the like: a word for the past, a word for the present, and the rest is the same.
 * A past without a present, known by its name, is that of a cross-attention: it does not grow.
 *
 * Requires: inference. Cost: linear, times the logarithm of inputs and outputs.
 */
#ifndef ONV_GRAPH_KV_CACHE_H
#define ONV_GRAPH_KV_CACHE_H

#include "ir/model.h"

/* As the application holds it between steps. */
typedef enum onv_kv_mode {
    ONV_KV_NOT_ASKED,
    ONV_KV_COPIES, /* the present is a new tensor beside the past */
    ONV_KV_SHARED, /* one buffer of the present's size, which the step fills further */
} onv_kv_mode;

typedef struct onv_kv_pair {
    onv_value_id past;
    onv_value_id present; /* ONV_NO_VALUE: there is none */
    int axis;             /* of the sequence; -1: it does not grow */
    int64_t past_tokens, present_tokens;
    uint64_t past_bytes, present_bytes;
    uint64_t token_bytes; /* of one more token, at the batch that is bound; 0: it does not grow */
    const char *past_dim; /* the symbol that the file gives the length of the past; NULL: none */
    bool in_place;        /* its operator fills a shared buffer by itself */
} onv_kv_pair;

typedef struct onv_kv_cache {
    uint8_t mode; /* onv_kv_mode */
    onv_kv_pair *pairs;
    uint32_t n_pairs, n_growing, n_in_place;
    uint32_t n_layers;           /* that many pairs of a key and a value, or single tensors */
    uint64_t past_bytes;         /* of those that grow */
    uint64_t present_bytes;      /* likewise: what the cache is after the step */
    uint64_t fixed_bytes;        /* of those that do not */
    uint64_t token_bytes;        /* of all layers */
    int64_t past_tokens, tokens; /* the most of a pair, before and after the step */
    const char *past_dim;        /* of the first one that has one; or NULL */
    int64_t longest;             /* with a budget: tokens after the step that fit; -1: not asked */
} onv_kv_cache;

/* ONV_ERR_USAGE where the model has none. In the model's arena. */
onv_status onv_kv_cache_find(onv_model *model, onv_kv_cache *cache, onv_error *err);

/* Makes liveness and runtimes count what the application holds, one buffer for each pair that grows or two:
 * sets the model's `shared`. */
onv_status onv_kv_cache_hold(onv_model *model, const onv_kv_cache *cache, onv_error *err);

/* All that the application holds of it. */
static inline uint64_t onv_kv_cache_bytes(const onv_kv_cache *cache)
{
    return cache->present_bytes + cache->fixed_bytes +
           (cache->mode == ONV_KV_COPIES ? cache->past_bytes : 0);
}

#endif
