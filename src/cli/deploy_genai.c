/* What a folder of onnxruntime-genai takes on a device: a session for each of its models, and an arena of its own for
 * what it keeps beside them: caches, inputs, logits.
 *
 * Read in source (src/models/kv_cache.cpp, logits.cpp, decoder_only.cpp) and measured, the CUDA build of 0.18 without a GPU:
 * the allocator of these belongs to a session of its own, with an arena and handles; sessions run on the
 * application's stream, so that no graph has handles beside those of its session. */
#include "cli/deploy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/genai.h"
#include "cli/guard.h"
#include "cli/message.h"
#include "cli/read_text.h"
#include "cli/values.h"

enum { MOST_DIMS = 64, MOST_EVENTS = 8192, MOST_RANK = 8, COLUMNS = 5, ROWS = 5 };

/* Sizes of a request; prompt and context in tokens. */
typedef struct request {
    int64_t batch, prompt, context;
} request;

typedef struct need {
    uint64_t weights, cache, kept; /* kept: of caches, inputs and logits as their arena has them */
    uint64_t prefill_low, prefill_high, decode_low, decode_high; /* arenas of sessions */
    uint64_t libraries, context_low, context_high;
    uint64_t beside;             /* a search's, of the device: a part of what is kept */
    uint64_t low, high;          /* all of it */
    bool fits, may_fit;          /* the device that was asked about: every process, one of them */
    char gpu[ONV_CLI_SIZE_TEXT]; /* whose libraries count; "": none do */
    bool gpu_assumed;
} need;

/* A decoder: what its dims are called, and sessions of a prompt and of what is read later. */
typedef struct decoder {
    onv_analysis *unbound, *prefill, *decode;
} decoder;

typedef struct folder {
    const onv_cli *cli;
    onv_cli_deployment *to;
    onv_genai g;
    onv_dim_binding dims[MOST_DIMS]; /* of one analysis; names are the analysis' own */
    size_t n_dims;
    onv_event events[MOST_EVENTS]; /* what is kept beside the sessions, in the order of requests */
    size_t n_events;
    uint64_t kept; /* the sum of them; UINT64_MAX: it does not fit */
    decoder decoders[ONV_GENAI_DECODERS];
    onv_analysis *others[ONV_GENAI_MODELS];
    onv_session_run runs[ONV_GENAI_MODELS]; /* of one request */
    size_t n_runs;
    bool has_warned; /* of its models; further requests say the same */
} folder;

/* --- Names of dims ----------------------------------------------------------------------------- */

typedef struct dim_word {
    char text[ONV_GENAI_NAME];
} dim_word;

/* "[batch_size, 2, past, 64]": its words. */
static int split_shape(const char *shape, dim_word words[MOST_RANK])
{
    int n = 0;
    for (const char *at = shape + 1; *at != '\0' && *at != ']' && n < MOST_RANK; n++) {
        size_t length = strcspn(at, ",]");
        if (length >= ONV_GENAI_NAME) return 0;
        memcpy(words[n].text, at, length);
        words[n].text[length] = '\0';
        at += length;
        at += strspn(at, ", ");
    }
    return n;
}

/* A name that is bound already stays; numbers are no names. */
static void bind(folder *f, const char *name, int64_t size)
{
    bool is_number = name[strspn(name, "0123456789")] == '\0';
    for (size_t i = 0; i < f->n_dims; i++)
        if (strcmp(f->dims[i].name, name) == 0) return;
    if (is_number || size < 0 || f->n_dims == MOST_DIMS) return;
    char *copy = strdup(name);
    if (copy != NULL) f->dims[f->n_dims++] = (onv_dim_binding){copy, size};
}

static void forget_dims(folder *f)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the way to shed a const */
    for (size_t i = 0; i < f->n_dims; i++) free((char *)(uintptr_t)f->dims[i].name);
    f->n_dims = 0;
}

/* What --dim says of requests, whatever the models call it. */
static bool is_request(const char *name)
{
    return strcmp(name, "prompt") == 0 || strcmp(name, "context") == 0;
}

