/* The operator table: every case of every family, and what holds for all rows. */
#include "ops/case.h"
#include "ops/op_shapes.h"
#include "support/test.h"

static void run_cases(void **state)
{
    const onv_case *cases = *state;
    char message[2048];
    unsigned failed = 0;
    if (cases->op == NULL) fail_msg("the table has no case");
    for (; cases->op != NULL; cases++) {
        if (onv_case_run(cases, message, sizeof message)) continue;
        print_error("%s\n", message);
        failed++;
    }
    if (failed > 0) fail_msg("%u cases do not hold", failed);
}

static const onv_case *const tables[] = {
#define CASES(family) onv_cases_##family,
#include "ops/cases.def"
#undef CASES
};

static bool has_case(const onv_op_family *family)
{
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
        for (const onv_case *at = tables[t]; at->op != NULL; at++) {
            const char *colon = strchr(at->op, ':'), *name = colon != NULL ? colon + 1 : at->op;
            size_t length = colon != NULL ? (size_t)(colon - at->op) : 0;
            if (strncmp(at->op, family->domain, length) != 0 || family->domain[length] != '\0')
                continue;
            for (size_t i = 0; i < family->n_rows; i++)
                if (strcmp(family->rows[i].name, name) == 0) return true;
        }
    return false;
}

/* A table that cases.def lacks is not run: the family that it is for has no cases then. */
static void families_have_cases(void **state)
{
    for (size_t f = 0; f < onv_n_op_families; f++)
        if (!has_case(onv_op_families[f]))
            fail_msg("no case in cases.def for the family of %s", onv_op_families[f]->rows[0].name);
}

static void says_are_read(const onv_op *row)
{
    const onv_op *compiled;
    onv_arena arena;
    onv_error error = {0};
    onv_arena_init(&arena, 1 << 20);
    if (onv_op_shapes_compile(row, &arena, &compiled, &error) != ONV_OK)
        fail_msg("%s", error.message);
    onv_arena_cleanup(&arena);
}

/* A duplicate row would hide another; a row without a rule would crash; the list of all has room for so many. */
static void rows_are_sound(void **state)
{
    size_t n = 0;
    for (size_t f = 0; f < onv_n_op_families; f++) n += onv_op_families[f]->n_rows;
    assert_true(n <= ONV_OP_MAX_ROWS);
    for (size_t f = 0; f < onv_n_op_families; f++) {
        const onv_op_family *family = onv_op_families[f];
        for (size_t i = 0; i < family->n_rows; i++) {
            const onv_op *row = &family->rows[i];
            if (row->says) says_are_read(row);
            if (row->infer == NULL || row->since < 1 || row->in.min > row->in.max ||
                row->out.min > row->out.max || row->out.max < 1)
                fail_msg("%s %d: unsound row", row->name, (int)row->since);
        }
    }
}

static bool same_row(const onv_op_family *a, const onv_op *x, const onv_op_family *b,
                     const onv_op *y)
{
    return x->since == y->since && strcmp(x->name, y->name) == 0 &&
           strcmp(a->domain, b->domain) == 0;
}

static void rows_are_unique(void **state)
{
    for (size_t f = 0; f < onv_n_op_families; f++) {
        for (size_t g = 0; g <= f; g++) {
            const onv_op_family *a = onv_op_families[f], *b = onv_op_families[g];
            for (size_t i = 0; i < a->n_rows; i++)
                for (size_t k = 0; k < (f == g ? i : b->n_rows); k++)
                    if (same_row(a, &a->rows[i], b, &b->rows[k]))
                        fail_msg("%s %d stands twice", a->rows[i].name, (int)a->rows[i].since);
        }
    }
}

/* Inputs that no operator was written for: nothing known, no dims, contents out of range, dims that
 * fit nothing. */
static const char *const odd_inputs[] = {
    "?",
    "f32[...]",
    "f32[]",
    "f32[0]",
    "f32[2,?,n]",
    "f32[1,2,3,4,5]",
    "i64[...]",
    "i64[]={-1}",
    "i64[2]={0,-1}",
    "i64[2]={n,?}",
    "i64[3]={inf,-inf,9000000000000000}",
    "f32[2]={inf,0.5*n}",
    "f16[2305843009213693951,2305843009213693951]",
    "str[3]",
    "bool[2,2]={1,0,?,1}",
    "seq(f32[2])",
    "opt(?)",
    "-",
};

enum { N_ODD_INPUTS = sizeof odd_inputs / sizeof odd_inputs[0] };

