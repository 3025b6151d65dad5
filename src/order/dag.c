#include "order/order_dag.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/heap.h"
#include "base/vec.h"

/* --- Building ---------------------------------------------------------------------------------- */

/* The values of each node, or the nodes of each value, in the order of the pairs. */
static bool list_pairs(onv_arena *arena, const onv_dag_read *pairs, size_t n_pairs, bool by_value,
                       uint32_t n_keys, onv_list *list)
{
    list->start = ONV_ARENA_ARRAY(arena, uint32_t, (size_t)n_keys + 2);
    list->at = onv_arena_alloc(arena, n_pairs * sizeof *list->at);
    if (arena->failed) return false;
    for (size_t i = 0; i < n_pairs; i++)
        list->start[(by_value ? pairs[i].value : pairs[i].node) + 2]++;
    for (uint32_t k = 0; k < n_keys; k++) list->start[k + 2] += list->start[k + 1];
    for (size_t i = 0; i < n_pairs; i++) {
        uint32_t key = by_value ? pairs[i].value : pairs[i].node;
        list->at[list->start[key + 1]++] = by_value ? pairs[i].node : pairs[i].value;
    }
    return true;
}

/* Drops pairs that came before. */
static bool index_reads(onv_dag *dag, const onv_dag_read *reads, size_t n_reads)
{
    onv_list all;
    onv_arena *arena = &dag->arena;
    uint32_t *seen = ONV_ARENA_ARRAY(arena, uint32_t, dag->n_values), n = 0;
    onv_dag_read *kept = onv_arena_alloc(arena, n_reads * sizeof *kept);
    if (!list_pairs(arena, reads, n_reads, false, dag->n_nodes, &all)) return false;
    for (uint32_t node = 0; node < dag->n_nodes; node++)
        for (uint32_t i = all.start[node]; i < all.start[node + 1]; i++) {
            if (seen[all.at[i]] == node + 1) continue;
            seen[all.at[i]] = node + 1;
            kept[n++] = (onv_dag_read){node, all.at[i]};
        }
    return list_pairs(arena, kept, n, false, dag->n_nodes, &dag->reads) &&
           list_pairs(arena, kept, n, true, dag->n_values, &dag->readers);
}

static bool index_writes(onv_dag *dag)
{
    onv_arena *arena = &dag->arena;
    onv_dag_read *pairs = onv_arena_alloc(arena, dag->n_values * sizeof *pairs);
    uint32_t n = 0;
    for (uint32_t v = 0; pairs != NULL && v < dag->n_values; v++)
        if (dag->values[v].writer != ONV_DAG_NONE)
            pairs[n++] = (onv_dag_read){dag->values[v].writer, v};
    return list_pairs(arena, pairs, n, false, dag->n_nodes, &dag->writes) &&
           list_pairs(arena, pairs, n, true, dag->n_values, &dag->writers);
}

/* Every sum of bytes that a search can meet is at most that of all values and all needs. */
static bool sum_bytes(onv_dag *dag, const uint64_t *extra)
{
    uint64_t total = 0;
    for (uint32_t i = 0; extra != NULL && i < dag->n_nodes; i++) {
        dag->need[i] = extra[i];
        if (!onv_u64_add(total, extra[i], &total)) return false;
    }
    for (uint32_t v = 0; v < dag->n_values; v++) {
        const onv_dag_value *value = &dag->values[v];
        bool lasts = onv_dag_lasts(dag, v);
        if (!onv_u64_add(total, value->bytes, &total) || total > INT64_MAX) return false;
        if (value->writer != ONV_DAG_NONE) {
            dag->need[value->writer] += value->bytes;
            if (lasts) dag->kept[value->writer] += value->bytes;
        } else if (lasts) {
            dag->start_bytes += value->bytes;
        } else {
            dag->first_bytes += value->bytes;
        }
    }
    return total <= INT64_MAX;
}

