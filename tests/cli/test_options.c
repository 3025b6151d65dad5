/* Every option that changes what is worked out does so, in the direction that its name says; every
 * value that it cannot take is named. */
#include <inttypes.h>
#include <jansson.h>

#include "cli/program.h"
#include "support/encoder.h"
#include "support/test.h"

#define TRAINING ONV_SOURCE_DIR "/samples/resnet18-train.onnx"

/* A number of the JSON report of the first model, by its path: "training.peak_bytes". */
static json_int_t figure(const char *arguments, const char *path)
{
    static char text[4 << 20];
    char command[1024], key[64];
    snprintf(command, sizeof command, "'%s/onnxvram' --json %s", ONV_BUILD_DIR, arguments);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t length = fread(text, 1, sizeof text, pipe);
    if (pclose(pipe) != 0) fail_msg("'%s' failed", arguments);
    json_t *report = json_loadb(text, length, 0, NULL);
    assert_non_null(report);
    json_t *at = json_array_get(json_object_get(report, "models"), 0);
    for (int used; sscanf(path, "%63[^.]%n", key, &used) == 1; path += used + (path[used] == '.'))
        at = json_object_get(at, key);
    if (!json_is_integer(at)) fail_msg("'%s' reports no %s", arguments, key);
    json_int_t value = json_integer_value(at);
    json_decref(report);
    return value;
}

TEST(precision_halves_floats)
{
    const char *const paths[] = {"parameters.bytes", "peak.bytes"};
    for (size_t i = 0; i < 2; i++) {
        json_int_t as_exported = figure("-b 2 " TRAINING, paths[i]);
        json_int_t fp32 = figure("-b 2 --precision fp32 " TRAINING, paths[i]);
        json_int_t fp16 = figure("-b 2 --precision fp16 " TRAINING, paths[i]);
        json_int_t bf16 = figure("-b 2 --precision bf16 " TRAINING, paths[i]);
        assert_int_equal(fp32, as_exported);
        assert_int_equal(2 * fp16, fp32);
        assert_int_equal(bf16, fp16);
    }
}

TEST(options_of_training_change_what_they_name)
{
#define OF "-b 8 --train adam " TRAINING " "
    json_int_t gradients = figure(OF, "training.gradient_bytes");
    json_int_t states = figure(OF, "training.optimizer_bytes");
    json_int_t saved = figure(OF, "training.saved_activation_bytes");
    json_int_t peak = figure(OF, "training.peak_bytes");
    assert_true(gradients > 0 && states >= 2 * gradients);
    assert_int_equal(figure(OF "--train sgd", "training.optimizer_bytes"), 0);
    /* Nothing to train but the last layer: [1000, 512] and [1000]. */
    assert_int_equal(
        figure(OF "--freeze 'l*' --freeze 'c*' --freeze 'b*'", "training.gradient_bytes"),
        4 * (1000 * 512 + 1000));
    json_int_t amp = figure(OF "--amp bf16", "training.saved_activation_bytes");
    assert_true(amp < saved && 2 * amp > saved);
    assert_int_equal(figure(OF "--amp fp16", "training.saved_activation_bytes"), amp);
    /* Inference has autocast, too: its products are of 16 bits, and its weights are cast for them. */
    assert_int_not_equal(
        figure("-b 8 --runtime torch --amp fp16 " TRAINING, "runtimes.torch.tensor_peak_bytes"),
        figure("-b 8 --runtime torch " TRAINING, "runtimes.torch.tensor_peak_bytes"));
    /* Shards of two devices, of what the stage names. */
    json_int_t shard = figure(OF "--zero 1 --world 2", "training.optimizer_bytes");
    assert_true(shard >= states / 2 && shard < states / 2 + 4096);
    /* Gradients of the batches before stand beside the activations of the next one. */
    assert_true(figure(OF "--accumulate 2", "training.peak_bytes") > peak);
    assert_true(figure(OF "--as-exported", "training.saved_activation_bytes") >= saved);
    json_int_t compiled = figure(OF "--compile", "training.compile.saved_activation_bytes");
    assert_true(compiled > saved / 2 && compiled < saved);
    assert_int_equal(figure(OF "--compile=1", "training.compile.saved_activation_bytes"), compiled);
    assert_int_equal(figure(OF "--compile", "training.compile.recompute_macs"), 0);
    assert_true(figure(OF "--compile=0.2", "training.compile.saved_activation_bytes") <
                compiled / 2);
    assert_true(figure(OF "--compile=0.2", "training.compile.recompute_macs") > 0);
    program_expect(OF "--compile=0.2", 0, "activation_memory_budget = 0.2");
    program_expect(OF "--compile=", 2, "from 0 to 1, not ''");
#undef OF
#define OF "-b 2 --train sgd " ONV_SOURCE_DIR "/samples/vit-small-train.onnx "
    saved = figure(OF "--attention math", "training.saved_activation_bytes");
    assert_int_equal(figure(OF, "training.saved_activation_bytes"),
                     figure(OF "--attention auto", "training.saved_activation_bytes"));
    assert_true(figure(OF, "training.saved_activation_bytes") < saved);
    assert_true(figure(OF "--attention flash", "training.saved_activation_bytes") < saved);
    program_expect(OF "--attention math", 0, "kernels keep less: --attention");
#undef OF
}

