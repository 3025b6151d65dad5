/* A report that --json wrote before, or a snapshot of PyTorch. The library takes its figures; reading JSON is the program's. */
#include "cli/baseline.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/read_text.h"

/* JSON takes some ten times as much memory as its text. */
enum { MOST_BYTES = 64 << 20 };

struct onv_cli_baseline {
    json_t *report; /* NULL: it is a snapshot of PyTorch */
    onv_snapshot_info snapshot;
    const char *file;
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

/* Of protocol 2 or later, as PyTorch writes it. */
static bool is_pickle(FILE *file)
{
    int first = getc(file);
    if (first != EOF) ungetc(first, file);
    return first == 0x80;
}

static onv_cli_baseline *open_snapshot(onv_cli_baseline *b, const char *file)
{
    onv_error error;
    b->file = file;
    if (onv_snapshot_get(file, NULL, &b->snapshot, sizeof b->snapshot, &error) == ONV_OK) return b;
    onv_cli_complain("--baseline", &error);
    onv_cli_close_baseline(b);
    return NULL;
}

onv_cli_baseline *onv_cli_open_baseline(const char *file)
{
    onv_cli_baseline *b = calloc(1, sizeof *b);
    source from = {.file = open_baseline(file), .left = MOST_BYTES};
    json_error_t why = {.text = "it cannot be read"};
    if (b != NULL && from.file != NULL && is_pickle(from.file)) {
        fclose(from.file);
        return open_snapshot(b, file);
    }
    if (b != NULL && from.file != NULL) b->report = json_load_callback(next_block, &from, 0, &why);
    if (from.file != NULL) fclose(from.file);
    if (b != NULL && b->report != NULL) {
        b->file = file;
        return b;
    }
    onv_error error;
    if (from.file != NULL && from.left == 0)
        onv_cli_fail(&error, ONV_ERR_FORMAT, "a baseline has at most %d bytes", MOST_BYTES);
    else if (from.file != NULL)
        onv_cli_fail(&error, ONV_ERR_FORMAT, "is not a report of --json: line %d: %s", why.line,
                     why.text);
    else
        onv_cli_fail(&error, ONV_ERR_FORMAT, "the baseline cannot be opened");
    onv_cli_complain(file, &error);
    onv_cli_close_baseline(b);
    return NULL;
}

void onv_cli_close_baseline(onv_cli_baseline *b)
{
    if (b == NULL) return;
    json_decref(b->report);
    free(b);
}

/* --- One model --------------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
    const char *slash = path == NULL ? NULL : strrchr(path, '/');
    return slash != NULL ? slash + 1 : path != NULL ? path : "";
}

/* The model with that path, else the only one with its file name, else the only one of the report. `alike`: how many have
 * that file name. */
static json_t *find_model(const json_t *report, const char *path, size_t *alike)
{
    const json_t *models = json_object_get(report, "models");
    size_t n = json_array_size(models);
    json_t *found = NULL;
    *alike = 0;
    for (size_t i = 0; i < n; i++) {
        json_t *model = json_array_get(models, i);
        const char *name = json_string_value(json_object_get(model, "path"));
        if (name != NULL && path != NULL && strcmp(name, path) == 0) return model;
        if (strcmp(base_name(name), base_name(path)) != 0) continue;
        found = model;
        ++*alike;
    }
    if (*alike > 0) return *alike == 1 ? found : NULL;
    return n == 1 ? json_array_get(models, 0) : NULL;
}

static void add(onv_cli_figures *f, const char *what, const json_t *bytes)
{
    if (!json_is_integer(bytes) || json_integer_value(bytes) < 0) return;
    if (f->baseline.n_figures == ONV_CLI_MOST_FIGURES) return;
    f->at[f->baseline.n_figures++] = (onv_figure){what, (uint64_t)json_integer_value(bytes)};
}

static void add_figures(onv_cli_figures *f, json_t *model)
{
    const char *name;
    json_t *runtime;
    const json_t *weights = json_object_get(json_object_get(model, "parameters"), "bytes");
    const json_t *peak = json_object_get(json_object_get(model, "peak"), "bytes");
    add(f, "weights", weights);
    add(f, "peak", peak);
    if (f->baseline.n_figures == 2)
        f->at[f->baseline.n_figures++] = (onv_figure){"total", f->at[0].bytes + f->at[1].bytes};
    json_object_foreach(json_object_get(model, "runtimes"), name, runtime)
        add(f, name, json_object_get(runtime, "total_bytes"));
    add(f, "train", json_object_get(json_object_get(model, "training"), "reserved_peak_bytes"));
}

static bool add_bindings(onv_cli_figures *f, json_t *bindings)
{
    const char *name;
    json_t *size;
    f->bindings = calloc(json_object_size(bindings) + 1, sizeof *f->bindings);
    if (f->bindings == NULL) return false;
    json_object_foreach(bindings, name, size)
        if (json_is_integer(size))
            f->bindings[f->baseline.n_bindings++] =
                (onv_dim_binding){name, json_integer_value(size)};
    f->baseline.bindings = f->bindings;
    return true;
}

bool onv_cli_baseline_of(const onv_cli_baseline *b, const char *path, bool trains,
                         onv_cli_figures *figures, onv_error *error)
{
    *figures = (onv_cli_figures){.baseline = {.name = b->file, .figures = figures->at}};
    if (b->report == NULL) {
        figures->at[0] = (onv_figure){trains ? "train" : "torch", b->snapshot.reserved_peak_bytes};
        figures->baseline.n_figures = 1;
        return true;
    }
    size_t alike;
    json_t *model = find_model(b->report, path, &alike);
    if (model != NULL && add_bindings(figures, json_object_get(model, "bindings"))) {
        add_figures(figures, model);
        return true;
    }
    if (alike > 1)
        return onv_cli_fail(error, ONV_ERR_FORMAT,
                            "expected one model '%.200s' in the baseline, found %zu: write it with "
                            "--json=FILE of the same paths",
                            base_name(path), alike);
    return onv_cli_fail(error, ONV_ERR_FORMAT,
                        "the baseline has no model '%.200s'; write one with --json=FILE",
                        base_name(path));
}
