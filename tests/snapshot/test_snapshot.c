/* Snapshots of PyTorch's memory: those that its CUDA build wrote over a substitute for the driver, with what it counted itself
 * (torch.cuda.memory_stats), this program's own, and files that are none. */
#include "api/analysis.h"
#include "snapshot/snapshot.h"
#include "support/capture.h"

#include "base/heap.h"
#include "base/quota.h"
#include "onnxvram/onnxvram.h"
#include "support/test.h"

/* cmocka wants these before it. */

#define CORPUS ONV_SOURCE_DIR "/tests/fuzz/corpus/snapshot/"

static onv_status parse(onv_snapshot *s, const char *data, size_t bytes, onv_error *error)
{
    *s = (onv_snapshot){0};
    *error = (onv_error){0};
    return onv_snapshot_parse(s, data, bytes, error);
}

TEST(sums_are_those_of_pytorch)
{
    static const struct {
        const char *file;
        uint64_t requested, allocated, reserved;
        uint32_t n_live, n_before;
    } rows[] = {
        {CORPUS "early.pickle", 43387056, 43389952, 56623104, 13, 0},
        {CORPUS "late.pickle", 48633600, 48638976, 56623104, 21, 14},
        {CORPUS "expandable.pickle", 48633600, 48638976, 65011712, 21, 14},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        onv_snapshot s;
        onv_error error = {0};
        assert_int_equal(onv_snapshot_read(&s, rows[i].file, 1 << 20, &error), ONV_OK);
        assert_true(s.has_history);
        assert_int_equal(s.requested_peak, rows[i].requested);
        assert_int_equal(s.allocated_peak, rows[i].allocated);
        assert_int_equal(s.reserved_peak, rows[i].reserved);
        uint32_t before = 0;
        for (size_t k = 0; k < s.live.count; k++) before += s.live.at[k].request == ONV_NO_REQUEST;
        assert_int_equal(s.live.count, rows[i].n_live);
        for (size_t k = 0; k < s.requests.count; k++) assert_true(s.requests.at[k].freed > k);
        assert_int_equal(before, rows[i].n_before);
        onv_snapshot_cleanup(&s);
    }
}

/* The first one allocates the network on the way: its stack says so. */
TEST(stacks_are_read)
{
    onv_snapshot s;
    onv_snapshot_frame frame;
    onv_error error = {0};
    assert_int_equal(onv_snapshot_read(&s, CORPUS "early.pickle", 1 << 20, &error), ONV_OK);
    assert_true(onv_snapshot_frame_at(s.live.at[0].frames, 0, &frame));
    assert_true(onv_pickled_is_text(frame.name, "<lambda>"));
    assert_true(onv_pickled_is_text(frame.file, "site-packages/torch/nn/modules/module.py"));
    assert_int_equal(frame.line, 1098);
    assert_false(onv_snapshot_frame_at(s.live.at[0].frames, 10000, &frame));
    onv_snapshot_cleanup(&s);
}

/* What the program writes for PyTorch's viewer it reads again, with the figures of the report. */
TEST(own_snapshots_are_read)
{
    onv_options options = onv_options_default();
    onv_analysis *analysis;
    onv_error error;
    options.batch = 8;
    options.train = "adamw";
    options.timelines = true;
    assert_int_equal(onv_analysis_new(ONV_SOURCE_DIR "/samples/resnet18-train.onnx", &options,
                                      &analysis, &error),
                     ONV_OK);
    OWNED_CAPTURE t = {0};
    const onv_analysis *one = analysis;
    assert_int_equal(onv_report(&one, 1, ONV_FORMAT_MEMORY_VIZ, NULL, capture_write, &t, &error),
                     ONV_OK);
    onv_snapshot s;
    assert_int_equal(parse(&s, t.text, t.length, &error), ONV_OK);
    const onv_training_figures *training = &analysis->training.figures;
    assert_int_equal(s.n_devices, 2);
    assert_true(s.has_history);
    assert_int_equal(s.allocated_peak, training->allocated_peak_bytes);
    assert_int_equal(s.reserved_peak, training->reserved_peak_bytes);
    onv_snapshot_cleanup(&s);
    onv_analysis_destroy(analysis);
}

