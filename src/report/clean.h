/* Untrusted text made safe to show.
 *
 * Names, paths and messages hold whatever a model's author chose. What could act on a terminal or
 * deceive its reader is written as an escape: control characters (C0, DEL, C1) and bytes that are
 * no UTF-8 as \x1b; bidirectional controls, line separators and invisible characters as \u202e.
 * Every text report passes every string through here, the JSON report the ill-formed bytes.
 *
 * Text is read as a sequence of units. A unit is one character, or the escape that stands for it,
 * and knows how many columns it takes (0: it combines with the one before; 2: East Asian wide).
 */
#ifndef ONV_REPORT_CLEAN_H
#define ONV_REPORT_CLEAN_H

#include "report/writer.h"

typedef enum onv_clean_mode {
    ONV_CLEAN_ASCII,    /* a terminal that is not known to read UTF-8: all else is escaped too */
    ONV_CLEAN_UNICODE,  /* a terminal that reads UTF-8 */
    ONV_CLEAN_MARKDOWN, /* as UNICODE, and what Markdown or HTML acts on is a character reference */
    ONV_CLEAN_CELL, /* a CSV cell: as UNICODE, but tab and line ends stay (the cell is quoted) */
} onv_clean_mode;

typedef struct onv_unit {
    char text[12]; /* what to write, NUL-terminated */
    uint8_t bytes; /* of `text` */
    uint8_t columns;
} onv_unit;

/* The unit at *text (not at its end), which moves past it. */
onv_unit onv_clean_next(const char **text, onv_clean_mode mode);

size_t onv_clean_columns(const char *text, onv_clean_mode mode);

void onv_write_clean(onv_writer *writer, const char *text, onv_clean_mode mode);

/* What is left out of text that is too wide, for an ellipsis: its middle, behind a third of what is kept, or its front. */
typedef enum onv_cut { ONV_CUT_MIDDLE, ONV_CUT_FRONT } onv_cut;

/* At most `columns` columns. Returns the columns written. */
size_t onv_write_fitted(onv_writer *writer, const char *text, size_t columns, onv_clean_mode mode,
                        onv_cut cut);

/* Where the end of the text that is kept without its front begins: the text itself where it fits. */
const char *onv_clean_end(const char *text, size_t columns, onv_clean_mode mode);

#endif
