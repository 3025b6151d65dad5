#include "support/test.h"

enum { MOST_TESTS = 100 };

static struct CMUnitTest tests[MOST_TESTS];
static size_t n_tests;
static CMFixtureFunction before, after;

void test_add(struct CMUnitTest test)
{
    if (n_tests == MOST_TESTS) abort(); /* more of them */
    tests[n_tests++] = test;
}

void test_group(CMFixtureFunction setup, CMFixtureFunction teardown)
{
    before = setup;
    after = teardown;
}

/* Of programs that have none of their own. */
__attribute__((weak)) int main(void)
{
    return _cmocka_run_group_tests("tests", tests, n_tests, before, after);
}
