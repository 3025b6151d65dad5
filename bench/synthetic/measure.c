/* Runs a program several times and says how long it took and how much memory it held.
 *
 *     measure [-n RUNS] COMMAND [ARGUMENT...]
 *
 * One line: the least wall time and the least processor time of any run in milliseconds, and the
 * largest resident set in KiB, as the kernel accounts them to the whole process (wait4). The least,
 * because other work on the machine only ever adds. The command's own output is thrown away; a run
 * that fails ends the measurement.
 *
 * It is a program of its own because a child inherits the resident set of its parent until exec:
 * measured from a Python or a shell with a large heap, every small program would look large.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct figures {
    double wall_ms, processor_ms;
    long resident_kib;
} figures;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double to_ms(struct timeval t)
{
    return (double)t.tv_sec * 1e3 + (double)t.tv_usec / 1e3;
}

/* Returns the exit status, or -1. */
static int run_once(char **command, figures *f)
{
    double start = now_ms();
    pid_t child = fork();
    if (child < 0) return -1;
    if (child == 0) {
        int null = open("/dev/null", O_WRONLY);
        if (null < 0 || dup2(null, STDOUT_FILENO) < 0) _exit(126);
        execvp(command[0], command);
        fprintf(stderr, "%s: %s\n", command[0], strerror(errno));
        _exit(127);
    }
    int status;
    struct rusage usage;
    while (wait4(child, &status, 0, &usage) < 0)
        if (errno != EINTR) return -1;
    f->wall_ms = now_ms() - start;
    f->processor_ms = to_ms(usage.ru_utime) + to_ms(usage.ru_stime);
    f->resident_kib = usage.ru_maxrss;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    long runs = 1;
    int first = 1;
    if (argc > 3 && strcmp(argv[1], "-n") == 0) {
        runs = strtol(argv[2], NULL, 10);
        first = 3;
    }
    if (first >= argc || runs < 1) {
        fprintf(stderr, "usage: %s [-n RUNS] COMMAND [ARGUMENT...]\n", argv[0]);
        return 2;
    }
    figures best = {0};
    int failed = 0;
    for (long i = 0; i < runs && failed == 0; i++) {
        figures f = {0};
        failed = run_once(argv + first, &f);
        if (i == 0 || f.wall_ms < best.wall_ms) best.wall_ms = f.wall_ms;
        if (i == 0 || f.processor_ms < best.processor_ms) best.processor_ms = f.processor_ms;
        if (f.resident_kib > best.resident_kib) best.resident_kib = f.resident_kib;
    }
    printf("%.2f %.2f %ld\n", best.wall_ms, best.processor_ms, best.resident_kib);
    if (failed == 0) return 0;
    fprintf(stderr, "%s: exit status %d\n", argv[first], failed);
    return 1;
}
