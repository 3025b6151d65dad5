#include "load/load.h"

#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/quota.h"
#include "load/build.h"
#include "load/limits.h"
#include "load/source.h"

/* A failure to read is more helpful when it says what the file is instead. */
static onv_status not_onnx(onv_status status, onv_source *source, onv_error *err)
{
    const unsigned char *head;
    size_t bytes = source->bytes < ONV_SOURCE_HEAD ? (size_t)source->bytes : ONV_SOURCE_HEAD;
    if (status != ONV_ERR_FORMAT || err == NULL ||
        onv_source_view(source, 0, bytes, &head, NULL) != ONV_OK)
        return status;
    const char *guess = onv_source_guess(head, bytes);
    if (guess == NULL) return status;
    err->code = ONV_OK;
    return onv_fail(err, status, "not an ONNX model: this is %s", guess);
}

static onv_status build(const onv_scan *scan, const onv_limits *limits, uint64_t most_expanded,
                        onv_model *model, onv_error *err)
{
    if (scan->main_graph == 0)
        return onv_fail(err, ONV_ERR_FORMAT, "the file has no graph, so it is not an ONNX model");
    onv_builder builder;
    onv_builder_init(&builder, model, scan, limits, err);
    builder.most_expanded = most_expanded;
    onv_status status = onv_build_model(&builder);
    if (status == ONV_ERR_MEMORY) status = onv_limits_refused(&builder.unpacked, err);
    onv_builder_cleanup(&builder);
    return status;
}

/* The quota was begun before the size of the file was known: with the default, where no limit is given. */
static void widen(onv_model *model, size_t memory)
{
    onv_quota *quota = onv_quota_now();
    model->arena.limit_bytes = memory;
    if (quota != NULL && quota->limit == ONV_DEFAULT_ARENA_BYTES && quota->limit < memory)
        quota->limit = memory;
}

/* `given` is as the caller has it: what has no limit there gets one by the size of the file. */
static onv_status load_source(const onv_limits *given, onv_model *model, onv_error *err)
{
    onv_limits resolved = onv_limits_resolve(given), *limits = &resolved;
    onv_source *source = model->source;
    limits->arena_bytes = onv_limits_memory(given, source->bytes);
    widen(model, (size_t)limits->arena_bytes);
    model->most_output = onv_limits_output(given, source->bytes);
    onv_scan scan;
    onv_status status = onv_scan_run(&scan, ONV_SCAN_MODEL, source, limits, &model->strings, err);
    onv_source_forget(source);
    if (status == ONV_OK)
        status = build(&scan, limits, onv_limits_expanded(given, source->bytes), model, err);
    if (status == ONV_ERR_MEMORY) status = onv_limits_refused(&model->arena, err);
    if (status == ONV_ERR_FORMAT) status = not_onnx(status, source, err);
    onv_scan_cleanup(&scan);
    return status;
}

static void close_source(onv_source *source)
{
    onv_source_close(source);
    onv_heap_free(source);
}

/* A model without its file: load_source() is next. */
static onv_status begin(onv_model *model, const char *path, const onv_limits *given, onv_error *err)
{
    onv_limits limits = onv_limits_resolve(given);
    onv_model_init(model, (size_t)limits.arena_bytes);
    model->most_known = limits.known_elems;
    model->dims.max_tree = limits.expression;
    if (path != NULL &&
        (model->path = onv_arena_strndup(&model->arena, path, strlen(path))) == NULL) {
        model->path = "";
        return onv_fail_memory(err);
    }
    model->source = onv_heap_calloc(1, sizeof *model->source);
    if (model->source == NULL) return onv_fail_memory(err);
    model->source->fd = -1;
    model->source_close = close_source;
    return ONV_OK;
}

static onv_status end(onv_status status, onv_model *model)
{
    if (status != ONV_OK) onv_model_cleanup(model);
    return status;
}

onv_status onv_load_from(const char *path, onv_source_how how, const onv_limits *limits,
                         onv_model *model, onv_error *err)
{
    onv_status status = begin(model, path, limits, err);
    if (status == ONV_OK)
        status =
            onv_source_open(model->source, path, how, onv_limits_resolve(limits).file_bytes, err);
    if (status == ONV_OK) status = load_source(limits, model, err);
    return end(status, model);
}

onv_status onv_load(const char *path, const onv_limits *limits, onv_model *model, onv_error *err)
{
    return onv_load_from(path, ONV_SOURCE_BEST, limits, model, err);
}

onv_status onv_load_memory(const void *data, size_t bytes, const char *path,
                           const onv_limits *limits, onv_model *model, onv_error *err)
{
    onv_status status = begin(model, path, limits, err);
    if (status == ONV_OK && bytes == 0) status = onv_fail(err, ONV_ERR_FORMAT, "is empty");
    if (status == ONV_OK) onv_source_memory(model->source, data, bytes);
    if (status == ONV_OK) status = load_source(limits, model, err);
    return end(status, model);
}

onv_status onv_load_again(const onv_model *from, const onv_limits *limits, onv_model *model,
                          onv_error *err)
{
    onv_status status = begin(model, from->path, limits, err);
    if (status == ONV_OK) {
        close_source(model->source);
        model->source = from->source;
        model->source_close = NULL;
        status = load_source(limits, model, err);
    }
    return end(status, model);
}
