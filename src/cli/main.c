/* The program: options in, analyses, reports out. It uses the public header only. */
#include <langinfo.h>
#include <locale.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/baseline.h"
#include "cli/beside.h"
#include "cli/confine.h"
#include "cli/guard.h"
#include "cli/input.h"
#include "cli/jobs.h"
#include "cli/message.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/stream.h"
#include "cli/tools.h"
#include "cli/verdict.h"

enum { MOST_FIGURES = 16 };

/* What the terminal can show. */
static void fit_terminal(onv_cli *cli)
{
    bool terminal = isatty(STDOUT_FILENO);
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    bool colorless =
        (no_color != NULL && no_color[0] != '\0') || (term != NULL && strcmp(term, "dumb") == 0);
    cli->report.color =
        cli->color == ONV_COLOR_ALWAYS || (cli->color == ONV_COLOR_AUTO && terminal && !colorless);
    cli->report.unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    struct winsize size;
    if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        cli->report.width = size.ws_col < 120 ? size.ws_col : 120;
}

static int write_output(const onv_cli *cli, const onv_cli_output *output,
                        const onv_analysis *const *analyses, size_t count)
{
    onv_cli_sink sink;
    if (output->format == ONV_FORMAT_ONNX &&
        !onv_cli_is_beside_weights(analyses[0], cli->models[0], output->file))
        return EXIT_USAGE;
    if (!onv_cli_open(&sink, output->file)) return EXIT_UNUSABLE;
    onv_error error = {0};
    onv_status status =
        onv_report(analyses, count, output->format, &cli->report, onv_cli_write, &sink, &error);
    bool kept = onv_cli_close(&sink, status == ONV_OK);
    if (status == ONV_OK) return kept ? EXIT_DONE : EXIT_UNUSABLE;
    return onv_cli_complain(sink.file, &error);
}

/* What all of them need in one process, for the reports. False with a message. */
static bool find_together(onv_cli *cli, onv_analysis *const *analyses)
{
    onv_error error = {0};
    onv_status status =
        onv_together(analyses, cli->instances, cli->n_models, &cli->sessions, &error);
    if (status != ONV_OK) onv_cli_complain("--together", &error);
    cli->report.together = status == ONV_OK ? &cli->sessions : NULL;
    return status == ONV_OK;
}

/* The figures of the first model of a diff, as a baseline for the second. */
static void compare_with(const onv_analysis *analysis, const char *name, onv_figure *figures,
                         onv_baseline *baseline)
{
    onv_summary summary;
    onv_runtime_info runtime;
    onv_analysis_summary(analysis, &summary);
    size_t n = 0;
    figures[n++] = (onv_figure){"weights", summary.parameter_bytes};
    if (summary.sized) figures[n++] = (onv_figure){"peak", summary.peak_bytes};
    if (summary.sized)
        figures[n++] = (onv_figure){"total", summary.parameter_bytes + summary.peak_bytes};
    for (size_t i = 0; n < MOST_FIGURES && onv_analysis_runtime(analysis, i, &runtime); i++)
        figures[n++] = (onv_figure){runtime.name, runtime.held_bytes};
    *baseline = (onv_baseline){.name = name, .figures = figures, .n_figures = n};
}

/* What came of the models so far. */
typedef struct outcome {
    int worst, verdict; /* of what could not be analysed or written; of what was analysed */
    size_t n_analysed;
    onv_analysis **kept; /* of them, where reports take all at once; else NULL */
    struct grown {
        const char *model;
        onv_error what;
    } * grown; /* what is to be said in the end */
    size_t n_grown;
} outcome;

static void worsen(int *status, int by)
{
    if (by > *status) *status = by;
}

/* Of several models some may lack a dim. Where all do, the first one says what it has. */
static bool has_all_dims(const onv_cli *cli)
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
    if (has_all_dims(cli)) return EXIT_DONE;
    options.dims_found = NULL;
    options.has_max_growth &= options.baseline != NULL;
    onv_status status = onv_cli_analyse(cli, 0, &options, &analysis, &error);
    onv_analysis_destroy(analysis);
    return status == ONV_OK ? EXIT_DONE : onv_cli_complain(cli->models[0], &error);
}

