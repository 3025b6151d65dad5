#include "report/embedded.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/heap.h"
#include "support/test.h"

/* The files as they are in the source tree, but for blanks, in their order. */
TEST(page_files_are_those_of_web)
{
    static const char *const first[] = {"web/report.html", "web/report.css"};
    char *files = onv_embedded_inflate(&onv_page_files), *at = files;
    assert_non_null(files);
    assert_int_equal(strlen(files), onv_page_files.bytes);
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", ONV_SOURCE_DIR, first[i]);
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        for (int c; (c = fgetc(file)) != EOF;) {
            if (isspace(c)) continue;
            while (isspace((unsigned char)*at)) at++;
            assert_int_equal((char)c, *at++);
        }
        fclose(file);
        while (isspace((unsigned char)*at)) at++;
        assert_int_equal(*at++, ONV_PAGE_FILE_END);
    }
    assert_int_equal(files[onv_page_files.bytes - 1], ONV_PAGE_FILE_END);
    onv_heap_free(files);
}
