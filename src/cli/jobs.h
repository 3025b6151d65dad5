/* The analyses of all models, made by several threads, handed over in the order of the command line. */
#ifndef ONV_CLI_JOBS_H
#define ONV_CLI_JOBS_H

#include "cli/baseline.h"
#include "cli/options.h"

typedef struct onv_cli_jobs onv_cli_jobs;

/* What became of a model. */
typedef struct onv_cli_result {
    onv_analysis *analysis; /* the caller's; NULL: there is none, as `error` says of `about` */
    onv_error error;
    const char *about;
    bool ends; /* no further model is to be looked at */
} onv_cli_result;

/* How many models are analysed at once, and how many analyses stand in memory at most: all where they are `kept`. */
size_t onv_cli_n_jobs(const onv_cli *cli);
size_t onv_cli_n_waiting(const onv_cli *cli, bool kept);

/* Starts the threads, which wait for onv_cli_jobs_begin, so that the process can be confined between the two. With one
 * job there are none: onv_cli_jobs_next analyses. NULL with a message. */
onv_cli_jobs *onv_cli_jobs_start(const onv_cli *cli, bool kept);
void onv_cli_jobs_begin(onv_cli_jobs *jobs, const onv_cli_baseline *baseline);

/* The next model; where bound dims were found in it, their flags of the command line are set. */
onv_cli_result onv_cli_jobs_next(onv_cli_jobs *jobs);

/* Ends the threads, and what was not handed over. NULL: nothing. */
void onv_cli_jobs_stop(onv_cli_jobs *jobs);

/* One model, now. */
onv_status onv_cli_analyse(const onv_cli *cli, size_t model, const onv_options *options,
                           onv_analysis **result, onv_error *error);

#endif
