/* Requests to one session, where several models may lack a dim of the options. */
#include <unistd.h>

#include "onnxvram/onnxvram.h"
#include "support/capture.h"
#include "support/folder.h"
#include "support/onnx_writer.h"
#include "support/test.h"

enum { DIMS = 24 };

static void write_requests(const char *header, int columns)
{
    FILE *file = fopen("requests.csv", "w");
    assert_non_null(file);
    fputs(header, file);
    for (int i = 0; i < columns; i++) fputs(i == 0 ? "\n2" : ",2", file);
    fputs("\n", file);
    assert_int_equal(fclose(file), 0);
}

/* A model of one input with DIMS dims, which are bound by requests; the flags are those of one bound dim. */
static onv_status run(const char *dim, bool flags[], onv_error *error)
{
    char type[16 * DIMS] = "f32[b";
    model *m = model_new(17);
    for (int i = 1; i < DIMS; i++) snprintf(type + strlen(type), 16, ",d%d", i);
    strcat(type, "]");
    model_input(m, "x", type);
    model_add(m, "y = Relu(x) relu", "out y f32");
    size_t size;
    const void *data = model_bytes(m, &size);
    onv_options options = onv_options_default();
    onv_dim_binding bound = {dim, 3};
    onv_analysis *analysis = NULL;
    options.runtimes = "ort";
    options.shape_trace = "requests.csv";
    options.dims = &bound;
    options.n_dims = 1;
    options.dims_found = flags;
    onv_status status =
        onv_analysis_new_from_memory(data, size, "model", &options, &analysis, error);
    onv_analysis_destroy(analysis);
    model_free(m);
    return status;
}

/* The options of a request have more dims than those of the caller, whose flags are as many as before. */
TEST(flags_are_the_callers)
{
    char header[16 * DIMS] = "d1";
    bool flags[64] = {false};
    onv_error error = {0};
    for (int i = 2; i < DIMS; i++) snprintf(header + strlen(header), 16, ",d%d", i);
    write_requests(header, DIMS - 1);
    assert_int_equal(run("b", flags, &error), ONV_OK);
    assert_true(flags[0]);
    for (size_t i = 1; i < sizeof flags / sizeof flags[0]; i++) assert_false(flags[i]);
}

TEST(a_column_is_a_dim_of_the_model)
{
    bool flags[64] = {false};
    onv_error error = {0};
    write_requests("b,nothing", 2);
    assert_int_equal(run("b", flags, &error), ONV_ERR_USAGE);
    assert_non_null(strstr(error.message, "'nothing'"));
}

/* --- Branches and loops ------------------------------------------------------------------------ */

/* Measured: ONNX Runtime 1.31, CUDA build over a substitute for the driver, the models of tests/conformance and a sample fed from
 * Python, once with false and once with true: arenas after three runs, and handles of cuBLAS. Where both inputs take the
 * same way, arenas are equal to the byte; handles are those of one way. */
static const struct {
    const char *name;
    unsigned arenas[2], handles[2]; /* MiB; each the least and the most */
} measured_flows[] = {
    {"if-decided", {3, 3}, {2, 2}},     {"if-in-loop", {16, 16}, {4, 4}},
    {"if-in-scan", {33, 65}, {4, 4}},   {"if-nested", {8, 16}, {3, 4}},
    {"if-outer", {8, 8}, {3, 3}},       {"if-temporaries", {8, 8}, {3, 3}},
    {"loop-in-if", {3, 31}, {3, 4}},    {"loop-none", {4, 4}, {2, 2}},
    {"loop-once", {16, 16}, {3, 3}},    {"loop-stack", {63, 63}, {3, 3}},
    {"loop-state", {16, 16}, {3, 3}},   {"loop-state-and-stack", {31, 31}, {3, 3}},
    {"scan-in-loop", {33, 33}, {4, 4}}, {"scan-two", {128, 128}, {3, 3}},
    {"loop-in-loop", {31, 31}, {4, 4}}, {"../../samples/scan", {1, 1}, {3, 3}},
};

