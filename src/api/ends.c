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

/* `made`: as onv_runtime_execute() has it. */
static onv_status add_end(onv_model *model, const onv_live *live, const onv_runtime_options *how,
                          onv_execution *made, onv_runtime_result *result, onv_error *err)
{
    onv_runtime_result end;
    ONV_TRY(onv_runtime_execute(result->runtime, model, live, how, &end, made, err));
    onv_placement_cleanup(&made->placement);
    onv_runtime_add_end(&end, result);
    return ONV_OK;
}

/* Whether a workspace is another one than that which is likely. */
static bool differs(const onv_eager *tape, onv_workspace_choice choice)
{
    for (size_t i = 0; i < tape->ops.count; i++) {
        const onv_eager_workspace *w = &tape->ops.at[i].workspace;
        if (onv_workspace_bytes(w, choice) != w->bytes) return true;
    }
    return false;
}

/* With the likely workspaces too, if there is something else that decides; then in the timeline of these, unless a run took
 * one path of it. */
static onv_status add_ends_of(onv_model *model, const onv_live *live, onv_runtime_options *how,
                              bool with_likely, onv_workspace_choice choice,
                              onv_runtime_result *result, onv_error *err)
{
    onv_execution made = {0};
    bool ends = differs(how->tape, choice), shares = how->tape->regions.count == 0;
    how->lower.keeps_open = ends && shares;
    if (with_likely) ONV_TRY(add_end(model, live, how, &made, result, err));
    if (with_likely && ends && shares)
        shares = onv_inference_choose(how->tape, choice, &made.timeline);
    if (!shares) {
        onv_execution_cleanup(&made);
        made = (onv_execution){0};
        how->lower.keeps_open = false;
    }
    how->lower.cuda.choice = choice;
    onv_status status = ends ? add_end(model, live, how, &made, result, err) : ONV_OK;
    if (status == ONV_OK) onv_execution_cleanup(&made);
    return status;
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
