#include "cli/work.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/files.h"
#include "cli/guard.h"
#include "cli/progress.h"

enum { MOST_FIGURES = 16 };

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
            onv_cli_worsen(&record->worst, onv_cli_complain(cli->baseline, &error));
            return NULL;
        }
    }
    options.has_max_growth &= options.baseline != NULL; /* the first model of a diff has none */
    analyse(cli, model, &options, &analysis, &error);
    free(figures.bindings);
    if (analysis != NULL) return analysis;
    record->ends = error.code == ONV_ERR_CANCELLED;
    record->failed = error;
    onv_cli_worsen(&record->worst, onv_cli_fail_model(cli, model, &error));
    return NULL;
}

const onv_dim_binding *onv_cli_lost_dim(const onv_cli *cli)
{
    const bool *found = cli->analysis.dims_found;
    const char *searched = cli->analysis.max_dim; /* each model has it, or was refused */
    for (size_t k = 0; found != NULL && k < cli->analysis.n_dims; k++) {
        const onv_dim_binding *dim = &cli->analysis.dims[k];
        if (!found[k] && (searched == NULL || strcmp(dim->name, searched) != 0)) return dim;
    }
    return NULL;
}

/* The first model says what it has instead. */
static int check_dims(const onv_cli *cli)
{
    onv_analysis *analysis;
    onv_error error = {0};
    onv_options options = cli->analysis;
    options.dims = onv_cli_lost_dim(cli);
    options.n_dims = 1;
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
        onv_cli_worsen(&record->worst, EXIT_USAGE);
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
        if (status != ONV_OK) onv_cli_worsen(&record->worst, onv_cli_complain(name, &error));
        record->kept[k] = status == ONV_OK;
        if (task->sinks == NULL || status != ONV_OK || onv_cli_flush(&task->sinks[k])) continue;
        record->kept[k] = false;
        onv_cli_worsen(&record->worst, EXIT_UNUSABLE);
    }
}

/* --- Verdicts: the exit status where nothing went wrong ---------------------------------------- */

/* The answer, and what a device or a measurement said of it. */
static int judge_alone(const onv_analysis *analysis)
{
    onv_answer_info answer;
    onv_analysis_answer(analysis, &answer);
    if (answer.is_contradicted) return EXIT_CONTRADICTED;
    if (answer.out_of_memory) return EXIT_NO_FIT;
    return answer.has_verdict && !answer.fits_some ? EXIT_NO_FIT : EXIT_DONE;
}

static int judge_warnings(const onv_cli *cli, const onv_analysis *analysis)
{
    onv_answer_info answer;
    onv_analysis_answer(analysis, &answer);
    return cli->analysis.strict && answer.warnings > 0 ? EXIT_WARNED : EXIT_DONE;
}

/* One line that says what grew. */
static int judge_growth(const onv_cli *cli, const onv_analysis *analysis, onv_error *what)
{
    onv_growth_info growth;
    size_t at = 0;
    *what = (onv_error){0};
    for (size_t i = 0; onv_analysis_growth(analysis, i, &growth); i++) {
        if (!growth.exceeds || at >= sizeof what->message) continue;
        at += (size_t)snprintf(what->message + at, sizeof what->message - at,
                               "%s %s from %" PRIu64 " to %" PRIu64 " bytes",
                               at == 0 ? "grew by more than is allowed:" : ",", growth.what,
                               growth.before, growth.after);
    }
    if (at == 0) return EXIT_DONE;
    if (at < sizeof what->message)
        snprintf(what->message + at, sizeof what->message - at, " (since %s)",
                 cli->is_diff ? cli->models[0] : cli->baseline);
    return EXIT_NO_FIT;
}

/* Their sum is what has to fit, where they run together. */
static int judge_together(const onv_cli *cli, const onv_analysis *analysis)
{
    onv_answer_device_info device;
    size_t n = 0;
    const onv_together_info *sum = &cli->sessions;
    uint64_t needed = sum->is_sequential ? sum->largest_high : sum->total_high;
    if (cli->report.together == NULL) return EXIT_DONE;
    for (; onv_analysis_answer_device(analysis, n, &device); n++)
        if (needed <= device.fit.usable) return EXIT_DONE;
    return n > 0 ? EXIT_NO_FIT : EXIT_DONE;
}

int onv_cli_worse(int a, int b)
{
    static const int order[] = {EXIT_DONE, EXIT_WARNED, EXIT_NO_FIT, EXIT_CONTRADICTED};
    int worst = a;
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        if (a == order[i] || b == order[i]) worst = order[i];
    return worst;
}

/* `grown`: one line of what grew by more than is allowed, to be told once all reports are written; empty where nothing did. */
static int judge_one(const onv_cli *cli, const onv_analysis *analysis, onv_error *grown)
{
    const int of[] = {judge_alone(analysis), judge_together(cli, analysis),
                      judge_growth(cli, analysis, grown), judge_warnings(cli, analysis)};
    int worst = EXIT_DONE;
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) worst = onv_cli_worse(worst, of[i]);
    return worst;
}

void onv_cli_tell_warnings(const onv_analysis *analysis, const char *model)
{
    onv_diagnostic diagnostic;
    for (size_t i = 0; onv_analysis_diagnostic(analysis, i, &diagnostic); i++) {
        if (strcmp(diagnostic.severity, "warning") != 0) continue;
        onv_error what = {.code = ONV_ERR_MODEL};
        snprintf(what.message, sizeof what.message, "warning (%s)%s%s%s: %s", diagnostic.code,
                 diagnostic.node[0] != '\0' ? " at node '" : "", diagnostic.node,
                 diagnostic.node[0] != '\0' ? "'" : "", diagnostic.message);
        onv_cli_complain(model, &what);
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
        record->verdict = onv_cli_worse(record->verdict, judge_one(cli, analyses[i], &grown));
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
    int lacks = is_whole && record->n_analysed > 0 && onv_cli_lost_dim(cli) != NULL
                    ? check_dims(cli)
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
            onv_cli_worsen(&record->worst, onv_cli_fail_model(cli, i, &task->lost[i]));
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
    if (!good) onv_cli_worsen(&record->worst, EXIT_UNUSABLE);
    for (size_t k = 0; k < cli->analysis.n_dims; k++) record->dims_found[k] = cli->dims_found[k];
    for (size_t i = 0; good && i < record->n_analysed; i++) onv_analysis_destroy(analyses[i]);
    free(analyses);
    free(models);
}
