#include "ckpt/training.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "ckpt/plan_names.h"
#include "ckpt/shard_units.h"
#include "ckpt/warnings.h"
#include "graph/storage.h"
#include "lower/lower.h"

/* A sum of the program's, which was checked, where `kind` is one of few. */
static uint64_t sum_of_kind(const onv_timeline *t, onv_buffer_kind kind)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < t->buffers.count; i++)
        if (t->buffers.at[i].kind == kind) bytes += t->buffers.at[i].bytes;
    return bytes;
}

/* The largest workspace of the step at the peak that stands in it: without it the step has less. */
static void find_workspace(const onv_timeline *t, const onv_peak *peak,
                           onv_training_figures *figures)
{
    const onv_step *step = &t->steps.at[peak->step];
    uint64_t begun = 0;
    figures->requested_peak_bytes = peak->bytes;
    figures->requested_peak_node = step->node;
    figures->requested_peak_label = step->label;
    for (size_t i = 0; i < t->buffers.count; i++)
        if (onv_buffer_is_live(&t->buffers.at[i], peak->step) &&
            t->buffers.at[i].first < peak->step)
            begun += t->buffers.at[i].bytes;
    for (size_t i = 0; i < t->buffers.count; i++) {
        const onv_buffer *b = &t->buffers.at[i];
        if (!onv_buffer_is_live(b, peak->step)) continue;
        bool stands = b->is_transient ? begun + b->bytes == peak->bytes : true;
        if (b->first == peak->step && !b->is_transient) begun += b->bytes;
        if (b->kind != ONV_BUFFER_WORKSPACE || !stands) continue;
        figures->workspace_bytes += b->bytes;
        figures->workspace_library = b->label;
    }
}

static onv_status find_peaks(const onv_timeline *t, onv_training_figures *figures, onv_error *err)
{
    onv_peak peak;
    ONV_TRY(onv_timeline_peak(t, &peak, NULL, err));
    find_workspace(t, &peak, figures);
    ONV_TRY(onv_timeline_peak_without(t, ONV_BUFFERS_BESIDE_TENSORS, &peak, NULL, err));
    const onv_step *step = &t->steps.at[peak.step];
    figures->buffer_bytes = sum_of_kind(t, ONV_BUFFER_STATISTIC);
    figures->input_bytes = sum_of_kind(t, ONV_BUFFER_INPUT);
    figures->peak_bytes = peak.bytes;
    for (int phase = 0; phase < ONV_N_PHASES; phase++)
        figures->phase_peak_bytes[phase] = peak.of_phase[phase];
    figures->peak_phase = (onv_phase)step->phase;
    figures->peak_node = step->node;
    figures->peak_label = step->label;
    return ONV_OK;
}

/* 0: no limit, or there is no room at all. */
static uint64_t room_beside_handles(const onv_training_options *options,
                                    const onv_training_figures *figures)
{
    uint64_t room = options->room_bytes, handles = figures->driver_bytes;
    return room > handles ? room - handles : 0;
}

static onv_status serve(const onv_timeline *t, const onv_training_options *options,
                        const char *plan, onv_training_figures *figures, onv_error *err)
{
    onv_placement placement;
    ONV_TRY(onv_alloc_run(t, onv_alloc_model_find("torch"), &options->alloc, &placement, err));
    figures->allocated_peak_bytes = placement.figures.allocated_peak;
    figures->reserved_peak_bytes = placement.figures.reserved_peak;
    onv_status status = onv_release_find(t, &options->alloc, room_beside_handles(options, figures),
                                         &placement.figures, &figures->release, err);
    if (status == ONV_OK && options->take != NULL)
        status = options->take(options->take_context, t, &placement, plan, err);
    onv_placement_cleanup(&placement);
    return status;
}

/* What is trained: eager, or compiled with a memory budget. */
typedef struct network {
    onv_model *model;
    const onv_eager *eager;
    onv_compiling *compiling; /* NULL: eager */
    double budget;
    const onv_tape_segment *units; /* FSDP's, by operations of `eager`; NULL: none */
    uint32_t n_units;
    onv_op_runs *runs; /* of what was built last, by operation; NULL: nobody asks for seconds */
} network;

/* Room for `runs`, which goes with the tape. */
static onv_status count_runs(network *n, onv_eager *eager, const onv_training_options *options,
                             onv_error *err)
{
    if (options->speed.gpu == NULL) return ONV_OK;
    n->runs = ONV_ARENA_ARRAY(&eager->arena, onv_op_runs, eager->ops.count + 1);
    return n->runs != NULL ? ONV_OK : onv_fail_memory(err);
}

