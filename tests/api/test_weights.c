/* Constant nodes are weights: the same network has the same figures however its weights are written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "support/onnx_writer.h"

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
    model_node(m, "Conv", "conv", "x c1.weight c1.bias", "a", "pads=[1,1,1,1]");
    model_node(m, "BatchNormalization", "norm",
               "a bn.weight bn.bias bn.running_mean bn.running_var", "b", "");
    model_node(m, "Relu", "relu", "b", "c", "");
    model_node(m, "Mul", "mul", "c scale", "d", "");
    model_node(m, "Flatten", "flatten", "d", "e", "");
    model_node(m, "Gemm", "fc", "e fc.weight fc.bias", "y", "transB=1");
    model_output(m, "y", "f32[N,10]");
}

static model *plain(write_weight write)
{
    model *m = model_new(17);
    model_input(m, "x", "f32[N,3,16,16]");
    write_weights(m, write);
    write_nodes(m);
    return m;
}

/* The network is a branch that is taken; the other one has weights that nobody holds. */
static model *branch(write_weight write)
{
    model *m = model_new(17);
    model_input(m, "x", "f32[N,3,16,16]");
    model_bool(m, "condition", true);
    model_begin(m, "then_branch");
    write_weights(m, write);
    write_nodes(m);
    model_end(m);
    model_begin(m, "else_branch");
    write(m, "other", "f32[1000,1000]");
    model_node(m, "ReduceSum", "sum", "other", "z", "");
    model_output(m, "z", "f32");
    model_end(m);
    model_node(m, "If", "if", "condition", "result", "");
    model_output(m, "result", "f32[N,10]");
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

#define EQUAL(what, field) assert_int_equal((what).one.field, (what).other.field)

static void compare_sums(const onv_analysis *one, const onv_analysis *other)
{
    struct {
        onv_summary one, other;
    } s = {0};
    onv_analysis_summary(one, &s.one);
    onv_analysis_summary(other, &s.other);
    EQUAL(s, parameters);
    EQUAL(s, trainable);
    EQUAL(s, parameter_bytes);
    EQUAL(s, macs);
    EQUAL(s, input_bytes);
    EQUAL(s, output_bytes);
    EQUAL(s, activation_bytes);
    EQUAL(s, peak_bytes);
    EQUAL(s, sized);
}

static void compare_runtimes(const onv_analysis *one, const onv_analysis *other)
{
    struct {
        onv_runtime_info one, other;
    } r;
    struct {
        onv_fit_info one, other;
    } f;
    size_t count = onv_analysis_runtime_count(one);
    assert_int_equal(onv_analysis_runtime_count(other), count);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        assert_true(onv_analysis_runtime(one, i, &r.one));
        assert_true(onv_analysis_runtime(other, i, &r.other));
        EQUAL(r, weight_bytes);
        EQUAL(r, activation_bytes);
        EQUAL(r, held_bytes);
        EQUAL(r, total_low);
        EQUAL(r, total_high);
    }
    bool asked = onv_analysis_fit(one, &f.one);
    assert_int_equal(onv_analysis_fit(other, &f.other), asked);
    if (asked) EQUAL(f, fits);
}

static void compare_training(const onv_analysis *one, const onv_analysis *other)
{
    struct {
        onv_training_info one, other;
    } t;
    struct {
        onv_checkpoint_info one, other;
    } c;
    bool asked = onv_analysis_training(one, &t.one);
    assert_int_equal(onv_analysis_training(other, &t.other), asked);
    if (!asked) return;
    assert_true(t.one.gradient_bytes > 0);
    assert_string_equal(t.one.loss, t.other.loss);
    EQUAL(t, parameter_bytes);
    EQUAL(t, gradient_bytes);
    EQUAL(t, optimizer_bytes);
    EQUAL(t, saved_activation_bytes);
    EQUAL(t, peak_bytes);
    EQUAL(t, allocated_peak_bytes);
    EQUAL(t, reserved_peak_bytes);
    for (size_t i = 0; onv_analysis_checkpoint(one, i, &c.one); i++) {
        assert_true(onv_analysis_checkpoint(other, i, &c.other));
        EQUAL(c, peak_bytes);
        EQUAL(c, recompute_macs);
        EQUAL(c, segments);
    }
}

static void compare_replays(const onv_analysis *one, const onv_analysis *other)
{
    struct {
        onv_replay_info one, other;
    } r;
    bool asked = onv_analysis_replay(one, &r.one);
    assert_int_equal(onv_analysis_replay(other, &r.other), asked);
    if (!asked) return;
    assert_true(r.one.agrees && r.other.agrees);
    EQUAL(r, predicted_bytes);
    EQUAL(r, measured_bytes);
}

static void constants_have_the_figures_of_initializers(void **state)
{
    (void)state;
    model *(*const builds[])(write_weight) = {plain, branch};
    for (size_t i = 0; i < N_SETTINGS; i++) {
        for (size_t b = 0; b < 2; b++) {
            model *of_initializers = builds[b](model_weight);
            model *of_constants = builds[b](model_constant);
            onv_analysis *one = analyse(of_initializers, i), *other = analyse(of_constants, i);
            compare_sums(one, other);
            compare_runtimes(one, other);
            compare_training(one, other);
            compare_replays(one, other);
            onv_analysis_destroy(one);
            onv_analysis_destroy(other);
            model_free(of_initializers);
            model_free(of_constants);
        }
    }
}