onv_status onv_dag_init(onv_dag *dag, uint32_t n_nodes, const uint64_t *extra,
                        const onv_dag_value *values, uint32_t n_values, const onv_dag_read *reads,
                        size_t n_reads, onv_error *err)
{
    *dag = (onv_dag){.n_nodes = n_nodes, .n_values = n_values};
    onv_arena_init(&dag->arena, SIZE_MAX);
    dag->need = ONV_ARENA_ARRAY(&dag->arena, uint64_t, n_nodes);
    dag->kept = ONV_ARENA_ARRAY(&dag->arena, uint64_t, n_nodes);
    dag->values = ONV_ARENA_ARRAY(&dag->arena, onv_dag_value, n_values);
    bool good = !dag->arena.failed && n_reads < UINT32_MAX;
    if (good && n_values > 0) memcpy(dag->values, values, n_values * sizeof *values);
    if (!good || !index_reads(dag, reads, n_reads) || !index_writes(dag)) {
        onv_dag_cleanup(dag);
        return onv_fail_memory(err);
    }
    if (sum_bytes(dag, extra)) return ONV_OK;
    onv_dag_cleanup(dag);
    return onv_fail(err, ONV_ERR_OVERFLOW, "the bytes of all values do not fit 63 bits");
}

void onv_dag_cleanup(onv_dag *dag)
{
    onv_arena_cleanup(&dag->arena);
    *dag = (onv_dag){0};
}

/* --- From a model ------------------------------------------------------------------------------ */

typedef struct importer {
    const onv_model *model;
    const onv_live *live;
    uint32_t *position; /* by node: its place in the main graph */
    uint32_t *step_of;  /* by node */
    uint32_t *of_value; /* by value of the model */
    uint64_t *inner;    /* by step: bytes of subgraphs' values that are live */
    uint64_t *extra;    /* by place */
    uint64_t *early;    /* by place: bytes of the first inner step; UINT64_MAX: there is none */
    onv_dag_value *values;
    uint32_t n_values;
    ONV_VEC(onv_dag_read) reads;
} importer;

static bool prepare(importer *im, onv_arena *arena)
{
    const onv_model *model = im->model;
    const onv_graph *graph = onv_model_graph(model, (onv_graph_id){0});
    im->position = ONV_ARENA_ARRAY(arena, uint32_t, model->nodes.count);
    im->step_of = ONV_ARENA_ARRAY(arena, uint32_t, model->nodes.count);
    im->of_value = ONV_ARENA_ARRAY(arena, uint32_t, model->values.count);
    im->inner = ONV_ARENA_ARRAY(arena, uint64_t, (size_t)im->live->timeline.steps.count + 1);
    im->extra = ONV_ARENA_ARRAY(arena, uint64_t, graph->n_nodes);
    im->early = ONV_ARENA_ARRAY(arena, uint64_t, graph->n_nodes);
    im->values = ONV_ARENA_ARRAY(arena, onv_dag_value, model->values.count);
    if (arena->failed) return false;
    for (uint32_t s = 0; s < im->live->timeline.steps.count; s++)
        im->step_of[im->live->timeline.steps.at[s].node.index] = s;
    for (uint32_t i = 0; i < graph->n_nodes; i++) im->position[graph->nodes[i].index] = i;
    return true;
}

/* The node of the main graph that a node stands in, or itself. */
static onv_node_id outermost(const onv_model *model, onv_node_id id)
{
    onv_graph_id graph = onv_model_node(model, id)->graph;
    while (graph.index != 0) {
        id = onv_model_graph(model, graph)->owner;
        graph = onv_model_node(model, id)->graph;
    }
    return id;
}

/* `bytes` of the steps [first, end) that belong to no value of the dag; differences wrap, and back in
 * the running sum. */
static void add_inner(importer *im, uint64_t bytes, uint32_t first, uint32_t end)
{
    im->inner[first] += bytes;
    im->inner[end] -= bytes;
}

