/* What exporters decompose is one operation again: which operations PyTorch would run, and what they
 * keep, of the forms as they are exported and of look-alikes that are no such function. */
#include "eager/trainer.h"
#include "lower/lower.h"
#include "support/test.h"

/* One line of a table: nodes "Op(input input)output,output attributes", from h to y. h is [4, 8]
 * float32 and needs a gradient; one, half and number are scalars, v and u vectors of 8, s of 2. */
enum { MAX_NODES = 14, H = 4 * 8 * 4 };
typedef struct pattern {
    const char *nodes[MAX_NODES];
    const char *operations; /* after the product that makes h */
    uint64_t kept;          /* beside the input of that product */
} pattern;

static void add_node(model *m, const char *text, uint32_t index)
{
    char op[64], inputs[96], outputs[64], attributes[64] = "", name[16];
    snprintf(name, sizeof name, "n%u", index);
    if (sscanf(text, "%63[^(](%95[^)])%63s %63[^\n]", op, inputs, outputs, attributes) < 3)
        fail_msg("not a node: %s", text);
    for (char *comma = outputs; (comma = strchr(comma, ',')) != NULL;) *comma = ' ';
    model_node(m, op, name, inputs, outputs, attributes);
}

static model *build(const pattern *p)
{
    static const int64_t groups[] = {4, 2, -1}, whole[] = {4, 8}, heads[] = {4, 2, 4};
    model *m = model_read(17, "in x f32[4,8]", "weight w f32[8,8]", "weight v f32[8]",
                          "weight u f32[8]", "weight s f32[2]");
    model_ints(m, "groups", 3, groups);
    model_ints(m, "whole", 2, whole);
    model_ints(m, "heads", 3, heads);
    for (int64_t i = 0; i < 10; i++) {
        char name[8];
        snprintf(name, sizeof name, "i%d", (int)i);
        model_ints(m, name, 1, &i);
    }
    model_ints(m, "minus", 1, &(int64_t){-1});
    model_ints(m, "far", 1, &(int64_t){INT64_MAX});
    model_add(m, "number = Constant() c0 value_float=0.7978845",
              "one = Constant() c1 value_float=1.0", "half = Constant() c2 value_float=0.5",
              "two = Constant() c3 value_float=2.0", "root = Constant() c4 value_float=0.49999975",
              "h = MatMul(x w) product");
    for (uint32_t i = 0; i < MAX_NODES && p->nodes[i] != NULL; i++) add_node(m, p->nodes[i], i);
    model_output(m, "y", "f32");
    return m;
}

/* The names of the operations after the first one, and what is kept beside x. */
static uint64_t run(const pattern *p, bool as_exported, char *names, size_t size)
{
    trainer t;
    model *m = build(p);
    trainer_open_model(&t, m);
    OWNED_EAGER eager;
    onv_lower_options options = {.loss = ONV_LOSS_NONE, .as_exported = as_exported};
    trainer_lower(&t, &options, &eager);
    size_t length = 0;
    names[0] = '\0';
    for (size_t i = 1; i < eager.ops.count; i++)
        length += (size_t)snprintf(names + length, size - length, "%s%s", i > 1 ? " " : "",
                                   eager.ops.at[i].name);
    uint64_t kept = trainer_saved(&t, &options);
    trainer_close(&t);
    model_free(m);
    return kept - H;
}

static void expect(const pattern *p, bool as_exported)
{
    char names[512];
    uint64_t kept = run(p, as_exported, names, sizeof names);
    if (strcmp(names, p->operations) != 0)
        fail_msg("%s ...: '%s', not '%s'", p->nodes[0], names, p->operations);
    if (kept != p->kept)
        fail_msg("%s ...: keeps %llu bytes, not %llu", p->nodes[0], (unsigned long long)kept,
                 (unsigned long long)p->kept);
}

#define ROOT_2 "Div(h number)a", "Erf(a)b", "Add(b one)c"
#define TANH_OF_CUBIC                                                                              \
    "Mul(h h)a", "Mul(a h)b", "Mul(b number)c", "Add(h c)d", "Mul(d number)e", "Tanh(e)f",         \
        "Add(f one)g"
