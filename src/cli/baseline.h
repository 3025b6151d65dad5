/* An earlier report, to compare with. */
#ifndef ONV_CLI_BASELINE_H
#define ONV_CLI_BASELINE_H

#include "cli/message.h"

typedef struct onv_cli_baseline onv_cli_baseline;

/* Reads the report; NULL with a message on standard error. */
onv_cli_baseline *onv_cli_open_baseline(const char *file);
void onv_cli_close_baseline(onv_cli_baseline *baseline);

/* What it says of the model of that file name, or of its only one; until the next call. NULL with a message
 * where there is none. */
const onv_baseline *onv_cli_baseline_of(onv_cli_baseline *baseline, const char *path);

#endif