TEST(branches_and_loops_are_as_measured)
{
    const uint64_t mib = 1 << 20,
                   handle = 67266308; /* of cuBLAS and of cuDNN, compute capability 9.0 */
    int wrong = 0;
    for (size_t i = 0; i < sizeof measured_flows / sizeof measured_flows[0]; i++) {
        char path[512];
        onv_options options = onv_options_default();
        OWNED_ANALYSIS analysis = NULL;
        onv_error error = {0};
        onv_answer_runtime_info r;
        snprintf(path, sizeof path, ONV_SOURCE_DIR "/tests/conformance/%s.onnx",
                 measured_flows[i].name);
        options.runtimes = "ort";
        options.dims =
            (const onv_dim_binding[]){{"batch", 8}, {"sequence", 128}}; /* the sample's */
        options.n_dims = strstr(path, "samples") != NULL ? 2 : 0;
        assert_int_equal(onv_analysis_new(path, &options, &analysis, &error), ONV_OK);
        assert_true(onv_analysis_answer_runtime(analysis, 0, &r));
        const unsigned *arenas = measured_flows[i].arenas, *handles = measured_flows[i].handles;
        uint64_t least_handles = r.low_bytes - r.context_low - r.reserved_low;
        bool good = r.reserved_low == arenas[0] * mib && r.reserved_high == arenas[1] * mib &&
                    least_handles == handles[0] * handle && r.library_bytes >= handles[1] * handle;
        if (!good)
            print_message("%s: %llu to %llu, handles %llu to %llu\n", measured_flows[i].name,
                          (unsigned long long)r.reserved_low, (unsigned long long)r.reserved_high,
                          (unsigned long long)(least_handles / handle),
                          (unsigned long long)(r.library_bytes / handle));
        wrong += !good;
    }
    assert_int_equal(wrong, 0);
}

/* --- The CPU provider -------------------------------------------------------------------------- */

/* Measured: ONNX Runtime 1.31, CPU wheel, one thread, AVX-512, samples with random weights: MiB of the arena after four runs.
 * Of unet the filters of ConvTranspose lie there, too. */
static const struct {
    const char *name, *dims;
    unsigned arena;
    uint64_t filters; /* bytes of weights in the arena */
} measured_on_cpu[] = {
    {"bert", "batch=2 sequence=128", 7, 0},
    {"bert-dynamo", "batch=2 sequence=64", 3, 0},
    {"bert-int8", "batch=2 sequence=64", 3, 0},
    {"convnext_tiny", "batch=2", 64, 0},
    {"deeplabv3_resnet50", "batch=1 height=224 width=224", 64, 0},
    {"densenet201", "batch=2", 64, 0},
    {"efficientnet_b0", "batch=4", 128, 0},
    {"functions", "batch=8 sequence=64", 3, 0},
    {"gpt2", "batch=2 sequence=16 past=64 total=80", 3, 0},
    {"llama", "batch=2 sequence=16 past=64 total=80", 3, 0},
    {"llama-dynamo", "batch=2 sequence=16 past=64 total=80", 3, 0},
    {"lstm", "batch=4 sequence=32", 3, 0},
    {"mobilenet_v2", "batch=4", 48, 0},
    {"mobilenet_v3_small", "batch=4", 16, 0},
    {"resnet18", "batch=4", 32, 0},
    {"resnet18-dynamo", "batch=3", 32, 0},
    {"resnet50", "batch=2", 32, 0},
    {"resnet50-batch1", "", 16, 0},
    {"scan", "batch=8 sequence=32", 1, 0},
    {"swin-2stage", "batch=1", 32, 0},
    {"swin_t-dynamo", "batch=1", 31, 0},
    {"unet", "batch=1 height=128 width=128", 32, 2785280},
    {"vgg16", "batch=1", 64, 0},
    {"vit-small-train", "batch=2", 3, 0},
    {"vit_b_16", "batch=1", 31, 0},
};

/* "batch=2 sequence=128" as bindings; the text holds the names. */
static size_t split_dims(char *text, onv_dim_binding *dims)
{
    size_t n = 0;
    for (char *at = strtok(text, " "); at != NULL; at = strtok(NULL, " ")) {
        char *equals = strchr(at, '=');
        *equals = '\0';
        dims[n++] = (onv_dim_binding){at, strtol(equals + 1, NULL, 10)};
    }
    return n;
}

TEST(the_cpu_provider_is_as_measured)
{
    int wrong = 0;
    for (size_t i = 0; i < sizeof measured_on_cpu / sizeof measured_on_cpu[0]; i++) {
        char path[512], text[64];
        onv_dim_binding dims[4];
        onv_options options = onv_options_default();
        OWNED_ANALYSIS analysis = NULL;
        onv_error error = {0};
        onv_answer_runtime_info r;
        snprintf(path, sizeof path, ONV_SOURCE_DIR "/samples/%s.onnx", measured_on_cpu[i].name);
        snprintf(text, sizeof text, "%s", measured_on_cpu[i].dims);
        options.runtimes = "cpu";
        options.dims = dims;
        options.n_dims = split_dims(text, dims);
        assert_int_equal(onv_analysis_new(path, &options, &analysis, &error), ONV_OK);
        assert_true(onv_analysis_answer_runtime(analysis, 0, &r));
        uint64_t arena = r.reserved_high - r.weight_bytes + measured_on_cpu[i].filters;
        assert_int_equal(r.context_high + r.library_bytes, 0);
        if (arena != (uint64_t)measured_on_cpu[i].arena << 20)
            print_message("%s: %llu\n", measured_on_cpu[i].name, (unsigned long long)arena);
        wrong += arena != (uint64_t)measured_on_cpu[i].arena << 20;
    }
    assert_int_equal(wrong, 0);
}

TEST_GROUP(folder_enter, folder_leave)
