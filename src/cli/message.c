#include "cli/message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int onv_cli_usage(const char *format, ...)
{
    char message[512], clean[1024];
    va_list args;
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
    fprintf(stderr, "onnxvram: standard output: cannot be written: %s\n", strerror(errno));
    return EXIT_UNUSABLE;
}