/* The same for attributes, of any operator. */
static const char *const odd_attrs[] = {
    "",
    "axis=99 axes=[9223372036854775807,-1] k=-5 shape=[-1,4611686018427387904] perm=[5,5,-1] "
    "kernel_shape=[0,-3] strides=[0] pads=[-9,9223372036854775807] dilations=[-1] group=0 "
    "split=[-1,4] equation='..i->' block_size=-3 blocksize=0 direction='x' dtype=99 to=-1 "
    "sample_size=-1 hidden_size=-1 num_outputs=0 starts=[9] ends=[-9] output_shape=[0] "
    "scales=[-1.0] num_heads=-1 mode='x' auto_pad='x' reduction='x' batch_axis=5 time_axis=-7",
    "axis=-1 axes=[0] k=4611686018427387904 shape=[4611686018427387904,4611686018427387904] "
    "kernel_shape=[9223372036854775807] strides=[9223372036854775807] "
    "dilations=[9223372036854775807] pads=[9223372036854775807,9223372036854775807] "
    "group=9223372036854775807 split=[9223372036854775807,1] blocksize=9223372036854775807 "
    "block_size=9223372036854775807 hidden_size=9223372036854775807 "
    "num_outputs=9223372036854775807 scales=[inf] sizes=[9223372036854775807] axis_w=3 "
    "q_num_heads=9223372036854775807 kv_num_heads=3 start=-9223372036854775807 end=5",
    /* Mostly of contrib operators: odd but in order, then out of range. */
    "num_heads=3 kv_num_heads=1 q_num_heads=3 N=1 K=1 Nq=7 Nkv=1 groups=1 window=1 k=1 bits=2 "
    "max_ngram_size=1 n_head_per_ngram=1 size=1 state_window=1 num_branches=1 channels_last=1 "
    "kernel_shape=[1] keepTopK=1 keep_topk=1 max_output_boxes=1 pooled_size=1 crop_height=1 "
    "crop_width=1 out_dims=1 hidden_size=1 qkv_hidden_sizes=[1,1,1] axes=[0] keepdims=0 axis=0 "
    "past_present_share_buffer=1 transA=1 transBatchB=1",
    "num_heads=9223372036854775807 kv_num_heads=9223372036854775807 N=9223372036854775807 "
    "K=9223372036854775807 Nq=4611686018427387904 Nkv=4611686018427387904 groups=-1 window=-1 "
    "bits=0 max_ngram_size=9223372036854775807 n_head_per_ngram=3 size=9223372036854775807 "
    "step=9223372036854775807 state_window=9223372036854775807 dilation=-1 vocab_size=-7 "
    "num_branches=9223372036854775807 v_head_size=9223372036854775807 keepTopK=-1 "
    "state_update_capacity=-1 qkv_hidden_sizes=[9223372036854775807,0,9223372036854775807]",
};

enum { N_ODD_ATTRS = sizeof odd_attrs / sizeof odd_attrs[0] };

/* Inputs all alike (step 0), or followed by their successors. */
static bool run_odd(const onv_op_family *family, const onv_op *row, size_t kind, size_t step,
                    const char *attrs)
{
    char in[1024] = "", name[128], message[4096];
    int n = row->in.max < 9 ? row->in.max : row->in.min > 3 ? row->in.min : 3;
    for (int k = 0; k < n; k++) {
        strcat(in, odd_inputs[(kind + (size_t)k * step) % N_ODD_INPUTS]);
        strcat(in, " ");
    }
    snprintf(name, sizeof name, "%s:%s", family->domain, row->name);
    onv_case odd = {name, row->since, in, attrs, "*"};
    if (onv_case_run(&odd, message, sizeof message)) return true;
    print_error("%s\n", message);
    return false;
}

static void rows_bear_odd_inputs(void **state)
{
    unsigned failed = 0;
    for (size_t f = 0; f < onv_n_op_families; f++)
        for (size_t i = 0; i < onv_op_families[f]->n_rows; i++)
            for (size_t kind = 0; kind < N_ODD_INPUTS; kind++)
                for (size_t how = 0; how < 3 * N_ODD_ATTRS; how++)
                    failed += !run_odd(onv_op_families[f], &onv_op_families[f]->rows[i], kind,
                                       how % 3, odd_attrs[how / 3]);
    if (failed > 0) fail_msg("%u rows do not bear odd inputs", failed);
}

/* An argument picks tests by name, e.g. "cases_math*". */
int main(int argc, char **argv)
{
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_have_cases),
        cmocka_unit_test(rows_are_sound),
        cmocka_unit_test(rows_are_unique),
        cmocka_unit_test(rows_bear_odd_inputs),
/* cmocka takes the state as void *; run_cases only reads it. */
#define CASES(family)                                                                              \
    {"cases_" #family, run_cases, NULL, NULL, (void *)(uintptr_t)onv_cases_##family},
#include "ops/cases.def"
#undef CASES
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
