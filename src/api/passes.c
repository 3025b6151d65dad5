/* Composes the passes: from a file to lifetimes, and to what each runtime would hold. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/analysis.h"
#include "api/names.h"
#include "api/plan_read.h"
#include "api/replay.h"
#include "api/training.h"
#include "base/fail.h"
#include "base/heap.h"
#include "infer/infer.h"
#include "ir/check.h"
#include "load/limits.h"
#include "load/load.h"
#include "program/load.h"
#include "program/view.h"
#include "runtime/loads.h"

onv_status onv_fail_unsized(const onv_analysis *analysis, const char *what, onv_error *err)
{
    enum { MOST_SHOWN = 4 };
    const onv_infer_info *infer = &analysis->infer;
    char options[300] = "";
    size_t used = 0;
    for (size_t i = 0; i < infer->free_dims.count && i < MOST_SHOWN && used < sizeof options; i++) {
        const onv_free_dim *dim = &infer->free_dims.at[i];
        bool is_batch = dim->axis == 0; /* one option binds all of them */
        if (is_batch && strstr(options, " --batch N") != NULL) continue;
        used += (size_t)snprintf(options + used, sizeof options - used, " --%s%.60s%s",
                                 is_batch ? "batch" : "dim ", is_batch ? " N" : dim->name,
                                 is_batch ? "" : "=N");
    }
    for (size_t i = 0; i < infer->data_dims.count && i < MOST_SHOWN && used < sizeof options; i++)
        used += (size_t)snprintf(options + used, sizeof options - used, " --dim %.60s=N",
                                 infer->data_dims.at[i]);
    if (used > 0)
        return onv_fail(err, ONV_ERR_USAGE, "cannot %s: %" PRIu64 " tensors have no size; bind%s%s",
                        what, analysis->live.unknown, options,
                        infer->free_dims.count > MOST_SHOWN || infer->data_dims.count > MOST_SHOWN
                            ? " and the other dimensions"
                            : "");
    return onv_fail(err, ONV_ERR_USAGE,
                    "cannot %s: %" PRIu64 " tensors have no size; a report without it names their "
                    "cause",
                    what, analysis->live.unknown);
}

/* A figure for another graph than the one that runs is not given without a word. */
static void warn_of_not_modelled(onv_model *model, const onv_rewritten *rewritten)
{
    for (uint32_t i = 0; i < rewritten->n_counts; i++) {
        const onv_rewrite_count *count = &rewritten->counts[i];
        if (count->is_not_modelled)
            onv_model_diag(
                model, ONV_WARNING, "rewrite-not-modelled", NULL,
                "ONNX Runtime would apply %s (times found: %" PRIu32
                "), which is not modelled; the figures of ort are for the graph without it",
                count->name, count->count);
    }
}

/* Where no runtime is named, those that are asked for by name alone are left out. */
static bool is_listed(const onv_options *options, const onv_runtime *runtime)
{
    const char *list = options->runtimes;
    if (list == NULL && options->train != NULL) list = "torch"; /* what training is compared with */
    return onv_is_listed(list, runtime->name) && (list != NULL || !runtime->is_by_name);
}

/* By the answer. */
static bool is_judged(const onv_options *options, const onv_runtime *runtime)
{
    return options->runtimes != NULL || (options->train == NULL && runtime->is_usual);
}

static onv_made_graph *graph_for(onv_analysis *analysis, const onv_runtime *runtime)
{
    if (runtime->is_engine) return &analysis->engine_graph;
    bool is_cpu = runtime->provider == ONV_PROVIDER_CPU;
    return is_cpu ? &analysis->cpu_graph : &analysis->ort_graph;
}

