/* Files for viewers of other projects, the pickle decoded by hand, by its opcodes. */
#include "report/pickle.h"
#include "report/report.h"
#include "support/capture.h"
#include "support/onnx_writer.h"
#include "support/test.h"

enum { LONG_NAME = 65000 };

static const char *const hostile[] = {
    "</script><script>alert(1)</script>",
    "\xe2\x80\xae"
    "evil\"\\\n;",
    "\x1b[31m\xc2\x9b",
    "",
};
enum { N_HOSTILE = sizeof hostile / sizeof hostile[0] };

/* The last value's name is longer than any viewer shows. */
static model *named(void)
{
    model *m = model_new(17);
    char *end = malloc(LONG_NAME + 1);
    memset(end, 'n', LONG_NAME);
    end[LONG_NAME] = '\0';
    model_input(m, "x", "f32[batch,1024]");
    const char *last = "x";
    static const char *const values[] = {"a", "b", "c", "d"};
    for (int i = 0; i < N_HOSTILE; i++) {
        model_node(m, "Relu", hostile[i], last, values[i], "");
        last = values[i];
    }
    model_node(m, "Neg", end, last, end, "");
    model_output(m, end, "f32");
    free(end);
    return m;
}

static capture report_of(int64_t batch, const char *runtimes, onv_format format,
                         onv_status expected, onv_error *err)
{
    model *m = named();
    capture caught = {0};
    onv_options options = onv_options_default();
    options.batch = batch;
    options.runtimes = runtimes;
    options.timelines = true;
    onv_analysis *a = model_analyse(m, &options);
    const onv_analysis *const all[] = {a};
    assert_int_equal(onv_report(all, 1, format, NULL, capture_write, &caught, err), expected);
    onv_analysis_destroy(a);
    model_free(m);
    return caught;
}

/* --- The pickle -------------------------------------------------------------------------------- */

/* What of an unpickled value the test looks at: numbers, text and its shape. */
typedef struct machine {
    const unsigned char *at, *end;
    json_t *stack[64];
    size_t marks[64];
    size_t depth, n_marks;
    json_t *memo[4096];
} machine;

static uint64_t little(machine *m, unsigned n)
{
    uint64_t value = 0;
    assert_true((size_t)(m->end - m->at) >= n);
    for (unsigned i = 0; i < n; i++) value |= (uint64_t)*m->at++ << (8 * i);
    return value;
}

static void push(machine *m, json_t *value)
{
    assert_non_null(value); /* jansson takes well-formed UTF-8 alone */
    assert_true(m->depth < 64);
    m->stack[m->depth++] = value;
}

static json_t *top(machine *m)
{
    assert_true(m->depth > 0);
    return m->stack[m->depth - 1];
}

static void set_items(machine *m)
{
    assert_true(m->n_marks > 0);
    size_t mark = m->marks[--m->n_marks];
    assert_true(mark > 0 && (m->depth - mark) % 2 == 0);
    for (size_t i = mark; i < m->depth; i += 2) {
        assert_int_equal(json_object_set_new(m->stack[mark - 1], json_string_value(m->stack[i]),
                                             m->stack[i + 1]),
                         0);
        json_decref(m->stack[i]);
    }
    m->depth = mark;
}

static void run_text(machine *m)
{
    size_t n = little(m, 4);
    assert_true((size_t)(m->end - m->at) >= n);
    push(m, json_stringn((const char *)m->at, n));
    m->at += n;
}

static void run_memo(machine *m, unsigned char op)
{
    uint64_t i = little(m, op == 'q' || op == 'h' ? 1 : 4);
    assert_true(i < 4096);
    if (op == 'q' || op == 'r') {
        assert_null(m->memo[i]);
        m->memo[i] = json_incref(top(m));
    } else {
        assert_non_null(m->memo[i]);
        push(m, json_incref(m->memo[i]));
    }
}

