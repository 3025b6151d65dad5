/* Options of an analysis, a row each: what it needs beside it, and how "options" of the JSON report has it.
 *
 * Options that would change nothing are refused: one table for analyses and for the program, whose names it has. Those that
 * only say how a report looks are always taken, limits and work limits too: scripts pass them along.
 *
 * The report says what an analysis was asked (`given`), and what is in force of what it was not (`defaults`). It is text
 * from the beginning on, since the caller's options end with the call. */
#include <stddef.h>
#include <string.h>

#include "api/analysis.h"
#include "api/names.h"
#include "api/sized.h"
#include "base/fail.h"
#include "eager/pytorch.h"
#include "load/limits.h"
#include "report/json.h"

/* --- What is there ----------------------------------------------------------------------------- */

/* Without a list all runtimes are asked for, with training torch alone. */
static bool lists(const onv_options *o, const char *runtime)
{
    const char *list = o->runtimes == NULL && o->train != NULL ? "torch" : o->runtimes;
    return onv_is_listed(list, runtime);
}

typedef enum need {
    NOTHING,
    TRAINING,
    PYTORCH,
    INFERENCE,
    ORT,
    ORT_SESSION,
    LIBRARIES,
    ARENA,
    TENSORRT,
    SHARING,
    WORLD,
    COMPILATION,
    BUDGET,
    BUDGET_OR_REPLAY,
    BASELINE,
    BATCHES
} need;

static const char *const texts[] = {
    [TRAINING] = "training: add --train OPTIMIZER, as in --train adamw",
    [PYTORCH] = "PyTorch: add torch to --runtime, or --train OPTIMIZER",
    [INFERENCE] = "inference in PyTorch: add torch to --runtime",
    [ORT] = "ONNX Runtime: add ort to --runtime, as in --runtime ort",
    [ORT_SESSION] = "ONNX Runtime: add ort to --runtime, as in --runtime ort, or cpu",
    [LIBRARIES] = "a runtime with libraries: add torch or ort to --runtime, or --train OPTIMIZER",
    [TENSORRT] = "the runtime tensorrt: add --runtime tensorrt",
    [ARENA] = "the runtime arena: add arena to --runtime",
    [SHARING] = "something to share: add --zero STAGE, --ddp or --fsdp",
    [WORLD] = "2 devices or more: add --world N, as in --world 2",
    [COMPILATION] = "torch.compile: add --compile",
    [BUDGET] = "a budget: add --budget SIZE or GPU, as in --budget L4",
    [BUDGET_OR_REPLAY] =
        "a budget or a replay: add --budget SIZE or GPU, as in --budget L4, or --replay",
    [BATCHES] = "the largest batch: add --max-batch, as in onnxvram fit MODEL.onnx --budget L4",
    [BASELINE] = "figures to compare with: add --baseline FILE, which --json=FILE wrote before",
};

static bool is_met(need what, const onv_options *o)
{
    bool trains = o->train != NULL, has_budget = o->n_budgets > 0 || o->budget > 0;
    switch (what) {
    case NOTHING: return true;
    case TRAINING: return trains;
    case PYTORCH: return trains || lists(o, "torch");
    case INFERENCE: return lists(o, "torch");
    case ORT: return lists(o, "ort");
    case ORT_SESSION: return lists(o, "ort") || lists(o, "cpu");
    case LIBRARIES: return trains || lists(o, "torch") || lists(o, "ort");
    case TENSORRT: return o->runtimes != NULL && lists(o, "tensorrt");
    case ARENA: return lists(o, "arena");
    case SHARING: return o->zero_stage > 0 || o->ddp != NULL || o->fsdp != NULL || o->world == 1;
    case WORLD: return o->world > 1;
    case COMPILATION: return o->compile;
    case BUDGET: return has_budget;
    case BUDGET_OR_REPLAY: return has_budget || o->replay != NULL;
    case BASELINE: return o->baseline != NULL;
    case BATCHES: return o->max_batch && o->max_dim == NULL;
    }
    return true;
}

/* --- Options ----------------------------------------------------------------------------------- */

typedef enum kind { FLAG, NUMBER, TEXT, LIST, PRECISION, SHARE } kind;