/* body.0 and body.2 are linear, body.1 is a LeakyReLU, then attention without its dropout. */
static void write_noted(const char *name)
{
    static const struct {
        const char *op, *inputs, *output, *module, *call, *class, *aten;
    } steps[] = {
        {"MatMul", "x body.0.weight", "a", "body.0", "linear", "torch.nn.modules.linear.Linear",
         "aten.linear.default"},
        {"LeakyRelu", "a", "b", "body.1", "leaky_relu", "torch.nn.modules.activation.LeakyReLU",
         "aten.leaky_relu.default"},
        {"MatMul", "b body.2.weight", "h", "body.2", "linear_1", "torch.nn.modules.linear.Linear",
         "aten.linear.default"},
        {"Transpose", "h", "t", "at", "sdpa", "Net", "aten.scaled_dot_product_attention.default"},
        {"MatMul", "h t", "s", "at", "sdpa", "Net", "aten.scaled_dot_product_attention.default"},
        {"Softmax", "s", "p", "at", "sdpa", "Net", "aten.scaled_dot_product_attention.default"},
        {"MatMul", "p h", "y", "at", "sdpa", "Net", "aten.scaled_dot_product_attention.default"},
    };
    model *m = model_read(17, "in x f32[4,8]", "weight body.0.weight f32[8,8]",
                          "weight body.2.weight f32[8,8]", "role body.0.weight PARAMETER",
                          "role body.2.weight PARAMETER");
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        model_source(m, steps[i].module, steps[i].call);
        model_class(m, steps[i].class, steps[i].aten);
        model_node(m, steps[i].op, steps[i].output, steps[i].inputs, steps[i].output, "");
    }
    model_output(m, "y", "f32");
    program_write_model(name, m);
}

/* A ReLU, of which nothing tells whether it overwrites its input, does, and copies the gradient that an instance norm gets; the
 * warning names the option that says otherwise. */
TEST(relus_make_new_tensors_where_that_is_told)
{
    static const char *const weights[][2] = {
        {"w", "f32[8,8,1,1]"}, {"scale", "f32[8]"}, {"shift", "f32[8]"}};
    model *m = model_read(18, "in image f32[4,8,32,32]");
    for (size_t i = 0; i < 3; i++) {
        model_weight(m, weights[i][0], weights[i][1]);
        model_role(m, weights[i][0], "PARAMETER");
    }
    model_add(m, "h = Conv(image w) conv", "n = InstanceNormalization(h scale shift) norm",
              "source act relu", "class torch.nn.modules.activation.ReLU aten.relu.default");
    model_statement(m, 10, "return F.relu(input, inplace=self.inplace)");
    model_add(m, "r = Relu(n) relu", "y = ReduceSum(r) sum keepdims=0", "out y f32");
    program_write_model("relu.onnx", m);
#define OF "--train sgd --loss none relu.onnx "
    json_int_t over = figure(OF, "training.peak_bytes");
    json_int_t anew = figure(OF "--inplace=none", "training.peak_bytes");
    assert_true(anew < over);
    char told[64];
    snprintf(told, sizeof told, "peak is %" JSON_INTEGER_FORMAT " bytes instead of", anew);
    program_expect(OF, 0, told);
    program_expect(OF, 0, "--inplace=none");
#undef OF
}

