#include "cli/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/guard.h"
#include "onnxvram/onnxvram.h"

static bool complain(const char *file, const char *what)
{
    char clean[1024];
    int cause = errno;
    if (cause == EPIPE) onv_cli_note_closed_pipe();
    if (onv_cli_is_pipe_closed()) return false;
    onv_printable(file, clean, sizeof clean);
    fprintf(stderr, "onnxvram: %s: %s: %s\n", clean, what, strerror(cause));
    return false;
}

bool onv_cli_is_special(const char *file)
{
    struct stat status;
    return stat(file, &status) == 0 && !S_ISREG(status.st_mode);
}

bool onv_cli_open(onv_cli_sink *sink, const char *file)
{
    *sink = (onv_cli_sink){.stream = stdout, .file = "standard output"};
    if (strcmp(file, "-") == 0) return true;
    sink->file = file;
    if (onv_cli_is_special(file)) {
        sink->stream = fopen(file, "w");
        return sink->stream != NULL || complain(file, "cannot be written");
    }
    if (asprintf(&sink->temporary, "%s.XXXXXX", file) < 0) {
        sink->temporary = NULL;
        errno = ENOMEM;
        return complain(file, "cannot be written");
    }
    int fd = onv_cli_guarded_temporary(sink->temporary);
    mode_t mask = umask(0);
    umask(mask);
    if (fd >= 0) fchmod(fd, 0666 & ~mask);
    sink->stream = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (sink->stream != NULL) return true;
    complain(file, "cannot be written");
    if (fd >= 0) {
        close(fd);
        unlink(sink->temporary);
        onv_cli_release_temporary();
    }
    free(sink->temporary);
    return false;
}

bool onv_cli_write(void *sink, const char *text, size_t bytes)
{
    if (fwrite(text, 1, bytes, ((onv_cli_sink *)sink)->stream) == bytes) return true;
    if (errno == EPIPE) onv_cli_note_closed_pipe();
    return false;
}

bool onv_cli_close(onv_cli_sink *sink, bool keep)
{
    bool good = fflush(sink->stream) == 0 && !ferror(sink->stream);
    if (!good && keep) complain(sink->file, "cannot be written");
    if (sink->stream != stdout && fclose(sink->stream) != 0 && good && keep)
        good = complain(sink->file, "cannot be written");
    if (sink->temporary == NULL) return good;
    if (good && keep && rename(sink->temporary, sink->file) != 0)
        good = complain(sink->file, "cannot be written");
    if (!good || !keep) unlink(sink->temporary);
    onv_cli_release_temporary();
    free(sink->temporary);
    sink->temporary = NULL;
    return good;
}
