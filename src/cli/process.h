/* Work in a process of its own, so that what ends it takes nothing else with it. Its standard output and error are
 * files in memory; a record in memory that both processes share says how far it came. */
#ifndef ONV_CLI_PROCESS_H
#define ONV_CLI_PROCESS_H

#include <sys/types.h>

#include "cli/options.h"

/* What became of some models. A hostile model may have taken over the process that writes it: no number of it is used
 * unchecked. */
typedef struct onv_cli_record {
    uint8_t is_done;                     /* all work was done, and the rest is filled in */
    uint8_t ends;                        /* no further model is to be analysed */
    uint8_t pipe_closed;                 /* the reader of an output has gone */
    uint8_t kept[ONV_CLI_MAX_OUTPUTS];   /* the output was written */
    uint64_t until[ONV_CLI_MAX_OUTPUTS]; /* its bytes of standard output end there */
    uint64_t
        model; /* the one that is being analysed, by its place in the command line; n_models: none */
    uint64_t n_analysed;
    int32_t worst, verdict; /* exit statuses: of failures; of what was analysed */
    onv_error failed;       /* why the last model that failed did */
    uint8_t dims_found[];   /* by dim of the command line */
} onv_cli_record;

onv_cli_record *onv_cli_record_new(const onv_cli *cli); /* zeroed; NULL: out of memory */
typedef struct onv_cli_process {
    onv_cli_record *record;
    int out, said;    /* its standard output and error; -1: none */
    pid_t pid;        /* 0: it was not started */
    uint64_t late_at; /* of the monotonic clock, s: it is killed then; 0: never */
    bool is_late;     /* it was */
    bool has_ended;
    int status; /* then, as of waitpid() */
} onv_cli_process;

/* Whether models are analysed in processes of their own: untrusted ones, and several. */
bool onv_cli_is_isolated(const onv_cli *cli);

/* Starts a process that calls `work`; `count` models from `first` are what it may read. It sees no file that is open
 * here, but for those of `keeps_files`. False: errno says why, and nothing was started. */
typedef void onv_cli_work_fn(void *context, onv_cli_record *record);
bool onv_cli_process_start(onv_cli_process *process, const onv_cli *cli, size_t first, size_t count,
                           bool keeps_files, onv_cli_work_fn *work, void *context);

/* Waits until one of the processes ends; one that is late is ended. False: none is left. */
bool onv_cli_process_wait(onv_cli_process *processes, size_t count);

/* Whether it did all of its work; else why not. */
bool onv_cli_process_is_good(const onv_cli_process *process, const onv_cli *cli, onv_error *why);

/* All that it wrote to standard output, until onv_cli_process_drop; NULL: nothing, or out of memory. */
const char *onv_cli_process_output(const onv_cli_process *process, size_t *bytes);
void onv_cli_process_drop(const char *output, size_t bytes);

/* Copies to standard error what it said there. */
void onv_cli_process_repeat(const onv_cli_process *process);

/* Kills it where it runs, and frees what it left. */
void onv_cli_process_end(onv_cli_process *process, const onv_cli *cli);

#endif
