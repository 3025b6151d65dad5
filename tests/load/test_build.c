/* From messages to the model: names and scopes, types, opsets, attributes. */
#include "ir/notes.h"
#include "load/built.h"
#include "load/load.h"
#include "support/test.h"

/* --- Names ------------------------------------------------------------------------------------- */

TEST(nodes_and_values)
{
    built_expect(m_model(GRAPH("x", "z", "Relu r x y", "Clip - y,-,y z,-")),
                 "(x)->(z): Relu r(x)->y; Clip(y,-,y)->z,-\n");
    /* Nodes may stand in any order: names are known before anything reads them. */
    built_expect(m_model(GRAPH("x", "z", "Clip c y z", "Relu r x y")),
                 "(x)->(z): Clip c(y)->z; Relu r(x)->y\n");
    /* An output that no node makes. */
    built_expect(m_model(m_graph("x", "x")), "(x)->(x):\n");
}

TEST(undefined_names)
{
    built_refuse(m_model(GRAPH("x", "y", "Relu r nowhere y")), ONV_ERR_MODEL,
                 "input 0, 'nowhere', is not defined", "r");
    built_refuse(m_model(GRAPH("x", "y", "Add - x,nowhere y")), ONV_ERR_MODEL,
                 "input 1, 'nowhere', is not defined", "#0");
    built_refuse(m_model(GRAPH("x", "nowhere", "Relu r x y")), ONV_ERR_MODEL,
                 "output 'nowhere' of graph '' is not defined", "");
    msg *graph = m_graph("x", "x");
    m_put(graph, G_NODE, m_node("", "r", "x", "y"));
    built_refuse(m_model(graph), ONV_ERR_MODEL, "node 0 has no operator", "r");
}

TEST(double_definitions)
{
    built_refuse(m_model(GRAPH("x", "y", "Relu a x y", "Relu b x y")), ONV_ERR_MODEL,
                 "value 'y' is defined twice", "b");
    built_refuse(m_model(GRAPH("x", "y", "Relu a x y,y")), ONV_ERR_MODEL,
                 "value 'y' is defined twice", "a");
    built_refuse(m_model(GRAPH("x", "x", "Relu a x x")), ONV_ERR_MODEL,
                 "value 'x' is defined twice", "a");
    built_refuse(m_model(m_graph("x x", "x")), ONV_ERR_MODEL, "value 'x' is defined twice", "");
    msg *graph = m_graph("", "");
    for (int i = 0; i < 2; i++) m_put(graph, G_INIT, m_external("w", 2, "w.bin"));
    built_refuse(m_model(graph), ONV_ERR_MODEL, "value 'w' is defined twice", "");
    graph = m_graph("", "");
    m_put(graph, G_INIT, m_external("", 2, "w.bin"));
    built_refuse(m_model(graph), ONV_ERR_MODEL, "an initializer has no name", "");
    graph = m_graph("", "");
    m_put(graph, G_INPUT, m_new());
    built_refuse(m_model(graph), ONV_ERR_MODEL, "input 0 of graph '' has no name", "");
}

TEST(an_initializer_may_be_an_input_too)
{
    msg *graph = GRAPH("x w", "y", "Mul m x,w y");
    m_put(graph, G_INIT, m_external("w", 2, "w.bin"));
    m_put(graph, G_INIT, m_external("v", 2, "w.bin"));
    msg *file = m_model(graph);
    onv_model *model = built_load(file);
    assert_int_equal(model->values.count, 4);
    assert_int_equal(model->graphs.at[0].n_inputs, 1);
    assert_int_equal(built_value(model, "w")->kind, ONV_VALUE_INITIALIZER);
    assert_true(built_value(model, "w")->overridable);
    assert_false(built_value(model, "v")->overridable);
    assert_true(built_value(model, "y")->is_output);
    assert_int_equal(built_value(model, "y")->producer.index, 0);
    assert_false(onv_is_node(built_value(model, "w")->producer));
    built_done(model, file);
}

/* --- Subgraphs --------------------------------------------------------------------------------- */

static msg *with_graph(msg *node, const char *attr, msg *graph)
{
    m_put(node, N_ATTR, m_attr_graph(attr, graph));
    return node;
}

