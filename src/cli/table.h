/* The table of options: one row says how an option is written, how its value is read, and which other
 * options it needs to have an effect. Parsing, --help and the checks read it. */
#ifndef ONV_CLI_TABLE_H
#define ONV_CLI_TABLE_H

#include "cli/options.h"

/* What an option needs; needs.c has a row for each. */
typedef enum onv_cli_needs {
    ONV_NEEDS_TRAINING = 1 << 0,
    ONV_NEEDS_PYTORCH = 1 << 1,   /* the runtime torch, or training */
    ONV_NEEDS_INFERENCE = 1 << 2, /* the runtime torch */
    ONV_NEEDS_ORT = 1 << 3,
    ONV_NEEDS_LIBRARIES = 1 << 4, /* torch, ort or training */
    ONV_NEEDS_ARENA = 1 << 5,
    ONV_NEEDS_SHARING = 1 << 6, /* --zero, --ddp or --fsdp */
    ONV_NEEDS_WORLD = 1 << 7,   /* of 2 devices or more */
    ONV_NEEDS_CHECKPOINTS = 1 << 8,
    ONV_NEEDS_BUDGET = 1 << 9,
    ONV_NEEDS_BUDGET_OR_REPLAY = 1 << 10,
    ONV_NEEDS_BASELINE = 1 << 11, /* or a diff */
    ONV_NEEDS_PAGE = 1 << 12,     /* the report for people */
} onv_cli_needs;

enum { ONV_CLI_N_NEEDS = 13 };

typedef struct onv_cli_row {
    char letter; /* 0: none */
    const char *name;
    const char *arg; /* as --help shows it: NULL: takes none; "[=...]": may be left out */
    const char *help;
    /* How it is read: by a function; else into the field of onv_cli at `at`: a flag, a number from `least` to
     * `most` where `most` is not 0, or text. Text is appended to a list where `count` is not 0. */
    onv_cli_verdict (*read)(onv_cli *cli, const char *text);
    size_t at, count;
    unsigned least, most;
    const char *fallback; /* for text that was left out */
    unsigned needs;       /* of onv_cli_needs */
} onv_cli_row;

extern const onv_cli_row onv_cli_rows[];
extern const size_t onv_cli_n_rows;

bool onv_cli_takes_value(const onv_cli_row *row); /* one that may not be left out */
bool onv_cli_may_take_value(const onv_cli_row *row);

/* Options of the commands plan and simulate: "--capacity" is one of plan's, say. NULL: of neither. */
const char *onv_cli_command_of(const char *option);

/* Refuses the options that were given and need what was not. */
onv_cli_verdict onv_cli_check_needs(const onv_cli *cli);

#endif
