/* Local functions: expansion at the call, attributes that pass through, and bombs. */
#include "load/built.h"
#include "load/load.h"
#include "onnxvram/onnxvram.h"
#include "support/capture.h"
#include "support/test.h"

/* Functions of these tests live in the domain "f". */
static msg *function(const char *name, const char *inputs, const char *outputs)
{
    return m_function("f", name, inputs, outputs);
}

static msg *call(const char *name, const char *node, const char *inputs, const char *outputs)
{
    msg *m = m_node(name, node, inputs, outputs);
    m_text(m, N_DOMAIN, "f");
    return m;
}

static msg *body(msg *f, msg *node)
{
    m_put(f, F_NODE, node);
    return f;
}

static msg *with_attr(msg *node, msg *attr)
{
    m_put(node, N_ATTR, attr);
    return node;
}

/* A model of these nodes and functions. */
static msg *model_of(const char *inputs, const char *outputs, msg *node, msg *f)
{
    msg *graph = m_graph(inputs, outputs);
    m_put(graph, G_NODE, node);
    msg *file = m_model(graph);
    m_put(file, M_OPSET, m_opset("f", 1));
    m_put(file, M_FUNCTION, f);
    return file;
}

static void refuse(msg *file, onv_status status, const char *text)
{
    built_refuse(file, status, text, NULL);
}

/* --- Expansion --------------------------------------------------------------------------------- */

TEST(a_body_takes_the_place_of_the_call)
{
    msg *f = function("F", "a b", "out");
    body(f, m_node("Mul", "m", "a b", "ab"));
    body(f, m_node("Add", "", "ab a", "out"));
    built_expect(model_of("x", "y", call("F", "call", "x x", "y"), f),
                 "(x)->(y): Mul call/m(x,x)->call/ab; Add call/Add_1(call/ab,x)->y\n");
}

TEST(a_call_without_a_name)
{
    msg *f = body(function("F", "a", "out"), m_node("Relu", "r", "a", "out"));
    built_expect(model_of("x", "y", call("F", "", "x", "y"), f), "(x)->(y): Relu F_0/r(x)->y\n");
}

TEST(functions_call_functions)
{
    msg *g = body(function("G", "p", "q"), m_node("Relu", "r", "p", "q"));
    msg *f = function("F", "a", "out");
    body(f, call("G", "first", "a", "mid"));
    body(f, call("G", "second", "mid", "out"));
    msg *file = model_of("x", "y", call("F", "call", "x", "y"), f);
    m_put(file, M_FUNCTION, g);
    built_expect(file,
                 "(x)->(y): Relu call/first/r(x)->call/mid; Relu call/second/r(call/mid)->y\n");
}

TEST(inputs_and_outputs_left_out)
{
    msg *f = function("F", "a b c", "one two");
    body(f, m_node("Clip", "n", "a b c", "one"));
    body(f, m_node("Relu", "m", "one", "two"));
    built_expect(model_of("x", "y", call("F", "k", "x - x", "- y"), f),
                 "(x)->(y): Clip k/n(x,-,x)->k/one; Relu k/m(k/one)->y\n");
    f = body(function("F", "a b", "one two"), m_node("Clip", "n", "a b", "one two"));
    built_expect(model_of("x", "y", call("F", "k", "x", "y"), f),
                 "(x)->(y): Clip k/n(x,-)->y,k/two\n");
}

TEST(outputs_that_are_handed_through)
{
    built_expect(model_of("x", "y", call("F", "k", "x", "y"), function("F", "a", "a")),
                 "(x)->(y): Identity k/Identity_a(x)->y\n");
    /* The same output twice: one of them is a copy. */
    msg *f = body(function("F", "a", "out out"), m_node("Relu", "r", "a", "out"));
    built_expect(model_of("x", "y z", call("F", "k", "x", "y z"), f),
                 "(x)->(y,z): Relu k/r(x)->y; Identity k/Identity_out(y)->z\n");
    /* An initializer of the caller. */
    msg *graph = m_graph("x", "y");
    m_put(graph, G_NODE, call("F", "k", "w", "y"));
    m_put(graph, G_INIT, m_external("w", 2, "w.bin"));
    msg *file = m_model(graph);
    m_put(file, M_FUNCTION, function("F", "a", "a"));
    built_expect(file, "(x)->(y): Identity k/Identity_a(w)->y\n");
}

