/* The prediction beside a measurement: a small network that PyTorch trained over a substitute for the CUDA driver. Snapshots that are
 * bent at one place are found there. */
#include <sys/stat.h>

#include "cli/program.h"
#include "support/test.h"

#define NETWORK  ONV_SOURCE_DIR "/tests/measured/tiny.onnx -b 8 "
#define SNAPSHOT ONV_SOURCE_DIR "/tests/fuzz/corpus/snapshot/"
#define TRAIN    NETWORK "--train adamw --inplace=none "

TEST(orders_agree)
{
    static const char *const parts[] = {"optimizer      5.0 MiB    5.0 MiB\n",
                                        "workspaces    32.0 MiB   32.0 MiB\n",
                                        "allocated     46.4 MiB   46.4 MiB\n",
                                        "reserved      54.0 MiB   54.0 MiB\n",
                                        "23 of 23 predicted allocations",
                                        "_make_grads __init__.py:233",
                                        NULL};
    char text[PROGRAM_TEXT];
    program_expect_parts("compare " TRAIN "--snapshot " SNAPSHOT "late.pickle", 0, parts, text);
    assert_null(strstr(text, "They part"));
    assert_null(strstr(text, "the first step of the optimizer"));
    program_expect_parts(
        "compare " TRAIN "--expandable-segments --snapshot " SNAPSHOT "expandable.pickle", 0,
        (const char *const[]){"reserved      62.0 MiB   62.0 MiB\n", NULL}, text);
}

/* What the program writes as a snapshot is what it predicts: nothing is on one side alone. */
TEST(own_snapshots_agree)
{
    static const char *const models[] = {
        TRAIN, TRAIN "--expandable-segments ", NETWORK "--runtime torch ",
        ONV_SOURCE_DIR "/samples/resnet18-train.onnx -b 8 --train momentum --checkpoint sqrt ",
        ONV_SOURCE_DIR "/samples/bert.onnx -d batch=2 -d sequence=9 --runtime torch "};
    char command[1024], text[PROGRAM_TEXT];
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        snprintf(command, sizeof command, "%s-q --memory-viz own.pickle", models[i]);
        assert_int_equal(program_run(command, text), 0);
        snprintf(command, sizeof command, "compare %s--snapshot own.pickle", models[i]);
        program_expect_parts(command, 0, (const char *const[]){"predicted allocations", NULL},
                             text);
        assert_null(strstr(text, "They part"));
        assert_null(strstr(text, "Only in"));
        assert_null(strstr(text, "Modules that differ"));
    }
}

/* The first iteration makes the optimizer's state at its end, which the prediction has from the beginning. */
TEST(the_first_iteration_is_another_one)
{
    char text[PROGRAM_TEXT];
    program_expect_parts(
        "compare " TRAIN "--snapshot " SNAPSHOT "early.pickle", 4,
        (const char *const[]){"optimizer      5.0 MiB       64 B",
                              "They part at step 31, optimizer of adamw:", "predicted 2.5 MiB,",
                              "outside", "has the first step of the optimizer", NULL},
        text);
}

/* A pickle with a number in another's place: the first of `from` in the file at or behind `at`. */
static void bend(const char *name, const unsigned char *from, const unsigned char *to, size_t n,
                 unsigned which)
{
    char data[1 << 15];
    FILE *file = fopen(SNAPSHOT "late.pickle", "rb");
    assert_non_null(file);
    size_t bytes = fread(data, 1, sizeof data, file);
    fclose(file);
    for (size_t i = 0; i + n <= bytes; i++)
        if (memcmp(data + i, from, n) == 0 && which-- == 0) {
            memcpy(data + i, to, n);
            program_write(name, data, bytes);
            return;
        }
    fail_msg("the snapshot has other numbers");
}

/* Without the option a ReLU overwrites its input: the convolution's result has no partner then. */
TEST(what_exports_hide_is_found)
{
    char text[PROGRAM_TEXT];
    program_expect_parts("compare " NETWORK "--train adamw --snapshot " SNAPSHOT "late.pickle", 0,
                         (const char *const[]){"They part at step 16, forward of conv /a/Conv: "
                                               "predicted",
                                               "_conv_forward conv.py:560", NULL},
                         text);
}

/* The ReLU, and then a gradient, take twice as much as is predicted. */
TEST(a_wrong_size_is_found_at_its_step)
{
    static const unsigned char two_mib[] = {'J', 0, 0, 0x20, 0}, four_mib[] = {'J', 0, 0, 0x40, 0};
    char text[PROGRAM_TEXT];
    bend("bent.pickle", two_mib, four_mib, sizeof two_mib, 3);
    program_expect_parts("compare " TRAIN "--snapshot bent.pickle", 4,
                         (const char *const[]){"22 of 23", "They part at step 17, forward of relu",
                                               "predicted 2.0 MiB, measured 4.0",
                                               "at forward train.py:11", NULL},
                         text);
    bend("bent.pickle", two_mib, four_mib, sizeof two_mib, 6);
    program_expect_parts("compare " TRAIN "--snapshot bent.pickle", 4,
                         (const char *const[]){"22 of 23", "They part at step 26",
                                               "backward of addmm /b/Gemm: predicted 2.0 MiB,",
                                               "4.0 MiB at backward", NULL},
                         text);
}

