/* Published figures of well-known networks, held on models built here. */
#include "support/capture.h"
#include "support/onnx_writer.h"
#include "support/test.h"

static onv_summary summarise(const onv_analysis *analysis)
{
    onv_summary summary = {0};
    onv_analysis_summary(analysis, &summary);
    return summary;
}

/* Adds a weight and a node; names derive from the node's. */
static const char *conv(model *m, const char *name, const char *in, int ci, int co, int kernel,
                        int stride, bool bias)
{
    static char out[64];
    char type[64], inputs[160], attrs[96];
    snprintf(type, sizeof type, "f32[%d,%d,%d,%d]", co, ci, kernel, kernel);
    snprintf(inputs, sizeof inputs, "%s.w", name);
    model_weight(m, inputs, type);
    if (bias) {
        snprintf(type, sizeof type, "f32[%d]", co);
        snprintf(inputs, sizeof inputs, "%s.b", name);
        model_weight(m, inputs, type);
    }
    char source[64];
    snprintf(source, sizeof source, "%s", in);
    snprintf(inputs, sizeof inputs, "%s %s.w %s%s", source, name, bias ? name : "",
             bias ? ".b" : "");
    int pad = kernel / 2;
    snprintf(attrs, sizeof attrs, "pads=[%d,%d,%d,%d] strides=[%d,%d]", pad, pad, pad, pad, stride,
             stride);
    snprintf(out, sizeof out, "%s.y", name);
    model_node(m, "Conv", name, inputs, out, attrs);
    return out;
}

static const char *batch_norm(model *m, const char *name, const char *in, int channels)
{
    static char out[64];
    static const char *const parts[] = {"weight", "bias", "mean", "var"};
    char type[32], inputs[256], full[64];
    int length = snprintf(inputs, sizeof inputs, "%s", in);
    snprintf(type, sizeof type, "f32[%d]", channels);
    for (int i = 0; i < 4; i++) {
        snprintf(full, sizeof full, "%s.%s", name, parts[i]);
        model_weight(m, full, type);
        length += snprintf(inputs + length, sizeof inputs - (size_t)length, " %s", full);
    }
    snprintf(out, sizeof out, "%s.y", name);
    model_node(m, "BatchNormalization", name, inputs, out, "");
    return out;
}

static const char *simple(model *m, const char *op, const char *name, const char *in,
                          const char *attrs)
{
    static char out[64];
    char inputs[160];
    snprintf(inputs, sizeof inputs, "%s", in);
    snprintf(out, sizeof out, "%s.y", name);
    model_node(m, op, name, inputs, out, attrs);
    return out;
}

static void linear(model *m, const char *name, const char *in, int from, int to, const char *out)
{
    char type[64], inputs[192], part[64];
    snprintf(type, sizeof type, "f32[%d,%d]", to, from);
    snprintf(part, sizeof part, "%s.w", name);
    model_weight(m, part, type);
    snprintf(type, sizeof type, "f32[%d]", to);
    snprintf(part, sizeof part, "%s.b", name);
    model_weight(m, part, type);
    snprintf(inputs, sizeof inputs, "%s %s.w %s.b", in, name, name);
    model_node(m, "Gemm", name, inputs, out, "transB=1");
}

