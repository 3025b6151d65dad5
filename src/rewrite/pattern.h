/* Fusions as ONNX Runtime's documentation shows them: a form, and what it becomes.
 *
 * A form is written from its last node back: `Add(Erf(x)?)`. A lower-case letter names a value, and is the same value wherever it stands
 * again; `s=` names what follows; `?` is anything, `{0.5}` that number. `*` before an operator: its two operands in either order. `~`: a Cast may
 * lie between. `!`: others may read it, too; else only the form does. Nodes may have more operands than are written.
 */
#ifndef ONV_REWRITE_PATTERN_H
#define ONV_REWRITE_PATTERN_H

#include "rewrite/edit.h"

enum { ONV_MATCH_NODES = 16 };

typedef struct onv_match {
    onv_value_id named[26];
    onv_node_id first, last;
    onv_node_id nodes[ONV_MATCH_NODES]; /* `last` first */
    uint32_t n_nodes;
    uint32_t shared; /* by bit: nodes that others may read */
} onv_match;

/* Whether `first` is a part of such a form: floating-point operators of its provider. */
bool onv_match_form(onv_edit *e, onv_node_id first, const char *form, onv_match *m);

static inline onv_value_id onv_match_value(const onv_match *m, char name)
{
    return m->named[name - 'a'];
}

/* Takes over a Cast that makes the value and that only the form reads: its input has the name then. */
void onv_match_cast(const onv_edit *e, onv_match *m, char name);

#endif
