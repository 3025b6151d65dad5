/* What a Triton Inference Server takes on one GPU for a repository of models: a session of ONNX Runtime for each instance
 * of each version, all in one process. */
#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/deploy.h"
#include "cli/guard.h"
#include "cli/message.h"
#include "cli/read_text.h"
#include "cli/triton.h"
#include "cli/work.h"

enum { MOST_MODELS = 256, MOST_ORT = 64 };

typedef struct served {
    char path[ONV_TRITON_PATH];
    const char *name; /* "model/version", in path */
    onv_triton config;
    onv_analysis *analysis;
    int64_t batch; /* 0: the model has its own */
} served;

typedef struct repository {
    const onv_cli *cli;
    served *models; /* by name, then from the newest version on */
    size_t n_models;
    size_t n_others; /* models of other backends, or on the CPU alone */
    bool uses_tensorrt;
} repository;

#define fail(error, ...) onv_cli_fail((error), ONV_ERR_FORMAT, __VA_ARGS__)

/* --- Folders ----------------------------------------------------------------------------------- */

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Versions are folders whose names are numbers above 0. */
static int64_t version_of(const char *name)
{
    char *end;
    long long version = strtoll(name, &end, 10);
    return *end == '\0' && name[0] >= '1' && name[0] <= '9' && version < INT32_MAX ? version : -1;
}

/* Whether the version at `index` of all, with `newer` behind it, is loaded. */
static bool is_loaded(const onv_triton *config, int64_t version, int newer)
{
    bool is_listed = false;
    for (size_t i = 0; i < config->n_versions; i++) is_listed |= config->versions[i] == version;
    return config->newest < 0 || (config->newest == 0 ? is_listed : newer < config->newest);
}

static bool add_version(repository *r, const char *folder, const char *name, int64_t version,
                        const onv_triton *config, onv_error *error)
{
    if (r->n_models == MOST_MODELS) return fail(error, "it has more than 256 models");
    served *to = &r->models[r->n_models++];
    size_t at = strlen(folder) + 1;
    int length = snprintf(to->path, sizeof to->path, "%s/%s/%" PRId64 "/%s", folder, name, version,
                          config->file);
    to->name = to->path + at;
    to->config = *config;
    return (length > 0 && (size_t)length < sizeof to->path) || fail(error, "a name is too long");
}

static int newest_first(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x < *y) - (*x > *y);
}

/* From the newest one on. */
static bool add_versions(repository *r, const char *folder, const char *name,
                         const onv_triton *config, onv_error *error)
{
    char path[ONV_TRITON_PATH];
    struct dirent **entries = NULL;
    int n_versions = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int n = scandir(path, &entries, visible, NULL);
    int64_t *versions = calloc(n > 0 ? (size_t)n : 1, sizeof *versions);
    bool good = versions != NULL;
    if (!good) fail(error, "out of memory");
    for (int i = 0; i < n; i++) {
        int64_t version = version_of(entries[i]->d_name);
        if (good && version > 0) versions[n_versions++] = version;
        free(entries[i]);
    }
    free(entries);
    if (good) qsort(versions, (size_t)n_versions, sizeof *versions, newest_first);
    for (int newer = 0; newer < n_versions && good; newer++)
        if (is_loaded(config, versions[newer], newer))
            good = add_version(r, folder, name, versions[newer], config, error);
    free(versions);
    return good;
}

static bool add_model(repository *r, const char *folder, const char *name, onv_error *error)
{
    char path[ONV_TRITON_PATH];
    onv_triton config;
    onv_error missing;
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s/%s/config.pbtxt", folder, name);
    char *text = onv_cli_read_text(path, &bytes, &missing); /* without one all has its defaults */
    bool good =
        onv_triton_parse(text != NULL ? text : "", text != NULL ? bytes : 0, &config, error);
    free(text);
    if (!good) {
        const onv_error why = *error;
        return fail(error, "%.100s/config.pbtxt: %.140s", name, why.message);
    }
    r->uses_tensorrt |= config.uses_tensorrt;
    if (!config.is_onnx || config.instances == 0) {
        r->n_others++;
        return true;
    }
    return add_versions(r, folder, name, &config, error);
}

static bool read_repository(repository *r, const char *folder, onv_error *error)
{
    struct dirent **entries = NULL;
    bool good = true;
    r->models = calloc(MOST_MODELS, sizeof *r->models);
    if (r->models == NULL) return fail(error, "out of memory");
    int n = scandir(folder, &entries, visible, alphasort);
    if (n < 0)
        return fail(error, "it cannot be read: --triton takes a folder with one for each model");
    for (int i = 0; i < n && good; i++) good = add_model(r, folder, entries[i]->d_name, error);
    for (int i = 0; i < n; i++) free(entries[i]);
    free(entries);
    if (good && r->n_models == 0)
        return fail(error, "it has no MODEL/VERSION/model.onnx of ONNX Runtime on a GPU");
    return good;
}

/* --- Sessions ---------------------------------------------------------------------------------- */

static bool analyse(const repository *r, const onv_options *given, served *m, onv_error *error)
{
    const char *ort[MOST_ORT];
    onv_options options = *given;
    onv_answer_runtime_info session;
    size_t n = 0;
    for (size_t i = 0; i < m->config.n_ort; i++) ort[n++] = m->config.ort[i];
    for (size_t i = 0; i < options.n_ort && n < MOST_ORT; i++) ort[n++] = options.ort[i];
    options.runtimes = "ort";
    options.ort = ort;
    options.n_ort = n;
    onv_cli_use_budget(r->cli, &options);
    if (options.batch == 0) options.batch = m->config.max_batch;
    m->batch = options.batch;
    onv_cli_guard(m->path);
    if (onv_analysis_new(m->path, &options, &m->analysis, error) != ONV_OK) return false;
    if (onv_analysis_answer_runtime(m->analysis, 0, &session)) return true;
    return fail(error,
                "it has dimensions without a size: its own report names them; bind each with "
                "--dim");
}

