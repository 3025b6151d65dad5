#include "ckpt/min_cut.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/sort.h"
#include "ckpt/max_flow.h"

/* --- The graph --------------------------------------------------------------------------------- */

static const onv_joint_node *node_at(const onv_cut_graph *g, uint32_t i)
{
    return &g->joint->nodes.at[i];
}

static void mark_needed(onv_cut_graph *g)
{
    for (uint32_t i = g->n; i-- > 0;) {
        const onv_joint_node *node = node_at(g, i);
        g->in_forward[i] |= node->is_output;
        g->is_alive[i] |= g->in_forward[i] || node->fused_read || node->apart_read;
        for (uint32_t k = 0; k < node->n_in; k++) {
            uint32_t in = g->joint->ins.at[node->first_in + k];
            g->in_forward[in] |= g->in_forward[i];
            g->is_alive[in] |= g->is_alive[i];
        }
    }
}

/* Operand `k` of node `i`, if no operand before it is the same; else ONV_JOINT_NONE. Each call in the
 * order of nodes and operands, and from the first one again under another `mark`. */
static uint32_t new_operand(const onv_cut_graph *g, uint32_t i, uint32_t k, uint32_t mark)
{
    uint32_t in = g->joint->ins.at[node_at(g, i)->first_in + k];
    if (g->stamp[in] == mark + i) return ONV_JOINT_NONE;
    g->stamp[in] = mark + i;
    return in;
}

/* Readers that something needs, in order. */
static void list_users(onv_cut_graph *g)
{
    for (uint32_t i = 0; i < g->n; i++)
        for (uint32_t k = 0; k < node_at(g, i)->n_in && g->is_alive[i]; k++) {
            uint32_t in = new_operand(g, i, k, 1);
            if (in != ONV_JOINT_NONE) g->first_user[in + 1]++;
        }
    for (uint32_t i = 0; i < g->n; i++) g->first_user[i + 1] += g->first_user[i];
    for (uint32_t i = 0; i < g->n; i++)
        for (uint32_t k = 0; k < node_at(g, i)->n_in && g->is_alive[i]; k++) {
            uint32_t in = new_operand(g, i, k, g->n + 1);
            if (in != ONV_JOINT_NONE) g->users[g->first_user[in]++] = i;
        }
    for (uint32_t i = g->n; i > 0; i--) g->first_user[i] = g->first_user[i - 1];
    g->first_user[0] = 0;
}

static void measure_distances(onv_cut_graph *g)
{
    for (uint32_t i = g->n; i-- > 0;) {
        const onv_joint_node *node = node_at(g, i);
        if (!g->in_forward[i]) continue; /* 0: it is a part of backward */
        uint32_t least = node->fused_read || node->apart_read ? 0 : ONV_JOINT_NONE;
        for (uint32_t k = g->first_user[i]; k < g->first_user[i + 1]; k++)
            if (g->distance[g->users[k]] < least) least = g->distance[g->users[k]];
        g->distance[i] = least == ONV_JOINT_NONE ? ONV_JOINT_NONE : least + 1;
    }
}

static onv_status make_graph(const onv_joint *joint, onv_arena *arena, onv_cut_graph *g,
                             onv_error *err)
{
    if (joint->nodes.count > UINT32_MAX / 4 || joint->ins.count > UINT32_MAX / 2)
        return onv_fail(err, ONV_ERR_LIMIT, "too many operations to divide");
    *g = (onv_cut_graph){.joint = joint, .arena = arena, .n = (uint32_t)joint->nodes.count};
    g->in_forward = ONV_ARENA_ARRAY(arena, bool, g->n);
    g->is_alive = ONV_ARENA_ARRAY(arena, bool, g->n);
    g->order = ONV_ARENA_ARRAY(arena, uint32_t, g->n);
    g->node_at = ONV_ARENA_ARRAY(arena, uint32_t, g->n);
    g->first_user = ONV_ARENA_ARRAY(arena, uint32_t, (size_t)g->n + 1);
    g->users = ONV_ARENA_ARRAY(arena, uint32_t, joint->ins.count);
    g->distance = ONV_ARENA_ARRAY(arena, uint32_t, g->n);
    g->stamp = ONV_ARENA_ARRAY(arena, uint32_t, g->n);
    g->heap = ONV_ARENA_ARRAY(arena, uint32_t, joint->ins.count + g->n + 1);
    if (arena->failed) return onv_fail_memory(err);
    mark_needed(g);
    list_users(g);
    measure_distances(g);
    for (uint32_t i = 0; i < g->n; i++) {
        if (!g->in_forward[i]) continue;
        g->order[i] = g->n_forward;
        g->node_at[g->n_forward++] = i;
    }
    return ONV_OK;
}

