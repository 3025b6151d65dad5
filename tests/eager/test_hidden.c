/* What no export shows: functions with a backward of their own, what variables of Python hold, what indices are
 * views of; and the warnings that say so. */
#include <inttypes.h>

#include "eager/pass.h"
#include "eager/trainer.h"
#include "support/capture.h"
#include "support/test.h"

enum { H = 4 * 8 * 4 };

#define APPLY "return Gate.apply(x)"

/* Trains the model and frees it. `warning`: the code of one that has to be there, with `part` in its text. */
static onv_training_figures train(model *m, const onv_lower_options *lower, const char *warning,
                                  const char *part)
{
    trainer t;
    trainer_open_model(&t, m);
    onv_train_options options = {.optimizer = onv_optimizer_find("sgd"), .lower = *lower};
    options.lower.reports = true;
    onv_training result = trainer_run(&t, &options);
    bool found = warning == NULL;
    for (size_t i = 0; i < t.model.diags.count; i++) {
        const onv_diag *diag = &t.model.diags.at[i];
        bool is_own = strcmp(diag->code, "autograd-function") == 0 ||
                      strcmp(diag->code, "python-locals") == 0 || strcmp(diag->code, "silu") == 0 ||
                      strcmp(diag->code, "cached-calls") == 0 ||
                      strcmp(diag->code, "exported-masks") == 0 ||
                      strcmp(diag->code, "removed-calls") == 0 ||
                      strcmp(diag->code, "activation-inplace") == 0;
        if (warning == NULL)
            assert_false(is_own);
        else if (strcmp(diag->code, warning) == 0 && strstr(diag->message, part) != NULL)
            found = true;
    }
    if (!found) fail_msg("no warning %s: %s", warning, part);
    trainer_close(&t);
    model_free(m);
    return result.figures;
}

static model *begin(void)
{
    model *m = model_read(17, "in x f32[4,8]", "weight w f32[8,8]", "role w PARAMETER",
                          "h = MatMul(x w) product");
    return m;
}

/* Which of cuDNN's kernels runs is not known: the range is said. */
TEST(a_benchmark_of_kernels_has_a_range)
{
    model *m = model_read(17, "in x f32[2,8,6,6]", "weight w f32[8,8,3,3]", "role w PARAMETER",
                          "y = Conv(x w) conv pads=[1,1,1,1]", "out y f32");
    onv_lower_options lower = {.loss = ONV_LOSS_MSE, .cuda = onv_cuda_library_defaults()};
    lower.cuda.benchmark = true;
    train(m, &lower, "cudnn-benchmark", "from 0 to ");
}

/* What a kernel of another library makes on its way is not known: that is said. */
TEST(kernels_of_other_libraries_are_named)
{
    model *m =
        model_read(19, "in x f32[2,8,6,6]", "in o f32[2,18,6,6]", "weight w f32[4,8,3,3]",
                   "role w PARAMETER", "y = DeformConv(x w o) deform pads=[1,1,1,1]", "out y f32");
    train(m, &(onv_lower_options){.loss = ONV_LOSS_MSE}, "foreign-kernels", "1152 bytes");
}

/* Nothing tells that x * sigmoid(x) is one function, not even a module of its own. */
TEST(products_with_a_sigmoid_may_be_apart)
{
    static const char *const names[][3] = {
        {"/block/Sigmoid", "/block/Mul", "/block/next/MatMul"},
        {"/Sigmoid", "/Mul", "/next/MatMul"},
        {"/block/act/Sigmoid", "/block/act/Mul", "/block/next/MatMul"}};
    for (size_t i = 0; i < 3; i++) {
        model *m = begin();
        model_node(m, "Sigmoid", names[i][0], "h", "a", "");
        model_node(m, "Mul", names[i][1], "h a", "b", "");
        model_node(m, "MatMul", names[i][2], "b w", "y", "");
        model_output(m, "y", "f32");
        train(m, &(onv_lower_options){.loss = ONV_LOSS_MSE}, "silu", "128 bytes more");
    }
}

