/* Several models in one command: the same bytes whatever the number of jobs, messages and statuses of each, and nothing
 * on standard output where the command was wrong. */
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/capture.h"
#include "support/folder.h"
#include "support/test.h"

#define SAMPLE(name) ONV_SOURCE_DIR "/samples/" name ".onnx "
/* The slowest first, so that the others are done before it. */
#define MODELS                                                                                     \
    SAMPLE("vit_b_16")                                                                             \
    SAMPLE("resnet18")                                                                             \
    "missing.onnx " SAMPLE("control-flow") SAMPLE("functions") "/dev/null " SAMPLE("vgg16")

static const struct {
    const char *options, *models;
    int status;
} rows[] = {
    {"", MODELS, 1},
    {"-q", MODELS, 1},
    {"-q -b 2", SAMPLE("resnet18") SAMPLE("vgg16") SAMPLE("vit_b_16"), 0},
    {"-b 2", SAMPLE("resnet18") SAMPLE("vgg16"), 0},
    {"-b 2 --json", MODELS, 1},
    {"-b 2 --json=- --csv=files.csv", MODELS, 1},
    {"-b 2 --timelines --json=files.json --svg files.svg --html=files.html", MODELS, 1},
    {"--format markdown -b 2", MODELS, 1},
    {"--layers", MODELS, 1},
    {"--dump=graph", MODELS, 1},
    {"--dump=intervals -b 2", MODELS, 2},
    {"-b 2 --together", SAMPLE("resnet18") SAMPLE("vgg16"), 0},
    {"-q -b 2 --budget 200MiB", SAMPLE("resnet18") SAMPLE("vgg16"), 3},
    {"-q -b 2 --limit memory=3000000", MODELS, 1},
    {"-q -d nothing=3", MODELS, 2},
    {"--json -d nothing=3", SAMPLE("resnet18") SAMPLE("vgg16"), 2},
    {"-q -d batch=3 -d sequence=5", SAMPLE("resnet18") SAMPLE("scan"), 0},
    {"-q -b 2 --baseline base.json --max-growth 1", SAMPLE("resnet18") SAMPLE("vgg16"), 3},
    {"-q -b 2 --baseline base.json", SAMPLE("resnet18") SAMPLE("functions") SAMPLE("vgg16"), 1},
};

/* Through a shell; the exit status. */
static int run(const char *arguments)
{
    static char command[16384];
    int length = snprintf(command, sizeof command, ONV_BUILD_DIR "/onnxvram %s", arguments);
    assert_in_range(length, 1, sizeof command - 1);
    int status = system(command);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

TEST(answers_do_not_depend_on_jobs)
{
    static const char *const files[] = {"out",        "errors",    "files.csv",
                                        "files.json", "files.svg", "files.html"};
    enum { FILES = sizeof files / sizeof files[0] };
    static const unsigned jobs[] = {1, 2, 7};
    assert_int_equal(run("-q -b 1 --json=base.json " SAMPLE("resnet18") SAMPLE("vgg16") ">out"), 0);
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        char *first[FILES] = {NULL};
        for (size_t j = 0; j < sizeof jobs / sizeof jobs[0]; j++) {
            char arguments[2048];
            for (size_t f = 0; f < FILES; f++) unlink(files[f]);
            snprintf(arguments, sizeof arguments, "--jobs %u %s %s >out 2>errors", jobs[j],
                     rows[r].options, rows[r].models);
            int status = run(arguments);
            if (status != rows[r].status)
                fail_msg("'%s' ends with %d: %s", arguments, status, capture_file("errors"));
            for (size_t f = 0; f < FILES; f++) {
                char *now = capture_file(files[f]);
                if (j > 0 && strcmp(now, first[f]) != 0)
                    fail_msg("'%s': %s is another:\n%.2000s\n---\n%.2000s", arguments, files[f],
                             now, first[f]);
                if (j == 0)
                    first[f] = now;
                else
                    free(now);
            }
            if (rows[r].status == 2 && strstr(rows[r].options, "-d ") != NULL)
                assert_string_equal(first[0], "");
        }
        for (size_t f = 0; f < FILES; f++) free(first[f]);
    }
}

/* JSON names what could not be analysed, with or without others; a wrong option is no failure of a file. */
TEST(failures_are_in_json)
{
    static const struct {
        const char *arguments;
        int status;
        const char *parts[3];
    } cases[] = {
        {"-b 1 --json=r.json absent.onnx " SAMPLE("resnet18"),
         1,
         {"\"errors\"", "absent.onnx", "\"code\": \"io\""}},
        {"-b 1 --json=r.json absent.onnx", 1, {"\"models\": []", "absent.onnx", "No such file"}},
        {"-b 1 --json=r.json absent.onnx empty.onnx",
         1,
         {"\"models\": []", "empty.onnx", "is empty"}},
        {"-b 1 --json=r.json --together absent.onnx " SAMPLE("resnet18"),
         1,
         {"\"errors\"", "absent.onnx", "\"answer\""}},
        {"-b 1 --json=r.json --untrusted empty.onnx",
         1,
         {"\"models\": []", "empty.onnx", "\"code\""}},
        {"-d nothing=3 --json=r.json " SAMPLE("resnet18"), 2, {""}},
    };
    fclose(fopen("empty.onnx", "wb"));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char arguments[1024];
        unlink("r.json");
        snprintf(arguments, sizeof arguments, "-q %s >out 2>errors", cases[i].arguments);
        if (run(arguments) != cases[i].status)
            fail_msg("'%s': %s", arguments, capture_file("errors"));
        OWNED_TEXT text = capture_file("r.json");
        if (cases[i].status == 2) assert_string_equal(text, "");
        for (size_t k = 0; k < 3 && cases[i].parts[k] != NULL; k++)
            if (strstr(text, cases[i].parts[k]) == NULL)
                fail_msg("'%s' lacks %s:\n%.600s", arguments, cases[i].parts[k], text);
    }
}

/* The reader of the output has gone: silence, and no model after that. */
TEST(a_closed_pipe_ends_all)
{
    assert_int_equal(run("--jobs 3 -q " SAMPLE("resnet18") SAMPLE("vgg16") SAMPLE("vit_b_16") MODELS
                         "2>errors | true"),
                     0);
    OWNED_TEXT said = capture_file("errors");
    assert_string_equal(said, "");
}

/* What is written model by model has no name until all is. */
TEST(a_signal_leaves_no_file)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        execl("/bin/sh", "sh", "-c",
              "set -- " SAMPLE("vit_b_16")
                  SAMPLE("resnet18") "; for i in 1 2 3 4 5 6 7; do set -- "
                                     "\"$@\" \"$@\"; done; exec " ONV_BUILD_DIR
                                     "/onnxvram --jobs 2 --json=ended.json --csv=ended.csv \"$@\" "
                                     ">out 2>errors",
              (char *)NULL);
        _exit(127);
    }
    usleep(200000);
    kill(child, SIGTERM);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    DIR *here = opendir(".");
    assert_non_null(here);
    for (const struct dirent *d; (d = readdir(here)) != NULL;)
        if (strncmp(d->d_name, "ended", 5) == 0) fail_msg("%s is left", d->d_name);
    closedir(here);
}

TEST_GROUP(folder_enter, folder_leave)
