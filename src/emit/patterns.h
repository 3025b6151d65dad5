/* Parameters, and which of them the options freeze. */
#ifndef ONV_EMIT_PATTERNS_H
#define ONV_EMIT_PATTERNS_H

#include "emit/emit.h"

/* Does the pattern match the name, or a module that it is in? */
bool onv_pattern_matches(const char *pattern, const char *name);
/* Before the first parameter. */
onv_status onv_patterns_begin(onv_emitter *e);
/* The tensor's storage is that parameter, which is trained unless it is frozen. `file`: another name of it, or NULL. */
void onv_emit_parameter(onv_emitter *e, uint32_t tensor, const char *name, const char *file,
                        bool may_train);
/* Fails where a pattern of --freeze or --train-only matched nothing. */
void onv_check_frozen(onv_emitter *e);

#endif
