/* Inference on symbols and inference on numbers agree: the expressions of a model that was analysed
 * without bindings, evaluated at random sizes, are what the model analysed at these sizes has. */
#include <dirent.h>

#include "infer/infer.h"
#include "ir/check.h"
#include "load/load.h"
#include "support/test.h"

enum { DRAWS = 6, MAX_SYMBOLS = 16, MAX_COMPLAINTS = 10 };

typedef struct draw {
    onv_dim_binding at[MAX_SYMBOLS];
    size_t count;
} draw;

/* One model on symbols, and the same on numbers. */
typedef struct pair {
    const char *name;
    onv_model symbolic, bound;
    onv_infer_info symbolic_info, bound_info;
    onv_dim *values; /* by symbol of `symbolic` */
    int complaints;
    bool may_stay_open; /* a size hangs on a quotient of sizes, which has no expression */
} pair;

static onv_status infer(const char *path, const draw *sizes, onv_model *model, onv_infer_info *info)
{
    onv_options options = onv_options_default();
    onv_error error = {0};
    if (sizes != NULL) {
        options.dims = sizes->at;
        options.n_dims = sizes->count;
    }
    onv_status status = onv_load(path, options.limits, model, &error);
    if (status != ONV_OK) fail_msg("%s: %s", path, error.message);
    status = onv_graph_check(model, &error);
    if (status == ONV_OK) status = onv_infer(model, &options, info, &error);
    if (status != ONV_OK) onv_model_cleanup(model);
    if (status != ONV_OK && sizes == NULL) fail_msg("%s: %s", path, error.message);
    return status;
}

/* --- Sizes ------------------------------------------------------------------------------------- */

