/* The parameters that an export lists: which tensors of the file they are, and which are missing. */
#include "eager/noted_network.h"
#include "eager/pass.h"
#include "eager/trainer.h"
#include "support/capture.h"
#include "support/test.h"

enum { W = 8 * 8 * 4 };

TEST(parameters_without_a_tensor_are_reported)
{
    static const struct {
        network network;
        uint64_t parameters;
        const char *told;
    } cases[] = {
        {{NULL,
          "val_1 f32[8,8]",
          {FC, {.op = "Relu", .inputs = "h", .output = "y", .attributes = ""}}},
         W,
         NULL},
        {{"fc.weight",
          "val_1 f32[8,8]",
          {FC, {.op = "Relu", .inputs = "h", .output = "y", .attributes = ""}}},
         W,
         NULL},
        /* Stages that the forward pass never uses. */
        {{"fc.weight stage4.conv.weight stage4.norm.bias",
          "val_1 f32[8,8]",
          {FC, {.op = "Relu", .inputs = "h", .output = "y", .attributes = ""}}},
         W,
         "2 parameters that the export lists, in 'stage4.conv', 'stage4.norm', have"},
        {{"a.a.w a.b.w a.b.x a.c.w a.d.w a.e.w fc.weight",
          "val_1 f32[8,8]",
          {FC, {.op = "Relu", .inputs = "h", .output = "y", .attributes = ""}}},
         W,
         "6 parameters that the export lists, in 'a.a', 'a.b', 'a.c' and 2 more, have"},
        /* Biases of zeros, which the exporter drops. */
        {{"fc.bias fc.weight",
          "val_1 f32[8,8]",
          {FC, {.op = "Relu", .inputs = "h", .output = "y", .attributes = ""}}},
         W + 8 * 4,
         NULL},
        {{"conv.bias conv.weight",
          "conv.weight f32[16,8,3,3]",
          {{"Conv", "image conv.weight", "y", "", "conv", "conv2d", CONV, "aten.conv2d.default"}}},
         (16 * 8 * 9 + 16) * 4,
         NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        outcome o = run(&cases[i].network);
        assert_int_equal(o.figures.parameter_bytes, cases[i].parameters);
        assert_int_equal(o.figures.gradient_bytes, cases[i].parameters);
        assert_int_equal(o.text[0] != '\0', cases[i].told != NULL);
        if (cases[i].told != NULL) {
            assert_non_null(strstr(o.text, cases[i].told));
            assert_non_null(strstr(o.text, "in model.parameters()")); /* to its end */
        }
    }
}

/* A view of a filter that code made, a wavelet, stands where a convolution has its weight: nothing is trained, nor kept. */
TEST(filters_of_code_are_no_weights)
{
    static const char *const names[] = {"unsqueeze_1", "val_7"};
    for (size_t i = 0; i < 2; i++) {
        char weights[64], inputs[64];
        snprintf(weights, sizeof weights, "%s f32[8,8,3,3] val_1 f32[8,8,1,1]", names[i]);
        snprintf(inputs, sizeof inputs, "image %s", names[i]);
        const network n = {
            "conv.weight",
            weights,
            {{"Conv", inputs, "a", "", "wavelet", "conv2d", "zoo.Wavelet", "aten.conv2d.default"},
             {"Conv", "a val_1", "y", "", "conv", "conv2d_1", CONV, "aten.conv2d.default"}}};
        outcome o = run(&n);
        assert_int_equal(o.figures.gradient_bytes, (i == 0 ? 0 : 8 * 8 * 9 * 4) + 8 * 8 * 4);
        assert_int_equal(o.figures.saved_activation_bytes,
                         (i == 0 ? 0 : 8 * 6 * 6 * 4) + 8 * 4 * 4 * 4);
    }
}

/* How many elements there are says what the file lacks: in training and inference, without a gradient. */
TEST(a_count_of_parameters_completes_them)
{
    const network n = {"fc.weight stage4.conv.weight",
                       "val_1 f32[8,8]",
                       {FC, {.op = "Relu", .inputs = "h", .output = "y", .attributes = ""}}};
    static const struct {
        uint64_t parameters, bytes;
        const char *told;
    } cases[] = {{0, W, "--missing-parameters N"},
                 {64, W, NULL},
                 {63, W, "64 elements are counted"},
                 {100, 100 * 4, "144 bytes"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        outcome o = run_with(&n, cases[i].parameters);
        assert_int_equal(o.figures.parameter_bytes, cases[i].bytes);
        assert_int_equal(o.figures.gradient_bytes, W);
        assert_int_equal(o.text[0] != '\0', cases[i].told != NULL);
        if (cases[i].told != NULL) assert_non_null(strstr(o.text, cases[i].told));
        OWNED_PASS p;
        pass_run(&p, network_model(&n), &(onv_lower_options){.parameters = cases[i].parameters});
        uint64_t weights = 0;
        for (size_t k = 0; k < p.t.buffers.count; k++)
            if (p.t.buffers.at[k].kind == ONV_BUFFER_WEIGHT) weights += p.t.buffers.at[k].bytes;
        assert_int_equal(weights, cases[i].bytes);
    }
}

/* The older exporter lists and notes nothing: whether there is more, the user alone knows. */
TEST(an_export_without_notes_says_so)
{
    static const struct {
        const char *listed;
        uint64_t parameters;
        bool is_unlisted, is_told;
    } cases[] = {{"", 0, true, true}, {"", 64, false, true}, {"fc.weight", 0, false, false}};
    static const call plain = {
        .op = "MatMul", .inputs = "x val_1", .output = "h", .attributes = ""};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        network n = {cases[i].listed,
                     "val_1 f32[8,8]",
                     {FC, {.op = "Relu", .inputs = "h", .output = "y", .attributes = ""}}};
        if (cases[i].is_told) n.calls[0] = plain;
        OWNED_TRAINER t;
        OWNED_MODEL m = network_model(&n);
        trainer_open_model(&t, m);
        onv_train_options how = {.optimizer = onv_optimizer_find("sgd"),
                                 .lower.loss = ONV_LOSS_NONE,
                                 .lower.parameters = cases[i].parameters};
        assert_int_equal(trainer_run(&t, &how).is_unlisted, cases[i].is_unlisted);
        assert_int_equal(diag_of(&t.model, "no-notes") != NULL, cases[i].is_told);
    }
}

/* What nothing reads has no tensor, and is told; had it a part in a table that the exporter computed, what is multiplied by that would
 * be kept. */
TEST(parameters_that_nothing_reads_are_told)
{
    network n = {
        "layers.0.self.q.weight layers.1.self.q.weight",
        "val_1 f32[8,8] mul_3 f32[4,8]",
        {{"MatMul", "x val_1", "y", "", "layers.0.self.q", "linear", LINEAR, "aten.linear.default"},
         {"Mul", "y mul_3", "z", "", "net", "mul_4", "zoo.Net", "aten.mul.Tensor"}}};
    outcome o = run(&n);
    assert_int_equal(o.figures.parameter_bytes, W);
    assert_non_null(strstr(o.text, "layers.1.self.q"));
    assert_non_null(strstr(o.factors, "'mul_3' first"));
}

/* Norms of a network that was never trained share ones and zeros, with their running statistics too; each has
 * its own, the statistics without gradients. */
TEST(norms_that_share_all_have_their_own)
{
    enum { N = 8 * 4 };
    static const float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1}, zeros[8];
    for (int n_norms = 1; n_norms <= 2; n_norms++) {
        OWNED_TRAINER t;
        OWNED_MODEL m = model_read(18, "in x f32[4,8,6]");
        model_weight_data(m, "a.weight", "f32[8]", ones, sizeof ones);
        model_weight_data(m, "a.bias", "f32[8]", zeros, sizeof zeros);
        model_add(m, "role a.weight PARAMETER", "role a.bias PARAMETER");
        model_parameters(m, n_norms == 1 ? "a.weight a.bias" : "a.weight a.bias b.weight b.bias");
        for (int i = 0; i < n_norms; i++) {
            bool is_last = i == n_norms - 1;
            model_source(m, i == 0 ? "a" : "b", i == 0 ? "norm" : "norm_1");
            model_class(m, "torch.nn.modules.batchnorm.BatchNorm1d",
                        "aten._native_batch_norm_legit_functional.default");
            model_node(m, "BatchNormalization", i == 0 ? "n" : "o",
                       i == 0 ? "x a.weight a.bias a.bias a.weight"
                              : "h a.weight a.bias a.bias a.weight",
                       is_last ? "y" : "h", "training_mode=0");
        }
        model_output(m, "y", "f32");
        onv_training_figures f = TRAINED(&t, m, .loss = ONV_LOSS_NONE);
        assert_int_equal(f.parameter_bytes, n_norms * 2 * N);
        assert_int_equal(f.gradient_bytes, n_norms * 2 * N);
        assert_int_equal(f.buffer_bytes, n_norms * (2 * N + 8));
    }
}