static void judge(const onv_cli *cli, const onv_analysis *analysis, const char *model, outcome *o)
{
    onv_error what;
    o->verdict = onv_cli_worse(o->verdict, onv_cli_judge(cli, analysis, &what));
    if (cli->report.verbosity < 0 || cli->is_strict) onv_cli_tell_warnings(analysis, model);
    if (what.message[0] == '\0') return;
    struct grown *more = realloc(o->grown, (o->n_grown + 1) * sizeof *more);
    if (more == NULL) {
        fputs("onnxvram: out of memory\n", stderr);
        worsen(&o->worst, EXIT_UNUSABLE);
        return;
    }
    o->grown = more;
    o->grown[o->n_grown++] = (struct grown){model, what};
}

/* The next model that could be analysed; false: there is none. `model`: which was looked at last. */
static bool next(onv_cli *cli, onv_cli_jobs *jobs, outcome *o, size_t *model,
                 onv_analysis **analysis)
{
    for (; *model < cli->n_models; ++*model) {
        onv_cli_result r = onv_cli_jobs_next(jobs);
        *analysis = r.analysis;
        if (r.analysis != NULL) return true;
        worsen(&o->worst, onv_cli_complain(r.about, &r.error));
        if (r.ends) break;
    }
    return false;
}

/* --- Model by model ---------------------------------------------------------------------------- */

/* Whether every output can be written so. */
static bool can_stream(const onv_cli *cli)
{
    bool can = cli->n_models > 1 && !cli->together && !cli->is_diff;
    for (size_t i = 0; i < cli->n_outputs; i++)
        can = can && onv_report_can_stream(cli->outputs[i].format);
    return can;
}

/* Reports what comes, and lets it go. */
static void stream_all(onv_cli *cli, onv_cli_jobs *jobs, outcome *o)
{
    onv_cli_stream streams[ONV_CLI_MAX_OUTPUTS] = {{.is_open = false}};
    onv_analysis *analysis;
    for (size_t i = 0; !onv_cli_is_pipe_closed() && next(cli, jobs, o, &i, &analysis); i++) {
        onv_cli_progress_end();
        for (size_t k = 0; k < cli->n_outputs; k++) {
            if (o->n_analysed == 0)
                worsen(&o->worst, onv_cli_stream_open(&streams[k], cli, &cli->outputs[k]));
            worsen(&o->worst, onv_cli_stream_add(&streams[k], analysis, has_all_dims(cli)));
        }
        o->n_analysed++;
        judge(cli, analysis, cli->models[i], o);
        onv_analysis_destroy(analysis);
    }
    onv_cli_progress_end();
    int lacks = o->n_analysed > 0 ? check_dims(cli) : EXIT_DONE;
    for (size_t k = 0; k < cli->n_outputs; k++)
        worsen(&o->worst, onv_cli_stream_close(&streams[k], lacks == EXIT_DONE));
    if (lacks == EXIT_DONE) return;
    o->worst = lacks;
    o->n_grown = 0;
}

/* --- All at once ------------------------------------------------------------------------------- */

static void report_all(onv_cli *cli, outcome *o)
{
    bool sums = cli->together && o->n_analysed == cli->n_models;
    if (sums && !find_together(cli, o->kept)) o->worst = EXIT_USAGE;
    bool is_told = !sums || cli->report.together != NULL;
    for (size_t i = 0; i < cli->n_outputs && o->n_analysed > 0 && is_told; i++)
        worsen(&o->worst, write_output(cli, &cli->outputs[i], (const onv_analysis *const *)o->kept,
                                       o->n_analysed));
}

/* Keeps what comes, and reports it in the end. */
static void keep_all(onv_cli *cli, onv_cli_jobs *jobs, outcome *o)
{
    onv_figure figures[MOST_FIGURES];
    onv_baseline first;
    const char **models = calloc(cli->n_models, sizeof *models);
    o->kept = calloc(cli->n_models, sizeof *o->kept);
    if (models == NULL || o->kept == NULL) {
        fputs("onnxvram: out of memory\n", stderr);
        o->worst = EXIT_UNUSABLE;
        free(models);
        return;
    }
    for (size_t i = 0; next(cli, jobs, o, &i, &o->kept[o->n_analysed]); i++) {
        models[o->n_analysed++] = cli->models[i];
        if (!cli->is_diff || !cli->analysis.has_max_growth || i > 0) continue;
        compare_with(o->kept[0], cli->models[0], figures, &first);
        cli->analysis.baseline = &first;
    }
    onv_cli_progress_end();
    int lacks = o->n_analysed > 0 ? check_dims(cli) : EXIT_DONE;
    if (lacks != EXIT_DONE) o->worst = lacks;
    if (lacks == EXIT_DONE && (!cli->is_diff || o->n_analysed == cli->n_models)) {
        report_all(cli, o);
        for (size_t i = 0; i < o->n_analysed; i++) judge(cli, o->kept[i], models[i], o);
    }
    free(models);
}

