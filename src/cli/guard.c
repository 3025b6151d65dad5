#include "cli/guard.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/message.h"

/* A signal handler has nothing but globals; and little may be called in one, so the line is made
 * before. */
static char line[1024];
static size_t line_bytes;

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