static void take_request(const onv_cli *cli, request *r)
{
    r->prompt = INT64_MAX;
    for (size_t i = 0; i < cli->analysis.n_dims; i++) {
        const onv_dim_binding *dim = &cli->analysis.dims[i];
        if (strcmp(dim->name, "context") == 0) r->context = dim->size;
        if (strcmp(dim->name, "prompt") == 0) r->prompt = dim->size;
    }
    if (r->prompt > r->context) r->prompt = r->context;
}

/* A size of a cache that the configuration tells: the model and --dim tell no other one. */
static bool bind_cache(folder *f, const char *input, const char *word, const char *key,
                       int64_t size, onv_error *error)
{
    int64_t found = strtoll(word, NULL, 10);
    if (size < 1) return true; /* it is not configured: the dim stays without a size */
    bind(f, word, size);
    for (size_t i = 0; i < f->n_dims; i++)
        if (strcmp(f->dims[i].name, word) == 0) found = f->dims[i].size;
    if (found == size) return true;
    return onv_cli_fail(error, ONV_ERR_USAGE,
                        "its input '%.80s' has %" PRId64
                        " for '%.40s', and \"%s\" of genai_config.json is %" PRId64
                        ": make them equal",
                        input, found, word, key, size);
}

/* The dims of inputs as a decoder names them: batch, tokens that are read, all tokens, tokens of the cache. */
static bool bind_inputs(folder *f, const onv_analysis *of, const onv_genai_decoder *g,
                        int64_t batch, int64_t read, int64_t total, int64_t past, onv_error *error)
{
    onv_tensor_info info;
    bool agree = true;
    for (size_t i = 0; i < f->cli->analysis.n_dims; i++)
        if (!is_request(f->cli->analysis.dims[i].name))
            bind(f, f->cli->analysis.dims[i].name, f->cli->analysis.dims[i].size);
    for (size_t i = 0; onv_analysis_tensor(of, i, &info); i++) {
        dim_word words[MOST_RANK];
        if (info.kind != ONV_TENSOR_INPUT || info.rank < 1) continue;
        int n = split_shape(info.shape, words);
        bool is_read = strcmp(info.name, g->ids) == 0 || strcmp(info.name, g->embeddings) == 0;
        if (n > 1 && (is_read || strcmp(info.name, g->mask) == 0)) {
            bind(f, words[0].text, batch);
            bind(f, words[1].text, is_read ? read : total);
        } else if (n == 4 && onv_genai_is_cache(g, info.name)) {
            bind(f, words[0].text, batch);
            bind(f, words[2].text, past);
            agree = agree &&
                    bind_cache(f, info.name, words[1].text, "num_key_value_heads", g->kv_heads,
                               error) &&
                    bind_cache(f, info.name, words[3].text, "head_size", g->head_size, error);
        } else if (n > 0) {
            bind(f, words[0].text, batch);
        }
    }
    return agree;
}

/* --- Analyses ---------------------------------------------------------------------------------- */

static onv_analysis *analyse(folder *f, const char *path, const char *runtime, onv_error *error)
{
    const char *ort[64] = {"io_binding=1"}; /* then the folder's, then those of the command line */
    onv_options options = f->cli->analysis;
    onv_analysis *analysis = NULL;
    size_t n = 1;
    for (size_t i = 0; i < f->g.n_ort; i++) ort[n++] = f->g.ort[i];
    for (size_t i = 0; i < options.n_ort && n < sizeof ort / sizeof ort[0]; i++)
        ort[n++] = options.ort[i];
    options.runtimes = runtime;
    options.ort = ort;
    options.n_ort = n;
    onv_cli_use_budget(f->cli, &options);
    if (strcmp(runtime, "ideal") == 0) { /* it has no libraries and no settings */
        options.n_ort = 0;
        options.compute_capability = 0;
        options.gpu = NULL;
    }
    options.batch = 0;
    options.dims = f->dims;
    options.n_dims = f->n_dims;
    onv_cli_guard(path);
    onv_analysis_new(path, &options, &analysis, error);
    return analysis;
}

