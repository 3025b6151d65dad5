/* The program: options in, analyses, reports out. It uses the public header only. */
#include <inttypes.h>
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
#include "cli/message.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/tools.h"

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

/* What the results say, where nothing went wrong. */
static int judge(const onv_analysis *analysis)
{
    onv_fit_info fit;
    onv_replay_info replay;
    bool is_replayed = onv_analysis_replay(analysis, &replay);
    if (is_replayed && !replay.agrees) return EXIT_CONTRADICTED;
    if (is_replayed && replay.out_of_memory) return EXIT_NO_FIT;
    onv_runtime_info runtime;
    for (size_t i = 0; onv_analysis_runtime(analysis, i, &runtime); i++)
        if (runtime.out_of_memory) return EXIT_NO_FIT;
    if (!onv_analysis_fit(analysis, &fit) || fit.fits) return EXIT_DONE;
    for (size_t i = 1; onv_analysis_device(analysis, i, NULL, &fit); i++)
        if (fit.fits) return EXIT_DONE;
    return EXIT_NO_FIT;
}

/* One line that says what grew. */
static int judge_growth(const onv_cli *cli, const onv_analysis *analysis, const char *model)
{
    onv_growth_info growth;
    onv_error what = {0};
    size_t at = 0;
    for (size_t i = 0; onv_analysis_growth(analysis, i, &growth); i++) {
        if (!growth.exceeds || at >= sizeof what.message) continue;
        at += (size_t)snprintf(what.message + at, sizeof what.message - at,
                               "%s %s from %" PRIu64 " to %" PRIu64 " bytes",
                               at == 0 ? "grew by more than is allowed:" : ",", growth.what,
                               growth.before, growth.after);
    }
    if (at == 0) return EXIT_DONE;
    if (at < sizeof what.message)
        snprintf(what.message + at, sizeof what.message - at, " (since %s)",
                 cli->is_diff ? cli->models[0] : cli->baseline);
    onv_cli_complain(model, &what);
    return EXIT_NO_FIT;
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

/* Their sum is what has to fit, where they run together. */
static int judge_together(const onv_cli *cli, const onv_analysis *analysis)
{
    onv_fit_info fit;
    if (cli->report.together == NULL || !onv_analysis_fit(analysis, &fit)) return EXIT_DONE;
    if (cli->sessions.total_high <= fit.usable) return EXIT_DONE;
    for (size_t i = 1; onv_analysis_device(analysis, i, NULL, &fit); i++)
        if (cli->sessions.total_high <= fit.usable) return EXIT_DONE;
    return EXIT_NO_FIT;
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

/* The models that could be analysed, and their files. */
typedef struct analysed {
    onv_analysis **at;
    const char **models;
    size_t count;
    onv_figure figures[MOST_FIGURES]; /* of the first model of a diff */
    onv_baseline first;
} analysed;

static onv_status analyse(const onv_cli *cli, size_t i, onv_analysis **result, onv_error *error)
{
    onv_options options = cli->analysis;
    options.has_max_growth &= options.baseline != NULL; /* the first model of a diff has none */
    if (!onv_cli_is_input(cli->models[i]))
        return onv_analysis_new(cli->models[i], &options, result, error);
    return onv_analysis_new_from_memory(cli->input.data, cli->input.bytes, cli->models[i], &options,
                                        result, error);
}

/* Of several models some may lack a dim. Where all do, the first one says what it has. */
static int check_dims(onv_cli *cli)
{
    bool *found = cli->analysis.dims_found;
    for (size_t k = 0; found != NULL && k < cli->analysis.n_dims; k++) {
        if (found[k]) continue;
        onv_analysis *analysis;
        onv_error error = {0};
        cli->analysis.dims_found = NULL;
        onv_status status = analyse(cli, 0, &analysis, &error);
        cli->analysis.dims_found = found;
        onv_analysis_destroy(analysis);
        return status == ONV_OK ? EXIT_DONE : onv_cli_complain(cli->models[0], &error);
    }
    return EXIT_DONE;
}

/* Returns the worst exit status of what could not be analysed. */
static int analyse_all(onv_cli *cli, onv_cli_baseline *baseline, analysed *done)
{
    int worst = EXIT_DONE;
    for (size_t i = 0; i < cli->n_models; i++) {
        onv_error error;
        onv_cli_guard(cli->models[i]);
        onv_cli_progress_begin(cli->models[i], i, cli->n_models);
        if (baseline != NULL) {
            cli->analysis.baseline = onv_cli_baseline_of(baseline, cli->models[i]);
            if (cli->analysis.baseline == NULL) return EXIT_UNUSABLE;
        }
        if (cli->is_diff && cli->analysis.has_max_growth && done->count == 1) {
            compare_with(done->at[0], cli->models[0], done->figures, &done->first);
            cli->analysis.baseline = &done->first;
        }
        if (analyse(cli, i, &done->at[done->count], &error) == ONV_OK) {
            done->models[done->count++] = cli->models[i];
            continue;
        }
        int status = onv_cli_complain(cli->models[i], &error);
        if (status > worst) worst = status;
        if (error.code == ONV_ERR_CANCELLED) break;
    }
    onv_cli_progress_end();
    return worst;
}

static int report_and_judge(onv_cli *cli, const analysed *done, int worst)
{
    int verdict = EXIT_DONE;
    bool sums = cli->together && done->count == cli->n_models;
    if (sums && !find_together(cli, done->at)) worst = EXIT_USAGE;
    bool is_told = !sums || cli->report.together != NULL;
    if (cli->is_diff && done->count < cli->n_models) return worst;
    for (size_t i = 0; i < cli->n_outputs && done->count > 0 && is_told; i++) {
        int status =
            write_output(cli, &cli->outputs[i], (const onv_analysis *const *)done->at, done->count);
        if (status > worst) worst = status;
    }
    for (size_t i = 0; i < done->count; i++) {
        const int of[] = {judge(done->at[i]), judge_together(cli, done->at[i]),
                          judge_growth(cli, done->at[i], done->models[i])};
        for (size_t k = 0; k < sizeof of / sizeof of[0]; k++)
            if (of[k] > verdict) verdict = of[k];
    }
    return worst != EXIT_DONE ? worst : verdict;
}

static bool reads_input(const onv_cli *cli)
{
    for (size_t i = 0; i < cli->n_models; i++)
        if (onv_cli_is_input(cli->models[i])) return true;
    return false;
}

static int run(onv_cli *cli)
{
    int status = EXIT_UNUSABLE;
    onv_cli_progress_start(cli->report.verbosity < 0);
    cli->analysis.progress = onv_cli_progress_stage;
    if (reads_input(cli)) {
        onv_cli_progress_begin("standard input", 0, 1);
        if (!onv_cli_read_input(&cli->input, cli->limits.file_bytes)) return EXIT_UNUSABLE;
    }
    if (cli->untrusted && !onv_cli_confine(cli)) return EXIT_UNUSABLE;
    onv_cli_baseline *baseline = NULL;
    if (cli->baseline != NULL && (baseline = onv_cli_open_baseline(cli->baseline)) == NULL)
        return EXIT_UNUSABLE;
    analysed done = {.at = calloc(cli->n_models, sizeof *done.at),
                     .models = calloc(cli->n_models, sizeof *done.models)};
    if (done.at != NULL && done.models != NULL) {
        int worst = analyse_all(cli, baseline, &done);
        status = done.count > 0 ? check_dims(cli) : EXIT_DONE;
        if (status == EXIT_DONE) status = report_and_judge(cli, &done, worst);
    } else {
        fputs("onnxvram: out of memory\n", stderr);
    }
    for (size_t i = 0; i < done.count; i++) onv_analysis_destroy(done.at[i]);
    free(done.at);
    free(done.models);
    onv_cli_close_baseline(baseline);
    return status;
}

static int analyse_models(int argc, char **argv)
{
    onv_cli cli;
    int status = EXIT_USAGE;
    switch (onv_cli_parse(&cli, argc, argv)) {
    case ONV_CLI_RUN:
        fit_terminal(&cli);
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

/* What is freed goes back to the system, so that the process holds little more than what --limit memory counts: the C
 * library raises its threshold for that by itself otherwise. */
static void return_memory(void)
{
#ifdef __GLIBC__
    enum { LEAST_MAPPED = 256 << 10, MOST_SPARE = 1 << 20 };
    mallopt(M_MMAP_THRESHOLD, LEAST_MAPPED);
    mallopt(M_TRIM_THRESHOLD, MOST_SPARE);
#endif
}

int main(int argc, char **argv)
{
    return_memory();
    setlocale(LC_CTYPE, "");
    /* A closed pipe and a file that may not grow are write errors. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    int status = EXIT_USAGE;
    if (argc > 1 && strcmp(argv[1], "plan") == 0)
        status = onv_cli_plan(argc - 1, argv + 1);
    else if (argc > 1 && strcmp(argv[1], "simulate") == 0)
        status = onv_cli_simulate(argc - 1, argv + 1);
    else
        status = analyse_models(argc, argv);
    onv_cli_die_if_stopped();
    return status;
}