static onv_train_options counting(const network *n, const onv_train_options *options)
{
    onv_train_options how = *options;
    how.runs = n->runs;
    if (n->runs != NULL) memset(n->runs, 0, n->eager->ops.count * sizeof *n->runs);
    return how;
}

static onv_status build(const network *n, const onv_train_options *options,
                        onv_train_program *program, onv_error *err)
{
    const onv_compiled *compiled;
    const onv_train_options how = counting(n, options);
    if (n->compiling == NULL)
        return onv_train_program_build(n->model, n->eager, &how, program, err);
    return onv_compiling_build(n->compiling, n->budget, options, program, &compiled, err);
}

/* The first iteration of cudnn.benchmark, after which PyTorch empties its cache. */
static onv_status measure_first(const network *n, const onv_train_options *options, uint64_t *bytes,
                                onv_error *err)
{
    onv_train_options first = *options;
    onv_train_program program;
    onv_peak peak;
    first.iterations = 1;
    first.tries_kernels = true;
    first.notes_holds = false;
    ONV_TRY(build(n, &first, &program, err));
    onv_status status = onv_timeline_peak(&program.timeline, &peak, NULL, err);
    if (status == ONV_OK) *bytes = peak.bytes;
    onv_train_program_cleanup(&program);
    return status;
}

/* Buffers live as long as calls of modules can hold them, or again as they did. */
static void exchange_ends(onv_train_program *program)
{
    for (size_t i = 0; i < program->holds.count; i++) {
        onv_noted_hold *hold = &program->holds.at[i];
        onv_buffer *buffer = &program->timeline.buffers.at[hold->buffer];
        uint32_t last = buffer->last;
        buffer->last = hold->until;
        hold->until = last;
    }
}

/* Where calls of modules hold what they can. */
static onv_status find_most(onv_train_program *program, const onv_training_options *options,
                            onv_training_figures *most, onv_error *err)
{
    onv_training_options how = *options;
    how.take = NULL;
    for (size_t i = 0; i < program->holds.count; i++) {
        onv_noted_hold *hold = &program->holds.at[i];
        uint32_t last = program->timeline.buffers.at[hold->buffer].last;
        if (hold->until < last) hold->until = last;
    }
    exchange_ends(program);
    most->workspace_bytes = 0;
    onv_status status = find_peaks(&program->timeline, most, err);
    if (status == ONV_OK) status = serve(&program->timeline, &how, NULL, most, err);
    exchange_ends(program);
    return status;
}

static onv_time time_of(const network *n, const onv_training_options *options,
                        const onv_train_program *program)
{
    if (n->runs == NULL) return (onv_time){0};
    if (n->compiling != NULL)
        return (onv_time){.refused = "kernels that torch.compile makes are not estimated"};
    return onv_speed_of_step(&options->speed, n->eager, &options->train, program, n->runs);
}

static void take_sums(const network *n, const onv_training_options *options,
                      const onv_train_program *program, onv_training_figures *figures)
{
    *figures = (onv_training_figures){.time = time_of(n, options, program),
                                      .trained_elems = program->trained_elems,
                                      .saved_activation_bytes = program->saved_bytes,
                                      .parameter_bytes = program->parameter_bytes,
                                      .gradient_bytes = program->gradient_bytes,
                                      .optimizer_bytes = program->optimizer_bytes,
                                      .offloaded_bytes = program->offloaded_bytes,
                                      .returned_bytes = program->returned_bytes,
                                      .pinned_bytes = program->pinned_bytes,
                                      .forward_macs = program->forward_macs,
                                      .parts = program->parts};
    /* Forward and backward run on threads of their own. */
    if (!onv_u64_mul(onv_eager_handle_bytes(n->eager, &options->train.lower), 2,
                     &figures->driver_bytes))
        figures->driver_bytes = UINT64_MAX;
}

/* `most`: the upper end, where options->train.notes_holds is set; else as the figures. NULL: not asked for. `timeline`,
 * where it is not NULL, is to be cleaned up if this succeeds. */
