/* Messages on standard error: one line, safe to show. */
#ifndef ONV_CLI_MESSAGE_H
#define ONV_CLI_MESSAGE_H

#include "onnxvram/onnxvram.h"

enum {
    EXIT_DONE = 0,
    EXIT_UNUSABLE = 1,
    EXIT_USAGE = 2,
    EXIT_NO_FIT = 3,
    EXIT_CONTRADICTED = 4,
    EXIT_WARNED = 5 /* with --strict, where the status would be EXIT_DONE */
};

/* Wrong usage; returns EXIT_USAGE. */
int onv_cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What went wrong with a file: its name, the node and the cause. Returns the exit status. */
int onv_cli_complain(const char *path, const onv_error *error);

/* After answers like --help, which are written to standard output: the exit status. */
int onv_cli_answered(void);

#endif