static bool reads_input(const onv_cli *cli)
{
    for (size_t i = 0; i < cli->n_models; i++)
        if (onv_cli_is_input(cli->models[i])) return true;
    return false;
}

static int run(onv_cli *cli)
{
    onv_cli_progress_start(cli->report.verbosity < 0);
    cli->analysis.progress = onv_cli_progress_stage;
    if (reads_input(cli)) {
        onv_cli_progress_begin("standard input", 0, 1);
        if (!onv_cli_read_input(&cli->input, cli->limits.file_bytes)) return EXIT_UNUSABLE;
    }
    bool keeps = !can_stream(cli);
    if (cli->untrusted &&
        !onv_cli_confine_files(cli, onv_cli_n_jobs(cli), onv_cli_n_waiting(cli, keeps)))
        return EXIT_UNUSABLE;
    onv_cli_jobs *jobs = onv_cli_jobs_start(cli, keeps);
    onv_cli_baseline *baseline = NULL;
    outcome o = {0};
    if (jobs == NULL || (cli->untrusted && !onv_cli_confine_calls()) ||
        (cli->baseline != NULL && (baseline = onv_cli_open_baseline(cli->baseline)) == NULL)) {
        o.worst = EXIT_UNUSABLE;
    } else {
        onv_cli_jobs_begin(jobs, baseline);
        if (keeps)
            keep_all(cli, jobs, &o);
        else
            stream_all(cli, jobs, &o);
    }
    for (size_t i = 0; i < o.n_grown; i++) onv_cli_complain(o.grown[i].model, &o.grown[i].what);
    onv_cli_jobs_stop(jobs);
    for (size_t i = 0; i < o.n_analysed && o.kept != NULL; i++) onv_analysis_destroy(o.kept[i]);
    free(o.kept);
    free(o.grown);
    onv_cli_close_baseline(baseline);
    return o.worst != EXIT_DONE ? o.worst : o.verdict;
}

/* What is freed goes back to the system, so that the process holds little more than what --limit memory counts: the C
 * library raises its threshold for that by itself otherwise. Where plans are searched some is spare: thousands of
 * programs of one size are built one after the other, and the system would clear their pages for each. */
static void return_memory(bool builds_plans)
{
#ifdef __GLIBC__
    const int least_mapped = builds_plans ? 32 << 20 : 256 << 10;
    const int most_spare = builds_plans ? 64 << 20 : 1 << 20;
    mallopt(M_MMAP_THRESHOLD, least_mapped);
    mallopt(M_TRIM_THRESHOLD, most_spare);
#else
    (void)builds_plans;
#endif
}

static int analyse_models(int argc, char **argv)
{
    onv_cli cli;
    int status = EXIT_USAGE;
    switch (onv_cli_parse(&cli, argc, argv)) {
    case ONV_CLI_RUN:
        fit_terminal(&cli);
        return_memory(cli.analysis.checkpoint != NULL);
        if (cli.analysis.replay != NULL) {
            onv_cli_catch_stop();
            cli.analysis.cancelled = onv_cli_is_stopped;
        }
        status = run(&cli);
        break;
    case ONV_CLI_DONE: status = onv_cli_answered(); break;
    case ONV_CLI_USAGE: break;
    }
    onv_cli_cleanup(&cli);
    return status;
}

int main(int argc, char **argv)
{
    return_memory(false);
    setlocale(LC_CTYPE, "");
    /* A closed pipe and a file that may not grow are write errors. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    int status = EXIT_USAGE;
    if (argc > 1 && strcmp(argv[1], "plan") == 0)
        status = onv_cli_plan(argc - 1, argv + 1);
    else if (argc > 1 && strcmp(argv[1], "simulate") == 0)
        status = onv_cli_simulate(argc - 1, argv + 1);
    else if (argc > 1 && strcmp(argv[1], "attach") == 0)
        status = onv_cli_attach(argc - 1, argv + 1);
    else
        status = analyse_models(argc, argv);
    onv_cli_die_if_stopped();
    return status;
}
