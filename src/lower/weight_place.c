/* What an input of a node says of the weight that it reads: by PyTorch's operation, as the export notes it. */
#include <string.h>

#include "lower/lowering.h"

/* Operations whose module trains what they read beside their input. */
static const char layers[] =
    "linear conv1d conv2d conv3d convolution layer_norm rms_norm native_layer_norm prelu "
    "_weight_norm conv_transpose1d conv_transpose2d conv_transpose3d bilinear instance_norm "
    "_native_batch_norm_legit_functional _native_batch_norm_legit batch_norm native_batch_norm "
    "addmm";
/* Operations that make what they read. */
static const char others[] =
    "index_put scatter scatter_add scatter_reduce select_scatter slice_scatter bernoulli rand_like "
    "randn_like upsample_bilinear2d upsample_bicubic2d upsample_nearest2d upsample_linear1d "
    "upsample_trilinear3d masked_fill where arange index_add index_copy full_like new_zeros fill "
    "rot90 clamp";

onv_weight_place onv_weight_place_of(const onv_node *node, uint32_t k)
{
    if (!onv_node_is_noted(node)) return ONV_PLACE_UNKNOWN;
    /* A condition has no gradient. */
    if (node->code == ONV_OP_Cast && onv_node_int(node, "to", 0) == ONV_BOOL) return ONV_PLACE_MADE;
    if (onv_node_is_recurrent(node)) return k >= 1 && k <= 3 ? ONV_PLACE_WEIGHT : ONV_PLACE_MADE;
    if (onv_node_is_aten(node, "group_norm native_group_norm")) {
        bool scales = node->code == ONV_OP_InstanceNormalization;
        return scales ? ONV_PLACE_MADE : ONV_PLACE_WEIGHT;
    }
    if (onv_node_is_aten(node, "embedding embedding_bag"))
        return k == 0 ? ONV_PLACE_WEIGHT : ONV_PLACE_MADE;
    if (onv_node_is_aten(node, "scaled_dot_product_attention")) return ONV_PLACE_MADE;
    /* A norm without statistics of its own, over a weight: its scale is a weight, its bias is made. */
    if (onv_node_is_aten(node, "_native_batch_norm_legit") &&
        strstr(onv_noted(node)->aten_op, "no_stats") != NULL)
        return k == 1 ? ONV_PLACE_WEIGHT : ONV_PLACE_MADE;
    if (onv_node_is_aten(node, "bilinear") && node->code == ONV_OP_Reshape)
        return k == 0 ? ONV_PLACE_WEIGHT : ONV_PLACE_MADE; /* it multiplies by a matrix */
    if (onv_node_is_aten(node, layers))
        return k > 0 || node->code == ONV_OP_Add || node->code == ONV_OP_Mul
                   ? ONV_PLACE_WEIGHT
                   : ONV_PLACE_MADE; /* the layer's input */
    if (onv_node_is_aten(node, others)) return ONV_PLACE_MADE;
    return ONV_PLACE_UNKNOWN;
}

/* The attribute of the node's own module that a sum or a product takes, as its note tells where it is the only one. */
static const char *noted_attribute(const onv_node *node, uint32_t k)
{
    size_t scope = strlen(onv_noted(node)->scope);
    bool is_any = ONV_IS_ANY(node, ONV_OP_Add, ONV_OP_Sub, ONV_OP_Mul, ONV_OP_Div);
    if (!is_any || scope == 0 || onv_noted(node)->n_parameters != 1 ||
        onv_weight_place_of(node, k) != ONV_PLACE_UNKNOWN)
        return NULL;
    const char *name = onv_noted(node)->parameters[0];
    if (strncmp(name, onv_noted(node)->scope, scope) != 0 || name[scope] != '.') return NULL;
    return strchr(name + scope + 1, '.') == NULL ? name + scope + 1 : NULL;
}

/* What a module calls the parameter that a node takes there. */
const char *onv_weight_slot_name(const onv_node *node, uint32_t k)
{
    static const char *const recurrent[] = {"input", "weight_ih", "weight_hh", "bias"};
    static const char *const norm[] = {"input", "weight", "bias", "running_mean", "running_var"};
    if (onv_node_is_recurrent(node) && k < 4) return recurrent[k];
    if (node->code == ONV_OP_BatchNormalization && k < 5) return norm[k];
    const char *attribute = noted_attribute(node, k);
    if (attribute != NULL) return attribute;
    if (node->code == ONV_OP_Add || node->code == ONV_OP_Sub) return "bias";
    return k == 2 ? "bias" : "weight";
}

/* Integers and masks under the name of an operation that is no view: what the forward pass computes of shapes. A
 * list that the code wrote down is moved to the device once. */
bool onv_weight_is_computed(const char *name)
{
    static const char not_made[] =
        "slice select view reshape unsqueeze squeeze permute transpose t expand flatten "
        "lift_fresh_copy _to_copy clone split getitem contiguous index_select";
    return !onv_has_made_up_name(name) && strchr(name, '.') == NULL &&
           strncmp(name, "lifted_tensor", 13) != 0 && strncmp(name, "_tensor_constant", 16) != 0 &&
           strncmp(name, "c_", 2) != 0 && strncmp(name, "b_", 2) != 0 &&
           !onv_is_call_of(name, not_made);
}

bool onv_weight_is_view(const char *name)
{
    static const char views[] =
        "unsqueeze squeeze view reshape permute transpose expand repeat select slice";
    return onv_is_call_of(name, views);
}