/* Whether its own limit of memory is enough. */
static bool put_model(onv_cli_deployment *d, const served *m)
{
    onv_answer_runtime_info s;
    json_t *row = onv_cli_put_row(d, "models");
    onv_analysis_answer_runtime(m->analysis, 0, &s);
    fputs("  ", d->text);
    onv_cli_put_name(d, row, "name", m->name);
    fprintf(d->text, ": %" PRId64 " instance%s", m->config.instances,
            m->config.instances > 1 ? "s" : "");
    if (m->batch > 0) fprintf(d->text, ", batch %" PRId64, m->batch);
    fputs("\n", d->text);
    onv_cli_put_number(d, row, "instances", (uint64_t)m->config.instances);
    onv_cli_put_number(d, row, "batch", (uint64_t)m->batch);
    onv_cli_put_size(d, row, "  weights", "weight_bytes", s.weight_bytes);
    onv_cli_put_range(d, row, "  arena of each", "reserved_bytes", s.reserved_low, s.reserved_high);
    onv_cli_put(d, row, "out_of_memory", json_boolean(s.out_of_memory));
    if (s.out_of_memory) fputs("    gpu_mem_limit is not enough\n", d->text);
    return !s.out_of_memory;
}

/* Of one process, and what is not in it. */
static void put_sum(onv_cli_deployment *d, const repository *r, const onv_together_info *sum)
{
    fprintf(d->text, "\n  %" PRIu64 " session%s\n", sum->sessions, sum->sessions > 1 ? "s" : "");
    onv_cli_put_number(d, d->json, "sessions", sum->sessions);
    onv_cli_put_range(d, d->json, "arenas", "reserved_bytes", sum->arenas_low, sum->arenas_high);
    onv_cli_put_size(d, d->json, "libraries", "library_bytes", sum->driver_bytes);
    onv_cli_put_range(d, d->json, "CUDA context", "context_bytes", sum->context_low,
                      sum->context_high);
    onv_cli_put_total(d, sum->total_low, sum->total_high);
    onv_cli_put_number(d, d->json, "not_counted", r->n_others);
    onv_cli_put(d, d->json, "uses_tensorrt", json_boolean(r->uses_tensorrt));
    if (r->n_others > 0)
        fprintf(d->text, "\nNot counted: %zu models of other backends, or on the CPU alone\n",
                r->n_others);
    if (r->uses_tensorrt)
        fputs("\nA model asks for TensorRT: its engines and workspace are not counted\n", d->text);
}

/* A dim that all models lack is refused by the first one, which says what it has instead. */
static bool analyse_all(repository *r, onv_cli_deployment *d, onv_error *error)
{
    for (size_t i = 0; i < r->n_models; i++) {
        snprintf(d->path, sizeof d->path, "%s", r->models[i].path);
        if (!analyse(r, &r->cli->analysis, &r->models[i], error)) return false;
    }
    onv_options options = r->cli->analysis;
    options.dims = onv_cli_lost_dim(r->cli);
    options.n_dims = 1;
    options.dims_found = NULL;
    if (options.dims == NULL) return true;
    onv_analysis_destroy(r->models[0].analysis);
    snprintf(d->path, sizeof d->path, "%s", r->models[0].path);
    return analyse(r, &options, &r->models[0], error);
}

static bool answer(repository *r, onv_cli_deployment *d, onv_error *error)
{
    onv_analysis *analyses[MOST_MODELS];
    unsigned instances[MOST_MODELS];
    onv_together_info sum;
    onv_answer_info first;
    bool is_enough = true;
    if (!analyse_all(r, d, error)) return false;
    for (size_t i = 0; i < r->n_models; i++) {
        analyses[i] = r->models[i].analysis;
        instances[i] = (unsigned)r->models[i].config.instances;
    }
    snprintf(d->path, sizeof d->path, "%s", r->cli->triton);
    if (onv_together(analyses, instances, r->n_models, &sum, error) != ONV_OK) return false;
    onv_cli_put(d, d->json, "kind", json_string("triton"));
    onv_cli_put_name(d, d->json, "path", r->cli->triton);
    fputs("\n\nOne process on one GPU", d->text);
    onv_analysis_answer(r->models[0].analysis, &first);
    onv_cli_put_gpu(d, first.gpu, first.gpu_assumed);
    fputs("\n", d->text);
    for (size_t i = 0; i < r->n_models; i++) {
        is_enough &= put_model(d, &r->models[i]);
        onv_cli_warn_of(d, analyses[i], r->models[i].path);
    }
    d->fits &= is_enough;
    put_sum(d, r, &sum);
    if (r->cli->analysis.n_budgets > 0) fputs("\n", d->text);
    for (size_t i = 0; i < r->cli->analysis.n_budgets; i++) {
        onv_cli_put_budget(d, i, is_enough && sum.total_high <= onv_cli_usable(d->cli, i));
        fputs("\n", d->text);
    }
    return true;
}

bool onv_cli_answer_triton(onv_cli_deployment *d, onv_error *error)
{
    repository r = {.cli = d->cli};
    bool good = read_repository(&r, d->cli->triton, error) && answer(&r, d, error);
    for (size_t i = 0; i < r.n_models; i++) onv_analysis_destroy(r.models[i].analysis);
    free(r.models);
    return good;
}