typedef struct row {
    const char *key;  /* of the report; NULL: it is not there, or below by hand */
    const char *name; /* as the program has it; NULL: it needs nothing */
    uint16_t at;      /* the field, and its bytes */
    uint8_t bytes;
    uint8_t kind : 4;
    uint8_t usual : 2;    /* a number */
    bool first_shows : 1; /* without the second need it has a place in the report, too */
    uint8_t needs[2];
    uint16_t n_at;        /* of a list: where its length is */
    const char *fallback; /* a text */
} row;

/* The release whose rules the runtime ort follows. */
#define ORT_RELEASE "1.31"

/* A usual one: null. */
enum { NO_NUMBER = 3 };

#define OF(field)  offsetof(onv_options, field), sizeof((onv_options *)NULL)->field
#define NEEDS(...) .needs = {__VA_ARGS__}
#define ALSO(n)    .n_at = offsetof(onv_options, n)

/* By how an analysis goes on: sizes, what is judged, PyTorch, training, ONNX Runtime, work; then those that the report
 * does not have. */
static const row rows[] = {
    {"batch", NULL, OF(batch), NUMBER, .usual = NO_NUMBER},
    {"precision", NULL, OF(precision), PRECISION, .fallback = "as exported"},
    {"weight_format", NULL, OF(weights), TEXT, NEEDS(NOTHING)},
    {"kv_cache", NULL, OF(kv_cache), TEXT, NEEDS(NOTHING)},
    {"order", NULL, OF(order), TEXT, .fallback = "model"},
    {"program", NULL, OF(program), TEXT, NEEDS(NOTHING)},
    {"op_shapes", NULL, OF(op_shapes_file), TEXT, NEEDS(NOTHING)},
    {"align", "align", OF(align), NUMBER, NEEDS(ARENA), .usual = 1},
    {"margin_percent", "margin", OF(margin_percent), NUMBER, NEEDS(BUDGET)},
    {"max_batch", "max-batch", OF(max_batch), FLAG, NEEDS(BUDGET_OR_REPLAY)},
    {"max_dim", "max-dim", OF(max_dim), TEXT, NEEDS(BUDGET)},
    {"objective", "objective", OF(objective), TEXT, NEEDS(BATCHES)},
    {"amp", "amp", OF(amp), PRECISION, NEEDS(PYTORCH)},
    {"attention", "attention", OF(attention), TEXT, NEEDS(PYTORCH), .fallback = "auto"},
    {"inplace", "inplace", OF(inplace), LIST, NEEDS(PYTORCH), ALSO(n_inplace)},
    {"locals", "locals", OF(locals), FLAG, NEEDS(INFERENCE)},
    {"as_exported", "as-exported", OF(as_exported), FLAG, NEEDS(PYTORCH)},
    {"folded_norms", "folded-norms", OF(folded_norms), FLAG, NEEDS(PYTORCH)},
    {"graph_module", "graph-module", OF(graph_module), FLAG, NEEDS(INFERENCE)},
    {"no_fast_path", "no-fast-path", OF(no_fast_path), FLAG, NEEDS(INFERENCE)},
    {"channels_last", "channels-last", OF(channels_last), FLAG, NEEDS(PYTORCH)},
    {"no_tf32", "no-tf32", OF(no_tf32), FLAG, NEEDS(PYTORCH)},
    {"cudnn_benchmark", "cudnn-benchmark", OF(cudnn_benchmark), FLAG, NEEDS(PYTORCH)},
    {"expandable_segments", "expandable-segments", OF(expandable_segments), FLAG, NEEDS(PYTORCH)},
    {"cached_bytes", "pool", OF(pool), NUMBER, NEEDS(PYTORCH)},
    {"missing_parameters", "parameters", OF(parameters), NUMBER, NEEDS(PYTORCH),
     .usual = NO_NUMBER},
    {"missing_buffer_bytes", "buffers", OF(buffers), NUMBER, NEEDS(PYTORCH), .usual = NO_NUMBER},
    {"train", NULL, OF(train), TEXT, NEEDS(NOTHING)},
    {"loss", "loss", OF(loss), TEXT, NEEDS(TRAINING), .fallback = "as the output suggests"},
    {"freeze", "freeze", OF(freeze), LIST, NEEDS(TRAINING), ALSO(n_freeze)},
    {"train_only", "train-only", OF(train_only), LIST, NEEDS(TRAINING), ALSO(n_train_only)},
    {"attention_dropout", "attention-dropout", OF(attention_dropout), SHARE, NEEDS(TRAINING)},
    {"accumulate", "accumulate", OF(accumulate), NUMBER, NEEDS(TRAINING), .usual = 1},
    {"zero_grad", "zero-grad", OF(zero_grad), TEXT, NEEDS(TRAINING), .fallback = "before-forward"},
    {"optimizer_impl", "optimizer-impl", OF(optimizer_impl), TEXT, NEEDS(TRAINING),
     .fallback = "as PyTorch chooses"},
    {"master_weights", "master-weights", OF(master_weights), FLAG, NEEDS(TRAINING)},
    {"ema", "ema", OF(ema), FLAG, NEEDS(TRAINING)},
    {"offload", "offload", OF(offload), TEXT, NEEDS(TRAINING)},
    {"checkpoint", "checkpoint", OF(checkpoint), TEXT, NEEDS(TRAINING)},
    {"plan", "plan", OF(plan), TEXT, NEEDS(TRAINING)},
    {"compile", "compile", OF(compile), FLAG, NEEDS(TRAINING)},
    {"compile_budget", "compile budget", OF(compile_budget), SHARE, NEEDS(COMPILATION)},
    {"world", "world", OF(world), NUMBER, NEEDS(TRAINING, SHARING), .usual = 1,
     .first_shows = true},
    {"zero_stage", "zero", OF(zero_stage), NUMBER, NEEDS(TRAINING, WORLD)},
    {"ddp", "ddp", OF(ddp), TEXT, NEEDS(TRAINING, WORLD)},
    {"fsdp", "fsdp", OF(fsdp), TEXT, NEEDS(TRAINING, WORLD)},
    {"ort", "ort", OF(ort), LIST, NEEDS(ORT_SESSION), ALSO(n_ort)},
    {"shape_trace", "shape-trace", OF(shape_trace), TEXT, NEEDS(ORT)},
    {"contexts", "contexts", OF(contexts), NUMBER, NEEDS(TENSORRT), .usual = 1},
    {"workspace_bytes", "workspace", OF(workspace), NUMBER, NEEDS(TENSORRT), .usual = NO_NUMBER},
    {"effort", NULL, OF(effort), NUMBER, .usual = NO_NUMBER},
    {"strict", NULL, OF(strict), FLAG, NEEDS(NOTHING)},
    {"no_external_data", NULL, OF(no_external_data), FLAG, NEEDS(NOTHING)},
    {NULL, "ort-advise", OF(ort_advise), FLAG, NEEDS(ORT)},
    {NULL, "ort-partition", OF(ort_partition), FLAG, NEEDS(ORT)},
    {NULL, "pytorch", OF(pytorch), TEXT, NEEDS(PYTORCH)},
    {NULL, "gpu", OF(compute_capability), NUMBER, NEEDS(LIBRARIES)},
    {NULL, "max-growth", OF(has_max_growth), FLAG, NEEDS(BASELINE)},
    {NULL, "snapshot", OF(snapshot), TEXT, NEEDS(PYTORCH)},
};

