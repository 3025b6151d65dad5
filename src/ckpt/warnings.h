/* What makes the figures of training less than exact, as diagnostics of the model. */
#ifndef ONV_CKPT_WARNINGS_H
#define ONV_CKPT_WARNINGS_H

#include "ckpt/training.h"

/* What less than this part of the peak decides is no news. */
enum { ONV_PARTS_OF_NEWS = 50 };

static inline bool onv_is_news(uint64_t low, uint64_t high)
{
    return high > low && high - low >= low / ONV_PARTS_OF_NEWS;
}

/* Of the export, of what it hides, and of options that change nothing. */
void onv_training_warn(onv_model *model, const onv_training_options *options,
                       const onv_training *result);
/* FSDP without units. */
void onv_training_warn_of_units(onv_model *model, const onv_training_options *how,
                                uint32_t n_units);
/* Plans that recompute.py refuses on a network with shards. */
void onv_training_warn_of_shards(onv_model *model, const onv_training *t);
/* Names of Python that may hold more. */
void onv_training_warn_of_locals(onv_model *model, const onv_training *result);

#endif