TEST(subgraphs_see_the_names_around_them)
{
    msg *inner = GRAPH("", "t", "Add - x,late t");
    msg *middle = m_graph("", "u");
    m_put(middle, G_NODE, with_graph(m_node("If", "", "c", "u"), "then_branch", inner));
    msg *graph = m_graph("x c", "z");
    m_put(graph, G_NODE, with_graph(m_node("If", "if", "c", "z"), "then_branch", middle));
    m_put(graph, G_NODE, m_node("Relu", "r", "x", "late"));
    built_expect(
        m_model(graph),
        "(x,c)->(z): If if(c)->z; Relu r(x)->late\n"
        "if/then_branch()->(if/then_branch/u): If if/then_branch/If_0(c)->if/then_branch/u\n"
        "if/then_branch/If_0/then_branch()->(if/then_branch/If_0/then_branch/t): "
        "Add if/then_branch/If_0/then_branch/Add_0(x,late)->"
        "if/then_branch/If_0/then_branch/t\n");
}

TEST(names_inside_stay_inside)
{
    msg *graph = m_graph("c", "t");
    m_put(graph, G_NODE,
          with_graph(m_node("If", "if", "c", "z"), "then_branch", GRAPH("", "t", "Relu - c t")));
    built_refuse(m_model(graph), ONV_ERR_MODEL, "output 't' of graph '' is not defined", "");
    /* Nor does one branch see the other. */
    msg *node =
        with_graph(m_node("If", "if", "c", "z"), "then_branch", GRAPH("", "t", "Relu - c t"));
    with_graph(node, "else_branch", GRAPH("", "e", "Relu r t e"));
    graph = m_graph("c", "z");
    m_put(graph, G_NODE, node);
    built_refuse(m_model(graph), ONV_ERR_MODEL, "'t', is not defined", "if/else_branch/r");
}

TEST(an_inner_name_hides_an_outer_one)
{
    msg *graph = m_graph("x c", "z");
    m_put(graph, G_NODE,
          with_graph(m_node("If", "if", "c", "z"), "then_branch",
                     GRAPH("", "t", "Relu r c x", "Relu s x t")));
    msg *file = m_model(graph);
    onv_model *model = built_load(file);
    assert_int_equal(built_diags(model, "shadowed-name"), 1);
    const onv_node *s = &model->nodes.at[2];
    assert_string_equal(s->name, "if/then_branch/s");
    assert_string_equal(onv_model_value(model, s->inputs[0])->name, "if/then_branch/x");
    built_done(model, file);
}

TEST(a_subgraph_may_hand_out_an_outer_value)
{
    msg *graph = m_graph("x c", "z");
    m_put(graph, G_NODE, with_graph(m_node("If", "if", "c", "z"), "then_branch", m_graph("", "x")));
    msg *file = m_model(graph);
    onv_model *model = built_load(file);
    assert_int_equal(model->graphs.at[1].outputs[0].index, model->graphs.at[0].inputs[0].index);
    assert_false(built_value(model, "x")->is_output); /* not of its own graph */
    assert_int_equal(model->graphs.at[1].owner.index, 0);
    assert_string_equal(model->graphs.at[1].owner_attr, "then_branch");
    built_done(model, file);
}

TEST(long_paths_become_numbers)
{
    char name[600] = {0};
    memset(name, 'n', sizeof name - 1);
    msg *graph = m_graph("c", "z");
    m_put(graph, G_NODE,
          with_graph(m_node("If", name, "c", "z"), "then_branch", GRAPH("", "t", "Relu r c t")));
    msg *file = m_model(graph);
    onv_model *model = built_load(file);
    assert_string_equal(model->values.at[2].name, "#1.1/t");
    built_done(model, file);
}

/* A model of one node, which has these notes. */
static msg *noted(const char *key, const char *value, const char *other_key, const char *other)
{
    msg *graph = m_graph("x", "y"), *node = m_node("Relu", "r", "x", "y");
    m_put(node, N_METADATA, m_pair(other_key, other));
    m_put(node, N_METADATA, m_pair(key, value));
    m_put(graph, G_NODE, node);
    return m_model(graph);
}

