/* The model written once more: every byte that was there stays, what is added can be read, and is added once. */
#include "base/heap.h"
#include "load/wire.h"
#include "support/capture.h"
#include "support/onnx_writer.h"
#include "support/test.h"

enum { GRAPH = 7, MODEL_NOTE = 14, NODE = 1, INITIALIZER = 5, VALUE_INFO = 13 };

/* Two branches, the wide one first: an order that runs the narrow one first needs less. */
static model *branches(const char *type)
{
    static const int64_t shape[] = {1, -1};
    model *m = model_new(17);
    model_input(m, "x", type);
    model_ints(m, "shape", 2, shape);
    model_add(m, "weight w f32[4,64]", "a = MatMul(x w) wide", "b = Relu(x) narrow",
              "c = ReduceSum(a) sum", "d = ReduceSum(b) sum2", "e = Add(c d) add",
              "y = Reshape(e shape) flat", "out y f32[1,1]");
    return m;
}

/* The file's bytes, with another IR version behind them: the last one counts. */
typedef struct bytes {
    unsigned char *at;
    size_t count;
} bytes;

static bytes file_of(model *m, unsigned char ir)
{
    size_t count;
    const unsigned char *from = model_bytes(m, &count);
    bytes file = {malloc(count + 2), count + 2};
    assert_non_null(file.at);
    memcpy(file.at, from, count);
    file.at[count] = 1 << 3;
    file.at[count + 1] = ir;
    return file;
}

static onv_status try_write(bytes file, const onv_options *options, capture *caught,
                            onv_error *error)
{
    onv_analysis *a;
    onv_options how = *options;
    how.onnx_out = true;
    onv_status status =
        onv_analysis_new_from_memory(file.at, file.count, "m.onnx", &how, &a, error);
    if (status != ONV_OK) return status;
    const onv_analysis *const all[] = {a};
    status = onv_report(all, 1, ONV_FORMAT_ONNX, NULL, capture_write, caught, error);
    onv_analysis_destroy(a);
    return status;
}

static bytes write_model(bytes file, const onv_options *options)
{
    capture caught = {0};
    onv_error error = {0};
    if (try_write(file, options, &caught, &error) != ONV_OK) fail_msg("%s", error.message);
    return (bytes){(unsigned char *)caught.text, caught.length};
}

/* The fields of that number in the file's graph, or in the file; returns how many. */
static size_t list_fields(bytes file, bool in_graph, uint32_t number, onv_wire_field *found,
                          size_t most)
{
    onv_wire_field field;
    size_t n = 0;
    const unsigned char *at = file.at, *end = file.at + file.count;
    while (in_graph && onv_wire_next(&at, end, &field)) {
        if (field.number != GRAPH) continue;
        at = field.value;
        end = field.end;
        break;
    }
    while (at < end) {
        assert_true(onv_wire_next(&at, end, &field));
        if (field.number != number) continue;
        assert_true(n < most);
        found[n++] = field;
    }
    return n;
}

static size_t length_of(const onv_wire_field *field)
{
    return (size_t)(field->end - field->start);
}

static bool holds(bytes file, const void *part, size_t count)
{
    return memmem(file.at, file.count, part, count) != NULL;
}

static bool holds_text(bytes file, const char *text)
{
    return holds(file, text, strlen(text));
}

static size_t count_text(bytes file, const char *text)
{
    size_t n = 0, length = strlen(text);
    for (size_t i = 0; i + length <= file.count; i++) n += memcmp(file.at + i, text, length) == 0;
    return n;
}

static void expect_same_fields(bytes a, bytes b, uint32_t number)
{
    onv_wire_field in_a[32], in_b[32];
    size_t n = list_fields(a, true, number, in_a, 32);
    assert_true(n > 0);
    assert_int_equal(list_fields(b, true, number, in_b, 32), n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(length_of(&in_a[i]), length_of(&in_b[i]));
        assert_memory_equal(in_a[i].start, in_b[i].start, length_of(&in_a[i]));
    }
}

TEST(what_was_there_stays)
{
    for (unsigned char ir = 8; ir <= 10; ir += 2) {
        OWNED_MODEL m = branches("f32[batch,4]");
        bytes file = file_of(m, ir);
        onv_options options = onv_options_default();
        options.batch = 8;
        bytes out = write_model(file, &options);
        expect_same_fields(file, out, INITIALIZER);
        expect_same_fields(file, out, NODE);
        assert_true(holds_text(out, "onnxvram.peak_bytes"));
        assert_true(holds_text(out, ir < 10 ? "onnxvram.bytes=2048\nonnxvram.first_step=0\n"
                                            : "onnxvram.bytes\x12\x04"
                                              "2048"));
        /* a, b, c, d, e; y is an output. */
        onv_wire_field infos[32];
        assert_int_equal(list_fields(out, true, VALUE_INFO, infos, 32), 5);
        /* The batch of this analysis is not the model's. */
        assert_true(holds_text(out, "batch=8"));
        assert_true(memmem(infos[0].start, length_of(&infos[0]), "batch", 5) != NULL);
        free(out.at);
        free(file.at);
    }
}

