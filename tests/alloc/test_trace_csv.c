/* Traces as CSV: what is read, what is refused and how, and writing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "alloc/trace_csv.h"
#include "alloc/traces.h"
#include "base/heap.h"

static void read_text(const char *text, onv_trace_csv *csv)
{
    onv_error err = {0};
    if (onv_trace_csv_read(text, strlen(text), csv, &err) != ONV_OK) fail_msg("%s", err.message);
}

static void plain(void **state)
{
    (void)state;
    onv_trace_csv csv;
    read_text("alloc,x,100\nalloc,y,0,7,conv1\nfree,x\r\nalloc,x,18,9\nfree,y\nfree,x", &csv);
    const onv_event *e = csv.trace.events;
    assert_int_equal(csv.trace.count, 6);
    assert_int_equal(csv.trace.n_ids, 2);
    assert_int_equal(e[0].id, 0);
    assert_int_equal(e[0].bytes, 100);
    assert_int_equal(e[0].step, 0);
    assert_null(e[0].label);
    assert_int_equal(e[1].id, 1);
    assert_int_equal(e[1].bytes, 0);
    assert_int_equal(e[1].step, 7);
    assert_string_equal(e[1].label, "conv1");
    assert_true(e[2].is_free);
    assert_int_equal(e[2].id, 0);
    assert_int_equal(e[2].step, 7);
    assert_int_equal(e[3].id, 0); /* its number is free again */
    assert_int_equal(e[3].step, 9);
    assert_true(e[5].is_free);
    onv_trace_csv_cleanup(&csv);
}

static void nothing(void **state)
{
    (void)state;
    onv_trace_csv csv;
    read_text("", &csv);
    assert_int_equal(csv.trace.count, 0);
    onv_trace_csv_cleanup(&csv);
}

static void quotes(void **state)
{
    (void)state;
    onv_trace_csv csv;
    read_text("alloc,\"a\",1,0,\"x,\"\"y\"\"\n z\"\n\"free\",a\nalloc,\"q\"\"q\",2,,\"\"\"\"\n"
              "free,\"q\"\"q\"\nalloc,b,\"3\",4,\"\"\n",
              &csv);
    assert_int_equal(csv.trace.count, 5);
    assert_string_equal(csv.trace.events[0].label, "x,\"y\"\n z");
    assert_true(csv.trace.events[1].is_free);
    assert_string_equal(csv.trace.events[2].label, "\"");
    assert_true(csv.trace.events[3].is_free);
    assert_int_equal(csv.trace.events[4].bytes, 3);
    assert_null(csv.trace.events[4].label);
    onv_trace_csv_cleanup(&csv);
}

