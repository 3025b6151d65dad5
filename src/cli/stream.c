#include "cli/stream.h"

#include <errno.h>

#include "cli/guard.h"
#include "cli/message.h"

void onv_cli_stream_fail(onv_cli_stream *stream)
{
    onv_report_end(stream->report, NULL);
    stream->report = NULL;
}

static int fail(onv_cli_stream *stream, onv_error *error)
{
    onv_cli_explain(&stream->sink, error);
    int status = onv_cli_complain(stream->sink.file, error);
    onv_cli_stream_fail(stream);
    return status;
}

int onv_cli_stream_open(onv_cli_stream *stream, const onv_cli *cli, const onv_cli_output *output)
{
    onv_error error = {0};
    stream->is_open = onv_cli_open(&stream->sink, output->file);
    if (!stream->is_open || !onv_cli_hold(&stream->sink)) return EXIT_UNUSABLE;
    if (onv_report_begin(output->format, cli->n_models, &cli->report, onv_cli_write, &stream->sink,
                         &stream->report, &error) == ONV_OK)
        return EXIT_DONE;
    return fail(stream, &error);
}

int onv_cli_stream_add(onv_cli_stream *stream, const void *part, size_t bytes, bool may_show)
{
    onv_error error = {0};
    if (stream->report == NULL) return EXIT_DONE;
    if (may_show && !onv_cli_let_go(&stream->sink)) {
        onv_cli_stream_fail(stream);
        return EXIT_UNUSABLE;
    }
    if (onv_report_add_part(stream->report, part, bytes, &error) != ONV_OK)
        return fail(stream, &error);
    /* A reader that has gone is noticed here, before the next model. */
    if (fflush(stream->sink.stream) != 0 && errno == EPIPE) onv_cli_note_closed_pipe();
    return EXIT_DONE;
}

int onv_cli_stream_close(onv_cli_stream *stream, bool keep)
{
    onv_error error = {0};
    if (!stream->is_open) return EXIT_DONE;
    bool is_whole = stream->report != NULL;
    int status = EXIT_DONE;
    if (is_whole && keep && !onv_cli_let_go(&stream->sink)) is_whole = false;
    if (onv_report_end(stream->report, &error) != ONV_OK && is_whole) {
        is_whole = false;
        onv_cli_explain(&stream->sink, &error);
        status = onv_cli_complain(stream->sink.file, &error);
    }
    bool kept = onv_cli_close(&stream->sink, is_whole && keep);
    return status == EXIT_DONE && !kept && keep ? EXIT_UNUSABLE : status;
}
