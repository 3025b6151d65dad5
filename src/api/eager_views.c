#include "api/eager_views.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "infer/infer.h"
#include "ir/check.h"
#include "load/limits.h"
#include "program/attached.h"
#include "program/match.h"
#include "program/view.h"

void onv_eager_views_cleanup(onv_eager_views *views)
{
    for (uint32_t i = 0; i < views->n; i++) onv_model_cleanup(&views->models[i]);
    onv_heap_free(views->path);
    *views = (onv_eager_views){0};
}

/* --- Reading ------------------------------------------------------------------------------------- */

/* An archive is of both modes; of a recording each mode has its own program, or the one that is there. */
static onv_status load(const onv_eager_request *request, const onv_program_file *file,
                       onv_eager_views *views, onv_error *err)
{
    const onv_limits *limits = request->options->limits;
    for (int mode = 0; mode < 2; mode++) {
        if (!request->modes[mode]) continue;
        bool is_same = views->n > 0 && !onv_program_is_recorded(views->models[0].program);
        if (!is_same) {
            ONV_TRY(onv_program_load(file, limits, (onv_program_mode)mode, &views->models[views->n],
                                     err));
            views->n++;
        }
        views->has[mode] = true;
        views->place[mode] = (uint8_t)(views->n - 1);
    }
    return ONV_OK;
}

static onv_status copy(const onv_eager_views *from, onv_eager_views *to, onv_error *err)
{
    for (uint32_t i = 0; i < from->n; i++) {
        ONV_TRY(onv_model_copy(&from->models[i], &to->models[i], err));
        to->n++;
    }
    memcpy(to->has, from->has, sizeof to->has);
    memcpy(to->place, from->place, sizeof to->place);
    if (from->path == NULL) return ONV_OK;
    to->path = onv_heap_copy(from->path, strlen(from->path) + 1);
    return to->path != NULL ? ONV_OK : onv_fail_memory(err);
}

/* --- Sizes --------------------------------------------------------------------------------------- */

onv_status onv_cast_floats(const onv_options *options, onv_model *model, onv_error *err)
{
    static const onv_dtype casts[] = {ONV_UNDEFINED, ONV_FLOAT, ONV_FLOAT16, ONV_BFLOAT16};
    if ((unsigned)options->precision >= sizeof casts / sizeof casts[0] || options->precision == 0)
        return ONV_OK;
    ONV_TRY(onv_infer_cast_floats(model, casts[options->precision], err));
    return model->program != NULL ? onv_program_retype(model, err) : ONV_OK;
}

/* The sizes of the model's inputs; of a program that is analysed itself, those of the options. */
static onv_status find_sizes(const onv_eager_request *request, onv_model *view,
                             const onv_dim **sizes, onv_error *err)
{
    if (request->model->program != NULL) {
        onv_infer_info info;
        ONV_TRY(onv_infer_bind(view, request->options, &info, sizes, err));
        onv_infer_info_cleanup(&info);
        return ONV_OK;
    }
    onv_dim *made = ONV_ARENA_ARRAY(&view->arena, onv_dim, (size_t)view->program->symbols.count);
    if (made == NULL) return onv_fail_memory(err);
    *sizes = made;
    return onv_program_match(view, request->model, made, err);
}

static onv_status bind(const onv_eager_request *request, onv_model *view, onv_live *live,
                       onv_error *err)
{
    const onv_dim *sizes;
    ONV_TRY(find_sizes(request, view, &sizes, err));
    ONV_TRY(onv_program_bind(view, sizes, err));
    ONV_TRY(onv_graph_check(view, err));
    ONV_TRY(onv_cast_floats(request->options, view, err));
    ONV_TRY(onv_live_compute(view, NULL, live, err));
    if (live->unknown == 0) return ONV_OK;
    for (size_t i = 0; i < view->program->symbols.count; i++)
        if (view->program->symbols.at[i].is_made)
            return onv_fail(err, ONV_ERR_USAGE,
                            "the size %.60s is known when it runs, and has no bound",
                            view->program->symbols.at[i].name);
    return onv_fail(err, ONV_ERR_USAGE, "%llu tensors have no size",
                    (unsigned long long)live->unknown);
}

static onv_status bind_all(const onv_eager_request *request, onv_eager_views *views, onv_error *err)
{
    for (uint32_t i = 0; i < views->n; i++)
        ONV_TRY(bind(request, &views->models[i], &views->lives[i], err));
    return ONV_OK;
}

/* --- Where it is --------------------------------------------------------------------------------- */

/* A path of the model without its ending and with another one, on the heap, if a program is there; NULL with ONV_OK: none. */
static onv_status look(const char *path, const char *ending, const onv_limits *limits, char **found,
                       onv_error *err)
{
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    size_t stem =
        dot != NULL && (slash == NULL || dot > slash) ? (size_t)(dot - path) : strlen(path);
    bool is_program;
    *found = onv_heap_alloc(stem + strlen(ending) + 1);
    if (*found == NULL) return onv_fail_memory(err);
    memcpy(*found, path, stem);
    memcpy(*found + stem, ending, strlen(ending) + 1);
    const onv_program_file file = {.path = *found};
    onv_status status = onv_program_is(&file, limits, &is_program, err);
    if (status == ONV_OK && is_program) return ONV_OK;
    onv_heap_free(*found);
    *found = NULL;
    return status;
}

