/* Small exports, each with something in it that is rare in the samples: operators of optimised and
 * quantised graphs, odd sizes, exporters' idioms. See README.md beside the models. */
#include "support/test.h"
#include "support/truth.h"

TEST(models_agree_with_their_truth)
{
    truth_check_folder(ONV_SOURCE_DIR "/tests/conformance", ONV_SOURCE_DIR "/tests/conformance");
}
