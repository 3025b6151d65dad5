/* The modules that a segment consists of, and whether they follow each other. */
#include "ckpt/names.h"
#include "ckpt/taped.h"
#include "support/onnx_writer.h"
#include "support/test.h"

typedef struct named {
    taped t;
    onv_scopes scopes;
    onv_borders borders;
    onv_namer namer;
    onv_arena arena;
} named;

static void named_init(named *n)
{
    onv_error err = {0};
    onv_arena_init(&n->arena, SIZE_MAX);
    assert_int_equal(onv_scopes_find(&n->t.flow.model, &n->t.eager, &n->arena, &n->scopes, &err),
                     ONV_OK);
    assert_int_equal(
        onv_borders_find(&n->t.flow.model, &n->t.eager, &n->scopes, &n->arena, &n->borders, &err),
        ONV_OK);
    assert_int_equal(onv_namer_init(&n->namer, &n->t.flow.model, &n->t.eager, &n->scopes,
                                    &n->borders, &n->arena, &err),
                     ONV_OK);
}

static void named_close(named *n)
{
    onv_scopes_cleanup(&n->scopes);
    onv_arena_cleanup(&n->arena);
    taped_close(&n->t);
}

static uint32_t op_of(const named *n, const char *node, bool last)
{
    uint32_t found = UINT32_MAX;
    for (uint32_t i = 0; i < n->t.eager.first_loss_op; i++) {
        const onv_eager_op *op = &n->t.eager.ops.at[i];
        if (!onv_is_node(op->node)) continue;
        if (strcmp(onv_model_node(&n->t.flow.model, op->node)->name, node) != 0) continue;
        if (last || found == UINT32_MAX) found = i;
    }
    assert_int_not_equal(found, UINT32_MAX);
    return found;
}

/* `modules`: NULL: not whole; with a "|" before: they are no chain. */
static void expect(named *n, const char *first, const char *last, const char *modules)
{
    onv_error err = {0};
    onv_segment_names names;
    onv_tape_segment segment = {op_of(n, first, false), op_of(n, last, true)};
    const char *part = n->t.eager.ops.at[segment.last_op].part;
    assert_int_equal(onv_segment_name(&n->namer, segment, &names, &err), ONV_OK);
    assert_string_equal(names.first, first);
    assert_memory_equal(names.last, last, strlen(last));
    if (part != NULL) assert_int_equal(names.last[strlen(last)], ':');
    assert_string_equal(names.last + strlen(last) + (part != NULL), part != NULL ? part : "");
    if (modules == NULL) {
        assert_null(names.modules);
        assert_false(names.is_chain);
        return;
    }
    bool is_chain = modules[0] != '|';
    assert_non_null(names.modules);
    assert_string_equal(names.modules, is_chain ? modules : modules + 1);
    assert_int_equal(names.is_chain, is_chain);
    uint32_t spaces = 0;
    for (const char *c = names.modules; *c != '\0'; c++) spaces += *c == ' ';
    assert_int_equal(names.n_modules, spaces + 1);
}

TEST(rows_of_modules)
{
    named n;
    taped_open_sample(&n.t, "resnet18-train.onnx", "batch=2", ONV_UNDEFINED);
    named_init(&n);
    expect(&n, "/conv1/Conv", "/maxpool/MaxPool", "conv1 bn1 relu maxpool");
    expect(&n, "/layer1/layer1.0/conv1/Conv", "/layer2/layer2.0/relu_1/Relu", "layer1 layer2.0");
    expect(&n, "/layer1/layer1.1/conv1/Conv", "/layer1/layer1.1/relu_1/Relu", "layer1.1");
    /* The block's input goes around its first convolution. */
    expect(&n, "/maxpool/MaxPool", "/layer1/layer1.0/conv1/Conv", "|maxpool layer1.0.conv1");
    /* The same relu is called twice: what is done to it would be done both times. */
    expect(&n, "/layer1/layer1.0/bn1/BatchNormalization", "/layer1/layer1.0/relu/Relu", NULL);
    expect(&n, "/layer1/layer1.0/bn2/BatchNormalization", "/layer1/layer1.0/bn2/BatchNormalization",
           "layer1.0.bn2");
    /* A sum of the block itself. */
    expect(&n, "/layer1/layer1.0/bn2/BatchNormalization", "/layer1/layer1.0/Add", NULL);
    named_close(&n);
}

