/* Programs that have many of something. Their makers tried to have all of it compared with all: that takes minutes of
 * processor time, of which there are seconds. */
#include <sys/resource.h>

#include "onnxvram/onnxvram.h"
#include "support/capture.h"
#include "support/test.h"

enum { ROOM = 24 << 20, SECONDS = 15 };

/* The parts of a program, which grow; `x` is its input, of four floats. */
typedef struct parts {
    char *inputs, *specs, *nodes, *values, *sizes, *lifetimes;
} parts;

static char *start(void)
{
    char *at = malloc(ROOM);
    assert_non_null(at);
    *at = '\0';
    return at;
}

/* Appends `count` times; # is a number, from 0 on. */
static void add(char *to, const char *form, unsigned count)
{
    to += strlen(to);
    for (unsigned i = 0; i < count; i++)
        for (const char *at = form; *at != '\0'; at++)
            if (*at == '#')
                to += sprintf(to, "%u", i);
            else
                *to++ = *at;
    *to = '\0';
}

static parts begin(void)
{
    return (parts){start(), start(), start(), start(), start(), start()};
}

/* A call of `operator`, whose arguments are added before it is closed by end_call(). */
static void begin_call(parts *p, const char *operator, const char * module)
{
    sprintf(p->nodes + strlen(p->nodes),
            "%s{\"target\": \"torch.ops.%s\", \"metadata\": {\"nn_module_stack\": \"%s\"}, "
            "\"inputs\": [{\"name\": \"self\", \"arg\": {\"as_tensor\": {\"name\": \"x\"}}}",
            p->nodes[0] != '\0' ? ", " : "", operator, module);
}

static void end_call(parts *p, const char *result)
{
    sprintf(p->nodes + strlen(p->nodes),
            "], \"outputs\": [{\"as_tensor\": {\"name\": \"%s\"}}], \"name\": \"%s\"}", result,
            result);
}

/* The whole; a recording of training where it has lifetimes. It is read, and the parts are freed. */
static void analyse(parts *p, const char *output)
{
    bool is_recorded = p->lifetimes[0] != '\0';
    OWNED_TEXT text = malloc(3 * (size_t)ROOM);
    assert_non_null(text);
    int bytes = sprintf(
        text,
        "{%s\"range_constraints\": {}, %s%s%s \"graph_module\": {\"graph\": {\"inputs\": "
        "[{\"as_tensor\": {\"name\": \"x\"}}%s], \"outputs\": [{\"as_tensor\": {\"name\": "
        "\"%s\"}}], "
        "\"nodes\": [%s], \"sym_int_values\": {%s}, \"tensor_values\": {\"x\": {\"dtype\": 7, "
        "\"sizes\": [{\"as_int\": 4}], \"strides\": [{\"as_int\": 1}], \"requires_grad\": "
        "true}%s}}, \"signature\": "
        "{\"input_specs\": [{\"user_input\": {\"arg\": {\"as_tensor\": {\"name\": \"x\"}}}}%s], "
        "\"output_specs\": [{\"user_output\": {\"arg\": {\"as_tensor\": {\"name\": "
        "\"%s\"}}}}]}}%s}",
        is_recorded ? "\"format\": \"onnxvram.program\", \"version\": 1, \"programs\": "
                      "{\"training\": {"
                    : "\"schema_version\": {\"major\": 8}, ",
        is_recorded ? "\"lifetimes\": {" : "", p->lifetimes, is_recorded ? "}, " : "", p->inputs,
        output, p->nodes, p->sizes, p->values, p->specs, output, is_recorded ? "}}" : "");
    onv_options options = onv_options_default();
    onv_analysis *analysis;
    onv_error err = {0};
    options.runtimes = "torch";
    options.train = is_recorded ? "sgd" : NULL;
    if (onv_analysis_new_from_memory(text, (size_t)bytes, NULL, &options, &analysis, &err) !=
        ONV_OK)
        fail_msg("%s: %s", err.node, err.message);
    onv_analysis_destroy(analysis);
    free(p->inputs);
    free(p->specs);
    free(p->nodes);
    free(p->values);
    free(p->sizes);
    free(p->lifetimes);
}

