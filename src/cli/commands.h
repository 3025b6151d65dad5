/* The commands of the program, by task. One table says what each is for, which options its help lists, and what it
 * brings along; the program, its help and the completions of shells read it. */
#ifndef ONV_CLI_COMMANDS_H
#define ONV_CLI_COMMANDS_H

#include "cli/options.h"

typedef struct onv_cli_command {
    const char *name;
    const char *arguments; /* behind the name, in its help */
    const char *summary;
    /* Names of options that its help lists, with spaces: of the table, where it analyses; else all that it has. */
    const char *options;
    /* Of an analysis: options that it has unless they are given, and their values; NULL behind the last one. */
    const char *brings[3][2];
    onv_cli_verdict (*check)(
        onv_cli *cli); /* of an analysis: what it needs; NULL: nothing of its own */
    /* Its own program, with its arguments from its name on; NULL: it is an analysis. */
    int (*run)(int argc, char **argv);
    bool has_table;   /* a program of its own that takes options of the table */
    bool is_other;    /* another name of the one before it */
    const char *more; /* the end of its help; NULL: nothing */
} onv_cli_command;

extern const onv_cli_command onv_cli_commands[];
extern const size_t onv_cli_n_commands;

/* NULL: no command has this name. */
const onv_cli_command *onv_cli_command_named(const char *name);

/* What a command that analyses needs, and the reports that it writes. */
onv_cli_verdict onv_cli_check_diff(onv_cli *cli), onv_cli_check_compare(onv_cli *cli),
    onv_cli_check_gate(onv_cli *cli), onv_cli_check_serve(onv_cli *cli);

/* `onnxvram help [TOPIC]`, and --help[=TOPIC]. NULL: the commands. False with a message: there is no such topic. */
bool onv_cli_help(const char *topic);
int onv_cli_run_help(int argc, char **argv);

/* `onnxvram complete WORD...`: what the last word may become, a line each, with a tab before what it means. Shells ask
 * this; nothing is printed where only files can follow. */
int onv_cli_run_complete(int argc, char **argv);

/* The commands with programs of their own. */
int onv_cli_sweep(int argc, char **argv), onv_cli_plan(int argc, char **argv),
    onv_cli_simulate(int argc, char **argv), onv_cli_attach(int argc, char **argv);

/* Becomes `python3 -m onnxvram.COMMAND --program THIS ARGUMENTS...` (argv[0] is the command's name), by the interpreter
 * that ONNXVRAM_PYTHON names, or the one next to this program, or that of PATH. Returns an exit status where it cannot,
 * with a message that says what is missing. */
int onv_cli_become_python(int argc, char **argv);

#endif
