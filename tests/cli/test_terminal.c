/* What a terminal gets: progress on standard error after a second, which goes before results are written. And models
 * from standard input, several of which may lack a dim. */
#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/program.h"
#include "support/test.h"

#define SAMPLES ONV_SOURCE_DIR "/samples/"

static char text[PROGRAM_TEXT];

#define EXPECT(arguments, status, ...)                                                             \
    program_expect_parts(arguments, status, (const char *const[]){__VA_ARGS__, NULL}, text)

/* What was written to a terminal whose other end is closed. The kernel hands over what was written a part at a time and
 * some time later; only the error at the end says that all of it was read. */
static void read_terminal(int terminal)
{
    size_t length = 0;
    ssize_t n;
    while ((n = read(terminal, text + length, sizeof text - 1 - length)) > 0) length += (size_t)n;
    text[length] = '\0';
}

/* Both ends of a new terminal. Skips the test where the system has none: a root without /dev/pts. */
static int open_terminal(int *other)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    bool is_ready = terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0;
    *other = is_ready ? open(ptsname(terminal), O_RDWR | O_NOCTTY) : -1;
    if (*other < 0) {
        print_message("skipped: no terminal can be opened; it needs /dev/pts\n");
        if (terminal >= 0) close(terminal);
        skip();
    }
    return terminal;
}

/* The program with a terminal for standard error, and a model that comes after a while. Returns whether all of it took
 * less than a second: a busy machine may take longer. */
static bool run_slowly(const char *arguments, const char *seconds)
{
    char command[2048];
    struct timespec start, end;
    int other, terminal = open_terminal(&other);
    snprintf(command, sizeof command,
             "{ sleep %s; cat '" SAMPLES "resnet18.onnx'; } | TERM=xterm '%s/onnxvram' %s >out.txt "
             "2>%s",
             seconds, ONV_BUILD_DIR, arguments, ptsname(terminal));
    clock_gettime(CLOCK_MONOTONIC, &start);
    assert_int_equal(system(command), 0);
    clock_gettime(CLOCK_MONOTONIC, &end);
    close(other);
    read_terminal(terminal);
    close(terminal);
    return (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec) < 1;
}

TEST(progress_comes_after_a_second_and_goes)
{
    static const char line[] = "\ronnxvram: standard input, 1 s\x1b[K", erased[] = "\r\x1b[K";
    run_slowly("-b 1 -", "1.4");
    if (strncmp(text, line, strlen(line)) != 0) fail_msg("the terminal shows '%s'", text);
    assert_string_equal(text + strlen(text) - strlen(erased), erased);
    assert_int_equal(system("grep -q Needed out.txt"), 0);
    assert_int_not_equal(system("grep -q 'standard input' out.txt"), 0);
    if (run_slowly("-b 1 -", "0")) assert_string_equal(text, "");
    run_slowly("-q -b 1 -", "1.4");
    assert_string_equal(text, "");
}

/* A pipe is no terminal. */
TEST(pipes_get_no_progress)
{
    EXPECT("--version && { sleep 1.4; cat " SAMPLES "resnet18.onnx; } | TERM=xterm " ONV_BUILD_DIR
           "/onnxvram -b 1 -",
           0, "Needed on H100");
    assert_null(strstr(text, " s\x1b"));
}

TEST(standard_input_is_a_model)
{
    EXPECT("-q -b 1 - <" SAMPLES "resnet18.onnx", 0, "-: torch ");
    EXPECT("-q -b 1 --limit file-bytes=1000 - <" SAMPLES "resnet18.onnx", 1,
           "standard input: has more than 1000 bytes", "--limit file-bytes=N");
    EXPECT("- <" SAMPLES "bert.onnx", 0, "onnxvram - --batch 1");
    EXPECT("diff -b 1 - " SAMPLES "resnet18.onnx <" SAMPLES "resnet18.onnx", 0, "Changes from -");
    program_write("i.csv", "id,lower,upper,size\na,0,2,10\n", 29);
    program_write("t.csv", "alloc,a,1000\nfree,a\n", 20);
    EXPECT("plan - <i.csv", 0, "a,0,2,10,0");
    EXPECT("simulate - --runtime torch <t.csv", 0, "torch,1024,2097152,0,2097152,1");
    EXPECT("simulate - --runtime torch,ideal <t.csv", 0, "torch,1024", "ideal,1000");
    /* A pipe cannot be read twice. */
    EXPECT("--version && cat t.csv | " ONV_BUILD_DIR "/onnxvram simulate - --runtime torch,ideal",
           0, "torch,1024", "ideal,1000");
}

TEST(models_may_lack_a_dim_that_another_has)
{
    EXPECT("-q -b 1 -d sequence=128 " SAMPLES "bert.onnx " SAMPLES "resnet18.onnx", 0,
           "bert.onnx: torch ", "resnet18.onnx: torch ");
    EXPECT("-q -b 1 -d sequence=128 " SAMPLES "resnet18.onnx " SAMPLES "bert.onnx", 0,
           "bert.onnx: torch ", "resnet18.onnx: torch ");
    EXPECT("-b 1 " SAMPLES "resnet18.onnx -d sequence=128", 2, "--dim: 'sequence' is unknown");
    EXPECT("-d batch=1 " SAMPLES "bert.onnx -d sequence=128 " SAMPLES "lstm.onnx", 0,
           "Side by side");
    /* An example has more dims than were given. */
    EXPECT("-d sequence=9 " SAMPLES "gpt2.onnx " SAMPLES "resnet18.onnx", 0, "total = 137");
}

TEST(quiet_reports_say_what_was_asked)
{
#define OF "-q -b 8 " SAMPLES "resnet18-train.onnx "
    EXPECT(OF, 0, ".onnx: torch ", ", ort ", " on H100 (assumed)\n");
    EXPECT(OF "--gpu T4", 0, " on T4\n");
    EXPECT(OF "--runtime ideal,arena", 0, ".onnx: ideal 93.6 MiB, arena 93.6 MiB\n");
    EXPECT(OF "--train adam --checkpoint sqrt", 0, ".onnx: train ",
           " on H100 (assumed), checkpoints sqrt (");
    EXPECT(OF "--train adam --checkpoint none,sqrt --plan-out plan.py && head -n 1 plan.py", 0,
           ", recommended checkpoints sqrt (74d43807)\n", ": plan sqrt@74d43807 of ");
    EXPECT(OF "--train adam --compile", 0, ", peak under torch.compile ");
    EXPECT(OF "--budget T4,1MiB", 0, " on T4, fits T4 (by ort), does not fit 1.0 MiB (by ort)\n");
    EXPECT(OF "--json=before.json", 0, ".onnx: torch ");
    EXPECT("-q -b 16 " SAMPLES "resnet18-train.onnx --runtime ideal --baseline before.json", 0,
           ", peak +100% since before.json");
    EXPECT(OF "--runtime ort --ort-advise", 0, "Settings of ONNX Runtime");
#undef OF
}

TEST_GROUP(folder_enter, folder_leave)
