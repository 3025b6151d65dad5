#include "cli/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/message.h"

/* A signal handler has nothing but globals; and little may be called in one, so the line is made
 * before. */
static char line[1024];
static size_t line_bytes;

static const char *volatile doomed[ONV_CLI_MAX_TEMPORARIES]; /* the temporary files */

static void remove_temporaries(void)
{
    for (size_t i = 0; i < ONV_CLI_MAX_TEMPORARIES; i++) {
        const char *path = doomed[i];
        if (path != NULL) unlink(path);
    }
}

static void end(int signal_number, siginfo_t *info, void *context)
{
    (void)context;
    /* Anything but an access behind the end of a file is a mistake of ours: die of it. */
    if (info->si_code != BUS_ADRERR) {
        signal(signal_number, SIG_DFL);
        return;
    }
    ssize_t ignored = write(STDERR_FILENO, line, line_bytes);
    (void)ignored;
    remove_temporaries();
    _exit(EXIT_UNUSABLE);
}

void onv_cli_guard(const char *path)
{
    char clean[900];
    onv_printable(path, clean, sizeof clean);
    snprintf(line, sizeof line,
             "onnxvram: %s: cannot be read any more: it shrank, or its disk "
             "failed\n",
             clean);
    line_bytes = strlen(line);
    struct sigaction action = {.sa_sigaction = end, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGBUS, &action, NULL);
}

/* --- Stopping ---------------------------------------------------------------------------------- */

static volatile sig_atomic_t stopped_by;

static void stop(int signal_number)
{
    stopped_by = signal_number;
}

static void remove_and_die(int signal_number)
{
    remove_temporaries();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static const int stop_signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_STOP_SIGNALS = sizeof stop_signals / sizeof stop_signals[0] };

/* `over_ours`: also where another handler of this program stands. */
static void handle_stops(void (*handler)(int), bool over_ours)
{
    struct sigaction action = {.sa_handler = handler}, before;
    for (size_t i = 0; i < N_STOP_SIGNALS; i++) {
        if (sigaction(stop_signals[i], NULL, &before) != 0) continue;
        /* What the caller chose to ignore (nohup) stays ignored. */
        if (before.sa_handler == SIG_DFL || (over_ours && before.sa_handler != SIG_IGN))
            sigaction(stop_signals[i], &action, NULL);
    }
}

void onv_cli_guard_own_process(void)
{
    struct sigaction now;
    for (size_t i = 0; i < ONV_CLI_MAX_TEMPORARIES; i++) doomed[i] = NULL;
    for (size_t i = 0; i < N_STOP_SIGNALS; i++)
        if (sigaction(stop_signals[i], NULL, &now) == 0 && now.sa_handler == remove_and_die)
            signal(stop_signals[i], SIG_DFL);
}

void onv_cli_catch_stop(void)
{
    handle_stops(stop, true);
}

bool onv_cli_link(int unnamed, const char *path)
{
    char from[40];
    snprintf(from, sizeof from, "/proc/self/fd/%d", unnamed);
    return linkat(AT_FDCWD, from, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0;
}

/* As mkstemp(), to be written only: who may not read the folder can make it. */
static int make_temporary(char *path, int unnamed)
{
    enum { LETTERS = 6, ATTEMPTS = 100 };
    static const char from[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    char *end = path + strlen(path) - LETTERS;
    int fd = -1;
    for (int i = 0; i < ATTEMPTS && fd < 0; i++) {
        unsigned char random[LETTERS];
        if (getentropy(random, sizeof random) != 0) return -1;
        for (int k = 0; k < LETTERS; k++) end[k] = from[random[k] % (sizeof from - 1)];
        if (unnamed < 0)
            fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        else if (onv_cli_link(unnamed, path))
            fd = unnamed;
        if (fd < 0 && errno != EEXIST) return -1;
    }
    return fd;
}

/* A signal between the making of the file and the line that says so would leave the file: it waits. */
int onv_cli_guarded_temporary(char *path, int unnamed)
{
    sigset_t stops, before;
    sigemptyset(&stops);
    for (size_t i = 0; i < N_STOP_SIGNALS; i++) sigaddset(&stops, stop_signals[i]);
    sigprocmask(SIG_BLOCK, &stops, &before);
    int fd = make_temporary(path, unnamed);
    int cause = errno;
    if (fd >= 0) {
        size_t i = 0;
        while (i + 1 < ONV_CLI_MAX_TEMPORARIES && doomed[i] != NULL) i++;
        doomed[i] = path;
        handle_stops(remove_and_die, false);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = cause;
    return fd;
}

void onv_cli_release_temporary(const char *path)
{
    for (size_t i = 0; i < ONV_CLI_MAX_TEMPORARIES; i++)
        if (doomed[i] == path) doomed[i] = NULL;
}

bool onv_cli_is_stopped(void *unused)
{
    (void)unused;
    return stopped_by != 0;
}

void onv_cli_note_closed_pipe(void)
{
    stopped_by = SIGPIPE;
}

bool onv_cli_is_pipe_closed(void)
{
    return stopped_by == SIGPIPE;
}

void onv_cli_die_if_stopped(void)
{
    if (stopped_by == 0) return;
    signal(stopped_by, SIG_DFL);
    raise(stopped_by);
}
