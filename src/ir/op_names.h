/* Numbers of operators' names, by which they are compared: a name that nothing asks for has none. */
#ifndef ONV_IR_OP_NAMES_H
#define ONV_IR_OP_NAMES_H

typedef enum onv_op_name {
    ONV_OP_OTHER = 0,
#define OP(name) ONV_OP_##name,
#include "ir/op_names.def"
#undef OP
    ONV_N_OP_NAMES
} onv_op_name;

onv_op_name onv_op_name_of(const char *op_type);

#endif
