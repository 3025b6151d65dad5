#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/guard.h"

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

static bool name_temporary(onv_cli_sink *sink)
{
    if (asprintf(&sink->temporary, "%s.XXXXXX", sink->file) >= 0) return true;
    sink->temporary = NULL;
    errno = ENOMEM;
    return false;
}

bool onv_cli_folder_of(const char *file, char folder[static PATH_MAX])
{
    const char *slash = strrchr(file, '/');
    size_t length = slash == NULL ? 0 : slash == file ? 1 : (size_t)(slash - file);
    if (length >= PATH_MAX) return false;
    snprintf(folder, PATH_MAX, "%.*s", length > 0 ? (int)length : 1, length > 0 ? file : ".");
    return true;
}

/* -1 where the file system has no files without a name, or there is no /proc to name them through. */
static int open_unnamed(const char *file)
{
    char folder[PATH_MAX], place[40];
    if (!onv_cli_folder_of(file, folder)) return -1;
    int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0) return -1;
    snprintf(place, sizeof place, "/proc/self/fd/%d", fd);
    if (access(place, F_OK) == 0) return fd;
    close(fd);
    return -1;
}

/* What bears the name already is replaced at once. */
static bool give_name(onv_cli_sink *sink)
{
    int fd = fileno(sink->stream);
    if (onv_cli_link(fd, sink->file)) return true;
    if (errno != EEXIST || !name_temporary(sink)) return false;
    if (onv_cli_guarded_temporary(sink->temporary, fd) >= 0) return true;
    free(sink->temporary);
    sink->temporary = NULL;
    return false;
}

const char *onv_cli_output_name(const char *file)
{
    return strcmp(file, "-") == 0 ? "standard output" : file;
}

bool onv_cli_open(onv_cli_sink *sink, const char *file)
{
    *sink = (onv_cli_sink){.stream = stdout, .file = onv_cli_output_name(file)};
    if (strcmp(file, "-") == 0) return true;
    if (onv_cli_is_special(file)) {
        sink->stream = fopen(file, "w");
        return sink->stream != NULL || complain(file, "cannot be written");
    }
    int fd = open_unnamed(file);
    sink->is_unnamed = fd >= 0;
    if (fd < 0) {
        if (!name_temporary(sink)) return complain(file, "cannot be written");
        fd = onv_cli_guarded_temporary(sink->temporary, -1);
    }
    mode_t mask = umask(0);
    umask(mask);
    if (fd >= 0) fchmod(fd, 0666 & ~mask);
    sink->stream = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (sink->stream != NULL) return true;
    complain(file, "cannot be written");
    if (fd >= 0) close(fd);
    if (fd >= 0 && sink->temporary != NULL) {
        unlink(sink->temporary);
        onv_cli_release_temporary(sink->temporary);
    }
    free(sink->temporary);
    sink->temporary = NULL;
    return false;
}

void onv_cli_rewind(onv_cli_sink *sink)
{
    if (!sink->is_unnamed && sink->temporary == NULL) return;
    rewind(sink->stream);
    if (ftruncate(fileno(sink->stream), 0) != 0) complain(sink->file, "cannot be written");
}

bool onv_cli_hold(onv_cli_sink *sink)
{
    if (sink->is_unnamed || sink->temporary != NULL) return true;
    sink->behind = sink->stream;
    sink->stream = open_memstream(&sink->held, &sink->held_bytes);
    if (sink->stream != NULL) return true;
    sink->stream = sink->behind;
    sink->behind = NULL;
    return complain(sink->file, "cannot be written");
}

bool onv_cli_let_go(onv_cli_sink *sink)
{
    if (sink->behind == NULL) return true;
    bool good = fclose(sink->stream) == 0;
    sink->stream = sink->behind;
    sink->behind = NULL;
    good = good && fwrite(sink->held, 1, sink->held_bytes, sink->stream) == sink->held_bytes;
    free(sink->held);
    sink->held = NULL;
    return good || complain(sink->file, "cannot be written");
}

bool onv_cli_write(void *sink, const char *text, size_t bytes)
{
    if (fwrite(text, 1, bytes, ((onv_cli_sink *)sink)->stream) == bytes) return true;
    ((onv_cli_sink *)sink)->cause = errno;
    if (errno == EPIPE) onv_cli_note_closed_pipe();
    return false;
}

void onv_cli_explain(const onv_cli_sink *sink, onv_error *error)
{
    if (error->code == ONV_ERR_IO && sink->cause != 0)
        snprintf(error->message, sizeof error->message, "cannot be written: %s",
                 strerror(sink->cause));
}

/* Text that is held back was not to be written. */
static void drop_held(onv_cli_sink *sink)
{
    if (sink->behind == NULL) return;
    fclose(sink->stream);
    free(sink->held);
    sink->stream = sink->behind;
    sink->behind = NULL;
}

bool onv_cli_flush(onv_cli_sink *sink)
{
    return (fflush(sink->stream) == 0 && !ferror(sink->stream)) ||
           complain(sink->file, "cannot be written");
}

bool onv_cli_close(onv_cli_sink *sink, bool keep)
{
    drop_held(sink);
    bool good = fflush(sink->stream) == 0 && !ferror(sink->stream);
    if (!good && keep) complain(sink->file, "cannot be written");
    if (good && keep && sink->is_unnamed && !give_name(sink))
        good = complain(sink->file, "cannot be written");
    if (sink->stream != stdout && fclose(sink->stream) != 0 && good && keep)
        good = complain(sink->file, "cannot be written");
    if (sink->temporary == NULL) return good;
    if (good && keep && rename(sink->temporary, sink->file) != 0)
        good = complain(sink->file, "cannot be written");
    if (!good || !keep) unlink(sink->temporary);
    onv_cli_release_temporary(sink->temporary);
    free(sink->temporary);
    sink->temporary = NULL;
    return good;
}