/* Inference holds them as well. */
TEST(inference_tells_of_missing_parameters)
{
    network n = {"fc.weight pooler.weight",
                 "val_1 f32[8,8]",
                 {FC, {.op = "Relu", .inputs = "h", .output = "y", .attributes = ""}}};
    for (int is_as_exported = 0; is_as_exported < 2; is_as_exported++) {
        OWNED_PASS p;
        onv_lower_options how = {.reports = true, .as_exported = is_as_exported};
        pass_run(&p, network_model(&n), &how);
        assert_int_equal(p.f.model.diags.count, !is_as_exported);
        if (!is_as_exported)
            assert_non_null(strstr(p.f.model.diags.at[0].message, "in 'pooler', have"));
    }
}

/* Heads have the bias of their decoder as their own, too. */
TEST(the_bias_of_a_head_is_its_decoders)
{
    network n = {
        "fc.weight head.bias head.decoder.bias",
        "val_1 f32[8,8] head.decoder.bias f32[8]",
        {FC, {"Add", "h head.decoder.bias", "y", "", "head", "add", "Net", "aten.add.Tensor"}}};
    assert_int_equal(run(&n).text[0], '\0');
}

/* A node of one module, and of one call of it. */
static void add_noted(model *m, const char *op, const char *inputs, const char *output,
                      const char *class, const char *aten)
{
    model_source(m, "module", "call");
    model_class(m, class, aten);
    model_node(m, op, output, inputs, output, "");
}

