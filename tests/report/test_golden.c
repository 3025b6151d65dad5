/* Reports of the samples against reviewed files, and what every report of every sample must keep to.
 *
 * ONV_UPDATE_GOLDEN=1 writes the files anew; look at the difference before it is committed.
 */
#include <dirent.h>
#include <jansson.h>

#include "support/capture.h"
#include "support/test.h"

typedef struct text_file {
    char *text;
    size_t size;
} text_file;

static bool read_file(const char *path, text_file *file)
{
    FILE *in = fopen(path, "rb");
    if (in == NULL) return false;
    assert_int_equal(fseek(in, 0, SEEK_END), 0);
    file->size = (size_t)ftell(in);
    rewind(in);
    file->text = malloc(file->size + 1);
    assert_non_null(file->text);
    assert_int_equal(fread(file->text, 1, file->size, in), file->size);
    file->text[file->size] = '\0';
    fclose(in);
    return true;
}

/* A sample under its bare name, so that reports do not depend on where the tree lies. The bytes must
 * outlive the analysis. */
static onv_analysis *analyse(const char *name, text_file *file, const onv_options *options)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/samples/%s", ONV_SOURCE_DIR, name);
    if (!read_file(path, file)) fail_msg("no %s", path);
    onv_analysis *analysis;
    onv_error error;
    if (onv_analysis_new_from_memory(file->text, file->size, name, options, &analysis, &error) !=
        ONV_OK)
        fail_msg("%s: %s: %s", name, error.node, error.message);
    return analysis;
}

/* --- Golden files ------------------------------------------------------------------------------ */

typedef struct golden {
    const char *file;
    const char *sample;
    onv_format format;
    int64_t batch;
    onv_dim_binding dims[3];
    bool ascii, example, savings;
    const char *weights, *kv_cache;
} golden;

static const golden goldens[] = {
    {"resnet50-batch256.txt", "resnet50.onnx", ONV_FORMAT_TEXT, .batch = 256},
    {"resnet50-free.txt", "resnet50.onnx", ONV_FORMAT_TEXT, .batch = 0},
    {"bert-example.txt", "bert.onnx", ONV_FORMAT_TEXT, .batch = 0, .example = true},
    {"lstm-formula.txt", "lstm.onnx", ONV_FORMAT_FORMULA, .batch = 0},
    {"unet-formula-python.txt", "unet.onnx", ONV_FORMAT_FORMULA_PYTHON, .batch = 0},
    {"deeplabv3-formula-c.txt", "deeplabv3_resnet50.onnx", ONV_FORMAT_FORMULA_C, .batch = 0},
    {"bert-free.txt", "bert.onnx", ONV_FORMAT_TEXT, .batch = 0},
    {"gpt2.txt", "gpt2.onnx", ONV_FORMAT_TEXT, .batch = 1,
     .dims = {{"sequence", 1}, {"total", 32}, {"past", 31}}},
    {"llama-what-if.txt", "llama.onnx", ONV_FORMAT_TEXT, .batch = 2,
     .dims = {{"sequence", 1}, {"total", 1024}, {"past", 1023}}, .savings = true, .weights = "nf4",
     .kv_cache = "copies"},
    {"gpt2-what-if.md", "gpt2.onnx", ONV_FORMAT_MARKDOWN, .batch = 2,
     .dims = {{"sequence", 1}, {"total", 32}, {"past", 31}}, .savings = true, .weights = "int8",
     .kv_cache = "shared"},
    {"control-flow-ascii.txt", "control-flow.onnx", ONV_FORMAT_TEXT, .batch = 8, .ascii = true},
    {"control-flow.json", "control-flow.onnx", ONV_FORMAT_JSON, .batch = 8},
    {"scan-free.json", "scan.onnx", ONV_FORMAT_JSON, .batch = 0, .example = true},
    {"control-flow.csv", "control-flow.onnx", ONV_FORMAT_CSV, .batch = 8},
    {"resnet18.layers", "resnet18.onnx", ONV_FORMAT_LAYERS, .batch = 2},
    {"resnet18-dynamo.layers", "resnet18-dynamo.onnx", ONV_FORMAT_LAYERS, .batch = 2},
    {"control-flow.graph", "control-flow.onnx", ONV_FORMAT_DUMP_GRAPH, .batch = 8},
    {"scan.intervals", "scan.onnx", ONV_FORMAT_DUMP_INTERVALS, .batch = 1,
     .dims = {{"sequence", 16}}},
    {"scan.trace", "scan.onnx", ONV_FORMAT_DUMP_TRACE, .batch = 1, .dims = {{"sequence", 16}}},
};

