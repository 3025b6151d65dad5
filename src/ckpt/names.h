/* Names of a segment, for people and for PyTorch. */
#ifndef ONV_CKPT_NAMES_H
#define ONV_CKPT_NAMES_H

#include "ckpt/scopes.h"
#include "train/program.h"

typedef struct onv_segment_names {
    const char *first, *last; /* nodes; an unnamed one goes by its first output */
    /* Modules that the segment consists of, in order, with spaces between; NULL where it holds
     * operations of a module that is not whole, or nothing tells their modules. Letters, digits,
     * underscores and dots. */
    const char *modules;
    bool is_one; /* a single one */
} onv_segment_names;

/* Text lives in the model's arena. Linear in the segment, times the depth of its modules. */
onv_status onv_segment_name(onv_model *model, const onv_eager *eager, const onv_scopes *scopes,
                            onv_tape_segment segment, onv_segment_names *names, onv_error *err);

#endif
