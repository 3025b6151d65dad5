/* Everything that a report shows can be asked: what calls answer is put together as the JSON report has it, and
 * both are compared, number by number, for all samples and for options that add parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/asked.h"
#include "support/folder.h"

/* --- Comparison -------------------------------------------------------------------------------- */

/* Where the two differ, in `path`; false: nowhere. Fractions have six digits in the report. */
static bool find_difference(const json_t *asked, const json_t *report, char *path, size_t size)
{
    size_t used = strlen(path), n = 0;
    const char *key;
    json_t *value;
    if (json_is_real(asked) && json_is_number(report))
        return fabs(json_real_value(asked) - json_number_value(report)) > 1e-6;
    if (json_is_object(asked) && json_is_object(report)) {
        json_object_foreach((json_t *)(uintptr_t)report, key, value)
        {
            snprintf(path + used, size - used, "/%s", key);
            if (find_difference(json_object_get(asked, key), value, path, size)) return true;
            n++;
        }
        path[used] = '\0';
        if (n == json_object_size(asked)) return false;
        json_object_foreach((json_t *)(uintptr_t)asked, key, value)
        {
            snprintf(path + used, size - used, "/%s", key);
            if (json_object_get(report, key) == NULL) return true;
        }
        return true;
    }
    if (json_is_array(asked) && json_is_array(report)) {
        for (; n < json_array_size(asked) || n < json_array_size(report); n++) {
            snprintf(path + used, size - used, "/%zu", n);
            if (find_difference(json_array_get(asked, n), json_array_get(report, n), path, size))
                return true;
        }
        path[used] = '\0';
        return false;
    }
    return !json_equal(asked, report);
}

/* What calls do not have: expressions in postfix, which are the same as their text; columns, which are compared
 * one by one. */
static void drop_forms(json_t *model)
{
    json_t *pieces = json_object_get(json_object_get(model, "formula"), "peak_bytes_largest_of");
    for (size_t i = 0; i < json_array_size(pieces); i++)
        json_object_del(json_array_get(pieces, i), "postfix");
    json_object_del(model, "timelines");
    json_object_del(json_object_get(model, "example"), "timelines");
}

/* Keys of reports that were compared. */
static json_t *compared;

static void note_keys(const json_t *value)
{
    const char *key;
    json_t *member;
    for (size_t i = 0; i < json_array_size(value); i++) note_keys(json_array_get(value, i));
    if (!json_is_object(value)) return;
    json_object_foreach((json_t *)(uintptr_t)value, key, member)
    {
        json_object_set_new(compared, key, json_true());
        note_keys(member);
    }
}

static bool write_to(void *file, const char *text, size_t bytes)
{
    return fwrite(text, 1, bytes, file) == bytes;
}

static char *json_report(const onv_analysis *a)
{
    char *text = NULL;
    size_t bytes = 0;
    onv_error error = {0};
    FILE *file = open_memstream(&text, &bytes);
    assert_non_null(file);
    assert_int_equal(onv_report(&a, 1, ONV_FORMAT_JSON, NULL, write_to, file, &error), ONV_OK);
    assert_int_equal(fclose(file), 0);
    return text;
}

static void compare(const char *file, const onv_options *options)
{
    char model_path[600], path[600] = "";
    onv_analysis *a;
    onv_error error = {0};
    snprintf(model_path, sizeof model_path, "%s/samples/%s.onnx", ONV_SOURCE_DIR, file);
    if (onv_analysis_new(model_path, options, &a, &error) != ONV_OK)
        fail_msg("%s: %s", file, error.message);
    char *report = json_report(a);
    json_error_t where;
    json_t *root = json_loads(report, JSON_REJECT_DUPLICATES, &where);
    if (root == NULL) fail_msg("%s: line %d: %s", file, where.line, where.text);
    json_t *model = json_array_get(json_object_get(root, "models"), 0), *asked = asked_model(a);
    if (onv_analysis_example(a) == NULL) asked_timelines(a, model);
    drop_forms(model);
    if (find_difference(asked, model, path, sizeof path)) {
        char *whole = json_dumps(asked, JSON_COMPACT);
        fail_msg("%s: at %s: calls and report differ", file, path);
        free(whole);
    }
    note_keys(model);
    json_decref(asked);
    json_decref(root);
    free(report);
    onv_analysis_destroy(a);
}

/* --- Samples ----------------------------------------------------------------------------------- */

enum { MOST_DIMS = 8, NAME_BYTES = 64 };

typedef struct sizes {
    onv_dim_binding dims[MOST_DIMS];
    char names[MOST_DIMS][NAME_BYTES];
    size_t n;
} sizes;