/* The branch has the weights of the network and the condition, and the training of the network. */
static void a_branch_has_the_weights_of_its_network(void **state)
{
    (void)state;
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
            compare_training(one, other);
            onv_analysis_destroy(one);
            onv_analysis_destroy(other);
        }
        model_free(flat);
        model_free(nested);
    }
}

static uint64_t trained_bytes(model *m)
{
    onv_training_info t;
    onv_analysis *analysis = analyse(m, TRAINING);
    assert_true(onv_analysis_training(analysis, &t));
    onv_analysis_destroy(analysis);
    model_free(m);
    return t.parameter_bytes;
}

/* PyTorch writes parameters as initializers: its Constant nodes are masks and numbers. Few
 * numbers in initializers do not make a network of Constant nodes one of PyTorch. */
static void files_that_have_both(void **state)
{
    (void)state;
    model *m = model_new(17);
    model_input(m, "x", "f32[N,64]");
    model_weight(m, "w", "f32[64,64]");
    model_constant(m, "mask", "f32[64]");
    model_node(m, "MatMul", "fc", "x w", "a", "");
    model_node(m, "Mul", "mul", "a mask", "y", "");
    model_output(m, "y", "f32");
    assert_int_equal(trained_bytes(m), 64 * 64 * 4);
    m = model_new(17);
    model_input(m, "x", "f32[N,64]");
    model_constant(m, "w", "f32[64,64]");
    model_weight(m, "factors", "f32[64]");
    model_node(m, "Mul", "mul", "x factors", "a", "");
    model_node(m, "MatMul", "fc", "a w", "b", "");
    model_output(m, "b", "f32");
    assert_int_equal(trained_bytes(m), (64 * 64 + 64) * 4);
}

/* Trees stand in attributes: every sum has them, and a replay holds them. */
static void attributes_are_held(void **state)
{
    (void)state;
    model *m = model_new(17);
    model_import(m, "ai.onnx.ml", 3);
    model_input(m, "x", "f32[N,6]");
    model_node(m, "ai.onnx.ml::TreeEnsembleRegressor", "trees", "x", "y",
               "n_targets=1 nodes_treeids=[0,0,0] nodes_nodeids=[0,1,2] target_ids=[0,0]");
    model_output(m, "y", "f32");
    for (size_t i = 0; i < N_SETTINGS; i++) {
        if (settings[i].train != NULL) continue;
        onv_summary sums = {0};
        onv_analysis *analysis = analyse(m, i);
        onv_analysis_summary(analysis, &sums);
        assert_int_equal(sums.parameter_bytes, 8 * 8);
        for (size_t k = 0; k < onv_analysis_runtime_count(analysis); k++) {
            onv_runtime_info r;
            assert_true(onv_analysis_runtime(analysis, k, &r));
            if (strcmp(r.name, "ideal") != 0 && strcmp(r.name, "arena") != 0) continue;
            assert_int_equal(r.weight_bytes, sums.parameter_bytes);
            assert_int_equal(r.held_bytes, sums.parameter_bytes + sums.peak_bytes);
        }
        onv_replay_info replay;
        if (onv_analysis_replay(analysis, &replay)) assert_true(replay.agrees);
        onv_analysis_destroy(analysis);
    }
    model_free(m);
}

/* A weight or an input that is also an output is counted once: weights are counted apart from outputs,
 * and an input is live once, through the end. */
static void each_is_counted_once(void **state)
{
    (void)state;
    onv_summary sums = {0};
    write_weight writes[] = {model_weight, model_constant};
    for (size_t w = 0; w < 2; w++) {
        model *m = model_new(17);
        model_input(m, "x", "f32[N]");
        writes[w](m, "w", "f32[1024]");
        model_node(m, "Relu", "relu", "x", "y", "");
        model_output(m, "y", "f32");
        model_output(m, "w", "f32");
        onv_analysis *analysis = analyse(m, 0);
        onv_analysis_summary(analysis, &sums);
        assert_int_equal(sums.parameter_bytes, 4096);
        assert_int_equal(sums.output_bytes, 16);
        assert_int_equal(sums.peak_bytes, 2 * 16);
        onv_analysis_destroy(analysis);
        model_free(m);
    }
    model *m = model_new(17);
    model_input(m, "x", "f32[N]");
    model_node(m, "Identity", "copy", "x", "y", "");
    model_node(m, "Relu", "relu", "y", "z", "");
    model_output(m, "z", "f32");
    model_output(m, "x", "f32");
    onv_analysis *analysis = analyse(m, 0);
    onv_analysis_summary(analysis, &sums);
    assert_int_equal(sums.input_bytes, 16);
    assert_int_equal(sums.output_bytes, 2 * 16); /* z, and x as it came */
    assert_int_equal(sums.peak_bytes, 3 * 16);
    onv_analysis_destroy(analysis);
    model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_have_the_figures_of_initializers),
        cmocka_unit_test(a_branch_has_the_weights_of_its_network),
        cmocka_unit_test(files_that_have_both),
        cmocka_unit_test(attributes_are_held),
        cmocka_unit_test(each_is_counted_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