TEST(subgraphs_in_functions)
{
    msg *then = m_graph("", "t");
    m_put(then, G_NODE, m_node("Add", "", "a local", "t"));
    msg *f = function("F", "c a", "out");
    body(f, m_node("Relu", "r", "a", "local"));
    body(f, with_attr(m_node("If", "if", "c", "out"), m_attr_graph("then_branch", then)));
    built_expect(model_of("c x", "y", call("F", "k", "c x", "y"), f),
                 "(c,x)->(y): Relu k/r(x)->k/local; If k/if(c)->y\n"
                 "k/if/then_branch()->(k/if/then_branch/t): "
                 "Add k/if/then_branch/Add_0(x,k/local)->k/if/then_branch/t\n");
}

TEST(calls_in_subgraphs)
{
    msg *then = m_graph("", "t");
    m_put(then, G_NODE, call("F", "k", "x", "t"));
    msg *f = body(function("F", "a", "out"), m_node("Relu", "r", "a", "out"));
    built_expect(
        model_of("c x", "y",
                 with_attr(m_node("If", "if", "c", "y"), m_attr_graph("then_branch", then)), f),
        "(c,x)->(y): If if(c)->y\n"
        "if/then_branch()->(if/then_branch/t): Relu if/then_branch/k/r(x)->if/then_branch/t\n");
}

TEST(a_body_sees_only_its_inputs)
{
    refuse(model_of("x", "y", call("F", "k", "x", "y"),
                    body(function("F", "a", "out"), m_node("Relu", "r", "x", "out"))),
           ONV_ERR_MODEL, "'x', is not defined");
}

TEST(overloads)
{
    msg *one = body(function("F", "a", "out"), m_node("Relu", "r", "a", "out"));
    msg *two = body(function("F", "a", "out"), m_node("Sigmoid", "s", "a", "out"));
    m_text(two, F_OVERLOAD, "other");
    msg *node = call("F", "k", "x", "y");
    m_text(node, N_OVERLOAD, "other");
    msg *file = model_of("x", "y", node, one);
    m_put(file, M_FUNCTION, two);
    built_expect(file, "(x)->(y): Sigmoid k/s(x)->y\n");
}

TEST(versions_are_the_functions_own)
{
    msg *f = body(m_new(), m_node("Relu", "r", "a", "out"));
    m_text(f, 1, "F");
    m_text(f, 4, "a");
    m_text(f, 5, "out");
    m_text(f, 10, "f");
    m_put(f, F_OPSET, m_opset("", 13));
    m_put(f, F_OPSET, m_opset("far", 4));
    msg *far = m_node("Far", "", "a", "unused");
    m_text(far, N_DOMAIN, "far");
    body(f, far);
    msg *file = model_of("x", "y", call("F", "k", "x", "y"), f);
    onv_model *model = built_load(file);
    assert_int_equal(model->nodes.at[0].version, 13);
    assert_int_equal(model->nodes.at[1].version, 4);
    assert_int_equal(model->diags.count, 0);
    built_done(model, file);
}

TEST(declared_types_of_the_inside)
{
    msg *f = function("F", "a", "out");
    body(f, m_node("Relu", "r", "a", "mid"));
    body(f, m_node("Relu", "s", "mid", "out"));
    m_put(f, F_INFO, m_info("mid:f32[batch,3]"));
    m_put(f, F_INFO, m_info("a:f32[batch,3]"));
    msg *file = model_of("x:f32[n,3]", "y", call("F", "k", "x", "y"), f);
    onv_model *model = built_load(file);
    /* "batch" means something else in every call, so it is not kept. */
    assert_string_equal(built_shape(model, built_value(model, "k/mid")->declared), "[?, 3]");
    assert_null(built_value(model, "x")->declared);
    built_done(model, file);
}

/* --- Attributes -------------------------------------------------------------------------------- */

static void expect_axis(msg *file, uint32_t node, int64_t axis, bool is_there)
{
    onv_model *model = built_load(file);
    const onv_attr *attr = onv_node_attr(&model->nodes.at[node], "axis");
    assert_int_equal(attr != NULL, is_there);
    if (is_there) assert_int_equal(attr->i, axis);
    built_done(model, file);
}

static msg *softmax_function(void)
{
    msg *f = function("F", "a", "out");
    return body(
        f, with_attr(m_node("Softmax", "s", "a", "out"), m_attr_ref("axis", ONV_ATTR_INT, "dim")));
}

TEST(attributes_of_the_call)
{
    msg *file = model_of("x", "y", with_attr(call("F", "k", "x", "y"), m_attr_int("dim", 3)),
                         softmax_function());
    expect_axis(file, 0, 3, true);
    /* Left out, without a default: the node has none either. */
    file = model_of("x", "y", call("F", "k", "x", "y"), softmax_function());
    expect_axis(file, 0, 0, false);
}