static onv_status measure(const network *n, const onv_training_options *options, const char *plan,
                          onv_training_figures *figures, onv_training_figures *most,
                          onv_timeline *timeline, onv_error *err)
{
    onv_train_program program;
    ONV_TRY(build(n, &options->train, &program, err));
    take_sums(n, options, &program, figures);
    onv_status status = onv_train_program_check(&program, err);
    if (status == ONV_OK) status = find_peaks(&program.timeline, figures, err);
    if (status == ONV_OK) status = serve(&program.timeline, options, plan, figures, err);
    if (most != NULL) *most = *figures;
    if (status == ONV_OK && program.holds.count > 0)
        status = find_most(&program, options, most, err);
    if (status == ONV_OK && timeline != NULL) {
        *timeline = program.timeline;
        program.timeline = (onv_timeline){0};
    }
    onv_train_program_cleanup(&program);
    if (status == ONV_OK && options->train.lower.cuda.benchmark)
        status = measure_first(n, &options->train, &figures->first_peak_bytes, err);
    /* Nothing is cached yet that could be returned. */
    if (figures->release.suffices &&
        figures->first_peak_bytes > room_beside_handles(options, figures))
        figures->release = (onv_release){0};
    return status;
}

static onv_status serve_within(const network *n, const onv_training_options *options,
                               uint64_t limit_bytes, onv_train_served *served, onv_error *err)
{
    onv_alloc_options alloc = options->alloc;
    alloc.capacity_bytes = limit_bytes;
    const onv_train_options how = counting(n, &options->train);
    return onv_train_serve(n->model, n->eager, &how, &alloc, served, err);
}

/* Without the program: what is compared of plans. */
static onv_status measure_sums(const network *n, const onv_training_options *options,
                               onv_training_figures *figures, onv_error *err)
{
    onv_train_served served, limited;
    ONV_TRY(serve_within(n, options, options->alloc.capacity_bytes, &served, err));
    ONV_TRY(onv_train_program_check(&served.program, err));
    take_sums(n, options, &served.program, figures);
    figures->peak_bytes = served.peak_bytes;
    figures->requested_peak_bytes = served.requested_bytes;
    figures->allocated_peak_bytes = served.held.allocated_peak;
    figures->reserved_peak_bytes = served.held.reserved_peak;
    for (uint32_t i = 0; i < n->eager->storages.count; i++) {
        const onv_eager_storage *storage = &n->eager->storages.at[i];
        if (storage->kind == ONV_STORAGE_BUFFER || storage->kind == ONV_STORAGE_CONSTANT)
            figures->buffer_bytes += storage->bytes;
    }
    uint64_t room = room_beside_handles(options, figures);
    if (!onv_release_may_suffice(room, &served.held)) return ONV_OK;
    ONV_TRY(serve_within(n, options, room, &limited, err));
    figures->release = onv_release_of(&limited.held);
    return ONV_OK;
}

/* A plan that changes nothing is training without plans. */
static bool is_empty(const onv_ckpt_plan *plan)
{
    return plan->n_segments == 0 && plan->offload_until == 0 && !plan->saves_on_cpu &&
           !plan->compiles;
}

static onv_training_plan begin_plan(const onv_ckpt_plan *from)
{
    return (onv_training_plan){.name = from->name,
                               .item = from->item,
                               .segments = from->segments,
                               .n_segments = from->n_segments,
                               .prunes = from->prunes,
                               .is_reentrant = from->is_reentrant,
                               .save = from->save,
                               .kept_ops = from->kept_ops,
                               .n_kept_ops = from->n_kept_ops,
                               .sequential = from->sequential,
                               .loop_from = from->loop_from,
                               .saves_on_cpu = from->saves_on_cpu,
                               .offload_until = from->offload_until,
                               .compiles = from->compiles,
                               .memory_budget = from->memory_budget,
                               .recomputed_macs = from->recomputed_macs};
}

/* How a plan is measured. */
static void take_plan(const network *trained, const onv_training_options *options,
                      const onv_ckpt_plan *plan, network *n, onv_training_options *how)
{
    *n = *trained;
    *how = *options;
    if (!plan->compiles) n->compiling = NULL;
    n->budget = plan->memory_budget;
    how->train.units = n->units;
    how->train.n_units = n->n_units;
    onv_ckpt_apply(plan, &how->train);
}

