/* Documents become programs: every kind of argument, modules, recordings; what is refused, and with what words. */
#include <math.h>

#include "base/heap.h"
#include "program/load.h"
#include "program/packed.h"
#include "support/capture.h"
#include "support/program_check.h"
#include "support/test.h"

/* Members of tensor_values for results of [s, 4]. */
#define META                                                                                       \
    "{\"dtype\": 7, \"sizes\": [{\"as_expr\": {\"expr_str\": \"Symbol('s')\"}}, {\"as_int\": 4}]}"

#define SIZED "{\"dtype\": 7, \"sizes\": [{\"as_int\": 4}]}"

static onv_status load(packed p, onv_program_mode mode, onv_model *model, onv_error *err)
{
    const onv_program_file file = {"net.pt2", p.at, p.bytes};
    return onv_program_load(&file, NULL, mode, model, err);
}

static onv_model loaded(packed p)
{
    onv_model model;
    onv_error err = {0};
    if (load(p, ONV_PROGRAM_INFERENCE, &model, &err) != ONV_OK ||
        program_check(model.program, &err) != ONV_OK)
        fail_msg("%s: %s", err.node, err.message);
    packed_free(&p);
    return model;
}

static void refuses(packed p, onv_status expected, const char *part)
{
    onv_error err = {0};
    onv_status status = packed_read(p, &err);
    if (status != expected || strstr(err.message, part) == NULL)
        fail_msg("expected '%s', found status %d: %s", part, status, err.message);
    packed_free(&p);
}

TEST(a_network_has_all_its_parts)
{
    onv_model model = loaded(packed_file("tests/program/net.json.gz"));
    const onv_program *p = model.program;
    assert_true(p->is_training);
    assert_false(onv_program_is_recorded(p));
    assert_int_equal(p->graphs.count, 1);
    assert_int_equal(p->symbols.count, 1);
    assert_int_equal(p->symbols.at[0].low, 2);
    assert_int_equal(p->symbols.at[0].high, 64);
    assert_int_equal(p->symbols.at[0].input, 0);
    assert_int_equal(p->symbols.at[0].axis, 0);
    uint32_t parameters = 0, buffers = 0;
    for (size_t i = 0; i < p->values.count; i++) {
        parameters += p->values.at[i].kind == ONV_PROGRAM_PARAMETER;
        buffers += p->values.at[i].kind == ONV_PROGRAM_BUFFER;
        if (p->values.at[i].fqn != NULL && strcmp(p->values.at[i].fqn, "scale") == 0)
            assert_false(p->values.at[i].is_persistent);
    }
    assert_int_equal(parameters, 9); /* those of the layer that nothing reads among them */
    assert_int_equal(buffers, 4);
    const onv_program_call *conv = &p->calls.at[0];
    assert_string_equal(conv->op_name, "aten.conv2d.default");
    assert_string_equal(p->modules.at[conv->module].path, "conv");
    assert_string_equal(p->modules.at[conv->module].class_name, "torch.nn.modules.conv.Conv2d");
    assert_int_equal(p->modules.at[conv->module].parent, 0);
    assert_non_null(strstr(conv->trace, "in forward"));
    const onv_argument *padding = onv_call_argument(conv, "padding");
    assert_int_equal(padding->kind, ONV_ARGUMENT_INTS);
    assert_int_equal(padding->count, 2);
    assert_int_equal(padding->numbers[1].raw, 1);
    assert_null(onv_call_argument(conv, "dilation"));
    onv_model_cleanup(&model);
}

/* A module that is called twice is two modules, so that each call of it has its own operations. */
TEST(calls_of_modules_are_told_apart)
{
    onv_model model = loaded(packed_file("tests/program/flow.json.gz"));
    const onv_program *p = model.program;
    uint32_t first = p->calls.at[0].module, second = p->calls.at[2].module;
    assert_string_equal(p->modules.at[first].path, "block.lin");
    assert_string_equal(p->modules.at[second].path, "block.lin");
    assert_int_not_equal(first, second);
    assert_string_equal(p->modules.at[first].key, "L__self__block.lin");
    assert_string_equal(p->modules.at[second].key, "L__self__block.lin@1");
    assert_int_equal(p->graphs.count, 4);
    for (uint32_t g = 1; g < 4; g++)
        assert_int_equal(p->graphs.at[g].first_call,
                         p->graphs.at[g - 1].first_call + p->graphs.at[g - 1].n_calls);
    assert_string_equal(p->calls.at[p->graphs.at[2].call].op_name, "higher_order.cond");
    onv_model_cleanup(&model);
}

