/* Constant nodes are weights: the same network has the same figures however its weights are written. */
#include "api/analysis.h"
#include "support/capture.h"
#include "support/onnx_writer.h"
#include "support/test.h"

typedef void (*write_weight)(model *m, const char *name, const char *type);

static const onv_dim_binding batch_of_4 = {"N", 4};

static const onv_options settings[] = {
    {0},
    {.precision = ONV_PRECISION_FP16},
    {.budget = UINT64_C(24) << 30},
    {.budget = UINT64_C(1) << 20, .runtimes = "ideal,arena"},
    {.train = "adam"},
    {.train = "adamw", .amp = ONV_PRECISION_FP16},
    {.train = "adam8bit"},
    {.train = "sgd", .freeze = (const char *const[]){"*bn.*"}, .n_freeze = 1},
    {.train = "adam", .checkpoint = "all"},
    {.replay = "host"},
};
enum { TRAINING = 4, N_SETTINGS = sizeof settings / sizeof settings[0] };

static void write_weights(model *m, write_weight write)
{
    write(m, "c1.weight", "f32[8,3,3,3]");
    write(m, "c1.bias", "f32[8]");
    write(m, "bn.weight", "f32[8]");
    write(m, "bn.bias", "f32[8]");
    write(m, "bn.running_mean", "f32[8]");
    write(m, "bn.running_var", "f32[8]");
    write(m, "scale", "f32[1]");
    write(m, "fc.weight", "f32[10,2048]");
    write(m, "fc.bias", "f32[10]");
}

static void write_nodes(model *m)
{
    model_add(m, "a = Conv(x c1.weight c1.bias) conv pads=[1,1,1,1]",
              "b = BatchNormalization(a bn.weight bn.bias bn.running_mean bn.running_var) norm",
              "c = Relu(b) relu", "d = Mul(c scale) mul", "e = Flatten(d) flatten",
              "y = Gemm(e fc.weight fc.bias) fc transB=1", "out y f32[N,10]");
}

static model *plain(write_weight write)
{
    model *m = model_read(17, "in x f32[N,3,16,16]");
    write_weights(m, write);
    write_nodes(m);
    return m;
}

/* The network is a branch that is taken; the other one has weights that nobody holds. */
static model *branch(write_weight write)
{
    model *m = model_read(17, "in x f32[N,3,16,16]");
    model_bool(m, "condition", true);
    model_begin(m, "then_branch");
    write_weights(m, write);
    write_nodes(m);
    model_add(m, "end", "begin else_branch");
    write(m, "other", "f32[1000,1000]");
    model_add(m, "z = ReduceSum(other) sum", "out z f32", "end", "result = If(condition) if",
              "out result f32[N,10]");
    return m;
}

static onv_analysis *analyse(model *m, size_t setting)
{
    onv_options options = settings[setting];
    options.struct_size = sizeof options;
    options.attention_dropout = -1;
    options.dims = &batch_of_4;
    options.n_dims = 1;
    return model_analyse(m, &options);
}

/* All numbers. */
static void expect_same(const char *what, json_t *x, json_t *y)
{
    const char *key;
    json_t *member;
    size_t i;
    if (json_is_number(x) && !json_equal(x, y))
        fail_msg("%s: %g, not %g", what, json_number_value(y), json_number_value(x));
    assert_int_equal(x != NULL, y != NULL);
    assert_int_equal(json_array_size(x), json_array_size(y));
    json_array_foreach(x, i, member) expect_same(what, member, json_array_get(y, i));
    json_object_foreach(x, key, member) expect_same(key, member, json_object_get(y, key));
}

static void compare(const onv_analysis *one, const onv_analysis *other, const char *const *keys)
{
    json_t *a = report_json(one), *b = report_json(other);
    for (; *keys != NULL; keys++)
        expect_same(*keys, json_object_get(a, *keys), json_object_get(b, *keys));
    json_decref(a);
    json_decref(b);
}

/* Names in plans are those of the branch. */
static void compare_training(const onv_training *one, const onv_training *other)
{
    const onv_training_figures *x = &one->figures, *y = &other->figures;
    assert_ptr_equal(one->optimizer, other->optimizer);
    assert_int_equal(one->n_plans, other->n_plans);
    assert_int_equal(x->parameter_bytes, y->parameter_bytes);
    assert_int_equal(x->gradient_bytes, y->gradient_bytes);
    assert_int_equal(x->optimizer_bytes, y->optimizer_bytes);
    assert_int_equal(x->saved_activation_bytes, y->saved_activation_bytes);
    assert_int_equal(x->peak_bytes, y->peak_bytes);
    assert_int_equal(x->reserved_peak_bytes, y->reserved_peak_bytes);
    for (size_t i = 0; i < one->n_plans; i++) {
        assert_int_equal(one->plans[i].figures.peak_bytes, other->plans[i].figures.peak_bytes);
        assert_int_equal(one->plans[i].does.recomputed_macs, other->plans[i].does.recomputed_macs);
    }
}