TEST(defaults)
{
    msg *f = softmax_function();
    m_put(f, F_DEFAULT, m_attr_int("dim", -1));
    msg *file = model_of("x", "y", call("F", "k", "x", "y"), f);
    expect_axis(file, 0, -1, true);
    f = softmax_function();
    m_put(f, F_DEFAULT, m_attr_int("dim", -1));
    file = model_of("x", "y", with_attr(call("F", "k", "x", "y"), m_attr_int("dim", 2)), f);
    expect_axis(file, 0, 2, true);
    f = softmax_function();
    m_put(f, F_DEFAULT, m_attr_ref("dim", ONV_ATTR_INT, "dim"));
    refuse(model_of("x", "y", call("F", "k", "x", "y"), f), ONV_ERR_MODEL,
           "the default of an attribute refers to another");
}

TEST(attributes_through_two_calls)
{
    msg *outer =
        body(function("Outer", "p", "q"),
             with_attr(call("F", "inner", "p", "q"), m_attr_ref("dim", ONV_ATTR_INT, "top")));
    msg *file = model_of("x", "y", with_attr(call("Outer", "k", "x", "y"), m_attr_int("top", 7)),
                         softmax_function());
    m_put(file, M_FUNCTION, outer);
    expect_axis(file, 0, 7, true);
}

TEST(attributes_inside_subgraphs_of_functions)
{
    msg *then = m_graph("", "t");
    m_put(then, G_NODE,
          with_attr(m_node("Softmax", "s", "a", "t"), m_attr_ref("axis", ONV_ATTR_INT, "dim")));
    msg *f = body(function("F", "c a", "out"),
                  with_attr(m_node("If", "if", "c", "out"), m_attr_graph("then_branch", then)));
    msg *file =
        model_of("c x", "y", with_attr(call("F", "k", "c x", "y"), m_attr_int("dim", 4)), f);
    expect_axis(file, 1, 4, true);
}

/* A graph that is passed to a function sees the caller's names, not the function's. */
TEST(graphs_as_attributes)
{
    msg *then = m_graph("", "t");
    m_put(then, G_NODE, m_node("Relu", "r", "x", "t"));
    msg *f = function("F", "c", "out");
    body(f, m_node("Not", "x", "c", "x")); /* the name that the graph must not see */
    body(f, with_attr(m_node("If", "if", "x", "out"),
                      m_attr_ref("then_branch", ONV_ATTR_GRAPH, "branch")));
    built_expect(
        model_of("c x", "y", with_attr(call("F", "k", "c", "y"), m_attr_graph("branch", then)), f),
        "(c,x)->(y): Not k/x(c)->k/x; If k/if(k/x)->y\n"
        "k/if/then_branch()->(k/if/then_branch/t): Relu k/if/then_branch/r(x)->"
        "k/if/then_branch/t\n");
}

/* --- Contradictions ---------------------------------------------------------------------------- */

TEST(wrong_calls)
{
    refuse(model_of("x", "y", call("F", "k", "x x", "y"), softmax_function()), ONV_ERR_MODEL,
           "the call has 2 inputs and 1 outputs, the function 1 and 1");
    refuse(model_of("x", "y", call("F", "k", "nowhere", "y"), softmax_function()), ONV_ERR_MODEL,
           "input 0, 'nowhere', is not defined");
    refuse(model_of("x", "y", call("F", "k", "x", "y"), function("F", "a", "out")), ONV_ERR_MODEL,
           "output 'out' of function 'F' is not defined in it");
    refuse(model_of("x", "y", call("F", "k", "-", "y"), function("F", "a", "a")), ONV_ERR_MODEL,
           "output 'a' of function 'F' is not defined in it");
    refuse(model_of("x", "y", call("F", "k", "x", "y"), function("F", "a a", "a")), ONV_ERR_MODEL,
           "two inputs named 'a'");
    msg *f = body(function("F", "a", "out"), m_node("Relu", "r", "a", "a"));
    refuse(model_of("x", "y", call("F", "k", "x", "y"), f), ONV_ERR_MODEL,
           "value 'a' is defined twice");
    f = function("F", "a", "out");
    for (int i = 0; i < 2; i++) body(f, m_node("Relu", "", "a", "out"));
    refuse(model_of("x", "y", call("F", "k", "x", "y"), f), ONV_ERR_MODEL,
           "value 'out' is defined twice");
    msg *file = model_of("x", "y", call("F", "k", "x", "y"), softmax_function());
    m_put(file, M_FUNCTION, softmax_function());
    refuse(file, ONV_ERR_MODEL, "function 'F' of domain 'f' is defined twice");
}

/* --- Bombs ------------------------------------------------------------------------------------- */