/* Values of the main graph; the others count as bytes of the steps that they are live in. So does what
 * a loop stacks, which is there while the body runs. */
static void add_values(importer *im)
{
    const onv_live *live = im->live;
    for (uint32_t v = 0; v < im->model->values.count; v++) {
        const onv_value *value = &im->model->values.at[v];
        im->of_value[v] = ONV_DAG_NONE;
        bool has_row = live->of_value[v] != UINT32_MAX;
        const onv_buffer *row = has_row ? &live->timeline.buffers.at[live->of_value[v]] : NULL;
        if (value->graph.index != 0) {
            if (has_row && row->within == ONV_NO_BUFFER)
                add_inner(im, row->bytes, row->first, row->last + 1);
            continue;
        }
        bool written = onv_is_node(value->producer);
        if (has_row && written && row->first < im->step_of[value->producer.index])
            add_inner(im, row->bytes, row->first, im->step_of[value->producer.index]);
        if (!has_row && !written) continue;
        im->of_value[v] = im->n_values;
        im->values[im->n_values++] = (onv_dag_value){
            .bytes = has_row ? row->bytes : 0,
            .writer = written ? im->position[value->producer.index] : ONV_DAG_NONE,
            .is_output = value->is_output && has_row,
        };
    }
}

static bool add_read(importer *im, uint32_t node, onv_value_id id)
{
    if (!onv_is_value(id) || im->of_value[id.index] == ONV_DAG_NONE) return true;
    onv_dag_read read = {node, im->of_value[id.index]};
    return onv_vec_push(&im->reads, read);
}

/* What a subgraph reads or hands out of the main graph is read by the node that owns it. */
static bool add_reads(importer *im)
{
    const onv_model *model = im->model;
    for (uint32_t i = 0; i < model->nodes.count; i++) {
        const onv_node *node = &model->nodes.at[i];
        uint32_t at = im->position[outermost(model, (onv_node_id){i}).index];
        for (uint32_t k = 0; k < node->n_inputs; k++)
            if (!add_read(im, at, node->inputs[k])) return false;
    }
    for (uint32_t g = 1; g < model->graphs.count; g++) {
        const onv_graph *graph = &model->graphs.at[g];
        uint32_t at = im->position[outermost(model, graph->owner).index];
        for (uint32_t k = 0; k < graph->n_outputs; k++)
            if (!add_read(im, at, graph->outputs[k])) return false;
    }
    return true;
}

/* The steps of a node's subgraphs come right before its own, in which its results take over: need =
 * max(inner peak, results). */
static void add_inner_peaks(importer *im)
{
    const onv_live *live = im->live;
    uint64_t now = 0, peak = 0, early = UINT64_MAX;
    for (uint32_t s = 0; s < live->timeline.steps.count; s++) {
        const onv_node *node = onv_model_node(im->model, live->timeline.steps.at[s].node);
        now += im->inner[s];
        if (node->graph.index != 0) {
            if (now > peak) peak = now;
            if (early == UINT64_MAX) early = now;
            continue;
        }
        uint64_t results = 0;
        for (uint32_t k = 0; k < node->n_outputs; k++) {
            uint32_t v = onv_is_value(node->outputs[k]) ? im->of_value[node->outputs[k].index]
                                                        : ONV_DAG_NONE;
            if (v != ONV_DAG_NONE) results += im->values[v].bytes;
        }
        uint64_t extra = peak > results ? peak - results : 0;
        uint32_t place = im->position[live->timeline.steps.at[s].node.index];
        im->extra[place] = now > extra ? now : extra;
        im->early[place] = early;
        peak = 0;
        early = UINT64_MAX;
    }
}

static onv_status set_early(onv_dag *dag, const importer *im, onv_error *err)
{
    dag->early = ONV_ARENA_ARRAY(&dag->arena, uint64_t, dag->n_nodes);
    if (dag->early == NULL) return onv_fail_memory(err);
    for (uint32_t n = 0; n < dag->n_nodes; n++)
        dag->early[n] = im->early[n] != UINT64_MAX ? im->early[n] : dag->need[n];
    return ONV_OK;
}

