/* The public functions: they compose the passes and own their results. */
#include <string.h>
#include <time.h>

#include "api/replay.h"
#include "api/training.h"
#include "base/heap.h"
#include "infer/infer.h"
#include "ir/check.h"
#include "live/live.h"
#include "live/order.h"
#include "load/limits.h"
#include "load/load.h"
#include "report/report.h"
#include "runtime/fit.h"
#include "runtime/levers.h"
#include "runtime/train.h"

/* Whether to go on: the time of a limit, and the caller's word. */
typedef struct watch {
    struct timespec start;
    uint64_t seconds;
    bool late;
    const onv_options *options;
} watch;

struct onv_analysis {
    onv_model model;
    onv_infer_info infer;
    onv_order_result order;
    onv_live live;
    onv_runtime_result runtimes[ONV_MAX_RUNTIMES];
    size_t n_runtimes;
    onv_levers levers;
    onv_training training; /* without an optimizer: not asked for */
    onv_fit fit;
    onv_replays replays;
};

const char *onv_version(void)
{
    return ONV_VERSION;
}

/* Options of an older header are shorter; what they lack is zero, the default. */
static onv_options complete_options(const onv_options *given)
{
    onv_options options = onv_options_default();
    if (given == NULL) return options;
    size_t size = given->struct_size < sizeof options ? given->struct_size : sizeof options;
    memcpy(&options, given, size);
    options.struct_size = sizeof options;
    return options;
}

static watch start_watch(const onv_options *options)
{
    watch w = {.seconds = onv_limits_resolve(&options->limits).seconds, .options = options};
    clock_gettime(CLOCK_MONOTONIC, &w.start);
    return w;
}

static bool is_over(void *context)
{
    watch *w = context;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t passed = now.tv_sec - w->start.tv_sec - (now.tv_nsec < w->start.tv_nsec);
    w->late = (uint64_t)passed >= w->seconds;
    return w->late ||
           (w->options->cancelled != NULL && w->options->cancelled(w->options->cancel_context));
}

/* A search that ran out of time has passed a limit. */
static onv_status why_over(const watch *w, onv_error *err)
{
    if (err != NULL) *err = (onv_error){0};
    if (!w->late) return onv_fail(err, ONV_ERR_CANCELLED, "the analysis was cancelled");
    return onv_fail(err, ONV_ERR_LIMIT,
                    "searches take more than %llu s, the limit" ONV_RAISE("seconds"),
                    (unsigned long long)w->seconds);
}

/* --- Passes ------------------------------------------------------------------------------------ */

static onv_status check_runtimes(const char *list, onv_error *err)
{
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        size_t length = strcspn(at, ",");
        bool found = false;
        for (size_t i = 0; i < onv_n_runtimes; i++)
            found |= strlen(onv_runtimes[i]->name) == length &&
                     strncmp(onv_runtimes[i]->name, at, length) == 0;
        if (!found)
            return onv_fail(err, ONV_ERR_USAGE, "there is no runtime '%.*s'", (int)length, at);
    }
    return ONV_OK;
}

/* A runtime that insists on an order of its own is given lifetimes in that order. */
static onv_status compute_runtime(onv_analysis *analysis, const onv_runtime *runtime,
                                  const onv_options *options, watch *w, onv_error *err)
{
    onv_runtime_options how = {
        .plan_effort = options->effort, .cancelled = is_over, .cancel_context = w};
    how.alloc.torch.expandable_segments = options->expandable_segments;
    onv_live reordered;
    const onv_live *live = &analysis->live;
    if (runtime->order != NULL) {
        onv_order_result order;
        ONV_TRY(
            onv_order_compute(onv_order_find(runtime->order), &analysis->model, NULL, &order, err));
        ONV_TRY(onv_live_compute(&analysis->model, order.nodes, &reordered, err));
        live = &reordered;
    }
    onv_runtime_result *result = &analysis->runtimes[analysis->n_runtimes++];
    ONV_TRY(onv_runtime_compute(runtime, &analysis->model, live, &how, result, err));
    if (analysis->replays.kind == NULL) return ONV_OK;
    onv_script script;
    ONV_TRY(onv_runtime_script(result, &analysis->model, live, &how, &script, err));
    return onv_replays_add(&analysis->replays, &script, err);
}