TEST(recursion)
{
    refuse(model_of("x", "y", call("F", "k", "x", "y"),
                    body(function("F", "a", "out"), call("F", "", "a", "out"))),
           ONV_ERR_MODEL, "function 'F' of domain 'f' calls itself");
    msg *file = model_of("x", "y", call("F", "k", "x", "y"),
                         body(function("F", "a", "out"), call("G", "", "a", "out")));
    msg *then = m_graph("", "t");
    m_put(then, G_NODE, call("F", "", "a", "t"));
    m_put(file, M_FUNCTION,
          body(function("G", "a", "out"),
               with_attr(m_node("If", "", "a", "out"), m_attr_graph("then_branch", then))));
    refuse(file, ONV_ERR_MODEL, "calls itself");
    /* Recursion that nothing calls does no harm. */
    file = model_of("x", "y", m_node("Relu", "r", "x", "y"),
                    body(function("F", "a", "out"), call("F", "", "a", "out")));
    built_expect(file, "(x)->(y): Relu r(x)->y\n");
}

/* F0 calls F1 `width` times, and so on `depth` levels down. */
static msg *chain(int depth, int width, bool with_leaf)
{
    msg *file = model_of("x", "x", call("F0", "k", "x", "y"),
                         body(function("unused", "a", "b"), m_node("Relu", "", "a", "b")));
    for (int i = 0; i < depth; i++) {
        char name[32], next[32];
        snprintf(name, sizeof name, "F%d", i);
        snprintf(next, sizeof next, "F%d", i + 1);
        msg *f = function(name, "a", "a");
        for (int k = 0; k < width && i + 1 < depth; k++) {
            char out[32];
            snprintf(out, sizeof out, "o%d", k);
            body(f, call(next, "", "a", out));
        }
        if (with_leaf && i + 1 == depth) body(f, m_node("Relu", "", "a", "b"));
        m_put(file, M_FUNCTION, f);
    }
    return file;
}

TEST(chains)
{
    refuse(chain(40, 2, true), ONV_ERR_LIMIT, "nodes once its functions are expanded");
    refuse(chain(64, 10, true), ONV_ERR_LIMIT, "at least");
    refuse(chain(40, 2, false), ONV_ERR_LIMIT, "nodes once its functions are expanded");
    refuse(chain(65, 1, true), ONV_ERR_LIMIT, "more than 64 deep");
    refuse(chain(20000, 1, true), ONV_ERR_LIMIT, "more than 64 deep");
    msg *file = chain(64, 1, true);
    built_done(built_load(file), file);
}

/* Few nodes, but long lists that every call goes through. */
TEST(long_lists)
{
    msg *f = function("F", "a", "a");
    for (int i = 0; i < 10000; i++) body(f, call("G", "", "a", "-"));
    msg *file = model_of("x", "y", call("F", "k", "x", "y"), f), *g = function("G", "a", "a");
    for (int i = 0; i < 10000; i++) m_put(g, F_INFO, m_info("v"));
    m_put(file, M_FUNCTION, g);
    refuse(file, ONV_ERR_LIMIT, "nodes once its functions are expanded");
}

/* Graphs passed as attributes multiply in a way that only expansion sees. */
TEST(graphs_that_multiply)
{
    msg *leaf = m_graph("", "c");
    m_put(leaf, G_NODE, m_node("Relu", "", "c", "r"));
    msg *file = model_of("c", "c", with_attr(call("F0", "k", "c", "y"), m_attr_graph("g", leaf)),
                         body(function("unused", "a", "b"), m_node("Relu", "", "a", "b")));
    enum { DEPTH = 40 };
    for (int i = 0; i < DEPTH; i++) {
        char name[32], next[32];
        snprintf(name, sizeof name, "F%d", i);
        snprintf(next, sizeof next, "F%d", i + 1);
        msg *f = function(name, "a", "a");
        msg *both = m_graph("", "a");
        for (int k = 0; k < 2; k++)
            m_put(both, G_NODE,
                  with_attr(m_node("If", "", "a", k == 0 ? "p" : "q"),
                            m_attr_ref("then_branch", ONV_ATTR_GRAPH, "g")));
        if (i + 1 < DEPTH)
            body(f, with_attr(call(next, "", "a", "o"), m_attr_graph("g", both)));
        else
            body(f, with_attr(m_node("If", "", "a", "o"),
                              m_attr_ref("then_branch", ONV_ATTR_GRAPH, "g")));
        if (i + 1 == DEPTH) m_free(both);
        m_put(file, M_FUNCTION, f);
    }
    onv_model model;
    onv_error err = {0};
    onv_limits limits = {.nodes = 100000};
    assert_int_equal(onv_load_memory(file->at, file->count, NULL, &limits, &model, &err),
                     ONV_ERR_LIMIT);
    assert_non_null(strstr(err.message, "more than 100000 nodes once its functions are expanded"));
    m_free(file);
}

