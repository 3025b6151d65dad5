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

enum { ONV_CLI_SIZE_TEXT = 64 };

void onv_cli_print_range(const onv_cli *cli, const char *what, uint64_t low, uint64_t high);

/* Names may be anybody's: what would act on a terminal is an escape. */
void onv_cli_print_name(const char *name);

/* An analysis of a part, which no budget judges: the libraries are those of the first budget's GPU. */
void onv_cli_use_budget(const onv_cli *cli, onv_options *options);

/* ", H100 (assumed)": whose libraries count; "" without. */
const char *onv_cli_gpu_text(const onv_analysis *analysis, char text[ONV_CLI_SIZE_TEXT]);

/* Whether so many bytes fit, in words without an end of the line; returns it. */
bool onv_cli_print_budget(const onv_cli *cli, size_t budget, uint64_t bytes);

#endif
