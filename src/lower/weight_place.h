/* What an input of a node says of the weight that it reads: by PyTorch's operation, as the export notes it. */
#ifndef ONV_LOWER_WEIGHT_PLACE_H
#define ONV_LOWER_WEIGHT_PLACE_H

#include "ir/model.h"

typedef enum onv_weight_place {
    ONV_PLACE_UNKNOWN,
    ONV_PLACE_WEIGHT, /* where the operation takes what its module trains */
    ONV_PLACE_MADE,   /* where the operation takes what it made itself: masks, zeros */
} onv_weight_place;

onv_weight_place onv_weight_place_of(const onv_node *node, uint32_t k);

/* What a module calls the parameter that a node takes there. */
const char *onv_weight_slot_name(const onv_node *node, uint32_t k);

/* The name of a call that gives a view, or a part. */
bool onv_weight_is_view(const char *name);

/* Of a constant that is no float: the forward pass computes it of shapes. */
bool onv_weight_is_computed(const char *name);

#endif