/* What a quick search for an order reaches; UINT64_MAX where the user chose an order, or the graph
 * is too large to look for one on the side. */
static onv_status peak_of_better_order(onv_analysis *analysis, uint64_t *peak, onv_error *err)
{
    enum { MOST_NODES = 20000 };
    onv_order_result order;
    *peak = UINT64_MAX;
    if (strcmp(analysis->order.name, "model") != 0 || analysis->live.n_steps > MOST_NODES)
        return ONV_OK;
    ONV_TRY(onv_order_compute(onv_order_find("greedy"), &analysis->model, NULL, &order, err));
    *peak = order.peak_bytes;
    return ONV_OK;
}

/* Training stands among the runtimes as one more, so that budgets apply to it. */
static onv_status compute_training(onv_analysis *analysis, const onv_options *options,
                                   onv_error *err)
{
    static const char *const losses[] = {[ONV_LOSS_CROSS_ENTROPY] = "cross-entropy",
                                         [ONV_LOSS_MSE] = "mse",
                                         [ONV_LOSS_NONE] = "none"};
    onv_training_options how = {.train = {.optimizer = onv_optimizer_find(options->train),
                                          .accumulate = options->accumulate,
                                          .zero_stage = options->zero_stage,
                                          .world = options->world,
                                          .lower = {.as_exported = options->as_exported,
                                                    .freeze = options->freeze,
                                                    .n_freeze = options->n_freeze}}};
    if (how.train.optimizer == NULL)
        return onv_fail(err, ONV_ERR_USAGE, "there is no optimizer '%s'", options->train);
    bool known = options->loss == NULL;
    for (size_t i = 0; i < sizeof losses / sizeof losses[0] && !known; i++) {
        if (losses[i] == NULL || strcmp(losses[i], options->loss) != 0) continue;
        how.train.lower.loss = (onv_loss)i;
        known = true;
    }
    if (!known) return onv_fail(err, ONV_ERR_USAGE, "there is no loss '%s'", options->loss);
    if (options->amp == ONV_PRECISION_FP16) how.train.lower.amp = ONV_FLOAT16;
    if (options->amp == ONV_PRECISION_BF16) how.train.lower.amp = ONV_BFLOAT16;
    how.alloc.torch.expandable_segments = options->expandable_segments;
    ONV_TRY(onv_training_read_options(options, &how, err));
    onv_replay_training shown = {&analysis->replays, options->runtimes, &how.alloc,
                                 options->effort};
    how.take_rows = analysis->replays.kind != NULL ? onv_replay_take_rows : NULL;
    how.take_context = &shown;
    onv_training *t = &analysis->training;
    ONV_TRY(onv_training_compute(&analysis->model, &analysis->live, &how, t, err));
    onv_fit budget = {.budget_bytes = options->budget, .margin_percent = options->margin_percent};
    onv_fit_judge(&budget, NULL, 0);
    ONV_TRY(
        onv_training_choose_plan(&analysis->model, &analysis->live, budget.usable_bytes, t, err));
    onv_runtime_result *r = &analysis->runtimes[analysis->n_runtimes++];
    return onv_runtime_of_training(&analysis->model, &analysis->live, t, r, err);
}

static onv_status compute_lifetimes(onv_analysis *analysis, const onv_options *options, watch *w,
                                    onv_error *err)
{
    const char *name = options->order != NULL ? options->order : "model";
    const onv_order *order = onv_order_find(name);
    if (order == NULL) return onv_fail(err, ONV_ERR_USAGE, "there is no order '%s'", name);
    onv_order_options how = {.effort = options->effort, .cancelled = is_over, .cancel_context = w};
    ONV_TRY(onv_order_compute(order, &analysis->model, &how, &analysis->order, err));
    ONV_TRY(onv_live_compute(&analysis->model, analysis->order.nodes, &analysis->live, err));
    if (analysis->live.unknown > 0 && options->train != NULL)
        return onv_fail(err, ONV_ERR_USAGE,
                        "%llu tensors have no size, so training cannot be sized: bind all "
                        "dimensions",
                        (unsigned long long)analysis->live.unknown);
    if (analysis->live.unknown > 0 && analysis->replays.kind != NULL)
        return onv_fail(err, ONV_ERR_USAGE,
                        "%llu tensors have no size, so nothing can be replayed: bind all "
                        "dimensions",
                        (unsigned long long)analysis->live.unknown);
    if (analysis->live.unknown > 0) return ONV_OK; /* a missing size would pass for nothing */
    /* Training alone is compared with PyTorch's inference, unless more is asked for. */
    const char *list = options->runtimes;
    if (list == NULL && options->train != NULL) list = "torch";
    for (size_t i = 0; i < onv_n_runtimes; i++)
        if (onv_is_listed(list, onv_runtimes[i]->name))
            ONV_TRY(compute_runtime(analysis, onv_runtimes[i], options, w, err));
    if (options->train != NULL) ONV_TRY(compute_training(analysis, options, err));
    uint64_t better;
    ONV_TRY(peak_of_better_order(analysis, &better, err));
    return onv_levers_compute(&analysis->model, &analysis->live, better, &analysis->levers, err);
}

