/* Files read by windows: whatever the size of the window, a scan finds what it finds in memory, a broken file is
 * broken the same way, and weights are not read. */
#include <sys/mman.h>
#include <unistd.h>

#include <glob.h>

#include "base/quota.h"
#include "load/bytes.h"
#include "load/limits.h"
#include "load/load.h"
#include "load/scan.h"
#include "support/test.h"

static const uint32_t steps[] = {1, 20, 700, 64 << 10};
enum { N_STEPS = sizeof steps / sizeof steps[0] };

typedef struct opened {
    int fd;
    char path[64];
} opened;

static opened memory_file(const void *data, size_t bytes)
{
    opened file = {.fd = memfd_create("model", 0)};
    assert_true(file.fd >= 0);
    assert_int_equal(write(file.fd, data, bytes), bytes);
    snprintf(file.path, sizeof file.path, "/proc/self/fd/%d", file.fd);
    return file;
}

/* --- The scan ----------------------------------------------------------------------------------- */

static void scan_windows(const char *path, uint32_t step, onv_strings *strings,
                         const onv_scan *expected)
{
    const onv_limits limits = onv_limits_resolve(NULL);
    onv_source source;
    onv_scan scan;
    assert_int_equal(onv_source_open(&source, path, ONV_SOURCE_WINDOWS, UINT64_MAX, NULL), ONV_OK);
    source.most_step = step;
    assert_int_equal(onv_scan_run(&scan, ONV_SCAN_MODEL, &source, &limits, strings, NULL), ONV_OK);
    assert_int_equal(scan.skeleton.count, expected->skeleton.count);
    assert_memory_equal(scan.skeleton.at, expected->skeleton.at, scan.skeleton.count);
    assert_int_equal(scan.names.count, expected->names.count); /* interned in one table */
    if (scan.names.count > 0)
        assert_memory_equal(scan.names.at, expected->names.at,
                            scan.names.count * sizeof *scan.names.at);
    assert_int_equal(scan.nodes.count, expected->nodes.count);
    assert_int_equal(scan.n_values, expected->n_values);
    assert_int_equal(scan.notes.count, expected->notes.count);
    for (size_t i = 0; i < scan.notes.count; i++)
        assert_true(scan.notes.at[i].offset == expected->notes.at[i].offset &&
                    scan.notes.at[i].bytes == expected->notes.at[i].bytes);
    assert_int_equal(scan.dims.count, expected->dims.count);
    if (scan.dims.count > 0)
        assert_memory_equal(scan.dims.at, expected->dims.at,
                            scan.dims.count * sizeof *scan.dims.at);
    assert_int_equal(scan.tensors.count, expected->tensors.count);
    for (size_t i = 0; i < scan.tensors.count; i++) {
        const onv_scan_tensor *a = &scan.tensors.at[i], *b = &expected->tensors.at[i];
        assert_true(a->name == b->name && a->dtype == b->dtype && a->rank == b->rank &&
                    a->first_dim == b->first_dim &&
                    memcmp(&a->chunks, &b->chunks, sizeof a->chunks) == 0);
    }
    assert_int_equal(scan.chunks.count, expected->chunks.count);
    for (size_t i = 0; i < scan.chunks.count; i++) {
        const onv_chunk *a = &scan.chunks.at[i], *b = &expected->chunks.at[i];
        assert_true(a->offset == b->offset && a->bytes == b->bytes && a->field == b->field &&
                    a->tagged == b->tagged);
    }
    onv_scan_cleanup(&scan);
    onv_source_close(&source);
}

/* Against the same file whole. */
static void compare(const char *path)
{
    const onv_limits limits = onv_limits_resolve(NULL);
    onv_source whole;
    onv_scan expected;
    onv_arena arena;
    onv_strings strings;
    onv_arena_init(&arena, SIZE_MAX);
    onv_strings_init(&strings, &arena);
    assert_int_equal(onv_source_open(&whole, path, ONV_SOURCE_BEST, UINT64_MAX, NULL), ONV_OK);
    assert_true(whole.window_bytes == whole.bytes);
    assert_int_equal(onv_scan_run(&expected, ONV_SCAN_MODEL, &whole, &limits, &strings, NULL),
                     ONV_OK);
    for (size_t i = 0; i < N_STEPS; i++) scan_windows(path, steps[i], &strings, &expected);
    onv_scan_cleanup(&expected);
    onv_source_close(&whole);
    onv_strings_cleanup(&strings);
    onv_arena_cleanup(&arena);
}

