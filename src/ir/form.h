/* Forms of nodes, as text.
 *
 * A form is written from its last node back: `Add(Erf(x)?)`. A lower-case letter names a value, and is the same value wherever it stands
 * again; `s=` names what follows; `?` is anything, `#` a number, `.` one that is kept, `{0.5}` that number. `*` before an operator: its two
 * operands in either order. `/1`: what it makes as its second output. `[Cast(_)|Neg(_)]`: one of these may lie between, which nothing else
 * reads (but for `!`); `_` is what comes behind the bracket. `!`: others may read it, too; else only the form does. Nodes may have more operands than are
 * written.
 */
#ifndef ONV_IR_FORM_H
#define ONV_IR_FORM_H

#include "ir/model.h"

enum { ONV_FORM_NODES = 24 };

typedef struct onv_form_match {
    onv_value_id named[26];
    onv_node_id nodes[ONV_FORM_NODES]; /* the last one first */
    uint32_t n_nodes;
    uint32_t shared; /* by bit: nodes that others may read */
    double number;   /* of the last `.` */
} onv_form_match;

/* Where forms are looked for. */
typedef struct onv_form_place {
    const onv_model *model;
    void *self;                                  /* of these functions */
    bool (*takes)(void *self, onv_node_id node); /* whether the node may be a part */
    bool (*names)(void *self, onv_value_id value,
                  char letter); /* whether the value may have that name; NULL: any may */
    bool (*number)(void *self, onv_value_id value, char sign,
                   double *number); /* of `#`, `.`, `{`: what it is, or is to be */
    uint32_t (*n_reads)(
        void *self, onv_node_id node); /* of all it makes; UINT32_MAX: the graph gives it, too */
    onv_node_id (*reader)(void *self, onv_node_id node); /* the first one, for onv_form_find */
} onv_form_place;

/* Whether `last` is the last node of that form, and nothing outside reads what is inside. */
bool onv_form_match_at(const onv_form_place *place, onv_node_id last, const char *form,
                       onv_form_match *m);

/* Whether `first` is any node of that form: all ways from one inside lead to the last one. */
bool onv_form_find(const onv_form_place *place, onv_node_id first, const char *form,
                   onv_form_match *m);

/* How often nodes of the match read the value. */
uint32_t onv_form_reads(const onv_form_place *place, const onv_form_match *m, onv_value_id value);

/* Whether the node is a part, or becomes one; false: there is no room. */
bool onv_form_join(onv_form_match *m, onv_node_id node);

static inline onv_value_id onv_form_value(const onv_form_match *m, char name)
{
    return m->named[name - 'a'];
}

#endif
