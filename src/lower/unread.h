/* What the last of equal layers computes and nothing reads: nodes of another layer run for it, too. */
#ifndef ONV_LOWER_UNREAD_H
#define ONV_LOWER_UNREAD_H

#include "base/status.h"
#include "ir/model.h"

struct onv_lowering;

/* A node of a layer that runs for another one, too, behind a node of that; see unread.c. */
typedef struct onv_unread {
    onv_node_id node, after;
    const char *calls; /* the modules around it there, as in onv_node */
    size_t first_value, n_values;
    bool is_join; /* of a list; see unread_list.c. Its values are those that are joined */
} onv_unread;

/* A value of the layer, and the one that the other layer has in its place; UINT32_MAX: none, then the tensor. */
typedef struct onv_unread_value {
    uint32_t value, stands, tensor;
    uint32_t before; /* while it is another one's: its own */
    bool was_known;
} onv_unread_value;

typedef struct onv_unread_calls {
    ONV_VEC(onv_unread) runs; /* in the order of `after` */
    ONV_VEC(onv_unread_value) values;
    size_t next; /* of `runs` */
} onv_unread_calls;

void onv_unread_lists_find(struct onv_lowering *l);
void onv_unread_join(struct onv_lowering *l, const onv_unread *item);
onv_status onv_unread_find(struct onv_lowering *l);
/* Those behind the node that was lowered. */
void onv_unread_run(struct onv_lowering *l);

#endif
