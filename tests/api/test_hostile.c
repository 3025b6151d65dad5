/* Models that make no sense, one a line: numbers that are negative, huge or zero where they must not
 * be, lists of the wrong length, axes out of range. Each is an error that names the node and says
 * what is wrong, or a figure where ONNX allows it; none is a crash, a hang or a number that is
 * silently wrong. What is wrong with files and graphs stands in tests/load and tests/ir. */
#include <inttypes.h>

#include "support/capture.h"
#include "support/onnx_writer.h"
#include "support/test.h"

typedef struct hostile {
    const char *op_type, *attributes;
    /* Types; "w " in front makes a weight, "i 1,2" is an int64 vector, "-" is absent. */
    const char *inputs[4];
    onv_status status;
    const char *part; /* of the message, or the shape of the output */
} hostile;

#define MODEL    ONV_ERR_MODEL
#define OVERFLOW ONV_ERR_OVERFLOW
#define BIG      "4611686018427387904" /* 2^62 */
#define MOST     "9223372036854775807"
#define LEAST    "-9223372036854775808"

static const hostile cases[] = {
    /* Dims. */
    {"Relu", "", {"f32[-1]"}, ONV_OK, "[x0.0]"},
    {"Relu", "", {"f32[-5,3]"}, ONV_OK, "[x0.0, 3]"},
    {"Relu", "", {"f32[" LEAST "]"}, ONV_OK, "[x0.0]"},
    {"Relu", "", {"f32[" MOST "]"}, OVERFLOW, "dim 0 of 'x0' is 9223372036854775807"},
    {"Relu", "", {"f32[" BIG "]"}, OVERFLOW, "dim 0 of 'x0' is 4611686018427387904"},
    {"Relu", "", {"f32[2147483648,2147483648,2147483648]"}, OVERFLOW, "a size does not fit 61"},
    {"Relu", "", {"f32[4294967296,4294967296,0]"}, ONV_OK, "[4294967296, 4294967296, 0]"},
    {"Relu", "", {"f32[0]"}, ONV_OK, "[0]"},
    /* No rule multiplies what a view has, or an operator that is not known. */
    {"Identity", "", {"f16[4294967297,1,9007199254740993]"}, OVERFLOW, "the bytes of 'x0' do not"},
    {"Identity", "", {"i64[1152921504606846976]"}, OVERFLOW, "all values up to 'y' do not"},
    {"Relu", "", {"w f32[" BIG "]"}, OVERFLOW, "the number of elements of tensor 'x0' does not"},
    {"MatMul", "", {"f32[2147483648,1]", "f32[1,2147483648]"}, OVERFLOW, "a size does not fit"},
    {"MatMul",
     "",
     {"f32[1073741824,1]", "f32[1,1073741824]"},
     ONV_ERR_LIMIT,
     "takes 4611686018427387904 bytes, more than any device"},
    {"Add", "", {"f32[2,3]", "f32[4]"}, MODEL, "shapes do not broadcast: 3 against 4"},
    {"Expand", "", {"f32[1]", "i 4611686018427387904,4"}, OVERFLOW, "dim 0 of output 'y' does"},
    {"Expand", "", {"f32[1]", "i -2"}, MODEL, "the new shape holds -2"},
    {"Expand", "", {"f32[1]", "i 65536,65536,65536,65536"}, OVERFLOW, "a size does not fit 61"},
    {"ConstantOfShape", "", {"i -1"}, MODEL, "the shape has a dim of -1"},
    {"ConstantOfShape", "", {"i 4294967296,4294967296"}, OVERFLOW, "a size does not fit 61 bits"},
    {"ConstantOfShape",
     "",
     {"i 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"},
     MODEL,
     "the shape has 33"},
    {"Tile", "", {"f32[4]", "i " BIG}, OVERFLOW, "dim 0 of output 'y' does not fit 61 bits"},
    {"Tile", "", {"f32[4]", "i -1"}, MODEL, "repeats holds -1"},
    {"Reshape", "", {"f32[4]", "i 3"}, MODEL, "cannot reshape [4] to [3]: the element counts"},
    {"Reshape", "allowzero=1", {"f32[4]", "i -1,0"}, MODEL, "the new shape holds 0 and -1,"},
    {"Reshape",
     "",
     {"f32[4]", "i 4611686018427387904,4611686018427387904,0"},
     MODEL,
     "the new shape holds"},
    /* Axes. */
    {"Softmax", "axis=2", {"f32[2,3]"}, MODEL, "axis 2 is out of range for rank 2"},
    {"Softmax", "axis=" LEAST, {"f32[2,3]"}, MODEL, "axis -9223372036854775808 is out of range"},
    {"Concat", "axis=5", {"f32[2]", "f32[2]"}, MODEL, "axis 5 is out of range for rank 1"},
    {"Concat", "", {"f32[2]", "f32[2]"}, MODEL, "attribute 'axis' is absent"},
    {"Concat",
     "axis=0",
     {"f32[2305843009213693951]", "f32[2305843009213693951]"},
     OVERFLOW,
     "a size does not fit 61"},
    {"Flatten", "axis=4", {"f32[2,3]"}, MODEL, "axis 4 is out of range for rank 2"},
    {"Flatten", "axis=1", {"f32[2,4294967296,4294967296]"}, OVERFLOW, "a size does not fit 61"},
    {"Gather", "axis=9", {"f32[2,3]", "i 0"}, MODEL, "axis 9 is out of range for rank 2"},
    {"Split", "axis=3", {"f32[2,3]"}, MODEL, "axis 3 is out of range for rank 2"},
    {"Split", "axis=0", {"f32[4]", "i -4"}, MODEL, "split holds -4"},
    {"Squeeze", "", {"f32[2,3]", "i 0"}, MODEL, "cannot squeeze axis 0 of [2, 3]"},
    {"Squeeze", "", {"f32[1,3]", "i " LEAST}, ONV_OK, "[?]"},
    {"Unsqueeze", "", {"f32[2]", "i 0,0"}, MODEL, "axis 0 is given twice"},
    {"Unsqueeze", "", {"f32[2]", "i 5"}, MODEL, "axis 5 is out of range for rank 2"},
    {"Transpose", "perm=[0]", {"f32[2,3]"}, MODEL, "perm has 1 axes for an input of shape [2, 3]"},
    {"Transpose", "perm=[0,-1]", {"f32[2,3]"}, ONV_OK, "[2, 3]"},
    {"ReduceSum", "", {"f32[2,3]", "i 2"}, MODEL, "axis 2 is out of range for rank 2"},
    {"ReduceMean", "", {"f32[2,3]", "i 0,0"}, MODEL, "axis 0 is given twice"},
    {"ReduceMax", "", {"f32[2,3]", "i -3"}, MODEL, "axis -3 is out of range for rank 2"},
    {"ArgMax", "axis=4", {"f32[2,3]"}, MODEL, "axis 4 is out of range for rank 2"},
    {"TopK", "axis=3", {"f32[2,3]", "i 1"}, MODEL, "axis 3 is out of range for rank 2"},
    {"OneHot", "axis=4", {"i 1", "i 3", "f32[2]"}, MODEL, "axis 4 is out of range for rank 2"},
    {"OneHot", "", {"f32[2]", "i " BIG, "f32[2]"}, OVERFLOW, "dim 1 of output 'y' does not fit"},
    {"CumSum", "", {"f32[2]", "i 5"}, MODEL, "axis 5 is out of range for rank 1"},
    {"GatherND", "batch_dims=4", {"f32[2,3]", "i 0"}, MODEL, "batch_dims 4 is out of range"},
    {"GatherElements", "", {"f32[2,3]", "i 0"}, MODEL, "data [2, 3] and indices [1] differ in"},
    {"ScatterND", "", {"f32[2,3]", "i 0,0,0", "f32[1]"}, MODEL, "index tuples of 3 for data of"},
    {"LayerNormalization", "axis=7", {"f32[2,3]", "f32[3]"}, MODEL, "axis 7 is out of range for"},
    /* Slices. */
    {"Slice", "", {"f32[4]", "i 0", "i " MOST, "i 0"}, ONV_OK, "[4]"},
    {"Slice", "", {"f32[4]", "i " LEAST, "i " MOST, "i 0"}, ONV_OK, "[4]"},
    {"Slice", "", {"f32[4]", "i " MOST, "i " LEAST, "i 0"}, ONV_OK, "[0]"},
    {"Pad", "", {"f32[4]", "i " MOST "," MOST}, OVERFLOW, "dim 0 of output 'y' does not fit 61"},
    {"Pad", "mode='sideways'", {"f32[4]", "i 1,1"}, MODEL, "mode is 'sideways', not constant,"},
    {"Range", "", {"i 0", "i " MOST, "i 1"}, ONV_OK, "[range#0]"},
    {"Range", "", {"i " LEAST, "i " MOST, "i 1"}, ONV_OK, "[range#0]"},
    /* Windows. */
    {"Conv", "strides=[0,0]", {"f32[1,3,8,8]", "w f32[4,3,3,3]"}, MODEL, "attribute strides"},
    {"Conv", "strides=[-1,1]", {"f32[1,3,8,8]", "w f32[4,3,3,3]"}, MODEL, "attribute strides"},
    {"Conv", "strides=[1,1,1]", {"f32[1,3,8,8]", "w f32[4,3,3,3]"}, MODEL, "attribute strides"},
    {"Conv", "dilations=[0,1]", {"f32[1,3,8,8]", "w f32[4,3,3,3]"}, MODEL, "attribute dilations"},
    {"Conv",
     "dilations=[" MOST "," MOST "]",
     {"f32[1,3,8,8]", "w f32[4,3,3,3]"},
     MODEL,
     "attribute dilations holds"},
    {"Conv",
     "kernel_shape=[" MOST ",3]",
     {"f32[1,3,8,8]", "w f32[4,3,3,3]"},
     MODEL,
     "attribute kernel_shape holds"},
    {"Conv", "kernel_shape=[3]", {"f32[1,3,8,8]", "w f32[4,3,3,3]"}, MODEL, "attribute"},
    {"Conv",
     "pads=[" MOST "," MOST "," MOST "," MOST "]",
     {"f32[1,3,8,8]", "w f32[4,3,3,3]"},
     MODEL,
     "attribute pads holds"},
    {"Conv", "pads=[-9,0,0,0]", {"f32[1,3,8,8]", "w f32[4,3,3,3]"}, MODEL, "attribute pads"},
    {"Conv", "group=2", {"f32[1,3,8,8]", "w f32[4,3,3,3]"}, MODEL, "input [1, 3, 8, 8] does not"},
    {"Conv", "", {"f32[1,3]", "w f32[4,3]"}, MODEL, "rank is 2; a convolution needs a batch,"},
    {"Conv", "", {"f32[1,5,8,8]", "w f32[4,3,3,3]"}, MODEL, "input [1, 5, 8, 8] does not have"},
    {"Conv", "", {"f32[1,3,8,8]", "w f32[4,3,3]"}, MODEL, "input [1, 3, 8, 8] and weights [4,"},
    {"ConvTranspose",
     "strides=[" MOST "," MOST "]",
     {"f32[1,3,8,8]", "w f32[3,4,3,3]"},
     MODEL,
     "attribute strides holds"},
    {"ConvTranspose",
     "output_padding=[" MOST ",0]",
     {"f32[1,3,8,8]", "w f32[3,4,3,3]"},
     MODEL,
     "attribute output_padding holds"},
    {"ConvTranspose",
     "group=" MOST,
     {"f32[1,3,8,8]", "w f32[3,4,3,3]"},
     OVERFLOW,
     "dim 1 of output 'y' does not fit 61"},
    {"MaxPool", "", {"f32[1,3,8,8]"}, MODEL, "attribute kernel_shape is missing"},
    {"MaxPool", "kernel_shape=[2,2] strides=[0,1]", {"f32[1,3,8,8]"}, MODEL, "attribute strides"},
    {"MaxPool",
     "kernel_shape=[2,2] dilations=[" MOST ",1]",
     {"f32[1,3,8,8]"},
     MODEL,
     "attribute dilations holds"},
    {"MaxPool",
     "kernel_shape=[2,2] pads=[" MOST ",0," MOST ",0]",
     {"f32[1,3,8,8]"},
     MODEL,
     "attribute pads holds"},
    {"AveragePool", "kernel_shape=[2,2,2]", {"f32[1,3,8,8]"}, MODEL, "attribute kernel_shape"},
    {"LpPool", "kernel_shape=[2,2] pads=[1]", {"f32[1,3,8,8]"}, MODEL, "attribute pads has 1"},
    {"GlobalAveragePool", "", {"f32[3]"}, MODEL, "input 0 has a rank that is not allowed: shape"},
    {"Col2Im", "", {"f32[1,12,4]", "i 0,0", "i 2,2"}, MODEL, "the kernel spans 2 elements of"},
    {"Resize", "", {"f32[1,3,8,8]", "-", "-", "i 1,3"}, MODEL, "sizes has 2 values for 4 axes"},
    {"Resize", "", {"f32[1,3,8,8]", "-", "-", "i 1,3," BIG ",8"}, MODEL, "element 2 of input 3"},
    {"DepthToSpace", "blocksize=0", {"f32[1,4,2,2]"}, MODEL, "a division by 0"},
    {"DepthToSpace", "blocksize=-2", {"f32[1,4,2,2]"}, MODEL, "a dim would be -4"},
    {"DepthToSpace", "blocksize=" MOST, {"f32[1,4,2,2]"}, MODEL, "a dim has no end"},
    {"DepthToSpace", "blocksize=3", {"f32[1,4,2,2]"}, MODEL, "4 does not split into 9"},
    {"SpaceToDepth", "blocksize=0", {"f32[1,4,2,2]"}, MODEL, "a division by 0"},
    /* Others. */
    {"Gemm", "", {"f32[2,3]", "f32[4,5]"}, MODEL, "inner dims must agree: 3 against 4"},
    {"Einsum", "equation='ij,jk'", {"f32[2,3]"}, MODEL, "the equation has more terms than inputs"},
    {"Einsum", "equation='ij,jk->i!'", {"f32[2,3]", "f32[3,4]"}, MODEL, "unexpected '!' in the"},
    {"Einsum", "equation='iiiiiiiii'", {"f32[2,3]"}, MODEL, "term 0 has 9 labels for shape [2,"},
    {"LSTM",
     "hidden_size=-1",
     {"f32[4,2,3]", "w f32[1,20,3]", "w f32[1,20,5]"},
     MODEL,
     "hidden: -1 is not a size"},
    {"LSTM",
     "hidden_size=" BIG,
     {"f32[4,2,3]", "w f32[1,20,3]", "w f32[1,20,5]"},
     ONV_OK,
     "[4, 1, 2, 5]"},
    {"EyeLike", "", {"f32[2]"}, MODEL, "input 0 must have rank 2, not shape [2]"},
    {"Cast", "to=0", {"f32[2]"}, MODEL, "attribute 'to' is absent or no element type"},
    {"Constant", "", {0}, MODEL, "a Constant without a value"},
    {"RandomNormal", "shape=[-1,2]", {0}, MODEL, "the shape has a dim of -1"},
    {"RandomNormal", "shape=[" BIG "]", {0}, OVERFLOW, "dim 0 of output 'y' does not fit 61 bits"},
    {"RandomNormal", "", {0}, MODEL, "attribute 'shape' is missing"},
    {"Multinomial",
     "sample_size=-1",
     {"f32[2,3]"},
     MODEL,
     "a dim would be -1, which is not a size"},
    {"Dropout", "", {"f32[2]", "f32[2]", "bool"}, MODEL, "ratio.elems is 2, not one = 1"},
    {"If", "", {"bool"}, MODEL, "attribute 'then_branch' is absent or no graph"},
    {"Loop", "", {"i 3", "bool"}, MODEL, "attribute 'body' is absent or no graph"},
    {"Scan", "num_scan_inputs=1", {"f32[2]"}, MODEL, "attribute 'body' is absent or no graph"},
    {"SequenceAt", "", {"f32[2]", "i 0"}, MODEL, "input 0 is not a sequence"},
    {"ConcatFromSequence", "axis=0", {"f32[2]"}, MODEL, "input 0 is not a sequence"},
    {"OptionalGetElement", "", {"f32[2]"}, ONV_OK, "[2]"},
    {"NonMaxSuppression", "", {"f32[1,4]", "f32[1,1,4]"}, MODEL, "input 0 must have rank 3, not"},
    {"com.microsoft::MultiHeadAttention",
     "num_heads=0",
     {"f32[1,2,8]", "f32[1,2,8]", "f32[1,2,8]"},
     MODEL,
     "axis 2 of input value is 8, which does not split into 0"},
    {"com.microsoft::MultiHeadAttention",
     "num_heads=-2",
     {"f32[1,2,8]", "f32[1,2,8]", "f32[1,2,8]"},
     MODEL,
     "axis 2 of input value is 8, which does not split into -2"},
    {"com.microsoft::Attention",
     "num_heads=3",
     {"f32[1,2,8]", "w f32[8,24]", "w f32[24]"},
     MODEL,
     "8 does not split into 3"},
    {"com.microsoft::QuickGelu", "", {0}, MODEL, "QuickGelu of opset 1 takes 1 to 1 inputs, the"},
    {"com.microsoft::MatMulNBits",
     "K=-8 N=4 bits=4 block_size=16",
     {"f32[1,8]", "w u8[4,1,8]", "w f32[4]"},
     MODEL,
     "is 8, not K = -8"},
};