TEST(other_files_are_refused)
{
    static const struct {
        const char *data;
        size_t bytes;
        const char *message;
    } rows[] = {
#define ROW(data, message) {data, sizeof(data) - 1, message}
        ROW("", "not a pickle of protocol 2 to 5"),
        ROW("{\"models\": []}", "not a pickle of protocol 2 to 5"),
        ROW("\x80\x04"
            "cposix\nsystem\n\x8c\x04true\x85R.",
            "code in it (GLOBAL at byte 2)"),
        ROW("\x80\x04\x8c\x05posix\x8c\x06system\x93.", "code in it (STACK_GLOBAL at byte 17)"),
        ROW("\x80\x04)R.", "code in it (REDUCE at byte 3)"),
        ROW("\x80\x04]}b.", "code in it (BUILD at byte 4)"),
        ROW("\x80\x04}.", "a pickle without segments"),
        ROW("\x80\x04}\x8c\x08segments]s.", "the snapshot is empty"),
        ROW("\x80\x04K", "ends too early"),
        ROW("\x80\x04K\x01", "ends too early"),
        ROW("\x80\x04K\x01K\x02.", "does not end with one value"),
        ROW("\x80\x04(.", "does not end with one value"),
        ROW("\x80\x04X\xff\xff\xff\x7f"
            "abc.",
            "text is longer than the file"),
        ROW("\x80\x04\x8a\x09"
            "abc.",
            "a number is longer than the file"),
        ROW("\x80\x04h\x05.", "the memo lacks a value"),
        ROW("\x80\x04r\xff\xff\xff\xff.", "nothing to remember"),
        ROW("\x80\x04]r\xff\xff\xff\xff.", "a number in the memo is too large"),
        ROW("\x80\x04u.", "a mark is missing"),
        ROW("\x80\x04](K\x01u.", "nothing to put a value into"),
        ROW("\x80\x04}(K\x01u.", "nothing to put a value into"),
        ROW("\x80\x04](\x85.", "a mark is not a value"),
        ROW("\x80\x04\x86.", "a tuple lacks values"),
        ROW("\x80\x04\xff.", "an unknown operation"),
        ROW("\x80\x04}(\x8c\x08segments](}\x8c\x06"
            "deviceK\x00\x73"
            "eu.",
            "a segment of the snapshot lacks"),
        ROW("\x80\x04}(\x8c\x08segments]\x8c\x0d"
            "device_traces]](}\x8c\x06"
            "action\x8c\x05"
            "allocseau.",
            "lacks its address or its size"),
        ROW("\x80\x04}(\x8c\x08segments]\x8c\x0d"
            "device_traces]](}eau.",
            "has no action"),
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        onv_snapshot s;
        onv_error error;
        assert_int_equal(parse(&s, rows[i].data, rows[i].bytes, &error), ONV_ERR_FORMAT);
        if (strstr(error.message, rows[i].message) == NULL)
            fail_msg("%s: not '%s'", error.message, rows[i].message);
        onv_snapshot_cleanup(&s);
    }
}

static char *load(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    char *data = malloc(1 << 16);
    assert_non_null(file);
    assert_non_null(data);
    *bytes = fread(data, 1, 1 << 16, file);
    fclose(file);
    return data;
}

/* A file that was cut anywhere is refused; so is one whose numbers are of no device. */
TEST(damage_is_found)
{
    size_t bytes;
    OWNED_TEXT data = load(CORPUS "late.pickle", &bytes);
    for (size_t cut = 0; cut < bytes; cut++) {
        onv_snapshot s;
        onv_error error;
        OWNED_TEXT part = malloc(cut + 1);
        assert_non_null(part);
        memcpy(part, data, cut);
        assert_int_equal(parse(&s, part, cut, &error), ONV_ERR_FORMAT);
        assert_true(error.message[0] != '\0');
        onv_snapshot_cleanup(&s);
    }
}

