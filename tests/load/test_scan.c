/* The wire scan: what it keeps, what it moves aside, what it refuses; and that no bytes whatever
 * make the loader fail in another way than by an error. */
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "load/bytes.h"
#include "load/limits.h"
#include "load/load.h"
#include "load/scan.h"
#include "support/test.h"

static onv_status try_bytes(const void *data, size_t bytes, onv_error *err)
{
    /* A copy of the exact size: a read past its end is seen by the sanitizer. */
    void *copy = malloc(bytes > 0 ? bytes : 1);
    assert_non_null(copy);
    if (bytes > 0) memcpy(copy, data, bytes);
    onv_model model;
    *err = (onv_error){0};
    onv_status status = onv_load_memory(copy, bytes, NULL, NULL, &model, err);
    if (status == ONV_OK) onv_model_cleanup(&model);
    free(copy);
    return status;
}

static void expect(msg *file, onv_status status, const char *text)
{
    onv_error err;
    assert_int_equal(try_bytes(file->at, file->count, &err), status);
    assert_int_equal(err.code, status);
    if (text != NULL && strstr(err.message, text) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", text, err.message);
    m_free(file);
}

/* --- Damage ------------------------------------------------------------------------------------ */

TEST(every_truncation_is_an_error)
{
    msg *file = m_rich_model();
    onv_error err;
    assert_int_equal(try_bytes(file->at, file->count, &err), ONV_OK);
    for (size_t n = 0; n < file->count; n++) {
        if (try_bytes(file->at, n, &err) != ONV_ERR_FORMAT)
            fail_msg("%zu bytes: %s", n, err.message);
        assert_int_not_equal(err.message[0], '\0');
    }
    m_free(file);
}

TEST(every_changed_byte_is_survived)
{
    msg *file = m_rich_model();
    onv_error err;
    size_t refused = 0;
    for (size_t n = 0; n < file->count; n++) {
        for (int change = 1; change < 256; change = change * 3 + 1) {
            file->at[n] ^= (unsigned char)change;
            if (try_bytes(file->at, file->count, &err) != ONV_OK) refused++;
            file->at[n] ^= (unsigned char)change;
        }
    }
    assert_true(refused > file->count);
    m_free(file);
}

TEST(a_truncated_file_is_called_that)
{
    msg *file = m_rich_model();
    file->count -= 10;
    expect(file, ONV_ERR_FORMAT, "truncated: ModelProto.graph");
}

TEST(empty_messages)
{
    expect(m_new(), ONV_ERR_FORMAT, "empty");
    msg *file = m_new();
    m_int(file, M_IR, 8);
    expect(file, ONV_ERR_FORMAT, "no graph");
    expect(m_model(m_new()), ONV_OK, NULL);
}

static msg *model_of_node_field(const void *field, size_t bytes)
{
    msg *node = m_node("Relu", "r", "x", "y"), *graph = m_graph("x", "y");
    m_append(node, field, bytes);
    m_put(graph, G_NODE, node);
    return m_model(graph);
}

TEST(wrong_wire)
{
    /* name as a number; a group; field 0; a varint without end; a length without end; wire type 7 */
    expect(model_of_node_field("\x18\x05", 2), ONV_ERR_FORMAT, "NodeProto.name has the wrong wire");
    expect(model_of_node_field("\x7b\x7c", 2), ONV_ERR_FORMAT, "group");
    expect(model_of_node_field("\x02\x00", 2), ONV_ERR_FORMAT, "no field of NodeProto");
    expect(model_of_node_field("\x78\xff\xff", 3), ONV_ERR_FORMAT, "broken number");
    expect(model_of_node_field("\x7a\xff", 2), ONV_ERR_FORMAT, "broken length");
    expect(model_of_node_field("\x7f\x00", 2), ONV_ERR_FORMAT, "no field");
    expect(model_of_node_field("\x1a\x7f", 2), ONV_ERR_FORMAT, "truncated");
    /* Unknown fields of each good wire type are skipped. */
    expect(model_of_node_field("\x78\x05\x7d____\x79________\x7a\x02__", 20), ONV_OK, NULL);
    expect(model_of_node_field("\x7d___", 4), ONV_ERR_FORMAT, "truncated");
}

TEST(a_field_longer_than_its_message)
{
    msg *node = m_new(), *graph = m_graph("", "");
    m_append(node, "\x1a\x0a_", 3); /* a name of 10 bytes in a node of 3 */
    m_put(graph, G_NODE, node);
    for (int i = 0; i < 10; i++) m_put(graph, G_INFO, m_info("abc"));
    expect(m_model(graph), ONV_ERR_FORMAT, "longer than the message");
}

TEST(a_second_graph)
{
    msg *file = m_model(m_graph("x", "x"));
    m_put(file, M_GRAPH, m_graph("x", "x"));
    expect(file, ONV_ERR_FORMAT, "ModelProto.graph occurs twice");
}

TEST(packed_numbers_that_do_not_end)
{
    msg *attr = m_attr("axes", ONV_ATTR_INTS), *node = m_node("Relu", "", "x", "y");
    m_bytes(attr, A_INTS, "\x01\x82", 2);
    m_put(node, N_ATTR, attr);
    msg *graph = m_graph("x", "y");
    m_put(graph, G_NODE, node);
    expect(m_model(graph), ONV_ERR_FORMAT, "AttributeProto.ints holds a broken number");

    attr = m_attr("scales", ONV_ATTR_FLOATS), node = m_node("Relu", "", "x", "y");
    m_bytes(attr, A_FLOATS, "12345", 5);
    m_put(node, N_ATTR, attr);
    graph = m_graph("x", "y");
    m_put(graph, G_NODE, node);
    expect(m_model(graph), ONV_ERR_FORMAT, "AttributeProto.floats holds a broken number");
}

TEST(names_are_text)
{
    static const struct {
        const char *name;
        size_t bytes;
        bool valid;
    } cases[] = {
        {"caf\xc3\xa9", 5, true},
        {"\xe6\xbc\xa2", 3, true},
        {"\xf0\x9f\x98\x80", 4, true},
        {"\xc3", 1, false},
        {"\xc0\xaf", 2, false},
        {"\xe0\x80\xaf", 3, false},
        {"\xed\xa0\x80", 3, false},
        {"\xf4\x90\x80\x80", 4, false},
        {"\xff", 1, false},
        {"a\0b", 3, false},
        {"\x80", 1, false},
        {"\xe6\xbc", 2, false},
        {"\xf0\x80\x80\x80", 4, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        msg *graph = m_graph("", ""), *input = m_new();
        m_bytes(input, 1, cases[i].name, cases[i].bytes);
        m_put(graph, G_INPUT, input);
        expect(m_model(graph), cases[i].valid ? ONV_OK : ONV_ERR_FORMAT,
               cases[i].valid ? NULL : "ValueInfoProto.name is not UTF-8 text");
    }
    /* What is dropped is not looked at. */
    msg *graph = m_graph("", "");
    m_bytes(graph, G_DOC, "\xff\xfe\0", 3);
    expect(m_model(graph), ONV_OK, NULL);
}

TEST(what_else_a_file_may_be)
{
    static const struct {
        const char *head, *text;
    } cases[] = {
        {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n", "git lfs pull"},
        {"<!DOCTYPE html>\n<html>", "HTML"},
        {"  {\"model\": 1}", "JSON"},
        {"PK\x03\x04 and so on", "zip archive"},
        {"\x1f\x8b and so on", "gzip"},
        {"GGUF and so on", "GGUF"},
        {"....TFL3", "TensorFlow Lite"},
        {"....ORTM", "ORT format"},
        {"\x89HDF\r\n\x1a\n...", "HDF5"},
        {"Hello, world", "plain text"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        msg *file = m_new();
        m_append(file, cases[i].head, strlen(cases[i].head));
        expect(file, ONV_ERR_FORMAT, cases[i].text);
    }
}

/* --- Limits ------------------------------------------------------------------------------------ */

static msg *nested_graphs(int depth)
{
    msg *graph = m_new();
    for (int i = 0; i < depth; i++) {
        msg *attr = m_new(), *node = m_new(), *outer = m_new();
        m_put(attr, A_GRAPH, graph);
        m_text(node, 4, "If");
        m_put(node, N_ATTR, attr);
        m_put(outer, G_NODE, node);
        graph = outer;
    }
    return m_model(graph);
}

TEST(three_thousand_nested_graphs)
{
    msg *file = nested_graphs(3000);
    assert_true(file->count < 60000);
    expect(file, ONV_ERR_LIMIT, "nested more than 200 deep");
}

/* What the highest limit lets through must not exhaust the stack, here or in protobuf-c. */
TEST(the_deepest_nesting)
{
    onv_limits limits = {.nesting = UINT32_MAX};
    onv_error err = {0};
    onv_model model;
    msg *file = nested_graphs(332);
    assert_int_equal(onv_load_memory(file->at, file->count, NULL, &limits, &model, &err), ONV_OK);
    assert_int_equal(model.graphs.count, 333);
    onv_model_cleanup(&model);
    m_free(file);
    file = nested_graphs(334);
    assert_int_equal(onv_load_memory(file->at, file->count, NULL, &limits, &model, &err),
                     ONV_ERR_LIMIT);
    m_free(file);
}

TEST(nested_types)
{
    for (int depth = 90; depth <= 3000; depth += 2910) {
        msg *type = m_new();
        for (int i = 0; i < depth; i++) {
            msg *sequence = m_new(), *outer = m_new();
            m_put(sequence, 1, type);
            m_put(outer, 4, sequence);
            type = outer;
        }
        msg *input = m_new(), *graph = m_new();
        m_text(input, 1, "x");
        m_put(input, 2, type);
        m_put(graph, G_INPUT, input);
        expect(m_model(graph), depth < 100 ? ONV_OK : ONV_ERR_LIMIT, NULL);
    }
}

static void limited(msg *file, onv_limits limits, const char *text)
{
    onv_model model;
    onv_error err = {0};
    onv_status status = onv_load_memory(file->at, file->count, NULL, &limits, &model, &err);
    if (text == NULL) {
        assert_int_equal(status, ONV_OK);
        onv_model_cleanup(&model);
    } else {
        assert_int_equal(status, ONV_ERR_LIMIT);
        if (strstr(err.message, text) == NULL) fail_msg("%s", err.message);
    }
}

TEST(limits_hold)
{
    msg *graph = m_graph("x", "y3");
    m_put(graph, G_NODE, m_node("Relu", "a", "x", "y1"));
    m_put(graph, G_NODE, m_node("Relu", "b", "y1", "y2"));
    m_put(graph, G_NODE, m_node("Relu", "c", "y2", "y3"));
    msg *file = m_model(graph);
    limited(file, (onv_limits){0}, NULL);
    limited(file, (onv_limits){.nodes = 3, .values = 4, .nesting = 3}, NULL);
    limited(file, (onv_limits){.nodes = 2}, "more than 2 nodes");
    limited(file, (onv_limits){.values = 3}, "more than 3 values");
    limited(file, (onv_limits){.nesting = 2}, "nested more than 2 deep");
    limited(file, (onv_limits){.name_bytes = 3}, "NodeProto.op_type of 4 bytes");
    limited(file, (onv_limits){.arena_bytes = 100}, "more memory than 100 bytes");
    m_free(file);

    msg *attr = m_attr("axes", ONV_ATTR_INTS), *node = m_node("Relu", "a", "x", "y");
    m_bytes(attr, A_INTS, "\x01\x02\x03\x04", 4);
    m_put(node, N_ATTR, attr);
    graph = m_graph("x", "y");
    m_put(graph, G_NODE, node);
    file = m_model(graph);
    limited(file, (onv_limits){.attr_elems = 4}, NULL);
    limited(file, (onv_limits){.attr_elems = 3}, "attribute 'axes' has more than 3 elements");
    m_free(file);
}

/* --- What is kept ------------------------------------------------------------------------------ */

/* The names of what is scanned go with the arena. */
static void scan(const msg *file, onv_arena *arena, onv_scan *result)
{
    onv_limits limits = onv_limits_resolve(NULL);
    onv_strings strings;
    onv_arena_init(arena, SIZE_MAX);
    onv_strings_init(&strings, arena);
    onv_source source;
    onv_source_memory(&source, file->at, file->count);
    assert_int_equal(onv_scan_run(result, ONV_SCAN_MODEL, &source, &limits, &strings, NULL),
                     ONV_OK);
    result->source = NULL; /* it ends here */
    onv_strings_cleanup(&strings);
}

/* Long lists, as classical models have learnt them, are counted, not kept, however they are written; others than these
 * models' have a limit. */
TEST(long_lists_are_only_counted)
{
    enum { COUNT = 5000 };
    static char numbers[COUNT * 4];
    memset(numbers, 1, sizeof numbers);
    for (int other = 0; other < 2; other++) {
        msg *node = m_node("TreeEnsembleRegressor", "trees", "x", "y");
        msg *ints = m_attr("nodes_treeids", ONV_ATTR_INTS);
        msg *floats = m_attr("nodes_values", ONV_ATTR_FLOATS);
        msg *modes = m_attr("nodes_modes", ONV_ATTR_STRINGS);
        m_bytes(ints, A_INTS, numbers, COUNT);
        m_bytes(ints, A_INTS, numbers, 7);
        m_bytes(floats, A_FLOATS, numbers, sizeof numbers);
        for (int i = 0; i < COUNT; i++) m_bytes(modes, A_STRINGS, "LEAF", 4);
        m_put(node, N_ATTR, ints);
        m_put(node, N_ATTR, floats);
        m_put(node, N_ATTR, modes);
        m_bytes(node, N_DOMAIN, "ai.onnx.ml", other ? 9 : 10);
        msg *graph = m_graph("x", "y");
        m_put(graph, G_NODE, node);
        msg *file = m_model(graph);
        onv_model model;
        onv_limits limits = {.attr_elems = other ? COUNT + 7 : 3};
        assert_int_equal(onv_load_memory(file->at, file->count, NULL, &limits, &model, NULL),
                         ONV_OK);
        const onv_node *trees = &model.nodes.at[0];
        assert_int_equal(trees->n_attrs, 3);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(trees->attrs[i].count, i == 0 ? COUNT + 7 : COUNT);
            assert_null(trees->attrs[i].ints);
        }
        onv_model_cleanup(&model);
        if (other) limited(file, (onv_limits){.attr_elems = COUNT}, "has more than 5000 elements");
        onv_scan scanned;
        onv_arena arena;
        scan(file, &arena, &scanned);
        assert_true(scanned.skeleton.count < 12 * 4096);
        onv_scan_cleanup(&scanned);
        onv_arena_cleanup(&arena);
        m_free(file);
    }
}

TEST(the_skeleton_leaves_out_what_is_not_used)
{
    static char blob[100000];
    memset(blob, 'd', sizeof blob);
    msg *node = m_node("Relu", "r", "x", "y"), *attr = m_attr("engine", ONV_ATTR_STRING);
    m_bytes(attr, A_STRING, blob, sizeof blob);
    m_put(node, N_ATTR, attr);
    m_bytes(node, 6, blob, sizeof blob);
    msg *graph = m_graph("x", "y"), *strings = m_tensor("s", ONV_STRING, 0, NULL);
    m_bytes(strings, 6, blob, sizeof blob);
    m_put(graph, G_NODE, node);
    m_put(graph, G_INIT, strings);
    m_put(graph, G_INIT, m_raw("w", ONV_FLOAT, 25000, blob, sizeof blob));
    m_bytes(graph, G_DOC, blob, sizeof blob);
    msg *file = m_model(graph);
    m_bytes(file, 14, blob, sizeof blob);
    onv_scan result;
    onv_arena arena;
    scan(file, &arena, &result);
    assert_in_range(result.skeleton.count, ONV_DEFAULT_NAME_BYTES, ONV_DEFAULT_NAME_BYTES + 500);
    assert_int_equal(result.nodes.count, 1);
    assert_int_equal(result.n_values, 4);
    assert_int_equal(result.chunks.count, 1);
    assert_int_equal(result.chunks.at[0].bytes, sizeof blob);
    assert_in_range(result.chunks.at[0].offset, 1, file->count - sizeof blob);
    assert_memory_equal(file->at + result.chunks.at[0].offset, blob, sizeof blob);
    onv_scan_cleanup(&result);
    onv_arena_cleanup(&arena);
    m_free(file);
}

/* Equal attributes and types are kept once; one with a payload or with graphs belongs to one node. */
TEST(equal_messages_are_walked_once)
{
    const float zero = 0;
    msg *graph = m_graph("x:f32[batch,3] y:f32[batch,3]", "z:f32[batch,4]");
    for (int i = 0; i < 6; i++) {
        msg *node = m_node("Op", "", "x", "");
        m_put(node, N_ATTR, m_attr_int(i == 5 ? "other" : "axis", i == 4 ? 2 : 1));
        m_put(node, N_ATTR, m_attr_tensor("value", m_raw("", ONV_FLOAT, 1, &zero, sizeof zero)));
        m_put(node, N_ATTR, m_attr_graph("body", m_graph("", "")));
        m_put(graph, G_NODE, node);
    }
    msg *file = m_model(graph);
    onv_scan result;
    onv_arena arena;
    scan(file, &arena, &result);
    assert_int_equal(result.attrs.count, 3 + 6 + 6);
    assert_int_equal(result.attr_lists.count, 18);
    for (uint32_t i = 0; i < 6; i++) {
        const onv_range attrs = result.nodes.at[i].attrs;
        assert_int_equal(attrs.count, 3);
        const onv_scan_attr *first = onv_scan_attr_of(&result, result.nodes.at[0].attrs, 0);
        assert_int_equal(onv_scan_attr_of(&result, attrs, 0) == first, i < 4);
        assert_string_equal(onv_scan_attr_of(&result, attrs, 0)->name, i == 5 ? "other" : "axis");
        assert_int_equal(onv_scan_attr_of(&result, attrs, 2)->graph.count, 1);
    }
    assert_int_equal(result.chunks.count, 6);
    const onv_scan_value *values = result.values.at;
    assert_true(values[0].type.bytes > 0);
    assert_memory_equal(&values[0].type, &values[1].type, sizeof values[0].type);
    assert_int_not_equal(values[0].type.at, values[2].type.at);
    onv_scan_cleanup(&result);
    onv_arena_cleanup(&arena);
    m_free(file);
}

TEST(a_row_of_tagged_elements_is_one_chunk)
{
    int64_t dim = 1000;
    msg *tensor = m_tensor("w", ONV_FLOAT, 1, &dim), *graph = m_new();
    for (int i = 0; i < 1000; i++) m_f32(tensor, T_FLOATS, (float)i);
    m_put(graph, G_INIT, tensor);
    msg *file = m_model(graph);
    onv_scan result;
    onv_arena arena;
    scan(file, &arena, &result);
    assert_int_equal(result.chunks.count, 1);
    assert_int_equal(result.chunks.at[0].bytes, 5000);
    assert_true(result.chunks.at[0].tagged);
    onv_scan_cleanup(&result);
    onv_arena_cleanup(&arena);
    m_free(file);
}

/* --- Large files ------------------------------------------------------------------------------- */

static long faults(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_minflt + usage.ru_majflt;
}

/* Five gibibytes of weights in a file with holes: beyond the lengths that protobuf allows, and far
 * more pages than are touched. */
TEST(weights_stay_on_disk)
{
    const uint64_t weight = UINT64_C(5) << 30;
    int64_t dim = (int64_t)weight / 4;
    msg *tensor = m_tensor("w", ONV_FLOAT, 1, &dim);
    m_tag(tensor, T_RAW, 2);
    m_varint(tensor, weight);
    msg *graph = m_graph("x", "y");
    m_put(graph, G_NODE, m_node("Relu", "r", "x", "y"));
    m_tag(graph, G_INIT, 2);
    m_varint(graph, tensor->count + weight);
    m_append(graph, tensor->at, tensor->count);
    m_free(tensor);
    msg *file = m_new();
    m_int(file, M_IR, 8);
    m_put(file, M_OPSET, m_opset("", 17));
    m_tag(file, M_GRAPH, 2);
    m_varint(file, graph->count + weight);
    m_append(file, graph->at, graph->count);
    m_free(graph);

    int fd = memfd_create("model", 0);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, file->at, file->count), file->count);
    assert_int_equal(ftruncate(fd, (off_t)(file->count + weight)), 0);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    long before = faults();
    onv_model model;
    onv_error err = {0};
    if (onv_load(path, NULL, &model, &err) != ONV_OK) fail_msg("%s", err.message);
    assert_true(faults() - before < 2000);
    assert_int_equal(model.values.at[0].tensor->payload.bytes, weight);
    assert_int_equal(model.values.at[0].tensor->bytes, weight);
    onv_model_cleanup(&model);

    /* The same file, cut short. */
    assert_int_equal(ftruncate(fd, (off_t)(file->count + weight - 1)), 0);
    assert_int_equal(onv_load(path, NULL, &model, &err), ONV_ERR_FORMAT);
    assert_non_null(strstr(err.message, "truncated"));
    close(fd);
    m_free(file);
}
