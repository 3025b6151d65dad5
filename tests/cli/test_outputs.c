/* Where the program writes: full disks are failures with one line, closed pipes end it silently, for every kind
 * of output; a file that cannot be written whole, or not to its end, is as it was before. */
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/folder.h"
#include "support/test.h"

extern char **environ;

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

/* Starts the program with these arguments (parted by blanks) and standard output. */
static pid_t start(const char *arguments, int output)
{
    char copy[512], *list[16] = {(char *)(uintptr_t)ONV_BUILD_DIR "/onnxvram"};
    pid_t child;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t how;
    sigset_t all;
    size_t n = 1;
    snprintf(copy, sizeof copy, "%s", arguments);
    for (char *at = strtok(copy, " "); at != NULL && n < 15; at = strtok(NULL, " ")) list[n++] = at;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "errors",
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    /* Whatever is ignored where the tests run (nohup). */
    sigfillset(&all);
    posix_spawnattr_init(&how);
    posix_spawnattr_setsigdefault(&how, &all);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGDEF);
    assert_int_equal(posix_spawn(&child, list[0], &actions, &how, list, environ), 0);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&actions);
    return child;
}

/* It has to fail like any file that cannot be used, with one line that says so. */
static void expect_failure(const char *arguments, int output)
{
    int status;
    char said[4096];
    pid_t child = start(arguments, output);
    assert_int_equal(waitpid(child, &status, 0), child);
    FILE *errors = fopen("errors", "r");
    assert_non_null(errors);
    size_t length = fread(said, 1, sizeof said - 1, errors);
    fclose(errors);
    said[length] = '\0';
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 1)
        fail_msg("'%s' ends with status %x: %s", arguments, (unsigned)status, said);
    char *line = strstr(said, "onnxvram: ");
    if (line == NULL || strchr(line, '\n') == NULL || strchr(line, '\n')[1] != '\0')
        fail_msg("'%s' says: %s", arguments, said);
}

#define MODEL "-b 2 " ONV_SOURCE_DIR "/samples/vgg16.onnx"

static const char *const outputs[] = {
    MODEL,
    "--json " MODEL,
    "--csv " MODEL,
    "--layers " MODEL,
    "--dump=graph " MODEL,
    "--dump=intervals " MODEL,
    "--dump=plan " MODEL,
    "--dump=trace " MODEL,
    "--replay=host --dump=replay " ONV_SOURCE_DIR "/tests/fuzz/corpus/models/residual.onnx -b 2",
    "--train sgd --checkpoint all --plan-out - " MODEL,
    "--help",
    "--version",
    "--list-gpus",
    "plan i.csv",
    "plan --help",
    "simulate t.csv --runtime torch",
    "simulate t.csv --runtime torch --summary",
    "simulate --help",
};
enum { N_OUTPUTS = sizeof outputs / sizeof outputs[0] };

static void write_tables(void)
{
    write_file("i.csv", "id,lower,upper,size\na,0,3,10\nb,1,4,7\n");
    write_file("t.csv", "alloc,a,1000\nalloc,b,3000000,1,name\nfree,a\n");
}

TEST(a_full_disk)
{
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (full < 0) skip();
    write_tables();
    for (size_t i = 0; i < N_OUTPUTS; i++) expect_failure(outputs[i], full);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    expect_failure("--json=/dev/full " MODEL, null);
    expect_failure("--csv=/dev/full " MODEL, null);
    expect_failure("plan -o /dev/full i.csv", null);
    expect_failure("--train sgd --checkpoint all --plan-out /dev/full " MODEL, null);
    close(null);
    close(full);
}

/* The reader has seen enough (head): no message, and the end that SIGPIPE makes. */
static void expect_silence(const char *arguments, int output)
{
    int status;
    struct stat said;
    pid_t child = start(arguments, output);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(stat("errors", &said), 0);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGPIPE || said.st_size > 0)
        fail_msg("'%s' ends with status %x", arguments, (unsigned)status);
}