static void add_ints(model *m, const char *name, const char *list)
{
    int64_t values[64];
    size_t count = 0;
    while (*list != '\0') {
        int taken;
        assert_true(count < 64 && sscanf(list, "%" SCNd64 "%n", &values[count++], &taken) == 1);
        list += taken;
        list += *list == ',';
    }
    model_ints(m, name, count, values);
}

static model *make(const hostile *h, const char *output)
{
    model *m = model_new(18);
    char names[64] = "", name[8];
    model_import(m, "com.microsoft", 1);
    for (size_t i = 0; i < 4 && h->inputs[i] != NULL; i++) {
        const char *type = h->inputs[i];
        snprintf(name, sizeof name, "x%zu", i);
        if (strcmp(type, "-") == 0)
            strcpy(name, "-");
        else if (strncmp(type, "w ", 2) == 0)
            model_weight(m, name, type + 2);
        else if (strncmp(type, "i ", 2) == 0)
            add_ints(m, name, type + 2);
        else
            model_input(m, name, type);
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i > 0 ? " " : "",
                 name);
    }
    bool two = strcmp(h->op_type, "TopK") == 0 && *output != '\0';
    model_node(m, h->op_type, "culprit", names, two ? "y z" : output, h->attributes);
    if (*output == '\0') model_node(m, "RandomNormal", "other", "", "y", "shape=[2]");
    model_output(m, "y", "f32");
    return m;
}

