#include "program/load.h"

#include <string.h>

#include "base/fail.h"
#include "load/limits.h"
#include "program/archive.h"
#include "program/view.h"

static onv_status open_source(const onv_program_file *file, onv_source_how how,
                              const onv_limits *limits, onv_source *source, onv_error *err)
{
    if (file->data == NULL)
        return onv_source_open(source, file->path, how, onv_limits_resolve(limits).file_bytes, err);
    if (file->bytes == 0) return onv_fail(err, ONV_ERR_FORMAT, "is empty");
    onv_source_memory(source, file->data, file->bytes);
    return ONV_OK;
}

onv_status onv_program_is(const onv_program_file *file, const onv_limits *limits, bool *is_program,
                          onv_error *err)
{
    onv_source source = {.fd = -1};
    const unsigned char *head;
    *is_program = false;
    if (open_source(file, ONV_SOURCE_WINDOWS, limits, &source, NULL) != ONV_OK) return ONV_OK;
    size_t bytes = source.bytes < ONV_SOURCE_HEAD ? (size_t)source.bytes : ONV_SOURCE_HEAD;
    onv_status status = onv_source_view(&source, 0, bytes, &head, err);
    if (status == ONV_OK) *is_program = onv_program_begins(head, bytes);
    onv_source_close(&source);
    return status;
}

static onv_status load(const onv_program_file *file, const onv_limits *limits,
                       onv_program_mode mode, onv_model *model, onv_error *err)
{
    const char *path = file->path != NULL ? file->path : "";
    const onv_program *program;
    onv_source source;
    model->path = onv_arena_strndup(&model->arena, path, strlen(path));
    if (model->path == NULL) return onv_fail_memory(err);
    ONV_TRY(open_source(file, ONV_SOURCE_BEST, limits, &source, err));
    model->most_output = onv_limits_output(limits, source.bytes);
    onv_status status = onv_program_read(&source, model->path, limits, mode, model, &program, err);
    onv_source_close(&source);
    ONV_TRY(status);
    return onv_program_view(program, model, err);
}

onv_status onv_program_load(const onv_program_file *file, const onv_limits *limits,
                            onv_program_mode mode, onv_model *model, onv_error *err)
{
    onv_limits resolved = onv_limits_resolve(limits);
    onv_model_init(model, (size_t)resolved.arena_bytes);
    model->dims.max_tree = resolved.expression;
    onv_status status = load(file, limits, mode, model, err);
    if (status == ONV_ERR_MEMORY) status = onv_limits_refused(&model->arena, err);
    if (status != ONV_OK) onv_model_cleanup(model);
    return status;
}