/* A residual block of ResNet-18. */
static void basic_block(model *m, const char *name, char *at, size_t size, int ci, int co,
                        int stride)
{
    char part[56], skip[64], inputs[160];
    snprintf(skip, sizeof skip, "%s", at);
    snprintf(part, sizeof part, "%s.conv1", name);
    snprintf(at, size, "%s", conv(m, part, at, ci, co, 3, stride, false));
    snprintf(part, sizeof part, "%s.bn1", name);
    snprintf(at, size, "%s", batch_norm(m, part, at, co));
    snprintf(part, sizeof part, "%s.relu1", name);
    snprintf(at, size, "%s", simple(m, "Relu", part, at, ""));
    snprintf(part, sizeof part, "%s.conv2", name);
    snprintf(at, size, "%s", conv(m, part, at, co, co, 3, 1, false));
    snprintf(part, sizeof part, "%s.bn2", name);
    snprintf(at, size, "%s", batch_norm(m, part, at, co));
    if (stride != 1 || ci != co) {
        snprintf(part, sizeof part, "%s.down", name);
        snprintf(skip, sizeof skip, "%s", conv(m, part, skip, ci, co, 1, stride, false));
        snprintf(part, sizeof part, "%s.downbn", name);
        snprintf(skip, sizeof skip, "%s", batch_norm(m, part, skip, co));
    }
    snprintf(inputs, sizeof inputs, "%s %s", at, skip);
    snprintf(part, sizeof part, "%s.add", name);
    snprintf(at, size, "%s", simple(m, "Add", part, inputs, ""));
    snprintf(part, sizeof part, "%s.relu2", name);
    snprintf(at, size, "%s", simple(m, "Relu", part, at, ""));
}

TEST(resnet18_has_its_published_parameters)
{
    OWNED_MODEL m = model_new(17);
    char at[64] = "x", name[32];
    model_input(m, "x", "f32[1,3,224,224]");
    snprintf(at, sizeof at, "%s", conv(m, "conv1", at, 3, 64, 7, 2, false));
    snprintf(at, sizeof at, "%s", batch_norm(m, "bn1", at, 64));
    snprintf(at, sizeof at, "%s", simple(m, "Relu", "relu", at, ""));
    snprintf(
        at, sizeof at, "%s",
        simple(m, "MaxPool", "maxpool", at, "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]"));
    int channels = 64;
    for (int layer = 1; layer <= 4; layer++) {
        int to = 32 << layer;
        for (int block = 0; block < 2; block++) {
            snprintf(name, sizeof name, "layer%d.%d", layer, block);
            basic_block(m, name, at, sizeof at, channels, to, layer > 1 && block == 0 ? 2 : 1);
            channels = to;
        }
    }
    snprintf(at, sizeof at, "%s", simple(m, "GlobalAveragePool", "pool", at, ""));
    snprintf(at, sizeof at, "%s", simple(m, "Flatten", "flatten", at, ""));
    linear(m, "fc", at, 512, 1000, "logits");
    model_output(m, "logits", "f32");
    OWNED_ANALYSIS a = model_analyse(m, NULL);
    onv_summary summary = summarise(a);
    assert_int_equal(summary.trainable, 11689512);
    assert_int_equal(summary.parameters, 11689512 + 9600); /* and the running statistics */
    assert_string_equal(model_shape(a, "layer1.1.relu2.y"), "[1, 64, 56, 56]");
    assert_string_equal(model_shape(a, "logits"), "[1, 1000]");
    /* As many multiply-accumulates as papers state: 1.8 G. */
    assert_int_equal(summary.macs, 1814073344);
}

/* VGG-16 as Keras counts it: one map per layer, the input and the flattened maps included, the
 * ReLU part of its layer. */
static uint64_t keras_maps(const onv_analysis *a)
{
    onv_tensor_info info;
    uint64_t bytes = 0;
    for (size_t i = 0; onv_analysis_tensor(a, i, &info); i++)
        if (info.live && strstr(info.name, "relu") == NULL) bytes += info.bytes;
    return bytes;
}