/* What is wrong with the answer, or NULL. */
static const char *judge(const hostile *h, onv_status status, const onv_error *error,
                         const onv_analysis *analysis)
{
    if (status != h->status) return "another status";
    if (status == ONV_OK)
        return strcmp(model_shape(analysis, "y"), h->part) == 0 ? NULL : "another shape";
    if (error->code != status) return "the error has another code";
    if (strstr(error->message, h->part) == NULL) return "another message";
    /* What is wrong with a tensor itself is said of the tensor. */
    if (strcmp(error->node, "culprit") != 0 && strstr(error->message, "'x0'") == NULL &&
        strstr(error->message, "'y' takes") == NULL && strstr(error->message, "up to 'y'") == NULL)
        return "nothing is named";
    return NULL;
}

/* Unless the answer is to be strict, a contradiction of the node is a warning, and every other refusal stays one. */
static const char *judge_lenient(const hostile *h, model *m)
{
    onv_analysis *analysis;
    onv_error error = {0};
    onv_status status = model_try(m, NULL, &analysis, &error);
    const char *wrong = NULL;
    if (status == ONV_OK &&
        (message_of(analysis, "contradiction") != NULL) != (h->status == ONV_ERR_MODEL))
        wrong = "the warning is missing";
    else if (status != ONV_OK && status != h->status)
        wrong = "another status without strictness";
    else if (status == ONV_ERR_MODEL && strcmp(error.node, "culprit") == 0 &&
             strcmp(h->op_type, "Constant") != 0) /* a part of reading the file */
        wrong = "a contradiction ends the analysis";
    onv_analysis_destroy(analysis);
    return wrong;
}

