#include "support/families.h"
#include "support/capture.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 48 };

const char *family_name(const char *prefix, unsigned i)
{
    static char names[8][NAME];
    static unsigned next;
    char *text = names[next++ % 8];
    snprintf(text, NAME, "%s%u", prefix, i);
    return text;
}

const char *family_both(const char *a, const char *b)
{
    static char lists[4][2 * NAME + 2];
    static unsigned next;
    char *text = lists[next++ % 4];
    snprintf(text, sizeof lists[0], "%s %s", a, b);
    return text;
}

char *family_list(const char *prefix, unsigned n)
{
    char *text = malloc((size_t)n * NAME), *at = text;
    assert(text != NULL);
    for (unsigned i = 0; i < n; i++) at += sprintf(at, "%s%u ", prefix, i);
    return text;
}

#define name family_name
#define both family_both
#define list family_list

/* The same numbers each time. */
static unsigned drawn(unsigned *state, unsigned below)
{
    *state = *state * 1664525u + 1013904223u;
    return (unsigned)((uint64_t)(*state >> 8) * below >> 24);
}

static void chain(model *m, unsigned n)
{
    model_input(m, "t0", "f32[N,16]");
    for (unsigned i = 0; i < n; i++) model_node(m, "Relu", "", name("t", i), name("t", i + 1), "");
    model_output(m, name("t", n), "f32");
}

static void linear_layers(model *m, unsigned n)
{
    model_input(m, "t0", "f32[N,16]");
    for (unsigned i = 0; i < n; i++) {
        char layer[NAME + 20];
        snprintf(layer, sizeof layer, "/layers.%u/MatMul", i);
        model_weight(m, name("w", i), "f32[16,16]");
        model_node(m, "MatMul", layer, both(name("t", i), name("w", i)), name("t", i + 1), "");
    }
    model_output(m, name("t", n), "f32");
}

static void residual_blocks(model *m, unsigned n)
{
    model_input(m, "r0", "f32[N,8,8,8]");
    for (unsigned i = 0; i < n; i++) {
        model_weight(m, name("w", i), "f32[8,8,3,3]");
        model_node(m, "Conv", name("/blocks.", i), both(name("r", i), name("w", i)), name("c", i),
                   "pads=[1,1,1,1]");
        model_node(m, "Relu", "", name("c", i), name("a", i), "");
        model_node(m, "Add", "", both(name("a", i), name("r", i)), name("r", i + 1), "");
    }
    model_output(m, name("r", n), "f32");
}

/* All of one half live until the other half reads them, the last made first. */
static void ladder(model *m, unsigned n)
{
    model_add(m, "in x f32[N,16]", "d0 = Relu(x)");
    for (unsigned i = 1; i < n; i++) model_node(m, "Relu", "", name("d", i - 1), name("d", i), "");
    model_node(m, "Relu", "", name("d", n - 1), "u0", "");
    for (unsigned i = 1; i < n; i++)
        model_node(m, "Add", "", both(name("u", i - 1), name("d", n - 1 - i)), name("u", i), "");
    model_output(m, name("u", n - 1), "f32");
}

static void readers_of_one(model *m, unsigned n)
{
    model_input(m, "x", "f32[N,16]");
    for (unsigned i = 0; i < n; i++) model_node(m, "Relu", "", "x", name("t", i), "");
    model_output(m, name("t", n - 1), "f32");
}

static void results(model *m, unsigned n)
{
    model_input(m, "x", "f32[N,16]");
    for (unsigned i = 0; i < n; i++) {
        model_node(m, "Relu", "", "x", name("t", i), "");
        model_output(m, name("t", i), "f32");
    }
}

/* Each reads two that were made some time before. */
static void tangle(model *m, unsigned n)
{
    unsigned state = 1;
    model_input(m, "t0", "f32[N,16]");
    for (unsigned i = 0; i < n; i++)
        model_node(m, "Add", "", both(name("t", drawn(&state, i + 1)), name("t", i)),
                   name("t", i + 1), "");
    model_output(m, name("t", n), "f32");
}

/* Sizes that differ, and lives of up to some hundred steps. */
static void sizes(model *m, unsigned n)
{
    enum { WINDOW = 200 };
    unsigned state = 2;
    for (unsigned i = 0; i < n / 2; i++) {
        char type[NAME];
        snprintf(type, sizeof type, "f32[%u]", 1 + drawn(&state, 100000));
        model_input(m, name("x", i), type);
        model_node(m, "Relu", "", name("x", i), name("t", i), "");
        model_node(m, "ReduceSum", "", name("t", i - drawn(&state, i < WINDOW ? i + 1 : WINDOW)),
                   name("s", i), "keepdims=0");
    }
    model_output(m, "s0", "f32");
}

static void unknown_operators(model *m, unsigned n)
{
    model_add(m, "import z 1", "in x f32[N,16]");
    for (unsigned i = 0; i < n; i++) {
        char op[NAME + 4];
        snprintf(op, sizeof op, "z::F%u", i);
        model_node(m, op, name("n", i), "x", name("t", i), "");
    }
    model_output(m, name("t", n - 1), "f32");
}

