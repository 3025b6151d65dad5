/* Calls of modules: who holds tensors longer than the operations that read them do.
 *
 * nn.Module.__call__ has its arguments in a tuple of its own: what comes into a call from outside is
 * there until the call returns, whatever the module does with the names that it gave it. What a module
 * gives names itself is there until it returns, if the names are not bound to something else: eager/names.h,
 * where an export tells the statements; elsewhere there are two ends.
 *
 * The exports of PyTorch tell the calls: in metadata, or in names of nodes, "/layer1/layer1.0/Add".
 * Two calls of a module without an operation between them count as one, where no statement tells: a member
 * of a list that comes to its first line again is called again, as layers that share weights are.
 */
#ifndef ONV_EAGER_CALLS_H
#define ONV_EAGER_CALLS_H

#include "base/arena.h"
#include "eager/eager.h"
#include "ir/notes.h"

typedef struct onv_call {
    uint32_t first_op, last_op;
    uint32_t parent;  /* ONV_NO_CALL: none */
    bool is_chain;    /* each of its members takes what the one before it gave: a Sequential */
    bool is_known;    /* its class is */
    bool is_layer;    /* a module of PyTorch that makes one result of tensors */
    const char *path; /* of the node, of which `length` characters name the call */
    uint32_t length;
    onv_words first_line;  /* of its statements, its digits; NULL: none is told */
    uint32_t inner_length; /* of `path`, up to the call that this line makes; 0: none */
    bool has_passed;       /* another line has run since */
} onv_call;

#define ONV_NO_CALL UINT32_MAX

/* Calls inside each other; deeper ones do not count. */
enum { ONV_MAX_CALLS = 64 };

typedef struct onv_calls {
    ONV_VEC(onv_call) at; /* by first operation, outer before inner; in the arena, as all of it */
    uint32_t *of_op;      /* the innermost one; ONV_NO_CALL: nothing tells */
    bool *is_other;       /* by operation: its own call, inside of that, is not known */
} onv_calls;

/* In the arena; a complete tape has them. */
onv_status onv_calls_find(const onv_model *model, const onv_eager *eager, onv_arena *arena,
                          const onv_calls **calls, onv_error *err);

typedef enum onv_held_end {
    ONV_HELD_LEAST, /* by calls alone, whose arguments are certain */
    ONV_HELD_TOLD,  /* by the names that lines bind, too */
    ONV_HELD_MOST,  /* names that nothing tells of hold what they can */
} onv_held_end;

typedef struct onv_holding {
    const onv_model *model;
    const onv_calls *calls;
    const onv_eager *eager;
    const uint32_t *made_by,
        *last_use; /* by storage: the first operation that makes it, and the last one that has it */
    uint32_t
        *held; /* by storage: the last operation at which a call still holds it; 0: none does */
} onv_holding;

/* Fills `held`, which is all 0. */
onv_status onv_calls_hold(onv_holding *h, onv_held_end end, onv_arena *arena, onv_error *err);

#endif