/* Without a limit that somebody gave, functions become no more than the file's size is worth. */
TEST(functions_grow_with_the_file)
{
    for (int depth = 10; depth <= 17; depth += 7) {
        msg *unused = function("unused", "a", "out");
        body(unused, m_node("Relu", "", "a", "out"));
        msg *file = model_of("x", "y", call("F0", "c", "x", "y"), unused);
        for (int i = 0; i < depth; i++) {
            char name[32], next[32];
            snprintf(name, sizeof name, "F%d", i);
            snprintf(next, sizeof next, "F%d", i + 1);
            msg *f = function(name, "a", "out");
            bool is_last = i + 1 == depth;
            body(f, is_last ? m_node("Relu", "", "a", "m") : call(next, "", "a", "m"));
            body(f, is_last ? m_node("Relu", "", "m", "out") : call(next, "", "m", "out"));
            m_put(file, M_FUNCTION, f);
        }
        onv_model model;
        onv_error err = {0};
        onv_limits limits = {.nodes = 4 << 20};
        onv_status status = onv_load_memory(file->at, file->count, NULL, NULL, &model, &err);
        assert_int_equal(status, depth == 10 ? ONV_OK : ONV_ERR_LIMIT);
        if (status == ONV_OK) onv_model_cleanup(&model);
        if (depth == 17) assert_non_null(strstr(err.message, "; --limit nodes=N raises it"));
        status = onv_load_memory(file->at, file->count, NULL, &limits, &model, &err);
        assert_int_equal(status, ONV_OK);
        assert_true(model.nodes.count == (size_t)1 << depth);
        onv_model_cleanup(&model);
        m_free(file);
    }
}

/* The default of an attribute is a graph that refers to that attribute: it sees none. */
TEST(a_default_that_holds_itself)
{
    msg *graph = m_graph("", "t"), *f = function("F", "a", "out");
    m_put(graph, G_NODE,
          with_attr(m_node("If", "", "", "t"), m_attr_ref("then_branch", ONV_ATTR_GRAPH, "g")));
    m_put(f, F_DEFAULT, m_attr_graph("g", graph));
    body(f,
         with_attr(m_node("If", "", "a", "out"), m_attr_ref("then_branch", ONV_ATTR_GRAPH, "g")));
    refuse(model_of("x", "y", call("F", "k", "x", "y"), f), ONV_ERR_MODEL, "stands in none");
}

/* p is used before q: the search runs what uses p between the nodes of the function, and the file has one
 * node for both of them. */
TEST(an_order_that_parts_a_function)
{
    msg *f = body(function("F", "x", "p q"), m_node("Relu", "", "x", "p"));
    f = body(f, with_attr(m_node("Concat", "", "x x x x", "q"), m_attr_int("axis", 0)));
    msg *graph = m_graph("x:f32[64]", "y:f32");
    m_put(graph, G_NODE, call("F", "parted", "x", "p q"));
    m_put(graph, G_NODE, m_node("ReduceSum", "one", "p", "r"));
    m_put(graph, G_NODE, m_node("ReduceSum", "two", "q", "s"));
    m_put(graph, G_NODE, m_node("Add", "both", "r s", "y"));
    msg *file = m_model(graph);
    m_put(file, M_OPSET, m_opset("f", 1));
    m_put(file, M_FUNCTION, f);
    static const char *const orders[] = {"model", "optimal"};
    for (size_t i = 0; i < 2; i++) {
        onv_options options = onv_options_default();
        options.onnx_out = true;
        options.order = orders[i];
        options.runtimes = "ideal";
        onv_analysis *a;
        onv_error error;
        size_t written = 0;
        if (onv_analysis_new_from_memory(file->at, file->count, "m", &options, &a, &error) !=
            ONV_OK)
            fail_msg("%s", error.message);
        const onv_analysis *const all[] = {a};
        onv_status status =
            onv_report(all, 1, ONV_FORMAT_ONNX, NULL, capture_size, &written, &error);
        if (i == 0) {
            assert_int_equal(status, ONV_OK);
            assert_true(written > file->count);
        } else {
            assert_int_equal(status, ONV_ERR_USAGE);
            assert_non_null(strstr(error.message, "onnx.inliner"));
            assert_non_null(strstr(error.node, "parted/"));
        }
        onv_analysis_destroy(a);
    }
    m_free(file);
}