static void nothing_is_an_empty_trace(void **state)
{
    (void)state;
    onv_trace_csv csv;
    onv_error err = {0};
    assert_int_equal(onv_trace_csv_read(NULL, 0, &csv, &err), ONV_OK);
    assert_int_equal(csv.trace.count, 0);
    onv_trace_csv_cleanup(&csv);
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t bytes; /* 0: the length of the text */
        onv_status status;
        const char *message;
    } cases[] = {
        {"alloc,1,5\nalloc,1,5\n", 0, ONV_ERR_FORMAT,
         "line 2: allocated twice without a free: id '1'"},
        {"alloc,1,5\nfree,2", 0, ONV_ERR_FORMAT, "line 2: freed but not allocated: id '2'"},
        {"free,2", 0, ONV_ERR_FORMAT, "line 1: freed but not allocated: id '2'"},
        {"alloc,1,5\nfree,1\n\"free\",1", 0, ONV_ERR_FORMAT,
         "line 3: freed but not allocated: id '1'"},
        {"alloc,1,-5", 0, ONV_ERR_FORMAT, "line 1: BYTES is not a number without sign: '-5'"},
        {"alloc,1,5.0", 0, ONV_ERR_FORMAT, "line 1: BYTES is not a number without sign: '5.0'"},
        {"alloc,1, 5", 0, ONV_ERR_FORMAT, "line 1: BYTES is not a number without sign: ' 5'"},
        {"alloc,1,", 0, ONV_ERR_FORMAT, "line 1: BYTES is missing"},
        {"alloc,1", 0, ONV_ERR_FORMAT, "line 1: expected alloc,ID,BYTES"},
        {"alloc", 0, ONV_ERR_FORMAT, "line 1: ID is missing"},
        {"alloc,,5", 0, ONV_ERR_FORMAT, "line 1: ID is missing"},
        {"free,", 0, ONV_ERR_FORMAT, "line 1: ID is missing"},
        {"alloc,1,5\nfree,1,5", 0, ONV_ERR_FORMAT, "line 2: expected free,ID"},
        {"alloc,1,5,", 0, ONV_ERR_FORMAT, "line 1: STEP is missing"},
        {"alloc,1,5,x", 0, ONV_ERR_FORMAT, "line 1: STEP is not a number without sign: 'x'"},
        {"alloc,1,5,4294967296", 0, ONV_ERR_LIMIT, "line 1: STEP is more than 4294967295"},
        {"alloc,1,5,6,7,8", 0, ONV_ERR_FORMAT, "line 1: more than 5 fields"},
        {"alloc,1,72057594037927937", 0, ONV_ERR_LIMIT,
         "line 1: BYTES is more than 72057594037927936"},
        {"alloc,1,99999999999999999999999", 0, ONV_ERR_LIMIT,
         "line 1: BYTES is more than 72057594037927936"},
        {"alloc,1,5\n\nfree,1", 0, ONV_ERR_FORMAT, "line 2: an empty line"},
        {"\n", 0, ONV_ERR_FORMAT, "line 1: an empty line"},
        {"Alloc,1,5", 0, ONV_ERR_FORMAT, "line 1: expected alloc or free, not 'Alloc'"},
        {"\x1b[31malloc,1,5", 0, ONV_ERR_FORMAT,
         "line 1: expected alloc or free, not '?[31malloc'"},
        {"alloc,1,5,0,\"a\nb\nalloc", 0, ONV_ERR_FORMAT, "line 1: a quote is not closed"},
        {"alloc,1,5,0,\"a\nb\"\nalloc", 0, ONV_ERR_FORMAT, "line 3: ID is missing"},
        {"alloc,1,5,0,\"a\"b", 0, ONV_ERR_FORMAT, "line 1: text after a closing quote"},
        {"alloc,1,5,0,a\"b", 0, ONV_ERR_FORMAT,
         "line 1: a quote inside of a field that does not start with one"},
        {"alloc,1,5\rfree,1", 0, ONV_ERR_FORMAT, "line 1: a carriage return without a line feed"},
        {"alloc,a\0b,5", 11, ONV_ERR_FORMAT, "line 1: a NUL byte"},
        {"alloc,\"a\0b\",5", 13, ONV_ERR_FORMAT, "line 1: a NUL byte"},
        {"alloc,\xc3\xa4,1\nfree,0123456789012345678901234567890123456789x", 0, ONV_ERR_FORMAT,
         "line 2: freed but not allocated: id '0123456789012345678901234567890123456789'..."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        onv_trace_csv csv;
        onv_error err = {0};
        size_t bytes = cases[i].bytes > 0 ? cases[i].bytes : strlen(cases[i].text);
        /* A copy without slack, so that the sanitizer sees a read beyond the end. */
        char *copy = onv_heap_alloc(bytes);
        memcpy(copy, cases[i].text, bytes);
        assert_int_equal(onv_trace_csv_read(copy, bytes, &csv, &err), cases[i].status);
        assert_string_equal(err.message, cases[i].message);
        onv_heap_free(copy);
    }
}

/* Every prefix and every changed byte of a good text gives a trace or an error, never more. */
static void damaged(void **state)
{
    (void)state;
    static const char good[] = "alloc,\"a\"\"b\",12,3,\"x\r\ny\"\r\nalloc,c,5\nfree,c\n";
    static const char bytes[] = "\0\"\n\r,a9-\xff";
    size_t length = strlen(good);
    char *text = onv_heap_alloc(length);
    for (size_t at = 0; at < length; at++) {
        for (size_t k = 0; k < sizeof bytes - 1; k++) {
            memcpy(text, good, length);
            text[at] = bytes[k];
            onv_trace_csv csv;
            onv_error err = {0};
            onv_status status = onv_trace_csv_read(text, length, &csv, &err);
            if (status == ONV_OK)
                onv_trace_csv_cleanup(&csv);
            else
                assert_string_not_equal(err.message, "");
        }
        char *prefix = onv_heap_alloc(at);
        memcpy(prefix, good, at);
        onv_trace_csv csv;
        onv_error err = {0};
        if (onv_trace_csv_read(prefix, at, &csv, &err) == ONV_OK) onv_trace_csv_cleanup(&csv);
        onv_heap_free(prefix);
    }
    onv_heap_free(text);
}

