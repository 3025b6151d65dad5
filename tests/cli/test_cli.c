/* The program as its users call it: exit statuses, one clear line per mistake, files that appear
 * only whole. */
#include <sys/stat.h>
#include <unistd.h>

#include "cli/program.h"
#include "support/test.h"

static void write_model(const char *name, const char *batch)
{
    model *m = model_new(17);
    char type[64];
    snprintf(type, sizeof type, "f32[%s,1024]", batch);
    model_input(m, "x", type);
    model_add(m, "y = Relu(x) r", "out y f32");
    program_write_model(name, m);
}

TEST(unusable_files_are_status_1)
{
    write_model("a.onnx", "4");
    char bytes[4096];
    FILE *file = fopen("a.onnx", "rb");
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    program_write("cut.onnx", bytes, size / 2);
    program_expect("cut.onnx", 1, "cut.onnx");
    OWNED_MODEL m = model_read(17, "in x f32[1]", "out x f32[1]");
    const unsigned char *no_nodes = model_bytes(m, &size);
    program_write("no_nodes.onnx", no_nodes, size);
    program_expect("no_nodes.onnx", 1, "no nodes");
    program_expect("simulate absent.csv --runtime torch", 1, "absent.csv");
}

TEST(one_bad_model_does_not_hide_the_others)
{
    char text[PROGRAM_TEXT];
    write_model("a.onnx", "4");
    assert_int_equal(program_run("-q a.onnx absent.onnx", text), 1);
    assert_non_null(strstr(text, "absent.onnx: cannot be opened"));
    assert_non_null(strstr(text, "a.onnx: torch "));
}

TEST(a_budget_decides_the_status)
{
    write_model("a.onnx", "n");
    program_expect("-q -b 4 --runtime ideal --budget 32KiB a.onnx", 0, "a.onnx");
    program_expect("-q -b 4 --runtime ideal --budget 32767B a.onnx", 3, "a.onnx");
    program_expect("-q -b 4 --runtime ideal --budget 33KB --margin 1% a.onnx", 3, "a.onnx");
    program_expect("-q -b 4 --runtime torch --budget 'Tesla T4' a.onnx", 0, "a.onnx");
    program_expect(
        "-q -b 4 --train sgd --budget 8GB " ONV_SOURCE_DIR "/samples/resnet18-train.onnx", 0, "");
    program_expect("-b 4 --train adam " ONV_SOURCE_DIR "/samples/resnet18-train.onnx", 0,
                   "optimizer     89.2 MiB");
    program_expect("-b 1 a.onnx a.onnx", 0, "against the first");
    program_expect("-b 1 --order optimal a.onnx", 0, "no order has a lower peak");
    program_expect("--list-gpus", 0, "H200");
    program_expect("--runtime ideal --budget 1MiB --max-batch a.onnx", 0, "It fits 1.0 MiB: ideal");
    program_expect("--runtime ideal --budget 1MiB --max-batch a.onnx", 0, ": ideal 128.\n");
    program_expect("--runtime ideal --budget 1048575B --max-batch a.onnx", 0, ": ideal 127.\n");
}

TEST(files_appear_whole_or_not_at_all)
{
    struct stat status;
    write_model("a.onnx", "4");
    program_expect("--json=report.json a.onnx", 0, "a.onnx");
    assert_int_equal(stat("report.json", &status), 0);
    program_expect("--json=nowhere/report.json a.onnx > /dev/null", 1,
                   "nowhere/report.json: cannot be written");
    program_expect("--csv=absent.csv absent.onnx", 1, "absent.onnx");
    assert_int_not_equal(stat("absent.csv", &status), 0);
    if (access("/dev/full", W_OK) == 0) {
        program_expect("--json a.onnx > /dev/full", 1, "standard output: ");
        program_expect("a.onnx > /dev/full", 1, "standard output: cannot be written");
    }
    assert_int_equal(system("ls | grep -q '[.]......$' && exit 1; exit 0"), 0);
}

TEST(plan_and_simulate_answer_in_csv)
{
    static const char intervals[] = "id,lower,upper,size\na,0,2,10\nb,1,3,5\nc,2,4,10\n";
    static const char trace[] = "alloc,a,1000\nalloc,b,3000000,1,name\nfree,a\n";
    program_write("i.csv", intervals, strlen(intervals));
    program_write("t.csv", trace, strlen(trace));
    program_expect("plan i.csv", 0, "height 15, lower bound 15: optimal");
    program_expect("plan --capacity 14 i.csv", 3, "no plan within");
    program_expect("plan -o o.csv i.csv && cat o.csv", 0, "id,lower,upper,size,offset\na,0,2,10,");
    /* PyTorch: 1024 bytes in a small segment, 3,000,320 in a large one of 20 MiB. */
    program_expect("simulate t.csv --runtime torch", 0,
                   "torch,3001344,23068672,3000320,23068672,2\n");
    program_expect("simulate t.csv --runtime ideal --header", 0,
                   "runtime,allocated_peak,reserved_peak,allocated_end,reserved_end,segments\n"
                   "ideal,3001000,");
}

/* Each limit, lowered, is met; its message says how it is raised, and raising it helps. */
TEST(limits_can_be_raised)
{
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
        {"work", "1000", "99999999", "samples/resnet18.onnx"},
        {"file-bytes", "1000", "1MiB", "samples/resnet18.onnx"},
        {"output", "10", "1MiB", "samples/resnet18.onnx"},
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
        program_expect(arguments, 1, part);
        snprintf(arguments, sizeof arguments, "-q -b 1 --limit %s=%s " ONV_SOURCE_DIR "/%s",
                 cases[i].name, cases[i].enough, cases[i].file);
        program_expect(arguments, 0, cases[i].file);
    }
    for (size_t i = 0; i < N_OTHERS; i++) {
        assert_string_equal(others[i], onv_limit_name(N_CASES + i, NULL, NULL));
        snprintf(arguments, sizeof arguments, "-q -b 1 --limit %s=99 " ONV_SOURCE_DIR "/%s",
                 others[i], cases[0].file);
        program_expect(arguments, 0, cases[0].file);
    }
    assert_null(onv_limit_name(N_CASES + N_OTHERS, NULL, NULL));
}

TEST(hostile_names_do_not_reach_the_terminal)
{
    char text[PROGRAM_TEXT];
    OWNED_MODEL m = model_new(17);
    size_t size;
    model_add(m, "in x f32[4]", "y\x1b[31m = Mystery\x1b[2J(x) n\x1b]0;t\a");
    model_output(m, "y\x1b[31m", "f32");
    const unsigned char *bytes = model_bytes(m, &size);
    program_write("h.onnx", bytes, size);
    assert_int_equal(program_run("h.onnx", text), 0);
    assert_null(strchr(text, '\x1b'));
    assert_non_null(strstr(text, "\\x1b"));
    assert_int_equal(program_run("$(printf 'a\\033[2J.onnx')", text), 1);
    assert_null(strchr(text, '\x1b'));
}

TEST_GROUP(folder_enter, folder_leave)
