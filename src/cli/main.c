/* The program: options in, analyses, reports out. It uses the public header only. */
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/confine.h"
#include "cli/guard.h"
#include "cli/message.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/tools.h"

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
    return cli->sessions.total_high > fit.usable ? EXIT_NO_FIT : EXIT_DONE;
}

static int run(onv_cli *cli)
{
    int worst = EXIT_DONE, verdict = EXIT_DONE;
    size_t count = 0;
    onv_analysis **analyses = calloc(cli->n_models, sizeof *analyses);
    if (analyses == NULL) {
        fputs("onnxvram: out of memory\n", stderr);
        return EXIT_UNUSABLE;
    }
    for (size_t i = 0; i < cli->n_models; i++) {
        onv_error error;
        onv_cli_guard(cli->models[i]);
        if (onv_analysis_new(cli->models[i], &cli->analysis, &analyses[count], &error) == ONV_OK) {
            count++;
            continue;
        }
        int status = onv_cli_complain(cli->models[i], &error);
        if (status > worst) worst = status;
        if (error.code == ONV_ERR_CANCELLED) break;
    }
    bool sums = cli->together && count == cli->n_models;
    if (sums && !find_together(cli, analyses)) worst = EXIT_USAGE;
    bool is_told = !sums || cli->report.together != NULL;
    for (size_t i = 0; i < cli->n_outputs && count > 0 && is_told; i++) {
        int status =
            write_output(cli, &cli->outputs[i], (const onv_analysis *const *)analyses, count);
        if (status > worst) worst = status;
    }
    for (size_t i = 0; i < count; i++) {
        int status = judge(analyses[i]), sum = judge_together(cli, analyses[i]);
        if (status > verdict) verdict = status;
        if (sum > verdict) verdict = sum;
        onv_analysis_destroy(analyses[i]);
    }
    free(analyses);
    return worst != EXIT_DONE ? worst : verdict;
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, "");
    /* A closed pipe and a file that may not grow are write errors with a message. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    if (argc > 1 && strcmp(argv[1], "plan") == 0) return onv_cli_plan(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "simulate") == 0) return onv_cli_simulate(argc - 1, argv + 1);
    onv_cli cli;
    int status = EXIT_USAGE;
    switch (onv_cli_parse(&cli, argc, argv)) {
    case ONV_CLI_RUN:
        fit_terminal(&cli);
        if (cli.analysis.replay != NULL) {
            onv_cli_catch_stop();
            cli.analysis.replay_cancelled = onv_cli_is_stopped;
            cli.analysis.cancelled = onv_cli_is_stopped;
        }
        status = !cli.untrusted || onv_cli_confine(&cli) ? run(&cli) : EXIT_UNUSABLE;
        break;
    case ONV_CLI_DONE: status = onv_cli_answered(); break;
    case ONV_CLI_USAGE: break;
    }
    onv_cli_cleanup(&cli);
    onv_cli_die_if_stopped();
    return status;
}
