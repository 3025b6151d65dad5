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

/* Nodes with a note of a pattern, as long as it may be, and one with the rest. */
static void repeat(model *m, unsigned n, const char *key, const char *begin, const char *pattern)
{
    static char text[LONGEST + 200];
    size_t left = (size_t)n * PER_NODE, length = strlen(pattern);
    unsigned i = 0;
    model_input(m, "t0", "f32[4,16]");
    while (left > 0) {
        size_t used = (size_t)sprintf(text, "%s", begin), most = left < LONGEST ? left : LONGEST;
        for (; used < most; used += length) memcpy(text + used, pattern, length + 1);
        model_add(m, "source a.b relu", "class A aten.relu.default");
        model_note(m, key, text);
        model_node(m, "Relu", "", name("t", i), name("t", i + 1), "");
        left -= most;
        i++;
    }
    model_output(m, name("t", i), "f32");
}

#define PATTERN(family, key, begin, pattern)                                                       \
    static void family(model *m, unsigned n)                                                       \
    {                                                                                              \
        repeat(m, n, key, begin, pattern);                                                         \
    }

PATTERN(frames, TRACE, "", "File \"a\", line 5, in forward\n")
PATTERN(quotes, TRACE, "", "File \"")
PATTERN(applications, TRACE, "", "A.apply(")
PATTERN(application_lines, TRACE, "", "A.apply(\n")
PATTERN(aliases, TRACE, "", "File \"a\", line 5, in forward\n  y = f(x)\n")
PATTERN(scopes, SCOPES, "[", "'a',")
PATTERN(scope_slices, SCOPES, "['',", "'a.slice().b',")
PATTERN(scope_path, SCOPES, "['", "a.")
PATTERN(classes, CLASSES, "[", "'torch.a',")
PATTERN(line_words, TRACE, CODE, "x ")
PATTERN(line_equals, TRACE, CODE, "x = ")
PATTERN(line_targets, TRACE, CODE, "x, ")
PATTERN(line_brackets, TRACE, CODE, "([{")
PATTERN(line_caches, TRACE, CODE, "relu(cache[")
PATTERN(line_elus, TRACE, CODE, "elu_(")
PATTERN(line_members, TRACE, CODE, ".self.relu")
PATTERN(args_clones, CALL, ARGS, "%clone")
PATTERN(args_parameters, CALL, ARGS, "%p_a, ")
PATTERN(args_lists, CALL, ARGS, "[1, ")
PATTERN(args_attention, CALL, "aten.scaled_dot_product_attention.default](args = (", "dropout_p: ")
PATTERN(args_linear, CALL, "", "aten.linear.default](args = (, ")
PATTERN(rules, RULES, "", "FuseConvPad, ")

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

enum { ONE_NOTE = LONGEST / PER_NODE };

const family note_families[] = {
    {"note-frames", frames, false, ONE_NOTE, NULL},
    {"note-quotes", quotes, false, ONE_NOTE, NULL},
    {"note-applications", applications, false, ONE_NOTE, NULL},
    {"note-application-lines", application_lines, false, ONE_NOTE, NULL},
    {"note-aliases", aliases, false, ONE_NOTE, NULL},
    {"note-scopes", scopes, false, ONE_NOTE, NULL},
    {"note-slices", scope_slices, false, ONE_NOTE, NULL},
    {"note-path", scope_path, false, ONE_NOTE, NULL},
    {"note-classes", classes, false, ONE_NOTE, NULL},
    {"note-line-words", line_words, false, ONE_NOTE, NULL},
    {"note-line-equals", line_equals, false, ONE_NOTE, NULL},
    {"note-line-targets", line_targets, false, ONE_NOTE, NULL},
    {"note-line-brackets", line_brackets, false, ONE_NOTE, NULL},
    {"note-line-caches", line_caches, false, ONE_NOTE, NULL},
    {"note-line-elus", line_elus, false, ONE_NOTE, NULL},
    {"note-line-members", line_members, false, ONE_NOTE, NULL},
    {"note-clones", args_clones, false, ONE_NOTE, NULL},
    {"note-parameters", args_parameters, false, ONE_NOTE, NULL},
    {"note-lists", args_lists, false, ONE_NOTE, NULL},
    {"note-attention", args_attention, false, ONE_NOTE, NULL},
    {"note-linear", args_linear, false, ONE_NOTE, NULL},
    {"note-rules", rules, false, ONE_NOTE, NULL},
    {"listed-parameters", listed_parameters, true, 0, NULL},
    {"listed-buffers", listed_buffers, false, 0, NULL},
    {"read-parameters", read_parameters, true, 0, NULL},
    {"lists-again", lists_again, false, 0, NULL},
    {"notes-again", notes_again, false, 0, NULL},
    {"folded-buffers", folded_buffers, true, 0, NULL},
    {"folded-names", folded_names, false, ONE_NOTE, NULL},
    {"statements", statements, true, 0, NULL},
    {0},
};
