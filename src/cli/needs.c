/* Options that would change nothing are refused, with what they need. Those that only say how a report looks
 * (--top, --color, -q, -v) are always taken, and limits and work limits too: scripts pass them along. */
#include <string.h>

#include "cli/table.h"
#include "cli/values.h"

/* Of a list with commas; without a list all runtimes are asked for, with --train torch alone. */
static bool lists(const onv_cli *cli, const char *runtime)
{
    const char *list = cli->analysis.runtimes;
    size_t length = strlen(runtime);
    if (list == NULL) return cli->analysis.train == NULL || strcmp(runtime, "torch") == 0;
    for (; *list != '\0'; list += list[strcspn(list, ",")] == ',') {
        size_t n = strcspn(list, ",");
        if (n == length && strncmp(list, runtime, n) == 0) return true;
        list += n;
        if (*list == '\0') break;
    }
    return false;
}

static bool trains(const onv_cli *cli)
{
    return cli->analysis.train != NULL;
}

static bool infers_in_torch(const onv_cli *cli)
{
    return lists(cli, "torch");
}

static bool runs_torch(const onv_cli *cli)
{
    return trains(cli) || infers_in_torch(cli);
}

static bool runs_ort(const onv_cli *cli)
{
    return lists(cli, "ort");
}

static bool has_libraries(const onv_cli *cli)
{
    return runs_torch(cli) || runs_ort(cli);
}

static bool has_arena(const onv_cli *cli)
{
    return lists(cli, "arena");
}

static bool shares(const onv_cli *cli)
{
    return cli->analysis.zero_stage > 0 || cli->analysis.ddp != NULL ||
           cli->analysis.fsdp != NULL || cli->analysis.world == 1;
}

static bool has_world(const onv_cli *cli)
{
    return cli->analysis.world > 1;
}

static bool has_checkpoints(const onv_cli *cli)
{
    return cli->analysis.checkpoint != NULL;
}

static bool has_budget(const onv_cli *cli)
{
    return cli->analysis.n_budgets > 0;
}

static bool has_budget_or_replay(const onv_cli *cli)
{
    return has_budget(cli) || cli->analysis.replay != NULL;
}

static bool has_baseline(const onv_cli *cli)
{
    return cli->baseline != NULL || cli->is_diff;
}

static bool has_page(const onv_cli *cli)
{
    for (size_t i = 0; i < cli->n_outputs; i++)
        if (strcmp(cli->outputs[i].file, "-") == 0) return false;
    return true;
}

static const struct {
    unsigned what;
    bool (*is_met)(const onv_cli *cli);
    const char *text;
} rows[ONV_CLI_N_NEEDS] = {
    {ONV_NEEDS_TRAINING, trains, "training: add --train OPTIMIZER, as in --train adamw"},
    {ONV_NEEDS_PYTORCH, runs_torch, "PyTorch: add torch to --runtime, or --train OPTIMIZER"},
    {ONV_NEEDS_INFERENCE, infers_in_torch, "inference in PyTorch: add torch to --runtime"},
    {ONV_NEEDS_ORT, runs_ort, "ONNX Runtime: add ort to --runtime, as in --runtime ort"},
    {ONV_NEEDS_LIBRARIES, has_libraries,
     "a runtime with libraries: add torch or ort to --runtime, or --train OPTIMIZER"},
    {ONV_NEEDS_ARENA, has_arena, "the runtime arena: add arena to --runtime"},
    {ONV_NEEDS_SHARING, shares, "something to share: add --zero STAGE, --ddp or --fsdp"},
    {ONV_NEEDS_WORLD, has_world, "2 devices or more: add --world N, as in --world 2"},
    {ONV_NEEDS_CHECKPOINTS, has_checkpoints,
     "plans: add --checkpoint LIST, as in --checkpoint all"},
    {ONV_NEEDS_BUDGET, has_budget, "a budget: add --budget SIZE or GPU, as in --budget L4"},
    {ONV_NEEDS_BUDGET_OR_REPLAY, has_budget_or_replay,
     "a budget or a replay: add --budget SIZE or GPU, as in --budget L4, or --replay"},
    {ONV_NEEDS_BASELINE, has_baseline,
     "figures to compare with: add --baseline FILE, which --json=FILE wrote before"},
    {ONV_NEEDS_PAGE, has_page,
     "standard output for the report: give the other output a file, as in --json=FILE"},
};

onv_cli_verdict onv_cli_check_needs(const onv_cli *cli)
{
    for (size_t i = 0; i < onv_cli_n_rows; i++)
        for (size_t n = 0; n < ONV_CLI_N_NEEDS && cli->given[i]; n++)
            if ((onv_cli_rows[i].needs & rows[n].what) != 0 && !rows[n].is_met(cli))
                return onv_cli_reject("--%s needs %s", onv_cli_rows[i].name, rows[n].text);
    return ONV_CLI_RUN;
}