/* An engine of 16 bits is fused as one of 32. */
static onv_status rewrite_model(onv_analysis *analysis, const onv_options *options,
                                const onv_runtime *runtime, onv_rewritten *to, onv_error *err)
{
    bool is_cast = runtime->is_engine && options->precision > ONV_PRECISION_FP32;
    onv_model *wide = &analysis->making->wide;
    if (is_cast) ONV_TRY(onv_model_copy(&analysis->model, wide, err));
    if (is_cast) ONV_TRY(onv_infer_cast_floats(wide, ONV_FLOAT, err));
    ONV_TRY(onv_rewrite_model(is_cast ? wide : &analysis->model, (onv_provider)runtime->provider,
                              (onv_rewrite_level)analysis->ort.graph_optimization_level, to, err));
    return is_cast ? onv_cast_floats(options, &to->model, err) : ONV_OK;
}

/* The graph that ONNX Runtime makes of the model, where it is asked for. It needs no sizes; without them it is for dumps
 * and for what reports say of it. */
static onv_status rewrite(onv_analysis *analysis, const onv_options *options,
                          const onv_runtime *runtime, onv_error *err)
{
    const char *list = options->runtimes;
    onv_order_result order;
    if (runtime->provider == ONV_PROVIDER_NONE || !is_listed(options, runtime)) return ONV_OK;
    if (analysis->model.program != NULL) return ONV_OK; /* which PyTorch runs alone */
    bool is_cpu = runtime->provider == ONV_PROVIDER_CPU;
    if (!is_cpu) ONV_TRY(onv_check_file(&analysis->model, err));
    bool is_alone = list != NULL && onv_is_name(list, strlen(list), runtime->name);
    onv_made_graph *to = graph_for(analysis, runtime);
    if (is_alone) analysis->dumped = to;
    if (analysis->live.unknown > 0 && !is_alone && !options->example) return ONV_OK;
    onv_rewritten *made = &to->rewritten;
    ONV_TRY(rewrite_model(analysis, options, runtime, made, err));
    if (!is_cpu) warn_of_not_modelled(&analysis->model, made);
    if (!is_cpu) ONV_TRY(onv_check_kernels(&analysis->model, made, err));
    ONV_TRY(onv_order_compute(onv_order_find(runtime->order), &made->model, NULL, &order, err));
    return onv_live_compute(&made->model, order.nodes, &to->live, err);
}

/* What a runtime runs: the model, or what the runtime makes of it. */
typedef struct prepared {
    onv_model *model;
    const onv_live *live;
} prepared;

/* What eager PyTorch runs in that mode: the view of a program, or the model itself. */
static prepared prepare_eager(onv_analysis *analysis, onv_program_mode mode)
{
    onv_eager_views *views = &analysis->making->views;
    if (!views->has[mode]) return (prepared){&analysis->model, &analysis->live};
    return (prepared){&views->models[views->place[mode]], &views->lives[views->place[mode]]};
}

static prepared prepare(onv_analysis *analysis, const onv_runtime *runtime,
                        onv_runtime_options *how)
{
    if (onv_runtime_is_eager(runtime)) return prepare_eager(analysis, ONV_PROGRAM_INFERENCE);
    if (runtime->provider == ONV_PROVIDER_NONE)
        return (prepared){&analysis->model, &analysis->live};
    onv_made_graph *made = graph_for(analysis, runtime);
    how->rewritten = &made->rewritten;
    return (prepared){&made->rewritten.model, &made->live};
}

/* Whether what is executed is kept, to be drawn or to be compared. */
static bool keeps(const onv_options *options)
{
    return options->timelines || options->snapshot != NULL;
}

/* A replay is of one run. */
static onv_status place_one_run(const onv_runtime *runtime, const onv_runtime_options *how,
                                onv_execution *made, onv_error *err)
{
    if (onv_runtime_allocator(runtime, how).later_iterations == 0) return ONV_OK;
    onv_placement_cleanup(&made->placement);
    onv_status status = onv_runtime_place(runtime, how, made, err);
    if (status != ONV_OK) onv_execution_cleanup(made);
    return status;
}

