#include "support/truth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnxvram/onnxvram.h"

typedef struct truth {
    json_t *json;
    const char *name; /* of the truth file */
    char model[1024];
    bool nested; /* the file's peak leaves out what runs in subgraphs and functions */
    onv_analysis *analysis;
    json_t *index; /* tensor name -> index */
    int failures;
} truth;

static void complain(truth *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void complain(truth *t, const char *format, ...)
{
    if (t->failures++ >= 10) return;
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s: ", t->name);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

static void shape_text(json_t *shape, char *text, size_t size)
{
    size_t length = (size_t)snprintf(text, size, "["), i;
    json_t *dim;
    json_array_foreach(shape, i, dim) length +=
        (size_t)snprintf(text + length, size - length, "%s%lld", i > 0 ? ", " : "",
                         (long long)json_integer_value(dim));
    snprintf(text + length, size - length, "]");
}

static bool lookup(const truth *t, const char *name, onv_tensor_info *info)
{
    json_t *at = json_object_get(t->index, name);
    return at != NULL && onv_analysis_tensor(t->analysis, (size_t)json_integer_value(at), info);
}

/* Of data-dependent models the truth is one run; sizes must be bounds of it. */
static void check_bound(truth *t, const char *name, json_t *shape, const onv_tensor_info *info)
{
    uint64_t elems = 1;
    size_t i;
    json_t *dim;
    json_array_foreach(shape, i, dim) elems *= (uint64_t)json_integer_value(dim);
    if (info->bytes == ONV_SIZE_UNKNOWN)
        complain(t, "'%s' has no bound: %s", name, info->shape);
    else if (info->bytes < elems)
        complain(t, "'%s': the bound %s is too low", name, info->shape);
}

static void check_shapes(truth *t)
{
    bool data = json_is_true(json_object_get(t->json, "data_dependent"));
    const char *name;
    json_t *shape;
    json_object_foreach(json_object_get(t->json, "shapes"), name, shape)
    {
        char expected[512];
        onv_tensor_info info;
        shape_text(shape, expected, sizeof expected);
        if (!lookup(t, name, &info))
            complain(t, "no tensor '%s'", name);
        else if (data && info.bound)
            check_bound(t, name, shape, &info);
        else if (strcmp(info.shape, expected) != 0)
            complain(t, "'%s' is %s, not %s", name, expected, info.shape);
    }
}

static void check_peak(truth *t)
{
    json_t *peak = json_object_get(t->json, "peak"), *set = json_object_get(peak, "tensors");
    onv_summary summary = {.struct_size = sizeof summary};
    onv_analysis_summary(t->analysis, &summary);
    uint64_t bytes = (uint64_t)json_integer_value(json_object_get(peak, "bytes"));
    uint64_t step = (uint64_t)json_integer_value(json_object_get(peak, "step"));
    if (summary.peak_bytes != bytes || summary.peak_step != step)
        complain(t, "the peak is %llu at step %llu, not %llu at step %llu",
                 (unsigned long long)bytes, (unsigned long long)step,
                 (unsigned long long)summary.peak_bytes, (unsigned long long)summary.peak_step);
    size_t found = 0, i;
    json_t *name;
    json_array_foreach(set, i, name)
    {
        onv_tensor_info info;
        if (!lookup(t, json_string_value(name), &info) || !info.live || info.first_step > step ||
            info.last_step < step)
            complain(t, "'%s' is not in the peak set", json_string_value(name));
    }
    for (size_t k = 0; k < onv_analysis_tensor_count(t->analysis); k++) {
        onv_tensor_info info;
        onv_analysis_tensor(t->analysis, k, &info);
        found += info.live && info.first_step <= step && info.last_step >= step;
    }
    if (found != json_array_size(set))
        complain(t, "the peak set has %zu tensors, not %zu", json_array_size(set), found);
}

/* Constant nodes are weights, too; the truth counts initializers alone. */
static void sum_constants(const truth *t, uint64_t *elems, uint64_t *bytes)
{
    *elems = *bytes = 0;
    for (size_t i = 0; i < onv_analysis_tensor_count(t->analysis); i++) {
        onv_tensor_info info;
        onv_analysis_tensor(t->analysis, i, &info);
        if (info.kind != ONV_TENSOR_CONSTANT || info.bytes == ONV_SIZE_UNKNOWN) continue;
        uint64_t count = 1;
        for (const char *at = info.shape; (at = strpbrk(at, "0123456789")) != NULL;) {
            char *end;
            count *= strtoull(at, &end, 10);
            at = end;
        }
        *elems += count;
        *bytes += info.bytes;
    }
}

static void check_totals(truth *t)
{
    onv_summary summary = {.struct_size = sizeof summary};
    onv_analysis_summary(t->analysis, &summary);
    json_int_t elems = json_integer_value(json_object_get(t->json, "initializer_elems"));
    json_int_t bytes = json_integer_value(json_object_get(t->json, "initializer_bytes"));
    json_int_t nodes = json_integer_value(json_object_get(t->json, "nodes"));
    uint64_t constant_elems, constant_bytes;
    sum_constants(t, &constant_elems, &constant_bytes);
    if (summary.parameters != (uint64_t)elems + constant_elems ||
        summary.parameter_bytes != (uint64_t)bytes + constant_bytes)
        complain(t, "initializers: %lld elements, %lld bytes, not %llu and %llu", (long long)elems,
                 (long long)bytes, (unsigned long long)(summary.parameters - constant_elems),
                 (unsigned long long)(summary.parameter_bytes - constant_bytes));
    if (!t->nested && (json_int_t)summary.nodes != nodes)
        complain(t, "%lld nodes, not %llu", (long long)nodes, (unsigned long long)summary.nodes);
}

static bool analyse(truth *t)
{
    onv_dim_binding dims[16];
    onv_options options = onv_options_default();
    options.dims = dims;
    const char *name;
    json_t *size;
    json_object_foreach(json_object_get(t->json, "binds"), name, size) if (options.n_dims < 16)
        dims[options.n_dims++] = (onv_dim_binding){name, json_integer_value(size)};
    onv_error error;
    if (onv_analysis_new(t->model, &options, &t->analysis, &error) != ONV_OK) {
        complain(t, "node '%s' (%s): %s", error.node, error.op_type, error.message);
        return false;
    }
    t->index = json_object();
    for (size_t i = 0; i < onv_analysis_tensor_count(t->analysis); i++) {
        onv_tensor_info info;
        onv_analysis_tensor(t->analysis, i, &info);
        json_object_set_new(t->index, info.name, json_integer((json_int_t)i));
    }
    return true;
}

/* Graphs with subgraphs or functions: more steps run than the main graph has nodes. */
static bool is_nested(const truth *t)
{
    onv_summary summary = {.struct_size = sizeof summary};
    onv_analysis_summary(t->analysis, &summary);
    return (json_int_t)summary.nodes > json_integer_value(json_object_get(t->json, "nodes"));
}

static int check_file(const char *truths, const char *models, const char *name)
{
    truth t = {.name = name};
    char path[1024];
    json_error_t problem;
    snprintf(path, sizeof path, "%s/%s", truths, name);
    t.json = json_load_file(path, 0, &problem);
    assert_non_null(t.json);
    snprintf(t.model, sizeof t.model, "%s/%s", models,
             json_string_value(json_object_get(t.json, "model")));
    if (analyse(&t)) {
        t.nested = is_nested(&t);
        check_shapes(&t);
        check_totals(&t);
        if (!t.nested && !json_is_true(json_object_get(t.json, "data_dependent"))) check_peak(&t);
        json_decref(t.index);
        onv_analysis_destroy(t.analysis);
    }
    json_decref(t.json);
    return t.failures;
}

void truth_check_folder(const char *truths, const char *models)
{
    struct dirent **entries;
    int n = scandir(truths, &entries, NULL, alphasort), failures = 0, files = 0;
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        if (strstr(entries[i]->d_name, ".truth.json") != NULL) {
            failures += check_file(truths, models, entries[i]->d_name) > 0;
            files++;
        }
        free(entries[i]);
    }
    free(entries);
    assert_true(files > 0);
    if (failures > 0) fail_msg("%d of %d truth files disagree", failures, files);
}
