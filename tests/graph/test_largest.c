/* The largest buffer beside the limits of WebGPU and TensorRT: both sides of each. */
#include "support/capture.h"
#include "support/onnx_writer.h"
#include "support/test.h"

static bool is_noted(const onv_analysis *a, const char *code, const char *part)
{
    const char *message = message_of(a, code);
    return message != NULL && strstr(message, part) != NULL;
}

/* A value and a weight of these types: which of the two limits is passed. */
TEST(limits_are_told)
{
    static const struct {
        const char *value, *weight;
        bool binding, volume;
        const char *name;
    } cases[] = {
        {"f32[4]", "f32[33554432]", false, false, ""},
        {"f32[4]", "f32[33554433]", true, false, "'w' has 134217732 bytes"},
        {"f32[33554432]", "f32[1]", false, false, ""},
        {"f32[33554433]", "f32[1]", true, false, "'x' has 134217732 bytes"},
        {"f32[4]", "i8[2147483647]", true, false, "'w'"},
        {"f32[4]", "i8[2147483648]", true, true, "'w' has 2147483648"},
        {"f32[batch,4]", "f32[1]", false, false, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        OWNED_MODEL m = model_new(17);
        model_input(m, "x", cases[i].value);
        model_weight(m, "w", cases[i].weight);
        model_add(m, "y = Relu(x) r", "v = Identity(w) i", "out y f32");
        onv_options options = onv_options_default();
        options.runtimes = "ideal";
        OWNED_ANALYSIS a = model_analyse(m, &options);
        if (is_noted(a, "largest-binding", cases[i].name) != cases[i].binding ||
            is_noted(a, "largest-volume", cases[i].name) != cases[i].volume)
            fail_msg("case %zu", i);
    }
}
