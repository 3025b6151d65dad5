/* Sizes as sympy writes them, in both of its forms. */
#include "ir/dim.h"
#include "support/capture.h"
#include "support/test.h"

typedef struct pool {
    onv_arena arena;
    onv_strings strings;
    onv_dims dims;
} pool;

static void pool_init(pool *p)
{
    onv_arena_init(&p->arena, SIZE_MAX);
    onv_strings_init(&p->strings, &p->arena);
    onv_dims_init(&p->dims, &p->arena);
}

static void pool_cleanup(pool *p)
{
    onv_dims_cleanup(&p->dims);
    onv_strings_cleanup(&p->strings);
    onv_arena_cleanup(&p->arena);
}

static const struct {
    const char *text, *dim; /* as onv_dim_text writes it */
} rows[] = {
    {"Symbol('s77', positive=True, integer=True)", "s77"},
    {"Integer(12)", "12"},
    {"Integer(-3)", "-3"},
    {"Mul(Integer(8), Symbol('s77', positive=True, integer=True))", "s77*8"},
    {"Add(Mod(Symbol('s77'), Integer(3)), Integer(8))", "mod(s77, 3) + 8"},
    {"Add(Symbol('a'), Symbol('b'), Mul(Integer(-1), Symbol('a')))", "b"},
    {"FloorDiv(Symbol('s'), Integer(2))", "floor(s/2)"},
    {"FloorDiv(Add(Symbol('s'), Integer(1)), Integer(-2))", "floor((-s + 1)/2) - 1"},
    {"CleanDiv(Mul(Integer(6), Symbol('s')), Integer(3))", "s*2"},
    {"PythonMod(Symbol('s'), Integer(4))", "mod(s, 4)"},
    {"Max(Integer(3), Symbol('s'))", "max(3, s)"},
    {"Min(Integer(3), Symbol('s'), Symbol('t'))", "min(3, s, t)"},
    {"Pow(Symbol('s'), Integer(2))", "s*s"},
    {"PowByNatural(Symbol('s'), Integer(3))", "s*s*s"},
    {"Mul(Pow(Integer(2), Integer(-1)), Symbol('s'), Integer(4))", "s*2"},
    {"Mul(Rational(1, 2), Symbol('s'))", "floor(s/2)"},
    {"CeilToInt(IntTrueDiv(Symbol('s'), Integer(3)))", "floor((s + 2)/3)"},
    {"ceiling(Mul(Rational(1, 3), Symbol('s')))", "floor((s + 2)/3)"},
    {"TruncToInt(Mul(Float('1.5', precision=53), ToFloat(Symbol('s'))))", "floor((s*3)/2)"},
    {"FloorToInt(FloatTrueDiv(ToFloat(Symbol('s')), Float('4.0', precision=53)))", "floor(s/4)"},
    {"Mul(Integer(12), Max(Integer(1), TruncToInt(Mul(Float('1.5', precision=53), "
     "ToFloat(Symbol('s'))))))",
     "max(1, floor((s*3)/2))*12"},
    {"ModularIndexing(Symbol('s'), Integer(4), Integer(3))", "mod(floor(s/4), 3)"},
    {"Identity(Symbol('s'))", "s"},
    {"torch.utils._sympy.functions.FloorDiv(Symbol('s'), Integer(2))", "floor(s/2)"},
    /* before PyTorch 2.7 */
    {"s0", "s0"},
    {"2*s0 + 1", "s0*2 + 1"},
    {"((s0 + 3)//4)", "floor((s0 + 3)/4)"},
    {"s0 - 2", "s0 - 2"},
    {"-s0 + 5", "-s0 + 5"},
    {"s0**2*s1", "s0*s0*s1"},
    {"s0/2", "floor(s0/2)"},
    {"(s0 - 1)//(-2) + 7", "floor((-s0 + 1)/2) + 7"},
    {"Mod(s0, 3)", "mod(s0, 3)"},
    {"s0 % 3", "mod(s0, 3)"},
    {"Max(1, s0)", "max(1, s0)"},
    {"-2**2", "-4"},
    {"2**-1*s0", "floor(s0/2)"},
    /* names of dims */
    {"past + sequence", "past + sequence"},
    {"images.0*2", "images.0*2"},
    {"max(1, n)", "max(1, n)"},
    {"floor(height/2 - 1/2) + 1", "floor((height + 1)/2)"},
    /* what has no dim */
    {"Where(LessThan(Symbol('s'), Integer(5)), Integer(1), Symbol('s'))", "?"},
    {"Add(Integer(1), OpaqueUnaryFn_sqrt(Symbol('s')))", "?"},
    {"s0 < 3", "?"},
    {"Max(Mul(Rational(1, 2), Symbol('s')), Integer(1))", "?"},
    {"FloorDiv(Symbol('s'), Integer(0))", "?"},
    {"Mod(Symbol('s'), Integer(0))", "?"},
    {"Pow(Symbol('s'), Symbol('t'))", "?"},
    {"Mul(Float('0.33333333333333331', precision=53), ToFloat(Symbol('s')))", "?"},
    {"99999999999999999999", "?"},
    {"True", "?"},
};

