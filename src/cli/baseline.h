/* An earlier report, or a snapshot of PyTorch, to compare with. */
#ifndef ONV_CLI_BASELINE_H
#define ONV_CLI_BASELINE_H

#include "cli/message.h"

enum { ONV_CLI_MOST_FIGURES = 32 };

typedef struct onv_cli_baseline onv_cli_baseline;

/* What it says of one model. Strings belong to the baseline, `bindings` is the caller's to free. */
typedef struct onv_cli_figures {
    onv_baseline baseline;
    onv_figure at[ONV_CLI_MOST_FIGURES];
    onv_dim_binding *bindings;
} onv_cli_figures;

/* Reads the report; NULL with a message on standard error. */
onv_cli_baseline *onv_cli_open_baseline(const char *file);
void onv_cli_close_baseline(onv_cli_baseline *baseline);

/* What it says of the model of that file name, or of its only one; from any thread. False, with the error, where there
 * is none; a snapshot has one for any model, of what PyTorch reserves. The figures stay where they are while they are used. */
bool onv_cli_baseline_of(const onv_cli_baseline *baseline, const char *path, bool trains,
                         onv_cli_figures *figures, onv_error *error);

#endif
