#include "fuzz/targets.h"
#include "base/heap.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/csv_text.h"
#include "alloc/trace_csv.h"
#include "api/analysis.h"
#include "base/strings.h"
#include "fuzz/hold.h"
#include "ir/check.h"
#include "load/load.h"
#include "onnxvram/onnxvram.h"
#include "plan/plan.h"
#include "support/held.h"

typedef struct text {
    char *at;
    size_t size, capacity;
} text;

static bool keep(void *context, const char *data, size_t bytes)
{
    text *t = context;
    if (bytes > t->capacity - t->size) {
        t->capacity = (t->size + bytes) * 2;
        t->at = realloc(t->at, t->capacity);
        hold(t->at != NULL);
    }
    if (bytes > 0) memcpy(t->at + t->size, data, bytes);
    t->size += bytes;
    return true;
}

static bool drop(void *context, const char *data, size_t bytes)
{
    (void)context;
    for (size_t i = 0; i < bytes; i += 512) (void)*(volatile const char *)&data[i];
    return true;
}

/* --- Models ------------------------------------------------------------------------------------ */

/* What is asked of an input follows from its bytes alone, so that a finding can be made again. */
static uint64_t draw_from(const uint8_t *data, size_t size, uint64_t seed)
{
    uint64_t draw = onv_hash_u64(seed + size);
    for (size_t i = 0; i < size; i++) draw = onv_hash_u64(draw ^ data[i]);
    return draw;
}

/* A machine that fuzzes has less memory than one analysis may take. */
static const onv_limits limits = {.struct_size = sizeof limits, .arena_bytes = (uint64_t)256 << 20};

static void run_load(const uint8_t *data, size_t size)
{
    onv_model model;
    onv_error error = {0};
    onv_status status = onv_load_memory(data, size, NULL, &limits, &model, &error);
    if (status != ONV_OK) {
        check_failure(status, &error);
        return;
    }
    status = onv_graph_check(&model, &error);
    if (status != ONV_OK) check_failure(status, &error);
    onv_model_cleanup(&model);
}

/* Nothing of an analysis may depend on how it is looked at. */
static void read_everything(const onv_analysis *analysis)
{
    onv_summary summary = {0};
    onv_analysis_summary(analysis, &summary);
    uint64_t unknown = 0;
    for (size_t i = 0; i < onv_analysis_tensor_count(analysis); i++) {
        onv_tensor_info info;
        hold(onv_analysis_tensor(analysis, i, &info));
        hold(info.name != NULL && info.dtype != NULL && info.shape != NULL);
        hold(!info.live || info.first_step <= info.last_step);
        unknown += info.live && info.bytes == ONV_SIZE_UNKNOWN;
    }
    hold(!summary.sized || unknown == 0);
    for (size_t i = 0; i < analysis->n_runtimes; i++)
        hold(analysis->runtimes[i].total_bytes.low <= analysis->runtimes[i].total_bytes.high);
    onv_diagnostic d;
    for (size_t i = 0; onv_analysis_diagnostic(analysis, i, &d); i++)
        hold(d.message != NULL && d.code != NULL && d.node != NULL);
}

static void check_json(const text *t)
{
    json_error_t error;
    /* Sizes are 64 bits unsigned, which jansson reads as real numbers only. */
    json_t *root = json_loadb(
        t->at, t->size, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &error);
    if (root == NULL) fprintf(stderr, "JSON: %d:%d: %s\n", error.line, error.column, error.text);
    hold(root != NULL);
    json_decref(root);
}

static void write_reports(const onv_analysis *analysis, bool verbose)
{
    static const onv_format formats[] = {
        ONV_FORMAT_TEXT,        ONV_FORMAT_JSON,       ONV_FORMAT_CSV,
        ONV_FORMAT_LAYERS,      ONV_FORMAT_DUMP_GRAPH, ONV_FORMAT_DUMP_INTERVALS,
        ONV_FORMAT_DUMP_PLAN,   ONV_FORMAT_DUMP_TRACE, ONV_FORMAT_DUMP_REPLAY,
        ONV_FORMAT_CHECKPOINTS, ONV_FORMAT_HTML,       ONV_FORMAT_SVG,
        ONV_FORMAT_MEMORY_VIZ,  ONV_FORMAT_PERFETTO,   ONV_FORMAT_MODEL_EXPLORER,
    };
    onv_report_options options = onv_report_options_default();
    options.verbosity = verbose;
    options.unicode = options.color = verbose;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        onv_error error;
        text json = {0};
        bool is_json = formats[i] == ONV_FORMAT_JSON;
        onv_status status =
            onv_report(&analysis, 1, formats[i], &options, is_json ? keep : drop, &json, &error);
        if (status != ONV_OK)
            check_failure(status, &error);
        else if (is_json)
            check_json(&json);
        free(json.at);
    }
}

