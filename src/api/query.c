/* What can be asked of the model itself: its external files, tensors, the peak, diagnostics. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "api/analysis.h"
#include "api/sized.h"
#include "report/value.h"

void onv_analysis_summary_get(const onv_analysis *analysis, onv_summary *summary, size_t size)
{
    const onv_live *live = &analysis->live;
    onv_summary full = {
        .nodes = live->timeline.steps.count,
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
    onv_give(summary, size, &full, sizeof full);
}

/* Keeps text that was made in the scratch arena, which is empty then; NULL stays NULL, and comes of a lack of
 * memory. */
static const char *keep(const onv_analysis *analysis, const char *text)
{
    onv_making *making = analysis->making;
    const char *kept = text != NULL ? onv_intern(&making->text, text) : NULL;
    onv_arena_reset(&making->scratch);
    return kept;
}

/* --- Tensors: values of the graph, in the order of the file ------------------------------------ */

size_t onv_analysis_tensor_count(const onv_analysis *analysis)
{
    return analysis->model.values.count;
}

static size_t row_of(onv_value_id id)
{
    return onv_is_value(id) ? id.index : ONV_NO_INDEX;
}

static void add_lifetime(const onv_analysis *analysis, onv_tensor_info *info, uint32_t row)
{
    const onv_timeline *t = &analysis->live.timeline;
    const onv_buffer *interval = &t->buffers.at[row];
    info->live = true;
    info->first_step = interval->first;
    info->last_step = interval->last;
    if (interval->becomes != ONV_NO_BUFFER)
        info->alias_of = row_of(t->buffers.at[interval->becomes].value);
    if (analysis->plan_offsets != NULL) info->offset = analysis->plan_offsets[row];
}

bool onv_analysis_tensor_get(const onv_analysis *analysis, size_t index, onv_tensor_info *info,
                             size_t size)
{
    const onv_model *model = &analysis->model;
    if (index >= model->values.count) return false;
    onv_value_id id = {(uint32_t)index};
    const onv_value *value = onv_model_value(model, id);
    onv_arena *scratch = &analysis->making->scratch;
    uint64_t bytes;
    onv_tensor_info full = {
        .name = value->name,
        .kind = onv_view_kind(analysis, id),
        .dtype = keep(analysis, onv_view_dtype(scratch, &value->type)),
        .shape = keep(analysis, onv_type_shape_text(&model->dims, scratch, &value->type)),
        .bytes = onv_view_bytes(analysis, id, &bytes) ? bytes : ONV_SIZE_UNKNOWN,
        .bound = onv_view_is_bound(analysis, id),
        .is_dropped = !onv_view_is_there(analysis, id),
        .alias_of = ONV_NO_INDEX,
        .rank = onv_type_has_rank(&value->type) ? value->type.rank : -1,
        .offset = ONV_SIZE_UNKNOWN,
    };
    if (full.dtype == NULL || full.shape == NULL) return false;
    if (value->is_packed && onv_value_is_weight(value))
        full.format = analysis->model.weight_format->name;
    uint32_t row = analysis->live.of_value[index];
    if (row != UINT32_MAX) add_lifetime(analysis, &full, row);
    return onv_give(info, size, &full, sizeof full);
}

/* Whether the file that holds a tensor is the one that is looked for. */
typedef struct wanted {
    bool is_any;
    dev_t device;
    ino_t node;
    int folder_bytes; /* of the model's path, with its slash */
    const char *path;
    const char *before; /* that was looked at last */
} wanted;

static bool is_wanted(wanted *w, const onv_tensor *tensor)
{
    struct stat status;
    if (tensor == NULL || tensor->payload.kind != ONV_PAYLOAD_EXTERNAL) return false;
    const char *file = tensor->payload.location;
    if (w->is_any) return true;
    if (w->before != NULL && strcmp(w->before, file) == 0) return false;
    w->before = file;
    char place[PATH_MAX];
    int length = snprintf(place, sizeof place, "%.*s%s", w->folder_bytes, w->path, file);
    return length < PATH_MAX && stat(place, &status) == 0 && status.st_dev == w->device &&
           status.st_ino == w->node;
}

static const char *find_external(const onv_model *model, wanted *w)
{
    for (size_t i = 0; i < model->values.count; i++) {
        const onv_tensor *tensor = model->values.at[i].tensor;
        if (is_wanted(w, tensor)) return tensor->payload.location;
    }
    for (size_t i = 0; i < model->nodes.count; i++) {
        const onv_node *node = &model->nodes.at[i];
        for (uint32_t k = 0; k < node->n_attrs; k++)
            if (node->attrs[k].kind == ONV_ATTR_TENSOR && is_wanted(w, node->attrs[k].tensor))
                return node->attrs[k].tensor->payload.location;
    }
    return NULL;
}

const char *onv_analysis_external_file(const onv_analysis *analysis)
{
    return find_external(&analysis->model, &(wanted){.is_any = true});
}

const char *onv_analysis_external_at(const onv_analysis *analysis, uint64_t device, uint64_t inode)
{
    const char *path = analysis->model.path != NULL ? analysis->model.path : "";
    const char *slash = strrchr(path, '/'), *program = analysis->making->views.path;
    wanted w = {.device = (dev_t)device,
                .node = (ino_t)inode,
                .folder_bytes = slash != NULL ? (int)(slash - path + 1) : 0,
                .path = path};
    struct stat status;
    if (program != NULL && stat(program, &status) == 0 && status.st_dev == w.device &&
        status.st_ino == w.node)
        return program;
    return find_external(&analysis->model, &w);
}

/* --- The peak ---------------------------------------------------------------------------------- */

size_t onv_analysis_peak_tensor_count(const onv_analysis *analysis)
{
    return analysis->live.n_peak_set;
}

size_t onv_analysis_peak_tensor(const onv_analysis *analysis, size_t index)
{
    const onv_live *live = &analysis->live;
    if (index >= live->n_peak_set) return ONV_NO_INDEX;
    return row_of(live->timeline.buffers.at[live->peak_set[index]].value);
}

/* --- Diagnostics ------------------------------------------------------------------------------- */

bool onv_analysis_diagnostic_get(const onv_analysis *analysis, size_t index,
                                 onv_diagnostic *diagnostic, size_t size)
{
    if (index >= analysis->model.diags.count) return false;
    const onv_diag *diag = &analysis->model.diags.at[index];
    onv_diagnostic full = {
        .severity = diag->severity == ONV_WARNING ? "warning" : "note",
        .code = diag->code,
        .node = diag->node != NULL ? diag->node : "",
        .message = diag->message,
    };
    return onv_give(diagnostic, size, &full, sizeof full);
}
