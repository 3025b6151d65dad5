/* Deployments: models that a server's or a library's own files name, in place of models of the command line, and what they
 * take together in one process. */
#ifndef ONV_CLI_DEPLOY_H
#define ONV_CLI_DEPLOY_H

#include "cli/options.h"

/* What --genai and --triton exclude. */
onv_cli_verdict onv_cli_check_deployment(onv_cli *cli);

/* The answers, for a folder of onnxruntime-genai and for a repository of Triton; they return the exit status. */
int onv_cli_run_genai(const onv_cli *cli);
int onv_cli_run_triton(const onv_cli *cli);

/* --- What both print --------------------------------------------------------------------------- */

enum { ONV_CLI_SIZE_TEXT = 32 };

const char *onv_cli_mib(uint64_t bytes, char text[ONV_CLI_SIZE_TEXT]);
void onv_cli_print_range(const char *what, uint64_t low, uint64_t high);

/* Of a budget: its bytes less the margin, and how it is called. */
uint64_t onv_cli_usable(const onv_cli *cli, size_t budget);
const char *onv_cli_budget_name(const onv_cli *cli, size_t budget, char text[ONV_CLI_SIZE_TEXT]);

#endif
