#include "support/truth.h"

#include <dirent.h>
#include <jansson.h>

#include "onnxvram/onnxvram.h"
#include "support/test.h"

typedef struct truth {
    json_t *json;
    const char *name; /* of the truth file */
    char model[1024];
    bool bounded; /* some size may be an upper bound, and the program says that one is */
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

static uint64_t size_of(json_t *shape, const char *dtype)
{
    const char *bits = strpbrk(dtype, "0123456789");
    uint64_t elems = 1;
    size_t i;
    json_t *dim;
    json_array_foreach(shape, i, dim) elems *= (uint64_t)json_integer_value(dim);
    return bits != NULL ? (elems * strtoull(bits, NULL, 10) + 7) / 8 : elems;
}

/* Where data decides a size, or branches and iterations differ in it, the truth is one run. */
static void check_bound(truth *t, const char *name, json_t *shape, const onv_tensor_info *info)
{
    if (info->bytes == ONV_SIZE_UNKNOWN)
        complain(t, "'%s' has no bound: %s", name, info->shape);
    else if (info->bytes < size_of(shape, info->dtype))
        complain(t, "'%s': the bound %s is too low", name, info->shape);
}

/* Data decides it, or branches and iterations differ in it. */
static bool may_be_bound(const truth *t, const char *name)
{
    size_t i;
    json_t *listed;
    if (json_is_true(json_object_get(t->json, "data_dependent"))) return true;
    json_array_foreach(json_object_get(t->json, "bounds"), i,
                       listed) if (strcmp(json_string_value(listed), name) == 0) return true;
    return false;
}

static void check_shapes(truth *t)
{
    const char *name;
    json_t *shape;
    json_object_foreach(json_object_get(t->json, "shapes"), name, shape) {
        char expected[512];
        onv_tensor_info info;
        shape_text(shape, expected, sizeof expected);
        if (!lookup(t, name, &info))
            complain(t, "no tensor '%s'", name);
        else if (info.bound && may_be_bound(t, name))
            check_bound(t, name, shape, &info);
        else if (strcmp(info.shape, expected) != 0)
            complain(t, "'%s' is %s, not %s", name, expected, info.shape);
    }
}

static void check_peak(truth *t)
{
    json_t *peak = json_object_get(t->json, "peak"), *set = json_object_get(peak, "tensors");
    onv_summary summary = {0};
    onv_analysis_summary(t->analysis, &summary);
    uint64_t bytes = (uint64_t)json_integer_value(json_object_get(peak, "bytes"));
    uint64_t step = (uint64_t)json_integer_value(json_object_get(peak, "step"));
    if (t->bounded) { /* of one run the recorded peak is by the same definition */
        if (summary.peak_bytes < bytes)
            complain(t, "the bound of the peak is %llu, less than %llu",
                     (unsigned long long)summary.peak_bytes, (unsigned long long)bytes);
        return;
    }
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

static void check_total(truth *t, const char *key, uint64_t found)
{
    json_t *recorded = json_object_get(t->json, key);
    if (recorded != NULL && (uint64_t)json_integer_value(recorded) != found)
        complain(t, "%s is %lld, not %llu", key, (long long)json_integer_value(recorded),
                 (unsigned long long)found);
}

static void check_totals(truth *t)
{
    onv_summary summary = {0};
    onv_analysis_summary(t->analysis, &summary);
    check_total(t, "weight_elems", summary.parameters);
    check_total(t, "weight_bytes", summary.parameter_bytes);
    check_total(t, "nodes", summary.nodes);
}

static bool analyse(truth *t)
{
    onv_dim_binding dims[16];
    onv_options options = onv_options_default();
    options.dims = dims;
    const char *name;
    json_t *size;
    json_object_foreach(json_object_get(t->json, "binds"), name, size)
        if (options.n_dims < 16)
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
        onv_summary summary = {0};
        onv_analysis_summary(t.analysis, &summary);
        t.bounded = summary.bounded && (json_is_true(json_object_get(t.json, "data_dependent")) ||
                                        json_array_size(json_object_get(t.json, "bounds")) > 0);
        check_shapes(&t);
        check_totals(&t);
        check_peak(&t);
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
