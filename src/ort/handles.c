/* Handles of cuBLAS and cuDNN in a session: one of each belongs to the provider, one to the stream of each graph which ran
 * and has a node on the device: a graph has a collection of streams, which it keeps
 * (SessionState::AcquireDeviceStreamCollection). Convolutions whose algorithms are
 * tried have one more of cuDNN. Measured, ONNX Runtime 1.31, CUDA
 * build: models with branches, loops and scans, nested and not, and ten of one operator. */
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "graph/steps.h"
#include "ort/ort.h"

/* By graph: whether a node of its own runs on the device. True if a convolution does. */
static bool find_on_device(const onv_model *model, const onv_live *live, bool *is_on_device)
{
    bool has_conv = false;
    for (uint32_t s = 0; s < live->timeline.steps.count; s++) {
        const onv_node *node = onv_model_node(model, live->timeline.steps.at[s].node);
        if (node->provider != ONV_PROVIDER_CUDA) continue;
        is_on_device[node->graph.index] = true;
        has_conv |= node->code == ONV_OP_Conv || node->code == ONV_OP_FusedConv;
    }
    return has_conv;
}

/* The graph of a region; none: the branches of an If together. */
static onv_graph_id graph_of(const onv_model *model, const onv_region *r)
{
    if (r->kind == ONV_REGION_ALTERNATIVES) return ONV_NO_GRAPH;
    return onv_graph_body(model, onv_model_node(model, r->node), r->label);
}

/* Constant folding puts the branch of an If with a constant condition in its place. */
static bool is_inlined(const onv_model *model, const onv_ort_session *session, const onv_region *r)
{
    const onv_node *owner = onv_model_node(model, r->node);
    return r->kind == ONV_REGION_SEQUENCE &&
           session->settings->graph_optimization_level != ONV_REWRITE_DISABLED &&
           owner->n_inputs > 0 && onv_is_value(owner->inputs[0]) &&
           onv_value_is_weight(onv_model_value(model, owner->inputs[0]));
}

/* What a region needs goes to its parent, which stands before it. Of branches the least is that of one, the most that of
 * all: each has its turn. A loop that may end at once needs nothing at least. */
static onv_ort_handles of_session(const onv_model *model, const onv_timeline *t,
                                  const onv_ort_session *session, const bool *is_on_device,
                                  onv_ort_handles *need)
{
    onv_ort_handles all = {.least = 1 + is_on_device[0], .most = 1 + is_on_device[0]};
    for (uint32_t i = 0; i < t->regions.count; i++)
        if (t->regions.at[i].kind == ONV_REGION_ALTERNATIVES) need[i].least = UINT64_MAX;
    for (size_t i = t->regions.count; i-- > 0;) {
        const onv_region *r = &t->regions.at[i];
        onv_graph_id graph = graph_of(model, r);
        uint64_t own = graph.index != ONV_NO_GRAPH.index && is_on_device[graph.index] &&
                       !is_inlined(model, session, r);
        onv_ort_handles *to = r->parent == ONV_NO_REGION ? &all : &need[r->parent];
        bool is_branch =
            r->parent != ONV_NO_REGION && t->regions.at[r->parent].kind == ONV_REGION_ALTERNATIVES;
        uint64_t least = r->kind == ONV_REGION_LOOP && r->trips == 0 ? 0 : need[i].least + own;
        to->most += need[i].most + own;
        if (!is_branch)
            to->least += least;
        else if (least < to->least)
            to->least = least;
    }
    return all;
}

onv_status onv_ort_count_handles(const onv_model *model, const onv_live *live,
                                 const onv_ort_session *session, onv_ort_handles *handles,
                                 onv_error *err)
{
    bool *is_on_device = onv_heap_calloc(model->graphs.count + 1, sizeof *is_on_device);
    onv_ort_handles *need = onv_heap_calloc(live->timeline.regions.count + 1, sizeof *need);
    bool good = is_on_device != NULL && need != NULL;
    if (good) {
        bool has_conv = find_on_device(model, live, is_on_device);
        *handles = of_session(model, &live->timeline, session, is_on_device, need);
        handles->has_conv =
            has_conv && session->settings->cudnn_conv_algo_search == ONV_ORT_CONV_EXHAUSTIVE;
    }
    onv_heap_free(is_on_device);
    onv_heap_free(need);
    return good ? ONV_OK : onv_fail_memory(err);
}
