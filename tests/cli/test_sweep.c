/* onnxvram sweep: its figures are those of single reports, and its pictures are safe to show. */
#include <inttypes.h>
#include <jansson.h>

#include "cli/program.h"
#include "support/capture.h"
#include "support/test.h"

#define MODEL ONV_SOURCE_DIR "/samples/resnet18.onnx"
#define BERT  ONV_SOURCE_DIR "/samples/bert.onnx"

static json_t *load(const char *file)
{
    json_t *root = json_load_file(file, 0, NULL);
    if (root == NULL) fail_msg("%s is no JSON", file);
    return root;
}

static json_t *points_of(const json_t *root)
{
    return json_object_get(json_object_get(root, "sweep"), "points");
}

TEST(figures_are_those_of_reports)
{
    static const int batches[] = {1, 3, 4, 8, 16, 20};
    program_expect("sweep " MODEL " -b 1,3,4..20:x2 --budget T4,400MiB --json=sweep.json", 0,
                   "batch");
    OWNED_JSON sweep = load("sweep.json");
    assert_int_equal(json_array_size(points_of(sweep)), 6);
    for (size_t i = 0; i < 6; i++) {
        char command[256];
        json_t *point = json_array_get(points_of(sweep), i);
        json_t *answer = json_object_get(point, "answer");
        assert_int_equal(
            json_integer_value(json_object_get(json_object_get(point, "bindings"), "batch")),
            batches[i]);
        snprintf(command, sizeof command, "-b %d --json=one.json " MODEL " --budget T4",
                 batches[i]);
        program_expect(command, 0, "T4");
        OWNED_JSON one = load("one.json");
        json_t *of = json_object_get(json_array_get(json_object_get(one, "models"), 0), "answer");
        for (size_t k = 0; k < 2; k++) {
            const char *key = k == 0 ? "low_bytes" : "high_bytes";
            assert_int_equal(json_integer_value(json_object_get(answer, key)),
                             json_integer_value(json_object_get(of, key)));
        }
        assert_true(json_is_true(json_object_get(json_object_get(answer, "fits"), "T4")));
    }
}

TEST(sizes_are_lists)
{
    static char text[PROGRAM_TEXT];
    program_expect("sweep " MODEL " -b 8..32:+8 --csv --runtime ort", 0, "batch,runtime,low_bytes");
    program_run("sweep " MODEL " -b 8..32:+8 --csv --runtime ort", text);
    static const char *const rows[] = {"\n8,ort,", "\n16,ort,", "\n24,ort,", "\n32,ort,"};
    for (size_t i = 0; i < 4; i++) assert_non_null(strstr(text, rows[i]));
    program_expect("sweep " BERT " -b 1,2 -d sequence=16,32 --runtime ort --csv", 0,
                   "batch,sequence,runtime");
    program_expect("sweep " BERT " -b 1,2 -d sequence=16..64 --budget 100MiB,T4", 0,
                   "T4: batch = 2, sequence = 64 is the largest");
    program_expect("sweep " BERT " -b 1,2 -d sequence=16 --budget 100MiB", 3,
                   "no batch of these fits");
}

TEST(mistakes)
{
    program_expect("sweep " MODEL " -b 4", 2, "no list of sizes");
    program_expect("sweep " MODEL " -b 4..2", 2, "'4..2'");
    program_expect("sweep " MODEL " -b 4..x", 2, "'4..x'");
    program_expect("sweep " MODEL " -b 1,,2", 2, "'1,,2'");
    program_expect("sweep " MODEL " -b 1..9:x1", 2, "'1..9:x1'");
    program_expect("sweep " MODEL " -b 1..99999:+1", 2, "up to 4096");
    program_expect("sweep " BERT " -b 1..99:+1 -d sequence=1..99:+1", 2, "not 9801");
    program_expect("sweep " BERT " -b 1,2", 2, "bind --dim sequence=N");
    program_expect("sweep " MODEL " -d batchh=1,2", 2, "'batchh'");
    program_expect("sweep " MODEL " " MODEL " -b 1,2", 2, "one model");
    program_expect("sweep " MODEL " -b 1,2 --untrusted", 2, "--untrusted");
    program_expect("sweep " MODEL " -b 1,2 --perfetto a.trace", 2, "--svg");
    program_expect("sweep absent.onnx -b 1,2", 1, "absent.onnx");
    program_expect("sweep --help", 0, "Usage: onnxvram sweep");
}

/* A name that would act on a page. */
TEST(pictures_are_safe)
{
    static char text[PROGRAM_TEXT];
    model *m =
        model_read(17, "in x f32[<script>alert(1)</script>,4]", "y = Relu(x) relu", "out y f32");
    program_write_model("named.onnx", m);
    program_expect("sweep named.onnx -d '<script>alert(1)</script>=1,2,4' --svg curve.svg", 0, "4");
    assert_int_equal(program_run("--version; cat curve.svg", text), 0);
    assert_null(strstr(text, "<script"));
    assert_non_null(strstr(text, "</svg>"));
    program_expect("sweep " BERT " -b 1,2 -d sequence=16,32 --svg map.svg", 0, "32");
    assert_int_equal(program_run("--version; cat map.svg", text), 0);
    assert_non_null(strstr(text, "sequence</text>"));
    /* The model has 512 positions: what it does not take has no figure. */
    assert_int_equal(program_run("sweep " BERT " -b 1,2 -d sequence=16,1024 --svg map.svg", text),
                     1);
    assert_non_null(strstr(text, "not sized\n"));
    assert_int_equal(program_run("--version; cat map.svg", text), 0);
    assert_non_null(strstr(text, ">not sized</text>"));
    assert_null(strstr(text, ">0.00</text>"));
}

TEST_GROUP(folder_enter, folder_leave)
