#include "cli/progress.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <unistd.h>

#include "onnxvram/onnxvram.h"

enum { LINE_BYTES = 240, NAME_BYTES = 120, SECONDS_BYTES = 24 };

/* The signal handler writes the line; it is made before, in the buffer that it does not look at. */
static char lines[2][LINE_BYTES];
static volatile sig_atomic_t current, active, shown, seconds;
static char name[NAME_BYTES];
static size_t columns;

static size_t put(char *to, const char *text)
{
    size_t n = strlen(text);
    memcpy(to, text, n); /* NOLINT(bugprone-not-null-terminated-result): a part of a line */
    return n;
}

static void show(int signal_number)
{
    (void)signal_number;
    char text[LINE_BYTES + SECONDS_BYTES + 16], digits[SECONDS_BYTES];
    size_t n = 0, d = sizeof digits;
    int now = ++seconds;
    if (active == 0) return;
    do digits[--d] = (char)('0' + now % 10);
    while ((now /= 10) > 0);
    n += put(text, "\r");
    n += put(text + n, lines[current]);
    n += put(text + n, ", ");
    memcpy(text + n, digits + d, sizeof digits - d);
    n += sizeof digits - d;
    n += put(text + n, " s\033[K");
    shown = 1;
    ssize_t ignored = write(STDERR_FILENO, text, n);
    (void)ignored;
}

void onv_cli_progress_start(bool quiet)
{
    const char *term = getenv("TERM");
    struct winsize size;
    if (quiet || !isatty(STDERR_FILENO) || term == NULL || strcmp(term, "dumb") == 0) return;
    columns = 80;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) columns = size.ws_col;
    if (columns < (size_t)2 * SECONDS_BYTES) return;
    struct sigaction action = {.sa_handler = show, .sa_flags = SA_RESTART};
    struct itimerval second = {.it_interval.tv_sec = 1, .it_value.tv_sec = 1};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &second, NULL);
}

/* Cut so that it stays on one line of the terminal, and not within a character. */
static void set_line(const char *stage)
{
    char *to = lines[1 - current];
    size_t most = columns - SECONDS_BYTES;
    if (most > LINE_BYTES - 1) most = LINE_BYTES - 1;
    int n = snprintf(to, LINE_BYTES, "onnxvram: %s%s%s", name, stage[0] != '\0' ? ": " : "", stage);
    size_t length = n < LINE_BYTES ? (size_t)n : LINE_BYTES - 1;
    if (length > most) length = most;
    while (length > 0 && ((unsigned char)to[length] & 0xc0) == 0x80) length--;
    to[length] = '\0';
    current = 1 - current;
}

void onv_cli_progress_begin(const char *what, size_t index, size_t count)
{
    if (columns == 0) return;
    const char *slash = strrchr(what, '/');
    size_t n = onv_printable(slash != NULL ? slash + 1 : what, name, NAME_BYTES - 32);
    if (count > 1) snprintf(name + n, NAME_BYTES - n, " (%zu of %zu)", index + 1, count);
    set_line("");
    active = 1;
}

void onv_cli_progress_stage(void *unused, const char *stage)
{
    (void)unused;
    if (columns > 0) set_line(stage);
}

void onv_cli_progress_end(void)
{
    static const char erase[] = "\r\033[K";
    active = 0;
    if (shown == 0) return;
    shown = 0;
    ssize_t ignored = write(STDERR_FILENO, erase, sizeof erase - 1);
    (void)ignored;
}
