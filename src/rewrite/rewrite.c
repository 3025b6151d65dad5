#include "rewrite/rewrite.h"

#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "rewrite/fuse.h"
#include "rewrite/kernels.h"
#include "rewrite/rules.h"

/* ONNX Runtime's GraphTransformerManager stops then, too. */
enum { MOST_STEPS = 10 };

typedef struct rewriting {
    onv_edit e;
    onv_provider provider; /* of the session */
    uint32_t *counts; /* by rule: how often it did something; not modelled: would do in one step */
    uint64_t starts[ONV_N_OP_NAMES]; /* by operator: the rules, as bits in their order */
    uint64_t all;                    /* those of every node that there was */
    size_t n_nodes;                  /* of which that is */
} rewriting;

/* --- One pass ---------------------------------------------------------------------------------- */

/* At which operators rules start. */
static void list_starts(rewriting *r)
{
    for (size_t i = 0; i < onv_n_rewrite_rules; i++) {
        const char *at = onv_rewrite_rules[i].ops;
        for (size_t op = 0; at == NULL && op < ONV_N_OP_NAMES; op++)
            r->starts[op] |= UINT64_C(1) << i;
        while (at != NULL) {
            onv_op_name op = onv_kernels_next(&at);
            if (at != NULL) r->starts[op] |= UINT64_C(1) << i;
        }
    }
}

static uint64_t starts_of(const rewriting *r, onv_node_id id)
{
    return r->starts[onv_edit_node_at(&r->e, id)->code];
}

/* Whether the rule starts at any node. */
static bool may_start(rewriting *r, size_t rule)
{
    for (; r->n_nodes < r->e.nodes.count; r->n_nodes++)
        r->all |= starts_of(r, (onv_node_id){(uint32_t)r->n_nodes});
    return (r->all >> rule & 1) != 0;
}

/* All rules of a level, one node after the other. */
static void run_rules(rewriting *r, onv_graph_id graph, uint8_t level, uint32_t n_nodes)
{
    onv_edit *e = &r->e;
    uint64_t of_level = 0;
    for (size_t i = 0; i < onv_n_rewrite_rules; i++)
        if (onv_rewrite_rules[i].kind == ONV_RULE && onv_rewrite_rules[i].level == level)
            of_level |= UINT64_C(1) << i;
    for (onv_node_id id = onv_edit_first(e, graph); onv_is_node(id) && e->status == ONV_OK;
         id = onv_edit_next(e, id)) {
        if (!onv_work(4)) e->status = ONV_ERR_CANCELLED;
        uint64_t rest = id.index < n_nodes ? starts_of(r, id) & of_level : 0;
        for (; rest != 0 && onv_edit_is_there(e, id); rest &= rest - 1) {
            size_t rule = (size_t)__builtin_ctzll(rest);
            r->counts[rule] += onv_rewrite_rules[rule].apply(e, id);
        }
    }
}

static uint32_t run_transformer(rewriting *r, size_t rule, onv_graph_id graph, uint32_t n_nodes)
{
    const onv_rewrite_rule *row = &onv_rewrite_rules[rule];
    onv_edit *e = &r->e;
    onv_form_match m;
    uint32_t n = 0;
    if (!onv_work(1 + onv_edit_n_nodes(e, graph))) e->status = ONV_ERR_CANCELLED;
    if (row->run != NULL) return row->run(e, graph);
    if (!may_start(r, rule)) return 0;
    for (onv_node_id id = onv_edit_first(e, graph); onv_is_node(id) && e->status == ONV_OK;
         id = onv_edit_next(e, id))
        if (id.index < n_nodes && (starts_of(r, id) >> rule & 1) != 0)
            n += row->form != NULL ? onv_fuse_form(e, id, row->form, &m) : row->apply(e, id);
    return n;
}

static bool is_alive(const onv_edit *e, uint32_t graph)
{
    return !e->graphs.at[graph].is_removed && !e->model->graphs.at[graph].never_runs;
}

static void run_step(rewriting *r, uint8_t level, bool is_first)
{
    onv_edit *e = &r->e;
    uint32_t n_nodes = (uint32_t)e->nodes.count;
    e->level = level;
    for (uint32_t g = 0; g < e->graphs.count; g++)
        if (is_alive(e, g)) run_rules(r, (onv_graph_id){g}, level, n_nodes);
    for (size_t i = 0; i < onv_n_rewrite_rules; i++) {
        const onv_rewrite_rule *row = &onv_rewrite_rules[i];
        if (row->kind == ONV_RULE || row->level != level) continue;
        if (row->kind == ONV_TRANSFORMER_ONCE && !is_first) continue;
        uint32_t n = row->is_not_modelled ? 0 : r->counts[i];
        n_nodes = (uint32_t)e->nodes.count;
        for (uint32_t g = 0; g < e->graphs.count; g++)
            if (is_alive(e, g)) n += run_transformer(r, i, (onv_graph_id){g}, n_nodes);
        if (n > r->counts[i]) r->counts[i] = n;
    }
}

/* A step that changes nothing is the last one. */
static void run_level(rewriting *r, uint8_t level)
{
    for (int step = 0; step < MOST_STEPS && r->e.status == ONV_OK; step++) {
        uint64_t before = r->e.n_edits;
        run_step(r, level, step == 0);
        if (r->e.n_edits == before) break;
    }
}

/* --- All together ------------------------------------------------------------------------------ */

