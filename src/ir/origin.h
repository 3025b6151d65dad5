/* The module that a node came from, as its export tells it.
 *
 *   1. node "/layer1/layer1.0/conv1/Conv"   "/layer1/layer1.0/conv1", with slashes: TorchScript
 *   2. weight "layer1.0.conv1.weight"       "layer1.0.conv1", with dots: the first one that tells
 *   3. metadata, torch.export's             "layer1.0.conv1"
 *   4. node "layer1.0.conv1.Conv"           "layer1.0.conv1"
 *
 * Where there is metadata, a weight counts only if it is of that module, of one inside, or of one
 * beside it: an exporter that folds a batch norm into a convolution notes the batch norm, but a weight
 * that stands for equal ones (all the norms of a new network) is of whichever module came first.
 * A path with slashes writes a member of a list with the list's name before its own, one with dots
 * does not.
 */
#ifndef ONV_IR_ORIGIN_H
#define ONV_IR_ORIGIN_H

#include "ir/model.h"

typedef struct onv_origin {
    const char *path; /* `length` characters of a name of the model; NULL: nothing tells */
    size_t length;    /* 0: the model itself */
    char separator;   /* of its parts: '/' or '.' */
} onv_origin;

onv_origin onv_node_origin(const onv_model *model, const onv_node *node);

#endif
