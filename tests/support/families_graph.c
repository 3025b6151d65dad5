/* Families of graphs: operators that others go on with, names, declarations. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/capture.h"
#include "support/families.h"

#define name family_name
#define both family_both

static void chain_of(model *m, unsigned n, const char *op, const char *other,
                     const char *attributes)
{
    model_input(m, "t0", "f32[4,16]");
    for (unsigned i = 0; i < n; i++)
        model_node(m, op, "", other != NULL ? both(name("t", i), other) : name("t", i),
                   name("t", i + 1), attributes);
    model_output(m, name("t", n), "f32");
}

static void transposes(model *m, unsigned n)
{
    chain_of(m, n, "Transpose", NULL, "perm=[1,0]");
}

static void casts(model *m, unsigned n)
{
    model_input(m, "t0", "f32[4,16]");
    for (unsigned i = 0; i < n; i++)
        model_node(m, "Cast", "", name("t", i), name("t", i + 1), i % 2 ? "to=1" : "to=10");
    model_output(m, name("t", n), "f32");
}

static void reshapes(model *m, unsigned n)
{
    const int64_t shapes[2][2] = {{8, 8}, {4, 16}};
    model_ints(m, "s0", 2, shapes[0]);
    model_ints(m, "s1", 2, shapes[1]);
    model_input(m, "t0", "f32[4,16]");
    for (unsigned i = 0; i < n; i++)
        model_node(m, "Reshape", "", both(name("t", i), i % 2 ? "s1" : "s0"), name("t", i + 1), "");
    model_output(m, name("t", n), "f32");
}

static void slices(model *m, unsigned n)
{
    const int64_t first[] = {0}, last[] = {1000};
    model_ints(m, "first", 1, first);
    model_ints(m, "last", 1, last);
    chain_of(m, n, "Slice", "first last", "");
}

static void concatenations(model *m, unsigned n)
{
    chain_of(m, n, "Concat", "t0", "axis=0");
}

static void sums(model *m, unsigned n)
{
    OWNED_TEXT inputs = family_list("t", n);
    for (unsigned i = 0; i < n; i++) model_input(m, name("t", i), "f32[4,4]");
    model_node(m, "Sum", "", inputs, "y", "");
    model_output(m, "y", "f32");
}

static void dropouts(model *m, unsigned n)
{
    chain_of(m, n, "Dropout", NULL, "");
}

static void norms(model *m, unsigned n)
{
    model_weight(m, "scale", "f32[16]");
    chain_of(m, n, "LayerNormalization", "scale", "axis=-1");
}

static void constants(model *m, unsigned n)
{
    model_input(m, "t0", "f32[N,16]");
    for (unsigned i = 0; i < n; i++) {
        model_constant(m, name("c", i), "f32[16]");
        model_node(m, "Add", "", both(name("t", i), name("c", i)), name("t", i + 1), "");
    }
    model_output(m, name("t", n), "f32");
}

static void optionals(model *m, unsigned n)
{
    model_input(m, "t0", "f32[4,16]");
    for (unsigned i = 0; i < n; i++) {
        model_node(m, "Optional", "", name("t", i), name("o", i), "");
        model_node(m, "OptionalGetElement", "", name("o", i), name("t", i + 1), "");
    }
    model_output(m, name("t", n), "f32");
}

/* Sequences: of two types in turn, with each item in front, and many that go on from one. */
static void sequence_chain(model *m, unsigned n, bool in_front, bool forks)
{
    model_add(m, "in x0 f32[3,4]", "in x1 f32[5,4]", "int front 0",
              "s0 = SequenceConstruct(x0 x1)");
    for (unsigned i = 0; i < n; i++) {
        char inputs[100];
        snprintf(inputs, sizeof inputs, "s%u x%u%s", forks && i >= 700 ? i % 700 : i, i % 3 % 2,
                 in_front ? " front" : "");
        model_node(m, "SequenceInsert", "", inputs, name("s", i + 1), "");
    }
    model_node(m, "SequenceLength", "", name("s", n), "y", "");
    model_output(m, "y", "i64");
}

static void sequences_of_two(model *m, unsigned n)
{
    sequence_chain(m, n, false, false);
}

static void sequences_in_front(model *m, unsigned n)
{
    sequence_chain(m, n, true, false);
}

static void sequences_forked(model *m, unsigned n)
{
    sequence_chain(m, n, false, true);
}

static void sequences_erased(model *m, unsigned n)
{
    OWNED_TEXT items = family_list("x", n);
    for (unsigned i = 0; i < n; i++) model_input(m, name("x", i), i % 2 ? "f32[3,4]" : "f32[5,4]");
    model_node(m, "SequenceConstruct", "", items, "s0", "");
    for (unsigned i = 0; i + 1 < n; i++)
        model_node(m, "SequenceErase", "", name("s", i), name("s", i + 1), "");
    model_node(m, "SequenceLength", "", name("s", n - 1), "y", "");
    model_output(m, "y", "i64");
}

