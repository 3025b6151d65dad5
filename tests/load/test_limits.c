/* Limits that need a model of their own to be met: each names its option, and the option helps. */
#include <stdlib.h>
#include <time.h>

#include "base/quota.h"
#include "load/bytes.h"
#include "load/limits.h"
#include "load/load.h"
#include "onnxvram/onnxvram.h"
#include "support/test.h"

static onv_status analyse(const msg *file, const onv_options *options, onv_error *error)
{
    onv_analysis *analysis;
    onv_status status =
        onv_analysis_new_from_memory(file->at, file->count, NULL, options, &analysis, error);
    onv_analysis_destroy(analysis);
    return status;
}

static void expect(onv_status status, onv_status wanted, const onv_error *error, const char *part)
{
    if (status != wanted || strstr(error->message, part) == NULL)
        fail_msg("%s: '%s', not '%s'", onv_status_name(status), error->message, part);
}

static msg *concat(const char *inputs, const char *output)
{
    msg *node = m_node("Concat", "join", inputs, output);
    m_put(node, N_ATTR, m_attr_int("axis", 0));
    return node;
}

/* The body of a loop whose three states change places, with another such loop inside: what is known
 * of them settles after some rounds only, at every level anew. */
static msg *turning_body(int levels)
{
    msg *body = m_graph("i go a b c", "go b c a");
    if (levels > 1) {
        msg *loop = m_node("Loop", "loop", "trips start x y z", "d e f");
        m_put(loop, N_ATTR, m_attr_graph("body", turning_body(levels - 1)));
        m_put(body, G_NODE, loop);
    }
    return body;
}

/* What nobody limits grows with the file; what somebody limits does not. */
TEST(memory_grows_with_the_file)
{
    enum { BYTES = 64 << 20, HEAD = 16 };
    const size_t fallback = (size_t)ONV_DEFAULT_ARENA_BYTES;
    msg *file = m_model(m_graph("x:f32[2]", "x"));
    unsigned char *data = calloc(1, file->count + HEAD + BYTES);
    assert_non_null(data);
    memcpy(data, file->at, file->count);
    memcpy(data + file->count, "\xa2\x06\x80\x80\x80\x20", 6); /* field 100, BYTES long */
    const size_t bytes = file->count + 6 + BYTES;
    const onv_limits given = {.struct_size = sizeof given, .arena_bytes = fallback};
    const struct {
        const onv_limits *limits;
        size_t bytes, memory;
    } cases[] = {
        {NULL, bytes, bytes * 8}, {NULL, file->count, fallback}, {&given, bytes, fallback}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        onv_quota quota = {.limit = fallback}, *before = onv_quota_enter(&quota);
        onv_model model;
        onv_error error = {0};
        onv_status status =
            onv_load_memory(data, cases[i].bytes, NULL, cases[i].limits, &model, &error);
        if (status == ONV_OK) onv_model_cleanup(&model);
        onv_quota_enter(before);
        expect(status, ONV_OK, &error, "");
        assert_int_equal(quota.limit, cases[i].memory);
    }
    free(data);
    m_free(file);
    assert_int_equal(onv_limits_memory(NULL, UINT64_MAX), (uint64_t)2 << 30);
}

TEST(loops_in_loops)
{
    msg *graph = m_graph("trips:i64 start x:f32[2] y:f32[3] z:f32[3,4]", "d");
    msg *loop = m_node("Loop", "outer", "trips start x y z", "d e f");
    m_put(loop, N_ATTR, m_attr_graph("body", turning_body(8)));
    m_put(graph, G_NODE, loop);
    msg *file = m_model(graph);
    onv_options options = onv_options_default();
    onv_limits limits = onv_limits_default();
    options.limits = &limits;
    onv_error error;
    limits.node_runs = 1;
    expect(analyse(file, &options, &error), ONV_ERR_LIMIT, &error, "--limit node-runs=N raises it");
    limits.node_runs = 0;
    assert_int_equal(analyse(file, &options, &error), ONV_OK);
    m_free(file);
}