static onv_status analyse(onv_analysis *analysis, const onv_options *options, watch *w,
                          onv_error *err)
{
    static const onv_dtype casts[] = {ONV_UNDEFINED, ONV_FLOAT, ONV_FLOAT16, ONV_BFLOAT16};
    ONV_TRY(check_runtimes(options->runtimes, err));
    ONV_TRY(onv_training_check_options(options, err));
    ONV_TRY(onv_replay_choose(&analysis->replays, options->replay, err));
    ONV_TRY(onv_graph_check(&analysis->model, err));
    ONV_TRY(onv_infer(&analysis->model, options, &analysis->infer, err));
    onv_status status = ONV_OK;
    if ((unsigned)options->precision < sizeof casts / sizeof casts[0])
        status = onv_infer_cast_floats(&analysis->model, casts[options->precision], err);
    if (status == ONV_OK) status = compute_lifetimes(analysis, options, w, err);
    if (status != ONV_OK) onv_infer_info_cleanup(&analysis->infer);
    return status;
}

/* --- Objects ----------------------------------------------------------------------------------- */

typedef struct source {
    const char *path;
    const void *data; /* NULL: read the path */
    size_t bytes;
    watch *watch;
} source;

static onv_status create(const source *from, const onv_options *given, onv_analysis **result,
                         onv_error *err)
{
    onv_options options = *given;
    *result = NULL;
    onv_analysis *analysis = onv_heap_calloc(1, sizeof *analysis);
    if (analysis == NULL) return onv_fail_memory(err);
    onv_status status = from->data != NULL
                            ? onv_load_memory(from->data, from->bytes, from->path, &options.limits,
                                              &analysis->model, err)
                            : onv_load(from->path, &options.limits, &analysis->model, err);
    if (status == ONV_OK) {
        status = analyse(analysis, &options, from->watch, err);
        if (status == ONV_ERR_CANCELLED) status = why_over(from->watch, err);
        if (status == ONV_ERR_MEMORY) status = onv_limits_refused(&analysis->model.arena, err);
        if (status != ONV_OK) onv_model_cleanup(&analysis->model);
    }
    if (status != ONV_OK) {
        onv_replays_cleanup(&analysis->replays);
        onv_heap_free(analysis);
        return status;
    }
    *result = analysis;
    return ONV_OK;
}

/* --- The largest batch ------------------------------------------------------------------------- */

enum { MAX_PROBES = 256 };

/* What was found out: the totals (upper ends) at some batches, of the runtimes, then of the items of
 * the list of checkpointing plans. */
enum { FIRST_ITEM = ONV_MAX_RUNTIMES, N_TOTALS = ONV_MAX_RUNTIMES + ONV_MAX_PLAN_ITEMS };
typedef struct probe {
    int64_t batch;
    uint64_t totals[N_TOTALS];
} probe;

typedef struct probes {
    const source *from;
    onv_options options;
    size_t count, n_runtimes;
    probe at[MAX_PROBES];
} probes;