/* Bits of a hash, taken one after the other. */
static uint64_t take(uint64_t *draw, unsigned below)
{
    uint64_t taken = *draw % below;
    *draw /= below;
    return taken;
}

static void draw_training(onv_options *options, uint64_t draw)
{
    static const char *const losses[] = {NULL, "cross-entropy", "mse", "none"};
    static const char *const grads[] = {NULL, "before-forward", "before-backward", "keep"};
    static const char *const impls[] = {NULL, "foreach", "fused", "for-loop"};
    static const char *const plans[] = {NULL, "all", "none,sqrt,segments=3", "optimal,blocks"};
    static const char *const kernels[] = {NULL, "math", "flash", "efficient"};
    static const char *const frozen[] = {"*bias", "*w*"};
    unsigned n = 0;
    while (onv_name_at(ONV_NAMES_OPTIMIZERS, n, NULL) != NULL) n++;
    options->train = onv_name_at(ONV_NAMES_OPTIMIZERS, take(&draw, n), NULL);
    options->loss = losses[take(&draw, 4)];
    options->zero_grad = grads[take(&draw, 4)];
    options->optimizer_impl = impls[take(&draw, 4)];
    options->checkpoint = plans[take(&draw, 4)];
    options->amp = (onv_precision)take(&draw, 4);
    options->zero_stage = (unsigned)take(&draw, 4);
    options->world = options->zero_stage > 0 ? 1 + (unsigned)take(&draw, 5) : 0;
    options->accumulate = (unsigned)take(&draw, 3);
    options->as_exported = take(&draw, 4) == 0;
    options->folded_norms = take(&draw, 4) == 0;
    options->graph_module = take(&draw, 4) == 0;
    options->attention = kernels[take(&draw, 4)];
    options->freeze = frozen;
    options->n_freeze = take(&draw, 4) == 0 ? 2 : 0;
    if (take(&draw, 2) == 0) options->runtimes = "torch,async,arena";
    if (take(&draw, 8) == 0) options->runtimes = "torch,cpu,tensorrt";
}

static onv_options draw_options(const uint8_t *data, size_t size)
{
    static const int64_t batches[] = {2, 0, 2, 1, 3, 64, 1000003, INT64_C(1) << 40};
    uint64_t draw = draw_from(data, size, 0);
    onv_options options = onv_options_default();
    options.limits = &limits;
    options.batch = batches[draw & 7];
    if ((draw >> 3 & 3) == 0) options.precision = (onv_precision)(draw >> 5 & 3);
    if ((draw >> 7 & 3) == 0) {
        size_t n = 0;
        while (onv_name_at(ONV_NAMES_ORDERS, n, NULL) != NULL) n++;
        options.order = onv_name_at(ONV_NAMES_ORDERS, (draw >> 9 & 15) % n, NULL);
    }
    options.expandable_segments = (draw >> 13 & 3) == 0;
    options.timelines = (draw >> 15 & 3) == 0;
    options.savings = (draw >> 24 & 1) == 0;
    if ((draw >> 25 & 3) == 0)
        options.weights = onv_name_at(ONV_NAMES_WEIGHT_FORMATS, (draw >> 27 & 3) % 3, NULL);
    if ((draw >> 29 & 3) == 0) options.kv_cache = (draw >> 31 & 1) == 0 ? "copies" : "shared";
    if ((draw >> 15 & 7) == 0) {
        options.budget = UINT64_C(1) << (draw >> 18 & 63);
        options.max_batch = options.batch > 0;
    }
    return options;
}

/* Whether all of it, training under every plan included, can be lived through in host memory. */
static bool is_small(const onv_analysis *analysis)
{
    const uint64_t most = (uint64_t)8 << 20;
    for (size_t i = 0; i < analysis->n_runtimes; i++)
        if (analysis->runtimes[i].held_bytes > most) return false;
    for (size_t i = 0; i < analysis->training.n_plans; i++)
        if (analysis->training.plans[i].figures.reserved_peak_bytes > most) return false;
    return analysis->live.unknown == 0;
}

