/* Traces as CSV: what is read, as events and as timelines, what is refused and how. */
#include <unistd.h>

#include "alloc/csv_text.h"
#include "alloc/trace_csv.h"
#include "alloc/traces.h"
#include "base/heap.h"
#include "support/capture.h"
#include "support/test.h"

/* What was read; labels are copies. */
typedef struct lines {
    ONV_VEC(onv_trace_event) at;
    uint32_t n_ids;
} lines;

static onv_status keep_line(void *context, const onv_trace_event *event, onv_error *err)
{
    lines *l = context;
    onv_trace_event kept = *event;
    (void)err;
    if (kept.label != NULL) kept.label = strdup(kept.label);
    assert_true(onv_vec_push(&l->at, kept));
    return ONV_OK;
}

static void read_text(const char *text, lines *l)
{
    onv_error err = {0};
    *l = (lines){0};
    if (onv_trace_csv_scan(text, text != NULL ? strlen(text) : 0, keep_line, l, &l->n_ids, &err) !=
        ONV_OK)
        fail_msg("%s", err.message);
}

static void drop_lines(lines *l)
{
    for (size_t i = 0; i < l->at.count; i++) free((char *)(uintptr_t)l->at.at[i].label);
    onv_vec_cleanup(&l->at);
}

TEST(plain)
{
    lines l;
    read_text("alloc,x,100\nalloc,y,0,7,conv1\nfree,x\r\nalloc,x,18,9,,3\nfree,y\nfree,x", &l);
    const onv_trace_event *e = l.at.at;
    assert_int_equal(l.at.count, 6);
    assert_int_equal(l.n_ids, 2);
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
    assert_int_equal(e[3].stream, 3);
    assert_int_equal(e[1].stream, 0);
    assert_true(e[5].is_free);
    drop_lines(&l);
}

TEST(quotes)
{
    lines l;
    read_text("alloc,\"a\",1,0,\"x,\"\"y\"\"\n z\"\n\"free\",a\nalloc,\"q\"\"q\",2,,\"\"\"\"\n"
              "free,\"q\"\"q\"\nalloc,b,\"3\",4,\"\"\n",
              &l);
    assert_int_equal(l.at.count, 5);
    assert_string_equal(l.at.at[0].label, "x,\"y\"\n z");
    assert_true(l.at.at[1].is_free);
    assert_string_equal(l.at.at[2].label, "\"");
    assert_true(l.at.at[3].is_free);
    assert_int_equal(l.at.at[4].bytes, 3);
    assert_null(l.at.at[4].label);
    drop_lines(&l);
}

TEST(nothing_is_an_empty_trace)
{
    static const char *const texts[] = {NULL, ""};
    for (size_t i = 0; i < 2; i++) {
        lines l;
        onv_timeline t;
        onv_error err = {0};
        read_text(texts[i], &l);
        assert_int_equal(l.at.count, 0);
        assert_int_equal(csv_text_read(texts[i], 0, &t, &err), ONV_OK);
        assert_int_equal(t.buffers.count, 0);
        onv_timeline_cleanup(&t);
    }
}

TEST(refused)
{
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
        {"alloc,1,5,6,7,3,8", 0, ONV_ERR_FORMAT, "line 1: more than 6 fields"},
        {"alloc,1,5,6,7,4", 0, ONV_ERR_LIMIT, "line 1: STREAM is more than 3"},
        {"alloc,1,5,6,7,", 0, ONV_ERR_FORMAT, "line 1: STREAM is missing"},
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
        onv_timeline t;
        onv_error err = {0};
        size_t bytes = cases[i].bytes > 0 ? cases[i].bytes : strlen(cases[i].text);
        /* A copy without slack, so that the sanitizer sees a read beyond the end. */
        char *copy = onv_heap_alloc(bytes);
        memcpy(copy, cases[i].text, bytes);
        assert_int_equal(csv_text_read(copy, bytes, &t, &err), cases[i].status);
        assert_string_equal(err.message, cases[i].message);
        onv_heap_free(copy);
    }
}

/* Every prefix and every changed byte of a good text gives a trace or an error, never more. */
TEST(damaged)
{
    static const char good[] = "alloc,\"a\"\"b\",12,3,\"x\r\ny\"\r\nalloc,c,5\nfree,c\n";
    static const char bytes[] = "\0\"\n\r,a9-\xff";
    size_t length = strlen(good);
    char *text = onv_heap_alloc(length);
    for (size_t at = 0; at < length; at++) {
        for (size_t k = 0; k < sizeof bytes - 1; k++) {
            memcpy(text, good, length);
            text[at] = bytes[k];
            onv_timeline t;
            onv_error err = {0};
            onv_status status = csv_text_read(text, length, &t, &err);
            if (status == ONV_OK)
                onv_timeline_cleanup(&t);
            else
                assert_string_not_equal(err.message, "");
        }
        char *prefix = onv_heap_alloc(at);
        memcpy(prefix, good, at);
        onv_timeline t;
        onv_error err = {0};
        if (csv_text_read(prefix, at, &t, &err) == ONV_OK) onv_timeline_cleanup(&t);
        onv_heap_free(prefix);
    }
    onv_heap_free(text);
}

/* --- Timelines ----------------------------------------------------------------------------------- */

static bool refuse(void *context, const char *characters, size_t bytes)
{
    (void)context, (void)characters, (void)bytes;
    return false;
}