/* A reading is a warning where it decides over more than 2 % of what is kept. */
TEST(readings_that_matter_are_warnings)
{
    static const char *const inputs[] = {"f32[8,8]", "f32[8,800]"};
    for (size_t i = 0; i < 2; i++) {
        OWNED_MODEL m = model_new(17);
        model_input(m, "x", inputs[i]);
        model_weight(m, "w", i == 0 ? "f32[8,8]" : "f32[800,8]");
        model_add(m, "role w PARAMETER", "h = MatMul(x w) product", "a = Sigmoid(h) /act/Sigmoid",
                  "y = Mul(h a) /act/Mul", "out y f32");
        OWNED_TRAINER t;
        TRAINED(&t, m, .loss = ONV_LOSS_MSE, .reports = true);
        const onv_diag *told = diag_of(&t.model, "silu");
        if (told != NULL) assert_int_equal(told->severity, i == 0 ? ONV_WARNING : ONV_NOTE);
    }
}

/* h * tanh(h) + a parameter, where told. */
static model *gated(const char *line, bool has_parameter)
{
    static const char *const ops[][3] = {
        {"Tanh", "h", "a"}, {"Mul", "h a", "b"}, {"Add", "b p", "y"}};
    model *m = begin();
    model_add(m, "weight p f32[8]", "role p PARAMETER");
    for (size_t i = 0; i < 3; i++) {
        model_source(m, "act", ops[i][0]);
        if (i < 2 || has_parameter) model_trace(m, line);
        model_node(m, ops[i][0], ops[i][2], ops[i][1], ops[i][2], "");
    }
    model_output(m, "y", "f32");
    return m;
}

/* The network's own code checkpoints: of h and two results only the last one is kept by what is behind. */
TEST(checkpoints_of_the_network_are_told)
{
    static const char *const lines[] = {"y = checkpoint.checkpoint(self.act, h)",
                                        "y = self.act(h)  # checkpointed later"};
    for (int i = 0; i < 2; i++)
        train(gated(lines[i], true), &(onv_lower_options){.loss = ONV_LOSS_MSE},
              i == 0 ? "checkpointed-calls" : NULL, "2 operations run inside");
}

TEST(functions_keep_their_inputs)
{
    const onv_lower_options lower = {.loss = ONV_LOSS_NONE};
    /* x; h and tanh(h) where autograd differentiates. */
    assert_int_equal(train(gated("return gate(x)", false), &lower, NULL, "").saved_activation_bytes,
                     3 * H);
    assert_int_equal(
        train(gated(APPLY, false), &lower, "autograd-function", "1 calls").saved_activation_bytes,
        2 * H);
    assert_int_equal(
        train(gated(APPLY, true), &lower, "autograd-function", "3 nodes").saved_activation_bytes,
        3 * H);
}

/* Ten sums, which keep nothing, of one function. */
static model *sums(void)
{
    static const char *const names[] = {"h",  "s1", "s2", "s3", "s4", "s5",
                                        "s6", "s7", "s8", "s9", "y"};
    model *m = begin();
    model_add(m, "weight half f32[4,8]", "role half BUFFER");
    for (size_t i = 0; i + 1 < sizeof names / sizeof names[0]; i++) {
        char inputs[16] = "";
        strcat(strcpy(inputs, names[i]), " half");
        model_source(m, "net", names[i + 1]);
        model_class(m, "Net", "aten.add.Tensor");
        model_node(m, "Add", names[i + 1], inputs, names[i + 1], "");
    }
    model_output(m, "y", "f32");
    return m;
}

TEST(variables_may_hold_values)
{
    /* Workspaces belong to neither end. */
    onv_lower_options lower = {.loss = ONV_LOSS_NONE, .cuda = onv_cuda_library_defaults()};
    lower.locals = true;
    uint64_t high = train(sums(), &lower, NULL, "").peak_bytes;
    char ends[64];
    lower.locals = false;
    snprintf(ends, sizeof ends, "to %" PRIu64 " bytes", high);
    uint64_t low = train(sums(), &lower, "python-locals", ends).peak_bytes;
    (void)train(sums(), &lower, "python-locals", "nothing reads");
    /* When the last one is made all others are there, not just the one before. */
    assert_in_range(high - low, 7 * H, 9 * H);
}

