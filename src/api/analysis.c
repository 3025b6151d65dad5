/* The life of an analysis: its options, the passes, then what is asked on top of them. */
#include "api/analysis.h"

#include <string.h>

#include "api/names.h"
#include "api/replay.h"
#include "api/sized.h"
#include "base/fail.h"
#include "base/heap.h"
#include "report/viewers.h"

static onv_options complete_options(const onv_options *given, onv_limits *limits)
{
    onv_options options = onv_options_default();
    *limits = onv_limits_default();
    if (given != NULL) onv_take(&options, sizeof options, given, given->struct_size);
    if (options.limits != NULL)
        onv_take(limits, sizeof *limits, options.limits, options.limits->struct_size);
    options.limits = limits;
    if (options.plan != NULL && options.checkpoint == NULL) options.checkpoint = "";
    return options;
}

void onv_options_init(onv_options *options, size_t size)
{
    onv_options all;
    memset(&all, 0, sizeof all);
    all.attention_dropout = -1;
    all.compile_budget = 1;
    onv_start(options, size);
    onv_take(options, size, &all, sizeof all);
}

enum { MOST_STRIDE = 256 };

typedef struct other_batch {
    const onv_request *from;
    onv_options options;
} other_batch;

/* The replays of another batch; they refer to names of the analysis that made them, which go. */
static onv_status replays_at(void *context, int64_t batch, onv_replays *replays, onv_error *err)
{
    other_batch *other = context;
    onv_analysis *analysis;
    other->options.batch = batch;
    ONV_TRY(onv_analysis_create(other->from, &other->options, &analysis, err));
    *replays = analysis->replays;
    analysis->replays = (onv_replays){0};
    for (size_t i = 0; i < replays->list.count; i++) onv_replay_forget_labels(&replays->list.at[i]);
    onv_analysis_destroy(analysis);
    return ONV_OK;
}

static onv_status replay(const onv_request *from, const onv_options *options,
                         onv_analysis *analysis, onv_error *err)
{
    other_batch other = {from, onv_options_again(options)};
    other.options.replay = options->replay;
    if (analysis->replays.kind == NULL) return ONV_OK;
    onv_tell(options, "the replay on %s", analysis->replays.kind->name);
    return onv_replay_all(&analysis->replays, options, options->max_batch ? replays_at : NULL,
                          &other, err);
}

onv_options onv_options_again(const onv_options *options)
{
    onv_options again = *options;
    again.replay = again.snapshot = NULL;
    again.timelines = again.savings = again.remedies = again.example = false;
    return again;
}

onv_dim_binding *onv_own_dims(onv_options *options, size_t more, onv_analysis *of)
{
    size_t n = options->n_dims + more;
    onv_dim_binding *dims = ONV_ARENA_ARRAY(&of->making->arena, onv_dim_binding, n);
    if (dims != NULL && options->n_dims > 0)
        memcpy(dims, options->dims, options->n_dims * sizeof *dims);
    if (dims != NULL) options->dims = dims;
    return dims;
}

onv_status onv_analysis_try(const onv_request *from, const onv_options *options,
                            onv_analysis **made, onv_error *err)
{
    onv_error why = {0};
    onv_status status = onv_analysis_create(from, options, made, &why);
    if (status == ONV_ERR_MODEL || status == ONV_ERR_USAGE || status == ONV_ERR_OVERFLOW)
        return ONV_OK;
    if (status != ONV_OK && err != NULL) *err = why;
    return status;
}

/* The GPU whose libraries count, as it was named. NULL with ONV_OK: it was not. */
static onv_status name_gpu(const onv_options *options, onv_arena *arena, const char **name,
                           onv_error *err)
{
    unsigned capability = options->compute_capability;
    *name = NULL;
    if (capability == 0) return ONV_OK;
    if (options->gpu != NULL)
        *name = onv_arena_printf(arena, "%s", options->gpu);
    else
        *name =
            onv_arena_printf(arena, "compute capability %u.%u", capability / 10, capability % 10);
    return *name != NULL ? ONV_OK : onv_fail_memory(err);
}

