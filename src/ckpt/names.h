/* Names of a segment, for people and for PyTorch. */
#ifndef ONV_CKPT_NAMES_H
#define ONV_CKPT_NAMES_H

#include "ckpt/borders.h"
#include "ckpt/scopes.h"
#include "eager/program.h"

typedef struct onv_segment_names {
    /* Nodes; an unnamed one goes by its first output, what was folded into one by "node:module". */
    const char *first, *last;
    /* Modules that the segment consists of, in order, with spaces between; NULL where it holds
     * operations of a module that is not whole, or nothing tells their modules. Letters, digits,
     * underscores, dashes and dots. A module that is called several times has no name here: what is done to
     * it would be done in all its calls. */
    const char *modules;
    uint32_t n_modules;
    /* One after the other, each takes the result of the one before and, beside it, the same as the
     * first; nobody else reads the results between. So is a single one. */
    bool is_chain;
    /* Where it begins and ends: borders (borders.h), or "node 2 NAME", before the second operation of
     * that node, where nothing tells where in the code that is: then it is not placed. */
    const char *begin, *end;
    bool is_placed;
} onv_segment_names;

typedef struct onv_namer {
    onv_model *model;
    const onv_eager *eager;
    const onv_scopes *scopes;
    const onv_borders *borders;
    onv_arena *arena;
    const char **nodes; /* by operation: "node 2 NAME"; NULL until one is asked for */
    /* By tensor: operations, UINT32_MAX: none. */
    uint32_t *made_by, *last_read;
    /* The work for one segment. By tensor: 1 + the last module that read it from outside. */
    uint32_t *entered, n_marks;
} onv_namer;

/* Everything lives in `arena`; what was given must outlive the namer. */
onv_status onv_namer_init(onv_namer *namer, onv_model *model, const onv_eager *eager,
                          const onv_scopes *scopes, const onv_borders *borders, onv_arena *arena,
                          onv_error *err);
/* Whether a segment that begins or ends before operation `op` can be named there. */
bool onv_namer_knows_place(const onv_namer *namer, uint32_t op);
/* The place before operation `op` (up to that of the loss), in the model's arena. */
onv_status onv_place_name(onv_namer *namer, uint32_t op, const char **text, onv_error *err);
/* Views beside a border may as well be on its other side: the operation before which the name puts that place. */
uint32_t onv_namer_place(const onv_namer *namer, uint32_t op);
/* "node 2 NAME" of each operation before the loss, in the namer's arena. */
onv_status onv_namer_nodes(onv_namer *namer, const char *const **nodes, onv_error *err);
/* Whether each segment is a row of whole modules, each of which takes what the one before gives. `whole`:
 * from the first to the last operation of these, by segment; NULL: not asked for. */
bool onv_segments_are_chains(onv_namer *namer, const onv_tape_segment *at, uint32_t n,
                             onv_tape_segment *whole);
/* Text lives in the model's arena. Linear in the segment, times the depth of its modules. */
onv_status onv_segment_name(onv_namer *namer, onv_tape_segment segment, onv_segment_names *names,
                            onv_error *err);

#endif
