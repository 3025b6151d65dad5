#include "base/fail.h"
#include "base/quota.h"
#include "ir/model.h"

static bool copy_nodes(const onv_model *from, onv_model *to)
{
    size_t n_ids = 0;
    for (size_t i = 0; i < from->nodes.count; i++)
        n_ids += (size_t)from->nodes.at[i].n_inputs + from->nodes.at[i].n_outputs;
    onv_value_id *ids = ONV_ARENA_ARRAY(&to->arena, onv_value_id, n_ids);
    if (ids == NULL || !onv_vec_reserve(&to->nodes, from->nodes.count)) return false;
    for (size_t i = 0; i < from->nodes.count; i++) {
        onv_node node = from->nodes.at[i];
        for (uint32_t k = 0; k < node.n_inputs; k++) ids[k] = node.inputs[k];
        node.inputs = ids;
        ids += node.n_inputs;
        for (uint32_t k = 0; k < node.n_outputs; k++) ids[k] = node.outputs[k];
        node.outputs = ids;
        ids += node.n_outputs;
        to->nodes.at[to->nodes.count++] = node;
    }
    return true;
}

static bool copy_graphs(const onv_model *from, onv_model *to)
{
    onv_arena *arena = &to->arena;
    if (!onv_vec_reserve(&to->graphs, from->graphs.count)) return false;
    for (size_t i = 0; i < from->graphs.count; i++) {
        onv_graph graph = from->graphs.at[i];
        graph.nodes = onv_arena_copy(arena, graph.nodes, graph.n_nodes * sizeof *graph.nodes);
        graph.inputs = onv_arena_copy(arena, graph.inputs, graph.n_inputs * sizeof *graph.inputs);
        graph.outputs =
            onv_arena_copy(arena, graph.outputs, graph.n_outputs * sizeof *graph.outputs);
        to->graphs.at[to->graphs.count++] = graph;
    }
    return !arena->failed;
}

static bool copy(const onv_model *from, onv_model *to)
{
    if (!onv_strings_copy(&from->strings, &to->arena, &to->strings) ||
        !onv_dims_copy(&from->dims, &to->arena, &to->dims))
        return false;
    if (!onv_vec_reserve(&to->opsets, from->opsets.count) ||
        !onv_vec_reserve(&to->values, from->values.count))
        return false;
    for (size_t i = 0; i < from->opsets.count; i++)
        to->opsets.at[to->opsets.count++] = from->opsets.at[i];
    for (size_t i = 0; i < from->values.count; i++)
        to->values.at[to->values.count++] = from->values.at[i];
    return copy_nodes(from, to) && copy_graphs(from, to);
}

onv_status onv_model_copy(const onv_model *from, onv_model *to, onv_error *err)
{
    onv_model_init(to, from->arena.limit_bytes);
    to->path = from->path;
    to->source = from->source;
    to->program = from->program;
    to->ir_version = from->ir_version;
    to->producer = from->producer;
    to->most_known = from->most_known;
    to->most_output = from->most_output;
    to->no_external_data = from->no_external_data;
    to->told_external = from->told_external;
    to->listed = from->listed;
    to->shared = from->shared;
    to->n_shared = from->n_shared;
    to->weight_format = from->weight_format;
    to->trains_constants = from->trains_constants;
    to->has_providers = from->has_providers;
    ONV_WORK(from->values.count);
    if (copy(from, to)) return ONV_OK;
    onv_model_cleanup(to);
    return onv_fail_memory(err);
}