/* What was executed goes to the replay, and to the reports that draw it. */
static onv_status hand_over(onv_analysis *analysis, prepared p, const onv_runtime_options *how,
                            const onv_options *options, onv_execution *made, onv_error *err)
{
    const onv_runtime_result *result = &analysis->runtimes[analysis->n_runtimes - 1];
    const onv_runtime *runtime = result->runtime;
    if (analysis->replays.kind != NULL) {
        uint64_t figure = onv_runtime_figure(result, &made->placement);
        ONV_TRY(place_one_run(runtime, how, made, err));
        ONV_TRY(
            onv_replay_take(&analysis->replays, runtime, runtime->name, NULL, figure, made, err));
        if (!keeps(options)) return ONV_OK;
        onv_runtime_result again; /* a replay owns what it replays */
        onv_runtime_options quiet = *how;
        quiet.lower.reports = false;
        *made = (onv_execution){0};
        ONV_TRY(onv_runtime_execute(runtime, p.model, p.live, &quiet, &again, made, err));
    }
    if (keeps(options))
        return onv_executions_take(&analysis->executions, runtime->name, ONV_NO_PLAN, p.model, made,
                                   err);
    onv_execution_cleanup(made);
    return ONV_OK;
}

/* Of all eager runtimes: they differ in the allocator alone. */
typedef struct eager_tape {
    onv_eager eager;
    onv_execution made; /* of it; without steps: not yet, or handed over */
    bool is_made;
} eager_tape;

static onv_status compute_figures(prepared p, const onv_runtime_options *how, eager_tape *tape,
                                  onv_runtime_result *result, onv_error *err)
{
    const onv_runtime *runtime = result->runtime;
    if (!onv_runtime_is_eager(runtime))
        return onv_runtime_compute(runtime, p.model, p.live, how, result, err);
    ONV_TRY(onv_runtime_execute(runtime, p.model, p.live, how, result, &tape->made, err));
    onv_placement_cleanup(&tape->made.placement);
    return ONV_OK;
}

static onv_status compute_runtime(onv_analysis *analysis, const onv_runtime *runtime,
                                  const onv_options *options, const onv_request *from,
                                  eager_tape *tape, onv_error *err)
{
    bool judged = is_judged(options, runtime);
    if (from->judged_alone && !judged) {
        analysis->runtimes[analysis->n_runtimes++] = (onv_runtime_result){.runtime = runtime};
        return ONV_OK;
    }
    onv_tell(options, "the runtime %s", runtime->name);
    onv_runtime_options how = {.ort = &analysis->ort,
                               .plan_effort = options->effort,
                               .plan_alignment = options->align,
                               .contexts = options->contexts,
                               .workspace_bytes = options->workspace,
                               .cancelled = onv_watch_over,
                               .cancel_context = from->watch};
    how.room_bytes = onv_runtime_room(onv_budget_usable(options->budget, options->margin_percent));
    how.alloc.torch.expandable_segments = options->expandable_segments;
    how.alloc.torch.pool_bytes = options->pool;
    onv_training_options training = {0};
    ONV_TRY(onv_training_read_options(options, &training, err));
    how.lower = training.train.lower;
    how.speed = training.speed;
    how.lower.weights = analysis->quantized.format;
    analysis->cuda = how.lower.cuda;
    /* Of inference; training says its own. */
    how.lower.reports = !analysis->making->eager_reported && options->train == NULL &&
                        onv_runtime_is_eager(runtime);
    analysis->making->eager_reported |= how.lower.reports;
    prepared p = prepare(analysis, runtime, &how);
    const onv_live *live = p.live;
    if (onv_runtime_is_eager(runtime)) {
        if (!tape->is_made) ONV_TRY(onv_runtime_lower(p.model, live, &how, &tape->eager, err));
        tape->is_made = true;
        how.tape = &tape->eager;
    }
    onv_runtime_result *result = &analysis->runtimes[analysis->n_runtimes++];
    bool is_plan = runtime->consumer == ONV_CONSUMER_PLANNER;
    if (!is_plan && analysis->replays.kind == NULL && !keeps(options)) {
        result->runtime = runtime;
        ONV_TRY(compute_figures(p, &how, tape, result, err));
        result->is_judged = judged;
        return onv_analysis_find_ends(analysis, p.model, p.live, how, result, err);
    }
    onv_execution made = {0};
    ONV_TRY(onv_runtime_execute(runtime, p.model, live, &how, result, &made, err));
    result->is_judged = judged;
    bool has_offsets =
        is_plan && runtime->provider == ONV_PROVIDER_NONE; /* of the model's own values */
    if (has_offsets)
        analysis->plan_offsets = onv_runtime_offsets(&made, live, &analysis->model.arena);
    onv_status status = has_offsets && analysis->plan_offsets == NULL
                            ? onv_fail_memory(err)
                            : onv_analysis_find_ends(analysis, p.model, p.live, how, result, err);
    if (status == ONV_OK) return hand_over(analysis, p, &how, options, &made, err);
    onv_execution_cleanup(&made);
    return status;
}

