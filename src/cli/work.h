/* The work on some models, in this process: they are analysed, reported and judged. */
#ifndef ONV_CLI_WORK_H
#define ONV_CLI_WORK_H

#include "cli/baseline.h"
#include "cli/message.h"
#include "cli/output.h"
#include "cli/process.h"

typedef struct onv_cli_task {
    onv_cli *cli;                     /* dims_found becomes true where a dim is found */
    size_t first, count;              /* models of the command line */
    const onv_cli_baseline *baseline; /* NULL: none */
    /* By output, where its report of all these models goes; one without a stream is skipped. NULL: the only model is
     * written as a part of each report, one after the other, to standard output. */
    onv_cli_sink *sinks;
    const onv_error *
        lost; /* by model: why it has no analysis, where it has a code; NULL: all can be analysed */
} onv_cli_task;

/* An onv_cli_work_fn over an onv_cli_task. Messages go to standard error. */
void onv_cli_work(void *context, onv_cli_record *record);

/* The same, where no model has all dims that were bound: says of the first one which it has. */
void onv_cli_work_on_dims(void *task, onv_cli_record *record);

/* Says what went wrong with a model, and keeps it for reports. Returns the exit status. */
int onv_cli_fail_model(onv_cli *cli, size_t model, const onv_error *why);

/* Says the warnings of an analysis whose report has none. */
void onv_cli_tell_warnings(const onv_analysis *analysis, const char *model);

/* A dim of the command line that no model has, or NULL. Of several models some may lack one. */
const onv_dim_binding *onv_cli_lost_dim(const onv_cli *cli);

/* What came of the models so far: exit statuses of failures, and of what was analysed. */
typedef struct onv_cli_outcome {
    int32_t worst, verdict;
    size_t n_analysed;
} onv_cli_outcome;

static inline void onv_cli_worsen(int32_t *status, int by)
{
    if (by > *status) *status = by < EXIT_USAGE ? by : EXIT_USAGE;
}

/* Of two verdicts the one that counts: a contradiction, then what does not fit, then warnings. */
int onv_cli_worse(int a, int b);

/* Reports of models that have a process each (stream.c): whether the options allow that, and writing them all. */
bool onv_cli_can_stream(const onv_cli *cli);
void onv_cli_stream_all(onv_cli *cli, const onv_cli_baseline *baseline, onv_cli_outcome *outcome);

#endif
