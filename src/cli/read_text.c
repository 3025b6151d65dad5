#include "cli/read_text.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Configurations are short, and JSON takes some ten times as much memory as its text. */
enum { MOST_BYTES = 4 << 20 };

static void fail(onv_error *error, const char *message)
{
    *error = (onv_error){.code = ONV_ERR_IO};
    snprintf(error->message, sizeof error->message, "%s", message);
}

char *onv_cli_read_text(const char *path, size_t *bytes, onv_error *error)
{
    struct stat about;
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    char *text = NULL;
    if (file < 0 || fstat(file, &about) != 0 || !S_ISREG(about.st_mode))
        fail(error, "there is no such file");
    else if (about.st_size > MOST_BYTES)
        fail(error, "it has more than 4 MiB");
    else if ((text = malloc((size_t)about.st_size + 1)) == NULL)
        fail(error, "out of memory");
    ssize_t got = text != NULL ? read(file, text, (size_t)about.st_size) : 0;
    *bytes = got > 0 ? (size_t)got : 0;
    if (file >= 0) close(file);
    return text;
}