TEST(every_kind_of_argument_is_read)
{
    onv_model model = loaded(document(
        ", {\"target\": \"torch.ops.m.f.default\", \"inputs\": ["
        "{\"name\": \"a\", \"arg\": {\"as_tensors\": [{\"name\": \"x\"}, {\"name\": \"relu\"}]}},"
        "{\"name\": \"b\", \"arg\": {\"as_optional_tensors\": [{\"as_none\": true}, "
        "{\"as_tensor\": "
        "{\"name\": \"x\"}}]}},"
        "{\"name\": \"c\", \"arg\": {\"as_optional_tensor\": {\"as_none\": true}}},"
        "{\"name\": \"d\", \"arg\": {\"as_nested_tensors\": [[{\"name\": \"x\"}], []]}},"
        "{\"name\": \"e\", \"arg\": {\"as_sym_ints\": [{\"as_int\": 3}, {\"as_name\": \"half\"}]}},"
        "{\"name\": \"f\", \"arg\": {\"as_sym_int\": {\"as_name\": \"half\"}}},"
        "{\"name\": \"g\", \"arg\": {\"as_floats\": [1.5, 2]}},"
        "{\"name\": \"h\", \"arg\": {\"as_float\": -Infinity}},"
        "{\"name\": \"i\", \"arg\": {\"as_float\": \"-Infinity\"}},"
        "{\"name\": \"j\", \"arg\": {\"as_float\": NaN}},"
        "{\"name\": \"k\", \"arg\": {\"as_sym_float\": {\"as_name\": \"z\"}}},"
        "{\"name\": \"l\", \"arg\": {\"as_bools\": [true, false]}},"
        "{\"name\": \"m\", \"arg\": {\"as_strings\": [\"u\\u0041\", \"v\"]}},"
        "{\"name\": \"n\", \"arg\": {\"as_scalar_type\": 13}},"
        "{\"name\": \"o\", \"arg\": {\"as_memory_format\": 2}},"
        "{\"name\": \"p\", \"arg\": {\"as_device\": {\"type\": \"cuda\", \"index\": 0}}},"
        "{\"name\": \"q\", \"arg\": {\"as_complex\": {\"real\": 1.0, \"imag\": 0.0}}},"
        "{\"name\": \"r\", \"arg\": {\"as_int_lists\": [[1, 2], [3]]}},"
        "{\"name\": \"s\", \"arg\": {\"as_string\": \"Infinity -Infinity NaN\"}}"
        "], \"outputs\": [{\"as_tensors\": [{\"name\": \"y\"}]}, {\"as_none\": true}, "
        "{\"as_sym_int\": "
        "{\"as_name\": \"half\"}}], \"metadata\": {}}",
        ", \"y\": " META));
    const onv_program_call *call = &model.program->calls.at[1];
    const onv_argument *a = call->arguments;
    assert_int_equal(call->n_arguments, 19);
    assert_int_equal(call->n_results, 2);
    assert_int_equal(call->results[1], ONV_NO_PROGRAM_VALUE);
    assert_string_equal(call->name, "y");
    assert_int_equal(a[0].count, 2);
    assert_int_equal(a[1].values[0], ONV_NO_PROGRAM_VALUE);
    assert_int_equal(a[2].kind, ONV_ARGUMENT_NONE);
    assert_int_equal(a[3].count, 1);
    assert_true(onv_dim_is_expr(a[4].numbers[1]));
    assert_true(onv_dim_same(a[4].numbers[1], a[5].number));
    assert_true(a[6].reals[0] == 1.5 && a[6].reals[1] == 2.0);
    assert_true(isinf(a[7].real) && a[7].real < 0);
    assert_true(isinf(a[8].real) && a[8].real < 0);
    assert_true(isnan(a[9].real) && isnan(a[10].real));
    assert_true(a[11].flags[0] && !a[11].flags[1]);
    assert_string_equal(a[12].texts[0], "uA");
    assert_int_equal(a[13].dtype, ONV_BFLOAT16);
    assert_string_equal(a[14].text, "channels_last");
    assert_string_equal(a[15].text, "cuda");
    assert_int_equal(a[16].kind, ONV_ARGUMENT_OTHER);
    assert_int_equal(a[17].kind, ONV_ARGUMENT_OTHER);
    assert_string_equal(a[18].text, "Infinity -Infinity NaN");
    onv_model_cleanup(&model);
}

