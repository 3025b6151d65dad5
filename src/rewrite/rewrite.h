/* From the graph of the file to the graph that ONNX Runtime's CUDA provider runs.
 *
 * Requires: onv_infer has run. Gives: another model, an ordinary typed graph with an arena of its own,
 * beside the one it was made from, which stays as it is and must outlive it. What is rewritten, and in which
 * order, is a table (rules.def): one row per rewrite, under the name that ONNX Runtime gives it. It rewrites
 * before it knows any size that the file leaves open (seen.h).
 *
 *     level 1   before nodes are assigned to providers; ONNX operators only
 *     assigned  which nodes the CPU runs (partition.c)
 *     level 2   and 3: fused operators of a provider
 *     copies    MemcpyFromHost and MemcpyToHost where a value is needed on the other side (memcpy.c)
 *
 * Cost: linear in nodes and uses for each pass; at most ten passes a level, as in ONNX Runtime, and none after
 * one that changes nothing.
 */
#ifndef ONV_REWRITE_REWRITE_H
#define ONV_REWRITE_REWRITE_H

#include "ir/model.h"

/* The numbers of ONNX Runtime's GraphOptimizationLevel. */
typedef enum onv_rewrite_level {
    ONV_REWRITE_DISABLED = 0,
    ONV_REWRITE_BASIC = 1,
    ONV_REWRITE_EXTENDED = 2,
    ONV_REWRITE_LAYOUT = 3,
    ONV_REWRITE_ALL = 99,
} onv_rewrite_level;

typedef struct onv_rewrite_count {
    const char *name;     /* ONNX Runtime's */
    uint32_t count;       /* how often it applied */
    bool is_not_modelled; /* it would apply, but nothing was rewritten */
} onv_rewrite_count;

typedef struct onv_rewritten {
    onv_type *seen;            /* by value: what ONNX Runtime knows of its shape (seen.h) */
    onv_model model;           /* its nodes have providers, and its values a place */
    onv_rewrite_count *counts; /* of rewrites that applied, or would */
    uint32_t n_counts;
    uint32_t n_nodes_on_cpu, n_copies;
} onv_rewritten;

/* Of a session of that provider: ONV_PROVIDER_CUDA, which leaves some nodes to the CPU, or ONV_PROVIDER_CPU alone. On
 * failure there is nothing to clean up. */
onv_status onv_rewrite_model(const onv_model *model, onv_provider provider, onv_rewrite_level level,
                             onv_rewritten *rewritten, onv_error *err);
void onv_rewritten_cleanup(onv_rewritten *rewritten);

#endif
