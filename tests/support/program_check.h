/* Whether a program holds together: every index is in range, values are made before they are read, dims are at least 0 where they
 * are numbers. What reads one makes it so; rules of operators rely on it. */
#ifndef ONV_TESTS_SUPPORT_PROGRAM_CHECK_H
#define ONV_TESTS_SUPPORT_PROGRAM_CHECK_H

#include "program/program.h"

onv_status program_check(const onv_program *program, onv_error *err);

#endif
