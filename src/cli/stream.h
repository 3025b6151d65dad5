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

/* What goes to standard output, to devices and pipes waits until it `may_show`. */
int onv_cli_stream_add(onv_cli_stream *stream, const onv_analysis *analysis, bool may_show);
int onv_cli_stream_close(onv_cli_stream *stream, bool keep);

#endif
