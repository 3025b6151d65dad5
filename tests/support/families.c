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

#define name family_name
#define both family_both

/* --- Texts ------------------------------------------------------------------------------------- */

static long number_at(const char **at, long i, long n)
{
    char *end;
    if (**at == 'i' || **at == 'n') return *(*at)++ == 'i' ? i : n;
    long number = strtol(*at, &end, 10);
    assert(end != *at);
    *at = end;
    return number;
}

/* Moves `at` behind the brace. */
static long compute(const char **at, long i, long n)
{
    long result = number_at(at, i, n);
    while (**at != '}') {
        char op = *(*at)++;
        long other = number_at(at, i, n);
        assert(strchr("+-%/", op) != NULL);
        result = op == '+'   ? result + other
                 : op == '-' ? result - other
                 : op == '%' ? result % other
                             : result / other;
    }
    (*at)++;
    return result;
}

static void add_text(model *m, const char *at, const char *end, long i, long n)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    assert(to != NULL);
    while (at < end) {
        if (*at != '{') {
            fputc(*at++, to);
        } else if (at[1] != '*') {
            at++;
            fprintf(to, "%ld", compute(&at, i, n));
        } else {
            const char *item = at + 2, *brace = strchr(at, '}');
            for (long k = 0; k < n; k++)
                for (const char *c = item; c < brace; c++)
                    if (*c == '#')
                        fprintf(to, "%ld", k);
                    else
                        fputc(*c, to);
            at = brace + 1;
        }
    }
    fclose(to);
    model_add_text(m, text);
    free(text);
}

static void make_text(model *m, unsigned n, const family *f)
{
    const family_text *t = &f->text;
    long times = n / (f->nodes > 0 ? f->nodes : 1);
    const char *each = t->each;
    add_text(m, t->before, strchr(t->before, '\0'), 0, times);
    for (long i = 0; i < times; i++) {
        const char *end = each + strcspn(each, "|");
        add_text(m, each, end, i, times);
        each = *end == '|' ? end + 1 : t->each;
    }
    add_text(m, t->behind, strchr(t->behind, '\0'), times, times);
}

model *family_model(const family *f, unsigned n)
{
    model *m = model_new(17);
    if (f->make != NULL)
        f->make(m, n);
    else if (f->note.key != NULL)
        family_repeat(m, n, &f->note);
    else
        make_text(m, n, f);
    return m;
}

/* --- What no text says --------------------------------------------------------------------------- */

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