/* --- What may run again ------------------------------------------------------------------------ */

/* With what reads it; or it is no work at all. */
static bool is_fusible(const onv_joint_node *node)
{
    return node->kind == ONV_JOINT_POINTWISE || node->kind == ONV_JOINT_VIEW ||
           node->kind == ONV_JOINT_PART;
}

static bool fuses(const onv_joint_node *maker, const onv_joint_node *reader)
{
    return reader->kind == ONV_JOINT_CAT || (is_fusible(maker) && is_fusible(reader));
}

static bool is_view(const onv_joint_node *node)
{
    return node->kind == ONV_JOINT_VIEW;
}

/* All that reads a value is fused with what made it: nothing would write it otherwise. */
static bool is_materialized(const onv_cut_graph *g, uint32_t i)
{
    const onv_joint_node *node = node_at(g, i);
    if (node->kind == ONV_JOINT_PRIMAL || node->apart_read || node->is_output) return true;
    if (node->fused_read && !is_fusible(node)) return true;
    for (uint32_t k = g->first_user[i]; k < g->first_user[i + 1]; k++)
        if (!fuses(node, node_at(g, g->users[k]))) return true;
    return false;
}

/* A kernel of backward reads the value, or a view of it; to results of the graph its end counts as one. `mark`: of
 * this search alone; the nodes wait in `heap`. */
static bool is_written_in_backward(const onv_cut_graph *g, uint32_t start, uint32_t mark)
{
    uint32_t n = 0;
    if (is_view(node_at(g, start))) return false;
    g->heap[n++] = start;
    while (n > 0) {
        uint32_t i = g->heap[--n];
        const onv_joint_node *node = node_at(g, i);
        if (node->apart_read || node->is_output) return true;
        if (node->fused_read && !is_fusible(node)) return true;
        for (uint32_t k = g->first_user[i]; k < g->first_user[i + 1]; k++) {
            uint32_t user = g->users[k];
            if (!g->in_forward[user] && !fuses(node, node_at(g, user))) return true;
            if (!is_view(node_at(g, user)) || g->stamp[user] == mark) continue;
            g->stamp[user] = mark;
            g->heap[n++] = user;
        }
    }
    return false;
}

/* At least four times smaller than what it reads: cheap to keep. */
static bool reduces(const onv_cut_graph *g, const onv_joint_node *node)
{
    uint64_t read = 0, four;
    if (node->kind == ONV_JOINT_CAT) return false;
    for (uint32_t k = 0; k < node->n_in; k++) {
        uint32_t in = g->joint->ins.at[node->first_in + k];
        read = onv_u64_plus(read, node_at(g, in)->bytes);
    }
    return onv_u64_mul(node->bytes, 4, &four) && four < read;
}

static bool may_not_run(const onv_cut_graph *g, const onv_cut_rules *rules, uint32_t i)
{
    const onv_joint_node *node = node_at(g, i);
    if (node->kind == ONV_JOINT_PRIMAL) return true;
    if (node->kind == ONV_JOINT_PART) return false;
    if (rules->not_listed ? !is_fusible(node) : node->kind == ONV_JOINT_COMPUTE) return true;
    if (rules->materialized_backward && is_written_in_backward(g, i, i + 1)) return true;
    return rules->reductions && reduces(g, node);
}

static bool may_be_banned(const onv_cut_graph *g, const onv_cut_rules *rules, uint32_t i)
{
    return !is_view(node_at(g, i)) && (rules->may_run == NULL || !rules->may_run[i]);
}

/* --- Uses that are far apart ------------------------------------------------------------------- */

typedef struct far_search {
    uint32_t n_heap, mark; /* stamps: mark, reached by what fuses; mark + 1, by what does not */
    uint64_t work;
} far_search;

/* What a search over many uses of one value may look at, all of them together. */
static const uint64_t max_far_work = UINT64_C(500000000);

static void reach(const onv_cut_graph *g, far_search *s, uint32_t node, bool fused)
{
    bool is_new = g->stamp[node] < s->mark;
    if (is_new) onv_smallest_push(g->heap, &s->n_heap, g->order[node]);
    if (!fused)
        g->stamp[node] = s->mark + 1;
    else if (is_new)
        g->stamp[node] = s->mark;
}

/* The place of the first operation, from the readers of `i` on, that is not fused with what made its
 * operand; at most `last`. */
