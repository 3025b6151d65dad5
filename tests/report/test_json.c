/* The JSON report, read back by jansson. */
#include <jansson.h>

#include "report/json.h"
#include "support/capture.h"
#include "support/onnx_writer.h"
#include "support/test.h"

static json_t *parse(const char *text)
{
    json_error_t error;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL) fail_msg("line %d: %s", error.line, error.text);
    return root;
}

/* The object of the only model. The root is the caller's to release. */
static json_t *report_of(model *m, const onv_options *options, json_t **root)
{
    onv_analysis *a = model_analyse(m, options);
    char *text = report_text(a, ONV_FORMAT_JSON, NULL);
    for (const char *c = text; *c != '\0'; c++) assert_true(*c == '\n' || (*c >= ' ' && *c < 127));
    *root = parse(text);
    free(text);
    onv_analysis_destroy(a);
    model_free(m);
    json_t *models = json_object_get(*root, "models");
    assert_int_equal(json_array_size(models), 1);
    return json_array_get(models, 0);
}

static json_t *named(json_t *list, const char *name)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        if (strcmp(json_string_value(json_object_get(item, "name")), name) == 0) return item;
    }
    fail_msg("no '%s'", name);
    return NULL;
}

static void expect_text(json_t *object, const char *key, const char *text)
{
    assert_true(json_is_string(json_object_get(object, key)));
    assert_string_equal(json_string_value(json_object_get(object, key)), text);
}

static model *small(const char *type)
{
    model *m = model_new(17);
    model_input(m, "x", type);
    model_add(m, "weight w f32[8,3,3,3]", "a = Conv(x w) /stem/Conv", "y = Relu(a) /stem/Relu",
              "out y f32");
    return m;
}

/* The fields that the contract names for each, all of them sizes but one. */
static void expect_runtimes(json_t *runtimes)
{
    static const struct {
        const char *name;
        const char *fields[4];
    } expected[] = {
        {"ideal", {"activation_peak_bytes", "total_bytes"}},
        {"arena", {"activation_peak_bytes", "lower_bound_bytes", "total_bytes"}},
        {"torch", {"allocated_peak_bytes", "reserved_peak_bytes", "total_bytes"}},
        {"ort", {"first_run_bytes", "steady_bytes", "total_bytes"}},
        {"async", {"used_peak_bytes", "reserved_peak_bytes", "total_bytes"}},
    };
    assert_int_equal(json_object_size(runtimes), 5);
    for (size_t i = 0; i < 5; i++) {
        json_t *runtime = json_object_get(runtimes, expected[i].name);
        for (size_t f = 0; f < 4 && expected[i].fields[f] != NULL; f++)
            assert_true(json_number(runtime, expected[i].fields[f]) > 0);
    }
    assert_true(json_is_boolean(json_object_get(json_object_get(runtimes, "arena"), "optimal")));
}