static void domains(model *m, unsigned n)
{
    model_input(m, "x", "f32[N,16]");
    for (unsigned i = 0; i < n; i++) {
        char op[NAME + 4];
        snprintf(op, sizeof op, "d%u::F", n - 1 - i);
        model_import(m, name("d", i), 1);
        model_node(m, op, "", "x", name("t", i), "");
    }
    model_output(m, name("t", n - 1), "f32");
}

static void free_dims(model *m, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char type[NAME + 12];
        snprintf(type, sizeof type, "f32[dim%u,4]", i);
        model_input(m, name("x", i), type);
    }
    model_add(m, "y = Relu(x0)", "out y f32");
}

/* Sums of ever more symbols. */
static void sums_of_dims(model *m, unsigned n)
{
    for (unsigned i = 0; i <= n; i++) {
        char type[NAME + 12];
        snprintf(type, sizeof type, "f32[dim%u,4]", i);
        model_input(m, name("x", i), type);
    }
    model_node(m, "Identity", "", "x0", "t0", "");
    for (unsigned i = 0; i < n; i++)
        model_node(m, "Concat", "", both(name("t", i), name("x", i + 1)), name("t", i + 1),
                   "axis=0");
    model_output(m, name("t", n), "f32");
}

static void shape_arithmetic(model *m, unsigned n)
{
    model_add(m, "in x f32[N,M]", "int one 1", "s0 = Shape(x)");
    for (unsigned i = 0; i < n; i++)
        model_node(m, i % 2 ? "Mul" : "Add", "", both(name("s", i), i % 2 ? "one" : "s0"),
                   name("s", i + 1), "");
    model_node(m, "ConstantOfShape", "", name("s", n), "y", "");
    model_output(m, "y", "f32");
}

/* Vectors whose contents are followed. */
static void known_vectors(model *m, unsigned n)
{
    static int64_t values[256];
    for (int i = 0; i < 256; i++) values[i] = i;
    model_ints(m, "v0", 256, values);
    model_input(m, "x", "f32[N,16]");
    for (unsigned i = 0; i < n; i++)
        model_node(m, "Add", "", both(name("v", i), "v0"), name("v", i + 1), "");
    model_add(m, "y = Relu(x)", "out y f32");
}

static void initializers(model *m, unsigned n)
{
    model_input(m, "x", "f32[N,16]");
    for (unsigned i = 0; i < n; i++) model_int(m, name("w", i), i);
    model_add(m, "y = Relu(x)", "out y f32");
}

static void inputs_of_a_node(model *m, unsigned n)
{
    enum { MOST = 30000 };
    for (unsigned begin = 0; begin < n; begin += MOST) {
        unsigned count = n - begin < MOST ? n - begin : MOST;
        OWNED_TEXT inputs = list("x", count);
        if (begin == 0)
            for (unsigned i = 0; i < count; i++) model_input(m, name("x", i), "f32[4,4]");
        model_node(m, "Concat", "", inputs, name("y", begin), "axis=0");
    }
    model_output(m, "y0", "f32");
}

static void outputs_of_a_node(model *m, unsigned n)
{
    char *outputs = list("t", n), type[NAME];
    snprintf(type, sizeof type, "f32[%u,4]", n);
    model_input(m, "x", type);
    model_node(m, "Split", "", "x", outputs, "axis=0");
    model_output(m, "t0", "f32");
    free(outputs);
}

static void attributes(model *m, unsigned n)
{
    char *text = malloc((size_t)n * NAME), *at = text;
    assert(text != NULL);
    for (unsigned i = 0; i < n; i++) at += sprintf(at, "a%u=1 ", i);
    model_add(m, "in x f32[N,16]", "import z 1");
    model_node(m, "z::F", "", "x", "y", text);
    model_output(m, "y", "f32");
    free(text);
}

static void declared_types(model *m, unsigned n)
{
    model_input(m, "x", "f32[N,16]");
    for (unsigned i = 0; i < n; i++) model_value_info(m, name("v", i), "f32[N,3]");
    model_add(m, "y = Relu(x)", "out y f32");
}

static void branches(model *m, unsigned n)
{
    model_add(m, "in c bool", "in t0 f32[N,16]");
    for (unsigned i = 0; i < n; i++) {
        for (int k = 0; k < 2; k++) {
            model_begin(m, k == 0 ? "then_branch" : "else_branch");
            model_node(m, k == 0 ? "Relu" : "Abs", "", name("t", i), name("b", i), "");
            model_output(m, name("b", i), "f32");
            model_end(m);
        }
        model_node(m, "If", "", "c", name("t", i + 1), "");
    }
    model_output(m, name("t", n), "f32");
}

/* What is moved and merged in one graph costs nothing in the others. */
static void transposes_in_branches(model *m, unsigned n)
{
    model_add(m, "in c bool", "in x f32[N,16]");
    for (unsigned i = 0; i < n; i++) {
        for (int k = 0; k < 2; k++) {
            model_begin(m, k == 0 ? "then_branch" : "else_branch");
            model_node(m, "Transpose", "", "x", name("a", i), "perm=[1,0]");
            model_node(m, k == 0 ? "Relu" : "Abs", "", name("a", i), name("b", i), "");
            model_output(m, name("b", i), "f32");
            model_end(m);
        }
        model_node(m, "If", "", "c", name("t", i), "");
    }
    model_output(m, name("t", n - 1), "f32");
}

