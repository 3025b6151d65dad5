#include "cli/check.h"

#include <string.h>

#include "cli/values.h"

/* Limits that were not given become small. */
static void distrust(onv_cli *cli)
{
    onv_limits *limits = &cli->limits;
    cli->analysis.no_external_data = true;
    if (limits->nodes == 0) limits->nodes = 64 << 10;
    if (limits->values == 0) limits->values = 1 << 20;
    if (limits->node_runs == 0) limits->node_runs = 64 << 10;
    if (limits->arena_bytes == 0) limits->arena_bytes = 512 << 20;
    if (limits->file_bytes == 0) limits->file_bytes = (uint64_t)4 << 30;
    if (limits->seconds == 0) limits->seconds = 30;
    if (limits->output_bytes == 0) limits->output_bytes = 64 << 20;
}

/* What options ask of each other. */
/* Examples are for reports that say more than a line. */
static bool shows_examples(const onv_cli *cli)
{
    for (size_t i = 0; i < cli->n_outputs; i++) {
        onv_format format = cli->outputs[i].format;
        if (cli->is_diff || format == ONV_FORMAT_JSON || format == ONV_FORMAT_MARKDOWN ||
            (format == ONV_FORMAT_TEXT && cli->report.verbosity >= 0))
            return true;
    }
    return false;
}

/* The formats of a diff in place of those of a report. */
static onv_cli_verdict choose_diff(onv_cli *cli)
{
    if (cli->n_models != 2)
        return onv_cli_reject("diff takes two models, as in onnxvram diff OLD.onnx NEW.onnx");
    if (cli->together || cli->baseline != NULL)
        return onv_cli_reject("diff makes no --together and takes no --baseline");
    for (size_t i = 0; i < cli->n_outputs; i++) {
        if (cli->outputs[i].format != ONV_FORMAT_JSON)
            return onv_cli_reject("diff writes text, --format markdown or --json");
        cli->outputs[i].format = ONV_FORMAT_DIFF_JSON;
    }
    cli->format = cli->format == ONV_FORMAT_MARKDOWN ? ONV_FORMAT_DIFF_MARKDOWN : ONV_FORMAT_DIFF;
    return ONV_CLI_RUN;
}

onv_cli_verdict onv_cli_check(onv_cli *cli)
{
    if (cli->n_models == 0) return onv_cli_reject("no model is given");
    for (size_t i = 0; i < cli->n_models; i++)
        if (cli->instances[i] > 1 && !cli->together)
            return onv_cli_reject("'%s*%u': several of one model need --together", cli->models[i],
                                  cli->instances[i]);
    /* --gpu says whose libraries, whatever the memory is. */
    for (size_t i = 0; i < cli->analysis.n_budgets && cli->analysis.compute_capability > 0; i++)
        cli->budgets[i].compute_capability = 0;
    if (cli->analysis.zero_stage > 3) return onv_cli_reject("--zero takes 1, 2 or 3");
    bool shares =
        cli->analysis.zero_stage > 0 || cli->analysis.ddp != NULL || cli->analysis.fsdp != NULL;
    if (shares != (cli->analysis.world > 1))
        return onv_cli_reject("--zero, --ddp or --fsdp and --world go together, and a world has 2 "
                              "devices or more");
    const char *needs = shares                          ? "--zero, --ddp and --fsdp"
                        : cli->analysis.master_weights  ? "--master-weights"
                        : cli->analysis.offload != NULL ? "--offload"
                        : cli->analysis.ema             ? "--ema"
                                                        : NULL;
    if (needs != NULL && cli->analysis.train == NULL)
        return onv_cli_reject("%s: these are for --train", needs);
    if (cli->analysis.max_batch && cli->analysis.n_budgets == 0 && cli->analysis.replay == NULL)
        return onv_cli_reject("--max-batch needs a --budget or a --replay");
    if (cli->analysis.max_dim != NULL && cli->analysis.n_budgets == 0)
        return onv_cli_reject("--max-dim needs a --budget, as in --budget L4");
    if (cli->analysis.has_max_growth && cli->baseline == NULL && !cli->is_diff)
        return onv_cli_reject(
            "--max-growth needs a --baseline: a report that --json=FILE wrote before");
    if (cli->analysis.checkpoint != NULL && cli->analysis.train == NULL)
        return onv_cli_reject("--checkpoint needs --train");
    if (cli->analysis.compile && cli->analysis.train == NULL)
        return onv_cli_reject("--compile needs --train");
    if (cli->analysis.kv_cache != NULL && cli->analysis.train != NULL)
        return onv_cli_reject("--kv-cache is of inference; leave --train or --kv-cache out");
    if (cli->analysis.weights != NULL && cli->analysis.train == NULL && cli->analysis.onnx_out)
        return onv_cli_reject("--onnx-out keeps the weights of the file; leave --weights out");
    if (cli->untrusted && cli->analysis.replay != NULL)
        return onv_cli_reject("--untrusted makes no --replay: it takes what a model asks for");
    if (cli->together && cli->analysis.replay != NULL)
        return onv_cli_reject("--together makes no --replay");
    if (cli->analysis.onnx_out && cli->n_models > 1)
        return onv_cli_reject("--onnx-out writes one model; give one, not %zu", cli->n_models);
    if (cli->analysis.onnx_out && cli->analysis.precision != ONV_PRECISION_AS_EXPORTED)
        return onv_cli_reject("--onnx-out keeps the types of the file; leave --precision out");
    if (cli->untrusted) distrust(cli);
    size_t on_stdout = 0;
    for (size_t i = 0; i < cli->n_outputs; i++) {
        on_stdout += strcmp(cli->outputs[i].file, "-") == 0;
        if (cli->outputs[i].format == ONV_FORMAT_CHECKPOINTS && cli->analysis.checkpoint == NULL)
            return onv_cli_reject("--plan-out needs --checkpoint");
    }
    if (on_stdout > 1) return onv_cli_reject("only one output can go to standard output");
    /* The report for people, unless something else takes its place. */
    if (cli->is_diff && choose_diff(cli) != ONV_CLI_RUN) return ONV_CLI_USAGE;
    onv_cli_verdict verdict =
        on_stdout == 0 ? onv_cli_add_output(cli, cli->format, NULL) : ONV_CLI_RUN;
    cli->analysis.example = shows_examples(cli);
    cli->analysis.savings = cli->analysis.example && !cli->is_diff;
    return verdict;
}
