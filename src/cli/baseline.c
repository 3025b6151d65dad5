/* A report that --json wrote before. The library takes its figures; reading JSON is the program's. */
#include "cli/baseline.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* JSON takes some ten times as much memory as its text. */
enum { MOST_BYTES = 64 << 20, MOST_FIGURES = 32 };

struct onv_cli_baseline {
    json_t *report;
    const char *file;
    onv_baseline of_model; /* strings belong to `report` */
    onv_figure figures[MOST_FIGURES];
    onv_dim_binding *bindings;
};

typedef struct source {
    FILE *file;
    size_t left;
} source;

static size_t next_block(void *buffer, size_t room, void *context)
{
    source *from = context;
    size_t n = fread(buffer, 1, room < from->left ? room : from->left, from->file);
    from->left -= n;
    return n;
}

/* A FIFO that nobody writes is not waited for: it is empty. */
static FILE *open_baseline(const char *path)
{
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return NULL;
    int flags = fcntl(file, F_GETFL);
    FILE *stream =
        flags < 0 || fcntl(file, F_SETFL, flags & ~O_NONBLOCK) != 0 ? NULL : fdopen(file, "rb");
    if (stream == NULL) close(file);
    return stream;
}

onv_cli_baseline *onv_cli_open_baseline(const char *file)
{
    onv_cli_baseline *b = calloc(1, sizeof *b);
    source from = {.file = open_baseline(file), .left = MOST_BYTES};
    json_error_t why = {.text = "it cannot be read"};
    if (b != NULL && from.file != NULL) b->report = json_load_callback(next_block, &from, 0, &why);
    if (from.file != NULL) fclose(from.file);
    if (b != NULL && b->report != NULL) {
        b->file = file;
        return b;
    }
    onv_error error = {.code = ONV_ERR_FORMAT};
    if (from.file != NULL && from.left == 0)
        snprintf(error.message, sizeof error.message, "a baseline has at most %d bytes",
                 MOST_BYTES);
    else if (from.file != NULL)
        snprintf(error.message, sizeof error.message, "is not a report of --json: line %d: %s",
                 why.line, why.text);
    else
        snprintf(error.message, sizeof error.message, "the baseline cannot be opened");
    onv_cli_complain(file, &error);
    onv_cli_close_baseline(b);
    return NULL;
}

void onv_cli_close_baseline(onv_cli_baseline *b)
{
    if (b == NULL) return;
    json_decref(b->report);
    free(b->bindings);
    free(b);
}

/* --- One model --------------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
    const char *slash = path == NULL ? NULL : strrchr(path, '/');
    return slash != NULL ? slash + 1 : path != NULL ? path : "";
}

/* The model of that file name, or the only one. */
static json_t *find_model(const json_t *report, const char *path)
{
    const json_t *models = json_object_get(report, "models");
    size_t n = json_array_size(models);
    for (size_t i = 0; i < n; i++) {
        json_t *model = json_array_get(models, i);
        const char *name = json_string_value(json_object_get(model, "path"));
        if (strcmp(base_name(name), base_name(path)) == 0) return model;
    }
    return n == 1 ? json_array_get(models, 0) : NULL;
}

static void add(onv_cli_baseline *b, const char *what, const json_t *bytes)
{
    if (!json_is_integer(bytes) || json_integer_value(bytes) < 0) return;
    if (b->of_model.n_figures == MOST_FIGURES) return;
    b->figures[b->of_model.n_figures++] = (onv_figure){what, (uint64_t)json_integer_value(bytes)};
}

static void add_figures(onv_cli_baseline *b, json_t *model)
{
    const char *name;
    json_t *runtime;
    const json_t *weights = json_object_get(json_object_get(model, "parameters"), "bytes");
    const json_t *peak = json_object_get(json_object_get(model, "peak"), "bytes");
    add(b, "weights", weights);
    add(b, "peak", peak);
    size_t n = b->of_model.n_figures;
    if (n == 2)
        b->figures[b->of_model.n_figures++] =
            (onv_figure){"total", b->figures[0].bytes + b->figures[1].bytes};
    json_object_foreach(json_object_get(model, "runtimes"), name, runtime)
        add(b, name, json_object_get(runtime, "total_bytes"));
    add(b, "train", json_object_get(json_object_get(model, "training"), "reserved_peak_bytes"));
}

static bool add_bindings(onv_cli_baseline *b, json_t *bindings)
{
    const char *name;
    json_t *size;
    free(b->bindings);
    b->bindings = calloc(json_object_size(bindings) + 1, sizeof *b->bindings);
    if (b->bindings == NULL) return false;
    json_object_foreach(bindings, name, size) if (json_is_integer(size))
        b->bindings[b->of_model.n_bindings++] = (onv_dim_binding){name, json_integer_value(size)};
    return true;
}

const onv_baseline *onv_cli_baseline_of(onv_cli_baseline *b, const char *path)
{
    json_t *model = find_model(b->report, path);
    b->of_model = (onv_baseline){.name = b->file, .figures = b->figures};
    if (model != NULL && add_bindings(b, json_object_get(model, "bindings"))) {
        add_figures(b, model);
        b->of_model.bindings = b->bindings;
        return &b->of_model;
    }
    onv_error error = {.code = ONV_ERR_FORMAT};
    snprintf(error.message, sizeof error.message,
             "the baseline has no model '%.200s'; write one with --json=FILE", base_name(path));
    onv_cli_complain(b->file, &error);
    return NULL;
}