/* The size of a sum of two dims is an expression of more than two parts. */
TEST(long_expressions)
{
    msg *graph = m_graph("a:f32[n] b:f32[m]", "y");
    m_put(graph, G_NODE, concat("a b", "y"));
    msg *file = m_model(graph);
    onv_options options = onv_options_default();
    onv_limits limits = onv_limits_default();
    options.limits = &limits;
    for (uint32_t parts = 2; parts <= 4; parts += 2) {
        onv_analysis *analysis;
        onv_diagnostic d = {.code = "", .message = ""};
        bool found = false;
        limits.expression = parts;
        assert_int_equal(
            onv_analysis_new_from_memory(file->at, file->count, NULL, &options, &analysis, NULL),
            ONV_OK);
        for (size_t i = 0; !found && onv_analysis_diagnostic(analysis, i, &d); i++)
            found = strcmp(d.code, "expression-too-large") == 0;
        assert_int_equal(found, parts == 2);
        if (found) assert_non_null(strstr(d.message, "--limit expression=N"));
        onv_analysis_destroy(analysis);
    }
    m_free(file);
}

TEST(contents_that_are_followed)
{
    static const double numbers[] = {1, 2, 3, 4};
    onv_input_value value = {.name = "x", .numbers = numbers, .count = 4};
    msg *graph = m_graph("x:i64[4]", "y");
    m_put(graph, G_NODE, m_node("ConstantOfShape", "n", "x", "y"));
    msg *file = m_model(graph);
    onv_options options = onv_options_default();
    onv_limits limits = onv_limits_default();
    options.limits = &limits;
    onv_error error;
    options.input_values = &value;
    options.n_input_values = 1;
    limits.known_elems = 3;
    expect(analyse(file, &options, &error), ONV_ERR_LIMIT, &error,
           "--limit known-elems=N raises it");
    limits.known_elems = 4;
    assert_int_equal(analyse(file, &options, &error), ONV_OK);
    m_free(file);
}

/* --- Searches that end before they are done ----------------------------------------------------- */

typedef struct patience {
    int polls, most;
    double seconds; /* that each question takes */
} patience;

static bool is_cancelled(void *context)
{
    patience *p = context;
    struct timespec pause = {.tv_sec = (time_t)p->seconds,
                             .tv_nsec = (long)((p->seconds - (time_t)p->seconds) * 1e9)};
    nanosleep(&pause, NULL);
    return p->polls++ >= p->most;
}

TEST(searches_can_be_ended)
{
    msg *graph = m_graph("x:f32[n,4]", "y");
    m_put(graph, G_NODE, m_node("Relu", "n", "x", "y"));
    msg *file = m_model(graph);
    onv_options options = onv_options_default();
    onv_limits limits = onv_limits_default();
    options.limits = &limits;
    onv_error error;
    patience p = {.most = 1000000};
    options.budget = 1 << 20; /* less than a context, so that of what is live alone */
    options.runtimes = "ideal";
    options.max_batch = true;
    options.cancelled = is_cancelled;
    options.cancel_context = &p;
    assert_int_equal(analyse(file, &options, &error), ONV_OK);
    assert_true(p.polls > 10);
    for (int most = p.polls - 1; most >= 0; most -= 3) {
        p = (patience){.most = most};
        expect(analyse(file, &options, &error), ONV_ERR_CANCELLED, &error, "cancelled");
        assert_int_equal(p.polls, most + 1); /* not asked again */
    }
    limits.seconds = 1;
    p = (patience){.most = 1000000, .seconds = 0.6};
    expect(analyse(file, &options, &error), ONV_ERR_LIMIT, &error, "--limit seconds=N raises it");
    assert_int_equal(p.polls, 2);
    m_free(file);
}

/* Many programs are built to find plans of checkpoints; each asks. */
TEST(plans_of_training_can_be_ended)
{
    const char *path = ONV_SOURCE_DIR "/samples/vgg16.onnx";
    onv_analysis *analysis;
    onv_error error;
    patience p = {.most = 1000000};
    onv_options options = onv_options_default();
    options.batch = 2;
    options.train = "sgd";
    options.checkpoint = "all";
    options.cancelled = is_cancelled;
    options.cancel_context = &p;
    assert_int_equal(onv_analysis_new(path, &options, &analysis, &error), ONV_OK);
    onv_analysis_destroy(analysis);
    assert_true(p.polls > 20);
    for (int most = p.polls - 1; most >= 0; most -= 5) {
        p = (patience){.most = most};
        expect(onv_analysis_new(path, &options, &analysis, &error), ONV_ERR_CANCELLED, &error,
               "cancelled");
        assert_int_equal(p.polls, most + 1);
    }
}