TEST(activations_say_what_they_may_save)
{
    static const char *const all[] = {"*"};
    for (int told = 0; told < 2; told++) {
        model *m = begin();
        model_add(m, "a = LeakyRelu(h) act", "y = MatMul(a w) last", "out y f32");
        onv_lower_options lower = {
            .loss = ONV_LOSS_NONE, .inplace = all, .n_inplace = (size_t)told};
        train(m, &lower, told ? NULL : "activation-inplace", "128 bytes");
    }
}

/* GroupNorm(8, 8) of [4, 8, 6]: the exporter drops the second reshape, which does nothing. */
TEST(groups_of_one_channel_are_a_group_norm)
{
    static const char *const steps[][4] = {{"Reshape", "c shape", "r", ""},
                                           {"InstanceNormalization", "r one zero", "n", ""},
                                           {"Mul", "n gamma", "s", ""},
                                           {"Add", "s beta", "y", ""}};
    model *m = model_new(17);
    const int64_t shape[] = {4, 8, 6};
    model_add(m, "in x f32[4,8,6]", "weight k f32[8,8,1]", "weight one f32[8]",
              "weight zero f32[8]", "weight gamma f32[8,1]", "weight beta f32[8,1]");
    model_ints(m, "shape", 3, shape);
    model_add(m, "role k PARAMETER", "role gamma PARAMETER", "role beta PARAMETER",
              "c = Conv(x k) conv");
    for (size_t i = 0; i < 4; i++) {
        model_add(m, "source norm group_norm",
                  "class torch.nn.modules.normalization.GroupNorm aten.group_norm.default");
        model_node(m, steps[i][0], steps[i][2], steps[i][1], steps[i][2], steps[i][3]);
    }
    model_output(m, "y", "f32");
    uint64_t kept = trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE});
    const uint64_t x = 4 * 8 * 6 * 4, statistics = 2 * 4 * 8 * 4;
    assert_int_equal(kept, 2 * x + statistics);
}