/* The result of the ReLU is freed two allocations later than is predicted. */
TEST(a_wrong_lifetime_is_found_at_its_step)
{
    char text[PROGRAM_TEXT];
    program_expect_parts("compare " TRAIN "--snapshot " SNAPSHOT "longer.pickle", 0,
                         (const char *const[]){"23 of 23", "They part at step 17, forward of relu",
                                               "its 2.0 MiB are freed", NULL},
                         text);
}

TEST(a_total_is_explained)
{
    char text[PROGRAM_TEXT];
    program_expect_parts("compare " TRAIN "--measured 500MiB", 0,
                         (const char *const[]){"on the device", "500.0 MiB",
                                               "the allocator explains 54.0", "remain for the",
                                               NULL},
                         text);
    program_expect_parts("compare " TRAIN "--measured 7421MiB", 4,
                         (const char *const[]){"outside", "are explained by nothing here", NULL},
                         text);
    program_expect_parts("compare " TRAIN "--measured 60MiB", 4,
                         (const char *const[]){"outside", "looked at before the peak", NULL}, text);
    program_expect_parts("compare " TRAIN "--measured 500MiB --snapshot " SNAPSHOT "late.pickle", 0,
                         (const char *const[]){"54.0 MiB (measured", NULL}, text);
}

TEST(other_forms)
{
    char text[PROGRAM_TEXT];
    program_expect_parts("compare " TRAIN "--format markdown --snapshot " SNAPSHOT "late.pickle", 0,
                         (const char *const[]){"### ", "| allocated |", "**Measured**", NULL},
                         text);
    program_expect_parts(TRAIN "--untrusted --json --snapshot " SNAPSHOT "late.pickle", 0,
                         (const char *const[]){"\"measured\": {", "\"paired_allocations\": 23",
                                               "\"is_outside\": false", NULL},
                         text);
    program_expect_parts(TRAIN "--baseline " SNAPSHOT "late.pickle --max-growth 1%", 0,
                         (const char *const[]){"train  54.0 MiB  54.0 MiB       =", NULL}, text);
    program_expect_parts(TRAIN "-b 64 --baseline " SNAPSHOT "late.pickle --max-growth 1%", 3,
                         (const char *const[]){"grew by more than is allowed: train from", NULL},
                         text);
}

TEST(mistakes_are_told)
{
    program_expect("compare " TRAIN, 2, "nothing to compare with: add --snapshot FILE");
    program_expect("compare " TRAIN NETWORK "--measured 1GiB", 2, "compare takes one model, not 2");
    program_expect("compare " TRAIN "--measured many", 2, "--measured takes a size above 0");
    program_expect("compare " NETWORK "--runtime ort --snapshot x", 2, "--snapshot needs PyTorch");
    program_expect("compare " TRAIN "--snapshot absent.pickle", 1, "absent.pickle: No such file");
    program_expect("compare " TRAIN "--snapshot " SNAPSHOT "code.pickle", 1,
                   "code in it (GLOBAL at byte 2), which is not run");
    program_expect(TRAIN "--baseline " SNAPSHOT "code.pickle", 1, "code in it");
    program_expect("compare " ONV_SOURCE_DIR "/tests/measured/tiny.onnx --snapshot " SNAPSHOT
                   "late.pickle",
                   2, "--batch N");
    program_expect("comparx " NETWORK, 2, "did you mean 'onnxvram compare'?");
}

/* These are Python's (tests/python/test_verify.py, test_hf.py, test_mcp.py); the program starts them, or says what is missing. */
TEST(commands_of_python_are_started)
{
    char text[PROGRAM_TEXT];
    static const char python[] =
        "#!/bin/sh\n[ \"$1\" = -c ] && exit ${LACKS:-0}\necho \"$@\"\nexit 4\n";
    program_write("python", python, sizeof python - 1);
    assert_int_equal(chmod("python", 0700), 0);
    assert_int_equal(setenv("ONNXVRAM_PYTHON", "./python", 1), 0);
    assert_int_equal(program_run("verify model.onnx --batch 8", text), 4);
    assert_string_equal(text, "-m onnxvram.verify --program " ONV_BUILD_DIR
                              "/onnxvram model.onnx --batch 8\n");
    assert_int_equal(program_run("hf folder --lora 8", text), 4);
    assert_string_equal(text,
                        "-m onnxvram.hf --program " ONV_BUILD_DIR "/onnxvram folder --lora 8\n");
    assert_int_equal(program_run("mcp --untrusted", text), 4);
    assert_string_equal(text, "-m onnxvram.mcp --program " ONV_BUILD_DIR "/onnxvram --untrusted\n");
    assert_int_equal(setenv("LACKS", "3", 1), 0);
    program_expect("verify model.onnx", 1, "'./python' has none: in the folder of the source, ");
    assert_int_equal(setenv("ONNXVRAM_PYTHON", "./absent", 1), 0);
    program_expect("verify model.onnx", 1,
                   "'./absent' cannot be run: install it, or name one with");
    unsetenv("LACKS");
    unsetenv("ONNXVRAM_PYTHON");
}

TEST_GROUP(folder_enter, folder_leave)