TEST(options_of_what_exports_hide)
{
    enum { H = 4 * 8 * 4, SCORES = 4 * 4 };
    char path[1200];
    write_noted("noted.onnx");
    snprintf(path, sizeof path, "--train sgd --loss none --attention math noted.onnx ");
#define GIVES(options, path_, bytes)                                                               \
    do {                                                                                           \
        char line[1400];                                                                           \
        snprintf(line, sizeof line, "%s%s", path, options);                                        \
        assert_int_equal(figure(line, path_), bytes);                                              \
    } while (0)
    char plain[1400];
    snprintf(plain, sizeof plain, "%s", path);
    json_int_t saved = figure(plain, "training.saved_activation_bytes");
    GIVES("--inplace", "training.saved_activation_bytes", saved - H);
    GIVES("--inplace=body", "training.saved_activation_bytes", saved - H);
    GIVES("--inplace='*.1'", "training.saved_activation_bytes", saved - H);
    GIVES("--inplace=none", "training.saved_activation_bytes", saved);
    GIVES("--attention-dropout 0.1", "training.saved_activation_bytes", saved + 5 * SCORES);
    GIVES("--attention-dropout 0", "training.saved_activation_bytes", saved);
    GIVES("", "training.gradient_bytes", 2 * 8 * 8 * 4);
    GIVES("--missing-parameters 1000", "training.parameter_bytes", 1000 * 4);
    GIVES("--missing-parameters 1000", "training.gradient_bytes", 2 * 8 * 8 * 4);
    GIVES("--train-only body.0", "training.gradient_bytes", 8 * 8 * 4);
    GIVES("--train-only '*.weight'", "training.gradient_bytes", 2 * 8 * 8 * 4);
    GIVES("--freeze body.2", "training.gradient_bytes", 8 * 8 * 4);
#undef GIVES
    program_expect("--train sgd --loss none --inplace=body.0 noted.onnx", 2, "'body.0' matches no");
    program_expect("--train sgd --loss none --train-only head noted.onnx", 2, "'head' matches no");
    program_expect("--train sgd --loss none --freeze head noted.onnx", 2, "'head' matches no");
    program_expect("--train sgd --loss none --missing-parameters 5 noted.onnx", 0,
                   "128 elements are counted");
    program_expect("--train sgd --attention-dropout none noted.onnx", 2, "--attention-dropout");
    program_expect("--train sgd --loss none noted.onnx", 0, "--inplace=PATTERN");
    program_expect("--train sgd --loss none --attention math noted.onnx", 0, "80 bytes;");
}

/* A norm that the older exporter folded, in a module. */
static void write_folded(const char *name, bool has_product)
{
    model *m = model_read(17, "in x f32[2,8,16,16]", "weight onnx::Conv_10 f32[8,8,1,1]",
                          "weight onnx::Conv_11 f32[8]", "a = Neg(x) /Neg",
                          "b = Conv(a onnx::Conv_10 onnx::Conv_11) /block/conv/Conv",
                          "c = Neg(b) /block/Neg", "d = Neg(c) /block/Neg_1");
    if (has_product) model_weight(m, "w", "f32[16,16]");
    if (has_product) model_node(m, "MatMul", "/MatMul", "d w", "y", "");
    if (!has_product) model_node(m, "Neg", "/Neg_1", "d", "y", "");
    model_output(m, "y", "f32");
    program_write_model(name, m);
}

TEST(options_of_inference_change_what_they_name)
{
    enum { OF = 4 * 2 * 8 * 16 * 16, NORM = 3 * 4 * 8 + 8 };
    static const char path[] = "runtimes.torch.tensor_peak_bytes";
    write_folded("folded.onnx", false);
    /* x, the argument of the block, and two results of the three there. */
    json_int_t folded = figure("--runtime torch --folded-norms folded.onnx", path);
    assert_int_equal(figure("--runtime torch folded.onnx", path), folded + NORM);
    assert_int_equal(figure("--runtime torch --graph-module --folded-norms folded.onnx", path),
                     folded - OF);
    assert_int_equal(figure("--runtime torch --locals --folded-norms folded.onnx", path),
                     folded + OF);
    program_expect("--runtime torch folded.onnx", 0, "overwrite their input");
    json_int_t least = figure("--runtime torch folded.onnx", "runtimes.torch.least_peak_bytes");
    json_int_t most = figure("--runtime torch folded.onnx", "runtimes.torch.locals_peak_bytes");
    assert_true(least < most);
    assert_int_equal(
        figure("--runtime torch --locals folded.onnx", "runtimes.torch.least_peak_bytes"), most);
    program_expect("-v --runtime torch folded.onnx", 0, "--folded-norms leaves");
    /* The workspace of a product hides what names hold elsewhere. */
    write_folded("product.onnx", true);
    program_expect("--runtime torch product.onnx", 0, "overwrite their input");
    program_write_model("layer.onnx", encoder_layer("perm=[1,0,2]"));
    json_int_t fast = figure("--runtime torch layer.onnx", path);
    json_int_t apart = figure("--runtime torch --no-fast-path layer.onnx", path);
    assert_true(fast != apart);
    program_expect("-v --runtime torch layer.onnx", 0,
                   "fast-path: 1 layers of nn.TransformerEncoder");
    program_expect("-v --runtime torch layer.onnx", 0, "without it");
    program_write_model("masked.onnx", attention_module(false, true));
    program_expect("--runtime torch masked.onnx", 0, "takes more memory with masks");
}

