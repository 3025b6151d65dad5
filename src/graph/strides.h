/* Strides: how the elements of a view lie in the memory it shares with its source, one step per
 * axis, in elements, as in PyTorch. A tensor is dense if its elements stand in row-major order
 * without gaps; axes of size 1 don't matter. Tensors without elements have no layout: no dim is 0.
 */
#ifndef ONV_GRAPH_STRIDES_H
#define ONV_GRAPH_STRIDES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

typedef struct onv_layout {
    int rank;
    int64_t *dims, *strides; /* rank of each */
} onv_layout;

/* Dims and strides of 0 for now; false when memory is short. */
bool onv_layout_new(onv_arena *arena, int rank, onv_layout *layout);

void onv_layout_set_dense(onv_layout *layout);
bool onv_layout_is_dense(const onv_layout *layout);

/* Gives `to`, whose dims are set, the strides that make it a view of the same elements as `from`;
 * false where there are none, so that a copy is needed. Both have as many elements. */
bool onv_layout_view(const onv_layout *from, onv_layout *to);

/* The same for `to` as `from` broadcast to it: repeated axes have a stride of 0. */
void onv_layout_broadcast(const onv_layout *from, onv_layout *to);

#endif
