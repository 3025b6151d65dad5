/* A model that fails takes nothing else with it: crashes, signals and full disks, at whatever moment. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/program.h"
#include "support/capture.h"
#include "support/test.h"

#define SAMPLE(name) ONV_SOURCE_DIR "/samples/" name ".onnx "
/* The second one takes longest: it is the one that is killed. */
#define MODELS  SAMPLE("resnet18") SAMPLE("vit_b_16") SAMPLE("vgg16")
#define OPTIONS "-b 1 --train adam --checkpoint sqrt "
#define LONG    "-b 1 --train adam --checkpoint optimal "

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* The program, in a process group of its own, with its outputs in files. */
static pid_t start(const char *arguments)
{
    char command[8192];
    snprintf(command, sizeof command, "exec " ONV_BUILD_DIR "/onnxvram %s >out 2>errors",
             arguments);
    /* The search for leaks reads /proc. */
    if (strstr(arguments, "--untrusted") != NULL) setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setpgid(0, 0);
        for (int s = 1; s < 32; s++)
            signal(s, SIG_DFL); /* whatever is ignored where the tests run */
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    setpgid(child, child);
    unsetenv("ASAN_OPTIONS");
    return child;
}

/* Its processes now; false: this kernel does not list them. */
static bool list_children(pid_t parent, pid_t children[], size_t most, size_t *count)
{
    char place[80];
    int pid;
    snprintf(place, sizeof place, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    FILE *file = fopen(place, "r");
    *count = 0;
    if (file == NULL) return access("/proc/self/task", F_OK) != 0 || errno != ENOENT;
    while (*count < most && fscanf(file, "%d", &pid) == 1) children[(*count)++] = pid;
    fclose(file);
    return true;
}

static bool has_lists(void)
{
    char place[80];
    snprintf(place, sizeof place, "/proc/%d/task/%d/children", (int)getpid(), (int)getpid());
    return access(place, R_OK) == 0;
}

/* The `wanted`th process that the program starts; 0: it ended before. */
static pid_t wait_for_child(pid_t parent, size_t wanted)
{
    pid_t seen[64], now[8];
    size_t n_seen = 0, n;
    for (int i = 0; i < 60000; i++) {
        if (!list_children(parent, now, 8, &n)) return 0;
        for (size_t k = 0; k < n; k++) {
            bool is_new = true;
            for (size_t s = 0; s < n_seen; s++) is_new &= seen[s] != now[k];
            if (!is_new) continue;
            seen[n_seen++] = now[k];
            if (n_seen == wanted) return now[k];
        }
        int status;
        if (waitpid(parent, &status, WNOHANG) == parent) return 0;
        nap();
    }
    return 0;
}

/* None of the group is left, soon. */
static void expect_none(pid_t group)
{
    for (int i = 0; i < 5000 && kill(-group, 0) == 0; i++) nap();
    assert_int_equal(kill(-group, 0), -1);
    assert_int_equal(errno, ESRCH);
}

/* Microseconds that the command takes when nothing ends it. */
static useconds_t duration_of(const char *arguments)
{
    struct timespec before, after;
    int status;
    clock_gettime(CLOCK_MONOTONIC, &before);
    pid_t program = start(arguments);
    assert_int_equal(waitpid(program, &status, 0), program);
    clock_gettime(CLOCK_MONOTONIC, &after);
    return (useconds_t)((after.tv_sec - before.tv_sec) * 1000000 +
                        (after.tv_nsec - before.tv_nsec) / 1000);
}

/* A process of the program gets the signal, a while after it began; a machine may be so fast that it is over by then, and is tried
 * again. */
static int end_one(const char *arguments, size_t victim, int signal_number, useconds_t after)
{
    enum { TRIES = 20 };
    for (int i = 0; i < TRIES; i++) {
        int status;
        pid_t program = start(arguments), child = wait_for_child(program, victim);
        if (child > 0 && after > 0) usleep(after);
        if (child > 0) kill(child, signal_number);
        if (child > 0) assert_int_equal(waitpid(program, &status, 0), program);
        expect_none(program);
        if (child > 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == 0)) return status;
        after /= 2;
    }
    fail_msg("'%s' is over before a process of it can be ended", arguments);
    return 0;
}

/* Files that have their names are whole; then they go. */
static void expect_whole(const char *pattern)
{
    glob_t found;
    if (glob(pattern, 0, NULL, &found) != 0) return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *name = found.gl_pathv[i];
        OWNED_TEXT text = capture_file(name);
        bool is_text = strstr(name, ".onnx") == NULL;
        if (is_text && (text[0] == '\0' || text[strlen(text) - 1] != '\n' ||
                        (strstr(name, ".html") != NULL && strstr(text, "</html>") == NULL)))
            fail_msg("%s is not whole", name);
        unlink(name);
    }
    globfree(&found);
}

