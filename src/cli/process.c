#include "cli/process.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/confine.h"
#include "cli/guard.h"
#include "cli/message.h"

static size_t record_bytes(const onv_cli *cli)
{
    return sizeof(onv_cli_record) + cli->analysis.n_dims;
}

onv_cli_record *onv_cli_record_new(const onv_cli *cli)
{
    void *made =
        mmap(NULL, record_bytes(cli), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return made != MAP_FAILED ? made : NULL;
}

/* zeroed; NULL: out of memory */
static void free_record(onv_cli_record *record, const onv_cli *cli)
{
    if (record != NULL) munmap(record, record_bytes(cli));
}

/* A page has one process, which the browser confines; scripts/fuzz-graphs one for many models. */
#if defined __linux__ && !defined ONV_ONE_PROCESS
#define HAS_PROCESSES
#endif

#ifndef HAS_PROCESSES
bool onv_cli_is_isolated(const onv_cli *cli)
{
    (void)cli;
    return false;
}

bool onv_cli_process_start(onv_cli_process *process, const onv_cli *cli, size_t first, size_t count,
                           bool keeps_files, onv_cli_work_fn *work, void *context)
{
    (void)process, (void)cli, (void)first, (void)count, (void)keeps_files, (void)work;
    (void)context;
    errno = ENOSYS;
    return false;
}

bool onv_cli_process_wait(onv_cli_process *processes, size_t count)
{
    (void)processes, (void)count;
    return false;
}
#else

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

bool onv_cli_is_isolated(const onv_cli *cli)
{
    return cli->untrusted || cli->n_models > 1;
}

/* --- In the new process ------------------------------------------------------------------------ */

static void close_files(void)
{
    enum { FIRST = STDERR_FILENO + 1, MOST = 4096 };
#ifdef SYS_close_range
    if (syscall(SYS_close_range, FIRST, ~0U, 0) == 0) return;
#endif
    for (int file = FIRST; file < MOST; file++) close(file);
}

static bool take_streams(const onv_cli_process *process, bool keeps_files)
{
    /* Standard input was read before; it may not be read by models. */
    bool good = dup2(process->said, STDIN_FILENO) >= 0 && dup2(process->out, STDOUT_FILENO) >= 0 &&
                dup2(process->said, STDERR_FILENO) >= 0;
    if (!keeps_files) close_files();
    return good;
}

/* No stream has text of the parent. */
static void live(const onv_cli_process *process, const onv_cli *cli, size_t first, size_t count,
                 bool keeps_files, onv_cli_work_fn *work, void *context, pid_t parent)
{
    /* However the parent ends, this ends with it. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(EXIT_UNUSABLE);
    onv_cli_guard_own_process();
    if (!take_streams(process, keeps_files)) _exit(EXIT_UNUSABLE);
    if (cli->untrusted && !onv_cli_confine(cli, first, count)) exit(EXIT_UNUSABLE);
    work(context, process->record);
    process->record->pipe_closed = onv_cli_is_pipe_closed();
    if (fflush(NULL) != 0 && process->record->worst == EXIT_DONE)
        process->record->worst = EXIT_UNUSABLE;
    process->record->is_done = true;
    /* What looks for leaks or measures coverage works in exit(); a confined process has no files for it. */
    if (cli->untrusted) _exit(EXIT_DONE);
    exit(EXIT_DONE);
}

/* --- In this one ------------------------------------------------------------------------------- */

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec;
}

bool onv_cli_process_start(onv_cli_process *process, const onv_cli *cli, size_t first, size_t count,
                           bool keeps_files, onv_cli_work_fn *work, void *context)
{
    *process = (onv_cli_process){.record = onv_cli_record_new(cli),
                                 .out = memfd_create("output", MFD_CLOEXEC),
                                 .said = memfd_create("messages", MFD_CLOEXEC)};
    pid_t parent = getpid(), pid = -1;
    fflush(NULL); /* what a stream still has would be written by both processes */
    if (process->record != NULL && process->out >= 0 && process->said >= 0) {
        process->record->model = first;
        pid = fork();
    }
    if (pid == 0) live(process, cli, first, count, keeps_files, work, context, parent);
    int cause = errno;
    process->pid = pid;
    if (cli->untrusted) process->late_at = now() + onv_cli_confined_seconds(cli, count);
    if (pid > 0) return true;
    onv_cli_process_end(process, cli);
    errno = cause;
    return false;
}