/* --- Writing ----------------------------------------------------------------------------------- */

typedef struct text {
    char *at;
    size_t count, capacity;
} text;

static bool keep(void *context, const char *characters, size_t bytes)
{
    text *t = context;
    if (!onv_vec_reserve(t, bytes + 1)) return false;
    memcpy(t->at + t->count, characters, bytes);
    t->count += bytes;
    t->at[t->count] = '\0';
    return true;
}

static bool refuse(void *context, const char *characters, size_t bytes)
{
    (void)context, (void)characters, (void)bytes;
    return false;
}

static void written(void **state)
{
    (void)state;
    onv_event events[] = {
        {.id = 4, .bytes = 10, .step = 2, .label = "plain"},
        {.id = 5, .bytes = 0, .label = "a,\"b\"\nc"},
        {.id = 4, .is_free = true},
        {.id = 6, .bytes = 7},
    };
    onv_trace trace = {.events = events, .count = 4, .n_ids = 7};
    text t = {0};
    onv_error err = {0};
    assert_int_equal(onv_trace_csv_write(&trace, keep, &t, &err), ONV_OK);
    assert_string_equal(t.at, "alloc,4,10,2,plain\nalloc,5,0,0,\"a,\"\"b\"\"\nc\"\nfree,4\n"
                              "alloc,6,7,0\n");
    assert_int_equal(onv_trace_csv_write(&trace, refuse, NULL, &err), ONV_ERR_IO);
    onv_vec_cleanup(&t);
}

/* Writing and reading gives the same trace, whatever the size. */
static void round_trip(void **state)
{
    (void)state;
    onv_trace trace = random_trace((trace_shape){1, 20000, 30, 48, 0});
    for (size_t i = 0; i < trace.count; i++)
        if (!trace.events[i].is_free && i % 3 == 0) trace.events[i].label = i % 2 ? "\"" : "x,y";
    text t = {0};
    onv_error err = {0};
    assert_int_equal(onv_trace_csv_write(&trace, keep, &t, &err), ONV_OK);
    onv_trace_csv csv;
    assert_int_equal(onv_trace_csv_read(t.at, t.count, &csv, &err), ONV_OK);
    assert_int_equal(csv.trace.count, trace.count);
    assert_true(csv.trace.n_ids <= trace.n_ids);
    for (size_t i = 0; i < trace.count; i++) {
        const onv_event *want = &trace.events[i], *got = &csv.trace.events[i];
        assert_int_equal(got->is_free, want->is_free);
        assert_int_equal(got->bytes, want->bytes);
        if (want->label == NULL)
            assert_null(got->label);
        else
            assert_string_equal(got->label, want->label);
    }
    onv_trace_csv_cleanup(&csv);
    onv_vec_cleanup(&t);
    random_trace_free(&trace);
}

/* --- Files ------------------------------------------------------------------------------------- */

static void write_file(const char *path, const char *content)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(content, file);
    fclose(file);
}