static void loops(model *m, unsigned n)
{
    model_add(m, "in t0 f32[N,16]", "int trips 1000");
    for (unsigned i = 0; i < n; i++) {
        model_begin(m, "body");
        model_input(m, name("i", i), "i64");
        model_input(m, name("c", i), "bool");
        model_input(m, name("s", i), "f32");
        model_node(m, "Identity", "", name("c", i), name("g", i), "");
        model_node(m, "Relu", "", name("s", i), name("r", i), "");
        model_output(m, name("g", i), "bool");
        model_output(m, name("r", i), "f32");
        model_end(m);
        model_node(m, "Loop", "", both("trips -", name("t", i)), name("t", i + 1), "");
    }
    model_output(m, name("t", n), "f32");
}

static void sequences(model *m, unsigned n)
{
    model_add(m, "in x f32[N,16]", "s0 = SequenceConstruct(x)");
    for (unsigned i = 0; i < n; i++)
        model_node(m, "SequenceInsert", "", both(name("s", i), "x"), name("s", i + 1), "");
    model_node(m, "ConcatFromSequence", "", name("s", n), "y", "axis=0");
    model_output(m, "y", "f32");
}

static void long_names(model *m, unsigned n)
{
    enum { LONG = 400 };
    static char first[LONG + NAME], second[LONG + NAME];
    memset(first, 'n', LONG);
    memset(second, 'n', LONG);
    model_input(m, "x", "f32[N,16]");
    for (unsigned i = 0; i < n / 10; i++) {
        sprintf(second + LONG, "%u", i);
        model_node(m, "Relu", second, i == 0 ? "x" : first, second, "");
        memcpy(first, second, sizeof first);
    }
    model_output(m, first, "f32");
}

/* Modules in modules, no two alike. */
static void modules(model *m, unsigned n)
{
    model_add(m, "in t0 f32[N,16]", "weight w f32[16,16]");
    for (unsigned i = 0; i < n; i++) {
        char path[100];
        snprintf(path, sizeof path, "/a.%u/b.%u/c%u/MatMul", i % 7, i / 3, i);
        model_node(m, "MatMul", path, both(name("t", i), "w"), name("t", i + 1), "");
    }
    model_output(m, name("t", n), "f32");
}

/* What ONNX Runtime folds, fuses and drops. */
static void rewritten(model *m, unsigned n)
{
    model_input(m, "t0", "f32[N,16]");
    model_float(m, "half", 0.5f);
    for (unsigned i = 0; i < n; i++) {
        static const char *const kinds[] = {"Identity", "Sigmoid", "Transpose", "Neg"};
        model_node(m, kinds[i % 4], "", name("t", i), name("t", i + 1), "");
    }
    model_output(m, name("t", n), "f32");
}

static const family families[] = {
    {"chain", chain, true, 0, NULL},
    {"linear-layers", linear_layers, true, 0, NULL},
    {"residual-blocks", residual_blocks, true, 0, NULL},
    {"ladder", ladder, true, 0, NULL},
    {"readers-of-one", readers_of_one, true, 0, NULL},
    {"results", results, true, 0, NULL},
    {"tangle", tangle, true, 0, NULL},
    {"sizes", sizes, true, 0, NULL},
    {"unknown-operators", unknown_operators, false, 0, NULL},
    {"domains", domains, false, 0, NULL},
    {"free-dims", free_dims, true, 0, NULL},
    {"sums-of-dims", sums_of_dims, true, 0, NULL},
    {"shape-arithmetic", shape_arithmetic, false, 0, NULL},
    {"known-vectors", known_vectors, true, 0, NULL},
    {"initializers", initializers, true, 0, NULL},
    {"inputs-of-a-node", inputs_of_a_node, true, 0, NULL},
    {"outputs-of-a-node", outputs_of_a_node, false, 0, NULL},
    {"attributes", attributes, false, 0, NULL},
    {"declared-types", declared_types, false, 0, NULL},
    {"branches", branches, false, 0, NULL},
    {"transposes-in-branches", transposes_in_branches, false, 0, NULL},
    {"loops", loops, false, 0, NULL},
    {"sequences", sequences, true, 0, NULL},
    {"long-names", long_names, false, 0, NULL},
    {"modules", modules, true, 0, NULL},
    {"rewritten", rewritten, true, 0, NULL},
    {0},
};

#undef name

static const family *find(const family *list_of, unsigned *index)
{
    for (; list_of->name != NULL; list_of++)
        if ((*index)-- == 0) return list_of;
    return NULL;
}

const family *family_at(unsigned index)
{
    const family *found = find(families, &index);
    if (found == NULL) found = find(graph_families, &index);
    if (found == NULL) found = find(note_families, &index);
    if (found == NULL) found = find(export_families, &index);
    if (found == NULL) found = find(program_families, &index);
    return found;
}
