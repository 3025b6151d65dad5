/* Options that would change nothing are refused, with what they need: by the library's rule, and those that are the
 * program's alone. */
#include <string.h>

#include "cli/commands.h"
#include "cli/table.h"
#include "cli/values.h"

static bool has_page(const onv_cli *cli)
{
    for (size_t i = 0; i < cli->n_outputs; i++)
        if (strcmp(cli->outputs[i].file, "-") == 0) return false;
    return true;
}

static const char *missing(const onv_cli *cli, const onv_cli_row *row)
{
    switch ((onv_cli_needs)row->needs) {
    case ONV_NEEDS_CHECKPOINTS:
        return cli->analysis.checkpoint != NULL || cli->analysis.plan != NULL
                   ? NULL
                   : "plans: add --checkpoint LIST, as in --checkpoint all, or --plan FILE";
    case ONV_NEEDS_BASELINE:
        return cli->baseline != NULL || cli->is_diff
                   ? NULL
                   : "figures to compare with: add --baseline FILE, which --json=FILE wrote before";
    case ONV_NEEDS_PAGE:
        return has_page(cli) ? NULL
                             : "standard output for the report: give the other output a file, as "
                               "in --json=FILE";
    case ONV_NEEDS_NOTHING_HERE: break;
    }
    return onv_option_missing(&cli->analysis, row->like != NULL ? row->like : row->name);
}

onv_cli_verdict onv_cli_check_needs(const onv_cli *cli)
{
    for (size_t i = 0; i < onv_cli_n_rows; i++) {
        const char *text = cli->given[i] ? missing(cli, &onv_cli_rows[i]) : NULL;
        if (text != NULL && cli->brought[i])
            return onv_cli_reject("%s needs %s", cli->command->name, text);
        if (text != NULL) return onv_cli_reject("--%s needs %s", onv_cli_rows[i].name, text);
    }
    return ONV_CLI_RUN;
}