static onv_analysis *run_session(folder *f, const onv_genai_model *model,
                                 onv_answer_runtime_info *session, onv_error *error)
{
    onv_analysis *a = analyse(f, model->path, f->g.is_cpu ? "cpu" : "ort", error);
    if (a != NULL && onv_analysis_answer_runtime(a, 0, session)) return a;
    if (a != NULL)
        onv_cli_fail(error, ONV_ERR_USAGE,
                     "the %s has dimensions without a size: its own report names them; bind each "
                     "with --dim",
                     model->role);
    onv_analysis_destroy(a);
    return NULL;
}

/* --- What is kept beside sessions -------------------------------------------------------------- */

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static void keep(folder *f, uint64_t bytes)
{
    if (bytes == 0) return;
    if (f->n_events < MOST_EVENTS)
        f->events[f->n_events] = (onv_event){.bytes = bytes, .frees = ONV_NO_INDEX};
    f->n_events++;
    if (__builtin_add_overflow(f->kept, bytes, &f->kept)) f->kept = UINT64_MAX;
}

static void run(folder *f, onv_analysis *session)
{
    f->runs[f->n_runs++] = (onv_session_run){session, f->n_events};
}

static uint64_t bytes_of_cache(const onv_genai_decoder *g, const onv_tensor_info *cache)
{
    dim_word words[MOST_RANK];
    if (g->window == 0 || !onv_genai_is_windowed(g, cache->name) ||
        split_shape(cache->shape, words) != 4)
        return cache->bytes;
    uint64_t length = strtoull(words[2].text, NULL, 10), most = (uint64_t)g->window;
    return length > most ? cache->bytes / length * most : cache->bytes;
}

static uint64_t keep_tensors(folder *f, const onv_genai_decoder *g, const onv_analysis *a,
                             onv_tensor_kind kind, bool of_cache)
{
    onv_tensor_info info;
    uint64_t before = f->kept;
    for (size_t i = 0; onv_analysis_tensor(a, i, &info); i++) {
        bool is_one = kind == ONV_TENSOR_INPUT
                          ? onv_genai_is_cache(g, info.name)
                          : strncmp(info.name, "present", strlen("present")) == 0;
        if (info.kind == kind && is_one == of_cache && info.bytes < ONV_SIZE_UNKNOWN)
            keep(f, of_cache ? bytes_of_cache(g, &info) : info.bytes);
    }
    return f->kept - before;
}

/* The words of all sequences; beams have them twice, and room for all that each ends with (beam_search_scorer_cuda.cpp). How
 * long they are, what ends them, and the next words (search_cuda.cpp). */
static void keep_sequences(folder *f, uint64_t sequences, uint64_t context)
{
    uint64_t words = times(times(sequences, context), sizeof(int32_t));
    bool is_search = f->g.beams > 1;
    for (int i = 0; i < (is_search ? 2 : 1); i++) keep(f, words);
    keep(f, times(sequences, sizeof(int32_t)));
    keep(f, times(f->g.n_ends, sizeof(int32_t)));
    keep(f, is_search ? times(words, (context + 1) / 2) : times(sequences, sizeof(int32_t)));
}

/* What chooses a word of each sequence (cuda_topk.cu, cuda_sampling.cu): candidates twice as numbers and words, what cub sorts
 * them with, sums of probabilities three times. Of a draft's words the host chooses. */
static void keep_sampler(folder *f)
{
    enum { UNIT = 256, PART = 1024, OF_PART = 256, SHARDS = 2 * 32 * 64, STATE = 48, TILE = 8832 };
    uint64_t batch = (uint64_t)f->g.batch, words = (uint64_t)f->g.vocabulary, tiles = words / TILE;
    uint64_t candidates = (words + PART - 1) / PART * OF_PART;
    uint64_t number = times(batch, sizeof(float));
    uint64_t sort = UNIT + (batch == 1 ? (4 + tiles + 1) * PART : 0);
    if (candidates < words) candidates = words;
    /* Each of these begins at a multiple of 256 bytes. */
    uint64_t rest =
        SHARDS * sizeof(float) + UNIT + sort + 2 * (number + UNIT) + times(batch, STATE);
    uint64_t wide = times(number, (candidates + UNIT / 4 - 1) / (UNIT / 4) * (UNIT / 4));
    uint64_t all = times(wide, 4), sums = times(times(number, words), 5);
    keep(f, all > UINT64_MAX / 4 || sums > UINT64_MAX / 4 ? UINT64_MAX : all + sums + rest);
}