/* Python's documentation of pickletools says what each does. */
static json_t *unpickle(const char *bytes, size_t n)
{
    machine m = {.at = (const unsigned char *)bytes, .end = (const unsigned char *)bytes + n};
    assert_int_equal(little(&m, 2), 0x0280);
    for (;;) {
        unsigned char op = (unsigned char)little(&m, 1);
        if (op == '.') break;
        switch (op) {
        case '(': m.marks[m.n_marks++] = m.depth; break;
        case '}': push(&m, json_object()); break;
        case ']': push(&m, json_array()); break;
        case 'K': push(&m, json_integer((json_int_t)little(&m, 1))); break;
        case 'M': push(&m, json_integer((json_int_t)little(&m, 2))); break;
        case 'J': push(&m, json_integer((json_int_t)little(&m, 4))); break;
        case 0x8a: push(&m, json_integer((json_int_t)little(&m, (unsigned)little(&m, 1)))); break;
        case 0x88: push(&m, json_true()); break;
        case 0x89: push(&m, json_false()); break;
        case 'X': run_text(&m); break;
        case 'u': set_items(&m); break;
        case 'a':
            assert_true(m.depth > 1);
            m.depth--;
            assert_int_equal(json_array_append_new(top(&m), m.stack[m.depth]), 0);
            break;
        case 'q':
        case 'r':
        case 'h':
        case 'j': run_memo(&m, op); break;
        default: fail_msg("opcode %02x", op);
        }
    }
    assert_true(m.at == m.end && m.depth == 1 && m.n_marks == 0);
    for (size_t i = 0; i < 4096; i++) json_decref(m.memo[i]);
    return m.stack[0];
}

TEST(numbers_and_texts)
{
    static const uint64_t numbers[] = {0,          1,          255,        256,
                                       65535,      65536,      0x7fffffff, 0x80000000,
                                       1 << 30,    INT64_MAX,  1ULL << 39, (1ULL << 40) - 1,
                                       1ULL << 47, 1ULL << 55, 1ULL << 62};
    enum { N = sizeof numbers / sizeof numbers[0] };
    OWNED_CAPTURE caught = {0};
    onv_writer out;
    onv_writer_init(&out, capture_write, &caught);
    onv_pickle_begin(&out);
    onv_pickle_list(&out);
    for (size_t i = 0; i < N; i++) {
        onv_pickle_u64(&out, numbers[i]);
        onv_pickle_append(&out);
    }
    onv_pickle_text(&out, "\xc3\xa9");
    onv_pickle_put(&out, 256);
    onv_pickle_append(&out);
    onv_pickle_get(&out, 256);
    onv_pickle_append(&out);
    onv_pickle_end(&out);
    assert_int_equal(onv_writer_finish(&out, NULL), ONV_OK);
    /* A long whose top bit is set would be negative. */
    OWNED_JSON list = unpickle(caught.text, caught.length);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(json_integer_value(json_array_get(list, i)), numbers[i]);
    for (size_t i = N; i < N + 2; i++)
        assert_string_equal(json_string_value(json_array_get(list, i)), "\xc3\xa9");
    static const char top_bit[] = {(char)0x8a, 5, 0, 0, 0, (char)0x80, 0};
    bool found = false;
    for (size_t i = 0; i + sizeof top_bit <= caught.length; i++)
        found |= memcmp(caught.text + i, top_bit, sizeof top_bit) == 0;
    assert_true(found);
}

/* Adds up what happens; the most that was there. */
static uint64_t live_through(const json_t *trace, const char *begins, const char *ends)
{
    uint64_t now = 0, most = 0;
    size_t i;
    json_t *event;
    json_array_foreach(trace, i, event)
    {
        const char *action = json_string_value(json_object_get(event, "action"));
        if (strcmp(action, begins) == 0) now += (uint64_t)json_number(event, "size");
        if (strcmp(action, ends) == 0) now -= (uint64_t)json_number(event, "size");
        if (now > most) most = now;
    }
    assert_int_equal(now, 0);
    return most;
}

static void check_name(const json_t *text)
{
    const char *s = json_string_value(text);
    assert_true(strlen(s) < 512);
    expect_safe(s, 0);
    expect_lacks(s, "\n");
}