static void simulate_file(void **state)
{
    (void)state;
    char path[] = "onv-trace-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    write_file(path, "alloc,w,3000000,0,weight\nalloc,a,100\nfree,a\nalloc,b,600\n");
    const onv_alloc_model *models[] = {onv_alloc_model_find("torch"),
                                       onv_alloc_model_find("ideal")};
    onv_alloc_result results[2];
    onv_error err = {0};
    text t = {0};
    assert_int_equal(onv_alloc_simulate_file(path, models, 2, NULL, results, keep, &t, &err),
                     ONV_OK);
    assert_string_equal(results[0].runtime, "torch");
    assert_int_equal(results[0].allocated_end, 3000320 + 1024);
    assert_int_equal(results[0].reserved_peak, 22 << 20);
    assert_int_equal(results[1].allocated_peak, 3000600);
    assert_non_null(strstr(t.at, "\nideal: "));
    assert_int_equal(onv_alloc_simulate_file(path, models, 2, NULL, results, refuse, NULL, &err),
                     ONV_ERR_IO);
    onv_vec_cleanup(&t);

    err = (onv_error){0};
    write_file(path, "alloc,w,3\nfree,x\n");
    assert_int_equal(onv_alloc_simulate_file(path, models, 2, NULL, results, NULL, NULL, &err),
                     ONV_ERR_FORMAT);
    assert_non_null(strstr(err.message, "line 2"));
    write_file(path, "");
    assert_int_equal(onv_alloc_simulate_file(path, models, 2, NULL, results, NULL, NULL, NULL),
                     ONV_OK);
    assert_int_equal(results[0].reserved_peak, 0);
    unlink(path);
    err = (onv_error){0};
    assert_int_equal(onv_alloc_simulate_file(path, models, 2, NULL, results, NULL, NULL, &err),
                     ONV_ERR_IO);
    assert_non_null(strstr(err.message, path));
    err = (onv_error){0};
    assert_int_equal(onv_alloc_simulate_file("/", models, 2, NULL, results, NULL, NULL, &err),
                     ONV_ERR_IO);
}

static void summary(void **state)
{
    (void)state;
    onv_allocator a;
    onv_error err = {0};
    assert_int_equal(onv_allocator_init(&a, onv_alloc_model_find("torch"), NULL, &err), ONV_OK);
    assert_int_equal(onv_allocator_alloc(&a, 0, 3000000, &err), ONV_OK);
    assert_int_equal(onv_allocator_alloc(&a, 1, 100, &err), ONV_OK);
    assert_int_equal(onv_allocator_free(&a, 1, &err), ONV_OK);
    text t = {0};
    assert_true(onv_allocator_summary(&a, keep, &t));
    static const char want[] =
        "torch: PyTorch's CUDA caching allocator\n"
        "                              current           peak    total added  total removed\n"
        "allocated                    2.86 MiB       2.86 MiB       2.86 MiB        512   B\n"
        "  large pool                 2.86 MiB       2.86 MiB       2.86 MiB          0   B\n"
        "  small pool                    0   B        512   B        512   B        512   B\n"
        "active                       2.86 MiB       2.86 MiB       2.86 MiB        512   B\n";
    assert_memory_equal(t.at, want, sizeof want - 1);
    assert_non_null(strstr(t.at, "\nreserved                    22.00 MiB"));
    assert_non_null(strstr(t.at, "\nsegments                            2"));
    assert_non_null(strstr(t.at, "calls to the device: 2 allocations, 0 frees, 0 retries\n"));
    assert_false(onv_allocator_summary(&a, refuse, NULL));
    onv_vec_cleanup(&t);
    onv_allocator_cleanup(&a);
}

#ifdef ONV_FAULT_INJECTION
static void memory_failures(void **state)
{
    (void)state;
    onv_trace trace = random_trace((trace_shape){2, 3000, 20, 30, 0});
    for (size_t i = 0; i < trace.count; i++) trace.events[i].label = i % 2 ? "a" : "b";
    text t = {0};
    assert_int_equal(onv_trace_csv_write(&trace, keep, &t, NULL), ONV_OK);
    for (long n = 0;; n++) {
        onv_trace_csv csv;
        onv_error err = {0};
        onv_heap_fail_after(n);
        onv_status status = onv_trace_csv_read(t.at, t.count, &csv, &err);
        onv_heap_fail_after(-1);
        if (status == ONV_OK) {
            onv_trace_csv_cleanup(&csv);
            break;
        }
        assert_int_equal(status, ONV_ERR_MEMORY);
        assert_true(n < 1000);
    }
    onv_vec_cleanup(&t);
    random_trace_free(&trace);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain),           cmocka_unit_test(nothing),
        cmocka_unit_test(quotes),          cmocka_unit_test(nothing_is_an_empty_trace),
        cmocka_unit_test(refused),         cmocka_unit_test(damaged),
        cmocka_unit_test(written),         cmocka_unit_test(round_trip),
        cmocka_unit_test(simulate_file),   cmocka_unit_test(summary),
#ifdef ONV_FAULT_INJECTION
        cmocka_unit_test(memory_failures),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