TEST(every_line_is_answered)
{
    size_t failures = 0;
    onv_options strict = onv_options_default();
    strict.strict = true;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const hostile *h = &cases[i];
        onv_analysis *analysis;
        onv_error error = {0};
        OWNED_MODEL m = make(h, "y");
        onv_status status = model_try(m, &strict, &analysis, &error);
        const char *wrong = judge(h, status, &error, analysis);
        if (wrong == NULL) wrong = judge_lenient(h, m);
        if (wrong != NULL) {
            failures++;
            print_error("%s(%s): %s: %s, node '%s', '%s'\n", h->op_type, h->attributes, wrong,
                        onv_status_name(status), error.node,
                        status == ONV_OK ? model_shape(analysis, "y") : error.message);
        }
        onv_analysis_destroy(analysis);
    }
    assert_int_equal(failures, 0);
}

/* Rules rely on the outputs that an operator always has; an LSTM has none of those. */
TEST(outputs_are_not_left_out)
{
    onv_options strict = onv_options_default();
    strict.strict = true;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        onv_analysis *analysis;
        onv_error error = {0};
        OWNED_MODEL m = make(&cases[i], "");
        onv_status status = model_try(m, &strict, &analysis, &error);
        if ((status == ONV_OK) !=
            (strcmp(cases[i].op_type, "LSTM") == 0 && cases[i].status == ONV_OK))
            fail_msg("%s without outputs: %s", cases[i].op_type, error.message);
        onv_analysis_destroy(analysis);
        if (status == ONV_ERR_MODEL) assert_string_equal(error.node, "culprit");
    }
}