TEST(calls_without_tensors_are_left_out)
{
    static const char nodes[] = ", {\"target\": \"torch.ops.aten.sym_size.int\", \"inputs\": [], "
                                "\"outputs\": [{\"as_sym_int\": "
                                "{\"as_name\": \"half\"}}]}"
                                ", {\"target\": \"torch.ops.aten._foreach_add_.List\", \"inputs\": "
                                "[{\"name\": \"self\", \"arg\": "
                                "{\"as_tensors\": [{\"name\": \"x\"}]}}], \"outputs\": []}"
                                ", {\"target\": \"_operator.add\", \"inputs\": [], \"outputs\": "
                                "[{\"as_sym_int\": {\"as_name\": "
                                "\"half\"}}]}";
    onv_model model = loaded(document(nodes, ""));
    assert_int_equal(model.program->calls.count, 2);
    assert_string_equal(model.program->calls.at[1].op_name, "aten._foreach_add_.List");
    onv_model_cleanup(&model);
}

/* An inner graph has the call that it is an argument of, also where that gives nothing. */
TEST(calls_with_graphs_stay)
{
    static const char node[] =
        ", {\"target\": \"torch.ops.aten.f.default\", \"outputs\": [], \"inputs\": [{\"name\": "
        "\"g\", \"arg\": {\"as_graph\": {\"name\": \"g\", \"graph\": {\"inputs\": [], \"outputs\": "
        "[], "
        "\"nodes\": [], \"tensor_values\": {}}}}}]}";
    onv_model model = loaded(document(node, ""));
    assert_int_equal(model.program->calls.count, 2);
    assert_int_equal(model.program->graphs.count, 2);
    assert_int_equal(model.program->graphs.at[1].call, 1);
    assert_int_equal(model.graphs.at[1].owner.index, 1);
    onv_model_cleanup(&model);
}

/* A network of p, q, r and t: q is read; p has its data and r shares its storage; t has data of its own. */
static packed with_weights(const char *of_p)
{
    static const char form[] =
        "{\"schema_version\": {\"major\": 8}, \"graph_module\": {\"graph\": {\"inputs\": ["
        "{\"as_tensor\": {\"name\": \"p\"}}, {\"as_tensor\": {\"name\": \"q\"}}, {\"as_tensor\": "
        "{\"name\": \"r\"}}, {\"as_tensor\": {\"name\": \"t\"}}], \"outputs\": [], \"nodes\": "
        "[{\"target\": \"torch.ops.aten.relu.default\", \"inputs\": [{\"name\": \"self\", \"arg\": "
        "{\"as_tensor\": {\"name\": \"q\"}}}], \"outputs\": [{\"as_tensor\": {\"name\": "
        "\"y\"}}]}], "
        "\"tensor_values\": {\"p\": " SIZED ", \"q\": " SIZED ", \"t\": " SIZED ", \"y\": " SIZED
        ", \"r\": {\"dtype\": 7, \"sizes\": [{\"as_int\": 2}]}}}, "
        "\"signature\": {\"input_specs\": ["
        "{\"parameter\": {\"arg\": {\"name\": \"p\"}, \"parameter_name\": \"a.p\"}}, "
        "{\"parameter\": {\"arg\": {\"name\": \"q\"}, \"parameter_name\": \"b.q\"}}, "
        "{\"parameter\": {\"arg\": {\"name\": \"r\"}, \"parameter_name\": \"r\"}}, "
        "{\"parameter\": {\"arg\": {\"name\": \"t\"}, \"parameter_name\": \"t\"}}]}}%s}";
    char weights[300] = "";
    packed p = {malloc(sizeof form + sizeof weights), 0};
    assert_non_null(p.at);
    if (of_p != NULL)
        snprintf(weights, sizeof weights,
                 ", \"weights_config\": {\"config\": {\"a.p\": {\"path_name\": \"%s\"}, \"b.q\": "
                 "{\"path_name\": \"weight_0\"}, \"r\": {\"path_name\": \"weight_0\"}, \"t\": "
                 "{\"path_name\": \"weight_1\"}, \"u\": {\"path_name\": \"weight_2\"}}}",
                 of_p);
    p.bytes = (size_t)snprintf(p.at, sizeof form + sizeof weights, form, weights);
    return p;
}

