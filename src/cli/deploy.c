#include "cli/deploy.h"

#include <stdio.h>

#include "cli/values.h"

void onv_cli_print_range(const onv_cli *cli, const char *what, uint64_t low, uint64_t high)
{
    char text[ONV_CLI_SIZE_TEXT];
    onv_size_text(low, high, cli->report.unicode, text, sizeof text);
    printf("  %-26s %s\n", what, text);
}

void onv_cli_print_name(const char *name)
{
    char text[2048];
    onv_printable(name, text, sizeof text);
    fputs(text, stdout);
}

void onv_cli_use_budget(const onv_cli *cli, onv_options *options)
{
    if (options->compute_capability == 0 && options->n_budgets > 0) {
        options->compute_capability = cli->budgets[0].compute_capability;
        options->gpu = cli->budgets[0].name;
    }
    options->n_budgets = 0;
}

const char *onv_cli_gpu_text(const onv_analysis *analysis, char text[ONV_CLI_SIZE_TEXT])
{
    onv_answer_info answer;
    onv_analysis_answer(analysis, &answer);
    text[0] = '\0';
    if (answer.gpu != NULL)
        snprintf(text, ONV_CLI_SIZE_TEXT, ", %s%s", answer.gpu,
                 answer.gpu_assumed ? " (assumed)" : "");
    return text;
}

bool onv_cli_print_budget(const onv_cli *cli, size_t budget, uint64_t bytes)
{
    const onv_budget *b = &cli->budgets[budget];
    char size[ONV_CLI_SIZE_TEXT];
    bool fits = bytes <= onv_budget_usable(b->bytes, cli->analysis.margin_percent);
    onv_size_text(b->bytes, b->bytes, false, size, sizeof size);
    printf("%s: %s", b->name != NULL ? b->name : size, fits ? "fits" : "does not fit");
    return fits;
}

onv_cli_verdict onv_cli_check_deployment(onv_cli *cli)
{
    const char *option = cli->genai != NULL ? "genai" : "triton";
    if (cli->genai != NULL && cli->triton != NULL)
        return onv_cli_reject("--genai and --triton name a folder each: leave one of them out");
    if (cli->n_models > 0)
        return onv_cli_reject("--%s names a folder, and '%s' is a model: leave one of them out",
                              option, cli->models[0]);
    if (cli->n_outputs > 0 || cli->untrusted || cli->together || cli->analysis.train != NULL)
        return onv_cli_reject("--%s prints one answer: leave other outputs, --untrusted, "
                              "--together and --train out",
                              option);
    return ONV_CLI_RUN;
}