enum { N_ROWS = sizeof rows / sizeof rows[0] };

/* --- Needs ------------------------------------------------------------------------------------- */

static const char *missing(const onv_options *options, const row *r, size_t n_needs)
{
    for (size_t i = 0; i < n_needs; i++)
        if (!is_met(r->needs[i], options)) return texts[r->needs[i]];
    return NULL;
}

const char *onv_option_missing(const onv_options *given, const char *option)
{
    onv_options options;
    size_t i = 0;
    while (i < N_ROWS && (rows[i].name == NULL || strcmp(rows[i].name, option) != 0)) i++;
    if (i == N_ROWS || given->struct_size == sizeof options)
        return i < N_ROWS ? missing(given, &rows[i], 2) : NULL;
    options = onv_options_default();
    onv_take(&options, sizeof options, given, given->struct_size);
    return missing(&options, &rows[i], 2);
}

/* Zeros are defaults, too, where a struct was not filled by its initializer. */
static bool differs(const onv_options *options, const onv_options *plain, const row *r)
{
    static const char zeros[sizeof(double)];
    const size_t at = r->kind == LIST ? r->n_at : r->at;
    const size_t bytes = r->kind == LIST ? sizeof(size_t) : r->bytes;
    const char *field = (const char *)options + at;
    return memcmp(field, (const char *)plain + at, bytes) != 0 && memcmp(field, zeros, bytes) != 0;
}