#define TENSOR "{\"dtype\": 7, \"sizes\": [], \"strides\": [], \"requires_grad\": true}"

static void add_parameters(parts *p, unsigned count)
{
    add(p->inputs, ", {\"as_tensor\": {\"name\": \"p#\"}}", count);
    add(p->specs, ", {\"parameter\": {\"arg\": {\"name\": \"p#\"}, \"parameter_name\": \"m.w#\"}}",
        count);
    add(p->values, ", \"p#\": " TENSOR, count);
}

/* A size with many members that are null is no size. */
static void members_that_are_null(void **state)
{
    parts p = begin();
    OWNED_TEXT text = start();
    onv_analysis *analysis;
    onv_error err = {0};
    add(p.sizes, "\"\": null, ", 200000);
    add(p.nodes, ", {\"as_name\": \"s\"}", 200000);
    sprintf(
        text,
        "{\"schema_version\": {\"major\": 8}, \"graph_module\": {\"signature\": {\"input_specs\": "
        "[]}, \"graph\": {\"inputs\": [], \"outputs\": [], \"tensor_values\": {}, "
        "\"sym_int_values\": {\"s\": {%s \"as_int\": 1}}, \"nodes\": [{\"target\": \"m.f\", "
        "\"outputs\": [], \"inputs\": [{\"name\": \"\", \"arg\": {\"as_ints\": [1%s]}}]}]}}}",
        p.sizes, p.nodes);
    assert_int_equal(onv_analysis_new_from_memory(text, strlen(text), NULL, NULL, &analysis, &err),
                     ONV_ERR_FORMAT);
    assert_non_null(strstr(err.message, "an object with one member"));
    p.nodes[0] = p.sizes[0] = '\0';
    begin_call(&p, "aten.relu.default", "");
    end_call(&p, "y");
    add(p.values, ", \"y\": " TENSOR, 1);
    analyse(&p, "y");
}

static void results_of_a_call_with_many_arguments(void **state)
{
    enum { RESULTS = 100000 };
    parts p = begin();
    begin_call(&p, "aten.f.default", "");
    add(p.nodes, ", {\"name\": \"a\", \"arg\": {\"as_tensor\": {\"name\": \"x\"}}}", 200000);
    add(p.nodes, "], \"name\": \"f\", \"outputs\": [{\"as_none\": true}", 1);
    add(p.nodes, ", {\"as_tensor\": {\"name\": \"r#\"}}", RESULTS);
    add(p.nodes, "]}", 1);
    begin_call(&p, "aten.relu.default", "");
    end_call(&p, "y");
    add(p.values, ", \"r#\": {\"dtype\": 7, \"sizes\": [], \"strides\": []}", RESULTS);
    add(p.values, ", \"y\": " TENSOR, 1);
    add(p.lifetimes, "\"y\": {\"storage\": 4000000000}, \"r0\": {\"storage\": 0}", 1);
    add(p.lifetimes, ", \"r#\": {\"storage\": #}", RESULTS);
    analyse(&p, "y");
}

/* Which of them are other names of what the module reads? */
static void parameters_that_no_call_reads(void **state)
{
    enum { PARAMETERS = 40000 };
    parts p = begin();
    begin_call(&p, "aten.relu.default", "k,m,M");
    add(p.nodes, ", {\"name\": \"a\", \"arg\": {\"as_tensor\": {\"name\": \"q\"}}}", 200000);
    end_call(&p, "y");
    add(p.inputs, ", {\"as_tensor\": {\"name\": \"q\"}}", 1);
    add(p.specs, ", {\"parameter\": {\"arg\": {\"name\": \"q\"}, \"parameter_name\": \"n.w\"}}", 1);
    add_parameters(&p, PARAMETERS);
    add(p.values, ", \"q\": {\"dtype\": 6, \"sizes\": []}, \"y\": " TENSOR, 1);
    analyse(&p, "y");
}

