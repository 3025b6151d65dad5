#include "api/requests_csv.h"

#include <string.h>

#include "base/csv.h"
#include "base/fail.h"
#include "base/file.h"

enum { MOST_TEXT = 1 << 24, MOST_NAMES = 64, MOST_REQUESTS = 100000 };

/* A "\r" alone ends a line too, and stays in front of the next one, which then has no sizes: there is room for as many
 * requests as there are "\n". */
static onv_status read_names(onv_csv *csv, onv_arena *arena, onv_request_table *t, onv_error *err)
{
    t->names = ONV_ARENA_ARRAY(arena, const char *, MOST_NAMES);
    if (t->names == NULL) return onv_fail_memory(err);
    for (onv_csv_field f = {0}; !f.last;) {
        onv_csv_next(csv, &f);
        if (f.bytes == 0 || t->n_names == MOST_NAMES)
            return onv_fail(err, ONV_ERR_FORMAT,
                            "line 1 must name from 1 to %d dimensions, with commas between them",
                            MOST_NAMES);
        const char *name = onv_arena_strndup(arena, f.at, f.bytes);
        if (name == NULL) return onv_fail_memory(err);
        t->names[t->n_names++] = name;
    }
    return ONV_OK;
}

static onv_status read_request(onv_csv *csv, onv_request_table *t, onv_error *err)
{
    int64_t *sizes = t->sizes + (size_t)t->n_requests * t->n_names;
    uint32_t n = 0, line = t->n_requests + 2;
    for (onv_csv_field f = {0}; !f.last; n++) {
        uint64_t size;
        onv_csv_next(csv, &f);
        if (onv_csv_number(f, INT64_MAX, &size) != ONV_OK || n == t->n_names)
            return onv_fail(err, ONV_ERR_FORMAT,
                            "line %u must have %u sizes, one for each name of line 1", line,
                            t->n_names);
        sizes[n] = (int64_t)size;
    }
    t->n_requests++;
    if (n == t->n_names) return ONV_OK;
    return onv_fail(err, ONV_ERR_FORMAT, "line %u has %u sizes; line 1 names %u dimensions", line,
                    n, t->n_names);
}

onv_status onv_requests_csv_parse(const char *text, onv_arena *arena, onv_request_table *table,
                                  onv_error *err)
{
    onv_csv csv = {.at = text, .end = text + strlen(text), .quotes = ONV_CSV_NO_QUOTES};
    *table = (onv_request_table){0};
    ONV_TRY(read_names(&csv, arena, table, err));
    size_t n_lines = 1;
    for (const char *at = csv.at; *at != '\0'; at++) n_lines += *at == '\n';
    if (n_lines > MOST_REQUESTS)
        return onv_fail(err, ONV_ERR_LIMIT, "more than %d requests", MOST_REQUESTS);
    table->sizes = ONV_ARENA_ARRAY(arena, int64_t, n_lines * table->n_names);
    if (table->sizes == NULL) return onv_fail_memory(err);
    while (csv.at != csv.end) ONV_TRY(read_request(&csv, table, err));
    if (table->n_requests > 0) return ONV_OK;
    return onv_fail(err, ONV_ERR_FORMAT, "there is no request: no line of sizes follows line 1");
}

onv_status onv_requests_csv_read(const char *path, onv_arena *arena, onv_request_table *table,
                                 onv_error *err)
{
    onv_file_bytes bytes;
    onv_error local = {0};
    onv_status status = onv_file_read(path, MOST_TEXT, &bytes, err);
    char *text = status == ONV_OK ? onv_arena_strndup(arena, bytes.at, bytes.count) : NULL;
    onv_vec_cleanup(&bytes);
    ONV_TRY(status);
    if (text == NULL) return onv_fail_memory(err);
    status = onv_requests_csv_parse(text, arena, table, &local);
    return status == ONV_OK ? ONV_OK : onv_fail(err, status, "%s: %s", path, local.message);
}
