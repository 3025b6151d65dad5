/* What modules keep from one pass to the next.
 *
 * Tables that a module makes in its first pass: `self.index = self.make_index(n)`. The export has run that pass, so that its
 * nodes compute them of constants; later passes find them in the module, as buffers. Weights that hooks of
 * torch.nn.utils.weight_norm and spectral_norm compute before each pass are attributes of the module until the next one. */
#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "load/statements.h"
#include "lower/lowering.h"
#include "lower/weight_place.h"
#include "ops/op.h"

/* The last statement binds an attribute of the module, and nothing else: "213c:self.index<n,;". */
static bool binds_member(const onv_node *node)
{
    static const char self[] = "self.";
    const char *last = node->statements != NULL ? node->statements : "";
    for (const char *end; (end = strchr(last, ';')) != NULL && end[1] != '\0';) last = end + 1;
    const char *targets = strchr(last, ':');
    if (targets == NULL || strncmp(targets + 1, self, sizeof self - 1) != 0) return false;
    size_t length = strcspn(targets + 1, (char[]){ONV_STATEMENT_READS, ';', 0});
    return memchr(targets + 1, ',', length) == NULL;
}

/* What is computed of constants alone: no parameter, nothing that was given or drawn. */
static bool is_fixed(const onv_lowering *l, onv_value_id id)
{
    if (!onv_is_value(id)) return true;
    const onv_value *value = onv_model_value(l->emit.model, id);
    if (onv_is_node(value->producer)) {
        const onv_node *from = onv_model_node(l->emit.model, value->producer);
        return l->is_member[value->producer.index] || strcmp(from->op_type, "Constant") == 0;
    }
    return onv_value_is_weight(value) && value->role == ONV_ROLE_NOT_NOTED;
}

static bool is_made_once(const onv_lowering *l, const onv_node *node)
{
    if (node->graph.index != 0 || onv_node_has_graphs(node) || !binds_member(node)) return false;
    if (node->op == NULL || (node->op->flags & ONV_OP_RANDOM) != 0) return false;
    for (uint32_t k = 0; k < node->n_inputs; k++)
        if (!is_fixed(l, node->inputs[k])) return false;
    return true;
}

onv_status onv_members_find(onv_lowering *l)
{
    const onv_model *model = l->emit.model;
    l->is_member = ONV_ARENA_ARRAY(&l->emit.model->arena, bool, model->nodes.count);
    if (l->is_member == NULL) return onv_fail_memory(l->emit.err);
    if (l->emit.options->as_exported) return ONV_OK;
    for (uint32_t i = 0; i < l->live->timeline.steps.count; i++) {
        onv_node_id id = l->live->timeline.steps.at[i].node;
        const onv_node *node = onv_model_node(model, id);
        l->is_member[id.index] = is_made_once(l, node);
        for (uint32_t k = 0; k < node->n_inputs && l->is_member[id.index]; k++)
            if (onv_is_value(node->inputs[k])) l->values[node->inputs[k].index].is_in_member = true;
    }
    /* What others read is there. */
    for (uint32_t i = 0; i < model->nodes.count; i++) {
        const onv_node *node = &model->nodes.at[i];
        for (uint32_t k = 0; k < node->n_inputs && !l->is_member[i]; k++)
            if (onv_is_value(node->inputs[k]))
                l->values[node->inputs[k].index].is_in_member = false;
    }
    return ONV_OK;
}

void onv_lower_member(onv_lowering *l, const onv_node *node)
{
    for (uint32_t k = 0; k < node->n_outputs && l->emit.status == ONV_OK; k++) {
        onv_value_id id = node->outputs[k];
        if (!onv_is_value(id) || l->values[id.index].is_in_member || l->is_host[id.index] ||
            l->fusions.n_uses[id.index] == 0)
            continue;
        uint32_t tensor = onv_value_new(l, id, ONV_UNDEFINED);
        if (tensor == ONV_NO_TENSOR) continue;
        onv_eager_storage *storage =
            &l->emit.eager->storages.at[onv_tensor_at(&l->emit, tensor).storage];
        storage->kind = ONV_STORAGE_BUFFER;
        storage->label = onv_model_value(l->emit.model, id)->name;
        onv_value_set(l, id, tensor);
    }
}

/* The hooks call parameters of theirs so; parametrizations, which no attribute holds, have other names. */
static bool has_hook(const onv_lowering *l, const char *module)
{
    static const char *const parameters[] = {"weight_orig", "weight_g"};
    for (size_t i = 0; i < sizeof parameters / sizeof parameters[0]; i++)
        if (onv_has_parameter(l, module, parameters[i])) return true;
    return false;
}

void onv_members_hold_weights(onv_lowering *l)
{
    for (size_t i = 0; i < l->emit.model->nodes.count && l->signature.count > 0; i++) {
        const onv_node *node = &l->emit.model->nodes.at[i];
        if (!onv_work(1)) l->emit.status = ONV_ERR_CANCELLED;
        if (l->emit.status != ONV_OK) return;
        if (node->scope == NULL || node->scope[0] == '\0') continue;
        for (uint32_t k = 0; k < node->n_inputs; k++) {
            onv_value_id id = node->inputs[k];
            uint32_t tensor = onv_is_value(id) ? l->values[id.index].tensor : ONV_NO_TENSOR;
            if (tensor == ONV_NO_TENSOR || !l->values[id.index].is_known ||
                onv_weight_place_of(node, k) != ONV_PLACE_WEIGHT ||
                strcmp(onv_weight_slot_name(node, k), "weight") != 0)
                continue;
            onv_eager_storage *storage =
                &l->emit.eager->storages.at[onv_tensor_at(&l->emit, tensor).storage];
            storage->is_attribute =
                storage->kind == ONV_STORAGE_ACTIVATION && has_hook(l, node->scope);
        }
    }
}