/* The analysis at a batch; sizes beyond all bounds count as such. */
static onv_status look_at(probes *p, int64_t batch, const probe **result, onv_error *err)
{
    for (size_t i = 0; i < p->count; i++) {
        *result = &p->at[i];
        if (p->at[i].batch == batch) return ONV_OK;
    }
    if (p->count == MAX_PROBES)
        return onv_fail(err, ONV_ERR_LIMIT, "the largest batch was not found in %d trials",
                        MAX_PROBES);
    if (is_over(p->from->watch)) return why_over(p->from->watch, err);
    onv_analysis *analysis;
    onv_error local = {0};
    probe *to = &p->at[p->count++];
    *result = to;
    to->batch = p->options.batch = batch;
    onv_status status = create(p->from, &p->options, &analysis, &local);
    for (size_t i = 0; i < N_TOTALS; i++) to->totals[i] = UINT64_MAX;
    if (status == ONV_ERR_OVERFLOW ||
        (status == ONV_ERR_LIMIT && batch > 1 && !p->from->watch->late))
        return ONV_OK;
    if (status != ONV_OK) {
        if (err != NULL) *err = local;
        return status;
    }
    for (size_t i = 0; i < analysis->n_runtimes; i++)
        to->totals[i] = analysis->runtimes[i].total_bytes.high;
    onv_training_item_totals(&analysis->training, &to->totals[FIRST_ITEM]);
    onv_analysis_destroy(analysis);
    return ONV_OK;
}

/* Doubles until it no longer fits, then halves the gap: ends with N that fits beside N + 1 that
 * does not, both analysed. */
static onv_status find_largest(probes *p, size_t runtime, uint64_t usable, int64_t *batch,
                               onv_error *err)
{
    int64_t good = 0, bad = 1;
    const probe *at;
    for (;;) {
        ONV_TRY(look_at(p, bad, &at, err));
        if (at->totals[runtime] > usable) break;
        good = bad;
        if (good >= ONV_MAX_BATCH) break;
        bad *= 2;
    }
    while (good < ONV_MAX_BATCH && bad - good > 1) {
        int64_t middle = good + (bad - good) / 2;
        ONV_TRY(look_at(p, middle, &at, err));
        if (at->totals[runtime] <= usable)
            good = middle;
        else
            bad = middle;
    }
    *batch = good;
    return ONV_OK;
}

/* Of each checkpointing plan; training as a whole reaches what the best of them does. It stands last
 * among the runtimes. */
static onv_status find_plan_batches(probes *p, onv_analysis *analysis, onv_error *err)
{
    onv_training *t = &analysis->training;
    uint64_t totals[ONV_MAX_PLAN_ITEMS];
    uint32_t n_items = onv_training_item_totals(t, totals);
    int64_t most = 0;
    for (uint32_t item = 0; item < n_items; item++) {
        int64_t batch;
        ONV_TRY(find_largest(p, FIRST_ITEM + item, analysis->fit.usable_bytes, &batch, err));
        for (uint32_t i = 0; i < t->n_plans; i++)
            if (t->plans[i].item == item) t->plans[i].max_batch = batch;
        if (batch > most) most = batch;
    }
    if (n_items > 0) analysis->fit.of[analysis->n_runtimes - 1].max_batch = most;
    return ONV_OK;
}

static onv_status find_max_batch(const source *from, const onv_options *options,
                                 onv_analysis *analysis, onv_error *err)
{
    onv_fit *fit = &analysis->fit;
    probes *p = onv_heap_calloc(1, sizeof *p);
    if (p == NULL) return onv_fail_memory(err);
    p->from = from;
    p->options = *options;
    p->options.budget = 0;
    p->options.replay = NULL;
    fit->has_max_batch = true;
    fit->max_batch = ONV_MAX_BATCH;
    onv_status status = ONV_OK;
    for (size_t i = 0; i < analysis->n_runtimes && status == ONV_OK; i++) {
        status = find_largest(p, i, fit->usable_bytes, &fit->of[i].max_batch, err);
    }
    if (status == ONV_OK) status = find_plan_batches(p, analysis, err);
    for (size_t i = 0; i < analysis->n_runtimes; i++)
        if (fit->of[i].max_batch < fit->max_batch) fit->max_batch = fit->of[i].max_batch;
    onv_heap_free(p);
    return status;
}

/* --- Replay ------------------------------------------------------------------------------------ */

typedef struct other_batch {
    const source *from;
    onv_options options;
} other_batch;

