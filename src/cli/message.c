#include "cli/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

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

bool onv_cli_parse_size(const char *text, uint64_t *bytes)
{
    static const struct {
        const char *name;
        uint64_t factor;
    } units[] = {
        {"", 1},
        {"B", 1},
        {"KB", 1000},
        {"MB", 1000000},
        {"GB", 1000000000},
        {"TB", 1000000000000},
        {"KiB", UINT64_C(1) << 10},
        {"MiB", UINT64_C(1) << 20},
        {"GiB", UINT64_C(1) << 30},
        {"TiB", UINT64_C(1) << 40},
        {"K", UINT64_C(1) << 10},
        {"M", UINT64_C(1) << 20},
        {"G", UINT64_C(1) << 30},
        {"T", UINT64_C(1) << 40},
    };
    if (*text < '0' || *text > '9') return false;
    char *unit;
    long double number = strtold(text, &unit);
    while (*unit == ' ') unit++;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcasecmp(units[i].name, unit) != 0) continue;
        number *= (long double)units[i].factor;
        if (!(number >= 0 && number < 9.2e18L)) return false;
        *bytes = (uint64_t)number;
        return true;
    }
    return false;
}
