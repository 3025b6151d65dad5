/* What libraries that share training among devices hold on each of them: see sharding.c. */
#ifndef ONV_EAGER_SHARDING_H
#define ONV_EAGER_SHARDING_H

#include "eager/simulation.h"

/* A group of parameters that are gathered together. */
typedef struct onv_shard_unit {
    uint32_t first_op, last_op; /* of its module; the root's are all of the forward part */
    uint32_t *storages;         /* of its parameters */
    uint32_t n_storages;
    uint64_t gather_elems;  /* of all devices' parts, padded */
    uint64_t shard_elems;   /* of one device's, padded, that gathering casts */
    uint64_t reduce_elems;  /* of all trained parameters, padded */
    uint64_t elem_bytes;    /* of parameters as they are computed with */
    uint64_t state_bytes;   /* of an element as the optimizer has it */
    uint32_t gathering_row; /* the result of an all-gather that nobody copied out yet */
    uint32_t grad_row;      /* this device's part of all gradients */
    bool takes_grads;       /* its input has a gradient: its backward ends with that */
    bool is_gathered, is_reduced;
    bool ran;
} onv_shard_unit;

typedef struct onv_sharding {
    onv_shard_unit *units; /* in the order of the forward pass, the root last; FSDP */
    uint32_t n_units;
    uint32_t *unit_of;      /* by operation */
    uint32_t held_row;      /* the last all-gather's result, until the next one is copied out */
    uint32_t reducing_row;  /* the last reduce-scatter's input, until the next one */
    uint32_t *gathered_row; /* by storage */
    uint64_t gathered_bytes, reduce_bytes; /* now */
    uint32_t *bucket_of;                   /* by storage: its row; DDP */
    uint32_t *order;                       /* storages as they stand in buckets */
    uint32_t *came;                        /* as their gradients came in the first iteration */
    bool *has_come;                        /* by storage */
    uint32_t n_order, n_came;
} onv_sharding;

#endif
