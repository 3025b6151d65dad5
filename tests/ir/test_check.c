/* The order of graphs: what is in order stays, what is not is sorted, cycles are named. */
#include "ir/check.h"
#include "support/test.h"

/* Models are written as nodes "name:inputs>outputs" with one letter per value, in graph 0 or, with
 * a letter of a node in front ("b/name:..."), in the subgraph of that node. */
typedef struct fixture {
    onv_model model;
    onv_error err;
    uint32_t values[128]; /* by letter: index + 1 */
} fixture;

static onv_graph_id graph_of_owner(fixture *f, char owner)
{
    onv_model *m = &f->model;
    if (owner == '\0') return (onv_graph_id){0};
    for (uint32_t g = 1; g < m->graphs.count; g++)
        if (onv_model_node(m, m->graphs.at[g].owner)->name[0] == owner) return (onv_graph_id){g};
    onv_graph graph = {.name = "inner", .owner_attr = "body", .owner = ONV_NO_NODE};
    for (uint32_t n = 0; n < m->nodes.count; n++)
        if (m->nodes.at[n].name[0] == owner) graph.owner = (onv_node_id){n};
    assert_true(onv_is_node(graph.owner));
    assert_true(onv_vec_push(&m->graphs, graph));
    return (onv_graph_id){(uint32_t)m->graphs.count - 1};
}

static onv_value_id value_of(fixture *f, char letter)
{
    return (onv_value_id){f->values[(int)letter] - 1}; /* 0 - 1 is no value */
}

static void define(fixture *f, char letter, onv_graph_id graph, onv_node_id producer, uint32_t k)
{
    onv_value value = {.graph = graph, .producer = producer, .output_index = k};
    value.name = onv_arena_strndup(&f->model.arena, &letter, 1);
    assert_true(onv_vec_push(&f->model.values, value));
    f->values[(int)letter] = (uint32_t)f->model.values.count;
}

/* Adds a node without its inputs, which may be defined later. */
static void add_node(fixture *f, const char *text)
{
    onv_model *m = &f->model;
    char owner = text[1] == '/' ? text[0] : '\0';
    const char *name = owner != '\0' ? text + 2 : text, *outputs = strchr(text, '>') + 1;
    onv_node node = {.op_type = "Op", .domain = "", .graph = graph_of_owner(f, owner)};
    onv_node_id id = {(uint32_t)m->nodes.count};
    node.name = onv_arena_strndup(&m->arena, name, 1);
    node.n_outputs = (uint32_t)strlen(outputs);
    node.outputs = ONV_ARENA_ARRAY(&m->arena, onv_value_id, node.n_outputs);
    for (uint32_t k = 0; k < node.n_outputs; k++) {
        if (f->values[(int)outputs[k]] == 0) define(f, outputs[k], node.graph, id, k);
        node.outputs[k] = value_of(f, outputs[k]);
    }
    assert_true(onv_vec_push(&m->nodes, node));
}

static void add_inputs(fixture *f, onv_node_id id, const char *text)
{
    onv_node *node = onv_model_node(&f->model, id);
    const char *inputs = strchr(text, ':') + 1;
    node->n_inputs = (uint32_t)(strchr(text, '>') - inputs);
    node->inputs = ONV_ARENA_ARRAY(&f->model.arena, onv_value_id, node->n_inputs);
    for (uint32_t k = 0; k < node->n_inputs; k++) node->inputs[k] = value_of(f, inputs[k]);
}

static void list_nodes(fixture *f)
{
    onv_model *m = &f->model;
    for (uint32_t g = 0; g < m->graphs.count; g++) {
        onv_graph *graph = &m->graphs.at[g];
        graph->nodes = ONV_ARENA_ARRAY(&m->arena, onv_node_id, m->nodes.count);
        for (uint32_t n = 0; n < m->nodes.count; n++)
            if (m->nodes.at[n].graph.index == g) graph->nodes[graph->n_nodes++].index = n;
    }
}

static fixture *model_of(const char *const *nodes, size_t n)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    onv_model_init(&f->model, SIZE_MAX);
    onv_graph main_graph = {.name = "", .owner = ONV_NO_NODE};
    assert_true(onv_vec_push(&f->model.graphs, main_graph));
    define(f, 'x', (onv_graph_id){0}, ONV_NO_NODE, 0);
    for (size_t i = 0; i < n; i++) add_node(f, nodes[i]);
    for (size_t i = 0; i < n; i++) add_inputs(f, (onv_node_id){(uint32_t)i}, nodes[i]);
    list_nodes(f);
    return f;
}

#define MODEL(...)                                                                                 \
    model_of((const char *const[]){__VA_ARGS__},                                                   \
             sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void done(fixture *f)
{
    onv_model_cleanup(&f->model);
    free(f);
}

static const char *order(const fixture *f, uint32_t graph, char text[32])
{
    const onv_graph *g = &f->model.graphs.at[graph];
    for (uint32_t i = 0; i < g->n_nodes; i++)
        text[i] = onv_model_node(&f->model, g->nodes[i])->name[0];
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
    fixture *f = MODEL("b:x>r", "c:x>q", "b/i:x>s");
    onv_graph *inner = &f->model.graphs.at[1];
    inner->outputs = ONV_ARENA_ARRAY(&f->model.arena, onv_value_id, 1);
    inner->outputs[inner->n_outputs++] = value_of(f, 'q');
    expect(f, "cb", "i");
}

TEST(cycles)
{
    refuse(MODEL("a:x>p", "b:r>q", "c:q>r", "d:r>s"), "a cycle of 2 nodes: 'c' needs 'b' needs 'c'",
           "c");
    refuse(MODEL("a:a>a"), "node 'a' needs its own output", "a");
    refuse(MODEL("b:x>r", "b/i:r>s"), "node 'b' needs its own output", "b");
    refuse(MODEL("b:x>r", "c:r>q", "b/i:q>s"), "a cycle of 2 nodes: 'c' needs 'b' needs 'c'", "c");
    refuse(MODEL("b:x>y", "b/i:t>s", "b/j:s>t"), "a cycle of 2 nodes: 'j' needs 'i' needs 'j'",
           "j");
    refuse(MODEL("a:g>a", "b:a>b", "c:b>c", "d:c>d", "e:d>e", "f:e>f", "g:f>g"),
           "a cycle of 7 nodes: 'g' needs 'f' needs 'e' needs 'd' needs 'c' needs ... needs 'g'",
           "g");
}

TEST(values_defined_twice)
{
    refuse(MODEL("a:x>p", "b:x>p"), "value 'p' is defined twice: by 'b' and by 'a'", "b");
    refuse(MODEL("a:x>pp"), "value 'p' is defined twice: by 'a' and by 'a'", "a");
    refuse(MODEL("a:x>x"), "value 'x' is defined twice: by 'a' and by the graph", "a");
}

TEST(values_out_of_sight)
{
    refuse(MODEL("b:x>r", "b/i:x>s", "c:s>q"), "value 's' is used outside its scope", "");
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
