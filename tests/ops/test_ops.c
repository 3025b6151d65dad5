/* The operator table: every case of every family, and what holds for all rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ops/case.h"
#include "ops/op.h"

static void run_cases(void **state)
{
    const onv_case *cases = *state;
    char message[2048];
    unsigned failed = 0;
    for (; cases->op != NULL; cases++) {
        if (onv_case_run(cases, message, sizeof message)) continue;
        print_error("%s\n", message);
        failed++;
    }
    if (failed > 0) fail_msg("%u cases do not hold", failed);
}

/* A duplicate row would hide another; a row without a rule would crash. */
static void rows_are_sound(void **state)
{
    (void)state;
    for (size_t f = 0; f < onv_n_op_families; f++) {
        const onv_op_family *family = onv_op_families[f];
        for (size_t i = 0; i < family->n_rows; i++) {
            const onv_op *row = &family->rows[i];
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
    (void)state;
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

/* An argument picks tests by name, e.g. "cases_math*". */
int main(int argc, char **argv)
{
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_sound),
        cmocka_unit_test(rows_are_unique),
/* cmocka takes the state as void *; run_cases only reads it. */
#define CASES(family)                                                                              \
    {"cases_" #family, run_cases, NULL, NULL, (void *)(uintptr_t)onv_cases_##family},
#include "ops/cases.def"
#undef CASES
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
