#include "support/nested.h"
#include "support/test.h"

/* --- Known ones -------------------------------------------------------------------------------- */

#define BRANCH(which, lines) "begin " which "_branch; " lines "; end; "

/* The largest of so many copies of x. */
#define TILED(which, times, name)                                                                  \
    BRANCH(which, "ints times " times "; " name "b = Tile(x times) " name "b; " name               \
                  " = ReduceMax(" name "b) " name " keepdims=0; out " name " f32[]")

/* A body that goes on as long as it was told to. */
#define BODY(state, lines)                                                                         \
    "begin body; in i i64[]; in cc bool[]; " state lines "c2 = Identity(cc) same; out c2 bool[]; "

#define SQUARE "f32[1024,1024]"

/* Relu of an input or of another result, as often as that. */
#define TRIPS(trips, before, given)                                                                \
    "in x " SQUARE "; int M " trips "; " before                                                    \
    "begin body; in i i64[]; in cc bool[]; in s_in " SQUARE "; c2 = Identity(cc) same; "           \
    "s_out = Relu(s_in) relu; out c2 bool[]; out s_out " SQUARE "; end; y = Loop(M - " given       \
    ") loop; out y " SQUARE

const nested_case nested_cases[] = {
    {"open-if", 17,
     "in c bool[]; " BRANCH("else",
                            "ints shape 1024 1024; e = ConstantOfShape(shape) e; out e " SQUARE)
         BRANCH(
             "then",
             "ints shape 1024 1024; t = ConstantOfShape(shape) t; out t " SQUARE) "y = If(c) if; "
                                                                                  "out y " SQUARE},
    {"constant-if", 17,
     "in x f32[1024]; bool c 1; " TILED("else", "100000", "e")
         TILED("then", "1", "t") "y = If(c) if; out y f32[]"},
    {"branches-and-more", 17,
     "in x " SQUARE "; in c bool[]; " BRANCH("else", "e = Neg(x) e; out e f32") BRANCH(
         "then", "t = Relu(x) t; out t f32") "y = If(c) if; z = Relu(y) relu; out z " SQUARE},
    {"impossible-branch", 17,
     "in x f32[1,len]; in sr i64[]; int k 16000; weight W8 f32[8,4]; weight W16 f32[16,4]; "
     "c = Equal(sr k) equal; " BRANCH("else", "e = MatMul(x W16) e; out e f32")
         BRANCH("then", "t = MatMul(x W8) t; out t f32") "y = If(c) if; out y f32"},
    {"decided-if", 17,
     "in x f32[n,8]; int i0 0; int one 1; s = Shape(x) shape; b = Gather(s i0) gather; "
     "c = Equal(b one) equal; " BRANCH("else", "e = Neg(x) e; out e f32")
         BRANCH("then", "t = Relu(x) t; out t f32") "y = If(c) if; out y f32[n,8]"},
    /* What the TorchScript exporter makes of .squeeze(0) where the batch is dynamic: the file declares the
     * shape of batch 1. */
    {"squeezed", 17,
     "in x f32[batch,8]; r = Relu(x) relu; zero = Constant() c0 value_ints=[0]; "
     "s = Shape(r) shape; b = Gather(s zero) gather axis=0; one = Constant() c1 value_ints=[1]; "
     "c = Equal(b one) equal; " BRANCH("then", "axis = Constant() c2 value_ints=[0]; "
                                               "t = Squeeze(r axis) squeeze; out t f32[8]")
         BRANCH("else", "e = Identity(r) e; out e f32[batch,8]") "y = If(c) if; out y f32[8]"},
    {"scan", 17,
     "in s0 f32[]; in X f32[16,1024,1024]; begin body; in st f32[]; in x " SQUARE "; "
     "ints shp 16 1024 1024; big = Expand(x shp) expand; r = ReduceSum(big) sum keepdims=0; "
     "st2 = Add(st r) add; xo = Identity(x) same; out st2 f32[]; out xo " SQUARE "; end; "
     "s Y = Scan(s0 X) scan num_scan_inputs=1; out s f32[]; out Y f32[16,1024,1024]"},
    {"loop-stacks", 17,
     "in X " SQUARE "; int M 64; " BODY(
         "",
         "o = Mul(X X) mul; ") "out o " SQUARE "; end; "
                               "Y = Loop(M -) loop; s = ReduceSum(Y) sum keepdims=0; out s f32[]"},
    {"loop-multiplies", 17,
     "in X f32[64,64]; int M 100; weight W f32[64,64]; " BODY(
         "in st f32[64,64]; ", "st2 = MatMul(st W) mm; ") "out st2 f32[64,64]; end; Y = Loop(M - "
                                                          "X) loop; out Y f32[64,64]"},
    {"no-trips", 17,
     "in X f32[1024]; int M 0; " BODY(
         "in st f32[1024]; ",
         "ints r 10000; big = Tile(st r) tile; "
         "q = ReduceMax(big) max keepdims=0; st2 = Add(st q) add; ") "out st2 f32[1024]; end; Y = "
                                                                     "Loop(M - X) loop; out Y "
                                                                     "f32[1024]"},
    {"loop-state", 17, TRIPS("4", "", "x")},
    {"loop-once", 17, TRIPS("1", "", "x")},
    {"loop-once-made", 17, TRIPS("1", "given = Neg(x) neg; ", "given")},
    {"loop-grows", 17,
     "in X f32[4]; in c bool[]; int M 3; " BODY(
         "in st f32; ", "st2 = Concat(st st) concat axis=0; ") "out st2 f32; end; Y = Loop(M c X) "
                                                               "loop; out Y f32[n]"},
    {"outer", 17,
     "in x f32[256]; in c bool[]; a = Relu(x) relu; " BRANCH("else", "out a f32[256]")
         BRANCH("then", "out a f32[256]") "y = If(c) if; out y f32[256]"},
    {"weight-out", 17,
     "in x f32[4]; weight w f32[1024]; y = Relu(x) relu; out y f32[4]; out w f32[1024]"},
    {"input-out", 17, "in x " SQUARE "; y = Identity(x) same; out y " SQUARE "; out x " SQUARE},
    {"sequence", 17,
     "in x f32[64,1024,256]; s = SplitToSequence(x) split axis=0 keepdims=0; "
     "y = ConcatFromSequence(s) concat axis=0 new_axis=1; out y f32[64,1024,256]"},
    {"slice", 17,
     "in x " SQUARE "; ints s 0; ints e 1; a = Relu(x) relu; b = Slice(a s e) slice; "
     "c = Neg(b) neg; y = Add(b c) add; out y f32[1,1024]"},
    {"split", 11,
     "in x " SQUARE "; a b = Split(x) split axis=0; c = Neg(a) neg; y = Add(b c) add; "
     "out y f32[512,1024]"},
    {"zero", 17, "in x f32[0,4]; weight w f32[4,5]; y = MatMul(x w) mm; out y f32[0,5]"},
    {0},
};

