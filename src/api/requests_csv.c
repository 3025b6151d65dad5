#include "api/requests_csv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"

enum { MOST_TEXT = 1 << 24, MOST_NAMES = 64, MOST_REQUESTS = 100000 };

typedef struct reader {
    const char *at;
    uint32_t line;
    onv_arena *arena;
    onv_request_table *table;
    onv_error *err;
} reader;

static size_t field_length(const char *at)
{
    return strcspn(at, ",\r\n");
}

/* Behind the field: a comma, or the end of the line, which is passed. False at the end of the line. A "\r" alone ends none:
 * there is room for as many requests as there are "\n". */
static bool next_field(reader *r)
{
    if (*r->at == ',') {
        r->at++;
        return true;
    }
    if (r->at[0] == '\r' && r->at[1] == '\n') r->at++;
    if (*r->at == '\n') r->at++;
    return false;
}

static onv_status read_names(reader *r)
{
    onv_request_table *t = r->table;
    t->names = ONV_ARENA_ARRAY(r->arena, const char *, MOST_NAMES);
    if (t->names == NULL) return onv_fail_memory(r->err);
    do {
        size_t length = field_length(r->at);
        if (length == 0 || t->n_names == MOST_NAMES)
            return onv_fail(r->err, ONV_ERR_FORMAT,
                            "line 1 must name from 1 to %d dimensions, with commas between them",
                            MOST_NAMES);
        char *name = ONV_ARENA_ARRAY(r->arena, char, length + 1);
        if (name == NULL) return onv_fail_memory(r->err);
        memcpy(name, r->at, length);
        t->names[t->n_names++] = name;
        r->at += length;
    } while (next_field(r));
    return ONV_OK;
}

static onv_status read_request(reader *r, int64_t *sizes)
{
    uint32_t n = 0;
    do {
        char *end;
        errno = 0;
        long long size = strtoll(r->at, &end, 10);
        bool good = *r->at >= '0' && *r->at <= '9' && errno == 0 &&
                    (size_t)(end - r->at) == field_length(r->at) && n < r->table->n_names;
        if (!good)
            return onv_fail(r->err, ONV_ERR_FORMAT,
                            "line %u must have %u sizes, one for each name of line 1", r->line,
                            r->table->n_names);
        sizes[n++] = size;
        r->at = end;
    } while (next_field(r));
    if (n == r->table->n_names) return ONV_OK;
    return onv_fail(r->err, ONV_ERR_FORMAT, "line %u has %u sizes; line 1 names %u dimensions",
                    r->line, n, r->table->n_names);
}

onv_status onv_requests_csv_parse(const char *text, onv_arena *arena, onv_request_table *table,
                                  onv_error *err)
{
    reader r = {.at = text, .line = 1, .arena = arena, .table = table, .err = err};
    *table = (onv_request_table){0};
    ONV_TRY(read_names(&r));
    size_t n_lines = 1;
    for (const char *at = r.at; *at != '\0'; at++) n_lines += *at == '\n';
    if (n_lines > MOST_REQUESTS)
        return onv_fail(err, ONV_ERR_LIMIT, "more than %d requests", MOST_REQUESTS);
    table->sizes = ONV_ARENA_ARRAY(arena, int64_t, n_lines * table->n_names);
    if (table->sizes == NULL) return onv_fail_memory(err);
    while (*r.at != '\0') {
        r.line++;
        ONV_TRY(read_request(&r, table->sizes + (size_t)table->n_requests * table->n_names));
        table->n_requests++;
    }
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
