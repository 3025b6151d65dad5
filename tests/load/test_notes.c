/* What PyTorch's exporter notes, read from files that no exporter wrote: notes that are there twice, without an end,
 * of one kind of byte. Reading them costs work that is linear in their length. */
#include <time.h>

#include "ir/notes.h"
#include "load/built.h"
#include "load/text.h"
#include "support/capture.h"
#include "support/test.h"

#define NOTE      "pkg.torch.onnx."
#define SIGNATURE "pkg.torch.export.ExportedProgram.graph_signature"

enum { G_METADATA = 16, V_METADATA = 4 };

/* --- Notes that are there twice ---------------------------------------------------------------- */

/* "w0: PARAMETER target='w0'" and so on, to be freed. */
static char *entries(const char *prefix, const char *kind, unsigned n)
{
    char *text = malloc((size_t)n * 80 + 1), *at = text;
    assert_non_null(text);
    for (unsigned i = 0; i < n; i++)
        at += snprintf(at, 80, "%s%u: %s target='%s%u'\n", prefix, i, kind, prefix, i);
    return text;
}

static msg *call_node(const char *argument)
{
    char call[300];
    msg *node = m_node("MatMul", "n", "x w", "y");
    snprintf(call, sizeof call,
             "%%l : [num_users=1] = call_function[target=torch.ops.aten.linear.default](args = "
             "(%%x, %%%s), kwargs = {})",
             argument);
    m_put(node, N_METADATA, m_pair(NOTE "name_scopes", "['', 'fc', 'linear']"));
    m_put(node, N_METADATA, m_pair(NOTE "fx_node", call));
    return node;
}

TEST(the_last_signature_is_used_alone)
{
    const int64_t dims[] = {8, 8};
    OWNED_TEXT parameters = entries("p_w", "PARAMETER", 5000);
    OWNED_TEXT buffers = entries("b_", "BUFFER", 5000);
    msg *graph = m_graph("x:f32[1,8]", "y"), *info = m_info("w:f32[8,8]");
    m_put(graph, G_INIT, m_tensor("w", ONV_FLOAT, 2, dims));
    m_put(info, V_METADATA, m_pair("pkg.onnxscript.optimizer.folded_from", "['q', 'r']"));
    m_put(graph, G_INFO, info);
    m_put(graph, G_NODE, call_node("p_w4999"));
    m_put(graph, G_METADATA, m_pair(SIGNATURE, parameters));
    m_put(graph, G_METADATA, m_pair(SIGNATURE, buffers));
    m_put(graph, G_METADATA,
          m_pair(SIGNATURE,
                 "# inputs\nb_a: BUFFER target='fc.zz' persistent=True\n"
                 "c_a: CONSTANT_TENSOR target='fc.c'\np_a: PARAMETER target='fc.weight'\n"
                 "b_b: BUFFER target='fc.n'\nx: USER_INPUT\n\n# outputs\n"
                 "add: BUFFER_MUTATION target='fc.zz'\ny: USER_OUTPUT\n"));
    msg *file = m_model(graph);
    onv_model *model = built_load(file);
    const onv_listed *listed = &model->listed;
    assert_int_equal(listed->n_parameters, 1);
    assert_string_equal(onv_listed_parameter(listed, 0), "fc.weight");
    assert_null(onv_listed_parameter(listed, 1));
    assert_int_equal(listed->n_buffers, 3);
    assert_int_equal(listed->n_registered, 2);
    assert_string_equal(listed->buffers[0], "fc.zz");
    assert_string_equal(listed->buffers[1], "fc.n");
    assert_string_equal(listed->buffers[2], "fc.c");
    assert_int_equal(listed->n_updated, 1);
    assert_string_equal(listed->updated[0], "fc.zz");
    assert_int_equal(onv_noted(&model->nodes.at[0])->n_parameters, 0);
    built_done(model, file);
}

