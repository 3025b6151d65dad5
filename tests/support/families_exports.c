/* Families of graphs as exporters write them: names of modules, arithmetic on shapes, notes, quantized layers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/families.h"

enum { PATH = 96, N_PATHS = 8 };

/* "/model/layers.7/WHAT"; used before the next eight are made. */
static const char *in_layer(unsigned layer, const char *what)
{
    static char paths[N_PATHS][PATH];
    static unsigned next;
    char *path = paths[next++ % N_PATHS];
    snprintf(path, PATH, "/model/layers.%u/%s", layer, what);
    return path;
}

/* A node of a layer, called as what it makes; inputs with a tilde are of the layer, others of the graph. */
static void layer_node(model *m, unsigned layer, const char *op, const char *inputs,
                       const char *output, const char *attributes)
{
    char all[4 * PATH] = "", one[PATH];
    for (int used = 0; sscanf(inputs, "%95s%n", one, &used) == 1; inputs += used) {
        if (all[0] != '\0') strcat(all, " ");
        strcat(all, one[0] == '~' ? in_layer(layer, one + 1) : one);
    }
    model_node(m, op, in_layer(layer, output), all, in_layer(layer, output), attributes);
}

/* Without notes, with sizes that the exporter asks for again and again. */
static void attention_layers(model *m, unsigned n)
{
    enum { NODES = 24 };
    const int64_t heads[] = {4, 8}, whole[] = {32};
    char x[PATH] = "x";
    model_input(m, "x", "f32[batch,16,32]");
    model_ints(m, "heads", 2, heads);
    model_ints(m, "whole", 1, whole);
    model_add(m, "int zero 0", "int one 1", "ints axes 0");
    model_float(m, "root", 2.8f);
    model_weight(m, "scale", "f32[32]");
    for (unsigned i = 0; i < n / NODES; i++) {
        static const char *const parts[] = {"q", "k", "v", "out"};
        model_weight(m, in_layer(i, "fc.weight"), "f32[32,32]");
        layer_node(m, i, "LayerNormalization", strcat(strcpy((char[PATH + 8]){0}, x), " scale"),
                   "norm", "axis=-1");
        layer_node(m, i, "Shape", "~norm", "attn/Shape", "");
        layer_node(m, i, "Gather", "~attn/Shape zero", "attn/batch", "axis=0");
        layer_node(m, i, "Gather", "~attn/Shape one", "attn/length", "axis=0");
        layer_node(m, i, "Unsqueeze", "~attn/batch axes", "attn/Unsqueeze", "");
        layer_node(m, i, "Unsqueeze", "~attn/length axes", "attn/Unsqueeze_1", "");
        layer_node(m, i, "Concat", "~attn/Unsqueeze ~attn/Unsqueeze_1 heads", "attn/Concat",
                   "axis=0");
        layer_node(m, i, "Concat", "~attn/Unsqueeze ~attn/Unsqueeze_1 whole", "attn/Concat_1",
                   "axis=0");
        for (unsigned k = 0; k < 3; k++) {
            char weight[PATH], product[40], shaped[40], turned[40], inputs[2 * PATH];
            snprintf(weight, sizeof weight, "model.layers.%u.%s.weight", i, parts[k]);
            snprintf(product, sizeof product, "attn/%s/MatMul", parts[k]);
            snprintf(shaped, sizeof shaped, "attn/%s/Reshape", parts[k]);
            snprintf(turned, sizeof turned, "attn/%s/Transpose", parts[k]);
            model_weight(m, weight, "f32[32,32]");
            snprintf(inputs, sizeof inputs, "~norm %s", weight);
            layer_node(m, i, "MatMul", inputs, product, "");
            snprintf(inputs, sizeof inputs, "~%s ~attn/Concat", product);
            layer_node(m, i, "Reshape", inputs, shaped, "");
            snprintf(inputs, sizeof inputs, "~%s", shaped);
            layer_node(m, i, "Transpose", inputs, turned,
                       k == 1 ? "perm=[0,2,3,1]" : "perm=[0,2,1,3]");
        }
        layer_node(m, i, "MatMul", "~attn/q/Transpose ~attn/k/Transpose", "attn/MatMul", "");
        layer_node(m, i, "Div", "~attn/MatMul root", "attn/Div", "");
        layer_node(m, i, "Softmax", "~attn/Div", "attn/Softmax", "axis=-1");
        layer_node(m, i, "MatMul", "~attn/Softmax ~attn/v/Transpose", "attn/MatMul_1", "");
        layer_node(m, i, "Transpose", "~attn/MatMul_1", "attn/Transpose", "perm=[0,2,1,3]");
        layer_node(m, i, "Reshape", "~attn/Transpose ~attn/Concat_1", "attn/Reshape", "");
        layer_node(m, i, "MatMul", "~attn/Reshape ~fc.weight", "fc", "");
        layer_node(m, i, "Add", strcat(strcpy((char[PATH + 8]){0}, x), " ~fc"), "Add", "");
        strcpy(x, in_layer(i, "Add"));
    }
    model_output(m, x, "f32");
}

