/* Runs a program several times and says how long it took and how much memory it held.
 *
 *     measure [-n RUNS] COMMAND [ARGUMENT...]
 *
 * One line: the fastest and the median wall time in milliseconds, and the largest resident set of
 * any run in KiB, as the kernel accounts it to the whole process (wait4). The command's own output
 * is thrown away; a run that fails ends the measurement.
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

enum { MOST_RUNS = 1000 };

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* The wall time of one run in *ms; raises *rss_kib. Returns the exit status, or -1. */
static int run_once(char **command, double *ms, long *rss_kib)
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
    *ms = now_ms() - start;
    if (usage.ru_maxrss > *rss_kib) *rss_kib = usage.ru_maxrss;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    long runs = 1;
    int first = 1;
    if (argc > 3 && strcmp(argv[1], "-n") == 0) {
        runs = strtol(argv[2], NULL, 10);
        first = 3;
    }
    if (first >= argc || runs < 1 || runs > MOST_RUNS) {
        fprintf(stderr, "usage: %s [-n RUNS] COMMAND [ARGUMENT...]\n", argv[0]);
        return 2;
    }
    double ms[MOST_RUNS];
    long rss_kib = 0;
    for (long i = 0; i < runs; i++) {
        int status = run_once(argv + first, &ms[i], &rss_kib);
        if (status != 0) {
            fprintf(stderr, "%s: exit status %d\n", argv[first], status);
            return 1;
        }
    }
    qsort(ms, (size_t)runs, sizeof ms[0], compare);
    printf("%.2f %.2f %ld\n", ms[0], ms[runs / 2], rss_kib);
    return 0;
}
