/* What the targets share: promises. */
#ifndef ONV_TESTS_FUZZ_HOLD_H
#define ONV_TESTS_FUZZ_HOLD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

#define hold(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #condition);        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* A failure says why. */
static inline void check_failure(onv_status status, const onv_error *error)
{
    hold(status != ONV_OK && error->code == status);
    hold(error->message[0] != '\0');
    hold(memchr(error->message, '\0', sizeof error->message) != NULL);
}

/* In target_op_shapes.c, target_notes.c, target_files.c, target_program.c and target_library.c. */
void fuzz_run_op_shapes(const uint8_t *data, size_t size);
void fuzz_run_notes(const uint8_t *data, size_t size);
void fuzz_run_statements(const uint8_t *data, size_t size);
void fuzz_run_terms(const uint8_t *data, size_t size);
void fuzz_run_baseline(const uint8_t *data, size_t size);
void fuzz_run_genai(const uint8_t *data, size_t size);
void fuzz_run_triton(const uint8_t *data, size_t size);
void fuzz_run_tensor(const uint8_t *data, size_t size);
void fuzz_run_requests(const uint8_t *data, size_t size);
void fuzz_run_snapshot(const uint8_t *data, size_t size);
void fuzz_run_archive(const uint8_t *data, size_t size);
void fuzz_run_expression(const uint8_t *data, size_t size);
void fuzz_run_library(const uint8_t *data, size_t size);

#endif