TEST(parameters_of_one_tensor_are_known)
{
    static const char *const data[] = {"weight_0", "weight_1", "weight_3", NULL};
    static const uint32_t same_as[] = {1, ONV_NO_PROGRAM_VALUE, ONV_NO_PROGRAM_VALUE,
                                       ONV_NO_PROGRAM_VALUE};
    for (size_t i = 0; i < sizeof data / sizeof data[0]; i++) {
        onv_model model = loaded(with_weights(data[i]));
        const onv_program_value *values = model.program->values.at;
        assert_int_equal(model.program->knows_shared, data[i] != NULL);
        assert_int_equal(values[0].same_as, same_as[i]);
        assert_int_equal(values[1].same_as, ONV_NO_PROGRAM_VALUE);
        assert_int_equal(values[2].same_as, ONV_NO_PROGRAM_VALUE);
        /* Of two that no call reads the first one has the tensor. */
        assert_int_equal(values[3].same_as, i == 1 ? 0 : ONV_NO_PROGRAM_VALUE);
        onv_model_cleanup(&model);
    }
}

/* An argument, as all of a second call. */
static packed with_argument(const char *argument)
{
    char nodes[1000];
    snprintf(nodes, sizeof nodes,
             ", {\"target\": \"torch.ops.m.f.default\", \"name\": \"f\", \"inputs\": [{\"name\": "
             "\"a\", \"arg\": %s}], \"outputs\": [{\"as_tensor\": {\"name\": \"y\"}}]}",
             argument);
    return document(nodes, ", \"y\": " META);
}

/* Sizes of results, and where one begins in its storage. */
TEST(no_size_is_negative)
{
    static const char *const metas[] = {
        "{\"dtype\": 7, \"sizes\": [{\"as_int\": -4}]}",
        "{\"dtype\": 7, \"sizes\": [{\"as_expr\": {\"expr_str\": \"oo\"}}]}",
        "{\"dtype\": 7, \"sizes\": [], \"storage_offset\": {\"as_int\": -1}}",
    };
    for (size_t i = 0; i < sizeof metas / sizeof metas[0]; i++) {
        char tensors[200];
        snprintf(tensors, sizeof tensors, ", \"y\": %s", metas[i]);
        refuses(document(", {\"target\": \"torch.ops.m.f.default\", \"inputs\": [], "
                         "\"outputs\": [{\"as_tensor\": {\"name\": \"y\"}}]}",
                         tensors),
                ONV_ERR_MODEL, "the tensor 'y' has no size");
    }
}