/* target decides the shape of y: x [6, 4] reshaped. */
static void write_reshape(const char *name)
{
    model *m =
        model_read(17, "in x f32[6,4]", "in target i64[2]", "y = Reshape(x target) r", "out y f32");
    program_write_model(name, m);
}

TEST(input_values_decide_shapes)
{
    /* A TensorProto: dims 2, int64, [3, 8]. */
    static const unsigned char tensor[] = {0x08, 0x02, 0x10, 0x07, 0x3a, 0x02, 0x03, 0x08};
    write_reshape("r.onnx");
    program_write("target.pb", tensor, sizeof tensor);
    program_expect("--dump=graph -i target=8,3 r.onnx", 0, "[8, 3]");
    program_expect("--dump=graph -i target=@target.pb r.onnx", 0, "[3, 8]");
    program_expect("-i target=@absent.pb r.onnx", 1, "absent.pb");
    program_expect("-i target=1,2,3 r.onnx", 2, "'target'");
    program_expect("-i target=1.5,2 r.onnx", 2, "integers");
}

TEST(colours_are_there_when_asked_for)
{
    char text[PROGRAM_TEXT];
    assert_int_equal(program_run("-b 1 --color always " TRAINING, text), 0);
    assert_non_null(strchr(text, '\x1b'));
    assert_int_equal(program_run("-b 1 --color never " TRAINING, text), 0);
    assert_null(strchr(text, '\x1b'));
    assert_int_equal(program_run("-b 1 " TRAINING, text), 0); /* a pipe is no terminal */
    assert_null(strchr(text, '\x1b'));
}

TEST(operators_are_declared)
{
    model *m = model_new(17);
    static const char rules[] = "test::Twice(x): [x.0 * 2, x.1]\n";
    model_add(m, "import test 1", "in x f32[3,5]", "y = test::Twice(x) t", "out y f32");
    program_write_model("t.onnx", m);
    program_write("rules.txt", rules, strlen(rules));
    program_expect("t.onnx", 0, "Twice");
    program_expect("--dump=graph --op-shapes rules.txt t.onnx", 0, "[6, 5]");
    program_expect("--op-shapes absent.txt t.onnx", 1, "absent.txt");
    program_expect("--op-shapes t.onnx t.onnx", 1, "t.onnx");
}

/* Weights in files of their own are found from the model's folder. */
TEST(the_model_stays_beside_its_weights)
{
    model *m =
        model_read(17, "in x f32[4,4]", "weight w f32[4,4]", "y = MatMul(x w) mm", "out y f32");
    program_write_model("beside.onnx", m);
    program_expect("-q beside.onnx --onnx-out /tmp/beside.onnx >/dev/null", 2,
                   "as in --onnx-out new-beside.onnx");
    program_expect("-q beside.onnx --onnx-out new.onnx && ls", 0, "new.onnx");
    program_expect("-q new.onnx --onnx-out newer.onnx --csv", 0, "y,output,float32,4x4");
    program_expect("-q missing.onnx --onnx-out new.onnx", 1, "missing.onnx");
    program_expect("-q beside.onnx --onnx-out - | grep -ac onnxvram.peak_bytes", 0, "1");
    program_expect("-q beside.onnx --limit output=100 --onnx-out small.onnx >/dev/null", 1,
                   "--limit output=N");
    program_expect("-q small.onnx", 1, "cannot be opened");
}

