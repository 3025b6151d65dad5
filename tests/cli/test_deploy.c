/* What the one who deploys asks: which GPU, which batch, how long a sequence, what grew, what changed. */
#include <sys/stat.h>

#include "cli/program.h"
#include "support/test.h"

#define SAMPLES ONV_SOURCE_DIR "/samples/"

static char text[PROGRAM_TEXT];

#define EXPECT(arguments, status, ...)                                                             \
    program_expect_parts(arguments, status, (const char *const[]){__VA_ARGS__, NULL}, text)

TEST(several_devices_are_a_table)
{
    EXPECT("-b 8 --budget T4,L4,2GiB " SAMPLES "resnet18.onnx", 0, "Budgets",
           "  T4        15.00 GiB  yes", "  L4        22.49 GiB  yes",
           "  2.00 GiB   2.00 GiB  yes");
    /* One that fits is enough; none is not. */
    EXPECT("-b 8 --budget 1MiB,L4 " SAMPLES "resnet18.onnx", 0, "1.0 MiB  no ");
    EXPECT("-b 8 --budget 1MiB,2MiB " SAMPLES "resnet18.onnx", 3, "2.0 MiB  no ");
    EXPECT("-b 8 --budget T4 " SAMPLES "resnet18.onnx", 0,
           "It fits T4, 15.00 GiB: ort needs up to ");
    EXPECT("-b 8 --runtime ideal,torch --budget 100MiB " SAMPLES "resnet18.onnx", 3,
           "It does not fit 100.0 MiB: torch needs up to ");
    EXPECT("-q -b 8 --runtime ideal --max-batch --budget 100MiB " SAMPLES "resnet18.onnx", 0,
           "ideal 93.6 MiB, batch = 8, fits 100.0 MiB; largest batch on 100.0 MiB: ideal 9\n");
    /* Each is judged with its own libraries, as if it stood alone. */
    char alone[PROGRAM_TEXT];
    assert_int_equal(program_run("-q -b 8 --runtime torch --max-batch --budget A100-80GB " SAMPLES
                                 "resnet18.onnx",
                                 alone),
                     0);
    const char *verdict = strstr(alone, "; largest batch on A100 80GB: torch ");
    assert_non_null(verdict);
    EXPECT("-q -b 8 --runtime torch --max-batch --budget T4,A100-80GB " SAMPLES "resnet18.onnx", 0,
           verdict);
}

/* Whether a batch is bound beside them or not. */
TEST(requests_are_in_every_report)
{
    static const char *const commands[] = {"", "-b 1", "-q", "-q -b 1", "-d batch=1"};
    char arguments[512];
    program_write("requests.csv", "batch\n1\n8\n", strlen("batch\n1\n8\n"));
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        snprintf(arguments, sizeof arguments, "%s --runtime ort --shape-trace requests.csv %s",
                 commands[i], SAMPLES "resnet18.onnx");
        EXPECT(arguments, 0, "Requests to one session of ONNX Runtime", "2  batch=8  104.3 MiB");
    }
}

TEST(instances_stand_before_or_behind_their_option)
{
    EXPECT("'" SAMPLES "resnet18.onnx*2' -b 8 --runtime ort --together", 0, "resnet18.onnx");
    EXPECT("-b 8 --runtime ort --together '" SAMPLES "resnet18.onnx*2'", 0, "resnet18.onnx");
}

/* All of them have to fit one of the devices. */
TEST(instances_fit_together_or_not)
{
    EXPECT("-q '" SAMPLES "resnet18.onnx*3' -b 8 --runtime ort --together --budget 1GiB,L4", 0,
           "Together they do not fit 1.00 GiB.", "Together they fit L4.");
    EXPECT("-q '" SAMPLES "resnet18.onnx*3' -b 8 --runtime ort --together --budget 1GiB", 3,
           "Together they do not fit 1.00 GiB.");
    /* In turn it is the largest one, whatever the order. */
    EXPECT("-q " SAMPLES "lstm.onnx '" SAMPLES "resnet18.onnx*3' -b 8 -d sequence=8 --runtime ort "
           "--together --sequential --budget 1GiB",
           0, "One after the other they fit 1.00 GiB.", "  in turn ");
    EXPECT(SAMPLES "resnet18.onnx -b 8 --runtime ort --sequential", 2,
           "--sequential needs several sessions");
}