/* --- Crashes ----------------------------------------------------------------------------------- */

TEST(a_crash_costs_one_report)
{
    static const struct {
        const char *options;
        size_t victim; /* which process is killed */
        int signal_number;
        const char *says; /* on standard error */
        const char *file; /* what has all reports but one */
        bool is_in_one;   /* process */
    } rows[] = {
        {"--jobs 1 -q ", 2, SIGSEGV, "", "out", false},
        {"--jobs 2 -q ", 2, SIGKILL, "was killed (SIGKILL)", "out", false},
        {"--jobs 1 -q --json=out.json ", 2, SIGABRT, "", "out.json", false},
        {"--jobs 2 -q --untrusted --csv=out.csv ", 2, SIGKILL, "", "out.csv", false},
        /* All of them in one process: which model it was is known. */
        {"-q --html=out.html ", 1, SIGKILL, "was killed (SIGKILL)", "out.html", true},
        {"-q --untrusted --svg out.svg ", 1, SIGKILL, "was killed (SIGKILL)", "out.svg", true},
    };
    if (!has_lists()) skip();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char arguments[1024];
        unlink("out");
        snprintf(arguments, sizeof arguments, "%s" LONG MODELS, rows[i].options);
        /* Where one process has all of them, it has begun with a model by then. */
        useconds_t after = rows[i].is_in_one ? duration_of(arguments) / 3 : 0;
        int status = end_one(arguments, rows[i].victim, rows[i].signal_number, after);
        char *said = capture_file("errors"), *report = capture_file(rows[i].file);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 1)
            fail_msg("'%s': status %x: %s", arguments, (unsigned)status, said);
        if (strstr(said, rows[i].says) == NULL || strstr(said, "onnxvram: /") == NULL)
            fail_msg("'%s' says: %s", arguments, said);
        /* Which model it was depends on how fast the first ones are. */
        static const char *const names[] = {"resnet18.onnx", "vit_b_16.onnx", "vgg16.onnx"};
        const char *lost = "";
        size_t n_models = 0;
        char *errors = strstr(report, "\"errors\": ["); /* of JSON, behind the models */
        if (errors != NULL) *errors = '\0';
        for (size_t k = 0; k < 3; k++)
            if (strstr(report, names[k]) != NULL)
                n_models++;
            else
                lost = names[k];
        bool is_one = n_models == 2 && strstr(said, lost) != NULL;
        if (!is_one && (!rows[i].is_in_one || strstr(report, "<svg") == NULL))
            fail_msg("'%s': %zu reports: %s: %.3000s", arguments, n_models, said, report);
        free(said);
        free(report);
    }
}

static void add_models(FILE *list, int from, int count)
{
    for (int i = from; i < from + count; i++) {
        char name[64];
        snprintf(name, sizeof name, "m%d.onnx", i);
        fprintf(list, " %s", name);
        if (link("good.onnx", name) != 0) fail_msg("%s: %s", name, strerror(errno));
    }
}

/* Hostile ones among many: each of the others is reported, in the order given. */
TEST(ten_of_a_thousand)
{
    enum { HOSTILE = 10, BETWEEN = 99 };
    static char arguments[65536];
    FILE *list = fmemopen(arguments, sizeof arguments, "w");
    model *m = model_read(17, "in x f32[4,4]", "y = Relu(x) relu", "out y f32");
    program_write_model("good.onnx", m);
    OWNED_TEXT good = capture_file("good.onnx");
    fputs("-q --json=all.json", list);
    for (int h = 0; h < HOSTILE; h++) {
        char name[32];
        unsigned char bytes[256];
        add_models(list, h * BETWEEN, BETWEEN);
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (unsigned char)(i * 37 * (size_t)(h + 1));
        snprintf(name, sizeof name, "hostile%d.onnx", h);
        program_write(name, bytes, sizeof bytes);
        fprintf(list, " %s", name);
    }
    fputs(" >out 2>errors", list);
    fclose(list);
    static char command[70000];
    snprintf(command, sizeof command, ONV_BUILD_DIR "/onnxvram %s", arguments);
    int status = system(command);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    char *said = capture_file("errors"), *report = capture_file("out"),
         *json = capture_file("all.json");
    const char *at = report;
    for (int i = 0; i < HOSTILE * BETWEEN; i++) {
        char name[32];
        int length = snprintf(name, sizeof name, "m%d.onnx: ", i);
        assert_memory_equal(at, name, length);
        at = strchr(at, '\n') + 1;
    }
    assert_int_equal(*at, '\0');
    at = said;
    for (int h = 0; h < HOSTILE; h++) {
        char begin[64];
        int length = snprintf(begin, sizeof begin, "onnxvram: hostile%d.onnx: ", h);
        assert_memory_equal(at, begin, length);
        at = strchr(at, '\n') + 1;
    }
    assert_int_equal(*at, '\0');
    size_t n = 0;
    for (at = json; (at = strstr(at, "\"path\": ")) != NULL; at++) n++;
    assert_int_equal(n, HOSTILE * BETWEEN);
    free(said);
    free(report);
    free(json);
}