/* Caches first, as the generator makes them; then what a prompt needs, its logits, and the scores of its last tokens in
 * the model's type and in float32. What is kept apart has the present caches as well. */
static bool find_kept(folder *f, request r, need *n, onv_error *error)
{
    onv_simulated_info info;
    uint64_t sequences = times((uint64_t)f->g.batch, (uint64_t)f->g.beams);
    uint64_t scores = times((uint64_t)f->g.vocabulary, sequences);
    uint64_t words = times(times(sequences, (uint64_t)r.prompt), sizeof(int32_t));
    const uint64_t of_a_beam = UINT64_C(129) * 2 * 2 * sizeof(float);
    keep_sequences(f, sequences, (uint64_t)r.context);
    for (size_t i = 0; i < f->g.n_decoders; i++) {
        const decoder *d = &f->decoders[i];
        const onv_genai_decoder *g = &f->g.decoders[i];
        n->cache +=
            keep_tensors(f, g, f->g.shares ? d->prefill : d->decode, ONV_TENSOR_INPUT, true);
        if (!f->g.shares) n->cache += keep_tensors(f, g, d->decode, ONV_TENSOR_OUTPUT, true);
    }
    keep(f, words); /* the prompt comes as int32, and is cast (input_ids.cpp) */
    for (size_t i = f->g.n_decoders; i-- > 0;) { /* the draft runs first */
        const decoder *d = &f->decoders[i];
        keep(f, words);
        keep_tensors(f, &f->g.decoders[i], d->prefill, ONV_TENSOR_INPUT, false);
        keep_tensors(f, &f->g.decoders[i], d->prefill, ONV_TENSOR_OUTPUT, false);
        run(f, d->prefill);
        keep(f, times(scores, 2));
        keep(f, times(scores, 4));
    }
    if (!f->g.is_cpu && f->g.beams == 1 && f->g.n_decoders == 1) keep_sampler(f);
    /* Of the device, not of the arena (search_cuda.cpp): scores of beams, or which sequences have ended. */
    n->beside = f->g.beams == 1
                    ? sequences
                    : times(scores, 4) + times(times(sequences, (uint64_t)f->g.beams), of_a_beam);
    if (f->n_events > MOST_EVENTS || f->kept > UINT64_MAX / 2 || n->beside > UINT64_MAX / 4) {
        return onv_cli_fail(error, ONV_ERR_LIMIT,
                            "it has more than %d inputs and outputs, or keeps more than any device",
                            MOST_EVENTS);
    }
    n->kept = f->kept;
    if (f->g.is_cpu) return true; /* no arena */
    if (onv_simulate_events(f->events, f->n_events, "bfc", NULL, &info, error) != ONV_OK)
        return false;
    n->kept = info.reserved_peak + n->beside;
    return true;
}

/* --- The answer -------------------------------------------------------------------------------- */

/* A session by what its phases reserve, with handles of its own; an encoder has one phase. */
static void add_session(need *n, const onv_answer_runtime_info *first,
                        const onv_answer_runtime_info *later)
{
    n->prefill_low += first->reserved_low;
    n->prefill_high += first->reserved_high;
    n->decode_low += later->reserved_low;
    n->decode_high += later->reserved_high;
    n->low += first->reserved_low > later->reserved_low ? first->reserved_low : later->reserved_low;
    n->high +=
        first->reserved_high > later->reserved_high ? first->reserved_high : later->reserved_high;
    n->weights += first->weight_bytes;
}

