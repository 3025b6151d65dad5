/* What every test begins with: cmocka takes these headers before its own. */
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

#endif