onv_status onv_check_needs(const onv_options *options, onv_error *err)
{
    const onv_options plain = onv_options_default();
    for (const row *r = rows; r < rows + N_ROWS; r++) {
        const char *text = differs(options, &plain, r) ? missing(options, r, 2) : NULL;
        if (text != NULL) return onv_fail(err, ONV_ERR_USAGE, "--%s needs %s", r->name, text);
    }
    return ONV_OK;
}

/* --- The report -------------------------------------------------------------------------------- */

/* What writes it: those that are given, then the others. */
typedef struct echo {
    onv_json json;
    onv_arena *arena;
    const onv_options *plain; /* the defaults */
    const char *text;         /* so far; NULL without memory */
    bool are_given;
} echo;

static bool keep(void *context, const char *text, size_t bytes)
{
    echo *e = context;
    if (e->text != NULL) e->text = onv_arena_printf(e->arena, "%s%.*s", e->text, (int)bytes, text);
    return e->text != NULL;
}

/* Begins a member where it is its turn. */
static bool begins(echo *e, const char *key, bool is_given)
{
    if (is_given == e->are_given) onv_json_key(&e->json, key);
    return is_given == e->are_given;
}

static void put_text(echo *e, const char *key, const char *text, const char *fallback)
{
    bool is_given = text != NULL && text[0] != '\0';
    if (begins(e, key, is_given)) onv_json_string(&e->json, is_given ? text : fallback);
}

static uint64_t number_at(const void *field, const row *r)
{
    uint64_t wide;
    uint32_t narrow;
    if (r->bytes == sizeof wide) return memcpy(&wide, field, sizeof wide), wide;
    return memcpy(&narrow, field, sizeof narrow), narrow;
}

static bool is_given(const echo *e, const void *field, const row *r, size_t n)
{
    const char *text = r->kind == TEXT ? *(const char *const *)field : NULL;
    if (r->kind == LIST) return n > 0;
    if (r->kind == TEXT) return text != NULL && text[0] != '\0';
    return memcmp(field, (const char *)e->plain + r->at, r->bytes) != 0;
}

static void put_row(echo *e, const onv_options *options, const row *r)
{
    static const char *const precisions[] = {NULL, "fp32", "fp16", "bf16"};
    const char *field = (const char *)options + r->at;
    const size_t n = r->kind == LIST ? *(const size_t *)((const char *)options + r->n_at) : 0;
    const bool given = e->are_given;
    onv_json *json = &e->json;
    if (r->key == NULL || is_given(e, field, r, n) != given ||
        missing(options, r, r->first_shows ? 1 : 2) != NULL)
        return;
    const uint64_t number =
        r->kind == NUMBER || r->kind == PRECISION ? given ? number_at(field, r) : r->usual : 0;
    double share = 0;
    if (r->kind == SHARE) memcpy(&share, field, sizeof share);
    switch ((kind)r->kind) {
    case TEXT:
        onv_json_put_string(json, r->key, given ? *(const char *const *)field : r->fallback);
        break;
    case PRECISION:
        onv_json_put_string(json, r->key, given ? precisions[number] : r->fallback);
        break;
    case LIST: onv_json_put_texts(json, r->key, *(const char *const *const *)field, n); break;
    case FLAG: onv_json_put_bool(json, r->key, given); break;
    case NUMBER: onv_json_put_known(json, r->key, given || r->usual != NO_NUMBER, number); break;
    case SHARE:
        if (share < 0)
            onv_json_put_string(json, r->key, NULL);
        else
            onv_json_put_ratio(json, r->key, (uint64_t)(share * 1e6 + 0.5), 1000000);
    }
}