static uint64_t next(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

static int64_t size_named(const draw *sizes, const char *name)
{
    for (size_t i = 0; i < sizes->count; i++)
        if (strcmp(sizes->at[i].name, name) == 0) return sizes->at[i].size;
    return 0;
}

/* The cache is empty every other time. Pictures are not tiny and then as even as U-Nets want them; the samples' attention
 * masks are as long as past and sequence. */
static draw draw_sizes(const onv_infer_info *info, bool even, uint64_t *seed)
{
    draw sizes = {.count = 0};
    assert_in_range(info->free_dims.count, 0, MAX_SYMBOLS);
    for (size_t i = 0; i < info->free_dims.count; i++) {
        const char *name = info->free_dims.at[i].name;
        bool picture = strcmp(name, "height") == 0 || strcmp(name, "width") == 0;
        int64_t size = (int64_t)(1 + next(seed) % 40);
        if (strcmp(name, "past") == 0 && even) size = 0;
        if (strcmp(name, "samples") == 0) size = 1000 + size * 37; /* of sound */
        if (picture) size = even ? size * 16 : 64 + size * 5;
        sizes.at[sizes.count++] = (onv_dim_binding){name, size};
    }
    for (size_t i = 0; i < sizes.count; i++)
        if (strcmp(sizes.at[i].name, "total") == 0)
            sizes.at[i].size = size_named(&sizes, "past") + size_named(&sizes, "sequence");
    return sizes;
}

/* --- Comparing --------------------------------------------------------------------------------- */

static void complain(pair *p, const char *of, const char *what, int place, onv_dim from,
                     onv_dim got, onv_dim expected)
{
    if (p->complaints++ >= MAX_COMPLAINTS) return;
    onv_arena *arena = &p->symbolic.arena;
    fprintf(stderr, "%s: %s %d of '%s' is %s, so %s, but %s on numbers\n", p->name, what, place, of,
            onv_dim_text(&p->symbolic.dims, arena, from),
            onv_dim_text(&p->symbolic.dims, arena, got),
            onv_dim_text(&p->bound.dims, arena, expected));
}

/* What only the data decides is compared by its bound. */
static void compare_dim(pair *p, const char *of, const char *what, int place, onv_dim symbolic,
                        onv_dim bound)
{
    onv_dim most = onv_dim_substitute_bounds(&p->symbolic.dims, symbolic);
    onv_dim got = onv_dim_is_known(most) ? onv_dim_eval(&p->symbolic.dims, most, p->values) : most;
    onv_dim expected = onv_dim_substitute_bounds(&p->bound.dims, bound);
    if (p->may_stay_open && !onv_dim_is_known(got)) return;
    if (got.raw != expected.raw) complain(p, of, what, place, symbolic, got, expected);
}

static void compare_types(pair *p, const char *of, const onv_type *a, const onv_type *b)
{
    compare_dim(p, of, "kind", 0, onv_dim_const(a->kind), onv_dim_const(b->kind));
    compare_dim(p, of, "dtype", 0, onv_dim_const(a->dtype), onv_dim_const(b->dtype));
    if (a->kind != b->kind) return;
    if (a->kind == ONV_TYPE_SEQUENCE)
        compare_dim(p, of, "length", 0, onv_type_elements(a).length, onv_type_elements(b).length);
    if (!onv_type_has_rank(a) && !onv_type_has_rank(b)) return;
    compare_dim(p, of, "rank", 0, onv_dim_const(a->rank), onv_dim_const(b->rank));
    for (int i = 0; i < a->rank && a->rank == b->rank; i++)
        compare_dim(p, of, "dim", i, a->dims[i], b->dims[i]);
}

/* On numbers more may be known; what both know is the same. */
static void compare_contents(pair *p, const char *of, const onv_known *a, const onv_known *b)
{
    if (a == NULL || b == NULL || onv_dtype_is_float((onv_dtype)a->dtype)) return;
    compare_dim(p, of, "count", 0, onv_dim_const(a->count), onv_dim_const(b->count));
    for (uint32_t i = 0; i < a->count && a->count == b->count; i++) {
        onv_dim got = onv_dim_is_known(a->elems[i].i) && !onv_dim_is_infinite(a->elems[i].i)
                          ? onv_dim_eval(&p->symbolic.dims, a->elems[i].i, p->values)
                          : ONV_DIM_UNKNOWN;
        if (!onv_dim_is_const(got) || !onv_dim_is_const(b->elems[i].i)) continue;
        if (got.raw != b->elems[i].i.raw)
            complain(p, of, "element", (int)i, a->elems[i].i, got, b->elems[i].i);
    }
}

static void compare(pair *p)
{
    assert_int_equal(p->symbolic.values.count, p->bound.values.count);
    assert_int_equal(p->symbolic.nodes.count, p->bound.nodes.count);
    for (size_t i = 0; i < p->symbolic.values.count; i++) {
        const onv_value *a = &p->symbolic.values.at[i], *b = &p->bound.values.at[i];
        compare_types(p, a->name, &a->type, &b->type);
        compare_contents(p, a->name, a->known, b->known);
    }
    for (size_t i = 0; i < p->symbolic.nodes.count; i++) {
        const onv_node *a = &p->symbolic.nodes.at[i], *b = &p->bound.nodes.at[i];
        compare_dim(p, a->name, "macs", 0, a->macs, b->macs);
        compare_dim(p, a->name, "element operations", 0, a->element_ops, b->element_ops);
    }
}

/* --- Models ------------------------------------------------------------------------------------ */

static void set_values(pair *p, const draw *sizes)
{
    for (uint32_t s = 0; s < p->symbolic.dims.n_symbols; s++) {
        const char *name =
            onv_dim_symbol_name(&p->symbolic.dims, onv_dim_symbol_at(&p->symbolic.dims, s));
        p->values[s] = ONV_DIM_UNKNOWN;
        for (size_t i = 0; i < sizes->count; i++)
            if (strcmp(name, sizes->at[i].name) == 0)
                p->values[s] = onv_dim_const(sizes->at[i].size);
    }
}

/* Some sizes may not suit the model; most must. */
static int check_model(const char *path, const char *name, uint64_t *seed)
{
    pair p = {.name = name, .may_stay_open = strcmp(name, "fasterrcnn.onnx") == 0};
    int refused = 0;
    infer(path, NULL, &p.symbolic, &p.symbolic_info);
    p.values = calloc(p.symbolic.dims.n_symbols + 1, sizeof *p.values);
    assert_non_null(p.values);
    int draws = p.symbolic_info.free_dims.count > 0 ? DRAWS : 1;
    for (int k = 0; k < draws; k++) {
        draw sizes = draw_sizes(&p.symbolic_info, k % 2 == 0, seed);
        if (infer(path, &sizes, &p.bound, &p.bound_info) != ONV_OK) {
            refused++;
            continue;
        }
        set_values(&p, &sizes);
        compare(&p);
        onv_infer_info_cleanup(&p.bound_info);
        onv_model_cleanup(&p.bound);
    }
    if (refused * 2 > draws) {
        fprintf(stderr, "%s: %d of %d sizes were refused\n", name, refused, draws);
        p.complaints++;
    }
    free(p.values);
    onv_infer_info_cleanup(&p.symbolic_info);
    onv_model_cleanup(&p.symbolic);
    return p.complaints;
}

static void check_folder(const char *folder)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, NULL, alphasort), models = 0, failures = 0;
    uint64_t seed = 1;
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        char path[1024];
        const char *name = entries[i]->d_name, *dot = strrchr(name, '.');
        snprintf(path, sizeof path, "%s/%s", folder, name);
        if (dot != NULL && strcmp(dot, ".onnx") == 0) {
            failures += check_model(path, name, &seed) > 0;
            models++;
        }
        free(entries[i]);
    }
    free(entries);
    assert_true(models > 0);
    if (failures > 0) fail_msg("%d of %d models differ", failures, models);
}

static void folder_on_symbols_is_folder_on_numbers(void **state)
{
    check_folder(*state);
}

static void samples_on_symbols_are_samples_on_numbers(void **state)
{
    check_folder(ONV_SOURCE_DIR "/samples");
}

static void regressions_on_symbols_are_regressions_on_numbers(void **state)
{
    check_folder(ONV_SOURCE_DIR "/tests/conformance");
}

/* A folder of other models may be named on the command line. */
int main(int argc, char **argv)
{
    const struct CMUnitTest other[] = {
        cmocka_unit_test_prestate(folder_on_symbols_is_folder_on_numbers, argv[argc - 1]),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_on_symbols_are_samples_on_numbers),
        cmocka_unit_test(regressions_on_symbols_are_regressions_on_numbers),
    };
    if (argc > 1) return cmocka_run_group_tests_name("infer.symbolic", other, NULL, NULL);
    return cmocka_run_group_tests_name("infer.symbolic", tests, NULL, NULL);
}
