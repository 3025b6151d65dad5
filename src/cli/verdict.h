/* What finished analyses say: the exit status where nothing went wrong. */
#ifndef ONV_CLI_VERDICT_H
#define ONV_CLI_VERDICT_H

#include "cli/options.h"

/* What one model says. `grown`: one line of what grew by more than is allowed, to be told once all reports are
 * written; empty where nothing did. */
int onv_cli_judge(const onv_cli *cli, const onv_analysis *analysis, onv_error *grown);

/* Of two such statuses the one that counts: a contradiction, then what does not fit, then warnings. */
int onv_cli_worse(int a, int b);

/* The warnings of a model, a line each on standard error: for --quiet, whose report has none. */
void onv_cli_tell_warnings(const onv_analysis *analysis, const char *model);

#endif