TEST(the_last_note_of_a_node_is_used)
{
    msg *graph = m_graph("x", "y"), *node = m_node("Relu", "r", "x", "y");
    for (unsigned i = 0; i < 3; i++) {
        char scopes[64];
        snprintf(scopes, sizeof scopes, "['', 'net.%u', 'relu_%u']", i, i);
        m_put(node, N_METADATA, m_pair(NOTE "name_scopes", scopes));
        m_put(node, N_METADATA,
              m_pair(NOTE "class_hierarchy", "['Net', 'A', 'aten.relu.default']"));
    }
    m_put(graph, G_NODE, node);
    msg *file = m_model(graph);
    onv_model *model = built_load(file);
    assert_string_equal(onv_noted(&model->nodes.at[0])->scope, "net.2");
    assert_string_equal(onv_noted(&model->nodes.at[0])->source_op, "relu_2");
    assert_string_equal(onv_noted(&model->nodes.at[0])->aten_op, "aten.relu.default");
    built_done(model, file);
}

TEST(slices_are_left_out_of_paths)
{
    static const struct {
        const char *scopes, *scope, *calls;
    } cases[] = {
        {"['', 'f.slice(4, 10, None).conv1', 'relu']", "f.conv1", "['', 'f.conv1'"},
        {"['', 'a.slice().slice(1).b.slice()', 'relu']", "a.b", "['', 'a.b'"},
        {"['', 'a.sl.slice()ice(b)', 'relu']", "a.slice(b)", "['', 'a.slice(b)'"},
        {"['', 'a.slice(b', 'relu']", "a.slice(b", "['', 'a.slice(b'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        msg *graph = m_graph("x", "y"), *node = m_node("Relu", "r", "x", "y");
        m_put(node, N_METADATA, m_pair(NOTE "name_scopes", cases[i].scopes));
        m_put(graph, G_NODE, node);
        msg *file = m_model(graph);
        onv_model *model = built_load(file);
        assert_string_equal(onv_noted(&model->nodes.at[0])->scope, cases[i].scope);
        assert_string_equal(onv_noted(&model->nodes.at[0])->calls, cases[i].calls);
        built_done(model, file);
    }
}

/* The innermost line that is not PyTorch's own, with its folder. */
TEST(lines_of_python)
{
#define FRAME(path, line) "File \"" path "\", line " line ", in forward\n    y = f(x)\n"
    static const struct {
        const char *trace, *line;
    } cases[] = {
        {FRAME("/home/me/net/model.py", "12") FRAME("/home/me/net/block.py", "7"),
         "net/block.py:7"},
        {FRAME("model.py", "12") FRAME("/usr/lib/site-packages/torch/nn/modules/conv.py", "548"),
         "model.py:12"},
        {FRAME("/usr/lib/site-packages/torch/nn/modules/conv.py", "548"), "modules/conv.py:548"},
        {"no frame of any file", NULL},
    };
#undef FRAME
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        msg *graph = m_graph("x", "y"), *node = m_node("Relu", "r", "x", "y");
        m_put(node, N_METADATA, m_pair(NOTE "name_scopes", "['', 'a', 'relu']"));
        m_put(node, N_METADATA, m_pair(NOTE "stack_trace", cases[i].trace));
        m_put(graph, G_NODE, node);
        msg *file = m_model(graph);
        onv_model *model = built_load(file);
        const char *line = onv_noted(&model->nodes.at[0])->line;
        assert_int_equal(line == NULL, cases[i].line == NULL);
        if (line != NULL) assert_string_equal(line, cases[i].line);
        built_done(model, file);
    }
}

/* --- Text -------------------------------------------------------------------------------------- */