/* The same numbers each time. */
static unsigned drawn(unsigned *state, unsigned below)
{
    *state = *state * 1664525u + 1013904223u;
    return (unsigned)((uint64_t)(*state >> 8) * below >> 24);
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

enum { NESTED = 10 };

/* Branches in branches. */
static void nest(model *m, unsigned depth, unsigned number)
{
    for (unsigned k = 0; k < 2; k++) {
        bool is_inner = k == 0 && depth > 0;
        model_begin(m, k == 0 ? "then_branch" : "else_branch");
        if (is_inner)
            nest(m, depth - 1, number);
        else
            model_node(m, "Relu", "", name("t", number), "r", "");
        model_output(m, is_inner ? name("d", depth - 1) : "r", "f32");
        model_end(m);
    }
    model_node(m, "If", "", "c", depth < NESTED ? name("d", depth) : name("t", number + 1), "");
}

static void nested_branches(model *m, unsigned n)
{
    unsigned times = n / (2 * NESTED + 3);
    model_add(m, "in t0 f32[N,16]", "in c bool[]");
    for (unsigned i = 0; i < times; i++) nest(m, NESTED, i);
    model_output(m, name("t", times), "f32");
}

/* --- The list ------------------------------------------------------------------------------------ */

#define TEXT(first, again, last) .text = {.before = (first), .each = (again), .behind = (last)}

#define X                            "in x f32[N,16]"
#define T                            "in t0 f32[N,16]"
#define T4                           "in t0 f32[4,16]"
#define OUT                          "out t{n} f32"
#define OUT_Y                        "y = Relu(x); out y f32"
#define CHAIN(op, other, attributes) "t{i+1} = " op "(t{i}" other ") " attributes

#define BRANCH(which, nodes) "begin " which "_branch; " nodes "; out b{i} f32; end; "

/* Sequences: of two types in turn, with each item in front, many that go on from one, and emptied ones. */
#define TWO           "in x0 f32[3,4]; in x1 f32[5,4]; int front 0; s0 = SequenceConstruct(x0 x1)"
#define INSERT(other) "s{i+1} = SequenceInsert(" other ")"
#define LENGTH        "y = SequenceLength(s{n}); out y i64"

/* A name of 400 bytes. */
#define N80  "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
#define LONG N80 N80 N80 N80 N80

/* Layers without notes, with sizes that the exporter asks for again and again. */
#define L "/model/layers.{i}/"
#define LAYER(output, op, inputs, attributes)                                                      \
    L output " = " op "(" inputs ") " L output " " attributes "; "
#define HEADS(part, perm)                                                                          \
    "weight model.layers.{i}." part ".weight f32[32,32]; " LAYER(                                  \
        "attn/" part "/MatMul", "MatMul", L "norm model.layers.{i}." part ".weight", "")           \
        LAYER("attn/" part "/Reshape", "Reshape", L "attn/" part "/MatMul " L "attn/Concat", "")   \
            LAYER("attn/" part "/Transpose", "Transpose", L "attn/" part "/Reshape", perm)

static const char attention_layer[] =
    "weight " L "fc.weight f32[32,32]; " /* The layer before made x{i}. */
    LAYER("norm", "LayerNormalization", "x{i} scale",
          "axis=-1") LAYER("attn/Shape", "Shape", L "norm", "") LAYER("attn/batch", "Gather",
                                                                      L "attn/Shape zero", "axis=0")
        LAYER("attn/length", "Gather", L "attn/Shape one",
              "axis=0") LAYER("attn/Unsqueeze", "Unsqueeze", L "attn/batch axes",
                              "") LAYER("attn/Unsqueeze_1", "Unsqueeze", L "attn/length axes", "")
            LAYER("attn/Concat", "Concat", L "attn/Unsqueeze " L "attn/Unsqueeze_1 heads", "axis=0")
                LAYER("attn/Concat_1", "Concat", L "attn/Unsqueeze " L "attn/Unsqueeze_1 whole",
                      "axis=0") HEADS("q", "perm=[0,2,1,3]") HEADS("k", "perm=[0,2,3,1]")
                    HEADS("v", "perm=[0,2,1,3]")
                        LAYER("attn/MatMul", "MatMul", L "attn/q/Transpose " L "attn/k/Transpose",
                              "") LAYER("attn/Div", "Div", L "attn/MatMul root", "")
                            LAYER("attn/Softmax", "Softmax", L "attn/Div", "axis=-1")
                                LAYER("attn/MatMul_1", "MatMul",
                                      L "attn/Softmax " L "attn/v/Transpose", "")
                                    LAYER("attn/Transpose", "Transpose", L "attn/MatMul_1",
                                          "perm=[0,2,1,3]")
                                        LAYER("attn/Reshape", "Reshape",
                                              L "attn/Transpose " L "attn/Concat_1", "")
                                            LAYER("fc", "MatMul", L "attn/Reshape " L "fc.weight",
                                                  "") "x{i+1} = Add(x{i} " L "fc) " L "Add";

static const family text_families[] = {
    {"chain", true, TEXT(T, CHAIN("Relu", "", ""), OUT)},
    {"linear-layers", true,
     TEXT(T, "weight w{i} f32[16,16]; t{i+1} = MatMul(t{i} w{i}) /layers.{i}/MatMul", OUT)},
    {"residual-blocks", true,
     TEXT("in r0 f32[N,8,8,8]",
          "weight w{i} f32[8,8,3,3]; c{i} = Conv(r{i} w{i}) /blocks.{i} pads=[1,1,1,1]; "
          "a{i} = Relu(c{i}); r{i+1} = Add(a{i} r{i})",
          "out r{n} f32")},
    {"ladder", true, .make = ladder},
    {"readers-of-one", true, TEXT(X, "t{i} = Relu(x)", "out t{n-1} f32")},
    {"results", true, TEXT(X, "t{i} = Relu(x); out t{i} f32", "")},
    {"tangle", true, .make = tangle},
    {"sizes", true, .make = sizes},
    {"unknown-operators", false,
     TEXT("import z 1; " X, "t{i} = z::F{i}(x) n{i}", "out t{n-1} f32")},
    {"domains", false, TEXT(X, "import d{i} 1; t{i} = d{n-1-i}::F(x)", "out t{n-1} f32")},
    {"free-dims", true, TEXT("", "in x{i} f32[dim{i},4]", "y = Relu(x0); out y f32")},
    /* Sums of ever more symbols. */
    {"sums-of-dims", true,
     TEXT("in x0 f32[dim0,4]; t0 = Identity(x0)",
          "in x{i+1} f32[dim{i+1},4]; t{i+1} = Concat(t{i} x{i+1}) axis=0", OUT)},
    {"shape-arithmetic", false,
     TEXT("in x f32[N,M]; int one 1; s0 = Shape(x)", "s{i+1} = Add(s{i} s0)|s{i+1} = Mul(s{i} one)",
          "y = ConstantOfShape(s{n}); out y f32")},
    {"known-vectors", true, .make = known_vectors},
    {"initializers", true, TEXT(X, "int w{i} {i}", OUT_Y)},
    {"inputs-of-a-node", true, .most = 30000,
     TEXT("", "in x{i} f32[4,4]", "y0 = Concat({*x# }) axis=0; out y0 f32")},
    {"outputs-of-a-node", false,
     TEXT("in x f32[{n},4]", "", "{*t# } = Split(x) axis=0; out t0 f32")},
    {"attributes", false, TEXT(X "; import z 1", "", "y = z::F(x) {*a#=1 }; out y f32")},
    {"declared-types", false, TEXT(X, "info v{i} f32[N,3]", OUT_Y)},
    {"branches", false,
     TEXT("in c bool; " T,
          BRANCH("then", "b{i} = Relu(t{i})") BRANCH("else", "b{i} = Abs(t{i})") "t{i+1} = If(c)",
          OUT)},
    /* What is moved and merged in one graph costs nothing in the others. */
    {"transposes-in-branches", false,
     TEXT("in c bool; " X,
          BRANCH("then", "a{i} = Transpose(x) perm=[1,0]; b{i} = Relu(a{i})")
              BRANCH("else", "a{i} = Transpose(x) perm=[1,0]; b{i} = Abs(a{i})") "t{i} = If(c)",
          "out t{n-1} f32")},
    {"loops", false,
     TEXT(T "; int trips 1000",
          "begin body; in i{i} i64; in c{i} bool; in s{i} f32; g{i} = Identity(c{i}); "
          "r{i} = Relu(s{i}); out g{i} bool; out r{i} f32; end; t{i+1} = Loop(trips - t{i})",
          OUT)},
    {"sequences", true,
     TEXT(X "; s0 = SequenceConstruct(x)", INSERT("s{i} x"),
          "y = ConcatFromSequence(s{n}) axis=0; out y f32")},
    {"long-names", false,
     TEXT("in " LONG "-1 f32[N,16]", LONG "{i} = Relu(" LONG "{i-1}) " LONG "{i}",
          "out " LONG "{n-1} f32"),
     .nodes = 10},
    /* Modules in modules, no two alike. */
    {"modules", true,
     TEXT(T "; weight w f32[16,16]", "t{i+1} = MatMul(t{i} w) /a.{i%7}/b.{i/3}/c{i}/MatMul", OUT)},
    /* What ONNX Runtime folds, fuses and drops. */
    {"rewritten", true,
     TEXT(T,
          CHAIN("Identity", "", "") "|" CHAIN("Sigmoid", "", "") "|" CHAIN(
              "Transpose", "", "") "|" CHAIN("Neg", "", ""),
          OUT)},
    {"transposes", true, TEXT(T4, CHAIN("Transpose", "", "perm=[1,0]"), OUT)},
    {"casts", true, TEXT(T4, CHAIN("Cast", "", "to=10") "|" CHAIN("Cast", "", "to=1"), OUT)},
    {"reshapes", true,
     TEXT("ints s0 8 8; ints s1 4 16; " T4,
          CHAIN("Reshape", " s0", "") "|" CHAIN("Reshape", " s1", ""), OUT)},
    {"slices", true,
     TEXT("ints first 0; ints last 1000; " T4, CHAIN("Slice", " first last", ""), OUT)},
    {"concatenations", true, TEXT(T4, CHAIN("Concat", " t0", "axis=0"), OUT)},
    {"sums", true, TEXT("", "in t{i} f32[4,4]", "y = Sum({*t# }); out y f32")},
    {"dropouts", true, TEXT(T4, CHAIN("Dropout", "", ""), OUT)},
    {"norms", true,
     TEXT("weight scale f32[16]; " T4, CHAIN("LayerNormalization", " scale", "axis=-1"), OUT)},
    {"constants", true, TEXT(T, "constant c{i} f32[16]; " CHAIN("Add", " c{i}", ""), OUT)},
    {"optionals", false, TEXT(T4, "o{i} = Optional(t{i}); t{i+1} = OptionalGetElement(o{i})", OUT)},
    {"sequences-of-two", true, TEXT(TWO, INSERT("s{i} x{i%3%2}"), LENGTH)},
    {"sequences-in-front", false, TEXT(TWO, INSERT("s{i} x{i%3%2} front"), LENGTH)},
    {"sequences-forked", true, TEXT(TWO, INSERT("s{i%700} x{i%3%2}"), LENGTH)},
    {"sequences-erased", true,
     TEXT("s0 = SequenceConstruct({*x# })",
          "in x{i} f32[5,4]; s{i+1} = SequenceErase(s{i})|in x{i} f32[3,4]; s{i+1} = "
          "SequenceErase(s{i})",
          LENGTH)},
    /* What a file declares of one value again and again, and of values that it lacks. */
    {"declared-again", false, TEXT(X, "info y f32[N,16]", OUT_Y)},
    {"dims-of-one-name", false, TEXT(X "; y = Relu(x)", "in x{i} f32[N,M,{i}]", "out y f32")},
    {"strings", false,
     TEXT(X "; import z 1",
          "t{i} = z::F(x) a='000000000000000000000000000000000000000000000000000000{i}'",
          "out t0 f32"),
     .nodes = 4},
    {"long-lists", false, TEXT(X "; import z 1", "", "y = z::F(x) a=[1{*,#}]; out y f32")},
    {"equations", true, .most = 8000,
     TEXT("weight w f32[16,16]; " T4, CHAIN("Einsum", " w", "equation='ij,jk->ik'"), OUT)},
    {"lookups", true,
     TEXT("weight table f32[100,16]; in x i64[4]", "t{i} = Gather(table x) axis=0", "out t0 f32")},
    {"expansions", true, TEXT("in x f32[N,1]; s = Shape(x)", "t{i} = Expand(x s)", "out t0 f32")},
    {"data-dependent", true,
     TEXT("in x f32[4,4]", "p{i} = NonZero(x); q{i} = Transpose(p{i}) perm=[1,0]", "out q0 i64"),
     .nodes = 2},
    {"stacked", false,
     TEXT("in x f32[8,4]",
          "begin body; in e{i} f32; r{i} = Relu(e{i}); out r{i} f32; end; "
          "y{i} = Scan(x) num_scan_inputs=1",
          "out y0 f32"),
     .nodes = 4},
    {"attention-layers", true,
     TEXT("in x0 f32[batch,16,32]; ints heads 4 8; ints whole 32; int zero 0; int one 1; ints axes "
          "0; "
          "float root 2.8; weight scale f32[32]",
          attention_layer, "out x{n} f32"),
     .nodes = 24},
    /* Weights in 8 bits, and activations that are rounded between layers. */
    {"quantized-layers", true,
     TEXT(T "; float scale 0.1; weight zero i8[]",
          "weight w{i} i8[16,16]; q{i} = QuantizeLinear(t{i} scale zero) " L "Quantize; "
          "x{i} = DequantizeLinear(q{i} scale zero) " L "Dequantize; "
          "f{i} = DequantizeLinear(w{i} scale zero) " L "weight/Dequantize; "
          "t{i+1} = MatMul(x{i} f{i}) " L "MatMul",
          OUT),
     .nodes = 4},
    {"scans", false,
     TEXT("in x f32[5,4]; in s0 f32[4]",
          "begin body; in state f32[4]; in item f32[4]; next = Add(state item); each = Relu(next); "
          "out next f32; out each f32; end; s{i+1} y{i} = Scan(s{i} x) num_scan_inputs=1",
          "out s{n} f32"),
     .nodes = 3},
    {"nested-branches", false, .make = nested_branches},
    {0},
};

#undef name

const family *family_at(unsigned index)
{
    const family *const lists[] = {text_families, note_families, program_families};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        for (const family *f = lists[i]; f->name != NULL; f++)
            if (index-- == 0) return f;
    return NULL;
}