/* An engine is planned at the largest sizes of its profile. */
TEST(a_profile_is_of_tensorrt)
{
    static const char sizes[] = "--profile batch=1:8:16";
    static const char shapes[] = "--profile input=1x3x224x224:8x3x224x224:16x3x224x224";
    static const struct {
        const char *options, *says;
    } refused[] = {
        {"", "add --runtime tensorrt"},
        {"--runtime ort", "add --runtime tensorrt"},
        {"--runtime tensorrt --profile batch=1:2:3", "'batch' has a size already"},
        {"--runtime tensorrt --profile pixels=1:2:3", "--profile: 'pixels' is unknown; choose"},
        {"--runtime tensorrt --profile x=1x3:2x3:2x3", "--profile: 'x' is unknown; choose"},
    };
    static const char *const mistakes[] = {"batch=8:1:16", "batch=1:8", "batch=1:2:3:4",
                                           "batch=a:b:c",  "batch=",    "input=1x3:8x3x4:8x3x4",
                                           "=1:2:3"};
    static const char *const given[] = {"-b 16", sizes, shapes};
    char arguments[256];
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        snprintf(arguments, sizeof arguments, "-q --runtime tensorrt %s " SAMPLES "resnet18.onnx",
                 given[i]);
        EXPECT(arguments, 0, "tensorrt 371–715 MiB on H100");
    }
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        snprintf(arguments, sizeof arguments, "%s %s " SAMPLES "resnet18.onnx", sizes,
                 refused[i].options);
        EXPECT(arguments, 2, refused[i].says);
    }
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        snprintf(arguments, sizeof arguments, "--runtime tensorrt --profile %s m.onnx",
                 mistakes[i]);
        EXPECT(arguments, 2, "--profile takes NAME=MIN:OPT:MAX");
    }
}

TEST(branches_and_loops_run_everywhere)
{
    static const char *const models[] = {"if-nested", "if-in-scan", "loop-state-and-stack",
                                         "scan-two"};
    char arguments[256];
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        snprintf(arguments, sizeof arguments,
                 "-q --runtime cpu,tensorrt %s/tests/conformance/%s.onnx", ONV_SOURCE_DIR,
                 models[i]);
        EXPECT(arguments, 0, "cpu ", "tensorrt ");
    }
}

TEST(the_largest_size_of_a_dim)
{
    EXPECT("-b 2 --runtime ideal --budget 64MiB --max-dim sequence " SAMPLES "lstm.onnx", 0,
           "Largest sequence on 64.0 MiB: ideal 6,407.");
    /* The table of positions ends. */
    EXPECT("-b 2 --runtime ideal --budget T4 --max-dim sequence " SAMPLES "bert.onnx", 0, "512",
           "allows no larger");
    /* Multiples of 16 alone. */
    EXPECT("-b 1 -d width=64 --runtime ideal --budget 100MiB --max-dim height " SAMPLES "unet.onnx",
           0, "Largest height on 100.0 MiB: ideal ");
}

TEST(what_grew_since_a_baseline)
{
    EXPECT("-q -b 8 --json=before.json " SAMPLES "resnet18.onnx", 0, "resnet18.onnx: torch ");
    EXPECT("-b 8 --baseline before.json --max-growth 0% " SAMPLES "resnet18.onnx", 0,
           "Growth since before.json, at most 0.00%");
    EXPECT("-b 9 --baseline before.json --max-growth 10% " SAMPLES "resnet18.onnx", 3, "too much",
           "its bindings differ",
           "grew by more than is allowed: peak from 51395584 to 57818112 bytes");
    /* 57,818,112 is 12.496 % more. */
    EXPECT("-b 9 --runtime ideal --baseline before.json --max-growth 12.5% " SAMPLES
           "resnet18.onnx",
           0, "+12%");
    EXPECT("-b 9 --runtime ideal --baseline before.json --max-growth 12.49 " SAMPLES
           "resnet18.onnx",
           3, "too much");
    EXPECT("-b 7 --baseline before.json --max-growth 0% " SAMPLES "resnet18.onnx", 0, "-12%");
    /* Inference says nothing of training. */
    EXPECT("-q -b 8 --train sgd --baseline before.json " SAMPLES "resnet18-train.onnx", 0,
           "growth of train not known: it is not in before.json", "warning (baseline-lacks)");
    assert_int_equal(mkfifo("fifo.json", 0600), 0);
    EXPECT("-b 8 --baseline fifo.json " SAMPLES "resnet18.onnx", 1, "not a report of --json");
}

/* Exporters call all files alike: that of the same path counts, and no other one. */
TEST(models_of_one_name_are_told_apart)
{
    static const char *const files[] = {"a/model.onnx", "b/model.onnx", "c/model.onnx"};
    for (int i = 0; i < 3; i++) {
        char folder[] = {files[i][0], '\0'}, shape[16];
        assert_int_equal(mkdir(folder, 0700), 0);
        model *m = model_new(17);
        snprintf(shape, sizeof shape, "f32[%d]", 64 << i);
        model_input(m, "x", shape);
        model_add(m, "y = Neg(x) n", "out y f32");
        program_write_model(files[i], m);
    }
    EXPECT("-q --json=both.json a/model.onnx b/model.onnx", 0, "b/model.onnx: ");
    EXPECT("-q --baseline both.json --max-growth 0% b/model.onnx", 0, "no growth since both.json");
    EXPECT("-q --baseline both.json c/model.onnx", 1,
           "expected one model 'model.onnx' in the baseline", "found 2");
}

