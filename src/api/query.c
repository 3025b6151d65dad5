/* What can be asked of an analysis: of the model itself (its external files, tensors, the peak, diagnostics), the answer,
 * the table of modules. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "api/analysis.h"
#include "api/sized.h"
#include "base/fail.h"
#include "report/modules.h"
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

/* --- The answer ------------------------------------------------------------------------------- */

bool onv_analysis_answer_get(const onv_analysis *analysis, onv_answer_info *info, size_t size)
{
    const onv_answer *a = &analysis->answer;
    const onv_replays *replays = &analysis->replays;
    onv_answer_info full = {.gpu = a->gpu,
                            .gpu_assumed = a->is_assumed,
                            .has_verdict = a->verdict != ONV_VERDICT_NONE,
                            .fits = a->verdict == ONV_VERDICT_FITS,
                            .fits_some = a->fits_some,
                            .fits_by_release = a->verdict == ONV_VERDICT_FITS_BY_RELEASE,
                            .runtimes = a->n_rows,
                            .devices = a->n_devices,
                            .usual_devices = a->n_usual,
                            .warnings = a->n_warnings,
                            .is_contradicted = analysis->measured.is_outside,
                            .out_of_memory = replays->kind != NULL && replays->out_of_memory};
    full.is_contradicted |= replays->kind != NULL && !replays->agrees;
    for (size_t i = 0; i < a->n_rows; i++) full.out_of_memory |= a->rows[i].out_of_memory;
    if (a->n_rows > 0) {
        const onv_answer_row *row = &a->rows[a->largest];
        full.runtime = row->runtime;
        full.low_bytes = row->total.low;
        full.high_bytes = row->total.high;
        full.set_by = row->set_by;
    }
    return onv_give(info, size, &full, sizeof full);
}

bool onv_analysis_answer_runtime_get(const onv_analysis *analysis, size_t index,
                                     onv_answer_runtime_info *info, size_t size)
{
    if (index >= analysis->answer.n_rows) return false;
    const onv_answer_row *row = &analysis->answer.rows[index];
    onv_answer_runtime_info full = {.name = row->runtime,
                                    .low_bytes = row->total.low,
                                    .high_bytes = row->total.high,
                                    .weight_bytes = row->weight_bytes,
                                    .live_low = row->live.low,
                                    .live_high = row->live.high,
                                    .reserved_low = row->reserved.low,
                                    .reserved_high = row->reserved.high,
                                    .library_bytes = row->library_bytes,
                                    .context_low = row->context.low,
                                    .context_high = row->context.high,
                                    .set_by = row->set_by,
                                    .out_of_memory = row->out_of_memory};
    return onv_give(info, size, &full, sizeof full);
}

static onv_fit_info fit_of(const onv_fit *fit)
{
    return (onv_fit_info){.budget = fit->budget_bytes,
                          .usable = fit->usable_bytes,
                          .fits = fit->all.fits,
                          .fits_by_release = fit->all.fits_by_release,
                          .max_batch = fit->all.max_batch,
                          .max_batch_by_release = fit->all.max_batch_by_release,
                          .has_max_batch = fit->has_max_batch,
                          .max_dim = fit->max_dim,
                          .margin_percent = fit->margin_percent};
}

bool onv_analysis_answer_device_get(const onv_analysis *analysis, size_t index,
                                    onv_answer_device_info *info, size_t size)
{
    const onv_answer *a = &analysis->answer;
    if (index >= a->n_devices + a->n_usual) return false;
    const onv_answer_device *device = &a->devices[index];
    onv_answer_device_info full = {.name = device->name,
                                   .gpu = device->gpu,
                                   .gpu_assumed = device->is_assumed,
                                   .runtime = a->rows[device->largest].runtime,
                                   .low_bytes = device->totals[device->largest].low,
                                   .high_bytes = device->totals[device->largest].high,
                                   .fit = fit_of(&device->fit)};
    return onv_give(info, size, &full, sizeof full);
}

bool onv_analysis_growth_get(const onv_analysis *analysis, size_t index, onv_growth_info *info,
                             size_t size)
{
    if (index >= analysis->gate.n_rows) return false;
    const onv_gate_row *row = &analysis->gate.rows[index];
    onv_growth_info full = {row->what, row->before_bytes, row->after_bytes, row->exceeds};
    return onv_give(info, size, &full, sizeof full);
}

/* --- The table of modules, which is made for who asks ----------------------------------------- */

struct onv_module_table {
    onv_arena arena;
    onv_modules modules;
};

static bool make(onv_module_table *made, const onv_analysis *analysis, unsigned depth)
{
    const onv_report_options options = onv_report_options_default();
    onv_page page = onv_page_make(NULL, &made->arena, &options);
    onv_arena_init(&made->arena, SIZE_MAX);
    return onv_modules_init(&made->modules, analysis, &page, depth) && !made->arena.failed;
}

onv_status onv_module_table_new(const onv_analysis *analysis, unsigned depth,
                                onv_module_table **table, onv_error *error)
{
    if (error != NULL) *error = (onv_error){0};
    onv_watch watch = analysis->making->watch;
    onv_watch_resume(&watch);
    *table = onv_heap_calloc(1, sizeof **table);
    bool is_made = *table != NULL && make(*table, analysis, depth);
    onv_status status = is_made ? ONV_OK : onv_fail_memory(error);
    status = onv_watch_leave(&watch, status, error);
    if (status == ONV_OK) return ONV_OK;
    onv_module_table_destroy(*table);
    *table = NULL;
    return status;
}

void onv_module_table_destroy(onv_module_table *table)
{
    if (table == NULL) return;
    onv_modules_cleanup(&table->modules);
    onv_arena_cleanup(&table->arena);
    onv_heap_free(table);
}

bool onv_module_table_get(const onv_module_table *table, size_t index, onv_module_info *info,
                          size_t size)
{
    if (index >= table->modules.list.count) return false;
    const onv_module *m = &table->modules.list.at[index];
    onv_module_info full = {.name = m->name,
                            .parent = index > 0 ? m->parent : ONV_NO_INDEX,
                            .depth = m->depth,
                            .parameters = m->params,
                            .macs = m->macs_known ? m->macs : ONV_SIZE_UNKNOWN,
                            .activation_bytes = m->activation.fixed,
                            .own_steps = m->own_steps};
    return onv_give(info, size, &full, sizeof full);
}
