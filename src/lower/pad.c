/* Copies that PyTorch makes before a convolution because it pads in a way that the convolution cannot.
 *
 * Takes notes. Gives the copy, once for all convolutions with the same argument. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "lower/lowering.h"

/* What the convolution pads itself, at both ends of spatial dim `i`: with padding="same" all but the difference of both
 * ends (_convolution_same). */
static int64_t own_padding(const onv_node *node, uint32_t i, int64_t begin, int64_t end)
{
    int64_t least = begin < end ? begin : end, own = 0;
    if (least < 0) return 0;
    const char *at = onv_noted(node)->padding;
    for (uint32_t k = 0; at != NULL && *at != '\0' && k <= i; k++) {
        own = strtoll(at + 1, NULL, 10);
        at = strchr(at + 1, ',');
    }
    return own > 0 && own <= least ? own : 0;
}

/* The shape of what the convolution is given, if that is a copy. */
static bool find_padded(const onv_node *node, const onv_attr *pads, onv_shape *shape, bool *uneven)
{
    uint32_t n = shape->rank - 2;
    for (uint32_t i = 0; i < n; i++) {
        int64_t begin = pads->ints[i], end = pads->ints[n + i];
        int64_t own = own_padding(node, i, begin, end);
        *uneven |= begin != end;
        if (!onv_i64_add(shape->dims[2 + i], begin - own, &shape->dims[2 + i]) ||
            !onv_i64_add(shape->dims[2 + i], end - own, &shape->dims[2 + i]) ||
            shape->dims[2 + i] < 0)
            return false;
    }
    return true;
}

/* A convolution pads both ends alike, unless its notes tell of a padding of its own: what does not was padded before it, into a copy. */
uint32_t onv_emit_padded(onv_lowering *l, const onv_node *node, uint32_t x)
{
    const onv_attr *pads = onv_node_attr(node, "pads");
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    onv_shape shape = {.rank = t.rank};
    bool uneven = false;
    if (x == ONV_NO_TENSOR || pads == NULL || pads->kind != ONV_ATTR_INTS || t.rank < 3) return x;
    if (pads->count != 2 * (t.rank - 2) || node->code != ONV_OP_Conv) return x;
    for (uint32_t i = 0; i < t.rank; i++) shape.dims[i] = t.dims[i];
    if (!find_padded(node, pads, &shape, &uneven)) return x;
    if ((!uneven && !onv_noted(node)->has_pad) || l->emit.options->as_exported) return x;
    onv_value_state *before = &l->values[node->inputs[0].index];
    const char *name = onv_noted(node)->padded;
    if (name != NULL && name == before->padded_as &&
        onv_tensor_has_dims(&l->emit, before->padded - 1, shape.rank, shape.dims))
        return before->padded - 1;
    int64_t room[ONV_MAX_RANK];
    const int64_t *strides = onv_image_strides(&t, t.rank, shape.dims, room);
    before->padded = 1 + onv_emit_of(&l->emit, "pad", x, ONV_GRAD_NEW, t.rank, shape.dims, strides);
    before->padded_as = name;
    return before->padded - 1;
}
