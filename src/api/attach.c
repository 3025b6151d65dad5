/* A program is put into the file of its model. */
#include <string.h>

#include "api/sized.h"
#include "api/watch.h"
#include "base/fail.h"
#include "load/limits.h"
#include "load/load.h"
#include "program/attached.h"
#include "program/load.h"
#include "program/match.h"
#include "report/onnx_made.h"

/* The program once more, as text: an archive has much beside it. */
static onv_status pack(const char *path, const onv_limits *limits, onv_program_text *packed,
                       onv_error *err)
{
    onv_source source;
    onv_program_text text;
    onv_limits resolved = onv_limits_resolve(limits);
    ONV_TRY(onv_source_open(&source, path, ONV_SOURCE_BEST, resolved.file_bytes, err));
    onv_status status = onv_program_text_read(&source, resolved.arena_bytes, &text, err);
    if (status == ONV_OK) status = onv_program_pack(&text, packed, err);
    onv_program_text_cleanup(&text);
    onv_source_close(&source);
    return status;
}

static onv_status check(const onv_model *model, const char *path, const onv_limits *limits,
                        onv_error *err)
{
    const onv_program_file file = {.path = path};
    onv_model view;
    ONV_TRY(onv_program_load(&file, limits, ONV_PROGRAM_INFERENCE, &view, err));
    onv_dim *sizes = ONV_ARENA_ARRAY(&view.arena, onv_dim, (size_t)view.program->symbols.count);
    onv_status status =
        sizes != NULL ? onv_program_match(&view, model, sizes, err) : onv_fail_memory(err);
    onv_model_cleanup(&view);
    return status;
}

/* Messages about the program name it; those about the model are its reader's. */
static onv_status name(onv_status status, const char *path, const onv_error *why, onv_error *err)
{
    if (status == ONV_OK || status == ONV_ERR_MEMORY || status == ONV_ERR_CANCELLED) return status;
    return onv_fail(err, status, "program '%.200s': %s", path, why->message);
}

static onv_status attach(const char *model_path, const char *program_path, const onv_limits *limits,
                         onv_write_fn write, void *context, onv_error *err)
{
    onv_model model;
    onv_program_text packed = {0};
    onv_error why = {0};
    ONV_TRY(onv_load(model_path, limits, &model, err));
    onv_status status = name(check(&model, program_path, limits, &why), program_path, &why, err);
    if (status == ONV_OK)
        status = name(pack(program_path, limits, &packed, &why), program_path, &why, err);
    if (status == ONV_OK) status = onv_onnx_attach(&model, &packed, write, context, err);
    onv_program_text_cleanup(&packed);
    onv_model_cleanup(&model);
    return status;
}

onv_status onv_attach_program(const char *model, const char *program, const onv_limits *given,
                              onv_write_fn write, void *context, onv_error *error)
{
    onv_limits limits = onv_limits_default();
    onv_options options = onv_options_default();
    if (error != NULL) *error = (onv_error){0};
    if (given != NULL) onv_take(&limits, sizeof limits, given, given->struct_size);
    options.limits = &limits;
    onv_watch watch;
    onv_watch_start(&watch, &options);
    return onv_watch_leave(&watch, attach(model, program, &limits, write, context, error), error);
}