/* What is empty was measured, unless somebody wants its timeline. */
static onv_status measure_plan(const network *trained, const onv_training_options *options,
                               const onv_ckpt_plan *from, const onv_training_figures *plain,
                               onv_training_plan *plan, onv_error *err)
{
    onv_training_options how;
    network n;
    onv_status status = ONV_OK;
    *plan = begin_plan(from);
    take_plan(trained, options, from, &n, &how);
    bool is_whole = options->take != NULL || n.compiling != NULL ||
                    how.train.lower.cuda.benchmark || how.train.parallel == ONV_PARALLEL_FSDP;
    if (is_empty(from) && options->take == NULL)
        plan->figures = *plain;
    else if (is_whole)
        status = measure(&n, &how, plan->name, &plan->figures, NULL, NULL, err);
    else
        status = measure_sums(&n, &how, &plan->figures, err);
    if (!onv_u64_mul(plan->figures.forward_macs, 3, &plan->pass_macs)) plan->pass_macs = UINT64_MAX;
    return status;
}

/* All figures of the plan that was chosen, and its timeline in place of that of training without plans. */
static onv_status measure_chosen(const network *trained, const onv_training_options *options,
                                 const onv_ckpt_plan *from, onv_training *result, onv_error *err)
{
    onv_training_options how;
    network n;
    onv_timeline timeline = {0};
    if (is_empty(from) || options->is_probe) return ONV_OK;
    take_plan(trained, options, from, &n, &how);
    how.take = NULL;
    ONV_TRY(measure(&n, &how, from->name, &result->plans[result->chosen].figures, NULL,
                    options->keeps_timeline ? &timeline : NULL, err));
    onv_training_choose(result, result->chosen);
    onv_timeline_cleanup(&result->timeline);
    result->timeline = timeline;
    return ONV_OK;
}

/* Each as a training program with the allocator. */
static onv_status measure_plans(const network *n, const network *plain,
                                const onv_training_options *options, const onv_ckpt_plan *made,
                                size_t count, onv_training *result, onv_error *err)
{
    const onv_training_figures without = result->figures;
    result->plans = ONV_ARENA_ARRAY(&n->model->arena, onv_training_plan, count);
    if (result->plans == NULL) return onv_fail_memory(err);
    result->n_plans = (uint32_t)count;
    for (uint32_t i = 0; i < count; i++) {
        bool is_preferred = count == 1;
        if (options->taken_plan != NULL) *options->taken_plan = i;
        ONV_TRY(measure_plan(is_empty(&made[i]) ? plain : n, options, &made[i], &without,
                             &result->plans[i], err));
        if (options->prefer != NULL)
            ONV_TRY(options->prefer(options->prefer_context, result, i, &is_preferred, err));
        if (is_preferred) onv_training_choose(result, i);
    }
    if (result->chosen == ONV_NO_PLAN) return ONV_OK;
    return measure_chosen(n, options, &made[result->chosen], result, err);
}

/* One of those that were made, by the figures of all. */
static onv_status select_plan(const network *n, const network *plain,
                              const onv_training_options *options, const onv_ckpt_plans *made,
                              const onv_training *without, const onv_ckpt_plan **at, onv_error *err)
{
    onv_training_options how = *options;
    onv_training all = *without;
    uint32_t index;
    how.take = NULL;
    how.prefer = NULL;
    how.keeps_timeline = false;
    how.taken_plan = NULL;
    all.timeline = (onv_timeline){0};
    ONV_TRY(measure_plans(n, plain, &how, made->at.at, made->at.count, &all, err));
    ONV_TRY(onv_plans_name(n->model, n->eager, &all, err));
    ONV_TRY(options->select(options->select_context, &all, &index, err));
    *at = &made->at.at[index];
    return ONV_OK;
}

static onv_status compute_plans(const network *n, const network *plain,
                                const onv_training_options *options, onv_training *result,
                                onv_error *err)
{
    onv_model *model = n->model;
    const onv_eager *eager = n->eager;
    const onv_known_plans *known = options->known;
    onv_ckpt_plans made;
    result->n_plan_ops = (uint32_t)eager->ops.count;
    if (known != NULL && known->n_ops != result->n_plan_ops) return ONV_OK;
    if (known != NULL)
        return measure_plans(n, plain, options, known->at, known->count, result, err);
    onv_ckpt_wanted wanted = {options->checkpoint, options->plan};
    ONV_TRY(onv_ckpt_make(model, eager, n->compiling, &options->train, wanted, &made, err));
    const onv_ckpt_plan *at = made.at.at;
    size_t count = made.at.count;
    onv_status status = ONV_OK;
    if (options->select != NULL) status = select_plan(n, plain, options, &made, result, &at, err);
    if (options->select != NULL) count = 1;
    if (status == ONV_OK) status = measure_plans(n, plain, options, at, count, result, err);
    onv_ckpt_plans_cleanup(&made);
    if (status == ONV_OK) status = onv_plans_name(model, eager, result, err);
    if (status == ONV_OK && options->train.parallel == ONV_PARALLEL_FSDP)
        onv_training_warn_of_shards(model, result);
    return status;
}

