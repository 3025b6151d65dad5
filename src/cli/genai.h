/* A folder of onnxruntime-genai, read: genai_config.json. */
#ifndef ONV_CLI_GENAI_H
#define ONV_CLI_GENAI_H

#include <jansson.h>

#include "onnxvram/onnxvram.h"

enum {
    ONV_GENAI_MODELS = 6,
    ONV_GENAI_DECODERS = 2,
    ONV_GENAI_ORT = 8,
    ONV_GENAI_NAME = 256,
    ONV_GENAI_PATH = 4096,
    ONV_GENAI_LAYERS = 4096
};

typedef struct onv_genai_model {
    const char *role; /* "decoder", "draft", "encoder", "embedding", "vision", "speech" */
    char path[ONV_GENAI_PATH];
} onv_genai_model;

/* Its cache, and names of its inputs; of the caches without their number, what is before and behind it. */
typedef struct onv_genai_decoder {
    int64_t head_size, kv_heads;
    char ids[ONV_GENAI_NAME], embeddings[ONV_GENAI_NAME], mask[ONV_GENAI_NAME];
    char caches[2][2][ONV_GENAI_NAME];
    int64_t
        window; /* positions that caches of layers with a sliding window have at most; 0: as many as others */
    bool names_windowed; /* else all layers have one */
    bool is_windowed[ONV_GENAI_LAYERS];
} onv_genai_decoder;

typedef struct onv_genai {
    json_t *json;
    onv_genai_model models[ONV_GENAI_MODELS]; /* the decoder is the first one, then its draft */
    size_t n_models;
    onv_genai_decoder decoders[ONV_GENAI_DECODERS];
    size_t n_decoders; /* 2: the second one drafts what the first one verifies */
    int64_t vocabulary, context, max_length, batch, beams, chunk, draft_tokens;
    uint64_t n_ends; /* words that end a sequence */
    char ort[ONV_GENAI_ORT]
            [2 * ONV_GENAI_NAME]; /* the decoder's settings of ONNX Runtime, as --ort takes them */
    size_t n_ort;
    bool shares; /* past and present are one buffer */
    bool is_cpu; /* no provider but the CPU's */
} onv_genai;

/* The caller cleans up, after a failure, too; then `error` says what was expected. */
bool onv_genai_read(const char *folder, onv_genai *g, onv_error *error);

/* The same of a text, with the folder that names are in. */
bool onv_genai_parse(const char *text, size_t bytes, const char *folder, onv_genai *g,
                     onv_error *error);
void onv_genai_cleanup(onv_genai *g);

/* Whether the patterns of the configuration name that input as a cache. */
bool onv_genai_is_cache(const onv_genai_decoder *g, const char *name);

/* Whether the layer whose cache has that name has a sliding window. */
bool onv_genai_is_windowed(const onv_genai_decoder *g, const char *cache);

#endif