/* What a file declares of one value again and again, and of values that it lacks. */
static void declared_again(model *m, unsigned n)
{
    model_input(m, "x", "f32[N,16]");
    for (unsigned i = 0; i < n; i++) model_value_info(m, "y", "f32[N,16]");
    model_add(m, "y = Relu(x)", "out y f32");
}

static void dims_of_one_name(model *m, unsigned n)
{
    model_add(m, "in x f32[N,16]", "y = Relu(x)");
    for (unsigned i = 0; i < n; i++) {
        char type[64];
        snprintf(type, sizeof type, "f32[N,M,%u]", i);
        model_input(m, name("x", i), type);
    }
    model_output(m, "y", "f32");
}

static void strings(model *m, unsigned n)
{
    model_add(m, "in x f32[N,16]", "import z 1");
    for (unsigned i = 0; i < n / 4; i++) {
        char attribute[100];
        snprintf(attribute, sizeof attribute, "a='%0*u'", 60, i);
        model_node(m, "z::F", "", "x", name("t", i), attribute);
    }
    model_output(m, "t0", "f32");
}

static void long_lists(model *m, unsigned n)
{
    char *text = malloc((size_t)n * 12 + 16), *at = text;
    assert(text != NULL);
    at += sprintf(at, "a=[1");
    for (unsigned i = 0; i < n; i++) at += sprintf(at, ",%u", i);
    sprintf(at, "]");
    model_add(m, "in x f32[N,16]", "import z 1");
    model_node(m, "z::F", "", "x", "y", text);
    model_output(m, "y", "f32");
    free(text);
}

static void equations(model *m, unsigned n)
{
    model_weight(m, "w", "f32[16,16]");
    chain_of(m, n, "Einsum", "w", "equation='ij,jk->ik'");
}

static void lookups(model *m, unsigned n)
{
    model_add(m, "weight table f32[100,16]", "in x i64[4]");
    for (unsigned i = 0; i < n; i++) model_node(m, "Gather", "", "table x", name("t", i), "axis=0");
    model_output(m, "t0", "f32");
}

static void expansions(model *m, unsigned n)
{
    model_add(m, "in x f32[N,1]", "s = Shape(x)");
    for (unsigned i = 0; i < n; i++) model_node(m, "Expand", "", "x s", name("t", i), "");
    model_output(m, "t0", "f32");
}

static void data_dependent(model *m, unsigned n)
{
    model_input(m, "x", "f32[4,4]");
    for (unsigned i = 0; i < n / 2; i++) {
        model_node(m, "NonZero", "", "x", name("p", i), "");
        model_node(m, "Transpose", "", name("p", i), name("q", i), "perm=[1,0]");
    }
    model_output(m, "q0", "i64");
}

static void stacked(model *m, unsigned n)
{
    model_input(m, "x", "f32[8,4]");
    for (unsigned i = 0; i < n / 4; i++) {
        model_begin(m, "body");
        model_input(m, name("e", i), "f32");
        model_node(m, "Relu", "", name("e", i), name("r", i), "");
        model_output(m, name("r", i), "f32");
        model_end(m);
        model_node(m, "Scan", "", "x", name("y", i), "num_scan_inputs=1");
    }
    model_output(m, "y0", "f32");
}

const family graph_families[] = {
    {"transposes", transposes, true, 0, NULL},
    {"casts", casts, true, 0, NULL},
    {"reshapes", reshapes, true, 0, NULL},
    {"slices", slices, true, 0, NULL},
    {"concatenations", concatenations, true, 0, NULL},
    {"sums", sums, true, 0, NULL},
    {"dropouts", dropouts, true, 0, NULL},
    {"norms", norms, true, 0, NULL},
    {"constants", constants, true, 0, NULL},
    {"optionals", optionals, false, 0, NULL},
    {"sequences-of-two", sequences_of_two, true, 0, NULL},
    {"sequences-in-front", sequences_in_front, false, 0, NULL},
    {"sequences-forked", sequences_forked, true, 0, NULL},
    {"sequences-erased", sequences_erased, true, 0, NULL},
    {"declared-again", declared_again, false, 0, NULL},
    {"dims-of-one-name", dims_of_one_name, false, 0, NULL},
    {"strings", strings, false, 0, NULL},
    {"long-lists", long_lists, false, 0, NULL},
    {"equations", equations, true, 8000, NULL},
    {"lookups", lookups, true, 0, NULL},
    {"expansions", expansions, true, 0, NULL},
    {"data-dependent", data_dependent, true, 0, NULL},
    {"stacked", stacked, false, 0, NULL},
    {0},
};