static onv_status find_beside(const onv_eager_request *request, char **found, onv_error *err)
{
    static const char *const endings[] = {".program.json", ".program.json.gz", ".pt2"};
    *found = NULL;
    if (request->file->data != NULL || request->options->no_external_data) return ONV_OK;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0] && *found == NULL; i++)
        ONV_TRY(look(request->file->path, endings[i], request->options->limits, found, err));
    return ONV_OK;
}

/* With the name of the program, and how to do without. */
static onv_status fail(const char *path, onv_status status, const onv_error *why, onv_error *err)
{
    if (status == ONV_ERR_MEMORY || status == ONV_ERR_CANCELLED) return status;
    return onv_fail(err, status, "program '%.200s': %s (--program none leaves it out)", path,
                    why->message);
}

/* --- All together -------------------------------------------------------------------------------- */

/* One that was found is left where it cannot be used; what was asked for must be. `inside`: the bytes, of one inside the model. */
static onv_status take(const onv_eager_request *request, bool is_asked,
                       const onv_program_text *inside, onv_eager_views *views,
                       onv_eager_views *kept, onv_error *err)
{
    const onv_program_file file = {views->path, inside != NULL ? inside->at : NULL,
                                   inside != NULL ? inside->bytes : 0};
    onv_error why = {0};
    onv_status status = load(request, &file, views, &why);
    if (status == ONV_OK && kept != NULL) status = copy(views, kept, &why);
    if (status == ONV_OK) status = bind_all(request, views, &why);
    bool is_left = status == ONV_ERR_USAGE || status == ONV_ERR_FORMAT || status == ONV_ERR_IO;
    if (status == ONV_OK || is_asked || !is_left)
        return status == ONV_OK ? ONV_OK : fail(views->path, status, &why, err);
    onv_model_diag(request->model, ONV_WARNING, "program-ignored", NULL,
                   "the program '%.200s' is not used: %.250s", views->path, why.message);
    if (kept != NULL) onv_eager_views_cleanup(kept);
    char *path = views->path; /* nobody may write there */
    views->path = NULL;
    onv_eager_views_cleanup(views);
    views->path = path;
    return ONV_OK;
}

static onv_status take_inside(const onv_eager_request *request, onv_eager_views *views,
                              onv_eager_views *kept, onv_error *err)
{
    static const char name[] = "inside the model";
    uint64_t most = onv_limits_resolve(request->options->limits).arena_bytes;
    onv_program_text inside;
    onv_status status = onv_program_attached(request->model, most, &inside, err);
    if (status == ONV_OK && inside.at != NULL) {
        views->path = onv_heap_copy(name, sizeof name);
        status = views->path != NULL ? take(request, false, &inside, views, kept, err)
                                     : onv_fail_memory(err);
    }
    onv_program_text_cleanup(&inside);
    return status;
}

static void note(const onv_eager_request *request, const onv_eager_views *views)
{
    if (views->n == 0 || request->model->program != NULL) return;
    const onv_program *program = views->models[0].program;
    onv_model_diag(request->model, ONV_NOTE, "program", NULL,
                   "eager PyTorch runs the program '%.200s', %s (PyTorch %.40s)", views->path,
                   onv_program_source_text(program), program->torch_version);
}

static onv_status open_views(const onv_eager_request *request, onv_eager_views *views,
                             onv_eager_views *kept, onv_error *err)
{
    const char *named = request->options->program;
    if (request->loaded != NULL) {
        onv_error why = {0};
        ONV_TRY(copy(request->loaded, views, err));
        onv_status status = bind_all(request, views, &why);
        return status == ONV_OK ? ONV_OK : fail(views->path, status, &why, err);
    }
    if (named != NULL && strcmp(named, "none") == 0) return ONV_OK;
    if (named != NULL) {
        views->path = onv_heap_copy(named, strlen(named) + 1);
        if (views->path == NULL) return onv_fail_memory(err);
        return take(request, true, NULL, views, kept, err);
    }
    ONV_TRY(take_inside(request, views, kept, err));
    if (views->n > 0) return ONV_OK;
    onv_eager_views_cleanup(views);
    ONV_TRY(find_beside(request, &views->path, err));
    return views->path != NULL ? take(request, false, NULL, views, kept, err) : ONV_OK;
}

/* A recording that is analysed itself: its other program. */
static onv_status open_other(const onv_eager_request *request, onv_eager_views *views,
                             onv_error *err)
{
    onv_program_mode own =
        request->model->program->is_training ? ONV_PROGRAM_TRAINING : ONV_PROGRAM_INFERENCE;
    onv_eager_request other = *request;
    other.modes[own] = false;
    if (!onv_program_is_recorded(request->model->program) || !other.modes[own ^ 1]) return ONV_OK;
    ONV_TRY(load(&other, request->file, views, err));
    return bind_all(&other, views, err);
}

onv_status onv_eager_views_open(const onv_eager_request *request, onv_eager_views *views,
                                onv_eager_views *kept, onv_error *err)
{
    onv_status status = request->model->program != NULL ? open_other(request, views, err)
                                                        : open_views(request, views, kept, err);
    if (status != ONV_OK) {
        if (kept != NULL) onv_eager_views_cleanup(kept);
        onv_eager_views_cleanup(views);
        return status;
    }
    note(request, views);
    return ONV_OK;
}