typedef struct trained {
    onv_analysis *analysis;
    onv_replay_training replays;
    bool is_kept;  /* for reports that draw it */
    uint32_t plan; /* of what is shown next, where that is a plan's */
} trained;

static onv_status take_trained(void *context, const onv_timeline *t, const onv_placement *placement,
                               const char *plan, onv_error *err)
{
    trained *taken = context;
    if (taken->is_kept)
        ONV_TRY(onv_executions_take_training(
            &taken->analysis->executions, plan != NULL ? taken->plan : ONV_NO_PLAN,
            taken->analysis->training.model, t, &taken->replays.options.alloc, err));
    if (taken->analysis->replays.kind == NULL) return ONV_OK;
    return onv_replay_take_training(&taken->replays, t, placement, plan, err);
}

/* Training stands among the runtimes as one more, so that budgets apply to it. */
static onv_status compute_training(onv_analysis *analysis, const onv_options *options,
                                   const onv_request *from, onv_error *err)
{
    onv_training_options how = {0};
    onv_tell(options, "training with %s", options->train);
    ONV_TRY(onv_training_read_options(options, &how, err));
    how.train.cancelled = onv_watch_over;
    how.train.cancel_context = from->watch;
    how.known = from->known;
    how.is_probe = from->training_alone;
    trained taken = {
        analysis,
        {&analysis->replays,
         options->runtimes,
         {.alloc = how.alloc, .plan_effort = options->effort, .plan_alignment = options->align}},
        keeps(options),
        ONV_NO_PLAN};
    uint64_t usable_bytes = onv_budget_usable(options->budget, options->margin_percent);
    how.room_bytes = onv_runtime_room(usable_bytes);
    if (options->budget > 0 && how.room_bytes == 0) how.room_bytes = 1; /* 0 is no limit */
    how.lists_units = options->timelines;
    onv_plan_pick pick = {0};
    onv_plan_text written;
    if (options->checkpoint != NULL) ONV_TRY(onv_plan_pick_read(options->checkpoint, &pick, err));
    if (options->checkpoint != NULL) how.checkpoint = pick.list;
    if (pick.text != NULL) how.select = onv_plan_pick_find;
    how.select_context = &pick;
    if (options->checkpoint != NULL && options->plan != NULL) {
        ONV_TRY(onv_plan_read(options->plan, &analysis->model.arena, &written, err));
        how.plan = &written;
    }
    if (taken.is_kept || analysis->replays.kind != NULL) how.take = take_trained;
    how.take_context = &taken;
    how.taken_plan = &taken.plan;
    onv_plan_choice choice = {.usable_bytes = usable_bytes};
    how.keeps_timeline = true;
    how.prefer = onv_training_prefer;
    how.prefer_context = &choice;
    onv_training *t = &analysis->training;
    prepared p = prepare_eager(analysis, ONV_PROGRAM_TRAINING);
    ONV_TRY(onv_training_compute(p.model, p.live, &how, t, err));
    t->world = how.train.world;
    t->zero_stage = how.train.zero_stage;
    onv_runtime_result *r = &analysis->runtimes[analysis->n_runtimes++];
    ONV_TRY(onv_runtime_of_training(&t->figures, r, err));
    ONV_TRY(onv_runtime_add_training_ends(t, r, err));
    r->model = p.model;
    return ONV_OK;
}

