/* Names of a model as identifiers of C and Python. */
#ifndef ONV_REPORT_IDENTIFIER_H
#define ONV_REPORT_IDENTIFIER_H

#include "base/strings.h"

/* A character that an identifier of both languages may hold. ASCII only, whatever the locale. */
bool onv_is_identifier_char(char c);

/* `text` with every other character as '_', at most `most` of them, after `prefix`. Where `taken` holds
 * it, "_row" follows; no two calls on one table give the same. The result is in `taken`, then. NULL
 * without memory. */
const char *onv_identifier(onv_strings *taken, onv_arena *arena, const char *prefix,
                           const char *text, size_t most, uint32_t row);

#endif