/* --- Signals ----------------------------------------------------------------------------------- */

/* Whenever it comes: the program ends by it, its processes too, and no file has its name. */
TEST(a_signal_ends_all)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGKILL};
    static const char *const commands[] = {
        "--jobs 2 -q --json=ended.json --csv=ended.csv " OPTIONS MODELS,
        "-q --untrusted --html=ended.html " OPTIONS SAMPLE("vit_b_16"),
        "-q --html=ended.html --onnx-out ended.onnx " OPTIONS SAMPLE("vit_b_16"),
        /* Searches, of a program of PyTorch; a replay. */
        "-q --json=ended.json --train adamw --checkpoint all --max-batch --budget "
        "16GiB " ONV_SOURCE_DIR "/tests/tape/programs/dit.json.gz",
        "-q --replay=host --json=ended.json -b 4 " SAMPLE("resnet18"),
    };
    enum { MOMENTS = 8 };
    size_t n_before = 0;
    for (size_t c = 0; c < sizeof commands / sizeof commands[0]; c++) {
        useconds_t whole = duration_of(commands[c]);
        expect_whole("ended.*");
        for (useconds_t i = 0; i < MOMENTS; i++) {
            int status, by = signals[i % 3];
            pid_t program = start(commands[c]);
            usleep(whole / MOMENTS * i);
            kill(program, by);
            assert_int_equal(waitpid(program, &status, 0), program);
            expect_none(program);
            if (WIFEXITED(status)) { /* it was done before */
                n_before++;
                expect_whole("ended.*");
                continue;
            }
            assert_int_equal(WTERMSIG(status), by);
            /* Files get their names one after the other at the end; it may have come between two of them. */
            expect_whole("ended.*");
        }
    }
    assert_true(n_before < sizeof commands / sizeof commands[0] * MOMENTS / 2);
}

/* --- Disks ------------------------------------------------------------------------------------- */

