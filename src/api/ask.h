/* What questions share: what is computed for the first one that needs it, and text that is made for an answer. */
#ifndef ONV_API_ASK_H
#define ONV_API_ASK_H

#include "api/analysis.h"
#include "api/sized.h"
#include "onnxvram/onnxvram.h"

/* Computes the formula of the peak where no report or example needed it so far. */
onv_status onv_ask_formula(const onv_analysis *analysis, onv_error *err);

/* Looks for the best order and for what changes of the whole model save, once, where all sizes are known. */
onv_status onv_ask_what_if(const onv_analysis *analysis, onv_error *err);

/* Keeps text that was made in the scratch arena, which is empty then; NULL stays NULL, and comes of a lack of
 * memory. */
const char *onv_ask_keep(const onv_analysis *analysis, const char *text);

/* Rows for ids. */
static inline size_t onv_ask_value(onv_value_id id)
{
    return onv_is_value(id) ? id.index : ONV_NO_INDEX;
}

#endif
