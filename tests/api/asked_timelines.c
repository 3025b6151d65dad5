/* Executions and modules beside the columns of "timelines". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "api/asked.h"

/* The numbers of a column: differences, the number of an earlier execution that has it alike, or absent. */
static int64_t *column(const json_t *executions, size_t index, const char *table, const char *key,
                       size_t n, int64_t usual)
{
    const json_t *of = json_object_get(json_array_get(executions, index), table);
    const json_t *list = json_object_get(of, key);
    if (json_is_integer(list))
        return column(executions, (size_t)json_integer_value(list), table, key, n, usual);
    int64_t *numbers = malloc((n + 1) * sizeof *numbers), before = 0;
    assert_non_null(numbers);
    assert_true(list == NULL || json_array_size(list) == n);
    assert_int_equal(json_integer_value(json_object_get(of, "count")), n);
    for (size_t i = 0; i < n; i++) {
        if (list != NULL) before += json_integer_value(json_array_get(list, i));
        numbers[i] = list != NULL ? before : usual;
    }
    return numbers;
}

/* What an index of the columns names: a tensor, or a label behind them. */
static const char *label(const json_t *model, int64_t index)
{
    const json_t *tensors = json_object_get(model, "tensors");
    const json_t *labels = json_object_get(json_object_get(model, "timelines"), "labels");
    if (index < 0) return NULL;
    size_t at = (size_t)index, n = json_array_size(tensors);
    return at < n ? json_string_value(json_object_get(json_array_get(tensors, at), "name"))
                  : json_string_value(json_array_get(labels, at - n));
}

static void expect_same(const char *found, const char *expected)
{
    if (expected == NULL || found == NULL)
        assert_ptr_equal(found, expected);
    else
        assert_string_equal(found, expected);
}

static const char *word(const json_t *model, const char *list, int64_t index)
{
    const json_t *words = json_object_get(json_object_get(model, "timelines"), list);
    return json_string_value(json_array_get(words, (size_t)index));
}

enum { MOST_COLUMNS = 9 };

static void steps(const onv_analysis *a, const json_t *model, const json_t *executions,
                  size_t index, const onv_execution_info *e)
{
    static const char *const keys[] = {
        "node",      "label",      "phase",           "iteration",
        "recompute", "live_bytes", "allocated_bytes", "reserved_bytes"};
    int64_t *c[MOST_COLUMNS];
    onv_execution_step_info s;
    for (size_t k = 0; k < 8; k++)
        c[k] = column(executions, index, "steps", keys[k], e->steps, k < 2 ? -1 : 0);
    for (size_t i = 0; i < e->steps; i++) {
        assert_true(onv_analysis_execution_step(a, index, i, &s));
        const json_t *node = json_array_get(json_object_get(model, "nodes"), (size_t)c[0][i]);
        /* ONNX Runtime's graph has other names. */
        if (c[0][i] >= 0 && strcmp(e->runtime, "ort") != 0)
            expect_same(s.node, json_string_value(json_object_get(node, "name")));
        expect_same(s.label, label(model, c[1][i]));
        expect_same(s.phase, word(model, "phases", c[2][i]));
        assert_int_equal(s.iteration, c[3][i]);
        assert_int_equal(s.is_recompute, c[4][i]);
        assert_int_equal(s.live_bytes, c[5][i]);
        assert_int_equal(s.allocated_bytes, c[6][i]);
        assert_int_equal(s.reserved_bytes, c[7][i]);
    }
    assert_false(onv_analysis_execution_step(a, index, e->steps, &s));
    for (size_t k = 0; k < 8; k++) free(c[k]);
}

static size_t row_of(int64_t number)
{
    return number < 0 ? ONV_NO_INDEX : (size_t)number;
}

static void buffers(const onv_analysis *a, const json_t *model, const json_t *executions,
                    size_t index, const onv_execution_info *e)
{
    static const struct {
        const char *key;
        int64_t usual;
    } keys[] = {{"name", -1},   {"kind", 0},      {"bytes", 0},    {"first", 0}, {"steps", 0},
                {"within", -1}, {"transient", 0}, {"segment", -1}, {"offset", 0}};
    int64_t *c[MOST_COLUMNS];
    onv_execution_buffer_info b;
    onv_tensor_info tensor;
    for (size_t k = 0; k < 9; k++)
        c[k] = column(executions, index, "buffers", keys[k].key, e->buffers, keys[k].usual);
    for (size_t i = 0; i < e->buffers; i++) {
        assert_true(onv_analysis_execution_buffer(a, index, i, &b));
        expect_same(b.name, label(model, c[0][i]));
        expect_same(b.kind, word(model, "kinds", c[1][i]));
        assert_int_equal(b.bytes, c[2][i]);
        assert_int_equal(b.first_step, c[3][i]);
        assert_int_equal(b.last_step - b.first_step, c[4][i]);
        assert_int_equal(b.within, row_of(c[5][i]));
        assert_int_equal(b.is_transient, c[6][i]);
        assert_int_equal(b.segment, row_of(c[7][i]));
        assert_int_equal(b.offset, c[8][i]);
        if (b.tensor != ONV_NO_INDEX) assert_true(onv_analysis_tensor(a, b.tensor, &tensor));
    }
    assert_false(onv_analysis_execution_buffer(a, index, e->buffers, &b));
    for (size_t k = 0; k < 9; k++) free(c[k]);
}