/* Work and memory are counted: each ends the reading. */
TEST(limits_hold)
{
    size_t bytes;
    OWNED_TEXT data = load(CORPUS "late.pickle", &bytes);
    onv_snapshot s;
    onv_error error;
    onv_quota quota = {.limit = SIZE_MAX, .most_work = 1000};
    onv_quota *before = onv_quota_enter(&quota);
    assert_int_equal(parse(&s, data, bytes, &error), ONV_ERR_MEMORY);
    onv_snapshot_cleanup(&s);
    quota = (onv_quota){.limit = 100 << 10};
    assert_int_equal(parse(&s, data, bytes, &error), ONV_ERR_MEMORY);
    onv_snapshot_cleanup(&s);
    quota = (onv_quota){.limit = 8 << 20};
    assert_int_equal(parse(&s, data, bytes, &error), ONV_OK);
    assert_true(quota.work > 1000 && quota.work < 40 * bytes);
    onv_snapshot_cleanup(&s);
    onv_quota_enter(before);
    assert_int_equal(onv_snapshot_read(&s, CORPUS "late.pickle", 5000, &error), ONV_ERR_LIMIT);
    onv_snapshot_cleanup(&s);
}

/* --- Objects in many places -------------------------------------------------------------------- */

typedef struct bytes {
    char *at;
    size_t n;
} bytes;

static void put(bytes *b, const void *data, size_t n)
{
    if (n > 0) memcpy(b->at + b->n, data, n);
    b->n += n;
}

static void put_text(bytes *b, const char *of)
{
    put(b, (char[]){(char)0x8c, (char)strlen(of)}, 2);
    put(b, of, strlen(of));
}

static void put_number(bytes *b, const char *name, uint64_t number)
{
    put_text(b, name);
    put(b, (char[]){(char)0x8a, 8}, 2);
    put(b, &number, sizeof number);
}

/* `n` times what the memo has at `place`, as the elements of a list that it has behind it. */
static void put_list_of(bytes *b, const char *name, unsigned place, size_t n)
{
    put_text(b, name);
    put(b, "](", 2);
    for (size_t i = 0; i < n; i++) put(b, (char[]){'h', (char)place}, 2);
    put(b, "e", 1);
    put(b, (char[]){'q', (char)(place + 1)}, 2);
}

/* 65,537 segments of 65,535 blocks are a file of 262 KB, and in 32 bits they are some 131,000; likewise events of one object with many members. */
TEST(objects_in_many_places)
{
    for (int is_event = 0; is_event < 2; is_event++) {
        bytes b = {malloc(1 << 20), 0};
        onv_snapshot s;
        onv_error error;
        assert_non_null(b.at);
        put(&b, "\x80\x04}(", 4);
        put_text(&b, "object");
        put(&b, "}(", 2);
        put_text(&b, is_event ? "action" : "state");
        put_text(&b, is_event ? "alloc" : "active_allocated");
        put_number(&b, "addr", 4096);
        put_number(&b, "size", 512);
        for (int i = 0; is_event && i < 100000; i++) put(&b, "K\1K\2", 4);
        put(&b, "uq\0", 3);
        put_list_of(&b, "list", 0, is_event ? 200000 : 65535);
        put_text(&b, "segment");
        put(&b, "}(", 2);
        put_number(&b, "device", 0);
        put_number(&b, "address", 4096);
        put_number(&b, "total_size", 1 << 20);
        put_text(&b, "blocks");
        put(&b, "h\1uq\2", 5);
        put_list_of(&b, "segments", 2, is_event ? 1 : 65537);
        put_text(&b, "device_traces");
        put(&b, is_event ? "](h\1eu." : "]u.", is_event ? 7 : 3);
        assert_int_equal(parse(&s, b.at, b.n, &error), is_event ? ONV_ERR_FORMAT : ONV_ERR_LIMIT);
        onv_snapshot_cleanup(&s);
        free(b.at);
    }
}
