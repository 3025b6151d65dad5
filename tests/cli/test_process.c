/* Processes of models: what ends one is said and takes nothing else with it; and what a confined one cannot do, tried
 * from inside. */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/confine.h"
#include "cli/message.h"
#include "cli/process.h"
#include "support/folder.h"
#include "support/test.h"

/* Builds with sanitizers have no filter of system calls. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#endif

static const char *model_names[] = {"a.onnx", "b.onnx"};

static onv_cli make_cli(void)
{
    return (onv_cli){.models = model_names,
                     .n_models = 2,
                     .analysis.n_dims = 3,
                     .limits = {.arena_bytes = 64 << 20, .seconds = 1}};
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

static void start(onv_cli_process *p, const onv_cli *cli, onv_cli_work_fn *work)
{
    assert_true(onv_cli_process_start(p, cli, 0, 1, false, work, NULL));
}

/* --- Ends -------------------------------------------------------------------------------------- */

static void do_all(void *context, onv_cli_record *record)
{
    (void)context;
    fputs("the report", stdout);
    fputs("onnxvram: a message\n", stderr);
    record->worst = EXIT_NO_FIT;
    record->dims_found[2] = true;
}

static void crash(void *context, onv_cli_record *record)
{
    (void)context, (void)record;
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(SIGSEGV, SIG_DFL); /* whatever a sanitizer makes of it */
    raise(SIGSEGV);
}

static void be_killed(void *context, onv_cli_record *record)
{
    (void)context, (void)record;
    raise(SIGKILL);
}

static void lose_the_file(void *context, onv_cli_record *record)
{
    (void)context, (void)record;
    signal(SIGBUS, SIG_DFL);
    raise(SIGBUS);
}

static void leave(void *context, onv_cli_record *record)
{
    (void)context, (void)record;
    _exit(0); /* before all is done */
}

static void work_for_ever(void *context, onv_cli_record *record)
{
    (void)context;
    struct rlimit second = {1, 5};
    setrlimit(RLIMIT_CPU, &second);
    for (volatile uint64_t i = 0;; i++) record->n_analysed = i;
}

TEST(ends_are_told_apart)
{
    static const struct {
        onv_cli_work_fn *work;
        const char *says; /* NULL: it ends well */
    } rows[] = {
        {do_all, NULL},
        {crash, "crashed (signal 11"},
        {be_killed, "was killed (SIGKILL)"},
        {lose_the_file, "it shrank, or its disk failed"},
        {leave, "ended early, with status 0"},
        {work_for_ever, "--limit seconds=N"},
    };
    onv_cli cli = make_cli();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        onv_cli_process p;
        onv_error why;
        size_t bytes;
        start(&p, &cli, rows[i].work);
        assert_true(onv_cli_process_wait(&p, 1));
        assert_true(p.has_ended);
        assert_int_equal(onv_cli_process_is_good(&p, &cli, &why), rows[i].says == NULL);
        if (rows[i].says != NULL && strstr(why.message, rows[i].says) == NULL)
            fail_msg("'%s' lacks '%s'", why.message, rows[i].says);
        const char *text = onv_cli_process_output(&p, &bytes);
        if (rows[i].says == NULL) {
            assert_int_equal(bytes, strlen("the report"));
            assert_memory_equal(text, "the report", bytes);
            assert_int_equal(p.record->worst, EXIT_NO_FIT);
            assert_int_equal(p.record->dims_found[2], true);
        }
        onv_cli_process_drop(text, bytes);
        onv_cli_process_end(&p, &cli);
    }
    assert_false(onv_cli_process_wait(NULL, 0));
}

static void sleep_on(void *context, onv_cli_record *record)
{
    (void)context;
    record->is_done = false;
    for (;;) pause();
}

/* One that still runs is ended, and one whose parent has gone ends with it. */
TEST(none_outlives_the_program)
{
    onv_cli cli = make_cli();
    onv_cli_process p;
    start(&p, &cli, sleep_on);
    pid_t pid = p.pid;
    onv_cli_process_end(&p, &cli);
    assert_int_equal(kill(pid, 0), -1);
    assert_int_equal(errno, ESRCH);
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t parent = fork();
    assert_true(parent >= 0);
    if (parent == 0) {
        if (!onv_cli_process_start(&p, &cli, 0, 1, true, sleep_on, NULL)) _exit(1);
        raise(SIGKILL);
    }
    close(ends[1]);
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_true(WIFSIGNALED(status));
    char none;
    assert_int_equal(read(ends[0], &none, 1), 0); /* both have closed the other end */
    close(ends[0]);
}

