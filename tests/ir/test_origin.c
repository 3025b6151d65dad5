/* The module of a node: which of its name, its weights and its metadata tells. */
#include "ir/notes.h"
#include "ir/origin.h"
#include "support/flow.h"
#include "support/test.h"

/* What the node of that op_type came from, as text; "-" where nothing tells. */
static const char *origin_of(const onv_model *m, const char *op_type)
{
    static char text[128];
    for (uint32_t i = 0; i < m->nodes.count; i++) {
        if (strcmp(m->nodes.at[i].op_type, op_type) != 0) continue;
        onv_origin origin = onv_node_origin(m, &m->nodes.at[i]);
        if (origin.path == NULL) return "-";
        assert_true(origin.length < sizeof text);
        assert_true(origin.separator == (strchr(m->nodes.at[i].name, '/') != NULL ? '/' : '.'));
        memcpy(text, origin.path, origin.length);
        text[origin.length] = '\0';
        return text;
    }
    fail_msg("no %s", op_type);
    return NULL;
}

TEST(names_and_weights)
{
    OWNED_MODEL m = model_new(17);
    OWNED_FLOW f;
    model_add(m, "in x f32[4,4]", "weight layer.0.fc.weight f32[4,4]", "weight plain f32[4,4]",
              "a = MatMul(x layer.0.fc.weight) /layer/layer.1/MatMul",
              "b = Add(a layer.0.fc.weight)", "c = Mul(b plain) block.2.Mul", "d = Relu(c) relu",
              "e = Neg(d) /Neg", "out e f32");
    flow_open_model(&f, m, NULL);
    assert_string_equal(origin_of(&f.model, "MatMul"), "/layer/layer.1");
    assert_string_equal(origin_of(&f.model, "Add"), "layer.0.fc");
    assert_string_equal(origin_of(&f.model, "Mul"), "block.2");
    assert_string_equal(origin_of(&f.model, "Relu"), "-");
    assert_string_equal(origin_of(&f.model, "Neg"), ""); /* the model itself */
}

TEST(metadata_and_weights)
{
    static const struct {
        const char *scope, *weight, *expected;
    } cases[] = {
        {"layer1.0.bn1", "layer1.0.conv1.weight", "layer1.0.conv1"}, /* a folded norm */
        {"bn1", "conv1.weight", "conv1"},
        {"layer.1.attention", "layer.1.attention.out.weight", "layer.1.attention.out"},
        {"layer.1.attention", "layer.1.attention.weight", "layer.1.attention"},
        {"layer.1.norm", "layer.0.norm.weight", "layer.1.norm"}, /* one weight for equal ones */
        {"encoder.norm", "encoder.layer.0.norm.weight", "encoder.norm"},
        {"norm", "encoder.norm.weight", "norm"},
        {"layer.1", "layer.10.weight", "layer.10"}, /* beside it */
        {"layer.1.norm", "plain", "layer.1.norm"},
        {"", "fc.weight", "fc"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        OWNED_MODEL m = model_new(17);
        OWNED_FLOW f;
        char inputs[64] = "x ";
        model_input(m, "x", "f32[4,4]");
        model_weight(m, cases[i].weight, "f32[4,4]");
        model_node(m, "MatMul", "matmul", strcat(inputs, cases[i].weight), "y", "");
        model_output(m, "y", "f32");
        flow_open_model(&f, m, NULL);
        const onv_notes notes = {.scope = cases[i].scope, .source_op = ""};
        f.model.nodes.at[0].notes = &notes;
        assert_string_equal(origin_of(&f.model, "MatMul"), cases[i].expected);
    }
}
