#include "cli/read_text.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Configurations are short, and JSON takes some ten times as much memory as its text. */
enum { MOST_BYTES = 4 << 20 };

bool onv_cli_fail(onv_error *error, onv_status code, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    *error = (onv_error){.code = code};
    vsnprintf(error->message, sizeof error->message, format, list);
    va_end(list);
    return false;
}

char *onv_cli_read_text(const char *path, size_t *bytes, onv_error *error)
{
    struct stat about;
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    char *text = NULL;
    if (file < 0 || fstat(file, &about) != 0 || !S_ISREG(about.st_mode))
        onv_cli_fail(error, ONV_ERR_IO, "there is no such file");
    else if (about.st_size > MOST_BYTES)
        onv_cli_fail(error, ONV_ERR_IO, "it has more than 4 MiB");
    else if ((text = malloc((size_t)about.st_size + 1)) == NULL)
        onv_cli_fail(error, ONV_ERR_IO, "out of memory");
    ssize_t got = text != NULL ? read(file, text, (size_t)about.st_size) : 0;
    *bytes = got > 0 ? (size_t)got : 0;
    if (file >= 0) close(file);
    return text;
}
