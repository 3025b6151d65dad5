/* Reports that are written model by model. */
#ifndef ONV_CLI_STREAM_H
#define ONV_CLI_STREAM_H

#include "cli/options.h"
#include "cli/output.h"

typedef struct onv_cli_stream {
    onv_cli_sink sink;
    onv_report_stream *report; /* NULL: nothing more is written */
    bool is_open;
} onv_cli_stream;

/* Each returns an exit status, with a message where something went wrong; after that nothing more is written, and what
 * was begun vanishes. */
int onv_cli_stream_open(onv_cli_stream *stream, const onv_cli *cli, const onv_cli_output *output);

/* Adds what onv_report_part wrote of a model. What goes to standard output, to devices and pipes waits until it `may_show`. */
int onv_cli_stream_add(onv_cli_stream *stream, const void *part, size_t bytes, bool may_show);

/* Nothing more is written, as the part of a model is missing. */
void onv_cli_stream_fail(onv_cli_stream *stream);
int onv_cli_stream_close(onv_cli_stream *stream, bool keep);

#endif
