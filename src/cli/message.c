#include "cli/message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/guard.h"
#include "cli/input.h"
#include "cli/progress.h"

int onv_cli_usage(const char *format, ...)
{
    char message[512], clean[1024];
    va_list args;
    onv_cli_progress_end();
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    onv_printable(message, clean, sizeof clean);
    fprintf(stderr, "onnxvram: %s (see onnxvram --help)\n", clean);
    return EXIT_USAGE;
}

int onv_cli_complain(const char *path, const onv_error *error)
{
    char text[1024], clean[2048];
    onv_cli_progress_end();
    if (error->code == ONV_ERR_IO && onv_cli_is_pipe_closed()) return EXIT_UNUSABLE;
    if (onv_cli_is_input(path)) path = "standard input";
    if (error->node[0] != '\0' && error->op_type[0] != '\0')
        snprintf(text, sizeof text, "%s: node '%s' (%s): %s", path, error->node, error->op_type,
                 error->message);
    else if (error->op_type[0] != '\0')
        snprintf(text, sizeof text, "%s: node %s: %s", path, error->op_type, error->message);
    else
        snprintf(text, sizeof text, "%s: %s", path, error->message);
    onv_printable(text, clean, sizeof clean);
    fprintf(stderr, "onnxvram: %s\n", clean);
    return error->code == ONV_ERR_USAGE ? EXIT_USAGE : EXIT_UNUSABLE;
}

int onv_cli_answered(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return EXIT_DONE;
    if (errno == EPIPE) onv_cli_note_closed_pipe();
    if (onv_cli_is_pipe_closed()) return EXIT_UNUSABLE;
    fprintf(stderr, "onnxvram: standard output: cannot be written: %s\n", strerror(errno));
    return EXIT_UNUSABLE;
}