#define NORMALISED                                                                                 \
    "ReduceMean(h)a axes=[-1]", "Sub(h a)b", "Pow(b number)c", "ReduceMean(c)d axes=[-1]",         \
        "Add(d half)e", "Sqrt(e)f"
#define DEVIATIONS                                                                                 \
    "ReduceMean(h)a axes=[-1]", "Sub(h a)b", "Mul(b b)c", "ReduceMean(c)d axes=[-1]",              \
        "Mul(d number)e"
#define IN_GROUPS "Reshape(h groups)a", "InstanceNormalization(a s s)b", "Reshape(b whole)c"

enum {
    ROWS = 2 * 4 * 4, /* mean and 1/std, float32 */
    GROUPS = 2 * 4 * 2 * 4,
    SCALES = 4 * 2 * 4 /* the weight, repeated for each sample */
};

TEST(exported_forms_are_one_operation)
{
    static const pattern table[] = {
        {{ROOT_2, "Mul(h c)d", "Mul(d half)y"}, "gelu", H},
        {{ROOT_2, "Mul(h half)d", "Mul(d c)y"}, "gelu", H},
        {{ROOT_2, "Mul(c half)d", "Mul(d h)y"}, "gelu", H},
        {{TANH_OF_CUBIC, "Mul(h half)i", "Mul(i g)y"}, "gelu", H},
        {{TANH_OF_CUBIC, "Mul(h g)i", "Mul(half i)y"}, "gelu", H},
        {{"Sigmoid(h)a", "Mul(h a)y"}, "silu", H},
        {{"Sigmoid(h)a", "Mul(a h)y"}, "silu", H},
        {{"Softplus(h)a", "Tanh(a)b", "Mul(h b)y"}, "mish", H},
        {{"HardSigmoid(h)a alpha=0.1666667", "Mul(h a)y"}, "hardswish", H},
        {{"Split(h)a,b axis=1", "Sigmoid(b)c", "Mul(a c)y"}, "glu", H},
        {{"Sqrt(h)a", "Reciprocal(a)y"}, "rsqrt", H},
        {{"Sqrt(h)a", "Div(one a)y"}, "rsqrt", H},
        {{DEVIATIONS, "Div(e half)y"}, "var", H},
        {{DEVIATIONS, "Div(e half)f", "Sqrt(f)y"}, "std", H + ROWS / 2},
        {{"Softmax(h)a", "IsNaN(a)b", "Unsqueeze(half i0)c", "Where(b c a)y"}, "softmax", H},
        {{NORMALISED, "Div(b f)y"}, "layer_norm", H + ROWS},
        {{NORMALISED, "Div(b f)g", "Mul(g v)y"}, "layer_norm", H + ROWS},
        {{NORMALISED, "Div(b f)g", "Mul(v g)i", "Add(u i)y"}, "layer_norm", H + ROWS},
        {{IN_GROUPS, "Mul(c v)d", "Add(d u)y"}, "group_norm", H + GROUPS},
        {{"Identity(v)i", "Identity(u)j", IN_GROUPS, "Mul(c i)d", "Add(d j)y"},
         "group_norm",
         H + GROUPS},
        {{"Softmax(h)a", "IsNaN(a)b", "Where(b number a)y"}, "softmax", H},
        {{"Softmax(h)a", "IsNaN(a)b", "Where(b a number)y"}, "softmax isnan where", H + H / 4},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) expect(&table[i], false);
}

/* "-" is a result without a name: nothing can read it, and it has no place in a pattern. What leads to
 * none that is read keeps nothing. */
TEST(results_without_a_name_match_nothing)
{
    static const pattern table[] = {
        {{"Softmax(h)-", "Exp(h)y"}, "exp", H},
        {{"Softmax(h)a", "IsNaN(a)-", "Exp(a)y"}, "softmax exp", 2 * H},
        {{"Softmax(h)a", "IsNaN(a)b", "Where(b number a)-", "Exp(h)y"}, "softmax isnan exp", H},
        {{"Squeeze(h)-", "Exp(h)y"}, "exp", H},
        {{"Reshape(h groups)a", "InstanceNormalization(a s s)b", "Reshape(b whole)-", "Exp(h)y"},
         "view repeat repeat instance_norm exp",
         H},
        {{"Transpose(h)t", "MatMul(h t)a", "Softmax(a)b", "MatMul(b h)-", "Exp(h)y"},
         "permute mm softmax exp",
         H},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) expect(&table[i], false);
}

