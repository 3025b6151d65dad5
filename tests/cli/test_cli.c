/* The program as its users call it: exit statuses, one clear line per mistake, files that appear
 * only whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/onnx_writer.h"

static char folder[] = "/tmp/onnxvram-cli-XXXXXX";

static int setup(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL || chdir(folder) != 0;
}

static int teardown(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return chdir("/") != 0 || system(command) != 0;
}

/* Runs `onnxvram ARGUMENTS`; both outputs land in text[4096]. Returns the exit status. */
static int run(const char *arguments, char *text)
{
    char command[1024];
    snprintf(command, sizeof command, "exec 2>&1; '%s/onnxvram' %s", ONV_BUILD_DIR, arguments);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t length = fread(text, 1, 4095, pipe);
    text[length] = '\0';
    while (fgetc(pipe) != EOF) continue;
    int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void expect(const char *arguments, int status, const char *part)
{
    char text[4096];
    int got = run(arguments, text);
    if (got != status) fail_msg("'%s' gave %d, not %d: %s", arguments, got, status, text);
    if (strstr(text, part) == NULL) fail_msg("'%s' does not say '%s': %s", arguments, part, text);
    /* A mistake is told in one line. */
    if (status == 1 || status == 2) assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void write_file(const char *name, const void *data, size_t size)
{
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void write_model(const char *name, const char *batch)
{
    model *m = model_new(17);
    char type[64];
    size_t size;
    snprintf(type, sizeof type, "f32[%s,1024]", batch);
    model_input(m, "x", type);
    model_node(m, "Relu", "r", "x", "y", "");
    model_output(m, "y", "f32");
    const unsigned char *bytes = model_bytes(m, &size);
    write_file(name, bytes, size);
    model_free(m);
}

static void wrong_usage_is_status_2(void **state)
{
    (void)state;
    write_model("a.onnx", "n");
    expect("", 2, "no model");
    expect("--bogus a.onnx", 2, "--bogus");
    expect("--batch", 2, "needs a value");
    expect("--batch 0 a.onnx", 2, "at least 1");
    expect("--batch x a.onnx", 2, "'x'");
    expect("--dim n a.onnx", 2, "NAME=N");
    expect("--dim n=-1 a.onnx", 2, "NAME=N");
    expect("--dim m=1 a.onnx", 2, "symbolic dimensions: n");
    expect("--shape x=1x a.onnx", 2, "INPUT=AxBxC");
    expect("--shape z=1x2 a.onnx", 2, "inputs: x");
    expect("--dim n=1 --shape x=2x1024 a.onnx", 2, "both 1 and 2");
    expect("--json --csv a.onnx", 2, "standard output");
    expect("--dump=nothing a.onnx", 2, "'nothing'");
    expect("--order sideways a.onnx", 2, "'sideways'");
    expect("--runtime tensorflow a.onnx", 2, "'tensorflow'");
    expect("--budget lots a.onnx", 2, "'lots'");
    expect("--budget A100 a.onnx", 2, "A100 40GB, A100 80GB");
    expect("--max-batch a.onnx", 2, "--budget");
    expect("--budget 1GiB a.onnx", 2, "bind");
    expect("--train sgd a.onnx", 2, "bind");
    expect("-b 1 --train fast a.onnx", 2, "'fast'");
    expect("-b 1 --train sgd --loss none --zero 1 a.onnx", 2, "--world");
    expect("-b 1 --train sgd --zero-grad never a.onnx", 2, "before-backward");
    expect("-b 1 --train sgd --optimizer-impl fast a.onnx", 2, "for-loop");
    expect("-b 1 --checkpoint none a.onnx", 2, "--train");
    expect("-b 1 --train sgd --checkpoint half a.onnx", 2, "'half'");
    expect("-b 1 --train sgd --checkpoint every a.onnx", 2, "count");
    expect("-b 1 --train sgd --plan-out plan.txt a.onnx", 2, "--checkpoint");
    expect("plan", 2, "takes one file");
    expect("simulate t.csv", 2, "--runtime");
}

static void unusable_files_are_status_1(void **state)
{
    (void)state;
    expect("absent.onnx", 1, "absent.onnx: cannot be opened");
    expect(".", 1, "directory");
    write_file("empty.onnx", "", 0);
    expect("empty.onnx", 1, "empty");
    write_file("text.onnx", "hello, world\n", 13);
    expect("text.onnx", 1, "text.onnx");
    write_model("a.onnx", "4");
    char bytes[4096];
    FILE *file = fopen("a.onnx", "rb");
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    write_file("cut.onnx", bytes, size / 2);
    expect("cut.onnx", 1, "cut.onnx");
    model *m = model_new(17);
    model_input(m, "x", "f32[1]");
    model_output(m, "x", "f32[1]");
    const unsigned char *no_nodes = model_bytes(m, &size);
    write_file("no_nodes.onnx", no_nodes, size);
    model_free(m);
    expect("no_nodes.onnx", 1, "no nodes");
    expect("plan absent.csv", 1, "absent.csv");
    expect("simulate absent.csv --runtime torch", 1, "absent.csv");
}

static void one_bad_model_does_not_hide_the_others(void **state)
{
    (void)state;
    char text[4096];
    write_model("a.onnx", "4");
    assert_int_equal(run("-q a.onnx absent.onnx", text), 1);
    assert_non_null(strstr(text, "absent.onnx: cannot be opened"));
    assert_non_null(strstr(text, "a.onnx: 32.0 KiB"));
}

static void a_budget_decides_the_status(void **state)
{
    (void)state;
    write_model("a.onnx", "n");
    expect("-q -b 4 --runtime ideal --budget 32KiB a.onnx", 0, "a.onnx");
    expect("-q -b 4 --runtime ideal --budget 32767 a.onnx", 3, "a.onnx");
    expect("-q -b 4 --runtime ideal --budget 33KB --margin 1% a.onnx", 3, "a.onnx");
    expect("-q -b 4 --runtime torch --budget 'Tesla T4' a.onnx", 0, "a.onnx");
    expect("-q -b 4 --train sgd --budget 8GB " ONV_SOURCE_DIR "/samples/resnet18-train.onnx", 0,
           "");
    expect("-b 4 --train adam " ONV_SOURCE_DIR "/samples/resnet18-train.onnx", 0,
           "optimizer     89.2 MiB");
    expect("-b 1 a.onnx a.onnx", 0, "against the first");
    expect("-b 1 --order optimal a.onnx", 0, "no order has a lower peak");
    expect("--list-gpus", 0, "H200");
    expect("--runtime ideal --budget 1MiB --max-batch a.onnx", 0, "ideal  8.0 KiB  yes");
    expect("--runtime ideal --budget 1MiB --max-batch a.onnx", 0, "128\n");
    expect("--runtime ideal --budget 1048575 --max-batch a.onnx", 0, "127\n");
}

static void files_appear_whole_or_not_at_all(void **state)
{
    (void)state;
    struct stat status;
    write_model("a.onnx", "4");
    expect("--json=report.json a.onnx", 0, "a.onnx");
    assert_int_equal(stat("report.json", &status), 0);
    expect("--json=nowhere/report.json a.onnx > /dev/null", 1,
           "nowhere/report.json: cannot be written");
    expect("--csv=absent.csv absent.onnx", 1, "absent.onnx");
    assert_int_not_equal(stat("absent.csv", &status), 0);
    if (access("/dev/full", W_OK) == 0) {
        expect("--json a.onnx > /dev/full", 1, "standard output: ");
        expect("a.onnx > /dev/full", 1, "standard output: cannot be written");
    }
    assert_int_equal(system("ls | grep -q '[.]......$' && exit 1; exit 0"), 0);
}

static void plan_and_simulate_answer_in_csv(void **state)
{
    (void)state;
    static const char intervals[] = "id,lower,upper,size\na,0,2,10\nb,1,3,5\nc,2,4,10\n";
    static const char trace[] = "alloc,a,1000\nalloc,b,3000000,1,name\nfree,a\n";
    write_file("i.csv", intervals, strlen(intervals));
    write_file("t.csv", trace, strlen(trace));
    expect("plan i.csv", 0, "height 15, lower bound 15: optimal");
    expect("plan --capacity 14 i.csv", 3, "no plan within");
    expect("plan -o o.csv i.csv && cat o.csv", 0, "id,lower,upper,size,offset\na,0,2,10,");
    /* PyTorch: 1024 bytes in a small segment, 3,000,320 in a large one of 20 MiB. */
    expect("simulate t.csv --runtime torch", 0, "torch,3001344,23068672,3000320,23068672,2\n");
    expect("simulate t.csv --runtime ideal --header", 0,
           "runtime,allocated_peak,reserved_peak,allocated_end,reserved_end,segments\n"
           "ideal,3001000,");
    expect("simulate i.csv --runtime torch", 1, "line 1");
}

/* Each limit, lowered, is met; its message says how it is raised, and raising it helps. */
static void limits_can_be_raised(void **state)
{
    (void)state;
    static const struct {
        const char *name, *low, *enough, *file;
    } cases[] = {
        {"nodes", "10", "4KiB", "samples/resnet18.onnx"},
        {"values", "10", "4096", "samples/resnet18.onnx"},
        {"nesting", "3", "200", "samples/resnet18.onnx"},
        {"function-depth", "1", "2", "tests/fuzz/corpus/models/calls.onnx"},
        {"attr-elems", "3", "4", "samples/resnet18.onnx"},
        {"name-bytes", "8", "64", "samples/resnet18.onnx"},
        {"memory", "80000", "64MiB", "samples/resnet18.onnx"},
        {"file-bytes", "1000", "1MiB", "samples/resnet18.onnx"},
    };
    /* Those that need more to be met: see tests/load/test_limits.c. */
    static const char *const others[] = {"known-elems", "expression", "node-runs", "seconds"};
    enum { N_CASES = sizeof cases / sizeof cases[0], N_OTHERS = sizeof others / sizeof others[0] };
    char arguments[512], part[64];
    for (size_t i = 0; i < N_CASES; i++) {
        assert_string_equal(cases[i].name, onv_limit_name(i, NULL, NULL));
        snprintf(arguments, sizeof arguments, "-q -b 1 --limit %s=%s " ONV_SOURCE_DIR "/%s",
                 cases[i].name, cases[i].low, cases[i].file);
        snprintf(part, sizeof part, "--limit %s=N raises it", cases[i].name);
        expect(arguments, 1, part);
        snprintf(arguments, sizeof arguments, "-q -b 1 --limit %s=%s " ONV_SOURCE_DIR "/%s",
                 cases[i].name, cases[i].enough, cases[i].file);
        expect(arguments, 0, cases[i].file);
    }
    for (size_t i = 0; i < N_OTHERS; i++) {
        assert_string_equal(others[i], onv_limit_name(N_CASES + i, NULL, NULL));
        snprintf(arguments, sizeof arguments, "-q -b 1 --limit %s=99 " ONV_SOURCE_DIR "/%s",
                 others[i], cases[0].file);
        expect(arguments, 0, cases[0].file);
    }
    assert_null(onv_limit_name(N_CASES + N_OTHERS, NULL, NULL));
    expect("--limit nodes=0 a.onnx", 2, "--limit takes NAME=N");
    expect("--limit nodes a.onnx", 2, "--limit takes NAME=N");
    expect("--limit noodles=5 a.onnx", 2, "--limit takes NAME=N");
    expect("--limit nesting=8GiB a.onnx", 2, "--limit takes NAME=N");
}

static void hostile_names_do_not_reach_the_terminal(void **state)
{
    (void)state;
    char text[4096];
    model *m = model_new(17);
    size_t size;
    model_input(m, "x", "f32[4]");
    model_node(m, "Mystery\x1b[2J", "n\x1b]0;t\a", "x", "y\x1b[31m", "");
    model_output(m, "y\x1b[31m", "f32");
    const unsigned char *bytes = model_bytes(m, &size);
    write_file("h.onnx", bytes, size);
    model_free(m);
    assert_int_equal(run("h.onnx", text), 0);
    assert_null(strchr(text, '\x1b'));
    assert_non_null(strstr(text, "\\x1b"));
    assert_int_equal(run("$(printf 'a\\033[2J.onnx')", text), 1);
    assert_null(strchr(text, '\x1b'));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_usage_is_status_2),
        cmocka_unit_test(unusable_files_are_status_1),
        cmocka_unit_test(one_bad_model_does_not_hide_the_others),
        cmocka_unit_test(a_budget_decides_the_status),
        cmocka_unit_test(files_appear_whole_or_not_at_all),
        cmocka_unit_test(plan_and_simulate_answer_in_csv),
        cmocka_unit_test(limits_can_be_raised),
        cmocka_unit_test(hostile_names_do_not_reach_the_terminal),
    };
    return cmocka_run_group_tests_name("cli", tests, setup, teardown);
}