static onv_analysis *try_analysis(const uint8_t *data, size_t size, const onv_options *options)
{
    onv_analysis *analysis;
    onv_error error;
    onv_status status = onv_analysis_new_from_memory(data, size, NULL, options, &analysis, &error);
    if (status == ONV_OK) return analysis;
    hold(analysis == NULL);
    check_failure(status, &error);
    return NULL;
}

/* Every dim of the inputs, the free ones bound: what training and replays ask for. */
typedef struct bound_shapes {
    onv_shape_binding shapes[8];
    int64_t dims[8][8];
    char names[8][64];
} bound_shapes;

static void bind_input(bound_shapes *to, size_t n, const onv_tensor_info *info)
{
    size_t rank = 0;
    for (const char *at = info->shape; *at != '\0' && *at != ']' && rank < 8; at += *at == ',') {
        at += *at == '[' || *at == ' ';
        if (*at == ']') break;
        to->dims[n][rank++] = *at >= '0' && *at <= '9' ? strtoll(at, NULL, 10) : 4;
        at += strcspn(at, ",]");
    }
    snprintf(to->names[n], sizeof to->names[n], "%s", info->name);
    to->shapes[n] = (onv_shape_binding){to->names[n], to->dims[n], rank};
}

static void bind_inputs(onv_options *options, bound_shapes *to, const onv_analysis *analysis)
{
    onv_tensor_info info;
    for (size_t i = 0; onv_analysis_tensor(analysis, i, &info) && options->n_shapes < 8; i++)
        if (info.kind == ONV_TENSOR_INPUT) bind_input(to, options->n_shapes++, &info);
    options->shapes = to->shapes;
}

/* NULL where the model is refused. */
static onv_analysis *analyse(const uint8_t *data, size_t size, const onv_options *options)
{
    onv_analysis *analysis = try_analysis(data, size, options);
    if (analysis == NULL) return NULL;
    read_everything(analysis);
    const onv_replays *replays = &analysis->replays;
    hold(replays->kind == NULL || (replays->agrees && !replays->out_of_memory));
    write_reports(analysis, draw_from(data, size, 2) & 1);
    return analysis;
}

/* Replays see to it themselves that whatever the model is, its buffers are where they should be. */
static void run_analysis(const uint8_t *data, size_t size)
{
    uint64_t draw = draw_from(data, size, 1);
    onv_options options = draw_options(data, size);
    onv_analysis *analysis = analyse(data, size, &options);
    bool train = (draw & 3) == 0, replay = (draw >> 2 & 3) == 0;
    bound_shapes bound;
    if (analysis != NULL && (train || replay)) {
        options.batch = 0;
        options.budget = 0;
        options.max_batch = false;
        options.effort = 200000; /* it is spent on every plan, and again on every replay */
        bind_inputs(&options, &bound, analysis);
        if (train) draw_training(&options, draw >> 8);
        onv_analysis_destroy(analysis);
        analysis = analyse(data, size, &options);
    }
    replay = replay && analysis != NULL && is_small(analysis);
    onv_analysis_destroy(analysis);
    options.replay = "host";
    if (replay) onv_analysis_destroy(analyse(data, size, &options));
}

/* --- Other files ------------------------------------------------------------------------------- */

static void run_plan(const uint8_t *data, size_t size)
{
    onv_plan_table table;
    onv_plan plan;
    onv_error error = {0};
    uint64_t draw = draw_from(data, size, 0);
    onv_plan_options options = {.capacity = (draw & 3) == 0 ? draw >> (draw >> 2 & 63) : 0};
    char *copy = onv_heap_calloc(size + 1, 1);
    if (copy == NULL) return;
    if (size > 0) memcpy(copy, data, size);
    onv_status status = onv_plan_csv_parse(copy, size, &table, &error);
    if (status != ONV_OK) {
        check_failure(status, &error);
        return;
    }
    status = onv_plan_compute(table.buffers, table.count, &options, &plan, &error);
    if (status == ONV_OK) {
        hold(onv_plan_check(table.buffers, table.count, &options, &plan, NULL) == ONV_OK);
        hold(onv_plan_csv_write(&table, &plan, drop, NULL, NULL) == ONV_OK);
        onv_plan_cleanup(&plan);
    } else {
        check_failure(status, &error);
    }
    onv_plan_table_cleanup(&table);
}