static uint32_t first_unfused(const onv_cut_graph *g, far_search *s, uint32_t i, uint32_t last)
{
    s->n_heap = 0;
    for (uint32_t k = g->first_user[i]; k < g->first_user[i + 1]; k++)
        if (g->in_forward[g->users[k]]) reach(g, s, g->users[k], true);
    while (s->n_heap > 0) {
        uint32_t place = onv_smallest_pop(g->heap, &s->n_heap), node = g->node_at[place];
        if (g->stamp[node] == s->mark + 1) return place;
        for (uint32_t k = g->first_user[node]; k < g->first_user[node + 1]; k++) {
            uint32_t user = g->users[k];
            s->work++;
            if (!g->in_forward[user] || g->order[user] > last) continue;
            reach(g, s, user, fuses(node_at(g, node), node_at(g, user)));
        }
    }
    return last;
}

/* Of the readers of one value those behind an operation that cannot be fused would not be fused with
 * the ones before it, if all ran again. */
static onv_status ban_far_uses(const onv_cut_graph *g, const onv_cut_rules *rules, bool *banned,
                               onv_error *err)
{
    far_search s = {0};
    memset(g->stamp, 0, g->n * sizeof *g->stamp);
    for (uint32_t place = 0; place < g->n_forward; place++) {
        uint32_t i = g->node_at[place], last = 0;
        bool any = false;
        for (uint32_t k = g->first_user[i]; k < g->first_user[i + 1]; k++) {
            if (!g->in_forward[g->users[k]]) continue;
            any = true;
            if (g->order[g->users[k]] > last) last = g->order[g->users[k]];
        }
        if (!any) continue;
        s.mark = 2 * place + 1;
        uint32_t from = first_unfused(g, &s, i, last);
        if (s.work > max_far_work)
            return onv_fail(err, ONV_ERR_LIMIT, "the partition takes more work than is allowed");
        for (uint32_t k = g->first_user[i]; k < g->first_user[i + 1]; k++) {
            uint32_t user = g->users[k];
            if (g->in_forward[user] && g->order[user] > from &&
                fuses(node_at(g, i), node_at(g, user)) && may_be_banned(g, rules, user))
                banned[user] = true;
        }
    }
    return ONV_OK;
}

/* --- Long chains ------------------------------------------------------------------------------- */

enum { LONG_CHAIN = 100 };

/* Every so many operations of a long chain of pointwise ones something is kept, where nothing else waits
 * in the heap: what two paths lead to stands there twice. A node is looked at from the first start that
 * comes to it. */
static void ban_long_chains(const onv_cut_graph *g, const onv_cut_rules *rules, bool *banned)
{
    memset(g->stamp, 0, g->n * sizeof *g->stamp);
    for (uint32_t start = 0; start < g->n_forward; start++) {
        uint32_t n = 0;
        onv_smallest_push(g->heap, &n, start);
        while (n > 0) {
            uint32_t place = onv_smallest_pop(g->heap, &n), i = g->node_at[place];
            if (g->stamp[i] != 0) continue;
            g->stamp[i] = 1;
            if (place > start + LONG_CHAIN && n == 0) {
                if (may_be_banned(g, rules, i)) banned[i] = true;
                break;
            }
            for (uint32_t k = g->first_user[i]; k < g->first_user[i + 1]; k++) {
                uint32_t user = g->users[k];
                if (g->in_forward[user] && !banned[user] && fuses(node_at(g, i), node_at(g, user)))
                    onv_smallest_push(g->heap, &n, g->order[user]);
            }
        }
    }
}

/* --- The cut ----------------------------------------------------------------------------------- */

/* The farther from backward, the dearer. */
static uint64_t weight_of(const onv_cut_graph *g, uint32_t i)
{
    static const double each = 1.1;
    enum { FARTHEST = 100 };
    const onv_joint_node *node = node_at(g, i);
    if (node->is_free) return 0;
    if (node->is_tuple) return ONV_FLOW_INFINITE;
    uint32_t distance = g->distance[i] > FARTHEST ? FARTHEST : g->distance[i];
    double weight = floor((double)node->bytes * pow(each, distance > 0 ? distance : 1));
    if (!is_materialized(g, i)) weight *= 2;
    return weight < 0x1p62 ? (uint64_t)weight : UINT64_C(1) << 62;
}

