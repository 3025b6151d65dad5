#include "support/encoder.h"

#include <stdio.h>

/* Noted by the default exporter, or named by the older one; `member` is the module of the layer, "" for itself. */
static void encoder_node(model *m, bool is_named, const char *member, const char *op,
                         const char *in, const char *out, const char *attributes)
{
    char name[64] = "";
    if (is_named) {
        snprintf(name, sizeof name, "/layers.0/%s%s_%s", member, op, out);
    } else {
        model_add(m, "source layers.0 call",
                  "class torch.nn.modules.transformer.TransformerEncoderLayer aten.call.default");
    }
    model_node(m, op, name, in, out, attributes);
}

static model *layer(const char *perm, const char *bias)
{
    static const int64_t heads[] = {2, 2, 4, 8}, rows[] = {2, 4, 16}, from[] = {0}, to[] = {16},
                         axis[] = {2};
    model *m = model_read(
        17, "in x f32[2,4,16]", "weight layers.0.qkv.weight f32[16,48]",
        "weight layers.0.out.weight f32[16,16]", "weight layers.0.linear1.weight f32[16,32]",
        "weight layers.0.linear2.weight f32[32,16]", "weight layers.0.norm.weight f32[16]");
    model_ints(m, "heads", 4, heads);
    model_ints(m, "rows", 3, rows);
    model_ints(m, "from", 1, from);
    model_ints(m, "to", 1, to);
    model_ints(m, "axis", 1, axis);
    encoder_node(m, bias != NULL, "self_attn/", "Transpose", "x", "t", perm);
    encoder_node(m, bias != NULL, "self_attn/", "MatMul", "t layers.0.qkv.weight",
                 bias != NULL ? "product" : "qkv", "");
    if (bias != NULL) {
        char inputs[64];
        model_weight(m, bias, "f32[48]");
        snprintf(inputs, sizeof inputs, "product %s", bias);
        encoder_node(m, true, "self_attn/", "Add", inputs, "qkv", "");
    }
    encoder_node(m, bias != NULL, "self_attn/", "Slice", "qkv from to axis", "q", "");
    encoder_node(m, bias != NULL, "self_attn/", "Reshape", "q heads", "scores", "");
    encoder_node(m, bias != NULL, "self_attn/", "Softmax", "scores", "p", "");
    encoder_node(m, bias != NULL, "self_attn/", "Reshape", "p rows", "v", "");
    encoder_node(m, bias != NULL, "self_attn/", "MatMul", "v layers.0.out.weight", "o", "");
    encoder_node(m, bias != NULL, "", "Add", "x o", "a", "");
    encoder_node(m, bias != NULL, "norm1/", "LayerNormalization", "a layers.0.norm.weight", "n",
                 "");
    encoder_node(m, bias != NULL, "linear1/", "MatMul", "n layers.0.linear1.weight", "f", "");
    encoder_node(m, bias != NULL, "", "Relu", "f", "r", "");
    encoder_node(m, bias != NULL, "linear2/", "MatMul", "r layers.0.linear2.weight", "h", "");
    encoder_node(m, bias != NULL, "", "Add", "n h", "b", "");
    encoder_node(m, bias != NULL, "norm2/", "LayerNormalization", "b layers.0.norm.weight", "y",
                 "");
    model_output(m, "y", "f32");
    return m;
}

model *encoder_layer(const char *perm)
{
    return layer(perm, NULL);
}

static void attention_node(model *m, const char *op, const char *in, const char *out,
                           const char *attributes)
{
    model_add(m, "source attention call",
              "class torch.nn.modules.activation.MultiheadAttention aten.call.default");
    model_node(m, op, "", in, out, attributes);
}

model *attention_module(bool has_weights, bool has_mask)
{
    static const int64_t heads[] = {2, 2, 4, 8}, weights[] = {4, 4, 8}, rows[] = {2, 4, 16},
                         from[] = {0}, to[] = {16}, axis[] = {2};
    model *m = model_read(17, "in x f32[2,4,16]", "weight qkv.weight f32[16,48]",
                          "weight out.weight f32[16,16]");
    model_ints(m, "heads", 4, heads);
    model_ints(m, "weights", 3, weights);
    model_ints(m, "rows", 3, rows);
    model_ints(m, "from", 1, from);
    model_ints(m, "to", 1, to);
    model_ints(m, "axis", 1, axis);
    attention_node(m, "Transpose", "x", "t", "perm=[1,0,2]");
    attention_node(m, "MatMul", "t qkv.weight", "qkv", "");
    attention_node(m, "Slice", "qkv from to axis", "q", "");
    attention_node(m, "Reshape", has_weights ? "q weights" : "q heads", "scores", "");
    if (has_mask) model_weight(m, "mask", "f32[4,8]");
    if (has_mask) attention_node(m, "Add", "scores mask", "masked", "");
    attention_node(m, "Softmax", has_mask ? "masked" : "scores", "p", "");
    attention_node(m, "Reshape", "p rows", "v", "");
    attention_node(m, "MatMul", "v out.weight", "y", "");
    model_output(m, "y", "f32");
    return m;
}

model *encoder_layer_named(const char *bias)
{
    return layer("perm=[1,0,2]", bias);
}
