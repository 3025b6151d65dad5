/* What every test begins with: cmocka takes these headers before its own. A program of tests is
 *
 *     TEST(what_holds)
 *     {
 *         assert_true(...);
 *     }
 *
 * as often as it takes; they run in the order of the file. */
#ifndef ONV_TESTS_SUPPORT_TEST_H
#define ONV_TESTS_SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void test_add(struct CMUnitTest test);
/* What runs before the first test of the program, and behind the last. */
void test_group(CMFixtureFunction setup, CMFixtureFunction teardown);

#define TEST(name) TEST_WITH(name, NULL, NULL)
/* `setup` runs before it, `teardown` behind it. */
#define TEST_WITH(name, setup, teardown)                                                           \
    static void name(void **state);                                                                \
    __attribute__((constructor)) static void register_##name(void)                                 \
    {                                                                                              \
        test_add((struct CMUnitTest)cmocka_unit_test_setup_teardown(name, setup, teardown));       \
    }                                                                                              \
    static void name(void **state)
#define TEST_GROUP(setup, teardown)                                                                \
    __attribute__((constructor)) static void register_group(void)                                  \
    {                                                                                              \
        test_group(setup, teardown);                                                               \
    }

#endif