static onv_status list_counts(const rewriting *r, onv_rewritten *to, onv_error *err)
{
    to->counts = ONV_ARENA_ARRAY(&to->model.arena, onv_rewrite_count, onv_n_rewrite_rules);
    if (to->counts == NULL) return onv_fail_memory(err);
    for (size_t i = 0; i < onv_n_rewrite_rules; i++) {
        const onv_rewrite_rule *row = &onv_rewrite_rules[i];
        if (r->counts[i] == 0) continue;
        uint32_t at = 0; /* a name may have several rows */
        while (at < to->n_counts && (strcmp(to->counts[at].name, row->name) != 0 ||
                                     to->counts[at].is_not_modelled != row->is_not_modelled))
            at++;
        if (at == to->n_counts)
            to->counts[to->n_counts++] =
                (onv_rewrite_count){.name = row->name, .is_not_modelled = row->is_not_modelled};
        to->counts[at].count += r->counts[i];
    }
    return ONV_OK;
}

/* Whether a session has the graph. An If with a constant condition is replaced by the branch that runs; what no run reaches for
 * other reasons, such as sizes that the file leaves open, is loaded all the same. */
static bool has_graph(const onv_edit *e, onv_graph_id id, onv_rewrite_level level)
{
    while (id.index != 0) {
        const onv_graph *graph = onv_model_graph(e->model, id);
        bool is_removed = e->graphs.at[id.index].is_removed;
        bool is_replaced = graph->never_runs && level >= ONV_REWRITE_BASIC && !is_removed &&
                           onv_edit_is(e, graph->owner, ONV_OP_If) &&
                           onv_edit_is_constant(e, onv_edit_in(e, graph->owner, 0));
        if (is_removed || is_replaced) return false;
        id = onv_edit_node_at(e, graph->owner)->graph;
    }
    return true;
}

static void keep_weights(const onv_edit *e, onv_rewrite_level level)
{
    for (uint32_t i = 0; i < e->values.count; i++) {
        const onv_value_id id = {i};
        if (!onv_edit_value_at(e, id)->is_dropped) continue;
        ONV_EACH_USE(e, id, u)
        if (has_graph(e, onv_edit_node_at(e, u->node)->graph, level))
            onv_edit_value_at(e, id)->is_dropped = false;
    }
}

static onv_status rewrite(rewriting *r, onv_rewrite_level level, onv_rewritten *to, onv_error *err)
{
    r->counts = ONV_ARENA_ARRAY(&to->model.arena, uint32_t, onv_n_rewrite_rules);
    if (r->counts == NULL) return onv_fail_memory(err);
    list_starts(r);
    onv_kernels_list(&r->e);
    onv_rewrite_packed(&r->e);
    run_step(r, ONV_RULE_BEFORE, true);
    if (level >= ONV_REWRITE_BASIC) run_level(r, 1);
    onv_rewrite_inline(&r->e);
    onv_rewrite_assign(&r->e, r->provider);
    if (level >= ONV_REWRITE_EXTENDED) run_level(r, 2);
    if (level >= ONV_REWRITE_LAYOUT) run_level(r, 3);
    run_step(r, ONV_RULE_AFTER, true);
    keep_weights(&r->e, level);
    if (r->provider == ONV_PROVIDER_CUDA) to->n_copies = onv_rewrite_add_copies(&r->e);
    ONV_TRY(onv_edit_finish(&r->e, &to->seen));
    for (size_t i = 0; i < to->model.nodes.count; i++)
        to->n_nodes_on_cpu += to->model.nodes.at[i].provider == ONV_PROVIDER_CPU;
    return list_counts(r, to, err);
}

static onv_status rewrite_copy(const onv_model *model, onv_provider provider,
                               onv_rewrite_level level, onv_rewritten *rewritten, bool *is_empty,
                               onv_error *err)
{
    rewriting r = {.provider = provider};
    *rewritten = (onv_rewritten){0};
    ONV_TRY(onv_model_copy(model, &rewritten->model, err));
    onv_status status = onv_edit_begin(&r.e, &rewritten->model, err);
    if (status == ONV_OK) status = rewrite(&r, level, rewritten, err);
    onv_edit_cleanup(&r.e);
    *is_empty = status == ONV_OK && rewritten->model.graphs.at[0].n_nodes == 0;
    if (status != ONV_OK || *is_empty) onv_rewritten_cleanup(rewritten);
    return status;
}

/* Of a graph that is folded as a whole nothing would be left to run: it is taken as it is. */
onv_status onv_rewrite_model(const onv_model *model, onv_provider provider, onv_rewrite_level level,
                             onv_rewritten *rewritten, onv_error *err)
{
    onv_error local = {0}; /* rules need somewhere to fail into */
    bool is_empty;
    if (err == NULL) err = &local;
    ONV_TRY(rewrite_copy(model, provider, level, rewritten, &is_empty, err));
    if (!is_empty) return ONV_OK;
    ONV_TRY(rewrite_copy(model, provider, ONV_REWRITE_DISABLED, rewritten, &is_empty, err));
    if (!is_empty) return ONV_OK;
    *rewritten = (onv_rewritten){0}; /* Constant nodes alone, which an edit makes initializers */
    return onv_model_copy(model, &rewritten->model, err);
}

void onv_rewritten_cleanup(onv_rewritten *rewritten)
{
    onv_model_cleanup(&rewritten->model);
}
