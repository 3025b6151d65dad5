#include "ckpt/max_flow.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/quota.h"

/* Edges looked at; graphs of 100,000 operations of networks take some ten million. */
static const uint64_t max_work = UINT64_C(4000000000);

#define NONE UINT32_MAX

onv_status onv_flow_init(onv_flow *flow, uint32_t n_vertices, onv_arena *arena, onv_error *err)
{
    *flow = (onv_flow){.arena = arena, .n_vertices = n_vertices};
    flow->first = ONV_ARENA_ARRAY(arena, uint32_t, n_vertices);
    return flow->first != NULL ? ONV_OK : onv_fail_memory(err);
}

void onv_flow_cleanup(onv_flow *flow)
{
    onv_vec_cleanup(&flow->edges);
}

static void put(onv_flow *flow, uint32_t from, uint32_t to, uint64_t left)
{
    onv_flow_edge edge = {.to = to, .next = flow->first[from], .left = left};
    if (flow->edges.count >= NONE || !onv_vec_push(&flow->edges, edge)) {
        flow->failed = true;
        return;
    }
    flow->first[from] = (uint32_t)flow->edges.count;
}

void onv_flow_connect(onv_flow *flow, uint32_t from, uint32_t to, uint64_t capacity)
{
    if (flow->failed || from == to || capacity == 0) return;
    bool fits = capacity == ONV_FLOW_INFINITE ||
                (onv_u64_add(flow->finite, capacity, &flow->finite) && flow->finite <= INT64_MAX);
    put(flow, from, to, capacity);
    put(flow, to, from, 0);
    flow->failed |= !fits;
}

typedef struct search {
    onv_flow *flow;
    uint32_t source, sink;
    uint32_t *level;   /* by vertex: 1 + its distance from the source; 0: out of reach */
    uint32_t *current; /* by vertex: as `first`, the edges that were not found useless */
    uint32_t *queue;   /* of vertices; then the path's edges */
    uint64_t work;
} search;

/* Along edges of at least this capacity. False where the sink is out of reach. */
static bool find_levels(search *s, uint64_t least)
{
    const onv_flow *f = s->flow;
    uint32_t begin = 0, end = 0;
    for (uint32_t v = 0; v < f->n_vertices; v++) s->level[v] = 0;
    s->level[s->source] = 1;
    s->queue[end++] = s->source;
    while (begin < end && s->level[s->sink] == 0) {
        uint32_t v = s->queue[begin++];
        for (uint32_t e = f->first[v]; e != 0; e = f->edges.at[e - 1].next) {
            const onv_flow_edge *edge = &f->edges.at[e - 1];
            s->work++;
            if (edge->left < least || s->level[edge->to] != 0) continue;
            s->level[edge->to] = s->level[v] + 1;
            s->queue[end++] = edge->to;
        }
    }
    return s->level[s->sink] != 0;
}

/* The next edge from `v` that leads a level on; 0: none. */
static uint32_t step(search *s, uint32_t v)
{
    const onv_flow *f = s->flow;
    for (; s->current[v] != 0; s->current[v] = f->edges.at[s->current[v] - 1].next) {
        const onv_flow_edge *edge = &f->edges.at[s->current[v] - 1];
        s->work++;
        if (edge->left > 0 && s->level[edge->to] == s->level[v] + 1) break;
    }
    return s->current[v];
}

/* Sends what the path's narrowest edge lets through. */
static uint64_t send(search *s, uint32_t n_path)
{
    onv_flow_edge *edges = s->flow->edges.at;
    uint64_t amount = ONV_FLOW_INFINITE;
    for (uint32_t i = 0; i < n_path; i++)
        if (edges[s->queue[i]].left < amount) amount = edges[s->queue[i]].left;
    for (uint32_t i = 0; i < n_path; i++) {
        onv_flow_edge *edge = &edges[s->queue[i]], *back = &edges[s->queue[i] ^ 1];
        if (edge->left != ONV_FLOW_INFINITE) edge->left -= amount;
        if (back->left != ONV_FLOW_INFINITE) back->left += amount;
    }
    s->work += n_path;
    return amount;
}

/* All that fits along the levels; a path goes on from the first edge that it filled. */
static uint64_t block(search *s)
{
    const onv_flow_edge *edges = s->flow->edges.at;
    uint64_t sent = 0;
    uint32_t n_path = 0, v = s->source;
    for (uint32_t i = 0; i < s->flow->n_vertices; i++) s->current[i] = s->flow->first[i];
    for (uint64_t before = s->work; s->work < max_work && onv_work(1 + s->work - before);) {
        before = s->work;
        uint32_t e = v == s->sink ? 0 : step(s, v);
        if (e != 0) {
            s->queue[n_path++] = e - 1;
            v = edges[e - 1].to;
        } else if (v == s->sink) {
            sent += send(s, n_path);
            uint32_t full = 0;
            while (full < n_path && edges[s->queue[full]].left > 0) full++;
            n_path = full;
            v = n_path > 0 ? edges[s->queue[n_path - 1]].to : s->source;
        } else if (n_path > 0) {
            s->level[v] = 0; /* leads nowhere */
            v = edges[s->queue[--n_path] ^ 1].to;
        } else {
            break;
        }
    }
    return sent;
}

/* Vertices from which an edge that is not full leads to the sink. */
static void mark_sink(search *s, bool *at_sink)
{
    const onv_flow *f = s->flow;
    uint32_t begin = 0, end = 0;
    for (uint32_t v = 0; v < f->n_vertices; v++) at_sink[v] = false;
    at_sink[s->sink] = true;
    s->queue[end++] = s->sink;
    while (begin < end) {
        uint32_t v = s->queue[begin++];
        for (uint32_t e = f->first[v]; e != 0; e = f->edges.at[e - 1].next) {
            uint32_t from = f->edges.at[e - 1].to;
            if (at_sink[from] || f->edges.at[(e - 1) ^ 1].left == 0) continue;
            at_sink[from] = true;
            s->queue[end++] = from;
        }
    }
}

onv_status onv_flow_cut(onv_flow *flow, uint32_t source, uint32_t sink, bool *at_sink,
                        uint64_t *capacity, onv_error *err)
{
    search s = {.flow = flow, .source = source, .sink = sink};
    s.level = ONV_ARENA_ARRAY(flow->arena, uint32_t, flow->n_vertices);
    s.current = ONV_ARENA_ARRAY(flow->arena, uint32_t, flow->n_vertices);
    s.queue = ONV_ARENA_ARRAY(flow->arena, uint32_t, flow->n_vertices);
    *capacity = 0;
    if (flow->arena->failed) return onv_fail_memory(err);
    if (flow->failed && flow->finite > INT64_MAX)
        return onv_fail(err, ONV_ERR_OVERFLOW, "the bytes to cut do not fit 63 bits");
    if (flow->failed) return onv_fail_memory(err);
    if (find_levels(&s, ONV_FLOW_INFINITE))
        return onv_fail(err, ONV_ERR_MODEL, "nothing divides source and sink");
    while (find_levels(&s, 1)) {
        *capacity += block(&s);
        ONV_WORK(flow->n_vertices);
        if (s.work >= max_work)
            return onv_fail(err, ONV_ERR_LIMIT, "the cut takes more work than is allowed");
    }
    mark_sink(&s, at_sink);
    return ONV_OK;
}
