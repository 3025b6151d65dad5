/* A trace of requests as CSV: a header with the names of dims, then a line of sizes for each request. */
#ifndef ONV_API_REQUESTS_CSV_H
#define ONV_API_REQUESTS_CSV_H

#include "base/arena.h"
#include "base/status.h"

typedef struct onv_request_table {
    const char **names;
    int64_t *sizes; /* n_names for each request */
    uint32_t n_names, n_requests;
} onv_request_table;

/* Everything in the arena. Errors name the line and what it must be. */
onv_status onv_requests_csv_read(const char *path, onv_arena *arena, onv_request_table *table,
                                 onv_error *err);

/* The same of text that ends with a NUL. */
onv_status onv_requests_csv_parse(const char *text, onv_arena *arena, onv_request_table *table,
                                  onv_error *err);

#endif