TEST(parts_end_where_the_text_ends)
{
    const char bytes[] = {'a', ',', ',', 'b', ','}; /* nothing behind it may be read */
    OWNED_TEXT exact = malloc(sizeof bytes);
    assert_non_null(exact);
    memcpy(exact, bytes, sizeof bytes);
    onv_text rest = {exact, sizeof bytes}, part;
    static const size_t lengths[] = {1, 0, 1};
    for (size_t i = 0; i < 3; i++) {
        assert_true(onv_next_part(&rest, ',', &part));
        assert_int_equal(part.length, lengths[i]);
    }
    assert_false(onv_next_part(&rest, ',', &part));
    rest = (onv_text){exact, sizeof bytes};
    assert_int_equal(onv_text_from(rest, ",b").length, 3);
    assert_int_equal(onv_text_from(rest, ",b,c").length, 0);
    assert_int_equal(onv_text_behind(rest, "b").length, 1);
    assert_int_equal(onv_text_last_word((onv_text){exact, 4}).length, 1);
    assert_false(onv_next_quoted(&rest, &part));
}

TEST(frames_of_a_trace)
{
    onv_text rest = onv_text_of("File \"a.py\", line 12, in forward\n    y = f(x)\n"
                                "File \"b.py\", in g\n"
                                "File \"c.py\", line x, in g\n"
                                "  File \"d.py\", line 3, in forward\n"
                                "File \"<eval_with_key>.7\", line 4, in g");
    static const char *const expected[] = {"a.py|12|forward|y = f(x)|", "d.py|3|forward||",
                                           "<eval_with_key>.7|4|g||"};
    for (size_t i = 0; i < 3; i++) {
        onv_trace_frame f;
        char text[100];
        assert_true(onv_next_frame(&rest, &f));
        snprintf(text, sizeof text, "%.*s|%.*s|%.*s|%.*s|", (int)f.path.length, f.path.at,
                 (int)f.line.length, f.line.at, (int)f.function.length, f.function.at,
                 (int)f.code.length, f.code.length > 0 ? f.code.at : "");
        assert_string_equal(text, expected[i]);
    }
    onv_trace_frame f;
    assert_false(onv_next_frame(&rest, &f));
}

/* --- Cost -------------------------------------------------------------------------------------- */

/* A node whose note is nothing but these bytes, again and again, is read in time that is linear in its length. 8 MiB of
 * them take 0.1 s; what is quadratic in one note took 15 s. */
TEST(notes_of_one_pattern_are_read_in_no_time)
{
    enum { LENGTH = 64000, NODES = 128 };
    static const struct {
        const char *key, *begin, *pattern;
    } cases[] = {
        {NOTE "stack_trace", "", "File \""},
        {NOTE "stack_trace", "", "A.apply("},
        {NOTE "stack_trace", "File \"a\", line 1, in forward\n", "x.f("},
        {NOTE "stack_trace", "File \"a\", line 1, in forward\n", "x  ="},
        {NOTE "name_scopes", "['", ".slice()"},
        {NOTE "fx_node", "](args = (", "%clone"},
    };
    OWNED_TEXT text = malloc(LENGTH + 100);
    assert_non_null(text);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        msg *graph = m_graph("x", "y0");
        size_t used = strlen(cases[i].begin);
        memcpy(text, cases[i].begin, used + 1);
        for (size_t n = strlen(cases[i].pattern); used < LENGTH; used += n)
            memcpy(text + used, cases[i].pattern, n + 1);
        for (unsigned k = 0; k < NODES; k++) {
            char output[16];
            snprintf(output, sizeof output, "%s%u", k + 1 < NODES ? "v" : "y",
                     k + 1 < NODES ? k : 0);
            msg *node = m_node("Relu", "r", "x", output);
            m_put(node, N_METADATA, m_pair(NOTE "name_scopes", "['', 'a', 'a.b', 'relu']"));
            m_put(node, N_METADATA,
                  m_pair(NOTE "class_hierarchy", "['N', 'A', 'B', 'aten.relu.x']"));
            m_put(node, N_METADATA, m_pair(cases[i].key, text));
            m_put(graph, G_NODE, node);
        }
        msg *file = m_model(graph);
        clock_t before = clock();
        onv_model *model = built_load(file);
        double seconds = (double)(clock() - before) / CLOCKS_PER_SEC;
        if (seconds > 3) fail_msg("'%s' took %.1f s", cases[i].pattern, seconds);
        built_done(model, file);
    }
}