TEST(what_is_wrong_is_said)
{
    static const struct {
        const char *argument, *part;
    } rows[] = {
        {"{\"as_tensor\": {\"name\": \"y\"}}", "'y' is read before it is made"},
        {"{\"as_tensor\": {\"name\": \"w\"}}", "'w' is read before it is made"},
        {"{\"as_tensor\": {}}", "a member 'name', found none"},
        {"{\"as_tensor\": {\"name\": 3}}", "name: expected a string, found an integer"},
        {"{\"as_bytes\": 3}", "unknown kind 'as_bytes'"},
        {"{}", "expected an object with one member"},
        {"{\"as_int\": \"3\"}", "expected an integer, found a string"},
        {"{\"as_ints\": 3}", "expected a list, found an integer"},
        {"{\"as_sym_int\": {\"as_name\": \"none\"}}", "'none' is not in sym_int_values"},
        {"{\"as_sym_int\": {\"as_expr\": {\"expr_str\": \"Add(\"}}}", "as sympy writes it"},
        {"{\"as_bools\": [1]}", "expected a boolean, found an integer"},
        {"{\"as_graph\": {\"name\": \"g\"}}", "a member 'graph', found none"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        refuses(with_argument(rows[i].argument), ONV_ERR_FORMAT, rows[i].part);
    refuses(
        document(", {\"target\": \"m.f\", \"inputs\": [], \"outputs\": [{\"as_tensor\": {\"name\": "
                 "\"relu\"}}]}",
                 ""),
        ONV_ERR_FORMAT, "'relu' is made twice");
    refuses(
        document(", {\"target\": \"m.f\", \"inputs\": [], \"outputs\": [{\"as_tensor\": {\"name\": "
                 "\"y\"}}]}",
                 ""),
        ONV_ERR_FORMAT, "'y' is not in tensor_values");
    refuses(document(", 3", ""), ONV_ERR_FORMAT, "target");
    static const char *const unnamed[] = {"", "torch.ops.", "torch.ops.aten.",
                                          "torch.ops.aten..default", "torch.ops.aten.\\u0000relu"};
    for (size_t i = 0; i < sizeof unnamed / sizeof unnamed[0]; i++) {
        char node[200];
        snprintf(node, sizeof node, ", {\"target\": \"%s\", \"inputs\": [], \"outputs\": []}",
                 unnamed[i]);
        refuses(document(node, ""), ONV_ERR_FORMAT, "expected the name of an operator");
    }
}

/* Inner graphs that are nested without end, and names, lists and ranks without measure. */
TEST(limits_are_met)
{
    enum { DEPTH = 250, ROOM = 200 * DEPTH, LONG = 100 << 10 };
    char *nodes = malloc(ROOM), *at = nodes, *name = malloc(LONG + 100);
    assert_non_null(nodes);
    assert_non_null(name);
    at += sprintf(at, "{\"as_int\": 1}");
    for (int i = 0; i < DEPTH; i++) {
        char *inner = strdup(nodes);
        at = nodes;
        at += snprintf(
            at, ROOM,
            "{\"as_graph\": {\"name\": \"g\", \"graph\": {\"inputs\": [], \"outputs\": [], "
            "\"tensor_values\": {}, \"nodes\": [{\"target\": \"torch.ops.higher_order.h\", "
            "\"inputs\": [{\"name\": \"\", \"arg\": %s}], \"outputs\": []}]}}}",
            inner);
        free(inner);
        if (at - nodes > ROOM - 300) break;
    }
    packed p = {NULL, 0};
    OWNED_TEXT text = malloc(strlen(nodes) + 300);
    sprintf(
        text,
        ", {\"target\": \"torch.ops.m.f.default\", \"inputs\": [{\"name\": \"a\", \"arg\": %s}], "
        "\"outputs\": []}",
        nodes);
    p = document(text, "");
    refuses(p, ONV_ERR_LIMIT, "nested");
    memset(name, 'n', LONG);
    snprintf(name + LONG, 100, "%s", "");
    OWNED_TEXT argument = malloc(LONG + 300);
    sprintf(argument, ", {\"target\": \"%s\", \"inputs\": [], \"outputs\": []}", name);
    refuses(document(argument, ""), ONV_ERR_LIMIT, "--limit name-bytes");
    free(nodes);
    free(name);
}

/* --- Recordings ---------------------------------------------------------------------------------- */

/* A recording of the programs that are given: each without its last brace gets the lifetimes. */
static packed recording(const char *training, const char *inference, int version)
{
    packed one = document("", "");
    one.at[one.bytes - 1] = '\0';
    size_t room = 2 * one.bytes + 1000;
    packed p = {malloc(room), 0};
    assert_non_null(p.at);
    int n = snprintf(
        p.at, room,
        "{\"format\": \"onnxvram.program\", \"version\": %d, \"torch_version\": \"2.15.0\", "
        "\"programs\": {",
        version);
    if (training != NULL)
        n += snprintf(p.at + n, room - (size_t)n, "\"training\": %s, \"lifetimes\": {%s}}%s",
                      one.at, training, inference != NULL ? ", " : "");
    if (inference != NULL)
        n += snprintf(p.at + n, room - (size_t)n, "\"inference\": %s, \"lifetimes\": {%s}}", one.at,
                      inference);
    n += snprintf(p.at + n, room - (size_t)n, "}}");
    p.bytes = (size_t)n;
    packed_free(&one);
    return p;
}

TEST(recordings_have_lifetimes)
{
    packed p = recording("\"relu\": {\"storage\": 3, \"freed_after\": \"relu\", \"kept\": true}",
                         "\"relu\": {\"storage\": 5, \"freed_after\": null}", 1);
    onv_model model;
    for (int mode = ONV_PROGRAM_INFERENCE; mode <= ONV_PROGRAM_TRAINING; mode++) {
        assert_int_equal(load(p, (onv_program_mode)mode, &model, NULL), ONV_OK);
        bool is_training = mode == ONV_PROGRAM_TRAINING;
        const onv_program_value *relu = &model.program->values.at[2];
        assert_true(onv_program_is_recorded(model.program));
        assert_int_equal(model.program->is_training, is_training);
        assert_int_equal(relu->storage, is_training ? 3 : 5);
        assert_int_equal(relu->freed_after, is_training ? 0 : ONV_NO_CALL_INDEX);
        assert_int_equal(relu->is_kept, is_training);
        assert_int_equal(model.program->values.at[1].storage, ONV_NO_STORAGE);
        onv_model_cleanup(&model);
    }
    packed_free(&p);
    p = recording("", NULL, 1); /* the other one is better than none */
    assert_int_equal(load(p, ONV_PROGRAM_INFERENCE, &model, NULL), ONV_OK);
    assert_true(model.program->is_training);
    onv_model_cleanup(&model);
    packed_free(&p);
    refuses(recording(NULL, NULL, 1), ONV_ERR_FORMAT, "has no program");
    refuses(recording("", NULL, 2), ONV_ERR_FORMAT, "found version 2");
    refuses(recording(NULL, "\"y\": {\"storage\": 1}", 1), ONV_ERR_FORMAT,
            "'y', which is not made");
    refuses(recording(NULL, "\"relu\": {\"storage\": -1}", 1), ONV_ERR_FORMAT, "has no number");
    refuses(recording(NULL, "\"relu\": {\"storage\": 1, \"freed_after\": \"gone\"}", 1),
            ONV_ERR_FORMAT, "'gone', which is not a call");
}

/* --- Memory -------------------------------------------------------------------------------------- */

TEST(every_allocation_may_fail)
{
    packed files[] = {packed_file("tests/program/flow.json.gz"), document("", ""),
                      with_weights("weight_0")};
    packed text = files[1];
    files[1] = packed_zip_with(text, "a/models/model.json", true,
                               "{\"config\": {\"w\": {\"path_name\": \"weight_0\"}}}");
    packed_free(&text);
    for (size_t i = 0; i < 3; i++) {
        onv_status status;
        long n = 0;
        do {
            onv_error err = {0};
            onv_heap_fail_after(n++);
            status = packed_read(files[i], &err);
            onv_heap_fail_after(-1);
            assert_true(status == ONV_OK || status == ONV_ERR_MEMORY);
            assert_int_equal(err.code, status);
        } while (status != ONV_OK && n < 5000);
        assert_int_equal(status, ONV_OK);
        assert_true(n > 10);
        packed_free(&files[i]);
    }
}
