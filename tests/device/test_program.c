/* `onnxvram --replay` as its users call it: exit statuses, what is said, maximum batches, signals. */
#include "support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FAKE "ONNXVRAM_CUDA_DRIVER='" ONV_BUILD_DIR "/tests/libonnxvram_fake_cuda.so' "

#define SAMPLES ONV_SOURCE_DIR "/samples/"

static const char *sample = SAMPLES "resnet18.onnx";

static char text[1 << 20];

/* Runs `ENVIRONMENT onnxvram resnet18.onnx ARGUMENTS`; both outputs land in `text`. */
static void expect(const char *environment, const char *arguments, int status, const char *part)
{
    char command[2048];
    snprintf(command, sizeof command, "exec 2>&1; %s '%s/onnxvram' '%s' %s", environment,
             ONV_BUILD_DIR, sample, arguments);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t length = fread(text, 1, sizeof text - 1, pipe);
    text[length] = '\0';
    int got = pclose(pipe);
    assert_true(WIFEXITED(got));
    if (WEXITSTATUS(got) != status)
        fail_msg("%s %s gave %d: %s", environment, arguments, WEXITSTATUS(got), text);
    if (strstr(text, part) == NULL)
        fail_msg("%s %s does not say '%s': %s", environment, arguments, part, text);
}

/* The second run of this one reserves a segment more than the first, which is replayed. */
static void one_run_is_replayed(void **state)
{
    sample = SAMPLES "resnet18-qdq.onnx";
    expect("", "-b 4 --replay=host --runtime torch -q", 0, "agrees");
    sample = SAMPLES "resnet18.onnx";
}

static void exit_statuses_tell_what_was_found(void **state)
{
    expect("", "-b 1 --replay=host", 0, "host memory (no GPU)");
    expect(FAKE, "-b 1 --replay", 0, "fake driver (no GPU)");
    expect(FAKE, "-b 1 --replay=cuda --runtime ideal", 0, "agrees");
    expect(FAKE "ONNXVRAM_FAKE_LOSE=3", "-b 1 --replay --runtime ideal", 4, "lost-write");
    expect(FAKE "ONNXVRAM_FAKE_BYTES=340000000", "-b 1 --replay", 3, "no memory at step");
    expect("ONNXVRAM_CUDA_DRIVER=/nonexistent", "-b 1 --replay", 1, "/nonexistent");
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    expect("", "-b 1 --replay=tpu", 2, "'tpu'");
    expect("", "--replay=host", 2, "bind");
    expect("", "-b 100000 --replay=host --runtime arena", 1, "host memory has");
    expect("", "-b 1 --dump=replay", 2, "needs a replay");
    expect("", "-b 1 --replay=host --expandable-segments --runtime torch", 2, "expandable");
}

static void every_report_has_it(void **state)
{
    expect("", "-b 1 --replay=host --runtime arena --json", 0, "\"agrees\": true");
    assert_non_null(strstr(text, "\"device\": \"host memory (no GPU)\""));
    assert_non_null(strstr(text, "\"is_gpu\": false"));
    assert_non_null(strstr(text, "\"timeline\""));
    expect("", "-b 1 --replay=host --runtime arena --dump=replay", 0,
           "runtime,plan,mode,step,predicted_bytes,measured_bytes,");
    assert_non_null(strstr(text, "\narena,,arena,0,"));
    expect("", "-b 1 --replay=host --train sgd --runtime arena,torch --checkpoint sqrt", 0,
           "train sqrt");
    expect("", "-b 1 --replay=host -q", 0, "; self-check on host memory (no GPU): agrees\n");
    assert_null(strstr(text, "Replay"));
    expect(FAKE "ONNXVRAM_FAKE_LOSE=3", "-b 1 --replay --runtime ideal -q", 4,
           "; replay on fake driver (no GPU): contradicts the prediction\n");
    expect(FAKE "ONNXVRAM_FAKE_BYTES=340000000", "-b 1 --replay -q", 3,
           "; replay on fake driver (no GPU): no memory, as predicted\n");
}

/* The numbers of a line of the table of maximum batches: "torch  torch  142  142  agrees". */
static void expect_wall(const char *runtime, const char *mode, long predicted, long measured)
{
    char name[64], as[64], verdict[64];
    long a, b;
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (sscanf(line, " %63s %63s %ld %ld %63s", name, as, &a, &b, verdict) != 5) continue;
        if (strcmp(name, runtime) != 0 || strcmp(as, mode) != 0) continue;
        assert_int_equal(a, predicted);
        assert_int_equal(b, measured);
        assert_string_equal(verdict, "agrees");
        return;
    }
    fail_msg("no max_batch of %s %s: %s", runtime, mode, text);
}

static unsigned long long ideal_total(const char *arguments)
{
    unsigned long long total;
    expect("", arguments, 0, "\"ideal\": {");
    const char *at = strstr(strstr(text, "\"ideal\": {"), "total_bytes");
    assert_int_equal(sscanf(at, "total_bytes\": %llu", &total), 1);
    return total;
}

/* With a byte less than a batch of 20 takes, 19 is the largest; with just enough, 20. */
static void the_wall_is_where_memory_ends(void **state)
{
    char arguments[128], environment[512];
    unsigned long long budget = ideal_total("-b 20 --json") - 1;
    snprintf(arguments, sizeof arguments,
             "--replay=host --max-batch --runtime arena,ideal --budget %lluB", budget);
    expect("", arguments, 0, "allocated");
    expect_wall("arena", "arena", 19, 19);
    expect_wall("ideal", "raw", 19, 19);
    snprintf(environment, sizeof environment, FAKE "ONNXVRAM_FAKE_BYTES=%llu",
             budget + 1 + (300ull << 20));
    expect(environment, "--replay --max-batch --runtime arena", 0, "allocated");
    expect_wall("arena", "arena", 20, 20);
    /* Granules make every allocation larger: less fits, by no more than they explain. */
    expect(FAKE "ONNXVRAM_FAKE_BYTES=1073741824 ONNXVRAM_FAKE_GRANULARITY=2097152",
           "--replay --max-batch --runtime ideal", 0, "allocated");
    expect_wall("ideal", "raw", 110, 98);
}

/* --- Signals ----------------------------------------------------------------------------------- */

/* Starts a replay that takes long, sends the signal, and expects to see it die of it with all memory
 * given back: the fake driver aborts otherwise. */
static void stop_with(int signal_number)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        setenv("ONNXVRAM_CUDA_DRIVER", ONV_BUILD_DIR "/tests/libonnxvram_fake_cuda.so", 1);
        execl(ONV_BUILD_DIR "/onnxvram", "onnxvram", sample, "-b", "24", "--replay", "--train",
              "adamw", "--runtime", "ideal,torch,arena", (char *)NULL);
        _exit(127);
    }
    nanosleep(&(struct timespec){0, 300000000}, NULL);
    assert_int_equal(kill(child, signal_number), 0);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    /* A very fast machine may be through already. */
    if (WIFEXITED(status)) assert_int_equal(WEXITSTATUS(status), 0);
    if (WIFSIGNALED(status)) assert_int_equal(WTERMSIG(status), signal_number);
}

static void signals_end_it_with_nothing_left(void **state)
{
    stop_with(SIGINT);
    stop_with(SIGTERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_run_is_replayed),
        cmocka_unit_test(exit_statuses_tell_what_was_found),
        cmocka_unit_test(every_report_has_it),
        cmocka_unit_test(the_wall_is_where_memory_ends),
        cmocka_unit_test(signals_end_it_with_nothing_left),
    };
    if (access(ONV_BUILD_DIR "/onnxvram", X_OK) != 0) return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
