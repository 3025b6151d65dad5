/* The table of rewrites. */
#ifndef ONV_REWRITE_RULES_H
#define ONV_REWRITE_RULES_H

#include "rewrite/edit.h"

typedef enum onv_rule_kind {
    ONV_RULE, /* tried on a node together with the other rules of its level, one node after the other */
    ONV_TRANSFORMER,      /* a pass of its own over each graph */
    ONV_TRANSFORMER_ONCE, /* the same in the first step of its level alone */
} onv_rule_kind;

enum { ONV_RULE_BEFORE = 0, ONV_RULE_AFTER = 4 };

/* One rewrite. `apply` tries it at a node and says whether it did something; the node may be gone then, and
 * nodes that it added are not tried in the same pass. A transformer that is not one step per node has
 * `run` instead. */
typedef struct onv_rewrite_rule {
    const char *name;     /* ONNX Runtime's own, as `disabled_optimizers` takes it */
    uint8_t level;        /* 1, 2, 3 */
    uint8_t kind;         /* onv_rule_kind */
    bool is_not_modelled; /* `apply` says whether it would do something, and does nothing */
    const char *ops;      /* operator types that it starts at, with a space between; NULL: any */
    bool (*apply)(onv_edit *e, onv_node_id node);
    uint32_t (*run)(onv_edit *e, onv_graph_id graph); /* how often it did something */
} onv_rewrite_rule;

/* In ONNX Runtime's order. */
extern const onv_rewrite_rule onv_rewrite_rules[];
extern const size_t onv_n_rewrite_rules;

/* Providers for all nodes (partition.c); copies at their border, after which each value has its place
 * (memcpy.c), and how many there are. */
void onv_rewrite_assign(onv_edit *e);
uint32_t onv_rewrite_add_copies(onv_edit *e);

/* Weights in fewer bits (packed.c). */
void onv_rewrite_packed(onv_edit *e);

/* Folds where what a node makes can be computed when the session is made. */
bool onv_edit_can_fold(const onv_edit *e, onv_node_id node);

/* --- eliminate.c */
bool onv_rule_eliminate_identity(onv_edit *e, onv_node_id node);
bool onv_rule_eliminate_slice(onv_edit *e, onv_node_id node);
bool onv_rule_eliminate_unsqueeze(onv_edit *e, onv_node_id node);
bool onv_rule_eliminate_dropout(onv_edit *e, onv_node_id node);
bool onv_rule_eliminate_expand(onv_edit *e, onv_node_id node);
bool onv_rule_eliminate_cast(onv_edit *e, onv_node_id node);
bool onv_rule_eliminate_before_shape(onv_edit *e, onv_node_id node);
bool onv_rule_eliminate_noop(onv_edit *e, onv_node_id node);

/* --- fuse_simple.c */
bool onv_rule_div_mul(onv_edit *e, onv_node_id node);
bool onv_rule_relu_clip(onv_edit *e, onv_node_id node);
bool onv_rule_gemm_sum(onv_edit *e, onv_node_id node);
bool onv_rule_gemm_transpose(onv_edit *e, onv_node_id node);
bool onv_rule_not_where(onv_edit *e, onv_node_id node);
bool onv_rule_pad(onv_edit *e, onv_node_id node);

/* --- fuse_conv.c */
bool onv_rule_conv_add(onv_edit *e, onv_node_id conv);
bool onv_rule_conv_mul(onv_edit *e, onv_node_id conv);
bool onv_rule_conv_bn(onv_edit *e, onv_node_id conv);
bool onv_rule_matmul_bn(onv_edit *e, onv_node_id matmul);

/* --- share.c */
uint32_t onv_rule_constant_sharing(onv_edit *e, onv_graph_id graph);
uint32_t onv_rule_common_subexpressions(onv_edit *e, onv_graph_id graph);

/* --- fold_constants.c */
bool onv_rule_constant_folding(onv_edit *e, onv_node_id node);

/* --- casts.c, quantized.c */
bool onv_rule_duplicate_casts(onv_edit *e, onv_node_id node);
bool onv_rule_unique_dequantize(onv_edit *e, onv_node_id node);

/* --- matmul_add.c, fuse_reshape.c */
bool onv_rule_matmul_add(onv_edit *e, onv_node_id node);
bool onv_rule_matmul_add_keeping_attention(onv_edit *e, onv_node_id node);
bool onv_rule_reshape(onv_edit *e, onv_node_id node);

/* --- not_modelled.c: whether it would apply */
bool onv_would_remove_double_qdq(onv_edit *e, onv_node_id quantize);
bool onv_would_propagate_qdq(onv_edit *e, onv_node_id node);
bool onv_would_quantize_weight(onv_edit *e, onv_node_id node);
bool onv_would_select_qdq(onv_edit *e, onv_node_id matmul);
bool onv_would_fuse_group_query(onv_edit *e, onv_node_id attention);
bool onv_would_fuse_bias_dropout(onv_edit *e, onv_node_id dropout);
bool onv_would_fuse_space_to_depth(onv_edit *e, onv_node_id concat);
bool onv_would_cast_float16(onv_edit *e, onv_node_id node);

#endif
