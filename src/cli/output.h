/* Where reports go: standard output, or a file that appears only when it is complete. */
#ifndef ONV_CLI_OUTPUT_H
#define ONV_CLI_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "onnxvram/onnxvram.h"

typedef struct onv_cli_sink {
    FILE *stream;
    const char *file;
    char *temporary; /* beside `file`, where the new file has a name already; else NULL */
    bool is_unnamed; /* it has none yet, and so goes with the program, whatever ends that */
    FILE *behind;    /* while the text is held back: where it is to go; else NULL */
    char *held;
    size_t held_bytes;
    int cause; /* errno of the first write that failed; 0: none did */
} onv_cli_sink;

/* Opens `file` ("-": standard output); false with a message on standard error, and without a stream. */
bool onv_cli_open(onv_cli_sink *sink, const char *file);

/* What is written to "-" or to that file, in messages. */
const char *onv_cli_output_name(const char *file);

/* Starts a file again that another process wrote a part of; what was written in place stays. */
void onv_cli_rewind(onv_cli_sink *sink);

/* What is written in place, and not to a file of its own, waits in memory until onv_cli_let_go. False with a message. */
bool onv_cli_hold(onv_cli_sink *sink);
bool onv_cli_let_go(onv_cli_sink *sink);

/* Writes what is buffered; false with a message. */
bool onv_cli_flush(onv_cli_sink *sink);

/* An onv_write_fn over a sink. */
bool onv_cli_write(void *sink, const char *text, size_t bytes);

/* Puts the cause into the error of a report that could not be written. */
void onv_cli_explain(const onv_cli_sink *sink, onv_error *error);

/* The folder that a file is in, as a path; false: it is too long. */
bool onv_cli_folder_of(const char *file, char folder[static PATH_MAX]);

/* Devices and pipes (/dev/null, /dev/stdout) are written in place. */
bool onv_cli_is_special(const char *file);

/* Closes; the file takes its name if `keep`, else it vanishes. False with a message if what was
 * written could not be kept. */
bool onv_cli_close(onv_cli_sink *sink, bool keep);

#endif
