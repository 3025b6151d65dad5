/* "options" of the JSON report: what an analysis was asked (`given`), and what is in force of what it was not (`defaults`).
 * It is text from the beginning on, since the caller's options end with the call. */
#include <stddef.h>
#include <string.h>

#include "api/analysis.h"
#include "api/names.h"
#include "base/fail.h"
#include "eager/pytorch.h"
#include "load/limits.h"
#include "report/json.h"

typedef enum kind { FLAG, NUMBER, TEXT, LIST, PRECISION, SHARE } kind;

typedef struct row {
    const char *key;
    /* The option without whose needs (needs.c) it has no effect, and no place; NULL: none. */
    const char *needs;
    const char *fallback; /* a text */
    uint64_t usual;       /* a number */
    size_t at, bytes, n_at;
    kind kind;
} row;

/* The release whose rules the runtime ort follows. */
#define ORT_RELEASE "1.31"

/* No number: null. */
#define NO_NUMBER UINT64_MAX

#define OF(field) .at = offsetof(onv_options, field), .bytes = sizeof((onv_options *)NULL)->field
#define ALSO(n)   .n_at = offsetof(onv_options, n)

/* By how an analysis goes on: sizes, what is judged, PyTorch, training, ONNX Runtime, work. */
static const row rows[] = {
    {"batch", NULL, .usual = NO_NUMBER, OF(batch), .kind = NUMBER},
    {"precision", NULL, "as exported", OF(precision), .kind = PRECISION},
    {"weight_format", NULL, OF(weights), .kind = TEXT},
    {"kv_cache", NULL, OF(kv_cache), .kind = TEXT},
    {"order", NULL, "model", OF(order), .kind = TEXT},
    {"program", NULL, OF(program), .kind = TEXT},
    {"op_shapes", NULL, OF(op_shapes_file), .kind = TEXT},
    {"align", "align", .usual = 1, OF(align), .kind = NUMBER},
    {"margin_percent", "margin", OF(margin_percent), .kind = NUMBER},
    {"max_batch", "max-batch", OF(max_batch), .kind = FLAG},
    {"max_dim", "max-dim", OF(max_dim), .kind = TEXT},
    {"objective", "objective", OF(objective), .kind = TEXT},
    {"amp", "amp", OF(amp), .kind = PRECISION},
    {"attention", "attention", "auto", OF(attention), .kind = TEXT},
    {"inplace", "inplace", OF(inplace), ALSO(n_inplace), .kind = LIST},
    {"locals", "locals", OF(locals), .kind = FLAG},
    {"as_exported", "as-exported", OF(as_exported), .kind = FLAG},
    {"folded_norms", "folded-norms", OF(folded_norms), .kind = FLAG},
    {"graph_module", "graph-module", OF(graph_module), .kind = FLAG},
    {"no_fast_path", "no-fast-path", OF(no_fast_path), .kind = FLAG},
    {"channels_last", "channels-last", OF(channels_last), .kind = FLAG},
    {"no_tf32", "no-tf32", OF(no_tf32), .kind = FLAG},
    {"cudnn_benchmark", "cudnn-benchmark", OF(cudnn_benchmark), .kind = FLAG},
    {"expandable_segments", "expandable-segments", OF(expandable_segments), .kind = FLAG},
    {"cached_bytes", "pool", OF(pool), .kind = NUMBER},
    {"missing_parameters", "parameters", .usual = NO_NUMBER, OF(parameters), .kind = NUMBER},
    {"missing_buffer_bytes", "buffers", .usual = NO_NUMBER, OF(buffers), .kind = NUMBER},
    {"train", NULL, OF(train), .kind = TEXT},
    {"loss", "loss", "as the output suggests", OF(loss), .kind = TEXT},
    {"freeze", "freeze", OF(freeze), ALSO(n_freeze), .kind = LIST},
    {"train_only", "train-only", OF(train_only), ALSO(n_train_only), .kind = LIST},
    {"attention_dropout", "attention-dropout", OF(attention_dropout), .kind = SHARE},
    {"accumulate", "accumulate", .usual = 1, OF(accumulate), .kind = NUMBER},
    {"zero_grad", "zero-grad", "before-forward", OF(zero_grad), .kind = TEXT},
    {"optimizer_impl", "optimizer-impl", "as PyTorch chooses", OF(optimizer_impl), .kind = TEXT},
    {"master_weights", "master-weights", OF(master_weights), .kind = FLAG},
    {"ema", "ema", OF(ema), .kind = FLAG},
    {"offload", "offload", OF(offload), .kind = TEXT},
    {"checkpoint", "checkpoint", OF(checkpoint), .kind = TEXT},
    {"plan", "plan", OF(plan), .kind = TEXT},
    {"compile", "compile", OF(compile), .kind = FLAG},
    {"compile_budget", "compile budget", OF(compile_budget), .kind = SHARE},
    {"world", "loss", /* which every training has */ .usual = 1, OF(world), .kind = NUMBER},
    {"zero_stage", "zero", OF(zero_stage), .kind = NUMBER},
    {"ddp", "ddp", OF(ddp), .kind = TEXT},
    {"fsdp", "fsdp", OF(fsdp), .kind = TEXT},
    {"ort", "ort", OF(ort), ALSO(n_ort), .kind = LIST},
    {"shape_trace", "shape-trace", OF(shape_trace), .kind = TEXT},
    {"contexts", "contexts", .usual = 1, OF(contexts), .kind = NUMBER},
    {"workspace_bytes", "workspace", .usual = NO_NUMBER, OF(workspace), .kind = NUMBER},
    {"effort", NULL, .usual = NO_NUMBER, OF(effort), .kind = NUMBER},
    {"strict", NULL, OF(strict), .kind = FLAG},
    {"no_external_data", NULL, OF(no_external_data), .kind = FLAG},
};

enum { N_ROWS = sizeof rows / sizeof rows[0] };

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
    if (is_given == e->are_given) onv_json_any_key(&e->json, key);
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
    if (is_given(e, field, r, n) != given ||
        (r->needs != NULL && onv_option_missing(options, r->needs) != NULL))
        return;
    const uint64_t number =
        r->kind == NUMBER || r->kind == PRECISION ? given ? number_at(field, r) : r->usual : 0;
    double share = 0;
    if (r->kind == SHARE) memcpy(&share, field, sizeof share);
    switch (r->kind) {
    case TEXT:
        onv_json_put_string(json, r->key, given ? *(const char *const *)field : r->fallback);
        break;
    case PRECISION:
        onv_json_put_string(json, r->key, given ? precisions[number] : r->fallback);
        break;
    case LIST: onv_json_put_texts(json, r->key, *(const char *const *const *)field, n); break;
    case FLAG: onv_json_put_bool(json, r->key, given); break;
    case NUMBER: onv_json_put_known(json, r->key, number != NO_NUMBER, number); break;
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
        onv_json_any_key(&e->json, options->dims[i].name);
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
    onv_json_init(&e.json, &out);
    e.json.is_embedded = true; /* it acts on nothing in a page, either */
    onv_json_open(&e.json, '{', ONV_JSON_INLINE);
    put_all(&e, options, analysis);
    e.are_given = false;
    put_all(&e, options, analysis);
    onv_json_close(&e.json);
    if (onv_writer_finish(&out, NULL) != ONV_OK || e.json.out_of_memory)
        return onv_fail_memory(err);
    analysis->in_force = e.text;
    return ONV_OK;
}
