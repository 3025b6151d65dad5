/* Formulas from values at points: the largest of polynomials is found again, what is none is refused with a size. */
#include "graph/formula.h"

#include <string.h>

#include "base/strings.h"
#include "support/test.h"

typedef struct case_of {
    uint64_t (*value)(int64_t b, int64_t s);
    const char *text; /* NULL: there is none */
    const char *why;
    bool is_partial;
} case_of;

static uint64_t largest(int64_t b, int64_t s)
{
    uint64_t x = (uint64_t)(b * s * s * 4 + 1000), y = (uint64_t)(b * s * 2048 + 500);
    return x > y ? x : y;
}

static uint64_t rounded(int64_t b, int64_t s)
{
    return (uint64_t)(b * s * 100 + 255) / 256 * 256;
}

static uint64_t constant(int64_t b, int64_t s)
{
    return (uint64_t)(b * 0 + s * 0 + 77);
}

static uint64_t halves(int64_t b, int64_t s)
{
    return (uint64_t)(b * (b + 1) / 2 + s);
}

static onv_status value(void *context, const int64_t *sizes, uint64_t *values, bool *has,
                        onv_error *err)
{
    const case_of *c = context;
    if (err == NULL) return ONV_ERR_MODEL;
    *has = !c->is_partial || sizes[1] < 128;
    values[0] = c->value(sizes[0], sizes[1]);
    return ONV_OK;
}

TEST(polynomials_are_found_again)
{
    static const case_of cases[] = {
        {.value = largest, .text = "batch*sequence*2048 + 500|batch*sequence*sequence*4 + 1000"},
        {.value = constant, .text = "77"},
        {.value = rounded, .why = "around batch = "},
        {.value = halves, .why = "around batch = "},
        {.value = largest, .why = "points have no figure", .is_partial = true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        onv_arena arena;
        onv_dims dims;
        onv_error err;
        onv_arena_init(&arena, SIZE_MAX);
        onv_strings strings;
        onv_strings_init(&strings, &arena);
        onv_dims_init(&dims, &arena);
        onv_dim_symbol(&dims, onv_intern(&strings, "batch"));
        onv_dim_symbol(&dims, onv_intern(&strings, "sequence"));
        onv_sampled s = {.dims = {{"batch", 1, 2, 128}, {"sequence", 8, 1, 128}},
                         .n_dims = 2,
                         .figures = {{.name = "torch"}},
                         .n_figures = 1};
        case_of c = cases[i];
        assert_int_equal(onv_sampled_find(&s, &dims, &arena, value, &c, &err), ONV_OK);
        assert_int_equal(s.n_points, ONV_SAMPLED_POINTS);
        const char *why = s.why_not != NULL ? s.why_not : s.figures[0].why_not;
        assert_int_equal(why == NULL, c.why == NULL);
        if (why != NULL) assert_non_null(strstr(why, c.why));
        assert_int_equal(s.figures[0].n_pieces == 0, c.why != NULL);
        for (uint32_t k = 0; k < s.figures[0].n_pieces; k++) {
            const char *text = onv_dim_text(&dims, &arena, s.figures[0].pieces[k]);
            assert_non_null(text);
            assert_non_null(strstr(c.text, text));
        }
        onv_dims_cleanup(&dims);
        onv_strings_cleanup(&strings);
        onv_arena_cleanup(&arena);
    }
}
