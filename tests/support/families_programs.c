/* Families of programs of PyTorch: the JSON of an archive, or a recording. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/families.h"

typedef struct text {
    char *at;
    size_t used, room;
} text;

__attribute__((format(printf, 2, 3))) static void put(text *to, const char *format, ...)
{
    enum { MOST = 40000 }; /* that one call may write */
    va_list args;
    if (to->room - to->used < MOST) {
        to->room = 2 * to->room + 2 * (size_t)MOST;
        to->at = realloc(to->at, to->room);
        assert(to->at != NULL);
    }
    va_start(args, format);
    int bytes = vsnprintf(to->at + to->used, MOST, format, args);
    va_end(args);
    assert(bytes >= 0 && bytes < MOST);
    to->used += (size_t)bytes;
}

/* The lists of a program; `x` is its input, of 4 by 16 floats, and `p_w0` a parameter like it. */
typedef struct program {
    text nodes, values, inputs, specs, sizes, lifetimes;
} program;

static void tensor(program *p, const char *name, unsigned rows, unsigned columns)
{
    put(&p->values,
        "%s\"%s\": {\"dtype\": 7, \"sizes\": [{\"as_int\": %u}, {\"as_int\": %u}], "
        "\"requires_grad\": true, \"strides\": [{\"as_int\": %u}, {\"as_int\": 1}]}",
        p->values.used > 0 ? ", " : "", name, rows, columns, columns);
}

static void parameter(program *p, unsigned i, unsigned rows, unsigned columns)
{
    tensor(p, family_name("p_w", i), rows, columns);
    put(&p->inputs, ", {\"as_tensor\": {\"name\": \"p_w%u\"}}", i);
    put(&p->specs,
        ", {\"parameter\": {\"arg\": {\"name\": \"p_w%u\"}, \"parameter_name\": "
        "\"layers.%u.weight\"}}",
        i, i);
}

static program begin(void)
{
    program p = {0};
    tensor(&p, "x", 4, 16);
    put(&p.inputs, "{\"as_tensor\": {\"name\": \"x\"}}");
    put(&p.specs, "{\"user_input\": {\"arg\": {\"as_tensor\": {\"name\": \"x\"}}}}");
    parameter(&p, 0, 4, 16);
    put(&p.nodes, "%s", "");
    put(&p.sizes, "%s", "");
    put(&p.lifetimes, "%s", "");
    return p;
}

/* One tensor as an argument: the first one, `self`. */
static const char *takes(const char *name)
{
    static char texts[4][160];
    static unsigned next;
    char *at = texts[next++ % 4];
    snprintf(at, sizeof texts[0],
             "{\"name\": \"self\", \"arg\": {\"as_tensor\": {\"name\": \"%s\"}}, \"kind\": 1}",
             name);
    return at;
}

static void open_call(program *p, const char *operator, const char * modules, const char *trace)
{
    put(&p->nodes,
        "%s{\"target\": \"torch.ops.%s\", \"metadata\": {\"nn_module_stack\": \"%s\", "
        "\"stack_trace\": \"%s\"}, \"inputs\": [",
        p->nodes.used > 0 ? ", " : "", operator, modules, trace);
}

static void close_call(program *p, const char *result)
{
    put(&p->nodes, "], \"outputs\": [{\"as_tensor\": {\"name\": \"%s\"}}], \"name\": \"%s\"}",
        result, result);
}

/* Its result has the size of `x`. */
static void call(program *p, const char *operator, const char * modules, const char *trace,
                 const char *arguments, const char *result)
{
    open_call(p, operator, modules, trace);
    put(&p->nodes, "%s", arguments);
    close_call(p, result);
    tensor(p, result, 4, 16);
}

/* A recording of training where it has lifetimes. */
static char *finish(program *p, const char *output)
{
    text t = {0};
    bool is_recorded = p->lifetimes.used > 0;
    const text *const parts[] = {&p->inputs, &p->nodes, &p->values, &p->sizes, &p->specs};
    static const char *const between[] = {"\"graph_module\": {\"graph\": {\"inputs\": [",
                                          "], \"nodes\": [", "], \"tensor_values\": {",
                                          "}, \"sym_int_values\": {", NULL};
    put(&t, is_recorded ? "{\"format\": \"onnxvram.program\", \"version\": 1, \"programs\": "
                          "{\"training\": {"
                        : "{\"schema_version\": {\"major\": 8}, \"range_constraints\": {}, ");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (between[i] != NULL)
            put(&t, "%s", between[i]);
        else
            put(&t,
                "}, \"outputs\": [{\"as_tensor\": {\"name\": \"%s\"}}]}, \"signature\": "
                "{\"output_specs\": [{\"user_output\": {\"arg\": {\"as_tensor\": {\"name\": "
                "\"%s\"}}}}], \"input_specs\": [",
                output, output);
        size_t bytes = parts[i]->used;
        t.room = t.used + bytes + 1;
        t.at = realloc(t.at, t.room);
        assert(t.at != NULL);
        memcpy(t.at + t.used, parts[i]->at, bytes + 1);
        t.used += bytes;
    }
    put(&t, "]}}");
    if (is_recorded) put(&t, ", \"range_constraints\": {}, \"lifetimes\": {%s", "");
    if (is_recorded) {
        t.room = t.used + p->lifetimes.used + 1;
        t.at = realloc(t.at, t.room);
        assert(t.at != NULL);
        memcpy(t.at + t.used, p->lifetimes.at, p->lifetimes.used + 1);
        t.used += p->lifetimes.used;
        put(&t, "}}}");
    }
    put(&t, "}");
    text *const all[] = {&p->nodes, &p->values, &p->inputs, &p->specs, &p->sizes, &p->lifetimes};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]->at);
    return t.at;
}