TEST(once_more_adds_nothing)
{
    for (unsigned char ir = 8; ir <= 10; ir += 2) {
        OWNED_MODEL m = branches("f32[batch,4]");
        bytes file = file_of(m, ir);
        onv_options options = onv_options_default();
        bytes first = write_model(file, &options), second = write_model(first, &options);
        assert_int_equal(first.count, second.count);
        assert_memory_equal(first.at, second.at, first.count);
        /* With another size the notes change and are as many. */
        options.batch = 3;
        bytes third = write_model(second, &options);
        assert_int_equal(count_text(third, "onnxvram.first_step"),
                         count_text(first, "onnxvram.first_step"));
        assert_int_equal(count_text(third, "onnxvram.order"), 1);
        free(third.at);
        free(second.at);
        free(first.at);
        free(file.at);
    }
}

TEST(nodes_come_in_the_order)
{
    OWNED_MODEL m = branches("f32[8,4]");
    bytes file = file_of(m, 10);
    onv_options options = onv_options_default();
    options.order = "optimal";
    bytes out = write_model(file, &options);
    onv_wire_field before[32], after[32];
    size_t n = list_fields(file, true, NODE, before, 32), moved = 0;
    assert_int_equal(list_fields(out, true, NODE, after, 32), n);
    for (size_t i = 0; i < n; i++) {
        size_t same = 0;
        for (size_t k = 0; k < n; k++)
            same += length_of(&before[i]) == length_of(&after[k]) &&
                    memcmp(before[i].start, after[k].start, length_of(&before[i])) == 0;
        assert_int_equal(same, 1);
        moved += length_of(&before[i]) != length_of(&after[i]) ||
                 memcmp(before[i].start, after[i].start, length_of(&before[i])) != 0;
    }
    assert_true(moved > 0);
    /* In the order of its file the new model needs what the search found. */
    onv_summary found = {0}, as_written = {0};
    onv_analysis *a = model_analyse(m, &options), *b;
    onv_error error;
    onv_analysis_summary(a, &found);
    assert_int_equal(onv_analysis_new_from_memory(out.at, out.count, NULL, NULL, &b, &error),
                     ONV_OK);
    onv_analysis_summary(b, &as_written);
    assert_int_equal(as_written.peak_bytes, found.peak_bytes);
    onv_analysis_destroy(a);
    onv_analysis_destroy(b);
    free(out.at);
    free(file.at);
}

TEST(the_limit_is_on_what_is_added)
{
    OWNED_MODEL m = branches("f32[8,4]");
    int64_t many[512] = {0};
    model_ints(m, "unused", 512, many);
    bytes file = file_of(m, 8);
    onv_options options = onv_options_default();
    onv_limits limits = onv_limits_default();
    options.limits = &limits;
    limits.output_bytes = 2000;
    assert_true(file.count > 2000);
    bytes out = write_model(file, &options);
    free(out.at);
    limits.output_bytes = 20;
    OWNED_CAPTURE caught = {0};
    onv_error error;
    assert_int_equal(try_write(file, &options, &caught, &error), ONV_ERR_LIMIT);
    free(file.at);
}

TEST(it_has_to_be_asked_for)
{
    OWNED_MODEL m = branches("f32[8,4]");
    OWNED_ANALYSIS a = model_analyse(m, NULL);
    const onv_analysis *const both[] = {a, a};
    OWNED_CAPTURE caught = {0};
    onv_error error;
    assert_int_equal(onv_report(both, 1, ONV_FORMAT_ONNX, NULL, capture_write, &caught, &error),
                     ONV_ERR_USAGE);
    assert_int_equal(onv_report(both, 2, ONV_FORMAT_ONNX, NULL, capture_write, &caught, &error),
                     ONV_ERR_USAGE);
    onv_options options = onv_options_default();
    options.precision = ONV_PRECISION_FP16;
    bytes file = file_of(m, 8);
    assert_int_equal(try_write(file, &options, &caught, &error), ONV_ERR_USAGE);
    free(file.at);
}

/* Cut at every byte, and with every byte changed: an error or a file, and nothing that is read behind an end. */
TEST(damaged_files)
{
    OWNED_MODEL m = branches("f32[8,4]");
    bytes file = file_of(m, 10);
    onv_options options = onv_options_default();
    options.runtimes = "ideal";
    for (size_t i = 0; i < 2 * file.count; i++) {
        bytes part = {malloc(file.count), i < file.count ? i : file.count};
        OWNED_CAPTURE caught = {0};
        onv_error error;
        assert_non_null(part.at);
        memcpy(part.at, file.at, part.count);
        if (i >= file.count) part.at[i - file.count] ^= (unsigned char)(1 + i % 255);
        (void)try_write(part, &options, &caught, &error);
        free(part.at);
    }
    free(file.at);
}

#ifdef ONV_FAULT_INJECTION

TEST(every_allocation_may_fail)
{
    OWNED_MODEL m = branches("f32[batch,4]");
    bytes file = file_of(m, 10);
    onv_options options = onv_options_default();
    options.batch = 2;
    options.runtimes = "ideal";
    options.order = "greedy";
    onv_status status;
    long n = 0;
    do {
        OWNED_CAPTURE caught = {0};
        onv_error error = {0};
        onv_heap_fail_after(n++);
        status = try_write(file, &options, &caught, &error);
        onv_heap_fail_after(-1);
        assert_true(status == ONV_OK || status == ONV_ERR_MEMORY);
    } while (status != ONV_OK && n < 5000);
    assert_int_equal(status, ONV_OK);
    free(file.at);
}

#else

TEST(every_allocation_may_fail)
{
    skip(); /* this build cannot make allocations fail */
}

#endif