TEST(every_part_of_the_contract)
{
    onv_options options = onv_options_default();
    options.batch = 2;
    json_t *root, *m = report_of(small("f32[batch,3,10,10]"), &options, &root);
    assert_int_equal(json_number(root, "schema_version"), 1);
    assert_non_null(strstr(json_string_value(json_object_get(root, "generator")), "onnxvram "));
    assert_int_equal(json_number(json_object_get(m, "opset_import"), ""), 17);
    assert_int_equal(json_number(json_object_get(m, "bindings"), "batch"), 2);
    assert_int_equal(json_number(json_object_get(m, "parameters"), "count"), 216);
    assert_int_equal(json_number(json_object_get(m, "parameters"), "bytes"), 864);
    assert_int_equal(json_number(m, "macs"), 2 * 8 * 8 * 8 * 27);
    json_t *a = named(json_object_get(m, "tensors"), "a");
    expect_text(a, "kind", "activation");
    expect_text(a, "dtype", "float32");
    OWNED_TEXT shape = json_dumps(json_object_get(a, "shape"), JSON_COMPACT);
    assert_string_equal(shape, "[2,8,8,8]");
    assert_int_equal(json_number(a, "bytes"), 4096);
    assert_int_equal(json_number(a, "first_step"), 0);
    assert_int_equal(json_number(a, "last_step"), 1);
    assert_true(json_is_null(json_object_get(a, "alias_of")));
    assert_null(json_object_get(a, "bound"));
    json_t *w = named(json_object_get(m, "tensors"), "w");
    expect_text(w, "kind", "initializer");
    assert_int_equal(json_number(w, "bytes"), 864);
    assert_true(json_is_null(json_object_get(w, "first_step")));
    expect_text(named(json_object_get(m, "tensors"), "x"), "kind", "input");
    expect_text(named(json_object_get(m, "tensors"), "y"), "kind", "output");
    json_t *conv = named(json_object_get(m, "nodes"), "/stem/Conv");
    assert_int_equal(json_number(conv, "step"), 0);
    assert_int_equal(json_number(conv, "macs"), json_number(m, "macs"));
    assert_int_equal(json_number(conv, "live_bytes"), 2400 + 4096);
    expect_text(conv, "op_type", "Conv");
    expect_text(conv, "domain", "");
    assert_int_equal(json_array_size(json_object_get(conv, "inputs")), 2);
    json_t *peak = json_object_get(m, "peak");
    assert_int_equal(json_number(peak, "bytes"), 8192);
    assert_int_equal(json_number(peak, "step"), 1);
    expect_text(peak, "node", "/stem/Relu");
    assert_int_equal(json_array_size(json_object_get(peak, "tensors")), 2);
    json_t *ideal = json_object_get(json_object_get(m, "runtimes"), "ideal");
    assert_int_equal(json_number(ideal, "activation_peak_bytes"), 8192);
    assert_int_equal(json_number(ideal, "total_bytes"), 8192 + 864);
    expect_runtimes(json_object_get(m, "runtimes"));
    assert_int_equal(json_array_size(json_object_get(m, "diagnostics")), 0);
    static const char *const absent[] = {"fit", "training", "replay"};
    for (int i = 0; i < 3; i++) assert_null(json_object_get(m, absent[i]));
    json_decref(root);
}

TEST(free_dims_are_expressions)
{
    json_t *root, *m = report_of(small("f32[batch,3,n,n]"), NULL, &root);
    json_t *a = named(json_object_get(m, "tensors"), "a");
    assert_string_equal(json_string_value(json_array_get(json_object_get(a, "shape"), 0)), "batch");
    assert_string_equal(json_string_value(json_array_get(json_object_get(a, "shape"), 2)), "n - 2");
    assert_true(json_is_null(json_object_get(a, "bytes")));
    json_t *peak = json_object_get(m, "peak");
    assert_true(json_is_null(json_object_get(peak, "bytes")));
    assert_true(json_is_null(json_object_get(m, "macs")));
    json_t *node = named(json_object_get(m, "nodes"), "/stem/Conv");
    assert_true(json_is_string(json_object_get(node, "macs")));
    assert_true(json_is_null(json_object_get(node, "live_bytes")));
    /* No runtime has a figure without sizes. */
    json_t *ideal = json_object_get(json_object_get(m, "runtimes"), "ideal");
    assert_false(json_is_integer(json_object_get(ideal, "total_bytes")));
    json_decref(root);
}

TEST(bounds_are_marked)
{
    model *m = model_read(17, "in x f32[10,20]", "where = NonZero(x) find", "out where i64");
    json_t *root, *object = report_of(m, NULL, &root);
    json_t *where = named(json_object_get(object, "tensors"), "where");
    assert_true(json_is_true(json_object_get(where, "bound")));
    assert_int_equal(json_number(where, "bytes"), 2 * 200 * 8);
    OWNED_TEXT shape = json_dumps(json_object_get(where, "shape"), JSON_COMPACT);
    assert_string_equal(shape, "[2,200]");
    json_decref(root);
}

TEST(a_whole_shape_is_a_binding)
{
    const int64_t dims[] = {5, 3, 10, 10};
    const onv_shape_binding shape = {"x", dims, 4};
    onv_options options = onv_options_default();
    options.shapes = &shape;
    options.n_shapes = 1;
    json_t *root, *m = report_of(small("f32[?,3,10,10]"), &options, &root);
    OWNED_TEXT text =
        json_dumps(json_object_get(json_object_get(m, "bindings"), "x"), JSON_COMPACT);
    assert_string_equal(text, "[5,3,10,10]");
    json_decref(root);
}

