/* The commands beside the analysis: `onnxvram plan` and `onnxvram simulate`. Each takes its own
 * arguments (argv[0] is the command's name) and returns the exit status. */
#ifndef ONV_CLI_TOOLS_H
#define ONV_CLI_TOOLS_H

int onv_cli_plan(int argc, char **argv);
int onv_cli_simulate(int argc, char **argv);

#endif