/* The scripts of another batch; they refer to names of the analysis that made them, which go. */
static onv_status scripts_at(void *context, int64_t batch, onv_replays *replays, onv_error *err)
{
    other_batch *other = context;
    onv_analysis *analysis;
    other->options.batch = batch;
    ONV_TRY(create(other->from, &other->options, &analysis, err));
    *replays = analysis->replays;
    analysis->replays = (onv_replays){0};
    for (size_t i = 0; i < replays->scripts.count; i++)
        onv_script_forget_labels(&replays->scripts.at[i]);
    onv_analysis_destroy(analysis);
    return ONV_OK;
}

static onv_status replay(const source *from, const onv_options *options, onv_analysis *analysis,
                         onv_error *err)
{
    other_batch other = {from, *options};
    if (analysis->replays.kind == NULL) return ONV_OK;
    return onv_replay_all(&analysis->replays, options, options->max_batch ? scripts_at : NULL,
                          &other, err);
}

static onv_status judge_fit(const source *from, const onv_options *options, onv_analysis *analysis,
                            onv_error *err)
{
    if (options->budget == 0) return ONV_OK;
    analysis->fit.budget_bytes = options->budget;
    analysis->fit.margin_percent = options->margin_percent;
    onv_fit_judge(&analysis->fit, analysis->runtimes, analysis->n_runtimes);
    if (analysis->n_runtimes == 0)
        return onv_fail(err, ONV_ERR_USAGE,
                        "%llu tensors have no size, so nothing can be said about the budget: "
                        "bind all dimensions",
                        (unsigned long long)analysis->live.unknown);
    return options->max_batch ? find_max_batch(from, options, analysis, err) : ONV_OK;
}

static onv_status create_and_fit(source *from, const onv_options *given, onv_analysis **result,
                                 onv_error *err)
{
    if (err != NULL) *err = (onv_error){0};
    *result = NULL;
    onv_options options = complete_options(given);
    if (options.margin_percent > 99)
        return onv_fail(err, ONV_ERR_USAGE, "a margin of %u%% leaves nothing",
                        options.margin_percent);
    if (options.max_batch && options.budget == 0 && options.replay == NULL)
        return onv_fail(err, ONV_ERR_USAGE, "the largest batch needs a budget to fit");
    /* While only the largest batch is asked for, the model itself is looked at with one sample. */
    if (options.max_batch && options.batch == 0) options.batch = 1;
    watch w = start_watch(&options);
    from->watch = &w;
    ONV_TRY(create(from, &options, result, err));
    onv_status status = judge_fit(from, &options, *result, err);
    if (status == ONV_OK) status = replay(from, &options, *result, err);
    if (status == ONV_OK) return ONV_OK;
    onv_analysis_destroy(*result);
    *result = NULL;
    return status;
}

onv_status onv_analysis_new(const char *path, const onv_options *options, onv_analysis **analysis,
                            onv_error *error)
{
    return create_and_fit(&(source){.path = path}, options, analysis, error);
}

onv_status onv_analysis_new_from_memory(const void *data, size_t bytes, const char *name,
                                        const onv_options *options, onv_analysis **analysis,
                                        onv_error *error)
{
    source from = {.path = name, .data = data != NULL ? data : "", .bytes = bytes};
    return create_and_fit(&from, options, analysis, error);
}

void onv_analysis_destroy(onv_analysis *analysis)
{
    if (analysis == NULL) return;
    onv_replays_cleanup(&analysis->replays);
    onv_infer_info_cleanup(&analysis->infer);
    onv_model_cleanup(&analysis->model);
    onv_heap_free(analysis);
}

void onv_analysis_summary(const onv_analysis *analysis, onv_summary *summary)
{
    const onv_live *live = &analysis->live;
    onv_summary full = {
        .struct_size = sizeof full,
        .nodes = live->n_steps,
        .parameters = live->weight_elems,
        .trainable = live->trainable_elems,
        .parameter_bytes = live->weight_bytes,
        .macs = live->macs_known ? live->macs : 0,
        .input_bytes = live->input_bytes,
        .output_bytes = live->output_bytes,
        .activation_bytes = live->activation_bytes,
        .peak_bytes = live->peak_bytes,
        .peak_step = live->peak_step,
        .unknown_tensors = live->unknown,
        .free_dims = analysis->infer.free_dims.count,
        .sized = live->unknown == 0,
        .bounded = live->bounded > 0,
    };
    size_t size = summary->struct_size < sizeof full ? summary->struct_size : sizeof full;
    full.struct_size = summary->struct_size;
    memcpy(summary, &full, size);
}