/* A program of PyTorch is no file of ONNX Runtime. */
static bool is_asked(const onv_analysis *analysis, const onv_options *options,
                     const onv_runtime *runtime)
{
    bool is_default = options->runtimes == NULL && runtime->provider != ONV_PROVIDER_NONE;
    bool is_left_out = options->answer_alone && !is_judged(options, runtime);
    return is_listed(options, runtime) && !is_left_out &&
           !(is_default && analysis->model.program != NULL);
}

/* What the views have to say is said of the model. */
static void take_diags(onv_analysis *analysis)
{
    const onv_eager_views *views = &analysis->making->views;
    for (uint32_t i = 0; i < views->n; i++)
        for (size_t k = 0; k < views->models[i].diags.count; k++) {
            const onv_diag *diag = &views->models[i].diags.at[k];
            onv_model_diag(&analysis->model, diag->severity, diag->code, diag->node, "%s",
                           diag->message);
        }
}

static onv_status open_views(onv_analysis *analysis, const onv_options *options,
                             const onv_request *from, onv_error *err)
{
    const onv_program_file file = {from->path, from->data, from->bytes};
    onv_eager_request request = {
        .options = options, .file = &file, .model = &analysis->model, .loaded = from->views};
    for (size_t i = 0; i < onv_n_runtimes; i++)
        if (onv_runtime_is_eager(onv_runtimes[i]) && is_asked(analysis, options, onv_runtimes[i]))
            request.modes[ONV_PROGRAM_INFERENCE] = true;
    request.modes[ONV_PROGRAM_TRAINING] = options->train != NULL;
    if (!request.modes[0] && !request.modes[1]) return ONV_OK;
    onv_making *making = analysis->making;
    making->keeps_views = making->loaded != NULL && from->views == NULL;
    return onv_eager_views_open(&request, &making->views,
                                making->keeps_views ? &making->loaded_views : NULL, err);
}

static onv_status compute_training_alone(onv_analysis *analysis, const onv_options *options,
                                         const onv_request *from, onv_error *err)
{
    if (analysis->live.unknown > 0) return onv_fail_unsized(analysis, "size training", err);
    ONV_TRY(open_views(analysis, options, from, err));
    return compute_training(analysis, options, from, err);
}

static onv_status compute_runtimes(onv_analysis *analysis, const onv_options *options,
                                   const onv_request *from, onv_error *err)
{
    eager_tape tape = {.is_made = false};
    onv_status status = ONV_OK;
    for (size_t i = 0; i < onv_n_runtimes && status == ONV_OK; i++)
        if (is_asked(analysis, options, onv_runtimes[i]))
            status = compute_runtime(analysis, onv_runtimes[i], options, from, &tape, err);
    onv_execution_cleanup(&tape.made);
    if (tape.is_made) onv_eager_cleanup(&tape.eager);
    return status;
}

