/* The largest size at which each checkpointing plan fits, and the largest at which any does. */
#ifndef ONV_API_PLAN_SIZES_H
#define ONV_API_PLAN_SIZES_H

#include "api/analysis.h"

/* How sizes are looked at: those of a batch, or of a dim. */
typedef struct onv_sizing {
    /* The analysis at a size: of known plans alone, or (NULL) as a run that is asked for that size makes it. `*made` is
     * NULL where the size is beyond all bounds. */
    onv_status (*analyse)(void *context, int64_t size, const onv_known_plans *known,
                          onv_analysis **made, onv_error *err);
    bool (*ends)(void *context); /* after a failure: the search ends with what is known */
    void *context;
    int64_t first; /* the size of the training that the plans are of; 0: none that is searched */
    int64_t unit;  /* sizes are multiples of it */
    uint64_t usable_bytes;
    onv_arena *arena; /* of names in what is set */
} onv_sizing;

/* Sets the sizes of all plans, and training->largest. `of` gets those of training as a whole. `*is_cut`: the search ended
 * before it was over. */
onv_status onv_plan_sizes_find(const onv_sizing *sizing, onv_training *training, onv_fit_of *of,
                               bool *is_cut, onv_error *err);

#endif