uint64_t onv_training_plan_price(const onv_training_plan *plan)
{
    uint64_t moved;
    if (!onv_u64_add(plan->figures.offloaded_bytes, plan->figures.returned_bytes, &moved))
        moved = UINT64_MAX;
    return onv_ckpt_price(plan->recomputed_macs, moved);
}

void onv_training_choose(onv_training *result, uint32_t plan)
{
    result->figures = result->plans[plan].figures;
    result->chosen = plan;
}

static void widen(onv_training *result, const onv_training_figures *end)
{
    if (end->peak_bytes > result->most.peak_bytes) result->most = *end;
    if (end->peak_bytes < result->least.peak_bytes) result->least = *end;
}

/* With the other answer to what the file leaves open. */
static onv_status measure_other(const network *n, const onv_live *live, const bool *is_host,
                                const onv_training_options *how, onv_training_figures *figures,
                                onv_training *result, onv_error *err)
{
    onv_training_options other = *how;
    onv_training_figures most;
    onv_eager eager;
    other.train.lower.reports = false;
    other.take = NULL;
    ONV_TRY(onv_eager_lower(n->model, live, is_host, &other.train.lower, &eager, err));
    network again = {.model = n->model, .eager = &eager};
    onv_status status = measure(&again, &other, NULL, figures, &most, NULL, err);
    onv_eager_cleanup(&eager);
    if (status != ONV_OK) return status;
    widen(result, figures);
    widen(result, &most);
    return ONV_OK;
}

/* Activations overwrite their input or not, which exports do not tell: nn.ReLU is taken to, others not. */
static onv_status find_ends(const network *n, const onv_live *live, const bool *is_host,
                            const onv_training_options *how, onv_training *result, onv_error *err)
{
    static const char *const all[] = {"*"};
    const onv_eager *eager = n->eager;
    uint64_t peak = result->figures.peak_bytes;
    onv_training_options other = *how;
    onv_training_figures figures;
    if (how->train.lower.n_inplace == 0 && eager->open_activations > 0) {
        other.train.lower.inplace = all;
        other.train.lower.n_inplace = 1;
        ONV_TRY(measure_other(n, live, is_host, &other, &figures, result, err));
    }
    if (eager->untold_relus == 0 || eager->untold_bytes < peak / ONV_PARTS_OF_NEWS) return ONV_OK;
    other = *how;
    other.train.lower.relu_makes_new = true;
    ONV_TRY(measure_other(n, live, is_host, &other, &figures, result, err));
    bool is_less = figures.peak_bytes < peak;
    if (how->train.lower.reports &&
        onv_is_news(is_less ? figures.peak_bytes : peak, is_less ? peak : figures.peak_bytes))
        onv_model_diag(
            n->model, ONV_WARNING, "relu-inplace", NULL,
            "%u ReLUs are taken to overwrite their input, which the file does not say; where "
            "they make new tensors, as nn.ReLU() does without inplace=True, the peak is %llu "
            "bytes instead of %llu: --inplace=none",
            eager->untold_relus, (unsigned long long)figures.peak_bytes, (unsigned long long)peak);
    return ONV_OK;
}

/* With FSDP, the units that the options ask for. */
static onv_status shard(network *n, onv_training_options *how, onv_error *err)
{
    if (how->train.parallel != ONV_PARALLEL_FSDP) return ONV_OK;
    const char *patterns = how->units != NULL ? how->units : "";
    ONV_TRY(onv_shard_units_find(n->model, n->eager, patterns, &n->units, &n->n_units, err));
    how->train.units = n->units;
    how->train.n_units = n->n_units;
    return ONV_OK;
}