/* Keys must differ: of a dim that is bound twice the last one counts. */
static bool is_bound_again(const onv_options *options, size_t dim)
{
    for (size_t i = dim + 1; i < options->n_dims; i++)
        if (strcmp(options->dims[i].name, options->dims[dim].name) == 0) return true;
    return false;
}

static void put_dims(echo *e, const onv_options *options)
{
    if (!begins(e, "dims", options->n_dims > 0)) return;
    onv_json_open(&e->json, '{', ONV_JSON_INLINE);
    for (size_t i = 0; i < options->n_dims; i++) {
        if (is_bound_again(options, i)) continue;
        onv_json_key(&e->json, options->dims[i].name);
        onv_json_i64(&e->json, options->dims[i].size);
    }
    onv_json_close(&e->json);
}

static void put_budgets(echo *e, const onv_options *options)
{
    const onv_budget alone = {NULL, options->budget, 0};
    const bool is_alone = options->n_budgets == 0 && options->budget > 0;
    const onv_budget *budgets = is_alone ? &alone : options->budgets;
    const size_t n = is_alone ? 1 : options->n_budgets;
    if (!begins(e, "budget", n > 0)) return;
    onv_json_open(&e->json, '[', ONV_JSON_INLINE);
    for (size_t i = 0; i < n; i++)
        if (budgets[i].name != NULL)
            onv_json_string(&e->json, budgets[i].name);
        else
            onv_json_u64(&e->json, budgets[i].bytes);
    onv_json_close(&e->json);
}

static void put_runtimes(echo *e, const onv_options *options, const onv_analysis *analysis)
{
    if (!begins(e, "runtimes", options->runtimes != NULL)) return;
    onv_json_open(&e->json, '[', ONV_JSON_INLINE);
    for (size_t i = 0; i < analysis->n_runtimes; i++)
        onv_json_string(&e->json, analysis->runtimes[i].runtime->name);
    onv_json_close(&e->json);
}

static void put_limits(echo *e, const onv_limits *limits)
{
    const char *name;
    uint64_t fallback;
    onv_json_put_open(&e->json, "limits", '{', ONV_JSON_INLINE);
    for (size_t i = 0; (name = onv_limit_name(i, NULL, &fallback)) != NULL; i++) {
        uint64_t given = onv_limits_get(limits, i);
        if (begins(e, name, given != 0)) onv_json_u64(&e->json, given != 0 ? given : fallback);
    }
    onv_json_close(&e->json);
}

static void put_all(echo *e, const onv_options *options, const onv_analysis *analysis)
{
    bool names_gpu = options->gpu != NULL || options->compute_capability != 0;
    onv_json_put_open(&e->json, e->are_given ? "given" : "defaults", '{', ONV_JSON_INLINE);
    put_dims(e, options);
    put_budgets(e, options);
    if (begins(e, "gpu", names_gpu)) onv_json_string(&e->json, analysis->answer.gpu);
    put_runtimes(e, options, analysis);
    put_text(e, "pytorch", options->pytorch, onv_pytorch_release(0));
    put_text(e, "onnxruntime", NULL, ORT_RELEASE);
    for (size_t i = 0; i < N_ROWS; i++) put_row(e, options, &rows[i]);
    put_limits(e, options->limits);
    onv_json_close(&e->json);
}

onv_status onv_in_force_note(const onv_options *options, onv_analysis *analysis, onv_error *err)
{
    const onv_options plain = onv_options_default();
    echo e = {.arena = &analysis->model.arena, .plain = &plain, .text = "", .are_given = true};
    onv_writer out;
    onv_writer_init(&out, keep, &e);
    onv_json_init(&e.json, &out, NULL);
    e.json.is_embedded = true; /* it acts on nothing in a page, either */
    onv_json_open(&e.json, '{', ONV_JSON_INLINE);
    put_all(&e, options, analysis);
    e.are_given = false;
    put_all(&e, options, analysis);
    onv_json_close(&e.json);
    if (onv_writer_finish(&out, NULL) != ONV_OK) return onv_fail_memory(err);
    analysis->in_force = e.text;
    return ONV_OK;
}
