/* genai_config.json, as onnxruntime-genai reads it (src/config.h): what is missing has its defaults. */
#include "cli/genai.h"

#include <stdlib.h>
#include <string.h>

#include "cli/read_text.h"

static const int64_t most_size = INT64_C(1) << 40;

#define fail(error, ...) onv_cli_fail((error), ONV_ERR_FORMAT, __VA_ARGS__)

/* --- Values ------------------------------------------------------------------------------------ */

/* A number of an object, or the fallback without one. False with a message where it is not a size. */
static bool read_size(const json_t *object, const char *key, int64_t fallback, int64_t *size,
                      onv_error *error)
{
    const json_t *value = json_object_get(object, key);
    *size = fallback;
    if (value == NULL || json_is_null(value)) return true;
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        json_integer_value(value) > most_size)
        return fail(error, "\"%s\" is to be a number from 0 to 2^40", key);
    *size = json_integer_value(value);
    return true;
}

static bool read_name(const json_t *object, const char *key, const char *fallback,
                      char name[ONV_GENAI_NAME], onv_error *error)
{
    const json_t *value = json_object_get(object, key);
    const char *text = value == NULL ? fallback : json_string_value(value);
    if (text == NULL || strlen(text) >= ONV_GENAI_NAME)
        return fail(error, "\"%s\" is to be a name of less than %d bytes", key, ONV_GENAI_NAME);
    memcpy(name, text, strlen(text) + 1);
    return true;
}

/* "past_key_values.%d.key": what is before the number, and behind it. */
static bool read_cache(const json_t *inputs, const char *key, const char *fallback,
                       char parts[2][ONV_GENAI_NAME], onv_error *error)
{
    char name[ONV_GENAI_NAME];
    if (!read_name(inputs, key, fallback, name, error)) return false;
    char *number = strstr(name, "%d");
    if (number == NULL)
        return fail(error, "\"%s\" is to have %%d where the number of the layer is, as in %s", key,
                    fallback);
    *number = '\0';
    memcpy(parts[0], name, strlen(name) + 1);
    memcpy(parts[1], number + 2, strlen(number + 2) + 1);
    return true;
}

/* --- Models ------------------------------------------------------------------------------------ */

/* A file of the folder itself: a name that leads elsewhere is refused. */
static bool add_model(onv_genai *g, const json_t *model, const char *role, const char *folder,
                      onv_error *error)
{
    const json_t *part = json_object_get(model, role), *file = json_object_get(part, "filename");
    if (file == NULL) return true;
    const char *name = json_string_value(file);
    if (name == NULL || name[0] == '\0' || strchr(name, '/') != NULL || name[0] == '.')
        return fail(error, "\"filename\" of \"%s\" is to be the name of a file in the folder",
                    role);
    onv_genai_model *to = &g->models[g->n_models++];
    int length = snprintf(to->path, sizeof to->path, "%s/%s", folder, name);
    to->role = role;
    return length > 0 && (size_t)length < sizeof to->path
               ? true
               : fail(error, "the name of the %s is too long", role);
}

/* What concerns memory, of a session or of its provider. */
static bool read_settings(onv_genai *g, const json_t *options, onv_error *error)
{
    static const char *const keys[] = {"session.use_device_allocator_for_initializers",
                                       "graph_optimization_level",
                                       "enable_mem_pattern",
                                       "arena_extend_strategy",
                                       "gpu_mem_limit",
                                       "cudnn_conv_algo_search"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && g->n_ort < ONV_GENAI_ORT; i++) {
        const json_t *value = json_object_get(options, keys[i]);
        const char *text = json_is_true(value) ? "1" : json_is_false(value) ? "0" : NULL;
        if (value == NULL) continue;
        if (text == NULL) text = json_string_value(value);
        if (text == NULL || strlen(text) >= ONV_GENAI_NAME)
            return fail(error, "\"%s\" is to be text, as in \"1\", or true or false", keys[i]);
        snprintf(g->ort[g->n_ort++], sizeof g->ort[0], "%s=%s", keys[i], text);
    }
    return true;
}

/* No provider is the CPU's; of others CUDA alone is known. */
static bool read_provider(onv_genai *g, const json_t *decoder, onv_error *error)
{
    const json_t *options = json_object_get(decoder, "session_options");
    const json_t *first = json_array_get(json_object_get(options, "provider_options"), 0);
    const json_t *cuda = json_object_get(first, "cuda");
    g->is_cpu = first == NULL;
    if (g->n_decoders == 1 && (!read_settings(g, options, error) || !read_settings(g, cuda, error)))
        return false;
    if (first == NULL || cuda != NULL) return true;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): jansson reads it alone, and takes it without const */
    json_t *provider = (json_t *)(uintptr_t)first;
    const char *name = json_object_iter_key(json_object_iter(provider));
    return fail(error, "its provider is '%.60s': the CUDA and the CPU provider are known",
                name != NULL ? name : "");
}

/* Caches of a sliding window hold no more than it, and what a chunk or the configuration adds (windowed_kv_cache.cpp). */
static bool read_window(const onv_genai *g, const json_t *decoder, onv_genai_decoder *to,
                        onv_error *error)
{
    enum { CPU_SLACK = 16 };
    const json_t *window = json_object_get(decoder, "sliding_window");
    int64_t slack;
    if (!read_size(window, "window_size", 0, &to->window, error) ||
        !read_size(window, "cache_slack", 0, &slack, error))
        return false;
    if (slack == 0 && g->is_cpu) slack = CPU_SLACK;
    if (slack < g->chunk - 1) slack = g->chunk - 1;
    const json_t *layers = json_object_get(window, "layers");
    to->names_windowed = json_array_size(layers) > 0;
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const json_t *layer = json_array_get(layers, i);
        json_int_t number = json_integer_value(layer);
        if (!json_is_integer(layer) || number < 0 || number >= ONV_GENAI_LAYERS)
            return fail(error, "\"layers\" of \"sliding_window\" are to be numbers from 0 to %d",
                        ONV_GENAI_LAYERS - 1);
        to->is_windowed[number] = true;
    }
    to->window = to->window == 0 || g->beams > 1 ? 0 : to->window + slack;
    return true;
}