TEST(the_snapshot_adds_up)
{
    onv_error err;
    /* Five values of 1 MiB each, of which two are there at once; segments of 2 and 20 MiB. */
    OWNED_CAPTURE caught = report_of(256, "torch", ONV_FORMAT_MEMORY_VIZ, ONV_OK, &err);
    OWNED_JSON root = unpickle(caught.text, caught.length);
    const json_t *trace = json_array_get(json_object_get(root, "device_traces"), 0);
    uint64_t blocks = live_through(trace, "alloc", "free_completed");
    uint64_t reserved = live_through(trace, "segment_alloc", "segment_free");
    assert_int_equal(blocks, live_through(trace, "alloc", "free_requested"));
    uint64_t total = 0, allocated = 0;
    size_t i, k;
    json_t *segment, *event, *frame;
    json_array_foreach(json_object_get(root, "segments"), i, segment)
    {
        total += (uint64_t)json_number(segment, "total_size");
        allocated += (uint64_t)json_number(segment, "allocated_size");
        assert_int_equal((uint64_t)json_number(segment, "device"), 1);
    }
    assert_int_equal(total, reserved);
    assert_int_equal(allocated, blocks); /* nothing needs to be rounded */
    assert_true(blocks >= 2 << 20 && blocks % (1 << 20) == 0);
    json_array_foreach(trace, i, event)
    {
        json_array_foreach(json_object_get(event, "frames"), k, frame)
        {
            check_name(json_object_get(frame, "name"));
            check_name(json_object_get(frame, "filename"));
        }
    }
    assert_true(caught.length < 16384);
}

/* --- The trace --------------------------------------------------------------------------------- */

static void check_text(json_t *text)
{
    if (text == NULL) return;
    const char *shown = json_string_value(text);
    assert_true(shown[0] != '\0' && strlen(shown) < 512);
    expect_safe(shown, 0);
    expect_lacks(shown, "\n");
}

TEST(the_trace_has_the_peak)
{
    onv_error err;
    OWNED_CAPTURE caught = report_of(256, "ideal", ONV_FORMAT_PERFETTO, ONV_OK, &err);
    OWNED_JSON root = json_loadb(caught.text, caught.length, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    unsigned slices = 0, peaks = 0, names = 0;
    uint64_t most = 0, at_peak = 0;
    size_t index;
    json_t *event;
    json_array_foreach(json_object_get(root, "traceEvents"), index, event)
    {
        json_t *arguments = json_object_get(event, "args");
        char type = json_string_value(json_object_get(event, "ph"))[0];
        uint64_t bytes = type == 'C' || type == 'i' ? (uint64_t)json_number(arguments, "bytes") : 0;
        assert_int_equal((int)json_number(event, "pid"), 1);
        check_text(json_object_get(event, "name"));
        check_text(json_object_get(arguments, "node"));
        names += type == 'M';
        slices += type == 'X';
        peaks += type == 'i';
        if (type == 'i') at_peak = bytes;
        if (type == 'C' && bytes > most) most = bytes;
    }
    assert_int_equal(names, 2);              /* the execution and its steps */
    assert_int_equal(slices, N_HOSTILE + 2); /* a step for each node, the run around them */
    assert_int_equal(peaks, 1);
    assert_int_equal(at_peak, 2 << 20);
    assert_int_equal(most, at_peak);
}

/* --- Node data --------------------------------------------------------------------------------- */

TEST(nodes_by_name)
{
    onv_error err;
    OWNED_CAPTURE caught = report_of(256, "ideal", ONV_FORMAT_MODEL_EXPLORER, ONV_OK, &err);
    OWNED_JSON root = json_loadb(caught.text, caught.length, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    json_t *results = json_object_get(root, "results");
    assert_int_equal(json_object_size(results), N_HOSTILE + 1);
    const char *key;
    json_t *row;
    json_object_foreach(results, key, row)
        assert_int_equal((uint64_t)json_number(row, "value"), 2 << 20);
    assert_non_null(json_object_get(results, hostile[0]));
    assert_non_null(json_object_get(results, "d")); /* a node without a name goes by its result */
    assert_int_equal(json_array_size(json_object_get(root, "gradient")), 3);
}

/* --- What cannot be shown ---------------------------------------------------------------------- */

TEST(refusals)
{
    for (onv_format f = ONV_FORMAT_MEMORY_VIZ; f <= ONV_FORMAT_MODEL_EXPLORER; f++) {
        onv_error err;
        OWNED_CAPTURE caught = report_of(0, NULL, f, ONV_ERR_MODEL, &err);
        expect_contains(err.message, "needs every size: 'x' has none while 'batch' is free");
    }
}
