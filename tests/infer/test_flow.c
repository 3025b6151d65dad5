/* Branches and loops in inference: what never runs, what cannot run, what decides, and sizes that are
 * bound by the names that inference gives them. */
#include "support/capture.h"
#include "support/onnx_writer.h"
#include "support/test.h"

/* The boxes of each of ninety classes are data, and more sizes than an expression holds: joined, they have a bound. */
TEST(many_sizes_of_data_have_a_bound_together)
{
    OWNED_MODEL m = model_read(17, "in x f32[10]");
    char names[90 * 4 + 1] = "", line[32];
    for (int i = 0; i < 90; i++) {
        snprintf(line, sizeof line, "n%d = NonZero(x)", i);
        model_add(m, line);
        snprintf(line, sizeof line, "%sn%d", i > 0 ? " " : "", i);
        strcat(names, line);
    }
    model_node(m, "Concat", "join", names, "y", "axis=1");
    model_output(m, "y", "i64[1,n]");
    OWNED_ANALYSIS a = model_analyse(m, NULL);
    onv_tensor_info info = {0};
    onv_diagnostic diag;
    for (size_t i = 0; onv_analysis_tensor(a, i, &info); i++)
        if (strcmp(info.name, "y") == 0) break;
    assert_string_equal(info.name, "y");
    assert_int_equal(info.bytes, 90 * 10 * 8);
    assert_true(info.bound);
    assert_false(onv_analysis_diagnostic(a, 0, &diag));
}

/* A branch: x[1, len] times a weight of that type. */
static void product(model *m, const char *branch, const char *weight, const char *type)
{
    model_begin(m, branch);
    model_weight(m, weight, type);
    char inputs[16];
    snprintf(inputs, sizeof inputs, "x %s", weight);
    model_node(m, "MatMul", "", inputs, branch, "");
    model_output(m, branch, "f32");
    model_end(m);
}

/* An If over two products, decided by the input sr. */
static model *rates(void)
{
    model *m =
        model_read(17, "in x f32[1,len]", "in sr i64[]", "int k 16000", "c = Equal(sr k) eq");
    product(m, "then_branch", "w8", "f32[8,4]");
    product(m, "else_branch", "w16", "f32[16,4]");
    model_add(m, "y = If(c) choose", "out y f32");
    return m;
}

/* A loop whose state doubles; `limit` iterations at most, "-" for none. */
static model *doubling(const char *inputs, int64_t limit)
{
    model *m = model_read(17, "in x f32[4]", "in c bool[]");
    model_int(m, "m", limit);
    model_add(m, "begin body", "in i i64[]", "in ci bool[]", "in s f32", "co = Identity(ci)",
              "so = Concat(s s) axis=0", "out co bool[]", "out so f32", "end");
    model_node(m, "Loop", "grow", inputs, "y", "");
    model_output(m, "y", "f32[n]");
    return m;
}

static model *data_length(void)
{
    model *m = model_read(17, "in d i64[1,20]", "int zero 0", "int one 1",
                          "n = ReduceSum(d) sum keepdims=0", "r = Range(zero n one) range",
                          "y = Cast(r) cast to=1", "out y f32[audio_length]");
    return m;
}

typedef struct expected {
    const char *dim; /* "NAME=N" for --dim, NULL: none */
    const char *value;
    const char *shape;   /* of y; NULL: the model is refused */
    const char *message; /* part of the error or of a diagnostic of `code` */
    const char *code;    /* NULL: there are no diagnostics */
} expected;

static void expect_diag(const onv_analysis *a, const expected *e)
{
    onv_diagnostic diag;
    if (e->code == NULL) {
        assert_false(onv_analysis_diagnostic(a, 0, &diag));
        return;
    }
    for (size_t i = 0; onv_analysis_diagnostic(a, i, &diag); i++)
        if (strcmp(diag.code, e->code) == 0 && strstr(diag.message, e->message) != NULL) return;
    fail_msg("no %s that says '%s'", e->code, e->message);
}

static void check(model *m, const expected *e)
{
    onv_options options = onv_options_default();
    char name[64] = "", input[64] = "";
    long long size = 0;
    double number = 0;
    onv_dim_binding dim = {.name = name};
    onv_input_value value = {.name = input, .numbers = &number, .count = 1};
    if (e->dim != NULL) {
        assert_int_equal(sscanf(e->dim, "%63[^=]=%lld", name, &size), 2);
        dim.size = size;
        options.dims = &dim;
        options.n_dims = 1;
    }
    if (e->value != NULL) {
        assert_int_equal(sscanf(e->value, "%63[^=]=%lf", input, &number), 2);
        options.input_values = &value;
        options.n_input_values = 1;
    }
    OWNED_ANALYSIS a = NULL;
    onv_error error = {0};
    onv_status status = model_try(m, &options, &a, &error);
    if (e->shape == NULL) {
        assert_int_not_equal(status, ONV_OK);
        if (strstr(error.message, e->message) == NULL)
            fail_msg("'%s' does not say '%s'", error.message, e->message);
    } else {
        if (status != ONV_OK) fail_msg("%s", error.message);
        assert_string_equal(model_shape(a, "y"), e->shape);
        expect_diag(a, e);
    }
    model_free(m);
}