static void expect_borders(named *n, const char *first, const char *last, const char *begin,
                           const char *end)
{
    onv_error err = {0};
    onv_segment_names names;
    onv_tape_segment segment = {op_of(n, first, false), op_of(n, last, true)};
    assert_int_equal(onv_segment_name(&n->namer, segment, &names, &err), ONV_OK);
    assert_string_equal(names.begin, begin);
    assert_string_equal(names.end, end);
}

TEST(borders_of_segments)
{
    named n;
    taped_open_sample(&n.t, "resnet18-train.onnx", "batch=2", ONV_UNDEFINED);
    named_init(&n);
    expect_borders(&n, "/conv1/Conv", "/maxpool/MaxPool", "enter . 1", "enter layer1 1");
    expect_borders(&n, "/layer1/layer1.0/bn1/BatchNormalization", "/layer1/layer1.0/relu/Relu",
                   "enter layer1.0.bn1 1", "enter layer1.0.conv2 1");
    /* The second sum of a block, which stands in its own code. */
    expect_borders(&n, "/layer1/layer1.0/Add", "/layer1/layer1.0/relu_1/Relu",
                   "leave layer1.0.bn2 1", "enter layer1.1 1");
    expect_borders(&n, "/layer1/layer1.0/bn2/BatchNormalization", "/layer1/layer1.0/Add",
                   "enter layer1.0.bn2 1", "enter layer1.0.relu_1 1");
    named_close(&n);
}

TEST(what_stands_between_modules)
{
    named n;
    taped_open_sample(&n.t, "unet-train.onnx", "batch=2 height=64 width=64", ONV_UNDEFINED);
    named_init(&n);
    expect(&n, "/stem/stem.0/Conv", "/stem/stem.5/Relu", "stem");
    /* max_pool2d is no module. */
    expect(&n, "/stem/stem.0/Conv", "/down.0/down.0.5/Relu", NULL);
    named_close(&n);
}

/* x -> a -> b -> c, beside which c reads `beside`. */
static void expect_row(const char *reads, const char *modules)
{
    OWNED_MODEL m = model_new(17);
    char inputs[32];
    model_add(m, "in x f32[16,64]", "weight a.weight f32[64,64]", "weight b.weight f32[64,64]",
              "t = MatMul(x a.weight) /a/MatMul", "u = MatMul(t b.weight) /b/MatMul");
    snprintf(inputs, sizeof inputs, "u %s", reads);
    model_node(m, "Mul", "/c/Mul", inputs, "v", "");
    model_add(m, "y = Tanh(v) /d/Tanh", "out y f32");
    named n;
    taped_open_model(&n.t, m);
    named_init(&n);
    expect(&n, "/a/MatMul", "/c/Mul", modules);
    expect(&n, "/b/MatMul", "/b/MatMul", "b");
    named_close(&n);
}

/* PyTorch calls the member, not the list. */
TEST(only_members_of_lists)
{
    OWNED_MODEL m = model_new(17);
    model_add(m, "in x f32[16,64]", "weight l.0.weight f32[64,64]",
              "t = MatMul(x l.0.weight) /l/l.0/MatMul", "y = Tanh(t) /d/Tanh", "out y f32");
    named n;
    taped_open_model(&n.t, m);
    named_init(&n);
    expect(&n, "/l/l.0/MatMul", "/l/l.0/MatMul", "l.0");
    named_close(&n);
}

TEST(what_goes_around_modules)
{
    expect_row("u", "a b c");
    expect_row("t", "|a b c"); /* the result of a goes around b */
    expect_row("x", "|a b c"); /* a would have to hand it on */
}