/* --- Tensors: values of the graph, in the order of the file ------------------------------------ */

size_t onv_analysis_tensor_count(const onv_analysis *analysis)
{
    return analysis->model.values.count;
}

static onv_tensor_kind kind_of(const onv_value *value)
{
    switch ((onv_value_kind)value->kind) {
    case ONV_VALUE_INITIALIZER: return ONV_TENSOR_INITIALIZER;
    case ONV_VALUE_CONSTANT: return ONV_TENSOR_CONSTANT;
    case ONV_VALUE_INPUT: return value->graph.index == 0 ? ONV_TENSOR_INPUT : ONV_TENSOR_ACTIVATION;
    case ONV_VALUE_ACTIVATION: break;
    }
    return value->graph.index == 0 && value->is_output ? ONV_TENSOR_OUTPUT : ONV_TENSOR_ACTIVATION;
}

bool onv_analysis_tensor(const onv_analysis *analysis, size_t index, onv_tensor_info *info)
{
    const onv_model *model = &analysis->model;
    if (index >= model->values.count) return false;
    const onv_value *value = &model->values.at[index];
    /* Text is made on request, into the analysis' own arena: one analysis, one thread. */
    onv_arena *arena = model->dims.arena;
    const char *shape = onv_type_shape_text(&model->dims, arena, &value->type);
    *info = (onv_tensor_info){
        .name = value->name,
        .kind = kind_of(value),
        .dtype = onv_dtype_name((onv_dtype)value->type.dtype),
        .shape = shape != NULL ? shape : "[...]",
        .bytes = value->tensor != NULL ? value->tensor->bytes : ONV_SIZE_UNKNOWN,
        .bound = value->bound_used,
    };
    uint32_t row = analysis->live.of_value[index];
    if (row == UINT32_MAX) return true;
    const onv_interval *interval = &analysis->live.intervals[row];
    info->live = true;
    info->bytes = interval->sized ? interval->bytes : ONV_SIZE_UNKNOWN;
    info->first_step = interval->first;
    info->last_step = interval->last;
    return true;
}

/* --- Runtimes ---------------------------------------------------------------------------------- */

size_t onv_analysis_runtime_count(const onv_analysis *analysis)
{
    return analysis->n_runtimes;
}

bool onv_analysis_runtime(const onv_analysis *analysis, size_t index, onv_runtime_info *info)
{
    if (index >= analysis->n_runtimes) return false;
    const onv_runtime_result *r = &analysis->runtimes[index];
    *info = (onv_runtime_info){
        .name = r->runtime->name,
        .summary = r->runtime->summary,
        .weight_bytes = r->weight_bytes,
        .activation_bytes = r->activation_bytes,
        .held_bytes = r->held_bytes,
        .workspace_low = r->workspace_bytes.low,
        .workspace_high = r->workspace_bytes.high,
        .context_low = r->context_bytes.low,
        .context_high = r->context_bytes.high,
        .total_low = r->total_bytes.low,
        .total_high = r->total_bytes.high,
    };
    return true;
}

bool onv_analysis_training(const onv_analysis *analysis, onv_training_info *info)
{
    const onv_training *t = &analysis->training;
    if (t->optimizer == NULL) return false;
    *info = (onv_training_info){.optimizer = t->optimizer->name,
                                .loss = t->loss,
                                .parameter_bytes = t->parameter_bytes,
                                .gradient_bytes = t->gradient_bytes,
                                .optimizer_bytes = t->optimizer_bytes,
                                .saved_activation_bytes = t->saved_activation_bytes,
                                .peak_bytes = t->peak_bytes,
                                .allocated_peak_bytes = t->allocated_peak_bytes,
                                .reserved_peak_bytes = t->reserved_peak_bytes};
    return true;
}

