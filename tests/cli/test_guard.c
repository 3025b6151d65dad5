/* A mapped file that shrinks ends the program with a line and a status, not with a signal; a small
 * file does not notice. A signal leaves no temporary file, however early it comes. */
#include <fcntl.h>
#include <glob.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test.h"

#include "load/source.h"

/* The earliest moment at which there is a file. */
static int open_and_signal(const char *name, int flags, mode_t mode);
#define open(name, flags, mode) open_and_signal((name), (flags), (mode))
#include "cli/guard.c"
#include "cli/output.c"
#undef open

static int signal_to_raise;

static bool has_unnamed; /* as the file system does */

static int open_and_signal(const char *name, int flags, mode_t mode)
{
    bool is_unnamed = (flags & O_TMPFILE) == O_TMPFILE;
    if (is_unnamed && !has_unnamed) {
        errno = EOPNOTSUPP;
        return -1;
    }
    int fd = open(name, flags, mode);
    raise(signal_to_raise);
    return fd;
}

static char path[] = "/tmp/onnxvram-guard-XXXXXX";

static int setup(void **state)
{
    int fd = mkstemp(path);
    return fd < 0 || close(fd) != 0;
}

static int teardown(void **state)
{
    return unlink(path);
}

/* The file is `bytes` long when it is opened, and empty when its last byte is read. */
static unsigned char read_shrunk(off_t bytes)
{
    onv_source source;
    if (truncate(path, bytes) != 0) abort();
    if (onv_source_open(&source, path, ONV_SOURCE_BEST, UINT64_MAX, NULL) != ONV_OK) abort();
    if (truncate(path, 0) != 0) abort();
    unsigned char last = *(const volatile unsigned char *)&source.window[source.bytes - 1];
    onv_source_close(&source);
    return last;
}

TEST(small_files_are_ours)
{
    assert_int_equal(read_shrunk(100000), 0);
}

TEST(large_files_end_the_program)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        onv_cli_guard("a\x1b[2Jb.onnx");
        read_shrunk((off_t)8 << 20);
        _exit(0); /* not reached */
    }
    close(ends[1]);
    char said[1024];
    int status;
    ssize_t n = read(ends[0], said, sizeof said - 1);
    assert_true(n > 0);
    said[n] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EXIT_UNUSABLE);
    assert_string_equal(said, "onnxvram: a\\x1b[2Jb.onnx: cannot be read any more: it shrank, or "
                              "its disk failed\n");
}

/* Any other SIGBUS is not hidden. */
TEST(other_faults_are_fatal)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        onv_cli_guard("x");
        raise(SIGBUS); /* returns once: the handler gave the signal back */
        raise(SIGBUS);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
}

TEST(no_signal_is_too_early)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGINT, SIGTERM, SIGHUP, SIGKILL};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        has_unnamed = i >= 3;
        char file[64], pattern[80];
        glob_t found;
        int status;
        snprintf(file, sizeof file, "%s.out", path);
        snprintf(pattern, sizeof pattern, "%s.*", file);
        fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            onv_cli_sink sink;
            signal_to_raise = signals[i];
            signal(signals[i], SIG_DFL); /* whatever is ignored where the tests run */
            onv_cli_open(&sink, file);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), signals[i]);
        assert_int_equal(glob(pattern, 0, NULL, &found), GLOB_NOMATCH);
    }
}

/* A file system that has no files without a name. */
TEST(a_file_has_a_name_from_the_start_or_at_the_end)
{
    for (int way = 0; way < 4; way++) {
        char file[64], pattern[80], text[16] = "";
        glob_t found;
        onv_cli_sink sink;
        bool replaces = way >= 2;
        has_unnamed = way % 2 == 1;
        signal_to_raise = 0;
        snprintf(file, sizeof file, "%s.out", path);
        snprintf(pattern, sizeof pattern, "%s*", file);
        if (replaces) {
            FILE *before = fopen(file, "w");
            assert_non_null(before);
            fclose(before);
        }
        assert_true(onv_cli_open(&sink, file));
        assert_true(onv_cli_write(&sink, "new", 3));
        assert_int_equal(glob(pattern, 0, NULL, &found),
                         replaces || sink.temporary != NULL ? 0 : GLOB_NOMATCH);
        globfree(&found);
        assert_int_equal(sink.temporary == NULL, sink.is_unnamed);
        assert_true(onv_cli_close(&sink, true));
        FILE *after = fopen(file, "r");
        assert_non_null(after);
        assert_int_equal(fread(text, 1, sizeof text, after), 3);
        fclose(after);
        assert_string_equal(text, "new");
        assert_int_equal(glob(pattern, 0, NULL, &found), 0);
        assert_int_equal(found.gl_pathc, 1);
        globfree(&found);
        unlink(file);
    }
}

TEST_GROUP(setup, teardown)
