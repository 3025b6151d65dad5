/* A node that contradicts its operator's definition: the rest is answered, unless the answer is to be strict. */
#include "support/onnx_writer.h"
#include "support/test.h"

/* One node reads what the bad one makes, another does not. */
static model *with_readers(model *m)
{
    model_add(m, "y = Relu(p) behind", "z = Neg(x) apart", "out y f32", "out z f32");
    return m;
}

/* MatMul does not fit its weight; its output is declared, or not. What does not read it is as ever. */
static model *with_bad_product(const char *declared)
{
    model *m = model_read(17, "in x f32[n,8]", "weight w f32[7,4]", "p = MatMul(x w) bad");
    if (declared != NULL) model_value_info(m, "p", declared);
    return with_readers(m);
}

/* The body of the Loop contradicts itself. */
static model *with_bad_body(const char *unused)
{
    (void)unused;
    model *m = model_read(17, "in x f32[n,8]", "int m 3");
    model_bool(m, "go_on", true);
    model_add(m, "begin body", "in i i64[]", "in ci bool[]", "in s f32", "weight w f32[7,8]",
              "co = Identity(ci)", "so = MatMul(s w) inner", "out co bool[]", "out so f32", "end",
              "p = Loop(m go_on x) bad");
    return with_readers(m);
}

static model *with_bad_arity(const char *unused)
{
    (void)unused;
    model *m = model_read(17, "in x f32[n,8]", "p = Relu(x x) bad");
    return with_readers(m);
}

typedef struct contradiction {
    model *(*make)(const char *declared);
    const char *declared;
    int64_t n; /* 0: free */
    const char *y, *z, *message;
} contradiction;

static const contradiction rows[] = {
    {with_bad_product, NULL, 0, "[...]", "[n, 8]",
     "MatMul: inner dims of [n, 8] and [7, 4] differ"},
    {with_bad_product, "f32[n,4]", 0, "[n, 4]", "[n, 8]", "shapes that the file declares"},
    {with_bad_product, "f32[n,4]", 5, "[5, 4]", "[5, 8]",
     "MatMul: inner dims of [5, 8] and [7, 4] differ"},
    {with_bad_body, NULL, 0, "[...]", "[n, 8]",
     "MatMul 'bad/body/inner': inner dims of [n, 8] and [7, 8] differ"},
    {with_bad_body, NULL, 2, "[...]", "[2, 8]", "what it runs is not counted"},
    {with_bad_arity, NULL, 3, "[...]", "[3, 8]", "takes 1 to 1 inputs, the node has 2"},
};

static void expect_warning(const onv_analysis *a, const char *message)
{
    onv_diagnostic diag;
    uint32_t n = 0;
    for (size_t i = 0; onv_analysis_diagnostic(a, i, &diag); i++) {
        if (strcmp(diag.code, "contradiction") != 0) continue;
        n++;
        assert_string_equal(diag.node, "bad");
        if (strstr(diag.message, message) == NULL)
            fail_msg("'%s' does not say '%s'", diag.message, message);
    }
    assert_int_equal(n, 1);
}

TEST(the_rest_is_answered)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        onv_options options = onv_options_default();
        const onv_dim_binding dim = {"n", rows[i].n};
        if (rows[i].n > 0) {
            options.dims = &dim;
            options.n_dims = 1;
        }
        OWNED_MODEL m = rows[i].make(rows[i].declared);
        onv_analysis *a = model_analyse(m, &options);
        assert_string_equal(model_shape(a, "y"), rows[i].y);
        assert_string_equal(model_shape(a, "z"), rows[i].z);
        expect_warning(a, rows[i].message);
        onv_analysis_destroy(a);
        options.strict = true;
        onv_error error = {0};
        assert_int_equal(model_try(m, &options, &a, &error), ONV_ERR_MODEL);
    }
}

/* What contradicts the sizes that are asked for is no matter of the model. */
TEST(asked_sizes_are_refused)
{
    onv_options options = onv_options_default();
    onv_error error = {0};
    onv_analysis *a;
    options.dims = &(onv_dim_binding){"n", 7};
    options.n_dims = 1;
    OWNED_MODEL m =
        model_read(17, "in x f32[2,n]", "weight w f32[8,4]", "y = MatMul(x w)", "out y f32");
    assert_int_equal(model_try(m, &options, &a, &error), ONV_ERR_MODEL);
    assert_non_null(strstr(error.message, "inner dims of [2, 7] and [8, 4]"));
}