/* As exported, every node is an operation, and products keep both of their factors. */
TEST(as_exported_nothing_is_put_together)
{
    static const pattern table[] = {
        {{"Sigmoid(h)a", "Mul(h a)y"}, "sigmoid mul", 2 * H},
        {{"Softplus(h)a", "Tanh(a)b", "Mul(h b)y"}, "softplus tanh mul", 2 * H},
        {{"HardSigmoid(h)a", "Mul(h a)y"}, "hardsigmoid mul", 2 * H},
        {{IN_GROUPS, "Mul(c v)y"},
         "view repeat repeat instance_norm view mul",
         2 * H + GROUPS + SCALES},
        {{"Slice(h i3 far i1)a", "Slice(h i0 i3 i1)b", "Concat(a b)y axis=1"},
         "slice slice cat",
         0},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) expect(&table[i], true);
}

/* One node is different, or somebody else reads what would be gone. */
TEST(look_alikes_stay_what_they_are)
{
    static const pattern table[] = {
        {{ROOT_2, "Mul(h c)d", "Mul(d h)y"}, "div erf add mul mul", 4 * H},
        {{"Sigmoid(h)a", "Mul(x a)y"}, "sigmoid mul", H},
        {{"Sigmoid(h)a", "Mul(h a)b", "Add(a b)y"}, "sigmoid mul add", 2 * H},
        {{"Softplus(h)a", "Tanh(a)b", "Mul(h b)c", "Add(a c)y"}, "softplus tanh mul add", 2 * H},
        {{"Slice(h i3 far i1)a", "Slice(x i0 i3 i1)b", "Concat(a b)y axis=1"},
         "slice slice cat",
         0},
        {{"Slice(h i0 i4 i1)a", "Slice(h i3 i7 i1)b", "Slice(h i4 i8 i1)c", "Unsqueeze(a i1)d",
          "Unsqueeze(b i1)e", "Unsqueeze(c i1)f", "Concat(d e f)y axis=1"},
         "slice slice slice view view view cat",
         0},
        {{"Slice(h i3 far i1)a", "Slice(h i0 i4 i1)b", "Concat(a b)y axis=1"},
         "slice slice cat",
         0},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) expect(&table[i], false);
}

TEST(views_and_their_copies)
{
    static const pattern table[] = {
        {{"Slice(h i1 i7 i1 i2)a", "Exp(a)y"}, "slice exp", H * 3 / 8},
        {{"Slice(h i0 i9 i1)a", "Exp(a)y"}, "slice exp", H},
        {{"Slice(h i7 i0 i1 minus)a", "Exp(a)y"}, "flip exp", H * 7 / 8},
        {{"Split(h)a,b axis=1", "Mul(a b)y"}, "split mul", H},
        {{"Reshape(h heads)a", "InstanceNormalization(a s s)b", "Exp(b)y"},
         "view repeat repeat instance_norm exp",
         2 * H + GROUPS + SCALES},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) expect(&table[i], false);
}

/* From opset 20 on F.gelu is a Gelu: a formula is one in Python, too, and keeps what its operations do. */
TEST(formulas_of_gelu_depend_on_the_opset)
{
    for (int opset = 17; opset <= 20; opset += 3) {
        model *m = model_read(opset, "in x f32[4,8]", "weight w f32[8,8]",
                              "root = Constant() c0 value_float=1.4142135",
                              "one = Constant() c1 value_float=1.0",
                              "half = Constant() c2 value_float=0.5", "h = MatMul(x w) product",
                              "s = Div(h root) scaled", "e = Erf(s) erf", "p = Add(e one) plus",
                              "t = Mul(h p) times", "y = Mul(t half) halved", "out y f32");
        assert_int_equal(trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE}),
                         opset < 20 ? H + H : H + 3 * H);
    }
}