#define LINE "File \\\"net/modeling.py\\\", line 5, in forward\\n    x = self.act(self.fc(x))\\n"

/* Calls of modules, one after the other. */
static char *chain(unsigned n, const char *trace, unsigned depth, bool is_recorded)
{
    program p = begin();
    for (unsigned i = 0; i < n; i++) {
        char modules[6000], path[600], *at = modules;
        for (unsigned k = 0, used = 0; k < depth; k++) {
            used += (unsigned)sprintf(path + used, "%sm%u", k > 0 ? "." : "", i >> k & 7);
            at += sprintf(at, "%sL__self__%s,%s,torch.nn.modules.activation.ReLU", k > 0 ? ";" : "",
                          path, path);
        }
        call(&p, "aten.relu.default", modules, trace,
             takes(i == 0 ? "p_w0" : family_name("r", i - 1)), family_name("r", i));
        if (is_recorded)
            put(&p.lifetimes, "%s\"r%u\": {\"storage\": %u, \"freed\": %u, \"kept\": true}",
                i > 0 ? ", " : "", i, i, i + 2);
    }
    return finish(&p, family_name("r", n - 1));
}

static char *calls(unsigned n)
{
    return chain(n, LINE, 2, false);
}

static char *recorded(unsigned n)
{
    return chain(n, LINE, 2, true);
}

static char *deep_modules(unsigned n)
{
    return chain(n, "", 20, false);
}

static char *long_traces(unsigned n)
{
    enum { FRAMES = 60 };
    char trace[FRAMES * sizeof LINE] = "";
    for (unsigned i = 0; i < FRAMES; i++) strcat(trace, LINE);
    return chain(n / 8 + 1, trace, 2, false);
}

static char *linear(unsigned n)
{
    program p = begin();
    for (unsigned i = 0; i < n; i++) {
        char arguments[400], path[80];
        parameter(&p, i + 1, 16, 16);
        snprintf(arguments, sizeof arguments,
                 "{\"name\": \"input\", \"arg\": {\"as_tensor\": {\"name\": \"%s\"}}}, "
                 "{\"name\": \"weight\", \"arg\": {\"as_tensor\": {\"name\": \"p_w%u\"}}}",
                 i == 0 ? "p_w0" : family_name("r", i - 1), i + 1);
        snprintf(path, sizeof path, "k,layers.%u,torch.nn.modules.linear.Linear", i);
        call(&p, "aten.linear.default", path, LINE, arguments, family_name("r", i));
    }
    return finish(&p, family_name("r", n - 1));
}

/* Tensors that no call reads or makes. */
static char *values(unsigned n)
{
    program p = begin();
    for (unsigned i = 0; i < n; i++) tensor(&p, family_name("v", i), 4, 16);
    call(&p, "aten.relu.default", "", "", takes("p_w0"), "y");
    return finish(&p, "y");
}

/* A list of all rows, and one tensor of them again. */
static char *lists(unsigned n)
{
    program p = begin();
    parameter(&p, 1, n, 16);
    open_call(&p, "aten.split.Tensor", "", "");
    put(&p.nodes,
        "%s, {\"name\": \"split_size\", \"arg\": {\"as_int\": 1}}], \"outputs\": "
        "[{\"as_tensors\": [",
        takes("p_w1"));
    for (unsigned i = 0; i < n; i++) {
        put(&p.nodes, "%s{\"name\": \"s%u\"}", i > 0 ? ", " : "", i);
        tensor(&p, family_name("s", i), 1, 16);
    }
    put(&p.nodes, "]}], \"name\": \"split\"}");
    open_call(&p, "aten.cat.default", "", "");
    put(&p.nodes, "{\"name\": \"tensors\", \"arg\": {\"as_tensors\": [");
    for (unsigned i = 0; i < n; i++) put(&p.nodes, "%s{\"name\": \"s%u\"}", i > 0 ? ", " : "", i);
    put(&p.nodes, "]}}");
    close_call(&p, "y");
    tensor(&p, "y", n, 16);
    return finish(&p, "y");
}

