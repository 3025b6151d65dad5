/* Storages: which values share memory.
 *
 * Liveness gives every value an interval of its own. A runtime shares: a Reshape is a view of its
 * input, a Relu may overwrite it. A storage is the memory that one or more values share; it lives
 * from the first definition to the last use of any of them. The rules say what is shared.
 *
 * Requires: onv_live_compute. Cost: linear in the rows.
 */
#ifndef ONV_GRAPH_STORAGE_H
#define ONV_GRAPH_STORAGE_H

#include "graph/liveness.h"

typedef struct onv_storage_rules {
    bool views;   /* the table's views: Reshape, Squeeze, Unsqueeze, Flatten, Identity ... */
    bool inplace; /* elementwise operators overwrite an input that dies there */
    const onv_node *only; /* of this node alone; NULL: of all */
    const char *only_op;  /* of nodes of this operator alone; NULL: of all */
} onv_storage_rules;

#define ONV_NO_STORAGE UINT32_MAX

typedef struct onv_storages {
    onv_timeline timeline; /* a buffer is a storage, in order of `first` */
    uint32_t *of_row;      /* by buffer of liveness; ONV_NO_STORAGE: in a weight */
    onv_peak peak;
} onv_storages;

/* The result lives in `arena`, its timeline too, which is not to be cleaned up. It takes the place of what
 * was computed of the same `live` before, if *storages is that, else {0}. */
onv_status onv_storages_compute(onv_arena *arena, const onv_model *model, const onv_live *live,
                                const onv_storage_rules *rules, onv_storages *storages,
                                onv_error *err);

/* Whether each value (by index) is on the host: as rewriting placed it; else shapes, and what is computed
 * from them alone. In the model's arena. */
onv_status onv_mark_host_values(onv_model *model, const onv_live *live, bool **is_host,
                                onv_error *err);

#endif
