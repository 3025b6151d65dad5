#include "load/load.h"

#include <string.h>

#include "base/heap.h"
#include "load/build.h"
#include "load/limits.h"
#include "load/source.h"

/* A failure to read is more helpful when it says what the file is instead. */
static onv_status not_onnx(onv_status status, const void *data, uint64_t bytes, onv_error *err)
{
    const char *guess = status == ONV_ERR_FORMAT ? onv_source_guess(data, bytes) : NULL;
    if (guess == NULL || err == NULL) return status;
    err->code = ONV_OK;
    return onv_fail(err, status, "not an ONNX model: this is %s", guess);
}

static onv_status build(const onv_scan *scan, const onv_limits *limits, uint64_t most_expanded,
                        onv_model *model, onv_error *err)
{
    if (scan->main_graph == 0)
        return onv_fail(err, ONV_ERR_FORMAT, "the file holds no graph, so it is no ONNX model");
    onv_builder builder;
    onv_builder_init(&builder, model, scan, limits, err);
    builder.most_expanded = most_expanded;
    onv_status status = onv_build_model(&builder);
    if (status == ONV_ERR_MEMORY) status = onv_limits_refused(&builder.unpacked, err);
    onv_builder_cleanup(&builder);
    return status;
}

/* `given` is as the caller has it: what has no limit there gets one by the size of the file. */
static onv_status load_bytes(const void *data, uint64_t bytes, const onv_limits *given,
                             onv_model *model, onv_error *err)
{
    const onv_limits resolved = onv_limits_resolve(given), *limits = &resolved;
    model->most_output = onv_limits_output(given, bytes);
    model->file = data;
    model->file_bytes = bytes;
    onv_scan scan;
    onv_status status =
        onv_scan_run(&scan, ONV_SCAN_MODEL, data, bytes, limits, &model->strings, err);
    if (status == ONV_OK)
        status = build(&scan, limits, onv_limits_expanded(given, bytes), model, err);
    if (status == ONV_ERR_MEMORY) status = onv_limits_refused(&model->arena, err);
    if (status == ONV_ERR_FORMAT) status = not_onnx(status, data, bytes, err);
    onv_scan_cleanup(&scan);
    return status;
}

static void close_source(void *source)
{
    onv_source_close(source);
    onv_heap_free(source);
}

static onv_status load_file(const char *path, const onv_limits *given, onv_model *model,
                            onv_error *err)
{
    onv_source *source = onv_heap_calloc(1, sizeof *source);
    if (source == NULL) return onv_fail_memory(err);
    model->source = source;
    model->source_close = close_source;
    ONV_TRY(onv_source_open(source, path, onv_limits_resolve(given).file_bytes, err));
    return load_bytes(source->data, source->bytes, given, model, err);
}

static void init_model(onv_model *model, const onv_limits *limits)
{
    onv_model_init(model, limits->arena_bytes);
    model->most_known = limits->known_elems;
    model->dims.max_tree = limits->expression;
}

static onv_status set_path(onv_model *model, const char *path, onv_error *err)
{
    if (path == NULL) return ONV_OK;
    model->path = onv_arena_strndup(&model->arena, path, strlen(path));
    return model->path != NULL ? ONV_OK : onv_fail_memory(err);
}

onv_status onv_load(const char *path, const onv_limits *limits, onv_model *model, onv_error *err)
{
    onv_limits resolved = onv_limits_resolve(limits);
    init_model(model, &resolved);
    onv_status status = set_path(model, path, err);
    if (status != ONV_OK) model->path = "";
    if (status == ONV_OK) status = load_file(path, limits, model, err);
    if (status != ONV_OK) onv_model_cleanup(model);
    return status;
}

onv_status onv_load_memory(const void *data, size_t bytes, const char *path,
                           const onv_limits *limits, onv_model *model, onv_error *err)
{
    onv_limits resolved = onv_limits_resolve(limits);
    init_model(model, &resolved);
    onv_status status = set_path(model, path, err);
    if (status == ONV_OK && bytes == 0) status = onv_fail(err, ONV_ERR_FORMAT, "is empty");
    if (status == ONV_OK) status = load_bytes(data, bytes, limits, model, err);
    if (status != ONV_OK) onv_model_cleanup(model);
    return status;
}