/* Views of one tensor; `writes`: each is written, so that those after it are others. */
static char *views(unsigned n, bool writes)
{
    program p = begin();
    call(&p, "aten.clone.default", "", "", takes("p_w0"), "b");
    for (unsigned i = 0; i < n; i++) {
        open_call(&p, "aten.view.default", "", LINE);
        put(&p.nodes, "%s, {\"name\": \"size\", \"arg\": {\"as_ints\": [16, 4]}}",
            takes(writes || i == 0 ? "b" : family_name("v", i - 1)));
        close_call(&p, family_name("v", i));
        tensor(&p, family_name("v", i), 16, 4);
        if (!writes) continue;
        open_call(&p, "aten.relu_.default", "", LINE);
        put(&p.nodes, "%s", takes(family_name("v", i)));
        close_call(&p, family_name("w", i));
        tensor(&p, family_name("w", i), 16, 4);
    }
    call(&p, "aten.neg.default", "", "", takes("b"), "y");
    return finish(&p, "y");
}

static char *chained_views(unsigned n)
{
    return views(n, false);
}

static char *written_views(unsigned n)
{
    return views(n / 2 + 1, true);
}

/* Sizes that calls ask tensors for. */
static char *asked_sizes(unsigned n)
{
    program p = begin();
    for (unsigned i = 0; i < n; i++) {
        char arguments[400];
        put(&p.nodes,
            "%s{\"target\": \"torch.ops.aten.sym_size.int\", \"inputs\": [%s, {\"name\": \"dim\", "
            "\"arg\": {\"as_int\": 0}}], \"outputs\": [{\"as_sym_int\": {\"as_name\": \"n%u\"}}], "
            "\"metadata\": {}}",
            i > 0 ? ", " : "", takes(i == 0 ? "p_w0" : family_name("r", i - 1)), i);
        put(&p.sizes, "%s\"n%u\": {\"as_int\": 4}", i > 0 ? ", " : "", i);
        snprintf(arguments, sizeof arguments,
                 "%s, {\"name\": \"shape\", \"arg\": {\"as_sym_ints\": [{\"as_name\": \"n%u\"}, "
                 "{\"as_int\": 16}]}}",
                 takes(i == 0 ? "p_w0" : family_name("r", i - 1)), i);
        call(&p, "aten.reshape.default", "", "", arguments, family_name("r", i));
    }
    return finish(&p, family_name("r", n - 1));
}

/* Graphs in graphs: regions without gradients. */
static char *inner_graphs(unsigned n)
{
    enum { DEPTH = 20 };
    program p = begin();
    for (unsigned i = 0; i < n / DEPTH + 1; i++) {
        static const char head[] =
            "{\"name\": \"\", \"arg\": {\"as_bool\": true}}, {\"name\": \"\", \"arg\": "
            "{\"as_graph\": {\"name\": \"g\", \"graph\": {\"inputs\": [{\"as_tensor\": {\"name\": "
            "\"a\"}}], \"outputs\": [{\"as_tensor\": {\"name\": \"z\"}}], \"nodes\": [";
        open_call(&p, "higher_order.wrap_with_set_grad_enabled", "", "");
        for (unsigned k = 0; k < DEPTH; k++)
            put(&p.nodes,
                k + 1 < DEPTH
                    ? "%s{\"target\": \"torch.ops.higher_order.wrap_with_set_grad_enabled\", "
                      "\"metadata\": {}, \"inputs\": ["
                    : "%s{\"target\": \"torch.ops.aten.relu.default\", \"metadata\": {}, "
                      "\"inputs\": [",
                head);
        for (unsigned k = 0; k < DEPTH; k++)
            put(&p.nodes,
                "%s], \"outputs\": [{\"as_tensor\": {\"name\": \"z\"}}]}], \"sym_int_values\": {}, "
                "\"tensor_values\": {\"a\": %s, \"z\": %s}}}}}",
                k == 0 ? takes("a")
                       : ", {\"name\": \"\", \"arg\": {\"as_tensor\": {\"name\": "
                         "\"a\"}}}",
                "{\"dtype\": 7, \"sizes\": [], \"strides\": []}",
                "{\"dtype\": 7, \"sizes\": [], \"strides\": []}");
        put(&p.nodes, ", {\"name\": \"\", \"arg\": {\"as_tensor\": {\"name\": \"%s\"}}}",
            i == 0 ? "p_w0" : family_name("r", i - 1));
        close_call(&p, family_name("r", i));
        tensor(&p, family_name("r", i), 4, 16);
    }
    return finish(&p, family_name("r", n / DEPTH));
}

const family program_families[] = {
    {"program-calls", true, .write = calls},
    {"program-linear", true, .write = linear},
    {"program-modules", true, .write = deep_modules},
    {"program-traces", true, .write = long_traces},
    {"program-values", true, .write = values},
    {"program-lists", true, .write = lists},
    {"program-views", true, .write = chained_views},
    {"program-writes", true, .write = written_views},
    {"program-sizes", true, .write = asked_sizes},
    {"program-graphs", true, .write = inner_graphs},
    {"program-recorded", true, .write = recorded},
    {0},
};