/* What was asked is in one object, what is in force otherwise in another, and no name is in both. */
TEST(options_are_echoed)
{
    const onv_dim_binding dims[] = {{"n", 3}, {"n", 3}};
    onv_limits limits = onv_limits_default();
    limits.seconds = 9;
    onv_options options = onv_options_default();
    options.dims = dims;
    options.n_dims = 2;
    options.train = "sgd";
    options.accumulate = 4;
    options.budget = 1 << 30;
    options.limits = &limits;
    json_t *root, *m = report_of(small("f32[n,3,10,10]"), &options, &root), *value;
    json_t *given = json_object_get(json_object_get(m, "options"), "given");
    json_t *defaults = json_object_get(json_object_get(m, "options"), "defaults");
    char *text = json_dumps(given, JSON_COMPACT);
    assert_string_equal(text, "{\"dims\":{\"n\":3},\"budget\":[1073741824],\"train\":\"sgd\","
                              "\"accumulate\":4,\"limits\":{\"seconds\":9}}");
    free(text);
    assert_string_equal(json_string_value(json_object_get(defaults, "gpu")), "H100");
    assert_string_equal(json_string_value(json_object_get(defaults, "zero_grad")),
                        "before-forward");
    assert_true(json_is_null(json_object_get(defaults, "batch")));
    assert_int_equal(json_number(json_object_get(defaults, "limits"), "nodes"), 4 << 20);
    const char *name;
    json_object_foreach(given, name, value)
        assert_true(strcmp(name, "limits") == 0 || json_object_get(defaults, name) == NULL);
    /* Options without effect have no place. */
    assert_null(json_object_get(defaults, "workspace_bytes"));
    json_decref(root);
}

/* Keys must differ: of an input and a dim of the same name the dim is listed, the input's shape stands
 * at the tensor. */
TEST(a_dim_may_be_named_like_an_input)
{
    const int64_t dims[] = {5, 3, 10, 10};
    const onv_shape_binding shape = {"x", dims, 4};
    onv_options options = onv_options_default();
    options.shapes = &shape;
    options.n_shapes = 1;
    json_t *root, *m = report_of(small("f32[x,3,10,10]"), &options, &root);
    OWNED_TEXT text = json_dumps(json_object_get(m, "bindings"), JSON_COMPACT);
    assert_string_equal(text, "{\"x\":5}");
    json_decref(root);
}

TEST(hostile_names_survive)
{
    model *m = model_new(17);
    model_input(m, "\"\\\x1b\x7f\n\xe2\x80\xae", "f32[4]");
    model_node(m, "Relu", "\xf0\x9f\x92\xa5", "\"\\\x1b\x7f\n\xe2\x80\xae", "y", "");
    model_add(m, "out y f32", "in z f32[q\"\\\n]");
    const onv_dim_binding dim = {"q\"\\\n", 3};
    onv_options options = onv_options_default();
    options.dims = &dim;
    options.n_dims = 1;
    json_t *root, *object = report_of(m, &options, &root);
    assert_int_equal(json_number(json_object_get(object, "bindings"), dim.name), 3);
    named(json_object_get(object, "tensors"), "\"\\\x1b\x7f\n\xe2\x80\xae");
    named(json_object_get(object, "nodes"), "\xf0\x9f\x92\xa5");
    json_decref(root);
}

/* Bytes that are no UTF-8 become \xNN, and numbers keep all their digits. */
TEST(the_writer_is_always_valid)
{
    OWNED_CAPTURE caught = {0};
    onv_writer out;
    onv_json json;
    onv_writer_init(&out, capture_write, &caught);
    onv_json_init(&json, &out, NULL);
    onv_json_open(&json, '{', ONV_JSON_LINES);
    onv_json_put_u64(&json, "largest", UINT64_MAX);
    onv_json_put_string(&json, "bytes", "a\xff\xc0\xaf\xed\xa0\x80z");
    onv_json_put_string(&json, "null", NULL);
    onv_json_key(&json, "\xfe");
    onv_json_open(&json, '[', ONV_JSON_INLINE);
    onv_json_i64(&json, INT64_MIN);
    onv_json_bool(&json, false);
    onv_json_close(&json);
    onv_json_close(&json);
    assert_int_equal(onv_writer_finish(&out, NULL), ONV_OK);
    assert_string_equal(caught.text,
                        "{\n  \"largest\": 18446744073709551615,\n"
                        "  \"bytes\": \"a\\\\xff\\\\xc0\\\\xaf\\\\xed\\\\xa0\\\\x80z\",\n"
                        "  \"null\": null,\n"
                        "  \"\\\\xfe\": [-9223372036854775808, false]\n}\n");
}

