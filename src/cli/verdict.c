#include "cli/verdict.h"

#include <inttypes.h>

#include "cli/message.h"

/* What the results say, where nothing went wrong. */
static int judge_alone(const onv_analysis *analysis)
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
    onv_fit_info fit;
    if (cli->report.together == NULL || !onv_analysis_fit(analysis, &fit)) return EXIT_DONE;
    if (cli->sessions.total_high <= fit.usable) return EXIT_DONE;
    for (size_t i = 1; onv_analysis_device(analysis, i, NULL, &fit); i++)
        if (cli->sessions.total_high <= fit.usable) return EXIT_DONE;
    return EXIT_NO_FIT;
}

int onv_cli_judge(const onv_cli *cli, const onv_analysis *analysis, onv_error *grown)
{
    const int of[] = {judge_alone(analysis), judge_together(cli, analysis),
                      judge_growth(cli, analysis, grown)};
    int worst = EXIT_DONE;
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        if (of[i] > worst) worst = of[i];
    return worst;
}