static void stop(void *context, onv_cli_record *record)
{
    (void)context, (void)record;
    for (;;) raise(SIGSTOP);
}

/* One that does nothing uses up no processor time. */
TEST(a_confined_one_that_sleeps_is_ended)
{
    onv_cli cli = make_cli();
    onv_cli_process p;
    onv_error why;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    start(&p, &cli, do_all);
    assert_int_equal(p.late_at, 0); /* only a confined one may be hostile */
    assert_true(onv_cli_process_wait(&p, 1));
    onv_cli_process_end(&p, &cli);
    cli.untrusted = true;
    cli.limits.seconds = 1000;
    start(&p, &cli, stop);
    assert_in_range(p.late_at, (uint64_t)now.tv_sec + 2000, (uint64_t)now.tv_sec + 2100);
    p.late_at = (uint64_t)now.tv_sec;
    assert_true(onv_cli_process_wait(&p, 1));
    assert_true(p.has_ended && p.is_late);
    assert_false(onv_cli_process_is_good(&p, &cli, &why));
    assert_non_null(
        strstr(why.message, "took more time than --untrusted allows; --limit seconds=N"));
    onv_cli_process_end(&p, &cli);
    cli.limits.seconds = UINT64_MAX;
    assert_in_range(onv_cli_confined_seconds(&cli, 2), UINT32_MAX, (uint64_t)1 << 33);
}

/* --- Confinement ------------------------------------------------------------------------------- */

/* Each tries something, and returns whether it could. */
static bool can_open(const char *file, int flags)
{
    int fd = open(file, flags | O_CLOEXEC, 0600);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

static bool makes_a_file(void)
{
    return can_open("made", O_WRONLY | O_CREAT);
}

static bool changes_the_model(void)
{
    return can_open("a.onnx", O_WRONLY);
}

static bool truncates_the_model(void)
{
    return truncate("a.onnx", 0) == 0;
}

static bool removes_the_model(void)
{
    return unlink("a.onnx") == 0;
}

static bool renames_the_model(void)
{
    return rename("a.onnx", "c.onnx") == 0;
}

static bool links_the_model(void)
{
    return link("a.onnx", "c.onnx") == 0 || symlink("a.onnx", "d.onnx") == 0;
}

static bool makes_a_folder(void)
{
    return mkdir("folder", 0700) == 0;
}

static bool reads_another_model(void)
{
    return can_open("b.onnx", O_RDONLY);
}

static bool reads_a_secret(void)
{
    return can_open("/etc/passwd", O_RDONLY) || can_open("secret", O_RDONLY);
}

static bool lists_a_folder(void)
{
    return can_open(".", O_RDONLY | O_DIRECTORY);
}

static bool opens_a_socket(void)
{
    return socket(AF_INET, SOCK_STREAM, 0) >= 0 || socket(AF_UNIX, SOCK_STREAM, 0) >= 0;
}

static bool runs_a_program(void)
{
    char *const arguments[] = {(char *)(uintptr_t) "true", NULL};
    return execve("/bin/true", arguments, arguments + 1) == 0;
}

static bool starts_a_process(void)
{
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) _exit(0);
    return pid > 0;
}

static bool traces_its_parent(void)
{
    return ptrace(PTRACE_ATTACH, getppid(), NULL, NULL) == 0 ||
           ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0;
}

static bool signals_its_parent(void)
{
    return kill(getppid(), 0) == 0 || syscall(SYS_tgkill, getppid(), getppid(), 0) == 0;
}

static bool raises_a_limit(void)
{
    struct rlimit more = {.rlim_cur = 1000, .rlim_max = 1000};
    return setrlimit(RLIMIT_NOFILE, &more) == 0;
}

static bool takes_much_memory(void)
{
    return mmap(NULL, (size_t)4 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0) != MAP_FAILED;
}

