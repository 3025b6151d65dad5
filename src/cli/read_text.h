/* Configurations: a small file as a whole, and what is wrong with one. */
#ifndef ONV_CLI_READ_TEXT_H
#define ONV_CLI_READ_TEXT_H

#include "onnxvram/onnxvram.h"

/* The caller frees it. NULL: `error` says what is wrong: there is none, it is no file, it has more than 4 MiB. */
char *onv_cli_read_text(const char *path, size_t *bytes, onv_error *error);

/* What was expected of a file; false. */
bool onv_cli_fail(onv_error *error, onv_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