static onv_status cut(const onv_cut_graph *g, const bool *banned, bool *saved, onv_arena *arena,
                      onv_flow *flow, onv_error *err)
{
    uint32_t source = 2 * g->n, sink = source + 1;
    uint64_t capacity;
    bool *at_sink = ONV_ARENA_ARRAY(arena, bool, 2 * (size_t)g->n + 2);
    if (at_sink == NULL) return onv_fail_memory(err);
    ONV_TRY(onv_flow_init(flow, 2 * g->n + 2, arena, err));
    for (uint32_t i = 0; i < g->n; i++) {
        if (!g->is_alive[i]) continue;
        if (banned[i]) onv_flow_connect(flow, source, 2 * i, ONV_FLOW_INFINITE);
        onv_flow_connect(flow, 2 * i, 2 * i + 1, weight_of(g, i));
        if (node_at(g, i)->fused_read || node_at(g, i)->apart_read)
            onv_flow_connect(flow, 2 * i + 1, sink, ONV_FLOW_INFINITE);
        for (uint32_t k = g->first_user[i]; k < g->first_user[i + 1]; k++)
            onv_flow_connect(flow, 2 * i + 1, 2 * g->users[k], ONV_FLOW_INFINITE);
    }
    ONV_TRY(onv_flow_cut(flow, source, sink, at_sink, &capacity, err));
    for (uint32_t i = 0; i < g->n; i++)
        saved[i] = g->is_alive[i] && !at_sink[(size_t)2 * i] && at_sink[(size_t)2 * i + 1];
    return ONV_OK;
}

onv_status onv_cut_solve(const onv_cut_graph *g, const onv_cut_rules *rules, bool *saved,
                         bool *banned, onv_error *err)
{
    memset(g->stamp, 0, g->n * sizeof *g->stamp);
    for (uint32_t i = 0; i < g->n; i++)
        banned[i] = g->is_alive[i] &&
                    (g->in_forward[i] || node_at(g, i)->kind == ONV_JOINT_PRIMAL) &&
                    may_be_banned(g, rules, i) && may_not_run(g, rules, i);
    if (rules->used_far_apart) ONV_TRY(ban_far_uses(g, rules, banned, err));
    if (rules->long_chains) ban_long_chains(g, rules, banned);
    onv_flow flow = {0};
    onv_arena arena;
    onv_arena_init(&arena, SIZE_MAX);
    onv_status status = cut(g, banned, saved, &arena, &flow, err);
    onv_flow_cleanup(&flow);
    onv_arena_cleanup(&arena);
    return status;
}

/* --- What comes of it -------------------------------------------------------------------------- */

/* The node is read from the backward of operation `first` on until that of `last`. */
static void read_between(onv_partition *p, uint32_t node, uint32_t first, uint32_t last)
{
    if (p->last_read[node] == ONV_JOINT_NONE || first > p->first_read[node])
        p->first_read[node] = first;
    if (last < p->last_read[node]) p->last_read[node] = last;
}

/* What backward computes again, and when it needs that and what was kept. A product runs again when its
 * result is first asked for; what is fused runs in each of its readers, unless it is `realized`. */
static void follow_backward(const onv_cut_graph *g, const bool *realized, onv_partition *p)
{
    for (uint32_t i = 0; i < g->n; i++) p->last_read[i] = p->last_again[i] = ONV_JOINT_NONE;
    for (size_t r = 0; r < g->joint->reads.count; r++) {
        const onv_joint_read *read = &g->joint->reads.at[r];
        read_between(p, read->node, read->op, read->op);
        p->is_read[read->node] = true;
    }
    for (uint32_t i = g->n; i-- > 0;) {
        const onv_joint_node *node = node_at(g, i);
        if (p->last_read[i] == ONV_JOINT_NONE) {
            p->is_saved[i] = false; /* backward does without it after all */
            continue;
        }
        if (p->is_saved[i] || node->kind == ONV_JOINT_PRIMAL) continue;
        p->is_again[i] = true;
        p->is_written[i] |= !is_fusible(node) || node->apart_read;
        p->is_written[i] |= realized[i] && p->first_read[i] != p->last_read[i];
        bool is_view = node->kind == ONV_JOINT_VIEW || node->kind == ONV_JOINT_PART;
        for (uint32_t k = 0; k < node->n_in; k++) {
            uint32_t in = g->joint->ins.at[node->first_in + k];
            bool runs_once = p->is_written[i] && !is_view;
            read_between(p, in, p->first_read[i], runs_once ? p->first_read[i] : p->last_read[i]);
            p->is_written[in] |= is_view ? p->is_written[i] : !is_fusible(node);
            if (runs_once && p->last_again[in] == ONV_JOINT_NONE) p->last_again[in] = i;
            if (runs_once) continue;
            p->is_read[in] |= p->is_read[i];
            if (p->last_again[in] == ONV_JOINT_NONE) p->last_again[in] = p->last_again[i];
        }
    }
}

