/* Families of notes of PyTorch's exporter: one pattern again and again in a note of a node, and lists of the graph. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/families.h"

#define SCOPES    "pkg.torch.onnx.name_scopes"
#define CLASSES   "pkg.torch.onnx.class_hierarchy"
#define TRACE     "pkg.torch.onnx.stack_trace"
#define CALL      "pkg.torch.onnx.fx_node"
#define RULES     "pkg.onnxscript.rewriter.rule_name"
#define SIGNATURE "pkg.torch.export.ExportedProgram.graph_signature"
#define CODE      "File \"a\", line 5, in forward\n    "
#define ARGS      "](args = ("

#define name family_name
#define both family_both

/* Bytes of a note for each node that is asked for; a note has 60,000 at most. */
enum { PER_NODE = 15, LONGEST = 60000 };

/* Nodes with a note that is as long as it may be, and one with the rest. */
void family_repeat(model *m, unsigned n, const family_note *note)
{
    static char text[LONGEST + 200];
    size_t left = (size_t)n * PER_NODE, length = strlen(note->pattern);
    unsigned i = 0;
    model_input(m, "t0", "f32[4,16]");
    while (left > 0) {
        size_t used = (size_t)sprintf(text, "%s", note->begin),
               most = left < LONGEST ? left : LONGEST;
        for (; used < most; used += length) memcpy(text + used, note->pattern, length + 1);
        model_add(m, "source a.b relu", "class A aten.relu.default");
        model_note(m, note->key, text);
        model_node(m, "Relu", "", name("t", i), name("t", i + 1), "");
        left -= most;
        i++;
    }
    model_output(m, name("t", i), "f32");
}

/* Lines of a list of the graph; `reads`: each is read by a node whose call names it. */
static void list_entries(model *m, unsigned n, const char *kind, bool reads)
{
    enum { MOST = 60000 };
    unsigned listed = n < MOST ? n : MOST;
    char *text = malloc((size_t)listed * 60 + 1), *at = text;
    assert(text != NULL);
    *text = '\0';
    for (unsigned i = 0; i < listed; i++) at += sprintf(at, "p_w%u: %s target='w%u'\n", i, kind, i);
    model_graph_note(m, SIGNATURE, text);
    free(text);
    model_input(m, "t0", "f32[4,16]");
    for (unsigned i = 0; reads && i < n; i++) {
        char arguments[80];
        model_weight(m, name("w", i), "f32[16,16]");
        snprintf(arguments, sizeof arguments, "%%t%u, %%p_w%u", i, i);
        model_source(m, name("layers.", i), name("linear_", i));
        model_class(m, "torch.nn.modules.linear.Linear", "aten.linear.default");
        model_call(m, "aten.linear.default", arguments);
        model_node(m, "MatMul", "", both(name("t", i), name("w", i)), name("t", i + 1), "");
    }
    if (!reads) model_node(m, "Relu", "", "t0", "t1", "");
    model_output(m, reads ? name("t", n) : "t1", "f32");
}

static void listed_parameters(model *m, unsigned n)
{
    list_entries(m, n, "PARAMETER", false);
}

static void listed_buffers(model *m, unsigned n)
{
    list_entries(m, n, "BUFFER", false);
}

static void read_parameters(model *m, unsigned n)
{
    list_entries(m, n, "PARAMETER", true);
}

/* Of several notes of a kind one is used. */
static void lists_again(model *m, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char text[80];
        snprintf(text, sizeof text, "p_w%u: PARAMETER target='w%u'\n", i, i);
        model_graph_note(m, SIGNATURE, text);
    }
    model_add(m, "in x f32[4,16]", "y = Relu(x)", "out y f32");
}

static void notes_again(model *m, unsigned n)
{
    model_input(m, "x", "f32[4,16]");
    for (unsigned i = 0; i < n; i++) model_note(m, SCOPES, "['', 'a', 'relu']");
    model_add(m, "y = Relu(x)", "out y f32");
}

/* Constants that were computed of buffers, each of another one. */
static void folded_buffers(model *m, unsigned n)
{
    list_entries(m, n, "BUFFER", false);
    for (unsigned i = 0; i < n; i++) {
        char from[80];
        snprintf(from, sizeof from, "['w%u', 'mul', 'expand']", i);
        model_weight(m, name("expand_", i), "f32[16]");
        model_folded(m, name("expand_", i), from);
        model_source(m, "a", name("add_", i));
        model_class(m, "A", "aten.add.Tensor");
        model_node(m, "Add", "", both("t1", name("expand_", i)), name("u", i), "");
    }
}

/* One constant that was computed of very many values. */
static void folded_names(model *m, unsigned n)
{
    enum { MOST = 4000 };
    char *text = malloc(MOST * 16 + 8), *at = text;
    assert(text != NULL);
    for (unsigned done = 0, k = 0; done < n; done += MOST, k++) {
        at = text + sprintf(text, "[");
        for (unsigned i = 0; i < MOST && done + i < n; i++) at += sprintf(at, "'mul_%u', ", i);
        model_weight(m, name("cat_", k), "f32[16]");
        model_folded(m, name("cat_", k), text);
        model_node(m, "Add", "", both("x", name("cat_", k)), name("y", k), "");
    }
    free(text);
    model_add(m, "in x f32[4,16]", "out y0 f32");
}