/* x -> conv1 with bn1 folded in -> relu -> conv2 -> relu again, as torch.export notes it. */
TEST(notes_tell_modules)
{
    OWNED_MODEL m = model_read(
        17, "in x f32[2,8,4,4]", "weight conv1.weight f32[8,8,1,1]",
        "weight conv2.weight f32[8,8,1,1]", "source bn1 _native_batch_norm_legit_functional",
        "a = Conv(x conv1.weight) node_1", "source act sigmoid", "b = Sigmoid(a) node_2",
        "source conv2 conv2d", "c = Conv(b conv2.weight) node_3", "source act sigmoid_1",
        "y = Sigmoid(c) node_4", "out y f32");
    named n;
    taped_open_model(&n.t, m);
    named_init(&n);
    expect(&n, "node_1", "node_1", "conv1 bn1");
    expect(&n, "node_3", "node_3", "conv2");
    /* What is done to a module that is called twice would be done both times. */
    expect(&n, "node_1", "node_2", NULL);
    expect(&n, "node_2", "node_4", NULL);
    expect(&n, "node_3", "node_4", NULL);
    named_close(&n);
}

/* Nothing tells of a view: what ends before it and what begins there name the same place. */
TEST(places_at_views_are_one)
{
    model *m =
        model_read(17, "in x f32[4,8]", "weight a.weight f32[8,8]", "weight b.weight f32[4,8]",
                   "ints shape 8 4", "source block linear", "a = MatMul(x a.weight) node_1",
                   "source block view", "b = Reshape(a shape) node_2", "source block linear_1",
                   "y = MatMul(b b.weight) node_3", "out y f32");
    named n;
    taped_open_model(&n.t, m);
    named_init(&n);
    expect_borders(&n, "node_1", "node_1", "enter . 1", "op block product 2");
    expect_borders(&n, "node_2", "node_3", "op block product 2", "leave . 1");
    named_close(&n);
    model_free(m);
}

/* What the exporter computed of a parameter alone was made in a module that the node that reads it does not tell. */
TEST(computed_parameters_have_no_place)
{
    for (int is_computed = 0; is_computed < 2; is_computed++) {
        OWNED_MODEL m = model_read(17, "in x f32[4,8]", "weight first.weight f32[8,8]",
                                   "source first linear", "a = MatMul(x first.weight) node_1",
                                   "source act sigmoid", "y = Sigmoid(a) node_2", "out y f32");
        named n;
        taped_open_model(&n.t, m);
        onv_eager_op *product = &n.t.eager.ops.at[0];
        assert_string_equal(product->name, "mm");
        if (is_computed) {
            product->in[0] = product->in[1];
            product->n_in = 1;
        }
        named_init(&n);
        assert_int_equal(onv_border_is_known(&n.borders.of_op[0]), !is_computed);
        assert_int_equal(onv_border_is_known(&n.borders.before[1]), !is_computed);
        named_close(&n);
    }
}

/* Products inside of a function of the network's own do not count, and are no places. */
TEST(functions_have_no_places_inside)
{
    for (int is_function = 0; is_function < 2; is_function++) {
        static const char *const names[] = {"a", "b", "c", "y"};
        OWNED_MODEL m = model_read(17, "in x f32[4,8]", "weight w f32[8,8]", "role w PARAMETER");
        for (int i = 0; i < 3; i++) {
            char inputs[16];
            snprintf(inputs, sizeof inputs, "%s w", i == 0 ? "x" : names[i - 1]);
            model_add(m, "source net matmul", "class Net aten.matmul.default");
            model_trace(m, is_function && i == 1 ? "return Gate.apply(x)" : "return x @ w");
            model_node(m, "MatMul", names[i], inputs, names[i], "");
        }
        model_add(m, "source net relu", "y = Relu(c) relu", "out y f32");
        named n;
        taped_open_model(&n.t, m);
        named_init(&n);
        assert_int_equal(onv_border_is_known(&n.borders.of_op[1]), !is_function);
        assert_int_equal(n.borders.of_op[2].count, is_function ? 2 : 3);
        named_close(&n);
    }
}