typedef struct feeding {
    onv_allocator allocator;
    size_t allocs;
} feeding;

static onv_status feed(void *context, const onv_trace_event *event, onv_error *error)
{
    feeding *f = context;
    f->allocs += !event->is_free;
    if (!event->is_free) f->allocator.stream = event->stream;
    return event->is_free ? onv_allocator_free(&f->allocator, event->id, error)
                          : onv_allocator_alloc(&f->allocator, event->id, event->bytes, error);
}

/* Event by event, and as a timeline: the same figures, and a placement that is sound. */
static void simulate(const uint8_t *data, size_t size, const onv_timeline *t,
                     const onv_alloc_model *model, const onv_alloc_options *options)
{
    feeding f = {0};
    onv_error error = {0};
    onv_placement p;
    onv_status status = onv_allocator_init(&f.allocator, model, options, &error);
    if (status != ONV_OK) {
        check_failure(status, &error);
        return;
    }
    status = onv_trace_csv_scan((const char *)data, size, feed, &f, NULL, &error);
    if (status == ONV_OK) {
        onv_held_figures figures;
        onv_allocator_figures(&f.allocator, &figures);
        hold(allocator_check(&f.allocator, &error) == ONV_OK);
        hold(figures.allocated_end <= figures.allocated_peak);
        hold(figures.reserved_end <= figures.reserved_peak);
        hold(onv_allocator_summary(&f.allocator, drop, NULL));
        hold(f.allocs == t->buffers.count);
        hold(onv_alloc_run(t, model, options, &p, &error) == ONV_OK);
        hold(p.figures.reserved_peak == figures.reserved_peak);
        hold(p.figures.out_of_memory || model->counts_requested ||
             placement_check(&p, t, &error) == ONV_OK);
        onv_placement_cleanup(&p);
    } else {
        check_failure(status, &error);
    }
    onv_allocator_cleanup(&f.allocator);
}

static void run_simulate(const uint8_t *data, size_t size)
{
    onv_timeline t;
    onv_error error = {0};
    onv_status status = csv_text_read((const char *)data, size, &t, &error);
    if (status != ONV_OK) {
        check_failure(status, &error);
        return;
    }
    hold(onv_timeline_check(&t, &error) == ONV_OK);
    uint64_t draw = draw_from(data, size, 0);
    onv_alloc_options options = {.capacity_bytes = (draw & 3) == 0 ? draw >> (draw >> 2 & 63) : 0};
    options.torch.expandable_segments = draw >> 8 & 1;
    for (size_t i = 0; i < onv_n_alloc_models; i++)
        simulate(data, size, &t, onv_alloc_models[i], &options);
    onv_timeline_cleanup(&t);
}

/* --- All of them ------------------------------------------------------------------------------- */

const fuzz_target fuzz_targets[] = {
    {"load", run_load, fuzz_mutate_model},
    {"analysis", run_analysis, fuzz_mutate_model},
    {"plan", run_plan, fuzz_mutate_bytes},
    {"op-shapes", fuzz_run_op_shapes, fuzz_mutate_bytes},
    {"simulate", run_simulate, fuzz_mutate_bytes},
    {"notes", fuzz_run_notes, fuzz_mutate_bytes},
    {"statements", fuzz_run_statements, fuzz_mutate_bytes},
    {"terms", fuzz_run_terms, fuzz_mutate_bytes},
    {"baseline", fuzz_run_baseline, fuzz_mutate_bytes},
    {"genai", fuzz_run_genai, fuzz_mutate_bytes},
    {"triton", fuzz_run_triton, fuzz_mutate_bytes},
    {"tensor", fuzz_run_tensor, fuzz_mutate_bytes},
    {"requests", fuzz_run_requests, fuzz_mutate_bytes},
    {"snapshot", fuzz_run_snapshot, fuzz_mutate_bytes},
    {"archive", fuzz_run_archive, fuzz_mutate_program},
    {"expression", fuzz_run_expression, fuzz_mutate_bytes},
    {"library", fuzz_run_library, fuzz_mutate_bytes},
    {0},
};

const fuzz_target *fuzz_target_find(const char *name)
{
    for (const fuzz_target *t = fuzz_targets; t->name != NULL; t++)
        if (strcmp(t->name, name) == 0) return t;
    return NULL;
}
