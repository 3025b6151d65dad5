#include "ckpt/figures.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"

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

/* Segments that only the fourth iteration takes were seen in 2 of 28 runs, later ones in none, of twelve iterations each.
 * DDP sorts its buckets anew behind the first iteration, so that its last two are not alike. */
static onv_alloc_options allocator_of(const onv_training_options *options)
{
    onv_alloc_options alloc = options->alloc;
    alloc.later_iterations = options->train.parallel == ONV_PARALLEL_NONE ? 1 : 0;
    return alloc;
}

/* Reserved, or in the first iteration. */
static uint64_t held_by(const onv_training_figures *f)
{
    return f->reserved_peak_bytes > f->first_peak_bytes ? f->reserved_peak_bytes
                                                        : f->first_peak_bytes;
}

bool onv_figures_fit(const onv_training_options *options, const onv_training_figures *f)
{
    return options->room_bytes == 0 || held_by(f) <= room_beside_handles(options, f);
}

static onv_status serve(const onv_timeline *t, const onv_training_options *options,
                        const char *plan, onv_training_figures *figures, onv_error *err)
{
    onv_placement placement;
    const onv_alloc_options alloc = allocator_of(options);
    ONV_TRY(onv_alloc_run(t, onv_alloc_model_find("torch"), &alloc, &placement, err));
    figures->allocated_peak_bytes = placement.figures.allocated_peak;
    figures->reserved_peak_bytes = placement.figures.reserved_peak;
    onv_status status = onv_release_find(t, NULL, 0, &alloc, room_beside_handles(options, figures),
                                         &placement.figures, &figures->release, err);
    if (status == ONV_OK && options->take != NULL)
        status = options->take(options->take_context, t, &placement, plan, err);
    onv_placement_cleanup(&placement);
    return status;
}

onv_status onv_figures_count_runs(onv_network *n, onv_eager *eager,
                                  const onv_training_options *options, onv_error *err)
{
    if (options->speed.gpu == NULL) return ONV_OK;
    n->runs = ONV_ARENA_ARRAY(&eager->arena, onv_op_runs, eager->ops.count + 1);
    return n->runs != NULL ? ONV_OK : onv_fail_memory(err);
}

static onv_train_options counting(const onv_network *n, const onv_train_options *options)
{
    onv_train_options how = *options;
    how.runs = n->runs;
    if (n->runs != NULL) memset(n->runs, 0, n->eager->ops.count * sizeof *n->runs);
    return how;
}

static onv_status build(const onv_network *n, const onv_train_options *options,
                        onv_train_program *program, onv_error *err)
{
    const onv_compiled *compiled;
    const onv_train_options how = counting(n, options);
    if (n->compiling == NULL)
        return onv_train_program_build(n->model, n->eager, &how, program, err);
    return onv_compiling_build(n->compiling, n->budget, options, program, &compiled, err);
}

/* The first iteration of cudnn.benchmark, after which PyTorch empties its cache. */
static onv_status measure_first(const onv_network *n, const onv_train_options *options,
                                uint64_t *bytes, onv_error *err)
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

static onv_time time_of(const onv_network *n, const onv_training_options *options,
                        const onv_train_program *program)
{
    if (n->runs == NULL) return (onv_time){0};
    if (n->compiling != NULL)
        return (onv_time){.refused = "kernels that torch.compile makes are not estimated"};
    return onv_speed_of_step(&options->speed, n->eager, &options->train, program, n->runs);
}

