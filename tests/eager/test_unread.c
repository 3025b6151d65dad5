/* Calls that the exporter left out or merged with others, and PyTorch runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "eager/noted_network.h"
#include "eager/trainer.h"

enum { ROW = 4 * 8 * 4, ROWS = 64 * ROW, WEIGHT = 8 * 8 * 4 };

static void layer_call(model *m, int layer, const char *op, const char *inputs, const char *output,
                       const char *name)
{
    char module[32];
    snprintf(module, sizeof module, "layers.%d", layer);
    model_source(m, module, name);
    model_class(m, "zoo.Layer", "aten.op.default");
    model_node(m, op, output, inputs, output, "");
}

typedef struct options {
    bool is_listed;  /* the second layer has a parameter that the file lacks */
    bool is_another; /* it begins with another operation */
    bool is_first;   /* what it lacks comes first */
} options;

/* Two layers that give nodes and edges; the edges of the second one are not read. */
static model *layers(options o)
{
    model *m = model_new(18);
    model_input(m, "x", "f32[256,8]");
    model_weight(m, "layers.0.w", "f32[8,8]");
    model_weight(m, "layers.0.v", "f32[8,8]");
    model_weight(m, "layers.1.w", "f32[8,8]");
    model_parameters(m, o.is_listed ? "layers.0.w layers.0.v layers.1.w layers.1.v"
                                    : "layers.0.w layers.0.v layers.1.w");
    if (o.is_first) layer_call(m, 0, "MatMul", "x layers.0.v", "a", "mm");
    layer_call(m, 0, "MatMul", "x layers.0.w", "h", "mm_1");
    if (!o.is_first) layer_call(m, 0, "MatMul", "h layers.0.v", "a", "mm");
    layer_call(m, 0, "Exp", "a", "edges", "exp");
    layer_call(m, 0, "Add", "h edges", "nodes", "add");
    layer_call(m, 1, o.is_another ? "Mul" : "MatMul",
               o.is_another ? "nodes nodes" : "nodes layers.1.w", "g", "mm_3");
    model_source(m, "", "sum");
    model_class(m, "zoo.Net", "aten.sum.default");
    model_node(m, "Exp", "last", "g", "y", "");
    model_output(m, "y", "f32");
    return m;
}

static uint64_t forward_peak(model *m)
{
    trainer t;
    trainer_open_model(&t, m);
    onv_train_options how = {.optimizer = onv_optimizer_find("sgd")};
    how.lower.loss = ONV_LOSS_MSE;
    uint64_t peak = trainer_run(&t, &how).figures.phase_peak_bytes[ONV_PHASE_FORWARD];
    trainer_close(&t);
    model_free(m);
    return peak;
}

static uint64_t kept(model *m)
{
    return trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE});
}

/* The product, its exponential and the sum of the second layer, of which nothing is kept when the loss is there. */
static void what_nothing_reads_runs(void **state)
{
    (void)state;
    uint64_t without = forward_peak(layers((options){.is_listed = false}));
    uint64_t with = forward_peak(layers((options){.is_listed = true}));
    assert_true(with >= without + WEIGHT + ROWS);
    assert_int_equal(kept(layers((options){.is_listed = true})),
                     kept(layers((options){.is_listed = false})));
}

/* Where what is missing comes first it runs before the layer's first node. */
static void what_comes_first_runs_first(void **state)
{
    (void)state;
    uint64_t without = forward_peak(layers((options){.is_first = true}));
    uint64_t with = forward_peak(layers((options){.is_first = true, .is_listed = true}));
    assert_true(with >= without + WEIGHT + ROWS);
}

static void layers_that_differ_are_not_compared(void **state)
{
    (void)state;
    assert_int_equal(forward_peak(layers((options){.is_another = true, .is_listed = true})),
                     forward_peak(layers((options){.is_another = true})) + WEIGHT);
}

static void net_op(model *m, const char *path, const char *inputs, const char *output,
                   const char *name)
{
    bool is_product = strchr(inputs, ' ') != NULL && strchr(inputs, '.') != NULL;
    model_source(m, path, name);
    model_class(m, strchr(path, ',') != NULL ? "zoo.Net', 'zoo.Layer" : "zoo.Net",
                "aten.op.default");
    model_statement(m, 10, strchr(path, ',') != NULL ? "x, e = layer(x)" : "x = f(x)");
    if (strchr(path, ',') != NULL) model_inner_statement(m, 20, "return f(x), g(x)");
    model_node(m,
               is_product                      ? "MatMul"
               : strcmp(name, "add") == 0      ? "Add"
               : strcmp(name, "neg") == 0      ? "Neg"
               : strncmp(name, "relu", 4) == 0 ? "Relu"
                                               : "Exp",
               output, inputs, output, "");
}