/* Lists in which a network keeps what calls read until the next pass. */
TEST(caches_are_told)
{
    static const struct {
        const char *line;
        bool is_cache;
    } cases[] = {{"x = self.conv(x, feat_cache[i])", true},
                 {"x = self.conv(x, cache[\"conv\"])", true},
                 {"x = turn(x, self.cos_cache[i])", false},
                 {"x = self.conv(x, use_cache)", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        model *m = begin();
        model_source(m, "net', 'net.conv", "neg");
        model_class(m, "zoo.Net', 'zoo.Conv", "aten.neg.default");
        model_statement(m, 5, cases[i].line);
        model_add(m, "y = Neg(h) neg", "out y f32");
        const onv_lower_options lower = {.loss = ONV_LOSS_NONE};
        train(m, &lower, cases[i].is_cache ? "cached-calls" : NULL, "up to 128 bytes");
    }
}

/* `x + 0` and `x * 1`, which the exporter removes: the reader's call has their name, and the node another value. */
TEST(removed_calls_are_told)
{
    for (int is_removed = 0; is_removed < 2; is_removed++) {
        model *m = begin();
        model_add(m, "call aten.relu.default %mm", "relu = Relu(h) relu");
        model_call(m, "aten.exp.default", is_removed ? "%mul" : "%relu");
        model_add(m, "y = Exp(relu) exp", "out y f32");
        const onv_lower_options lower = {.loss = ONV_LOSS_NONE};
        train(m, &lower, is_removed ? "removed-calls" : NULL, "128 bytes more");
    }
}

/* transformers leaves a mask that masks nothing out, but not while it is exported: a constant of the file may be one. */
TEST(masks_of_the_exporter_are_told)
{
    static const char *const ops[][3] = {{"Mul", "q root", "q1"},  {"Mul", "k root", "k1"},
                                         {"MatMul", "q1 k1", "a"}, {"Add", "a mask", "s"},
                                         {"Softmax", "s", "p"},    {"MatMul", "p q", "y"}};
    for (int i = 0; i < 3; i++) {
        model *m = model_new(17);
        onv_lower_options lower = {.loss = ONV_LOSS_NONE, .attention = ONV_ATTENTION_AUTO};
        model_input(m, "x", "f32[2,2,6,8]");
        if (i == 2)
            model_input(m, "mask", "f32[2,1,6,6]");
        else
            model_weight(m, "mask", "f32[2,1,6,6]");
        model_add(m, "weight w f32[8,8]", "role w PARAMETER", "constant root f32[]",
                  "q = MatMul(x w)", "k = Transpose(q) perm=[0,1,3,2]");
        for (size_t n = 0; n < sizeof ops / sizeof ops[0]; n++) {
            model_source(m, "at", "sdpa");
            model_class(m,
                        i == 0 ? "transformers.models.bert.modeling_bert.BertSelfAttention" : "Net",
                        "aten.scaled_dot_product_attention.default");
            model_node(m, ops[n][0], "", ops[n][1], ops[n][2], "");
        }
        model_output(m, "y", "f32");
        (void)train(m, &lower, i == 0 ? "exported-masks" : NULL, "then 288 bytes less are kept");
    }
}

/* Where the export does not tell whether an activation overwrites its input there are two ends; a ReLU is taken to. */
TEST(activations_have_two_ends)
{
    OWNED_TRAINER t;
    OWNED_MODEL m = begin();
    model_add(m, "a = LeakyRelu(h) /act/LeakyRelu", "y = MatMul(a w) /second/MatMul", "out y f32");
    trainer_open_model(&t, m);
    onv_train_options options = {.optimizer = onv_optimizer_find("sgd"),
                                 .lower = {.loss = ONV_LOSS_NONE}};
    onv_training result = trainer_run(&t, &options);
    assert_int_equal(result.least.peak_bytes, result.figures.peak_bytes - H);
    assert_int_equal(result.most.peak_bytes, result.figures.peak_bytes);
}

/* A network in evaluation mode has lost its dropout. Networks of timm have none by default. */
TEST(a_file_without_dropout_is_warned_of)
{
    enum { SILENT = -1 };
    static const struct {
        const char *form, *producer;
        int says;
        const char *of;
    } cases[] = {
        {"a = Relu(n) a", "pytorch 2.15.0", ONV_WARNING, NULL},
        {"a = Relu(n) a", "pytorch 2.15.0", ONV_WARNING, "net.LayerNorm"},
        {"a = Relu(n) a", "pytorch 2.15.0", ONV_NOTE, "timm.layers.norm.LayerNorm"},
        {"a = BatchNormalization(n w b w b) a", "pytorch 2.15.0", ONV_WARNING, NULL},
        {"a = BatchNormalization(n w b w b) a training_mode=1", "pytorch 2.15.0", SILENT, NULL},
        {"a = Dropout(n) a", "pytorch 2.15.0", SILENT, NULL},
        {"a = Relu(x) a", "pytorch 2.15.0", SILENT, NULL},
        {"a = Relu(n) a", "by hand", SILENT, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        OWNED_TRAINER t;
        OWNED_MODEL m = model_read(17, "in x f32[4,8]", "weight w f32[8]", "weight b f32[8]");
        if (cases[i].of != NULL) model_class(m, cases[i].of, "aten.layer_norm.default");
        if (strcmp(cases[i].form, "a = Relu(x) a") != 0)
            model_add(m, "n = LayerNormalization(x w b) n");
        model_add(m, cases[i].form, "y = Mul(a w) y", "out y f32");
        trainer_open_model(&t, m);
        t.model.producer = cases[i].producer;
        onv_train_options how = {.optimizer = onv_optimizer_find("sgd"), .lower.reports = true};
        trainer_run(&t, &how);
        const onv_diag *told = diag_of(&t.model, "no-dropout");
        assert_int_equal(told != NULL ? (int)told->severity : SILENT, cases[i].says);
    }
}