/* The version is no part of what is compared. */
static void mask_version(char *text)
{
    char *at = strstr(text, "\"onnxvram ");
    if (at == NULL) return;
    at += strlen("\"onnxvram ");
    char *end = strchr(at, '"');
    *at++ = 'X';
    memmove(at, end, strlen(end) + 1);
}

static char *golden_report(const golden *g)
{
    onv_options options = onv_options_default();
    options.batch = g->batch;
    options.dims = g->dims;
    options.example = g->example;
    options.savings = g->savings;
    options.weights = g->weights;
    options.kv_cache = g->kv_cache;
    while (options.n_dims < 3 && g->dims[options.n_dims].name != NULL) options.n_dims++;
    text_file file;
    onv_analysis *analysis = analyse(g->sample, &file, &options);
    onv_report_options how = onv_report_options_default();
    how.unicode = !g->ascii;
    char *text = report_text(analysis, g->format, &how);
    onv_analysis_destroy(analysis);
    free(file.text);
    mask_version(text);
    return text;
}

/* The line where two texts part. */
static unsigned first_difference(const char *a, const char *b)
{
    unsigned line = 1;
    for (; *a == *b && *a != '\0'; a++, b++) line += *a == '\n';
    return line;
}

TEST(reports_are_as_reviewed)
{
    const char *update = getenv("ONV_UPDATE_GOLDEN");
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof goldens / sizeof goldens[0]; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/tests/report/golden/%s", ONV_SOURCE_DIR, goldens[i].file);
        OWNED_TEXT text = golden_report(&goldens[i]);
        text_file expected;
        if (update != NULL && strcmp(update, "1") == 0) {
            FILE *out = fopen(path, "wb");
            assert_non_null(out);
            assert_int_equal(fwrite(text, 1, strlen(text), out), strlen(text));
            assert_int_equal(fclose(out), 0);
        } else if (!read_file(path, &expected)) {
            fail_msg("no %s (ONV_UPDATE_GOLDEN=1 makes it)", path);
        } else {
            if (strcmp(text, expected.text) != 0) {
                print_error("%s differs from line %u on; now it is:\n%s\n", goldens[i].file,
                            first_difference(text, expected.text), text);
                wrong++;
            }
            free(expected.text);
        }
    }
    assert_int_equal(wrong, 0);
}

/* --- Every sample ------------------------------------------------------------------------------ */

static void check_formats(const onv_analysis *analysis)
{
    static const onv_format formats[] = {ONV_FORMAT_TEXT, ONV_FORMAT_LAYERS, ONV_FORMAT_CSV,
                                         ONV_FORMAT_DUMP_GRAPH};
    onv_report_options options = onv_report_options_default();
    options.unicode = true;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        OWNED_TEXT text = report_text(analysis, formats[i], &options);
        expect_safe(text, i < 2 ? 80 : 0);
    }
    OWNED_TEXT text = report_text(analysis, ONV_FORMAT_JSON, &options);
    json_error_t error;
    OWNED_JSON root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL) fail_msg("line %d: %s", error.line, error.text);
    json_t *model = json_array_get(json_object_get(root, "models"), 0);
    onv_summary summary = {0};
    onv_analysis_summary(analysis, &summary);
    json_t *peak = json_object_get(json_object_get(model, "peak"), "bytes");
    assert_int_equal(json_is_integer(peak), summary.sized);
    if (summary.sized) assert_int_equal(json_integer_value(peak), summary.peak_bytes);
    assert_int_equal(json_array_size(json_object_get(model, "nodes")), summary.nodes);
    assert_int_equal(json_array_size(json_object_get(model, "tensors")),
                     onv_analysis_tensor_count(analysis));
}

TEST(every_sample_reports)
{
    DIR *folder = opendir(ONV_SOURCE_DIR "/samples");
    assert_non_null(folder);
    unsigned count = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        const char *dot = strrchr(entry->d_name, '.');
        if (dot == NULL || strcmp(dot, ".onnx") != 0) continue;
        text_file file;
        OWNED_ANALYSIS analysis = analyse(entry->d_name, &file, NULL);
        check_formats(analysis);
        free(file.text);
        count++;
    }
    closedir(folder);
    assert_true(count >= 10);
}
