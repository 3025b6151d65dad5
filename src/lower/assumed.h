/* Shapes of parameters that the forward pass never runs, assumed as networks are usually built. */
#ifndef ONV_LOWER_ASSUMED_H
#define ONV_LOWER_ASSUMED_H

#include "lower/lowering.h"

typedef enum onv_assumption {
    ONV_BY_FILE,
    ONV_BY_LIKE_NAMES,
    ONV_BY_STAGE,
    ONV_BY_ROW,
    ONV_BY_HEAD,
    ONV_BY_CLASSES,
    ONV_BY_NOTHING,
} onv_assumption;

typedef struct onv_assumed_shape {
    const int64_t *dims; /* NULL: not known */
    uint32_t rank;
    uint8_t why;   /* onv_assumption */
    bool is_tried; /* as part of what comes after stages or blocks of its kind */
} onv_assumed_shape;

typedef struct onv_assumed {
    onv_lowering *l;
    onv_assumed_shape *at; /* by listed name */
    const char **buffers;  /* of the network, sorted */
    uint64_t element;      /* bytes of one */
    bool is_pyramid;       /* see find_growth() */
} onv_assumed;

/* Fills `at`, first with what is known and with stages, then with the rest of those that are still not known. */
onv_status onv_assumed_begin(onv_assumed *a);
onv_status onv_assumed_end(onv_assumed *a);

/* The module of that parameter has running statistics. */
bool onv_is_of_batch_norm(const onv_assumed *a, const char *parameter);

/* Notes the shape of a listed parameter; false: memory is short. */
bool onv_assume(onv_assumed *a, size_t i, uint32_t rank, const int64_t *dims, onv_assumption why);

/* --- assumed_stages.c --- */

void onv_assume_stages(onv_assumed *a);

#endif
