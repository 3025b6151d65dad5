/* Files that ONNX Runtime refuses, and nodes that it leaves to the CPU. */
#include <unistd.h>

#include "support/capture.h"
#include "support/onnx_writer.h"
#include "support/test.h"

static void expect(const onv_analysis *a, const char *code, const char *part)
{
    const char *message = message_of(a, code);
    if (part == NULL && message != NULL) fail_msg("%s: %s", code, message);
    if (part != NULL && (message == NULL || strstr(message, part) == NULL))
        fail_msg("%s does not say '%s' but '%s'", code, part, message != NULL ? message : "");
}

/* y = Det(x) + w, in that opset. */
static model *determinant(int64_t opset)
{
    model *m = model_read(opset, "in x f32[8,3,3]", "weight w f32[500,8]", "r = Relu(x)",
                          "d = Det(r) det", "y = Add(d w)", "out y f32[500,8]");
    return m;
}

TEST(versions_have_limits)
{
    for (int64_t opset = 26; opset <= 27; opset++) {
        OWNED_MODEL m = determinant(opset);
        OWNED_ANALYSIS a = model_analyse(m, NULL);
        expect(a, "loads-opset", opset == 26 ? NULL : "ai.onnx up to 26, this one is 27");
        expect(a, "loads-ir", NULL);
        expect(a, "loads-protobuf", NULL);
    }
}

TEST(inputs_of_one_type_have_one)
{
    for (int mixed = 0; mixed < 2; mixed++) {
        OWNED_MODEL m = model_read(
            17, "in x bf16[1,3,8,8]", mixed ? "weight w f32[4,3,3,3]" : "weight w bf16[4,3,3,3]",
            "y = Conv(x w) conv", "p = Pow(y e)", "weight e f32[1]", "out p bf16[1,4,6,6]");
        OWNED_ANALYSIS a = model_analyse(m, NULL);
        expect(a, "mixed-types",
               mixed ? "inputs of Conv have one type, but 'x' is bfloat16 and 'w' float32; such "
                       "nodes: 1."
                     : NULL);
    }
}

/* What a conversion to float16 does to the scales. */
TEST(inputs_of_a_fixed_type_have_it)
{
    for (int half = 0; half < 2; half++) {
        OWNED_MODEL m = model_read(17, "in x f32[1,3,8,8]", half ? "in s f16[4]" : "in s f32[4]",
                                   "y = Resize(x - s) resize", "out y f32[1,3,16,16]");
        OWNED_ANALYSIS a = model_analyse(m, NULL);
        expect(a, "loads-types",
               half ? "input 's' of Resize is float16, and ONNX has float32 alone there" : NULL);
    }
}

TEST(nodes_without_a_kernel_are_named)
{
    OWNED_MODEL m = determinant(17);
    OWNED_ANALYSIS a = model_analyse(m, NULL);
    expect(a, "loads-on-cpu",
           "1 nodes, which the CPU runs: Det (1); copies in each run: 2, of 320 bytes");
}

TEST(kernels_count_in_32_bits)
{
    for (int more = 0; more < 2; more++) {
        OWNED_MODEL m = model_new(17);
        model_input(m, "x", more ? "f16[2,32768,32768]" : "f16[1,32768,32768]");
        model_add(m, "weight w f16[32768]", "y = LayerNormalization(x w) norm", "out y f16");
        OWNED_ANALYSIS a = model_analyse(m, NULL);
        expect(a, "loads-32-bit", more ? "fails at LayerNormalization" : NULL);
    }
}

static void write_to(const char *folder, const char *name, const void *data, size_t bytes)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

TEST(external_data_is_looked_for)
{
    static const struct {
        size_t bytes; /* 0: it is not written */
        const char *part;
    } rows[] = {{0, "'weights.bin' is not there"},
                {15999, "ends at byte 16000"},
                {16000, NULL},
                {16500, NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char folder[] = "/tmp/onnxvram-loads-XXXXXX", path[128];
        static const char zeros[16500] = {0};
        size_t size;
        onv_analysis *a;
        onv_error error;
        OWNED_MODEL m = determinant(17);
        const unsigned char *bytes = model_bytes(m, &size);
        assert_non_null(mkdtemp(folder));
        write_to(folder, "model.onnx", bytes, size);
        if (rows[i].bytes > 0) write_to(folder, "weights.bin", zeros, rows[i].bytes);
        snprintf(path, sizeof path, "%s/model.onnx", folder);
        assert_int_equal(onv_analysis_new(path, NULL, &a, &error), ONV_OK);
        expect(a, "loads-external", rows[i].part);
        onv_analysis_destroy(a);
        unlink(path);
        snprintf(path, sizeof path, "%s/weights.bin", folder);
        unlink(path);
        rmdir(folder);
    }
}