TEST(a_closed_pipe)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    write_tables();
    for (size_t i = 0; i < N_OUTPUTS; i++) expect_silence(outputs[i], ends[1]);
    /* What goes to a file is kept. */
    expect_silence("--csv --json=kept.json " MODEL, ends[1]);
    assert_int_equal(access("kept.json", R_OK), 0);
    close(ends[1]);
}

static size_t matches(const char *pattern)
{
    glob_t found;
    size_t n = glob(pattern, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
    globfree(&found);
    return n;
}

static void expect_text(const char *name, const char *text)
{
    char found[64];
    FILE *file = fopen(name, "r");
    assert_non_null(file);
    found[fread(found, 1, sizeof found - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(found, text);
}

/* Where there is no room for the new file, the old one is left as it was. */
TEST(a_file_that_cannot_grow)
{
    static const char *const writers[] = {
        "--json=there " MODEL,
        "--csv=there " MODEL,
        "--train sgd --checkpoint all --plan-out there.json " MODEL,
        "plan -o there many.csv",
    };
    struct rlimit before, small = {100, 0};
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    FILE *many = fopen("many.csv", "w");
    assert_non_null(many);
    fputs("id,lower,upper,size\n", many);
    for (int i = 0; i < 100; i++) fprintf(many, "%d,0,3,10\n", i);
    assert_int_equal(fclose(many), 0);
    write_file("there", "as it was");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    for (size_t i = 0; i < sizeof writers / sizeof writers[0]; i++) {
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        expect_failure(writers[i], null);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        expect_text("there", "as it was");
        assert_int_equal(matches("there*"), 1);
    }
    close(null);
}

/* Whether the process has a file open that is to become `name`: beside it, or without a name. */
static bool writes(pid_t child, const char *name)
{
    char place[64], target[4096], beside[64];
    bool found = false;
    snprintf(beside, sizeof beside, "/%s.", name);
    for (int fd = 3; fd < 16 && !found; fd++) {
        snprintf(place, sizeof place, "/proc/%d/fd/%d", (int)child, fd);
        ssize_t length = readlink(place, target, sizeof target - 1);
        if (length < 0) continue;
        target[length] = '\0';
        found = strstr(target, "/#") != NULL || strstr(target, beside) != NULL;
    }
    return found;
}

static bool has_unnamed_files(void)
{
    int fd = open(".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    return fd >= 0 && close(fd) == 0;
}

TEST(an_interrupt_leaves_no_half_file)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGKILL};
    size_t n_signals = has_unnamed_files() ? 4 : 3;
    int ends[2], input = dup(STDIN_FILENO);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0); /* nobody writes: the program waits */
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    for (size_t i = 0; i < n_signals; i++) {
        int status;
        struct timespec pause = {.tv_nsec = 10000000};
        pid_t child = start("plan -o out.csv /dev/stdin", STDOUT_FILENO);
        for (int n = 0; n < 1000 && !writes(child, "out.csv"); n++) nanosleep(&pause, NULL);
        assert_true(writes(child, "out.csv"));
        assert_int_equal(kill(child, signals[i]), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != signals[i])
            fail_msg("signal %d: status %x", signals[i], (unsigned)status);
        assert_int_equal(matches("out.csv*"), 0);
    }
    dup2(input, STDIN_FILENO);
    close(input);
    close(ends[0]);
    close(ends[1]);
}

/* A FIFO with a name may never get a writer: it is not waited for. */
TEST(a_fifo_is_refused)
{
    static const char *const commands[] = {
        "plan in.fifo",
        "simulate --runtime torch in.fifo",
        "in.fifo",
        "-b 1 --op-shapes in.fifo " ONV_SOURCE_DIR "/samples/resnet18.onnx",
        "-b 1 --shape-trace in.fifo " ONV_SOURCE_DIR "/samples/resnet18.onnx",
        "-b 1 --baseline in.fifo " ONV_SOURCE_DIR "/samples/resnet18.onnx",
        "-i input=@in.fifo " ONV_SOURCE_DIR "/samples/resnet18.onnx"};
    assert_int_equal(mkfifo("in.fifo", 0600), 0);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        int status;
        pid_t child = start(commands[i], STDOUT_FILENO);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    }
}

TEST_GROUP(folder_enter, folder_leave)