static onv_status compute_lifetimes(onv_analysis *analysis, const onv_options *options,
                                    const onv_request *from, onv_error *err)
{
    onv_watch *w = from->watch;
    const char *name = options->order != NULL ? options->order : "model";
    const onv_order *order = onv_order_find(name);
    if (order == NULL)
        return onv_fail_choice(err, "--order", name, strlen(name), onv_choice, ONV_CHOICE(ORDERS));
    onv_tell(options, "the order %s", name);
    onv_order_options how = {
        .effort = options->effort, .cancelled = onv_watch_over, .cancel_context = w};
    ONV_TRY(onv_order_compute(order, &analysis->model, &how, &analysis->order, err));
    ONV_TRY(onv_live_compute(&analysis->model, analysis->order.nodes, &analysis->live, err));
    if (from->lifetimes_alone) return ONV_OK;
    if (from->training_alone) return compute_training_alone(analysis, options, from, err);
    if (!from->figures_alone) {
        analysis->largest = onv_largest_find(&analysis->model, &analysis->live);
        onv_largest_note(&analysis->model, &analysis->largest);
    }
    if (analysis->live.unknown > 0 && options->train != NULL)
        return onv_fail_unsized(analysis, "size training", err);
    if (analysis->live.unknown > 0 && analysis->replays.kind != NULL)
        return onv_fail_unsized(analysis, "replay anything", err);
    for (size_t i = 0; i < onv_n_runtimes; i++)
        ONV_TRY(rewrite(analysis, options, onv_runtimes[i], err));
    if (analysis->live.unknown > 0) return ONV_OK; /* a missing size would pass for nothing */
    ONV_TRY(open_views(analysis, options, from, err));
    ONV_TRY(compute_runtimes(analysis, options, from, err));
    if (options->train != NULL) ONV_TRY(compute_training(analysis, options, from, err));
    take_diags(analysis);
    return ONV_OK;
}

static onv_status read_ort_settings(const onv_options *options, onv_ort_settings *settings,
                                    onv_error *err)
{
    *settings = onv_ort_settings_default;
    for (size_t i = 0; i < options->n_ort; i++)
        ONV_TRY(onv_ort_settings_set(settings, options->ort[i], err));
    return ONV_OK;
}

static onv_status take_alignment(onv_analysis *analysis, const onv_options *options, onv_error *err)
{
    uint64_t align = options->align;
    analysis->plan_alignment = align != 0 ? align : 1;
    if (align != 0 && (align & (align - 1)) != 0)
        return onv_fail(err, ONV_ERR_USAGE,
                        "the alignment is a power of two, as in 256, not %" PRIu64, align);
    return ONV_OK;
}

/* Training quantizes what it freezes, and by itself. */
static onv_status quantize(onv_analysis *analysis, const onv_options *options, onv_error *err)
{
    if (options->weights == NULL || options->train != NULL) return ONV_OK;
    const onv_weight_format *format = onv_weight_format_find(options->weights);
    if (format == NULL)
        return onv_fail_choice(err, "--weight-format", options->weights, strlen(options->weights),
                               onv_choice, ONV_CHOICE(WEIGHT_FORMATS));
    if (options->onnx_out)
        return onv_fail(err, ONV_ERR_USAGE,
                        "the file that is written keeps its weights as they are: leave the format "
                        "of weights (--weight-format) out");
    return onv_infer_quantize(&analysis->model, format, &analysis->quantized, err);
}

static onv_status find_cache(onv_analysis *analysis, const onv_options *options, onv_error *err)
{
    static const char *const modes[] = {"copies", "shared", NULL};
    onv_kv_cache *cache = &analysis->cache;
    if (options->kv_cache == NULL) return ONV_OK;
    if (onv_is_called(options->kv_cache, modes[0])) cache->mode = ONV_KV_COPIES;
    if (onv_is_called(options->kv_cache, modes[1])) cache->mode = ONV_KV_SHARED;
    if (cache->mode == ONV_KV_NOT_ASKED)
        return onv_fail_choice(err, "--kv-cache", options->kv_cache, strlen(options->kv_cache),
                               onv_name_in, modes);
    if (options->train != NULL)
        return onv_fail(err, ONV_ERR_USAGE, "training has no key-value cache: ask for one of them");
    ONV_TRY(onv_kv_cache_find(&analysis->model, cache, err));
    return onv_kv_cache_hold(&analysis->model, cache, err);
}