TEST(branches_that_do_not_fit_are_dropped)
{
    static const expected rows[] = {
        {"len=8", NULL, "[1, 4]", "else_branch cannot run", "impossible-branch"},
        {"len=16", NULL, "[1, 4]", "then_branch cannot run", "impossible-branch"},
        {"len=16", NULL, "[1, 4]", "'sr' decides", "impossible-branch"},
        {"len=7", NULL, NULL, "both branches contradict", NULL},
        {"len=8", "sr=16000", "[1, 4]", NULL, NULL},
        {"len=8", "sr=8000", NULL, "inner dims", NULL},
        {NULL, NULL, "[1, 4]", "--input-value sr=16000", "open-branch"},
        {NULL, "sr=1", "[1, 4]", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) check(rates(), &rows[i]);
}

TEST(few_iterations_are_run_one_by_one)
{
    static const expected rows[] = {
        {NULL, "c=1", "[32]", NULL, NULL},
        {NULL, "c=0", "[4]", NULL, NULL},
        {"trips#0=2", NULL, "[16]", NULL, NULL},
        {"trips#0=0", NULL, "[4]", NULL, NULL},
        {"trips#0=4", NULL, NULL, "at most 3", NULL},
        {"trips#1=2", NULL, NULL, "trips#0", NULL},
        {NULL, NULL, "[carried#0.2]", "at most 3: input 'c' decides", "open-trips"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) check(doubling("m c x", 3), &rows[i]);
    check(doubling("m - x", 5), &(expected){.shape = "[128]"});
    check(doubling("m - x", 0), &(expected){.shape = "[4]"});
    check(doubling("m - x", 64), &(expected){.message = "61 bits"});
    check(doubling("m - x", 65), &(expected){.shape = "[n]"});
}

/* TorchScript's "for i in range(n)": nothing but an input says how often. */
static model *counted(void)
{
    model *m = model_read(17, "in n i64", "in x f32[4]");
    model_bool(m, "go_on", true);
    model_add(m, "begin body", "in i i64", "in c bool", "in s f32[4]");
    model_bool(m, "again", true);
    model_add(m, "t = Relu(s)", "out again bool", "out t f32[4]", "end", "y = Loop(n go_on x) loop",
              "out y f32");
    return m;
}

TEST(iterations_are_bound_by_the_name_that_is_told)
{
    static const expected rows[] = {
        {NULL, NULL, "[4]", "'trips#0=N'", "open-trips"},
        {"trips#0=3", NULL, "[4]", NULL, NULL},
        {"trips#0=1", NULL, "[4]", NULL, NULL},
        {"trips#0=0", NULL, "[4]", NULL, NULL},
        {"trips#1=3", NULL, NULL, "--dim: 'trips#1' is unknown", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) check(counted(), &rows[i]);
}

/* The body of a loop that runs once sees the initial value, and what it stacks is that, too. */
TEST(one_iteration_is_exact)
{
    for (int ends = 0; ends < 2; ends++) {
        OWNED_MODEL m = model_read(17, "in x f32[4]", "int zero 0");
        model_int(m, "m", ends ? 5 : 1);
        model_add(m, "always = Equal(m m)", "begin body", "in i i64[]", "in ci bool[]", "in s f32");
        model_node(m, ends ? "Less" : "Identity", "", ends ? "i zero" : "ci", "co", "");
        model_add(m, "slice = Neg(s)", "so = Concat(x x) axis=0", "out co bool[]", "out so f32",
                  "out slice f32", "end", "y stacked = Loop(m always x) once", "out y f32",
                  "out stacked f32");
        OWNED_ANALYSIS a = model_analyse(m, NULL);
        assert_string_equal(model_shape(a, "y"), "[8]");
        assert_string_equal(model_shape(a, "stacked"), "[1, 4]");
    }
}

/* What tf2onnx makes of `while time < length`: no limit, and a counter that the condition compares. */
TEST(a_counter_ends_the_loop)
{
    OWNED_MODEL m = model_read(
        17, "in x f32[4]", "int zero 0", "int one 1", "int length 90", "starts = Less(zero length)",
        "begin body", "in i i64[]", "in ci bool[]", "in time i64[]", "in s f32[4]",
        "next = Add(time one)", "co = Less(next length)", "so = Neg(s)", "slice = Identity(so)",
        "out co bool[]", "out next i64[]", "out so f32[4]", "out slice f32[4]", "end",
        "time state y = Loop(- starts zero x)", "out y f32");
    OWNED_ANALYSIS a = model_analyse(m, NULL);
    assert_string_equal(model_shape(a, "y"), "[90, 4]");
}

TEST(sizes_of_the_data_are_bound_by_name)
{
    static const expected rows[] = {
        {NULL, NULL, "[range#1]", NULL, NULL},
        {"range#1=191", NULL, "[191]", NULL, NULL},
        {"audio_length=191", NULL, "[191]", NULL, NULL},
        {"range#2=191", NULL, NULL, "range#1", NULL},
        {"audio=191", NULL, NULL, "--dim: 'audio' is unknown", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) check(data_length(), &rows[i]);
}

/* The name that an output declares for a size that is another. */
TEST(a_declared_name_is_never_ignored)
{
    for (int64_t size = 3; size <= 4; size++) {
        model *m = model_read(17, "in x f32[4]", "y = Relu(x)", "out y f32[n]");
        check(m, size == 4 ? &(expected){.dim = "n=4", .shape = "[4]"}
                           : &(expected){.dim = "n=3", .message = "axis 0 of 'y', which is 4"});
    }
}
