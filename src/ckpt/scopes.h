/* Scopes: the module that each operation of the tape came from (ir/origin.h), as PyTorch names it.
 *
 *   node "/layer1/layer1.0/conv1/Conv"   "layer1.0.conv1"
 *   weight "layer1.0.conv1.weight"       "layer1.0.conv1"
 *   node "/Add"                          ""                   the model itself
 *
 * A scope is a stretch of operations from one call of a module whose name ends in a number: a member
 * of a list, of which there may be others like it. Scopes stand by their first operation, outer
 * before inner. Cost: linear in the length of all names.
 */
#ifndef ONV_CKPT_SCOPES_H
#define ONV_CKPT_SCOPES_H

#include "eager/eager.h"

/* Numbered modules around an operation; deeper ones don't count. */
enum { ONV_SCOPE_MAX_DEPTH = 32 };

typedef struct onv_scope_run {
    const char *path; /* a module's path, of which `length` characters name the scope */
    uint32_t length;
    uint32_t first_op, last_op;
    uint32_t depth; /* how many scopes are around it */
} onv_scope_run;

/* A module, at whatever depth: from its first operation to its last one, other calls of it too. */
typedef struct onv_module_span {
    const char *path;
    const struct onv_module_span *around; /* the module that it is in; NULL: it is in none */
    uint32_t length;                      /* of its own path */
    uint32_t first_op, last_op;
    uint32_t last_place;  /* of its last operation, among those that have a path */
    bool is_called;       /* and no list of modules; unless nothing tells */
    bool is_called_again; /* operations of other modules stand between its own */
    bool
        is_one_call; /* nor is it known by its name to be called again; and code may have that name */
} onv_module_span;

typedef struct onv_scopes {
    const char **path_of;              /* by operation: NULL where nothing tells */
    const onv_module_span **module_of; /* by operation: the innermost one; NULL likewise */
    ONV_VEC(onv_scope_run) runs;
    onv_module_span *spans; /* a hash table; path NULL: empty */
    uint32_t n_slots;
} onv_scopes;

/* Paths live in `arena`. Clean up in either case. */
onv_status onv_scopes_find(const onv_model *model, const onv_eager *eager, onv_arena *arena,
                           onv_scopes *scopes, onv_error *err);
/* Equal for scopes whose depths are equal and whose paths differ in numbers alone: they are of one pattern. */
uint64_t onv_scope_pattern(const onv_scope_run *run);

/* Of each run: where it is, and what speaks for its pattern. */
typedef struct onv_scope_weight {
    onv_tape_segment at;
    bool counts;    /* among the scopes of its pattern */
    bool is_spoilt; /* so is its pattern then */
} onv_scope_weight;

/* The deepest pattern of those that have two scopes or more and one in which activations meet, and half of the bytes that the best of
 * these has. `bytes` and `joins` are sums of what the operations before each one have, and where activations meet in them. False: there is none. */
bool onv_scopes_choose(const onv_scopes *scopes, const onv_scope_weight *weights,
                       const uint64_t *bytes, const uint32_t *joins, uint64_t *pattern);
/* Whether it reads two activations; of those that have a gradient, or of all. */
bool onv_op_joins(const onv_eager *eager, const onv_eager_op *op, bool with_grad);
/* Adds the modules, by their operations before `n_ops`, whose paths a pattern (fnmatch) names to the `n` at `to`, which has room
 * for n_slots more. ONV_ERR_USAGE where there are none, or one is called several times; `what` begins the message. */
onv_status onv_scopes_match(const onv_scopes *scopes, uint32_t n_ops, const char *what,
                            const char *pattern, onv_tape_segment *to, uint32_t *n, onv_error *err);
/* The module that the first `length` characters of a path name; NULL if there is none. */
const onv_module_span *onv_scopes_module(const onv_scopes *scopes, const char *path,
                                         uint32_t length);
/* What plain paths consist of. */
#define ONV_PATH_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
/* Names of modules end up in code: only letters, digits, underscores, dashes and dots are plain, whatever the
 * locale calls a letter. An empty path is not. */
bool onv_path_is_plain(const char *path, size_t length);
void onv_scopes_cleanup(onv_scopes *scopes);

#endif
