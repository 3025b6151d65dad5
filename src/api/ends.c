/* The two ends of what eager PyTorch holds in inference: by what names of Python hold, which only a recording says, and by what
 * cuDNN takes. */
#include <inttypes.h>
#include <string.h>

#include "api/analysis.h"
#include "eager/inference.h"
#include "program/program.h"

/* The fast path of PyTorch's own layers depends on the caller as well. */
static onv_status warn_of_fast_path(onv_analysis *analysis, onv_model *model, const onv_live *live,
                                    onv_runtime_options how, const onv_runtime_result *result,
                                    onv_error *err)
{
    onv_runtime_result other;
    bool has_note = false;
    for (size_t i = 0; i < model->diags.count; i++)
        has_note |= strcmp(model->diags.at[i].code, "fast-path") == 0;
    if (!has_note) return ONV_OK;
    how.lower.no_fast_path = true;
    how.tape = NULL;
    ONV_TRY(onv_runtime_compute(result->runtime, model, live, &how, &other, err));
    if (other.allocated_peak_bytes != result->allocated_peak_bytes)
        onv_model_diag(&analysis->model, ONV_NOTE, "fast-path", NULL,
                       "eager PyTorch allocates %" PRIu64
                       " bytes at most by the fast path, %" PRIu64 " without it",
                       result->allocated_peak_bytes, other.allocated_peak_bytes);
    return ONV_OK;
}

/* What one timeline asks for is served with each choice. */
static onv_status serve_ends(onv_model *model, const onv_runtime_options *how,
                             const unsigned which[2], onv_execution *made, onv_requests *asked,
                             onv_runtime_result *result, onv_error *err)
{
    const onv_alloc_model *allocator = onv_alloc_model_find(result->runtime->allocator);
    const onv_alloc_options alloc = onv_runtime_allocator(result->runtime, how);
    uint64_t room = onv_eager_handle_bytes(how->tape, &how->lower);
    onv_held_figures held[2];
    onv_peak peak;
    room = how->room_bytes > room ? how->room_bytes - room : 0;
    ONV_TRY(onv_inference_build(model, how->tape, &how->lower, &made->timeline, asked, err));
    ONV_TRY(onv_execution_share_outputs(model, made, err));
    ONV_TRY(
        onv_timeline_peak_without(&made->timeline, ONV_BUFFERS_BESIDE_TENSORS, &peak, NULL, err));
    ONV_TRY(onv_requests_list(&made->timeline, asked, err));
    ONV_TRY(onv_requests_serve(asked, which, 2, allocator, &alloc, held, err));
    for (int i = 0; i < 2; i++) {
        onv_runtime_result end = {.allocated_peak_bytes = held[i].allocated_peak,
                                  .tensor_peak_bytes = peak.bytes,
                                  .held_bytes = held[i].reserved_peak};
        if (!allocator->is_pooled)
            ONV_TRY(
                onv_release_find(NULL, asked, which[i], &alloc, room, &held[i], &end.release, err));
        onv_runtime_add_end(&end, result);
    }
    return ONV_OK;
}

/* With the likely workspaces too, if there is something else that decides. Of branches a run takes one path, by what they hold. */
static onv_status add_ends_of(onv_model *model, const onv_live *live, onv_runtime_options *how,
                              bool with_likely, onv_workspace_choice choice,
                              onv_runtime_result *result, onv_error *err)
{
    const unsigned last = how->tape->has_open_workspaces ? choice : ONV_WORKSPACE_LIKELY;
    const unsigned which[2] = {with_likely ? ONV_WORKSPACE_LIKELY : last, last};
    if (how->tape->regions.count == 0) {
        onv_execution made = {0};
        onv_requests asked = {.n_ids = 0};
        onv_status status = serve_ends(model, how, which, &made, &asked, result, err);
        onv_execution_cleanup(&made);
        onv_requests_cleanup(&asked);
        return status;
    }
    for (int i = which[0] == which[1]; i < 2; i++) {
        onv_runtime_result end;
        how->lower.cuda.choice = (onv_workspace_choice)which[i];
        ONV_TRY(onv_runtime_compute(result->runtime, model, live, how, &end, err));
        onv_runtime_add_end(&end, result);
    }
    return ONV_OK;
}

/* A tape of its own (`how.tape` is NULL) is lowered once. */
static onv_status add_ends(onv_model *model, const onv_live *live, onv_runtime_options how,
                           bool with_likely, onv_workspace_choice choice,
                           onv_runtime_result *result, onv_error *err)
{
    onv_eager own = {.first_loss_op = 0};
    bool lowers = how.tape == NULL;
    if (lowers) ONV_TRY(onv_runtime_lower(model, live, &how, &own, err));
    if (lowers) how.tape = &own;
    onv_status status = add_ends_of(model, live, &how, with_likely, choice, result, err);
    if (lowers) onv_eager_cleanup(&own);
    return status;
}

onv_status onv_analysis_find_ends(onv_analysis *analysis, onv_model *model, const onv_live *live,
                                  onv_runtime_options how, onv_runtime_result *result,
                                  onv_error *err)
{
    static const char *const all[] = {"*"};
    bool is_usual = result->runtime == onv_runtime_find("torch");
    if (!is_usual && (!onv_runtime_is_eager(result->runtime) || !result->is_judged)) return ONV_OK;
    onv_runtime_begin_ends(result);
    bool is_recorded = model->program != NULL && onv_program_is_recorded(model->program);
    bool reports = how.lower.reports, is_told = how.lower.n_inplace > 0 || how.lower.relu_makes_new;
    how.lower.reports = false;
    if (reports && !is_recorded)
        ONV_TRY(warn_of_fast_path(analysis, model, live, how, result, err));
    bool names_decide = !is_recorded && !how.lower.locals; /* or that end is asked for */
    if (!names_decide && !how.tape->has_open_workspaces) return ONV_OK;
    result->has_open_workspaces = how.tape->has_open_workspaces;
    onv_eager new_relus = {.first_loss_op = 0};
    onv_runtime_options most = how, least = how;
    least.room_bytes = 0;
    if (names_decide) {
        most.lower.locals = true;
        most.lower.relu_makes_new |= !is_told;
        least.lower.least = true;
        if (!is_told) {
            least.lower.inplace = all;
            least.lower.n_inplace = 1;
        }
        bool makes_new = !is_told && how.tape->inplace_relus.count > 0;
        if (how.tape->differs_most || (makes_new && how.tape->regions.count > 0))
            most.tape = NULL;
        else if (makes_new)
            most.tape = &new_relus;
        if (how.tape->differs_least) least.tape = NULL;
    }
    onv_status status =
        most.tape == &new_relus ? onv_eager_with_new_relus(how.tape, &new_relus, err) : ONV_OK;
    if (status == ONV_OK)
        status = add_ends(model, live, most, names_decide, ONV_WORKSPACE_MOST, result, err);
    if (most.tape == &new_relus) onv_eager_end_new_relus(&new_relus);
    ONV_TRY(status);
    ONV_TRY(add_ends(model, live, least, names_decide, ONV_WORKSPACE_LEAST, result, err));
    return onv_runtime_add_up(result, err);
}
