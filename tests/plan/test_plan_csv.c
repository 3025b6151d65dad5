/* Intervals as CSV: what is read, what is refused and where, and what is written. */
#include <unistd.h>

#include "base/heap.h"
#include "plan/plan.h"
#include "support/test.h"

/* --- Reading ----------------------------------------------------------------------------------- */

/* The parser takes over a text of the heap. */
static onv_status parse_bytes(const char *text, size_t bytes, onv_plan_table *table, onv_error *err)
{
    char *copy = onv_heap_calloc(bytes + 1, 1);
    assert_non_null(copy);
    memcpy(copy, text, bytes);
    return onv_plan_csv_parse(copy, bytes, table, err);
}

static void parse(const char *text, onv_plan_table *table)
{
    onv_error err = {0};
    if (parse_bytes(text, strlen(text), table, &err) != ONV_OK) fail_msg("%s", err.message);
}

TEST(rows_are_read_in_order)
{
    onv_plan_table table;
    parse("id,lower,upper,size\nx,0,3,4\ny/z:0,1,9223372036854775807,0\n,2,3,1", &table);
    assert_int_equal(table.count, 3);
    assert_string_equal(table.ids[0], "x");
    assert_string_equal(table.ids[1], "y/z:0");
    assert_string_equal(table.ids[2], "");
    assert_int_equal(table.buffers[0].upper, 3);
    assert_int_equal(table.buffers[1].upper, INT64_MAX);
    assert_int_equal(table.buffers[2].size, 1);
    onv_plan_table_cleanup(&table);
}

TEST(other_columns_ends_and_quotes)
{
    onv_plan_table table;
    parse("\xef\xbb\xbfsize,offset,id,upper,lower\r\n8,junk,\"a,\"\"b\"\"\",5,4\r\n\r\n", &table);
    assert_int_equal(table.count, 1);
    assert_string_equal(table.ids[0], "\"a,\"\"b\"\"\"");
    assert_int_equal(table.buffers[0].lower, 4);
    assert_int_equal(table.buffers[0].size, 8);
    onv_plan_table_cleanup(&table);
    parse("id,lower,upper,size\n\n", &table);
    assert_int_equal(table.count, 0);
    onv_plan_table_cleanup(&table);
}

#define HEADER "id,lower,upper,size\n"

TEST(errors_name_line_and_column)
{
    static const struct {
        const char *text, *where, *what;
    } cases[] = {
        {HEADER "\x1b[31m,0,1,2", "line 2, column 1:", "control character"},
        {HEADER "a\xc2\x9b,0,1,2", "line 2, column 1:", "control character"},
        {"", "line 1, column 1:", "not a column of"},
        {"id,lower,upper\n", "line 1, column 1:", "no column 'size'"},
        {"id,lower,upper,size,lower\n", "line 1, column 21:", "second column 'lower'"},
        {"id,start,upper,size\n", "line 1, column 4:", "'start' is not a column"},
        {"0,1,2,3\n", "line 1, column 1:", "'0' is not a column"},
        {HEADER "a,1,2\n", "line 2, column 5:", "after 3 of 4"},
        {HEADER "a,1,2,3,4\n", "line 2, column 7:", "more than 4"},
        {HEADER "a,1,2,3\nb,-1,2,3\n", "line 3, column 3:", "lower '-1'"},
        {HEADER "a,1,2,+3\n", "line 2, column 7:", "size '+3'"},
        {HEADER "a,1,2, 3\n", "line 2, column 7:", "size ' 3'"},
        {HEADER "a,1,2,3.5\n", "line 2, column 7:", "whole number"},
        {HEADER "a,1,2,0x3\n", "line 2, column 7:", "whole number"},
        {HEADER "a,1,,3\n", "line 2, column 5:", "upper ''"},
        {HEADER "a,1,9223372036854775808,3\n", "line 2, column 5:", "63 bits"},
        {HEADER "a,1,2,99999999999999999999999\n", "line 2, column 7:", "63 bits"},
        {HEADER "a,2,2,3\n", "line 2, column 5:", "upper 2 is not above lower 2"},
        {HEADER "a,5,2,3\n", "line 2, column 5:", "upper 2 is not above lower 5"},
        {HEADER "\n" HEADER, "line 2, column 1:", "after 1 of 4"},
        {HEADER "\"a,1,2,3\n", "line 2, column 1:", "not closed"},
        {HEADER "\"a\"b,1,2,3\n", "line 2, column 1:", "closing quote"},
        {HEADER "a\"b,1,2,3\n", "line 2, column 2:", "quote"},
        {HEADER "a,1,2,3\rb,1,2,3\n", "line 2, column 8:", "carriage return"},
        {HEADER "a,1,2,3\r", "line 2, column 8:", "carriage return"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        onv_plan_table table;
        onv_error err = {0};
        onv_status status = parse_bytes(cases[i].text, strlen(cases[i].text), &table, &err);
        if (status != ONV_ERR_FORMAT ||
            strncmp(err.message, cases[i].where, strlen(cases[i].where)) != 0 ||
            strstr(err.message, cases[i].what) == NULL)
            fail_msg("case %zu: %s, '%s'", i, onv_status_name(status), err.message);
        assert_null(table.buffers);
        assert_null(table.text);
    }
    onv_plan_table table;
    onv_error err = {0};
    const char zero[] = HEADER "a\0b,1,2,3\n";
    assert_int_equal(parse_bytes(zero, sizeof zero - 1, &table, &err), ONV_ERR_FORMAT);
    assert_non_null(strstr(err.message, "line 2, column 2: unexpected zero byte"));
    err = (onv_error){0};
    const char quoted[] = HEADER "\"a\0b\",1,2,3\n";
    assert_int_equal(parse_bytes(quoted, sizeof quoted - 1, &table, &err), ONV_ERR_FORMAT);
    assert_non_null(strstr(err.message, "line 2, column 1: unexpected zero byte"));
}

TEST(every_prefix_and_flipped_byte_is_survived)
{
    char text[] = HEADER "\"a\",0,3,4\r\nb,1,5,18446744073709551615\n\"c\"\"\",2,9,6\n";
    size_t length = sizeof text - 1;
    int accepted = 0;
    for (size_t at = 0; at < length; at++) {
        for (int bit = 0; bit < 9; bit++) {
            char flip = (char)(bit < 8 ? 1 << bit : 0);
            text[at] = (char)(text[at] ^ flip);
            onv_plan_table table;
            onv_error err = {0};
            onv_status status = parse_bytes(text, bit < 8 ? length : at, &table, &err);
            text[at] = (char)(text[at] ^ flip);
            assert_true(status == ONV_OK || (status == ONV_ERR_FORMAT && err.message[0] != '\0'));
            accepted += status == ONV_OK;
            onv_plan_table_cleanup(&table);
        }
    }
    assert_true(accepted > 0);
}

/* --- Writing and the whole --------------------------------------------------------------------- */

typedef struct text {
    char at[4096];
    size_t length, limit;
} text;

static bool append(void *context, const char *data, size_t bytes)
{
    text *t = context;
    if (t->length + bytes > t->limit) return false;
    memcpy(t->at + t->length, data, bytes);
    t->length += bytes;
    t->at[t->length] = '\0';
    return true;
}

/* A file with the contents; the name must be given back to remove_file. */
static char *make_file(const char *contents)
{
    char *path = strdup("plan_csv_XXXXXX");
    int fd = path == NULL ? -1 : mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, contents, strlen(contents)), (ssize_t)strlen(contents));
    close(fd);
    return path;
}

