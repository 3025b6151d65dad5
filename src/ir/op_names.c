#include "ir/op_names.h"

#include <stdlib.h>
#include <string.h>

#include "ir/model.h"

static int compare(const void *name, const void *row)
{
    return strcmp(name, *(const char *const *)row);
}

onv_op_name onv_op_name_of(const char *op_type)
{
    static const char *const names[] = {
#define OP(name) #name,
#include "ir/op_names.def"
#undef OP
    };
    enum { N = sizeof names / sizeof names[0] };
    const char *const *row = bsearch(op_type, names, N, sizeof names[0], compare);
    return row != NULL ? (onv_op_name)(1 + (row - names)) : ONV_OP_OTHER;
}

void onv_node_set_op(onv_node *node, const char *op_type)
{
    node->op_type = op_type;
    node->code = op_type != NULL ? (uint16_t)onv_op_name_of(op_type) : ONV_OP_OTHER;
}