/* Two layers in a network, of which the second one's edges are not read, and what the network does with its nodes. */
static model *network_of_layers(bool is_listed)
{
    static const char *const first = "net', 'net.layers.0", *const second = "net', 'net.layers.1";
    model *m = model_new(18);
    model_input(m, "x", "f32[256,8]");
    model_weight(m, "net.layers.0.w", "f32[8,8]");
    model_weight(m, "net.layers.0.v", "f32[8,8]");
    model_weight(m, "net.layers.1.w", "f32[8,8]");
    model_parameters(m, is_listed ? "net.layers.0.w net.layers.0.v net.layers.1.w net.layers.1.v"
                                  : "net.layers.0.w net.layers.0.v net.layers.1.w");
    net_op(m, first, "x net.layers.0.w", "h", "mm");
    net_op(m, first, "h net.layers.0.v", "a", "mm_1");
    net_op(m, "net', 'net.layers.0', 'net.layers.0.act", "a", "b", "neg");
    net_op(m, first, "b", "edges", "exp");
    net_op(m, "net", "edges", "used", "relu");
    net_op(m, "net", "h used", "nodes", "add");
    net_op(m, second, "nodes net.layers.1.w", "g", "mm_2");
    net_op(m, "net", "g", "p", "relu_2");
    net_op(m, "net", "p", "q", "exp_2");
    net_op(m, "net", "q", "y", "exp_3");
    model_output(m, "y", "f32");
    return m;
}

/* The network has a name for the second layer's edges until it returns, and with them stays what was kept for them: they
 * themselves and what their product read. The ReLU that is missing is theirs, and none of a call that was merged. */
static void what_unread_layers_give_stays(void **state)
{
    (void)state;
    uint64_t without = forward_peak(network_of_layers(false));
    assert_int_equal(forward_peak(network_of_layers(true)), without + WEIGHT + 2 * ROWS);
    assert_int_equal(kept(network_of_layers(true)), kept(network_of_layers(false)));
}

/* --- Chains ------------------------------------------------------------------------------------ */

static void net_call(model *m, const char *op, const char *inputs, const char *output,
                     const char *arguments)
{
    if (arguments != NULL) model_call(m, "aten.op.default", arguments);
    add_call(m, op, inputs, output, output);
}

/* The second call of `kind` is missing before the reader of "tan_1", or it is not. */
static model *chain(bool is_whole, const char *kind, bool counts_batches)
{
    char last[16];
    snprintf(last, sizeof last, "%s_%d", kind, is_whole ? 2 : 1);
    model *m = model_new(18);
    model_input(m, "x", "f32[4,8]");
    model_weight(m, "w", "f32[8,8]");
    model_weight(m, "v", "f32[8,8]");
    model_role(m, "w", "PARAMETER");
    model_role(m, "v", "PARAMETER");
    if (counts_batches) model_parameters(m, "w v ~norm.num_batches_tracked");
    net_call(m, "MatMul", "x w", "mm", NULL);
    net_call(m, "Exp", "mm", kind, NULL);
    net_call(m, "Tanh", kind, "tan", NULL);
    net_call(m, "MatMul", "tan v", "mm_2", NULL);
    model_source(m, "net", "mul");
    net_call(m, "Mul", "mm_2 tan", "mul", "%mm_2, %tan_1");
    net_call(m, "Exp", "mul", last, NULL);
    model_node(m, "Identity", "end", last, "y", "");
    model_output(m, "y", "f32");
    return m;
}

/* What led to the call that an argument names ran again, as far as numbers are missing; those of additions may be batch
 * norms' counts. */
static void chains_run_again(void **state)
{
    (void)state;
    /* x, exp, tan, mm_2 and y; tan once more, and exp where it is missing. */
    assert_int_equal(kept(chain(false, "exp", false)), 6 * ROW);
    assert_int_equal(kept(chain(true, "exp", false)), 7 * ROW);
    assert_int_equal(kept(chain(true, "add", false)), 7 * ROW);
    assert_int_equal(kept(chain(true, "add", true)), 6 * ROW);
}

/* A name that an operand has itself is no other call's. */
static void operands_keep_their_names(void **state)
{
    (void)state;
    model *m = model_new(18);
    model_input(m, "x", "f32[4,8]");
    model_weight(m, "w", "f32[8,8]");
    model_role(m, "w", "PARAMETER");
    net_call(m, "MatMul", "x w", "mm", NULL);
    net_call(m, "Exp", "mm", "exp", NULL);
    net_call(m, "Exp", "exp", "exp_1", NULL);
    model_source(m, "net", "mul");
    net_call(m, "Mul", "exp_1 exp", "mul", "%exp_1, %exp_2");
    model_node(m, "Identity", "end", "mul", "y", "");
    model_output(m, "y", "f32");
    assert_int_equal(kept(m), 4 * ROW); /* x, exp, exp_1, and exp once more */
}