TEST(what_changed_between_two_models)
{
    EXPECT("diff -b 8 " SAMPLES "resnet18.onnx " SAMPLES "resnet50.onnx", 0, "Changes from",
           "11,680,872  25,530,472", "layer1/layer1.2", "Tensors that changed");
    EXPECT("diff -b 8 " SAMPLES "resnet18.onnx " SAMPLES "resnet18.onnx", 0, "=");
    assert_null(strstr(text, "that changed"));
    EXPECT("diff -b 8 --max-growth 5% " SAMPLES "resnet18.onnx " SAMPLES "resnet50.onnx", 3,
           "grew by more than is allowed", "resnet18.onnx)");
    EXPECT("diff -b 8 --max-growth 5% " SAMPLES "resnet50.onnx " SAMPLES "resnet18.onnx", 0,
           "Changes");
    /* Counts are no bytes, however much they grow. */
    program_write_model("thin.onnx", model_read(17, "in x f32[64,8]", "weight w f32[8,8]",
                                                "y = MatMul(x w) m", "out y f32"));
    program_write_model("wide.onnx", model_read(17, "in x f32[64,64]", "weight w f32[64,64]",
                                                "y = MatMul(x w) m", "out y f32"));
    EXPECT("diff thin.onnx wide.onnx", 0, "  parameters ", "x64.0\n", "  MACs ");
    assert_null(strstr(text, "+252"));
    /* Sizes of an example are said to be. */
    EXPECT("diff " SAMPLES "resnet18.onnx " SAMPLES "resnet50.onnx", 0, "an example, batch = 1");
    EXPECT("diff --json " SAMPLES "resnet18.onnx " SAMPLES "resnet50.onnx", 0,
           "\"is_example\": true");
    EXPECT("diff -b 8 --json " SAMPLES "resnet18.onnx " SAMPLES "resnet18-train.onnx", 0,
           "\"totals_after\": {\"nodes\": 69");
}

/* Names act on no page that shows the Markdown. */
TEST(markdown_is_for_pull_requests)
{
    EXPECT("-b 8 --format markdown --budget T4 " SAMPLES "resnet18.onnx", 0, "### ",
           "| peak | 49.0 MiB |", "|---|--:|", "- It fits T4, 15.00 GiB: ");
    EXPECT("-q -b 9 --format markdown --baseline before.json --max-growth 5% --train sgd " SAMPLES
           "resnet18-train.onnx",
           3, "| peak |", "too much", "Warnings: no-notes");
    size_t n_lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++) n_lines++;
    assert_in_range(n_lines, 10, 25);
    EXPECT("diff -b 8 --format markdown " SAMPLES "resnet18.onnx " SAMPLES "resnet50.onnx", 0,
           "| nodes | 65 | 122 | +88% |");
    model *m = model_read(17, "in x f32[64]", "a|b = Relu(x) <script>alert(1)</script>");
    model_node(m, "Relu", "n", "a|b", "[y](http://z)", "");
    model_output(m, "[y](http://z)", "f32");
    program_write_model("hostile.onnx", m);
    m = model_read(17, "in x f32[64]", "y = Neg(x) n", "out y f32");
    program_write_model("plain.onnx", m);
    EXPECT("diff --format markdown plain.onnx hostile.onnx", 0, "a&#124;b", "&#60;script&#62;");
    assert_null(strstr(text, "<script"));
}

TEST(free_dims_get_an_answer)
{
    EXPECT(SAMPLES "bert.onnx", 0, "An example, batch = 1, sequence = 128", "--batch 1",
           "--dim sequence=128", "Needed on H100");
    /* What was given stays in the command. */
    EXPECT("-b 4 " SAMPLES "bert.onnx", 0, "bert.onnx --batch 4 ", "--dim sequence=128");
    EXPECT("-d sequence=9 " SAMPLES "bert.onnx", 0, " --dim sequence=9 ", "--batch 1");
    /* What it prints can be pasted. */
    EXPECT("--batch 1 --dim sequence=128 " SAMPLES "bert.onnx", 0, "Needed on H100");
    EXPECT("--formula=python " SAMPLES "lstm.onnx", 0,
           "def peak_bytes(batch, sequence):", "return 14600380 + peak_bytes(batch, sequence)");
    EXPECT("--formula " SAMPLES "lstm.onnx", 0, "# from sequence = 3 on");
    EXPECT("-q " SAMPLES "bert.onnx", 0, "bert.onnx: ");
    model *m = model_read(17, "in x f32[it's,4]", "y = Relu(x) n", "out y f32");
    program_write_model("quoted name.onnx", m);
    EXPECT("'quoted name.onnx'", 0, "onnxvram 'quoted name.onnx' --batch 1");
    EXPECT("--formula=c 'quoted name.onnx'", 0, "int64_t it_s");
    /* Names that are one identifier, a word of the language, and a function of the file. */
    m = model_read(17, "in x f32[a b,a.b,def,peak_bytes]", "y = Relu(x) n", "out y f32");
    program_write_model("names.onnx", m);
    EXPECT("--formula=python names.onnx", 0, "def peak_bytes(a_b, a_b_1, def_2, peak_bytes_3):");
}

TEST_GROUP(folder_enter, folder_leave)