/* The recording keeps what no rule keeps: each is given to the first operation that has to do with it. */
static void storages_that_are_kept(void **state)
{
    enum { CALLS = 30000, READ = 300000 };
    parts p = begin();
    begin_call(&p, "aten.cat.default", "");
    add(p.nodes, ", {\"name\": \"tensors\", \"arg\": {\"as_tensors\": [{\"name\": \"x\"}", 1);
    add(p.nodes, ", {\"name\": \"x\"}", READ);
    add(p.nodes, "]}}", 1);
    end_call(&p, "y");
    add(p.nodes,
        ", {\"target\": \"torch.ops.aten.neg.default\", \"inputs\": [{\"name\": \"self\", \"arg\": "
        "{\"as_tensor\": {\"name\": \"x\"}}}], \"outputs\": [{\"as_tensor\": {\"name\": "
        "\"r#\"}}], "
        "\"name\": \"r#\"}",
        CALLS);
    add(p.specs, ", {\"parameter\": {\"arg\": {\"name\": \"x\"}, \"parameter_name\": \"m.w\"}}", 1);
    add(p.values,
        ", \"y\": {\"dtype\": 7, \"sizes\": [{\"as_int\": 2}, {\"as_int\": 4}], \"requires_grad\": "
        "true}",
        1);
    add(p.values, ", \"r#\": " TENSOR, CALLS);
    add(p.lifetimes, "\"y\": {\"storage\": 99999}", 1);
    add(p.lifetimes, ", \"r#\": {\"storage\": #, \"kept\": true}", CALLS);
    analyse(&p, "y");
}

/* Which of them begins the path that the module takes without gradients? None has its parameters. */
static void calls_of_an_encoder_layer(void **state)
{
    enum { CALLS = 60000 };
    parts p = begin();
    add(p.nodes,
        "{\"target\": \"torch.ops.aten.transpose.int\", \"metadata\": {\"nn_module_stack\": "
        "\"k,m,torch.nn.modules.transformer.TransformerEncoderLayer\"}, \"inputs\": [{\"name\": "
        "\"self\", \"arg\": {\"as_tensor\": {\"name\": \"x\"}}}], \"outputs\": [{\"as_tensor\": "
        "{\"name\": \"r#\"}}]}, ",
        CALLS);
    p.nodes[strlen(p.nodes) - 2] = '\0';
    begin_call(&p, "aten.relu.default", "");
    end_call(&p, "y");
    add(p.values, ", \"r#\": {\"dtype\": 7, \"sizes\": [], \"strides\": []}", CALLS);
    add(p.values, ", \"y\": " TENSOR, 1);
    analyse(&p, "y");
}

/* A region ends what it cast, which is nothing here, and does not look at all storages for that. */
static void regions_of_autocast(void **state)
{
    enum { REGIONS = 50000, PARAMETERS = 80000 };
    parts p = begin();
    add(p.nodes,
        "{\"target\": \"torch.ops.higher_order.wrap_with_autocast\", \"inputs\": [{\"name\": "
        "\"\", \"arg\": {\"as_string\": \"cuda\"}}, {\"name\": \"\", \"arg\": "
        "{\"as_scalar_type\": 13}}, {\"name\": \"\", \"arg\": {\"as_bool\": true}}, {\"name\": "
        "\"\", \"arg\": {\"as_graph\": {\"name\": \"g\", \"graph\": {\"inputs\": [], "
        "\"outputs\": [], \"nodes\": [], \"tensor_values\": {}}}}}], \"outputs\": []}, ",
        REGIONS);
    p.nodes[strlen(p.nodes) - 2] = '\0';
    begin_call(&p, "aten.relu.default", "");
    end_call(&p, "y");
    add_parameters(&p, PARAMETERS);
    add(p.values, ", \"y\": " TENSOR, 1);
    analyse(&p, "y");
}

int main(void)
{
    const struct rlimit most = {SECONDS, SECONDS};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_that_are_null),
        cmocka_unit_test(results_of_a_call_with_many_arguments),
        cmocka_unit_test(parameters_that_no_call_reads),
        cmocka_unit_test(storages_that_are_kept),
        cmocka_unit_test(calls_of_an_encoder_layer),
        cmocka_unit_test(regions_of_autocast),
    };
    if (setrlimit(RLIMIT_CPU, &most) != 0) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