static bool is_fused_again(const onv_cut_graph *g, const onv_partition *p, uint32_t i)
{
    return p->is_again[i] && node_at(g, i)->kind == ONV_JOINT_POINTWISE;
}

/* Its input has many times its bytes: a kernel's result. */
static bool is_reduction(const onv_cut_graph *g, const onv_joint_node *node)
{
    enum { FEWER = 4 };
    for (uint32_t k = 0; k < node->n_in; k++)
        if (node_at(g, g->joint->ins.at[node->first_in + k])->bytes / FEWER > node->bytes)
            return true;
    return node->is_tuple;
}

/* What is fused and runs again is written where several read it and its formula reads more than 4 tensors, or
 * reads more than 8: Inductor's StorageBox.should_realize_on_reuse and has_exceeded_max_reads. */
static onv_status find_realized(const onv_cut_graph *g, const onv_partition *p, bool *realized,
                                onv_error *err)
{
    enum { MANY_READS = 4, MOST_READS = 8 };
    uint32_t *reads = ONV_ARENA_ARRAY(g->arena, uint32_t, g->n);
    uint32_t *readers = ONV_ARENA_ARRAY(g->arena, uint32_t, g->n);
    if (g->arena->failed) return onv_fail_memory(err);
    for (size_t r = 0; r < g->joint->reads.count; r++)
        readers[node_at(g, g->joint->reads.at[r].node)->base]++;
    for (uint32_t i = 0; i < g->n; i++) {
        const onv_joint_node *node = node_at(g, i);
        if (!p->is_again[i] || node->base != i) continue;
        for (uint32_t k = 0; k < node->n_in; k++)
            readers[node_at(g, g->joint->ins.at[node->first_in + k])->base]++;
    }
    for (uint32_t i = 0; i < g->n; i++) {
        const onv_joint_node *node = node_at(g, i);
        if (!is_fused_again(g, p, i) || is_reduction(g, node)) continue;
        for (uint32_t k = 0; k < node->n_in && reads[i] <= MOST_READS; k++) {
            uint32_t in = node_at(g, g->joint->ins.at[node->first_in + k])->base;
            reads[i] += reads[in] > 0 && !realized[in] ? reads[in] : 1;
        }
        realized[i] = reads[i] > MOST_READS || (readers[i] > 1 && reads[i] > MANY_READS);
    }
    return ONV_OK;
}

static void count_again(const onv_cut_graph *g, onv_partition *p)
{
    for (uint32_t i = 0; i < g->n; i++)
        if (p->is_again[i] &&
            !onv_u64_add(p->recomputed_macs, node_at(g, i)->macs, &p->recomputed_macs))
            p->recomputed_macs = UINT64_MAX;
}

onv_status onv_partition_make(const onv_joint *joint, double budget, onv_arena *arena,
                              onv_partition *partition, onv_error *err)
{
    static const onv_cut_rules rules = {true, true, true, true, true, NULL};
    onv_cut_graph g;
    *partition = (onv_partition){0};
    ONV_TRY(make_graph(joint, arena, &g, err));
    bool *banned = ONV_ARENA_ARRAY(arena, bool, g.n);
    partition->is_saved = ONV_ARENA_ARRAY(arena, bool, g.n);
    partition->is_again = ONV_ARENA_ARRAY(arena, bool, g.n);
    partition->last_read = ONV_ARENA_ARRAY(arena, uint32_t, g.n);
    partition->first_read = ONV_ARENA_ARRAY(arena, uint32_t, g.n);
    partition->is_written = ONV_ARENA_ARRAY(arena, bool, g.n);
    partition->is_read = ONV_ARENA_ARRAY(arena, bool, g.n);
    partition->last_again = ONV_ARENA_ARRAY(arena, uint32_t, g.n);
    partition->is_alive = g.is_alive;
    if (arena->failed) return onv_fail_memory(err);
    onv_status status = budget < 1 ? onv_cut_budget(&g, &rules, budget, partition->is_saved, err)
                                   : onv_cut_solve(&g, &rules, partition->is_saved, banned, err);
    ONV_TRY(status);
    bool *realized = ONV_ARENA_ARRAY(arena, bool, g.n);
    if (realized == NULL) return onv_fail_memory(err);
    follow_backward(&g, realized, partition);
    ONV_TRY(find_realized(&g, partition, realized, err));
    follow_backward(&g, realized, partition);
    count_again(&g, partition);
    return ONV_OK;
}