/* With what the default exporter notes of each node: the lines of Python that called it, a thousand bytes of them. */
static void noted_layers(model *m, unsigned n)
{
    enum { FRAMES = 8 };
    char trace[FRAMES * 160], *at = trace;
    for (unsigned i = 0; i < FRAMES; i++)
        at += sprintf(at,
                      "File \"/usr/lib/python3/site-packages/net/modeling.py\", line %u, in "
                      "forward\n    hidden = self.layers[%u](hidden, attention_mask=mask)\n",
                      100 + i, i);
    model_input(m, "t0", "f32[N,16]");
    for (unsigned i = 0; i < n; i++) {
        char module[PATH], arguments[PATH];
        snprintf(module, sizeof module, "model.layers.%u.fc", i / 2);
        snprintf(arguments, sizeof arguments, "%%t%u, %%p_w%u", i, i);
        if (i % 2 == 0) model_weight(m, family_name("w", i), "f32[16,16]");
        model_source(m, module, family_name(i % 2 ? "relu_" : "linear_", i));
        model_class(m, "torch.nn.modules.linear.Linear",
                    i % 2 ? "aten.relu.default" : "aten.linear.default");
        model_call(m, i % 2 ? "aten.relu.default" : "aten.linear.default", arguments);
        model_note(m, "pkg.torch.onnx.stack_trace", trace);
        model_node(m, i % 2 ? "Relu" : "MatMul", family_name("node_", i),
                   i % 2 ? family_name("t", i)
                         : family_both(family_name("t", i), family_name("w", i)),
                   family_name("t", i + 1), "");
    }
    model_output(m, family_name("t", n), "f32");
}

/* Weights in 8 bits, and activations that are rounded between layers. */
static void quantized_layers(model *m, unsigned n)
{
    enum { NODES = 4 };
    model_input(m, "t0", "f32[N,16]");
    model_float(m, "scale", 0.1f);
    model_weight_data(m, "zero", "i8[]", NULL, 1);
    for (unsigned i = 0; i < n / NODES; i++) {
        char input[PATH], weight[PATH];
        snprintf(input, sizeof input, "t%u scale zero", i);
        snprintf(weight, sizeof weight, "w%u scale zero", i);
        model_weight(m, family_name("w", i), "i8[16,16]");
        model_node(m, "QuantizeLinear", in_layer(i, "Quantize"), input, family_name("q", i), "");
        snprintf(input, sizeof input, "q%u scale zero", i);
        model_node(m, "DequantizeLinear", in_layer(i, "Dequantize"), input, family_name("x", i),
                   "");
        model_node(m, "DequantizeLinear", in_layer(i, "weight/Dequantize"), weight,
                   family_name("f", i), "");
        model_node(m, "MatMul", in_layer(i, "MatMul"),
                   family_both(family_name("x", i), family_name("f", i)), family_name("t", i + 1),
                   "");
    }
    model_output(m, family_name("t", n / NODES), "f32");
}

static void scans(model *m, unsigned n)
{
    model_add(m, "in x f32[5,4]", "in s0 f32[4]");
    for (unsigned i = 0; i < n / 3; i++) {
        char outputs[PATH];
        model_add(m, "begin body", "in state f32[4]", "in item f32[4]", "next = Add(state item)",
                  "each = Relu(next)", "out next f32", "out each f32", "end");
        snprintf(outputs, sizeof outputs, "s%u y%u", i + 1, i);
        model_node(m, "Scan", "", family_both(family_name("s", i), "x"), outputs,
                   "num_scan_inputs=1");
    }
    model_output(m, family_name("s", n / 3), "f32");
}

/* Branches in branches. */
static void nest(model *m, unsigned depth, unsigned number)
{
    for (unsigned k = 0; k < 2; k++) {
        model_begin(m, k == 0 ? "then_branch" : "else_branch");
        if (k == 0 && depth > 0)
            nest(m, depth - 1, number);
        else
            model_node(m, "Relu", "", family_name("t", number), "r", "");
        model_output(m, k == 0 && depth > 0 ? family_name("d", depth - 1) : "r", "f32");
        model_end(m);
    }
    model_node(m, "If", "", "c", family_name("d", depth), "");
}

static void nested_branches(model *m, unsigned n)
{
    enum { DEPTH = 10 };
    model_add(m, "in t0 f32[N,16]", "in c bool[]");
    for (unsigned i = 0; i < n / (2 * DEPTH + 3); i++) {
        for (unsigned k = 0; k < 2; k++) {
            model_begin(m, k == 0 ? "then_branch" : "else_branch");
            if (k == 0) nest(m, DEPTH - 1, i);
            if (k == 1) model_node(m, "Relu", "", family_name("t", i), "r", "");
            model_output(m, k == 0 ? family_name("d", DEPTH - 1) : "r", "f32");
            model_end(m);
        }
        model_node(m, "If", "", "c", family_name("t", i + 1), "");
    }
    model_output(m, family_name("t", n / (2 * DEPTH + 3)), "f32");
}

/* Notes of the model itself, of no exporter that is known. */
static void metadata(model *m, unsigned n)
{
    model_input(m, "x", "f32[N,16]");
    for (unsigned i = 0; i < n; i++)
        model_graph_note(m, family_name("key", i), family_name("value", i));
    model_add(m, "y = Relu(x)", "out y f32");
}

const family export_families[] = {
    {"attention-layers", attention_layers, true, 0, NULL},
    {"noted-layers", noted_layers, true, 0, NULL},
    {"quantized-layers", quantized_layers, true, 0, NULL},
    {"scans", scans, false, 0, NULL},
    {"nested-branches", nested_branches, false, 0, NULL},
    {"metadata", metadata, true, 0, NULL},
    {0},
};
