/* One line on standard error, where that is a terminal, for work that takes more than a second: which model, which
 * stage, how long. It is erased before anything else is written. */
#ifndef ONV_CLI_PROGRESS_H
#define ONV_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

/* Begins to count. Nothing is ever shown where standard error is no terminal, or `quiet`. */
void onv_cli_progress_start(bool quiet);

/* What is worked on from now on: "MODEL", or "MODEL (2 of 3)". */
void onv_cli_progress_begin(const char *what, size_t index, size_t count);

/* The stage of it; onv_options.progress. */
void onv_cli_progress_stage(void *unused, const char *stage);

/* Erases the line; it comes back with the next beginning. */
void onv_cli_progress_end(void);

#endif
