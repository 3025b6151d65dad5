/* What a folder of onnxruntime-genai takes on a device: a session for each of its models, and an arena of its own for
 * what it keeps beside them: caches, inputs, logits.
 *
 * Read in source (src/models/kv_cache.cpp, logits.cpp, decoder_only.cpp) and measured, 0.18 for CUDA over a substitute for
 * the CUDA driver: the allocator of these belongs to a session of its own, with an arena and handles; sessions run on the
 * application's stream, so that no graph has handles beside those of its session. */
#include "cli/deploy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/genai.h"
#include "cli/guard.h"
#include "cli/message.h"
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
    uint64_t low, high;          /* all of it */
    char gpu[ONV_CLI_SIZE_TEXT]; /* whose libraries count; "": none do */
    bool gpu_assumed;
} need;

typedef struct folder {
    const onv_cli *cli;
    onv_cli_deployment *to;
    onv_genai g;
    onv_dim_binding dims[MOST_DIMS]; /* of one analysis; names are the analysis' own */
    size_t n_dims;
    onv_event events[MOST_EVENTS];
    size_t n_events;
    onv_analysis *unbound; /* of the decoder: what its dims are called */
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

static bool is_cache(const onv_genai *g, const char *name)
{
    for (int i = 0; i < 2; i++) {
        size_t before = strlen(g->caches[i][0]);
        if (strncmp(name, g->caches[i][0], before) != 0) continue;
        const char *rest = name + before + strspn(name + before, "0123456789");
        if (rest > name + before && strcmp(rest, g->caches[i][1]) == 0) return true;
    }
    return false;
}

/* What --dim says of requests, whatever the models call it. */
static bool is_request(const char *name)
{
    return strcmp(name, "prompt") == 0 || strcmp(name, "context") == 0;
}

static void take_request(const onv_cli *cli, request *r)
{
    for (size_t i = 0; i < cli->analysis.n_dims; i++) {
        const onv_dim_binding *dim = &cli->analysis.dims[i];
        if (strcmp(dim->name, "context") == 0) r->context = dim->size;
    }
    r->prompt = r->context;
    for (size_t i = 0; i < cli->analysis.n_dims; i++) {
        const onv_dim_binding *dim = &cli->analysis.dims[i];
        if (strcmp(dim->name, "prompt") == 0 && dim->size < r->context) r->prompt = dim->size;
    }
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
    *error = (onv_error){.code = ONV_ERR_USAGE};
    snprintf(error->message, sizeof error->message,
             "its input '%.80s' has %" PRId64
             " for '%.40s', and \"%s\" of genai_config.json is %" PRId64 ": make them equal",
             input, found, word, key, size);
    return false;
}

/* The dims of the decoder's inputs: batch, tokens that are read, all tokens, tokens of the cache. */
static bool bind_inputs(folder *f, const onv_analysis *of, int64_t batch, int64_t read,
                        int64_t total, int64_t past, onv_error *error)
{
    const onv_genai *g = &f->g;
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
        } else if (n == 4 && is_cache(g, info.name)) {
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
    const char *ort[64] = {"io_binding=1"};
    onv_options options = f->cli->analysis;
    onv_analysis *analysis = NULL;
    size_t n = 1;
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

static bool unsized(const char *role, onv_error *error)
{
    *error = (onv_error){.code = ONV_ERR_USAGE};
    snprintf(
        error->message, sizeof error->message,
        "the %s has dimensions without a size: its own report names them; bind each with --dim",
        role);
    return false;
}

static onv_analysis *run_session(folder *f, const onv_genai_model *model,
                                 onv_answer_runtime_info *session, onv_error *error)
{
    onv_analysis *a = analyse(f, model->path, f->g.is_cpu ? "cpu" : "ort", error);
    if (a != NULL && onv_analysis_answer_runtime(a, 0, session)) return a;
    if (a != NULL) unsized(model->role, error);
    onv_analysis_destroy(a);
    return NULL;
}

/* --- What is kept beside sessions -------------------------------------------------------------- */

static void add_event(folder *f, uint64_t bytes)
{
    if (bytes == 0) return;
    if (f->n_events < MOST_EVENTS)
        f->events[f->n_events] = (onv_event){.bytes = bytes, .frees = ONV_NO_INDEX};
    f->n_events++;
}

static void add_tensors(folder *f, const onv_analysis *a, onv_tensor_kind kind, bool of_cache,
                        uint64_t *bytes)
{
    onv_tensor_info info;
    for (size_t i = 0; onv_analysis_tensor(a, i, &info); i++) {
        bool is_one = kind == ONV_TENSOR_INPUT
                          ? is_cache(&f->g, info.name)
                          : strncmp(info.name, "present", strlen("present")) == 0;
        if (info.kind != kind || is_one != of_cache || info.bytes >= ONV_SIZE_UNKNOWN) continue;
        add_event(f, info.bytes);
        *bytes += info.bytes;
    }
}

/* Caches first, as the generator makes them; then what a prompt needs, its logits, and the scores of its last tokens in
 * the model's type and in float32. What is kept apart has the present caches as well. */
static bool find_kept(folder *f, const onv_analysis *prefill, const onv_analysis *decode, need *n,
                      onv_error *error)
{
    onv_simulated_info info;
    uint64_t others = 0;
    int64_t scores = f->g.vocabulary * f->g.batch * f->g.beams;
    f->n_events = 0;
    n->cache = 0;
    add_tensors(f, f->g.shares ? prefill : decode, ONV_TENSOR_INPUT, true, &n->cache);
    if (!f->g.shares) add_tensors(f, decode, ONV_TENSOR_OUTPUT, true, &n->cache);
    add_tensors(f, prefill, ONV_TENSOR_INPUT, false, &others);
    add_tensors(f, prefill, ONV_TENSOR_OUTPUT, false, &others);
    add_event(f, (uint64_t)scores * 2);
    add_event(f, (uint64_t)scores * 4);
    n->kept = n->cache + others;
    if (f->n_events > MOST_EVENTS) {
        *error = (onv_error){.code = ONV_ERR_LIMIT};
        snprintf(error->message, sizeof error->message,
                 "the decoder has more than %d inputs and outputs", MOST_EVENTS);
        return false;
    }
    if (f->g.is_cpu) return true; /* no arena */
    if (onv_simulate_events(f->events, f->n_events, "bfc", NULL, &info, error) != ONV_OK)
        return false;
    n->kept = info.reserved_peak;
    return true;
}

/* --- The answer -------------------------------------------------------------------------------- */

static void add_session(need *n, const onv_answer_runtime_info *s, bool is_decode)
{
    uint64_t *low = is_decode ? &n->decode_low : &n->prefill_low;
    uint64_t *high = is_decode ? &n->decode_high : &n->prefill_high;
    *low += s->reserved_low;
    *high += s->reserved_high;
    if (is_decode) return;
    n->weights += s->weight_bytes;
    n->context_low = s->context_low;
    n->context_high = s->context_high;
}

/* Encoders and the like, each in a session that keeps its arena. */
static bool add_others(folder *f, request r, need *n, uint64_t handles, onv_error *error)
{
    for (size_t i = 1; i < f->g.n_models; i++) {
        onv_answer_runtime_info s;
        const onv_genai_model *model = &f->g.models[i];
        onv_analysis *unbound = analyse(f, model->path, "ideal", error);
        if (unbound == NULL) return false;
        bool agree = bind_inputs(f, unbound, r.batch, r.prompt, r.prompt, 0, error);
        onv_analysis_destroy(unbound);
        onv_analysis *a = agree ? run_session(f, model, &s, error) : NULL;
        forget_dims(f);
        if (a == NULL) return false;
        onv_analysis_destroy(a);
        add_session(n, &s, false);
        n->decode_low += s.reserved_low;
        n->decode_high += s.reserved_high;
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

static bool find_need(folder *f, request r, need *n, onv_error *error)
{
    onv_answer_runtime_info first, later;
    const onv_genai_model *decoder = &f->g.models[0];
    int64_t read = f->g.chunk > 0 && f->g.chunk < r.prompt ? f->g.chunk : r.prompt;
    int64_t batch = r.batch * f->g.beams;
    *n = (need){0};
    f->g.batch = r.batch;
    onv_analysis *prefill = NULL, *decode = NULL;
    if (bind_inputs(f, f->unbound, batch, read, r.prompt, f->g.shares ? r.context : r.prompt - read,
                    error))
        prefill = run_session(f, decoder, &first, error);
    forget_dims(f);
    if (prefill != NULL && bind_inputs(f, f->unbound, batch, 1, r.context,
                                       f->g.shares ? r.context : r.context - 1, error))
        decode = run_session(f, decoder, &later, error);
    forget_dims(f);
    bool good = decode != NULL && find_kept(f, prefill, decode, n, error);
    if (good) take_gpu(decode, n);
    onv_analysis_destroy(prefill);
    onv_analysis_destroy(decode);
    if (!good) return false;
    add_session(n, &first, false);
    add_session(n, &later, true);
    n->libraries = first.library_bytes; /* of two: the decoder's, and the arena's of what is kept */
    if (!add_others(f, r, n, first.library_bytes / 2, error)) return false;
    uint64_t low = n->prefill_low > n->decode_low ? n->prefill_low : n->decode_low;
    uint64_t high = n->prefill_high > n->decode_high ? n->prefill_high : n->decode_high;
    n->low = low + n->kept + n->libraries + n->context_low;
    n->high = high + n->kept + n->libraries + n->context_high;
    return true;
}

/* The longest context that fits, prompts as long as it; 0: none. */
static bool find_longest(folder *f, int64_t batch, uint64_t bytes, int64_t *longest,
                         onv_error *error)
{
    int64_t low = 0, high = f->g.context > 0 ? f->g.context : f->g.max_length;
    for (*longest = 0; low < high; *longest = low) {
        int64_t middle = low + (high - low + 1) / 2;
        need n;
        if (!find_need(f, (request){batch, middle, middle}, &n, error)) return false;
        if (n.high <= bytes)
            low = middle;
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
    for (int row = 0; row <= ROWS; row++) {
        int64_t batch = row > 0 ? r.batch << (row - 1) : 0;
        fprintf(d->text, row > 0 ? "  %5" PRId64 : "       ", batch);
        for (int column = COLUMNS - 1; column >= 0; column--) {
            int64_t context = r.context >> column;
            need n;
            if (context < 1) continue;
            if (row == 0) fprintf(d->text, " %12" PRId64, context);
            if (row == 0) continue;
            if (!find_need(f, (request){batch, context, context}, &n, error)) return false;
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

static bool put_budgets(folder *f, request r, const need *n, onv_error *error)
{
    onv_cli_deployment *d = f->to;
    if (f->cli->analysis.n_budgets > 0) fputs("\n", d->text);
    for (size_t i = 0; i < f->cli->analysis.n_budgets; i++) {
        int64_t longest;
        uint64_t bytes =
            onv_budget_usable(f->cli->budgets[i].bytes, f->cli->analysis.margin_percent);
        if (!find_longest(f, r.batch, bytes, &longest, error)) return false;
        json_t *row = onv_cli_put_budget(d, i, n->high);
        fprintf(d->text, "; longest context at batch %" PRId64 ": %" PRId64 "\n", r.batch, longest);
        onv_cli_put_number(d, row, "longest_context", (uint64_t)longest);
    }
    return true;
}

static bool answer(folder *f, onv_error *error)
{
    request r = {.batch = f->cli->analysis.batch > 0 ? f->cli->analysis.batch : f->g.batch,
                 .context = f->g.max_length};
    need n;
    take_request(f->cli, &r);
    f->unbound = analyse(f, f->g.models[0].path, "ideal", error);
    if (f->unbound == NULL || !find_need(f, r, &n, error)) return false;
    put_need(f, r, &n);
    return (f->cli->report.verbosity < 0 || put_table(f, r, error)) && put_budgets(f, r, &n, error);
}

bool onv_cli_answer_genai(onv_cli_deployment *d, onv_error *error)
{
    folder *f = calloc(1, sizeof *f);
    if (f == NULL) return false;
    f->cli = d->cli;
    f->to = d;
    snprintf(d->path, sizeof d->path, "%s/genai_config.json", d->cli->genai);
    bool good = onv_genai_read(d->cli->genai, &f->g, error);
    if (good) {
        snprintf(d->path, sizeof d->path, "%s", f->g.models[0].path);
        good = answer(f, error);
    }
    onv_analysis_destroy(f->unbound);
    onv_genai_cleanup(&f->g);
    free(f);
    return good;
}
