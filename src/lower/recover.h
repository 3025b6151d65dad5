/* Calls of ATen that are recovered of the graph.
 *
 *     onv_recover_tensor(l, "input", x);
 *     onv_recover_int(l, "num_groups", 32);
 *     y = onv_recover_call(l, ONV_ATEN_group_norm, node->outputs[0]);
 *
 * Arguments come first, as the operator's schema calls them, or without a name in the order of its row; a call is emitted at
 * once, by its row in src/aten or its rule in src/tape, and forgotten.
 */
#ifndef ONV_LOWER_RECOVER_H
#define ONV_LOWER_RECOVER_H

#include "tape/state.h"

typedef struct onv_lowering onv_lowering;

/* The call that is recovered now. */
typedef struct onv_recovery {
    onv_program program; /* whose values are the call's tensors */
    ONV_VEC(onv_tape_value) values;
    ONV_VEC(onv_argument) arguments;
    ONV_VEC(uint32_t) list;    /* tensors of the one argument that is a list: their values */
    size_t list_at;            /* 1 + that argument; 0: none is */
    ONV_VEC(uint32_t) results; /* their values */
    uint32_t like; /* a tensor whose order of memory the result has; ONV_NO_TENSOR: the row tells */
    uint8_t dtype; /* of the result; ONV_UNDEFINED: the graph's */
    bool in_place; /* it overwrites its first argument */
    bool has_second; /* a result of int64 beside the first */
    uint32_t second; /* its tensor, once the call is emitted */
} onv_recovery;

void onv_recover_cleanup(onv_lowering *l);

/* All tensors from now on are of a list, which is the argument. */
void onv_recover_list(onv_lowering *l, const char *name);
/* What is on the host is no argument, but takes its place in the row's order. */
void onv_recover_tensor(onv_lowering *l, const char *name, uint32_t tensor);
void onv_recover_int(onv_lowering *l, const char *name, int64_t number);
void onv_recover_ints(onv_lowering *l, const char *name, const int64_t *numbers, uint32_t count);
void onv_recover_real(onv_lowering *l, const char *name, double number);
void onv_recover_text(onv_lowering *l, const char *name, const char *text);

/* The tensor of its first result, of the shape of `out`; `op_name` is static. "aten.relu_.default" overwrites its first
 * argument. */
uint32_t onv_recover_call(onv_lowering *l, onv_aten_id op, onv_value_id out);
/* The same of a call that gives those results of nodes, which are set. */
void onv_recover_parts(onv_lowering *l, onv_aten_id op, const onv_value_id *outs, uint32_t n);
/* Calls of one operand, or two. */
uint32_t onv_recover_unary(onv_lowering *l, onv_aten_id op, uint32_t x, onv_value_id out);
uint32_t onv_recover_binary(onv_lowering *l, onv_aten_id op, uint32_t x, uint32_t y,
                            onv_value_id out);

#endif