onv_status onv_analysis_conclude(const onv_options *options, onv_analysis *analysis, onv_error *err)
{
    onv_model *model = &analysis->model;
    const char *gpu;
    ONV_TRY(name_gpu(options, &model->arena, &gpu, err));
    return onv_answer_make(model, analysis->runtimes, analysis->n_runtimes, gpu, &analysis->answer,
                           err);
}

/* Executions were kept for this, and perhaps for nothing else. */
static onv_status measure(const onv_options *options, onv_analysis *analysis, onv_error *err)
{
    const uint64_t most = options->limits->file_bytes;
    onv_measured_request request = {.snapshot = options->snapshot,
                                    .most_bytes =
                                        most != 0 && most < SIZE_MAX ? (size_t)most : SIZE_MAX,
                                    .total_bytes = options->measured,
                                    .answer = &analysis->answer,
                                    .results = analysis->runtimes,
                                    .arena = &analysis->model.arena};
    if (options->snapshot == NULL && options->measured == 0) return ONV_OK;
    request.execution = onv_main_execution(analysis);
    onv_tell(options, "what was measured");
    ONV_TRY(onv_measured_make(&request, &analysis->measured, err));
    if (options->timelines) return ONV_OK;
    onv_executions_cleanup(&analysis->executions);
    analysis->executions = (onv_executions){0};
    return ONV_OK;
}

static onv_status complete(const onv_request *from, const onv_options *options,
                           onv_analysis *analysis, onv_error *err)
{
    ONV_TRY(onv_analysis_judge(from, options, analysis, err));
    ONV_TRY(onv_analysis_judge_usual(from, options, analysis, err));
    ONV_TRY(onv_analysis_compare(options, analysis, err));
    ONV_TRY(onv_analysis_add_example(from, options, analysis, err));
    if (analysis->example != NULL) ONV_TRY(onv_analysis_conclude(options, analysis->example, err));
    ONV_TRY(onv_analysis_find_formulas(from, options, analysis, err));
    ONV_TRY(onv_analysis_find_savings(from, options, analysis, err));
    ONV_TRY(onv_session_extras(from, options, analysis, err));
    ONV_TRY(onv_analysis_infer_unbound(options, analysis, err));
    ONV_TRY(replay(from, options, analysis, err));
    ONV_TRY(onv_analysis_conclude(options, analysis, err));
    ONV_TRY(measure(options, analysis, err));
    return onv_analysis_find_remedies(from, options, analysis, err);
}

static onv_status create(const onv_request *from, const onv_options *options, onv_analysis **result,
                         onv_error *err)
{
    ONV_TRY(onv_analysis_create(from, options, result, err));
    onv_request again = *from;
    const onv_making *making = (*result)->making;
    again.loaded = making->loaded;
    again.views = making->keeps_views ? &making->loaded_views : NULL;
    onv_watch_begin_searches(from->watch);
    onv_status status = complete(&again, options, *result, err);
    onv_watch_end_searches(from->watch);
    onv_analysis_forget_loaded(*result);
    return status;
}

/* The dim that is searched is bound last, to the least size that the model takes. */
static onv_status bind_searched(onv_options *options, onv_dim_binding **dims, onv_error *err)
{
    if (options->max_dim == NULL) return ONV_OK;
    for (size_t i = 0; i < options->n_dims; i++)
        if (strcmp(options->dims[i].name, options->max_dim) == 0)
            return onv_fail(err, ONV_ERR_USAGE,
                            "dimension '%s' is bound to %lld, but --max-dim is to choose it",
                            options->max_dim, (long long)options->dims[i].size);
    *dims = onv_heap_calloc(options->n_dims + 1, sizeof **dims);
    if (*dims == NULL) return onv_fail_memory(err);
    if (options->n_dims > 0) memcpy(*dims, options->dims, options->n_dims * sizeof **dims);
    (*dims)[options->n_dims++] = (onv_dim_binding){options->max_dim, 1};
    options->dims = *dims;
    return ONV_OK;
}

