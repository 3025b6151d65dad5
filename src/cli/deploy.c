#include "cli/deploy.h"

#include <stdio.h>

#include "cli/values.h"

const char *onv_cli_mib(uint64_t bytes, char text[ONV_CLI_SIZE_TEXT])
{
    double size = (double)bytes / (1 << 20);
    if (size < 10240)
        snprintf(text, ONV_CLI_SIZE_TEXT, "%.1f MiB", size);
    else
        snprintf(text, ONV_CLI_SIZE_TEXT, "%.2f GiB", size / 1024);
    return text;
}

void onv_cli_print_range(const char *what, uint64_t low, uint64_t high)
{
    char a[ONV_CLI_SIZE_TEXT], b[ONV_CLI_SIZE_TEXT];
    if (low == high)
        printf("  %-26s %s\n", what, onv_cli_mib(low, a));
    else
        printf("  %-26s %s to %s\n", what, onv_cli_mib(low, a), onv_cli_mib(high, b));
}

uint64_t onv_cli_usable(const onv_cli *cli, size_t budget)
{
    return cli->budgets[budget].bytes / 100 * (100 - cli->analysis.margin_percent);
}

const char *onv_cli_budget_name(const onv_cli *cli, size_t budget, char text[ONV_CLI_SIZE_TEXT])
{
    const onv_budget *b = &cli->budgets[budget];
    return b->name != NULL ? b->name : onv_cli_mib(b->bytes, text);
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