TEST(sizes_become_dims)
{
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pool p;
        onv_dim dim;
        const char *unread;
        onv_error err = {0};
        pool_init(&p);
        onv_status status = onv_dim_read(rows[i].text, &p.dims, &p.strings, &dim, &unread, &err);
        const char *text = status == ONV_OK ? onv_dim_text(&p.dims, &p.arena, dim) : err.message;
        if (strcmp(text, rows[i].dim) != 0) {
            print_error("%s is %s, not %s\n", rows[i].text, text, rows[i].dim);
            wrong++;
        }
        if (status == ONV_OK && !onv_dim_is_known(dim)) assert_non_null(unread);
        pool_cleanup(&p);
    }
    assert_int_equal(wrong, 0);
}

/* Both forms of a size have the same value wherever Python computes it. */
TEST(values_are_those_of_python)
{
    static const struct {
        const char *text;
        int64_t values[5]; /* of s from 1 on */
    } of[] = {
        {"TruncToInt(Mul(Float('0.75', precision=53), ToFloat(Symbol('s'))))", {0, 1, 2, 3, 3}},
        {"Add(Mul(Integer(2), Symbol('s')), FloorDiv(Symbol('s'), Integer(3)))", {2, 4, 7, 9, 11}},
        {"CeilDiv(Symbol('s'), Integer(2))", {1, 1, 2, 2, 3}},
        {"Max(Integer(3), Mod(Symbol('s'), Integer(5)))", {3, 3, 3, 4, 3}},
        {"Abs(Add(Symbol('s'), Integer(-3)))", {2, 1, 0, 1, 2}},
        {"(s*(s - 1))//2", {0, 1, 3, 6, 10}},
    };
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        pool p;
        onv_dim dim;
        const char *unread;
        pool_init(&p);
        assert_int_equal(onv_dim_read(of[i].text, &p.dims, &p.strings, &dim, &unread, NULL),
                         ONV_OK);
        for (int64_t s = 1; s <= 5; s++) {
            onv_dim size = onv_dim_const(s);
            assert_int_equal(onv_dim_eval(&p.dims, dim, &size).raw, of[i].values[s - 1]);
        }
        pool_cleanup(&p);
    }
}

static onv_status read(const char *text)
{
    pool p;
    onv_dim dim;
    const char *unread;
    pool_init(&p);
    onv_status status = onv_dim_read(text, &p.dims, &p.strings, &dim, &unread, NULL);
    pool_cleanup(&p);
    return status;
}

TEST(what_is_no_expression_is_refused)
{
    static const char *const texts[] = {
        "",
        " ",
        "Add(",
        "Add(1,",
        "Add(1",
        "Add(1 2)",
        "(1",
        "1)",
        "1 +",
        "* 2",
        "Symbol('s",
        "Integer('x y')1",
        "Integer()",
        "Mod(1)",
        "'1x'",
        "1e5",
        "a b",
        "FloorDiv(1, 2, 3)",
        "Symbol(s77 = )",
        "\xff",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (read(texts[i]) != ONV_ERR_FORMAT) fail_msg("'%s' is read", texts[i]);
}

/* Text of `n` times the opening, then the middle, then the ends. */
static char *nested(size_t n, const char *open, const char *middle, const char *close)
{
    char *text = malloc(n * (strlen(open) + strlen(close)) + strlen(middle) + 1), *at = text;
    assert_non_null(text);
    for (size_t i = 0; i < n; i++) at += sprintf(at, "%s", open);
    at += sprintf(at, "%s", middle);
    for (size_t i = 0; i < n; i++) at += sprintf(at, "%s", close);
    return text;
}

TEST(depth_is_limited)
{
    static const char *const parts[][2] = {
        {"(", ")"}, {"Add(1, ", ")"}, {"2**", ""}, {"1 + (", ")"}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        OWNED_TEXT fits = nested(50, parts[i][0], "1", parts[i][1]);
        OWNED_TEXT deep = nested(100000, parts[i][0], "1", parts[i][1]);
        assert_int_equal(read(fits), ONV_OK);
        assert_int_equal(read(deep), ONV_ERR_LIMIT);
    }
}