/* The events of the timeline are those of the trace, whatever is freed in whatever order. */
TEST(a_timeline_has_the_same_events)
{
    enum { MOST = 20000 };
    static uint32_t buffer_of[MOST];
    test_trace trace = random_trace((trace_shape){1, MOST, 30, 48, 0, 0});
    OWNED_TEXT csv = trace_text(&trace);
    onv_timeline t;
    onv_timeline_events events = {0};
    onv_error err = {0};
    uint32_t n = 0;
    assert_int_equal(csv_text_read(csv, strlen(csv), &t, &err), ONV_OK);
    assert_int_equal(onv_timeline_check(&t, &err), ONV_OK);
    assert_int_equal(onv_timeline_list_events(&t, &events, &err), ONV_OK);
    assert_true(events.count >= trace.count);
    for (size_t i = 0; i < trace.count; i++) {
        const onv_trace_event *want = &trace.events[i];
        const onv_timeline_event *got = &events.at[i];
        if (!want->is_free) buffer_of[want->id] = n++;
        assert_int_equal(got->is_free, want->is_free);
        assert_int_equal(got->buffer, buffer_of[want->id]);
        if (!want->is_free) assert_int_equal(t.buffers.at[got->buffer].bytes, want->bytes);
    }
    for (size_t i = trace.count; i < events.count; i++) assert_true(events.at[i].is_free);
    onv_vec_cleanup(&events);
    onv_timeline_cleanup(&t);
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

TEST(simulate_file)
{
    char path[] = "onv-trace-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    write_file(path, "alloc,w,3000000,0,weight\nalloc,a,100\nfree,a\nalloc,b,600\n");
    const onv_alloc_model *torch = onv_alloc_model_find("torch");
    const onv_alloc_model *ideal = onv_alloc_model_find("ideal");
    onv_held_figures figures;
    onv_error err = {0};
    OWNED_CAPTURE t = {0};
    assert_int_equal(onv_alloc_simulate_file(path, torch, NULL, &figures, NULL, NULL, &err),
                     ONV_OK);
    assert_int_equal(figures.allocated_end, 3000320 + 1024);
    assert_int_equal(figures.reserved_peak, 22 << 20);
    assert_int_equal(onv_alloc_simulate_file(path, ideal, NULL, &figures, capture_write, &t, &err),
                     ONV_OK);
    assert_int_equal(figures.allocated_peak, 3000600);
    assert_non_null(strstr(t.text, "ideal: "));
    assert_int_equal(onv_alloc_simulate_file(path, torch, NULL, &figures, refuse, NULL, &err),
                     ONV_ERR_IO);

    err = (onv_error){0};
    write_file(path, "alloc,w,3\nfree,x\n");
    assert_int_equal(onv_alloc_simulate_file(path, torch, NULL, &figures, NULL, NULL, &err),
                     ONV_ERR_FORMAT);
    assert_non_null(strstr(err.message, "line 2"));
    write_file(path, "");
    assert_int_equal(onv_alloc_simulate_file(path, torch, NULL, &figures, NULL, NULL, NULL),
                     ONV_OK);
    assert_int_equal(figures.reserved_peak, 0);
    unlink(path);
    err = (onv_error){0};
    assert_int_equal(onv_alloc_simulate_file(path, torch, NULL, &figures, NULL, NULL, &err),
                     ONV_ERR_IO);
    assert_non_null(strstr(err.message, path));
    err = (onv_error){0};
    assert_int_equal(onv_alloc_simulate_file("/", torch, NULL, &figures, NULL, NULL, &err),
                     ONV_ERR_IO);
}

TEST(summary)
{
    onv_allocator a;
    onv_error err = {0};
    assert_int_equal(onv_allocator_init(&a, onv_alloc_model_find("torch"), NULL, &err), ONV_OK);
    assert_int_equal(onv_allocator_alloc(&a, 0, 3000000, &err), ONV_OK);
    assert_int_equal(onv_allocator_alloc(&a, 1, 100, &err), ONV_OK);
    assert_int_equal(onv_allocator_free(&a, 1, &err), ONV_OK);
    OWNED_CAPTURE t = {0};
    assert_true(onv_allocator_summary(&a, capture_write, &t));
    static const char want[] =
        "torch: PyTorch's CUDA caching allocator\n"
        "                              current           peak    total added  total removed\n"
        "allocated                    2.86 MiB       2.86 MiB       2.86 MiB        512   B\n"
        "  large pool                 2.86 MiB       2.86 MiB       2.86 MiB          0   B\n"
        "  small pool                    0   B        512   B        512   B        512   B\n"
        "active                       2.86 MiB       2.86 MiB       2.86 MiB        512   B\n";
    assert_memory_equal(t.text, want, sizeof want - 1);
    assert_non_null(strstr(t.text, "\nreserved                    22.00 MiB"));
    assert_non_null(strstr(t.text, "\nsegments                            2"));
    assert_non_null(strstr(t.text, "calls to the device: 2 allocations, 0 frees, 0 retries\n"));
    assert_false(onv_allocator_summary(&a, refuse, NULL));
    onv_allocator_cleanup(&a);
}

#ifdef ONV_FAULT_INJECTION
TEST(memory_failures)
{
    test_trace trace = random_trace((trace_shape){2, 3000, 20, 30, 0, 0});
    char *csv = trace_text(&trace);
    for (long n = 0;; n++) {
        onv_timeline t;
        onv_error err = {0};
        onv_heap_fail_after(n);
        onv_status status = csv_text_read(csv, strlen(csv), &t, &err);
        onv_heap_fail_after(-1);
        if (status == ONV_OK) {
            onv_timeline_cleanup(&t);
            break;
        }
        assert_int_equal(status, ONV_ERR_MEMORY);
        assert_true(n < 1000);
    }
    free(csv);
    random_trace_free(&trace);
}
#endif
