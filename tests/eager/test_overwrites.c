/* What overwrites its operand, as lines of Python and exports tell. */
#include "eager/pass.h"
#include "eager/trainer.h"
#include "lower/lower.h"
#include "support/test.h"

/* `a += b` is a itself, where nothing else reads it and it is the sum that the statement makes. */
TEST(statements_overwrite)
{
    static const struct {
        const char *op, *aten, *line, *reader; /* what is read once more */
        bool overwrites;
        bool graph_module; /* which torch.fx traced: `a += b` is `a + b` there */
    } cases[] = {
        {"Add", "aten.add.Tensor", "a += b", "b", true, false},
        {"Add", "aten.add.Tensor", "a += b", "b", false, true},
        {"Mul", "aten.mul.Tensor", "a *= b", "b", false, true},
        {"Mul", "aten.mul.Tensor", "a *= b", "b", true, false},
        {"Sub", "aten.sub.Tensor", "a -= b", "b", true, false},
        {"Add", "aten.add.Tensor", "a += b[i + 1]", "b", false, false},
        {"Add", "aten.add.Tensor", "a += b", "a", false, false},
        {"Add", "aten.add.Tensor", "a = a + b", "b", false, false},
        {"Mul", "aten.mul.Tensor", "c += a * b", "b", false, false},
        {"Add", "aten.add.Tensor", "c += a + b", "b", false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        OWNED_PASS p;
        model *m =
            model_read(17, "in x f32[4,6]", "a = Neg(x) 0", "b = Exp(x) 1", "source net one");
        model_class(m, "Net", cases[i].aten);
        model_statement(m, 10, cases[i].line);
        model_node(m, cases[i].op, "2", "a b", "c", "");
        model_node(m, "Neg", "3", cases[i].reader, "d", "");
        model_add(m, "y = Add(c d) 4", "out y f32");
        onv_lower_options how = {.graph_module = cases[i].graph_module};
        pass_run(&p, m, &how);
        if ((pass_find(&p, "c") == NULL) != cases[i].overwrites) fail_msg("%s", cases[i].line);
    }
}

/* `relu(x)` makes a new tensor, and so does a message's in PyTorch Geometric; `x.relu_()` overwrites, as sums of rows do
 * that go into new zeros. */
TEST(lines_tell_what_is_overwritten)
{
    static const struct {
        const char *line, *class;
        unsigned buffers; /* of b: b alone, or a and b */
    } cases[] = {{"y = F.relu(x)", "zoo.Net", 2},
                 {"y = x.relu()", "zoo.Net", 2},
                 {"y = x.relu_()", "zoo.Net", 1},
                 {"y = F.relu(x, inplace=True)", "zoo.Net", 1},
                 {"return F.relu(input, inplace=self.inplace)", "zoo.Net", 1},
                 {"y = call(x)", "zoo.Net", 1},
                 {"y = call(x)", "torch_geometric.nn.conv.gin_conv.GINEConv", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        OWNED_PASS p;
        unsigned n = 0;
        model *m = model_read(17, "in x f32[4,6]", "a = Neg(x)", "source net relu");
        model_class(m, cases[i].class, "aten.relu.default");
        model_statement(m, 10, cases[i].line);
        model_add(m, "b = Relu(a)", "y = Neg(b)", "out y f32");
        pass_run(&p, m, NULL);
        for (size_t k = 0; k < p.t.buffers.count; k++)
            n += p.t.buffers.at[k].kind == ONV_BUFFER_ACTIVATION &&
                 p.t.buffers.at[k].bytes == 4 * 6 * 4;
        if (n != cases[i].buffers) fail_msg("%s (%s): %u", cases[i].line, cases[i].class, n);
    }
}

/* `y[:, i] = v` and the like write into y, which exporters have as a ScatterND; index_copy keeps what it copies, too. */
TEST(places_are_written_into)
{
    enum { A = 4 * 6 * 4, INDICES = 2 * 8, V = 2 * 6 * 4 };
    static const struct {
        const char *line;
        unsigned buffers; /* like a: a alone, or what is made of it, too */
        uint64_t kept;
    } cases[] = {{"y[i] = v", 1, INDICES},
                 {"y[i, :] = f(v)", 1, INDICES},
                 {"y = y.index_put((i,), v)", 2, INDICES},
                 {"y.index_copy_(0, i, v)", 1, INDICES + V},
                 {"y = y.index_copy(0, i, v)", 2, INDICES + V}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pass p;
        unsigned n = 0;
        model *models[2];
        for (int k = 0; k < 2; k++) {
            model *m = models[k] = model_new(18);
            model_add(m, "in x f32[4,8]", "in i i64[2,1]", "weight w f32[8,6]", "weight u f32[8,6]",
                      "role w PARAMETER", "role u PARAMETER", "in z f32[2,8]", "a = MatMul(x w) 0",
                      "v = MatMul(z u) 1", "source net index_put",
                      "class zoo.Net aten.index_put.default");
            model_statement(m, 10, cases[i].line);
            model_add(m, "b = ScatterND(a i v) 2", "y = ReduceSum(b) 3", "out y f32");
        }
        pass_run(&p, models[0], NULL);
        for (size_t k = 0; k < p.t.buffers.count; k++)
            n += p.t.buffers.at[k].kind == ONV_BUFFER_ACTIVATION && p.t.buffers.at[k].bytes == A;
        if (n != cases[i].buffers) fail_msg("%s: %u", cases[i].line, n);
        pass_drop(&p);
        /* x and z are the products' */
        uint64_t kept = trainer_kept(models[1], &(onv_lower_options){.loss = ONV_LOSS_NONE});
        assert_int_equal(kept, cases[i].kept + (4 + 2) * 8 * 4);
    }
}

/* `F.leaky_relu_(x)` keeps its result alone, which the product behind it keeps, too; as a module does where that is asked for. */
TEST(lines_tell_which_activations_overwrite)
{
    enum { X = 4 * 6 * 4 };
    static const struct {
        const char *line;
        unsigned kept;
    } cases[] = {{"y = F.leaky_relu(x)", 3}, {"y = F.leaky_relu_(x)", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        model *m = model_read(17, "in x f32[4,6]", "weight w f32[6,6]", "weight v f32[6,6]",
                              "role w PARAMETER", "role v PARAMETER", "a = MatMul(x w)",
                              "source net leaky_relu", "class zoo.Net aten.leaky_relu.default");
        model_statement(m, 10, cases[i].line);
        model_add(m, "b = LeakyRelu(a)", "y = MatMul(b v)", "out y f32");
        assert_int_equal(trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE}),
                         cases[i].kept * X);
    }
}

/* A leaky ReLU overwrites its input where the layer that has it is built so, unless modules are named. */
TEST(libraries_build_activations_in_place)
{
#define LEAKY "torch.nn.modules.activation.LeakyReLU"
    static const char *const pattern = "other";
    static const struct {
        const char *classes;
        bool names, overwrites;
    } cases[] = {
        {"timm.layers.norm_act.BatchNormAct2d', '" LEAKY, false, true},
        {"torchvision.ops.misc.Conv2dNormActivation', '" LEAKY, false, true},
        {"timm.layers.norm_act.BatchNormAct2d', '" LEAKY, true, false},
        {"timm.layers.norm_act.BatchNormAct2d', 'zoo.Block', '" LEAKY, false, false},
        {"timm.layers.norm_act.BatchNormAct2d", false, false},
        {"timm.models.cspnet.BottleneckBlock', '" LEAKY, false, false},
        {LEAKY, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        OWNED_PASS p;
        model *m = model_read(17, "in x f32[4,6]", "a = Exp(x) 0", "source net.act one");
        model_class(m, cases[i].classes, "aten.leaky_relu.default");
        model_add(m, "b = LeakyRelu(a) 1", "source other two");
        model_class(m, LEAKY, "aten.leaky_relu.default");
        model_add(m, "c = LeakyRelu(b) 2", "y = Exp(c) 3", "out y f32");
        onv_lower_options how = {.inplace = &pattern, .n_inplace = cases[i].names};
        pass_run(&p, m, &how);
        if ((pass_find(&p, "b") == NULL) != cases[i].overwrites) fail_msg("%s", cases[i].classes);
    }
}

/* They overwrite in inference. */
TEST(methods_overwrite_in_inference)
{
    static const struct {
        const char *line;
        bool overwrites;
    } cases[] = {{"a.exp_()", true}, {"y = a.exp()", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        OWNED_PASS p;
        model *m = model_read(17, "in x f32[4,6]", "a = Neg(x) 0", "source net exp",
                              "class Net aten.exp.default");
        model_statement(m, 10, cases[i].line);
        model_add(m, "b = Exp(a) 1", "y = Neg(b) 2", "out y f32");
        pass_run(&p, m, NULL);
        assert_int_equal(pass_find(&p, "b") == NULL, cases[i].overwrites);
    }
}

/* Methods that end with an underscore, in training: where backward needs what they overwrite, autograd copies it first. */
TEST(methods_overwrite)
{
    static const struct {
        const char *op, *aten, *line, *inputs;
        bool overwrites, copies;
    } cases[] = {
        {"Where", "aten.masked_fill.Scalar", "a.masked_fill_(m, 0)", "m one a", true, false},
        {"Where", "aten.masked_fill.Scalar", "y = a.masked_fill(m, 0)", "m one a", false, false},
        {"Exp", "aten.exp.default", "a.exp_()", "a", true, false},
        {"Exp", "aten.exp.default", "y = a.exp()", "a", false, false},
        {"Abs", "aten.abs.default", "a.abs_()", "a", true, true},
        {"Mul", "aten.mul.Tensor", "a.mul_(b)", "a b", true, true},
        {"Div", "aten.div.Tensor", "a /= b", "a b", true, true},
        {"LeakyRelu", "aten.leaky_relu.default", "y = F.leaky_relu(a, inplace=True)", "a", true,
         false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        OWNED_TRAINER t;
        OWNED_EAGER eager;
        onv_lower_options options = {.loss = ONV_LOSS_NONE};
        OWNED_MODEL m = model_read(17, "in x f32[4,6]", "in m bool[4,8]", "weight w f32[6,8]",
                                   "role w PARAMETER", "one = Constant() c value_float=1.0",
                                   "a = MatMul(x w) 0", "b = MatMul(x w) b", "source net one");
        model_class(m, "Net", cases[i].aten);
        model_statement(m, 10, cases[i].line);
        model_node(m, cases[i].op, "1", cases[i].inputs, "y", "");
        model_output(m, "y", "f32");
        trainer_open_model(&t, m);
        trainer_lower(&t, &options, &eager);
        const onv_eager_op *op = &eager.ops.at[eager.ops.count - 1];
        bool copies = false;
        for (uint32_t k = 0; k < op->n_saved; k++)
            copies |= eager.storages.at[op->saved[k]].kind == ONV_STORAGE_EXTRA;
        if (op->in_place != cases[i].overwrites || copies != cases[i].copies)
            fail_msg("%s", cases[i].line);
    }
}
