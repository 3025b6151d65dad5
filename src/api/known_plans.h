/* Checkpointing plans that a search takes from one size to the next. */
#ifndef ONV_API_KNOWN_PLANS_H
#define ONV_API_KNOWN_PLANS_H

#include "ckpt/training.h"

/* Of one item of a list those that take about the least or allocate about the least (cached memory is returned for those):
 * copies in the arena, which is emptied before. `name` has to last as long. */
onv_status onv_know_plans(const onv_training *training, uint32_t item, const char *name,
                          onv_arena *arena, onv_known_plans *known, onv_error *err);

#endif