static void segments(const onv_analysis *a, const json_t *executions, size_t index,
                     const onv_execution_info *e)
{
    onv_execution_segment_info s;
    int64_t *bytes = column(executions, index, "segments", "bytes", e->segments, 0);
    int64_t *first = column(executions, index, "segments", "first", e->segments, 0);
    int64_t *end = column(executions, index, "segments", "end", e->segments, 0);
    for (size_t i = 0; i < e->segments; i++) {
        assert_true(onv_analysis_execution_segment(a, index, i, &s));
        assert_int_equal(s.bytes, bytes[i]);
        assert_int_equal(s.first_step, first[i]);
        assert_int_equal(s.end_step, end[i]);
    }
    assert_false(onv_analysis_execution_segment(a, index, e->segments, &s));
    free(bytes);
    free(first);
    free(end);
}

static uint64_t number(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

static void modules(const onv_analysis *a, const json_t *model)
{
    const json_t *part = json_object_get(json_object_get(model, "timelines"), "modules");
    const json_t *list = json_object_get(part, "list"), *of_node = json_object_get(part, "of_node");
    onv_module_table *table;
    onv_module_info m;
    onv_error error = {0};
    assert_int_equal(onv_module_table_new(a, 0, &table, &error), ONV_OK);
    size_t n = onv_module_table_count(table);
    assert_int_equal(n, json_array_size(list));
    for (size_t i = 0; i < n; i++) {
        const json_t *row = json_array_get(list, i), *parent = json_object_get(row, "parent");
        assert_true(onv_module_table_at(table, i, &m));
        expect_same(m.name, json_string_value(json_object_get(row, "name")));
        assert_int_equal(m.parent,
                         json_is_null(parent) ? ONV_NO_INDEX : (size_t)json_integer_value(parent));
        assert_int_equal(m.parameters, number(row, "parameters"));
        assert_int_equal(m.activation_bytes, number(row, "activation_bytes"));
        if (m.macs != ONV_SIZE_UNKNOWN)
            assert_int_equal(m.macs, number(row, "macs"));
        else
            assert_true(json_is_null(json_object_get(row, "macs")));
    }
    assert_false(onv_module_table_at(table, n, &m));
    int64_t before = 0;
    for (size_t i = 0; i < json_array_size(of_node); i++) {
        before += json_integer_value(json_array_get(of_node, i));
        assert_int_equal(onv_module_table_of_step(table, i), before);
    }
    assert_int_equal(onv_module_table_of_step(table, json_array_size(of_node)), ONV_NO_INDEX);
    onv_module_table_destroy(table);
    onv_module_table_destroy(NULL);
}

void asked_timelines(const onv_analysis *a, const json_t *model)
{
    const json_t *executions = json_object_get(json_object_get(model, "timelines"), "executions");
    onv_execution_info e;
    size_t n = onv_analysis_execution_count(a);
    assert_int_equal(n, json_array_size(executions));
    for (size_t i = 0; i < n; i++) {
        const json_t *row = json_array_get(executions, i), *plan = json_object_get(row, "plan");
        assert_true(onv_analysis_execution(a, i, &e));
        expect_same(e.runtime, json_string_value(json_object_get(row, "runtime")));
        assert_int_equal(e.plan, plan == NULL ? ONV_NO_INDEX : (size_t)json_integer_value(plan));
        assert_int_equal(e.peak_bytes, number(row, "peak_bytes"));
        assert_int_equal(e.peak_step, number(row, "peak_step"));
        assert_int_equal(e.allocated_peak_bytes, number(row, "allocated_peak_bytes"));
        assert_int_equal(e.reserved_peak_bytes, number(row, "reserved_peak_bytes"));
        assert_int_equal(e.measured_from, number(row, "measured_from"));
        steps(a, model, executions, i, &e);
        buffers(a, model, executions, i, &e);
        segments(a, executions, i, &e);
    }
    assert_false(onv_analysis_execution(a, n, &e));
    if (n > 0) modules(a, model);
}
