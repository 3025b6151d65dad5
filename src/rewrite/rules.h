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
    const char *form;     /* in place of `apply`: whether the node is a part of one */
    bool (*apply)(onv_edit *e, onv_node_id node);
    uint32_t (*run)(onv_edit *e, onv_graph_id graph); /* how often it did something */
} onv_rewrite_rule;

/* In ONNX Runtime's order. */
extern const onv_rewrite_rule onv_rewrite_rules[];
extern const size_t onv_n_rewrite_rules;

/* Is the word one of the list, which has a space between two? */
bool onv_rewrite_names(const char *list, const char *word);

/* Functions of ONNX that nobody has a kernel for (functions.c). */
void onv_rewrite_inline(onv_edit *e);

/* Providers for all nodes (partition.c); copies at their border, after which each value has its place
 * (memcpy.c), and how many there are. */
void onv_rewrite_assign(onv_edit *e, onv_provider provider);
uint32_t onv_rewrite_add_copies(onv_edit *e);

/* Weights in fewer bits (packed.c). */
void onv_rewrite_packed(onv_edit *e);

/* Folds where what a node makes can be computed when the session is made. */
bool onv_edit_can_fold(const onv_edit *e, onv_node_id node);

/* --- What the rows name ------------------------------------------------------------------------ */

#define RULE(level, name, ops, apply)         bool apply(onv_edit *e, onv_node_id node);
#define TRANSFORMER(level, name, ops, apply)  RULE(level, name, ops, apply)
#define NOT_MODELLED(level, name, ops, apply) RULE(level, name, ops, apply)
#define WOULD(level, name, ops, form)
#define PASS(level, name, kind, run) uint32_t run(onv_edit *e, onv_graph_id graph);
#include "rewrite/rules.def"
#undef RULE
#undef TRANSFORMER
#undef NOT_MODELLED
#undef WOULD
#undef PASS

#endif
