/* The order of graphs: what is in order stays, what is not is sorted, cycles are named. What is defined twice or out of sight has
 * no file (tests/load/test_build.c). */
#include "ir/check.h"
#include "load/load.h"
#include "support/onnx_writer.h"
#include "support/test.h"

/* Models are nodes "name:inputs>outputs" with one letter per value, in graph 0 or, with a letter of a node in front
 * ("b/name:..."), in the subgraph of that node. */
typedef struct fixture {
    model *file;
    onv_model model;
    onv_error err;
} fixture;

/* "ab" is "a b". */
static const char *apart(const char *letters, size_t n, char text[64])
{
    for (size_t i = 0; i < n; i++) sprintf(text + 2 * i, i + 1 < n ? "%c " : "%c", letters[i]);
    if (n == 0) text[0] = '\0';
    return text;
}

/* The nodes of the graph that `owner` has; '\0': the main one. A subgraph stands before its owner. */
static void add_nodes(model *m, const char *const *nodes, size_t n, char owner)
{
    for (size_t i = 0; i < n; i++) {
        bool is_inner = nodes[i][1] == '/';
        const char *node = is_inner ? nodes[i] + 2 : nodes[i], *end = strchr(node, '>');
        char in[64], out[64], name[2] = {node[0]}, inner[3] = {node[0], '/'};
        if ((is_inner ? nodes[i][0] : '\0') != owner) continue;
        bool owns = false;
        for (size_t k = 0; k < n; k++) owns |= strncmp(nodes[k], inner, 2) == 0;
        if (owns) model_begin(m, "body");
        if (owns) add_nodes(m, nodes, n, node[0]);
        if (owns && strchr(end, '=') != NULL) model_output(m, strchr(end, '=') + 1, "f32");
        if (owns) model_end(m);
        apart(node + 2, (size_t)(end - node - 2), in);
        model_node(m, "z::F", name, in, apart(end + 1, strcspn(end + 1, "="), out), "");
    }
}

static fixture *model_of(const char *const *nodes, size_t n)
{
    fixture *f = calloc(1, sizeof *f);
    size_t bytes;
    assert_non_null(f);
    f->file = model_read(17, "import z 1", "in x f32[4]");
    add_nodes(f->file, nodes, n, '\0');
    const unsigned char *data = model_bytes(f->file, &bytes);
    if (onv_load_memory(data, bytes, NULL, NULL, &f->model, &f->err) != ONV_OK)
        fail_msg("%s", f->err.message);
    return f;
}