static void take_sums(const onv_network *n, const onv_training_options *options,
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

onv_status onv_figures_of_program(const onv_network *n, const onv_training_options *options,
                                  const char *plan, onv_training_figures *figures,
                                  onv_training_figures *most, onv_timeline *timeline,
                                  onv_error *err)
{
    onv_train_program program;
    ONV_TRY(build(n, &options->train, &program, err));
    take_sums(n, options, &program, figures);
    onv_status status = onv_train_program_check(&program, err);
    if (status == ONV_OK) status = find_peaks(&program.timeline, figures, err);
    if (status == ONV_OK) status = serve(&program.timeline, options, plan, figures, err);
    if (most != NULL) *most = *figures;
    if (status == ONV_OK && most != NULL && program.holds.count > 0)
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

/* --- Without the program ----------------------------------------------------------------------- */

static bool needs_program(const onv_network *n, const onv_training_options *options)
{
    return options->take != NULL || n->compiling != NULL || options->train.lower.cuda.benchmark ||
           options->train.parallel == ONV_PARALLEL_FSDP;
}

static onv_status record(const onv_network *n, const onv_training_options *options,
                         onv_train_record *made, onv_error *err)
{
    const onv_train_options how = counting(n, &options->train);
    ONV_TRY(n->pricing != NULL ? onv_pricing_record(n->pricing, &how, made, err)
                               : onv_train_record_make(n->model, n->eager, &how, made, err));
    onv_status status = onv_train_program_check(&made->program, err);
    if (status != ONV_OK) onv_requests_cleanup(&made->requests);
    return status;
}

static onv_status serve_record(const onv_train_record *made, const onv_training_options *options,
                               onv_workspace_choice choice, onv_training_figures *figures,
                               onv_error *err)
{
    onv_held_figures held;
    const onv_alloc_options alloc = allocator_of(options);
    const unsigned which = choice;
    ONV_TRY(onv_requests_serve(&made->requests, &which, 1, onv_alloc_model_find("torch"), &alloc,
                               &held, err));
    figures->allocated_peak_bytes = held.allocated_peak;
    figures->reserved_peak_bytes = held.reserved_peak;
    return onv_release_find(NULL, &made->requests, choice, &alloc,
                            room_beside_handles(options, figures), &held, &figures->release, err);
}

/* Whether every workspace has the same size with both, so that serving one serves the other. */
static bool are_same(const onv_train_record *made, onv_workspace_choice a, onv_workspace_choice b)
{
    bool are = true;
    for (size_t i = 0; i < made->requests.passing.count && are; i++)
        are = made->requests.passing.at[i].bytes[a] == made->requests.passing.at[i].bytes[b];
    return are;
}

/* By what cuDNN takes for convolutions. `made`: of these options, or NULL. */
static onv_status measure_end(const onv_network *n, const onv_training_options *options,
                              const onv_train_record *made, onv_training_figures *end,
                              onv_error *err)
{
    if (made != NULL)
        return serve_record(made, options, options->train.lower.cuda.choice, end, err);
    return onv_figures_measure(n, options, NULL, false, end, err);
}

static void widen_to(uint64_t ends[2], uint64_t bytes)
{
    if (bytes < ends[0]) ends[0] = bytes;
    if (bytes > ends[1]) ends[1] = bytes;
}

static bool is_too_much(const onv_training_options *options, const onv_training_figures *f)
{
    return !onv_figures_fit(options, f) && !f->release.suffices;
}

static onv_status add_ends(const onv_network *n, const onv_training_options *options,
                           const onv_train_record *made, bool with_locals,
                           onv_training_figures *figures, onv_error *err)
{
    static const onv_workspace_choice choices[] = {ONV_WORKSPACE_LIKELY, ONV_WORKSPACE_LEAST,
                                                   ONV_WORKSPACE_MOST};
    const onv_workspace_choice first = options->train.lower.cuda.choice; /* the figures so far */
    onv_training_options other = *options;
    bool fails = is_too_much(options, figures);
    uint64_t *allocated = figures->allocated_ends, *held = figures->held_ends;
    allocated[0] = allocated[1] = figures->allocated_peak_bytes;
    held[0] = held[1] = held_by(figures);
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        bool has_names = with_locals && choices[i] == ONV_WORKSPACE_MOST;
        bool is_known = made != NULL && !has_names && are_same(made, first, choices[i]);
        if (choices[i] == first || is_known) continue;
        onv_training_figures end = *figures;
        other.train.lower.cuda.choice = choices[i];
        other.train.lower.locals |= has_names;
        ONV_TRY(measure_end(n, &other, has_names ? NULL : made, &end, err));
        fails |= is_too_much(options, &end);
        if (!onv_figures_fit(options, &end) && held_by(&end) >= held[1])
            figures->release = end.release;
        widen_to(allocated, end.allocated_peak_bytes);
        widen_to(held, held_by(&end));
    }
    if (fails) figures->release = (onv_release){0};
    return ONV_OK;
}

/* Of a probe that does not fit more would not fit either. */
static bool may_have_ends(const onv_network *n, const onv_training_options *options,
                          const onv_training_figures *figures)
{
    return n->eager->has_open_workspaces && !(options->is_probe && is_too_much(options, figures));
}

onv_status onv_figures_find_ends(const onv_network *n, const onv_training_options *options,
                                 bool with_locals, onv_training_figures *figures, onv_error *err)
{
    onv_training_options how = *options;
    onv_train_record made;
    if (!may_have_ends(n, options, figures)) return ONV_OK;
    how.train.notes_holds = false;
    how.take = NULL;
    if (needs_program(n, &how)) return add_ends(n, &how, NULL, with_locals, figures, err);
    ONV_TRY(record(n, &how, &made, err));
    onv_status status = add_ends(n, &how, &made, with_locals, figures, err);
    onv_requests_cleanup(&made.requests);
    return status;
}

static onv_status sum(const onv_network *n, const onv_training_options *options,
                      const onv_train_record *made, bool with_ends, onv_training_figures *figures,
                      onv_error *err)
{
    take_sums(n, options, &made->program, figures);
    figures->peak_bytes = made->peak_bytes;
    figures->requested_peak_bytes = made->requested_bytes;
    for (uint32_t i = 0; i < n->eager->storages.count; i++) {
        const onv_eager_storage *storage = &n->eager->storages.at[i];
        if (storage->kind == ONV_STORAGE_BUFFER || storage->kind == ONV_STORAGE_CONSTANT)
            figures->buffer_bytes += storage->bytes;
        if (storage->kind == ONV_STORAGE_INPUT) figures->input_bytes += storage->bytes;
    }
    ONV_TRY(serve_record(made, options, options->train.lower.cuda.choice, figures, err));
    if (!with_ends || !may_have_ends(n, options, figures)) return ONV_OK;
    return add_ends(n, options, made, false, figures, err);
}

onv_status onv_figures_measure(const onv_network *n, const onv_training_options *options,
                               const char *plan, bool with_ends, onv_training_figures *figures,
                               onv_error *err)
{
    onv_train_record made;
    if (needs_program(n, options)) {
        ONV_TRY(onv_figures_of_program(n, options, plan, figures, NULL, NULL, err));
        return with_ends ? onv_figures_find_ends(n, options, false, figures, err) : ONV_OK;
    }
    ONV_TRY(record(n, options, &made, err));
    onv_status status = sum(n, options, &made, with_ends, figures, err);
    onv_requests_cleanup(&made.requests);
    return status;
}