TEST(options_of_plan)
{
    static const char intervals[] = "id,lower,upper,size\na,0,2,10\nb,1,3,5\nc,2,4,10\n";
    program_write("i.csv", intervals, strlen(intervals));
    program_expect("plan i.csv --effort 1", 0, "height");
    program_expect("plan i.csv --capacity 15", 0, "optimal");
    program_expect("plan i.csv --align 8 -o o.csv && grep -cE ',(0|8|16)$' o.csv", 0, "3");
    program_expect("plan --help", 0, "Exit status 3");
}

TEST(options_of_simulate)
{
    /* Two segments of 12 MiB, which stay when they are free but do not join for 24 MiB; an expandable
     * one grows in steps of 20 MiB and holds both. */
    static const char trace[] = "alloc,a,12582912\nalloc,b,12582912\nfree,a\nfree,b\n"
                                "alloc,c,25165824\n";
    program_write("t.csv", trace, strlen(trace));
    program_expect("simulate t.csv --runtime torch", 0,
                   "torch,25165824,50331648,25165824,50331648,3\n");
    program_expect("simulate t.csv --runtime torch --expandable-segments", 0,
                   "torch,25165824,41943040,25165824,41943040,0\n");
    program_expect("simulate t.csv --runtime torch --capacity 32MiB", 0,
                   "torch,25165824,25165824,25165824,25165824,1\n");
    program_expect("simulate t.csv --runtime torch --capacity 24MiB", 0, "torch,");
    program_expect("simulate t.csv --runtime torch --capacity 23MiB", 3,
                   "torch: no room for event 1, which asks for 12582912 bytes");
    program_expect("simulate t.csv --runtime torch,ideal --capacity 23MiB", 3, "\nideal,");
    program_expect("simulate t.csv --runtime torch --capacity 23MiB --summary", 3, "event 1");
    program_expect("simulate t.csv --runtime arena --capacity 24MiB", 0, "arena,");
    program_expect("simulate t.csv --runtime arena --capacity 23MiB", 3, "arena: no room");
    program_expect("simulate t.csv --runtime torch,ideal --header", 0, "\nideal,25165824,");
    program_expect("simulate t.csv --runtime arena", 0, "arena,25165824,25165824,");
}

/* Both print the same. */
static void expect_same(const char *words, const char *others)
{
    static char a[PROGRAM_TEXT], b[PROGRAM_TEXT];
    if (program_run(words, a) != program_run(others, b) || strcmp(a, b) != 0 || a[0] == '\0')
        fail_msg("'%s' prints\n%s'%s' prints\n%s", words, a, others, b);
}

TEST(names_of_other_programs)
{
#define OF "-q " TRAINING " "
    expect_same(OF "--batch-size 4 --runtime pytorch", OF "-b 4 --runtime torch");
    expect_same(OF "-b 4 --runtime onnxruntime,PyTorch", OF "-b 4 --runtime ort,torch");
    expect_same(OF "-b 4 --dtype float16", OF "-b 4 --precision fp16");
    expect_same(OF "-b 4 --optimizer AdamW --amp bfloat16", OF "-b 4 --train adamw --amp bf16");
    expect_same(OF "-b 4 --budget 3090", OF "-b 4 --budget 'RTX 3090'");
    expect_same(OF "-b 4 --pool 2GiB", OF "-b 4 --cached 2GiB");
    program_expect(OF "-b 4 --budget 16", 2, "a size with its unit");
}

TEST(commands_bring_their_options)
{
    expect_same("report -b 4 " OF, "-b 4 " OF);
    expect_same("train -b 4 " OF, "-b 4 --train adamw " OF);
    expect_same("train --train sgd -b 4 " OF, "-b 4 --train sgd " OF);
    expect_same("fit --budget T4 " OF, "--max-batch --budget T4 " OF);
    expect_same("plans -b 4 " TRAINING, "-b 4 --train adamw --checkpoint all " TRAINING);
    expect_same("serve -b 4 " OF "'" TRAINING "*2'",
                "-b 4 --runtime ort --together " OF "'" TRAINING "*2'");
    program_expect("-b 4 --json=before.json " OF, 0, "torch");
    program_expect("gate -b 4 --baseline before.json " OF, 0, "torch");
    program_expect("gate -b 5 --baseline before.json " OF, 3, "grew");
    program_expect("gate -b 5 --baseline before.json --max-growth 90% " OF, 0, "torch");
    program_expect("gate -b 4 --budget 100MiB " OF, 3, "does not fit");
#undef OF
}

TEST_GROUP(folder_enter, folder_leave)
