/* Repositories of Triton: which versions and instances are counted, with whose settings, and configurations that are none. */
#include <sys/stat.h>

#include "cli/program.h"
#include "support/test.h"

static char text[PROGRAM_TEXT];
static const char *repository; /* each test has its own */

#define EXPECT(arguments, status, ...)                                                             \
    program_expect_parts(arguments, status, (const char *const[]){__VA_ARGS__, NULL}, text)

static void write_model(const char *name, int version)
{
    char path[64];
    model *m = model_read(18, "in x f32[n,256]", "weight w f32[256,256]", "y = MatMul(x w) m",
                          "out y f32");
    snprintf(path, sizeof path, "%s/%s", repository, name);
    mkdir(repository, 0777);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%d", repository, name, version);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%d/model.onnx", repository, name, version);
    program_write_model(path, m);
}

static void configure(const char *name, const char *config)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s/config.pbtxt", repository, name);
    program_write(path, config, strlen(config));
}

/* The newest version unless it is said; each instance is a session with an arena and handles of its own. */
TEST(versions_and_instances)
{
    repository = "one";
    write_model("a", 1);
    write_model("a", 2);
    write_model("b", 1);
    configure(
        "a",
        "max_batch_size: 8\ninstance_group [ { count: 2 kind: KIND_GPU }, { kind: KIND_CPU } ]");
    configure("b", "backend: \"onnxruntime\" max_batch_size: 4");
    EXPECT("--triton one", 0, "  a/2/model.onnx", "2 instances, batch 8", "  b/1/model.onnx",
           "1 instance, batch 4", "  3 sessions\n", "  libraries                  384.9 MiB");
    assert_null(strstr(text, "a/1"));
    configure("a", "max_batch_size: 8 version_policy { all { } }");
    EXPECT("--triton one", 0, "a/2/model.onnx", "a/1/model.onnx", "  3 sessions\n");
    configure("a", "max_batch_size: 8 version_policy: { specific: { versions: [1] } }");
    EXPECT("--triton one", 0, "a/1/model.onnx", "  2 sessions\n");
    configure("b", "platform: \"tensorflow_savedmodel\"");
    EXPECT("--triton one --budget 1MiB,L4", 0, "  1 session\n", "1 models of other backends",
           "does not fit", "L4: fits");
    EXPECT("--triton one --budget 1MiB", 3, "1.0 MiB: does not fit");
}

/* Weights in 1 MiB, then input and output of 39.1 MiB each: regions of 64 MiB, or of that size. */
TEST(settings_are_those_of_the_model)
{
    repository = "two";
    write_model("c", 1);
    configure("c", "max_batch_size: 40000\nparameters { key: \"arena_extend_strategy\" value: { "
                   "string_value: \"0\" } }");
    EXPECT("--triton two", 0, "c/1/model.onnx", "arena of each            129.0 MiB");
    configure("c", "max_batch_size: 40000\nparameters { key: \"arena_extend_strategy\" value: { "
                   "string_value: \"1\" } }");
    EXPECT("--triton two", 0, "arena of each            78.4 MiB");
    configure("c", "max_batch_size: 40000\nparameters { key: \"gpu_mem_limit\" value: { "
                   "string_value: \"1048576\" } }");
    EXPECT("--triton two", 3, "gpu_mem_limit is not enough");
    EXPECT("--triton two --budget H100", 3, "gpu_mem_limit is not enough", "H100: does not fit");
    configure("c", "optimization { execution_accelerators { gpu_execution_accelerator [ { name: "
                   "\"tensorrt\" } ] } } max_batch_size: 1");
    EXPECT("--triton two", 0, "A model asks for TensorRT");
}

/* What --batch says is in the figures and in the words. --dim may name a dimension that some of the models lack. */
TEST(options_come_after_the_configuration)
{
    repository = "four";
    write_model("a", 1);
    write_model("b", 1);
    configure("a", "max_batch_size: 8");
    program_write_model("four/b/1/model.onnx",
                        model_read(18, "in x f32[m,256]", "weight w f32[256,256]",
                                   "y = MatMul(x w) m", "out y f32"));
    EXPECT("--triton four -d m=4", 0, "a/1/model.onnx: 1 instance, batch 8\n",
           "b/1/model.onnx: 1 instance\n");
    EXPECT("--triton four -b 3", 0, "a/1/model.onnx: 1 instance, batch 3\n",
           "b/1/model.onnx: 1 instance, batch 3\n");
    EXPECT("--triton four -d m=4 -d k=4", 2, "--dim: 'k' is unknown");
}

/* What a report says of a model is said of a part, and what no deployment answers is refused. */
TEST(nothing_is_left_out_silently)
{
    repository = "five";
    write_model("a", 1);
    program_write_model("five/a/1/model.onnx", model_read(18, "in x f32[n,256]", "y = Foo(x) m",
                                                          "info y f32[n,256]", "out y f32[n,256]"));
    EXPECT("--triton five -b 2", 0, "five/a/1/model.onnx: warning (unknown-op) at node 'm': ");
    EXPECT("--triton five -b 2 --strict", 5, "warning (unknown-op)");
    EXPECT("--triton five -b 2 --strict --budget 1MiB", 3, "does not fit");
    static const char *const refused[] = {
        "--max-batch --budget T4", "--format markdown", "--baseline b.json", "--replay=host",
        "--runtime torch",         "--measured 3GiB",   "--ort-advise"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        char arguments[128];
        snprintf(arguments, sizeof arguments, "--triton five -b 2 %s", refused[i]);
        EXPECT(arguments, 2, "--triton prints one answer", "leave other outputs");
    }
    EXPECT("serve --triton five -b 2", 0, "1 session\n");
}

/* A folder's name is the model's, and the model may be anybody's. */
TEST(names_do_not_act_on_a_terminal)
{
    repository = "named";
    write_model("a\033[31mred", 1);
    EXPECT("--triton named -d n=4", 0, "red/1/model.onnx", "H100 (assumed)");
    assert_null(strchr(text, '\033'));
    EXPECT("--triton named -d n=4 --budget T4", 0, "One process on one GPU, T4\n");
}

TEST(broken_repositories_are_named)
{
    static const struct {
        const char *config, *says;
    } rows[] = {
        {"max_batch_size 8", "d/config.pbtxt: line 1: ':' or '{' behind a name"},
        {"max_batch_size: 8 {", "line 1: a name, a value or '}'"},
        {"a {\nb {\n", "line 3: '}'"},
        {"max_batch_size: many", "a number up to 1,048,576"},
        {"max_batch_size: -1", "a max_batch_size of 0 or more"},
        {"instance_group { count: 0 }", "a count of instances of 1 or more"},
        {"default_model_filename: \"../x\"", "a default_model_filename without folders"},
        {"name: \"unended", "the end of the string"},
        {"a{a{a{a{a{a{a{a{a{a{a{a{a{a{a{a{a{a{", "no more than 16 messages"},
    };
    repository = "three";
    write_model("d", 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        configure("d", rows[i].config);
        EXPECT("--triton three", 1, rows[i].says);
    }
    configure("d", "default_model_filename: \"other.onnx\"");
    EXPECT("--triton three", 1, "three/d/1/other.onnx");
    configure("d", "");
    EXPECT("--triton three", 1, "dimensions without a size");
    EXPECT("--triton nowhere", 1, "it cannot be read");
    EXPECT("--triton three --genai three", 2, "leave one of them out");
    EXPECT("--triton three x.onnx", 2, "--triton names a folder");
}

TEST_GROUP(folder_enter, folder_leave)
