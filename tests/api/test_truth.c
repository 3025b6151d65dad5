/* Every model with a truth file: all shapes, the ideal peak, its step and set, and the totals must
 * be what ONNX Runtime measured. */
#include "support/test.h"
#include "support/truth.h"

TEST(samples_agree_with_their_truth)
{
    truth_check_folder(ONV_SOURCE_DIR "/tests/truth", ONV_SOURCE_DIR "/samples");
}

/* More models, where the environment says that they are there. */
TEST(further_models_agree_with_their_truth)
{
    char folder[1024];
    const char *data = getenv("ONV_TEST_DATA");
    if (data == NULL) skip();
    snprintf(folder, sizeof folder, "%s/models", data);
    truth_check_folder(folder, folder);
}