static bool read_decoder(onv_genai *g, const json_t *decoder, onv_error *error)
{
    const json_t *inputs = json_object_get(decoder, "inputs");
    onv_genai_decoder *to = &g->decoders[g->n_decoders++];
    return read_size(decoder, "head_size", 0, &to->head_size, error) &&
           read_size(decoder, "num_key_value_heads", 0, &to->kv_heads, error) &&
           read_name(inputs, "input_ids", "input_ids", to->ids, error) &&
           read_name(inputs, "embeddings", "inputs_embeds", to->embeddings, error) &&
           read_name(inputs, "attention_mask", "attention_mask", to->mask, error) &&
           read_cache(inputs, "past_key_names", "past_key_values.%d.key", to->caches[0], error) &&
           read_cache(inputs, "past_value_names", "past_key_values.%d.value", to->caches[1],
                      error) &&
           read_provider(g, decoder, error) && read_window(g, decoder, to, error);
}

/* A pair serves one sequence: onnxruntime-genai refuses more. */
static bool read_draft(onv_genai *g, const json_t *draft, onv_error *error)
{
    bool was_cpu = g->is_cpu;
    const json_t *speculative = json_object_get(g->json, "speculative");
    if (draft == NULL) return true;
    if (!read_decoder(g, draft, error) ||
        !read_size(speculative, "max_draft_tokens", 4, &g->draft_tokens, error))
        return false;
    bool has_file = json_object_get(draft, "filename") != NULL;
    if (has_file && g->is_cpu == was_cpu && g->beams == 1) return true;
    return fail(error, "\"draft\" is to have a \"filename\" and the provider of \"decoder\", and "
                       "\"num_beams\" is to be 1");
}

static bool read_all(onv_genai *g, const char *folder, onv_error *error)
{
    static const char *const others[] = {"draft", "encoder", "embedding", "vision", "speech"};
    const json_t *model = json_object_get(g->json, "model");
    const json_t *search = json_object_get(g->json, "search");
    const json_t *decoder = json_object_get(model, "decoder");
    if (decoder == NULL) return fail(error, "it has no \"model\" with a \"decoder\"");
    if (!add_model(g, model, "decoder", folder, error)) return false;
    if (g->n_models == 0) return fail(error, "its decoder has no \"filename\"");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (!add_model(g, model, others[i], folder, error)) return false;
    g->n_ends = json_array_size(json_object_get(model, "eos_token_id"));
    if (g->n_ends == 0) g->n_ends = 1; /* a number, or the default */
    g->shares = json_is_true(json_object_get(search, "past_present_share_buffer"));
    if (!read_size(model, "vocab_size", 0, &g->vocabulary, error) ||
        !read_size(model, "context_length", 0, &g->context, error) ||
        !read_size(search, "max_length", g->context, &g->max_length, error) ||
        !read_size(search, "batch_size", 1, &g->batch, error) ||
        !read_size(search, "num_beams", 1, &g->beams, error) ||
        !read_size(search, "chunk_size", 0, &g->chunk, error) || !read_decoder(g, decoder, error) ||
        !read_draft(g, json_object_get(model, "draft"), error))
        return false;
    g->shares &= g->beams <= 1;
    if (g->max_length < 1 || g->batch < 1 || g->beams < 1)
        return fail(error,
                    "\"max_length\" (or \"context_length\"), \"batch_size\" and \"num_beams\" "
                    "are to be 1 or more");
    return true;
}

bool onv_genai_parse(const char *text, size_t bytes, const char *folder, onv_genai *g,
                     onv_error *error)
{
    json_error_t why;
    *g = (onv_genai){.json = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why)};
    if (g->json == NULL) return fail(error, "is not JSON: line %d: %.100s", why.line, why.text);
    return read_all(g, folder, error);
}

bool onv_genai_read(const char *folder, onv_genai *g, onv_error *error)
{
    char path[ONV_GENAI_PATH];
    size_t bytes;
    *g = (onv_genai){.json = NULL};
    int length = snprintf(path, sizeof path, "%s/genai_config.json", folder);
    if (length < 0 || (size_t)length >= sizeof path) return fail(error, "its name is too long");
    char *text = onv_cli_read_text(path, &bytes, error);
    bool good = text != NULL && onv_genai_parse(text, bytes, folder, g, error);
    free(text);
    return good;
}

void onv_genai_cleanup(onv_genai *g)
{
    json_decref(g->json);
}

bool onv_genai_is_cache(const onv_genai_decoder *g, const char *name)
{
    for (int i = 0; i < 2; i++) {
        size_t before = strlen(g->caches[i][0]);
        if (strncmp(name, g->caches[i][0], before) != 0) continue;
        const char *rest = name + before + strspn(name + before, "0123456789");
        if (rest > name + before && strcmp(rest, g->caches[i][1]) == 0) return true;
    }
    return false;
}

bool onv_genai_is_windowed(const onv_genai_decoder *g, const char *cache)
{
    unsigned long layer = strtoul(cache + strcspn(cache, "0123456789"), NULL, 10);
    return !g->names_windowed || (layer < ONV_GENAI_LAYERS && g->is_windowed[layer]);
}