/* "batch1_sequence16". */
static void read_sizes(sizes *s, const char *text)
{
    s->n = 0;
    while (*text != '\0' && *text != '.' && s->n < MOST_DIMS) {
        size_t length = strcspn(text, "0123456789._");
        char *end;
        assert_true(length < NAME_BYTES);
        memcpy(s->names[s->n], text, length);
        s->names[s->n][length] = '\0';
        s->dims[s->n].name = s->names[s->n];
        s->dims[s->n].size = strtoll(text + length, &end, 10);
        if (end == text + length) return; /* "fixed" */
        s->n++;
        text = end + (*end == '_');
    }
}

/* Sizes that were measured of a sample; false: none were. */
static bool find_sizes(const char *sample, sizes *s)
{
    size_t length = strlen(sample);
    char folder[600];
    snprintf(folder, sizeof folder, "%s/tests/truth", ONV_SOURCE_DIR);
    DIR *files = opendir(folder);
    bool found = false;
    assert_non_null(files);
    for (struct dirent *file; !found && (file = readdir(files)) != NULL;) {
        found = strncmp(file->d_name, sample, length) == 0 && file->d_name[length] == '.' &&
                strstr(file->d_name, ".truth.json") != NULL;
        if (found) read_sizes(s, file->d_name + length + 1);
    }
    closedir(files);
    return found;
}

typedef void (*sample_use)(const char *sample, onv_options *options);

static int each_sample(sample_use use)
{
    int n = 0;
    char folder[600], sample[300];
    snprintf(folder, sizeof folder, "%s/samples", ONV_SOURCE_DIR);
    DIR *files = opendir(folder);
    assert_non_null(files);
    for (struct dirent *file; (file = readdir(files)) != NULL;) {
        char *end = strstr(file->d_name, ".onnx");
        if (end == NULL) continue;
        snprintf(sample, sizeof sample, "%.*s", (int)(end - file->d_name), file->d_name);
        onv_options options = onv_options_default();
        use(sample, &options);
        n++;
    }
    closedir(files);
    return n;
}

static void sized(const char *sample, onv_options *options)
{
    sizes s;
    if (find_sizes(sample, &s)) {
        options->dims = s.dims;
        options->n_dims = s.n;
    } else {
        options->batch = 2;
    }
    options->savings = true;
    compare(sample, options);
}

static void unsized(const char *sample, onv_options *options)
{
    options->example = true;
    options->savings = true;
    compare(sample, options);
}

static void with_sizes(void **state)
{
    (void)state;
    assert_true(each_sample(sized) > 30);
}

static void with_free_dims(void **state)
{
    (void)state;
    assert_true(each_sample(unsized) > 30);
}

/* --- Options that add parts -------------------------------------------------------------------- */

static const onv_dim_binding context[] = {
    {"batch", 1}, {"sequence", 1}, {"total", 32}, {"past", 31}};

static onv_options llama(void)
{
    onv_options options = onv_options_default();
    options.dims = context;
    options.n_dims = 4;
    return options;
}

static onv_options at_batch(int64_t batch)
{
    onv_options options = onv_options_default();
    options.batch = batch;
    return options;
}

static void orders_and_what_ifs(void **state)
{
    (void)state;
    static const char *const orders[] = {"ort", "greedy", "optimal"};
    const onv_budget t4 = {"T4", UINT64_C(15) << 30, 75};
    for (size_t i = 0; i < 3; i++) {
        onv_options options = at_batch(2);
        options.order = orders[i];
        options.align = 256;
        compare("resnet18", &options);
    }
    onv_options options = llama();
    options.weights = "int4";
    compare("llama", &options);
    options = llama();
    options.kv_cache = "copies";
    compare("llama", &options);
    options.kv_cache = "shared";
    options.budgets = &t4;
    options.n_budgets = 1;
    compare("llama", &options);
    options = onv_options_default();
    options.kv_cache = "shared";
    compare("llama", &options);
    const int64_t shape[] = {3, 3, 64, 64};
    const onv_shape_binding input = {"input", shape, 4};
    options = onv_options_default();
    options.shapes = &input;
    options.n_shapes = 1;
    compare("resnet18", &options);
}

static void budgets_and_growth(void **state)
{
    (void)state;
    const onv_budget budgets[] = {
        {"T4", UINT64_C(15) << 30, 75}, {NULL, 1000000, 0}, {"L4", UINT64_C(22) << 30, 89}};
    onv_options options = at_batch(2);
    options.budgets = budgets;
    options.n_budgets = 3;
    options.margin_percent = 10;
    options.max_batch = true;
    compare("resnet18", &options);
    options.n_budgets = 1;
    options.max_dim = "sequence";
    compare("lstm", &options);
    options = at_batch(3);
    const onv_figure figures[] = {{"weights", 46827552}, {"peak", 9633792}, {"torch", 1 << 20}};
    const onv_dim_binding before = {"batch", 2};
    const onv_baseline baseline = {"before.json", figures, 3, &before, 1};
    options.baseline = &baseline;
    compare("resnet18", &options);
    options.has_max_growth = true;
    options.max_growth_basis_points = 125;
    compare("resnet18", &options);
}