/* Every Relu asks whether it may overwrite its input, and what freed memory fits its output. */
TEST(long_bodies_take_linear_time)
{
    enum { NODES = 50000, WORK = 400 /* for each */ };
    OWNED_MODEL m = model_read(17, "in x f32[8,4]", "int trips 5", "begin body", "in i i64[]",
                               "in ci bool[]", "in v0 f32", "co = Identity(ci)");
    char in[16] = "v0", out[16];
    for (int i = 1; i <= NODES; i++) {
        snprintf(out, sizeof out, "v%d", i);
        model_node(m, "Relu", "", in, out, "");
        memcpy(in, out, sizeof in);
    }
    model_output(m, "co", "bool[]");
    model_output(m, in, "f32");
    model_add(m, "end", "y = Loop(trips - x) long", "out y f32");
    const onv_limits limits = {.struct_size = sizeof limits, .work = WORK * NODES};
    onv_options options = onv_options_default();
    options.limits = &limits;
    OWNED_ANALYSIS a = model_analyse(m, &options);
}

/* Chains of sequences that are each longer by one tensor, alike or not, at the end or in front: 1,500 of them in 50 KB took
 * 90 MB and more. */
TEST(sequences_that_grow_share_their_items)
{
    const onv_limits limits = {.struct_size = sizeof limits, .arena_bytes = 24 << 20};
    for (unsigned kind = 0; kind < 4; kind++) {
        enum { INSERTS = 1500 };
        onv_options options = onv_options_default();
        options.limits = &limits;
        OWNED_MODEL m = model_new(17);
        char in[16] = "s0", out[16], inputs[48];
        model_add(m, "in x0 f32[3,4]", "in x1 f32[5,4]", "int front 0",
                  "s0 = SequenceConstruct(x0)");
        for (int i = 1; i <= INSERTS; i++) {
            snprintf(out, sizeof out, "s%d", i);
            snprintf(inputs, sizeof inputs, "%s x%d%s", in, kind % 2 != 0 ? i % 2 : 0,
                     kind > 1 ? " front" : "");
            model_node(m, "SequenceInsert", "", inputs, out, "");
            memcpy(in, out, sizeof in);
        }
        model_node(m, "ConcatFromSequence", "", in, "y", "axis=0");
        model_output(m, "y", "f32");
        OWNED_ANALYSIS a = model_analyse(m, &options);
        if (kind % 2 == 0) assert_string_equal(model_shape(a, "y"), "[4503, 4]");
    }
}

