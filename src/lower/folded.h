/* Constants that the exporter computed of parameters and buffers: views and parts of one, and terms of several
 * (folded_terms.h). */
#ifndef ONV_LOWER_FOLDED_H
#define ONV_LOWER_FOLDED_H

#include "lower/folded_terms.h"
#include "lower/weight.h"

typedef struct onv_folding {
    onv_folded_plan **plans; /* by value: of what it was computed; NULL: not told */
    onv_shape *leaves;       /* by listed name: of parameters that constants were computed of */
    onv_shape *open_leaves;  /* by listed name: likewise, sizes that terms leave open are 0 */
    onv_ptr_map
        leaf_values;       /* by name of a parameter or a buffer: the value that has its elements */
    onv_ptr_map constants; /* by name: values that have notes */
    onv_ptr_map calls;     /* by name: what calls gave that the exporter replaced by constants */
    bool takes_rows;       /* terms may be rows of a table alone */
    onv_ptr_map parts;     /* by what they are parts of: how many different ones there are */
    uint32_t depth;        /* constants that are made for others now */
} onv_folding;

/* --- folded.c ---------------------------------------------------------------------------------- */

/* The listed parameter that the constant is a view or a part of, as its note tells; SIZE_MAX: of none, or more was computed. */
size_t onv_folded_part_of(const onv_lowering *l, const onv_value *value);

/* The one buffer that the constant was made of, as its note tells. */
typedef struct onv_folded_buffer {
    const char *name; /* of `length` characters; NULL: there is none */
    size_t length;
    bool is_computed; /* more than views were made of it, in each pass */
    bool is_spread;   /* a view repeats its elements */
} onv_folded_buffer;

onv_folded_buffer onv_folded_buffer_of(const onv_lowering *l, const onv_value *value);
/* A view of what calls computed, as its note tells. */
bool onv_folded_computes(const onv_lowering *l, const onv_value *value);
/* The first listed parameter that the note names; SIZE_MAX: there is none. */
size_t onv_folded_first_listed(const onv_lowering *l, const onv_value *value);
/* The listed parameter that is all that the note names; SIZE_MAX: it names others. */
size_t onv_folded_only_name(const onv_lowering *l, const onv_value *value);

/* Gives constants that are parts of a parameter that nothing else explains its name. */
void onv_folded_name_parts(onv_lowering *l);

/* Rows of a table that were looked up, of which views are added to the scores of attention. */
bool onv_folded_is_biases(const onv_lowering *l, onv_value_id id);

/* --- folded_parts.c ---------------------------------------------------------------------------- */

void onv_folded_count_parts(onv_lowering *l);
/* Of that which the constant is a part of: how many different ones the file has; 0: it is none. */
uint32_t onv_folded_parts(const onv_lowering *l, uint32_t value);

/* --- folded_plan.c, folded_make.c --------------------------------------------------------------- */

/* Finds constants that are terms of parameters; the sizes that they leave open, once the others have names; and what is
 * said of these. */
onv_status onv_folded_plan_all(onv_lowering *l);
void onv_folded_settle(onv_lowering *l);
bool onv_folded_is_term(const onv_lowering *l, onv_value_id id);
/* What the forward pass computes of parameters. */
uint32_t onv_folded_make(onv_lowering *l, onv_value_id id);
/* For a reader in the module `scope` whose note has it as the result of another call. */
uint32_t onv_folded_make_again(onv_lowering *l, onv_value_id id, const char *call,
                               const char *scope);

/* --- folded_report.c ---------------------------------------------------------------------------- */

void onv_folded_report(onv_lowering *l);
/* `lacks`: parameters are listed that have neither a tensor in the file nor a size. */
void onv_folded_report_constants(onv_lowering *l, bool lacks);
/* Of a parameter and of something else: it may be smaller than the constant. */
bool onv_folded_is_of_several(onv_lowering *l, const onv_value *value);

#endif
