/* The chain of a tape (tape.h) as a list, for solvers of other projects. */
#ifndef ONV_CKPT_UNIT_LIST_H
#define ONV_CKPT_UNIT_LIST_H

#include "ckpt/tape.h"

typedef struct onv_listed_unit {
    onv_node_id node;      /* of the operation with the most products, else the first */
    const char *operation; /* its name, static */
    uint64_t macs;         /* of all */
} onv_listed_unit;

typedef struct onv_unit_list {
    onv_chain chain;
    const onv_listed_unit *units; /* as the chain's */
} onv_unit_list;

/* At most ONV_CHAIN_MAX_UNITS units, without results that are held. Lives in the model's arena. */
onv_status onv_unit_list_make(onv_model *model, const onv_eager *eager,
                              const onv_train_options *options, const onv_unit_list **list,
                              onv_error *err);

#endif