model *nested_case_build(const nested_case *c)
{
    model *m = model_new(c->opset);
    model_add_text(m, c->text);
    return m;
}

model *nested_case_model(const char *name)
{
    for (const nested_case *c = nested_cases; c->name != NULL; c++)
        if (strcmp(c->name, name) == 0) return nested_case_build(c);
    fail_msg("no case '%s'", name);
    return NULL;
}

/* --- Random ones ------------------------------------------------------------------------------- */

enum { MAX_SCOPE = 256, MAX_NESTING = 3 };

typedef struct seen {
    char name[16];
    unsigned elems;
} seen;

typedef struct maker {
    model *m;
    uint64_t state;
    seen scope[MAX_SCOPE]; /* what can be read here, those of outer graphs first */
    unsigned n_scope, n_names, n_nodes_left;
} maker;

static unsigned below(maker *k, unsigned n)
{
    k->state = k->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(k->state >> 33) % n;
}

static seen make_name(maker *k, unsigned elems)
{
    seen s = {.elems = elems};
    snprintf(s.name, sizeof s.name, "v%u", k->n_names++);
    return s;
}

static void show(maker *k, seen s)
{
    if (k->n_scope < MAX_SCOPE) k->scope[k->n_scope++] = s;
}

static seen any(maker *k)
{
    return k->scope[below(k, k->n_scope)];
}

static const char *type_of(seen s)
{
    static char type[32];
    snprintf(type, sizeof type, "f32[%u]", s.elems);
    return type;
}

static void node(maker *k, const char *op, const char *in, const char *out)
{
    model_node(k->m, op, "", in, out, "");
}

/* `elems` elements of some value. */
static seen gather(maker *k, unsigned elems)
{
    char in[64], index[32], type[32];
    seen out = make_name(k, elems), from = any(k);
    snprintf(index, sizeof index, "i%s", out.name);
    snprintf(type, sizeof type, "i64[%u]", elems);
    model_weight(k->m, index, type);
    snprintf(in, sizeof in, "%s %s", from.name, index);
    node(k, "Gather", in, out.name);
    show(k, out);
    return out;
}

static seen concat(maker *k)
{
    char in[64];
    seen a = any(k), b = any(k), out = make_name(k, a.elems + b.elems);
    if (out.elems > 5000) return gather(k, 1 + below(k, 100));
    snprintf(in, sizeof in, "%s %s", a.name, b.name);
    model_node(k->m, "Concat", "", in, out.name, "axis=0");
    show(k, out);
    return out;
}

static void some_nodes(maker *k, unsigned depth);

/* A value of the graph that is open with so many elements: one that is there, perhaps of an outer
 * graph, or a new one. */
