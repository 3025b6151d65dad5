/* The command line. One table (table.c) says what options there are, another one what commands (commands.c); parsing,
 * help, completions and the checks all read them. */
#ifndef ONV_CLI_OPTIONS_H
#define ONV_CLI_OPTIONS_H

#include <stdio.h>

#include "cli/input.h"
#include "onnxvram/onnxvram.h"

typedef enum onv_cli_color { ONV_COLOR_AUTO, ONV_COLOR_ALWAYS, ONV_COLOR_NEVER } onv_cli_color;

/* One kind of output and where it goes: "-" is standard output. */
typedef struct onv_cli_output {
    onv_format format;
    const char *file;
} onv_cli_output;

enum {
    ONV_CLI_MAX_OUTPUTS = 12,
    ONV_CLI_MAX_BUDGETS = 32,
    ONV_CLI_MAX_AXES = 4,
    ONV_CLI_MAX_ROWS = 96,
    ONV_CLI_MAX_SPELLINGS = 16,
    ONV_CLI_MAX_COMMANDS = 24
};

/* A dim, or the batch (NULL), and its sizes: of a sweep. */
typedef struct onv_cli_axis {
    const char *dim;
    int64_t *sizes;
    size_t n_sizes;
} onv_cli_axis;

typedef struct onv_cli {
    struct onv_cli_kept *kept; /* memory that goes with this struct: onv_cli_alloc */
    onv_options analysis;      /* its arrays are in `kept`, its limits are the next member */
    onv_limits limits;
    onv_report_options report;
    onv_failed_file *failed; /* by place in `failures`, which the report has */
    onv_failed_files failures;
    onv_cli_color color;
    onv_cli_output outputs[ONV_CLI_MAX_OUTPUTS];
    size_t n_outputs;
    char *page;         /* the name of the page where none is given */
    const char **words; /* of the command line, its command first */
    const char **models;
    unsigned *instances; /* by model */
    size_t n_models;
    unsigned jobs;        /* at once; 0: as many as there are cores */
    const char *baseline; /* a report of before */
    onv_format format;    /* of the report, where nothing else takes its place */
    bool is_diff;         /* of the two models */
    bool is_compare;      /* with what was measured, and nothing else is printed */
    const struct onv_cli_command *command;
    const char *genai, *triton; /* a folder in place of models (deploy.h) */
    bool together;              /* all of them in one process, */
    bool sequential;            /* each ends before the next one begins */
    onv_together_info sessions;
    bool untrusted;        /* the models are */
    const char **profiles; /* of TensorRT: names whose sizes an engine is built for */
    size_t n_profiles;
    onv_budget budgets[ONV_CLI_MAX_BUDGETS];
    onv_cli_input input; /* where it is one of the models */
    onv_dim_binding *dims;
    bool *dims_found; /* in one model at least */
    onv_cli_axis axes[ONV_CLI_MAX_AXES];
    size_t n_axes;
    onv_shape_binding *shapes;
    onv_input_value *input_values;
    const char **freeze, **train_only, **inplace, **ort; /* of the command line */
    bool given[ONV_CLI_MAX_ROWS];                        /* by row of the table of options */
    bool brought[ONV_CLI_MAX_ROWS]; /* by the command, and not on the command line */
} onv_cli;

typedef enum onv_cli_verdict {
    ONV_CLI_RUN,   /* go on */
    ONV_CLI_DONE,  /* --help or --version was answered */
    ONV_CLI_USAGE, /* a message was written to standard error */
} onv_cli_verdict;

/* The words behind argv[0], for a command that analyses. */
onv_cli_verdict onv_cli_parse(onv_cli *cli, const struct onv_cli_command *command, int argc,
                              char **argv);
void onv_cli_cleanup(onv_cli *cli);

/* Zeroed memory, or a copy of so many characters as a string, until the cleanup; NULL: out of memory. */
void *onv_cli_alloc(onv_cli *cli, size_t bytes);
char *onv_cli_copy(onv_cli *cli, const char *text, size_t length);

/* How wide reports are, and with which characters and colours: what the terminal can show. */
void onv_cli_fit_terminal(onv_cli *cli);

/* Refuses options that exclude or need each other, with a message; completes what follows from others: the
 * report where no other output is asked for, what --untrusted and diff bring with them. */
onv_cli_verdict onv_cli_check(onv_cli *cli);

#endif