/* Plans, of the network as it is lowered for checkpoints: fewer operations overwrite their input there. */
static onv_status checkpoint(const network *plain, const onv_live *live, const bool *is_host,
                             const onv_training_options *options, onv_training *result,
                             onv_error *err)
{
    onv_eager eager;
    network n = *plain;
    onv_training_options how = *options;
    onv_lower_options lower = options->train.lower;
    if (options->checkpoint == NULL && options->plan == NULL) return ONV_OK;
    lower.checkpoints = true;
    lower.reports = false;
    ONV_TRY(onv_eager_lower(n.model, live, is_host, &lower, &eager, err));
    n.eager = &eager;
    onv_status status = onv_eager_check(&eager, err);
    if (status == ONV_OK) status = count_runs(&n, &eager, options, err);
    if (status == ONV_OK) status = shard(&n, &how, err);
    if (status == ONV_OK) status = compute_plans(&n, plain, &how, result, err);
    if (status == ONV_OK && options->lists_units)
        status = onv_unit_list_make(n.model, &eager, &how.train, &result->units, err);
    onv_eager_cleanup(&eager);
    return status;
}

/* At the budget that was asked for. */
static onv_status compile(const network *n, const onv_training_options *options,
                          onv_training *result, onv_error *err)
{
    onv_train_program program;
    if (n->compiling == NULL) return ONV_OK;
    ONV_TRY(onv_compiling_build(n->compiling, options->compile_budget, &options->train, &program,
                                &result->compiled, err));
    onv_train_program_cleanup(&program);
    return ONV_OK;
}

/* Training without plans, and its ends. Where plans are known nobody asks for it, unless one of them is just that. */
static onv_status measure_plain(const network *n, const onv_live *live, const bool *is_host,
                                const onv_training_options *options, onv_training *result,
                                onv_error *err)
{
    onv_training_options how = *options;
    onv_timeline *timeline = how.keeps_timeline ? &result->timeline : NULL;
    bool is_asked = how.known == NULL;
    for (uint32_t i = 0; !is_asked && i < how.known->count; i++)
        is_asked = is_empty(&how.known->at[i]);
    if (!is_asked) return ONV_OK;
    how.train.notes_holds = !how.train.lower.locals && !how.is_probe;
    ONV_TRY(measure(n, &how, NULL, &result->figures, &result->most, timeline, err));
    result->least = result->figures;
    if (how.is_probe) return ONV_OK;
    if (how.train.lower.reports) onv_training_warn_of_locals(n->model, result);
    return how.train.units == NULL ? find_ends(n, live, is_host, &how, result, err) : ONV_OK;
}

onv_status onv_training_compute(onv_model *model, const onv_live *live,
                                const onv_training_options *options, onv_training *result,
                                onv_error *err)
{
    bool *is_host;
    onv_eager eager;
    onv_training_options how = *options;
    *result = (onv_training){
        .model = model, .optimizer = options->train.optimizer, .chosen = ONV_NO_PLAN};
    if (options->train.optimizer == NULL)
        return onv_fail(err, ONV_ERR_USAGE, "training needs an optimizer");
    ONV_TRY(onv_mark_host_values(model, live, &is_host, err));
    ONV_TRY(onv_eager_lower(model, live, is_host, &how.train.lower, &eager, err));
    result->loss = eager.loss_name;
    result->folded_norms = eager.folded_norms;
    result->restored_norms = eager.restored_norms;
    result->is_unlisted = model->program == NULL && model->listed.n_parameters == 0 &&
                          how.train.lower.parameters == 0;
    result->slow_attentions = eager.slow_attentions;
    result->recurrent = eager.recurrent;
    result->reserve_bytes = eager.reserve_bytes;
    result->opaque = eager.opaque;
    onv_status status = onv_eager_check(&eager, err);
    network n = {.model = model, .eager = &eager};
    if (status == ONV_OK) status = count_runs(&n, &eager, &how, err);
    if (status == ONV_OK) status = shard(&n, &how, err);
    result->n_units = n.n_units;
    onv_training_warn_of_units(model, &how, n.n_units);
    if (status == ONV_OK) status = measure_plain(&n, live, is_host, &how, result, err);
    if (how.take == NULL) onv_eager_cleanup(&eager); /* plans have a tape of their own */
    if (status == ONV_OK && how.compiles)
        status = onv_compiling_open(model, live, is_host, &how.train, &n.compiling, err);
    if (status == ONV_OK) status = checkpoint(&n, live, is_host, &how, result, err);
    if (status == ONV_OK) status = compile(&n, &how, result, err);
    onv_compiling_close(n.compiling);
    onv_eager_cleanup(&eager);
    if (status == ONV_OK)
        onv_training_warn(model, options, result);
    else
        onv_timeline_cleanup(&result->timeline);
    return status;
}