/* Modules that call each other in lines of Python, and bind what they get. */
static void statements(model *m, unsigned n)
{
    model_input(m, "t0", "f32[4,16]");
    for (unsigned i = 0; i < n; i++) {
        char line[100];
        snprintf(line, sizeof line, "x%u = F.relu(x%u)", i + 1, i);
        model_source(m, "net", name("relu_", i));
        model_class(m, "Block", "aten.relu.default");
        model_statement(m, 10 + i, line);
        model_node(m, "Relu", "", name("t", i), name("t", i + 1), "");
    }
    model_output(m, name("t", n), "f32");
}

/* With what the default exporter notes of each node: the lines of Python that called it, a thousand bytes of them. */
static void noted_layers(model *m, unsigned n)
{
    enum { FRAMES = 8, MODULE = 96 };
    char trace[FRAMES * 160], *at = trace;
    for (unsigned i = 0; i < FRAMES; i++)
        at += sprintf(at,
                      "File \"/usr/lib/python3/site-packages/net/modeling.py\", line %u, in "
                      "forward\n    hidden = self.layers[%u](hidden, attention_mask=mask)\n",
                      100 + i, i);
    model_input(m, "t0", "f32[N,16]");
    for (unsigned i = 0; i < n; i++) {
        char module[MODULE], arguments[MODULE];
        snprintf(module, sizeof module, "model.layers.%u.fc", i / 2);
        snprintf(arguments, sizeof arguments, "%%t%u, %%p_w%u", i, i);
        if (i % 2 == 0) model_weight(m, name("w", i), "f32[16,16]");
        model_source(m, module, name(i % 2 ? "relu_" : "linear_", i));
        model_class(m, "torch.nn.modules.linear.Linear",
                    i % 2 ? "aten.relu.default" : "aten.linear.default");
        model_call(m, i % 2 ? "aten.relu.default" : "aten.linear.default", arguments);
        model_note(m, TRACE, trace);
        model_node(m, i % 2 ? "Relu" : "MatMul", name("node_", i),
                   i % 2 ? name("t", i) : both(name("t", i), name("w", i)), name("t", i + 1), "");
    }
    model_output(m, name("t", n), "f32");
}

/* Notes of the model itself, of no exporter that is known. */
static void metadata(model *m, unsigned n)
{
    model_input(m, "x", "f32[N,16]");
    for (unsigned i = 0; i < n; i++) model_graph_note(m, name("key", i), name("value", i));
    model_add(m, "y = Relu(x)", "out y f32");
}

enum { ONE_NOTE = LONGEST / PER_NODE };

#define NOTE(of, first, again) .note = {.key = (of), .begin = (first), .pattern = (again)}

const family note_families[] = {
    {"note-frames", false, ONE_NOTE, NOTE(TRACE, "", "File \"a\", line 5, in forward\n")},
    {"note-quotes", false, ONE_NOTE, NOTE(TRACE, "", "File \"")},
    {"note-applications", false, ONE_NOTE, NOTE(TRACE, "", "A.apply(")},
    {"note-application-lines", false, ONE_NOTE, NOTE(TRACE, "", "A.apply(\n")},
    {"note-aliases", false, ONE_NOTE,
     NOTE(TRACE, "", "File \"a\", line 5, in forward\n  y = f(x)\n")},
    {"note-scopes", false, ONE_NOTE, NOTE(SCOPES, "[", "'a',")},
    {"note-slices", false, ONE_NOTE, NOTE(SCOPES, "['',", "'a.slice().b',")},
    {"note-path", false, ONE_NOTE, NOTE(SCOPES, "['", "a.")},
    {"note-classes", false, ONE_NOTE, NOTE(CLASSES, "[", "'torch.a',")},
    {"note-line-words", false, ONE_NOTE, NOTE(TRACE, CODE, "x ")},
    {"note-line-equals", false, ONE_NOTE, NOTE(TRACE, CODE, "x = ")},
    {"note-line-targets", false, ONE_NOTE, NOTE(TRACE, CODE, "x, ")},
    {"note-line-brackets", false, ONE_NOTE, NOTE(TRACE, CODE, "([{")},
    {"note-line-caches", false, ONE_NOTE, NOTE(TRACE, CODE, "relu(cache[")},
    {"note-line-elus", false, ONE_NOTE, NOTE(TRACE, CODE, "elu_(")},
    {"note-line-members", false, ONE_NOTE, NOTE(TRACE, CODE, ".self.relu")},
    {"note-clones", false, ONE_NOTE, NOTE(CALL, ARGS, "%clone")},
    {"note-parameters", false, ONE_NOTE, NOTE(CALL, ARGS, "%p_a, ")},
    {"note-lists", false, ONE_NOTE, NOTE(CALL, ARGS, "[1, ")},
    {"note-attention", false, ONE_NOTE,
     NOTE(CALL, "aten.scaled_dot_product_attention.default](args = (", "dropout_p: ")},
    {"note-linear", false, ONE_NOTE, NOTE(CALL, "", "aten.linear.default](args = (, ")},
    {"note-rules", false, ONE_NOTE, NOTE(RULES, "", "FuseConvPad, ")},
    {"listed-parameters", true, .make = listed_parameters},
    {"listed-buffers", false, .make = listed_buffers},
    {"read-parameters", true, .make = read_parameters},
    {"lists-again", false, .make = lists_again},
    {"notes-again", false, .make = notes_again},
    {"folded-buffers", true, .make = folded_buffers},
    {"folded-names", false, .most = ONE_NOTE, .make = folded_names},
    {"statements", true, .make = statements},
    {"noted-layers", true, .make = noted_layers},
    {"metadata", true, .make = metadata},
    {0},
};