/* Into groups and back, of what a view before had joined: one call, as the notes say. */
TEST(views_before_a_group_norm_are_joined_with_its_own)
{
#define GROUP_NORM "torch.nn.modules.normalization.GroupNorm", "aten.group_norm.default"
    static const int64_t groups[] = {4, 2, 4}, whole[] = {4, 2, 2, 2};
    model *m = model_read(17, "in x f32[4,8]", "weight w f32[8,8]", "weight one f32[2]",
                          "weight scale f32[2,1,1]", "role w PARAMETER");
    model_ints(m, "groups", 3, groups);
    model_ints(m, "whole", 4, whole);
    model_node(m, "MatMul", "product", "x w", "h", "");
    add_noted(m, "Reshape", "h groups", "a", GROUP_NORM);
    add_noted(m, "InstanceNormalization", "a one one", "b", GROUP_NORM);
    add_noted(m, "Reshape", "b whole", "c", GROUP_NORM);
    add_noted(m, "Mul", "c scale", "d", GROUP_NORM);
    add_noted(m, "Add", "d scale", "y", GROUP_NORM);
    model_output(m, "y", "f32");
    /* x, h, and mean and 1/std of each group. */
    assert_int_equal(trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE}),
                     2 * 4 * 8 * 4 + 4 * 2 * 2 * sizeof(float));
}

/* Norms that were never trained have equal vectors, which the exporter writes once: statistics, too. */
TEST(norms_have_vectors_of_their_own)
{
#define NORM(module)                                                                               \
    module, "norm", "torch.nn.modules.batchnorm.BatchNorm2d", "aten.batch_norm.default"
    const network n = {
        NULL,
        "val_1 f32[8,8] one f32[8] zero f32[8]",
        {{"BatchNormalization", "x one zero zero one", "h", "", NORM("a.norm")},
         {"BatchNormalization", "h one zero zero one", "g", "", NORM("b.norm")},
         {"MatMul", "g val_1", "y", "", "fc", "linear", LINEAR, "aten.linear.default"}}};
    enum { VECTOR = 8 * 4, COUNTER = 8 };
    pass p;
    pass_run(&p, network_model(&n), &(onv_lower_options){0});
    uint64_t weights = 0;
    for (size_t i = 0; i < p.t.buffers.count; i++) {
        const onv_buffer *b = &p.t.buffers.at[i];
        if (b->kind == ONV_BUFFER_WEIGHT || b->kind == ONV_BUFFER_STATISTIC) weights += b->bytes;
    }
    assert_int_equal(weights, W + 2 * (4 * VECTOR + COUNTER));
    pass_drop(&p);
    outcome o = run(&n);
    assert_int_equal(o.figures.parameter_bytes, W + 2 * 2 * VECTOR);
    assert_int_equal(o.figures.buffer_bytes, 2 * (2 * VECTOR + COUNTER));
}

/* A convolution that standardizes its weight calls a batch norm, whose factors it makes of a gain: each has a product of its own,
 * though the exporter has equal ones once. */
TEST(factors_of_standardized_weights_are_made_of_gains)
{
    enum { STATISTICS = 2 * 2 * 8 * 4, PRODUCTS = 2 * 8 * 4 };
    for (int is_made = 0; is_made < 2; is_made++) {
        model *m = model_read(18, "in x f32[1,8,64]", "parameters a.weight a.gain b.weight b.gain");
        static const char *const modules[] = {"a", "b"};
        char weight[] = "a.weight", view[] = "a_view", out[] = "a_out", inputs[64], scaled[64] = "";
        for (int i = 0; i < 2; i++) {
            weight[0] = view[0] = out[0] = modules[i][0];
            model_weight(m, weight, "f32[1,8,64]");
            model_role(m, weight, "PARAMETER");
        }
        model_add(m, "weight val_1 f32[8]", "weight val_2 f32[8]", "weight val_3 f32[8]",
                  "weight val_4 f32[8]");
        for (int i = 0; i < 2; i++) {
            weight[0] = view[0] = out[0] = modules[i][0];
            model_source(m, modules[i], "_native_batch_norm_legit");
            model_class(m, "zoo.ScaledConv", "aten._native_batch_norm_legit.no_stats");
            model_call(m, "aten._native_batch_norm_legit.no_stats",
                       is_made ? "%view, %view_1, None, True, 0.0, 1e-05"
                               : "%view, None, None, True, 0.0, 1e-05");
            snprintf(inputs, sizeof inputs, "%s val_1 val_2 val_3 val_4", weight);
            model_node(m, "BatchNormalization", out, inputs, out, "");
            snprintf(scaled + strlen(scaled), sizeof scaled - strlen(scaled), "%s ", out);
        }
        model_node(m, "Add", "sum", scaled, "y", "");
        model_output(m, "y", "f32");
        assert_int_equal(trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE}),
                         STATISTICS + (is_made ? PRODUCTS : 0));
    }
}
