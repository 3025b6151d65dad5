#include "cli/verdict.h"

#include <inttypes.h>
#include <string.h>

#include "cli/message.h"

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

int onv_cli_judge(const onv_cli *cli, const onv_analysis *analysis, onv_error *grown)
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