static onv_status import(importer *im, onv_dag *dag, onv_error *err)
{
    add_values(im);
    if (!add_reads(im)) return onv_fail_memory(err);
    add_inner_peaks(im);
    ONV_TRY(onv_dag_init(dag, onv_model_graph(im->model, (onv_graph_id){0})->n_nodes, im->extra,
                         im->values, im->n_values, im->reads.at, im->reads.count, err));
    return set_early(dag, im, err);
}

onv_status onv_dag_init_model(onv_dag *dag, const onv_model *model, const onv_live *live,
                              onv_error *err)
{
    onv_arena arena;
    importer im = {.model = model, .live = live};
    *dag = (onv_dag){0};
    onv_arena_init(&arena, SIZE_MAX);
    onv_status status = prepare(&im, &arena) ? import(&im, dag, err) : onv_fail_memory(err);
    if (status != ONV_OK) onv_dag_cleanup(dag);
    onv_vec_cleanup(&im.reads);
    onv_arena_cleanup(&arena);
    return status;
}

/* --- Orders ------------------------------------------------------------------------------------ */

onv_status onv_dag_steps(const onv_dag *dag, const uint32_t *order, uint64_t *bytes, onv_error *err)
{
    uint32_t *left = onv_heap_alloc(dag->n_values * sizeof *left); /* readers that did not run */
    if (left == NULL) return onv_fail_memory(err);
    for (uint32_t v = 0; v < dag->n_values; v++) left[v] = onv_list_length(&dag->readers, v);
    uint64_t live = dag->start_bytes;
    for (uint32_t s = 0; s < dag->n_nodes; s++) {
        uint32_t node = order[s];
        bytes[s] = live + (s == 0 ? onv_dag_first_need(dag, node) : dag->need[node]);
        live += dag->kept[node];
        for (uint32_t i = dag->reads.start[node]; i < dag->reads.start[node + 1]; i++) {
            const onv_dag_value *value = &dag->values[dag->reads.at[i]];
            if (--left[dag->reads.at[i]] == 0 && !value->is_output) live -= value->bytes;
        }
    }
    onv_heap_free(left);
    return ONV_OK;
}

onv_status onv_dag_peak(const onv_dag *dag, const uint32_t *order, uint64_t *bytes, onv_error *err)
{
    uint64_t *steps = onv_heap_alloc(dag->n_nodes * sizeof *steps);
    if (steps == NULL) return onv_fail_memory(err);
    onv_status status = onv_dag_steps(dag, order, steps, err);
    *bytes = 0;
    for (uint32_t s = 0; status == ONV_OK && s < dag->n_nodes; s++)
        if (steps[s] > *bytes) *bytes = steps[s];
    onv_heap_free(steps);
    return status;
}

onv_status onv_dag_check_order(const onv_dag *dag, const uint32_t *order, onv_error *err)
{
    bool *done = onv_heap_calloc(dag->n_nodes, sizeof *done);
    if (done == NULL) return onv_fail_memory(err);
    onv_status status = ONV_OK;
    for (uint32_t s = 0; s < dag->n_nodes && status == ONV_OK; s++) {
        uint32_t node = order[s];
        if (node >= dag->n_nodes || done[node]) {
            status = onv_fail(err, ONV_ERR_MODEL, "step %lu of the order repeats a node",
                              (unsigned long)s);
            break;
        }
        for (uint32_t i = dag->reads.start[node]; i < dag->reads.start[node + 1]; i++) {
            uint32_t writer = dag->values[dag->reads.at[i]].writer;
            if (writer != ONV_DAG_NONE && !done[writer])
                status = onv_fail(err, ONV_ERR_MODEL, "step %lu of the order comes too early",
                                  (unsigned long)s);
        }
        done[node] = true;
    }
    onv_heap_free(done);
    return status;
}