bool onv_analysis_checkpoint(const onv_analysis *analysis, size_t index, onv_checkpoint_info *info)
{
    const onv_training *t = &analysis->training;
    if (index >= t->n_plans) return false;
    const onv_training_plan *plan = &t->plans[index];
    *info = (onv_checkpoint_info){.name = plan->name,
                                  .peak_bytes = plan->figures.peak_bytes,
                                  .saved_activation_bytes = plan->figures.saved_activation_bytes,
                                  .allocated_peak_bytes = plan->figures.allocated_peak_bytes,
                                  .reserved_peak_bytes = plan->figures.reserved_peak_bytes,
                                  .recompute_macs = plan->recomputed_macs,
                                  .pass_macs = plan->pass_macs,
                                  .segments = plan->n_segments,
                                  .chosen = index == t->chosen};
    return true;
}

bool onv_analysis_fit(const onv_analysis *analysis, onv_fit_info *info)
{
    const onv_fit *fit = &analysis->fit;
    if (fit->budget_bytes == 0) return false;
    *info = (onv_fit_info){.budget = fit->budget_bytes,
                           .usable = fit->usable_bytes,
                           .fits = fit->fits,
                           .max_batch = fit->has_max_batch ? fit->max_batch : 0};
    return true;
}

bool onv_analysis_replay(const onv_analysis *analysis, onv_replay_info *info)
{
    const onv_replays *r = &analysis->replays;
    if (r->kind == NULL) return false;
    onv_replays_info(r, info);
    return true;
}

const char *onv_runtime_name(size_t index, const char **summary)
{
    if (index >= onv_n_runtimes) return NULL;
    if (summary != NULL) *summary = onv_runtimes[index]->summary;
    return onv_runtimes[index]->name;
}

const char *onv_optimizer_name(size_t index, const char **summary)
{
    if (index >= onv_n_optimizers) return NULL;
    if (summary != NULL) *summary = onv_optimizers[index]->summary;
    return onv_optimizers[index]->name;
}

const char *onv_checkpoint_name(size_t index, const char **summary, bool *takes_count)
{
    if (index >= onv_n_ckpt_plan_kinds) return NULL;
    if (summary != NULL) *summary = onv_ckpt_plan_kinds[index]->summary;
    if (takes_count != NULL) *takes_count = onv_ckpt_plan_kinds[index]->takes_count;
    return onv_ckpt_plan_kinds[index]->name;
}

const char *onv_order_name(size_t index, const char **summary)
{
    if (index >= onv_n_orders) return NULL;
    if (summary != NULL) *summary = onv_orders[index]->summary;
    return onv_orders[index]->name;
}

/* --- Diagnostics ------------------------------------------------------------------------------- */

size_t onv_analysis_diagnostic_count(const onv_analysis *analysis)
{
    return analysis->model.diags.count;
}

bool onv_analysis_diagnostic(const onv_analysis *analysis, size_t index, onv_diagnostic *diagnostic)
{
    if (index >= analysis->model.diags.count) return false;
    const onv_diag *diag = &analysis->model.diags.at[index];
    *diagnostic = (onv_diagnostic){
        .severity = diag->severity == ONV_WARNING ? "warning" : "note",
        .code = diag->code,
        .node = diag->node != NULL ? diag->node : "",
        .message = diag->message,
    };
    return true;
}

/* --- Reports ----------------------------------------------------------------------------------- */

onv_status onv_report(const onv_analysis *const *analyses, size_t count, onv_format format,
                      const onv_report_options *options, onv_write_fn write, void *context,
                      onv_error *error)
{
    if (error != NULL) *error = (onv_error){0};
    onv_report_options complete = onv_report_options_default();
    if (options != NULL) {
        size_t size =
            options->struct_size < sizeof complete ? options->struct_size : sizeof complete;
        memcpy(&complete, options, size);
        complete.struct_size = sizeof complete;
    }
    onv_view *views = onv_heap_calloc(count, sizeof *views);
    if (views == NULL) return onv_fail_memory(error);
    for (size_t i = 0; i < count; i++)
        views[i] = (onv_view){.model = &analyses[i]->model,
                              .infer = &analyses[i]->infer,
                              .live = &analyses[i]->live,
                              .order = &analyses[i]->order,
                              .runtimes = analyses[i]->runtimes,
                              .n_runtimes = analyses[i]->n_runtimes,
                              .training = &analyses[i]->training,
                              .levers = &analyses[i]->levers,
                              .fit = &analyses[i]->fit,
                              .replays = &analyses[i]->replays};
    onv_status status = onv_report_write(views, count, format, &complete, write, context, error);
    onv_heap_free(views);
    return status;
}
