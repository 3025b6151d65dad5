#include <stddef.h>
#include <string.h>

#include "ir/model.h"

/* One text and places in it, of two bytes: a pointer has eight, and is relocated. */
static const struct texts {
#define OP(name) char name[sizeof #name];
#include "ir/op_names.def"
#undef OP
} texts = {
#define OP(name) #name,
#include "ir/op_names.def"
#undef OP
};

onv_op_name onv_op_name_of(const char *op_type)
{
    static const uint16_t places[] = {
#define OP(name) offsetof(struct texts, name),
#include "ir/op_names.def"
#undef OP
    };
    size_t low = 0, high = sizeof places / sizeof places[0];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const char *name = (const char *)&texts + places[middle];
        int order = (unsigned char)op_type[0] - (unsigned char)name[0]; /* mostly without a call */
        if (order == 0 && name[0] != '\0')
            order = (unsigned char)op_type[1] - (unsigned char)name[1];
        if (order == 0) order = strcmp(op_type, name);
        if (order == 0) return (onv_op_name)(1 + middle);
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return ONV_OP_OTHER;
}

void onv_node_set_op(onv_node *node, const char *op_type)
{
    node->op_type = op_type;
    node->code = op_type != NULL ? (uint16_t)onv_op_name_of(op_type) : ONV_OP_OTHER;
}
