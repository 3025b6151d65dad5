/* Names of Python that hold tensors: what a statement `x = ...` of a module's forward gives is there until
 * a later statement binds x again, or the call returns.
 *
 * Exports tell the statements of forwards (load/statements.h), and of no other function. What a function
 * that a statement calls has names for is not told: there are two ends, without them, and with all until
 * the statement is over.
 */
#ifndef ONV_EAGER_NAMES_H
#define ONV_EAGER_NAMES_H

#include "eager/calls.h"

typedef struct onv_statement_line {
    onv_words number;
    char kind; /* load/statements.h */
} onv_statement_line;

/* Those of the calls around the node, outer first, at most `most`; returns how many, 0: nothing tells. */
uint32_t onv_statements_lines(const onv_node *node, onv_statement_line *lines, uint32_t most);

/* Raises `held`. `told`, by operation: its statements are. */
onv_status onv_names_hold(onv_holding *h, bool upper_end, onv_arena *arena, bool *told,
                          onv_error *err);

#endif