/* Padding that the export put into a convolution, which has the norm's note: no call of the norm goes before it. */
TEST(padding_is_of_the_convolution)
{
    OWNED_MODEL m = model_read(17, "in x f32[2,8,4,4]", "weight first.weight f32[8,8,1,1]",
                               "weight conv.weight f32[8,8,3,3]", "source first conv2d",
                               "a = Conv(x first.weight) node_1",
                               "source bn _native_batch_norm_legit_functional",
                               "y = Conv(a conv.weight) node_2 pads=[0,0,2,2]", "out y f32");
    named n;
    taped_open_model(&n.t, m);
    named_init(&n);
    bool is_padded = false;
    for (uint32_t i = 0; i < n.t.eager.first_loss_op; i++) {
        const char *text = "";
        onv_error err = {0};
        assert_int_equal(onv_place_name(&n.namer, i, &text, &err), ONV_OK);
        if (strcmp(n.t.eager.ops.at[i].name, "pad") != 0) continue;
        assert_string_equal(text, "enter conv 1");
        is_padded = true;
    }
    assert_true(is_padded);
    named_close(&n);
}

/* A convolution in a Sequential that a norm stands behind, which the export folded into it, and whose note it has. */
TEST(folded_convolutions_are_in_their_sequential)
{
    OWNED_MODEL m = model_read(
        17, "in x f32[2,8,4,4]", "weight stem.0.weight f32[8,8,1,1]",
        "weight stem.2.weight f32[8,8,1,1]", "source stem.0 conv2d",
        "a = Conv(x stem.0.weight) node_0", "source stem.1 relu", "b = Relu(a) node_1",
        "source bn _native_batch_norm_legit_functional", "c = Conv(b stem.2.weight) node_2",
        "source act relu_1", "y = Relu(c) node_3", "out y f32");
    named n;
    taped_open_model(&n.t, m);
    named_init(&n);
    uint32_t convolution = op_of(&n, "node_2", false);
    assert_string_equal(n.scopes.path_of[convolution], "stem.2");
    assert_string_equal(n.borders.of_op[convolution].path, "stem.2");
    assert_string_equal(n.borders.before[convolution].kind, "enter");
    assert_string_equal(n.borders.before[convolution].path, "stem.2");
    named_close(&n);
}

/* Notes name any modules: the one of the convolution may be in none of them. */
TEST(folded_convolutions_may_be_in_no_noted_module)
{
    OWNED_MODEL m = model_read(17, "in x f32[2,8,4,4]", "weight stem.2.weight f32[8,8,1,1]");
    model_source(m, "somewhere.in.a.module.of.a.long.name', 'bn",
                 "_native_batch_norm_legit_functional");
    model_add(m, "y = Conv(x stem.2.weight) node_0", "out y f32");
    named n;
    taped_open_model(&n.t, m);
    named_init(&n);
    assert_string_equal(n.borders.of_op[op_of(&n, "node_0", false)].path, "stem.2");
    named_close(&n);
}

/* A checkpoint can begin and end between nodes, not between a cast and the product it is for. */
TEST(segments_are_of_whole_nodes)
{
    static const struct {
        const char *name, *dims;
        onv_dtype amp;
    } cases[] = {
        {"mobilenet_v2-train.onnx", "batch=2", ONV_BFLOAT16},
        {"unet-train.onnx", "batch=2 height=64 width=64", ONV_FLOAT16},
        {"vit-small-train.onnx", "batch=2", ONV_FLOAT16},
        {"vit-small-train.onnx", "batch=2", ONV_UNDEFINED},
        {"bert.onnx", "batch=2 sequence=16", ONV_BFLOAT16},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        taped t;
        taped_open_sample(&t, cases[c].name, cases[c].dims, cases[c].amp);
        onv_ckpt_plans plans = taped_plans(&t, "all");
        const onv_eager_op *ops = t.eager.ops.at;
        for (size_t i = 0; i < plans.at.count; i++) {
            for (uint32_t k = 0; k < plans.at.at[i].n_segments; k++) {
                onv_tape_segment s = plans.at.at[i].segments[k];
                bool begins =
                    s.first_op == 0 || ops[s.first_op].node.index != ops[s.first_op - 1].node.index;
                bool ends = ops[s.last_op].node.index != ops[s.last_op + 1].node.index;
                if (!begins || !ends)
                    fail_msg("%s, %s: segment %u to %u", cases[c].name, plans.at.at[i].name,
                             s.first_op, s.last_op);
            }
        }
        onv_ckpt_plans_cleanup(&plans);
        taped_close(&t);
    }
}
