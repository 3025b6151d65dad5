/* Commands that run networks are Python's: the package `onnxvram` has them, and the program starts them. */
#ifndef ONV_CLI_PYTHON_H
#define ONV_CLI_PYTHON_H

/* Becomes `python3 -m onnxvram.COMMAND --program THIS ARGUMENTS...` (argv[0] is the command's name), by the interpreter
 * that ONNXVRAM_PYTHON names, or the one next to this program, or that of PATH. Returns an exit status where it cannot,
 * with a message that says what is missing. */
int onv_cli_become_python(int argc, char **argv);

#endif