TEST(models_stand_in_one_list)
{
    OWNED_MODEL m = small("f32[1,3,10,10]");
    OWNED_ANALYSIS a = model_analyse(m, NULL);
    const onv_analysis *both[] = {a, a};
    OWNED_CAPTURE caught = {0};
    assert_int_equal(onv_report(both, 2, ONV_FORMAT_JSON, NULL, capture_write, &caught, NULL),
                     ONV_OK);
    OWNED_JSON root = parse(caught.text);
    assert_int_equal(json_array_size(json_object_get(root, "models")), 2);
}

/* Another reader than jansson takes it too. Skipped where there is no Python. */
TEST(python_reads_it)
{
    if (system("command -v python3 >/dev/null 2>&1") != 0) skip();
    OWNED_MODEL m = small("f32[batch,3,10,10]");
    OWNED_ANALYSIS a = model_analyse(m, NULL);
    OWNED_TEXT text = report_text(a, ONV_FORMAT_JSON, NULL);
    FILE *python = popen("python3 -m json.tool >/dev/null", "w");
    assert_non_null(python);
    assert_int_equal(fwrite(text, 1, strlen(text), python), strlen(text));
    assert_int_equal(pclose(python), 0);
}

/* What only a branch that never runs reads: values are there, weights are not. */
TEST(values_that_nothing_reads_are_listed)
{
    model *m = model_read(17, "in x f32[4]", "in other f32[5]", "weight w f32[4]", "int one 1",
                          "always = Equal(one one)", "mid = Relu(x)", "begin then_branch",
                          "t = Neg(x)", "out t f32", "end", "begin else_branch", "sum = Add(mid w)",
                          "e = Concat(sum other) axis=0", "out e f32", "end",
                          "y = If(always) choose", "out y f32");
    json_t *root, *tensors = json_object_get(report_of(m, NULL, &root), "tensors");
    assert_int_equal(json_number(named(tensors, "mid"), "bytes"), 16);
    assert_int_equal(json_number(named(tensors, "other"), "bytes"), 20);
    size_t i;
    json_t *tensor;
    json_array_foreach(tensors, i, tensor)
    {
        assert_string_not_equal(json_string_value(json_object_get(tensor, "name")), "w");
    }
    json_decref(root);
}

/* What plans are made of: two convolutions, and what the activation between them makes in place, which it and the second one
 * keep. The result is the caller's. */
TEST(units_of_plans_are_listed)
{
    static const struct {
        const char *operation;
        int64_t macs, forward, own;
    } units[] = {
        {"conv", 7776, 1152, 0}, {"relu", 0, 0, 0}, {"conv", 4608, 0, 0}, {"mse_loss", 0, 256, 0}};
    model *m = model_read(17, "in x f32[1,3,8,8]", "weight w f32[8,3,3,3]", "weight v f32[4,8,3,3]",
                          "a = Conv(x w) /stem/Conv", "b = Relu(a) /stem/Relu",
                          "y = Conv(b v) /head/Conv", "out y f32");
    onv_options options = onv_options_default();
    options.train = "sgd";
    options.loss = "mse";
    options.checkpoint = "none";
    options.timelines = true;
    json_t *root, *training = json_object_get(report_of(m, &options, &root), "training");
    json_t *chain = json_object_get(training, "chain");
    json_t *listed = json_object_get(chain, "units"), *tensors = json_object_get(chain, "tensors");
    assert_int_equal(json_array_size(listed), 4);
    for (size_t u = 0; u < 4; u++) {
        json_t *unit = json_array_get(listed, u);
        expect_text(unit, "operation", units[u].operation);
        assert_int_equal(json_number(unit, "macs"), units[u].macs);
        assert_int_equal(json_number(unit, "forward_bytes"), units[u].forward);
        assert_int_equal(json_number(unit, "own_bytes"), units[u].own);
        assert_true(json_number(unit, "backward_bytes") > json_number(unit, "beside_bytes"));
    }
    expect_text(json_array_get(listed, 2), "node", "/head/Conv");
    assert_null(json_object_get(json_array_get(listed, 3), "node"));
    assert_int_equal(json_array_size(tensors), 1);
    json_t *tensor = json_array_get(tensors, 0), *saved = json_object_get(tensor, "saved_by");
    assert_int_equal(json_number(tensor, "bytes"), 1152);
    assert_int_equal(json_number(tensor, "made_by"), 0);
    assert_int_equal(json_array_size(json_object_get(tensor, "read_by")), 2);
    assert_int_equal(json_array_size(saved), 2);
    assert_int_equal(json_integer_value(json_array_get(saved, 1)), 2);
    json_decref(root);
}