/* Encoders and the like, each in a session that keeps its arena. */
static bool add_others(folder *f, request r, need *n, uint64_t handles, onv_error *error)
{
    for (size_t i = f->g.n_decoders; i < f->g.n_models; i++) {
        onv_answer_runtime_info s;
        const onv_genai_model *model = &f->g.models[i];
        onv_analysis *unbound = analyse(f, model->path, "ideal", error);
        if (unbound == NULL) return false;
        bool agree =
            bind_inputs(f, unbound, &f->g.decoders[0], r.batch, r.prompt, r.prompt, 0, error);
        onv_analysis_destroy(unbound);
        onv_analysis *a = agree ? run_session(f, model, &s, error) : NULL;
        forget_dims(f);
        f->others[i] = a;
        if (a == NULL) return false;
        run(f, a);
        add_session(n, &s, &s);
        n->libraries += handles;
    }
    return true;
}

/* The analysis ends before the answer is written. */
static void take_gpu(const onv_analysis *of, need *n)
{
    onv_answer_info answer;
    onv_analysis_answer(of, &answer);
    snprintf(n->gpu, sizeof n->gpu, "%s", answer.gpu != NULL ? answer.gpu : "");
    n->gpu_assumed = answer.gpu_assumed;
}

/* Of a decoder with a draft, words are verified together; its handles count each session, and the arena of what is kept. */
static bool add_decoder(folder *f, size_t i, request r, need *n, uint64_t *handles,
                        onv_error *error)
{
    onv_answer_runtime_info first = {0}, later = {0};
    decoder *d = &f->decoders[i];
    const onv_genai_decoder *g = &f->g.decoders[i];
    int64_t read = f->g.chunk > 0 && f->g.chunk < r.prompt ? f->g.chunk : r.prompt;
    int64_t batch = r.batch * f->g.beams,
            next = f->g.n_decoders > 1 && i == 0 ? f->g.draft_tokens + 1 : 1;
    if (next > r.context) next = r.context;
    if (bind_inputs(f, d->unbound, g, batch, read, r.prompt,
                    f->g.shares ? r.context : r.prompt - read, error))
        d->prefill = run_session(f, &f->g.models[i], &first, error);
    forget_dims(f);
    if (d->prefill != NULL && bind_inputs(f, d->unbound, g, batch, next, r.context,
                                          f->g.shares ? r.context : r.context - next, error))
        d->decode = run_session(f, &f->g.models[i], &later, error);
    forget_dims(f);
    if (d->decode == NULL) return false;
    add_session(n, &first, &later);
    *handles = first.library_bytes / 2; /* of two: the analysis has its graph's, too */
    n->libraries += *handles + (i == 0 ? *handles : 0);
    n->context_low = first.context_low;
    n->context_high = first.context_high;
    if (i == 0) take_gpu(d->decode, n);
    return true;
}

/* On a device of so many bytes. The host's memory is not refused: there all of it is added up. */
static bool judge(const folder *f, uint64_t bytes, need *n, onv_error *error)
{
    uint64_t taken = n->libraries + n->beside + n->context_high;
    unsigned fit = n->high <= bytes, tried = 1;
    if (!f->g.is_cpu && onv_process_fits(f->runs, f->n_runs, f->events, f->n_events, taken, bytes,
                                         &fit, &tried, error) != ONV_OK)
        return false;
    n->fits = fit == tried;
    n->may_fit = fit > 0;
    return true;
}

static bool find_all(folder *f, request r, need *n, onv_error *error)
{
    uint64_t handles = 0;
    bool good = true;
    f->g.batch = r.batch;
    if (f->g.n_decoders > 1 && r.batch > 1) {
        return onv_cli_fail(error, ONV_ERR_USAGE,
                            "a decoder with a draft has a batch of 1, not of %" PRId64
                            ": leave out --batch",
                            r.batch);
    }
    for (size_t i = 0; good && i < f->g.n_decoders; i++)
        good = add_decoder(f, i, r, n, &handles, error);
    if (!good || !add_others(f, r, n, handles, error) || !find_kept(f, r, n, error)) return false;
    n->low += n->kept + n->libraries + n->context_low;
    n->high += n->kept + n->libraries + n->context_high;
    return true;
}

static void warn_once(folder *f)
{
    for (size_t i = 0; i < f->g.n_models && !f->has_warned; i++)
        onv_cli_warn_of(f->to, i < f->g.n_decoders ? f->decoders[i].prefill : f->others[i],
                        f->g.models[i].path);
    f->has_warned = true;
}