/* Runs a script in a mount namespace with two small file systems, one of them to be read only; 77: there is none. */
static int run_with_disks(const char *script)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int flags = geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS;
        mkdir("small", 0700);
        mkdir("fixed", 0700);
        if (unshare(flags) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
            mount("tmpfs", "small", "tmpfs", 0, "size=64k") != 0 ||
            mount("tmpfs", "fixed", "tmpfs", MS_RDONLY, NULL) != 0)
            _exit(77);
        execl("/bin/sh", "sh", "-c", script, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

TEST(a_disk_that_is_full_or_fixed)
{
    static const char *const commands[][2] = {
        {"--json=", OPTIONS SAMPLE("resnet18")},
        {"--untrusted --json=", OPTIONS SAMPLE("resnet18")},
        {"--json=", OPTIONS SAMPLE("resnet18") SAMPLE("vgg16")},
        {"--untrusted --html=", OPTIONS SAMPLE("resnet18") SAMPLE("vgg16")},
    };
    static const char *const disks[][2] = {{"small", "No space left on device"},
                                           {"fixed", "Read-only file system"}};
    for (size_t d = 0; d < 2; d++)
        for (size_t c = 0; c < sizeof commands / sizeof commands[0]; c++) {
            char script[4096];
            snprintf(script, sizeof script,
                     "echo old >small/file; " ONV_BUILD_DIR
                     "/onnxvram -q --timelines %s%s/file %s >out "
                     "2>errors; [ $? = 1 ] && grep -q '%s' errors && [ $(grep -vc ': warning (' "
                     "errors) = 1 ] && "
                     "[ \"$(cat small/file)\" = old ] && [ \"$(ls small)\" = file ]",
                     commands[c][0], disks[d][0], commands[c][1], disks[d][1]);
            setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* the search for leaks reads /proc */
            int status = run_with_disks(script);
            unsetenv("ASAN_OPTIONS");
            if (status == 77) skip();
            OWNED_TEXT said = capture_file("errors");
            if (status != 0) fail_msg("'%s' says: %s", script, said);
        }
}

/* --- Outputs that are inputs ------------------------------------------------------------------- */

TEST(no_input_is_overwritten)
{
    static const struct {
        const char *arguments;
        int status;
        const char *says;
    } rows[] = {
        {"--json=m.onnx m.onnx", 2, "'m.onnx' would overwrite 'm.onnx'"},
        {"--onnx-out m.onnx m.onnx", 2, "give the output another name"},
        {"--csv=./m.onnx m.onnx", 2, "would overwrite"},
        {"--html=soft.onnx m.onnx", 2, "would overwrite"},
        {"--svg hard.onnx -b 1 m.onnx", 2, "would overwrite"},
        {"--json=m.onnx soft.onnx", 2, "would overwrite"},
        {"--json=m.onnx new.onnx m.onnx", 2, "would overwrite"},
        {"--json=rules --op-shapes rules m.onnx", 2, "would overwrite 'rules'"},
        {"--json=base --baseline base m.onnx", 2, "would overwrite 'base'"},
        {"attach m.onnx base -o m.onnx", 2, "would overwrite 'm.onnx'"},
        {"attach m.onnx base -o base", 2, "would overwrite 'base'"},
        {"--json=trace -b 1 --shape-trace trace m.onnx", 2, "would overwrite 'trace'"},
        {"--json=value -i x=@value m.onnx", 2, "would overwrite 'value'"},
        {"-q m.onnx >>m.onnx", 2, "'standard output' would overwrite"},
        {"--json=one --csv=one m.onnx", 2, "two outputs go to the same file"},
        {"--json=one --csv=./one m.onnx", 2, "two outputs go to the same file"},
        {"--json=base --csv=link m.onnx", 2, "two outputs go to the same file"},
        {"plan intervals -o intervals", 2, "would overwrite"},
        {"plan intervals -o ./intervals", 2, "would overwrite"},
        {"-q --json=weights.bin external.onnx", 2, "would overwrite 'weights.bin'"},
        {"attach external.onnx found.pt2 -o weights.bin", 2, "would overwrite 'weights.bin'"},
        {"-q --json=weights.bin external.onnx new.onnx", 2, "would overwrite 'weights.bin'"},
        {"-q --json=/dev/null --csv=/dev/null m.onnx", 0, "m.onnx: "},
        {"-q --json=fresh.json m.onnx", 0, "m.onnx: "},
        {"-q --json=fresh.json m.onnx", 0, "m.onnx: "},
    };
    static const char *const files[] = {"m.onnx", "rules",     "base",        "trace",
                                        "value",  "intervals", "weights.bin", "found.pt2"};
    enum { N_FILES = sizeof files / sizeof files[0] };
    model *m = model_read(17, "in x f32[4,4]", "y = Relu(x) relu", "out y f32");
    program_write_model("m.onnx", m);
    assert_int_equal(system("cp m.onnx new.onnx; ln -s m.onnx soft.onnx; ln m.onnx hard.onnx; "
                            "echo >rules; echo {} >base; ln -s base link; echo b >trace; "
                            "echo >value; echo id,lower,upper,size >intervals; "
                            "cp m.onnx found.onnx; echo '{\"schema_version\":8}' >found.pt2"),
                     0);
    m = model_read(17, "in x f32[4,4]");
    model_weight(m, "w", "f32[4,4]"); /* in weights.bin */
    model_node(m, "MatMul", "mm", "x w", "y", "");
    model_output(m, "y", "f32");
    program_write_model("external.onnx", m);
    program_write("weights.bin", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                  64);
    /* Where other lines are said, too: of a model before, or of a program that was found and is not used. */
    static const char *const later[] = {"-q --json=weights.bin new.onnx external.onnx",
                                        "-q --json=found.pt2 found.onnx",
                                        "-q --csv=found.pt2 m.onnx found.onnx",
                                        "-q --untrusted --csv=weights.bin m.onnx external.onnx"};
    char *before[N_FILES];
    for (size_t f = 0; f < N_FILES; f++) before[f] = capture_file(files[f]);
    enum { N_ROWS = sizeof rows / sizeof rows[0], N_LATER = sizeof later / sizeof later[0] };
    for (size_t i = 0; i < N_ROWS + N_LATER; i++) {
        const char *arguments = i < N_ROWS ? rows[i].arguments : later[i - N_ROWS];
        char text[PROGRAM_TEXT];
        if (i < N_ROWS)
            program_expect(arguments, rows[i].status, rows[i].says);
        else
            program_expect_parts(arguments, 2, (const char *const[]){"would overwrite", NULL},
                                 text);
        for (size_t f = 0; f < N_FILES; f++) {
            OWNED_TEXT after = capture_file(files[f]);
            if (strcmp(after, before[f]) != 0) fail_msg("'%s' changed %s", arguments, files[f]);
        }
    }
    for (size_t f = 0; f < N_FILES; f++) free(before[f]);
}

TEST_GROUP(folder_enter, folder_leave)
