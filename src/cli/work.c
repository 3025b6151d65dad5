#include "cli/work.h"

#include <stdlib.h>
#include <string.h>

#include "cli/files.h"
#include "cli/guard.h"
#include "cli/message.h"
#include "cli/progress.h"
#include "cli/verdict.h"

enum { MOST_FIGURES = 16 };

static void worsen(int32_t *status, int by)
{
    if (by > *status) *status = by;
}

/* --- Analyses ---------------------------------------------------------------------------------- */

/* A profile binds as --dim and --shape do: what they say of its name is said of --profile. */
static void name_profile(const onv_cli *cli, onv_error *error)
{
    static const char *const options[] = {"--dim", "--shape"};
    for (size_t i = 0; i < 2 * cli->n_profiles; i++) {
        char text[sizeof error->message];
        const char *option = options[i % 2];
        snprintf(text, sizeof text, "%s: '%s'", option, cli->profiles[i / 2]);
        if (strncmp(error->message, text, strlen(text)) != 0) continue;
        snprintf(text, sizeof text, "--profile%s", error->message + strlen(option));
        memcpy(error->message, text, sizeof text);
    }
}

static onv_status analyse(const onv_cli *cli, size_t model, const onv_options *options,
                          onv_analysis **result, onv_error *error)
{
    const char *path = cli->models[model];
    /* A process of its own ends by the signal, and the one that waits for it says why. */
    if (!onv_cli_is_isolated(cli)) onv_cli_guard(path);
    onv_status status = onv_cli_is_input(path)
                            ? onv_analysis_new_from_memory(cli->input.data, cli->input.bytes, path,
                                                           options, result, error)
                            : onv_analysis_new(path, options, result, error);
    name_profile(cli, error);
    return status;
}

int onv_cli_fail_model(onv_cli *cli, size_t model, const onv_error *why)
{
    cli->failed[cli->failures.count++] = (onv_failed_file){cli->models[model], *why};
    return onv_cli_complain(cli->models[model], why);
}

/* NULL with a message. */
static onv_analysis *look_at(const onv_cli_task *task, size_t model, onv_cli_record *record)
{
    onv_cli *cli = task->cli;
    onv_options options = cli->analysis;
    onv_cli_figures figures = {0};
    onv_analysis *analysis = NULL;
    onv_error error = {0};
    if (task->baseline != NULL) {
        options.baseline = &figures.baseline;
        if (!onv_cli_baseline_of(task->baseline, cli->models[model], cli->analysis.train != NULL,
                                 &figures, &error)) {
            record->ends = true;
            worsen(&record->worst, onv_cli_complain(cli->baseline, &error));
            return NULL;
        }
    }
    options.has_max_growth &= options.baseline != NULL; /* the first model of a diff has none */
    analyse(cli, model, &options, &analysis, &error);
    free(figures.bindings);
    if (analysis != NULL) return analysis;
    record->ends = error.code == ONV_ERR_CANCELLED;
    record->failed = error;
    worsen(&record->worst, onv_cli_fail_model(cli, model, &error));
    return NULL;
}

/* Of several models some may lack a dim. Where all do, the first one says what it has. */
bool onv_cli_has_all_dims(const onv_cli *cli)
{
    const bool *found = cli->analysis.dims_found;
    for (size_t k = 0; found != NULL && k < cli->analysis.n_dims; k++)
        if (!found[k]) return false;
    return true;
}

static int check_dims(const onv_cli *cli)
{
    onv_analysis *analysis;
    onv_error error = {0};
    onv_options options = cli->analysis;
    options.dims_found = NULL;
    options.has_max_growth &= options.baseline != NULL;
    onv_status status = analyse(cli, 0, &options, &analysis, &error);
    onv_analysis_destroy(analysis);
    return status == ONV_OK ? EXIT_DONE : onv_cli_complain(cli->models[0], &error);
}

void onv_cli_work_on_dims(void *task, onv_cli_record *record)
{
    record->worst = check_dims(((const onv_cli_task *)task)->cli);
}

/* --- Reports ----------------------------------------------------------------------------------- */

/* Before anything is written: no output may replace what a model was read from, or lose its weights where it is. False
 * with a message. */
static bool may_write(const onv_cli *cli, const onv_analysis *const *analyses, size_t count)
{
    for (size_t k = 0; k < cli->n_outputs; k++) {
        const onv_cli_output *output = &cli->outputs[k];
        for (size_t i = 0; i < count; i++)
            if (!onv_cli_spares_weights(analyses[i], output->file)) return false;
        if (output->format == ONV_FORMAT_ONNX && count > 0 &&
            !onv_cli_is_beside_weights(analyses[0], cli->models[0], output->file))
            return false;
    }
    return true;
}

static onv_status write_whole(const onv_cli_task *task, size_t k,
                              const onv_analysis *const *analyses, size_t count, onv_error *error)
{
    const onv_cli *cli = task->cli;
    return onv_report(analyses, count, cli->outputs[k].format, &cli->report, onv_cli_write,
                      &task->sinks[k], error);
}

static onv_status write_part(const onv_cli_task *task, size_t k, const onv_analysis *analysis,
                             onv_cli_record *record, onv_error *error)
{
    const onv_cli *cli = task->cli;
    onv_cli_sink out = {.stream = stdout, .file = cli->outputs[k].file};
    onv_status status = onv_report_part(analysis, cli->outputs[k].format, cli->n_models,
                                        &cli->report, onv_cli_write, &out, error);
    off_t end = fflush(stdout) == 0 ? ftello(stdout) : -1;
    if (end >= 0) record->until[k] = (uint64_t)end;
    return status;
}