/* Operators of other domains that have the names of ONNX's, and neither their operands nor their results. */
TEST(names_of_other_domains)
{
    static const struct {
        const char *inputs, *outputs;
    } lists[] = {{"", ""}, {"", "h"}, {"n2", "h"}, {"n2", "- h"}, {"- n2", "- - h"}};
    static const char *const names[] = {"Relu",      "Add",    "Mul",     "BatchNormalization",
                                        "Transpose", "Concat", "Reshape", "Gather"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0] * sizeof names / sizeof names[0]; i++) {
        onv_options options = onv_options_default();
        const size_t n = sizeof names / sizeof names[0];
        char name[40];
        OWNED_MODEL m = model_read(17, "in x f32[2,4,8,8]");
        for (const char *w = "sbmv"; *w != '\0'; w++) model_weight(m, (char[]){*w, '\0'}, "f32[4]");
        model_add(m, "weight w f32[4,4,1,1]", "c = Conv(x w)", "n1 = BatchNormalization(c s b m v)",
                  "a = Add(n1 x)", "r = Relu(a)", "n2 = BatchNormalization(c s b m v)");
        model_value_info(m, "h", "f32[2,4,8,8]");
        model_import(m, "other", 1);
        snprintf(name, sizeof name, "other::%s", names[i % n]);
        model_node(m, name, "", lists[i / n].inputs, lists[i / n].outputs, "");
        if (strchr(lists[i / n].outputs, 'h') != NULL) {
            model_add(m, "g = Relu(h)", "out g f32");
        }
        model_output(m, "r", "f32");
        for (unsigned k = 0; k < 2; k++) {
            options.train = k > 0 ? "adamw" : NULL;
            options.checkpoint = k > 0 ? "all" : NULL;
            OWNED_ANALYSIS a = model_analyse(m, &options);
        }
    }
}