static const struct attempt {
    const char *name;
    bool (*could)(void);
    bool
        by_files; /* Landlock refuses it; else seccomp and limits, which builds with sanitizers lack */
} attempts[] = {
    {"makes a file", makes_a_file, true},
    {"changes the model", changes_the_model, true},
    {"truncates the model", truncates_the_model, false},
    {"removes the model", removes_the_model, true},
    {"renames the model", renames_the_model, true},
    {"links the model", links_the_model, true},
    {"makes a folder", makes_a_folder, true},
    {"reads another model", reads_another_model, true},
    {"reads a secret", reads_a_secret, true},
    {"lists a folder", lists_a_folder, true},
    {"opens a socket", opens_a_socket, false},
    {"starts a process", starts_a_process, false},
    {"traces its parent", traces_its_parent, false},
    {"signals its parent", signals_its_parent, false},
    {"raises a limit", raises_a_limit, false},
    {"takes much memory", takes_much_memory, false},
    {"runs a program", runs_a_program, false},
};

enum { N_ATTEMPTS = sizeof attempts / sizeof attempts[0] };

static void attempt_all(void *context, onv_cli_record *record)
{
    (void)context;
    char text[8] = "";
    int model = open("a.onnx", O_RDONLY | O_CLOEXEC);
    if (model < 0 || read(model, text, 5) != 5 || strcmp(text, "model") != 0) abort();
    for (size_t i = 0; i < N_ATTEMPTS; i++) {
#ifdef HAS_SANITIZER
        if (!attempts[i].by_files) continue;
#endif
        if (attempts[i].could()) record->n_analysed |= (uint64_t)1 << i;
    }
    if (sigaction(SIGALRM, NULL, NULL) != 0) abort(); /* what is needed is there */
}

TEST(a_confined_process_can_do_nothing_else)
{
    onv_cli cli = make_cli();
    onv_cli_process p;
    onv_error why;
    long landlock = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    write_file("a.onnx", "model");
    write_file("b.onnx", "model");
    write_file("secret", "secret");
    cli.untrusted = true;
    /* The process that waits is confined, too: a test of it has to be one of its own. */
    fflush(NULL);
    pid_t tester = fork();
    assert_true(tester >= 0);
    if (tester == 0) {
        if (!onv_cli_confine_files(&cli)) _exit(1);
        start(&p, &cli, attempt_all);
        onv_cli_process_wait(&p, 1);
        bool is_good = onv_cli_process_is_good(&p, &cli, &why);
        if (!is_good) {
            onv_cli_process_repeat(&p);
            fprintf(stderr, "%s\n", why.message);
        }
        for (size_t i = 0; i < N_ATTEMPTS; i++) {
            if ((p.record->n_analysed >> i & 1) == 0 || (landlock < 1 && attempts[i].by_files))
                continue;
            fprintf(stderr, "a confined process %s\n", attempts[i].name);
            is_good = false;
        }
        _exit(is_good ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(tester, &status, 0), tester);
    assert_int_equal(status, 0);
    assert_int_equal(access("made", F_OK), -1);
    if (landlock < 1) print_message("this kernel has no Landlock: files were not looked at\n");
}

/* The attempts are ones that succeed elsewhere, so that a failure means something. */
TEST(a_free_process_can)
{
    static const char *const not_everywhere[] = {"traces its parent", "runs a program",
                                                 "raises a limit", "opens a socket"};
    fflush(NULL);
    pid_t tester = fork();
    assert_true(tester >= 0);
    if (tester == 0) {
        for (size_t i = 0; i < N_ATTEMPTS; i++) {
            bool counts = true;
            for (size_t k = 0; k < sizeof not_everywhere / sizeof not_everywhere[0]; k++)
                counts = counts && strcmp(attempts[i].name, not_everywhere[k]) != 0;
            write_file("a.onnx", "model");
            write_file("b.onnx", "model");
            if (!counts || attempts[i].could()) continue;
            fprintf(stderr, "no process %s here\n", attempts[i].name);
            _exit(1);
        }
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(tester, &status, 0), tester);
    assert_int_equal(status, 0);
}

TEST_GROUP(folder_enter, folder_leave)