static void report(const onv_cli_task *task, const onv_analysis *const *analyses,
                   onv_cli_record *record)
{
    const onv_cli *cli = task->cli;
    size_t count = (size_t)record->n_analysed;
    if (!may_write(cli, analyses, count)) {
        record->ends = true;
        worsen(&record->worst, EXIT_USAGE);
        return;
    }
    for (size_t k = 0; k < cli->n_outputs; k++) {
        onv_error error = {0};
        /* Of models that all failed JSON alone has something to say. */
        if (count == 0 && (cli->outputs[k].format != ONV_FORMAT_JSON || task->sinks == NULL ||
                           record->worst == EXIT_USAGE))
            continue;
        if (task->sinks != NULL && task->sinks[k].stream == NULL) continue;
        onv_status status = task->sinks != NULL ? write_whole(task, k, analyses, count, &error)
                                                : write_part(task, k, analyses[0], record, &error);
        const char *name = onv_cli_output_name(cli->outputs[k].file);
        if (task->sinks != NULL) onv_cli_explain(&task->sinks[k], &error);
        if (status != ONV_OK) worsen(&record->worst, onv_cli_complain(name, &error));
        record->kept[k] = status == ONV_OK;
        if (task->sinks == NULL || status != ONV_OK || onv_cli_flush(&task->sinks[k])) continue;
        record->kept[k] = false;
        worsen(&record->worst, EXIT_UNUSABLE);
    }
}

/* --- All of it --------------------------------------------------------------------------------- */

/* What all of them need in one process, for the reports. False with a message. */
static bool find_together(onv_cli *cli, onv_analysis *const *analyses)
{
    onv_error error = {0};
    onv_status status =
        onv_together(analyses, cli->instances, cli->n_models, &cli->sessions, &error);
    if (status != ONV_OK) onv_cli_complain("--together", &error);
    cli->report.together = status == ONV_OK ? &cli->sessions : NULL;
    cli->sessions.is_sequential = cli->sequential;
    return status == ONV_OK;
}

/* The figures of the first model of a diff, as a baseline for the second. */
static void compare_with(const onv_analysis *analysis, const char *name, onv_figure *figures,
                         onv_baseline *baseline)
{
    size_t n = 0;
    while (n < MOST_FIGURES && onv_analysis_figure(analysis, n, &figures[n])) n++;
    *baseline = (onv_baseline){.name = name, .figures = figures, .n_figures = n};
}

static void judge(const onv_cli_task *task, onv_analysis *const *analyses, const size_t *models,
                  onv_cli_record *record)
{
    const onv_cli *cli = task->cli;
    for (size_t i = 0; i < record->n_analysed; i++) {
        onv_error grown;
        record->verdict = onv_cli_worse(record->verdict, onv_cli_judge(cli, analyses[i], &grown));
        if (cli->report.verbosity < 0 || cli->analysis.strict)
            onv_cli_tell_warnings(analyses[i], cli->models[models[i]]);
        if (grown.message[0] != '\0') onv_cli_complain(cli->models[models[i]], &grown);
    }
}

/* Reports and verdicts of what was analysed. */
static void conclude(const onv_cli_task *task, onv_analysis *const *analyses, const size_t *models,
                     onv_cli_record *record)
{
    onv_cli *cli = task->cli;
    bool is_whole = task->sinks != NULL, has_all = record->n_analysed == cli->n_models;
    /* Of parts the one who has all of them says so. */
    int lacks = is_whole && record->n_analysed > 0 && !onv_cli_has_all_dims(cli) ? check_dims(cli)
                                                                                 : EXIT_DONE;
    if (lacks != EXIT_DONE) record->worst = lacks;
    if (lacks != EXIT_DONE || (cli->is_diff && !has_all)) return;
    if (cli->together && has_all && !find_together(cli, analyses))
        record->worst = EXIT_USAGE;
    else
        report(task, (const onv_analysis *const *)analyses, record);
    judge(task, analyses, models, record);
}

void onv_cli_work(void *context, onv_cli_record *record)
{
    const onv_cli_task *task = context;
    onv_cli *cli = task->cli;
    onv_figure figures[MOST_FIGURES];
    onv_baseline first;
    size_t *models = calloc(task->count, sizeof *models);
    onv_analysis **analyses = calloc(task->count, sizeof(onv_analysis *));
    bool good = models != NULL && analyses != NULL;
    for (size_t i = task->first; good && i < task->first + task->count && !record->ends; i++) {
        record->model = i;
        if (!onv_cli_is_isolated(cli)) onv_cli_progress_begin(cli->models[i], i, cli->n_models);
        if (task->lost != NULL && task->lost[i].code != ONV_OK) {
            worsen(&record->worst, onv_cli_fail_model(cli, i, &task->lost[i]));
            continue;
        }
        onv_analysis *analysis = look_at(task, i, record);
        if (analysis == NULL) continue;
        models[record->n_analysed] = i;
        analyses[record->n_analysed++] = analysis;
        if (!cli->is_diff || !cli->analysis.has_max_growth || i > 0) continue;
        compare_with(analysis, cli->models[i], figures, &first);
        cli->analysis.baseline = &first;
    }
    record->model = cli->n_models;
    onv_cli_progress_end();
    if (good)
        conclude(task, analyses, models, record);
    else
        fputs("onnxvram: out of memory\n", stderr);
    if (!good) worsen(&record->worst, EXIT_UNUSABLE);
    for (size_t k = 0; k < cli->analysis.n_dims; k++) record->dims_found[k] = cli->dims_found[k];
    for (size_t i = 0; good && i < record->n_analysed; i++) onv_analysis_destroy(analyses[i]);
    free(analyses);
    free(models);
}