static void remove_file(char *path)
{
    unlink(path);
    free(path);
}

TEST(a_file_gains_offsets)
{
    char *path = make_file("id,size,lower,upper\nb,4,0,2\n\"a,1\",8,0,9\nlong,4,2,3\n");
    text out = {.limit = sizeof out.at - 1};
    onv_plan plan;
    onv_error err = {0};
    if (onv_plan_csv_run(path, NULL, append, &out, &plan, &err) != ONV_OK)
        fail_msg("%s", err.message);
    assert_string_equal(out.at, "id,lower,upper,size,offset\n"
                                "b,0,2,4,8\n"
                                "\"a,1\",0,9,8,0\n"
                                "long,2,3,4,8\n");
    assert_int_equal(plan.height, 12);
    assert_true(plan.optimal);
    assert_null(plan.offsets);
    remove_file(path);
    /* What was written can be read, and planned to the same end. */
    path = make_file(out.at);
    text again = {.limit = sizeof again.at - 1};
    assert_int_equal(onv_plan_csv_run(path, NULL, append, &again, NULL, NULL), ONV_OK);
    assert_string_equal(again.at, out.at);
    remove_file(path);
}

TEST(ids_longer_than_the_buffer_are_kept)
{
    enum { LENGTH = 3000 };
    char line[LENGTH + 64] = HEADER;
    size_t start = strlen(line);
    memset(line + start, 'n', LENGTH);
    strcpy(line + start + LENGTH, ",0,1,2\n");
    char *path = make_file(line);
    text out = {.limit = sizeof out.at - 1};
    assert_int_equal(onv_plan_csv_run(path, NULL, append, &out, NULL, NULL), ONV_OK);
    assert_int_equal(strspn(strchr(out.at, '\n') + 1, "n"), LENGTH);
    remove_file(path);
}

TEST(files_and_sinks_that_fail)
{
    onv_error err = {0};
    text out = {.limit = 10};
    onv_plan plan;
    assert_int_equal(onv_plan_csv_run("no/such/file.csv", NULL, append, &out, &plan, &err),
                     ONV_ERR_IO);
    assert_non_null(strstr(err.message, "cannot be opened"));
    err = (onv_error){0};
    assert_int_equal(onv_plan_csv_run(".", NULL, append, &out, &plan, &err), ONV_ERR_IO);
    assert_non_null(strstr(err.message, "cannot be read"));
    char *path = make_file(HEADER "a,0,1,2\n");
    err = (onv_error){0};
    assert_int_equal(onv_plan_csv_run(path, NULL, append, &out, &plan, &err), ONV_ERR_IO);
    assert_non_null(strstr(err.message, "could not be written"));
    remove_file(path);
}

TEST(every_allocation_may_fail)
{
#ifdef ONV_FAULT_INJECTION
    char *path = make_file(HEADER "a,0,5,2\nb,1,9,2\nc,6,12,3\nd,8,14,3\n");
    onv_status status = ONV_ERR_MEMORY;
    long n = 0;
    for (; status != ONV_OK && n < 1000; n++) {
        text out = {.limit = sizeof out.at - 1};
        onv_error err = {0};
        onv_heap_fail_after(n);
        status = onv_plan_csv_run(path, NULL, append, &out, NULL, &err);
        onv_heap_fail_after(-1);
        assert_true(status == ONV_OK || status == ONV_ERR_MEMORY);
        assert_int_equal(err.code, status);
    }
    assert_int_equal(status, ONV_OK);
    assert_true(n > 5);
    remove_file(path);
#else
    skip();
#endif
}
