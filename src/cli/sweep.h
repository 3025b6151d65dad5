/* `onnxvram sweep`: the answer at each of many sizes. */
#ifndef ONV_CLI_SWEEP_H
#define ONV_CLI_SWEEP_H

#include "cli/options.h"
#include "cli/output.h"

enum { ONV_SWEEP_MAX_RUNTIMES = 8 };

/* The answer at one size of each axis. */
typedef struct onv_sweep_point {
    int64_t sizes[ONV_CLI_MAX_AXES];
    bool is_answered;           /* else the model does not take these sizes */
    size_t n_runtimes, largest; /* `largest`: the one that the answer is of */
    onv_answer_runtime_info runtimes[ONV_SWEEP_MAX_RUNTIMES]; /* without texts */
    bool fits[ONV_CLI_MAX_BUDGETS];                           /* by device */
} onv_sweep_point;

typedef struct onv_sweep {
    const char *model;
    const onv_cli_axis *axes; /* of the command line */
    size_t n_axes;
    onv_sweep_point *points; /* the last axis runs fastest */
    size_t n_points;
    /* Names are of the first answer. */
    char runtimes[ONV_SWEEP_MAX_RUNTIMES][32];
    size_t n_runtimes;
    char devices[ONV_CLI_MAX_BUDGETS][64];
    uint64_t usable[ONV_CLI_MAX_BUDGETS];
    size_t n_devices;
    char gpu[64];
} onv_sweep;

/* Of a sweep, a list in place of one size; `dim` NULL: of the batch. */
bool onv_cli_takes_list(const onv_cli *cli, const char *sizes);
onv_cli_verdict onv_cli_add_axis(onv_cli *cli, const char *dim, const char *sizes);

/* Text, CSV, JSON, a picture or a page; false without memory. What could not be written is told when the sink is closed. */
bool onv_sweep_write(const onv_sweep *sweep, onv_format format, bool unicode, onv_cli_sink *sink);

#endif
