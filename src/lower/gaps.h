/* Numbers of PyTorch's calls, and where they have gaps: what the exporter merged. */
#ifndef ONV_LOWER_GAPS_H
#define ONV_LOWER_GAPS_H

#include "base/status.h"
#include "ir/model.h"
#include "load/ptr_map.h"

struct onv_lowering;

/* "sub_5" of a node. */
typedef struct onv_call_name {
    const char *name;
    size_t length; /* without the number */
    uint32_t number, node;
    uint32_t
        claimed; /* of the numbers that are missing before it: found to be calls that ran again */
} onv_call_name;

typedef struct onv_call_gaps {
    ONV_VEC(onv_call_name) calls; /* of all nodes, by kind and number */
    onv_ptr_map names;            /* of values, and of calls that were merged */
    bool has_names;               /* `names` is filled */
    bool *has_gaps;               /* by node: numbers of its kind of call are missing */
    bool counts_batches;          /* numbers of additions are missing for that */
} onv_call_gaps;

onv_call_name onv_call_name_of(const char *name, uint32_t node);
bool onv_call_is_like(const onv_call_name *a, const onv_call_name *b);

onv_status onv_gaps_find(struct onv_lowering *l);
/* For a reader that names another call than the one that made the value: what ran again before it, that call and those that
 * led to it, the last ones first. 0: nothing tells. At most ONV_MAX_REPEATED. */
uint32_t onv_gaps_chain(struct onv_lowering *l, onv_value_id id, const onv_node *reader,
                        onv_value_id *chain);
/* "t_1" where nothing is "t", neither a result nor a constant: `w - w.t() - c`, turned, of which the file has the end. */
bool onv_follows_folded(struct onv_lowering *l, const char *name);

#endif