/* And whether it fits a device of so many bytes, where a word follows the prompt; 0: that is not asked. */
static bool find_need(folder *f, request r, uint64_t bytes, need *n, onv_error *error)
{
    *n = (need){0};
    if (bytes > 0 && r.prompt == r.context && r.context > 1) r.prompt--;
    f->n_events = f->n_runs = 0;
    f->kept = 0;
    bool good = find_all(f, r, n, error);
    if (good) warn_once(f);
    good = good && (bytes == 0 || judge(f, bytes, n, error));
    for (size_t i = 0; i < f->g.n_decoders; i++) {
        onv_analysis_destroy(f->decoders[i].prefill);
        onv_analysis_destroy(f->decoders[i].decode);
        f->decoders[i].prefill = f->decoders[i].decode = NULL;
    }
    for (size_t i = 0; i < f->g.n_models; i++) {
        onv_analysis_destroy(f->others[i]);
        f->others[i] = NULL;
    }
    return good;
}

/* The longest context, with prompts as long, that every process takes, or that some do; at least `from`. */
static bool find_longest(folder *f, int64_t batch, uint64_t bytes, bool by_some, int64_t from,
                         int64_t *longest, onv_error *error)
{
    int64_t high = f->g.context > 0 ? f->g.context : f->g.max_length;
    for (*longest = from; *longest < high;) {
        int64_t middle = *longest + (high - *longest + 1) / 2;
        need n;
        if (!find_need(f, (request){batch, middle, middle}, bytes, &n, error)) return false;
        if (by_some ? n.may_fit : n.fits)
            *longest = middle;
        else
            high = middle - 1;
    }
    return true;
}

/* --- Output ------------------------------------------------------------------------------------ */

static void put_need(const folder *f, request r, const need *n)
{
    onv_cli_deployment *d = f->to;
    onv_cli_put(d, d->json, "kind", json_string("onnxruntime-genai"));
    onv_cli_put_name(d, d->json, "path", f->cli->genai);
    fprintf(d->text, "\n\nbatch %" PRId64 ", prompts of %" PRId64 ", context of %" PRId64 "%s",
            r.batch, r.prompt, r.context, f->g.is_cpu ? ", on the CPU" : "");
    onv_cli_put_number(d, d->json, "batch", (uint64_t)r.batch);
    onv_cli_put_number(d, d->json, "prompt", (uint64_t)r.prompt);
    onv_cli_put_number(d, d->json, "context", (uint64_t)r.context);
    onv_cli_put(d, d->json, "shares_cache", json_boolean(f->g.shares));
    onv_cli_put_gpu(d, n->gpu, n->gpu_assumed);
    fputs("\n", d->text);
    onv_cli_put_size(d, d->json, "weights", "weight_bytes", n->weights);
    onv_cli_put_size(d, d->json, f->g.shares ? "cache, one buffer" : "cache, past and present",
                     "cache_bytes", n->cache);
    onv_cli_put_size(d, d->json, "cache, inputs, logits", "kept_bytes", n->kept);
    onv_cli_put_range(d, d->json, "sessions, prefill", "prefill_bytes", n->prefill_low,
                      n->prefill_high);
    onv_cli_put_range(d, d->json, "sessions, decode", "decode_bytes", n->decode_low,
                      n->decode_high);
    if (n->libraries > 0) onv_cli_put_size(d, d->json, "libraries", "library_bytes", n->libraries);
    if (n->context_high > 0)
        onv_cli_put_range(d, d->json, "CUDA context", "context_bytes", n->context_low,
                          n->context_high);
    onv_cli_put_total(d, n->low, n->high);
}

