/* The modules that fully_shard wraps: stretches of the tape with parameters of their own. */
#ifndef ONV_CKPT_SHARD_UNITS_H
#define ONV_CKPT_SHARD_UNITS_H

#include "eager/program.h"

/* `patterns`: globs on paths of modules, with commas; "": repeated modules. Units live in the model's arena. Fails with ONV_ERR_USAGE where a pattern matches no
 * module, or one that contains another unit or is called several times. */
onv_status onv_shard_units_find(onv_model *model, const onv_eager *eager, const char *patterns,
                                const onv_tape_segment **units, uint32_t *n_units, onv_error *err);

#endif
