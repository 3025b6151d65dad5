/* The answer in one line, where its warnings go, and the status that they make. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "cli/program.h"

#define SAMPLES ONV_SOURCE_DIR "/samples/"
/* Batch norms are folded into its convolutions: training warns. */
#define FOLDED "-q -b 2 --train sgd " SAMPLES "mobilenet_v2.onnx "

static char text[PROGRAM_TEXT];

#define EXPECT(arguments, status, ...)                                                             \
    program_expect_parts(arguments, status, (const char *const[]){__VA_ARGS__, NULL}, text)

static void what_is_judged_by_default(void **state)
{
    (void)state;
    EXPECT("-q -b 8 " SAMPLES "resnet18.onnx", 0, "resnet18.onnx: torch ", " MiB, ort ",
           " on H100 (assumed)\n");
    assert_null(strstr(text, "ideal"));
    EXPECT("-q -b 8 --gpu A100-80GB " SAMPLES "resnet18.onnx", 0, " on A100 80GB\n");
    EXPECT("-q -b 8 --train sgd " SAMPLES "resnet18-train.onnx", 0, "resnet18-train.onnx: train ");
    assert_null(strstr(text, "torch"));
    EXPECT("-q -b 8 --runtime arena --budget 1GiB " SAMPLES "resnet18.onnx", 0,
           "resnet18.onnx: arena 93.6 MiB, fits 1.00 GiB\n");
}

/* By default what theory needs fits no verdict: 93.6 MiB are not enough for PyTorch. */
static void bounds_are_no_verdict(void **state)
{
    (void)state;
    EXPECT("-q -b 8 --budget 100MiB " SAMPLES "resnet18.onnx", 3,
           "does not fit 100.0 MiB (by ort)");
    EXPECT("-q -b 8 --runtime ideal --budget 100MiB " SAMPLES "resnet18.onnx", 0,
           "ideal 93.6 MiB, fits 100.0 MiB");
    EXPECT("-q --budget T4 --max-batch " SAMPLES "resnet18.onnx", 0,
           "; largest batch on T4: torch ");
    assert_null(strstr(text, "ideal"));
}

static void free_dims_are_asked_for(void **state)
{
    (void)state;
    EXPECT("-q " SAMPLES "bert.onnx", 0, "bert.onnx: not sized: bind --batch N --dim sequence=N\n");
    EXPECT(SAMPLES "bert.onnx", 0, "Not sized: bind --batch N --dim sequence=N");
}

static void warnings_reach_standard_error(void **state)
{
    (void)state;
    EXPECT(FOLDED, 0, "mobilenet_v2.onnx: warning (folded-batch-norm): ");
    EXPECT(FOLDED "2>/dev/null", 0, "mobilenet_v2.onnx: train ");
    assert_null(strstr(text, "folded"));
}

/* What does not fit says more than a warning. */
static void strictness_is_a_status(void **state)
{
    (void)state;
    EXPECT(FOLDED "--strict", 5, "warning (folded-batch-norm)");
    EXPECT(FOLDED "--strict --budget 1MiB", 3, "does not fit 1.0 MiB");
    EXPECT("-b 2 --train sgd --strict --json=/dev/null " SAMPLES "mobilenet_v2.onnx", 5,
           "warning (folded-batch-norm)");
    EXPECT("-q -b 2 --strict " SAMPLES "resnet18.onnx", 0, "resnet18.onnx: torch ");
    EXPECT(FOLDED "--strict " SAMPLES "absent.onnx", 1, "absent.onnx");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_judged_by_default),
        cmocka_unit_test(bounds_are_no_verdict),
        cmocka_unit_test(free_dims_are_asked_for),
        cmocka_unit_test(warnings_reach_standard_error),
        cmocka_unit_test(strictness_is_a_status),
    };
    return cmocka_run_group_tests(tests, folder_enter, folder_leave);
}
