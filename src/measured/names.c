/* What both sides call things. */
#include <inttypes.h>
#include <string.h>

#include "ir/origin.h"
#include "measured/compare.h"

/* --- The snapshot ------------------------------------------------------------------------------ */

static bool contains(const onv_pickled *text, const char *part)
{
    size_t n = strlen(part);
    if (text == NULL || text->type != ONV_PICKLED_TEXT) return false;
    for (size_t i = 0; i + n <= text->length; i++)
        if (memcmp(text->text + i, part, n) == 0) return true;
    return false;
}

static bool ends(const onv_pickled *text, const char *part)
{
    size_t n = strlen(part);
    return text != NULL && text->type == ONV_PICKLED_TEXT && text->length >= n &&
           memcmp(text->text + text->length - n, part, n) == 0;
}

enum { MOST_FRAMES = 256 };

/* Autograd runs backward on threads of its own, which have no frame of Python. */
onv_stack_hint onv_stack_read(const onv_pickled *frames)
{
    onv_stack_hint hint = {.kind = ONV_MEASURED_OTHER};
    onv_snapshot_frame frame;
    bool is_python = false;
    if (frames == NULL) return hint;
    for (uint32_t i = 0; i < MOST_FRAMES && onv_snapshot_frame_at(frames, i, &frame); i++) {
        if (!ends(frame.file, ".py")) continue;
        if (!is_python) hint.at = frame;
        is_python = true;
        hint.is_in_module |= onv_pickled_is_text(frame.name, "_call_impl");
        if (hint.kind != ONV_MEASURED_OTHER) continue;
        if (contains(frame.file, "/optim/"))
            hint.kind = onv_pickled_is_text(frame.name, "_init_group") ? ONV_MEASURED_OPTIMIZER
                                                                       : ONV_MEASURED_ACTIVATIONS;
        if (onv_pickled_is_text(frame.name, "_apply") && ends(frame.file, "nn/modules/module.py"))
            hint.kind = ONV_MEASURED_PARAMETERS;
    }
    if (!is_python) hint.kind = ONV_MEASURED_GRADIENTS;
    return hint;
}

const char *onv_stack_text(const onv_pickled *frames, onv_arena *arena)
{
    onv_stack_hint hint = onv_stack_read(frames);
    const onv_pickled *name = hint.at.name, *file = hint.at.file;
    if (frames == NULL) return "before the history";
    if (file == NULL || name == NULL || name->type != ONV_PICKLED_TEXT) return "backward";
    uint32_t from = 0;
    for (uint32_t i = 0; i < file->length; i++)
        if (file->text[i] == '/' || file->text[i] == '\\') from = i + 1;
    return onv_arena_printf(arena, "%.*s %.*s:%" PRIu64,
                            (int)(name->length < 200 ? name->length : 200), name->text,
                            (int)(file->length - from < 200 ? file->length - from : 200),
                            file->text + from, hint.at.line);
}

/* --- The prediction ---------------------------------------------------------------------------- */

const char *onv_step_text(const onv_kept_execution *kept, uint32_t step, onv_arena *arena)
{
    const onv_step *s = &kept->made.timeline.steps.at[step];
    bool trains = strcmp(kept->runtime, "train") == 0;
    const char *node = onv_kept_node(kept, s);
    return onv_arena_printf(arena, "%s%s%s%s%s", trains ? onv_phase_name((onv_phase)s->phase) : "",
                            trains ? " of " : "", onv_kept_op(kept, s), node[0] != '\0' ? " " : "",
                            node);
}

const char *onv_step_module(const onv_kept_execution *kept, uint32_t step, onv_arena *arena)
{
    const onv_step *s = &kept->made.timeline.steps.at[step];
    if (!onv_is_node(s->node)) return s->phase == ONV_PHASE_OPTIMIZER ? "(optimizer)" : "(loss)";
    onv_origin origin = onv_node_origin(kept->model, onv_model_node(kept->model, s->node));
    if (origin.path == NULL || origin.length == 0) return "";
    size_t skip = origin.path[0] == origin.separator;
    return onv_arena_strndup(arena, origin.path + skip, origin.length - skip);
}

onv_measured_kind onv_measured_kind_of(const onv_buffer *b)
{
    switch ((onv_buffer_kind)b->kind) {
    case ONV_BUFFER_WEIGHT:
    case ONV_BUFFER_STATISTIC: return ONV_MEASURED_PARAMETERS;
    case ONV_BUFFER_GRADIENT: return ONV_MEASURED_GRADIENTS;
    case ONV_BUFFER_STATE: return ONV_MEASURED_OPTIMIZER;
    case ONV_BUFFER_INPUT: return ONV_MEASURED_INPUTS;
    case ONV_BUFFER_WORKSPACE: return ONV_MEASURED_WORKSPACES;
    default: return ONV_MEASURED_ACTIVATIONS;
    }
}