static void sessions(void **state)
{
    (void)state;
    const char *settings[] = {"gpu_mem_limit=67108864"};
    onv_options options = at_batch(2);
    options.ort_advise = true;
    options.ort = settings;
    options.n_ort = 1;
    compare("resnet18", &options);
    FILE *file = fopen("requests.csv", "w");
    assert_non_null(file);
    assert_true(fputs("batch\n1\n4\n2\n", file) >= 0 && fclose(file) == 0);
    options = onv_options_default();
    options.shape_trace = "requests.csv";
    compare("resnet18", &options);
}

static void training(void **state)
{
    (void)state;
    const char *frozen[] = {"encoder*"};
    onv_options options = at_batch(2);
    options.train = "adam";
    options.checkpoint = "all";
    options.runtimes = "torch,ideal";
    options.timelines = true;
    compare("resnet18-train", &options);
    options.checkpoint = "optimal";
    options.budget = UINT64_C(8) << 30;
    options.max_batch = true;
    options.timelines = false;
    compare("resnet18-train", &options);
    options.max_batch = false;
    options.checkpoint = "optimal";
    compare("mobilenet_v2-train", &options);
    options.checkpoint = "offload,joint";
    compare("resnet18-train", &options);
    options = at_batch(2);
    options.train = "adam";
    options.compile = options.cudnn_benchmark = options.ema = true;
    options.compile_budget = 0.5;
    options.offload = "optimizer";
    compare("resnet18-train", &options);
    options = at_batch(2);
    options.train = "adam";
    options.precision = ONV_PRECISION_BF16;
    options.master_weights = true;
    compare("resnet18-train", &options);
    options = at_batch(2);
    options.train = "adam";
    options.world = 4;
    options.fsdp = "";
    compare("resnet18-train", &options);
    options.fsdp = NULL;
    options.ddp = "copy";
    options.accumulate = 2;
    compare("resnet18-train", &options);
    options = at_batch(2);
    options.train = "adamw";
    options.weights = "nf4";
    options.freeze = frozen;
    options.n_freeze = 1;
    compare("vit-small-train", &options);
    options = at_batch(32); /* the allocator gives back what it has cached, and fits */
    options.train = "adam";
    options.budget = UINT64_C(1700) << 20;
    compare("resnet18-train", &options);
}

static void drawn_and_replayed(void **state)
{
    (void)state;
    onv_options options = at_batch(2);
    options.timelines = true;
    compare("resnet18", &options);
    compare("control-flow", &options);
    options = at_batch(1);
    options.replay = "host";
    options.runtimes = "torch,async,ideal";
    compare("mobilenet_v3_small", &options);
    options = at_batch(1);
    options.replay = "host";
    options.runtimes = "async";
    options.budget = 60000000;
    options.max_batch = true;
    compare("mobilenet_v3_small", &options);
}

/* Rows that no sample has would pass unseen. */
static void every_part_was_there(void **state)
{
    (void)state;
    static const char *const keys[] = {"alias_of",
                                       "bound",
                                       "regions",
                                       "trips",
                                       "largest_buffer",
                                       "quantization",
                                       "kv_cache",
                                       "longest_context",
                                       "savings",
                                       "order",
                                       "proven",
                                       "fits",
                                       "max_size",
                                       "max_batch",
                                       "growth",
                                       "max_growth",
                                       "ort_advice",
                                       "shape_trace",
                                       "plans",
                                       "kept",
                                       "offloaded_bytes",
                                       "compile",
                                       "saved",
                                       "replay",
                                       "modes",
                                       "pool",
                                       "free_dims",
                                       "formula",
                                       "decided_by",
                                       "example",
                                       "diagnostics",
                                       "not_modelled",
                                       "alignment_bytes",
                                       "bucket_bytes",
                                       "gathered_bytes",
                                       "master_bytes",
                                       "ema_bytes",
                                       "host_bytes",
                                       "quantized_bytes",
                                       "units",
                                       "released_bytes",
                                       "at_least_bytes",
                                       "locals_peak_bytes",

                                       "first_iteration_peak_bytes"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (json_object_get(compared, keys[i]) == NULL) fail_msg("no report had '%s'", keys[i]);
    json_decref(compared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_sizes),
        cmocka_unit_test(with_free_dims),
        cmocka_unit_test(orders_and_what_ifs),
        cmocka_unit_test(budgets_and_growth),
        cmocka_unit_test(sessions),
        cmocka_unit_test(training),
        cmocka_unit_test(drawn_and_replayed),
        cmocka_unit_test(every_part_was_there),
    };
    compared = json_object();
    return cmocka_run_group_tests_name("asked", tests, folder_enter, folder_leave);
}