/* The upper ends, for contexts of an eighth of the longest one to all of it. */
static bool put_table(folder *f, request r, onv_error *error)
{
    char text[ONV_CLI_SIZE_TEXT];
    onv_cli_deployment *d = f->to;
    fputs("\nTogether, by batch and context (prompts as long)\n", d->text);
    for (int row = 0; row <= (f->g.n_decoders > 1 ? 1 : ROWS); row++) {
        int64_t batch = row > 0 ? r.batch << (row - 1) : 0;
        fprintf(d->text, row > 0 ? "  %5" PRId64 : "       ", batch);
        for (int column = COLUMNS - 1; column >= 0; column--) {
            int64_t context = r.context >> column;
            need n;
            if (context < 1) continue;
            if (row == 0) fprintf(d->text, " %12" PRId64, context);
            if (row == 0) continue;
            if (!find_need(f, (request){batch, context, context}, 0, &n, error)) return false;
            onv_size_text(n.high, n.high, false, text, sizeof text);
            fprintf(d->text, " %12s", text);
            json_t *cell = onv_cli_put_row(d, "sizes");
            onv_cli_put_number(d, cell, "batch", (uint64_t)batch);
            onv_cli_put_number(d, cell, "context", (uint64_t)context);
            onv_cli_put_number(d, cell, "low_bytes", n.low);
            onv_cli_put_number(d, cell, "high_bytes", n.high);
        }
        fputs("\n", d->text);
    }
    return true;
}

static bool put_budgets(folder *f, request r, onv_error *error)
{
    onv_cli_deployment *d = f->to;
    if (f->cli->analysis.n_budgets > 0) fputs("\n", d->text);
    for (size_t i = 0; i < f->cli->analysis.n_budgets; i++) {
        int64_t longest, most;
        uint64_t bytes = onv_cli_usable(f->cli, i);
        need n;
        if (!find_need(f, r, bytes, &n, error) ||
            !find_longest(f, r.batch, bytes, false, 0, &longest, error) ||
            !find_longest(f, r.batch, bytes, true, longest, &most, error))
            return false;
        json_t *row = onv_cli_put_budget(d, i, n.fits);
        fprintf(d->text, "; longest context at batch %" PRId64 ": %" PRId64, r.batch, longest);
        if (most > longest)
            fprintf(d->text, " (by the order of initializers up to %" PRId64 ")", most);
        fputs("\n", d->text);
        onv_cli_put_number(d, row, "longest_context", (uint64_t)longest);
        onv_cli_put_number(d, row, "longest_context_high", (uint64_t)most);
    }
    return true;
}

static bool answer(folder *f, onv_error *error)
{
    request r = {.batch = f->cli->analysis.batch > 0 ? f->cli->analysis.batch : f->g.batch,
                 .context = f->g.max_length};
    need n;
    take_request(f->cli, &r);
    for (size_t i = 0; i < f->g.n_decoders; i++) {
        f->decoders[i].unbound = analyse(f, f->g.models[i].path, "ideal", error);
        if (f->decoders[i].unbound == NULL) return false;
    }
    if (!find_need(f, r, 0, &n, error)) return false;
    put_need(f, r, &n);
    return (f->cli->report.verbosity < 0 || put_table(f, r, error)) && put_budgets(f, r, error);
}

bool onv_cli_answer_genai(onv_cli_deployment *d, onv_error *error)
{
    folder *f = calloc(1, sizeof *f);
    if (f == NULL) return false;
    f->cli = d->cli;
    f->to = d;
    snprintf(d->path, sizeof d->path, "%s/genai_config.json", d->cli->genai);
    bool good = onv_genai_read(d->cli->genai, &f->g, error);
    const char *gpu = d->cli->analysis.n_budgets > 0 ? d->cli->budgets[0].name : NULL;
    if (good && f->g.is_cpu && gpu != NULL)
        good = onv_cli_fail(error, ONV_ERR_USAGE,
                            "it runs on the CPU, with the host's memory, and '%s' is a GPU: give a "
                            "size, as in --budget 64GiB, or add a provider",
                            gpu);
    if (good) {
        snprintf(d->path, sizeof d->path, "%s", f->g.models[0].path);
        good = answer(f, error);
    }
    for (size_t i = 0; i < ONV_GENAI_DECODERS; i++) onv_analysis_destroy(f->decoders[i].unbound);
    onv_genai_cleanup(&f->g);
    free(f);
    return good;
}
