/* Published figures of well-known networks, held on samples. */
#include "onnxvram/onnxvram.h"
#include "support/capture.h"
#include "support/test.h"

static onv_analysis *analyse(const char *path, int64_t batch)
{
    onv_options options = onv_options_default();
    onv_analysis *analysis;
    onv_error error;
    options.batch = batch;
    if (onv_analysis_new(path, &options, &analysis, &error) != ONV_OK)
        fail_msg("%s: %s", path, error.message);
    return analysis;
}

TEST(resnet18_has_its_published_parameters)
{
    OWNED_ANALYSIS a = analyse(ONV_SOURCE_DIR "/samples/resnet18-train.onnx", 1);
    onv_summary summary;
    onv_analysis_summary(a, &summary);
    assert_int_equal(summary.trainable, 11689512);
    assert_int_equal(summary.parameters, 11689512 + 9600); /* and the running statistics */
    /* As many multiply-accumulates as papers state: 1.8 G. */
    assert_int_equal(summary.macs, 1814073344);
}

TEST(resnet50_at_256_begins_with_784_mib)
{
    OWNED_ANALYSIS a = analyse(ONV_SOURCE_DIR "/samples/resnet50.onnx", 256);
    onv_tensor_info info;
    uint64_t first = 0;
    for (size_t i = 0; onv_analysis_tensor(a, i, &info) && first == 0; i++)
        if (strcmp(info.name, "/conv1/Conv_output_0") == 0) first = info.bytes;
    assert_int_equal(first, 822083584);
}