static model *vgg16(bool top)
{
    static const int plan[] = {64, 64,  0,   128, 128, 0,   256, 256, 256,
                               0,  512, 512, 512, 0,   512, 512, 512, 0};
    model *m = model_new(17);
    char at[64] = "x", name[32];
    int channels = 3;
    model_input(m, "x", "f32[1,3,1024,1024]");
    for (size_t i = 0; i < sizeof plan / sizeof plan[0]; i++) {
        if (plan[i] == 0) {
            snprintf(name, sizeof name, "pool%zu", i);
            snprintf(at, sizeof at, "%s",
                     simple(m, "MaxPool", name, at, "kernel_shape=[2,2] strides=[2,2]"));
            continue;
        }
        snprintf(name, sizeof name, "conv%zu", i);
        snprintf(at, sizeof at, "%s", conv(m, name, at, channels, plan[i], 3, 1, true));
        snprintf(name, sizeof name, "relu%zu", i);
        snprintf(at, sizeof at, "%s", simple(m, "Relu", name, at, ""));
        channels = plan[i];
    }
    if (top) {
        snprintf(at, sizeof at, "%s", simple(m, "Flatten", "flatten", at, ""));
        linear(m, "fc1", at, 512 * 32 * 32, 4096, "fc1.y");
        model_node(m, "Relu", "relu_fc1", "fc1.y", "relu_fc1.y", "");
        linear(m, "fc2", "relu_fc1.y", 4096, 4096, "fc2.y");
        model_node(m, "Relu", "relu_fc2", "fc2.y", "relu_fc2.y", "");
        linear(m, "predictions", "relu_fc2.y", 4096, 1000, "y");
        model_output(m, "y", "f32");
    } else {
        model_output(m, at, "f32");
    }
    return m;
}

TEST(vgg16_at_1024_has_its_published_figures)
{
    model *m = vgg16(true);
    onv_analysis *a = model_analyse(m, NULL);
    onv_summary summary = summarise(a);
    assert_int_equal(summary.parameters, 2183080744);
    double mib = 1048576, maps = (double)keras_maps(a) / mib;
    double parameters = (double)summary.parameter_bytes / mib;
    char text[64];
    snprintf(text, sizeof text, "%.2f %.3f %.2f", parameters, maps, parameters + maps);
    assert_string_equal(text, "8327.79 1216.035 9543.83");
    onv_analysis_destroy(a);
    model_free(m);

    m = vgg16(false);
    a = model_analyse(m, NULL);
    assert_int_equal(summarise(a).parameters, 14714688);
    onv_analysis_destroy(a);
    model_free(m);
}

TEST(the_chain_holds_its_intermediates)
{
    OWNED_MODEL m = model_new(17);
    char at[64] = "x";
    model_input(m, "x", "f32[1,3,682,700]");
    snprintf(at, sizeof at, "%s", conv(m, "conv1", at, 3, 64, 3, 1, true));
    snprintf(at, sizeof at, "%s", simple(m, "Relu", "relu1", at, ""));
    snprintf(at, sizeof at, "%s", conv(m, "conv2", at, 64, 64, 3, 1, true));
    snprintf(at, sizeof at, "%s", simple(m, "Relu", "relu2", at, ""));
    snprintf(at, sizeof at, "%s",
             simple(m, "MaxPool", "pool", at, "kernel_shape=[2,2] strides=[2,2]"));
    snprintf(at, sizeof at, "%s", conv(m, "conv3", at, 64, 128, 3, 1, true));
    model_output(m, at, "f32");
    OWNED_ANALYSIS a = model_analyse(m, NULL);
    assert_int_equal(summarise(a).parameters, 112576);
    onv_tensor_info info;
    uint64_t bytes = 0; /* the ReLUs work in place */
    for (size_t i = 0; onv_analysis_tensor(a, i, &info); i++)
        if (info.live && strncmp(info.name, "relu", 4) != 0 && strcmp(info.name, "x") != 0)
            bytes += info.bytes;
    assert_int_equal(bytes, 336089600);
}

TEST(resnet50_at_256_begins_with_784_mib)
{
    onv_options options = onv_options_default();
    onv_analysis *a;
    onv_tensor_info info;
    options.batch = 256;
    onv_status status =
        onv_analysis_new(ONV_SOURCE_DIR "/samples/resnet50.onnx", &options, &a, NULL);
    assert_int_equal(status, ONV_OK);
    uint64_t first = 0;
    for (size_t i = 0; onv_analysis_tensor(a, i, &info) && first == 0; i++)
        if (strcmp(info.name, "/conv1/Conv_output_0") == 0) first = info.bytes;
    assert_int_equal(first, 822083584);
    onv_analysis_destroy(a);
}
