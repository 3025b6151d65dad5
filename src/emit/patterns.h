/* Which parameters the options freeze. */
#ifndef ONV_EMIT_PATTERNS_H
#define ONV_EMIT_PATTERNS_H

#include "emit/emit.h"

/* Does the pattern match the name, or a module that it is in? */
bool onv_pattern_matches(const char *pattern, const char *name);
/* Before the first parameter. */
onv_status onv_patterns_begin(onv_emitter *e);
/* `file`: another name of the parameter, or NULL. */
bool onv_is_frozen(onv_emitter *e, const char *name, const char *file);
/* Fails where a pattern of --freeze or --train-only matched nothing. */
void onv_check_frozen(onv_emitter *e);

#endif