static seen result(maker *k, unsigned elems)
{
    for (unsigned i = k->n_scope; below(k, 2) == 0 && i-- > 0;)
        if (k->scope[i].elems == elems) return k->scope[i];
    return gather(k, elems);
}

static void branches(maker *k, unsigned depth)
{
    unsigned n_scope = k->n_scope, elems = 1 + below(k, 100), n_outputs = 1 + below(k, 2);
    for (int i = 0; i < 2; i++) {
        model_begin(k->m, i == 0 ? "then_branch" : "else_branch");
        if (below(k, 4) > 0) some_nodes(k, depth + 1);
        for (unsigned o = 0; o < n_outputs; o++) {
            seen out = result(k, elems + o);
            model_output(k->m, out.name, type_of(out));
        }
        model_end(k->m);
        k->n_scope = n_scope;
    }
    seen a = make_name(k, elems), b = make_name(k, elems + 1);
    char out[40];
    snprintf(out, sizeof out, n_outputs > 1 ? "%s %s" : "%s", a.name, b.name);
    node(k, "If", "c", out);
    show(k, a);
    if (n_outputs > 1) show(k, b);
}

static void loop(maker *k, unsigned depth)
{
    char in[64], out[64], number[32], trips[32], condition[32];
    unsigned n_scope = k->n_scope, n_trips = 1 + below(k, 3);
    seen initial = any(k), state = make_name(k, initial.elems), last = make_name(k, initial.elems);
    snprintf(trips, sizeof trips, "m%s", last.name);
    snprintf(number, sizeof number, "n%s", last.name);
    snprintf(condition, sizeof condition, "c%s", last.name);
    model_int(k->m, trips, n_trips);
    model_begin(k->m, "body");
    model_input(k->m, number, "i64[]");
    model_input(k->m, condition, "bool[]");
    model_input(k->m, state.name, type_of(state));
    show(k, state);
    some_nodes(k, depth + 1);
    seen carried = result(k, state.elems), slice = gather(k, 1 + below(k, 50));
    snprintf(out, sizeof out, "%so", condition);
    node(k, "Identity", condition, out);
    model_output(k->m, out, "bool[]");
    model_output(k->m, carried.name, type_of(carried));
    model_output(k->m, slice.name, type_of(slice));
    model_end(k->m);
    k->n_scope = n_scope;
    seen stacked = make_name(k, 0);
    snprintf(in, sizeof in, "%s - %s", trips, initial.name);
    snprintf(out, sizeof out, "%s %s", last.name, stacked.name);
    node(k, "Loop", in, out);
    show(k, last);
}

/* Over the input "rows", of 5 times 7. */
static void scanned(maker *k, unsigned depth)
{
    char in[64], out[64];
    unsigned n_scope = k->n_scope;
    seen initial = any(k), state = make_name(k, initial.elems), last = make_name(k, initial.elems);
    seen row = make_name(k, 7);
    model_begin(k->m, "body");
    model_input(k->m, state.name, type_of(state));
    show(k, state);
    model_input(k->m, row.name, type_of(row));
    show(k, row);
    some_nodes(k, depth + 1);
    seen carried = gather(k, state.elems), slice = result(k, 1 + below(k, 50));
    model_output(k->m, carried.name, type_of(carried));
    model_output(k->m, slice.name, type_of(slice));
    model_end(k->m);
    k->n_scope = n_scope;
    seen stacked = make_name(k, 0);
    snprintf(in, sizeof in, "%s rows", initial.name);
    snprintf(out, sizeof out, "%s %s", last.name, stacked.name);
    model_node(k->m, "Scan", "", in, out, "num_scan_inputs=1");
    show(k, last);
}

/* Recursion is MAX_NESTING deep at most. */
static void some_nodes(maker *k, unsigned depth)
{
    for (unsigned n = 1 + below(k, 5); n > 0 && k->n_nodes_left > 0; n--) {
        k->n_nodes_left--;
        unsigned what = below(k, depth < MAX_NESTING ? 8 : 4);
        if (what < 2)
            gather(k, 1 + below(k, 200));
        else if (what < 4)
            concat(k);
        else if (what < 6)
            branches(k, depth);
        else if (what == 6)
            loop(k, depth);
        else
            scanned(k, depth);
    }
}

model *nested_random(uint64_t seed)
{
    maker k = {.m = model_new(17), .state = seed, .n_nodes_left = 40};
    model_add(k.m, "in c bool[]", "in rows f32[5,7]");
    for (int i = 0; i < 2; i++) {
        seen in = make_name(&k, 10 + below(&k, 100));
        model_input(k.m, in.name, type_of(in));
        show(&k, in);
    }
    some_nodes(&k, 0);
    some_nodes(&k, 0);
    seen out = gather(&k, 3);
    model_output(k.m, out.name, type_of(out));
    return k.m;
}