TEST(samples_are_the_same_by_windows)
{
    glob_t found;
    assert_int_equal(glob(ONV_SOURCE_DIR "/samples/*.onnx", 0, NULL, &found), 0);
    assert_true(found.gl_pathc > 20);
    for (size_t i = 0; i < found.gl_pathc; i++) compare(found.gl_pathv[i]);
    globfree(&found);
}

/* Lists that are counted in pieces, of which numbers lie across the borders, and cut where they are trees. */
TEST(long_lists_are_the_same_by_windows)
{
    enum { COUNT = 40000 };
    static unsigned char numbers[3 * COUNT];
    for (size_t i = 0; i < COUNT; i++) memcpy(numbers + 3 * i, "\xac\xac\x02", 3);
    static const char *const domains[] = {"", "ai.onnx.ml", "ai.onnx.mk"};
    for (size_t i = 0; i < sizeof domains / sizeof domains[0]; i++) {
        msg *ints = m_attr("nodes_treeids", ONV_ATTR_INTS), *floats = m_attr("v", ONV_ATTR_FLOATS);
        msg *node = m_node("TreeEnsembleRegressor", "trees", "x", "y"), *graph = m_graph("x", "y");
        m_bytes(ints, A_INTS, numbers, sizeof numbers);
        m_bytes(floats, A_FLOATS, numbers, sizeof numbers);
        m_put(node, N_ATTR, ints);
        m_put(node, N_ATTR, floats);
        if (domains[i][0] != '\0') m_text(node, N_DOMAIN, domains[i]);
        m_put(graph, G_NODE, node);
        msg *file = m_model(graph);
        opened copy = memory_file(file->at, file->count);
        compare(copy.path);
        close(copy.fd);
        m_free(file);
    }
}

/* --- Contents ----------------------------------------------------------------------------------- */

static void same_value(const onv_model *model, size_t i, const onv_known *expected)
{
    onv_model *changed = (onv_model *)(uintptr_t)model;
    const onv_known *known;
    assert_int_equal(onv_load_known(changed, model->values.at[i].tensor, &known, NULL), ONV_OK);
    assert_int_equal(known != NULL, expected != NULL);
    if (known == NULL) return;
    assert_int_equal(known->count, expected->count);
    for (uint32_t k = 0; k < known->count; k++)
        assert_true(known->elems[k].i.raw == expected->elems[k].i.raw &&
                    memcmp(&known->elems[k].f, &expected->elems[k].f, sizeof(double)) == 0);
}

TEST(contents_are_the_same_by_windows)
{
    static const char *const samples[] = {"control-flow", "fasterrcnn", "llama", "resnet18-qdq"};
    for (size_t s = 0; s < sizeof samples / sizeof samples[0]; s++) {
        char path[4096];
        onv_model whole, parts;
        snprintf(path, sizeof path, "%s/samples/%s.onnx", ONV_SOURCE_DIR, samples[s]);
        assert_int_equal(onv_load(path, NULL, &whole, NULL), ONV_OK);
        assert_int_equal(onv_load_from(path, ONV_SOURCE_WINDOWS, NULL, &parts, NULL), ONV_OK);
        assert_int_equal(whole.values.count, parts.values.count);
        size_t seen = 0;
        for (size_t i = 0; i < whole.values.count; i++) {
            const onv_tensor *tensor = whole.values.at[i].tensor;
            const onv_known *known;
            if (tensor == NULL) continue;
            assert_int_equal(onv_load_known(&whole, tensor, &known, NULL), ONV_OK);
            same_value(&parts, i, known);
            seen += known != NULL;
        }
        assert_true(seen > 0);
        onv_model_cleanup(&whole);
        onv_model_cleanup(&parts);
    }
}

/* Elements behind tags of their own, in two rows. */
TEST(tagged_elements_are_the_same_by_windows)
{
    int64_t dim = 4;
    msg *tensor = m_tensor("w", ONV_FLOAT, 1, &dim), *graph = m_graph("", "");
    for (int i = 0; i < 2; i++) m_f32(tensor, T_FLOATS, (float)i);
    m_bytes(tensor, T_FLOATS, "\0\0\0\x40\0\0\x40\x40", 8);
    m_put(graph, G_INIT, tensor);
    msg *file = m_model(graph);
    opened copy = memory_file(file->at, file->count);
    onv_model model;
    const onv_known *known;
    assert_int_equal(onv_load_from(copy.path, ONV_SOURCE_WINDOWS, NULL, &model, NULL), ONV_OK);
    assert_int_equal(onv_load_known(&model, model.values.at[0].tensor, &known, NULL), ONV_OK);
    for (uint32_t i = 0; i < 4; i++) assert_true(known->elems[i].f == (double)i);
    onv_model_cleanup(&model);
    close(copy.fd);
    m_free(file);
}

