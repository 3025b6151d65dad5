/* Names of a model in other languages: fields of CSV, identifiers of C and Python, words of a shell. */
#ifndef ONV_REPORT_QUOTED_H
#define ONV_REPORT_QUOTED_H

#include "base/strings.h"
#include "report/page.h"

/* One field of untrusted text, cleaned. After RFC 4180 fields with commas, quotes or line ends are quoted, quotes doubled. A
 * spreadsheet takes a cell that starts with = + - @, after blanks or as full-width signs too, for a formula, and drops tabs and
 * line ends there; such a field gets a leading ', which spreadsheets hide and programs that read the file strip. */
void onv_csv_field(onv_writer *out, const char *text);

/* A character that an identifier of C and Python may hold. ASCII only, whatever the locale. */
bool onv_is_identifier_char(char c);

/* `text` with every other character as '_', at most `most` of them, after `prefix`. Where `taken` holds
 * it, "_row" follows; no two calls on one table give the same. The result is in `taken`, then. NULL
 * without memory. */
const char *onv_identifier(onv_strings *taken, onv_arena *arena, const char *prefix,
                           const char *text, size_t most, uint32_t row);

/* A word of a command line, in quotes where it needs them. Empty without memory. */
const char *onv_shell_word(const onv_page *page, const char *text);

#endif
