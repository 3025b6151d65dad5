/* Minimum cuts, beside every cut of small random graphs. */
#include "ckpt/max_flow.h"
#include "support/test.h"

enum { MAX_VERTICES = 9, MAX_EDGES = 40, GRAPHS = 3000 };

typedef struct edge {
    uint32_t from, to;
    uint64_t capacity;
} edge;

typedef struct graph {
    edge at[MAX_EDGES];
    uint32_t n_edges, n_vertices;
} graph;

static uint32_t random_below(uint64_t *state, uint32_t end)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33) % end;
}

/* The source is 0, the sink 1. */
static graph make(uint64_t *state)
{
    graph g = {.n_vertices = 2 + random_below(state, MAX_VERTICES - 1)};
    g.n_edges = random_below(state, MAX_EDGES);
    for (uint32_t i = 0; i < g.n_edges; i++) {
        g.at[i].from = random_below(state, g.n_vertices);
        g.at[i].to = random_below(state, g.n_vertices);
        uint32_t kind = random_below(state, 8);
        g.at[i].capacity = kind == 0   ? ONV_FLOW_INFINITE
                           : kind == 1 ? UINT64_C(1) << (20 + random_below(state, 30))
                                       : random_below(state, 12);
    }
    return g;
}

/* Of the vertices of `side` everything reaches the sink's side over these; UINT64_MAX: without end. */
static uint64_t capacity_of(const graph *g, uint32_t side)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < g->n_edges; i++) {
        bool crosses = (side >> g->at[i].from & 1) == 0 && (side >> g->at[i].to & 1) == 1;
        if (!crosses) continue;
        if (g->at[i].capacity == ONV_FLOW_INFINITE) return UINT64_MAX;
        sum += g->at[i].capacity;
    }
    return sum;
}

/* The least capacity, and of the sides of the sink with it the smallest one, which is a part of all. */
static uint64_t search(const graph *g, uint32_t *smallest)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t side = 0; side < UINT32_C(1) << g->n_vertices; side++) {
        if ((side & 3) != 2) continue;
        uint64_t capacity = capacity_of(g, side);
        if (capacity == UINT64_MAX || capacity > least) continue;
        *smallest = capacity < least ? side : *smallest & side;
        least = capacity;
    }
    return least;
}

static onv_status cut(const graph *g, uint64_t *capacity, uint32_t *side)
{
    onv_error err = {0};
    onv_arena arena;
    onv_flow flow;
    bool at_sink[MAX_VERTICES] = {false};
    onv_arena_init(&arena, SIZE_MAX);
    assert_int_equal(onv_flow_init(&flow, g->n_vertices, &arena, &err), ONV_OK);
    for (uint32_t i = 0; i < g->n_edges; i++)
        onv_flow_connect(&flow, g->at[i].from, g->at[i].to, g->at[i].capacity);
    onv_status status = onv_flow_cut(&flow, 0, 1, at_sink, capacity, &err);
    onv_flow_cleanup(&flow);
    onv_arena_cleanup(&arena);
    *side = 0;
    for (uint32_t v = 0; v < g->n_vertices; v++) *side |= (uint32_t)at_sink[v] << v;
    return status;
}

TEST(cuts_are_the_least_and_closest_to_the_sink)
{
    uint64_t seed = 1, n_endless = 0, n_cut = 0;
    for (uint32_t i = 0; i < GRAPHS; i++) {
        graph g = make(&seed);
        uint64_t capacity;
        uint32_t side, expected = 0;
        uint64_t least = search(&g, &expected);
        onv_status status = cut(&g, &capacity, &side);
        if (least == UINT64_MAX) {
            assert_int_equal(status, ONV_ERR_MODEL);
            n_endless++;
            continue;
        }
        assert_int_equal(status, ONV_OK);
        assert_int_equal(capacity, least);
        assert_int_equal(side, expected);
        n_cut += least > 0;
    }
    assert_true(n_endless > GRAPHS / 20);
    assert_true(n_cut > GRAPHS / 4);
}

/* A chain of diamonds has 2^n paths. */
TEST(work_does_not_follow_the_paths)
{
    enum { DIAMONDS = 20000 };
    onv_error err = {0};
    onv_arena arena;
    onv_flow flow;
    uint64_t capacity;
    onv_arena_init(&arena, SIZE_MAX);
    assert_int_equal(onv_flow_init(&flow, 3 * DIAMONDS + 1, &arena, &err), ONV_OK);
    bool *at_sink = ONV_ARENA_ARRAY(&arena, bool, 3 * DIAMONDS + 1);
    assert_non_null(at_sink);
    for (uint32_t i = 0; i < DIAMONDS; i++) {
        uint32_t v = 3 * i;
        onv_flow_connect(&flow, v, v + 1, 5 + i % 3);
        onv_flow_connect(&flow, v, v + 2, 7);
        onv_flow_connect(&flow, v + 1, v + 3, 6);
        onv_flow_connect(&flow, v + 2, v + 3, i == 77 ? 1 : ONV_FLOW_INFINITE);
    }
    assert_int_equal(onv_flow_cut(&flow, 0, 3 * DIAMONDS, at_sink, &capacity, &err), ONV_OK);
    assert_int_equal(capacity, 6 + 1);
    assert_true(!at_sink[3 * 77] && at_sink[3 * 78]);
    onv_flow_cleanup(&flow);
    onv_arena_cleanup(&arena);
}

TEST(sums_that_do_not_fit_are_refused)
{
    graph g = {.n_vertices = 3,
               .n_edges = 3,
               .at = {{0, 2, UINT64_C(1) << 62}, {2, 1, UINT64_C(1) << 62}, {0, 1, 1}}};
    uint64_t capacity;
    uint32_t side;
    assert_int_equal(cut(&g, &capacity, &side), ONV_ERR_OVERFLOW);
}
