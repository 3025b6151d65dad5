#include "support/encoder.h"

static void encoder_node(model *m, const char *op, const char *in, const char *out,
                         const char *attributes)
{
    model_source(m, "layers.0", "call");
    model_class(m, "torch.nn.modules.transformer.TransformerEncoderLayer", "aten.call.default");
    model_node(m, op, "", in, out, attributes);
}

model *encoder_layer(const char *perm)
{
    static const int64_t heads[] = {2, 2, 4, 8}, rows[] = {2, 4, 16}, from[] = {0}, to[] = {16},
                         axis[] = {2};
    model *m = model_new(17);
    model_input(m, "x", "f32[2,4,16]");
    model_weight(m, "layers.0.qkv.weight", "f32[16,48]");
    model_weight(m, "layers.0.out.weight", "f32[16,16]");
    model_weight(m, "layers.0.linear1.weight", "f32[16,32]");
    model_weight(m, "layers.0.linear2.weight", "f32[32,16]");
    model_weight(m, "layers.0.norm.weight", "f32[16]");
    model_ints(m, "heads", 4, heads);
    model_ints(m, "rows", 3, rows);
    model_ints(m, "from", 1, from);
    model_ints(m, "to", 1, to);
    model_ints(m, "axis", 1, axis);
    encoder_node(m, "Transpose", "x", "t", perm);
    encoder_node(m, "MatMul", "t layers.0.qkv.weight", "qkv", "");
    encoder_node(m, "Slice", "qkv from to axis", "q", "");
    encoder_node(m, "Reshape", "q heads", "scores", "");
    encoder_node(m, "Softmax", "scores", "p", "");
    encoder_node(m, "Reshape", "p rows", "v", "");
    encoder_node(m, "MatMul", "v layers.0.out.weight", "o", "");
    encoder_node(m, "Add", "x o", "a", "");
    encoder_node(m, "LayerNormalization", "a layers.0.norm.weight", "n", "");
    encoder_node(m, "MatMul", "n layers.0.linear1.weight", "f", "");
    encoder_node(m, "Relu", "f", "r", "");
    encoder_node(m, "MatMul", "r layers.0.linear2.weight", "h", "");
    encoder_node(m, "Add", "n h", "b", "");
    encoder_node(m, "LayerNormalization", "b layers.0.norm.weight", "y", "");
    model_output(m, "y", "f32");
    return m;
}
