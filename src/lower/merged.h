/* What the exporter has once and PyTorch made several times: calls that it merged, which run again for their readers, and what
 * calls begin with. */
#ifndef ONV_LOWER_MERGED_H
#define ONV_LOWER_MERGED_H

#include "load/ptr_map.h"
#include "lower/weight.h"

/* What a merged call gave, for all that name it; `next`: 1 + another of the value, 0: none. */
typedef struct onv_named_call {
    const char *call; /* NULL: the file's */
    uint32_t tensor, next;
} onv_named_call;

/* A call that the exporter merged: it ran after this node, and before the next reader. */
typedef struct onv_merged_call {
    uint32_t after, next;
} onv_merged_call;

typedef struct onv_merging {
    ONV_VEC(onv_merged_call) copies;
    ONV_VEC(onv_named_call) named;
} onv_merging;

/* "sub_5" of a call: its kind and its number. */
typedef struct onv_call_name {
    const char *name;
    size_t length; /* without the number */
    uint32_t number;
} onv_call_name;

onv_call_name onv_call_name_of(const char *name);
bool onv_call_is_like(const onv_call_name *a, const onv_call_name *b);

/* --- merged.c ---------------------------------------------------------------------------------- */

/* Which results are those of several calls. Requires the fusions. */
onv_status onv_merged_find(onv_lowering *l);
/* Does the node, which reads the value now, read what another call gave? Asked in the order of reads. */
bool onv_merged_starts(onv_lowering *l, onv_value_id id, uint32_t node);

/* Which results could be those of calls in several modules. */
onv_status onv_merged_mark_modules(onv_lowering *l);
/* Does the node read what another module of its class computed in a call that its own has, too? */
bool onv_merged_is_other_module(const onv_lowering *l, onv_value_id id, const onv_node *node);
/* The call whose result the node's own note has there; NULL: the value itself. */
const char *onv_merged_name(const onv_lowering *l, onv_value_id id, const onv_node *node);
/* Or that the node names as the result of a call that the exporter merged with the one that is there. */
bool onv_merged_is_named(onv_lowering *l, onv_value_id id, const onv_node *node);

/* What stands for the value is the call that this node names, where that was made before. */
void onv_merged_select(onv_lowering *l, onv_value_id id, const onv_node *node);
/* Operations behind each other, up to what the modules were given. */
enum { ONV_MAX_REPEATED = 48 };
/* The reader's module made it, or one around that. */
bool onv_merged_is_own_module(const onv_lowering *l, onv_value_id id, const onv_node *node);
/* What runs again for the reader, from the value on; returns how many. In the module's own loop that is the call alone. */
uint32_t onv_merged_again(onv_lowering *l, onv_value_id id, const onv_node *node,
                          onv_value_id *chain);

/* --- repeat.c ---------------------------------------------------------------------------------- */

/* Zeros, ones and the like that are made, and were read before. */
bool onv_value_is_fill(onv_lowering *l, onv_value_id id);
/* Makes zeros and the like once more, for a reader that has its own. */
void onv_fill_again(onv_lowering *l, onv_value_id id);
/* What the node scatters into, or begins with, is its own. */
void onv_repeat_base(onv_lowering *l, const onv_node *node);
/* Before the node: calls of which it reads a result that the exporter merged with another's. */
void onv_repeat_merged(onv_lowering *l, const onv_node *node);
/* Runs what made the value once more, for the node that is lowered now. */
void onv_repeat_value(onv_lowering *l, onv_value_id id);
#endif
