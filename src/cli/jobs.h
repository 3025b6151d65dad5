/* A process for each of several models; what they wrote is handed over in the order of the command line. */
#ifndef ONV_CLI_JOBS_H
#define ONV_CLI_JOBS_H

#include "cli/work.h"

typedef struct onv_cli_jobs onv_cli_jobs;

/* Up to --jobs processes work at once, and run ahead of what is handed over. NULL with a message. */
onv_cli_jobs *onv_cli_jobs_new(onv_cli *cli, const onv_cli_baseline *baseline);

/* The process of the next model, which has ended: the caller's until the next call. NULL: there is none, with a message
 * where it could not be started. */
const onv_cli_process *onv_cli_jobs_next(onv_cli_jobs *jobs);

/* Ends the processes that were not handed over. NULL: nothing. */
void onv_cli_jobs_destroy(onv_cli_jobs *jobs);

#endif
