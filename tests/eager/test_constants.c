/* Constants that an export computed: which are parameters, made of parameters, or neither. */
#include "eager/noted_network.h"
#include "eager/pass.h"
#include "eager/trainer.h"
#include "support/capture.h"
#include "support/test.h"

enum { W = 8 * 8 * 4 };

/* Positions that were looked up and expanded are a table's rows, once, and a view of them for each sample; so is what was
 * expanded without a look-up. */
TEST(rows_for_all_samples_are_those_of_one)
{
    static const char *const listed[] = {"fc.weight net.embed_positions.weight",
                                         "fc.weight net.positions.table"};
    for (size_t i = 0; i < sizeof listed / sizeof listed[0]; i++) {
        network n = {
            listed[i],
            "val_1 f32[8,8] expand f32[2,4,8]",
            {FC, {"Add", "h expand", "y", "", "net", "add", "zoo.Net", "aten.add.Tensor"}}};
        outcome o = run(&n);
        assert_int_equal(o.figures.gradient_bytes, W + 4 * 8 * 4);
        /* Whether the parameter has all four rows nothing tells. */
        bool is_open = i == 1;
        assert_int_equal(o.text[0] != '\0', is_open);
        if (is_open) assert_non_null(strstr(o.text, "all but the first, 128 bytes"));
    }
}