/* A confined process uses up its processor time, or does nothing. A replay gives its memory back before it ends. */
static void end_late(onv_cli_process *processes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        onv_cli_process *p = &processes[i];
        if (p->pid <= 0 || p->has_ended) continue;
        if (onv_cli_is_stopped(NULL)) kill(p->pid, SIGTERM);
        p->is_late = p->late_at > 0 && now() >= p->late_at;
        if (p->is_late) kill(p->pid, SIGKILL);
    }
}

bool onv_cli_process_wait(onv_cli_process *processes, size_t count)
{
    int status;
    pid_t pid;
    sigset_t ends, before;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    /* While it is blocked, the end of a process is not missed between two calls. */
    sigprocmask(SIG_BLOCK, &ends, &before);
    while ((pid = waitpid(-1, &status, WNOHANG)) == 0) {
        sigtimedwait(&ends, NULL, &(struct timespec){.tv_sec = 1});
        end_late(processes, count);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    for (size_t i = 0; i < count && pid > 0; i++) {
        if (processes[i].pid != pid) continue;
        processes[i].has_ended = true;
        processes[i].status = status;
    }
    return pid > 0;
}
#endif

bool onv_cli_process_is_good(const onv_cli_process *process, const onv_cli *cli, onv_error *why)
{
    *why = (onv_error){.code = ONV_ERR_IO};
#ifdef HAS_PROCESSES
    size_t room = sizeof why->message;
    if (WIFEXITED(process->status) && WEXITSTATUS(process->status) == EXIT_DONE &&
        process->record->is_done)
        return true;
    int by = WIFSIGNALED(process->status) ? WTERMSIG(process->status) : 0;
    if (by == SIGXCPU || process->is_late)
        snprintf(why->message, room,
                 "took more %stime than --untrusted allows; --limit seconds=N raises the "
                 "limit, now %llu",
                 by == SIGXCPU ? "processor " : "", (unsigned long long)cli->limits.seconds);
    else if (by == SIGBUS)
        snprintf(why->message, room, "cannot be read any more: it shrank, or its disk failed");
    else if (by == SIGKILL)
        snprintf(why->message, room,
                 "its process was killed (SIGKILL), probably because memory ran out");
    else if (by > 0)
        snprintf(why->message, room,
                 "its process crashed (signal %d, %s), and this model has no report; the file may "
                 "be damaged or hostile, and the crash is a bug of onnxvram: please report it",
                 by, strsignal(by));
    else
        snprintf(why->message, room,
                 "its process ended early, with status %d, and this model has "
                 "no report",
                 WEXITSTATUS(process->status));
#else
    (void)process, (void)cli;
#endif
    return false;
}

const char *onv_cli_process_output(const onv_cli_process *process, size_t *bytes)
{
    off_t end = lseek(process->out, 0, SEEK_END);
    *bytes = end > 0 ? (size_t)end : 0;
    if (end <= 0) return NULL;
    void *view = mmap(NULL, *bytes, PROT_READ, MAP_PRIVATE, process->out, 0);
    return view != MAP_FAILED ? view : NULL;
}

void onv_cli_process_drop(const char *output, size_t bytes)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the way to shed a const */
    if (output != NULL) munmap((void *)(uintptr_t)output, bytes);
}

void onv_cli_process_repeat(const onv_cli_process *process)
{
    char text[4096];
    lseek(process->said, 0, SEEK_SET);
    for (ssize_t n; (n = read(process->said, text, sizeof text)) > 0;)
        fwrite(text, 1, (size_t)n, stderr);
}

void onv_cli_process_end(onv_cli_process *process, const onv_cli *cli)
{
#ifdef HAS_PROCESSES
    int status;
    if (process->pid > 0 && !process->has_ended) {
        kill(process->pid, SIGKILL);
        while (waitpid(process->pid, &status, 0) < 0 && errno == EINTR) continue;
    }
#endif
    if (process->out >= 0) close(process->out);
    if (process->said >= 0) close(process->said);
    free_record(process->record, cli);
    *process = (onv_cli_process){.out = -1, .said = -1};
}