TEST(scopes_come_from_metadata)
{
    static const struct {
        const char *key, *value, *scope, *operation;
    } cases[] = {
        {"pkg.torch.onnx.name_scopes", "['', 'net', 'net.0', 'relu']", "net.0", "relu"},
        {"pkg.torch.onnx.name_scopes", "['', \"it's\", 'relu']", "it's", "relu"},
        {"pkg.torch.onnx.name_scopes", "['', 'relu']", "", "relu"},
        {"pkg.torch.onnx.name_scopes", "['_empty_nn_module_stack_from_metadata_hook', 'relu']", "",
         "relu"},
        {"pkg.torch.onnx.name_scopes", "['', 'net', 'open", "", "net"},
        {"pkg.torch.onnx.name_scopes", "", "", ""},
        {"pkg.torch.onnx.stack_trace", "['', 'net', 'relu']", "", ""},
        {"namespace", "\xff\xfe", "", ""},
        {"pkg.torch.onnx.name_scopes", "['', '\xff', 'relu']", "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        msg *file = noted(cases[i].key, cases[i].value, "other", "text");
        onv_model *model = built_load(file);
        assert_string_equal(onv_noted(&model->nodes.at[0])->scope, cases[i].scope);
        assert_string_equal(onv_noted(&model->nodes.at[0])->source_op, cases[i].operation);
        built_done(model, file);
    }
}

/* By the name that the code calls them by, `GeLUFunction.apply(x)`; or by another one, `swish = Swish.apply`: one more
 * forward() runs than modules are called, and has no `self`. */
TEST(functions_come_from_metadata)
{
#define OUTER "  File \"net.py\", line 8, in forward\n    y = self.swish(x) + 1\n"
#define INNER "  File \"net.py\", line 3, in forward\n    return x * x.sigmoid()"
#define SELF  "  File \"net.py\", line 3, in forward\n    return x * self.p"
#define BASE  "  File \"net.py\", line 8, in forward\n    y = super().forward(x)\n"
#define EXPORT                                                                                     \
    "  File \"/lib/torch/_dynamo/a.py\", line 1, in forward\n    res = self.root(*args)\n"
#define LIB    "  File \"/lib/torch/nn/a.py\", line 1, in forward\n    return F.silu(x)"
#define NET    "['net.Net', 'aten.relu.default']"
#define ACT    "['net.Net', 'net.Swish', 'aten.relu.default']"
#define PART   "  File \"net.py\", line 8, in forward\n    y = self.layers[1:](x)\n"
#define ROW    "  File \"/lib/torch/nn/row.py\", line 1, in forward\n    input = module(input)\n"
#define TRACED "  File \"<eval_with_key>.7\", line 1, in forward\n    act = self.act(x)\n"
    static const struct {
        const char *classes, *trace, *function;
    } cases[] = {
        {"", "line 3, in forward\n    return GeLUFunction.apply(x)", "GeLUFunction"},
        {"", "y = nets.Outer.apply(x)\n  z = Inner_2.apply(y)\n", "Inner_2"},
        {"", "net.apply(x)", ""},
        {"", "y = Root.apply(1 - x)", ""}, /* an argument */
        {"", "y = Root.apply(f(x), 1)", ""},
        {"", "y = Root.apply(1 - x)\n  File \"net.py\", line 3, in forward\n    return x", "Root"},
        {"", ".apply(x)", ""},
        {"", "return torch.relu(x)", ""},
        {"", "Open.apply(\xff", ""},
        {NET, OUTER INNER, "swish"},
        {ACT, OUTER INNER, ""},
        {NET, OUTER SELF, ""},
        {NET, BASE INNER, ""},
        {NET, OUTER LIB, ""},
        {ACT, EXPORT OUTER INNER, ""},
        {ACT, PART ROW INNER, ""}, /* a slice of a sequence is no module that is noted */
        {"['torch.fx.GraphModule', 'net.Swish', 'aten.relu.default']", TRACED INNER, ""},
        {NET, INNER, ""},
        {NET, "File \"net.py\", line 3, in forward\n\nFile \"\", in forward\n", ""},
        {"['", OUTER INNER, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        msg *file = noted("pkg.torch.onnx.stack_trace", cases[i].trace,
                          "pkg.torch.onnx.class_hierarchy", cases[i].classes);
        onv_model *model = built_load(file);
        assert_string_equal(onv_noted(&model->nodes.at[0])->function, cases[i].function);
        built_done(model, file);
    }
}

TEST(roles_come_from_metadata)
{
    static const char key[] = "pkg.torch.export.graph_signature.InputSpec.kind";
    static const struct {
        const char *key, *value;
        int role;
    } cases[] = {
        {key, "PARAMETER", ONV_ROLE_PARAMETER},    {key, "BUFFER", ONV_ROLE_BUFFER},
        {key, "USER_INPUT", ONV_ROLE_NOT_NOTED},   {key, "", ONV_ROLE_NOT_NOTED},
        {"kind", "PARAMETER", ONV_ROLE_NOT_NOTED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        msg *graph = m_graph("x", "y"), *info = m_info("x:f32[2]");
        m_put(info, 4, m_pair(cases[i].key, cases[i].value));
        m_put(graph, G_INFO, info);
        m_put(graph, G_NODE, m_node("Relu", "r", "x", "y"));
        msg *file = m_model(graph);
        onv_model *model = built_load(file);
        assert_int_equal(built_value(model, "x")->role, cases[i].role);
        built_done(model, file);
    }
}

/* --- Types ------------------------------------------------------------------------------------- */

TEST(types_of_inputs_and_others)
{
    msg *graph =
        GRAPH("x:f32[batch,3,?,-1] s:i64[] u:f32 n", "z:f32[batch,?]", "Relu r x y", "Relu q y z");
    m_put(graph, G_INFO, m_info("y:f32[m,3,?,7]"));
    m_put(graph, G_INFO, m_info("unused:f32[1]"));
    msg *file = m_model(graph);
    onv_model *model = built_load(file);
    assert_string_equal(built_shape(model, &built_value(model, "x")->type), "[batch, 3, x.2, x.3]");
    assert_int_equal(built_diags(model, "negative-dim"), 1);
    assert_string_equal(built_shape(model, &built_value(model, "s")->type), "[]");
    assert_int_equal(built_value(model, "s")->type.dtype, ONV_INT64);
    assert_int_equal(built_value(model, "u")->type.rank, -1);
    assert_int_equal(built_value(model, "u")->type.kind, ONV_TYPE_TENSOR);
    assert_int_equal(built_value(model, "n")->type.kind, ONV_TYPE_UNKNOWN);
    assert_int_equal(built_value(model, "y")->type.kind, ONV_TYPE_UNKNOWN);
    assert_string_equal(built_shape(model, built_value(model, "y")->declared), "[m, 3, ?, 7]");
    assert_string_equal(built_shape(model, built_value(model, "z")->declared), "[batch, ?]");
    built_done(model, file);
}

TEST(inputs_of_subgraphs_make_no_symbols)
{
    msg *body = GRAPH("i c h:f32[?,4]", "c2 h2", "Relu - c c2", "Relu - h h2");
    msg *graph = m_graph("x c", "z");
    m_put(graph, G_NODE, with_graph(m_node("Loop", "loop", "- c x", "z"), "body", body));
    msg *file = m_model(graph);
    onv_model *model = built_load(file);
    assert_string_equal(built_shape(model, &built_value(model, "loop/body/h")->type), "[?, 4]");
    assert_int_equal(model->dims.n_symbols, 0);
    built_done(model, file);
}

static msg *typed(const char *name, uint32_t field, msg *kind)
{
    msg *info = m_new(), *type = m_new();
    m_put(type, field, kind);
    m_text(info, 1, name);
    m_put(info, 2, type);
    return info;
}

static msg *tensor_type(int64_t dtype, int64_t dim)
{
    msg *type = m_new(), *tensor = m_new(), *dims = m_new(), *one = m_new();
    if (dim != 0) m_int(one, 1, dim);
    m_put(dims, 1, one);
    m_int(tensor, 1, dtype);
    m_put(tensor, 2, dims);
    m_put(type, 1, tensor);
    return type;
}

TEST(every_kind_of_type)
{
    msg *sequence = m_new(), *optional = m_new(), *map = m_new(), *sparse = m_new();
    msg *graph = m_graph("", "");
    m_put(sequence, 1, tensor_type(ONV_FLOAT, 0));
    m_put(graph, G_INPUT, typed("seq", 4, sequence));
    m_put(optional, 1, tensor_type(ONV_FLOAT, 0));
    m_put(graph, G_INPUT, typed("opt", 9, optional));
    m_int(map, 1, ONV_STRING);
    m_put(map, 2, tensor_type(ONV_INT64, 3));
    m_put(graph, G_INPUT, typed("map", 5, map));
    m_int(sparse, 1, ONV_DOUBLE);
    m_put(graph, G_INPUT, typed("sparse", 8, sparse));
    m_put(graph, G_INPUT, typed("opaque", 7, m_new()));
    msg *file = m_model(graph);
    onv_model *model = built_load(file);
    const onv_type *type = &built_value(model, "seq")->type;
    assert_int_equal(type->kind, ONV_TYPE_SEQUENCE);
    assert_false(onv_dim_is_known(onv_type_elements(type).length));
    assert_string_equal(built_shape(model, onv_type_elements(type).type),
                        "[?]"); /* no symbol for all elements */
    type = &built_value(model, "opt")->type;
    assert_int_equal(type->kind, ONV_TYPE_OPTIONAL);
    assert_string_equal(built_shape(model, onv_type_elements(type).type), "[opt.0]");
    type = &built_value(model, "map")->type;
    assert_int_equal(type->kind, ONV_TYPE_MAP);
    assert_int_equal(type->dtype, ONV_STRING);
    assert_string_equal(built_shape(model, onv_type_elements(type).type), "[3]");
    type = &built_value(model, "sparse")->type;
    assert_int_equal(type->kind, ONV_TYPE_SPARSE_TENSOR);
    assert_int_equal(type->dtype, ONV_DOUBLE);
    assert_int_equal(type->rank, -1);
    assert_int_equal(built_value(model, "opaque")->type.kind, ONV_TYPE_UNKNOWN);
    built_done(model, file);
}

TEST(impossible_shapes)
{
    built_refuse(m_model(m_graph("x:f32[4611686018427387904]", "x")), ONV_ERR_OVERFLOW,
                 "dim 0 of 'x'", "");
    built_refuse(
        m_model(m_graph("x:f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]",
                        "x")),
        ONV_ERR_LIMIT, "'x' has rank 33", "");
}

/* --- Opsets ------------------------------------------------------------------------------------ */

TEST(opset_versions)
{
    msg *graph = m_graph("x", "x");
    static const char *const domains[] = {"", "ai.onnx", "ai.onnx.ml", "nobody", "nobody"};
    for (size_t i = 0; i < 5; i++) {
        char out[32];
        snprintf(out, sizeof out, "y%zu", i);
        msg *node = m_node("Relu", "", "x", out);
        m_text(node, N_DOMAIN, domains[i]);
        m_put(graph, G_NODE, node);
    }
    msg *file = m_model(graph);
    m_put(file, M_OPSET, m_opset("ai.onnx", 13));
    m_put(file, M_OPSET, m_opset("ai.onnx.ml", 3));
    onv_model *model = built_load(file);
    static const int versions[] = {17, 17, 3, 1, 1};
    for (size_t i = 0; i < 5; i++) assert_int_equal(model->nodes.at[i].version, versions[i]);
    assert_string_equal(model->nodes.at[1].domain, "");
    assert_int_equal(built_diags(model, "domain-not-imported"), 1);
    assert_int_equal(model->opsets.count, 2);
    assert_int_equal(model->opsets.at[0].version, 17);
    assert_int_equal(model->opsets.at[1].version, 3);
    built_done(model, file);

    file = m_model(m_graph("x", "x"));
    m_put(file, M_OPSET, m_opset("far", INT64_C(1) << 40));
    built_refuse(file, ONV_ERR_MODEL, "opset 1099511627776 of domain 'far'", "");
}

TEST(the_first_ir_versions)
{
    msg *file = m_new(), *attr = m_new(), *node = m_node("Elu", "e", "x", "y");
    m_text(attr, A_NAME, "alpha"); /* without a type, as in IR 1 */
    m_f32(attr, A_FLOAT, 0.5f);
    m_put(node, N_ATTR, attr);
    msg *graph = m_graph("x", "y");
    m_put(graph, G_NODE, node);
    m_int(file, M_IR, 1);
    m_text(file, M_PRODUCER, "maker");
    m_text(file, 3, "0.1");
    m_put(file, M_GRAPH, graph);
    onv_model *model = built_load(file);
    assert_int_equal(model->ir_version, 1);
    assert_string_equal(model->producer, "maker 0.1");
    assert_int_equal(model->opsets.count, 1);
    assert_int_equal(model->nodes.at[0].version, 1);
    assert_int_equal(model->nodes.at[0].attrs[0].kind, ONV_ATTR_FLOAT);
    assert_true(model->nodes.at[0].attrs[0].f == 0.5f);
    assert_int_equal(model->diags.count, 0);
    built_done(model, file);
}

TEST(ir_versions_out_of_range)
{
    msg *file = m_model(m_graph("x", "x"));
    m_int(file, M_IR, 99); /* the last one counts */
    onv_model *model = built_load(file);
    assert_int_equal(model->ir_version, 99);
    assert_int_equal(built_diags(model, "newer-ir"), 1);
    built_done(model, file);
    file = m_new();
    m_put(file, M_GRAPH, m_graph("x", "x"));
    model = built_load(file);
    assert_int_equal(built_diags(model, "no-ir-version"), 1);
    built_done(model, file);
}

/* --- Attributes -------------------------------------------------------------------------------- */

TEST(every_kind_of_attribute)
{
    const int64_t two = 2;
    msg *node = m_node("Any", "n", "x", "y"), *a[11];
    a[0] = m_attr("f", ONV_ATTR_FLOAT), m_f32(a[0], A_FLOAT, 1.5f);
    a[1] = m_attr_int("i", -7);
    a[2] = m_attr("s", ONV_ATTR_STRING), m_bytes(a[2], A_STRING, "\xffze\0ro", 6);
    a[3] = m_attr_tensor("t", m_tensor("t", ONV_INT8, 1, &two));
    a[4] = m_attr("fs", ONV_ATTR_FLOATS), m_f32(a[4], A_FLOATS, 1.0f), m_f32(a[4], A_FLOATS, 2.0f);
    a[5] = m_attr("is", ONV_ATTR_INTS), m_int(a[5], A_INTS, 3),
    m_bytes(a[5], A_INTS, "\x04\x05", 2);
    a[6] = m_attr("ss", ONV_ATTR_STRINGS), m_text(a[6], A_STRINGS, "p"),
    m_text(a[6], A_STRINGS, "");
    a[7] = m_attr("gs", ONV_ATTR_GRAPHS), m_put(a[7], A_GRAPHS, m_graph("", "x")),
    m_put(a[7], A_GRAPHS, m_graph("", "x"));
    a[8] = m_attr("tp", ONV_ATTR_TYPE_PROTO), m_put(a[8], 14, tensor_type(ONV_FLOAT, 5));
    a[9] = m_attr("ts", ONV_ATTR_TENSORS), m_put(a[9], 10, m_tensor("", ONV_INT8, 1, &two));
    a[10] = m_attr("none", ONV_ATTR_INTS);
    for (size_t i = 0; i < 11; i++) m_put(node, N_ATTR, a[i]);
    msg *graph = m_graph("x", "y");
    m_put(graph, G_NODE, node);
    msg *file = m_model(graph);
    onv_model *model = built_load(file);
    const onv_node *n = &model->nodes.at[0];
    assert_int_equal(n->n_attrs, 11);
    assert_true(onv_node_attr(n, "f")->f == 1.5f);
    assert_int_equal(onv_node_attr(n, "i")->i, -7);
    assert_string_equal(onv_node_attr(n, "s")->s, "\xffze");
    assert_int_equal(onv_node_attr(n, "t")->tensor->bytes, 2);
    assert_int_equal(onv_node_attr(n, "fs")->count, 2);
    assert_true(onv_node_attr(n, "fs")->floats[1] == 2.0f);
    assert_int_equal(onv_node_attr(n, "is")->count, 3);
    assert_int_equal(onv_node_attr(n, "is")->ints[2], 5);
    assert_int_equal(onv_node_attr(n, "ss")->count, 2);
    assert_string_equal(onv_node_attr(n, "ss")->strings[0], "p");
    assert_int_equal(onv_node_attr(n, "gs")->count, 2);
    assert_string_equal(model->graphs.at[onv_node_attr(n, "gs")->graphs[1].index].name, "n/gs_1");
    assert_string_equal(built_shape(model, onv_node_attr(n, "tp")->type), "[5]");
    assert_int_equal(onv_node_attr(n, "ts")->count, 1);
    assert_int_equal(onv_node_attr(n, "none")->count, 0);
    built_done(model, file);
}

static msg *model_with_attr(msg *attr)
{
    msg *node = m_node("Any", "n", "x", "y"), *graph = m_graph("x", "y");
    m_put(node, N_ATTR, attr);
    m_put(graph, G_NODE, node);
    return m_model(graph);
}

TEST(attributes_without_their_value)
{
    built_refuse(model_with_attr(m_attr("t", ONV_ATTR_TENSOR)), ONV_ERR_MODEL, "'t' says type 4",
                 "n");
    built_refuse(model_with_attr(m_attr("g", ONV_ATTR_GRAPH)), ONV_ERR_MODEL, "'g' says type 5",
                 "n");
    built_refuse(model_with_attr(m_attr("x", (onv_attr_kind)15)), ONV_ERR_MODEL, "unknown type 15",
                 "n");
    built_refuse(model_with_attr(m_attr_ref("a", ONV_ATTR_INT, "b")), ONV_ERR_MODEL,
                 "refers to 'b' of a function, but stands in none", "n");
}