static onv_status check_options(const onv_options *options, onv_error *err)
{
    if (options->margin_percent > 99)
        return onv_fail(err, ONV_ERR_USAGE, "a margin of %u%% leaves nothing",
                        options->margin_percent);
    ONV_TRY(onv_check_runtimes(options->runtimes, err));
    ONV_TRY(onv_objective_check(options, err));
    return onv_check_needs(options, err);
}

static onv_status analyse(onv_request from, const onv_options *given, onv_analysis **result,
                          onv_error *err)
{
    if (err != NULL) *err = (onv_error){0};
    *result = NULL;
    onv_limits limits;
    onv_options options = complete_options(given, &limits);
    const onv_options asked = options;
    ONV_TRY(check_options(&options, err));
    if (options.n_budgets > 0) {
        options.budget = options.budgets[0].bytes;
        onv_take_gpu(&options, &options.budgets[0]);
    }
    options.max_batch |= options.max_dim != NULL;
    /* While only the largest batch is asked for, the model itself is looked at with one sample. */
    if (options.max_batch && options.max_dim == NULL && options.batch == 0) options.batch = 1;
    onv_watch watch;
    onv_watch_start(&watch, &options);
    from.watch = &watch;
    onv_dim_binding *dims = NULL;
    onv_status status = bind_searched(&options, &dims, err);
    if (status == ONV_OK) status = create(&from, &options, result, err);
    /* Some networks take multiples of their strides alone. */
    while (status == ONV_ERR_MODEL && dims != NULL && dims[options.n_dims - 1].size < MOST_STRIDE) {
        dims[options.n_dims - 1].size *= 2;
        onv_analysis_destroy(*result);
        status = create(&from, &options, result, err);
    }
    onv_heap_free(dims);
    if (status == ONV_OK) status = onv_in_force_note(&asked, *result, err);
    status = onv_watch_verdict(&watch, status, err);
    if (status != ONV_OK) {
        onv_analysis_destroy(*result);
        *result = NULL;
    }
    status = onv_watch_leave(&watch, status, err);
    if (*result != NULL) (*result)->making->watch = watch;
    return status;
}

onv_status onv_analysis_new(const char *path, const onv_options *options, onv_analysis **analysis,
                            onv_error *error)
{
    return analyse((onv_request){.path = path}, options, analysis, error);
}

onv_status onv_analysis_new_from_memory(const void *data, size_t bytes, const char *name,
                                        const onv_options *options, onv_analysis **analysis,
                                        onv_error *error)
{
    onv_request from = {.path = name, .data = data != NULL ? data : "", .bytes = bytes};
    return analyse(from, options, analysis, error);
}

void onv_analysis_destroy(onv_analysis *analysis)
{
    if (analysis == NULL) return;
    onv_making *making = analysis->making;
    onv_analysis_destroy(analysis->example);
    onv_analysis_forget_loaded(analysis);
    if (analysis->unbound != NULL) onv_model_cleanup(analysis->unbound);
    onv_strings_cleanup(&making->text);
    onv_arena_cleanup(&making->scratch);
    onv_arena_cleanup(&making->arena);
    onv_replays_cleanup(&analysis->replays);
    onv_executions_cleanup(&analysis->executions);
    onv_measured_cleanup(&analysis->measured);
    onv_timeline_cleanup(&analysis->training.timeline);
    onv_infer_info_cleanup(&analysis->infer);
    onv_rewritten_cleanup(&analysis->ort_graph.rewritten);
    onv_rewritten_cleanup(&analysis->cpu_graph.rewritten);
    onv_rewritten_cleanup(&analysis->engine_graph.rewritten);
    onv_model_cleanup(&making->wide);
    onv_eager_views_cleanup(&making->views);
    onv_model_cleanup(&analysis->model);
    onv_heap_free(making);
}
