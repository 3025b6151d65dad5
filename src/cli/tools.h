/* The commands beside the analysis: `onnxvram plan`, `simulate` and `attach`. Each takes its own
 * arguments (argv[0] is the command's name) and returns the exit status. */
#ifndef ONV_CLI_TOOLS_H
#define ONV_CLI_TOOLS_H

int onv_cli_plan(int argc, char **argv);
int onv_cli_simulate(int argc, char **argv);
int onv_cli_attach(int argc, char **argv);

/* Becomes `python3 -m onnxvram.COMMAND --program THIS ARGUMENTS...` (argv[0] is the command's name), by the interpreter
 * that ONNXVRAM_PYTHON names, or the one next to this program, or that of PATH. Returns an exit status where it cannot,
 * with a message that says what is missing. */
int onv_cli_become_python(int argc, char **argv);

#endif