#define MODEL(...)                                                                                 \
    model_of((const char *const[]){__VA_ARGS__},                                                   \
             sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void done(fixture *f)
{
    onv_model_cleanup(&f->model);
    model_free(f->file);
    free(f);
}

static const char *order(const fixture *f, uint32_t graph, char text[32])
{
    const onv_graph *g = &f->model.graphs.at[graph];
    for (uint32_t i = 0; i < g->n_nodes; i++)
        text[i] = strrchr(onv_model_node(&f->model, g->nodes[i])->name, '\0')[-1];
    text[g->n_nodes] = '\0';
    return text;
}

static void expect(fixture *f, const char *nodes, const char *inner)
{
    char text[32];
    if (onv_graph_check(&f->model, &f->err) != ONV_OK) fail_msg("%s", f->err.message);
    assert_string_equal(order(f, 0, text), nodes);
    if (inner != NULL) assert_string_equal(order(f, 1, text), inner);
    done(f);
}

static void refuse(fixture *f, const char *text, const char *node)
{
    assert_int_equal(onv_graph_check(&f->model, &f->err), ONV_ERR_MODEL);
    assert_string_equal(f->err.message, text);
    assert_string_equal(f->err.node, node);
    done(f);
}

TEST(what_is_in_order_stays)
{
    fixture *f = MODEL("a:x>p", "b:p>q", "c:xq>r", "d:x>s");
    assert_int_equal(onv_graph_check(&f->model, &f->err), ONV_OK);
    assert_int_equal(f->model.diags.count, 0);
    expect(f, "abcd", NULL);
    onv_model empty;
    onv_model_init(&empty, SIZE_MAX);
    assert_int_equal(onv_graph_check(&empty, NULL), ONV_OK);
    onv_model_cleanup(&empty);
}

TEST(what_is_not_is_sorted)
{
    fixture *f = MODEL("a:q>r", "b:p>q", "c:x>p");
    assert_int_equal(onv_graph_check(&f->model, &f->err), ONV_OK);
    assert_int_equal(f->model.diags.count, 1);
    assert_string_equal(f->model.diags.at[0].code, "unsorted-graph");
    expect(f, "cba", NULL);
    /* The same input twice; several outputs; an absent input. */
    expect(MODEL("a:pp>r", "b:x-x>pq", "c:q>s"), "bac", NULL);
}

TEST(sorting_keeps_the_files_order_where_it_can)
{
    /* e needs h, which stands last; nothing else has to move. */
    expect(MODEL("a:x>a", "b:x>b", "e:h>e", "c:x>c", "f:e>f", "d:x>d", "h:x>h"), "abcdhef", NULL);
}

TEST(subgraphs_use_for_their_owner)
{
    /* i reads q inside b's subgraph, so b has to wait for c. */
    expect(MODEL("a:x>p", "b:p>r", "c:x>q", "b/i:q>s"), "acb", "i");
    expect(MODEL("a:x>p", "b:p>r", "b/i:t>s", "b/j:p>t"), "ab", "ji");
    /* Two levels down. */
    expect(MODEL("a:x>p", "b:p>r", "c:x>q", "b/i:p>s", "i/k:q>t"), "acb", "i");
    /* A value of the middle level, used on the level below. */
    expect(MODEL("b:x>r", "b/i:x>s", "b/j:x>t", "i/k:t>u"), "b", "ji");
}

TEST(outputs_of_subgraphs_use_too)
{
    expect(MODEL("b:x>r=q", "c:x>q", "b/i:x>s"), "cb", "i");
}

TEST(cycles)
{
    refuse(MODEL("a:x>p", "b:r>q", "c:q>r", "d:r>s"), "a cycle of 2 nodes: 'c' needs 'b' needs 'c'",
           "c");
    refuse(MODEL("a:a>a"), "node 'a' needs its own output", "a");
    refuse(MODEL("b:x>r", "b/i:r>s"), "node 'b' needs its own output", "b");
    refuse(MODEL("b:x>r", "c:r>q", "b/i:q>s"), "a cycle of 2 nodes: 'c' needs 'b' needs 'c'", "c");
    refuse(MODEL("b:x>y", "b/i:t>s", "b/j:s>t"),
           "a cycle of 2 nodes: 'b/body/j' needs 'b/body/i' needs 'b/body/j'", "b/body/j");
    refuse(MODEL("a:g>a", "b:a>b", "c:b>c", "d:c>d", "e:d>e", "f:e>f", "g:f>g"),
           "a cycle of 7 nodes: 'g' needs 'f' needs 'e' needs 'd' needs 'c' needs ... needs 'g'",
           "g");
}

/* Long chains in the worst order, and against a plain definition of the order that is wanted. */
TEST(random_graphs)
{
    uint32_t random = 1;
    for (int round = 0; round < 300; round++) {
        enum { N = 20 };
        char texts[N][16];
        const char *list[N];
        uint32_t rank[N], needs[N];
        for (uint32_t i = 0; i < N; i++) rank[i] = i;
        for (uint32_t i = N - 1; i > 0; i--) {
            uint32_t j = (random = random * 1664525 + 1013904223) % (i + 1), swap = rank[i];
            rank[i] = rank[j];
            rank[j] = swap;
        }
        for (uint32_t i = 0; i < N; i++) {
            needs[i] = N;
            for (uint32_t j = 0; j < N; j++) {
                random = random * 1664525 + 1013904223;
                if (rank[j] < rank[i] && random >> 29 == 0) needs[i] = j;
            }
            snprintf(texts[i], sizeof texts[i], "%c:%c>%c", 'A' + (int)i,
                     needs[i] < N ? 'A' + (int)needs[i] : 'x', 'A' + (int)i);
            list[i] = texts[i];
        }
        fixture *f = model_of(list, N);
        assert_int_equal(onv_graph_check(&f->model, &f->err), ONV_OK);
        bool placed[N] = {0};
        for (uint32_t p = 0; p < N; p++) {
            uint32_t want = 0;
            while (placed[want] || (needs[want] < N && !placed[needs[want]])) want++;
            placed[want] = true;
            assert_int_equal(f->model.graphs.at[0].nodes[p].index, want);
        }
        done(f);
    }
}
