/* Dims that are two others together: an attention mask over a key-value cache is as long as the past and the new tokens.
 * Exporters give it a dim of its own, whose size may contradict theirs.
 *
 * They are known by the names that exporters give: "total" or "past + sequence" beside "past" (or "cache") and "sequence".
 */
#ifndef ONV_INFER_TOTAL_DIMS_H
#define ONV_INFER_TOTAL_DIMS_H

#include "infer/infer.h"

/* Whether the name of a dim has that word of small letters in it, whatever its own are. */
bool onv_infer_name_holds(const char *name, const char *word);

/* Whether a dim of the model, free or bound, is the sum of two others of it. */
bool onv_infer_is_total(const onv_infer_info *info, const char *name, const char **past,
                        const char **sequence);

/* A warning for each such dim that is bound to another size than both together. */
void onv_infer_check_totals(onv_model *model, const onv_infer_info *info);

#endif
