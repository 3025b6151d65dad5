/* The formula of the peak: what analysis says with numbers, at random sizes. */
#include <dirent.h>

#include "graph/formula.h"
#include "support/flow.h"
#include "support/test.h"

#ifdef __SANITIZE_ADDRESS__
enum { BINDINGS = 10 }; /* each is an analysis, five times slower here */
#else
enum { BINDINGS = 100 };
#endif
enum { MAX_SYMBOLS = 64 };

static uint32_t state = 1;

static int64_t random_size(int64_t low, int64_t high)
{
    state = state * 1664525 + 1013904223;
    return low + (int64_t)(state >> 8) % (high - low + 1);
}

static onv_formula formula_of(flow *f)
{
    onv_formula formula;
    onv_error err = {0};
    if (onv_formula_compute(&f->model, &f->live, &formula, &err) != ONV_OK)
        fail_msg("%s", err.message);
    return formula;
}

static int64_t value_of(flow *f, onv_dim d, const onv_dim *values)
{
    onv_dim value = onv_dim_eval(&f->model.dims, d, values);
    if (!onv_dim_is_const(value))
        fail_msg("%s: no number is %s", f->model.path,
                 onv_dim_text(&f->model.dims, &f->model.arena, d));
    return value.raw;
}

static int64_t peak_of(flow *f, const onv_formula *formula, const onv_dim *values)
{
    int64_t peak = 0;
    for (uint32_t i = 0; i < formula->n_pieces; i++) {
        int64_t bytes = value_of(f, formula->pieces[i].bytes, values);
        if (bytes > peak) peak = bytes;
    }
    return peak;
}

/* Sizes that go together in the samples: masks are as long as what they mask, skips meet again. */
static int64_t choose(const char *name, const char *const *names, const int64_t *sizes, size_t n)
{
    if (strcmp(name, "height") == 0 || strcmp(name, "width") == 0) return 16 * random_size(1, 30);
    if (strcmp(name, "past") == 0) return random_size(0, 300);
    if (strcmp(name, "total") != 0) return random_size(1, strcmp(name, "batch") == 0 ? 64 : 300);
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], "past") == 0 || strcmp(names[i], "sequence") == 0) sum += sizes[i];
    return sum;
}

static void bind(flow *f, char *text, size_t room, onv_dim *values)
{
    const char *names[MAX_SYMBOLS];
    int64_t sizes[MAX_SYMBOLS];
    size_t n = 0, at = 0;
    for (int total = 0; total < 2; total++) {
        for (size_t i = 0; i < f->infer.free_dims.count; i++) {
            const char *name = f->infer.free_dims.at[i].name;
            if ((strcmp(name, "total") == 0) != (total == 1)) continue;
            assert_true(n < MAX_SYMBOLS);
            names[n] = name;
            sizes[n] = choose(name, names, sizes, n);
            onv_dim symbol = onv_dim_symbol(&f->model.dims, name);
            values[onv_dim_symbol_index(&f->model.dims, symbol)] = onv_dim_const(sizes[n]);
            at += (size_t)snprintf(text + at, room - at, "%s%s=%lld", n > 0 ? " " : "", name,
                                   (long long)sizes[n]);
            n++;
        }
    }
}

static void compare_sample(const char *name)
{
    flow free_one, bound;
    flow_open(&free_one, flow_sample(name), NULL, NULL);
    onv_formula formula = formula_of(&free_one);
    assert_true(formula.n_pieces > 0 || formula.why_not != NULL);
    for (int k = 0; k < BINDINGS && formula.n_pieces > 0 && free_one.infer.free_dims.count > 0;
         k++) {
        onv_dim values[MAX_SYMBOLS];
        char dims[256];
        assert_true(free_one.model.dims.n_symbols <= MAX_SYMBOLS);
        for (int i = 0; i < MAX_SYMBOLS; i++) values[i] = ONV_DIM_UNKNOWN;
        bind(&free_one, dims, sizeof dims, values);
        flow_open(&bound, flow_sample(name), dims, NULL);
        int64_t peak = peak_of(&free_one, &formula, values);
        bool has_macs = onv_dim_is_known(formula.macs);
        int64_t macs =
            has_macs ? value_of(&free_one, formula.macs, values) : (int64_t)bound.live.macs;
        if ((uint64_t)peak != bound.live.peak_bytes || (uint64_t)macs != bound.live.macs)
            fail_msg("%s at %s: %lld bytes, %lld MACs by the formula, %llu and %llu with numbers",
                     name, dims, (long long)peak, (long long)macs,
                     (unsigned long long)bound.live.peak_bytes,
                     (unsigned long long)bound.live.macs);
        assert_int_equal(value_of(&free_one, formula.input_bytes, values), bound.live.input_bytes);
        assert_int_equal(value_of(&free_one, formula.output_bytes, values),
                         bound.live.output_bytes);
        assert_int_equal(value_of(&free_one, formula.activation_bytes, values),
                         bound.live.activation_bytes);
        flow_close(&bound);
    }
    flow_close(&free_one);
}

static void every_sample_at_random_sizes(void **unused)
{
    (void)unused;
    DIR *folder = opendir(ONV_SOURCE_DIR "/samples");
    assert_non_null(folder);
    int compared = 0;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        size_t length = strlen(entry->d_name);
        if (length < 5 || strcmp(entry->d_name + length - 5, ".onnx") != 0) continue;
        compare_sample(entry->d_name);
        compared++;
    }
    closedir(folder);
    assert_true(compared > 20);
}

static void the_pieces_say_from_where_on(void **unused)
{
    (void)unused;
    OWNED_MODEL m = model_new(17);
    OWNED_FLOW f;
    model_add(m, "in x f32[b,n,100]", "t = Transpose(x) 0 perm=[0,2,1]", "scores = MatMul(x t) 1",
              "r = Relu(scores) 2", "y = ReduceSum(r) 3 keepdims=0", "out y f32");
    flow_open_model(&f, m, NULL);
    onv_formula formula = formula_of(&f);
    /* 800 b n + 4 b n n where the product is made, 8 b n n where it is activated. */
    assert_int_equal(formula.n_pieces, 2);
    assert_string_equal(onv_dim_text(&f.model.dims, &f.model.arena, formula.pieces[0].bytes),
                        "b*n*800 + b*n*n*4");
    assert_string_equal(onv_dim_text(&f.model.dims, &f.model.arena, formula.pieces[1].bytes),
                        "b*n*n*8");
    assert_int_equal(formula.pieces[0].until, 201);
    assert_int_equal(formula.pieces[1].from, 201);
    assert_string_equal(onv_dim_symbol_name(&f.model.dims, formula.pieces[1].decided_by), "n");
}

static void what_has_no_size_has_no_formula(void **unused)
{
    (void)unused;
    OWNED_FLOW f;
    flow_open(&f, flow_sample("fasterrcnn.onnx"), NULL, NULL);
    onv_formula formula = formula_of(&f);
    assert_int_equal(formula.n_pieces, 0);
    assert_non_null(strstr(formula.why_not, "Resize multiplies"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_at_random_sizes),
        cmocka_unit_test(the_pieces_say_from_where_on),
        cmocka_unit_test(what_has_no_size_has_no_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
