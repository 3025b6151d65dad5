/* Traces of requests, as --shape-trace names them. */
#include "api/requests_csv.h"
#include "support/test.h"

TEST(traces_are_read_or_refused)
{
    static const struct {
        const char *text, *names;
        uint32_t n_requests;
        int64_t last;
        const char *message; /* NULL: it is read */
    } cases[] = {
        {"batch,seq\n1,128\n8,7\n", "batch", 2, 7, NULL},
        {"batch\r\n1\r\n2", "batch", 2, 2, NULL},
        /* Room was made for one request, as there is one "\n". */
        {"batch\n5\r6\r7\r8\r9", "", 0, 0, "line 3 must have 1 sizes"},
        {"batch\r5\r6", "", 0, 0, "line 2 must have 1 sizes"},
        {"batch\n\r", "", 0, 0, "line 2 must have 1 sizes"},
        {"batch\n1,2", "", 0, 0, "line 2 must have 1 sizes"},
        {"batch,seq\n1\n", "", 0, 0, "line 2 has 1 sizes; line 1 names 2"},
        {"batch\n-1", "", 0, 0, "line 2 must have 1 sizes"},
        {"batch\n99999999999999999999", "", 0, 0, "line 2 must have 1 sizes"},
        {"batch", "", 0, 0, "there is no request"},
        {"", "", 0, 0, "line 1 must name"},
        {"a,,b\n1,2,3", "", 0, 0, "line 1 must name"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        onv_arena arena;
        onv_request_table table;
        onv_error error = {0};
        onv_arena_init(&arena, 1 << 20);
        onv_status status = onv_requests_csv_parse(cases[i].text, &arena, &table, &error);
        if (cases[i].message != NULL) {
            assert_int_equal(status, ONV_ERR_FORMAT);
            if (strstr(error.message, cases[i].message) == NULL) fail_msg("%s", error.message);
        } else {
            assert_int_equal(status, ONV_OK);
            assert_string_equal(table.names[0], cases[i].names);
            assert_int_equal(table.n_requests, cases[i].n_requests);
            assert_int_equal(table.sizes[table.n_requests * table.n_names - 1], cases[i].last);
        }
        onv_arena_cleanup(&arena);
    }
}