/* Which parameter a constant was computed from, its call may say. */
TEST(constants_have_the_names_that_calls_give)
{
    enum { N = 4 * 8 };
    static const float ones[N] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                  1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                       steps[N] = {0, 1, 2, 3};
    static const struct {
        const float *data;
        const char *arguments[2]; /* of the two calls */
        uint64_t trained;         /* of the constant */
    } cases[] = {
        {ones, {"%linear, %unsqueeze", "%mul, %unsqueeze_1"}, 2 * N * 4},
        {steps,
         {"%linear, %unsqueeze", "%mul, %unsqueeze_1"},
         2 * N * 4}, /* alike, as layers begin */
        {steps, {"%linear, %p_a_scale", "%mul, %p_b_scale"}, 2 * N * 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        OWNED_MODEL m = model_read(18, "in x f32[4,8]", "weight val_1 f32[8,8]");
        model_weight_data(m, "unsqueeze", "f32[4,8]", cases[i].data, N * sizeof(float));
        model_add(m, "parameters fc.weight a.scale b.scale", "source fc linear");
        model_class(m, LINEAR, "aten.linear.default");
        model_node(m, "MatMul", "product", "x val_1", "h", "");
        for (int k = 0; k < 2; k++) {
            model_source(m, k == 0 ? "a" : "b", k == 0 ? "mul" : "mul_1");
            model_class(m, "zoo.Scale", "aten.mul.Tensor");
            model_call(m, "aten.mul.Tensor", cases[i].arguments[k]);
            model_node(m, "Mul", k == 0 ? "n" : "o", k == 0 ? "h unsqueeze" : "g unsqueeze",
                       k == 0 ? "g" : "y", "");
        }
        model_output(m, "y", "f32");
        OWNED_TRAINER t;
        assert_int_equal(TRAINED(&t, m, .loss = ONV_LOSS_NONE).gradient_bytes,
                         W + cases[i].trained);
    }
}

/* What the export computed and a module reads, which has an attribute that nothing else is, was computed from
 * it; rows of a table of biases between 4 positions, of 32. */
TEST(constants_computed_from_parameters_are_trained)
{
#define MIXER "net.mixer", "mul", "zoo.Mixer", "aten.mul.Tensor"
    static const struct {
        const char *listed, *constant;
        uint64_t parameters;
        const char *op; /* NULL: Mul */
    } cases[] = {{"fc.weight", "unsqueeze_3 f32[4,8]", W, NULL},
                 {"fc.weight net.mixer.scale", "unsqueeze_3 f32[4,8]", W + 4 * 8 * 4, NULL},
                 {"fc.weight net.other.scale", "unsqueeze_3 f32[4,8]", W, NULL},
                 {"fc.weight net.mixer.relative_attention_bias.weight", "permute f32[1,4,8]",
                  W + 32 * 1 * 4, NULL},
                 {"fc.weight net.mixer.rel_attn_embed.weight", "unsqueeze_3 f32[1,1,8]",
                  W + 32 * 1 * 4, "Add"},
                 {"fc.weight", "div_2 f32[8]", W, NULL},
                 {"fc.weight net.mixer.scale", "div_2 f32[8]", W + 8 * 4, NULL},
                 {"fc.weight net.mixer.factor", "sub f32[1]", W + 4, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char weights[64], inputs[32];
        snprintf(weights, sizeof weights, "val_1 f32[8,8] %s", cases[i].constant);
        snprintf(inputs, sizeof inputs, "h %.*s", (int)strcspn(cases[i].constant, " "),
                 cases[i].constant);
        network n = {cases[i].listed,
                     weights,
                     {FC, {cases[i].op != NULL ? cases[i].op : "Mul", inputs, "y", "", MIXER}}};
        outcome o = run(&n);
        assert_int_equal(o.figures.parameter_bytes, cases[i].parameters);
        assert_int_equal(o.text[0] != '\0', i == 2);
    }
}

/* A matrix of weights that the exporter computed of the parameter, `w - w.T`, is kept beside it; a view of it is not. */
TEST(computed_matrices_are_kept)
{
    static const struct {
        const char *constant, *call;
        bool is_computed;
    } cases[] = {{"sub", NULL, true},          {"softmax", NULL, true},
                 {"t", NULL, false},           {"t_1", NULL, false},
                 {"permute", NULL, false},     {"val_2", "%h, %div", true},
                 {"val_2", "%h, %p_w", false}, {"val_2", "%h, %t", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char inputs[32];
        snprintf(inputs, sizeof inputs, "h %s", cases[i].constant);
        model *m = model_read(18, "in x f32[4,8]", "weight val_1 f32[8,8]");
        model_weight(m, cases[i].constant, "f32[8,8]");
        model_add(m, "parameters fc.weight net.w", "source fc linear");
        model_class(m, LINEAR, "aten.linear.default");
        model_node(m, "MatMul", "h", "x val_1", "h", "");
        const char *name = cases[i].call != NULL ? "linear" : "matmul";
        char operation[32];
        snprintf(operation, sizeof operation, "aten.%s.default", name);
        model_source(m, "net", name);
        model_class(m, "zoo.Net", operation);
        if (cases[i].call != NULL) model_call(m, operation, cases[i].call);
        model_node(m, "MatMul", "y", inputs, "y", "");
        model_output(m, "y", "f32");
        uint64_t kept = trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE});
        assert_int_equal(kept, 2 * 4 * 8 * 4 + (cases[i].is_computed ? W : 0)); /* x, h */
    }
}

/* A layer whose input is a table: the file has their product, which is no bias, nor is a mask that becomes a condition. */
TEST(conditions_are_no_biases)
{
    network condition = {
        "fc.weight net.mixer.v_bias",
        "val_1 f32[8,8] mul_2 f32[4,8]",
        {FC,
         {"Cast", "mul_2", "c", "to=9", "net.mixer", "_to_copy", "zoo.Mixer",
          "aten._to_copy.default"},
         {"Where", "c h h", "y", "", "net.mixer", "where", "zoo.Mixer", "aten.where.self"}}};
    assert_int_equal(run(&condition).figures.parameter_bytes, W);
}

/* What was expanded is a parameter's before what else the export computed, wherever both stand in the file: a class token,
 * and a table of positions. */
TEST(an_expanded_constant_has_its_name_first)
{
    static const char *const weights[] = {"val_1 f32[8,8] expand f32[4,8] cat f32[4,8]",
                                          "val_1 f32[8,8] cat f32[4,8] expand f32[4,8]"};
    onv_training_figures figures[2];
    for (size_t i = 0; i < 2; i++) {
        network n = {
            "fc.weight token",
            weights[i],
            {FC,
             {"Mul", "h cat", "a", "", "", "mul", "zoo.Net", "aten.mul.Tensor"},
             {"Concat", "expand a", "y", "axis=0", "", "cat_1", "zoo.Net", "aten.cat.default"}}};
        outcome o = run(&n);
        assert_int_equal(o.text[0], '\0');
        figures[i] = o.figures;
    }
    assert_int_equal(figures[1].parameter_bytes, figures[0].parameter_bytes);
    assert_int_equal(figures[1].saved_activation_bytes, figures[0].saved_activation_bytes);
    assert_in_range(figures[0].parameter_bytes, W + 1, W + 4 * 8 * 4 - 1);
}

/* Queries that are the same for all samples, which a norm is given first: the network's own, of one sample, and no factor of
 * the norm. */
TEST(a_norm_is_given_what_was_expanded)
{
    network n = {"fc.weight latents norm.weight",
                 "val_1 f32[8,8] norm.weight f32[8] expand f32[4,8]",
                 {FC,
                  {"LayerNormalization", "expand norm.weight", "q", "", "norm", "layer_norm",
                   "torch.nn.modules.normalization.LayerNorm", "aten.layer_norm.default"},
                  {"Add", "expand q", "z", "", "", "add", "zoo.Net", "aten.add.Tensor"},
                  {"Mul", "h z", "y", "", "", "mul", "zoo.Net", "aten.mul.Tensor"}}};
    outcome o = run(&n);
    assert_int_equal(o.text[0], '\0');
    assert_int_equal(o.figures.parameter_bytes, W + 8 * 4 + 8 * 4);
}

/* The exporter writes a norm without weights with ones, which the network has not. */
TEST(norms_without_weights_have_none)
{
    uint64_t parameters[2];
    for (int i = 0; i < 2; i++) {
        onv_training_figures figures;
        OWNED_TRAINER t;
        OWNED_MODEL m = model_new(18);
        onv_train_options options = {.optimizer = onv_optimizer_find("sgd"),
                                     .lower = {.loss = ONV_LOSS_NONE, .reports = true}};
        model_add(m, "in x f32[4,8]", "weight fc.weight f32[8,8]", "role fc.weight PARAMETER",
                  "weight val_1 f32[8]");
        model_parameters(m, i == 0 ? "fc.weight" : "fc.weight norm.weight");
        model_add(m, "source fc linear", "class torch.nn.modules.linear.Linear aten.linear.default",
                  "h = MatMul(x fc.weight) fc", "source norm layer_norm",
                  "class torch.nn.modules.normalization.LayerNorm aten.layer_norm.default");
        model_call(m, "aten.layer_norm.default",
                   i == 0 ? "%linear, [8], None, None, 1e-05, False"
                          : "%linear, [8], %p_norm_weight, None, 1e-05, False");
        model_add(m, "y = LayerNormalization(h val_1) norm axis=-1", "out y f32");
        trainer_open_model(&t, m);
        figures = trainer_run(&t, &options).figures;
        parameters[i] = figures.parameter_bytes;
    }
    assert_int_equal(parameters[0], 8 * 8 * 4);
    assert_int_equal(parameters[1], 8 * 8 * 4 + 8 * 4);
}

/* A mask that was cut from a larger one, a number that nothing large is made of, and a buffer that the file has. */
TEST(buffers_without_a_tensor_are_told)
{
    static const struct {
        const char *listed, *constant, *told;
        onv_severity severity;
        uint64_t given;
    } cases[] = {
        {"fc.weight ~net.mask", "eq f32[4,8]", "'net.mask' first", ONV_WARNING, 0},
        {"fc.weight ~net.mask", "eq f32[4,8]", NULL, ONV_NOTE, 1000},
        {"fc.weight ~other.mask", "eq f32[4,8]", "'other.mask' first", ONV_NOTE, 0},
        {"fc.weight ~net.mask", "net.mask f32[4,8]", NULL, ONV_NOTE, 0},
        {"fc.weight ~norm.running_mean", "eq f32[4,8]", NULL, ONV_NOTE, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char weights[64], inputs[32];
        snprintf(weights, sizeof weights, "val_1 f32[8,8] %s", cases[i].constant);
        snprintf(inputs, sizeof inputs, "h %.*s", (int)strcspn(cases[i].constant, " "),
                 cases[i].constant);
        network n = {cases[i].listed,
                     weights,
                     {FC, {"Mul", inputs, "y", "", "net", "mul", "zoo.Net", "aten.mul.Tensor"}}};
        OWNED_TRAINER t;
        OWNED_MODEL m = network_model(&n);
        assert_int_equal(
            TRAINED(&t, m, .loss = ONV_LOSS_NONE, .reports = true, .buffers = cases[i].given)
                .buffer_bytes,
            cases[i].given);
        const onv_diag *told = diag_of(&t.model, "missing-buffers");
        assert_int_equal(told != NULL, cases[i].told != NULL);
        if (told != NULL) assert_int_equal(told->severity, cases[i].severity);
        if (told != NULL) assert_non_null(strstr(told->message, cases[i].told));
    }
}

/* Two modules share a weight, and the exporter has transposed it for one of them: both are counted, which is said. */
TEST(tied_weights_are_told)
{
    for (int is_tied = 0; is_tied < 2; is_tied++) {
        OWNED_TRAINER t;
        bool told = false;
        OWNED_MODEL m = model_read(18, "in ids i64[4]", "weight embed.weight f32[16,8]",
                                   "role embed.weight PARAMETER", "weight val_1 f32[8,16]");
        model_parameters(m, is_tied ? "embed.weight" : "embed.weight fc.weight");
        model_add(m, "source embed embedding",
                  "class torch.nn.modules.sparse.Embedding aten.embedding.default",
                  "h = Gather(embed.weight ids) h");
        model_source(m, is_tied ? "embed" : "fc", "linear");
        model_class(m, LINEAR, "aten.linear.default");
        model_add(m, "y = MatMul(h val_1) y", "out y f32");
        assert_int_equal(TRAINED(&t, m, .loss = ONV_LOSS_NONE, .reports = true).parameter_bytes,
                         2 * 16 * 8 * 4);
        for (size_t k = 0; k < t.model.diags.count; k++)
            told |= strcmp(t.model.diags.at[k].code, "tied-weights") == 0 &&
                    strstr(t.model.diags.at[k].message, "512 bytes") != NULL;
        assert_int_equal(told, is_tied);
    }
}

/* Positions that were expanded to all samples, where every listed parameter has a tensor. */
TEST(expanded_positions_are_no_parameter)
{
    for (int is_listed = 0; is_listed < 2; is_listed++) {
        const network n = {
            is_listed ? "fc.weight" : NULL,
            "val_1 f32[8,8] expand f32[4,8]",
            {FC,
             {"Concat", "expand h", "y", "axis=0", "", "cat_1", "zoo.Net", "aten.cat.default"}}};
        assert_int_equal(run(&n).figures.gradient_bytes, W + (is_listed ? 0 : 8 * 4));
    }
}

/* `linear_1`, a constant, is what a layer gives that only parameters lead to; a constant of another layer's operation is not
 * the parameter that the file has of every other layer. */
TEST(constants_of_layers_are_told)
{
    static const struct {
        const char *constant, *listed, *told;
        uint64_t parameters;
    } cases[] = {
        {"linear_1", "a.0.w a.1.w", "1 constants, 'linear_1' first, 128 bytes", 0},
        {"matmul_2", "a.0.w a.1.w", "1 constants, 'matmul_2' first, 128 bytes", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        OWNED_MODEL m = model_new(18);
        OWNED_TRAINER t;
        model_add(m, "in x f32[4,8]", "weight a.0.w f32[8,8]", "role a.0.w PARAMETER");
        model_weight(m, cases[i].constant, "f32[4,8]");
        model_parameters(m, cases[i].listed);
        add_call(m, "MatMul", "x a.0.w", "h", "mm");
        char inputs[32];
        snprintf(inputs, sizeof inputs, "h %s", cases[i].constant);
        model_add(m, "source a.1 mul", "class Net aten.mul.Tensor");
        model_node(m, "Mul", "y", inputs, "y", "");
        model_output(m, "y", "f32");
        uint64_t parameters =
            TRAINED(&t, m, .loss = ONV_LOSS_NONE, .reports = true).parameter_bytes;
        const onv_diag *told = diag_of(&t.model, "folded-layers");
        assert_int_equal(told != NULL, cases[i].told != NULL);
        if (told != NULL) assert_non_null(strstr(told->message, cases[i].told));
        if (cases[i].parameters > 0) assert_int_equal(parameters, cases[i].parameters);
    }
}