TEST(constants_have_the_figures_of_initializers)
{
    static const char *const figures[] = {"parameters", "macs",     "runtimes",
                                          "fit",        "training", NULL};
    model *(*const builds[])(write_weight) = {plain, branch};
    for (size_t i = 0; i < N_SETTINGS; i++) {
        for (size_t b = 0; b < 2; b++) {
            OWNED_MODEL of_initializers = builds[b](model_weight);
            OWNED_MODEL of_constants = builds[b](model_constant);
            onv_analysis *one = analyse(of_initializers, i), *other = analyse(of_constants, i);
            compare(one, other, figures);
            assert_int_equal(one->live.input_bytes, other->live.input_bytes);
            assert_int_equal(one->live.output_bytes, other->live.output_bytes);
            assert_int_equal(one->live.activation_bytes, other->live.activation_bytes);
            assert_int_equal(one->live.trainable_elems, other->live.trainable_elems);
            uint64_t predicted[2], measured[2];
            onv_replays_largest(&one->replays, &predicted[0], &measured[0]);
            onv_replays_largest(&other->replays, &predicted[1], &measured[1]);
            assert_true(one->replays.kind == NULL || one->replays.agrees);
            assert_int_equal(predicted[0], predicted[1]);
            assert_int_equal(measured[0], measured[1]);
            assert_true(one->training.optimizer == NULL ||
                        one->training.figures.gradient_bytes > 0);
            onv_analysis_destroy(one);
            onv_analysis_destroy(other);
        }
    }
}

/* The branch has the weights of the network and the condition, and the training of the network. */
TEST(a_branch_has_the_weights_of_its_network)
{
    write_weight writes[] = {model_weight, model_constant};
    for (size_t w = 0; w < 2; w++) {
        model *flat = plain(writes[w]), *nested = branch(writes[w]);
        for (size_t i = 0; i < N_SETTINGS; i++) {
            onv_analysis *one = analyse(flat, i), *other = analyse(nested, i);
            onv_summary a = {0}, b = a;
            onv_analysis_summary(one, &a);
            onv_analysis_summary(other, &b);
            assert_int_equal(a.parameters + 1, b.parameters);
            assert_int_equal(a.parameter_bytes + 1, b.parameter_bytes);
            assert_int_equal(a.trainable, b.trainable);
            compare_training(&one->training, &other->training);
            onv_analysis_destroy(one);
            onv_analysis_destroy(other);
        }
        model_free(flat);
        model_free(nested);
    }
}

static uint64_t trained_bytes(model *m)
{
    onv_analysis *analysis = analyse(m, TRAINING);
    uint64_t bytes = analysis->training.figures.parameter_bytes;
    onv_analysis_destroy(analysis);
    model_free(m);
    return bytes;
}

/* PyTorch writes parameters as initializers: its Constant nodes are masks and numbers. Few
 * numbers in initializers do not make a network of Constant nodes one of PyTorch. */
TEST(files_that_have_both)
{
    model *m = model_read(17, "in x f32[N,64]", "weight w f32[64,64]", "constant mask f32[64]",
                          "a = MatMul(x w) fc", "y = Mul(a mask) mul", "out y f32");
    assert_int_equal(trained_bytes(m), 64 * 64 * 4);
    m = model_read(17, "in x f32[N,64]", "constant w f32[64,64]", "weight factors f32[64]",
                   "a = Mul(x factors) mul", "b = MatMul(a w) fc", "out b f32");
    assert_int_equal(trained_bytes(m), (64 * 64 + 64) * 4);
}

/* Trees stand in attributes: every sum has them, and a replay holds them. */
TEST(attributes_are_held)
{
    OWNED_MODEL m = model_read(17, "import ai.onnx.ml 3", "in x f32[N,6]",
                               "y = ai.onnx.ml::TreeEnsembleRegressor(x) trees n_targets=1 "
                               "nodes_treeids=[0,0,0] nodes_nodeids=[0,1,2] target_ids=[0,0]",
                               "out y f32");
    for (size_t i = 0; i < N_SETTINGS; i++) {
        if (settings[i].train != NULL) continue;
        onv_summary sums = {0};
        OWNED_ANALYSIS analysis = analyse(m, i);
        onv_analysis_summary(analysis, &sums);
        assert_int_equal(sums.parameter_bytes, 8 * 8);
        for (size_t k = 0; k < analysis->n_runtimes; k++) {
            const onv_runtime_result *r = &analysis->runtimes[k];
            const char *name = r->runtime->name;
            if (strcmp(name, "ideal") != 0 && strcmp(name, "arena") != 0) continue;
            assert_int_equal(r->weight_bytes, sums.parameter_bytes);
            assert_int_equal(r->held_bytes, sums.parameter_bytes + sums.peak_bytes);
        }
        assert_true(analysis->replays.kind == NULL || analysis->replays.agrees);
    }
}

/* A weight or an input that is also an output is counted once: weights are counted apart from outputs,
 * and an input is live once, through the end. */
TEST(each_is_counted_once)
{
    onv_summary sums = {0};
    write_weight writes[] = {model_weight, model_constant};
    for (size_t w = 0; w < 2; w++) {
        OWNED_MODEL m = model_read(17, "in x f32[N]");
        writes[w](m, "w", "f32[1024]");
        model_add(m, "y = Relu(x) relu", "out y f32", "out w f32");
        OWNED_ANALYSIS analysis = analyse(m, 0);
        onv_analysis_summary(analysis, &sums);
        assert_int_equal(sums.parameter_bytes, 4096);
        assert_int_equal(sums.output_bytes, 16);
        assert_int_equal(sums.peak_bytes, 2 * 16);
    }
    OWNED_MODEL m = model_read(17, "in x f32[N]", "y = Identity(x) copy", "z = Relu(y) relu",
                               "out z f32", "out x f32");
    OWNED_ANALYSIS analysis = analyse(m, 0);
    onv_analysis_summary(analysis, &sums);
    assert_int_equal(sums.input_bytes, 16);
    assert_int_equal(sums.output_bytes, 2 * 16); /* z, and x as it came */
    assert_int_equal(sums.peak_bytes, 3 * 16);
}
