/* Weights that stand in attributes: ai.onnx.ml has its trees, coefficients and vectors there. */
#include "base/checked.h"
#include "ops/op.h"

static bool add(uint64_t count, uint64_t size, uint64_t *bytes, uint64_t *elems)
{
    uint64_t more;
    return onv_u64_mul(count, size, &more) && onv_u64_add(*bytes, more, bytes) &&
           onv_u64_add(*elems, count, elems);
}

static bool add_tensors(const onv_attr *attr, uint64_t *bytes, uint64_t *elems)
{
    bool plural = attr->kind == ONV_ATTR_TENSORS;
    for (uint32_t i = 0; i < (plural ? attr->count : 1); i++) {
        if (attr->tensor[i].type.dtype == ONV_STRING) continue;
        if (!onv_u64_add(*bytes, attr->tensor[i].bytes, bytes) ||
            !onv_u64_add(*elems, attr->tensor[i].elems, elems))
            return false;
    }
    return true;
}

bool onv_op_attr_weights(const onv_node *node, uint64_t *bytes, uint64_t *elems)
{
    bool fits = true;
    *bytes = *elems = 0;
    if (node->op == NULL || !(node->op->flags & ONV_OP_WEIGHT_ATTRS)) return true;
    for (uint32_t i = 0; i < node->n_attrs && fits; i++) {
        const onv_attr *attr = &node->attrs[i];
        switch ((onv_attr_kind)attr->kind) {
        case ONV_ATTR_FLOATS: fits = add(attr->count, sizeof(float), bytes, elems); break;
        case ONV_ATTR_INTS: fits = add(attr->count, sizeof(int64_t), bytes, elems); break;
        case ONV_ATTR_TENSOR:
        case ONV_ATTR_TENSORS: fits = add_tensors(attr, bytes, elems); break;
        default: break; /* text, and single numbers: settings */
        }
    }
    return fits;
}