/* --- Broken files ------------------------------------------------------------------------------- */

static void same_end(const void *data, size_t bytes)
{
    onv_model model;
    onv_error expected = {0}, err = {0};
    onv_status status = onv_load_memory(data, bytes, NULL, NULL, &model, &expected);
    if (status == ONV_OK) onv_model_cleanup(&model);
    opened file = memory_file(data, bytes);
    onv_status found = onv_load_from(file.path, ONV_SOURCE_WINDOWS, NULL, &model, &err);
    if (found == ONV_OK) onv_model_cleanup(&model);
    close(file.fd);
    assert_int_equal(found, status);
    assert_string_equal(err.message, expected.message);
}

TEST(broken_files_are_broken_the_same_way)
{
    msg *file = m_rich_model();
    for (size_t n = 0; n <= file->count; n++) same_end(file->at, n);
    for (size_t n = 0; n < file->count; n++)
        for (int change = 1; change < 256; change = change * 5 + 2) {
            file->at[n] ^= (unsigned char)change;
            same_end(file->at, file->count);
            file->at[n] ^= (unsigned char)change;
        }
    m_free(file);
    same_end("PK\x03\x04____", 8);
}

/* A file that is cut behind the reader's back: where it is mapped that is a signal. */
TEST(a_file_that_shrinks_is_an_error)
{
    msg *file = m_rich_model();
    opened copy = memory_file(file->at, file->count);
    onv_source source;
    onv_error err = {0};
    const unsigned char *data;
    assert_int_equal(onv_source_open(&source, copy.path, ONV_SOURCE_WINDOWS, UINT64_MAX, &err),
                     ONV_OK);
    source.most_step = 16;
    assert_int_equal(onv_source_view(&source, 0, 16, &data, &err), ONV_OK);
    assert_memory_equal(data, file->at, 16);
    assert_int_equal(ftruncate(copy.fd, 30), 0);
    assert_int_equal(onv_source_view(&source, 0, 16, &data, &err), ONV_OK);
    assert_int_equal(onv_source_view(&source, 20, 16, &data, &err), ONV_ERR_IO);
    assert_non_null(strstr(err.message, "shrank"));
    err = (onv_error){0};
    assert_int_equal(onv_source_view(&source, file->count, 1, &data, &err), ONV_ERR_FORMAT);
    assert_int_equal(onv_source_view(&source, UINT64_MAX, 2, &data, NULL), ONV_ERR_FORMAT);
    onv_source_close(&source);
    close(copy.fd);
    m_free(file);
}

/* --- Memory ------------------------------------------------------------------------------------- */

/* A gigabyte of weights costs windows. */
TEST(weights_are_not_read)
{
    const uint64_t weight = UINT64_C(1) << 30;
    msg *tensor = m_new(), *graph = m_new(), *file = m_new();
    m_int(tensor, T_DIMS, (int64_t)(weight / 4));
    m_int(tensor, T_DTYPE, ONV_FLOAT);
    m_text(tensor, T_NAME, "w");
    m_tag(tensor, T_RAW, 2);
    m_varint(tensor, weight);
    m_tag(graph, G_INIT, 2);
    m_varint(graph, tensor->count + weight);
    m_append(graph, tensor->at, tensor->count);
    m_int(file, M_IR, 8);
    m_put(file, M_OPSET, m_opset("", 17));
    m_tag(file, M_GRAPH, 2);
    m_varint(file, graph->count + weight);
    m_append(file, graph->at, graph->count);
    opened copy = memory_file(file->at, file->count);
    assert_int_equal(ftruncate(copy.fd, (off_t)(file->count + weight)), 0);
    onv_model model;
    onv_error err = {0};
    onv_quota quota = {.limit = 1 << 20}, *before = onv_quota_enter(&quota);
    onv_status status = onv_load_from(copy.path, ONV_SOURCE_WINDOWS, NULL, &model, &err);
    if (status != ONV_OK) fail_msg("%s", err.message);
    assert_int_equal(model.values.at[0].tensor->payload.bytes, weight);
    onv_model_cleanup(&model);
    onv_quota_enter(before);
    close(copy.fd);
    m_free(tensor);
    m_free(graph);
    m_free(file);
}