/* --- What PyTorch does that ONNX has no word for ------------------------------------------------ */

/* squeeze() leaves what is not 1, which the exporter writes all the same. */
static void squeeze_leaves_axes(void **state)
{
    (void)state;
    static const int64_t axis[] = {1};
    model *m = model_new(18);
    model_input(m, "x", "f32[4,8]");
    model_ints(m, "axis", 1, axis);
    model_source(m, "net", "squeeze");
    model_class(m, "zoo.Net", "aten.squeeze.dim");
    model_node(m, "Squeeze", "squeeze", "x axis", "s", "");
    model_weight(m, "w", "f32[8,8]");
    model_node(m, "MatMul", "mm", "s w", "y", "");
    model_output(m, "y", "f32");
    trainer t;
    trainer_open_model(&t, m);
    bool is_told = false;
    for (size_t i = 0; i < t.model.diags.count; i++)
        is_told |= strcmp(t.model.diags.at[i].code, "squeezed-axis") == 0;
    assert_true(is_told);
    trainer_close(&t);
    model_free(m);
}

/* A ReLU of a module may overwrite its input or not: the peak of the other way is told where it differs. */
static void relus_that_may_overwrite_are_told(void **state)
{
    (void)state;
    for (int is_told = 0; is_told < 2; is_told++) {
        model *m = model_new(18);
        model_input(m, "x", "f32[256,8]");
        model_weight(m, "w", "f32[8,64]");
        model_node(m, "MatMul", "mm", "x w", "h", "");
        model_source(m, "act", "relu");
        model_class(m, "torch.nn.modules.activation.ReLU", "aten.relu.default");
        model_statement(m, 10,
                        is_told ? "y = F.relu(x)" : "return F.relu(input, inplace=self.inplace)");
        model_node(m, "Relu", "relu", "h", "r", "");
        model_node(m, "ReduceSum", "sum", "r", "y", "keepdims=0");
        model_output(m, "y", "f32");
        trainer t;
        trainer_open_model(&t, m);
        onv_train_options how = {.optimizer = onv_optimizer_find("sgd"),
                                 .lower = {.loss = ONV_LOSS_NONE, .reports = true}};
        trainer_run(&t, &how);
        bool found = false;
        for (size_t i = 0; i < t.model.diags.count; i++)
            found |= strcmp(t.model.diags.at[i].code, "relu-inplace") == 0;
        assert_int_equal(found, !is_told);
        trainer_close(&t);
        model_free(m);
    }
}

/* What overwrites the result of an instance norm copies gradients in backward: the other way is the lower peak. */
static void relus_that_copy_gradients_are_told(void **state)
{
    (void)state;
    model *m = model_new(18);
    model_input(m, "image", "f32[4,8,32,32]");
    model_weight(m, "w", "f32[8,8,1,1]");
    model_weight(m, "scale", "f32[8]");
    model_weight(m, "shift", "f32[8]");
    model_role(m, "w", "PARAMETER");
    model_role(m, "scale", "PARAMETER");
    model_role(m, "shift", "PARAMETER");
    model_node(m, "Conv", "conv", "image w", "h", "");
    model_node(m, "InstanceNormalization", "norm", "h scale shift", "n", "");
    model_source(m, "act", "relu");
    model_class(m, "torch.nn.modules.activation.ReLU", "aten.relu.default");
    model_statement(m, 10, "return F.relu(input, inplace=self.inplace)");
    model_node(m, "Relu", "relu", "n", "r", "");
    model_node(m, "ReduceSum", "sum", "r", "y", "keepdims=0");
    model_output(m, "y", "f32");
    trainer t;
    trainer_open_model(&t, m);
    onv_train_options how = {.optimizer = onv_optimizer_find("sgd"),
                             .lower = {.loss = ONV_LOSS_NONE, .reports = true}};
    trainer_run(&t, &how);
    bool found = false;
    for (size_t i = 0; i < t.model.diags.count; i++)
        found |= strcmp(t.model.diags.at[i].code, "relu-inplace") == 0;
    assert_true(found);
    trainer_close(&t);
    model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_nothing_reads_runs),
        cmocka_unit_test(what_comes_first_runs_first),
        cmocka_unit_test(layers_that_differ_are_not_compared),
        cmocka_unit_test(what_unread_layers_give_stays),
        cmocka_unit_test(chains_run_again),
        cmocka_unit_test(operands_keep_their_names),
        cmocka_unit_test(squeeze_leaves_axes),
        cmocka_unit_test(relus_that_may_overwrite_are_told),
        cmocka_unit_test(relus_that_copy_gradients_are_told),
    };
    return cmocka_run_group_tests_name("eager.unread", tests, NULL, NULL);
}
