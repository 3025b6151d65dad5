/* Small exports, each with something in it that is rare in the samples: operators of optimised and
 * quantised graphs, odd sizes, exporters' idioms. See README.md beside the models. */
#include "support/test.h"
#include "support/truth.h"

static void models_agree_with_their_truth(void **state)
{
    truth_check_folder(ONV_SOURCE_DIR "/tests/conformance", ONV_SOURCE_DIR "/tests/conformance");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_agree_with_their_truth),
    };
    return cmocka_run_group_tests_name("conformance.models", tests, NULL, NULL);
}