/* What a program of PyTorch alone cannot answer. */
static onv_status refuse_of_programs(const onv_analysis *analysis, const onv_options *options,
                                     onv_error *err)
{
    const char *what = options->onnx_out           ? "--onnx-out writes"
                       : options->weights != NULL  ? "--weight-format changes"
                       : options->kv_cache != NULL ? "--kv-cache reads"
                                                   : NULL;
    if (analysis->model.program == NULL) return ONV_OK;
    if (options->runtimes != NULL &&
        (onv_is_listed(options->runtimes, "ort") || onv_is_listed(options->runtimes, "cpu") ||
         onv_is_listed(options->runtimes, "tensorrt")))
        what = "ONNX Runtime runs";
    if (what != NULL)
        return onv_fail(err, ONV_ERR_USAGE,
                        "%s a model of ONNX, and this is a program of PyTorch: give the .onnx "
                        "file, and this one "
                        "with --program",
                        what);
    if (options->program != NULL)
        return onv_fail(err, ONV_ERR_USAGE,
                        "--program: this is a program of PyTorch itself; leave the option out");
    return ONV_OK;
}

static onv_status analyse(onv_analysis *analysis, const onv_options *options,
                          const onv_request *from, onv_error *err)
{
    ONV_TRY(take_alignment(analysis, options, err));
    ONV_TRY(onv_training_check_options(options, err));
    ONV_TRY(read_ort_settings(options, &analysis->ort, err));
    ONV_TRY(onv_replay_choose(&analysis->replays, options->replay, err));
    ONV_TRY(onv_graph_check(&analysis->model, err));
    onv_tell(options, "shapes");
    ONV_TRY(refuse_of_programs(analysis, options, err));
    ONV_TRY(onv_analysis_infer(from, options, analysis, err));
    onv_infer_check_totals(&analysis->model, &analysis->infer);
    onv_status status = onv_cast_floats(options, &analysis->model, err);
    if (status == ONV_OK) status = quantize(analysis, options, err);
    if (status == ONV_OK) status = find_cache(analysis, options, err);
    if (status == ONV_OK) status = compute_lifetimes(analysis, options, from, err);
    /* What asks for memory and goes on without it (layouts of views, expressions) leaves a mark: its
     * figures only look true. */
    if (status == ONV_OK && (analysis->model.arena.failed || analysis->model.dims.failed))
        status = onv_fail_memory(err);
    return status;
}

/* *contradicts: as in onv_analysis; the caller frees it. */
static onv_status create(const onv_request *from, const onv_options *options, onv_analysis **result,
                         bool **contradicts, onv_error *err)
{
    *result = NULL;
    *contradicts = NULL;
    onv_tell(options, "reading");
    onv_making *making = onv_heap_calloc(1, sizeof *making);
    if (making == NULL) return onv_fail_memory(err);
    onv_analysis *analysis = &making->analysis;
    analysis->making = making;
    onv_arena_init(&making->arena, SIZE_MAX);
    onv_arena_init(&making->scratch, SIZE_MAX);
    onv_strings_init(&making->text, &making->arena);
    onv_status status = onv_analysis_load(from, options, analysis, err);
    if (status == ONV_OK) {
        analysis->model.no_external_data = options->no_external_data;
        status = analyse(analysis, options, from, err);
        status = onv_watch_verdict(from->watch, status, err);
        if (status == ONV_ERR_MEMORY) status = onv_limits_refused(&analysis->model.arena, err);
    }
    *result = analysis;
    if (status == ONV_OK) return ONV_OK;
    *contradicts = analysis->making->contradicts;
    *result = NULL;
    onv_analysis_destroy(analysis);
    return status;
}

onv_status onv_analysis_create(const onv_request *from, const onv_options *options,
                               onv_analysis **result, onv_error *err)
{
    bool *contradicts;
    onv_status status = create(from, options, result, &contradicts, err);
    if (contradicts == NULL) return status;
    onv_request again = *from;
    again.contradicts = contradicts;
    bool *known = contradicts;
    if (err != NULL) *err = (onv_error){0};
    status = create(&again, options, result, &contradicts, err);
    onv_heap_free(known);
    return status;
}
